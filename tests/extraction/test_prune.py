"""Algorithm 1 against the paper: a plain O(n²) reading of its pseudo-code is the reference."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.extraction.prune import Algorithm1, Removal, prune
from vip.protocols import Prunable
from vip.records import Embeddings, Vectors


def unit(rows: np.ndarray) -> Vectors:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.where(lengths > 0, rows / np.where(lengths > 0, lengths, 1), 1 / rows.shape[1] ** 0.5).astype(np.float32)


def embeddings(image: Sequence[Sequence[float]], text: Sequence[Sequence[float]] | None = None) -> Embeddings:
    rows = np.array(image, np.float64)
    return Embeddings(unit(rows), unit(np.array(text, np.float64)) if text is not None else np.ones((len(rows), 1), np.float32), "test")


def as_the_paper_says(vectors: Embeddings, has_people: Sequence[bool], keep: int, text_weight: float) -> list[Removal]:
    """while len(k) > f: score every frame against its neighbours, remove the argmax; people only beside people."""
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
        lifted = not any(allowed)
        place = max((p for p in range(len(remaining)) if lifted or allowed[p]), key=lambda p: (scores[p], -p))
        around = tuple(remaining[other] for other in (place - 1, place + 1) if 0 <= other < len(remaining))
        removals.append(Removal(len(removals) + 1, remaining[place], scores[place], around, lifted))
        del remaining[place]
    return removals


@st.composite
def problems(draw: st.DrawFn) -> tuple[Embeddings, list[bool], int, float]:
    count = draw(st.integers(1, 24))
    few = st.sampled_from([-1.0, 0.0, 0.5, 1.0])  # few values make many ties
    rows = st.lists(st.lists(few, min_size=3, max_size=3), min_size=count, max_size=count)
    people = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    return embeddings(draw(rows), draw(rows)), people, draw(st.integers(1, count + 2)), draw(st.sampled_from([0.0, 0.3, 0.5, 1.0]))


@given(problems())
@settings(max_examples=400, deadline=None)
def test_prune_does_what_the_paper_says_ties_included(problem: tuple[Embeddings, list[bool], int, float]) -> None:
    vectors, people, keep, text_weight = problem
    assert prune(vectors, people, keep=keep, text_weight=text_weight) == as_the_paper_says(vectors, people, keep, text_weight)


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


def test_prune_drops_a_person_beside_a_person() -> None:
    vectors = embeddings([[0, 1], [1, 0], [1, 0], [0, 1]])
    (removal,) = prune(vectors, [False, True, True, False], keep=3)
    assert removal.index in {1, 2}
    assert not removal.lifted_people_rule


def test_the_people_rule_is_lifted_where_it_leaves_nothing_to_drop() -> None:
    vectors = embeddings([[1, 0], [0, 1]])
    removals = prune(vectors, [True, False], keep=1)
    assert [removal.lifted_people_rule for removal in removals] == [False]  # the empty frame may go
    alone = prune(embeddings([[1, 0], [1, 0], [0, 1], [1, 1]]), [True, False, True, False], keep=1)
    assert [removal.index for removal in alone if removal.lifted_people_rule] == []  # two people become neighbours in time
    stuck = prune(embeddings([[1, 0], [0, 1]]), [True, False], keep=1)
    assert stuck[0].index == 1


def test_text_can_outweigh_the_picture() -> None:
    vectors = embeddings([[1, 0], [1, 0], [0, 1]], [[1, 0], [0, 1], [0, 1]])
    assert prune(vectors, [False] * 3, keep=2, text_weight=0.0)[0].index == 0
    assert prune(vectors, [False] * 3, keep=2, text_weight=1.0)[0].index == 2


def test_a_hundred_thousand_candidates_are_no_obstacle() -> None:
    rng = np.random.default_rng(5)
    rows = unit(rng.standard_normal((100_000, 8)))
    removals = prune(Embeddings(rows, np.ones((100_000, 1), np.float32), "test"), rng.random(100_000) < 0.3, keep=12)
    assert len(removals) == 99_988


@pytest.mark.parametrize(("flags", "keep"), [([False], 1), ([False] * 2, 0)])
def test_arguments_that_do_not_fit_are_refused(flags: list[bool], keep: int) -> None:
    with pytest.raises(ValueError, match="vectors"):
        prune(embeddings([[1, 0], [0, 1]]), flags, keep=keep)


@given(problems())
@settings(max_examples=100, deadline=None)
def test_the_pruner_logs_what_algorithm_1_does(problem: tuple[Embeddings, list[bool], int, float]) -> None:
    vectors, people, keep, _ = problem
    frames = Prunable(vectors, [float(second) for second in range(len(vectors))], people)
    thinned = Algorithm1(None).prune(frames, keep=keep, redundant=0.8)
    removals = prune(vectors, people, keep=keep)
    assert [(drop.index, drop.step, drop.score, drop.neighbours) for drop in thinned.drops] == [
        (removal.index, removal.step, removal.score, removal.neighbours) for removal in removals
    ]
    whole = prune(vectors, people, keep=1)
    assert dict(thinned.curve) == {len(vectors) - removal.step + 1: removal.score for removal in whole}


@given(problems(), st.sampled_from([-1.0, 0.0, 0.4, 0.8, 1.0]))
@settings(max_examples=200, deadline=None)
def test_auto_drops_while_the_next_is_redundant_and_lifts_no_rule(
    problem: tuple[Embeddings, list[bool], int, float], redundant: float
) -> None:
    vectors, people, _, _ = problem
    frames = Prunable(vectors, [0.0] * len(vectors), people)
    drops = Algorithm1(None).prune(frames, keep=None, redundant=redundant).drops
    whole = prune(vectors, people, keep=1)
    assert len(drops) < len(vectors)
    assert all(drop.score >= redundant for drop in drops)
    if len(drops) < len(whole):
        following = whole[len(drops)]
        assert following.score < redundant or following.lifted_people_rule


def test_links_of_long_vectors_are_the_dot_products_to_the_last_bit() -> None:
    """Else ties would be broken otherwise than by the plain reading."""
    rng = np.random.default_rng(3)
    vectors = Embeddings(unit(rng.standard_normal((50, 1544))), unit(rng.standard_normal((50, 256))), "test")
    assert prune(vectors, [False] * 50, keep=1) == as_the_paper_says(vectors, [False] * 50, 1, 0.5)
