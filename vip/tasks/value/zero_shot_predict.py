"""Zero-shot CLIP over the files of a task: videos, features and subtitles in, predictions out, with all that decided them beside.

In: published annotations; videos, of which a frame each 1.5 s is embedded, or features of the same model; subtitles. Out: predictions,
their samples, and `NAME.zero-shot.json` with the model, the channels, the window, and the threshold with the accuracy that it had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vip import registry, store
from vip.config import SampleSettings
from vip.errors import BackendError, InputError, UsageError
from vip.extraction.samplers.uniform import EverySampler
from vip.files import read_named
from vip.protocols import Embedder, Observer
from vip.records import Vectors
from vip.tasks.files import check_new, draw_samples, file_inside, file_sha256, write_samples
from vip.tasks.predict import PredictionSummary
from vip.tasks.records import Moment, Prediction, Sample
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource
from vip.tasks.value.annotations import read_video_index
from vip.tasks.value.channels import FRAME_S, SubtitleFile, read_features, write_features
from vip.tasks.value.datasets import Dataset
from vip.tasks.value.task import ValueTask
from vip.tasks.value.zero_shot import (
    DEFAULT_WINDOW,
    Corpus,
    DecisionThreshold,
    decision_score,
    find_moments,
    make_corpus,
    queries_of,
    rank_videos,
    tune_threshold,
)
from vip.untrusted import one_line, parse_json
from vip.video import VIDEO_SUFFIXES, FileSource, open_video
from vip.wording import option

SUFFIX = ".zero-shot.json"
MOST_RECORD_BYTES = 2**20
LONGEST_SIDE_PX = 640
QUESTIONS_AT_ONCE = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroShotOptions:
    """What is embedded, and how answers are read off similarities."""

    embedder: str
    """`clip`, `clip:ARCH/TAG`: pictures and texts in one space."""
    annotations: tuple[str, ...]
    settings: SampleSettings = field(default_factory=SampleSettings)
    """Videos, subtitles, the split, how many samples."""
    features: Path | None = None
    """Folder with NAME.npz of each video; those that are missing are made from the videos and kept there."""
    video_index: Path | None = None
    window: int = DEFAULT_WINDOW
    """Frames of a moment."""
    threshold: str | None = None
    """A number, or the record that a run on the validation split wrote; None: tuned here."""


def predict_zero_shot(
    task_name: str, out: Path, options: ZeroShotOptions, *, overwrite: bool = False, observer: Observer
) -> PredictionSummary:
    """Answer all samples of a task of VALUE by similarity alone.

    Raises:
        UsageError: the task is no such task, or neither videos, features nor subtitles are named.
        InputError: a file is damaged, or a video is missing.
        BackendError: the embedder has no space of pictures and texts.
    """
    check_new(out, overwrite=overwrite)
    dataset, samples = _read_samples(task_name, options)
    _check_options(dataset, samples, options)
    embedder = registry.embedder(options.embedder)
    if not embedder.capabilities.joint_space:
        raise BackendError(f"{embedder.name} has no common space of pictures and texts. Name {option('zero_shot', 'clip:ARCH/TAG')}.")
    corpus = _embed_corpus(_corpus_names(dataset, samples, options), embedder, options, observer)
    threshold: DecisionThreshold | None = None
    if dataset.kind == "qa":
        similarities = list(_similarities(corpus, samples, dataset, embedder, observer))
        if dataset.options == 2:
            threshold = _choose_threshold(options, samples, similarities, embedder)
        predictions: Iterable[Prediction] = _answers(samples, similarities, threshold)
    else:
        predictions = _rankings(corpus, samples, dataset, embedder, options.window, observer)
    record = _record(dataset, samples, options, embedder, threshold)
    engine = f"zero-shot {embedder.name}, {record['channels']}"
    write_samples(out.with_name(f"{out.stem}.samples.jsonl"), samples)
    store.write_rows(out, (one.model_copy(update={"engine": engine}) for one in predictions))
    with store.replacing(out.with_name(f"{out.stem}{SUFFIX}")) as file:
        file.write(json.dumps(record, indent=2).encode() + b"\n")
    return PredictionSummary(out, dataset.name, engine, {"ok": len(samples)})


def _read_samples(task_name: str, options: ZeroShotOptions) -> tuple[Dataset, list[Sample]]:
    task = load_task(task_name)
    if not isinstance(task, ValueTask):
        raise UsageError(f"{task.name} is no task of VALUE, which {option('zero_shot')} is for. Name an engine instead.")
    if task.dataset.category == "captioning":
        raise UsageError(f"{task.name} asks for captions, and CLIP writes none: it has no decoder. Name an engine instead.")
    settings = options.settings
    plain = settings.model_copy(update={"videos": None, "subtitles": None})  # what it embeds is read below
    source = SampleSource(paths=options.annotations, settings=plain, video_index=options.video_index)
    return task.dataset, list(draw_samples(task.samples(source), settings.most, settings.seed))


def _check_options(dataset: Dataset, samples: Sequence[Sample], options: ZeroShotOptions) -> None:
    settings = options.settings
    has_frames = settings.videos is not None or options.features is not None
    if not has_frames and settings.subtitles is None:
        raise UsageError(
            f"Name the videos with {option('videos', 'DIR')}, features of the same model with {option('video_features', 'DIR')},"
            f" or subtitles with {option('subtitles', 'FILE')}."
        )
    if dataset.kind == "vcmr" and not has_frames:
        raise UsageError(
            f"The moments of {dataset.name} are found in frames. Add {option('videos', 'DIR')}, or {option('video_features', 'DIR')}."
        )
    if dataset.options == 2 and options.threshold is None and any(sample.reference is None for sample in samples):
        raise UsageError(
            f"{dataset.name} needs a threshold, and these samples have no answers to tune it on. Predict the validation split first, and"
            f" name its record: {option('threshold', f'val{SUFFIX}')}."
        )


def _corpus_names(dataset: Dataset, samples: Sequence[Sample], options: ZeroShotOptions) -> list[str]:
    """Return the videos that are ranked, or that questions are about.

    Raises:
        InputError: the videos of a corpus are hidden, and no index names them.
    """
    if dataset.kind == "qa":
        return list(dict.fromkeys(map(_file_name, samples)))
    if options.video_index is not None:
        return list(read_video_index(options.video_index, options.settings.split).values())
    names = [_right_video(sample) for sample in samples]
    if None in names:
        raise InputError(
            f"The videos of these queries are hidden. Name the corpus with {option('video_index', 'FILE')} and {option('split')}."
        )
    return list(dict.fromkeys(filter(None, names)))


def _file_name(sample: Sample) -> str:
    return sample.clip or sample.video


def _right_video(sample: Sample) -> str | None:
    value = sample.reference.values[0] if sample.reference else None
    first = value[0] if isinstance(value, tuple) else None
    return first.video if isinstance(first, Moment) else str(first) if first is not None else None


# ---------------------------------------------------------------- vectors


def _embed_corpus(names: Sequence[str], embedder: Embedder, options: ZeroShotOptions, observer: Observer) -> Corpus:
    subtitles = SubtitleFile(options.settings.subtitles) if options.settings.subtitles else None
    has_frames = options.settings.videos is not None or options.features is not None
    frames: list[Vectors] = []
    sentences: list[Vectors] = []
    with observer.track("Embedding videos", len(names)) as advance:
        for name in names:
            if has_frames:
                frames.append(_frames_of(name, embedder, options))
            if subtitles is not None:
                texts = [one.text for one in subtitles.of_video(name) if one.text] or [""]
                sentences.append(embedder.embed_texts(texts).max(axis=0, keepdims=True))  # the largest is all that is needed
            advance()
    if subtitles is not None and not any(name in subtitles for name in names):
        raise InputError(f"{subtitles.path} has subtitles of none of these videos. Give those of the same data set.")
    if frames and len({one.shape[1] for one in frames} | {embedder.embed_texts(["a"]).shape[1]}) > 1:
        raise InputError(f"The features have other widths than the texts of {embedder.name}. Give features of this model, or the videos.")
    return make_corpus(names, frames or None, sentences or None)


def _frames_of(name: str, embedder: Embedder, options: ZeroShotOptions) -> Vectors:
    if Path(name).name != name or name in {"", ".", ".."}:
        raise InputError(f'"{one_line(name)[:80]}" is no name of a video. Give the annotations as they were published.')
    kept = options.features / f"{name}.npz" if options.features else None
    videos = options.settings.videos
    if kept is not None and (kept.is_file() or videos is None):
        return read_features([file_inside(kept, kept.parent)])
    assert videos is not None
    path = next((one for suffix in sorted(VIDEO_SUFFIXES) if (one := videos / f"{name}{suffix}").is_file()), None)
    if path is None:
        raise InputError(f"There is no video {one_line(name)[:80]} in {videos}. Give the folder that has it, or features.")
    features = _embed_video(path, embedder)
    if kept is not None:
        write_features(kept, features)
    return features


def _embed_video(path: Path, embedder: Embedder) -> Vectors:
    """Return the vectors of the frames that are shown each 1.5 s. (F, D)"""
    can = embedder.capabilities
    vectors: list[Vectors] = []
    waiting: list[Any] = []
    with open_video(FileSource(path)) as video:
        chosen = EverySampler(f"{FRAME_S}s").sample(video, keyframes=1)
        for frame in video.frames(chosen, longest_side_px=LONGEST_SIDE_PX):
            waiting.append(can.prepare(frame.image) if can.prepare else frame.image)
            if len(waiting) == can.batch:
                vectors.append(embedder.embed_images(waiting))
                waiting = []
    if waiting:
        vectors.append(embedder.embed_images(waiting))
    if not vectors:
        raise InputError(f"{path} has no frame that can be decoded.")
    return np.concatenate(vectors)


# ---------------------------------------------------------------- answers


def _similarities(
    corpus: Corpus, samples: Sequence[Sample], dataset: Dataset, embedder: Embedder, observer: Observer
) -> Iterator[np.ndarray[Any, Any]]:
    """Yield the similarities of each question's queries and its video."""
    numbers = {name: number for number, name in enumerate(corpus.names)}
    with observer.track("Answering", len(samples)) as advance:
        for first in range(0, len(samples), QUESTIONS_AT_ONCE):
            some = samples[first : first + QUESTIONS_AT_ONCE]
            texts = [queries_of(sample, dataset) for sample in some]
            vectors = embedder.embed_texts([text for group in texts for text in group])
            place = 0
            for sample, group in zip(some, texts, strict=True):
                yield corpus.similarity_to(vectors[place : place + len(group)], numbers[_file_name(sample)])
                place += len(group)
                advance()


def _answers(samples: Sequence[Sample], similarities: Sequence[Any], threshold: DecisionThreshold | None) -> Iterator[Prediction]:
    for sample, row in zip(samples, similarities, strict=True):
        answer = int(np.argmax(row)) if threshold is None else int(decision_score(row) >= threshold.value)
        yield Prediction(sample_id=sample.id, value=answer, scores=tuple(float(one) for one in row))


def _rankings(
    corpus: Corpus, samples: Sequence[Sample], dataset: Dataset, embedder: Embedder, window: int, observer: Observer
) -> Iterator[Prediction]:
    from vip.tasks.records import Found, Rank

    numbers = {name: number for number, name in enumerate(corpus.names)}
    queries = embedder.embed_texts([sample.ask.query if isinstance(sample.ask, Rank) else "" for sample in samples])
    with observer.track("Ranking", len(samples)) as advance:
        for sample, query, ranked in zip(samples, queries, rank_videos(corpus, queries), strict=True):
            if dataset.kind == "vcmr":
                right = numbers.get(_right_video(sample) or "")
                found = find_moments(corpus, query, ranked.tolist(), right, window)
            else:
                found = Found(vr=tuple(corpus.names[number] for number in ranked))
            yield Prediction(sample_id=sample.id, value=found)
            advance()


def _choose_threshold(
    options: ZeroShotOptions, samples: Sequence[Sample], similarities: Sequence[Any], embedder: Embedder
) -> DecisionThreshold:
    """Return the threshold that is given, or tune it on these samples."""
    if options.threshold is None:
        right = [sample.reference.values[0] for sample in samples if sample.reference is not None]
        answers = [value for value in right if isinstance(value, int)]
        return tune_threshold([decision_score(row) for row in similarities], answers)
    try:
        return DecisionThreshold(float(options.threshold), float("nan"), 0)
    except ValueError:
        return _read_threshold(Path(options.threshold), options, embedder)


def _read_threshold(path: Path, options: ZeroShotOptions, embedder: Embedder) -> DecisionThreshold:
    advice = f"Give a number, or the file NAME{SUFFIX} of a run on the validation split"
    try:
        row = parse_json(read_named(path, most_bytes=MOST_RECORD_BYTES))
        found = DecisionThreshold(**row["threshold"])
        model, channels = row["model"], row["channels"]
    except OSError as exc:
        raise InputError(f"{path} cannot be read ({exc.strerror}). {advice}.") from exc
    except (ValueError, LookupError, TypeError) as exc:
        raise InputError(f"{path} holds no threshold. {advice}.") from exc
    if (model, channels) != (_identity(embedder), _channels(options)):
        raise UsageError(f"{path} was tuned for {one_line(str(model))[:80]}, {one_line(str(channels))[:20]}. {advice} with both.")
    return found


# ---------------------------------------------------------------- the record


def _record(
    dataset: Dataset, samples: Sequence[Sample], options: ZeroShotOptions, embedder: Embedder, threshold: DecisionThreshold | None
) -> dict[str, Any]:
    tuned = None if threshold is None or not threshold.samples else asdict(threshold)
    given = None if threshold is None or threshold.samples else {"value": threshold.value}
    return {
        "task": dataset.name,
        "samples": len(samples),
        "model": _identity(embedder),
        "channels": _channels(options),
        "frame_s": FRAME_S,
        "window_frames": options.window if dataset.kind == "vcmr" else None,
        "threshold": tuned or given,
        "threshold_from": None if threshold is None else options.threshold or "these samples",
        "annotations_sha256": [file_sha256(Path(path)) for path in options.annotations],
    }


def _identity(embedder: Embedder) -> str:
    return embedder.capabilities.identity or embedder.name


def _channels(options: ZeroShotOptions) -> str:
    has_frames = options.settings.videos is not None or options.features is not None
    return "+".join(name for name, is_there in (("video", has_frames), ("sub", options.settings.subtitles is not None)) if is_there)
