"""The page in a real browser, as people use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.review.browser import CHROMIUM, Browser
from tests.review.corpora import RICH, action, make_described, open_state
from tests.review.serving import Served, serve
from vip.review.report import report_page

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

MARKUP = "<script>document.title='hacked'</script><img src=x onerror=alert(1)>"
SAVED = "/^(Saved|Undone|Redone)/.test(document.getElementById('saved').textContent)"


ANSWERED = (
    """(path) => performance.getEntriesByType("resource").filter((one) => new URL(one.name).pathname === path && one.responseEnd > 0)"""
)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(open_state(make_described(tmp_path / "a", 5)), report=lambda state: report_page(state, title="a", token="t")) as running:
        yield running


def begin(tab: Browser, served: Served, name: str = "Ann", **window: object) -> None:
    """Open the page as this reviewer; every server has a port, and so an origin, of its own."""
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.run("localStorage.clear()")
    tab.complaints.clear()  # of the page before, whose server is gone
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.wait("document.getElementById('name-box').open")
    tab.type(name)
    tab.press("Enter")
    shows(tab, 1)


def shows(tab: Browser, number: int) -> None:
    """Wait until the item with this place in the queue is there."""
    tab.wait(f"document.getElementById('count').textContent.startsWith('{number} of') && !document.getElementById('item').hidden")
    tab.wait(f"document.getElementById('by').textContent.includes('k{number - 1}')")


def said(served: Served) -> list[tuple[str, str, str, str | None]]:
    return [(row.reviewer, row.item, row.field, row.after) for row in served.state.log.read()]


def test_judging_editing_undoing_and_reloading_by_keys_alone(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.press("1")
    shows(chromium, 2)  # a good one is left behind
    chromium.wait(SAVED)
    chromium.press("f")
    chromium.type("a juggler")
    chromium.press("Escape")
    chromium.wait("document.getElementById('note-focus').textContent.startsWith('Changed by Ann. The engine wrote: a dancer')")
    chromium.press("M")
    chromium.wait("document.querySelector('[data-field=mood] .wrong').getAttribute('aria-pressed') === 'true'")
    chromium.press("2")
    chromium.wait(SAVED)
    chromium.press("c")
    chromium.type("see the left hand")
    chromium.press("Enter", ctrl=True)
    shows(chromium, 3)
    chromium.wait("document.getElementById('progress-text').textContent.startsWith('2 of 5')")
    chromium.wait(SAVED)
    assert said(served) == [
        ("Ann", "k0", "verdict", "good"),
        ("Ann", "k1", "focus", "a juggler"),
        ("Ann", "k1", "wrong:mood", "wrong"),
        ("Ann", "k1", "verdict", "needs work"),
        ("Ann", "k1", "comment", "see the left hand"),
    ]
    chromium.press("z")
    shows(chromium, 2)  # where the comment was
    chromium.wait("document.getElementById('text-comment').value === ''")
    chromium.press("y")
    chromium.wait("document.getElementById('text-comment').value === 'see the left hand'")
    chromium.open(served.address)
    shows(chromium, 1)  # the name is known
    chromium.press("j")
    shows(chromium, 2)
    assert (chromium.value("focus"), chromium.value("comment")) == ("a juggler", "see the left hand")
    assert chromium.complaints == []


def test_what_is_typed_is_saved_without_leaving_the_field(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.press("d")
    chromium.type("Two people dance.")
    chromium.wait(SAVED)
    assert said(served) == [("Ann", "k0", "dense_caption", "Two people dance.")]


def test_a_second_reviewer_is_blind_and_sees_a_disagreement_after_judging(chromium: Browser, served: Served) -> None:
    served.state.record([action("k0", "verdict", "unusable", by="Bob")])
    begin(chromium, served)
    assert chromium.run("document.getElementById('others').hidden") is True
    assert "Bob" not in chromium.run("document.body.innerText")
    chromium.run("document.getElementById('go-on').click()")
    chromium.press("1")
    chromium.wait(SAVED)
    chromium.run("(view => { view.value = 'disagreed'; view.dispatchEvent(new Event('change')); })(document.getElementById('view'))")
    chromium.wait("document.getElementById('others').textContent.includes('Bob: unusable')")
    chromium.run("[...document.querySelectorAll('.settle button')].find(one => one.textContent === 'needs work').click()")
    chromium.wait(SAVED)
    chromium.wait("document.querySelector('.settle [aria-pressed=true]')?.textContent === 'needs work'")
    assert said(served)[-1] == ("Ann", "k0", "final:verdict", "needs work")


def test_of_two_who_edit_one_text_nobody_loses_it(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    served.ask(
        "/api/actions",
        {"reviewer": "Bob", "actions": [{"uid": "b", "item": "k0", "field": "focus", "before": "a dancer", "after": "Bob's"}]},
    )
    chromium.press("f")
    chromium.type("Ann's")
    chromium.press("Escape")
    clash = "document.querySelector('[data-field=focus] .clash')"
    chromium.wait(f"!{clash}.hidden")
    assert "Bob's" in chromium.text("[data-field=focus] .clash")
    assert "Ann's" in chromium.text("[data-field=focus] .clash")
    chromium.run(f"{clash}.querySelector('button').click()")
    chromium.wait(SAVED)
    assert [row[3] for row in said(served)] == ["Bob's", "Ann's"]


def test_nothing_is_lost_while_the_server_does_not_answer(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.run("window.fetched = fetch; window.fetch = () => Promise.reject(new TypeError('gone'))")
    chromium.press("2")
    chromium.wait("document.getElementById('saved').textContent.startsWith('Not saved')")
    assert said(served) == []
    chromium.run("window.fetch = window.fetched")
    chromium.wait(SAVED)
    assert said(served) == [("Ann", "k0", "verdict", "needs work")]


def test_a_second_edit_before_the_first_is_saved_is_no_clash(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.run("window.fetched = fetch; window.waiting = []; window.posted = 0")
    chromium.run(
        "window.fetch = async (...all) => { if (all[0] === 'api/actions') { window.posted += 1;"
        " await new Promise((open) => window.waiting.push(open)); } return window.fetched(...all); }"
    )
    for text in ("a kite", "a hat"):
        chromium.press("f")
        chromium.type(text)
        chromium.press("Escape")
    assert said(served) == []
    chromium.run("window.waiting.shift()()")
    chromium.wait("document.getElementById('note-focus').textContent.startsWith('Changed by Ann') && window.posted === 2")
    assert chromium.text("#saved") == "Saving…"
    chromium.run("window.waiting.shift()()")
    chromium.wait(SAVED)
    assert [(row.before, row.after) for row in served.state.log.read()] == [("a dancer", "a kite"), ("a kite", "a hat")]
    assert chromium.run("document.querySelector('[data-field=focus] .clash').hidden") is True


def test_filters_search_and_replace(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.press("/")
    chromium.type("caption of 3")
    chromium.wait("document.getElementById('count').textContent === '1 of 1'")
    chromium.press("Escape", "r")
    chromium.wait("document.getElementById('replace-box').open")
    chromium.run("document.getElementById('find').value = 'dancer'; document.getElementById('put').value = 'juggler'")
    chromium.run("document.getElementById('replace-form').requestSubmit()")
    chromium.wait("document.getElementById('replace-count').textContent")
    assert chromium.text("#replace-count") == "1 texts would change."
    assert said(served) == []
    chromium.run("document.getElementById('apply').click()")
    chromium.wait("document.getElementById('text-focus').value === 'a juggler'")
    chromium.wait("document.querySelector('#batches button') !== null")
    chromium.run("document.querySelector('#batches button').click()")
    chromium.wait("document.getElementById('text-focus').value === 'a dancer'")
    assert [row[1:] for row in said(served)] == [("k3", "focus", "a juggler"), ("k3", "focus", "a dancer")]


def test_detections_keys_history_and_the_doubts_of_verify_are_shown(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.press("j", "j")
    shows(chromium, 3)
    assert "--verify found no support for “rope”" in chromium.text("#note-objects")
    assert chromium.run("getComputedStyle(document.getElementById('boxes')).display") == "none"
    chromium.press("b")
    chromium.wait("document.getElementById('boxes').querySelector('rect').getBoundingClientRect().width > 50")
    assert chromium.text("#found") == "Detected: person 0.75"
    chromium.press("?")
    chromium.wait("document.getElementById('help-box').open && document.getElementById('keys').textContent.includes('undo')")
    chromium.press("Escape", "h")
    chromium.wait("document.getElementById('history-box').open")


KEYLESS = """(() => {
  const listed = new Set([...document.querySelectorAll('#keys kbd')].map((one) => one.textContent));
  const keys = (one) => one.closest('[aria-keyshortcuts]')?.getAttribute('aria-keyshortcuts');
  const written = (key) => key.replace(/^Shift\\+(.)$/, '$1').replace('Control+', 'Ctrl ').replace('+', ' ');
  const used = [...document.querySelectorAll('button, a[href], select, input, textarea')];
  const open = used.filter((one) => !one.closest('dialog') && one.checkVisibility() && !one.disabled);
  return open.filter((one) => !keys(one) || !listed.has(written(keys(one)))).map((one) => one.id || one.textContent);
})()"""
"""What can be used on the page and has no key that `?` lists."""


def test_all_that_can_be_used_has_a_key_that_the_help_lists(chromium: Browser, tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 3, rich=RICH))
    state.record([action("k0", "verdict", value, by=name) for name, value in (("Bob", "unusable"), ("Eve", "good"))])
    with serve(state) as served:
        begin(chromium, served)
        assert chromium.run(KEYLESS) == []
        chromium.press("x", "1")
        chromium.wait(SAVED)
        chromium.press("v")
        assert chromium.run("document.activeElement.id") == "view"
        chromium.run("(view => { view.value = 'disagreed'; view.dispatchEvent(new Event('change')); })(document.activeElement)")
        chromium.wait("document.querySelectorAll('.settle button').length === 3")
        chromium.press("Escape")
        assert [one for one in chromium.run(KEYLESS) if one not in {"good", "needs work", "unusable"}] == []
        chromium.press("5")
        chromium.wait("document.querySelector('.settle [aria-pressed=true]')?.textContent === 'needs work'")
        chromium.wait("/^Saved (?!verdict)/.test(document.getElementById('saved').textContent)")
        chromium.press("4")
        chromium.wait("document.getElementById('saved').textContent === 'Nothing is left to settle'")
        assert said(served)[-1] == ("Ann", "k0", "final:verdict", "needs work")


def test_keys_go_through_the_rich_fields_and_call_them_wrong(chromium: Browser, tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 2, rich=RICH))) as served:
        begin(chromium, served)
        fields = chromium.run("[...document.querySelectorAll('#rich .field')].map((one) => one.dataset.field)")
        for field in (*fields, fields[0]):
            chromium.press("e")
            assert chromium.run("document.activeElement.id") == f"text-{field}"
            chromium.press("Escape")
        chromium.press("E")
        chromium.wait(SAVED)
        assert said(served)[-1] == ("Ann", "k0", f"wrong:{fields[0]}", "wrong")


@pytest.mark.parametrize(("key", "kept"), [("q", "Ann's"), ("w", "Bob's")])
def test_a_key_settles_what_two_have_edited(chromium: Browser, served: Served, key: str, kept: str) -> None:
    begin(chromium, served)
    edit = {"uid": "b", "item": "k0", "field": "focus", "before": "a dancer", "after": "Bob's"}
    served.ask("/api/actions", {"reviewer": "Bob", "actions": [edit]})
    chromium.press("f")
    chromium.type("Ann's")
    chromium.press("Escape")
    clash = "document.querySelector('[data-field=focus] .clash')"
    chromium.wait(f"!{clash}.hidden")
    assert chromium.run(KEYLESS) == []
    chromium.press(key)
    chromium.wait(f"{clash}.hidden")
    chromium.wait(f"document.getElementById('text-focus').value === {kept!r}" if key == "w" else SAVED)
    assert served.state.value("k0", "focus") == kept


def test_keys_replace_and_take_a_replacement_back(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    before = served.state.value("k0", "focus")
    chromium.press("r")
    chromium.wait("document.activeElement.id === 'find'")
    chromium.type("dancer")
    chromium.press("Tab")
    chromium.type("juggler")
    chromium.press("Enter")
    chromium.wait("document.getElementById('apply').disabled === false")
    chromium.press("Enter", ctrl=True)
    chromium.wait("document.querySelectorAll('#batches button').length === 1")
    assert served.state.value("k0", "focus") == "a juggler"
    chromium.run("dispatchEvent(new KeyboardEvent('keydown', { key: 't', altKey: true, bubbles: true }))")
    chromium.wait("document.querySelectorAll('#batches button').length === 2")
    assert served.state.value("k0", "focus") == before


def test_markup_in_every_field_is_shown_as_text(chromium: Browser, tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 2, text=MARKUP)), is_blind=False) as served:
        item = served.state.index.items[0].id
        served.state.record([action(item, "comment", MARKUP, by=MARKUP[:50]), action(item, "verdict", "good", by=MARKUP[:50])])
        begin(chromium, served)
        assert chromium.value("focus") == f"a dancer{MARKUP}"
        assert MARKUP in chromium.text("#others")
        chromium.press("b", "h")
        chromium.wait("document.getElementById('history').textContent.includes('alert(1)')")
        assert chromium.run("document.title") == "Review of sample"
        assert chromium.run("document.querySelectorAll('main script, main img[src=x]').length") == 0
        assert chromium.complaints == []


def test_no_name_of_a_stranger_turns_a_line_round(chromium: Browser, tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 2, text="\u202e\x9b\u200d!"))) as served:
        begin(chromium, served)
        chromium.press("f")
        chromium.type("a kite")
        chromium.press("Escape")
        chromium.wait("document.getElementById('note-focus').textContent.startsWith('Changed by Ann')")
        said = chromium.text("#by") + chromium.text("#note-focus")
        assert "\ufffd\ufffd\u200d!" in said
        assert not set(said) & set("\u202e\x9b")


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("is_dark", [False, True])
def test_the_page_fits_narrow_and_dark_windows(chromium: Browser, served: Served, tmp_path: Path, width: int, is_dark: bool) -> None:
    begin(chromium, served, width=width, is_dark=is_dark)
    assert chromium.run("document.documentElement.scrollWidth <= innerWidth") is True
    paper = chromium.run("getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(20, 20, 22)") is is_dark
    chromium.wait("document.getElementById('picture').naturalWidth === 640")
    assert chromium.run("document.getElementById('picture').getBoundingClientRect().width") > 300


def test_everything_that_can_be_used_has_a_name_and_is_reached_by_the_tab_key(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    chromium.call("Accessibility.enable")
    nodes = chromium.call("Accessibility.getFullAXTree")["nodes"]
    roles = {"button", "textbox", "searchbox", "combobox", "checkbox", "link", "image", "main", "progressbar", "listbox"}
    named = [(node["role"]["value"], node.get("name", {}).get("value", "")) for node in nodes if not node.get("ignored")]
    unnamed = [role for role, name in named if role in roles and not name.strip()]
    assert unnamed == []
    assert ("button", "Mood is wrong") in named
    chromium.run("document.activeElement.blur()")
    reached = set()
    for _ in range(50):
        chromium.press("Tab")
        reached.add(chromium.run("document.activeElement.id || document.activeElement.dataset.verdict || document.activeElement.className"))
    assert {"open-help", "view", "word", "who", "toggle-boxes", "good", "unusable", "text-focus", "text-comment", "next"} <= reached


def test_the_agreement_is_a_page(chromium: Browser, served: Served) -> None:
    for who, verdict in (("Ann", "good"), ("Bob", "unusable")):
        served.state.record([action("k0", "verdict", "good", by=who), action("k1", "verdict", verdict, by=who)])
    chromium.complaints.clear()
    chromium.open(served.address.replace("/?", "/agreement?"))
    text = chromium.run("document.body.innerText")
    assert "Krippendorff's α" in text
    assert "0.500" in text
    assert "1 open disagreement" in text


def test_of_ten_thousand_keyframes_the_next_is_there_without_asking_the_server(chromium: Browser, tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 10_000))) as served:
        begin(chromium, served)
        chromium.wait("document.getElementById('count').textContent === '1 of 10000'")
        for path in ("/api/items/1", "/picture/1", "/api/items/2", "/picture/2"):
            chromium.wait(f"({ANSWERED})('{path}').length > 0")
        chromium.run("window.fetch = () => new Promise(() => {})")  # from now on nothing is answered
        chromium.press("j")
        shows(chromium, 2)
        chromium.press("j")
        shows(chromium, 3)
        chromium.wait("document.getElementById('picture').naturalWidth === 640")
        answers = chromium.run(f"({ANSWERED})('/api/items/2').concat(({ANSWERED})('/api/queue')).map((one) => one.encodedBodySize)")
        assert answers[0] < 4_000, "an item is as large with ten thousand as with ten"
        assert max(answers[1:]) < 60_000, "the queue is numbers, and nothing else"


def test_a_rewritten_caption_is_shown_before_and_after_and_accepted_or_put_back(tmp_path: Path, chromium: Browser) -> None:
    from vip.config import CaptionSettings
    from vip.protocols import SilentObserver
    from vip.review.rewrite import rewrite_captions

    tab = chromium
    state = open_state(make_described(tmp_path / "a", 2, text=MARKUP))
    for item in ("k0", "k1"):
        state.record(
            [action(item, "focus", "a kite", by="Eve", before=state.value(item, "focus")), action(item, "verdict.2", "good", by="Eve")]
        )
    before = state.value("k0", "dense_caption")
    rewrite_captions(state, CaptionSettings(engine="fake"), observer=SilentObserver())
    after = state.value("k0", "dense_caption")
    shown = "document.getElementById('rewritten')"
    with serve(state, stage="3") as served:
        begin(tab, served)
        tab.wait(f"!{shown}.hidden")
        assert tab.run(f"[...{shown}.querySelectorAll('del, span')].length > 0 && [...{shown}.querySelectorAll('ins')].length > 0")
        assert "engine:fake" in tab.run(f"{shown}.textContent")
        assert (
            tab.run(f"[...{shown}.querySelectorAll('p:nth-child(2) > :not(del)')].map((one) => one.textContent).join('')").strip() == after
        )
        assert tab.run(KEYLESS) == []
        tab.press("t")
        tab.wait(SAVED)
        assert served.state.value("k0", "dense_caption") == before
        tab.wait(f"{shown}.textContent.includes('taken back')")
        tab.run(f"[...{shown}.querySelectorAll('button')].find((one) => one.textContent === 'Accept').click()")
        tab.wait("document.getElementById('count').textContent.startsWith('2 of')")
        tab.wait("document.getElementById('progress-text').textContent.startsWith('1 of 2')")
        assert served.state.said("k0", "verdict.3") == {"Ann": "good"}
        assert tab.run("document.title") == "Review of sample"


def test_the_page_says_who_else_is_there_and_shows_what_they_saved(served: Served, chromium: Browser) -> None:
    begin(chromium, served)
    served.ask("/api/here/0", {"reviewer": "Bob", "is_editing": True})
    chromium.wait("document.getElementById('here').textContent === 'Bob is editing this keyframe now.'")
    focus = served.ask("/api/items/0?reviewer=Bob").json["texts"]["focus"]
    change = {"uid": "bob-1", "item": "k0", "field": "focus", "before": focus, "after": "a kite of Bob's"}
    served.ask("/api/actions", {"reviewer": "Bob", "actions": [change]})
    chromium.wait("document.getElementById('text-focus').value === \"a kite of Bob's\"")
    chromium.wait("document.getElementById('note-focus').textContent.includes('Changed by Bob')")


def test_the_fields_of_the_schema_rich_are_shown_and_edited_where_a_description_has_them(chromium: Browser, tmp_path: Path) -> None:
    with serve(open_state(make_described(tmp_path / "a", 2, rich=RICH))) as served:
        begin(chromium, served)
        assert (chromium.value("counts"), chromium.value("shot_size")) == ("dancer: 1\nrope: 2", "full shot")
        chromium.press("?")
        keys = chromium.run("[...document.querySelectorAll('#keys dt')].map((one) => one.textContent)")
        assert len(set(keys)) == len(keys)
        chromium.press("Escape", "c")
        assert chromium.run("document.activeElement.id") == "text-comment"  # and not that of counts or colours
        chromium.press("Escape", "s")
        assert chromium.run("document.activeElement.id") == "text-setting"
        chromium.press("Escape")
        chromium.run("document.getElementById('text-counts').focus()")
        chromium.type("two dancers")
        chromium.press("Escape")
        chromium.wait("document.getElementById('note-counts').textContent.startsWith('Not saved. counts: \"two dancers\"')")
        chromium.run("document.getElementById('text-counts').focus()")
        chromium.type("dancer: 2")
        chromium.press("Escape")
        chromium.wait("document.getElementById('note-counts').textContent.startsWith('Changed by Ann')")
        chromium.run("document.getElementById('text-shot_size').focus()")
        chromium.press("l", "Escape")  # the browser goes to the first that begins so
        chromium.wait("document.getElementById('note-shot_size').textContent.startsWith('Changed by Ann')")
        chromium.run("document.querySelector('[data-field=style] .wrong').click()")
        chromium.wait(SAVED)
        assert [row[2:] for row in said(served)] == [("counts", "dancer: 2"), ("shot_size", "long shot"), ("wrong:style", "wrong")]
        chromium.run("document.activeElement.blur()")
        chromium.press("j")
        shows(chromium, 2)
        assert chromium.run("document.getElementById('rich').hidden") is True
        chromium.press("k")
        shows(chromium, 1)
        assert (chromium.value("counts"), chromium.value("shot_size")) == ("dancer: 2", "long shot")
