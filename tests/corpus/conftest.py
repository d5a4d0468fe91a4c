"""Fixtures of the tests of batches and data sets."""

from __future__ import annotations

from tests.corpus.s3 import _s3_server, s3

__all__ = ["_s3_server", "s3"]
