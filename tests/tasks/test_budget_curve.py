"""Curves over the frame budget: one for each task, engine and metric."""

from __future__ import annotations

import re

from tests.tasks.scoring import result, score_of
from vip.tasks.budget_curve import MOST_BUDGETS, MOST_WAYS, budget_curves, budget_points, budget_tables
from vip.tasks.records import TaskResult


def with_frames(engine: str, frames: int | None, value: float, *, chosen: str | None = "vip", task: str = "nextqa-mc") -> TaskResult:
    return result(task, engine, budget={"frames": frames, "chosen": chosen}, metrics={"accuracy": score_of(value)})


def test_engines_and_tasks_have_curves_of_their_own() -> None:
    rows = [with_frames(engine, frames, 10.0 * frames) for engine in ("one", "two") for frames in (2, 4)]
    rows += [with_frames("one", frames, 1.0, task="nextqa-oe") for frames in (2, 4)]
    found = budget_points(rows)
    assert list(found) == [("nextqa-mc", "one", "accuracy"), ("nextqa-mc", "two", "accuracy"), ("nextqa-oe", "one", "accuracy")]
    assert {frames: score.value for frames, score in found["nextqa-mc", "two", "accuracy"]["vip"].items()} == {2: 20.0, 4: 40.0}
    titles = [table.title for table in budget_tables(rows)]
    assert titles == [f"accuracy of {task} over the frame budget, {engine}" for task, engine, _ in found]
    assert len(budget_curves(rows)) == 3


def test_one_number_of_frames_is_no_curve_whoever_saw_it() -> None:
    assert budget_points([with_frames("one", 4, 50), with_frames("two", 8, 60)]) == {}
    assert budget_points([with_frames("one", 4, 50), with_frames("one", None, 60), result("nextqa-mc", "one", budget=None)]) == {}
    assert budget_points([with_frames("one", 4, 50), with_frames("one", 4, 60, chosen="evenly spaced")]) == {}


def test_a_number_that_one_way_of_choosing_lacks_is_a_dash() -> None:
    rows = [with_frames("one", 2, 50), with_frames("one", 4, 60), with_frames("one", 4, 40, chosen="evenly spaced")]
    (table,) = budget_tables(rows)
    assert table.columns == ("Frames", "vip", "evenly spaced")
    assert [[cell.text for cell in row] for row in table.rows] == [["2", "50.00", "–"], ["4", "60.00", "40.00"]]


def test_a_point_has_its_value_its_interval_and_its_place_among_the_numbers() -> None:
    metrics = {"accuracy": score_of(40.0, low=30.0, high=50.0)}
    rows = [result("t", "e", budget={"frames": frames, "chosen": "vip"}, metrics=metrics) for frames in (2, 4, 32, 8)]
    rows.append(result("t", "e", budget={"frames": 16, "chosen": None}, metrics={"accuracy": score_of(35.0)}))
    (points,) = budget_points(rows).values()
    assert {name: list(some) for name, some in points.items()} == {"vip": [2, 4, 32, 8], "frames": [16]}
    (table,) = budget_tables(rows)
    assert [[cell.text for cell in row] for row in table.rows] == [
        [str(n), "40.00", "–"] if n != 16 else ["16", "–", "35.00"] for n in (2, 4, 8, 16, 32)
    ]
    (chart,) = budget_curves(rows)
    assert re.findall(r"<title>([^<]+)</title>", chart.svg) == [
        *(f"vip, {frames} frames: 40.00" for frames in (2, 4, 8, 32)),
        "frames, 16 frames: 35.00",
    ]
    assert [float(place) for place in re.findall(r'<circle[^>]*cx="([\d.]+)%"', chart.svg)][::2] == [10.0, 30.0, 50.0, 90.0, 70.0]
    assert chart.svg.count('class="interval"') == 4, "the one without an interval has no bar"
    assert (chart.title, chart.explanation.startswith("t, e. vip: blue. frames: grey.")) == ("accuracy over the frame budget", True)


def test_colours_are_named_where_there_are_several_lines_and_begin_again_behind_the_third() -> None:
    ways = ("vip", "even", "random", "all")
    rows = [with_frames("one", frames, 50.0, chosen=way) for way in ways for frames in (2, 4)]
    (chart,) = budget_curves(rows)
    assert chart.explanation == "nextqa-mc, one. vip: blue. even: grey. random: red. all: blue. Bars: 95 % interval."
    (alone,) = budget_curves(rows[:2])
    assert not {"blue", "grey", "red"} & set(re.findall(r"\w+", alone.explanation))


def test_a_curve_that_is_as_large_as_one_may_be_says_so() -> None:
    few = [with_frames("one", frames, 50, chosen=f"way {way}") for way in range(MOST_WAYS - 1) for frames in (2, 4)]
    assert "At most" not in budget_curves(few)[0].explanation
    many = [*few, *(with_frames("one", frames, 50, chosen=f"more {way}") for way in range(9) for frames in (2, 4))]
    (table,), (curve,) = budget_tables(many), budget_curves(many)
    assert len(table.columns) == 1 + MOST_WAYS
    assert table.notes == ("At most 20 ways of choosing frames and 50 numbers of frames of each are shown.",)
    assert curve.explanation.endswith(table.notes[0])
    (table,) = budget_tables([with_frames("one", frames, 50) for frames in range(MOST_BUDGETS + 9)])
    assert (len(table.rows), len(table.notes)) == (MOST_BUDGETS, 1)
