"""Where a candidate is bad, a good frame of the same shot stands in for it; never one of another shot."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import TIME_BASE, analysis, picture
from tests.extraction.indices import steady
from tests.media import Clip, write
from vip.extraction import substitutes
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer, analyze
from vip.extraction.bad_frames import bad_frames
from vip.extraction.quality import references, verdict
from vip.extraction.substitutes import FURTHEST_S, find_substitutes
from vip.models.classic import ClassicEmbedder
from vip.protocols import DetectorCapabilities
from vip.records import Detection, Image
from vip.video import Video

RATE, SHOT = 25, 50  # frames a second, frames a shot
EVERY = 10  # frames between two probes


class NoDetector:
    name = "none"
    capabilities = DetectorCapabilities()

    def detect(self, images: Sequence[Image], where: object = ()) -> list[list[Detection] | None]:
        return [[] for _ in images]


CLASSIC = ClassicEmbedder(None)
LOOKER = FrameAnalyzer(CLASSIC, CLASSIC, NoDetector())


def small(image: Image) -> Image:
    return np.asarray(cv2.resize(image, (320, 180), interpolation=cv2.INTER_AREA), np.uint8)


def textured(seed: int) -> Image:
    """A scene with fine grain, which blur takes away, and with a dark side, which it does not."""
    grain = np.random.default_rng(seed).normal(0, 12, (180, 320, 1))
    light = np.linspace(0.2, 1.2, 320)[None, :, None]
    return np.clip(small(picture(seed)) * light + grain, 0, 255).astype(np.uint8)


def blurred(image: Image, sigma: float) -> Image:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), sigma), np.uint8) if sigma > 0 else image


BLACK = np.zeros((180, 320, 3), np.uint8)
SCENES = [textured(seed) for seed in range(5)]


def film(path: Path, middle: Callable[[int], Image], shots: int = 3) -> Clip:
    """Shots of two seconds, each beginning with a sync frame; the last but one shows what `middle` says."""

    def show(number: int) -> Image:
        shot, frame = divmod(number, SHOT)
        return middle(frame) if shot == shots - 2 else SCENES[shot]

    return write(path, frames=shots * SHOT, gop=SHOT, rate=RATE, picture=show, options={"crf": "8", "x264-params": "scenecut=0"})


def stand_ins(path: Path, wanted: Sequence[int] | None = None) -> tuple[list[FrameAnalysis], list[FrameAnalysis], int]:
    """Candidates (by default the sync frames), what stands in for the bad ones, and how often progress was told."""
    told: list[None] = []
    with Video(path) as video:
        stamps = video.index.sync_pts if wanted is None else video.index.shown_pts[list(wanted)]
        analyses = analyze(video, stamps.tolist(), LOOKER, advance=lambda: None)
        reference = reference_of(analyses)
        bad = [index for index, analysis in enumerate(analyses) if verdict(analysis.measured, reference[index])]
        assert bad, "else there is nothing to look for"
        return analyses, find_substitutes(video, analyses, bad, reference, LOOKER, advance=lambda: told.append(None)), len(told)


def reference_of(analyses: Sequence[FrameAnalysis]) -> list[float]:
    return references([analysis.measured for analysis in analyses], [analysis.time_s for analysis in analyses])


def focus_pull(frame: int) -> Image:
    return blurred(SCENES[1], max(0.0, 24 - 1.2 * frame))


@pytest.mark.slow
def test_a_focus_pull_gives_its_sharp_end(tmp_path: Path) -> None:
    analyses, (found,), told = stand_ins(film(tmp_path / "a.mp4", focus_pull).path)
    assert found.stands_in_for == analyses[1].pts
    assert 0.5 < found.time_s - analyses[1].time_s <= FURTHEST_S + 0.2
    assert found.pts < analyses[2].pts
    assert found.measured.quality.sharpness > 0.5 * analyses[0].measured.quality.sharpness
    assert verdict(found.measured, analyses[0].measured.quality.sharpness) is None
    assert told == 1


@pytest.mark.slow
@pytest.mark.parametrize("dark", [3, 12, 25])
def test_a_shot_that_starts_black_is_represented_by_what_comes(tmp_path: Path, dark: int) -> None:
    analyses, (found,), _ = stand_ins(film(tmp_path / "a.mp4", lambda frame: BLACK if frame < dark else SCENES[1]).path)
    assert found.stands_in_for == analyses[1].pts
    assert dark / RATE <= found.time_s - analyses[1].time_s <= dark / RATE + 3 * EVERY / RATE
    assert verdict(found.measured, 0) is None


@pytest.mark.slow
def test_nothing_stands_in_for_a_shot_that_shows_nothing(tmp_path: Path) -> None:
    analyses, found, _ = stand_ins(film(tmp_path / "a.mp4", lambda _: BLACK).path)
    assert found == [], "the next shot has a candidate of its own"
    assert len(analyses) == 3


@pytest.mark.slow
@pytest.mark.parametrize("following", [SHOT + 10, SHOT + 25, SHOT + 37])
def test_nothing_is_sought_where_another_candidate_comes_soon(tmp_path: Path, given_packets: list[int | None], following: int) -> None:
    path = film(tmp_path / "a.mp4", lambda frame: BLACK if frame < 10 else SCENES[1]).path
    with Video(path) as video:
        analyses = analyze(video, video.index.shown_pts[[0, SHOT, following, 2 * SHOT]].tolist(), LOOKER, advance=lambda: None)
        reference = reference_of(analyses)
        given_packets.clear()
        assert find_substitutes(video, analyses, [1], reference, LOOKER, advance=lambda: None) == []
        assert given_packets == []
        reaching = [analyses[0], analyses[1], analyses[3]]
        assert find_substitutes(video, reaching, [1], reference, LOOKER, advance=lambda: None)


@pytest.mark.slow
@pytest.mark.parametrize(("packets", "sought"), [(SHOT, False), (SHOT + 1, True)])
def test_nothing_is_sought_where_decoding_so_far_is_too_dear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given_packets: list[int | None], packets: int, sought: bool
) -> None:
    path = write(
        tmp_path / "a.mp4", frames=2 * SHOT, gop=1000, picture=lambda number: BLACK if SHOT <= number < SHOT + 10 else SCENES[0],
        options={"bf": "0", "x264-params": "scenecut=0"},
    ).path  # fmt: skip
    monkeypatch.setattr(substitutes, "FARTHEST_PACKETS", packets)
    with Video(path) as video:
        analyses = analyze(video, video.index.shown_pts[[0, SHOT]].tolist(), LOOKER, advance=lambda: None)
        assert video.effort(analyses[1].pts) == SHOT + 1
        given_packets.clear()
        found = find_substitutes(video, analyses, [1], reference_of(analyses), LOOKER, advance=lambda: None)
    assert bool(found) == bool(given_packets) == sought


@pytest.mark.slow
def test_what_comes_after_a_second_and_a_half_is_another_story(tmp_path: Path) -> None:
    late = round(1.7 * RATE)
    _, found, _ = stand_ins(film(tmp_path / "a.mp4", lambda frame: BLACK if frame < late else SCENES[1]).path)
    assert found == []


@pytest.mark.slow
@pytest.mark.parametrize(("soft_frames", "other"), [(60, None), (51, 2), (57, 2)])
def test_a_soft_picture_that_lasts_for_two_seconds_is_smooth_and_has_two_candidates(
    tmp_path: Path, soft_frames: int, other: int | None
) -> None:
    """Cells, fog, a chart: nothing good is behind it, but the same picture more than two seconds later."""

    def show(number: int) -> Image:
        shot, frame = divmod(number, 60)
        seed = other if shot == 1 and frame >= soft_frames else shot
        return SCENES[shot] if shot != 1 else blurred(SCENES[1 if seed is None else seed], 24)

    path = write(
        tmp_path / "a.mp4", frames=180, gop=60, rate=RATE, picture=show, options={"crf": "8", "x264-params": "scenecut=0"}
    ).path  # fmt: skip
    analyses, found, told = stand_ins(path)
    assert told == 1
    lasts = other is None or soft_frames > 51
    assert [51 <= (one.time_s - analyses[1].time_s) * RATE < 57 for one in found] == [True] * lasts, "or soon behind it"
    assert all(one.stands_in_for is None for one in found)
    assert set(bad_frames(sorted([*analyses, *found], key=lambda one: one.pts), None)) == (set() if lasts else {1})


@pytest.mark.slow
def test_a_soft_picture_that_lasts_but_is_too_expensive_to_decode_stays_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.extraction.substitutes.FARTHEST_PACKETS", 51)
    path = write(
        tmp_path / "a.mp4",
        frames=180,
        gop=60,
        rate=RATE,
        picture=lambda number: blurred(SCENES[1], 24) if 60 <= number < 120 else SCENES[number // 60],
        options={"crf": "8", "x264-params": "scenecut=0"},
    ).path
    assert stand_ins(path)[1] == []


@pytest.mark.slow
def test_of_several_bad_candidates_in_a_row_the_last_looks_on(tmp_path: Path) -> None:
    path = film(tmp_path / "a.mp4", lambda frame: BLACK if frame < 30 else SCENES[1]).path
    analyses, (found,), told = stand_ins(path, [0, SHOT, SHOT + 5, SHOT + 10, 2 * SHOT])
    assert found.stands_in_for == analyses[3].pts
    assert found.time_s >= (SHOT + 30) / RATE
    assert told == 3


@pytest.mark.slow
def test_a_bad_candidate_at_the_end_of_the_file_has_nothing_behind_it(tmp_path: Path) -> None:
    path = write(tmp_path / "a.mp4", frames=SHOT, gop=SHOT, picture=lambda number: BLACK if number > 40 else SCENES[0]).path
    assert stand_ins(path, [0, 42])[1] == []
    analyses, found, told = stand_ins(path, [0, SHOT - 1])
    assert (len(analyses), found, told) == (2, [], 1)


@pytest.mark.slow
@pytest.mark.parametrize("cores", [1, 2, 5])
def test_the_stand_ins_do_not_depend_on_the_number_of_workers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int) -> None:
    path = film(tmp_path / "a.mp4", focus_pull, shots=5).path
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    alone = stand_ins(path)[1]
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    together = stand_ins(path)[1]
    assert [analysis.pts for analysis in together] == [analysis.pts for analysis in alone]
    assert [analysis.measured for analysis in together] == [analysis.measured for analysis in alone]
    assert len(alone) == 1


@pytest.mark.slow
def test_decoding_stops_soon_behind_the_first_good_frame(tmp_path: Path, given_packets: list[int | None]) -> None:
    path = film(tmp_path / "a.mp4", lambda frame: BLACK if frame < 3 else SCENES[1]).path
    with Video(path) as video:
        analyses = analyze(video, video.index.sync_pts.tolist(), LOOKER, advance=lambda: None)
        given_packets.clear()
        assert find_substitutes(video, analyses, [1], reference_of(analyses), LOOKER, advance=lambda: None)
    assert len(given_packets) <= 32, "the good frame, two behind it, and what the decoder and its threads hold back, of 50"


# ---------------------------------------------------------------- where they are sought


def probes(
    following_s: float | None = None, *, is_bad: bool = False, goes_on: bool = True, is_alike: bool = True, effort: int = 1
) -> list[float]:
    """The seconds at which a good frame is sought behind a bad one at 1 s, of a video of 5 s."""
    bad = analysis(1000)
    others = [] if following_s is None else [analysis(round(1000 * following_s), **({"signature": bad.signature} if is_alike else {}))]
    video: Any = SimpleNamespace(index=steady(5), time_base=TIME_BASE, effort=lambda pts: effort)
    activity: Any = SimpleNamespace(goes_on=lambda pts: goes_on)
    found = substitutes._probes(video, activity, [bad, *others], 0, {0, 1} if is_bad else {0})
    return [pts / 1000 for pts in found]


STEPS = [1.2, 1.4, 1.6, 1.8, 2.0, 2.2, 2.4, 2.6]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({}, STEPS),
        ({"following_s": 2.48}, []),
        ({"following_s": 2.52}, []),
        ({"following_s": 2.52, "goes_on": False}, STEPS[:-1]),
        ({"following_s": 2.52, "is_bad": True}, STEPS[:-1]),
        ({"following_s": 2.52, "is_alike": False}, STEPS[:-1]),
        ({"following_s": 4.0, "goes_on": False}, STEPS),
        ({"effort": substitutes.FARTHEST_PACKETS}, STEPS),
        ({"effort": substitutes.FARTHEST_PACKETS + 1}, []),
    ],
)
def test_a_good_frame_is_sought_where_no_other_candidate_shows_the_shot_and_it_costs_little(
    given: dict[str, Any], found: list[float]
) -> None:
    assert probes(**given) == pytest.approx(found)
