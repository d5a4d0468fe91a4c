"""Errors of yt-dlp, translated: each becomes an `ItemError` of one kind with a message of one sentence.

Sites, YouTube above all, say only in words why they refuse a video; `PHRASES` recognises the words that yt-dlp passes on.
What is not recognised is "other", with the sentence as it came.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from vip.dataset.sanitize import without_logins
from vip.errors import FailureKind, ItemError
from vip.untrusted import one_line
from vip.wording import option

PHRASES: tuple[tuple[FailureKind, str], ...] = (
    ("bot_check", r"not a bot|captcha|anti-bot|unusual traffic|IP is likely being blocked|^please sign in\b"),
    ("rate_limit", r"content isn't available(, try again later|\.|$)|rate.?limited|too many requests"),
    ("age", r"confirm your age|age.?restricted|inappropriate for some users|age.?verif|mature audiences"),
    (
        "geo",
        r"(in|from) your (country|region|location)|geo.?(restrict|block)|blocked by Indian|blocked by decision",
    ),
    (
        "private",
        r"\bprivate\b|members.only|channel's members|requires? payment|premium members|registered users|password|log.?in (is )?required"
        r"|login details|(only available|sign in|log in) (for|to) (subscribers|view|watch)|disabled by the video owner|must be logged",
    ),
    ("other", r"processing this video|not available on this app|page needs to be reloaded|terms of service changes"),
    (
        "no_video",
        r"live event|premieres? in|live stream|not currently live|will begin|is offline|DRM protected|no video formats|only images"
        r"|requested format is not available|not a valid URL|unsupported URL|file://",
    ),
    (
        "deleted",
        r"\bremoved\b|terminated|no longer (available|exists)|does(n't| not) exist|video (is )?(un|not )available|deleted|copyright",
    ),
)
"""Kind and pattern of the words that mean it; the first that matches holds. Apostrophes are straight."""

BY_STATUS: dict[int, FailureKind] = {
    **{401: "private", 402: "private", 403: "private", 404: "missing", 410: "deleted"},
    **{408: "network", 425: "network", 429: "rate_limit", 451: "geo"},
}
DISK_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO}
ADVICE = re.compile(
    r"[;.]?\s*\(caused by .*|[;.]?\s*please report this issue on .*|[;.]?\s*Use --cookies.*|\s*You might want to use a VPN.*"
    r"|[;.]?\s*(For more information, refer to|Also see|See|See also)\s+https?://.*|\s*This helps protect our community\..*"
    r"|\s*It is recommended to use `.*|[;.]?\s*Use --[a-z-]+ .*",
    re.IGNORECASE | re.DOTALL,
)
PREFIX = re.compile(r"(ERROR:\s*|\[download\] Got error:\s*|\[[\w:.+-]+\]\s+(?:[^\s:]{1,64}:\s+)?)")
CONNECTION_LOST = re.compile(r"timed out|giving up after|connection|more expected|failed to resolve|getaddrinfo", re.IGNORECASE)
STATUS = re.compile(r"HTTP Error (\d{3})")
LONGEST = 300
LONGEST_WAIT_S = 86400.0


def item_error(exc: BaseException, log: Sequence[str] = ()) -> ItemError:
    """Return the error as an `ItemError`.

    Args:
        log: the last lines of yt-dlp; its warnings decide the kind where the error itself does not.
    """
    from yt_dlp.networking.exceptions import HTTPError

    chain = list(causes(exc))
    if any(isinstance(one, MemoryError) for one in chain):
        return ItemError("The page or the playlist of the video takes too much memory. Give another address.", "unreadable")
    sentence = sentence_of(chain)
    kind = _kind(chain, sentence)
    if kind == "other":
        kind = next((found for line in reversed(log) if (found := kind_of_sentence(line)) in {"rate_limit", "bot_check", "network"}), kind)
    refused = next((one for one in chain if isinstance(one, HTTPError)), None)
    retry_after_s = _retry_after_s(refused.response.headers.get("Retry-After")) if refused is not None else None
    if kind == "network" and retry_after_s is not None:
        kind = "rate_limit"  # a server that states a time is busy, not broken
    lead = "The connection failed: " if kind == "network" else ""
    message = f"{lead}{sentence.rstrip('.')}. {_next_step(kind)}".strip()
    return ItemError(message, kind, retry_after_s)


def _next_step(kind: FailureKind) -> str:
    cookies = option("cookies", "FILE")
    advice: dict[FailureKind, str] = {
        "private": f"With {cookies} of an account that may see it, it can be fetched.",
        "age": f"With {cookies} of an account of age, it can be fetched.",
        "geo": f"With {option('proxy', 'URL')} in another country, it may be seen.",
        "bot_check": f"Wait a while, or give {cookies} of a browser that is signed in.",
        "rate_limit": "Wait a while, and ask less often.",
    }
    return advice.get(kind, "")


def sentence_of(chain: Sequence[BaseException]) -> str:
    """Return the message of yt-dlp without its prefixes, advice, colours and passwords; at most `LONGEST` characters."""
    said = next((one.orig_msg for one in chain if hasattr(one, "orig_msg")), None) or str(chain[0]) or type(chain[0]).__name__
    text = without_logins(one_line(str(said)[:10_000]))
    while found := PREFIX.match(text):
        text = text[found.end() :]
    text = ADVICE.sub("", text).strip() or text
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def kind_of_sentence(text: str) -> FailureKind:
    """Return the kind by the words of a message alone."""
    text = text.replace("’", "'")
    for kind, pattern in PHRASES:
        if re.search(pattern, text, re.IGNORECASE):
            return kind
    if found := STATUS.search(text):
        return _of_status(int(found[1]))
    return "network" if CONNECTION_LOST.search(text) else "other"


def _kind(chain: Sequence[BaseException], sentence: str) -> FailureKind:
    from yt_dlp.networking.exceptions import HTTPError, TransportError
    from yt_dlp.utils import ContentTooShortError, GeoRestrictedError, UnsupportedError, UserNotLive

    for one in chain:
        if isinstance(one, GeoRestrictedError):
            return "geo"
        if isinstance(one, UnsupportedError | UserNotLive):
            return "no_video"
        if isinstance(one, OSError) and one.errno in DISK_FULL:
            return "disk"
    by_words = kind_of_sentence(STATUS.sub("", sentence))
    if by_words not in {"other", "network"}:
        return by_words
    for one in chain:
        if isinstance(one, HTTPError):
            if one.status == 403 and "video data" in sentence:
                return "other"  # the page was served, so the video exists; addresses of its data expire, and some are refused at random
            return _of_status(one.status)
        if isinstance(one, TransportError | ContentTooShortError):
            return "network"
    return kind_of_sentence(sentence)


def _of_status(status: int) -> FailureKind:
    if 300 <= status < 400:
        return "no_video"  # redirects are followed, so this one is a loop, or leads to a scheme that is not followed
    return BY_STATUS.get(status, "network" if status >= 500 else "other")


def causes(exc: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and its causes, by all the attributes in which yt-dlp and Python keep them."""
    waiting: list[Any] = [exc]
    seen: set[int] = set()
    while waiting:
        one = waiting.pop(0)
        if not isinstance(one, BaseException) or id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        kept = getattr(one, "exc_info", None)
        waiting += [kept[1] if isinstance(kept, tuple) else None, getattr(one, "cause", None), one.__cause__, one.__context__]
        waiting += getattr(one, "unexpected_errors", [])


def _retry_after_s(value: str | None) -> float | None:
    """Return the seconds of a Retry-After header, which holds seconds or a date; None where it holds neither."""
    if value is None:
        return None
    if re.fullmatch(r"[0-9]+", value.strip()):
        return min(float(value), LONGEST_WAIT_S)
    try:
        when = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, (when.replace(tzinfo=when.tzinfo or UTC) - datetime.now(UTC)).total_seconds()), LONGEST_WAIT_S)
