"""A node's folders for containers, and what head and nodes tell pyxis."""

import os
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from userdata.containers import Containers

USERDATA = Path(__file__).parents[2] / "userdata"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives folders to users: needs root")
PLACES = (
    *("/etc/enroot", "/etc/tidegate", "/run/enroot", "/run/pyxis", "/usr/local/libexec"),
    "/var/lib/enroot",
)


def on_node(here: Path, words: str, *, cache: str = "") -> subprocess.CompletedProcess[str]:
    """Runs what of the stage is named, with its paths below `here`."""
    (here / "files").mkdir(exist_ok=True)
    (here / "files/tidegate-import.sh").write_text("#!/bin/bash\n")
    (here / "etc/tidegate").mkdir(parents=True, exist_ok=True)
    (here / "etc/tidegate/task.env").write_text("NCCL_X=1\n")
    plugin = here / "spank_pyxis.so"
    if not plugin.exists():
        plugin.write_bytes(b"\x7fELF\0pyxis: importer %s failed\0")
    text = (USERDATA / "lib.sh").read_text() + (USERDATA / "node/containers.sh").read_text()
    for place in PLACES:
        text = text.replace(place, f"{here}{place}")
    text = text.replace("/scratch", f"{here}/none")
    text = text.replace("echo /usr/{local", f"echo {here}/usr/{{local")
    script = f"""set -uo pipefail
CONTAINERS=pyxis GPUS=0 SHARED_DIR=/shared
{text}
CONTAINER_CACHE={cache!r}
pyxis() {{ echo {plugin}; }}
{words}"""
    path = f"{here}/bin:{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", script],
        env={"PATH": path},
        cwd=here,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """One whose image has enroot 4, in which the stage has run."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/enroot").write_text("#!/bin/sh\n")
    (tmp_path / "bin/enroot").chmod(0o755)
    for place in PLACES:
        (tmp_path / place[1:]).parent.mkdir(parents=True, exist_ok=True)
    done = on_node(tmp_path, "apply", cache="14 200")
    assert (done.returncode, done.stderr) == (0, "")
    return tmp_path


def start_job(node: Path, uid: int | str) -> None:
    program = node / "etc/tidegate/prolog.d/40-containers.sh"
    env = {"PATH": os.environ["PATH"], "SLURM_JOB_UID": str(uid), "SLURM_JOB_ID": "7"}
    done = subprocess.run([program], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def end_job(node: Path, uid: int) -> None:
    program = node / "etc/tidegate/epilog.d/70-containers.sh"
    env = {"SLURM_JOB_UID": str(uid), "SLURM_JOB_ID": "7"}
    subprocess.run([program], env=env, check=True)


def folders(node: Path, uid: int) -> list[Path]:
    names = [f"var/lib/enroot/{kind}-{uid}" for kind in ("cache", "data", "temp", "images")]
    return [node / name for name in (f"run/enroot/user-{uid}", *names)]


@needs_root
def test_a_job_finds_folders_that_are_its_user_s_alone(node: Path) -> None:
    start_job(node, 1234)

    found = [each.stat() for each in folders(node, 1234)]
    assert {(each.st_uid, each.st_mode & 0o7777) for each in found} == {(1234, 0o700)}
    assert (node / "var/lib/enroot").stat().st_mode & 0o7777 == 0o755, "no user makes one of these"
    assert (node / "run/enroot").stat().st_mode & 0o7777 == 0o755


@needs_root
def test_what_is_in_them_stays_for_the_next_job(node: Path) -> None:
    start_job(node, 1234)
    layer = folders(node, 1234)[1] / "layer"
    layer.write_text("layer")

    start_job(node, 1234)

    assert layer.exists()


@needs_root
def test_what_somebody_else_had_put_there_is_not_run(node: Path) -> None:
    _, cache, data, *_ = folders(node, 1234)
    (node / "elsewhere").mkdir()
    cache.symlink_to(node / "elsewhere")
    data.mkdir()
    (data / "poison").write_text("")
    os.chown(data, 4321, 4321)

    start_job(node, 1234)

    assert not cache.is_symlink()
    assert list(data.iterdir()) == []
    assert (node / "elsewhere").stat().st_uid == 0


@pytest.mark.parametrize("uid", ["", "0", "x/../../y"])
def test_a_job_of_nobody_gets_none(node: Path, uid: str) -> None:
    start_job(node, uid)

    assert [each.name for each in (node / "var/lib/enroot").iterdir()] == ["pyxis"]


def test_after_a_job_no_squashfs_of_it_stays(node: Path) -> None:
    images = node / "var/lib/enroot/images-1234"
    images.mkdir()
    for name in ("7.0.sqsh", "7.1.sqsh.words", "70.0.sqsh"):
        (images / name).write_text("half")

    end_job(node, 1234)

    assert [each.name for each in images.iterdir()] == ["70.0.sqsh"]


@needs_root
def test_containers_of_a_job_whose_steps_were_killed_go_with_it(node: Path) -> None:
    """pyxis removes one as its step ends, where slurmstepd lives to see that; those that have a
    name are kept for the user's next jobs (pyxis_slurmstepd.c, enroot_cleanup).
    """
    start_job(node, 1234)
    data = node / "var/lib/enroot/data-1234"
    names = (
        "pyxis_7.0",
        "pyxis_7.4294967291",
        "pyxis_70.0",
        "pyxis_torch",
        "pyxis_7.torch",
        "mine",
    )
    for name in names:
        (data / name / "usr").mkdir(parents=True)
        (data / name / "usr/read-only").mkdir(mode=0o500)
    (node / "precious/x").mkdir(parents=True)
    (data / "pyxis_7.1").symlink_to(node / "precious")
    layers = [node / f"var/lib/enroot/temp-1234/enroot.{each}" for each in ("old", "new")]
    for each in layers:
        (each / "1").mkdir(parents=True)
    os.utime(layers[0], (0, 0))

    end_job(node, 1234)

    left = {each.name for each in data.iterdir()}
    assert left == {"pyxis_70.0", "pyxis_torch", "pyxis_7.torch", "mine"}
    assert (node / "precious/x").exists()
    assert [each.exists() for each in layers] == [False, True]


def pyxis_starts_a_job(node: Path, uid: int) -> Path:
    """What slurmd's plugin makes, then a step's (pyxis_slurmd.c, pyxis_slurmstepd.c): the folder in
    which pyxis has enroot pack an image where there is no importer.
    """
    with suppress(FileExistsError):
        (node / "run/pyxis").mkdir(0o755)
    with suppress(FileExistsError):
        (node / f"run/pyxis/{uid}").mkdir(0o700)
    return node / f"run/pyxis/{uid}"


@pytest.mark.parametrize("was_there", [False, True])
def test_images_that_pyxis_imports_itself_lie_on_disk_and_not_in_memory(
    node: Path, *, was_there: bool
) -> None:
    """/run is a tmpfs, of a tenth of the memory on Ubuntu (pyxis, issue 53)."""
    if was_there:
        (node / "run/pyxis").unlink()
        (node / "run/pyxis/1234").mkdir(parents=True)
        assert on_node(node, "check").returncode == 1
        assert on_node(node, "apply").returncode == 0

    image = pyxis_starts_a_job(node, 1234) / "7.0.squashfs"

    image.write_text("half")
    assert image.resolve() == node / "var/lib/enroot/pyxis/1234/7.0.squashfs"
    assert (node / "var/lib/enroot/pyxis").stat().st_mode & 0o7777 == 0o755
    assert on_node(node, "check", cache="14 200").returncode == (1 if was_there else 0)
    end_job(node, 1234)
    assert not image.exists(), "of a step that was killed while it imported"


def test_enroot_has_its_folders_and_packs_what_is_kept(node: Path) -> None:
    conf = (node / "etc/enroot/enroot.conf.d/tidegate.conf").read_text()
    on_node(node, "apply")
    plain = (node / "etc/enroot/enroot.conf.d/tidegate.conf").read_text()

    for kind in ("CACHE", "DATA", "TEMP"):
        line = f"ENROOT_{kind}_PATH {node}/var/lib/enroot/{kind.lower()}-$(id -u)\n"
        assert line in conf
        assert line in plain
    assert "ENROOT_SQUASH_OPTIONS -comp zstd " in conf
    assert "SQUASH" not in plain


def test_the_importer_is_told_where_images_are(node: Path) -> None:
    settings = node / "etc/tidegate/container-cache"
    shared = settings.read_text()
    on_node(node, "apply")

    line = "SHARED=/shared/containers UNUSED_DAYS=14 MAX_GIB=200\n"
    assert shared == f"DISK={node}/var/lib/enroot\n{line}"
    assert settings.read_text() == f"DISK={node}/var/lib/enroot\n"


def test_a_node_that_is_set_up_is_left_alone(node: Path) -> None:
    assert on_node(node, "check", cache="14 200").returncode == 0
    assert on_node(node, "check", cache="7 200").returncode == 1
    (node / "usr/local/libexec/tidegate-import").write_text("older\n")
    assert on_node(node, "check", cache="14 200").returncode == 1


@pytest.mark.parametrize(
    ("cache", "lacks", "said"),
    [
        ("14 200", "importer", "the image's pyxis knows no importer (0.21 does)"),
        ("14 200", "digest", "the image's enroot has no command digest (4.0 has)"),
        ("", "importer", ""),
        ("", "digest", ""),
    ],
)
def test_a_cache_needs_a_pyxis_and_an_enroot_that_know_it(
    node: Path, cache: str, lacks: str, said: str
) -> None:
    if lacks == "importer":
        (node / "spank_pyxis.so").write_bytes(b"\x7fELF\0pyxis: importing\0")
    else:
        (node / "bin/enroot").write_text("#!/bin/sh\n[ $1 != digest ]\n")

    done = on_node(node, "apply", cache=cache)

    assert (done.returncode, done.stdout.split(", which")[0].strip()) == (78 if said else 0, said)


@pytest.mark.parametrize("cache", ["", "14 200"])
def test_pyxis_is_told_of_the_importer_where_there_is_a_cache(node: Path, cache: str) -> None:
    line = f"optional {node}/spank_pyxis.so"
    importer = f" importer={node}/usr/local/libexec/tidegate-import" if cache else ""

    assert on_node(node, "plugin_line", cache=cache).stdout == f"{line}{importer}\n"


@pytest.mark.parametrize("given", [("docker",), ("pyxis", 0, 200), ("pyxis", -1, 200)])
def test_what_no_boot_understands_is_refused(given: tuple[str, int, int]) -> None:
    with pytest.raises(ValueError, match=r"containers|unused_days"):
        Containers(*given)


def test_a_boot_is_told_of_a_cache_where_there_is_one() -> None:
    assert Containers("pyxis").settings == {"CONTAINERS": "pyxis"}
    assert Containers("pyxis", 7, 50).settings["CONTAINER_CACHE"] == "7 50"
