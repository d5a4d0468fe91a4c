"""A real HTTP server on localhost that speaks the OpenAI chat completions, and can be told to misbehave.

    with ApiServer("refusal") as server:
        OpenAIEngine("tiny-vlm", base_url=server.base_url)

Each request takes the next of the given behaviours; the last one repeats. `server.requests` is what was asked.
"""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread
from typing import Any, ClassVar, Self

CAPTION = "A made-up caption from the test server."
FAMOUS = {"focus": "a test", "action": "not determined", "mood": "calm", "objects": ["a box"], "setting": "a room"}


@dataclass(frozen=True)
class Asked:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def text(self) -> str:
        content = self.body["messages"][0]["content"]
        return content if isinstance(content, str) else next(part["text"] for part in content if part["type"] == "text")


class ApiServer:
    """Behaviours: `ok`, an HTTP status (`401`, `404`, `429`, `500`, …), `quota`, `filtered_picture`, `drop`, `half_json`,
    `page`, `no_choices`, `empty`, `length`, `content_filter`, `refusal`, `wrong_schema`, `half_reply`, `fenced`, `thinking`,
    `no_schema` (rejects json_schema), `no_format` (rejects every response_format).
    """

    def __init__(self, *behaviours: str, models: tuple[str, ...] | str | None = ("tiny-vlm", "big-vlm")) -> None:
        """`models`: what /v1/models lists; a behaviour instead of a tuple makes that page misbehave."""
        self.behaviours = list(behaviours) or ["ok"]
        self.models = models
        self.requests: list[Asked] = []
        self.lock = Lock()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"api": self}))
        self.http.daemon_threads = True
        self.base_url = f"http://127.0.0.1:{self.http.server_port}/v1"

    def __enter__(self) -> Self:
        self.thread = Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()

    @property
    def chats(self) -> list[Asked]:
        return [asked for asked in self.requests if asked.path.endswith("/chat/completions")]

    def next_behaviour(self, asked: Asked) -> str:
        with self.lock:
            self.requests.append(asked)
            if not asked.path.endswith("/chat/completions"):
                return self.models if isinstance(self.models, str) else "ok"
            return self.behaviours.pop(0) if len(self.behaviours) > 1 else self.behaviours[0]


class _Handler(BaseHTTPRequestHandler):
    api: ClassVar[ApiServer]

    def do_GET(self) -> None:
        self.serve({})

    def do_POST(self) -> None:
        self.serve(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

    def serve(self, body: dict[str, Any]) -> None:
        asked = Asked(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
        behaviour = self.api.next_behaviour(asked)
        form = body.get("response_format", {}).get("type")
        if behaviour == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        elif behaviour == "half_json":
            self.answer(200, b'{"id": "chatcmpl-1", "choices": [{"mess')
        elif behaviour == "page":
            self.answer(200, b"<html>It works!</html>", "text/html")
        elif behaviour.isdigit():
            self.fail(int(behaviour), f"You sent {asked.headers.get('authorization', 'no key')} to {self.path}.")
        elif behaviour == "quota":
            self.fail(429, "You exceeded your current quota.", code="insufficient_quota")
        elif behaviour == "filtered_picture":
            self.fail(400, "The picture was filtered.", code="content_filter")
        elif (behaviour == "no_schema" and form == "json_schema") or (behaviour == "no_format" and form):
            self.fail(400, f"This server does not know the response_format {form}.")
        elif self.path.endswith("/models") and isinstance(self.api.models, tuple):
            page = {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "me"} for name in self.api.models]}
            self.answer(200, json.dumps(page).encode())
        else:
            self.answer(200, json.dumps(_completion(behaviour, asked)).encode())

    def fail(self, status: int, message: str, code: str | None = None) -> None:
        self.answer(status, json.dumps({"error": {"message": message, "type": "test", "param": None, "code": code}}).encode())

    def answer(self, status: int, data: bytes, kind: str = "application/json") -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after-ms", "1")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def _completion(behaviour: str, asked: Asked) -> dict[str, Any]:
    wants_json = "response_format" in asked.body or "JSON object" in asked.text
    text = json.dumps(FAMOUS) if wants_json else CAPTION
    texts = {
        "wrong_schema": '{"focus": 3}',
        "half_reply": text[: len(text) // 2],
        "fenced": f"Here it is:\n\n```json\n{text}\n```" if wants_json else text,
        "thinking": f"<think>\nLet me see {{…}}\n</think>\n\n{text}",
        "empty": "",
    }
    reasons = {"length": "length", "content_filter": "content_filter"}
    message = {"role": "assistant", "content": texts.get(behaviour, text), "refusal": None}
    if behaviour == "refusal":
        message |= {"content": None, "refusal": "I cannot help with that."}
    choice = {"index": 0, "message": message, "finish_reason": reasons.get(behaviour, "stop"), "logprobs": None}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": f"{asked.body['model']}-0001",
        "choices": [] if behaviour == "no_choices" else [choice],
        "usage": {"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18},
    }
