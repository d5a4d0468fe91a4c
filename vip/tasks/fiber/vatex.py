"""Captions of videos for FIBER: VATEX's files as they were published, or VALUE's (Castro et al. 2022, section 3.1).

In: `[{"videoID": "<id>_<start>_<end>", "enCap": [caption, …]}, …]`, or JSON lines `{"vid_name": …, "descs": [{"desc": caption}, …]}`.
Out: videos with their captions, one in memory at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vip.errors import InputError
from vip.tasks.json_rows import iterate_array, open_bounded
from vip.untrusted import one_line, parse_json

FORM = '[{"videoID": "<id>_<start>_<end>", "enCap": [caption, …]}, …]'
MOST_BYTES = 2**30
MOST_LINE_BYTES = 2**20
MOST_BLANK_BYTES = 2**16  # at the beginning
MOST_LETTERS = 10_000  # of a caption
MOST_CAPTIONS = 1000  # of a video


@dataclass(frozen=True, slots=True)
class CaptionedVideo:
    """A clip and its captions, in the order of the file."""

    video_id: str
    start_s: int
    end_s: int
    captions: tuple[str, ...]


def read_captions(path: Path) -> Iterator[CaptionedVideo]:
    """Yield the videos of a file of captions.

    Raises:
        InputError: it is damaged, or in neither form; the message names the row.
    """
    for number, row in _rows(path):
        try:
            texts = row["enCap"] if "enCap" in row else [one["desc"] for one in row["descs"]]
            name = row["videoID"] if "videoID" in row else row["vid_name"]
            if not all(isinstance(text, str) and len(text) <= MOST_LETTERS for text in texts) or len(texts) > MOST_CAPTIONS:
                raise ValueError(f"captions must be texts of at most {MOST_LETTERS:,} letters, at most {MOST_CAPTIONS:,} a video")
            video_id, start_s, end_s = split_video_id(name)
        except KeyError as exc:
            raise InputError(f"{path}, row {number:,}: it has no {one_line(str(exc.args[0]))[:40]}. Expected {FORM}.") from exc
        except (TypeError, ValueError, AttributeError) as exc:
            raise InputError(f"{path}, row {number:,}: {one_line(str(exc))[:200]}. Expected {FORM}.") from exc
        yield CaptionedVideo(video_id, start_s, end_s, tuple(texts))


def split_video_id(name: str) -> tuple[str, int, int]:
    """Return the id, the first and the last second of `<id>_<start>_<end>`; ids have `_` too, so it is split from the right.

    Raises:
        ValueError: it has another form.
    """
    parts = name.rsplit("_", 2)
    if len(parts) != 3 or not parts[0] or not all(part.isascii() and part.isdigit() for part in parts[1:]):
        raise ValueError(f'"{name[:80]}" is not <id>_<start>_<end>')
    return parts[0], int(parts[1]), int(parts[2])


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with open_bounded(path, MOST_BYTES) as file:
        first = file.read(MOST_BLANK_BYTES).lstrip(b" \t\r\n")[:1]
        if not first and file.read(1):
            raise InputError(f"{path} begins with more than {MOST_BLANK_BYTES:,} blank bytes. Expected {FORM}.")
    with open_bounded(path, MOST_BYTES) as file:
        if first == b"[":
            yield from enumerate(iterate_array(file, path, FORM), 1)
            return
        number = 0
        while line := file.readline(MOST_LINE_BYTES):
            number += 1
            if line.strip():
                try:
                    row = parse_json(line, most_bytes=MOST_LINE_BYTES)
                except ValueError as exc:
                    raise InputError(f"{path}, line {number:,}: it is no JSON ({one_line(str(exc))[:80]}). Expected {FORM}.") from exc
                if not isinstance(row, dict):
                    raise InputError(f"{path}, line {number:,}: it is no JSON object. Expected {FORM}.")
                yield number, row
