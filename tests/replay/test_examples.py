"""The example files, replayed as a new user would: little is paid for what is done again."""

from pathlib import Path

import pytest

from tests.replay.test_replay import trace
from tidegate.sim.replay.run import replay
from tidegate.sim.replay.world import Setting
from tidegate.wire.config import load_cluster

EXAMPLES = sorted((Path(__file__).parents[2] / "clusters").glob("*.yaml"))
LOST_MAX = 0.03
# Submission, seconds, GPUs and nodes: a short job that suits spot, and on its heels one that does
# not and would fit on its node.
PAIRS = [
    (f"{n * 600} 900 {gpus} 1", f"{n * 600 + 60} 43200 {gpus} 1")
    for n, gpus in enumerate((1, 4, 8, 1, 4, 8))
]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_little_is_lost_to_interruptions_on_an_example_file(path: Path) -> None:
    cluster = load_cluster(path).cluster

    ended = [
        replay(trace(*(one for pair in PAIRS for one in pair)), cluster, Setting(0, 0.0, seed))
        for seed in (0, 1)
    ]

    markets = {name.split()[1] for each in ended for name, _ in each.outcome.by_pool}
    assert markets == {"spot", "on-demand"}
    lost, billed = (
        sum(getattr(each.outcome, name) for each in ended)
        for name in ("gpu_hours_lost", "gpu_hours_billed")
    )
    assert lost < LOST_MAX * billed
    assert not any(each.outcome.breaches for each in ended)
