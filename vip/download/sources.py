"""Videos behind addresses as sources that can be opened.

In: an address that the user typed. Out: a source. A file whose server sends parts is read where it is. Any other video is downloaded
into the cache first, by yt-dlp where the address is a page.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vip.config import BatchSettings, ExtractSettings
from vip.dataset.items import ListItem
from vip.download import cache
from vip.download.addresses import youtube_id
from vip.errors import InputError, ItemError, NotInPartsError, StoreError
from vip.protocols import Observer
from vip.video import VIDEO_SUFFIXES, AddressSource, DownloadedSource, Source

INSTALL = "pip install 'vip-keyframes[batch]'"
BAR_STEPS = 100


def resolve_source(source: Source) -> Source:
    """Return the source that an address stands for: a video in the cache, or of a site that yt-dlp knows; any other as it is.

    The network is not used.
    """
    if not isinstance(source, AddressSource):
        return source
    exact = source.exact_location
    if found := cache.find(exact):
        return DownloadedSource(found[0], called=source.stem, address=source.address, shown=exact)
    site = _site_of(source.address)
    if site is None:
        return source
    shown, called = site
    path = found[0] if (found := cache.find(shown)) else cache.folder_of(shown) / "video"
    return DownloadedSource(path, called=called, address=source.address, shown=shown)


def download_source(source: Source, settings: ExtractSettings, observer: Observer, why: NotInPartsError | None = None) -> Source:
    """Return the source with its video on this machine, downloaded where it has to be.

    Args:
        why: the error of reading it in parts; None where that was not tried.

    Raises:
        InputError: it cannot be downloaded.
        UsageError: cookies or a proxy that cannot be used.
        StoreError: the disk is full.
    """
    if isinstance(source, DownloadedSource):
        if source.state() is not None:
            return source
        return _download_from_site(source, settings, observer)
    if not isinstance(source, AddressSource) or why is None:
        return source
    exact = source.exact_location
    if why.kind == "whole":
        return DownloadedSource(
            _download_whole(source, exact, why.version, observer), called=source.stem, address=source.address, shown=exact
        )
    if not _has_ytdlp():
        raise InputError(_missing_ytdlp_error(why)) from why
    if why.kind == "refused" and _site_of(source.address) is None:
        raise why
    return _download_from_site(DownloadedSource(Path(), called=source.stem, address=source.address, shown=exact), settings, observer, why)


def _missing_ytdlp_error(why: NotInPartsError) -> str:
    if why.kind == "refused":
        return str(why)
    return f"{why} Videos of web sites are read with yt-dlp; install it with {INSTALL}, or give the address of a video file."


# ---------------------------------------------------------------- whole files


def _download_whole(source: AddressSource, shown: str, version: str, observer: Observer) -> Path:
    """Return the file of a server that sends no parts; the one in the cache where the version is the same."""
    from vip.video.http import Connection  # loaded for few videos

    if (found := cache.find(shown)) and found[1].version == version:
        return found[0]
    folder = cache.folder_of(shown)
    most_bytes = cache.free_bytes()
    folder.mkdir(parents=True, exist_ok=True)
    suffix = Path(source.name).suffix.lower()
    try:
        with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as scratch:
            path = Path(scratch) / f"video{suffix if suffix in VIDEO_SUFFIXES else ''}"
            connection = Connection(source.address, str(source))
            try:
                with path.open("wb") as file, observer.track(f"Downloading {source.name}", BAR_STEPS) as advance:
                    connection.whole(file, _Progress(advance, most_bytes, str(source)))
            finally:
                connection.close()
            return cache.keep(shown, path, version=version)
    except OSError as exc:
        raise StoreError(f"{source} cannot be kept in {folder}: {exc.strerror}. Make room, or set XDG_CACHE_HOME.") from exc


class _Progress:
    """A progress bar that also ends a download which is larger than the room for it."""

    def __init__(self, advance: Callable[[], None], most_bytes: int, name: str) -> None:
        self._advance, self._most_bytes, self._name, self._shown = advance, most_bytes, name, 0

    def __call__(self, done: int, size: int | None) -> None:
        if max(done, size or 0) > self._most_bytes:
            raise InputError(f"{self._name} is larger than the room on this disk ({self._most_bytes / 1e9:.1f} GB). Make room.")
        while size and self._shown < BAR_STEPS * done // size:
            self._shown += 1
            self._advance()


# ---------------------------------------------------------------- videos of sites


def _download_from_site(
    source: DownloadedSource, settings: ExtractSettings, observer: Observer, why: NotInPartsError | None = None
) -> DownloadedSource:
    """Download the video of a page with yt-dlp."""
    from vip.download.fetch import fetch
    from vip.download.preflight import preflight

    batch_settings = BatchSettings(cookies=settings.cookies, proxy=settings.proxy, sleep=0.0, public_only=False)
    video = youtube_id(urlsplit(source.address))
    for note in preflight(batch_settings, video is not None):
        observer.note(note)
    item = ListItem("video", "youtube", video, source.shown) if video else ListItem("video", "address", source.address, source.shown)
    room = cache.free_bytes()
    folder = cache.folder_of(source.shown)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".part-", dir=folder) as scratch:
        try:
            with observer.track(f"Downloading {source.name}", BAR_STEPS) as advance:
                found = fetch(item, batch_settings, Path(scratch), room_bytes=room, on_progress=_Progress(advance, room, str(source)))
        except ItemError as exc:
            if why is not None and why.kind == "page" and exc.kind == "no_video":
                raise ItemError(f"{why} yt-dlp finds no video in it. Give the address of a video.", exc.kind) from exc
            raise ItemError(f"{source}: {exc}", exc.kind) from exc
        path = cache.keep(source.shown, found.path, title=found.title, subtitles=found.subtitles)
    title = f'"{found.title}"' if found.title else source.name
    observer.note(f"Downloaded {title}, {path.stat().st_size / 1e6:.1f} MB, into {path.parent}.")
    return DownloadedSource(path, called=source.called, address=source.address, shown=source.shown)


def _has_ytdlp() -> bool:
    return find_spec("yt_dlp") is not None


def _site_of(address: str) -> tuple[str, str] | None:
    """Return the address without secrets and the id of a video of a site that yt-dlp knows; None for any other, and without yt-dlp.

    An address that ends like a video file is not a page.
    """
    parts = urlsplit(address)
    if Path(parts.path).suffix.lower() in VIDEO_SUFFIXES or not _has_ytdlp():
        return None
    if video := youtube_id(parts):
        return f"https://www.youtube.com/watch?v={video}", video
    extractor = next((one for one in _extractors() if one.suitable(address)), None)
    called = extractor.get_temp_id(address) if extractor is not None else None
    if extractor is None or not called:
        return None
    source = AddressSource(address)
    name = "".join(letter if letter.isalnum() or letter in "-_." else "_" for letter in str(called)).strip("._")[:100]
    return source.exact_location, name or source.stem


@functools.cache
def _extractors() -> list[Any]:
    """Return yt-dlp's extractors of known sites, without the generic one, which looks into any page."""
    from yt_dlp.extractor import gen_extractor_classes

    return [one for one in gen_extractor_classes() if one.IE_NAME != "generic" and one.working()]
