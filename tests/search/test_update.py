"""vip.search.update: which sources are read again, what a damaged one costs, and when vectors move to tables"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

import pytest

from tests.captioning.keyframes import run_folder
from tests.search.scenes import Notes
from tests.search.test_ask_corpus import data_set
from tests.search.test_find import describe
from vip import store
from vip.dataset.rows import sample_of, with_key
from vip.dataset.shards import write_shard
from vip.errors import BackendError, InputError, StoreError
from vip.review.log import NAME as LOG
from vip.review.log import NewAction, ReviewLog
from vip.search import update, vector_table
from vip.search.embedder_vectors import StoredEmbedder
from vip.search.index import SearchIndex, Source, opened
from vip.search.update import settle_vectors, train_tables, update_index
from vip.store import load_run
from vip.wording import SaidOnce


@pytest.fixture
def index(tmp_path: Path) -> Iterator[SearchIndex]:
    with opened(tmp_path / "index") as one:
        yield one


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs of two keyframes."""
    for name in ("a", "b", "c"):
        describe(run_folder(tmp_path / "runs" / f"{name}.vip", 2), f"a dog of {name}", "a cat")
    return tmp_path / "runs"


def captions(index: SearchIndex) -> list[str]:
    """What the index knows of the first keyframe of each video."""
    query = "SELECT t.caption FROM texts t JOIN keyframes k ON k.id = t.rowid WHERE k.number = 1 ORDER BY 1"
    return [text for (text,) in index.connection.execute(query)]


def updated(index: SearchIndex, *sources: Path | str) -> Notes:
    notes = Notes()
    update_index(index, [str(one) for one in sources], notes)
    return notes


def lose(runs: Path, name: str) -> None:
    (runs / f"{name}.vip" / store.WORDS).write_text("no json")


# ---------------------------------------------------------------- runs


def test_a_run_that_is_named_twice_or_lies_in_a_folder_that_is_named_too_is_read_once(
    index: SearchIndex, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(runs)
    assert updated(index, "a.vip", "a.vip", runs / "a.vip").indexed == [1]
    assert list(index.stamps()) == [Source(str(runs / "a.vip"), "")]
    assert updated(index, "a.vip", runs).indexed == [2]
    assert index.count() == 6


def test_only_what_has_changed_is_read_again_and_only_what_is_gone_is_removed(index: SearchIndex, runs: Path) -> None:
    assert updated(index, runs).indexed == [3]
    before = index.stamps()
    describe(runs / "b.vip", "a fox", "a cat")
    shutil.rmtree(runs / "c.vip")
    assert updated(index, runs).indexed == [1]
    assert captions(index) == ["a dog of a", "a fox"]
    after = index.stamps()
    assert {source for source in after if after[source] == before.get(source)} == {Source(str(runs / "a.vip"), "")}
    assert updated(index, runs).indexed == []


def test_a_folder_that_is_gone_is_told_and_the_index_stays(index: SearchIndex, runs: Path) -> None:
    updated(index, runs)
    with pytest.raises(InputError, match="is not a folder"):
        updated(index, runs, runs / "missing")
    assert index.count() == 6


def test_a_run_that_was_damaged_since_keeps_what_was_known_of_it_until_it_is_whole(index: SearchIndex, runs: Path) -> None:
    updated(index, runs)
    describe(runs / "b.vip", "a fox", "a cat")
    describe(runs / "c.vip", "a wolf", "a cat")
    lose(runs, "b")
    notes = updated(index, runs)
    assert (len(notes.told), notes.indexed) == (1, [2])
    assert "b.vip" in notes.told[0]
    assert notes.told[0].endswith(" It is left out.")
    assert captions(index) == ["a dog of a", "a dog of b", "a wolf"], "those behind it are read"
    again = updated(index, runs)
    assert again.indexed == [1], "it is looked at again"
    assert again.told == notes.told, "it is not the only source, though the only one to be read"
    (runs / "b.vip" / store.WORDS).unlink()
    assert updated(index, runs).told == []
    assert captions(index) == ["a dog of a", "a fox", "a wolf"]


@pytest.mark.parametrize("alone", [True, False])
def test_a_damaged_run_that_is_asked_for_alone_is_an_error(alone: bool, index: SearchIndex, runs: Path) -> None:
    lose(runs, "b")
    sources = [runs / "b.vip"] if alone else [runs / "b.vip", runs / "a.vip"]
    if alone:
        with pytest.raises(StoreError):
            updated(index, *sources)
        assert (index.count(), index.stamps()) == (0, {})
    else:
        assert len(updated(index, *sources).told) == 1
        assert captions(index) == ["a dog of a"]


@pytest.mark.parametrize("error", [BackendError("pyarrow is not installed."), RuntimeError("a bug")])
def test_what_is_no_damage_of_a_source_is_raised_and_what_was_read_before_stays(
    error: Exception, index: SearchIndex, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = update.load_run

    def load(address: str) -> store.Run:
        if address.endswith("b.vip"):
            raise error
        return plain(address)

    monkeypatch.setattr(update, "load_run", load)
    with pytest.raises(type(error)):
        updated(index, runs)
    assert captions(index) == ["a dog of a"]
    monkeypatch.undo()
    assert updated(index, runs).indexed == [2]


# ---------------------------------------------------------------- another process


def test_an_index_that_another_process_writes_is_used_as_it_is_and_one_without_keyframes_is_not(
    index: SearchIndex, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def held(_: Path) -> None:
        raise StoreError("Another process writes there.")

    with monkeypatch.context() as patched:
        patched.setattr(update, "in_use", held)
        with pytest.raises(StoreError, match="Another process"):
            updated(index, runs)
    updated(index, runs)
    describe(runs / "b.vip", "a fox", "a cat")
    monkeypatch.setattr(update, "in_use", held)
    assert updated(index, runs).told == ["Another process writes there. What is new since the last search may be left out."]
    assert captions(index) == ["a dog of a", "a dog of b", "a dog of c"]


# ---------------------------------------------------------------- shards


@pytest.fixture
def corpus(tmp_path: Path, runs: Path) -> Path:
    """A data set of three shards, a run each."""
    folder = tmp_path / "corpus"
    for number, name in enumerate(("a", "b", "c")):
        write_shard(str(folder), number, [with_key(sample_of(load_run(runs / f"{name}.vip")), name)], "parquet")
    return folder


def test_each_shard_is_a_source_of_its_own(index: SearchIndex, corpus: Path) -> None:
    assert updated(index, corpus).indexed == [3]
    assert sorted(index.stamps()) == [Source(str(corpus), number) for number in ("00000", "00001", "00002")]
    assert captions(index) == ["a dog of a", "a dog of b", "a dog of c"]
    (corpus / "shards" / "note.txt").write_text("no shard")
    (corpus / "shards" / "123.json").write_text("no shard")
    assert updated(index, corpus).indexed == [], "other files do not matter"


def test_a_shard_that_is_not_whole_is_left_out_with_a_note(index: SearchIndex, corpus: Path) -> None:
    (corpus / "shards" / "00001.json").unlink()
    notes = updated(index, corpus)
    assert notes.told == [f"{corpus}: shard 00001 is not whole, and is left out."]
    assert captions(index) == ["a dog of a", "a dog of c"]


def test_only_the_shard_whose_size_has_changed_is_read_again_and_a_log_touches_all(index: SearchIndex, corpus: Path) -> None:
    updated(index, corpus)
    sidecar = corpus / "shards" / "00002.json"
    sidecar.write_bytes(sidecar.read_bytes() + b"\n")
    assert updated(index, corpus).indexed == [1]
    with ReviewLog(corpus / LOG) as log:
        log.append([NewAction(uid="u", reviewer="Ann", item="x", field="comment", before=None, after="dark")])
    assert updated(index, corpus).indexed == [3]


def test_runs_and_data_sets_are_one_index(index: SearchIndex, corpus: Path, runs: Path) -> None:
    assert updated(index, corpus, runs / "a.vip").indexed == [4]
    assert updated(index, runs / "a.vip", corpus).indexed == []
    assert index.count() == 8
    assert updated(index, runs / "a.vip").indexed == [0], "the shards are gone from it"
    assert index.count() == 2


def test_a_data_set_of_one_damaged_shard_is_an_error(index: SearchIndex, tmp_path: Path, runs: Path) -> None:
    folder = data_set(tmp_path / "one", runs / "a.vip")
    (folder / "shards" / "00000.json").write_text("{")
    with pytest.raises(StoreError):
        updated(index, folder)


def test_an_address_without_shards_is_refused_and_its_secrets_are_not_shown(index: SearchIndex) -> None:
    pytest.importorskip("fsspec")
    with pytest.raises(InputError, match=r"holds no shards\. Give the folder that `vip batch -o` wrote\.") as caught:
        updated(index, "memory://ann:secret@none")
    assert "secret" not in str(caught.value)


# ---------------------------------------------------------------- vectors and tables


class Recorder:
    """An index of embedders alone, which notes what it is told to do."""

    def __init__(self, *embedders: tuple[int, int, int], is_remote: bool = False) -> None:
        self.rows = [StoredEmbedder(number, f"e{number}", 8, *sizes, 0, None, None) for number, sizes in enumerate(embedders, 1)]
        self.is_remote = is_remote
        self.settled: list[int] = []
        self.trained: list[int] = []

    def embedders(self) -> Sequence[StoredEmbedder]:
        return self.rows

    def settle(self, embedder: StoredEmbedder) -> None:
        self.settled.append(embedder.id)

    def train(self, embedder: StoredEmbedder) -> None:
        self.trained.append(embedder.id)


def settled(*embedders: tuple[int, int, int], is_remote: bool = False, is_last: bool = False, notes: Notes | None = None) -> list[int]:
    one = Recorder(*embedders, is_remote=is_remote)
    settle_vectors(cast(SearchIndex, one), notes or Notes(), is_last=is_last)
    return one.settled


@pytest.fixture
def _limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(update, "MOST_EXACT", 10)
    monkeypatch.setattr(update, "MOST_RECENT", 3)
    monkeypatch.setattr(vector_table, "is_installed", lambda: True)


@pytest.mark.usefixtures("_limits")
@pytest.mark.parametrize("is_last", [True, False])
@pytest.mark.parametrize(
    ("slots", "in_table", "moves"), [(10, 0, False), (11, 0, True), (13, 10, False), (14, 10, True), (4, 1, False), (5, 1, True)]
)
def test_vectors_move_where_there_are_more_than_the_first_or_than_the_later_limit(
    slots: int, in_table: int, moves: bool, is_last: bool
) -> None:
    assert settled((slots, in_table, 0), is_last=is_last) == ([1] if moves else [])


@pytest.mark.usefixtures("_limits")
def test_each_embedder_is_looked_at() -> None:
    assert settled((1, 0, 0), (11, 0, 0), (2, 0, 0), (14, 10, 10)) == [2, 4]


@pytest.mark.usefixtures("_limits")
def test_all_vectors_of_an_index_that_lies_elsewhere_move_at_the_end() -> None:
    few = ((1, 0, 0), (12, 11, 0), (9, 9, 0))
    assert settled(*few, is_remote=True) == []
    assert settled(*few, is_remote=True, is_last=True) == [1, 2]
    assert settled((11, 0, 0), is_remote=True) == [1]


@pytest.mark.usefixtures("_limits")
def test_without_lancedb_vectors_stay_here_with_a_note_and_elsewhere_that_is_an_error_of_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_table, "is_installed", lambda: False)
    notes = Notes()
    assert settled((1234, 0, 0), (9, 0, 0), notes=notes) == []
    assert [text.partition(" pictures")[0] for text in notes.told] == ["1,234"]
    assert isinstance(notes.told[0], SaidOnce)
    assert settled((11, 0, 0), is_remote=True) == [1], "which says what to install"


@pytest.mark.parametrize(
    ("embedders", "trained"),
    [([], []), ([(9, 9, 9)], []), ([(9, 0, 0)], []), ([(9, 9, 8), (9, 5, 5), (9, 5, 0)], [1, 3])],
)
def test_tables_are_trained_where_rows_are_not_in_their_index(embedders: Sequence[tuple[int, int, int]], trained: list[int]) -> None:
    one, notes = Recorder(*embedders), Notes()
    train_tables(cast(SearchIndex, one), notes)
    assert one.trained == trained
    assert notes.indexed == ([len(trained)] if trained else []), "no progress of nothing"


def test_vectors_move_as_sources_are_read_and_once_more_at_the_end(index: SearchIndex, runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[int, bool]] = []
    monkeypatch.setattr(update, "settle_vectors", lambda index, _, is_last=False: seen.append((index.count(), is_last)))
    updated(index, runs)
    assert seen == [(2, False), (4, False), (6, False), (6, True)]


def test_a_log_that_is_new_changes_the_stamp_of_a_run(index: SearchIndex, runs: Path) -> None:
    updated(index, runs)
    os.utime(runs / "a.vip" / store.DESCRIPTIONS, (1, 1))
    with ReviewLog(runs / "c.vip" / LOG) as log:
        log.append([NewAction(uid="u", reviewer="Ann", item="c:0000", field="dense_caption", before="a dog of c", after="a wolf")])
    assert updated(index, runs).indexed == [2]
    assert captions(index) == ["a dog of a", "a dog of b", "a wolf"]
