"""What a server says about batches is made to do harm: each is an answer or one sentence in time, and no other address is asked."""

from __future__ import annotations

import asyncio
import json
import re
import time
import traceback
from base64 import b64encode
from collections.abc import Awaitable, Callable, Iterable
from itertools import count, repeat
from pathlib import Path
from typing import Any

import pytest

from tests.hostile_server import Answer, HostileServer, completion, http
from tests.models.test_hostile_replies import DEEP, ESCAPES, KEY, check_sentence
from vip.errors import BusyError, EngineError, ReplyError, VipError
from vip.models.openai import batch_api
from vip.models.openai.batch_api import OpenAIBatches
from vip.models.openai.engine import OpenAIEngine
from vip.models.openai.transport import LATE_S, MOST_REPLY_BYTES
from vip.protocols import Reply

TIMEOUT_S = 1.0  # for servers that are slow
PATIENT_S = 30.0  # for answers that come at once, on a busy machine
JOB = {"id": "batch_1", "status": "completed", "input_file_id": "file-in", "output_file_id": "file-out", "created_at": 0}


def said(value: Any) -> bytes:
    return http(json.dumps(value).encode(), Connection="close")


def job(**fields: Any) -> bytes:
    return said({**JOB, **fields})


def work(
    server: HostileServer,
    what: Callable[[OpenAIBatches], Awaitable[Any]],
    key_file: Path,
    limit_s: float = TIMEOUT_S,
    timeout_s: float = TIMEOUT_S,
) -> Any:
    """What comes of it, in no more than the time that is allowed."""

    async def go() -> Any:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url, key_file=key_file, timeout_s=timeout_s)
        try:
            return await what(engine.capabilities.batches())
        finally:
            await engine.close()

    start = time.monotonic()
    try:
        return asyncio.run(go())
    except VipError as exc:
        check_sentence(exc)
        return exc
    finally:
        assert time.monotonic() - start < limit_s + LATE_S + 5  # of a busy machine; without limits it would take minutes


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o600)
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"{}\n")
    return path


def paths(server: HostileServer) -> list[str]:
    """What was asked for; a connection that was closed before it asked for anything is left out."""
    return [request.split(b" ", 2)[1].decode() for request in server.requests if request]


IDS = ["../../x", "a/../b", "b" * 1_000_000, "", "a?b=c", "a#b", "a%2e%2e", "\x1b[2J", "a b", "..", 5, None, ["a"], "\u202e", "a\n"]
BODIES: dict[str, Answer] = {
    "deep": http(DEEP),
    "deep inside": http(b'{"id": "batch_1", "status": "completed", "metadata": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_001),
    "long number": http(b'{"id": "batch_1", "status": "completed", "created_at": ' + b"1" * 5000 + b"}"),
    "nan": http(b'{"id": "batch_1", "status": NaN}'),
    "list": http(b"[1]"),
    "text": http(b'"batch_1"'),
    "page": http(b"<html>", Content_Type="text/html"),
    "nothing": http(b""),
    "no utf-8": http(b'{"id": "\xff"}'),
    "unknown word": job(status=ESCAPES),
    "word of another kind": job(status=5),
    "counts below zero": job(request_counts={"total": -1}),
    "counts beyond all": job(request_counts={"completed": 2**62}),
    "counts of another kind": job(request_counts=[1]),
    "errors of another kind": job(errors={"data": [5]}),
    "too large": http(b" " * (MOST_REPLY_BYTES + 1)),
    "letter by letter": [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *repeat(b" ", 1000)],
    "half": b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{",
    "error with escapes": http(json.dumps({"error": {"message": ESCAPES, "code": [ESCAPES]}}).encode(), "400 Bad Request"),
    "error echoes": http(json.dumps({"error": {"message": KEY}}).encode(), "403 Forbidden"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_state_is_one_sentence(name: str, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        assert isinstance(work(server, lambda api: api.state("batch_1"), key_file), EngineError)
        assert paths(server) == ["/v1/batches/batch_1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_answer_to_a_file_is_one_sentence(name: str, rows: Path, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        found = work(server, lambda api: api.submit(rows, "tag"), key_file)
        assert isinstance(found, EngineError) or found == "batch_1"
        assert set(paths(server)) <= {"/v1/files", "/v1/batches"}


@pytest.mark.slow
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_list_is_no_job_or_one_sentence(name: str, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        found = work(server, lambda api: api.find("tag"), key_file)
    assert found is None or isinstance(found, EngineError)


def test_what_a_job_that_failed_says_is_shown_without_escapes_and_keys(key_file: Path) -> None:
    problem = {"line": 3, "message": f"{ESCAPES} {KEY} {'a' * 10_000}", "code": "x"}
    with HostileServer(job(status="failed", errors={"data": [problem] * 100})) as server:
        state = work(server, lambda api: api.state("batch_1"), key_file)
    assert state.error.startswith("line 3: gnp.exe vip: done [redacted] aaa")
    assert len(state.error) < 400
    assert state.error.isprintable()


# ---------------------------------------------------------------- names that become addresses


@pytest.mark.parametrize("name", IDS, ids=lambda name: repr(name)[:12])
def test_an_id_that_is_no_name_is_refused_wherever_it_comes_from(name: Any, rows: Path, key_file: Path) -> None:
    with HostileServer(said({**JOB, "id": name})) as server:
        for step in (lambda api: api.submit(rows, "tag"), lambda api: api.state("batch_1")):
            assert isinstance(work(server, step, key_file), EngineError)
        page = said({"data": [{**JOB, "id": name, "metadata": {"vip": "tag"}}], "has_more": False})
        server.answer = page
        assert work(server, lambda api: api.find("tag"), key_file) is None
        assert {re.sub(r"\?.*", "", path) for path in paths(server)} <= {"/v1/files", "/v1/batches", "/v1/batches/batch_1"}


@pytest.mark.parametrize("name", [name for name in IDS if name not in ("", None)], ids=lambda name: repr(name)[:12])
@pytest.mark.parametrize("field", ["input_file_id", "output_file_id", "error_file_id"])
def test_files_whose_names_are_none_are_neither_read_nor_deleted(field: str, name: Any, key_file: Path) -> None:
    async def read(api: OpenAIBatches) -> None:
        _ = [row async for row in api.results("batch_1")]

    with HostileServer(job(**{field: name})) as server:
        assert isinstance(work(server, read, key_file), EngineError)
        assert isinstance(work(server, lambda api: api.discard("batch_1"), key_file), EngineError)
        assert set(paths(server)) == {"/v1/batches/batch_1"}


@pytest.mark.parametrize("name", [name for name in IDS if isinstance(name, str)], ids=lambda name: repr(name)[:12])
def test_a_job_that_has_no_name_is_not_asked_about(name: str, key_file: Path) -> None:
    with HostileServer(job()) as server:
        assert isinstance(work(server, lambda api: api.state(name), key_file), EngineError)
        assert server.requests == []


SPELLINGS = [str, lambda key: f"batch_{key}_1", lambda key: b64encode(key.encode()).decode(), lambda key: key.encode().hex()]


@pytest.mark.parametrize("spell", SPELLINGS)
@pytest.mark.parametrize("field", ["id", "input_file_id", "output_file_id", "error_file_id"])
def test_a_key_is_no_name_of_a_job_or_a_file(field: str, spell: Callable[[str], str], rows: Path, key_file: Path) -> None:
    name = spell(KEY)

    def check(found: Any) -> None:
        assert isinstance(found, EngineError)
        assert "calls a batch or a file by a key or a password. Ask without --batch" in str(found)
        assert name not in "".join(traceback.format_exception(found))

    with HostileServer(job(**{field: name})) as server:
        check(work(server, lambda api: api.submit(rows, "tag"), key_file))
        check(work(server, lambda api: api.state("batch_1"), key_file))
        check(work(server, lambda api: api.state(name), key_file))
        server.answer = said({"data": [{**JOB, "id": name, "metadata": {"vip": "tag"}}], "has_more": False})
        check(work(server, lambda api: api.find("tag"), key_file))
        assert not [path for path in paths(server) if name in path]


# ---------------------------------------------------------------- lists without end


def test_a_list_that_does_not_end_is_given_up(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_api, "MOST_PAGES", 20)
    numbers = count()

    def page(request: bytes) -> bytes:
        return said({"data": [{**JOB, "id": f"batch_{next(numbers)}", "created_at": 2**40}], "has_more": True})

    with HostileServer(page) as server:
        assert work(server, lambda api: api.find("tag"), key_file, limit_s=10) is None
        assert len(server.requests) == 20


def test_a_list_that_shows_the_same_page_again_has_ended(key_file: Path) -> None:
    with HostileServer(said({"data": [{**JOB, "created_at": 2**40}], "has_more": True})) as server:
        assert work(server, lambda api: api.find("tag"), key_file) is None
        assert len(server.requests) == 2


def test_what_is_no_job_on_a_list_does_not_hide_the_others(key_file: Path) -> None:
    strange = [5, None, {}, {"id": "../x", "metadata": {"vip": "tag"}}, {"id": "a", "metadata": 5}, {"id": "b", "created_at": "soon"}]
    with HostileServer(said({"data": [*strange, {**JOB, "id": "batch_7", "metadata": {"vip": "tag"}}]})) as server:
        assert work(server, lambda api: api.find("tag"), key_file) == "batch_7"


# ---------------------------------------------------------------- answers


def answers(content: Answer, key_file: Path, timeout_s: float = PATIENT_S) -> Any:
    """The rows of a job whose file is this."""

    async def read(api: OpenAIBatches) -> list[Any]:
        return [row async for row in api.results("batch_1")]

    def answer(request: bytes) -> Answer:
        return content if b"/content" in request.split(b"\r\n")[0] else job()

    with HostileServer(answer) as server:
        found = work(server, read, key_file, limit_s=timeout_s, timeout_s=timeout_s)
        assert set(paths(server)) <= {"/v1/batches/batch_1", "/v1/files/file-out/content"}
    return found


def row(key: str, **fields: Any) -> bytes:
    body = json.loads(completion(**fields).partition(b"\r\n\r\n")[2])
    return json.dumps({"custom_id": f"t{key}", "response": {"status_code": 200, "body": body}, "error": None}).encode()


GOOD = row("good")
ROWS = {
    "deep": b'{"custom_id": "tbad", "response": ' + DEEP,
    "deep and closed": b'{"custom_id": "tbad", "response": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "long number": b'{"custom_id": "tbad", "response": ' + b"9" * 5000 + b"}",
    "number of 65 bits": b'{"custom_id": "tbad", "response": 18446744073709551616}',
    "nan": b'{"custom_id": "tbad", "response": NaN}',
    "no utf-8": b'{"custom_id": "tbad\xff"}',
    "a list": b"[1, 2]",
    "a number": b"5",
    "no key": b"{}",
    "a key of another kind": b'{"custom_id": ["tbad"]}',
    "behind its bound": b" " * MOST_REPLY_BYTES + row("bad"),
    "too long": b'{"custom_id": "tbad", "response": "' + b"a" * (3 * MOST_REPLY_BYTES) + b'"}',
}


@pytest.mark.parametrize("name", ROWS)
def test_a_row_that_cannot_be_read_is_no_answer_and_the_others_are(name: str, key_file: Path) -> None:
    found = answers(http(b"\n".join([ROWS[name], b"", GOOD])), key_file)
    assert [(key, answer.text) for key, answer in found] == [("good", "A dog runs on a beach.")]


@pytest.mark.parametrize(
    "response",
    [
        *({"status_code": 10**15, "body": {"error": {"message": ESCAPES}}}, {"status_code": -5, "body": [ESCAPES]}, {"status_code": True}),
        *({"status_code": "200", "body": {}}, {"status_code": 200, "body": 5}, {"status_code": 200, "body": {}}, {}, [], 5, None),
        *({"status_code": 400, "body": {"error": {"message": [ESCAPES], "code": {}, "type": []}}}, {"status_code": 429, "body": ESCAPES}),
        {"status_code": 401, "body": {"error": {"message": f"{KEY} {'a' * 100_000}"}}},
    ],
)
def test_a_row_that_makes_no_sense_is_an_error_of_its_own(response: Any, key_file: Path) -> None:
    line = json.dumps({"custom_id": "tbad", "response": response, "error": {"message": ESCAPES}}).encode()
    (key, failed), (_, answer) = answers(http(line + b"\n" + GOOD), key_file)
    assert key == "bad"
    assert isinstance(failed, EngineError | ReplyError)
    check_sentence(failed)
    assert isinstance(answer, Reply)


@pytest.mark.parametrize("tokens", [-5, 2**63 - 1, 10**12, "5", 1.5, True])
def test_tokens_that_cannot_be_are_not_known(tokens: Any, key_file: Path) -> None:
    ((_, answer),) = answers(http(row("a", usage={"prompt_tokens": tokens, "completion_tokens": tokens})), key_file)
    assert (answer.tokens_in, answer.tokens_out) == (None, None)


def test_answers_without_end_are_given_up(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_api, "MOST_FILE_BYTES", 2**20)
    monkeypatch.setattr(batch_api, "MOST_ROWS", 10)
    assert "more than 1,048,576 bytes" in str(answers(http(b"\n" * 2_000_000), key_file))
    assert len(answers(http((GOOD + b"\n") * 1000), key_file)) == 10


def slowly(pieces: Iterable[bytes]) -> Answer:
    return [b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", *pieces]


@pytest.mark.slow
def test_answers_that_come_letter_by_letter_are_given_up_in_time(key_file: Path) -> None:
    assert type(answers(slowly(repeat(b" ", 100)), key_file, TIMEOUT_S)) is BusyError


def test_answers_that_break_off_are_asked_for_again(key_file: Path) -> None:
    found = answers(slowly([GOOD[:20]]), key_file, TIMEOUT_S)
    assert isinstance(found, BusyError)
    assert found.kind == "dropped"
