"""The stage that brings enroot and pyxis, with stand-ins for what fetches, installs and builds."""

import platform
import re
import subprocess
from pathlib import Path

import pytest

from userdata.bundle import read_stage
from userdata.stages import BAKED_STAGES, HEAD_STAGES, LOGIN_STAGES, NODE_STAGES

ROOT = Path(__file__).parents[2]
STAGE = ROOT / "userdata" / "both" / "pyxis.sh"
SLURM = "slurm 24.11.5"
# Each notes its call; what it makes is there afterwards.
STUBS = {
    "apt-get": "",
    "apt-cache": '[ "$2" != "$SCHEDMD" ] || echo "$2 | 24.11.5"',
    "dpkg": "echo amd64",
    "uname": "echo x86_64",
    "scontrol": 'echo "$RUNS"',
    "curl": 'while [ $# -gt 1 ]; do [ "$1" != -o ] || : >"$2"; shift; done; [ -z "$OFFLINE" ]',
    "git": '[ "$1" != init ] || mkdir -p "$3"; [ -z "$OTHER" ] || [ "$3" != checkout ]',
    "make": 'mkdir -p "$FOLDER/usr/lib/slurm"; : >"$FOLDER/usr/lib/slurm/spank_pyxis.so"',
}
# Of the real lib.sh, and what says where the plugin is.
LIB = """
RUN_DIR=$FOLDER
refuse() { echo "$*"; exit 78; }
put_file() { cat >"$FOLDER/list"; echo "put_file $1" >>"$FOLDER/calls"; }
pyxis() { ls "$FOLDER/usr/lib/slurm/spank_pyxis.so" 2>/dev/null; }
"""


def functions(*names: str) -> str:
    lib = (ROOT / "userdata" / "lib.sh").read_text()
    return "\n".join(
        match[0]
        for name in names
        if (match := re.search(rf"^{name}\(\) \{{\n.*?^\}}\n", lib, re.MULTILINE | re.DOTALL))
    )


def run(folder: Path, body: str = "check || apply; check", **told: str) -> tuple[int, list[str]]:
    """Exit code of `body` with the stage's functions, and the calls that it made."""
    commands = folder / "bin"
    commands.mkdir(exist_ok=True)
    for name, does in STUBS.items():
        if name == "apt-get" and "NO_APT" in told:
            continue
        (commands / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"$FOLDER/calls"\n{does}\n')
        (commands / name).chmod(0o755)
    dnf = commands / "dnf"
    dnf.write_text('#!/bin/sh\necho dnf "$@" >>"$FOLDER/calls"\n')
    dnf.chmod(0o755)
    for name in ("bash", "ls", "cat", "mkdir", "rm", "grep"):
        if not (commands / name).exists():
            (commands / name).symlink_to(f"/bin/{name}")
    (folder / "calls").write_text("")
    settings = {
        "CONTAINERS": "pyxis",
        "PACKAGES": "slurmd",
        "ROLE": "image",
        "CONTAINER_CACHE": "",
        "SLURM_RELEASE": "24.11",
        "RUNS": SLURM,
    }
    text = STAGE.read_text().replace("=/usr/local ", f"={folder}/usr ")
    done = subprocess.run(
        ["bash", "-c", f"set -eo pipefail\n{LIB}\n{functions('apt_get')}\n{text}\n{body}"],
        env={"PATH": str(commands), "FOLDER": str(folder), **settings, **told},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (folder / "calls").read_text().splitlines()


def asked(calls: list[str], command: str) -> str:
    return "\n".join(each for each in calls if each.startswith(command))


def brings(folder: Path, *programs: str) -> None:
    """What an image has already."""
    (folder / "bin").mkdir(exist_ok=True)
    for name in programs:
        (folder / "bin" / name).write_text("#!/bin/sh\n")
        (folder / "bin" / name).chmod(0o755)


def test_it_is_baked_and_built_by_head_and_login_nodes_and_no_node_waits_for_it():
    path = "both/pyxis"

    assert path in BAKED_STAGES
    assert path in HEAD_STAGES
    assert path in LOGIN_STAGES
    assert path not in NODE_STAGES
    assert read_stage(path).only_with == "CONTAINERS"


def test_an_image_gets_enroot_nvidia_s_tools_and_a_plugin_for_its_slurm(tmp_path: Path):
    brings(tmp_path, "enroot", "nvidia-container-cli")
    code, calls = run(tmp_path)

    assert code == 0
    (fetch,) = [each for each in calls if " fetch " in each]
    assert fetch.endswith("https://github.com/NVIDIA/pyxis.git " + fetch.split()[-1])
    assert len(fetch.split()[-1]) == 40
    assert asked(calls, "git").endswith(f"checkout -q {fetch.split()[-1]}")
    assert "libslurm-dev" in asked(calls, "apt-get")
    assert asked(calls, "curl") == ""
    assert (tmp_path / "usr/lib/slurm/pyxis-built-for").read_text().strip() == SLURM
    assert run(tmp_path, "check || exit 3")[0] == 0


def test_what_is_missing_is_fetched_from_nvidia(tmp_path: Path):
    _, calls = run(tmp_path, "check || apply")

    fetched = asked(calls, "curl")
    for name in ("enroot", "enroot+caps"):
        assert f"/v4.1.2/{name}_4.1.2-1_amd64.deb" in fetched
    assert "https://nvidia.github.io/libnvidia-container/gpgkey" in fetched
    assert "libnvidia-container-tools" in asked(calls, "apt-get")
    assert (tmp_path / "list").read_text().endswith("/stable/deb/amd64 /\n")


def test_amazon_linux_takes_rpms_and_slurm_s_own_headers(tmp_path: Path):
    _, calls = run(tmp_path, "check || apply", NO_APT="1")

    assert "/v4.1.2/enroot-4.1.2-1.el8.x86_64.rpm" in asked(calls, "curl")
    assert "/stable/rpm/nvidia-container-toolkit.repo" in asked(calls, "curl")
    assert "slurm-devel-24.11.*" in asked(calls, "dnf")


def test_schedmd_s_packages_have_another_name(tmp_path: Path):
    _, calls = run(tmp_path, "build_pyxis", SCHEDMD="slurm-smd-dev")

    assert "slurm-smd-dev" in asked(calls, "apt-get")


@pytest.mark.parametrize(
    ("role", "cache", "is_needed"),
    [
        ("login", "14 200", False),
        ("head", "", False),
        ("head", "14 200", True),
        ("image", "", True),
    ],
)
def test_enroot_comes_where_containers_run_or_are_imported_for_all(
    tmp_path: Path, role: str, cache: str, is_needed: bool
):
    _, calls = run(tmp_path, "check || apply", ROLE=role, CONTAINER_CACHE=cache)

    assert ("enroot_4.1.2" in asked(calls, "curl")) is is_needed


def test_another_slurm_has_the_plugin_built_anew(tmp_path: Path):
    brings(tmp_path, "enroot", "nvidia-container-cli")
    run(tmp_path)

    assert run(tmp_path, "check || exit 3", RUNS="slurm 25.11.1")[0] == 3
    assert run(tmp_path, RUNS="slurm 25.11.1")[0] == 0


def test_what_an_image_brings_itself_stays(tmp_path: Path):
    brings(tmp_path, "enroot", "nvidia-container-cli")
    (tmp_path / "usr/lib/slurm").mkdir(parents=True)
    (tmp_path / "usr/lib/slurm/spank_pyxis.so").touch()

    assert run(tmp_path, "check || exit 3", RUNS="slurm 25.11.1")[0] == 0


def test_an_image_of_one_s_own_is_left_as_it_is(tmp_path: Path):
    assert run(tmp_path, "check || exit 3", PACKAGES="") == (0, [])


@pytest.mark.parametrize("trouble", [{"OFFLINE": "1"}, {"OTHER": "1"}])
def test_what_cannot_be_fetched_fails_the_stage_and_is_tried_again(
    tmp_path: Path, trouble: dict[str, str]
):
    """Also a source of another commit than the one that is named."""
    code, _ = run(tmp_path, "check || apply", **trouble)

    assert code not in (0, 78)
    assert not (tmp_path / "usr/lib/slurm/pyxis-built-for").exists()


def test_a_node_has_the_plugin_wherever_its_head_may_have_it(tmp_path: Path):
    """plugstack.conf is the head's, and a node passes over a plugin that it names elsewhere."""
    plugin = tmp_path / "spank_pyxis.so"
    plugin.touch()
    body = functions("link_pyxis", "pyxis_folders", "is_pyxis_linked")
    body = body.replace("echo /usr/", f"echo {tmp_path}/usr/")
    line = f"pyxis() {{ echo {plugin}; }}\n{body}\nis_pyxis_linked || link_pyxis; is_pyxis_linked"

    done = subprocess.run(["bash", "-euc", line], check=False)

    assert done.returncode == 0
    triplet = f"{platform.machine()}-linux-gnu"
    for folder in ("local/lib/slurm", f"lib/{triplet}/slurm", f"lib/{triplet}/slurm-wlm"):
        assert (tmp_path / "usr" / folder / "spank_pyxis.so").samefile(plugin)
    # Where the stage builds it.
    assert "PREFIX=/usr/local " in STAGE.read_text()
    assert "BUILT_FOR=$PREFIX/lib/slurm/" in STAGE.read_text()
