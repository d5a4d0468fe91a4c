"""FIBER's page: what the server refuses, and the page in a real browser, from the first answer to what `vip fiber collect` writes"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.clips import clip
from tests.review.browser import CHROMIUM, Browser
from tests.review.serving import Served, serve
from tests.review.test_blanks import write_blanks
from vip.cli.app import run
from vip.review.blank_server import BlankServer
from vip.review.blanks import BlankState, export_answers, log_path, read_items
from vip.review.log import ReviewLog

in_browser = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
SAVED = "/^Saved/.test(document.getElementById('saved').textContent)"
BOX = "document.querySelector('[data-place=\"{}\"] .sentence input')"


@pytest.fixture
def blanks(tmp_path: Path) -> Path:
    return write_blanks(tmp_path / "blanks.json")


@pytest.fixture
def served(tmp_path: Path, blanks: Path) -> Iterator[Served]:
    clips = tmp_path / "clips"
    clips.mkdir()
    clip(clips / "v0.mp4", range(2))
    with serve(BlankState(read_items(blanks, clips), ReviewLog(log_path(blanks))), BlankServer) as running:
        yield running


def begin(tab: Browser, served: Served, name: str = "Ann", **window: object) -> None:
    tab.complaints.clear()
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.run("localStorage.clear()")
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.wait("document.getElementById('name-box').open")
    tab.type(name)
    tab.press("Enter")
    tab.wait("document.querySelectorAll('.question').length === 5")


def answer(tab: Browser, place: int, *answers: str) -> None:
    tab.run(f"{BOX.format(place)}.focus()")
    for text in answers:
        tab.type(text)
        tab.press("Enter")
    tab.wait(SAVED)  # a page that waits for its server does not let a test go on to the next address


def list_of(tab: Browser, place: int) -> list[str]:
    found: list[str] = tab.run(f"[...document.querySelectorAll('[data-place=\"{place}\"] .answers bdi')].map((one) => one.textContent)")
    return found


# ---------------------------------------------------------------- the server


@pytest.mark.parametrize("path", ["/", "/api/hit?reviewer=Ann", "/video/0", "/shared/answers.js"])
def test_nothing_is_shown_without_the_token(served: Served, path: str) -> None:
    assert served.ask(path, token=None).status == 401


def test_clips_are_asked_for_by_number_and_are_no_links(served: Served, tmp_path: Path) -> None:
    assert served.ask("/video/0").status == 200
    assert served.ask("/video/1").status == 404
    assert served.ask("/video/99").status == 404
    path, other = tmp_path / "clips/v0.mp4", tmp_path / "other.mp4"
    path.rename(other)
    path.symlink_to(other)
    assert served.ask("/video/0").status == 404


@pytest.mark.parametrize("name", ["hits.py", "..%2Fhits.py", "annotation.js"])
def test_only_the_files_of_the_page_are_shared(served: Served, name: str) -> None:
    assert served.ask(f"/shared/{name}").status == 404


@pytest.mark.parametrize("asked", ["reviewer=", "reviewer=" + "x" * 61])
def test_a_person_has_a_name(served: Served, asked: str) -> None:
    assert served.ask(f"/api/hit?{asked}").status == 400


@pytest.mark.parametrize("number", ["999999999999", "-1", "x"])
def test_any_number_leads_to_blanks(served: Served, number: str) -> None:
    assert 0 <= served.ask(f"/api/hit?reviewer=Ann&number={number}").json["number"] <= 1


def test_what_the_page_would_not_send_is_refused(served: Served) -> None:
    body = {"reviewer": "Ann", "actions": [{"uid": "1", "item": "v0_000000_000010", "field": "answers", "after": "a cat\nthe cat"}]}
    refused = served.ask("/api/actions", body)
    assert (refused.status, b"none is there twice" in refused.body) == (400, True)


# ---------------------------------------------------------------- the page


class TestPage:
    pytestmark = in_browser

    def test_from_the_first_answer_to_what_collect_writes(
        self, chromium: Browser, served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        begin(chromium, served)
        for place in range(1, 6):
            answer(chromium, place, "a cat", "some dogs")
        chromium.wait("document.getElementById('progress-text').textContent === '5 of 7'")
        chromium.run("document.getElementById('next').click()")
        chromium.wait("document.querySelectorAll('.question').length === 2")
        for place in (1, 2):
            answer(chromium, place, "a cat", "three birds")
        chromium.run("document.getElementById('comments').value = 'well made'")
        chromium.run("document.getElementById('next').click()")
        chromium.wait("document.getElementById('hint').textContent.startsWith('All blanks')")
        assert not chromium.complaints
        assert export_answers(served.state, tmp_path / "results.csv") == 2
        monkeypatch.chdir(tmp_path)
        assert run(["fiber", "collect", "results.csv", "-o", "answers.jsonl", "--parser", "none"]) == 0
        assert "well made" in (tmp_path / "results.csv").read_text()
        rows = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text().splitlines()]
        assert {row["video"] for row in rows} == {f"v{number}" for number in range(7)}

    def test_an_answer_is_there_once_and_the_order_is_that_of_the_person(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        answer(chromium, 1, "a dog", "the Dog!")
        assert chromium.text("[data-place='1'] .alert") == "This answer is there already."
        chromium.run(f"{BOX.format(1)}.value = ''")
        answer(chromium, 1, "a puppy", "an animal")
        chromium.run("document.querySelectorAll('[data-place=\"1\"] .answers .up')[2].click()")
        assert list_of(chromium, 1) == ["a dog", "an animal", "a puppy"]
        chromium.run("document.querySelector('[data-place=\"1\"] .answers .remove').click()")
        chromium.wait(SAVED)
        begin_again(chromium, served)
        assert list_of(chromium, 1) == ["an animal", "a puppy"]

    def test_undo_and_redo(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        answer(chromium, 1, "a dog", "a puppy")
        chromium.wait(SAVED)
        chromium.run("document.getElementById('undo').click()")
        chromium.wait("document.querySelectorAll('[data-place=\"1\"] .answers li').length === 1")
        assert list_of(chromium, 1) == ["a dog"]
        chromium.run("document.getElementById('redo').click()")
        chromium.wait("document.querySelectorAll('[data-place=\"1\"] .answers li').length === 2")
        assert list_of(chromium, 1) == ["a dog", "a puppy"]

    def test_less_than_two_answers_do_not_lead_on(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        answer(chromium, 1, "a dog")
        chromium.run("document.getElementById('next').click()")
        chromium.wait("document.querySelector('[data-place=\"1\"] .alert').textContent === 'Give at least 2 answers.'")
        assert chromium.run("document.querySelectorAll('.question').length") == 5

    def test_a_video_that_is_gone(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        assert "not at hand" in chromium.text("[data-place='2'] .missing")
        chromium.run("document.querySelector('[data-place=\"2\"] .gone').click()")
        chromium.wait(SAVED)
        assert list_of(chromium, 2) == ["unavailable video", "unavailable video 2"]

    def test_the_clip_plays_from_its_start(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        assert chromium.run("document.querySelector('[data-place=\"1\"] video').src").endswith("#t=0,10")

    def test_another_person_begins_with_nothing(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        answer(chromium, 1, "a dog", "a puppy")
        chromium.wait(SAVED)
        begin(chromium, served, "Ben")
        assert list_of(chromium, 1) == []

    def test_text_of_others_is_shown_as_text(self, chromium: Browser, served: Served) -> None:
        begin(chromium, served)
        answer(chromium, 1, "<img src=x onerror=alert(1)>", "a dog")
        chromium.wait(SAVED)
        begin_again(chromium, served)
        assert list_of(chromium, 1)[0] == "<img src=x onerror=alert(1)>"
        assert not chromium.complaints

    @pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (400, True)])
    def test_nothing_is_wider_than_the_window(self, chromium: Browser, served: Served, width: int, is_dark: bool) -> None:
        begin(chromium, served, width=width, is_dark=is_dark)
        answer(chromium, 1, "a dog", "a very long answer that has many words in it", "x" * 120)
        assert chromium.run("document.documentElement.scrollWidth") <= width


def begin_again(tab: Browser, served: Served) -> None:
    """Reload the page; the name is known."""
    tab.wait(SAVED)
    tab.open(served.address)
    tab.wait("document.querySelectorAll('.question').length === 5")
