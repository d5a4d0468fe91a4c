"""Questions of one's own with options: a csv in the published form, the page to check it, and samples (Xiao et al. 2021, section 3.2).

In: a csv of open-ended questions with answers; an encoder of sentence-transformers, or vectors that were made elsewhere. Out: files beside
each other, `NAME.csv` and `NAME.html`, where more questions than a page holds `NAME-1.html` and so on.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from vip.errors import InputError
from vip.files import ZIP_DAMAGE, open_named
from vip.metrics.answer_words import AnswerNormalizer
from vip.metrics.perceptron_tagger import load_tagger
from vip.metrics.sentence_bert import SentenceBert
from vip.metrics.wordnet import WordNet, find_wordnet
from vip.store import array_of
from vip.tasks.nextqa.distractors import Embed, MultiChoiceQuestion, Vectors, make_options, write_questions
from vip.tasks.nextqa.files import OPTIONS, Question, read_questions
from vip.tasks.nextqa.options_page import write_option_pages
from vip.tasks.nextqa.statistics import answer_text
from vip.untrusted import DAMAGE
from vip.wording import counted, option

MOST_VECTOR_BYTES = 2 * 2**30


@dataclass(frozen=True, slots=True)
class OwnQuestions:
    """What was made."""

    complete: int
    """Questions with five options; they are in the csv."""
    lacking: int
    """Questions for which fewer than four distractors were found; they are on the page only."""
    binary: int
    """Questions of the type DB, which have no options."""
    places: tuple[int, ...]
    """How often the right option is at each place."""
    path: Path
    pages: tuple[Path, ...]


def make_own_questions(source: Path, out: Path, *, embed: Embed, seed: int = 0) -> OwnQuestions:
    """Write questions with options and the pages to check them.

    Args:
        source: open-ended questions in the published form: the columns video, qid, type, question, answer.
        out: the csv; the pages lie beside it.

    Raises:
        InputError: the questions are damaged, or not one of them finds four distractors.
        BackendError: WordNet or the tagger, which give the lemmas of answers, are not here.
        StoreError: not writable.
    """
    questions = list(read_questions(source, "nextqa-oe"))
    made = make_options(questions, embed=embed, lemmas=AnswerNormalizer(WordNet(find_wordnet()), load_tagger()), seed=seed)
    complete = [one for one in made if one.is_complete]
    if not complete:
        raise InputError(
            f"{source}: not one of {counted(len(made), 'question')} finds four distractors. They are answers of other questions of the"
            " same type: add questions of each type."
        )
    write_questions(out, made)
    pages = write_option_pages(out.with_suffix(".html"), made)
    return OwnQuestions(len(complete), len(made) - len(complete), len(questions) - len(made), _count_places(complete), out, tuple(pages))


def _count_places(made: Sequence[MultiChoiceQuestion]) -> tuple[int, ...]:
    return tuple(sum(one.answer == place for one in made) for place in range(len(OPTIONS)))


def open_embed(source: Path, *, encoder: str, vectors: Path | None) -> Embed:
    """Return what embeds the questions and answers of a csv.

    Args:
        source: the csv.
        encoder: a folder or a model of the hub, for sentence-transformers; not used where vectors are given.
        vectors: an npz file with `questions` and `answers`, float (N, D), a row a question of the csv in its order.

    Raises:
        InputError: the vectors cannot be read, or are not of these questions.
    """
    return (
        _stored_vectors(vectors, list(read_questions(source, "nextqa-oe")))
        if vectors
        else SentenceBert(encoder, advice=option("encoder", "FOLDER")).embed
    )


def _stored_vectors(path: Path, questions: Sequence[Question]) -> Embed:
    asked, answered = (_read_vectors(path, name, len(questions)) for name in ("questions", "answers"))
    if asked.shape[1] != answered.shape[1]:
        raise InputError(f"{path} has questions of {asked.shape[1]} numbers and answers of {answered.shape[1]}. Embed both by one encoder.")
    by_text = dict(zip([answer_text(one) or "" for one in questions], answered, strict=True))
    by_question = dict(zip([one.text for one in questions], asked, strict=True))

    def embed(texts: Sequence[str]) -> Vectors:
        known = by_question if all(text in by_question for text in texts) else by_text
        return np.stack([known[text] for text in texts])

    return embed


def _read_vectors(path: Path, name: str, rows: int) -> Vectors:
    """Return an array of the file as float64 (N, D), rows of length 1."""
    advice = f"Give an npz file with questions and answers, a row a question of the csv: {option('vectors', 'FILE')}."
    try:
        with open_named(path, most_bytes=MOST_VECTOR_BYTES) as file, zipfile.ZipFile(file) as archive:
            if sum(one.file_size for one in archive.infolist()) > MOST_VECTOR_BYTES:
                raise ValueError(f"more than {MOST_VECTOR_BYTES:,} bytes unpacked")
            found = np.asarray(array_of(archive.read(f"{name}.npy")), dtype=np.float64)
    except (*ZIP_DAMAGE, *DAMAGE) as exc:
        raise InputError(f"{path} has no vectors of {name} ({exc}). {advice}") from exc
    if found.ndim != 2 or len(found) != rows:
        raise InputError(f"{path}: {name} has the shape {found.shape}, and there are {rows:,} questions. {advice}")
    lengths = np.linalg.norm(found, axis=1, keepdims=True)
    if not np.isfinite(found).all() or not (lengths > 0).all():
        raise InputError(f"{path}: {name} has a row of zeros, or a number that is not finite. {advice}")
    unit: Vectors = found / lengths
    return unit
