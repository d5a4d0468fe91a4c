"""The engine `fake`: made-up answers for tests of vip and of programs that use it. Deterministic, offline, describes nothing.

`fake` answers; `fake:refuse` refuses every request (ReplyError), `fake:badjson` answers a schema with half a JSON object,
`fake:auth` cannot be asked at all (EngineError). Its output says that it is made up.
"""

from __future__ import annotations

import json
from typing import Any

from vip.errors import BackendError, EngineError, ReplyError, did_you_mean
from vip.protocols import EngineCapabilities, Reply, Request
from vip.wording import option

FAILURES = ("refuse", "badjson", "auth")
PLAIN = {"boolean": False, "integer": 0, "number": 0}  # made-up values that claim nothing


class FakeEngine:
    """An engine that answers the same to everything, and keeps the requests."""

    capabilities = EngineCapabilities(caches=False)

    def __init__(self, detail: str | None, **settings: object) -> None:
        if detail is not None and detail not in FAILURES:
            raise BackendError(f'The engine "fake" cannot fail by "{detail}".{did_you_mean(detail, FAILURES)}')
        self.name = f"fake:{detail}" if detail else "fake"
        self.detail = detail
        self.requests: list[Request] = []
        self.closed = False

    async def generate(self, request: Request) -> Reply:
        """Return a made-up caption, or made-up FAMOuS as JSON where a schema is asked for."""
        self.requests.append(request)
        if self.detail == "auth":
            raise EngineError(f"The fake engine does not accept its key. Use {option('engine', 'fake')} to make it answer.")
        if self.detail == "refuse":
            raise ReplyError(f"The fake engine refused to answer. Use {option('engine', 'fake')} to make it answer.", kind="refusal")
        text = f"Made up by the fake engine for {'a picture' if request.pictures else 'a text'}."
        if request.schema is not None:
            text = json.dumps({key: _fake_value(kind, text) for key, kind in request.schema.get("properties", {}).items()})
        if self.detail == "badjson" and request.schema is not None:
            text = text[: len(text) // 2]
        return Reply(text, model="fake", tokens_in=len(request.prompt.split()), tokens_out=len(text.split()))

    async def close(self) -> None:
        self.closed = True


def _fake_value(kind: dict[str, Any], text: str) -> Any:
    """Return a value that fits a schema; a list of objects has as many as it must have."""
    if kind.get("type") == "object":
        return {key: _fake_value(inner, text) for key, inner in kind.get("properties", {}).items()}
    if kind.get("enum"):
        return kind["enum"][-1]
    if kind.get("type") in PLAIN:
        return PLAIN[kind["type"]]
    if kind.get("type") != "array":
        return text
    items, least = kind.get("items", {}), kind.get("minItems", 0)
    if items.get("type") == "string" and not least:
        return ["made up"]
    return [_fake_value(items, text) for _ in range(least)]
