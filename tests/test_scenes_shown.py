"""Every scene once and none in a bad state: what a user gets of clearly different scenes, whatever the codec and its sync frames."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import pytest

import vip
from tests.extraction.films import ENCODERS, Shot, film

FADE_S, BLACK_S = 0.6, 0.4
SHOTS = (Shot(0, 2), Shot(1, 2), Shot(2, 2, fade_s=FADE_S), Shot(3, 2), Shot(4, 2, black_s=BLACK_S), Shot(5, 2))
OTHERS = (Shot(2, 2, black_s=BLACK_S), Shot(3, 1.6), Shot(1, 2.4), Shot(4, 2, fade_s=FADE_S), Shot(5, 1.6), Shot(0, 2.4))
SHOWS_THROUGH = 0.2  # of the shot before, from which on a frame is a mixture of two


@pytest.mark.slow
@pytest.mark.parametrize("encoder", ENCODERS)
@pytest.mark.parametrize("shots", [SHOTS, OTHERS], ids=["fade, then black", "black, then fade"])
def test_of_six_scenes_six_keyframes_show_each_once_and_none_is_black_or_mixed(
    shots: tuple[Shot, ...], encoder: str, tmp_path: Path
) -> None:
    path = film(tmp_path / ("a.webm" if encoder == "VP9" else "a.mp4"), shots, encoder).path
    run = vip.extract(path, out=tmp_path / "run", keyframes=len(shots))
    times_s = [keyframe.time_s or 0.0 for keyframe in run.keyframes]
    edges = pairwise(accumulate((shot.seconds for shot in shots), initial=0.0))
    for (begin_s, end_s), shot in zip(edges, shots, strict=True):
        (shown_s,) = [time_s for time_s in times_s if begin_s - 1e-3 <= time_s < end_s - 1e-3]
        assert shown_s - begin_s >= max((1 - SHOWS_THROUGH) * shot.fade_s, shot.black_s) - 1e-3
    assert run.notes == ()
