"""What a model would say: a caption, or JSON made from the schema that is asked for.

In: the body of a chat request. Out: the body of a completion, in which a picture that was seen is named by its content, so
that a test can tell whose caption it is, and that none was invented.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

CAPTION = "A made-up caption from the test server."
FAMOUS = {"focus": "a test", "action": "not determined", "mood": "calm", "objects": ["a box"], "setting": "a room"}
CUT = "[cut]"
"""Stands in the place of pictures in requests that are kept without them."""

_FAMOUS_SCHEMA = {
    "title": "Famous",
    "properties": {key: {"type": "string"} if isinstance(value, str) else {"type": "array", "items": {}} for key, value in FAMOUS.items()},
}
_MARKER = re.compile(r"picture ([0-9a-f]{12})\b")


@dataclass(frozen=True, slots=True)
class Question:
    """What matters of a chat request."""

    digest: str
    """Of the whole request; equal only for equal requests."""
    text: str
    """Of all its messages."""
    pictures: tuple[str, ...]
    """First 12 hexadecimal digits of each picture's SHA-256."""
    short: dict[str, Any]
    """The body without the data of pictures."""

    @property
    def marker(self) -> str | None:
        """The picture it is about: the first it shows, or else the first its text names."""
        if self.pictures:
            return self.pictures[0]
        named = _MARKER.search(self.text)
        return named[1] if named else None

    @property
    def form(self) -> str | None:
        return self.short.get("response_format", {}).get("type")


def question_of(body: Mapping[str, Any]) -> Question:
    """Take a chat request apart; every picture is decoded once."""
    texts: list[str] = []
    pictures: list[str] = []
    messages = []
    for message in body["messages"]:
        content = message.get("content")
        if isinstance(content, str):
            texts.append(content)
        parts = [_short_part(part, texts, pictures) for part in content] if isinstance(content, list) else content
        messages.append({**message, "content": parts})
    short = {**body, "messages": messages}
    digest = hashlib.sha256(json.dumps([short, pictures], sort_keys=True).encode()).hexdigest()
    return Question(digest, "\n".join(texts), tuple(pictures), short)


def _short_part(part: dict[str, Any], texts: list[str], pictures: list[str]) -> dict[str, Any]:
    if part.get("type") == "text":
        texts.append(part["text"])
    if part.get("type") != "image_url":
        return part
    head, _, data = part["image_url"]["url"].partition(",")
    pictures.append(hashlib.sha256(binascii.a2b_base64(data)).hexdigest()[:12])
    return {**part, "image_url": {**part["image_url"], "url": f"{head},{CUT}"}}


# ---------------------------------------------------------------- the words


def words(question: Question, *, marks: bool) -> tuple[str, bool]:
    """The answer that fits, and whether it is JSON."""
    schema = _schema(question)
    if schema is not None:
        return json.dumps(_made(schema, schema, "value", question.marker)), True
    return f"{CAPTION} It shows picture {question.marker}." if marks and question.marker else CAPTION, False


def _schema(question: Question) -> dict[str, Any] | None:
    """The schema that is asked for, in the request or in words; that of FAMOuS where JSON is asked for without; else None."""
    asked = question.short.get("response_format") or {}
    if asked.get("type") == "json_schema":
        schema = asked["json_schema"].get("schema") or {}
        return {"title": asked["json_schema"].get("name"), **schema}
    _, found, after = question.text.rpartition("JSON schema")
    if found and "{" in after:
        try:
            schema, _ = json.JSONDecoder().raw_decode(after[after.index("{") :])
        except ValueError:
            return _FAMOUS_SCHEMA
        return dict(schema)
    return _FAMOUS_SCHEMA if asked.get("type") == "json_object" or "JSON object" in question.text else None


def _made(schema: Mapping[str, Any], root: Mapping[str, Any], key: str, marker: str | None) -> Any:
    """A value that fits a schema and names the key and the picture wherever it may."""
    if reference := schema.get("$ref"):
        found: Any = root
        for step in reference.removeprefix("#/").split("/"):
            found = found[step]
        return _made(found, root, key, marker)
    if marker is None and schema.get("title") == "Famous":
        return FAMOUS
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return _made(schema[several][0], root, key, marker)
    if "const" in schema or "enum" in schema:
        return schema["const"] if "const" in schema else schema["enum"][0]
    return _plain(schema, root, key, marker)


def _plain(schema: Mapping[str, Any], root: Mapping[str, Any], key: str, marker: str | None) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else "string")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        return {name: _made(properties.get(name, {}), root, name, marker) for name in schema.get("required", properties)}
    if kind == "array":
        return [_made(schema.get("items", {}), root, key, marker)] * max(1, schema.get("minItems", 1))
    if kind in {"integer", "number"}:
        return schema.get("minimum", 0)
    if kind == "string":
        return f"{key} of picture {marker}"[: schema.get("maxLength")] if marker else f"{key} of no picture"
    return True if kind == "boolean" else None


# ---------------------------------------------------------------- the completion


def completion(
    behaviour: str, question: Question, *, marks: bool, usage: Sequence[int] | None, says: Sequence[Sequence[str]] = ()
) -> dict[str, Any]:
    """The body of an answer; behaviours that it does not know are `ok`."""
    text, is_json = words(question, marks=marks)
    text = next((answer for part, answer in says if part in question.text), text)
    texts = {
        "wrong_schema": '{"focus": 3}',
        "half_reply": text[: len(text) // 2],
        "fenced": f"Here it is:\n\n```json\n{text}\n```" if is_json else text,
        "thinking": f"<think>\nLet me see {{…}}\n</think>\n\n{text}",
        "empty": "",
        "not_enforced": CAPTION,
        "outside_schema": json.dumps(dict(list(json.loads(text).items())[:-1])) if is_json else text,
    }
    reasons = {"length": "length", "content_filter": "content_filter"}
    message = {"role": "assistant", "content": texts.get(behaviour, text), "refusal": None}
    if behaviour == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that."}
    choice = {"index": 0, "message": message, "finish_reason": reasons.get(behaviour, "stop"), "logprobs": None}
    answer = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": f"{question.short['model']}-0001",
        "choices": [] if behaviour == "no_choices" else [choice],
    }
    if usage is not None:
        tokens_in, tokens_out = usage
        answer["usage"] = {"prompt_tokens": tokens_in, "completion_tokens": tokens_out, "total_tokens": tokens_in + tokens_out}
    return answer
