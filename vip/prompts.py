"""The prompts: load the files of prompts/, check them and hash them, so that every caption can name its exact prompt.

In: Markdown with TOML front matter between `+++` lines, and `{input}` where a value goes. Out: `Prompt`, whose `render` fills in the
values. `QUESTIONS` lists the prompts (section 3.2), the inputs of each and the record of its answer.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vip import files
from vip.errors import UsageError, did_you_mean
from vip.records import AnswerFromFrames, Direct, Expected, Famous, FrameObservation, Review, Rich
from vip.untrusted import parse_toml

_OUTPUTS = (AnswerFromFrames, Direct, Expected, Famous, FrameObservation, Review, Rich)
OUTPUTS: dict[str, type[BaseModel]] = {kind.__name__: kind for kind in _OUTPUTS}
"""The records that a prompt may ask for as `output`."""

_FRAME = frozenset({"time", "position", "objects", "regions", "expected", "context", "language"})
QUESTIONS: dict[str, tuple[frozenset[str], str | None]] = {
    "topic": (frozenset({"topic", "language"}), "Expected"),
    "caption": (_FRAME, None),
    "describe": (_FRAME | {"caption"}, None),
    "structure": (frozenset({"caption", "language"}), "Famous"),
    "direct": (_FRAME, "Direct"),
    "rich": (_FRAME, "Rich"),
    "words": (frozenset({"words"}), None),
    "speech": (frozenset({"speech"}), None),
    "text": (frozenset({"text"}), None),
    "verify": (frozenset({"claims", "time", "language"}), "Review"),
    "rewrite": (frozenset({"caption", "fields", "corrections"}), None),
    "ask-frame": (frozenset({"question", "video", "time", "position", "words", "language"}), "FrameObservation"),
    "ask-answer": (frozenset({"question", "frames", "numbers", "language"}), "AnswerFromFrames"),
}
"""Name of a prompt -> the inputs that it may use, and the record that the answer must fit (None for free text)."""

_FENCE = "+++"
MOST_BYTES = 2**20
_KEYS = {"name", "version", "inputs", "output"}
_PLACEHOLDER = re.compile(r"\{([A-Za-z_]\w*)\}")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One file of prompts/. `sha256` is that of the whole file; `output` names the record that the reply must fit."""

    name: str
    version: str
    inputs: tuple[str, ...]
    output: str | None
    body: str
    sha256: str

    @property
    def schema(self) -> dict[str, Any] | None:
        """JSON schema of the reply; None for free text."""
        return _schema_of(self.output) if self.output else None

    @property
    def record(self) -> type[BaseModel] | None:
        """The record that the reply must fit; None for free text."""
        return OUTPUTS[self.output] if self.output else None

    def render(self, values: Mapping[str, str]) -> str:
        """Return the body with each `{input}` replaced once; braces inside a value stay as they are.

        Raises:
            UsageError: the names of `values` are not those of the inputs.
        """
        if set(values) != set(self.inputs):
            raise UsageError(f'The prompt "{self.name}" takes {_join_names(self.inputs)}, but was given {_join_names(values)}.')
        return _PLACEHOLDER.sub(lambda match: values[match[1]], self.body)

    def __repr__(self) -> str:
        return f"Prompt({self.name!r}, version={self.version!r}, sha256={self.sha256[:12]})"


def prompts_folder() -> Path:
    """Return the folder of the prompts: inside an installed package, or beside it in a checkout.

    Raises:
        UsageError: both are missing.
    """
    here = Path(__file__).parent
    for folder in (here / "_prompts", here.parent / "prompts"):
        if folder.is_dir():
            return folder
    raise UsageError(f"The folder {here / '_prompts'} is missing. Install vip again with `pip install --force-reinstall vip-keyframes`.")


def load_prompts(folder: Path | None = None) -> dict[str, Prompt]:
    """Return the prompts by name: those of the folder, and the built-in ones for the other names.

    Raises:
        UsageError: a file does not fit its front matter, its name is not in `QUESTIONS`, or two files have one name.
    """
    built_in = _prompts_in(prompts_folder())
    return {**built_in, **_prompts_in(folder)} if folder else built_in


def _prompts_in(folder: Path) -> dict[str, Prompt]:
    found: dict[str, Prompt] = {}
    for path in sorted(folder.glob("*.md")):
        prompt = load_prompt(path)
        _check_question(prompt, path)
        if prompt.name in found:
            raise UsageError(f'{path} has the name "{prompt.name}", which another prompt of its folder has already.')
        found[prompt.name] = prompt
    if not found:
        raise UsageError(f"{folder} holds no prompts: expected files like describe.md.")
    return found


def _check_question(prompt: Prompt, path: Path) -> None:
    if prompt.name not in QUESTIONS:
        raise UsageError(f'{path} has the name "{prompt.name}", which vip never asks.{did_you_mean(prompt.name, QUESTIONS)}')
    known, output = QUESTIONS[prompt.name]
    for name in prompt.inputs:
        if name not in known:
            raise UsageError(f'{path} has the input "{name}", which "{prompt.name}" does not get.{did_you_mean(name, known)}')
    if prompt.output != output:
        wanted = f'needs output = "{output}"' if output else "must have no output: its answer is free text"
        raise UsageError(f'{path}: the prompt "{prompt.name}" {wanted}.')


def make_prompt(name: str, version: str, body: str) -> Prompt:
    """Return a prompt for free text from a program: `{input}` marks what is filled in."""
    inputs = tuple(dict.fromkeys(_PLACEHOLDER.findall(body)))
    return Prompt(name, version, inputs, None, body, hashlib.sha256(body.encode()).hexdigest())


def load_prompt(path: Path) -> Prompt:
    """Read and check one file.

    Raises:
        UsageError: it cannot be used; the message names the file and the reason.
    """
    try:
        data = files.read_bytes(path, most_bytes=MOST_BYTES)
        text = data.decode("utf-8").replace("\r\n", "\n")
    except OSError as exc:
        raise UsageError(f"{path} cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"{path} is not UTF-8 text (byte {exc.start}).") from exc
    front, body = _split_front_matter(text, path)
    name, version, inputs, output = _check_front_matter(front, path)
    used = set(_PLACEHOLDER.findall(body))
    if unknown := used - set(inputs):
        raise UsageError(
            f"{path} uses {_join_names(sorted(unknown))} in its text, but its front matter lists as inputs {_join_names(inputs)}."
        )
    if unused := set(inputs) - used:
        raise UsageError(f"{path} lists as inputs {_join_names(sorted(unused))}, but its text never uses them.")
    return Prompt(name, version, inputs, output, body, hashlib.sha256(data).hexdigest())


def _split_front_matter(text: str, path: Path) -> tuple[dict[str, Any], str]:
    lines = text.split("\n")
    if lines[0].strip() != _FENCE or _FENCE not in (line.strip() for line in lines[1:]):
        raise UsageError(f"{path} must begin with TOML between two lines of {_FENCE}.")
    end = next(number for number, line in enumerate(lines) if number and line.strip() == _FENCE)
    body = "\n".join(lines[end + 1 :]).strip()
    if not body:
        raise UsageError(f"{path} has no text after its front matter.")
    try:
        return parse_toml("\n".join(lines[1:end])), body
    except ValueError as exc:
        raise UsageError(f"{path} has a front matter that is not valid TOML: {exc}.") from exc


def _check_front_matter(front: dict[str, Any], path: Path) -> tuple[str, str, tuple[str, ...], str | None]:
    for key in ("name", "version", "inputs"):
        if key not in front:
            raise UsageError(f'{path} lacks "{key}" in its front matter.')
    for key in front:
        if key not in _KEYS:
            raise UsageError(f'{path} has an unknown key "{key}" in its front matter.{did_you_mean(key, _KEYS)}')
    for key in ("name", "version", "output"):
        if key in front and (not isinstance(front[key], str) or not front[key]):
            raise UsageError(f'{path}: "{key}" must be a text in quotes, not {front[key]!r}.')
    inputs = front["inputs"]
    if not isinstance(inputs, list) or not all(isinstance(entry, str) for entry in inputs):
        raise UsageError(f'{path}: "inputs" must be a list of names in quotes, not {inputs!r}.')
    output = front.get("output")
    if output is not None and output not in OUTPUTS:
        raise UsageError(f'{path} asks for an unknown output "{output}".{did_you_mean(output, OUTPUTS)}')
    return front["name"], front["version"], tuple(inputs), output


@cache
def _schema_of(output: str) -> dict[str, Any]:
    """Return the JSON schema of a record, built once since every request uses it."""
    schema: dict[str, Any] = _without_descriptions(OUTPUTS[output].model_json_schema())
    return schema


def _without_descriptions(schema: Any) -> Any:
    """Return the schema without the docstrings of the records."""
    if isinstance(schema, dict):
        return {key: _without_descriptions(value) for key, value in schema.items() if key != "description"}
    return schema


def _join_names(names: Mapping[str, str] | tuple[str, ...] | list[str]) -> str:
    return ", ".join(f'"{name}"' for name in names) or "nothing"
