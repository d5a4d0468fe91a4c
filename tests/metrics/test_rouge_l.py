"""ROUGE-L is that of rouge-score, whose own reference values come out."""

from __future__ import annotations

import json
from importlib.metadata import version

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rouge_score.rouge_scorer import RougeScorer

from tests.metrics.golden import golden
from vip.errors import BackendError
from vip.metrics import Pair
from vip.metrics.rouge_l import RougeL, common_subsequence_length

WORDS = st.sampled_from(["a", "dog", "Dogs", "running", "runs", "ran", "tree-house", "it's", "42", "", "été", ".", "\n"])
TEXTS = st.lists(WORDS, max_size=60).map(" ".join)


def test_the_published_values_of_rouge_score_come_out() -> None:
    data = json.loads(golden("rouge_testdata.json").read_text(encoding="utf-8"))
    pairs = [Pair(prediction, target) for prediction, target in zip(data["predictions"], data["targets"], strict=True)]
    assert RougeL(stem=data["use_stemmer"]).score(pairs).per_sample == pytest.approx(data["rougeL_f"], abs=5e-6)


@pytest.mark.parametrize(
    ("prediction", "reference", "stem", "expected"),
    [
        ("a dog runs", "the dog runs fast", False, 4 / 7),  # dog runs: 2 of 3, 2 of 4
        ("the cat sat", "the cat sat", False, 1.0),
        ("sat cat the", "the cat sat", False, 1 / 3),  # one word in order
        ("dogs running", "the dog runs", False, 0.0),
        ("dogs running", "the dog runs", True, 4 / 5),  # dog run: 2 of 2, 2 of 3
        ("A-DOG!", "a dog", False, 1.0),
        ("", "a dog", False, 0.0),
        ("a dog", "...", False, 0.0),
    ],
)
def test_values_that_are_counted_by_hand(prediction: str, reference: str, stem: bool, expected: float) -> None:
    assert RougeL(stem=stem).score([Pair(prediction, reference)]).value == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("stem", [False, True])
@settings(max_examples=30)
@given(texts=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5))
def test_each_value_is_that_of_the_library(stem: bool, texts: list[tuple[str, str]]) -> None:
    scorer = RougeScorer(["rougeL"], use_stemmer=stem)
    expected = [scorer.score(reference, prediction)["rougeL"].fmeasure for prediction, reference in texts]
    assert RougeL(stem=stem).score([Pair(*both) for both in texts]).per_sample == tuple(expected)


@given(st.lists(st.sampled_from("abc")), st.lists(st.sampled_from("abcd")))
def test_the_common_subsequence_is_as_long_in_either_order_and_is_found_in_both(first: list[str], second: list[str]) -> None:
    length = common_subsequence_length(first, second)
    assert length == common_subsequence_length(second, first) <= min(len(first), len(second))
    assert common_subsequence_length(first, [*second, *first]) == len(first)
    assert common_subsequence_length([*first, "e"], [*second, "e"]) == length + 1


def test_the_signature_says_what_a_value_depends_on() -> None:
    assert RougeL().signature == f"rouge-l|v:1|f1|stem:no|empty:0|lib:rouge-score {version('rouge-score')}"
    assert RougeL(stem=True).signature.endswith(f"|stem:yes|empty:0|lib:rouge-score {version('rouge-score')}, nltk {version('nltk')}")
    assert RougeL().score([Pair("a", "a")]).signature == RougeL().signature


def test_without_the_library_the_metric_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.metrics.metric.find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"The metric rouge-l needs rouge-score\. Run `pip install 'vip-keyframes\[eval\]'`\."):
        RougeL().score([Pair("a dog", "a dog")])
