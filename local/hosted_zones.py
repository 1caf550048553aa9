"""The names that Route 53 knows, asked of moto in this process: a world looks each second."""

from collections.abc import Iterator
from typing import Any

from moto.route53.models import route53_backends


def address_records() -> dict[str, str]:
    """All A records: full name -> address (the first of several).

    Of all hosted zones, public ones too: moto takes a zone with a VPC for public.
    """
    return {
        record.name.rstrip("."): record.records[0]
        for zone in _zones()
        for record in list(zone.rrsets)
        if record.type == "A" and record.records
    }


def _zones() -> Iterator[Any]:
    """`list`: other threads add meanwhile."""
    for account in list(route53_backends.values()):
        for backend in list(account.values()):
            yield from list(backend.zones.values())
