"""GIF, APNG and animated WebP: times, disposal and transparency as Pillow has them, each frame also when asked for alone."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.media import card
from tests.video.drawing import animate, hole, patch, told
from vip.errors import InputError
from vip.video import FileSource, Reader, Video, open_video, source_of
from vip.video.webp import AnimatedWebp

DURATIONS_MS = [40, 100, 30, 500, 70, 80, 20, 60, 90]
KINDS = {
    **{f"transparent disposal {number}.gif": (hole, {"disposal": number}) for number in (0, 1, 2, 3)},
    **{
        f"transparent disposal {number} blend {blend}.png": (hole, {"disposal": number, "blend": blend})
        for number in (0, 1, 2)
        for blend in (0, 1)
    },
    "transparent.webp": (hole, {"lossless": True}),
    "patches.gif": (patch, {}),
    "patches.png": (patch, {}),
    "patches.webp": (patch, {"lossless": True}),
}


@pytest.fixture(params=KINDS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    draw, options = KINDS[request.param]
    return animate(tmp_path / request.param, [draw(number) for number in range(9)], DURATIONS_MS, **options)


def opened(path: Path) -> Reader:
    return open_video(source_of(path))


def test_times_and_pictures_are_those_of_pillow(path: Path) -> None:
    starts_ms, pictures = told(path)
    with opened(path) as video:
        frames = list(video.frames(video.index.shown_pts.tolist()))
        assert video.losses == []
    assert [round(1000 * frame.time_s) for frame in frames] == starts_ms
    assert all(np.array_equal(frame.image, truth) for frame, truth in zip(frames, pictures, strict=True))


def test_each_frame_is_whole_when_asked_for_alone(path: Path) -> None:
    _, pictures = told(path)
    with opened(path) as video:
        stamps = video.index.shown_pts.tolist()
        for number in (8, 3, 5, 1):
            with video.reopen() as twin:
                for reader in (video, twin):
                    (frame,) = reader.frames([stamps[number]])
                    assert np.array_equal(frame.image, pictures[number])


def test_what_is_said_of_an_animation(path: Path) -> None:
    with opened(path) as video:
        info = video.info()
    assert (info.width_px, info.height_px) == (64, 48)
    assert info.frames == 9
    assert info.sync_frames == 1
    assert info.end_time_s == pytest.approx(sum(DURATIONS_MS[:-1]) / 1000)
    assert info.sha256
    assert info.size_bytes == path.stat().st_size


def test_a_still_gif_is_one_frame(tmp_path: Path) -> None:
    Image.fromarray(card(1, 64, 48)).save(tmp_path / "still.gif")
    with opened(tmp_path / "still.gif") as video:
        assert len(list(video.frames(video.index.shown_pts.tolist()))) == 1


# ---------------------------------------------------------------- animated WebP


@pytest.fixture
def webp(tmp_path: Path) -> Path:
    return animate(tmp_path / "a.webp", [hole(number) for number in range(6)], DURATIONS_MS[:6], lossless=True)


@pytest.mark.parametrize(
    ("kind", "flags", "is_animated"),
    [(b"VP8X", 0x02, True), (b"VP8X", 0x12, True), (b"VP8X", 0x10, False), (b"VP8 ", 0x02, False), (b"VP8L", 0x2F, False)],
)
@pytest.mark.parametrize("start", [b"RIFF", b"RIFX"])
def test_only_a_header_with_the_flag_says_that_a_webp_is_animated(
    tmp_path: Path, start: bytes, kind: bytes, flags: int, is_animated: bool
) -> None:
    path = tmp_path / "a.webp"
    path.write_bytes(start + bytes(4) + b"WEBP" + kind + bytes(4) + bytes([flags]) + bytes(20))
    assert FileSource(path).is_animated_webp() == (is_animated and start == b"RIFF")
    path.write_bytes(path.read_bytes()[:20])
    assert not FileSource(path).is_animated_webp()


def test_animated_webp_is_told_by_its_content(webp: Path, tmp_path: Path) -> None:
    (tmp_path / "named.mp4").write_bytes(webp.read_bytes())
    with opened(webp) as one, opened(tmp_path / "named.mp4") as other:
        assert isinstance(one, AnimatedWebp)
        assert isinstance(other, AnimatedWebp)


@pytest.mark.parametrize("size", [4, 5])
def test_what_stands_before_the_frames_is_passed_over_whatever_its_size(webp: Path, size: int) -> None:
    data = webp.read_bytes()
    chunk = b"ABCD" + size.to_bytes(4, "little") + bytes(size + size % 2)
    with opened(webp) as plain:
        stamps = plain.index.shown_pts.tolist()
    webp.write_bytes(data[:4] + (len(data) - 8 + len(chunk)).to_bytes(4, "little") + data[8:30] + chunk + data[30:])
    with opened(webp) as video:
        assert video.index.shown_pts.tolist() == stamps


def test_frames_of_no_duration_have_times_of_their_own(tmp_path: Path) -> None:
    path = animate(tmp_path / "a.webp", [hole(number) for number in range(4)], [0, 0, 0, 0])
    with opened(path) as video:
        assert video.index.shown_pts.tolist() == [0, 1, 2, 3]
        assert len(list(video.frames([0, 1, 2, 3]))) == 4


def test_webp_goes_back_as_well_as_forward(webp: Path) -> None:
    _, pictures = told(webp)
    with opened(webp) as video:
        stamps = video.index.shown_pts.tolist()
        for number in (5, 0, 3, 3, 1):
            (frame,) = video.frames([stamps[number]])
            assert np.array_equal(frame.image, pictures[number])


def test_of_each_window_of_a_webp_the_frame_that_is_rated_highest_is_given_and_of_equal_ones_the_first(webp: Path) -> None:
    _, pictures = told(webp)
    levels = [float(picture.mean(axis=2).astype(np.uint8).mean()) for picture in pictures]
    with opened(webp) as video:
        stamps = video.index.shown_pts.tolist()
        found = list(video.best_frames([stamps[:4], stamps[4:]], lambda grey: float(grey.mean()), longest_side_px=64))
        assert [frame.pts for frame in found] == [stamps[int(np.argmax(levels[:4]))], stamps[4 + int(np.argmax(levels[4:]))]]
        assert [frame.pts for frame in video.best_frames([stamps[1:4], stamps[4:]], lambda _: 1.0, longest_side_px=64)] == [
            stamps[1],
            stamps[4],
        ]


def test_damaged_frames_are_counted_together_by_all_twins(webp: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise InputError("a.webp is damaged.")

    with opened(webp) as video, video.reopen() as twin, twin.reopen() as another:
        first, second = video.index.shown_pts.tolist()[:2]
        assert video.losses == []
        monkeypatch.setattr("vip.video.webp.shown", broken)
        assert list(twin.frames([first])) == list(another.frames([first])) == []
        assert video.losses == twin.losses == another.losses == ["1 damaged frame was passed over."]
        assert list(video.frames([second])) == []
        assert another.losses == ["2 damaged frames were passed over."]


def test_a_part_of_an_animation(webp: Path) -> None:
    with open_video(source_of(webp), start_s=0.1, end_s=0.2) as video:
        assert video.index.shown_pts.tolist() == [140, 170]
        assert video.info().start_time_s == 0.14
    with pytest.raises(InputError, match=r"a\.webp has no frame from 0:09\.00 on: it goes from 0:00\.00 to 0:00\.74"):
        open_video(source_of(webp), start_s=9)


def test_animations_have_one_stream(webp: Path) -> None:
    with pytest.raises(InputError, match="has no video stream 1"):
        open_video(source_of(webp), stream=1)


@pytest.mark.parametrize("share", [0.02, 0.3, 0.6, 0.9, 0.99])
def test_a_webp_that_is_cut_off_is_refused_in_one_sentence_or_used_as_far_as_it_goes(webp: Path, share: float) -> None:
    data = webp.read_bytes()
    webp.write_bytes(data[: int(share * len(data))])
    with contextlib.suppress(InputError), opened(webp) as video:
        whole = {frame.pts for frame in video.frames(video.index.shown_pts.tolist())}
        assert whole < set(video.index.shown_pts.tolist())
        assert video.losses


def test_ffmpeg_reads_the_other_animations(tmp_path: Path) -> None:
    path = animate(tmp_path / "a.png", [hole(0), hole(1)], [50, 50])
    with opened(path) as video:
        assert isinstance(video, Video)
