"""`--to jsonl`: one line a keyframe. In: samples. Out: OUT/keyframes.jsonl, and its pictures in OUT/pictures/VIDEO/."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from vip.dataset import storage
from vip.dataset.rows import VideoSample
from vip.dataset.schema import rows_of
from vip.untrusted import printable_json

STALE_FILES = ""


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write the rows and the pictures."""
    files = 1
    with storage.writing(out, "keyframes.jsonl") as file:
        for sample in samples:
            for row in rows_of(sample):
                place = ("pictures", row["video_id"], row["picture"]["path"])
                storage.write_whole(row["picture"]["bytes"], out, *place)
                vector = None if row["embedding"] is None else [float(str(value)) for value in row["embedding"]]
                line = {**row, "picture": "/".join(place), "embedding": vector}
                file.write(printable_json(line).encode() + b"\n")
                files += 1
    return files
