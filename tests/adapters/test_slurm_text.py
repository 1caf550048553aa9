"""Slurm's own output, both versions, read as core values; and any other text does no harm."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.adapters import slurm_queue, slurm_text
from tidegate.adapters.slurm_queue import FIELDS
from tidegate.adapters.slurm_text import ParseError
from tidegate.core.slurm import Association, Job, Node, Shape

SAMPLES = Path(__file__).parent / "samples"
VERSIONS = ("22.05", "24.11")
# queue_<version>.txt was taken with FIELDS and this separator, from jobs submitted alike.
SEPARATOR = "~tg7f3a~"
# What each version had as first job id of the samples' second list of submissions.
PLAIN = {
    "JobArrayID": "7",
    "JobID": "7",
    "ArrayJobID": "7",
    "ArrayTaskID": "N/A",
    "State": "PENDING",
    "Partition": "gpu",
    "Feature": "(null)",
    "tres-per-node": "gres/gpu:a10g:4",
    "tres-per-job": "N/A",
    "tres-per-task": "N/A",
    "tres-per-socket": "N/A",
    "cpus-per-task": "1",
    "cpus-per-tres": "N/A",
    "mem-per-tres": "N/A",
    "MinCPUs": "1",
    "MinMemory": "2000M",
    "NumNodes": "1",
    "NumTasks": "1",
    "NumCPUs": "1",
    "NTPerNode": "0",
    "tres-alloc": "cpu=1,mem=2000M,node=1,billing=1",
    "OverSubscribe": "OK",
    "Reason": "Priority",
    "PriorityLong": "1",
    "TimeLimit": "UNLIMITED",
    "UserName": "alice",
    "Account": "(null)",
    "QOS": "(null)",
    "Reservation": "(null)",
    "Requeue": "1",
    "NodeList": "",
    "ReqNodes": "",
    "Comment": "(null)",
}


def printed(*rows: dict[str, str], separator: str = SEPARATOR) -> str:
    """What squeue prints for rows that differ from the plain one in these fields."""
    return "".join(
        "".join(f"{(PLAIN | row)[name]}{separator}" for name in FIELDS) + "\n" for row in rows
    )


def read(text: str, **memory_per_cpu: bool) -> tuple[Job, ...]:
    rows = slurm_queue.rows(text, SEPARATOR)
    unfolded = dict.fromkeys(slurm_queue.hostlists(rows), ("n1", "n2"))
    return slurm_queue.jobs(rows, unfolded, memory_per_cpu)


def one(**fields: str) -> Job:
    return read(printed({name.replace("_", "-"): text for name, text in fields.items()}))[0]


def sampled(version: str) -> dict[tuple[int, Shape, str], list[Job]]:
    jobs = read((SAMPLES / f"queue_{version}.txt").read_text())
    found: dict[tuple[int, Shape, str], list[Job]] = {}
    for job in jobs:
        found.setdefault((job.nodes, job.shape, job.unreadable), []).append(job)
    return found


# Options of sbatch that the samples hold -> what they ask for, per node.
ASKED = {
    "-N2 --gres=gpu:a10g:4": (2, Shape(4, "a10g", 1, 2_000)),
    "-N1 --gres=gpu:t4:1 -c4 --mem=10G": (1, Shape(1, "t4", 4, 10_240)),
    "-n4 -c2 --mem-per-cpu=3G --gres=gpu:2": (1, Shape(2, "", 8, 24_576)),
    "-N2 -n8 --ntasks-per-node=4 -c3 --gpus-per-node=a10g:4 --mem=20G": (
        2,
        Shape(4, "a10g", 12, 20_480),
    ),
    "--gpus=a10g:6 -N2": (2, Shape(3, "a10g", 1, 2_000)),
    "--gpus=a10g:10 -N4": (4, Shape(3, "a10g", 1, 2_000)),
    "-n8 --gpus-per-task=1 --mem-per-gpu=4G": (1, Shape(8, "", 8, 32_768)),
    "-n8 --gpus-per-task=t4:1 -N2": (2, Shape(4, "t4", 4, 8_000)),
    "-n4 --cpus-per-gpu=2 --gpus-per-task=1": (1, Shape(4, "", 8, 16_000)),
    "-N1 --exclusive --gres=gpu:t4:2": (1, Shape(2, "t4", 1, 2_000, is_exclusive=True)),
    "--mem=0": (1, Shape(0, "", 1, 0, is_exclusive=True)),
    "-N2 --ntasks-per-node=3 -c2": (2, Shape(0, "", 6, 12_000)),
    "-n8 --ntasks-per-node=4": (2, Shape(0, "", 4, 8_000)),
    "-n8 --mincpus=2": (1, Shape(0, "", 8, 16_000)),
    "--gpus=8 --gpus-per-node=4": (2, Shape(4, "", 1, 2_000)),
    "-N1 --gres=gpu:t4:1 --cpus-per-gpu=6 --mem-per-gpu=3000": (1, Shape(1, "t4", 6, 3_000)),
    "-N2 -n30 --mincpus=20": (2, Shape(0, "", 20, 40_000)),
    "-n6 -N2-4 --gpus-per-node=2": (2, Shape(2, "", 3, 6_000)),
    "-N8 -n1024": (8, Shape(0, "", 128, 256_000)),
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("options", ASKED)
def test_the_shape_per_node_is_read_from_every_way_to_ask(version, options):
    assert (*ASKED[options], "") in sampled(version), options


@pytest.mark.parametrize("version", VERSIONS)
def test_what_cannot_be_read_exactly_names_the_option(version):
    sentences = " ".join(problem for _, _, problem in sampled(version))

    assert "--gpus-per-socket" in sentences
    assert "several GRES on one node" in sentences
    assert "heterogeneous" in sentences


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sampled_comment_with_newline_and_bar_stays_in_its_job(version):
    jobs = [job for found in sampled(version).values() for job in found]

    assert any(job.comment == "a|b\nc" and not job.is_requeueable for job in jobs)


def test_memory_under_cpus_per_gpu_is_unreadable_until_slurm_was_asked():
    row = {
        "cpus-per-tres": "gres:gpu:4",
        "tres-per-node": "gres:gpu:2",
        "MinMemory": "1500M",
        "tres-alloc": "cpu=1,mem=1500M,node=1",
    }
    text = printed(row)

    assert slurm_queue.unclear_memory(slurm_queue.rows(text, SEPARATOR)) == ("7",)
    assert "--cpus-per-gpu" in read(text)[0].unreadable
    assert read(text, **{"7": True})[0].shape.memory_mib == 12_000
    assert read(text, **{"7": False})[0].shape.memory_mib == 1_500
    assert read(text, **{"7": False})[0].unreadable == ""


@pytest.mark.parametrize(
    ("tasks", "running", "reason", "count"),
    [
        ("0-99%3", 0, "Priority", 3),
        ("0-99%3", 2, "Priority", 1),
        ("0-99%3", 3, "JobArrayTaskLimit", 0),
        ("0-99%3", 2, "JobArrayTaskLimit", 0),
        ("5,9-30:3", 0, "Priority", 9),
        ("0-1%50", 0, "Priority", 2),
        ("0-1%0", 0, "Priority", 2),
    ],
)
def test_an_array_row_counts_the_tasks_that_may_start(tasks, running, reason, count):
    rest = {"ArrayTaskID": tasks, "Reason": reason}
    started = [
        {"JobID": str(20 + n), "ArrayTaskID": str(200 + n), "State": "RUNNING"}
        for n in range(running)
    ]

    jobs = read(printed(rest, *started))

    assert (jobs[0].job_id, jobs[0].count, jobs[0].array_job_id) == ("7", count, "7")
    assert [job.job_id for job in jobs[1:]] == [f"7_{200 + n}" for n in range(running)]


def test_a_requeued_task_uses_its_arrays_throttle():
    jobs = read(printed({"ArrayTaskID": "5-9%2"}, {"JobID": "8", "ArrayTaskID": "3"}))

    assert [(job.job_id, job.count) for job in jobs] == [("7", 1), ("7_3", 1)]


def test_a_cut_list_of_tasks_is_unreadable():
    assert "list of tasks" in one(ArrayTaskID="1,3,5,7...%5").unreadable


def test_a_reservation_and_a_foreign_gres_are_unreadable():
    assert "--reservation" in one(Reservation="maint").unreadable
    assert "gres/shard:2" in one(tres_per_node="gres/shard:2").unreadable


def test_a_running_job_holds_its_nodes():
    job = one(
        State="RUNNING",
        NodeList="i-0[1-2]",
        NumNodes="2",
        NumCPUs="16",
        tres_alloc="cpu=16,mem=40G,node=2",
        TimeLimit="1-02:03:04",
    )

    assert (job.nodes, job.node_names, job.unreadable) == (2, ("n1", "n2"), "")
    assert (job.shape.cpus, job.shape.memory_mib, job.shape.gpus) == (8, 20_480, 4)
    assert job.time_limit_s == 86_400 + 2 * 3_600 + 3 * 60 + 4


def test_a_pending_jobs_required_nodes_are_no_nodes_it_has():
    job = one(ReqNodes="i-01,i-02")

    assert (job.node_names, job.required_nodes) == ((), ("i-01", "i-02"))


def test_no_row_is_an_empty_queue():
    assert read("") == ()


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=60))
def test_no_comment_or_account_forges_a_row(text):
    spoilt = text.replace("~", "")
    jobs = read(printed({"Comment": spoilt, "Account": spoilt}, {"JobID": "8", "ArrayJobID": "8"}))

    assert [job.job_id for job in jobs] == ["7", "8"]


@given(st.text(max_size=400))
def test_any_text_for_squeue_gives_jobs_or_a_parse_error(text):
    with_separators = text.replace("0", SEPARATOR)
    try:
        read(with_separators)
    except ParseError:
        return


@given(st.fixed_dictionaries({}, optional={name: st.text(max_size=20) for name in FIELDS}))
def test_any_field_gives_a_job_or_a_parse_error(row):
    try:
        jobs = read(printed({name: text.replace("~", "") for name, text in row.items()}))
    except ParseError:
        return
    assert len(jobs) == 1


@given(st.text(alphabet="0123456789:-%,.KMGTN/A=gresu ", max_size=20), st.sampled_from(FIELDS))
def test_any_slurm_like_field_gives_a_job_or_a_parse_error(text, field):
    try:
        jobs = read(printed({field: text}))
    except ParseError:
        return
    assert len(jobs) == 1


# -- nodes ---------------------------------------------------------------------------------


def node(version: str, name: str) -> Node:
    found = slurm_text.nodes((SAMPLES / f"nodes_{version}.txt").read_text())
    return next(one for one in found if one.name == name)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sampled_node_is_read_with_what_is_used(version):
    found = node(version, "i-0123456789abcdef0")

    assert (found.cpus, found.memory_mib, found.gpus, found.gpu_type) == (48, 180_000, 4, "a10g")
    assert found.gpus_alloc > 0
    assert found.cpus_alloc > 0
    assert found.state.is_busy
    assert found.last_busy_at_s > 1_700_000_000


@pytest.mark.parametrize("version", VERSIONS)
def test_the_reason_of_a_sampled_node_is_what_was_given(version):
    text = (SAMPLES / f"nodes_{version}.txt").read_text()

    reasons = {found.reason for found in slurm_text.nodes(text)}

    assert {"tidegate: gate launch-42", "x|y = z (a, b)"} <= reasons


def test_a_reason_cannot_pretend_a_state():
    line = (
        "NodeName=i-01 CPUAlloc=0 CPUTot=4 RealMemory=1000 AllocMem=0 State=IDLE+DYNAMIC_NORM "
        "Reason=a State=DOWN RealMemory=7 [root@2026-11-21T10:03:28] Comment=Reason=no"
    )

    found = slurm_text.nodes(line)[0]

    assert (found.state.is_down, found.memory_mib) == (False, 1_000)
    assert found.reason == "a State=DOWN RealMemory=7"


def test_static_nodes_are_left_out_and_no_nodes_are_none():
    line = "NodeName=a CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State=IDLE"

    assert slurm_text.nodes(line) == ()
    assert slurm_text.nodes("No nodes in the system\n") == ()
    assert slurm_text.nodes("") == ()


@given(st.text(max_size=300))
def test_any_text_for_nodes_gives_nodes_or_a_parse_error(text):
    line = "NodeName=a CPUAlloc=0 CPUTot=4 RealMemory=1 AllocMem=0 State=IDLE+DYNAMIC_NORM "
    for whole in (text, "NodeName=" + text, line + text, text + line):
        try:
            slurm_text.nodes(whole)
        except ParseError:
            continue


# -- accounting limits ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ["assoc_mgr_22.05.txt", "assoc_mgr_24.11.txt"])
def test_sampled_gpu_caps_are_read_with_their_accounts(name):
    found = set(slurm_text.associations((SAMPLES / name).read_text()))

    assert found == {
        Association("account ml", "ml", max_gpus=2, accounts_below=("vision",)),
        Association("account typed", "typed", max_gpus=1, gpu_type="a10g"),
        Association("user bob of account vision", "vision", "bob", max_gpus_per_job=1),
        Association("qos pool", qos="pool", max_gpus=3),
        Association("qos each", qos="each", max_gpus_per_job=2, max_gpus_per_user=2),
    }


def test_without_slurmdbd_there_are_no_limits():
    text = "Current Association Manager state\n\nNo associations currently cached in Slurm.\n"

    assert slurm_text.associations(text) == ()


def test_accounts_that_are_their_own_parents_end_the_search():
    text = "".join(
        f"ClusterName=c Account={account} UserName= Partition= Priority=0 ID=1\n"
        f"    ParentAccount={parent}(1) Lft=1 DefAssoc=No\n    GrpTRES=gres/gpu=4(0)\n"
        for account, parent in (("a", "b"), ("b", "a"))
    )

    assert [found.accounts_below for found in slurm_text.associations(text)] == [("b",), ("a",)]


@given(st.text(max_size=300))
def test_any_text_for_limits_gives_limits(text):
    head = "ClusterName=c Account=a UserName= Partition= Priority=0 ID=1\n    GrpTRES=gres/gpu="
    for whole in (text, head + text):
        slurm_text.associations(whole)


# -- numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("10:00", 600),
        ("2:00:00", 7_200),
        ("1-02:03:04", 93_784),
        ("365-00:00:00", 31_536_000),
        ("0:00", 0),
    ],
)
def test_durations(text, seconds):
    assert slurm_text.duration_s(text) == seconds


@pytest.mark.parametrize(
    ("text", "mib"), [("2000M", 2_000), ("10G", 10_240), ("1500", 1_500), ("1.5T", 1_572_864)]
)
def test_memory(text, mib):
    assert slurm_text.memory_mib(text) == mib


def test_an_instant_is_utc():
    assert slurm_text.instant_s("2026-11-21T10:03:15") == 1_795_255_395


@given(st.text(max_size=40))
def test_any_text_gives_a_number_a_time_or_a_parse_error(text):
    for parse in (
        slurm_text.number,
        slurm_text.memory_mib,
        slurm_text.duration_s,
        slurm_text.instant_s,
    ):
        try:
            parse(text)
        except ParseError:
            continue
