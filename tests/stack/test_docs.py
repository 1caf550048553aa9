"""Every command of *.md and docs/*.md: ours are run as they stand, on clusters/dev.yaml in the
local cloud; the others are checked against what they call, or listed with the reason.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore import xform_name
from typer.testing import CliRunner

from local.stack_world import StackWorld
from tests import make
from tests.assemblies import assembled
from tests.doc_commands import ROOT, Command, commands
from tests.stack.world import stacked
from tidegate.cli.main import app

DEV = ROOT / "clusters" / "dev.yaml"
HISTORY = "job_id,submit_s,duration_s,gpus,nodes,partition\n1,0,600,1,1,gpu\n2,60,600,1,1,gpu\n"
JOBS = ("1", "4711", "4711_3", "4711+1")

# The beginning of a command -> why it is not run here.
NOT_RUN = {
    "export PATH=": "it is for the shell of who reads",
    "make setup": "it installs what this test runs with",
    "uv sync ": "as above",
    "make demo": "tests/e2e/test_demo.py runs what it runs",
    "make test": "it is what runs this",
    "make lint": "`make test` runs it beside this",
    "make mutants": "hours; tests/sim/test_mutants.py and tests/test_mutations.py have its parts",
    "sudo .venv/bin/tidegate sandbox": "tests/e2e/test_sandbox.py runs what it runs",
    "sudo .venv/bin/tidegate drill": "a minute; tests/local/test_drill.py has its judgement",
    "squeue ": "a head is needed",
    "echo step ": "a line of a training's script",
    "make vm": "half an hour; tests/boot/test_vm.py has what needs no machine",
    "scripts/vm.sh": "as above",
    "git diff": "a repository with a table in it is needed",
    "git pull": "a repository with another one behind it is needed",
    "npx cdk ": "CloudFormation is needed; app.py, which it calls, is run for each deployment here",
    "terraform ": "its provider is needed: tests/cdk/test_terraform.py runs the rest",
    "python app.py": "local/assembly.py runs it for each deployment here",
    "mkdir -p /etc/tidegate": "it writes into /etc",
    "printf #!/bin/sh": "as above",
    "chmod 755 /etc/tidegate/": "as above",
    "scontrol update NodeName": "a real node is needed; tests/core/test_keeping.py has the feature",
    "docs/experiments/": "root and an hour; the shell reads them below",
    "systemctl stop slurmctld slurmdbd": "tests/boot/test_accounting.py types it on a head",
    "cp -p SHARED_DIR": "as above",
    "systemctl start slurmdbd": "as above",
    "systemctl start slurmctld": "as above",
    "sacctmgr ": "tests/contracts/test_partitions_contract.py runs them on Slurm's database",
    "sacct ": "Slurm's database is needed; tests/replay/test_trace.py reads what it writes",
    "sudo useradd ": "it makes a user here; tests/e2e/test_boot.py makes one on a head",
    "sudo -iu ": "as above",
    "sbatch ": "as above, and the user's job runs",
    "sudo cp -a /old-home": "homes of before are needed",
    "sudo tidegate-user add": "it makes a user here; tests/e2e/test_sandbox.py adds one by it",
    "sudo tidegate-share-image": "a head is needed: tests/userdata/test_images_kept.py",
    "srun ": "it is what a user's own job does",
    "journalctl ": "the head's journal is needed",
    "tidegate cost --by": "a head with accounting is needed: tests/cli/test_cost_by.py",
    "tidegate cost --focus": "the same, tests/cli/test_focus.py",
    "tidegate cost --reconcile": "AWS's report is needed: tests/cli/test_reconcile.py",
    "tidegate report ": "as above: tests/cli/test_report.py",
    "tidegate advise": "a history with steps, or a head's: tests/cli/test_advise.py",
    "tidegate validate --live": "the local cloud has no quotas: tests/cli/test_validate_live.py",
    "tidegate probe": "as above: tests/cli/test_probe.py",
    "tidegate user": "a head is needed: tests/e2e/test_sandbox.py, tests/boot/test_head.py",
    "tidegate node hold": "a node on a head is needed: tests/cli/test_node_hold.py",
    "tidegate node release": "as above",
    "tidegate rollout pause": "a roll-out on its way is needed: tests/cli/test_rollout.py",
    "tidegate rollout abort": "as above",
    "tidegate rollout finish": "as above",
    "tidegate capacity": "the local cloud has no quotas: tests/cli/test_capacity.py",
    "tidegate market": "the same, and other regions: tests/cli/test_market.py",
    "tidegate image bake": "moto has no Image Builder: tests/cli/test_image_bake.py",
    "tidegate image list": "as above",
    "tidegate --install-completion": "it changes the shell of who runs it: tests/cli/test_cli.py",
}

# What would never end, or take long, or names a pool that the page adds -> what is typed instead.
INSTEAD = {"--watch": "", "0:300": "0:2", "h100": "t4"}  # tests/cli/test_status.py watches
NODE = "i-0123456789abcdef0"

EVERY = commands()
OURS = [each for each in EVERY if each.words[0] == "tidegate"]
RUN = [each for each in OURS if not " ".join(each.words).startswith(tuple(NOT_RUN))]
AWS = [each for each in EVERY if each.words[0] == "aws"]


@dataclass(frozen=True)
class Lambda:
    """The local cloud's, which lets the router run functions."""

    world: StackWorld

    def __getattr__(self, operation: str) -> Any:
        return getattr(self.world.cloud.client("lambda"), operation)

    def invoke(self, *, FunctionName: str, InvocationType: str, Payload: bytes) -> None:  # noqa: N803
        assert InvocationType == "Event"
        done = self.world.router.functions.invoke(FunctionName, json.loads(Payload))
        assert done.is_ok, done.error


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StackWorld]:
    """clusters/dev.yaml, deployed, with the jobs that the pages ask for."""
    assembly = assembled(DEV, tmp_path_factory.mktemp("cdk.out"))
    with stacked(assembly, DEV, starts=None) as deployed:
        deployed.report([make.job(each) for each in JOBS])
        folder = desk(tmp_path_factory.mktemp("desk"), assembly)
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(folder)
            yield deployed
        assert deployed.trouble() == []


def desk(folder: Path, assembly: Path) -> Path:
    """The files that the pages speak of."""
    (folder / "clusters").mkdir()
    for name in ("clusters/dev.yaml", "dev.yaml", "now.yaml", "other.yaml", "new.yaml"):
        shutil.copy(DEV, folder / name)
    (folder / "history.txt").write_text(HISTORY)
    shutil.copy(ROOT / "tests/cli/pcluster/files/whole.yaml", folder / "old.yaml")
    (folder / "tests").symlink_to(ROOT / "tests")
    (folder / "cdk.out").symlink_to(assembly)
    return folder


@pytest.mark.parametrize("command", RUN, ids=str)
def test_a_command_of_ours_does_what_the_page_says(world: StackWorld, command: Command) -> None:
    words = [INSTEAD.get(each, each) for each in command.words[1:]]
    words = [world.head_id if each == NODE else each for each in words if each]

    new = Path("clusters/new.yaml")
    if "init" in words:
        new.unlink(missing_ok=True)  # it is made by two pages
    else:  # its own cluster is deployed by test_getting_started.py
        shutil.copy(DEV, new)

    done = CliRunner().invoke(
        app,
        words,
        obj=lambda name: Lambda(world) if name == "lambda" else world.cloud.client(name),
        env=world.cloud.environment,
        input="\n" * 20,
    )

    # 3: it answers, and something waits or needs a look.
    assert done.exit_code in (0, 3), done.output


def test_every_other_command_is_listed_with_the_reason() -> None:
    others = [" ".join(each.words) for each in EVERY if each not in RUN and each not in AWS]
    used = {no for each in others for no in NOT_RUN if each.startswith(no)}

    assert [each for each in others if not each.startswith(tuple(NOT_RUN))] == []
    assert used == NOT_RUN.keys()
    assert len(RUN) > 40


@pytest.mark.parametrize("command", AWS, ids=str)
def test_aws_knows_the_operation_and_its_parameters(command: Command) -> None:
    _, service, operation, *rest = command.words
    if service == "s3":  # the command line's own, not of the service's model
        assert (operation, [each for each in rest if each.startswith("-")]) == ("cp", [])
        return
    model: Any = botocore.session.Session().get_service_model(service)
    known = {xform_name(each, "-"): each for each in model.operation_names}
    members = model.operation_model(known[operation]).input_shape.members

    asked = {each.removeprefix("--") for each in rest if each.startswith("--")}
    options = {xform_name(each, "-"): of for each, of in members.items()}
    # The command line has two options for what is true or false.
    switches = {f"no-{each}" for each, of in options.items() if is_a_switch(of)}
    assert asked <= options.keys() | switches


def is_a_switch(shape: Any) -> bool:
    """EC2 has a structure for it, AttributeBooleanValue."""
    inside = getattr(shape, "members", {})
    return "boolean" in (shape.type_name, *(each.type_name for each in inside.values()))


def test_a_shell_can_read_what_is_for_one() -> None:
    plain = [each.text for each in EVERY if each.words[0] in ("for", "mkdir", "printf", "chmod")]
    scripts = [(ROOT / each.words[0]).read_text() for each in EVERY if "/" in each.words[0]]

    assert plain
    assert scripts
    for text in (*plain, *scripts):
        subprocess.run(["bash", "-n"], input=text, text=True, check=True)
