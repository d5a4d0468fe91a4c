"""Which engine describes: what `auto` becomes here and now, in one sentence that the user reads before the first call.

In: the setting `engine`, the base URL and the environment. Out: a name for `vip.registry.engine`, the base URL that goes
with it, and the reason. An engine that was named is never replaced by another.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

KEY, ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"


class Choice(NamedTuple):
    """`engine` and `base_url` as `vip.registry.engine` takes them; `reason` in words."""

    engine: str
    base_url: str | None
    reason: str


def choose_engine(name: str, base_url: str | None, environment: Mapping[str, str]) -> Choice:
    """`auto` becomes `openai` where a key or an address is set, else `offline`; any other name stays."""
    address = base_url or environment.get(ADDRESS, "").strip() or None
    if name != "auto":
        return Choice(name, address if name.partition(":")[0] == "openai" else base_url, "it was asked for")
    if address:
        origin = "--base-url" if base_url else ADDRESS
        return Choice("openai", address, f"{origin} is set (to a server at {_host(address)})")
    if environment.get(KEY, "").strip():
        return Choice("openai", None, f"{KEY} is set")
    return Choice("offline", None, f"neither {KEY} nor {ADDRESS} nor --base-url is set")


def _host(address: str) -> str:
    """Host and port of an address, without the user name and password that it may carry."""
    try:
        parts = urlsplit(address)
        return f"{parts.hostname}:{parts.port}" if parts.port else parts.hostname or "an unreadable address"
    except ValueError:
        return "an unreadable address"
