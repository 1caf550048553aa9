"""squeue's own output, both versions, read as jobs."""

from pathlib import Path

import pytest

from tidegate.adapters import slurm_queue
from tidegate.adapters.slurm_queue import FIELDS
from tidegate.adapters.slurm_shape import Gpus, gpus
from tidegate.core.model.slurm import Job, Shape, Spread

SAMPLES = Path(__file__).parent / "samples"
VERSIONS = ("22.05", "24.11")
# queue_<version>.txt was taken with this separator, from jobs submitted alike; that of 22.05
# with FIELDS but NOT_SAMPLED, that of 24.11 with JOB_ARRAY_ID before them and without these.
SEPARATOR = "~tg7f3a~"
NOT_IN_24_11 = ("Licenses", "MinTime", "StartTime", "EligibleTime", "Deadline", "HetJobID")
NOT_SAMPLED = ("RestartCnt", "BatchFlag", "Dependency")
# What each version had as first job id of the samples' second list of submissions.
PLAIN = {
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
    "Dependency": "(null)",
    "PriorityLong": "1",
    "TimeLimit": "UNLIMITED",
    "UserName": "alice",
    "Account": "(null)",
    "QOS": "(null)",
    "Reservation": "(null)",
    "Requeue": "1",
    "NodeList": "",
    "ReqNodes": "",
    "Licenses": "(null)",
    "MinTime": "0:00",
    "StartTime": "N/A",
    "EligibleTime": "2026-11-21T10:00:00",
    "Deadline": "N/A",
    "HetJobID": "N/A",
    "Comment": "(null)",
    "RestartCnt": "0",
    "BatchFlag": "1",
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


def with_all_fields(text: str, version: str) -> str:
    """A sample with plain values where it has no field."""
    names = [name for name in FIELDS if name not in NOT_SAMPLED]
    if version == "24.11":
        names = ["JobArrayID", *(name for name in names if name not in NOT_IN_24_11)]
    pieces = text.split(SEPARATOR)[:-1]
    rows = [
        dict(zip(names, pieces[start : start + len(names)], strict=True))
        for start in range(0, len(pieces), len(names))
    ]
    for row in rows:
        leader, plus, _ = row.pop("JobArrayID", "").strip().partition("+")
        row |= {"HetJobID": leader} if plus else {}
    return printed(*rows)


def sampled(version: str) -> dict[tuple[int, Shape, str], list[Job]]:
    text = (SAMPLES / f"queue_{version}.txt").read_text()
    jobs = read(with_all_fields(text, version))
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
    assert "several GRES on one node" in sentences or version == "22.05"


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
    rest, requeued = {"ArrayTaskID": "5-9%2"}, {"JobID": "8", "ArrayTaskID": "3"}
    another = {"JobID": "9", "ArrayTaskID": "4"}
    running = [
        another | {"State": "RUNNING"},
        {"JobID": "10", "ArrayTaskID": "2"} | {"State": "RUNNING"},
    ]

    assert counts(rest, requeued) == {"7": 1, "7_3": 1}
    assert counts(rest, requeued, another) == {"7": 0, "7_3": 1, "7_4": 1}
    assert counts(rest, requeued, running[0]) == {"7": 0, "7_3": 1, "7_4": 1}
    assert counts(rest, requeued, *running) == {"7": 0, "7_3": 0, "7_4": 1, "7_2": 1}


def counts(*rows: dict[str, str]) -> dict[str, int]:
    return {job.job_id: job.count for job in read(printed(*rows))}


def test_a_cut_list_of_tasks_is_unreadable():
    assert "list of tasks" in one(ArrayTaskID="1,3,5,7...%5").unreadable


def test_a_foreign_gres_is_unreadable():
    assert "gres/nic:50" in one(tres_per_node="gres/nic:50").unreadable


@pytest.mark.parametrize("name", ["shard", "mps"])
@pytest.mark.parametrize("form", ["gres:{}:3", "gres/{}:3", "gres/{}=3"])
def test_shards_and_mps_are_parts_of_one_gpu(form, name):
    shape = one(tres_per_node=form.format(name)).shape

    assert (shape.gres, shape.gpus, shape.gpu_type) == (name, 3, "")


def test_a_gpu_and_shards_on_one_node_are_unreadable():
    """Slurm has no GPU of which it could give both."""
    assert "several GRES" in one(tres_per_node="gres/gpu:1,gres/shard:1").unreadable


def test_a_job_whose_requeue_slurm_expedites_waits_as_others_do():
    job = one(State="EXPEDITING", RestartCnt="1")

    assert job.is_pending
    assert job.is_expediting
    assert (job.shape.gpus, job.started_at_s) == (4, None)
    assert job.begins_at_s is not None


def test_who_may_be_requeued():
    assert one().is_requeueable
    assert not one(Requeue="0").is_requeueable
    assert not one(Requeue="1", BatchFlag="0").is_requeueable


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


SPREADS = {
    "--gpus=10": [(1, 10), (2, 5), (3, 4)],
    "--gpus=a10g:6": [(1, 6), (2, 3)],
    "-N 2-4 --gpus=10": [(2, 5), (3, 4)],
    "-n 16 --gpus-per-task=1": [(1, 16), (2, 8), (3, 6), (4, 4)],
    "-N 2-4 --gres=gpu:a10g:1": [(2, 1)],
}


@pytest.mark.parametrize("options", SPREADS)
def test_a_request_for_all_nodes_together_may_spread_over_more_of_them(options):
    jobs = [job for found in sampled("22.05").values() for job in found]

    assert SPREADS[options] in [
        [(one.nodes, one.shape.gpus) for one in (Spread(job.nodes, job.shape), *job.spreads)]
        for job in jobs
    ]


def test_neuron_devices_are_a_gres_of_their_own():
    jobs = [job for found in sampled("22.05").values() for job in found]

    asked = {(job.nodes, job.shape) for job in jobs if job.shape.gres == "neuron"}
    assert asked == {
        (1, Shape(2, "", 1, 2_000, gres="neuron")),
        (2, Shape(16, "trainium", 1, 2_000, gres="neuron")),
    }


def test_times_and_licences_of_the_sample_are_read():
    """`now` was 16:49:29 UTC: a begin time and a deadline two and three hours ahead."""
    jobs = [job for found in sampled("22.05").values() for job in found]

    [begins] = [job for job in jobs if job.reason == "BeginTime"]
    [deadline] = [job for job in jobs if job.deadline_s]
    [running] = [job for job in jobs if job.is_running]
    assert begins.begins_at_s
    assert deadline.deadline_s
    assert deadline.deadline_s - begins.begins_at_s == 3_600.0
    assert [job.time_min_s for job in jobs if job.time_min_s] == [1_800.0]
    assert running.begins_at_s is None
    assert running.started_at_s
    assert running.started_at_s < begins.begins_at_s
    assert running.licences == (("matlab", 2),)
    assert all(job.started_at_s is None for job in jobs if job.is_pending)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_components_of_a_heterogeneous_job_name_its_leader(version):
    jobs = [job for found in sampled(version).values() for job in found if job.het_job_id]

    assert len(jobs) == 2
    assert {job.het_job_id for job in jobs} == {min(job.job_id for job in jobs)}
    assert [job.unreadable for job in jobs] == ["", ""]


@pytest.mark.parametrize(
    ("text", "licences"),
    [
        ("matlab:2,abaqus", (("matlab", 2), ("abaqus", 1))),
        ("(null)", ()),
        ("matlab:2|abaqus:1", ()),
        ("matlab:x", ()),
    ],
)
def test_licences_are_asked_by_name_and_number(text, licences):
    assert one(Licenses=text).licences == licences


def test_the_guess_of_the_backfill_scheduler_is_no_begin_time():
    job = one(EligibleTime="2026-11-21T10:00:00", StartTime="2027-11-21T10:00:00")

    assert (job.begins_at_s, job.started_at_s) == (1_795_255_200, None)


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("None", "Dependency"),
        ("Priority", "Dependency"),
        ("ReqNodeNotAvail, May be reserved for other job", "Dependency"),
        ("InvalidAccount", "Dependency"),
        ("DependencyNeverSatisfied", "DependencyNeverSatisfied"),
        ("JobHeldUser", "JobHeldUser"),
    ],
)
@pytest.mark.parametrize("on", ["afterok:1(unfulfilled)", "singleton(unfulfilled)"])
def test_a_job_that_depends_on_another_says_so_before_slurm_has_looked_at_it(
    reason: str, expected: str, on: str
) -> None:
    assert one(Reason=reason, Dependency=on).reason == expected
    assert one(Reason=reason, Dependency="(null)").reason == ("" if reason == "None" else reason)


def test_a_job_in_a_reservation_says_so():
    assert one(Reservation="maint").reservation == "maint"


@pytest.mark.parametrize("text", ["gres:gpu:a100_1g.10gb:3", "gres/gpu:a100_1g.10gb:3"])
def test_instances_of_a_partitioned_gpu_are_asked_for_by_their_type(text):
    assert gpus(text) == Gpus(3, "a100_1g.10gb")


def test_no_row_is_an_empty_queue():
    assert read("") == ()
