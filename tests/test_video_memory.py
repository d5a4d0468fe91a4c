"""Memory does not grow with the number of frames that were decoded.

A frame of PyAV that was asked for its side data refers to itself from then on, and lives until the next garbage
collection; over a video of an hour that is gigabytes. Here the collector is off, so that such frames would pile up.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Sequence
from pathlib import Path

import av
import pytest
from av.video.frame import VideoFrame

import vip.pixels
import vip.video.reader
from tests.media import FRAMES, Clips, turn
from vip.extraction.analyze import in_parallel
from vip.video import Video
from vip.video.frame_cache import FrameCache

FEW = 8  # those that the decoder hands out together at its end, and the one whose display matrix was read


@pytest.fixture(autouse=True)
def _no_collector(_new_objects_only: None) -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()
    gc.collect()


def alive() -> int:
    return sum(issubclass(type(thing), VideoFrame) for thing in gc.get_objects())  # isinstance would ask lazy objects of torch


@pytest.fixture(params=["h264.mp4", "h264.ts", "vp9.webm", "gif.gif", "h264.h264", "turned"])
def path(request: pytest.FixtureRequest, clips: Clips, tmp_path: Path) -> Path:
    if request.param != "turned":
        return clips(request.param).path
    turn(clips("h264.mp4").path, tmp_path / "turned.mp4", (0, 1, -1, 0))
    return tmp_path / "turned.mp4"


@pytest.mark.parametrize("kept", [0, 3])
def test_decoded_frames_are_let_go_but_for_the_best_ones_that_there_is_room_for(
    path: Path, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Video(path) as video:
        (frame,) = video._decode_frames([video.index.pts.min().item()])
        room = kept * sum(plane.buffer_size for plane in frame.planes)
        monkeypatch.setattr("vip.video.reader.FrameCache", lambda _: FrameCache(room))
        del frame
    before = alive()
    with Video(path) as video:
        shown = video.index.shown_pts.tolist()
        most = 0
        best = video.best_frames([shown[:20], *([stamp] for stamp in shown[20:])], lambda grey: float(grey[0, 0]), longest_side_px=64)
        for frames in (video.frames(shown), video.frames_near(shown), best, *(video.frames([stamp]) for stamp in shown[::5])):
            for place, _ in enumerate(frames):
                most = max(most, alive() - before) if place % 8 == 7 else most
        video.info()
        assert sum(stamp in video._kept for stamp in shown) == kept
    assert most <= FEW + kept


@pytest.mark.parametrize(("short_frames", "is_kept"), [(FRAMES, True), (FRAMES - 1, False)])
def test_of_a_long_video_no_frame_is_kept(clips: Clips, short_frames: int, is_kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their number does not grow with what is looked at, as it does in a short one."""
    monkeypatch.setattr("vip.video.reader.SHORT_FRAMES", short_frames)
    with Video(clips("h264.mp4").path) as video:
        shown = video.index.shown_pts.tolist()
        assert len(shown) == FRAMES
        assert len(list(video.best_frames([[stamp] for stamp in shown], lambda _: 0.0, longest_side_px=64))) == FRAMES
        assert all((stamp in video._kept) == is_kept for stamp in shown)


def test_closed_readers_leave_nothing_behind(path: Path) -> None:
    before = alive()
    for _ in range(5):
        with Video(path) as video, video.reopen() as twin:
            next(video.frames(video.index.shown_pts.tolist()))
            next(twin.frames(video.index.shown_pts[5:].tolist()))
            video.info()
        del video, twin
    assert alive() - before <= 5, "one a file: that whose display matrix was read"


def test_workers_leave_nothing_behind(clips: Clips) -> None:
    before = alive()

    def work(reader: Video, batch: Sequence[int]) -> Iterator[int]:
        for frame in reader.frames(batch):
            yield frame.pts

    with Video(clips("h264.mp4").path) as video:
        for _ in range(3):
            assert len(list(in_parallel(video, video.index.shown_pts.tolist(), work))) == FRAMES
    assert alive() - before <= FEW


@pytest.mark.skipif(int(av.__version__.partition(".")[0]) > 18, reason="PyAV 19 lets the frames go")
def test_asking_every_frame_for_its_display_matrix_would_keep_all_of_them(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    """That the tests above can fail."""
    monkeypatch.setattr(Video, "_turn_of", lambda _, frame: vip.pixels.turn_of(frame))
    before = alive()
    with Video(clips("h264.mp4").path) as video:
        for _ in video.frames(video.index.shown_pts.tolist()):
            pass
        assert alive() - before >= FRAMES
