"""Jobs whose GPUs idle: told, then ended by the cluster file's word, and never by a guess."""

from dataclasses import replace

import pytest

from tests.core.reading import orders
from tests.make import NOW_S, instance, job, node, offering, record, snapshot
from tidegate.core.interruption.gpu_use import LOADING_S, GpuUseSample, seen, use_now
from tidegate.core.model.gpu_use import GpuUse, IdleAction, IdleGpus, IdleNotice, IdleRule
from tidegate.core.model.orders import Order, OrderKind, OrderOutcome, OrderResult
from tidegate.core.model.plan import Plan, Watch
from tidegate.core.model.slurm import Job
from tidegate.core.model.stuck import Stuck
from tidegate.core.passes.faults import RETRIES_MAX
from tidegate.core.planner import plan

RULE = IdleRule(IdleAction.CANCEL, after_s=3600.0, use_percent=5, warning_s=900.0)
# It computed for an hour, and has done nothing for two.
IDLE = GpuUse(NOW_S - 10_000, ((60, NOW_S - 7_200),))
KINDS = (OrderKind.TELL, OrderKind.CANCEL, OrderKind.REQUEUE, OrderKind.HOLD, OrderKind.COMMENT)


def idle(number: int = 9, **more: object) -> Job:
    asked: dict[str, object] = {"gpu_use": IDLE, "started_at_s": NOW_S - 11_000} | more
    return job(number, on=[f"i-{number}"], **asked)  # type: ignore[arg-type]


def planned(
    *jobs: Job,
    rule: IdleRule | None = RULE,
    before: tuple[Stuck, ...] = (),
    results: tuple[OrderResult, ...] = (),
    digest_age_s: float = 0.0,
    **policy: object,
) -> Plan:
    names = sorted({name for each in jobs for name in each.node_names})
    seen_now = snapshot(
        jobs,
        [node(name, state="MIXED+DYNAMIC_NORM", gpus_alloc=1) for name in names],
        instances=[instance(name) for name in names],
        records=[record(name, offering(), pool="t4") for name in names],
    )
    assert seen_now.digest
    idle_gpus = IdleGpus(rule, **policy) if rule else None  # type: ignore[arg-type]
    return plan(
        replace(
            seen_now,
            cluster=replace(seen_now.cluster, idle_gpus=idle_gpus),
            digest=replace(seen_now.digest, results=results, written_at_s=NOW_S - digest_age_s),
            digest_age_s=digest_age_s,
            stuck=before,
        )
    )


def noted(made: Plan) -> list[IdleNotice]:
    return [each.stuck.idle for each in made.actions if isinstance(each, Watch) and each.stuck.idle]


def sent(made: Plan) -> list[tuple[OrderKind, str]]:
    return [(kind, order.names[0]) for kind in KINDS for order in orders(made, kind)]


def one(made: Plan, kind: OrderKind) -> Order:
    (order,) = orders(made, kind)
    return order


def was_told(number: int = 9, ago_s: float = 901.0, **more: object) -> Stuck:
    asked: dict[str, object] = {"told_at_s": NOW_S - ago_s} | more
    notice = IdleNotice(0, RULE.action, NOW_S - ago_s - 5)
    return Stuck(str(number), "asked", 0.0, idle=replace(notice, **asked))  # type: ignore[arg-type]


def test_the_owner_is_told_first_with_what_will_happen_and_how_to_keep_it() -> None:
    made = planned(idle())

    assert sent(made) == [(OrderKind.TELL, "9")]
    order = one(made, OrderKind.TELL)
    assert (order.only_if, order.on_nodes, order.restarts) == (("RUNNING",), ("i-9",), 0)
    assert "less than 5 % for 2.0 h" in order.text
    assert "cancelled in 15 min" in order.text
    assert "comment=tidegate:idle-ok" in order.text
    assert len(order.text) <= 255
    assert noted(made) == [IdleNotice(0, IdleAction.CANCEL, NOW_S)]


def test_the_warning_counts_from_when_slurm_had_it() -> None:
    (asked,) = noted(planned(idle()))
    before = Stuck("9", "asked", 0.0, idle=asked)
    done = OrderResult("o", OrderKind.TELL, "9", OrderOutcome.DONE)

    assert not sent(planned(idle(), before=(before,)))
    for outcome in (OrderOutcome.KEPT, OrderOutcome.EXPIRED, OrderOutcome.FAILED):
        lost = (replace(done, outcome=outcome),)
        assert not noted(planned(idle(), before=(before,), results=lost))
    late = Stuck("9", "asked", 0.0, idle=replace(asked, asked_at_s=NOW_S - 61))
    assert sent(planned(idle(), before=(late,))) == [(OrderKind.TELL, "9")]
    assert noted(planned(idle(), before=(late,), results=(done,)))[0].told_at_s == NOW_S


def test_it_ends_when_nothing_has_changed_and_is_asked_again_when_the_order_is_lost() -> None:
    made = planned(idle(), before=(was_told(),))

    assert sent(made) == [(OrderKind.CANCEL, "9")]
    assert one(made, OrderKind.CANCEL).restarts == 0
    assert noted(made)[0].ended_at_s == NOW_S
    again = planned(idle(), before=(was_told(ended_at_s=NOW_S - 30),))
    assert not sent(again)
    again = planned(idle(), before=(was_told(ended_at_s=NOW_S - 61),))
    assert sent(again) == [(OrderKind.CANCEL, "9")]
    assert noted(again)[0].ended_at_s == NOW_S


def test_a_job_whose_order_was_lost_ends_within_the_hour_that_it_ends_in() -> None:
    """The hour in which no other ends begins with the last order, which may come late."""
    jobs = idle(10), idle(11)
    lost = was_told(10, ago_s=5_000.0, ended_at_s=NOW_S - 3_700)
    ended = was_told(11, ago_s=5_000.0, ended_at_s=NOW_S - 100)

    assert sent(planned(*jobs, before=(lost, ended))) == [(OrderKind.CANCEL, "11")]
    made = planned(*jobs, before=(lost, was_told(11)))
    assert sent(made) == [(OrderKind.CANCEL, "10"), (OrderKind.COMMENT, "11")]
    assert {each.ended_at_s for each in noted(made)} == {NOW_S, 0.0}


@pytest.mark.parametrize(
    "before",
    [
        was_told(ago_s=600.0),
        was_told(restarts=1),
        was_told(action=IdleAction.TELL),
        # It worked since it was told, and idles anew.
        was_told(ago_s=8_000.0),
        was_told(told_at_s=0.0),
    ],
    ids=["early", "another run", "of another rule", "before it worked", "never told"],
)
def test_none_ends_without_a_warning_of_this_very_idleness(before: Stuck) -> None:
    kinds = [kind for kind, _ in sent(planned(idle(), before=(before,)))]

    assert OrderKind.CANCEL not in kinds


@pytest.mark.parametrize(
    "of",
    [
        idle(gpu_use=GpuUse(NOW_S - 10_000, ((5, NOW_S - 3_000),))),
        idle(gpu_use=GpuUse(NOW_S - 3_000)),
        idle(gpu_use=None),
        idle(gpu_use=GpuUse(NOW_S - 9_000), started_at_s=NOW_S - 3600 - LOADING_S + 100),
        idle(gpu_use=GpuUse(NOW_S - 3600 - LOADING_S + 100), started_at_s=None),
        replace(idle(), state="SUSPENDED"),
        idle(comment="sweep tidegate:idle-ok"),
        idle(account="teaching"),
        idle(qos="viz"),
        replace(idle(), partitions=("desk",)),
    ],
    ids=[
        *("used", "seen too briefly", "unknown", "loading", "no start", "suspended"),
        *("its comment", "its account", "its QOS", "its partition"),
    ],
)
def test_who_is_left_alone(of: Job) -> None:
    made = planned(
        of,
        before=(was_told(),),
        exempt_accounts=("teaching",),
        exempt_qos=("viz",),
        exempt_partitions=("desk",),
    )

    assert not sent(made)
    assert not noted(made)


def test_what_nobody_has_seen_since_the_digest_is_no_idleness() -> None:
    of = idle(gpu_use=GpuUse(NOW_S - 3_700))

    assert sent(planned(of))
    assert not sent(planned(of, digest_age_s=200.0))


def test_without_a_policy_nobody_is_told() -> None:
    assert not sent(planned(idle(), rule=None, before=(was_told(),)))


def test_a_partition_has_its_own_rule() -> None:
    own = {"gpu": replace(RULE, after_s=8_000.0)}

    assert not sent(planned(idle(), partitions=own))


def test_tell_only_ends_nobody() -> None:
    rule = replace(RULE, action=IdleAction.TELL)

    made = planned(idle(), rule=rule, before=(was_told(action=IdleAction.TELL),))

    assert not sent(made)
    assert "cancelled" not in one(planned(idle(), rule=rule), OrderKind.TELL).text


def test_a_requeued_job_is_held_when_it_idles_again_and_again() -> None:
    rule = replace(RULE, action=IdleAction.REQUEUE)
    before = was_told(action=IdleAction.REQUEUE)
    short = idle(gpu_use=GpuUse(NOW_S - 10_500))

    first = planned(short, rule=rule, before=(before,))
    last = planned(short, rule=rule, before=(replace(before, faults=RETRIES_MAX),))

    assert sent(first) == [(OrderKind.REQUEUE, "9")]
    assert sent(last) == [(OrderKind.HOLD, "9")]
    assert "scontrol release 9" in one(last, OrderKind.HOLD).text


def test_hours_of_work_before_it_idles_do_not_begin_the_count_anew() -> None:
    """It would go round without end, and each time the hours were paid for."""
    rule = replace(RULE, action=IdleAction.REQUEUE)
    long = idle(started_at_s=NOW_S - 90_000, gpu_use=GpuUse(NOW_S - 10_500))
    before = replace(was_told(action=IdleAction.REQUEUE), faults=RETRIES_MAX)

    assert sent(planned(long, rule=rule, before=(before,))) == [(OrderKind.HOLD, "9")]


def test_one_that_may_not_be_requeued_is_told_so_and_goes_on() -> None:
    rule = replace(RULE, action=IdleAction.REQUEUE)
    of = idle(is_requeueable=False)

    assert "--no-requeue" in one(planned(of, rule=rule), OrderKind.TELL).text
    assert not sent(planned(of, rule=rule, before=(was_told(action=IdleAction.REQUEUE),)))


def test_a_sensor_that_lies_about_all_ends_one_job_of_five_in_an_hour() -> None:
    jobs = [idle(number) for number in range(10, 22)]
    before = tuple(was_told(number) for number in range(10, 22))

    made = planned(*jobs, before=before)

    assert [name for _, name in sent(made)][:2] == ["10", "11"]
    assert len(orders(made, OrderKind.CANCEL)) == 2
    spared = orders(made, OrderKind.COMMENT)
    assert len(spared) == 10
    assert "as many jobs as may be" in spared[0].text
    # They have gone from the queue, and count.
    gone = (was_told(10, ended_at_s=NOW_S - 3_000), was_told(11, ended_at_s=NOW_S - 3_000))
    spared_before = tuple(was_told(number, is_spared=True) for number in range(12, 22))
    assert not sent(planned(*jobs[2:], before=(*gone, *spared_before)))
    for ended_s, ends in ((3_659, 0), (3_661, 2)):  # an order may be carried out a minute late
        long_gone = tuple(was_told(number, ended_at_s=NOW_S - ended_s) for number in (10, 11))
        much_later = planned(*jobs[2:], before=(*long_gone, *before[2:]))
        assert len(orders(much_later, OrderKind.CANCEL)) == ends


def test_a_requeue_counts_for_the_hour_also_when_its_job_runs_again() -> None:
    ended = was_told(10, restarts=0, ended_at_s=NOW_S - 3_000)

    made = planned(idle(10, restarts=1), idle(11), before=(ended, was_told(11)))

    assert sent(made) == [(OrderKind.TELL, "10"), (OrderKind.COMMENT, "11")]
    assert {each.ended_at_s for each in noted(made)} == {NOW_S - 3_000, 0.0}


def test_components_of_a_heterogeneous_job_idle_all_or_not_at_all() -> None:
    first = idle(9, het_job_id="9")
    busy = idle(10, het_job_id="9", gpu_use=GpuUse(NOW_S - 10_000, ((50, NOW_S - 60),)))
    unknown = replace(busy, gpu_use=None)
    quiet = replace(busy, gpu_use=IDLE)

    assert not sent(planned(first, busy))
    assert not sent(planned(first, unknown))
    assert sent(planned(first, quiet)) == [(OrderKind.TELL, "9")]


def test_what_nodes_say_is_known_when_all_of_them_say_it() -> None:
    of = replace(idle(), node_names=("i-1", "i-2"))
    fresh = GpuUseSample(NOW_S - 60, (("9", 3), ("8", 90)))
    busy = GpuUseSample(NOW_S - 60, (("9", 2), ("9", 40)))

    assert use_now(of, {"i-1": fresh, "i-2": busy}, NOW_S) == 40
    assert use_now(of, {"i-1": fresh}, NOW_S) is None
    for bad in (
        GpuUseSample(NOW_S - 181, busy.uses),
        GpuUseSample(NOW_S + 181, busy.uses),
        GpuUseSample(NOW_S, (("8", 1),)),
        GpuUseSample(NOW_S, (("9", 1), ("9", None))),
    ):
        assert use_now(of, {"i-1": fresh, "i-2": bad}, NOW_S) is None
    task = replace(of, job_id="9_1", raw_id="12")
    assert use_now(task, {"i-1": fresh, "i-2": busy}, NOW_S) is None
    assert (
        use_now(task, dict.fromkeys(("i-1", "i-2"), GpuUseSample(NOW_S, (("12", 7),))), NOW_S) == 7
    )


def test_a_gpu_of_which_nobody_tells_may_be_the_one_that_computes() -> None:
    one_node = job(9, gpus=2, on=["i-1"])
    spread = job(9, gpus=2, nodes=2, on=["i-1", "i-2"])  # --gpus=3
    one, two = (GpuUseSample(NOW_S, (("9", 0),) * count) for count in (1, 2))

    assert use_now(one_node, {"i-1": one}, NOW_S) is None
    assert use_now(one_node, {"i-1": two}, NOW_S) == 0
    assert use_now(spread, {"i-1": one, "i-2": one}, NOW_S) is None
    assert use_now(spread, {"i-1": two, "i-2": one}, NOW_S) == 0


def test_of_neuron_devices_those_that_a_job_does_not_compute_on_do_nothing() -> None:
    of = job(9, gpus=4, on=["i-1"])
    of = replace(of, shape=replace(of.shape, gres="neuron"))

    def now(job_of: Job, **told: dict[int, int]) -> int | None:
        uses = (("9", None),) if not told else ()
        devices = {job_id.removeprefix("j"): used for job_id, used in told.items()}
        return use_now(job_of, {"i-1": GpuUseSample(NOW_S, uses, devices)}, NOW_S)

    assert now(of, j9={}) == 0
    assert now(of, j9={3: 40}, j8={0: 90}) == 40
    assert now(of, j8={0: 90}) is None
    assert now(of) is None, "a program of nobody's computes there"
    assert now(of, j9=dict.fromkeys(range(5), 0)) is None, "more than it holds"
    assert now(job(9, gpus=4, on=["i-1"]), j9={}) is None, "of GPUs each is told"
    two = replace(of, nodes=2, node_names=("i-1", "i-2"))
    quiet, busy = (GpuUseSample(NOW_S, (), {"9": used}) for used in ({}, {5: 7}))
    assert use_now(two, {"i-1": quiet, "i-2": busy}, NOW_S) == 7
    assert use_now(two, {"i-1": quiet, "i-2": quiet}, NOW_S) == 0


def test_what_is_remembered_answers_for_every_threshold() -> None:
    use = None
    said = [(0, 99), (60, 20), (120, 4), (180, 9), (240, 0), (300, 4)]
    for at_s, percent in said:
        use = seen(use, percent, float(at_s))

    assert use == GpuUse(0.0, ((50, 0.0), (20, 60.0), (9, 180.0), (4, 300.0)))
    for threshold in range(1, 51):
        reached = [at_s for at_s, percent in said if min(percent, 50) >= threshold]
        assert use.below_since_s(threshold) == max(reached, default=0.0)
    assert seen(use, None, 360.0) is None
