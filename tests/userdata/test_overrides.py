"""What tests change in slurm.conf and cgroup.conf stays a short list."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from local.boot.machines import LOCAL_SLURM
from local.boot.overrides import (
    OF_NAMESPACES,
    QUICKER,
    assert_bounded_bench,
    assert_bounded_head,
    settings,
)
from local.boot.values import HEAD, SLURM
from local.slurm.daemons import SCRIPT
from userdata.render import slurm_conf

ROOT = Path(__file__).parents[2]
CGROUP = "CgroupPlugin=cgroup/v1\n"


def test_a_world_s_head_is_the_product_s_but_for_what_namespaces_forbid():
    assert_bounded_head(replace(HEAD, slurm=LOCAL_SLURM))

    changed = {key.lower() for key, _ in (*LOCAL_SLURM.settings, *LOCAL_SLURM.cgroup)}
    assert changed == OF_NAMESPACES.keys()


def test_the_bench_is_the_product_s_but_for_what_it_lacks():
    (conf,) = re.findall(r"<<CONF\n(.*?)\nCONF", SCRIPT.read_text(), re.DOTALL)

    assert_bounded_bench(conf, CGROUP)


def test_the_demo_is_the_product_s_but_for_what_namespaces_forbid():
    slurm = yaml.safe_load((ROOT / "local/demo/cluster.yaml").read_text())["slurm"]

    assert {key.lower() for key in (*slurm["settings"], *slurm["cgroup"])} == OF_NAMESPACES.keys()


@pytest.mark.parametrize("line", ["SelectTypeParameters=CR_CPU", "ReturnToService=2"])
def test_another_change_is_seen(line):
    key, value = line.split("=")
    text = re.sub(f"(?m)^{key}=.*$", line, slurm_conf(SLURM))

    with pytest.raises(AssertionError, match=key.lower()):
        assert_bounded_bench(text, CGROUP)
    with pytest.raises(AssertionError, match="proctracktypo"):
        assert_bounded_bench(f"{slurm_conf(SLURM)}ProctrackTypo=x\n", CGROUP)
    assert settings(text)[key.lower()] == value


def test_what_is_only_quicker_is_no_setting_of_the_product():
    """But for the interval of health checks, which says how often, not what."""
    assert QUICKER.keys() & settings(slurm_conf(SLURM)).keys() == {"healthcheckinterval"}


def test_nobody_else_writes_a_slurm_conf():
    """Those here ask local/boot/overrides.py; docs/experiments are not run by tests."""
    writers = {
        path.relative_to(ROOT).as_posix()
        for folder in ("tests", "local", "bench")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".sh", ".py", ".conf") and "SlurmctldPidFile=" in path.read_text()
    }

    assert writers - {"tests/userdata/test_overrides.py"} == {
        "local/slurm/slurm_bench.sh",
        "tests/golden/slurm.conf",
    }
