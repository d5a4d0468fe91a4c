"""The entries, figures and notes of an index of runs: sums over what is there, and nothing said of what is not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.report.pages import Page, read
from vip.html.parts import Fact, FailureRow
from vip.html.pictures import Jpeg
from vip.records import Failure
from vip.report.index_page import MAX_FAILURES, RunEntry, RunIndex, index_page

BROKEN = RunEntry("broken.vip", problem="It is torn.")


def index(*runs: RunEntry, unlisted: int = 0, failures: tuple[Failure, ...] = ()) -> RunIndex:
    return RunIndex("films", runs, unlisted, failures)


def facts(*runs: RunEntry) -> dict[str, str]:
    found = index(*runs).facts
    assert all(isinstance(fact, Fact) for fact in found)
    return {fact[0]: fact[1] for fact in found}


def page_of(folder: Path, *runs: RunEntry) -> Page:
    (folder / "index.html").write_text(index_page(index(*runs)), encoding="utf-8")
    return read(folder / "index.html")


def failure(number: int) -> Failure:
    return Failure(item=f"v{number}.mp4", kind="InputError", message=f"No video {number}.", exit_code=3)


# ---------------------------------------------------------------- an entry


@pytest.mark.parametrize(
    ("name", "has_page", "link"),
    [
        ("a.vip", True, "a.vip/report.html"),
        ("a.vip", False, ""),
        ("c d#?%41.vip", True, "c%20d%23%3F%2541.vip/report.html"),
        ("javascript:x", True, "javascript%3Ax/report.html"),
        ("größe", True, "gr%C3%B6%C3%9Fe/report.html"),
        ("a\udcff", True, "a%FF/report.html"),
    ],
)
def test_the_link_leads_to_the_page_of_the_folder_where_there_is_one(name: str, has_page: bool, link: str) -> None:
    assert RunEntry(name, has_page=has_page).link == link


@pytest.mark.parametrize(
    ("about", "summary"),
    [
        ({"title": "a.mp4"}, "0 keyframes · not described"),
        ({"title": "other.mp4"}, "a.vip/ · 0 keyframes · not described"),
        ({"title": "a"}, "a.vip/ · 0 keyframes · not described"),
        ({"title": "a.b.mp4", "name": "a.b.vip"}, "0 keyframes · not described"),
        ({"title": "a.mp4", "name": "a"}, "0 keyframes · not described"),
        ({"title": "a.mp4", "length_s": 0.0}, "0:00.0 · 0 keyframes · not described"),
        ({"title": "a.mp4", "length_s": 62.44, "keyframes": 1}, "1:02.4 · 1 keyframe · not described"),
        ({"title": "a.mp4", "keyframes": 2, "described": 2, "engines": ("offline",)}, "2 keyframes · described by offline"),
        ({"title": "a.mp4", "keyframes": 3, "described": 1, "engines": ("b", "a")}, "3 keyframes · 1 described by b, a"),
    ],
)
def test_the_summary_says_what_is_known_and_the_folder_where_it_is_not_named_like_the_video(about: dict[str, Any], summary: str) -> None:
    assert RunEntry(**{"name": "a.vip", **about}).summary == summary


# ---------------------------------------------------------------- the figures


def test_the_figures_are_sums_over_all_runs() -> None:
    runs = [
        RunEntry("a.vip", length_s=100.0, keyframes=1000, described=600, engines=("b", "a"), failures=7),
        RunEntry("b.vip", keyframes=234, engines=()),
        RunEntry("c.vip", length_s=3600.4, keyframes=5, described=5, engines=("c", "b")),
    ]
    assert facts(*runs) == {"Runs": "3", "Duration": "1:01:40", "Keyframes": "1\u202f239", "Captions": "605 of 1\u202f239 by b, a, c"}


def test_where_all_is_described_the_number_is_told_once() -> None:
    assert facts(RunEntry("a.vip", keyframes=2, described=2, engines=("offline",)))["Captions"] == "2 by offline"


def test_where_nothing_is_described_and_no_length_is_known_that_is_said_or_left_out() -> None:
    assert facts(RunEntry("a.vip", keyframes=2)) == {"Runs": "1", "Keyframes": "2", "Captions": "none yet"}
    assert facts() == {"Runs": "0", "Keyframes": "0", "Captions": "none yet"}


def test_a_length_of_nothing_is_a_length() -> None:
    assert facts(RunEntry("a.vip", length_s=0.0))["Duration"] == "0:00"


def test_the_most_pictures_are_those_of_one_run() -> None:
    picture = Jpeg(b"", 1, 1)
    runs = [RunEntry(f"{count}.vip", pictures=(picture,) * count) for count in (1, 3, 2)]
    assert (index(*runs).most_pictures, index().most_pictures, index(BROKEN).most_pictures) == (3, 0, 0)


# ---------------------------------------------------------------- the notes


@pytest.mark.parametrize(
    ("with_page", "without", "notes"),
    [
        (2, 0, []),
        (1, 1, ["1 run has no page yet. vip report DIR writes all of them."]),
        (0, 2, ["2 runs have no page yet. vip report DIR writes all of them."]),
    ],
)
def test_runs_without_a_page_are_counted_without_those_that_cannot_be_shown(with_page: int, without: int, notes: list[str]) -> None:
    runs = [RunEntry("a.vip", has_page=True)] * with_page + [RunEntry("b.vip")] * without
    assert index(*runs, BROKEN).notes == notes


@pytest.mark.parametrize(
    ("unlisted", "note"),
    [
        (1, "The first 2 runs by name; 1 more is in the folder."),
        (1234, "The first 2 runs by name; 1\u202f234 more are in the folder."),
    ],
)
def test_runs_for_which_there_was_no_room_are_counted(unlisted: int, note: str) -> None:
    assert index(RunEntry("a.vip", has_page=True), BROKEN, unlisted=unlisted).notes == [note]
    assert index(RunEntry("a.vip"), unlisted=unlisted).notes[0] == "1 run has no page yet. vip report DIR writes all of them."


# ---------------------------------------------------------------- what failed


def test_what_cannot_be_shown_is_named_and_not_listed() -> None:
    found = index(RunEntry("a.vip"), BROKEN)
    assert [run.name for run in found.shown] == ["a.vip"]
    damaged, failed = found.failure_lists
    assert (damaged.title, damaged.rows, damaged.hint) == ("1 run cannot be shown", [FailureRow("broken.vip", "It is torn.")], "")
    assert (failed.title, failed.rows, failed.hint) == ("0 videos failed", [], "")


@pytest.mark.parametrize(
    ("count", "shown", "rest"), [(1, 1, 0), (MAX_FAILURES, MAX_FAILURES, 0), (MAX_FAILURES + 1, MAX_FAILURES, 1), (700, MAX_FAILURES, 500)]
)
def test_of_many_failures_the_first_are_shown_and_the_others_counted(count: int, shown: int, rest: int) -> None:
    runs = [RunEntry(f"{number}.vip", problem=f"Torn {number}.") for number in range(count)]
    damaged, failed = index(*runs, failures=tuple(map(failure, range(count)))).failure_lists
    assert [row.message for row in damaged.rows] == [f"Torn {number}." for number in range(shown)]
    assert [row.message for row in failed.rows] == [f"No video {number}." for number in range(shown)]
    assert damaged.hint == (f"and {rest} more." if rest else "")
    assert failed.hint == (f"and {rest} more in failures.jsonl." if rest else "")
    assert (damaged.title, failed.title) == (
        f"{count} run{'s' * (count > 1)} cannot be shown",
        f"{count} video{'s' * (count > 1)} failed",
    )


# ---------------------------------------------------------------- the page


@pytest.mark.parametrize(("count", "has_tools"), [(0, False), (1, False), (2, True)])
def test_a_filter_and_an_order_are_there_for_more_than_one_run(count: int, has_tools: bool, tmp_path: Path) -> None:
    page = page_of(tmp_path, *(RunEntry(f"{number}.vip", title=f"v{number}.mp4") for number in range(count)))
    assert [one["value"] for one in page.of("option")] == (["name", "length", "keyframes", "failures"] if has_tools else [])


def test_a_run_is_ordered_by_its_own_length_keyframes_and_failures(tmp_path: Path) -> None:
    runs = (RunEntry("a.vip", length_s=62.5, keyframes=4, failures=2), RunEntry("b.vip", keyframes=1), BROKEN)
    rows = [one for one in page_of(tmp_path, *runs).of("li") if "data-keyframes" in one]
    found = [(float(str(one["data-length"])), one["data-keyframes"], one["data-failures"]) for one in rows]
    assert found == [(62.5, "4", "2"), (0.0, "1", "0")]
