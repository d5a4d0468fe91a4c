"""`--to coco`: captions and objects for the tools of COCO.

In: samples. Out: OUT/captions.json and OUT/instances.json, two files as COCO has them, since pycocotools cannot mix captions and objects.
Their pictures are in OUT/pictures/VIDEO/.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import IO, Any

from vip.dataset import storage
from vip.dataset.rows import KeyframeRow, VideoSample
from vip.records import Detection
from vip.untrusted import printable_json

STALE_FILES = ""
INFO = {"description": "Keyframes of videos, captions and detected objects", "version": "1.0"}


class _AnnotationRows:
    """Rows with ids from 1, in a temporary file until the file of the export is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.count = file, 0

    def add(self, row: dict[str, Any]) -> int:
        self.count += 1
        self.file.write((b",\n" if self.count > 1 else b"") + printable_json({"id": self.count, **row}).encode())
        return self.count


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write both files and the pictures."""
    categories: dict[str, int] = {}
    with ExitStack() as stack:
        images, captions, objects = (_AnnotationRows(stack.enter_context(TemporaryFile())) for _ in range(3))
        for sample in samples:
            for frame in sample.frames:
                row = frame.keyframe
                place = ("pictures", sample.video.key, frame.name)
                storage.write_whole(frame.picture, out, *place)
                about = {"file_name": "/".join(place), "width": row.width_px, "height": row.height_px}
                number = images.add({**about, "keyframe_id": row.id, "time_s": row.time_s})
                if frame.description:
                    captions.add({"image_id": number, "caption": frame.description.dense_caption})
                for detection in row.detections or ():
                    if box := _box(detection, frame):
                        name = categories.setdefault(detection.label, len(categories) + 1)
                        objects.add({"image_id": number, "category_id": name, "score": detection.score, **box})
        if not captions.count:
            note("No keyframe is described, so captions.json has pictures only. Run `vip caption` first to have captions.")
        named = [{"id": number, "name": name, "supercategory": ""} for name, number in categories.items()]
        _write(storage.join(out, "captions.json"), images=images, annotations=captions)
        _write(storage.join(out, "instances.json"), categories=named, images=images, annotations=objects)
    return images.count + 2


def _box(detection: Detection, frame: KeyframeRow) -> dict[str, Any] | None:
    """Return the box in pixels, cut at the edges of the picture; None for a region, which is no object, and for a box outside."""
    left, top, right, bottom = (min(1.0, max(0.0, edge)) for edge in detection.box_xyxy)
    if detection.kind != "object" or right <= left or bottom <= top:
        return None
    width, height = frame.keyframe.width_px, frame.keyframe.height_px
    box = [round(edge, 2) for edge in (left * width, top * height, (right - left) * width, (bottom - top) * height)]
    return {"bbox": box, "area": round(box[2] * box[3], 2), "iscrowd": 0, "segmentation": []}


def _write(address: str, **lists: _AnnotationRows | list[dict[str, Any]]) -> None:
    with storage.writing(address) as file:
        file.write(f'{{"info": {json.dumps(INFO)}, "licenses": []'.encode())
        for name, rows in lists.items():
            file.write(f',\n"{name}": ['.encode())
            if isinstance(rows, _AnnotationRows):
                rows.file.seek(0)
                copyfileobj(rows.file, file)
            else:
                file.write(",\n".join(map(printable_json, rows)).encode())
            file.write(b"]")
        file.write(b"}\n")
