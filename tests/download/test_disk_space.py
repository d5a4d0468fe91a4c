"""A download in room that is shared: it waits before it begins, and begins again where it needs more than it was given."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import pytest

from tests.video_host import VideoHost
from vip.config import BatchSettings
from vip.dataset.items import ListItem
from vip.download.disk_space import STEP_BYTES, UNKNOWN_BYTES
from vip.download.fetch import fetch
from vip.errors import ItemError


class Shared:
    """Room that others leave so much of at a moment, and more where one waits for it."""

    def __init__(self, free_bytes: int) -> None:
        self.held_bytes = 0
        self.free_bytes = free_bytes
        self.waited: list[int] = []
        self.questions = 0

    def wait_for(self, size_bytes: int) -> None:
        self.questions += 1
        assert self.questions < 10, "it waits again and again"
        if size_bytes > self.held_bytes:
            self.waited.append(size_bytes)
            self.held_bytes = size_bytes

    def take(self, size_bytes: int) -> bool:
        if size_bytes > self.free_bytes:
            return False
        self.held_bytes = max(self.held_bytes, size_bytes)
        return True


def fetched(address: str, folder: Path, space: Shared, *, room_bytes: int = 10**9) -> list[str]:
    fetch(ListItem("KEY", "address", address, "list.txt, line 1"), BatchSettings(sleep=0), folder, room_bytes=room_bytes, space=space)
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(autouse=True)
def _little_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("vip.download.fetch"), "UNKNOWN_BYTES", 1000)


@pytest.mark.slow
def test_one_that_fits_into_what_it_was_given_asks_for_no_more(
    host: VideoHost, mp4: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_module("vip.download.fetch"), "UNKNOWN_BYTES", UNKNOWN_BYTES)
    space = Shared(0)
    assert fetched(host.put("/v.mp4", mp4, "video/mp4"), tmp_path, space) == ["KEY.mp4"]
    assert space.waited == [UNKNOWN_BYTES]


def test_one_that_is_larger_takes_more_where_that_is_free(host: VideoHost, mp4: bytes, tmp_path: Path) -> None:
    space = Shared(10**9)
    assert fetched(host.put("/v.mp4", mp4 + bytes(300_000), "video/mp4"), tmp_path, space) == ["KEY.mp4"]
    assert space.waited == [1000]
    assert space.held_bytes > 300_000


@pytest.mark.slow
@pytest.mark.parametrize("way", ["whole", "unsized"])
def test_one_that_is_larger_than_is_free_gives_all_back_and_begins_again_when_there_is_room(
    way: str, host: VideoHost, mp4: bytes, tmp_path: Path
) -> None:
    space = Shared(0)
    assert fetched(host.put("/v.mp4", mp4 + bytes(300_000), "video/mp4", way=way), tmp_path, space) == ["KEY.mp4"]
    first, again = space.waited
    assert first == 1000
    assert STEP_BYTES < again < STEP_BYTES + 400_000


@pytest.mark.slow
def test_one_that_is_larger_than_all_there_is_is_refused(host: VideoHost, mp4: bytes, tmp_path: Path) -> None:
    with pytest.raises(ItemError) as caught:
        fetched(host.put("/v.mp4", mp4 + bytes(3_000_000), "video/mp4"), tmp_path, Shared(10**9), room_bytes=1_000_000)
    assert caught.value.kind == "too_large"
