"""What moto does anew with every call and for every account, and need only do once.

None of its answers changes, but that accounts begin without a hundred images that nobody names.
Keys that sign nothing share the pair of keys that moto draws for each, a twentieth of a second.
"""

from functools import cache
from typing import Any

from moto import backends, settings
from moto.core import responses
from moto.core.utils import method_names_from_class
from moto.kms import models as kms
from moto.kms.utils import KeySpec, generate_private_key

_modules = tuple(backends.list_of_moto_modules())
_names_of = cache(method_names_from_class)
_pair_of = cache(generate_private_key)


def forget_names() -> None:
    """A service has got methods since it was first asked."""
    _names_of.cache_clear()


def install() -> None:
    services: Any = backends
    services.list_of_moto_modules = lambda: _modules  # it asks the disk about two hundred folders
    calls: Any = responses
    calls.method_names_from_class = _names_of
    accounts: Any = settings
    accounts.ec2_load_default_amis = lambda: False
    keys: Any = kms
    keys.generate_private_key = _pair


def _pair(key_spec: str) -> Any:
    is_symmetric = key_spec == KeySpec.SYMMETRIC_DEFAULT
    return _pair_of(key_spec) if is_symmetric else generate_private_key(key_spec)
