"""Where people come from: ParallelCluster's directory service."""

from pydantic import ValidationError

from tidegate.cli.pcluster.outcome import Gap, Translated, Yaml, reason
from tidegate.cli.pcluster.shape import Configuration, DirectoryService
from tidegate.wire.directory import HOMES, OF_SECTION, DirectoryModel

STAND_IN_PEM = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
_PLACE = "DirectoryService"


def people(old: Configuration, done: Translated) -> None:
    """The section `directory`; the certificate is a file there, and text here."""
    service = old.directory_service
    if service is None:
        return
    made = _directory(service, done)
    try:
        DirectoryModel.model_validate(made)
    except ValidationError as error:
        done.lose(_PLACE, "directory", f"is left out: {reason(error, DirectoryModel)}")
        return
    done.file["directory"] = made
    if service.ldap_tls_ca_cert:
        text = f"what is in {service.ldap_tls_ca_cert} on the head: the authority's certificate"
        made["ca_certificate"] = None
        done.gaps.append(Gap(("directory", "ca_certificate"), text, STAND_IN_PEM))


def _directory(service: DirectoryService, done: Translated) -> Yaml:
    name = service.domain_name
    made: Yaml = {
        "uris": [_uri(each.strip()) for each in service.domain_addr.split(",")],
        "search_base": name if "=" in name else ",".join(f"dc={part}" for part in name.split(".")),
    }
    if "=" not in name:  # Active Directory's way to say it
        made["kind"] = "ad"
    if service.domain_read_only_user and service.password_secret_arn:
        made["bind_dn"] = service.domain_read_only_user
        made["bind_password_secret"] = service.password_secret_arn
    if found := service.ldap_access_filter:
        made["access_filter"] = found if found.startswith("(") else f"({found})"
    if service.ldap_tls_req_cert not in (None, "demand", "hard"):
        means = "its certificate is always asked for: name the authority's in ca_certificate"
        done.lose(f"{_PLACE}.LdapTlsReqCert", "directory", means)
    more = {key: str(value) for key, value in (service.additional_sssd_configs or {}).items()}
    for key in sorted(more.keys() & set(OF_SECTION)):
        means = f"is set by the section itself, and not to {more.pop(key)}"
        done.lose(f"{_PLACE}.AdditionalSssdConfigs.{key}", "directory", means)
    if homes := more.pop(HOMES, ""):
        means = f"homes are in SHARED_DIR/home here, not {homes}; copy them (docs/migrating.md)"
        done.lose(f"{_PLACE}.AdditionalSssdConfigs.{HOMES}", "directory", means)
    return {**made, "options": more} if more else made


def _uri(address: str) -> str:
    return address if "://" in address else f"ldaps://{address}"
