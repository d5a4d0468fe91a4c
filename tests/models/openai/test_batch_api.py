"""Batches of OpenAI, through the real openai library against a real server on localhost."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, nullcontext
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Self, TypeVar, cast
from urllib.parse import parse_qs, urlsplit

import openai
import pytest

from tests.api_server import CAPTION, ApiServer
from tests.hostile_server import HostileServer, http
from tests.llm.clockwork import Clockwork
from vip.errors import BusyError, EngineError, RejectedError, ReplyError, VipError
from vip.models.openai import batch_api
from vip.models.openai.batch_api import OLDEST_S, SEARCH_TIMEOUTS, OpenAIBatches
from vip.models.openai.engine import OpenAIEngine
from vip.models.openai.errors import ServerIdentity
from vip.protocols import BatchState, Picture, Reply, Request
from vip.records import Famous

KEY = "sk-proj-Sup3rSecretKeyOfTheUser"
PICTURE = Picture(b"\xff\xd8 a picture", "image/jpeg")
PLAIN = Request("describe", "Describe it.", pictures=(PICTURE,), max_tokens=100)
STRUCTURED = Request("structure", "Structure it.", schema=Famous.model_json_schema(), max_tokens=100)
Result = TypeVar("Result")


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@asynccontextmanager
async def batches_of(server: ApiServer | HostileServer) -> AsyncIterator[OpenAIBatches]:
    engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
    async with openai.AsyncOpenAI(api_key=KEY, base_url=server.base_url, max_retries=0) as client:
        yield OpenAIBatches(client, ServerIdentity(server.base_url, "tiny-vlm", KEY, 60), engine.build_body, engine.parse_reply)
    await engine.close()


def with_batches(server: ApiServer | HostileServer, work: Callable[[OpenAIBatches], Awaitable[Result]]) -> Result:
    async def go() -> Result:
        async with batches_of(server) as batches:
            return await work(batches)

    return asyncio.run(go())


async def ended(batches: OpenAIBatches, job: str) -> BatchState:
    async with asyncio.timeout(30):
        while not (state := await batches.state(job)).ended:
            await asyncio.sleep(0.01)
    return state


def answers(server: ApiServer, folder: Path, requests: dict[str, Request]) -> tuple[BatchState, dict[str, Reply | VipError]]:
    async def work(batches: OpenAIBatches) -> tuple[BatchState, dict[str, Reply | VipError]]:
        path = folder / "rows.jsonl"
        path.write_bytes(b"".join(batches.row(key, request) for key, request in requests.items()))
        job = await batches.submit(path, "tag")
        state = await ended(batches, job)
        return state, {key: answer async for key, answer in batches.results(job)}

    return with_batches(server, work)


# ---------------------------------------------------------------- what comes back


def test_a_row_asks_what_the_engine_would_ask(tmp_path: Path) -> None:
    with ApiServer() as server:

        async def work(batches: OpenAIBatches) -> tuple[dict[str, Any], dict[str, Any]]:
            engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
            line = batches.row("key", STRUCTURED)
            assert line.endswith(b"\n")
            return json.loads(line), engine.build_body(STRUCTURED)

        row, question = with_batches(server, work)
    assert (row["method"], row["url"], row["body"]) == ("POST", "/v1/chat/completions", question)


def test_answers_are_those_of_the_engine(tmp_path: Path) -> None:
    with ApiServer() as server:
        state, found = answers(server, tmp_path, {"plain": PLAIN, "structured": STRUCTURED})
    assert state == BatchState("completed", 2, 2, 0)
    assert found["plain"] == Reply(CAPTION, model="tiny-vlm-0001", tokens_in=11, tokens_out=7)
    reply = found["structured"]
    assert isinstance(reply, Reply)
    assert Famous.model_validate_json(reply.text).focus == "a test"


def test_json_is_found_between_fences_though_the_request_is_forgotten(tmp_path: Path) -> None:
    with ApiServer("fenced") as server:
        _, found = answers(server, tmp_path, {"structured": STRUCTURED, "plain": PLAIN})
    structured, plain = found["structured"], found["plain"]
    assert isinstance(structured, Reply)
    assert isinstance(plain, Reply)
    assert Famous.model_validate_json(structured.text).focus == "a test"
    assert plain.text == CAPTION


@pytest.mark.slow
@pytest.mark.parametrize(
    ("behaviour", "error", "kind"),
    [
        ("refusal", ReplyError, "refusal"),
        ("length", ReplyError, "length"),
        ("empty", ReplyError, "empty"),
        ("filtered_picture", ReplyError, "picture"),
        ("429", BusyError, "rate_limit"),
        ("503", BusyError, "server"),
        ("500", BusyError, "server"),
        ("quota", EngineError, None),
        ("400", RejectedError, None),
        ("404", EngineError, None),
    ],
)
def test_a_row_that_fails_fails_as_the_engine_would(behaviour: str, error: type[VipError], kind: str | None, tmp_path: Path) -> None:
    with ApiServer(behaviour, "ok") as server:
        state, found = answers(server, tmp_path, {"bad": PLAIN, "good": PLAIN})
    assert (state.status, state.total) == ("completed", 2)
    assert isinstance(found["good"], Reply)
    assert type(found["bad"]) is error
    assert getattr(found["bad"], "kind", None) == kind
    assert KEY not in str(found["bad"])


def test_rows_that_expired_are_busy_and_not_lost(tmp_path: Path) -> None:
    with ApiServer(batch_expires_after=1) as server:
        state, found = answers(server, tmp_path, {"a": PLAIN, "b": PLAIN})
    assert (state.status, state.completed, state.failed) == ("expired", 1, 1)
    assert isinstance(found["a"], Reply)
    assert isinstance(found["b"], BusyError)
    assert found["b"].kind == "timeout"
    assert "before the completion window expired" in str(found["b"])


@pytest.mark.slow
def test_a_batch_that_fails_says_why_and_whether_it_may_go_later(tmp_path: Path) -> None:
    with ApiServer() as server:
        state, found = answers(server, tmp_path, {"a": PLAIN, "a ": PLAIN})
        assert state.status == "completed"
        server.set(batch_queue=1)
        state, found = answers(server, tmp_path, {"a": PLAIN, "b": PLAIN})
        assert (state.status, state.full, found) == ("failed", True, {})
        server.set(batch_queue=None, batch_rows=1)
        state, found = answers(server, tmp_path, {"a": PLAIN, "b": PLAIN})
    assert (state.status, state.full) == ("failed", False)
    assert "too many requests" in str(state.error)


def test_the_first_reasons_of_a_batch_that_fails_are_told_with_their_lines() -> None:
    reasons = [{"line": number, "message": f"reason {number}"} for number in range(1, 5)]

    lists = (reasons, [{"message": "too large"}], [{"message": "a"}, {"message": "b", "code": "token_limit_exceeded"}], [])
    answers = iter([json.dumps({"id": "batch_1", "status": "failed", "errors": {"data": errors}}).encode() for errors in lists])

    async def work(batches: OpenAIBatches) -> list[BatchState]:
        return [await batches.state("batch_1") for _ in lists]

    with HostileServer(lambda request: http(next(answers))) as server:
        several, plain, full, none = with_batches(server, work)
    assert several.error == "line 1: reason 1; line 2: reason 2; line 3: reason 3"
    assert (plain.error, none.error) == ("too large", None)
    assert [one.full for one in (several, plain, full, none)] == [False, False, True, False]


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"total": 5, "completed": 2, "failed": 1}, (5, 2, 1)),
        ({"total": 5}, (5, 0, 0)),
        ({}, (0, 0, 0)),
        (None, (0, 0, 0)),
    ],
)
@pytest.mark.parametrize("status", ["validating", "in_progress", "completed", "cancelled"])
def test_a_job_under_way_says_how_many_rows_are_done(counts: dict[str, int] | None, state: tuple[int, int, int], status: str) -> None:
    with HostileServer(http(json.dumps({"id": "batch_1", "status": status, "request_counts": counts}).encode())) as server:
        assert with_batches(server, lambda batches: batches.state("batch_1")) == BatchState(status, *state)


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"one\ntwo\n", [b"one\n", b"two\n"]),
        (b"1234567\n8\n", [b"1234567\n", b"8\n"]),
        (b"12345678\n9\n", [b"9\n"]),
        (b"a\n" + b"x" * 50 + b"\nb\n", [b"a\n", b"b\n"]),
        (b"a\n" + b"x" * 50, [b"a\n"]),
        (b"1\n2\n3\n4\n5\n", [b"1\n", b"2\n", b"3\n", b"4\n"]),
        (b"", []),
    ],
)
def test_a_line_that_is_longer_than_any_answer_is_left_out_whole(
    content: bytes, lines: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_api, "MOST_REPLY_BYTES", 8)
    monkeypatch.setattr(batch_api, "MOST_ROWS", 4)
    assert list(batch_api._read_lines(BytesIO(content))) == lines


class Slowly:
    """A file at the server that comes in pieces, with so many seconds before each."""

    def __init__(self, pieces: list[bytes], pause_s: float) -> None:
        self.pieces, self.pause_s = pieces, pause_s

    @asynccontextmanager
    async def content(self, name: str) -> AsyncIterator[Self]:
        yield self

    async def iter_bytes(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            await asyncio.sleep(self.pause_s)
            yield piece


@pytest.mark.parametrize(
    ("piece", "pause_s", "comes"),
    [(b"x" * 1_000_000, 50.0, True), (b"x" * 501_000, 50.0, True), (b"x" * 100_000, 50.0, False), (b"x" * 1_000_000, 61.0, False)],
)
def test_a_file_has_time_as_long_as_it_comes_fast_enough(piece: bytes, pause_s: float, comes: bool) -> None:
    """A large one takes much longer than an answer may."""
    client: Any = SimpleNamespace(files=SimpleNamespace(with_streaming_response=Slowly([piece] * 20, pause_s)))
    batches = OpenAIBatches(client, ServerIdentity("http://box/v1", "m", None, 60.0), dict, dict)  # type: ignore[arg-type]
    into = BytesIO()
    with Clockwork() as clock, nullcontext() if comes else pytest.raises(BusyError, match="too slow with the answers of a batch"):
        clock.run(batches._download("file-1", into))
    assert not comes or into.getvalue() == piece * 20 + b"\n", "and another file may follow"


def test_a_file_has_as_much_more_time_on_its_way_up_as_it_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    limits_s = list[float | None]()

    async def with_timeout(server: ServerIdentity, awaitable: Awaitable[Result], limit_s: float | None = None) -> Result:
        limits_s.append(limit_s)
        return await awaitable

    monkeypatch.setattr(batch_api, "with_timeout", with_timeout)
    monkeypatch.setattr(batch_api, "SLOWEST_BYTES_S", 10)

    async def work(batches: OpenAIBatches) -> None:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(row := batches.row("a", PLAIN))
        await batches.submit(path, "tag")
        assert limits_s == [60 + len(row) / 10, None], "the job itself is a question like others"

    with ApiServer() as server:
        with_batches(server, work)


def test_the_answers_of_a_batch_are_bounded_as_a_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.models.openai.batch_api.MOST_FILE_BYTES", 10)
    whole = http(b"12345\n" * 2)

    def answer(request: bytes) -> bytes | list[bytes]:
        if b"/content" in request.split(b"\r\n")[0]:
            return [whole[:-6], whole[-6:]]  # each piece is small enough
        return http(json.dumps({"id": "batch_1", "status": "completed", "output_file_id": "file-1"}).encode())

    async def work(batches: OpenAIBatches) -> list[object]:
        return [row async for row in batches.results("batch_1")]

    with HostileServer(answer) as server, pytest.raises(EngineError, match="are more than 10 bytes"):
        with_batches(server, work)


@pytest.mark.parametrize("key", ["a", " a ", "jt", "é", "a/b:c"])
def test_an_answer_comes_back_under_the_very_key_of_its_row(key: str) -> None:
    completion = {"choices": [{"message": {"content": "A dog."}, "finish_reason": "stop"}]}

    async def work(batches: OpenAIBatches) -> list[object]:
        names = [json.loads(batches.row(key, request))["custom_id"] for request in (PLAIN, STRUCTURED)]
        rows = [{"custom_id": name, "response": {"status_code": 200, "body": completion}} for name in names]
        return [batches._parse_row(json.dumps(row).encode()) for row in rows]

    with HostileServer(http(b"{}")) as server:
        assert [found[0] for found in with_batches(server, work) if isinstance(found, tuple)] == [key, key]


def test_a_row_without_a_status_may_be_asked_again() -> None:
    async def work(batches: OpenAIBatches) -> object:
        return batches._parse_row(b'{"custom_id": "tkey", "response": {"status_code": "many", "body": {}}}')

    with ApiServer() as server:
        assert isinstance(found := with_batches(server, work), tuple)
    assert found[0] == "key"
    assert isinstance(found[1], BusyError)


SLOW = {"message": "slow down"}


@pytest.mark.parametrize(
    ("body", "quoted"),
    [({"error": SLOW}, True), (SLOW, True), ({"error": "slow down"}, True), ("slow down", True), ({"error": None}, False), (None, False)],
)
@pytest.mark.parametrize(("status", "error"), [(429, BusyError), (503, BusyError), (404, EngineError), (400, RejectedError)])
def test_an_error_of_a_row_is_quoted_however_the_server_wraps_it(body: object, quoted: bool, status: int, error: type[VipError]) -> None:
    server = ServerIdentity("http://box/v1", "m", None, 60)
    batches = OpenAIBatches(cast(Any, None), server, cast(Any, None), cast(Any, None))
    found = batches._parse_row(json.dumps({"custom_id": "tkey", "response": {"status_code": status, "body": body}}).encode())
    assert found is not None
    assert (found[0], type(found[1])) == ("key", error)
    assert ("slow down" in str(found[1])) == quoted


def test_a_key_that_the_server_echoes_is_nowhere_in_what_is_said_of_a_batch() -> None:
    said = {"message": f"no such key: {KEY}, and no such tongue"}

    async def work(batches: OpenAIBatches) -> tuple[BatchState, tuple[str, Reply | VipError] | None]:
        return await batches.state("batch_1"), batches._parse_row(json.dumps({"custom_id": "tkey", "error": said}).encode())

    answer = {"id": "batch_1", "status": "failed", "errors": {"data": [said]}}
    with HostileServer(http(json.dumps(answer).encode())) as server:
        state, row = with_batches(server, work)
    assert row is not None
    for text in (str(state.error), str(row[1])):
        assert "no such key" in text
        assert "no such tongue" in text
        assert KEY not in text


# ---------------------------------------------------------------- jobs


@pytest.mark.slow
def test_a_job_is_found_by_its_tag_behind_pages_of_others(tmp_path: Path) -> None:
    async def work(batches: OpenAIBatches) -> tuple[str, str | None, str | None]:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(batches.row("a", PLAIN))
        first = await batches.submit(path, "tag-first")
        for number in range(101):
            await batches.submit(path, f"tag-{number}")
        return first, await batches.find("tag-first"), await batches.find("tag-none")

    with ApiServer() as server:
        first, found, none = with_batches(server, work)
    assert (found, none) == (first, None)


OLD = OLDEST_S + 3600


@pytest.mark.parametrize(
    ("ages_s", "has_more", "tag", "found", "asked_after"),
    [
        ([0] * 6, True, "tag-1", "batch_1", [None]),
        ([0] * 6, True, "tag-4", "batch_4", [None, "batch_2"]),
        ([0] * 6, True, "tag-6", "batch_6", [None, "batch_2", "batch_4"]),
        ([0] * 6, True, "tag-7", None, [None, "batch_2", "batch_4", "batch_6"]),
        ([0] * 6, False, "tag-6", None, [None]),
        ([0] * 6, None, "tag-6", "batch_6", [None, "batch_2", "batch_4"]),
        ([0, 0, OLD, OLD, OLD, OLD], True, "tag-6", None, [None, "batch_2"]),
        ([0, 0, OLD, OLD, OLD, OLD], True, "tag-3", "batch_3", [None, "batch_2"]),
        ([0, None, None, 0, 0, 0], True, "tag-5", "batch_5", [None, "batch_2", "batch_4"]),
    ],
)
def test_a_job_is_looked_for_page_by_page_up_to_those_that_are_too_old(
    ages_s: list[float | None], has_more: bool | None, tag: str, found: str | None, asked_after: list[str | None]
) -> None:
    jobs = [
        {"id": f"batch_{number}", "metadata": {"vip": f"tag-{number}"}, "created_at": None if age_s is None else time.time() - age_s}
        for number, age_s in enumerate(ages_s, 1)
    ]

    def after(request: bytes) -> str | None:
        return parse_qs(urlsplit(request.split()[1].decode()).query).get("after", [None])[0]

    def page(request: bytes) -> bytes:
        start = int((after(request) or "batch_0").removeprefix("batch_"))
        page = {"data": jobs[start : start + 2]} | ({} if has_more is None else {"has_more": has_more})
        return http(json.dumps(page).encode())

    with HostileServer(page) as server:
        assert with_batches(server, lambda batches: batches.find(tag)) == found
        assert [after(request) for request in server.requests] == asked_after


@pytest.mark.parametrize(
    ("pages", "requests"), [(["batch_1"], 2), (["batch_1", "batch_2"], 3), (["batch_1", "batch_2", "batch_3", "batch_4"], 4)]
)
def test_a_list_of_jobs_that_does_not_end_is_not_read_for_ever(pages: list[str], requests: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_api, "MOST_PAGES", 4)
    left = iter(pages + pages[-1:] * 9)
    with HostileServer(lambda request: http(json.dumps({"data": [{"id": next(left)}], "has_more": True}).encode())) as server:
        assert with_batches(server, lambda batches: batches.find("tag")) is None
        assert len(server.requests) == requests


def test_looking_for_a_job_has_the_time_of_several_pages_and_each_page_that_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    limits_s = list[float | None]()

    async def with_timeout(server: ServerIdentity, awaitable: Awaitable[Result], limit_s: float | None = None) -> Result:
        limits_s.append(limit_s)
        return await awaitable

    monkeypatch.setattr(batch_api, "with_timeout", with_timeout)
    with HostileServer(http(b'{"data": []}')) as server:
        assert with_batches(server, lambda batches: batches.find("tag")) is None
    assert limits_s == [60 * SEARCH_TIMEOUTS, None]


@pytest.mark.parametrize("job", ["batch_1/../../files", "batch_1?limit=9", "batch_1 ", "batch_1\n", "batch_1%2f", ""])
def test_a_job_whose_name_has_more_in_it_than_a_name_is_never_part_of_an_address(job: str) -> None:
    with HostileServer(http(b"{}")) as server:
        for asked in (OpenAIBatches.state, OpenAIBatches.discard):
            with pytest.raises(EngineError, match="is no batch of"):
                with_batches(server, lambda batches, asked=asked: asked(batches, job))
        assert server.requests == []


def test_discarding_a_job_deletes_its_files_at_the_server(tmp_path: Path) -> None:
    async def work(batches: OpenAIBatches) -> None:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(batches.row("a", PLAIN) + batches.row("b", PLAIN))
        job = await batches.submit(path, "tag")
        await ended(batches, job)
        await batches.discard(job)
        await batches.discard(job)
        with pytest.raises(EngineError):
            _ = [row async for row in batches.results(job)]

    with ApiServer("500", "ok") as server:
        with_batches(server, work)
        with openai.OpenAI(api_key="k", base_url=server.base_url) as client:
            assert list(client.files.list()) == []


def test_one_file_that_is_gone_does_not_keep_the_others_at_the_server(tmp_path: Path) -> None:
    async def work(batches: OpenAIBatches) -> list[str]:
        path = tmp_path / "rows.jsonl"
        path.write_bytes(batches.row("a", PLAIN) + batches.row("b", PLAIN))
        job = await batches.submit(path, "tag")
        await ended(batches, job)
        async with openai.AsyncOpenAI(api_key="k", base_url=server.base_url) as client:
            files = [file.id async for file in client.files.list()]
            await client.files.delete((await client.batches.retrieve(job)).input_file_id)
            await batches.discard(job)
            assert [file async for file in client.files.list()] == []
        return files

    with ApiServer("500", "ok") as server:
        assert len(with_batches(server, work)) == 3, "of rows, answers and errors"


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"key": "another"}, EngineError, "does not accept the API key"),
        ({"file_bytes": 10}, EngineError, "too large"),
    ],
)
def test_a_file_that_is_not_taken_is_an_engine_error(options: dict[str, Any], error: type[VipError], words: str, tmp_path: Path) -> None:
    with ApiServer(**options) as server, pytest.raises(error, match=words) as caught:
        answers(server, tmp_path, {"a": PLAIN})
    assert KEY not in str(caught.value)


def test_a_server_without_batches_is_named(tmp_path: Path) -> None:
    with ApiServer() as server:
        server.base_url += "/elsewhere"
        with pytest.raises(EngineError, match=r"takes no batches.*without --batch"):
            answers(server, tmp_path, {"a": PLAIN})


def test_a_server_that_is_away_is_busy(tmp_path: Path) -> None:
    with ApiServer() as server:
        server.kill()
        with pytest.raises(BusyError, match="cannot be reached"):
            answers(server, tmp_path, {"a": PLAIN})


def test_a_job_that_the_server_does_not_know_is_named(tmp_path: Path) -> None:
    with ApiServer() as server, pytest.raises(EngineError, match=r"does not know the batch batch_1.*delete the folder"):
        with_batches(server, lambda batches: batches.state("batch_1"))
