"""BLEU of captions: the published figures, and values that are counted by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tests.metrics.caption_pairs import vatex_pairs, vatex_score
from vip.metrics import Pair
from vip.metrics.bleu import Bleu
from vip.metrics.caption_corpus import CaptionTokenizer


@pytest.mark.slow
def test_the_published_figures_come_out() -> None:
    tokenizer = CaptionTokenizer()
    for n in (1, 2, 3, 4):
        value = Bleu(n, tokenizer=tokenizer).score(vatex_pairs()).value
        assert value is not None
        assert 100 * value == pytest.approx(vatex_score(f"Bleu_{n}"), abs=1e-3)


def test_an_n_gram_counts_as_often_as_in_the_reference_that_has_it_most_often() -> None:
    pairs = [Pair("the the the the the the the", ("the cat is on the mat", "there is a cat on the mat"))]
    assert Bleu(1).score(pairs).value == pytest.approx(2 / 7)  # the example of Papineni et al.; as long as the closest reference


def test_counts_are_added_up_over_the_corpus_and_short_captions_have_a_penalty() -> None:
    pairs = [Pair("a b", ("a b c d",)), Pair("a x y z", ("a b c d e f",))]
    assert Bleu(1).score(pairs).value == pytest.approx(3 / 6 * math.exp(1 - 10 / 6))
    assert Bleu(2).score(pairs).value == pytest.approx(math.sqrt(3 / 6 * 1 / 4) * math.exp(1 - 10 / 6))


def test_of_two_references_that_are_equally_close_the_shorter_one_counts() -> None:
    assert Bleu(1).score([Pair("a b c", ("a b c d", "a b"))]).value == pytest.approx(1.0)


def test_a_missing_caption_is_an_empty_one_and_is_left_out_of_the_answered() -> None:
    result = Bleu(1).score([Pair("a b", ("a b",)), Pair(None, ("a b",), "refused")])
    assert result.value == pytest.approx(math.exp(1 - 4 / 2))
    assert result.value_answered == pytest.approx(1.0)
    assert (result.n, result.unscored, result.per_sample) == (1, {"refused": 1}, None)


def test_weights_say_how_often_a_caption_counts() -> None:
    pairs = [Pair("a dog runs", ("a dog runs fast",)), Pair("a cat", ("the cat sits",)), Pair("a man", ("a man",))]
    drawn = [pairs[0], pairs[0], pairs[2]]
    weighted = Bleu(2).weighted(pairs)(np.array([2.0, 0.0, 1.0]))
    assert weighted == pytest.approx(Bleu(2).score(drawn).value)


def test_an_empty_list_has_no_value() -> None:
    assert Bleu().score([]).value is None
