"""The S3 server of the tests of batches."""

from __future__ import annotations

from tests.corpus.s3 import _s3_server, s3

__all__ = ["_s3_server", "s3"]
