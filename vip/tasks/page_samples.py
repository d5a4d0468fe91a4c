"""A sample on a page: what was shown, what was asked, the reference and each answer, side by side with the pictures.

In: one sample of several scored files. Out: `CardView`, which the template writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from vip.errors import VipError
from vip.html.format import time_code
from vip.html.markup import escape, join, tag
from vip.html.pictures import Jpeg, shrink
from vip.store import KeyframePicture, Run, load_run
from vip.tasks.records import (
    DescriptionText,
    KeyframeDescription,
    Moment,
    Prediction,
    Sample,
    SamplePicture,
    Subtitle,
    TaskResult,
    Text,
)
from vip.tasks.sample_pictures import PictureSources
from vip.tasks.score import ScoredFile
from vip.tasks.score_tables import metric_name

SIDE_PX = 320
PICTURE_BYTES = 24 * 2**10
MOST_PICTURES = 240
MOST_LETTERS = 1200
"""Of one text."""
MOST_RANKED = 5
MOST_UNITS = 100
"""Texts of an answer or a reference on a card, such as keyframes that were asked for."""
_WORD = re.compile(r"\w+")


class Shown(NamedTuple):
    """A piece of the context: its picture, its title and its text."""

    title: str
    text: str
    picture: Jpeg | None
    has_picture: bool


class AnswerView(NamedTuple):
    """An answer, or why there is none."""

    label: str
    status: str
    reason: str
    values: Sequence[tuple[str, str]]
    """Metric and value × 100."""
    texts: Sequence[Markup]
    """One for each unit of the reference, with the words that the reference does not have marked."""


class UnitRow(NamedTuple):
    """One unit of the reference, such as a keyframe, beside which the answers to it stand."""

    number: int
    is_first: bool
    reference: str
    target: Jpeg | None


class CardView(NamedTuple):
    """A sample."""

    anchor: str
    task: str
    id: str
    video: str
    groups: str
    question: str
    context: Sequence[Shown]
    reference: Sequence[str]
    targets: Sequence[Jpeg | None]
    """The pictures that the reference describes, where they are known."""
    answers: Sequence[AnswerView]

    @property
    def rows(self) -> list[UnitRow]:
        """The units of reference and answers, the longest list of them."""
        count = max(1, len(self.reference), *(len(answer.texts) for answer in self.answers))
        return [
            UnitRow(
                number,
                number == 0,
                self.reference[number] if number < len(self.reference) else "",
                self.targets[number] if number < len(self.targets) else None,
            )
            for number in range(count)
        ]


@dataclass
class PagePictures:
    """The pictures of samples, each decoded when it is shown.

    Args:
        runs: run folders that the user names: their pictures are found by the video's name and the keyframe's id, and are shown whoever
            made the samples.
    """

    runs: Sequence[Path] = ()
    _folders: dict[str, Run | None] = field(default_factory=dict)
    _sources: dict[Path, PictureSources] = field(default_factory=dict)
    _by_video: dict[str, Run] | None = None
    _keyframes: dict[Path, dict[str, KeyframePicture]] = field(default_factory=dict)
    _shown: int = 0

    def of_piece(self, sample: Sample, piece: KeyframeDescription | SamplePicture, samples: Path | None) -> Jpeg | None:
        """Return the picture of a piece of the context.

        None where it is not here, is another than when the sample was made, or may not be opened (`PictureSources`).

        Args:
            samples: the file of the sample; None for a published one, which names no pictures.
        """
        named = piece if isinstance(piece, SamplePicture) else piece.picture
        if named is not None and named.sha256 is not None and samples is not None and self._allows(samples, named.source):
            keyframe = self._keyframe(self._open(named.source), named.keyframe_id)
            if keyframe is not None and (jpeg := self._shrink(keyframe, named.sha256)):
                return jpeg
        if isinstance(piece, KeyframeDescription) and (keyframe := self._keyframe(self._run_of(sample.video), piece.keyframe_id)):
            return self._shrink(keyframe)
        return None

    def targets(self, sample: Sample) -> list[Jpeg | None]:
        """Return the pictures of the keyframes that were asked for, where the run of the video is known."""
        run = self._run_of(sample.video)
        given = [piece.keyframe_id for piece in sample.context if isinstance(piece, KeyframeDescription)]
        known = set(given)
        if run is None or sample.ask.kind != "describe_keyframes" or not given:
            return []
        try:
            ids = [keyframe.id for keyframe in run.keyframes]
        except VipError:
            return []
        if given[0] not in ids:
            return []
        start = ids.index(given[0])
        window = run.keyframes[start : start + len(given) + sample.ask.count]
        return [self._shrink(keyframe) for keyframe in window if keyframe.id not in known][: sample.ask.count]

    def _keyframe(self, run: Run | None, keyframe_id: str) -> KeyframePicture | None:
        if run is None:
            return None
        if run.folder not in self._keyframes:
            try:
                self._keyframes[run.folder] = {one.id: one for one in reversed(run.keyframes)}  # of two with one id the first
            except VipError:
                self._keyframes[run.folder] = {}
        return self._keyframes[run.folder].get(keyframe_id)

    def _allows(self, samples: Path, source: str) -> bool:
        if samples not in self._sources:
            self._sources[samples] = PictureSources(samples, tuple(self.runs))
        return self._sources[samples].allows(source)

    def _shrink(self, keyframe: KeyframePicture, digest: str | None = None) -> Jpeg | None:
        if self._shown >= MOST_PICTURES:
            return None
        try:
            if digest is not None and sha256(keyframe.data).hexdigest() != digest:
                return None
            image = keyframe.image
        except VipError:
            return None
        self._shown += 1
        return shrink(image, longest_side_px=SIDE_PX, max_bytes=PICTURE_BYTES)

    def _open(self, folder: str) -> Run | None:
        if folder not in self._folders:
            try:
                self._folders[folder] = load_run(folder)
            except (VipError, OSError, ValueError):
                self._folders[folder] = None
        return self._folders[folder]

    def _run_of(self, video: str) -> Run | None:
        if self._by_video is None:
            self._by_video = {}
            for folder in self.runs:
                inside = folder.iterdir() if folder.is_dir() else ()
                places = [folder, *sorted(one for one in inside if one.is_dir() and not one.is_symlink())]
                for run in filter(None, (self._open(str(place)) for place in places)):
                    self._by_video.setdefault(_video_of(run), run)
        return self._by_video.get(video)


def _video_of(run: Run) -> str:
    try:
        manifest = run.manifest
    except VipError:
        manifest = None
    return manifest.video_id if manifest else run.folder.resolve().name


def sample_card_anchor(result: TaskResult, sample_id: str) -> str:
    """Return the anchor of a sample's card: a hash, since ids are other people's; samples of two representations have the same ids."""
    return f"s-{sha256(f'{result.label} {sample_id}'.encode(errors='replace')).hexdigest()[:12]}"


def card_of(files: Sequence[ScoredFile], labels: Sequence[str], index: int, pictures: PagePictures) -> CardView:
    """Return a sample with the answers of all files."""
    sample, _ = files[0].joined.pairs[index]
    reference = _first_units(reference_texts(sample))
    answers = [_answer(one, label, index, reference) for one, label in zip(files, labels, strict=True)]
    return CardView(
        anchor=sample_card_anchor(files[0].result, sample.id),
        task=sample.task,
        id=sample.id,
        video=sample.video,
        groups=_cut(", ".join(f"{name}: {', '.join(values)}" for name, values in sorted(sample.groups.items()))),
        question=question_of(sample),
        context=[shown for piece in sample.context if (shown := _shown(sample, piece, pictures, files[0].joined.samples))],
        reference=reference,
        targets=pictures.targets(sample),
        answers=answers,
    )


def _answer(scored: ScoredFile, label: str, index: int, reference: Sequence[str]) -> AnswerView:
    sample, prediction = scored.joined.pairs[index]
    values = [(metric_name(name), f"{100 * column[index]:.2f}") for name, column in scored.values.items()]
    texts = _first_units(value_texts(sample, prediction))
    beside = reference if len(texts) == len(reference) else [" ".join(reference)] * len(texts)
    marked = [mark_differences(_cut(text), known) for text, known in zip(texts, beside, strict=True)]
    why = prediction.reason or ""
    if prediction.status != "ok" and prediction.raw:
        why = f"{why}: {prediction.raw}" if why else prediction.raw
    return AnswerView(label, "" if prediction.status == "ok" else prediction.status, _cut(why), values, marked)


def _first_units(texts: list[str]) -> list[str]:
    """Return the texts of a card; of too many the first, and how many more there are."""
    rest = len(texts) - MOST_UNITS
    return [*texts[:MOST_UNITS], f"… and {rest:,} more"] if rest > 0 else texts


def mark_differences(text: str, reference: str) -> Markup:
    """Return the text with each word marked that the reference does not have."""
    known, parts, end = {word.casefold() for word in _WORD.findall(reference)}, list[Markup](), 0
    for match in _WORD.finditer(text):
        parts.append(escape(text[end : match.start()]))
        parts.append(escape(match[0]) if match[0].casefold() in known else tag("mark", match[0]))
        end = match.end()
    return join([*parts, escape(text[end:])])


def reference_texts(sample: Sample) -> list[str]:
    """Return the reference in words, one text a unit: a keyframe, or each answer that is right."""
    values = sample.reference.values if sample.reference else ()
    if sample.ask.kind == "describe_keyframes":
        return [_cut(text) for value in values[:1] for text in _texts(sample, value)]
    return [_cut(" · ".join(_texts(sample, value))) for value in values]


def value_texts(sample: Sample, prediction: Prediction) -> list[str]:
    """Return an answer in words."""
    return [] if prediction.value is None else list(_texts(sample, prediction.value))


def _texts(sample: Sample, value: object) -> Iterator[str]:
    if isinstance(value, int):
        options = sample.ask.options if sample.ask.kind == "choice" else ()
        yield f"{value}: {options[value]}" if 0 <= value < len(options) else str(value)
    elif isinstance(value, tuple):
        rows = value if sample.ask.kind == "describe_keyframes" else value[:MOST_RANKED]
        for row in rows:
            yield _row_text(row)
    else:
        yield str(value)


def _row_text(row: object) -> str:
    if isinstance(row, Moment):
        return f"{row.video} {time_code(row.start_s)}–{time_code(row.end_s)}"
    if isinstance(row, DescriptionText):
        if row.famous is None:
            return row.dense_caption or ""
        fields = row.famous.model_dump()
        return "\n".join(f"{name.capitalize()}: {text if isinstance(text, str) else ', '.join(text)}" for name, text in fields.items())
    return str(row)


def question_of(sample: Sample) -> str:
    """Return what is asked, in words."""
    ask = sample.ask
    if ask.kind == "choice":
        return f"{ask.question} {' '.join(f'({place}) {option}' for place, option in enumerate(ask.options))}"
    if ask.kind == "free_text":
        return ask.question
    if ask.kind == "blank":
        return ask.text
    if ask.kind == "rank":
        return ask.query
    return f"{ask.count} keyframes to describe"


def _shown(sample: Sample, piece: object, pictures: PagePictures, samples: Path | None) -> Shown | None:
    if isinstance(piece, Text):
        return Shown("Text", _cut(piece.text), None, False)
    if isinstance(piece, Subtitle):
        return Shown(f"{time_code(piece.start_s)} to {time_code(piece.end_s)}", _cut(piece.text), None, False)
    if isinstance(piece, SamplePicture):
        when = "" if piece.time_s is None else time_code(piece.time_s)
        return Shown(when or "Picture", "", pictures.of_piece(sample, piece, samples), True)
    if isinstance(piece, KeyframeDescription):
        title = piece.keyframe_id if piece.time_s is None else time_code(piece.time_s)
        text = _row_text(DescriptionText(famous=piece.famous, dense_caption=piece.dense_caption))
        jpeg = pictures.of_piece(sample, piece, samples)
        return Shown(title, _cut(text), jpeg, jpeg is not None or piece.picture is not None)
    return None


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} …"
