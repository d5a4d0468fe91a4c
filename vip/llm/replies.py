"""Checks of every answer, also of a cached one: within bounds, and without what a terminal or a page obeys.

In: what an engine, a batch or the file of answers gave. Out: the answer as it is kept, read and shown.
"""

from __future__ import annotations

from vip.errors import ReplyError
from vip.protocols import LONGEST_ANSWER, LONGEST_NAME, RateLimits, Reply, token_count
from vip.untrusted import clean_answer, one_line


def check_reply(reply: object, engine: str) -> Reply:
    """Return the answer as it may be kept and shown.

    Args:
        engine: who gave it, and its model where it does not name one.

    Raises:
        ReplyError: it is none, or too long.
    """
    if not isinstance(reply, Reply) or not isinstance(reply.text, str):
        raise ReplyError(f"{engine} sent an answer that is no text.", kind="broken")
    tokens_in, tokens_out = token_count(reply.tokens_in), token_count(reply.tokens_out)
    if len(reply.text) > LONGEST_ANSWER:
        text = f"{engine} sent an answer of {len(reply.text):,} letters."
        raise ReplyError(text, kind="too_long", tokens_in=tokens_in, tokens_out=tokens_out)
    named = isinstance(reply.model, str) and len(reply.model) <= LONGEST_NAME
    limits = reply.limits if isinstance(reply.limits, RateLimits) else None
    return Reply(clean_answer(reply.text), (named and one_line(reply.model)) or engine, tokens_in, tokens_out, limits)
