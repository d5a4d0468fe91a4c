from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yt_dlp.dependencies
import yt_dlp.version

from tests.download.test_options import COOKIES
from vip.config import BatchSettings
from vip.download.preflight import preflight
from vip.errors import BackendError, UsageError


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without programs; put some into this folder."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    return tmp_path


def program(folder: Path, name: str, says: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\necho '{says}'\n")
    path.chmod(0o755)


def test_a_list_without_youtube_needs_nothing(bare: Path) -> None:
    assert preflight(BatchSettings(), False) == []


def test_what_youtube_needs_is_said(bare: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(yt_dlp.version, "__version__", "2020.01.01")
    monkeypatch.setattr(yt_dlp.dependencies, "yt_dlp_ejs", None)
    old, runtime, package = preflight(BatchSettings(), True)
    assert "2020.01.01" in old
    assert "deno" in runtime
    assert "yt-dlp-ejs" in package


@pytest.mark.parametrize(("name", "says"), [("deno", "deno 2.9.1 (stable)"), ("node", "v24.1.0"), ("qjs", "QuickJS version 2025-04-26")])
def test_a_javascript_runtime_is_enough(bare: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str) -> None:
    program(bare, name, says)
    monkeypatch.setattr(yt_dlp.dependencies, "yt_dlp_ejs", object())
    assert not [sentence for sentence in preflight(BatchSettings(), True) if "runtime" in sentence]


def test_a_runtime_that_is_too_old_is_named(bare: Path) -> None:
    program(bare, "node", "v12.0.0")
    assert any("node 12.0.0 is too old" in sentence for sentence in preflight(BatchSettings(), True))


def test_sound_needs_ffmpeg(bare: Path) -> None:
    assert ["ffmpeg" in sentence for sentence in preflight(BatchSettings(audio=True), False)] == [True]
    program(bare, "ffmpeg", "")
    assert preflight(BatchSettings(audio=True), False) == []


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o601])
def test_cookies_that_others_may_read_are_named(mode: int, tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(COOKIES)
    file.chmod(mode)
    assert [f"chmod 600 {file}" in sentence for sentence in preflight(BatchSettings(cookies=file), False)] == [True]
    file.chmod(0o600)
    assert preflight(BatchSettings(cookies=file), False) == []


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"cookies": "none.txt"}, "--cookies none.txt cannot be read"),
        ({"proxy": "proxy"}, "--proxy 'proxy'"),
        ({"proxy": "ftp://proxy:1"}, "--proxy"),
        ({"proxy": "http://proxy:99999"}, "--proxy"),
        ({"proxy": "ftp://me:secret@proxy"}, "--proxy '…proxy'"),
        ({"proxy": "ftp://me:very@secret@proxy"}, "--proxy '…proxy'"),
        ({"video_base_url": "ftp://me@home:very@secret@host"}, "--video-base-url '…host'"),
        ({"video_base_url": "file:///x"}, "--video-base-url"),
        ({"youtube8m_base_url": "data"}, "--youtube8m-base-url"),
        ({"ytdlp_opts": "--exec reboot"}, "--exec"),
    ],
)
def test_what_cannot_work_is_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        preflight(BatchSettings(**given), False)
    assert told in str(caught.value)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("proxy", ["http://proxy:3128", "socks5h://me:secret@proxy", "https://[::1]:8080"])
def test_a_proxy_is_taken(proxy: str) -> None:
    assert preflight(BatchSettings(proxy=proxy), False) == []


def test_without_yt_dlp_the_next_command_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "yt_dlp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "yt_dlp", None)
    with pytest.raises(BackendError, match=r"pip install 'vip-keyframes\[batch\]'"):
        preflight(BatchSettings(), False)
