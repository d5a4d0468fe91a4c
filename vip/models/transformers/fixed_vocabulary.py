"""Detectors of a fixed list of classes: DETR and its kin (RT-DETR, D-FINE, Deformable DETR), YOLOS."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from vip.models.hardware import Hardware
from vip.models.transformers.detector_base import FoundObject, TransformersDetector, relative_box
from vip.models.transformers.model_files import ModelFiles

if TYPE_CHECKING:
    import PIL.Image

LEAST_SCORE = 0.5  # the default of the library for all these models; their false finds lie mostly under it
BATCH = 8  # for GPUs; measured in fp32, DETR takes 0.3 GB a picture at 750 x 1333 px, RT-DETR 0.13 GB at 640 x 640


def load_fixed_vocabulary_detector(files: ModelFiles, hardware: Hardware) -> ObjectsDetector:
    from transformers import AutoImageProcessor, AutoModelForObjectDetection

    processor: Any = files.load(AutoImageProcessor.from_pretrained)
    model = files.load_model(AutoModelForObjectDetection.from_pretrained, hardware.dtype)
    return ObjectsDetector(files.name, model, processor, hardware, batch=BATCH)


class ObjectsDetector(TransformersDetector):
    """A model with its own list of classes."""

    def _find(self, pictures: list[PIL.Image.Image]) -> list[list[FoundObject]]:
        inputs = self._to_device(self._processor(images=pictures, return_tensors="pt"))
        with self._lock:
            outputs = self._ready_model()(**inputs)
        # in half precision a box would be rounded to half a pixel
        outputs.logits, outputs.pred_boxes = outputs.logits.float(), outputs.pred_boxes.float()
        sizes = [(picture.height, picture.width) for picture in pictures]
        results = self._processor.post_process_object_detection(outputs, threshold=LEAST_SCORE, target_sizes=sizes)
        return [self._to_found_objects(result, picture) for result, picture in zip(results, pictures, strict=True)]

    def _to_found_objects(self, result: dict[str, Any], picture: PIL.Image.Image) -> list[FoundObject]:
        names = self._model.config.id2label
        rows = zip(result["labels"].tolist(), result["scores"].tolist(), result["boxes"].tolist(), strict=True)
        return [FoundObject(names[label], score, relative_box(box, picture)) for label, score, box in rows]
