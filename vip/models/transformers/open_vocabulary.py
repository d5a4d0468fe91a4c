"""Detectors that look for the words that they are given: OWL-ViT and OWLv2, Grounding DINO and MM Grounding DINO."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from vip.errors import BackendError, UsageError
from vip.models.hardware import Hardware
from vip.models.transformers.detector_base import FoundObject, TransformersDetector, relative_box
from vip.models.transformers.model_files import ModelFiles
from vip.wording import option

if TYPE_CHECKING:
    import PIL.Image

OWL_LEAST_SCORE = 0.2  # the library's 0.1 is meant for measuring recall; in single pictures most of what lies below 0.2 is false
DINO_LEAST_SCORE = 0.3  # between the library's 0.25 and the 0.35 of the model's authors
BATCH = 4  # for GPUs; measured in fp32, OWLv2 takes 0.2 GB a picture at 960 x 960 px, Grounding DINO 1.4 GB at 750 x 1333
OWL_TYPES, DINO_TYPES = ("owlvit", "owlv2"), ("grounding-dino", "mm-grounding-dino")


def load_open_vocabulary_detector(
    files: ModelFiles, hardware: Hardware, model_type: str, labels: tuple[str, ...] | None
) -> TransformersDetector:
    """Return the detector for these words.

    Raises:
        BackendError: there are none.
        UsageError: the model cannot read them.
    """
    from transformers import AutoModelForZeroShotObjectDetection, AutoProcessor

    words = list(dict.fromkeys(" ".join(label.lower().replace(".", " ").split()) for label in labels or ()))
    if not any(words):
        raise BackendError(f"The model {files.name} looks for words that you give it: add {option('labels', 'person, dog')}.")
    processor: Any = files.load(AutoProcessor.from_pretrained)
    model = files.load_model(AutoModelForZeroShotObjectDetection.from_pretrained, hardware.dtype)
    detector = OwlDetector if model_type in OWL_TYPES else DinoDetector
    return detector(files.name, model, processor, hardware, [word for word in words if word])


class OwlDetector(TransformersDetector):
    """OWL-ViT and OWLv2: each word is compared with each patch of the picture."""

    def __init__(self, name: str, model: Any, processor: Any, hardware: Hardware, words: list[str]) -> None:
        super().__init__(name, model, processor, hardware, batch=BATCH)
        self._words = words
        longest = int(model.config.text_config.max_position_embeddings)
        for word in words:
            _check_length(name, word, len(processor.tokenizer(word)["input_ids"]), longest)

    def _find(self, pictures: list[PIL.Image.Image]) -> list[list[FoundObject]]:
        words = [self._words] * len(pictures)
        inputs = self._to_device(self._processor(text=words, images=pictures, return_tensors="pt"))
        with self._lock:
            outputs = self._ready_model()(**inputs)
        outputs.logits, outputs.pred_boxes = outputs.logits.float(), outputs.pred_boxes.float()
        results = self._processor.post_process_grounded_object_detection(
            outputs, threshold=OWL_LEAST_SCORE, target_sizes=_sizes_of(pictures), text_labels=words
        )
        return [_to_found_objects(result, result["text_labels"], picture) for result, picture in zip(results, pictures, strict=True)]


class DinoDetector(TransformersDetector):
    """Grounding DINO: all words stand in one text, and each box is compared with each token of it.

    The library names a box by the tokens that fit it, which may be half a word, or parts of two. Here it gets the one of the
    given words that its best token belongs to.
    """

    def __init__(self, name: str, model: Any, processor: Any, hardware: Hardware, words: list[str]) -> None:
        super().__init__(name, model, processor, hardware, batch=BATCH)
        self._words = words
        self._text = ". ".join(words) + "."
        tokens = processor.tokenizer(self._text)["input_ids"]
        _check_length(name, ", ".join(words), len(tokens), int(model.config.max_text_len))
        stop = processor.tokenizer.convert_tokens_to_ids(".")
        self._word_of_token = _map_tokens_to_words(tokens, stop, set(processor.tokenizer.all_special_ids))

    def _find(self, pictures: list[PIL.Image.Image]) -> list[list[FoundObject]]:
        import torch

        inputs = self._to_device(self._processor(text=[self._text] * len(pictures), images=pictures, return_tensors="pt"))
        with self._lock:
            outputs = self._ready_model()(**inputs)
        logits = outputs.logits.float()  # (pictures, boxes, tokens and padding)
        of_words = torch.zeros(logits.shape[-1], dtype=torch.bool, device=logits.device)
        of_words[list(self._word_of_token)] = True
        outputs.logits = logits.masked_fill(~of_words, -torch.inf)  # a box that fits only a full stop fits nothing
        outputs.pred_boxes = outputs.pred_boxes.float()
        best = outputs.logits.sigmoid().max(dim=-1)
        results = self._processor.post_process_grounded_object_detection(
            outputs, inputs["input_ids"], threshold=DINO_LEAST_SCORE, target_sizes=_sizes_of(pictures)
        )
        found = []
        for result, picture, scores, tokens in zip(results, pictures, best.values, best.indices, strict=True):
            kept = tokens[scores > DINO_LEAST_SCORE].tolist()
            found.append(_to_found_objects(result, [self._words[self._word_of_token[token]] for token in kept], picture))
        return found


def _map_tokens_to_words(tokens: Sequence[int], stop: int, special: set[int]) -> dict[int, int]:
    """Map the index of a token in the text to the index of its word. Full stops separate the words."""
    places: dict[int, int] = {}
    number = 0
    for place, token in enumerate(tokens):
        if token == stop:
            number += 1
        elif token not in special:
            places[place] = number
    return places


def _check_length(name: str, text: str, tokens: int, most: int) -> None:
    if tokens > most:
        raise UsageError(
            f'{option("labels")}: "{text[:60]}" has {tokens} word pieces, and the model {name} reads at most {most}. Write less.'
        )


def _sizes_of(pictures: Sequence[PIL.Image.Image]) -> list[tuple[int, int]]:
    return [(picture.height, picture.width) for picture in pictures]


def _to_found_objects(result: dict[str, Any], labels: Sequence[str], picture: PIL.Image.Image) -> list[FoundObject]:
    rows = zip(labels, result["scores"].tolist(), result["boxes"].tolist(), strict=True)
    return [FoundObject(label, score, relative_box(box, picture)) for label, score, box in rows]
