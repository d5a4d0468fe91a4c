"""vip.tasks.fiber.language_models: what packages add, and what is said where it is missing or broken"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from vip.errors import BackendError
from vip.tasks.fiber import language_models as module
from vip.tasks.fiber.language_models import load_added, load_spacy


def added(**made: Callable[[], Any]) -> Callable[..., list[SimpleNamespace]]:
    """Return the entry points of the group vip.nouns."""
    points = [SimpleNamespace(name=name, value=f"other:{name}", load=lambda one=one: one) for name, one in made.items()]
    return lambda group, name=None: [one for one in points if name in (None, one.name)] if group == "vip.nouns" else []


def broken() -> None:
    raise RuntimeError("a table is missing")


def test_what_a_package_adds_is_made_by_its_name_and_a_broken_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "entry_points", added(commas=lambda: "made", broken=broken, a=list))
    assert load_added("chunker", "commas", group="vip.nouns", known=("spacy:MODEL",)) == "made"
    with pytest.raises(BackendError, match=r'The chunker "broken" of other:broken cannot be loaded: a table is missing\. Repair or remove'):
        load_added("chunker", "broken", group="vip.nouns", known=())


def test_names_that_are_known_stand_before_those_of_packages_in_the_order_of_the_alphabet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "entry_points", added(commas=list, broken=broken, a=list))
    with pytest.raises(BackendError, match=r'^There is no parser "dots"\. There is: spacy:MODEL, none, a, broken, commas\.$'):
        load_added("parser", "dots", group="vip.nouns", known=("spacy:MODEL", "none"))


@pytest.mark.parametrize(("name", "loaded"), [("", "en_core_web_trf"), ("en_core_web_sm", "en_core_web_sm")])
def test_the_model_of_the_paper_is_loaded_where_none_is_named(name: str, loaded: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(module, "find_spec", lambda library: object())
    monkeypatch.setattr(module, "import_module", lambda library: SimpleNamespace(load=lambda model: asked.append(model) or library))
    assert load_spacy(name, otherwise=", or not") == "spacy"
    assert asked == [loaded]
    monkeypatch.setattr(module, "find_spec", lambda library: None)
    with pytest.raises(BackendError, match=rf"Run `pip install spacy` and `python -m spacy download {loaded}`, or not\."):
        load_spacy(name, otherwise=", or not")
