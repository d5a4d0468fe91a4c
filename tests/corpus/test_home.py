"""The folder of a batch's state: one process at a time, and none left behind where nothing was begun."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vip.corpus.home import LOCK, PARTS, leaving_none, locked, worker
from vip.corpus.state import NAME
from vip.errors import UsageError


def test_who_works_on_it_is_known_while_it_does(tmp_path: Path) -> None:
    home = tmp_path / "state"
    home.mkdir()
    (home / LOCK).write_text("9" * 30)  # of one that was killed
    assert worker(home) is None
    with locked(home, "corpus"):
        assert worker(home) == os.getpid()
        assert (home / LOCK).read_text() == str(os.getpid())
    assert worker(home) is None


def test_another_is_refused_and_told_who_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.corpus.home.LOOKS_S", (0.01, 0.02))
    waits: list[float] = []
    monkeypatch.setattr("vip.corpus.home.time.sleep", waits.append)
    told = rf"process {os.getpid()}\) works on corpus"
    with locked(tmp_path, "corpus"), pytest.raises(UsageError, match=told), locked(tmp_path, "corpus"):
        pass
    assert waits == [0.01, 0.02], "whoever only looks at the status is soon gone"


def fails(home: Path, *folders: str) -> None:
    """A batch that makes its state, and these folders in it, and then fails."""
    with leaving_none(home):
        home.mkdir(parents=True, exist_ok=True)
        for name in (LOCK, NAME, f"{NAME}-wal"):
            (home / name).touch()
        for name in folders:
            (home / name).mkdir()
        raise KeyError


def test_a_state_that_was_made_in_vain_goes_again_with_the_output(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fails(tmp_path / "corpus" / "state")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fails(tmp_path, "notes")
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_state_with_parts_and_one_that_was_there_before_stay(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fails(tmp_path, PARTS)
    (tmp_path / PARTS).rmdir()
    with pytest.raises(KeyError):
        fails(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {LOCK, NAME, f"{NAME}-wal"}
