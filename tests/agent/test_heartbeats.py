"""Heartbeats are looked at, and nothing else: whatever a user writes into a comment."""

import os
import pwd
from dataclasses import replace
from pathlib import Path

import pytest

from tests.agent.fakes import NOW_S, agent_of
from tests.make import job
from tidegate.agent.heartbeats import Heartbeats
from tidegate.agent.loop import Agent
from tidegate.agent.shared_files import uid_of
from tidegate.core.interruption.heartbeat import Beat
from tidegate.core.interruption.progress import progress
from tidegate.core.model.gpu_use import GpuUse
from tidegate.core.model.job_files import Hang, Progress
from tidegate.core.model.slurm import Job

ADA, BOB = 4_001, 4_002
TOUCHED_S = 500.0


@pytest.fixture
def shared(tmp_path):
    """Ada's and Bob's folders on the shared file system, and what is beside it."""
    for name, uid in (("ada", ADA), ("bob", BOB)):
        folder = tmp_path / "shared" / name
        folder.mkdir(parents=True)
        beat(folder / "beat", uid)
    beat(tmp_path / "outside", ADA)
    return tmp_path / "shared"


def beat(path: Path, uid: int) -> None:
    path.touch()
    os.utime(path, (TOUCHED_S, TOUCHED_S))
    own(path, uid)


def own(path: Path, uid: int) -> None:
    """As far as this machine lets us: without root all files are ours, and so is Ada."""
    if os.geteuid() == 0:
        os.chown(path, uid, -1, follow_symlinks=False)


def asks(path: object, seconds: int = 60, **more: object) -> Job:
    comment = f"tidegate:ckpt=USR1@20 tidegate:heartbeat={path}@{seconds}"
    return job(7, on=["i-1"], comment=comment, **more)  # type: ignore[arg-type]


def looked(shared: Path, of: Job) -> Beat:
    ids = {"ada": ADA if os.geteuid() == 0 else os.geteuid()}
    return Heartbeats(shared, ids.get).look(of)


def test_a_heartbeat_is_when_its_file_was_last_touched(shared):
    assert looked(shared, asks(shared / "ada" / "beat")) == Beat(TOUCHED_S)


def test_one_that_is_not_there_yet_is_no_problem(shared):
    assert looked(shared, asks(shared / "ada" / "later")) == Beat()
    assert looked(shared, asks(shared / "ada" / "run" / "later")) == Beat()


def linked(shared: Path) -> Path:
    (shared / "ada" / "link").symlink_to(shared.parent / "outside")
    return shared / "ada" / "link"


def linked_folder(shared: Path) -> Path:
    (shared / "ada" / "way").symlink_to(shared / "bob")
    return shared / "ada" / "way" / "beat"


def fifo(shared: Path) -> Path:
    os.mkfifo(shared / "ada" / "pipe")
    own(shared / "ada" / "pipe", ADA)
    return shared / "ada" / "pipe"


@pytest.mark.parametrize(
    ("path_in", "said"),
    [
        (lambda shared: shared.parent / "outside", "is not below"),
        (lambda shared: shared / "ada" / ".." / ".." / "outside", "is not below"),
        (lambda shared: shared, "is not below"),
        (lambda shared: f"{shared}fish/beat", "is not below"),
        (linked, "is no regular file"),
        (linked_folder, "leads over a link"),
        (lambda shared: shared / "ada" / "beat" / "on", "leads over a link"),
        (fifo, "is no regular file"),
        (lambda shared: shared / "ada", "is no regular file"),
        (lambda shared: "beat", "names no file by its whole path"),
    ],
)
def test_what_is_no_file_of_the_shared_folder_is_refused_with_a_reason(shared, path_in, said):
    found = looked(shared, asks(path_in(shared)))

    assert found.touched_at_s is None
    assert said in found.problem


@pytest.mark.skipif(os.geteuid() != 0, reason="files of two users need root")
def test_a_file_of_another_user_is_not_believed(shared):
    assert "does not belong to ada" in looked(shared, asks(shared / "bob" / "beat")).problem


def test_a_user_whom_the_head_does_not_know_has_no_file():
    assert uid_of("nobody-has-this-name") is None
    assert uid_of(pwd.getpwuid(0).pw_name) == 0


def test_only_running_jobs_that_ask_are_looked_at(shared):
    heartbeats = Heartbeats(shared, lambda _: os.geteuid())
    asking = asks(shared / "ada" / "beat")
    waiting = replace(asking, job_id="8", state="PENDING")
    jobs = [asking, waiting, job(9, on=["i-2"])]

    first = heartbeats(jobs)
    heartbeats.step()

    assert first == {}
    assert list(heartbeats(jobs)) == ["7"]
    heartbeats([])
    heartbeats.step()
    assert heartbeats(jobs) == {}


# -- how far a job has come ------------------------------------------------------------------


def tells(path: object, **more: object) -> Job:
    return job(7, comment=f"tidegate:progress={path} tidegate:move", **more)  # type: ignore[arg-type]


def told(shared: Path, text: str, user: int = ADA) -> Progress:
    path = shared / "ada" / "progress"
    path.write_text(text)
    own(path, user)
    return read(shared, tells(path))


def read(shared: Path, of: Job) -> Progress:
    ids = {"ada": ADA if os.geteuid() == 0 else os.geteuid()}
    return Heartbeats(shared, ids.get).read(of)


@pytest.mark.parametrize(
    ("text", "part"),
    [("0.42", 0.42), ("42%\n", 0.42), (" 42.5 % ", 0.425), (".5", 0.5), ("0", 0.0), ("1\n", 1.0)],
)
def test_a_progress_file_says_which_part_of_the_work_is_saved(shared, text, part):
    found = told(shared, text)

    assert found.part == pytest.approx(part)
    assert not found.problem


@pytest.mark.parametrize(
    "text",
    ["", "half", "-0.1", "1.01", "101%", "nan", "inf", "0.4 0.5", "4e-1", "\u0664", "9" * 99],
)
def test_what_is_no_part_counts_as_nothing_saved_and_is_told_without_its_words(shared, text):
    found = told(shared, text)

    assert found.part == 0.0
    assert found.problem == "its progress file holds no number from 0 to 1, nor percent"


def test_bytes_that_are_no_text_say_nothing(shared):
    path = shared / "ada" / "progress"
    path.write_bytes(b"\xff\xfe0.5")
    own(path, ADA)

    assert read(shared, tells(path)).problem


def test_a_progress_file_that_is_not_there_yet_has_nothing_saved(shared):
    assert read(shared, tells(shared / "ada" / "later")) == Progress()


@pytest.mark.parametrize(
    ("path_in", "said"),
    [
        (lambda shared: shared.parent / "outside", "is not below"),
        (linked, "is no regular file"),
        (linked_folder, "leads over a link"),
        (fifo, "is no regular file"),
        (lambda shared: "progress", "names no progress file by its whole path"),
    ],
)
def test_a_progress_file_elsewhere_is_not_read_and_says_why(shared, path_in, said):
    found = read(shared, tells(path_in(shared)))

    assert found.part == 0.0
    assert said in found.problem


@pytest.mark.skipif(os.geteuid() != 0, reason="files of two users need root")
def test_a_progress_file_of_another_user_is_not_believed(shared):
    assert "does not belong to ada" in told(shared, "0.9", user=BOB).problem


def test_whatever_was_looked_at_leaves_no_file_open(shared):
    (shared / "ada" / "run").mkdir()
    told(shared, "0.5")
    before = len(list(Path("/dev/fd").iterdir()))

    for path in ("ada/progress", "ada/run/later", "ada/run/none/later", "ada/beat/on", "bob/beat"):
        looked(shared, asks(shared / path))
        read(shared, tells(shared / path))

    assert len(list(Path("/dev/fd").iterdir())) == before


def test_progress_is_read_of_jobs_that_wait_to_go_on_too(shared):
    heartbeats = Heartbeats(shared, lambda _: os.geteuid())
    path = shared / "ada" / "progress"
    path.write_text("0.25")
    waiting = tells(path)
    asked = [waiting, replace(waiting, job_id="8", comment="")]

    first = heartbeats.progress(asked)
    heartbeats.step()

    assert first == {}
    assert heartbeats.progress(asked) == {"7": Progress(0.25)}


def test_how_far_a_job_has_come_travels_with_the_next_digest_and_makes_none(slurm, bus, clock):
    part = [0.1]
    agent = agent_of(slurm, bus, clock, progress=lambda jobs: {"1": progress(f"{part[0]}")})
    runs(slurm)
    agent.tick()
    part[0] = 0.2
    for _ in range(2):
        clock.now += 1
        agent.tick()
    clock.now += 60
    agent.tick()

    found = [one.progress for digest in bus.digests for one in digest.reading.jobs]
    assert found == [Progress(0.1), Progress(0.2)]


# -- what the agent makes of it --------------------------------------------------------------


@pytest.fixture
def watched(slurm, bus, clock):
    """An agent that sees job 1, which asks for 60 s; what it sees may be changed."""
    seen = {"1": Beat(NOW_S)}
    agent: Agent = agent_of(slurm, bus, clock, beats=lambda jobs: seen)
    runs(slurm)
    return agent, seen


def runs(
    slurm, state: str = "RUNNING", started_at_s: float = NOW_S - 100, first: str = "", **more
) -> None:
    asked = f"tidegate:heartbeat=/shared/beat@60{first}"
    told = {"comment": asked, "node_names": ("n1",), "started_at_s": started_at_s} | more
    slurm.queue("1", state, **told)


def hangs(bus) -> list[Hang | None]:
    return [one.hang for digest in bus.digests for one in digest.reading.jobs]


def test_a_job_hangs_when_its_heartbeat_is_older_than_it_said(watched, bus, clock):
    agent, _ = watched
    for seconds in (0, 59, 2, 1, 1):
        clock.now += seconds
        agent.tick()

    # One digest more when it hangs, and not one each second from then on.
    assert hangs(bus) == [None, Hang("/shared/beat", NOW_S)]


def test_what_an_earlier_run_has_touched_says_nothing(watched, slurm, bus, clock):
    agent, _ = watched
    runs(slurm, started_at_s=NOW_S + 1)
    clock.now += 1_000
    agent.tick()

    assert hangs(bus) == [None]


def test_a_job_that_was_suspended_has_its_time_once_more(watched, slurm, bus, clock):
    agent, _ = watched
    runs(slurm, "SUSPENDED")
    clock.now += 1_000
    agent.tick()
    runs(slurm)
    clock.now += 30
    agent.tick()
    assert hangs(bus)[-1] is None

    clock.now += 40
    agent.tick()

    assert hangs(bus)[-1] == Hang("/shared/beat", NOW_S)


def test_a_refusal_is_told(watched, bus):
    agent, seen = watched
    seen["1"] = Beat(problem="/shared/beat is no regular file")
    agent.tick()

    assert hangs(bus) == [Hang("/shared/beat", problem="/shared/beat is no regular file")]


def hung_after(slurm, bus, clock, beat, uses, *, first: str, seconds: float) -> Hang | None:
    """A job whose first run has a GPU on one node, so many seconds after its start."""
    agent = agent_of(slurm, bus, clock, beats=lambda jobs: {"1": beat}, gpu_uses=lambda jobs: uses)
    runs(slurm, started_at_s=NOW_S, first=first)
    clock.now += seconds
    agent.tick()
    return hangs(bus)[-1]


@pytest.mark.parametrize(
    ("first", "seconds", "since_s"),
    [("/900", 901, NOW_S), ("/900", 899, None), ("", 100_000, None)],
)
def test_a_first_run_that_never_begins_hangs_after_as_long_as_its_comment_says(
    slurm, bus, clock, first, seconds, since_s
):
    found = hung_after(slurm, bus, clock, Beat(), {}, first=first, seconds=seconds)

    assert (found and found.since_s) == since_s


def test_a_file_of_an_earlier_job_is_no_first_touch(slurm, bus, clock):
    old = Beat(NOW_S - 5_000)

    found = hung_after(slurm, bus, clock, old, {}, first="/900", seconds=901)

    assert found == Hang("/shared/beat", NOW_S)


def test_a_run_that_has_begun_has_the_seconds_of_each_touch(slurm, bus, clock):
    begun = Beat(NOW_S + 880)

    assert hung_after(slurm, bus, clock, begun, {}, first="/900", seconds=930) is None


IDLES, WORKS = {"1": GpuUse(NOW_S)}, {"1": GpuUse(NOW_S, ((40, NOW_S + 2_000),))}


@pytest.mark.parametrize(
    ("uses", "beat", "seconds", "is_told"),
    [
        (IDLES, Beat(), 2_401, True),
        (IDLES, Beat(NOW_S - 5_000), 2_401, True),
        (IDLES, Beat(), 2_399, False),
        (WORKS, Beat(), 2_500, False),
        ({}, Beat(), 100_000, False),
        (IDLES, Beat(NOW_S + 2_390), 2_401, False),
    ],
)
def test_of_a_first_run_that_says_nothing_while_its_gpus_idle_the_owner_hears(
    slurm, bus, clock, uses, beat, seconds, is_told
):
    """It may load for long: so it is told, and not requeued, and once."""
    found = hung_after(slurm, bus, clock, beat, uses, first="", seconds=seconds)

    assert (found is not None) == is_told
    if found:
        assert found.since_s is None
        assert "its GPUs have done nothing for half an hour" in found.problem
        assert "/shared/beat@60/3600" in found.problem
