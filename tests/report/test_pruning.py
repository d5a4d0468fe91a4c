"""The curve that helps to decide on a number of keyframes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.report.pages import Page
from tests.report.runs import RULES, make_run
from vip import store
from vip.records import Pruning
from vip.report.page import write_report
from vip.report.pruning import count_ticks, pruning_chart
from vip.store import load_run

CURVE = {2: 0.5, 4: 0.7, 8: 0.9, 16: 0.95}
PRUNING = Pruning(redundant=0.8, bound=0.8, curve=CURVE)


def svg(pruning: Pruning, chosen: int) -> str:
    drawn = pruning_chart(pruning, chosen)
    assert drawn is not None
    return str(drawn.svg)


def places(html: str, kind: str) -> list[float]:
    return [float(x) for x in re.findall(rf'class="dot {kind}" cx="([\d.]+)%"', html)]


def test_doubling_the_number_is_the_same_way_everywhere() -> None:
    html = svg(PRUNING, 4)
    assert places(html, "kept") == [pytest.approx(100 / 3, abs=0.01)]
    assert places(html, "pruned") == [0, pytest.approx(200 / 3, abs=0.01), 100]


def test_the_chosen_number_the_bound_and_each_point_are_told() -> None:
    page = Page(svg(PRUNING, 5))
    assert "5 chosen" in page.text
    assert "redundant from 0.80" in page.text
    assert "With 8 keyframes, the next to go has likeness 0.900" in page.text
    (drawing,) = page.of("svg", role="img")
    assert drawing["aria-label"] == (
        "Likeness of the next keyframe to go, from 2 to 16 keyframes: 0.50 to 0.95; it first reaches the bound 0.80 with 8 keyframes;"
        " 5 were chosen."
    )


def test_a_number_beside_the_curve_widens_it() -> None:
    assert places(svg(PRUNING, 1), "pruned")[0] > 0
    assert "below the bound 0.99" in svg(PRUNING.model_copy(update={"bound": 0.99}), 32)


def test_a_value_that_is_the_bound_reaches_it() -> None:
    assert "it first reaches the bound 0.70 with 4 keyframes;" in svg(PRUNING.model_copy(update={"bound": 0.7}), 5)
    assert "it first reaches the bound 0.95 with 16 keyframes;" in svg(PRUNING.model_copy(update={"bound": 0.95}), 5)
    assert "it stays below the bound 0.96;" in svg(PRUNING.model_copy(update={"bound": 0.96}), 5)


@pytest.mark.parametrize("curve", [{}, {3: 0.5}])
def test_fewer_than_two_points_are_no_curve(curve: dict[int, float]) -> None:
    assert pruning_chart(Pruning(redundant=0.8, bound=0.8, curve=curve), 3) is None


def test_ticks_are_round_and_a_phone_shows_fewer_of_many() -> None:
    assert count_ticks(2, 30) == [(2, True), (5, True), (10, True), (20, True)]
    ticks = count_ticks(1, 1000)
    assert [tick for tick, _ in ticks] == [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert [tick for tick, narrow in ticks if narrow] == [1, 10, 100, 1000]


def test_the_page_shows_it_for_every_run_that_has_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", rules=RULES)
    assert run.manifest is not None
    assert "How many are enough" not in write_report(run).read_text()
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"pruning": PRUNING}))
    assert "How many are enough" in write_report(load_run(run.folder)).read_text()


@pytest.mark.parametrize(("curve", "chosen"), [(CURVE, 0), (CURVE, -3), ({0: 0.5, 4: 0.7}, 4), ({10**9: 0.5, 4: 0.7}, 4)])
def test_numbers_of_a_stranger_that_cannot_be_are_not_drawn(curve: dict[int, float], chosen: int) -> None:
    assert pruning_chart(Pruning(redundant=0.8, bound=0.8, curve=curve), chosen) is None
