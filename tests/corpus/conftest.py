"""Fixtures of the tests of batches and data sets."""

from __future__ import annotations

from tests.corpus.s3 import s3 as s3
