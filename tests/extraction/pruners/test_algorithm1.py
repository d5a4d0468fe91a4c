"""Algorithm 1 against the paper: a plain O(n²) reading of its pseudo-code is the reference; and that each scene keeps a frame."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles, kept, prunable
from tests.extraction.test_spread import frames as changing
from vip.errors import BackendError
from vip.extraction.pruners.algorithm1 import OWN_PICTURE, Algorithm1, Removal, prune
from vip.extraction.scenes import representatives
from vip.protocols import DistinctPictures
from vip.records import Embeddings, Vectors


def unit(rows: np.ndarray) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, rows / np.where(lengths > 0, lengths, 1), 1 / rows.shape[1] ** 0.5).astype(np.float32)


def embeddings(image: Sequence[Sequence[float]], text: Sequence[Sequence[float]] | None = None) -> Embeddings:
    rows = np.array(image, np.float64)
    return Embeddings(unit(rows), unit(np.array(text, np.float64)) if text is not None else np.ones((len(rows), 1), np.float32), "test")


def as_the_paper_says(
    vectors: Embeddings, has_people: Sequence[bool], keep: int, text_weight: float, held: Sequence[bool] | None = None
) -> list[Removal]:
    """while len(k) > f: score every frame against its neighbours, remove the argmax; people only beside people, what is held last."""
    held = held or [False] * len(vectors)
    remaining = list(range(len(vectors)))
    removals = []
    while len(remaining) > keep:
        scores, allowed = [], []
        for place, frame in enumerate(remaining):
            around = [remaining[other] for other in (place - 1, place + 1) if 0 <= other < len(remaining)]
            links = []
            for other in around:
                first, second = sorted((frame, other))
                image = float(vectors.image[first] @ vectors.image[second])
                text = float(vectors.text[first] @ vectors.text[second])
                links.append((1 - text_weight) * image + text_weight * text)
            scores.append(sum(links) / len(links) if links else 0.0)
            allowed.append(not has_people[frame] or any(has_people[other] for other in around))
        loose = [p for p, frame in enumerate(remaining) if not held[frame]]
        may_go = [p for p in loose if allowed[p]] or loose or range(len(remaining))
        place = max(may_go, key=lambda p: (scores[p], -p))
        around = tuple(remaining[other] for other in (place - 1, place + 1) if 0 <= other < len(remaining))
        removals.append(Removal(len(removals) + 1, remaining[place], scores[place], around))
        del remaining[place]
    return removals


@st.composite
def problems(draw: st.DrawFn) -> tuple[Embeddings, list[bool], int, float]:
    count = draw(st.integers(1, 24))
    few = st.sampled_from([-1.0, 0.0, 0.5, 1.0])  # few values make many ties
    rows = st.lists(st.lists(few, min_size=3, max_size=3), min_size=count, max_size=count)
    people = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return embeddings(draw(rows), draw(rows)), people, draw(st.integers(1, count + 2)), draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))


@pytest.mark.slow
@given(problems())
@settings(max_examples=400, deadline=None)
def test_prune_does_what_the_paper_says_ties_included(problem: tuple[Embeddings, list[bool], int, float]) -> None:
    vectors, people, keep, text_weight = problem
    assert prune(vectors, people, keep=keep, text_weight=text_weight) == as_the_paper_says(vectors, people, keep, text_weight)


@pytest.mark.slow
@given(problems(), st.data())
@settings(max_examples=200, deadline=None)
def test_what_is_held_goes_last_and_all_else_as_the_paper_says(
    problem: tuple[Embeddings, list[bool], int, float], data: st.DataObject
) -> None:
    vectors, people, keep, text_weight = problem
    held = data.draw(st.lists(st.booleans(), min_size=len(vectors), max_size=len(vectors)))
    removals = prune(vectors, people, keep=keep, held=held, text_weight=text_weight)
    assert removals == as_the_paper_says(vectors, people, keep, text_weight, held)
    order = [held[removal.index] for removal in removals]
    assert order == sorted(order), "no held frame goes while another is left"


@pytest.mark.slow
@given(problems())
@settings(max_examples=100, deadline=None)
def test_prune_drops_each_frame_at_most_once_and_keeps_what_was_asked_for(problem: tuple[Embeddings, list[bool], int, float]) -> None:
    vectors, people, keep, text_weight = problem
    removals = prune(vectors, people, keep=keep, text_weight=text_weight)
    assert len({removal.index for removal in removals}) == len(removals) == max(0, len(vectors) - keep)
    assert [removal.step for removal in removals] == list(range(1, len(removals) + 1))


def test_the_frame_most_like_both_neighbours_goes_first() -> None:
    vectors = embeddings([[1, 0], [1, 0.1], [1, 0.2], [0, 1]])
    (removal,) = prune(vectors, [False] * 4, keep=3)
    assert removal.index == 1
    assert removal.neighbours == (0, 2)


def test_an_end_frame_is_judged_by_its_one_neighbour() -> None:
    (removal,) = prune(embeddings([[1, 0], [1, 0], [0, 1]]), [False] * 3, keep=2)
    assert removal.index == 0
    assert removal.neighbours == (1,)


def test_prune_keeps_a_person_between_empty_frames() -> None:
    vectors = embeddings([[1, 0], [1, 0], [1, 0], [0, 1]])
    removed = [removal.index for removal in prune(vectors, [False, True, False, False], keep=2)]
    assert 1 not in removed


@pytest.mark.parametrize(("others", "goes"), [((), 1), ((1,), 2), ((3,), 2), ((1, 3), 2), ((0,), 1), ((4,), 1), ((0, 4), 1)])
def test_a_person_may_go_where_the_frame_before_or_behind_shows_people_too_and_not_for_one_farther_away(
    others: tuple[int, ...], goes: int
) -> None:
    """The third frame is most like its neighbours, and the second next to it."""
    frames = at_angles([0, 20, 21, 30, 60])
    (removal,) = prune(frames.embeddings, [row in (2, *others) for row in range(5)], keep=4)
    assert removal.index == goes


def test_prune_drops_a_person_beside_a_person() -> None:
    vectors = embeddings([[0, 1], [1, 0], [1, 0], [0, 1]])
    (removal,) = prune(vectors, [False, True, True, False], keep=3)
    assert removal.index in {1, 2}


@pytest.mark.slow
@given(problems(), st.sampled_from([None, 0.0, 0.8]))
@settings(max_examples=200, deadline=None)
def test_a_person_goes_only_beside_another_person(problem: tuple[Embeddings, list[bool], int, float], redundant: float | None) -> None:
    vectors, people, keep, text_weight = problem
    frames = prunable(vectors, people=people, text_weight=text_weight)
    chosen = Algorithm1(None).prune(frames, keep=keep if redundant is None else None, redundant=redundant or 0.8).drops
    for drop in (*prune(vectors, people, keep=keep, text_weight=text_weight), *chosen):
        assert not people[drop.index] or any(people[other] for other in drop.neighbours)


def test_text_can_outweigh_the_picture() -> None:
    vectors = embeddings([[1, 0], [1, 0], [0, 1]], [[1, 0], [0, 1], [0, 1]])
    assert prune(vectors, [False] * 3, keep=2, text_weight=0.0)[0].index == 0
    assert prune(vectors, [False] * 3, keep=2, text_weight=1.0)[0].index == 2


@pytest.mark.slow
def test_a_hundred_thousand_candidates_are_no_obstacle() -> None:
    rng = np.random.default_rng(5)
    rows = unit(rng.standard_normal((100_000, 8)))
    removals = prune(Embeddings(rows, np.ones((100_000, 1), np.float32), "test"), rng.random(100_000) < 0.3, keep=12)
    assert len(removals) == 99_988


@pytest.mark.parametrize(("flags", "held", "keep"), [([False], None, 1), ([False] * 2, None, 0), ([False] * 2, [True], 1)])
def test_arguments_that_do_not_fit_are_refused(flags: list[bool], held: list[bool] | None, keep: int) -> None:
    with pytest.raises(ValueError, match="vectors"):
        prune(embeddings([[1, 0], [0, 1]]), flags, keep=keep, held=held)


# ---------------------------------------------------------------- the pruner


@pytest.mark.slow
@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_pruner_keeps_a_frame_a_scene_and_logs_how_algorithm_1_drops_the_others(
    problem: tuple[Embeddings, list[bool], int, float],
) -> None:
    vectors, people, keep, text_weight = problem
    frames = prunable(vectors, people=people, text_weight=text_weight)
    thinned = Algorithm1(None).prune(frames, keep=keep, redundant=0.8)
    stand_for = representatives(frames, min(keep, len(vectors)))
    removals = prune(vectors, people, keep=keep, held=[row in stand_for for row in range(len(vectors))], text_weight=text_weight)
    assert [(drop.index, drop.step, drop.score, drop.neighbours) for drop in thinned.drops] == [
        (removal.index, removal.step, removal.score, removal.neighbours) for removal in removals
    ]
    assert kept(frames, [drop.index for drop in thinned.drops]) == sorted(stand_for) == sorted(thinned.reasons)


@pytest.mark.slow
@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_curve_is_that_of_the_paper_whatever_is_kept(problem: tuple[Embeddings, list[bool], int, float]) -> None:
    vectors, people, keep, text_weight = problem
    thinned = Algorithm1(None).prune(prunable(vectors, people=people, text_weight=text_weight), keep=keep, redundant=0.8)
    whole = as_the_paper_says(vectors, people, 1, text_weight)
    assert dict(thinned.curve) == {len(vectors) - removal.step + 1: removal.score for removal in whole}


@pytest.mark.slow
@given(problems(), st.sampled_from([-1.0, 0.0, 0.4, 0.8, 1.0]))
@settings(max_examples=200, deadline=None)
def test_auto_keeps_as_many_as_the_paper_leaves_where_the_next_is_not_redundant(
    problem: tuple[Embeddings, list[bool], int, float], redundant: float
) -> None:
    vectors, people, _, text_weight = problem
    frames = prunable(vectors, people=people, text_weight=text_weight)
    drops = Algorithm1(None).prune(frames, keep=None, redundant=redundant).drops
    whole = as_the_paper_says(vectors, people, 1, text_weight)
    assert all(removal.score >= redundant for removal in whole[: len(drops)])
    assert all(removal.score < redundant for removal in whole[len(drops) : len(drops) + 1])
    assert drops == Algorithm1(None).prune(frames, keep=len(vectors) - len(drops), redundant=redundant).drops


def test_a_short_scene_between_two_that_it_is_a_little_like_is_kept() -> None:
    """Algorithm 1 alone drops it before the second of two frames that show the same."""
    frames = at_angles([-100, 0, 48, 98, 200, 204, 300])
    assert [removal.index for removal in prune(frames.embeddings, frames.has_people, keep=6)] == [2]
    assert [drop.index for drop in Algorithm1(None).prune(frames, keep=6, redundant=0.8).drops] in ([4], [5])


def test_each_keyframe_says_which_scene_it_stands_for() -> None:
    thinned = Algorithm1(None).prune(at_angles([0, 2, 4, 90, 150, 152]), keep=3, redundant=0.8)
    assert {reason for row, reason in thinned.reasons.items() if row < 3} == {"kept: stands for the scene from 0:00.00 to 0:02.00"}
    assert thinned.reasons[3] == "kept: unlike those beside it"
    assert {reason for row, reason in thinned.reasons.items() if row > 3} == {"kept: stands for the scene from 0:04.00 to 0:05.00"}


def test_a_slide_for_which_one_frame_stands_is_a_picture_of_its_own() -> None:
    """Of the frames 1 and 3 others stand for the picture; frame 4 moves and stands for one too, and 5 shows none of its own."""
    slides = DistinctPictures(number=[0, 0, 1, 1, 2, 2], stand_for=[0, 2, 4], spare=frozenset({1, 3}))
    frames = replace(at_angles([0, 2, 40, 42, 80, 120]), pictures=slides)
    assert Algorithm1(None).prune(frames, keep=4, redundant=0.8).reasons == {
        0: OWN_PICTURE,
        2: OWN_PICTURE,
        4: OWN_PICTURE,
        5: "kept: unlike those beside it",
    }


def test_a_keyframe_that_fills_a_long_gap_says_so_and_the_others_which_scene_they_stand_for() -> None:
    """Of 40 seconds the first eight show nearly the same; behind them each second changes something, and one turns a little."""
    signatures = changing(40, alike=8).signatures
    angles = [0, 15, 30, 45, 60, 75, 88, 103, *[160] * 15, 169, *[160] * 16]
    frames = replace(at_angles(angles), signatures=signatures)
    thinned = Algorithm1(None).prune(frames, keep=5, redundant=0.9)
    assert thinned.reasons == {
        0: "kept: stands for the scene from 0:00.00 to 0:01.00",
        2: "kept: stands for the scene from 0:02.00 to 0:03.00",
        4: "kept: stands for the scene from 0:04.00 to 0:05.00",
        8: "kept: stands for the scene from 0:08.00 to 0:39.00",
        23: "kept: nothing else shows the changes from 0:08.00 to 0:39.00",
    }
    assert kept(frames, [drop.index for drop in thinned.drops]) == [*thinned.reasons]
    assert "nothing else" not in str(Algorithm1(None).prune(frames, keep=3, redundant=0.9).reasons)


def test_a_keyframe_for_which_one_of_two_alike_goes_says_that_it_is_unlike_those_beside_it() -> None:
    """A quarter of an hour turns slowly, and each of the last frames far more; four scenes would show only one of these."""
    frames = replace(at_angles([*range(0, 100, 4), 130, 160, 190]), times_s=[*range(0, 1000, 40), 999, 999.1, 999.2])
    assert sorted(representatives(frames, 4)) == [0, 8, 17, 25]
    assert Algorithm1(None).prune(frames, keep=4, redundant=0.99).reasons == {
        0: "kept: stands for the scene from 0:00.00 to 4:40.00",
        17: "kept: stands for the scene from 10:40.00 to 16:00.00",
        25: "kept: stands for the scene from 16:39.00 to 16:39.20",
        27: "kept: unlike those beside it",
    }


def test_of_no_frames_none_is_dropped() -> None:
    assert list(Algorithm1(None).prune(at_angles([]), keep=3, redundant=0.8).drops) == []
    assert list(Algorithm1(None).prune(at_angles([]), keep=None, redundant=0.8).drops) == []


def test_links_of_long_vectors_are_the_dot_products_to_the_last_bit() -> None:
    """Else ties would be broken otherwise than by the plain reading."""
    rng = np.random.default_rng(3)
    vectors = Embeddings(unit(rng.standard_normal((50, 1544))), unit(rng.standard_normal((50, 256))), "test")
    assert prune(vectors, [False] * 50, keep=1) == as_the_paper_says(vectors, [False] * 50, 1, 0.5)


@given(degrees=st.lists(st.floats(0, 170), min_size=1, max_size=20), keep=st.integers(1, 20))
def test_plain_is_the_algorithm_of_the_paper_and_nothing_else(degrees: list[float], keep: int) -> None:
    frames = at_angles(degrees)
    wanted = as_the_paper_says(frames.embeddings, frames.has_people, min(keep, len(frames)), frames.text_weight)
    done = Algorithm1("plain").prune(frames, keep=keep, redundant=0.9)
    assert [(drop.index, drop.step) for drop in done.drops] == [(removal.index, removal.step) for removal in wanted]
    assert done.reasons == {}


def test_another_detail_than_plain_is_refused() -> None:
    with pytest.raises(BackendError, match="algorithm1:plain"):
        Algorithm1("odd")


def test_auto_keeps_the_frame_that_stands_for_each_picture_and_says_which_shows_the_others() -> None:
    found = DistinctPictures([0, 0, 1, 1, 0], [1, 2], curve=[(2, 0.5), (3, 0.9)])
    frames = replace(at_angles([0, 1, 2, 3, 1]), pictures=found)
    thinned = Algorithm1(None).prune(frames, keep=None, redundant=0.8)
    assert kept(frames, [drop.index for drop in thinned.drops]) == [1, 2]
    assert {drop.index: drop.reason.split("; ")[1] for drop in thinned.drops} == {
        0: "0:01.00 shows this picture",
        3: "0:02.00 shows this picture",
        4: "0:01.00 shows this picture",
    }
    assert list(thinned.curve) == [(2, 0.5), (3, 0.9)]


def test_a_number_that_is_asked_for_goes_by_no_picture_that_does_not_stand_still() -> None:
    plain = at_angles([0, 40, 41, 80])
    counted = replace(plain, pictures=DistinctPictures([0, 0, 0, 0], [0]))
    assert Algorithm1(None).prune(counted, keep=3, redundant=0.8).drops == Algorithm1(None).prune(plain, keep=3, redundant=0.8).drops
