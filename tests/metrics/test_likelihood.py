"""Likelihoods of phrases, against products by hand."""

from __future__ import annotations

import math

import pytest

from vip.errors import InputError
from vip.metrics.likelihood import mean_perplexity, phrase_perplexity, phrase_probability
from vip.tasks.fiber.likelihoods import likelihood_table, measure_likelihoods
from vip.tasks.records import Prediction

HALF, QUARTER = math.log(0.5), math.log(0.25)


def test_a_probability_is_the_product_of_its_tokens_and_a_perplexity_their_geometric_mean() -> None:
    assert phrase_probability([HALF, QUARTER]) == pytest.approx(0.125)
    assert phrase_probability([]) == 1
    assert phrase_perplexity([HALF, QUARTER]) == pytest.approx(8**0.5)
    assert phrase_perplexity([0.0, 0.0]) == 1
    assert phrase_perplexity([-math.inf]) == math.inf
    assert phrase_perplexity([-1e9]) == math.inf
    assert mean_perplexity([[HALF], [QUARTER, QUARTER]]) == pytest.approx(3)
    assert mean_perplexity([]) is None


def test_sums_beyond_the_largest_number_are_infinite() -> None:
    assert phrase_probability([-1e308, -1e308]) == 0
    assert phrase_perplexity([-1e308, -1e308]) == math.inf
    assert mean_perplexity([[-709.7]] * 3) == math.inf


@pytest.mark.parametrize("values", [[0.1], [math.nan]])
def test_what_is_no_log_probability_is_refused(values: list[float]) -> None:
    with pytest.raises(ValueError, match="at most 0"):
        phrase_probability(values)


def test_predictions_with_likelihoods_are_averaged_and_others_left_out() -> None:
    rows = [
        Prediction(sample_id="a", value="x", log_probabilities=(HALF,), label_log_probabilities=(HALF, HALF)),
        Prediction(sample_id="b", value="x", log_probabilities=(QUARTER,)),
        Prediction(sample_id="c", value="x"),
    ]
    found = measure_likelihoods(rows)
    assert found.answer_probability == pytest.approx(0.375)
    assert found.label_probability == pytest.approx(0.25)
    assert found.perplexity == pytest.approx(2)
    assert found.n == 1
    assert [cell.text for cell in likelihood_table({"p": found}).rows[0]] == ["p", "0.3750", "0.2500", "2.00", "1"]
    for wrong in ((), (0.5,)):
        with pytest.raises(InputError, match='"a" has wrong likelihoods'):
            measure_likelihoods([Prediction(sample_id="a", value="x", label_log_probabilities=wrong)])
