"""Looks come back from the files of a run as they went in; files that do not fit together are refused."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from tests.extraction.analyses import analysis, measured
from tests.extraction.test_write_selection import decided, seen
from vip import store
from vip.errors import InputError, StoreError
from vip.extraction.analysis_store import Columns, analyses_of, cached_vectors_of
from vip.extraction.analyze import FrameAnalysis
from vip.records import Detection, Embeddings
from vip.store import Run

DOG = Detection(label="dog", score=0.5, box_xyxy=(0.4, 0.4, 0.6, 0.6), source="test")
FEWER = Embeddings(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), "test")
VIEW = np.array([0.6, 0.8], np.float32)
LOOKS = [
    analysis(0, detections=(DOG,)),
    analysis(
        40,
        in_transition=True,
        is_still=True,
        is_calm=True,
        is_between_rests=True,
        measured=measured(1 / 3, contrast=0.3, brightness=0.1, not_dark=0.9, not_light=0.8, bright=0.7, dim=0.6),
    ),
    analysis(120, stands_in_for=80, detections=None),
]


def written(folder: Path, analyses: Sequence[FrameAnalysis] = LOOKS, lost: Sequence[int] = (80,)) -> Run:
    decided(folder, seen(analyses, undecodable=lost))
    return Run(folder)


def same(one: FrameAnalysis, other: FrameAnalysis) -> bool:
    return all(np.array_equal(getattr(one, field.name), getattr(other, field.name)) for field in fields(FrameAnalysis))


def test_looks_come_back_to_the_last_bit_without_the_lost_ones(tmp_path: Path) -> None:
    back = analyses_of(written(tmp_path))
    assert len(back) == 3
    assert all(same(one, other) for one, other in zip(back, LOOKS, strict=True))


def test_views_are_written_only_where_they_are_not_the_vectors(tmp_path: Path) -> None:
    for name, analyses in (("one", LOOKS), ("two", [*LOOKS[:2], analysis(120, view=VIEW)])):
        (tmp_path / name).mkdir()
        back = analyses_of(written(tmp_path / name, analyses))
        assert ("view" in store.read_arrays(tmp_path / name / store.ANALYSIS)) == (name == "two")
        assert all(np.array_equal(one.view, other.view) for one, other in zip(back, analyses, strict=True))


CHANGES: dict[str, Callable[[Columns], object]] = {
    "no signature": lambda columns: columns.pop("signature"),
    "one row less": lambda columns: columns.update(in_transition=columns["in_transition"][:2]),
    "numbers for flags": lambda columns: columns.update(in_transition=columns["in_transition"].astype(np.int64)),
    "broken times": lambda columns: columns.update(pts=columns["pts"].astype(np.float64)),
    "other times": lambda columns: columns.update(pts=columns["pts"] + 1),
    "a signature upright": lambda columns: columns.update(signature=columns["signature"].transpose(0, 2, 1, 3)),
    "a signature of other numbers": lambda columns: columns.update(signature=columns["signature"].astype(np.int16)),
    "a flat view": lambda columns: columns.update(view=np.zeros(3, np.float32)),
    "views of fewer": lambda columns: columns.update(view=np.zeros((2, 2), np.float32)),
    "views of other numbers": lambda columns: columns.update(view=np.zeros((3, 2), np.float64)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_looks_that_do_not_fit_the_candidates_are_refused(tmp_path: Path, change: Callable[[Columns], object]) -> None:
    run = written(tmp_path)
    columns = dict(store.read_arrays(tmp_path / store.ANALYSIS))
    change(columns)
    np.savez(tmp_path / store.ANALYSIS, **columns)  # type: ignore[arg-type]
    with pytest.raises(StoreError, match=r"analysis\.npz does not fit candidates\.jsonl\. Run `vip extract VIDEO --overwrite`"):
        analyses_of(run)


def test_fewer_vectors_or_thumbnails_than_candidates_are_refused(tmp_path: Path) -> None:
    for name in ("vectors", "thumbnails"):
        (tmp_path / name).mkdir()
        run = written(tmp_path / name)
        if name == "vectors":
            store.write_embeddings(run.folder / store.EMBEDDINGS, FEWER)
        else:
            store.write_thumbnails(run.folder / store.THUMBNAILS, [(0, b"a"), (1, b"b"), (2, b"lost")])
        with pytest.raises(StoreError, match=r"embeddings\.npz or thumbnails\.zip does not fit"):
            analyses_of(run)


def test_thumbnails_that_are_none_are_damaged(tmp_path: Path) -> None:
    run = written(tmp_path)
    with zipfile.ZipFile(tmp_path / store.THUMBNAILS, "w") as archive:
        archive.writestr("cover.jpg", b"")
    with pytest.raises(StoreError, match=r"thumbnails\.zip: damaged"):
        analyses_of(run)


@pytest.mark.parametrize("name", [store.ANALYSIS, store.EMBEDDINGS])
def test_a_run_of_an_older_vip_says_what_to_do(tmp_path: Path, name: str) -> None:
    run = written(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(InputError, match=r"an older vip made it\. Run `vip extract VIDEO --overwrite` to make the run again\."):
        analyses_of(run)


@pytest.mark.parametrize("name", ["is_calm", "is_between_rests", "dim"])
def test_a_run_of_a_vip_that_did_not_know_a_column_yet_says_which_and_what_to_do(tmp_path: Path, name: str) -> None:
    run = written(tmp_path)
    columns = {key: column for key, column in store.read_arrays(tmp_path / store.ANALYSIS).items() if key != name}
    np.savez(tmp_path / store.ANALYSIS, **columns)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"analysis\.npz has no {name}, .*: an older vip made it\. Run `vip extract VIDEO --overwrite`"):
        analyses_of(run)


# ---------------------------------------------------------------- what an embedder has seen


def test_the_vectors_of_a_run_are_known_by_frame_and_by_text(tmp_path: Path) -> None:
    texts = np.array([[1, 0], [0, 1], [0, 1]], np.float32)
    embeddings = Embeddings(np.array([one.vector for one in LOOKS]), texts, "test")
    decided(tmp_path, seen(LOOKS, undecodable=[20], embeddings=embeddings))
    known = cached_vectors_of(Run(tmp_path))
    assert list(known.frames) == [0, 40, 120]
    assert all(np.array_equal(known.frames[one.pts], one.vector) for one in LOOKS)
    assert {text: vector.tolist() for text, vector in known.texts.items()} == {"dog in the centre (50%).": [1, 0], "Nothing.": [0, 1]}


def test_of_vectors_that_do_not_fit_or_are_not_there_nothing_is_known(tmp_path: Path) -> None:
    written(tmp_path)
    store.write_embeddings(tmp_path / store.EMBEDDINGS, FEWER)
    assert cached_vectors_of(Run(tmp_path)).frames == {}
    (tmp_path / store.EMBEDDINGS).unlink()
    assert cached_vectors_of(Run(tmp_path)).texts == {}
