"""Trust in the settings of a vip.toml in the current folder.

Such a file may have come with a download. Its numbers and choices are used. Settings that decide where data, keys and money go, or which
other files are read, are used only after the user has allowed the file with its content (`vip trust`). The command line, the environment
and the user's own `~/.config/vip/vip.toml` may set everything.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from vip import user_state

HARMLESS = frozenset(
    {
        *("keyframes", "candidates", "text_weight", "query", "min_objects", "min_sharpness", "format", "start", "end", "stream", "timeout"),
        *("recipe", "schema", "topic", "context", "language", "verify", "picture_side", "picture_detail", "request_timeout"),
        *("concurrency", "rpm", "tpm", "device", "precision"),
        *("shards", "shard_size", "sample", "seed", "min_length", "max_length", "audio", "public_only", "runner", "workers", "per_host"),
        *("download_timeout", "retry_wait", "sleep", "rate_limit", "disk_budget"),
    }
)
"""Settings that decide neither where data goes nor which files are read."""

PLAIN_NAMES = {
    "sampler": frozenset({"sync", "uniform", "every", "shots", "katna"}),
    "pruner": frozenset({"algorithm1", "k-center", "threshold", "aks", "none"}),
}
"""Backends of vip whose detail, after the colon, is a number."""

WITHOUT_DETAIL = frozenset({"embedder", "detector", "engine", "describe_engine", "structure_engine"})
"""Backends whose detail may be a file, an address or a model of somebody else."""


def asks_for_trust(name: str, value: Any) -> bool:
    """Return whether a setting is used only from a file that the user allowed."""
    if name in PLAIN_NAMES:
        return not isinstance(value, str) or value.partition(":")[0] not in PLAIN_NAMES[name]
    if name in WITHOUT_DETAIL:
        is_model = isinstance(value, str) and value.startswith("openai:") and "@" not in value
        return not is_model and (not isinstance(value, str) or ":" in value)
    if name == "labels":
        return isinstance(value, str) and value.startswith("@")
    return name not in HARMLESS


def is_trusted(path: Path, content: bytes) -> bool:
    """Return whether the user allowed the file at this place with this content."""
    return user_state.knows("settings", _name(path, content))


def trust(path: Path, content: bytes) -> None:
    """Allow the file as it is now.

    Raises:
        StoreError: this cannot be saved.
    """
    user_state.remember("settings", _name(path, content))


def distrust(path: Path, content: bytes) -> None:
    """Withdraw the permission for the file as it is now."""
    user_state.forget("settings", _name(path, content))


def refused(tables: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the settings that need trust, in the order of the file."""
    return [name for table in tables.values() for name, value in table.items() if asks_for_trust(name, value)]


def _name(path: Path, content: bytes) -> str:
    return f"{path.resolve()}\n{hashlib.sha256(content).hexdigest()}"
