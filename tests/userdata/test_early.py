"""A baked image runs a node's user data before cloud-init comes to it, and once."""

import subprocess
from pathlib import Path

import pytest

from cdk.proxy import with_proxy
from local.boot.values import AT, NODE
from tidegate.wire.deployment import ProxyModel
from userdata.bundle import read
from userdata.render import node_user_data


def run(folder: Path) -> Path:
    """The program, on cloud-init's folder of scripts in this one; the file that was run."""
    text = read("early.sh")
    for path, here in {"/var/lib/cloud": folder / "cloud", "/run/": f"{folder}/"}.items():
        assert path in text
        text = text.replace(path, str(here))
    subprocess.run(["bash", "-c", text], check=True, timeout=10)
    return folder / "tidegate-user-data"


def script(folder: Path, text: str) -> Path:
    """What cloud-init makes of a machine's user data, before it comes to run it."""
    scripts = folder / "cloud" / "instance" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "part-001").write_text(text)
    return scripts / "part-001"


def test_a_node_s_user_data_is_run_and_cloud_init_does_not_find_it_again(tmp_path):
    ran = tmp_path / "ran"
    found = script(tmp_path, f"#!/bin/bash\n# Tidegate dev: node\necho $$ >>{ran}\n")

    run(tmp_path)
    run(tmp_path)

    assert not found.exists()
    assert len(ran.read_text().splitlines()) == 1


@pytest.mark.parametrize(
    "text",
    ["#!/bin/bash\n# Tidegate dev: head\nexit 1\n", "#!/bin/sh\nexit 1\n", "#cloud-config\n"],
)
def test_what_is_not_a_node_s_is_left_to_cloud_init(tmp_path, text):
    found = script(tmp_path, text)

    assert not run(tmp_path).exists()
    assert found.read_text() == text


def test_a_machine_without_user_data_goes_on(tmp_path):
    assert not run(tmp_path).exists()


@pytest.mark.parametrize("proxy", [None, ProxyModel(url="http://proxy.example:3128")])
def test_the_user_data_of_nodes_is_known(tmp_path, proxy):
    whole = with_proxy(node_user_data(NODE, AT), proxy)
    (line,) = [each for each in whole.splitlines() if each.startswith("# Tidegate ")]
    found = script(tmp_path, f"#!/bin/bash\nexport a=b\n{line}\n")

    run(tmp_path)

    assert not found.exists()


def test_cloud_init_waits_for_it():
    unit = read("tidegate-early.service").splitlines()

    assert "Before=cloud-final.service" in unit
    assert "Type=oneshot" in unit
