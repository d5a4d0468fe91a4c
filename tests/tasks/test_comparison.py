"""Files of the same samples, held against each other."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tasks.scoring import WordTask, answer, joined, sample
from vip.errors import InputError
from vip.metrics.statistics import compare, smallest_detectable_difference
from vip.tasks.comparison import compare_files, compare_sets
from vip.tasks.records import Sample
from vip.tasks.score import ScoredFile, score

SAMPLES = [sample(str(number), "a b c d", video=f"v{number // 3}") for number in range(30)]


def scored(folder: Path, name: str, seed: int, share: float, samples: list[Sample] = SAMPLES) -> ScoredFile:
    chance = random.Random(seed)
    rows = [answer(one, " ".join(w if chance.random() < share else "x" for w in "abcd")) for one in samples]
    folder = folder / name
    folder.mkdir()
    return score(joined(folder, samples, rows, f"{name}.jsonl"), WordTask(), WordTask().metrics)


def test_differences_are_paired_clustered_and_corrected(tmp_path: Path) -> None:
    files = [scored(tmp_path, name, seed, share) for seed, (name, share) in enumerate([("low", 0.3), ("high", 0.8), ("same", 0.35)])]
    high, same = compare_files(files, ["low", "high", "same"])
    clusters = [one.video for one in SAMPLES]
    plain = compare(files[0].values["word-share"], files[1].values["word-share"], clusters)
    assert (high.first, high.second, high.metric) == ("low", "high", "word-share")
    assert high.value == pytest.approx(100 * plain.difference.value, abs=1e-5)
    assert high.p_corrected == pytest.approx(min(1, 2 * (plain.p_value or 0)), abs=2e-6)
    assert high.is_significant
    assert not same.is_significant
    error, degrees = plain.difference.standard_error, plain.difference.degrees_of_freedom
    assert high.smallest_detectable == pytest.approx(100 * smallest_detectable_difference(error, degrees, significance=0.025), abs=1e-5)  # type: ignore[arg-type]


def test_the_same_answers_differ_by_nothing_and_say_why_there_is_no_test(tmp_path: Path) -> None:
    first = scored(tmp_path, "a", 1, 0.5)
    (row,) = compare_files([first, first], ["a", "b"])
    assert (row.value, row.p_value, row.p_corrected, row.is_significant) == (0.0, None, None, False)
    assert row.no_interval is not None


def test_files_of_other_samples_are_refused(tmp_path: Path) -> None:
    files = [scored(tmp_path, "a", 1, 0.5), scored(tmp_path, "b", 1, 0.5, SAMPLES[:20])]
    with pytest.raises(InputError, match=r"a and b are of different samples \(30 and 20, 20 in both\)"):
        compare_files(files, ["a", "b"])


def test_p_values_are_corrected_over_all_sets_of_a_table(tmp_path: Path) -> None:
    files = [scored(tmp_path, name, seed, share) for seed, (name, share) in enumerate([("a", 0.4), ("b", 0.6)])]
    alone, (one, two) = compare_files(files, ["a", "b"])[0], compare_sets([(files, ["a", "b"]), (files, ["a", "b"])])
    assert (one.task, one.p_value) == ("infilling-1, dense", alone.p_value)
    assert one.p_corrected == two.p_corrected == pytest.approx(min(1, 2 * (alone.p_value or 0)), abs=2e-6)
    assert (one.smallest_detectable or 0) > (alone.smallest_detectable or 0)


def test_the_same_samples_in_another_order_are_refused(tmp_path: Path) -> None:
    files = [scored(tmp_path, "a", 1, 0.5), scored(tmp_path, "b", 1, 0.5, SAMPLES[::-1])]
    with pytest.raises(InputError, match=r"a and b are of different samples \(30 and 30, 30 in both\)"):
        compare_files(files, ["a", "b"])


def test_a_metric_that_was_computed_in_two_ways_is_refused_and_one_that_a_file_lacks_left_out(tmp_path: Path) -> None:
    first, second = scored(tmp_path, "a", 1, 0.5), scored(tmp_path, "b", 2, 0.5)
    other = second.result.metrics["word-share"].model_copy(update={"signature": "word-share|v:2"})
    changed = replace(second, result=second.result.model_copy(update={"metrics": {"word-share": other}}))
    with pytest.raises(InputError, match=r"word-share was computed in two ways \(keyframes:mean.*; word-share\|v:2\)"):
        compare_files([first, changed], ["a", "b"])
    lacking = replace(second, result=second.result.model_copy(update={"metrics": {}}), values={})
    assert compare_files([first, lacking], ["a", "b"]) == []


def test_the_ends_of_the_interval_are_in_points_and_around_the_difference(tmp_path: Path) -> None:
    files = [scored(tmp_path, name, seed, share) for seed, (name, share) in enumerate([("low", 0.3), ("high", 0.8)])]
    (row,) = compare_files(files, ["low", "high"])
    plain = compare(files[0].values["word-share"], files[1].values["word-share"], [one.video for one in SAMPLES]).difference
    assert (row.low, row.high) == pytest.approx((100 * (plain.low or 0), 100 * (plain.high or 0)), abs=1e-5)
