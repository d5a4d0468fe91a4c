"""The pages of reviews have no serious fault for people who use a screen reader, a keyboard, or little contrast (axe-core)."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
pytest.importorskip("axe_core_python")

from tests.review.browser import CHROMIUM, Browser
from tests.review.corpora import make_described, open_state
from tests.review.questions import open_questions, write_how2qa, write_options
from tests.review.serving import TOKEN, serve
from tests.review.test_blank_server import answer
from tests.review.test_blank_server import begin as begin_blanks
from tests.review.test_blanks import open_blanks
from tests.review.test_browser import begin
from tests.review.test_question_server import begin as begin_questions
from vip.review.blank_server import BlankServer
from vip.review.question_server import QuestionServer
from vip.review.report import report_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
SERIOUS = ("serious", "critical")
FAULTS = "axe.run().then((found) => JSON.stringify(found.violations.map((one) => [one.impact, one.id, one.nodes[0].html])))"
WINDOWS = pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (1280, True), (400, False), (400, True)])


def serious_faults(tab: Browser) -> list[list[str]]:
    tab.run(f"{(files('axe_core_python') / 'axe.min.js').read_text(encoding='utf-8')}; 1")
    return [fault for fault in json.loads(tab.run(FAULTS)) if fault[0] in SERIOUS]


@WINDOWS
def test_the_page_of_keyframes(chromium: Browser, tmp_path: Path, width: int, is_dark: bool) -> None:
    with serve(open_state(make_described(tmp_path / "a", 3)), report=lambda state: report_page(state, title="a", token=TOKEN)) as served:
        begin(chromium, served, width=width, is_dark=is_dark)
        assert serious_faults(chromium) == []
        chromium.press("?")
        assert serious_faults(chromium) == []
        chromium.open(served.address.replace("/?", "/agreement?"), width=width, is_dark=is_dark)
        assert serious_faults(chromium) == []


@WINDOWS
def test_the_page_of_blanks(chromium: Browser, tmp_path: Path, width: int, is_dark: bool) -> None:
    with serve(open_blanks(tmp_path), BlankServer) as served:
        begin_blanks(chromium, served, width=width, is_dark=is_dark)
        answer(chromium, 1, "a dog", "the dog")
        assert serious_faults(chromium) == []


@WINDOWS
def test_the_pages_of_questions(chromium: Browser, tmp_path: Path, width: int, is_dark: bool) -> None:
    for state in (open_questions(write_how2qa(tmp_path / "h.jsonl"), "answer"), open_questions(write_options(tmp_path / "o.csv"), "check")):
        with serve(state, QuestionServer) as served:
            begin_questions(chromium, served, width=width, is_dark=is_dark)
            chromium.run("document.querySelector('.instructions').open = true")
            chromium.press("2")
            assert serious_faults(chromium) == []


def test_a_fault_would_be_found(chromium: Browser, tmp_path: Path) -> None:
    with serve(open_blanks(tmp_path), BlankServer) as served:
        begin_blanks(chromium, served)
        chromium.run("document.querySelector('main').append(Object.assign(document.createElement('img'), { src: 'data:,' }))")
        assert [fault[1] for fault in serious_faults(chromium)] == ["image-alt"]
