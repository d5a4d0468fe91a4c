"""Damaged files: what can be decoded is used, what is missing is said, and nothing but InputError escapes."""

from __future__ import annotations

import random
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import av.error
import numpy as np
import pytest
from av.video.frame import VideoFrame

import vip.video.reader
from tests.media import FRAMES, Clips, decoded, number_in, write
from vip.errors import InputError
from vip.records import Frame, Image
from vip.video import Video

CUT = (
    "h264.mp4",
    "h264_faststart.mp4",
    "h264_fragmented.mp4",
    "h264.mkv",
    "h264.ts",
    "vp9.webm",
    "h264.flv",
    "mpeg4.avi",
    "gif.gif",
    "av1.mp4",
)
FLIPPED = (
    "h264_faststart.mp4",
    "hevc.mp4",
    "h264.ts",
    "h264.mkv",
    "vp9.webm",
    "mpeg4.avi",
    "mpeg2.mpg",
    "gif.gif",
    "h264.h264",
    "mjpeg.avi",
)
SEEDS = range(12)


def read(path: Path) -> tuple[list[Frame], list[str], int] | None:
    """Frames, losses and the number of frames in the index; None where the file is refused in a sentence."""
    try:
        with Video(path) as video:
            frames = list(video.frames(video.index.shown_pts.tolist(), longest_side_px=64))
            list(video.frames_near(video.index.shown_pts[::5].tolist(), longest_side_px=64))
            list(video.best_frames([video.index.shown_pts.tolist()], lambda grey: float(grey.mean()), longest_side_px=64))
            if frames:
                assert video.info().frames > 0
            return frames, video.losses, len(video.index.shown_pts)
    except InputError as error:
        if str(path) not in str(error):
            raise
        return None


def frames_of_pyav(path: Path) -> int:
    try:
        return sum(1 for _ in decoded(path))
    except (av.error.FFmpegError, IndexError):  # no video stream, or PyAV's own error at a stream that appears late
        return 0


def assert_makes_the_best_of(path: Path) -> None:
    known, found = frames_of_pyav(path), read(path)
    if not known:
        return
    assert found is not None, f"PyAV decodes {known} frames"
    frames, _, _ = found
    assert frames, f"PyAV decodes {known} frames"
    stamps = [frame.pts for frame in frames]
    assert len(set(stamps)) == len(stamps)


@pytest.mark.slow
@pytest.mark.parametrize("percent", [1, 10, 50, 90, 99])
@pytest.mark.parametrize("name", CUT)
def test_of_a_file_that_is_cut_off_what_is_there_is_used(clips: Clips, tmp_path: Path, name: str, percent: int) -> None:
    data = clips(name).path.read_bytes()
    path = tmp_path / name
    path.write_bytes(data[: len(data) * percent // 100])
    assert_makes_the_best_of(path)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", FLIPPED)
def test_whatever_bytes_are_wrong_nothing_but_an_input_error_escapes(clips: Clips, tmp_path: Path, name: str, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(clips(name).path.read_bytes())
    for _ in range((1, 5, 30, 200)[seed % 4]):
        data[chance.randrange(len(data))] = chance.randrange(256)
    path = tmp_path / name
    path.write_bytes(data)
    assert_makes_the_best_of(path)


@pytest.mark.parametrize(("percent", "least"), [(50, 10), (90, 30), (99, 36)])
@pytest.mark.parametrize("name", ["h264_faststart.mp4", "vp9.webm", "h264.ts", "h264_fragmented.mp4"])
def test_the_first_frames_of_a_cut_file_are_whole(clips: Clips, tmp_path: Path, name: str, percent: int, least: int) -> None:
    data = clips(name).path.read_bytes()
    path = tmp_path / name
    path.write_bytes(data[: len(data) * percent // 100])
    found = read(path)
    assert found is not None
    numbers = [number_in(frame.image) for frame in found[0]]
    assert numbers[:least] == list(range(least))
    assert len(numbers) < FRAMES or percent == 99


def test_an_mp4_without_its_table_is_refused(clips: Clips, tmp_path: Path) -> None:
    data = clips("h264.mp4").path.read_bytes()
    path = tmp_path / "half.mp4"
    path.write_bytes(data[: len(data) // 2])  # the table stands at the end
    with pytest.raises(InputError, match=r"not a video that FFmpeg can read .*damaged or incomplete"):
        Video(path)


def test_a_file_that_ends_early_says_how_many_frames_are_there(clips: Clips, tmp_path: Path) -> None:
    data = clips("h264_faststart.mp4").path.read_bytes()
    path = tmp_path / "half.mp4"
    path.write_bytes(data[: len(data) // 2])
    found = read(path)
    assert found is not None
    frames, losses, indexed = found
    assert losses[0] == f"The file ends early: {indexed} of its {FRAMES} frames are there, and they are used."
    assert indexed - 1 <= len(frames) <= indexed < FRAMES


def test_a_long_matroska_that_ends_early_says_how_many_seconds_are_there(tmp_path: Path) -> None:
    stamps = range(0, 40_000, 1000)
    data = write(tmp_path / "whole.mkv", ticks=stamps, time_base=Fraction(1, 1000), rate=1).path.read_bytes()
    path = tmp_path / "half.mkv"
    path.write_bytes(data[: len(data) // 2])
    with Video(path) as video:
        there = (video.index.shown_pts[-1] - video.index.shown_pts[0]) / 1000
        assert video.losses == [f"The file ends early: {there:.1f} of 40.0 s are there, and they are used."]


@pytest.fixture
def hole(clips: Clips, tmp_path: Path) -> Path:
    """A video whose eighth frame is nothing but zeros."""
    path = tmp_path / "hole.avi"
    data = bytearray(clips("mjpeg.avi").path.read_bytes())
    with Video(clips("mjpeg.avi").path) as video:
        size = int(video.index.size_bytes[7])
    start = [place for place in range(len(data)) if data[place : place + 3] == b"\xff\xd8\xff"][7]
    data[start : start + size] = bytes(size)
    path.write_bytes(data)
    return path


def test_a_damaged_frame_is_passed_over_and_counted(hole: Path) -> None:
    with Video(hole) as video:
        shown = video.index.shown_pts.tolist()
        with video.reopen() as twin:
            assert list(twin.frames([shown[7]])) == []
        assert video.losses == ["1 damaged frame was passed over."], "what a twin finds is known to all"
        assert [number_in(frame.image) for frame in video.frames(shown)] == [number for number in range(FRAMES) if number != 7]
        assert video.losses == ["1 damaged frame was passed over."], "and counted once"


def test_of_a_window_with_a_damaged_frame_the_best_of_the_others_is_taken(hole: Path) -> None:
    def is_earlier(grey: Image) -> float:
        return -number_in(np.dstack([grey] * 3))

    with Video(hole) as video:
        shown = video.index.shown_pts.tolist()
        for windows, best in (([shown[7:12]], [8]), ([shown[:3], shown[7:8], shown[10:]], [0, 10]), ([shown[7:8]], [])):
            frames = video.best_frames(windows, is_earlier, longest_side_px=160)
            assert [number_in(frame.image) for frame in frames] == best
        assert video.losses == ["1 damaged frame was passed over."]


@pytest.mark.parametrize("name", ["to_image", "to_grey"])
def test_a_frame_that_cannot_be_made_a_picture_is_passed_over_and_counted(clips: Clips, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Damage may make a frame of a format or a shape that FFmpeg's scaler refuses."""
    real = getattr(vip.video.reader, name)

    def refuse_the_fourth(frame: VideoFrame, *given: Any, **named: Any) -> Image:
        if frame.pts == stamp:
            raise av.error.ArgumentError(22, "Invalid argument")
        return real(frame, *given, **named)

    monkeypatch.setattr(vip.video.reader, name, refuse_the_fourth)
    with Video(clips("h264.mp4").path) as video:
        shown = video.index.shown_pts.tolist()
        stamp = shown[3]
        each = [[pts] for pts in shown[:6]]
        alone = video.frames(shown[:6]) if name == "to_image" else video.best_frames(each, lambda grey: 1.0, longest_side_px=160)
        assert [frame.pts for frame in alone] == [shown[0], shown[1], shown[2], shown[4], shown[5]]
        assert video.losses == ["1 damaged frame was passed over."]


@pytest.mark.parametrize("wrong", [[9], [5, 9], [8, 19]])
def test_wrong_times_do_not_hide_the_frames_behind_them(clips: Clips, tmp_path: Path, wrong: list[int]) -> None:
    path = tmp_path / "a.wmv"
    data = bytearray(clips("wmv2.wmv").path.read_bytes())
    with Video(clips("wmv2.wmv").path) as video:
        sizes, times_ms = video.index.size_bytes.tolist(), video.index.pts.tolist()
    for number in wrong:  # size and time stand side by side, the time 3.1 s later than it is shown
        mark = sizes[number].to_bytes(4, "little") + (times_ms[number] + 3100).to_bytes(4, "little")
        start = data.index(mark) + 4
        data[start : start + 4] = (10_000_000 + 1000 * number).to_bytes(4, "little")
    path.write_bytes(data)
    with Video(path) as video:
        by_time = video.index.shown_pts.tolist()
        expected = dict(zip(by_time, [number for number in range(FRAMES) if number not in wrong] + wrong, strict=True))
        for wanted in (by_time, *([stamp] for stamp in by_time)):
            assert [(frame.pts, number_in(frame.image)) for frame in video.frames(wanted)] == [(stamp, expected[stamp]) for stamp in wanted]


def test_a_lost_sync_frame_costs_its_gop_and_no_other(clips: Clips, tmp_path: Path) -> None:
    clip = clips("h264_faststart.mp4")
    with Video(clip.path) as video:
        sync = np.flatnonzero(video.index.is_sync)
        offset = clip.path.read_bytes().index(b"mdat") + 4 + int(video.index.size_bytes[: sync[2]].sum())
    data = bytearray(clip.path.read_bytes())
    data[offset : offset + int(video.index.size_bytes[sync[2]])] = bytes(int(video.index.size_bytes[sync[2]]))
    path = tmp_path / "hole.mp4"
    path.write_bytes(data)
    with Video(path) as video:
        frames = list(video.frames(video.index.shown_pts.tolist()))
        stamps = [frame.pts for frame in frames]
        assert stamps == sorted(set(stamps))
        numbers = {round(frame.time_s * 25): number_in(frame.image) for frame in frames}
        assert all(numbers[number] == number for number in (*range(20), *range(30, 40)))
        assert video.losses


def test_a_header_that_states_absurd_pixels_is_not_believed(tmp_path: Path) -> None:
    with Video(write(tmp_path / "a.mp4", aspect=Fraction(60), frames=2).path) as video:
        assert video.info().width_px == 160
        assert next(video.frames([0])).image.shape == (120, 160, 3)


def test_a_file_in_which_nothing_decodes_is_refused(clips: Clips, tmp_path: Path) -> None:
    data = clips("h264_faststart.mp4").path.read_bytes()
    start = data.index(b"mdat") + 4
    path = tmp_path / "noise.mp4"
    path.write_bytes(data[:start] + random.Random(0).randbytes(len(data) - start))
    with Video(path) as video, pytest.raises(InputError, match="not one frame can be decoded"):
        video.info()
    raw = tmp_path / "noise.h264"
    raw.write_bytes(clips("h264.h264").path.read_bytes()[:40] + bytes(3000))
    with pytest.raises(InputError):
        Video(raw)
