"""The pruner `none`: all frames as they are, or so many at even distances."""

from __future__ import annotations

import pytest

from tests.extraction.pruning import at_angles, kept
from vip.errors import BackendError
from vip.extraction.pruners.none import NoPruning
from vip.protocols import PruningResult


def pruned(degrees: list[float], keep: int | None) -> PruningResult:
    return NoPruning(None).prune(at_angles(degrees), keep=keep, redundant=0.5)


@pytest.mark.parametrize("keep", [None, 3, 4])
def test_where_no_more_are_there_than_wanted_all_are_kept_even_copies(keep: int | None) -> None:
    thinned = pruned([0, 0, 0], keep)
    assert list(thinned.drops) == []
    assert (thinned.kept, thinned.bound) == ("kept: as the sampler gave it", 1.0)


@pytest.mark.parametrize(
    ("count", "keep", "stay"), [(9, 3, [1, 4, 7]), (8, 2, [2, 6]), (5, 1, [2]), (7, 3, [1, 3, 5]), (4, 3, [0, 2, 3]), (2, 1, [1])]
)
def test_of_more_those_in_the_middle_of_equal_parts_are_kept(count: int, keep: int, stay: list[int]) -> None:
    thinned = pruned([0.0] * count, keep)
    assert kept(at_angles([0.0] * count), [drop.index for drop in thinned.drops]) == stay
    assert thinned.kept == f"kept: one of {keep} at even distances"


def test_each_drop_names_the_nearest_that_is_kept_and_how_alike_they_are() -> None:
    drops = pruned([0, 60, 0, 0, 90, 120], 2).drops
    assert [(drop.index, drop.step, drop.neighbours) for drop in drops] == [(0, 1, (1,)), (2, 2, (1,)), (3, 3, (4,)), (5, 4, (4,))]
    assert [drop.score for drop in drops] == pytest.approx([0.5, 0.5, 0.0, 0.866], abs=1e-3)
    assert drops[3].reason == "dropped: too many; the nearest that is kept is 0:04.00, with likeness 0.866"


def test_it_asks_for_frames_as_they_are_and_takes_no_detail() -> None:
    assert NoPruning(None).capabilities.as_is
    with pytest.raises(BackendError, match='takes no detail, but got "x"'):
        NoPruning("x")
