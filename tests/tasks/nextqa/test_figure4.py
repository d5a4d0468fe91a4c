"""Figure 4 comes out of results that say their clips and features."""

from __future__ import annotations

from typing import Any

from vip.tasks.nextqa.figure4 import FigurePoint, clip_lines, feature_rows, figure_charts, figure_points, figure_tables
from vip.tasks.records import FrameBudget, Score, TaskResult


def result(
    value: float, *, task: str = "nextqa-mc", budget: FrameBudget | None = None, groups: bool = True, **parameters: Any
) -> TaskResult:
    def score(of: float, **more: Any) -> Score:
        return Score(value=of, value_answered=of, n=10, signature="s", **more)

    kinds = {name: score(value + place) for place, name in enumerate("CTD")} if groups else {}
    return TaskResult(
        task=task,
        task_version=1,
        name="p.json",
        engine=None,
        parameters=parameters,
        budget=budget,
        n=10,
        unscored={},
        metrics={"accuracy" if task == "nextqa-mc" else "wups": score(value, groups={"type": kinds} if kinds else {})},
        samples_sha256=None,
        predictions_sha256="0" * 64,
        versions={},
    )


SOME = [
    result(40.0, clips="16", features="Res+I3D"),
    result(30.0, clips="0", features="Res+I3D"),
    result(35.0, clips="16", features="Res"),
    result(50.0),
    result(60.0, task="nextqa-oe", clips="8", features="Res"),
    result(20.0, clips="8", features="Res", groups=False),
]


def test_results_without_clips_or_features_and_of_other_tasks_are_no_points() -> None:
    points = figure_points(SOME, "nextqa-mc")
    assert [(one.features, one.clips) for one in points] == [("Res+I3D", 16), ("Res+I3D", 0), ("Res", 16)]
    assert points[0].values == {"C": 40.0, "T": 41.0, "D": 42.0, "all": 40.0}


def test_frames_that_a_model_saw_count_as_clips() -> None:
    (point,) = figure_points([result(40.0, budget=FrameBudget(frames=8, chosen="evenly spaced"))], "nextqa-mc")
    assert (point.features, point.clips) == ("evenly spaced", 8)


def test_lines_are_kinds_of_features_with_several_numbers_of_clips() -> None:
    lines = clip_lines(figure_points(SOME, "nextqa-mc"))
    assert {name: list(line) for name, line in lines.items()} == {"Res+I3D": [0, 16]}


def test_kinds_of_features_are_held_against_each_other_at_one_number_of_clips() -> None:
    points = [FigurePoint(name, clips, {}) for name, clips in (("a", 8), ("b", 8), ("a", 16), ("b", 16), ("c", 4))]
    assert [(one.features, one.clips) for one in feature_rows(points)] == [("a", 16), ("b", 16)]
    assert feature_rows(points[:1]) == []


def test_tables_and_charts_show_each_group() -> None:
    by_clips, by_features = figure_tables(SOME, "nextqa-mc")
    assert by_clips.columns == ("Features", "Questions", "0", "16")
    assert [cell.text for cell in by_clips.rows[1]] == ["Res+I3D", "T", "31.00", "41.00"]
    assert [[cell.text for cell in row] for row in by_features.rows] == [
        ["Res+I3D", "40.00", "41.00", "42.00", "40.00"],
        ["Res", "35.00", "36.00", "37.00", "35.00"],
    ]
    assert by_features.rows[0][1].is_best
    lines, bars = figure_charts(SOME, "nextqa-mc")
    assert lines.svg.count("<polyline") == 4
    assert "causal, 16: 40.0" in lines.svg
    assert bars.svg.count("<rect") == 8
    assert figure_tables(SOME[3:4], "nextqa-mc") == []
    assert figure_charts([], "nextqa-mc") == []


def test_a_point_says_its_clips_by_a_number_or_by_the_frames_that_were_seen() -> None:
    seen = FrameBudget(frames=8, chosen="vip")
    rows = [
        result(1.0, clips="16", budget=seen),
        result(2.0, clips="many", budget=seen),
        result(3.0, clips="", features="Res"),
        result(4.0, budget=FrameBudget(frames=None)),
        result(5.0, clips="0"),
        result(6.0, clips="9" * 5000, budget=seen),
    ]
    points = figure_points(rows, "nextqa-mc")
    assert [(one.features, one.clips, one.values["all"]) for one in points] == [
        ("vip", 16, 1.0),
        ("vip", 8, 2.0),
        ("Res", None, 3.0),
        ("p.json", 0, 5.0),
        ("vip", 8, 6.0),
    ]


def test_lines_are_in_order_of_clips_and_one_number_is_no_line() -> None:
    points = [FigurePoint("a", clips, {"all": float(clips or 0)}) for clips in (32, 4, 16, None)] + [FigurePoint("b", 4, {"all": 1.0})]
    lines = clip_lines(points)
    assert {name: list(line.items()) for name, line in lines.items()} == {
        "a": [(4, {"all": 4.0}), (16, {"all": 16.0}), (32, {"all": 32.0})]
    }


def test_features_are_compared_at_the_number_that_most_of_them_have() -> None:
    points = [
        FigurePoint(name, clips, {}) for name, clips in (("a", 4), ("b", 4), ("c", 4), ("a", 16), ("b", 16), ("a", None), ("b", None))
    ]
    assert [(one.features, one.clips) for one in feature_rows(points)] == [("a", 4), ("b", 4), ("c", 4)]
    unknown = [FigurePoint(name, None, {}) for name in "ab"]
    assert [one.clips for one in feature_rows(unknown)] == [None, None]
    assert [one.clips for one in feature_rows([*unknown, FigurePoint("a", 0, {}), FigurePoint("b", 0, {})])] == [0, 0], (
        "none is seen, not unknown"
    )
    assert feature_rows([]) == []
