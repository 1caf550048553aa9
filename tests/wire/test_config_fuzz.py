"""Whatever stands in the file: a cluster, or a message; never anything else."""

from copy import deepcopy
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.wire.cluster_files import GOOD, load
from tidegate.core.model.errors import BadConfig


def check_outcome(tmp_path: Path, content: object) -> None:
    """A cluster, or a message that is safe to print; anything else is raised."""
    said = ""
    try:
        load(tmp_path, content)
    except BadConfig as error:
        said = str(error)
    assert all(line.isprintable() for line in said.split("\n"))


FUZZ = settings(
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["gpu", "t4", "pools", "spot", "gpus"]), inner, max_size=3
        )
    ),
    max_leaves=8,
)
PLACES = [
    (*parents, name)
    for parents, here in [
        ((), GOOD),
        (("partitions", "gpu"), GOOD["partitions"]["gpu"]),
        (("pools", "t4"), GOOD["pools"]["t4"]),
        (("prices_usd_per_hour", "g4dn.xlarge"), GOOD["prices_usd_per_hour"]["g4dn.xlarge"]),
    ]
    for name in [*here, "limits", "labels", "network", "timings", "slurm", "weight"]
]


@FUZZ
@given(content=st.binary(max_size=80))
def test_bytes_give_a_cluster_or_a_message(tmp_path, content):
    check_outcome(tmp_path, content)


@FUZZ
@given(content=st.text(alphabet="ab:-[]{}&*!<>|#'\"%@,? \n\t0.~", max_size=60))
def test_yaml_like_text_gives_a_cluster_or_a_message(tmp_path, content):
    check_outcome(tmp_path, content.encode())


@FUZZ
@given(changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3))
def test_a_damaged_file_gives_a_cluster_or_a_message(tmp_path, changes):
    data = deepcopy(GOOD)
    for place, value in changes:
        here = data
        for part in place[:-1]:
            here = here.get(part, {}) if isinstance(here, dict) else {}
        if isinstance(here, dict):
            here[place[-1]] = value

    check_outcome(tmp_path, data)
