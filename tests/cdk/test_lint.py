"""Other people's rules for templates."""

import json
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from aws_cdk import App, Validations
from aws_cdk import Stack as CdkStack

from cdk.app import load_stacks
from cdk.statements import role, statement
from tests.cdk.made import ROOT, Stack, dev_file, new_app
from tests.cdk.variants import SLACK, TEAMS, stacks_of
from tidegate.wire.deployment import NEEDED_ENDPOINTS

# W3005: the CDK names dependencies that CloudFormation would find by itself.
# W3010: zones are in the cluster file by name, since nodes are bought there.
IGNORED = "W3005,W3010"

FILES: dict[str, dict[str, Any]] = {
    "dev": {},
    "no way out": {"network": {"endpoints": list(NEEDED_ENDPOINTS)}},
    "NAT": {
        "images": {},
        "alarm_email": "a@example.org",
        "notifications": {"slack": SLACK, "teams": TEAMS},
        "network": {"nat": "one", "flow_logs": "rejected", "instance_connect": "true"},
        "lustre": {
            "storage_gib": "1200",
            "data_repositories": [{"path": "/", "s3": "data-sets", "auto_export": ["NEW"]}],
        },
        "bill_alert": {"usd_per_month": "100", "email": "a@example.org"},
        "kms_key": "arn:aws:kms:us-east-1:123456789012:key/0a1b2c3d-1111-2222-3333-444455556666",
        "permissions_boundary": "arn:aws:iam::aws:policy/Bound",
        "slurm": {
            "repositories": {"ubuntu24.04": {"url": "s3://b-1/a/noble", "key": "s3://b-1/k"}}
        },
    },
}


def test_templates_are_clean(dev: Stack, tmp_path_factory: pytest.TempPathFactory):
    baked = stacks_of(tmp_path_factory, "images")["tidegate-dev-images"].folder
    folders = (dev.folder.glob("*.template.json"), baked.glob("*-images.template.json"))
    templates = sorted(str(each) for found in folders for each in found)
    cfn_lint = str(Path(sys.executable).parent / "cfn-lint")

    done = subprocess.run(
        [cfn_lint, "--ignore-checks", IGNORED, "--", *templates],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", FILES)
def test_nag_finds_nothing_that_has_no_reason(tmp_path, name):
    (tmp_path / "a.yaml").write_text(yaml.safe_dump(dev_file(**FILES[name])))

    assert findings(tmp_path, tmp_path / "a.yaml") == {}


def test_nag_finds_nothing_in_the_largest_example_and_in_an_autoscaler_alone(tmp_path):
    research = findings(tmp_path / "a", ROOT / "clusters" / "research.yaml")
    old = findings(tmp_path / "b", ROOT / "docs" / "example-app" / "old-cluster.yaml")

    assert (research, old) == ({}, {})


def test_wildcard_without_a_reason_is_a_finding(tmp_path):
    """What is acknowledged is one resource at a time, not the rule."""
    app = new_app(tmp_path)
    stack = CdkStack(app, "s")
    for resource in ("*", "arn:aws:sqs:us-east-1:123456789012:*"):
        role(
            stack,
            resource[:1],
            service="lambda",
            statements=[statement("Any", ["sqs:SendMessage"], [resource])],
        )

    assert checked(app) == {"IAM5[Resource::arn:aws:sqs:us-east-1:123456789012:*]": 1}


def test_apps_of_one_s_own_pass_cloudformation_s_rules_with_baked_images(
    tmp_path_factory: pytest.TempPathFactory,
):
    """A new CDK app judges itself by them, and E1152 ends its synthesis: it takes the default of a
    template's parameter, which is a name in Parameter Store, for an image's id.
    """
    folder = stacks_of(tmp_path_factory, "images")["tidegate-dev"].folder
    said = json.loads((folder / "tidegate-dev.metadata.json").read_text())

    acknowledged = {
        path.rpartition("/")[2]
        for path, entries in said.items()
        for each in entries
        if "CloudFormation-Validate::E1152" in (each.get("data") or ())
    }

    assert acknowledged == {"Pool-t4", "Pool-a10g", "Pool-arm"}


def findings(folder: Path, file: Path) -> dict[str, int]:
    """cdk-nag's rules for AWS solutions over a cluster file: finding -> how often."""
    folder.mkdir(exist_ok=True)
    app = new_app(folder, cluster=str(file))
    load_stacks(ROOT, account=None, app=app)
    return checked(app)


def checked(app: App) -> dict[str, int]:
    # Its rules are JavaScript, which every process that collects this would load at once.
    from cdk_nag import AwsSolutionsChecks

    Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    with suppress(RuntimeError):
        app.synth()
    report = Path(app.outdir) / "validation-report.json"
    if not report.exists():
        return {}
    plugins = json.loads(report.read_text())["pluginReports"]
    return dict(
        Counter(
            violation["ruleName"].removeprefix("AwsSolutions-")
            for plugin in plugins
            for violation in plugin["violations"]
            for _ in violation["violatingConstructs"]
        )
    )
