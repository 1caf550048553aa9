"""How much jobs use their GPUs, minute by minute, from what their nodes say of them."""

import re
from collections.abc import Mapping
from dataclasses import field
from itertools import count, islice

from tidegate.core.model.frozen import frozen
from tidegate.core.model.gpu_use import USE_PERCENT_MAX, GpuUse
from tidegate.core.model.slurm import Job

# `sbatch --comment=tidegate:idle-ok`: its GPUs may do nothing for as long as it likes.
EXEMPT = re.compile(r"\btidegate:idle-ok\b")

# A node tells once a minute. After a longer silence nobody knows what its GPUs did.
SILENT_S = 180.0
# Loading of data and models, containers and compilers: nobody is told of the first minutes.
LOADING_S = 600.0


@frozen
class GpuUseSample:
    """What one node has said last, on its own clock.

    `uses`: a job's id in its own environment (SLURM_JOB_ID), and the most that any of its GPUs
    there was used for in that minute, in percent; None: that cannot be told (MIG). `devices`: of
    jobs of a node with Neuron devices, the number and the percent of those that they compute on.
    """

    at_s: float
    uses: tuple[tuple[str, int | None], ...]
    devices: Mapping[str, Mapping[int, int]] = field(default_factory=dict)


def told_of(job: Job, sample: GpuUseSample) -> dict[int, int | None]:
    """By a number of each GPU of the job that the node tells of, how much it was used, in percent.

    Slurm tells nobody on a node which Neuron devices a job has, but how many they are: those that
    it does not compute on do nothing. Where it computes on more than it holds nothing is believed.
    """
    job_id = job.raw_id or job.job_id
    found = dict(enumerate(use for each, use in sample.uses if each == job_id))
    used = sample.devices.get(job_id)
    if used is None:
        return found
    rest = job.shape.gpus - len(used)
    if found or rest < 0 or job.shape.gres != "neuron":
        return {}
    return {**used, **dict.fromkeys(islice((n for n in count() if n not in used), rest), 0)}


def use_now(job: Job, samples: dict[str, GpuUseSample], now_s: float) -> int | None:
    """The most that any GPU of the job was used for, in percent; None: not known of all its nodes.

    A clock that is wrong by minutes makes a sample as old.
    """
    found: list[int] = []
    for name in job.node_names:
        sample = samples.get(name)
        if sample is None or abs(now_s - sample.at_s) > SILENT_S:
            return None
        of_job = told_of(job, sample).values()
        known = [use for use in of_job if use is not None]
        if not known or len(known) < len(of_job):
            return None
        found += known
    # A GPU of which nobody tells, since a later job has a part of it (shards), may be the busy one.
    # What a job holds on each node is told as the mean, rounded up.
    is_whole = len(found) > (job.shape.gpus - 1) * len(job.node_names)
    return max(found, default=None) if is_whole else None


def seen(before: GpuUse | None, percent: int | None, now_s: float) -> GpuUse | None:
    """With one look more; None: nothing is known any more."""
    if percent is None:
        return None
    if before is None:
        before = GpuUse(now_s)
    percent = min(percent, USE_PERCENT_MAX)
    kept = (each for each in before.peaks if each[0] > percent)
    return GpuUse(before.since_s, (*kept, *(((percent, now_s),) if percent else ())))


def is_exempt(job: Job) -> bool:
    """Whether its owner says that it may idle."""
    return EXEMPT.search(job.comment) is not None
