"""What `auto` becomes, and that nothing else becomes anything."""

from __future__ import annotations

import pytest

from vip.captioning.engines import choose_engine

URL = "http://localhost:8000/v1"


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
