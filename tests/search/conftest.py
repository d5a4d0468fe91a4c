"""Fixtures of this folder."""

from tests.corpus.s3 import _s3_server, s3
from tests.search.scenes import scenes

__all__ = ["_s3_server", "s3", "scenes"]
