"""The types of failures are the same words after every command."""

from __future__ import annotations

from typing import get_args

import pytest

from vip.download.items import FailureKind, ItemError, kind_of
from vip.errors import BackendError, EngineError, GivenUpError, InputError, ReplyError, SomeFailedError, StoreError, UsageError, VipError


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
    assert kind_of(error) == kind
    assert kind in get_args(FailureKind)


@pytest.mark.parametrize(("error", "kind"), [(UsageError("a"), "usage"), (BackendError("b"), "backend"), (EngineError("c"), "engine")])
def test_what_would_end_a_batch_has_a_word_of_its_own(error: VipError, kind: str) -> None:
    assert kind_of(error) == kind
