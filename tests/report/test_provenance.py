"""What the page says of how a run was made: unknown is not zero, and one call is not all calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.report.runs import description, make_run
from vip.records import Description
from vip.report.provenance import provenance


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Description:
    return description(make_run(tmp_path_factory.mktemp("run")).keyframes[0].record)


def calls(row: Description, *changes: dict[str, object]) -> dict[str, str]:
    """The table of calls of two descriptions, the second of which made no call."""
    made = tuple(row.calls[0].model_copy(update=change) for change in changes)
    (table,) = provenance(None, [row.model_copy(update={"calls": made}), row.model_copy(update={"calls": ()})])
    assert table.title == "Calls to engines"
    return dict(table.rows)


@pytest.mark.parametrize(
    ("usd", "shown"),
    [
        ((0.0, 0.0), "0.0000"),
        ((0.25, 0.0), "0.2500"),
        ((0.25, None), "0.2500 (1 call did not report)"),
        ((0.0, None, None), "0.0000 (2 calls did not report)"),
        ((None, None), "not reported"),
        ((0.25, 0.5), "0.7500"),
    ],
)
def test_a_free_call_is_known_and_a_call_that_did_not_report_is_counted(
    usd: tuple[float | None, ...], shown: str, row: Description
) -> None:
    assert calls(row, *({"usd": one} for one in usd))["US dollars"] == shown


def test_tokens_in_and_out_are_those_of_all_calls(row: Description) -> None:
    table = calls(row, {"tokens_in": 800, "tokens_out": 40}, {"tokens_in": 1600, "tokens_out": 2, "latency_s": 2.5})
    assert (table["calls"], table["tokens in"], table["tokens out"]) == ("2", "2,400", "42")
    assert table["seconds, mean of a call"] == "2.00"


def test_models_and_prompts_are_named_once(row: Description) -> None:
    table = calls(row, {}, {"model": "other"}, {}, {"prompt_version": "2"})
    assert table["models"] == "gpt-5-mini-2025-08-07, other"
    assert table["prompts"] == "describe 1 (cdcdcdcdcdcd), describe 2 (cdcdcdcdcdcd)"


def test_without_calls_and_without_a_manifest_there_is_no_table(row: Description) -> None:
    assert provenance(None, [row.model_copy(update={"calls": ()})]) == []


def test_the_seconds_of_several_stages_are_added(tmp_path: Path) -> None:
    manifest = make_run(tmp_path).manifest
    assert manifest

    def seconds(found: dict[str, float]) -> list[tuple[str, str]]:
        tables = provenance(manifest.model_copy(update={"seconds": found}), [])
        return next((table.rows for table in tables if table.title == "Seconds per stage"), [])

    assert seconds({"sample": 0.5, "select": 0.0625}) == [("sample", "0.50 s"), ("select", "0.062 s"), ("together", "0.56 s")]
    assert seconds({"sample": 0.1}) == [("sample", "0.10 s")]
    assert seconds({}) == []
