"""What each metric gives: a value over all pairs and one over the answers, and how many have none and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.errors import BackendError
from vip.metrics import Metric, Pair, Result
from vip.metrics.metric import check_installed, library_version, score_mean


def test_a_prediction_without_an_answer_counts_as_wrong_in_one_value_and_not_at_all_in_the_other() -> None:
    pairs = [Pair(1, 1), Pair(None, 2, "unparsed"), Pair(3, 0), Pair(None, 1, "refused"), Pair(None, 1, "unparsed")]
    result = score_mean(pairs, lambda answered: [float(mine == right) for mine, right in answered], "accuracy|v:1")
    assert (result.value, result.value_answered) == (0.2, 0.5)
    assert result.per_sample == (1.0, None, 0.0, None, None)
    assert result.per_sample_or_zero == (1.0, 0.0, 0.0, 0.0, 0.0)
    assert (result.n, result.unscored) == (2, {"unparsed": 2, "refused": 1})
    assert result.signature == "accuracy|v:1"


@pytest.mark.parametrize("pairs", [[], [Pair(None, "a dog", "failed")]], ids=["no pair", "no answer"])
def test_nothing_is_scored_where_there_is_no_answer(pairs: list[Pair[str, str]]) -> None:
    result = score_mean(pairs, lambda answered: pytest.fail("there is nothing to score"), "")
    assert (result.value, result.value_answered, result.n) == (0.0 if pairs else None, None, 0)
    assert result.per_sample == (None,) * len(pairs)


@pytest.mark.parametrize("pair", [Pair(None, "a dog"), Pair("a dog", "a dog", "refused")])
def test_a_status_that_contradicts_its_prediction_is_a_bug(pair: Pair[str, str]) -> None:
    with pytest.raises(ValueError, match=r"pair 1 has the status"):
        score_mean([Pair("a", "b"), pair], lambda answered: [0.0] * len(answered), "")


@settings(max_examples=40)
@given(st.lists(st.one_of(st.none(), st.floats(-1, 1)), min_size=1), st.randoms())
def test_the_order_of_the_pairs_changes_no_value(values: list[float | None], random: object) -> None:
    pairs = [Pair(value, "", "failed" if value is None else "ok") for value in values]

    def scored(some: list[Pair[float, str]]) -> Result:
        return score_mean(some, lambda answered: [value for value, _ in answered], "")

    mixed = list(pairs)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert (scored(mixed).value, scored(mixed).value_answered) == (scored(pairs).value, scored(pairs).value_answered)


def test_the_values_of_samples_are_left_out_of_a_result_that_is_printed() -> None:
    result = score_mean([Pair("x", "y")] * 10_000, lambda answered: [0.5] * len(answered), "rouge-l|v:1")
    assert len(repr(result)) < 200


def test_a_missing_library_is_named_with_the_command_that_installs_it() -> None:
    with pytest.raises(
        BackendError, match=r"^The metric wups needs no-such-thing\. Run `pip install 'vip-keyframes\[eval\]'`\.$"
    ) as caught:
        check_installed("wups", "no_such_thing", "no-such-thing")
    assert caught.value.exit_code == 4


def test_a_signature_says_the_versions_of_libraries() -> None:
    assert library_version("numpy", "pydantic") == f"numpy {version('numpy')}, pydantic {version('pydantic')}"


@dataclass
class BestF1:
    """FIBER's F1 as it fits the frame: a reference is a set of answers of which the best counts."""

    name = "f1"
    needs = ()
    signature = "f1|v:1|best of answers"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[Pair[str, frozenset[str]]]) -> Result:
        return score_mean(pairs, lambda some: [max(f1(mine, right) for right in answers) for mine, answers in some], self.signature)


def f1(mine: str, right: str) -> float:
    first, second = set(mine.split()), set(right.split())
    return 2 * len(first & second) / (len(first) + len(second))


class Recall:
    """VALUE's recall as it fits the frame: a prediction is a ranking, the value is the mean of parts, and no sample has a value."""

    name = "average-recall"
    needs = ()
    signature = "average-recall|v:1"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[Pair[Sequence[int], int]]) -> Result:
        parts = {
            f"R@{k}": score_mean(pairs, lambda some, k=k: [float(right in ranked[:k]) for ranked, right in some], f"recall|v:1|k:{k}")
            for k in (1, 2)
        }
        value = sum(part.value or 0 for part in parts.values()) / len(parts)
        return Result(value=value, value_answered=value, per_sample=None, n=len(pairs), unscored={}, signature=self.signature, parts=parts)


def test_answers_in_sets_and_rankings_fit_the_protocol() -> None:
    of_sets: Metric[str, frozenset[str]] = BestF1()
    assert of_sets.score([Pair("brown dog", frozenset({"dog", "white cat"}))]).value == pytest.approx(2 / 3)
    of_rankings: Metric[Sequence[int], int] = Recall()
    result = of_rankings.score([Pair([4, 7], 7), Pair([7, 4], 7)])
    assert (result.value, result.parts["R@1"].value, result.parts["R@2"].value, result.per_sample) == (0.75, 0.5, 1.0, None)
    with pytest.raises(ValueError, match="average-recall has no values of samples"):
        _ = result.per_sample_or_zero
