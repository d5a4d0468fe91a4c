"""The Batch API of OpenAI and of servers that speak it: many questions in one file, answered within a day for half the price.

In: requests as rows of a file, later the id of a job. Out: the state of the job, and its answers as the engine would have
given them. A job carries a tag, so that one whose id was never noted is found again.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Literal, TypeVar, cast

import openai
from openai.types import Batch, FileObject

from vip.errors import BusyError, EngineError, ReplyError, VipError
from vip.models.openai_errors import Server, broken_json, not_a_reply, scrub, translated
from vip.protocols import BatchState, Reply, Request
from vip.wording import option

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
TAG = "vip"  # the name of the tag in the job's metadata
OLDEST_S = 30 * 24 * 3600  # jobs that are older are not looked through for a tag
PAGE = 100  # jobs listed at once: the most that the server allows
QUEUE_FULL = "token_limit_exceeded"
JSON, TEXT = "j", "t"  # first letter of a row's name: which kind of answer was asked for, when the request is long forgotten

MadeT = TypeVar("MadeT", Batch, FileObject)

_ERRORS: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}


class OpenAIBatches:
    """The jobs of one model of one server."""

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        server: Server,
        question: Callable[[Request], dict[str, Any]],
        reply: Callable[[Any, Request], Reply],
    ) -> None:
        """`question` makes the body of a request, `reply` the answer of a completion, or raises a ReplyError."""
        self._client, self._server, self._question, self._reply = client, server, question, reply

    def __repr__(self) -> str:
        return f"OpenAIBatches({self._server!r})"

    def row(self, key: str, request: Request) -> bytes:
        name = (TEXT if request.schema is None else JSON) + key
        row = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": self._question(request)}
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"

    async def submit(self, path: Path, tag: str) -> str:
        """Upload the file and start the job; its id.

        Raises:
            BusyError: not this time; the job may have been started all the same, see `find`.
            EngineError: the server does not take it.
        """
        with self._translating():
            try:
                with path.open("rb") as rows:  # as a file, which the library sends in pieces and does not read whole
                    file = await self._client.files.create(file=(f"vip-{tag}.jsonl", rows), purpose="batch")
            except openai.NotFoundError as exc:
                raise EngineError(f"{self._server.address} takes no batches. Ask without {option('batch')}.") from exc
            name = self._made(file, FileObject).id
            batch = await self._client.batches.create(input_file_id=name, endpoint=ENDPOINT, completion_window="24h", metadata={TAG: tag})
            return self._made(batch, Batch).id

    async def find(self, tag: str) -> str | None:
        """The job that was started with this tag, perhaps by a process that did not live to note it."""
        with self._translating():
            async for batch in self._client.batches.list(limit=PAGE):  # the newest first
                if (batch.metadata or {}).get(TAG) == tag:
                    return batch.id
                if batch.created_at < time.time() - OLDEST_S:
                    break
        return None

    async def state(self, job: str) -> BatchState:
        with self._translating():
            batch = await self._retrieved(job)
        counts = batch.request_counts
        errors = (batch.errors.data if batch.errors else None) or []
        said = "; ".join(f"line {one.line}: {one.message}" if one.line else str(one.message) for one in errors[:3])
        return BatchState(
            batch.status,
            counts.total if counts else 0,
            counts.completed if counts else 0,
            counts.failed if counts else 0,
            error=self._server.redacted(said) if said else None,
            full=any(one.code == QUEUE_FULL for one in errors),
        )

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
        """The rows of a job that has ended: an answer, or a ReplyError or BusyError that costs this row, or an EngineError.

        Both files are whole on the disk before the first row is given; memory does not grow with them.
        """
        with tempfile.TemporaryFile() as rows:
            with self._translating():
                batch = await self._retrieved(job)
                for name in (batch.output_file_id, batch.error_file_id):
                    if name:
                        await self._download(name, rows)
            rows.seek(0)
            for line in rows:
                if (found := self._result(line)) is not None:
                    yield found

    async def discard(self, job: str) -> None:
        """Delete the files of a job at the server; those that are gone already are no matter."""
        with self._translating():
            batch = await self._retrieved(job)
            for name in _files_of(batch):
                try:
                    await self._client.files.delete(name)
                except openai.NotFoundError:
                    continue

    async def _download(self, name: str, into: IO[bytes]) -> None:
        async with self._client.files.with_streaming_response.content(name) as answer:
            last = b"\n"
            async for piece in answer.iter_bytes():
                into.write(piece)
                last = piece[-1:] or last
        if last != b"\n":
            into.write(b"\n")

    def _result(self, line: bytes) -> tuple[str, Reply | VipError] | None:
        """Key and answer of one row; None for what is no row, whose key then is missing."""
        try:
            row = json.loads(line)
            name, response, error = row["custom_id"], row.get("response"), row.get("error")
            kind, key = name[:1], name[1:]
        except (ValueError, KeyError, TypeError):
            return None
        try:
            return key, self._answer(kind, response, error)
        except VipError as exc:
            return key, exc

    def _answer(self, kind: str, response: Any, error: Any) -> Reply | VipError:
        if not isinstance(response, dict):
            said = error.get("message") if isinstance(error, dict) else None
            why = f' ("{self._server.redacted(str(said)).rstrip(".")}")' if said else ""
            return BusyError(f"{self._server.address} did not come to this request of a batch{why}.", kind="timeout")
        status, body = response.get("status_code"), response.get("body")
        if status == 200:
            asked = Request("describe", "", schema={} if kind == JSON else None)
            return self._reply(body, asked) if isinstance(body, dict) else broken_json(self._server)
        return self._failed(status if isinstance(status, int) else 500, body)

    def _failed(self, status: int, body: Any) -> EngineError | ReplyError:
        """The error of a row in the same words as if it had been asked by itself."""
        error = body.get("error", body) if isinstance(body, dict) else body
        kind = _ERRORS.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
        message = str(error.get("message", "")) if isinstance(error, dict) else ""
        return translated(kind(message, response=cast(Any, _Response(status)), body=error), self._server)

    async def _retrieved(self, job: str) -> Batch:
        try:
            return self._made(await self._client.batches.retrieve(job), Batch)
        except openai.NotFoundError as exc:
            advice = "Use the key and the address it was handed in with, or delete the folder batches/ of the run to ask anew."
            raise EngineError(f"{self._server.address} does not know the batch {job}. {advice}") from exc

    def _made(self, value: object, kind: type[MadeT]) -> MadeT:
        """The library gives a text where the server sent a web page."""
        if not isinstance(value, kind):
            raise not_a_reply(self._server)
        return value

    @contextmanager
    def _translating(self) -> Iterator[None]:
        """Errors of calls about a whole job: none of them costs one row alone."""
        try:
            yield
        except openai.OpenAIError as exc:
            error = translated(exc, self._server)
            raise (EngineError(str(error)) if isinstance(error, ReplyError) else error) from exc
        except (json.JSONDecodeError, UnicodeDecodeError) as exc:
            scrub(exc, self._server)
            raise not_a_reply(self._server) from exc


@dataclass(frozen=True, slots=True)
class _Response:
    """As much of an HTTP response as the library's errors look at: rows of a batch have a status and nothing else."""

    status_code: int
    headers: dict[str, str] = field(default_factory=dict)
    request: None = None


def _files_of(batch: Batch) -> list[str]:
    return [name for name in (batch.input_file_id, batch.output_file_id, batch.error_file_id) if name]
