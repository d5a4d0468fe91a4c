"""The page of questions with options: what its server refuses, and the page in a real browser"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.clips import clip
from tests.review.browser import CHROMIUM, Browser
from tests.review.questions import open_questions, write_how2qa, write_options
from tests.review.serving import Served, serve
from tests.review.test_answer_items import opened as open_answers
from tests.review.test_answer_items import write as write_answers
from vip.review.question_export import export_questions
from vip.review.question_server import QuestionServer
from vip.tasks.judge import read_labels

in_browser = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
SAVED = "/^(Saved|Undone|Redone)/.test(document.getElementById('saved').textContent)"
MARKUP = "<img src=x onerror=alert(1)>"


@pytest.fixture
def answers(tmp_path: Path) -> Iterator[Served]:
    clips = tmp_path / "clips"
    clips.mkdir()
    clip(clips / "v0.mp4", range(2))
    with serve(open_questions(write_how2qa(tmp_path / "h.jsonl"), "answer", videos=clips), QuestionServer) as running:
        yield running


@pytest.fixture
def check(tmp_path: Path) -> Iterator[Served]:
    with serve(open_questions(write_options(tmp_path / "o.csv"), "check"), QuestionServer) as running:
        yield running


# ---------------------------------------------------------------- the server


@pytest.mark.parametrize("path", ["/", "/api/question?reviewer=Ann", "/video/0", "/static/questions.js"])
def test_nothing_is_shown_without_the_token(answers: Served, path: str) -> None:
    assert answers.ask(path, token=None).status == 401


def test_the_right_option_is_not_sent_to_who_answers(answers: Served) -> None:
    shown = answers.ask("/api/question?reviewer=Ann")
    assert b"answer" not in shown.body
    assert (shown.json["start_s"], shown.json["end_s"], shown.json["has_video"]) == (0.5, 1.25, True)


def test_clips_are_asked_for_by_number_and_are_no_links(answers: Served, tmp_path: Path) -> None:
    assert [answers.ask(f"/video/{number}").status for number in (0, 1, 99)] == [200, 404, 404]
    path, other = tmp_path / "clips/v0.mp4", tmp_path / "other.mp4"
    path.rename(other)
    path.symlink_to(other)
    assert answers.ask("/video/0").status == 404


@pytest.mark.parametrize("name", ["review.js", "..%2Fserver.py", "server.py"])
def test_only_the_files_of_the_page_are_sent(answers: Served, name: str) -> None:
    assert answers.ask(f"/static/{name}").status == 404


@pytest.mark.parametrize("number", ["999999999999", "-1", "x", "²"])
def test_any_number_leads_to_a_question(answers: Served, number: str) -> None:
    from urllib.parse import quote

    assert 0 <= answers.ask(f"/api/question?reviewer=Ann&number={quote(number)}").json["number"] <= 2


def test_behind_a_question_comes_the_next_open_one_and_not_the_first(answers: Served) -> None:
    found = [answers.ask(f"/api/question?reviewer=Ann&number={number}").json["next_open"] for number in range(3)]
    assert found == [1, 2, 0]
    body = {"reviewer": "Ann", "actions": [{"uid": "1", "item": "1", "field": "choice", "after": "0"}]}
    assert answers.ask("/api/actions", body).status == 200
    assert [answers.ask(f"/api/question?reviewer=Ann&number={number}").json["next_open"] for number in range(3)] == [2, 2, 0]


@pytest.mark.parametrize(("field", "after"), [("choice", "4"), ("option.0", "mine"), ("mark.0", "bad"), ("choice", "x" * 100_000)])
def test_what_the_page_would_not_send_is_refused(answers: Served, field: str, after: str) -> None:
    body = {"reviewer": "Ann", "actions": [{"uid": "1", "item": "0", "field": field, "after": after}]}
    assert answers.ask("/api/actions", body).status == 400
    assert not list(answers.state.log.read())


# ---------------------------------------------------------------- the page


def begin(tab: Browser, served: Served, name: str = "Ann", **window: object) -> None:
    tab.complaints.clear()
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.run("localStorage.clear()")
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.wait("document.getElementById('name-box').open")
    tab.type(name)
    tab.press("Enter")
    shows(tab, 1)


def shows(tab: Browser, number: int) -> None:
    tab.wait(f"document.getElementById('where').textContent.startsWith('{number} of') && !document.getElementById('question').hidden")


def said(served: Served) -> list[tuple[str, str, str, str | None]]:
    return [(row.reviewer, row.item, row.field, row.after) for row in served.state.log.read()]


class TestAnswers:
    pytestmark = in_browser

    def test_questions_are_answered_by_keys_alone_and_the_page_goes_on_where_a_person_stopped(
        self, chromium: Browser, answers: Served
    ) -> None:
        begin(chromium, answers)
        chromium.press("2")
        chromium.press("Enter")
        shows(chromium, 2)
        chromium.press("1", "3", "Enter")
        shows(chromium, 3)
        chromium.wait("document.getElementById('progress-text').textContent === '2 of 3'")
        chromium.open(answers.address)
        shows(chromium, 3)
        chromium.press("k")
        shows(chromium, 2)
        assert chromium.run("document.querySelector('#options input:checked').value") == "2"
        chromium.press("z")
        chromium.wait("document.querySelector('#options input:checked').value === '0'")
        chromium.press("y")
        chromium.wait("document.querySelector('#options input:checked').value === '2'")
        chromium.press("j")
        shows(chromium, 3)
        chromium.press("4", "Enter")
        chromium.wait("document.getElementById('hint').textContent.startsWith('All questions are done')")
        assert said(answers)[:3] == [("Ann", "0", "choice", "1"), ("Ann", "1", "choice", "0"), ("Ann", "1", "choice", "2")]
        assert [answers.state.votes(item) for item in answers.state.items] == [{"Ann": 1}, {"Ann": 2}, {"Ann": 3}]
        assert chromium.complaints == []

    def test_a_question_is_not_left_without_an_answer(self, chromium: Browser, answers: Served) -> None:
        begin(chromium, answers)
        chromium.run("document.getElementById('next').click()")
        chromium.wait("document.getElementById('hint').textContent.startsWith('Choose an answer')")
        chromium.press("u")
        chromium.wait(SAVED)
        chromium.press("c")
        chromium.type("juice")  # letters in a text are no keys
        chromium.press("Escape", "Enter")
        shows(chromium, 2)
        assert [row for row in said(answers) if row[2] == "choice"] == [("Ann", "0", "choice", "unavailable")]
        assert ("Ann", "0", "comment", "juice") in said(answers)

    def test_the_interval_plays_and_stops(self, chromium: Browser, answers: Served) -> None:
        begin(chromium, answers)
        assert chromium.text("#times") == "0:00.5 – 0:01.3"
        assert chromium.run("document.querySelector('video').src").endswith("#t=0.5,1.25")
        chromium.wait("document.querySelector('video').readyState >= 2")
        chromium.run("document.querySelector('video').muted = true")
        chromium.press("p")
        chromium.wait("document.querySelector('video').currentTime >= 1.25 && document.querySelector('video').paused")

    def test_a_comment_is_saved_and_a_second_person_sees_neither_it_nor_the_choice(self, chromium: Browser, answers: Served) -> None:
        begin(chromium, answers)
        chromium.press("3")
        chromium.run("document.getElementById('comments').focus()")
        chromium.type("dark <b>video</b>")
        chromium.wait(
            "document.getElementById('saved').textContent.startsWith('Saved') && document.getElementById('undo').disabled === false"
        )
        chromium.press("Enter", ctrl=True)
        shows(chromium, 2)
        assert ("Ann", "0", "comment", "dark <b>video</b>") in said(answers)
        begin(chromium, answers, "Ben")
        assert chromium.run("document.querySelector('#options input:checked')") is None
        assert chromium.run("document.getElementById('comments').value") == ""

    def test_text_of_a_file_is_shown_as_text(self, chromium: Browser, answers: Served) -> None:
        begin(chromium, answers)
        assert chromium.text("#asked") == "What happens <b>0</b>?"
        assert chromium.complaints == []


class TestVerdicts:
    pytestmark = in_browser

    def test_an_answer_is_called_wrong_by_a_key_and_becomes_a_label(self, chromium: Browser, tmp_path: Path) -> None:
        path, samples = write_answers(tmp_path)
        state = open_answers(path, samples)
        with serve(state, QuestionServer) as served:
            begin(chromium, served)
            lines = chromium.run("document.getElementById('asked').innerText")
            assert lines.splitlines() == ["What runs?", "Known as right: a dog", "Answer: a dog"]
            chromium.press("2")
            chromium.wait(SAVED)
            done = export_questions(state, tmp_path / "people.csv", source=path)
        assert read_labels(done.path) == {"0": False}
        assert chromium.complaints == []


class TestCheck:
    pytestmark = in_browser

    def test_options_are_marked_changed_and_checked(self, chromium: Browser, check: Served) -> None:
        begin(chromium, check)
        assert chromium.text(".is-right") == "Right"
        chromium.press("2", "3", "3")
        chromium.wait("document.querySelectorAll('[aria-pressed=true]').length === 2")
        chromium.run("document.querySelectorAll('#options input')[3].focus()")
        chromium.type(MARKUP)
        chromium.press("Enter")
        chromium.wait(SAVED)
        chromium.press("Enter")
        shows(chromium, 2)
        assert check.state.options(check.state.items[0])[3] == MARKUP
        assert [check.state.marks(check.state.items[0], place) for place in (1, 2)] == [{"Ann": "right too"}, {"Ann": "bad"}]
        assert check.state.is_done(check.state.items[0], "Ann")
        chromium.press("k")
        shows(chromium, 1)
        assert chromium.run("document.querySelectorAll('#options input')[3].value") == MARKUP
        assert chromium.complaints == []

    def test_keys_mark_the_right_option_as_wrong_and_as_nothing_else(self, chromium: Browser, check: Served) -> None:
        begin(chromium, check)
        marks = []
        for _ in range(3):
            chromium.press("1")
            chromium.wait(SAVED)
            marks.append(check.state.marks(check.state.items[0], 0).get("Ann"))
        assert marks == ["bad", None, "bad"]

    def test_an_option_is_written_twice_by_one_person(self, chromium: Browser, check: Served) -> None:
        begin(chromium, check)
        for text in ("to swim", "to fly"):
            chromium.run("document.querySelectorAll('#options input')[3].focus()")
            chromium.type(text)
            chromium.press("Enter")
            chromium.wait(SAVED)
        assert [(row.before, row.after) for row in check.state.log.read()] == [("wrong 3", "to swim"), ("to swim", "to fly")]

    def test_what_is_refused_is_said_and_does_not_hold_up_what_follows(self, chromium: Browser, check: Served) -> None:
        begin(chromium, check)
        chromium.run("document.getElementById('comments').value = 'x'.repeat(20001)")
        chromium.run("document.getElementById('comments').dispatchEvent(new Event('input'))")
        chromium.wait("document.getElementById('saved').textContent.startsWith('Not saved: A comment has at most')")
        chromium.run("document.activeElement.blur()")
        chromium.press("2")
        chromium.wait(SAVED)
        assert said(check) == [("Ann", "v0_0", "mark.1", "right too")]

    def test_a_text_that_is_changed_loses_its_mark(self, chromium: Browser, check: Served) -> None:
        begin(chromium, check)
        chromium.press("2")
        chromium.run("document.querySelectorAll('#options input')[1].focus()")
        chromium.type("to swim")
        chromium.press("Enter")
        chromium.wait("document.querySelectorAll('[aria-pressed=true]').length === 0")
        chromium.wait(SAVED)
        assert check.state.value("v0_0", "mark.1", "Ann") is None

    def test_who_writes_over_what_somebody_else_just_wrote_sees_it(self, chromium: Browser, check: Served) -> None:
        begin(chromium, check)
        body = {"reviewer": "Ben", "actions": [{"uid": "b", "item": "v0_0", "field": "option.1", "before": "wrong 1", "after": "to fly"}]}
        assert check.ask("/api/actions", body).json["actions"][0]["saved"]
        chromium.run("document.querySelectorAll('#options input')[1].focus()")
        chromium.type("to swim")
        chromium.press("Enter")
        chromium.wait("document.querySelectorAll('#options input')[1].value === 'to fly'")
        assert "Somebody else" in chromium.text("#saved")

    @pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (400, True)])
    def test_nothing_is_wider_than_the_window(self, chromium: Browser, check: Served, width: int, is_dark: bool) -> None:
        begin(chromium, check, width=width, is_dark=is_dark)
        assert chromium.run("document.documentElement.scrollWidth") <= width
