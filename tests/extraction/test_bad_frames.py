"""Bad frames: which of two reasons counts, which neighbour is named, and what is kept where all are bad; frames made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import cv2
import numpy as np
import pytest

from tests.extraction.analyses import analysis, look_at, measured
from vip.errors import InputError
from vip.extraction import bad_frames as module
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import bad_frames, keep_best_of_bad, shows_nothing_at_all
from vip.extraction.quality import FrameMeasures
from vip.records import Decision, Image

BLACK = measured(50.0, brightness=0.01, not_dark=0.0, bright=0.0, bright_in_middle=0.0)
WHITE = measured(50.0, brightness=0.99, not_light=0.0, dim=0.0, dim_in_middle=0.0)
FLAT = measured(50.0, contrast=0.01)
SOFT = measured(5.0, contrast=0.2)  # little detail for its contrast


def at(time_s: float, **changed: object) -> FrameAnalysis:
    """A good frame that is like no other at this time, unless that is told."""
    return analysis(round(1000 * time_s), **{"measured": measured(100.0), **changed})


def strangers(count: int, *, step_s: float = 0.09, **changed: object) -> list[FrameAnalysis]:
    """Frames of which no two neighbours show the same view."""
    return [at(step_s * place, **changed) for place in range(count)]


def rules(found: dict[int, Decision]) -> dict[int, str]:
    return {index: decision.rule for index, decision in found.items()}


def grey(*levels: int) -> Image:
    """A signature whose left half has the first level, its right half the second."""
    cells = np.empty((18, 32, 3), np.uint8)
    cells[:, :16], cells[:, 16:] = levels[0], levels[-1]
    return cells


# ---------------------------------------------------------------- by themselves


@pytest.mark.parametrize(
    ("measures", "rule", "words"),
    [
        (BLACK, "black", "dropped: nearly black"),
        (WHITE, "white", "dropped: nearly white"),
        (FLAT, "flat", "dropped: flat: all of it has nearly the same brightness"),
        (SOFT, "blurred", "dropped: out of focus (sharpness 5.0, around it 100)"),
    ],
)
def test_a_frame_that_shows_nothing_says_so_even_where_it_is_not_sharp_enough_either(
    measures: FrameMeasures, rule: str, words: str
) -> None:
    frames = strangers(5, step_s=3.09)
    frames[2] = replace(frames[2], measured=measures)
    found = bad_frames(frames, 60.0)
    assert {index: (decision.kept, decision.rule, decision.reason) for index, decision in found.items()} == {2: (False, rule, words)}


def test_each_frame_is_held_against_its_own_surroundings() -> None:
    frames = strangers(13, step_s=3.01, measured=measured(300.0))
    for place in (8, 9, 10, 11, 12):
        frames[place] = replace(frames[place], measured=measured(8.0))
    frames[2] = replace(frames[2], measured=measured(8.0))
    assert bad_frames(frames, None)[2].reason == "dropped: out of focus (sharpness 8.0, around it 300)"
    assert 12 not in bad_frames(frames, None), "all around it is as soft"


@pytest.mark.parametrize(("least", "dropped"), [(None, []), (0.0, []), (99.9, []), (100.0, []), (100.5, [0, 1])])
def test_a_threshold_counts_where_one_is_asked_for(least: float | None, dropped: list[int]) -> None:
    found = bad_frames(strangers(2), least)
    assert list(found) == dropped
    assert {decision.reason for decision in found.values()} == (
        {"dropped: sharpness 100.0 is below the 100.5 asked for"} if dropped else set()
    )


def test_no_frames_have_no_bad_ones() -> None:
    assert bad_frames([], None) == {}


# ---------------------------------------------------------------- smooth pictures


def with_smooth(times_s: Sequence[float], *, alike: bool = True, measures: FrameMeasures = SOFT) -> list[FrameAnalysis]:
    """Sharp frames before 10 s and from 20 s on, each of a view of its own, and soft ones at these times between them."""
    view, shown = np.eye(40, dtype=np.float32), grey(60, 140)
    sharp = [at(time_s, view=view[place]) for place, time_s in enumerate([2.0, 4.0, 6.0, 8.0, 20.0, 22.0, 24.0, 26.0])]
    soft = [at(time_s, measured=measures, view=view[20 + (0 if alike else place)], signature=shown) for place, time_s in enumerate(times_s)]
    return sorted([*sharp, *soft], key=lambda frame: frame.pts)


@pytest.mark.parametrize(
    ("times_s", "is_kept"), [([10, 11.9], False), ([10, 12], True), ([10, 10.5, 14], True), ([10], False), ([10, 11, 11.9], False)]
)
def test_a_soft_view_that_lasts_two_seconds_is_smooth_and_not_out_of_focus(times_s: list[float], is_kept: bool) -> None:
    found = rules(bad_frames(with_smooth(times_s), None))
    assert found == ({} if is_kept else dict.fromkeys(range(4, 4 + len(times_s)), "blurred"))


def test_soft_frames_of_several_views_are_out_of_focus() -> None:
    assert set(bad_frames(with_smooth([10, 12, 14], alike=False), None)) == {4, 5, 6}


def test_a_smooth_view_at_either_end_of_a_video_stays() -> None:
    frames = with_smooth([10, 12])
    assert not bad_frames(frames[4:], None)
    assert not bad_frames(frames[:6], None)


def test_a_soft_view_between_which_another_frame_lies_does_not_last() -> None:
    frames = with_smooth([10, 14])
    between = at(12.0, view=np.eye(40, dtype=np.float32)[30])
    assert rules(bad_frames([*frames[:5], between, *frames[5:]], None)) == {4: "blurred", 6: "blurred"}


def test_of_a_smooth_view_a_frame_half_as_sharp_as_another_is_blurred_all_the_same() -> None:
    frames = with_smooth([10, 11, 12, 13])
    frames[4] = replace(frames[4], measured=measured(2.0, contrast=0.2))
    assert rules(bad_frames(frames, None)) == {4: "blurred"}


def test_a_smooth_view_is_not_as_sharp_as_was_asked_for() -> None:
    assert rules(bad_frames(with_smooth([10, 12, 14]), 50.0)) == dict.fromkeys([4, 5, 6], "below_min_sharpness")


# ---------------------------------------------------------------- beside a change of shot


def test_a_frame_in_a_transition_goes_for_the_calm_one_that_was_found_for_it() -> None:
    frames = [at(0), at(3.09, in_transition=True), at(6.0), at(9.27, stands_in_for=3090)]
    found = bad_frames(frames, None)
    assert rules(found) == {1: "in_transition"}
    assert found[1].neighbours == (3,)
    assert found[1].reason == "dropped: beside a change of shot; at 0:09.27 the same shot is calm"


def test_in_a_transition_and_blurred_it_is_the_transition() -> None:
    frames = [at(0, in_transition=True, measured=measured(30.0)), at(3.09, stands_in_for=0)]
    assert rules(bad_frames(frames, None)) == {0: "in_transition"}


@pytest.mark.parametrize("stands_in_for", [None, 90, 3090])
def test_in_a_transition_a_frame_for_which_no_other_was_found_stays(stands_in_for: int | None) -> None:
    frames = [at(0, in_transition=True), at(3.09, stands_in_for=stands_in_for)]
    assert bad_frames(frames, None) == {}


def test_a_frame_that_is_dropped_already_keeps_its_reason() -> None:
    frames = [at(0, in_transition=True, measured=BLACK), at(3.09, stands_in_for=0)]
    assert rules(bad_frames(frames, None)) == {0: "black"}


@pytest.mark.parametrize("measures", [BLACK, measured(20.0)])
def test_a_stand_in_that_is_dropped_itself_stands_for_nothing(measures: FrameMeasures) -> None:
    frames = [at(0, in_transition=True), at(3.09, stands_in_for=0, measured=measures)]
    assert set(bad_frames(frames, 25.0)) == {1}


# ---------------------------------------------------------------- in a dissolve


def dissolve(*levels: tuple[int, int], step_s: float = 0.5) -> list[FrameAnalysis]:
    """Frames of one dissolve, all in a transition; their views are strangers to each other."""
    return [
        at(step_s * place, signature=grey(*pair), in_transition=True, view=analysis(90 * place).view) for place, pair in enumerate(levels)
    ]


def test_a_blend_names_the_frames_that_are_left_beside_it() -> None:
    start, middle, end = dissolve((40, 200), (120, 120), (200, 40))
    nothing = replace(at(0.25), measured=BLACK)
    found = bad_frames([start, nothing, middle, replace(nothing, pts=750, time_s=0.75), end], None)
    assert rules(found) == {1: "black", 2: "in_transition", 3: "black"}
    assert found[2].neighbours == (0, 4)
    assert found[2].reason == "dropped: in a dissolve, between 0:00.00 and 0:01.00"


def test_the_ends_of_a_dissolve_stay_and_all_that_lies_between_goes() -> None:
    found = bad_frames(dissolve((40, 200), (80, 160), (120, 120), (160, 80), (200, 40)), None)
    assert rules(found) == {1: "in_transition", 2: "in_transition", 3: "in_transition"}
    assert [found[index].neighbours for index in (1, 2, 3)] == [(0, 2), (1, 3), (2, 4)]


def test_frames_out_of_order_are_no_blend() -> None:
    assert bad_frames(dissolve((120, 120), (40, 200), (200, 40)), None) == {}


@pytest.mark.parametrize(("step_s", "dropped"), [(1.25, True), (1.26, False)])
def test_a_dissolve_takes_no_longer_than_1_25_s_to_either_side(step_s: float, dropped: bool) -> None:
    assert (1 in bad_frames(dissolve((40, 200), (120, 120), (200, 40), step_s=step_s), None)) is dropped


# ---------------------------------------------------------------- blurred


def same_view(time_s: float, sharpness: float) -> FrameAnalysis:
    return at(time_s, measured=measured(sharpness), view=analysis(0).view, signature=analysis(0).signature)


def test_of_two_sharp_frames_the_nearer_one_is_named() -> None:
    found = bad_frames([same_view(0.0, 300.0), same_view(1.2, 40.0), same_view(2.0, 290.0)], None)
    assert rules(found) == {1: "blurred"}
    assert found[1].neighbours == (2,)
    assert found[1].reason == "dropped: blurred (sharpness 40.0; the same view at 0:02.00 has 290)"


def test_a_frame_that_is_dropped_for_another_reason_is_nothing_to_be_held_against() -> None:
    sharp = replace(same_view(1.0, 300.0), in_transition=True)
    calm = at(30.09, stands_in_for=1000)
    assert rules(bad_frames([same_view(0.0, 40.0), sharp, calm], None)) == {1: "in_transition"}


def test_a_blurred_frame_that_stands_still_and_shows_something_else_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """`other_pictures` has tests of its own; here it is a fake that names one of two."""
    seen: list[dict[int, str]] = []

    def first_only(frames: object, dropped: dict[int, Decision], rule: str) -> list[int]:
        seen.append(rules(dropped))
        return [0] if rule == "blurred" else []

    monkeypatch.setattr(module, "other_pictures", first_only)
    frames = [same_view(0.0, 40.0), same_view(0.5, 300.0), same_view(1.0, 41.0)]
    assert rules(bad_frames(frames, None)) == {2: "blurred"}
    assert seen == [{0: "blurred", 2: "blurred"}, {2: "blurred"}]


def test_a_frame_in_a_dissolve_blurs_no_other_however_sharp_it_is() -> None:
    start, middle, end = dissolve((40, 200), (100, 140), (200, 40))
    middle = replace(middle, measured=measured(300.0))
    soft = at(1.5, view=middle.view, signature=middle.signature)
    assert rules(bad_frames([start, middle, end, soft], None)) == {1: "in_transition"}
    assert rules(bad_frames([start, replace(middle, in_transition=False), end, soft], None)) == {3: "blurred"}


# ---------------------------------------------------------------- faded


def pale(time_s: float, contrast: float, sharpness: float = 100.0) -> FrameAnalysis:
    """The frame at 0, at another time and with this contrast; its view is a stranger."""
    return at(time_s, signature=analysis(0).signature, measured=measured(sharpness, contrast=contrast))


def test_a_pale_copy_names_the_fuller_one_however_far_away_in_time() -> None:
    found = bad_frames([at(0), at(40.09), pale(90.18, 0.1)], None)
    assert rules(found) == {2: "faded"}
    assert found[2].neighbours == (0,)
    assert found[2].reason == "dropped: a pale copy of 0:00.00 (contrast 0.10 instead of 0.20)"


def test_of_three_frames_that_a_fade_takes_each_names_one_that_is_still_there() -> None:
    found = bad_frames([pale(0, 0.2), pale(3.09, 0.11), pale(6.18, 0.06), pale(9.27, 0.03)], None)
    assert rules(found) == {3: "faded", 2: "faded", 1: "faded"}
    assert [found[index].neighbours for index in (3, 2, 1)] == [(2,), (1,), (0,)]


@pytest.mark.parametrize("between", [1, 2, 3, 9])
def test_dropped_frames_in_between_are_skipped_however_many(between: int) -> None:
    frames = [pale(0, 0.2), *(at(0.09 * place, measured=BLACK) for place in range(1, between + 1)), pale(0.09 * between + 0.09, 0.1)]
    assert bad_frames(frames, None)[between + 1].neighbours == (0,)


@pytest.mark.parametrize(("between", "goes"), [(2, True), (3, False)])
def test_the_fuller_one_is_among_three_that_are_left(between: int, goes: bool) -> None:
    frames = [pale(0, 0.2), *(at(40.09 * place) for place in range(1, between + 1)), pale(200, 0.1)]
    assert rules(bad_frames(frames, None)) == ({between + 1: "faded"} if goes else {})


def test_a_frame_that_was_taken_back_goes_where_it_is_a_pale_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake takes it back."""
    monkeypatch.setattr(module, "other_pictures", lambda frames, dropped, rule: list(dropped) if rule == "blurred" else [])
    frames = [replace(same_view(0.0, 40.0), measured=measured(40.0, contrast=0.1)), same_view(0.5, 300.0)]
    assert rules(bad_frames(frames, None)) == {0: "faded"}


def test_a_pale_frame_that_stands_still_and_shows_something_else_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake takes it back."""
    monkeypatch.setattr(module, "other_pictures", lambda frames, dropped, rule: [0] if rule == "faded" else [])
    frames = [pale(0, 0.1), pale(0.1, 0.11), pale(0.2, 0.3)]
    assert rules(bad_frames(frames, None)) == {1: "faded"}


@pytest.mark.parametrize(("before", "dropped"), [(3, True), (4, False)])
@pytest.mark.parametrize("is_ahead", [True, False])
def test_three_frames_on_either_side_are_looked_at(before: int, dropped: bool, is_ahead: bool) -> None:
    between = [at(0.09 * place) for place in range(1, before)]
    frames = [pale(0, 0.1), *between, pale(0.09 * before, 0.2)] if is_ahead else [pale(0, 0.2), *between, pale(0.09 * before, 0.1)]
    assert set(bad_frames(frames, None)) == ({0 if is_ahead else before} if dropped else set())


# ---------------------------------------------------------------- where all are bad


def all_of(*measures: FrameMeasures) -> tuple[list[FrameAnalysis], dict[int, Decision]]:
    frames = [at(3.09 * place, measured=one) for place, one in enumerate(measures)]
    return frames, bad_frames(frames, None)


@pytest.mark.parametrize(
    ("measures", "words", "left"),
    [
        ((BLACK, WHITE, BLACK), "nearly white", {0: "black", 2: "black"}),
        ((WHITE, FLAT, FLAT), "flat: all of it has nearly the same brightness", {0: "white"}),
        ((BLACK, BLACK), "nearly black", {}),
    ],
)
def test_all_of_the_least_bad_kind_are_kept_and_the_others_stay_dropped(
    measures: tuple[FrameMeasures, ...], words: str, left: dict[int, str]
) -> None:
    frames, dropped = all_of(*measures)
    assert keep_best_of_bad(frames, dropped, None) == words
    assert rules(dropped) == left


def test_a_sharpness_that_was_asked_for_is_no_reason_where_no_frame_failed_it() -> None:
    frames = [at(3.09 * place, measured=one) for place, one in enumerate((BLACK, WHITE))]
    dropped = bad_frames(frames, 200.0)
    assert keep_best_of_bad(frames, dropped, 200.0) == "nearly white"
    assert rules(dropped) == {0: "black"}


def test_out_of_focus_is_better_than_flat() -> None:
    frames = strangers(2)
    dropped = {0: Decision(kept=False, rule="flat", reason="dropped"), 1: Decision(kept=False, rule="blurred", reason="dropped")}
    assert keep_best_of_bad(frames, dropped, None) == "out of focus"
    assert rules(dropped) == {0: "flat"}


def test_where_one_frame_is_good_the_bad_ones_stay_dropped() -> None:
    frames, dropped = all_of(BLACK, measured(100.0), WHITE)
    assert keep_best_of_bad(frames, dropped, None) is None
    assert rules(dropped) == {0: "black", 2: "white"}


@pytest.mark.parametrize(("levels", "nothing"), [((0, 4), True), ((4, 5), False), ((5, 0), False)])
def test_only_where_every_cell_of_every_picture_is_black_nothing_is_shown(levels: tuple[int, int], nothing: bool) -> None:
    one_each = [at(0, signature=grey(levels[0])), at(1, signature=grey(levels[1]))]
    assert shows_nothing_at_all(one_each) is nothing
    assert shows_nothing_at_all([at(0, signature=grey(*levels))]) is nothing


def test_a_black_video_is_refused_whatever_sharpness_was_asked_for() -> None:
    frames = [at(place, signature=grey(0), measured=BLACK) for place in range(3)]
    dropped = bad_frames(frames, 200.0)
    with pytest.raises(InputError, match=r"^All 3 frames that were looked at are black: the video shows nothing to keep\.$"):
        keep_best_of_bad(frames, dropped, 200.0)
    assert len(dropped) == 3


@pytest.mark.parametrize(
    ("best", "message"),
    [
        (9.0, "0 of 3 candidates are sharp enough (best 9.0, asked 1500). Try --min-sharpness 4."),
        (1.99, "0 of 3 candidates are sharp enough (best 2.0, asked 1500)."),
    ],
)
def test_less_sharp_than_asked_names_the_best_of_all_even_where_others_show_nothing(best: float, message: str) -> None:
    grain = measured(1.0, contrast=0.03)
    frames = [
        at(0, measured=grain),
        at(3.09, measured=measured(best, contrast=0.03)),
        at(6.18, measured=replace(BLACK, quality=grain.quality)),
    ]
    dropped = bad_frames(frames, 1500.0)
    assert rules(dropped) == {0: "below_min_sharpness", 1: "below_min_sharpness", 2: "black"}
    with pytest.raises(InputError) as caught:
        keep_best_of_bad(frames, dropped, 1500.0)
    assert str(caught.value) == message


# ---------------------------------------------------------------- dark letters on black


def card(colour: tuple[int, int, int], *, background: int = 0, at_px: tuple[int, int] = (180, 190)) -> Image:
    image = np.full((360, 640, 3), background, np.uint8)
    cv2.putText(image, "Chapter", at_px, cv2.FONT_HERSHEY_SIMPLEX, 2.5, colour, 9)
    return image


@pytest.mark.parametrize(
    ("image", "measures", "is_kept"),
    [
        (card((40, 60, 120)), BLACK, True),
        (card((190, 170, 120), background=250), WHITE, True),
        (card((20, 24, 30)), BLACK, False),  # no letters, but noise
        (card((40, 60, 120), at_px=(330, 350)), BLACK, False),  # the mark of a channel
        (card((0, 0, 0)), BLACK, False),
    ],
)
@pytest.mark.parametrize("is_still", [True, False])
def test_a_dark_card_that_stands_still_is_a_picture_and_a_fade_is_none(
    image: Image, measures: FrameMeasures, is_kept: bool, is_still: bool
) -> None:
    frames = [at(0.0), replace(look_at(image, 2000), measured=measures, is_still=is_still), at(4.0)]
    assert (1 not in bad_frames(frames, None)) == (is_kept and is_still)


def test_a_flat_frame_stays_flat_and_a_thumbnail_that_cannot_be_read_stays_black() -> None:
    flat = replace(look_at(card((40, 60, 120)), 2000), measured=FLAT, is_still=True)
    unread = at(4.0, measured=BLACK, is_still=True, thumbnail=b"no picture")
    assert rules(bad_frames([at(0.0), flat, unread], None)) == {1: "flat", 2: "black"}
