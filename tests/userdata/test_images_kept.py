"""Which images of containers stay, for how long, and what root shares with all users."""

import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.userdata.images import IMAGE, ONE, TWO, WHOLE, Site

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="files of others: needs root")
DAY_S = 86400


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def age(path: Path, days: float) -> None:
    at_s = time.time() - days * DAY_S
    os.utime(path, (at_s, at_s))


def share(site: Site, image: str = IMAGE) -> subprocess.CompletedProcess[str]:
    program = site.importer("head")
    command = [str(program), "share", image]
    return subprocess.run(
        command, env=site.environment("0.0"), capture_output=True, text=True, check=False
    )


@needs_root
def test_what_root_shares_no_user_imports(site: Site) -> None:
    done = share(site)
    started = site.start("a")

    assert (done.returncode, started.text) == (0, WHOLE.format(ONE)), done.stderr
    assert Path(started.path).parent == site.here / "shared"
    assert Path(started.path).stat().st_mode & 0o777 == 0o644
    assert len(site.calls("import")) == 1
    assert site.kept == []


@needs_root
def test_of_a_shared_image_too_the_registry_is_asked_for_what_the_tag_names(site: Site) -> None:
    share(site)
    site.tag(TWO)

    assert site.start("a").text == WHOLE.format(TWO)


@needs_root
@pytest.mark.parametrize("harm", ["open", "others", "link"])
def test_what_others_could_have_shared_is_not_run(site: Site, harm: str) -> None:
    share(site)
    shared = site.here / "shared"
    match harm:
        case "open":
            shared.chmod(0o1777)
        case "others":
            os.chown(shared, 1234, 1234)
        case "link":
            shared.rename(site.here / "moved_to")
            shared.symlink_to(site.here / "moved_to")

    assert site.start("a").path == str(site.kept[0])


@needs_root
def test_sharing_says_what_keeps_it(site: Site) -> None:
    site.put("denied")
    denied = share(site)
    (site.here / "bin/enroot").unlink()
    lacking = share(site)

    assert (denied.returncode, lacking.returncode) == (1, 1)
    assert "returned error code: 401" in denied.stderr
    assert "the head's image lacks enroot" in lacking.stderr
    assert list((site.here / "shared").iterdir()) == []


def old_image(site: Site, digest: str, *, days: float, gib: float = 0.001) -> Path:
    """One that is kept, last used so long ago."""
    (site.cache / "steps").mkdir(parents=True, exist_ok=True)
    key = f"{digest.replace(':', '-')}.x86_64.0123456789abcdef"
    squashfs, record = site.cache / f"{key}.a.1.2.sqsh", site.cache / key
    with squashfs.open("w") as file:
        file.truncate(int(gib * 2**30))
    record.write_text(f"{squashfs.name} {squashfs.stat().st_size}\n")
    age(squashfs, 30)
    age(record, days)
    return record


def test_what_nobody_used_for_days_goes_after_those_have_read_it_who_were_given_it(
    site: Site,
) -> None:
    old, used = old_image(site, TWO, days=15), old_image(site, "sha256:" + "3" * 64, days=13)

    site.start("a")

    assert (old.read_text(), bool(used.read_text())) == ("", True)
    assert len(site.kept) == 3
    age(site.cache / f"{old.name}.a.1.2.sqsh", 0.05)
    site.start("a", "8.0", "docker://registry.example#team/other")
    assert f"{old.name}.a.1.2.sqsh" not in {each.name for each in site.kept}
    assert len(site.kept) == 3


def test_beyond_the_limit_goes_what_was_used_longest_ago(site: Site) -> None:
    digests = [f"sha256:{digit * 64}" for digit in "345"]
    records = [
        old_image(site, digest, days=days, gib=0.4)
        for digest, days in zip(digests, (1, 3, 2), strict=True)
    ]

    site.start("a")

    assert [bool(each.read_text()) for each in records] == [True, False, True]


def test_using_an_image_keeps_it(site: Site) -> None:
    site.start("a")
    age(site.record, 20)

    site.start("b", "8.0")

    assert time.time() - site.record.stat().st_mtime < DAY_S


def test_what_killed_nodes_left_goes(site: Site) -> None:
    (site.cache / "steps").mkdir(parents=True)
    left = [site.cache / name for name in ("1.0.n.5.part", "sha256-x.n.1.2.sqsh", "steps/1.0.0.ab")]
    for each in left:
        each.write_text("half")
        age(each, 2)
    written_now = site.cache / "2.0.n.5.part"
    written_now.write_text("half")

    site.start("a")

    assert [each.exists() for each in left] == [False] * 3
    assert written_now.exists()
