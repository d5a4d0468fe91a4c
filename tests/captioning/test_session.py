"""What `auto` becomes, that nothing else becomes anything, and what each engine is made with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import Scripted
from vip import registry
from vip.captioning.session import CaptionSession, check_settings, choose_engine, is_auto_offline, open_session
from vip.config import CaptionSettings
from vip.errors import BackendError, EngineError, UsageError
from vip.llm.budget import Budget

URL, OTHER_URL = "http://localhost:8000/v1", "http://localhost:9000/v1"
KEY = {"OPENAI_API_KEY": "a-key"}


@pytest.mark.parametrize("name", ["offline", "openai", "openai:gpt-5-mini", "fake", "transformers:x/y", "misspelt"])
@pytest.mark.parametrize("environment", [{}, {"OPENAI_API_KEY": "sk-1"}, {"OPENAI_BASE_URL": URL}])
def test_a_named_engine_is_never_replaced(name: str, environment: dict[str, str]) -> None:
    assert choose_engine(name, None, environment).engine == name
    assert choose_engine(name, URL, environment).engine == name


@pytest.mark.parametrize(
    ("base_url", "environment", "expected", "word"),
    [
        (None, {}, ("offline", None), "no key is set"),
        (None, {"OPENAI_API_KEY": ""}, ("offline", None), "no key is set"),
        (None, {"OPENAI_API_KEY": " ", "OPENAI_BASE_URL": " "}, ("offline", None), "no key is set"),
        (None, {"OPENAI_API_KEY": "sk-1"}, ("openai", None), "OPENAI_API_KEY is set"),
        (None, {"OPENAI_BASE_URL": URL}, ("openai", URL), "OPENAI_BASE_URL is set"),
        (URL, {}, ("openai", URL), "--base-url localhost:8000"),
        (URL, {"OPENAI_BASE_URL": "http://other/v1", "OPENAI_API_KEY": "sk-1"}, ("openai", URL), "--base-url localhost:8000"),
    ],
)
def test_auto_takes_the_api_where_one_is_set(
    base_url: str | None, environment: dict[str, str], expected: tuple[str, str | None], word: str
) -> None:
    choice = choose_engine("auto", base_url, environment)
    assert (choice.engine, choice.base_url) == expected
    assert word in choice.reason


def test_the_reason_shows_neither_key_nor_password() -> None:
    environment = {"OPENAI_API_KEY": "sk-secret"}
    for address in ("http://anna:hunter22@host:8000/v1", "anna:hunter22@host/v1", "http://anna:hunter22@host:99999"):
        reason = choose_engine("auto", address, environment).reason
        assert "hunter22" not in reason
        assert "secret" not in reason
    assert "host:8000" in choose_engine("auto", "http://anna:hunter22@host:8000/v1", environment).reason


def test_the_address_of_the_environment_reaches_a_named_openai_only() -> None:
    environment = {"OPENAI_BASE_URL": URL}
    assert choose_engine("openai:x", None, environment).base_url == URL
    assert choose_engine("offline", None, environment).base_url is None


# ---------------------------------------------------------------- engines with all that is needed to ask them


class Mine(Scripted):
    """An engine that runs here; what sets it apart comes from the test."""

    about: dict[str, Any]

    def __init__(self, detail: str | None, **settings: Any) -> None:
        super().__init__(name=f"mine:{detail}", settings=settings, **self.about)


Maker = Callable[..., CaptionSession]


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    """Makes engines of settings, `mine` among them, and closes their file of answers in the end."""
    monkeypatch.setitem(registry.BUILT_IN["engine"], "mine", "tests.captioning.test_session:Mine")
    with ExitStack() as stack:

        def making(*, environment: dict[str, str] | None = None, mine: dict[str, Any] | None = None, **settings: Any) -> CaptionSession:
            monkeypatch.setattr(Mine, "about", mine or {}, raising=False)
            for name, value in (environment or {}).items():
                monkeypatch.setenv(name, value)
            done = open_session(CaptionSettings(**{"cache": tmp_path / "answers.sqlite", **settings}), environment or {})
            stack.callback(done.close)
            return done

        yield making


@pytest.mark.parametrize(
    ("named", "engines"),
    [
        ({"engine": "mine:a"}, ("mine:a", "mine:a")),
        ({"engine": "mine:a", "describe_engine": "mine:b"}, ("mine:b", "mine:a")),
        ({"engine": "mine:a", "structure_engine": "mine:b"}, ("mine:a", "mine:b")),
        ({"describe_engine": "mine:b", "structure_engine": "mine:c"}, ("mine:b", "mine:c")),
    ],
)
def test_who_sees_and_who_reads_may_be_named_apart(named: dict[str, str], engines: tuple[str, str], made: Maker) -> None:
    describer = made(recipe="paper", **named).describer
    assert (describer.describing_client.engine.name, describer.structuring_client.engine.name) == engines
    assert len(describer.clients) == len(set(engines))


def test_an_engine_is_made_with_what_the_user_says(made: Maker, tmp_path: Path) -> None:
    more = {"base_url": URL, "key_file": tmp_path / "key", "picture_detail": "low", "device": "cpu"}
    engine: Any = made(engine="mine:a", request_timeout=7, **more).describer.describing_client.engine
    assert engine.settings == {**more, "timeout_s": 7.0, "precision": CaptionSettings().precision}


def test_engines_at_one_server_share_its_limits(made: Maker) -> None:
    two = {"recipe": "paper", "describe_engine": "openai:a", "rpm": 60, "tpm": 9000}
    same = made(structure_engine="openai:b", base_url=URL, **two).describer
    assert same.describing_client.limiter is same.structuring_client.limiter
    assert (same.describing_client.limiter.rpm, same.describing_client.limiter.tpm) == (60, 9000)
    apart = made(structure_engine=f"openai:b@{OTHER_URL}", base_url=URL, **two).describer
    assert apart.describing_client.limiter is not apart.structuring_client.limiter
    here = made(**{**two, "describe_engine": "mine:a", "structure_engine": "mine:b"}).describer
    assert here.describing_client.limiter is not here.structuring_client.limiter


@pytest.mark.parametrize(
    ("mine", "concurrency", "most"),
    [
        ({}, None, None),
        ({}, 5, 5),
        ({"max_in_flight": 4}, None, 4),
        ({"max_in_flight": 4}, 2, 2),
        ({"max_in_flight": 4}, 9, 4),
        ({"measures": True}, 9, 1),
    ],
)
def test_no_more_are_in_flight_than_engine_and_user_allow(
    mine: dict[str, Any], concurrency: int | None, most: int | None, made: Maker
) -> None:
    assert made(engine="mine:a", mine=mine, concurrency=concurrency).describer.describing_client.limiter.most == most


@pytest.mark.parametrize(
    ("settings", "ceiling", "given"),
    [
        ({"engine": "openai:gpt-5-mini"}, 5.0, False),
        ({"engine": "openai:gpt-5-mini", "max_usd": 0.5}, 0.5, True),
        ({"engine": "openai:gpt-5-mini", "max_usd": 0}, 0.0, True),
        ({"engine": "openai:unheard-of", "base_url": URL}, None, False),
        ({"engine": "mine:a", "max_usd": 2}, 2.0, True),
    ],
)
def test_where_a_price_is_known_there_is_a_ceiling(settings: dict[str, Any], ceiling: float | None, given: bool, made: Maker) -> None:
    budget = made(environment=KEY, **settings).budget
    assert (budget.max_usd, budget.given) == (ceiling, given)


def test_one_of_two_prices_is_enough_for_a_ceiling_of_its_own_but_not_for_one_that_is_given(made: Maker) -> None:
    two = {"recipe": "paper", "describe_engine": "openai:gpt-5-mini", "structure_engine": f"openai:unheard-of@{URL}"}
    assert made(environment=KEY, **two).budget.max_usd == 5.0
    with pytest.raises(UsageError, match="the price of openai:unheard-of is unknown"):
        made(environment=KEY, max_usd=1, **two)


def test_several_calls_share_a_ledger(tmp_path: Path) -> None:
    budget = Budget()
    done = open_session(CaptionSettings(engine="fake", cache=tmp_path / "answers.sqlite"), {}, budget)
    done.close()
    assert done.budget is done.describer.describing_client.budget is budget
    assert budget.max_usd is None


def test_room_to_think_is_left_only_to_a_model_that_thinks(made: Maker) -> None:
    thinks, does_not = (made(environment=KEY, engine=f"openai:{model}").describer.describing_client for model in ("gpt-5-mini", "gpt-4.1"))
    assert thinks.engine.capabilities.thinking_tokens > 0
    assert does_not.engine.capabilities.thinking_tokens == 0


def test_what_was_found_out_about_a_server_is_known_the_next_time(made: Maker) -> None:
    client = made(engine="openai:a", base_url=URL).describer.describing_client
    client.engine.traits["form"] = "text"  # type: ignore[attr-defined]
    asyncio.run(client.close())
    again, other = (made(engine=f"openai:{model}", base_url=URL).describer.describing_client.engine for model in "ab")
    assert again.traits["form"] == "text"  # type: ignore[attr-defined]
    assert other.traits["form"] == "json_schema"  # type: ignore[attr-defined]
    two = made(recipe="paper", describe_engine="openai:b", structure_engine="openai:a", base_url=URL).describer
    assert [client.engine.traits["form"] for client in two.clients] == ["json_schema", "text"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("mine", "settings", "words"),
    [
        ({"sees": False}, {}, r"mine:a takes no pictures\. Name a model that does with --describe-engine"),
        ({"captions_only": True}, {}, "mine:a writes captions only"),
        ({"captions_only": True}, {"recipe": "paper"}, "mine:a writes captions only"),
        ({"languages": ("English", "French")}, {"language": "German"}, "mine:a writes English and French only"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(mine: dict[str, Any], settings: dict[str, Any], words: str, made: Maker) -> None:
    with pytest.raises(BackendError, match=words):
        made(engine="mine:a", mine=mine, **settings)


@pytest.mark.parametrize(
    ("mine", "words"),
    [
        ({"captions_only": True}, "mine:a writes captions only"),
        ({"languages": ("English", "French")}, "mine:a writes English and French only"),
    ],
)
def test_what_the_engine_that_reads_cannot_do_is_refused_too(mine: dict[str, Any], words: str, made: Maker) -> None:
    engines = {"describe_engine": "fake", "structure_engine": "mine:a"}
    with pytest.raises(BackendError, match=words):
        made(**engines, mine=mine, recipe="paper", language="German")
    assert made(**engines, mine={"sees": False}, recipe="paper").describer.structuring_client.engine.name == "mine:a"


def test_what_an_engine_can_do_is_not_refused(made: Maker) -> None:
    french = made(engine="mine:a", mine={"languages": ("English", "French")}, language="French").describer
    assert (french.describing_client.engine.name, french.config.language) == ("mine:a", "French")
    both = made(describe_engine="mine:a", structure_engine="fake", mine={"captions_only": True}, recipe="paper").describer
    assert (both.describing_client.engine.name, both.structuring_client.engine.name) == ("mine:a", "fake")


def test_one_who_reads_has_something_to_do_in_the_recipe_direct_for_a_topic_only(made: Maker) -> None:
    with pytest.raises(UsageError, match="--structure-engine has nothing to do in the recipe direct"):
        made(engine="mine:a", structure_engine="mine:b")
    assert made(engine="mine:a", structure_engine="mine:b", topic="Surfing").describer.structuring_client.engine.name == "mine:b"


@pytest.mark.parametrize(
    ("settings", "notes"),
    [
        ({"engine": "mine:a", "topic": "Surfing"}, []),
        ({"engine": "offline"}, []),
        ({"engine": "offline", "topic": "Surfing"}, ["The engine offline reads no text: --topic and --context are left aside."]),
        ({"engine": "offline", "context": 2}, ["The engine offline reads no text: --topic and --context are left aside."]),
        ({}, ["engine: offline; no key is set (OPENAI_API_KEY, or --base-url URL for a server of your own)"]),
        (
            {"recipe": "paper", "structure_engine": "openai:a", "base_url": URL},
            ["engine: openai:the-only-one; --base-url localhost:8000"],
        ),
    ],
)
def test_the_user_is_told_once_what_auto_became_and_what_is_left_aside(
    settings: dict[str, Any], notes: list[str], made: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.models.openai.engine.OpenAIEngine._first_model", lambda engine: "the-only-one")
    assert [str(note) for note in made(**settings).notes] == notes


def test_only_auto_without_a_key_is_offline_by_default(made: Maker) -> None:
    assert made().is_auto_offline
    assert not made(engine="offline").is_auto_offline
    assert not made(environment=KEY).is_auto_offline
    assert is_auto_offline(CaptionSettings(), {})
    assert not is_auto_offline(CaptionSettings(engine="offline"), {})
    assert not is_auto_offline(CaptionSettings(), KEY)
    assert not is_auto_offline(CaptionSettings(describe_engine="offline"), {})


# ---------------------------------------------------------------- before any video is looked at


def test_a_missing_key_is_refused_where_somebody_is_asked() -> None:
    settings = CaptionSettings(engine="openai:gpt-5-mini")
    with pytest.raises(EngineError, match="No key is set"):
        check_settings(settings, {})
    check_settings(settings, {}, asks=False)
    check_settings(CaptionSettings(engine="openai:tiny", base_url=URL), {})


def test_a_ceiling_that_cannot_be_kept_is_refused_and_another_is_not() -> None:
    check_settings(CaptionSettings(engine="openai:gpt-5-mini", max_usd=1), {}, asks=False)
    with pytest.raises(UsageError, match="--max-usd cannot be kept: the price of openai:unheard-of is unknown"):
        check_settings(CaptionSettings(engine="openai:unheard-of", base_url=URL, max_usd=1), {}, asks=False)


def test_a_misspelt_engine_is_refused_in_each_role() -> None:
    with pytest.raises(BackendError, match='Did you mean "offline"'):
        check_settings(CaptionSettings(engine="ofline"), {})
    with pytest.raises(BackendError, match='Did you mean "offline"'):
        check_settings(CaptionSettings(engine="fake", recipe="paper", structure_engine="ofline"), {})
