"""What a cluster file says of login nodes: machines beside the head for people to work on."""

from collections.abc import Iterator
from ipaddress import IPv4Network
from typing import Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.ec2 import LOGIN_ROLE, login_words
from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.catalogue import arch_of
from tidegate.wire.hooks import Hook, OnLoginConfigured
from tidegate.wire.problems import Place, and_
from tidegate.wire.section import Section, VolumeGib

# More than a team needs; each is paid by the hour, and takes an address of the network.
MAX_LOGIN_NODES = 10
# As many as ParallelCluster has pools of them. Source: its guide, "LoginNodes section".
MAX_LOGIN_KINDS = 10
# The kind of a file that names none. Its machines, group and address bear no other name, so they
# stay as they are where further kinds come beside it.
ONLY_KIND = LOGIN_ROLE
# Wider than this is most of the internet, and was mistyped.
_SHORTEST_PREFIX = 8


def _source(value: str) -> str:
    """With its prefix length, which EC2 asks for (API reference, IpRange): /32 of one address."""
    try:
        found = IPv4Network(value)
    except ValueError as error:
        raise ValueError(f"must be an IPv4 network like 203.0.113.0/24: {error}") from error
    if found.prefixlen < _SHORTEST_PREFIX:
        raise ValueError(f"{value} is nearly everybody; name the networks that people come from")
    return str(found)


class LoginOptions(Section):
    """What login nodes of one kind are."""

    instance_type: names.LoginInstanceType = Field(
        default="m6i.large",
        description="an instance type like m6i.large or m7g.large; its architecture is theirs",
    )
    count: Annotated[int, Field(ge=1, le=MAX_LOGIN_NODES)] = Field(
        default=1, description="how many; each is paid while the head runs"
    )
    root_gib: VolumeGib = Field(
        default=30, description="GiB of its root volume, no less than its image's snapshot"
    )
    zone: names.Zone | None = Field(
        default=None, description="its availability zone; that of the head when left out"
    )
    subnet: names.SubnetId | None = Field(
        default=None,
        description="its subnet in `zone`, like a public one; that of network.subnets when left"
        " out",
    )
    image: names.ImageId | None = Field(
        default=None, description="its machine image; that of the head when left out"
    )
    security_groups: names.SecurityGroups = Field(
        default=(), description="more security groups of it, of network.vpc, beside Tidegate's own"
    )
    policies: names.Policies = Field(
        default=(), description="IAM policies of your own for what root runs on it, beside its own"
    )
    ssh_from: Annotated[
        tuple[Annotated[str, AfterValidator(_source)], ...], AfterValidator(names.no_repeats)
    ] = Field(
        default=(),
        description="address ranges that may open SSH connections; nobody when left out: people"
        " come through Session Manager",
    )

    @property
    def arch(self) -> str:
        return arch_of(self.instance_type)


class LoginHooksModel(Section):
    """Scripts that login nodes of this kind run; they come after those of `hooks`."""

    on_login_configured: OnLoginConfigured = ()


class LoginKindModel(LoginOptions):
    """Login nodes of one kind: they have an address and a security group of their own."""

    hooks: LoginHooksModel = Field(
        default=LoginHooksModel(), description="scripts of its own, beside those of all login nodes"
    )


def _few_apart(kinds: dict[str, LoginKindModel]) -> dict[str, LoginKindModel]:
    """CloudFormation's names have no hyphens."""
    if len(kinds) > MAX_LOGIN_KINDS:
        raise ValueError(f"at most {MAX_LOGIN_KINDS} kinds, has {len(kinds)}")
    known: dict[str, str] = {}
    for name in kinds:
        if (other := known.setdefault(name.replace("-", ""), name)) != name:
            raise ValueError(f"{other} and {name} differ by hyphens alone: rename one of them")
    return kinds


class LoginModel(LoginOptions):
    """Login nodes: people work there, and not beside slurmctld. None when left out.

    Of one kind, which is said here, or of several, where `kinds` stands alone.
    """

    kinds: Annotated[
        dict[names.LoginKindName, LoginKindModel], Field(min_length=1), AfterValidator(_few_apart)
    ] = Field(
        default_factory=dict,
        description="several kinds by name, in place of all else here; one called login keeps the"
        " machines of a file without kinds",
    )

    @model_validator(mode="after")
    def _says_each_once(self) -> Self:
        if self.kinds and (beside := sorted(self.model_fields_set - {"kinds"})):
            of_one = len(beside) == 1
            text = f"{and_(beside)} {'stands' if of_one else 'stand'} beside kinds: say"
            raise ValueError(f"{text} {'it' if of_one else 'them'} in each kind")
        return self


@frozen
class LoginKind:
    """Login nodes of one kind. `place`: where the file says what they are.

    `hooks`: the scripts of all login nodes, then its own.
    """

    name: str
    place: Place
    model: LoginOptions
    hooks: tuple[Hook, ...]

    @property
    def words(self) -> str:
        """`login nodes`, and `login nodes gpu` of a kind gpu."""
        return login_words(self.name)

    @property
    def host_name(self) -> str:
        """`login`, and `login-gpu` of a kind gpu: so its address and its machines begin."""
        return ONLY_KIND if self.name == ONLY_KIND else f"{ONLY_KIND}-{self.name}"


def login_kinds(model: LoginModel | None, hooks: tuple[Hook, ...]) -> Iterator[LoginKind]:
    """All kinds of a file. `hooks`: the scripts of all login nodes."""
    if model and not model.kinds:
        yield LoginKind(ONLY_KIND, ("login",), model, hooks)
    for name, kind in model.kinds.items() if model else ():
        own = tuple(each.hook() for each in kind.hooks.on_login_configured)
        yield LoginKind(name, ("login", "kinds", name), kind, (*hooks, *own))
