"""`tidegate image plan`."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from tests.wire.cluster_files import good
from tidegate.cli.main import app

OWN = "ami-0123456789abcdef0"


def planned(tmp_path: Path, *options: str, **change: object) -> tuple[int, str]:
    file = tmp_path / "demo.yaml"
    file.write_text(yaml.safe_dump(good({key.replace("__", "."): v for key, v in change.items()})))
    done = CliRunner().invoke(app, ["image", "plan", "--cluster", str(file), *options])
    return done.exit_code, done.output


def asked_for(text: str) -> str:
    """The command by which a component asks for the programs that an image has to have."""
    (validate,) = [each for each in yaml.safe_load(text)["phases"] if each["name"] == "validate"]
    (complete,) = validate["steps"]
    (found,) = [each for each in complete["inputs"]["commands"] if "command -v" in each]
    assert isinstance(found, str)
    return found


def test_a_component_is_printed_with_its_parent_and_the_next_steps(tmp_path):
    code, text = planned(tmp_path, image="install")

    assert code == 0
    assert yaml.safe_load(text)["name"] == "tidegate-demo"
    assert "parent image /aws/service/canonical/ubuntu/server/24.04" in text
    assert "'nvidia-smi'" in asked_for(text)
    assert "'slurmctld'" in asked_for(text)


def test_a_component_for_another_system_has_its_packages_and_not_the_head_s(tmp_path):
    repository = {"url": "https://example.com/slurm", "key": "https://example.com/key"}
    repositories = {"slurm__repositories": {"al2023": repository}}

    code, text = planned(tmp_path, image="install-al2023", **repositories)

    assert code == 0
    assert "parent image /aws/service/ami-amazon-linux-latest/al2023-ami-" in text
    assert "REPOSITORY_URL=https://example.com/slurm\n" in text.replace("\\n", "\n")
    assert "slurm-slurmd" in text
    assert "'slurmctld'" not in asked_for(text)


def test_an_image_for_head_and_nodes_has_prometheus_where_the_head_runs_it(tmp_path):
    _, plain = planned(tmp_path)
    _, text = planned(tmp_path, monitoring={"prometheus": True})
    _, of_nodes = planned(tmp_path, monitoring={"prometheus": True}, head__image=OWN)

    assert "prometheus" not in asked_for(plain)
    assert "'prometheus'" in asked_for(text)
    assert "'prometheus'" not in asked_for(of_nodes)
    assert "'prometheus-node-exporter'" in asked_for(of_nodes)


def test_a_build_that_reads_packages_in_s3_needs_a_role_that_may(tmp_path):
    repository = {"url": "s3://packages/al2023", "key": "https://example.com/key"}
    repositories = {"slurm__repositories": {"al2023": repository}}

    code, text = planned(tmp_path, image="install-al2023", **repositories)

    assert code == 0
    asked = [line for line in text.splitlines() if "role of the build's instance" in line]
    assert [line.split()[-1] for line in asked] == ["s3://packages/al2023"]


@pytest.mark.parametrize(
    ("change", "needs"),
    [
        ({"pools__t4__gpu": {"mps": True}}, "nvidia-cuda-mps-control: gpu.mps or"),
        ({"pools__t4__gpu": {"mps_per_gpu": 100}}, "nvidia-cuda-mps-control: gpu.mps or"),
        ({"pools__t4__efa": True}, "/opt/amazon/efa_installed_packages: efa of a pool"),
    ],
)
def test_what_the_file_asks_for_and_no_stage_brings_is_named(tmp_path, change, needs):
    code, text = planned(tmp_path, image=OWN, **change)

    assert code == 0
    assert f"# Add a component that installs {needs}" in text


def test_a_head_with_an_image_of_its_own_needs_nothing_in_this_one(tmp_path):
    _, text = planned(tmp_path, head={"image": OWN})

    assert "'slurmctld'" not in asked_for(text)


def test_pools_of_two_architectures_need_two_images(tmp_path):
    arm = {
        "instance_types": ["g5g.xlarge"],
        "zones": ["us-east-1a"],
        "capacity_types": ["on-demand"],
    }
    change: dict[str, object] = {"partitions__arm": {"pools": ["arm"]}, "pools__arm": arm}
    change["partitions__gpu"] = {"pools": ["t4"], "default": True}

    code, text = planned(tmp_path, **change)
    assert (code, "say --pool" in text) == (1, True)

    code, text = planned(tmp_path, "--pool", "arm", **change)
    assert (code, "/arm64/" in text) == (0, True)

    code, text = planned(tmp_path, "--pool", "amr", **change)
    assert (code, "no pool named amr" in text) == (1, True)


def test_what_a_bake_of_ours_brings_a_component_for_one_s_own_brings_too(tmp_path):
    """Each node of an own image is refused without them."""
    changes = {
        "containers": "pyxis",
        "lustre": {"storage_gib": 1200},
        "monitoring": {"prometheus": True},
    }
    _, text = planned(tmp_path, image=OWN, **changes)

    assert "'mount.lustre'" in asked_for(text)
    assert "lustre-client-modules" in text
    assert "CONTAINERS=pyxis" in text
    assert "DCGM=exporter" in text
