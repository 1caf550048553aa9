"""Whether nodes can be launched whose disks have a KMS key that AWS does not manage.

EC2 takes a launch whose caller may not use the key, and ends the instance as it starts.
Sources: EBS user guide, "Requirements for Amazon EBS encryption" (permissions for users) and
"Amazon EBS encryption by default" (a key of the account's own may be the default);
runs-on/runs-on#151.
"""

from collections.abc import Iterator

from tidegate.adapters.account import Account, Key
from tidegate.cli.key_policy import Caller, Fit, lets
from tidegate.core.model.ec2 import SPOT_ROLE

ENDS = "nodes would end as soon as they start, and so would a head that is started again"


def found(
    key_id: str, account: Account, *, kms_key: str | None, has_spot: bool
) -> Iterator[tuple[Fit, str]]:
    """What does not hold, or may not (MAYBE), with its remedy.

    `key_id`: of a disk, or of a snapshot that one is made from. `kms_key`: the file's.
    """
    key = account.key(key_id)
    if key is None or not key.is_enabled:
        state = "not there" if key is None else "not enabled"
        yield Fit.NO, f"the KMS key {key_id} of its volumes is {state}"
        return
    if not key.is_customers:
        return
    number, region = account.number(), key.arn.split(":")[3]
    fit = _fit(key, Caller(number, region, _is_a_role_of_ours))
    if key.arn != kms_key and fit is not Fit.YES:
        what = {
            Fit.NO: f"the functions may not use the KMS key {key.arn} of its volumes: {ENDS}; ",
            Fit.MAYBE: f"the KMS key {key.arn} of its volumes is given to single roles, or on "
            f"conditions, and whether to the functions nobody can tell from here: if not, {ENDS}; ",
        }
        yield fit, what[fit] + _remedy(key, kms_key)
    fit = _fit(key, Caller(number, region, _is_spots_role))
    if has_spot and fit is not Fit.YES:
        has = "has no grant" if fit is Fit.NO else "may have no right"
        yield (
            fit,
            f"the KMS key {key.arn} of its volumes {has} for {SPOT_ROLE}: spot instances "
            "would end as soon as they start; `aws kms create-grant` gives it one",
        )


def _fit(key: Key, caller: Caller) -> Fit:
    granted = max(map(caller.is_named, key.grantees), default=Fit.NO)
    return max(lets(key.policy, caller), granted)


def _is_a_role_of_ours(arn: str) -> Fit:
    """CloudFormation names the functions' roles as it makes them. `assumed-role/aws:...` is AWS's
    own grant for a volume that is attached, which says nothing of launches; no role's name has a
    colon.

    Source: KMS developer guide, "Examining grants".
    """
    is_role = ":role/" in arn or (":assumed-role/" in arn and ":assumed-role/aws:" not in arn)
    return Fit.MAYBE if is_role and "/aws-service-role/" not in arn else Fit.NO


def _is_spots_role(arn: str) -> Fit:
    return Fit.YES if arn.endswith(f"/{SPOT_ROLE}") else Fit.NO


def _remedy(key: Key, kms_key: str | None) -> str:
    if kms_key:
        return f"take a copy of the image: `aws ec2 copy-image --encrypted --kms-key-id {kms_key}`"
    return f"`kms_key: {key.arn}` gives them the rights (docs/deploying.md, Keys)"
