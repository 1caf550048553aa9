"""Writes where instance types are offered: `python -m local.offerings`.

The answers of EC2 DescribeInstanceTypeOfferings, as moto ships them, of the types in the
catalogue. Zones are counted and not named: us-east-1a is another zone in every account. Not of
UltraServers: EC2 shows where they are to accounts that it has let in.
"""

import csv
import gzip
import io
import json
from collections import Counter, defaultdict
from pathlib import Path

import moto

from tidegate.core.model.ultraservers import is_in_ultraserver
from tidegate.wire.catalogue import load_catalogue

OFFERINGS = Path(__file__).parent.parent / "tidegate" / "data" / "offerings.csv"
ANSWERS = Path(moto.__file__).parent / "ec2" / "resources" / "instance_type_offerings"


def offerings_csv() -> str:
    """The whole file: a line for each type, `region:zones` for each region that has it."""
    zones: dict[str, Counter[str]] = defaultdict(Counter)
    known = {name for name in load_catalogue() if not is_in_ultraserver(name)}
    for answer in sorted((ANSWERS / "availability-zone").glob("*.json.gz")):
        region = answer.name.removesuffix(".json.gz")
        for each in json.loads(gzip.decompress(answer.read_bytes())):
            if each["InstanceType"] in known:
                zones[each["InstanceType"]][region] += 1
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(("name", "regions"))
    for name, counts in sorted(zones.items()):
        table.writerow((name, " ".join(f"{region}:{n}" for region, n in sorted(counts.items()))))
    return text.getvalue()


if __name__ == "__main__":
    OFFERINGS.write_text(offerings_csv())
