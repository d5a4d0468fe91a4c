"""Open answers that people call correct or wrong, so that a judge can be held against them.

In: predictions, and the samples that they answer. Out: a `QuestionItem` an answer, with two options. Its id names the words of the answer
too: a verdict on another answer to the same question does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from itertools import islice
from pathlib import Path

from vip.errors import InputError, UsageError
from vip.review.question_items import MOST_QUESTIONS, QuestionItem, first_row
from vip.review.videos import clips_in
from vip.tasks.files import read_predictions, read_samples, unlinked_file
from vip.tasks.page_samples import question_of, reference_texts, value_texts
from vip.tasks.records import Prediction, Sample
from vip.untrusted import one_line
from vip.wording import option

CORRECT, WRONG = "correct", "wrong"
OPEN_ANSWERS = frozenset({"free_text", "blank", "describe_keyframes"})
DIGEST_LETTERS = 12


def is_predictions(path: Path) -> bool:
    """Return whether a file has answers to samples, by its first row."""
    return path.suffix == ".jsonl" and "sample_id" in first_row(path)


def beside(path: Path) -> Path:
    """Return where the samples of a file of predictions are, unless they are named.

    Raises:
        UsageError: they are not there.
        InputError: they are a link.
    """
    samples = path.with_name("samples.jsonl")
    if not samples.is_file():
        raise UsageError(f"{path} has answers, which are judged beside their questions. Add {option('samples', 'FILE')}, what they answer.")
    return unlinked_file(samples)


def read_answer_items(path: Path, samples: Path, videos: Path | None) -> list[QuestionItem]:
    """Return the answers of a file in their order; predictions without an answer are left out.

    Args:
        samples: what they answer.
        videos: a folder of clips, by the name of the clip or of the video.

    Raises:
        InputError: a file is damaged, answers a sample twice or none of these, or there is no open answer.
    """
    rows = list(islice(read_predictions(path), MOST_QUESTIONS + 1))
    if len(rows) > MOST_QUESTIONS:
        raise InputError(f"{path} has more than {MOST_QUESTIONS:,} answers. Give a part of them.")
    answers: dict[str, Prediction] = {}
    for row in rows:
        if row.sample_id in answers:
            raise InputError(f"{path} answers the sample {one_line(row.sample_id)[:80]} twice. Remove one.")
        answers[row.sample_id] = row
    known = {sample.id: sample for sample in read_samples(samples) if sample.id in answers}
    if missing := next((name for name in answers if name not in known), None):
        raise InputError(f"{samples} lacks the sample {one_line(missing)[:80]} of {path}. Give the samples that it answers.")
    items = list(_items(answers, known, videos))
    if not items:
        raise InputError(f"{path} has no open answer to judge: options are right or wrong by themselves. Give answers in words.")
    return items


def _items(answers: dict[str, Prediction], known: dict[str, Sample], videos: Path | None) -> Iterator[QuestionItem]:
    clips = clips_in(videos) if videos else {}
    for name, row in answers.items():
        sample = known[name]
        if row.status != "ok" or sample.ask.kind not in OPEN_ANSWERS:
            continue
        answer = " · ".join(value_texts(sample, row))
        clip = (clips.get(sample.clip) if sample.clip else None) or clips.get(sample.video)
        is_whole = clip is not None and clip.stem == sample.clip  # its file is the interval
        yield QuestionItem(
            id=f"{name}#{sha256(answer.encode('utf-8', 'surrogatepass')).hexdigest()[:DIGEST_LETTERS]}",
            text=_text(sample, answer),
            options=(CORRECT, WRONG),
            answer=None,
            video=sample.clip or sample.video,
            clip=clip,
            start_s=None if is_whole else sample.start_s,
            end_s=None if is_whole else sample.end_s,
            said=(),
            kind="Is this answer correct?",
            source=sample,
            is_verdict=True,
        )


def _text(sample: Sample, answer: str) -> str:
    references = [f"Known as right: {one_line(text)}" for text in reference_texts(sample)]
    return "\n".join([one_line(question_of(sample)), *references, f"Answer: {one_line(answer)}"])
