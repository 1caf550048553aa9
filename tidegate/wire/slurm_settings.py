"""What may stand in `slurm.settings`: what slurmctld knows and Tidegate does not write itself."""

import csv
import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from tidegate.core.model.frozen import frozen
from tidegate.wire.problems import did_you_mean
from tidegate.wire.slurm_numbers import slurm_number
from tidegate.wire.slurm_words import why_words_end

# Tidegate writes these lines itself: another value would cut head, nodes and agent apart.
OWN_SETTINGS = frozenset(
    {
        *("authtype", "clustername", "controladdr", "controlmachine", "include", "maxnodecount"),
        *("epilog", "rebootprogram"),
        *("nodename", "nodeset", "partitionname", "prolog", "returntoservice", "slurmctldhost"),
        *("slurmctldlogfile", "slurmctldparameters", "slurmctldport", "slurmuser", "treewidth"),
        *("statesavelocation", "downnodes", "frontendname", "selecttype", "grestypes"),
        *("authinfo", "backupaddr", "backupcontroller", "credtype", "logtimeformat"),
        *("resumefailprogram", "resumeprogram", "slurmctldaddr", "slurmctldpidfile"),
        *("slurmdlogfile", "slurmdpidfile", "slurmdspooldir", "slurmduser"),
        *("suspendprogram", "suspendtime"),
    }
)
_SCRIPTS = "hooks.on_node_configured may put scripts NAME.sh into /etc/tidegate"
_STATIC = "lines for what is not Tidegate's go into slurm.static"
_REMEDIES = {
    # Where nodes look for more scripts of these (userdata/node/slurmd.sh).
    "prolog": f"{_SCRIPTS}/prolog.d",
    "epilog": f"{_SCRIPTS}/epilog.d",
    **dict.fromkeys(("nodename", "partitionname", "nodeset", "downnodes"), _STATIC),
}

# The agent looks when slurmctld logs a submission or an end, which it does from `info` on.
_SILENT_LOGS = ("quiet", "fatal", "error", "0", "1", "2")
# Cores and memory of a node are given out one by one: so the planner packs.
_CONSUMABLE = ("cr_core_memory", "cr_cpu_memory")

_ENDS = "else slurmctld would not start"
_BITS = {"number16": 16, "number32": 32, "number64": 64}
_LEVELS = (
    *("quiet", "fatal", "error", "info", "verbose", "debug", "debug2", "debug3", "debug4"),
    *("debug5", *map(str, range(10))),
)
# What a setting may be, of all releases: slurmctld ends at any other. Sources: slurm.conf(5) of
# 22.05 to 26.05, the plugins of these releases.
_WORDS = {
    "accountingstoragetype": tuple(
        f"accounting_storage/{each}" for each in ("slurmdbd", "none", "ctld_relay")
    ),
    "enforcepartlimits": ("all", "any", "no", "yes", "true", "false", "up", "down", "1", "0"),
    "jobacctgathertype": ("jobacct_gather/cgroup", "jobacct_gather/linux", "jobacct_gather/none"),
    "jobcomptype": tuple(
        f"jobcomp/{each}"
        for each in ("none", "filetxt", "elasticsearch", "kafka", "lua", "mysql", "script")
    ),
    # cluster and on: of old for off and suspend.
    "preemptmode": (
        *("off", "cancel", "requeue", "suspend", "gang", "within", "priority", "cluster", "on"),
    ),
    "preempttype": ("preempt/none", "preempt/partition_prio", "preempt/qos"),
    "prioritytype": ("priority/multifactor", "priority/basic"),
    "prologflags": (
        *("alloc", "contain", "deferbatch", "forcerequeueonfail", "nohold", "runinjob", "serial"),
        "x11",
    ),
    "schedulertype": ("sched/backfill", "sched/builtin"),
    "slurmctlddebug": _LEVELS,
    "slurmddebug": _LEVELS,
}
_AT_LEAST_ONE = ("maxjobcount", "firstjobid", "maxstepcount")
# Slurm takes any number; its own are 10 s and more. Below these no cluster works: tried on 22.05,
# where with a MessageTimeout of 0 neither slurmctld nor a command of Slurm's hears the other.
_LEAST_S = {
    "messagetimeout": (1, "slurmctld answers nobody"),
    "slurmdtimeout": (10, "a node that says nothing for so long is DOWN, and its jobs run again"),
}
_NOT_AT_ALL = ("slurmdtimeout",)  # 0: no node is ever found silent
_SHORT_S = {
    "messagetimeout": (5, "what slurmctld and its nodes answer later is lost"),
    "batchstarttimeout": (5, "a job whose script takes longer to start is taken for lost"),
    "tcptimeout": (1, "who cannot be reached at once counts as out of reach"),
    "resumetimeout": (60, "a node that takes longer to reboot is DOWN"),
    **dict.fromkeys(
        ("prologepilogtimeout", "prologtimeout", "epilogtimeout"),
        (10, "a node whose Prolog or Epilog takes longer, and ours asks its GPUs, is drained"),
    ),
}
_SUSPENDS = {"suspend", "on"}
_PREEMPTS = {"cancel", "requeue"} | _SUSPENDS
_FIRST_WITH_PRIORITY = "25.05"
# Source: the packages of 22.05, 24.11 and 26.05; slurm.conf(5).
_PLUGINS = {
    "jobsubmitplugins": (
        *("all_partitions", "cray_aries", "defaults", "logging", "lua", "partition", "pbs"),
        *("require_timelimit", "throttle"),
    ),
    "clifilterplugins": ("lua", "none", "syslog", "user_defaults"),
    "nodefeaturesplugins": ("helpers", "knl_cray", "knl_generic"),
    "prepplugins": ("script",),
    "taskplugin": ("affinity", "cgroup", "cray_aries", "none"),
    "mcsplugin": ("account", "group", "label", "none", "user"),
    "switchtype": ("cray_aries", "generic", "hpe_slingshot", "none", "nvidia_imex"),
    "burstbuffertype": ("datawarp", "lua", "none"),
}
# The one folder that is there on each head and belongs to slurmctld.
_COMPLETIONS = re.compile(r"/var/log/slurm/[A-Za-z0-9_-][A-Za-z0-9._-]*")
# Of what strtof() reads, all that is meant as a part of memory: also `.5`, `5.`, `1e2` and words.
_DECIMAL = re.compile(
    r"\+?([0-9]{1,9}(\.[0-9]{0,9})?|\.[0-9]{1,9})(e[+-]?[0-9]{1,2})?|unlimited|infinite"
)
YES_OR_NO = ("yes", "no", "true", "false", "up", "down", "1", "0")


@frozen
class Known:
    """A setting of slurm.conf or cgroup.conf: what its value is, and the tested releases that know
    it first and last; "" where all before or after do.
    """

    file: str
    name: str
    kind: str
    since: str
    until: str


@cache
def known_settings(file: str) -> Mapping[str, Known]:
    """Name in small letters -> what Slurm says of it in this file; read once per process.

    Source: Slurm 22.05 to 26.05, src/common/read_config.c and src/interfaces/cgroup.c, which ends
    at CgroupReleaseAgentDir from 23.11 on.
    """
    text = (files("tidegate") / "data" / "slurm_settings.csv").read_text(encoding="utf-8")
    rows = (Known(**row) for row in csv.DictReader(text.splitlines()))
    return MappingProxyType({row.name.lower(): row for row in rows if row.file == file})


def own_setting(value: str) -> str:
    """The setting's name. Errors: ValueError, when Tidegate writes that line itself."""
    if value.lower() in OWN_SETTINGS:
        remedy = _REMEDIES.get(value.lower(), "leave it out")
        raise ValueError(f"{value} is written by Tidegate itself; {remedy}")
    return value


def usable_settings[Settings: dict[str, str]](settings: Settings) -> Settings:
    """Lines of slurm.conf that agent and planner can live with. Errors: ValueError."""
    for name, value in settings.items():
        if name.lower() == "slurmctlddebug" and value.lower() in _SILENT_LOGS:
            raise ValueError(
                f"{name}={value}: the agent wakes by what slurmctld logs from info on;"
                " take info, verbose or debug"
            )
        words = value.lower().split(",")
        if name.lower() == "selecttypeparameters" and not set(words) & set(_CONSUMABLE):
            raise ValueError(
                f"{name}={value}: the planner packs jobs by cores and by memory; take"
                " CR_Core_Memory or CR_CPU_Memory, with others behind a comma"
            )
        if (name.lower(), value.lower()) == ("jobcomptype", "jobcomp/filetxt"):
            _check_completions(f"{name}={value}", settings)
    return settings


def _check_completions(line: str, settings: Mapping[str, str]) -> None:
    """Slurm's own place for the file is root's. Errors: ValueError.

    Source: Slurm 22.05 to 26.05, jobcomp_filetxt.c, where open() that fails is fatal.
    """
    place = {name.lower(): value for name, value in settings.items()}.get("jobcomploc", "")
    if not _COMPLETIONS.fullmatch(place):
        raise ValueError(
            f"{line}: slurmctld does not start where it cannot write JobCompLoc; name a file in"
            " /var/log/slurm, like JobCompLoc=/var/log/slurm/jobs.txt"
        )


def why_slurm_ends(name: str, value: str, version: str, file: str = "slurm.conf") -> str:
    """Why daemons of this release would end at the line NAME=VALUE; "": they take it.

    Source: Slurm 23.11, parse_config.c (an unrecognized key is an error) and parse_value.c.
    """
    settings = known_settings(file)
    known = settings.get(name.lower())
    ends = f"{'slurmctld' if file == 'slurm.conf' else 'slurmd'} would not start"
    if known is None:
        here = [each.name for each in settings.values() if _is_of(each, version)]
        remedy = did_you_mean(name, here) or "; leave it out"
        return f"Slurm {version} has no such setting, {ends}{remedy}"
    if not _is_of(known, version):
        when = f"until {known.until}" if known.until and known.until < version else ""
        when = when or f"from {known.since} on"
        return f"Slurm {version} does not know it, {ends}: it is there {when}; leave it out"
    if known.kind == "yes-no" and value.lower() not in YES_OR_NO:
        return f"must be yes or no, is {value}: {ends}"
    if known.kind == "decimal" and not _DECIMAL.fullmatch(value.lower()):
        return f"must be a number, is {value}: {ends}"
    if words := _WORDS.get(name.lower()):
        plain = {each.rpartition("/")[2] for each in _listed(value.lower())}
        if not plain <= {each.rpartition("/")[2] for each in words}:
            return f"must be {' or '.join(words)}, is {value}: {ends}"
        if "priority" in plain and version < _FIRST_WITH_PRIORITY:
            return f"{value}: Slurm {version} knows no priority there, {ends}; leave it out"
    if reason := why_words_end(name, value, version):
        return reason
    if bits := _BITS.get(known.kind):
        number, least = slurm_number(value, bits), int(name.lower() in _AT_LEAST_ONE)
        if number is None or number < least:
            return f"must be {least}-{2**bits - 1}, is {value}: {ends}"
        least_s, why = _LEAST_S.get(name.lower(), (0, ""))
        if number < least_s and (number or name.lower() not in _NOT_AT_ALL):
            return f"must be {least_s} or more, is {value}: {why}"
    return ""


def short_times(settings: Mapping[str, str]) -> Iterator[str]:
    """Times that Slurm takes and hardly keeps, each as a sentence that begins with its line."""
    for name, value in settings.items():
        least_s, why = _SHORT_S.get(name.lower(), (0, ""))
        time_s = slurm_number(value, 16)
        if time_s is not None and time_s < least_s:
            yield f"{name} is {value}: {why}; say {least_s} or more unless that is meant"


def why_preemption_ends(settings: Mapping[str, str]) -> tuple[str, str]:
    """Which of its two lines slurmctld would end at, and why; "" and "": it takes both.

    Source: Slurm 22.05, tried; 26.05, read_config.c.
    """
    said = {name.lower(): (name, value.lower()) for name, value in settings.items()}
    of_type, kind = said.get("preempttype", ("PreemptType", "preempt/none"))
    of_mode, mode = said.get("preemptmode", ("PreemptMode", "off"))
    words = set(_listed(mode))
    does = words & _PREEMPTS
    if kind.rpartition("/")[2] == "none":
        text = f"{mode}, and nothing says who goes before whom: say PreemptType too, like"
        return (of_mode, f"{text} preempt/partition_prio, {_ENDS}") if does else ("", "")
    if not does:
        text = f"{kind}, and PreemptMode says no way: take cancel, requeue or suspend,gang"
        return of_type, f"{text}, {_ENDS}"
    if words <= _SUSPENDS:
        return of_mode, f"{mode}: suspend needs gang beside it (suspend,gang), {_ENDS}"
    return "", ""


def unshipped_plugins(settings: Mapping[str, str]) -> Iterator[str]:
    """Plugins that Slurm's packages do not bring, each as a sentence that begins with its line."""
    for name, value in settings.items():
        shipped = _PLUGINS.get(name.lower())
        for word in _listed(value) if shipped else ():
            if word.rpartition("/")[2].lower() not in (shipped or ()):
                near = did_you_mean(word.rpartition("/")[2], shipped or ())
                yield (
                    f"{name} names {word}, which no release of Slurm brings: its daemons end where"
                    f" your images or packages lack that plugin{near}"
                )


def _is_of(known: Known, version: str) -> bool:
    return known.since <= version and version <= (known.until or version)


def _listed(value: str) -> Iterator[str]:
    """Words between commas; Slurm passes over such as are empty."""
    return (each.strip() for each in value.split(",") if each.strip())
