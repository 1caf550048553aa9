"""What jobs lose with nodes that AWS takes back, and how many are saved: each counts once."""

from dataclasses import replace

import pytest

from tests.make import NOW_S, digest, job, record, snapshot
from tidegate.core.explain.node_report import node_reports
from tidegate.core.interruption.loss import interruption_losses, losses
from tidegate.core.model.ledger import InterruptionLoss, MonthlyLosses, Phase
from tidegate.core.model.slurm import Job, Reading

HOUR_AGO_S = NOW_S - 3600
CHECKPOINT = "tidegate:ckpt=USR1@20"


def reading(*jobs: Job) -> Reading:
    return digest(jobs).reading


def running(*on: str, gpus: int = 1, comment: str = "", is_requeueable: bool = True) -> Job:
    return job(
        7,
        on=on,
        gpus=gpus,
        started_at_s=HOUR_AGO_S,
        comment=comment,
        is_requeueable=is_requeueable,
    )


@pytest.mark.parametrize(
    ("comment", "is_requeueable", "warned", "died"),
    [
        ("", True, InterruptionLoss(4.0, 1), InterruptionLoss(4.0, 0)),
        ("", False, InterruptionLoss(4.0, 0), InterruptionLoss(4.0, 0)),
        (CHECKPOINT, True, InterruptionLoss(0.0, 1), InterruptionLoss(4.0, 0)),
        (CHECKPOINT, False, InterruptionLoss(0.0, 1), InterruptionLoss(4.0, 0)),
    ],
)
def test_a_job_loses_what_it_computed_unless_there_is_time_to_save_it(
    comment: str, is_requeueable: bool, warned: InterruptionLoss, died: InterruptionLoss
) -> None:
    jobs = reading(running("i-1", gpus=4, comment=comment, is_requeueable=is_requeueable))

    assert interruption_losses(["i-1"], [], jobs, NOW_S) == {"i-1": warned}
    assert interruption_losses([], ["i-1"], jobs, NOW_S) == {"i-1": died}


def test_a_gang_counts_at_the_first_of_its_nodes_with_all_its_gpus() -> None:
    jobs = reading(running("i-3", "i-2", "i-1", gpus=2))

    found = interruption_losses(["i-3", "i-2"], [], jobs, NOW_S)

    assert found == {"i-2": InterruptionLoss(6.0, 1), "i-3": InterruptionLoss()}


def test_a_gang_does_not_count_again_with_its_next_node() -> None:
    jobs = reading(running("i-1", "i-2"), running("i-2"))

    assert interruption_losses(["i-2"], [], jobs, NOW_S, announced=["i-1"]) == {
        "i-2": InterruptionLoss(1.0, 1)
    }


def test_jobs_elsewhere_and_those_that_wait_lose_nothing() -> None:
    jobs = reading(running("i-9"), job(5), job(6, on=["i-1"]))

    assert interruption_losses(["i-1"], [], jobs, NOW_S)["i-1"].lost_gpu_hours == 0
    assert interruption_losses(["i-1"], [], None, NOW_S) == {"i-1": InterruptionLoss()}


def test_a_job_that_has_ended_and_one_that_starts_later_than_now_lose_nothing() -> None:
    ended = replace(running("i-1"), state="COMPLETING")
    ahead = replace(running("i-2"), started_at_s=NOW_S + 60)

    found = interruption_losses(["i-1", "i-2"], [], reading(ended, ahead), NOW_S)

    assert found == {"i-1": InterruptionLoss(), "i-2": InterruptionLoss(0.0, 1)}


def test_this_months_losses_are_those_counted_and_those_of_nodes_that_still_end() -> None:
    leaving = record("i-1", phase=Phase.INTERRUPTED)
    nodes = [
        replace(leaving, interruption_loss=InterruptionLoss(1.5, 2)),
        replace(
            leaving, instance_id="i-2", interruption_loss=InterruptionLoss(9.0, 9), ended_at_s=NOW_S
        ),
        record("i-3"),
    ]
    seen = replace(
        snapshot(records=nodes),
        losses=(MonthlyLosses("2001-01", 50, 50.0, 50), MonthlyLosses("2027-01", 2, 10.0, 3)),
    )

    assert losses(seen) == MonthlyLosses("2027-01", 3, 11.5, 5)


def test_a_month_in_which_nothing_is_counted_yet_has_what_still_ends_and_no_more() -> None:
    leaving = replace(
        record("i-1", phase=Phase.INTERRUPTED), interruption_loss=InterruptionLoss(1.5, 2)
    )

    assert losses(snapshot()) == MonthlyLosses("2027-01", 0, 0.0, 0)
    assert losses(snapshot(records=[leaving])) == MonthlyLosses("2027-01", 1, 1.5, 2)


def test_nodes_tells_what_a_reclaim_costs() -> None:
    leaving = record("i-1", phase=Phase.INTERRUPTED)
    leaving = replace(leaving, reclaim_at_s=NOW_S + 60, interruption_loss=InterruptionLoss(1.5, 1))

    (report,) = node_reports(snapshot(records=[leaving]))

    assert report.ends.endswith("; 1 job signalled or requeued in time, 1.5 GPU-hours lost")
