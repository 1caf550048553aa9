"""Numbers in slurm.conf, as Slurm reads them."""

import re

_WITHOUT_BOUND = ("unlimited", "infinite")
_NUMBER = re.compile(r"\+?(?P<digits>0x[0-9a-f]{1,30}|0[0-7]{0,30}|[1-9][0-9]{0,30})(?P<kilo>k?)")
_BASES = {"0x": 16, "0": 8}


def slurm_number(value: str, bits: int) -> int | None:
    """The number that Slurm reads from a key of so many bits; None: it ends at it.

    Source: Slurm 22.05 to 26.05, parse_value.c: a prefix says the base, and K is 1024 from 32 bits
    on.
    """
    if value.lower() in _WITHOUT_BOUND:
        return (1 << bits) - 1
    found = _NUMBER.fullmatch(value.lower())
    if found is None or (found["kilo"] and bits < 32):
        return None
    digits = found["digits"]
    base = _BASES.get(digits[:2]) or _BASES.get(digits[:1]) or 10
    number = int(digits, base) * (1024 if found["kilo"] else 1)
    return number if number < 1 << bits else None
