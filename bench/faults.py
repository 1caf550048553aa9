"""Deliberate faults that the simulation has to find: at least one of its checks is there for each.

Unlike `mutations`, which tries whatever a syntax tree allows and asks the tests, each of these is a
rule of the product that somebody could forget.
"""

from bench.aimed import always, becomes, drop, fault, never
from bench.faults_of_doing import FAULTS_OF_DOING

_OF_PLANS = (
    # -- what is counted and bought ----------------------------------------------------------
    fault(
        "nodes in flight are not counted as capacity",
        always("core.fleet.judge:_judge", "_.is_cordoned(...)"),
    ),
    fault(
        "launches in doubt are not counted",
        drop("core.passes.doubt:count_doubt", "_count_in_doubt(...)"),
    ),
    fault(
        "shards of nodes that boot are not counted",
        always("core.buy.parts:parts_of_type", "not _.shards_per_gpu"),
    ),
    fault(
        "nodes are bought for more shards than a GPU has",
        becomes(
            "core.demand.fit:_shards_of_one",
            "_.shards_per_gpu if _1 and _2 else 0",
            "999 if _1 and _2 else 0",
        ),
        becomes(
            "core.offers.catalogue:_share_ladders",
            "dict.fromkeys(_1, _.shards_per_gpu)",
            "dict.fromkeys(_1, 999)",
        ),
    ),
    fault(
        "what is on its way is not debited from the limits",
        becomes(
            "core.passes.nodes:_debit",
            "(_ and not _) or (_1.record is None and _2)",
            "_1.node is None or (_1.record is None and _2)",
        ),
    ),
    fault(
        "the cluster's limits are ignored",
        becomes("core.offers.limits:Usage._limited", "(_1, (CLUSTER, _))", "(_1,)"),
    ),
    fault(
        "the pools' limits are ignored",
        becomes("core.offers.limits:Usage._limited", "(_, (CLUSTER, _1))", "((CLUSTER, _1),)"),
    ),
    fault(
        "what a running node costs does not follow the market",
        never("core.fleet.node_price:_market_usd", "abs(_) > PRICE_CHANGE * _"),
    ),
    fault(
        "what a Savings Plan pays of a running node is not noted",
        never(
            "core.fleet.node_price:usd_per_hour", "is_covered_by_any(...) or (_ and _.committed)"
        ),
    ),
    fault(
        "a Savings Plan covers more than it commits to",
        drop("core.offers.savings_plans:cover", "_ -= _1"),
    ),
    fault(
        "plans are made at the guesses of the cluster file",
        becomes("service.observe:observe", "at_market(_1, ...)", "_1"),
    ),
    fault(
        "limits are debited by the cheapest of the offerings",
        always("core.buy.alternatives:alternatives", "_.widen(...)"),
    ),
    fault(
        "an unavailable mark is ignored",
        becomes("core.offers.ranges:Range._catalogues", "_.resting", "()"),
    ),
    fault(
        "spot is bought for jobs that lose more there than they save",
        drop("core.offers.offers:OfferGroups.mask", "_ &= ~_.losses.mask(...)"),
    ),
    fault(
        "spot is bought for a job that an interruption makes too late",
        becomes("core.offers.due:Deadlines.is_pressed", "choice(...) is Choice.ON_DEMAND", "False"),
    ),
    fault(
        "a job waits for spot until it is too late",
        becomes("core.offers.due:Deadlines.awaited", "choice(...) is not Choice.WAIT", "False"),
        becomes("core.offers.due:Deadlines.awaited", "_.rest.until_s <= _", "True"),
    ),
    fault(
        "nodes are bought for jobs that cannot end in time",
        becomes("core.offers.offers:OfferGroups.mask", "late_s(...)", "0.0"),
    ),
    fault(
        "a job is ended for idle GPUs as soon as its owner was told",
        becomes(
            "core.passes.idle_gpus:_Idle.decided", "_1.told_at_s + _.warning_s", "_1.told_at_s"
        ),
    ),
    fault(
        "a job is ended for GPUs that idle in its first minutes",
        becomes(
            "core.interruption.idle_gpus:GpuJob.idle_since_s", "(_1 or _2) + LOADING_S", "_1 or _2"
        ),
    ),
    fault(
        "caps of accounting are ignored",
        becomes("core.demand.accounting:Caps._admitted", "_._room(_, _1, _)", "(_1.count, '')"),
    ),
    fault(
        "the calendar does not stop purchases",
        always("core.buy.purchase:Purchase.stopped", "_.is_up"),
    ),
    fault(
        "overrides of the hours are not asked",
        becomes("service.observe:observe", "_.overrides", "()"),
    ),
    fault(
        "a stop ends jobs that it should wait for",
        becomes("core.passes.nodes:end_jobs", "(_.jobs_end_at_s, _1)", "(_1, _1)"),
    ),
    fault(
        "a budget of disruption is ignored",
        always("core.fleet.allowance:Allowance.held", "_ is None or _ < _[0]"),
    ),
    fault(
        "an old digest is taken for a fresh one",
        drop("core.model.snapshot:Snapshot.staleness", "if _.digest_age_s > _: return _"),
    ),
    fault(
        "a plan depends on the order of Slurm's answer",
        becomes("core.fleet.members:members", "sorted(_1.keys() | _2.keys())", "{**_1, **_2}"),
    ),
    fault(
        "a job that a cap stops gets no verdict",
        becomes(
            "core.passes.serve:_read_queue",
            "{_1.job_id: _1 for _1 in _2}",
            "{_1.job_id: _1 for _1 in _2[:1]}",
        ),
    ),
    fault(
        "what living nodes cost is not counted as spent",
        becomes("core.offers.spend:all_spent", "(*_1.spent, *_)", "_1.spent"),
    ),
    fault(
        "a user's spent budget stops nothing",
        becomes("core.model.cluster:Cluster.payers", "payer_scopes(_1, _)", "payer_scopes(_1, '')"),
    ),
    fault(
        "a spent budget stops nothing",
        never("core.offers.spend:used_up", "_ >= _.budget_usd"),
    ),
    fault(
        "a node keeps the price that it was launched at",
        becomes("core.planner:_attempt", "reprice(...)", "()"),
    ),
    fault(
        "what is in a reservation is not counted",
        becomes("core.offers.reservations:_rooms", "_taken(...)", "Counter()"),
    ),
    fault(
        "a plan fills one reservation alone",
        becomes("core.offers.reservations:ReservedCapacity.targets", "sorted(...)", "_0[:1]"),
    ),
    fault(
        "a targeted reservation is not named",
        becomes("service.requests:template_key", "_1 if _.reservation else _2", "_2"),
    ),
    fault(
        "a full subnet stops nobody",
        becomes("service.observe:observe", "stopped_by(...)", "()"),
    ),
    fault(
        "a full subnet is asked for again where there is another one",
        becomes("service.requests:_subnet", "_1 not in _", "True"),
    ),
    fault(
        "reservations are left alone",
        never("core.offers.offers:OfferGroups._offer_groups", "_._snapshot.cluster.reservations"),
    ),
    fault(
        "a node counts as paid for after its reservation",
        never("core.fleet.members:Member.offering", "_.offering.market in BILLED_ALIKE"),
    ),
    # -- gangs -------------------------------------------------------------------------------
    fault(
        "a gang opens before it is complete",
        becomes("core.passes.queue:Gang.is_there", "not _ and all(_1)", "any(_1)"),
    ),
    fault(
        "a gang's launch takes a part of it",
        becomes("core.buy.pending_launch:PendingLaunch.launch", "_.min_count", "1"),
    ),
    fault(
        "a gang is spread over zones",
        never("core.buy.alternatives:alternatives", "_.zone not in _"),
    ),
    fault(
        "components of a heterogeneous job are bought one by one",
        becomes(
            "core.demand.demand:_Demand._wants_together",
            "replace(_1, is_gang=True, gang_id=_)",
            "replace(_1, is_gang=True)",
        ),
    ),
    # -- nodes that come and go --------------------------------------------------------------
    fault(
        "an interrupted node counts as free",
        never("core.fleet.judge:_judge_registered", "_ is Phase.INTERRUPTED or _"),
    ),
    fault(
        "an instance is terminated before its node is IDLE+DRAIN",
        becomes(
            "core.fleet.judge:_judge_registered",
            "Judged(_1, Use.LEAVING, _, reason=_2)",
            "Judged(_1, Use.NONE, (Terminate((_1.instance_id,), _2),))",
        ),
    ),
    fault(
        "a boot that never ends is never given up",
        never("core.fleet.judge:_judge", "_ - _.launched_at_s > _.given_up_s"),
    ),
    fault(
        "idle nodes are kept",
        becomes("core.passes.idle:idle_nodes", "_1 >= _2", "_1 >= _2 + 3600"),
    ),
    fault(
        "what Slurm has released is not terminated",
        becomes("core.fleet.judge:_judge", "_end(_1, _2, RELEASED)", "Judged(_1, Use.NONE)"),
        becomes(
            "core.fleet.judge:_judge",
            "_end(_1, _2, 'Slurm no longer knows this node')",
            "Judged(_1, Use.NONE)",
        ),
    ),
    fault(
        "what Describe leaves out is forgotten",
        always("core.fleet.orphans:sure_end", "_.instance is not None"),
    ),
    fault(
        "what EC2 has stopped stays",
        becomes("core.fleet.orphans:sure_end", "end_stopped(...)", "()"),
    ),
    fault(
        "a launch in doubt is never finished",
        never("core.passes.doubt:finish_launches", "_ - (_.taken_at_s or _.created_at_s) >= _"),
    ),
    fault(
        "a node that a person has drained is released",
        never("core.fleet.judge:_judge_drain", "_ is Hand.PERSON"),
        becomes("agent.release:_Release._why_not", "why_held(...)", "''"),
    ),
    fault(
        "what a person holds goes like any unhealthy node",
        always("core.fleet.drains:hand", "_ is SetBy.SLURM and str(read(_)) == _"),
    ),
    fault(
        "one word of a check releases every node",
        becomes(
            "core.fleet.allowance:Allowance.take",
            "_.held(_, _1, besides=_)",
            "_1 != 'unhealthy' and _0",
        ),
    ),
    fault(
        "a check is believed of every node that it drains",
        always("core.fleet.findings:with_findings", "len(_) < believed(...)"),
    ),
    fault(
        "nodes expire in half their time",
        becomes("core.passes.retire:expired", "_1 >= _2", "_1 >= _2 / 2"),
    ),
    fault("nodes never expire", always("core.passes.retire:expired", "_ is None")),
    fault(
        "the end of a capacity block is ignored",
        never("core.fleet.judge:_judge_registered", "_ is not None and _ >= _"),
    ),
    fault(
        "a closed node opens for a job that waits for another's end",
        always("core.passes.steer:_open", "_may_start(...)"),
    ),
    fault(
        "a booting node is told in each look that it joins closed",
        never("core.passes.steer:_close", "_joins_closed(...)"),
    ),
    fault(
        "closed nodes are never opened",
        always("core.passes.steer:_open", "not _.is_closed"),
    ),
    # -- what was deployed last --------------------------------------------------------------
    fault(
        "a new template is rolled out before one node of it has joined",
        becomes("core.fleet.templates:roll", "Roll.TRIED if _ else Roll.UNTRIED", "Roll.PROVEN"),
    ),
    fault(
        "a first node of a new template is bought at every look",
        becomes("core.fleet.templates:roll", "Roll.TRIED if _ else Roll.UNTRIED", "Roll.UNTRIED"),
    ),
    fault(
        "as many nodes as are bought are made from what was deployed last",
        becomes("core.fleet.rollout:room", "max(_.most(_1) - _, 0)", "_1"),
    ),
    fault(
        "what was deployed last needs to show nothing",
        becomes("core.fleet.templates:rollout_of", "on_its_way(...)", "None"),
    ),
    fault(
        "first nodes that failed are forgotten",
        becomes("core.fleet.rollout:_seen", "{*_, *_1, *_, *_}", "_1"),
        never("core.fleet.rollout:_judged", "len(_.bad) >= _"),
    ),
    # -- money on jobs that Slurm does not start ---------------------------------------------
    fault(
        "a need whose nodes are found unhealthy buys on",
        always("core.passes.sickness:_watch", "len(_) < SICK_LAUNCHES_MAX"),
    ),
    fault(
        "what gives sick nodes is bought like all else",
        becomes("core.offers.offers:OfferGroups._offer_groups", "_._sick", "()"),
    ),
    fault(
        "a sick node that is bought by the hour is rebooted first",
        never(
            "core.fleet.ladder:_may_reboot",
            "_ is None or _ is None or not _.offering.market.is_prepaid",
        ),
        becomes(
            "core.fleet.ladder:next_step",
            "RepairStep.REBOOT if _.offering.market.is_prepaid else RepairStep.REPLACE",
            "RepairStep.REBOOT",
        ),
    ),
    fault(
        "a node that does not boot rests its offering for every pool",
        becomes(
            "core.fleet.joins:rest",
            "Rest(_1, _.pool, _.template, _2, _3)",
            "Rest(_1, '', '', _2, _3)",
        ),
    ),
    fault(
        "a node is bought for a job that names one which is gone",
        never("core.demand.where:Places.is_anywhere", "_.required_nodes"),
    ),
    fault(
        "nodes reserved for others are capacity",
        always("core.demand.where:Where.takes", "_ not in _.closed"),
    ),
    fault(
        "a begin time is ignored",
        becomes("core.demand.held:holds", "'' if _ <= _ else _", "''"),
    ),
    # -- jobs that lose nodes ----------------------------------------------------------------
    fault(
        "a job runs on beside a GPU that failed",
        becomes("core.planner:_of_nodes", "requeue_failed(...)", "()"),
    ),
    fault(
        "what a job lost is bought after its requeue",
        becomes("core.passes.serve:_read_queue", "failed_nodes(...)", "frozenset()"),
    ),
    fault(
        "a job whose nodes fail is requeued for ever",
        never("core.passes.faults:watch_faults", "_.faults > RETRIES_MAX"),
    ),
    fault(
        "jobs on nodes that go are not requeued",
        never("core.interruption.save:saves", "_.is_requeueable"),
    ),
    fault(
        "a job that may not be requeued is requeued",
        always("core.interruption.save:saves", "_.is_requeueable"),
        always("agent.job_orders:requeue", "_.is_requeueable"),
    ),
)

FAULTS = (*_OF_PLANS, *FAULTS_OF_DOING)
