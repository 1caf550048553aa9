"""Whether GPUs are used and nodes are well."""

from tidegate.cli.dashboards.grafana import OF, Board, Panel, Query, Unit, by, number

NO_NEURON = "no node has neuron-monitor"


def _worst_of_efa(counter: str, called: str) -> Query:
    rate = f"rate(tidegate_efa_{counter}_total{{{OF}}}[15m])"
    return Query(f"topk(5, sum by (instance) ({rate}))", f"{{{{instance}}}} {called}")


def _worst_of_neuron(kind: str) -> Query:
    rise = f'increase(tidegate_neuron_errors_total{{{OF},kind="{kind}"}}[1h])'
    return Query(f"topk(5, sum by (instance) ({rise}))", f"{{{{instance}}}} {kind}")


GPUS = Board(
    "gpus",
    "are the GPUs used?",
    (
        number("paid for", "GPUs of nodes that live.", f'sum(tidegate_gpus{{{OF},state="paid"}})'),
        number("with a job", "GPUs that jobs have.", f'sum(tidegate_gpus{{{OF},state="busy"}})'),
        number(
            "with a job, of those paid for",
            "Below 10 % for half an hour alerts.",
            f"max(tidegate:gpus_busy_ratio{{{OF}}})",
            Unit.RATIO,
            empty="no GPU is paid for",
        ),
        number(
            "lost",
            "Paid for and of no use: their nodes are drained, down or unknown to Slurm.",
            f'sum(tidegate_gpus{{{OF},state="lost"}})',
        ),
        number(
            "how busy GPUs are",
            "Mean of all GPUs that are measured.",
            f"avg(DCGM_FI_DEV_GPU_UTIL{{{OF}}})",
            Unit.PERCENT,
            empty="no node has dcgm-exporter",
        ),
        Panel(
            "GPUs",
            "The gap between paid and busy is boots, idle time and nodes that are no use.",
            by(f"tidegate_gpus{{{OF}}}", "state"),
        ),
        Panel(
            "how busy GPUs are, by pool",
            "The share of time in which a kernel ran; a kernel may still use little of the GPU.",
            (Query(f"avg by (pool) (DCGM_FI_DEV_GPU_UTIL{{{OF}}})", "{{pool}}"),),
            Unit.PERCENT,
            empty="no node has dcgm-exporter",
        ),
        Panel(
            "jobs with the idlest GPUs",
            "Mean of the last hour of each job's GPUs, the ten lowest.",
            (
                Query(
                    "bottomk(10, avg by (hpc_job)"
                    f' (avg_over_time(DCGM_FI_DEV_GPU_UTIL{{{OF},hpc_job!=""}}[1h])))',
                    "job {{hpc_job}}",
                ),
            ),
            Unit.PERCENT,
            kind="bargauge",
            empty="no job is measured",
        ),
        Panel(
            "GPUs that idle in jobs, by partition",
            "How many GPUs and Neuron devices of running jobs were used for less than 5 %, of those"
            " that nodes tell of. tidegate cost --by user says whose.",
            (
                Query(
                    "sum by (partition)"
                    f' (rate(tidegate_job_gpu_seconds_total{{{OF},use="idle"}}[15m]))',
                    "{{partition}}",
                ),
            ),
            empty="no node tells of jobs with GPUs",
        ),
        Panel(
            "tensor cores, by pool",
            "The share of time in which they worked. Low on busy GPUs: the code does not use them.",
            (Query(f"avg by (pool) (DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{OF}}})", "{{pool}}"),),
            Unit.RATIO,
            empty="no node has dcgm-exporter",
        ),
        Panel(
            "GPU memory in use, by pool",
            "Of all that the GPUs have.",
            (
                Query(
                    f"sum by (pool) (DCGM_FI_DEV_FB_USED{{{OF}}})"
                    f' / sum by (pool) ({{__name__=~"DCGM_FI_DEV_FB_(USED|FREE)",{OF}}})',
                    "{{pool}}",
                ),
            ),
            Unit.RATIO,
            empty="no node has dcgm-exporter",
        ),
        Panel(
            "power, by pool",
            "Of all GPUs together.",
            by(f"DCGM_FI_DEV_POWER_USAGE{{{OF}}}", "pool"),
            Unit.WATT,
            is_stacked=True,
            empty="no node has dcgm-exporter",
        ),
        Panel(
            "hottest GPU, by pool",
            "Above 85 °C most GPUs slow down.",
            (Query(f"max by (pool) (DCGM_FI_DEV_GPU_TEMP{{{OF}}})", "{{pool}}"),),
            Unit.CELSIUS,
            empty="no node has dcgm-exporter",
        ),
        Panel(
            "how busy Neuron devices are, by pool",
            "Mean of their NeuronCores, of devices without a program too.",
            (Query(f"avg by (pool) (tidegate_neuron_use_ratio{{{OF}}})", "{{pool}}"),),
            Unit.RATIO,
            empty=NO_NEURON,
        ),
        Panel(
            "Neuron devices that idle, by pool",
            "How many were used for less than 5 % in the last hour, with a job or without.",
            (
                Query(
                    "sum by (pool) (avg_over_time(tidegate_neuron_use_ratio"
                    f"{{{OF}}}[1h]) < bool 0.05)",
                    "{{pool}}",
                ),
            ),
            empty=NO_NEURON,
        ),
        Panel(
            "jobs with the idlest Neuron devices",
            "Mean of the last hour of the devices on which each job computes or has data, the ten"
            " lowest. `tidegate status` also names jobs without a program.",
            (
                Query(
                    "bottomk(10, avg by (hpc_job)"
                    f' (avg_over_time(tidegate_neuron_use_ratio{{{OF},hpc_job!=""}}[1h])))',
                    "job {{hpc_job}}",
                ),
            ),
            Unit.RATIO,
            kind="bargauge",
            empty="no job is measured",
        ),
        Panel(
            "memory of Neuron devices in use, by pool",
            "Of all that they have.",
            (
                Query(
                    f"sum by (pool) (tidegate_neuron_memory_used_bytes{{{OF}}})"
                    f" / sum by (pool) (tidegate_neuron_memory_bytes{{{OF}}})",
                    "{{pool}}",
                ),
            ),
            Unit.RATIO,
            empty=NO_NEURON,
        ),
    ),
)

FLEET = Board(
    "fleet",
    "is the fleet healthy?",
    (
        number("nodes", "All that are paid for.", f"sum(tidegate_nodes{{{OF}}})"),
        number(
            "unhealthy",
            "A check or Slurm took them out; they are replaced.",
            f'sum(tidegate_nodes{{{OF},state="unhealthy"}})',
        ),
        number(
            "lost",
            "Of no use until somebody acts: `tidegate status` names them.",
            f"sum(tidegate_nodes_lost{{{OF}}})",
        ),
        number(
            "late",
            "They boot for longer than their pool's nodes do.",
            f"sum(tidegate_nodes_late{{{OF}}})",
        ),
        number(
            "failed launches",
            "Of the last half hour, since one went well.",
            f"sum(tidegate_pool_failed_launches{{{OF}}})",
        ),
        number(
            "taken back this month",
            "Nodes that AWS interrupted.",
            f"sum(tidegate_month_interrupted_nodes{{{OF}}})",
        ),
        Panel(
            "nodes by state",
            "What each node is doing.",
            by(f"tidegate_nodes{{{OF}}}", "state"),
            is_stacked=True,
        ),
        Panel(
            "nodes by pool and capacity type",
            "All that are paid for.",
            (
                Query(
                    f"sum by (pool, capacity_type) (tidegate_nodes{{{OF}}})",
                    "{{pool}} {{capacity_type}}",
                ),
            ),
            is_stacked=True,
        ),
        Panel(
            "nodes as Slurm has them",
            "Also while the planner is silent.",
            by(f"tidegate_slurm_nodes{{{OF}}}", "state"),
            is_stacked=True,
        ),
        Panel(
            "failed launches by pool",
            "After three in half an hour a pool buys nothing until it has passed.",
            (Query(f"tidegate_pool_failed_launches{{{OF}}}", "{{pool}}"),),
        ),
        Panel(
            "fullest disk of a node, by pool",
            "A full disk ends jobs.",
            (
                Query(
                    f'max by (pool) (1 - node_filesystem_avail_bytes{{{OF},job="node",'
                    f'fstype!~"tmpfs|ramfs|squashfs"}} / node_filesystem_size_bytes{{{OF}}})',
                    "{{pool}}",
                ),
            ),
            Unit.RATIO,
            empty="no node has node exporter",
        ),
        Panel(
            "network of nodes, by pool",
            "Received, all nodes together; EFA does not count here.",
            by(
                f'rate(node_network_receive_bytes_total{{{OF},job="node",device!="lo"}}'
                "[$__rate_interval])",
                "pool",
            ),
            Unit.BYTES_PER_SECOND,
            empty="no node has node exporter",
        ),
        Panel(
            "EFA, by pool",
            "Sent, RDMA included, all devices of all nodes together.",
            by(f"rate(tidegate_efa_tx_bytes_total{{{OF}}}[$__rate_interval])", "pool"),
            Unit.BYTES_PER_SECOND,
            empty="no node has EFA",
        ),
        Panel(
            "EFA that fails, by node",
            "Time-outs and peers that do not answer, the five worst nodes each: one that stands out"
            " alone is worth a look, `tidegate node hold` keeps it for that.",
            (
                _worst_of_efa("retrans_timeout_events", "time-outs"),
                _worst_of_efa("unresponsive_remote_events", "peers that are silent"),
            ),
            Unit.PER_SECOND,
            kind="bargauge",
            empty="no node has EFA",
        ),
        Panel(
            "memory errors of Neuron devices, by node",
            "Of the last hour, in their DRAM and SRAM, the five worst nodes each. Those that could"
            " not be corrected drain the node by themselves where the driver says so.",
            (_worst_of_neuron("uncorrected"), _worst_of_neuron("corrected")),
            kind="bargauge",
            empty=NO_NEURON,
        ),
    ),
)
