"""Which commands a look at Slurm runs."""

from collections.abc import Sequence

import pytest

from tidegate.adapters.slurm_cli import SlurmCli
from tidegate.adapters.slurm_command import Finished
from tidegate.adapters.slurm_queue import FIELDS
from tidegate.adapters.slurm_shape import Gpus, gpus

ASSOCIATIONS = ["scontrol", "show", "assoc_mgr", "flags=assoc,qos"]


@pytest.mark.parametrize(
    ("accounting", "is_asked"),
    [
        ("accounting_storage/slurmdbd", True),
        ("accounting_storage/none", False),  # 22.05
        ("(null)", False),  # 23.11
    ],
)
def test_associations_are_asked_for_only_where_there_are_any(accounting, is_asked):
    """slurmctld 23.11.4 ends when it is asked and has no accounting."""
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        asked.append(argv)
        told = {
            "config": f"AccountingStorageHost   = head\nAccountingStorageType   = {accounting}\n",
            "--version": "slurm-wlm 23.11.4",
        }
        return Finished(0, told.get(argv[-1], ""), "")

    reading = SlurmCli(run).read()

    assert (ASSOCIATIONS in asked) == is_asked
    assert reading.associations == ()


def test_of_a_federation_its_own_cluster_alone_is_asked():
    """With `fed_display` the others' jobs show too, and nodes would be bought for them here."""
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        asked.append(argv)
        return Finished(0, "slurm-wlm 22.05.8" if argv[-1] == "--version" else "", "")

    slurm = SlurmCli(run)
    slurm.read()
    slurm.poke(["i-01"])

    shown = [argv for argv in asked if argv[0] in ("squeue", "sinfo") and argv[-1] != "--version"]
    assert {argv[0] for argv in shown} == {"squeue", "sinfo"}
    assert [argv for argv in shown if argv[1] != "--local"] == []


JOB = {
    **dict.fromkeys(FIELDS, "N/A"),
    "JobID": "7",
    "ArrayJobID": "7",
    "State": "PENDING",
    "Partition": "gpu",
    "NumNodes": "1",
    "NumTasks": "1",
    "NumCPUs": "1",
    "MinCPUs": "1",
    "NTPerNode": "0",
    "PriorityLong": "1",
    "TimeLimit": "1:00",
    "Requeue": "1",
    "NodeList": "",
    "ReqNodes": "",
    "MinTime": "0:00",
    "EligibleTime": "2026-11-21T20:36:51",
    "MinMemory": "1000M",
    "tres-alloc": "cpu=1,mem=1000M,node=1",
    "OverSubscribe": "OK",
    "Reason": "InvalidAccount",
}


@pytest.mark.parametrize(
    ("accounting", "reason"),
    [("accounting_storage/slurmdbd", "InvalidAccount"), ("(null)", "None")],
)
def test_an_account_can_be_invalid_only_where_there_are_accounts(accounting, reason):
    """slurmctld 23.11.4 says it of any job that waits, where there are none."""

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        if argv[0] == "squeue":
            separator = argv[-1].split(",")[0].partition(":")[2]
            return Finished(0, "".join(f"{JOB[name]}{separator}" for name in FIELDS), "")
        told = {"config": f"AccountingStorageType = {accounting}\n", "--version": "slurm 23.11.4"}
        return Finished(0, told.get(argv[-1], ""), "")

    (job,) = SlurmCli(run).read().jobs

    assert (job.reason, job.unreadable) == (reason, "")


@pytest.mark.parametrize(
    ("version", "field", "said", "is_exclusive"),
    [
        ("24.11.5", "OverSubscribe", "OK", False),
        ("25.11.8", "OverSubscribe", "NO", True),
        ("26.05.5", "Exclusive", "NO", False),
        ("26.05.5", "Exclusive", "NODE", True),
        ("26.11.0", "Exclusive", "USER", True),
    ],
)
def test_who_wants_nodes_for_itself_is_asked_in_the_words_of_the_release(
    version, field, said, is_exclusive
):
    """OverSubscribe says NO of an exclusive job, and from 26.05 on of nearly every job."""

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        if "tres-alloc" in argv[-1]:
            columns = [each.split(":") for each in argv[-1].split(",")]
            told = {**JOB, field: said}
            return Finished(0, "".join(f"{told[name]}{end}" for name, end in columns), "")
        return Finished(0, f"slurm {version}" if argv[-1] == "--version" else "", "")

    (job,) = SlurmCli(run).read().jobs

    assert job.shape.is_exclusive is is_exclusive


@pytest.mark.parametrize(
    ("partitions", "said", "state", "reason"),
    [
        ("gpu", "None", "down", "PartitionDown"),
        ("gpu", "Priority", "inact", "PartitionInactive"),
        ("gpu", "Priority", "drain", "Priority"),
        ("gpu,cpu", "None", "down", ""),
        ("gpu", "Dependency", "down", "Dependency"),
        ("gpu", "Resources", "down", "PartitionDown"),
        ("gpu", "Reservation", "down", "PartitionDown"),
    ],
)
def test_a_job_that_slurm_has_not_looked_at_waits_for_its_partition(
    partitions, said, state, reason
):
    row = JOB | {"Partition": partitions, "Reason": said}

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        if argv[0] == "sinfo":
            return Finished(0, f"gpu {state}\ncpu up\n", "")
        if argv[0] == "squeue":
            separator = argv[-1].split(",")[0].partition(":")[2]
            return Finished(0, "".join(f"{row[name]}{separator}" for name in FIELDS), "")
        told = {"config": "AccountingStorageType = (null)\n", "--version": "slurm 24.11.5"}
        return Finished(0, told.get(argv[-1], ""), "")

    (read,) = SlurmCli(run).read().jobs

    assert read.reason == reason


@pytest.mark.parametrize("text", ["cpu:6", "cpu=6", "N/A"])
def test_cpus_of_a_task_are_no_gres(text):
    """23.11 writes them with a colon."""
    assert gpus(text) == Gpus()


NODE = "NodeName=i-01 CPUAlloc={} CPUTot=4 RealMemory=1000 AllocMem=0 State={}+DYNAMIC_NORM\n"


@pytest.mark.parametrize(
    ("state", "on", "seen"),
    [
        ("PENDING", "", ["IDLE"]),  # what it left as it was requeued is free
        ("RUNNING", "i-01", ["MIXED"]),
        ("COMPLETING", "i-01", ["MIXED"]),
    ],
)
def test_a_node_that_a_job_left_between_the_two_questions_is_asked_for_again(state, on, seen):
    """Nodes are asked for before the queue; the job would wait beside a node that looks taken."""
    nodes = [NODE.format(1, "MIXED"), NODE.format(0, "IDLE"), NODE.format(0, "DOWN")]

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        if argv[0] == "squeue":
            separator = argv[-1].split(",")[0].partition(":")[2]
            row = {**JOB, "State": state, "NodeList": on, "Reason": "None"}
            return Finished(0, "".join(f"{row[name]}{separator}" for name in FIELDS), "")
        if argv[:3] == ["scontrol", "show", "nodes"]:
            return Finished(0, nodes.pop(0), "")
        told = {"config": "AccountingStorageType = (null)\n", "--version": "slurm 23.11.4"}
        return Finished(0, told.get(argv[-1], "i-01\n" if "hostnames" in argv else ""), "")

    (node,) = SlurmCli(run).read().nodes

    assert [word for word in node.state.words if word != "DYNAMIC_NORM"] == seen


@pytest.mark.parametrize(("tasks", "refused"), [("7_0-2,5", "7"), ("7_[0-2]", "7"), ("7_3", "7_3")])
def test_of_several_jobs_the_array_whose_tasks_slurm_names_was_refused(tasks, refused):
    """Source: scontrol of 22.05, of an array that waits and names a feature that is none."""
    said = f"{tasks}: Invalid feature specification"

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        return Finished(1, "", f"{said}\n9_1-2: No error\n")

    assert SlurmCli(run).constrain(["7", "9"], "t4") == {refused: "Invalid feature specification"}
