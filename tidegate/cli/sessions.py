"""Whether Session Manager's shells, the one way in without SSH, begin as the account wants them.

The machine's own role fetches the key of a session that is encrypted, and writes its log; without
the right to either the session ends as it begins. Source: Systems Manager user guide, "Create a
custom IAM role for Session Manager" (with and without logs and encryption) and "Logging session
data"; department-of-veterans-affairs/va.gov-team#54885 has the refusal.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from tidegate.adapters.account import Account
from tidegate.wire.config import ClusterFile
from tidegate.wire.problems import Place

_LOGGED = tuple(
    f"logs:{each}"
    for each in ("CreateLogStream", "DescribeLogGroups", "DescribeLogStreams", "PutLogEvents")
)
# By what the account's document of preferences calls it: for people, and what it takes.
_ASKED = {
    "kmsKeyId": ("encrypted by the KMS key {}", ("kms:Decrypt",)),
    "s3BucketName": ("kept in the bucket {}", ("s3:GetEncryptionConfiguration", "s3:PutObject")),
    "cloudWatchLogGroupName": ("logged in the group {}", _LOGGED),
}


def doubts(file: ClusterFile, account: Account) -> Iterator[tuple[Place, str]]:
    """Of machines that have no policy of the site's own, where the account asks for more."""
    if said := _asked(account.session_preferences()):
        for place, policies in _machines(file):
            if not policies:
                yield place, f"sessions of this account are {said}: a policy here has to allow it"


def _machines(file: ClusterFile) -> Iterator[tuple[Place, tuple[str, ...]]]:
    if not file.existing.head:
        yield ("head", "policies"), file.head.policies
    for kind in file.login_kinds:
        yield (*kind.place, "policies"), kind.model.policies


def _asked(preferences: Mapping[str, Any]) -> str:
    found = [
        (words.format(preferences[name]), rights)
        for name, (words, rights) in _ASKED.items()
        if preferences.get(name)
    ]
    what = " and ".join(words for words, _ in found)
    needed = ", ".join(each for _, rights in found for each in rights)
    return f"{what}, which takes rights of the machine ({needed})" if found else ""
