"""The head's people are published without secrets, whole or not at all, into our own folder."""

import grp
import pwd

import pytest

from tidegate.agent.users import FOLDER, Accounts, UserList, publish_accounts, render_accounts
from tidegate.core.errors import BadConfig


def user(name, uid, gid=1000, gecos=""):
    return pwd.struct_passwd((name, "$6$secret", uid, gid, gecos, f"/home/{name}", "/bin/bash"))


def group(name, gid, *members):
    return grp.struct_group((name, "$6$secret", gid, list(members)))


def test_people_and_their_groups_are_published_and_nobody_else():
    found = render_accounts(
        [user("bob", 1002, 1002), user("ada", 1001), user("root", 0, 0), user("nobody", 65534)],
        [
            group("ml", 1000),
            group("vision", 2000, "bob", "ada", "root"),
            group("empty", 3000),
            group("sudo", 27, "ada"),
        ],
    )

    assert found.passwd == (
        "ada:x:1001:1000::/home/ada:/bin/bash\nbob:x:1002:1002::/home/bob:/bin/bash\n"
    )
    assert found.group == "ml:x:1000:\nvision:x:2000:ada,bob\n"


def test_a_field_cannot_forge_a_line():
    found = render_accounts([user("eve", 1001, gecos="x\nroot2:x:0:0::/:/bin/sh")], [])

    assert found.passwd == ""


def test_files_are_readable_by_all_and_written_only_when_changed(tmp_path):
    accounts = Accounts("ada:x:1001:1000::/home/ada:/bin/bash\n", "ml:x:1000:\n")

    assert publish_accounts(tmp_path, accounts)
    assert not publish_accounts(tmp_path, accounts)

    folder = tmp_path / FOLDER
    assert sorted(path.name for path in folder.iterdir()) == ["group", "passwd"]
    assert (folder / "passwd").read_text() == accounts.passwd
    assert (folder / "passwd").stat().st_mode & 0o777 == 0o644
    assert folder.stat().st_mode & 0o777 == 0o755


def test_a_folder_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / ".tidegate").symlink_to(tmp_path / "elsewhere")

    with pytest.raises(BadConfig):
        publish_accounts(tmp_path, Accounts("", ""))


def test_a_folder_that_others_may_write_to_is_refused(tmp_path):
    (tmp_path / ".tidegate").mkdir()
    (tmp_path / ".tidegate").chmod(0o777)

    with pytest.raises(BadConfig):
        publish_accounts(tmp_path, Accounts("", ""))


def test_trouble_is_said_once_a_minute_at_most_and_never_stops_the_agent(tmp_path, caplog):
    (tmp_path / ".tidegate").write_text("in the way")
    now_s = 0.0
    users = UserList(tmp_path, now_s=lambda: now_s)

    users.refresh()
    now_s = 100.0
    users.refresh()

    assert len(caplog.records) == 1
    assert ".tidegate" in caplog.records[0].getMessage()
