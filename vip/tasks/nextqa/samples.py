"""Samples of both tasks from the files of NExT-QA, and predictions from published results, checked against them."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from vip.errors import InputError, UsageError
from vip.tasks.frames import ShownFrames, VideoFrames
from vip.tasks.nextqa.files import Kind, Question, group_of, is_video_index, read_answers, read_questions, read_video_index
from vip.tasks.records import Choice, FreeText, Reference, Sample, Value
from vip.tasks.registry import SHUFFLED
from vip.tasks.task import SampleSource
from vip.wording import counted, option

VERSION = 1
GROUPS = {"C": ("CW", "CH"), "T": ("TPN", "TC"), "D": ("DB", "DC", "DL", "DO")}
"""Groups of the paper's tables, with the types that each is made of."""


@dataclass(frozen=True)
class NextqaSource:
    """What samples of NExT-QA are read from."""

    annotations: tuple[Path, ...]
    references: dict[str, str] = field(default_factory=dict)
    """Second references by id of the question."""
    frames: VideoFrames | None = None
    """None where no videos are given."""


def open_source(source: SampleSource) -> NextqaSource:
    """Return what is behind the paths: csv of questions, JSON of second references or of VidOR's paths, folders of videos or runs.

    Raises:
        InputError: a file is damaged, or there is no file of questions.
    """
    paths = [*map(Path, source.paths), *filter(None, (source.references, source.video_index))]
    annotations = tuple(path for path in paths if not path.is_dir() and path.suffix != ".json")
    if not annotations:
        raise InputError("There is no file of questions. Give the val.csv or test.csv of NExT-QA.")
    places: dict[str, str] = {}
    references: dict[str, str] = {}
    for path in (path for path in paths if path.suffix == ".json" and not path.is_dir()):
        if is_video_index(path):
            places = read_video_index(path)
        else:
            answers, doubled = read_answers(path)
            if doubled:
                raise InputError(f"{path} has {doubled} ids more than once. Give the second references as they were published.")
            references |= answers
    folders = tuple(path for path in paths if path.is_dir())
    advice = "Give the folder, and VidOR's map of paths where it keeps VidOR's folders."
    return NextqaSource(annotations, references, VideoFrames(folders, source.settings, places, advice) if folders else None)


def read_samples(given: SampleSource, task: Kind) -> Iterator[Sample]:
    """Yield a sample a question, in file order.

    Raises:
        InputError: a file is damaged, a video is missing, or second references are those of other questions.
    """
    source = open_source(given)
    unused, origin = set(source.references), dict[str, Path]()
    for path in source.annotations:
        for question in read_questions(path, task):
            if (other := origin.setdefault(question.id, path)) != path:
                raise InputError(f"{path}, line {question.line}: the question {question.id} is in {other} too. Give one of these files.")
            unused.discard(question.published_id)
            frames = source.frames.of_video(question.video) if source.frames else None
            yield _sample(question, task, given.settings.shuffle, source.references.get(question.published_id), frames)
    if unused:
        raise InputError(
            f"{len(unused):,} of {len(source.references):,} second references are of unknown questions, such as {min(unused)[:60]}."
            " Give those of the same split."
        )


def _sample(question: Question, task: Kind, shuffle: int | None, second_reference: str | None, frames: ShownFrames | None) -> Sample:
    answer: Value | None = question.answer
    options = question.options
    if options and shuffle is not None:
        order = shuffled_order(question.id, len(options), shuffle)
        options = tuple(options[index] for index in order)
        answer = None if answer is None else order.index(int(str(answer)))
    values = [value for value in (answer, second_reference) if value is not None]
    return Sample(
        id=question.id,
        task=task if shuffle is None or not question.options else f"{task}{SHUFFLED}{shuffle}",
        task_version=VERSION,
        video=question.video,
        groups={"type": groups_of(question)},
        context=frames.pictures if frames else (),
        frames_chosen=frames.chosen if frames else None,
        ask=Choice(question=question.text, options=options) if options else FreeText(question=question.text),
        reference=Reference(values=tuple(values)) if values else None,
    )


def groups_of(question: Question) -> tuple[str, str]:
    """Return the column of the paper's tables that a question is in, and that of its group: TPN and T for TN."""
    return group_of(question.type), question.type[0]


def shuffled_order(sample_id: str, options: int, seed: int) -> list[int]:
    """Return the places in the file of the options as they are shown, drawn by the seed for this question alone."""
    order = list(range(options))
    random.Random(f"{seed} {sample_id}").shuffle(order)
    return order


# ---------------------------------------------------------------- predictions


def check_predictions(
    path: Path, predicted: Mapping[str, object], samples: Sequence[Sample], *, doubled: int, problems: Iterable[str] = ()
) -> None:
    """Refuse predictions that do not fit the samples, and name each kind of problem with its number.

    Samples without a prediction alone are no problem here: the step that joins both decides about them.

    Args:
        doubled: ids that the file has more than once.
        problems: others that the caller found.

    Raises:
        InputError: there is one.
    """
    wanted = {published_id(sample) for sample in samples}
    unknown, missing = predicted.keys() - wanted, wanted - predicted.keys()
    if predicted and len(unknown) == len(predicted):
        raise InputError(
            f"{path} holds {len(predicted):,} predictions, and not one is of these {len(wanted):,} questions: it is of another split."
            " Give the questions of that split."
        )
    found = [f"{count_are(len(unknown), 'prediction')} of unknown questions, such as {min(unknown)[:60]}"] if unknown else []
    found += [f"{count_are(doubled, 'id')} there more than once"] if doubled else []
    found += problems
    if found:
        found += [f"{len(missing):,} of {len(wanted):,} questions have no prediction, such as {min(missing)}"] if missing else []
        raise InputError(f"{path}: {'; '.join(found)}. Give one prediction for each question of one split.")


def count_are(count: int, noun: str) -> str:
    """Return `1 prediction is`, `2 predictions are`."""
    return f"{counted(count, noun)} {'is' if count == 1 else 'are'}"


def published_id(sample: Sample) -> str:
    """Return the id of a sample in results; two questions of one id share its prediction, as in the authors' program."""
    return sample.id.partition("/")[0]


def first_reference(sample: Sample) -> Value:
    """Return the right answer of the published questions.

    Raises:
        InputError: the answers of this split are hidden.
    """
    if sample.reference is None:
        raise InputError(f"The question {sample.id} has no answer in its file, so that nothing can be scored. Give a file with answers.")
    return sample.reference.values[0]


def reject_variant(variant: int) -> None:
    """Refuse prompts that these tasks do not have.

    Raises:
        UsageError: it is not the first.
    """
    if variant != 1:
        raise UsageError(
            f"NExT-QA has one prompt, not {variant}. Leave the variant out; {option('shuffle', 'SEED')} shows options in another order."
        )
