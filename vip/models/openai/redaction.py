"""Secrets cut out of what a server says, in whatever usual spelling it sends them back.

In: a text on one line, the address and the key of the server. Out: the same text without the key, and without what the address holds
besides host and path: its password, a user name without one, its query. Letters that nobody sees between those of a secret hide nothing.
"""

from __future__ import annotations

import base64
import json
import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urlsplit

from vip.untrusted import one_line

REDACTED = "[redacted]"
SHORTEST_SECRET = 4  # a shorter one stands in any text
SHORTEST_TOKEN, SHORTEST_OF_LETTERS = 8, 16  # in a query or the place of a user name, where words such as `portrait` and `admin` stand too
SHORTEST_BASE64 = 8

_URL_SAFE = str.maketrans("+/", "-_")
_FILLERS = "\u115f\u1160\u3164\uffa0"  # letters of Korean without a shape
_UNSEEN = frozenset({"Mn", "Me", "Cf", "Cc", "Cn", "Co", "Cs"})  # categories: marks on other letters, and letters without a shape


def remove_secrets(text: str, base_url: str, key: str | None) -> str:
    """Return the text with each secret replaced; one without any is returned as it is."""
    unseen = {letter for letter in set(text) if not _is_seen(letter)}
    places = [place for place, letter in enumerate(text) if letter not in unseen] if unseen else range(len(text))
    seen = text.translate({ord(letter): None for letter in unseen})
    found = [match.span() for one in _all_spellings(base_url, key) if one in seen for match in re.finditer(re.escape(one), seen)]
    kept, end = [], 0
    for first, last in sorted(found):
        if places[first] >= end:  # else it overlaps the one before
            kept += [text[end : places[first]], REDACTED]
        end = max(end, places[last - 1] + 1)
    return "".join([*kept, text[end:]])


def _is_seen(letter: str) -> bool:
    return letter.isascii() or not (letter in _FILLERS or unicodedata.category(letter) in _UNSEEN)


@cache
def _all_spellings(base_url: str, key: str | None) -> frozenset[str]:
    """Return the spellings of all secrets, without letters that are not seen."""
    found = {"".join(filter(_is_seen, spelling)) for secret in _secrets(base_url, key) for spelling in _spellings(secret)}
    return frozenset(spelling for spelling in found if len(spelling) >= SHORTEST_SECRET)


def _secrets(base_url: str, key: str | None) -> Iterator[str]:
    """Yield what only the user and the server may know, as it is typed and as the server reads it."""
    parts = urlsplit(base_url)
    user, password = parts.username or "", parts.password or ""
    typed = [key or "", password, f"{user}:{password}" if password else "", parts.query]
    values = [pair.partition("=")[2] for pair in parts.query.split("&")]
    values += [user] if len(password) < SHORTEST_SECRET else []
    for one in [*typed, *filter(_may_be_token, values)]:
        yield from (secret for secret in {one, unquote(one), unquote_plus(one)} if len(secret) >= SHORTEST_SECRET)


def _may_be_token(text: str) -> bool:
    """Return whether a text is no word and no date: it has letters and digits, or is long."""
    is_mixed = any(letter.isalpha() for letter in text) and any(letter.isdigit() for letter in text)
    return len(text) >= (SHORTEST_TOKEN if is_mixed else SHORTEST_OF_LETTERS)


def _spellings(secret: str) -> Iterator[str]:
    """Yield a secret as it is, in JSON, in an address, in hex, and in base64 at any place of what is encoded."""
    data, line = secret.encode("utf-8", "surrogateescape"), one_line(secret)
    yield from (secret, line, json.dumps(line, ensure_ascii=False)[1:-1], quote(secret, safe=""), quote_plus(secret))
    yield from (data.hex(), data.hex().upper(), "".join(f"%{one:02x}" for one in data), "".join(f"%{one:02X}" for one in data))
    encoded = [base64.b64encode(data).decode()]
    for before in range(3):
        whole = (before + len(data)) * 8 // 6  # letters that depend on nothing behind the secret
        encoded.append(base64.b64encode(bytes(before) + data).decode()[-(-before * 8 // 6) : whole])
    for one in encoded:
        if len(one) >= SHORTEST_BASE64:
            yield from (one, one.translate(_URL_SAFE))
