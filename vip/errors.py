"""The errors a caller may catch, one exit code a branch.

    VipError
    ├── UsageError        2  a bad option, a misspelt setting, a run folder of other settings
    ├── InputError        3  a file that is missing, unreadable, or shows nothing
    │   ├── GivenUpError     FFmpeg crashed or hung on the video, or its time was up
    │   ├── NotInPartsError  the server of an address sends no parts of the video: download it whole, or try yt-dlp
    │   └── ItemError        one video of many failed, for a reason that has a word
    ├── BackendError      4  a backend that is unknown, not installed, or lacks weights, device or memory
    ├── EngineError       5  the model's server: authentication, rate limit, time-out, gone
    │   ├── BusyError        one try failed, for a reason that may pass
    │   ├── OutageError      all tries failed so: the server may come back later
    │   ├── BudgetError      the budget has no room for another request
    │   └── RejectedError    the server rejects the request; it may reject all of them
    ├── ReplyError        6  the model's answer: refused, cut off, does not fit the schema
    ├── StoreError        7  the run folder: corrupt, newer schema, unwritable, disk full
    └── SomeFailedError   8  some items failed, the rest is done; failures.jsonl says which and why

A message is one sentence that says what is wrong, with the value that was found, and what to do next.
Errors of a library are translated once, in its adapter. Any other error that escapes is a bug in vip (exit 1, traceback).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import partial
from typing import ClassVar, Literal

MOST_PROBLEM_LETTERS = 300  # of what is wrong with a value, which may repeat it


class VipError(Exception):
    """Root of the errors that vip raises on purpose."""

    exit_code: ClassVar[int] = 1
    """What the command line returns."""
    default_failure_kind: ClassVar[str] = "other"
    """The word in failures.jsonl for errors without a more exact one."""

    @property
    def failure_kind(self) -> str:
        """The word for this error in failures.jsonl, the same after every command."""
        return self.default_failure_kind


class UsageError(VipError):
    """The command, an option, or a settings file is wrong."""

    exit_code = 2
    default_failure_kind = "usage"


class InputError(VipError):
    """The video or the folder of pictures is missing, unreadable, or holds no usable frame."""

    exit_code = 3
    default_failure_kind = "unreadable"


class GivenUpError(InputError):
    """A video on which FFmpeg crashed or hung, or whose time was up.

    Args:
        kind: `timeout`: the time limit was reached; `stalled`: one call did not return; `crash`: its process ended without a message.
    """

    def __init__(self, message: str, kind: Literal["timeout", "stalled", "crash"]) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def failure_kind(self) -> str:
        return "crash" if self.kind == "crash" else "timeout"

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.kind)


class NotInPartsError(InputError):
    """An address whose server sends no parts of a video file.

    Args:
        kind: `whole`: it always sends the whole file; `page`: it sends a web page or a playlist; `refused`: it answers with an error,
            perhaps to all but browsers.
        version: the server's mark of this version of the file (ETag, date); "" where it gives none.
    """

    def __init__(self, message: str, kind: Literal["whole", "page", "refused"], version: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.version = version

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.kind, self.version)


FailureKind = Literal[
    "bad_row",  # the row names no video
    "not_public",  # refused by --public-only
    "missing",  # no such file, HTTP 404, an id that YouTube-8M does not know
    "deleted",
    "private",
    "age",
    "geo",
    "bot_check",
    "rate_limit",
    "network",
    "no_video",  # a page without one, a live stream, a playlist
    "too_long",
    "too_short",
    "too_large",  # for --disk-budget
    "download_timeout",
    "unreadable",  # it was there and shows nothing, or is damaged
    "timeout",  # not extracted within --timeout
    "crash",  # its process ended without a message
    "disk",  # what was fetched could not be written
    "duplicate",  # another item turned out to be the same video
    "caption",  # not one keyframe could be described
    "other",
]
"""Why one video of many failed, as failures.jsonl says it after every command."""


class ItemError(InputError):
    """One video of many that could not be fetched or used.

    Args:
        kind: why; it decides whether the video is tried again.
        retry_after_s: how long the server asks to wait; None where it does not say.
    """

    def __init__(self, message: str, kind: FailureKind, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s

    @property
    def failure_kind(self) -> FailureKind:
        return self.kind

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.kind, self.retry_after_s)


class BackendError(VipError):
    """A sampler, embedder, detector or engine is unknown, not installed, or lacks what it needs."""

    exit_code = 4
    default_failure_kind = "backend"


class EngineError(VipError):
    """The model cannot be asked: authentication, rate limit, time-out, server gone. Stops the run."""

    exit_code = 5
    default_failure_kind = "engine"


BusyKind = Literal["rate_limit", "server", "timeout", "dropped", "connection"]


class BusyError(EngineError):
    """One try to reach the server failed, and the next may succeed: the caller tries again.

    Args:
        kind: too many requests, an error of the server (5xx), too slow, the connection broke, or there was none.
        retry_after_s: how long the server asks to wait; None where it does not say.
    """

    def __init__(self, message: str, *, kind: BusyKind, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), kind=self.kind, retry_after_s=self.retry_after_s), (str(self),)


class OutageError(EngineError):
    """The server answered none of the tries, for a reason that may pass.

    Args:
        kind: of the last try.
    """

    def __init__(self, message: str, kind: BusyKind) -> None:
        super().__init__(message)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.kind)


class BudgetError(EngineError):
    """The budget of the user is spent; neither waiting nor another item helps."""


class RejectedError(EngineError):
    """The server rejects a request; whether it rejects all of them is not known yet."""


ReplyKind = Literal["refusal", "length", "content_filter", "schema", "empty", "broken", "too_long", "picture", "too_large", "rejected"]


class ReplyError(VipError):
    """The model answered, but the answer cannot be used. Costs one item.

    Args:
        kind: refused, cut off by the token limit, filtered, outside the schema, empty, not whole, far too long, or a picture or a request
            that the server does not take; the kind of the BusyError where the server failed for this item alone; None where several
            items failed for different reasons.
        problem: for `schema`, what does not fit and where, as the next question tells the model.
        tokens_in, tokens_out: what the answer cost nevertheless, where the server says.
    """

    exit_code = 6
    default_failure_kind = "caption"

    def __init__(
        self,
        message: str,
        problem: str | None = None,
        /,
        *,
        kind: ReplyKind | BusyKind | None = None,
        tokens_in: int | None = None,
        tokens_out: int | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.problem = problem
        self.tokens_in = tokens_in
        self.tokens_out = tokens_out


class StoreError(VipError):
    """The run folder is corrupt, of a newer schema, not writable, or the disk is full."""

    exit_code = 7
    default_failure_kind = "disk"


class SomeFailedError(VipError):
    """A command of which some items failed and the rest is done; failures.jsonl names each with its reason."""

    exit_code = 8
    default_failure_kind = "caption"


def no_permission_error(exc: PermissionError) -> InputError:
    """Return the error for a file or a folder that this user may not use."""
    return InputError(f"{exc.filename or 'A file'} may not be used by you ({exc.strerror or exc}). Change its permissions.")


def validation_message(problem: Mapping[str, object]) -> str:
    """Return the message of one error of pydantic, as `ValidationError.errors()` gives it, in the words of the check that raised it."""
    return str(problem["msg"]).removeprefix("Value error, ")[:MOST_PROBLEM_LETTERS]


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return ` Did you mean "opencv"?` with a leading space, or the list of what there is."""
    names = sorted(known)
    close = difflib.get_close_matches(wrong, names, n=1, cutoff=0.5)
    return f' Did you mean "{close[0]}"?' if close else f" There is: {', '.join(names)}."
