"""The conformance suite of engines: each does what its capabilities say.

`openai` is asked against the test server, `transformers` with small models.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import cv2
import pytest

from tests.api_server import ApiServer
from tests.models import tiny_chat_models
from tests.models.test_offline import FACTS
from tests.models.tiny_models import picture
from vip import registry
from vip.captioning.session import open_session
from vip.config import CaptionSettings
from vip.errors import BackendError, EngineError, ReplyError
from vip.llm.client import EngineClient
from vip.models.openai import errors
from vip.prompts import load_prompts
from vip.protocols import Engine, Picture, Reply, Request
from vip.records import Famous

ENGINES = ("fake", "offline", "openai", "transformers:llama", "transformers:llava", "transformers:blip")
SCHEMA = Famous.model_json_schema()
ResultT = TypeVar("ResultT")
engines = pytest.mark.parametrize("name", ENGINES)


@pytest.fixture(scope="module")
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Folders with small models, built when they are first asked for."""
    folders: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in folders:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of building models, which users do not do
                folders[kind] = getattr(tiny_chat_models, f"save_{kind}")(tmp_path_factory.mktemp(kind))
        return folders[kind]

    return folder


Settings = Callable[[str], dict[str, Any]]


@pytest.fixture
def settings(server: ApiServer, models: Callable[[str], Path]) -> Settings:
    """The settings with which a user would name an engine."""

    def of(name: str) -> dict[str, Any]:
        head, _, kind = name.partition(":")
        if head == "openai":
            return {"engine": "openai:tiny-vlm", "base_url": server.base_url}
        return {"engine": f"transformers:{models(kind)}", "device": "cpu", "precision": "fp32"} if kind else {"engine": head}

    return of


@pytest.fixture
def engine(name: str, settings: Settings) -> Engine:
    return made(settings(name))


def made(settings: dict[str, Any]) -> Engine:
    return registry.engine(settings["engine"], **{key: value for key, value in settings.items() if key != "engine"})


def shown(seed: int = 1) -> Picture:
    return Picture(cv2.imencode(".jpg", picture(seed, 60, 90))[1].tobytes(), "image/jpeg")


def question(engine: Engine, number: int = 1, **more: Any) -> Request:
    """A question about a picture that is right for this engine."""
    can = engine.capabilities
    about = {"facts": FACTS if can.measures else None, "pictures": (shown(number),) if can.sees else ()}
    return Request("caption", f"What is in picture {number}?", **{**about, "max_tokens": 40, **more})


async def answered(engine: Engine, request: Request) -> str:
    """The text; what went wrong where random weights are to blame."""
    reply = (await asyncio.gather(engine.generate(request), return_exceptions=True))[0]
    if is_of_random_weights(reply):
        return str(reply)
    if isinstance(reply, BaseException):
        raise reply
    assert isinstance(reply, Reply)
    assert reply.text
    assert reply.model
    return reply.text


def is_of_random_weights(reply: object) -> bool:
    return isinstance(reply, ReplyError) and reply.kind in {"empty", "length"}


def run(engine: Engine, work: Awaitable[ResultT]) -> ResultT:
    async def go() -> ResultT:
        try:
            return await work
        finally:
            await engine.close()

    return asyncio.run(go())


def together(engine: Engine, requests: Sequence[Request]) -> list[str]:
    async def go() -> list[str]:
        return await asyncio.gather(*(answered(engine, request) for request in requests))

    return run(engine, go())


# ---------------------------------------------------------------- what it is shown


@engines
def test_an_engine_answers_the_question_that_its_record_allows(engine: Engine) -> None:
    assert together(engine, [question(engine)])


@engines
def test_an_engine_sees_only_where_it_says_so(engine: Engine) -> None:
    can = engine.capabilities
    if can.sees:
        if not (can.measures or engine.name == "fake" or can.captions_only):
            first, second = together(engine, [question(engine, schema=SCHEMA, pictures=(shown(seed),)) for seed in (1, 2)])
            assert first != second or engine.name != "openai:tiny-vlm", "the test server names the picture"
    else:
        with pytest.raises(BackendError, match="cannot look at a picture"):
            together(engine, [question(engine, pictures=(shown(),))])


@engines
def test_an_engine_measures_only_where_it_says_so(engine: Engine) -> None:
    blind = question(engine, facts=None)
    if engine.capabilities.measures:
        with pytest.raises(EngineError, match="describes what was measured"):
            together(engine, [blind])
    else:
        assert together(engine, [blind]) == together(engine, [replace(blind, facts=FACTS)]), "the facts are not for it"


@engines
def test_an_engine_that_writes_captions_only_refuses_the_rest_and_others_fit_a_schema(engine: Engine) -> None:
    request = question(engine, schema=SCHEMA, max_tokens=400)
    if engine.capabilities.captions_only:
        with pytest.raises(BackendError, match="captions only"):
            together(engine, [request])
    else:
        (text,) = together(engine, [replace(request, stage="structure")])
        assert engine.name.startswith("transformers:") or Famous.model_validate_json(text)


# ---------------------------------------------------------------- how it is asked


@engines
def test_an_engine_answers_as_many_at_once_as_it_says_and_more_as_it_does_one_by_one(engine: Engine) -> None:
    most = engine.capabilities.max_in_flight
    assert most is None or most >= 1
    requests = [question(engine, number) for number in range((most or 4) + 2)]
    assert together(engine, requests) == [together(engine, [request])[0] for request in requests]


@engines
def test_vip_has_no_more_under_way_than_the_engine_says(
    name: str, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = opened(settings(name), tmp_path)
    engine, can = client.engine, client.engine.capabilities
    most = can.max_in_flight or (1 if can.measures else None)
    now, peak, generate = 0, 0, engine.generate

    async def counted(request: Request) -> Reply:
        nonlocal now, peak
        now += 1
        peak = max(peak, now)
        try:
            await asyncio.sleep(0.01)
            return await generate(request)
        finally:
            now -= 1

    monkeypatch.setattr(engine, "generate", counted)
    prompt, count = load_prompts()["caption"], 7

    async def go() -> list[Any]:
        asked = (client.ask(question(engine, number), prompt) for number in range(count))
        return await asyncio.gather(*asked, return_exceptions=True)

    answers = run(engine, go())
    assert [one for one in answers if isinstance(one, Exception) and not is_of_random_weights(one)] == []
    assert 1 <= peak <= (most or count)


def opened(settings: dict[str, Any], folder: Path) -> EngineClient:
    """The engine as `vip caption` asks it; beside one that sees where it does not describe pictures itself."""
    can = made(settings).capabilities
    if not can.sees:
        named = {**settings, "recipe": "paper", "describe_engine": "fake", "structure_engine": settings["engine"]}
    elif can.captions_only:
        named = {**settings, "recipe": "paper", "describe_engine": settings["engine"], "structure_engine": "fake"}
    else:
        named = settings
    describer = open_session(CaptionSettings(**named, cache=folder / "answers.sqlite"), {}).describer
    return describer.describing_client if can.sees else describer.structuring_client


@engines
def test_vip_does_not_ask_for_what_the_engine_says_it_cannot_do(name: str, settings: Settings, tmp_path: Path) -> None:
    can = made(settings(name)).capabilities
    asked = CaptionSettings(**settings(name), cache=tmp_path / "answers.sqlite", language="Klingon")
    refusals = (
        (not can.sees, "takes no pictures"),
        (can.captions_only, "writes captions only"),
        (can.languages is not None, "only. Leave --language out"),
    )
    words = next((words for refused, words in refusals if refused), None)
    if words is None:
        open_session(asked, {}).close()
    else:
        with pytest.raises(BackendError, match=words):
            open_session(asked, {})


@pytest.mark.parametrize("name", ["fake", "offline", "openai"])  # the others' answers, of random weights, may be none
def test_answers_are_kept_for_the_next_run_only_where_the_engine_says_so(name: str, settings: Settings, tmp_path: Path) -> None:
    prompt, cached = load_prompts()["caption"], []
    for _ in range(2):
        client = opened(settings(name), tmp_path)
        answer = run(client.engine, client.ask(question(client.engine), prompt))
        cached.append(answer.calls[-1].cached)
        assert client.answers is not None
        client.answers.close()
    assert cached == [False, client.engine.capabilities.caches]


# ---------------------------------------------------------------- what its answers depend on, and its server


@engines
def test_what_an_engine_states_is_plain_and_stays_the_same(name: str, settings: Settings, server: ApiServer) -> None:
    first, again = (made(settings(name)).capabilities for _ in range(2))
    assert json.loads(json.dumps(dict(first.parameters))) == dict(again.parameters)
    assert first.address == again.address == (server.base_url if name == "openai" else None)
    assert first.thinking_tokens == again.thinking_tokens >= 0
    assert (first.batches is None) == (again.batches is None) == (name != "openai")
    if first.traits is not None:
        assert all(isinstance(word, str) for pair in first.traits.items() for word in pair)


def test_the_picture_detail_and_the_room_for_thinking_that_are_stated_are_those_that_are_asked_for() -> None:
    with ApiServer() as server:
        engine = made({"engine": "openai:tiny-vlm", "base_url": server.base_url, "picture_detail": "low"})
        assert engine.capabilities.picture_detail == "low"
        engine.capabilities = replace(engine.capabilities, thinking_tokens=500)
        together(engine, [question(engine)])
        asked = server.chats[-1].body
    assert asked["max_tokens"] == 540
    assert asked["messages"][0]["content"][1]["image_url"]["detail"] == "low"


def test_what_an_engine_found_out_about_its_server_spares_the_next_one_the_question() -> None:
    with ApiServer("no_format") as server:
        first, second = (made({"engine": "openai:tiny-vlm", "base_url": server.base_url}) for _ in range(2))
        together(first, [question(first, schema=SCHEMA)])
        assert len(server.chats) > 1
        assert first.capabilities.traits
        assert second.capabilities.traits
        second.capabilities.traits.update(first.capabilities.traits)
        before = len(server.chats)
        together(second, [question(second, schema=SCHEMA)])
        assert len(server.chats) == before + 1


@engines
def test_an_engine_that_works_passes_its_own_check(engine: Engine) -> None:
    if engine.capabilities.check is not None:
        engine.capabilities.check()
    assert all(together(engine, [question(engine)])), "it works"


def test_the_check_finds_that_a_key_is_missing(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "OFFICIAL_HOST", "127.0.0.1")
    missing = made({"engine": "openai:tiny-vlm", "base_url": server.base_url}).capabilities.check
    assert missing is not None
    with pytest.raises(EngineError, match="No key is set"):
        missing()


@pytest.mark.parametrize("name", ["openai"])
def test_an_engine_that_has_batches_answers_a_file_of_questions(engine: Engine, tmp_path: Path) -> None:
    async def go() -> tuple[str, dict[str, Any]]:
        batches, path = engine.capabilities.batches(), tmp_path / "rows.jsonl"  # type: ignore[misc]
        path.write_bytes(b"".join(batches.row(key, question(engine, number)) for number, key in enumerate("ab")))
        job = await batches.submit(path, "conformance")
        assert await batches.find("conformance") == job
        assert await batches.find("another") is None
        async with asyncio.timeout(30):
            while not (state := await batches.state(job)).ended:
                await asyncio.sleep(0.01)
        rows = {key: reply async for key, reply in batches.results(job)}
        await batches.discard(job)
        assert (state.total, state.completed, state.failed) == (2, 2, 0)
        return state.status, rows

    status, rows = run(engine, go())
    assert status == "completed"
    assert sorted(rows) == ["a", "b"]
    assert all(isinstance(reply, Reply) and reply.text for reply in rows.values())
