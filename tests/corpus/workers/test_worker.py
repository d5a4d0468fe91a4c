"""The work of one process of a pool on a video, and its answer for a video that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.clips import clip
from tests.corpus.making import sample
from tests.corpus.workers.test_disk_budget import held
from tests.words.readers import FakeReader, line
from vip import cores, registry
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.workers import worker
from vip.corpus.workers.disk_budget import DiskBudget, DiskHolder
from vip.corpus.workers.worker import (
    ExtractTask,
    FetchTask,
    PartInfo,
    TaskFailed,
    VideoFetched,
    WorkerConfig,
    WorkItem,
    _require_length,
    _result,
    extract_video,
    undescribed_keyframes,
)
from vip.dataset.items import DownloadedVideo, ListItem
from vip.dataset.parts import read_part, unpack
from vip.dataset.rows import VideoSample
from vip.dataset.schema import rows_of
from vip.errors import BackendError, GivenUpError, InputError, ItemError, ReplyError, SomeFailedError, StoreError
from vip.protocols import SilentObserver
from vip.records import Failure

JOB = WorkItem(1, ListItem("v1", "address", "http://example.org/v1.mp4", "list.txt, line 1", topic="a race"))


def config_of(home: Path, captioning: CaptionSettings | None = None, **batch: Any) -> WorkerConfig:
    (home / "parts").mkdir(exist_ok=True)
    return WorkerConfig(home, ExtractSettings(timeout=100), BatchSettings(**batch), DiskBudget(home, "pool", 1000), captioning)


# ---------------------------------------------------------------- what is said of a failure


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ItemError("Too many requests.", "rate_limit", 7.0), TaskFailed("rate_limit", "Too many requests.", 7.0)),
        (InputError("It shows nothing."), TaskFailed("unreadable", "It shows nothing.", None)),
        (ReplyError("Not one answer."), TaskFailed("caption", "Not one answer.", None)),
        (StoreError("The disk is full."), TaskFailed("disk", "The disk is full.", None)),
        (OSError("No space left."), TaskFailed("disk", "No space left.", None)),
        (GivenUpError("It crashed.", kind="crash"), TaskFailed("crash", "It crashed.", None)),
        (
            GivenUpError("It took too long.", kind="timeout"),
            TaskFailed(
                "timeout",
                "Not extracted within 100 s. Try it again with --retry-failed=timeout and a longer --timeout.",
                None,
            ),
        ),
    ],
)
@pytest.mark.parametrize("role", ["fetch", "extract"])
def test_a_failure_has_its_type(role: Any, error: Exception, message: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*about: Any) -> None:
        raise error

    monkeypatch.setattr(worker, "fetch_video" if role == "fetch" else "extract_video", fails)
    task = FetchTask(JOB) if role == "fetch" else ExtractTask(JOB, None, 1)
    assert _result(config_of(tmp_path), SimpleNamespace(), task) == message  # type: ignore[arg-type]


def test_what_no_other_video_survives_either_is_no_failure_of_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*about: Any) -> None:
        raise BackendError("It is not installed.")

    monkeypatch.setattr(worker, "extract_video", fails)
    with pytest.raises(BackendError):
        _result(config_of(tmp_path), SimpleNamespace(), ExtractTask(JOB, None, 1))  # type: ignore[arg-type]


# ---------------------------------------------------------------- fetched


def test_a_download_has_a_folder_of_its_own_and_holds_what_lies_in_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config, waits = config_of(tmp_path), list[object]()
    holder = DiskHolder(config.disk, tmp_path / "videos")
    (tmp_path / "videos" / "v1").mkdir(parents=True)
    (tmp_path / "videos" / "v1" / "half.mp4").write_bytes(b"of a try that was killed")

    def fetch(item: ListItem, settings: BatchSettings, folder: Path, *, room_bytes: int, space: Any) -> DownloadedVideo:
        assert (item, list(folder.iterdir()), room_bytes) == (JOB.item, [], 1000)
        space.wait_for(900)
        (folder / "a.mp4").write_bytes(b"x" * 300)
        (folder / "a.vtt").write_bytes(b"x" * 20)
        return DownloadedVideo(folder / "a.mp4")

    monkeypatch.setattr("vip.download.fetch.fetch", fetch)
    pipe = SimpleNamespace(send=waits.append)
    assert _result(config, pipe, FetchTask(JOB)) == VideoFetched(DownloadedVideo(tmp_path / "videos" / "v1" / "a.mp4"))  # type: ignore[arg-type]
    assert (held(tmp_path), waits) == (320, [])
    holder.close()


# ---------------------------------------------------------------- extracted


class Run:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.descriptions = ()
        self.failures = (Failure(item="v1:0002", kind="picture", message="It is not there.", exit_code=6),)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked for, of an extraction that makes three keyframes of everything."""
    asked: list[Any] = []

    def extract(source: Any, *, out: Path, settings: ExtractSettings, isolated: bool) -> Run:
        out.mkdir(parents=True)
        asked.append((source.path, out, settings.timeout, isolated, cores._most))
        return Run(out)

    monkeypatch.setattr("vip.pipeline.extract", extract)
    monkeypatch.setattr("vip.video.source.FileSource", lambda path, key: SimpleNamespace(path=path, key=key))
    monkeypatch.setattr("vip.dataset.rows.sample_of", lambda run, *, item, fetched: sample(item.key))
    monkeypatch.setattr("vip.cores._most", None)
    return asked


def downloaded(home: Path) -> DownloadedVideo:
    folder = home / "videos" / "v1"
    folder.mkdir(parents=True)
    (folder / "a.mp4").write_bytes(b"a video")
    return DownloadedVideo(folder / "a.mp4", youtube_id="aaaaaaaaaaa")


def test_a_video_becomes_a_part_and_nothing_else_stays(done: list[Any], tmp_path: Path) -> None:
    video = downloaded(tmp_path)
    info = extract_video(config_of(tmp_path), JOB, video, 3)
    path = tmp_path / "parts" / "v1.tar"
    failed = (("v1:0002", "picture", "It is not there."),)
    assert info == PartInfo(rows=3, size_bytes=path.stat().st_size, length_s=9.0, youtube_id="aaaaaaaaaaa", undescribed=failed)
    assert read_part(path).video.key == "v1"
    assert done == [(video.path, tmp_path / "work" / "v1", 100.0, True, 3)]
    assert (list((tmp_path / "work").iterdir()), list((tmp_path / "videos").iterdir())) == ([], [])


def test_a_file_of_the_user_stays_where_it_is(done: list[Any], tmp_path: Path) -> None:
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "a.mp4").write_bytes(b"a video")
    job = WorkItem(1, replace(JOB.item, kind="file", source=str(tmp_path / "films" / "a.mp4")))
    extract_video(config_of(tmp_path, keep_videos=tmp_path / "kept"), job, None, 1)
    assert (tmp_path / "films" / "a.mp4").exists()
    assert not (tmp_path / "kept").exists()


def test_a_download_that_shows_nothing_goes_all_the_same(done: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(source: Any, *, out: Path, **settings: Any) -> None:
        out.mkdir(parents=True)
        raise InputError("It shows nothing.")

    monkeypatch.setattr("vip.pipeline.extract", fails)
    with pytest.raises(InputError):
        extract_video(config_of(tmp_path), JOB, downloaded(tmp_path), 1)
    assert (list((tmp_path / "work").iterdir()), list((tmp_path / "videos").iterdir())) == ([], [])


def test_a_download_is_kept_where_the_user_wants_it(done: list[Any], tmp_path: Path) -> None:
    extract_video(config_of(tmp_path, keep_videos=tmp_path / "my" / "films"), JOB, downloaded(tmp_path), 1)
    assert [(path.name, path.read_bytes()) for path in (tmp_path / "my" / "films").iterdir()] == [("a.mp4", b"a video")]
    assert list((tmp_path / "videos").iterdir()) == []


@pytest.mark.parametrize(("topic", "told"), [("a race", "a race"), (None, "animals")])
def test_measured_descriptions_are_about_the_topic_of_the_video_or_else_of_all(
    topic: str | None, told: str, done: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics: list[str | None] = []

    def open_job(runs: list[Path], settings: CaptionSettings, *_: object) -> None:
        topics.append(settings.topic)
        raise SomeFailedError("1 keyframe failed.")

    monkeypatch.setattr("vip.captioning.caption_job.open_job", open_job)
    job = WorkItem(1, replace(JOB.item, topic=topic))
    extract_video(config_of(tmp_path, CaptionSettings(engine="offline", topic="animals")), job, downloaded(tmp_path), 1)
    assert topics == [told]


# ---------------------------------------------------------------- words

SRT = "1\n00:00:00,000 --> 00:00:09,000\nBeside the file\n"
VTT = "WEBVTT\n\n00:00.000 --> 00:09.000\nOf the page\n"


@pytest.fixture
def film(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clip with a .srt beside it, in whose pictures a fake reader reads EXIT 42."""
    monkeypatch.setattr("vip.cores._most", None)
    monkeypatch.setattr(registry, "has_text_reader", lambda: True)
    monkeypatch.setattr(registry, "text_reader", lambda: FakeReader(line("EXIT 42")))
    monkeypatch.setattr("vip.pipeline.run_isolated", lambda work, subject, observer, **options: work(observer))  # it knows the fake
    (tmp_path / "films").mkdir()
    path = clip(tmp_path / "films" / "a.mp4", range(4))
    path.with_suffix(".srt").write_text(SRT, encoding="utf-8")
    return path


def part_of(home: Path, film: Path, words: str, *, engine: str | None = "offline", subtitles: str | None = None) -> VideoSample:
    video = DownloadedVideo(film, is_ours=False)
    if subtitles:
        (home / "en.vtt").write_text(subtitles, encoding="utf-8")
        video = replace(video, subtitles={"en": home / "en.vtt"})
    config = replace(config_of(home, words=words), extraction=ExtractSettings(keyframes=2, embedder="classic"))
    extract_video(replace(config, captioning=CaptionSettings(engine=engine) if engine else None), JOB, video, 1)
    return read_part(home / "parts" / "v1.tar")


def test_words_of_a_video_are_in_its_rows_and_its_captions(film: Path, tmp_path: Path) -> None:
    found = part_of(tmp_path, film, "subtitles,text")
    assert [row["subtitle"] for row in rows_of(found)] == ["Beside the file"] * 2
    assert [row["picture_text"] for row in rows_of(found)] == [["EXIT 42"]] * 2
    for frame in found.frames:
        assert frame.description is not None
        assert "The text in the picture reads: “EXIT 42”" in frame.description.dense_caption
        assert "The subtitles around this keyframe read: “Beside the file”" in frame.description.dense_caption
    assert found.video.settings["words"] == ["subtitles", "text"]


def test_subtitles_of_the_page_come_before_those_beside_the_file(film: Path, tmp_path: Path) -> None:
    found = part_of(tmp_path, film, "subtitles", subtitles=VTT)
    assert [row["subtitle"] for row in rows_of(found)] == ["Of the page"] * 2
    assert all(frame.text is None and frame.description and "“Of the page”" in frame.description.dense_caption for frame in found.frames)


@pytest.mark.parametrize("subtitles", ["", "1\n00:00:00,000 --> soon"])
def test_a_video_without_subtitles_is_no_failure(film: Path, tmp_path: Path, subtitles: str) -> None:
    film.with_suffix(".srt").write_text(subtitles, encoding="utf-8")
    found = part_of(tmp_path, film, "subtitles")
    assert all(frame.description and frame.description.words is None for frame in found.frames)


@pytest.mark.parametrize(("words", "is_read"), [("subtitles,text", True), ("none", False)])
def test_a_part_that_an_engine_describes_later_has_the_words_that_were_asked_for(
    film: Path, tmp_path: Path, words: str, is_read: bool
) -> None:
    part_of(tmp_path, film, words, engine=None, subtitles=VTT)
    again = unpack(tmp_path / "parts" / "v1.tar", tmp_path / "again.vip")
    assert [one.text for one in again.words] == (["Of the page"] if is_read else [])
    assert [line.text for row in again.texts for line in row.lines] == (["EXIT 42"] * 2 if is_read else [])


# ---------------------------------------------------------------- too long, too short


@contextmanager
def lasting(header_s: float | None, start_s: float, end_s: float) -> Iterator[Any]:
    info = SimpleNamespace(duration_s_from_header=header_s, start_time_s=start_s, end_time_s=end_s)
    yield SimpleNamespace(info=lambda: info)


@pytest.mark.parametrize(
    ("header_s", "low", "high", "kind"),
    [
        (10.0, 10.0, 10.0, None),
        (10.1, None, 10.0, "too_long"),
        (9.9, 10.0, None, "too_short"),
        (None, 5.0, 5.0, None),  # from 2 s to 7 s
        (None, None, 4.9, "too_long"),
        (None, 5.1, None, "too_short"),
    ],
)
def test_a_video_outside_of_the_limits_is_refused(
    header_s: float | None, low: float | None, high: float | None, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vip.video.open_video", lambda source: lasting(header_s, 2.0, 7.0))
    monkeypatch.setattr("vip.video.source_of", lambda path: path)
    try:
        _require_length(Path("a.mp4"), low, high, SilentObserver())
        found = None
    except ItemError as exc:
        found = exc.kind
    assert found == kind


def test_a_keyframe_whose_second_look_failed_is_described() -> None:
    failures = [Failure(item=item, kind="refusal", message="No.", exit_code=6) for item in ("v:0001", "v:0002")]
    run = SimpleNamespace(descriptions=[SimpleNamespace(keyframe_id="v:0001")], failures=failures)
    assert undescribed_keyframes(run) == (("v:0002", "refusal", "No."),)  # type: ignore[arg-type]
