"""Tables and log groups, mended: an update must not cost what is in them."""

from typing import Any

from moto.dynamodb.models.table import Table
from moto.logs.models import LogGroup

from local.shims.resource import Place

_create_table: Any = Table.create_from_cloudformation_json


def _table(name: str, json_: dict[str, Any], account: str, region: str, **more: Any) -> Table:
    table: Table = _create_table(name, json_, account, region, **more)
    _apply(table, json_["Properties"], Place(account, region))
    return table


def _update_table(original_resource: Any, new_resource_name: str, **given: Any) -> Any:
    """A new key is a new table; everything else changes in place."""
    json_, place = given["cloudformation_json"], Place(given["account_id"], given["region_name"])
    properties = json_["Properties"]
    is_same = properties["KeySchema"] == original_resource.schema
    if is_same and new_resource_name == original_resource.name:
        _apply(original_resource, properties, place)
        return original_resource
    place.backend("dynamodb").delete_table(original_resource.name)
    return _table(new_resource_name, json_, place.account, place.region)


def _apply(table: Any, properties: dict[str, Any], place: Place) -> None:
    """What moto's own model of a table drops."""
    dynamodb = place.backend("dynamodb")
    if spec := properties.get("TimeToLiveSpecification"):
        dynamodb.update_time_to_live(table.name, spec)
    if spec := properties.get("PointInTimeRecoverySpecification"):
        dynamodb.update_continuous_backups(table.name, spec)
    table.deletion_protection_enabled = properties.get("DeletionProtectionEnabled", False)


def _update_log_group(original_resource: Any, new_resource_name: str, **given: Any) -> Any:
    properties = given["cloudformation_json"]["Properties"]
    place = Place(given["account_id"], given["region_name"])
    if new_resource_name != original_resource.name:
        place.backend("logs").delete_log_group(original_resource.name)
        return LogGroup.create_from_cloudformation_json(
            new_resource_name, given["cloudformation_json"], place.account, place.region
        )
    original_resource.retention_in_days = properties.get("RetentionInDays")
    return original_resource


def install() -> None:
    table: Any = Table
    group: Any = LogGroup
    table.create_from_cloudformation_json = staticmethod(_table)
    table.update_from_cloudformation_json = staticmethod(_update_table)
    group.update_from_cloudformation_json = staticmethod(_update_log_group)
