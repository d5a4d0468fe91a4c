"""The page of answers: options and open answers to the same question side by side, as Figure 12 of Xiao et al. 2021 shows them.

In: scored files of nextqa-mc and nextqa-oe, and where the videos or their run folders lie. Out: one HTML file that needs nothing else. Each
question shows the right option, who chose which, with the score behind it where the model gives one, and the open answers with their WUPS;
an empty answer is `null`. Texts are other people's: the template escapes them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

from vip.config import SampleSettings
from vip.errors import InputError, UsageError, VipError
from vip.html.axes import evenly_spaced
from vip.html.format import time_code
from vip.html.pictures import Jpeg, shrink
from vip.store import load_run
from vip.tasks.frames import VideoFrames
from vip.tasks.nextqa.files import LETTERS, read_video_index
from vip.tasks.nextqa.samples import first_reference
from vip.tasks.page_samples import PICTURE_BYTES, SIDE_PX, PagePictures
from vip.tasks.records import Choice, FreeText, Prediction, Sample, SamplePicture
from vip.tasks.score import ScoredFile
from vip.tasks.score_files import Scores
from vip.untrusted import one_line
from vip.video import FileSource, open_video
from vip.wording import option

PACKAGE = "vip.tasks.nextqa"
VIDEOS, PICTURES = 12, 6
"""Videos of a page, and pictures of a video."""
MOST_LETTERS = 600
NULL = "null"


class OptionView(NamedTuple):
    """An option, and who chose it."""

    letter: str
    text: str
    is_right: bool
    chosen_by: Sequence[str]


class OpenAnswer(NamedTuple):
    """What a model says, with its WUPS × 100."""

    label: str
    text: str
    is_null: bool
    score: str


@dataclass(slots=True)
class QuestionView:
    """A question about a video: with options, open-ended, or both."""

    text: str
    kind: str
    options: Sequence[OptionView] = ()
    without_choice: Sequence[str] = ()
    """Who chose no option, and why."""
    references: Sequence[str] = ()
    answers: Sequence[OpenAnswer] = ()


class PictureView(NamedTuple):
    """A frame of the video."""

    title: str
    jpeg: Jpeg


class VideoView(NamedTuple):
    """A video with its questions."""

    id: str
    pictures: Sequence[PictureView]
    questions: Sequence[QuestionView]


class _Answered(NamedTuple):
    """One sample with the answers of all files to it."""

    sample: Sample
    file: Path | None
    """Of the sample; None for a published one."""
    answers: list[tuple[str, Prediction, float]]
    """Label, prediction, value as a fraction."""


_Asked = dict[tuple[str, str], dict[str, _Answered]]
"""(video, question) -> task -> the sample with its answers."""


def write_answers_page(
    scores: Scores, path: Path, *, folders: Sequence[Path] = (), video_index: Path | None = None, show: Sequence[str] = ()
) -> None:
    """Write the page.

    Args:
        folders: of the videos or of their run folders, for pictures.
        video_index: where VidOR keeps each video below these folders, as published.
        show: ids of videos; empty: those on which the files differ most, first those that both tasks ask about.

    Raises:
        UsageError: nothing of NExT-QA was scored.
        InputError: a video that is named has no question.
        StoreError: not writable.
    """
    from vip.html.layout import render_page, resource  # here, since it loads Jinja
    from vip.store import replacing

    asked = _collect(scores)
    if not asked:
        raise UsageError(f"{option('questions')} shows answers of nextqa-mc and nextqa-oe. Give files of predictions of these tasks.")
    pictures = VideoPictures(folders, read_video_index(video_index) if video_index else {})
    by_video: dict[str, dict[tuple[str, str], dict[str, _Answered]]] = {}
    for key, tasks in asked.items():
        by_video.setdefault(key[0], {})[key] = tasks
    views = [_video_view(video, by_video[video], pictures) for video in choose_videos(by_video, show)]
    style = resource("score.css", "vip.tasks") + resource("answers.css", PACKAGE)
    page = render_page(PACKAGE, "answers.html.jinja", style=style, videos=views, total=len(by_video), files=scores.labels)
    with replacing(path) as file:
        file.write(page.encode())


def _collect(scores: Scores) -> _Asked:
    """Return every question with its answers, in file order."""
    labels = dict(zip(map(id, scores.results), scores.labels, strict=True))
    asked: _Asked = {}
    for one in scores.scored:
        if not one.result.task.startswith(("nextqa-mc", "nextqa-oe")):
            continue
        values = _values(one)
        for (sample, prediction), value in zip(one.joined.pairs, values, strict=True):
            question = sample.ask.question if isinstance(sample.ask, Choice | FreeText) else ""
            tasks = asked.setdefault((sample.video, question or sample.id), {})
            tasks.setdefault(sample.task, _Answered(sample, one.joined.samples, [])).answers.append(
                (labels[id(one.result)], prediction, value)
            )
    return asked


def _values(one: ScoredFile) -> Sequence[float]:
    """Return the values of the samples in the paper's metric."""
    return next(iter(one.values.values()), (0.0,) * len(one.statuses))


def choose_videos(by_video: Mapping[str, Mapping[tuple[str, str], Mapping[str, _Answered]]], show: Sequence[str]) -> list[str]:
    """Return the videos that are named; else those on which the files differ most, in their order where they do not.

    Raises:
        InputError: a video that is named has no question.
    """
    if unknown := [video for video in show if video not in by_video]:
        raise InputError(f"There is no question about the video {one_line(unknown[0])[:60]} in these files. Name another.")
    if show:
        return list(dict.fromkeys(show))

    def rank(video: str) -> tuple[bool, float]:
        found = [one for tasks in by_video[video].values() for one in tasks.values()]
        tasks = {one.sample.task for one in found}
        spreads = [max(values) - min(values) for one in found if (values := [value for _, _, value in one.answers])]
        return len(tasks) < 2, -fmean(spreads)

    return sorted(by_video, key=rank)[:VIDEOS]


def _video_view(video: str, asked: Mapping[tuple[str, str], Mapping[str, _Answered]], pictures: VideoPictures) -> VideoView:
    samples = [(one.sample, one.file) for tasks in asked.values() for one in tasks.values()]
    questions = [_question_view(text, tasks) for (_, text), tasks in asked.items()]
    return VideoView(video, list(pictures.of_video(video, samples)), questions)


def _question_view(text: str, tasks: Mapping[str, _Answered]) -> QuestionView:
    kinds = dict.fromkeys(next(iter(one.sample.groups.get("type", ())), "") for one in tasks.values())
    view = QuestionView(_cut(text), ", ".join(kinds))
    for one in tasks.values():
        if isinstance(one.sample.ask, Choice):
            view.options, view.without_choice = _option_views(one)
        else:
            references = one.sample.reference.values if one.sample.reference else ()
            view.references = [_words(value) for value in references]
            view.answers = [_open_answer(*answer) for answer in one.answers]
    return view


def _option_views(one: _Answered) -> tuple[list[OptionView], list[str]]:
    assert isinstance(one.sample.ask, Choice)
    right, chosen = first_reference(one.sample), dict[int, list[str]]()
    without = []
    for label, prediction, _ in one.answers:
        if isinstance(prediction.value, int):
            score = dict(enumerate(prediction.scores or ())).get(prediction.value)
            chosen.setdefault(prediction.value, []).append(label if score is None else f"{label} ({score:.2f})")
        else:
            without.append(f"{label}: {prediction.status}")
    options = zip(LETTERS, one.sample.ask.options, strict=False)
    views = [OptionView(letter, _cut(text), place == right, chosen.get(place, [])) for place, (letter, text) in enumerate(options)]
    return views, without


def _open_answer(label: str, prediction: Prediction, value: float) -> OpenAnswer:
    text = prediction.status if prediction.value is None else _words(prediction.value)
    return OpenAnswer(label, text or NULL, not text or prediction.value is None, f"{100 * value:.2f}")


def _words(value: object) -> str:
    return _cut(" ".join(map(str, value)) if isinstance(value, tuple) else str(value)).strip()


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]} …"


# ---------------------------------------------------------------- pictures


@dataclass
class VideoPictures:
    """A few pictures of videos: those that the models saw, else keyframes of a run, else evenly spaced frames of a file.

    Args:
        folders: of the videos, or of their run folders.
        places: where VidOR keeps a video below them.
    """

    folders: Sequence[Path] = ()
    places: Mapping[str, str] = field(default_factory=dict)

    def of_video(self, video: str, samples: Sequence[tuple[Sample, Path | None]]) -> Iterator[PictureView]:
        """Yield at most six pictures in time order; none where the video is not here or cannot be read.

        Args:
            samples: of the video, with their files.
        """
        if shown := list(self._seen(samples)):
            yield from shown
            return
        try:
            path = VideoFrames(self.folders, SampleSettings(), self.places).find(video)
            yield from self._of_run(path) if path.is_dir() else self._of_file(path)
        except VipError:
            return

    def _seen(self, samples: Sequence[tuple[Sample, Path | None]]) -> Iterator[PictureView]:
        """Yield the pictures of the first sample that shows some."""
        pages = PagePictures(self.folders)
        for sample, file in samples:
            pieces = [piece for piece in sample.context if isinstance(piece, SamplePicture)]
            if pieces:
                chosen = [pieces[place] for place in evenly_spaced(len(pieces), PICTURES)]
                found = [(piece.time_s, pages.of_piece(sample, piece, file)) for piece in chosen]
                yield from (PictureView(_title(time_s), jpeg) for time_s, jpeg in found if jpeg is not None)
                return

    def _of_run(self, folder: Path) -> Iterator[PictureView]:
        keyframes = load_run(folder).keyframes
        for place in evenly_spaced(len(keyframes), PICTURES):
            jpeg = shrink(keyframes[place].image, longest_side_px=SIDE_PX, max_bytes=PICTURE_BYTES)
            yield PictureView(_title(keyframes[place].time_s), jpeg)

    def _of_file(self, path: Path) -> Iterator[PictureView]:
        with open_video(FileSource(path)) as video:
            stamps = video.index.shown_pts
            middles = [(2 * place + 1) * len(stamps) // (2 * PICTURES) for place in range(PICTURES)]
            for frame in video.frames(sorted({int(stamps[place]) for place in middles}), longest_side_px=SIDE_PX):
                yield PictureView(_title(frame.time_s), shrink(frame.image, longest_side_px=SIDE_PX, max_bytes=PICTURE_BYTES))


def _title(time_s: float | None) -> str:
    return "" if time_s is None else time_code(time_s)
