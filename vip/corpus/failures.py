"""failures.jsonl of a batch: every row, video and keyframe that failed, with type, message and number of tries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from vip.corpus.inputs.rows import shown
from vip.corpus.state import StateDatabase
from vip.dataset.storage import remove, writing
from vip.errors import InputError, ReplyError
from vip.records import Failure
from vip.store import FAILURES
from vip.untrusted import escaped_json

MOST_TIME_SHARE = 0.02  # of a run, for rewriting the file
INTERVAL_S = 10.0  # between two writes, at least


class ItemFailure(Failure):
    """One row of the file."""

    tries: int
    where: str
    """The list and the row that name the item."""
    source: str | None = None
    """Id, path or address (without login and query) of the video; None for a bad row and for a keyframe."""


@dataclass(slots=True)
class FailuresFile:
    """The file, rewritten from the state while the batch runs and at its end; without failures there is none."""

    state: StateDatabase
    out: str
    _written_count: int = field(init=False, default=-1)
    _due: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._due = time.monotonic() + INTERVAL_S

    def write_if_due(self) -> None:
        """Write the file if there are new failures and the last write is long enough ago."""
        if time.monotonic() > self._due and sum(self.state.failure_counts().values()) != self._written_count:
            self.write()

    def write(self) -> None:
        """Write the file, or remove one without failures."""
        count, start = sum(self.state.failure_counts().values()), time.monotonic()
        if count or self.state.has_undescribed():
            with writing(self.out, FAILURES) as file:
                for row in self._rows():
                    file.write(escaped_json(row.model_dump_json()).encode() + b"\n")
        elif self._written_count != 0:
            remove(self.out, FAILURES)
        self._written_count = count
        now = time.monotonic()
        self._due = now + max(INTERVAL_S, (now - start) / MOST_TIME_SHARE)

    def _rows(self) -> Iterator[ItemFailure]:
        """Yield the rows, with the exit codes of the same failures in `vip extract` and `vip caption`."""
        for item, kind, message, tries, where, source in self.state.each_failure():
            code, named = ReplyError.exit_code if kind == "caption" else InputError.exit_code, shown(source) if source else None
            yield ItemFailure(item=item, kind=kind, message=message, exit_code=code, tries=tries, where=where, source=named)
        for item, kind, message, where in self.state.each_undescribed():
            yield ItemFailure(item=item, kind=kind, message=message, exit_code=ReplyError.exit_code, tries=1, where=where)
