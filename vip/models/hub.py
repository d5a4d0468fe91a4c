"""Weights and configurations from a model hub: in the local cache, or downloaded. Both are known within 2 s.

The hub's own client retries for most of a minute where there is no network, and tells of each try. So it is asked for
files in its cache first, and for a download only after the hub's host has answered.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any
from urllib.parse import urlsplit

ANSWERS_WITHIN_S = 1.0


def find_cached(repo: str, filename: str) -> Path | None:
    """Return a file of a repository in the local cache; None where it is not there."""
    from huggingface_hub import constants

    folder = constants.REPO_ID_SEPARATOR.join(["models", *repo.split("/")])
    if not Path(constants.HF_HUB_CACHE, folder).is_dir():
        return None  # without the hub's client, which takes a tenth of a second to import

    from huggingface_hub import try_to_load_from_cache

    with suppress(ValueError):  # not the name of a repository
        found = try_to_load_from_cache(repo, filename)
        return Path(found) if isinstance(found, str) else None
    return None


def unreachable_reason() -> str | None:
    """Return why nothing can be downloaded from the hub; None if it answers."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    return probe_error(constants.ENDPOINT)


@cache
def probe_error(address: str) -> str | None:
    """Return why a server cannot be reached; None if it answers within a second. Asked once a process."""
    answer: SimpleQueue[str | None] = SimpleQueue()
    host = urlsplit(address).hostname
    thread = Thread(target=lambda: answer.put(_probe(address)), daemon=True)  # looking a name up has no time limit
    thread.start()
    try:
        reason = answer.get(timeout=1.5 * ANSWERS_WITHIN_S)
    except Empty:
        return f"{host} does not answer"
    thread.join()  # a process with threads is not forked
    return f"{host} cannot be reached ({reason})" if reason else None


def _probe(address: str) -> str | None:
    from http.client import HTTPException
    from urllib.error import HTTPError
    from urllib.request import Request, urlopen

    try:
        urlopen(Request(address, method="HEAD"), timeout=ANSWERS_WITHIN_S).close()
    except HTTPError:
        return None  # it answered
    except (OSError, ValueError, HTTPException) as exc:
        reason = getattr(exc, "reason", exc)
        return " ".join(str(getattr(reason, "strerror", None) or reason).split()) or type(exc).__name__
    return None


def download(repo: str, filenames: Sequence[str]) -> str | None:
    """Download the first of these files that the repository has into the cache. Return why that failed, or None."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    silence_hub_client()
    for filename in filenames:
        try:
            hf_hub_download(repo, filename)
        except LocalEntryNotFoundError as exc:  # the hub could not be asked
            return first_line(exc.__cause__ or exc)
        except EntryNotFoundError:
            continue
        except Exception as exc:  # of the hub's client, the network, the disk
            return first_line(exc)
        return None
    return f"{repo} has none of the files {', '.join(filenames)}"


def first_line(exc: BaseException) -> str:
    """Return the first line of an error's text, as part of a sentence; with the second one where the first only announces it."""
    lines = [" ".join(line.split()) for line in str(exc).splitlines() if line.strip()] or [type(exc).__name__]
    text = " ".join(lines[:2]) if lines[0].endswith(":") else lines[0]
    return text.rstrip(".:") if len(text) <= 200 else f"{text[:200]}…"


def silence_hub_client() -> None:
    """Silence the warnings of the hub's client; show progress bars of downloads on a terminal only."""
    import huggingface_hub.utils

    utils: Any = huggingface_hub.utils  # what it exports has no types
    utils.logging.set_verbosity_error()
    if not sys.stderr.isatty():
        utils.disable_progress_bars()


@contextmanager
def offline(wanted: bool) -> Iterator[None]:
    """Let the hub's client read its cache alone inside the block, if `wanted`."""
    from huggingface_hub import constants

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = before or wanted
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before
