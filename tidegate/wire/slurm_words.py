"""Words of slurm.conf that only some releases know: slurmctld ends at any other.

Source: Slurm 22.05 to 26.05, read_config.c (debug_str2flags, _validate_accounting_storage_enforce,
and TaskPluginParam in _validate_and_set_defaults).
"""

from types import MappingProxyType

from tidegate.core.model.frozen import frozen
from tidegate.wire.problems import did_you_mean

FIRST, LAST = "", "99"


@frozen
class _Words:
    """`since`, `until`: of words that not every release knows, the first and the last that does.
    `alone`: at most one of these may stand there.
    """

    all: tuple[str, ...]
    since: MappingProxyType[str, str] = MappingProxyType({})
    until: MappingProxyType[str, str] = MappingProxyType({})
    alone: tuple[tuple[str, ...], ...] = ()

    def known(self, version: str) -> tuple[str, ...]:
        return tuple(
            each
            for each in self.all
            if self.since.get(each, FIRST) <= version <= self.until.get(each, LAST)
        )


_AUTOBIND = tuple(f"autobind={each}" for each in ("none", "threads", "cores", "sockets"))
_UNITS = ("none", "sockets", "cores", "threads")
_OFF, _OVERRIDE = "slurmdoffspec", "slurmdspecoverride"

_LISTS = MappingProxyType(
    {
        "accountingstorageenforce": _Words(
            (
                *("associations", "limits", "nojobs", "nosteps", "qos", "safe", "wckeys", "all"),
                *("1", "2"),
            )
        ),
        "debugflags": _Words(
            (
                *("accrue", "agent", "auditrpcs", "audittls", "backfill", "backfillmap"),
                *("burstbuffer", "cgroup", "conmgr", "cpu_bind", "cpufrequency", "data"),
                *("db_archive", "db_assoc", "db_event", "db_job", "db_qos", "db_query"),
                *("db_reservation", "db_resource", "db_step", "db_tres", "db_usage", "db_wckey"),
                *("dbd_agent", "dependency", "elasticsearch", "energy", "extsensors"),
                *("federation", "frontend", "gang", "glob_silence", "gres", "hetjob"),
                *("interconnect", "jag", "jobaccountgather", "jobcomp", "jobcontainer", "license"),
                *("metrics", "mpi", "namespace", "net", "netraw", "network", "networkraw"),
                *("no_conf_hash", "nodefeatures", "power", "powersave", "priority", "profile"),
                *("protocol", "reservation", "route", "sack", "script", "selecttype", "steps"),
                *("switch", "task", "thread", "threads", "timecray", "tls", "tracejobs"),
                *("trigger", "triggers", "workq", "workqueue"),
            ),
            since=MappingProxyType(
                {
                    **dict.fromkeys(("glob_silence", "jobcomp", "sack"), "23.11"),
                    **dict.fromkeys(("auditrpcs", "conmgr", "dbd_agent", "tls"), "24.11"),
                    "audittls": "25.05",
                    **dict.fromkeys(("metrics", "namespace"), "25.11"),
                    **dict.fromkeys(("thread", "threads"), "26.05"),
                }
            ),
            until=MappingProxyType(
                {**dict.fromkeys(("extsensors", "timecray"), "23.11"), "frontend": "24.11"}
            ),
        ),
        "taskpluginparam": _Words(
            (*_UNITS, "verbose", *_AUTOBIND, _OFF, "oomkillstep", _OVERRIDE),
            since=MappingProxyType({"oomkillstep": "24.11", _OVERRIDE: "25.05"}),
            alone=(_UNITS, _AUTOBIND, (_OFF, _OVERRIDE)),
        ),
    }
)


def why_words_end(name: str, value: str, version: str) -> str:
    """Why slurmctld of this release would end at NAME=VALUE; "": it takes it, or is not asked."""
    words = _LISTS.get(name.lower())
    if words is None:
        return ""
    known = words.known(version)
    said = [each for each in value.lower().split(",") if each]
    for word in said:
        if word not in known:
            there = word in words.all
            why = f"Slurm {version} does not know it" if there else "Slurm knows no such word"
            return f"{word}: {why}, slurmctld would not start{did_you_mean(word, known)}"
    for group in words.alone:
        if len(both := [each for each in said if each in group]) > 1:
            return f"{both[0]} and {both[1]}: one of them alone, slurmctld would not start"
    return ""
