"""AWS's own managed policies, which moto has on paper and does not load.

moto 5.2.5 loads all 1,582 of them or none; here each comes as it is first attached.
"""

import json
from functools import cache
from typing import Any

from moto.iam.aws_managed_policies import aws_managed_policies_data
from moto.iam.models import AWSManagedPolicy, IAMBackend

# Taken here, once: a second installation must not wrap the first one.
MOTO_ATTACH = IAMBackend.attach_role_policy


def install_managed_policies() -> None:
    """Let roles have AWS's managed policies, for every server and mock of this process."""
    backend: Any = IAMBackend
    backend.attach_role_policy = _attach


def _attach(backend: IAMBackend, policy_arn: str, role_name: str) -> None:
    name = policy_arn.rsplit("/", 1)[-1]
    if ":iam::aws:policy/" in policy_arn and name in _written_by_aws():
        policy = AWSManagedPolicy.from_data(
            name, backend.account_id, backend.region_name, _written_by_aws()[name]
        )
        backend.managed_policies.setdefault(policy.arn, policy)
    MOTO_ATTACH(backend, policy_arn, role_name)


@cache
def _written_by_aws() -> dict[str, Any]:
    policies: dict[str, Any] = json.loads(aws_managed_policies_data)
    return policies
