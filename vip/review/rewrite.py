"""The third stage (section 3.3): an engine writes the dense captions again, from the fields that people corrected.

In: a review. Out: for each caption an action of `engine:NAME` in the log, with the caption before and after, as soon as its answer is
there. A caption is asked for where stage 2 calls the keyframe good, people changed its fields, nobody edited the caption since, and no
engine wrote it from these same fields. All captions of one call share a batch, `rewrite.VERSION.HASH.…` with those of the prompt, and
can be taken back as one. What the engine wrote first stays in its own files, and what anybody wrote stays in the log.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import TYPE_CHECKING
from uuid import uuid4

from vip.captioning.estimate import ANSWER_TOKENS, Estimate
from vip.captioning.run_async import run_async, task_group
from vip.captioning.session import CaptionSession, check_engine, open_session
from vip.errors import BackendError, ReplyError, UsageError
from vip.llm.client import EngineClient
from vip.records import Famous
from vip.review.fields import ENGINE, engine_reviewer, objects_of
from vip.review.items import ReviewItem
from vip.review.log import Action, NewAction
from vip.untrusted import one_line
from vip.wording import option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from vip.config import CaptionSettings
    from vip.protocols import Observer
    from vip.review.state import ReviewState

PROMPT = "rewrite"
FIELDS = tuple(Famous.model_fields)
WAITING = 64  # questions in flight, at most; the limiter of the engine may want fewer
SAMPLE_OF_COST = 8
DIGEST_LETTERS = 24


@dataclass(frozen=True, slots=True)
class FailedRewrite:
    """A caption that the engine did not write, and why."""

    item: str
    reason: str


@dataclass(slots=True)
class Rewriting:
    """What came of one call."""

    engine: str
    asked: int
    unchanged: int = 0
    """Of those written: the engine found nothing to change."""
    written: list[str] = field(default_factory=list)
    """The items whose new caption is in the log."""
    edited_meanwhile: list[str] = field(default_factory=list)
    """The items whose caption somebody edited before the answer came; it stays."""
    failed: list[FailedRewrite] = field(default_factory=list)


def items_to_rewrite(state: ReviewState) -> list[ReviewItem]:
    """Return the items whose captions are to be written again, in order."""
    return [item for item in state.index.items if state.is_corrected(item.id) and _is_older(state, item)]


def count_waiting(state: ReviewState) -> int:
    """Return how many items have corrected fields and an older caption, but no verdict good of the second stage yet."""
    return sum(not state.is_corrected(item.id) and _is_older(state, item) for item in state.index.items)


def rewrite_captions(
    state: ReviewState, settings: CaptionSettings, *, observer: Observer, on_end: Callable[[Rewriting], None] = lambda done: None
) -> Rewriting:
    """Let an engine write the captions again, and return what came of it.

    Args:
        on_end: called with what was done, also where an error ends the work.

    Raises:
        BackendError: the engine cannot answer questions about texts.
        EngineError: the engine cannot be asked, or the money is spent. What was written stays.
        StoreError: the log cannot be written.
    """
    todo = items_to_rewrite(state)
    with _session(settings) as session:
        client = session.describer.structuring_client
        done = Rewriting(client.engine.name, len(todo))
        if todo:
            check_engine(client.engine)
            for note in session.notes:
                observer.note(note)
            client.limiter.on_long_wait = observer.note
            try:
                run_async(_ask_all(session, state, todo, done, observer))
            finally:
                on_end(done)
                if session.budget.usage.requests or session.budget.usage.cached:
                    observer.note(f"Used {session.budget.usage}.")
        else:
            on_end(done)
    return done


def expected_cost(state: ReviewState, settings: CaptionSettings) -> Estimate:
    """Return what `rewrite_captions` would ask and spend; nothing is asked. Errors as of it."""
    todo = items_to_rewrite(state)
    with _session(settings) as session:
        describer, client = session.describer, session.describer.structuring_client
        some = [describer.request(PROMPT, _values(state, item))[0] for item in islice(todo, SAMPLE_OF_COST)]
        tokens_in = round(len(todo) * sum(client.most_tokens(request)[0] for request in some) / max(1, len(some)))
        tokens_out = len(todo) * (ANSWER_TOKENS["describe"] + (client.price.thinking if client.price else 0))
        usd = client.price.usd(tokens_in, tokens_out) if client.price else None
        priced = (f"{client.price.model}, price of {client.price.as_of or 'no date'}",) if client.price else ()
        return Estimate(len(todo), len(todo), tokens_in, tokens_out, usd, priced)


# ---------------------------------------------------------------- which


def _is_older(state: ReviewState, item: ReviewItem) -> bool:
    """Return whether people changed fields that neither a person nor an engine has put into the caption yet."""
    if not _corrections(state, item):
        return False
    rewrite, caption = state.rewrites.get(item.id), state.shared.get((item.id, "dense_caption"))
    if rewrite and rewrite.uid.split(".")[1:2] == [_digest(state, item)]:
        return False
    changed = max(action.number for name in FIELDS if (action := state.shared.get((item.id, name))))
    return caption is None or caption.reviewer.startswith(ENGINE) or caption.number < changed


def _corrections(state: ReviewState, item: ReviewItem) -> dict[str, tuple[str, str]]:
    """Return the fields that differ from what the engine wrote, each before and after."""
    before, after = dict(zip(("dense_caption", *FIELDS), item.texts, strict=True)), state.texts(item.id)
    return {name: (before[name], after[name]) for name in FIELDS if before[name] != after[name]}


def _digest(state: ReviewState, item: ReviewItem) -> str:
    """Return the beginning of the SHA-256 of the five fields; it stands in the id of the action that was written from them."""
    texts = state.texts(item.id)
    return sha256("\0".join(texts[name] for name in FIELDS).encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_LETTERS]


# ---------------------------------------------------------------- the question


def _values(state: ReviewState, item: ReviewItem) -> dict[str, str]:
    texts = state.texts(item.id)
    corrected = _corrections(state, item).items()
    return {
        "caption": json.dumps(one_line(texts["dense_caption"]), ensure_ascii=False),  # which nothing in it can end
        "fields": "\n".join(f"{name}: {_shown(name, texts[name])}" for name in FIELDS),
        "corrections": "\n".join(f"{name}: was {_shown(name, was)}; is {_shown(name, now)}" for name, (was, now) in corrected),
    }


def _shown(name: str, text: str) -> str:
    words = one_line(", ".join(objects_of(text)) if name == "objects" else text)
    return words or ("none" if name == "objects" else "not determined")


@contextmanager
def _session(settings: CaptionSettings) -> Iterator[CaptionSession]:
    """Open the engine, if it can be asked about texts."""
    session = open_session(settings, os.environ)
    try:
        _check_reads(session.describer.structuring_client)
        yield session
    finally:
        session.close()


def _check_reads(client: EngineClient) -> None:
    can = client.engine.capabilities
    if can.measures or can.captions_only:
        raise BackendError(f"{client.engine.name} only describes pictures and rewrites no text. Name another {option('engine')}.")


# ---------------------------------------------------------------- asking and writing


async def _ask_all(session: CaptionSession, state: ReviewState, todo: Sequence[ReviewItem], done: Rewriting, observer: Observer) -> None:
    prompt, client = session.describer.prompts[PROMPT], session.describer.structuring_client
    batch = f"{PROMPT}.{prompt.version}.{prompt.sha256[:12]}.{uuid4().hex[:16]}"
    gate = asyncio.Semaphore(WAITING)

    async def ask_one(item: ReviewItem, advance: Callable[[], None]) -> None:
        async with gate:
            before, digest = state.value(item.id, "dense_caption"), _digest(state, item)
            try:
                answer = await session.describer.ask(PROMPT, _values(state, item))
                uid = f"{PROMPT}.{digest}.{uuid4().hex[:DIGEST_LETTERS]}"
                action = NewAction(
                    uid=uid,
                    reviewer=engine_reviewer(client.engine.name),
                    item=item.id,
                    field="dense_caption",
                    before=before,
                    after=str(answer.value),
                    batch=batch,
                )
                (written,) = state.record([action])
            except (ReplyError, UsageError) as exc:  # no answer, or one that is no caption
                done.failed.append(FailedRewrite(item.id, str(exc)))
            else:
                if isinstance(written, Action):
                    done.written.append(item.id)
                    done.unchanged += written.before == written.after
                else:
                    done.edited_meanwhile.append(item.id)
            advance()

    try:
        with observer.track("Rewriting", len(todo)) as advance:
            async with task_group() as group:
                for item in todo:
                    group.create_task(ask_one(item, advance))
    finally:
        for one in session.describer.clients:
            await one.close()
