"""One run folder, or folder of pictures, while its keyframes are described.

In: keyframes.jsonl, what earlier runs described, and the outcomes. Out: the tasks that are left, and in the end descriptions.jsonl in
the order of the keyframes. Rows are read and written one by one: only where each lies is kept in memory. A row is in the journal
before its keyframe counts as done, so that a killed run loses nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from vip import files, store
from vip.captioning.describe import DeferredKeyframe, DescribedKeyframe, KeyframeTask, Outcome
from vip.captioning.describer import CaptionFingerprint, fingerprint_of
from vip.captioning.estimate import SampleKeyframe
from vip.errors import UsageError
from vip.llm.budget import Usage, dollars
from vip.records import Description, Failure, Keyframe, Manifest, Record
from vip.store import KeyframePicture, Run
from vip.wording import counted, option
from vip.words.picture_text import text_by_keyframe
from vip.words.run_words import words_by_keyframe

OFFLINE = "offline"  # the engine that measures
FIRST_FAILURES = 3  # kept for the message; the others are in failures.jsonl


class _PaidDescription(NamedTuple):
    """A description's fingerprint and its cost."""

    fingerprint: CaptionFingerprint
    usd: float


class DescribedFolder:
    """A folder whose keyframes are being described. Open it, describe its `tasks`, `add` their outcomes, finish it.

    Args:
        fingerprint: how descriptions are made now; those that were made otherwise do not count as done.
        detector: who looked for objects; None when nobody did.
        failures: pictures that could not even be listed.
        keeps_asked: what an engine was asked for counts as done, however it was made.
    """

    def __init__(
        self,
        path: Path,
        fingerprint: CaptionFingerprint,
        *,
        detector: str | None,
        failures: tuple[Failure, ...] = (),
        keeps_asked: bool = False,
    ) -> None:
        self.path, self.fingerprint, self.detector = path, fingerprint, detector
        self.unreadable = failures
        self.second_look_failures: list[Failure] = []
        """Of `--verify`: the keyframes are described, and their marked claims stay as they are."""
        self.keeps_asked = keeps_asked
        self.manifest: Manifest | None = store.load_run(path).manifest
        self.keyframes = store.count_rows(path / store.KEYFRAMES)
        self._seen = self._stamps()
        self.described = self.had = len(self._described_ids())
        self.had_journal = (path / store.JOURNAL).exists()
        self.changed = False
        self.failed = 0
        self.deferred: list[bytes] = []
        """Questions that wait for a batch."""
        self.failures: list[Failure] = []
        self.usage = Usage()
        self.is_finished = False
        self._stack = ExitStack()
        self._append: Callable[[Record], None] | None = None
        self._log: Callable[[Record], None] | None = None

    @property
    def todo(self) -> int:
        return self.keyframes - self.described

    def _rows(self) -> Iterator[Description]:
        for name in (store.DESCRIPTIONS, store.JOURNAL):
            path = self.path / name
            if path.exists():
                yield from store.read_rows(path, Description, torn_end=name == store.JOURNAL)

    def _stamps(self) -> list[tuple[int, int]]:
        """Return times and sizes that change when the descriptions do."""
        stats = [path.stat() for name in (store.DESCRIPTIONS, store.JOURNAL) if (path := self.path / name).exists()]
        return [(stat.st_mtime_ns, stat.st_size) for stat in stats]

    def _is_done(self, row: Description) -> bool:
        """Return whether a description need not be made again."""
        return fingerprint_of(row) == self.fingerprint or (self.keeps_asked and is_by_model(row))

    def _described_ids(self) -> set[str]:
        """Return the keyframes that need no description; rows without a keyframe do not count."""
        done = {row.keyframe_id for row in self._rows() if self._is_done(row)}
        return done & {row.id for row in store.read_rows(self.path / store.KEYFRAMES, Keyframe)} if done else done

    @property
    def _other_descriptions(self) -> dict[str, _PaidDescription]:
        """Return the keyframes that a model described in another way."""
        found: dict[str, _PaidDescription] = {}
        fingerprints: dict[CaptionFingerprint, CaptionFingerprint] = {}
        for row in self._rows():  # a later one stands in the place of an earlier one
            fingerprint = fingerprint_of(row)
            if is_by_model(row) and fingerprint != self.fingerprint:
                found[row.keyframe_id] = _PaidDescription(
                    fingerprints.setdefault(fingerprint, fingerprint), sum(call.usd or 0.0 for call in row.calls)
                )
            else:
                found.pop(row.keyframe_id, None)
        return found

    def check(self, overwrite: bool) -> None:
        """Refuse to put descriptions in the place of those that an engine was asked for. Measured ones give way to any.

        Raises:
            UsageError: some were made otherwise, and they are not to be overwritten.
        """
        others = {} if self.keeps_asked or overwrite else self._other_descriptions
        if not others:
            return
        first = next(iter(others.values())).fingerprint
        if self.fingerprint.engine == OFFLINE:
            raise UsageError(
                f"{self.path} holds {_describe_cost(others.values())}, which {option('engine', OFFLINE)} would replace."
                f" Leave it out to keep them, or add {option('overwrite')} to lose them."
            )
        was, now = (
            _name_differences(first, self.fingerprint, "other prompts"),
            _name_differences(self.fingerprint, first, "these prompts"),
        )
        raise UsageError(f"{self.path} is described by {was}, and now {now} is asked. Add {option('overwrite')} to describe it again.")

    @property
    def kept_note(self) -> str:
        """Return a note where descriptions of another engine are kept; else ""."""
        others = self._other_descriptions if self.keeps_asked else {}
        return f"{self.path} keeps its {_describe_cost(others.values())}." if others else ""

    # ------------------------------------------------------------ while it is described

    def open(self) -> None:
        """Lock the folder and open its files for writing.

        Raises:
            StoreError: it cannot be written to, or another process works in it.
        """
        store.make_folder(self.path)
        self._stack.enter_context(store.in_use(self.path))
        if self._stamps() != self._seen:  # another process was here, or an earlier round
            self.described, self._seen = len(self._described_ids()), self._stamps()
        files.remove(self.path / store.FAILURES)
        self._append = self._stack.enter_context(store.appending(self.path / store.JOURNAL, durable=False))
        self._log = self._stack.enter_context(store.appending(self.path / store.FAILURES, durable=False))
        for failure in self.unreadable:
            self._fail(failure)
        for failure in self.second_look_failures:
            self._log(failure)

    def start_round(self) -> None:
        """Begin another round: what waited for a batch may be there now."""
        self.close()
        self.failed = 0
        self.deferred.clear()
        self.failures.clear()
        self.is_finished = False

    def append(self, row: Description) -> None:
        """Put a description into the journal."""
        if self._append is None:
            raise RuntimeError("the folder is not open")
        if not self.changed:
            files.remove(self.path / store.REPORT)  # it no longer shows what is here; the command ends with a new one
        self._append(row)
        self.changed = True

    def items(self) -> Iterator[KeyframePicture]:
        """Return the keyframes, one by one."""
        return (KeyframePicture(row, self.path) for row in store.read_rows(self.path / store.KEYFRAMES, Keyframe))

    def first(self, count: int) -> list[SampleKeyframe]:
        """Return the first keyframes with their words and texts."""
        run = Run(self.path)
        read, said, texts = words_by_keyframe(run, "subtitles"), words_by_keyframe(run, "speech"), text_by_keyframe(run)
        return [
            SampleKeyframe(item, self.detector, read.get(item.id), texts.get(item.id, ()), said.get(item.id))
            for item in islice(self.items(), count)
        ]

    def rows_in_order(self) -> Iterator[tuple[KeyframePicture, Description]]:
        """Return the keyframes with the descriptions that are made as now, one by one."""
        self._merge()
        rows = store.read_rows(self.path / store.DESCRIPTIONS, Description)
        row = next(rows, None)
        for item in self.items():
            if row is not None and row.keyframe_id == item.id:
                if self._is_done(row):
                    yield item, row
                row = next(rows, None)

    def tasks(self, *, with_known: bool) -> Iterator[KeyframeTask]:
        """Yield what is left to do, in the order of the keyframes.

        Args:
            with_known: also what is done, for the captions before a keyframe.
        """
        known = {row.keyframe_id: row for row in self._rows() if self._is_done(row)} if with_known else {}
        done = set(known) if with_known else self._described_ids()
        previous, digest = None, self.fingerprint.words
        run = Run(self.path)
        around, said, texts = words_by_keyframe(run, "subtitles"), words_by_keyframe(run, "speech"), text_by_keyframe(run)
        for number, row in enumerate(store.read_rows(self.path / store.KEYFRAMES, Keyframe), 1):
            item = KeyframePicture(row, self.path)
            if with_known or row.id not in done:
                told = (around.get(row.id), digest, texts.get(row.id, ()), said.get(row.id))
                yield KeyframeTask(item, previous, number, self.keyframes, self.detector, self.usage, known.get(row.id), *told)
            previous = item

    def add(self, outcome: Outcome) -> None:
        """Write the outcome of a task."""
        if isinstance(outcome, DescribedKeyframe):
            self.append(outcome.description)
            self.described += 1
        elif isinstance(outcome, DeferredKeyframe):
            self.deferred.append(outcome.question)
        else:
            self._fail(outcome.failure)

    def add_second_look_failure(self, failure: Failure) -> None:
        """Write the failure of a second look; its keyframe counts as described."""
        self.second_look_failures.append(failure)
        if self._log:
            self._log(failure)

    def _fail(self, failure: Failure) -> None:
        if self._log:
            self._log(failure)
        self.failed += 1
        if len(self.failures) < FIRST_FAILURES:
            self.failures.append(failure)

    @property
    def is_over(self) -> bool:
        """Return whether every keyframe was tried."""
        return self.described + self.failed - len(self.unreadable) + len(self.deferred) >= self.keyframes

    @property
    def is_open(self) -> bool:
        return self._append is not None

    def close(self) -> None:
        self._append = self._log = None
        self._stack.close()

    def is_noted(self, captioning: dict[str, Any]) -> bool:
        """Return whether nothing is left to write, since an earlier run did all of this."""
        known = self.manifest is None or (self.manifest.captioning or {}).keys() == captioning.keys()
        return known and not (self.changed or self.had_journal or self.usage.requests)

    @property
    def spent_in_all(self) -> dict[str, Any]:
        """Return what this and earlier runs used for the descriptions that are there, if these were made in the same way."""
        words = (self.manifest.captioning or {}).get("spent") if self.manifest and self.had else None
        before = {name: value for name, value in words.items() if isinstance(value, int | float)} if isinstance(words, dict) else {}
        now = asdict(self.usage)
        return {name: round(value + before.get(name, 0), 6) for name, value in now.items()}

    def finish(self) -> None:
        """Write the descriptions in the order of the keyframes, and drop the journal."""
        self.close()
        self._merge()
        files.remove(self.path / store.JOURNAL)

    def _merge(self) -> None:
        store.merge_rows(
            self.path / store.DESCRIPTIONS,
            [self.path / store.DESCRIPTIONS, self.path / store.JOURNAL],
            Description,
            key=lambda row: row.keyframe_id,
            order=(row.id for row in store.read_rows(self.path / store.KEYFRAMES, Keyframe)),
        )


def is_by_model(row: Description) -> bool:
    """Return whether a model was asked for a description, which takes time or money; those of `offline` are measured."""
    return row.engine != OFFLINE


def _describe_cost(asked: Collection[_PaidDescription]) -> str:
    """Return `12 descriptions by openai:gpt-5.4-mini ($0.04)`."""
    usd = sum(one.usd for one in asked)
    paid = f" ({dollars(usd)})" if usd else ""
    return f"{counted(len(asked), 'description')} by {', '.join(sorted({one.fingerprint.engine for one in asked}))}{paid}"


def _name_differences(fingerprint: CaptionFingerprint, other: CaptionFingerprint, prompts: str) -> str:
    """Return the engine, and of the rest what differs."""
    differs = {name for name in CaptionFingerprint._fields if getattr(fingerprint, name) != getattr(other, name)}
    topic = f"topic {fingerprint.topic!r}" if fingerprint.topic else "no topic"
    fields = {
        "recipe": f"recipe {fingerprint.recipe}",
        "schema": f"schema {fingerprint.schema}",
        "language": fingerprint.language,
        "context": f"context {fingerprint.context}",
        "topic": topic,
        "words": "with words" if fingerprint.words else "without these words",
    }
    more = [words for name, words in fields.items() if name in differs] + [prompts] * (differs == {"prompts"})
    return f"{fingerprint.engine} ({', '.join(more)})" if more else fingerprint.engine
