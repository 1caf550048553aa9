"""The catalogue is what its generator makes, and covers what we buy."""

import csv
import io

import pytest

from local.catalogue import CATALOGUE, catalogue_csv, describe_instance_types
from local.list_prices import WANTED, list_prices, prices_csv
from tests.wire.cluster_files import good, load
from tidegate.wire.catalogue import Kind, load_catalogue, load_list_prices, types_of
from tidegate.wire.prices import OnDemandPrice, on_demand_price


def test_the_file_is_what_the_generator_makes():
    made = catalogue_csv()

    assert made == CATALOGUE.read_text(), "run `python -m local.catalogue`"


@pytest.mark.parametrize(
    ("name", "gpus", "gpu_type"),
    [
        ("g4dn.12xlarge", 4, "t4"),
        ("g5.48xlarge", 8, "a10g"),
        ("g5g.16xlarge", 2, "t4g"),
        ("g6e.xlarge", 1, "l40s"),
        ("g7.2xlarge", 1, "rtx_pro_4500"),
        ("p3dn.24xlarge", 8, "v100"),
        ("p4d.24xlarge", 8, "a100"),
        ("p5.4xlarge", 1, "h100"),
        ("p6-b200.48xlarge", 8, "b200"),
        ("p6e-gb200.36xlarge", 4, "gb200"),
    ],
)
def test_gpus_are_counted_and_named_as_gres(name, gpus, gpu_type):
    row = load_catalogue()[name]

    assert (row.kind, row.instance_type.gpus, row.instance_type.gpu_type) == (
        Kind.GPU,
        gpus,
        gpu_type,
    )


def test_types_without_a_whole_gpu_are_known_as_such():
    catalogue = load_catalogue()

    fraction = catalogue["g6f.xlarge"]
    assert (fraction.kind, fraction.instance_type.gpu_type) == (Kind.FRACTIONAL_GPU, "l4-3gb")
    assert all(
        (row.instance_type.gpus > 0) == (row.kind is not Kind.CPU) for row in catalogue.values()
    )


@pytest.mark.parametrize(
    ("name", "gpus", "gpu_type"),
    [("trn1.32xlarge", 16, "trainium"), ("inf2.48xlarge", 12, "inferentia2")],
)
def test_neuron_devices_are_a_gres_of_their_own(name, gpus, gpu_type):
    each = load_catalogue()[name].instance_type

    assert (each.gres, each.gpus, each.gpu_type) == ("neuron", gpus, gpu_type)


def test_attributes_are_those_of_ec2():
    each = load_catalogue()["p4d.24xlarge"].instance_type

    assert (each.family, each.generation, each.arch) == ("p4d", 4, "x86_64")
    assert (each.gpu_memory_mib, each.local_nvme_gib, each.is_efa) == (40960, 7450, True)


def test_every_usable_type_but_the_newest_has_a_list_price():
    usable = {name for name, row in load_catalogue().items() if not row.is_bare_metal}

    assert {name.split(".")[0] for name in usable - set(load_list_prices())} == {
        *("hpc6a", "hpc6id", "hpc7a", "hpc8a", "p5e", "p6e-gb200", "r9g"),
        *("r9gd", "t8i", "trn2", "trn2u", "x8aedz"),
    }


@pytest.mark.parametrize(
    "name",
    [
        *("c4.8xlarge", "c5.large", "c5n.18xlarge", "c6g.xlarge", "m5.xlarge", "m6g.medium"),
        *("r5.24xlarge", "t2.micro", "t3.medium", "t3a.nano", "t4g.small", "z1d.large"),
    ],
)
def test_cpu_families_that_clusters_have_had_for_years_are_known(name):
    assert load_catalogue()[name].kind is Kind.CPU
    assert load_list_prices()[name] > 0


@pytest.mark.parametrize("name", ["mac2.metal", "f2.6xlarge", "dl2q.24xlarge"])
def test_what_slurm_could_not_use_as_it_is_stays_out(name):
    assert name not in load_catalogue()


def test_bare_metal_is_known_by_its_size_as_ec2_knows_it():
    by_ec2 = {
        each["InstanceType"]: each["BareMetal"]
        for each in describe_instance_types()
        if not each["InstanceType"].startswith("mac")
    }
    catalogue = load_catalogue()

    assert {name for name, is_metal in by_ec2.items() if is_metal} <= set(catalogue)
    assert all(
        catalogue[name].is_bare_metal == by_ec2[name] for name in catalogue if name in by_ec2
    )


@pytest.mark.parametrize(
    ("name", "gpus", "gpu_type", "twin"),
    [
        ("g4dn.metal", 8, "t4", ""),
        ("g5g.metal", 2, "t4g", "g5g.16xlarge"),
        ("c5n.metal", 0, "", "c5n.18xlarge"),
        ("c8g.metal-24xl", 0, "", "c8g.24xlarge"),
        ("c5.24xlarge", 0, "", ""),
    ],
)
def test_bare_metal_has_the_devices_of_the_virtual_type_of_its_size(name, gpus, gpu_type, twin):
    row = load_catalogue()[name]

    assert (row.instance_type.gpus, row.instance_type.gpu_type) == (gpus, gpu_type)
    assert row.virtual_twin == twin


def test_bare_metal_that_no_list_has_is_taken_to_cost_a_tenth_more_than_its_virtual_twin():
    listed, estimated = (
        on_demand_price({}, name, "us-east-1", 0.0) for name in ("g4dn.metal", "m5zn.metal")
    )

    assert listed == OnDemandPrice(7.824, 7.824, is_own=True)
    assert estimated == OnDemandPrice(4.36051, 4.36051, is_own=False)


def offer_file(*rows: dict[str, str]) -> list[str]:
    text = io.StringIO()
    table = csv.DictWriter(
        text, ["SKU", "PricePerUnit", "Instance Type", *WANTED], quoting=csv.QUOTE_ALL
    )
    table.writeheader()
    table.writerows(rows)
    return ['"FormatVersion","v1.0"\n', *text.getvalue().splitlines(keepends=True)]


def offer(name: str, usd: str, **others: str) -> dict[str, str]:
    return {"SKU": "A1", "Instance Type": name, "PricePerUnit": usd, **WANTED, **others}


def test_list_prices_are_those_of_plain_linux_on_shared_hardware():
    lines = offer_file(
        offer("g5.xlarge", "1.0060000000"),
        offer("g5.xlarge", "1.6180000000", **{"Operating System": "Windows"}),
        offer("g5.xlarge", "0.0000000000", CapacityStatus="AllocatedCapacityReservation"),
        offer("g5.xlarge", "1.1000000000", Tenancy="Dedicated"),
        offer("mac2.metal", "0.6500000000"),
    )

    assert prices_csv(list_prices(lines)) == "name,usd_per_hour\ng5.xlarge,1.006\n"


def test_an_offer_file_that_says_two_things_or_nothing_is_refused():
    with pytest.raises(ValueError, match=r"g5\.xlarge has two prices: 1 and 2"):
        list_prices(offer_file(offer("g5.xlarge", "1"), offer("g5.xlarge", "2")))
    with pytest.raises(ValueError, match="no price in it"):
        list_prices(["<html>\n"])


@pytest.mark.parametrize(
    ("gpu", "gres"), [({"shards_per_gpu": 4}, "shard"), ({"mps_per_gpu": 100}, "mps")]
)
def test_bills_know_of_gpus_that_jobs_share(tmp_path, gpu, gres):
    types = types_of(load(tmp_path, good({"pools.t4.gpu": gpu})).cluster)

    shared = types["g4dn.xlarge"]
    (per_gpu,) = gpu.values()
    assert (shared.shards_per_gpu, shared.shared_gres, shared.gpus) == (per_gpu, gres, 1)
    assert types["g5.xlarge"].shards_per_gpu == 0
