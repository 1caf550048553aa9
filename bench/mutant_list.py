"""Deliberate faults of planner, service and agent that the simulation has to find.

Each is a few textual edits of `tidegate/`, so that the product knows nothing of them. An edit
whose old text does not stand in its file exactly once is an error: the list follows the code.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """`old`, exactly once in `tidegate/<file>`, becomes `new`."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: what goes wrong, in words, and the edits that make it so."""

    name: str
    edits: tuple[Edit, ...]


def _mutant(name: str, *edits: tuple[str, str, str]) -> Mutant:
    return Mutant(name, tuple(Edit(*edit) for edit in edits))


MUTANTS = (
    # -- planner: what is counted and bought -------------------------------------------------
    _mutant(
        "nodes in flight are not counted as capacity",
        ("core/reconcile.py", "Use.NONE if member.record.cordon else Use.IN_FLIGHT", "Use.NONE"),
    ),
    _mutant(
        "launches in doubt are not counted",
        (
            "core/nodes.py",
            "        _count_in_doubt(work, record)\n",
            "        pass\n",
        ),
    ),
    _mutant(
        "what is on its way is not debited from the limits",
        (
            "core/nodes.py",
            "    if (is_gone and not is_seen) or (member.record is None and is_counted):",
            "    if member.node is None or (member.record is None and is_counted):",
        ),
    ),
    _mutant(
        "the cluster's limits are ignored",
        (
            "core/limits.py",
            "tuple(each for each in both if each[1] != UNLIMITED)",
            "tuple(each for each in both[:1] if each[1] != UNLIMITED)",
        ),
    ),
    _mutant(
        "the pools' limits are ignored",
        (
            "core/limits.py",
            "tuple(each for each in both if each[1] != UNLIMITED)",
            "tuple(each for each in both[1:] if each[1] != UNLIMITED)",
        ),
    ),
    _mutant(
        "limits are debited by the cheapest of the offerings",
        (
            "core/buy.py",
            "if self._usage.widen(draft.shelf.pool.name, draft.count, draft.each, wider):",
            "if True:",
        ),
    ),
    _mutant(
        "an unavailable mark is ignored",
        (
            "core/shelves.py",
            "usd is not None and usd > 0 and offering not in self.resting",
            "usd is not None and usd > 0",
        ),
    ),
    _mutant(
        "caps of accounting are ignored",
        (
            "core/caps.py",
            "            room, sentence = self._room(cap, job, uses[cap.tres])",
            "            room, sentence = job.count, ''",
        ),
    ),
    _mutant(
        "the calendar does not stop purchases",
        (
            "core/serving.py",
            "        if work.snapshot.wanted.is_up:\n            self._blueprint",
            "        if True:\n            self._blueprint",
        ),
        (
            "core/gangs.py",
            "    if not work.snapshot.wanted.is_up:\n        return False\n",
            "",
        ),
    ),
    _mutant(
        "an old digest is taken for a fresh one",
        (
            "core/snapshot.py",
            "        if self.digest_age_s > bound_s:",
            "        if self.digest_age_s > 1e9:",
        ),
    ),
    _mutant(
        "a plan depends on the order of Slurm's answer",
        (
            "core/members.py",
            "    for instance_id in sorted(records.keys() | instances.keys()):",
            "    for instance_id in {**records, **instances}:",
        ),
    ),
    _mutant(
        "a job that a cap stops gets no verdict",
        (
            "core/serving.py",
            "    work.unmet.update({each.job_id: each for each in unmet})",
            "    work.unmet.update({each.job_id: each for each in unmet[:1]})",
        ),
    ),
    # -- planner: gangs ----------------------------------------------------------------------
    _mutant(
        "a gang opens before it is complete",
        (
            "core/work.py",
            "        return not is_short and all(each.kind is BinKind.EXISTING for each in held)",
            "        return any(each.kind is BinKind.EXISTING for each in held)",
        ),
    ),
    _mutant(
        "a gang's launch takes a part of it",
        (
            "core/buy.py",
            "        min_count=draft.count if draft.gated_for else 1,",
            "        min_count=1,",
        ),
    ),
    _mutant(
        "a gang's nodes join open",
        (
            "service/requests.py",
            "    if launch.gated_for:\n",
            "    if False:\n",
        ),
    ),
    _mutant(
        "a gang is spread over zones",
        (
            "core/buy.py",
            '            if draft.zone not in ("", offering.zone):\n                continue\n',
            "",
        ),
    ),
    # -- planner: nodes that come and go -----------------------------------------------------
    _mutant(
        "an interrupted node counts as free",
        (
            "core/reconcile.py",
            "    if record.phase is Phase.INTERRUPTED or reclaim_at_s(record, now_s) is not None:",
            "    if reclaim_at_s(record, now_s) is not None and now_s < 0:",
        ),
    ),
    _mutant(
        "an instance is terminated before its node is IDLE+DRAIN",
        (
            "core/reconcile.py",
            '        return Judged(member, Use.LEAVING, joined, reason="a release is on its way")',
            '        return _end(member, "a release is on its way")',
        ),
    ),
    _mutant(
        "a boot that never ends is never given up",
        (
            "core/reconcile.py",
            "    is_late = seen_at_s - member.launched_at_s > timings.boot_bound_s",
            "    is_late = False",
        ),
    ),
    _mutant(
        "idle nodes are kept",
        (
            "core/idle.py",
            "elif node.name in unused and idle_s >= pool.idle_s and",
            "elif node.name in unused and idle_s >= pool.idle_s + 3600 and",
        ),
    ),
    _mutant(
        "what Slurm has released is not terminated",
        (
            "core/reconcile.py",
            '        return _end(member, "released by Slurm")',
            "        return Judged(member, Use.NONE)",
        ),
        (
            "core/reconcile.py",
            '        return _end(member, "Slurm no longer knows this node")',
            "        return Judged(member, Use.NONE)",
        ),
    ),
    _mutant(
        "what Describe leaves out is forgotten",
        (
            "core/reconcile.py",
            "    if member.instance is not None:\n        return ()\n",
            "    if member.instance is None or True:\n        return ()\n",
        ),
    ),
    _mutant(
        "a launch in doubt is never finished",
        (
            "core/nodes.py",
            "        if age_s >= lease_s:",
            "        if age_s >= lease_s + 1e9:",
        ),
    ),
    _mutant(
        "a node that a person has drained is released",
        (
            "core/reconcile.py",
            "    if node.reason.startswith(OUR_REASON) or not node.reason:",
            "    if True:",
        ),
        (
            "agent/release.py",
            "        if node.state.is_drain and not node.state.is_down and is_theirs:",
            "        if False:",
        ),
    ),
    # -- planner: money on jobs that Slurm does not start --------------------------------------
    _mutant(
        "a refused offering is forgotten",
        (
            "service/apply.py",
            "        for refusal in {r.offering: r for r in refusals}.values():",
            "        for refusal in ():",
        ),
    ),
    # -- apply -------------------------------------------------------------------------------
    _mutant(
        "the epoch is not checked",
        (
            "service/apply.py",
            "        if not self.ledger.commit(snapshot.epoch, tuple(records.values())):",
            "        if not self.ledger.commit(snapshot.epoch, tuple(records.values())) and not 1:",
        ),
    ),
    _mutant(
        "a launch is not recorded before EC2 is asked",
        (
            "service/apply.py",
            "self.ledger.commit(snapshot.epoch, tuple(records.values()))",
            "self.ledger.commit(snapshot.epoch, ())",
        ),
    ),
    _mutant(
        "a token is used again",
        (
            "service/requests.py",
            "        client_token=client_token(cluster, launch.launch_id),",
            "        client_token=client_token(cluster, launch.pool),",
        ),
    ),
    _mutant(
        "orders are lost",
        (
            "service/apply.py",
            "        self.bus.send_orders(orders)\n        for order in orders:\n            if",
            "        for order in orders:\n            if",
        ),
    ),
    _mutant(
        "what was refused in a plan is tried again in it",
        (
            "service/apply.py",
            "        if refused.issuperset(record.launch.offerings):",
            "        if not record.launch.offerings:",
        ),
    ),
    # -- interruption ------------------------------------------------------------------------
    _mutant(
        "a drain is forgotten",
        (
            "service/interruptions.py",
            "        self.bus.send_orders(orders)\n",
            "",
        ),
        (
            "core/nodes.py",
            '            work.send(OrderKind.DRAIN, (node.name,), f"tidegate: {each.reason}")',
            "            pass",
        ),
    ),
    _mutant(
        "a notice is not remembered",
        (
            "service/interruptions.py",
            "            self.ledger.interrupt_node(notice.instance_id, notice.reclaim_at_s)",
            "            pass",
        ),
    ),
    _mutant(
        "jobs on nodes that go are not requeued",
        (
            "core/interruption.py",
            "        if job.is_requeueable:\n",
            "        if False:\n",
        ),
    ),
    _mutant(
        "a job that may not be requeued is requeued",
        (
            "core/interruption.py",
            "        if job.is_requeueable:\n",
            "        if True:\n",
        ),
        (
            "agent/job_orders.py",
            "in asked.pairs if job.is_running and job.is_requeueable)",
            "in asked.pairs if job.is_running)",
        ),
    ),
    # -- disruption --------------------------------------------------------------------------
    _mutant(
        "a PLANNED node is deleted",
        (
            "core/slurm.py",
            "        return bool(self.words & BUSY_WORDS)",
            '        return bool(self.words & BUSY_WORDS - {"PLANNED"})',
        ),
    ),
    _mutant(
        "the head stops before its nodes have gone",
        (
            "service/hours.py",
            "        if left:\n            return Kept(Did.WAITS",
            "        if False:\n            return Kept(Did.WAITS",
        ),
    ),
    # -- agent -------------------------------------------------------------------------------
    _mutant(
        "an expired order is carried out",
        (
            "agent/orders.py",
            "    if now_s > order.not_after_s:",
            "    if now_s > order.not_after_s + 1e9:",
        ),
    ),
    _mutant(
        "an order's guard is ignored",
        (
            "agent/asked.py",
            "    return not order.only_if or bool(words & set(order.only_if))",
            "    return True",
        ),
        (
            "agent/release.py",
            "        if only_if and not node.state.words & set(only_if):",
            "        if False:",
        ),
    ),
    _mutant(
        "a late requeue hits a job that runs elsewhere",
        (
            "agent/asked.py",
            "        if order.on_nodes and set(order.on_nodes).isdisjoint(job.node_names):",
            "        if False:",
        ),
    ),
    _mutant(
        "a release forgets its drain",
        (
            "agent/release.py",
            "        if fresh:\n            self.slurm.drain(fresh, self.mark)\n",
            "",
        ),
    ),
    _mutant(
        "an undrain lifts every drain",
        (
            "agent/node_orders.py",
            "if n.state.is_drain and n.reason in may_open]",
            "if n.state.is_drain]",
        ),
    ),
    _mutant(
        "a node that a job insists on is deleted",
        (
            "agent/release.py",
            "        if job := _insists_on(node.name, reading):",
            "        if job := None and _insists_on(node.name, reading):",
        ),
    ),
    _mutant(
        "a clock that was put back silences the heartbeat",
        (
            "agent/loop.py",
            "is_due = not 0.0 <= now_s - self._published_at_s < self._heartbeat(reading)",
            "is_due = now_s - self._published_at_s >= self._heartbeat(reading)",
        ),
    ),
)
