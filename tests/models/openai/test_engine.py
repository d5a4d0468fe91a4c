"""The engine `openai`, through the real openai library against a real server on localhost."""

from __future__ import annotations

import asyncio
import base64
import inspect
import re
import socket
import ssl
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api_server import CAPTION, ApiServer, Asked
from tests.hostile_server import HostileServer, http
from vip.errors import BusyError, EngineError, RejectedError, ReplyError, UsageError, VipError
from vip.models.openai import errors
from vip.models.openai.engine import CLIENTS, DEFAULT_MODEL, OpenAIEngine, _model_ids
from vip.models.openai.errors import TRANSLATIONS, ServerIdentity, retry_after_s, translate
from vip.models.openai.server import parse_seconds
from vip.models.openai.transport import MOST_REPLY_BYTES
from vip.protocols import LONGEST_NAME, KeyframeFacts, Picture, RateLimits, Reply, Request
from vip.records import Famous, Quality

KEY = "sk-proj-Sup3rSecretKeyOfTheUser"
FACTS = KeyframeFacts(640, 360, 1.0, Quality(sharpness=100, brightness=0.5, contrast=0.2), (), (("blue", 1.0),), 0.5, None, None)
PICTURE = Picture(b"\xff\xd8 a picture", "image/jpeg")
PLAIN = Request("describe", "Describe it.", FACTS, (PICTURE,), max_tokens=100)
STRUCTURED = Request("structure", "Structure it.", FACTS, schema=Famous.model_json_schema(), max_tokens=100)


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A server that passes for api.openai.com."""
    monkeypatch.setattr(errors, "OFFICIAL_HOST", "127.0.0.1")
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ApiServer() as server:
        yield server


def ask(engine: OpenAIEngine, *requests: Request) -> list[Reply]:
    async def go() -> list[Reply]:
        try:
            return [await engine.generate(request) for request in requests]
        finally:
            await engine.close()

    return asyncio.run(go())


def failure(server: ApiServer, request: Request = PLAIN, *, model: str = "tiny-vlm", **options: Any) -> VipError:
    with pytest.raises(VipError) as caught:
        ask(OpenAIEngine(model, base_url=server.base_url, **options), request)
    return caught.value


def busy(server: ApiServer, **options: Any) -> BusyError:
    error = failure(server, **options)
    assert type(error) is BusyError
    return error


def forms(server: ApiServer) -> list[str | None]:
    """How each question asked for its schema; None: in words alone."""
    return [chat.body.get("response_format", {}).get("type") for chat in server.chats]


# ---------------------------------------------------------------- what is asked, what comes back


def test_a_caption_comes_with_model_and_tokens() -> None:
    with ApiServer() as server:
        (reply,) = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN)
    assert reply == Reply(CAPTION, model="tiny-vlm-0001", tokens_in=11, tokens_out=7)


def test_the_picture_travels_as_a_data_url_beside_the_prompt() -> None:
    with ApiServer() as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN)
    text, picture = server.chats[0].body["messages"][0]["content"]
    assert text == {"type": "text", "text": "Describe it."}
    head, _, data = picture["image_url"]["url"].partition(",")
    assert head == "data:image/jpeg;base64"
    assert base64.b64decode(data) == PICTURE.data


def test_pictures_keep_their_order_whatever_the_prompt_says() -> None:
    other, prompt = Picture(b"another", "image/png"), 'A word may be "data:image/png;base64,eA==" too; ;base64,'
    with ApiServer() as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), replace(PLAIN, prompt=prompt, pictures=(PICTURE, other)))
    text, *pictures = server.chats[0].body["messages"][0]["content"]
    assert text["text"] == prompt
    assert [base64.b64decode(one["image_url"]["url"].partition(",")[2]) for one in pictures] == [PICTURE.data, other.data]


def test_an_engine_that_was_closed_is_asked_again_in_another_loop() -> None:
    with ApiServer() as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
        assert [ask(engine, PLAIN)[0].text for _ in range(2)] == [CAPTION] * 2


def test_an_engine_closes_every_client_that_it_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = list[openai.AsyncOpenAI]()

    class Noted(openai.AsyncOpenAI):
        def __init__(self, **options: Any) -> None:
            super().__init__(**options)
            opened.append(self)

    monkeypatch.setattr(openai, "AsyncOpenAI", Noted)
    with ApiServer() as server:
        engine = OpenAIEngine(None, base_url=server.base_url)  # which asks for the list of models
        ask(engine, *[PLAIN] * (CLIENTS + 2))
    assert len(opened) > CLIENTS
    assert all(client.is_closed() for client in opened)


@pytest.mark.parametrize(("timeout_s", "connect_s"), [(120.0, 10.0), (3.0, 3.0)])
def test_a_server_that_cannot_be_reached_has_less_time_than_an_answer_and_one_try(timeout_s: float, connect_s: float) -> None:
    engine = OpenAIEngine("tiny-vlm", base_url="http://localhost:9/v1", timeout_s=timeout_s)
    client = engine._client
    asyncio.run(engine.close())
    assert isinstance(client.timeout, openai.Timeout)
    assert (client.timeout.read, client.timeout.connect, client.max_retries) == (timeout_s, connect_s, 0)


def test_a_schema_is_asked_for_strictly() -> None:
    with ApiServer() as server:
        (reply,) = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), STRUCTURED)
    asked = server.chats[0].body["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"]["strict"] is True
    assert asked["json_schema"]["schema"]["additionalProperties"] is False
    assert set(asked["json_schema"]["schema"]["required"]) == set(Famous.model_fields)
    assert Famous.model_validate_json(reply.text).focus == "a test"
    assert server.chats[0].body["messages"][0]["content"] == "Structure it.", "as text, which any server takes"


def test_other_servers_get_max_tokens_and_need_no_key() -> None:
    with ApiServer() as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN)
    asked = server.chats[0]
    assert asked.body["max_tokens"] == 100
    assert "max_completion_tokens" not in asked.body
    assert asked.headers["authorization"] == "Bearer no-key"


def test_openai_itself_gets_room_for_reasoning_and_no_temperature(official: ApiServer) -> None:
    ask(OpenAIEngine(None, base_url=official.base_url), PLAIN)
    asked = official.chats[0]
    assert asked.body["max_completion_tokens"] > 4000
    assert not {"max_tokens", "temperature"} & set(asked.body)
    assert asked.headers["authorization"] == f"Bearer {KEY}"


# ---------------------------------------------------------------- which model, which server, which key


def test_without_a_model_openai_gets_the_dated_default(official: ApiServer) -> None:
    engine = OpenAIEngine(None, base_url=official.base_url)
    assert engine.name == f"openai:{DEFAULT_MODEL}"
    assert re.search(r"\d{4}-\d{2}-\d{2}$", DEFAULT_MODEL)
    assert official.requests == []


def test_without_a_model_another_server_is_asked_for_its_first() -> None:
    with ApiServer(models=("first", "second")) as server:
        engine = OpenAIEngine(None, base_url=server.base_url)
        assert engine.name == "openai:first"
        ask(engine, PLAIN)
    assert server.chats[0].body["model"] == "first"


@pytest.mark.parametrize("models", [(), "404", "page", "half_json"])
def test_a_server_without_a_list_of_models_asks_for_a_name(models: tuple[str, ...] | str) -> None:
    with ApiServer(models=models) as server, pytest.raises(EngineError, match="openai:MODEL"):
        OpenAIEngine(None, base_url=server.base_url)


@pytest.mark.parametrize("spell", [str, lambda key: f"tiny-{key}", "\ufe0f".join, lambda key: base64.b64encode(key.encode()).decode()])
def test_a_key_in_the_list_of_models_names_no_engine(spell: Callable[[str], str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ApiServer(models=(spell(KEY), "first")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        with pytest.raises(EngineError, match="lists a key or a password as its first model") as raised:
            OpenAIEngine(None, base_url=server.base_url)
    assert spell(KEY) not in "".join(traceback.format_exception(raised.value))


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with ApiServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert ask(OpenAIEngine(None), PLAIN)[0].text == CAPTION


def test_without_key_and_address_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    engine = OpenAIEngine("gpt-5-mini")
    with pytest.raises(EngineError, match=r"No key is set.*Set OPENAI_API_KEY.*--key-file FILE.*--engine offline"):
        engine.capabilities.check()


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-“quoted”")
    with pytest.raises(EngineError, match="Copy it again") as caught:
        OpenAIEngine("gpt-5-mini")
    assert "quoted" not in str(caught.value)


@pytest.mark.parametrize("behaviour", ["500", "429"])
def test_a_list_of_models_that_fails_is_named_with_the_way_round_it(behaviour: str) -> None:
    with ApiServer(models=behaviour) as server, pytest.raises(EngineError) as failed:
        OpenAIEngine(None, base_url=server.base_url)
    assert str(failed.value).startswith(f"The list of models at {server.base_url}/models cannot be had: ")
    assert "Name one with --engine openai:MODEL" in str(failed.value)


def test_a_server_that_wants_a_key_for_its_list_says_that_none_is_set() -> None:
    with ApiServer(models="401") as server, pytest.raises(EngineError, match=r"^No key is set, and .* asks for one"):
        OpenAIEngine(None, base_url=server.base_url)


def test_a_model_can_bring_its_server_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with ApiServer() as server:
        engine = OpenAIEngine(f"org/tiny-vlm@{server.base_url}", base_url="http://127.0.0.1:9/v1")
        assert (engine.name, engine.capabilities.address) == ("openai:org/tiny-vlm", server.base_url)
        ask(engine, PLAIN)
    assert server.chats[0].body["model"] == "org/tiny-vlm"


def test_a_server_of_its_own_without_a_model_is_asked_for_its_first() -> None:
    with ApiServer(models=("first", "second")) as server:
        assert OpenAIEngine(f"@{server.base_url}").name == "openai:first"


def test_a_model_with_an_at_in_its_name_has_no_server_of_its_own() -> None:
    engine = OpenAIEngine("vlm@main", base_url="http://127.0.0.1:9/v1")
    assert (engine.model, engine.capabilities.address) == ("vlm@main", "http://127.0.0.1:9/v1")


# ---------------------------------------------------------------- a key in a file


def key_file(folder: Path, text: str | bytes, mode: int = 0o600) -> Path:
    path = folder / "key"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    path.chmod(mode)
    return path


def test_the_key_of_a_file_goes_before_that_of_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    with ApiServer(key=KEY) as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url, key_file=key_file(tmp_path, f"{KEY}\n"))
        assert ask(engine, PLAIN)[0].text == CAPTION
    assert KEY not in repr(engine)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o620])
def test_a_key_that_others_may_read_is_refused_with_what_to_type(mode: int, tmp_path: Path) -> None:
    path = key_file(tmp_path, KEY, mode)
    with pytest.raises(UsageError, match=rf"may be read by others \(mode {mode:o}\).*chmod 600 {path}") as caught:
        OpenAIEngine("tiny-vlm", base_url="http://127.0.0.1:9/v1", key_file=path)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(("text", "words"), [(b"\xff\xfe", "holds no key: it is not text"), ("  \n", "holds no key: it is empty")])
def test_a_file_without_a_key_is_refused(text: str | bytes, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        OpenAIEngine("tiny-vlm", base_url="http://127.0.0.1:9/v1", key_file=key_file(tmp_path, text))


def test_a_file_of_several_words_is_no_key(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"key contains letters that no key has\. Copy it again") as caught:
        OpenAIEngine("tiny-vlm", base_url="http://127.0.0.1:9/v1", key_file=key_file(tmp_path, f"key = {KEY}"))
    assert KEY not in str(caught.value)


def test_a_file_of_a_key_that_is_missing_or_unreadable_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir(mode=0o700)
    for name, why in (("missing", "No such file"), ("folder", "Is a directory")):
        with pytest.raises(UsageError, match=f"The key in .*{name} cannot be read: {why}"):
            OpenAIEngine("tiny-vlm", base_url="http://127.0.0.1:9/v1", key_file=tmp_path / name)


@pytest.mark.parametrize("address", ["localhost:8000", "http://", "ftp://host/v1", "http://host:99999/v1", "http://[::1", "http://a b/v1"])
def test_an_address_that_is_none_is_a_usage_error(address: str) -> None:
    with pytest.raises(UsageError, match=r"http://localhost:8000/v1"):
        OpenAIEngine("tiny-vlm", base_url=address)


# ---------------------------------------------------------------- failures, one sentence each


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("429", "rate_limit", "limits the rate"),
        ("408", "server", "fails with HTTP 408"),
        ("409", "server", "fails with HTTP 409"),
        ("500", "server", "fails with HTTP 500"),
        ("503", "server", "fails with HTTP 503"),
        ("busy", "server", "fails with HTTP 503.*overloaded"),
        ("page", "server", "not like an OpenAI-compatible server.*/v1"),
        ("nonsense_stream", "server", "not like an OpenAI-compatible server"),
        ("drop", "dropped", "hung up before its answer was whole.*Is the server well"),
        ("reset", "dropped", "hung up before its answer was whole"),
    ],
)
def test_what_may_pass_is_said_in_one_sentence_after_one_try(behaviour: str, kind: str, words: str) -> None:
    with ApiServer(behaviour) as server:
        error = busy(server)
        assert server.base_url in str(error)
    assert error.kind == kind
    assert re.search(words, str(error)), error
    assert "\n" not in str(error)
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("401", EngineError, "No key is set, and .* asks for one.*Give it in --key-file FILE, or set OPENAI_BASE_URL"),
        ("403", EngineError, 'does not allow the model "tiny-vlm"'),
        ("quota", EngineError, "quota.*spent.*--engine offline"),
        ("402", EngineError, "wants to be paid first"),
        ("400", RejectedError, "rejects the request.*takes? pictures"),
        ("422", RejectedError, "rejects the request"),
    ],
)
def test_what_will_not_pass_is_said_in_one_sentence(behaviour: str, kind: type[VipError], words: str) -> None:
    with ApiServer(behaviour) as server:
        error = failure(server)
    assert type(error) is kind
    assert re.search(words, str(error)), error
    assert "\n" not in str(error)
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("413", "too_large", "too large"),
        ("filtered_picture", "picture", "does not take this picture.*filtered"),
        ("half_json", "broken", "not whole JSON"),
        ("nonsense", "broken", "not whole JSON"),
        ("no_choices", "empty", "without any text"),
        ("empty", "empty", "empty answer"),
        ("length", "length", "did not finish"),
        ("content_filter", "content_filter", "content filter"),
        ("refusal", "refusal", "refused to answer.*I cannot help with that"),
    ],
)
def test_an_answer_that_cannot_be_used_is_said_in_one_sentence(behaviour: str, kind: str, words: str) -> None:
    with ApiServer(behaviour) as server:
        error = failure(server)
    assert type(error) is ReplyError
    assert error.kind == kind
    assert re.search(words, str(error)), error
    assert "\n" not in str(error)
    assert len(server.chats) == 1


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        (http(b"[" * (MOST_REPLY_BYTES + 1)), ReplyError, "is larger than"),
        (http(b"packed", Content_Encoding="gzip"), ReplyError, "is packed, though that was not asked for"),
        (http(b"", "302 Found", Location="http://elsewhere.example/v1"), RejectedError, "sends on to http://elsewhere.example/v1"),
    ],
    ids=["large", "packed", "redirect"],
)
def test_what_vip_itself_refuses_of_a_reply_is_said_as_it_is(answer: bytes, kind: type[VipError], words: str) -> None:
    """Not as a connection that broke, which would be tried again."""
    with HostileServer(answer) as server:
        with pytest.raises(VipError, match=words) as caught:
            ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN)
        assert len(server.requests) == 1
    assert type(caught.value) is kind
    assert getattr(caught.value, "kind", "broken") == "broken"


@pytest.mark.parametrize("behaviour", ["no_choices", "empty", "length", "content_filter", "refusal"])
@pytest.mark.parametrize(("usage", "tokens"), [((1100, 2048), (1100, 2048)), (None, (None, None))])
def test_a_useless_answer_says_what_it_cost_all_the_same(
    behaviour: str, usage: tuple[int, int] | None, tokens: tuple[int | None, int | None]
) -> None:
    with ApiServer(behaviour, usage=usage) as server:
        error = failure(server)
    assert isinstance(error, ReplyError)
    assert (error.tokens_in, error.tokens_out) == tokens


def test_a_missing_model_is_answered_with_those_there_are() -> None:
    with ApiServer("404") as server:
        error = failure(server, model="tiny-vln")
    assert type(error) is EngineError
    assert 'no model "tiny-vln"' in str(error)
    assert "tiny-vlm" in str(error)


@pytest.mark.parametrize("models", ["404", "half_json", "page", "drop", ("tiny-vlm",)])
def test_a_wrong_address_is_answered_with_the_usual_one(models: tuple[str, ...] | str) -> None:
    with ApiServer("404", models=models) as server:
        assert re.search("404.*usually ends in /v1", str(failure(server)))


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(BusyError, match=rf"{url} cannot be reached.*Is the server running there") as caught:
            ask(OpenAIEngine("tiny-vlm", base_url=url), PLAIN)
    assert caught.value.kind == "connection"


def test_a_server_whose_certificate_has_expired_gets_no_request(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(expired_certificate(tmp_path / "server.pem"))
        got: list[bytes] = []

        def serve() -> None:
            with suppress(ssl.SSLError):
                got.append(tls.wrap_socket(listening.accept()[0], server_side=True).recv(1))

        key_file = tmp_path / "key"
        key_file.write_text(KEY)
        key_file.chmod(0o600)
        server = Thread(target=serve, daemon=True)
        server.start()
        address = f"https://127.0.0.1:{listening.getsockname()[1]}/v1"
        with pytest.raises(EngineError, match=f"^The certificate of {address} is not valid .*Renew it") as caught:
            ask(OpenAIEngine("tiny-vlm", base_url=address, key_file=key_file), PLAIN)
        server.join()
    assert type(caught.value) is EngineError
    assert got in ([], [b""])


def expired_certificate(path: Path) -> Path:
    """A key and a certificate of 127.0.0.1 that was good for a day."""
    x509 = pytest.importorskip("cryptography.x509")
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    begin = datetime(2024, 1, 1)
    certificate = x509.CertificateBuilder(name, name, key.public_key(), 1, begin, begin + timedelta(days=1)).sign(key, hashes.SHA256())
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path.write_bytes(key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem))
    return path


def test_a_server_that_is_gone_for_a_moment_answers_again() -> None:
    with ApiServer() as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)

        async def go() -> tuple[Reply, Reply]:
            try:
                before = await engine.generate(PLAIN)
                server.kill()
                with pytest.raises(BusyError) as caught:
                    await engine.generate(PLAIN)
                assert caught.value.kind in {"connection", "dropped"}
                server.restart()
                return before, await engine.generate(PLAIN)
            finally:
                await engine.close()

        before, after = asyncio.run(go())
    assert before == after


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = OpenAIEngine("tiny-vlm", base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1", timeout_s=0.2)
        with pytest.raises(BusyError, match=r"did not answer within 0\.2 s.*--request-timeout") as caught:
            ask(engine, PLAIN)
    assert caught.value.kind == "timeout"


def test_a_silent_server_has_less_time_for_its_list_of_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.models.openai.engine.CONNECT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(EngineError, match=r"did not answer within 0\.2 s"):
        OpenAIEngine(None, base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1")


@pytest.mark.slow
def test_an_answer_that_comes_too_late_is_given_up_and_one_that_is_only_late_is_not() -> None:
    with ApiServer("late", late_s=30) as server:
        assert busy(server, timeout_s=0.3).kind == "timeout"
    with ApiServer("late", late_s=0.2) as server:
        assert ask(OpenAIEngine("tiny-vlm", base_url=server.base_url, timeout_s=30), PLAIN)[0].text == CAPTION


# ---------------------------------------------------------------- how long to wait, and what is left


@pytest.mark.parametrize(("behaviour", "kind"), [("429", "rate_limit"), ("503", "server")])
@pytest.mark.parametrize(
    ("options", "wait_s"),
    [
        ({"retry_after": 7}, 7.0),
        ({"retry_after": 0.5}, 0.5),
        ({"headers": {"retry-after-ms": "2500"}}, 2.5),
        ({"headers": {"retry-after-ms": ""}}, None),
    ],
)
def test_a_busy_server_says_how_long_to_wait(behaviour: str, kind: str, options: dict[str, Any], wait_s: float | None) -> None:
    with ApiServer(behaviour, **options) as server:
        error = busy(server)
    assert (error.kind, error.retry_after_s) == (kind, wait_s)


def test_a_busy_server_may_name_the_time_at_which_to_come_again() -> None:
    then = format_datetime(datetime.now(UTC) + timedelta(minutes=10), usegmt=True)
    with ApiServer("429", headers={"retry-after-ms": "", "Retry-After": then}) as server:
        wait_s = busy(server).retry_after_s
    assert wait_s is not None
    assert 500 < wait_s <= 600


@pytest.mark.parametrize(
    ("headers", "wait_s"),
    [
        ({}, None),
        ({"retry-after": ""}, None),
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "20", "retry-after": "30"}, 0.02),
        ({"retry-after-ms": "soon", "retry-after": "30"}, 30.0),
        ({"retry-after-ms": "-20"}, 0.0),
        ({"retry-after-ms": "inf"}, None),
        ({"retry-after-ms": "nan"}, None),
        ({"retry-after": "1e400"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
        ({"retry-after": "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"}, None),
    ],
)
def test_a_wait_that_means_nothing_is_none(headers: dict[str, str], wait_s: float | None) -> None:
    assert retry_after_s(headers) == wait_s


def test_what_a_server_has_left_comes_with_its_answer() -> None:
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-remaining-tokens": "0",
        "x-ratelimit-reset-tokens": "6m0.5s",
    }
    with ApiServer(headers=headers) as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
        assert ask(engine, PLAIN)[0].limits == RateLimits(59, 1.0, 0, 360.5)
        server.set(headers={"x-ratelimit-remaining-requests": "58"})
        assert ask(engine, PLAIN)[0].limits == RateLimits(requests_left=58)
        server.set(headers={"x-ratelimit-remaining-requests": "many"})
        assert ask(engine, PLAIN)[0].limits is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("20ms", 0.02),
        ("1.5", 1.5),
        ("8.64s", 8.64),
        ("1h2m3s", 3723.0),
        ("-3", 0.0),
        ("", None),
        (None, None),
        ("soon", None),
        ("3 s", None),
        ("nan", None),
        ("inf", None),
        ("1" * 60_000 + "x", None),
        ("9" * 400 + "h", None),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_reset_is_a_number_of_seconds_or_nothing(text: str | None, seconds: float | None) -> None:
    assert parse_seconds(text) == seconds


# ---------------------------------------------------------------- servers that know less


@pytest.mark.parametrize(
    ("behaviour", "asked"), [("no_schema", ["json_schema", "json_object"]), ("no_format", ["json_schema", "json_object", None])]
)
def test_a_server_without_schemas_gets_it_in_words_from_then_on(behaviour: str, asked: list[str | None]) -> None:
    with ApiServer(behaviour) as server:
        replies = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), STRUCTURED, STRUCTURED)
    assert [Famous.model_validate_json(reply.text).mood for reply in replies] == ["calm", "calm"]
    assert forms(server) == [*asked, asked[-1]]
    assert "additionalProperties" in server.chats[-1].text


def test_a_request_rejected_in_every_form_is_an_engine_error() -> None:
    with ApiServer("400") as server:
        assert type(failure(server, STRUCTURED)) is RejectedError
    assert forms(server) == ["json_schema", "json_object", None]


def test_a_server_that_wants_max_completion_tokens_gets_them_from_then_on() -> None:
    with ApiServer("max_tokens_unknown") as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
        replies = ask(engine, PLAIN, STRUCTURED)
    assert replies[0].text == CAPTION
    asked = [{name: chat.body[name] for name in chat.body if name.startswith("max_")} for chat in server.chats]
    assert asked == [{"max_tokens": 100}, {"max_completion_tokens": 100}, {"max_completion_tokens": 100}]
    assert forms(server) == [None, None, "json_schema"]  # the schema was not what the server disliked
    assert engine.traits["length"] == "max_completion_tokens"


def test_the_most_likely_words_are_asked_for_where_the_server_allows_it() -> None:
    greedy = [replace(request, is_greedy=True) for request in (STRUCTURED, PLAIN)]
    for behaviour, asked in (("ok", [0, 0, None]), ("its_own_temperature", [0, None, None, None])):
        with ApiServer(behaviour) as server:
            ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), *greedy, PLAIN)
        assert [chat.body.get("temperature") for chat in server.chats] == asked
        assert forms(server)[-3:] == ["json_schema", None, None]  # the schema was not what the server disliked


def test_a_server_that_rejects_both_names_of_the_bound_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "'max_tokens'+'max_completion_tokens'")  # which the server quotes in what it rejects
    with ApiServer("400") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert type(failure(server)) is RejectedError
    assert [sorted(name for name in chat.body if name.startswith("max_")) for chat in server.chats] == [
        ["max_tokens"],
        ["max_completion_tokens"],
    ]


def test_what_an_engine_found_out_saves_the_next_one_the_way() -> None:
    with ApiServer("no_schema") as server:
        first, second = (OpenAIEngine("tiny-vlm", base_url=server.base_url) for _ in range(2))
        ask(first, STRUCTURED)
        second.traits.update(first.traits)
        ask(second, STRUCTURED)
    assert forms(server) == ["json_schema", "json_object", "json_object"]


def test_a_server_that_only_pretends_to_know_schemas_is_asked_in_simpler_terms() -> None:
    with ApiServer("not_enforced", "not_enforced", "ok") as server:
        replies = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), *[STRUCTURED] * 4)
    assert [reply.text == CAPTION for reply in replies] == [True, True, False, False]
    assert forms(server) == ["json_schema", "json_schema", "json_object", "json_object"]


def test_json_that_lacks_what_the_schema_requires_shows_that_it_is_not_held_to() -> None:
    with ApiServer("outside_schema", "outside_schema", "ok") as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), *[STRUCTURED] * 4)
    assert forms(server) == ["json_schema", "json_schema", "json_object", "json_object"]


@pytest.mark.parametrize(("title", "name"), [("Famous", "Famous"), ("a list: of things", "a_list__of_things"), (None, "reply")])
def test_a_schema_is_sent_under_a_name_that_openai_takes(title: str | None, name: str) -> None:
    schema = {"type": "object", "properties": {}, **({"title": title} if title else {})}
    body = OpenAIEngine("tiny-vlm", base_url="http://localhost:9/v1").build_body(replace(STRUCTURED, schema=schema))
    assert body["response_format"] == {"type": "json_schema", "json_schema": {"name": name, "schema": schema, "strict": True}}


def test_a_server_that_pretends_to_know_json_too_is_asked_in_words() -> None:
    with ApiServer("not_enforced") as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), *[STRUCTURED] * 6)
    assert forms(server) == ["json_schema", "json_schema", "json_object", "json_object", None, None]


def test_a_model_that_slips_after_good_answers_does_not_lose_its_schema() -> None:
    with ApiServer("ok", "not_enforced") as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), *[STRUCTURED] * 5)
    assert set(forms(server)) == {"json_schema"}


@pytest.mark.parametrize(
    ("behaviours", "asked"),
    [
        (("ok", "no_schema", "not_enforced", "not_enforced", "ok"), ["json_schema", "json_schema", "json_object", "json_object", None]),
        (("not_enforced", "no_schema", "not_enforced", "ok"), ["json_schema", "json_schema", "json_object", "json_object"]),
        (("not_enforced", "ok", "not_enforced", "ok"), ["json_schema"] * 4),
    ],
    ids=["good", "bad", "same form"],
)
def test_what_answers_in_another_form_were_like_counts_no_longer(behaviours: tuple[str, ...], asked: list[str | None]) -> None:
    """`no_schema` refuses the form; the same question is asked again in the next one."""
    with ApiServer(*behaviours) as server:
        ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), *[STRUCTURED] * (len(behaviours) - ("no_schema" in behaviours)))
    assert forms(server) == asked


class Pretender(ApiServer):
    """Answers a schema in prose and all else well; its first answer waits until it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.holds, self.let_go = Event(), Event()

    def next_behaviour(self, asked: Asked) -> str:
        if not self.holds.is_set():
            self.holds.set()
            self.let_go.wait(30)
        return "not_enforced" if asked.body["response_format"]["type"] == "json_schema" else "ok"


def test_an_answer_from_before_a_simpler_form_was_found_does_not_bring_the_old_one_back() -> None:
    with Pretender() as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)

        async def go() -> None:
            try:
                first = asyncio.create_task(engine.generate(STRUCTURED))
                while not server.holds.is_set():
                    await asyncio.sleep(0.01)
                for _ in range(3):
                    await engine.generate(STRUCTURED)
                server.let_go.set()
                assert (await first).text == CAPTION
                await engine.generate(STRUCTURED)
            finally:
                server.let_go.set()
                await engine.close()

        asyncio.run(go())
    assert forms(server) == ["json_schema", "json_schema", "json_schema", "json_object", "json_object"]


@pytest.mark.parametrize("behaviour", ["fenced", "thinking"])
def test_json_is_found_between_fences_and_thoughts(behaviour: str) -> None:
    with ApiServer(behaviour) as server:
        plain, structured = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN, STRUCTURED)
    assert plain.text == CAPTION
    assert Famous.model_validate_json(structured.text).mood == "calm"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ('{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ('Here: {"a": {"b": 1}, "c": [{}]} as asked.', '{"a": {"b": 1}, "c": [{}]}'),
        ('```json\n{"a": {"b": [1, {"c": 2}]}}\n```', '{"a": {"b": [1, {"c": 2}]}}'),
        ('```\n{"a": "```"}\n```', '{"a": "```"}'),
        ('<think>{"no": 1}</think>\n{"a": {"b": 1}}', '{"a": {"b": 1}}'),
        ("} no object {", "} no object {"),
    ],
)
def test_an_object_in_an_object_is_found_whole(said: str, found: str) -> None:
    completion = {"choices": [{"message": {"content": said}, "finish_reason": "stop"}]}
    engine = OpenAIEngine("tiny-vlm", base_url="http://localhost:9/v1")
    assert engine.parse_reply(completion, STRUCTURED).text == found
    assert engine.parse_reply(completion, PLAIN).text == said.rpartition("</think>\n")[2].replace("\n", " "), "all of a text, in one line"


def test_of_several_answers_the_first_is_taken() -> None:
    choices = [{"message": {"content": said}, "finish_reason": "stop"} for said in ("one", "two")]
    assert OpenAIEngine("tiny-vlm", base_url="http://localhost:9/v1").parse_reply({"choices": choices}, PLAIN).text == "one"


@pytest.mark.parametrize(
    ("page", "names"),
    [
        ({"data": [{"id": "b"}, {"id": "a"}]}, ["b", "a"]),
        ({"data": [{"id": 5}, {}, "c", None, {"id": "\x1b[2Ja"}, {"id": "a\nb"}, {"id": "d" * (LONGEST_NAME + 1)}, {"id": "a"}]}, ["a"]),
        ({"data": [{"id": "d" * LONGEST_NAME}]}, ["d" * LONGEST_NAME]),
        ({"data": {"id": "a"}}, []),
        ({"models": []}, []),
        ([{"id": "a"}], []),
        (None, []),
    ],
    ids=lambda value: str(value)[:20],
)
def test_models_are_known_by_names_that_can_be_shown(page: object, names: list[str]) -> None:
    assert _model_ids(page) == names


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize("behaviour", ["401", "400", "404", "403", "500", "429", "402"])
def test_a_key_that_the_server_echoes_is_nowhere_in_the_error(behaviour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ApiServer(behaviour, models="401") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        error = failure(server)
        assert f"Bearer {KEY}" in server.chats[0].headers["authorization"]
    shown = "".join(traceback.format_exception(error))
    assert KEY not in shown
    assert "[redacted]" in shown


def test_a_key_of_another_shape_is_cut_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "myOwnToken.77")
    with ApiServer("401") as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        error = failure(server)
    assert "does not accept the API key" in str(error)
    assert "myOwnToken" not in "".join(traceback.format_exception(error))


def test_a_key_in_what_an_error_comes_from_is_cut_out_too() -> None:
    first, second, last = OSError("sent myOwnToken.77"), ValueError("sent myOwnToken.77"), openai.OpenAIError("no")
    second.__context__, last.__cause__ = first, second
    translate(last, ServerIdentity("http://localhost/v1", "m", "myOwnToken.77", 1.0))
    shown = "".join(traceback.format_exception(last))
    assert "myOwnToken" not in shown
    assert shown.count("sent [redacted]") == 2


def test_a_key_that_the_server_echoes_is_nowhere_in_its_answer() -> None:
    engine = OpenAIEngine("tiny-vlm", base_url="http://anna:hunter22@localhost:9/v1")
    said = {"choices": [{"message": {"content": "a hunter22"}, "finish_reason": "stop"}], "model": "tiny hunter22\n"}
    reply = engine.parse_reply(said, PLAIN)
    assert (reply.text, reply.model) == ("a [redacted]", "tiny [redacted]")
    with pytest.raises(ReplyError, match=r'refused to answer: "not for \[redacted\]"') as raised:
        engine.parse_reply({"choices": [{"message": {"refusal": "not for hunter22"}}]}, PLAIN)
    assert raised.value.kind == "refusal"


@pytest.mark.parametrize("text", ["```" + "\n" * 99_000 + "x", "<think>" * 10_000, "{" * 50_000 + "\n" * 40_000])
def test_a_long_answer_takes_no_longer_than_its_letters(text: str) -> None:
    engine = OpenAIEngine("tiny-vlm", base_url="http://localhost:9/v1")
    said = {"choices": [{"message": {"content": text}, "finish_reason": "stop"}], "model": "tiny"}
    start = time.process_time()
    engine.parse_reply(said, STRUCTURED)
    assert time.process_time() - start < 3


def test_user_name_and_password_of_the_address_are_nowhere() -> None:
    with ApiServer("500") as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url.replace("127.0.0.1", "anna:hunter22@127.0.0.1"))
        assert "hunter22" not in f"{engine!r} {engine.name} {engine.capabilities!r}"
        with pytest.raises(EngineError) as caught:
            ask(engine, PLAIN)
        assert server.chats, "the server was asked all the same"
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter22" not in shown
    assert "anna" not in str(caught.value)


@settings(deadline=None)
@given(before=st.text(max_size=20), key=st.from_regex(r"[A-Za-z0-9_.-]{12,60}", fullmatch=True), after=st.text(max_size=400))
def test_redaction_leaves_no_key_in_any_text(before: str, key: str, after: str) -> None:
    server = ServerIdentity("http://localhost/v1", "m", key, 1.0)
    assert key not in server.redact(f"{before}{key}{after}{key}")


# ---------------------------------------------------------------- the table of exceptions


def _exceptions() -> list[type[Exception]]:
    found = {
        value.__name__: value
        for module in (openai, openai._exceptions)
        for value in list(vars(module).values())
        if inspect.isclass(value) and issubclass(value, Exception) and not value.__name__.startswith("_")
    }
    return [found[name] for name in sorted(found)]


def test_the_library_has_exceptions_to_translate() -> None:
    assert {"APIConnectionError", "RateLimitError", "BadRequestError"} <= {kind.__name__ for kind in _exceptions()}


@pytest.mark.parametrize("kind", _exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_of_the_library_is_translated(kind: type[Exception]) -> None:
    assert kind.__name__ in TRANSLATIONS, f"openai {openai.__version__} raises {kind.__name__}: give it a row in TRANSLATIONS"
    exc = kind.__new__(kind, f"it broke with {KEY}")
    exc.args = (f"it broke with {KEY}",)
    error = translate(exc, ServerIdentity("http://localhost/v1", "tiny-vlm", KEY, 120))
    assert isinstance(error, EngineError | ReplyError)
    assert str(error).endswith((".", "?", '"')), error
    assert KEY not in f"{error} {exc}"
