"""The engine `openai:MODEL`: api.openai.com or any server that speaks its chat completions, through the openai library.

In: a prompt, encoded pictures, a JSON schema or none. Out: the text of one complete answer (section 3.2 asks GPT-4 for
both texts of a keyframe). It asks once: who asks it tries again. What a server does not know (schemas, names of
parameters) is found out once and remembered in `traits`. The library's errors end here, see `vip.models.openai.errors`.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import openai

from vip.errors import BusyError, EngineError, ReplyError, VipError
from vip.models.openai.batch_api import OpenAIBatches
from vip.models.openai.errors import (
    ServerIdentity,
    check_address,
    cut_off_error,
    filtered_error,
    invalid_reply_error,
    is_rejection,
    scrub,
    translate,
)
from vip.models.openai.server import KEY, find_key, is_of_environment, parse_detail, parse_limits
from vip.models.openai.transport import decode_json, http_client, http_library, with_timeout
from vip.protocols import LONGEST_ANSWER, LONGEST_NAME, EngineCapabilities, Picture, RateLimits, Reply, Request, token_count
from vip.untrusted import clean_answer, one_line, parse_json
from vip.wording import option

OFFICIAL = "https://api.openai.com/v1"
DEFAULT_MODEL = "gpt-5.4-mini-2026-03-17"  # as of November 2026: takes pictures and strict JSON schemas; a snapshot, so it stays the same
TIMEOUT_S, CONNECT_TIMEOUT_S = 120.0, 10.0
REASONING_TOKENS = 8192  # reasoning counts against max_completion_tokens before the first word of the answer
CLIENTS = 8
AS_JSON: Any = {"headers": {"Content-Type": "application/json"}}
NO_KEY = "no-key"  # what servers that want none are sent: the library insists on one
FORMS = ("json_schema", "json_object", "text")  # how a schema is asked for, from the strictest on
LENGTHS = ("max_tokens", "max_completion_tokens")  # what servers call the bound of the answer
NOT_ENFORCED = 2  # answers without the JSON asked for, and none with it: the server only pretends to know this form

_THINKING = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)


class OpenAIEngine:
    """One model of one server; knows its model from the start, and talks to several callers at once."""

    def __init__(
        self,
        detail: str | None,
        *,
        base_url: str | None = None,
        key_file: Path | None = None,
        timeout_s: float = TIMEOUT_S,
        picture_detail: Literal["low", "high", "auto"] = "high",
        device: str = "auto",
        precision: str = "auto",
    ) -> None:
        """Find the address, the key and the model; asks the server for its models only if none is named.

        Args:
            detail: `MODEL`, or `MODEL@ADDRESS` for a server of its own.
            base_url: before OPENAI_BASE_URL, before api.openai.com.
            key_file: a file with the key, before OPENAI_API_KEY.

        Raises:
            UsageError: the address is none, or others may read the file of the key.
            EngineError: what is set cannot be a key, or the server names no model.
        """
        model, address = parse_detail(detail, base_url, OFFICIAL)
        address = check_address(address)
        key = find_key(key_file, address)
        self._settings: dict[str, Any] = {
            "api_key": key or NO_KEY,
            "base_url": address,
            "max_retries": 0,
            "timeout": openai.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S)),
        }
        source = str(key_file) if key_file else KEY
        self._server = ServerIdentity(address, model, key, timeout_s, source, is_of_environment(address))
        self._clients: list[openai.AsyncOpenAI] = []
        self._client_calls = 0
        if not model:
            self._server = replace(self._server, model=DEFAULT_MODEL if self._server.official else self._first_model())
        self.traits = {"form": FORMS[0], "length": LENGTHS[self._server.official], "temperature": "any"}
        self.capabilities = EngineCapabilities(
            thinking_tokens=REASONING_TOKENS if self._server.official else 0,
            picture_detail=picture_detail,
            address=self._server.address,  # it goes into files
            parameters={"detail": picture_detail},
            traits=self.traits,
            check=self._check_key,
            batches=self._batches,
        )
        self._valid_replies = self._invalid_replies = 0
        self._limits: RateLimits | None = None

    @property
    def _form(self) -> str:
        """The form in which a schema is asked for; a value from the answer cache may be invalid."""
        return self.traits["form"] if self.traits["form"] in FORMS else FORMS[0]

    @property
    def _length(self) -> str:
        return self.traits["length"] if self.traits["length"] in LENGTHS else LENGTHS[self._server.official]

    @property
    def _may_be_greedy(self) -> bool:
        return self.traits["temperature"] == "any"

    @property
    def model(self) -> str:
        return self._server.model

    @property
    def name(self) -> str:
        return f"openai:{self.model}"

    def _check_key(self) -> None:
        """Refuse to ask api.openai.com without a key.

        Raises:
            EngineError: there is none.
        """
        if self._server.official and not self._server.key:
            advice = f"Set OPENAI_API_KEY, give {option('key_file', 'FILE')}, or use {option('engine', 'offline')}."
            raise EngineError(f"No key is set, and api.openai.com answers nobody without one. {advice}")

    def __repr__(self) -> str:
        return f"OpenAIEngine({self.model!r}, base_url={self._server.address!r})"

    @property
    def _client(self) -> openai.AsyncOpenAI:
        """One of several in turn: each looks through all its connections at every request."""
        self._client_calls += 1
        if len(self._clients) < min(CLIENTS, self._client_calls):
            self._clients.append(self._new_client())
        return self._clients[self._client_calls % len(self._clients)]

    def _new_client(self) -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(**self._settings, http_client=http_client(self._server, self._note_limits))

    def _note_limits(self, headers: Mapping[str, str]) -> None:
        self._limits = parse_limits(headers)

    async def close(self) -> None:
        clients, self._clients = self._clients, []
        for client in clients:
            await client.close()

    async def generate(self, request: Request) -> Reply:
        """Ask once; a server that rejects a parameter is asked again in simpler terms, and from then on only so.

        Raises:
            BusyError: asked too much, failing, too slow, or gone.
            EngineError: the key, the model, the server or the way there is at fault.
            ReplyError: refused, cut off, filtered, empty, or broken on the way.
        """
        form = self._form if request.schema is not None else "text"
        length = first = self._length
        while True:
            try:  # not chat.completions.create: checking and copying 100 kB of picture there costs as much as sending it
                body = self._encode_body(request, form, length)
                post = self._client.post("/chat/completions", cast_to=http_library().Response, content=body, options=AS_JSON)
                completion = decode_json(await with_timeout(self._server, post), self._server)
            except openai.OpenAIError as exc:
                if length == first and length != (other := _alternative_length(exc, length)):  # once: it may dislike both
                    length = other
                elif request.is_greedy and self._may_be_greedy and _rejects_temperature(exc):
                    self.traits["temperature"] = "its own"
                elif is_rejection(exc) and form != FORMS[-1]:
                    form = FORMS[FORMS.index(form) + 1]
                else:
                    raise translate(exc, self._server, models=await self._suggest_models(exc)) from exc
            else:
                reply = self.parse_reply(completion, request)
                self._learn(request, form, length, reply)
                return reply

    def _learn(self, request: Request, form: str, length: str, reply: Reply) -> None:
        """Record which form of schema and which length parameter this server understands."""
        self.traits["length"] = length
        if request.schema is None or FORMS.index(form) < FORMS.index(self._form):
            return  # nothing to learn, or it was on its way when a simpler form was found to be needed
        if form != self._form:
            self._use_form(form)
        if _has_keys(reply.text, request.schema):
            self._valid_replies += 1
            return
        self._invalid_replies += 1
        if form != FORMS[-1] and not self._valid_replies and self._invalid_replies >= NOT_ENFORCED:
            self._use_form(FORMS[FORMS.index(form) + 1])

    def _use_form(self, form: str) -> None:
        """Ask in this form from now on, and count its replies anew."""
        self.traits["form"] = form
        self._valid_replies = self._invalid_replies = 0

    def _model_list_error(self, why: VipError) -> EngineError:
        return EngineError(f"The list of models at {self._server.address}/models cannot be had: {why} {_name_model_advice()}")

    def _batches(self) -> OpenAIBatches:
        """Return the server's Batch API: the same questions, answered later for less."""
        return OpenAIBatches(self._client, self._server, self.build_body, self.parse_reply)

    def build_body(self, request: Request, form: str | None = None, length: str | None = None) -> dict[str, Any]:
        """Return the body of the request, in the terms that the server is known to understand."""
        form, length = form or self._form, length or self._length
        prompt = request.prompt
        question: dict[str, Any] = {"model": self.model, length: request.max_tokens + self.capabilities.thinking_tokens}
        if request.is_greedy and self._may_be_greedy:
            question["temperature"] = 0
        if request.schema is not None and form == "json_schema":
            name = re.sub(r"\W", "_", request.schema.get("title", "reply"))
            question["response_format"] = {"type": form, "json_schema": {"name": name, "schema": request.schema, "strict": True}}
        elif request.schema is not None:
            prompt += f"\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{json.dumps(request.schema)}"
            if form == "json_object":
                question["response_format"] = {"type": form}
        parts = [{"type": "text", "text": prompt}, *(self._picture_part(picture) for picture in request.pictures)]
        question["messages"] = [{"role": "user", "content": parts if request.pictures else prompt}]
        return question

    def _encode_body(self, request: Request, form: str, length: str) -> bytes:
        """Return the body as it is sent. Pictures are inserted last: nothing has to search 100 kB of base64 for quotes."""
        marks = [replace(picture, data=b"") for picture in request.pictures]
        body = json.dumps(self.build_body(replace(request, pictures=tuple(marks)), form, length)).encode()
        start, *rest = body.rsplit(b";base64,", len(marks)) if marks else [body]
        parts = (b";base64," + base64.b64encode(picture.data) + after for picture, after in zip(request.pictures, rest, strict=True))
        return b"".join([start, *parts])

    def _picture_part(self, picture: Picture) -> dict[str, Any]:
        url = f"data:{picture.media_type};base64,{base64.b64encode(picture.data).decode('ascii')}"
        return {"type": "image_url", "image_url": {"url": url, "detail": self.capabilities.picture_detail}}

    def parse_reply(self, completion: Any, request: Request) -> Reply:
        """Return the answer in a completion.

        Raises:
            BusyError: it is none.
            ReplyError: it cannot be used.
        """
        if not isinstance(completion, dict):
            raise invalid_reply_error(self._server)
        used = _token_usage(completion)
        choice = _first_choice(completion.get("choices"))
        if choice is None:
            raise ReplyError(f"{self.model} at {self._server.address} sent an answer without any text.", kind="empty", **used)
        message, reason = choice.get("message"), choice.get("finish_reason")
        message = message if isinstance(message, dict) else {}
        if refusal := message.get("refusal"):
            said = self._server.redact(str(refusal))
            raise ReplyError(f'{self.model} refused to answer: "{said}"', kind="refusal", **used)
        if reason == "length":
            raise cut_off_error(None, self._server, **used)
        if reason == "content_filter":
            raise filtered_error(None, self._server, **used)
        content = message.get("content")
        text = _THINKING.sub("", content).strip() if isinstance(content, str) else ""
        if not text:
            raise ReplyError(f"{self.model} at {self._server.address} sent an empty answer.", kind="empty", **used)
        if len(text) > LONGEST_ANSWER:
            raise ReplyError(f"{self.model} at {self._server.address} sent an answer of {len(text):,} letters.", kind="too_long", **used)
        text = _extract_json(text) if request.schema is not None else text
        return Reply(self._remove_secrets(text), model=self._answering_model(completion), limits=self._limits, **used)

    def _remove_secrets(self, text: str) -> str:
        """Return the printable text without the key: cleaned first, since invisible marks and escapes of JSON may part its letters."""
        return self._server.remove_secrets(clean_answer(text))

    def _answering_model(self, completion: dict[str, Any]) -> str:
        """Return the name of the model that answered, as the server gives it."""
        named = completion.get("model")
        name = self._server.remove_secrets(one_line(named)) if isinstance(named, str) and len(named) <= LONGEST_NAME else ""
        return name or self.model

    async def _suggest_models(self, exc: openai.OpenAIError) -> list[str]:
        """Return the models of the server if `exc` may mean that one is missing; none where it does not say."""
        if not isinstance(exc, openai.NotFoundError):
            return []
        try:
            return await self._list_models(self._client)
        except (openai.OpenAIError, VipError):
            return []

    async def _list_models(self, client: openai.AsyncOpenAI) -> list[str]:
        limit_s = self._listing.timeout_s
        listed = client.with_options(timeout=limit_s).get("/models", cast_to=http_library().Response)
        return _model_ids(decode_json(await with_timeout(self._server, listed, limit_s), self._server))

    @property
    def _listing(self) -> ServerIdentity:
        """The server with the time that it has to list its models."""
        return replace(self._server, timeout_s=min(self._server.timeout_s, CONNECT_TIMEOUT_S))

    async def _list_models_once(self) -> list[str]:
        async with self._new_client() as client:
            return await self._list_models(client)

    def _first_model(self) -> str:
        try:
            with ThreadPoolExecutor(1) as pool:  # a loop may run in this thread, as in a notebook
                models = pool.submit(asyncio.run, self._list_models_once()).result()
        except (openai.NotFoundError, ReplyError) as exc:
            scrub(exc, self._server)
            raise EngineError(f"{self._server.address} does not list its models. {_name_model_advice()}") from exc
        except (openai.APIConnectionError, openai.AuthenticationError) as exc:  # no question would fare better
            found = translate(exc, self._listing)
            raise found if isinstance(found, EngineError) else self._model_list_error(found) from exc
        except openai.OpenAIError as exc:
            raise self._model_list_error(translate(exc, self._server)) from exc
        except BusyError as exc:
            raise self._model_list_error(exc) from exc
        if not models:
            raise EngineError(f"{self._server.address} lists no model. {_name_model_advice()}")
        if self._server.holds_secret(models[0]):
            raise EngineError(f"{self._server.address} lists a key or a password as its first model. {_name_model_advice()}")
        return models[0]


def _name_model_advice() -> str:
    return f"Name one with {option('engine', 'openai:MODEL')}, and check the address: it usually ends in /v1."


def _alternative_length(exc: openai.OpenAIError, length: str) -> str:
    """Return the other name for the bound of the answer, where the server rejects this one by its name."""
    other = LENGTHS[1 - LENGTHS.index(length)]
    about = getattr(exc, "param", None) == length or f"'{length}'" in str(exc)
    return other if is_rejection(exc) and about else length


def _rejects_temperature(exc: openai.OpenAIError) -> bool:
    """Return whether the server refuses to be told a temperature, as for models that reason."""
    return is_rejection(exc) and (getattr(exc, "param", None) == "temperature" or "temperature" in str(exc))


def _has_keys(text: str, schema: dict[str, Any]) -> bool:
    try:
        answer = parse_json(text)
    except ValueError:
        return False
    return isinstance(answer, dict) and set(schema.get("required", ())) <= set(answer)


def _first_choice(choices: object) -> dict[str, Any] | None:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _token_usage(completion: dict[str, Any]) -> dict[str, int | None]:
    """Return the tokens that the server counted, where it did."""
    usage = completion.get("usage")
    counted = [usage.get(name) if isinstance(usage, dict) else None for name in ("prompt_tokens", "completion_tokens")]
    return {"tokens_in": token_count(counted[0]), "tokens_out": token_count(counted[1])}


def _model_ids(page: object) -> list[str]:
    """Return the names of the models on a page; none if the server sent something else, on which `models.list()` would fail."""
    entries = page.get("data") if isinstance(page, dict) else []
    names = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [name for name in names if isinstance(name, str) and len(name) <= LONGEST_NAME and name.isprintable()]


def _extract_json(text: str) -> str:
    """Return the JSON object in a text that may wrap it in a code fence or in words; the text itself where there is none."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text
