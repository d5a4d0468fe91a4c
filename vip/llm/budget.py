"""Spending, and the ceiling that it never passes.

In: what each request may cost at most before it goes out, and what it did cost. Out: leave to ask, or the end of the run.
What is on its way counts as if it cost the most it can; only what the server counted is reported as spent.
"""

from __future__ import annotations

import asyncio
from dataclasses import asdict, dataclass, field

from vip.errors import BudgetError, ReplyError
from vip.llm.prices import Price, text_tokens
from vip.protocols import Reply
from vip.wording import again, counted, option

DEFAULT_MAX_USD = 5.0  # a key in the environment is no permission to spend
LEAST_STATED = 0.1  # of the tokens that vip counts in a text: its count may be twice too high, but not ten times
WRITTEN = frozenset({"refusal", "length", "too_long"})  # of answers that cannot be used: these have words all the same


@dataclass(slots=True)
class Usage:
    """Requests, tokens and dollars of a run, as the servers count them."""

    requests: int = 0
    cached: int = 0
    """Answers that were there from earlier questions, and cost nothing."""
    tokens_in: int = 0
    tokens_out: int = 0
    usd: float = 0.0
    unpriced: int = 0
    """Requests to models whose price is unknown."""
    unsure_usd: float = 0.0
    """What requests may have cost that were never answered; it counts towards the ceiling."""

    def __sub__(self, before: Usage) -> Usage:
        return Usage(**{name: value - getattr(before, name) for name, value in asdict(self).items()})

    def __str__(self) -> str:
        """Return `24 requests, 31,200 tokens in, 4,100 out, $0.04`."""
        parts = [counted(self.requests, "request")] if self.requests or not self.cached else []
        if self.cached:
            parts.append(f"{counted(self.cached, 'answer')} of earlier requests")
        if self.tokens_in or self.tokens_out:
            parts.append(f"{counted(self.tokens_in, 'token')} in, {self.tokens_out:,} out")
        if self.requests > self.unpriced:
            parts.append(dollars(self.usd))
        if self.unsure_usd:
            parts.append(f"at most {dollars(self.unsure_usd)} more for requests that were never answered")
        return ", ".join(parts)


def dollars(usd: float) -> str:
    """Return `$0.0042` or `$1.23`: two significant digits, or cents."""
    return f"${usd:.2f}" if usd >= 0.1 or usd == 0 else f"${usd:.4f}"


def used_tokens(reply: Reply, tokens_in: int, text_in: int) -> tuple[int, int]:
    """Return the tokens in and out that an answer is paid for: as the server states them if they can be, else as vip estimates them.

    Args:
        tokens_in: estimated, of the whole question.
        text_in: estimated, of its prompt alone, since servers count pictures in many ways; 0 where no price is known.
    """
    stated_in, text_out = _likely_tokens(reply.tokens_in, text_in), text_tokens(reply.text) if text_in else 0
    stated_out = _likely_tokens(reply.tokens_out, text_out)
    return tokens_in if stated_in is None else stated_in, text_out if stated_out is None else stated_out


def stated_tokens(error: ReplyError, text_in: int) -> tuple[int, int] | None:
    """Return the tokens in and out of an answer that cannot be used; None where the server does not state them, or they cannot be."""
    stated_in = _likely_tokens(error.tokens_in, text_in)
    if stated_in is None or (text_in and error.kind in WRITTEN and not error.tokens_out):
        return None
    return stated_in, error.tokens_out or 0


def _likely_tokens(stated: int | None, counted: int) -> int | None:
    """Return a number of tokens, but None for one that is far below what vip counts in the text."""
    return None if stated is None or stated < LEAST_STATED * counted else stated


@dataclass(slots=True)
class Budget:
    """The money of one run, for all its engines.

    Args:
        max_usd: what may be spent; None where no price is known.
        given: the user named the ceiling.
    """

    max_usd: float | None = DEFAULT_MAX_USD
    given: bool = False
    usage: Usage = field(default_factory=Usage)
    _held_usd: float = field(init=False, default=0.0)
    """For requests on their way."""
    _booked_usd: float = field(init=False, default=0.0)
    """For requests in batches, which nobody waits for before the round ends."""
    _change: asyncio.Event = field(init=False, default_factory=asyncio.Event)

    async def hold(self, price: Price | None, tokens_in: int, tokens_out: int, *, batch: bool = False) -> float:
        """Put aside what a request may cost at most; waits while what is on its way may still leave room for it.

        Raises:
            BudgetError: it would pass the ceiling.
        """
        if price is None or self.max_usd is None:
            return 0.0
        most = price.usd(tokens_in, tokens_out, batch=batch)
        while self.committed_usd + most > self.max_usd:
            if self._held_usd <= 1e-12:
                raise self.exceeded_error(most)
            self._change.clear()
            await self._change.wait()
        self._held_usd += most
        return most

    def book(self, price: Price | None, tokens_in: int, tokens_out: int) -> float | None:
        """Put aside what a request in a batch may cost at most. Returns the dollars, or None where that would pass the ceiling."""
        if price is None or self.max_usd is None:
            return 0.0
        most = price.usd(tokens_in, tokens_out, batch=True)
        if self.committed_usd + most > self.max_usd:
            return None
        self._booked_usd += most
        return most

    def unbook(self, usd: float) -> None:
        """Release what was put aside for a request in a batch."""
        self._booked_usd = max(0.0, self._booked_usd - usd)

    def release_batches(self) -> None:
        """Release all that was put aside for requests in batches."""
        self._booked_usd = 0.0

    @property
    def committed_usd(self) -> float:
        """Return the dollars that are spent, maybe spent, or put aside."""
        return self.usage.usd + self.usage.unsure_usd + self._held_usd + self._booked_usd

    def exceeded_error(self, most: float) -> BudgetError:
        what = (
            option("max_usd", f"{self.max_usd:g}")
            if self.given
            else f"The ceiling of {self.max_usd:g} dollars for runs that are given none"
        )
        return BudgetError(
            f"{what} leaves no room for another request: {dollars(self.usage.usd + self.usage.unsure_usd)} is spent, "
            f"and the next may cost up to {dollars(most)}. {again()} with a higher {option('max_usd')}: what is done stays done."
        )

    def free(self, held: float) -> None:
        """Release what was put aside for a request."""
        self._held_usd = max(0.0, self._held_usd - held)
        self._change.set()

    def paid(
        self, price: Price | None, tokens_in: int, tokens_out: int, folder_usage: Usage | None = None, *, batch: bool = False
    ) -> float | None:
        """Note what an answer cost. Returns the dollars, or None where the price is unknown.

        Args:
            folder_usage: what the folder that is being described has used; counted into as well, as below.
        """
        usd = price.usd(tokens_in, tokens_out, batch=batch) if price else None
        for usage in self._usages(folder_usage):
            usage.requests += 1
            usage.tokens_in += tokens_in
            usage.tokens_out += tokens_out
            usage.usd += usd or 0.0
            usage.unpriced += usd is None
        return usd

    def saved(self, folder_usage: Usage | None = None) -> None:
        """Note an answer that was there already."""
        for usage in self._usages(folder_usage):
            usage.cached += 1

    def lost(self, price: Price | None, tokens_in: int, tokens_out: int, folder_usage: Usage | None = None, *, batch: bool = False) -> None:
        """Note a request whose answer never came, and which the server may have worked on."""
        if price:
            for usage in self._usages(folder_usage):
                usage.unsure_usd += price.usd(tokens_in, tokens_out, batch=batch)

    def _usages(self, folder_usage: Usage | None) -> list[Usage]:
        return [self.usage] if folder_usage is None else [self.usage, folder_usage]
