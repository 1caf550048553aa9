"""The prices that each submission reads: written when they change, and at least every hour."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate.agent.price_file import NAME, ROWS_MAX, PriceFile
from tidegate.core.explain.verdicts import Verdicts
from tidegate.core.offers.price_list import ListedPrice
from tidegate.wire.decisions import decode_verdicts, encode_verdicts

T4 = ListedPrice("gpu", "g4dn.xlarge", 1, "t4", 4, 15_000, 0.526)
CPU = ListedPrice("cpu", "c7i.large", 0, "", 2, 3_800, 0.08925)
AT_S = 3600.0 * 1000


def verdicts(*prices: ListedPrice, at_s: float = AT_S) -> Verdicts:
    return Verdicts("dev", "p-1", at_s, 1, 0.0, (), {}, {}, prices=prices)


def test_each_price_is_a_line(tmp_path: Path) -> None:
    PriceFile(tmp_path).write(verdicts(replace(T4, shards_per_gpu=100, shared_gres="mps"), CPU))

    assert (tmp_path / NAME).read_text() == (
        "at 3600000\n"
        "gpu g4dn.xlarge 1 t4 4 15000 0.526 mps 100\n"
        "cpu c7i.large 0 - 2 3800 0.08925\n"
    )  # fmt: skip


def test_the_planner_s_prices_reach_it_whole() -> None:
    found = decode_verdicts(encode_verdicts(verdicts(T4, CPU)))

    assert found.prices == (T4, CPU)


def test_the_same_prices_are_written_once_an_hour(tmp_path: Path) -> None:
    file = PriceFile(tmp_path)

    def written(found: Verdicts) -> bool:
        (tmp_path / NAME).unlink(missing_ok=True)
        file.write(found)
        return (tmp_path / NAME).exists()

    assert written(verdicts(T4))
    assert not written(verdicts(T4, at_s=AT_S + 3599))
    assert written(verdicts(replace(T4, usd_per_hour=0.6), at_s=AT_S + 3599))
    assert written(verdicts(replace(T4, usd_per_hour=0.6), at_s=AT_S + 3600))


def test_an_older_planner_says_none_and_a_list_without_end_is_cut(tmp_path: Path) -> None:
    file = PriceFile(tmp_path)

    file.write(verdicts())
    assert not (tmp_path / NAME).exists()
    file.write(verdicts(*[T4] * (ROWS_MAX + 1)))
    assert len((tmp_path / NAME).read_text().splitlines()) == ROWS_MAX + 1


def test_a_disk_that_takes_none_is_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = PriceFile(tmp_path / "gone")

    with caplog.at_level(logging.WARNING):
        file.write(verdicts(T4))
        file.write(verdicts(T4))
    PriceFile(None).write(verdicts(T4))

    assert len(caplog.messages) == 1
