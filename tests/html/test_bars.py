"""Bars are as long as their values, and lines pass through them."""

from __future__ import annotations

import re

from vip.html.bars import Bar, draw_bars, draw_lines, line_legend


def test_the_longest_bar_has_the_whole_width_and_parts_stand_further_in() -> None:
    svg = draw_bars([Bar("a", 4, "4"), Bar("b", 2, "2"), Bar("c", 1, "1", 1)], "counts")
    assert re.findall(r'width="([\d.]+)%"', svg) == ["100", "50", "24"]
    assert re.findall(r'<rect[^>]* x="([\d.]+)%"', svg) == ["0", "0", "4"]
    assert draw_bars([Bar("none", 0, "0")], "nothing").count("<rect") == 1


def test_names_are_escaped() -> None:
    assert "<b>" not in draw_bars([Bar("<b>", 1, "<b>")], "<b>")


def test_counts_that_a_line_lacks_are_zero_and_values_that_it_lacks_are_not_drawn() -> None:
    counts = draw_lines({"a": {1: 5.0, 3: 10.0}}, "counts")
    (points,) = re.findall(r'points="([^"]+)"', counts)
    heights = [float(point.split(",")[1]) for point in points.split()]
    assert len(heights) == 3
    assert heights[1] == max(heights)  # 0 is the lowest
    values = draw_lines({"a": {1: 5.0, 3: 10.0}, "b": {1: 6.0}}, "values", is_count=False)
    assert [len(points.split()) for points in re.findall(r'points="([^"]+)"', values)] == [2, 1]
    assert draw_lines({}, "nothing").count("polyline") == 0


def test_a_legend_says_which_colour_is_which_line() -> None:
    assert line_legend(["a"]) == ""
    assert line_legend(["a", "b", "c", "d"]) == "a: blue. b: red. c: green. d: grey."
