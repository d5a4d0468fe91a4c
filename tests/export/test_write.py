"""`export`: what can be exported, where to, and what is never overwritten."""

from __future__ import annotations

import gc
import json
from pathlib import Path
from threading import Thread

import pytest

from tests.captioning.keyframes import run_folder
from tests.corpus.making import sample
from tests.corpus.s3 import BUCKET, S3
from tests.report.runs import make_pictures, make_run
from vip import store
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import read_samples, read_shards, write_shard
from vip.errors import InputError, StoreError, UsageError
from vip.export import in_shards
from vip.export.sources import count_pieces, read_sources, sources_of
from vip.export.write import RECORD, TARGETS, export
from vip.protocols import SilentObserver
from vip.store import Run


class Told(SilentObserver):
    """What a user is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def data_set(folder: Path, *keys: str) -> str:
    for number, key in enumerate(keys):
        write_shard(str(folder), number, [sample(key)], "parquet" if number % 2 else "webdataset")
    return str(folder)


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path / "holiday.vip")


# ---------------------------------------------------------------- sources


@pytest.mark.parametrize("target", TARGETS)
def test_every_format_takes_runs_and_data_sets(target: str, run: Run, tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", "one", "two")
    done = export([str(run.folder), corpus], target, out=str(tmp_path / "out"))
    assert (done.videos, done.keyframes, done.described, done.is_finished) == (3, 9, 9, True)
    assert json.loads((tmp_path / "out" / RECORD).read_text())["keyframes"] == 9
    assert len(names(tmp_path / "out")) == done.files + 1


@pytest.mark.parametrize(("length", "other"), [(1, "k-2"), (90, "k" * 90 + "-2"), (91, "k" * 90 + "-2"), (100, "k" * 90 + "-2")])
def test_a_key_that_occurs_again_has_room_for_its_number(tmp_path: Path, length: int, other: str) -> None:
    sources = sources_of([data_set(tmp_path / name, "k" * length) for name in ("one", "two")])
    found = list(read_sources(sources, Told().note))
    assert [one.video.key for one in found] == ["k" * length, other]
    assert [one.keyframe.id for one in found[1].frames] == [f"{other}:{number:04d}" for number in range(1, len(found[1].frames) + 1)]


def test_what_is_named_twice_is_exported_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in "ab":
        make_run(Path("runs", f"{name}.vip"))
    data_set(Path("corpus"), "one")
    given = [
        "corpus",
        "runs/b.vip",
        "runs",
        "runs",
        "runs/a.vip/",
        "runs/../runs/b.vip",
        "corpus/",
        str(tmp_path / "corpus"),
        f"file://{tmp_path / 'runs'}",
    ]
    assert [source.address for source in sources_of(given)] == ["corpus", "runs/b.vip", "runs/a.vip"]


def test_a_folder_of_runs_stands_for_its_runs(tmp_path: Path) -> None:
    for name in "ab":
        make_run(tmp_path / "runs" / f"{name}.vip")
    export([str(tmp_path / "runs")], "parquet", out=str(tmp_path / "out"))
    assert [one.video.key for one in read_samples(str(tmp_path / "out"))] == ["v", "v-2"]


@pytest.mark.parametrize("target", TARGETS)
def test_names_that_are_not_utf8_are_exported(target: str, tmp_path: Path) -> None:
    done = export([str(make_run(tmp_path / "a\udcff.vip").folder)], target, out=str(tmp_path / "out"))
    assert done.is_finished
    assert done.sources == (str(tmp_path / r"a\udcff.vip"),)


def test_a_key_that_comes_again_gets_a_number(run: Run, tmp_path: Path) -> None:
    corpora = [data_set(tmp_path / name, "v", "w") for name in "ab"]
    export([str(run.folder), *corpora], "webdataset", out=str(tmp_path / "out"))
    found = list(read_samples(str(tmp_path / "out")))
    assert [one.video.key for one in found] == ["v", "v-2", "w", "v-3", "w-2"]
    assert len({frame.keyframe.id for one in found for frame in one.frames}) == 15


def test_pictures_that_come_from_no_video_are_exported(tmp_path: Path) -> None:
    make_pictures(tmp_path / "photos")
    assert export([str(tmp_path / "photos")], "jsonl", out=str(tmp_path / "out")).keyframes == 3
    assert "pictures/photos/holiday 1.png" in names(tmp_path / "out")


def test_what_was_written_can_be_exported_again(tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", "one", "two")
    export([corpus], "webdataset", out=str(tmp_path / "a"))
    export([str(tmp_path / "a")], "parquet", out=str(tmp_path / "b"))
    assert list(read_samples(str(tmp_path / "b"))) == list(read_samples(corpus))


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_buckets_are_read_and_written(target: str, s3: S3) -> None:
    write_shard(f"s3://{BUCKET}/corpus", 0, [sample()], "parquet")
    done = export([f"s3://{BUCKET}/corpus"], target, out=f"s3://{BUCKET}/out")
    assert sum(name.startswith("out/") for name in s3.objects) == done.files + 1
    assert not s3.uploads


def test_shards_that_are_not_whole_are_left_out_and_named(tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", "one", "two")
    (tmp_path / "corpus" / FOLDER / "00001.json").unlink()
    told = Told()
    assert export([corpus], "jsonl", out=str(tmp_path / "out"), observer=told).videos == 1
    assert "00001.parquet has no 00001.json, and is left out." in told.notes[0]
    (tmp_path / "corpus" / FOLDER / "00000.json").unlink()
    with pytest.raises(InputError, match="holds no whole shard"):
        export([corpus], "jsonl", out=str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


def test_what_is_neither_run_nor_data_set_is_refused(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for source, sentence in (("none", "is not a folder"), ("empty", "holds no keyframes")):
        with pytest.raises(InputError, match=sentence):
            export([str(tmp_path / source)], "jsonl", out=str(tmp_path / "out"))
    with pytest.raises(InputError, match="memory://nothing holds no shards"):
        export(["memory://nothing"], "jsonl", out=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_format_that_there_is_not_is_refused(run: Run) -> None:
    with pytest.raises(UsageError, match=r'There is no format "jsn"\. Did you mean "jsonl"\?'):
        export([str(run.folder)], "jsn")


# ---------------------------------------------------------------- targets


def test_the_folder_is_named_after_the_source(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert export(["holiday.vip/"], "vtt").out == "holiday-vtt"
    assert export(["holiday.vip", data_set(tmp_path / "corpus", "one")], "vtt").out == "export-vtt"
    write_shard("memory://box/films", 0, [sample()], "parquet")
    assert export(["memory://box/films/"], "vtt").out == "films-vtt"
    assert names(tmp_path / "holiday-vtt") == ["export.json", "v.vtt"]


def test_a_folder_with_other_things_is_not_written_to(run: Run, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(UsageError, match=r"out is not empty\. Choose another folder with -o, or add --overwrite\."):
        export([str(run.folder)], "vtt", out=str(tmp_path / "out"))
    assert names(tmp_path / "out") == ["mine.txt"]
    export([str(run.folder)], "vtt", out=str(tmp_path / "out"), overwrite=True)
    assert names(tmp_path / "out") == ["export.json", "mine.txt", "v.vtt"]


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_data_set_of_a_batch_is_never_written_to(overwrite: bool, run: Run, tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", "one", "two")
    before = names(tmp_path / "corpus")
    for source, sentence in ((str(run.folder), "holds a data set of `vip batch`"), (f"{corpus}/", "is what is to be exported")):
        with pytest.raises(UsageError, match=sentence):
            export([source], "parquet", out=corpus, overwrite=overwrite)
    with pytest.raises(UsageError, match="is what is to be exported"):
        export([str(run.folder)], "vtt", out=str(run.folder), overwrite=overwrite)
    assert names(tmp_path / "corpus") == before


@pytest.mark.parametrize("name", ["{}/", "{}/../corpus", "link", "file://{}", "corpus"])
def test_a_data_set_is_not_exported_into_itself_by_another_name(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = data_set(tmp_path / "corpus", "one")
    (tmp_path / "link").symlink_to(corpus)
    monkeypatch.chdir(tmp_path)
    before = names(tmp_path / "corpus")
    with pytest.raises(UsageError, match="is what is to be exported"):
        export([corpus], "parquet", out=name.format(corpus), overwrite=True)
    assert names(tmp_path / "corpus") == before


def test_a_data_set_elsewhere_is_not_exported_into_itself() -> None:
    write_shard("memory://itself/films", 0, [sample()], "parquet")
    with pytest.raises(UsageError, match="is what is to be exported"):
        export(["memory://itself/films"], "parquet", out="memory://itself/films/", overwrite=True)


@pytest.mark.parametrize("target", ["parquet", "webdataset", "hf"])
def test_nothing_of_an_earlier_export_gets_into_the_new_one(target: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_shards, "SHARD_BYTES", 1)
    out = tmp_path / "out"
    export([data_set(tmp_path / "large", "a", "b", "c")], target, out=str(out))
    export([data_set(tmp_path / "small", "d")], target, out=str(out), overwrite=True)
    left = [path for path in out.rglob("*") if path.suffix in {".parquet", ".tar"}]
    assert [path.name.partition(".")[0][-5:] for path in left] == ["00000"]
    if target != "hf":
        assert [one.video.key for one in read_samples(str(out))] == ["d"]


def test_a_killed_export_begins_again_without_a_word(tmp_path: Path) -> None:
    corpus, out = data_set(tmp_path / "corpus", "one", "two"), tmp_path / "out"
    path = tmp_path / "corpus" / FOLDER / "00001.parquet"
    whole = path.read_bytes()
    path.write_bytes(b"x" * len(whole))
    with pytest.raises(StoreError, match=r"00001\.parquet: damaged"):
        export([corpus], "jsonl", out=str(out))
    begun = json.loads((out / RECORD).read_text())
    assert [begun[name] for name in ("videos", "keyframes", "described", "files", "is_finished")] == [0, 0, 0, 0, False]
    path.write_bytes(whole)
    assert export([corpus], "jsonl", out=str(out)).videos == 2
    with pytest.raises(UsageError, match="is not empty"):
        export([corpus], "jsonl", out=str(out))
    with pytest.raises(UsageError, match="is not empty"):
        export([corpus], "vtt", out=str(out))


def test_large_data_sets_are_cut_into_shards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_shards, "SHARD_BYTES", 500_000)
    write_shard(str(tmp_path / "corpus"), 0, [sample(f"v{number}", count=2, size=100_000) for number in range(5)], "parquet")
    export([str(tmp_path / "corpus")], "webdataset", out=str(tmp_path / "out"))
    shards = [(info.number, [video.key for video in info.videos]) for info in read_shards(str(tmp_path / "out"))]
    assert shards == [(0, ["v0", "v1"]), (1, ["v2", "v3"]), (2, ["v4"])]


def test_a_small_data_set_is_one_shard(tmp_path: Path) -> None:
    write_shard(str(tmp_path / "corpus"), 0, [sample(f"v{number}", count=2, size=100_000) for number in range(3)], "parquet")
    export([str(tmp_path / "corpus")], "webdataset", out=str(tmp_path / "out"))
    assert [(info.number, info.rows) for info in read_shards(str(tmp_path / "out"))] == [(0, 6)]


def test_a_video_that_is_larger_than_a_shard_has_one_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_shards, "SHARD_BYTES", 1)
    shards = [(number, [one.video.key for one in some]) for number, some in in_shards.in_shards(iter([sample("a"), sample("b")]))]
    assert shards == [(0, ["a"]), (1, ["b"])]


def test_progress_goes_on_with_each_shard_and_each_run(run: Run, tmp_path: Path) -> None:
    sources = sources_of([str(run.folder), data_set(tmp_path / "corpus", "one", "two")])
    steps: list[None] = []
    assert len(list(read_sources(sources, Told().note, lambda: steps.append(None)))) == 3
    assert len(steps) == count_pieces(sources) == 3


def test_a_run_that_is_not_described_has_no_subtitles_and_leaves_no_folder(tmp_path: Path) -> None:
    run_folder(tmp_path / "v.vip", 2)
    with pytest.raises(InputError, match=r"no keyframe of a video is described\. Run `vip caption` first\."):
        export([str(tmp_path / "v.vip")], "vtt", out=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_a_damaged_run_is_named(run: Run, tmp_path: Path) -> None:
    (run.folder / store.EMBEDDINGS).write_bytes(b"torn")
    with pytest.raises(StoreError, match=r"embeddings\.npz: damaged"):
        export([str(run.folder)], "jsonl", out=str(tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_an_export_that_fails_leaves_nothing_open(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What stays open is closed by the thread that collects garbage, and SQLite refuses that: pytest makes it an error."""
    corpus = data_set(tmp_path / "corpus", "one", "two")
    monkeypatch.setattr("vip.export.jsonl.rows_of", lambda sample: 1 / 0)
    with pytest.raises(ZeroDivisionError) as failed:
        export([str(run.folder), corpus], "jsonl", out=str(tmp_path / "out"))
    held: list[object] = [failed]
    held.append(held)  # a circle, as tracebacks make them
    del failed, held
    collector = Thread(target=gc.collect)
    collector.start()
    collector.join()
