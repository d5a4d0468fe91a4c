"""Vectors on disk: the search in rounded rows finds what a search in whole rows finds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vip.errors import StoreError
from vip.records import Vectors
from vip.search.vectors import Nearest, VectorFiles, merged


def rows(count: int, dim: int, seed: int = 0) -> Vectors:
    found = np.random.default_rng(seed).standard_normal((count, dim), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def stored(folder: Path, vectors: Vectors) -> VectorFiles:
    folder.mkdir(exist_ok=True)
    found = VectorFiles(folder, vectors.shape[1], 0)
    found.write(np.arange(len(vectors)), vectors)
    return found


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    count=st.integers(1, 700), dim=st.sampled_from([1, 2, 17, 512]), wanted=st.integers(1, 40), seed=st.integers(0, 99), near=st.booleans()
)
def test_the_best_rows_are_those_of_a_search_in_all_whole_rows(
    tmp_path: Path, count: int, dim: int, wanted: int, seed: int, near: bool
) -> None:
    vectors = rows(count, dim, seed)
    if near and dim > 1:  # rows that rounding cannot tell apart
        vectors = vectors[:1] + vectors * np.float32(1e-3)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = rows(1, dim, seed + 1000)[0]
    found = stored(tmp_path / f"{count}-{dim}-{wanted}-{seed}-{near}", vectors).nearest(query, wanted)
    exact = vectors @ query
    assert len(found.slots) == min(wanted, count)
    assert np.allclose(found.cosines, np.sort(exact)[::-1][:wanted], atol=1e-6)
    assert np.allclose(exact[found.slots], found.cosines, atol=1e-6)


@pytest.mark.parametrize("dim", [8, 17, 512, 1544])
def test_ties_go_by_their_place(dim: int, tmp_path: Path) -> None:
    found = stored(tmp_path / "v", np.repeat(rows(1, dim), 50, axis=0)).nearest(rows(1, dim)[0], 5)
    assert found.slots.tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("dim", [2, 32])
def test_ties_among_others_go_by_their_place_wherever_they_come_from(dim: int, tmp_path: Path) -> None:
    """Of 300 rows a third is equal, in no order."""
    best, rest = rows(2, dim)
    query, vectors = best, np.repeat(rest[None], 300, axis=0)
    equal = np.sort(np.random.default_rng(5).permutation(300)[:100])
    vectors[equal] = best
    files = stored(tmp_path / "v", vectors)
    assert files.nearest(query, 60).slots.tolist() == equal[:60].tolist()
    assert files.nearest(query, 60, np.arange(300) >= 150).slots.tolist()[:40] == equal[equal >= 150][:40].tolist()
    cosines = np.ones(50, np.float32)
    parts = [Nearest(equal[50:][::-1], cosines, 1.0), Nearest(equal[:50], cosines, 1.0)]
    assert merged(parts, 70, 1.0).slots.tolist() == equal[:70].tolist()


def test_only_allowed_rows_are_found(tmp_path: Path) -> None:
    vectors = rows(200, 16)
    allowed = np.zeros(200, np.bool_)
    allowed[[3, 70, 199]] = True
    found = stored(tmp_path / "v", vectors).nearest(vectors[5], 10, allowed)
    assert sorted(found.slots.tolist()) == [3, 70, 199]
    assert not len(stored(tmp_path / "w", vectors).nearest(vectors[5], 10, np.zeros(200, np.bool_)).slots)


def test_rows_are_written_over_and_added(tmp_path: Path) -> None:
    found = stored(tmp_path / "v", rows(10, 8))
    new = rows(4, 8, 7)
    found.write(np.array([2, 3, 9, 12]), new)
    assert found.slots == 13
    for slot, vector in zip((2, 3, 9, 12), new, strict=True):
        assert found.nearest(vector, 1).slots.tolist() == [slot]


@pytest.mark.parametrize("name", ["vectors.f32", "vectors.i8", "vectors.bounds"])
def test_a_file_that_is_cut_or_gone_is_one_sentence(tmp_path: Path, name: str) -> None:
    found = stored(tmp_path / "v", rows(10, 8))
    path = tmp_path / "v" / name
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(StoreError, match=r"too short.*the next search makes it again"):
        found.nearest(rows(1, 8)[0], 1)
    path.unlink()
    with pytest.raises(StoreError, match="cannot be read"):
        found.nearest(rows(1, 8)[0], 1)
    path.symlink_to("/etc/passwd")
    with pytest.raises(StoreError):
        found.nearest(rows(1, 8)[0], 1)


@pytest.mark.parametrize(("name", "offset"), [("vectors.f32", 0), ("vectors.bounds", 0), ("vectors.bounds", 4)])
def test_vectors_without_a_length_are_damage(name: str, offset: int, tmp_path: Path) -> None:
    found = stored(tmp_path / "e", rows(3, 8))
    with (tmp_path / "e" / name).open("r+b") as file:
        file.seek(offset)
        file.write(np.float32("nan").tobytes())
    with pytest.raises(StoreError, match="a vector has no length"):
        found.nearest(rows(3, 8)[0], 3)
