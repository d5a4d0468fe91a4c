"""The published files of VALUE as HERO is trained on them: examples of each task and split, and the channels of each video.

In: a folder of annotations, features (a folder with NAME.npz of each video, or an HDF5 file), subtitles. Out: `Example`s, and a function
that reads the channels of a video when they are needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vip.baselines.features import FeatureFile
from vip.baselines.value.data import Example
from vip.errors import InputError, UsageError
from vip.records import Vectors
from vip.tasks.files import file_inside
from vip.tasks.records import Choice, Moment, Rank, Sample
from vip.tasks.value.annotations import read_rows, read_samples
from vip.tasks.value.channels import SubtitleFile, VideoChannels, join_channels, read_features
from vip.tasks.value.datasets import BY_KEY, Dataset
from vip.tasks.value.statistics import SOURCES
from vip.tasks.value.suite import find_annotations, has_annotations
from vip.untrusted import one_line
from vip.wording import option

TRAIN = "train"
TRAINED_ON: dict[str, tuple[tuple[str, str], ...]] = {
    "vatex_en_c": (("vatex_en_r", "train"), ("vatex_en_r", "val")),
    "yc2c": (("yc2r", "train"),),
}
"""Captions whose training set is that of a retrieval task: `cap_txt_db` of the starter code's train-vatex_en_c-8gpu.json and yc2c."""
HDF5 = (".h5", ".hdf5")
SOURCE_OF = {key: source.key for source in SOURCES for key in source.tasks}


# ---------------------------------------------------------------- examples


def read_train(folder: Path, dataset: Dataset) -> list[Example]:
    """Return the training examples of a task, from its own file or from that of the retrieval task with the same texts.

    Raises:
        InputError: the file is missing or damaged, or hides the answers.
    """
    examples: list[Example] = []
    for key, split in _training_files(folder, dataset):
        path, _ = find_annotations(folder, BY_KEY[key], split)
        found = list(_examples(path, BY_KEY[key]))
        hidden = next((one for one in found if _is_hidden(one)), None)
        if hidden is not None:
            raise InputError(f'{path}: "{one_line(hidden.id)[:80]}" has no answer, and the model learns from it. Give the training split.')
        examples += found
    return [_as_caption(one) for one in examples] if dataset.category == "captioning" else examples


def _training_files(folder: Path, dataset: Dataset) -> Sequence[tuple[str, str]]:
    own = ((dataset.key, TRAIN),)
    return own if has_annotations(folder, dataset, TRAIN) else TRAINED_ON.get(dataset.key, own)


def _is_hidden(one: Example) -> bool:
    return (one.kind == "qa" and one.answer is None) or (one.kind == "captioning" and not one.texts) or not one.video


def _as_caption(one: Example) -> Example:
    return one if one.kind == "captioning" else replace(one, kind="captioning", span_s=None)


def _examples(path: Path, dataset: Dataset) -> Iterator[Example]:
    """Yield the examples of a file; of a clip with several captions one for each."""
    for sample, (_, row) in zip(read_samples(path, dataset), read_rows(path, dataset), strict=True):
        if dataset.category == "captioning":
            values = sample.reference.values if sample.reference else ()
            predicted = example_of(sample, dataset)
            yield from (replace(predicted, texts=((str(caption),),)) for caption in values)
            if not values:
                yield predicted
        else:
            yield example_of(sample, dataset, row)


def example_of(sample: Sample, dataset: Dataset, row: Mapping[str, Any] | None = None) -> Example:
    """Return a sample as a model takes it: of a clip without its captions.

    Args:
        row: its published line, which says when an answer is shown.

    Raises:
        InputError: it is of another task.
    """
    video = sample.clip or sample.video
    value = sample.reference.values[0] if sample.reference else None
    if isinstance(sample.ask, Rank):
        first = value[0] if isinstance(value, tuple) else None
        span = (first.start_s, first.end_s) if isinstance(first, Moment) else None
        shown = first.video if isinstance(first, Moment) else str(first) if first is not None else ""
        return Example(sample.id, "retrieval", shown, ((sample.ask.query,),), span_s=span)
    if isinstance(sample.ask, Choice):
        return Example(sample.id, "qa", video, _texts(sample.ask, dataset), value if isinstance(value, int) else None, _shown_at(row or {}))
    if dataset.category != "captioning":
        raise InputError(f'"{one_line(sample.id)[:80]}" is no sample of {dataset.name}. Make its samples again.')
    # of the three TVC alone describes a moment of a longer video
    span = (sample.start_s, sample.end_s) if dataset.key == "tvc" and sample.start_s is not None and sample.end_s is not None else None
    return Example(sample.id, "captioning", video, (), span_s=span)


def _texts(ask: Choice, dataset: Dataset) -> tuple[tuple[str, ...], ...]:
    if dataset.key == "violin":
        return ((ask.question,),)
    if dataset.key == "vlep":
        return tuple((text,) for text in ask.options)
    return tuple((ask.question, text) for text in ask.options)


_SPAN = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)-(\d{1,9}(?:\.\d{1,9})?)")


def _shown_at(row: Mapping[str, Any]) -> tuple[float, float] | None:
    """Return when an answer is shown, `[36.6, 58.5]` or `36.6-58.5`; None where a file does not say (some of TVQA are "NaN-NaN")."""
    span = row.get("ts")
    if isinstance(span, str) and (match := _SPAN.fullmatch(span.strip())):
        span = [float(match[1]), float(match[2])]
    if not isinstance(span, list) or len(span) != 2 or not all(type(one) in (int, float) and math.isfinite(one) for one in span):
        return None
    return (float(span[0]), float(span[1])) if 0 <= span[0] <= span[1] else None


# ---------------------------------------------------------------- channels


class ChannelReader:
    """Reads the channels of the videos of a task.

    Args:
        features: side by side, 2D then 3D: folders with NAME.npz, or with a folder a source (tv/, how2/ …) of them; HDF5 files with a row
        each 1.5 s.
        subtitles: a file, or a folder with `<source>_subtitles.jsonl`; None: videos have no sentences.

    Raises:
        UsageError: no features are given.
        InputError: a file is missing or damaged.
        BackendError: h5py is not installed.
    """

    def __init__(self, features: Sequence[Path], subtitles: Path | None) -> None:
        if not features:
            raise UsageError(f"HERO sees the videos. Give their features: {option('features', 'DIR')}.")
        self._columns = [_open_features(path) for path in features]
        self._subtitles = subtitles
        self._files: dict[Path, SubtitleFile] = {}

    def of_source(self, source: str) -> SourceChannels:
        """Return what reads the videos of one source."""
        return SourceChannels(self, source)

    def check(self, videos: Sequence[str], source: str) -> None:
        """Refuse videos without features.

        Raises:
            InputError: there are some; the message says how many.
        """
        names = sorted(set(videos))
        for column in self._columns:
            missing = [name for name in names if not _has(column, name, source)]
            if missing:
                where = column.path if isinstance(column, FeatureFile) else column
                raise InputError(
                    f"{where} has no features of {len(missing):,} of {len(names):,} videos, such as {one_line(missing[0])[:60]}."
                    " Extract them, or give the folder that has them."
                )

    def videos(self) -> list[str]:
        """Return the videos of one file of subtitles that have features, in the order of their names."""
        file = self._subtitle_file("")
        return sorted(name for name in (file.videos() if file else ()) if all(_has(column, name, "") for column in self._columns))

    def width(self, video: str, source: str) -> int:
        """Return how many numbers a frame has."""
        return int(self.read(video, source).features.shape[1])

    def read(self, video: str, source: str) -> VideoChannels:
        """Return the channels of a video; subtitles are those of its source."""
        if Path(video).name != video or video in {"", ".", ".."}:
            raise InputError(f'"{one_line(video)[:80]}" is no name of a video. Give the annotations as they were published.')
        columns = [_read_column(column, video, source) for column in self._columns]
        count = min(map(len, columns))
        features: Vectors = np.concatenate([column[:count] for column in columns], axis=1)
        file = self._subtitle_file(source)
        return join_channels(features, file.of_video(video) if file else ())

    def _subtitle_file(self, source: str) -> SubtitleFile | None:
        if self._subtitles is None:
            return None
        path = self._subtitles
        if path.is_dir():
            path = path / f"{source}_subtitles.jsonl"
            if not path.is_file():
                raise InputError(f"{self._subtitles} has no {path.name}. Give the folder of the published subtitles.")
            path = file_inside(path, self._subtitles)
        if path not in self._files:
            self._files[path] = SubtitleFile(path)
        return self._files[path]


class SourceChannels:
    """Reads the videos of one source by their names."""

    def __init__(self, reader: ChannelReader, source: str) -> None:
        self.reader, self.source = reader, source

    def __call__(self, video: str) -> VideoChannels:
        return self.reader.read(video, self.source)


def _open_features(path: Path) -> Path | FeatureFile:
    if path.suffix.lower() in HDF5:
        return FeatureFile(path)
    if not path.is_dir():
        raise InputError(f"{path} is no folder with NAME.npz of each video, and no HDF5 file (.h5). Give features as VALUE publishes them.")
    return path


def _has(column: Path | FeatureFile, video: str, source: str) -> bool:
    if isinstance(column, FeatureFile):
        return video in column.rows
    return Path(video).name == video and _array_file(column, video, source).is_file()


def _read_column(column: Path | FeatureFile, video: str, source: str) -> Vectors:
    if isinstance(column, FeatureFile):
        if video not in column.rows:
            raise InputError(f"{column.path} has no features of the video {one_line(video)[:80]}. Extract them, or give another file.")
        return column.read_video(video, pooled=True)
    return read_features([_array_file(column, video, source)])


def _array_file(folder: Path, video: str, source: str) -> Path:
    """Return the file of a video, which may be missing; errors as of `file_inside`."""
    path = file_inside(folder / f"{video}.npz", folder)
    of_source = folder / source / path.name
    return file_inside(of_source, folder) if of_source.is_file() else path
