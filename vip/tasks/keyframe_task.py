"""The share of Video Infilling and Video Prediction that is the same (section 4 of Himakunthala et al. 2023).

In: videos whose keyframes are described. Out: windows of keyframes, of which some are given and some asked for; prompts with one example of
another video; answers as JSON, read strictly.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vip.config import SampleSettings
from vip.errors import InputError
from vip.prompts import Prompt, load_prompt, prompts_folder
from vip.records import Famous
from vip.tasks import keyframe_baselines
from vip.tasks.described_videos import DescribedFrame, DescribedVideo, described_videos
from vip.tasks.description_metrics import description_metrics
from vip.tasks.description_tables import description_tables
from vip.tasks.labels import read_labels
from vip.tasks.records import DescribeKeyframes, DescriptionText, KeyframeDescription, Prediction, Reference, Sample, TaskResult
from vip.tasks.table import Table
from vip.tasks.task import Baseline, SampleSource, TaskMetric, TaskRequest
from vip.untrusted import parse_json
from vip.wording import counted, option

LONGEST_REASON = 200
TOKENS_A_KEYFRAME = 400  # of an answer: a description has about 114
FIELDS = tuple(Famous.model_fields)


class DescribeKeyframesTask:
    """Keyframes are given, and descriptions of others asked for."""

    name: str
    version = 1
    demonstrates = True
    has_after: bool
    """Whether keyframes behind the missing ones are given too."""

    # ------------------------------------------------------------ samples

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        """Yield a sample for each window of consecutive keyframes; none crosses videos.

        Raises:
            InputError: no video has enough described keyframes.
        """
        settings, most = source.settings, 0
        found, labels = False, read_labels(settings.labels)
        for video in described_videos(source.paths):
            most = max(most, len(video.keyframes))
            for sample in self._windows(video, settings):
                found = True
                yield sample.model_copy(update={"groups": labels.groups(sample.id, video.name, video.groups)})
        if not found:
            raise InputError(
                f"{self.name} needs {self.window(settings)} described keyframes in a row ({self._parts(settings)}); the longest video has"
                f" {most}. Extract more with {option('keyframes', self.window(settings))}, or ask for fewer with {option('targets', 1)}."
            )

    def window(self, settings: SampleSettings) -> int:
        """Return the number of keyframes a sample takes: n before, the targets, and for infilling n behind them."""
        return settings.context * (1 + self.has_after) + settings.targets

    def _parts(self, settings: SampleSettings) -> str:
        after = f" + {settings.context}" if self.has_after else ""
        return f"{settings.context} + {settings.targets}{after}"

    def _windows(self, video: DescribedVideo, settings: SampleSettings) -> Iterator[Sample]:
        frames, first = video.keyframes, settings.context
        for start in range(len(frames) - self.window(settings) + 1):
            window = frames[start : start + self.window(settings)]
            given = [*window[:first], *window[first + settings.targets :]]
            yield Sample(
                id=f"{self.name}-{settings.context}/{video.name}/{start}",
                task=f"{self.name}-{settings.context}",
                task_version=self.version,
                video=video.name,
                groups=video.groups,
                context=tuple(_shown(frame, settings) for frame in given),
                ask=DescribeKeyframes(count=settings.targets, representation=settings.representation),
                reference=Reference(values=(tuple(_wanted(frame, settings) for frame in window[first : first + settings.targets]),)),
            )

    # ------------------------------------------------------------ asking

    def request(self, sample: Sample, demonstration: Sample | None, *, variant: int = 1) -> TaskRequest:
        prompt, ask = task_prompt(f"{self.name}-{variant}"), _ask(sample)
        example = ""
        if demonstration is not None and demonstration.reference is not None:
            answer = json.dumps(_as_json(demonstration.reference.values[0]), ensure_ascii=False)
            example = f"An example of another video:\n\n{self._given(demonstration)}\n\nAnswer: {answer}\n\nNow the one to answer:\n\n"
        values = {"example": example, "given": self._given(sample), "count": str(ask.count), "form": _form(ask)}
        text = prompt.render({name: values[name] for name in prompt.inputs})
        most = TOKENS_A_KEYFRAME * ask.count
        return TaskRequest(
            prompt=prompt, text=text, schema=_schema(ask), max_tokens=most, demonstration=demonstration.id if demonstration else None
        )

    def _given(self, sample: Sample) -> str:
        """Return the keyframes in words, with the place of the missing ones; a picture is named by its number."""
        ask, pieces = _ask(sample), [piece for piece in sample.context if isinstance(piece, KeyframeDescription)]
        before = len(pieces) // 2 if self.has_after else len(pieces)
        parts = [in_words(piece, place + 1) for place, piece in enumerate(pieces[:before])]
        parts.append(f"[{counted(ask.count, 'keyframe')} to describe]")
        parts += [in_words(piece, before + ask.count + place + 1) for place, piece in enumerate(pieces[before:])]
        return "\n\n".join(parts)

    # ------------------------------------------------------------ answers

    def parse(self, sample: Sample, answer: str) -> Prediction:
        ask = _ask(sample)
        try:
            value = _read(answer, ask)
        except ValueError as exc:
            reason = str(exc).splitlines()[0][:LONGEST_REASON]
            return Prediction(sample_id=sample.id, value=None, status="unparsed", reason=reason, raw=answer)
        return Prediction(sample_id=sample.id, value=value, raw=answer)

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        raise InputError(f"{path}: {self.name} has no published form of predictions. Give the JSON lines that `vip predict` wrote.")

    @property
    def baselines(self) -> Mapping[str, Baseline]:
        return keyframe_baselines.BASELINES

    @property
    def metrics(self) -> Sequence[TaskMetric]:
        return description_metrics()

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        return description_tables(results)


# ---------------------------------------------------------------- pieces


@cache
def task_prompt(name: str) -> Prompt:
    """Return a prompt of prompts/tasks/."""
    return load_prompt(prompts_folder() / "tasks" / f"{name}.md")


def _ask(sample: Sample) -> DescribeKeyframes:
    if not isinstance(sample.ask, DescribeKeyframes):
        raise InputError(f"{sample.id} is no sample of infilling or prediction. Make samples with `vip samples`.")
    return sample.ask


def _wanted(frame: DescribedFrame, settings: SampleSettings) -> DescriptionText:
    if settings.representation == "famous":
        return DescriptionText(famous=frame.description.famous)
    return DescriptionText(dense_caption=frame.description.dense_caption)


def _shown(frame: DescribedFrame, settings: SampleSettings) -> KeyframeDescription:
    if settings.pictures and frame.picture is None:
        raise InputError(f"{option('pictures')} needs run folders; the pictures of {frame.id} lie in the shards of a data set.")
    text = _wanted(frame, settings)
    picture = frame.picture() if settings.pictures and frame.picture else None
    return KeyframeDescription(
        keyframe_id=frame.id, time_s=frame.time_s, famous=text.famous, dense_caption=text.dense_caption, picture=picture
    )


def in_words(piece: KeyframeDescription, number: int) -> str:
    """Return the description of a keyframe with its number."""
    head = f"Keyframe {number}"
    if piece.famous is None:
        return f"{head}: {piece.dense_caption}"
    return "\n".join([head, *(f"{name.capitalize()}: {_in_one_line(getattr(piece.famous, name))}" for name in FIELDS)])


def _in_one_line(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else ", ".join(value)


def _form(ask: DescribeKeyframes) -> str:
    one = "{" + ", ".join(f'"{name}": {"[…]" if name == "objects" else "…"}' for name in FIELDS) + "}"
    return f'{{"descriptions": [{one if ask.representation == "famous" else "…"}, …]}}'


def _schema(ask: DescribeKeyframes) -> dict[str, Any]:
    text = {"type": "string"}
    fields = {name: {"type": "array", "items": text} if name == "objects" else text for name in FIELDS}
    famous = {"type": "object", "properties": fields, "required": list(FIELDS), "additionalProperties": False}
    one = famous if ask.representation == "famous" else text
    rows = {"type": "array", "items": one, "minItems": ask.count, "maxItems": ask.count}
    return {"type": "object", "properties": {"descriptions": rows}, "required": ["descriptions"], "additionalProperties": False}


def _as_json(value: Any) -> dict[str, Any]:
    return {"descriptions": [one.dense_caption if one.famous is None else one.famous.model_dump(mode="json") for one in value]}


def _read(answer: str, ask: DescribeKeyframes) -> tuple[DescriptionText, ...]:
    """Return the descriptions of an answer.

    Raises:
        ValueError: it is not the JSON that was asked for; the message says what does not fit.
    """
    try:
        found = parse_json(answer)
    except ValueError as exc:
        raise ValueError("it is not JSON") from exc
    rows = found.get("descriptions") if isinstance(found, dict) else None
    if not isinstance(rows, list):
        raise ValueError("it has no list of descriptions")
    if len(rows) != ask.count:
        raise ValueError(f"it has {counted(len(rows), 'description')} instead of {ask.count}")
    if ask.representation == "dense":
        if not all(isinstance(row, str) and row.strip() for row in rows):
            raise ValueError("a description is no text, or empty")
        return tuple(DescriptionText(dense_caption=row.strip()) for row in rows)
    try:
        return tuple(DescriptionText(famous=Famous.model_validate(row)) for row in rows)
    except ValidationError as exc:
        first = exc.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from exc
