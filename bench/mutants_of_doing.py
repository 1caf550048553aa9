"""Deliberate faults of whoever carries plans and orders out: service, head and agent."""

from bench.mutant import mutant

FAULTS_OF_DOING = (
    # -- apply -------------------------------------------------------------------------------
    mutant(
        "the epoch is not checked",
        (
            "service/apply.py",
            "            outcome.is_stale = True\n            return outcome\n",
            "            pass\n",
        ),
    ),
    mutant(
        "a launch is not recorded before EC2 is asked",
        (
            "service/apply.py",
            "self.ledger.commit(snapshot.epoch, tuple(records.values()), going)",
            "self.ledger.commit(snapshot.epoch, (), going)",
        ),
    ),
    mutant(
        "a token is used again",
        (
            "service/requests.py",
            "        client_token=client_token(cluster, launch.launch_id),",
            "        client_token=client_token(cluster, launch.pool),",
        ),
    ),
    mutant(
        "orders are lost",
        (
            "service/apply.py",
            "        self.bus.send_orders([send.order for send in sends])\n",
            "",
        ),
    ),
    mutant(
        "what was refused in a plan is tried again in it",
        (
            "service/launching.py",
            "refused = {(refusal.pool, refusal.offering) for refusal in self.outcome.refused}",
            "refused = set()",
        ),
    ),
    # -- interruption ------------------------------------------------------------------------
    mutant(
        "a drain is forgotten",
        (
            "service/interruptions.py",
            "        self.bus.send_orders(orders)\n",
            "",
        ),
        (
            "core/passes/nodes.py",
            "            yield order(OrderKind.DRAIN, (node.name,), each.drain_reason)",
            "            pass",
        ),
    ),
    mutant(
        "a notice is not remembered",
        (
            "service/interruptions.py",
            "        self.ledger.interrupt_nodes(\n"
            "            reclaim_at_s | dict.fromkeys(found.dead, now_s), interruption_losses\n"
            "        )",
            "        pass",
        ),
    ),
    mutant(
        "jobs on nodes that go are not requeued",
        (
            "core/interruption/save.py",
            "        if job.is_requeueable:\n",
            "        if False:\n",
        ),
    ),
    mutant(
        "a job that may not be requeued is requeued",
        (
            "core/interruption/save.py",
            "        if job.is_requeueable:\n",
            "        if True:\n",
        ),
        (
            "agent/job_orders.py",
            "        if job.is_running and job.is_requeueable\n",
            "        if job.is_running\n",
        ),
    ),
    # -- disruption --------------------------------------------------------------------------
    mutant(
        "a PLANNED node is deleted",
        (
            "core/model/slurm.py",
            "        return not BUSY_WORDS.isdisjoint(self.words)",
            '        return not (BUSY_WORDS - {"PLANNED"}).isdisjoint(self.words)',
        ),
    ),
    mutant(
        "the head stops before its nodes have gone",
        (
            "service/hours.py",
            "        if left:\n            return Kept(Did.WAITS",
            "        if False:\n            return Kept(Did.WAITS",
        ),
    ),
    # -- agent -------------------------------------------------------------------------------
    mutant(
        "an expired order is carried out",
        (
            "agent/orders.py",
            "    if not now_s <= order.not_after_s:",
            "    if not now_s <= order.not_after_s + 1e9:",
        ),
    ),
    mutant(
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
    mutant(
        "a requeued job starts in the second in which its old run ended",
        (
            "agent/restarts.py",
            "                if ours.waiting_at_s is None:\n"
            "                    ours.waiting_at_s = now_s\n"
            "                elif int(now_s) > int(ours.waiting_at_s):\n",
            "                if True:\n",
        ),
    ),
    mutant(
        "a late requeue hits a job that runs elsewhere",
        (
            "agent/asked.py",
            "        if order.on_nodes and set(order.on_nodes).isdisjoint(job.node_names):",
            "        if False:",
        ),
    ),
    mutant(
        "a release forgets its drain",
        (
            "agent/release.py",
            "        if fresh:\n            self.slurm.drain(fresh, str(self.reason))\n",
            "",
        ),
    ),
    mutant(
        "an undrain lifts every drain",
        (
            "agent/node_orders.py",
            "if n.state.is_drain and n.reason in may_open]",
            "if n.state.is_drain]",
        ),
    ),
    mutant(
        "a node that a job insists on is deleted",
        (
            "agent/release.py",
            "        if job := _insists_on(node.name, reading):",
            "        if job := None and _insists_on(node.name, reading):",
        ),
    ),
    mutant(
        "a clock that was put back silences the heartbeat",
        (
            "agent/loop.py",
            "is_due = not 0.0 <= now_s - self._published_at_s < self._heartbeat(reading)",
            "is_due = now_s - self._published_at_s >= self._heartbeat(reading)",
        ),
    ),
)
