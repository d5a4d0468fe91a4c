"""From an item of the list to a video on this machine: `fetch`, and `preflight`, which says beforehand what is missing."""

from __future__ import annotations

from vip.corpus.fetching.fetch import fetch
from vip.corpus.fetching.preflight import preflight

__all__ = ["fetch", "preflight"]
