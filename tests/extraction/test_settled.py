"""Behind a doubtful frame the sharpest settled one of the same shot is found: not in a dissolve, nor behind a cut, nor too deep."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import TIME_BASE, analysis
from tests.extraction.indices import at, steady
from tests.extraction.test_substitutes import BLACK, LOOKER, SCENES, blurred
from tests.media import Clip, write
from vip.extraction.analyze import FrameAnalysis, mark_transitions, signature_of
from vip.extraction.settled import (
    MOST_PACKETS,
    MOST_PACKETS_WHERE_EXPENSIVE,
    SETTLED_AFTER_S,
    SETTLED_WITHIN_S,
    _changes,
    _pts_behind,
    _settled,
    find_settled,
)
from vip.records import Frame, Image
from vip.video import Video

STEPS = 13


def mixed(share: float, image: Image, before: Image) -> Image:
    share = min(1.0, max(0.0, share))
    return np.asarray(cv2.addWeighted(image, share, before, 1 - share, 0), np.uint8)


def panned(image: Image, pixels: int) -> Image:
    return np.ascontiguousarray(np.roll(image, -pixels, axis=1))


def signatures(show: Callable[[int], Image], count: int = STEPS + 1) -> np.ndarray:
    return np.stack([signature_of(show(number)) for number in range(count)])


# ---------------------------------------------------------------- dissolves and cuts


@pytest.mark.parametrize("steps", [2, 4, 6])
def test_pictures_that_dissolve_differ_in_parallel_until_the_dissolve_is_over(steps: int) -> None:
    dissolves, cuts = _changes(signatures(lambda number: mixed(number / steps, SCENES[1], SCENES[0])))
    assert dissolves.tolist() == [True] * (steps - 1) + [False] * (STEPS - steps + 1), "the last step is parallel to none behind it"
    assert not cuts[steps:].any()


def test_the_last_step_dissolves_where_it_is_parallel_to_the_one_before() -> None:
    """Nothing behind it tells that the dissolve is over."""
    dissolves, _ = _changes(signatures(lambda number: mixed((number - 8) / 8, SCENES[1], SCENES[0])))
    assert dissolves.tolist() == [False] * 8 + [True] * 5


@pytest.mark.parametrize("pixels", [12, 25, 40])
def test_a_picture_that_moves_does_not_dissolve(pixels: int) -> None:
    """By a cell of the signature or more: by less, what changes is parallel as in a dissolve."""
    dissolves, cuts = _changes(signatures(lambda number: panned(SCENES[0], pixels * number)))
    assert not dissolves.any()
    assert not cuts.any()


def test_a_dissolve_is_seen_also_where_both_pictures_move_slowly() -> None:
    show = lambda number: mixed(number / 5, panned(SCENES[1], number), panned(SCENES[0], number))  # noqa: E731
    assert _changes(signatures(show))[0][:4].all()


def test_coding_noise_and_a_still_picture_are_neither() -> None:
    noise = np.random.default_rng(0).integers(-1, 2, (STEPS + 1, 18, 32, 3))
    still = signature_of(SCENES[0]).astype(np.int64)
    for pictures in (np.repeat(still[None], STEPS + 1, axis=0), np.clip(still + noise, 0, 255)):
        assert not np.any(_changes(pictures.astype(np.uint8)))


@pytest.mark.parametrize("place", [0, 5, 12])
def test_a_cut_is_one_step_far_larger_than_the_usual_one(place: int) -> None:
    _, cuts = _changes(signatures(lambda number: panned(SCENES[number > place], 3 * number)))
    assert cuts.tolist() == [number == place for number in range(STEPS)]


def test_a_step_to_another_picture_that_differs_little_is_no_cut() -> None:
    dark = (SCENES[0] * 0.05).astype(np.uint8)
    assert not np.any(_changes(signatures(lambda number: dark if number < 5 else dark // 2))[1])


def test_of_two_pictures_nothing_can_be_said_but_whether_they_differ() -> None:
    assert [flags.tolist() for flags in _changes(signatures(lambda number: SCENES[number], 2))] == [[False], [False]]
    assert [flags.tolist() for flags in _changes(signatures(lambda _: SCENES[0], 2))] == [[False], [False]]


# ---------------------------------------------------------------- which frame is taken


def chosen(show: Callable[[float], Image], *, steps: int = STEPS, sharpness: float | None = None) -> float | None:
    """Seconds from the doubtful frame, which is the first, to the one that is found behind it; `show` gets seconds."""
    before = LOOKER(Frame(0, TIME_BASE, show(0.0)))
    if sharpness is not None:
        quality = before.measured.quality.model_copy(update={"sharpness": sharpness})
        before = replace(before, measured=replace(before.measured, quality=quality))
    frames = [Frame(100 * step, TIME_BASE, show(step / 10)) for step in range(1, steps + 1)]
    found = _settled(before, frames, LOOKER)
    return None if found is None else found.time_s


def with_sharpest(image: Image, second: float, sharpest_s: float) -> Image:
    """The picture as sharp as it can be at one time, and softer at all others."""
    return image if abs(second - sharpest_s) < 0.01 else blurred(image, 0.6)


@pytest.mark.parametrize("sharpest_s", [0.4, 0.8, 1.3])
def test_behind_a_dissolve_the_sharpest_frame_of_the_new_shot_is_taken(sharpest_s: float) -> None:
    def show(second: float) -> Image:
        return mixed(0.4 + second / 0.5, with_sharpest(SCENES[1], second, sharpest_s), SCENES[0])

    assert chosen(show) == sharpest_s


@pytest.mark.parametrize("sharpest_s", [0.1, 0.2, 0.3])
def test_nothing_is_taken_so_soon_that_the_shot_may_not_have_settled(sharpest_s: float) -> None:
    assert sharpest_s < SETTLED_AFTER_S
    found = chosen(lambda second: with_sharpest(SCENES[0], second, sharpest_s))
    assert found is not None
    assert found > SETTLED_AFTER_S


def test_a_sharp_frame_inside_the_dissolve_is_not_taken() -> None:
    """Where two pictures lie over each other there is more to see than in either."""

    def show(second: float) -> Image:
        image = mixed(second / 0.6, blurred(SCENES[1], 1.0), blurred(SCENES[0], 1.0))
        return np.clip(image + np.random.default_rng(0).normal(0, 8, image.shape), 0, 255).astype(np.uint8) if second < 0.55 else image

    found = chosen(show)
    assert found is not None
    assert found >= 0.6


@pytest.mark.parametrize("begin_s", [0.75, 0.95])
def test_a_dissolve_that_goes_on_behind_the_last_frame_holds_no_settled_one(begin_s: float) -> None:
    """Also where each of its pictures is sharper than those before."""

    def show(second: float) -> Image:
        return mixed((second - begin_s) / 0.8, SCENES[1], blurred(SCENES[0], 0.8))

    found = chosen(show)
    assert found is not None
    assert SETTLED_AFTER_S < found < begin_s


@pytest.mark.parametrize("cut_s", [0.9, 1.2])
def test_a_hard_cut_behind_a_dissolve_ends_the_search_too(cut_s: float) -> None:
    def show(second: float) -> Image:
        return SCENES[2] if second > cut_s - 0.01 else mixed(0.4 + second / 0.5, blurred(SCENES[1], 0.8), SCENES[0])

    found = chosen(show)
    assert found is not None
    assert SETTLED_AFTER_S < found < cut_s - 0.01


@pytest.mark.parametrize(("cut_s", "last_s"), [(0.6, 0.5), (1.0, 0.9)])
def test_a_hard_cut_ends_the_search(cut_s: float, last_s: float) -> None:
    def show(second: float) -> Image:
        return panned(SCENES[2] if second > cut_s - 0.01 else with_sharpest(SCENES[0], second, last_s), round(10 * second))

    assert chosen(show) == last_s


def test_a_cut_before_anything_has_settled_leaves_nothing() -> None:
    assert chosen(lambda second: SCENES[2] if second > 0.25 else blurred(SCENES[0], 3)) is None


def test_of_another_view_nothing_is_taken_unless_it_dissolves_into_that_or_is_far_sharper() -> None:
    """A quick turn of the camera: neither a cut nor a dissolve."""

    def show(second: float) -> Image:
        wide = np.concatenate([SCENES[number] for number in (0, 3, 2, 1)], axis=1)
        left = round(600 * second)
        return np.ascontiguousarray(wide[:, left : left + 320])

    assert chosen(show) is None
    found = chosen(show, sharpness=1.0)
    assert found is not None
    assert found > SETTLED_AFTER_S


def test_frames_that_show_nothing_are_not_taken() -> None:
    assert chosen(lambda second: mixed(second / 0.3, BLACK, SCENES[0])) is None
    assert chosen(lambda second: mixed(second / 0.3, np.full_like(BLACK, 255), SCENES[0])) is None


def test_where_there_are_no_frames_or_only_the_first_three_nothing_is_found() -> None:
    assert chosen(lambda _: SCENES[0], steps=0) is None
    assert chosen(lambda _: SCENES[0], steps=3) is None
    assert chosen(lambda _: SCENES[0], steps=4) == 0.4


# ---------------------------------------------------------------- which frames are looked at


def film_of(*, effort: Callable[[int], int] = lambda _: 1, decodes_all: bool = False, **about: Any) -> Any:
    index = replace(steady(12, **about), decodes_all=decodes_all)
    return SimpleNamespace(index=index, time_base=index.time_base, effort=effort)


def test_frames_a_tenth_of_a_second_apart_are_looked_at_up_to_the_next_sync_frame() -> None:
    every = [2.0 + 0.1 * step for step in range(1, STEPS + 1)]
    assert [round(pts / 1000 + 0.001, 1) for pts in _pts_behind(film_of(), analysis(2000))] == pytest.approx(every, abs=0.1)
    seen = _pts_behind(film_of(sync_every_s=2.5), analysis(2000))
    assert seen == [pts for pts in _pts_behind(film_of(), analysis(2000)) if pts < 2500]
    assert len(seen) == 4
    assert 2400 in _pts_behind(film_of(), analysis(2000))
    assert max(_pts_behind(film_of(sync_every_s=2.4), analysis(2000))) < 2400  # the sync frame itself is a candidate of its own


def test_near_the_end_there_are_fewer_and_behind_the_last_frame_none() -> None:
    assert _pts_behind(film_of(), analysis(at(11.96)[0])) == []
    assert _pts_behind(film_of(), analysis(at(11.8)[0])) == at(11.92)
    assert max(_pts_behind(film_of(), analysis(5000))) <= 5000 + 1000 * SETTLED_WITHIN_S + 40


@pytest.mark.parametrize(("decodes_all", "most"), [(False, MOST_PACKETS), (True, MOST_PACKETS_WHERE_EXPENSIVE)])
def test_frames_too_expensive_to_decode_are_left_out(decodes_all: bool, most: int) -> None:
    video = film_of(effort=lambda pts: pts // 40 + 1, decodes_all=decodes_all)
    last = at((most - 1) / 25)[0]
    assert max(_pts_behind(video, analysis(last - 200))) == last
    assert _pts_behind(video, analysis(last)) == []


def test_where_the_decoder_passes_over_nothing_a_second_is_looked_at() -> None:
    assert max(_pts_behind(film_of(decodes_all=True), analysis(5000))) == 6000
    assert max(_pts_behind(film_of(), analysis(5000))) > 6200


# ---------------------------------------------------------------- real files

RATE = 25
FADE_S = 1.0, 1.6


@pytest.fixture(scope="module")
def cross_fade(tmp_path_factory: pytest.TempPathFactory) -> Clip:
    """Three seconds and one sync frame: one scene dissolves into another while the camera moves on a little."""

    def show(number: int) -> Image:
        share = (number / RATE - FADE_S[0]) / (FADE_S[1] - FADE_S[0])
        return mixed(share, panned(SCENES[1], number // 5), panned(SCENES[0], number // 5))

    path = tmp_path_factory.mktemp("settled") / "fade.mp4"
    return write(path, frames=3 * RATE, gop=1000, rate=RATE, picture=show, options={"crf": "18", "x264-params": "scenecut=0"})


def settled_behind(path: Path, numbers: Sequence[int]) -> tuple[list[FrameAnalysis], list[FrameAnalysis], int]:
    """The doubtful frames, what is found for them, and how often progress was told."""
    told: list[None] = []
    with Video(path) as video:
        frames = video.frames(video.index.shown_pts[list(numbers)].tolist())
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in frames])
        return doubtful, find_settled(video, doubtful, LOOKER, advance=lambda: told.append(None)), len(told)


@pytest.mark.parametrize("number", [27, 30, 34])
def test_behind_a_frame_in_a_cross_fade_one_of_the_shot_that_follows_is_found(cross_fade: Clip, number: int) -> None:
    (mixture,), (found,), told = settled_behind(cross_fade.path, [number])
    assert FADE_S[0] < mixture.time_s < FADE_S[1] <= found.time_s <= mixture.time_s + SETTLED_WITHIN_S + 0.04
    assert mixture.in_transition
    assert found.stands_in_for == mixture.pts
    assert not found.in_transition, "the pictures around it were compared, whatever the packets say"
    assert np.abs(found.signature.astype(int) - signature_of(panned(SCENES[1], int(found.time_s * RATE) // 5))).mean() < 3
    assert len(found.vector), "the embedder has seen it"
    assert told == 1


def test_for_several_frames_the_found_ones_come_in_time_order_and_all_are_counted(cross_fade: Clip) -> None:
    doubtful, found, told = settled_behind(cross_fade.path, [5, 28, 33, 74])
    assert [each.pts for each in found] == sorted(each.pts for each in found)
    assert {each.stands_in_for for each in found} <= {each.pts for each in doubtful[:3]}, "behind the last frame there is none"
    assert {doubtful[1].pts, doubtful[2].pts} <= {each.stands_in_for for each in found}
    assert told == 4


def test_of_no_doubtful_frames_nothing_is_decoded(cross_fade: Clip, given_packets: list[int | None]) -> None:
    with Video(cross_fade.path) as video:
        given_packets.clear()
        assert find_settled(video, [], LOOKER, advance=lambda: None) == []
    assert given_packets == []


def test_a_soft_frame_gives_way_to_a_sharp_one_of_the_same_shot(tmp_path: Path) -> None:
    """The camera finds its focus."""
    path = write(
        tmp_path / "a.mp4", frames=50, gop=1000, rate=RATE, picture=lambda number: blurred(SCENES[1], max(0.0, 12 - number)),
        options={"crf": "12", "x264-params": "scenecut=0"},
    ).path  # fmt: skip
    (soft,), (found,), _ = settled_behind(path, [0])
    assert found.measured.quality.sharpness > 10 * soft.measured.quality.sharpness
    assert found.time_s >= 12 / RATE
