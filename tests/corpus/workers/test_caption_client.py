"""Captions of a batch: asked for by one process for all videos, within one ceiling, never twice, and none for another picture."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import ApiServer
from tests.captioning.keyframes import marker
from tests.corpus.test_batch import Bars, failures, listed, samples_in, videos
from vip.captioning.in_batches import jobs_in
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
from vip.corpus.status import BatchStatus, lines, status
from vip.dataset.parts import unpack
from vip.dataset.shards import read_shards
from vip.errors import BudgetError, EngineError, OutageError, UsageError

PRICES = '[[price]]\nmodels = ["tiny-vlm"]\nusd_in = 1.0\nusd_out = 10.0\nbatch = 0.5\naddress = "127.0.0.1"\nas_of = 2026-01-01\n'


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer(marks=True) as server:
        yield server


def choices(server: ApiServer, tmp_path: Path, *, batch_settings: Any = None, **more: Any) -> BatchConfig:
    (tmp_path / "prices.toml").write_text(PRICES)
    asked = {"engine": "openai:tiny-vlm", "base_url": server.base_url, "cache": tmp_path / "answers.sqlite"}
    return BatchConfig(
        BatchSettings(workers=2, caption=True, **(batch_settings or {})),
        ExtractSettings(keyframes=3, embedder="classic"),
        CaptionSettings(**{**asked, "prices": tmp_path / "prices.toml", **more}),
    )


def test_each_keyframe_has_the_caption_of_its_own_picture(server: ApiServer, tmp_path: Path) -> None:
    server.set(usage=(800, 20))
    told = batch([listed(tmp_path, videos(tmp_path, 6))], str(tmp_path / "corpus"), choices(server, tmp_path), observer=(bars := Bars()))
    assert (told.done, told.undescribed, server.stats().chats) == (6, 0, 18)
    assert told.tokens == 18 * (800 + 20)
    assert told.usd == pytest.approx(18 * (800 * 1e-6 + 20 * 1e-5))
    assert [note for note in bars.notes if "18 requests" in note]
    for clip in samples_in(tmp_path / "corpus"):
        run = unpack(packed(tmp_path, clip), tmp_path / "again" / clip.video.key)
        for item, frame in zip(run.keyframes, clip.frames, strict=True):
            assert frame.description is not None
            assert marker(item) in frame.description.dense_caption


def packed(folder: Path, clip: Any) -> Path:
    from vip.dataset.parts import pack

    path = folder / f"{clip.video.key}.tar"
    pack(path, clip)
    return path


def test_the_topic_of_each_video_goes_into_its_questions(server: ApiServer, tmp_path: Path) -> None:
    one, two = videos(tmp_path, 2)
    table = tmp_path / "list.csv"
    table.write_text(f"path,topic\n{one},a horse race\n{two},cooking pasta\n")
    batch([str(table)], str(tmp_path / "corpus"), choices(server, tmp_path))
    questions = [asked.text for asked in server.chats if asked.body["messages"][0]["content"].__class__ is str]
    assert sum("a horse race" in text for text in questions) == sum("cooking pasta" in text for text in questions) == 1


def test_one_keyframe_that_is_refused_costs_itself_only_and_is_named(tmp_path: Path) -> None:
    with ApiServer(mix={"content_filter": 0.3}, seed=5) as server:
        told = batch([listed(tmp_path, videos(tmp_path, 6))], str(tmp_path / "corpus"), choices(server, tmp_path))
    assert told.done + told.failed == 6
    assert told.undescribed > 0
    named = {row["item"] for row in failures(tmp_path / "corpus") if row["kind"] == "content_filter"}
    rows = [frame for clip in samples_in(tmp_path / "corpus") for frame in clip.frames]
    assert {frame.keyframe.id for frame in rows if frame.description is None} == named
    assert all(frame.failure for frame in rows if frame.description is None)


def test_the_ceiling_holds_over_all_runs_of_the_batch_and_nothing_is_lost(server: ApiServer, tmp_path: Path) -> None:
    server.set(usage=(2000, 300))  # half a cent each
    names, out = listed(tmp_path, videos(tmp_path, 6)), str(tmp_path / "corpus")
    for _ in range(3):
        with pytest.raises(BudgetError, match="max-usd"):
            batch([names], out, choices(server, tmp_path, max_usd=0.05, concurrency=1))
    assert status(out).usd <= 0.05
    assert status(out).waiting > 0
    told = batch([names], out, choices(server, tmp_path, max_usd=5.0))
    assert (told.done, told.waiting, told.undescribed) == (6, 0, 0)
    assert server.stats().chats == 18


def until(true: Callable[[], Any], patience_s: float = 60.0) -> None:
    end = time.monotonic() + patience_s
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_a_server_that_goes_away_costs_time_only_and_extraction_goes_on_meanwhile(server: ApiServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 12)), str(tmp_path / "corpus")

    def away() -> BatchStatus:
        until(lambda: server.stats().chats >= 7)
        server.kill()
        until(lambda: status(out).undescribed_videos >= 8)
        until(lambda: status(out).captions_rest_s)
        told = status(out)
        server.restart()
        return told

    server.set(delay_s=0.1)
    with ThreadPoolExecutor(1) as pool:
        meanwhile = pool.submit(away)
        settings = choices(server, tmp_path, concurrency=2, batch_settings={"retry_wait": 0.3})
        told = batch([names], out, settings, observer=(bars := Bars()))
        rested = meanwhile.result()
    assert (told.done, told.failed, told.undescribed, told.waiting) == (12, 0, 0, 0)
    stats = server.stats()
    assert (stats.usable, stats.most_answered) == (36, 1), "nothing is asked twice"
    assert rested.captions_rest_why is not None
    assert "cannot be reached" in rested.captions_rest_why
    assert [line for line in lines(rested) if "captions, for another" in line]
    assert [note for note in bars.notes if "cannot be reached" in note and "Captions rest for " in note]
    assert bars.notes.count("The captions server answers again, and captions go on.") == 1
    assert status(out).captions_rest_s is None


def test_while_the_server_is_gone_parts_wait_as_far_as_the_disk_budget_goes(server: ApiServer, tmp_path: Path) -> None:
    rows, out = videos(tmp_path, 12), tmp_path / "corpus"
    batch([listed(tmp_path, rows[:1])], str(out), choices(server, tmp_path))  # it answers, so its address is right
    server.kill()
    size = sum(info.bytes for info in read_shards(str(out)))

    def waits() -> int:
        until(lambda: status(str(out)).captions_rest_s)
        time.sleep(1.0)  # time enough for more
        server.restart()
        return status(str(out)).undescribed_videos

    with ThreadPoolExecutor(1) as pool:
        meanwhile = pool.submit(waits)
        settings = choices(server, tmp_path, batch_settings={"retry_wait": 0.3, "disk_budget": 3 * size})
        told = batch([listed(tmp_path, rows)], str(out), settings)
        assert 2 <= meanwhile.result() <= 9
    assert (told.done, told.undescribed) == (12, 0)


def test_a_run_that_is_killed_while_the_server_is_gone_goes_on_when_it_is_back(server: ApiServer, tmp_path: Path) -> None:
    names, out, cache = listed(tmp_path, videos(tmp_path, 6)), tmp_path / "corpus", tmp_path / "answers.sqlite"
    command = [sys.executable, "-c", COMMAND, names, str(out), server.base_url, str(cache)]
    server.set(delay_s=0.1)
    process = subprocess.Popen(command)
    until(lambda: server.stats().chats >= 4)
    server.kill()
    until(lambda: status(str(out)).captions_rest_s)
    process.kill()
    process.wait()
    assert status(str(out)).captions_rest_s is None, "nobody waits"
    process = subprocess.Popen(command)  # while it is still gone
    until(lambda: status(str(out)).captions_rest_s)
    server.restart()
    assert process.wait() == 0
    assert (server.stats().usable, server.stats().most_answered) == (18, 1)
    assert all(frame.description for clip in samples_in(out) for frame in clip.frames)


def test_a_server_that_never_answered_ends_the_batch_and_the_extracted_videos_wait(tmp_path: Path) -> None:
    with ApiServer() as server:
        settings = choices(server, tmp_path)
    names, out = listed(tmp_path, videos(tmp_path, 2)), str(tmp_path / "corpus")
    with pytest.raises(OutageError, match="cannot be reached"):
        batch([names], out, settings)
    assert (status(out).waiting, status(out).done) == (2, 0)


@pytest.mark.parametrize(
    ("behaviour", "words"), [("401", "No key is set, and .* asks for one"), ("400", "rejects the request"), ("quota", "quota")]
)
def test_what_waiting_does_not_mend_ends_the_batch_at_once(behaviour: str, words: str, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 6)), str(tmp_path / "corpus")
    with ApiServer(*["ok"] * 5, behaviour) as server:
        settings = choices(server, tmp_path, concurrency=1)
        with pytest.raises(EngineError, match=words) as caught:
            batch([names], out, settings, observer=(bars := Bars()))
    assert not isinstance(caught.value, OutageError)
    assert [note for note in bars.notes if "rest for" in note] == []
    assert status(out).waiting > 0


COMMAND = """
import sys
from pathlib import Path
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
names, out, base_url, cache = sys.argv[1:]
asked = CaptionSettings(engine="openai:tiny-vlm", base_url=base_url, cache=Path(cache), concurrency=2)
settings = BatchSettings(workers=2, caption=True, retry_wait=0.3)
batch([names], out, BatchConfig(settings, ExtractSettings(keyframes=3, embedder="classic"), asked))
"""


def test_killed_while_it_asks_no_more_is_asked_again_than_was_in_flight(tmp_path: Path) -> None:
    names, out, cache = listed(tmp_path, videos(tmp_path, 10)), tmp_path / "corpus", tmp_path / "answers.sqlite"
    kills = 0
    with ApiServer(delay_s=0.15, marks=True) as server:
        command = [sys.executable, "-c", COMMAND, names, str(out), server.base_url, str(cache)]
        for wanted in (4, 11, 19):
            process = subprocess.Popen(command)
            while server.stats().chats < wanted and process.poll() is None:
                time.sleep(0.01)
            kills += process.poll() is None
            process.kill()
            process.wait()
        assert subprocess.run(command, check=False).returncode == 0
        assert kills >= 2
        assert 30 <= server.stats().chats <= 30 + 2 * kills
    frames = [frame for clip in samples_in(out) for frame in clip.frames]
    assert len(frames) == 30
    assert all(frame.description for frame in frames)


# ---------------------------------------------------------------- through the Batch API


def test_questions_of_many_videos_go_in_one_batch_at_half_the_price(server: ApiServer, tmp_path: Path) -> None:
    server.set(usage=(800, 20))
    names, out = listed(tmp_path, videos(tmp_path, 6)), str(tmp_path / "corpus")
    told = batch([names], out, choices(server, tmp_path, batch_settings={"batch": True}), observer=(bars := Bars()))
    stats = server.stats()
    assert (told.done, told.undescribed, stats.rows, stats.chats, stats.most_answered) == (6, 0, 18, 0, 1)
    assert told.usd == pytest.approx(18 * (800 * 1e-6 + 20 * 1e-5) / 2)
    assert [job.rows for job in jobs_in(tmp_path / "corpus" / "state" / "captions")] == [18]
    assert [note for note in bars.notes if note.startswith("1 batch with 18 requests at the server")]
    assert all(frame.description for clip in samples_in(tmp_path / "corpus") for frame in clip.frames)
    assert told.batches == ()


def test_three_questions_a_keyframe_take_three_batches(server: ApiServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 3)), tmp_path / "corpus"
    told = batch([names], str(out), choices(server, tmp_path, recipe="paper", batch_settings={"batch": True}))
    assert (told.done, told.undescribed, server.stats().rows) == (3, 0, 27)
    assert [job.rows for job in jobs_in(out / "state" / "captions")] == [9, 9, 9]


BATCH_COMMAND = COMMAND.replace("retry_wait=0.3", "retry_wait=0.3, batch=True")


def test_while_a_batch_is_at_the_server_the_status_tells_and_a_killed_run_goes_on(server: ApiServer, tmp_path: Path) -> None:
    names, out, cache = listed(tmp_path, videos(tmp_path, 4)), tmp_path / "corpus", tmp_path / "answers.sqlite"
    command = [sys.executable, "-c", BATCH_COMMAND, names, str(out), server.base_url, str(cache)]
    server.set(batch_s=6.0)
    for _ in range(2):
        process = subprocess.Popen(command)
        until(lambda pid=process.pid: (out / "state" / "state.sqlite").exists() and status(str(out)).process == pid)
        until(lambda: status(str(out)).undescribed_videos == 4 and [job for job in status(str(out)).batches if job.job])
        (job,) = status(str(out)).batches
        assert (job.requests, job.done) == (12, 0)
        assert [line for line in lines(status(str(out))) if "0 of 12 requests done, batch_" in line]
        process.kill()
        process.wait()
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (server.stats().rows, server.stats().most_answered) == (12, 1)
    assert status(str(out)).batches == ()
    assert all(frame.description for clip in samples_in(out) for frame in clip.frames)


def test_batches_that_are_at_the_server_are_not_left_there_for_questions_one_by_one(server: ApiServer, tmp_path: Path) -> None:
    names, out, cache = listed(tmp_path, videos(tmp_path, 1)), tmp_path / "corpus", tmp_path / "answers.sqlite"
    server.set(batch_s=60.0)
    process = subprocess.Popen([sys.executable, "-c", BATCH_COMMAND, names, str(out), server.base_url, str(cache)])
    until(lambda: (out / "state" / "state.sqlite").exists() and [job for job in status(str(out)).batches if job.job])
    process.kill()
    process.wait()
    with pytest.raises(UsageError, match=r"^1 batch of questions is at the server\. Add --batch to collect the answers, or delete "):
        batch([names], str(out), choices(server, tmp_path))


def test_under_a_ceiling_batches_follow_each_other_as_it_allows(server: ApiServer, tmp_path: Path) -> None:
    server.set(usage=(2000, 300))  # a quarter of a cent each in a batch, and at most 1.2 cents
    names, out = listed(tmp_path, videos(tmp_path, 6)), str(tmp_path / "corpus")
    told = batch([names], out, choices(server, tmp_path, max_usd=0.08, batch_settings={"batch": True}))
    assert (told.done, told.undescribed, server.stats().rows) == (6, 0, 18)
    assert told.usd == pytest.approx(18 * 0.0025)
    assert len(jobs_in(tmp_path / "corpus" / "state" / "captions")) > 2
    with pytest.raises(BudgetError, match=r"--max-usd 0\.01 leaves no room"):
        batch([names], str(tmp_path / "other"), choices(server, tmp_path, max_usd=0.01, language="de", batch_settings={"batch": True}))
    assert status(str(tmp_path / "other")).waiting > 0


def test_a_batch_server_that_goes_away_is_waited_for(server: ApiServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 4)), str(tmp_path / "corpus")
    server.set(batch_s=1.0)

    def away() -> BatchStatus:
        until(lambda: (tmp_path / "corpus" / "state" / "state.sqlite").exists() and [job for job in status(out).batches if job.job])
        server.kill()
        until(lambda: status(out).captions_rest_s)
        told = status(out)
        server.restart()
        return told

    with ThreadPoolExecutor(1) as pool:
        meanwhile = pool.submit(away)
        told = batch([names], out, choices(server, tmp_path, batch_settings={"batch": True, "retry_wait": 0.3}))
        assert "cannot be reached" in str(meanwhile.result().captions_rest_why)
    assert (told.done, told.undescribed, server.stats().rows, server.stats().most_answered) == (4, 0, 12, 1)


def test_rows_that_a_batch_cannot_answer_are_asked_one_by_one(tmp_path: Path) -> None:
    with ApiServer("wrong_schema", "refusal", "ok", marks=True) as server:
        names, out = listed(tmp_path, videos(tmp_path, 3)), str(tmp_path / "corpus")
        told = batch([names], out, choices(server, tmp_path, batch_settings={"batch": True}))
        assert (told.done, told.undescribed, server.stats().rows, server.stats().chats) == (3, 0, 9, 2)
