"""How well reviewers agree: raw agreement, Cohen's and Fleiss' κ, and Krippendorff's α with its interval, for the verdict and each text.

In: what each reviewer says of each item. Out: a `FieldAgreement` a field. A reviewer who gave a verdict and did not mark a text as wrong
calls it right. All values are names without an order. κ and α are 0 where reviewers agree no more than by chance, and 1 where always.

Cohen 1960; Fleiss 1971; Krippendorff 2011, "Computing Krippendorff's alpha-reliability", whose library computes α.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from vip.errors import BackendError
from vip.metrics.statistics import IntervalEstimate, bootstrap
from vip.review.fields import WRONG
from vip.review.state import ReviewState

Unit = Mapping[str, str]
"""Reviewer -> value, of one item."""
SEED = 0
RIGHT = "right"
MOST_PAIRED = 50  # reviewers with a κ of Cohen: 1,225 pairs; those of a thousand would be half a million


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldAgreement:
    """The agreement about one field, over the items that two or more reviewers judged."""

    field: str
    items: int
    reviewers: int
    raw: float | None
    """Share of pairs of judgements of one item that are the same; None without a pair."""
    cohen: dict[str, float | None]
    """`Ann, Bob` -> κ over the items that both judged; None where both always say the same one thing."""
    cohen_left_out: int
    """Reviewers without a κ of Cohen: only the `MOST_PAIRED` with most judgements are compared in pairs."""
    fleiss: float | None
    """Over the items that the same number of reviewers judged; None where all say one thing, or nothing."""
    fleiss_items: int
    alpha: IntervalEstimate | None
    """None without a pair; its value is 1 where all say one thing, of which α itself says nothing."""


def agreement_by_field(state: ReviewState) -> list[FieldAgreement]:
    """Return the agreement about the verdict of the first stage, and about each text.

    Raises:
        BackendError: the library `krippendorff` is missing.
    """
    verdicts = {item.id: state.said(item.id, "verdict") for item in state.reviewed_items()}
    judged = {item: said for item, said in verdicts.items() if len(said) > 1}
    videos = [state.index.items[state.index.numbers[item]].video for item in judged]
    rows = [measure_agreement("verdict", list(judged.values()), videos)]
    for name in state.index.fields:
        marked = ((said, state.said(item, f"{WRONG}:{name}")) for item, said in judged.items() if name in state.fields(item))
        units = [{reviewer: WRONG if reviewer in marks else RIGHT for reviewer in said} for said, marks in marked]
        of_units = [video for item, video in zip(judged, videos, strict=True) if name in state.fields(item)]
        rows.append(measure_agreement(name, units, of_units))
    return rows


def measure_agreement(field: str, units: Sequence[Unit], videos: Sequence[str]) -> FieldAgreement:
    """Return the agreement over items; those with one judgement are left out.

    Args:
        videos: the video of each item. The interval of α is the cluster bootstrap over them; over items where there is one video only.

    Raises:
        BackendError: the library `krippendorff` is missing.
    """
    pairs = [(unit, video) for unit, video in zip(units, videos, strict=True) if len(unit) > 1]
    kept = [unit for unit, _ in pairs]
    judgements = Counter(name for unit in kept for name in unit)
    counts = count_values(kept)
    sizes = Counter(int(size) for size in counts.sum(axis=1))
    usual = max(sizes, key=lambda size: (sizes[size], size), default=0)
    of_usual = counts[counts.sum(axis=1) == usual]
    return FieldAgreement(
        field=field,
        items=len(kept),
        reviewers=len(judgements),
        raw=raw_agreement(counts) if kept else None,
        cohen=_cohen_of_pairs(kept, judgements),
        cohen_left_out=max(0, len(judgements) - MOST_PAIRED),
        fleiss=fleiss_kappa(of_usual) if kept else None,
        fleiss_items=len(of_usual),
        alpha=_alpha_with_interval(counts, [video for _, video in pairs]) if kept else None,
    )


def count_values(units: Sequence[Unit]) -> npt.NDArray[np.int64]:
    """Return how often each value was given to each item: (items, values)."""
    values = sorted({value for unit in units for value in unit.values()})
    places = {value: place for place, value in enumerate(values)}
    counts = np.zeros((len(units), len(values)), np.int64)
    for row, unit in enumerate(units):
        for value in unit.values():
            counts[row, places[value]] += 1
    return counts


def raw_agreement(counts: npt.NDArray[np.int64]) -> float:
    """Return the share of pairs of judgements of one item that are the same."""
    sizes = counts.sum(axis=1)
    return float((counts * (counts - 1)).sum() / (sizes * (sizes - 1)).sum())


def _cohen_of_pairs(units: Sequence[Unit], judgements: Mapping[str, int]) -> dict[str, float | None]:
    """Return κ of the pairs among those with most judgements, in one pass over the items."""
    compared = set(sorted(judgements, key=lambda name: (-judgements[name], name))[:MOST_PAIRED])
    said: dict[tuple[str, str], Counter[tuple[str, str]]] = {}
    for unit in units:
        for one, other in combinations(sorted(compared & unit.keys()), 2):
            said.setdefault((one, other), Counter())[unit[one], unit[other]] += 1
    return {f"{one}, {other}": cohen_kappa(said[one, other]) for one, other in sorted(said)}


def cohen_kappa(pairs: Mapping[tuple[str, str], int]) -> float | None:
    """Return (p - p_chance) / (1 - p_chance) of two reviewers; None where p_chance is 1.

    Args:
        pairs: what both said of an item -> of how many items.
    """
    n = sum(pairs.values())
    first, second = Counter[str](), Counter[str]()
    for (one, other), count in pairs.items():
        first[one] += count
        second[other] += count
    same = sum(count for (one, other), count in pairs.items() if one == other)
    by_chance = sum(first[value] * second[value] for value in first)
    return None if by_chance == n * n else (same / n - by_chance / n**2) / (1 - by_chance / n**2)


def fleiss_kappa(counts: npt.NDArray[np.int64]) -> float | None:
    """Return κ of items that have the same number of judgements each, two or more; None where all say one thing.

    Args:
        counts: (items, values), rows with one sum.
    """
    shares = counts.sum(axis=0) / counts.sum()
    by_chance = float((shares**2).sum())
    return None if by_chance == 1 else (raw_agreement(counts) - by_chance) / (1 - by_chance)


def krippendorff_alpha(counts: npt.NDArray[np.int64]) -> float:
    """Return α of values without an order; 1 where all say one thing.

    Args:
        counts: (items, values), two or more judgements in each row.

    Raises:
        BackendError: the library is missing.
    """
    try:
        import krippendorff
    except ImportError as exc:
        raise BackendError("krippendorff is not installed: pip install 'vip-keyframes[review]'.") from exc
    if np.count_nonzero(counts.sum(axis=0)) < 2:
        return 1.0
    return float(krippendorff.alpha(value_counts=counts, level_of_measurement="nominal"))


def _alpha_with_interval(counts: npt.NDArray[np.int64], videos: Sequence[str]) -> IntervalEstimate:
    clusters = videos if len(set(videos)) > 1 else [str(number) for number in range(len(counts))]
    return bootstrap(lambda items: krippendorff_alpha(counts[items]), clusters, seed=SEED)
