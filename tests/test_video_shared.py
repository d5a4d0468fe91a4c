"""The real and the odd videos of ../shared: each opens, says its size and times as ffprobe does, and jumps exactly."""

from __future__ import annotations

import shutil
from fractions import Fraction
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from av.video.reformatter import VideoReformatter

from tests.media import SHARED, decoded, ffprobe
from vip.pixels import Turn, to_image, turn_of
from vip.video import Video
from vip.video.container import ALPHA_DECODERS

REAL, ODD = (sorted((SHARED / folder).glob("*.*")) for folder in ("real", "odd"))
NEAR_THE_START = 80  # frames that the test decodes itself
SIDE_PX = 320
UPRIGHT = {
    "rotated_metadata.mp4": (544, 1280),
    "non_square_pixels.mp4": (1024, 576),
    "clip_b.mp4": (480, 640),
    "tiny_176x144.mp4": (193, 144),
}
DAMAGED = frozenset({"corrupted.mp4", "codec_error.mp4"})

pytestmark = pytest.mark.skipif(not SHARED.is_dir(), reason="the real videos are not here")


def by_name(path: Path) -> str:
    return path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", [*REAL, *ODD], ids=by_name)
def test_frames_are_those_of_plain_decoding(path: Path) -> None:
    """Sync frames and others near the start, each alone and in a jumble."""
    with Video(path) as video:
        shown = video.index.shown_pts
        reach = shown[min(len(shown) - 1, NEAR_THE_START)]
        near = shown[shown <= reach]
        wanted = sorted({int(near[place]) for place in (0, len(near) // 3, -8 if len(near) > 8 else -1)} | {int(video.index.sync_pts[-1])})
        chosen = {frame.pts: frame.image for stamp in reversed(wanted) for frame in video.frames([stamp], longest_side_px=SIDE_PX)}
        together = list(video.frames(wanted, longest_side_px=SIDE_PX))
        assert sorted(chosen) == wanted
        assert [frame.pts for frame in together] == wanted
        assert all(np.array_equal(frame.image, chosen[frame.pts]) for frame in together)
        for frame in together:
            assert max(frame.image.shape) == SIDE_PX
        aspect = video.pixel_aspect
    stream_decoder = ALPHA_DECODERS["vp9"] if path.name == "transparent.webm" else None
    turn: Turn | None = None
    compared = 0
    for frame in islice(decoded(path, stream_decoder), len(near)):
        turn = turn_of(frame) if turn is None else turn
        if frame.pts in chosen:
            truth = to_image(frame, aspect, turn, VideoReformatter(), longest_side_px=SIDE_PX)
            assert np.array_equal(chosen[frame.pts], truth)
            compared += 1
    assert compared >= len([stamp for stamp in wanted if stamp <= reach]) - (path.name in DAMAGED)


@pytest.mark.parametrize("path", [*REAL, *ODD], ids=by_name)
def test_it_says_what_a_user_needs_to_know(path: Path) -> None:
    with Video(path) as video:
        info = video.info()
        assert info.frames == len(video.index.shown_pts) > 20
        assert info.sync_frames >= 1
        assert info.start_time_s < info.end_time_s
        assert (info.width_px, info.height_px) == UPRIGHT.get(path.name, (info.width_px, info.height_px))
        frame = next(video.frames(video.index.sync_pts.tolist()))
        assert frame.image.shape == (info.height_px, info.width_px, 3)
        assert path.name in DAMAGED or video.losses == []


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ffprobe") is None, reason="the program ffprobe is not here")
@pytest.mark.parametrize("path", [*REAL, *ODD], ids=by_name)
def test_times_and_sizes_are_those_of_ffprobe(path: Path) -> None:
    said = ffprobe(path, "packet=pts,flags:stream=width,height,sample_aspect_ratio,time_base:stream_side_data=rotation")
    stream = said["streams"][0]
    theirs = sorted(packet["pts"] for packet in said["packets"] if "D" not in packet["flags"])
    aspect = Fraction(stream.get("sample_aspect_ratio", "1:1").replace(":", "/"))
    width, height = stream["width"], stream["height"]
    width, height = (round(width * aspect), height) if aspect > 1 else (width, round(height / aspect))
    turned = next((data["rotation"] for data in stream.get("side_data_list", []) if "rotation" in data), 0) % 180
    with Video(path) as video:
        assert video.time_base == Fraction(stream["time_base"])
        assert video.index.shown_pts.tolist() == theirs
        info = video.info()
        assert (info.width_px, info.height_px) == ((height, width) if turned else (width, height))
