"""The deliberate faults follow the code; `make mutants` lets the simulation find them."""

import pytest

from bench.aimed import Fault, Stale, source_of
from bench.faults import FAULTS
from bench.mutated import run_tidegate

ORDERS_ARE_LOST = next(each for each in FAULTS if each.name == "orders are lost")


def trouble(each: Fault) -> str:
    """What keeps it from being a fault, "" when nothing does."""
    try:
        texts = each.texts()
    except Stale as stale:
        return str(stale)
    for module, text in texts.items():
        compile(text, module, "exec")
    same = [module for module in texts if texts[module] == source_of(module)]
    return f"{each.name}: nothing changes in {same}" if same or not texts else ""


def test_every_fault_finds_its_place() -> None:
    assert [said for each in FAULTS if (said := trouble(each))] == []


def test_no_two_faults_have_one_name() -> None:
    assert len({each.name for each in FAULTS}) == len(FAULTS) >= 87


def test_no_two_faults_are_the_same() -> None:
    assert len({each.aims for each in FAULTS}) == len(FAULTS)


@pytest.mark.parametrize("more", [(), ("--shrink",)])
def test_the_command_that_a_failure_prints_repeats_it(more: tuple[str, ...]) -> None:
    texts = ORDERS_ARE_LOST.texts()
    words = ("simulate", "--seeds", "0:20", "--size", "small", *more)
    first = run_tidegate(texts, *words, time_out_s=120.0)
    lines = first.stdout.splitlines()
    again = next(line for line in lines if line.startswith("again: tidegate "))
    second = run_tidegate(texts, *again.removeprefix("again: tidegate ").split(), time_out_s=120.0)

    failure = lines[: lines.index(again) + 1]
    assert first.returncode == second.returncode == 1
    assert len(failure) > 5
    assert second.stdout.splitlines()[: len(failure)] == failure
