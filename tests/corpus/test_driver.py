"""The loop of a batch, with an executor that follows a script: each item ends once, and the queue is told of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.corpus.lists import vocabulary_file
from tests.corpus.making import sample
from tests.corpus.test_state import fill, item
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus.driver import BatchDriver
from vip.corpus.inputs.rows import BadRow
from vip.corpus.settings import BatchConfig
from vip.corpus.state import ItemEntry, StateDatabase
from vip.corpus.status import CAPTIONS_REST
from vip.corpus.workers.caption_client import CaptionTask, CostSoFar, Described
from vip.corpus.workers.pool import Downloaded, Event, ItemDone, ItemFailed, ItemLost
from vip.corpus.workers.shard_revisions import ShardRevisions, UnpackedVideo
from vip.corpus.workers.shard_writer import ShardWriter
from vip.corpus.workers.worker import PartInfo, WorkItem
from vip.dataset.items import ListItem
from vip.dataset.parts import pack
from vip.dataset.shards import UndescribedKeyframe
from vip.errors import BackendError, BudgetError
from vip.llm.outage import OutagePause
from vip.protocols import SilentObserver

MOST_LOOKS = 5000  # of a loop that would not end


class Told:
    """An executor that answers each job at once, with the event set for its try."""

    def __init__(self, answer: Callable[[WorkItem, int], Event | list[Event]]) -> None:
        self.answer = answer
        self.given: list[WorkItem] = []
        self.looks = 0
        self._found: list[Event] = []

    def has_capacity(self, *, fetch: bool) -> bool:
        return not self._found

    def submit(self, job: WorkItem) -> None:
        self.given.append(job)
        answer = self.answer(job, sum(one.id == job.id for one in self.given))
        self._found += answer if isinstance(answer, list) else [answer]

    def events(self, timeout_s: float) -> list[Event]:
        self.looks += 1
        assert self.looks < MOST_LOOKS, "the loop does not end"
        found, self._found = self._found, []
        return found

    def close(self) -> None:
        self.closed = True

    closed = False


class Captions:
    """Describes nothing until it is told to."""

    def __init__(self) -> None:
        self.given: list[CaptionTask] = []
        self.expected: list[int] = []
        self.handed_in = 0
        self.paid, self.pause, self.config = CostSoFar(0.0, 0), None, SimpleNamespace(answered=False)
        self.found: list[Described] = []
        self.error: Exception | None = None
        self.closed = False
        self.step: Callable[[], None] = lambda: None

    def expect(self, keyframes: int) -> None:
        self.expected.append(keyframes)

    def submit(self, wanted: CaptionTask) -> None:
        self.given.append(wanted)

    def submit_batches(self) -> None:
        self.handed_in += 1

    def events(self) -> list[Described]:
        self.step()
        if self.error is not None:
            raise self.error
        found, self.found = self.found, []
        return found

    def close(self) -> None:
        self.closed = True


class Bar(SilentObserver):
    """What the user sees."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.total = self.advanced = 0
        self.behind: Callable[[], str] = str

    def note(self, text: str) -> None:
        self.notes.append(text)

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> Any:
        self.total, self.behind = total, extra or str
        return nullcontext(self._advance)

    def _advance(self) -> None:
        self.advanced += 1


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    fill(state, [ListItem("a", "file", "/a.mp4", "list.txt, line 1")])
    yield state
    state.close()


def driver_of(state: StateDatabase, executor: Told, monkeypatch: pytest.MonkeyPatch) -> BatchDriver:
    monkeypatch.setattr("vip.corpus.queue.DUE_CHECK_S", 0.0)
    choices = BatchConfig(batch=BatchSettings(retry_wait=1e-6))
    return BatchDriver(state, str(state.home / "out"), choices, SilentObserver(), lambda fetches: executor)


def test_an_item_that_fails_each_time_is_handed_out_four_times_and_then_given_up(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    executor = Told(lambda job, number: ItemFailed(job.id, "other", "gone"))
    driver = driver_of(state, executor, monkeypatch)
    assert driver.run().failed == 1
    assert len(executor.given) == 4
    assert driver._queue._retried == set()


def test_an_item_that_is_done_at_the_third_try_is_handed_out_no_more(
    state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pack(tmp_path / "part.tar", sample("a"))
    part = (tmp_path / "part.tar").read_bytes()
    done = PartInfo(rows=3, size_bytes=len(part), length_s=9.0, youtube_id=None)
    executor = Told(lambda job, number: ItemFailed(job.id, "other", "gone") if number < 3 else ItemDone(job.id, part, done))
    driver = driver_of(state, executor, monkeypatch)
    monkeypatch.setattr(driver._shard_writer.__class__, "step", lambda self, *about, **how: False)
    told = driver.run()
    assert (told.done, told.failed, len(executor.given)) == (1, 0, 3)
    assert driver.changed
    assert driver._shard_writer._unsharded_bytes == len(part), "the packer knows of it"
    assert driver._queue._retried == set()
    assert (tmp_path / "parts" / "a.tar").read_bytes() == part


def test_an_item_whose_machines_are_lost_again_and_again_counts_as_the_cause(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Told(lambda job, number: ItemLost(job.id))
    driver = driver_of(state, executor, monkeypatch)
    assert driver.run().failed == 1
    assert len(executor.given) == 5
    assert driver.changed
    assert state.failure_counts() == {"crash": 1}


# ---------------------------------------------------------------- many items


@pytest.fixture
def _packs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.corpus.workers.shard_writer.ShardWriter.step", lambda self, *about, **how: False)


def working(
    state: StateDatabase,
    executor: Told,
    monkeypatch: pytest.MonkeyPatch,
    captions: Captions | None = None,
    bar: SilentObserver | None = None,
    **batch: Any,
) -> BatchDriver:
    monkeypatch.setattr("vip.corpus.queue.DUE_CHECK_S", 0.0)
    for name in ("TICK_S", "COMMIT_S"):
        monkeypatch.setattr(f"vip.corpus.driver.{name}", 0.0)
    settings = BatchSettings(**{"retry_wait": 1e-6, "caption": captions is not None, **batch})
    choices = BatchConfig(settings, ExtractSettings(keyframes=5), CaptionSettings(engine="openai:m"))
    return BatchDriver(state, str(state.home / "out"), choices, bar or SilentObserver(), lambda fetches: executor, captions)  # type: ignore[arg-type]


def done(job: WorkItem, size: int = 100, youtube_id: str | None = None, undescribed: Sequence[Any] = ()) -> ItemDone:
    return ItemDone(job.id, b"x" * size, PartInfo(3, size, 9.0, youtube_id, tuple(undescribed)))


def files(*keys: str) -> list[ListItem]:
    return [ListItem(key, "file", f"/{key}.mp4", "list.txt, line 1") for key in keys]


@pytest.mark.usefixtures("_packs_nothing")
def test_each_item_moves_the_bar_by_one_whatever_becomes_of_it(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, files("b", "c"))
    bar = Bar()
    executor = Told(lambda job, number: ItemFailed(job.id, "missing", "gone") if job.item.key == "b" else done(job))
    driver = working(state, executor, monkeypatch, bar=bar)
    driver.run()
    assert (bar.total, bar.advanced, bar.behind()) == (3, 3, "1 failed")


@pytest.mark.usefixtures("_packs_nothing")
def test_the_second_copy_of_a_video_is_a_duplicate_and_its_part_goes(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, files("b"))
    executor = Told(lambda job, number: done(job, youtube_id="aaaaaaaaaaa"))
    driver = working(state, executor, monkeypatch)
    told = driver.run()
    assert (told.done, told.failures) == (1, {"duplicate": 1})
    assert [row[2] for row in state.each_failure()] == ["aaaaaaaaaaa is the same video as a."]
    assert [path.name for path in (state.home / "parts").iterdir()] == ["a.tar"]


@pytest.mark.usefixtures("_packs_nothing")
def test_keyframes_that_a_worker_could_not_describe_are_known(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    executor = Told(lambda job, number: done(job, undescribed=[("a:0002", "picture", "It is not there.")]))
    assert working(state, executor, monkeypatch).run().undescribed == 1


@pytest.mark.usefixtures("_packs_nothing")
def test_a_host_has_its_slot_again_once_whether_its_video_came_or_failed(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, [item(number) for number in range(3)])
    active: list[int] = []

    def answer(job: WorkItem, number: int) -> list[Event]:
        active.append(driver._queue.active["example.org"])
        came: list[Event] = [Downloaded(job.id), done(job)]
        return [ItemFailed(job.id, "missing", "gone")] if job.item.key == "video0" else came if job.item.host else [done(job)]

    driver = working(state, Told(answer), monkeypatch, per_host=1)
    told = driver.run()
    assert (told.done, told.failed) == (3, 1)
    assert active == [0, 1, 1, 1], "a file takes none"
    assert driver._queue.active["example.org"] == 0


@pytest.mark.usefixtures("_packs_nothing")
def test_a_host_is_asked_for_the_next_video_while_the_one_before_is_extracted(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state, [item(0), item(1)])
    executor = Told(lambda job, number: [])

    def answer(job: WorkItem, number: int) -> list[Event]:
        fetched = [one for one in executor.given if one.item.host]
        if not job.item.host:
            return [done(job)]
        return [Downloaded(job.id)] if len(fetched) == 1 else [Downloaded(job.id), *map(done, fetched)]

    executor.answer = answer
    assert working(state, executor, monkeypatch, per_host=1).run().done == 3


@pytest.mark.parametrize("was_done_before", [False, True])
def test_what_was_torn_in_the_last_shard_is_done_again(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch, was_done_before: bool
) -> None:
    monkeypatch.setattr("vip.corpus.driver.time.sleep", lambda _: pytest.fail("nobody works"))
    if was_done_before:  # so that nothing waits when the run begins, and nobody is needed
        state.record_extracted(1, rows=1, size_bytes=1, length_s=None, youtube_id=None, ready=True)
    torn: list[ItemEntry] = []

    def step(self: ShardWriter, timeout_s: float = 0.0, *, last: bool = False) -> bool:
        if last and not torn:
            torn.append(ItemEntry(1, files("a")[0], 0))
            self.state.requeue(1)
            self.lost += torn
        return False

    monkeypatch.setattr(ShardWriter, "step", step)
    executor = Told(lambda job, number: done(job))
    status = working(state, executor, monkeypatch).run()
    assert ([job.item.key for job in executor.given], status.done, status.waiting) == (["a"] * (1 + (not was_done_before)), 1, 0)


@pytest.mark.usefixtures("_packs_nothing")
def test_a_host_that_gave_a_video_is_well_again(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, [item(1)])
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch)
    driver._retries._pauses["example.org"] = 3
    driver.run()
    assert driver._retries._pauses["example.org"] == 0


@pytest.mark.usefixtures("_packs_nothing")
@pytest.mark.parametrize(("items", "fetches"), [([item(1)], True), ([], False)])
def test_the_executor_is_told_whether_something_is_to_be_fetched(
    items: list[ListItem], fetches: bool, state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state, items)
    told: list[bool] = []
    executor = Told(lambda job, number: done(job))
    driver = working(state, executor, monkeypatch)
    monkeypatch.setattr(driver, "start", lambda fetches: told.append(fetches) or executor)
    driver.run()
    assert told == [fetches]
    driver.run()
    assert told == [fetches], "where nothing waits, nobody is needed"


@pytest.mark.usefixtures("_packs_nothing")
def test_while_it_runs_what_is_done_is_on_the_disk_and_the_card_is_known_to_be_due(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state, files("b", "c"))
    seen: list[tuple[int, bool]] = []

    def answer(job: WorkItem, number: int) -> Event:
        other = StateDatabase(state.home)
        seen.append((other.unsharded()[0], bool(other.get("card_is_due"))))
        other.close()
        return done(job)

    driver = working(state, Told(answer), monkeypatch)
    driver.run()
    assert seen == [(0, False), (1, True), (2, True)]


def test_an_error_that_ends_it_leaves_the_state_and_the_list_of_failures_whole(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state, files("b"))

    class Broken(Told):
        def events(self, timeout_s: float) -> list[Event]:
            if self.looks:
                raise BackendError("It is gone.")
            return super().events(timeout_s)

    executor = Broken(lambda job, number: ItemFailed(job.id, "missing", "gone"))
    driver = working(state, executor, monkeypatch)
    monkeypatch.setattr("vip.corpus.driver.COMMIT_S", 1e9)
    with pytest.raises(BackendError):
        driver.run()
    other = StateDatabase(state.home)
    assert (other.failure_counts(), other.get("card_is_due")) == ({"missing": 1}, True)
    other.close()
    assert (state.home / "out" / "failures.jsonl").read_text().count("\n") == 1


def test_all_who_work_are_ended(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    executor, captions, closed = Told(lambda job, number: ItemFailed(job.id, "missing", "gone")), Captions(), list[str]()
    driver = working(state, executor, monkeypatch, captions)
    driver.run()
    for kind, name in ((driver._shard_writer.__class__, "packer"), (driver._revisions.__class__, "revisions")):
        monkeypatch.setattr(kind, "close", lambda self, name=name: closed.append(name))
    driver.close()
    assert (executor.closed, captions.closed, closed) == (True, True, ["packer", "revisions"])


def test_that_all_waits_for_another_try_is_said_once_a_minute(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, files("b"))
    now = [1000.0]
    monkeypatch.setattr("vip.corpus.driver.time", SimpleNamespace(monotonic=lambda: now[0], time=lambda: 0.0, sleep=lambda seconds: None))
    bar = Bar()
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch, bar=bar)
    driver._note_idle()
    assert bar.notes == [], "nothing failed"
    state.schedule_retry(1, "network", "gone", due=90.0)
    state.schedule_retry(2, "network", "gone", due=95.0)
    for seconds in (0, 59, 2):
        now[0] += seconds
        driver._note_idle()
    assert bar.notes == ["2 videos wait for another try (2 network), the first for 1.5 min."] * 2
    assert driver._progress_details() == "waiting for another try"


# ---------------------------------------------------------------- captions


def described(captions: Captions, failure: str | None = None, undescribed: Sequence[Any] = ()) -> None:
    """All that was given is described from now on, at the next look."""
    told = 0

    def step() -> None:
        nonlocal told
        captions.found += [Described(one.key, tuple(undescribed), 120, failure) for one in captions.given[told:]]
        told = len(captions.given)

    captions.step = step


@pytest.mark.usefixtures("_packs_nothing")
def test_what_is_extracted_is_described_and_only_then_done(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, [ListItem("b", "file", "/b.mp4", "list.txt, line 2", topic="a race")])
    captions, bar = Captions(), Bar()
    described(captions, undescribed=[("x:0001", "refusal", "no")])
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch, captions, bar)
    told = driver.run()
    assert [(one.key, one.part.name, one.topic) for one in captions.given] == [("a", "a.tar", None), ("b", "b.tar", "a race")]
    assert (told.done, told.bytes, told.undescribed, bar.advanced) == (2, 240, 2, 2)
    assert (captions.expected, driver._undescribed_bytes, driver._shard_writer._unsharded_bytes) == ([10], 0, 240)


@pytest.mark.usefixtures("_packs_nothing")
def test_what_waits_for_its_descriptions_goes_into_no_shard(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    captions, seen = Captions(), list[tuple[int, int]]()

    def step() -> None:
        seen.append((len(state.parts_to_describe()), state.unsharded()[0]))
        described(captions)

    captions.step = step
    working(state, Told(lambda job, number: done(job)), monkeypatch, captions).run()
    assert (seen, state.unsharded()) == ([(1, 0)], (1, 120))


@pytest.mark.usefixtures("_packs_nothing")
def test_a_video_of_which_nothing_was_described_fails_and_its_part_goes(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    captions = Captions()
    described(captions, failure="It says no.")
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch, captions, disk_budget=1)
    told = driver.run()
    assert (told.done, told.failures, list((state.home / "parts").iterdir())) == (0, {"caption": 1}, [])
    assert not driver._is_full, "what it held on the disk is free"


@pytest.mark.usefixtures("_packs_nothing")
def test_parts_that_waited_when_an_earlier_run_ended_are_described_first(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    state.record_extracted(1, rows=3, size_bytes=100, length_s=1.0, youtube_id=None, ready=False)
    captions = Captions()
    described(captions)
    executor = Told(lambda job, number: done(job))
    told = working(state, executor, monkeypatch, captions).run()
    assert (told.done, [one.key for one in captions.given], executor.given) == (1, ["a"], [])


@pytest.mark.usefixtures("_packs_nothing")
def test_no_more_is_extracted_than_the_disk_has_room_for_while_nothing_is_described(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state, files(*"bcdef"))
    captions, looks = Captions(), list[tuple[int, int]]()
    executor = Told(lambda job, number: [] if job.item.key == "a" else done(job))

    def step() -> None:
        looks.append((len(captions.given), captions.handed_in))
        if len(looks) == 10:
            executor._found.append(done(executor.given[0]))
            described(captions)

    captions.step = step
    driver = working(state, executor, monkeypatch, captions, disk_budget=300)
    assert driver.run().done == 6
    parts, handed_in = looks[9]
    assert parts == 3
    assert handed_in > 0, "what is collected has to go then, though a video is at work"


@pytest.mark.usefixtures("_packs_nothing")
def test_a_batch_is_handed_in_when_no_more_parts_are_to_come(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, files("b"))
    captions, handed_in = Captions(), list[tuple[int, int]]()
    executor = Told(lambda job, number: done(job))
    monkeypatch.setattr(captions, "submit_batches", lambda: handed_in.append((len(executor.given), len(captions.given))))
    looks: list[int] = []

    def step() -> None:
        looks.append(1)
        if len(looks) > 5:
            described(captions)

    captions.step = step
    working(state, executor, monkeypatch, captions).run()
    assert set(handed_in) == {(2, 2)}


@pytest.mark.usefixtures("_packs_nothing")
def test_what_captions_cost_and_that_they_rest_is_in_the_state_even_where_the_money_ends(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    captions, bar, behind = Captions(), Bar(), list[str]()
    state.put(CAPTIONS_REST, [1.0, 2.0, "of a run that was killed"])
    rests: list[object] = []

    def step() -> None:
        if not rests:
            captions.pause = OutagePause(1000.0, 60.0, "It is busy.")  # type: ignore[assignment]
            captions.paid = CostSoFar(1.5, 99)
            captions.config.answered = True
        else:
            behind.append(bar.behind())
            captions.pause, captions.error = None, BudgetError("It is spent.")
        rests.append(state.get(CAPTIONS_REST))

    captions.step = step
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch, captions, bar)
    with pytest.raises(BudgetError):
        driver.run()
    assert rests == [None, [1000.0, 60.0, "It is busy."]]
    assert behind == ["$1.50, captions rest"]
    assert (state.get("spent"), state.get("captions_answered"), state.get(CAPTIONS_REST)) == ([1.5, 99], True, None)
    assert state.totals()["usd"] == 1.5


@pytest.mark.usefixtures("_packs_nothing")
def test_shards_of_which_a_new_generation_is_wanted_meanwhile_are_revised_in_the_same_run(
    state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch)
    wanted, rounds = [True, False], list[int]()
    monkeypatch.setattr(ShardRevisions, "refresh", lambda revisions: wanted.pop(0))
    monkeypatch.setattr(BatchDriver, "_work", lambda driver: rounds.append(len(wanted)))
    driver.run()
    assert rounds == [2, 1]


class OneRevision:
    """Stands in for `ShardRevisions`: one shard is to be written anew, with one video in it."""

    def __init__(self, video: UnpackedVideo) -> None:
        self.video, self.has_more, self.is_open = video, True, True
        self.finished: list[tuple[str, int]] = []
        self.unpacks: list[bool] = []
        self.written = 0

    def step(self, *, unpacks: bool) -> tuple[UnpackedVideo, ...]:
        self.unpacks.append(unpacks)
        if not (unpacks and self.has_more):
            return ()
        self.has_more = False
        return (self.video,)

    def has(self, key: str) -> bool:
        return key == self.video.key

    def finish(self, key: str, undescribed: int) -> UnpackedVideo:
        self.finished.append((key, undescribed))
        self.is_open, self.written = False, 1
        return self.video

    def refresh(self) -> bool:
        return self.is_open

    def summary(self) -> str:
        return "1 shard is written anew."


@pytest.mark.usefixtures("_packs_nothing")
def test_a_video_of_a_shard_is_described_again_and_stays_as_often_done_as_it_was(
    state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state.record_extracted(1, rows=3, size_bytes=100, length_s=1.0, youtube_id=None, ready=True)
    captions, bar, busy = Captions(), Bar(), list[int]()
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch, captions, bar, disk_budget=300)
    revisions = OneRevision(UnpackedVideo("z", tmp_path / "z.tar", "dogs", 300, 2))
    monkeypatch.setattr(driver, "_revisions", revisions)

    def step() -> None:
        busy.append(driver._undescribed_bytes)
        assert len(busy) < MOST_LOOKS, "the loop does not end"
        if len(busy) == 3:
            captions.found.append(Described("z", (("z:0001", "refusal", "no"),), 400, None))

    captions.step = step
    told = driver.run()
    assert captions.given == [CaptionTask("z", tmp_path / "z.tar", "dogs")]
    assert (busy, driver._undescribed_bytes) == ([0, 300, 300], 0), "it has its room on the disk until then"
    assert revisions.finished == [("z", 1)]
    assert revisions.unpacks[:2] == [True, False], "the disk has room for no more"
    assert (told.done, told.undescribed, bar.advanced, driver.changed) == (1, 0, 0, True)
    assert bar.notes == ["1 shard is written anew."]


@pytest.mark.usefixtures("_packs_nothing")
@pytest.mark.parametrize(("keyframes", "expected"), [(5, 7), ("auto", 14)])
def test_what_is_described_again_counts_among_the_keyframes_to_come(
    keyframes: Any, expected: int, state: StateDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = [UndescribedKeyframe("z", f"z:000{number}", "refusal", "no") for number in (1, 2)]
    state.adopt_shard(0, [("z", 3, None, 1.0)], size_bytes=10, rows=3, undescribed=left)
    state.request_descriptions()
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch, Captions())
    choices = driver.choices
    driver.choices = BatchConfig(choices.batch, ExtractSettings(keyframes=keyframes), choices.captioning)
    assert driver._expected_keyframes(1) == expected
    driver.choices = BatchConfig(choices.batch, choices.extraction, CaptionSettings(engine="offline"))
    assert driver._expected_keyframes(1) == 2, "those that a worker measures cost nothing"


@pytest.mark.usefixtures("_packs_nothing")
def test_the_vocabulary_says_what_a_video_is_about_where_the_list_does_not(
    state: StateDatabase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(state, [ListItem("b", "file", "/b.mp4", "2", ("7",)), ListItem("c", "file", "/c.mp4", "3", ("7",), topic="a race")])
    captions, executor = Captions(), Told(lambda job, number: done(job))
    described(captions)
    working(state, executor, monkeypatch, captions, vocabulary=vocabulary_file(tmp_path)).run()
    topics = {one.key: one.topic for one in captions.given}
    assert topics == {job.item.key: job.item.topic for job in executor.given}
    assert (topics["a"], topics["c"]) == (None, "a race")
    assert topics["b"] is not None
    assert topics["b"].startswith("Car")


def test_a_row_that_names_no_video_is_no_work(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    state.record_failure(1, "missing", "gone")
    list(state.add([BadRow("???", "list.txt, line 7", "no video")]))
    driver = working(state, Told(lambda job, number: done(job)), monkeypatch)
    driver.run()
    assert not driver.changed
    assert state.get("card_is_due") is None
