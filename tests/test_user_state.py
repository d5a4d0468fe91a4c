"""What vip remembers for its user: names, and what this machine signed."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import IO

import pytest

from vip import user_state
from vip.errors import StoreError


def test_a_name_is_known_until_it_is_forgotten() -> None:
    assert not user_state.knows("jobs", "batch_1")
    user_state.remember("jobs", "batch_1")
    assert user_state.knows("jobs", "batch_1")
    assert not user_state.knows("runs", "batch_1")
    assert not user_state.knows("jobs", "batch_2")
    user_state.forget("jobs", "batch_1")
    user_state.forget("jobs", "batch_1")
    assert not user_state.knows("jobs", "batch_1")


def test_the_first_name_makes_a_folder_for_the_user_alone_wherever_it_is_to_lie(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new" / "state"))
    user_state.remember("jobs", "batch_1")
    assert user_state.knows("jobs", "batch_1")
    for folder in (user_state.folder(), user_state.folder() / "jobs"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "a\0b", "é" * 500, "caf\udce9"])
def test_any_text_is_a_name_and_leads_nowhere(name: str) -> None:
    user_state.remember("runs", name)
    assert user_state.knows("runs", name)
    assert [path.parent for path in (user_state.folder() / "runs").iterdir()] == [user_state.folder() / "runs"]


def test_only_this_machine_signs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    signed = user_state.signature("a run")
    assert user_state.is_signed("a run", signed)
    assert not user_state.is_signed("another run", signed)
    assert not user_state.is_signed("a run", None)
    for forged in ("", "é", chr(0xD800), chr(0xDCFF)):
        assert not user_state.is_signed("a run", forged)
        assert user_state.is_signed(forged, user_state.signature(forged))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert not user_state.is_signed("a run", signed)
    assert user_state.signature("a run") != signed


def test_the_secret_is_made_once_and_for_the_user_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new"))
    assert user_state.signature("x") == user_state.signature("x")
    secret = user_state.folder() / user_state.SECRET
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE(user_state.folder().stat().st_mode) == 0o700
    assert [path.name for path in user_state.folder().iterdir()] == [user_state.SECRET]


@pytest.mark.parametrize("length", [0, 31, 33])
def test_a_secret_of_another_length_signs_nothing_and_stays(length: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Such as one that a crash of the machine emptied: anybody could sign with it."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    secret = user_state.folder() / user_state.SECRET
    secret.parent.mkdir()
    secret.write_bytes(b"s" * length)
    assert user_state.signature("a run") is None
    assert not user_state.is_signed("a run", user_state._sign("a run", b"s" * length))
    assert not user_state.is_signed("a run", user_state._sign("a run", b""))
    assert secret.read_bytes() == b"s" * length
    assert [path.name for path in user_state.folder().iterdir()] == [user_state.SECRET]


def test_of_two_processes_that_make_the_secret_at_once_the_first_one_s_stays(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "new"))
    secret = user_state.folder() / user_state.SECRET

    def slowly(count: int) -> bytes:
        secret.write_bytes(b"b" * count)  # another process is quicker
        return b"a" * count

    monkeypatch.setattr(user_state.secrets, "token_bytes", slowly)
    signed = user_state.signature("x")
    assert secret.read_bytes() == b"b" * user_state.SECRET_BYTES
    assert user_state.is_signed("x", signed)
    assert [path.name for path in user_state.folder().iterdir()] == [user_state.SECRET]


def test_where_nothing_can_be_remembered_nothing_is_signed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert user_state.signature("x") is None
    assert not user_state.is_signed("x", "y")
    with pytest.raises(StoreError, match="set XDG_STATE_HOME"):
        user_state.remember("jobs", "x")


def test_a_secret_that_a_full_disk_does_not_hold_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(number: int, mode: str) -> IO[bytes]:
        os.close(number)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    with monkeypatch.context() as full:
        full.setattr(os, "fdopen", refuse)
        assert user_state.signature("x") is None
    assert not list(user_state.folder().iterdir())
