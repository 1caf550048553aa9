"""Which cluster files are deployed, and their faults, all at once."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from tidegate.core.model.errors import BadConfig
from tidegate.wire.compat import findings
from tidegate.wire.config import ClusterFile, load_cluster

DEFAULT_PATTERN = "clusters/*.yaml"


def cluster_paths(root: Path, *, cluster: str | None, pattern: str | None) -> tuple[Path, ...]:
    """The one file `cluster`, or all that match `pattern`, both seen from `root`.

    Errors: BadConfig, when nothing matches.
    """
    if cluster:
        return (root / cluster,)
    wanted = root / (pattern or DEFAULT_PATTERN)
    found = tuple(sorted(Path(wanted.anchor).glob(str(wanted.relative_to(wanted.anchor)))))
    if not found:
        raise BadConfig(f"no cluster file matches {wanted}")
    return found


def load_clusters(paths: Iterable[Path]) -> dict[Path, ClusterFile]:
    """All files, checked. Errors: BadConfig, with the problems of every file."""
    files: dict[Path, ClusterFile] = {}
    problems: list[str] = []
    for path in paths:
        try:
            file = load_cluster(_shortest(path))
            problems += [f"{_shortest(path)}: {each}" for each in findings(file) if each.is_error]
            files[path] = file
        except BadConfig as bad:
            problems.append(str(bad))
    problems += [*_repeated_names(files), *_repeated_endpoints(files)]
    if problems:
        raise BadConfig("\n".join(problems))
    return files


def _repeated_names(files: dict[Path, ClusterFile]) -> list[str]:
    """Two clusters of one name would be one stack, and one would end the other's nodes."""
    by_name: dict[str, list[str]] = {}
    for path, file in files.items():
        by_name.setdefault(file.cluster.name, []).append(str(_shortest(path)))
    return [
        f"{' and '.join(paths)}: both are named {name}"
        for name, paths in by_name.items()
        if len(paths) > 1
    ]


def _repeated_endpoints(files: dict[Path, ClusterFile]) -> list[str]:
    """Sources: EC2 user guide, "Quotas for EC2 Instance Connect Endpoint": one for each VPC; VPC
    user guide, "Private DNS names": a service's name leads to one endpoint of a VPC.
    """
    by_place: dict[tuple[str, str, str], list[str]] = {}
    for path, file in files.items():
        for what, name in _endpoints(file) if file.network.vpc else ():
            place = file.network.vpc or "", what, name
            by_place.setdefault(place, []).append(str(_shortest(path)))
    return [
        f"{' and '.join(paths)}: both want {what} of {vpc}, which has room for one: take {name}"
        " out of the others"
        for (vpc, what, name), paths in by_place.items()
        if len(paths) > 1
    ]


def _endpoints(file: ClusterFile) -> Iterator[tuple[str, str]]:
    """Those that the file asks for, and where it does so."""
    if file.network.instance_connect:
        yield "an Instance Connect endpoint", "network.instance_connect"
    for service in file.network.endpoints:
        yield f"an endpoint to {service}", f"{service} of network.endpoints"


def _shortest(path: Path) -> Path:
    """As the user would write it: from the working folder, where it is below it."""
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path
