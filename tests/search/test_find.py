"""`find_moments` on runs and data sets: what is found, in which order, and what keeps the index in step."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import vip
from tests.captioning.keyframes import manifest, noise, run_folder
from tests.clips import scene
from tests.search.asked import run_with_words
from tests.search.scenes import Notes, Scenes, give_scenes, picture
from tests.search.test_ask_corpus import data_set
from vip import store
from vip.dataset.shards import Format
from vip.errors import InputError, StoreError, UsageError
from vip.records import Description, Embeddings, Famous, KeyframeText, TextLine
from vip.review.log import NAME as LOG
from vip.review.log import NewAction, ReviewLog
from vip.search.find import SearchQuery, default_folder, find_moments
from vip.search.hits import SearchFilter
from vip.search.moments import Moments
from vip.search.pictures import letterboxed, pictures_of


@pytest.fixture(autouse=True)
def _own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def describe(folder: Path, *captions: str, **fields: Any) -> Path:
    """Give the keyframes of a run these captions."""
    famous = Famous(**{**{"focus": "none", "action": "none", "mood": "calm", "objects": (), "setting": "a room"}, **fields})
    rows = [
        Description(keyframe_id=frame.id, time_s=frame.time_s, engine="test", grounding=(), dense_caption=text, famous=famous, calls=())
        for frame, text in zip(store.load_run(folder).keyframes, captions, strict=False)
    ]
    store.write_rows(folder / store.DESCRIPTIONS, rows)
    return folder


def found_in(moments: Moments) -> list[tuple[str, float | None]]:
    return [(one.keyframe_id, one.time_s) for one in moments.moments]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Two runs of six keyframes, 1.5 s apart."""
    run_with_words(tmp_path / "runs" / "cook.vip", 6, [(2.6, 3.4, "Now pour the milk."), (7.0, 7.9, "Lunch is ready.")])
    run_with_words(tmp_path / "runs" / "plant.vip", 6, [(4.4, 4.8, "The pump has failed."), (5.9, 6.2, "Milk is pumped.")])
    for name in ("cook", "plant"):
        store.write_json(tmp_path / "runs" / f"{name}.vip" / store.MANIFEST, manifest().model_copy(update={"video_id": name}))
    return tmp_path / "runs"


# ---------------------------------------------------------------- words


def test_words_find_their_time_and_say_why(runs: Path) -> None:
    found = find_moments("pours milk", [runs])
    best = found.moments[0]
    assert (best.keyframe_id, best.time_s, best.start_s, best.end_s) == ("cook:0002", 3.0, 2.25, 3.75)
    assert best.words is not None
    assert best.words.fields == ("words",)
    assert best.words.pieces == [("Now ", False), ("pour", True), (" the ", False), ("milk", True), (".", False)]
    assert best.words.plain == "Now pour the milk."
    assert (found.keyframes, found.embedder) == (12, None)
    assert found_in(found)[1] == ("plant:0004", 6.0), "it has one of the words"


def test_a_phrase_comes_before_all_words_and_those_before_some(tmp_path: Path) -> None:
    run = describe(run_folder(tmp_path / "a.vip", 4), "a dog and a red ball", "red", "a ball", "ball red red ball red")
    assert [name for name, _ in found_in(find_moments("red ball", [run]))] == ["a:0003", "a:0000", "a:0001"]
    assert [name for name, _ in found_in(find_moments('"red ball"', [run]))] == ["a:0003", "a:0000"]


@pytest.mark.parametrize("query", ["the milk", "is the milk there?", "milk", "the milk is ready"])
def test_words_of_no_meaning_are_not_looked_for(query: str, runs: Path) -> None:
    assert "cook:0002" in dict(found_in(find_moments(query, [runs])))


def test_neighbours_that_fit_as_well_are_one_moment(tmp_path: Path) -> None:
    run = describe(run_folder(tmp_path / "a.vip", 6), "a cat", "a dog", "a dog", "a dog", "a cat", "a dog")
    first, second = find_moments("dog", [run]).moments
    assert (first.keyframes, first.start_s, first.end_s) == (3, 0.75, 5.25)
    assert (second.keyframes, second.start_s) == (1, 6.75)


def test_words_that_are_everywhere_do_not_join_a_video_to_one_moment(tmp_path: Path) -> None:
    run = describe(
        run_folder(tmp_path / "a.vip", 6), *(f"the picture shows {what}" for what in ("sea", "sky", "a boat", "sea", "sky", "sea"))
    )
    (found,) = find_moments("the picture shows a boat", [run]).moments[:1]
    assert (found.keyframe_id, found.keyframes) == ("a:0002", 1)
    assert not find_moments("the of a zebra", [run]).moments, "words of no meaning find nothing beside one that is not there"


def test_a_field_is_searched_alone(tmp_path: Path) -> None:
    run = describe(run_folder(tmp_path / "a.vip", 2), "an ocean", "a lake", setting="a harbour")
    assert not find_moments(SearchQuery(text="ocean", fields=("setting",)), [run]).moments
    assert find_moments(SearchQuery(text="harbour", fields=("setting",)), [run]).moments[0].keyframes == 2
    with pytest.raises(UsageError, match="The fields are caption, focus"):
        SearchQuery(text="ocean", fields=("colour",))


def test_text_in_the_picture_is_found(tmp_path: Path) -> None:
    run = run_folder(tmp_path / "a.vip", 3)
    line = TextLine(text="Quarterly revenue", score=0.97, box_xyxy=(0.1, 0.1, 0.6, 0.2))
    store.write_rows(run / store.TEXT, [KeyframeText(keyframe_id="a:0001", picture_sha256="0" * 64, reader="test", lines=(line,))])
    (found,) = find_moments("revenue", [run]).moments
    assert (found.keyframe_id, found.words and found.words.fields) == ("a:0001", ("text",))


def test_what_is_not_determined_is_not_found(tmp_path: Path) -> None:
    run = describe(run_folder(tmp_path / "a.vip", 2), "a dog", "a cat", mood="not determined")
    assert not find_moments("determined", [run]).moments


def test_many_moments_are_found_where_many_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.search.find.LEAST_HITS", 2)
    monkeypatch.setattr("vip.search.find.HITS_A_MOMENT", 1)
    run = describe(run_folder(tmp_path / "a.vip", 8), *["a dog", "a cat"] * 4)
    assert [len(find_moments(SearchQuery(text="dog", moments=count), [run]).moments) for count in (1, 2, 4)] == [1, 2, 4]


def test_words_without_spaces_between_them_are_found(tmp_path: Path) -> None:
    run = describe(run_folder(tmp_path / "a.vip", 2), "一个人倒牛奶", "一只狗")
    assert found_in(find_moments("牛奶", [run])) == [("a:0000", 0.0)]


@pytest.mark.parametrize("query", ["", "?", "   ", "\x00"])
def test_a_query_without_words_is_refused(query: str, runs: Path) -> None:
    with pytest.raises(UsageError, match="no words"):
        find_moments(query, [runs])


@pytest.mark.parametrize("query", ['milk" OR "', "words : milk", "milk*", "milk'; DROP TABLE texts; --", "milk \x02 \x03 \u202e"])
def test_hostile_queries_are_words(query: str, runs: Path) -> None:
    assert find_moments(query, [runs]).moments[0].words is not None
    assert find_moments("lunch", [runs]).moments


# ---------------------------------------------------------------- filters


@pytest.mark.parametrize(
    ("among", "expected"),
    [
        (SearchFilter(), {"cook", "plant"}),
        (SearchFilter(video="pl*"), {"plant"}),
        (SearchFilter(video="PLANT"), {"plant"}),
        (SearchFilter(video="x"), set()),
        (SearchFilter(end_s=4.0), {"cook"}),
        (SearchFilter(start_s=4.0), {"plant"}),
        (SearchFilter(has_people=True), {"cook", "plant"}),
        (SearchFilter(domain="cooking"), set()),
    ],
)
def test_filters(runs: Path, among: SearchFilter, expected: set[str]) -> None:
    found = find_moments(SearchQuery(text="milk", among=among), [runs])
    assert {one.keyframe_id.partition(":")[0] for one in found.moments} == expected


def test_people_are_those_that_a_detector_found(tmp_path: Path) -> None:
    describe(run_folder(tmp_path / "a.vip", 2, detections=()), "a dog", "a dog")
    assert not find_moments(SearchQuery(text="dog", among=SearchFilter(has_people=True)), [tmp_path / "a.vip"]).moments


# ---------------------------------------------------------------- pictures


@pytest.mark.parametrize("number", range(12))
def test_a_picture_finds_its_own_keyframe(scenes: Path, tmp_path: Path, number: int) -> None:
    found = find_moments(SearchQuery(like=picture(tmp_path / "q.png", number)), [scenes])
    assert found.moments[0].keyframe_id == f"{'low' if number < 6 else 'high'}:{number % 6:04d}"
    assert found.moments[0].cosine == pytest.approx(1.0, abs=1e-3)
    assert (found.like, found.query, found.embedder) == ("q.png", None, Scenes.name)


def test_a_text_is_compared_with_pictures_and_fused_with_words(scenes: Path) -> None:
    found = find_moments("scene 4", [scenes])
    assert (found.moments[0].keyframe_id, found.moments[0].words) == ("low:0004", None)
    run_with_words(scenes / "high.vip", 6, [(2.9, 3.1, "This is scene 4, they say.")])
    give_scenes(scenes / "high.vip", range(6, 12))
    first, second = find_moments("scene 4", [scenes]).moments[:2]
    assert {first.keyframe_id, second.keyframe_id} == {"low:0004", "high:0002"}
    assert {first.words is None, second.words is None} == {True, False}


def test_a_picture_is_found_where_the_video_has_bars(tmp_path: Path, scenes: Path) -> None:
    tall = scene(3)[:, : scene(3).shape[1] // 3]
    barred = letterboxed(tall, [16 / 9])[0]
    frame = store.load_run(scenes / "high.vip").keyframes[2]
    store.write_picture(frame.path, barred)
    numbers = [6, 7, None, 9, 10, 11]
    vectors = Scenes(None).embed_images([barred if number is None else scene(number) for number in numbers])
    store.write_embeddings(scenes / "high.vip" / store.EMBEDDINGS, Embeddings(vectors, vectors, Scenes.name))
    rows = [one.record.model_copy(update={"width_px": 1280, "height_px": 720}) for one in store.load_run(scenes / "high.vip").keyframes]
    store.write_rows(scenes / "high.vip" / store.KEYFRAMES, rows)
    store.write_picture(tmp_path / "q.png", tall)
    assert find_moments(SearchQuery(like=tmp_path / "q.png"), [scenes]).moments[0].keyframe_id == "high:0002"


def test_mixed_embedders_are_refused_but_texts_can_be_searched(scenes: Path, tmp_path: Path) -> None:
    give_scenes(scenes / "high.vip", range(6, 12), "clip:other/test")
    query = SearchQuery(like=picture(tmp_path / "q.png", 1))
    with pytest.raises(UsageError, match=r"clip:other/test .432 numbers. and clip:scenes/test .* cannot be compared"):
        find_moments(query, [scenes])
    assert find_moments(query, [scenes / "low.vip"]).moments, "one at a time"
    assert not find_moments(SearchQuery(text="dog", fields=("caption",)), [scenes]).moments


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("clip:local-dir:/home/mallory/model, 12 bytes", "clip:/home/mallory/model"),
        ("clip:ViT-B-32/../../home/mallory/model", "clip:ViT-B-32/../../home/mallory/model"),
        ("clip:ViT-B-32/a b", "clip:ViT-B-32/a b"),
    ],
)
def test_a_model_in_a_folder_of_somebody_is_not_loaded_unasked(label: str, shown: str, scenes: Path, tmp_path: Path) -> None:
    for name, numbers in (("low", range(6)), ("high", range(6, 12))):
        give_scenes(scenes / f"{name}.vip", numbers, label)
    notes = Notes()
    assert not find_moments("scene 4", [scenes], observer=notes).moments
    assert notes.told[-1].startswith("Only words are searched")
    assert shown in notes.told[-1]
    with pytest.raises(UsageError, match="to compare pictures with it"):
        find_moments(SearchQuery(like=picture(tmp_path / "q.png", 1)), [scenes])


def test_a_picture_needs_vectors(runs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="None of the keyframes has a vector"):
        find_moments(SearchQuery(like=picture(tmp_path / "q.png", 1)), [runs])
    (tmp_path / "no.png").write_text("no picture")
    with pytest.raises(InputError, match="not a picture"):
        find_moments(SearchQuery(like=tmp_path / "no.png"), [runs])


# ---------------------------------------------------------------- the index


def test_the_index_is_updated_and_not_made_again(runs: Path) -> None:
    notes = Notes()
    find_moments("milk", [runs], observer=notes)
    find_moments("milk", [runs], observer=notes)
    assert notes.indexed == [2], "nothing is read for the second search"
    run_with_words(runs / "new.vip", 3, [(1.0, 2.0, "Milk again.")])
    assert "new:0001" in dict(found_in(find_moments("milk", [runs], observer=notes)))
    assert notes.indexed == [2, 1]
    shutil.rmtree(runs / "cook.vip")
    assert {name.partition(":")[0] for name, _ in found_in(find_moments("milk", [runs], observer=notes))} == {"new", "plant"}
    assert find_moments("milk", [runs]).keyframes == 9


def test_new_captions_and_corrections_of_people_are_found(tmp_path: Path) -> None:
    run = describe(run_folder(tmp_path / "a.vip", 2), "a dog", "a cat")
    assert not find_moments("wolf", [run]).moments
    describe(run, "a fox", "a cat")
    assert not find_moments("dog", [run]).moments
    assert find_moments("fox", [run]).moments
    with ReviewLog(run / LOG) as log:
        log.append([NewAction(uid="u", reviewer="Ann", item="a:0000", field="dense_caption", before="a fox", after="a wolf")])
    assert find_moments("wolf", [run]).moments
    assert not find_moments("fox", [run]).moments


def test_corrections_of_people_in_a_data_set_are_found(tmp_path: Path) -> None:
    corpus = data_set(tmp_path / "corpus", describe(run_folder(tmp_path / "a.vip", 2), "a dog", "a cat"))
    (before,) = find_moments("dog", [corpus]).moments
    change = NewAction(uid="u", reviewer="Ann", item=before.keyframe_id, field="dense_caption", before="a dog", after="a wolf")
    with ReviewLog(corpus / LOG) as log:
        log.append([change])
    assert [one.keyframe_id for one in find_moments("wolf", [corpus]).moments] == [before.keyframe_id]
    assert not find_moments("dog", [corpus]).moments


def test_vectors_of_runs_that_are_gone_are_not_found(scenes: Path, tmp_path: Path) -> None:
    query = SearchQuery(like=picture(tmp_path / "q.png", 8))
    assert find_moments(query, [scenes]).moments[0].keyframe_id == "high:0002"
    shutil.move(scenes / "high.vip", tmp_path / "elsewhere.vip")
    assert {name.partition(":")[0] for name, _ in found_in(find_moments(query, [scenes]))} <= {"low"}
    give_scenes(run_folder(scenes / "next.vip", 6), range(20, 26))
    query = SearchQuery(like=picture(tmp_path / "q.png", 23))
    assert find_moments(query, [scenes]).moments[0].keyframe_id == "next:0003", "the place of the old vectors is used again"


def test_names_that_are_not_utf8_are_searched_and_shown(tmp_path: Path) -> None:
    folder = run_folder(tmp_path / "a\udcff.vip", 2)
    store.write_json(folder / store.MANIFEST, manifest().model_copy(update={"video_id": "a\udcff"}))
    run = describe(folder, "a dog", "a cat")
    notes = Notes()
    for _ in range(2):
        best = find_moments("dog", [run], observer=notes).moments[0]
        assert (best.video, best.source, best.keyframe_id) == ("a\udcff", str(run), "a\udcff:0000")
        assert Path(best.source, best.picture) == run / "keyframes" / Path(best.picture).name
    assert notes.indexed == [1]
    shutil.rmtree(run)
    describe(run_folder(tmp_path / "b.vip", 1), "a cow")
    assert find_moments("cow", [tmp_path / "b.vip"], folder=default_folder([str(run)])).keyframes == 1


def test_a_damaged_run_is_left_out_with_a_note(runs: Path) -> None:
    (runs / "plant.vip" / store.WORDS).write_text("no json")
    notes = Notes()
    assert {name for name, _ in found_in(find_moments("milk", [runs], observer=notes))} == {"cook:0002"}
    assert any("plant.vip" in text and "left out" in text for text in notes.told)
    with pytest.raises(StoreError):
        find_moments("milk", [runs / "plant.vip"])


def test_a_damaged_index_is_one_sentence(runs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    find_moments("milk", [runs], folder=index)
    (index / "index.sqlite").write_bytes(b"SQLite format 3\0" + bytes(range(256)) * 20)
    for name in ("index.sqlite-wal", "index.sqlite-shm"):
        (index / name).unlink(missing_ok=True)
    with pytest.raises(StoreError, match=r"Delete .*; the next search makes it again"):
        find_moments("milk", [runs], folder=index)


def test_an_index_of_a_newer_vip_is_left_alone(runs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    find_moments("milk", [runs], folder=index)
    with closing(sqlite3.connect(index / "index.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="version 99"):
        find_moments("milk", [runs], folder=index)


def test_an_index_that_another_process_made_in_the_meantime_is_used(runs: Path, tmp_path: Path) -> None:
    index = tmp_path / "index"
    found = find_moments("milk", [runs], folder=index)
    with closing(sqlite3.connect(index / "index.sqlite")) as connection:
        connection.execute("PRAGMA user_version = 0")  # as it was when this process looked
    assert find_moments("milk", [runs], folder=index) == found


def test_no_index_is_written_through_a_link(runs: Path, tmp_path: Path) -> None:
    index, elsewhere = tmp_path / "index", tmp_path / "elsewhere"
    index.mkdir()
    (index / "index.sqlite").symlink_to(elsewhere)
    with pytest.raises(StoreError):
        find_moments("milk", [runs], folder=index)
    assert not elsewhere.exists()


IMPOSSIBLE = (
    "DELETE FROM keyframes",
    "DELETE FROM videos",
    "UPDATE keyframes SET slot = slot + 1000",
    "UPDATE keyframes SET time_s = 'soon'",
    "UPDATE keyframes SET time_s = 1e308",
    "UPDATE keyframes SET picture = x'ff'",
    "UPDATE videos SET aspect = 0",
    "UPDATE embedders SET dim = -1",
    "UPDATE embedders SET slots = 1 << 50",
    "UPDATE embedders SET slots = 400000000",
    "UPDATE embedders SET settled = 'many'",
    "UPDATE embedders SET label = x'00'",
)


@pytest.mark.parametrize("change", IMPOSSIBLE)
def test_an_index_of_a_stranger_with_impossible_values_is_one_sentence(change: str, scenes: Path, tmp_path: Path) -> None:
    index, query = tmp_path / "index", SearchQuery(like=picture(tmp_path / "q.png", 8))
    find_moments(query, [scenes], folder=index)
    with closing(sqlite3.connect(index / "index.sqlite", isolation_level=None)) as connection:
        connection.execute(change)
    with pytest.raises((StoreError, InputError), match=r"index\.sqlite: damaged|hold no keyframes"):
        find_moments(query, [scenes], folder=index)


def test_a_slot_of_a_stranger_makes_no_huge_file(scenes: Path, tmp_path: Path) -> None:
    index, query = tmp_path / "index", SearchQuery(like=picture(tmp_path / "q.png", 8))
    find_moments(query, [scenes], folder=index)
    with closing(sqlite3.connect(index / "index.sqlite", isolation_level=None)) as connection:
        connection.execute("INSERT INTO free_slots VALUES (1, 1 << 33)")
    give_scenes(run_folder(scenes / "next.vip", 6), range(20, 26))
    assert find_moments(query, [scenes], folder=index).keyframes == 18
    assert sum(path.stat().st_size for path in index.rglob("*") if path.is_file()) < 10_000_000


def test_no_vectors_are_read_behind_a_link(scenes: Path, tmp_path: Path) -> None:
    index, query = tmp_path / "index", SearchQuery(like=picture(tmp_path / "q.png", 8))
    find_moments(query, [scenes], folder=index)
    (index / "embedder-1-0").rename(tmp_path / "elsewhere")
    (index / "embedder-1-0").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="vip follows none inside a folder"):
        find_moments(query, [scenes], folder=index)


@pytest.mark.parametrize("kind", ["link", "file"])
def test_no_vectors_are_written_where_their_folder_is_none(kind: str, scenes: Path, tmp_path: Path) -> None:
    index, elsewhere = tmp_path / "index", tmp_path / "elsewhere"
    for folder in (index, elsewhere):
        folder.mkdir()
    if kind == "link":
        (index / "embedder-1-0").symlink_to(elsewhere)
    else:
        (index / "embedder-1-0").write_text("")
    notes = Notes()
    with pytest.raises(InputError, match="hold no keyframes"):
        find_moments("milk", [scenes], folder=index, observer=notes)
    assert any("embedder-1-0 cannot be used" in text for text in notes.told)
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize("kind", ["parquet", "webdataset"])
def test_a_data_set_is_searched_like_its_runs(runs: Path, tmp_path: Path, kind: Format) -> None:
    folder = data_set(tmp_path / "corpus", runs / "cook.vip", runs / "plant.vip", kind=kind)
    found = find_moments("milk", [folder])
    of_runs = find_moments("milk", [runs])
    assert [(one.video, one.time_s, one.start_s) for one in found.moments] == [
        (one.video, one.time_s, one.start_s) for one in of_runs.moments
    ]
    assert all(one.part.isdigit() for one in found.moments)
    pictures = pictures_of(found.moments)
    assert all(one is not None and one.shape == (48, 64, 3) for one in pictures)


def test_sources_without_keyframes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        find_moments("milk", [tmp_path / "missing"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"keyframes|run"):
        find_moments("milk", [tmp_path / "empty"])


def test_pictures_of_moments_never_leave_the_run(runs: Path, tmp_path: Path) -> None:
    found = find_moments("lunch", [runs])
    (moment,) = found.moments
    store.write_picture(tmp_path / "secret.png", noise(1))
    outside = moment.model_copy(update={"picture": "../../secret.png"})
    (Path(moment.source) / moment.picture).unlink()
    (Path(moment.source) / moment.picture).symlink_to(tmp_path / "secret.png")
    assert pictures_of([outside, moment]) == [None, None]


def test_every_source_has_an_index_of_its_own_in_the_cache(runs: Path, tmp_path: Path) -> None:
    find_moments("milk", [runs])
    assert (default_folder([str(runs)]) / "index.sqlite").is_file()
    assert default_folder([str(runs)]).is_relative_to(tmp_path / "cache")
    assert default_folder([str(runs)]) != default_folder([str(runs / "cook.vip")])
    many = [f"{number}.vip" for number in range(40)]
    assert default_folder(many) == default_folder(many[::-1]) == default_folder([str(Path(one).absolute()) for one in many])
    assert vip.find_moments is find_moments
