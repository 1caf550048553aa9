"""The head's stage of the site's check: what it writes, who may run it, and that it goes again."""

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from local.boot.bundles import opened
from local.boot.values import HEAD
from userdata.bundle import read
from userdata.render import head_bundle, head_parameter
from userdata.site_check import (
    IDLE,
    PAIRS,
    SCRIPT,
    SCRIPTS,
    TEMPLATES,
    SiteCheckValues,
    check_files,
)
from userdata.values import BundleAt

INLINE = SiteCheckValues("ci", 2, 600, 3600, "#!/bin/bash\ntrue\n", (("t4", "gpu"), ("cpu", "all")))
BY_PATH = replace(INLINE, script="/shared/checks/nccl.sbatch")
MACHINE = """\
has_file() { [[ -e $1 && $(<"$1") == "$("${@:2}")" ]]; }
put_file() { cat >"$1"; chmod "$2" "$1"; }
install() { mkdir -p "${@: -1}"; }
AGENT_USER=slurm
"""


def boot(
    root: Path,
    values: SiteCheckValues | None,
    idle: SiteCheckValues | None = None,
    pair: SiteCheckValues | None = None,
) -> bool:
    """Runs the stage where it has something to do; whether it had."""
    files = root / "files"
    subprocess.run(["rm", "-rf", str(files)], check=True)
    for name in ("files", "etc/slurm", "etc/sudoers.d", "sbin"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in check_files({TEMPLATES: values, IDLE: idle, PAIRS: pair}).items():
        (files / name).write_text(text)
    stage = read("head/site_check.sh")
    for path, here in (("/etc/", "etc/"), ("/usr/local/sbin/", "sbin/")):
        stage = stage.replace(path, f"{root}/{here}")
    script = f"cd {root}\n{MACHINE}\n{stage}\nif check; then exit 9; fi; apply; check"
    done = subprocess.run(["bash", "-uc", script], check=False)
    assert done.returncode in (0, 9)
    return done.returncode == 0


def kept(root: Path) -> dict[str, str]:
    """What stands below /etc now."""
    found = [each for each in (root / "etc").rglob("*") if each.is_file()]
    return {each.name: each.read_text() for each in found}


def test_the_agent_may_run_the_one_program_and_root_has_the_rest(tmp_path):
    assert boot(tmp_path, INLINE)
    assert not boot(tmp_path, INLINE)

    program = f"{tmp_path}/sbin/tidegate-check"
    assert kept(tmp_path) == {
        "tidegate-check": f"Defaults!{program} !requiretty\nslurm ALL=(root) NOPASSWD: {program}",
        "tidegate-check.conf": f"check:t4 gpu ci 2 600 3600 {SCRIPT}\n"
        f"check:cpu all ci 2 600 3600 {SCRIPT}\n",
        "tidegate-check.sbatch": "#!/bin/bash\ntrue\n",
    }
    right = tmp_path / "etc" / "sudoers.d" / "tidegate-check"
    assert right.stat().st_mode & 0o777 == 0o440


def test_a_script_on_shared_storage_is_named_and_the_one_before_goes(tmp_path):
    boot(tmp_path, INLINE)

    assert boot(tmp_path, BY_PATH)
    assert kept(tmp_path)["tidegate-check.conf"].splitlines()[0].endswith(" " + BY_PATH.script)
    assert "tidegate-check.sbatch" not in kept(tmp_path)


def test_without_a_check_nobody_has_the_right_any_more(tmp_path):
    assert not boot(tmp_path, None)
    boot(tmp_path, INLINE)

    assert boot(tmp_path, None)
    assert kept(tmp_path) == {}


def test_that_of_idle_nodes_stands_beside_it_or_alone(tmp_path):
    idle = replace(INLINE, nodes=1, script="#!/bin/bash\nfalse\n", partitions=(("t4", "gpu"),))
    assert boot(tmp_path, INLINE, idle)
    assert not boot(tmp_path, INLINE, idle)
    assert kept(tmp_path)["tidegate-idle.sbatch"] == "#!/bin/bash\nfalse\n"
    line = f"idle:t4 gpu ci 1 600 3600 {SCRIPTS[IDLE]}"
    assert kept(tmp_path)["tidegate-check.conf"].splitlines()[-1] == line

    assert boot(tmp_path, None, idle)
    assert kept(tmp_path)["tidegate-check.conf"] == f"{line}\n"
    assert "tidegate-check.sbatch" not in kept(tmp_path)
    assert boot(tmp_path, None, replace(idle, script="#!/bin/bash\ntrue\n")), "another script"


def test_that_of_pairs_stands_beside_them_and_goes_again(tmp_path):
    text = "#!/bin/bash\nexit 3\n"
    pair = replace(INLINE, script=text, partitions=(("t4", "gpu"),))
    assert boot(tmp_path, INLINE, pair=pair)
    assert not boot(tmp_path, INLINE, pair=pair)
    assert kept(tmp_path)["tidegate-pair.sbatch"] == text
    line = f"pair:t4 gpu ci 2 600 3600 {SCRIPTS[PAIRS]}"
    assert kept(tmp_path)["tidegate-check.conf"].splitlines()[-1] == line

    assert boot(tmp_path, INLINE)
    assert "tidegate-pair.sbatch" not in kept(tmp_path)


def test_it_comes_with_the_heads_bundle_and_sudo_alone_with_the_parameter():
    at = BundleAt("bucket", "key", "b" * 64)
    with_check = replace(HEAD, check=INLINE)

    assert opened(head_bundle(with_check))["files/check.sbatch"] == INLINE.script
    assert "files/check" not in opened(head_bundle(HEAD))
    alone = replace(HEAD, idle_check=INLINE)
    assert opened(head_bundle(alone))["files/idle.sbatch"] == INLINE.script
    pairs = replace(alone, pair_check=INLINE)
    assert opened(head_bundle(pairs))["files/pair.sbatch"] == INLINE.script
    assert " sudo" in head_parameter(alone, at)
    assert " sudo" in head_parameter(with_check, at)
    assert len(head_parameter(with_check, at)) - len(head_parameter(HEAD, at)) < 20


@pytest.mark.parametrize(
    "bad",
    [
        {"user": "a b"},
        {"user": "-x"},
        {"script": "/shared/x; reboot"},
        {"script": "relative"},
        {"partitions": (("t4", "gpu cpu"),)},
        {"wait_s": 0},
    ],
)
def test_no_value_adds_a_word_to_what_root_reads(bad):
    with pytest.raises(ValueError, match=r"check|nodes"):
        replace(INLINE, **bad)
