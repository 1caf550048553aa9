"""What Slurm is promised of an instance's memory is there: slurmctld refuses a node that has less.

Source of the figures: what EKS nodes were seen to lack of EC2's figure, rounded up; by a maintainer
of Karpenter (jonathan-innis/karpenter-provider-aws, zz_generated.memory_overhead.go, 9ebff21c).
"""

from collections import defaultdict

import pytest

from tidegate.wire.catalogue import load_catalogue

# MiB by size: the smallest of each family, which lack the largest share, and its largest.
MISSING_MIB = {
    "c6a": {"large": 295, "xlarge": 450, "2xlarge": 759, "48xlarge": 14440},
    "c6i": {"large": 273, "xlarge": 406, "2xlarge": 673, "32xlarge": 8313},
    "c7g": {"medium": 145, "large": 216, "xlarge": 356, "2xlarge": 638, "16xlarge": 4494},
    "g4dn": {"xlarge": 700, "2xlarge": 1149, "12xlarge": 5540, "16xlarge": 7178},
    "g5": {"xlarge": 590, "2xlarge": 1039, "12xlarge": 5430, "48xlarge": 20552},
    "g5g": {"xlarge": 356, "2xlarge": 638, "16xlarge": 4494},
    "m6a": {"large": 449, "xlarge": 758, "2xlarge": 1375, "48xlarge": 28648},
    "m6i": {"large": 405, "xlarge": 672, "2xlarge": 1205, "32xlarge": 16441},
    "m7g": {"medium": 216, "large": 356, "xlarge": 638, "2xlarge": 1202, "16xlarge": 8906},
    "p3": {"2xlarge": 1198, "8xlarge": 4248, "16xlarge": 7961},
    "r6a": {"large": 757, "xlarge": 1374, "2xlarge": 2607, "48xlarge": 57072},
    "r6i": {"large": 671, "xlarge": 1204, "2xlarge": 2269, "32xlarge": 32697},
    "r7g": {"medium": 356, "large": 638, "xlarge": 1202, "2xlarge": 2329, "16xlarge": 17539},
}
TYPES = {name: each.instance_type for name, each in load_catalogue().items()}
SEEN = {
    f"{family}.{size}": mib for family, sizes in MISSING_MIB.items() for size, mib in sizes.items()
}


@pytest.mark.parametrize("name", SEEN)
def test_what_was_seen_of_an_instance_s_memory_holds_what_slurm_is_promised(name):
    of = TYPES[name]

    assert of.slurm_memory_mib < of.memory_mib - SEEN[name]


def test_types_nobody_measured_lack_no_more_than_the_worst_of_their_size():
    worst: dict[int, int] = defaultdict(int)
    for name, mib in SEEN.items():
        worst[TYPES[name].memory_mib] = max(worst[TYPES[name].memory_mib], mib)

    short = [
        name
        for name, of in TYPES.items()
        if of.memory_mib in worst and of.slurm_memory_mib >= of.memory_mib - worst[of.memory_mib]
    ]

    assert short == []
