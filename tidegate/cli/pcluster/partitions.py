"""A queue's own settings as options of its partition."""

from collections.abc import Mapping
from math import ceil
from typing import Any

from pydantic import ValidationError

from tidegate.adapters.slurm_text import ParseError, duration_s
from tidegate.cli.pcluster.outcome import Translated, Yaml
from tidegate.cli.pcluster.shape import Queue
from tidegate.wire.partition_model import FLAGS, LISTS, TIMES, WORDS, PartitionModel
from tidegate.wire.problems import problems_of

# Slurm's words in small letters -> ours.
_LISTS, _WORDS, _TIMES, _FLAGS = (
    {slurm.lower(): ours for ours, slurm in each.items()} for each in (LISTS, WORDS, TIMES, FLAGS)
)
_CHOICES = {"oversubscribe": "over_subscribe", "preemptmode": "preempt_mode", "state": "state"}
_USUAL = ("all", "infinite", "unlimited", "none")
STAND_IN_POOL = "pool"


def settings(queue: Queue, done: Translated) -> Yaml:
    """The options, as far as a partition has them; the rest is told."""
    options: Yaml = {}
    if queue.job_exclusive_allocation:
        options["over_subscribe"] = "exclusive"
    place = f"Scheduling.SlurmQueues[{queue.name}].CustomSlurmSettings"
    for key, value in (queue.custom_slurm_settings or {}).items():
        word = "YES" if value is True else "NO" if value is False else str(value)
        if word.lower() in _USUAL:
            continue
        option = _option(key.lower(), word)
        why = _refused(options | option) if option else "is no option of a partition here"
        if why:
            done.lose(f"{place}.{key}", "partition-settings", f"{key}={word} {why}")
        else:
            options |= option
    return options


def _option(key: str, word: str) -> Yaml:
    """What this line of slurm.conf is here; empty: nothing."""
    if key in _LISTS:
        return {_LISTS[key]: word.split(",")}
    if key in _WORDS:
        return {_WORDS[key]: int(word) if word.isdecimal() else word}
    if key in _TIMES:
        return {_TIMES[key]: _seconds(word)}
    if key in _FLAGS:
        return {_FLAGS[key]: word.upper() in ("YES", "TRUE")}
    return {_CHOICES[key]: word.lower()} if key in _CHOICES else {}


def _seconds(word: str) -> int | str:
    """Whole minutes, as Slurm counts; the word itself where it is no time."""
    try:
        seconds = 60 * int(word) if word.isdecimal() else duration_s(word)
    except ParseError:
        return word
    return word if seconds is None else 60 * ceil(seconds / 60)


def _refused(options: Mapping[str, Any]) -> str:
    try:
        PartitionModel.model_validate({"pools": [STAND_IN_POOL], **options})
    except ValidationError as error:
        return f"is refused: {problems_of(error, PartitionModel)[0].text}"
    return ""


def complete(done: Translated) -> None:
    """Accounts and preemption need their part of Slurm, else a partition would refuse everybody."""
    slurm: Yaml = done.file.get("slurm", {})
    given = {key.lower() for key in slurm.get("settings", {})}
    for name, partition in done.file["partitions"].items():
        mode = partition.get("preempt_mode", "off")
        if mode != "off" and "preempttype" not in given:
            del partition["preempt_mode"]
            place = f"Scheduling.SlurmQueues[{name}].CustomSlurmSettings.PreemptMode"
            means = "jobs give way to none: PreemptType is not among the cluster's settings"
            done.lose(place, "partition-settings", means)
        model = PartitionModel.model_validate(partition)
        if model.needs_accounting and not slurm.get("accounting"):
            done.file["slurm"] = slurm = {"accounting": True, **slurm}
            options = ", ".join(model.needs_accounting)
            done.notes.append(f"slurm.accounting: {options} of partition {name} need it")
