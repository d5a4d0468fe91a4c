"""What the tests of asking share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from vip.asking.answers import Answers


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the file of answers lies."""
    return tmp_path / "answers.sqlite"


@pytest.fixture
def answers(path: Path) -> Iterator[Answers]:
    answers = Answers(path)
    yield answers
    answers.close()
