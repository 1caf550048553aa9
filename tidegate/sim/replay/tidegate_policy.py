"""Tidegate in a replay: the planner of the functions, on snapshots of the replay's world."""

from collections.abc import Iterator
from dataclasses import replace

from tidegate.core.buy.dealing import shares
from tidegate.core.fleet.week import HOUR_S, is_trusted
from tidegate.core.fleet.worth import kept_s
from tidegate.core.interruption.save import after_loss
from tidegate.core.model.digest import Digest, Stamp
from tidegate.core.model.drain_reason import DrainCode, code_of
from tidegate.core.model.ec2 import Instance, InstanceState, Market, Offering
from tidegate.core.model.ledger import Charge, Launch, NodeRecord, Phase
from tidegate.core.model.orders import Order, OrderKind
from tidegate.core.model.plan import Learn, Mark, Rest, Send, Terminate, Watch
from tidegate.core.model.pool_history import PoolHistory
from tidegate.core.model.resting import Resting, rest_s
from tidegate.core.model.slurm import Node, NodeState, Reading
from tidegate.core.model.snapshot import Epoch, Snapshot
from tidegate.core.model.stuck import Stuck
from tidegate.core.offers.spend import charges
from tidegate.core.planner import plan
from tidegate.sim.ledger import RESTING_KEPT_S
from tidegate.sim.replay.state import Machine
from tidegate.sim.replay.stopped import Stopped
from tidegate.sim.replay.world import HEARTBEAT_S, World

# While nothing waits, runs or is up the head's agent reports so often.
IDLE_HEARTBEAT_S = 300.0

STATES = {
    (is_empty, is_drain): NodeState.parse(
        ("IDLE" if is_empty else "MIXED") + ("+DRAIN" if is_drain else "") + "+DYNAMIC_NORM"
    )
    for is_empty in (True, False)
    for is_drain in (True, False)
}

NO_CAPACITY = "InsufficientInstanceCapacity"


class Tidegate:
    """Remembers what the ledger would."""

    def __init__(self) -> None:
        self._records: dict[str, NodeRecord] = {}
        self._instances: dict[str, Instance] = {}
        self._nodes: dict[str, tuple[int, Node]] = {}
        self._stuck: dict[str, Stuck] = {}
        self._resting: dict[Offering, Resting] = {}
        self._pool_history: dict[str, PoolHistory] = {}
        self._spent: dict[tuple[str, str], float] = {}
        self._num_charged = self._num_gone = 0
        self._epoch = 0
        self._stopped: dict[str, Stopped] = {}
        self._disks_usd: dict[str, float] = {}
        self.unmet: dict[str, str] = {}
        self.most_usd_per_hour = 0.0

    def decide(self, world: World) -> float | None:
        self._epoch += 1
        snapshot = self._snapshot(world)
        made = plan(snapshot)
        for each in made.unmet:
            self.unmet[each.job_id] = each.reason
        is_acting = is_refused = False
        for action in made.actions:
            match action:
                case Launch():
                    is_refused |= self._launch(world, action)
                    is_acting = True
                case Send(order=order):
                    is_acting |= self._carry_out(world, order)
                case Mark(instance_id=name) if name in self._records:
                    record = self._records[name]
                    gated_for = "" if action.is_ungated else record.gated_for
                    phase = max(action.phase, record.phase)
                    self._records[name] = replace(record, phase=phase, gated_for=gated_for)
                case Terminate(instance_ids=names):
                    for name in names:
                        if name in world.machines:
                            world.end(world.machines[name], world.now_s)
                        elif name in self._stopped:
                            self._count_disk(self._stopped.pop(name), world.now_s)
                case Watch(stuck=stuck):
                    self._stuck[stuck.job_id] = stuck
                case Learn(pool_history=history):
                    self._pool_history[history.pool] = history
                case Rest(offering=offering, code=code):
                    self._rest(world, offering, code)
                case _:
                    pass
        world.has_news = bool(made.unmet)
        usd = sum(each.usd_per_hour for each in world.machines.values())
        self.most_usd_per_hour = max(self.most_usd_per_hour, usd)
        return self._next_s(world, is_cut=made.is_cut, is_refused=is_refused)

    def _next_s(self, world: World, *, is_cut: bool, is_refused: bool) -> float | None:
        """At once when the plan was cut, or EC2 has answered that it has not all of it; later when
        idle nodes were kept, for whatever reason.
        """
        if is_cut:
            return world.now_s + 1.0
        if is_refused:
            return world.now_s + world.setting.fleet_s
        next_s = self._hour_s(world) if world.cluster.waiting.most_usd else None
        late = (
            each.is_empty and each.is_up and world.now_s - each.idle_since_s >= HEARTBEAT_S
            for each in world.machines.values()
        )
        if not any(late):
            return next_s
        if not world.cluster.waiting.most_usd:
            return world.now_s + HEARTBEAT_S
        # What spare nodes are worth changes when a piece of time as long as a boot has ended.
        pieces_s = {max(pool.boot_s, HEARTBEAT_S) for pool in world.cluster.pools}
        return min((world.now_s // each + 1) * each for each in pieces_s)

    def _hour_s(self, world: World) -> float | None:
        """The head's report before the next hour from which a forecast may ask for nodes."""
        weeks = (each.week for known in self._pool_history.values() for each in known.arrivals)
        if world.is_over or not any(map(is_trusted, weeks)):
            return None
        boot_s = max(pool.boot_s for pool in world.cluster.pools)
        hour_s = ((world.now_s + boot_s) // HOUR_S + 1) * HOUR_S
        return -((boot_s - hour_s) // IDLE_HEARTBEAT_S) * IDLE_HEARTBEAT_S

    def _launch(self, world: World, launch: Launch) -> bool:
        """Whether EC2 refused a part of it."""
        refused = [self._launch_share(world, launch, *share) for share in shares(launch)]
        return any(refused)

    def _launch_share(self, world: World, launch: Launch, gang: str, missing: int) -> bool:
        pool = world.cluster.pool(launch.pool)
        assert pool is not None
        offerings = launch.offerings
        if launch.starts:
            pool = replace(pool, boot_s=pool.up_in_s(is_started=True))
        if gang:
            machines = list(world.machines.values())
            whole = world.fleets.whole_at(offerings, missing, machines, world.now_s)
            if not whole and world.fleets.starts_left(world.now_s) >= missing:
                for offering in offerings:
                    self._rest(world, offering, NO_CAPACITY)
                return True
            offerings = tuple(whole)
        for offering in offerings:
            payer = (launch.account, launch.user)
            bought = world.buy(pool, offering, missing, gang, *payer, layout=launch.layout)
            if launch.starts and bought:
                self._count_disk(self._stopped.pop(launch.starts), world.now_s)
            for machine in bought:
                self._records[machine.name] = NodeRecord(
                    instance_id=machine.name,
                    launch_id=launch.launch_id,
                    pool=pool.name,
                    offering=offering,
                    launched_at_s=world.now_s,
                    usd_per_hour=machine.usd_per_hour,
                    gated_for=gang,
                    account=launch.account,
                    user=world.cluster.counted(launch.user),
                    reservation=launch.reservation,
                    layout=launch.layout,
                )
                self._instances[machine.name] = Instance(
                    machine.name,
                    offering,
                    InstanceState.RUNNING,
                    world.now_s,
                    launch.launch_id,
                    pool.name,
                )
            missing -= len(bought)
            if not missing or not world.fleets.starts_left(world.now_s):
                return False  # asked too fast, which says nothing of capacity: the next look asks
            self._rest(world, offering, NO_CAPACITY)
        return bool(missing and offerings)

    def _rest(self, world: World, offering: Offering, code: str) -> None:
        timings = world.cluster.timings
        before = self._resting.get(offering)
        failures = before.failures + 1 if before else 1
        until_s = world.now_s + world.setting.fleet_s + rest_s(failures, timings)
        self._resting[offering] = Resting(offering, until_s, failures, code, "no capacity")

    def _carry_out(self, world: World, order: Order) -> bool:
        """What the head's agent does with it; whether anything changed."""
        has_changed = False
        if order.kind is OrderKind.CONSTRAIN:
            changed = [name for name in order.names if world.constrain(name, order.text)]
            return bool(changed)
        for name in order.names:
            machine = world.machines.get(name)
            if machine is None:
                continue
            if not machine.is_up:
                if order.kind is OrderKind.DRAIN:
                    machine.closes = order.text, order.not_after_s
                continue
            match order.kind:
                case OrderKind.DRAIN:
                    if not order.only_if or machine.is_empty or "MIXED" in order.only_if:
                        world.set_drain(machine, True, order.text)
                        has_changed = True
                case OrderKind.UNDRAIN:
                    world.set_drain(machine, False)
                    has_changed = True
                case OrderKind.WEIGHT:
                    world.weigh(machine, int(order.text))
                case OrderKind.RELEASE:
                    has_changed |= self._release(world, machine, order)
                case OrderKind.DELETE:
                    world.end(machine, world.now_s)
                case _:  # jobs on reclaimed nodes are requeued by the world at the reclaim
                    pass
        return has_changed

    def _release(self, world: World, machine: Machine, order: Order) -> bool:
        """It ends, or is stopped as the planner would."""
        record, is_released = self._records[machine.name], world.release(machine)
        pool = world.cluster.pool(machine.pool)
        most = pool.stopped_nodes if pool and kept_s(world.cluster, pool) else 0
        kept = sum(each.record.pool == machine.pool for each in self._stopped.values())
        is_idle = code_of(order.text) is DrainCode.EMPTY
        is_on_demand = machine.offering.market is Market.ON_DEMAND
        is_alike = not machine.layout  # what was cut for jobs is not started for others
        if pool and is_released and is_idle and is_on_demand and is_alike and kept < most:
            self._stopped[machine.name] = Stopped(record, pool, world.now_s)
        return is_released

    def _count_disk(self, stopped: Stopped, until_s: float) -> None:
        pool = stopped.pool.name
        self._disks_usd[pool] = self._disks_usd.get(pool, 0.0) + stopped.usd(until_s)

    def disks_usd(self, until_s: float) -> dict[str, float]:
        """What stopped nodes have cost, by pool, those that still stand among them."""
        for name in list(self._stopped):
            self._count_disk(self._stopped.pop(name), until_s)
        return self._disks_usd

    # -- what is seen ----------------------------------------------------------------------

    def _snapshot(self, world: World) -> Snapshot:
        self._charge(world)
        alive = world.machines
        ended = tuple(self._ended(each) for each in self._gone(world))
        self._records = {name: self._record(world, alive[name]) for name in alive}
        self._instances = {name: self._instances[name] for name in alive}
        nodes = tuple(self._node(each) for each in alive.values() if each.is_up)
        jobs = [run.running for run in world.running.values() if run.running]
        jobs += [run.pending for run in world.queue.waiting.values()]
        now_s = world.now_s
        self._stuck = {k: v for k, v in self._stuck.items() if v.is_forgotten_at_s > now_s}
        since_s, rests = now_s - RESTING_KEPT_S, self._resting
        self._resting = {on: rest for on, rest in rests.items() if rest.until_s > since_s}
        reading = Reading("24.11", tuple(jobs), nodes)
        digest = Digest(world.cluster.name, Stamp("i-head", 0.0, self._epoch), now_s, reading)
        return Snapshot(
            now_s=now_s,
            cluster=world.cluster,
            epoch=Epoch("replay", self._epoch),
            digest=digest,
            digest_age_s=0.0,
            instances=(
                *self._instances.values(),
                *(each.instance for each in self._stopped.values()),
            ),
            nodes=(
                *self._records.values(),
                *ended,
                *(each.known for each in self._stopped.values()),
            ),
            resting=tuple(self._resting.values()),
            stuck=tuple(self._stuck.values()),
            pool_history=tuple(self._pool_history.values()),
            spent=tuple(Charge(*key, usd) for key, usd in self._spent.items()),
        )

    def _charge(self, world: World) -> None:
        """What nodes that are gone have cost, where there are budgets."""
        ended = world.gone[self._num_charged :] if world.cluster.budgets else ()
        for machine in ended:
            assert machine.ended_s is not None
            for each in charges(self._records[machine.name], machine.ended_s):
                key = each.period, each.scope
                self._spent[key] = self._spent.get(key, 0.0) + each.usd
        self._num_charged += len(ended)

    def _record(self, world: World, machine: Machine) -> NodeRecord:
        record = self._records[machine.name]
        if machine.reclaim_s is not None and record.reclaim_at_s is None:
            before, timings = self._resting.get(machine.offering), world.cluster.timings
            if rest := after_loss(machine.offering, before, world.now_s, timings):
                self._resting[machine.offering] = rest
            return replace(record, phase=Phase.INTERRUPTED, reclaim_at_s=machine.reclaim_s)
        return record

    def _gone(self, world: World) -> Iterator[Machine]:
        """Spot nodes that have ended since the last look, which alone sees that they did."""
        ended = world.gone[self._num_gone :]
        self._num_gone += len(ended)
        return (each for each in ended if each.offering.market is Market.SPOT)

    def _ended(self, machine: Machine) -> NodeRecord:
        record = self._records[machine.name]
        if machine.reclaim_s is None:
            return replace(record, phase=Phase.RELEASED, ended_at_s=machine.ended_s)
        return replace(record, phase=Phase.INTERRUPTED, reclaim_at_s=machine.reclaim_s)

    def _node(self, machine: Machine) -> Node:
        known = self._nodes.get(machine.name)
        if known and known[0] == machine.changes:
            return known[1]
        of = machine.instance_type
        is_all = bool(machine.num_exclusive)
        node = Node(
            name=machine.name,
            state=STATES[machine.is_empty, machine.is_drain],
            cpus=of.cpus,
            memory_mib=of.slurm_memory_mib,
            gpus=of.gpus,
            gpu_type=of.gpu_type,
            cpus_alloc=of.cpus if is_all else of.cpus - machine.cpus_free,
            memory_alloc_mib=(
                of.slurm_memory_mib if is_all else of.slurm_memory_mib - machine.memory_free_mib
            ),
            gpus_alloc=of.gpus if is_all else of.gpus - machine.gpus_free,
            features=machine.features,
            reason=machine.drain_reason,
            last_busy_at_s=machine.idle_since_s,
            weight=machine.weight,
            gres=of.gres,
        )
        node = machine.parts.told(node) if machine.parts is not None else node
        self._nodes[machine.name] = machine.changes, node
        return node
