"""What is known of a server: whose key it gets, what is not said of it, which of its errors are about a request."""

from __future__ import annotations

from base64 import b64encode

import pytest

from vip.models.openai.errors import LONGEST_QUOTE, ServerIdentity, is_rejection
from vip.models.openai.redaction import REDACTED
from vip.models.openai.server import find_key, is_of_environment, parse_detail


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
        ("http://box/v1", "http://[box/v1", False),
    ],
)
@pytest.mark.parametrize("variable", ["OPENAI_BASE_URL", "VIP_BASE_URL", "VIP_ENGINE", "VIP_DESCRIBE_ENGINE", "VIP_STRUCTURE_ENGINE"])
def test_a_key_is_for_one_scheme_host_and_port(
    variable: str, address: str, named: str, is_for_it: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"openai:model@{named}" if "ENGINE" in variable else f" {named} ")
    monkeypatch.setenv("OPENAI_API_KEY", " sk-of-the-user ")
    assert is_of_environment(address) is is_for_it
    assert find_key(None, address) == ("sk-of-the-user" if is_for_it else None)


@pytest.mark.parametrize(
    ("detail", "base_url", "in_environment", "model", "address"),
    [
        (None, None, None, "", "https://official/v1"),
        ("m", None, "", "m", "https://official/v1"),
        ("m", None, " \n", "m", "https://official/v1"),
        ("m", None, " http://env/v1 \n", "m", "http://env/v1"),
        ("m", "http://option/v1", "http://env/v1", "m", "http://option/v1"),
        ("m@http://own/v1", "http://option/v1", "http://env/v1", "m", "http://own/v1"),
        ("@http://own/v1", None, None, "", "http://own/v1"),
        ("a@b@https://own/v1", None, None, "a@b", "https://own/v1"),
        ("m@2", "http://option/v1", None, "m@2", "http://option/v1"),
    ],
)
def test_the_nearest_of_several_addresses_holds(
    detail: str | None, base_url: str | None, in_environment: str | None, model: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    if in_environment is not None:
        monkeypatch.setenv("OPENAI_BASE_URL", in_environment)
    assert parse_detail(detail, base_url, "https://official/v1") == (model, address)


@pytest.mark.parametrize(
    ("base_url", "shown"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("http://localhost:8000/v1/", "http://localhost:8000/v1"),
        ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
        ("http://ann:pw@[2001:db8::7]/v1?key=k", "http://[2001:db8::7]/v1"),
        ("https://box", "https://box"),
    ],
)
def test_the_address_that_is_shown_can_be_typed_again(base_url: str, shown: str) -> None:
    assert ServerIdentity(base_url, "m", None, 1.0).address == shown


def test_a_server_is_named_without_its_secrets_in_any_spelling() -> None:
    server = ServerIdentity("http://ann:pass%20word@box:8000/v1/?token=one two", "m", None, 1.0)
    assert server.address == "http://box:8000/v1"
    for told in ("token=one two", "token%3Done%20two", "token%3Done+two"):
        assert server.remove_secrets(f"It said {told}.") == f"It said {REDACTED}."


@pytest.mark.parametrize("before", range(LONGEST_QUOTE - 40, LONGEST_QUOTE + 2))
def test_a_long_message_is_cut_behind_what_is_redacted_and_not_within_a_secret(before: int) -> None:
    key = "house-0123456789-abcdefghijkl"
    server = ServerIdentity("http://ann:pass.word@box:8000/v1", "m", key, 1.0)
    for spelt, start in (
        (key, "hous"),
        (b64encode(key.encode()).decode(), "aG91"),
        ("sk-Another0123456789", "sk-A"),
        ("//ann:pass.word@box/", "ann"),
    ):
        said = server.redact(f"{'.' * before} {spelt} {'.' * 40}")
        assert len(said) <= LONGEST_QUOTE + 1
        assert start not in said


ABOUT_A_PICTURE = (
    *("content_filter", "content_policy_violation", "image_content_policy_violation", "moderation_blocked", "image_parse_error"),
    *("image_too_large", "image_too_small", "invalid_base64_image", "invalid_image", "invalid_image_format"),
)
"""As the reference of the API names them."""


class RefusedError(Exception):
    def __init__(self, status_code: int, **body: str) -> None:
        self.status_code, self.body = status_code, body


@pytest.mark.parametrize("status", [400, 422, 501])
def test_a_server_that_does_not_know_a_parameter_may_say_so_by_three_codes(status: int) -> None:
    assert is_rejection(RefusedError(status))
    assert is_rejection(RefusedError(status, code="unknown_parameter"))
    assert not any(is_rejection(RefusedError(status, **{name: code})) for name in ("code", "type") for code in ABOUT_A_PICTURE)
    assert not is_rejection(RefusedError(404))
