"""Which of several video streams is read, and sizes that no memory could hold."""

from __future__ import annotations

import errno
import struct
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import av
import av.error
import pytest
from av.codec.context import ThreadType
from av.stream import Disposition
from av.video.frame import VideoFrame

from tests.media import Clips, card, number_in, write
from vip.errors import InputError
from vip.video import Video
from vip.video.container import decoder_of, open_container, pixel_aspect_of, single_file_options
from vip.video.local import Local, LocalFile
from vip.video.size import MOST_PIXELS, check_size
from vip.video.source import FileSource


def streams(path: Path) -> Path:
    """Two videos in one file, the pictures of the second 100 further on and smaller; in MP4 with a cover picture."""
    with av.open(str(path), "w") as output:
        videos: list[Any] = []
        for width, language in ((160, "deu"), (128, None)):
            stream: Any = output.add_stream("libx264", rate=25, options={"g": "5"})
            stream.width, stream.height, stream.pix_fmt = width, 96, "yuv420p"
            stream.codec_context.time_base = Fraction(1, 25)
            if language:
                stream.metadata["language"] = language
            videos.append(stream)
        if path.suffix == ".mp4":
            cover: Any = output.add_stream("png", rate=1)
            cover.width, cover.height, cover.pix_fmt = 32, 24, "rgb24"
            cover.disposition = Disposition.attached_pic
            output.mux(cover.encode(VideoFrame.from_ndarray(card(0, 32, 24), format="rgb24")))
            output.mux(cover.encode(None))
        for number in range(12):
            for which, stream in enumerate(videos):
                frame = VideoFrame.from_ndarray(card(number + 100 * which, stream.width, 96), format="rgb24").reformat(format="yuv420p")
                frame.pts, frame.time_base = number, Fraction(1, 25)
                output.mux(stream.encode(frame))
        for stream in videos:
            output.mux(stream.encode(None))
    return path


@pytest.mark.parametrize("suffix", ["mkv", "mp4"])
@pytest.mark.parametrize(("which", "width", "first"), [(0, 160, 0), (1, 128, 100)])
def test_a_stream_is_chosen_by_its_number_without_covers(tmp_path: Path, suffix: str, which: int, width: int, first: int) -> None:
    with Video(streams(tmp_path / f"a.{suffix}"), stream=which) as video, video.reopen() as twin:
        frames = list(twin.frames(video.index.shown_pts.tolist()))
        assert video.info().width_px == width
    assert [number_in(frame.image) for frame in frames] == list(range(first, first + 12))


def test_a_stream_that_is_not_there_is_refused_with_those_that_are(tmp_path: Path) -> None:
    path = streams(tmp_path / "a.mkv")
    with pytest.raises(InputError) as raised:
        Video(path, stream=2)
    listed = "0: h264 160x96 (deu); 1: h264 128x96"
    assert str(raised.value) == f"{path} has no video stream 2. Choose with --stream among: {listed}."


@pytest.mark.parametrize(
    ("stated", "used"),
    [
        *[
            (Fraction(4, 3), Fraction(4, 3)),
            (Fraction(1, 2), Fraction(1, 2)),
            (Fraction(16), Fraction(16)),
            (Fraction(1, 16), Fraction(1, 16)),
        ],
        *[(Fraction(17), 1), (Fraction(1, 17), 1), (Fraction(1, 1000), 1), (Fraction(0), 1), (None, 1)],
    ],
)
def test_an_absurd_shape_of_pixels_is_damage(stated: Fraction | None, used: Fraction) -> None:
    stream: Any = SimpleNamespace(sample_aspect_ratio=stated)
    assert pixel_aspect_of(stream) == used


@pytest.mark.parametrize(
    ("codec", "tags", "decoder"),
    [
        ("vp9", {"alpha_mode": "1"}, "libvpx-vp9"),
        ("vp9", {"ALPHA_MODE": "1"}, "libvpx-vp9"),
        ("vp8", {"Alpha_Mode": "1"}, "libvpx"),
        ("vp9", {"alpha_mode": "0"}, "vp9"),
        ("vp9", {}, "vp9"),
        ("h264", {"alpha_mode": "1"}, "h264"),
    ],
)
def test_where_there_is_alpha_a_decoder_is_taken_that_knows_it(codec: str, tags: dict[str, str], decoder: str) -> None:
    stream: Any = SimpleNamespace(metadata=tags, codec_context=av.CodecContext.create(codec, "r"))
    assert decoder_of(stream, 1).name == decoder


@pytest.mark.parametrize(
    ("codec", "threads", "used", "explodes"),
    [("h264", 1, 1, False), ("h264", 3, 3, True), ("h264", 0, 0, True), ("vp8", 3, 1, False), ("apng", 3, 1, False), ("vp9", 3, 3, True)],
)
def test_a_decoder_that_hides_damage_works_alone_and_others_say_it(codec: str, threads: int, used: int, explodes: bool) -> None:
    stream: Any = SimpleNamespace(metadata={}, codec_context=av.CodecContext.create(codec, "r"))
    decoder = decoder_of(stream, threads)
    assert (decoder.thread_count, decoder.thread_type == ThreadType.NONE) == (used, used == 1)
    assert decoder.options == {"max_pixels": str(MOST_PIXELS), **({"err_detect": "explode"} if explodes else {})}


# ---------------------------------------------------------------- absurd sizes


@pytest.mark.parametrize("size", [(7680, 4320), (8192, 8192), (16_320, 12_240), (16_384, 16_384)])
def test_sizes_of_real_cameras_are_read(size: tuple[int, int]) -> None:
    check_size("x", *size)
    assert size[0] * size[1] <= MOST_PIXELS


@pytest.mark.parametrize(("size", "aspect"), [((30_000, 30_000), 1), ((65_535, 65_535), 1), ((16_384, 16_385), 1), ((7680, 4320), 9)])
def test_larger_ones_are_refused_also_where_stretching_makes_them_so(size: tuple[int, int], aspect: int) -> None:
    for ratio in (Fraction(aspect), 1 / Fraction(aspect)):
        with pytest.raises(InputError, match=r"x claims pictures of \d+x\d+ pixels.*vip reads up to 268 million pixels"):
            check_size("x", *size, ratio)


def enlarged(clips: Clips, name: str, target: Path) -> Path:
    """A copy of the file with an absurd size in its header."""
    data = bytearray(clips(name).path.read_bytes())
    if name.endswith(".gif"):
        data[6:10] = struct.pack("<HH", 65_535, 65_535)
    else:
        place = data.index(b"strf") + 12
        assert data[place : place + 8] == struct.pack("<ii", 160, 120)
        data[place : place + 8] = struct.pack("<ii", 30_000, 30_000)
    target.write_bytes(data)
    return target


@pytest.mark.parametrize("name", ["gif.gif", "rawvideo.avi", "mjpeg.avi"])
def test_a_header_that_claims_an_absurd_size(clips: Clips, tmp_path: Path, name: str) -> None:
    path = enlarged(clips, name, tmp_path / name)
    if name == "mjpeg.avi":  # the pictures say themselves how large they are
        with Video(path) as video:
            assert video.info().width_px == 160
        return
    with pytest.raises(InputError) as raised:
        Video(path)
    assert str(raised.value).startswith(f"{path} states no size of its pictures, or one beyond the 268 million pixels that vip reads")


@pytest.mark.slow
def test_a_stream_that_grows_in_its_midst_is_read_up_to_there(clips: Clips, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The decoder itself refuses: the header states the small size."""
    large = write(tmp_path / "large.ts", picture=lambda number: card(number + 40, 320, 240), ticks=range(50, 90)).path
    (tmp_path / "a.ts").write_bytes(clips("h264.ts").path.read_bytes() + large.read_bytes())
    with Video(tmp_path / "a.ts") as video:
        numbers = [number_in(frame.image) for frame in video.frames(video.index.shown_pts.tolist())]
    assert numbers == list(range(80))
    monkeypatch.setattr("vip.video.container.MOST_PIXELS", 200 * 200)
    with Video(tmp_path / "a.ts") as video:
        numbers = [number_in(frame.image) for frame in video.frames(video.index.shown_pts.tolist())]
        assert video.losses == ["40 damaged frames were passed over."]
    assert numbers == list(range(40))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(errno.EACCES, "Permission denied"), "may not be read (permission denied)."),
        (OSError(errno.EIO, "Input/output error"), "cannot be read: Input/output error."),
        (
            av.error.InvalidDataError(1, "Invalid data found"),
            "is not a video that FFmpeg can read (Invalid data found). Is it damaged or incomplete?",
        ),
    ],
)
@pytest.mark.parametrize("at", ["open", "read"])
def test_what_the_disk_says_is_one_sentence_and_what_was_opened_is_closed(
    error: OSError, said: str, at: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.mp4").write_bytes(bytes(1000))
    closed: list[LocalFile] = []
    plain = LocalFile.close

    def close(file: LocalFile) -> None:
        closed.append(file)
        plain(file)

    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(LocalFile, "close", close)
    monkeypatch.setattr(Local if at == "open" else LocalFile, at, fail)
    with pytest.raises(InputError) as caught:
        open_container(Local(FileSource(tmp_path / "a.mp4")))
    assert str(caught.value) == f"{tmp_path / 'a.mp4'} {said}"
    assert len(closed) >= (at == "read")


def test_no_format_that_names_other_files_is_read() -> None:
    """FFmpeg would open them, whoever wrote the file."""
    known = set(single_file_options()["format_whitelist"].split(","))
    assert known >= {"mov", "mp4", "matroska", "webm", "avi", "mpegts", "gif", "apng"}
    assert known.isdisjoint({"hls", "applehttp", "concat", "dash", "imf", "sdp", "rtp", "rtsp", "sap", "vobsub"})
    assert single_file_options()["protocol_whitelist"] == "file"
