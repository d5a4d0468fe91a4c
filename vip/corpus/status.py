"""The progress of a batch: counts, rates, failures by type, dollars, time left; while it runs and after."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from vip.captioning.in_batches import jobs_in
from vip.corpus.inputs.rows import shown
from vip.corpus.state import EXTRACTED, FAILED, LATER, READY, SHARDED, UNCHOSEN, WAITING, StateDatabase
from vip.corpus.state_dir import existing_home, running_pid
from vip.errors import FailureKind, StoreError
from vip.html.format import file_size
from vip.llm.outage import OutagePause
from vip.records import Record
from vip.untrusted import DAMAGE, one_line
from vip.wording import counted

RATE_OVER_S = 600.0
MOST_KIND_LETTERS = 60  # of the type of a failure
CAPTIONS_REST = "captions_rest"  # in the state: while the model server is not asked
BATCHES = "captions"  # folder in the state with the batches of questions at the model server


class ServerBatch(Record):
    """A batch of questions."""

    status: str
    """`written`, then the model server's words; or that another machine submitted it."""
    job: str | None
    """The model server's name for it; None before it is submitted."""
    requests: int
    done: int
    """Including failed ones."""
    created_utc: str


class BatchStatus(Record):
    """The output of `vip batch --status`."""

    out: str
    process: int | None
    """The process that works on it now; None if none does."""
    chosen: int
    not_chosen: int
    bad_rows: int
    done: int
    failed: int
    waiting: int
    """Including those to be tried again."""
    again: int
    again_in_s: float | None
    """When the next try is due."""
    undescribed_videos: int
    """Extracted, and waiting for their descriptions; part of `waiting`."""
    captions_rest_s: float | None = None
    """For how long the model server is not asked, because it is gone; None while it is asked."""
    captions_rest_why: str | None = None
    batches: tuple[ServerBatch, ...] = ()
    """Batches of questions at the Batch API whose answers are still to come, as last seen."""
    keyframes: int
    undescribed: int
    """Keyframes that could not be described."""
    shards: int
    shards_again: int = 0
    """Shards to be written anew with more descriptions."""
    not_in_shards: int
    """Videos that are done and in no shard yet."""
    bytes: int
    video_s: float
    """The length of the done videos."""
    failures: dict[str, int]
    usd: float
    tokens: int
    per_minute: float | None
    """Videos in the last ten minutes; None if nothing runs."""
    left_s: float | None

    @property
    def is_finished(self) -> bool:
        return self.waiting == 0 and self.not_in_shards == 0 and self.shards_again == 0


def status(out: str) -> BatchStatus:
    """Return the status of the batch with this output.

    Raises:
        InputError: there is none.
        StoreError: its state cannot be read.
    """
    home = existing_home(out)
    state = StateDatabase(home)
    try:
        return status_of(state, out, running_pid(home))
    except DAMAGE as exc:
        problem = one_line(str(exc))[:100]
        raise StoreError(f"{shown(out)}: the state of the batch is damaged ({problem}). Begin it anew with another -o.") from exc
    finally:
        state.close()


def status_of(state: StateDatabase, out: str, process: int | None) -> BatchStatus:
    """Return the status of an open state."""
    counts, totals = state.state_counts(), state.totals()
    failures = state.failure_counts()
    if strange := failures.keys() - get_args(FailureKind):
        raise ValueError(f"a failure of the type {str(strange.pop())[:MOST_KIND_LETTERS]}")
    waiting = sum(counts.get(each, 0) for each in (WAITING, LATER, EXTRACTED))
    done = counts.get(READY, 0) + counts.get(SHARDED, 0)
    now, due = time.time(), state.next_due()
    rest = OutagePause(*pause) if process and (pause := state.get(CAPTIONS_REST)) else None
    rate, ending = _rates(state, now) if process else (None, None)
    return BatchStatus(
        out=shown(out),
        process=process,
        chosen=done + waiting + counts.get(FAILED, 0),
        not_chosen=counts.get(UNCHOSEN, 0),
        bad_rows=sum(failures.values()) - counts.get(FAILED, 0),
        done=done,
        failed=counts.get(FAILED, 0),
        waiting=waiting,
        again=counts.get(LATER, 0),
        again_in_s=None if due is None else round(max(0.0, due - now), 1),
        undescribed_videos=counts.get(EXTRACTED, 0),
        captions_rest_s=None if rest is None else round(max(0.0, rest.until - now), 1),
        captions_rest_why=None if rest is None else rest.why,
        batches=tuple(_batches(state.home / BATCHES)),
        keyframes=int(totals["keyframes"]),
        undescribed=int(totals["undescribed"]),
        shards=state.shard_count(),
        shards_again=len(state.shards_to_revise()),
        not_in_shards=counts.get(READY, 0),
        bytes=int(totals["bytes"]),
        video_s=round(totals["video_s"], 3),
        failures=failures,
        usd=round(totals["usd"], 6),
        tokens=int(totals["tokens"]),
        per_minute=None if rate is None else round(60 * rate, 2),
        left_s=round(waiting / ending, 1) if ending else None,
    )


def _batches(home: Path) -> Iterator[ServerBatch]:
    for job in jobs_in(home):
        if job.is_open:
            done = job.completed + job.failed
            yield ServerBatch(status=job.status_text, job=job.job, requests=job.rows, done=done, created_utc=job.created_utc)


def _rates(state: StateDatabase, now: float) -> tuple[float | None, float | None]:
    """Return the videos completed and the videos finished at all a second, since this run began or in the last ten minutes."""
    began = max(state.get("began") or now, now - RATE_OVER_S)
    if now < began + 1:
        return None, None
    done, ended = state.finished_since(began)
    return done / (now - began), ended / (now - began)


def lines(batch: BatchStatus) -> list[str]:
    """Return the status for people."""
    share = 100 * (batch.done + batch.failed) / batch.chosen if batch.chosen else 100.0
    running = (
        f"process {batch.process} works on it"
        if batch.process
        else "finished"
        if batch.is_finished
        else "stopped; the same command goes on"
    )
    found = [
        f"{batch.out}: {running}",
        f"  videos     {batch.done:,} done, {batch.failed:,} failed, {batch.waiting:,} waiting of {batch.chosen:,} ({share:.1f} %)",
    ]
    if batch.not_chosen or batch.bad_rows:
        found.append(f"  list       {batch.not_chosen:,} not chosen, {counted(batch.bad_rows, 'bad row')}")
    if batch.again:
        found.append(f"  again      {batch.again:,} to be tried again, the first in {duration(batch.again_in_s or 0.0)}")
    found.append(
        f"  keyframes  {batch.keyframes:,} of {duration(batch.video_s)} of video,"
        f" {file_size(batch.bytes)} in {counted(batch.shards, 'shard')}"
    )
    if batch.not_in_shards:
        found[-1] += f" ({counted(batch.not_in_shards, 'video waits for its own', 'videos wait for theirs')})"
    if batch.shards_again:
        found[-1] += f", {counted(batch.shards_again, 'shard is', 'shards are')} to be written anew"
    if batch.undescribed_videos or batch.undescribed or batch.tokens:
        found.append(
            f"  captions   {counted(batch.undescribed_videos, 'video waits', 'videos wait')} for them, "
            f"{counted(batch.undescribed, 'keyframe')} could not be described, "
            f"${batch.usd:,.2f}, {counted(batch.tokens, 'token')}"
        )
    if batch.captions_rest_s is not None:
        found.append(f"  rest       captions, for another {duration(batch.captions_rest_s)}: {batch.captions_rest_why}")
    found += [
        f"  batch      {job.status}, {job.done:,} of {counted(job.requests, 'request')} done, "
        f"{job.job or 'not handed in yet'}, since {job.created_utc}"
        for job in batch.batches
    ]
    if batch.per_minute is not None:
        left = f", {duration(batch.left_s)} left" if batch.left_s is not None else ""
        found.append(f"  rate       {batch.per_minute:,.1f} videos a minute{left}")
    found += [f"  failed     {count:>8,}  {kind}" for kind, count in batch.failures.items()]
    return found


def duration(seconds: float) -> str:
    """Return a duration as `45 s`, `12 min`, `3.4 h` or `12.5 days`."""
    for unit, length, most in (("s", 1, 90), ("min", 60, 90), ("h", 3600, 48)):
        if seconds < most * length:
            value = seconds / length
            return f"{value:.0f} {unit}" if value >= 10 or unit == "s" else f"{value:.1f} {unit}"
    return f"{seconds / 86400:.1f} days"
