"""Assemblies as `local.assembly` makes them, without a process for each.

To read the CDK is three quarters of what a process of its own does. Here a pytest process reads it
once, and only if no other has made what it asks for. That app.py makes the same is seen where the
command line is real: tests/cdk/test_cli.py, and the demo and the sandbox.
"""

import json
from pathlib import Path

from moto.core.models import DEFAULT_ACCOUNT_ID

from local.assembly import ROOT, once


def assembled(cluster_file: Path, out: Path) -> Path:
    """The cloud assembly of one cluster, in `out`."""
    return once(cluster_file, out, lambda folder: _synthesize(cluster_file, folder))


def _synthesize(cluster_file: Path, out: Path) -> None:
    from aws_cdk import App

    from cdk.app import synthesize

    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    context |= {"cluster": str(cluster_file.resolve()), "package": "source"}
    synthesize(ROOT, account=DEFAULT_ACCOUNT_ID, app=App(outdir=str(out), context=context))
