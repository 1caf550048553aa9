"""What a node tells Slurm of GPUs that are cut or shared, and which layouts it takes from a tag."""

import subprocess
from pathlib import Path

import pytest

STAGE = Path(__file__).parents[2] / "userdata" / "node" / "shape.sh"
PROFILES = "1g.5gb 3g.20gb 4g.20gb"


def shell(line: str, **settings: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-c", f"set -euo pipefail; source {STAGE}; {line}"],
        env={"PATH": "/usr/bin:/bin", "SHARED": "", "MIG_PROFILES": PROFILES, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout.strip()


@pytest.mark.parametrize(
    ("layout", "gpus"),
    [
        ("8=1g.5gb:7", 8),
        ("6=3g.20gb:2 2=1g.5gb:3/4g.20gb:1", 8),
        ("1=3g.20gb:1", 1),
    ],
)
def test_a_layout_of_known_profiles_for_all_gpus_is_taken(layout: str, gpus: int) -> None:
    assert shell(f"is_layout '{layout}' {gpus}")[0] == 0


@pytest.mark.parametrize(
    "layout",
    [
        "",
        "8=1g.5gb",
        "7=1g.5gb:7",
        "9=1g.5gb:7",
        "8=2g.10gb:3",
        "8=1g.5gb:8",
        "8=1g.5gb:0",
        "8=1g.5gb:7/",
        "8=1g.5gb:7:7",
        "08=1g.5gb:7",
        "8=1g.5gb:7;reboot",
        '8=1g.5gb:7"',
        "8=$(reboot)",
        "4=1g.5gb:7\n4=1g.5gb:7",
        "8= 1g.5gb:7",
    ],
)
def test_no_other_tag_becomes_a_configuration(layout: str) -> None:
    assert shell('is_layout "$SAYS" 8', SAYS=layout)[0] != 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("gpu a10g 4 ''", "gpu:a10g:4"),
        ("neuron trainium 2 ''", "neuron:trainium:2"),
        ("gpu - 0 ''", ""),
        ("gpu a100_1g.5gb 8 8=1g.5gb:7", "gpu:a100_1g.5gb:56"),
        ("gpu a100_1g.5gb.me 8 8=1g.5gb+me:1", "gpu:a100_1g.5gb.me:8"),
        (
            "gpu a100 8 '6=3g.20gb:2 2=1g.5gb:3/4g.20gb:1'",
            "gpu:a100_1g.5gb:6,gpu:a100_3g.20gb:12,gpu:a100_4g.20gb:2",
        ),
    ],
)
def test_slurm_is_told_each_type_once(words: str, told: str) -> None:
    assert shell(f"told {words}") == (0, told)


def test_slurm_is_told_the_shards_or_mps_of_all_gpus() -> None:
    assert shell("told gpu l4 4 ''", SHARED="shard 3") == (0, "gpu:l4:4,shard:12")
    assert shell("told gpu l4 4 ''", SHARED="mps 100") == (0, "gpu:l4:4,mps:400")


@pytest.mark.parametrize(
    ("layout", "count"), [("''", "8"), ("'6=3g.20gb:2 2=1g.5gb:3/4g.20gb:1'", "20")]
)
def test_the_gate_counts_instances(layout: str, count: str) -> None:
    assert shell(f"in_all 8 {layout}") == (0, count)


SMALL, LARGE = "  MIG 1g.5gb     Device  0: (UUID: M-0)", "  MIG 3g.20gb     Device  1: (UUID: M-1)"


@pytest.mark.parametrize(
    ("shown", "says"),
    [
        ([SMALL, LARGE], ""),
        ([SMALL], "the MIG instance M-1 is gone"),
        (
            [SMALL, LARGE.replace("3g.20gb", "2g.10gb")],
            "Slurm is told gpu:a100_1g.5gb:1,gpu:a100_3g.20gb:1,"
            " nvidia-smi shows gpu:a100_1g.5gb:1,gpu:a100_2g.10gb:1",
        ),
    ],
)
def test_the_gate_compares_what_slurm_is_told_with_what_is_there(
    tmp_path: Path, shown: list[str], says: str
) -> None:
    """The check alone: what stands around it asks the machine."""
    text = (STAGE.parent / "checks.sh").read_text()
    check = "check_mig() {" + text.partition("check_mig() {")[2].partition("\n}\n")[0] + "\n}"
    (tmp_path / "mig").write_text("M-0\nM-1\n")
    smi = tmp_path / "nvidia-smi"
    smi.write_text("#!/bin/sh\ncat <<END\nGPU 0: A100 (UUID: G-0)\n" + "\n".join(shown) + "\nEND\n")
    smi.chmod(0o755)

    done = subprocess.run(
        ["bash", "-c", f"{check.replace('/etc/tidegate', str(tmp_path))}\ncheck_mig"],
        env={
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "LAYOUT": "1=1g.5gb:1/3g.20gb:1",
            "ACCELERATORS": "2",
            "GPU_TYPE": "a100",
            "TOLD_GRES": "gpu:a100_1g.5gb:1,gpu:a100_3g.20gb:1",
        },
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.strip(), done.stderr) == (int(bool(says)), says, "")
