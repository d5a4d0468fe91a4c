"""From an item of the list to a video on this machine: `fetch`, and `preflight`, which says beforehand what is missing."""

from __future__ import annotations

from vip.download.fetch import fetch
from vip.download.preflight import preflight

__all__ = ["fetch", "preflight"]
