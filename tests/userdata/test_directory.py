"""What sssd is told; tests/boot/test_directory.py asks a real directory."""

import pytest

from userdata.directory import Directory, asked

BASE = "dc=example,dc=com"


def lines(found: Directory) -> list[str]:
    return found.conf("/work").splitlines()


def test_homes_are_in_the_shared_folder_whatever_the_directory_says() -> None:
    found = asked(uris=["ldaps://a"], search_base=BASE, schema="rfc2307")

    assert "override_homedir = /work/home/%u" in lines(found)


def test_the_certificate_is_always_asked_for() -> None:
    found = asked(uris=["ldaps://a", "ldap://b"], search_base=BASE, schema="rfc2307")

    assert "ldap_tls_reqcert = demand" in lines(found)
    assert "ldap_id_use_start_tls = true" in lines(found)
    assert "ldap_uri = ldaps://a,ldap://b" in lines(found)


def test_numbers_follow_from_active_directory_s_ids() -> None:
    found = asked(uris=["ldaps://a"], search_base=BASE, schema="ad")

    assert {"ldap_schema = ad", "ldap_id_mapping = true"} <= set(lines(found))


def test_what_the_site_adds_goes_before_what_is_usual() -> None:
    found = asked(
        uris=["ldaps://a"],
        search_base=BASE,
        schema="rfc2307",
        options=[("default_shell", "/bin/zsh")],
    )

    assert [each for each in lines(found) if "shell" in each] == ["default_shell = /bin/zsh"]


def test_no_value_can_add_a_line() -> None:
    with pytest.raises(ValueError, match="is no line"):
        asked(uris=["ldaps://a"], search_base=f"{BASE}\nx = y", schema="rfc2307")
