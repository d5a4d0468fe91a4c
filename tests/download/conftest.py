"""A host, a folder to fetch into, and items that name what is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clips import clip
from tests.media import Clips
from tests.video_host import VideoHost, hosting
from vip.config import BatchSettings
from vip.dataset.items import DownloadedVideo, ListItem
from vip.download.fetch import fetch
from vip.errors import ItemError

Fetch = Callable[..., DownloadedVideo]


@pytest.fixture
def host() -> Iterator[VideoHost]:
    with hosting() as running:
        yield running


@pytest.fixture(scope="session")
def mp4(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return clip(tmp_path_factory.mktemp("mp4") / "a.mp4").read_bytes()


@pytest.fixture(scope="session")
def webm(clips: Clips) -> bytes:
    return clips("vp9.webm").path.read_bytes()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "item"
    made.mkdir()
    return made


@pytest.fixture
def fetched(host: VideoHost, folder: Path, _new_objects_only: None) -> Fetch:
    """Fetch an address, or an id of `kind`, with settings by name. One that fails looks for garbage."""

    def get(source: str, kind: Any = "address", *, room_bytes: int = 10**8, **given: Any) -> DownloadedVideo:
        bases = {"video_base_url": host.address, "youtube8m_base_url": f"{host.address}/2/j/i"}
        settings = BatchSettings(**{"sleep": 0, "ytdlp_opts": "--socket-timeout 1 --retries 1", **bases, **given})
        return fetch(ListItem("KEY", kind, source, "list.txt, line 1"), settings, folder, room_bytes=room_bytes)

    return get


@pytest.fixture
def refused(fetched: Fetch, folder: Path, tmp_path: Path) -> Callable[..., ItemError]:
    """The error of a fetch that must fail and leave nothing behind."""

    def get(*args: Any, **given: Any) -> ItemError:
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(ItemError) as caught:
            fetched(*args, **given)
        assert sorted(tmp_path.rglob("*")) == before
        return caught.value

    return get
