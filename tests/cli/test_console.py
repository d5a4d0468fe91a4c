"""vip.cli.console: what reaches the terminal."""

from __future__ import annotations

import pytest

from vip.cli.console import bounded, print_error


def test_a_message_that_repeats_a_long_text_keeps_its_beginning_and_what_to_type(capsys: pytest.CaptureFixture[str]) -> None:
    print_error(f"p.jsonl: the id {'x' * 1_000_000} is there twice. Make the samples again.")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("vip: p.jsonl: the id xxx")
    assert line.endswith("xxx is there twice. Make the samples again.")
    assert len(line) < 2100
    assert bounded("short") == "short"
