"""The virtual machines of `make vm`: what can be told of them without booting any."""

import subprocess
import sys
from dataclasses import replace
from typing import cast

import pytest

from bench.vm.__main__ import tried
from bench.vm.machines import ACCOUNTED, Machines, head_values
from bench.vm.network import FILES_ADDRESS
from bench.vm.probes import PROBES, Probe
from local.boot.bundles import opened
from local.boot.overrides import beyond
from local.boot.values import HEAD
from local.namespaces import can_enter
from local.world import BRIDGE_ADDRESS
from userdata.render import head_bundle

WHY_NOT = can_enter()


@pytest.mark.parametrize("name", ["files/slurm.conf", "files/cgroup.conf"])
def test_slurm_s_configuration_is_the_product_s(name):
    accounted = replace(HEAD, slurm=ACCOUNTED)
    made, product = (opened(head_bundle(each)) for each in (head_values(HEAD.munge), accounted))

    assert beyond(made[name], product[name]) == set()


@pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")
def test_the_file_server_s_address_is_nobody_else_s():
    """Two that answer for it, and no machine gets its files."""
    line = "from local.world import raise_network; raise_network()"
    script = f"ip link set lo up; {sys.executable} -c '{line}'; ip -br address"
    shown = subprocess.run(
        ["unshare", "--net", "bash", "-ec", script], capture_output=True, text=True, check=True
    )

    assert BRIDGE_ADDRESS in shown.stdout
    assert FILES_ADDRESS not in shown.stdout


def test_each_probe_has_a_name_of_its_own_and_fails_where_nothing_is_seen():
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    assert [probe.name for probe in PROBES if probe.holds("")] == []


def test_what_a_probe_sees_on_several_lines_is_expected_as_it_is_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    probe = Probe("a job", "COMPLETED told; through", lambda _: "COMPLETED told\nthrough")

    assert tried(probe, cast(Machines, None))
    assert "happened  COMPLETED told; through" in capsys.readouterr().out
