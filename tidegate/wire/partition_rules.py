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


def _times(parts: Parts) -> Iterator[Problem]:
    """A time limit that the partition gives or lets through is one that some pool takes."""
    for name, partition in parts.partitions.items():
        bound_s = bound_of(partition.pools, parts.pools) or float("inf")
        for key, does in (
            ("default_time_s", "jobs without a limit would never start"),
            ("max_time_s", "longer ones would never start"),
        ):
            asked_s = getattr(partition, key) or 0
            if asked_s > bound_s:
                text = f"{asked_s}, and its pools take jobs of at most {bound_s} s (max_job_time_s)"
                yield Problem(("partitions", name, key), f"{text}: {does}")


PARTITION_RULES = (_accounting, _preemption, _times)
