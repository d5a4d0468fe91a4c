"""Noun chunks and parses by spaCy itself, where it is installed: a pipeline in a folder that sets one parse by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.tasks.fiber.made import video
from vip.tasks.fiber.blanks import load_chunker, make_blanks
from vip.tasks.fiber.noun_phrases import judge_answers, load_parser

spacy = pytest.importorskip("spacy")
PARSES = {
    # The red dog sees his cat .
    7: ((2, 2, 3, 3, 5, 3, 3), ("det", "amod", "nsubj", "ROOT", "poss", "dobj", "punct"), "DET ADJ NOUN VERB PRON NOUN PUNCT"),
    # A man is running fast .
    6: ((1, 3, 3, 3, 3, 3), ("det", "nsubj", "aux", "ROOT", "advmod", "punct"), "DET NOUN AUX VERB ADV PUNCT"),
}


@spacy.Language.component("vip_parse_by_hand")
def parse_by_hand(document: Any) -> Any:
    """Give each text of a known length its heads, dependencies and parts of speech."""
    heads, dependencies, kinds = PARSES[len(document)]
    for token, head, dependency, kind in zip(document, heads, dependencies, kinds.split(), strict=True):
        token.head, token.dep_, token.pos_ = document[head], dependency, kind
        token.tag_ = "VBG" if token.text == "running" else ""
    return document


@pytest.fixture
def model(tmp_path: Path) -> str:
    """The name of a pipeline on the disk."""
    pipeline = spacy.blank("en")
    pipeline.add_pipe("vip_parse_by_hand")
    pipeline.to_disk(tmp_path / "by-hand")
    return f"spacy:{tmp_path / 'by-hand'}"


def test_noun_chunks_of_spacy_are_blanked(model: str) -> None:
    chunks = load_chunker(model)
    assert list(chunks("The red dog sees his cat.")) == [(0, 11), (17, 24)]
    (record,) = make_blanks([video("the red dog sees his cat")], chunks)
    assert (record.masked_caption, record.label) in {("_____ sees his cat.", "The red dog"), ("The red dog sees _____.", "his cat")}


def test_parses_of_spacy_tell_noun_phrases(model: str) -> None:
    pairs = [
        ("_____ sees his cat.", "The red dog"),
        ("The _____ sees his cat.", "red dog"),
        ("The red dog _____.", "sees his cat"),
        ("The red dog sees _____.", "his cat!"),
        ("A man is _____.", "running fast"),
        ("A _____ fast.", "man is running"),
    ]
    parser = load_parser(model)
    # "red dog" is whole by itself; a gerund with an auxiliary outside of it is none
    assert judge_answers(pairs, parser) == [True, True, False, True, False, False]
