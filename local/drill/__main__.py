"""`tidegate drill restore`: exits 0 only when everything came back that should."""

import argparse
import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import yaml

from local.demo.real_stage import HeadDidNotBoot, RealStage
from local.drill.real import RealCluster, write_drill_file
from local.drill.restore import Drill, NotRestored, Restored, record
from local.namespaces import can_enter, enter

FAILED, CANNOT = 1, 2


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="tidegate drill restore")
    parser.add_argument("--output", default="text")
    output = parser.parse_args(argv).output
    if why_not := can_enter():
        print(
            f"A drill needs real Slurm and machines, which cannot be here: {why_not}."
            " Run it as root on Debian or Ubuntu; for a cluster on AWS, docs/recovery.md.",
            file=sys.stderr,
        )
        return CANNOT
    enter()
    try:
        with TemporaryDirectory() as folder:
            found = play(Path(folder))
    except (NotRestored, HeadDidNotBoot) as trouble:
        print(f"The drill failed: {trouble}", file=sys.stderr)
        return FAILED
    show(found, output)
    return 0


def play(folder: Path) -> tuple[Restored, ...]:
    """Steps go to standard error, figures to standard output."""
    started_s = time.monotonic()

    def say(what: str) -> None:
        print(f"{time.monotonic() - started_s:6.1f} s  {what}", file=sys.stderr, flush=True)

    say("synthesizing, deploying, booting the head")
    with RealStage(write_drill_file(folder)) as stage:
        return Drill(RealCluster(stage), say).run()


def show(found: tuple[Restored, ...], output: str) -> None:
    told = [record(each) for each in found]
    match output:
        case "json":
            print(json.dumps(told, indent=2))
        case "yaml":
            print(yaml.safe_dump(json.loads(json.dumps(told)), sort_keys=False), end="")
        case _:
            for each in found:
                print(f"{each.lost} lost: RTO {each.rto_s:.1f} s, RPO {each.rpo_s:.1f} s")


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)
