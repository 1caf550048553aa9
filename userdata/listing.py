"""Reads one answer of S3's ListObjectsV2, asked with `encoding-type=url`.

    listing.py PREFIX <answer

Prints the token of the next answer, quoted ("" after the last one), then what lies under the
prefix, a line each: bytes, address, name. A name that could leave the folder or hide in it is left
out, and standard error says so. Runs on the image's own Python, which may be 3.9.
Source: S3 API reference, ListObjectsV2.
"""

import re
import sys
from urllib.parse import quote, unquote_plus
from xml.etree import ElementTree

_PART = r"[A-Za-z0-9_][A-Za-z0-9._~+:%@=^-]*"
_NAME = re.compile(f"{_PART}(?:/{_PART})*")


def main() -> None:
    prefix = sys.argv[1]
    answer = ElementTree.parse(sys.stdin.buffer).getroot()
    print(quote(answer.findtext("{*}NextContinuationToken", ""), safe=""))
    for each in answer.findall("{*}Contents"):
        key = unquote_plus(each.findtext("{*}Key", ""))
        name = key[len(prefix) :]
        if _NAME.fullmatch(name):
            print(each.findtext("{*}Size", "0"), quote(key, safe="/"), name)
        elif not name.endswith("/") and name:
            print(f"left out: {key!r}", file=sys.stderr)


if __name__ == "__main__":
    main()
