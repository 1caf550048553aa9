"""Numbers from outside are finite: NaN is past no time and over no limit, and infinity never ends.

The one home of that rule: each model of what comes from outside takes `FINITE` into its
configuration, each dataclass of the core is read by a `Kind`, and other JSON by `parse_json`.
"""

import json
import math
from typing import Any

from pydantic import ConfigDict

FINITE = ConfigDict(allow_inf_nan=False)


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text. Errors: ValueError, with what is wrong, also when nested too deep.

    Python's own reader takes `NaN` and `Infinity`, which are no JSON, and `1e999`, which no float
    holds.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number
