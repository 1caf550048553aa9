"""Nodes with faults, each with its end.

node_world.py runs in namespaces and says what happened; the tests look at that.
"""

import json
import re
from typing import Any

import pytest

from local.boot.bundles import graph_of
from local.namespaces import can_enter
from tests.boot.node_again import AGAIN
from tests.boot.node_exporters import TOLD
from tests.boot.node_faults import FAULTS, JOB_ROLE, RELEASE
from tests.boot.node_world import PLAN_ID, REBOOT, REPLACE, RESET
from tests.make import node as slurm_node
from tests.worlds import seen_in
from tidegate.core.fleet.drains import Hand, hand
from tidegate.core.model.events import BootFailed, NodeReady
from tidegate.core.model.slurm import SetBy
from tidegate.wire.console import boot_lines
from tidegate.wire.events import parse_event
from userdata.render import node_bundle

WHY_NOT = can_enter()
pytestmark = pytest.mark.skipif(WHY_NOT is not None, reason=f"real path: {WHY_NOT}")

type Seen = dict[str, Any]


def world(*words: str) -> Any:
    return seen_in("boot.node_world", *words, timeout_s=600)


@pytest.fixture(scope="module")
def seen() -> Seen:
    found: Seen = world("faults")
    return found


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if fault.words])
def test_a_sick_node_says_why_powers_off_and_was_never_in_slurm(seen, name):
    assert FAULTS[name].words in seen[name]["console"]
    assert not seen[name]["alive"]
    assert not seen[name]["in_slurm"]


@pytest.mark.parametrize("name", [name for name, fault in FAULTS.items() if not fault.words])
def test_what_does_no_harm_keeps_no_node_away(seen, name):
    assert "ready after" in seen[name]["console"]
    assert seen[name]["in_slurm"]


def test_file_systems_of_the_site_are_mounted_before_the_node_joins(seen):
    """In the order of the file; what lies on NFS makes nobody root."""
    assert seen["more_file_systems"]["mounted"][-1].startswith("rw,nosuid,nodev,nfsvers=4.1,hard")
    assert seen["more_file_systems"]["mounted"][:-1] == ["/data", "/nas", "/lake", "/sets"]
    for name in ("lustre", "lustre_by_hook", "lustre_brought"):
        assert seen[name]["mounted"] == ["/lustre"]
    assert seen["more_file_systems"]["of_s3"] == [
        "fs-0a1b2c3d4e5f60001 rw,nosuid,nodev,nodirects3read,_netdev",
        "data-sets --read-only --allow-other --prefix imagenet/",
    ]


def test_hooks_run_in_their_order_before_the_node_joins_each_with_its_arguments(seen):
    assert seen["hooks"]["hooks"] == ["early", "0 gpu a b c", "0 gpu "]


def test_a_node_whose_hook_failed_says_which_with_its_code_and_last_line(seen):
    (failed,) = [parse_event(json.dumps(each)) for each in seen["hook_fails"]["told"]]

    assert isinstance(failed, BootFailed)
    assert failed.stage == "on_node_configured"
    assert "hook 2 (inline) exited with 3: no licence server" in failed.said


def test_an_image_with_this_version_s_stages_needs_nothing_of_s3(seen):
    for name in ("baked", "baked_ran", "baked_ubuntu_22"):
        assert "fetches its stages" not in seen[name]["console"]
        assert "tampered with" not in seen[name]["console"]


def test_stages_that_differ_from_the_cluster_s_are_fetched_and_that_is_said(seen):
    assert "tidegate fetches its stages: these differ" in seen["baked_differs"]["console"]
    assert "fetches its stages" not in seen["healthy"]["console"]


def test_a_node_tells_its_stages_and_their_times_on_the_console(seen):
    lines = [each.text for each in boot_lines(seen["healthy"]["console"])]

    stages = [line.split()[1] for line in lines if line.startswith("stage ")]
    assert sorted(stages) == sorted(graph_of(node_bundle(), "node"))
    assert all(re.fullmatch(r"stage \w+ (apply|skip) [\d.]+ s, try 1", each) for each in lines[:3])
    assert lines[-1].startswith("ready after ")


def test_a_node_says_on_the_bus_how_its_boot_went_and_which_plan_bought_it(seen):
    (ready,) = [parse_event(json.dumps(each)) for each in seen["healthy"]["told"]]
    (failed,) = [parse_event(json.dumps(each)) for each in seen["gpu_missing"]["told"]]

    assert isinstance(ready, NodeReady)
    assert isinstance(failed, BootFailed)
    assert ready.stages.keys() == graph_of(node_bundle(), "node").keys()
    assert 0 < max(ready.stages.values()) <= ready.took_s < 60
    assert (failed.stage, "3 are on" in failed.said) == ("health", True)
    assert {ready.plan_id, failed.plan_id} == {PLAN_ID}


def test_a_gpu_that_is_of_no_use_drains_the_node_in_five_seconds_and_ends_no_job(seen):
    sick = seen["healthy"]["sick"]

    assert sick["fatal"] == (
        "tidegate-health: xid: Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)"
    )
    assert sick["drained_s"] < 5
    assert sick["runs"]


def test_what_is_a_program_s_own_or_no_harm_drains_nothing_and_is_told_if_it_matters(seen):
    sick = seen["healthy"]["sick"]

    assert sick["harmless"] == "none"
    assert "Xid 31" not in sick["console"]
    assert sick["console"].count("health: Xid 63: GPU memory remapping event; the node") == 1
    assert sick["console"].count("health: SXid 20034 of an NVSwitch: Fatal, Link 30") == 1


def test_a_node_that_a_person_has_mended_stays_open_although_its_log_says_the_same(seen):
    assert "DRAIN" not in seen["healthy"]["sick"]["mended"]


def test_a_sick_node_that_a_person_keeps_stays_that_person_s(seen):
    assert seen["healthy"]["sick"]["person"] == "ada looks into it"


def test_a_gpu_that_goes_without_a_word_of_the_kernel_s_drains_the_node(seen):
    assert seen["gets_worse"]["worse"]["gpu"] == (
        f"tidegate-health: gpus: g5.12xlarge has 4 GPUs; nvidia-smi lists 3, /dev has 3{REBOOT}"
    )


def test_a_disk_that_fills_drains_the_node_and_neither_ends_its_job_nor_slurmd(seen):
    """By our check or by slurmd's own, whichever comes first: no person is waited for."""
    worse = seen["gets_worse"]["worse"]
    drained = slurm_node(reason=worse["disk"], set_by=SetBy.ROOT)

    assert re.match(r"tidegate-health: disk: 0 GiB free|SlurmdSpoolDir is full", worse["disk"])
    assert hand(drained) is Hand.SOFTWARE
    assert worse["slurmd"], "the same that ran before"
    assert "through" in worse["job"]


def test_whose_job_runs_on_a_node_that_falls_ill_reads_it(seen):
    told = [line for line in seen["gets_worse"]["worse"]["job"] if ": gpus: " in line]

    (sentence,) = told
    assert "was found sick, and no new job starts there: gpus: g5.12xlarge has 4" in sentence


def test_what_the_epilog_finds_drains_the_node(seen):
    sick = seen["healthy"]["sick"]
    assert sick["epilog"] == f"tidegate-health: ecc: 2 uncorrected ECC errors{RESET}"


def test_a_boot_asks_nvidia_smi_four_times(seen):
    """A call takes a second where eight GPUs are. Then Slurm's HealthCheckProgram may have run."""
    calls = [line.split("=")[0] for line in seen["healthy"]["smi"]]

    assert calls[:4] == ["-pm 1", "-L", "--query-gpu", "--query-remapped-rows"]
    assert calls[4:7] in ([], ["--query-gpu", "-L", "--query-remapped-rows"])


def test_gpus_are_set_as_the_pool_asks(seen):
    assert {"power.limit=250.00", "compute_mode=EXCLUSIVE_PROCESS"} <= set(
        seen["power_limit"]["shown"]
    )


def test_driver_and_kernel_of_the_image_are_held(seen):
    assert {"nvidia-driver-580-server", "linux-image-aws"} <= set(seen["upgradable"]["shown"])


def test_a_job_sees_the_mig_instances_that_slurm_gave_it(seen):
    first_nine = [*(f"MIG-0-{number}" for number in range(7)), "MIG-1-0", "MIG-1-1"]

    assert f"CUDA_VISIBLE_DEVICES={','.join(first_nine)}" in seen["mig"]["job"]


def test_a_job_sees_the_instances_of_its_type_on_a_node_that_is_cut_into_several(seen):
    """Its layout: a large one and four small ones on three GPUs, seven small ones on the last."""
    assert "CUDA_VISIBLE_DEVICES=MIG-0-0,MIG-1-0" in seen["mig_layout"]["job"]


def test_a_job_has_a_service_of_its_own_for_its_gpus_which_ends_with_it(seen):
    *told, left = seen["mps"]["job"]

    assert "CUDA_MPS_PIPE_DIRECTORY=/run/tidegate/mps/" in told[0]
    assert told[-1] == "5 0,1 -f"  # the job's user, its GPUs
    assert left == "left:0"


def test_a_node_s_exporters_tell_its_load_and_which_job_has_which_gpu(seen):
    exports = seen["mps"]["exports"]
    gpus = [line.rpartition("/")[2] for line in seen["mps"]["job"] if "gpu-jobs" in line]

    job_id = gpus[0].partition(":")[2]
    assert job_id.isdigit()
    assert gpus == [f"0:{job_id}", f"1:{job_id}"]
    assert exports["left"] == []
    assert exports["gpu"] == [
        "--address",
        ":9400",
        "--hpc-job-mapping-dir",
        "/run/tidegate/gpu-jobs",
    ]
    assert exports["node"] == (["node_load1"] if exports["has_package"] else [])


def test_a_job_acts_as_its_role_and_nobody_else_does(seen):
    acts = seen["job_role"]["acts"]
    answer, region, num_lines, token = acts["job"].splitlines()
    given = json.loads(answer)

    assert (given["RoleArn"], region) == (f"{JOB_ROLE}-vision", "us-east-1")
    assert given.keys() == {"AccessKeyId", "SecretAccessKey", "Token", "Expiration", "RoleArn"}
    assert token.startswith("-r-------- 1 games ")
    assert num_lines == "0", "SDKs refuse a token with a line's end"
    assert re.search(r'"message": "job \d+ is not yours"', acts["stolen"])
    assert acts["left"] == '{"code": "AccessDenied", "message": "job 1 is not on this node"}'


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, (file, _) in TOLD.items()])
def test_what_a_device_tells_comes_to_node_exporter(seen, name, file):
    series = [f"tidegate_neuron_{each}" for each in TOLD[name][1]]
    told = {"file": [file], "read": ["node_textfile_scrape_error 0", *series]}

    has_package = seen["mps"]["exports"]["has_package"]
    assert seen[name]["tells"] == (told if has_package else {"file": [], "read": []})


def test_nccl_takes_efa_without_being_told(seen):
    assert {"FI_PROVIDER=efa", "NCCL_SOCKET_IFNAME=^lo,docker"} <= set(seen["efa_there"]["job"])


def test_containers_hear_of_the_environment_of_tasks_by_enroot(seen):
    assert "/etc/enroot/environ.d/20-tidegate.env" in seen["pyxis"]["shown"]


def test_unpacked_containers_are_each_user_s_own(seen):
    assert "/var/lib/enroot/data-$(id" in seen["pyxis"]["shown"]


def test_an_image_is_baked_by_the_boot_s_own_stages(seen):
    *steps, left = seen["bake"].items()

    assert [name for name, (code, _) in steps if code] == [], steps
    assert [name for name, _ in steps] == [
        *("archive", "unpack", "quiesce", "early", "packages", "driver", "pyxis"),
        *("dcgm", "tidy"),
        *("complete", "holds"),
    ]
    assert left == ("left", ["/opt/tidegate/boot.tar"])


def test_a_fabric_manager_that_ends_later_drains_its_node(seen):
    """What runs goes on; what starts fails with error 802."""
    drained = seen["fabric_equal"]["drained"]
    assert drained == f"tidegate-health: fabric: fabric manager is down{REBOOT}"


def test_an_instance_store_that_fails_drains_its_node_and_a_storm_of_a_volume_s_does_not(seen):
    reads_only, fails = seen["scratch"]["drained"].splitlines()

    assert reads_only == f"tidegate-health: scratch: /scratch cannot be read and written{REPLACE}"
    assert re.fullmatch(
        r"tidegate-health: nvme: \w+ \(instance store\): critical medium error, dev \w+, sector 8 "
        r".* \(degraded; remedy: replace\)",
        fails,
    )


def test_an_efa_device_that_goes_later_drains_its_node(seen):
    drained = seen["efa_there"]["drained"]
    assert drained == f"tidegate-health: efa: of 2 EFA devices the driver has 1{REBOOT}"


def test_an_error_of_a_neuron_device_drains_its_node_with_aws_s_remedy(seen):
    assert seen["neuron"]["drained"] == (
        "tidegate-health: neuron: Neuron HBM_UNCORRECTABLE_ERROR: Uncorrectable error in HBM, "
        "device 1 (fatal; AWS's remedy: replace)"
    )


def test_a_neuron_driver_is_installed_and_held(seen):
    assert "aws-neuronx-dkms" in seen["neuron"]["shown"]


def test_packages_of_amazon_linux_are_of_the_release_and_held(seen):
    asked = seen["amazon_linux"]["shown"]

    assert {f"slurm-{RELEASE}.*", f"slurm-slurmd-{RELEASE}.*", "amazon-efs-utils"} < set(asked)
    held = asked[asked.index("add") :]
    assert {"nvidia-*", "kmod-nvidia-*", "kernel*"} < set(held)


def test_slurm_of_schedmd_s_own_packages_is_asked_for_by_their_names(seen):
    assert {"slurm-smd-client", "slurm-smd-slurmd"} < set(seen["schedmd_s_packages"]["shown"])
    assert {"slurm-client", "slurmd"} < set(seen["ubuntu_22"]["shown"])


INSTALLING = [
    *("ubuntu_22", "schedmd_s_packages", "amazon_linux", "slurm_in_s3", "slurm_in_s3_for_dnf"),
    *("installed", "driver_installed", "apt_locked_once", "lustre"),
]


@pytest.mark.parametrize("name", INSTALLING)
def test_all_that_is_asked_for_gets_installed(seen, name):
    """A Slurm of the machine's own would hide that none was."""
    assert "stage packages apply" in seen[name]["console"]
    assert "not installed" not in seen[name]["log"]


def test_packages_in_s3_are_installed_from_the_folder_they_were_fetched_to(seen):
    for name in ("slurm_in_s3", "slurm_in_s3_for_dnf"):
        assert "packages apply" in seen[name]["console"]
        assert "not installed: slurm" not in seen[name]["log"]


def test_a_secrets_manager_that_has_no_time_is_asked_again(seen):
    assert re.search(r"stage munge apply \S+ s, try 3", seen["secret_throttled_twice"]["console"])


def test_a_node_that_has_joined_is_not_ended_by_one_question_without_an_answer(seen):
    """A job may run there by then."""
    console = seen["secret_throttled_twice"]["console"]

    assert re.search(r"stage slurmd skip \S+ s, try 2", console)


def test_an_instance_store_becomes_scratch(seen):
    assert "ext4" in seen["scratch"]["shown"]
    assert "ext4" not in seen["scratch_of_image"]["shown"]


def test_a_data_set_of_the_launch_s_tag_is_loaded_beside_the_boot(seen):
    found = seen["scratch_of_image"]

    assert "/scratch/tidegate-data/sets+imagenet/files" in found["shown"]
    assert "data: s3://secrets/x is not loaded" in found["console"]


@pytest.mark.parametrize("name", ["scratch", "scratch_of_image"])
def test_everybody_may_write_to_scratch(seen, name):
    assert "/scratch:1777" in seen[name]["shown"]


@pytest.mark.parametrize("name", AGAIN)
def test_a_node_that_was_rebooted_has_all_that_it_had(seen, name):
    again = seen[name]["again"]

    assert again["is_ready"], again["console"]
    assert again["before"].startswith("Name=gpu")
    assert again["after"] == again["before"]


def test_a_package_that_is_missing_is_named_and_keeps_no_other_away(seen):
    assert "not installed: mdadm" in seen["package_missing"]["log"]
    assert "amazon-efs-utils" not in seen["package_missing"]["log"]
