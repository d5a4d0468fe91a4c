"""Pages that follow their runs: report.html is written again when what it shows has changed.

That of a run of another machine is always written: who made the run may have put any page there, with any time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from vip import store
from vip.errors import EngineError, ReplyError, SomeFailedError
from vip.report.page import write_report
from vip.store import Run

SHOWN = (store.MANIFEST, store.KEYFRAMES, store.DESCRIPTIONS, store.JOURNAL, store.WORDS, store.TEXT, store.FAILURES)
"""The files that the page is made of."""


@contextmanager
def current_pages(folders: Iterable[Path]) -> Iterator[None]:
    """Write the pages of the folders that change inside; where an engine fails, they show what is described by then."""
    before = {folder: _changed_ns(folder) for folder in folders}
    try:
        yield
    except (EngineError, ReplyError, SomeFailedError):
        for folder, changed_ns in before.items():
            if _changed_ns(folder) != changed_ns:
                write_report(Run(folder))
        raise
    for folder in before:
        run, page = Run(folder), folder / store.REPORT
        if not (_is_own(run) and page.exists() and page.stat().st_mtime_ns >= _changed_ns(folder)):
            write_report(run)


def _is_own(run: Run) -> bool:
    return run.manifest is not None and store.is_own(run.manifest)


def _changed_ns(folder: Path) -> int:
    """Return when what the page shows was last written; 0 where there is nothing to show."""
    if not (folder / store.KEYFRAMES).exists():
        return 0
    return max(path.stat().st_mtime_ns for name in SHOWN if (path := folder / name).exists())
