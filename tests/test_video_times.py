"""The index: times, sync flags and sizes of the packets, as the file states them, as it was written, and as ffprobe says."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest

from tests.media import FRAMES, RECIPES, Clip, Clips, card, ffprobe, linear, needs_ffprobe, number_in, remux, turn, write
from vip.video import Video

DELAYED_S = {  # these containers start with the delay of the decoder, not with the first picture
    "h264.ts": Fraction(2, 25),
    "h264.flv": Fraction(2, 25),
    "h264.avi": Fraction(2, 25),
    "h264_fragmented.mp4": Fraction(2, 25),
    "h264_open_gop.ts": Fraction(2, 25),
    "h264_interlaced.ts": Fraction(2, 25),
    "hevc_open_gop.ts": Fraction(2, 25),
    "mpeg4_b_frames.avi": Fraction(1, 25),
    "mpeg2.mpg": Fraction(27, 50),  # and half a second of the multiplexer
}
SQUEEZED = {"wide": (Fraction(16, 11), (233, 120)), "tall": (Fraction(3, 4), (160, 160)), "square": (Fraction(1), (160, 120))}
TURNS = {0: (1, 0, 0, 1), 90: (0, 1, -1, 0), 180: (-1, 0, 0, -1), 270: (0, -1, 1, 0)}


def times_s(video: Video) -> list[Fraction]:
    return [pts * video.time_base for pts in video.index.shown_pts.tolist()]


@pytest.mark.slow
@pytest.mark.parametrize("name", RECIPES)
def test_each_picture_has_the_time_it_was_written_with(clips: Clips, name: str) -> None:
    clip = clips(name)
    with Video(clip.path) as video:
        assert [stamp - DELAYED_S.get(name, 0) for stamp in times_s(video)] == list(clip.times_s)
        frames = list(video.frames(video.index.shown_pts.tolist()))
        assert [frame.pts * frame.time_base for frame in frames] == times_s(video)
        assert [number_in(frame.image) for frame in frames] == list(range(len(clip.times_s)))
        info = video.info()
        assert (info.start_time_s, info.end_time_s) == (float(times_s(video)[0]), float(times_s(video)[-1]))
        assert info.frames == len(clip.times_s)
        assert video.losses == []


@pytest.mark.slow
@needs_ffprobe
@pytest.mark.parametrize("name", RECIPES)
def test_times_and_size_are_those_of_ffprobe(clips: Clips, name: str) -> None:
    clip = clips(name)
    said = ffprobe(clip.path, "frame=best_effort_timestamp:stream=time_base,width,height,codec_name")
    stream = said["streams"][0]
    stamps = [frame.get("best_effort_timestamp") for frame in said["frames"]]
    known = [int(stamp) * Fraction(stream["time_base"]) for stamp in stamps if stamp is not None]
    with Video(clip.path) as video:
        assert len(stamps) == len(video.index.shown_pts)
        assert times_s(video)[: len(known)] == known, "raw streams have no times, AVI none for the frames that come last"
        info = video.info()
        assert (info.width_px, info.height_px, info.codec) == (stream["width"], stream["height"], stream["codec_name"])
        assert len(known) >= FRAMES - 2 or info.container in {"h264", "hevc"} or name == "one_frame.mp4"


@pytest.mark.parametrize("name", ["h264.mp4", "h264.ts", "h264.mkv", "vp9.webm", "mpeg2.mpg", "hevc_open_gop.mp4"])
def test_the_index_is_read_without_decoding(clips: Clips, name: str, given_packets: list[int | None]) -> None:
    with Video(clips(name).path) as video, av.open(str(clips(name).path)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
        assert given_packets == []
        assert video.index.pts.tolist() == [packet.pts for packet in packets]
        assert video.index.size_bytes.tolist() == [packet.size for packet in packets]
        assert video.index.is_sync.tolist() == [packet.is_keyframe for packet in packets]
        assert 4 <= video.index.is_sync.sum() <= 5


@pytest.mark.parametrize("degrees", TURNS)
@pytest.mark.parametrize("shape", SQUEEZED)
def test_sizes_are_those_on_the_screen(tmp_path: Path, degrees: int, shape: str) -> None:
    aspect, (width, height) = SQUEEZED[shape]
    stored, turned = write(tmp_path / "a.mp4", aspect=aspect, frames=3).path, tmp_path / "b.mp4"
    turn(stored, turned, TURNS[degrees])
    with Video(turned) as video:
        info = video.info()
        shown = (width, height) if degrees % 180 == 0 else (height, width)
        assert (info.width_px, info.height_px) == shown
        assert (info.rotation_deg, info.pixel_aspect_ratio) == (degrees, aspect)
        assert [frame.image.shape[1::-1] for frame in video.frames(video.index.shown_pts.tolist())] == [shown] * 3


@pytest.mark.slow
@needs_ffprobe
@pytest.mark.parametrize("degrees", TURNS)
@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv", "avi", "ts"])
def test_shapes_of_pixels_and_turns_are_those_of_ffprobe(tmp_path: Path, suffix: str, degrees: int) -> None:
    path = write(tmp_path / f"a.{suffix}", "mpeg4", aspect=Fraction(16, 11), frames=3).path
    if suffix in {"mp4", "mov"}:
        turn(path, path := tmp_path / f"b.{suffix}", TURNS[degrees])
    stream = ffprobe(path, "stream=width,height,sample_aspect_ratio:stream_side_data=rotation")["streams"][0]
    aspect = Fraction(stream["sample_aspect_ratio"].replace(":", "/"))
    anticlockwise = next((data["rotation"] for data in stream.get("side_data_list", []) if "rotation" in data), 0)
    width, height = round(stream["width"] * aspect), stream["height"]
    with Video(path) as video:
        info = video.info()
    assert info.rotation_deg == -anticlockwise % 360
    assert (info.width_px, info.height_px) == ((width, height) if anticlockwise % 180 == 0 else (height, width))


def test_a_variable_rate_keeps_every_time(clips: Clips) -> None:
    with Video(clips("uneven.mkv").path) as video:
        gaps = np.diff(video.index.shown_pts)
        assert len(set(gaps.tolist())) >= 5
        assert times_s(video) == list(clips("uneven.mkv").times_s)


def test_a_rate_of_29_97_is_a_fraction(clips: Clips) -> None:
    with Video(clips("ntsc.mp4").path) as video:
        assert video.info().frame_rate == Fraction(30000, 1001)
        assert times_s(video)[30] == Fraction(1001, 1000)


@pytest.mark.parametrize("name", ["late.mkv", "late.mp4"])
def test_a_delayed_start_is_kept(clips: Clips, name: str) -> None:
    with Video(clips(name).path) as video:
        assert video.info().start_time_s == 1.5
        assert next(video.frames(video.index.sync_pts.tolist())).time_s == 1.5


@pytest.mark.parametrize(
    ("name", "stated"), [("vp9_no_duration.webm", None), ("h264_no_cues.mkv", None), ("h264.h264", None), ("h264.mp4", 1.6)]
)
def test_a_missing_duration_or_frame_count_is_no_obstacle(clips: Clips, name: str, stated: float | None) -> None:
    with Video(clips(name).path) as video:
        info = video.info()
        assert (info.duration_s_from_header, info.frames) == (stated, FRAMES)
        assert info.end_time_s == float(clips(name).times_s[-1])
        assert [number_in(frame.image) for frame in video.frames(video.index.shown_pts[[5, 33]].tolist())] == [5, 33]


@pytest.mark.parametrize("skip_s", [Fraction(1, 2), Fraction(2, 5)], ids=["within a GOP", "at a sync frame"])
def test_what_an_edit_list_hides_is_not_shown(clips: Clips, tmp_path: Path, skip_s: Fraction) -> None:
    remux(clips("h264.mp4").path, tmp_path / "cut.mp4", skip_s=skip_s)
    with Video(tmp_path / "cut.mp4") as video:
        shown = range(round(skip_s * 25) + (1 if skip_s == Fraction(1, 2) else 0), FRAMES)
        frames = list(video.frames(video.index.shown_pts.tolist()))
        assert [number_in(frame.image) for frame in frames] == list(shown)
        assert frames[0].time_s == 0
        assert (video.index.sync_pts >= 0).all()
        assert video.losses == [], "a hidden frame is not a lost one"


@needs_ffprobe
def test_an_edit_list_is_read_as_ffprobe_reads_it(clips: Clips, tmp_path: Path) -> None:
    remux(clips("h264.mp4").path, tmp_path / "cut.mp4", skip_s=Fraction(1, 2))
    said = ffprobe(tmp_path / "cut.mp4", "frame=best_effort_timestamp")
    with Video(tmp_path / "cut.mp4") as video:
        assert video.index.shown_pts.tolist() == [int(frame["best_effort_timestamp"]) for frame in said["frames"]]


# ---------------------------------------------------------------- flags and times that cannot be believed


def test_of_a_gif_only_the_first_packet_is_sync(clips: Clips) -> None:
    with Video(clips("gif.gif").path) as video:
        assert np.flatnonzero(video.index.is_sync).tolist() == [0]


@pytest.mark.parametrize("name", ["mpeg4.mp4", "hevc.mp4"])
def test_an_mp4_without_a_sync_table_does_not_make_every_frame_a_sync_frame(clips: Clips, tmp_path: Path, name: str) -> None:
    path = tmp_path / "no_table.mp4"
    path.write_bytes(clips(name).path.read_bytes().replace(b"stss", b"free"))
    with av.open(str(path)) as container:
        assert all(packet.is_keyframe for packet in container.demux(video=0) if packet.size), "that is what the file says"
    with Video(path) as video:
        assert np.flatnonzero(video.index.is_sync).tolist() == [0]
        assert [number_in(frame.image) for frame in video.frames(video.index.shown_pts[[3, 17, 38]].tolist())] == [3, 17, 38]


@pytest.mark.parametrize("name", ["mjpeg.avi", "mjpeg.mov", "rawvideo.avi"])
def test_where_every_frame_stands_alone_all_are_sync(clips: Clips, name: str) -> None:
    with Video(clips(name).path) as video:
        assert video.index.is_sync.all()


@pytest.mark.parametrize(
    ("name", "all_of_them"), [("h264.mp4", False), ("hevc.mp4", False), ("mpeg4.avi", False), ("vp9.webm", True), ("av1.mp4", True)]
)
def test_the_index_says_whether_the_decoder_passes_over_frames(clips: Clips, name: str, all_of_them: bool) -> None:
    with Video(clips(name).path) as video, video.reopen() as twin:
        assert video.index.decodes_all == twin.index.decodes_all == all_of_them


@pytest.mark.parametrize("name", ["h264.h264", "hevc.hevc", "h264.avi"])
def test_without_pts_the_decoder_says_the_order(clips: Clips, name: str) -> None:
    with Video(clips(name).path) as video:
        assert video.index.by_decoding
        assert [number_in(frame.image) for frame in video.frames(video.index.shown_pts[[39, 0, 21]].tolist())] == [0, 21, 39]
        assert [number_in(frame.image) for frame in video.frames_near(video.index.shown_pts[[7, 8]].tolist())] == [7, 8]
        with video.reopen() as twin:
            assert [number_in(frame.image) for frame in twin.frames(video.index.shown_pts[[4]].tolist())] == [4]


def test_recordings_put_together_with_their_own_clocks_are_shown_one_after_the_other(clips: Clips, tmp_path: Path) -> None:
    second = write(tmp_path / "second.ts", picture=lambda number: card(number + 100))
    path = tmp_path / "both.ts"
    path.write_bytes(clips("h264.ts").path.read_bytes() + second.path.read_bytes())
    assert len({pts for pts, _ in linear(path)}) < 1.5 * FRAMES, "the times come twice"
    with Video(path) as video:
        frames = list(video.frames(video.index.shown_pts.tolist()))
        assert [number_in(frame.image) for frame in frames] == [*range(FRAMES), *range(100, 100 + FRAMES)]
        assert (np.diff(video.index.shown_pts) == 3600).all()


def test_a_stream_that_appears_in_the_middle_is_passed_over(clips: Clips, tmp_path: Path) -> None:
    """As in broadcasts; PyAV's demuxer stumbles there."""
    data = bytearray(clips("h264.ts").path.read_bytes())
    starts = [place for place in range(0, len(data), 188) if data[place + 1] & 0x5F == 0x41 and data[place + 2] == 0x00]
    data[starts[4 * len(starts) // 5] + 2] = 0x10  # one frame goes to a stream of its own
    path = tmp_path / "late_stream.ts"
    path.write_bytes(data)
    with Video(path) as video:
        numbers = [number_in(frame.image) for frame in video.frames(video.index.shown_pts.tolist())]
        assert len(numbers) >= FRAMES - 2
        assert numbers[-1] == FRAMES - 1


def test_a_clip_is_what_the_tests_take_it_for(clips: Clips) -> None:
    clip: Clip = clips("h264.mp4")
    assert [number_in(card(number)) for number in range(256)] == list(range(256))
    assert [number_in(image) for _, image in linear(clip.path)] == list(range(FRAMES))


@pytest.mark.parametrize("name", ["h264.mp4", "hevc.mp4", "vp9.webm", "av1.mkv"])
def test_frames_of_a_gop_are_decoded_in_one_pass(clips: Clips, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    decoded: list[object] = []
    plain = Video._decode
    monkeypatch.setattr(Video, "_decode", lambda self, packet: decoded.append(packet) or plain(self, packet))  # type: ignore[func-returns-value]
    with Video(clips(name).path) as video:
        wanted = video.index.shown_pts[3:9:2].tolist()
        assert [frame.pts for frame in video.frames(wanted)] == wanted
        assert len(decoded) <= video.effort(wanted[-1]) + 2
