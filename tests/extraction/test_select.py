"""From looks to decisions: what is dropped, why, and that nothing is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.analyses import TIME_BASE, analysis, measured, picture
from tests.extraction.test_insets import with_speaker
from tests.test_local_change import LINES, OTHERS, slide
from vip.errors import InputError
from vip.extraction import picture_count
from vip.extraction.analyze import FrameAnalysis, FrameAnalyzer
from vip.extraction.bad_frames import bad_frames, shows_nothing_at_all
from vip.extraction.copies import copies, same_picture
from vip.extraction.embeddings import embeddings_of
from vip.extraction.good_frames import by_picture_only, likely_keyframes, prunable
from vip.extraction.pruners.algorithm1 import Algorithm1
from vip.extraction.pruners.none import NoPruning
from vip.extraction.quality import correlation
from vip.extraction.select import select_from
from vip.models.classic import ClassicEmbedder
from vip.models.opencv import OpenCVDetector
from vip.protocols import EmbedderCapabilities
from vip.records import Decision, Detection, Embeddings, Frame, Image, Vectors

EMBEDDER = ClassicEmbedder(None)
PRUNER = Algorithm1(None)
PERSON = Detection(label="person", score=0.9, box_xyxy=(0.1, 0.1, 0.4, 0.9), source="test")
LOOKER = FrameAnalyzer(EMBEDDER, EMBEDDER, OpenCVDetector(None))


def looks_of(images: Sequence[Image]) -> list[FrameAnalysis]:
    return [LOOKER(Frame(1000 * number, TIME_BASE, image)) for number, image in enumerate(images)]


def decide(images: Sequence[Image], *, keyframes: int = 12, min_sharpness: float | None = None) -> list[Decision]:
    analyses = looks_of(images)
    decisions, _, _ = select_from(
        analyses, embeddings_of(analyses, EMBEDDER), pruner=PRUNER, keyframes=keyframes, redundant=0.8, min_sharpness=min_sharpness
    )
    return decisions


def rules(decisions: Sequence[Decision]) -> list[str]:
    return [decision.rule for decision in decisions]


def blurred(image: Image, sigma: float) -> Image:
    return np.asarray(cv2.GaussianBlur(image, (0, 0), sigma), np.uint8)


def dimmed(image: Image, share: float) -> Image:
    return (image * share).astype(np.uint8)


def test_of_a_focus_pull_the_sharp_frame_stays() -> None:
    scene = picture(1)
    assert rules(decide([picture(2), blurred(scene, 3), blurred(scene, 2), scene, picture(3)])) == [
        "kept", "blurred", "blurred", "kept", "kept",
    ]  # fmt: skip


def test_of_a_fade_the_full_picture_stays() -> None:
    scene = picture(1)
    fade = [dimmed(scene, share) for share in (0.3, 0.5, 0.8)]
    decisions = decide([picture(2), *fade, scene, picture(3)])
    assert rules(decisions)[1:3] == ["faded", "faded"]
    assert decisions[4].kept
    assert all(0 <= other < 6 for decision in decisions for other in decision.neighbours)


@pytest.mark.parametrize(("step_s", "faded"), [(1.0, True), (2.0, True), (2.1, False)])
def test_a_frame_that_rises_from_black_goes_though_people_have_moved_by_the_time_it_is_bright(step_s: float, faded: bool) -> None:
    scene = dimmed(picture(1), 0.2)
    for left, top in ((60, 40), (300, 120), (450, 250), (150, 280)):  # lights
        scene[top : top + 30, left : left + 40] = (250, 220, 120)
    moved = np.asarray(cv2.warpAffine(scene, np.float32([[1, 0, 10], [0, 1, 6]]), (scene.shape[1], scene.shape[0])), np.uint8)
    analyses = looks_of([dimmed(scene, 0.35), moved])
    alike = correlation(analyses[0].signature, analyses[1].signature)
    assert 0.6 < alike < 0.92, "no pale copy"
    analyses = [replace(one, time_s=number * step_s) for number, one in enumerate(analyses)]
    assert ({0: "faded"} if faded else {}) == {index: decision.rule for index, decision in bad_frames(analyses, None).items()}


def paled(image: Image, share: float) -> Image:
    return (128 + share * (image.astype(np.float32) - 128)).astype(np.uint8)


def test_of_a_long_fade_the_palest_frames_go_first_so_that_each_still_has_a_fuller_one_beside_it() -> None:
    analyses = looks_of([paled(picture(1), share) for share in (1.0, 0.95, 0.75, 0.55, 0.5, 0.32, 0.3)])
    assert sorted(bad_frames(analyses, None)) == [3, 4, 5, 6]


def test_a_pale_copy_goes_for_the_nearest_of_those_that_are_fuller() -> None:
    analyses = looks_of([picture(1), picture(1), paled(picture(1), 0.3), picture(2)])
    assert bad_frames(analyses, None)[2].neighbours == (1,)


@pytest.mark.parametrize(("stand_in", "dropped"), [(picture(3), {1}), (np.zeros((360, 640, 3), np.uint8), {2})])
def test_a_restless_frame_goes_for_a_calm_one_unless_that_is_dropped_itself(stand_in: Image, dropped: set[int]) -> None:
    first, in_transition, calm = looks_of([picture(1), picture(2), stand_in])
    analyses = [first, replace(in_transition, in_transition=True), replace(calm, stands_in_for=in_transition.pts)]
    assert set(bad_frames(analyses, None)) == dropped


@pytest.mark.parametrize("in_transition", [True, False])
def test_a_frame_that_another_stands_in_for_is_not_kept(in_transition: bool) -> None:
    replaced, sharp, other = looks_of([picture(2) if in_transition else blurred(picture(2), 1), picture(3), picture(1)])
    analyses = [replace(replaced, in_transition=in_transition), replace(sharp, stands_in_for=replaced.pts), other]
    decision = bad_frames(analyses, None)[0]
    assert (decision.kept, decision.rule, decision.neighbours) == (False, "in_transition" if in_transition else "blurred", (1,))


def test_frames_that_are_out_already_do_not_hide_the_whole_picture_from_a_paler_copy() -> None:
    whole, *soft, pale = looks_of([picture(1)] * 5 + [dimmed(picture(1), 0.6)])
    soft = [replace(look, measured=measured(0.4 * whole.measured.quality.sharpness)) for look in soft]
    frames = [replace(look, time_s=0.3 * place) for place, look in enumerate([whole, *soft, pale])]
    found = bad_frames(frames, None)
    assert {index: (decision.rule, decision.neighbours) for index, decision in found.items()} == {
        **dict.fromkeys((1, 2, 3, 4), ("blurred", (0,))),
        5: ("faded", (0,)),
    }


@pytest.mark.parametrize(
    ("before_s", "after_s", "in_transition", "dropped"),
    [
        *[(0.5, 0.5, True, True), (1.25, 1.25, True, True), (1.3, 1.3, True, False), (0.5, 0.5, False, False)],
        *[(0.5, 1.3, True, False), (1.3, 0.5, True, False)],
    ],
)
def test_a_blend_of_the_frames_close_by_goes_where_packets_show_a_transition(
    before_s: float, after_s: float, in_transition: bool, dropped: bool
) -> None:
    blend = np.asarray(cv2.addWeighted(picture(1), 0.5, picture(2), 0.5, 0), np.uint8)
    before, middle, after = looks_of([picture(1), blend, picture(2)])
    frames = [
        replace(before, time_s=0.0),
        replace(middle, time_s=before_s, in_transition=in_transition, measured=measured(1000.0)),
        replace(after, time_s=before_s + after_s),
    ]
    found = bad_frames(frames, None)
    assert (1 in found and found[1].reason.startswith("dropped: in a dissolve")) == dropped
    assert not dropped or (found[1].rule, found[1].neighbours) == ("in_transition", (0, 2))


def test_a_picture_that_drifts_is_no_copy_of_the_one_it_came_from() -> None:
    """From each to the next it is coding noise, from the first to the last a change of light."""
    analyses = looks_of([picture(1) // 2 + 2 * step for step in range(12)])
    assert len(analyses) - len(copies(analyses, range(12))) == 3  # four of them lie so near that a little light tells them apart


def test_a_static_video_keeps_one_frame() -> None:
    decisions = decide([picture(1)] * 10)
    assert rules(decisions).count("kept") == 1
    assert rules(decisions).count("duplicate") == 9


def test_of_copies_the_sharpest_stays() -> None:
    scene = picture(1)
    softer = blurred(scene, 0.7)
    decisions = decide([softer, softer, scene, softer])
    assert [decision.kept for decision in decisions] == [False, False, True, False]


def test_black_frames_go_where_there_is_anything_else() -> None:
    black = np.zeros((360, 640, 3), np.uint8)
    assert rules(decide([black, picture(1), black, picture(2), black])) == ["black", "kept", "black", "kept", "black"]


def test_a_dark_video_keeps_its_best_and_says_so() -> None:
    dark = [dimmed(picture(seed), 0.08) for seed in range(4)]
    analyses = looks_of(dark)
    decisions, told, _ = select_from(
        analyses, embeddings_of(analyses, EMBEDDER), pruner=PRUNER, keyframes=2, redundant=0.8, min_sharpness=None
    )
    assert sum(decision.kept for decision in decisions) == 2
    assert told == ["Every frame that was looked at is nearly black; the best of them are kept."]


def test_a_black_video_shows_nothing() -> None:
    with pytest.raises(InputError, match="All 5 frames that were looked at are black"):
        decide([np.zeros((360, 640, 3), np.uint8)] * 5)


def test_an_absolute_threshold_names_the_best_and_the_next_thing_to_do() -> None:
    with pytest.raises(InputError, match=r"0 of 3 candidates are sharp enough \(best [\d.]+, asked 1e\+09\)\. Try --min-sharpness \d+\."):
        decide([picture(seed) for seed in range(3)], min_sharpness=1e9)


def test_an_absolute_threshold_drops_what_lies_below() -> None:
    soft = blurred(picture(1), 0.8)
    decisions = decide([picture(0), soft, picture(2)], min_sharpness=LOOKER(Frame(0, TIME_BASE, soft)).measured.quality.sharpness + 1)
    assert rules(decisions) == ["kept", "below_min_sharpness", "kept"]


@pytest.mark.slow
def test_decisions_add_up_and_each_has_a_sentence() -> None:
    images = [picture(seed // 2) for seed in range(30)]
    decisions = decide(images, keyframes=5)
    assert len(decisions) == 30
    assert sum(decision.kept for decision in decisions) == 5
    assert all(decision.reason.startswith("kept: " if decision.kept else "dropped") for decision in decisions)
    pruned = [decision for decision in decisions if decision.rule == "pruned"]
    assert sorted(decision.step or 0 for decision in pruned) == list(range(1, len(pruned) + 1))
    assert all(decision.score is not None and decision.neighbours for decision in pruned)


def test_where_nothing_had_to_be_pruned_each_keyframe_is_called_unlike_all_others() -> None:
    images = [picture(0), picture(0), picture(1), picture(2)]
    kept = [decision.reason for decision in decide(images, keyframes=3) if decision.kept]
    assert kept == ["kept: unlike all others"] * 3, "a copy went, but not for the number"
    assert not {decision.reason for decision in decide(images, keyframes=2)} & {"kept: unlike all others"}


def test_frames_that_differ_by_noise_alone_are_copies() -> None:
    noise = np.random.default_rng(0).normal(0, 3, (360, 640, 3))
    noisy = np.clip(picture(1) + noise, 0, 255).astype(np.uint8)
    assert rules(decide([picture(1), noisy, picture(2)])).count("duplicate") == 1


# ---------------------------------------------------------------- few objects


def with_objects(*counts: int | None) -> list[FrameAnalysis]:
    """A look at a scene of its own for each count; None where nobody knows."""
    analyses = looks_of([picture(seed) for seed in range(len(counts))])
    return [
        replace(analysis, detections=None if count is None else (PERSON,) * count) for analysis, count in zip(analyses, counts, strict=True)
    ]


def asking_for(least: int, analyses: Sequence[FrameAnalysis]) -> list[Decision]:
    return select_from(
        analyses, embeddings_of(analyses, EMBEDDER), pruner=PRUNER, keyframes=12, redundant=0.8, min_sharpness=None, min_objects=least
    )[0]


def test_frames_with_fewer_objects_than_asked_go_and_unknown_is_not_few() -> None:
    decisions = asking_for(2, with_objects(2, 1, None, 0, 3))
    assert rules(decisions) == ["kept", "too_few_objects", "kept", "too_few_objects", "kept"]
    assert decisions[1].reason == "dropped: 1 object found in it, fewer than the 2 asked for"
    assert decisions[3].reason == "dropped: no objects found in it, fewer than the 2 asked for"
    assert rules(asking_for(0, with_objects(0, 1, None))) == ["kept"] * 3


@pytest.mark.parametrize(("counts", "advice"), [((1, 2), "Try --min-objects 2"), ((0, 0), "Leave --min-objects out")])
def test_where_no_frame_has_enough_objects_the_most_is_named(counts: tuple[int, int], advice: str) -> None:
    with pytest.raises(InputError, match=rf"0 of 2 candidates show enough objects \(most {counts[1]}, asked 5\)\. {advice}"):
        asking_for(5, with_objects(*counts))


# ---------------------------------------------------------------- whatever the video shows

BLACK, WHITE, FLAT = (np.full((360, 640, 3), level, np.uint8) for level in (0, 255, 128))
SCENES = [picture(seed) for seed in range(4)]
SHOWN = looks_of(
    [BLACK, WHITE, FLAT]
    + [
        change(scene)
        for scene in SCENES
        for change in (np.copy, lambda it: blurred(it, 4), lambda it: dimmed(it, 0.4), lambda it: dimmed(it, 0.1))
    ]
)


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.integers(0, len(SHOWN) - 1), st.booleans()), min_size=1, max_size=25),
    st.integers(1, 8),
    st.sampled_from([None, None, 0.0, 20.0, 1e9]),
)
@settings(max_examples=150, deadline=None)
def test_each_look_has_one_decision_that_can_be_followed(
    shown: list[tuple[int, bool]], keyframes: int, min_sharpness: float | None
) -> None:
    analyses = [
        replace(SHOWN[which], pts=1000 * place, time_s=float(place), detections=(PERSON,) if people else ())
        for place, (which, people) in enumerate(shown)
    ]
    try:
        decisions, told, _ = select_from(
            analyses, embeddings_of(analyses, EMBEDDER), pruner=PRUNER, keyframes=keyframes, redundant=0.8, min_sharpness=min_sharpness
        )
    except InputError:
        assert min_sharpness or all(which == 0 for which, _ in shown), "only what is all black, or less sharp than asked, is refused"
        return
    assert len(decisions) == len(analyses)
    counted = Counter(rules(decisions))
    assert counted["kept"] == min(keyframes, counted["kept"] + counted["pruned"]) >= 1
    pruned = [decision for decision in decisions if decision.rule == "pruned"]
    assert sorted(decision.step or 0 for decision in pruned) == list(range(1, len(pruned) + 1))
    for index, decision in enumerate(decisions):
        assert decision.kept == (decision.rule == "kept") == decision.reason.startswith("kept: ")
        assert decision.reason[-1] != "."
        assert all(0 <= other < len(analyses) and other != index for other in decision.neighbours)
        assert bool(decision.neighbours) >= (decision.rule in {"pruned", "duplicate", "faded"})
        assert (decision.score is not None) == (decision.step is not None) == (decision.rule == "pruned")
        if decision.rule in {"duplicate", "faded"}:
            assert decision.neighbours[0] != index
            assert decisions[decision.neighbours[0]].rule not in {"black", "white", "flat"} or told
    for decision in pruned:  # its neighbours were still there in that round
        assert all(decisions[other].kept or (decisions[other].step or 0) > (decision.step or 0) for other in decision.neighbours)


def test_the_reason_of_a_pruned_frame_names_its_neighbours_by_their_times() -> None:
    decisions = decide([picture(seed) for seed in (1, 2, 3, 4, 5)], keyframes=4)
    ((index, decision),) = [(index, decision) for index, decision in enumerate(decisions) if decision.rule == "pruned"]
    assert decision.step == 1
    assert all(f"0:0{other}.00" in decision.reason for other in decision.neighbours)
    assert set(decision.neighbours) <= {index - 1, index + 1}
    assert f"{decision.score:.3f}" in decision.reason


def test_a_person_between_empty_frames_is_not_pruned() -> None:
    analyses = [
        replace(analysis, detections=(PERSON,) if index == 2 else ())
        for index, analysis in enumerate(looks_of([picture(seed) for seed in range(6)]))
    ]
    decisions, _, _ = select_from(
        analyses, embeddings_of(analyses, EMBEDDER), pruner=PRUNER, keyframes=1, redundant=0.8, min_sharpness=None
    )
    assert [index for index, decision in enumerate(decisions) if decision.kept] == [2]


def test_two_looks_at_the_same_scene_far_apart_are_no_copies() -> None:
    assert rules(decide([picture(1), picture(2), picture(1)])) == ["kept", "kept", "kept"]


@pytest.mark.parametrize("worst_first", [True, False])
def test_of_nothing_but_bad_frames_the_least_bad_kind_is_kept(worst_first: bool) -> None:
    images = [BLACK, WHITE, FLAT] if worst_first else [FLAT, WHITE, BLACK]
    analyses = looks_of(images)
    decisions, told, _ = select_from(
        analyses, embeddings_of(analyses, EMBEDDER), pruner=PRUNER, keyframes=3, redundant=0.8, min_sharpness=None
    )
    assert [decision.kept for decision in decisions] == ([False, False, True] if worst_first else [True, False, False])
    assert told == ["Every frame that was looked at is flat: all of it has nearly the same brightness; the best of them are kept."]


def test_a_threshold_that_hardly_anything_could_meet_gives_no_advice() -> None:
    soft = blurred(picture(1), 30)
    with pytest.raises(InputError, match=r"0 of 2 candidates are sharp enough \(best [01]\.\d, asked 100\)\.$"):
        decide([soft, soft], min_sharpness=100)


# ---------------------------------------------------------------- looks made by hand


def test_a_frame_just_as_sharp_as_asked_is_sharp_enough() -> None:
    assert list(bad_frames([analysis(0, measured=measured(80.0)), analysis(90, measured=measured(79.9))], 80.0)) == [1]


@pytest.mark.parametrize(("place", "dropped"), [(0, False), (1, True), (7, True), (8, False)])
def test_a_pale_copy_is_held_against_three_frames_on_either_side(place: int, dropped: bool) -> None:
    analyses = [analysis(2250 * number) for number in range(9)]
    analyses[4] = analysis(9000, signature=analyses[place].signature, measured=measured(400.0, contrast=0.1))
    assert (4 in bad_frames(analyses, None)) == dropped


def test_the_first_frame_of_all_is_one_of_the_three_before_it() -> None:
    analyses = [analysis(90 * number) for number in range(4)]
    analyses[3] = analysis(270, signature=analyses[0].signature, measured=measured(400.0, contrast=0.1))
    assert bad_frames(analyses, None)[3].neighbours == (0,)


def test_whether_two_frames_show_the_same_view_does_not_depend_on_the_embedder() -> None:
    view, other = analysis(0).view, analysis(90).view
    soft = measured(50.0)  # less than half of what is around it, but no less than a quarter
    analyses = [analysis(0, measured=measured(160.0)), replace(analysis(0, measured=soft), pts=90, vector=other)]
    assert bad_frames(analyses, None)[1].rule == "blurred"
    analyses[1] = replace(analysis(0, measured=soft), pts=90, view=other, vector=view)
    assert bad_frames(analyses, None) == {}


def view_of(*, time_s: float, sharpness: float, cosine: float = 1.0, correlation: float = 1.0) -> FrameAnalysis:
    """A frame so long behind 0:10 that is so much like any with the cosine 1 and the correlation 1."""
    checks = (np.indices((18, 32)) % 2 - 0.5) * 80  # two patterns of which neither says anything about the other
    light = 128 + correlation * checks[0] + (1 - correlation**2) ** 0.5 * checks[1]
    return analysis(
        10_000 + round(1000 * time_s),
        measured=measured(sharpness),
        view=np.array([cosine, (1 - cosine**2) ** 0.5], np.float32),
        signature=np.repeat(np.rint(light)[..., None], 3, axis=2).astype(np.uint8),
    )


@pytest.mark.parametrize(
    ("time_s", "sharpness", "rule"),
    [(0.04, 49, "blurred"), (2.0, 49, "blurred"), (2.04, 49, None), (-2.0, 49, "blurred"), (-2.04, 49, None), (1.0, 50, None)],
)
def test_a_frame_is_blurred_where_the_same_view_is_seen_twice_as_sharp_within_two_seconds(
    time_s: float, sharpness: float, rule: str | None
) -> None:
    frames = sorted([view_of(time_s=0, sharpness=100), view_of(time_s=time_s, sharpness=sharpness)], key=lambda frame: frame.pts)
    soft = 0 if time_s < 0 else 1
    found = bad_frames(frames, None)
    assert {index: decision.rule for index, decision in found.items()} == ({} if rule is None else {soft: rule})
    if rule:
        assert found[soft].neighbours == (1 - soft,)
        assert found[soft].reason == f"dropped: blurred (sharpness {sharpness:.1f}; the same view at 0:10.00 has 100)"


@pytest.mark.parametrize(
    ("cosine", "correlation", "blurred"), [(0.95, 0.9, True), (0.95, 0.1, False), (0.8, 1.0, False), (0.86, 0.9, True), (0.86, 0.6, False)]
)
def test_the_same_view_is_one_of_the_same_colours_and_of_the_same_light_in_the_same_places(
    cosine: float, correlation: float, blurred: bool
) -> None:
    frames = [view_of(time_s=0, sharpness=100), view_of(time_s=1, sharpness=30, cosine=cosine, correlation=correlation)]
    assert set(bad_frames(frames, None)) == ({1} if blurred else set())


@pytest.mark.parametrize(
    ("time_s", "sharpness", "correlation", "blurred"),
    [
        (2.0, 9.9, 0.75, True),
        (-2.0, 9.9, 0.75, True),
        (2.04, 9.9, 0.75, False),
        (1.0, 10.0, 0.75, False),
        (1.0, 9.9, 0.65, False),
        (1.0, 9.9, -0.9, False),
    ],
)
def test_a_frame_is_blurred_where_the_same_shape_is_seen_ten_times_as_sharp_within_two_seconds(
    time_s: float, sharpness: float, correlation: float, blurred: bool
) -> None:
    """Out of focus, a view has other colours at its edges: the embedder takes it for another."""
    sharp, soft = (
        replace(view_of(time_s=0, sharpness=1), measured=measured(100.0, contrast=0.1)),
        replace(view_of(time_s=time_s, sharpness=1, cosine=0.5, correlation=correlation), measured=measured(sharpness, contrast=0.1)),
    )
    frames = sorted([sharp, soft], key=lambda frame: frame.pts)
    found = bad_frames(frames, None)
    assert {index: (decision.rule, decision.neighbours) for index, decision in found.items()} == (
        {int(time_s > 0): ("blurred", (int(time_s < 0),))} if blurred else {}
    )


def test_of_several_frames_of_one_change_of_focus_none_says_how_sharp_it_is_around_the_others() -> None:
    """Encoders put a sync frame into each few frames of it."""
    times_s = [0, 2, 4, 4.05, 4.1, 4.15, 4.2, 6, 8]
    frames = [
        view_of(time_s=time_s, sharpness=8, cosine=0, correlation=0) if 4 <= time_s < 5 else view_of(time_s=time_s, sharpness=100)
        for time_s in times_s
    ]
    found = bad_frames(frames, None)
    assert {index: decision.reason for index, decision in found.items()} == dict.fromkeys(
        range(2, 7), "dropped: out of focus (sharpness 8.0, around it 100)"
    )


def test_any_frame_within_two_seconds_counts_however_many_lie_between() -> None:
    others = [view_of(time_s=0.1 * place, sharpness=60, cosine=0.0) for place in range(1, 12)]
    frames = [view_of(time_s=0, sharpness=100), *others, view_of(time_s=1.5, sharpness=40)]
    assert set(bad_frames(frames, None)) == {12}


def test_a_frame_that_is_dropped_drops_no_other() -> None:
    """Each is less than half as sharp as the one before, and only neighbours lie within two seconds."""
    frames = [view_of(time_s=1.5 * place, sharpness=sharpness) for place, sharpness in enumerate((160, 70, 30, 13))]
    found = bad_frames(frames, None)
    assert {index: decision.neighbours for index, decision in found.items()} == {1: (0,), 3: (2,)}


@pytest.mark.slow
@given(
    st.lists(
        st.tuples(st.sampled_from([0.04, 0.5, 1.0, 2.5]), st.integers(1, 400), st.booleans(), st.sampled_from([0.1, 0.15, 0.2])),
        min_size=1,
        max_size=30,
    )
)
def test_what_a_frame_is_dropped_for_is_not_dropped_for_being_blurred_itself(rows: list[tuple[float, int, bool, float]]) -> None:
    times_s = np.cumsum([gap for gap, *_ in rows]).tolist()
    frames = [
        replace(view_of(time_s=time_s, sharpness=sharpness, cosine=float(same)), measured=measured(sharpness, contrast=contrast))
        for time_s, (_, sharpness, same, contrast) in zip(times_s, rows, strict=True)
    ]
    found = bad_frames(frames, None)
    assert len(found) < len(frames), "the sharpest is never blurred, the fullest never pale"
    for decision in found.values():
        assert all(found[other].rule == "faded" for other in decision.neighbours if other in found)


@pytest.mark.parametrize(("mine", "its", "rule"), [(40, 100, "blurred"), (50, 100, None), (100, 40, None)])
def test_a_soft_frame_goes_for_the_settled_one_that_was_found_for_it_wherever_that_lies(mine: float, its: float, rule: str | None) -> None:
    """The settled frame shows the same shot, not the same view."""
    soft, settled = analysis(0, measured=measured(mine)), analysis(3090, measured=measured(its), stands_in_for=0)
    found = bad_frames([soft, settled], None)
    assert {index: decision.rule for index, decision in found.items()} == ({} if rule is None else {0: rule})
    if rule:
        assert found[0].reason == "dropped: blurred (sharpness 40.0; the same shot at 0:03.09 has 100)"


@pytest.mark.parametrize(("level", "nothing"), [(4, True), (5, False)])
def test_a_picture_without_a_brighter_cell_than_four_shows_nothing(level: int, nothing: bool) -> None:
    assert shows_nothing_at_all([analysis(0, signature=np.full((18, 32, 3), level, np.uint8))]) is nothing


def test_a_single_black_frame_is_called_the_only_one() -> None:
    with pytest.raises(InputError, match=r"^The only frame that was looked at is black: the video shows nothing to keep\.$"):
        decide([BLACK])


@pytest.mark.parametrize(("best", "advice"), [(1.9, None), (2.0, 1), (50.0, 25)])
def test_half_of_the_best_sharpness_is_advised_where_that_is_any(best: float, advice: int | None) -> None:
    analyses = [analysis(0, measured=measured(best)), analysis(90, measured=measured(best / 2))]
    with pytest.raises(InputError) as caught:
        select_from(analyses, by_picture_only(analyses), pruner=PRUNER, keyframes=1, redundant=0.8, min_sharpness=100.0)
    sentence = f"0 of 2 candidates are sharp enough (best {best}, asked 100)."
    assert str(caught.value) == (sentence if advice is None else f"{sentence} Try --min-sharpness {advice}.")


@pytest.mark.parametrize(("levels", "same"), [(0, True), (4, True), (5, False), (200, False)])
def test_two_pictures_are_the_same_below_five_levels_in_the_cell_that_differs_most(levels: int, same: bool) -> None:
    dark = np.zeros((18, 32, 3), np.uint8)
    light = dark.copy()
    light[3, 7, 1] = levels
    assert same_picture(analysis(0, signature=dark), analysis(1, signature=light)) is same
    assert same_picture(analysis(0, signature=light), analysis(1, signature=dark)) is same


def test_a_pruner_sees_the_columns_of_the_chosen_rows_alone() -> None:
    analyses = [analysis(0), analysis(30, detections=(PERSON,), in_transition=True), analysis(60, detections=None), analysis(90)]
    embeddings = Embeddings(np.eye(4, dtype=np.float32), 2 * np.eye(4, dtype=np.float32), "test")
    frames = prunable(analyses, embeddings, [1, 2], text_weight=0.25, relevance=[0.1, 0.2, 0.3, 0.4])
    assert frames.embeddings.image.tolist() == [[0, 1, 0, 0], [0, 0, 1, 0]]
    assert frames.embeddings.text.tolist() == [[0, 2, 0, 0], [0, 0, 2, 0]]
    assert (frames.times_s, frames.has_people, frames.sharpness) == ([0.03, 0.06], [True, False], [130, 160])
    assert (frames.in_transition, frames.text_weight, frames.relevance) == ([True, False], 0.25, [0.2, 0.3])


def test_a_pruner_that_takes_frames_as_they_are_gets_bad_ones_too_and_says_why_they_stay() -> None:
    analyses = [analysis(0, measured=measured(0.0, contrast=0.0)), analysis(1, signature=analysis(0).signature), analysis(2)]
    decisions, told, _ = select_from(
        analyses, by_picture_only(analyses), pruner=NoPruning(None), keyframes=3, redundant=0.8, min_sharpness=1e9
    )
    assert [decision.reason for decision in decisions] == ["kept: as the sampler gave it"] * 3
    assert told == []


def test_only_texts_that_are_not_known_are_embedded_each_once() -> None:
    class Texts:
        name, capabilities = "texts", EmbedderCapabilities(identity="texts of these weights")
        asked: tuple[str, ...] = ()

        def embed_texts(self, texts: Sequence[str]) -> Vectors:
            self.asked += tuple(texts)
            return np.array([[len(text), 0] for text in texts], np.float32).reshape(-1, 2)

    embedder: Any = Texts()
    analyses = [analysis(0), analysis(1, detections=(PERSON,)), analysis(2, detections=None), analysis(3, detections=(PERSON,))]
    known = {"Nothing.": np.array([0, 1], np.float32)}
    made = embeddings_of(analyses, embedder, known)
    assert embedder.asked == ("person at the left (90%).",)
    assert made.text.tolist() == [[0, 1], [25, 0], [0, 1], [25, 0]]
    assert made.image.tolist() == [one.vector.tolist() for one in analyses]
    assert made.model == "texts of these weights"
    assert list(known) == ["Nothing."], "what is known is the caller's"
    assert embeddings_of(analyses[:1], ClassicEmbedder(None)).model == "classic"


def test_frames_that_are_not_sharp_enough_would_not_be_kept() -> None:
    analyses = [analysis(0, measured=measured(100.0)), analysis(90, measured=measured(60.0))]
    assert [one.pts for one in likely_keyframes(analyses, keyframes=2, min_sharpness=None, redundant=0.9)] == [0, 90]
    assert [one.pts for one in likely_keyframes(analyses, keyframes=2, min_sharpness=70.0, redundant=0.9)] == [0]
    assert likely_keyframes(analyses, keyframes=2, min_sharpness=1000.0, redundant=0.9) == []


def scrolled_page() -> list[FrameAnalysis]:
    """A page that stops four times and scrolls in between: frames 0, 1, 5, 6, 10, 11, 15 and 16 stand still."""
    page = np.concatenate([picture(seed) for seed in (1, 2, 3, 4)])
    tops = [0, *(top for stop in (0, 360, 720) for top in (stop, stop + 90, stop + 180, stop + 270, stop + 360)), 1080]
    moving = {place for place, top in enumerate(tops) if top % 360}
    frames = looks_of([page[top : top + 360] for top in tops])
    return [replace(frame, is_still=place not in moving) for place, frame in enumerate(frames)]


def chosen(frames: Sequence[FrameAnalysis], keyframes: int) -> list[int]:
    # far apart in time: whether a frame is on its way is not what is tested
    frames = [replace(frame, time_s=10.0 * place) for place, frame in enumerate(frames)]
    decisions, _, _ = select_from(
        frames, embeddings_of(frames, EMBEDDER), pruner=PRUNER, keyframes=keyframes, redundant=0.8, min_sharpness=None
    )
    return [place for place, decision in enumerate(decisions) if decision.kept]


def test_where_a_page_scrolls_the_frames_at_which_it_stops_are_kept() -> None:
    frames = scrolled_page()
    stops = {place for place, frame in enumerate(frames) if frame.is_still}
    assert set(chosen(frames, 4)) <= stops
    assert len({place // 5 for place in chosen(frames, 4)}) == 4, "each of them"
    assert not set(chosen([replace(frame, is_still=False) for frame in frames], 4)) <= stops


@pytest.mark.parametrize("keyframes", [1, 2, 3, 4, 5, 9, 13])
def test_as_many_keyframes_as_are_asked_for_are_kept_where_pages_stand_still(keyframes: int) -> None:
    kept = chosen(scrolled_page(), keyframes)
    assert len(kept) == keyframes
    if keyframes >= 4:
        assert {place // 5 for place in kept if place % 5 in (0, 1)} == {0, 1, 2, 3}


@pytest.mark.parametrize("keyframes", [None, 3])
def test_slides_beside_a_speaker_are_kept_once_each(keyframes: int | None) -> None:
    pages = [slide(*LINES), slide(*LINES[:2], OTHERS[0]), slide(OTHERS[1], *LINES[1:])]
    images = [with_speaker(page, number) for number, page in enumerate(page for page in pages for _ in range(4))]
    frames = [replace(frame, time_s=5.0 * number) for number, frame in enumerate(looks_of(images))]
    decisions, _, _ = select_from(
        frames, embeddings_of(frames, EMBEDDER), pruner=PRUNER, keyframes=keyframes, redundant=0.88, min_sharpness=None
    )
    kept = [number for number, decision in enumerate(decisions) if decision.kept]
    assert [number // 4 for number in kept] == [0, 1, 2]


def test_where_less_than_a_third_stands_still_pictures_are_not_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[int] = []
    count = picture_count.count_pictures
    monkeypatch.setattr(picture_count, "count_pictures", lambda *given, **named: counted.append(1) or count(*given, **named))
    frames = [replace(frame, is_still=False) for frame in scrolled_page()[:12]]
    for still, expected in ((3, 0), (4, 1)):
        chosen([replace(frame, is_still=place < still) for place, frame in enumerate(frames)], 4)
        assert len(counted) == expected
