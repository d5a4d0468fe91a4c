"""One engine, asked so that no dollar is wasted and no answer is lost.

In: a request and the prompt that it was made from. Out: the answer, checked against its schema, with a record of each call
that was paid for. A question that was answered before, by this run or another, is not asked again; a server that is busy is
asked again later, one that is gone is left alone where the run may last (outage); an answer that cannot be used is asked for again
where that can help, and else is a typed failure.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, ValidationError

from vip.errors import BudgetError, BusyError, EngineError, OutageError, RejectedError, ReplyError
from vip.llm.budget import Budget, Usage, stated_tokens, used_tokens
from vip.llm.cache import AnswerCache
from vip.llm.limiter import AdaptiveLimiter
from vip.llm.prices import Price, request_tokens, text_tokens
from vip.llm.replies import check_reply
from vip.prompts import Prompt
from vip.protocols import Engine, Reply, Request
from vip.records import Call
from vip.untrusted import one_line, parse_json
from vip.wording import counted

TRIES_BEFORE_AN_ANSWER = 4  # of a server that never answered: 3.5 s
TRIES = 8  # of one that did: a minute, which a restart may take
TRIES_WHEN_TOLD = 50  # where it says how long to wait, which may be a second each time
TRIES_OF_REPLY: dict[str, int] = {"refusal": 2, "length": 2, "schema": 3, "empty": 3, "broken": 3}
NOT_TAKEN = frozenset({"picture", "too_large"})  # what the server refused before it worked on it
GIVEN_UP_IN_A_ROW = 3  # requests, before nothing more is asked
MOST_PROBES = 6  # times that a question went out alone to see whether the server is back, and failed: the question may be what ends it
CAUSED_BY_QUESTION = frozenset({"server", "timeout", "dropped"})  # failures of a server that a question may cause
USELESS_FROM_THE_START = 20  # questions without one answer that could be used: the model cannot do what is asked
FIRST_WAIT_S, LONGEST_WAIT_S = 0.5, 60.0
LONGEST_HOLD_S = 3600.0
EXPECTED_OUT = 300  # tokens, for the tokens a minute
MARGIN = 1.1  # a request may have a tenth more tokens than estimated


class Deferred(Exception):  # noqa: N818 - nothing went wrong
    """The question goes into a batch; its answer comes later."""

    def __init__(self, question: bytes) -> None:
        super().__init__(question)
        self.question = question


@dataclass(frozen=True, slots=True)
class EngineAnswer:
    """An answer: a record where the prompt names one, else text. `calls`: those that led to it, the useless ones too."""

    value: BaseModel | str
    calls: tuple[Call, ...]


@dataclass(slots=True)
class CircuitBreaker:
    """A counter that ends a run whose server is gone: it never answered, or so many requests were given up one after the other."""

    answered: bool = False
    answers: int = 0
    """So many came so far."""
    given_up: int = 0
    usable: bool = False
    useless: int = 0
    failed: int = 0
    """Tries since the last answer that failed for a reason that may pass."""
    failing_since_s: float = 0.0

    def record_answer(self, *, usable: bool = False) -> None:
        self.answered, self.given_up = True, 0
        self.answers += 1
        self.failed = 0
        self.usable |= usable

    def record_failure(self, now_s: float) -> None:
        if not self.failed:
            self.failing_since_s = now_s
        self.failed += 1

    def is_silent(self, now_s: float, least_s: float) -> bool:
        """Return whether all tries failed for so long."""
        return self.failed >= TRIES and now_s - self.failing_since_s >= least_s

    @property
    def is_hopeless(self) -> bool:
        return not self.usable and self.useless >= USELESS_FROM_THE_START

    @property
    def is_open(self) -> bool:
        return not self.answered or self.given_up >= GIVEN_UP_IN_A_ROW


@dataclass(slots=True)
class EngineClient:
    """The client of one engine, shared by all questions to it.

    Args:
        answers: None where answers are not kept.
        defer: takes questions that are not answered yet, for a batch; returns False where one has to be asked now.
    """

    engine: Engine
    budget: Budget
    limiter: AdaptiveLimiter
    answers: AnswerCache | None = None
    price: Price | None = None
    defer: Callable[[bytes, Request, Usage | None], bool] | None = None
    circuit_breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    wait_s: float = FIRST_WAIT_S
    _locks: dict[bytes, tuple[asyncio.Lock, int]] = field(default_factory=dict)

    @property
    def keeps(self) -> bool:
        return self.answers is not None and self.engine.capabilities.caches

    async def ask(
        self, request: Request, prompt: Prompt, parameters: Mapping[str, Any] | None = None, usage: Usage | None = None
    ) -> EngineAnswer:
        """Return the answer to one question.

        Args:
            prompt: what the request was rendered from; its record is what the answer must fit.
            parameters: of the request, for the record of the call.
            usage: what the folder that is being described has used; what the answer costs is added.

        Raises:
            ReplyError: no answer that can be used, after so many tries; or the server failed for this request alone.
            EngineError: the engine cannot be asked, or the money is spent. Nothing more should be asked.
            Deferred: it goes into a batch.
        """
        attempt = RequestAttempt(self, request, prompt, dict(parameters or {}), usage)
        if not self.keeps:
            return await attempt.answer()
        question = self.digest(request)
        async with self._lock_question(question):
            if (kept := self._cached_reply(question)) and (value := attempt.read(kept)) is not None:
                self.budget.saved(usage)
                return EngineAnswer(value, (attempt.call(kept, 0.0, 0.0, cached=True),))
            if self.defer and self.defer(question, request, usage):
                raise Deferred(question)
            return await attempt.answer(keep=question)

    def _cached_reply(self, question: bytes) -> Reply | None:
        reply = self.answers.get(question) if self.answers else None
        with suppress(ReplyError):  # one that could not be used today is asked for again
            return self.check_reply(reply) if reply else None
        return None

    def check_reply(self, reply: object) -> Reply:
        """Return what the engine gave as it may be kept and shown; errors as of `vip.llm.replies.check_reply`."""
        return check_reply(reply, self.engine.name)

    def most_tokens(self, request: Request) -> tuple[int, int]:
        """Return the estimated tokens in, and the most that may come out."""
        counts = self.price is not None or self.limiter.tpm is not None
        tokens_in = request_tokens(request, self.price, self.engine.capabilities.picture_detail) if counts else 0
        return tokens_in, request.max_tokens + self.engine.capabilities.thinking_tokens

    def prompt_tokens(self, request: Request) -> int:
        """Return the estimated tokens of the prompt alone; 0 where no price is known."""
        return text_tokens(request.prompt) if self.price else 0

    async def keep(self, question: bytes, reply: Reply) -> None:
        """Put an answer that was taken on the disk."""
        if self.answers:
            await self.answers.keep(question, self.engine.name, reply)

    def digest(self, request: Request) -> bytes:
        """Return the SHA-256 of a question: model, server, parameters, prompt, schema, bytes of the pictures."""
        digest = hashlib.sha256()
        can = self.engine.capabilities
        words = [self.engine.name, can.address, can.parameters, request.prompt, request.schema, request.max_tokens]
        words += ["greedy"] if request.is_greedy else []
        digest.update(json.dumps(words, sort_keys=True).encode())
        for picture in request.pictures:
            digest.update(hashlib.sha256(picture.data).digest())
        return digest.digest()

    @asynccontextmanager
    async def _lock_question(self, question: bytes) -> AsyncIterator[None]:
        """Let the same question of a second keyframe wait for the first one's answer."""
        lock, users = self._locks.get(question, (asyncio.Lock(), 0))
        self._locks[question] = lock, users + 1
        try:
            async with lock:
                yield
        finally:
            users = self._locks[question][1] - 1
            self._locks[question] = lock, users
            if not users:
                del self._locks[question]

    async def close(self) -> None:
        """Release the engine, and keep what it found out about its server."""
        traits = self.engine.capabilities.traits
        if traits and self.answers:
            self.answers.remember(self.server, traits)
        await self.engine.close()

    def recall(self) -> None:
        """Give the engine what it found out about its server in earlier runs."""
        if self.answers and (traits := self.engine.capabilities.traits) is not None:
            traits.update((name, value) for name, value in self.answers.traits(self.server).items() if name in traits)

    @property
    def server(self) -> str:
        return f"{self.engine.name} at {self.engine.capabilities.address or 'home'}"


@dataclass(slots=True)
class RequestAttempt:
    """One question on its way to an answer."""

    client: EngineClient
    request: Request
    prompt: Prompt
    parameters: dict[str, Any]
    usage: Usage | None = None
    calls: list[Call] = field(default_factory=list)
    tries: Counter[str] = field(default_factory=Counter)
    is_probe: bool = False
    """It is out to see whether the server is back."""
    failed_probes: int = 0
    """How often it was, and failed."""
    seen: int = 0
    """Answers to other questions when this one failed the last time."""
    passed_over: int = 0
    """How often others were answered between two failures of this one."""

    async def answer(self, *, keep: bytes | None = None) -> EngineAnswer:
        asked = self.request
        while True:
            if outage := self.client.limiter.outage:
                self.is_probe = await outage.wait_turn()
            try:
                value = await self._ask_once(asked, keep)
            except ReplyError as exc:
                self._record_answer()
                asked = self._next_request(asked, exc)
            except BusyError as exc:
                await self._handle_busy(exc)
            except BudgetError:
                raise
            except EngineError as exc:
                if outage:
                    outage.answered()  # though not well
                await self._wait_before_next_try(exc, TRIES_BEFORE_AN_ANSWER if self.client.circuit_breaker.answered else 1)
            else:
                self._record_answer(usable=True)
                return EngineAnswer(value, tuple(self.calls))

    def _record_answer(self, *, usable: bool = False) -> None:
        self.client.circuit_breaker.record_answer(usable=usable)
        if outage := self.client.limiter.outage:
            outage.answered()

    # ------------------------------------------------------------ one try

    async def _ask_once(self, request: Request, keep: bytes | None) -> BaseModel | str:
        """Return one usable answer. It is kept before its permit ends, so no more can be lost than are in flight."""
        client, engine = self.client, self.client.engine
        tokens_in, most_out = client.most_tokens(request)
        text_in = client.prompt_tokens(request)
        held = await client.budget.hold(client.price, round(tokens_in * MARGIN), most_out)
        try:
            async with client.limiter.permit(tokens_in + EXPECTED_OUT) as permit:
                try:
                    reply = client.check_reply(await engine.generate(request))
                except BusyError as exc:
                    if exc.kind != "connection":
                        client.limiter.overloaded(permit)
                    if exc.kind in {"timeout", "dropped"}:
                        client.budget.lost(client.price, tokens_in, most_out, self.usage)
                    raise
                except ReplyError as exc:
                    client.limiter.answered(permit, None)
                    if stated := stated_tokens(exc, text_in):
                        client.budget.paid(client.price, *stated, self.usage)
                    elif exc.kind not in NOT_TAKEN:
                        client.budget.lost(client.price, tokens_in, most_out, self.usage)
                    raise
                latency_s = client.limiter.clock() - permit.started_s
                used = used_tokens(reply, tokens_in, text_in)
                client.limiter.answered(permit, sum(used))
                client.limiter.apply_limits(reply.limits)
                usd = client.budget.paid(client.price, *used, self.usage)
                self.calls.append(self.call(reply, usd, latency_s))
                value = self.read(reply)
                if value is None:
                    raise self._schema_error(reply)
                if keep is not None:
                    await client.keep(keep, reply)
                return value
        finally:
            client.budget.free(held)

    def call(self, reply: Reply, usd: float | None, latency_s: float, *, cached: bool = False) -> Call:
        created = datetime.fromtimestamp(time.time() - latency_s, UTC)
        return Call(
            engine=self.client.engine.name,
            model=reply.model,
            prompt=self.prompt.name,
            prompt_version=self.prompt.version,
            prompt_sha256=self.prompt.sha256,
            parameters={"max_tokens": self.request.max_tokens, **self.parameters, **self.client.engine.capabilities.parameters},
            tokens_in=reply.tokens_in,
            tokens_out=reply.tokens_out,
            usd=usd,
            latency_s=round(latency_s, 3),
            created_utc=created.isoformat(timespec="seconds"),
            cached=cached,
        )

    def read(self, reply: Reply) -> BaseModel | str | None:
        """Return the record or the text of an answer; None where it does not fit."""
        if self.prompt.record is None:
            return reply.text.strip() or None
        try:
            return self.prompt.record.model_validate(parse_json(reply.text))
        except ValueError:
            return None

    # ------------------------------------------------------------ another try

    def _schema_error(self, reply: Reply) -> ReplyError:
        if self.prompt.record is None:
            return ReplyError(f"{self.client.engine.name} sent an empty answer.", kind="empty")
        problem = "it is empty"
        try:
            self.prompt.record.model_validate(parse_json(reply.text))
        except ValueError as exc:
            problem = _describe_problem(exc)
        times = self.tries["schema"] + 1
        name = self.prompt.record.__name__
        return ReplyError(
            f"{self.client.engine.name} answered {counted(times, 'time')} outside the schema of {name} ({problem}).",
            problem,
            kind="schema",
        )

    def _next_request(self, asked: Request, exc: ReplyError) -> Request:
        """Return the request for another try.

        Raises:
            ReplyError: another try would not help.
            EngineError: nor did it for any of the questions before.
        """
        kind = exc.kind or "broken"
        self.tries[kind] += 1
        if self.tries[kind] >= TRIES_OF_REPLY.get(kind, 1):
            self.client.circuit_breaker.useless += 1
            if self.client.circuit_breaker.is_hopeless:
                useless, name = self.client.circuit_breaker.useless, self.client.engine.name
                text = f"Of the first {useless} questions {name} answered none in a way that can be used."
                raise EngineError(f"{text} Choose another model. The last one: {exc}") from exc
            raise exc
        if kind == "length":
            return replace(asked, max_tokens=2 * asked.max_tokens)
        if kind == "schema":
            problem = f" ({exc.problem})" if exc.problem else ""
            again = f"\n\nYour last answer could not be used{problem}. Answer again with the JSON object alone."
            return replace(asked, prompt=self.request.prompt + again)
        return asked

    async def _handle_busy(self, exc: BusyError) -> None:
        """Wait until the server may be asked again."""
        self._note_failure()
        answered, has_retry_after = self.client.circuit_breaker.answered or exc.kind == "rate_limit", exc.retry_after_s is not None
        most = TRIES if answered else 2 if exc.kind == "timeout" else TRIES_BEFORE_AN_ANSWER
        most = TRIES_WHEN_TOLD if answered and has_retry_after else most
        if self._pauses_server(exc, most):
            return
        if exc.retry_after_s is not None and exc.retry_after_s > LONGEST_HOLD_S:
            text = f"{exc} It asks to wait {exc.retry_after_s / 3600:.1f} hours; what is done stays done."
            raise OutageError(text, exc.kind) from exc
        await self._wait_before_next_try(exc, most, exc.retry_after_s)

    def _note_failure(self) -> None:
        """Count the failure, and whether the server answered other questions since the last one."""
        self.client.circuit_breaker.record_failure(self.client.limiter.clock())
        answers = self.client.circuit_breaker.answers
        self.passed_over += self.tries["server"] > 0 and answers > self.seen
        self.seen = answers

    def _pauses_server(self, exc: BusyError, most: int) -> bool:
        """Return whether the server counts as gone and is left alone; this question is asked again afterwards.

        Args:
            most: tries of a question. Where others are answered in between, it is the question that the server fails at.

        Raises:
            ReplyError: it went out alone again and again, and the server failed each time.
            OutageError: the server has been gone for too long.
        """
        outage, circuit_breaker = self.client.limiter.outage, self.client.circuit_breaker
        if outage is None or not (circuit_breaker.answered or exc.kind == "rate_limit"):  # one that never answered may be a wrong address
            return False
        last_try = self.tries["server"] + 1 >= most and self.passed_over < most // 2
        too_long = (exc.retry_after_s or 0.0) > LONGEST_HOLD_S
        if not (outage.is_on or last_try or too_long or circuit_breaker.is_silent(self.client.limiter.clock(), outage.silent_s)):
            return False
        if self.is_probe or not outage.is_on:
            outage.pause(exc)
        self.failed_probes += self.is_probe and exc.kind in CAUSED_BY_QUESTION
        if self.failed_probes >= MOST_PROBES:
            raise ReplyError(f"{exc} Tried {self.failed_probes} times alone.", kind=exc.kind) from exc
        self.tries["server"] = self.passed_over = 0
        return True

    async def _wait_before_next_try(self, exc: EngineError, most: int, retry_after_s: float | None = None) -> None:
        """Wait before the next try, longer each time.

        Raises:
            ReplyError: so many tries of this request failed.
            EngineError: and this server answers nothing else either.
        """
        self.tries["server"] += 1
        number = self.tries["server"]
        if number >= most:
            self.client.circuit_breaker.given_up += 1
            tried = f"{exc} Tried {number} times; what is done stays done." if number > 1 else str(exc)
            if self.client.circuit_breaker.is_open or not isinstance(exc, BusyError | RejectedError):
                raise (OutageError(tried, exc.kind) if isinstance(exc, BusyError) else EngineError(tried)) from exc
            raise ReplyError(tried, kind=exc.kind if isinstance(exc, BusyError) else "rejected") from exc
        if retry_after_s is not None:
            self.client.limiter.hold(retry_after_s)
            await asyncio.sleep(retry_after_s * random.uniform(1.0, 1.1))
        else:
            await asyncio.sleep(min(LONGEST_WAIT_S, self.client.wait_s * 2 ** (number - 1)) * random.uniform(0.5, 1.0))


def _describe_problem(exc: ValueError) -> str:
    if not isinstance(exc, ValidationError):
        return f"Invalid JSON: {one_line(str(exc))[:200]}"
    first = exc.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])[:60]  # plain, since the names in an answer are
    return f"{where}: {first['msg']}" if where else first["msg"][:200]
