"""Samples that people answer in words: Video Infilling and Prediction (Himakunthala et al. 2023, section 4), and open questions.

In: samples of `vip samples`. Out: predictions that `vip score` reads, as the row `human` of a table. Of a keyframe that is not shown people
write the five fields of FAMOuS, or a dense caption; of a question its answer. Nobody sees what others wrote, nor the reference.

    0.focus, 0.action … 2.setting    of the first, second, third keyframe that is asked for; the objects one a line
    0.dense_caption
    answer                           to a question
    comment
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from vip import store
from vip.errors import InputError, UsageError
from vip.html.markup import showable
from vip.records import Famous
from vip.review.fields import COMMENT, objects_of
from vip.review.log import Action, NewAction, ReviewLog
from vip.review.log_state import LogState
from vip.review.question_items import WRITTEN_KINDS
from vip.review.videos import clips_in
from vip.tasks.files import check_is_file, read_samples
from vip.tasks.infilling import VideoInfilling
from vip.tasks.records import (
    DescribeKeyframes,
    DescriptionText,
    FreeText,
    KeyframeDescription,
    Prediction,
    Sample,
    SamplePicture,
    Subtitle,
    Text,
)
from vip.untrusted import one_line
from vip.wording import call, option

ENGINE = "human"
ANSWER = "answer"
DENSE = "dense_caption"
MOST_SAMPLES = 200_000
MOST_TARGETS = 20
MOST_TEXT = 5000
MOST_FILES = 50  # of one export; a log of a stranger may name any number of people


@dataclass(frozen=True, slots=True)
class WrittenItem:
    """A sample that people answer."""

    sample: Sample
    clip: Path | None = None
    """The video's file, where it is at hand; keyframes that are not shown have none, or it would show them."""

    @property
    def id(self) -> str:
        """As in the file."""
        return self.sample.id

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the texts that its answer has."""
        ask = self.sample.ask
        if isinstance(ask, DescribeKeyframes):
            names = tuple(Famous.model_fields) if ask.representation == "famous" else (DENSE,)
            return tuple(f"{place}.{name}" for place in range(ask.count) for name in names)
        return (ANSWER,)


def read_written_items(path: Path, videos: Path | None = None) -> list[WrittenItem]:
    """Return the samples of a file in their order.

    Args:
        videos: for questions, a folder of clips, by the name of the clip or of the video.

    Raises:
        InputError: the file is damaged, has a sample that is not answered in words, has one twice, or too many.
    """
    clips = clips_in(videos) if videos else {}
    items: list[WrittenItem] = []
    seen: set[str] = set()
    for sample in islice(read_samples(path), MOST_SAMPLES + 1):
        name = one_line(sample.id)[:80]
        if sample.ask.kind not in WRITTEN_KINDS:
            raise InputError(f"{path}: the sample {name} is not answered in words. Give samples of one task.")
        if isinstance(sample.ask, DescribeKeyframes) and sample.ask.count > MOST_TARGETS:
            raise InputError(f"{path}: the sample {name} asks for more than {MOST_TARGETS} keyframes. Make samples that ask for fewer.")
        if sample.id in seen:
            raise InputError(f"{path} has the sample {name} twice. Remove one.")
        seen.add(sample.id)
        if clips and isinstance(sample.ask, DescribeKeyframes):
            raise InputError(f"{path} asks what keyframes show that people do not see. Leave the folder of videos out.")
        items.append(WrittenItem(sample, (clips.get(sample.clip) if sample.clip else None) or clips.get(sample.video)))
    if not items:
        raise InputError(f"{path} has no sample. Make some with `vip samples`.")
    if len(items) > MOST_SAMPLES:
        raise InputError(f"{path} has more than {MOST_SAMPLES:,} samples. Give a part of them.")
    return items


class WrittenState(LogState):
    """What people wrote.

    Args:
        judgements: so many people answer a sample; None: everybody is asked.
    """

    def __init__(self, items: Sequence[WrittenItem], log: ReviewLog, *, judgements: int | None = None) -> None:
        self.items, self.judgements = items, judgements
        super().__init__(log, {item.id: number for number, item in enumerate(items)})

    def _reset(self) -> None:
        super()._reset()
        self._finished: dict[str, dict[str, None]] = {}
        """Item -> who has written all of its texts, in the order in which they were done."""

    def _apply(self, action: Action) -> None:
        super()._apply(action)
        if action.field == COMMENT or action.item not in self.item_numbers:
            return
        people = self._finished.setdefault(action.item, {})
        item = self.items[self.item_numbers[action.item]]
        if all(self.value(item.id, name, action.reviewer) for name in item.fields):
            people.setdefault(action.reviewer)
        else:
            people.pop(action.reviewer, None)

    def is_shared(self, field: str) -> bool:
        return False

    def clean_value(self, field: str, value: str | None) -> str | None:
        name = field.rpartition(".")[2]
        if field not in (COMMENT, ANSWER) and name not in (*Famous.model_fields, DENSE):
            raise UsageError(f"There is no field {one_line(field)[:40]!r}. Reload the page.")
        if value is not None and len(value) > MOST_TEXT:
            raise UsageError(f"A text has at most {MOST_TEXT:,} letters. Shorten it.")
        lines = [showable(line).strip() for line in (value or "").splitlines()]
        if name == "objects":
            lines = list(dict.fromkeys(line for line in lines if line))
        return "\n".join(lines).strip() or None

    def most_letters(self, field: str) -> int:
        return MOST_TEXT

    def clean(self, action: NewAction) -> NewAction:
        cleaned = super().clean(action)
        if action.field not in (COMMENT, *self.items[self.item_numbers[action.item]].fields):
            raise UsageError(f"There is no field {one_line(action.field)[:40]!r}. Reload the page.")
        return cleaned

    def finished_by(self, item: WrittenItem) -> list[str]:
        """Return who has written all texts, the first first."""
        return list(self._finished.get(item.id, ()))

    def next_open(self, reviewer: str, after: int = -1) -> int | None:
        """Return the number of the next sample that is asked of a person, from the first again behind the last; None without one."""
        count = len(self.items)
        places = ((after + step) % count for step in range(1, count + 1))
        return next((number for number in places if self._is_open(self.items[number], reviewer)), None)

    def _is_open(self, item: WrittenItem, reviewer: str) -> bool:
        people = self._finished.get(item.id, {})
        return reviewer not in people and (self.judgements is None or len(people) < self.judgements)

    def progress(self, reviewer: str) -> dict[str, int]:
        """Return how many samples the person has answered, and how many were asked or still are."""
        done = sum(reviewer in people for people in self._finished.values())
        return {"done": done, "total": done + sum(self._is_open(item, reviewer) for item in self.items)}

    def progress_by_reviewer(self) -> dict[str, dict[str, int]]:
        """Return the progress of everybody by name, in one pass over the samples."""
        asked, done, done_open = 0, Counter[str](), Counter[str]()
        for item in self.items:
            people = self._finished.get(item.id, {})
            is_open = self.judgements is None or len(people) < self.judgements
            asked += is_open
            done.update(people.keys())
            done_open.update(people.keys() if is_open else ())
        return {name: {"done": done[name], "total": done[name] + asked - done_open[name]} for name in self.reviewers()}


# ---------------------------------------------------------------- what the page shows


def shown_sample(state: WrittenState, number: int, reviewer: str) -> dict[str, Any]:
    """Return what the page shows of a sample and what the person wrote; the reference is not among it."""
    item, sample = state.items[number], state.items[number].sample
    given = list(_given(sample))
    is_keyframes = isinstance(sample.ask, DescribeKeyframes)
    asked = _asked(state, item, reviewer)
    before = len(given) // 2 if sample.task.startswith(VideoInfilling.name) else len(given)
    parts = [*given[:before], *asked, *given[before:]] if is_keyframes else [*given, *asked]
    for place, part in enumerate(parts, 1):
        part["title"] = f"Keyframe {place}" if is_keyframes or not part["fields"] else "Your answer"
    return {
        "number": number,
        "id": item.id,
        "video": showable(sample.video),
        "question": showable(sample.ask.question) if isinstance(sample.ask, FreeText) else "",
        "said": [showable(piece.text) for piece in sample.context if isinstance(piece, Text | Subtitle)],
        "parts": parts,
        **_interval(item),
        "comment": state.value(item.id, COMMENT, reviewer),
        "is_done": reviewer in state.finished_by(item),
    }


def _interval(item: WrittenItem) -> dict[str, Any]:
    """Return whether there is a video, and the part of it that the question is about; a file of the clip alone has no start and end."""
    sample = item.sample
    is_whole = item.clip is not None and item.clip.stem == sample.clip
    start_s, end_s = (None, None) if is_whole else (sample.start_s, sample.end_s)
    return {"has_video": item.clip is not None, "start_s": start_s, "end_s": end_s}


def _given(sample: Sample) -> Iterator[dict[str, Any]]:
    """Yield the keyframes and pictures of a sample, in order; a picture is named by its place among the pictures."""
    pictures = 0
    for piece in sample.context:
        if isinstance(piece, KeyframeDescription | SamplePicture):
            has_picture = isinstance(piece, SamplePicture) or piece.picture is not None
            texts = _texts(piece) if isinstance(piece, KeyframeDescription) else {}
            yield {"time_s": piece.time_s, "texts": texts, "picture": pictures if has_picture else None, "fields": []}
            pictures += has_picture


def _texts(piece: KeyframeDescription) -> dict[str, str]:
    famous = piece.famous.model_dump() if piece.famous else {}
    texts = {name: ", ".join(value) if name == "objects" else str(value) for name, value in famous.items()}
    if piece.dense_caption:
        texts[DENSE] = piece.dense_caption
    return {name: showable(text) for name, text in texts.items()}


def _asked(state: WrittenState, item: WrittenItem, reviewer: str) -> list[dict[str, Any]]:
    parts: dict[str, dict[str, Any]] = {}
    for field in item.fields:
        place, _, name = field.rpartition(".")
        part = parts.setdefault(place, {"time_s": None, "texts": {}, "picture": None, "fields": []})
        part["fields"].append({"field": field, "name": name, "value": state.value(item.id, field, reviewer) or ""})
    return list(parts.values())


# ---------------------------------------------------------------- export


@dataclass(frozen=True, slots=True)
class WrittenExport:
    """What was written."""

    answered: int
    missing: int
    paths: tuple[Path, ...]
    """The first answers; then the second ones, and so on, where several people answered one sample."""
    next: str
    """The command that reads it, in backquotes."""
    most_answers: int
    """To one sample."""
    left_out: int
    """Answers behind the first `MOST_FILES` to a sample."""


def export_written(state: WrittenState, out: Path, *, source: Path, overwrite: bool = False) -> WrittenExport:
    """Write what people answered, as predictions; of each sample the first `MOST_FILES` answers.

    Raises:
        UsageError: the file is there already, or has the wrong ending.
        InputError: nobody has finished a sample.
        StoreError: not writable.
    """
    if out.suffix.lower() != ".jsonl":
        raise UsageError(f"{out}: answers are written as predictions. Name a file with .jsonl.")
    state.catch_up()
    counts = [len(state.finished_by(item)) for item in state.items]
    most = max(counts, default=0)
    if not most:
        raise InputError(f"Nobody has finished a sample of {source} yet. Run `vip review {source}` first.")
    paths = (out, *(out.with_name(f"{out.stem}.{place}.jsonl") for place in range(2, min(most, MOST_FILES) + 1)))
    for path in paths:
        check_is_file(path)
        if store.exists(path) and not overwrite:
            raise UsageError(f"{path} exists already. Add {option('overwrite')} to replace it, or name another file.")
    for place, path in enumerate(paths):
        store.write_rows(path, predictions_of(state, place))
    return WrittenExport(
        answered=(answered := sum(map(bool, counts))),
        missing=len(counts) - answered,
        paths=paths,
        next=call("score", shlex.quote(str(out)), samples=shlex.quote(str(source))),
        most_answers=most,
        left_out=sum(max(0, count - MOST_FILES) for count in counts),
    )


def predictions_of(state: WrittenState, place: int = 0) -> Iterator[Prediction]:
    """Yield the answer of the first person to finish each sample, or of the one at another place; without one it is missing."""
    for item in state.items:
        people = state.finished_by(item)
        if place < len(people):
            yield Prediction(sample_id=item.id, value=_value(state, item, people[place]), engine=ENGINE)
        else:
            yield Prediction(sample_id=item.id, value=None, status="missing", engine=ENGINE, reason="nobody has answered it")


def _value(state: WrittenState, item: WrittenItem, reviewer: str) -> str | tuple[DescriptionText, ...]:
    texts = {field: state.value(item.id, field, reviewer) or "" for field in item.fields}
    ask = item.sample.ask
    if not isinstance(ask, DescribeKeyframes):
        return texts[ANSWER]
    return tuple(_description({name: texts[f"{place}.{name}"] for name in _names(ask)}) for place in range(ask.count))


def _names(ask: DescribeKeyframes) -> tuple[str, ...]:
    return tuple(Famous.model_fields) if ask.representation == "famous" else (DENSE,)


def _description(texts: dict[str, str]) -> DescriptionText:
    if DENSE in texts:
        return DescriptionText(dense_caption=texts[DENSE])
    return DescriptionText(famous=Famous(**{**texts, "objects": objects_of(texts["objects"])}))
