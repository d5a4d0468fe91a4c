"""Markup made in Python, for drawings: a plain string is text and gets escaped, only `Markup` is written as it is.

Captions, names and reasons come from models and from other people's files, so whatever is not `Markup` is hostile. Pages are Jinja
templates (see `layout`), which escape by the same rule.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from markupsafe import Markup

VOID = frozenset({"br", "img", "input", "link", "meta", "wbr"})

# Controls, lone surrogates (they have no UTF-8) and the marks that make text run backwards beyond its own end.
_UNSHOWN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")

Attribute = str | float | bool | None


def showable(text: str) -> str:
    """Return the text with U+FFFD for every character that must not be shown."""
    return _UNSHOWN.sub("\ufffd", text)


def escape(text: str) -> Markup:
    """Return the text as HTML, quotes escaped too."""
    return Markup(html.escape(showable(text), quote=True))


def join(parts: Iterable[str]) -> Markup:
    """Return the parts in a row; those that are not `Markup` are escaped."""
    return Markup("".join(map(_safe, parts)))


def tag(name: str, /, *children: str, **attributes: Attribute) -> Markup:
    """Return one element. `class_` becomes class, `aria_label` aria-label; None and False leave the attribute out."""
    shown = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in VOID:
        return Markup(f"<{name}{shown}>")
    return Markup(f"<{name}{shown}>{''.join(map(_safe, children))}</{name}>")


def _safe(text: str) -> Markup:
    return text if isinstance(text, Markup) else escape(text)


def _attribute(key: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{escape(value if isinstance(value, str) else decimal(value))}"'


def decimal(value: float) -> str:
    """Return the number with at most three digits after the point and no exponent, as SVG and CSS want it."""
    return str(value) if isinstance(value, int) else f"{value:.3f}".rstrip("0").rstrip(".")


def percent(value: float) -> str:
    """Return the number as a CSS length in percent."""
    return f"{decimal(value)}%"
