"""How the head starts its database; tests/boot/test_accounting.py runs one."""

import subprocess
from pathlib import Path

FOLDER = Path(__file__).parents[2] / "userdata"


def started() -> list[str]:
    """The words of the unit's ExecStart."""
    done = subprocess.run(
        ["bash", "-c", "DATA_DIR=/data; source head/database.sh; database_unit"],
        cwd=FOLDER,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    (line,) = [each for each in done.stdout.splitlines() if each.startswith("ExecStart=")]
    return line.split()


def test_slurmdbd_finds_no_isolation_that_it_ends_by() -> None:
    """On from MariaDB 11.6.2 on; a server that does not know the word takes it all the same.

    Source: Slurm's Accounting page, "MySQL Configuration"; MariaDB's manual, "loose" options.
    """
    assert "--loose-innodb-snapshot-isolation=OFF" in started()
