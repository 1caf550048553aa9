"""The local cloud, as the contract suites have it."""

from tests.contracts.conftest import cloud, names

__all__ = ["cloud", "names"]
