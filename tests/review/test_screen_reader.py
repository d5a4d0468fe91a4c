"""What a screen reader is told by Chromium's own tree: names and roles, what was saved, and where the focus is after each step."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.review.browser import CHROMIUM, Browser
from tests.review.corpora import RICH, action, make_described, open_state
from tests.review.questions import open_questions, write_how2qa, write_options
from tests.review.serving import Served, serve
from tests.review.test_blank_server import begin as begin_blanks
from tests.review.test_blanks import open_blanks
from tests.review.test_browser import begin, shows
from tests.review.test_question_server import begin as begin_questions
from tests.review.test_written import begin as begin_written
from tests.review.test_written import opened, write_infilling
from vip.review.blank_server import BlankServer
from vip.review.question_server import QuestionServer
from vip.review.written_server import WrittenServer
from vip.tasks.sample_pictures import PictureSources

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
CONTROLS = {"button", "textbox", "searchbox", "combobox", "checkbox", "radio", "link", "DisclosureTriangle"}
FOCUS = "document.activeElement.id || document.activeElement.dataset.verdict || document.activeElement.tagName"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(open_state(make_described(tmp_path / "a", 4, rich=RICH))) as running:
        yield running


def tree(tab: Browser) -> list[dict[str, str]]:
    """The role, the name and the value of all that is not ignored, in order."""
    tab.call("Accessibility.enable")
    nodes = [node for node in tab.call("Accessibility.getFullAXTree")["nodes"] if not node.get("ignored")]
    parts = ("role", "name", "value")
    return [{part: str(node.get(part, {}).get("value", "")) for part in parts} for node in nodes]


def controls(tab: Browser) -> list[tuple[str, str]]:
    return [(node["role"], node["name"].strip()) for node in tree(tab) if node["role"] in CONTROLS]


def live(tab: Browser, selector: str) -> dict[str, object]:
    """What the tree says of an element: its role, and the words that are announced when they change."""
    tab.call("Accessibility.enable")
    tab.call("DOM.enable")
    root = tab.call("DOM.getDocument")["root"]["nodeId"]
    found = tab.call("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
    node = tab.call("Accessibility.getPartialAXTree", nodeId=found, fetchRelatives=False)["nodes"][0]
    properties = {one["name"]: one["value"].get("value") for one in node["properties"]}
    return {"role": node["role"]["value"], "live": properties.get("live"), "text": tab.text(selector)}


def test_each_control_has_a_role_and_a_name_that_is_its_own(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    found = controls(chromium)
    assert [role for role, name in found if not name] == []
    assert len(set(found)) == len(found), sorted(one for one in found if found.count(one) > 1)
    assert ("button", "Reviewer Ann") in found
    assert ("button", "Good") in found
    assert ("combobox", "Shot size") in found
    texts = {node["name"]: node["value"] for node in tree(chromium) if node["role"] == "textbox"}
    assert (texts["Focus"], texts["Relations"]) == ("a dancer", "rope | left of | dancer")


def test_the_other_pages_name_their_controls_too(chromium: Browser, tmp_path: Path) -> None:
    answer = open_questions(write_how2qa(tmp_path / "h.jsonl"), "answer")
    check = open_questions(write_options(tmp_path / "o.csv"), "check")
    pages = [(open_blanks(tmp_path), BlankServer, begin_blanks), (answer, QuestionServer, begin_questions)]
    written = partial(WrittenServer, sources=PictureSources(tmp_path / "i.jsonl"))
    pages += [(check, QuestionServer, begin_questions), (opened(write_infilling(tmp_path / "i.jsonl")), written, begin_written)]
    for state, kind, start in pages:
        with serve(state, kind) as served:
            start(chromium, served)
            found = controls(chromium)
            assert [role for role, name in found if not name] == [], kind
            assert ("button", "Reviewer Ann") in found, (kind, found)
            assert live(chromium, "#saved")["live"] == "polite"


def test_what_was_saved_is_announced_by_name(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.press("2")
    chromium.wait("document.getElementById('saved').textContent.startsWith('Saved verdict ')")
    assert live(chromium, "#saved")["role"] == "status"
    assert live(chromium, "#saved")["live"] == "polite"
    chromium.press("M")
    chromium.wait("document.getElementById('saved').textContent.startsWith('Saved the mark of mood ')")
    chromium.press("z")
    chromium.wait("document.getElementById('saved').textContent === 'Undone, and saved: the mark of mood'")
    chromium.press("z")
    chromium.wait("document.getElementById('saved').textContent === 'Undone, and saved: verdict'")
    chromium.press("y")
    chromium.wait("document.getElementById('saved').textContent === 'Redone, and saved: verdict'")


def test_the_focus_is_on_the_keyframe_that_is_shown_and_says_which_it_is(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    named = "document.getElementById('item').getAttribute('aria-label')"
    chromium.wait(f"document.activeElement.id === 'item' && {named} === 'Keyframe 1 of 4: v at 0:00.0'")
    chromium.run("document.querySelector('[data-verdict=good]').focus()")
    chromium.press(" ")
    shows(chromium, 2)
    chromium.wait(f"document.activeElement.id === 'item' && {named} === 'Keyframe 2 of 4: v at 0:01.0'")
    chromium.run("document.getElementById('next').focus()")
    chromium.press("Enter")
    shows(chromium, 3)
    chromium.wait("document.activeElement.id === 'item'")
    chromium.press("Tab")
    assert chromium.run(FOCUS) == "toggle-boxes"  # the first control of the keyframe
    chromium.run("document.querySelector('#neighbours button').focus()")
    chromium.press("Enter")
    shows(chromium, 1)
    chromium.wait("document.activeElement.id === 'item'")


def test_the_focus_stays_where_a_verdict_does_not_move_on(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.run("document.querySelector('[data-verdict=\"needs work\"]').focus()")
    chromium.press(" ")
    chromium.wait("document.getElementById('saved').textContent.startsWith('Saved verdict')")
    assert chromium.run(FOCUS) == "needs work"
    chromium.press("Escape", "f")
    assert chromium.run(FOCUS) == "text-focus"
    chromium.press("Escape")
    assert chromium.run(FOCUS) == "item"


def test_undo_keeps_the_focus_until_there_is_nothing_left_and_hands_it_to_redo(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.press("F", "A")
    chromium.wait("document.getElementById('saved').textContent.startsWith('Saved the mark of action')")
    chromium.run("document.getElementById('undo').focus()")
    chromium.press("Enter")
    chromium.wait("document.getElementById('saved').textContent === 'Undone, and saved: the mark of action'")
    assert chromium.run(FOCUS) == "undo"
    chromium.press("Enter")
    chromium.wait("document.getElementById('saved').textContent === 'Undone, and saved: the mark of focus'")
    assert chromium.run(FOCUS) == "redo"


def test_settling_keeps_the_focus(chromium: Browser, served: Served) -> None:
    served.state.record([action("k0", "verdict", "unusable", by="Bob"), action("k0", "verdict", "good", by="Ann")])
    begin(chromium, served)
    chromium.wait("!document.getElementById('others').hidden")
    chromium.run("document.querySelector('.settle button:nth-of-type(2)').focus()")
    chromium.press("Enter")
    chromium.wait("document.getElementById('saved').textContent.startsWith('Saved what was settled about verdict')")
    assert chromium.run("document.activeElement.textContent") == "needs work"


def test_a_dialog_gives_the_focus_back(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.run("document.getElementById('open-help').focus()")
    chromium.press("Enter")
    chromium.wait("document.getElementById('help-box').open")
    assert ("dialog", "Keys") in [(node["role"], node["name"]) for node in tree(chromium)]
    chromium.press("Escape")
    chromium.wait("!document.getElementById('help-box').open")
    assert chromium.run(FOCUS) == "open-help"
