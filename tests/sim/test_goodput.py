"""A training beside GPUs that fail as often as is published (bench/goodput.py), for six weeks."""

from bench.goodput import AT_MOST_S, COUNTED_OFF, FOUND_S, Months, ladder
from bench.published_faults import drawn

DAYS = 45


def test_every_fault_is_found_no_healthy_node_ended_and_the_training_soon_goes_on() -> None:
    faults = drawn(1, DAYS)
    told = Months(ladder, faults=faults, days=DAYS).run()

    assert told.faults >= 3
    assert sum(each.kind == "noise" for each in faults) > 50
    assert told.missed == 0
    assert told.healthy_ended == 0
    assert max(told.ready_s) <= AT_MOST_S
    assert max(told.gpu_found_s) <= FOUND_S
    assert told.useful_s > 0.99 * DAYS * 86_400
    assert told.lost_s > 600
    assert abs(1 - told.counted_s / told.lost_s) < COUNTED_OFF
