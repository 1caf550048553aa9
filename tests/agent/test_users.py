"""The head's people are published without secrets, whole or not at all, into our own folder."""

import grp
import pwd

import pytest

from tidegate.agent.accounts import People
from tidegate.agent.users import FOLDER, Accounts, UserList, publish_accounts, render_accounts
from tidegate.core.model.errors import BadConfig


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
    users = UserList(tmp_path, None, now_s=lambda: now_s)

    users.refresh()
    now_s = 100.0
    users.refresh()

    assert len(caplog.records) == 1
    assert ".tidegate" in caplog.records[0].getMessage()


# -- a new head ----------------------------------------------------------------------------

ROOT = pwd.struct_passwd(("root", "x", 0, 0, "root", "/root", "/bin/bash"))
ADA, BOB, EVE = user("ada", 1001), user("bob", 1002), user("eve", 1003)
ML = group("ml", 1000)
VISION = group("vision", 2000, "ada", "bob")


class Head:
    """A head with files and a folder of its own; `ldap`: whom only a directory service knows."""

    def __init__(self, folder, shared, *users, groups=(ML,)):
        self.etc, self.state, self.shared = folder / "etc", folder / "state", shared
        self.etc.mkdir(parents=True)
        self.state.mkdir()
        self.users, self.groups, self.ldap = [ROOT, *users], list(groups), []
        self.now_s = 0.0
        self.list = self.restarted()

    def restarted(self):
        return UserList(
            self.shared,
            self.state,
            now_s=lambda: self.now_s,
            people=lambda: People((*self.users, *self.ldap), tuple(self.groups)),
            etc=self.etc,
        )

    def publishes(self):
        """The names that nodes know afterwards."""
        lines = [":".join(map(str, (u[0], "x", *u[2:]))) for u in self.users]
        (self.etc / "passwd").write_text("\n".join(lines) + "\n")
        lines = [f"{g.gr_name}:x:{g.gr_gid}:{','.join(g.gr_mem)}" for g in self.groups]
        (self.etc / "group").write_text("\n".join(lines) + "\n")
        self.now_s += 100.0
        self.list.refresh()
        text = (self.shared / FOLDER / "passwd").read_text()
        return [line.split(":")[0] for line in text.splitlines()]

    def members(self):
        text = (self.shared / FOLDER / "group").read_text()
        rows = [line.split(":") for line in text.splitlines()]
        return {name: members for name, _, _, members in rows}


@pytest.fixture
def shared(tmp_path):
    (tmp_path / "shared").mkdir()
    return tmp_path / "shared"


@pytest.fixture
def old(tmp_path, shared):
    """A head that published its people, and is gone now."""
    head = Head(tmp_path / "old", shared, ADA, BOB, groups=[ML, VISION])
    assert head.publishes() == ["ada", "bob"]
    return head


def test_a_new_head_that_knows_nobody_takes_nobody_away(tmp_path, shared, old):
    new = Head(tmp_path / "new", shared)

    assert [new.publishes() for _ in range(3)] == [["ada", "bob"]] * 3
    assert new.members() == {"ml": "", "vision": "ada,bob"}


def test_a_new_head_adds_whom_it_knows(tmp_path, shared, old):
    new = Head(tmp_path / "new", shared, EVE, groups=[ML, group("vision", 2000, "eve")])

    assert new.publishes() == ["ada", "bob", "eve"]
    assert new.members() == {"ml": "", "vision": "ada,bob,eve"}


def test_whom_a_person_removes_from_the_head_is_gone(tmp_path, shared, old):
    new = Head(tmp_path / "new", shared, ADA, BOB, groups=[ML, VISION])
    new.publishes()

    new.users.remove(BOB)
    new.groups = [ML, group("vision", 2000, "ada")]

    assert new.publishes() == ["ada"]
    assert new.members()["vision"] == "ada"


def test_the_last_one_can_be_removed_too(old):
    old.users, old.groups = [ROOT], []

    assert old.publishes() == []
    assert old.members() == {}


def test_a_removal_is_seen_by_an_agent_that_was_restarted_meanwhile(old):
    old.users.remove(BOB)
    old.list = old.restarted()

    assert old.publishes() == ["ada"]


def test_one_who_came_and_went_while_nothing_could_be_written_is_gone(shared, old):
    (shared / FOLDER).chmod(0o777)
    old.users.append(EVE)
    old.publishes()
    (shared / FOLDER).chmod(0o755)
    assert old.publishes() == ["ada", "bob", "eve"]

    old.users.remove(EVE)

    assert old.publishes() == ["ada", "bob"]


def test_a_renamed_user_has_one_name(old):
    old.users[1] = user("ada2", 1001)
    old.groups = [ML, group("vision", 2000, "ada2", "bob")]

    assert old.publishes() == ["ada2", "bob"]
    assert old.members()["vision"] == "ada2,bob"


def test_who_leaves_the_last_group_is_not_put_back(old):
    old.groups = [ML, group("vision", 2000)]

    old.publishes()

    assert old.members() == {"ml": ""}


def test_a_directory_service_that_is_away_takes_nobody_away(old):
    old.ldap = [EVE]
    assert old.publishes() == ["ada", "bob", "eve"]

    old.ldap = []

    assert old.publishes() == ["ada", "bob", "eve"]


def test_files_without_root_are_not_believed(old, caplog):
    old.users = []

    assert old.publishes() == ["ada", "bob"]
    assert "knows no root" in caplog.text


def test_a_number_stays_with_whose_files_it_is_on(tmp_path, shared, old, caplog):
    new = Head(tmp_path / "new", shared, user("ubuntu", 1001))

    assert new.publishes() == ["ada", "bob"]
    assert "ubuntu: not published" in caplog.text


def test_without_a_memory_nobody_is_removed(old):
    old.list = UserList(
        old.shared, None, now_s=lambda: old.now_s, people=lambda: People((ROOT,), ()), etc=old.etc
    )
    old.users = [ROOT]

    assert old.publishes() == ["ada", "bob"]


@pytest.mark.parametrize("text", ["", "{}", "[1]", "nonsense", '{"users": 3}'])
def test_a_memory_that_cannot_be_read_removes_nobody(old, text):
    (old.state / "users.json").write_text(text)
    old.users = [ROOT]

    assert old.publishes() == ["ada", "bob"]


def test_a_line_taken_out_of_the_list_is_a_removal_too(tmp_path, shared, old):
    new = Head(tmp_path / "new", shared)
    listed = shared / FOLDER / "passwd"
    ada, _bob = listed.read_text().splitlines(keepends=True)
    listed.write_text(ada)

    assert new.publishes() == ["ada"]


def test_a_comment_in_another_encoding_passes_through(shared, old):
    old.users[1] = user("ada", 1001, gecos="Ad\udce9")
    line = "eve:x:1003:1000::/home/eve:/bin/bash\n"
    with (shared / FOLDER / "passwd").open("a") as file:
        file.write(line)
    (old.etc / "passwd").write_text("root:x:0:0::/:/bin/sh\n")
    old.now_s += 100.0

    old.list.refresh()

    assert b"Ad\xe9:" in (shared / FOLDER / "passwd").read_bytes()
    assert line.encode() in (shared / FOLDER / "passwd").read_bytes()


def test_forged_lines_bring_in_no_system_account(tmp_path, shared, old):
    with (shared / FOLDER / "passwd").open("a") as file:
        file.write("root2:x:0:0::/:/bin/sh\nx:x:1:::\nmany:x:70000:1::/:/bin/sh\n:x:1009:1::/:\n")
    with (shared / FOLDER / "group").open("a") as file:
        file.write("sudo:x:27:ada\n")
    new = Head(tmp_path / "new", shared)

    assert new.publishes() == ["ada", "bob"]
    assert "sudo" not in new.members()
