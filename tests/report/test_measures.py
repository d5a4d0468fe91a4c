from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import cos, radians, sin
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.report.runs import make_run
from vip import store
from vip.errors import StoreError, UsageError
from vip.records import Embeddings, Rule
from vip.report import measures
from vip.report.measures import COLUMNS, Measures, best, extracted_span, highest_cosines, longest_gap, measure_all, shares
from vip.store import Run, load_run

EXAMPLE = Measures(
    keyframes=3,
    candidates=9,
    seconds=1.0,
    redundancy=0.5,
    most_alike=0.6,
    sharpness_median=100.0,
    sharpness_lowest=50.0,
    coverage=0.9,
    coverage_lowest=0.7,
    missed_time_s=2.0,
    longest_gap_s=4.0,
)
(SECONDS, COVERAGE, KEYFRAMES) = (
    next(column for column in COLUMNS if column.name == name) for name in ("Seconds", "Coverage", "Keyframes")
)


def run_of(folder: Path, rules: Sequence[Rule], degrees: Sequence[float], *, model: str = "classic") -> Run:
    """A candidate every second, each with a vector that points into this direction."""
    make_run(folder, rules=tuple(rules), described=False)
    vectors = np.array([[cos(radians(angle)), sin(radians(angle))] for angle in degrees], np.float32)
    store.write_embeddings(folder / store.EMBEDDINGS, Embeddings(vectors, vectors, model))
    return load_run(folder)


def test_redundancy_is_the_cosine_to_the_most_alike_other_keyframe_wherever_it_is(tmp_path: Path) -> None:
    (found,) = measure_all([run_of(tmp_path, ["kept", "pruned", "kept", "kept"], [0, 20, 90, 60])])
    assert found.redundancy == pytest.approx((cos(radians(60)) + 2 * cos(radians(30))) / 3)
    assert found.most_alike == pytest.approx(cos(radians(30)))


def test_coverage_is_a_mean_over_time_and_leaves_bad_frames_out(tmp_path: Path) -> None:
    (found,) = measure_all([run_of(tmp_path, ["kept", "pruned", "black", "pruned"], [0, 60, 170, 90])])
    # Nearest to the frames at 0, 1 and 3 s lie 0.5, 1.5 and 1 of the 3 seconds.
    assert found.coverage == pytest.approx((0.5 * 1 + 1.5 * 0.5 + 1 * 0) / 3, abs=1e-6)
    assert found.coverage_lowest == pytest.approx(0, abs=1e-6)
    assert found.missed_time_s == 3.0


def test_what_one_run_found_counts_for_the_coverage_of_the_others(tmp_path: Path) -> None:
    blind = run_of(tmp_path / "a", ["kept", "unreadable", "unreadable"], [0])
    seeing = run_of(tmp_path / "b", ["kept", "kept", "pruned"], [0, 90, 90])
    (alone,), (together, other) = measure_all([blind]), measure_all([blind, seeing])
    assert alone.coverage == pytest.approx(1)
    assert together.coverage == pytest.approx(0.25, abs=1e-6)  # only the first of four halves of a second
    assert other.coverage == pytest.approx(1)


def test_sharpness_gap_and_counts_are_those_of_the_keyframes(tmp_path: Path) -> None:
    (found,) = measure_all([run_of(tmp_path, ["pruned", "pruned", "kept", "kept", "pruned", "kept", "pruned"], range(7))])
    assert (found.keyframes, found.candidates) == (3, 7)
    assert (found.sharpness_median, found.sharpness_lowest) == (103, 102)  # make_run gives candidate i the sharpness 100 + i
    assert found.longest_gap_s == 2.0


def test_a_single_keyframe_is_not_redundant_but_unknown(tmp_path: Path) -> None:
    (found,) = measure_all([run_of(tmp_path, ["kept"], [0])])
    assert (found.redundancy, found.most_alike) == (None, None)
    assert (found.coverage, found.longest_gap_s) == (pytest.approx(1), 0.0)


def test_captions_are_no_part_of_the_seconds_of_choosing(tmp_path: Path) -> None:
    run = run_of(tmp_path, ["kept"], [0])
    assert run.manifest
    seconds = {"select": 2.0, "write": 0.5, "caption": 90.0}
    store.write_json(tmp_path / store.MANIFEST, run.manifest.model_copy(update={"seconds": seconds}))
    assert measure_all([load_run(tmp_path)])[0].seconds == 2.5


def test_only_the_part_between_start_and_end_counts_for_gaps(tmp_path: Path) -> None:
    run = run_of(tmp_path, ["pruned"] * 5 + ["kept"] + ["pruned"] * 5, [0] * 11)
    assert run.manifest
    settings = {**run.manifest.settings, "start": 4.0, "end": 8.0}
    assert measure_all([run])[0].longest_gap_s == 5.0
    store.write_json(tmp_path / store.MANIFEST, run.manifest.model_copy(update={"settings": settings}))
    assert measure_all([load_run(tmp_path)])[0].longest_gap_s == 3.0


def test_a_part_that_reaches_beyond_the_video_ends_with_it(tmp_path: Path) -> None:
    run = run_of(tmp_path, ["pruned"] * 5 + ["kept"] + ["pruned"] * 5, [0] * 11)
    assert run.manifest
    manifest = run.manifest.model_copy(update={"video": run.manifest.video.model_copy(update={"start_time_s": 1.0, "end_time_s": 9.0})})
    for start, end, expected in (
        (None, None, (1.0, 9.0)),
        (0.0, 20.0, (1.0, 9.0)),
        (2.0, 8.0, (2.0, 8.0)),
        (2.0, None, (2.0, 9.0)),
        (None, 8.0, (1.0, 8.0)),
    ):
        settings = {"start": start, "end": end}
        assert extracted_span(manifest.model_copy(update={"settings": settings})) == expected


def test_vectors_of_different_embedders_are_not_compared(tmp_path: Path) -> None:
    runs = [run_of(tmp_path / name, ["kept"], [0], model=name) for name in ("classic", "clip")]
    with pytest.raises(UsageError, match=r"classic, clip.*--overwrite"):
        measure_all(runs)


def test_vectors_that_are_not_those_of_the_candidates_are_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"embeddings\.npz does not fit"):
        measure_all([run_of(tmp_path, ["kept", "kept"], [0])])


# ---------------------------------------------------------------- arithmetic


@given(arrays(np.float32, st.tuples(st.integers(2, 9), st.just(3)), elements=st.floats(-0.5, 0.5, width=32)), st.integers(1, 4))
def test_blocks_do_not_change_the_highest_cosines(vectors: np.ndarray, block: int) -> None:
    expected = [max(float(row @ other) for j, other in enumerate(vectors) if j != i) for i, row in enumerate(vectors)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "BLOCK", block)
        assert highest_cosines(vectors, vectors, except_itself=True) == pytest.approx(expected, abs=1e-6)


@given(st.lists(st.floats(0, 100), min_size=1, max_size=20).map(sorted))
def test_shares_of_time_add_up_to_one(times_s: list[float]) -> None:
    found = shares(np.array(times_s), 10.0, 90.0)
    assert found.sum() == pytest.approx(1)
    assert (found >= 0).all()


def test_shares_of_an_instant_are_equal() -> None:
    assert shares(np.array([5.0, 5.0]), 5.0, 5.0).tolist() == [0.5, 0.5]


@pytest.mark.parametrize(("times_s", "expected"), [([], 10), ([0, 10], 10), ([4], 6), ([3, 4, 9], 5), ([1, 2, 3], 7)])
def test_the_longest_gap_may_lie_at_either_end(times_s: list[float], expected: float) -> None:
    assert longest_gap(times_s, 0, 10) == expected


def test_the_best_values_are_those_that_look_best() -> None:
    rows = [replace(EXAMPLE, seconds=value) for value in (2.0, 1.001, 1.002, 3.0)]
    assert best(SECONDS, rows) == {1, 2}
    assert best(COVERAGE, [replace(EXAMPLE, coverage=value) for value in (None, 0.5, 0.75)]) == {2}


def test_nothing_is_best_where_all_are_the_same_unknown_or_only_a_count() -> None:
    assert best(COVERAGE, [EXAMPLE, EXAMPLE]) == set()
    assert best(COVERAGE, [replace(EXAMPLE, coverage=None)] * 2) == set()
    assert best(KEYFRAMES, [EXAMPLE, replace(EXAMPLE, keyframes=8)]) == set()
