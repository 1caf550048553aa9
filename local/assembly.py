"""Synthesizes the CDK app for a cluster file, as `cdk synth` does, without the CLI."""

import json
import os
import subprocess
import sys
from pathlib import Path

from moto.core.models import DEFAULT_ACCOUNT_ID

ROOT = Path(__file__).parents[1]


class NotSynthesized(Exception):
    """The app refused; the message is what it said."""


def synthesize(cluster_file: Path, out: Path) -> Path:
    """The cloud assembly of one cluster, in `out`.

    Functions hold their own code only: other packages are built for Lambda's processor, and
    the local cloud takes them from this interpreter. CloudFormation's own validation, the
    longest part of it, is left to the tests of the template.
    """
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {"cluster": str(cluster_file.resolve()), "package": "source"}
    environment = os.environ | {
        "CDK_OUTDIR": str(out),
        "CDK_CONTEXT_JSON": json.dumps(context),
        "CDK_DEFAULT_ACCOUNT": DEFAULT_ACCOUNT_ID,
        "CDK_VALIDATION": "false",
    }
    done = subprocess.run(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise NotSynthesized(done.stderr)
    return out
