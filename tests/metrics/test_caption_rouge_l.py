"""ROUGE-L of captions: the published figure, and values that are counted by hand."""

from __future__ import annotations

import pytest

from tests.metrics.caption_pairs import vatex_pairs, vatex_score
from vip.metrics import Pair
from vip.metrics.caption_rouge_l import CaptionRougeL


@pytest.mark.slow
def test_the_published_figure_comes_out() -> None:
    value = CaptionRougeL().score(vatex_pairs()).value
    assert value is not None
    assert 100 * value == pytest.approx(vatex_score("ROUGE_L"), abs=1e-3)


@pytest.mark.parametrize(
    ("prediction", "references", "expected"),
    [
        ("a dog runs", ("a dog runs",), 1.0),
        ("a dog", ("a dog runs fast",), (1 + 1.44) * 1 * 0.5 / (0.5 + 1.44 * 1)),
        ("a dog x y", ("a dog", "x"), (1 + 1.44) * 0.5 * 1 / (1 + 1.44 * 0.5)),  # precision of the first, recall of either
        ("a cat", ("the dog",), 0.0),
        ("", ("a dog",), 0.0),
    ],
)
def test_values_that_are_counted_by_hand(prediction: str, references: tuple[str, ...], expected: float) -> None:
    assert CaptionRougeL().score([Pair(prediction, references)]).value == pytest.approx(expected)
