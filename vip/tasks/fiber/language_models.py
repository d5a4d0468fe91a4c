"""Parsers and chunkers by name: a model of spaCy, or one that another package adds by an entry point."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from vip.errors import BackendError

DEFAULT_SPACY_MODEL = "en_core_web_trf"


def load_spacy(model: str, *, otherwise: str = "") -> Any:
    """Return the pipeline of a model of spaCy.

    Args:
        otherwise: what may be done without spaCy, the end of the sentence.

    Raises:
        BackendError: spaCy or the model is not installed.
    """
    model = model or DEFAULT_SPACY_MODEL
    if find_spec("spacy") is None:
        raise BackendError(f"Noun phrases need spaCy. Run `pip install spacy` and `python -m spacy download {model}`{otherwise}.")
    try:
        return import_module("spacy").load(model)
    except OSError as exc:
        raise BackendError(f"spaCy has no model {model} here. Run `python -m spacy download {model}`.") from exc


def load_added(noun: str, name: str, *, group: str, known: tuple[str, ...]) -> Any:
    """Return what a package adds under this name.

    Args:
        noun: what it is, for messages.
        group: of the entry points.
        known: the names that need no package.

    Raises:
        BackendError: there is none, or it is broken.
    """
    for point in entry_points(group=group, name=name):
        try:
            return point.load()()
        except Exception as exc:
            raise BackendError(f'The {noun} "{name}" of {point.value} cannot be loaded: {exc}. Repair or remove its package.') from exc
    names = ", ".join([*known, *sorted(point.name for point in entry_points(group=group))])
    raise BackendError(f'There is no {noun} "{name}". There is: {names}.')
