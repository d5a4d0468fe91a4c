"""Behind a doubtful frame the sharpest settled one of the same shot is found: not in a dissolve, nor behind a cut, nor too deep."""

from __future__ import annotations

import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import TIME_BASE, analysis, measured
from tests.extraction.indices import at, index_of, steady
from tests.extraction.test_substitutes import BLACK, CLASSIC, LOOKER, SCENES, NoDetector, blurred
from tests.media import Clip, write
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer, mark_transitions, signature_of
from vip.extraction.picture_cache import EXPENSIVE_IF_LIKELY, PictureCache
from vip.extraction.quality import WORKING_SIDE_PX, sharpness_of
from vip.extraction.settled import (
    MOST_PACKETS,
    MOST_PACKETS_WHERE_EXPENSIVE,
    PROBED_FRAMES,
    SETTLED_AFTER_S,
    SETTLED_WITHIN_S,
    Settled,
    _calm_among,
    _changes,
    _frames_of_each,
    _may_stand,
    _next_dissolve,
    _pts_behind,
    _pts_just_behind,
    _settled_behind,
    _settled_places,
    find_settled,
    is_certainly_dissolving,
    is_dissolving,
)
from vip.records import Frame, Image, PacketIndex
from vip.store import DECODED, read_picture
from vip.video import Video
from vip.video.frame_cache import FrameCache
from vip.video.pillow import best_of_each

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


# ---------------------------------------------------------------- five frames in a row


def five(*steps: tuple[int, slice]) -> np.ndarray:
    """Five pictures; from each to the next so many levels are added to these of 144 equal parts."""
    pictures = np.zeros((PROBED_FRAMES + 1, 144, 12), np.uint8)
    for number, (levels, parts) in enumerate(steps):
        pictures[number + 1 :, parts] += np.uint8(levels)
    return pictures.reshape(PROBED_FRAMES + 1, 18, 32, 3)


ALL = slice(0, 144)


@pytest.mark.parametrize("fade_s", [0.2, 0.4, 0.6])
def test_five_frames_of_a_dissolve_are_one_and_those_of_a_still_or_moving_picture_or_a_cut_are_not(fade_s: float) -> None:
    a_frame = 0.04 / fade_s
    assert is_dissolving(signatures(lambda number: mixed(0.1 + a_frame * number, SCENES[1], SCENES[0]), 5))
    assert is_dissolving(signatures(lambda number: mixed(0.1 + a_frame * number, SCENES[1], BLACK), 5)), "as one from black"
    for pixels in (0, 12, 25, 40):
        assert not is_dissolving(signatures(lambda number, pixels=pixels: panned(SCENES[0], pixels * number), 5))
    for cut in range(1, 5):
        assert not is_dissolving(signatures(lambda number, cut=cut: SCENES[int(number >= cut)], 5))


def test_in_a_dissolve_more_than_three_levels_change_from_the_first_to_the_fourth_picture() -> None:
    exactly = five((1, ALL), (1, ALL), (1, ALL), (1, ALL))
    assert not is_dissolving(exactly)
    more = exactly.copy()
    more[3, 0, 0, 0] += 1
    assert is_dissolving(more)
    assert not is_dissolving(five((1, ALL), (1, ALL), (1, ALL), (200, ALL))), "what comes behind them does not count"


@pytest.mark.parametrize(("shared", "dissolving"), [(36, True), (28, True), (27, False), (0, False)])
def test_in_a_dissolve_steps_are_parallel_by_a_quarter_on_average(shared: int, dissolving: bool) -> None:
    """Each step is in another quarter of the picture, but for what the second shares with the first: 28 of 3 * 36 parts are 0.259."""
    steps = [slice(0, 36), slice(36 - shared, 72 - shared), slice(108, 144), slice(72, 108)]
    assert is_dissolving(five(*((40, parts) for parts in steps))) is dissolving


def test_a_dissolve_is_certain_where_more_than_twelve_levels_change() -> None:
    exactly = five((4, ALL), (4, ALL), (4, ALL), (4, ALL))
    more = exactly.copy()
    more[3, 0, 0, 0] += 1
    assert (is_certainly_dissolving(exactly), is_certainly_dissolving(more)) == (False, True)


@pytest.mark.parametrize(("shared", "is_certain"), [(104, False), (105, True)])
def test_a_dissolve_is_certain_where_its_steps_are_parallel_by_nine_tenths(shared: int, is_certain: bool) -> None:
    """The second step changes only so many of 144 parts: two of the three cosines are the root of that share; 104.04 parts make 0.9."""
    assert is_certainly_dissolving(five((40, ALL), (40, slice(0, shared)), (40, ALL), (40, ALL))) is is_certain


def test_light_that_comes_and_goes_is_no_dissolve() -> None:
    there = five((40, ALL), (0, ALL), (40, ALL), (0, ALL))
    there[2], there[4] = there[0], there[0]
    assert not is_dissolving(there)


# ---------------------------------------------------------------- which frame is taken


def chosen(
    show: Callable[[float], Image], *, steps: int = STEPS, sharpness: float | None = None, dissolves: bool = False, is_certain: bool = False
) -> float | None:
    """Seconds from the doubtful frame, which is the first, to the one that is found behind it; `show` gets seconds."""
    before = LOOKER(Frame(0, TIME_BASE, show(0.0)))
    if sharpness is not None:
        quality = before.measured.quality.model_copy(update={"sharpness": sharpness})
        before = replace(before, measured=replace(before.measured, quality=quality))
    film = {100 * step: Frame(100 * step, TIME_BASE, show(step / 10)) for step in range(steps + 1)}
    for _, frame, begins_dissolving in _settled_behind(reader_of(film), {0: before}, {0: dissolves}, None):
        found = LOOKER(frame)
        return found.time_s if _may_stand(found, before, begins_dissolving, is_certain=is_certain) else None
    return None


def reader_of(film: dict[int, Frame]) -> Any:
    """A reader of these frames, by PTS, of which the first is a sync frame."""
    pts, every = np.array(list(film), np.int64), np.ones(len(film), bool)
    return SimpleNamespace(
        index=PacketIndex(pts, pts, pts == 0, np.full(len(film), 1000), every, TIME_BASE),
        time_base=TIME_BASE,
        effort=lambda _: 1,
        frames=lambda wanted, **_: (film[stamp] for stamp in wanted),
        best_frames=lambda windows, rate, *, glance, **_: best_of_each(([film[stamp] for stamp in row] for row in windows), rate, glance),
    )


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


@pytest.mark.parametrize(("cut_s", "last_s"), [(0.7, 0.6), (1.0, 0.9)])
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
    for found in (chosen(show, sharpness=1.0), chosen(show, dissolves=True)):
        assert found is not None
        assert found > SETTLED_AFTER_S


@pytest.mark.parametrize(("cut", "last"), [(1, 11), (2, 11), (4, 3), (9, 8)])
def test_the_last_step_of_a_dissolve_is_no_cut_and_one_behind_it_is(cut: int, last: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a dissolve that covers the first two of twelve steps."""
    steps, cuts = np.arange(12) < 2, np.arange(12) == cut
    monkeypatch.setattr("vip.extraction.settled._changes", lambda pictures: (steps.copy(), cuts))
    before = analysis(0)
    times_s = [before.time_s + 2.0 * SETTLED_AFTER_S + 0.1 * place for place in range(12)]
    places, _ = _settled_places(before, times_s, [before.signature] * 12, dissolves=False)
    assert (places, max(places)) == (list(range(3, last + 1)), last), "the step behind the two is parallel to them, and dissolves too"


@pytest.mark.parametrize("fade_s", [0.3, 0.4])
@pytest.mark.parametrize("dissolves", [False, True])
def test_the_next_dissolve_ends_the_search(fade_s: float, dissolves: bool) -> None:
    """The shot behind it is sharper."""

    def show(second: float) -> Image:
        return mixed((second - 0.6) / fade_s, with_sharpest(SCENES[2], second, 1.3), with_sharpest(blurred(SCENES[0], 1.0), second, 0.5))

    assert chosen(show, dissolves=dissolves) == 0.5


@pytest.mark.parametrize("steps", [2, 3, 6])
def test_where_all_steps_dissolve_there_is_no_next_dissolve(steps: int) -> None:
    frames = list(signatures(lambda number: mixed(number / 20, SCENES[1], SCENES[0]), steps))
    assert _next_dissolve(frames, np.ones(steps, bool)) == steps
    assert _next_dissolve(frames, np.zeros(steps, bool)) == steps


def test_a_slow_pan_whose_steps_look_like_a_dissolve_does_not_end_the_search() -> None:
    dissolving = np.array([False, False, True, True, True, False])
    still, other = signature_of(SCENES[0]), signature_of(SCENES[1])
    assert _next_dissolve([still] * 6, dissolving) == 6
    assert _next_dissolve([still] * 4 + [other] * 2, dissolving) == 2
    assert _next_dissolve([still] * 4 + [other] * 2, dissolving & [1, 1, 1, 0, 0, 0]) == 6, "one step alone is none"


@pytest.mark.parametrize(("times_as_sharp", "is_found"), [(1.9, True), (2.1, False)])
def test_a_frame_twice_as_sharp_as_the_settled_one_of_its_view_does_not_give_way(times_as_sharp: float, is_found: bool) -> None:
    """What dissolves is softer: a camera that moves may change the picture as a dissolve does."""

    def show(second: float) -> Image:
        return with_sharpest(SCENES[0], second, 0.8)

    sharpest = LOOKER(Frame(0, TIME_BASE, show(0.8))).measured.quality.sharpness
    found = chosen(show, sharpness=times_as_sharp * sharpest, dissolves=True)
    assert found == (0.8 if is_found else None)
    assert chosen(show, sharpness=times_as_sharp * sharpest, dissolves=True, is_certain=True) == 0.8, "no camera moves so evenly"


def test_a_frame_that_is_sharper_than_the_settled_one_of_another_view_gives_way() -> None:
    def show(second: float) -> Image:
        return mixed(0.4 + second / 0.1, SCENES[1], SCENES[0])

    assert chosen(show, sharpness=1e6, dissolves=True) is not None


def test_the_end_of_a_dissolve_that_is_over_within_a_tenth_of_a_second_is_no_cut() -> None:
    """One step as large as one: only the frames just behind the doubtful one tell what it is."""

    def show(second: float) -> Image:
        return mixed(0.4 + second / 0.1, with_sharpest(SCENES[1], second, 0.7), SCENES[0])

    assert chosen(show) is None
    assert chosen(show, dissolves=True) == 0.7


@pytest.mark.parametrize("cut_s", [0.3, 0.9])
def test_a_cut_behind_a_frame_that_dissolves_ends_the_search(cut_s: float) -> None:
    def show(second: float) -> Image:
        return SCENES[2] if second > cut_s - 0.01 else mixed(0.4 + second / 0.1, SCENES[1], SCENES[0])

    found = chosen(show, dissolves=True)
    assert (found is None) == (cut_s < SETTLED_AFTER_S)
    assert found is None or SETTLED_AFTER_S < found < cut_s - 0.01


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
    assert max(_pts_behind(film_of(sync_every_s=2.44), analysis(2000))) < 2440  # the sync frame itself is a candidate of its own


SIZES = np.full(12 * 25, 1000)


@pytest.mark.parametrize(
    ("sync_s", "end_s"),
    [
        ([2.4], 3.36),  # to the tick: passed over
        ([2.44], 2.44),
        ([2.2, 2.4], 3.36),  # a second one inside the same dissolve
        ([2.04, 2.08, 2.44], 2.44),
        ([2.0, 2.2, 2.8], 2.8),  # its own, one to pass over, and the end
        ([], 3.36),
    ],
)
def test_sync_frames_within_two_fifths_of_a_second_do_not_end_the_search(sync_s: list[float], end_s: float) -> None:
    index = index_of(SIZES, [0, *(round(25 * second) for second in sync_s)])
    video: Any = SimpleNamespace(index=index, time_base=index.time_base, effort=lambda _: 1)
    seen = _pts_behind(video, analysis(2000))
    assert seen == [pts for pts in _pts_behind(film_of(), analysis(2000)) if pts < 1000 * end_s]
    probed = _pts_just_behind(video, analysis(2000))
    assert probed == [pts for pts in _pts_just_behind(film_of(), analysis(2000)) if pts < 1000 * end_s] == at(2.04, 2.08, 2.12, 2.16)


@pytest.mark.parametrize(
    ("step_ms", "expected"),
    [(40, [40, 80, 120, 160]), (30, [30, 60, 90, 120]), (29, [58, 116, 174, 232]), (10, [30, 60, 90, 120]), (200, [200, 400, 600, 800])],
)
def test_the_next_four_frames_that_lie_a_thirtieth_of_a_second_apart_are_probed(step_ms: int, expected: list[int]) -> None:
    index = steady(4)
    index = replace(index, pts=index.pts // 40 * step_ms)
    video: Any = SimpleNamespace(index=index, time_base=index.time_base, effort=lambda _: 1)
    assert _pts_just_behind(video, analysis(0)) == expected


def test_near_the_end_of_a_gop_or_of_the_video_fewer_are_probed() -> None:
    index = index_of(SIZES, [0, 60])
    video: Any = SimpleNamespace(index=index, time_base=index.time_base, effort=lambda _: 1)
    assert _pts_just_behind(video, analysis(1960)) == at(2.0, 2.04, 2.08, 2.12)
    assert _pts_just_behind(video, analysis(at(11.88)[0])) == at(11.92, 11.96)
    assert _pts_just_behind(video, analysis(at(11.96)[0])) == []
    slow = replace(index, time_base=Fraction(1, 100))  # 2.5 frames a second: the next sync frame lies more than 0.4 s behind
    video = SimpleNamespace(index=slow, time_base=slow.time_base, effort=lambda _: 1)
    assert _pts_just_behind(video, analysis(2280)) == [2320, 2360]


@pytest.mark.parametrize(
    ("in_transition", "decodes_all", "most"),
    [
        (True, False, MOST_PACKETS),
        (False, False, MOST_PACKETS_WHERE_EXPENSIVE),
        (True, True, MOST_PACKETS_WHERE_EXPENSIVE),
        (False, True, MOST_PACKETS_WHERE_EXPENSIVE),
    ],
)
def test_frames_deep_in_a_gop_are_probed_only_where_packets_call_them_restless(in_transition: bool, decodes_all: bool, most: int) -> None:
    video = film_of(effort=lambda pts: pts // 40 + 1, decodes_all=decodes_all)
    last = 40 * (most - 1)
    assert _pts_just_behind(video, analysis(last - 160, in_transition=in_transition)) == [last - 120, last - 80, last - 40, last]
    assert _pts_just_behind(video, analysis(last - 120, in_transition=in_transition)) == [], "three would not tell"


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


# ---------------------------------------------------------------- one pass for all


class Shelf:
    """A reader that remembers which frames it gave, and does not have all."""

    def __init__(self, *missing: int) -> None:
        self.missing = missing
        self.given: list[int] = []
        self.images: list[weakref.ref[Image]] = []

    def frames(self, pts: Sequence[int], **_: Any) -> Iterator[Frame]:
        assert list(pts) == sorted(set(pts)), "each once"
        for stamp in pts:
            if stamp not in self.missing:
                image = np.zeros((1, 1, 3), np.uint8)
                self.given.append(stamp)
                self.images.append(weakref.ref(image))
                yield Frame(stamp, TIME_BASE, image)


def test_the_frames_of_each_are_handed_out_as_soon_as_the_last_of_them_is_decoded() -> None:
    shelf = Shelf(5)
    wanted = {10: [11, 13, 15], 1: [2, 3], 4: [5, 6, 13], 20: [], 12: [13]}
    found, given = [], []
    for key, frames in _frames_of_each(shelf, wanted, longest_side_px=64):  # type: ignore[arg-type]
        found.append((key, [frame.pts for frame in frames]))
        given.append(shelf.given[-1])
    assert found == [(1, [2, 3]), (4, [6, 13]), (12, [13]), (10, [11, 13, 15])], "the one without frames is left out"
    assert given == [6, 15, 15, 15], "the frame behind the last of them says that it is there"


def test_frames_that_nobody_waits_for_any_more_are_let_go() -> None:
    shelf = Shelf()
    alive = []
    for _, frames in _frames_of_each(shelf, {start: [start + 1, start + 3] for start in range(0, 60, 2)}, longest_side_px=64):  # type: ignore[arg-type]
        del frames
        alive.append(sum(image() is not None for image in shelf.images))
    assert len(shelf.images) == 31
    assert max(alive) <= 3, "two that are waited for, and the newest"


def test_where_no_frame_can_be_decoded_each_gets_none() -> None:
    assert list(_frames_of_each(Shelf(2, 3), {1: [2], 2: [3]}, longest_side_px=64)) == [(1, []), (2, [])]  # type: ignore[arg-type]
    assert list(_frames_of_each(Shelf(), {}, longest_side_px=64)) == []  # type: ignore[arg-type]


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


def settled_behind(path: Path, numbers: Sequence[int], **about: Any) -> tuple[list[FrameAnalysis], Settled, int]:
    """The doubtful frames, what is found for them, and how often progress was told."""
    told: list[None] = []
    with Video(path) as video:
        frames = video.frames(video.index.shown_pts[list(numbers)].tolist())
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in frames])
        return doubtful, find_settled(video, doubtful, LOOKER, advance=lambda: told.append(None), **about), len(told)


@pytest.mark.parametrize("number", [27, 30, 34])
def test_behind_a_frame_in_a_cross_fade_one_of_the_shot_that_follows_is_found(cross_fade: Clip, number: int) -> None:
    (mixture,), ((found,), dissolves), told = settled_behind(cross_fade.path, [number])
    assert FADE_S[0] < mixture.time_s < FADE_S[1] <= found.time_s <= mixture.time_s + SETTLED_WITHIN_S + 0.04
    assert mixture.in_transition
    assert dissolves == {mixture.pts: True}
    assert found.stands_in_for == mixture.pts
    assert not found.in_transition, "the pictures around it were compared, whatever the packets say"
    assert np.abs(found.signature.astype(int) - signature_of(panned(SCENES[1], int(found.time_s * RATE) // 5))).mean() < 3
    assert len(found.vector), "the embedder has seen it"
    assert told == 1


def test_for_several_frames_the_found_ones_come_in_time_order_and_all_are_counted(cross_fade: Clip) -> None:
    doubtful, (found, dissolves), told = settled_behind(cross_fade.path, [5, 28, 33, 71, 74])
    assert [each.pts for each in found] == sorted(each.pts for each in found)
    assert [each.stands_in_for for each in found] == [doubtful[1].pts, doubtful[2].pts]
    assert dissolves == dict(zip([each.pts for each in doubtful[:3]], [False, True, True], strict=True)), (
        "behind the last are fewer than four"
    )
    assert told == 5


@pytest.mark.parametrize("numbers", [[28], [26, 27, 29, 30, 32, 34]])
def test_settled_frames_are_handed_to_the_keeper_at_full_size(
    cross_fade: Clip, numbers: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they were converted as they passed, or had to be decoded again."""
    monkeypatch.setattr("vip.video.reader.FrameCache", lambda _: FrameCache(0))  # as in a video that is not short
    with PictureCache(tmp_path, "png", lambda _: EXPENSIVE_IF_LIKELY + 1).while_selecting() as pictures:
        _, (found, _), _ = settled_behind(cross_fade.path, numbers, keeper=pictures.for_likely)
    assert found
    assert {one.pts for one in found} <= {int(path.stem) for path in (tmp_path / DECODED).iterdir()}
    with Video(cross_fade.path) as video:
        for frame in video.frames([found[0].pts]):
            assert np.array_equal(read_picture(tmp_path / DECODED / f"{frame.pts}.png"), frame.image)


@pytest.mark.parametrize("is_glimpsed", [False, True])
def test_for_a_frame_that_dissolves_into_what_moves_too_evenly_a_known_one_of_the_next_second_stands_in(
    cross_fade: Clip, glimpser: FrameAnalyzer, monkeypatch: pytest.MonkeyPatch, is_glimpsed: bool
) -> None:
    monkeypatch.setattr("vip.extraction.settled._settled_places", lambda *_, **__: ([], True))
    with Video(cross_fade.path) as video:
        known = [LOOKER(frame) for frame in video.frames(video.index.shown_pts[[5, 28, 45, 50, 60]].tolist())]
        found, dissolves = find_settled(video, known[:2], glimpser if is_glimpsed else LOOKER, known=known, advance=lambda: None)
    assert dissolves == {known[0].pts: False, known[1].pts: True}
    assert [(one.pts, one.stands_in_for) for one in found] == [(known[2].pts, known[1].pts)]


@pytest.mark.parametrize(
    ("about", "stands_in"),
    [
        ({}, True),
        ({"time_s": 2.0}, True),
        ({"time_s": 2.01}, False),
        ({"time_s": 0.9}, False),
        ({"in_transition": True}, False),
        ({"measured": measured(100.0, contrast=0.0)}, False),
        ({"pts": 30}, False),
    ],
)
def test_a_known_frame_that_stands_in_follows_within_a_second_shows_something_and_changes_no_more(
    about: dict[str, Any], stands_in: bool
) -> None:
    before, one = analysis(20, time_s=1.0), replace(analysis(40, time_s=1.5), **about)
    found = list(_calm_among([before, one], [before], {20: True, 30: True}))
    assert [(calm.pts, calm.stands_in_for) for calm in found] == ([(one.pts, 20)] if stands_in else [])


@pytest.mark.parametrize("is_glimpsed", [False, True])
def test_a_frame_that_certainly_dissolves_gives_way_however_sharp_it_is(
    cross_fade: Clip, glimpser: FrameAnalyzer, monkeypatch: pytest.MonkeyPatch, is_glimpsed: bool
) -> None:
    """Here every frame shows the same view and is too sharp to give way, unless it dissolves for certain."""
    monkeypatch.setattr("vip.extraction.settled.shows_same_view", lambda *_: True)
    monkeypatch.setattr("vip.extraction.settled.TIMES_SHARPER", 0.0)
    monkeypatch.setattr("vip.extraction.settled.CERTAINLY_PARALLEL", 0.5)  # the camera moves on, too
    with Video(cross_fade.path) as video:
        doubtful = [LOOKER(frame) for frame in video.frames(video.index.shown_pts[[5, 28]].tolist())]
        for levels, found in ((0.0, [doubtful[1].pts]), (255.0, [])):
            monkeypatch.setattr("vip.extraction.settled.CERTAIN_LEVELS", levels)
            settled = find_settled(video, doubtful, glimpser if is_glimpsed else LOOKER, advance=lambda: None)
            assert [one.stands_in_for for one in settled.frames] == found
            assert settled.dissolves == {doubtful[0].pts: False, doubtful[1].pts: True}


def test_of_no_doubtful_frames_nothing_is_decoded(cross_fade: Clip, given_packets: list[int | None]) -> None:
    with Video(cross_fade.path) as video:
        given_packets.clear()
        assert find_settled(video, [], LOOKER, advance=lambda: None) == ([], {})
    assert given_packets == []


@pytest.mark.parametrize(("numbers", "passes"), [([3, 5, 6, 8, 10], 1), ([3, 5, 28], 2), ([26, 27, 29, 30, 32, 34], 3)])
def test_a_gop_is_decoded_once_to_tell_dissolves_and_once_more_where_there_are_any(
    cross_fade: Clip, given_packets: list[int | None], numbers: list[int], passes: int
) -> None:
    """And a third time where several lie in one dissolve: only the sharpest frame behind all of them was kept."""
    with Video(cross_fade.path) as video:
        shown = video.index.shown_pts
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in video.frames(shown[numbers].tolist())])
        given_packets.clear()
        found, dissolves = find_settled(video, doubtful, LOOKER, advance=lambda: None)
        assert [shown.tolist().index(pts) for pts, is_one in dissolves.items() if is_one] == [number for number in numbers if number > 25]
        assert bool(found) == (passes > 1)
        times = Counter(given_packets)
        assert max(times.values()) == passes
        assert times[int(shown[max(numbers) + 3])] == passes
        assert len(given_packets) <= len(shown) * passes


@pytest.fixture
def glimpser(cross_fade: Clip) -> FrameAnalyzer:
    """An analyzer that glimpsed every frame of the cross-fade."""
    analyzer = FrameAnalyzer(CLASSIC, CLASSIC, NoDetector())
    with Video(cross_fade.path) as video:
        for _ in video.best_frames([video.index.shown_pts.tolist()], sharpness_of, longest_side_px=WORKING_SIDE_PX, glance=analyzer.glance):
            pass
        assert sorted(analyzer.glimpses) == video.index.shown_pts.tolist()
    return analyzer


@pytest.mark.parametrize("soft", [[], [33, 71]])
def test_among_glimpses_frames_as_sharp_are_found_as_by_decoding(cross_fade: Clip, glimpser: FrameAnalyzer, soft: list[int]) -> None:
    numbers = [5, 28, 33, 71, 74]
    told: list[None] = []
    with Video(cross_fade.path) as video:
        pts = video.index.shown_pts
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in video.frames(pts[numbers].tolist())])
        about: dict[str, Any] = {"soft": pts[soft].tolist()}
        decoded = find_settled(video, doubtful, LOOKER, advance=lambda: None, **about)
        remembered = find_settled(video, doubtful, glimpser, advance=lambda: told.append(None), **about)
    assert remembered.dissolves == decoded.dissolves
    assert [one.stands_in_for for one in remembered.frames] == [one.stands_in_for for one in decoded.frames] == pts[[28, 33]].tolist()
    for one, other in zip(remembered.frames, decoded.frames, strict=True):
        assert one.measured.quality.sharpness > 0.95 * other.measured.quality.sharpness
        assert one.time_s >= FADE_S[1]
        assert not one.in_transition
    assert len(told) == 5


def test_of_glimpsed_frames_only_the_settled_one_is_decoded_and_none_that_is_known(
    cross_fade: Clip, glimpser: FrameAnalyzer, given_packets: list[int | None]
) -> None:
    with Video(cross_fade.path) as video:
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in video.frames(video.index.shown_pts[[5, 28]].tolist())])
        given_packets.clear()
        (settled,) = find_settled(video, doubtful, glimpser, advance=lambda: None).frames
        assert max(Counter(given_packets).values()) == 1
        given_packets.clear()
        (again,) = find_settled(video, doubtful, glimpser, known=[settled], advance=lambda: None).frames
        assert again.pts == settled.pts
        assert given_packets == []
        assert find_settled(video, doubtful[:1], glimpser, advance=lambda: None).frames == []
        assert given_packets == [], "a frame that does not dissolve asks for none"


def test_a_known_frame_among_glimpses_stands_in_only_where_it_shows_something_and_is_not_much_softer(
    cross_fade: Clip, glimpser: FrameAnalyzer
) -> None:
    with Video(cross_fade.path) as video:
        (doubtful,) = map(LOOKER, video.frames(video.index.shown_pts[[5]].tolist(), longest_side_px=WORKING_SIDE_PX))

        def found(known: Sequence[FrameAnalysis], before: FrameAnalysis = doubtful) -> list[int]:
            settled = find_settled(video, [before], glimpser, known=known, soft={before.pts}, advance=lambda: None)
            assert settled.dissolves == {before.pts: False}
            return [one.pts for one in settled.frames]

        (pts,) = found([])
        (known,) = map(LOOKER, video.frames([pts], longest_side_px=WORKING_SIDE_PX))
        sharpness = known.measured.quality.sharpness
        assert found([known]) == [pts]
        assert found([replace(known, measured=measured(sharpness))]) == [pts]
        assert found([replace(known, measured=measured(sharpness, contrast=0.0))]) == [], "it shows nothing"
        assert found([known], replace(doubtful, measured=measured(1.9 * sharpness))) == [pts]
        assert found([known], replace(doubtful, measured=measured(2.1 * sharpness))) == []


def test_a_frame_among_glimpses_that_cannot_be_decoded_stands_in_for_none(
    cross_fade: Clip, glimpser: FrameAnalyzer, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Video.frames
    with Video(cross_fade.path) as video:
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in video.frames(video.index.shown_pts[[28, 33]].tolist())])
        one, other = find_settled(video, doubtful, glimpser, advance=lambda: None).frames
        lost = {other.pts} - {one.pts}

        def frames(self: Video, pts: Sequence[int], **about: Any) -> Iterator[Frame]:
            return (frame for frame in real(self, pts, **about) if frame.pts not in lost)

        monkeypatch.setattr(Video, "frames", frames)
        found = find_settled(video, doubtful, glimpser, advance=lambda: None)
    assert lost, "else nothing is lost here"
    assert [each.stands_in_for for each in found.frames] == [doubtful[0].pts]
    assert found.dissolves == {each.pts: True for each in doubtful}


def test_where_a_frame_behind_a_doubtful_one_was_not_glimpsed_all_are_decoded(
    cross_fade: Clip, glimpser: FrameAnalyzer, given_packets: list[int | None]
) -> None:
    with Video(cross_fade.path) as video:
        doubtful = mark_transitions(video.index, [LOOKER(frame) for frame in video.frames(video.index.shown_pts[[28]].tolist())])
        del glimpser.glimpses[_pts_behind(video, doubtful[0])[-1]]
        given_packets.clear()
        found = find_settled(video, doubtful, glimpser, advance=lambda: None)
        assert max(Counter(given_packets).values()) == 2
    assert len(found.frames) == 1


def test_a_second_sync_frame_inside_the_dissolve_does_not_end_the_search(tmp_path: Path) -> None:
    """A sync frame every nine frames: one and ten frames behind the doubtful one, and 19 behind it."""

    def show(number: int) -> Image:
        return mixed((number / RATE - 0.96) / 0.28, SCENES[1], SCENES[0])

    options = {"crf": "18", "x264-params": "scenecut=0"}
    path = write(tmp_path / "a.mp4", frames=60, gop=9, rate=RATE, picture=show, options=options).path
    (mixture,), ((found,), dissolves), _ = settled_behind(path, [26])
    assert dissolves == {mixture.pts: True}
    with Video(path) as video:
        passed = [pts for pts in video.index.sync_pts.tolist() if mixture.pts < pts < found.pts]
        (following,) = video.index.sync_pts[video.index.sync_pts > found.pts][:1].tolist()
        assert len(passed) >= 1
        assert video.index.shown_pts.tolist().index(following) <= 45
    assert found.time_s - mixture.time_s > SETTLED_AFTER_S


@pytest.mark.parametrize("lost", [28, 31])
def test_where_a_frame_behind_it_is_damaged_nobody_knows_whether_it_dissolves(
    cross_fade: Clip, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """And nothing is sought, but for a soft one."""
    real = Video.frames

    def frames(self: Video, pts: Sequence[int], **about: Any) -> Iterator[Frame]:
        return (frame for frame in real(self, pts, **about) if frame.pts != self.index.shown_pts[lost])

    monkeypatch.setattr(Video, "frames", frames)
    (mixture,), found, told = settled_behind(cross_fade.path, [27])
    assert (found, told) == (([], {}), 1)
    _, (settled, dissolves), told = settled_behind(cross_fade.path, [27], soft={mixture.pts})
    assert ([each.stands_in_for for each in settled], dissolves, told) == ([mixture.pts], {}, 1)


def test_a_soft_frame_gives_way_to_a_sharp_one_of_the_same_shot(tmp_path: Path) -> None:
    """The camera finds its focus."""
    path = write(
        tmp_path / "a.mp4", frames=50, gop=1000, rate=RATE, picture=lambda number: blurred(SCENES[1], max(0.0, 12 - number / 2)),
        options={"crf": "12", "x264-params": "scenecut=0"},
    ).path  # fmt: skip
    (soft,), nothing, _ = settled_behind(path, [0])
    assert nothing == ([], {soft.pts: False}), "it does not dissolve"
    _, ((found,), dissolves), _ = settled_behind(path, [0], soft={soft.pts})
    assert dissolves == {soft.pts: False}
    assert found.measured.quality.sharpness > 10 * soft.measured.quality.sharpness
    assert found.time_s >= 20 / RATE
