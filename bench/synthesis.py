"""What a deployment is: how long `cdk synth` takes, how many resources, how large the code.

CPU time of the command and all that it starts, since the clock counts the neighbours as well.
"""

import json
import resource
import subprocess
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.figures import Figure, table
from cdk.packages import Packages

ROOT = Path(__file__).parents[1]
EXAMPLES = ("dev", "research")

SYNTH_MOST_S = 6.0
RESOURCES_MOST = 400.0
CODE_MOST_MB = 20.0


def synth_cpu_s(cluster: str, out: Path) -> float:
    """CPU seconds of `cdk synth` of one example, with its code packaged before."""
    before = _children_s()
    subprocess.run(
        [
            *("npx", "cdk", "synth", "--quiet", "--output", str(out)),
            *("-c", f"cluster=clusters/{cluster}.yaml"),
        ],
        capture_output=True,
        check=True,
        cwd=ROOT,
    )
    return _children_s() - before


def num_resources(out: Path) -> int:
    """Of the largest template of an assembly."""
    templates = [json.loads(path.read_text()) for path in out.glob("*.template.json")]
    return max(len(each["Resources"]) for each in templates)


def figures() -> Iterator[Figure]:
    code = Packages.build(ROOT).functions
    megabytes = round(code.stat().st_size / 1e6, 1)
    yield Figure("the functions' code, zipped", megabytes, "MB", CODE_MOST_MB)
    for cluster in EXAMPLES:
        with TemporaryDirectory() as folder:
            out = Path(folder)
            seconds = round(synth_cpu_s(cluster, out), 1)
            yield Figure(f"cdk synth of {cluster}, CPU", seconds, "s", SYNTH_MOST_S)
            count = num_resources(out)
            yield Figure(f"resources of {cluster}'s template", count, "", RESOURCES_MOST)


def _children_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    print(table(list(figures())))
