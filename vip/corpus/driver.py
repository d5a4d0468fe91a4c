"""The loop of a batch: assign items to workers, have their parts described and packed into shards, and record every result.

In: a state with waiting items. Out: the same state without any, and shards in the output.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from vip import store
from vip.corpus.failures import FailuresFile
from vip.corpus.queue import ItemQueue
from vip.corpus.retries import Retries
from vip.corpus.settings import BatchConfig
from vip.corpus.state import SPENT, ItemEntry, StateDatabase
from vip.corpus.state_dir import PARTS
from vip.corpus.status import CAPTIONS_REST, BatchStatus, duration, status_of
from vip.corpus.workers.caption_client import CaptionClient, CaptionTask, Described
from vip.corpus.workers.pool import Downloaded, Event, Executor, ItemDone, ItemFailed
from vip.corpus.workers.shard_revisions import ShardRevisions
from vip.corpus.workers.shard_writer import ShardWriter
from vip.corpus.workers.worker import WorkItem, part_path
from vip.protocols import Observer
from vip.wording import counted

if TYPE_CHECKING:
    from vip.corpus.inputs.vocabulary import Vocabulary
    from vip.llm.outage import OutagePause

TICK_S = 0.1  # the longest wait for an event
COMMIT_S = 0.5  # a killed driver loses so much at most, and does it again
MOST_LOSSES = 5  # of machines, before the item counts as the cause
IDLE_NOTE_S = 60.0  # between two notes that all remaining items wait for another try
USUAL_KEYFRAMES = 12  # of a video with `--keyframes auto`, for the estimated cost of captions
CAPTIONS_ANSWERED = "captions_answered"  # in the state: the model server's address is right
CARD_IS_DUE = "card_is_due"  # in the state: the data set has changed since its card was written


@dataclass(slots=True)
class BatchDriver:
    """One run of a batch.

    Args:
        start: starts the executor, when there is work; called with whether something is to be fetched.
        captions: None if no model is asked for captions.
    """

    state: StateDatabase
    out: str
    choices: BatchConfig
    observer: Observer
    start: Callable[[bool], Executor]
    captions: CaptionClient | None = None
    _queue: ItemQueue = field(init=False)
    _retries: Retries = field(init=False)
    _shard_writer: ShardWriter = field(init=False)
    _revisions: ShardRevisions = field(init=False)
    _failures: FailuresFile = field(init=False)
    _executor: Executor | None = field(init=False, default=None)
    _topics: Vocabulary | None = field(init=False, default=None)
    _assigned: dict[int, ItemEntry] = field(init=False, default_factory=dict)
    _fetching: set[int] = field(init=False, default_factory=set)
    """Items that occupy a download slot of their host."""
    _describing: dict[str, tuple[ItemEntry, int]] = field(init=False, default_factory=dict)
    """Items whose parts wait for their descriptions, with the bytes of each, by their keys."""
    _undescribed_bytes: int = field(init=False, default=0)
    _noted_pause: OutagePause | None = field(init=False, default=None)
    _noted_answer: bool = field(init=False, default=False)
    _noted_change: bool = field(init=False, default=False)
    _committed: float = field(init=False, default=0.0)
    _done: int = field(init=False, default=0)
    _failed: int = field(init=False, default=0)
    _noted_idle: float = field(init=False, default=-math.inf)
    _advance: Callable[[], None] = field(init=False, default=lambda: None)

    def __post_init__(self) -> None:
        settings = self.choices.batch
        store.make_folder(self.state.home / PARTS)
        self._queue = ItemQueue(self.state, settings.per_host)
        self._retries = Retries(self.state, self._queue, settings.retry_wait, self.observer)
        self._shard_writer = ShardWriter(self.state, self.out, settings.shards, settings.shard_size)
        self._revisions = ShardRevisions(self.state, self.out, self.observer.note)
        self._failures = FailuresFile(self.state, self.out)
        if settings.caption and settings.vocabulary:
            from vip.corpus.inputs.vocabulary import load_vocabulary

            self._topics = load_vocabulary(settings.vocabulary)

    # ------------------------------------------------------------ the loop

    def run(self) -> BatchStatus:
        """Do all waiting items. Return the final status.

        Raises:
            VipError: nothing more can be done; the state is intact.
        """
        self.state.put(CAPTIONS_REST, None)  # of a killed run
        try:
            waiting = status_of(self.state, self.out, None).waiting
            if waiting:
                self._executor = self.start(self.state.has_downloads())
            if self.captions and (expected := self._expected_keyframes(waiting)):
                self.captions.expect(expected)
            with self.observer.track("Videos", waiting, self._progress_details) as self._advance:
                self._resume_captions()
                self._work()
                while self._shard_writer.lost or self._revisions.refresh():
                    self._work()
            if self._revisions.written:
                self.observer.note(self._revisions.summary())
        finally:
            if self.changed:
                self.state.put(CARD_IS_DUE, True)
            self.state.commit()
            self._failures.write()
        return status_of(self.state, self.out, None)

    def _expected_keyframes(self, videos: int) -> int:
        """Return how many keyframes a model will be asked about, for the estimated cost."""
        count = self.choices.extraction.keyframes
        each = count if count != "auto" else USUAL_KEYFRAMES
        return (videos * each if self.choices.asked else 0) + self.state.keyframes_to_describe()

    def _work(self) -> None:
        """Do all items, then write the last shards."""
        if self._shard_writer.lost:
            self._requeue_lost()
        while self._has_work():
            self._step()
        self.state.commit()
        while self._shard_writer.step(TICK_S, last=True):
            pass

    def _requeue_lost(self) -> None:
        """Queue the items whose parts were lost in a power cut."""
        for entry in self._shard_writer.lost:
            self._queue.put_back(entry)
        self._shard_writer.lost.clear()
        self._executor = self._executor or self.start(self.state.has_downloads())

    def _step(self) -> None:
        if self._shard_writer.lost:
            self._requeue_lost()
        self._assign_items()
        if self.captions and (self._is_full or not (self._assigned or self._revisions.has_more)):
            self.captions.submit_batches()
        self._note_idle()
        for event in self._wait():
            self._handle(event)
        self._collect_captions()
        self._revise_shards()
        self._commit_regularly()
        self._shard_writer.step()

    def _has_work(self) -> bool:
        busy = self._assigned or self._describing or self._revisions.is_open
        return bool(busy) or self._queue.has_more() or self.state.next_due() is not None

    def _wait(self) -> list[Event]:
        if self._executor is not None:
            return self._executor.events(TICK_S)
        time.sleep(TICK_S)
        return []

    def _commit_regularly(self) -> None:
        if time.monotonic() > self._committed + COMMIT_S:
            if self.changed and not self._noted_change:
                self.state.put(CARD_IS_DUE, True)
                self._noted_change = True
            self.state.commit()
            self._committed = time.monotonic()
            self._failures.write_if_due()

    def _progress_details(self) -> str:
        """Return the text behind the progress bar."""
        failed = f"{self._failed:,} failed" if self._failed else ""
        spent = f"${self.captions.paid.usd:.2f}" if self.captions and self.captions.paid.usd else ""
        paused = "captions rest" if self.captions and self.captions.pause else ""
        retries = "waiting for another try" if self._is_idle and self.state.next_due() is not None else ""
        return ", ".join(filter(None, (failed, spent, paused, retries)))

    @property
    def _is_idle(self) -> bool:
        return not (self._assigned or self._describing or self._revisions.is_open)

    def _note_idle(self) -> None:
        """Note why nothing happens: all remaining items have failed and wait for another try."""
        now = time.monotonic()
        if not self._is_idle or now < self._noted_idle + IDLE_NOTE_S or (due := self.state.next_due()) is None:
            return
        kinds = self.state.retry_counts()
        why = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        left = duration(max(0.0, due - time.time()))
        videos = counted(sum(kinds.values()), "video waits", "videos wait")
        self.observer.note(f"{videos} for another try ({why}), the first for {left}.")
        self._noted_idle = now

    @property
    def changed(self) -> bool:
        """Whether this run changed the data set."""
        return bool(self._done or self._failed or self._revisions.written)

    def close(self) -> None:
        """End all processes at once; the next run does again what is not recorded."""
        for part in (self._executor, self.captions, self._shard_writer, self._revisions):
            if part is not None:
                part.close()

    # ------------------------------------------------------------ assigning

    def _assign_items(self) -> None:
        """Assign items to idle workers while the output queues have room."""
        if self._executor is None or self._is_full:
            return
        while entry := self._queue.next(self._has_capacity):
            self._assigned[entry.id] = entry
            if entry.item.host:
                self._fetching.add(entry.id)
            item = replace(entry.item, topic=self._topic(entry))
            self._executor.submit(WorkItem(entry.id, item))

    @property
    def _is_full(self) -> bool:
        """Whether so many parts wait here that no more should come."""
        return self._shard_writer.is_full or self._undescribed_bytes >= self.choices.batch.disk_budget

    def _has_capacity(self, fetch: bool) -> bool:
        return self._executor is not None and self._executor.has_capacity(fetch=fetch)

    def _topic(self, entry: ItemEntry) -> str | None:
        return entry.item.topic or (self._topics.topic_of(entry.item.labels) if self._topics else None)

    # ------------------------------------------------------------ events

    def _handle(self, event: Event) -> None:
        entry = self._assigned[event.id]
        if entry.id in self._fetching:
            self._fetching.remove(entry.id)
            self._queue.free_slot(entry)
        if isinstance(event, Downloaded):
            return
        del self._assigned[entry.id]
        if isinstance(event, ItemDone):
            self._queue.release(entry)
            self._retries.record_success(entry.item.host)
            self._record_part(entry, event)
        elif isinstance(event, ItemFailed):
            self._queue.release(entry)
            if self._retries.record_failure(entry, event.kind, event.message, event.retry_after_s):
                self._count_failure()
        elif self.state.record_loss(entry.id) < MOST_LOSSES:
            self._queue.put_back(entry)
        else:
            self.state.record_failure(entry.id, "crash", f"The machines that worked on it were lost {MOST_LOSSES} times.")
            self._count_failure()

    def _record_part(self, entry: ItemEntry, event: ItemDone) -> None:
        info, part = event.info, part_path(self.state.home, entry.item.key)
        if isinstance(event.part, bytes):
            with store.replacing(part) as file:
                file.write(event.part)
        if info.youtube_id and (twin := self.state.duplicate_of(entry.id, info.youtube_id)):
            part.unlink()
            self.state.record_failure(entry.id, "duplicate", f"{info.youtube_id} is the same video as {twin}.")
            self._count_failure()
            return
        asked = self.choices.asked is not None
        self.state.record_extracted(
            entry.id, rows=info.rows, size_bytes=info.size_bytes, length_s=info.length_s, youtube_id=info.youtube_id, ready=not asked
        )
        self.state.record_undescribed(entry.id, info.undescribed)
        if asked:
            self._ask_for_captions(entry, info.size_bytes)
        else:
            self._finish(info.size_bytes)

    def _finish(self, size_bytes: int) -> None:
        self._shard_writer.add_part(size_bytes)
        self._done += 1
        self._advance()

    def _count_failure(self) -> None:
        self._failed += 1
        self._advance()

    # ------------------------------------------------------------ captions

    def _resume_captions(self) -> None:
        """Describe the parts that an earlier run left without captions."""
        for entry, size_bytes in self.state.parts_to_describe():
            self._ask_for_captions(entry, size_bytes)

    def _ask_for_captions(self, entry: ItemEntry, size_bytes: int) -> None:
        assert self.captions is not None
        self._describing[entry.item.key] = entry, size_bytes
        self._undescribed_bytes += size_bytes
        self.captions.submit(CaptionTask(entry.item.key, part_path(self.state.home, entry.item.key), self._topic(entry)))

    def _collect_captions(self) -> None:
        if self.captions is None:
            return
        try:
            found = self.captions.events()
        finally:
            self._note_captions(self.captions)
        for event in found:
            self._record_descriptions(event)

    def _note_captions(self, captions: CaptionClient) -> None:
        """Record the cost, and whether the model server answers, for the next run and `--status`."""
        if captions.paid.usd or captions.paid.tokens:
            self.state.put(SPENT, captions.paid)
        if captions.config.answered and not self._noted_answer:
            self.state.put(CAPTIONS_ANSWERED, True)
            self._noted_answer = True
        if captions.pause != self._noted_pause:
            self.state.put(CAPTIONS_REST, captions.pause)
            self._noted_pause = captions.pause

    def _revise_shards(self) -> None:
        """Describe again the keyframes in shards that have no description."""
        if self.captions is None:
            return
        for video in self._revisions.step(unpacks=not self._is_full):
            self._undescribed_bytes += video.size_bytes
            self.captions.submit(CaptionTask(video.key, video.path, video.topic))

    def _record_descriptions(self, event: Described) -> None:
        if self._revisions.has(event.key):
            self._undescribed_bytes -= self._revisions.finish(event.key, len(event.undescribed)).size_bytes
            return
        entry, size_bytes = self._describing.pop(event.key)
        self._undescribed_bytes -= size_bytes
        if event.failure is not None:
            self.state.record_failure(entry.id, "caption", event.failure)
            part_path(self.state.home, entry.item.key).unlink(missing_ok=True)
            self._count_failure()
            return
        self.state.record_described(entry.id, size_bytes=event.size_bytes)
        self.state.record_undescribed(entry.id, event.undescribed)
        self._finish(event.size_bytes)
