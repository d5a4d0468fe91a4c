from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.pages import Page
from tests.report.runs import RULES, candidates
from vip.html.axes import AxisSpan
from vip.html.charts import BOTTOM_PX, TOP_PX
from vip.records import Embeddings
from vip.report.curves import Curve, Kind, Point, consecutive_cosines, draw, legend, sharpness_curve, similarity_curve, thin_out

SPAN = AxisSpan(0.0, 10.0)


def embeddings(cosines: list[float]) -> Embeddings:
    """Vectors in the plane with these cosines between neighbours."""
    angles = np.cumsum([0.0, *np.arccos(cosines)])
    vectors = np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)
    return Embeddings(vectors, vectors, "classic")


def svg(curve: Curve, span: AxisSpan = SPAN) -> str:
    drawn = draw(curve, span)
    assert drawn is not None
    return str(drawn.svg)


def dots(html: str, kind: Kind) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(rf'class="dot {kind}" cx="([\d.]+)%" cy="([\d.]+)"', html)]


def test_similarity_is_the_cosine_to_the_candidate_before_at_the_later_one_s_time() -> None:
    curve = similarity_curve(candidates(("kept", "pruned", "blurred", "kept")), embeddings([0.9, 0.5, 0.7]))
    assert [point.time_s for point in curve.points] == [1.0, 2.0, 3.0]
    assert [point.value for point in curve.points] == pytest.approx([0.9, 0.5, 0.7], abs=1e-6)
    assert [point.kind for point in curve.points] == ["pruned", "bad", "kept"]
    assert "classic" in curve.explanation


def test_similarity_leaves_out_candidates_that_could_not_be_decoded() -> None:
    curve = similarity_curve(candidates(("kept", "unreadable", "kept", "pruned")), embeddings([0.8, 0.6]))
    assert [(point.time_s, round(point.value, 3)) for point in curve.points] == [(2.0, 0.8), (3.0, 0.6)]


def test_similarity_refuses_vectors_of_other_candidates() -> None:
    with pytest.raises(ValueError, match="expected 3 vectors, one a decoded candidate, got 2"):
        similarity_curve(candidates(("kept", "kept", "kept")), embeddings([0.5]))


def test_cosines_agree_with_numpy_and_stay_within_one() -> None:
    vectors = np.random.default_rng(1).normal(size=(9, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[4] = vectors[3]
    cosines = consecutive_cosines(vectors)
    assert cosines == pytest.approx([float(a @ b) for a, b in pairwise(vectors)], abs=1e-6)
    assert abs(cosines).max() <= 1


def test_sharpness_has_a_point_for_each_decoded_candidate_and_the_threshold() -> None:
    curve = sharpness_curve(candidates(), [], least=90.0)
    assert len(curve.points) == len(RULES) - 1
    assert [point.value for point in curve.points][:2] == [100.0, 101.0]
    html = svg(curve)
    assert "least asked for 90.0" in Page(html).text
    assert 'class="threshold"' not in svg(sharpness_curve(candidates(), [], least=None))


@pytest.mark.parametrize("least", [0.5, 40.0, 5000.0])
def test_the_threshold_lies_within_the_drawing_at_its_own_height(least: float) -> None:
    points = (Point(0.0, 20.0, "kept", ""), Point(10.0, 60.0, "bad", ""))
    html = svg(Curve("Sharpness", "", points, threshold=least))
    (line,) = re.findall(r'<g class="threshold"><line x1="0" x2="100%" y1="([-\d.]+)"', html)
    ((_, low),), ((_, high),) = dots(html, "kept"), dots(html, "bad")
    assert TOP_PX <= min(high, float(line)) <= max(low, float(line)) <= BOTTOM_PX
    assert float(line) == pytest.approx(low + (high - low) * (least - 20) / 40, abs=0.2)


def test_points_lie_at_their_time_and_higher_values_lie_higher() -> None:
    points = (Point(0.0, 0.0, "kept", "a"), Point(5.0, 100.0, "pruned", "b"), Point(10.0, 50.0, "bad", "c"))
    html = svg(Curve("Sharpness", "", points))
    ((x0, y0),), ((x1, y1),), ((x2, y2),) = dots(html, "kept"), dots(html, "pruned"), dots(html, "bad")
    assert (x0, x1, x2) == (0, 50, 100)
    assert y1 < y2 < y0
    assert y2 == pytest.approx((y0 + y1) / 2)
    (polyline,) = re.findall(r'<polyline points="([^"]*)"', html)
    assert polyline == f"0,{y0:g} 50,{y1:g} 100,{y2:g}"


def test_the_figure_can_be_read_without_seeing_it() -> None:
    points = (Point(1.0, 12.0, "kept", "first"), Point(62.4, 800.0, "bad", "second & <b>"))
    page = Page(svg(Curve("Sharpness", "", points), AxisSpan(0.0, 70.0)))
    (drawing,) = page.of("svg", role="img")
    assert drawing["aria-label"] == ("Sharpness over time, 2 points from 0:01.0 to 1:02.4: lowest 12.0 at 0:01.0, highest 800 at 1:02.4.")
    assert "second & <b>" in page.text  # the tooltip
    assert "1:00" in page.text  # the time axis
    assert "1 000" not in page.text
    assert "800" in page.text


def test_tiny_differences_do_not_look_like_cliffs() -> None:
    curve = similarity_curve(candidates(("kept", "pruned", "kept")), embeddings([0.999, 0.998]))
    ys = [y for kind in ("kept", "pruned") for _, y in dots(svg(curve), kind)]  # type: ignore[arg-type]
    assert max(ys) - min(ys) < 10


def test_fewer_than_two_points_are_no_curve() -> None:
    assert draw(Curve("Sharpness", "", (Point(0.0, 1.0, "kept", ""),)), SPAN) is None
    assert draw(Curve("Sharpness", "", ()), SPAN) is None


def test_the_legend_names_what_occurs() -> None:
    assert legend(candidates(("kept", "black"))) == [("dot kept", "keyframe"), ("dot bad", "bad")]
    assert "too alike" in legend(candidates(("kept", "duplicate")))[1][1]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.sampled_from(["kept", "pruned", "bad"])), min_size=1, max_size=300))
def test_thinning_keeps_order_extremes_and_keyframes(values: list[tuple[float, Kind]]) -> None:
    points = [Point(float(i), value, kind, "") for i, (value, kind) in enumerate(values)]
    thinned = thin_out(points, limit=60)
    assert list(thinned) == sorted(thinned, key=lambda point: point.time_s)
    assert set(thinned) <= set(points)
    kept = [point for point in points if point.kind == "kept"]
    assert len(thinned) <= 60 + min(60, len(kept)) + 2
    assert max(point.value for point in thinned) == max(point.value for point in points)
    assert min(point.value for point in thinned) == min(point.value for point in points)
    if len(kept) <= 60:
        assert set(kept) <= set(thinned)


def test_values_that_are_no_numbers_are_left_out() -> None:
    vectors = np.array([[1, 0], [np.nan, 0], [1, 0], [1, 0]], np.float32)
    curve = similarity_curve(candidates(("kept",) * 4), Embeddings(vectors, vectors, "classic"))
    assert [point.time_s for point in curve.points] == [3.0]
