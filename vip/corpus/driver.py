"""The loop of a batch: hand items out, take up what became of them, and write that down.

In: a state in which items wait. Out: the same with nothing left that waits, and shards in the output.
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
from vip.corpus.state import ItemEntry, StateDatabase
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

TICK_S = 0.1  # between looks at what else has happened
COMMIT_S = 0.5  # a killed driver forgets so much at most, and does it again
LOSSES = 5  # of its machine, before an item counts as the cause
TELL_S = 60.0  # between two notes that all that is left waits
USUAL_KEYFRAMES = 12  # of a video that has as many as it needs, for what captions will cost
CAPTIONS_ANSWERED = "captions_answered"  # in the state: the captions server's address is right
CARD_IS_DUE = "card_is_due"  # in the state: the data set is another one than its card tells of


@dataclass(slots=True)
class BatchDriver:
    """One run of a batch.

    Args:
        start: makes those who do the work, when there is some; told whether something is to be fetched.
        captions: asks for descriptions; None where nobody wants any.
    """

    state: StateDatabase
    out: str
    choices: BatchConfig
    observer: Observer
    start: Callable[[bool], Executor]
    captions: CaptionClient | None = None
    _queue: ItemQueue = field(init=False)
    _retries: Retries = field(init=False)
    _packer: ShardWriter = field(init=False)
    _revisions: ShardRevisions = field(init=False)
    _failures: FailuresFile = field(init=False)
    _hands: Executor | None = field(init=False, default=None)
    _topics: Vocabulary | None = field(init=False, default=None)
    _at_work: dict[int, ItemEntry] = field(init=False, default_factory=dict)
    _fetching: set[int] = field(init=False, default_factory=set)
    """Items whose download takes a slot of their host."""
    _describing: dict[str, tuple[ItemEntry, int]] = field(init=False, default_factory=dict)
    """Items whose parts wait for their descriptions, by their keys, and the bytes of each."""
    _undescribed_bytes: int = field(init=False, default=0)
    _noted_rest: OutagePause | None = field(init=False, default=None)
    _noted_answer: bool = field(init=False, default=False)
    _noted_change: bool = field(init=False, default=False)
    _committed: float = field(init=False, default=0.0)
    _done: int = field(init=False, default=0)
    _failed: int = field(init=False, default=0)
    _told_idle: float = field(init=False, default=-math.inf)
    _advance: Callable[[], None] = field(init=False, default=lambda: None)

    def __post_init__(self) -> None:
        settings = self.choices.batch
        store.make_folder(self.state.home / PARTS)
        self._queue = ItemQueue(self.state, settings.per_host)
        self._retries = Retries(self.state, self._queue, settings.retry_wait, self.observer)
        self._packer = ShardWriter(self.state, self.out, settings.shards, settings.shard_size)
        self._revisions = ShardRevisions(self.state, self.out, self.observer.note)
        self._failures = FailuresFile(self.state, self.out)
        if settings.caption and settings.vocabulary:
            from vip.corpus.inputs.vocabulary import load_vocabulary

            self._topics = load_vocabulary(settings.vocabulary)

    # ------------------------------------------------------------ the loop

    def run(self) -> BatchStatus:
        """Until nothing waits any more.

        Raises:
            VipError: nothing more can be done; the state is whole.
        """
        self.state.put(CAPTIONS_REST, None)  # of a run that was killed
        try:
            waiting = status_of(self.state, self.out, None).waiting
            if waiting:
                self._hands = self.start(self.state.has_hosts())
            if self.captions and (expected := self._expected_keyframes(waiting)):
                self.captions.expect(expected)
            with self.observer.track("Videos", waiting, self._told) as self._advance:
                self._take_up()
                self._work()
                while self._packer.lost or self._revisions.refresh():
                    self._work()
            if self._revisions.written:
                self.observer.note(self._revisions.told())
        finally:
            if self.changed:
                self.state.put(CARD_IS_DUE, True)
            self.state.commit()
            self._failures.write()
        return status_of(self.state, self.out, None)

    def _expected_keyframes(self, videos: int) -> int:
        """To be asked about, for what that will cost."""
        count = self.choices.extraction.keyframes
        each = count if count != "auto" else USUAL_KEYFRAMES
        return (videos * each if self.choices.asked else 0) + self.state.undescribed_wanted()

    def _work(self) -> None:
        """Until nothing is left but to write the last shards; and write them."""
        if self._packer.lost:
            self._do_again()
        while self._goes_on():
            self._step()
        self.state.commit()
        while self._packer.step(TICK_S, last=True):
            pass

    def _do_again(self) -> None:
        """Hand out again what a power cut took."""
        for entry in self._packer.lost:
            self._queue.back(entry)
        self._packer.lost.clear()
        self._hands = self._hands or self.start(self.state.has_hosts())

    def _step(self) -> None:
        if self._packer.lost:
            self._do_again()
        self._hand_out()
        if self.captions and (self._is_full or not (self._at_work or self._revisions.has_more)):
            self.captions.hand_in()
        self._tell_what_waits()
        for event in self._wait():
            self._happened(event)
        self._take_captions()
        self._revise()
        self._keep()
        self._packer.step()

    def _goes_on(self) -> bool:
        busy = self._at_work or self._describing or self._revisions.is_open
        return bool(busy) or self._queue.has_more() or self.state.next_due() is not None

    def _wait(self) -> list[Event]:
        if self._hands is not None:
            return self._hands.events(TICK_S)
        time.sleep(TICK_S)
        return []

    def _keep(self) -> None:
        if time.monotonic() > self._committed + COMMIT_S:
            if self.changed and not self._noted_change:
                self.state.put(CARD_IS_DUE, True)
                self._noted_change = True
            self.state.commit()
            self._committed = time.monotonic()
            self._failures.keep()

    def _told(self) -> str:
        """What stands behind the progress bar."""
        failed = f"{self._failed:,} failed" if self._failed else ""
        spent = f"${self.captions.paid.usd:.2f}" if self.captions and self.captions.paid.usd else ""
        rest = "captions rest" if self.captions and self.captions.rest else ""
        waits = "waiting for another try" if self._is_idle and self.state.next_due() is not None else ""
        return ", ".join(filter(None, (failed, spent, rest, waits)))

    @property
    def _is_idle(self) -> bool:
        return not (self._at_work or self._describing or self._revisions.is_open)

    def _tell_what_waits(self) -> None:
        """Why nothing happens, where that is so for a while: everything else has failed and is tried again later."""
        now = time.monotonic()
        if not self._is_idle or now < self._told_idle + TELL_S or (due := self.state.next_due()) is None:
            return
        kinds = self.state.later()
        why = ", ".join(f"{count:,} {kind}" for kind, count in kinds.items())
        left = duration(max(0.0, due - time.time()))
        videos = counted(sum(kinds.values()), "video waits", "videos wait")
        self.observer.note(f"{videos} for another try ({why}), the first for {left}.")
        self._told_idle = now

    @property
    def changed(self) -> bool:
        """Whether this run did anything."""
        return bool(self._done or self._failed or self._revisions.written)

    def close(self) -> None:
        """End everything at once; what is not written down is done again."""
        for each in (self._hands, self.captions, self._packer, self._revisions):
            if each is not None:
                each.close()

    # ------------------------------------------------------------ handing out

    def _hand_out(self) -> None:
        """Give work to whoever has time for it, as long as what is done flows off."""
        if self._hands is None or self._is_full:
            return
        while entry := self._queue.next(self._takes):
            self._at_work[entry.id] = entry
            if entry.item.host:
                self._fetching.add(entry.id)
            item = replace(entry.item, topic=self._topic(entry))
            self._hands.submit(WorkItem(entry.id, item))

    @property
    def _is_full(self) -> bool:
        """So many parts lie here that no more should come."""
        return self._packer.is_full or self._undescribed_bytes >= self.choices.batch.disk_budget

    def _takes(self, fetch: bool) -> bool:
        return self._hands is not None and self._hands.has_capacity(fetch=fetch)

    def _topic(self, entry: ItemEntry) -> str | None:
        return entry.item.topic or (self._topics.topic_of(entry.item.labels) if self._topics else None)

    # ------------------------------------------------------------ what has happened

    def _happened(self, event: Event) -> None:
        entry = self._at_work[event.id]
        if entry.id in self._fetching:
            self._fetching.remove(entry.id)
            self._queue.fetched(entry)
        if isinstance(event, Downloaded):
            return
        del self._at_work[entry.id]
        if isinstance(event, ItemDone):
            self._queue.over(entry)
            self._retries.well(entry.item.host)
            self._extracted(entry, event)
        elif isinstance(event, ItemFailed):
            self._queue.over(entry)
            self._tried(self._retries.failed(entry, event.kind, event.message, event.retry_after_s))
        elif self.state.lost(entry.id) < LOSSES:
            self._queue.back(entry)
        else:
            self.state.failed(entry.id, "crash", f"The machines that worked on it were lost {LOSSES} times.")
            self._tried(True)

    def _extracted(self, entry: ItemEntry, event: ItemDone) -> None:
        facts, part = event.facts, part_path(self.state.home, entry.item.key)
        if isinstance(event.part, bytes):
            with store.replacing(part) as file:
                file.write(event.part)
        if facts.youtube_id and (twin := self.state.twin(entry.id, facts.youtube_id)):
            part.unlink()
            self.state.failed(entry.id, "duplicate", f"{facts.youtube_id} is the same video as {twin}.")
            self._tried(True)
            return
        asked = self.choices.asked is not None
        self.state.extracted(
            entry.id, rows=facts.rows, size_bytes=facts.size_bytes, length_s=facts.length_s, youtube_id=facts.youtube_id, ready=not asked
        )
        self.state.undescribed(entry.id, facts.undescribed)
        if asked:
            self._ask_for_captions(entry, facts.size_bytes)
        else:
            self._finished(facts.size_bytes)

    def _finished(self, size_bytes: int) -> None:
        self._packer.ready(size_bytes)
        self._done += 1
        self._advance()

    def _tried(self, for_good: bool) -> None:
        if for_good:
            self._failed += 1
            self._advance()

    # ------------------------------------------------------------ captions

    def _take_up(self) -> None:
        """Parts that waited for their captions when an earlier run ended."""
        for entry, size_bytes in self.state.to_describe():
            self._ask_for_captions(entry, size_bytes)

    def _ask_for_captions(self, entry: ItemEntry, size_bytes: int) -> None:
        assert self.captions is not None
        self._describing[entry.item.key] = entry, size_bytes
        self._undescribed_bytes += size_bytes
        self.captions.submit(CaptionTask(entry.item.key, part_path(self.state.home, entry.item.key), self._topic(entry)))

    def _take_captions(self) -> None:
        if self.captions is None:
            return
        try:
            found = self.captions.events()
        finally:
            self._note_captions(self.captions)
        for event in found:
            self._described(event)

    def _note_captions(self, captions: CaptionClient) -> None:
        """What the next run has to know, and `--status`."""
        if captions.paid.usd or captions.paid.tokens:
            self.state.put("spent", captions.paid)
        if captions.orders.answered and not self._noted_answer:
            self.state.put(CAPTIONS_ANSWERED, True)
            self._noted_answer = True
        if captions.rest != self._noted_rest:
            self.state.put(CAPTIONS_REST, captions.rest)
            self._noted_rest = captions.rest

    def _revise(self) -> None:
        """Describe again what could not be described of videos that are in shards."""
        if self.captions is None:
            return
        for part in self._revisions.step(unpacks=not self._is_full):
            self._undescribed_bytes += part.size_bytes
            self.captions.submit(CaptionTask(part.key, part.path, part.topic))

    def _described(self, event: Described) -> None:
        if self._revisions.has(event.key):
            self._undescribed_bytes -= self._revisions.described(event.key, len(event.undescribed)).size_bytes
            return
        entry, size_bytes = self._describing.pop(event.key)
        self._undescribed_bytes -= size_bytes
        if event.failure is not None:
            self.state.failed(entry.id, "caption", event.failure)
            part_path(self.state.home, entry.item.key).unlink(missing_ok=True)
            self._tried(True)
            return
        self.state.described(entry.id, size_bytes=event.size_bytes)
        self.state.undescribed(entry.id, event.undescribed)
        self._finished(event.size_bytes)
