"""Address, key and rate limits of a server.

In: the detail of an engine's name, options, the environment, headers of an answer. Out: an address, a key, `RateLimits`.
Keys come from the environment or from a file that its owner alone may read, and go nowhere but into the request.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from urllib.parse import urlsplit

from vip.errors import EngineError, UsageError
from vip.files import read_named
from vip.models.openai.errors import is_official
from vip.protocols import RateLimits

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
ENGINES = ("VIP_ENGINE", "VIP_DESCRIBE_ENGINE", "VIP_STRUCTURE_ENGINE")
MOST_KEY_BYTES = 16_384
MOST_DIGITS, MOST_TIME_LETTERS = 15, 40  # of a number and of a time in a header
UNIT_S = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

_AT = re.compile(r"(.*)@(https?://.+)", re.DOTALL)
_SPAN = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


def parse_detail(detail: str | None, base_url: str | None, official: str) -> tuple[str, str]:
    """Return the model (empty if none is named) and the address: of the name itself, else the option, the environment, the official one."""
    named = _AT.fullmatch(detail or "")
    model, own = (named[1], named[2]) if named else (detail or "", None)
    return model, own or base_url or os.environ.get(ADDRESS, "").strip() or official


def is_of_environment(address: str) -> bool:
    """Return whether OPENAI_API_KEY is for the server: api.openai.com, or the one that the environment names too."""
    named = [os.environ.get(ADDRESS, ""), os.environ.get("VIP_BASE_URL", "")]
    named += [found[2] for name in ENGINES if (found := _AT.fullmatch(os.environ.get(name, "")))]
    return is_official(address) or _origin(address) in {_origin(one.strip()) for one in named if one.strip()}


def _origin(address: str) -> tuple[str, str | None, int | None]:
    """Return scheme, host and port."""
    try:
        parts = urlsplit(address)
        return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return "", address, None


def find_key(file: Path | None, address: str) -> str | None:
    """Return the key for a server; None where none is set for it.

    Raises:
        UsageError: the file cannot be read, or others may read it.
        EngineError: what there is cannot be a key.
    """
    key = _read_key(file) if file else os.environ.get(KEY, "").strip() if is_of_environment(address) else ""
    where = str(file) if file else KEY
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise EngineError(f"{where} contains letters that no key has. Copy it again.")
    return key or None


def _read_key(file: Path) -> str:
    try:
        mode = file.stat().st_mode
        if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
            raise UsageError(f"{file} may be read by others (mode {stat.S_IMODE(mode):03o}). Run `chmod 600 {file}`, or make a new key.")
        if key := read_named(file, most_bytes=MOST_KEY_BYTES).decode().strip():
            return key
        raise UsageError(f"{file} holds no key: it is empty.")
    except OSError as exc:
        raise UsageError(f"The key in {file} cannot be read: {exc.strerror}.") from exc
    except UnicodeDecodeError as exc:
        raise UsageError(f"{file} holds no key: it is not text.") from exc


def parse_limits(headers: Mapping[str, str]) -> RateLimits | None:
    """Return the rate limits in the headers of an answer, as OpenAI, Azure, Groq and others send them; None if there are none."""
    left = [_parse_count(headers.get(f"x-ratelimit-remaining-{what}")) for what in ("requests", "tokens")]
    resets = [parse_seconds(headers.get(f"x-ratelimit-reset-{what}")) for what in ("requests", "tokens")]
    return RateLimits(left[0], resets[0], left[1], resets[1]) if left != [None, None] else None


def _parse_count(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS else None


def parse_seconds(text: str | None) -> float | None:
    """Return seconds of `6m0s`, `20ms`, `1.5`; None for anything else."""
    if not text or len(text) > MOST_TIME_LETTERS:  # a search through thousands of digits takes minutes
        return None
    try:
        return max(0.0, float(text)) if isfinite(float(text)) else None
    except ValueError:
        parts = _SPAN.findall(text)
        whole = "".join(number + unit for number, unit in parts) == text
        return sum(float(number) * UNIT_S[unit] for number, unit in parts) if whole else None
