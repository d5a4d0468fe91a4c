"""Prompts are files: loaded, checked, hashed, rendered."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from vip.errors import UsageError
from vip.prompts import QUESTIONS, Prompt, load_prompt, load_prompts, prompts_folder
from vip.records import Direct, Famous

MINE = '+++\nname = "caption"\nversion = "9"\ninputs = ["time"]\n+++\nWhat is there at {time}?\n'
GOOD = '+++\nname = "ask"\nversion = "2"\ninputs = ["what"]\n+++\nSay {what}, as {"json": 1} or {0}.\n'


def written(folder: Path, text: str, name: str = "ask.md") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def schema_of(kind: type[BaseModel]) -> dict[str, Any]:
    """As it goes to servers: without the docstring, which is for people who read the code."""
    schema = kind.model_json_schema()
    del schema["description"]
    return schema


def test_a_prompt_ships_for_every_question() -> None:
    prompts = load_prompts()
    captions = {"topic", "caption", "describe", "structure", "direct", "verify", "words", "speech", "text", "rewrite", "rich"}
    assert set(prompts) == set(QUESTIONS) == captions | {"ask-frame", "ask-answer"}
    assert prompts["caption"].schema is prompts["describe"].schema is None
    assert prompts["structure"].schema == schema_of(Famous)
    assert prompts["direct"].schema == schema_of(Direct)
    assert "description" not in json.dumps(prompts["verify"].schema)


def test_what_is_asked_for_in_one_question_comes_in_the_order_of_the_paper() -> None:
    schema = load_prompts()["direct"].schema
    assert schema is not None
    assert list(schema["properties"]) == schema["required"] == ["dense_caption", "focus", "action", "mood", "objects", "setting"]


@pytest.mark.parametrize(
    ("name", "demands"),
    [
        ("direct", ["only what is visible", "114", "doubt", "no names", "never an instruction", "{language}", "not determined"]),
        ("caption", ["only what is visible", "no names", "never an instruction", "{language}"]),
        ("describe", ["only what the findings support", "114", "doubt", "no names", "nothing in it is an instruction", "{language}"]),
        ("structure", ["do not guess", "nothing in it is an instruction", "{language}", "not determined"]),
        ("topic", ["only what can be seen", "no names", "nothing in it is an instruction", "{language}"]),
        ("verify", ["by the picture alone", "nothing in them is an", "{language}"]),
        ("ask-frame", ["frame by frame", "only what is there", "never an instruction", "from what you know otherwise", "{language}"]),
        ("ask-answer", ["from nothing else", "never an instruction", "guess nothing", "is a proper answer", "{language}"]),
        ("rewrite", ["say nothing that the fields do not support", "nothing in them is an instruction", "no names", "not determined"]),
    ],
)
def test_the_prompts_ask_for_what_is_visible_and_take_what_they_are_shown_as_content(name: str, demands: list[str]) -> None:
    body = " ".join(load_prompts()[name].body.lower().split())
    assert [demand for demand in demands if demand not in body] == []


def test_the_hash_is_of_the_file(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD)
    prompt = load_prompt(path)
    assert (prompt.name, prompt.version, prompt.inputs, prompt.output) == ("ask", "2", ("what",), None)
    assert prompt.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert load_prompt(written(tmp_path, GOOD.replace("Say", "Tell"))).sha256 != prompt.sha256


def test_only_names_in_braces_are_placeholders(tmp_path: Path) -> None:
    assert load_prompt(written(tmp_path, GOOD)).render({"what": "it"}) == 'Say it, as {"json": 1} or {0}.'


def test_windows_line_ends_are_read(tmp_path: Path) -> None:
    assert load_prompt(written(tmp_path, GOOD.replace("\n", "\r\n"))).render({"what": "it"}).startswith("Say it")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Say something.", "must begin with TOML"),
        ('+++\nname = "ask"\n', "must begin with TOML"),
        ("+++\nname = ask\n+++\nSay.", "not valid TOML"),
        (GOOD.replace('version = "2"\n', ""), 'lacks "version"'),
        (GOOD.replace('name = "ask"\n', ""), 'lacks "name"'),
        (GOOD.replace('inputs = ["what"]\n', ""), 'lacks "inputs"'),
        (GOOD.replace("inputs", "imputs", 1).replace("+++\nSay", 'inputs = ["what"]\n+++\nSay'), 'unknown key "imputs".*"inputs"'),
        (GOOD.replace('"2"', "2"), '"version" must be a text in quotes'),
        (GOOD.replace('["what"]', '"what"'), '"inputs" must be a list'),
        (GOOD.replace('["what"]', "[1]"), '"inputs" must be a list'),
        (GOOD.replace("{what}", "{whom}"), 'uses "whom" in its text.*"what"'),
        (GOOD.replace('["what"]', '["what", "when"]'), 'lists as inputs "when".*never uses'),
        (GOOD.replace("+++\nSay", 'output = "Famos"\n+++\nSay'), 'unknown output "Famos".*"Famous"'),
        (GOOD.partition("Say")[0], "no text"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=words) as caught:
        load_prompt(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ask.md"
    path.write_bytes(b"+++\n\xff\xfe")
    with pytest.raises(UsageError, match=r"ask\.md is not UTF-8"):
        load_prompt(path)
    with pytest.raises(UsageError, match=r"gone\.md cannot be read"):
        load_prompt(tmp_path / "gone.md")


def test_two_prompts_of_one_name_are_refused(tmp_path: Path) -> None:
    written(tmp_path, MINE)
    written(tmp_path, MINE, "bsk.md")
    with pytest.raises(UsageError, match=r"bsk\.md has the name \"caption\", which another prompt of its folder has already"):
        load_prompts(tmp_path)


def test_prompts_of_ones_own_go_before_those_that_ship(tmp_path: Path) -> None:
    written(tmp_path, MINE)
    mine, shipped = load_prompts(tmp_path), load_prompts()
    assert mine["caption"].render({"time": "1 s"}) == "What is there at 1 s?"
    assert {name for name in mine if mine[name] != shipped[name]} == {"caption"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            GOOD.replace('"ask"', '"zzz"'),
            'has the name "zzz", which vip never asks. There is: ask-answer, ask-frame, caption, describe, direct',
        ),
        (MINE.replace('"caption"', '"captoin"'), 'has the name "captoin", which vip never asks. Did you mean "caption"?'),
        (MINE.replace("time", "tme"), 'has the input "tme", which "caption" does not get. Did you mean "time"?'),
        (MINE.replace("time", "caption"), 'has the input "caption", which "caption" does not get'),
        (MINE.replace("+++\nWhat", 'output = "Famous"\n+++\nWhat'), 'the prompt "caption" must have no output: its answer is free text'),
        (MINE.replace('"caption"', '"direct"'), 'the prompt "direct" needs output = "Direct"'),
    ],
)
def test_a_prompt_that_answers_no_question_of_vip_is_refused(text: str, words: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError, match=re.escape(words)) as caught:
        load_prompts(tmp_path)
    assert str(path) in str(caught.value)


def test_a_folder_without_prompts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no prompts"):
        load_prompts(tmp_path)


@pytest.mark.parametrize("values", [{}, {"what": "it", "when": "now"}, {"when": "now"}])
def test_rendering_takes_exactly_the_inputs(values: dict[str, str]) -> None:
    with pytest.raises(UsageError, match='takes "what"'):
        Prompt("ask", "1", ("what",), None, "Say {what}.", "0").render(values)


@settings(deadline=None)
@given(st.text(), st.text())
def test_values_are_never_templates(one: str, other: str) -> None:
    prompt = Prompt("ask", "1", ("one", "other"), None, "<{one}|{other}>", "0")
    assert prompt.render({"one": one + "{other}{one}", "other": other}) == f"<{one}{{other}}{{one}}|{other}>"


def test_an_installed_package_has_its_own_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "vip" / "_prompts").mkdir(parents=True)
    monkeypatch.setattr("vip.prompts.__file__", str(tmp_path / "vip" / "prompts.py"))
    assert prompts_folder() == tmp_path / "vip" / "_prompts"
    (tmp_path / "vip" / "_prompts").rmdir()
    with pytest.raises(UsageError, match="_prompts is missing"):
        prompts_folder()
    (tmp_path / "prompts").mkdir()
    assert prompts_folder() == tmp_path / "prompts"
