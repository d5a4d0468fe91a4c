"""What fills a blank: the published values, and what adding answers changes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.golden import golden
from vip.metrics import Pair
from vip.metrics.blank_answers import (
    _LEFT_OUT,
    ExactMatch,
    RawTokenF1,
    TokenF1,
    exact_match,
    normalize_phrase,
    normalized_token_f1,
    token_f1,
)

PHRASES = st.lists(st.sampled_from(["a", "the", "red", "Dog", "dog!", "t-shirt", "", "…"]), max_size=4).map(" ".join)


def test_phrases_are_normalised_as_in_the_authors_code() -> None:
    rows = json.loads(golden("fiber/answers.json").read_text(encoding="utf-8"))["normalisation"]
    assert [normalize_phrase(row["answer"]) for row in rows] == [row["normalised"] for row in rows]
    assert len(rows) == 20


def test_the_published_scores_of_predictions_come_out() -> None:
    data = json.loads(golden("fiber/answers.json").read_text(encoding="utf-8"))
    answers = {row["masked_caption"]: row["correct_answers"] for part in ("table7", "figure1") for row in data[part]}
    rows = [(row["prediction"], row["masked_caption"], row["f1"], row["em"]) for row in data["own_predictions"]]
    rows += [(p["text"], row["masked_caption"], p["published_f1"], p["em"]) for row in data["table7"] for p in row["predictions"]]
    for prediction, caption, f1, exact in rows:
        assert 100 * normalized_token_f1(prediction, answers[caption]) == pytest.approx(f1, abs=1e-6)
        assert 100 * exact_match(prediction, answers[caption]) == exact
    assert len(rows) == 19


def test_words_are_a_set_and_raw_phrases_keep_their_articles() -> None:
    assert token_f1("dog dog", ["dog"]) == 1
    assert token_f1("the dog", ["a dog"]) == pytest.approx(1 / 2)
    assert normalized_token_f1("the dog", ["a dog"]) == 1


def test_phrases_without_a_word_are_not_alike() -> None:
    assert token_f1("", [""]) == 0
    assert exact_match("the", ["a"]) == 0
    assert normalized_token_f1("dog", []) == 0


@given(PHRASES, PHRASES)
def test_f1_is_symmetric(first: str, second: str) -> None:
    assert token_f1(first, [second]) == token_f1(second, [first])
    assert normalized_token_f1(first, [second]) == normalized_token_f1(second, [first])


@given(PHRASES, st.lists(PHRASES, max_size=3), PHRASES)
def test_another_answer_never_lowers_a_score(prediction: str, answers: list[str], more: str) -> None:
    for measure in (token_f1, normalized_token_f1, exact_match):
        assert measure(prediction, [*answers, more]) >= measure(prediction, answers)


def test_metrics_take_the_best_answer_and_count_what_is_missing_as_wrong() -> None:
    pairs = [Pair("the dog", ("a cat", "dog")), Pair("red car", ("car",)), Pair(None, ("x",), "unparsed")]
    assert TokenF1().score(pairs).value == pytest.approx((1 + 2 / 3) / 3)
    assert RawTokenF1().score(pairs).value == pytest.approx((2 / 3 + 2 / 3) / 3)
    exact = ExactMatch().score(pairs)
    assert (exact.value, exact.value_answered, exact.per_sample) == (pytest.approx(1 / 3), 0.5, (1.0, 0.0, None))
    assert len({metric.signature for metric in (TokenF1(), RawTokenF1(), ExactMatch())}) == 3


@given(st.text(st.sampled_from("aAnthe THE_-é1  .\n\u0301ß"), max_size=20))
def test_plain_phrases_are_normalised_as_the_expression_does(phrase: str) -> None:
    assert normalize_phrase(phrase) == " ".join(_LEFT_OUT.sub("", phrase.lower()).split())


@given(st.text("ab ", max_size=8), st.lists(st.text("ab ", max_size=8), max_size=4), st.text("ab ", max_size=8))
def test_f1_is_symmetric_and_another_answer_never_lowers_a_score(prediction: str, answers: list[str], more: str) -> None:
    assert token_f1(prediction, [more]) == token_f1(more, [prediction])
    for measure in (token_f1, normalized_token_f1, exact_match):
        assert measure(prediction, [*answers, more]) >= measure(prediction, answers)


ANY_PHRASES = st.text(alphabet="abθΣß the-'_\n\u00a0!.", max_size=12)


@given(ANY_PHRASES, st.lists(ANY_PHRASES, max_size=4))
def test_leaving_out_answers_without_a_common_word_changes_no_score(prediction: str, answers: list[str]) -> None:
    mine, theirs = normalize_phrase(prediction), [normalize_phrase(answer) for answer in answers]
    assert normalized_token_f1(prediction, answers) == token_f1(mine, theirs)
    assert exact_match(prediction, answers) == float(mine != "" and mine in theirs)
