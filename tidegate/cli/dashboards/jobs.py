"""Why jobs wait, and what they cost."""

from tidegate.cli.dashboards.grafana import OF, Board, Panel, Query, Unit, by, number

WAITING = Board(
    "waiting",
    "why do jobs wait?",
    (
        number(
            "waiting",
            "Jobs that wait, tasks of arrays each.",
            f"sum(tidegate_jobs_waiting{{{OF}}})",
        ),
        number(
            "starting soon",
            "Of those: nodes are there or on their way.",
            f'sum(tidegate_jobs_waiting{{{OF},verdict="starting"}})',
        ),
        number("running", "Jobs that run.", f'sum(tidegate_slurm_jobs{{{OF},state="running"}})'),
        number(
            "longest wait for EC2",
            "Of a job that a pool could serve and that EC2 gives nothing for.",
            f'max(tidegate_jobs_oldest_wait_seconds{{{OF},verdict=~"resting|next-plan|futile"}})',
            Unit.SECONDS,
        ),
        number(
            "offerings at rest",
            "EC2 refused them, or their nodes did not come up.",
            f"sum(tidegate_offerings_resting{{{OF}}})",
        ),
        Panel(
            "what jobs wait for",
            "By verdict code: limit and budget are yours to raise, resting is EC2's shortage."
            " `tidegate why JOB` has the sentence.",
            by(f"tidegate_jobs_waiting{{{OF}}} > 0", "verdict"),
            is_stacked=True,
            empty="no job waits",
        ),
        Panel(
            "the longest wait",
            "Of the job that has waited longest, by verdict code.",
            (
                Query(
                    f"max by (verdict) (tidegate_jobs_oldest_wait_seconds{{{OF}}} > 0)",
                    "{{verdict}}",
                ),
            ),
            Unit.SECONDS,
            empty="no job waits",
        ),
        Panel(
            "limits",
            "Which part of each limit is used. At 100 % jobs wait with the verdict limit.",
            (Query(f"tidegate_limit_used_ratio{{{OF}}}", "{{scope}}: {{resource}}"),),
            Unit.RATIO,
            empty="the cluster file sets no limit",
        ),
        Panel(
            "what is not tried for a while",
            "Offerings at rest by cause.",
            by(f"tidegate_offerings_resting{{{OF}}}", "reason"),
            is_stacked=True,
        ),
    ),
)

COST = Board(
    "cost",
    "what does it cost?",
    (
        number(
            "now, by the hour",
            "All nodes that are paid for.",
            f"sum(tidegate_price_usd_per_hour{{{OF}}})",
            Unit.USD,
        ),
        number(
            "today",
            "What nodes have cost since midnight, UTC.",
            f'sum(tidegate_spent_usd{{{OF},scope="cluster",period="day"}})',
            Unit.USD,
        ),
        number(
            "this month",
            "What nodes have cost since the first of the month, UTC.",
            f'sum(tidegate_spent_usd{{{OF},scope="cluster",period="month"}})',
            Unit.USD,
        ),
        number(
            "for a busy GPU, by the hour",
            "The price of all nodes over the GPUs that have a job.",
            f"sum(tidegate_price_usd_per_hour{{{OF}}})"
            f' / (sum(tidegate_gpus{{{OF},state="busy"}}) > 0)',
            Unit.USD,
            empty="no GPU is busy",
        ),
        Panel(
            "price by pool and capacity type",
            "What the nodes cost by the hour.",
            (Query(f"tidegate_price_usd_per_hour{{{OF}}}", "{{pool}} {{capacity_type}}"),),
            Unit.USD,
            is_stacked=True,
        ),
        Panel(
            "this month by pool",
            "Since the first of the month, UTC.",
            by(f'tidegate_spent_usd{{{OF},period="month",scope=~"pool .*"}}', "scope"),
            Unit.USD,
            is_stacked=True,
        ),
        Panel(
            "budgets",
            "Which part is spent. At 100 % nothing more is launched for it.",
            (Query(f"tidegate:budget_used_ratio{{{OF}}}", "{{scope}} by {{period}}"),),
            Unit.RATIO,
            empty="the cluster file sets no budget",
        ),
        Panel(
            "lost to interruptions in this month",
            "GPU time of running jobs that AWS's reclaims undid.",
            (Query(f"tidegate_month_lost_gpu_seconds{{{OF}}}", "GPU time"),),
            Unit.SECONDS,
        ),
    ),
)
