"""The reader of text in pictures: RapidOCR, the models PP-OCR of PaddleOCR on onnxruntime.

Its wheel brings the models (Latin letters, Chinese and Japanese), so nothing is downloaded. A line is found as four corners and
turned upright before it is read; what is kept is the upright box around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
import numpy.typing as npt

from vip import telemetry
from vip.cores import cores
from vip.errors import BackendError
from vip.records import MOST_WORDS_LETTERS, Image, TextLine
from vip.untrusted import one_line

LEAST_SCORE = 0.8  # of 25 clips, what is misread or is no text lies below, but for half letters behind something
LEAST_SCORE_ALONE = 0.95  # of a single letter or digit: wheels, windows and faces are read as O, T and 9 with up to 0.94
MOST_RATIO = 4  # of the sides of what is searched: RapidOCR enlarges pictures until the shorter side has 736 px, a strip without end
INSTALL = "pip install 'vip-keyframes[text]'"


class RapidOcrReader:
    """Lines of text with boxes and scores."""

    def __init__(self) -> None:
        """Find the library. It is loaded with the first picture, with threads after which this process is not forked any more.

        Raises:
            BackendError: it is not installed.
        """
        try:
            self.name = f"rapidocr {version('rapidocr')}"
        except PackageNotFoundError as exc:
            raise BackendError(f"Text in pictures is read with RapidOCR, which is not installed. Run: {INSTALL}") from exc

    @cached_property
    def _engine(self) -> Any:
        settings = {"Global.log_level": "critical", "EngineConfig.onnxruntime.intra_op_num_threads": cores()}
        telemetry.turn_off()
        try:
            import onnxruntime  # noqa: F401 - RapidOCR would try others and say less
            from rapidocr import RapidOCR

            return RapidOCR(params=settings)
        except ImportError as exc:
            raise BackendError(f"Text in pictures is read with RapidOCR and onnxruntime ({exc}). Run: {INSTALL}") from exc
        except Exception as exc:  # of the settings, a model file or onnxruntime
            raise BackendError(f"RapidOCR cannot be started ({_first_line(exc)}). Run: {INSTALL}") from exc

    def read(self, image: Image) -> list[TextLine]:
        """Return the lines of text in a picture, in no certain order."""
        engine = self._engine
        try:
            found = engine(_padded(image)[:, :, ::-1].copy())  # it takes BGR, as OpenCV
        except Exception as exc:  # its own errors have no common root
            raise BackendError(f"RapidOCR failed on a picture ({_first_line(exc)}). Run: {INSTALL}") from exc
        if found.txts is None or found.boxes is None or found.scores is None:
            return []
        lines = (_line(*row, image.shape) for row in zip(found.txts, found.scores, found.boxes, strict=True))
        return [line for line in lines if line is not None]


def _padded(image: Image) -> Image:
    """Return the picture with black at its right or lower edge where it is a narrow strip."""
    height, width = image.shape[:2]
    below, beside = (max(0, -(-other // MOST_RATIO) - side) for side, other in ((height, width), (width, height)))
    return np.pad(image, ((0, below), (0, beside), (0, 0))) if below or beside else image


def _line(text: str, score: float, corners: npt.NDArray[np.float32], shape: Sequence[int]) -> TextLine | None:
    """Return a line; None where it is too unsure, or lies beside the picture."""
    shown, signs = one_line(text)[:MOST_WORDS_LETTERS], sum(map(str.isalnum, text))
    if score < (LEAST_SCORE if signs > 1 else LEAST_SCORE_ALONE) or not signs:
        return None
    left, top, right, bottom = (
        round(min(1.0, max(0.0, float(edge) / side)), 4)
        for edge, side in zip((*corners.min(axis=0), *corners.max(axis=0)), (shape[1], shape[0]) * 2, strict=True)
    )
    if left >= right or top >= bottom:
        return None
    return TextLine(text=shown, score=round(min(1.0, float(score)), 4), box_xyxy=(left, top, right, bottom))


def _first_line(exc: Exception) -> str:
    return (" ".join(str(exc).split()) or type(exc).__name__)[:200]
