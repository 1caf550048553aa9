"""Images of containers that nodes share: the importer itself, run as pyxis runs it and by many at
once on a real file system, with a stand-in for enroot.
"""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.userdata.images import IMAGE, ONE, TWO, WHOLE, Site

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of others: needs root")


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def wait_for(test: Callable[[], bool]) -> None:
    until = time.monotonic() + 30
    while not test():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_a_second_node_takes_what_the_first_has_imported(site: Site) -> None:
    first = site.start("a")
    second = site.start("b", "8.0")

    assert first.text == second.text == WHOLE.format(ONE)
    assert first.path == second.path == str(site.kept[0])
    assert len(site.calls("import")) == 1
    assert site.calls("digest") == [f"digest {IMAGE}"] * 2


def test_nothing_of_a_step_stays_on_its_node(site: Site) -> None:
    kept = site.start("a")
    site.release("a")

    assert not [each for each in (site.here / "a/disk").rglob("*") if each.is_file()]
    assert kept.text == WHOLE.format(ONE), "others may be about to unpack it"


def test_nodes_that_start_together_import_once_and_ask_the_registry_once(site: Site) -> None:
    site.put("slow", "0.5")

    begun = [site.begin(f"n{number}", "7.0") for number in range(8)]

    assert {each.ended().text for each in begun} == {WHOLE.format(ONE)}
    assert len(site.calls("import")) == 1
    assert len(site.calls("digest")) == 1


def test_a_tag_that_moved_is_another_image(site: Site) -> None:
    site.start("a")
    site.tag(TWO)

    assert site.start("b", "8.0").text == WHOLE.format(TWO)
    assert site.start("b", "9.0", f"{IMAGE}@{ONE}").text == WHOLE.format(ONE)
    assert len(site.calls("import")) == 2


def test_all_nodes_of_a_step_run_one_image_while_its_tag_moves(site: Site) -> None:
    assert site.start("a").text == WHOLE.format(ONE)
    site.tag(TWO)

    assert site.start("b").text == WHOLE.format(ONE)
    site.env["SLURM_RESTART_COUNT"] = "1"
    assert site.start("c").text == WHOLE.format(TWO), "a job that starts anew"


def test_a_digest_in_the_name_needs_no_registry_once_it_is_there(site: Site) -> None:
    pinned = f"{IMAGE}:1.0@{ONE}"
    site.start("a", image=pinned)
    site.put("denied")

    assert site.start("b", "8.0", pinned).text == WHOLE.format(ONE)
    assert site.calls("digest") == []


@pytest.mark.parametrize(
    ("other", "is_the_same"),
    [
        ("docker://registry.example/team/app:latest", True),
        ("docker://ada@registry.example#team/app", True),
        ("docker://elsewhere.example#team/app", False),
        ("docker://registry.example:5000#team/app", False),
        ("docker://registry.example#team/app/more", False),
    ],
)
def test_a_digest_counts_for_its_repository_alone(
    site: Site, other: str, is_the_same: bool
) -> None:
    """A registry may say of any image that it has any digest."""
    site.start("a")

    site.start("a", "8.0", other)

    assert len(site.kept) == (1 if is_the_same else 2)


@pytest.mark.parametrize("said", ["", "../../../etc/x", f"{ONE}x", "sha256:" + "A" * 64])
def test_what_is_no_digest_becomes_no_path(site: Site, said: str) -> None:
    site.put("tag", f"{said}\n")

    started = site.start("a")

    assert started.path == str(site.here / f"a/disk/images-{os.getuid()}/7.0.sqsh")
    assert site.kept == []
    assert "the registry tells no digest" in site.journal


def test_after_a_killed_import_another_node_imports(site: Site) -> None:
    """What it had started lives on for a while, and holds no lock."""
    site.put("slow", "40")
    holder = site.begin("a", "7.0")
    wait_for(lambda: (site.here / "importing").exists())
    (site.here / "slow").unlink()
    waiter = site.begin("b", "7.0")

    holder.kill()

    assert waiter.ended().text == WHOLE.format(ONE)
    (half,) = (site.here / "a/disk").rglob("*.sqsh")
    assert half.read_text() == "squashfs of", "it is still at it"
    assert holder.ended().path == ""
    assert len(site.kept) == 1


def test_half_a_copy_is_never_seen_and_goes(site: Site) -> None:
    site.command("cp", "#!/bin/bash\nprintf half >${{*: -1}}; touch {here}/half; sleep 20\n")
    holder = site.begin("a", "7.0")
    wait_for((site.here / "half").exists)
    (site.here / "bin/cp").unlink()

    holder.kill()
    started = site.start("b")

    assert started.text == WHOLE.format(ONE)
    assert len(list(site.cache.glob("*.part"))) == 1
    assert holder.ended().path == ""
    site.release("a")
    assert list(site.cache.glob("*.part")) == []
    assert Path(started.path).exists()


@pytest.mark.parametrize("harm", ["torn", "short", "gone", "led_astray", "empty"])
def test_what_is_not_whole_is_imported_anew(site: Site, harm: str) -> None:
    site.start("a")
    (kept,) = site.kept
    match harm:
        case "torn":
            site.record.write_text(f"{kept.name} {kept.stat().st_size}")
        case "short":
            kept.write_text("squashfs of")
        case "gone":
            kept.unlink()
        case "led_astray":
            site.record.write_text(f"../../../tag {(site.here / 'tag').stat().st_size}\n")
        case "empty":
            site.record.write_text("")

    assert site.start("b", "8.0").text == WHOLE.format(ONE)
    assert len(site.calls("import")) == 2


def test_a_registry_that_denies_is_told_in_enroot_s_words(site: Site) -> None:
    site.put("denied")

    started = site.start("a")

    assert started.path == ""
    assert "returned error code: 401" in started.log
    site.release("a")
    assert site.kept == []


@pytest.mark.parametrize(("image", "tries"), [(IMAGE, 2), (f"{IMAGE}@{ONE}", 1)])
def test_what_cannot_be_imported_is_not_tried_without_end(
    site: Site, image: str, tries: int
) -> None:
    site.put("full")

    started = site.start("a", image=image)

    assert started.path == ""
    assert "No space left on device" in started.log
    assert len(site.calls("import")) == tries
    assert site.start("b", "8.0").path == "", "which does not wait for the first"


def test_without_digests_each_node_imports_as_enroot_alone(site: Site) -> None:
    site.put("no_digests")

    started = site.start("a")

    assert started.path.startswith(str(site.here / "a/disk"))
    assert started.text == WHOLE.format(ONE)
    assert site.calls("import")[-1].endswith(f" {IMAGE}")
    assert site.kept == []


def test_a_registry_that_gives_no_list_by_digest_is_asked_by_the_tag(site: Site) -> None:
    site.put("no_lists")

    assert site.start("a").path == str(site.kept[0])
    assert site.start("b", "8.0").path == str(site.kept[0])


def test_what_moved_while_it_was_imported_by_its_tag_is_not_kept(site: Site) -> None:
    site.put("no_lists")
    site.put("moved", f"{TWO}\n")

    started = site.start("a")

    assert started.text == WHOLE.format(ONE)
    assert site.kept == []
    assert "moved while it was imported" in site.journal


def test_a_full_disk_costs_the_sharing_alone(site: Site) -> None:
    words = "cp: error writing: No space left on device"
    site.command("cp", f"#!/bin/bash\nprintf half >${{{{*: -1}}}}; echo {words!r} >&2; exit 1\n")
    site.put("slow", "0.5")

    begun = [site.begin(f"n{number}", "7.0") for number in range(4)]

    started = [each.ended() for each in begun]
    assert {each.text for each in started} == {WHOLE.format(ONE)}
    assert len({each.path for each in started}) == 4
    assert f"is not kept for other nodes: {words}" in site.journal
    assert [each.name for each in site.cache.iterdir() if "part" in each.name] == []


def test_after_a_full_disk_nobody_waits_for_a_while(site: Site) -> None:
    site.command("cp", "#!/bin/bash\nexit 1\n")
    site.start("a")
    (site.here / "bin/cp").unlink()

    assert site.start("b", "8.0").path.startswith(str(site.here / "b/disk"))
    site.record.write_text(f"failed {time.time() - 700:.0f} why\n")
    assert site.start("b", "9.0").path == str(site.kept[0])


def test_nobody_waits_without_end(site: Site) -> None:
    site.put("slow", "300")  # far longer than a busy machine needs for the rest
    holder = site.begin("a", "7.0")
    wait_for(lambda: (site.here / "importing").exists())
    (site.here / "slow").unlink()
    site.importer("b", WAIT_S=1)

    started = site.start("b")

    assert started.path.startswith(str(site.here / "b/disk"))
    assert "somebody else imports since more than 1 s" in site.journal
    holder.kill()
    holder.ended()


def test_a_file_system_without_locks_shares_nothing(site: Site) -> None:
    site.command("flock", "#!/bin/bash\necho 'flock: 9: No locks available' >&2; exit 71\n")

    started = site.start("a")

    assert started.text == WHOLE.format(ONE)
    assert site.kept == []
    assert "there are no locks in" in site.journal


def test_a_home_that_cannot_be_written_shares_nothing(site: Site) -> None:
    site.env["HOME"] = "/proc/none"

    assert site.start("a").text == WHOLE.format(ONE)


@needs_root
@pytest.mark.parametrize("folder", ["", "steps"])
def test_a_cache_that_somebody_else_made_is_not_used(site: Site, folder: str) -> None:
    (site.cache / "steps").mkdir(parents=True)
    os.chown(site.cache / folder, 1234, 1234)

    assert site.start("a").path.startswith(str(site.here / "a/disk"))
    assert "others than you can write in it" in site.journal


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o1777])
@pytest.mark.parametrize("folder", ["", "steps"])
def test_a_cache_into_which_others_can_put_images_is_not_used(
    site: Site, folder: str, mode: int
) -> None:
    """As where it is a link to a folder of a team's."""
    team = site.here / "team"
    (team / "steps").mkdir(parents=True, mode=0o755)
    (team / folder).chmod(mode)
    site.cache.parent.mkdir()
    site.cache.symlink_to(team)

    assert site.start("a").path.startswith(str(site.here / "a/disk"))
    assert "others than you can write in it" in site.journal
    (team / folder).chmod(0o755)
    assert site.start("b", "8.0").path.startswith(str(site.cache))


@needs_root
def test_no_image_comes_into_a_folder_that_somebody_else_made(site: Site) -> None:
    site.importer("a")
    own = site.here / "a/disk/images-0"
    os.chown(own, 1234, 1234)

    assert site.start("a").path == ""
    (site.here / "run/0").mkdir(parents=True)
    assert site.start("a", "8.0").path == str(site.kept[0])
    assert list(own.iterdir()) == []


@pytest.mark.parametrize("image", [IMAGE, "dockerd://app"])
def test_without_a_cache_or_a_registry_it_is_as_without_an_importer(
    tmp_path: Path, image: str
) -> None:
    site = Site(tmp_path, has_cache=image != IMAGE)

    started = site.start("a", image=image)

    assert started.path.startswith(str(site.here / "a/disk"))
    assert not site.cache.exists()
    assert site.calls("digest") == []


def test_what_a_job_s_shell_reads_first_says_nothing_to_pyxis(site: Site) -> None:
    """Modules of a site set BASH_ENV, and functions are handed on: pyxis takes the first line."""
    site.put("profile", "echo Welcome; stat() { echo 1; }\n")
    site.env.update(BASH_ENV=str(site.here / "profile"))
    site.env["BASH_FUNC_sha256sum%%"] = "() { echo Welcome; }"

    assert [site.start(name).path for name in "ab"] == [str(site.kept[0])] * 2
    assert len(site.calls("digest")) == 1


def test_an_importer_that_is_called_otherwise_says_so(site: Site) -> None:
    program = site.importer("a")

    done = subprocess.run([program, "list"], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (1, "")
    assert "unknown command: list" in done.stderr
