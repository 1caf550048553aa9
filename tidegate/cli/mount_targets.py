"""Whether an EFS that is there has a mount target wherever machines mount it."""

from collections.abc import Iterator

from tidegate.adapters.account import Account
from tidegate.wire.config import ClusterFile
from tidegate.wire.places import is_local_zone
from tidegate.wire.problems import Place, Problem


def problems(file_system_id: str, file: ClusterFile, account: Account) -> Iterator[Problem]:
    """Zones without one. Nodes in Local Zones, where EFS has none, use that of the head's zone."""
    place: Place = ("existing", "file_system")
    targets = account.mount_targets(file_system_id)
    if targets is None:
        yield Problem(place, f"{file_system_id} is not there")
        return
    vpc_id = file.network.vpc
    if others := sorted({each for each in targets.values() if each != vpc_id}):
        yield Problem(place, f"{file_system_id} is in {', '.join(others)}, not in {vpc_id}")
        return
    needed = (zone for zone in file.all_zones if not is_local_zone(zone))
    if missing := [zone for zone in needed if zone not in targets]:
        text = f"{file_system_id} has no mount target in {', '.join(missing)}"
        yield Problem(place, f"{text}: nodes there could not mount it")
