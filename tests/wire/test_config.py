"""What a cluster file becomes, and what people read when it is wrong."""

import json
from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from tests.wire.cluster_files import BESIDE, GOOD, complaint, good, load, problems
from tidegate.core.model.cluster import Limits, Timings
from tidegate.core.model.ec2 import Market, Offering
from tidegate.core.model.errors import BadConfig
from tidegate.wire.calendar import Schedules, Window
from tidegate.wire.config import deployed_text, load_cluster, parse_deployed
from tidegate.wire.deployment import ExistingModel, HeadModel, Metrics, NetworkModel
from tidegate.wire.models import ClusterModel, TimingsModel
from tidegate.wire.yaml_file import parse_guessing, parse_yaml

CLUSTERS = Path(__file__).parents[2] / "clusters"


def test_a_good_file_becomes_a_cluster(tmp_path):
    loaded = load(tmp_path, GOOD)

    pool = loaded.cluster.pools[0]
    assert (loaded.region, loaded.slurm.version, loaded.shared_dir) == (
        "us-east-1",
        "23.11",
        "/shared",
    )
    assert (pool.name, pool.zones, pool.markets) == (
        "t4",
        ("us-east-1a",),
        (Market.SPOT, Market.ON_DEMAND),
    )
    assert (pool.instance_types[0].gpus, pool.instance_types[0].gpu_type) == (1, "t4")
    assert loaded.cluster.prices == {
        Offering("g4dn.xlarge", "us-east-1a", Market.SPOT): pytest.approx(0.20 + BESIDE, abs=1e-6),
        Offering("g4dn.xlarge", "us-east-1a", Market.ON_DEMAND): pytest.approx(
            0.526 + BESIDE, abs=1e-6
        ),
    }


def test_what_is_left_out_has_the_defaults_of_core(tmp_path):
    cluster = load(tmp_path, GOOD).cluster

    pool = cluster.pools[0]
    assert (pool.weight, pool.idle_s, pool.max_job_nodes, pool.labels) == (1, 120.0, 16, ())
    assert (cluster.limits, pool.limits, cluster.timings) == (Limits(), Limits(), Timings())


def test_everything_can_be_set(tmp_path):
    loaded = load(
        tmp_path,
        good(
            {
                "slurm.version": "24.11",
                "slurm.settings": {"ProctrackType": "proctrack/linuxproc"},
                "slurm.cgroup": {"ConstrainDevices": "no"},
                "shared_dir": "/fsx/home",
                "network": {"vpc": "vpc-0a1b2c3d", "subnets": {"us-east-1a": "subnet-0a1b2c3d"}},
                "head": {"instance_type": "m7i.xlarge", "volume_gib": 200},
                "image": "ami-0a1b2c3d",
                "schedules": {
                    "time_zone": "Asia/Tokyo",
                    "stop": "0 20 * * MON-FRI",
                    "start": "0 8 * * MON-FRI",
                },
                "alarm_email": "ops@example.org",
                "existing": {
                    "file_system": "fs-0a1b2c3d",
                    "file_security_group": "sg-0a1b2c3d",
                },
                "logs": {"retention_days": 90},
                "metrics": "full",
                "backup_days": 0,
                "permissions_boundary": "arn:aws:iam::123456789012:policy/bound",
                "limits": {"gpus": 64, "nodes": 32, "usd_per_hour": 100},
                "timings": {"boot_bound_s": 600},
                "pools.t4.weight": 50,
                "pools.t4.limits": {"gpus": 8},
                "pools.t4.idle_s": 30,
                "pools.t4.max_job_nodes": 4,
                "pools.t4.labels": ["cheap"],
            }
        ),
    )

    pool = loaded.cluster.pools[0]
    assert (loaded.slurm.version, loaded.shared_dir) == ("24.11", "/fsx/home")
    assert loaded.slurm.settings == {"ProctrackType": "proctrack/linuxproc"}
    assert loaded.slurm.cgroup == {"ConstrainDevices": "no"}
    subnets = {"us-east-1a": "subnet-0a1b2c3d"}
    assert loaded.network == NetworkModel(vpc="vpc-0a1b2c3d", subnets=subnets)
    assert (loaded.head, loaded.image_id) == (
        HeadModel(instance_type="m7i.xlarge", volume_gib=200),
        "ami-0a1b2c3d",
    )
    assert loaded.schedules == Schedules(
        "Asia/Tokyo", (Window("0 8 * * MON-FRI", "0 20 * * MON-FRI"),)
    )
    assert (loaded.alarm_email, loaded.image_id) == ("ops@example.org", "ami-0a1b2c3d")
    assert loaded.existing == ExistingModel(
        file_system="fs-0a1b2c3d", file_security_group="sg-0a1b2c3d"
    )
    assert (loaded.log_days, loaded.metrics, loaded.backup_days) == (90, Metrics.FULL, 0)
    assert loaded.permissions_boundary == "arn:aws:iam::123456789012:policy/bound"
    assert loaded.cluster.limits == Limits(gpus=64, nodes=32, usd_per_hour=100.0)
    assert loaded.cluster.timings == Timings(boot_bound_s=600.0)
    assert (pool.weight, pool.limits, pool.idle_s) == (50, Limits(gpus=8), 30.0)
    assert (pool.max_job_nodes, pool.labels) == (4, ("cheap",))


def test_a_single_partition_is_the_default_one(tmp_path):
    assert load(tmp_path, GOOD).cluster.partitions[0].is_default


def test_versions_and_names_mean_what_they_look_like(tmp_path):
    text = yaml.safe_dump(good({"name": "no", "image": "ami-0123456789abcdef0"})).replace(
        "region:", "slurm: {version: 22.05}\nregion:"
    )

    loaded = load(tmp_path, text)

    assert (loaded.slurm.version, loaded.cluster.name) == ("22.05", "no")


def test_pools_may_share_settings_by_merge(tmp_path):
    text = yaml.safe_dump(good({"pools": None, "partitions.gpu.pools": ["t4", "more"]})) + (
        "pools:\n"
        "  t4: &t4 {instance_types: [g4dn.xlarge], zones: [us-east-1a], capacity_types: [spot]}\n"
        "  more: {<<: *t4, weight: 7, zones: [us-east-1b]}\n"
    )

    found = [(pool.weight, pool.zones) for pool in load(tmp_path, text).cluster.pools]

    assert found == [(1, ("us-east-1a",)), (7, ("us-east-1b",))]


def test_all_problems_come_at_once_aligned_with_their_place(tmp_path):
    data = good({"pools.t4.weight": 250, "pools.t4.capacity": "spot", "limits.gpus": 0})

    with pytest.raises(BadConfig) as caught:
        load(tmp_path, data)

    assert str(caught.value) == (
        f"{tmp_path}/demo.yaml: 3 problems\n"
        "  limits.gpus        must be at least 1, is 0\n"
        "  pools.t4.weight    must be 1-100, is 250\n"
        "  pools.t4.capacity  unknown name; did you mean capacity_types?"
    )


FAULTS = yaml.safe_load((Path(__file__).parents[1] / "golden/cluster_file_faults.yaml").read_text())


@pytest.mark.parametrize("fault", FAULTS)
def test_one_fault_gives_exactly_one_problem(tmp_path, fault):
    change, says = FAULTS[fault]["change"], FAULTS[fault]["says"]

    assert problems(tmp_path, good(change)) == [says]


def test_a_pool_that_no_partition_has_is_told_beside_its_own_faults(tmp_path):
    u4 = {**good()["pools"]["t4"], "weight": 0}

    assert problems(tmp_path, good({"pools.u4": u4})) == [
        "pools.u4.weight must be 1-100, is 0",
        "pools.u4 no partition has this pool, so no job can reach it",
    ]


def test_missing_prices_are_named_one_by_one(tmp_path):
    data = good({"prices_usd_per_hour": {"g4dn.xlarge": {"spot": 0.2}}, "region": "cn-north-1"})
    data["pools"]["t4"]["instance_types"] = ["g4dn.xlarge", "g4dn.2xlarge"]
    data["pools"]["t4"]["zones"] = ["cn-north-1a"]

    assert problems(tmp_path, data) == [
        "prices_usd_per_hour.g4dn.xlarge.on-demand missing, used by pool t4",
        "prices_usd_per_hour.g4dn.2xlarge.spot missing, used by pool t4",
        "prices_usd_per_hour.g4dn.2xlarge.on-demand missing, used by pool t4",
    ]


def test_wrong_prices_are_told_apart_from_missing_ones(tmp_path):
    prices = {"g4dn.xlarge": {"spot": -1, "on-demnd": 2}, "g9.xlarge": {"spot": 1}}

    assert sorted(problems(tmp_path, good({"prices_usd_per_hour": prices}))) == [
        "prices_usd_per_hour.g4dn.xlarge.on-demnd the name must be spot or on-demand; "
        "did you mean on-demand?",
        "prices_usd_per_hour.g4dn.xlarge.spot must be more than 0, at most 2000, is -1",
        "prices_usd_per_hour.g9.xlarge g9.xlarge is not a known instance type; "
        "did you mean g6.xlarge?",
    ]


def test_a_pool_whose_smallest_type_breaks_its_limit_could_never_start(tmp_path):
    data = good({"pools.t4.instance_types": ["g4dn.12xlarge"], "pools.t4.limits": {"gpus": 2}})
    data["prices_usd_per_hour"] = {"g4dn.12xlarge": {"spot": 1.5, "on-demand": 4}}

    assert problems(tmp_path, data) == [
        "pools.t4.limits.gpus 2, but g4dn.12xlarge, the smallest of pool t4, has 4 GPUs: "
        "nothing could ever start"
    ]


def test_placeholders_of_a_type_are_shared_between_pools(tmp_path):
    data = good({"partitions.gpu.pools": ["t4", "u4"], "pools.t4.max_job_nodes": 200})
    data["pools"]["u4"] = {**data["pools"]["t4"], "max_job_nodes": 250}

    load(tmp_path, data)


def test_a_faulty_pool_does_not_hide_the_problems_of_the_others(tmp_path):
    data = good({"partitions.gpu.pools": ["t4", "u4", "v4"], "pools.u4": {}})
    data["pools"]["t4"]["zones"] = ["us-west-2a"]

    assert problems(tmp_path, data) == [
        "partitions.gpu.pools[2] no pool named v4",
        "pools.u4.requirements missing, and so is instance_types: one must say what nodes it has",
        "pools.u4.zones missing: availability zones, like us-east-1a",
        "pools.u4.capacity_types missing: spot, on-demand, reserved, capacity-block, "
        "interruptible-capacity-reservation; "
        "tried in this order",
        "pools.t4.zones[0] us-west-2a is not a zone of us-east-1; for nodes in us-west-2 see"
        " docs/second-region.md",
    ]


def test_a_name_given_twice_is_a_problem(tmp_path):
    text = yaml.safe_dump(GOOD, sort_keys=False) + "name: other\n"

    assert problems(tmp_path, text) == ["name given twice, in line 1 and line 22"]


def test_null_is_no_word_unless_it_stands_in_quotes(tmp_path):
    why = "is null, which is no value: leave the key out, or put the word in quotes"
    text = yaml.safe_dump(GOOD, sort_keys=False) + "tags: {team: null}\n"
    _, let_pass = parse_yaml('{a: ~, b: [NULL], c: "null", d: nullable}', "a file")
    _, of_others = parse_guessing("{a: null}", "a file")

    assert problems(tmp_path, text) == [f"tags.team {why}"]
    assert [(each.path, each.text) for each in let_pass] == [("a", why), ("b[0]", why)]
    assert of_others == []


UNREADABLE = [
    (b"", "the file is empty"),
    (b"# nothing\n", "the file is empty"),
    (b"- a\n", "must be a mapping of names to values, like `name: dev`"),
    (b"hello", "must be a mapping of names to values, like `name: dev`"),
    (
        b"name: dev\n  region: x\n",
        "not valid YAML at line 2, column 9: a second `: ` where one value belongs: indent it like"
        " its neighbours, or quote the text",
    ),
    (
        b"zones: [a\n",
        "not valid YAML at line 2, column 1: a [ that is not closed, or a comma that is missing",
    ),
    (
        b"pools:\n  t4:\n    zones: [a]\n   weight: 1\n",
        "not valid YAML at line 4, column 4: indented otherwise than the lines it belongs to",
    ),
    (
        b"pools:\n\tt4: {}\n",
        "not valid YAML at line 2, column 1: a tab, and YAML indents by spaces alone",
    ),
    (
        b"stop: * 20 * * *\n",
        "not valid YAML at line 1, column 8: what begins with * or & must be quoted",
    ),
    (
        b"name: !!python/name:os.system x\n",
        "not valid YAML at line 1, column 7: could not determine a constructor for the tag"
        " 'tag:yaml.org,2002:python/name:os.system'",
    ),
    (b"a: 1\n---\nb: 1\n", "not valid YAML at line 2, column 1: but found another document"),
    (b"name: dev\nregion: \xff\n", "not UTF-8 text (line 2)"),
    (
        b"name: \x07\n",
        "not valid YAML: unacceptable character #x0007: special characters are not allowed",
    ),
    (b"[" * 5000, "not valid YAML: nested too deeply"),
]


@pytest.mark.parametrize(("content", "says"), UNREADABLE)
def test_a_file_that_is_no_cluster_file_gives_one_sentence(tmp_path, content, says):
    assert complaint(tmp_path, content) == [f"demo.yaml: {says}"]


def test_a_missing_file_and_a_folder_give_one_sentence(tmp_path):
    (tmp_path / "demo.yaml").touch()

    with pytest.raises(BadConfig, match=r"nothere\.yaml: there is no such file$"):
        load_cluster(tmp_path / "nothere.yaml")
    with pytest.raises(BadConfig, match=r": is a directory, not a file$"):
        load_cluster(tmp_path)
    with pytest.raises(BadConfig, match=r"demo\.yaml/x: cannot be read: Not a directory$"):
        load_cluster(tmp_path / "demo.yaml" / "x")


def test_an_alias_that_leads_back_to_itself_is_only_a_wrong_value(tmp_path):
    assert "name must be text, is a list" in problems(tmp_path, "name: &a [*a]\n")


@pytest.mark.parametrize("file", sorted(CLUSTERS.glob("*.yaml")), ids=lambda file: file.name)
def test_the_examples_are_good(file):
    assert load_cluster(file).cluster.name == file.stem


def test_every_timing_of_core_can_be_set_and_is_described():
    assert list(TimingsModel.model_fields) == [each.name for each in fields(Timings)]


def test_every_name_of_the_schema_has_a_description():
    schema = ClusterModel.model_json_schema()
    parts = [schema, *schema["$defs"].values()]

    nameless = [
        name
        for part in parts
        for name, value in part.get("properties", {}).items()
        if not value.get("description")
    ]

    assert nameless == []


@pytest.mark.parametrize("path", sorted(CLUSTERS.glob("*.yaml")), ids=lambda path: path.stem)
def test_functions_read_what_was_written(path):
    written = path.read_text()

    deployed = deployed_text(written, "dev")

    assert json.loads(deployed)["name"] == path.stem
    assert parse_deployed(deployed, "deployed") == load_cluster(path)
    assert parse_deployed(written, "deployed by hand") == load_cluster(path)


def test_a_deployed_file_that_is_wrong_is_told_whole():
    text = deployed_text(yaml.safe_dump(good({"slurm.version": "9", "region": "x"})), "dev")

    with pytest.raises(BadConfig, match=r"(?s)s3://b/k: 2 problems.*region.*slurm.version"):
        parse_deployed(text, "s3://b/k")
    with pytest.raises(BadConfig, match="s3://b/k: must be a mapping"):
        parse_deployed("[1]", "s3://b/k")


def test_settings_that_agent_and_planner_can_live_with_are_taken(tmp_path):
    settings = {"SlurmctldDebug": "debug", "SelectTypeParameters": "CR_CPU_Memory,CR_LLN"}
    paused = {"budgets": [{"nodes": 0, "reasons": ["drifted", "expired"]}]}
    change = {"slurm.settings": settings, "pools.t4.disruption": paused}

    loaded = load(tmp_path, good({**change, "head": {"instance_type": "t3a.medium"}}))

    assert dict(loaded.slurm.settings) == settings


@pytest.mark.parametrize(
    ("pool", "noted"),
    [
        ({"limits": {"nodes": 64}}, True),
        ({"limits": {"nodes": 64}, "max_job_nodes": 16}, False),
        ({"limits": {"nodes": 16}}, False),
        ({}, False),
        ({"max_job_nodes": 64}, False),
    ],
)
def test_a_pool_whose_jobs_may_not_have_all_its_nodes_says_so(tmp_path, pool, noted):
    changes = {f"pools.t4.{name}": value for name, value in pool.items()}

    notes = load(tmp_path, good(changes)).notes

    assert (
        "pools.t4.max_job_nodes: 16 when left out, and there may be 64 nodes: Slurm refuses a job"
        " of more than 16; say max_job_nodes: 64, or 16 when that is meant" in notes
    ) is noted


def test_a_pool_of_a_small_cluster_is_told_what_the_cluster_allows(tmp_path):
    large = load(tmp_path, good({"limits.nodes": 8, "pools.t4.limits": {"nodes": 64}}))
    wide = load(tmp_path, good({"limits.nodes": 8, "pools.t4.max_job_nodes": 32}))

    assert large.notes == ()
    assert wide.notes == (
        "pools.t4.max_job_nodes: 32, but limits.nodes allows 8: a job of more than 8 would wait for"
        " ever; say max_job_nodes: 8",
    )
