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


# Source: sssd-ldap(5), sssd.conf(5), sssd-ldap-attributes(5).
ACTIVE_DIRECTORY = {
    "ldap_id_mapping": "true",
    # It takes names in any case, and so do people; Slurm's accounting has them in lower case.
    "case_sensitive": "false",
    # It refers to other domains at each question, and sssd's default is to ask them all, for
    # nothing more.
    "ldap_referrals": "false",
    # sshd asks a key's owner for no password, so nothing else would keep a disabled account out.
    "access_provider": "ldap",
    "ldap_access_order": "expire",
    "ldap_account_expire_policy": "ad",
    # Where it has a place for keys; an attribute of your own under `options`.
    "ldap_user_ssh_public_key": "altSecurityIdentities",
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
    """What the cluster file says. Without `access_filter` everybody may log in; of Active Directory
    nobody whose account is disabled or has expired.
    """
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
        found |= ACTIVE_DIRECTORY
    if bind_dn:
        found["ldap_default_bind_dn"] = bind_dn
    if access_filter:
        found |= {"access_provider": "ldap", "ldap_access_filter": access_filter}
        if schema == "ad":
            found["ldap_access_order"] = "filter, expire"
    return Directory(tuple({**found, **dict(options)}.items()), secret, ca_certificate)


def _section(name: str, lines: Mapping[str, str]) -> str:
    return f"[{name}]\n" + "".join(f"{key} = {value}\n" for key, value in lines.items())
