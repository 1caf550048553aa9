"""The head's Prometheus: its configuration and its rules, as files of the head's bundle."""

from dataclasses import dataclass

import jinja2

from userdata.bundle import read
from userdata.patterns import NAME, OPTIONAL_WORD, WORD, check, check_positive

# The agent writes there as SlurmUser. In memory, so that a full disk hides no alert about itself.
METRICS_DIR = "/run/tidegate/metrics"

# Where the relay that signs for Prometheus listens on the head, and what Prometheus shows it.
REMOTE_WRITE_PORT = 9091
REMOTE_WRITE_TOKEN = "/etc/tidegate/remote-write.token"

# Program, package. Of Ubuntu and Debian.
EXPORTER = ("prometheus-node-exporter", "prometheus-node-exporter")
PACKAGES_OF_HEAD = (("prometheus", "prometheus"), EXPORTER)


@dataclass(frozen=True, slots=True)
class RemoteWrite:
    """A workspace of Amazon Managed Service for Prometheus.

    `role`: of another account, as which the head writes there; "" for the head's own.
    """

    url: str
    region: str
    role: str = ""

    def __post_init__(self) -> None:
        check("url", self.url, WORD)
        check("region", self.region, NAME)
        check("role", self.role, OPTIONAL_WORD)

    @property
    def settings(self) -> dict[str, str]:
        """For the relay, see tidegate/agent/remote_write.py."""
        told = {
            "URL": self.url,
            "REGION": self.region,
            "ROLE": self.role,
            "TOKEN": REMOTE_WRITE_TOKEN,
            "PORT": str(REMOTE_WRITE_PORT),
        }
        return {f"REMOTE_WRITE_{name}": value for name, value in told.items()}


@dataclass(frozen=True, slots=True)
class Monitoring:
    """`has_slurm`: slurmctld serves metrics of its own, which it does from 25.11 on.

    `interval_s`: between two scrapes of a target. `remote_write`: where all of it goes as well.
    """

    cluster: str
    retention_days: int = 15
    slurmctld_port: int = 6817
    has_slurm: bool = False
    remote_write: RemoteWrite | None = None
    interval_s: int = 30

    def __post_init__(self) -> None:
        check("cluster", self.cluster, NAME)
        check_positive("retention_days, interval_s", self.retention_days, self.interval_s)
        check_positive("slurmctld_port", self.slurmctld_port)


def prometheus_config(values: Monitoring) -> str:
    """prometheus.yml of the head."""
    template = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    ).from_string(read("head/prometheus.yml.j2"))
    return template.render(
        v=values,
        metrics_dir=METRICS_DIR,
        relay=f"http://127.0.0.1:{REMOTE_WRITE_PORT}/",
        token=REMOTE_WRITE_TOKEN,
    )


def prometheus_rules() -> str:
    """What is recorded and what alerts; the same for every cluster."""
    return read("head/prometheus_rules.yml")


def monitoring_files(values: Monitoring | None) -> dict[str, str]:
    """For the head's bundle; none without Prometheus."""
    if values is None:
        return {}
    return {"prometheus.yml": prometheus_config(values), "tidegate.rules.yml": prometheus_rules()}


def monitoring_settings(values: Monitoring | None) -> dict[str, str]:
    """What the stages of the head's boot are told of it."""
    if values is None:
        return {}
    told = {"METRICS_DAYS": str(values.retention_days)}
    return told | (values.remote_write.settings if values.remote_write else {})
