"""Errors of a server in one sentence each: which kind they are, what is quoted of them, and what is advised."""

from __future__ import annotations

import ssl
from typing import Any

import openai
import pytest

from vip.errors import BusyError, EngineError, RejectedError, ReplyError, UsageError
from vip.models.openai.engine import _alternative_length, _rejects_temperature
from vip.models.openai.errors import MOST_COMPARED, OFFICIAL_HOST, ServerIdentity, check_address, scrub, translate
from vip.models.openai.transport import http_library

HOME = ServerIdentity("http://box:8000/v1", "tiny-vlm", None, 1.5)
OFFICIAL = ServerIdentity(f"https://{OFFICIAL_HOST}/v1", "gpt-5", "sk-of-the-user", 60.0)
HTTP = http_library()
REQUEST = HTTP.Request("POST", "http://box:8000/v1/chat/completions")


def of_status(status: int, body: Any = None, **headers: str) -> openai.APIStatusError:
    """What the library raises for an answer of this status."""
    response = HTTP.Response(status, headers={name.replace("_", "-"): value for name, value in headers.items()}, request=REQUEST)
    with openai.OpenAI(api_key="k", base_url="http://box:8000/v1") as client:
        return client._make_status_error(f"Error code: {status}", body=body, response=response)


def not_sent(cause: Exception | None, *, timeout: bool = False) -> openai.APIConnectionError:
    error = openai.APITimeoutError(request=REQUEST) if timeout else openai.APIConnectionError(request=REQUEST)
    error.__cause__ = cause
    return error


# ---------------------------------------------------------------- which kind


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, RejectedError, None),
        (401, EngineError, None),
        (402, EngineError, None),
        (403, EngineError, None),
        (404, EngineError, None),
        (405, RejectedError, None),
        (408, BusyError, "server"),
        (409, BusyError, "server"),
        (413, ReplyError, "too_large"),
        (418, RejectedError, None),
        (422, RejectedError, None),
        (429, BusyError, "rate_limit"),
        (500, BusyError, "server"),
        (501, BusyError, "server"),
        (503, BusyError, "server"),
        (599, BusyError, "server"),
    ],
)
def test_a_status_is_a_try_that_failed_an_item_or_the_end(status: int, error: type[Exception], kind: str | None) -> None:
    found = translate(of_status(status, {"message": "So it is."}, retry_after="7"), HOME)
    assert type(found) is error
    assert getattr(found, "kind", None) == kind
    assert '"So it is"' in str(found)
    assert getattr(found, "retry_after_s", None) == (7.0 if error is BusyError else None)


@pytest.mark.parametrize("status", [400, 422])
@pytest.mark.parametrize(("body", "about_picture"), [({"code": "invalid_image"}, True), ({"type": "content_filter"}, True), ({}, False)])
def test_a_request_that_is_refused_for_its_picture_costs_one_item(status: int, body: dict[str, str], about_picture: bool) -> None:
    found = translate(of_status(status, {"message": "no", **body}), HOME)
    assert (type(found), getattr(found, "kind", None)) == ((ReplyError, "picture") if about_picture else (RejectedError, None))


@pytest.mark.parametrize(("code", "error"), [("insufficient_quota", EngineError), ("rate_limit_exceeded", BusyError), (None, BusyError)])
def test_a_quota_that_is_spent_does_not_pass_by_waiting(code: str | None, error: type[Exception]) -> None:
    assert type(translate(of_status(429, {"message": "too much", "code": code}), HOME)) is error


@pytest.mark.parametrize(
    ("cause", "timeout", "kind", "words"),
    [
        (HTTP.ConnectError("refused"), False, "connection", r"box:8000/v1 cannot be reached \(refused\)\. Is the server running"),
        (HTTP.ProxyError("no proxy"), False, "connection", "cannot be reached"),
        (HTTP.PoolTimeout("full"), False, "connection", "cannot be reached"),
        (None, False, "connection", r"cannot be reached\. Is the server running"),
        (HTTP.ConnectError(""), False, "connection", r"cannot be reached\. Is the server running"),
        (HTTP.ReadError(""), False, "dropped", r"hung up before its answer was whole\. Is the server well"),
        (HTTP.ReadError("reset"), False, "dropped", r"hung up before its answer was whole \(reset\)"),
        (HTTP.RemoteProtocolError("half"), False, "dropped", "hung up"),
        (HTTP.ConnectTimeout("slow"), True, "connection", r"cannot be reached \(slow\)"),
        (HTTP.ReadTimeout("slow"), True, "timeout", r"did not answer within 1\.5 s"),
        (HTTP.WriteTimeout("slow"), True, "timeout", "did not answer within"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else str(value)[:10],
)
def test_a_server_that_was_not_reached_is_told_from_one_that_may_have_worked(
    cause: Exception | None, timeout: bool, kind: str, words: str
) -> None:
    """What was dropped or came too late may have to be paid."""
    found = translate(not_sent(cause, timeout=timeout), HOME)
    assert isinstance(found, BusyError)
    assert found.kind == kind
    with pytest.raises(BusyError, match=words):
        raise found


@pytest.mark.parametrize("own", [ReplyError("It is too large.", kind="broken"), RejectedError("It sends on."), EngineError("No.")])
def test_what_vip_itself_raised_within_the_library_stays_as_it_is(own: EngineError | ReplyError) -> None:
    assert translate(not_sent(own), HOME) is own


def test_where_openai_itself_is_not_reached_the_network_is_to_be_checked() -> None:
    found = str(translate(not_sent(HTTP.ConnectError("refused")), OFFICIAL))
    assert found.endswith("cannot be reached (refused). Check the network, or use --engine offline.")


@pytest.mark.parametrize("is_cause", [True, False])
def test_a_certificate_that_is_not_valid_is_not_tried_again(is_cause: bool) -> None:
    """The HTTP library and the one below it each wrap what the TLS library raised."""
    refused = ssl.SSLCertVerificationError("long text")
    refused.verify_message = "certificate has expired"
    below = HTTP.ConnectError("long text")
    setattr(below, "__cause__" if is_cause else "__context__", refused)
    found = translate(not_sent(below), HOME)
    assert type(found) is EngineError
    assert str(found).startswith("The certificate of http://box:8000/v1 is not valid (certificate has expired). Renew it")


@pytest.mark.parametrize("address", ["http://box", "https://box:1/v1", "http://ann:pw@[::1]:65535/v1?key=k", "  http://box/v1\n"])
def test_an_address_is_taken_as_given(address: str) -> None:
    assert check_address(address) == address.strip()


@pytest.mark.parametrize(
    "address",
    [
        "http://ann:pw@box:0/v1",
        "http://ann:pw@box:65536/v1",
        "http://ann:pw@box:many/v1",
        "ann:pw@box",
        "http:///v1",
        "http://ann:pw@b\u202eox/v1",
    ],
)
def test_an_address_that_leads_nowhere_is_refused_without_its_password(address: str) -> None:
    with pytest.raises(UsageError, match="is not a web address") as caught:
        check_address(address)
    assert "pw" not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "body", "length", "temperature"),
    [
        (400, {"message": "Unsupported parameter: 'max_tokens'"}, True, False),
        (400, {"message": "no", "param": "max_tokens"}, True, False),
        (422, {"message": "no", "param": "temperature"}, False, True),
        (400, {"message": "the temperature is not yours"}, False, True),
        (400, {"message": "no", "param": "max_completion_tokens"}, False, False),
        (400, {"message": "what?"}, False, False),
        (400, {"message": "'max_tokens' and temperature", "code": "invalid_image"}, False, False),
        (500, {"message": "failed at 'max_tokens' and temperature", "param": "max_tokens"}, False, False),
        (429, {"message": "too much 'max_tokens' and temperature"}, False, False),
    ],
)
def test_only_a_request_that_is_rejected_for_a_parameter_is_sent_without_it(
    status: int, body: dict[str, str], length: bool, temperature: bool
) -> None:
    exc = of_status(status, body)
    exc.args = (f"Error code: {status} - {body}",)
    assert _alternative_length(exc, "max_tokens") == ("max_completion_tokens" if length else "max_tokens")
    assert _rejects_temperature(exc) is temperature


# ---------------------------------------------------------------- what is quoted, what is advised


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"message": "It broke."}, ' ("It broke")'),
        ({"detail": "It broke."}, ' ("It broke")'),
        ({"message": "", "detail": "It broke."}, ' ("It broke")'),
        ({"message": "this", "detail": "that"}, ' ("this")'),
        ({"message": {"of": "parts"}}, " (\"{'of': 'parts'}\")"),
        ("plain\ntext", ' ("plain text")'),
        ({}, ""),
        ({"error": {"message": "It broke."}}, ' ("It broke")'),
        (None, ""),
    ],
)
def test_the_servers_own_words_are_quoted_where_it_has_some(body: Any, said: str) -> None:
    assert str(translate(of_status(500, body), HOME)) == f"http://box:8000/v1 fails with HTTP 500{said}. Try again later."


@pytest.mark.parametrize(
    ("in_environment", "is_for_it", "words"),
    [
        (None, False, "No key is set"),
        ("  ", False, "No key is set"),
        ("sk-other", False, "OPENAI_API_KEY was set for another server"),
        ("sk-other", True, "No key is set"),
    ],
)
def test_a_server_that_wants_a_key_says_why_it_got_none(
    in_environment: str | None, is_for_it: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    if in_environment is not None:
        monkeypatch.setenv("OPENAI_API_KEY", in_environment)
    server = ServerIdentity("http://box:8000/v1", "m", None, 1.0, is_of_environment=is_for_it)
    found = str(translate(of_status(401, {"message": "who are you"}), server))
    assert found.startswith(f'{words}, and http://box:8000/v1 asks for one ("who are you"). Give it in ')
    assert "OPENAI_BASE_URL=http://box:8000/v1" in found


def test_a_key_that_is_not_accepted_is_named_by_where_it_comes_from() -> None:
    of_file = ServerIdentity("http://box:8000/v1", "m", "sk-of-a-file", 1.0, "keys/box.key")
    for server, place in ((of_file, "keys/box.key"), (OFFICIAL, "OPENAI_API_KEY")):
        assert str(translate(of_status(401), server)) == f"{server.address} does not accept the API key. Check {place}."
        assert f"Check the rights of the key in {place}, or" in str(translate(of_status(403), server))


@pytest.mark.parametrize(
    ("models", "words"),
    [
        ((), "answers 404, not found"),
        (("tiny-vlm", "other"), "answers 404, not found"),
        (("tiny-vln", "zebra"), 'has no model "tiny-vlm", but has tiny-vln, …'),
        (("tiny-vln",), 'has no model "tiny-vlm", but has tiny-vln. '),
        (tuple("abcdef"), "but has a, b, c, d, e, …. "),
        (tuple("abcde"), "but has a, b, c, d, e. "),
        ((*["a"] * MOST_COMPARED, "tiny-vln"), "but has a, a, a, a, a, …. "),  # comparing half a million took a minute
    ],
)
def test_a_model_that_is_missing_is_answered_with_those_like_it_or_the_first(models: tuple[str, ...], words: str) -> None:
    assert words in str(translate(of_status(404), HOME, models=models))


def test_a_key_in_the_names_of_models_is_not_shown() -> None:
    said = str(translate(of_status(404), OFFICIAL, models=("gpt-of-the-user", "gpt-sk-of-the-user")))
    assert "gpt-of-the-user" in said
    assert "sk-of-the-user" not in said


@pytest.mark.parametrize("is_cause", [True, False])
def test_a_key_is_in_none_of_the_errors_that_a_traceback_prints(is_cause: bool) -> None:
    class LibraryError(Exception):
        message = "refused sk-of-the-user"

    first, second = LibraryError("with sk-of-the-user", 3), ValueError("header sk-of-the-user")
    setattr(first, "__cause__" if is_cause else "__context__", second)
    scrub(first, OFFICIAL)
    assert "sk-of-the-user" not in f"{first.args} {first.message} {second.args}"
    assert first.args[1] == 3
