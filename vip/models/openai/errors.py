"""What goes wrong with an OpenAI-compatible server, in one sentence each, without keys.

In: an exception of the openai library. Out: a BusyError (this try failed), an EngineError (asking on is pointless) or a
ReplyError (costs one item).
Every class of the library has its row in `TRANSLATIONS`; a test fails when a new release adds one without. Servers echo
what they were sent, so keys and passwords are cut out of all texts, those of the original exceptions included.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from math import isfinite
from urllib.parse import urlsplit

from vip.errors import BusyError, BusyKind, EngineError, RejectedError, ReplyError, UsageError
from vip.untrusted import one_line
from vip.wording import option

OFFICIAL_HOST = "api.openai.com"
REDACTED = "[redacted]"
LONGEST_QUOTE = 300
SHORTEST_SECRET = 4  # a shorter one stands in any text
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
    """Who is asked: enough to speak of it, and its secrets so as not to speak of them."""

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

    def redacted(self, text: str) -> str:
        """Return the text on one line, without secrets and not too long."""
        line = one_line(_LOOKS_LIKE_KEY.sub(REDACTED, _USER_INFO.sub("//", self.without_secrets(text))))
        return line if len(line) <= LONGEST_QUOTE else f"{line[:LONGEST_QUOTE]}…"

    def without_secrets(self, text: str) -> str:
        """Return the text without the key, and without the password and the query of the address."""
        parts = urlsplit(self.base_url)
        for secret in (self.key, parts.password, parts.query):
            if secret and len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, REDACTED)
        return text

    @property
    def no_key(self) -> str:
        """Why no key is sent, as the beginning of a sentence."""
        if os.environ.get("OPENAI_API_KEY", "").strip() and not self.is_of_environment:
            return "OPENAI_API_KEY was set for another server"
        return "No key is set"

    @property
    def advice(self) -> str:
        """How a key gets to this server."""
        if self.official:
            return f"Set OPENAI_API_KEY, or give {option('key_file', 'FILE')}."
        return f"Give it in {option('key_file', 'FILE')}, or set OPENAI_BASE_URL={self.address} beside OPENAI_API_KEY."

    def said(self, exc: Exception) -> str:
        """Return ` (said: "…")` with the server's own message; nothing where it has none."""
        body = getattr(exc, "body", None)
        message = body.get("message") or body.get("detail") if isinstance(body, dict) else body
        return f' ("{self.redacted(str(message)).rstrip(".")}")' if message else ""

    def __repr__(self) -> str:
        return f"Server({self.address!r}, model={self.model!r})"


def is_official(base_url: str) -> bool:
    host = urlsplit(base_url).hostname or ""
    return host == OFFICIAL_HOST or host.endswith(f".{OFFICIAL_HOST}")


def checked_address(base_url: str) -> str:
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
    return getattr(exc, "status_code", None) in {400, 422, 501} and not _about_item(exc)


def translated(exc: Exception, server: ServerIdentity, *, models: Sequence[str] = ()) -> EngineError | ReplyError:
    """Return the exception in vip's words. `models` are those that the server lists, where a missing one may be meant."""
    if isinstance(exc.__cause__, EngineError | ReplyError):  # of vip's own, on the way through the library
        return exc.__cause__
    names = [kind.__name__ for kind in type(exc).__mro__]
    translate = next((TRANSLATIONS[name] for name in names if name in TRANSLATIONS), _unknown)
    found = _not_found(exc, server, models) if translate is _no_such_page else translate(exc, server)
    scrub(exc, server)
    return found


def scrub(exc: BaseException, server: ServerIdentity) -> None:
    """Cut the secrets out of an exception and those it comes from, which a traceback would print."""
    seen: BaseException | None = exc
    while seen is not None:
        seen.args = tuple(server.redacted(part) if isinstance(part, str) else part for part in seen.args)
        if isinstance(message := getattr(seen, "message", None), str):
            with suppress(AttributeError):
                seen.message = server.redacted(message)  # type: ignore[attr-defined]
        seen = seen.__cause__ or seen.__context__


# ---------------------------------------------------------------- one sentence each


def _wrong_key(exc: Exception, server: ServerIdentity) -> EngineError:
    if not server.key:
        return EngineError(f"{server.no_key}, and {server.address} asks for one{server.said(exc)}. {server.advice}")
    return EngineError(f"{server.address} does not accept the API key{server.said(exc)}. Check {server.key_name}.")


def _forbidden(exc: Exception, server: ServerIdentity) -> EngineError:
    return EngineError(
        f'{server.address} does not allow the model "{server.model}" with this API key{server.said(exc)}. '
        f"Check the rights of the key in {server.key_name}, or choose another model with {option('engine', 'openai:MODEL')}."
    )


def _no_such_page(exc: Exception, server: ServerIdentity) -> EngineError:
    return _not_found(exc, server, ())


def _not_found(exc: Exception, server: ServerIdentity, models: Sequence[str]) -> EngineError:
    if not models or server.model in models:
        return EngineError(
            f"{server.address} answers 404, not found{server.said(exc)}. Check the model and the address, which usually ends in /v1."
        )
    near = difflib.get_close_matches(server.model, models, n=5, cutoff=0.4) or list(models[:5])
    more = ", …" if len(models) > len(near) else ""
    return EngineError(
        f'{server.address} has no model "{server.model}", but has {server.redacted(", ".join(near))}{more}. '
        f"Choose one with {option('engine', 'openai:MODEL')}."
    )


def _too_many(exc: Exception, server: ServerIdentity) -> EngineError:
    if getattr(exc, "code", None) == "insufficient_quota":
        return EngineError(
            f"The quota of this API key at {server.address} is spent{server.said(exc)}. Add credit, or use {option('engine', 'offline')}."
        )
    return _busy(f"{server.address} limits the rate of requests{server.said(exc)}.", exc, "rate_limit")


def _busy(message: str, exc: Exception, kind: BusyKind) -> BusyError:
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
    except (TypeError, ValueError):
        return None


def _rejected(exc: Exception, server: ServerIdentity) -> EngineError | ReplyError:
    if _about_item(exc):
        return ReplyError(f"{server.model} at {server.address} does not take this picture{server.said(exc)}.", kind="picture")
    return RejectedError(
        f"{server.address} rejects the request{server.said(exc)}. "
        f'Does the model "{server.model}" take pictures? Choose another with {option("engine", "openai:MODEL")}.'
    )


def _about_item(exc: Exception) -> bool:
    body = getattr(exc, "body", None)
    codes = [body.get("code"), body.get("type")] if isinstance(body, dict) else []
    return any(isinstance(code, str) and code in ITEM_CODES for code in codes)


def _server_fails(exc: Exception, server: ServerIdentity) -> EngineError:
    status = getattr(exc, "status_code", 500)
    return _busy(f"{server.address} fails with HTTP {status}{server.said(exc)}. Try again later.", exc, "server")


def _other_status(exc: Exception, server: ServerIdentity) -> EngineError | ReplyError:
    status = getattr(exc, "status_code", "an error")
    if status == 413:
        return ReplyError(f"{server.address} finds this request too large{server.said(exc)}.", kind="too_large")
    if status == 402:
        return EngineError(f"{server.address} wants to be paid first{server.said(exc)}. Add credit, or use {option('engine', 'offline')}.")
    if status == 408:
        return _server_fails(exc, server)
    return RejectedError(f"{server.address} answers HTTP {status}{server.said(exc)}. Check the address and the account.")


def _timed_out(exc: Exception, server: ServerIdentity) -> EngineError:
    if type(getattr(exc, "__cause__", None)).__name__ == "ConnectTimeout":
        return _unreachable(exc, server)
    message = (
        f"{server.address} did not answer within {server.timeout_s:g} s. Try a longer {option('request_timeout')}, or a smaller model."
    )
    return _busy(message, exc, "timeout")


def _unreachable(exc: Exception, server: ServerIdentity) -> BusyError:
    cause = exc.__cause__
    why = f" ({server.redacted(str(cause))})" if cause and str(cause) else ""
    if cause is not None and type(cause).__name__ not in NOT_CONNECTED:
        return _busy(f"{server.address} hung up before its answer was whole{why}. Is the server well?", exc, "dropped")
    advice = f"Check the network, or use {option('engine', 'offline')}." if server.official else "Is the server running there?"
    return _busy(f"{server.address} cannot be reached{why}. {advice}", exc, "connection")


def _no_openai_reply(exc: Exception, server: ServerIdentity) -> BusyError:
    return not_a_reply(server)


def not_a_reply(server: ServerIdentity) -> BusyError:
    """Return the error for an answer of HTTP 200 that is, say, the web page of a proxy."""
    text = f"{server.address} answers, but not like an OpenAI-compatible server. Check the address: it usually ends in /v1."
    return BusyError(text, kind="server")


def broken_json(server: ServerIdentity) -> ReplyError:
    """Return the error for an answer of HTTP 200 whose JSON does not end."""
    text = f"{server.address} sent an answer that is not whole JSON."
    return ReplyError(text, kind="broken")


def cut_off(exc: Exception | None, server: ServerIdentity, **tokens: int | None) -> ReplyError:
    text = f"{server.model} did not finish its answer within the tokens allowed. Try another model with {option('engine', 'openai:MODEL')}."
    return ReplyError(text, kind="length", **tokens)


def filtered(exc: Exception | None, server: ServerIdentity, **tokens: int | None) -> ReplyError:
    return ReplyError(f"The content filter of {server.address} stopped the answer of {server.model}.", kind="content_filter", **tokens)


def _unknown(exc: Exception, server: ServerIdentity) -> EngineError:
    return EngineError(f"The openai library failed with {type(exc).__name__}: {server.redacted(str(exc)) or 'no message'}.")


TRANSLATIONS: dict[str, Callable[[Exception, ServerIdentity], EngineError | ReplyError]] = {
    "APIConnectionError": _unreachable,
    "APIError": _unknown,
    "APIResponseValidationError": _no_openai_reply,
    "APIStatusError": _other_status,
    "APITimeoutError": _timed_out,
    "AuthenticationError": _wrong_key,
    "BadRequestError": _rejected,
    "ConflictError": _server_fails,
    "ContentFilterFinishReasonError": filtered,
    "InternalServerError": _server_fails,
    "InvalidWebhookSignatureError": _unknown,
    "LengthFinishReasonError": cut_off,
    "NotFoundError": _no_such_page,
    "OAuthError": _wrong_key,
    "OpenAIError": _unknown,
    "PermissionDeniedError": _forbidden,
    "RateLimitError": _too_many,
    "SubjectTokenProviderError": _unknown,
    "UnprocessableEntityError": _rejected,
    "WebSocketConnectionClosedError": _unknown,
    "WebSocketQueueFullError": _unknown,
}
"""By the name of the class, because older releases of the library lack some."""
