"""The one way in: which reader a source gets, and that each is told of the stream and of the part that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.media import Clips, card
from tests.video.drawing import animate, hole, write
from vip.errors import InputError
from vip.video import Video, open_video, source_of
from vip.video.pictures import Pictures
from vip.video.webp import AnimatedWebp

KINDS: dict[str, type] = {"file": Video, "animation": AnimatedWebp, "pictures": Pictures}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(kind: str, clips: Clips, tmp_path: Path) -> Path:
    """Frames at 0, 1, 2 … s, or more often."""
    if kind == "file":
        return clips("h264.mp4").path
    if kind == "animation":
        return animate(tmp_path / "a.webp", [hole(number) for number in range(4)], [1000] * 4, lossless=True)
    for number in range(4):
        write(tmp_path / "frames" / f"{number}.png", card(number, 64, 48))
    return tmp_path / "frames"


@pytest.mark.parametrize(
    ("part", "first_s", "last_s"), [({"start_s": 1.0}, 1.0, None), ({"end_s": 1.0}, 0.0, 1.0), ({"start_s": 1.0, "end_s": 1.0}, 1.0, 1.0)]
)
def test_a_part_is_that_part_whatever_the_video_is_made_of(
    kind: str, path: Path, part: dict[str, Any], first_s: float, last_s: float | None
) -> None:
    with open_video(source_of(path)) as whole, open_video(source_of(path), **part) as video:
        assert type(whole) is type(video) is KINDS[kind]
        stamps = [stamp for stamp in whole.index.shown_pts.tolist() if first_s <= stamp * whole.time_base <= (last_s or 100)]
        assert 0 < len(stamps) < len(whole.index.shown_pts)
        assert video.index.shown_pts.tolist() == stamps


def test_a_stream_that_is_not_there_is_missed_whatever_the_video_is_made_of(path: Path) -> None:
    with pytest.raises(InputError, match="has no video stream 1"):
        open_video(source_of(path), stream=1)
