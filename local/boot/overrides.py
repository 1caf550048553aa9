"""What this computer may change in the product's slurm.conf and cgroup.conf, each with its reason.

A setting that only tests have hides what the product's own does on a machine. Whoever starts a
slurmctld here asks first.
"""

from collections.abc import Iterable
from dataclasses import replace

from local.boot.bundles import opened
from local.boot.values import HEAD, SLURM
from userdata.render import HeadValues, head_bundle, slurm_conf

# A machine in namespaces shares this computer's cgroups, and claims what this computer lacks.
OF_NAMESPACES = {
    "proctracktype": "proctrack/cgroup would put processes of all machines into one tree",
    "taskplugin": "task/cgroup likewise; task/affinity would bind to CPUs that are not there",
    "jobacctgathertype": "reads the cgroups that are not a machine's own",
    "mpidefault": "the library of the default plugin is not on this computer",
    "slurmdparameters": "config_overrides: 48 CPUs, GPUs and 187 GB are claimed on two cores",
    "cgroupplugin": "this computer's cgroups are hybrid, which autodetect refuses",
}
# What would take minutes; the product has no line of its own for these but HealthCheckInterval.
QUICKER = {
    "minjobage": "a job's record goes after five minutes",
    "killwait": "a job that heeds no signal is killed after 30 s",
    "healthcheckinterval": "a health check comes every five minutes",
    "schedulerparameters": "backfill comes every 30 s, or the product's own 5 s",
}
REFUSED = {"schedulertype": "a value that slurmctld refuses is tried"}
# The contracts' bench is a slurmctld without the head's stages, beside this computer's own Slurm.
OF_THE_BENCH = {
    "slurmuser": "there is no user slurm in it, all runs as root",
    "slurmdspooldir": "all nodes share one file system",
    "slurmctldpidfile": "below the test's folder",
    "slurmdpidfile": "all nodes share one file system",
    "slurmctldlogfile": "below the test's folder",
    "slurmdlogfile": "all nodes share one file system",
    "prolog": "what it runs comes by the boot's stages; tests of hooks bring their own",
    "epilog": "likewise",
    "healthcheckprogram": "likewise",
    "rebootprogram": "likewise",
    "healthchecknodestate": "without a program it says nothing",
    "clifilterplugins": "the page about it is tried",
    "topologyplugin": "the cluster file's `slurm.topology` adds it",
    "grestypes": "a pool with `gpu.shards_per_gpu` adds shard, one with `gpu.mps_per_gpu` mps",
    "metricstype": "the cluster file's `monitoring` adds it from 25.11 on",
    "constraincores": "nothing is constrained without task/cgroup",
    "constrainramspace": "likewise",
    "constraindevices": "likewise",
}
# Differs from cluster to cluster.
_OWN = ("clustername", "slurmctldhost", "statesavelocation", "maxnodecount", "defmempercpu")
# Nodes, partitions and their sets are the cluster's own too.
_RECORDS = ("nodename", "partitionname", "nodeset")


def settings(text: str) -> dict[str, str]:
    """The settings of slurm.conf or cgroup.conf by their keys in lower case."""
    lines = (line.strip() for line in text.splitlines())
    pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
    found = {key.strip().lower(): value.strip() for key, _, value in pairs}
    return {key: value for key, value in found.items() if key not in (*_OWN, *_RECORDS)}


def beyond(made: str, product: str, *allowed: Iterable[str]) -> set[str]:
    """Keys by which `made` differs from the product's file, and that are not in `allowed`."""
    ours, theirs = settings(product), settings(made)
    differ = {key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key)}
    return differ - {key for some in allowed for key in some}


def assert_bounded_head(values: HeadValues) -> None:
    """A world's head differs from the product's only where it may."""
    product = replace(values, slurm=replace(values.slurm, settings=(), cgroup=()))
    made, own = opened(head_bundle(values)), opened(head_bundle(product))
    for name in ("files/slurm.conf", "files/cgroup.conf"):
        left = beyond(made[name], own[name], OF_NAMESPACES, QUICKER, REFUSED)
        assert not left, f"{name} differs by {sorted(left)}: see local/boot/overrides.py"


def assert_bounded_bench(conf: str, cgroup_conf: str) -> None:
    """A bench's slurmctld differs from the product's only where it may."""
    own = opened(head_bundle(HEAD))
    left = beyond(conf, slurm_conf(SLURM), OF_NAMESPACES, QUICKER, OF_THE_BENCH)
    left |= beyond(cgroup_conf, own["files/cgroup.conf"], OF_NAMESPACES, OF_THE_BENCH)
    assert not left, f"a bench differs by {sorted(left)}: see local/boot/overrides.py"
