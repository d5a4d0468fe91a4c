"""The two channels of a video of VALUE: a feature each 1.5 s, and subtitle sentences with their times (Li et al. 2021, sections 2 and 4.1).

In: subtitles as published, one video a line (`vid_name`, `sub`: text, start, end), and features as published, `NAME.npz` with an array
`features`, or the videos themselves. Out: `VideoChannels`, each sentence with the frames in which it is said. Every file is data: bounded,
nothing in it is run, and a message names the line.
"""

from __future__ import annotations

import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from vip.errors import InputError
from vip.files import ZIP_DAMAGE
from vip.records import Vectors
from vip.store import array_of
from vip.tasks.json_rows import open_bounded
from vip.tasks.records import Subtitle
from vip.untrusted import DAMAGE, one_line, parse_json

FRAME_S = 1.5
"""Seconds of a frame: one feature each."""
LONG_S, FRAMES_OF_LONG = 16.0, 11
"""A last sentence that is longer than this often ends with the file and not with the voice: its first frames count."""
MOST_LINE_BYTES = 2**20
MOST_BYTES = 2**30  # the subtitles of TV have 90 MB
MOST_FRAMES, MOST_NUMBERS = 100_000, 2**24
"""Of a video: the longest ones of YouCook2 have 500 frames, and 1.2 million numbers."""
MOST_FEATURE_BYTES = 8 * MOST_NUMBERS + 2**16  # as they are unpacked
MOST_SENTENCES, MOST_LETTERS = 20_000, 10_000
FEATURES = "features"
FORM = '{"vid_name": …, "sub": [{"text": …, "start": …, "end": …}]}'


@dataclass(frozen=True, slots=True)
class VideoChannels:
    """A video as models of VALUE take it."""

    features: Vectors  # float32 (F, D), one row each 1.5 s
    sentences: tuple[Subtitle, ...]
    frames: tuple[range, ...]
    """The frames of each sentence; empty ranges where it is said behind the last one."""

    def without_subtitles(self) -> VideoChannels:
        """Return the video-only input: the sentences are empty texts in their places."""
        return replace(self, sentences=tuple(one.model_copy(update={"text": ""}) for one in self.sentences))

    def without_video(self) -> VideoChannels:
        """Return the sub-only input: the features are zero."""
        return replace(self, features=np.zeros_like(self.features))


def join_channels(features: Vectors, sentences: Sequence[Subtitle]) -> VideoChannels:
    """Return the channels of a video, each sentence with its frames."""
    return VideoChannels(features, tuple(sentences), tuple(align_sentences(sentences, len(features))))


def align_sentences(sentences: Sequence[Subtitle], count: int) -> list[range]:
    """Return the frames of each sentence: those between its start and its end, the first and the last one in part.

    Args:
        count: the frames of the video.
    """
    frames = []
    for place, sentence in enumerate(sentences):
        first, last = math.floor(sentence.start_s / FRAME_S), math.ceil(sentence.end_s / FRAME_S)
        if place == len(sentences) - 1 and sentence.end_s - sentence.start_s > LONG_S:
            last = first + FRAMES_OF_LONG
        frames.append(range(min(max(first, 0), count), min(max(last, 0), count)))
    return frames


# ---------------------------------------------------------------- subtitles


class SubtitleFile:
    """Subtitles by the name of their video; each is read when it is asked for, so that memory does not grow with the texts.

    Raises:
        InputError: the file is damaged, or has a video twice.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: dict[str, int] = {}
        with open_bounded(path, MOST_BYTES) as file:
            number = place = 0
            while line := file.readline(MOST_LINE_BYTES + 1):
                number += 1
                if line.strip():
                    name = self._row(line, number)["vid_name"]
                    if name in self._lines:
                        raise InputError(f"{path}, line {number:,}: the video {one_line(name)[:80]} is there twice. Give each once.")
                    self._lines[name] = place
                place += len(line)
        if path.suffix == ".gz":
            raise InputError(f"{path} is packed. Unpack it first: gunzip {path.name}")

    def __contains__(self, video: str) -> bool:
        return video in self._lines

    def __len__(self) -> int:
        return len(self._lines)

    def videos(self) -> tuple[str, ...]:
        """Return the videos in the order of the file."""
        return tuple(self._lines)

    def of_video(self, video: str) -> tuple[Subtitle, ...]:
        """Return the sentences of a video in the order of the file; none where it has none.

        Raises:
            InputError: a sentence has no text or no times.
        """
        if video not in self._lines:
            return ()
        with self.path.open("rb") as file:
            file.seek(self._lines[video])
            row = parse_json(file.readline(MOST_LINE_BYTES + 1))
        if len(row["sub"]) > MOST_SENTENCES:
            raise InputError(f"{self.path}: {one_line(video)[:80]} has more than {MOST_SENTENCES:,} sentences. Give the subtitles alone.")
        return tuple(self._sentence(one, video) for one in row["sub"])

    def _row(self, line: bytes, number: int) -> dict[str, Any]:
        try:
            row = parse_json(line, most_bytes=MOST_LINE_BYTES)
            if not isinstance(row["vid_name"], str) or not isinstance(row["sub"], list):
                raise TypeError("no subtitles")
        except (ValueError, LookupError, TypeError) as exc:
            raise InputError(f"{self.path}, line {number:,}: no subtitles. Expected {FORM}, one video a line.") from exc
        return dict(row)

    def _sentence(self, one: Any, video: str) -> Subtitle:
        try:
            start, end, text = one["start"], one["end"], one["text"]
            if not isinstance(text, str) or len(text) > MOST_LETTERS or not 0 <= float(start) <= float(end) < math.inf:
                raise ValueError("no sentence")
        except (ValueError, LookupError, TypeError) as exc:
            shown = one_line(str(one))[:60]
            raise InputError(f"{self.path}: {one_line(video)[:80]} has the sentence {shown}, which lacks a text or its times.") from exc
        return Subtitle(start_s=float(start), end_s=float(end), text=text.strip())


# ---------------------------------------------------------------- features


def read_features(paths: Sequence[Path]) -> Vectors:
    """Return the features of a video: those of several files side by side, 2D then 3D, as many frames as all of them have.

    Args:
        paths: `NAME.npz` files with an array `features` of (F, D), float16 or float32.

    Raises:
        InputError: a file is missing, damaged, too large, or holds something else.
    """
    columns = [_read_array(path) for path in paths]
    count = min(map(len, columns))
    return np.concatenate([column[:count] for column in columns], axis=1)


def _read_array(path: Path) -> Vectors:
    if not path.is_file():
        raise InputError(f"There are no features {path}. Give the folder that has them.")
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(one.file_size for one in archive.infolist())
            if size > MOST_FEATURE_BYTES:
                raise InputError(
                    f"{path} has {size:,} bytes of features, and more than {MOST_FEATURE_BYTES:,} are not read."
                    " Give the features of a part of the video."
                )
            array = array_of(archive.read(f"{FEATURES}.npy"))
            if array.size > MOST_NUMBERS or (array.ndim and len(array) > MOST_FRAMES):
                raise InputError(
                    f"{path} has features of the shape {array.shape}, and more than {MOST_FRAMES:,} frames or {MOST_NUMBERS:,} numbers"
                    " are not read. Give the features of a part of the video, or with fewer numbers."
                )
            array = np.asarray(array, np.float32)
    except (*ZIP_DAMAGE, *DAMAGE) as exc:
        raise InputError(f'{path} has no array "{FEATURES}" of numbers. Give features as VALUE publishes them.') from exc
    if array.ndim != 2 or not len(array) or not np.isfinite(array).all():
        raise InputError(
            f"{path} has features of the shape {array.shape}; expected frames × numbers, at least one frame, all of them finite."
        )
    return array


def write_features(path: Path, features: Vectors) -> None:
    """Write features as `read_features` reads them."""
    from vip import store

    store.make_folder(path.parent)
    with store.replacing(path) as file:
        np.savez_compressed(file, features=features)
