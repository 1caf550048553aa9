"""Rules between partitions and the Slurm that they are partitions of."""

from collections.abc import Iterator

from tidegate.wire.partition_model import PreemptMode, bound_of
from tidegate.wire.parts import Parts
from tidegate.wire.problems import Problem, and_


def _accounting(parts: Parts) -> Iterator[Problem]:
    """Without accounting Slurm knows no job's account: AllowAccounts keeps everybody out, and
    AllowQos lets everybody in.
    """
    slurm = parts.slurm
    if slurm is None or slurm.has_accounting:
        return
    for name, partition in parts.partitions.items():
        if options := partition.needs_accounting:
            text = (
                f"{and_(options)} need accounting"
                if len(options) > 1
                else (f"{options[0]} needs accounting")
            )
            yield Problem(("partitions", name), f"{text}: add accounting: true to slurm")


def _preemption(parts: Parts) -> Iterator[Problem]:
    """A partition's PreemptMode does nothing while PreemptType is preempt/none."""
    slurm = parts.slurm
    if slurm is None or "preempttype" in {key.lower() for key in slurm.settings}:
        return
    for name, partition in parts.partitions.items():
        if partition.preempt_mode not in (None, PreemptMode.OFF):
            text = f"{partition.preempt_mode}, but nothing preempts: add to slurm.settings"
            yield Problem(
                ("partitions", name, "preempt_mode"),
                f"{text} PreemptType: preempt/partition_prio and PreemptMode: REQUEUE",
            )


def _default_times(parts: Parts) -> Iterator[Problem]:
    """A job that names no time limit has the partition's, which some pool must take."""
    for name, partition in parts.partitions.items():
        bound_s, usual_s = bound_of(partition.pools, parts.pools), partition.default_time_s
        if bound_s and usual_s and usual_s > bound_s:
            text = f"{usual_s}, and its pools take jobs of at most {bound_s} s (max_job_time_s)"
            yield Problem(
                ("partitions", name, "default_time_s"),
                f"{text}: jobs without a limit would never start",
            )


PARTITION_RULES = (_accounting, _preemption, _default_times)
