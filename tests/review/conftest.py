"""What the tests of reviews open is closed behind each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.review.browser import Browser, browser
from vip.review.log import ReviewLog


@pytest.fixture(autouse=True)
def _closed_logs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Close every log that was opened in this process: Python 3.13 complains of a database that nobody closes."""
    opened: list[ReviewLog] = []
    plain = ReviewLog.__init__

    def open_and_note(self: ReviewLog, path: Path) -> None:
        plain(self, path)
        opened.append(self)

    monkeypatch.setattr(ReviewLog, "__init__", open_and_note)
    yield
    for log in opened:
        log.close()


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that the tests of a file share."""
    with browser(tmp_path_factory.mktemp("profile")) as one:
        yield one
