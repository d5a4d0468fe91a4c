"""HTML from small functions with one escaping helper: a plain string is text and gets escaped, only `Html` is markup.

Captions, names and reasons come from models and from other people's files, so whatever is not `Html` is hostile.
Forgetting to escape is impossible, escaping twice is merely ugly.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

VOID = frozenset({"br", "img", "input", "link", "meta", "wbr"})

# Controls, lone surrogates (they have no UTF-8) and the marks that make text run backwards beyond its own end.
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

Attribute = str | float | bool | None


class Html(str):
    """Markup that is safe to write as it is."""

    __slots__ = ()


def escape(text: str) -> Html:
    """The text as HTML, quotes escaped too; characters that must not be shown become U+FFFD."""
    return Html(html.escape(_UNSHOWN.sub("\ufffd", text), quote=True))


def join(parts: Iterable[str], separator: str = "") -> Html:
    """The parts in a row; those that are not `Html` are escaped."""
    return Html(_safe(separator).join(map(_safe, parts)))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Html:
    """One element. `class_` becomes class, `aria_label` aria-label; None and False leave the attribute out."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Html(f"<{name}{shown}>")
    return Html(f"<{name}{shown}>{join(children)}</{name}>")


def _safe(text: str) -> Html:
    return text if isinstance(text, Html) else escape(text)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value if isinstance(value, str) else decimal(value))}"'


def decimal(value: float) -> str:
    """At most three digits after the point, no exponent: what SVG and CSS attributes need."""
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")


def percent(value: float) -> str:
    return f"{decimal(value)}%"
