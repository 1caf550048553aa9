"""Deliberate faults around what comes and goes by rule: hints, age, templates, budgets, hours."""

from bench.mutant import mutant

FAULTS_OF_LEAVING = (
    # -- hints of AWS ------------------------------------------------------------------------
    mutant(
        "a hint of AWS is not heeded",
        (
            "service/interruptions.py",
            "            *_by_reason(OrderKind.DRAIN, cordons, joined_by_s),\n",
            "",
        ),
        (
            "core/fleet/judge.py",
            "    if record.cordon and record.cordon.holds(now_s):",
            "    if False:",
        ),
    ),
    # -- age and templates -------------------------------------------------------------------
    mutant(
        "what a person holds goes like any unhealthy node",
        (
            "core/fleet/drains.py",
            "        return Hand.SOFTWARE if is_left_over else Hand.PERSON",
            "        return Hand.SOFTWARE",
        ),
    ),
    mutant(
        "what gives sick nodes is bought like all else",
        (
            "core/offers/offers.py",
            'self._resting | {("", each) for each in self._sick}',
            "self._resting",
        ),
    ),
    mutant(
        "a check is believed of every node that it drains",
        (
            "core/fleet/findings.py",
            "        if len(counting) < believed(most, is_check=is_a_check(found.check)):",
            "        if True:",
        ),
    ),
    mutant(
        "nodes expire in half their time",
        (
            "core/passes/retire.py",
            "if now_s - judged.member.launched_at_s >= most_s else",
            "if now_s - judged.member.launched_at_s >= most_s / 2 else",
        ),
    ),
    mutant(
        "nodes never expire",
        ("core/passes/retire.py", "    if most_s is None:", "    if most_s is None or True:"),
    ),
    mutant(
        "a new template is rolled out before one node of it has joined",
        (
            "core/fleet/templates.py",
            "    return Roll.TRIED if is_tried else Roll.UNTRIED",
            "    return Roll.PROVEN",
        ),
    ),
    mutant(
        "a first node of a new template is bought at every look",
        (
            "core/fleet/templates.py",
            "    return Roll.TRIED if is_tried else Roll.UNTRIED",
            "    return Roll.UNTRIED",
        ),
    ),
    mutant(
        "as many nodes as are bought are made from what was deployed last",
        (
            "core/fleet/rollout.py",
            "    return max(rollout.most(pool_nodes) - used, 0)",
            "    return pool_nodes",
        ),
    ),
    mutant(
        "what was deployed last needs to show nothing",
        (
            "core/fleet/templates.py",
            "    return on_its_way(history_of(snapshot, pool), newest(snapshot, pool))",
            "    return None",
        ),
    ),
    mutant(
        "first nodes that failed are forgotten",
        (
            "core/fleet/rollout.py",
            "        tried = tuple(sorted({*tried, *booted, *sick, *registered}))",
            "        tried = tuple(sorted(booted))",
        ),
        (
            "core/fleet/rollout.py",
            "    if len(rollout.bad) >= most:",
            "    if False:",
        ),
    ),
    # -- spending ----------------------------------------------------------------------------
    mutant(
        "what living nodes cost is not counted as spent",
        (
            "core/offers/spend.py",
            "    for each in (*snapshot.spent, *living):",
            "    for each in snapshot.spent:",
        ),
    ),
    mutant(
        "a user's spent budget stops nothing",
        (
            "core/model/cluster.py",
            "        return tuple(scope for scope in payer_scopes(account, user) if",
            '        return tuple(scope for scope in payer_scopes(account, "") if',
        ),
    ),
    mutant(
        "a spent budget stops nothing",
        ("core/offers/spend.py", "        if each.usd >= each.budget_usd:", "        if False:"),
    ),
    mutant(
        "a node that ended is counted twice",
        (
            "service/apply.py",
            "            if name in ours and record.ended_at_s is None:",
            "            if name in ours:",
        ),
        (
            "sim/ledger.py",
            "                if node is None or node.ended_at_s is not None:",
            "                if node is None:",
        ),
    ),
    mutant(
        "a node keeps the price that it was launched at",
        (
            "core/planner.py",
            "    decided = (*decided, *reprice(snapshot, ours, decided))\n    return",
            "    return",
        ),
    ),
    # -- steering ----------------------------------------------------------------------------
    mutant(
        "closed nodes are never opened",
        (
            "core/passes/steer.py",
            "        if node is None or not each.is_closed or found.name in held:",
            "        if True:",
        ),
    ),
    # -- hours -------------------------------------------------------------------------------
    mutant(
        "an override never ends",
        (
            "core/model/calendar.py",
            "        return self.from_s <= now_s < self.until_s",
            "        return self.from_s <= now_s",
        ),
    ),
    mutant(
        "a begin time is ignored",
        (
            "core/demand/held.py",
            '        return "" if wait_s <= boot_s else',
            '        return "" if wait_s <= 1e9 else',
        ),
    ),
    # -- jobs that lose nodes ------------------------------------------------------------------
    mutant(
        "a job runs on beside a GPU that failed",
        ("core/planner.py", "        *requeue_failed(snapshot, fleet),\n", ""),
    ),
    mutant(
        "what a job lost is bought after its requeue",
        ("core/passes/serve.py", "failed_nodes(fleet)", "frozenset[str]()"),
    ),
    mutant(
        "a job whose nodes fail is requeued for ever",
        ("core/passes/faults.py", "if after.faults > RETRIES_MAX", "if False"),
    ),
    # -- reservations and capacity blocks ------------------------------------------------------
    mutant(
        "what is in a reservation is not counted",
        (
            "core/offers/reservations.py",
            "                self._left[offering] -= held[offering]",
            "                pass",
        ),
    ),
    mutant(
        "the end of a capacity block is ignored",
        (
            "core/fleet/judge.py",
            "    if is_block_over:",
            "    if False:",
        ),
    ),
    mutant(
        "reservations are left alone",
        (
            "core/offers/offers.py",
            "if self._snapshot.cluster.reservations and pool.name not in self._shut_prepaid:",
            "if False:",
        ),
    ),
    mutant(
        "a node counts as paid for after its reservation",
        (
            "core/fleet/members.py",
            "known.offering.market in BILLED_ALIKE:",
            "False:",
        ),
    ),
    # -- heterogeneous jobs ------------------------------------------------------------------
    mutant(
        "components of a heterogeneous job are bought one by one",
        (
            "core/demand/demand.py",
            "                need = replace(need, is_gang=True, gang_id=job.het_job_id)",
            "                need = replace(need, is_gang=True)",
        ),
    ),
    mutant(
        "hours are kept in winter's time on the day that the clocks change",
        (
            "wire/calendar.py",
            "        return ZoneInfo(self.time_zone)",
            "        return datetime.strptime('-0500', '%z').tzinfo",
        ),
    ),
    mutant(
        "the hour that comes twice is kept twice",
        (
            "wire/cron.py",
            "    if not start.fold:\n        return CronSim(cron, start, reverse=True)",
            "    if True:\n        return CronSim(cron, start, reverse=True)",
        ),
        (
            "wire/cron.py",
            "    if not start.fold:\n        return CronSim(cron, start)\n",
            "    if True:\n        return CronSim(cron, start)\n",
        ),
    ),
    mutant(
        "the cluster is up on holidays",
        (
            "wire/calendar.py",
            "        if day in self.dates:\n            return True\n",
            "",
        ),
    ),
    mutant(
        "only the first of two windows counts",
        (
            "wire/calendar.py",
            "        return any(self._is_open(window, at_s) for window in self.windows)",
            "        return self._is_open(self.windows[0], at_s)",
        ),
    ),
    mutant(
        "who has a node is read from the node's own words",
        (
            "core/fleet/members.py",
            "        return self.node is not None and not self.jobs and self.node.state.is_idle\n",
            "        return self.node is not None and self.node.state.is_idle\n",
        ),
        (
            "agent/release.py",
            "        if node.state.words & HOLDS_A_JOB or (runs and not node.state.is_down):\n",
            "        if node.state.words & HOLDS_A_JOB:\n",
        ),
        (
            "agent/release.py",
            "node.state.is_deletable and name not in held",
            "node.state.is_deletable",
        ),
    ),
)
