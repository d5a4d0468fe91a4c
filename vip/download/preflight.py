"""Checks before a list is fetched: refuse settings that cannot work, and name what is missing. Without the network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime
from urllib.parse import urlsplit

from vip.config import BatchSettings
from vip.download.options import NOT_INSTALLED, RUNTIMES, parameters
from vip.errors import BackendError, UsageError
from vip.wording import option

OLD_DAYS = 90  # of yt-dlp: YouTube changes every few weeks
PROXIES = ("http", "https", "socks4", "socks4a", "socks5", "socks5h")


def preflight(settings: BatchSettings, items_need_youtube: bool) -> list[str]:
    """Return a sentence for each thing that is missing.

    Raises:
        UsageError: a bad proxy, base address, `--ytdlp-opts`, or file of cookies.
        BackendError: yt-dlp is not installed, or too old.
    """
    try:
        from yt_dlp.globals import supported_js_runtimes  # noqa: F401 - older ones ignore js_runtimes
    except ImportError as exc:
        raise BackendError(_unusable_reason()) from exc
    if settings.proxy is not None:
        _check(option("proxy"), settings.proxy, PROXIES, "http://host:3128 or socks5://host:1080")
    _check("--video-base-url", settings.video_base_url, ("http", "https"), "https://www.youtube.com")
    _check("--youtube8m-base-url", settings.youtube8m_base_url, ("http", "https"), "http://data.yt8m.org/2/j/i")
    given = parameters(settings)
    return [*_check_cookies(settings), *_check_audio(settings), *(_check_youtube(given["js_runtimes"]) if items_need_youtube else ())]


def _unusable_reason() -> str:
    try:
        from yt_dlp.version import __version__
    except ImportError:
        return NOT_INSTALLED
    return f"yt-dlp {__version__} is too old. Update it with pip install -U 'yt-dlp[default]'."


def _check(option: str, address: str, schemes: tuple[str, ...], example: str) -> None:
    try:
        parts = urlsplit(address)
        is_good = parts.scheme.lower() in schemes and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        is_good = False
    if not is_good:
        hidden = f"…{address.rpartition('@')[2]}" if "@" in address else address  # a password stands before the @
        raise UsageError(f"{option} {hidden!r} is no address that can be used. Write it like {example}.")


def _check_cookies(settings: BatchSettings) -> Iterator[str]:
    if settings.cookies is not None and settings.cookies.stat().st_mode & 0o077:
        yield f"{settings.cookies} holds the keys to your accounts, and others may read it. Run chmod 600 {settings.cookies}."


def _check_audio(settings: BatchSettings) -> Iterator[str]:
    if settings.audio and not shutil.which("ffmpeg"):
        yield "ffmpeg is not installed, so sound comes only with videos that have it in the same file. Install ffmpeg to have the others."


def _check_youtube(chosen: dict[str, dict[str, str | None] | None]) -> Iterator[str]:
    from yt_dlp.dependencies import yt_dlp_ejs
    from yt_dlp.globals import supported_js_runtimes
    from yt_dlp.version import __version__

    year, month, day = (int(part) for part in __version__.split(".")[:3])
    days = (datetime.now(UTC).date() - date(year, month, day)).days
    if days > OLD_DAYS:
        yield f"yt-dlp {__version__} is {days} days old, and YouTube changes faster. Update it with pip install -U 'yt-dlp[default]'."
    kinds = {name: supported_js_runtimes.value[name] for name in chosen if name in supported_js_runtimes.value}
    found = [kind((chosen[name] or {}).get("path")).info for name, kind in kinds.items()]
    if not any(one is not None and one.supported for one in found):
        old = "".join(f" {one.name} {one.version} is too old." for one in found if one is not None)
        names = ", ".join(RUNTIMES[:-1]) + f" or {RUNTIMES[-1]}"
        yield f"YouTube needs a JavaScript runtime ({names}), without which formats are missing.{old} Install Deno: pip install deno."
    if not yt_dlp_ejs:
        yield "YouTube needs the package yt-dlp-ejs, without which formats are missing. Install it with pip install -U 'yt-dlp[default]'."
