"""HITs: their columns, what comes back from them, the page and its contract, also in a browser where Chromium is installed."""

from __future__ import annotations

import csv
import html
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.test_browser import CHROMIUM, browse, scripted, widths
from tests.tasks.fiber.made import record
from vip.errors import InputError, UsageError
from vip.html.layout import resource
from vip.tasks.fiber.hits import (
    annotation_page,
    escape_cell,
    guard_cell,
    normalize_as_page,
    page_problems,
    read_blanks,
    record_of,
    unguard_cell,
    write_hits,
)
from vip.tasks.fiber.records import write_records
from vip.tasks.fiber.task import sample_of
from vip.tasks.files import write_samples

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
ODD = ["=1+1", "@x", "+1", "-1 b", "\t=x", "'=x", "''=x", '"a" & <b>', "${label1}", "a, b", "line\nbreak", "🐶 كلب"]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "hits.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_a_hit_has_five_blanks_in_the_columns_of_the_authors(tmp_path: Path) -> None:
    records = [record(f"a dog{place}", f"v{place}") for place in range(7)]
    assert write_hits(tmp_path, records) == (7, 2)
    first, second = rows_of(tmp_path)
    assert list(first)[:6] == ["video1_id", "video1_start_time", "video1_end_time", "question1", "label1", "video2_id"]
    assert len(first) == 25
    assert [first[f"label{place}"] for place in range(1, 6)] == [one.label for one in records[:5]]
    assert (second["video2_id"], second["video2_start_time"], second["video2_end_time"]) == ("v6", "5", "15")
    assert second["question3"] == second["label3"] == second["video3_id"] == ""
    assert {len(row) for row in csv.reader((tmp_path / "hits.csv").read_text(encoding="utf-8").splitlines())} == {25}
    (again,) = (rows_of(tmp_path) for _ in range(1) if write_hits(tmp_path, [record('"=a" & b', "-x")], per_hit=1))
    assert (again[0]["label1"], again[0]["video1_id"]) == ('"=a" & b', "-x"), "a label is no HTML"


@given(st.text(st.characters(blacklist_categories=["Cs"]), max_size=12) | st.sampled_from(ODD))
def test_a_cell_comes_back_as_it_was_and_no_cell_is_a_formula(text: str) -> None:
    assert html.unescape(escape_cell(text)) == html.unescape(html.escape(text)) == text or "&" in text
    assert unguard_cell(guard_cell(text)) == text
    for cell in (escape_cell(text), guard_cell(text)):
        assert cell[:1] not in {"=", "+", "-", "@", "\t", "\r"} or re.fullmatch("[A-Za-z0-9_-]+", cell)


def test_names_of_youtube_stay_as_they_are() -> None:
    assert escape_cell("-a_b-9") == guard_cell("-a_b-9") == "-a_b-9"
    assert escape_cell("${label1}") == "&#36;{label1}"
    assert escape_cell("a ${x} costs $5 and ${y}") == "a &#36;{x} costs $5 and &#36;{y}"
    assert (escape_cell("=a<b"), guard_cell("=a<b"), guard_cell("a<b")) == ("&#61;a&lt;b", "'=a<b", "a<b")


def test_blanks_are_read_from_samples_and_from_records(tmp_path: Path) -> None:
    records = [record("a dog"), record('the "end"', "w")]
    write_records(tmp_path / "r.json", records)
    write_samples(tmp_path / "s.jsonl", map(sample_of, records))
    assert list(read_blanks(tmp_path / "r.json")) == list(read_blanks(tmp_path / "s.jsonl")) == records
    (sample,) = map(sample_of, records[:1])
    write_samples(tmp_path / "s.jsonl", [sample.model_copy(update={"reference": None})])
    with pytest.raises(InputError, match="has no blank with a label"):
        list(read_blanks(tmp_path / "s.jsonl"))
    with pytest.raises(InputError, match="is no file"):
        list(read_blanks(tmp_path / "none.jsonl"))
    for strange in ({"video": "v" * 5000}, {"start_s": 1e300}, {"start_s": 9.0, "end_s": -1e18}):
        write_samples(tmp_path / "s.jsonl", [sample.model_copy(update=strange)])
        with pytest.raises(InputError, match=r"is none of fiber: .*\. Give samples of fiber\."):
            list(read_blanks(tmp_path / "s.jsonl"))


def test_what_cannot_be_asked_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="There is no blank to ask about"):
        write_hits(tmp_path / "a", [])
    with pytest.raises(UsageError, match="A HIT has 1 to 20 blanks, not 21"):
        write_hits(tmp_path, [record()], per_hit=21)
    for address in ("http://x/{id}", "https://x/", "javascript:{id}", 'https://x/{id}"onload="x'):
        with pytest.raises(UsageError, match="must begin with https://"):
            write_hits(tmp_path, [record()], video_url=address)


# ---------------------------------------------------------------- the page


def test_the_page_names_each_column_that_people_may_see_and_never_the_label() -> None:
    page = annotation_page()
    names = re.findall(r"\$\{(\w+)\}", page)
    assert sorted(set(names)) == sorted(
        f"{name}"
        for place in range(1, 6)
        for name in (f"video{place}_id", f"video{place}_start_time", f"video{place}_end_time", f"question{place}")
    )
    assert page.count("${") == len(names)
    assert "crowd-form" in page
    assert "Content-Security-Policy" not in page


def test_a_preview_escapes_what_others_wrote_and_sends_nothing(tmp_path: Path) -> None:
    write_hits(tmp_path, [record('"><script>alert(1)</script>', '"><img src=x>', masked_caption="<script>alert(2)</script> _____ ${x}")])
    page = (tmp_path / "preview.html").read_text(encoding="utf-8")
    assert page.count("<script>") == 1
    assert "<img" not in page
    assert "alert(1)" not in page  # the label
    assert "crowd-form" not in page
    assert "default-src &#39;none&#39;" in page


def test_an_id_of_a_stranger_leads_to_no_other_folder(tmp_path: Path) -> None:
    write_hits(tmp_path, [record("a dog", "../../evil?x=&#")], video_url="https://example.org/clips/{id}.mp4")
    page = (tmp_path / "preview.html").read_text(encoding="utf-8")
    assert 'src="https://example.org/clips/..%2F..%2Fevil%3Fx%3D%26%23.mp4' in page


def test_a_video_of_ones_own_is_played_from_its_address(tmp_path: Path) -> None:
    write_hits(tmp_path, [record("a dog", "park.mp4")], video_url="https://example.org/{id}#t={start},{end}")
    page = (tmp_path / "preview.html").read_text(encoding="utf-8")
    assert '<video class="clip" src="https://example.org/park.mp4#t=5,15"' in page
    assert "media-src https://example.org" in page


@pytest.mark.parametrize(
    ("answer", "on_the_page"),
    [("The man.", "man"), ("the-man", "theman"), ("a_b", "ab"), ("An  apple a day", "apple day"), ("...", ""), ("the", "")],
)
def test_the_page_removes_punctuation_first(answer: str, on_the_page: str) -> None:
    assert normalize_as_page(answer) == on_the_page


def test_the_page_wants_two_different_answers_with_words() -> None:
    assert page_problems(["a dog", "cat"]) == []
    assert page_problems(["a dog", "The dog!"]) == ['"The dog!" is there already', "fewer than 2 answers"]
    assert page_problems(["a dog", "!"]) == ['"!" has no word', "fewer than 2 answers"]
    assert page_problems([]) == ["fewer than 2 answers"]
    assert page_problems(["a dog", "cat", "the cat", ""]) == ['"" has no word', '"the cat" is there already']


def test_a_clip_is_asked_about_in_whole_seconds_that_hold_all_of_it() -> None:
    sample = sample_of(record("a dog"))
    for times, expected in (((5.2, 14.1), (5, 15)), ((5.0, 15.0), (5, 15)), ((None, None), (0, 0)), ((0.9, 0.95), (0, 1))):
        found = record_of(sample.model_copy(update={"start_s": times[0], "end_s": times[1]}))
        assert (found.video_start_time, found.video_end_time) == expected


def test_the_script_has_no_template_strings_since_mechanical_turk_would_fill_them() -> None:
    assert "`" not in resource("annotation.js", "vip.tasks.fiber").replace("[-`{-~]", "")


# ---------------------------------------------------------------- in a browser

PLAY = """
const type = (place, text) => {
  const box = document.querySelector('[name="answer-input-' + place + '"]');
  box.value = text;
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true, cancelable: true }));
};
const submit = () => document.querySelector(".send").click();
const said = () => [...document.querySelectorAll(".alert")].map((line) => line.hidden ? "" : line.textContent);
const log = [];
type(1, "a dog"); type(1, "The dog!"); log.push(said()[0]);
type(1, "..."); log.push(said()[0]);
submit(); log.push(said());
type(1, "");
document.querySelector('[name="answer-input-1"]').value = "";
type(1, "cat"); type(1, "an <b>owl</b>");
document.querySelectorAll(".question:first-of-type li .up")[2].click();
document.querySelectorAll(".question:first-of-type li .remove")[0].click();
document.querySelectorAll(".gone")[1].click();
document.getElementById("comments").value = "fine";
submit();
document.body.dataset.log = JSON.stringify(log);
"""


@pytest.mark.slow
@needs_chromium
def test_the_page_collects_answers_as_its_contract_says(tmp_path: Path) -> None:
    write_hits(tmp_path, [record("a zebra", "x"), record("a yak", "y")], per_hit=3)
    dom = browse(scripted(tmp_path / "preview.html", PLAY), tmp_path / "profile", "--dump-dom").stdout
    (log,) = re.findall(r'data-log="([^"]*)"', dom)
    said = json.loads(html.unescape(log))
    assert said[:2] == ["This answer is there already.", "An answer needs a word."]
    assert said[2] == ["An answer needs a word.", "Give at least 2 answers."]  # the third blank of the page is none of this HIT
    (sent,) = re.findall(r'<pre id="sent">(.*?)</pre>', dom, re.DOTALL)
    assert json.loads(html.unescape(sent)) == [
        {
            **{"answer-input-1": "", "answer-1-0": "an <b>owl</b>", "answer-1-1": "cat"},
            **{"answer-input-2": "", "answer-2-0": "unavailable video", "answer-2-1": "unavailable video 2", "comments": "fine"},
        }
    ]


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_fits_the_window(tmp_path: Path, width: int) -> None:
    write_hits(tmp_path, [record("a dog", masked_caption=f"{'word ' * 40} _____ {'x' * 300}.")])
    assert widths(tmp_path / "preview.html", tmp_path / "profile", width) == (width, width)
