"""Which server the key of the environment is for: scheme, host and port decide."""

from __future__ import annotations

import pytest

from vip.models.openai.server import find_key, is_of_environment


@pytest.mark.parametrize(
    ("address", "named", "is_for_it"),
    [
        ("http://box:8000/v1", "http://box:8000/another/path", True),
        ("http://BOX:8000/v1", "http://box:8000/v1", True),
        ("https://box:443/v1", "https://box/v1", True),
        ("http://box/v1", "http://box:80/v1", True),
        ("http://box:8001/v1", "http://box:8000/v1", False),
        ("http://box/v1", "http://box:8000/v1", False),
        ("http://box/v1", "https://box/v1", False),
        ("http://box:443/v1", "https://box/v1", False),
        ("http://box.evil/v1", "http://box/v1", False),
        ("http://evil/box", "http://box", False),
        ("http://box/v1", "", False),
        ("https://api.openai.com/v1", "http://box/v1", True),
        ("https://eu.api.openai.com/v1", "", True),
        ("https://api.openai.com.evil/v1", "", False),
        ("https://notapi.openai.com/v1", "", False),
        ("https://evil/api.openai.com", "", False),
    ],
)
@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "VIP_BASE_URL", "VIP_DESCRIBE_ENGINE"])
def test_a_key_is_for_one_scheme_host_and_port(
    variable: str, address: str, named: str, is_for_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"openai:model@{named}" if "ENGINE" in variable else f" {named} ")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-of-the-user ")
    assert is_of_environment(address) is is_for_it
    assert find_key(None, address) == ("sk-of-the-user" if is_for_it else None)
