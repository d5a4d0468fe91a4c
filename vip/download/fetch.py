"""Download of one video: look up its id of YouTube-8M, download it with yt-dlp, and move it to its place.

A download is written into a temporary folder, which is deleted when it fails. No text of a server becomes a path.
"""

from __future__ import annotations

import gc
import re
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from vip.config import BatchSettings
from vip.dataset.items import DownloadedVideo, ListItem
from vip.dataset.sanitize import without_logins
from vip.download.addresses import YOUTUBE_ID
from vip.download.disk_space import UNKNOWN_BYTES, DiskSpace, NoRoomError
from vip.download.errors import causes, item_error
from vip.download.memory_limit import limit_memory
from vip.download.network_guard import guard_network
from vip.download.youtube8m import look_up
from vip.download.ytdlp import Downloader, ProgressCallback, downloader_for, no_progress
from vip.errors import ItemError
from vip.untrusted import one_line
from vip.wording import option

YOUTUBE = "https://www.youtube.com"
LANGUAGE = re.compile(r"[A-Za-z0-9-]{2,20}")
SUFFIX = re.compile(r"\.[a-z0-9]{2,5}")
INFO_FIELDS = ("uploader", "upload_date", "license", "webpage_url", "language", "categories", "tags")
LONGEST = 500  # letters of a title, and of each text of `INFO_FIELDS`
MOST_TAGS = 100
CONTROL = frozenset(range(32)) - frozenset(b"\t\n\v\f\r\x1b")


def fetch(
    item: ListItem,
    settings: BatchSettings,
    folder: Path,
    *,
    room_bytes: int,
    space: DiskSpace | None = None,
    on_progress: ProgressCallback = no_progress,
) -> DownloadedVideo:
    """Fetch the video of the item into `folder`, as `KEY.mp4` or with its own suffix; a local file stays where it is.

    Args:
        room_bytes: the video and its subtitles may have so many bytes.
        space: where other downloads share that room: this one waits until it has enough.
        on_progress: called with the bytes that are downloaded, and with those of the whole file where the host states them.

    Raises:
        ItemError: it cannot be fetched; nothing of it is left in `folder`.
        UsageError, BackendError: no video can be fetched, for a reason that `preflight` also finds.
    """
    if item.kind == "file":
        return _local(Path(item.source), settings)
    downloader = downloader_for(settings)
    if space:
        space.wait_for(UNKNOWN_BYTES)
    while True:
        try:
            return _fetch_once(item, settings, downloader, folder, room_bytes, space, on_progress)
        except NoRoomError as exc:
            assert space is not None
            _release_files(exc)
            space.wait_for(exc.size_bytes)


def _fetch_once(
    item: ListItem,
    settings: BatchSettings,
    downloader: Downloader,
    folder: Path,
    room_bytes: int,
    space: DiskSpace | None,
    on_progress: ProgressCallback,
) -> DownloadedVideo:
    with guard_network(settings.public_only, downloader.proxies) as guard:
        try:
            with tempfile.TemporaryDirectory(prefix=".fetching-", dir=folder) as scratch, limit_memory():
                downloader.limits.start(room_bytes, space, on_progress)
                return _fetch(item, settings, downloader, Path(scratch), folder)
        except NoRoomError:
            raise
        except Exception as exc:  # a bug in one of 1,800 extractors costs this video only
            error = guard.refusal or (exc if isinstance(exc, ItemError) else item_error(exc, downloader.log.lines))
            _release_files(exc)
            raise error from None
        finally:
            downloader.reset()


def _release_files(exc: Exception) -> None:
    """Close the files that yt-dlp left open: a deleted file that is open still takes room on the disk."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        for one in causes(exc):
            traceback.clear_frames(one.__traceback__)
        gc.collect()


def _local(path: Path, settings: BatchSettings) -> DownloadedVideo:
    if settings.public_only:
        raise ItemError(f"{path} is a file of this machine, which {option('public_only')} refuses.", "not_public")
    try:
        with path.open("rb"):
            return DownloadedVideo(path, is_ours=False)
    except FileNotFoundError as exc:
        raise ItemError(f"There is no file {path}.", "missing") from exc
    except OSError as exc:
        raise ItemError(f"{path} cannot be read: {exc.strerror}.", "unreadable") from exc


def _fetch(item: ListItem, settings: BatchSettings, downloader: Downloader, scratch: Path, folder: Path) -> DownloadedVideo:
    known = None
    if item.kind == "youtube8m":
        known = look_up(item.source, settings.youtube8m_base_url, downloader.read)
    elif item.kind == "youtube":
        known = item.source
    address, extractor = _address(item.source, known, settings)
    info = downloader.load(address, scratch, extractor=extractor)
    video = Path(info["requested_downloads"][0]["filepath"])
    if _is_text(video):
        raise ItemError("The server sends a text and no video. Open the address in a browser to see what it says.", "no_video")
    suffix = video.suffix.lower() if SUFFIX.fullmatch(video.suffix.lower()) else ".video"
    subtitles = {folder / f"{item.key}.{path.name}": path for path in _subtitles(info, downloader, scratch)}
    result = DownloadedVideo(
        path=folder / f"{item.key}{suffix}",
        youtube_id=known or (str(info["id"]) if info.get("extractor_key") == "Youtube" else None),
        title=_text(info.get("title")),
        duration_s=float(info["duration"]) if info.get("duration") else None,
        info={name: value for name in INFO_FIELDS if (value := _info_value(info.get(name))) is not None},
        subtitles={path.stem: target for target, path in subtitles.items()},
    )
    _move({**subtitles, result.path: video})
    return result


def _address(source: str, known: str | None, settings: BatchSettings) -> tuple[str, str | None]:
    """Return the address of the video, and yt-dlp's name of its site where that is known."""
    if known is not None:
        if not YOUTUBE_ID.fullmatch(known):
            raise ItemError(f"{known[:40]!r} is no YouTube id, which has 11 letters, digits, - and _.", "bad_row")
        base = settings.video_base_url.rstrip("/")
        return f"{base}/watch?v={known}", "Youtube" if base == YOUTUBE else None
    try:
        parts = urlsplit(source)
        is_good = parts.scheme.lower() in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_good = False
    if not is_good:
        raise ItemError("Only addresses that begin with http:// or https:// are fetched.", "bad_row")
    return source, None


def _is_text(path: Path) -> bool:
    """Return True for a page or a playlist: every container of videos has control characters at its beginning."""
    with path.open("rb") as file:
        return CONTROL.isdisjoint(file.read(1024))


def _subtitles(info: dict[str, Any], downloader: Downloader, scratch: Path) -> Iterator[Path]:
    """Yield `en.vtt` and so on: WebVTT in the video's own language and in English, or else in the first language there is.

    One that cannot be fetched is left out. Automatic ones are fetched only with `--ytdlp-opts --write-auto-subs`, since sites limit
    those requests most.
    """
    offered: dict[str, list[dict[str, Any]]] = info.get("subtitles") or {}
    if downloader.automatic_subtitles:
        offered = {**(info.get("automatic_captions") or {}), **offered}
    for language in _languages(offered, info.get("language")):
        choice = next((one for one in offered[language] if one.get("ext") == "vtt"), None)
        path = scratch / f"{language}.vtt"
        if choice is None:
            continue
        try:
            downloader.load_subtitles(info, choice, path)
            with path.open("rb") as file:
                is_whole = file.read(16).removeprefix(b"\xef\xbb\xbf").startswith(b"WEBVTT")
        except Exception:  # a bug in an extractor; the video itself is there
            is_whole = False
        if is_whole:
            yield path


def _languages(offered: Iterable[str], own: object) -> list[str]:
    names = [name for name in offered if LANGUAGE.fullmatch(name)]
    wanted = {str(own or "en").split("-")[0], "en"}
    chosen: dict[str, str] = {}
    for name in sorted(names, key=len):  # "en" before "en-GB", and one of them
        if (language := name.split("-")[0]) in wanted:
            chosen.setdefault(language, name)
    return list(chosen.values()) or names[:1]


def _move(files: dict[Path, Path]) -> None:
    """Move each file to its target; all of them or none."""
    try:
        for target, path in files.items():
            path.replace(target)
    except OSError:
        for target in files:
            target.unlink(missing_ok=True)
        raise


def _text(value: object) -> str | None:
    return one_line(value)[:LONGEST] or None if isinstance(value, str) else None


def _info_value(value: object) -> Any:
    """Return a text or a list of texts, an address without its login; None for anything else."""
    if isinstance(value, list | tuple):
        return [text for one in value[:MOST_TAGS] if (text := _text(one))] or None
    text = _text(value)
    return without_logins(text) if text else None
