"""Data sets that jobs name in their comments, which nodes load from S3 while they boot."""

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache

from tidegate.core.model.ec2 import TAG_VALUE_MAX
from tidegate.core.model.frozen import frozen
from tidegate.core.model.slurm import Job

# `sbatch --comment=tidegate:data=s3://bucket/prefix`, once for each. The node asks the same
# (userdata/node/data-sets.sh), which takes what no tag tells it from the comment when a job starts.
KEY = "tidegate:data="
_ASKED = re.compile(r"\btidegate:data=([^\s,;]*)")
_PLACE = re.compile(r"s3://[a-z0-9][a-z0-9.-]+(/[A-Za-z0-9_.=@-]+)*", re.ASCII)
PLACE_CHARS_MAX = 240
PLACES_MAX = 8


@frozen
class DataSets:
    """`places`: those that nodes load. `problems`: why others are not, in sentences."""

    places: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def data_sets(job: Job, allowed: tuple[str, ...]) -> DataSets:
    """What a job's comment asks for. `allowed`: buckets, with a prefix or none."""
    return _asked(job.comment, allowed) if KEY in job.comment else DataSets()


# Jobs of a long queue share their comments.
@lru_cache(maxsize=4_096)
def _asked(comment: str, allowed: tuple[str, ...]) -> DataSets:
    asked = tuple(dict.fromkeys(each.rstrip("/") for each in _ASKED.findall(comment)))
    problems = {place: _problem(place, allowed) for place in asked[:PLACES_MAX]}
    problems |= dict.fromkeys(asked[PLACES_MAX:], f"a job may name {PLACES_MAX} of them")
    return DataSets(
        tuple(place for place in asked if not problems[place]),
        tuple(
            f"{place[:60]} is not loaded to its nodes' own disks, and the job runs without: {why}"
            for place, why in problems.items()
            if why
        ),
    )


def _problem(place: str, allowed: Iterable[str]) -> str:
    """Why it is not loaded; "": it is."""
    name = place.removeprefix("s3://")
    is_path = {".", ".."} & set(name.split("/"))
    if not _PLACE.fullmatch(place) or is_path or len(name) > PLACE_CHARS_MAX:
        return "it is no s3://bucket/prefix of letters, digits and . _ = @ -"
    if not any(f"{name}/".startswith(f"{each}/") for each in allowed):
        of = f"is not among {', '.join(allowed)}" if allowed else "cannot be: there is none"
        return f"it {of} (prefetch.buckets in the cluster file)"
    return ""


def tag_of(job_ids: Collection[str], jobs: Iterable[Job], allowed: tuple[str, ...]) -> str:
    """What the nodes of a launch for these jobs load, as it stands in their tag; "": nothing.

    By the jobs' order, as many as a tag holds: a job's node loads the rest when the job starts.
    """
    order = {job_id: number for number, job_id in enumerate(job_ids)}
    asking = [job for job in jobs if job.job_id in order]
    asking.sort(key=lambda job: order[job.job_id])
    places = dict.fromkeys(place for job in asking for place in data_sets(job, allowed).places)
    return " ".join(_fitting(places))


def _fitting(places: Iterable[str]) -> Iterator[str]:
    left = TAG_VALUE_MAX + 1
    for place in places:
        if len(place) < left:
            left -= len(place) + 1
            yield place
