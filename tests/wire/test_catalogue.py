"""The catalogue is what its generator makes, and covers what we buy."""

import pytest

from local.catalogue import CATALOGUE, catalogue_csv
from tidegate.wire.catalogue import Kind, load_catalogue


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

    assert catalogue["g6f.xlarge"].kind is Kind.FRACTIONAL_GPU
    assert catalogue["trn1.2xlarge"].kind is Kind.NEURON
    assert all((row.gpus > 0) == (row.kind is Kind.GPU) for row in catalogue.values())
