"""From settings to a learner: which files of settings count, which classes, in which sizes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import ValidationError
from torch import Tensor

from vip.baselines.nextqa.data import Item
from vip.baselines.nextqa.interface import DECODERS, MULTI_CHOICE, OPEN_ENDED, InputSizes, load_class
from vip.baselines.nextqa.multi_choice import MultiChoiceLearner
from vip.baselines.nextqa.open_ended import OpenEndedLearner, ScoreAnswer, exact_match
from vip.baselines.nextqa.words import BertWords, EmbeddedWords, StoredWords, WordVectors
from vip.baselines.settings import BaselineSettings, Tables, TrainingSettings, WordSettings, check, merge, read_tables
from vip.baselines.vocabulary import WordVocabulary
from vip.errors import InputError, UsageError, did_you_mean, validation_message
from vip.untrusted import one_line, shorten
from vip.wording import option

TASKS = {"nextqa-mc": MULTI_CHOICE, "nextqa-oe": OPEN_ENDED}
"""Models by task."""
_FOLDER = Path(__file__).parent
_TABLES = ("model", "words", "training", "decoder", "decoder-options")


def load_settings(
    task: str, model: str, *, decoder: str | None = None, config: Path | None = None, assignments: Tables | None = None
) -> BaselineSettings:
    """Return the settings of a model: its own files, the user's file over them, single values over that.

    Raises:
        UsageError: the task, the model, the decoder or a setting is unknown, or a value does not fit.
        InputError: the user's file cannot be read.
    """
    if task not in TASKS:
        raise UsageError(f'No model is trained for "{task}".{did_you_mean(task, TASKS)} Name {" or ".join(TASKS)}.')
    if model not in TASKS[task]:
        raise UsageError(f'{task} has no model "{model}".{did_you_mean(model, TASKS[task])}')
    own = read_tables(_FOLDER / ("multi-choice.toml" if task == "nextqa-mc" else "open-ended.toml"))
    of_model = read_tables(_FOLDER / (f"{model}.toml" if task == "nextqa-mc" else f"{model}-oe.toml"))
    given = merge([read_tables(config) if config else {}, assignments or {}, {"decoder": decoder} if decoder else {}])
    if unknown := sorted(given.keys() - set(_TABLES)):
        raise UsageError(f"There is no setting {unknown[0]}. The tables are {', '.join(_TABLES)}.")
    tables = merge([own, of_model, given])
    name = _decoder_name(task, model, given.get("decoder"), of_model.get("decoder") or own.get("decoder"))
    options = merge([read_tables(_FOLDER / f"{name}.toml").get("model", {}), tables.get("decoder-options", {})]) if name else {}
    kind = load_class(TASKS[task], model)
    return BaselineSettings(
        task=task,
        model=model,
        options=check(_table(tables, "model"), kind.Options, "model").model_dump(),
        decoder=name,
        decoder_options=check(options, load_class(DECODERS, name).Options, "decoder-options").model_dump() if name else {},
        words=check(_table(tables, "words"), WordSettings, "words"),
        training=check(_table(tables, "training"), TrainingSettings, "training"),
    )


def _table(tables: Tables, name: str) -> Tables:
    table = tables.get(name, {})
    if not isinstance(table, dict):
        raise UsageError(f"{name} is a table of settings. Write {option('set', f'{name}.NAME=VALUE')}.")
    return table


def _decoder_name(task: str, model: str, given: Any, default: str | None) -> str | None:
    """Return the decoder: the one that was asked for, or the default if it fits, or the first that fits; None with options."""
    if task == "nextqa-mc":
        if given:
            raise UsageError(f"{option('decoder', given)} is for open-ended answers. Leave it out.")
        return None
    fitting = load_class(OPEN_ENDED, model).decoders or tuple(name for name in DECODERS if not load_class(DECODERS, name).needs_states)
    if given and given not in fitting:
        raise UsageError(f'{model} has no decoder "{given}".{did_you_mean(str(given), fitting)}')
    return str(given) if given else default if default in fitting else fitting[0]


def settings_with(settings: BaselineSettings, **training: Any) -> BaselineSettings:
    """Return the settings with other values of training."""
    return settings.model_copy(update={"training": settings.training.model_copy(update=training)})


# ---------------------------------------------------------------- learner


def make_words(
    settings: WordSettings, vocabulary: WordVocabulary | None, vectors: Tensor | None, *, bert: Path, stored_width: int
) -> WordVectors:
    """Return what makes vectors of words.

    Args:
        vectors: (V, E) to begin with; None: zeros, where weights are loaded anyway.
        bert: the folder of the BERT.
        stored_width: numbers a piece in files of stored vectors.
    """
    if settings.kind == "bert":
        return BertWords(bert, settings)
    if settings.kind == "features":
        return StoredWords(stored_width, settings)
    assert vocabulary is not None
    return EmbeddedWords(vocabulary, settings, torch.zeros(len(vocabulary), settings.size) if vectors is None else vectors)


def make_learner(
    settings: BaselineSettings,
    sizes: InputSizes,
    words: WordVectors,
    vocabulary: WordVocabulary | None,
    vectors: Tensor | None,
    *,
    score_answer: ScoreAnswer | None = None,
) -> MultiChoiceLearner | OpenEndedLearner:
    """Return the learner of these settings, its weights drawn by torch's generator.

    Raises:
        InputError: the settings, as of a run folder of a stranger, fit no model of these sizes.
    """
    try:
        kind = load_class(TASKS[settings.task], settings.model)
        model = kind(sizes, kind.Options.model_validate(settings.options))
        if settings.task == "nextqa-mc":
            return MultiChoiceLearner(words, model, settings.training)
        assert vocabulary is not None
        assert settings.decoder is not None
        decoder_kind = load_class(DECODERS, settings.decoder)
        decoder_options = decoder_kind.Options.model_validate(settings.decoder_options)
        decoder = decoder_kind(model, words=settings.words.size, vocabulary=len(vocabulary), options=decoder_options)
    except (KeyError, ValueError) as exc:
        problem = one_line(_problem(exc))[:200]
        raise InputError(f"The settings fit no model {settings.model} of this version of vip ({problem}). Train it again.") from exc
    answers = torch.zeros(len(vocabulary), settings.words.size) if vectors is None else vectors
    length = settings.words.answer_length
    return OpenEndedLearner(
        words, model, decoder, vocabulary, answers, settings.training, answer_length=length, score_answer=score_answer or exact_match
    )


def _problem(exc: KeyError | ValueError) -> str:
    if not isinstance(exc, ValidationError):
        return str(exc)
    first = exc.errors()[0]
    name = shorten(".".join(map(str, first["loc"])), 40)
    return f"{name}: {validation_message(first)}" if name else validation_message(first)


def score_answer_by(name: str) -> ScoreAnswer:
    """Return what says how good an open-ended answer is.

    Raises:
        BackendError: WUPS lacks its data; the message says what to do.
    """
    if name != "wups":
        return exact_match
    from vip.metrics.wups import AnswerReference, Wups

    wups = Wups()
    wups.check()

    def score(item: Item, answer: str) -> float:
        return wups.score_answer(answer, AnswerReference((str(item.answer),), exact=item.exact))

    return score


def texts_for_vocabulary(items: Sequence[Item]) -> list[str]:
    """Return the questions with their right answers: what a vocabulary is counted from."""
    return [f"{item.question} {item.options[int(item.answer or 0)] if item.options else item.answer}" for item in items]
