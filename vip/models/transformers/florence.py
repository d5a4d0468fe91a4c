"""Florence-2: objects (`<OD>`), and regions described in a phrase (`<DENSE_REGION_CAPTION>`), both written out as text with boxes.

The text reads `dog<loc_52><loc_332><loc_933><loc_774>cat<loc_…>…`: a label, then four numbers of bins a box, and several boxes
where there are several such things. It has no scores, so how sure the model was of a label's words stands in for them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from vip.models.hardware import Hardware
from vip.models.transformers.detector_base import FoundObject, TransformersDetector
from vip.models.transformers.model_files import ModelFiles, silence_transformers

if TYPE_CHECKING:
    import PIL.Image
    import torch

TASKS: tuple[tuple[str, Literal["object", "region"]], ...] = (("<OD>", "object"), ("<DENSE_REGION_CAPTION>", "region"))
BINS = 1000  # on each side of a picture; a bin stands for its centre
MOST_TOKENS = 1023  # some 150 boxes; the decoder of the published models has 1,024 places, one of them for the token it starts with
BATCH = 8  # the texts of a batch are written in step, so it takes as long as its longest one


def load_florence_detector(files: ModelFiles, hardware: Hardware) -> FlorenceDetector:
    from transformers import AutoProcessor, Florence2ForConditionalGeneration

    processor: Any = files.load(AutoProcessor.from_pretrained)
    model = files.load_model(Florence2ForConditionalGeneration.from_pretrained, hardware.dtype)
    return FlorenceDetector(files.name, model, processor, hardware)


class FlorenceDetector(TransformersDetector):
    """Objects and described regions of each picture. Whatever the model writes counts: it has no scores to set a bound on."""

    def __init__(self, name: str, model: Any, processor: Any, hardware: Hardware) -> None:
        super().__init__(name, model, processor, hardware, batch=BATCH)
        tokenizer = processor.tokenizer
        vocabulary = tokenizer.get_vocab()
        self._most_tokens = min(MOST_TOKENS, model.config.text_config.max_position_embeddings - 1)
        self._bins = {number: int(match[1]) for token, number in vocabulary.items() if (match := re.fullmatch(r"<loc_(\d+)>", token))}
        self._ignored = {tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id}
        self._marks = {number for token, number in vocabulary.items() if "<" in token} - self._ignored - set(self._bins)

    def _find(self, pictures: list[PIL.Image.Image]) -> list[list[FoundObject]]:
        found: list[list[FoundObject]] = [[] for _ in pictures]
        for task, kind in TASKS:
            for rows, (tokens, probabilities) in zip(found, self._write(task, pictures), strict=True):
                rows += read_boxes(
                    tokens, probabilities, kind, bins=self._bins, ignored=self._ignored, marks=self._marks, decode=self._decode
                )
        return found

    def _write(self, task: str, pictures: list[PIL.Image.Image]) -> list[tuple[list[int], list[float]]]:
        """Return for each picture the tokens that the model writes, and the probability of each."""
        inputs = self._to_device(self._processor(text=[task] * len(pictures), images=pictures, return_tensors="pt"))
        phrase_scores = _PhraseScores()
        with self._lock, silence_transformers():
            sequences = self._ready_model().generate(
                **inputs, max_new_tokens=self._most_tokens, num_beams=1, do_sample=False, logits_processor=[phrase_scores]
            )
        probabilities = phrase_scores.table()
        return list(zip(sequences[:, 1:].tolist(), probabilities, strict=True))  # without the token that the decoder starts with

    def _decode(self, tokens: Sequence[int]) -> str:
        return str(self._processor.tokenizer.decode(list(tokens), clean_up_tokenization_spaces=False))


class _PhraseScores:
    """A logits processor that keeps the probability of each token written: the likeliest, as decoding is greedy.

    The library would keep the scores of the whole vocabulary: 200 MB a picture for 1,000 tokens.
    """

    def __init__(self) -> None:
        self._steps: list[torch.Tensor] = []

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        self._steps.append(scores.float().softmax(dim=-1).amax(dim=-1))
        return scores

    def table(self) -> list[list[float]]:
        """Return the probabilities, (pictures, tokens)."""
        import torch

        return [[float(value) for value in row] for row in torch.stack(self._steps, dim=1).tolist()]


def read_boxes(
    tokens: Sequence[int],
    probabilities: Sequence[float],
    kind: Literal["object", "region"],
    *,
    bins: Mapping[int, int],
    ignored: Collection[int],
    marks: Collection[int],
    decode: Callable[[Sequence[int]], str],
) -> list[FoundObject]:
    """Return the boxes in a text that Florence-2 wrote, in their order; one without a label is left out, as is one that is not complete.

    Args:
        tokens: of one text, padding included.
        probabilities: the probability of each.
        bins: token of a place -> number of its bin.
        ignored: tokens that mean nothing here: begin, end, padding.
        marks: other tokens that are no words; a label does not reach over one.
        decode: text of some tokens.
    """
    found: list[FoundObject] = []
    label: list[tuple[int, float]] = []
    places: list[int] = []
    for token, sure in zip(tokens, probabilities, strict=True):
        if token in ignored:
            continue
        if token in bins:
            places.append(bins[token])
            continue
        if places or token in marks:
            found += _make_boxes(label, places, kind, decode)
            label, places = [], []
        if token not in marks:
            label.append((token, sure))
    return found + _make_boxes(label, places, kind, decode)


def _make_boxes(
    label: Sequence[tuple[int, float]], places: Sequence[int], kind: Literal["object", "region"], decode: Callable[[Sequence[int]], str]
) -> list[FoundObject]:
    if not label:
        return []
    text = decode([token for token, _ in label])
    score = math.exp(sum(math.log(max(sure, 1e-12)) for _, sure in label) / len(label))  # a long phrase is not less sure for its length
    boxes = []
    for first in range(0, len(places) - 3, 4):
        left, top, right, bottom = ((place + 0.5) / BINS for place in places[first : first + 4])
        boxes.append(FoundObject(text, score, (left, top, right, bottom), kind))
    return boxes
