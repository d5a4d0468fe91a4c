"""Scenes against the best of all divisions, found by trying every one; and which frame stands for a scene."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.extraction.pruning import at_angles, prunable
from vip.extraction import scenes as module
from vip.extraction.scenes import (
    BARS_SHARE,
    NEARLY_AS_TYPICAL,
    SHARPNESS_SHARE,
    TONES_SHARE,
    representatives,
    scenes,
    with_source,
)
from vip.records import Embeddings, Vectors

NO_TEXT = 1


def unit(rows: Sequence[Sequence[float]] | np.ndarray) -> Vectors:
    made = np.asarray(rows, np.float64)
    return np.asarray(made / np.linalg.norm(made, axis=1, keepdims=True), np.float32)


def embedded(vectors: Vectors) -> Embeddings:
    return Embeddings(vectors, np.ones((len(vectors), NO_TEXT), np.float32), "test")


@st.composite
def films(draw: st.DrawFn, most: int = 30) -> tuple[Vectors, list[float]]:
    """Vectors of few directions, with many that are equal, and increasing times."""
    count = draw(st.integers(1, most))
    few = st.sampled_from([0.0, 0.5, 1.0])
    rows = draw(st.lists(st.tuples(few, few, few), min_size=count, max_size=count))
    gaps = draw(st.lists(st.sampled_from([0.04, 1.0, 2.5, 60.0]), min_size=count, max_size=count))
    return unit([(*row, 0.1) for row in rows]), np.cumsum(gaps).tolist()


def weights_of(times_s: Sequence[float]) -> list[float]:
    """Square root of the time that each stands for: half of the way to either neighbour, as far again where there is none."""
    spans = []
    for row in range(len(times_s)):
        before = times_s[row] - times_s[row - 1] if row > 0 else None
        after = times_s[row + 1] - times_s[row] if row + 1 < len(times_s) else None
        gaps = [gap for gap in (before, after) if gap is not None] or [1.0]
        spans.append(sum(gaps) / len(gaps))
    return [span**0.5 for span in spans]


def unlikeness(vectors: Vectors, times_s: Sequence[float], division: Iterable[range]) -> float:
    """The formula, term by term."""
    weights = weights_of(times_s)
    total = 0.0
    for scene in division:
        mass = sum(weights[i] for i in scene)
        total += mass - sum(weights[i] * weights[j] * float(vectors[i] @ vectors[j]) for i in scene for j in scene) / mass
    return total


def divisions(rows: int, count: int) -> Iterable[list[range]]:
    for cuts in combinations(range(1, rows), count - 1):
        yield [range(a, b) for a, b in pairwise([0, *cuts, rows])]


@pytest.mark.slow
@given(films(), st.integers(1, 40))
def test_scenes_hold_every_row_once_in_order_and_are_as_many_as_asked(film: tuple[Vectors, list[float]], count: int) -> None:
    found = scenes(*film, count)
    assert [row for scene in found for row in scene] == list(range(len(film[0])))
    assert len(found) == min(count, len(film[0]))
    assert all(len(scene) > 0 for scene in found)


@pytest.mark.slow
@given(films(most=8), st.data())
@settings(max_examples=150)
def test_no_other_division_has_scenes_that_are_more_alike_inside(film: tuple[Vectors, list[float]], data: st.DataObject) -> None:
    vectors, times_s = film
    count = data.draw(st.integers(1, len(vectors)))
    best = min(unlikeness(vectors, times_s, division) for division in divisions(len(vectors), count))
    assert unlikeness(vectors, times_s, scenes(vectors, times_s, count)) == pytest.approx(best, abs=1e-4)


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8))
def test_rows_of_equal_frames_are_found_as_scenes(lengths: list[int]) -> None:
    vectors = np.repeat(np.eye(len(lengths), dtype=np.float32), lengths, axis=0)
    found = scenes(vectors, [float(row) for row in range(len(vectors))], len(lengths))
    assert [len(scene) for scene in found] == lengths


def test_a_picture_that_comes_back_is_another_scene() -> None:
    found = scenes(at_angles([0, 0, 90, 90, 0, 0]).embeddings.image, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0], 3)
    assert found == [range(0, 2), range(2, 4), range(4, 6)]


def test_frames_close_together_weigh_less_than_the_time_that_few_show() -> None:
    """Two dozen frames of one second, drifting, against two long shots that differ less."""
    degrees = [*np.linspace(0, 40, 24), 100.0, 130.0]
    crowded = [*np.linspace(0, 1, 24), 31.0, 91.0]
    vectors = at_angles(degrees).embeddings.image
    assert scenes(vectors, crowded, 3) == [range(24), range(24, 25), range(25, 26)]
    assert scenes(vectors, [float(second) for second in range(26)], 3)[-1] == range(24, 26)


@pytest.mark.slow
@given(films(most=40), st.integers(1, 12))
def test_with_more_frames_than_can_be_tried_there_are_as_many_scenes_and_nothing_is_lost(
    film: tuple[Vectors, list[float]], count: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ATOMS", 6)
        patch.setattr(module, "MOST_JOINED", 15)
        found = scenes(*film, count)
    assert [row for scene in found for row in scene] == list(range(len(film[0])))
    assert len(found) == min(count, len(film[0]))


@pytest.mark.slow
@given(st.lists(st.integers(3, 20), min_size=2, max_size=5))
def test_joining_neighbours_first_finds_the_same_clear_scenes(lengths: list[int]) -> None:
    rng = np.random.default_rng(sum(lengths))
    vectors = unit(np.repeat(np.eye(8)[: len(lengths)], lengths, axis=0) + 0.02 * rng.standard_normal((sum(lengths), 8)))
    times_s = [float(row) for row in range(len(vectors))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ATOMS", len(lengths) + 1)
        found = scenes(vectors, times_s, len(lengths))
    assert [len(scene) for scene in found] == lengths


def joined_one_at_a_time(sums: Vectors, mass: Sequence[float], most: int) -> list[int]:
    """Ward's rule as it reads: of all neighbours the two are joined that cost least, of equal ones the first."""
    runs = [(row, sums[row].copy(), float(mass[row])) for row in range(len(sums))]

    def cost(place: int) -> float:
        (_, first, of_first), (_, second, of_second) = runs[place : place + 2]
        apart = first / of_first - second / of_second
        return float(of_first * of_second / (of_first + of_second) * (apart @ apart))

    while len(runs) > most:
        place = min(range(len(runs) - 1), key=cost)
        (start, first, of_first), (_, second, of_second) = runs[place : place + 2]
        runs[place : place + 2] = [(start, first + second, of_first + of_second)]
    return [start for start, _, _ in runs]


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 4)), min_size=1, max_size=9), st.integers(1, 9))
@settings(max_examples=60)
def test_neighbours_are_joined_as_wards_rule_says(rows: list[tuple[int, int, int]], most: int) -> None:
    sums, mass = np.array([row[:2] for row in rows], np.float64), np.array([row[2] for row in rows], np.float64)
    assert module._joined(sums.copy(), mass.copy(), most).tolist() == joined_one_at_a_time(sums, mass, most)  # type: ignore[arg-type]


def test_of_more_frames_than_can_be_tried_those_are_joined_that_change_the_sum_least() -> None:
    """Two frames that stand for little time before two that are a little more alike."""
    vectors = at_angles([0, 20, 90, 108]).embeddings.image
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MOST_ATOMS", 3)
        assert scenes(vectors, [0.0, 0.1, 100.0, 200.0], 3) == [range(2), range(2, 3), range(3, 4)]
        assert scenes(vectors, [0.0, 1.0, 2.0, 3.0], 3) == [range(1), range(1, 2), range(2, 4)]


@pytest.mark.slow
def test_twenty_thousand_rows_are_no_obstacle() -> None:
    rng = np.random.default_rng(7)
    lengths = [4 * int(length) for length in rng.integers(50, 400, 24)]
    middles = rng.standard_normal((24, 8))
    rows = np.repeat(middles, lengths, axis=0)[:20_000]
    vectors = unit(rows + 0.05 * rng.standard_normal(rows.shape))
    asked = int(np.searchsorted(np.cumsum(lengths), 20_000)) + 1
    assert len(vectors) == 20_000
    found = scenes(vectors, (np.arange(20_000) / 25).tolist(), asked)
    assert [scene.start for scene in found] == [0, *np.cumsum(lengths)[: asked - 1]]
    assert len(scenes(vectors, np.arange(20_000.0).tolist(), 6_000)) == 6_000


@pytest.mark.parametrize(("times_s", "count"), [([0.0], 1), ([0.0, 1.0], 0)])
def test_arguments_that_do_not_fit_are_refused(times_s: list[float], count: int) -> None:
    with pytest.raises(ValueError, match="2 vectors"):
        scenes(at_angles([0, 1]).embeddings.image, times_s, count)


def test_frames_at_the_same_time_are_divided_too() -> None:
    assert scenes(at_angles([0, 0, 90]).embeddings.image, [3.0, 3.0, 3.0], 2) == [range(2), range(2, 3)]


# ---------------------------------------------------------------- which frame stands for a scene

TIGHT = [0.0, 4.0, 8.0, 12.0, 16.0]
"""Degrees: any of these is nearly as typical as the one in the middle."""
WIDE = [0.0, 30.0, 60.0, 90.0, 120.0]
"""Only the one in the middle is typical."""


def standing(degrees: Sequence[float], **columns: Sequence[float] | Sequence[bool]) -> int:
    """The row that stands for a scene of these frames."""
    (row,) = representatives(prunable(at_angles(degrees).embeddings, **columns), 1)  # type: ignore[arg-type]
    return row


@pytest.mark.slow
@given(films(), st.integers(1, 40), st.data())
def test_one_row_stands_for_each_scene(film: tuple[Vectors, list[float]], count: int, data: st.DataObject) -> None:
    vectors, times_s = film
    flags = st.lists(st.booleans(), min_size=len(vectors), max_size=len(vectors))
    people, in_transition = data.draw(flags), data.draw(flags)
    frames = prunable(embedded(vectors), times_s=times_s, people=people, in_transition=in_transition)
    found = representatives(frames, count)
    assert list(found.values()) == scenes(with_source(vectors, frames.sharpness, None), times_s, count)
    for row, scene in found.items():
        assert row in scene
        assert people[row] == any(people[other] for other in scene), "a frame with people wherever there is one"
        rivals = [other for other in scene if people[other] == people[row]]
        assert in_transition[row] == all(in_transition[other] for other in rivals), "a calm one wherever there is one"
    assert representatives(frames, count) == found


def test_the_frame_most_like_the_whole_scene_stands_for_it() -> None:
    assert standing(WIDE) == 2
    assert standing([0, 0, 0, 0, 60]) in range(4)


def test_a_calm_frame_goes_before_a_typical_one() -> None:
    assert standing(WIDE, in_transition=[False, False, True, True, True]) == 1
    assert standing(WIDE, in_transition=[True] * 5) == 2


def test_a_frame_with_people_goes_before_a_typical_and_before_a_calm_one() -> None:
    assert standing(WIDE, people=[True, False, False, False, False]) == 0
    assert standing(WIDE, people=[True, False, False, False, False], in_transition=[True, False, False, False, False]) == 0
    assert standing(WIDE, people=[True, True, False, False, False], in_transition=[False, True, False, False, False]) == 0


def test_of_nearly_equal_ones_the_sharpest_stands_for_the_scene() -> None:
    assert standing(TIGHT, sharpness=[100, 100, 100, 101, 100]) == 3
    assert standing(TIGHT, sharpness=[300, 100, 100, 200, 100], in_transition=[True, False, False, False, False]) == 3
    assert standing(WIDE, sharpness=[100, 101, 100, 399, 399]) == 2, "sharpness decides nothing between frames that differ"


@pytest.mark.parametrize(("sharpest", "row"), [(399, 2), (401, 4)])
def test_a_frame_with_less_than_a_quarter_of_the_best_sharpness_does_not_stand_for_the_scene(sharpest: float, row: int) -> None:
    assert standing(WIDE, sharpness=[100, 100, 100, 100, sharpest]) == row


def test_a_soft_frame_does_not_stand_for_the_scene_though_it_alone_has_people_or_is_calm() -> None:
    soft = [20.0, 100.0, 100.0, 100.0, 100.0]
    assert standing(WIDE, sharpness=soft, people=[True, False, False, False, False]) == 2
    assert standing(WIDE, sharpness=soft, in_transition=[False, True, True, True, True]) == 2
    assert standing(WIDE, sharpness=soft, people=[True, True, False, False, False], in_transition=[False, True, False, False, False]) == 1


def test_a_scene_without_any_sharpness_is_shown_all_the_same() -> None:
    assert standing(WIDE, sharpness=[0.0] * 5) == 2


# ---------------------------------------------------------------- sharpness in the division

sharpness_values = st.one_of(st.floats(0, 20_000), st.sampled_from([0.0, 1.0, float(np.e) - 1, 1e6]))


@given(st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 1.0]), sharpness_values), min_size=1, max_size=12))
def test_vectors_with_sharpness_have_length_one_and_a_tenth_of_their_cosine_is_that_of_sharpness(rows: list[tuple[float, ...]]) -> None:
    vectors, sharpness = unit([(*row[:2], 0.5) for row in rows]), [row[2] for row in rows]
    both = with_source(vectors, sharpness, None)
    assert both.dtype == np.float32
    assert np.linalg.norm(both, axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-5)
    of_sharpness = (both @ both.T - (1 - SHARPNESS_SHARE) * (vectors @ vectors.T)) / SHARPNESS_SHARE
    levels = np.log1p(sharpness)
    apart = np.abs(levels[:, None] - levels[None, :])
    assert (of_sharpness >= -1e-4).all()
    assert (of_sharpness <= 1 + 1e-4).all()
    assert of_sharpness[apart > 2] == pytest.approx(0, abs=1e-4), "a factor of e squared and more is not alike at all"
    assert (of_sharpness[apart < 0.01] > 0.98).all()


@pytest.mark.parametrize("level", range(9))
def test_the_next_bin_of_sharpness_begins_a_factor_e_higher(level: int) -> None:
    """At the edge of a bin all of the weight lies in one, in the middle half of it in either."""
    same = np.ones((4, 1), np.float32)
    both = with_source(same, np.expm1([level + 1e-9, level + 0.5, level + 1 + 1e-9, level + 2 + 1e-9]).tolist(), None)
    found = (both @ both.T - (1 - SHARPNESS_SHARE)) / SHARPNESS_SHARE
    assert found[0] == pytest.approx([1, 0.5**0.5, 0, 0], abs=1e-3)
    assert found[1] == pytest.approx([0.5**0.5, 1, 0.5**0.5, 0], abs=1e-3)


def test_shots_of_the_same_colours_are_told_apart_by_their_sharpness() -> None:
    vectors, times_s = at_angles([0, 5, 0, 5, 0, 5]).embeddings.image, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    sharpness = [900.0, 900.0, 900.0, 900.0, 40.0, 40.0]
    found = representatives(prunable(embedded(vectors), times_s=times_s, sharpness=sharpness), 2)
    assert list(found.values()) == [range(4), range(4, 6)]
    evenly = representatives(
        prunable(embedded(at_angles([0, 0, 0, 40, 40, 40]).embeddings.image), sharpness=[900, 40, 900, 40, 900, 40]), 2
    )
    assert list(evenly.values()) == [range(3), range(3, 6)], "pictures that differ go before sharpness"


# ---------------------------------------------------------------- tones in the division


def toned(tones: Sequence[tuple[int, int]]) -> np.ndarray:
    """Grey pictures that are this light, with one pixel this white."""
    shown = np.stack([np.full((18, 32, 3), grey, np.uint8) for grey, _ in tones])
    for picture, (_, white) in zip(shown, tones, strict=True):
        picture[4, 7] = white
    return shown


def test_tones_have_their_share_of_the_cosine_and_each_of_the_three_a_third_of_it() -> None:
    """At the edge of a step all of the weight lies in one bin, in the middle half of it in either."""
    same, even = np.ones((5, 1), np.float32), [100.0] * 5
    both = with_source(same, even, toned([(60, 100), (60, 100), (60, 113), (90, 100), (120, 150)]))
    assert both.dtype == np.float32
    of_tones = (both @ both.T - (1 - TONES_SHARE)) / TONES_SHARE
    assert of_tones[0] == pytest.approx([1, 1, (2 + 0.48**0.5) / 3, 2 / 3, 1 / 3], abs=1e-5)


@pytest.mark.parametrize("tones", [((60, 230), (60, 120)), ((60, 230), (140, 230))], ids=["whitest", "middle"])
def test_shots_of_the_same_colours_are_told_apart_by_their_tones(tones: tuple[tuple[int, int], tuple[int, int]]) -> None:
    one, other = tones
    frames = prunable(at_angles([0, 5, 0, 5, 0, 5]).embeddings)
    for first in (4, 2):
        found = representatives(replace(frames, signatures=toned([one] * first + [other] * (6 - first))), 2)
        assert list(found.values()) == [range(first), range(first, 6)]
    evenly = representatives(replace(prunable(at_angles([0, 0, 0, 40, 40, 40]).embeddings), signatures=toned([one, other] * 3)), 2)
    assert list(evenly.values()) == [range(3), range(3, 6)], "pictures that differ go before tones"


# ---------------------------------------------------------------- black bars in the division

BARS_OF_FIRST_TWO = [(2, 0)] * 4 + [(0, 4)] * 2
BARS_OF_LAST_TWO = [(0, 4)] * 2 + [(2, 0)] * 4


def barred(bars: Sequence[tuple[int, int]]) -> np.ndarray:
    """Grey pictures with so many black rows above and below, and columns on either side."""
    shown = np.zeros((len(bars), 18, 32, 3), np.uint8)
    for picture, (rows, columns) in zip(shown, bars, strict=True):
        picture[rows : 18 - rows, columns : 32 - columns] = 90
    return shown


def test_bars_have_their_share_of_the_cosine_and_rows_and_columns_half_of_it_each() -> None:
    bars = [(2, 0), (2, 0), (0, 0), (2, 4), (0, 5)]
    same, even = np.ones((5, 1), np.float32), [100.0] * 5
    both = with_source(same, even, barred(bars))
    assert both.dtype == np.float32
    of_bars = (both @ both.T - (1 - BARS_SHARE)) / BARS_SHARE
    assert of_bars[0] == pytest.approx([1, 1, 0.5, 0.5, 0], abs=1e-5)
    assert of_bars[2] == pytest.approx([0.5, 0.5, 1, 0, 0.5], abs=1e-5)


@pytest.mark.parametrize("bars", [(0, 0), (2, 0), (1, 6)])
def test_where_all_frames_have_the_same_bars_they_have_no_share(bars: tuple[int, int]) -> None:
    vectors, sharpness = unit([(1, 0), (1, 1), (0, 1)]), [10.0, 100.0, 900.0]
    np.testing.assert_array_equal(
        with_source(vectors, sharpness, barred([bars] * 3)), with_source(vectors, sharpness, barred([(0, 3)] * 3))
    )


def test_two_shots_of_one_source_are_one_scene_before_two_sources_are() -> None:
    """The pictures of the third are as unlike those of the second as these are unlike the first."""
    frames = prunable(embedded(at_angles([0, 0, 40, 40, 80, 80]).embeddings.image))
    split = [list(representatives(replace(frames, signatures=barred(bars)), 2).values()) for bars in (BARS_OF_FIRST_TWO, BARS_OF_LAST_TWO)]
    assert split == [[range(4), range(4, 6)], [range(2), range(2, 6)]]


def test_of_equal_ones_the_first_stands_for_the_scene() -> None:
    assert standing([10] * 6) == 0
    assert standing([10] * 6, sharpness=[5, 9, 9, 5, 9, 5]) == 1


def test_nearly_equal_is_within_the_share_of_the_mean_cosine() -> None:
    vectors = at_angles([0] * 50 + [np.degrees(np.arccos(1 - angle)) for angle in (0.5 * NEARLY_AS_TYPICAL, 2 * NEARLY_AS_TYPICAL)])
    sharpness = [100.0] * 50
    assert list(representatives(prunable(vectors.embeddings, sharpness=[*sharpness, 200.0, 399.0]), 1)) == [50]
