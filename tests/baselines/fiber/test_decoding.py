"""vip.baselines.fiber.decoding: one blank, and what of the output is the phrase"""

from __future__ import annotations

import math

import pytest
import torch

pytest.importorskip("transformers")

from vip.baselines.fiber.decoding import EndBehindBlank, first_blank, log_probabilities

START, BLANK, NEXT, END = 0, 3, 4, 1
NAMES = {"start": START, "blank": BLANK, "next_blank": NEXT, "ends": {START, END}}


def test_behind_the_end_of_the_blank_only_the_end_of_the_text_is_left() -> None:
    scores = torch.arange(12.0).reshape(2, 6)
    found = EndBehindBlank(NEXT, END)(torch.tensor([[START, BLANK, NEXT], [START, BLANK, 5]]), scores)
    assert found[0].tolist() == [-math.inf, 0.0, -math.inf, -math.inf, -math.inf, -math.inf]
    assert found[1].tolist() == scores[1].tolist()


@pytest.mark.parametrize(
    ("ids", "phrase"),
    [
        ([START, BLANK, 7, 8, NEXT, END], [7, 8]),
        ([BLANK, 7, 8, NEXT, END], [7, 8]),  # without the token of the start
        ([START, BLANK, 7, 8, END], [7, 8]),  # cut off before the end of the blank
        ([START, BLANK, 7, 8], [7, 8]),
        ([START, 7, 8, NEXT, 9], [7, 8]),  # the name of the blank is missing
        ([START, BLANK, NEXT, END], []),
        ([START, BLANK, NEXT, 9, END], []),  # what follows belongs to another blank
        ([START], []),
        ([], []),
    ],
)
def test_the_phrase_is_what_stands_between_the_names_of_the_blanks(ids: list[int], phrase: list[int]) -> None:
    assert first_blank(ids, **NAMES) == phrase  # type: ignore[arg-type]


def test_log_probabilities_equal_a_hand_product() -> None:
    logits = torch.log(torch.tensor([[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8], [0.2, 0.7, 0.1]]]))
    found = log_probabilities(logits, torch.tensor([[0, 2, 1]]), {1})
    assert math.exp(sum(found[0])) == pytest.approx(0.5 * 0.8)  # the end of the text, 1, is left out


def test_labels_without_loss_have_no_probability() -> None:
    logits = torch.zeros(1, 3, 4)
    found = log_probabilities(logits, torch.tensor([[2, -100, -100]]), {-100})
    assert found == [[pytest.approx(math.log(0.25))]]
