"""Fixtures of the models of the papers."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """Let torch take one thread: models of this size wait for a second one longer than they reckon."""
    if find_spec("torch") is None:
        yield
        return
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
