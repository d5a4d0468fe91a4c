"""Keyframes and dropped candidates on the bar, and which thumbnails a desktop and a phone show."""

from __future__ import annotations

import re

import pytest

from tests.report.pages import Page
from tests.report.runs import candidates
from vip.html.axes import AxisSpan
from vip.records import Candidate, Rule
from vip.report.timeline import TimelineKeyframe, draw_timeline

SPAN = AxisSpan(0.0, 100.0)


def keyframes(*times_s: float) -> list[TimelineKeyframe]:
    return [TimelineKeyframe(number, time_s, SPAN.place(time_s), None) for number, time_s in enumerate(times_s, 1)]


def dropped(*rules: Rule, time_s: float | None = None, relevance: tuple[float | None, ...] = ()) -> list[Candidate]:
    """Dropped candidates, one a second, or all at one time."""
    rows = candidates(rules)
    found = [row.model_copy(update={"time_s": row.time_s if time_s is None else time_s}) for row in rows]
    return [row.model_copy(update={"relevance": one}) for row, one in zip(found, relevance or (None,) * len(rows), strict=True)]


def shown_in(css: str) -> dict[int, str]:
    return {int(number): "hidden" if "none" in rule else "shown" for number, rule in re.findall(r"#t(\d+)\{([^}]*)\}", css)}


def test_a_phone_shows_fewer_thumbnails_and_hides_the_others() -> None:
    drawn = draw_timeline(SPAN, keyframes(*range(0, 100, 2)), [])
    wide, narrow = drawn.css.split("@media (max-width:860px)")
    on_desktop, on_phone = shown_in(wide), shown_in(narrow)
    assert set(on_desktop) == set(on_phone) == {keyframe.number for keyframe in drawn.thumbnails}
    many, few = (list(found.values()).count("shown") for found in (on_desktop, on_phone))
    assert 2 <= few < many < 50
    assert list(on_phone.values()).count("hidden") == len(on_phone) - few
    assert on_phone[1] == on_phone[50] == on_desktop[1] == on_desktop[50] == "shown"


def test_ties_lead_from_each_thumbnail_to_its_time() -> None:
    ties = Page(str(draw_timeline(SPAN, keyframes(10, 11, 90), []).ties))
    (wide,) = ties.of("svg", class_="ties of-wide")
    assert wide["aria-hidden"] == "true"
    lines = [(float(str(line["x1"]).rstrip("%")), float(str(line["x2"]).rstrip("%"))) for line in ties.of("line")]
    assert [end for _, end in lines] == [10, 11, 90] * 2
    assert lines[0][0] < 10 < 11 < lines[1][0]  # pushed apart


@pytest.mark.parametrize(
    ("relevance", "why"), [((None, None), "too alike"), ((0.5, None), "less relevant"), ((None, 0.0), "less relevant")]
)
def test_dropped_for_a_question_are_less_relevant(relevance: tuple[float | None, ...], why: str) -> None:
    drawn = draw_timeline(SPAN, keyframes(5), dropped("pruned", "pruned", relevance=relevance))
    assert drawn.legend == (("mark", "1 keyframe"), ("tick", f"2 dropped as {why}"))


def test_bad_candidates_are_counted_apart() -> None:
    assert draw_timeline(SPAN, keyframes(5, 6), dropped("black", "pruned", "blurred", "duplicate")).legend == (
        ("mark", "2 keyframes"),
        ("tick", "2 dropped as too alike"),
        ("tick bad", "2 bad candidates"),
    )
    assert draw_timeline(SPAN, keyframes(5), dropped("black")).legend == (("mark", "1 keyframe"), ("tick bad", "1 bad candidate"))
    assert draw_timeline(SPAN, keyframes(5), []).legend == (("mark", "1 keyframe"),)


def ticks(rows: list[Candidate]) -> list[str | None]:
    bar = Page(str(draw_timeline(SPAN, keyframes(5), rows).bar))
    return [found["class"] for found in bar.of("rect") if str(found.get("class")).startswith("tick")]


def test_ticks_at_one_place_are_one_but_a_bad_one_is_not_hidden_by_a_good_one() -> None:
    assert ticks(dropped("pruned", "duplicate", "black", "white", time_s=50.0)) == ["tick", "tick bad"]
    assert ticks(dropped("pruned", "pruned", "black")) == ["tick", "tick", "tick bad"]


def test_a_click_on_the_bar_leads_to_the_nearest_keyframe() -> None:
    bar = Page(str(draw_timeline(SPAN, keyframes(10, 30, 90), []).bar))
    areas = [(float(str(area["x"]).rstrip("%")), float(str(area["width"]).rstrip("%"))) for area in bar.of("rect", class_="hit")]
    assert areas == [(0, 20), (20, 40), (60, 40)]
    assert [link["href"] for link in bar.of("a")] == ["#k1", "#k2", "#k3"]


def test_the_marks_of_a_crowd_are_thin() -> None:
    for count, width in ((60, "4"), (61, "2")):
        bar = Page(str(draw_timeline(SPAN, keyframes(*(100 * i / count for i in range(count))), []).bar))
        assert {mark["width"] for mark in bar.of("rect", class_="mark")} == {width}
