"""failures.jsonl of a batch: every row, video and keyframe that could not be done, with type, message and tries."""

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

SHARE = 0.02  # of the time may go into writing the file anew while the batch runs
FIRST_S = 10.0


class ItemFailure(Failure):
    """One row of it."""

    tries: int
    where: str
    """Where the item was named."""
    source: str | None = None
    """Its id, path or address (without login and query); None for a row, and for a keyframe."""


@dataclass(slots=True)
class FailuresFile:
    """Written anew from the state now and then, and at the end; there is none where nothing failed."""

    state: StateDatabase
    out: str
    _told: int = field(init=False, default=-1)
    _due: float = field(init=False, default=0.0)

    def __post_init__(self) -> None:
        self._due = time.monotonic() + FIRST_S

    def keep(self) -> None:
        """Write it where something else has failed since the last time, and that is a while ago."""
        if time.monotonic() > self._due and sum(self.state.failures().values()) != self._told:
            self.write()

    def write(self) -> None:
        count, start = sum(self.state.failures().values()), time.monotonic()
        if count or self.state.has_undescribed():
            with writing(self.out, FAILURES) as file:
                for row in self._rows():
                    file.write(row.model_dump_json().encode() + b"\n")
        elif self._told != 0:
            remove(self.out, FAILURES)
        self._told = count
        now = time.monotonic()
        self._due = now + max(FIRST_S, (now - start) / SHARE)

    def _rows(self) -> Iterator[ItemFailure]:
        """With the exit codes that the same failures have in `vip extract` and `vip caption`."""
        for item, kind, message, tries, where, source in self.state.each_failure():
            code, named = ReplyError.exit_code if kind == "caption" else InputError.exit_code, shown(source) if source else None
            yield ItemFailure(item=item, kind=kind, message=message, exit_code=code, tries=tries, where=where, source=named)
        for item, kind, message, where in self.state.each_undescribed():
            yield ItemFailure(item=item, kind=kind, message=message, exit_code=ReplyError.exit_code, tries=1, where=where)
