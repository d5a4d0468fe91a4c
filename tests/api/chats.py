"""How chat requests are answered: as told, in order or by chance, and what came of it is counted.

In: options and the bodies of requests, from HTTP or from the rows of a batch. Out: answers, and `Stats`.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.api.answers import Question, completion, question_of
from tests.api.wire import Answer, Call, failure, noise

KEPT = 200  # requests whose pictures are kept: a run of thousands would fill the memory
USABLE = frozenset({"ok", "late", "fenced", "thinking", "no_schema", "no_format", "max_tokens_unknown", "its_own_temperature"})
BEHAVIOURS = USABLE | {
    *("at_most", "busy", "content_filter", "drop", "empty", "filtered_picture", "half_json", "half_reply", "length", "no_choices"),
    *("nonsense", "nonsense_stream", "not_enforced", "outside_schema", "page", "quota", "refusal", "reset", "wrong_schema"),
}
UNKNOWN_PARAMETER = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."


@dataclass(slots=True)
class Options:
    """How the server behaves; `tests.api_server.ApiServer` says what each means."""

    behaviours: list[str] = field(default_factory=list)
    models: Sequence[str] | str | None = ("tiny-vlm", "big-vlm")
    mix: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    delay_s: float = 0.0
    late_s: float = 5.0
    at_most: int | None = None
    retry_after: float | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    key: str | None = None
    usage: Sequence[int] | None = (11, 7)
    marks: bool = False
    says: Sequence[Sequence[str]] = ()
    file_bytes: int = 200 * 2**20
    batch_rows: int = 50_000
    batch_s: float = 0.05
    batch_queue: int | None = None
    batch_expires_after: int | None = None
    batch_fails: bool = False
    asks: bool = False
    """The process that started the server is asked how to behave."""

    def __post_init__(self) -> None:
        self.behaviours = list(self.behaviours) or ["ok"]
        pages = [self.models] if isinstance(self.models, str) else []
        for name in (*self.behaviours, *self.mix, *pages):
            if name not in BEHAVIOURS and not name.isdigit():
                raise ValueError(f'There is no behaviour "{name}". There is: an HTTP status, {", ".join(sorted(BEHAVIOURS))}.')


@dataclass(frozen=True)
class Stats:
    """What was asked and what came of it. A question is one content; asked again, it is the same question."""

    chats: int
    """Chat requests over HTTP."""
    rows: int
    """Chat requests that came as rows of batches."""
    peak: int
    """Most chats that were being answered at once."""
    connections: int
    behaviours: dict[str, int]
    statuses: dict[str, int]
    """Of chats over HTTP; `none` where no answer, or only a part of it, could be sent."""
    questions: int
    most_asked: int
    """How often the question came that came most often."""
    answered: int
    """Questions that got a whole answer of HTTP 200, which costs; by HTTP or in a batch."""
    most_answered: int
    """How many of those the question got that got most: 1 means that nothing was paid twice."""
    usable: int
    """Questions that got such an answer that can be used."""
    most_usable: int


@dataclass(slots=True)
class Chats:
    options: Options
    kept: list[dict[str, Any]] = field(default_factory=list)
    """Every request, in order; from the 201st on without pictures."""
    chats: int = 0
    rows: int = 0
    connections: int = 0
    in_flight: int = 0
    peak: int = 0
    behaviours: Counter[str] = field(default_factory=Counter)
    statuses: Counter[str] = field(default_factory=Counter)
    asked: Counter[str] = field(default_factory=Counter)
    answered: Counter[str] = field(default_factory=Counter)
    usable: Counter[str] = field(default_factory=Counter)

    def keep(self, call: Call, body: Mapping[str, Any], short: Mapping[str, Any], behaviour: str) -> dict[str, Any]:
        seen = dict(body if len(self.kept) < KEPT else short)
        self.kept.append({"path": call.path, "headers": call.headers, "body": seen, "behaviour": behaviour})
        return self.kept[-1]

    def next_behaviour(self, question: Question) -> str:
        """The next in order; where the last repeats, a share of the questions gets one of the mix.

        By the content of the question and how often it came: the order of arrival, which is chance, changes nothing.
        """
        self.asked[question.digest] += 1
        order = self.options.behaviours
        if len(order) > 1:
            return order.pop(0)
        text = f"{self.options.seed} {question.digest} {self.asked[question.digest]}"
        chance = int(hashlib.sha256(text.encode()).hexdigest()[:12], 16) / 16**12
        for name, share in self.options.mix.items():
            if chance < share:
                return name
            chance -= share
        return order[0]

    def count(self, question: Question, behaviour: str, status: int | None) -> None:
        """Note what became of a request; `status` is None where no whole answer left."""
        self.behaviours[behaviour] += 1
        if status == 200:
            self.answered[question.digest] += 1
            self.usable[question.digest] += behaviour in USABLE

    def stats(self) -> dict[str, Any]:
        usable = +self.usable
        return {
            **{name: getattr(self, name) for name in ("chats", "rows", "peak", "connections")},
            **{"behaviours": dict(self.behaviours), "statuses": dict(self.statuses)},
            **{"questions": len(self.asked), "most_asked": max(self.asked.values(), default=0)},
            **{"answered": len(self.answered), "most_answered": max(self.answered.values(), default=0)},
            **{"usable": len(usable), "most_usable": max(usable.values(), default=0)},
        }

    def answer(self, behaviour: str, question: Question, call: Call) -> Answer:
        """The answer to a chat request."""
        body, said = question.short, call.headers.get("authorization", "no key")
        if bad := misbehaved(behaviour, f"You sent {said} to {call.path}.", self.options):
            return bad
        if behaviour == "filtered_picture":
            return failure(400, "The picture was filtered.", code="content_filter")
        if (behaviour == "no_schema" and question.form == "json_schema") or (behaviour == "no_format" and question.form):
            return failure(400, f"This server does not know the response_format {question.form}.")
        if behaviour == "max_tokens_unknown" and "max_tokens" in body:
            return failure(400, UNKNOWN_PARAMETER, code="unsupported_parameter", param="max_tokens", kind="invalid_request_error")
        if behaviour == "its_own_temperature" and "temperature" in body:
            text = "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) value is supported."
            return failure(400, text, code="unsupported_value", param="temperature", kind="invalid_request_error")
        answer = Answer.of(completion(behaviour, question, marks=self.options.marks, says=self.options.says, usage=self.options.usage))
        answer.manner = "short" if behaviour == "reset" else "whole"
        return answer


def misbehaved(behaviour: str, message: str, options: Options) -> Answer | None:
    """The answer of a server that misbehaves on any page; None where the behaviour is none of these."""
    if behaviour.isdigit():
        return patient(failure(int(behaviour), message), options)
    if behaviour == "busy":
        busy = failure(503, "The server is overloaded.", kind="server_error")
        busy.headers = {"Retry-After": f"{options.retry_after or 1:g}"}
        return busy
    if behaviour == "at_most":
        return patient(failure(429, "Too many requests at once.", code="rate_limit_exceeded", kind="requests"), options)
    if behaviour == "quota":
        return failure(429, "You exceeded your current quota.", code="insufficient_quota")
    pages = {
        "drop": Answer(manner="none"),
        "half_json": Answer(200, b'{"id": "chatcmpl-1", "choices": [{"mess'),
        "page": Answer(200, b"<html>It works!</html>", "text/html"),
    }
    if behaviour.startswith("nonsense"):
        return noise(options.seed, "text/event-stream" if behaviour == "nonsense_stream" else "application/json")
    return pages.get(behaviour)


def patient(answer: Answer, options: Options) -> Answer:
    """The answer, with how long to wait where the options say it."""
    if answer.status in {429, 503} and options.retry_after is not None:
        answer.headers = {"Retry-After": f"{options.retry_after:g}"}
    return answer


def read_question(body: Any) -> Question | Answer:
    """The question in the body of a chat request; what is wrong with it where there is none."""
    try:
        return question_of(body)
    except (KeyError, TypeError, ValueError, AttributeError) as exc:
        return failure(400, f"This is no chat request ({type(exc).__name__}: {exc}).", kind="invalid_request_error")
