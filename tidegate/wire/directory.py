"""What a cluster file says of a directory of people: LDAP, or Active Directory by LDAP."""

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from tidegate.core.model.frozen import frozen
from tidegate.wire import names
from tidegate.wire.section import Section

# It goes to nodes in user data, of which EC2 takes 16 KiB.
CA_MAX_CHARS = 4096
_TEXT = r"^[^\x00-\x1f\x7f]{1,512}$"

LdapUri = Annotated[
    str,
    Field(
        pattern=rf"^ldaps?://[A-Za-z0-9.-]+(:{names.PORT})?$",
        json_schema_extra={"x-expected": "like ldaps://ldap.example.com"},
    ),
]
DistinguishedName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z][A-Za-z0-9-]*=[^\x00-\x1f\x7f]{1,500}$",
        json_schema_extra={"x-expected": "like dc=example,dc=com"},
    ),
]
LdapFilter = Annotated[
    str,
    Field(
        pattern=r"^\([^\x00-\x1f\x7f]{1,500}\)$",
        json_schema_extra={"x-expected": "an LDAP filter like (memberOf=cn=hpc,dc=example,dc=com)"},
    ),
]
OptionName = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9_]{1,60}$", json_schema_extra={"x-expected": "like ldap_user_name"}
    ),
]
OptionValue = Annotated[
    str, Field(pattern=_TEXT, json_schema_extra={"x-expected": "one line of text"})
]

# What the section says itself, and what would let anybody stand in for the directory, or read
# passwords on their way to it.
OF_SECTION = (
    *("id_provider", "auth_provider", "access_provider", "ldap_uri", "ldap_search_base"),
    *("ldap_schema", "ldap_default_bind_dn", "ldap_default_authtok", "ldap_tls_reqcert"),
    *("ldap_tls_cacert", "ldap_id_use_start_tls", "ldap_access_filter", "ldap_id_mapping"),
    "ldap_auth_disable_tls_never_use_in_production",
)
HOMES = "override_homedir"


def _certificate(value: str) -> str:
    begins, ends = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    if not (value.strip().startswith(begins) and value.strip().endswith(ends)):
        raise ValueError(f"must be PEM: from {begins} to {ends}")
    if len(value) > CA_MAX_CHARS:
        raise ValueError(f"has {len(value)} characters, user data takes {CA_MAX_CHARS} of it")
    return value.strip() + "\n"


def _others(value: dict[str, str]) -> dict[str, str]:
    if ours := sorted(value.keys() & set(OF_SECTION)):
        raise ValueError(f"{', '.join(ours)}: is set by the section itself")
    return value


@frozen
class Directory:
    """A directory, as sssd is to ask it. `secret`: ARN of what holds the password of `bind_dn`."""

    uris: tuple[str, ...]
    search_base: str
    schema: str
    bind_dn: str
    secret: str
    ca_certificate: str
    access_filter: str
    options: tuple[tuple[str, str], ...]


class DirectoryModel(Section):
    """People come from a directory by LDAP, with TLS always; sssd asks it on every machine."""

    uris: Annotated[
        tuple[LdapUri, ...], Field(min_length=1, max_length=5), AfterValidator(names.no_repeats)
    ] = Field(description="where it answers; ldap:// with StartTLS; the next where one does not")
    search_base: DistinguishedName = Field(description="below what people and groups are")
    kind: Literal["rfc2307", "rfc2307bis", "ad"] = Field(
        default="rfc2307",
        description="how it writes groups down; ad: numbers follow from Active Directory's ids",
    )
    bind_dn: DistinguishedName | None = Field(
        default=None, description="who asks it, with the right to read only; nobody when left out"
    )
    bind_password_secret: names.SecretArn | None = Field(
        default=None, description="a secret of Secrets Manager with bind_dn's password, as text"
    )
    ca_certificate: Annotated[str, AfterValidator(_certificate)] | None = Field(
        default=None, description="PEM of who signs its certificate; the system's when left out"
    )
    access_filter: LdapFilter | None = Field(
        default=None, description="an LDAP filter: who may log in; everybody when left out"
    )
    options: Annotated[dict[OptionName, OptionValue], AfterValidator(_others)] = Field(
        default_factory=dict, description="more lines of sssd.conf for its domain, see sssd-ldap(5)"
    )

    @model_validator(mode="after")
    def _binds(self) -> Self:
        if bool(self.bind_dn) != bool(self.bind_password_secret):
            raise ValueError("bind_dn and bind_password_secret belong together")
        return self

    def directory(self) -> Directory:
        return Directory(
            uris=self.uris,
            search_base=self.search_base,
            schema=self.kind,
            bind_dn=self.bind_dn or "",
            secret=self.bind_password_secret or "",
            ca_certificate=self.ca_certificate or "",
            access_filter=self.access_filter or "",
            options=tuple(self.options.items()),
        )
