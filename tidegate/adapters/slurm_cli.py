"""The port `Slurm` on Slurm's own commands: argv lists, one command for many names.

Verified on 22.05 and 24.11. What the commands do that one would not expect:
- `scontrol update` changes nothing at all when one name of the list is unknown;
- `scontrol delete` deletes all it can, then reports one error for the rest;
- `scancel --signal` to a job that is not running tries again for minutes.
"""

import re
import secrets
from collections.abc import Iterator, Sequence
from threading import Lock

from tidegate.adapters import slurm_ended, slurm_queue, slurm_reserved, slurm_text
from tidegate.adapters.slurm_checks import SUBMIT, SUBMIT_TIMEOUT_S, Checks
from tidegate.adapters.slurm_command import Finished, Runner, one_line
from tidegate.adapters.slurm_reading import (
    in_open_partition,
    static_nodes,
    waits_for_nodes,
    was_left,
    without_account,
)
from tidegate.adapters.slurm_reserved import EXCLUDED_FORMAT, Exclusions
from tidegate.adapters.slurm_script import Scripts
from tidegate.core.model.drain_reason import MARK, OPEN
from tidegate.core.model.errors import SlurmUnavailable
from tidegate.core.model.slurm import Job, Node, NodeReservation, Reading
from tidegate.core.model.slurm_names import is_constraint, is_job_id, is_node_name, is_signal

# Linux takes at most 128 KiB in one argument.
MAX_ARGUMENT_BYTES = 100_000
READ_TIMEOUT_S = 30.0
UPDATE_TIMEOUT_S = 20.0
SIGNAL_TIMEOUT_S = 8.0
# scancel and requeue ask slurmctld once per job (13 and 6 ms): what one call may take of that.
JOBS_AT_ONCE = 200

_FOR_JOB = re.compile(r"^(?:scontrol: error: )?(.+) for job ([0-9]+(?:_[0-9]+)?)$", re.MULTILINE)
_NO_ERROR = "No error"
# Of an array the tasks: `7_0`, or all that wait, `7_0-2,5`.
_TASKS = re.compile(r"^(?:scontrol: error: )?([0-9]+)_([][0-9,%-]+): (.+)$", re.MULTILINE)
_KILL = re.compile(r"on job id ([0-9]+(?:_[0-9]+)?): (.+)$", re.MULTILINE)
_WITH_SLURMDBD = re.compile(r"^AccountingStorageType *= accounting_storage/slurmdbd$", re.MULTILINE)
_MEMORY = re.compile(r" MinMemory(CPU|Node)=[0-9.]+[KMGTP]? ")
# What says that slurmctld, not the request, is at fault: the same call may go through later.
_NO_ANSWER = re.compile(
    r"Unable to contact|Unexpected message|Socket timed out|Zero Bytes|standby"
    r"|onnection (refused|reset|failure)|Unable to establish|Could not establish"
    r"|authentication|Insane message|temporarily|fetch_config|Message (send|receive)|munge",
    re.IGNORECASE,
)
_UNKNOWN_NODE = "Invalid node name"
# With FederationParameters=fed_display they show all clusters of a federation: jobs for which
# nodes would be bought here, and partitions of the same name (docs/real-slurm.md, m).
_OF_FEDERATION = ("squeue", "sinfo")


def _said(reason: str) -> tuple[str, str]:
    """A reason, which Slurm refuses to drain without, and the same as the node's comment: by
    that a reason is known for ours, whatever words others choose.
    """
    said = one_line(reason) or MARK
    return f"reason={said}", f"comment={said}"


class SlurmCli:
    """The head's Slurm. Safe to use from several threads: it only remembers what stays true."""

    def __init__(self, run: Runner, submit_check: Sequence[str] = SUBMIT) -> None:
        self._run = run
        self._submit_check = submit_check
        self._checks = Checks()
        self._version = ""
        self._memory_per_cpu: dict[str, bool] = {}
        self._scripts = Scripts(self._read_script)
        self._exclusions = Exclusions(self._read_excluded, self._unfold)
        self._opened: dict[str, str] = {}
        self._weighing = Lock()

    def read(self) -> Reading:
        # Nodes first: a job that starts in between makes its node look idle, and every order
        # reads again before it acts. The other way round the job would look unserved and
        # buy a node.
        config = self._ask(["scontrol", "show", "config"])
        slurm_user = slurm_text.slurm_user(config)
        (nodes, known), queue = self._all_nodes(slurm_user), self._jobs()
        if was_left(nodes, queue):
            (nodes, known), queue = self._all_nodes(slurm_user), self._jobs()
        jobs = self._exclusions.with_excluded(self._scripts.with_signals(queue))
        if any(waits_for_nodes(job) for job in jobs):
            closed = slurm_text.closed_partitions(self._ask(["sinfo", "-h", "-a", "-o", "%R %a"]))
            jobs = tuple(in_open_partition(job, closed) for job in jobs)
        # Whether there is a slurmdbd, and with it accounts, associations and their caps.
        is_accounted = bool(_WITH_SLURMDBD.search(config))
        # And nobody may ask otherwise: slurmctld 23.11.4, which is Ubuntu 24.04's, ends at once
        # when it is asked for its associations and has no accounting (docs/real-slurm.md, i).
        limits = (
            self._ask(["scontrol", "show", "assoc_mgr", "flags=assoc,qos"]) if is_accounted else ""
        )
        # A partition may have a QOS of its own; without slurmdbd there is none.
        own_qos = self._ask(["scontrol", "show", "partition", "-o"]) if "QOS=" in limits else ""
        is_licensed = any(job.licences or job.licence_choices for job in jobs)
        licences = self._ask(["scontrol", "show", "licenses"]) if is_licensed else ""
        return Reading(
            version=self._read_version(),
            jobs=jobs if is_accounted else tuple(map(without_account, jobs)),
            nodes=nodes,
            associations=slurm_text.associations(limits, slurm_text.partition_qos(own_qos)),
            licences=slurm_text.licences(licences),
            reservations=self._reservations(nodes),
            static_nodes=static_nodes(nodes, known, jobs),
            ended=slurm_ended.parse(self._ask(slurm_ended.COMMAND), self._unfold) if nodes else (),
            checks=self._checks.jobs(self._ask),
        )

    def drain(self, names: Sequence[str], reason: str) -> None:
        self._update_nodes(names, "state=drain", *_said(reason))

    def down(self, names: Sequence[str], reason: str) -> None:
        self._update_nodes(names, "state=down", *_said(reason))

    def undrain(self, names: Sequence[str]) -> None:
        self._update_nodes(names, "state=undrain", f"reason={OPEN}")

    def weigh(self, names: Sequence[str], weight: int) -> None:
        with self._weighing:
            self._update_nodes(names, f"weight={weight}")

    def poke(self, names: Sequence[str]) -> None:
        """As the port says, by giving one of the nodes the weight that it has.

        Any update starts a pass. That of a job would blank the pending reasons; a node's comment
        is the record by which a drain is known for ours.
        """
        with self._weighing:
            weights = self._weights(names)
            for name in sorted(weights)[:1]:
                self._update_nodes([name], f"weight={weights[name]}")

    def _weights(self, names: Sequence[str]) -> dict[str, str]:
        """Of the named nodes that exist."""
        found: dict[str, str] = {}
        for chunk in _chunks([name for name in names if is_node_name(name)]):
            text = self._ask(["sinfo", "-h", "-a", "-N", "-n", ",".join(chunk), "-o", "%N %w"])
            found |= dict(line.split() for line in text.splitlines())
        return found

    def reboot(self, names: Sequence[str]) -> None:
        """With `reason=` it would lose the one that it has (docs/real-slurm.md, l)."""
        self._change_nodes(names, ("scontrol", "reboot", "ASAP", "nextstate=RESUME"), "{}", ())

    def delete(self, names: Sequence[str]) -> dict[str, str]:
        refused = {name: "is no node name" for name in names if not is_node_name(name)}
        for chunk in _chunks([name for name in names if name not in refused]):
            done = self._run(
                ["scontrol", "delete", f"nodename={','.join(chunk)}"], UPDATE_TIMEOUT_S
            )
            if done.code == 0:
                continue
            _raise_if_unanswered(done)
            # One error stands for all names; what exists now tells whom it was about.
            left = {node.name for node in self._nodes()}
            why = done.complaint.rpartition(": ")[2]
            why = "Requested nodes are busy" if _UNKNOWN_NODE in why else why
            refused |= {name: why for name in chunk if name in left}
        return refused

    def requeue(self, job_ids: Sequence[str]) -> dict[str, str]:
        """As the port says; a job that is pending already is no refusal."""
        refused = {job_id: "is no job id" for job_id in job_ids if not is_job_id(job_id)}
        for chunk in _chunks([j for j in job_ids if j not in refused], at_most=JOBS_AT_ONCE):
            done = self._run(
                ["scontrol", "requeue", "Incomplete", ",".join(chunk)], UPDATE_TIMEOUT_S
            )
            if done.code:
                _raise_if_unanswered(done)
            errors = _job_errors(done) if done.code else {}
            refused |= {job_id: why for job_id, why in errors.items() if "pending" not in why}
        return refused

    def hold(self, job_ids: Sequence[str]) -> dict[str, str]:
        """As the port says. Slurm refuses `requeuehold` of a job that waits."""
        refused = {job_id: "is no job id" for job_id in job_ids if not is_job_id(job_id)}
        for job_id in (j for j in job_ids if j not in refused):
            for command in ("requeuehold", "hold"):
                done = self._run(["scontrol", command, job_id], UPDATE_TIMEOUT_S)
                if done.code == 0:
                    break
                _raise_if_unanswered(done)
            else:
                refused[job_id] = done.complaint
        return refused

    def start(self, job_ids: Sequence[str]) -> None:
        """As the port says. A failure only means that the job starts two minutes later."""
        for chunk in _chunks([j for j in job_ids if is_job_id(j)], at_most=JOBS_AT_ONCE):
            command = ["scontrol", "update", f"jobid={','.join(chunk)}", "starttime=now"]
            self._run(command, UPDATE_TIMEOUT_S)

    def signal(self, job_ids: Sequence[str], signal: str) -> dict[str, str]:
        if not is_signal(signal):
            return {job_id: f"{one_line(signal)!r} is no signal" for job_id in job_ids}
        return self._scancel(job_ids, _signal_options(signal))

    def scancel(self, job_ids: Sequence[str]) -> dict[str, str]:
        return self._scancel(job_ids, [])

    def _scancel(self, job_ids: Sequence[str], options: Sequence[str]) -> dict[str, str]:
        refused = {job_id: "is no job id" for job_id in job_ids if not is_job_id(job_id)}
        for chunk in _chunks([j for j in job_ids if j not in refused], at_most=JOBS_AT_ONCE):
            done = self._run(["scancel", *options, *chunk], SIGNAL_TIMEOUT_S)
            if done.code > 0:
                _raise_if_unanswered(done)
            refused |= {job_id: why for job_id, why in _KILL.findall(done.err) if job_id in chunk}
            if done.code < 0:
                late = "scancel gave no answer in time, a job of the order is not running"
                refused |= {job_id: late for job_id in chunk if job_id not in refused}
        return refused

    def tell(self, job_id: str, text: str) -> str:
        if not is_job_id(job_id):
            return "is no job id"
        done = self._run(["scontrol", "notify", job_id, one_line(text)], UPDATE_TIMEOUT_S)
        if done.code:
            _raise_if_unanswered(done)
        return done.complaint if done.code else ""

    def comment(self, job_id: str, text: str) -> None:
        if not is_job_id(job_id):
            return
        # AdminComment is out of the user's reach; Comment is the user's own.
        done = self._run(
            ["scontrol", "update", f"jobid={job_id}", f"admincomment={one_line(text)}"],
            UPDATE_TIMEOUT_S,
        )
        if done.code:
            _raise_if_unanswered(done)

    def constrain(self, job_ids: Sequence[str], constraint: str) -> dict[str, str]:
        if not is_constraint(constraint):
            return {job_id: f"{one_line(constraint)!r} is no constraint" for job_id in job_ids}
        refused = {job_id: "is no job id" for job_id in job_ids if not is_job_id(job_id)}
        for chunk in _chunks([j for j in job_ids if j not in refused], at_most=JOBS_AT_ONCE):
            command = ["scontrol", "update", f"jobid={','.join(chunk)}", f"features={constraint}"]
            done = self._run(command, UPDATE_TIMEOUT_S)
            if done.code:
                _raise_if_unanswered(done)
                # Of a single job scontrol does not name the one that it refused.
                refused |= _job_errors(done) or dict.fromkeys(chunk, done.complaint)
        return refused

    def check(self, name: str, nodes: Sequence[str]) -> str:
        done = self._run([*self._submit_check, name, ",".join(nodes)], SUBMIT_TIMEOUT_S)
        if done.code:
            _raise_if_unanswered(done)
        self._checks.note(name, done.complaint if done.code else "")
        return done.complaint if done.code else ""

    def _nodes(self) -> tuple[Node, ...]:
        return self._all_nodes()[0]

    def _all_nodes(self, slurm_user: str = "") -> tuple[tuple[Node, ...], frozenset[str]]:
        """Tidegate's nodes, and the names of all."""
        text = self._ask(["scontrol", "show", "nodes", "-d", "-o"])
        opened = dict(self._opened)  # another thread may read it
        nodes = slurm_text.nodes(text, slurm_user, opened)
        self._opened = opened
        return nodes, slurm_text.node_names(text)

    def _reservations(self, nodes: Sequence[Node]) -> tuple[NodeReservation, ...]:
        found = slurm_reserved.records(self._ask(["scontrol", "show", "reservation", "-o"]))
        lists = [record.get("Nodes", "") for record in found]
        unfolded = self._unfold([text for text in lists if "[" in text])
        ours = frozenset(node.name for node in nodes)
        return tuple(
            slurm_reserved.reservation(record, unfolded.get(text) or slurm_text.words(text), ours)
            for record, text in zip(found, lists, strict=True)
        )

    def _read_excluded(self) -> str:
        return self._ask(["squeue", "-h", "-a", "-t", "PD", "-o", EXCLUDED_FORMAT])

    def _jobs(self) -> tuple[Job, ...]:
        separator = f"~{secrets.token_hex(8)}~"
        version = self._read_version()
        asked = slurm_queue.output_format(separator, version)
        text = self._ask(["squeue", "-h", "-a", "-O", asked])
        rows = slurm_queue.rows(text, separator, version)
        unclear = slurm_queue.unclear_memory(rows)
        self._learn_memory(unclear)
        unfolded = self._unfold(slurm_queue.hostlists(rows))
        return slurm_queue.jobs(rows, unfolded, self._memory_per_cpu)

    def _read_script(self, job_id: str) -> str | None:
        """A job's script, "" when it has none (salloc); None: slurmctld does not answer now."""
        done = self._run(["scontrol", "write", "batch_script", job_id, "-"], READ_TIMEOUT_S)
        if done.code and (done.code < 0 or _NO_ANSWER.search(done.err + done.out)):
            return None
        return "" if done.code else done.out

    def _learn_memory(self, unclear: Sequence[str]) -> None:
        """Ask about each job once whether its memory is per CPU; forget jobs that left."""
        known = {job_id: per for job_id, per in self._memory_per_cpu.items() if job_id in unclear}
        for job_id in unclear:
            if job_id not in known:
                done = self._run(["scontrol", "show", "job", "-o", job_id], READ_TIMEOUT_S)
                # The user's own words (the job's name) stand before Slurm's.
                found = _MEMORY.findall(done.out) if done.code == 0 else []
                known |= {job_id: found[-1] == "CPU"} if found else {}
        self._memory_per_cpu = known

    def _unfold(self, folded: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """The names in each hostlist, as Slurm itself reads them."""
        mark = f"mark{secrets.token_hex(4)}x"
        found: dict[str, tuple[str, ...]] = {}
        for chunk in _chunks(folded, extra_bytes=len(mark) + 1):
            text = self._ask(["scontrol", "show", "hostnames", f",{mark},".join(chunk)])
            parts = text.split(f"{mark}\n")
            if len(parts) == len(chunk):
                found |= {
                    name: tuple(part.split()) for name, part in zip(chunk, parts, strict=True)
                }
        return found

    def _read_version(self) -> str:
        if not self._version:
            self._version = self._ask(["scontrol", "--version"]).split()[-1]
        return self._version

    def _ask(self, argv: Sequence[str]) -> str:
        if argv[0] in _OF_FEDERATION:
            argv = [argv[0], "--local", *argv[1:]]
        done = self._run(argv, READ_TIMEOUT_S)
        if done.code != 0:
            raise SlurmUnavailable(f"{' '.join(argv[:3])} failed: {done.complaint}")
        return done.out

    def _update_nodes(self, names: Sequence[str], *changes: str) -> None:
        self._change_nodes(names, ("scontrol", "update"), "nodename={}", changes)

    def _change_nodes(
        self, names: Sequence[str], command: Sequence[str], which: str, changes: Sequence[str]
    ) -> None:
        """Change all named nodes that exist, in one command per 100,000 bytes of names."""
        for chunk in _chunks([name for name in names if is_node_name(name)]):
            left = chunk
            for _ in range(3):
                if not left:
                    break
                done = self._run(
                    [*command, which.format(",".join(left)), *changes], UPDATE_TIMEOUT_S
                )
                if done.code == 0:
                    break
                if _UNKNOWN_NODE not in done.err + done.out:
                    raise SlurmUnavailable(f"{' '.join(command[:2])} node failed: {done.complaint}")
                existing = {node.name for node in self._nodes()}
                left = [name for name in left if name in existing]


def _signal_options(signal: str) -> list[str]:
    """scancel's own default are the steps alone."""
    target, _, name = signal.rpartition(":")
    also = {"": ["--full"], "B": ["--batch"], "S": []}[target]
    return [*also, f"--signal={name}"]


def _chunks(
    names: Sequence[str], extra_bytes: int = 1, at_most: int = MAX_ARGUMENT_BYTES
) -> Iterator[list[str]]:
    """The names, without repetition, in groups that fit one argument."""
    chunk: list[str] = []
    size = 0
    for name in dict.fromkeys(names):
        is_full = size + len(name) + extra_bytes > MAX_ARGUMENT_BYTES or len(chunk) == at_most
        if chunk and is_full:
            yield chunk
            chunk, size = [], 0
        chunk.append(name)
        size += len(name) + extra_bytes
    if chunk:
        yield chunk


def _job_errors(done: Finished) -> dict[str, str]:
    """Job id -> what scontrol said about it."""
    text = done.err + "\n" + done.out
    of_arrays = {
        f"{array}_{tasks}" if tasks.isdecimal() else array: why
        for array, tasks, why in _TASKS.findall(text)
        if why != _NO_ERROR  # beside the tasks that it refused it names the others
    }
    return {job_id: why for why, job_id in _FOR_JOB.findall(text)} | of_arrays


def _raise_if_unanswered(done: Finished) -> None:
    if done.code < 0 or _NO_ANSWER.search(done.err + done.out):
        raise SlurmUnavailable(f"slurmctld does not answer: {done.complaint}")
