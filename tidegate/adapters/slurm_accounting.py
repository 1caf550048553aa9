"""What jobs held and when, by Slurm's accounting: `sacct` on the head.

Source: sacct(1): with --duplicates each run of a requeued job is a line of its own, with
--allocations steps are none.
"""

import base64
import gzip
import re
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from tidegate.adapters.slurm_command import Runner
from tidegate.adapters.slurm_text import ParseError, instant_s, memory_mib, number, value
from tidegate.core.model.devices import SHARED_GRES
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import GpuTime
from tidegate.core.model.idle_use import IdleSpan, IdleUse
from tidegate.core.offers.allocation import Accounted, LostTime, Run

# The name comes last: it may hold what separates the others.
FIELDS = (
    *("JobIDRaw", "User", "Account", "Partition", "State", "Eligible", "Start", "End"),
    *("AllocTRES", "NodeList", "UID", "JobName"),
)
# Of a line that begins with %: the day, and what `agent.gpu_time` writes; which GPUs were used at
# all follows where that agent knew.
GPU_TIME = ("day", "job", "node", "start_s", "idle_gpu_s", "seen_gpu_s")
# Likewise the day, and what `agent.idle_time` writes.
IDLE_TIME = ("day", "node", "since_s", "until_s", "use")
# And the day, and what `agent.lost_work` writes.
LOST_WORK = (
    *("day", "lost", "job", "start_s", "since_s", "stood_since_s", "until_s"),
    *("step", "resumed_step"),
)
COUNTED = """\
counted() { # KIND FOLDER FROM TO
    for file in "$2"/.tidegate/"$1"/????-??-??; do
        day=${file##*/}
        [[ ! -f $file || $day < ${3%T*} || $day > ${4%T*} ]] || sed "s/^/%$day|/" "$file"
    done
}
"""
# Slurm folds node lists, and only Slurm unfolds them. What is printed goes through a terminal.
SCRIPT = f"""\
set -o pipefail
{COUNTED}
export TZ=UTC
said=$(mktemp)
trap 'rm -f "$said"' EXIT
runs=$(sacct --allusers --allocations --duplicates --parsable2 --noheader \\
    --starttime="$1" --endtime="$2" --format={",".join(FIELDS)} 2>"$said") || {{
    cat "$said"
    exit 1
}}
{{
    printf '%s\\n' "$runs"
    folded=$(printf '%s\\n' "$runs" | awk -F'|' '$10 ~ /\\[/ {{print $10}}' | sort -u)
    for list in $folded; do
        printf '=%s|%s\\n' "$list" "$(scontrol show hostnames "$list" | paste -sd ,)"
    done
    counted gpu-time "$3" "$1" "$2"
    counted idle-time "$3" "$1" "$2"
    counted lost-work "$3" "$1" "$2"
}} | gzip -9 | base64 -w 100
"""
HISTORY = f"""\
set -o pipefail
{COUNTED}
export TZ=UTC
said=$(mktemp)
trap 'rm -f "$said"' EXIT
history=$(sacct --allusers --duplicates --parsable2 --starttime="$1" --endtime="$2" \\
    --format="$3" 2>"$said") || {{
    cat "$said"
    exit 1
}}
{{
    printf '%s\\n' "$history"
    counted gpu-time "$4" "$1" "$2"
}} | gzip -9 | base64 -w 100
"""
# The run did not end by itself: its node went, or it was requeued.
CUT_SHORT = frozenset({"BOOT_FAIL", "NODE_FAIL", "PREEMPTED", "REQUEUED"})
NOBODY = ("", "None assigned")
_USES = frozenset(each.value for each in IdleUse)
_COUNT = re.compile(r"(?:^|,)(?P<name>cpu|mem|gres/(?:gpu|neuron|shard|mps))=(?P<much>[^,]+)")


# A database of years answers slowly, and a month of jobs is a megabyte through a session.
SACCT_S = 300.0


class Shell(Protocol):
    """Runs a command on the head as its administrator."""

    def run(self, *argv: str) -> str: ...


@frozen
class Here:
    """The shell of the head that this runs on, as whoever runs it."""

    run_command: Runner

    def run(self, *argv: str) -> str:
        """What the command printed. Errors: SlurmUnavailable, it failed."""
        done = self.run_command(argv, SACCT_S)
        if done.code:
            raise SlurmUnavailable(f"{argv[0]}: {done.complaint}")
        return done.out


@frozen
class SlurmAccounting:
    """`shared_dir`: where the agent counts for how long GPUs and nodes idled; "": nowhere.

    Errors: SlurmUnavailable, sacct refused and says why, or answers what cannot be read;
    Permanent, no session on the head can be had.
    """

    shell: Shell
    shared_dir: str = ""

    def accounted(self, since_s: float, until_s: float) -> Accounted:
        """All that ran between two moments; what still runs counts until the second one."""
        return accounted_in(self.exported(since_s, until_s), until_s)

    def exported(self, since_s: float, until_s: float) -> bytes:
        """The same for `accounted_in`, wherever and whenever that is called."""
        return self._printed(SCRIPT, since_s, until_s, self.shared_dir)

    def history(self, since_s: float, until_s: float, columns: Sequence[str]) -> str:
        """What `sacct -P` prints of jobs and their steps between two moments, moments in UTC; after
        it the lines of `GPU_TIME`.
        """
        words = ",".join(columns), self.shared_dir
        return _unpacked(self._printed(HISTORY, since_s, until_s, *words))

    def _printed(self, script: str, since_s: float, until_s: float, *words: str) -> bytes:
        window = [datetime.fromtimestamp(at, UTC).strftime("%FT%T") for at in (since_s, until_s)]
        printed = self.shell.run("bash", "-c", script, "sacct", *window, *words)
        try:
            return base64.b64decode(printed)
        except ValueError as error:
            raise ParseError(f"sacct's answer was cut off: {error}") from error


def accounted_in(data: bytes, until_s: float) -> Accounted:
    """What was exported; what still ran counts until then. Errors: ParseError."""
    text = _unpacked(data)
    return Accounted(tuple(parse(text, until_s)), tuple(idle_spans(text)))


def _unpacked(data: bytes) -> str:
    """Errors: ParseError."""
    try:
        return gzip.decompress(data).decode(errors="replace")
    except (ValueError, OSError, EOFError, zlib.error) as error:
        raise ParseError(f"sacct's answer was cut off: {error}") from error


def parse(text: str, until_s: float) -> Iterator[Run]:
    """The runs in what `SCRIPT` prints. Errors: ParseError."""
    lines = [line for line in text.splitlines() if line]
    unfolded = dict(line[1:].split("|", 1) for line in lines if line.startswith("="))
    gpu_times = _gpu_times(line[1:] for line in lines if line.startswith("%"))
    lost = _lost_times(line[1:] for line in lines if line.startswith("%"))
    for line in lines:
        if not line.startswith(("=", "%")):
            run = _run(line, unfolded, until_s)
            if run:
                key = run.job_id, round(run.started_at_s)
                yield replace(run, gpu_times=tuple(gpu_times.get(key, ())), lost=lost.get(key))


def _gpu_times(lines: Iterable[str]) -> Mapping[tuple[str, int], list[GpuTime]]:
    """By the job and the start of the run. A line that is none is not seen, like all that is
    missing.
    """
    found: defaultdict[tuple[str, int], list[GpuTime]] = defaultdict(list)
    for line in lines:
        words = line.split("|")
        is_whole = len(words) in (len(GPU_TIME), len(GPU_TIME) + 2)
        if is_whole and all(each.isdecimal() for each in words[3:]):
            day, job_id, node, start_s, idle_s, seen_s = words[: len(GPU_TIME)]
            found[job_id, int(start_s)].append(GpuTime(node, day, float(idle_s), float(seen_s)))
    return found


def _lost_times(lines: Iterable[str]) -> Mapping[tuple[str, int], LostTime]:
    """By the job and the start of the run, the newest of each last. A line that is none is not
    seen.
    """
    found: dict[tuple[str, int], LostTime] = {}
    for line in lines:
        words = line.split("|")
        if len(words) == len(LOST_WORK) and words[1] == LOST_WORK[1]:
            _, _, job_id, *moments, _, resumed_step = words
            if all(each.isdecimal() for each in moments):
                start_s, since_s, *_ = (int(each) for each in moments)
                found[job_id, start_s] = LostTime(float(since_s), bool(resumed_step))
    return found


def idle_spans(text: str) -> Iterator[IdleSpan]:
    """What nodes without a job were for, in what `SCRIPT` prints. A line that is none, or has a
    newer agent's word, is not seen.
    """
    for line in text.splitlines():
        words = line[1:].split("|") if line.startswith("%") else []
        if len(words) == len(IDLE_TIME):
            _, node, since, until, use = words
            if since.isdecimal() and until.isdecimal() and use in _USES:
                yield IdleSpan(node, float(since), float(until), IdleUse(use))


def _run(line: str, unfolded: Mapping[str, str], until_s: float) -> Run | None:
    """None: it never held a node."""
    words = line.split("|", len(FIELDS) - 1)
    if len(words) != len(FIELDS):
        raise ParseError(f"sacct printed {line[:60]!r}, which is no run of a job.")
    job_id, user, account, partition, state, eligible, start, end, tres, listed, uid, name = words
    started_at_s = instant_s(start)
    if listed in NOBODY or not started_at_s:
        return None
    nodes = tuple(unfolded.get(listed, listed).split(","))
    held = {found["name"]: found["much"] for found in _COUNT.finditer(tres)}
    gpus = sum(number(held.get(f"gres/{gres}", "0")) for gres in ("gpu", "neuron"))
    shares = sum(number(held.get(f"gres/{gres}", "0")) for gres in SHARED_GRES)
    return Run(
        job_id=job_id,
        # Slurm looks the name up when it is asked: of who is no user any more there is none.
        user=user or f"uid {uid}",
        account=value(account),
        partition=partition,
        name=name,
        nodes=nodes,
        started_at_s=started_at_s,
        ended_at_s=instant_s(end) or until_s,
        gpus=gpus / len(nodes),
        shares=shares / len(nodes),
        cpus=number(held.get("cpu", "0")) / len(nodes),
        memory_mib=memory_mib(held.get("mem", "0")) / len(nodes),
        is_cut_short=state.split()[0] in CUT_SHORT if state else False,
        eligible_at_s=instant_s(eligible) or None,
    )
