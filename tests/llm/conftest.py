"""What the tests of asking share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vip.llm.cache import AnswerCache


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of answers lies."""
    return tmp_path / "answers.sqlite"


@pytest.fixture
def answers(path: Path) -> Iterator[AnswerCache]:
    answers = AnswerCache(path)
    yield answers
    answers.close()
