"""Errors of an OpenAI-compatible server, in one sentence each, without keys.

In: an exception of the openai library. Out: a BusyError (this try failed), an EngineError (asking on is pointless) or a
ReplyError (costs one item).
Every class of the library has its row in `TRANSLATIONS`; a test fails when a new release adds one without. Servers echo
what they were sent, so keys and passwords are cut out of all texts, those of the original exceptions included.
"""

from __future__ import annotations

import difflib
import os
import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from urllib.parse import urlsplit

from vip.errors import BusyError, BusyKind, EngineError, RejectedError, ReplyError, UsageError
from vip.models.openai.redaction import REDACTED, remove_secrets
from vip.untrusted import one_line
from vip.wording import option

OFFICIAL_HOST = "api.openai.com"
MOST_COMPARED = 2000  # names of models; a list may have many more
LONGEST_QUOTE = 300
ITEM_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "image_parse_error",
        "image_too_large",
        "image_too_small",
        "invalid_base64_image",
        "invalid_image",
        "invalid_image_format",
        "moderation_blocked",
    }
)
"""Codes of 400 and 422 that speak of this picture and not of all."""

NOT_CONNECTED = frozenset({"ConnectError", "ConnectTimeout", "PoolTimeout", "UnsupportedProtocol", "ProxyError"})
"""Of the HTTP library: the request never went out."""

_USER_INFO = re.compile(r"//[^/\s@]+@")
_LOOKS_LIKE_KEY = re.compile(r"\bsk-[\w.*-]+|(?<=Bearer )[^\s\"']+", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class ServerIdentity:
    """The server of an engine: what messages say of it, and the secrets that they must not show."""

    base_url: str
    model: str
    key: str | None
    timeout_s: float
    key_name: str = "OPENAI_API_KEY"
    """Where the key comes from."""
    is_of_environment: bool = False
    """What the environment holds for a server, such as OPENAI_API_KEY, is for this one."""

    @property
    def official(self) -> bool:
        return is_official(self.base_url)

    @property
    def address(self) -> str:
        """The base URL without user name, password and query."""
        parts = urlsplit(self.base_url)
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else parts.hostname
        return f"{parts.scheme}://{host}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"

    def redact(self, text: str) -> str:
        """Return the text on one line, without secrets and not too long."""
        line = _LOOKS_LIKE_KEY.sub(REDACTED, _USER_INFO.sub("//", self.remove_secrets(one_line(text))))
        return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"

    def remove_secrets(self, text: str) -> str:
        """Return the text, which is one line, without the key and what is secret in the address, in any of their usual spellings."""
        return remove_secrets(text, self.base_url, self.key)

    def holds_secret(self, text: str) -> bool:
        return self.remove_secrets(text) != text

    @property
    def no_key(self) -> str:
        """The reason why no key is sent, as the beginning of a sentence."""
        if os.environ.get("OPENAI_API_KEY", "").strip() and not self.is_of_environment:
            return "OPENAI_API_KEY was set for another server"
        return "No key is set"

    @property
    def advice(self) -> str:
        """The way to give this server a key."""
        if self.official:
            return f"Set OPENAI_API_KEY, or give {option('key_file', 'FILE')}."
        return f"Give it in {option('key_file', 'FILE')}, or set OPENAI_BASE_URL={self.address} beside OPENAI_API_KEY."

    def quote(self, exc: Exception) -> str:
        """Return ` (said: "…")` with the server's own message; nothing where it has none."""
        body = getattr(exc, "body", None)
        message = body.get("message") or body.get("detail") if isinstance(body, dict) else body
        return f' ("{self.redact(str(message)).rstrip(".")}")' if message else ""

    def __repr__(self) -> str:
        return f"Server({self.address!r}, model={self.model!r})"


def is_official(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == OFFICIAL_HOST or host.endswith(f".{OFFICIAL_HOST}")


def check_address(base_url: str) -> str:
    """Return the address as given.

    Raises:
        UsageError: it is none.
    """
    text = base_url.strip()
    try:
        parts = urlsplit(text)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        good = False
    if not good or any(letter.isspace() or not letter.isprintable() for letter in text):
        shown = _USER_INFO.sub("//", text) if "//" in text else text.rpartition("@")[2]
        raise UsageError(f'The base URL "{shown}" is not a web address. Write it like http://localhost:8000/v1.')
    return text


def is_rejection(exc: Exception) -> bool:
    """Return whether the request itself was rejected, as by a server that does not know `response_format`."""
    return getattr(exc, "status_code", None) in {400, 422, 501} and not _is_about_item(exc)


def translate(exc: Exception, server: ServerIdentity, *, models: Sequence[str] = ()) -> EngineError | ReplyError:
    """Return vip's error for an exception of the library. `models` are those that the server lists, where a missing one may be meant."""
    if isinstance(exc.__cause__, EngineError | ReplyError):  # of vip's own, on the way through the library
        return exc.__cause__
    names = [kind.__name__ for kind in type(exc).__mro__]
    handler = next((TRANSLATIONS[name] for name in names if name in TRANSLATIONS), _unknown_error)
    found = _missing_model_error(exc, server, models) if handler is _not_found_error else handler(exc, server)
    scrub(exc, server)
    return found


def scrub(exc: BaseException, server: ServerIdentity) -> None:
    """Cut the secrets out of an exception and those it comes from, which a traceback would print."""
    current: BaseException | None = exc
    while current is not None:
        current.args = tuple(server.redact(part) if isinstance(part, str) else part for part in current.args)
        if isinstance(message := getattr(current, "message", None), str):
            with suppress(AttributeError):
                current.message = server.redact(message)  # type: ignore[attr-defined]
        current = current.__cause__ or current.__context__


# ---------------------------------------------------------------- one sentence each


def _authentication_error(exc: Exception, server: ServerIdentity) -> EngineError:
    if not server.key:
        return EngineError(f"{server.no_key}, and {server.address} asks for one{server.quote(exc)}. {server.advice}")
    return EngineError(f"{server.address} does not accept the API key{server.quote(exc)}. Check {server.key_name}.")


def _permission_error(exc: Exception, server: ServerIdentity) -> EngineError:
    return EngineError(
        f'{server.address} does not allow the model "{server.model}" with this API key{server.quote(exc)}. '
        f"Check the rights of the key in {server.key_name}, or choose another model with {option('engine', 'openai:MODEL')}."
    )


def _not_found_error(exc: Exception, server: ServerIdentity) -> EngineError:
    return _missing_model_error(exc, server, ())


def _missing_model_error(exc: Exception, server: ServerIdentity, models: Sequence[str]) -> EngineError:
    if not models or server.model in models:
        return EngineError(
            f"{server.address} answers 404, not found{server.quote(exc)}. Check the model and the address, which usually ends in /v1."
        )
    near = difflib.get_close_matches(server.model, models[:MOST_COMPARED], n=5, cutoff=0.4) or list(models[:5])
    more = ", …" if len(models) > len(near) else ""
    return EngineError(
        f'{server.address} has no model "{server.model}", but has {server.redact(", ".join(near))}{more}. '
        f"Choose one with {option('engine', 'openai:MODEL')}."
    )


def _rate_limit_error(exc: Exception, server: ServerIdentity) -> EngineError:
    if getattr(exc, "code", None) == "insufficient_quota":
        return EngineError(
            f"The quota of this API key at {server.address} is spent{server.quote(exc)}. Add credit, or use {option('engine', 'offline')}."
        )
    return _busy_error(f"{server.address} limits the rate of requests{server.quote(exc)}.", exc, "rate_limit")


def _busy_error(message: str, exc: Exception, kind: BusyKind) -> BusyError:
    headers = getattr(getattr(exc, "response", None), "headers", {})
    return BusyError(message, kind=kind, retry_after_s=retry_after_s(headers))


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return seconds that the server asks to wait (Retry-After: seconds or a date; retry-after-ms); None where it does not say."""
    with suppress(ValueError):
        milliseconds = float(headers.get("retry-after-ms") or "nan")
        if isfinite(milliseconds):
            return max(0.0, milliseconds / 1000)
    try:
        text = headers.get("retry-after") or ""
        seconds = float(text) if not text or text[0].isdigit() else (parsedate_to_datetime(text) - datetime.now(UTC)).total_seconds()
        return max(0.0, seconds) if isfinite(seconds) else None
    except (TypeError, ValueError, OverflowError):  # OverflowError: a year beyond 64 bits
        return None


def _bad_request_error(exc: Exception, server: ServerIdentity) -> EngineError | ReplyError:
    if _is_about_item(exc):
        return ReplyError(f"{server.model} at {server.address} does not take this picture{server.quote(exc)}.", kind="picture")
    return RejectedError(
        f"{server.address} rejects the request{server.quote(exc)}. "
        f'Does the model "{server.model}" take pictures? Choose another with {option("engine", "openai:MODEL")}.'
    )


def _is_about_item(exc: Exception) -> bool:
    body = getattr(exc, "body", None)
    codes = [body.get("code"), body.get("type")] if isinstance(body, dict) else []
    return any(isinstance(code, str) and code in ITEM_CODES for code in codes)


def _server_error(exc: Exception, server: ServerIdentity) -> EngineError:
    status = getattr(exc, "status_code", 500)
    return _busy_error(f"{server.address} fails with HTTP {status}{server.quote(exc)}. Try again later.", exc, "server")


def _status_error(exc: Exception, server: ServerIdentity) -> EngineError | ReplyError:
    status = getattr(exc, "status_code", "an error")
    if status == 413:
        return ReplyError(f"{server.address} finds this request too large{server.quote(exc)}.", kind="too_large")
    if status == 402:
        return EngineError(f"{server.address} wants to be paid first{server.quote(exc)}. Add credit, or use {option('engine', 'offline')}.")
    if status == 408:
        return _server_error(exc, server)
    return RejectedError(f"{server.address} answers HTTP {status}{server.quote(exc)}. Check the address and the account.")


def _timeout_error(exc: Exception, server: ServerIdentity) -> EngineError:
    if type(getattr(exc, "__cause__", None)).__name__ == "ConnectTimeout":
        return _connection_error(exc, server)
    message = (
        f"{server.address} did not answer within {server.timeout_s:g} s. Try a longer {option('request_timeout')}, or a smaller model."
    )
    return _busy_error(message, exc, "timeout")


def _connection_error(exc: Exception, server: ServerIdentity) -> EngineError:
    cause = exc.__cause__
    if certificate := _certificate_error(exc):
        invalid = f"The certificate of {server.address} is not valid ({server.redact(certificate.verify_message)})."
        return EngineError(f"{invalid} Renew it, or name the file of its authority in SSL_CERT_FILE.")
    why = f" ({server.redact(str(cause))})" if cause and str(cause) else ""
    if cause is not None and type(cause).__name__ not in NOT_CONNECTED:
        return _busy_error(f"{server.address} hung up before its answer was whole{why}. Is the server well?", exc, "dropped")
    advice = f"Check the network, or use {option('engine', 'offline')}." if server.official else "Is the server running there?"
    return _busy_error(f"{server.address} cannot be reached{why}. {advice}", exc, "connection")


def _certificate_error(exc: BaseException | None) -> ssl.SSLCertVerificationError | None:
    """Return what the certificate of the server was refused for, which no other try mends; None if that is not why."""
    while exc is not None and not isinstance(exc, ssl.SSLCertVerificationError):
        exc = exc.__cause__ or exc.__context__
    return exc


def _no_openai_reply_error(exc: Exception, server: ServerIdentity) -> BusyError:
    return invalid_reply_error(server)


def invalid_reply_error(server: ServerIdentity) -> BusyError:
    """Return the error for an answer of HTTP 200 that is, say, the web page of a proxy."""
    text = f"{server.address} answers, but not like an OpenAI-compatible server. Check the address: it usually ends in /v1."
    return BusyError(text, kind="server")


def broken_json_error(server: ServerIdentity) -> ReplyError:
    """Return the error for an answer of HTTP 200 whose JSON does not end."""
    text = f"{server.address} sent an answer that is not whole JSON."
    return ReplyError(text, kind="broken")


def cut_off_error(exc: Exception | None, server: ServerIdentity, **tokens: int | None) -> ReplyError:
    text = f"{server.model} did not finish its answer within the tokens allowed. Try another model with {option('engine', 'openai:MODEL')}."
    return ReplyError(text, kind="length", **tokens)


def filtered_error(exc: Exception | None, server: ServerIdentity, **tokens: int | None) -> ReplyError:
    return ReplyError(f"The content filter of {server.address} stopped the answer of {server.model}.", kind="content_filter", **tokens)


def _unknown_error(exc: Exception, server: ServerIdentity) -> EngineError:
    return EngineError(f"The openai library failed with {type(exc).__name__}: {server.redact(str(exc)) or 'no message'}.")


TRANSLATIONS: dict[str, Callable[[Exception, ServerIdentity], EngineError | ReplyError]] = {
    "APIConnectionError": _connection_error,
    "APIError": _unknown_error,
    "APIResponseValidationError": _no_openai_reply_error,
    "APIStatusError": _status_error,
    "APITimeoutError": _timeout_error,
    "AuthenticationError": _authentication_error,
    "BadRequestError": _bad_request_error,
    "ConflictError": _server_error,
    "ContentFilterFinishReasonError": filtered_error,
    "InternalServerError": _server_error,
    "InvalidWebhookSignatureError": _unknown_error,
    "LengthFinishReasonError": cut_off_error,
    "NotFoundError": _not_found_error,
    "OAuthError": _authentication_error,
    "OpenAIError": _unknown_error,
    "PermissionDeniedError": _permission_error,
    "RateLimitError": _rate_limit_error,
    "SubjectTokenProviderError": _unknown_error,
    "UnprocessableEntityError": _bad_request_error,
    "WebSocketConnectionClosedError": _unknown_error,
    "WebSocketQueueFullError": _unknown_error,
}
"""By the name of the class, because older releases of the library lack some."""
