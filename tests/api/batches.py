"""Batches as OpenAI's API reference describes them; the rows are answered as chats are.

In: calls to /v1/batches. Out: their answers; the batches go on by themselves.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from tests.api.chats import Chats, read_question
from tests.api.files import Files, bad
from tests.api.wire import Answer, Call, error_of, failure

WINDOW_S = 24 * 3600
ENDED = frozenset({"failed", "completed", "expired", "cancelled"})
MOST_ERRORS = 50
QUEUE_FULL = (
    "Enqueued token limit reached for {model} in organization org-test. Limit: {limit} enqueued tokens."
    " Please try again once some in_progress batches have been completed."
)


@dataclass(slots=True)
class Outcome:
    """The rows of a batch that is being worked on, as lines of its two files."""

    output: list[bytes] = field(default_factory=list)
    errors: list[bytes] = field(default_factory=list)
    usage: list[int] = field(default_factory=lambda: [0, 0])


class Batches:
    def __init__(self, files: Files, chats: Chats) -> None:
        self.files, self.chats = files, chats
        self.batches: dict[str, dict[str, Any]] = {}
        self.tasks: set[asyncio.Task[None]] = set()
        self.numbers = itertools.count(1)

    def answer(self, call: Call, body: dict[str, Any]) -> Answer | None:
        """The answer to a call below /batches; None for any other."""
        match [part for part in call.path.split("/") if part][1:], call.method:
            case ["batches"], "POST":
                return self._create(body)
            case ["batches"], "GET":
                return self._list(call.query)
            case ["batches", name], "GET":
                return Answer.of(self.batches[name]) if name in self.batches else _no_batch(name)
            case ["batches", name, "cancel"], "POST":
                return self._cancel(name)
        return None

    # ------------------------------------------------------------ batches

    def _create(self, body: dict[str, Any]) -> Answer:
        for name in ("input_file_id", "endpoint", "completion_window"):
            if not isinstance(body.get(name), str):
                return bad(f"Missing required parameter: '{name}'.", code="missing_required_parameter", param=name)
        if body["completion_window"] != "24h":
            return bad("Invalid value: completion_window must be '24h'.", code="invalid_value", param="completion_window")
        if body["endpoint"] != "/v1/chat/completions":
            return bad(f"Invalid value: '{body['endpoint']}'.", code="invalid_value", param="endpoint")
        metadata = body.get("metadata")
        if metadata and (len(metadata) > 16 or any(len(key) > 64 or len(value) > 512 for key, value in metadata.items())):
            return bad("Invalid 'metadata'.", param="metadata")
        key, now = f"batch_{next(self.numbers):06d}", int(time.time())
        moments = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
        self.batches[key] = {
            **{"id": key, "object": "batch", "endpoint": body["endpoint"], "model": None, "errors": None},
            **{"input_file_id": body["input_file_id"], "completion_window": "24h", "status": "validating"},
            **{"output_file_id": None, "error_file_id": None, "created_at": now, "expires_at": now + WINDOW_S},
            **{f"{moment}_at": None for moment in moments},
            **{"request_counts": {"total": 0, "completed": 0, "failed": 0}, "metadata": metadata, "usage": None},
        }
        task = asyncio.create_task(self._work(self.batches[key]))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return Answer.of(self.batches[key])

    def _list(self, query: dict[str, str]) -> Answer:
        limit = int(query.get("limit", 20))
        if not 1 <= limit <= 100:
            return bad("Invalid 'limit': it is between 1 and 100.", param="limit")
        newest = list(reversed(self.batches))
        start = newest.index(query["after"]) + 1 if query.get("after") in self.batches else 0
        page = [self.batches[key] for key in newest[start : start + limit]]
        ends = {"first_id": page[0]["id"], "last_id": page[-1]["id"]} if page else {"first_id": None, "last_id": None}
        return Answer.of({"object": "list", "data": page, **ends, "has_more": start + limit < len(newest)})

    def _cancel(self, name: str) -> Answer:
        batch = self.batches.get(name)
        if batch is None:
            return _no_batch(name)
        if batch["status"] in ENDED:
            return failure(409, f"Cannot cancel a batch with status '{batch['status']}'.", kind="invalid_request_error")
        _now(batch, "cancelling")
        return Answer.of(batch)

    # ------------------------------------------------------------ the way of a batch

    async def _work(self, batch: dict[str, Any]) -> None:
        pause = self.chats.options.batch_s / 3
        await asyncio.sleep(pause)
        errors = self._wrong(batch)
        if errors:
            batch["errors"] = {"object": "list", "data": errors[:MOST_ERRORS]}
            _now(batch, "failed")
            return
        if batch["status"] == "validating":
            _now(batch, "in_progress")
        await asyncio.sleep(pause)
        outcome, end = Outcome(), "completed"
        async for number, row in self._rows(batch):
            if batch["status"] == "cancelling" or number == self.chats.options.batch_expires_after:
                end = "cancelled" if batch["status"] == "cancelling" else "expired"
            if end == "completed":
                self._answer_row(row, outcome)
            else:
                outcome.errors.append(_line(row, None, {"code": f"batch_{end}", "message": _UNDONE[end]}))
            counts = {"completed": len(outcome.output), "failed": len(outcome.errors)}
            batch["request_counts"] = {**batch["request_counts"], **counts}
        if batch["status"] != "cancelling":
            _now(batch, "finalizing")
        await asyncio.sleep(pause)
        self._finish(batch, outcome)
        _now(batch, end)

    async def _rows(self, batch: dict[str, Any]) -> AsyncIterator[tuple[int, dict[str, Any]]]:
        with self.files.stored[batch["input_file_id"]].path.open("rb") as file:
            for number, line in enumerate(file):
                yield number, json.loads(line)
                await asyncio.sleep(0)

    def _answer_row(self, row: dict[str, Any], outcome: Outcome) -> None:
        question = read_question(row["body"])
        if isinstance(question, Answer):
            status, body = question.status, json.loads(question.body)
        else:
            self.chats.rows += 1
            behaviour = self.chats.next_behaviour(question)
            answer = self.chats.answer(behaviour, question, Call("POST", row["url"], {}, {}))
            whole = answer.manner == "whole" and behaviour not in {"half_json", "page"}
            status = answer.status if whole else 500
            body = json.loads(answer.body) if whole else error_of("The server had an error while processing your request.")
            self.chats.count(question, behaviour, status)
        response = {"status_code": status, "request_id": f"req_{next(self.numbers):06d}", "body": body}
        (outcome.output if status == 200 else outcome.errors).append(_line(row, response, None))
        if status == 200 and "usage" in body:
            outcome.usage[0] += body["usage"]["prompt_tokens"]
            outcome.usage[1] += body["usage"]["completion_tokens"]

    def _finish(self, batch: dict[str, Any], outcome: Outcome) -> None:
        """Write the two files, in an order of their own: the reference promises none."""
        for name, lines in (("output", outcome.output), ("error", outcome.errors)):
            if lines:
                random.Random(self.chats.options.seed).shuffle(lines)
                stored = self.files.store(f"{batch['id']}_{name}.jsonl", b"".join(lines), "batch_output")
                batch[f"{name}_file_id"] = stored.record["id"]
        tokens_in, tokens_out = outcome.usage
        details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
        batch["usage"] = {"input_tokens": tokens_in, "output_tokens": tokens_out, "total_tokens": tokens_in + tokens_out, **details}

    def _wrong(self, batch: dict[str, Any]) -> list[dict[str, Any]]:
        """What is wrong with the input of a batch; fills in its model and its number of rows."""
        options = self.chats.options
        if batch["input_file_id"] not in self.files.stored:
            return [_error("invalid_input_file", f"The input file '{batch['input_file_id']}' was not found.", param="input_file_id")]
        if options.batch_fails:
            return [_error("internal_error", "The batch could not be processed.")]
        errors: list[dict[str, Any]] = []
        seen: set[str] = set()
        models: set[str] = set()
        rows = 0
        with self.files.stored[batch["input_file_id"]].path.open("rb") as file:
            for rows, line in enumerate(file, 1):
                if found := _wrong_row(line, batch["endpoint"], seen, models):
                    errors.append({**found, "line": rows})
        batch["request_counts"]["total"] = rows
        batch["model"] = min(models, default=None)
        if not rows:
            return [_error("empty_file", "The input file is empty. Please ensure that the batch contains at least one request.")]
        if rows > options.batch_rows:
            return [_error("too_many_tasks", f"The batch contains too many requests. The maximum is {options.batch_rows}.")]
        running = [one["request_counts"]["total"] for one in self.batches.values() if one["status"] in {"in_progress", "finalizing"}]
        if options.batch_queue is not None and sum(running) + rows > options.batch_queue:
            limit = (
                f"Enqueued token limit reached for {batch['model']} in organization org-test. Limit: {options.batch_queue} enqueued tokens."
            )
            return [_error("token_limit_exceeded", f"{limit} Please try again once some in_progress batches have been completed.")]
        return errors


_UNDONE = {
    "expired": "This request could not be executed before the completion window expired.",
    "cancelled": "This request could not be executed before the batch was cancelled.",
}


def _wrong_row(line: bytes, endpoint: str, seen: set[str], models: set[str]) -> dict[str, Any] | None:
    try:
        row = json.loads(line)
        name, method, url, model = row["custom_id"], row["method"], row["url"], row["body"]["model"]
    except ValueError:
        return _error("invalid_json_line", "This line is not parseable as valid JSON.")
    except (KeyError, TypeError) as exc:
        return _error("missing_required_parameter", f"Missing required parameter: {exc}.", param=str(exc).strip("'"))
    seen_before, first = name in seen, min(models, default=model)
    seen.add(name)
    models.add(first)
    if seen_before:
        message = "The custom_id for this request is a duplicate of another request. The custom_id parameter must be unique."
        return _error("duplicate_custom_id", f"{message} ({name})", param="custom_id")
    if method != "POST":
        return _error("invalid_method", f"Invalid method '{method}'. Only POST is supported.", param="method")
    if url != endpoint:
        return _error("mismatched_url", f"The URL '{url}' does not match the batch endpoint '{endpoint}'.", param="url")
    if model != first:
        return _error("mismatched_model", f"The provided model '{model}' does not match the model '{first}' of the batch.", param="model")
    return None


def _error(code: str, message: str, *, param: str | None = None) -> dict[str, Any]:
    return {"code": code, "message": message, "param": param, "line": None}


def _line(row: dict[str, Any], response: dict[str, Any] | None, error: dict[str, Any] | None) -> bytes:
    name = row["custom_id"]
    return json.dumps({"id": f"batch_req_{name}", "custom_id": name, "response": response, "error": error}).encode() + b"\n"


def _now(batch: dict[str, Any], status: str) -> None:
    batch["status"] = status
    batch[f"{status}_at"] = int(time.time())


def _no_batch(name: str) -> Answer:
    return failure(404, f"No batch found with id '{name}'.", kind="invalid_request_error")
