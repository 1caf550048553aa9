"""What jobs could ask instead, as lines for people or as data."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from tidegate.sim.advise.classes import RUNS_LEAST, Silent
from tidegate.sim.advise.proof import Advice, Advised, HeldOut
from tidegate.sim.advise.saving import Saving

SAID = {
    Silent.NOBODY: "their user is gone: there is nobody to tell",
    Silent.FEW_RUNS: f"fewer than {RUNS_LEAST} runs on three days ended well",
    Silent.NO_USAGE: "Slurm did not record what they used: set JobAcctGatherType",
    Silent.FITS: "they ask what they use",
    Silent.OTHER_GPUS: "a smaller request would bring them to GPUs of other models",
    Silent.NO_PARTS: "a part of a GPU would do, and no pool of theirs has that GPU in parts",
    Silent.CHEAP: "others could save more: --most N plays more",
    Silent.UNPROVED: "the first half of the history does not teach it yet",
    Silent.WOULD_NOT_RUN: "not all jobs of the history would have ended",
    Silent.UNCERTAIN: "replayed, less saved nothing that is sure",
}


def lines(found: Advised) -> Iterator[str]:
    """The advice, the dearest first; what it comes to; how far it was right; the rest by reason."""
    of = f"{found.jobs} jobs, replayed for {found.usd:,.2f} USD on {found.days} days"
    yield f"{found.cluster}: {of}"
    for one in found.advice:
        yield from _advice(one)
    if found.unknown:
        yield f"nothing is said of this history: {found.unknown}"
    elif not found.advice:
        yield "nothing to advise that is sure to save"
    if found.together:
        yield f"all of it together saves {_usd(found.together)}"
    if found.held_out:
        yield from _held_out(found.held_out)
    if found.silent:
        yield "nothing is said of"
    for why, num, jobs in found.silent:
        yield f"  {num} class{'es' * (num > 1)} of {jobs} jobs ({why}): {SAID[why]}"


def _advice(one: Advice) -> Iterator[str]:
    of, key = one.proposal, one.proposal.key
    yield (
        f"{key.user}, {key.name}, partition {key.partition}: saves {_usd(one.saving)}: {of.options}"
    )
    for each in of.findings:
        yield f"  {each.code}: {each.sentence}"
    before, after = one.types
    if before != after:
        yield f"  the cheapest that holds it: {after} instead of {before}"
    waits = [f"{each:,.0f} s" for each in one.wait_p95_s]
    if waits[0] != waits[1]:
        yield f"  95 % of all jobs wait at most {waits[1]} instead of {waits[0]}"


def _held_out(held_out: HeldOut) -> Iterator[str]:
    of = held_out
    yield (
        f"checked: the first {of.first_days} days, of {of.classes} classes, foretold for the other"
        f" {of.second_days} {of.predicted.usd:,.2f} USD ({of.predicted.low_usd:,.2f} to"
        f" {of.predicted.high_usd:,.2f}), replayed it was {of.replayed_usd:,.2f};"
        f" the error is {_error(of)}{100 * of.error_of_cost:+.2f} % of what they cost"
    )
    if of.misfits:
        yield (
            f"  {of.misfits} of {of.jobs} jobs would not have fitted: they count twice, as if run"
            " again with their old request"
        )


def _error(of: HeldOut) -> str:
    return "" if of.error is None else f"{100 * of.error:+.1f} % of the saving, "


def _usd(saving: Saving) -> str:
    return (
        f"{saving.usd:,.2f} USD ({saving.low_usd:,.2f} to {saving.high_usd:,.2f}),"
        f" {100 * saving.share:.1f} % of all"
    )


def as_data(found: Advised) -> dict[str, Any]:
    """The same for programs; shares are parts of 1."""
    data = asdict(found)
    for one, plain in zip(found.advice, data["advice"], strict=True):
        plain["proposal"]["options"] = one.proposal.options
    if found.held_out:
        data["held_out"]["error"] = found.held_out.error
        data["held_out"]["error_of_cost"] = found.held_out.error_of_cost
    data["silent"] = [
        {"code": why, "classes": num, "jobs": jobs} for why, num, jobs in found.silent
    ]
    return data
