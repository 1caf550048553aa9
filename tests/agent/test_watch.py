"""The waker notices a log that grows, rotates, vanishes and comes back."""

import threading
import time

import pytest

from tidegate.agent.watch import Waker

PATIENCE_S = 60


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "slurm" / "slurmctld.log"
    path.parent.mkdir()
    path.write_text("")
    return path


@pytest.fixture
def waker(log):
    with Waker(log) as made:
        yield made


def grow(log, text="more\n"):
    with log.open("a") as file:
        file.write(text)


def test_nothing_happens_until_the_time_is_out(waker):
    began_s = time.monotonic()

    assert not waker.wait(0.05)
    assert time.monotonic() - began_s >= 0.05


def test_a_growing_log_wakes(waker, log):
    grow(log)

    assert waker.wait(PATIENCE_S)
    assert not waker.wait(0)


def test_other_files_of_the_folder_do_not_wake(waker, log):
    waker.clear()
    other = log.with_name("slurmd.log")
    other.write_text("")
    waker.clear()
    grow(other)

    assert not waker.wait(0)


def test_a_rotated_log_wakes_on(waker, log):
    log.rename(log.with_suffix(".log.1"))
    log.write_text("")
    assert waker.wait(PATIENCE_S)

    grow(log)

    assert waker.wait(PATIENCE_S)


def test_a_truncated_log_wakes_on(waker, log):
    log.write_text("")
    waker.clear()
    grow(log)

    assert waker.wait(PATIENCE_S)


def test_a_log_and_folder_that_come_later_are_found(tmp_path):
    log = tmp_path / "later" / "slurmctld.log"
    with Waker(log) as waker:
        assert not waker.wait(0)
        log.parent.mkdir()
        assert not waker.wait(0)
        log.write_text("first\n")

        assert waker.wait(PATIENCE_S)


def test_a_folder_that_was_replaced_is_watched_anew(waker, log):
    log.unlink()
    log.parent.rmdir()
    waker.wait(0)
    log.parent.mkdir()
    waker.wait(0)
    log.write_text("first\n")

    assert waker.wait(PATIENCE_S)


def test_another_thread_wakes_at_once(waker):
    threading.Timer(0.05, waker.wake).start()
    began_s = time.monotonic()

    assert waker.wait(PATIENCE_S)
    assert time.monotonic() - began_s < PATIENCE_S / 2
