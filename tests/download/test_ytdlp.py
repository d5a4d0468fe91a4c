"""What a video must keep within, judged from what yt-dlp says of it."""

from __future__ import annotations

from contextlib import nullcontext
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from yt_dlp import YoutubeDL
from yt_dlp.networking.common import Request, Response
from yt_dlp.networking.exceptions import HTTPError, TransportError
from yt_dlp.utils import DownloadCancelled
from yt_dlp.utils.networking import HTTPHeaderDict

from vip.config import BatchSettings
from vip.download import ytdlp
from vip.download.disk_space import STEP_BYTES, NoRoomError
from vip.download.ytdlp import KEPT_LINES, Downloader, DownloadLimits, YtdlpLog, no_progress
from vip.errors import ItemError


class Room:
    """Shared room of which others have taken all but so much."""

    def __init__(self, held_bytes: int = 0, free_bytes: int = 0) -> None:
        self.held_bytes, self.free_bytes = held_bytes, free_bytes
        self.waited: list[int] = []

    def wait_for(self, size_bytes: int) -> None:
        self.waited.append(size_bytes)

    def take(self, size_bytes: int) -> bool:
        if size_bytes <= self.free_bytes:
            self.held_bytes = size_bytes
        return size_bytes <= self.free_bytes


def limits(room_bytes: int = 10**9, space: Room | None = None, **settings: Any) -> DownloadLimits:
    made = DownloadLimits(BatchSettings(**settings))
    made.start(room_bytes, space, no_progress)
    return made


@pytest.mark.parametrize(
    ("info", "kind"),
    [
        ({"duration": 60}, None),
        ({"duration": 600}, None),
        ({"duration": 59.9}, "too_short"),
        ({"duration": 600.1}, "too_long"),
        ({"duration": 0}, "too_short"),
        ({}, None),
        ({"is_live": True}, "no_video"),
        ({"live_status": "is_upcoming"}, "no_video"),
        ({"live_status": "was_live"}, None),
        ({"playlist_count": 2}, "no_video"),
        ({"playlist_count": 2, "formats": []}, None),
        ({"filesize": 1000}, None),
        ({"filesize": 1001}, "too_large"),
        ({"requested_formats": [{"filesize": 400}, {"filesize": 100}]}, None),
        ({"requested_formats": [{"filesize": 400}, {"filesize": 101}]}, "too_large"),
    ],
)
def test_a_video_is_judged_by_what_is_said_of_it(info: dict[str, Any], kind: str | None) -> None:
    judged = limits(1000, min_length=60, max_length=600)
    said = judged.match_filter(info)
    assert (judged.refusal and judged.refusal.kind) == kind
    assert said == (str(judged.refusal) if kind else None)


def test_parts_that_are_merged_need_twice_the_room() -> None:
    room = Room()
    limits(space=room).match_filter({"requested_formats": [{"filesize": 400}, {"filesize_approx": 100}]})
    limits(space=room).match_filter({"requested_formats": [{"filesize": 400}, {"filesize": 50}, {"filesize": 50}]})
    limits(space=room).match_filter({"filesize": 400})
    assert room.waited == [1000, 1000, 400]


def test_files_of_a_download_count_together_and_the_next_begins_anew() -> None:
    judged = limits(1000)
    judged.progress({"filename": "a", "downloaded_bytes": 600})
    judged.progress({"filename": "a", "downloaded_bytes": 700})
    with pytest.raises(DownloadCancelled):
        judged.progress({"filename": "b", "downloaded_bytes": 301})
    assert judged.refusal
    assert judged.refusal.kind == "too_large"
    judged.start(1000, None, no_progress)
    judged.progress({"filename": "b", "downloaded_bytes": 1000})
    assert judged.refusal is None


@pytest.mark.parametrize(
    ("state", "is_refused"),
    [
        ({"downloaded_bytes": 1, "total_bytes": 1000}, False),
        ({"downloaded_bytes": 1, "total_bytes": 1001}, True),
        ({"downloaded_bytes": 1001, "total_bytes": 900}, True),
        ({"downloaded_bytes": 1, "total_bytes_estimate": 1001}, False),
        ({"downloaded_bytes": 1000}, False),
        ({"downloaded_bytes": 1001}, True),
    ],
)
def test_a_size_that_the_server_states_is_refused_with_the_first_block_and_an_estimate_is_not(
    state: dict[str, int], is_refused: bool
) -> None:
    judged = limits(1000)
    with pytest.raises(DownloadCancelled) if is_refused else nullcontext():
        judged.progress({"filename": "a", **state})
    assert (judged.refusal is not None) == is_refused


def test_what_is_here_is_told_with_the_size_where_that_is_known() -> None:
    told: list[tuple[int, int | None]] = []
    judged = DownloadLimits(BatchSettings())
    judged.start(10**9, None, lambda done, size: told.append((done, size)))
    judged.progress({"downloaded_bytes": 5, "total_bytes": 10})
    judged.progress({"downloaded_bytes": 6, "total_bytes_estimate": 11.5})
    judged.progress({"downloaded_bytes": None})
    assert told == [(5, 10), (6, 11), (0, None)]


def test_one_that_grows_takes_a_step_more_than_it_needs() -> None:
    room = Room(held_bytes=100, free_bytes=10**9)
    judged = limits(space=room)
    judged.progress({"filename": "a", "downloaded_bytes": 100})
    assert room.held_bytes == 100
    judged.progress({"filename": "a", "downloaded_bytes": 101})
    assert room.held_bytes == 101 + STEP_BYTES


@pytest.mark.parametrize(("held", "done", "needed"), [(100, 101, 101 + STEP_BYTES), (10**8, 10**8 + 1, 2 * 10**8)])
def test_one_that_finds_no_room_asks_for_twice_what_it_had_or_a_step_more(held: int, done: int, needed: int) -> None:
    judged = limits(space=Room(held_bytes=held))
    with pytest.raises(DownloadCancelled):
        judged.progress({"filename": "a", "downloaded_bytes": done})
    assert (judged.needed_bytes, judged.refusal) == (needed, None)


def test_nothing_of_a_download_counts_for_the_next_one() -> None:
    told: list[int] = []
    judged = DownloadLimits(BatchSettings())
    judged.start(1000, Room(held_bytes=100), lambda done, size: told.append(done))
    judged.match_filter({"requested_formats": [{"filesize": 30}, {"filesize": 30}]})
    with pytest.raises(DownloadCancelled, match="no room"):
        judged.progress({"filename": "a", "downloaded_bytes": 60})
    assert judged.needed_bytes is not None
    judged.start(1000, None, no_progress)
    assert judged.needed_bytes is None
    judged.progress({"filename": "b", "downloaded_bytes": 1000})
    assert (judged.refusal, judged.needed_bytes, told) == (None, None, [60])


REFUSED = ItemError("It is too long.", "too_long")
FOUND = {"requested_downloads": [{"filepath": "video.mp4"}], "title": "A film"}


@pytest.mark.parametrize("found", [FOUND, {}, None, {"requested_downloads": []}, RuntimeError("yt-dlp")])
@pytest.mark.parametrize(("needed_bytes", "refusal"), [(None, None), (None, REFUSED), (7, None), (7, REFUSED)])
def test_what_a_limit_refused_is_told_whatever_yt_dlp_makes_of_it(
    tmp_path: Path, found: Any, needed_bytes: int | None, refusal: ItemError | None
) -> None:
    def extract_info(address: str, ie_key: str | None) -> Any:
        made.limits.needed_bytes, made.limits.refusal = needed_bytes, refusal
        if isinstance(found, Exception):
            raise found
        return found

    made = Downloader.__new__(Downloader)
    made._yt, made.limits = SimpleNamespace(extract_info=extract_info), limits()
    if needed_bytes is None and refusal is None and found is FOUND:
        assert made.load("https://h/a", tmp_path) == FOUND
        assert made._yt.folder == tmp_path
        return
    with pytest.raises((NoRoomError, ItemError, RuntimeError)) as raised:
        made.load("https://h/a", tmp_path)
    if needed_bytes is not None:
        assert isinstance(raised.value, NoRoomError)
        assert raised.value.size_bytes == 7
    elif refusal is not None:
        assert raised.value is REFUSED
    else:
        assert raised.value is found or str(raised.value) == "There is no video at the address."


def test_a_downloader_is_kept_as_long_as_the_settings_are_the_same_and_then_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []

    class Made:
        def __init__(self, settings: BatchSettings) -> None:
            self.settings = settings

        def close(self) -> None:
            closed.append(id(self))

    monkeypatch.setattr(ytdlp, "_last", None)
    monkeypatch.setattr(ytdlp, "Downloader", Made)
    first = ytdlp.downloader_for(BatchSettings(sleep=1))
    assert ytdlp.downloader_for(BatchSettings(sleep=1)) is first
    assert closed == []
    second = ytdlp.downloader_for(BatchSettings(sleep=2))
    assert second is not first
    assert closed == [id(first)]
    assert ytdlp.downloader_for(BatchSettings(sleep=2)) is second


def test_the_last_words_of_yt_dlp_are_kept_and_short() -> None:
    log = YtdlpLog()
    for number in range(KEPT_LINES + 5):
        log.warning(f"{number} " + "x" * 5000)
    log.debug("not kept")
    assert (len(log.lines), log.lines[0][:2], max(map(len, log.lines))) == (20, "5 ", 2000)


# ---------------------------------------------------------------- what yt-dlp may do


class Answer:
    """An answer of a server; `status` where it refuses."""

    def __init__(self, data: bytes = b"page") -> None:
        self.data, self.closed = BytesIO(data), 0

    def read(self, amount: int | None = None) -> bytes:
        return self.data.read(amount)

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Downloader:
    monkeypatch.setattr(ytdlp, "PAGE_BYTES", 10)
    return Downloader(BatchSettings())


def answers(monkeypatch: pytest.MonkeyPatch, *given: Answer | Exception) -> None:
    left = list(given)

    def urlopen(self: Any, req: Any) -> Any:
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(YoutubeDL, "urlopen", urlopen)


def refusal(status: int, page: bytes = b"no") -> HTTPError:
    return HTTPError(Response(BytesIO(page), "https://h/a", {}, status=status))


@pytest.mark.parametrize("name", ["video.mp4", "../../video.mp4", "/etc/video.mp4", "a/b/video.mp4"])
def test_whatever_a_file_is_called_it_lies_in_the_folder(made: Downloader, tmp_path: Path, name: str) -> None:
    made._yt.folder = tmp_path
    assert made._yt.get_output_path("home", name) == made._yt.get_output_path("", name) == str(tmp_path / "video.mp4")


@pytest.mark.parametrize(
    ("length", "amount", "is_read"), [(10, None, True), (11, None, False), (11, 5, True), (11, 11, True), (0, None, True)]
)
def test_a_page_is_read_up_to_a_length(
    made: Downloader, monkeypatch: pytest.MonkeyPatch, length: int, amount: int | None, is_read: bool
) -> None:
    answers(monkeypatch, Answer(b"x" * length))
    page = made._yt.urlopen("https://h/a")
    if is_read:
        assert page.read(amount) == (b"x" * length)[:amount]
    else:
        with pytest.raises(TransportError, match="the page has more than"):
            page.read(amount)


def test_the_page_of_a_refusal_is_read_up_to_a_length_too(made: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, refusal(404, b"x" * 11))
    with pytest.raises(HTTPError) as caught:
        made._yt.urlopen("https://h/a")
    with pytest.raises(TransportError, match="the page has more than"):
        caught.value.response.read()


def test_a_downloader_that_is_closed_closes_yt_dlp_behind_its_answers(made: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[str] = []
    monkeypatch.setattr(made._yt, "close_answers", lambda: closed.append("answers"))
    monkeypatch.setattr(made._yt, "close", lambda: closed.append("yt-dlp"))
    made.reset()
    assert closed == ["answers"]
    made.close()
    assert closed == ["answers", "answers", "yt-dlp"]


def test_answers_are_closed_once_and_the_words_of_yt_dlp_forgotten(made: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, error = Answer(), Answer(), refusal(404)
    answers(monkeypatch, one, error, other)
    made._yt.urlopen("https://h/a")
    with pytest.raises(HTTPError):
        made._yt.urlopen("https://h/b")
    made._yt.urlopen("https://h/c")
    made.log.warning("A warning")
    made.reset()
    made.reset()
    assert (one.closed, other.closed) == (1, 1)
    assert error.response.closed
    assert list(made.log.lines) == []


@pytest.mark.parametrize(("status", "is_none"), [(403, True), (404, True), (410, True), (401, False), (429, False), (500, False)])
def test_an_address_with_nothing_behind_it_has_no_text(
    made: Downloader, monkeypatch: pytest.MonkeyPatch, status: int, is_none: bool
) -> None:
    answers(monkeypatch, refusal(status))
    with nullcontext() if is_none else pytest.raises(HTTPError):
        assert made.read("https://h/a") is None


def test_the_text_at_an_address_is_its_beginning_whatever_its_letters(made: Downloader, monkeypatch: pytest.MonkeyPatch) -> None:
    answers(monkeypatch, Answer(b"\xffa" + b"b" * 9000))
    assert made.read("https://h/a") == "\ufffda" + "b" * 4094


@pytest.mark.parametrize(("given", "sent"), [(None, "https://h/"), ("https://h/a?own=1", "https://h/a?own=1")])
def test_a_referer_of_the_user_is_sent_as_it_is_and_that_of_a_page_is_not(
    monkeypatch: pytest.MonkeyPatch, given: str | None, sent: str
) -> None:
    made = Downloader(BatchSettings(ytdlp_opts=f"--add-headers Referer:{given}" if given else ""))
    answers(monkeypatch, Answer())
    of_video = HTTPHeaderDict({"Referer": "https://h/a?own=1"})
    made._yt.urlopen(request := Request("https://cdn/v.mp4", headers=of_video))
    assert (request.headers["Referer"], of_video["Referer"]) == (sent, "https://h/a?own=1")


@pytest.mark.parametrize(
    ("ext", "written"), [("mp4", "mp4"), ("webm", "webm"), ("php", "unknown_video"), ("exe", "unknown_video"), (None, "unknown_video")]
)
def test_a_suffix_that_is_none_of_a_video_is_replaced(
    made: Downloader, monkeypatch: pytest.MonkeyPatch, ext: str | None, written: str
) -> None:
    monkeypatch.setattr(YoutubeDL, "process_info", lambda self, info: info["ext"])
    assert made._yt.process_info({"ext": ext}) == written


@pytest.mark.parametrize("public_only", [True, False])
def test_with_public_only_nothing_connects_that_the_guard_does_not_see(public_only: bool) -> None:
    used = {handler.RH_KEY for handler in Downloader(BatchSettings(public_only=public_only))._yt._request_director.handlers.values()}
    assert "Urllib" in used
    assert not public_only or used <= ytdlp.PYTHON_ONLY


@pytest.mark.parametrize(
    ("proxies", "used"),
    [({}, []), ({"http": "http://p:1", "no": "localhost"}, ["http://p:1"]), ({"all": "", "https": "socks5://p"}, ["socks5://p"])],
)
def test_the_proxies_are_those_that_are_used(
    made: Downloader, monkeypatch: pytest.MonkeyPatch, proxies: dict[str, str], used: list[str]
) -> None:
    monkeypatch.setattr(type(made._yt), "proxies", proxies)
    assert list(made.proxies) == used


@pytest.mark.parametrize("data", ["WEBVTT", ""])
def test_subtitles_that_are_there_are_not_asked_for(made: Downloader, tmp_path: Path, data: str) -> None:
    asked: list[dict[str, Any]] = []
    made._yt.dl = lambda name, info, subtitle: asked.append(info)
    made.load_subtitles({"http_headers": {"Referer": "r"}}, {"data": data, "ext": "vtt"}, tmp_path / "en.vtt")
    assert ((tmp_path / "en.vtt").read_text(), asked) == (data, [])
    made.load_subtitles({"http_headers": {"Referer": "r"}}, {"url": "https://h/en.vtt"}, tmp_path / "de.vtt")
    made.load_subtitles({}, {"url": "https://h/en.vtt", "http_headers": {"Referer": "own"}}, tmp_path / "de.vtt")
    assert [info["http_headers"] for info in asked] == [{"Referer": "r"}, {"Referer": "own"}]
