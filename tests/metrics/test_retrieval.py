"""Recall of moments and videos: thresholds, float32, several spans, and the rounding of AveR."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from tests.metrics.golden import golden
from vip.metrics import Pair
from vip.metrics.retrieval import AverageRecall, RankedMoments, Ranking, Recall, Target, average_recall, compute_tiou

HERE = Target("park", ((10.0, 20.0),))


def moments(*rows: tuple[str, float, float]) -> RankedMoments:
    videos, starts, ends = zip(*rows, strict=True)
    return RankedMoments(videos, starts, ends)


@pytest.mark.parametrize(
    ("start", "end", "expected"),
    [(10, 20, 1.0), (10, 15, 0.5), (12, 22, 8 / 12), (0, 10, 0.0), (30, 40, 0.0), (15, 15, 0.0), (0, 40, 0.25)],
)
def test_the_overlap_is_the_shared_part_of_all_that_is_covered(start: float, end: float, expected: float) -> None:
    tiou = compute_tiou(np.array([start], np.float32), np.array([end], np.float32), (10.0, 20.0))
    assert tiou == pytest.approx([expected], abs=1e-6)
    assert tiou.dtype == np.float32


def test_an_overlap_that_float64_puts_below_the_threshold_counts_in_float32() -> None:
    target = Target("park", ((0.0, 10.0),))
    assert 6.9999999 / 10 < 0.7
    assert Recall("vcmr", 1, 0.7).score([Pair(Ranking(vcmr=moments(("park", 0.0, 6.9999999))), target)]).value == 1


def test_a_moment_needs_the_right_video_and_enough_overlap_among_the_first_k() -> None:
    ranking = Ranking(vcmr=moments(("street", 10, 20), ("park", 10, 15.5), ("park", 10, 18)))
    pairs = [Pair(ranking, HERE)]
    values = {(k, tiou): Recall("vcmr", k, tiou).score(pairs).value for k in (1, 2, 3) for tiou in (0.5, 0.7)}
    assert values == {(1, 0.5): 0, (1, 0.7): 0, (2, 0.5): 1, (2, 0.7): 0, (3, 0.5): 1, (3, 0.7): 1}


def test_only_a_hundred_predictions_count() -> None:
    late = Ranking(vr=("street",) * 100 + ("park",))
    assert Recall("vr", 100).score([Pair(late, HERE)]).value == 0
    assert Recall("vr", 100).score([Pair(Ranking(vr=("street",) * 99 + ("park",)), HERE)]).value == 1


def test_a_query_with_four_spans_is_met_where_two_of_them_are() -> None:
    spans = Target("park", ((0.0, 5.0), (0.0, 5.0), (20.0, 25.0), (25.0, 30.0)))
    assert Recall("svmr", 1, 0.7).score([Pair(Ranking(svmr=moments(("park", 0, 5))), spans)]).value == 1
    assert Recall("svmr", 1, 0.7).score([Pair(Ranking(svmr=moments(("park", 20, 25))), spans)]).value == 0
    three = Target("park", spans.spans_s[1:])
    assert Recall("svmr", 1, 0.7).score([Pair(Ranking(svmr=moments(("park", 20, 25))), three)]).value == 1


def test_what_was_not_done_has_no_value_and_a_query_without_an_answer_counts_as_wrong() -> None:
    pairs = [Pair(Ranking(vr=("park",)), HERE), Pair(None, HERE, "failed")]
    assert Recall("vcmr", 1, 0.7).score(pairs).value is None
    found = Recall("vr", 1).score(pairs)
    assert (found.value, found.value_answered, found.per_sample, found.unscored) == (0.5, 1.0, (1.0, None), {"failed": 1})


def test_a_threshold_belongs_to_moments() -> None:
    with pytest.raises(ValueError, match="threshold"):
        Recall("vr", 1, 0.5)
    with pytest.raises(ValueError, match="threshold"):
        Recall("vcmr", 1)


def test_the_average_is_the_rounded_mean_of_rounded_recalls() -> None:
    assert average_recall([0.071001, 0.313333, 0.513502]) == pytest.approx(0.2993)  # 7.10, 31.33, 51.35
    assert average_recall([0.100049, 0.100049, 0.100059]) == pytest.approx(0.1)  # 10.00, 10.00, 10.01; of what is not rounded 10.01
    assert average_recall([0.1, None, 0.3]) is None
    ranking = Ranking(vr=("street", "park"))
    result = AverageRecall("vr").score([Pair(ranking, HERE), Pair(Ranking(vr=("park",)), HERE)])
    assert result.value == pytest.approx(0.8333)
    assert {name: part.value for name, part in result.parts.items()} == {"r1": 0.5, "r5": 1.0, "r10": 1.0}
    assert result.per_sample == pytest.approx((2 / 3, 1.0))


def test_92_of_the_96_published_averages_are_those_of_their_recalls() -> None:
    with golden("value/aver.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    averages = [average_recall([float(row[key]) / 100 for key in ("r1", "r5", "r10")]) for row in rows]
    agree = [
        abs(100 * average - float(row["published_aver"])) <= 0.0101
        for average, row in zip(averages, rows, strict=True)
        if average is not None
    ]
    assert (len(agree), sum(agree)) == (96, 92)
    assert agree == [row["agrees"] == "yes" for row in rows]


def test_videos_that_were_not_asked_take_no_place_within_one_video() -> None:
    ranking = Ranking(svmr=moments(("street", 10, 20), ("park", 10, 20)), vcmr=moments(("street", 10, 20), ("park", 10, 20)))
    pairs = [Pair(ranking, HERE)]
    assert Recall("svmr", 1, 0.7).score(pairs).value == 1.0, "the right video was given"
    assert Recall("vcmr", 1, 0.7).score(pairs).value == 0.0
