"""Whether Tidegate itself does what it should."""

from tidegate.cli.dashboards.grafana import OF, Board, Panel, Query, Unit, by, number

HEALTH = Board(
    "health",
    "is Tidegate healthy?",
    (
        number(
            "alerts",
            "Those that fire; Prometheus' own page has the sentence.",
            f'count(ALERTS{{{OF},alertstate="firing"}}) or vector(0)',
        ),
        number("slurmctld", "1: it answers.", f"min(tidegate_agent_slurm_up{{{OF}}})"),
        number(
            "agent wrote",
            "How long ago; above five minutes alerts.",
            f"time() - max(tidegate_agent_written_timestamp_seconds{{{OF}}})",
            Unit.SECONDS,
            empty="no agent",
        ),
        number(
            "last digest",
            "How old what the planner knows is.",
            f"max(tidegate_digest_age_seconds{{{OF}}})",
            Unit.SECONDS,
            empty="none was sent",
        ),
        number(
            "last verdicts",
            "How long ago the planner judged something new.",
            f"max(tidegate_verdicts_age_seconds{{{OF}}})",
            Unit.SECONDS,
        ),
        number(
            "agent runs since",
            "It begins again with each deployment that changes it.",
            f"time() - max(tidegate_agent_start_time_seconds{{{OF}}})",
            Unit.SECONDS,
        ),
        Panel(
            "orders by outcome",
            "kept: the guard said no, as it should. A drain fails while its node boots.",
            by(f"rate(tidegate_agent_orders_total{{{OF}}}[$__rate_interval])", "outcome"),
            Unit.PER_SECOND,
            is_stacked=True,
        ),
        Panel(
            "digests",
            "Sent to the planner, and not.",
            by(f"rate(tidegate_agent_digests_total{{{OF}}}[$__rate_interval])", "outcome"),
            Unit.PER_SECOND,
        ),
        Panel(
            "reading Slurm",
            "How long the agent's look took; it grows with the queue.",
            (Query(f"tidegate_agent_look_seconds{{{OF}}}", "look"),),
            Unit.SECONDS,
        ),
        Panel(
            "the head's memory and disks",
            "The part that is in use.",
            (
                Query(
                    f'1 - node_memory_MemAvailable_bytes{{{OF},job="head"}}'
                    f" / node_memory_MemTotal_bytes{{{OF}}}",
                    "memory",
                ),
                Query(
                    f'1 - node_filesystem_avail_bytes{{{OF},job="head",'
                    f'fstype!~"tmpfs|ramfs|squashfs|nfs4?"}} / node_filesystem_size_bytes{{{OF}}}',
                    "{{mountpoint}}",
                ),
            ),
            Unit.RATIO,
        ),
        Panel(
            "the head's load",
            "Processes that run or wait; above the number of its processors it is short of them.",
            (Query(f'node_load1{{{OF},job="head"}}', "load"),),
        ),
        Panel(
            "targets that answer",
            "Exporters that Prometheus reaches.",
            (Query(f"count by (job) (up{{{OF}}} == 1)", "{{job}}"),),
        ),
    ),
)
