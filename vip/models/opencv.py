"""The detector `opencv`: faces by Haar cascades and people by HOG (both ship inside OpenCV 4), quick enough for every candidate.

Both find too much when used plainly. A face counts when two cascades that were trained apart agree on it; its score grows
with the number of overlapping hits. A person counts from a margin of the linear classifier on; its score is the logistic
of that margin. Scores say "how sure within this detector", not a probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from threading import local
from typing import Any

import cv2
import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.models.labels import refuse_labels
from vip.protocols import DetectorCapabilities, PictureOrigin
from vip.records import Detection, Image
from vip.wording import option

SIDE_PX = 256  # longest side of the picture that is searched. Faces: 5 ms a picture, and 22 of the 24 that 320 px find in 15 ms.
# People: 2 ms, and on 181 frames of 27 clips no false one, where 320 px took 4 ms and took bottles for people
SMALLEST_FACE = 0.1  # of the shorter side; smaller faces are mostly false ones
COARSE_STEP = 1.8  # between sizes in a first search, any hit counts: half the time of the second, and it keeps 53 of the 56
# pictures with faces among 486 of 27 clips
SURE_MARGIN = 0.8  # HOG margin from which a window counts as a person
FIRST_CASCADE, SECOND_CASCADE = "haarcascade_frontalface_default.xml", "haarcascade_frontalface_alt2.xml"


class OpenCVDetector:
    """People and faces; the labels are `person` and `face`."""

    name = "opencv"
    capabilities = DetectorCapabilities(side_px=SIDE_PX)

    def __init__(self, detail: str | None, labels: tuple[str, ...] | None = None, **where_models_run: str) -> None:
        if detail is not None:
            raise BackendError(f'The detector "opencv" takes no detail, but got "{detail}". Write {option("detector", "opencv")}.')
        refuse_labels("opencv", labels)
        if not hasattr(cv2, "HOGDescriptor") or not hasattr(cv2, "CascadeClassifier"):
            raise BackendError(f"OpenCV {cv2.__version__} has no HOG and no cascades. Run `pip install 'opencv-python-headless<5'`.")
        self._local = local()

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        """Return the detections of each picture, the highest score first. Boxes are fractions of width and height."""
        return [self._detect(image) for image in images]

    def _detect(self, image: Image) -> list[Detection]:
        small = _resize(np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8), SIDE_PX)
        found = [*self._detect_faces(small), *self._detect_people(small)]
        return sorted(found, key=lambda detection: (-detection.score, detection.box_xyxy))

    def _classifiers(self) -> Any:
        """Return the cascades and HOG of this thread: OpenCV's classifiers keep state while they run."""
        if not hasattr(self._local, "first"):
            folder = cv2.data.haarcascades  # type: ignore[attr-defined]
            self._local.first, self._local.second = (cv2.CascadeClassifier(folder + name) for name in (FIRST_CASCADE, SECOND_CASCADE))
            self._local.hog = cv2.HOGDescriptor()
            self._local.hog.setSVMDetector(cv2.HOGDescriptor.getDefaultPeopleDetector())
        return self._local

    def _detect_faces(self, small: npt.NDArray[np.uint8]) -> list[Detection]:
        first, size = self._classifiers().first, max(20, round(SMALLEST_FACE * min(small.shape)))
        if not len(first.detectMultiScale(small, scaleFactor=COARSE_STEP, minNeighbors=0, minSize=(size, size))):
            return []
        boxes, hits = first.detectMultiScale2(small, scaleFactor=1.25, minNeighbors=2, minSize=(size, size))
        found = []
        for box, count in zip(boxes, hits, strict=True):
            if confirmations := self._count_confirmations(small, box):
                score = 1 - math.exp(-(int(count) + confirmations) / 12)
                found.append(_to_detection("face", score, box, small.shape))
        return found

    def _count_confirmations(self, small: npt.NDArray[np.uint8], box: npt.NDArray[np.int32]) -> int:
        """Return the overlapping hits of the second cascade around a box of the first."""
        x, y, width, height = (int(value) for value in box)
        margin = width // 4
        around = small[max(0, y - margin) : y + height + margin, max(0, x - margin) : x + width + margin]
        least = int(0.7 * width)
        _, hits = self._classifiers().second.detectMultiScale2(around, scaleFactor=1.1, minNeighbors=2, minSize=(least, least))
        return int(max(hits, default=0))

    def _detect_people(self, small: npt.NDArray[np.uint8]) -> list[Detection]:
        if small.shape[0] < 128 or small.shape[1] < 64:  # the HOG window
            return []
        boxes, margins = self._classifiers().hog.detectMultiScale(small, hitThreshold=0.2, winStride=(8, 8), padding=(8, 8), scale=1.1)
        sure = [(box, float(margin)) for box, margin in zip(boxes, np.ravel(margins), strict=True) if margin >= SURE_MARGIN]
        return [_to_detection("person", 1 / (1 + math.exp(-2 * (margin - SURE_MARGIN))), box, small.shape) for box, margin in sure]


def _resize(grey: npt.NDArray[np.uint8], side_px: int) -> npt.NDArray[np.uint8]:
    scale = side_px / max(grey.shape)
    size = max(1, round(grey.shape[1] * scale)), max(1, round(grey.shape[0] * scale))
    return np.asarray(cv2.resize(grey, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR), np.uint8)


def _to_detection(label: str, score: float, box: npt.NDArray[np.int32], shape: tuple[int, ...]) -> Detection:
    x, y, width, height = (float(value) for value in box)
    left, top = max(0.0, x / shape[1]), max(0.0, y / shape[0])
    right, bottom = min(1.0, (x + width) / shape[1]), min(1.0, (y + height) / shape[0])
    return Detection(label=label, score=round(score, 4), box_xyxy=(left, top, right, bottom), source="opencv")
