"""What a search knows of a video, and when it must read it again."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.captioning.keyframes import run_folder
from tests.corpus.making import sample
from tests.report.runs import make_run
from vip import store
from vip.dataset.rows import VideoSample
from vip.dataset.shards import read_sidecar, write_shard
from vip.records import Description
from vip.review.log import NAME as LOG
from vip.review.log import NewAction, ReviewLog
from vip.review.reviewed import ReviewedTexts
from vip.search.documents import IndexedVideo, stamp_of_run, video_of_run, videos_of_shard


def test_keyframes_share_all_of_the_video_and_those_without_a_time_have_none_of_it(tmp_path: Path) -> None:
    run = store.load_run(run_folder(tmp_path / "a.vip", 3))
    rows = [frame.record.model_copy(update={"time_s": time_s}) for frame, time_s in zip(run.keyframes, (5.0, None, 2.0), strict=True)]
    store.write_rows(run.folder / store.KEYFRAMES, rows)
    video = video_of_run(store.load_run(run.folder), ReviewedTexts())
    assert [(frame.start_s, frame.end_s) for frame in video.keyframes] == [(3.5, 9.0), (None, None), (0.0, 3.5)]


def test_what_an_engine_did_not_determine_is_no_text(tmp_path: Path) -> None:
    video = video_of_run(make_run(tmp_path / "a.vip"), ReviewedTexts())
    texts = video.keyframes[1].texts
    assert (texts.focus, texts.mood, texts.objects, texts.setting) == ("a dancer", "", "rope, ball", "a hall")


def of_shard(folder: Path, one: VideoSample) -> IndexedVideo:
    write_shard(str(folder), 0, [one], "webdataset")
    (video,) = videos_of_shard(str(folder), read_sidecar(str(folder), 0), ReviewedTexts())
    return video


def test_labels_their_groups_and_the_topic_are_the_domains_each_once(tmp_path: Path) -> None:
    about = {"labels": ("Dog", "Surfing"), "verticals": ("Pets", "Dog"), "topic": "Dogs at sea", "youtube_id": "abcdefghijk"}
    video = of_shard(tmp_path, sample("abc", 2, title="A dog surfs", **about))
    assert video.domains == ("Dog", "Surfing", "Pets", "Dogs at sea")
    assert (video.name, video.youtube_id, video.embedder) == ("A dog surfs", "abcdefghijk", "classic")


def test_without_a_title_a_video_has_its_key_and_without_vectors_no_embedder(tmp_path: Path) -> None:
    one = sample("abc", 2)
    video = of_shard(tmp_path, VideoSample(one.video, tuple(replace(frame, vector=None) for frame in one.frames)))
    assert (video.name, video.domains, video.embedder) == ("abc", (), None)


@pytest.mark.parametrize("name", [store.JOURNAL, store.WORDS, store.TEXT, store.DESCRIPTIONS])
def test_a_run_is_read_again_when_a_file_of_it_changes(name: str, tmp_path: Path) -> None:
    run = store.Run(run_folder(tmp_path / "a.vip", 2))
    before = stamp_of_run(run)
    assert stamp_of_run(run) == before
    store.write_rows(run.folder / name, list[Description]())
    assert stamp_of_run(run) == before, "an empty file says nothing"
    (run.folder / name).write_text("{}\n")
    assert stamp_of_run(run) != before


@pytest.mark.parametrize("folder", ["runs/a.vip", "runs"])
def test_a_run_is_read_again_when_people_correct_it_also_while_they_do(folder: str, tmp_path: Path) -> None:
    run = store.Run(run_folder(tmp_path / "runs" / "a.vip", 2))
    with ReviewLog(tmp_path / folder / LOG) as log:
        stamps = [stamp_of_run(run)]
        for number in range(2):
            log.append([NewAction(uid=f"u{number}", reviewer="Ann", item="x", field="comment", before=None, after="x")])
            stamps.append(stamp_of_run(run))
    assert len(set(stamps)) == 3


def test_the_shape_of_a_video_is_that_of_its_pictures(tmp_path: Path) -> None:
    video = video_of_run(store.load_run(run_folder(tmp_path / "a.vip", 2)), ReviewedTexts())
    record = video.keyframes[0].record
    wide, tall = ({"width_px": width, "height_px": height} for width, height in ((1920, 1080), (9, 16)))
    frames = [replace(video.keyframes[0], record=record.model_copy(update=size)) for size in (wide, tall)]
    assert replace(video, keyframes=tuple(frames)).aspect == 1.78
    assert replace(video, keyframes=tuple(frames[::-1])).aspect == 0.56
    assert replace(video, keyframes=()).aspect is None
