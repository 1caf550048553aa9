"""Other people's rules for templates."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from aws_cdk import Validations
from cdk_nag import AwsSolutionsChecks

from cdk.app import synthesize
from tests.cdk.made import ROOT, Stack, new_app

# W3005: the CDK names dependencies that CloudFormation would find by itself.
# W3010: zones are in the cluster file by name, since nodes are bought there.
IGNORED = "W3005,W3010"

# What cdk-nag finds in clusters/dev.yaml, rule by rule, and is worked off with the deployment:
# flow logs, access logs, rotation of the Munge key, AWS's own policies for Session Manager and
# AWS Backup, wildcards (below a log group; boot bundles; instances that are told by tag; what
# does not exist yet), the newest Python, detailed monitoring and termination protection of the
# head.
FINDINGS = {
    "VPC7": 1,
    "S1": 1,
    "SMG4": 1,
    "IAM4": 3,
    "IAM5": 17,
    "L1": 4,
    "EC28": 1,
    "EC29": 1,
}


def test_templates_are_clean(dev: Stack):
    templates = sorted(map(str, dev.folder.glob("*.template.json")))
    cfn_lint = str(Path(sys.executable).parent / "cfn-lint")

    done = subprocess.run(
        [cfn_lint, "--ignore-checks", IGNORED, "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")


def test_nag_finds_nothing_new(tmp_path):
    found = findings(tmp_path)

    assert found == FINDINGS


def findings(folder: Path) -> dict[str, int]:
    """cdk-nag's rules for AWS solutions over clusters/dev.yaml: rule -> how often broken."""
    app = new_app(folder, cluster="clusters/dev.yaml")
    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with pytest.raises(RuntimeError, match="ValidationFailed"):
        synthesize(ROOT, account=None, app=app)
    (report,) = json.loads((folder / "cdk.out" / "validation-report.json").read_text())[
        "pluginReports"
    ]
    return dict(
        Counter(
            violation["ruleName"].removeprefix("AwsSolutions-").split("[")[0]
            for violation in report["violations"]
            for _ in violation["violatingConstructs"]
        )
    )
