"""One connection to a server: what its answers mean, what is asked again, and what is written of a whole file."""

from __future__ import annotations

import http.client
import io
import threading
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import vip.video.http
from vip.errors import InputError, NotInPartsError
from vip.video.http import Connection, _request_target

ADDRESS = "https://me:secret@host/films/a.mp4?key=hidden"
DATA = bytes(range(256)) * 40


class Answer:
    """The answer of a server to one request; `lost`: the connection breaks off behind so many bytes."""

    def __init__(self, status: int = 206, data: bytes = DATA[:100], *, lost: int | None = None, **headers: str) -> None:
        self.status, self.reason, self.lost = status, "Reason", lost
        self.headers = Message()
        for name, value in headers.items():
            self.headers[name.replace("_", "-")] = value
        self._body = io.BytesIO(data)

    def read(self, size: int) -> bytes:
        if self.lost is not None and self._body.tell() + size > self.lost:
            size = self.lost - self._body.tell()
            if not size:
                raise ConnectionResetError(104, "reset")
        return self._body.read(size)

    read1 = read


def part(data: bytes = DATA[:100], size: int = len(DATA), **headers: str) -> Answer:
    return Answer(206, data, Content_Range=f"bytes 0-{len(data) - 1}/{size}", **headers)


class Scripted(Connection):
    """A connection whose answers are given, in their order."""

    def __init__(self, *answers: Answer | Exception) -> None:
        super().__init__(ADDRESS, "a film")
        self.answers = list(answers)
        self.asked: list[tuple[str, str | None]] = []
        self.closed = 0

    def _send_request(self, headers: dict[str, str]) -> Any:
        self.asked.append((self._address, headers.get("Range")))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "PAUSE_S", 0)


def test_a_part_has_its_bytes_the_size_of_all_and_the_version_of_the_file() -> None:
    connection = Scripted(part(Last_Modified="Tue", ETag='"a"'), part())
    assert connection.part(50, 100) == vip.video.http.AddressPart(DATA[:100], len(DATA), "Tue", '"a"')
    assert (second := connection.part(0, 1)).changed == second.etag == ""
    assert [asked for _, asked in connection.asked] == ["bytes=50-149", "bytes=0-0"]


@pytest.mark.parametrize(
    ("size_bytes", "changed", "etag", "is_another"),
    [
        (9, "Tue", '"a"', False),
        (8, "Tue", '"a"', True),
        (9, "Wed", '"b"', True),
        (9, "Wed", '"a"', False),  # copied to another server of the same name
        (9, "Tue", '"b"', False),
        (9, "Wed", "", False),  # of a server that writes the time of its answer
        (9, "", '"b"', True),
        (9, "", "", False),
    ],
)
def test_a_part_is_of_another_file_if_its_size_or_all_that_is_said_of_its_version_differs(
    size_bytes: int, changed: str, etag: str, is_another: bool
) -> None:
    first = vip.video.http.AddressPart(b"", 9, "Tue", '"a"')
    assert vip.video.http.AddressPart(b"x", size_bytes, changed, etag).is_of_another_file(first) is is_another


def test_of_a_server_that_says_no_version_only_the_size_is_compared() -> None:
    first = vip.video.http.AddressPart(b"", 9, "")
    assert not vip.video.http.AddressPart(b"x", 9, "Tue", '"a"').is_of_another_file(first)
    assert vip.video.http.AddressPart(b"x", 10, "").is_of_another_file(first)


def test_a_server_that_sends_more_than_it_was_asked_for_is_asked_on_another_connection() -> None:
    connection = Scripted(part(DATA[:100]), part(DATA[:101]))
    assert connection.part(0, 100).data == DATA[:100]
    assert connection.closed == 0
    assert connection.part(0, 100).data == DATA[:100]
    assert connection.closed == 1


@pytest.mark.parametrize(
    ("answer", "kind", "said"),
    [
        (Answer(200, ETag="e", Content_Length="9"), "whole", "cannot be read in parts"),
        (Answer(206, Content_Range="bytes 0-9/*"), "whole", "cannot be read in parts"),
        (Answer(206), "whole", "cannot be read in parts"),
        (Answer(404), "refused", "does not have it (404 Not Found)"),
        (Answer(401), "refused", "asks for a login"),
        (Answer(418), "refused", "answers 418 Reason"),
        (Answer(416, Content_Range="bytes */9"), "refused", "answers 416 Reason"),
    ],
)
def test_a_server_that_gives_no_parts_says_why(answer: Answer, kind: str, said: str) -> None:
    connection = Scripted(answer)
    with pytest.raises(NotInPartsError) as raised:
        connection.part(0, 100)
    assert (raised.value.kind, raised.value.version) == (kind, "e 9" if answer.headers["ETag"] else "")
    assert said in str(raised.value)
    assert connection.closed
    assert len(connection.asked) == 1


def test_an_empty_file_is_said() -> None:
    with pytest.raises(InputError, match=r"^a film is empty \(0 bytes\)\.$"):
        Scripted(Answer(416, Content_Range="bytes */0")).part(0, 100)


@pytest.mark.parametrize(
    ("type_", "data", "what"),
    [
        ("text/html", b"Watch our film!", "web page"),
        ("application/xhtml+xml; charset=utf-8", b"Watch!", "web page"),
        ("text/html", b"\0\0\0\x18ftypmp42", None),
        ("video/mp4", b"<!DOCTYPE HTML><p>", "web page"),
        ("video/mp4", b"\xef\xbb\xbf \n<HTML>", "web page"),
        ("video/mp4", b"<?xml version='1.0'?><rss>", "web page"),
        ("video/mp4", b"<?xml version='1.0'?><MPD>", "playlist, which only names other files"),
        ("video/mp4", b"#EXTM3U\n", "playlist, which only names other files"),
        ("video/mp4", b"A film <html>", None),
        ("text/plain", b"A film", None),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_page_or_a_playlist_is_no_video_whatever_the_server_calls_it(type_: str, data: bytes, what: str | None, whole: bool) -> None:
    answer = Answer(200, data, Content_Type=type_) if whole else part(data, Content_Type=type_)
    connection, file = Scripted(answer), io.BytesIO()

    def ask() -> bytes:
        if not whole:
            return connection.part(0, 1000).data
        connection.whole(file, lambda done, size: None)
        return file.getvalue()

    if what is None:
        assert ask() == data
    else:
        with pytest.raises(NotInPartsError, match=rf"^a film is a {what}, not a video file\.$") as raised:
            ask()
        assert raised.value.kind == "page"
        assert file.getvalue() == b""


def test_only_the_first_part_is_looked_at_for_a_page() -> None:
    connection = Scripted(part(), part(b"<html>"))
    connection.part(0, 100)
    assert connection.part(100, 100).data == b"<html>"


@pytest.mark.parametrize("error", [ConnectionResetError(104, "reset"), http.client.BadStatusLine("?"), part(b"")])
@pytest.mark.parametrize(("times", "is_read"), [(1, True), (2, True), (3, False)])
def test_what_breaks_off_is_asked_for_three_times_where_the_server_has_answered(error: Any, times: int, is_read: bool) -> None:
    connection = Scripted(part(), *[error] * times, part())
    connection.part(0, 100)
    if is_read:
        assert connection.part(0, 100).data == DATA[:100]
        assert len(connection.asked) == 2 + times
    else:
        with pytest.raises(InputError, match=r"^a film cannot be read: "):
            connection.part(0, 100)
        assert len(connection.asked) == 4


@pytest.mark.parametrize(
    ("locations", "target"),
    [
        (["/b.mp4"], "https://me:secret@host/b.mp4"),
        (["b.mp4?k=1"], "https://me:secret@host/films/b.mp4?k=1"),
        (["//other/b.mp4"], "https://other/b.mp4"),
        (["HTTP://other/b.mp4"], "HTTP://other/b.mp4"),
        (["/new/b.mp4", "c.mp4"], "https://me:secret@host/new/c.mp4"),
        (["https://other/x/", "y/", "?k=1"], "https://other/x/y/?k=1"),
        (["b.mp4"] * vip.video.http.MOST_REDIRECTS, "https://me:secret@host/films/b.mp4"),
    ],
)
def test_a_redirect_leads_from_where_it_stands_and_holds_for_later_requests(locations: list[str], target: str) -> None:
    connection = Scripted(*(Answer(302, Location=location) for location in locations), part(), part())
    connection.part(0, 100)
    connection.part(0, 100)
    assert len(connection.asked) == len(locations) + 2
    assert [address for address, _ in connection.asked][-2:] == [target, target]


@pytest.mark.parametrize("name", ["ETag", "Last-Modified", "Content-Length"])
def test_a_server_that_sends_whole_files_tells_one_version_from_another_by_any_of_three_marks(name: str) -> None:
    versions = []
    for mark in ("1", "2", "2"):
        marks = {"ETag": "0", "Last-Modified": "0", "Content-Length": "0", name: mark}
        with pytest.raises(NotInPartsError) as raised:
            Scripted(Answer(200, DATA, **marks)).part(0, 100)
        versions.append(raised.value.version)
    assert versions[0] != versions[1] == versions[2]


def test_nobody_watches_a_connection_that_nobody_waits_for() -> None:
    """A watcher that stayed would break an idle connection off, and each request would leave one."""
    others = set(threading.enumerate())
    connection = Scripted(part(), Answer(404), Answer(200))
    connection.part(0, 100)
    with pytest.raises(NotInPartsError):
        connection.part(0, 100)
    connection.whole(io.BytesIO(), lambda done, size: None)
    for watcher in set(threading.enumerate()) - others:
        watcher.join(5)
        assert not watcher.is_alive()
    assert not connection._is_late.is_set()


@pytest.mark.parametrize("location", ["ftp://other/b.mp4", "file:///etc/passwd", "data:,x"])
def test_a_redirect_to_anything_else_is_refused(location: str) -> None:
    with pytest.raises(InputError, match=r"leads to an address that is not http\(s\)"):
        Scripted(Answer(301, Location=location)).part(0, 100)


@pytest.mark.parametrize("lost", [0, 1, 5000])
@pytest.mark.parametrize("left", [0, 20_000])
def test_a_whole_file_that_broke_off_is_written_anew(monkeypatch: pytest.MonkeyPatch, lost: int, left: int) -> None:
    monkeypatch.setattr(vip.video.http, "BLOCK_BYTES", 4000)
    file, told = io.BytesIO(b"x" * left), list[tuple[int, int | None]]()
    length = str(len(DATA))
    answers = [Answer(200, b"y" * len(DATA), lost=lost, Content_Length=length), Answer(200, DATA, Content_Length=length)]
    connection = Scripted(*answers)
    connection.whole(file, lambda done, size: told.append((done, size)))
    assert file.getvalue() == DATA
    assert told[-3:] == [(4000, len(DATA)), (8000, len(DATA)), (len(DATA), len(DATA))]


@pytest.mark.parametrize(("length", "is_whole"), [(None, True), ("unknown", True), (str(len(DATA)), True), (str(len(DATA) + 1), False)])
def test_a_file_that_is_shorter_than_the_server_said_is_not_whole(length: str | None, is_whole: bool) -> None:
    connection = Scripted(*(Answer(200, DATA, **({"Content_Length": length} if length else {})) for _ in range(3)))
    told: list[int | None] = []
    if is_whole:
        connection.whole(io.BytesIO(), lambda done, size: told.append(size))
        assert told == [int(length) if length and length.isdecimal() else None]
    else:
        with pytest.raises(InputError, match="a film cannot be read"):
            connection.whole(io.BytesIO(), lambda done, size: None)


@pytest.mark.parametrize(
    ("status", "said"),
    [(404, "does not have it"), (403, "does not allow it"), (401, "asks for a login"), (206, "answers 206"), (500, "answers 500")],
)
def test_a_server_that_does_not_send_the_whole_file_says_why_and_nothing_is_written(status: int, said: str) -> None:
    """Not the page that it sends instead, nor a part."""
    connection, told, file = Scripted(Answer(status)), list[int](), io.BytesIO(b"before")
    with pytest.raises(NotInPartsError, match=rf"^a film cannot be read: the server {said}") as refused:
        connection.whole(file, lambda done, size: told.append(done))
    assert (refused.value.kind, file.getvalue(), told) == ("refused", b"before", [])
    assert (len(connection.asked), connection.closed) == (1, 1), "it is not asked again"


def test_a_full_disk_is_no_fault_of_the_network(tmp_path: Path) -> None:
    class Full(io.BytesIO):
        def write(self, data: Any) -> int:
            raise OSError(28, "No space left on device")

    connection = Scripted(Answer(200, DATA))
    with pytest.raises(OSError, match="No space left"):
        connection.whole(Full(), lambda done, size: None)
    assert len(connection.asked) == 1


@pytest.mark.parametrize(
    ("address", "target"),
    [
        ("https://h", "/"),
        ("https://h?a=b", "/?a=b"),
        ("https://h/ä b.mp4?q=é#there", "/%C3%A4%20b.mp4?q=%C3%A9"),
        ("https://h/a%20b.mp4", "/a%20b.mp4"),
        ("https://h/a\x7fb\x01", "/a%7Fb%01"),
    ],
)
def test_what_a_request_may_not_hold_is_written_as_hex(address: str, target: str) -> None:
    assert _request_target(urlsplit(address)) == target


@pytest.mark.parametrize(
    ("led_to", "is_sent"),
    [
        ("https://host/b", True),
        ("https://host:444/b", False),
        ("http://host/b", False),
        ("https://other/b", False),
        ("https://host.other/b", False),
    ],
)
def test_a_login_goes_to_the_server_that_it_was_given_for(led_to: str, is_sent: bool) -> None:
    login = Connection(ADDRESS, "a film")._login(urlsplit(led_to))
    assert login == ({"Authorization": "Basic bWU6c2VjcmV0"} if is_sent else {})


@pytest.mark.parametrize(
    ("address", "server"),
    [("http://[::1]/a", ("::1", 80)), ("https://[fd00::a]/a", ("fd00::a", 443)), ("http://[::1]:8000/a", ("::1", 8000))],
)
def test_the_end_of_an_address_of_version_6_is_no_port(address: str, server: tuple[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def connect(self: http.client.HTTPConnection) -> None:
        asked.append((self.host, self.port))
        raise ConnectionRefusedError

    monkeypatch.setattr(http.client.HTTPConnection, "connect", connect)
    with pytest.raises(InputError, match="refuses the connection"):
        Connection(address, "a film").part(0, 100)
    assert asked == [server]
