"""Which commands a look at Slurm runs."""

from collections.abc import Sequence

import pytest

from tidegate.adapters.slurm_cli import Finished, SlurmCli

ASSOCIATIONS = ["scontrol", "show", "assoc_mgr", "flags=assoc,qos"]


@pytest.mark.parametrize(
    ("accounting", "is_asked"),
    [
        ("accounting_storage/slurmdbd", True),
        ("accounting_storage/none", False),  # 22.05
        ("(null)", False),  # 23.11
    ],
)
def test_associations_are_asked_for_only_where_there_are_any(accounting, is_asked):
    """slurmctld 23.11.4 ends when it is asked and has no accounting."""
    asked: list[Sequence[str]] = []

    def run(argv: Sequence[str], timeout_s: float) -> Finished:
        asked.append(argv)
        told = {
            "config": f"AccountingStorageHost   = head\nAccountingStorageType   = {accounting}\n",
            "--version": "slurm-wlm 23.11.4",
        }
        return Finished(0, told.get(argv[-1], ""), "")

    reading = SlurmCli(run).read()

    assert (ASSOCIATIONS in asked) == is_asked
    assert reading.associations == ()
