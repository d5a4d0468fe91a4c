"""Replies that are made to do harm: each is an answer, or one sentence in time; no key comes back, and nothing goes elsewhere."""

from __future__ import annotations

import asyncio
import gzip
import json
import sys
import time
import traceback
import unicodedata
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterable
from itertools import repeat
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest

from tests.hostile_server import HostileServer, completion, http
from vip.errors import BusyError, EngineError, RejectedError, ReplyError, UsageError, VipError
from vip.models.openai.engine import OpenAIEngine
from vip.models.openai.transport import LATE_S, MOST_REPLY_BYTES
from vip.protocols import LONGEST_ANSWER, Picture, Reply, Request
from vip.records import Direct

KEY = "sk-proj-Sup3rSecretKeyOfTheUser"
SPELT = "".join(f"\\u{ord(letter):04x}" for letter in KEY)
PICTURE = Picture(b"\xff\xd8 a picture", "image/jpeg")
PLAIN = Request("describe", "Describe it.", None, (PICTURE,), max_tokens=100)
STRUCTURED = Request("describe", "Describe it.", None, (PICTURE,), schema=Direct.model_json_schema(), max_tokens=100)
FIELDS = {"dense_caption": "A dog.", "focus": "a dog", "action": "it runs", "mood": "calm", "objects": ["dog"], "setting": "a beach"}
TIMEOUT_S = 1.0


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(KEY)
    path.chmod(0o600)
    return path


def ask(server: HostileServer, request: Request, key_file: Path, model: str | None = "tiny-vlm") -> Reply | VipError:
    """What comes of it, in no more than the time that is allowed."""

    async def go() -> Reply:
        engine = OpenAIEngine(model, base_url=server.base_url, key_file=key_file, timeout_s=TIMEOUT_S)
        try:
            return await engine.generate(request)
        finally:
            await engine.close()

    start = time.monotonic()
    try:
        return asyncio.run(go())
    except VipError as exc:
        return exc
    finally:
        assert time.monotonic() - start < TIMEOUT_S + LATE_S + 5  # of a busy machine; without limits it would take minutes


def check_sentence(error: VipError) -> None:
    """One line without what a terminal obeys, without the key, and with an end."""
    assert not {unicodedata.category(letter) for letter in str(error)} & {"Cc", "Cf", "Cs", "Zl", "Zp"}
    assert len(str(error)) < 1000
    assert str(error).endswith((".", "?", ")", '"'))
    assert KEY not in "".join(traceback.format_exception(error))


ESCAPES = "\x1b[2J\x1b]0;owned\x07\u202egnp.exe\r\nvip: done"
DEEP = b"[" * 100_000
BODIES: dict[str, bytes | Iterable[bytes]] = {
    "deep body": http(DEEP),
    "deep objects": http(b'{"a":' * 100_000),
    "deep choices": http(b'{"choices":' + DEEP + b"]" * 100_000 + b"}"),
    "deep content": completion(json.dumps(FIELDS)[:-1] + ', "more": ' + DEEP.decode() + "}"),
    "long number": http(b'{"created": ' + b"1" * 5000 + b"}"),
    "large number": completion(created=2**70),
    "infinite": http(b'{"created": 1e999}'),
    "nan": http(b'{"created": NaN}'),
    "no utf-8": http(b'{"choices": [{"message": {"content": "\xff\xfe"}}]}'),
    "half a pair": http(b'{"choices": [{"message": {"content": "\\ud83d"}}]}'),
    "list": http(b"[1, 2]"),
    "text": http(b'"hello"'),
    "number": http(b"5"),
    "nothing": http(b""),
    "null": http(b"null"),
    "choices object": completion(choices={"0": 1}),
    "choices numbers": completion(choices=[1, 2]),
    "message list": completion(choices=[{"message": ["a"]}]),
    "content number": completion(5),
    "content parts": completion([{"type": "text", "text": 5}]),
    "long content": completion("a" * 10_000_000),
    "too large": http(b" " * (MOST_REPLY_BYTES + 1)),
    "endless": [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n", *repeat(b" " * 2**22, 20)],
    "packed": http(gzip.compress(b" " * 50_000_000), Content_Encoding="gzip"),
    "letter by letter": [b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", *repeat(b" ", 1000)],
    "head by letter": [b"HTTP/1.1 200 OK\r\n", *(f"X-{number}: 1\r\n".encode() for number in range(1000))],
    "silence": [b"", *repeat(b"", 1000)],
    "long head": b"HTTP/1.1 200 OK\r\nX: " + b"a" * 5_000_000 + b"\r\n\r\n",
    "no http": b"SSH-2.0-OpenSSH_9.6\r\n",
    "length below zero": b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n{}",
    "length of letters": b"HTTP/1.1 200 OK\r\nContent-Length: many\r\n\r\n{}",
    "chunk of letters": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "error with escapes": http(json.dumps({"error": {"message": ESCAPES, "code": ESCAPES}}).encode(), "400 Bad Request"),
    "error deep": http(DEEP, "500 Internal Server Error"),
    "error echoes": http(json.dumps({"error": {"message": f"Bearer {KEY}"}}).encode(), "401 Unauthorized"),
    "error is long": http(json.dumps({"error": {"message": "a" * 5_000_000}}).encode(), "429 Too Many Requests"),
    "error is a list": http(b'{"error": [1, {"message": 5}]}', "400 Bad Request"),
    "refusal echoes": completion(choices=[{"message": {"refusal": f"no {KEY} {ESCAPES}"}}]),
    "other status": http(b"", "299 Odd"),
    "waits for years": http(b"{}", "429 Too Many Requests", Retry_After="99999999999999999999"),
    "waits for a long number": http(b"{}", "503 Service Unavailable", Retry_After="9" * 5000),
}


@pytest.mark.slow
@pytest.mark.parametrize("request_", [PLAIN, STRUCTURED], ids=["plain", "schema"])
@pytest.mark.parametrize("name", BODIES)
def test_a_hostile_reply_is_an_answer_or_one_sentence(name: str, request_: Request, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        found = ask(server, request_, key_file)
    if isinstance(found, Reply):
        assert name == "deep content"  # the reader of the text judges it
        return
    assert isinstance(found, EngineError | ReplyError)
    check_sentence(found)


@pytest.mark.parametrize("name", ["deep body", "long number", "no utf-8", "half a pair", "long content"])
def test_a_reply_that_cannot_be_read_costs_one_item_and_not_the_run(name: str, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        assert type(ask(server, PLAIN, key_file)) is ReplyError


@pytest.mark.slow
@pytest.mark.parametrize("name", ["letter by letter", "head by letter", "silence", "endless"])
def test_a_reply_that_does_not_end_is_given_up_in_time(name: str, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        found = ask(server, PLAIN, key_file)
    assert isinstance(found, BusyError | ReplyError)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BODIES.keys() - {"waits for years", "waits for a long number"}))
def test_a_hostile_list_of_models_is_one_sentence(name: str, key_file: Path) -> None:
    with HostileServer(BODIES[name]) as server:
        found = ask(server, PLAIN, key_file, model=None)
    assert isinstance(found, EngineError)
    check_sentence(found)


# ---------------------------------------------------------------- the key


@pytest.mark.parametrize(
    ("content", "request_"),
    [
        (f"Your key is {KEY}.", PLAIN),
        (json.dumps({**FIELDS, "focus": KEY}), STRUCTURED),
        (json.dumps({**FIELDS, "focus": "-"}).replace("-", SPELT), STRUCTURED),
        (json.dumps({**FIELDS, KEY: 1}), STRUCTURED),
    ],
    ids=["text", "JSON", "spelt", "name"],
)
def test_a_key_that_comes_back_is_cut_out_of_the_answer(content: str, request_: Request, key_file: Path) -> None:
    with HostileServer(completion(content, model=f"tiny {KEY}", id=KEY)) as server:
        found = ask(server, request_, key_file)
        assert KEY in server.requests[0].decode("latin-1")
    assert isinstance(found, Reply)
    assert KEY not in repr(found)
    assert request_ is PLAIN or KEY not in repr(json.loads(found.text))
    assert "[redacted]" in found.text
    assert found.model == "tiny [redacted]"


SPELLINGS = {
    "address": lambda key: quote(key, safe=""),
    "form": quote_plus,
    "slashes of JSON": lambda key: key.replace("/", "\\/"),
    "base64": lambda key: b64encode(key.encode()).decode(),
    "login": lambda key: b64encode(f"user:{key}".encode()).decode(),
    "letters of JSON": lambda key: "".join(f"\\u{ord(letter):04x}" for letter in key),
    "invisible spaces": "\\u200b".join,
    "joiners": "\\u200d".join,
    "letters without a shape": "\\u3164\\ufe0f".join,
    "colours": "\\u001b[0m".join,
    "hex": lambda key: key.encode().hex(),
    "address letter by letter": lambda key: "".join(f"%{ord(letter):02x}" for letter in key),
    "login of an address": lambda key: urlsafe_b64encode(f"me:{key}?".encode()).decode(),
}


@pytest.mark.parametrize("name", SPELLINGS)
def test_a_key_that_comes_back_in_another_spelling_is_cut_out(name: str, tmp_path: Path) -> None:
    key = "k/Sup3r+Secret~Key/Of>The?User"
    (tmp_path / "key").write_text(key)
    (tmp_path / "key").chmod(0o600)
    spelt = SPELLINGS[name](key)
    for reply in (
        completion(json.dumps({**FIELDS, "focus": "-"}).replace('"-"', f'"it is {spelt}"')),
        http(json.dumps({"error": {"message": "-"}}).replace('"-"', f'"it is {spelt}"').encode(), "400 Bad Request"),
    ):
        with HostileServer(reply) as server:
            found = ask(server, STRUCTURED, tmp_path / "key")
        said = json.loads(found.text)["focus"] if isinstance(found, Reply) else str(found)
        assert "[redacted]" in said
        assert spelt[4:-6] not in said
        assert key[4:-6] not in said


# ---------------------------------------------------------------- what the answer says of itself


@pytest.mark.parametrize(
    "usage",
    [
        *({"prompt_tokens": -5, "completion_tokens": 10**12}, {"prompt_tokens": "5", "completion_tokens": True}),
        *({"prompt_tokens": 1.5, "completion_tokens": None}, [], 5, None, "11", {"prompt_tokens": {}, "completion_tokens": [1]}),
    ],
)
def test_tokens_that_cannot_be_are_not_known(usage: Any, key_file: Path) -> None:
    with HostileServer(completion(usage=usage)) as server:
        found = ask(server, PLAIN, key_file)
    assert isinstance(found, Reply)
    assert (found.tokens_in, found.tokens_out) == (None, None)


@pytest.mark.parametrize("model", ["a" * 1_000_000, ESCAPES, 5, None, "", "\u202e"])
def test_a_model_has_a_name_that_can_be_shown(model: Any, key_file: Path) -> None:
    with HostileServer(completion(model=model)) as server:
        found = ask(server, PLAIN, key_file)
    assert isinstance(found, Reply)
    assert found.model in {"tiny-vlm", "gnp.exe vip: done"}


def test_an_answer_of_the_greatest_length_is_taken(key_file: Path) -> None:
    with HostileServer(completion("a" * LONGEST_ANSWER)) as server:
        found = ask(server, PLAIN, key_file)
    assert isinstance(found, Reply)
    assert len(found.text) == LONGEST_ANSWER


# ---------------------------------------------------------------- where it goes


@pytest.mark.parametrize(
    "status", ["301 Moved Permanently", "302 Found", "303 See Other", "307 Temporary Redirect", "308 Permanent Redirect"]
)
def test_pictures_are_not_sent_on_to_another_host(status: str, key_file: Path) -> None:
    with HostileServer(completion()) as other, HostileServer(http(b"", status, Location=f"{other.base_url}/chat/completions")) as server:
        found = ask(server, PLAIN, key_file)
        assert other.requests == []
        assert len(server.requests) == 1
    assert isinstance(found, RejectedError)
    assert f"sends on to {other.base_url}/chat/completions, where nothing is sent unasked" in str(found)
    check_sentence(found)


def test_a_loop_of_redirects_is_one_request(key_file: Path) -> None:
    with HostileServer(http(b"", "307 Temporary Redirect", Location="{address}/v1/chat/completions")) as server:
        assert isinstance(ask(server, PLAIN, key_file), RejectedError)
        assert len(server.requests) == 1


@pytest.mark.parametrize("has_own_key", [False, True])
def test_what_the_environment_holds_for_openai_does_not_go_to_another_server(
    has_own_key: bool, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = {
        "OPENAI_API_KEY": KEY,
        "OPENAI_ADMIN_KEY": "sk-admin-1234",
        "OPENAI_ORG_ID": "org-of-the-user",
        "OPENAI_PROJECT_ID": "project-of-the-user",
        "OPENAI_WEBHOOK_SECRET": "whsec-1234",
        "OPENAI_CUSTOM_HEADERS": "X-Own: custom-of-the-user",
    }
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    key_file.write_text("sk-of-this-server")
    with HostileServer(completion()) as server:
        asyncio.run(_ask_once(OpenAIEngine("tiny-vlm", base_url=server.base_url, key_file=key_file if has_own_key else None)))
        (sent,) = server.requests
    text = sent.decode("latin-1")
    assert not [value for value in (*secrets.values(), "custom-of-the-user") if value in text]
    assert f"authorization: bearer {'sk-of-this-server' if has_own_key else 'no-key'}" in text.lower()


@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "VIP_BASE_URL", "VIP_ENGINE", "VIP_STRUCTURE_ENGINE"])
def test_the_key_of_the_environment_goes_to_the_server_that_the_environment_names(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with HostileServer(completion()) as server:
        monkeypatch.setenv(variable, f"openai:tiny@{server.base_url}/other" if "ENGINE" in variable else f"{server.base_url}/other")
        asyncio.run(_ask_once(OpenAIEngine("tiny-vlm", base_url=server.base_url)))
        assert f"Bearer {KEY}".encode() in server.requests[0]


def test_a_server_that_wants_a_key_says_whose_key_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with HostileServer(http(b"{}", "401 Unauthorized")) as server:
        with pytest.raises(EngineError) as failed:
            asyncio.run(_ask_once(OpenAIEngine("tiny-vlm", base_url=server.base_url)))
        assert KEY.encode() not in server.requests[0]
    assert str(failed.value) == (
        f"OPENAI_API_KEY was set for another server, and {server.base_url} asks for one. Give it in --key-file FILE,"
        f" or set OPENAI_BASE_URL={server.base_url} beside OPENAI_API_KEY."
    )


async def _ask_once(engine: OpenAIEngine) -> Reply:
    try:
        return await engine.generate(PLAIN)
    finally:
        await engine.close()


@pytest.mark.parametrize("proxy", ["ftp://me:Pa55w0rd@proxy:3128", "http://me:Pa55w0rd@[::1", "socks5://me:Pa55w0rd@proxy:1080"])
def test_a_proxy_that_cannot_be_used_is_one_sentence_without_its_password(
    proxy: str, key_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", proxy)
    with HostileServer(completion("A dog.")) as server:
        found = ask(server, PLAIN, key_file)
    assert isinstance(found, UsageError)
    check_sentence(found)
    assert "Pa55w0rd" not in str(found)
