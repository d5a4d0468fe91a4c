"""Sources of an export: each once and in order, keys that never collide, progress by the piece, and a folder named after the source."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.report.runs import make_run
from vip.dataset.rows import VideoSample
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import write_shard
from vip.errors import InputError, UsageError
from vip.export.sources import ExportSource, count_pieces, default_name, read_sources, sources_of


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def data_set(folder: Path | str, *shards: tuple[str, ...]) -> str:
    """A data set with these keys in each of its shards."""
    for number, keys in enumerate(shards):
        write_shard(str(folder), number, [sample(key, count=1) for key in keys], "parquet")
    return str(folder)


def keys_of(*addresses: str) -> list[str]:
    return [one.video.key for one in read_sources(sources_of(addresses), unheard)]


# ---------------------------------------------------------------- which there are


def test_a_data_set_has_its_address_and_a_run_its_folder(tmp_path: Path) -> None:
    run, corpus = make_run(tmp_path / "a.vip"), data_set(tmp_path / "corpus", ("one",))
    first, second = sources_of([corpus, str(run.folder)])
    assert (first.address, first.run) == (corpus, None)
    assert second.address == str(run.folder)
    assert second.run is not None
    assert second.run.folder == run.folder


@pytest.mark.parametrize("backwards", [False, True])
def test_sources_come_in_the_order_in_which_they_are_given(backwards: bool, tmp_path: Path) -> None:
    given = [str(make_run(tmp_path / "b.vip").folder), data_set(tmp_path / "corpus", ("one",)), str(make_run(tmp_path / "a.vip").folder)]
    given = given[::-1] if backwards else given
    assert [source.address for source in sources_of(given)] == given


def test_a_data_set_elsewhere_is_one_source_with_and_without_its_slash() -> None:
    for name in ("films", "more"):
        data_set(f"memory://sources/{name}", ("one",))
    given = ["memory://sources/films", "memory://sources/more/", "memory://sources/films//", "memory://sources/more"]
    assert [source.address for source in sources_of(given)] == ["memory://sources/films", "memory://sources/more/"]


def test_a_link_to_a_data_set_is_that_data_set(tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", ("one",))
    (tmp_path / "link").symlink_to(corpus)
    assert [source.address for source in sources_of([str(tmp_path / "link"), corpus])] == [str(tmp_path / "link")]


def test_no_secret_is_in_the_message_that_an_address_holds_nothing() -> None:
    with pytest.raises(InputError) as raised:
        sources_of(["memory://ann:secret@nothing/films?token=secret"])
    assert str(raised.value) == "memory://nothing/films holds no shards. Give the folder that `vip batch -o` wrote."


def test_a_run_that_is_not_finished_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "a.vip")
    (run.folder / "keyframes.jsonl").unlink()
    with pytest.raises(InputError, match="holds an unfinished extraction"):
        sources_of([data_set(tmp_path / "corpus", ("one",)), str(run.folder)])


def test_each_run_of_a_folder_has_its_own_address(tmp_path: Path) -> None:
    folders = [make_run(tmp_path / "runs" / f"{name}.vip").folder for name in "ba"]
    assert [source.address for source in sources_of([str(tmp_path / "runs")])] == [str(folders[1]), str(folders[0])]


def test_nothing_given_is_no_source() -> None:
    assert sources_of([]) == []
    assert list(read_sources([], unheard)) == []
    assert count_pieces([]) == 0


# ---------------------------------------------------------------- keys


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (["k", "k", "k", "k"], ["k", "k-2", "k-3", "k-4"]),
        (["k", "k", "k-2"], ["k", "k-2", "k-2-2"]),
        (["k-2", "k", "k", "k"], ["k-2", "k", "k-3", "k-4"]),
        (["k", "K", "l", "k"], ["k", "K", "l", "k-2"]),
        (["a" * 95, "a" * 94, "a" * 95, "a" * 94], ["a" * 95, "a" * 94, f"{'a' * 90}-2", f"{'a' * 90}-3"]),
    ],
)
def test_a_key_that_was_given_before_gets_the_next_free_number(given: list[str], found: list[str], tmp_path: Path) -> None:
    assert keys_of(*(data_set(tmp_path / str(number), (key,)) for number, key in enumerate(given))) == found


def test_keys_are_remembered_from_shard_to_shard_and_from_source_to_source_but_not_to_the_next_export(tmp_path: Path) -> None:
    first, second = data_set(tmp_path / "a", ("one", "two"), ("one",)), data_set(tmp_path / "b", ("two",), ("three",))
    for _ in range(2):
        assert keys_of(first, second) == ["one", "two", "one-2", "two-2", "three"]


def test_a_sample_whose_key_is_free_is_given_as_it_is(tmp_path: Path) -> None:
    one = sample("one", count=2)
    write_shard(str(tmp_path), 0, [one], "parquet")
    assert list(read_sources(sources_of([str(tmp_path)]), unheard)) == [one]


# ---------------------------------------------------------------- revised and counted


def test_each_sample_is_revised_with_its_own_source_and_then_gets_its_key(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    def revise(source: ExportSource, one: VideoSample) -> VideoSample:
        seen.append((Path(source.address).name, one.video.key))
        return dataclasses.replace(one, video=one.video.model_copy(update={"title": f"{one.video.key} of {Path(source.address).name}"}))

    sources = sources_of(
        [data_set(tmp_path / "a", ("one",), ("two",)), str(make_run(tmp_path / "r.vip").folder), data_set(tmp_path / "b", ("one",))]
    )
    found = [(one.video.key, one.video.title) for one in read_sources(sources, unheard, revise=revise)]
    assert seen == [("a", "one"), ("a", "two"), ("r.vip", "v"), ("b", "one")]
    assert found == [("one", "one of a"), ("two", "two of a"), ("v", "v of r.vip"), ("one-2", "one of b")]


def test_progress_goes_on_when_a_piece_was_read_to_its_end(tmp_path: Path) -> None:
    steps: list[str] = []
    sources = sources_of([data_set(tmp_path / "a", ("one", "two"), ("three",)), str(make_run(tmp_path / "r.vip").folder)])
    reading = read_sources(sources, unheard, lambda: steps.append("step"))
    while one := next(reading, None):
        steps.append(one.video.key)
    assert steps == ["one", "two", "step", "three", "step", "v", "step"]
    assert count_pieces(sources) == 3


def test_pieces_are_shards_by_their_sidecars_whole_or_not_and_runs(tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", ("one",), ("two",), ("three",))
    runs = [str(make_run(tmp_path / f"{name}.vip").folder) for name in "ab"]
    (tmp_path / "corpus" / FOLDER / "00001.parquet").unlink()
    sources = sources_of([corpus, *runs])
    assert count_pieces(sources) == 5
    assert count_pieces(sources[1:]) == 2
    told: list[str] = []
    assert [one.video.key for one in read_sources(sources[:1], told.append)] == ["one", "three"]
    assert len(told) == 1
    assert "00001.parquet is missing" in told[0]


# ---------------------------------------------------------------- the folder's name


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (["corpus"], "corpus-hf"),
        (["corpus/"], "corpus-hf"),
        (["far/away/holiday.vip"], "holiday-hf"),
        (["holiday.vip/"], "holiday-hf"),
        (["a.vip.bak"], "a.vip.bak-hf"),
        (["."], "here-hf"),
        ([".."], "{}-hf"),
        (["../here/.."], "{}-hf"),
        (["/"], "export-hf"),
        ([".vip"], "export-hf"),
        (["s3://bucket/corpus/"], "corpus-hf"),
        (["s3://bucket"], "bucket-hf"),
        (["s3://ann:secret@bucket/corpus?token=secret"], "corpus-hf"),
        (["file:///data/films"], "films-hf"),
        (["corpus", "more"], "export-hf"),
        (["corpus", "corpus"], "export-hf"),
    ],
)
def test_the_folder_is_named_after_the_only_source(given: list[str], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert default_name(given, "hf") == name.format(tmp_path.name)


def test_a_folder_that_is_a_link_to_elsewhere_is_not_taken_for_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "films-hf").symlink_to(tmp_path)
    with pytest.raises(UsageError, match="films-hf is a link"):
        default_name(["films"], "hf")
    assert default_name(["films"], "vtt") == "films-vtt"
