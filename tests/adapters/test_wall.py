"""The word to everybody who is logged in."""

import logging
from pathlib import Path

import pytest

from tidegate.adapters.wall import wall


def test_the_text_reaches_wall_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard = tmp_path / "heard"
    made = tmp_path / "wall"
    made.write_text(f'#!/bin/sh\nprintf "%s|" "$@" > {heard}\n')
    made.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    wall("--version; reboot")

    assert heard.read_text() == "--timeout|5|--|--version; reboot|"


def test_without_wall_the_log_says_that_nobody_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with caplog.at_level(logging.WARNING):
        wall("the cluster is stopped")

    assert "users were not told 'the cluster is stopped'" in caplog.text
