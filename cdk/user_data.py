"""Rules on user data as it is rendered: R12 and R14 of `tidegate/wire/compat_rules.py`."""

from aws_cdk import Annotations
from constructs import Construct

from tidegate.wire.secrets import kind_of_secret

LARGE_BYTES = 12 * 1024
MAX_BYTES = 16 * 1024  # EC2's limit, before base64


def judge_user_data(scope: Construct, user_data: str) -> None:
    """Warns of user data near EC2's limit. Raises ValueError beyond it, and for secrets in it."""
    size = len(user_data.encode())
    if size > MAX_BYTES:
        raise ValueError(f"user data has {size} bytes, EC2 takes {MAX_BYTES} (R12)")
    if kind := kind_of_secret(user_data):
        raise ValueError(f"user data holds what looks like {kind}; many can read it (R14)")
    if size > LARGE_BYTES:
        text = f"user data has {size} of the {MAX_BYTES} bytes that EC2 takes (R12)"
        Annotations.of(scope).add_warning_v2("tidegate:user-data", text)
