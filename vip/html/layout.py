"""Pages from Jinja templates: escaped, self-contained, under a policy that allows their own style and script and nothing else.

A package keeps its templates (`*.html.jinja`) and style sheets beside its Python. Its pages extend `layout.html.jinja` of this package and
take their parts from `parts.html.jinja`. In a template a line break and its indentation are nothing; a space is written `{{ " " }}`.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from vip import files
from vip.errors import StoreError
from vip.html import format as words
from vip.html import markup
from vip.html.pictures import data_uri

if TYPE_CHECKING:
    from jinja2 import Environment

PACKAGE = "vip.html"
GENERATOR = Markup('<meta name="generator" content="vip">')
LIGHTBOX = "lightbox.js"


def resource(name: str, package: str = PACKAGE) -> str:
    """Return the text of a file that ships with a package."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def render_page(package: str, template: str, *, style: str, script: str = "", **context: Any) -> str:
    """Return a page from the template of a package.

    Args:
        style: CSS behind that of every page.
        script: the page's own script; by default the one that enlarges the pictures of cards.
        context: what the template reads.
    """
    style, policed = resource("page.css") + style, script or resource(LIGHTBOX)
    policy = (
        f"default-src 'none'; img-src data:; style-src {_hash(style)}; script-src {_hash(policed)}; base-uri 'none'; form-action 'none'"
    )
    page = {"generator": GENERATOR, "policy": policy, "style": Markup(style), "script": Markup(policed), "has_lightbox": not script}
    return templates(package).get_template(template).render(page=page, **context)


@cache
def templates(package: str) -> Environment:
    """Return the templates of a package and of this one. Whatever is not `Markup` is escaped, and what is undefined is an error."""
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
    from jinja2.ext import Extension

    class Compact(Extension):
        """A Jinja extension that turns line breaks and indentation into comments: pages stay small, messages keep their line numbers."""

        def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:
            return re.sub(r"[ \t]*\n[ \t]*", "{#\n#}", source)

    environment = Environment(
        loader=ChoiceLoader([PackageLoader(name, "") for name in dict.fromkeys((package, PACKAGE))]),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=[Compact],
        finalize=_to_showable,
    )
    for function in (words.number, words.plural, words.time_code, words.whole_number, markup.decimal, markup.percent, data_uri):
        environment.filters[function.__name__] = function
    return environment


def _to_showable(value: object) -> object:
    """Return what a template writes: markup as it is, anything else as text that can be shown."""
    return value if hasattr(value, "__html__") else markup.showable(str(value))


def is_page(path: Path) -> bool:
    """Return whether a file is a page that vip wrote.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        with files.open_named(path) as file:
            return GENERATOR.encode() in file.read(4096)
    except OSError as exc:
        raise StoreError(f"{path} cannot be read: {exc.strerror}.") from exc


def _hash(text: str) -> str:
    """Return the hash of an element's text as the policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
