"""The engine `openai:MODEL`: api.openai.com or any server that speaks its chat completions, through the openai library.

In: a prompt, encoded pictures, a JSON schema or none. Out: the text of one complete answer (section 3.2 asks GPT-4 for
both texts of a keyframe). The library's errors end here, see `vip.models.openai_errors`.
"""

from __future__ import annotations

import base64
import json
import os
import re
from typing import Any

import openai

from vip.errors import EngineError, ReplyError
from vip.models.openai_errors import (
    Server,
    broken_json,
    checked_address,
    cut_off,
    filtered,
    is_official,
    is_rejection,
    not_a_reply,
    scrub,
    translated,
)
from vip.protocols import Picture, Reply, Request

OFFICIAL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-5-mini-2025-08-07"  # as of November 2026: takes pictures and strict JSON schemas; a snapshot, so it stays the same
MAX_RETRIES = 2  # the library waits longer each time, or as long as the server's Retry-After says
TIMEOUT_S, CONNECT_TIMEOUT_S = 120.0, 10.0
REASONING_TOKENS = 8192  # reasoning counts against max_completion_tokens before the first word of the answer
PICTURE_DETAIL = "high"
NO_KEY = "no-key"  # what servers that want none are sent: the library insists on one
FORMATS = ("json_schema", "json_object", "text")  # how a schema is asked for, from the strictest on
BROKEN = (json.JSONDecodeError, UnicodeDecodeError)  # what the library lets through when an answer is no JSON

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A```\w*\s*\n(.*?)\n?```\s*\Z", re.DOTALL)


class OpenAIEngine:
    """One model of one server; knows its model from the start, and talks to several callers at once."""

    def __init__(
        self, detail: str | None, *, base_url: str | None = None, max_retries: int = MAX_RETRIES, timeout_s: float = TIMEOUT_S
    ) -> None:
        """Find the address, the key and the model; asks the server for its models only if none is named.

        Args:
            base_url: before OPENAI_BASE_URL, before api.openai.com.

        Raises:
            UsageError: the address is none.
            EngineError: no key where one is needed, or no model to be had.
        """
        address = checked_address(base_url or os.environ.get("OPENAI_BASE_URL", "").strip() or OFFICIAL)
        key = _key(address)
        self._settings: dict[str, Any] = {
            "api_key": key or NO_KEY,
            "base_url": address,
            "max_retries": max_retries,
            "timeout": openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S)),
        }
        self._server = Server(address, detail or "", key, max_retries + 1, timeout_s)
        model = detail or (DEFAULT_MODEL if is_official(address) else self._first_model())
        self._server = Server(address, model, key, max_retries + 1, timeout_s)
        self._format = FORMATS[0]
        self._client = openai.AsyncOpenAI(**self._settings)

    @property
    def model(self) -> str:
        return self._server.model

    @property
    def name(self) -> str:
        return f"openai:{self.model}"

    def __repr__(self) -> str:
        return f"OpenAIEngine({self.model!r}, base_url={self._server.address!r})"

    async def close(self) -> None:
        await self._client.close()

    async def generate(self, request: Request) -> Reply:
        """Ask once; a server that rejects `response_format` is asked again in simpler terms, and from then on only so.

        Raises:
            EngineError: the key, the model, the server or the way there is at fault.
            ReplyError: refused, cut off, filtered, empty, or broken on the way.
        """
        forms = FORMATS[FORMATS.index(self._format) :] if request.schema is not None else ("text",)
        for form in forms:
            try:
                completion = await self._client.chat.completions.create(**self._question(request, form))
            except openai.OpenAIError as exc:
                if is_rejection(exc) and form != forms[-1]:
                    continue
                raise translated(exc, self._server, models=await self._models_for(exc)) from exc
            except BROKEN as exc:
                scrub(exc, self._server)
                raise broken_json(self._server) from exc
            reply = self._reply(completion, request)
            if request.schema is not None:
                self._format = form
            return reply
        raise AssertionError("there is always a last form")

    def _question(self, request: Request, form: str) -> dict[str, Any]:
        prompt = request.prompt
        question: dict[str, Any] = {"model": self.model}
        if request.schema is not None and form == "json_schema":
            name = re.sub(r"\W", "_", request.schema.get("title", "reply"))
            question["response_format"] = {"type": form, "json_schema": {"name": name, "schema": request.schema, "strict": True}}
        elif request.schema is not None:
            prompt += f"\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{json.dumps(request.schema)}"
            if form == "json_object":
                question["response_format"] = {"type": form}
        parts = [{"type": "text", "text": prompt}, *(_picture_part(picture) for picture in request.pictures)]
        question["messages"] = [{"role": "user", "content": parts if request.pictures else prompt}]
        if self._server.official:
            question["max_completion_tokens"] = request.max_tokens + REASONING_TOKENS
        else:
            question["max_tokens"] = request.max_tokens
        return question

    def _reply(self, completion: Any, request: Request) -> Reply:
        if isinstance(completion, str):
            raise not_a_reply(self._server)
        choices = getattr(completion, "choices", None)
        if not choices:
            raise ReplyError(f"{self.model} at {self._server.address} sent an answer without any text.")
        message, reason = choices[0].message, choices[0].finish_reason
        if refusal := getattr(message, "refusal", None):
            raise ReplyError(f'{self.model} refused to answer: "{self._server.redacted(refusal)}"')
        if reason == "length":
            raise cut_off(None, self._server)
        if reason == "content_filter":
            raise filtered(None, self._server)
        content = getattr(message, "content", None)
        text = _THINKING.sub("", content).strip() if isinstance(content, str) else ""
        if not text:
            raise ReplyError(f"{self.model} at {self._server.address} sent an empty answer.")
        usage = getattr(completion, "usage", None)
        return Reply(
            _json_in(text) if request.schema is not None else text,
            model=getattr(completion, "model", None) or self.model,
            tokens_in=getattr(usage, "prompt_tokens", None),
            tokens_out=getattr(usage, "completion_tokens", None),
        )

    async def _models_for(self, exc: openai.OpenAIError) -> list[str]:
        """The models of the server if `exc` may mean that one is missing; none where it does not say."""
        if not isinstance(exc, openai.NotFoundError):
            return []
        try:
            client = self._client.with_options(max_retries=0, timeout=CONNECT_TIMEOUT_S)
            return _ids(await client.get("/models", cast_to=object))
        except (openai.OpenAIError, *BROKEN):
            return []

    def _first_model(self) -> str:
        try:
            with openai.OpenAI(**self._settings) as client:
                models = _ids(client.get("/models", cast_to=object))
        except (openai.NotFoundError, *BROKEN) as exc:
            scrub(exc, self._server)
            raise EngineError(f"{self._server.address} does not list its models. {_NAME_IT}") from exc
        except openai.OpenAIError as exc:
            raise translated(exc, self._server) from exc
        if not models:
            raise EngineError(f"{self._server.address} lists no model. {_NAME_IT}")
        return models[0]


_NAME_IT = "Name one with --engine openai:MODEL, and check the address: it usually ends in /v1."


def _key(address: str) -> str | None:
    key = os.environ.get("OPENAI_API_KEY", "").strip()
    if not key and is_official(address):
        raise EngineError("OPENAI_API_KEY is not set, and api.openai.com answers nobody without it. Set it, or use --engine offline.")
    if not (key.isascii() and key.isprintable()):
        raise EngineError("OPENAI_API_KEY contains letters that no key has. Copy it again.")
    return key or None


def _ids(page: object) -> list[str]:
    """Names of the models on a page; none where the server sent something else, as `models.list()` could not bear."""
    entries = page.get("data") if isinstance(page, dict) else []
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [name for name in names if isinstance(name, str)]


def _picture_part(picture: Picture) -> dict[str, Any]:
    url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
    return {"type": "image_url", "image_url": {"url": url, "detail": PICTURE_DETAIL}}


def _json_in(text: str) -> str:
    """The JSON object in a text that may wrap it in a code fence or in words; the text itself where there is none."""
    fenced = _FENCED.match(text)
    text = fenced[1].strip() if fenced else text
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text
