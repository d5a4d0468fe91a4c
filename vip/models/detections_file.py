"""The detector `file:PATH`: detections that another program made, looked up by the picture's name or time.

One JSON object a line:

    {"time_s": 12.4, "detections": [{"label": "dog", "score": 0.93, "box_xyxy": [0.1, 0.2, 0.5, 0.9]}]}
    {"keyframe": "0001_00h00m12.400s.jpg", "width_px": 1920, "height_px": 1080, "source": "detic", "detections": [...]}

Boxes are left, top, right, bottom as fractions of width and height, or in pixels where the line gives the picture's size.
A detection may have `"kind": "region"` where its label is a phrase.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from vip.errors import BackendError, InputError, validation_message
from vip.files import read_named
from vip.models.labels import refuse_labels
from vip.protocols import DetectorCapabilities, PictureOrigin
from vip.records import Detection, Image
from vip.wording import option

NEAR_S = 0.5  # a file made at two pictures a second or more serves every frame; further away another shot is likely
MOST_BYTES = 2**30
EDGE = 0.01  # detectors round, and set boxes over the picture's edges by some pixels; what lies further outside is another unit
EXAMPLE = '`{"time_s": 12.4, "detections": [{"label": "dog", "score": 0.93, "box_xyxy": [0.1, 0.2, 0.5, 0.9]}]}`'

Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _DetectionRow(_StrictModel):
    label: Annotated[Text, StringConstraints(to_lower=True)]
    score: float = Field(ge=0, le=1)
    box_xyxy: tuple[float, float, float, float]
    kind: Literal["object", "region"] = "object"


class _PictureRow(_StrictModel):
    """One line of the file, its boxes as fractions once it is checked."""

    detections: tuple[_DetectionRow, ...]
    time_s: float | None = None
    keyframe: Text | None = None
    source: Text = "file"
    width_px: int | None = Field(default=None, gt=0)
    height_px: int | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check_fields(self) -> _PictureRow:
        if (self.time_s is None) == (self.keyframe is None):
            raise ValueError('write either "time_s", the seconds from the start, or "keyframe", the name of the picture')
        if (self.width_px is None) != (self.height_px is None):
            raise ValueError('write both "width_px" and "height_px" for boxes in pixels, or neither for boxes in fractions')
        return self

    def to_detections(self) -> list[Detection]:
        """Return the detections, the highest score first.

        Raises:
            ValueError: a box is empty or lies outside the picture.
        """
        rows = [
            Detection(label=row.label, score=round(row.score, 4), box_xyxy=self._relative_box(row), source=self.source, kind=row.kind)
            for row in self.detections
        ]
        return sorted(rows, key=lambda row: (-row.score, row.box_xyxy))

    def _relative_box(self, row: _DetectionRow) -> tuple[float, float, float, float]:
        width, height = self.width_px or 1, self.height_px or 1
        left, top, right, bottom = row.box_xyxy
        box = left / width, top / height, right / width, bottom / height
        if min(box) < -EDGE or max(box) > 1 + EDGE:
            unit = "width_px and height_px" if self.width_px else '0 to 1; for pixels write "width_px" and "height_px" too'
            raise ValueError(f"the box {list(row.box_xyxy)} lies outside the picture ({unit})")
        left, top, right, bottom = (min(1.0, max(0.0, value)) for value in box)
        if not (left < right and top < bottom):
            raise ValueError(f"the box {list(row.box_xyxy)} is empty: write left, top, right, bottom")
        return left, top, right, bottom


class DetectionsFile:
    """Detections from a file."""

    capabilities = DetectorCapabilities()

    def __init__(self, detail: str | None, labels: tuple[str, ...] | None = None, **where_models_run: str) -> None:
        if detail is None:
            raise BackendError(f"The detector file needs a file: {option('detector', 'file:detections.jsonl')}.")
        refuse_labels(f"file:{detail}", labels)
        self.name = f"file:{detail}"
        self._by_name: dict[str, list[Detection]] = {}
        by_time: dict[float, list[Detection]] = {}
        for line_number, line in _read_lines(detail):
            self._add_line(detail, line_number, line, by_time)
        if not self._by_name and not by_time:
            raise InputError(f"{detail} is empty. Write a line for each picture: {EXAMPLE}")
        self._times_s = sorted(by_time)
        self._at_times = [by_time[time_s] for time_s in self._times_s]

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        """Return the detections of each picture, the highest score first; None for a picture that the file does not tell of."""
        places = where or [PictureOrigin()] * len(images)
        return [self._look_up(place) for _, place in zip(images, places, strict=True)]

    def _add_line(self, path: str, line_number: int, text: str, by_time: dict[float, list[Detection]]) -> None:
        try:
            line = _PictureRow.model_validate_json(text)
            found = line.to_detections()
        except ValueError as exc:
            raise InputError(f"{path}, line {line_number}: {_describe_error(exc)}. A line looks like this: {EXAMPLE}") from exc
        if line.keyframe is not None:
            name = PurePath(line.keyframe.replace("\\", "/")).name
            if name in self._by_name:
                raise InputError(f"{path}, line {line_number}: {name} stands there before. Write all its detections on one line.")
            self._by_name[name] = found
        elif line.time_s is not None:
            if line.time_s in by_time:
                raise InputError(
                    f"{path}, line {line_number}: {line.time_s:g} s stands there before. Write all its detections on one line."
                )
            by_time[line.time_s] = found

    def _look_up(self, where: PictureOrigin) -> list[Detection] | None:
        if where.name is not None and where.name in self._by_name:
            return list(self._by_name[where.name])
        return None if where.time_s is None else self._find_nearest(where.time_s)

    def _find_nearest(self, time_s: float) -> list[Detection] | None:
        """Return what was found at the time that is nearest, the earlier of two that are as near."""
        after = bisect_left(self._times_s, time_s)
        around = [row for row in (after - 1, after) if 0 <= row < len(self._times_s)]
        nearest = min(around, key=lambda row: abs(self._times_s[row] - time_s), default=None)
        if nearest is None or abs(self._times_s[nearest] - time_s) > NEAR_S:
            return None
        return list(self._at_times[nearest])


def _read_lines(path: str) -> Iterator[tuple[int, str]]:
    """Yield the lines that are not blank, with their numbers from 1."""
    try:
        text = read_named(Path(path).expanduser(), most_bytes=MOST_BYTES).decode("utf-8-sig")
    except FileNotFoundError as exc:
        raise InputError(f"There is no file {path}. Give one with a line for each picture: {EXAMPLE}") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise InputError(f"The file {path} cannot be read ({exc}). Give one in UTF-8 with a JSON object on each line.") from exc
    for line_number, line in enumerate(text.split("\n"), start=1):  # splitlines() would part a line at characters that JSON may hold
        if line.strip():
            yield line_number, line


def _describe_error(exc: ValueError) -> str:
    """Return the first thing that is wrong, with its place in the line."""
    if not isinstance(exc, ValidationError):
        return str(exc)
    error = exc.errors()[0]
    where = ".".join(str(part) for part in error["loc"])
    message = validation_message(error)
    return f"{where}: {message}" if where else message
