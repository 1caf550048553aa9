"""Whether nodes can be launched whose disks have a KMS key that AWS does not manage.

EC2 takes a launch whose caller may not use the key, and ends the instance as it starts.
Sources: EBS user guide, "Requirements for Amazon EBS encryption" (permissions for users) and
"Amazon EBS encryption by default" (a key of the account's own may be the default);
runs-on/runs-on#151.
"""

from collections.abc import Iterator

from tidegate.adapters.account import Account, Key
from tidegate.core.model.ec2 import SPOT_ROLE

# A key policy with this condition lets in everybody of an account who comes by a service of AWS's,
# as that of AWS's own key does; any other leaves it to the policies of roles.
# Source: KMS developer guide, "kms:CallerAccount".
EVERYBODY = "kms:CallerAccount"


def faults(key_id: str, account: Account, *, kms_key: str | None, has_spot: bool) -> Iterator[str]:
    """`key_id`: of a disk, or of a snapshot that one is made from. `kms_key`: the file's."""
    key = account.key(key_id)
    if key is None or not key.is_enabled:
        state = "not there" if key is None else "not enabled"
        yield f"the KMS key {key_id} of its volumes is {state}"
        return
    if not key.is_customers:
        return
    if key.arn != kms_key and EVERYBODY not in key.users:
        yield (
            f"the functions may not use the KMS key {key.arn} of its volumes: nodes would end as "
            "soon as they start, and so would a head that is started again; "
            f"{_remedy(key, kms_key)}"
        )
    if has_spot and SPOT_ROLE not in key.users:
        yield (
            f"the KMS key {key.arn} of its volumes has no grant for {SPOT_ROLE}: spot instances "
            "would end as soon as they start; `aws kms create-grant` gives it one"
        )


def _remedy(key: Key, kms_key: str | None) -> str:
    if kms_key:
        return f"take a copy of the image: `aws ec2 copy-image --encrypted --kms-key-id {kms_key}`"
    return f"`kms_key: {key.arn}` gives them the rights (docs/deploying.md, Keys)"
