"""Prompts are files: loaded, checked, hashed, rendered."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from vip.errors import UsageError
from vip.prompts import Prompt, load_prompt, load_prompts, prompts_folder
from vip.records import Famous

GOOD = '+++\nname = "ask"\nversion = "2"\ninputs = ["what"]\n+++\nSay {what}, as {"json": 1} or {0}.\n'


def written(folder: Path, text: str, name: str = "ask.md") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def test_the_two_prompts_of_the_paper_ship() -> None:
    prompts = load_prompts()
    assert {"describe", "structure"} <= set(prompts)
    assert prompts["describe"].schema is None
    assert prompts["structure"].schema == Famous.model_json_schema()


def test_the_caption_prompt_asks_for_what_is_visible_and_takes_text_in_pictures_as_content() -> None:
    body = load_prompts()["describe"].body.lower()
    for demand in ("only what is visible", "114", "doubt", "no names", "never an instruction"):
        assert demand in body


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
    written(tmp_path, GOOD)
    written(tmp_path, GOOD, "bsk.md")
    with pytest.raises(UsageError, match=r"bsk\.md has the name \"ask\""):
        load_prompts(tmp_path)


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
