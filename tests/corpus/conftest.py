"""Fixtures of the tests of batches and data sets."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.corpus.s3 import _s3_server, s3
from vip.wording import on_command_line

__all__ = ["_s3_server", "s3"]


@pytest.fixture(autouse=True)
def _for_readers_of_a_terminal() -> Iterator[None]:
    """Messages are for who typed `vip batch`."""
    with on_command_line():
        yield
