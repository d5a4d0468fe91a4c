"""The Batch API of OpenAI and of servers that speak it: many questions in one file, answered within a day for half the price.

In: requests as rows of a file, later the id of a job. Out: the state of the job, and its answers as the engine would have
given them. A job carries a tag, so that one whose id was never noted is found again. What the server says is read within bounds, and
its ids become parts of addresses only if they are plain.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, Any, Literal, TypeVar, cast

import openai
from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from vip import files
from vip.errors import BusyError, EngineError, ReplyError, StoreError, VipError
from vip.models.openai.errors import ServerIdentity, broken_json_error, invalid_reply_error, translate
from vip.models.openai.transport import LATE_S, MOST_FILE_BYTES, MOST_REPLY_BYTES, decode_json, http_library, with_timeout
from vip.protocols import SERVER_ID, BatchState, Reply, Request
from vip.untrusted import parse_json
from vip.wording import again, option

ENDPOINT: Literal["/v1/chat/completions"] = "/v1/chat/completions"
TAG = "vip"  # the name of the tag in the job's metadata
OLDEST_S = 30 * 24 * 3600  # jobs that are older are not looked through for a tag
PAGE = 100  # jobs listed at once: the most that the server allows
MOST_PAGES, SEARCH_TIMEOUTS = 300, 10  # pages of jobs, and how often the time limit of one answer may pass over them
MOST_ROWS = 1_000_000  # in the answers of a job; a job has 50,000
SLOWEST_BYTES_S = 10_000  # of a file on its way
QUEUE_FULL = "token_limit_exceeded"
JSON, TEXT = "j", "t"  # first letter of a row's name: which kind of answer was asked for, when the request is long forgotten

Id = Annotated[str, Field(pattern=SERVER_ID)]
FileId = Annotated[Id | None, BeforeValidator(lambda name: name or None)]
Count = Annotated[int, Field(ge=0, le=2**53)]


class _File(BaseModel):
    id: Id


class _Counts(BaseModel):
    total: Count = 0
    completed: Count = 0
    failed: Count = 0


class _BatchError(BaseModel):
    line: Count | None = None
    message: str | None = None
    code: str | None = None


class _BatchErrors(BaseModel):
    data: list[_BatchError] | None = None


class _Batch(BaseModel):
    id: Id
    status: Literal["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"]
    input_file_id: FileId = None
    output_file_id: FileId = None
    error_file_id: FileId = None
    request_counts: _Counts | None = None
    errors: _BatchErrors | None = None


class _JobEntry(BaseModel):
    """A job on a page of them."""

    id: Id
    metadata: dict[str, Any] | None = None
    created_at: float | None = None


class _Page(BaseModel):
    data: list[Any]
    has_more: bool | None = None


ReadT = TypeVar("ReadT", bound=BaseModel)

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
        server: ServerIdentity,
        question: Callable[[Request], dict[str, Any]],
        reply: Callable[[Any, Request], Reply],
    ) -> None:
        """Keep the two functions: `build_body` for a request, and `parse_reply` for a completion, which may raise a ReplyError."""
        self._client, self._server, self._question, self._reply = client, server, question, reply

    def __repr__(self) -> str:
        return f"OpenAIBatches({self._server!r})"

    def row(self, key: str, request: Request) -> bytes:
        name = (TEXT if request.schema is None else JSON) + key
        row = {"custom_id": name, "method": "POST", "url": ENDPOINT, "body": self._question(request)}
        return json.dumps(row, separators=(",", ":")).encode() + b"\n"

    async def submit(self, path: Path, tag: str) -> str:
        """Upload the file, start the job, and return its id.

        Raises:
            BusyError: not this time; the job may have been started all the same, see `find`.
            EngineError: the server does not take it.
        """
        with self._translate_errors():
            try:
                with files.open_file(path) as rows:  # as a file, which the library sends in pieces and does not read whole
                    sent = self._client.files.with_raw_response.create(file=(f"vip-{tag}.jsonl", rows), purpose="batch")
                    limit_s = self._server.timeout_s + path.stat().st_size / SLOWEST_BYTES_S
                    answer = await with_timeout(self._server, sent, limit_s)
            except openai.NotFoundError as exc:
                raise EngineError(f"{self._server.address} takes no batches. Ask without {option('batch')}.") from exc
            name = self._validate(decode_json(answer.http_response, self._server), _File).id
            body = {"input_file_id": name, "endpoint": ENDPOINT, "completion_window": "24h", "metadata": {TAG: tag}}
            return (await self._request(self._client.post("/batches", cast_to=http_library().Response, body=body), _Batch)).id

    async def find(self, tag: str) -> str | None:
        """Return the job that was started with this tag, perhaps by a process that did not live to note it."""
        with self._translate_errors():
            return await with_timeout(self._server, self._find(tag), SEARCH_TIMEOUTS * self._server.timeout_s)

    async def _find(self, tag: str) -> str | None:
        query: dict[str, Any] = {"limit": PAGE}
        for _ in range(MOST_PAGES):  # the newest first
            page = await self._request(self._client.get("/batches", cast_to=http_library().Response, options={"params": query}), _Page)
            jobs = list(_job_entries(page))
            for job in jobs:
                if (job.metadata or {}).get(TAG) == tag:
                    return self._check_id(job.id)
                if job.created_at is not None and job.created_at < time.time() - OLDEST_S:
                    return None
            if not jobs or page.has_more is False or jobs[-1].id == query.get("after"):
                return None
            query["after"] = jobs[-1].id
        return None

    async def state(self, job: str) -> BatchState:
        with self._translate_errors():
            batch = await self._retrieve(job)
        counts = batch.request_counts
        errors = (batch.errors.data if batch.errors else None) or []
        reason = "; ".join(f"line {one.line}: {one.message}" if one.line else str(one.message) for one in errors[:3])
        return BatchState(
            batch.status,
            counts.total if counts else 0,
            counts.completed if counts else 0,
            counts.failed if counts else 0,
            error=self._server.redact(reason) if reason else None,
            full=any(one.code == QUEUE_FULL for one in errors),
        )

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
        """Yield the rows of a job that has ended: an answer, or a ReplyError or BusyError that costs this row, or an EngineError.

        Both files are whole on the disk before the first row is given; memory does not grow with them.
        """
        with tempfile.TemporaryFile() as rows:
            with self._translate_errors():
                batch = await self._retrieve(job)
                for name in (batch.output_file_id, batch.error_file_id):
                    if name:
                        await self._download(name, rows)
            rows.seek(0)
            for line in _read_lines(rows):
                if (found := self._parse_row(line)) is not None:
                    yield found

    async def discard(self, job: str) -> None:
        """Delete the files of a job at the server; missing ones are ignored."""
        with self._translate_errors():
            batch = await self._retrieve(job)
            for name in _file_ids(batch):
                try:
                    await with_timeout(self._server, self._client.delete(f"/files/{name}", cast_to=http_library().Response))
                except openai.NotFoundError:
                    continue

    async def _download(self, name: str, into: IO[bytes]) -> None:
        """Download a file of the server.

        Raises:
            BusyError: it comes too slowly.
            EngineError: it is too large.
            StoreError: the disk is full.
        """
        start_s, limit_s = asyncio.get_running_loop().time(), self._server.timeout_s + LATE_S
        received, last = 0, b"\n"
        try:
            async with asyncio.timeout(limit_s) as deadline, self._client.files.with_streaming_response.content(name) as answer:
                async for piece in answer.iter_bytes():
                    received += len(piece)
                    if received > MOST_FILE_BYTES:
                        raise EngineError(f"The answers of a batch at {self._server.address} are more than {MOST_FILE_BYTES:,} bytes.")
                    deadline.reschedule(start_s + limit_s + received / SLOWEST_BYTES_S)
                    _write_all(into, piece)
                    last = piece[-1:] or last
        except TimeoutError as exc:
            raise BusyError(f"{self._server.address} is too slow with the answers of a batch.", kind="timeout") from exc
        _write_all(into, b"" if last == b"\n" else b"\n")

    def _parse_row(self, line: bytes) -> tuple[str, Reply | VipError] | None:
        """Return the key and the answer of one row; None for a line that is no row."""
        try:
            row = parse_json(line)
        except ValueError:
            return None
        name = row.get("custom_id") if isinstance(row, dict) else None
        if not isinstance(name, str):
            return None
        kind, key, response, error = name[:1], name[1:], row.get("response"), row.get("error")
        try:
            return key, self._parse_response(kind, response, error)
        except VipError as exc:
            return key, exc

    def _parse_response(self, kind: str, response: Any, error: Any) -> Reply | VipError:
        if not isinstance(response, dict):
            reason = error.get("message") if isinstance(error, dict) else None
            why = f' ("{self._server.redact(str(reason)).rstrip(".")}")' if reason else ""
            return BusyError(f"{self._server.address} did not process this batch request{why}.", kind="timeout")
        status, body = response.get("status_code"), response.get("body")
        if status == 200:
            asked = Request("describe", "", schema={} if kind == JSON else None)
            return self._reply(body, asked) if isinstance(body, dict) else broken_json_error(self._server)
        return self._row_error(status if isinstance(status, int) else 500, body)

    def _row_error(self, status: int, body: Any) -> EngineError | ReplyError:
        """Return the error of a row in the same words as if it had been asked by itself."""
        error = body.get("error", body) if isinstance(body, dict) else body
        kind = _ERRORS.get(status, openai.InternalServerError if status >= 500 else openai.APIStatusError)
        message = str(error.get("message", "")) if isinstance(error, dict) else ""
        return translate(kind(message, response=cast(Any, _Response(status)), body=error), self._server)

    async def _retrieve(self, job: str) -> _Batch:
        if not re.fullmatch(SERVER_ID, self._check_id(job)):
            raise EngineError(f"{job[:40]!r} is no batch of {self._server.address}.")
        try:
            return await self._request(self._client.get(f"/batches/{job}", cast_to=http_library().Response), _Batch)
        except openai.NotFoundError as exc:
            advice = "Use the key and the address it was handed in with, or delete the folder batches/ of the run to ask anew."
            raise EngineError(f"{self._server.address} does not know the batch {job}. {advice}") from exc

    async def _request(self, asked: Awaitable[Any], kind: type[ReadT]) -> ReadT:
        """Wait for a reply and validate it."""
        return self._validate(decode_json(await with_timeout(self._server, asked), self._server), kind)

    def _validate(self, value: Any, kind: type[ReadT]) -> ReadT:
        """Return the answer as a record.

        Raises:
            BusyError: it is something else.
            EngineError: something in it cannot be used.
        """
        if not isinstance(value, dict):
            raise invalid_reply_error(self._server)
        try:
            record = kind.model_validate(value)
        except ValidationError as exc:
            where = exc.errors(include_url=False)[0]["loc"][0]
            text = f'{self._server.address} answers about a batch with a "{where}" that cannot be used.'
            raise EngineError(f"{text} What was handed in stays noted. {again()} to go on.") from exc
        for field_name, name in record:
            if field_name.endswith("id") and name:
                self._check_id(name)
        return record

    def _check_id(self, name: str) -> str:
        """Return the name of a job or a file, which goes into files and messages.

        Raises:
            EngineError: the server put a secret of the user into it.
        """
        if self._server.holds_secret(name):
            text = f"{self._server.address} calls a batch or a file by a key or a password."
            raise EngineError(f"{text} Ask without {option('batch')}, or ask another server.")
        return name

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Translate errors of calls about a whole job: none of them costs one row alone."""
        try:
            yield
        except openai.OpenAIError as exc:
            error = translate(exc, self._server)
            raise (EngineError(str(error)) if isinstance(error, ReplyError) else error) from exc
        except ReplyError as exc:
            raise EngineError(str(exc)) from exc
        except http_library().HTTPError as exc:  # while a file comes, which the openai library leaves as it is
            raise BusyError(f"{self._server.address} hung up before its answer was whole.", kind="dropped") from exc


def _job_entries(page: _Page) -> Iterator[_JobEntry]:
    """Yield the jobs on a page; invalid entries are left out."""
    for one in page.data:
        with suppress(ValidationError):
            yield _JobEntry.model_validate(one)


def _read_lines(rows: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file of answers; lines longer than any answer are left out."""
    for _ in range(MOST_ROWS):
        line = rows.readline(MOST_REPLY_BYTES)
        if not line:
            return
        if line.endswith(b"\n"):
            yield line
        while line and not line.endswith(b"\n"):
            line = rows.readline(MOST_REPLY_BYTES)


def _write_all(file: IO[bytes], data: bytes) -> None:
    try:
        file.write(data)
        file.flush()
    except OSError as exc:
        where = tempfile.gettempdir()
        raise StoreError(f"The answers of a batch cannot be put into {where}: {exc.strerror}. Make room, or set TMPDIR.") from exc


@dataclass(frozen=True, slots=True)
class _Response:
    """A stand-in for an HTTP response, as far as the library's errors read it: rows of a batch have only a status."""

    status_code: int
    headers: dict[str, str] = field(default_factory=dict)
    request: None = None


def _file_ids(batch: _Batch) -> list[str]:
    return [name for name in (batch.input_file_id, batch.output_file_id, batch.error_file_id) if name]
