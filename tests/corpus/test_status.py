"""How far a batch is: what is counted, what is told in which words, and rates over the right time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.corpus.test_state import fill, item, ready
from vip import user_state
from vip.corpus.inputs.rows import BadRow
from vip.corpus.state import FAILED, SampledItem, StateDatabase
from vip.corpus.status import BATCHES, CAPTIONS_REST, BatchStatus, duration, lines, status, status_of
from vip.errors import StoreError
from vip.llm.batch_files import FOLDER, BatchFolder, BatchJob, BatchJobList
from vip.llm.outage import OutagePause

NOW_S = 10_000.0


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StateDatabase]:
    for module in ("state", "status"):
        monkeypatch.setattr(f"vip.corpus.{module}.time", SimpleNamespace(time=lambda: NOW_S))
    state = StateDatabase(tmp_path)
    yield state
    state.close()


def ended(state: StateDatabase, id_: int, moment: float) -> None:
    state._write("UPDATE items SET ended = ? WHERE id = ?", (moment, id_))


def test_every_item_is_counted_where_it_is(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(10)])
    list(state.add([SampledItem(item(10), -1.0, False), BadRow("???", "list.txt, line 99", "no video")]))
    state.choose(None)
    for number in range(3):
        ready(state, f"video{number}", 50)
    assert state.begin_shard(100) == 0
    state.record_shard(0, size_bytes=90, rows=6, undescribed=1)
    state.record_failure(4, "deleted", "gone")
    state.record_failure(5, "network", "gone")
    state.schedule_retry(6, "network", "gone", NOW_S + 12.34)
    state.record_extracted(7, rows=1, size_bytes=7, length_s=1.0, youtube_id=None, ready=False)
    state.record_undescribed(1, [("video0:0001", "refusal", "no")])
    state.put("spent", [1.25, 300])
    state.request_descriptions()
    told = status_of(state, "corpus", None)
    assert (told.chosen, told.not_chosen, told.bad_rows) == (10, 1, 1)
    assert (told.done, told.failed, told.waiting) == (3, 2, 5)
    assert (told.again, told.again_in_s, told.undescribed_videos) == (1, 12.3, 1)
    assert (told.keyframes, told.undescribed, told.bytes, told.video_s) == (9, 1, 150, 30.0)
    assert (told.shards, told.shards_again, told.not_in_shards) == (1, 1, 1)
    assert told.failures == {"bad_row": 1, "deleted": 1, "network": 1}
    assert (told.usd, told.tokens) == (1.25, 300)
    assert (told.per_minute, told.left_s, told.captions_rest_s) == (None, None, None), "nothing runs"


def test_what_was_due_already_is_due_now(state: StateDatabase) -> None:
    fill(state, [item(1)])
    state.schedule_retry(1, "network", "gone", NOW_S - 5)
    assert status_of(state, "corpus", None).again_in_s == 0.0


def test_rates_are_of_the_last_ten_minutes_and_what_failed_is_off_the_list_too(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(10)])
    state.put("began", NOW_S - 3600)
    for number in range(3):
        ready(state, f"video{number}")
    state.record_failure(4, "deleted", "gone")
    ended(state, 1, NOW_S - 601)
    told = status_of(state, "corpus", 77)
    assert told.per_minute == 0.2
    assert told.left_s == 1200.0, "6 wait, and 3 in ten minutes came to an end"
    state.put("began", NOW_S - 60)
    assert status_of(state, "corpus", 77).per_minute == 2.0
    stopped = status_of(state, "corpus", None)
    assert (stopped.per_minute, stopped.left_s) == (None, None), "nothing is on the way"


def test_a_run_that_has_just_begun_has_no_rate_and_one_without_an_end_no_time_left(state: StateDatabase) -> None:
    fill(state, [item(1)])
    state.put("began", NOW_S - 0.5)
    assert status_of(state, "corpus", 77).per_minute is None
    state.put("began", NOW_S - 60)
    told = status_of(state, "corpus", 77)
    assert (told.per_minute, told.left_s) == (0.0, None)


def test_a_rest_of_the_captions_server_is_told_while_somebody_waits_for_it(state: StateDatabase) -> None:
    state.put(CAPTIONS_REST, OutagePause(NOW_S + 30, 60.0, "It is busy."))
    told = status_of(state, "corpus", 77)
    assert (told.captions_rest_s, told.captions_rest_why) == (30.0, "It is busy.")
    assert status_of(state, "corpus", None).captions_rest_s is None
    state.put(CAPTIONS_REST, OutagePause(NOW_S - 30, 60.0, "It is busy."))
    assert status_of(state, "corpus", 77).captions_rest_s == 0.0


def test_batches_at_the_server_are_told_until_they_are_collected(state: StateDatabase) -> None:
    made = "2026-01-01T00:00:00+00:00"
    jobs = (
        BatchJob(part=1, status="collected", job="batch_1", rows=5, size_bytes=9, completed=5, created_utc=made),
        BatchJob(part=2, status="in_progress", job="batch_2", rows=12, size_bytes=9, completed=3, failed=1, created_utc=made),
        BatchJob(part=3, rows=7, size_bytes=9, created_utc=made),
    )
    ours = BatchFolder(state.home / BATCHES, state.home / BATCHES / FOLDER)
    ours.make()
    ours.note(BatchJobList(jobs=jobs))
    user_state.remember("jobs", jobs[1].model_copy(update={"home": str((state.home / BATCHES).resolve())}).mark("batch_2"))
    assert [(one.status, one.job, one.requests, one.done, one.created_utc) for one in status_of(state, "corpus", None).batches] == [
        ("in_progress", "batch_2", 12, 4, made),
        ("written", None, 7, 0, made),
    ]


def told(**changed: Any) -> BatchStatus:
    nothing: dict[str, Any] = dict.fromkeys(("chosen", "not_chosen", "bad_rows", "done", "failed", "waiting", "again"), 0)
    nothing |= dict.fromkeys(("undescribed_videos", "keyframes", "undescribed", "shards", "not_in_shards", "bytes", "tokens"), 0)
    nothing |= dict.fromkeys(("process", "again_in_s", "per_minute", "left_s"))
    return BatchStatus(**{"out": "corpus", "video_s": 0.0, "failures": {}, "usd": 0.0, **nothing, **changed})


@pytest.mark.parametrize(
    ("changed", "finished", "line"),
    [
        ({}, True, "corpus: finished"),
        ({"waiting": 1}, False, "corpus: stopped; the same command goes on"),
        ({"not_in_shards": 1}, False, "corpus: stopped; the same command goes on"),
        ({"shards_again": 1}, False, "corpus: stopped; the same command goes on"),
        ({"process": 7}, True, "corpus: process 7 works on it"),
    ],
)
def test_it_is_finished_when_nothing_is_left_to_do(changed: dict[str, Any], finished: bool, line: str) -> None:
    assert told(**changed).is_finished == finished
    assert lines(told(**changed))[0] == line


def test_a_batch_that_goes_well_is_three_lines() -> None:
    assert lines(told(chosen=2, done=2, keyframes=6, video_s=8.0, bytes=12_345, shards=1)) == [
        "corpus: finished",
        "  videos     2 done, 0 failed, 0 waiting of 2 (100.0 %)",
        "  keyframes  6 of 8 s of video, 12.3 kB in 1 shard",
    ]
    assert "(100.0 %)" in lines(told())[1], "of nothing, all"


def test_all_that_may_be_told_is_told_once() -> None:
    job = {"status": "in_progress", "job": "batch_1", "requests": 12, "done": 3, "created_utc": "2026-01-01T00:00:00+00:00"}
    everything = told(
        **{"process": 7, "chosen": 2000, "not_chosen": 5, "bad_rows": 1, "done": 1000, "failed": 500, "waiting": 500, "again": 3},
        **{"again_in_s": 90.0, "undescribed_videos": 1, "undescribed": 2, "keyframes": 1200, "bytes": 4_000_000, "video_s": 7200.0},
        **{"shards": 3, "shards_again": 1, "not_in_shards": 1, "usd": 1234.5, "tokens": 1, "per_minute": 12.34, "left_s": 5400.0},
        **{"captions_rest_s": 30.0, "captions_rest_why": "It is busy.", "failures": {"network": 500}},
        batches=(job, {**job, "job": None, "status": "written"}),
    )
    assert lines(everything) == [
        "corpus: process 7 works on it",
        "  videos     1,000 done, 500 failed, 500 waiting of 2,000 (75.0 %)",
        "  list       5 not chosen, 1 bad row",
        "  again      3 to be tried again, the first in 1.5 min",
        "  keyframes  1,200 of 2.0 h of video, 4.0 MB in 3 shards (1 video waits for its own), 1 shard is to be written anew",
        "  captions   1 video waits for them, 2 keyframes could not be described, $1,234.50, 1 token",
        "  rest       captions, for another 30 s: It is busy.",
        "  batch      in_progress, 3 of 12 requests done, batch_1, since 2026-01-01T00:00:00+00:00",
        "  batch      written, 3 of 12 requests done, not handed in yet, since 2026-01-01T00:00:00+00:00",
        "  rate       12.3 videos a minute, 1.5 h left",
        "  failed          500  network",
    ]


@pytest.mark.parametrize("changed", [{"undescribed_videos": 1}, {"undescribed": 1}, {"tokens": 1}])
def test_captions_are_told_of_as_soon_as_there_is_something_to_tell(changed: dict[str, Any]) -> None:
    assert [line for line in lines(told(**changed)) if line.startswith("  captions")]


@pytest.mark.parametrize("changed", [{"not_chosen": 1}, {"bad_rows": 1}])
def test_the_list_is_told_of_where_not_all_of_it_is_done(changed: dict[str, Any]) -> None:
    assert [line for line in lines(told(**changed)) if line.startswith("  list")]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (2.4, "2 s"),
        (89.9, "90 s"),
        (90.0, "1.5 min"),
        (600.0, "10 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (36_000.0, "10 h"),
        (172_799.0, "48 h"),
        (172_800.0, "2.0 days"),
        (1_080_000.0, "12.5 days"),
    ],
)
def test_a_duration_has_the_unit_that_fits(seconds: float, text: str) -> None:
    assert duration(seconds) == text


@pytest.mark.parametrize(
    "statement", ["UPDATE items SET bytes = 9e999", "UPDATE items SET length_s = 9e999", "UPDATE meta SET value = '[1]'"]
)
def test_a_state_of_a_stranger_with_impossible_numbers_is_one_sentence(statement: str, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    state = StateDatabase(tmp_path / "state")
    fill(state, [item(0), item(1)])
    ready(state, "video0", 50)
    state.put("spent", [1.0, 2])
    state.commit()
    state._db.execute(statement)
    state.close()
    with pytest.raises(StoreError, match="damaged"):
        status(str(tmp_path))


@pytest.mark.parametrize("kind", ["x" * 100_000, None])
def test_types_of_failures_that_vip_does_not_know_fill_no_terminal(kind: str | None, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    state = StateDatabase(tmp_path / "state")
    fill(state, [item(0)])
    state._write("UPDATE items SET state = ?, failure = ?", (FAILED, kind))
    state._db.executemany("INSERT INTO bad_rows VALUES ('list', ?, ?, '')", [(str(number), f"kind{number}") for number in range(1000)])
    state.close()
    with pytest.raises(StoreError, match="the state of the batch is damaged") as caught:
        status(str(tmp_path))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("spent", ["ab", 1, [[1], {}], [1.0], [-1e300, 5], [1.0, -5], [1.0, 0.5], ["1", 2], [[1.0], 2]])
def test_costs_that_no_batch_has_are_damage(state: StateDatabase, spent: object) -> None:
    state.put("spent", spent)
    with pytest.raises(StoreError, match="its spent is no cost"):
        state.totals()
