"""slurmctld's own metrics, of releases that serve them, as the head's Prometheus asks."""

from collections.abc import Iterator

import pytest
import yaml

from local.slurm.daemons import RealSlurm, release_here
from tests.contracts.real_slurm import slurm_of_its_own
from userdata.monitoring import Monitoring, prometheus_config

# What the cluster file's `monitoring` adds to slurm.conf.
METRICS = "MetricsType=metrics/openmetrics"
FIRST = (25, 11)


@pytest.fixture(scope="module")
def slurm() -> Iterator[RealSlurm]:
    if release_here() < FIRST:
        pytest.skip("this Slurm serves no metrics: scripts/contracts.sh tries one that does")
    with slurm_of_its_own(METRICS) as made:
        yield made


def scraped() -> list[tuple[str, str]]:
    """Path and port of each of slurmctld's targets."""
    config = yaml.safe_load(prometheus_config(Monitoring("dev", has_slurm=True)))
    jobs = [each for each in config["scrape_configs"] if each["job_name"].startswith("slurmctld")]
    return [(each["metrics_path"], each["static_configs"][0]["targets"][0]) for each in jobs]


@pytest.mark.parametrize(("path", "target"), scraped())
def test_slurmctld_tells_its_figures_where_they_are_asked_for(
    slurm: RealSlurm, path: str, target: str
) -> None:
    slurm.submit("-H")

    text = slurm.run("curl", "-fsS", f"http://{target}{path}")

    assert "# TYPE slurm_" in text, text[:500]
    assert len(text) < 200_000
