"""What people hear of a request that userdata/head/submit_advice.lua changed."""

import re

from tidegate.core.model.slurm import Job

_ADVISED = re.compile(r"tidegate:advised=(\d{4}-\d\d-\d\d)/(\S+)/([a-z,-]+)")
_SIZE = re.compile(r"([a-z-]+):([^>,]+)>([^,]+)")


def about_advised(job: Job) -> tuple[str, ...]:
    """Nothing: it asks what its user asked."""
    found = _ADVISED.search(job.comment)
    sizes = _SIZE.findall(found[2]) if found else []
    if not found or not sizes:
        return ()
    said = ", ".join(f"--{option}={after} instead of {before}" for option, before, after in sizes)
    return (
        f"asks {said} since its submission, by the advice of {found[1]}"
        f" ({found[3].replace(',', ', ')}); --comment=tidegate:as-asked at the next one keeps what"
        " it says",
    )
