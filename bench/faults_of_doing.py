"""Deliberate faults of the calendar, and of whoever carries plans and orders out."""

from bench.aimed import always, becomes, drop, fault, never

FAULTS_OF_DOING = (
    # -- service: a plan is applied ----------------------------------------------------------
    fault(
        "the epoch is not checked",
        becomes("service.apply:Applier.apply", "not _.ledger.commit(...)", "_0 and False"),
    ),
    fault(
        "a launch is not recorded before EC2 is asked",
        becomes("service.apply:Applier.apply", "_1.commit(_2, _, _3)", "_1.commit(_2, (), _3)"),
    ),
    fault(
        "a token is used again",
        becomes(
            "service.requests:fleet_request",
            "client_token(_1, _2.launch_id)",
            "client_token(_1, _2.pool)",
        ),
    ),
    fault(
        "a gang's nodes join open",
        never("service.requests:fleet_request", "_.gated_for"),
    ),
    fault(
        "orders are lost",
        drop("service.apply:Applier._send", "_.send_orders(...)"),
    ),
    fault(
        "a refused offering is forgotten",
        becomes("service.launching:Launching._rests", "_.items()", "()"),
    ),
    fault(
        "what was refused in a plan is tried again in it",
        becomes("service.launching:Launching._hopeful", "_.outcome.refused", "()"),
    ),
    fault(
        "a node that ended is counted twice",
        always("service.apply:Applier._charge", "_.ended_at_s is None"),
        never("sim.ledger:SimLedger._count", "_.ended_at_s is not None"),
    ),
    # -- service: what AWS says --------------------------------------------------------------
    fault(
        "a drain is forgotten",
        drop("service.interruptions:Interruptions.handle", "if _: _.send_orders(_)"),
        drop("core.passes.nodes:order_out", "yield order(OrderKind.DRAIN, ...)"),
    ),
    fault(
        "a notice is not remembered",
        drop("service.interruptions:Interruptions._mark", "_.interrupt_nodes(...)"),
    ),
    fault(
        "a hint of AWS is not heeded",
        becomes(
            "service.interruptions:Interruptions._draining",
            "_by_reason(OrderKind.DRAIN, ...)",
            "()",
        ),
        never("core.fleet.judge:_judge_registered", "_.cordon and _.cordon.holds(_)"),
    ),
    # -- hours -------------------------------------------------------------------------------
    fault(
        "the head stops before its nodes have gone",
        becomes("service.hours:Hours._stopped", "_._left(_)", "''"),
    ),
    fault(
        "an override never ends",
        becomes("core.model.calendar:ScheduleOverride.holds", "_1 <= _2 < _", "_1 <= _2"),
    ),
    fault(
        "hours are kept in winter's time on the day that the clocks change",
        becomes(
            "wire.calendar:Schedules._zone",
            "ZoneInfo(_)",
            "datetime.strptime('-0500', '%z').tzinfo",
        ),
    ),
    fault(
        "the hour that comes twice is kept twice",
        always("wire.cron:firings_before", "not _.fold"),
        always("wire.cron:firings_after", "not _.fold"),
    ),
    fault(
        "the cluster is up on holidays",
        never("wire.calendar:Holidays.__contains__", "_ in _.dates"),
    ),
    fault(
        "only the first of two windows counts",
        becomes(
            "wire.calendar:Schedules._is_up",
            "any(_1._is_open(_, _2) for _ in _1.windows)",
            "_1._is_open(_1.windows[0], _2)",
        ),
    ),
    # -- agent -------------------------------------------------------------------------------
    fault(
        "an expired order is carried out",
        never("agent.orders:_valid", "not _ <= _.not_after_s"),
    ),
    fault(
        "an order's guard is ignored",
        always("agent.asked:is_allowed", "not _.only_if"),
        never("agent.release:_Release._why_not", "not _.state.words & set(_)"),
    ),
    fault(
        "a requeued job starts in the second in which its old run ended",
        never("agent.restarts:Restarts.due", "_.waiting_at_s is None"),
        always("agent.restarts:Restarts.due", "int(_) > int(_)"),
    ),
    fault(
        "a late requeue hits a job that runs elsewhere",
        never("agent.asked:asked_jobs.why_not", "set(_.on_nodes).isdisjoint(_)"),
    ),
    fault(
        "a PLANNED node is deleted",
        becomes("core.model.slurm:NodeState.is_busy", "BUSY_WORDS", "(BUSY_WORDS - {'PLANNED'})"),
    ),
    fault(
        "a release forgets its drain",
        drop("agent.release:_Release.begin", "_.drain(...)"),
    ),
    fault(
        "an undrain lifts every drain",
        always("agent.node_orders:undrain", "_.reason in _"),
    ),
    fault(
        "a node that a job insists on is deleted",
        becomes("agent.release:_Release._why_stop", "asked_by_name(...).get(...)", "None"),
    ),
    fault(
        "who has a node is read from the node's own words",
        always("core.fleet.members:Member.is_idle", "not _.jobs"),
        becomes("agent.release:_Release._why_stop", "_1 & HOLDS_A_JOB or _", "_1 & HOLDS_A_JOB"),
        becomes("agent.release:_Release.advance", "_1.is_deletable and _", "_1.is_deletable"),
    ),
    fault(
        "a clock that was put back silences the heartbeat",
        becomes("agent.loop:Agent._publish", "not 0.0 <= _1 < _2", "_1 >= _2"),
    ),
)
