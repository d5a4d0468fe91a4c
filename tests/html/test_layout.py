"""Pages from templates: what is undefined is an error, what is hostile is text, and lines of a template are no spaces of the page."""

from __future__ import annotations

import base64
import hashlib
import html
import re
import tomllib
from importlib import resources
from pathlib import Path

import jinja2
import pytest

from vip.errors import StoreError
from vip.html.layout import is_page, render_page, resource, templates

PACKAGES = ("vip.html", "vip.report", "vip.corpus.card")


def rendered(source: str, **context: object) -> str:
    return templates("vip.html").from_string(source).render(**context)


def test_text_is_escaped_and_what_must_not_be_shown_is_replaced_wherever_it_is_written() -> None:
    text = "<b>\u202e\x00'\""
    shown = "&lt;b&gt;\ufffd\ufffd&#39;&#34;"
    assert rendered("{{ text }}", text=text) == shown
    assert rendered('<p title="{{ text }}">', text=text) == f'<p title="{shown}">'
    assert rendered("{{ '%s!' | format(text) }}{{ [text, text] | join(', ') }}", text=text) == f"{shown}!{shown}, {shown}"


def test_a_name_that_is_not_defined_is_an_error() -> None:
    with pytest.raises(jinja2.UndefinedError):
        rendered("{{ nothing }}")


def test_line_breaks_and_indentation_are_not_in_the_page_and_messages_name_the_line() -> None:
    assert rendered("<p>\n  {{ one }}{{ ' ' }}\n  two\n</p>\n", one="one") == "<p>one two</p>"
    with pytest.raises(jinja2.TemplateSyntaxError) as caught:
        rendered("<p>\n\n{% if %}\n</p>")
    assert caught.value.lineno == 3


@pytest.mark.parametrize("package", PACKAGES)
def test_every_template_can_be_read(package: str) -> None:
    names = [file.name for file in resources.files(package).iterdir() if file.name.endswith(".jinja")]
    assert names
    for name in names:
        templates(package).get_template(name)


def test_templates_lie_in_the_package_that_the_wheel_takes_whole() -> None:
    root = Path(__file__).parents[2]
    wheel = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["packages"] == ["vip"]
    assert not {"exclude", "only-include", "artifacts"} & set(wheel)
    rooms = [folder for folder in root.iterdir() if folder.is_dir() and not folder.name.startswith(".")]
    assert [folder.name for folder in rooms if any(folder.rglob("*.html.jinja"))] == ["vip"]


def test_a_page_with_a_script_of_its_own_has_no_lightbox() -> None:
    source = '{% extends "layout.html.jinja" %}'
    environment = templates("vip.html")
    own = environment.overlay(loader=jinja2.ChoiceLoader([jinja2.DictLoader({"own": source}), environment.loader or jinja2.DictLoader({})]))
    page = {"generator": "", "policy": "", "style": "", "script": "go()", "has_lightbox": False}
    assert "<dialog" not in own.get_template("own").render(page=page)
    assert "<dialog" in render_page("vip.html", "layout.html.jinja", style="")


def policy_of(page: str) -> dict[str, str]:
    (found,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    return dict(rule.strip().split(" ", 1) for rule in html.unescape(found).split(";"))


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@pytest.mark.parametrize("script", ["go(1 < 2 && 3);", ""])
def test_a_page_runs_its_own_script_or_where_it_has_none_that_of_the_lightbox(script: str) -> None:
    page = render_page("vip.html", "layout.html.jinja", style=".own{color:red}", script=script)
    (ran,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    assert ran == (script or resource("lightbox.js"))
    assert style == resource("page.css") + ".own{color:red}"
    assert policy_of(page) == {
        "default-src": "'none'",
        "img-src": "data:",
        "style-src": digest(style),
        "script-src": digest(ran),
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def test_a_page_of_vip_is_told_from_others(tmp_path: Path) -> None:
    own, other = tmp_path / "own.html", tmp_path / "other.html"
    own.write_text(render_page("vip.html", "layout.html.jinja", style=""), encoding="utf-8")
    other.write_text('<!doctype html><meta name="generator" content="vipers">', encoding="utf-8")
    assert (is_page(own), is_page(other)) == (True, False)
    other.write_bytes(b"")
    assert not is_page(other)
    with pytest.raises(StoreError, match="cannot be read"):
        is_page(tmp_path)
