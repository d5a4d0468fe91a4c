"""Error bars that hold what they promise: simulated coverage and error rates, figures by hand, and no interval where nothing is known."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.errors import InputError
from vip.metrics.statistics import (
    IntervalEstimate,
    bootstrap,
    bootstrap_weighted,
    compare,
    compare_groups,
    correct_holm,
    estimate_mean,
    smallest_detectable_difference,
)
from vip.metrics.student_t import quantile

Floats = npt.NDArray[np.float64]
SAMPLES = st.lists(st.tuples(st.sampled_from(["v1", "v2", "v3", "v4"]), st.floats(-10, 10)), min_size=2, max_size=40)


def in_clusters(sizes: list[int]) -> list[str]:
    return [f"video {number}" for number, size in enumerate(sizes) for _ in range(size)]


def alike(sizes: list[int], draws: int, seed: int, likeness: float = 0.3) -> Floats:
    """Normal values (draws, samples) of mean 0 and variance 1, with this correlation inside a cluster."""
    random = np.random.default_rng(seed)
    own = random.normal(size=(draws, sum(sizes))) * math.sqrt(1 - likeness)
    return own + np.repeat(random.normal(size=(draws, len(sizes))), sizes, axis=1) * math.sqrt(likeness)


UNEQUAL = {
    "40 of 1 to 12": [1 + 7 * number % 12 for number in range(40)],
    "20 of 1 to 12": [1 + 7 * number % 12 for number in range(20)],
    "one of 60, 45 of 4": [60] + [4] * 45,
    "20 of log-normal size": [1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 12, 14, 17, 23, 40],
}
FEW = [40, 33, 2, 2, 5, 8, 21, 13, 3, 3, 2, 10]


# ---------------------------------------------------------------- the mean


@pytest.mark.slow
@pytest.mark.parametrize("sizes", UNEQUAL.values(), ids=UNEQUAL)
@pytest.mark.parametrize("likeness", [0.0, 0.3])
def test_intervals_at_95_percent_hold_the_true_mean_in_94_to_96_percent(sizes: list[int], likeness: float) -> None:
    clusters = in_clusters(sizes)
    held = [is_inside(0.0, estimate_mean(values, clusters)) for values in alike(sizes, 4000, 1, likeness)]
    assert 0.94 <= np.mean(held) <= 0.96


@pytest.mark.slow
@pytest.mark.parametrize("likeness", [0.0, 0.3])
def test_intervals_of_few_and_very_unequal_clusters_are_rather_too_wide_than_too_narrow(likeness: float) -> None:
    held = [is_inside(0.0, estimate_mean(values, in_clusters(FEW))) for values in alike(FEW, 4000, 1, likeness)]
    assert 0.94 <= np.mean(held) <= 0.97


def is_inside(value: float, estimate: IntervalEstimate) -> bool:
    assert estimate.low is not None
    assert estimate.high is not None
    return estimate.low <= value <= estimate.high


def test_clusters_of_equal_size_have_the_standard_error_and_interval_of_their_means() -> None:
    values = np.array([1.0, 3.0, 2.0, 6.0, 5.0, 7.0])
    estimate = estimate_mean(values, ["a", "a", "b", "b", "c", "c"])
    means = np.array([2.0, 4.0, 6.0])
    error = means.std(ddof=1) / math.sqrt(3)
    assert (estimate.value, estimate.n, estimate.clusters) == (4.0, 6, 3)
    assert estimate.standard_error == pytest.approx(error)
    assert estimate.degrees_of_freedom == pytest.approx(2)
    assert estimate.high == pytest.approx(4 + 4.302653 * error, abs=1e-6)  # t of 2 degrees of freedom at 0.975
    assert estimate.low == pytest.approx(4 - 4.302653 * error, abs=1e-6)


def test_samples_of_their_own_have_the_standard_error_of_the_textbook() -> None:
    values = np.random.default_rng(0).normal(size=50)
    estimate = estimate_mean(values, [str(number) for number in range(50)])
    assert estimate.standard_error == pytest.approx(values.std(ddof=1) / math.sqrt(50))
    assert estimate.degrees_of_freedom == pytest.approx(49)


def test_unequal_clusters_by_hand() -> None:
    estimate = estimate_mean([0.0, 0.0, 0.0, 4.0], ["a", "a", "a", "b"])
    # mean 1, without a 4, without b 0: 1/2 (3² + 1²) = 5
    assert estimate.standard_error == pytest.approx(math.sqrt(5))
    # u = 9 / 1 and 1 / 3: 16 / (9 + 1 + 2 · 9 · 1/3) = 1
    assert estimate.degrees_of_freedom == pytest.approx(1)


def test_samples_that_are_alike_know_less_than_their_number_says() -> None:
    sizes = [10] * 30
    values = alike(sizes, 1, 2, likeness=0.8)[0]
    clustered = estimate_mean(values, in_clusters(sizes)).standard_error
    alone = estimate_mean(values, [str(number) for number in range(300)]).standard_error
    assert clustered is not None
    assert alone is not None
    assert clustered > 2 * alone


@given(SAMPLES, st.randoms())
def test_neither_the_order_of_samples_nor_the_names_of_clusters_change_anything(samples: list[tuple[str, float]], random: object) -> None:
    clusters, values = [cluster for cluster, _ in samples], [value for _, value in samples]
    estimate = estimate_mean(values, clusters)
    mixed = list(samples)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    renamed = {"v1": "z", "v2": "m", "v3": "aa", "v4": ""}
    other = estimate_mean([value for _, value in mixed], [renamed[cluster] for cluster, _ in mixed])
    assert other.value == estimate.value
    assert (other.n, other.clusters) == (estimate.n, estimate.clusters)
    assert (other.standard_error is None) == (estimate.standard_error is None)
    if estimate.standard_error is not None:
        assert other.standard_error == pytest.approx(estimate.standard_error, rel=1e-6, abs=1e-9)
        assert other.degrees_of_freedom == pytest.approx(estimate.degrees_of_freedom)


@given(SAMPLES)
def test_degrees_of_freedom_lie_between_one_and_clusters_less_one(samples: list[tuple[str, float]]) -> None:
    estimate = estimate_mean([value for _, value in samples], [cluster for cluster, _ in samples])
    if estimate.degrees_of_freedom is not None:
        assert 1 <= estimate.degrees_of_freedom <= estimate.clusters - 1 + 1e-9


@pytest.mark.parametrize(
    ("values", "clusters", "said"),
    [
        ([0.1, 0.5], ["v1", "v1"], 'All 2 samples are of one cluster ("v1"), so there is no interval. Add samples of other videos.'),
        ([0.1, 0.1, 0.1], ["v1", "v2", "v3"], "All samples have the same value, so there is no interval. Add samples."),
        ([0.0, 1.0, 1.0, 0.0], ["v1", "v1", "v2", "v2"], "All clusters have the same mean, so there is no interval. Add samples."),
    ],
)
def test_where_the_sample_does_not_show_its_spread_there_is_no_interval(values: list[float], clusters: list[str], said: str) -> None:
    estimate = estimate_mean(values, clusters)
    assert estimate.no_interval == said
    assert (estimate.standard_error, estimate.low, estimate.high, estimate.degrees_of_freedom) == (None,) * 4
    assert estimate.value == pytest.approx(sum(values) / len(values))


def test_no_sample_is_said() -> None:
    with pytest.raises(InputError, match=r"There is no sample with a value, so there is no mean\."):
        estimate_mean([], [])
    with pytest.raises(InputError, match="There is no sample"):
        bootstrap(lambda chosen: 0.0, [], seed=1)


def test_values_that_are_none_and_lists_that_do_not_fit_are_bugs() -> None:
    with pytest.raises(ValueError, match="expected finite values, got nan"):
        estimate_mean([1.0, math.nan], ["a", "b"])
    with pytest.raises(ValueError, match="expected one value for each of 1 clusters"):
        estimate_mean([1.0, 2.0], ["a"])
    with pytest.raises(ValueError, match="expected two lists of the same samples"):
        compare([1.0], [1.0, 2.0], ["a"])


# ---------------------------------------------------------------- the bootstrap


def test_the_bootstrap_of_a_mean_has_the_standard_error_of_the_formula() -> None:
    sizes = UNEQUAL["40 of 1 to 12"]
    clusters, values = in_clusters(sizes), alike(sizes, 1, 3)[0]
    formula = estimate_mean(values, clusters).standard_error
    drawn = bootstrap(lambda chosen: float(values[chosen].mean()), clusters, seed=4, draws=4000)
    assert drawn.standard_error == pytest.approx(formula, rel=0.05)
    assert (drawn.value, drawn.method, drawn.clusters) == (pytest.approx(values.mean()), "bootstrap", 40)
    assert is_inside(drawn.value, drawn)


def test_clusters_are_drawn_whole() -> None:
    clusters = ["a", "b", "a", "c", "b", "a"]
    seen: list[list[int]] = []
    bootstrap(lambda chosen: float(seen.append(chosen.tolist()) or len(seen)), clusters, seed=1, draws=50)
    assert seen[0] == [0, 1, 2, 3, 4, 5]
    for chosen in seen[1:]:
        assert chosen.count(0) == chosen.count(2) == chosen.count(5)
        assert chosen.count(1) == chosen.count(4)
        assert chosen.count(0) + chosen.count(1) + chosen.count(3) == 3


@given(SAMPLES, st.randoms())
def test_the_same_seed_draws_the_same_clusters_in_whatever_order_they_stand(samples: list[tuple[str, float]], random: object) -> None:
    mixed = list(samples)
    random.shuffle(mixed)  # type: ignore[attr-defined]

    def estimate(some: list[tuple[str, float]], seed: int = 7) -> IntervalEstimate:
        values = np.array([value for _, value in some])
        return bootstrap(lambda chosen: math.fsum(values[chosen]), [cluster for cluster, _ in some], seed=seed, draws=20)

    assert estimate(mixed) == estimate(samples)


def test_another_seed_draws_other_clusters() -> None:
    values = np.random.default_rng(0).normal(size=20)
    clusters = [str(number) for number in range(20)]
    first, other = (bootstrap(lambda chosen: float(values[chosen].mean()), clusters, seed=seed) for seed in (1, 2))
    assert (first.low, first.high) != (other.low, other.high)


@given(SAMPLES)
def test_a_bootstrap_by_weights_is_that_by_numbers(some: list[tuple[str, float]]) -> None:
    clusters, values = [cluster for cluster, _ in some], np.array([value for _, value in some])
    drawn = bootstrap(lambda chosen: float(values[chosen].mean()), clusters, seed=3, draws=30)
    weighted = bootstrap_weighted(lambda weights: float(values @ weights / weights.sum()), clusters, seed=3, draws=30)
    for name in ("value", "standard_error", "low", "high"):
        expected = getattr(drawn, name)
        if expected is not None and drawn.standard_error is not None and drawn.standard_error > 1e-9:
            assert getattr(weighted, name) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("clusters", "said"), [(["v1", "v1"], "All 2 samples are of one cluster"), (["v1", "v2"], "Every draw of clusters has the same value")]
)
def test_a_bootstrap_that_shows_no_spread_has_no_interval(clusters: list[str], said: str) -> None:
    estimate = bootstrap(lambda chosen: 3.0, clusters, seed=1)
    assert (estimate.value, estimate.low, estimate.high, estimate.standard_error) == (3.0, None, None, None)
    assert str(estimate.no_interval).startswith(said)


# ---------------------------------------------------------------- comparisons


@pytest.mark.slow
@pytest.mark.parametrize("sizes", UNEQUAL.values(), ids=UNEQUAL)
def test_the_paired_test_rejects_a_true_null_in_4_to_6_percent(sizes: list[int]) -> None:
    clusters = in_clusters(sizes)
    first, second = alike(sizes, 4000, 5), alike(sizes, 4000, 6)
    rejected = [p_of(before, after, clusters) < 0.05 for before, after in zip(first, second, strict=True)]
    assert 0.04 <= np.mean(rejected) <= 0.06


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True], ids=["other videos", "the same videos"])
def test_the_test_of_two_groups_rejects_a_true_null_in_4_to_6_percent(shared: bool) -> None:
    sizes = UNEQUAL["40 of 1 to 12"]
    clusters = in_clusters(sizes)
    numbers = [int(name.split()[1]) for name in clusters]
    first = [index % 3 == 0 if shared else number % 3 == 0 for index, number in enumerate(numbers)]
    second = [not one for one in first]
    tests = [compare_groups(values, clusters, first, second).p_value for values in alike(sizes, 4000, 8)]
    assert 0.04 <= np.mean([p is not None and p < 0.05 for p in tests]) <= 0.06


def test_two_groups_of_other_clusters_have_the_squares_of_their_errors() -> None:
    values, clusters = [1.0, 2.0, 4.0, 7.0, 3.0, 9.0], ["a", "a", "b", "c", "d", "e"]
    first = [True, True, True, False, False, False]
    test = compare_groups(values, clusters, first, [not one for one in first])
    before, after = estimate_mean(values[:3], clusters[:3]), estimate_mean(values[3:], clusters[3:])
    assert before.standard_error is not None
    assert after.standard_error is not None
    assert test.difference.value == pytest.approx(after.value - before.value)
    assert test.difference.standard_error == pytest.approx(math.hypot(before.standard_error, after.standard_error))


def test_a_group_of_one_video_is_said_and_not_tested() -> None:
    test = compare_groups([1.0, 2.0, 4.0, 7.0], ["a", "a", "b", "c"], [True, True, False, False], [False, False, True, True])
    assert (test.p_value, test.difference.value) == (None, 4.0)
    assert "one cluster" in str(test.difference.no_interval)


@pytest.mark.slow
def test_the_smallest_detectable_difference_is_found_in_four_of_five_samples() -> None:
    sizes = UNEQUAL["40 of 1 to 12"]
    clusters = in_clusters(sizes)
    noise = alike(sizes, 4000, 7)
    spread = float(np.std(noise.mean(axis=1)))  # the true standard error
    true = smallest_detectable_difference(spread, degrees(lambda: estimate_mean(noise[0], clusters)))
    found = [p_of(values * 0, values + true, clusters) < 0.05 for values in noise]
    assert np.mean(found) == pytest.approx(0.8, abs=0.02)


def p_of(first: Floats, second: Floats, clusters: list[str]) -> float:
    p_value = compare(first, second, clusters).p_value
    assert p_value is not None
    return p_value


def degrees(estimate: Callable[[], IntervalEstimate]) -> float:
    found = estimate().degrees_of_freedom
    assert found is not None
    return found


def test_a_comparison_is_of_the_differences() -> None:
    first, second, clusters = [1.0, 2.0, 3.0, 4.0], [2.0, 2.5, 5.0, 4.0], ["a", "a", "b", "c"]
    comparison = compare(first, second, clusters)
    assert comparison.difference == estimate_mean([1.0, 0.5, 2.0, 0.0], clusters)
    assert comparison.difference.value == 0.875
    back = compare(second, first, clusters)
    assert back.difference.value == -0.875
    assert back.p_value == comparison.p_value


def test_an_interval_leaves_zero_out_where_the_p_value_is_below_5_percent() -> None:
    clusters = [str(number // 3) for number in range(60)]
    noise = np.random.default_rng(8).normal(size=60)
    values = noise - noise.mean()
    estimate = estimate_mean(values, clusters)
    assert estimate.high is not None
    p_values = [p_of(np.zeros(60), values + shift, clusters) for shift in (estimate.high * 0.999, estimate.high * 1.001)]
    assert p_values[1] < 0.05 < p_values[0]
    assert p_values == pytest.approx([0.05, 0.05], abs=1e-3)


def test_values_that_are_all_the_same_show_no_difference_and_no_p_value() -> None:
    comparison = compare([0.5, 0.7], [0.5, 0.7], ["a", "b"])
    assert (comparison.difference.value, comparison.p_value, comparison.smallest_detectable) == (0.0, None, None)
    assert comparison.difference.no_interval == "All samples have the same value, so there is no interval. Add samples."


def test_the_smallest_detectable_difference_by_hand() -> None:
    assert smallest_detectable_difference(1.0, 1e7) == pytest.approx(1.959964 + 0.841621, abs=1e-5)
    assert smallest_detectable_difference(0.5, 10) == pytest.approx(0.5 * (2.228139 + 0.879058), abs=1e-5)
    stricter = smallest_detectable_difference(0.5, 10, significance=0.05 / 3)
    assert stricter == pytest.approx(0.5 * (quantile(1 - 0.05 / 6, 10) + 0.879058), abs=1e-5)


# ---------------------------------------------------------------- Holm


def test_holm_by_hand() -> None:
    corrected = correct_holm([0.01, 0.04, 0.03, 0.005])  # sorted: 0.005 · 4, 0.01 · 3, 0.03 · 2, 0.04 · 1, never falling
    assert corrected == pytest.approx([0.03, 0.06, 0.06, 0.02])


@pytest.mark.parametrize(
    ("p_values", "expected"),
    [([], []), ([0.04], [0.04]), ([0.6, 0.7], [1.0, 1.0]), ([None, 0.02, None, 0.04], [None, 0.04, None, 0.04]), ([0.0, 0.0], [0.0, 0.0])],
)
def test_holm_at_its_ends(p_values: list[float | None], expected: list[float | None]) -> None:
    assert correct_holm(p_values) == expected


@given(st.lists(st.one_of(st.none(), st.floats(0, 1))))
def test_holm_keeps_the_order_and_lies_between_the_p_value_and_bonferroni(p_values: list[float | None]) -> None:
    corrected = correct_holm(p_values)
    tests = [(p, q) for p, q in zip(p_values, corrected, strict=True) if p is not None and q is not None]
    assert [q is None for q in corrected] == [p is None for p in p_values]
    assert all(p <= q <= min(1.0, p * len(tests)) or q == p for p, q in tests)
    assert [q for _, q in sorted(tests)] == sorted(q for _, q in tests)


@pytest.mark.slow
def test_holm_finds_something_that_is_not_there_in_at_most_5_percent_of_tables() -> None:
    tables = np.random.default_rng(9).uniform(size=(4000, 6))
    found = [min(q for q in correct_holm(table.tolist()) if q is not None) < 0.05 for table in tables]
    assert 0.04 <= np.mean(found) <= 0.06
