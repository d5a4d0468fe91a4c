"""One connection to a server, for parts of one file; every failure is one sentence without logins or queries in it."""

from __future__ import annotations

import http.client
import socket
import ssl
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Thread
from time import sleep
from typing import IO, TypeVar
from urllib.parse import SplitResult, unquote, urljoin, urlsplit

from vip.errors import InputError, NotInPartsError

TIMEOUT_S = 20.0
LEAST_BYTES = 2000  # within it: a server that sends less may go on for days, and each time it is there in time
PAUSE_S = 0.5
MOST_REDIRECTS = 8
TRIES = 3  # servers close connections that have idled, and routers lose some
BLOCK_BYTES = 2**18  # of a file that is read whole
SNIFFED_BYTES = 1024
MOST_DIGITS = 18  # of the size of a file
PAGE_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body", b"<!--", b"<?xml")
PLAYLIST_STARTS = (b"#extm3u", b"<mpd")
MOVED = frozenset({301, 302, 303, 307, 308})
NOT_NOW = frozenset({500, 502, 503, 504})
MEANINGS = {
    401: "asks for a login; write it as https://USER:PASSWORD@HOST/…",
    403: "does not allow it (403 Forbidden)",
    404: "does not have it (404 Not Found)",
    410: "does not have it any more (410 Gone)",
    429: "was asked too often (429 Too Many Requests)",
}
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class AddressPart:
    """A part of a file on a server, with the size of the whole, the time of its last change and its ETag as the server writes them."""

    data: bytes
    size_bytes: int
    changed: str
    etag: str = ""

    def is_of_another_file(self, first: AddressPart) -> bool:
        """Return whether the file is not that of the first part any more: by its size, or by its ETag and, if there is one, its date.

        Servers that share the work may differ in one of the two for the same file, and a date alone may be that of the answer.
        """
        has_another_tag = bool(self.etag and first.etag) and self.etag != first.etag
        has_its_date = bool(self.changed and first.changed) and self.changed == first.changed
        return self.size_bytes != first.size_bytes or (has_another_tag and not has_its_date)


class Connection:
    """A connection to one server after the other, as redirects lead; kept open for the next request. For one thread."""

    def __init__(self, address: str, name: str) -> None:
        """Keep the address; nothing is asked yet. `name`: what messages call the file."""
        self.name = name
        self._address = address  # where the last redirect led
        self._given = address
        self._open: http.client.HTTPConnection | None = None
        self._socket: socket.socket | None = None
        self._response: http.client.HTTPResponse | None = None
        self._answered = False
        self._received_bytes = 0
        self._is_late = Event()

    def part(self, start: int, count: int) -> AddressPart:
        """Return at most `count` bytes from `start` on.

        Raises:
            NotInPartsError: the server gives no parts, or what is there is no file.
            InputError: the server cannot be reached.
        """

        def ask() -> AddressPart:
            with self._in_time():
                return self._part(self._follow_redirects({"Range": f"bytes={start}-{start + count - 1}"}), count)

        return self._retry(ask)

    def whole(self, file: IO[bytes], report: Callable[[int, int | None], None]) -> None:
        """Write everything from the first byte to the last.

        Args:
            report: called with the bytes so far, and those of all where the server says.

        Raises:
            NotInPartsError: what is there is no file.
            InputError: the server cannot be reached, or breaks off again and again.
            OSError: the file cannot be written.
        """
        self._retry(lambda: self._copy_to(file, report))

    def _retry(self, ask: Callable[[], ResultT]) -> ResultT:
        """Ask again where a connection breaks off."""
        for tries in range(TRIES, 0, -1):
            try:
                return ask()
            except _WriteError as exc:
                raise exc.cause from None
            except (OSError, http.client.HTTPException, ValueError) as exc:
                self.close()
                is_final = tries == 1 or not self._answered  # a server that never answered is an error at once
                if is_final or isinstance(exc, _SlowServerError):
                    raise InputError(f"{self.name} cannot be read: {_describe_error(exc, self._host())}") from exc
                sleep(PAUSE_S)
        raise AssertionError("the last try returns or raises")

    def _follow_redirects(self, headers: dict[str, str]) -> http.client.HTTPResponse:
        """Return the answer at the end of the redirects."""
        for _ in range(1 + MOST_REDIRECTS):
            response = self._send_request(headers)
            if response.status not in MOVED:
                self._received_bytes += LEAST_BYTES  # the body has a time of its own
                return response
            self.close()
            target = urljoin(self._address, response.headers.get("Location", ""))
            if urlsplit(target).scheme.lower() not in {"http", "https"} or not urlsplit(target).hostname:
                raise InputError(f"{self.name} leads to an address that is not http(s). Give the address of the video itself.")
            self._address = target
        raise InputError(
            f"{self.name} leads from one address to the next, more than {MOST_REDIRECTS} times. Give that of the video itself."
        )

    def _send_request(self, headers: dict[str, str]) -> http.client.HTTPResponse:
        parts = urlsplit(self._address)
        opened = self._open if self._open and self._open.sock else self._connect(parts)  # http.client closes it where an answer does
        always = {"Accept-Encoding": "identity", "User-Agent": "vip-keyframes"}
        opened.request("GET", _request_target(parts), headers={**headers, **always, **self._login(parts)})
        self._response = response = opened.getresponse()
        if response.status in NOT_NOW and self._answered:
            raise http.client.HTTPException(f"{response.status} {response.reason}")
        return response

    def _connect(self, parts: SplitResult) -> http.client.HTTPConnection:
        """Return an open connection, and keep its socket, which http.client lets go before the answer is read."""
        if self._is_late.is_set():  # what was broken off reads like a redirect
            raise _SlowServerError
        self.close()
        self._open = opened = _connection(parts)
        opened.connect()
        self._socket = opened.sock
        opened.sock.settimeout(TIMEOUT_S)
        return opened

    @contextmanager
    def _in_time(self) -> Iterator[None]:
        """Break the connection off where fewer than `LEAST_BYTES` of a body come within `TIMEOUT_S`.

        Nothing else counts: a server can go on for days with redirects, headers, sizes of chunks and trailers.

        Raises:
            _SlowServerError: that happened.
        """
        is_over, is_late = Event(), Event()
        self._is_late = is_late

        def watch() -> None:
            before = self._received_bytes
            while not is_over.wait(TIMEOUT_S):
                if is_late.is_set() or self._received_bytes - before < LEAST_BYTES:
                    is_late.set()
                    with suppress(OSError):
                        if self._socket:
                            self._socket.shutdown(socket.SHUT_RDWR)
                before = self._received_bytes

        Thread(target=watch, name="vip-slow-server", daemon=True).start()
        try:
            yield
        except Exception:
            if not is_late.is_set():
                raise
        finally:
            is_over.set()
        if is_late.is_set():  # the part of the answer that there is reads like a whole one
            raise _SlowServerError

    def _read(self, response: http.client.HTTPResponse, count: int) -> bytes:
        """Return `count` bytes, fewer where the answer ends."""
        data = bytearray()
        while piece := response.read1(count - len(data)) if len(data) < count else b"":
            data += piece
            self._received_bytes += len(piece)
        return bytes(data)

    def _login(self, parts: SplitResult) -> dict[str, str]:
        """Return the login for the server that the user gave it for, and for no other to which that one leads."""
        given = urlsplit(self._given)
        if given.username is None or (parts.scheme, parts.hostname, parts.port) != (given.scheme, given.hostname, given.port):
            return {}
        return {"Authorization": "Basic " + b64encode(f"{unquote(given.username)}:{unquote(given.password or '')}".encode()).decode()}

    def _part(self, response: http.client.HTTPResponse, count: int) -> AddressPart:
        size = response.headers.get("Content-Range", "").rpartition("/")[2]
        if response.status == 416 and size == "0":
            raise InputError(f"{self.name} is empty (0 bytes).")
        if len(size) > MOST_DIGITS:
            raise InputError(f"{self.name} cannot be read: the server states a size of {len(size):,} digits. Give another address.")
        if response.status == 200 or (response.status == 206 and not size.isdecimal()):
            self._check_page(response, self._read(response, SNIFFED_BYTES))
            self.close()
            text = f"{self.name} cannot be read in parts: its server always sends the whole file. Download it first."
            raise NotInPartsError(text, "whole", _version(response))
        if response.status != 206:
            raise self._status_error(response)
        data = self._read(response, count)
        if response.read(1):  # more than was asked for
            self.close()
        if not data:
            raise http.client.IncompleteRead(data, count)
        if not self._answered:
            self._check_page(response, data[:SNIFFED_BYTES])
        self._answered = True
        return AddressPart(data, int(size), response.headers.get("Last-Modified", ""), response.headers.get("ETag", ""))

    def _copy_to(self, file: IO[bytes], report: Callable[[int, int | None], None]) -> None:
        with self._in_time():
            response = self._follow_redirects({})
            if response.status != 200:
                raise self._status_error(response)
            self._answered, done = True, 0
            data = self._read(response, BLOCK_BYTES)
        length = response.headers.get("Content-Length", "")
        size = int(length) if length.isdecimal() else None
        self._check_page(response, data[:SNIFFED_BYTES])
        _write_or_raise(lambda: (file.seek(0), file.truncate()))
        while data:
            _write_or_raise(lambda block=data: file.write(block))  # type: ignore[misc]
            done += len(data)
            report(done, size)
            with self._in_time():
                data = self._read(response, BLOCK_BYTES)
        if size is not None and done < size:
            raise http.client.IncompleteRead(b"", size - done)

    def _status_error(self, response: http.client.HTTPResponse) -> NotInPartsError:
        self.close()
        means = MEANINGS.get(response.status, f"answers {response.status} {response.reason}")
        return NotInPartsError(f"{self.name} cannot be read: the server {means}.", "refused")

    def _check_page(self, response: http.client.HTTPResponse, start: bytes) -> None:
        """Refuse what only names a video: a web page, a playlist."""
        begins = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
        is_text = response.headers.get_content_type() in {"text/html", "application/xhtml+xml"} and b"\0" not in start
        is_playlist = begins.startswith(PLAYLIST_STARTS) or (begins.startswith(b"<?xml") and b"<mpd" in begins)
        if is_playlist or is_text or begins.startswith(PAGE_STARTS):
            self.close()
            what = "playlist, which only names other files" if is_playlist else "web page"
            raise NotInPartsError(f"{self.name} is a {what}, not a video file.", "page")

    def _host(self) -> str:
        parts = urlsplit(self._address)
        return parts.netloc.rpartition("@")[2]

    def close(self) -> None:
        for opened in (self._response, self._open):  # an answer that was not read to its end holds the socket
            if opened is not None:
                opened.close()
        self._response = self._open = None


class _SlowServerError(TimeoutError):
    """The server sends, but too little, as it would the next time."""


class _WriteError(Exception):
    """The disk fails, not the network."""

    def __init__(self, cause: OSError) -> None:
        super().__init__(str(cause))
        self.cause = cause


def _write_or_raise(write: Callable[[], object]) -> None:
    try:
        write()
    except OSError as exc:
        raise _WriteError(exc) from exc


def _version(response: http.client.HTTPResponse) -> str:
    """Return what tells this version of a file from another."""
    return " ".join(filter(None, (response.headers.get(name) for name in ("ETag", "Last-Modified", "Content-Length"))))


def _connection(parts: SplitResult) -> http.client.HTTPConnection:
    """Return a connection that is not open yet. It waits half the time, as a host may have a second address."""
    host, is_secure = parts.hostname or "", parts.scheme.lower() == "https"
    port = parts.port if parts.port is not None else 443 if is_secure else 80  # http.client finds one in an address of IPv6
    if is_secure:
        return http.client.HTTPSConnection(host, port, timeout=TIMEOUT_S / 2, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT_S / 2)


def _request_target(parts: SplitResult) -> str:
    """Return path and query, with %XX for characters that a request may not hold."""
    whole = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return "".join(sign if "!" <= sign <= "~" else "".join(f"%{byte:02X}" for byte in sign.encode()) for sign in whole)


def _describe_error(exc: Exception, host: str) -> str:
    if isinstance(exc, ssl.SSLCertVerificationError):
        return f"the certificate of {host} is not valid ({exc.verify_message})."
    if isinstance(exc, ssl.SSLError):
        return f"no secure connection to {host} ({getattr(exc, 'reason', None) or exc})."
    if isinstance(exc, TimeoutError):
        return f"{host} does not answer within {TIMEOUT_S:g} s, or sends fewer than {LEAST_BYTES:,} bytes in them. Try again later."
    if isinstance(exc, socket.gaierror):
        return f"there is no server {host}. Check the address and the network."
    if isinstance(exc, ConnectionRefusedError):
        return f"{host} refuses the connection. Check the address."
    if isinstance(exc, OSError):
        return f"the connection to {host} broke off ({exc.strerror or exc})."
    if isinstance(exc, http.client.InvalidURL | ValueError):
        return "that is no valid address."
    return f"{host} does not answer as a web server ({type(exc).__name__}: {exc})."
