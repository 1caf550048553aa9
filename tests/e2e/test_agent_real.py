"""The whole agent on a real slurmctld: wakes by its log, obeys orders, outlives its restart."""

import itertools
import logging
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

import pytest

from bench.slip_in import Race
from local.slurm.daemons import RealSlurm
from local.waiting import eventually
from tests.agent.fakes import FakeBus, NotingWaker
from tests.contracts.real_slurm import slurm_of_its_own
from tidegate.adapters.clock import SystemClock
from tidegate.agent.loop import Agent
from tidegate.agent.notes import Notes
from tidegate.agent.run import Service
from tidegate.core.explain.verdicts import Verdict, Verdicts
from tidegate.core.model.digest import Digest
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome, OrderResult
from tidegate.ports import ReceivedOrder

NUMBERS = itertools.count(1)


@dataclass(slots=True)
class PollingBus(FakeBus):
    """Waits a little for orders, as a long poll does, and knows when each digest came."""

    came_at_s: list[float] = field(default_factory=list)

    def put_digest(self, digest: Digest) -> None:
        self.came_at_s.append(time.monotonic())
        self.digests.append(digest)

    def receive_orders(self, *, urgent: bool, wait_s: int) -> tuple[ReceivedOrder, ...]:
        time.sleep(0.05)
        return FakeBus.receive_orders(self, urgent=urgent, wait_s=wait_s)


@dataclass(slots=True)
class Running:
    """The agent at work on one cluster."""

    slurm: RealSlurm
    bus: PollingBus
    service: Service

    def order(self, kind: OrderKind, *names: str, **fields: object) -> str:
        order_id = f"o{next(NUMBERS)}"
        made = Order(order_id, kind, names, time.time() + 600, **fields)  # type: ignore[arg-type]
        self.bus.orders.append(made)
        return order_id

    def results(self, order_id: str) -> dict[str, OrderResult]:
        """What came back in a digest."""

        def found() -> dict[str, OrderResult]:
            newest = self.bus.digests[-1] if self.bus.digests else None
            results = newest.results if newest else ()
            return {one.name: one for one in results if one.order_id == order_id}

        return eventually(f"results of {order_id}", found)

    def shows(self, job_id: str) -> bool:
        return any(job.job_id == job_id for job in self.bus.digests[-1].reading.jobs)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RealSlurm]:
    with slurm_of_its_own() as slurm:
        yield slurm


@pytest.fixture
def running(cluster: RealSlurm) -> Iterator[Running]:
    bus = PollingBus()
    agent = Agent(
        slurm=cluster.port,
        bus=bus,
        clock=SystemClock(),
        cluster="bench",
        head_instance_id="i-head",
        agent_started_at_s=time.time(),
    )
    with NotingWaker(cluster.log) as waker:
        service = Service(agent, bus, waker)
        thread = threading.Thread(target=service.run)
        thread.start()
        eventually("the first digest", lambda: bus.digests)
        yield Running(cluster, bus, service)
        service.stop()
        thread.join(60)
        assert not thread.is_alive(), "the agent stops when asked"
    cluster.clear()


def fresh_name() -> str:
    return f"i-{next(NUMBERS):017x}"


def test_a_submission_wakes_the_agent_and_is_published_at_once(running):
    """By slurmctld's log; the slow poll would come up to ten seconds later."""
    took_s: list[float] = []
    waker = running.service.waker
    waker.woken.clear()
    for _ in range(3):
        time.sleep(1.5)  # the agent is at rest
        began_s = time.monotonic()
        job_id = running.slurm.submit("--gres=gpu:t4:1")
        eventually(f"job {job_id} published", partial(running.shows, job_id), 7.0)
        came = running.bus.came_at_s[-1]
        took_s.append(came - began_s)

    print(f"sbatch begun to digest published: {[f'{one:.2f} s' for one in took_s]}")
    assert any(waker.woken), "every look was one of the slow poll"


def test_a_burst_of_submissions_makes_few_digests(running):
    time.sleep(1.5)
    before = len(running.bus.digests)
    began_s = time.monotonic()
    job_ids = [running.slurm.submit("--gres=gpu:t4:1") for _ in range(30)]
    eventually("all published", lambda: running.shows(job_ids[-1]), 5.0)

    made = len(running.bus.digests) - before
    print(f"30 submissions in {time.monotonic() - began_s:.2f} s: {made} digests")
    assert made <= time.monotonic() - began_s + 2


def test_a_killed_slurmctld_is_told_and_outlived(running, caplog):
    caplog.set_level(logging.INFO)
    running.slurm.submit("--gres=gpu:t4:1")
    running.slurm.kill_slurmctld()
    eventually("the silence is told", lambda: "does not answer" in caplog.text)
    assert len(running.bus.digests) >= 1

    running.slurm.start_slurmctld()
    began_s = time.monotonic()
    eventually("the return is told", lambda: "Slurm answers again." in caplog.text)
    print(f"slurmctld started to agent recovered: {time.monotonic() - began_s:.2f} s")
    job_id = running.slurm.submit("--gres=gpu:t4:1")
    eventually("the new job is published", lambda: running.shows(job_id))


def test_a_job_that_slips_in_before_a_release_lives_and_keeps_its_node(running):
    name, free = fresh_name(), fresh_name()
    running.slurm.join(name, free)
    job_id = running.slurm.submit("-w", name, "--gres=gpu:t4:1")
    eventually("the job runs", lambda: running.slurm.state(job_id) == "RUNNING")

    order_id = running.order(OrderKind.RELEASE, name, free)

    results = running.results(order_id)
    assert results[name].outcome is OrderOutcome.KEPT
    assert results[name].detail == f"Job {job_id} runs here."
    assert results[free].outcome is OrderOutcome.DONE
    assert running.slurm.state(job_id) == "RUNNING"
    assert "DRAIN" not in running.slurm.node_words(name)
    assert running.slurm.node_words(free) == frozenset()


def test_a_job_that_slips_into_a_release_is_never_lost_and_its_node_never_stranded(running):
    """At every moment of the order; `python -m bench.slip_in` does it 200 times."""
    race = Race(running.slurm)
    for number in range(8):
        race.run(number)
    print(f"outcomes of the race: {dict(race.outcomes)}")


def test_an_undrained_gang_starts_whole(running):
    gang = [fresh_name() for _ in range(3)]
    running.slurm.join(*gang, gpu_type="a10g", is_drained=True)
    wide = running.slurm.submit("-N3", "--gres=gpu:a10g:4", "--priority=1000")
    small = running.slurm.submit("--gres=gpu:a10g:1", "--priority=10")
    time.sleep(2)
    assert running.slurm.state(wide) == running.slurm.state(small) == "PENDING"
    began_s = time.monotonic()

    order_id = running.order(OrderKind.UNDRAIN, *gang)

    eventually("the gang runs", lambda: running.slurm.state(wide) == "RUNNING")
    print(f"undrain ordered to gang running: {time.monotonic() - began_s:.2f} s")
    results = running.results(order_id)
    assert {one.outcome for one in results.values()} == {OrderOutcome.DONE}
    assert running.slurm.state(small) == "PENDING"
    running.slurm.cancel(wide, small)


def test_a_requeued_job_runs_again_within_seconds(running):
    name = fresh_name()
    running.slurm.join(name)
    # The script outlives SIGTERM, so that the old run ends only after KillWait (2 s here).
    script = "trap '' TERM; sleep 300 & wait; sleep 300"
    job_id = running.slurm.submit("-w", name, "--gres=gpu:t4:1", script=script)
    eventually("the job runs", lambda: running.slurm.state(job_id) == "RUNNING")
    time.sleep(0.5)
    began_s = time.monotonic()

    running.order(OrderKind.REQUEUE, job_id, only_if=("RUNNING",))

    eventually("the old run ends", lambda: running.slurm.state(job_id) != "RUNNING")
    eventually("the job runs again", lambda: running.slurm.state(job_id) == "RUNNING")
    print(f"requeue ordered to running again: {time.monotonic() - began_s:.2f} s")


def test_a_joining_node_starts_the_waiting_job_at_once(running):
    job_id = running.slurm.submit("--gres=gpu:t4:4", "--exclusive")
    time.sleep(4)  # the passes that follow a submission are over
    began_s = time.monotonic()

    running.slurm.join(fresh_name())

    eventually("the job runs", lambda: running.slurm.state(job_id) == "RUNNING", 15.0)
    print(f"boot begun to job running: {time.monotonic() - began_s:.2f} s")


def test_the_jobs_of_a_dead_node_run_again_long_before_slurm_finds_it_dead(running):
    dead, other = fresh_name(), fresh_name()
    running.slurm.join(dead)
    script = "trap '' TERM; sleep 300 & wait; sleep 300"
    again = running.slurm.submit("--gres=gpu:t4:1", script=script)
    once = running.slurm.submit("--gres=gpu:t4:1", "--no-requeue")
    running.slurm.port.poke([dead])
    eventually("one runs", lambda: running.slurm.state(again) == "RUNNING")
    eventually("the other runs", lambda: running.slurm.state(once) == "RUNNING")
    running.slurm.join(other)
    running.slurm.run("sh", "-c", f"kill -9 $(cat /run/slurmd-{dead}.pid)")
    began_s = time.monotonic()

    order_id = running.order(OrderKind.DELETE, dead)

    assert running.results(order_id)[dead].outcome is OrderOutcome.DONE
    eventually("the job runs again", lambda: running.slurm.state(again) == "RUNNING")
    print(f"delete ordered to running elsewhere: {time.monotonic() - began_s:.2f} s")
    assert running.slurm.node_words(dead) == frozenset()
    assert running.slurm.state(once) == ""


def test_the_note_on_a_job_is_there_for_who_asks_slurm(cluster):
    job_id = cluster.submit("--gres=gpu:t4:1")
    verdicts = Verdicts(
        "bench", "p-1", 0.0, 1, 0.0, (Verdict(True, "nodes are booting for it"),), {job_id: 0}, {}
    )

    Notes(lambda: verdicts, cluster.port, SystemClock()).step()

    shown = cluster.run("scontrol", "show", "job", job_id)
    assert "AdminComment=tidegate: starts soon: nodes are booting for it" in shown
    cluster.clear()
