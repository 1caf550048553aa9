"""Software that finds nodes unhealthy: checks that err, epilogs and tasks that fail; and the
person who believes a check again that was stopped.
"""

from dataclasses import replace

from tidegate.core.model.ec2 import Offering
from tidegate.core.model.slurm import SetBy
from tidegate.sim.chaos import Chaos
from tidegate.sim.draw import stream
from tidegate.sim.options import DRAINED_BY_SLURM, Happening
from tidegate.sim.slurm_parts import SimNode

CHECK = "NHC: check_hw_eth: eth0 is not found"
GPU_FAILED = (
    "tidegate-health: xid: Xid 79: GPU has fallen off the bus (fatal; NVIDIA's remedy: reboot)"
)
# What a reset of the GPUs may mend, and only a test shows it.
GPU_ERRS = (
    "tidegate-health: xid: Xid 48: Double bit ECC error"
    " (fatal; NVIDIA's remedy: reset, then a test)"
)

# Of nodes of a sick place nearly each fails; of others as many as in a week of three failures in
# 1,000 node-days.
FAILS_AT_A_SICK_PLACE, FAILS_ELSEWHERE = 0.8, 0.02
FAILS_WITHIN_S = 300.0
ERRS = 0.6  # of the failures, those that ask for a reset

# How long a stopped check waits for the person who hears of it, in worlds where somebody is there.
HEARD_AFTER_S = 120.0
HEARD = 0.5


def fall_ill(chaos: Chaos, it: Happening) -> None:
    """A check that errs drains all nodes, and those that join for a while; else it is one node."""
    slurm, clock = chaos.world.slurm, chaos.world.clock
    if it.what == "check":
        for name in list(slurm.nodes):
            _check(chaos, name)
        until_s = clock.now_s() + it.for_s
        slurm.on_join.append(
            lambda node: _check(chaos, node.name) if clock.now_s() <= until_s else None
        )
        return
    names = sorted(n for n, node in slurm.nodes.items() if not (node.is_down or node.is_drain))
    if not names or not slurm.is_up:
        return
    name = stream(chaos.options.seed, f"sick at {it.at_s}").choice(names)
    chaos.note("sick")
    chaos.sickened.add(name)
    if it.what in DRAINED_BY_SLURM:
        slurm.drains_itself(name, it.what)
    else:
        slurm.is_drained_by(SetBy.ROOT, name, it.what)


def lose_gpu(chaos: Chaos, it: Happening) -> None:
    """On a node of the first job of several nodes that runs; while none does, a little later."""
    slurm = chaos.world.slurm
    gangs = [job for job in slurm.table.active.values() if len(job.node_names) > 1]
    names = [n for job in gangs[:1] if job.state == "RUNNING" for n in job.node_names]
    well = [n for n in names if n in slurm.nodes and not slurm.nodes[n].is_down]
    if chaos.is_over:
        return
    if not well or not slurm.is_up:
        chaos.world.at(chaos.world.clock.now_s() + it.for_s, lambda: lose_gpu(chaos, it))
        return
    name = stream(chaos.options.seed, f"gpu at {it.at_s}").choice(well)
    chaos.note("gpu")
    runs = chaos.gpu_faults.setdefault(gangs[0].job_id, {})
    runs.setdefault(gangs[0].starts, chaos.world.clock.now_s())
    _gpu_fails(chaos, name)


def _check(chaos: Chaos, name: str) -> None:
    """One run of the check, which leaves a node alone that is drained for another reason."""
    slurm = chaos.world.slurm
    node = slurm.nodes[name]
    is_others = node.is_down or (node.is_drain and bool(node.reason))
    if chaos.is_over or is_others or not slurm.is_up:
        return
    chaos.note("sick")
    chaos.sickened.add(name)
    slurm.is_drained_by(SetBy.ROOT, name, CHECK)


def spoil_a_place(chaos: Chaos) -> None:
    """From now on nodes of what is bought first fail soon after they have joined, and others
    seldom.
    """
    world, chance = chaos.world, stream(chaos.options.seed, "places")
    first: list[Offering] = []

    def joined(node: SimNode) -> None:
        offering = world.compute.everything[node.name].offering
        first.extend([] if first else [offering])
        is_there = offering in first
        share, wait_s = chance.random(), chance.uniform(1.0, FAILS_WITHIN_S)
        if share < (FAILS_AT_A_SICK_PLACE if is_there else FAILS_ELSEWHERE):
            world.at(world.clock.now_s() + wait_s, lambda: _fail(chaos, node.name))

    world.slurm.on_join.append(joined)


def _fail(chaos: Chaos, name: str) -> None:
    """What the node's own watch does: a person's drain stays as it is."""
    slurm = chaos.world.slurm
    node = slurm.nodes.get(name)
    if node is None or node.is_down or node.is_drain or chaos.is_over or not slurm.is_up:
        return
    for kind in ("sick", "places"):
        chaos.note(kind)
    _gpu_fails(chaos, name)


def _gpu_fails(chaos: Chaos, name: str) -> None:
    """The node's own watch drains it, by what its log says."""
    errs = stream(chaos.options.seed, f"Xid of {name}").random() < ERRS
    chaos.falls_ill(name)
    chaos.world.slurm.is_drained_by(SetBy.ROOT, name, GPU_ERRS if errs else GPU_FAILED)


def believe_again(chaos: Chaos) -> None:
    """`tidegate retry` for each pool with a stopped check: while the story is told in some worlds,
    and after it in all, since nothing else lets those nodes go.
    """
    world = chaos.world
    world.at(world.clock.now_s() + HEARD_AFTER_S, lambda: believe_again(chaos))
    if not chaos.is_over and stream(chaos.options.seed, "hears alarms").random() >= HEARD:
        return
    for pool, history in list(world.ledger.all_pool_history.items()):
        if any(not each.is_lifted for each in history.stopped_checks):
            stops = tuple(replace(each, is_lifted=True) for each in history.stopped_checks)
            noted = replace(history, stopped_checks=stops, noted=history.noted + 1)
            world.ledger.all_pool_history[pool] = noted
            chaos.words.append((world.clock.now_s(), pool))
            world.bus.look(f"retry of pool {pool}")
