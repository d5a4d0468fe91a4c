"""How T5 is made to fill one blank, and what of its output is the phrase (Castro et al. 2022, appendix B.1; code lqam/methods/decoding.py).

T5 answers `<extra_id_0> a man <extra_id_1>` and would go on with blanks that the caption does not have: behind `<extra_id_1>` it must end.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor
from transformers import LogitsProcessor


class EndBehindBlank(LogitsProcessor):
    """Leaves only the end of the text behind the token that ends the blank."""

    def __init__(self, ends_blank: int, end_of_text: int) -> None:
        self.ends_blank, self.end_of_text = ends_blank, end_of_text

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Return the scores (B, V) of the next tokens, given those so far (B, T)."""
        only_end = torch.full_like(scores, -torch.inf)
        only_end[:, self.end_of_text] = 0.0
        return torch.where(input_ids[:, -1:] == self.ends_blank, only_end, scores)


def first_blank(ids: Sequence[int], *, start: int, blank: int, next_blank: int, ends: Collection[int]) -> list[int]:
    """Return the tokens that fill the first blank.

    Args:
        ids: what was generated, with or without the token `start` at its beginning.
        blank: `<extra_id_0>`; where the answer does not begin with it, the phrase is the answer from its beginning.
        next_blank: `<extra_id_1>`, before which the phrase ends.
        ends: tokens of the end and the padding.
    """
    left = list(ids[1:] if ids and ids[0] == start else ids)
    if left and left[0] == blank:
        left = left[1:]
    stop = next((place for place, token in enumerate(left) if token == next_blank or token in ends), len(left))
    return left[:stop]


def log_probabilities(logits: Tensor, ids: Tensor, left_out: Collection[int]) -> list[list[float]]:
    """Return the log probability of each token of each row, natural logarithms, without those left out.

    Args:
        logits: (B, L, V).
        ids: (B, L) int64.
        left_out: padding and the end of the text.
    """
    safe = ids.clamp(min=0)
    found = logits.float().log_softmax(dim=-1).gather(2, safe[..., None])[..., 0]
    return [
        [min(value, 0.0) for value, token in zip(values, tokens, strict=True) if token not in left_out]
        for values, tokens in zip(found.tolist(), ids.tolist(), strict=True)
    ]
