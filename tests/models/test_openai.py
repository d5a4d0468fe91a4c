"""The engine `openai`, through the real openai library against a real server on localhost."""

from __future__ import annotations

import asyncio
import base64
import inspect
import re
import socket
import traceback
from collections.abc import Iterator

import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.api_server import CAPTION, ApiServer
from vip.errors import EngineError, ReplyError, UsageError, VipError
from vip.models import openai_errors
from vip.models.openai import DEFAULT_MODEL, OpenAIEngine
from vip.models.openai_errors import TRANSLATIONS, Server, translated
from vip.protocols import Facts, Picture, Reply, Request
from vip.records import Famous, Quality

KEY = "sk-proj-Sup3rSecretKeyOfTheUser"
FACTS = Facts(640, 360, 1.0, Quality(sharpness=100, brightness=0.5, contrast=0.2), (), (("blue", 1.0),), 0.5, None, None)
PICTURE = Picture(b"\xff\xd8 a picture", "image/jpeg")
PLAIN = Request("describe", "Describe it.", FACTS, (PICTURE,), max_tokens=100)
STRUCTURED = Request("structure", "Structure it.", FACTS, schema=Famous.model_json_schema(), max_tokens=100)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def official(monkeypatch: pytest.MonkeyPatch) -> Iterator[ApiServer]:
    """A server that passes for api.openai.com."""
    monkeypatch.setattr(openai_errors, "OFFICIAL_HOST", "127.0.0.1")
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


def failure(server: ApiServer, request: Request = PLAIN, *, model: str = "tiny-vlm", max_retries: int = 2) -> VipError:
    with pytest.raises(VipError) as caught:
        ask(OpenAIEngine(model, base_url=server.base_url, max_retries=max_retries), request)
    return caught.value


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


def test_a_schema_is_asked_for_strictly() -> None:
    with ApiServer() as server:
        (reply,) = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), STRUCTURED)
    asked = server.chats[0].body["response_format"]
    assert asked["type"] == "json_schema"
    assert asked["json_schema"]["strict"] is True
    assert asked["json_schema"]["schema"]["additionalProperties"] is False
    assert set(asked["json_schema"]["schema"]["required"]) == set(Famous.model_fields)
    assert Famous.model_validate_json(reply.text).focus == "a test"


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


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with ApiServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert ask(OpenAIEngine(None), PLAIN)[0].text == CAPTION


def test_without_key_and_address_the_way_out_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "  ")
    with pytest.raises(EngineError, match=r"OPENAI_API_KEY is not set.*--engine offline"):
        OpenAIEngine("gpt-5-mini")


def test_a_key_that_cannot_be_sent_is_refused_without_showing_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-“quoted”")
    with pytest.raises(EngineError, match="Copy it again") as caught:
        OpenAIEngine("gpt-5-mini")
    assert "quoted" not in str(caught.value)


@pytest.mark.parametrize("address", ["localhost:8000", "http://", "ftp://host/v1", "http://host:99999/v1", "http://[::1", "http://a b/v1"])
def test_an_address_that_is_none_is_a_usage_error(address: str) -> None:
    with pytest.raises(UsageError, match=r"http://localhost:8000/v1"):
        OpenAIEngine("tiny-vlm", base_url=address)


# ---------------------------------------------------------------- failures, one sentence each


@pytest.mark.parametrize(
    ("behaviour", "kind", "words"),
    [
        ("401", EngineError, "asks for an API key.*Set OPENAI_API_KEY"),
        ("403", EngineError, 'does not allow the model "tiny-vlm"'),
        ("429", EngineError, "limits the rate.*tried 3 times"),
        ("quota", EngineError, "quota.*spent.*--engine offline"),
        ("500", EngineError, "fails with HTTP 500.*tried 3 times"),
        ("503", EngineError, "fails with HTTP 503"),
        ("409", EngineError, "HTTP 409"),
        ("402", EngineError, "HTTP 402"),
        ("413", ReplyError, "too large"),
        ("400", EngineError, "rejects the request.*takes? pictures"),
        ("422", EngineError, "rejects the request"),
        ("filtered_picture", ReplyError, "does not take this picture.*filtered"),
        ("page", EngineError, "not like an OpenAI-compatible server.*/v1"),
        ("half_json", ReplyError, "not whole JSON"),
        ("no_choices", ReplyError, "without any text"),
        ("empty", ReplyError, "empty answer"),
        ("length", ReplyError, "did not finish"),
        ("content_filter", ReplyError, "content filter"),
        ("refusal", ReplyError, "refused to answer.*I cannot help with that"),
    ],
)
def test_what_goes_wrong_is_said_in_one_sentence(behaviour: str, kind: type[VipError], words: str) -> None:
    with ApiServer(behaviour) as server:
        error = failure(server)
    assert type(error) is kind
    assert re.search(words, str(error)), error
    assert "\n" not in str(error)


def test_a_rate_limit_that_ends_is_waited_for() -> None:
    with ApiServer("429", "500", "ok") as server:
        (reply,) = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN)
    assert reply.text == CAPTION
    assert len(server.chats) == 3


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


def test_a_server_that_hangs_up_is_named() -> None:
    with ApiServer("drop") as server:
        error = failure(server, max_retries=0)
        assert type(error) is EngineError
        assert re.search(rf"{server.base_url} cannot be reached.*Is the server running", str(error))


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        with pytest.raises(EngineError, match=rf"{url} cannot be reached.*Is the server running there"):
            ask(OpenAIEngine("tiny-vlm", base_url=url, max_retries=0), PLAIN)


def test_a_silent_server_times_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        engine = OpenAIEngine("tiny-vlm", base_url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1", max_retries=0, timeout_s=0.2)
        with pytest.raises(EngineError, match=r"did not answer within 0\.2 s, tried once"):
            ask(engine, PLAIN)


# ---------------------------------------------------------------- servers that know no schema


@pytest.mark.parametrize(
    ("behaviour", "forms"), [("no_schema", ["json_schema", "json_object"]), ("no_format", ["json_schema", "json_object", None])]
)
def test_a_server_without_schemas_gets_it_in_words_from_then_on(behaviour: str, forms: list[str | None]) -> None:
    with ApiServer(behaviour) as server:
        replies = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), STRUCTURED, STRUCTURED)
    assert [Famous.model_validate_json(reply.text).mood for reply in replies] == ["calm", "calm"]
    asked = [chat.body.get("response_format", {}).get("type") for chat in server.chats]
    assert asked == [*forms, forms[-1]]
    assert "additionalProperties" in server.chats[-1].text


def test_a_request_rejected_in_every_form_is_an_engine_error() -> None:
    with ApiServer("400") as server:
        assert type(failure(server, STRUCTURED)) is EngineError
    assert len(server.chats) == 3


@pytest.mark.parametrize("behaviour", ["fenced", "thinking"])
def test_json_is_found_between_fences_and_thoughts(behaviour: str) -> None:
    with ApiServer(behaviour) as server:
        plain, structured = ask(OpenAIEngine("tiny-vlm", base_url=server.base_url), PLAIN, STRUCTURED)
    assert plain.text == CAPTION
    assert Famous.model_validate_json(structured.text).mood == "calm"


# ---------------------------------------------------------------- secrets


@pytest.mark.parametrize("behaviour", ["401", "400", "404", "403", "500", "429", "402"])
def test_a_key_that_the_server_echoes_is_nowhere_in_the_error(behaviour: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ApiServer(behaviour, models="401") as server:
        error = failure(server)
        assert f"Bearer {KEY}" in server.chats[0].headers["authorization"]
    shown = "".join(traceback.format_exception(error))
    assert KEY not in shown
    assert "[redacted]" in shown


def test_a_key_of_another_shape_is_cut_out_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "myOwnToken.77")
    with ApiServer("401") as server:
        error = failure(server)
    assert "does not accept the API key" in str(error)
    assert "myOwnToken" not in "".join(traceback.format_exception(error))


def test_user_name_and_password_of_the_address_are_nowhere() -> None:
    with ApiServer("500") as server:
        engine = OpenAIEngine("tiny-vlm", base_url=server.base_url.replace("127.0.0.1", "anna:hunter22@127.0.0.1"))
        assert "hunter22" not in f"{engine!r} {engine.name}"
        with pytest.raises(EngineError) as caught:
            ask(engine, PLAIN)
        assert server.chats, "the server was asked all the same"
    shown = "".join(traceback.format_exception(caught.value))
    assert "hunter22" not in shown
    assert "anna" not in str(caught.value)


@settings(deadline=None)
@given(before=st.text(max_size=20), key=st.from_regex(r"[A-Za-z0-9_.-]{12,60}", fullmatch=True), after=st.text(max_size=400))
def test_redaction_leaves_no_key_in_any_text(before: str, key: str, after: str) -> None:
    server = Server("http://localhost/v1", "m", key, 3, 1.0)
    assert key not in server.redacted(f"{before}{key}{after}{key}")


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
    error = translated(exc, Server("http://localhost/v1", "tiny-vlm", KEY, 3, 120))
    assert isinstance(error, EngineError | ReplyError)
    assert str(error).endswith((".", "?", '"')), error
    assert KEY not in f"{error} {exc}"
