"""Citations: numbers become labels, and what was not shown is taken out."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.search.citations import check_citations, clock, label, unlike_names

LABELS = {1: "talk@0:05", 2: "talk@1:02", 3: "my talk@1:00:02"}


@pytest.mark.parametrize(
    ("time_s", "shown"),
    [(0, "0:00"), (5.99, "0:05"), (62.4, "1:02"), (3602, "1:00:02"), (-0.4, "0:00"), (-61.0, "-1:01"), (36000, "10:00:00")],
)
def test_a_citation_names_the_second_that_the_frame_lies_in(time_s: float, shown: str) -> None:
    assert clock(time_s) == shown


def test_a_name_cannot_end_its_citation() -> None:
    assert label("a]b[c\n d", 5, "x") == "a)b(c d@0:05"
    assert label("photos", None, "photos:IMG_1") == "photos:IMG_1"


def test_two_videos_of_one_name_are_told_apart_by_their_folders() -> None:
    names = unlike_names([("a/talk.vip", "talk"), ("a/talk.vip", "talk"), ("b/talk.vip", "talk"), ("c", "film")])
    assert names == {"a/talk.vip": "a/talk.vip", "b/talk.vip": "b/talk.vip", "c": "film"}


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        ([("/x/a/talk.vip", "talk"), ("/x/b/talk.vip", "talk")], ["a/talk.vip", "b/talk.vip"]),
        ([("/x/a/talk.vip", "talk"), ("/cache/talk-12ab", "talk")], ["talk.vip", "talk-12ab"]),
        ([("one.vip", "talk"), ("x/one.vip", "talk")], ["one.vip", "x/one.vip"]),
        ([("x/film", "talk"), ("y/b", "talk"), ("z", "film")], ["x/film", "b", "film"]),
    ],
)
def test_an_end_of_the_path_is_enough_where_no_other_has_it(names: list[tuple[str, str]], expected: list[str]) -> None:
    assert list(unlike_names(names).values()) == expected


@pytest.mark.parametrize(
    ("text", "listed", "checked", "cited", "dropped"),
    [
        ("It leaks [2].", [2], "It leaks [talk@1:02].", (2,), ()),
        ("It leaks [1, 2] [frame 3].", [], "It leaks [talk@0:05] [talk@1:02] [my talk@1:00:02].", (1, 2, 3), ()),
        ("It leaks 【2】.", [], "It leaks [talk@1:02].", (2,), ()),
        ("It leaks.", [2, 2, 1], "It leaks. [talk@1:02] [talk@0:05]", (2, 1), ()),
        ("It leaks [7].", [9], "It leaks.", (), ("frame 7", "frame 9")),
        ("It leaks [2, 7].", [], "It leaks [talk@1:02].", (2,), ("frame 7",)),
        ("It leaks [talk@1:02].", [], "It leaks [talk@1:02].", (2,), ()),
        ("It leaks [talk@9:59] (film@0:05).", [], "It leaks.", (), ("talk@9:59", "film@0:05")),
        ("It leaks, talk@9:59 shows.", [1], "It leaks, shows. [talk@0:05]", (1,), ("talk@9:59",)),
        ("It [sic] leaks.", [], "It [sic] leaks.", (), ()),
        ("Write to a@b.org.", [], "Write to a@b.org.", (), ()),
        ("It leaks [-2].", [-2, 0], "It leaks [-2].", (), ("frame -2", "frame 0")),
        (f"It leaks [{'9' * 5000}].", [10**30], "It leaks.", (), ("frame 999999999", "frame 100000000")),
    ],
)
def test_only_frames_that_were_shown_are_cited(text: str, listed: list[int], checked: str, cited: tuple[int], dropped: tuple[str]) -> None:
    found = check_citations(text, listed, LABELS)
    assert (found.text, found.cited, found.dropped) == (checked, cited, dropped)


def test_frames_with_one_label_are_cited_once_by_the_first_that_has_it() -> None:
    """Two keyframes within a second."""
    labels = {1: "talk@0:05", 4: "talk@0:05", 6: "talk@0:09"}
    both = check_citations("It leaks [1].", [4, 6], labels)
    assert (both.text, both.cited) == ("It leaks [talk@0:05]. [talk@0:09]", (1, 4, 6))
    assert check_citations("It leaks [talk@0:05].", [], labels).cited == (1,)
    assert check_citations("It leaks [4, 1].", [], labels).text == "It leaks [talk@0:05]."


@given(st.text(alphabet="[]【】@:,0123456789 talkfrme-", max_size=60), st.lists(st.integers(-5, 12), max_size=4))
def test_whatever_an_engine_writes_no_citation_is_out_of_range(text: str, listed: list[int]) -> None:
    found = check_citations(text, listed, LABELS)
    assert set(found.cited) <= set(LABELS)
    shown = set(LABELS.values())
    left = found.text
    for name in shown:
        left = left.replace(f"[{name}]", " ")
    assert not re.search(r"\[[^\[\]]*@[^\[\]]*\]|\[\s*\d+\s*\]|\S*@-?\d+:\d\d", left), found


@pytest.mark.parametrize(
    "text",
    ["a@" * 50_000, "a" * 100_000, f"[1{', 1' * 33_000}x]", f"[frames 1{' and frame 1' * 9_000}.]"],
    ids=["at", "word", "commas", "and"],
)
def test_a_long_answer_takes_no_longer_than_its_letters(text: str) -> None:
    start = time.process_time()
    assert check_citations(text, [1], LABELS).cited == (1,)
    assert time.process_time() - start < 3
