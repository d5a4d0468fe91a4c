"""What every page begins and ends with: a head whose policy allows the page's own style and script and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from vip.errors import StoreError
from vip.html.markup import Html, join, tag

GENERATOR = tag("meta", name="generator", content="vip")


def resource(name: str) -> str:
    """A file that ships beside this module."""
    return resources.files("vip.report").joinpath(name).read_text(encoding="utf-8")


LIGHTBOX = "page.js"


def opening(title: str, style: str, *, script: str = LIGHTBOX) -> Iterator[Html]:
    """From the doctype to the opened `main`; `script` names the file that `closing` puts at the end."""
    yield Html('<!doctype html>\n<html lang="en">')
    yield _head(title, style, resource(script))
    yield Html("<body><main>")


def closing(*, script: str = LIGHTBOX) -> Iterator[Html]:
    """From the closed `main` to the end: the script, and the lightbox if it is the one that fills it."""
    yield Html("</main>")
    if script == LIGHTBOX:
        yield _lightbox()
    yield tag("script", Html(resource(script)))
    yield Html("</body></html>\n")


def is_page(path: Path) -> bool:
    """Whether a file is a page that vip wrote.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return GENERATOR.encode() in file.read(4096)
    except OSError as exc:
        raise StoreError(f"{path} cannot be read: {exc.strerror}.") from exc


def _head(title: str, style: str, script: str) -> Html:
    policy = f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(script)}; base-uri 'none'; form-action 'none'"
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        GENERATOR,
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Html(style)),
    )


def _hash(text: str) -> str:
    """As the browser takes it of the element's text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _lightbox() -> Html:
    """Empty and closed; the script fills it with the picture of a card."""
    buttons = [
        tag("button", text, type="button", data_do=do, aria_label=label)
        for do, text, label in (("previous", "‹", "Previous"), ("next", "›", "Next"), ("close", "×", "Close"))
    ]
    return tag("dialog", tag("div", class_="stage"), tag("p", class_="title"), join(buttons), id="lightbox", aria_label="Keyframe")
