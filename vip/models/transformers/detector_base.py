"""Base of the detectors of the library transformers: batches, the device, and the shape of what they find."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal

from vip.models.hardware import Hardware, ShrinkingBatches
from vip.protocols import DetectorCapabilities, PictureOrigin
from vip.records import Detection, Image

if TYPE_CHECKING:
    import PIL.Image


@dataclass(frozen=True, slots=True)
class FoundObject:
    """One object as a model returns it."""

    label: str
    score: float
    box_xyxy: tuple[float, float, float, float]
    """Fractions of width and height; may reach over the picture's edges."""
    kind: Literal["object", "region"] = "object"


class TransformersDetector(ABC):
    """A loaded model that finds objects in pictures. It moves to its device with the first one, so that a process may be forked before."""

    def __init__(self, name: str, model: Any, processor: Any, hardware: Hardware, *, batch: int) -> None:
        self.name = f"transformers:{name}"
        batch = 1 if hardware.device == "cpu" else batch  # on the CPU more at once take more memory and no less time
        self.capabilities = DetectorCapabilities(side_px=side_px(processor), batch=batch, device=str(hardware), stays_loaded=True)
        self._model, self._processor, self._hardware = model, processor, hardware
        self._batches = ShrinkingBatches(batch, f"The model {name}")
        self._lock = Lock()

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        """Return the detections of each picture, the highest score first. Boxes are fractions of width and height.

        Only pictures of the same shape share a batch: in a batch of several shapes the smaller ones are padded, and some models
        find other things in a padded picture.

        Raises:
            BackendError: the device's memory does not suffice for one picture.
        """
        found: list[list[Detection] | None] = [None] * len(images)
        for numbers in _group_by_shape(images):
            rows = self._batches.map(self._detect, [images[number] for number in numbers])
            for number, row in zip(numbers, rows, strict=True):
                found[number] = row
        return found

    def _detect(self, images: Sequence[Image]) -> list[list[Detection]]:
        import torch
        from PIL import Image as Pillow

        with torch.inference_mode():
            answers = self._find([Pillow.fromarray(image) for image in images])
        return [to_detections(answer, self.name) for answer in answers]

    @abstractmethod
    def _find(self, pictures: list[PIL.Image.Image]) -> list[list[FoundObject]]:
        """Return what the model finds in pictures of one shape."""

    def _to_device(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """Return the inputs on the model's device; pixels in its precision, token numbers and masks as they are."""
        return {
            key: tensor.to(self._hardware.device, self._hardware.dtype if key == "pixel_values" else tensor.dtype)
            for key, tensor in inputs.items()
        }

    def _ready_model(self) -> Any:
        """Return the model on its device; to be called under the lock."""
        if self._model.device.type != self._hardware.device.partition(":")[0]:
            self._model = self._model.to(self._hardware.device)
        return self._model


def side_px(processor: Any) -> int:
    """Return the longest side that a processor scales pictures to."""
    size = getattr(processor, "image_processor", processor).size
    sides = {key: size[key] for key in ("longest_edge", "height", "width", "shortest_edge") if size.get(key)}
    return int(sides["longest_edge"] if "longest_edge" in sides else max(sides.values()))


def to_detections(found: Sequence[FoundObject], source: str) -> list[Detection]:
    """Return the objects as detections: boxes inside the picture, none empty, labels in small letters, the surest first."""
    rows = []
    for one in found:
        left, top, right, bottom = (min(1.0, max(0.0, value)) for value in one.box_xyxy)
        label = " ".join(one.label.lower().split())
        if label and left < right and top < bottom:
            score = round(min(1.0, one.score), 4)
            rows.append(Detection(label=label, score=score, box_xyxy=(left, top, right, bottom), source=source, kind=one.kind))
    return sorted(rows, key=lambda row: (-row.score, row.box_xyxy))


def relative_box(box: Sequence[float], picture: PIL.Image.Image) -> tuple[float, float, float, float]:
    """Return a box in pixels as fractions of the picture's width and height."""
    left, top, right, bottom = box
    return left / picture.width, top / picture.height, right / picture.width, bottom / picture.height


def _group_by_shape(images: Sequence[Image]) -> list[list[int]]:
    """Return the indices of the pictures, grouped by shape."""
    groups: dict[tuple[int, ...], list[int]] = {}
    for number, image in enumerate(images):
        groups.setdefault(image.shape, []).append(number)
    return list(groups.values())
