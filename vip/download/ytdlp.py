"""A downloader around yt-dlp: it writes into one folder, prints nothing, keeps to limits, and gives a file or an error.

Importing yt-dlp and compiling the patterns of its 1,800 sites takes about 0.6 s of a processor; a fetch after the first takes 0.015 s.
So `downloader_for` keeps one, with the player code of YouTube that it has read, as long as the settings are the same.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from vip.config import BatchSettings
from vip.download.addresses import referer
from vip.download.disk_space import STEP_BYTES, DiskSpace, NoRoomError
from vip.download.network_guard import waiting
from vip.download.options import NOT_INSTALLED, parameters
from vip.download.slow_servers import PIECE_BYTES
from vip.errors import BackendError, ItemError
from vip.timecode import timecode
from vip.wording import option

PAGE_BYTES = 50 * 2**20  # the longest page or manifest that is read into memory
KEPT_LINES = 20
MOST_OPEN_ANSWERS = 50  # of servers, closed at the end; a long video may have thousands
EXTENSIONS = {"mp4", "m4v", "mov", "3gp", "webm", "mkv", "ogv", "ogg", "avi", "flv", "wmv", "mpg", "mpeg", "ts", "gif"}
PYTHON_ONLY = {"Urllib", "Requests", "Websockets"}  # `network_guard` sees their connections; curl_cffi connects in C


ProgressCallback = Callable[[int, int | None], None]


def no_progress(done: int, size: int | None) -> None:
    """Ignore the progress of a download: bytes so far, and of the whole file."""


class YtdlpLog:
    """A logger for yt-dlp that keeps the last warnings and errors and prints nothing."""

    def __init__(self) -> None:
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def debug(self, message: str) -> None:
        pass

    info = debug

    def warning(self, message: str) -> None:
        self.lines.append(str(message)[:2000])

    error = warning


class DownloadLimits:
    """The limits on one download: length, size, disk space. `refusal` says which one the video breaks."""

    def __init__(self, settings: BatchSettings) -> None:
        self.settings = settings
        self.room_bytes = 0
        self.on_progress: ProgressCallback = no_progress
        self.space: DiskSpace | None = None
        self.needed_bytes: int | None = None
        """Disk space that the download needs and that is not free now."""
        self.refusal: ItemError | None = None
        self._downloaded_bytes: dict[str, int] = {}
        self._copies = 1  # on the disk: 2 while picture and sound are merged into one file

    def start(self, room_bytes: int, space: DiskSpace | None, on_progress: ProgressCallback) -> None:
        """Forget the last download, and set the limits of the next."""
        self.room_bytes, self.space, self.needed_bytes, self.on_progress = room_bytes, space, None, on_progress
        self.refusal, self._downloaded_bytes, self._copies = None, {}, 1

    def match_filter(self, info: dict[str, Any], *, incomplete: bool = False) -> str | None:
        """Return why a video may not be downloaded, and None where it may: a `match_filter` of yt-dlp."""
        self.refusal = self._refusal(info)
        return str(self.refusal) if self.refusal else None

    def _refusal(self, info: dict[str, Any]) -> ItemError | None:
        if "playlist_count" in info and "formats" not in info:
            return ItemError("The address is a list of videos. Give the address of each video.", "no_video")
        if info.get("is_live") or info.get("live_status") in {"is_live", "is_upcoming"}:
            return ItemError("The address is a live stream, which has no end.", "no_video")
        length, shortest, longest = info.get("duration"), self.settings.min_length, self.settings.max_length
        if longest is not None and length is not None and length > longest:
            return ItemError(f"The video lasts {timecode(length)}, more than {option('max_length', f'{timecode(longest)}')}.", "too_long")
        if shortest is not None and length is not None and length < shortest:
            return ItemError(f"The video lasts {timecode(length)}, less than {option('min_length', f'{timecode(shortest)}')}.", "too_short")
        parts = info.get("requested_formats") or [info]
        self._copies = 2 if len(parts) > 1 else 1
        if refusal := self._too_large(sum(part.get("filesize") or 0 for part in parts)):
            return refusal
        if self.space:  # before anything is downloaded
            self.space.wait_for(self._copies * sum(part.get("filesize") or part.get("filesize_approx") or 0 for part in parts))
        return None

    def progress(self, state: dict[str, Any]) -> None:
        """Check the limits for every block that is written: a progress hook of yt-dlp."""
        from yt_dlp.utils import DownloadCancelled

        done, size = state.get("downloaded_bytes") or 0, state.get("total_bytes") or state.get("total_bytes_estimate")
        self.on_progress(done, int(size) if size else None)
        self._downloaded_bytes[str(state.get("filename"))] = max(done, state.get("total_bytes") or 0)
        self.refusal = self._too_large(sum(self._downloaded_bytes.values()))
        if self.refusal:
            raise DownloadCancelled(str(self.refusal))
        needed = self._copies * sum(self._downloaded_bytes.values())
        if self.space and needed > self.space.held_bytes and not self.space.take(needed + STEP_BYTES):
            self.needed_bytes = max(needed + STEP_BYTES, 2 * self.space.held_bytes)
            raise DownloadCancelled("There is no room on the disk now.")

    def _too_large(self, size: int) -> ItemError | None:
        if size * self._copies <= self.room_bytes:
            return None
        room = f"{option('disk_budget')} has room for {self.room_bytes / 1e6:,.0f} MB"
        return ItemError(f"The video has {size / 1e6:,.0f} MB or more, and {room}.", "too_large")


class Downloader:
    """One `yt_dlp.YoutubeDL` with vip's limits."""

    def __init__(self, settings: BatchSettings) -> None:
        self.log, self.limits = YtdlpLog(), DownloadLimits(settings)
        given = parameters(settings)
        given |= {"logger": self.log, "match_filter": self.limits.match_filter, "progress_hooks": [self.limits.progress]}
        self._yt: Any = _confined_class()(given, public_only=settings.public_only)

    @property
    def proxies(self) -> Iterable[str]:
        return [value for name, value in self._yt.proxies.items() if name != "no" and value]

    def load(self, address: str, folder: Path, *, extractor: str | None = None) -> dict[str, Any]:
        """Download the video at the address into the folder, and return yt-dlp's info; call `limits.start` first.

        Args:
            extractor: yt-dlp's name of the site, where that is known.

        Raises:
            ItemError: there is no video, or it breaks a limit.
            NoRoomError: the disk space that it needs is not free now.
            Exception: any other error of yt-dlp.
        """
        self._yt.folder = folder
        try:
            info = self._yt.extract_info(address, ie_key=extractor)
        except Exception:
            if self.limits.needed_bytes is not None:
                raise NoRoomError(self.limits.needed_bytes) from None
            if self.limits.refusal:
                raise self.limits.refusal from None
            raise
        if self.limits.needed_bytes is not None:
            raise NoRoomError(self.limits.needed_bytes)
        if self.limits.refusal:
            raise self.limits.refusal
        if not info or not info.get("requested_downloads"):
            raise ItemError("There is no video at the address.", "no_video")
        return dict(info)

    def load_subtitles(self, info: dict[str, Any], subtitles: dict[str, Any], path: Path) -> None:
        """Write one of the subtitles that `info` names to a file."""
        if subtitles.get("data") is not None:
            path.write_text(subtitles["data"], encoding="utf-8")
        else:
            self._yt.dl(str(path), {"http_headers": info.get("http_headers"), **subtitles}, subtitle=True)

    @property
    def automatic_subtitles(self) -> bool:
        return bool(self._yt.params.get("writeautomaticsub"))

    def read(self, address: str) -> str | None:
        """Return the text at an address; None where there is none (HTTP 403, 404 or 410)."""
        from yt_dlp.networking.exceptions import HTTPError

        try:
            return str(self._yt.urlopen(address).read(4096).decode("utf-8", "replace"))
        except HTTPError as exc:
            if exc.status in {403, 404, 410}:
                return None
            raise

    def reset(self) -> None:
        """Close open answers and clear the log; connections stay open for the next fetch from the same host."""
        self.log.lines.clear()
        self._yt.close_answers()

    def close(self) -> None:
        self.reset()
        self._yt.close()


@functools.cache
def _confined_class() -> Any:
    """Return a `YoutubeDL` that writes into `folder` alone, and bounds the size of pages."""
    try:
        from yt_dlp import YoutubeDL
        from yt_dlp.networking.common import Request
        from yt_dlp.networking.exceptions import HTTPError, TransportError
    except ImportError as exc:
        raise BackendError(NOT_INSTALLED) from exc

    def read_bounded(read: Callable[[int], bytes], amount: int | None = None) -> bytes:
        """Return at most so many bytes, a page if none are named; the server has a time limit for each piece."""
        left, pieces = PAGE_BYTES + 1 if amount is None else amount, list[bytes]()
        while left > 0:
            with waiting():
                pieces.append(read(min(left, PIECE_BYTES)))
            left = left - len(pieces[-1]) if pieces[-1] else 0
        data = b"".join(pieces)
        if amount is None and len(data) > PAGE_BYTES:
            raise TransportError(f"the page has more than {PAGE_BYTES >> 20} MB")
        return data

    class ConfinedYoutubeDL(YoutubeDL):  # type: ignore[misc,unused-ignore]
        folder: Path

        def __init__(self, given: dict[str, Any], *, public_only: bool) -> None:
            self._public_only = public_only
            self._answers: deque[Any] = deque(maxlen=MOST_OPEN_ANSWERS)
            super().__init__(given)

        def get_output_path(self, dir_type: str = "", filename: str | None = None) -> str:
            return str(self.folder / Path(filename or "").name)

        def build_request_director(self, handlers: Iterable[Any], preferences: Any = None) -> Any:
            kept = [one for one in handlers if not self._public_only or one.RH_KEY in PYTHON_ONLY]
            return super().build_request_director(kept, preferences)

        def urlopen(self, req: Any) -> Any:
            if isinstance(req, Request):
                self._clean_referer(req)
            try:
                with waiting():
                    answer = super().urlopen(req)
            except HTTPError as exc:
                exc.response.read = functools.partial(read_bounded, exc.response.read)
                self._answers.append(exc)
                raise
            answer.read = functools.partial(read_bounded, answer.read)
            self._answers.append(answer)
            return answer

        def _clean_referer(self, request: Request) -> None:
            """Replace the address of a page, which extractors give as it came, with login and query."""
            page = request.headers.get("Referer")
            if page and page != self.params["http_headers"].get("Referer"):  # that one is of the user
                request.headers = request.headers.copy()  # of the video, for all its parts
                request.headers["Referer"] = referer(page, request.url)

        def process_info(self, info_dict: dict[str, Any]) -> Any:
            if info_dict.get("ext") not in EXTENSIONS:  # of an address such as get.php; yt-dlp refuses what could be a program
                info_dict["ext"] = "unknown_video"
            return super().process_info(info_dict)

        def close_answers(self) -> None:
            for answer in self._answers:
                answer.close()
            self._answers.clear()

    return ConfinedYoutubeDL


_last: tuple[BatchSettings, Downloader] | None = None


def downloader_for(settings: BatchSettings) -> Downloader:
    """Return a downloader with these settings, the one of the last call where they are the same."""
    global _last
    if _last is None or _last[0] != settings:
        if _last is not None:
            _last[1].close()
        _last = settings, Downloader(settings)
    return _last[1]
