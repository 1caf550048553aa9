"""What a value must look like before it becomes a word of shell or a line of configuration."""

import re
from collections.abc import Iterable

# A value that CloudFormation fills in later (an ARN, a file system id): the CDK writes such a
# token into the text and CloudFormation replaces it with what AWS itself made up.
CDK_TOKEN = r"\$\{Token\[[A-Za-z0-9_.:+-]+\]\}"
WORD = re.compile(rf"(?:[A-Za-z0-9_.:/=@+,-]|{CDK_TOKEN})+")
OPTIONAL_WORD = re.compile(rf"(?:{WORD.pattern})?")
OPTIONAL_VERSION = re.compile(r"(?:[0-9]+(?:\.[0-9]+)*)?")
OPTIONAL_NUMBER = re.compile(r"[0-9]*")
OPTIONAL_CIDR = re.compile(r"(?:\d{1,3}(?:\.\d{1,3}){3}/\d{1,2})?")
STATIC_LINE = re.compile(
    r"(NodeName|PartitionName|NodeSet|DownNodes)=[^\s=#]+( [A-Za-z]+=[^\s#]+)*"
)
NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
PARTITION = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,62}")
INSTANCE_TYPE = re.compile(r"[a-z0-9-]+\.[a-z0-9-]+")
FEATURE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}")
COMPUTE_MODE = re.compile(r"(?:DEFAULT|EXCLUSIVE_PROCESS|PROHIBITED)?")
GPU_TYPE = re.compile(r"[a-z0-9][a-z0-9_.-]{0,31}|")
# Of a GRES type of MIG instances, like a100_1g.5gb.
MIG_TYPE = re.compile(r"_[1-7]g\.[0-9]{1,3}gb")
MIG_PROFILE = re.compile(r"[1-7]g\.[0-9]{1,3}gb")
MIG = re.compile(r"(?:[1-7]g\.[0-9]{1,3}gb(?:[+-][a-z.]+)?)?")
CONTAINERS, USERS = re.compile(r"(?:pyxis)?"), re.compile(r"(?:sssd)?")
USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
PATH, HOST = re.compile(r"/[A-Za-z0-9_./-]+"), re.compile(r"[a-z0-9-]+(?:\.[a-z0-9-]+)*")
FINGERPRINT = re.compile(rf"[0-9a-f]{{16}}|{CDK_TOKEN}|")
SHA256 = re.compile(r"[0-9a-f]{64}")
FINDING = re.compile(r"[a-z_]+(?: [A-Za-z0-9_-]+)?")
CONF_KEY = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
# One word: Slurm would read what follows a blank as a further setting, a # as a comment, and a
# \ at the end as a continued line.
CONF_VALUE = re.compile(r"[A-Za-z0-9_./:,=()*%+@-]+")
HOOK_SOURCE = re.compile(r"(?:s3|https?)://[A-Za-z0-9!_.~()/?=&%:+@-]+|inline:[A-Za-z0-9+/]+={0,2}")
HOOK_ARGUMENT = re.compile(r"[^\x00-\x1f\x7f\"'\\$`]+")
OPTIONAL_SHA256 = re.compile(r"(?:[0-9a-f]{64})?")
ENV_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
ENV_VALUE = re.compile(rf"(?:[^\x00-\x1f\x7f\"'\\$`]|{CDK_TOKEN})*")


def check(name: str, value: str, pattern: re.Pattern[str]) -> None:
    if not pattern.fullmatch(value):
        raise ValueError(f"{name}: {value!r} must match {pattern.pattern}")


def check_each(name: str, values: Iterable[str], pattern: re.Pattern[str]) -> None:
    for value in values:
        check(name, value, pattern)


def check_positive(name: str, *values: float) -> None:
    if any(value <= 0 for value in values):
        raise ValueError(f"{name}: must be above 0, is {values}")


def check_settings(name: str, settings: tuple[tuple[str, str], ...]) -> None:
    """Each key once, whatever its case: Slurm prints an error on stderr for a repeat."""
    seen: set[str] = set()
    for key, value in settings:
        check(f"{name} key", key, CONF_KEY)
        check(f"{name} {key}", value, CONF_VALUE)
        if key.lower() in seen:
            raise ValueError(f"{name} {key}: must be given once")
        seen.add(key.lower())


def check_word(name: str, value: str) -> str:
    """`value`, when it is one word of shell. Raises ValueError."""
    check(name, value, WORD)
    return value
