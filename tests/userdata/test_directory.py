"""What sssd is told; tests/boot/test_directory.py asks a real directory."""

import os
import subprocess
from pathlib import Path

import pytest

from userdata.bundle import read
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


def test_active_directory_s_referrals_are_not_followed() -> None:
    """sssd-ldap(5), ldap_referrals: on by default, and off is recommended there."""
    found = asked(uris=["ldaps://a"], search_base=BASE, schema="ad")

    assert "ldap_referrals = false" in lines(found)
    of_others = asked(uris=["ldaps://a"], search_base=BASE, schema="rfc2307")
    assert not any("referrals" in line for line in lines(of_others))


def test_of_active_directory_accounts_that_are_disabled_are_not_let_in() -> None:
    everybody = lines(asked(uris=["ldaps://a"], search_base=BASE, schema="ad"))
    some = lines(asked(uris=["ldaps://a"], search_base=BASE, schema="ad", access_filter="(a=b)"))

    assert {"access_provider = ldap", "ldap_account_expire_policy = ad"} <= {*everybody} & {*some}
    assert "ldap_access_order = expire" in everybody
    assert "ldap_access_order = filter, expire" in some


def test_names_of_active_directory_are_lower_case_as_slurm_s_are() -> None:
    of_ad = lines(asked(uris=["ldaps://a"], search_base=BASE, schema="ad"))
    other = lines(asked(uris=["ldaps://a"], search_base=BASE, schema="rfc2307"))

    assert "case_sensitive = false" in of_ad
    assert not [each for each in other if "case" in each or "expire" in each]


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


def login(folder: Path, body: str) -> subprocess.CompletedProcess[str]:
    """What the stage does of a login node's sshd, with its files in `folder`."""
    stage = read("both/directory.sh").replace("=/etc/", f"={folder}/etc/")
    stage = stage.replace("=/usr/lib/", f"={folder}/usr/lib/")
    (folder / "bin").mkdir(exist_ok=True)
    (folder / "bin/systemctl").write_text(f'#!/bin/sh\necho "$@" >>{folder}/calls\n')
    (folder / "bin/systemctl").chmod(0o755)
    return subprocess.run(
        ["bash", "-c", f"ROLE=login; {stage}\n{body}"],
        env={"PATH": f"{folder}/bin:{os.environ['PATH']}", "RUN_DIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_canonical_s_images_ask_the_directory_for_keys_too(tmp_path: Path) -> None:
    """Their sshd has EC2 Instance Connect's command as an option, which counts before any file."""
    name = "systemd/system/ssh.service.d/ec2-instance-connect.conf"
    of_package = tmp_path / "usr/lib" / name
    of_package.parent.mkdir(parents=True)
    of_package.touch()
    (tmp_path / "etc/ssh/sshd_config.d").mkdir(parents=True)
    put = 'put_file() { cat >"$1"; }; has_file() { true; };'

    assert login(tmp_path, f"{put} has_logins").returncode == 1
    done = login(tmp_path, f"{put} let_in && has_logins")

    assert done.returncode == 0, done.stderr
    assert (tmp_path / "etc" / name).readlink() == Path("/dev/null")
    told = (tmp_path / "calls").read_text().splitlines()
    assert told == ["daemon-reload", "try-restart ssh", "reload ssh"]


def test_where_nothing_stands_above_it_sshd_reads_its_file_anew(tmp_path: Path) -> None:
    (tmp_path / "etc/ssh/sshd_config.d").mkdir(parents=True)
    put = 'put_file() { cat >"$1"; }; has_file() { true; };'

    assert login(tmp_path, f"{put} let_in && has_logins").returncode == 0
    assert (tmp_path / "calls").read_text().splitlines() == ["reload ssh"]
