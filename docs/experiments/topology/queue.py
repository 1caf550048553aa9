"""Jobs of 2 to 16 nodes, while some 100 of 128 nodes are taken: queue.py VARIANT JOBS."""

import random
import subprocess
import sys
import time

sys.path.insert(0, "/")
from network import mean_hops, places

TAKEN_MOST = 108
variant, jobs = sys.argv[1], int(sys.argv[2])
place_of = places(variant.partition("-")[0])
rng = random.Random(11)


def run(*argv: str) -> str:
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout.strip()


def numbers(job: str) -> list[int]:
    """The nodes of a job, once it has them."""
    for _ in range(600):
        if found := run("squeue", "-h", "-j", job, "-o", "%N"):
            return [int(each[1:]) for each in run("scontrol", "show", "hostnames", found).split()]
        time.sleep(0.05)
    raise SystemExit(f"job {job} got no nodes: {run('squeue', '-h', '-j', job, '-o', '%T %r')}")


def free(job: str) -> None:
    run("scancel", job)
    while run("squeue", "-h", "-j", job, "-t", "all", "-o", "%t") not in ("", "CA"):
        time.sleep(0.05)


running: dict[str, list[int]] = {}
means: list[float] = []
whole = fitting = 0
for _ in range(jobs):
    size = rng.choice((2, 2, 4, 4, 8, 8, 16))
    while sum(map(len, running.values())) + size > TAKEN_MOST:
        job = rng.choice(sorted(running))
        free(job)
        del running[job]
    job = run(
        "sbatch",
        "--parsable",
        "-N",
        str(size),
        "--exclusive",
        "-o",
        "/dev/null",
        "--wrap",
        "sleep 9999",
    )
    running[job] = numbers(job)
    taken = [place_of[each] for each in running[job]]
    means.append(mean_hops(taken))
    if size <= 8:
        fitting += 1
        whole += len({each // 8 for each in taken}) == 1
mean = f"{sum(means) / len(means):.2f}"
print(f"    {variant:15} {mean}   below one switch: {whole} of {fitting} jobs that fit")
