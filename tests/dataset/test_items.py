"""The types of failures are the same words after every command."""

from __future__ import annotations

import pickle
from typing import get_args

import pytest

from vip.dataset.items import ItemKind, ListItem
from vip.errors import (
    BackendError,
    EngineError,
    FailureKind,
    GivenUpError,
    InputError,
    ItemError,
    ReplyError,
    SomeFailedError,
    StoreError,
    UsageError,
    VipError,
)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ItemError("No.", "private"), "private"),
        (GivenUpError("Late.", "timeout"), "timeout"),
        (GivenUpError("Hangs.", "stalled"), "timeout"),
        (GivenUpError("Dead.", "crash"), "crash"),
        (InputError("Damaged."), "unreadable"),
        (StoreError("Full."), "disk"),
        (ReplyError("None could be described.", kind="refusal"), "caption"),
        (SomeFailedError("Some could not."), "caption"),
    ],
)
def test_what_fails_a_video_has_the_word_of_a_batch(error: VipError, kind: str) -> None:
    assert error.failure_kind == kind
    assert kind in get_args(FailureKind)


@pytest.mark.parametrize(("error", "kind"), [(UsageError("a"), "usage"), (BackendError("b"), "backend"), (EngineError("c"), "engine")])
def test_what_would_end_a_batch_has_a_word_of_its_own(error: VipError, kind: str) -> None:
    assert error.failure_kind == kind


def test_an_error_of_another_process_says_the_same() -> None:
    there = pickle.loads(pickle.dumps(ItemError("Busy.", "rate_limit", 7.0)))
    assert (str(there), there.kind, there.retry_after_s) == ("Busy.", "rate_limit", 7.0)


@pytest.mark.parametrize(
    ("kind", "source", "host"),
    [
        ("youtube", "dQw4w9WgXcQ", "youtube"),
        ("youtube8m", "nXSc", "youtube"),
        ("address", "https://me:secret@Media.example.com:8080/a.mp4", "media.example.com"),
        ("file", "/films/a.mp4", ""),
    ],
)
def test_downloads_of_one_host_share_its_slots(kind: ItemKind, source: str, host: str) -> None:
    assert ListItem("key", kind, source, "x").host == host
