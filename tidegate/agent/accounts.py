"""Who is published: whom the head knows, and whom heads before it knew and nobody removed."""

import grp
import json
import pwd
from collections.abc import Iterator

from tidegate.core.model.frozen import frozen
from tidegate.wire.finite import parse_json

MIN_UID = 1_000
MAX_UID = 60_000  # exclusive; above it distributions keep numbers for themselves


def is_person(number: int) -> bool:
    """Whether accounts and groups of people have such numbers."""
    return MIN_UID <= number < MAX_UID


@frozen
class People:
    """Users and groups as the C library knows them. `left_out`: the names of who should be here."""

    users: tuple[pwd.struct_passwd, ...]
    groups: tuple[grp.struct_group, ...]
    left_out: tuple[str, ...] = ()


@frozen
class Known:
    """Names of people and of their groups."""

    users: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, people: People) -> "Known":
        return cls(
            frozenset(user.pw_name for user in people.users if is_person(user.pw_uid)),
            frozenset(group.gr_name for group in people.groups if is_person(group.gr_gid)),
        )

    def without(self, other: "Known") -> "Known":
        return Known(self.users - other.users, self.groups - other.groups)

    def __or__(self, other: "Known") -> "Known":
        return Known(self.users | other.users, self.groups | other.groups)


NOBODY = Known()


def encode_known(known: Known) -> str:
    return json.dumps({"users": sorted(known.users), "groups": sorted(known.groups)}) + "\n"


def decode_known(text: str) -> Known:
    """What `encode_known` wrote; nobody when it did not: then nobody is taken to be removed."""
    try:
        found = parse_json(text)
        return Known(frozenset(map(str, found["users"])), frozenset(map(str, found["groups"])))
    except (ValueError, TypeError, KeyError):
        return NOBODY


def people_in(passwd: str, group: str) -> People:
    """Who stands in two files of the form of /etc/passwd and /etc/group; other lines are none."""
    return People(tuple(_users(passwd)), tuple(_groups(group)))


def _users(text: str) -> Iterator[pwd.struct_passwd]:
    for line in text.split("\n"):
        match line.split(":"):
            case [name, _, uid, gid, gecos, home, shell] if name and _are_numbers(uid, gid):
                yield pwd.struct_passwd((name, "x", int(uid), int(gid), gecos, home, shell))


def _groups(text: str) -> Iterator[grp.struct_group]:
    for line in text.split("\n"):
        match line.split(":"):
            case [name, _, gid, members] if name and _are_numbers(gid):
                yield grp.struct_group(
                    (name, "x", int(gid), list(filter(None, members.split(","))))
                )


def _are_numbers(*texts: str) -> bool:
    return all(text.isascii() and text.isdecimal() and len(text) < 11 for text in texts)


def merged(head: People, published: People, gone: Known) -> People:
    """Whom the head knows, and who was published and is unknown here, but for those `gone`.

    A number belongs to whoever had it first: the files on the shared folder are his. Who has the
    same one on a new head, like the image's own user, is left out.
    """
    known = Known.of(head)
    kept = tuple(
        user
        for user in published.users
        if is_person(user.pw_uid) and user.pw_name not in known.users | gone.users
    )
    groups = tuple(
        group
        for group in published.groups
        if is_person(group.gr_gid) and group.gr_name not in known.groups | gone.groups
    )
    uids, gids = {user.pw_uid for user in kept}, {group.gr_gid for group in groups}
    strangers = {user.pw_name for user in kept}
    before = {group.gr_name: group.gr_mem for group in published.groups}
    own = tuple(
        _with_members(group, [m for m in before.get(group.gr_name, ()) if m in strangers])
        for group in head.groups
        if group.gr_gid not in gids
    )
    users = tuple(user for user in head.users if user.pw_uid not in uids)
    left_out = [user.pw_name for user in head.users if user.pw_uid in uids]
    left_out += [f"group {group.gr_name}" for group in head.groups if group.gr_gid in gids]
    return People((*users, *kept), (*own, *groups), tuple(left_out))


def _with_members(group: grp.struct_group, more: list[str]) -> grp.struct_group:
    return grp.struct_group((group.gr_name, "x", group.gr_gid, [*group.gr_mem, *more]))
