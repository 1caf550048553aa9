"""The virtual machines of `make vm`: what can be told of them without booting any."""

import pytest

from bench.vm.machines import head_values
from bench.vm.probes import PROBES
from tests.overrides import beyond
from tests.userdata.bundles import opened
from tests.userdata.values import HEAD
from userdata.render import head_bundle


@pytest.mark.parametrize("name", ["files/slurm.conf", "files/cgroup.conf"])
def test_slurm_s_configuration_is_the_product_s(name):
    made, product = (opened(head_bundle(each)) for each in (head_values(HEAD.munge), HEAD))

    assert beyond(made[name], product[name]) == set()


def test_each_probe_has_a_name_of_its_own_and_fails_where_nothing_is_seen():
    assert len({probe.name for probe in PROBES}) == len(PROBES)
    assert [probe.name for probe in PROBES if probe.holds("")] == []
