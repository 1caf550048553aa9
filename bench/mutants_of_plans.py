"""Deliberate faults of the planner."""

from bench.mutant import mutant

FAULTS_OF_PLANS = (
    # -- planner: what is counted and bought -------------------------------------------------
    mutant(
        "nodes in flight are not counted as capacity",
        (
            "core/fleet/judge.py",
            "Use.NONE if member.record.is_cordoned(now_s) else Use.IN_FLIGHT",
            "Use.NONE",
        ),
    ),
    mutant(
        "launches in doubt are not counted",
        (
            "core/passes/doubt.py",
            "        _count_in_doubt(snapshot, purchase, bins, record)\n",
            "        pass\n",
        ),
    ),
    mutant(
        "what is on its way is not debited from the limits",
        (
            "core/passes/nodes.py",
            "    if (is_gone and not is_seen) or (member.record is None and is_counted):",
            "    if member.node is None or (member.record is None and is_counted):",
        ),
    ),
    mutant(
        "the cluster's limits are ignored",
        (
            "core/offers/limits.py",
            "tuple(each for each in both if each[1] != UNLIMITED)",
            "tuple(each for each in both[:1] if each[1] != UNLIMITED)",
        ),
    ),
    mutant(
        "the pools' limits are ignored",
        (
            "core/offers/limits.py",
            "tuple(each for each in both if each[1] != UNLIMITED)",
            "tuple(each for each in both[1:] if each[1] != UNLIMITED)",
        ),
    ),
    mutant(
        "what a running node costs does not follow the market",
        (
            "core/buy/steering.py",
            "return now if abs(now - known) > PRICE_CHANGE * known else known",
            "return known",
        ),
    ),
    mutant(
        "plans are made at the guesses of the cluster file",
        (
            "service/observe.py",
            "cluster=at_market(cluster, view.seen_market, now_s)",
            "cluster=cluster",
        ),
    ),
    mutant(
        "limits are debited by the cheapest of the offerings",
        (
            "core/buy/launches.py",
            "if self._usage.widen(pool.name, pending.count, pending.each, wider):",
            "if True:",
        ),
    ),
    mutant(
        "an unavailable mark is ignored",
        (
            "core/offers/offers.py",
            "(r.pool, r.offering) for r in snapshot.resting if r.until_s > snapshot.now_s",
            "(r.pool, r.offering) for r in () if r.until_s > snapshot.now_s",
        ),
    ),
    mutant(
        "spot is bought for jobs that lose more there than they save",
        (
            "core/offers/offers.py",
            "            found &= ~self.losses.mask(need, pool, offer_group.catalogue, found)",
            "            pass",
        ),
    ),
    mutant(
        "caps of accounting are ignored",
        (
            "core/demand/accounting.py",
            "            room, sentence = self._room(cap, job, uses[cap.tres])",
            "            room, sentence = job.count, ''",
        ),
    ),
    mutant(
        "the calendar does not stop purchases",
        (
            "core/passes/serve.py",
            "        if stopped := purchase.stopped:",
            "        if stopped := None:",
        ),
        (
            "core/passes/gangs.py",
            "    if purchase.stopped or purchase.barred(need.payers):",
            "    if purchase.barred(need.payers):",
        ),
    ),
    mutant(
        "overrides of the hours are not asked",
        (
            "service/observe.py",
            "calendar.wanted(now_s, view.overrides)",
            "calendar.wanted(now_s)",
        ),
    ),
    mutant(
        "a stop ends jobs that it should wait for",
        (
            "core/passes/nodes.py",
            "    if wanted.is_up or ends_at_s is None or now_s < ends_at_s - NOTICE_S:",
            "    ends_at_s = ends_at_s or now_s\n    if wanted.is_up:",
        ),
    ),
    mutant(
        "a budget of disruption is ignored",
        (
            "core/fleet/allowance.py",
            "        if deciding is None or leaving < deciding[0]:",
            "        if True:",
        ),
    ),
    mutant(
        "an old digest is taken for a fresh one",
        (
            "core/model/snapshot.py",
            "        if self.digest_age_s > bound_s:",
            "        if self.digest_age_s > 1e9:",
        ),
    ),
    mutant(
        "a plan depends on the order of Slurm's answer",
        (
            "core/fleet/members.py",
            "    for instance_id in sorted(records.keys() | instances.keys()):",
            "    for instance_id in {**records, **instances}:",
        ),
    ),
    mutant(
        "a job that a cap stops gets no verdict",
        (
            "core/passes/serve.py",
            "unmet={each.job_id: each for each in unmet}",
            "unmet={each.job_id: each for each in unmet[:1]}",
        ),
    ),
    # -- planner: gangs ----------------------------------------------------------------------
    mutant(
        "a gang opens before it is complete",
        (
            "core/passes/queue.py",
            "        return not is_short and all(each.kind is BinKind.EXISTING for each in held)",
            "        return any(each.kind is BinKind.EXISTING for each in held)",
        ),
    ),
    mutant(
        "a gang's launch takes a part of it",
        (
            "core/buy/pending_launch.py",
            "            min_count=self.min_count,",
            "            min_count=1,",
        ),
    ),
    mutant(
        "a gang's nodes join open",
        (
            "service/requests.py",
            "    if launch.gated_for:\n",
            "    if False:\n",
        ),
    ),
    mutant(
        "a gang is spread over zones",
        (
            "core/buy/launches.py",
            '            if pending.zone not in ("", offering.zone):\n                continue\n',
            "",
        ),
    ),
    # -- planner: nodes that come and go -----------------------------------------------------
    mutant(
        "an interrupted node counts as free",
        (
            "core/fleet/judge.py",
            "    if record.phase is Phase.INTERRUPTED or reclaim_at_s(record, now_s) is not None:",
            "    if reclaim_at_s(record, now_s) is not None and now_s < 0:",
        ),
    ),
    mutant(
        "an instance is terminated before its node is IDLE+DRAIN",
        (
            "core/fleet/judge.py",
            '        return Judged(member, Use.LEAVING, joined, reason="a release is on its way")',
            '        return _end(member, "a release is on its way")',
        ),
    ),
    mutant(
        "a boot that never ends is never given up",
        (
            "core/fleet/judge.py",
            "    is_late = seen_at_s - member.launched_at_s > timings.boot_bound_s",
            "    is_late = False",
        ),
    ),
    mutant(
        "idle nodes are kept",
        (
            "core/passes/idle.py",
            "elif node.name in unused and idle_s >= kept_s and",
            "elif node.name in unused and idle_s >= kept_s + 3600 and",
        ),
    ),
    mutant(
        "what Slurm has released is not terminated",
        (
            "core/fleet/judge.py",
            '        return _end(member, "released by Slurm")',
            "        return Judged(member, Use.NONE)",
        ),
        (
            "core/fleet/judge.py",
            '        return _end(member, "Slurm no longer knows this node")',
            "        return Judged(member, Use.NONE)",
        ),
    ),
    mutant(
        "what Describe leaves out is forgotten",
        (
            "core/fleet/judge.py",
            "    if member.instance is not None:\n        return ()\n",
            "    if member.instance is None or True:\n        return ()\n",
        ),
    ),
    mutant(
        "a launch in doubt is never finished",
        (
            "core/passes/doubt.py",
            "record.created_at_s) >= lease_s:",
            "record.created_at_s) >= lease_s + 1e9:",
        ),
    ),
    mutant(
        "a node that a person has drained is released",
        (
            "core/fleet/judge.py",
            "    if by is Hand.PERSON:",
            "    if False:",
        ),
        (
            "agent/release.py",
            "        if why := why_held(self.order, node):",
            "        if why := '':",
        ),
    ),
    mutant(
        "a need whose nodes are found unhealthy buys on",
        (
            "core/passes/sickness.py",
            "    if len(every) < SICK_LAUNCHES_MAX:",
            "    if True:",
        ),
    ),
    mutant(
        "one word of a check releases every node",
        (
            "core/fleet/allowance.py",
            "if name not in self._let_go and self.held(pool, reason, besides=name):",
            "if reason != 'unhealthy' and self.held(pool, reason, besides=name):",
        ),
    ),
    # -- planner: money on jobs that Slurm does not start --------------------------------------
    mutant(
        "a refused offering is forgotten",
        (
            "service/launching.py",
            "for key, refusal in {each.key: each for each in told}.items():",
            "for key, refusal in ():",
        ),
    ),
    mutant(
        "a node that does not boot rests its offering for every pool",
        (
            "core/fleet/judge.py",
            "return Rest(record.offering, record.pool, record.template, code, reason)",
            'return Rest(record.offering, "", "", code, reason)',
        ),
    ),
    mutant(
        "a node is bought for a job that names one which is gone",
        (
            "core/demand/where.py",
            "        is_bound = job.required_nodes or job.excluded_nodes or job.reservation\n",
            "        is_bound = job.excluded_nodes or job.reservation\n",
        ),
    ),
    mutant(
        "nodes reserved for others are capacity",
        ("core/demand/where.py", "return name not in self.closed and (", "return ("),
    ),
)
