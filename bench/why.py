"""How long `tidegate why` takes with a long queue, and what storing verdicts costs a look."""

import statistics
import time
from collections.abc import Callable, Iterator

from bench.figures import Figure
from bench.workload import Case, snapshot
from tidegate.core.explain.answer import answer
from tidegate.core.explain.chain import chain
from tidegate.core.explain.verdicts import verdicts_of
from tidegate.core.model.digest import Digest
from tidegate.core.planner import plan
from tidegate.wire.decisions import decode_verdicts, encode_verdicts
from tidegate.wire.digest import decode_digest, encode_digest

JOBS = 20_000
ROUNDS = 3

# Of the 2 s that an answer may take, interpreter, clients and AWS's calls have the other one.
BOUND_S = 1.0
STORE_BOUND_S = 0.3


def figures() -> Iterator[Figure]:
    seen = snapshot(Case("", JOBS, 500, 400))
    made = plan(seen)
    assert isinstance(seen.digest, Digest)
    digest = encode_digest(seen.digest)
    stored = encode_verdicts(verdicts_of(made, seen))
    last = seen.digest.reading.jobs[-1].job_id

    def store() -> None:
        encode_verdicts(verdicts_of(made, seen))

    def why() -> None:
        decode_digest(digest)
        assert chain(answer(last, seen, decode_verdicts(stored)), None)

    yield Figure(f"why, {JOBS:,} pending jobs", _median_s(why), "s", BOUND_S)
    yield Figure(f"verdicts of {JOBS:,} jobs, stored", _median_s(store), "s", STORE_BOUND_S)
    yield Figure(f"verdicts of {JOBS:,} jobs, size", round(len(stored) / 1024, 1), "KiB")


def _median_s(run: Callable[[], None]) -> float:
    took: list[float] = []
    for _ in range(ROUNDS):
        began_s = time.process_time()
        run()
        took.append(time.process_time() - began_s)
    return round(statistics.median(took), 3)


if __name__ == "__main__":
    for figure in figures():
        print(figure)
