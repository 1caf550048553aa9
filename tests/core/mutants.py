"""Deliberate breaks of the planner, each with the test that sees it.

`python -m tests.core.mutants` breaks a copy of the repository in each of these ways and runs
the named test, which has to fail; it takes a few minutes. `test_mutants.py` keeps the list
true to the code.
"""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Mutant:
    """`old`, once in a file of tidegate/core, becomes `new`; `seen_by` is a test in tests/core."""

    file: str
    old: str
    new: str
    seen_by: str


MUTANTS = (
    Mutant(
        "demand/where.py",
        "return name not in self.closed and (",
        "return (",
        "test_where.py::test_an_excluded_node_is_no_capacity",
    ),
    Mutant(
        "demand/where.py",
        "        if job.required_nodes and (gone := self._gone(job)):",
        "        if False and (gone := self._gone(job)):",
        "test_where.py::test_nothing_is_bought_for_a_job_that_names_a_node_which_is_gone",
    ),
    Mutant(
        "demand/where.py",
        "        starts_s = max(self._starts_s(job), self._now_s + boot_s)\n",
        "        starts_s = self._starts_s(job)\n",
        "test_where.py::"
        "test_a_job_that_only_a_node_which_is_up_could_end_before_it_gets_no_new_one",
    ),
    Mutant(
        "passes/nodes.py",
        "            and not node.state.is_reserved  # until then it is closed\n",
        "",
        "test_where.py::test_a_reserved_node_that_has_to_go_is_closed_until_that_is_over",
    ),
    Mutant(
        "fleet/members.py",
        "self.node is not None and not self.jobs and self.node.state.is_idle",
        "self.node is not None and self.node.state.is_idle",
        "test_suspended.py::test_a_node_that_looks_idle_and_has_a_job_is_not_released",
    ),
    Mutant(
        "passes/freeing.py",
        "if is_suspended or job.started_at_s is None",
        "if job.started_at_s is None",
        "test_suspended.py::test_nobody_knows_when_a_suspended_job_ends",
    ),
    Mutant(
        "passes/silence.py",
        "        and snapshot.now_s <= (record.reclaim_at_s or 0.0) + boot_s\n",
        "",
        "test_silence.py::test_a_replacement_that_ended_by_itself_is_not_bought_again",
    ),
    Mutant(
        "passes/silence.py",
        "(count_doubt, judge_nodes, serve_queue)",
        "(judge_nodes, serve_queue)",
        "test_silence.py::test_nor_again_while_its_launch_is_in_doubt",
    ),
    Mutant(
        "interruption/save.py",
        "at_s if at_s > now_s else now_s + timings.order_ttl_s",
        "at_s",
        "test_interruption.py::test_a_notice_that_is_over_requeues_at_once",
    ),
    Mutant(
        "buy/launches.py",
        "if len(found) == OVERRIDES_MAX:",
        "if len(found) == 10 * OVERRIDES_MAX:",
        "test_pools.py::test_a_request_names_at_most_100_offerings",
    ),
    Mutant(
        "buy/launches.py",
        "not is_whole or option",
        "option",
        "test_packing.py::test_a_gang_above_ec2s_minimum_capacity_is_bought_in_chunks_of_one_zone",
    ),
    Mutant(
        "buy/launches.py",
        "if self._usage.widen(pool.name, pending.count, pending.each, wider):",
        "if True:",
        "test_pools.py::test_an_alternative_never_passes_a_limit",
    ),
    Mutant(
        "buy/launches.py",
        "self._usage.debit(pool, -pending.count, pending.each, pending.usd_per_hour)",
        "pass",
        "test_packing.py::test_what_a_refused_gang_gave_back_serves_the_next_job",
    ),
    Mutant(
        "buy/launches.py",
        "pending.mask &= config.mask",
        "pending.mask |= config.mask",
        "test_mixed.py::test_an_alternative_holds_every_job_of_its_launch",
    ),
    Mutant(
        "buy/bins.py",
        "place = (each.pool, each.offering.zone)",
        'place = (each.pool, "")',
        "test_packing.py::test_nodes_of_a_gang_lie_in_one_zone_even_when_two_zones_have_some",
    ),
    Mutant(
        "buy/bins.py",
        "if each.cpus > 0 and not each.gated_for]",
        "if each.cpus > 0]",
        "test_gangs.py::test_no_small_job_counts_on_a_gated_node",
    ),
    Mutant(
        "passes/gangs.py",
        "    return _goes_elsewhere(work, part, within)\n",
        "    return False\n",
        "test_gates.py::"
        "test_nodes_gated_in_a_zone_that_has_no_more_open_when_the_whole_gang_goes_elsewhere",
    ),
    Mutant(
        "passes/gangs.py",
        "        work.launch_builder.undo(before)\n",
        "",
        "test_packing.py::test_components_of_a_heterogeneous_job_come_together_or_not_at_all",
    ),
    Mutant(
        "passes/queue.py",
        "                bins.append(each)",
        "                pass",
        "test_gates.py::test_a_gang_that_cannot_be_completed_keeps_nothing",
    ),
    Mutant(
        "passes/gangs.py",
        "        if gang.is_complete and not gang.is_there:\n            held",
        "        if False:\n            held",
        "test_gates.py::test_an_open_node_is_drained_for_the_gang_until_a_boot_must_have_ended",
    ),
    Mutant(
        "fleet/judge.py",
        "    if now_s < (kept.until_s or 0.0):",
        "    if True:",
        "test_gates.py::test_a_kept_node_opens_when_the_boot_bound_has_passed",
    ),
    Mutant(
        "fleet/judge.py",
        "if block_ends_s is not None and now_s >= block_ends_s:",
        "if False:",
        "test_markets.py::test_nodes_of_a_block_are_drained_40_minutes_before_its_end",
    ),
    Mutant(
        "planner.py",
        "rank = {Send: 0, Terminate: 1, Resume: 2, Launch: 3}",
        "rank = {Launch: 0, Terminate: 1, Resume: 2, Send: 3}",
        "test_packing.py::test_orders_and_ends_come_before_purchases",
    ),
    Mutant(
        "offers/limits.py",
        "        for scope in (pool, CLUSTER):\n            used = self._used[scope]\n",
        "        for scope in (pool,):\n            used = self._used[scope]\n",
        "test_properties.py::test_a_launch_passes_no_limit",
    ),
    Mutant(
        "passes/serve.py",
        "            if not work.queue.gangs:\n                self._open_all()",
        "            self._open_all()",
        "test_mixed.py::test_a_gang_that_comes_first_is_not_outbid_by_smaller_jobs",
    ),
    Mutant(
        "passes/serve.py",
        "        if self._work.launch_builder.has_room_for(configs):",
        "        if True:",
        "test_pools.py::test_a_limit_goes_to_the_first_in_the_queue",
    ),
    Mutant(
        "passes/serve.py",
        "hope(work) | free_soon(work)",
        "hope(work)",
        "test_pools.py::test_a_node_that_frees_sooner_than_a_boot_takes_is_waited_for",
    ),
    Mutant(
        "passes/serve.py",
        "hope(work) | free_soon(work)",
        "free_soon(work)",
        "test_doubt.py::test_a_job_that_only_the_first_offering_would_do_for_waits_for_what_comes",
    ),
    Mutant(
        "offers/reservations.py",
        "        if each.id == its_id:",
        "        if False:",
        "test_blocks.py::test_a_node_leaves_before_the_end_of_its_own_block_and_not_of_another_of_its_type",
    ),
    Mutant(
        "buy/blueprint.py",
        "if offer_group.hazard_per_hour > other.hazard_max:",
        "if False:",
        "test_mixed.py::test_a_job_that_must_not_be_interrupted_does_not_fill_up_a_spot_node",
    ),
    Mutant(
        "buy/blueprint.py",
        "if longer * each.usd_per_hour > fitting * other.worth_usd:",
        "if False:",
        "test_packing.py::test_a_long_job_does_not_fill_up_a_dear_node_that_is_needed_for_less",
    ),
    Mutant(
        "offers/catalogue.py",
        "found = sorted(each for each in found if each[0] <= best * NEAR)",
        "found = [each for each in found if each[0] <= best * NEAR]",
        "test_packing.py::test_the_cheapest_per_job_are_those_that_a_full_search_finds",
    ),
    Mutant(
        "offers/cost.py",
        "hazard = hazard_per_hour * (need.nodes + len(need.beside))",
        "hazard = hazard_per_hour",
        "test_markets.py::test_a_gang_is_interrupted_as_often_as_all_its_nodes_together",
    ),
    Mutant(
        "offers/cost.py",
        "return now_s + 2 * boot_s + whole_s + lost_s <= need.deadline_s",
        "return True",
        "test_markets.py::"
        "test_spot_is_tried_while_there_is_time_and_on_demand_at_the_last_safe_moment",
    ),
    Mutant(
        "offers/reservations.py",
        "self._left[offering] -= held[offering]",
        "pass",
        "test_markets.py::test_nodes_in_a_reservation_and_launches_in_doubt_leave_less_of_it",
    ),
    Mutant(
        "passes/idle.py",
        "            if each.member.offering.market.is_prepaid:\n                prepaid",
        "            if False:\n                prepaid",
        "test_markets.py::"
        "test_an_idle_node_in_a_reservation_is_kept_and_one_paid_by_the_hour_is_not",
    ),
    Mutant(
        "passes/idle.py",
        " and above[pool.name] > 0:",
        ":",
        "test_pools.py::test_idle_nodes_of_the_minimum_stay",
    ),
    Mutant(
        "offers/offers.py",
        "key=lambda p: (-p.weight, p.name)",
        "key=lambda p: (p.weight, p.name)",
        "test_planner.py::test_pool_weight_comes_before_price",
    ),
    Mutant(
        "passes/futile.py",
        "stuck.request == request(job, reading)",
        "True",
        "test_futile.py::test_a_job_that_asks_something_else_is_tried_at_once",
    ),
    Mutant(
        "passes/futile.py",
        "now_s - max(before.since_s, before.until_s)",
        "now_s - before.since_s",
        "test_futile.py::test_when_its_time_is_over_it_may_try_again",
    ),
    Mutant(
        "demand/demand.py",
        "            job.is_requeueable,\n",
        "",
        "test_mixed.py::test_jobs_that_differ_in_what_they_lose_are_not_treated_alike",
    ),
    Mutant(
        "passes/kinds.py",
        "zone not in held, total[zone], zone",
        "zone not in held, zone",
        "test_kinds.py::test_the_dearer_zone_is_taken_when_it_is_cheaper_for_all_kinds",
    ),
    Mutant(
        "passes/kinds.py",
        "sum(each.takes(part.need) for part in gang.parts)",
        "1",
        "test_kinds.py::test_a_node_that_would_do_for_two_kinds_is_left_to_the_one_that_needs_it",
    ),
    Mutant(
        "passes/kinds.py",
        "        work.launch_builder.undo(before)\n",
        "",
        "test_kinds.py::test_a_gang_that_cannot_be_completed_where_it_began_is_bought_whole_elsewhere",
    ),
    Mutant(
        "demand/demand.py",
        "in kinds_left(kinds, kept)",
        "in kinds",
        "test_kinds.py::test_a_lost_member_is_replaced_by_one_of_its_kind_in_their_zone",
    ),
    Mutant(
        "demand/accounting.py",
        "rank > first.get((cap.tres, limit), rank)",
        "False",
        "test_caps.py::test_a_qos_stands_in_for_the_same_limit_of_an_association",
    ),
    Mutant(
        "demand/accounting.py",
        "return 3 if cap.account or cap.user else 0",
        "return 3",
        "test_caps.py::"
        "test_a_licence_of_the_cluster_is_held_against_jobs_of_a_qos_that_counts_it_too",
    ),
    Mutant(
        "demand/accounting.py",
        "if self._timed and job.is_pending:",
        "if self._timed:",
        "test_caps.py::test_caps_on_time_and_on_what_a_node_gives_are_held_against_pending_jobs",
    ),
    Mutant(
        "demand/accounting.py",
        "not set(cap.but_partitions).issuperset(job.partitions)",
        "True",
        "test_caps.py::test_an_association_of_a_partition_stands_in_for_that_of_the_user",
    ),
    Mutant(
        "demand/demand.py",
        "shortest_s=job.time_min_s or job.time_limit_s",
        "shortest_s=job.time_limit_s",
        "test_markets.py::test_nothing_is_bought_for_a_job_that_cannot_end_before_its_deadline",
    ),
    Mutant(
        "demand/demand.py",
        "job = self.caps.spread(job) if job.spreads else job",
        "pass",
        "test_caps.py::test_a_job_that_may_spread_takes_as_many_nodes_as_a_cap_per_node_wants",
    ),
    Mutant(
        "buy/fillers.py",
        "for is_share in (True, False):",
        "for is_share in (False,):",
        "test_blueprint.py::test_what_fills_a_node_takes_its_share_of_the_memory_first",
    ),
    Mutant(
        "buy/blueprint.py",
        "if cpu_usd or mib_usd else []",
        "if False else []",
        "test_blueprint.py::test_jobs_without_gpus_pay_for_the_room_beside_a_gpu",
    ),
    Mutant(
        "offers/catalogue.py",
        "while len(kept) > 1 and _is_above",
        "while False and _is_above",
        "test_blueprint.py::"
        "test_for_every_mix_of_cpus_and_memory_the_type_that_gives_most_is_known",
    ),
)


def survives(mutant: Mutant, root: Path) -> bool:
    """Whether the test passes although the code in `root`, a copy, is broken."""
    path = root / "tidegate" / "core" / mutant.file
    whole = path.read_text()
    path.write_text(whole.replace(mutant.old, mutant.new))
    try:
        command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
        done = subprocess.run(
            [*command, f"tests/core/{mutant.seen_by}"],
            cwd=root,
            env=os.environ | {"PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=False,
        )
    finally:
        path.write_text(whole)
    return done.returncode != 1  # 1: tests ran and failed; anything else is no proof


def main() -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name in ("tidegate", "tests"):
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, root / name, ignore=ignored)
        shutil.copy(ROOT / "pyproject.toml", root)
        survivors = [each for each in MUTANTS if survives(each, root)]
    for each in survivors:
        print(f"survives: {each.file}: {each.old!r}; {each.seen_by} should see it")
    print(f"{len(MUTANTS) - len(survivors)} of {len(MUTANTS)} breaks are seen")
    sys.exit(bool(survivors))


if __name__ == "__main__":
    main()
