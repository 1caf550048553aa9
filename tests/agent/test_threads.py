"""Orders that are carried out while another thread looks at Slurm."""

import sys
import threading
from dataclasses import replace

from tests.agent.fakes import NOW_S, FakeSlurm, order
from tidegate.agent.node_orders import Lasting
from tidegate.core.model.orders import OrderKind
from tidegate.core.model.slurm import Node, NodeState, Reading


def test_a_repetition_is_answered_although_its_results_are_forgotten_meanwhile(agent, slurm, clock):
    """Another order that came with it takes long."""
    slurm.put("n1", "IDLE")
    slurm.put("n2", "IDLE")
    told = order(OrderKind.DRAIN, "n1", order_id="told")
    (first,) = agent.on_orders([told])

    def meanwhile() -> None:
        clock.now += 601
        agent.tick()

    slurm.after_read = [meanwhile]
    results = agent.on_orders([told, order(OrderKind.DRAIN, "n2", order_id="new")])

    assert [one.name for one in results] == ["n1", "n2"]
    assert results[0] == first


def test_a_job_that_starts_and_is_signalled_while_slurm_is_read_gets_one_signal(agent, slurm):
    """The reading does not show that it runs."""
    slurm.queue("1")
    made = order(OrderKind.SIGNAL, "1", text="USR1")

    def meanwhile() -> None:
        slurm.queue("1", "RUNNING", node_names=("n1",))
        agent.on_orders([made])

    slurm.after_read = [meanwhile]
    agent.tick()
    agent.on_orders([replace(made, order_id="again")])

    assert slurm.did("signal") == [("USR1", "1")]


def test_drains_come_and_go_while_others_are_renewed():
    """By threads of orders, and the one that looks."""
    names = tuple(f"n{number}" for number in range(50))
    nodes = tuple(Node(name, NodeState.parse("IDLE"), 8, 1_000, 4, "t4") for name in names)
    lasting, is_over = Lasting(), threading.Event()
    drain = order(OrderKind.DRAIN, *names, text="tidegate: a warning")

    def orders() -> None:
        while not is_over.is_set():
            lasting.add((drain,), NOW_S)
            lasting.lift(replace(drain, kind=OrderKind.UNDRAIN))

    switches_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    other = threading.Thread(target=orders)
    other.start()
    try:
        for _ in range(500):
            reading = Reading("22.05", (), nodes)
            lasting.renew(reading, FakeSlurm(), read_at_s=NOW_S - 1, now_s=NOW_S)
    finally:
        is_over.set()
        other.join()
        sys.setswitchinterval(switches_s)
