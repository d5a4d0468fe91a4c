"""Weights and configurations from a model hub: what lies in the local cache, what can be downloaded, both known within 2 s.

The hub's own client retries for most of a minute where there is no network, and tells of each try. So it is asked for
files in its cache first, and for a download only after the hub's host has answered.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.parse import urlsplit

REACHABLE_WITHIN_S = 1.0


def cached(repo: str, filename: str) -> Path | None:
    """A file of a repository in the local cache; None where it is not there."""
    from huggingface_hub import try_to_load_from_cache

    with suppress(ValueError):  # not the name of a repository
        found = try_to_load_from_cache(repo, filename)
        return Path(found) if isinstance(found, str) else None
    return None


def why_not() -> str | None:
    """Why nothing can be downloaded from the hub, in words; None where it answers."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    return unreachable(constants.ENDPOINT)


@cache
def unreachable(address: str) -> str | None:
    """Why a server cannot be reached, in words; None where it takes a connection within a second. Asked once a process."""
    parts = urlsplit(_proxy_for(address) or address)
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    return None if _connects(host, port) else f"{host} cannot be reached"


def _connects(host: str, port: int) -> bool:
    """Whether a connection comes about soon. Looking the name up has no time limit of its own, so that is done aside."""
    answer: SimpleQueue[bool] = SimpleQueue()

    def attempt() -> None:
        try:
            socket.create_connection((host, port), timeout=REACHABLE_WITHIN_S).close()
        except OSError:
            answer.put(False)
        else:
            answer.put(True)

    thread = Thread(target=attempt, daemon=True)
    thread.start()
    try:
        reached = answer.get(timeout=1.5 * REACHABLE_WITHIN_S)
    except Empty:
        return False
    thread.join()  # a fork of a process with threads is not safe
    return reached


def _proxy_for(address: str) -> str | None:
    from urllib.request import getproxies, proxy_bypass

    parts = urlsplit(address)
    return None if proxy_bypass(parts.hostname or "") else getproxies().get(parts.scheme)


def quiet_unless_terminal() -> None:
    """Progress bars of downloads only where somebody looks at them."""
    import sys

    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


@contextmanager
def offline(wanted: bool) -> Iterator[None]:
    """Let the hub's client read its cache alone, without asking the hub whether something changed."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or wanted
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
