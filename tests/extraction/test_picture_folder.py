"""A plain folder of pictures: what is listed, what is looked at again, and what cannot be read."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from tests.captioning.keyframes import noise, run_folder
from vip import registry, store
from vip.config import CaptionSettings
from vip.errors import InputError
from vip.extraction import picture_folder
from vip.extraction.picture_folder import list_pictures
from vip.protocols import SilentObserver
from vip.records import Failure, Keyframe


class Bar(SilentObserver):
    """How many pictures were to be looked at, and how many were."""

    def __init__(self) -> None:
        self.total = self.steps = 0

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
        self.total += total
        return nullcontext(self.advance)

    def advance(self) -> None:
        self.steps += 1


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for number in range(3):
        store.write_picture(folder / f"{number}.png", noise(number))
        os.utime(folder / f"{number}.png", (1000, 1000))
    return folder


def looked_at(photos: Path, **settings: str) -> int:
    """How many pictures were looked at for objects."""
    bar = Bar()
    list_pictures(photos, CaptionSettings(**settings), bar)
    assert bar.steps == bar.total
    return bar.total


def test_a_picture_is_looked_at_once_and_again_when_it_has_changed(photos: Path) -> None:
    assert looked_at(photos) == 3
    listed = photos / store.KEYFRAMES
    before = listed.stat().st_mtime_ns
    assert looked_at(photos) == 0
    assert listed.stat().st_mtime_ns == before
    store.write_picture(photos / "1.png", noise(7, (90, 120)))
    os.utime(photos / "1.png", ns=(before, before))  # in the same moment as the list: before or after it
    assert looked_at(photos) == 1
    assert [(row.id, row.width_px) for row in store.read_rows(listed, Keyframe)] == [("0.png", 64), ("1.png", 120), ("2.png", 64)]


def test_a_picture_that_is_gone_goes_from_the_list(photos: Path) -> None:
    looked_at(photos)
    (photos / "1.png").unlink()
    assert looked_at(photos) == 0
    assert [row.id for row in store.read_rows(photos / store.KEYFRAMES, Keyframe)] == ["0.png", "2.png"]


@pytest.mark.slow
def test_another_detector_looks_at_every_picture_again(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at(photos)
    monkeypatch.setattr(
        picture_folder, "detector_for", lambda settings: registry.detector("opencv", device="cpu", precision="auto", labels=None)
    )
    assert looked_at(photos, detector="transformers:x/y", labels="cat") == 3
    assert looked_at(photos, detector="transformers:x/y", labels="cat") == 0
    assert looked_at(photos, detector="transformers:x/y", labels="dog") == 3
    assert {row.detector for row in store.read_rows(photos / store.KEYFRAMES, Keyframe)} == {"transformers:x/y for dog"}


def test_pictures_that_cannot_be_read_are_returned_and_the_others_listed(photos: Path) -> None:
    (photos / "1.png").write_bytes(b"no picture")
    (failure,) = list_pictures(photos, CaptionSettings(), SilentObserver())
    assert isinstance(failure, Failure)
    assert (failure.item, failure.kind, failure.exit_code) == ("1.png", "unreadable", 3)
    assert [row.id for row in store.read_rows(photos / store.KEYFRAMES, Keyframe)] == ["0.png", "2.png"]


@pytest.mark.parametrize(
    ("count", "words"), [(1, "The only picture in .* cannot be read"), (3, "None of the 3 pictures in .* can be read")]
)
def test_where_no_picture_can_be_read_nothing_is_left_behind(count: int, words: str, tmp_path: Path) -> None:
    for number in range(count):
        (tmp_path / f"{number}.png").write_bytes(b"no picture")
    with pytest.raises(InputError, match=words):
        list_pictures(tmp_path, CaptionSettings(), SilentObserver())
    assert not list(tmp_path.glob("*.jsonl*"))


def test_a_run_folder_is_left_as_it_is(tmp_path: Path) -> None:
    path = run_folder(tmp_path / "a.vip", 2)
    before = (path / store.KEYFRAMES).stat().st_mtime_ns
    assert looked_at(path) == 0
    assert (path / store.KEYFRAMES).stat().st_mtime_ns == before
