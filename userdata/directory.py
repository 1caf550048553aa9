"""sssd's configuration for a directory of people, without its password."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from userdata.patterns import OPTIONAL_WORD, check

CA_FILE = "/etc/sssd/tidegate-ca.pem"


@dataclass(frozen=True, slots=True)
class Directory:
    """What machines need to know people by a directory.

    `options`: of sssd-ldap(5), for its one domain. `secret`: with the password of who asks, "" for
    nobody. `ca_certificate`: PEM, "" for the system's.
    """

    options: tuple[tuple[str, str], ...]
    secret: str = ""
    ca_certificate: str = ""

    def __post_init__(self) -> None:
        check("secret of the directory", self.secret, OPTIONAL_WORD)
        for key, value in self.options:
            if not value or not (key + value).isprintable() or "=" in key:
                raise ValueError(f"{key}: {value!r} is no line of sssd.conf")

    def conf(self, shared_dir: str) -> str:
        """sssd.conf. Homes are in the shared folder, whatever the directory says."""
        options = {
            "id_provider": "ldap",
            "auth_provider": "ldap",
            "override_homedir": f"{shared_dir}/home/%u",
            "default_shell": "/bin/bash",
            "cache_credentials": "true",
            "ldap_tls_reqcert": "demand",
            **({"ldap_tls_cacert": CA_FILE} if self.ca_certificate else {}),
            **dict(self.options),
        }
        return "".join(
            _section(name, lines)
            for name, lines in (
                ("sssd", {"services": "nss, pam, ssh", "domains": "tidegate"}),
                ("domain/tidegate", options),
            )
        )

    def settings(self, shared_dir: str) -> Mapping[str, str]:
        """For the stage `directory`."""
        return {
            "SSSD_CONF": self.conf(shared_dir),
            "DIRECTORY_SECRET": self.secret,
            "DIRECTORY_CA": self.ca_certificate,
        }


def asked(
    *,
    uris: Iterable[str],
    search_base: str,
    schema: str,
    bind_dn: str = "",
    secret: str = "",
    ca_certificate: str = "",
    access_filter: str = "",
    options: Iterable[tuple[str, str]] = (),
) -> Directory:
    """What the cluster file says. Without `access_filter` everybody may log in."""
    addresses = tuple(uris)
    found = {
        "ldap_uri": ",".join(addresses),
        "ldap_search_base": search_base,
        "ldap_schema": schema,
    }
    # sssd sends no password without TLS; names would come from anybody.
    if any(each.startswith("ldap://") for each in addresses):
        found["ldap_id_use_start_tls"] = "true"
    if schema == "ad":
        # It refers to other domains at each question, and sssd's default is to ask them all, for
        # nothing more. Source: sssd-ldap(5), ldap_referrals.
        found |= {"ldap_id_mapping": "true", "ldap_referrals": "false"}
    if bind_dn:
        found["ldap_default_bind_dn"] = bind_dn
    if access_filter:
        found |= {"access_provider": "ldap", "ldap_access_filter": access_filter}
    return Directory(tuple({**found, **dict(options)}.items()), secret, ca_certificate)


def _section(name: str, lines: Mapping[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())
