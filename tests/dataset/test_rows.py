"""From run folders to clips: ids, names, vectors, and nothing that should not leave the machine."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path, PurePath

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.captioning.keyframes import run_folder
from tests.corpus.making import clip_from_run, sample, with_text
from tests.report.runs import make_pictures, make_run
from vip import store
from vip.dataset.items import DownloadedVideo, ListItem
from vip.dataset.rows import VideoRow, VideoSample, described, sample_of, with_key
from vip.dataset.sanitize import is_plain_name, json_value, safe_key, without_secrets
from vip.errors import InputError, StoreError
from vip.records import Failure, SpokenWords
from vip.store import load_run

ADDRESS = "https://user:pass/word@host.test/film.mp4?token=secret#part"


def item(**changed: object) -> ListItem:
    return ListItem(**{"key": "a.b-1", "kind": "address", "source": ADDRESS, "where": "ids.txt, line 12", **changed})  # type: ignore[arg-type]


# ---------------------------------------------------------------- ids and names


def test_ids_of_a_clip_begin_with_the_key_of_its_item(tmp_path: Path) -> None:
    found = sample_of(make_run(tmp_path / "x.vip", failed=1), item=item())
    assert [frame.keyframe.id for frame in found.frames] == ["a.b-1:0001", "a.b-1:0002", "a.b-1:0003"]
    assert {frame.keyframe.video_id for frame in found.frames} == {found.video.key} == {"a.b-1"}
    assert [frame.description and frame.description.keyframe_id for frame in found.frames] == ["a.b-1:0001", "a.b-1:0002", None]
    assert [frame.failure and (frame.failure.item, frame.failure.message) for frame in found.frames] == [
        *(None, None),
        ("a.b-1:0003", "refused k7"),
    ]


def test_without_an_item_the_key_is_the_video_of_the_run(tmp_path: Path) -> None:
    found = sample_of(make_run(tmp_path / "x.vip"))
    assert (found.video.key, found.video.kind, found.video.source) == ("v", "file", "/films/holiday.mp4")


def test_pictures_that_come_from_no_video_are_a_clip_too(tmp_path: Path) -> None:
    found = sample_of(make_pictures(tmp_path / "summer 2025"))
    assert found.video.key == "summer_2025"
    assert found.video.manifest() is None
    assert (found.video.kind, found.video.source) == ("file", str(tmp_path / "summer 2025"))
    assert (found.video.file, found.video.counts, found.video.duration_s, found.video.youtube_id) == (None,) * 4
    assert [frame.vector for frame in found.frames] == [None] * 3
    assert [frame.name for frame in found.frames] == ["holiday 0.png", "holiday 1.png", "holiday 2.png"]
    assert found.frames[0].keyframe.image_path == "keyframes/holiday 0.png"


def test_the_picture_is_the_file_as_it_lies_on_the_disk(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    assert [frame.picture for frame in sample_of(run).frames] == [picture.path.read_bytes() for picture in run.keyframes]


def test_a_name_that_leads_out_of_the_folder_is_not_taken_over(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    rows = [one.record for one in run.keyframes]
    (run.folder / ".hidden.JPG").write_bytes(run.keyframes[0].path.read_bytes())
    store.write_rows(run.folder / store.KEYFRAMES, [rows[0].model_copy(update={"image_path": ".hidden.JPG"}), *rows[1:]])
    assert sample_of(load_run(run.folder)).frames[0].name == "0001.jpg"


def test_what_describing_took_and_how_it_was_done_comes_with_the_descriptions(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    before = sample_of(run)
    assert run.manifest
    now = {"seconds": {"caption": 3.5}, "captioning": {"recipe": "paper"}}
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update=now))
    after = described(before, load_run(run.folder)).video
    assert (after.seconds, after.captioning) == ({"caption": 3.5}, {"recipe": "paper"})


def test_a_vector_with_numbers_that_are_none_is_the_same_once_it_is_read_again() -> None:
    (frame,) = sample(count=1).frames
    one, other = (dataclasses.replace(frame, vector=np.array([float("nan"), 1.0], np.float32)) for _ in range(2))
    assert one == other


@given(st.text(max_size=30))
def test_every_text_makes_a_key(text: str) -> None:
    assert VideoRow(key=safe_key(text), kind="file", source="").key == safe_key(text)
    assert "." not in safe_key(text)


@pytest.mark.parametrize("key", ["", ".", "..", "a/b", "a\n", "ä", "x" * 101])
def test_a_key_that_is_no_name_of_a_file_is_refused(key: str) -> None:
    with pytest.raises(ValueError, match="key"):
        VideoRow(key=key, kind="file", source="")


@pytest.mark.parametrize("name", ["../x.jpg", ".x.jpg", "a/b.jpg", "a\\b.jpg", "x.exe", "x", "a\0.jpg", "\ud800.jpg", f"{'ä' * 100}.jpg"])
def test_only_plain_names_of_pictures_are_plain(name: str) -> None:
    assert not is_plain_name(name)
    assert is_plain_name("größe [1] 0001_00h00m01.000s.jpg".replace(".000", "_000"))


# ---------------------------------------------------------------- what is kept


def test_vectors_are_those_of_the_candidates_that_were_kept(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    assert [row.decision.rule for row in run.candidates].index("unreadable") < 7  # the last keyframe stands behind one without a vector
    for frame in sample_of(run).frames:
        angle = (frame.keyframe.candidate or 0) / 10
        assert frame.vector is not None
        assert frame.vector.dtype == np.float32
        assert frame.vector == pytest.approx([np.cos(angle), np.sin(angle)])


def test_a_run_without_vectors_has_none(tmp_path: Path) -> None:
    assert [frame.vector for frame in sample_of(load_run(run_folder(tmp_path / "v.vip", 2))).frames] == [None, None]


def test_what_the_list_and_the_host_say_is_in_the_row_of_the_video(tmp_path: Path) -> None:
    words = tmp_path / "en.vtt"
    words.write_bytes("WEBVTT\r\n\r\n00:00.000 --> 00:01.000\r\ncafé \xff".encode("latin-1"))
    fetched = DownloadedVideo(
        tmp_path, youtube_id="dQw4w9WgXcQ", title="T", duration_s=99.0, info={"tags": ("a",)}, subtitles={"en": words}
    )
    video = sample_of(make_run(tmp_path / "x.vip"), item=item(labels=("Dog",), verticals=("Pets",), topic="dogs"), fetched=fetched).video
    assert (video.labels, video.verticals, video.topic, video.where) == (("Dog",), ("Pets",), "dogs", "ids.txt, line 12")
    assert (video.youtube_id, video.title, video.info) == ("dQw4w9WgXcQ", "T", {"tags": ["a"]})
    assert video.subtitles == {"en": "WEBVTT\n\n00:00.000 --> 00:01.000\ncaf\ufffd \ufffd"}
    assert video.duration_s == 99.0
    assert (video.width_px, video.height_px, video.codec, video.backends) == (64, 48, "h264", {"embedder": "classic"})


def test_the_length_in_the_file_counts_more_than_what_is_said_of_it(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    assert run.manifest
    timed = run.manifest.video.model_copy(update={"duration_s_from_header": 12.5})
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"video": timed}))
    assert (
        sample_of(load_run(run.folder), item=item(duration_s=7.0), fetched=DownloadedVideo(tmp_path, duration_s=9.0)).video.duration_s
        == 12.5
    )


def test_no_login_and_no_query_of_an_address_gets_into_a_clip(tmp_path: Path) -> None:
    info = {"webpage_url": ADDRESS, "n": float("nan"), "deep": [{"at": "see ftp://me:pass@host.test/"}]}
    found = sample_of(make_run(tmp_path / "x.vip"), item=item(), fetched=DownloadedVideo(tmp_path, info=info))
    text = found.video.model_dump_json()
    assert not [word for word in ("pass", "secret", "user", "me:") if word in text]
    assert found.video.source == "https://host.test/film.mp4"
    assert found.video.file
    assert found.video.file.path == "https://host.test/film.mp4"
    assert found.video.info["n"] is None


def test_words_of_the_run_stand_where_the_host_has_no_subtitles(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    store.write_rows(run.folder / store.WORDS, [SpokenWords(start_s=0, end_s=1, text="of the run", origin="x")])
    (tmp_path / "en.vtt").write_text("of the host")
    of_host = DownloadedVideo(tmp_path, subtitles={"en": tmp_path / "en.vtt"})
    assert sample_of(load_run(run.folder), fetched=of_host).video.subtitles == {"en": "of the host"}
    assert ["of the run" in text for text in sample_of(load_run(run.folder)).video.subtitles.values()] == [True]


def test_the_query_that_names_a_video_of_youtube_stays(tmp_path: Path) -> None:
    info = {"webpage_url": "https://www.youtube.com/watch?v=dQw4w9WgXcQ"}
    youtube = item(key="dQw4w9WgXcQ", kind="youtube", source="dQw4w9WgXcQ")
    video = sample_of(make_run(tmp_path / "x.vip"), item=youtube, fetched=DownloadedVideo(tmp_path, info=info)).video
    assert video.info == info
    assert video.youtube_id == "dQw4w9WgXcQ"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("s3://key:pa/ss@bucket/out", "s3://bucket/out"),
        ("https://host:8080/a@b?x=1 not found", "https://host:8080/a@b not found"),
        ("s3://bucket/a@b", "s3://bucket/a@b"),
        ("no address", "no address"),
    ],
)
def test_secrets_are_cut_out_of_addresses_and_nothing_else(text: str, shown: str) -> None:
    assert without_secrets(text) == shown


@pytest.mark.slow
@given(st.recursive(st.none() | st.floats() | st.text() | st.binary(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_what_a_host_says_can_be_written_whatever_it_is(value: object) -> None:
    text = json.dumps(json_value(value), allow_nan=False, ensure_ascii=False).encode()
    assert json.loads(text) == json_value(value)


def test_names_that_are_no_text_do_not_stop_a_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    assert run.manifest
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"notes": ("lost b\udcff.mp4",)}))
    found = sample_of(load_run(run.folder), item=item(kind="file", source="/films/b\udcff.mp4"))
    assert found.video.notes == ("lost b\\udcff.mp4",)
    found.video.model_dump_json()


# ---------------------------------------------------------------- what is refused


def test_a_run_without_keyframes_is_no_clip(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    store.write_rows(run.folder / store.KEYFRAMES, [])
    with pytest.raises(InputError, match="no keyframes"):
        sample_of(load_run(run.folder))


def test_a_run_whose_picture_is_gone_is_damaged(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    run.keyframes[1].path.unlink()
    with pytest.raises(StoreError, match=r"0003\.jpg cannot be read: No such file"):
        sample_of(load_run(run.folder))


def test_a_run_with_too_few_vectors_is_damaged(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    store.write_rows(run.folder / store.CANDIDATES, run.candidates[:-1])
    with pytest.raises(StoreError, match="10 vectors of 9 candidates"):
        sample_of(load_run(run.folder))


def test_a_clip_holds_what_belongs_together_or_is_refused() -> None:
    good = sample()
    first, other = good.frames[0], sample("other").frames[0]
    for frames in (
        (),
        (first, first),
        (other,),
        (dataclasses.replace(first, vector=None), *good.frames[1:]),
        (dataclasses.replace(first, description=good.frames[1].description),),
        (dataclasses.replace(first, keyframe=first.keyframe.model_copy(update={"image_path": "keyframes/../x.jpg"})),),
        (dataclasses.replace(first, keyframe=first.keyframe.model_copy(update={"image_path": "/etc/x.jpg"})),),
        (dataclasses.replace(first, failure=Failure(item=first.keyframe.id, kind="x", message="x", exit_code=1)),),
        (dataclasses.replace(first, description=None, failure=Failure(item="abc:0002", kind="x", message="x", exit_code=1)),),
        (dataclasses.replace(first, vector=np.zeros((2, 2), np.float32)),),
        (first, dataclasses.replace(good.frames[1], text=with_text(good).frames[0].text), good.frames[2]),
        (first, dataclasses.replace(good.frames[1], vector=np.zeros(3, np.float32))),
        (
            first,
            dataclasses.replace(good.frames[1], keyframe=good.frames[1].keyframe.model_copy(update={"image_path": "keyframes/0001.jpg"})),
        ),
    ):
        with pytest.raises(ValueError, match="abc"):
            VideoSample(good.video, frames)


def test_a_clip_under_another_key_is_the_same_but_for_ids(tmp_path: Path) -> None:
    found = with_text(clip_from_run(tmp_path, "one", failed=1))
    assert with_key(with_key(found, "two"), "one") == found != with_key(found, "two")
    assert "one:" not in repr([(frame.keyframe, frame.description, frame.failure, frame.text) for frame in with_key(found, "two").frames])


def test_frames_are_the_same_only_where_all_of_them_is(tmp_path: Path) -> None:
    first = sample().frames[0]
    assert first == sample().frames[0]
    for changed in (
        {"vector": np.array([1.0, 2.0], np.float32)},
        {"vector": None},
        {"picture": b"other"},
        {"description": None},
        {"keyframe": first.keyframe.model_copy(update={"time_s": 3.0})},
    ):
        assert dataclasses.replace(first, **changed) != first


def test_a_row_of_a_video_gives_back_the_manifest_of_its_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    assert run.manifest
    made = {"settings": {"count": 12}, "versions": {"vip": "1.0"}, "notes": ("a note",), "seconds": {"select": 1.0}}
    made |= {"backends": {"embedder": "classic"}, "captioning": {"recipe": "paper"}, "device": "cuda:0"}
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update=made))
    before = load_run(run.folder).manifest
    assert before
    video = sample_of(load_run(run.folder)).video
    after = video.manifest()
    assert after
    assert after.counts == before.counts is not None
    assert {name: getattr(after, name) for name in made} == made
    assert (after.video_id, after.created_utc, after.command) == (video.key, before.created_utc, "extract")
    unknown = video.model_copy(update={"device": None, "created_utc": None}).manifest()
    assert unknown
    assert (unknown.device, unknown.created_utc) == ("", "")


def test_a_picture_and_a_vector_are_not_printed() -> None:
    found = sample()
    assert repr(found) == "VideoSample('abc', frames=3)"
    assert repr(found.frames[0]) == f"KeyframeRow('abc:0001', picture={len(found.frames[0].picture)} bytes)"
    assert found.frames[0] != "abc:0001"


def test_a_run_of_an_address_without_an_item_has_no_query(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    assert run.manifest
    there = run.manifest.video.model_copy(update={"path": ADDRESS})
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"video": there}))
    video = sample_of(load_run(run.folder)).video
    assert (video.kind, video.source) == ("address", "https://host.test/film.mp4")
    assert "secret" not in video.model_dump_json()


@pytest.mark.parametrize(("header", "fetched", "end", "expected"), [(None, 9.0, 8.0, 9.0), (None, None, 8.0, 8.0), (None, None, 0.0, 7.0)])
def test_the_length_is_that_of_the_nearest_witness(
    tmp_path: Path, header: float | None, fetched: float | None, end: float, expected: float
) -> None:
    run = make_run(tmp_path / "x.vip")
    assert run.manifest
    timed = run.manifest.video.model_copy(update={"duration_s_from_header": header, "end_time_s": end})
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"video": timed}))
    found = sample_of(load_run(run.folder), item=item(duration_s=7.0), fetched=DownloadedVideo(tmp_path, duration_s=fetched))
    assert found.video.duration_s == expected


def test_why_a_keyframe_was_not_described_counts_no_more_when_it_is(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    first = run.keyframes[0].id
    store.write_rows(run.folder / store.FAILURES, [Failure(item=first, kind="ReplyError", message="old", exit_code=6)])
    frame = sample_of(load_run(run.folder)).frames[0]
    assert frame.description
    assert frame.failure is None


def test_two_pictures_of_one_name_get_two(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    rows = [one.record for one in run.keyframes]
    store.write_rows(run.folder / store.KEYFRAMES, [rows[0], rows[1].model_copy(update={"image_path": rows[0].image_path}), rows[2]])
    names = [frame.name for frame in sample_of(load_run(run.folder)).frames]
    assert names[1] == "0002.jpg"
    assert len(set(names)) == 3


def test_a_name_that_is_made_for_a_picture_is_not_that_of_another(tmp_path: Path) -> None:
    run = make_run(tmp_path / "x.vip")
    rows = [one.record for one in run.keyframes]
    paths = ["keyframes/a/0002.jpg", "keyframes/b/0002.jpg", "keyframes/a/0003.jpg"]
    for path in paths:
        (run.folder / path).parent.mkdir(exist_ok=True)
        (run.folder / path).write_bytes(path.encode())
    store.write_rows(
        run.folder / store.KEYFRAMES, [row.model_copy(update={"image_path": path}) for row, path in zip(rows, paths, strict=True)]
    )
    frames = sample_of(load_run(run.folder)).frames
    assert [PurePath(frame.keyframe.image_path).name for frame in frames] == ["0002.jpg", "0003.jpg", "0004.jpg"]
    assert [frame.picture for frame in frames] == [path.encode() for path in paths]
