"""The site's checks of templates and idle nodes as jobs: the head's program on a real slurmctld."""

import itertools
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.adapters.slurm_command import CommandRunner
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.idle_check import idle_check_name
from tidegate.core.model.site_check import REFUSED, CheckJob, check_name
from userdata.bundle import HERE
from userdata.site_check import (
    IDLE,
    PAIRS,
    SCRIPT,
    SCRIPTS,
    TEMPLATES,
    SiteCheckValues,
    check_files,
)

NUMBERS = itertools.count(1)
PROGRAM = HERE / "head" / "tidegate-check.sh"
CONF = "/etc/slurm/tidegate-check.conf"

# It asks for what Tidegate says otherwise: another name, partition, number of nodes and time.
SCRIPT_TEXT = """#!/bin/bash
#SBATCH -J mine -p nowhere -N 1 -t 999 --requeue -o /dev/null
#SBATCH --ntasks-per-node=1
[[ $USER == daemon && $(id -un) == daemon && $HOME != /root ]] || exit 20
[[ $(srun hostname | sort -u | wc -l) == "$SLURM_NNODES" ]] || exit 21
exit "$(cat /tmp/FOLDER/exit)"
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealSlurm]:
    with slurm_of_its_own("SchedulerParameters=bf_interval=1") as slurm:
        yield slurm


@pytest.fixture(scope="module")
def port(cluster: RealSlurm) -> SlurmCli:
    """As the head's agent asks, but for sudo: the bench's agent is root."""
    values = SiteCheckValues("daemon", 2, 60, 600, "#!", (("gpu", "gpu"), ("other", "nowhere")))
    (cluster.folder / "exit").write_text("0")
    (cluster.folder / "exit").chmod(0o644)
    cluster.folder.chmod(0o755)
    script = SCRIPT_TEXT.replace("FOLDER", cluster.folder.name)
    of_one = script.replace("-N 1", "--nice=5")
    idle = replace(values, nodes=1, script=of_one, partitions=(("gpu", "gpu"),))
    pair = replace(values, script=script, partitions=(("gpu", "gpu"),))
    checks = {TEMPLATES: replace(values, script=script), IDLE: idle, PAIRS: pair}
    files = check_files(checks)
    where = ((CONF, "check"), *((SCRIPTS[kind], f"{kind}.sbatch") for kind in checks))
    for path, name in where:
        put(cluster, path, files[name])
    return asks_by(cluster, PROGRAM.read_text())


def asks_by(cluster: RealSlurm, program: str) -> SlurmCli:
    """By this text of the head's program; another release's tree has /tmp, not the checkout."""
    copy = cluster.folder / f"program-{next(NUMBERS)}.sh"
    copy.write_text(program)
    return SlurmCli(CommandRunner(prefix=cluster.prefix), ("bash", str(copy)))


def put(cluster: RealSlurm, path: str, text: str) -> None:
    part = cluster.folder / "part"
    part.write_text(text if text.endswith("\n") else f"{text}\n")
    cluster.run("install", "-m", "644", str(part), path)


def fresh(cluster: RealSlurm, count: int = 2) -> list[str]:
    names = [f"i-{next(NUMBERS):017x}" for _ in range(count)]
    cluster.join(*names)
    return names


def a_name(pool: str = "gpu") -> str:
    return check_name(pool, "7be21c-12", 1_800_000_000.0, next(NUMBERS))


def an_idle_name(node: str) -> str:
    return idle_check_name("gpu", node, 1_800_000_000.0, next(NUMBERS))


def priority(cluster: RealSlurm, job_id: str) -> int:
    shown = cluster.run("scontrol", "show", "job", job_id)
    return int(shown.split(" Priority=")[1].split()[0])


def told(port: SlurmCli, name: str) -> list[CheckJob]:
    return [each for each in port.read().checks if each.name == name]


def ended(port: SlurmCli, name: str) -> CheckJob:
    def over() -> list[CheckJob]:
        return [each for each in told(port, name) if each.exit_code is not None]

    return eventually(f"{name} has ended", over)[0]


def test_it_runs_as_its_user_on_both_nodes_once_and_its_end_is_told(cluster, port):
    nodes, name = fresh(cluster), a_name()

    assert port.check(name, nodes) == ""
    assert port.check(name, nodes) == ""
    cluster.port.poke(nodes)
    passed = ended(port, name)
    (cluster.folder / "exit").write_text("7")
    second = a_name()
    assert port.check(second, nodes) == ""
    cluster.port.poke(nodes)
    failed = ended(port, second)

    assert (passed.state, passed.exit_code, passed.user) == ("COMPLETED", 0, "daemon")
    assert len(told(port, name)) == 1
    assert (failed.state, failed.exit_code) == ("FAILED", 7)
    shown = cluster.run("scontrol", "show", "job", passed.job_id)
    for each in ("Partition=gpu", "NumNodes=2", "TimeLimit=00:01:00", "Requeue=0", "Deadline="):
        assert each in shown
    again = asks_by(cluster, PROGRAM.read_text())
    assert again.read().checks == ()
    assert again.check(name, nodes) == "", "another start of the agent asks again"
    assert [each.job_id for each in told(again, name)] == [passed.job_id]


def test_no_other_job_takes_its_nodes_before_it_and_those_of_others_go_on(cluster, port):
    (cluster.folder / "exit").write_text("0")
    (busy, free), name = fresh(cluster), a_name()
    (beside,) = fresh(cluster, 1)
    runs = cluster.submit("-w", busy, "--exclusive", "-t", "30", script="sleep 300")
    cluster.port.poke([busy])
    eventually("a job runs", lambda: cluster.state(runs) == "RUNNING")

    assert port.check(name, [busy, free]) == ""
    later = [cluster.submit("--gres=gpu:t4:4", "-w", each, script="true") for each in (busy, free)]
    elsewhere = cluster.submit("--gres=gpu:t4:4", "-w", beside, script="true")
    cluster.port.poke([free])

    eventually("the job beside it ran", lambda: not cluster.state(elsewhere))
    (waits,) = told(port, name)
    assert (waits.state, waits.exit_code) == ("PENDING", None)
    assert [cluster.state(each) for each in later] == ["PENDING", "PENDING"]
    cluster.cancel(runs)
    assert ended(port, name).state == "COMPLETED"
    eventually("the others follow", lambda: not any(map(cluster.state, later)))


def test_that_of_an_idle_node_runs_once_and_its_exit_code_is_told(cluster, port):
    (node,) = fresh(cluster, 1)
    name, again = an_idle_name(node), an_idle_name(node)
    (cluster.folder / "exit").write_text("0")

    assert port.check(name, [node]) == ""
    assert port.check(name, [node]) == ""
    cluster.port.poke([node])
    passed = ended(port, name)
    (cluster.folder / "exit").write_text("3")
    assert port.check(again, [node]) == ""
    cluster.port.poke([node])
    failed = ended(port, again)

    assert (passed.state, passed.exit_code, passed.user) == ("COMPLETED", 0, "daemon")
    assert len(told(port, name)) == 1
    assert (failed.state, failed.exit_code) == ("FAILED", 3)
    shown = cluster.run("scontrol", "show", "job", passed.job_id)
    for each in ("NumNodes=1", "TimeLimit=00:01:00", "Requeue=0", "Deadline=", "Nice=2147483645"):
        assert each in shown


def test_that_of_a_pair_runs_on_both_at_once_and_waits_behind_other_jobs(cluster, port):
    (cluster.folder / "exit").write_text("4")
    nodes = fresh(cluster)
    name = idle_check_name("gpu", nodes[0], 1_800_000_000.0, next(NUMBERS), nodes[1])

    assert port.check(name, nodes) == ""
    assert port.check(name, nodes) == ""
    cluster.port.poke(nodes)
    failed = ended(port, name)

    assert (failed.state, failed.exit_code, failed.user) == ("FAILED", 4, "daemon")
    assert len(told(port, name)) == 1
    shown = cluster.run("scontrol", "show", "job", failed.job_id)
    for each in ("NumNodes=2", "Requeue=0", "Deadline=", "Nice=2147483645"):
        assert each in shown


def test_a_job_with_any_higher_priority_is_before_that_of_an_idle_node(cluster, port):
    (cluster.folder / "exit").write_text("0")
    (node,) = fresh(cluster, 1)
    name = an_idle_name(node)
    runs = cluster.submit("-w", node, "--exclusive", "-t", "30", script="sleep 300")
    cluster.port.poke([node])
    eventually("a job runs", lambda: cluster.state(runs) == "RUNNING")

    assert port.check(name, [node]) == ""
    assert port.check(name, [node]) == "", "asked again it stays behind"
    (waits,) = told(port, name)
    later = cluster.submit("--exclusive", "-w", node, "-t", "30", script="sleep 300")
    # 0: it is held. Where multifactor weighs nothing, as by default from 23.11 on, all have 1.
    behind = priority(cluster, waits.job_id)
    assert 0 < behind <= priority(cluster, later)
    cluster.run("scontrol", "update", f"jobid={later}", f"priority={behind + 1}")
    cluster.cancel(runs)
    cluster.port.poke([node])

    eventually("who came later runs", lambda: cluster.state(later) == "RUNNING")
    assert [each.state for each in told(port, name)] == ["PENDING"]
    cluster.cancel(later)
    assert ended(port, name).state == "COMPLETED"


def test_what_slurm_or_the_head_refuses_is_told_with_its_words(cluster, port):
    nodes = fresh(cluster)
    nowhere, gone, foreign = a_name("other"), a_name(), a_name("third")

    assert port.check(nowhere, nodes).endswith("Invalid partition name specified")
    assert port.check(gone, ["i-0123456789abcdef0"]).endswith("Invalid node name specified")
    assert port.check(foreign, nodes) == "pool third has no check"

    assert [each.state for each in told(port, nowhere)] == [REFUSED]
    words = "sbatch: error: Batch job submission failed: Invalid node name specified"
    assert told(port, gone) == [CheckJob(gone, REFUSED, said=words)]


def test_a_job_of_the_same_name_of_another_user_is_no_check(cluster, port):
    (cluster.folder / "exit").write_text("0")
    nodes, name = fresh(cluster), a_name()
    foreign = cluster.submit("--hold", "--job-name", name, script="true")

    assert port.check(name, nodes) == ""

    assert sorted(each.user for each in told(port, name)) == ["daemon", "root"]
    cluster.cancel(foreign)
    cluster.port.poke(nodes)

    def passed() -> bool:
        return ("daemon", 0) in {(each.user, each.exit_code) for each in told(port, name)}

    eventually("it passes", passed)


def test_a_script_for_which_sbatch_waits_keeps_nobody_waiting(cluster, port):
    (node,) = fresh(cluster, 1)
    busy = cluster.submit("-w", node, "--exclusive", "-t", "30", script="sleep 300")
    eventually("the job before it runs", lambda: cluster.state(busy) == "RUNNING")
    text = cluster.run("cat", SCRIPT).replace("#SBATCH --ntasks", "#SBATCH --wait --ntasks")
    conf = cluster.run("cat", CONF)
    impatient = asks_by(cluster, PROGRAM.read_text().replace("SUBMIT_S=8", "SUBMIT_S=2"))
    name = a_name()
    try:
        put(cluster, SCRIPT, text)
        put(cluster, CONF, conf.replace(" daemon 2 ", " daemon 1 "))
        began_s = time.monotonic()
        assert impatient.check(name, [node]) == ""
        assert time.monotonic() - began_s < 10.0
    finally:
        put(cluster, SCRIPT, text.replace("--wait ", ""))
        put(cluster, CONF, conf)

    (waits,) = told(impatient, name)
    assert waits.state == "PENDING"
    assert f" Priority={2**32 - 6} " in cluster.run("scontrol", "show", "job", waits.job_id) + " "
    cluster.cancel(busy, waits.job_id)


def test_a_job_that_was_submitted_and_no_more_has_its_priority_when_asked_again(cluster, port):
    (node, other), name = fresh(cluster), a_name()
    busy = cluster.submit("-w", node, "--exclusive", "-t", "30", script="sleep 300")
    eventually("the job before it runs", lambda: cluster.state(busy) == "RUNNING")
    assert port.check(name, [node, other]) == ""
    (job,) = told(port, name)
    cluster.run("scontrol", "update", f"jobid={job.job_id}", "priority=7")

    assert port.check(name, [node, other]) == ""

    assert f" Priority={2**32 - 6} " in cluster.run("scontrol", "show", "job", job.job_id)
    cluster.cancel(busy, job.job_id)


def test_a_silent_slurmctld_refuses_nothing(cluster, port):
    nodes, name = fresh(cluster), a_name()
    asked = asks_by(cluster, PROGRAM.read_text().replace("timeout 5 squeue", "false squeue"))

    with pytest.raises(SlurmUnavailable, match="squeue gave no answer"):
        asked.check(name, nodes)

    assert told(asked, name) == []


@pytest.mark.parametrize(
    ("name", "nodes"),
    [
        ("tidegate:check:gpu:x:1-1;id", "i-0123456789abcdef0"),
        ("tidegate:check:gpu:x:1-1", "i-0123456789abcdef0;id"),
        ("tidegate:check:gpu:x:1-1", "ALL"),
        ("tidegate:check:gpu:x:1-1", "--uid=0"),
        ("mine", "i-0123456789abcdef0"),
        ("tidegate:idle:gpu:i-1:1-1;id", "i-0123456789abcdef0"),
        ("tidegate:other:gpu:i-1:1-1", "i-0123456789abcdef0"),
    ],
)
def test_roots_program_takes_nothing_but_a_name_and_nodes(cluster, port, name, nodes):
    said = port.check(name, [nodes])

    assert said.endswith(("is no name of a check", "are no nodes"))


def test_it_never_runs_as_root(cluster, port):
    cluster.run("sed", "-i", "s/ daemon / root /", CONF)

    said = port.check(a_name(), fresh(cluster))

    cluster.run("sed", "-i", "s/ root / daemon /", CONF)
    assert said == "the check's user root is root, which no job of a check may be"
