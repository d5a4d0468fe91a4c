"""Pictures that were dear to decode wait on disk until it is known which become keyframes; nothing of them stays."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from threading import Event, Semaphore, Thread, current_thread
from typing import IO, Any

import numpy as np
import pytest

import vip
from tests.clips import result, scene
from tests.media import Clip, write
from vip import pipeline, store
from vip.errors import InputError
from vip.extraction.picture_cache import EXPENSIVE_IF_LIKELY, EXPENSIVE_PACKETS, PictureCache
from vip.records import Frame, Image
from vip.store import DECODED
from vip.video import Video
from vip.video.frame_cache import FrameCache

SHOT = 30  # frames
FRAME = Frame(700, Fraction(1, 1000), scene(5))
EFFORT = {100: EXPENSIVE_PACKETS, 700: EXPENSIVE_PACKETS + 1}


# ---------------------------------------------------------------- one by one


@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_a_picture_that_is_moved_is_the_one_that_would_have_been_written(suffix: str, tmp_path: Path) -> None:
    pictures = PictureCache(tmp_path, suffix)
    assert not pictures.has(700)
    pictures.keep(FRAME)
    assert pictures.has(700)
    moved, written = tmp_path / f"moved.{suffix}", tmp_path / f"written.{suffix}"
    pictures.move(700, moved)
    store.write_picture(written, FRAME.image)
    assert moved.read_bytes() == written.read_bytes()
    pictures.clear()
    assert sorted(path.name for path in tmp_path.iterdir()) == [moved.name, written.name]


@pytest.mark.parametrize("place", ["folder", "picture"])
def test_a_picture_behind_a_link_is_none_that_waits(place: str, tmp_path: Path) -> None:
    pictures, album = PictureCache(tmp_path / "run", "jpg"), tmp_path / "album"
    for folder in (tmp_path / "run", album):
        folder.mkdir()
    (album / "700.jpg").write_bytes(b"mine")
    if place == "folder":
        (tmp_path / "run" / DECODED).symlink_to(album)
    else:
        (tmp_path / "run" / DECODED).mkdir()
        (tmp_path / "run" / DECODED / "700.jpg").symlink_to(album / "700.jpg")
    assert not pictures.has(700)
    pictures.clear()
    assert (album / "700.jpg").exists()


def test_only_frames_that_need_many_packets_are_wanted(tmp_path: Path) -> None:
    pictures = PictureCache(tmp_path, "jpg", EFFORT.__getitem__)
    assert [pictures.wants(pts) for pts in (100, 700)] == [False, True]


def test_frames_that_will_probably_be_keyframes_are_wanted_though_they_need_fewer(tmp_path: Path) -> None:
    pictures = PictureCache(tmp_path, "jpg", {1: EXPENSIVE_IF_LIKELY, 2: EXPENSIVE_IF_LIKELY + 1}.__getitem__)
    assert [pictures.wants(pts) for pts in (1, 2)] == [False, False]
    likely = pictures.for_likely
    assert [likely.wants(pts) for pts in (1, 2)] == [False, True]
    likely.keep(Frame(2, FRAME.time_base, FRAME.image))
    assert pictures.has(2)


def test_what_an_earlier_run_left_is_not_taken_for_this_one(tmp_path: Path) -> None:
    PictureCache(tmp_path, "jpg").keep(FRAME)
    with PictureCache(tmp_path, "jpg").while_selecting() as pictures:
        assert not pictures.has(700)
        pictures.keep(FRAME)
    assert pictures.has(700), "it waits for the writing"
    with pytest.raises(KeyboardInterrupt), pictures.while_selecting():
        keep_and_fail(pictures, KeyboardInterrupt())
    assert list(tmp_path.iterdir()) == []


def test_clearing_a_run_folder_spares_them(tmp_path: Path) -> None:
    pictures = PictureCache(tmp_path, "jpg")
    pictures.keep(FRAME)
    store.clear(tmp_path)
    assert pictures.has(700)


def test_a_new_folder_that_holds_nothing_else_goes_when_the_work_fails(tmp_path: Path) -> None:
    pictures = PictureCache(tmp_path / "run", "jpg")
    with pytest.raises(InputError), store.create_folder(tmp_path / "run"):
        keep_and_fail(pictures, InputError("the video shows nothing"))
    assert list(tmp_path.iterdir()) == []


def keep_and_fail(pictures: PictureCache, error: BaseException) -> None:
    pictures.keep(FRAME)
    assert pictures.has(700)
    raise error


def test_where_there_is_no_room_none_is_kept_and_the_room_is_given_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = PictureCache(tmp_path, "jpg", EFFORT.__getitem__)
    pictures.keep(FRAME)
    no_room_for_decoded_pictures(monkeypatch)
    pictures.keep(Frame(740, FRAME.time_base, FRAME.image))
    assert not pictures.has(700)
    assert not pictures.has(740)
    assert not pictures.wants(700)
    assert list(tmp_path.iterdir()) == []


def test_while_frames_are_selected_a_few_pictures_are_encoded_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.cores._most", 2)
    may_write, begun, threads = Event(), Semaphore(0), set[str]()
    write_picture = store.write_picture

    def write(path: Path, image: Image, **settings: Any) -> None:
        begun.release()
        assert may_write.wait(10)
        threads.add(current_thread().name)
        write_picture(path, image, **settings)

    monkeypatch.setattr(store, "write_picture", write)
    with PictureCache(tmp_path, "jpg").while_selecting() as pictures:
        for pts in (1, 2, 3):
            pictures.keep(Frame(pts, FRAME.time_base, FRAME.image))  # comes back at once
        assert begun.acquire(timeout=10)
        fourth = Thread(target=pictures.keep, args=(Frame(4, FRAME.time_base, FRAME.image),))
        fourth.start()
        fourth.join(0.1)
        assert fourth.is_alive(), "so many pictures wait in memory"
        may_write.set()
        fourth.join(10)
        assert all(map(pictures.has, (1, 2, 3, 4)))
    assert all(name.startswith("vip-keep") for name in threads)


def test_what_goes_wrong_beside_is_raised_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(path: Path, image: Image, **settings: Any) -> None:
        raise ZeroDivisionError(path.name)

    monkeypatch.setattr(store, "write_picture", write)
    with pytest.raises(ZeroDivisionError, match=r"700\.jpg"), PictureCache(tmp_path, "jpg").while_selecting() as pictures:
        pictures.keep(FRAME)
    assert list(tmp_path.iterdir()) == []


def no_room_for_decoded_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = store.replacing

    @contextmanager
    def replacing(path: Path, *, inside: Path | None = None, durable: bool = False) -> Iterator[IO[bytes]]:
        if path.parent.name == DECODED:
            raise store.StoreError(f"{path} cannot be written: {errno.ENOSPC}")
        with whole(path, inside=inside, durable=durable) as file:
            yield file

    monkeypatch.setattr(store, "replacing", replacing)


# ---------------------------------------------------------------- in a run


def shown(number: int) -> Image:
    """A second of black, then shots that are unlike each other, each slightly in motion."""
    shot, frame = divmod(number, SHOT)
    return np.zeros((90, 160, 3), np.uint8) if shot == 0 else np.roll(scene(shot), frame, axis=1)


@pytest.fixture(scope="module")
def long_gop(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """A single sync frame, and nothing worth keeping near it."""
    path = tmp_path_factory.mktemp("films") / "long.mp4"
    return write(path, frames=5 * SHOT, gop=1000, picture=shown, options={"x264-params": "scenecut=0", "crf": "20"})


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["jpg", "png", "webp"])
def test_the_pictures_of_a_run_are_those_that_decoding_gives(long_gop: Clip, suffix: str, tmp_path: Path) -> None:
    run = vip.extract(long_gop.path, out=tmp_path / "run", keyframes=4, format=suffix)
    assert len(run.keyframes) == 4
    with Video(long_gop.path) as video:
        for keyframe in run.keyframes:
            (frame,) = video.frames([keyframe.record.pts or 0])
            assert (keyframe.record.height_px, keyframe.record.width_px) == frame.image.shape[:2]
            store.write_picture(tmp_path / f"direct.{suffix}", frame.image)
            assert keyframe.path.read_bytes() == (tmp_path / f"direct.{suffix}").read_bytes()
            assert suffix == "jpg" or np.array_equal(keyframe.image, frame.image)
    assert not list(run.folder.rglob("*.vip-part"))


@pytest.mark.parametrize("in_memory", [True, False])
def test_writing_decodes_nothing_that_was_dear_once_already(
    long_gop: Clip, in_memory: bool, tmp_path: Path, given_packets: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    if not in_memory:
        monkeypatch.setattr("vip.video.reader.FrameCache", lambda _: FrameCache(0))
    analyze_video = pipeline.analyze_video

    def analyze_and_forget(*arguments: object) -> object:
        try:
            return analyze_video(*arguments)  # type: ignore[arg-type]
        finally:
            given_packets.clear()

    monkeypatch.setattr(pipeline, "analyze_video", analyze_and_forget)
    assert len(vip.extract(long_gop.path, out=tmp_path / "run", keyframes=4).keyframes) == 4
    assert given_packets == []


@pytest.fixture
def _nothing_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.video.reader.FrameCache", lambda _: FrameCache(0))


class Killed(BaseException):
    """SIGKILL, as far as files are concerned."""


@pytest.mark.slow
@pytest.mark.usefixtures("_nothing_stays_in_memory")
def test_a_killed_run_goes_on_with_them(
    long_gop: Clip, tmp_path: Path, given_packets: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    undisturbed = result(vip.extract(long_gop.path, out=tmp_path / "undisturbed", keyframes=4).folder)
    move, moved = PictureCache.move, []

    def move_two(self: PictureCache, pts: int, path: Path) -> None:
        if len(moved) == 2:
            raise Killed
        moved.append(pts)
        move(self, pts, path)

    with monkeypatch.context() as patch:
        patch.setattr(PictureCache, "move", move_two)
        with pytest.raises(Killed):
            vip.extract(long_gop.path, out=tmp_path / "run", keyframes=4)
    assert (tmp_path / "run" / DECODED).is_dir()
    given_packets.clear()
    again = vip.extract(long_gop.path, out=tmp_path / "run", keyframes=4)
    assert given_packets == []
    assert result(again.folder) == undisturbed


@pytest.mark.slow
@pytest.mark.usefixtures("_nothing_stays_in_memory")
def test_without_room_for_them_the_run_is_the_same(long_gop: Clip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    undisturbed = result(vip.extract(long_gop.path, out=tmp_path / "undisturbed", keyframes=4).folder)
    no_room_for_decoded_pictures(monkeypatch)
    assert result(vip.extract(long_gop.path, out=tmp_path / "run", keyframes=4).folder) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("existed", [True, False])
def test_a_run_that_finds_nothing_to_keep_leaves_none(tmp_path: Path, existed: bool) -> None:
    path = write(tmp_path / "black.mp4", frames=2 * SHOT, gop=1000, picture=lambda _: np.zeros((90, 160, 3), np.uint8)).path
    if existed:
        (tmp_path / "run").mkdir()
    with pytest.raises(InputError, match="black: the video shows nothing"):
        vip.extract(path, out=tmp_path / "run", keyframes=4)
    assert sorted(item.name for item in tmp_path.rglob("*")) == ["black.mp4", "run"][: 1 + existed]
