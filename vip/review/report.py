"""The report of a review: progress, agreement, and the rates of the engines, as data, as lines for a terminal and as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from vip.html.layout import templates
from vip.metrics.statistics import IntervalEstimate
from vip.review.agreement import MOST_PAIRED, FieldAgreement, agreement_by_field
from vip.review.fields import VERDICTS
from vip.review.rates import EngineRates, engine_rates
from vip.review.state import ReviewState
from vip.untrusted import one_line


def make_report(state: ReviewState) -> dict[str, Any]:
    """Return the report as plain values.

    Raises:
        BackendError: the library `krippendorff` is missing.
    """
    return {
        "items": sum(1 for _ in state.reviewed_items()),
        "reviewers": state.progress_by_reviewer(),
        "edited": sum(state.is_edited(item.id) for item in state.reviewed_items()),
        "disagreements": sum(state.is_disputed(item.id) for item in state.reviewed_items()),
        "agreement": [asdict(row) for row in agreement_by_field(state)],
        "engines": [asdict(row) for row in engine_rates(state)],
    }


def report_lines(state: ReviewState) -> Iterator[str]:
    """Yield the report as lines of text; errors as of `make_report`."""
    yield f"{sum(1 for _ in state.reviewed_items()):,} items, {sum(state.is_edited(item.id) for item in state.reviewed_items()):,} edited"
    for name, done in state.progress_by_reviewer().items():
        yield f"  {one_line(name)}: {done['done']:,} judged ({', '.join(f'{done[verdict]:,} {verdict}' for verdict in VERDICTS)})"
    yield ""
    yield from agreement_lines(agreement_by_field(state))
    yield ""
    yield from table_of(engine_rates(state), RATE_COLUMNS, rate_cells)


def agreement_lines(rows: Sequence[FieldAgreement]) -> Iterator[str]:
    """Yield the table of the agreement, and whom Cohen's κ leaves out."""
    yield from table_of(rows, AGREEMENT_COLUMNS, agreement_cells)
    if note := left_out_words(rows):
        yield note


def left_out_words(rows: Sequence[FieldAgreement]) -> str:
    """Return a sentence about the reviewers whom Cohen's κ leaves out; empty where there are none."""
    most = max((row.cohen_left_out for row in rows), default=0)
    return (
        f"Cohen's κ: only of pairs of the {MOST_PAIRED} reviewers with most judgements; {most:,} others are left out of it." if most else ""
    )


AGREEMENT_COLUMNS = ("field", "items", "raw", "Cohen's κ", "Fleiss' κ", "Krippendorff's α")
RATE_COLUMNS = ("engine", "items", "hallucination", "omission", "hallucination (rich)", "omission (rich)")


def agreement_cells(row: FieldAgreement) -> tuple[str, ...]:
    """Return the cells of a line of the table of the agreement; Cohen's κ only where there is one pair of reviewers."""
    cohen = _number(next(iter(row.cohen.values()))) if len(row.cohen) == 1 else "–" if not row.cohen else f"{len(row.cohen)} pairs"
    return (row.field.replace("_", " "), f"{row.items:,}", _number(row.raw), cohen, _number(row.fleiss), _with_interval(row.alpha))


def rate_cells(row: EngineRates) -> tuple[str, ...]:
    """Return the cells of a line of the table of the engines."""
    rates = (row.hallucination, row.omission, row.rich_hallucination, row.rich_omission)
    return (one_line(row.engine), f"{row.items:,}", *map(_with_interval, rates))


def table_of(rows: Any, columns: tuple[str, ...], cells: Any) -> Iterator[str]:
    """Yield the lines of a table whose columns are aligned."""
    table = [columns, *map(cells, rows)]
    widths = [max(len(line[place]) for line in table) for place in range(len(columns))]
    for line in table:
        yield "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def report_page(state: ReviewState, *, title: str, token: str) -> str:
    """Return the report as a page of the review server; errors as of `make_report`."""
    agreement = agreement_by_field(state)
    return (
        templates("vip.review")
        .get_template("agreement.html.jinja")
        .render(
            title=title,
            token=token,
            people=list(state.progress_by_reviewer().items()),
            verdicts=VERDICTS,
            agreement=(AGREEMENT_COLUMNS, [agreement_cells(row) for row in agreement]),
            pairs=[(row.field, pair, _number(value)) for row in agreement for pair, value in row.cohen.items() if len(row.cohen) > 1],
            left_out=left_out_words(agreement),
            rates=(RATE_COLUMNS, [rate_cells(row) for row in engine_rates(state)]),
            disagreements=sum(state.is_disputed(item.id) for item in state.reviewed_items()),
        )
    )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _with_interval(value: IntervalEstimate | None) -> str:
    if value is None:
        return "–"
    return _number(value.value) if value.low is None or value.high is None else f"{value.value:.3f} [{value.low:.3f}, {value.high:.3f}]"
