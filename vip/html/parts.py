"""Values for the parts of more than one page: the values that the macros of `parts.html.jinja` take."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from vip.records import Failure


class Fact(NamedTuple):
    """A figure at the top of a page; `hint` stands below it."""

    name: str
    value: str
    hint: str = ""


class FailureRow(NamedTuple):
    """An item that failed, with a link to its place on the page, if it has one."""

    item: str
    message: str
    kind: str = ""
    link: str = ""


class ValueTable(NamedTuple):
    """Names and values under a title."""

    title: str
    rows: Sequence[tuple[str, str]]


def failure_rows(failures: Iterable[Failure]) -> list[FailureRow]:
    """Return the rows of failures without their kind."""
    return [FailureRow(failure.item, failure.message) for failure in failures]
