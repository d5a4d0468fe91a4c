"""Vectors in a table of LanceDB: what is found, what a killed process leaves, and when vectors go there."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from tests.captioning.keyframes import run_folder
from tests.corpus.s3 import BUCKET, S3
from tests.search.scenes import Notes, give_scenes, picture
from tests.search.test_vectors import rows
from vip.errors import StoreError
from vip.records import Vectors
from vip.search import update, vector_table
from vip.search.find import SearchQuery, default_folder, find_moments
from vip.search.index import SearchIndex, opened
from vip.search.vector_table import VectorTable

pytestmark = [pytest.mark.extra("lancedb"), pytest.mark.slow]


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def alike(count: int, dim: int = 32, seed: int = 0) -> Vectors:
    """Rows of 40 kinds, as keyframes of the same videos are."""
    kinds = rows(40, dim, seed)
    found = np.repeat(kinds, count // 40, axis=0) + rows(count // 40 * 40, dim, seed + 1) * np.float32(0.7)
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True), np.float32)


def table_of(folder: Path, vectors: Vectors, parts: int = 3) -> VectorTable:
    table = VectorTable(str(folder), vectors.shape[1])
    table.append(zip(np.array_split(np.arange(len(vectors)), parts), np.array_split(vectors, parts), strict=True))
    return table


def test_without_an_index_the_best_rows_are_found_exactly(tmp_path: Path) -> None:
    vectors = rows(500, 16)
    found = table_of(tmp_path / "t", vectors).nearest(vectors[7], 5, None, 0)
    exact = vectors @ vectors[7]
    assert found.slots.tolist() == np.argsort(-exact)[:5].tolist()
    assert np.allclose(found.cosines, np.sort(exact)[::-1][:5], atol=1e-6)


@pytest.mark.parametrize("dim", [8, 17, 512])
def test_ties_go_by_their_place(dim: int, tmp_path: Path) -> None:
    found = table_of(tmp_path / "t", np.repeat(rows(1, dim), 51, axis=0)).nearest(rows(1, dim)[0], 5, None, 0)
    assert found.slots.tolist() == [0, 1, 2, 3, 4]


def test_ties_go_by_their_place_whatever_was_written_first(tmp_path: Path) -> None:
    table, vectors = VectorTable(str(tmp_path / "t"), 8), np.repeat(rows(1, 8), 20, axis=0)
    table.append([(np.arange(20, 40)[::-1], vectors), (np.arange(20), vectors)])
    for allowed in (None, np.arange(40) >= 10):
        found = table.nearest(rows(1, 8)[0], 15, allowed, 0)
        assert found.slots.tolist() == list(range(0 if allowed is None else 10, 15 if allowed is None else 25))


def test_with_an_index_nearly_all_of_the_best_rows_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "LEAST_TRAINED", 4000)
    monkeypatch.setattr(vector_table, "PARTITION_ROWS", 500)
    vectors = alike(8000)
    table = table_of(tmp_path / "t", vectors)
    trained = table.train(0)
    assert trained == 8000
    hits = 0
    for query in vectors[::100] * np.float32(0.8) + rows(80, 32, 9) * np.float32(0.6):
        query /= np.linalg.norm(query)
        exact = vectors @ query
        found = table.nearest(query, 10, None, trained)
        assert np.allclose(found.cosines, exact[found.slots], atol=1e-6), "the cosines are those of whole rows"
        hits += len(set(found.slots.tolist()) & set(np.argsort(-exact)[:10].tolist()))
    assert hits / 800 >= 0.95


def test_an_index_is_made_anew_where_rows_have_doubled_and_added_to_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "LEAST_TRAINED", 1000)
    monkeypatch.setattr(vector_table, "PARTITION_ROWS", 500)
    vectors = alike(4000)
    table = VectorTable(str(tmp_path / "t"), 32)
    trained, history = 0, []
    for start, end in ((0, 500), (500, 1000), (1000, 1600), (1600, 4000)):
        table.append([(np.arange(start, end), vectors[start:end])])
        trained = table.train(trained)
        history.append(trained)
        assert table.nearest(vectors[end - 1], 1, None, trained).slots.tolist() == [end - 1]
    assert history == [0, 1000, 1000, 4000]


def test_removed_rows_are_not_found(tmp_path: Path) -> None:
    vectors = rows(300, 16)
    table = table_of(tmp_path / "t", vectors)
    table.remove(np.array([7, 8]))
    assert 7 not in table.nearest(vectors[7], 300, None, 0).slots


@pytest.mark.parametrize("named", [1000, 2])
def test_only_allowed_rows_are_found(named: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "MOST_LISTED", named)
    vectors = rows(300, 16)
    allowed = np.zeros(300, np.bool_)
    allowed[[3, 70, 299]] = True
    found = table_of(tmp_path / "t", vectors).nearest(vectors[70], 10, allowed, 0)
    assert found.slots[0] == 70
    assert sorted(found.slots.tolist()) == [3, 70, 299]
    assert not len(table_of(tmp_path / "u", vectors).nearest(vectors[5], 10, np.zeros(300, np.bool_), 0).slots)


def test_what_a_killed_process_wrote_is_no_part_of_a_version(tmp_path: Path) -> None:
    vectors = rows(300, 16)
    table = table_of(tmp_path / "t", vectors)
    killed = VectorTable(table.address, 16, table.version)
    killed.append([(np.arange(300, 310), np.repeat(vectors[7:8], 10, axis=0))])
    assert table.nearest(vectors[7], 11, None, 0).slots[0] == 7
    assert max(table.nearest(vectors[7], 300, None, 0).slots) < 300
    table.append([(np.arange(300, 301), rows(1, 16, 9))])
    assert len(table.nearest(vectors[7], 999, None, 0).slots) == 301


def test_a_table_that_is_gone_or_a_link_is_one_sentence(tmp_path: Path) -> None:
    table = table_of(tmp_path / "t", rows(300, 16))
    (tmp_path / "t").rename(tmp_path / "u")
    with pytest.raises(StoreError, match="cannot be read"):
        table.nearest(rows(1, 16)[0], 1, None, 0)
    (tmp_path / "t").symlink_to(tmp_path / "u")
    with pytest.raises(StoreError, match="it is a link"):
        table.nearest(rows(1, 16)[0], 1, None, 0)


def test_a_table_that_was_not_made_here_is_not_opened(tmp_path: Path) -> None:
    """It may name files and servers anywhere."""
    table = table_of(tmp_path / "t", rows(300, 16))
    shutil.copytree(tmp_path / "t", tmp_path / "copy")
    copy = VectorTable(str(tmp_path / "copy"), 16, table.version)
    with pytest.raises(StoreError, match="made on another machine"):
        copy.nearest(rows(1, 16)[0], 1, None, 0)
    with pytest.raises(StoreError, match="made on another machine"):
        copy.append([(np.arange(1), rows(1, 16))])


def test_a_new_table_takes_the_place_of_a_link_and_writes_nothing_behind_it(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "note.txt").write_text("mine")
    (tmp_path / "t").symlink_to(tmp_path / "mine")
    table_of(tmp_path / "t", rows(300, 16))
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["note.txt"]


# ---------------------------------------------------------------- the index


@contextmanager
def index_of(folder: Path) -> Iterator[SearchIndex]:
    with opened(default_folder([str(folder)])) as index:
        yield index


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables for more than ten vectors, and for more than six that come later."""
    monkeypatch.setattr(update, "MOST_EXACT", 10)
    monkeypatch.setattr(update, "MOST_RECENT", 6)


def nearest(scenes: Path, tmp_path: Path, number: int) -> str:
    return find_moments(SearchQuery(like=picture(tmp_path / "q.png", number)), [scenes]).moments[0].keyframe_id


@pytest.mark.usefixtures("_small")
def test_many_vectors_go_to_a_table_and_new_ones_wait_in_files(scenes: Path, tmp_path: Path) -> None:
    assert nearest(scenes, tmp_path, 8) == "high:0002"
    with index_of(scenes) as index:
        (embedder,) = index.embedders()
        assert (embedder.slots, embedder.settled, embedder.indexed) == (12, 12, 12)
        assert sorted(path.name for path in index.folder.glob("embedder-*")) == ["embedder-1"]
    give_scenes(run_folder(scenes / "next.vip", 6), range(20, 26))
    assert nearest(scenes, tmp_path, 23) == "next:0003", "from a file"
    assert nearest(scenes, tmp_path, 8) == "high:0002", "from the table"
    with index_of(scenes) as index:
        (embedder,) = index.embedders()
        assert (embedder.slots, embedder.settled) == (18, 12)
    give_scenes(run_folder(scenes / "last.vip", 6), range(30, 36))
    for number, keyframe in ((32, "last:0002"), (23, "next:0003"), (8, "high:0002")):
        assert nearest(scenes, tmp_path, number) == keyframe
    with index_of(scenes) as index:
        (embedder,) = index.embedders()
        assert (embedder.slots, embedder.settled) == (24, 24)


@pytest.mark.usefixtures("_small")
def test_what_is_gone_is_not_found_in_a_table_and_leaves_it_later(scenes: Path, tmp_path: Path) -> None:
    assert nearest(scenes, tmp_path, 8) == "high:0002"
    (scenes / "high.vip").rename(tmp_path / "elsewhere.vip")
    query = SearchQuery(like=picture(tmp_path / "q.png", 8))
    assert not any(one.keyframe_id.startswith("high:") for one in find_moments(query, [scenes]).moments)
    give_scenes(run_folder(scenes / "next.vip", 8), range(20, 28))
    assert nearest(scenes, tmp_path, 23) == "next:0003"
    with index_of(scenes) as index:
        (embedder,) = index.embedders()
        assert (embedder.slots, embedder.settled) == (20, 20), "slots of a table are not used again"
        found = index.vectors(embedder).table.nearest(rows(1, embedder.dim)[0], 100, None, 0)
        assert len(found.slots) == 14, "the rows of the run that is gone are deleted"


@pytest.mark.usefixtures("_small")
def test_a_killed_move_to_the_table_loses_nothing(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(SearchIndex, "_note_table", killed)
        with pytest.raises(KeyboardInterrupt):
            nearest(scenes, tmp_path, 8)
    for number, keyframe in ((8, "high:0002"), (1, "low:0001")):
        assert nearest(scenes, tmp_path, number) == keyframe
    with index_of(scenes) as index:
        (embedder,) = index.embedders()
        assert len(index.vectors(embedder).nearest(rows(1, embedder.dim)[0], 100).slots) == 12, "none twice"


@pytest.mark.usefixtures("_small")
def test_a_filter_and_the_mean_hold_across_table_and_files(scenes: Path, tmp_path: Path) -> None:
    nearest(scenes, tmp_path, 8)
    give_scenes(run_folder(scenes / "next.vip", 6), range(20, 26))
    nearest(scenes, tmp_path, 8)
    with index_of(scenes) as index:
        (embedder,) = index.embedders()
        vectors = index.vectors(embedder)
        query = rows(1, embedder.dim)[0]
        every = vectors.nearest(query, 18)
        assert sorted(every.slots.tolist()) == list(range(18))
        assert every.mean == pytest.approx(float(every.cosines.mean()), abs=1e-5), "files sum rounded rows"
        allowed = np.zeros(18, np.bool_)
        allowed[[2, 15]] = True
        assert sorted(vectors.nearest(query, 5, allowed).slots.tolist()) == [2, 15]


@pytest.mark.usefixtures("_small")
def test_without_lancedb_vectors_stay_in_files_with_a_note(scenes: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_table, "is_installed", lambda: False)
    notes = Notes()
    query = SearchQuery(like=picture(tmp_path / "q.png", 8))
    assert find_moments(query, [scenes], observer=notes).moments[0].keyframe_id == "high:0002"
    assert any("vip-keyframes[search]" in text for text in notes.told)


# ---------------------------------------------------------------- on S3


def on(machine: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))


@pytest.mark.extra("moto")
def test_an_index_on_s3_is_made_once_and_searched_by_others(
    scenes: Path,
    tmp_path: Path,
    s3: S3,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, query, notes = f"s3://{BUCKET}/index", SearchQuery(like=picture(tmp_path / "q.png", 8)), Notes()
    on("one", monkeypatch, tmp_path)
    assert find_moments(query, [scenes], folder=address, observer=notes).moments[0].keyframe_id == "high:0002"
    assert "index/index.sqlite" in s3.objects
    assert any(name.startswith("index/embedder-1/vectors.lance/") for name in s3.objects)
    on("two", monkeypatch, tmp_path)
    assert find_moments(query, [scenes], folder=address, observer=notes).moments[0].keyframe_id == "high:0002"
    assert notes.indexed[0] == 2
    assert len([one for one in notes.indexed if one == 2]) == 1, "the second machine reads no source"
    give_scenes(run_folder(scenes / "next.vip", 6), range(20, 26))
    query = SearchQuery(like=picture(tmp_path / "q.png", 23))
    assert find_moments(query, [scenes], folder=address).moments[0].keyframe_id == "next:0003"
    on("one", monkeypatch, tmp_path)
    later = Notes()
    assert find_moments(query, [scenes], folder=address, observer=later).moments[0].keyframe_id == "next:0003"
    assert not later.indexed


@pytest.mark.extra("moto")
def test_two_machines_that_add_at_once_lose_nothing(
    scenes: Path,
    tmp_path: Path,
    s3: S3,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, query = f"s3://{BUCKET}/index", SearchQuery(like=picture(tmp_path / "q.png", 8))
    train = SearchIndex.train
    is_first = True

    def other_machine_first(self: SearchIndex, embedder: object) -> None:
        nonlocal is_first
        if is_first:
            is_first = False
            on("two", monkeypatch, tmp_path)
            find_moments(query, [scenes], folder=address)
            on("one", monkeypatch, tmp_path)
        train(self, embedder)  # type: ignore[arg-type]

    monkeypatch.setattr(SearchIndex, "train", other_machine_first)
    on("one", monkeypatch, tmp_path)
    notes = Notes()
    assert find_moments(query, [scenes], folder=address, observer=notes).moments[0].keyframe_id == "high:0002"
    assert any("another machine" in text for text in notes.told)
    assert find_moments(query, [scenes], folder=address).moments[0].keyframe_id == "high:0002"


@pytest.mark.extra("moto")
def test_what_could_not_be_copied_to_s3_is_copied_by_the_next_search(
    scenes: Path,
    tmp_path: Path,
    s3: S3,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    address, query, notes = f"s3://{BUCKET}/index", SearchQuery(like=picture(tmp_path / "q.png", 23)), Notes()
    on("one", monkeypatch, tmp_path)
    find_moments(query, [scenes], folder=address)
    give_scenes(run_folder(scenes / "next.vip", 6), range(20, 26))
    s3.fails = lambda method, path: method in ("PUT", "POST") and "index.sqlite" in path
    assert find_moments(query, [scenes], folder=address, observer=notes).moments[0].keyframe_id == "next:0003"
    assert any("cannot be written" in text for text in notes.told)
    s3.fails = lambda method, path: False
    find_moments(query, [scenes], folder=address)
    on("two", monkeypatch, tmp_path)
    there = Notes()
    assert find_moments(query, [scenes], folder=address, observer=there).moments[0].keyframe_id == "next:0003"
    assert not there.indexed


@pytest.mark.extra("moto")
def test_an_index_on_s3_that_cannot_be_written_says_so(
    scenes: Path,
    tmp_path: Path,
    s3: S3,
) -> None:
    query, address, notes = SearchQuery(like=picture(tmp_path / "q.png", 8)), f"s3://{BUCKET}/index", Notes()
    s3.fails = lambda method, path: method == "PUT"
    assert find_moments(query, [scenes], folder=address, observer=notes).moments[0].keyframe_id == "high:0002"
    (told,) = notes.told
    assert f"{address}/embedder-1 cannot be written" in told
    assert os.environ["AWS_SECRET_ACCESS_KEY"] not in told
    s3.fails = lambda method, path: False
    assert find_moments(query, [scenes], folder=address, observer=notes).moments[0].keyframe_id == "high:0002"
    assert len(notes.told) == 1
    assert "index/index.sqlite" in s3.objects
