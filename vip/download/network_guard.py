"""Limits what a download may reach: with `--public-only` the public network alone, never through another program, no server that drips.

A check of host names is not enough: a name may resolve to another address when it is used, and a redirect may lead anywhere. So an
audit hook of Python checks every connection of this process as it is made. It does not see connections of libraries in C, so those are
left out (see `ytdlp`). Programs that would fetch an address are not started. Proxies of the user are allowed. Where one connects to is
not seen, so every request is checked by the name of its host too. A name that looks public, and that only the proxy can resolve, passes.
"""

from __future__ import annotations

import ipaddress
import re
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from vip.download.addresses import is_public_host, is_public_ip, split_address
from vip.download.slow_servers import ConnectionWatch
from vip.errors import ItemError
from vip.wording import option

REQUEST_LINE = re.compile(rb"[A-Z]+ \S+ HTTP/1\.[01]\r\n")
PORTS = {"http": 80, "https": 443}
SOCKS_PORT = 1080


class BlockedConnectionError(PermissionError):
    """A connection or a program that the guard refused; `NetworkGuard.refusal` says why."""


@dataclass
class NetworkGuard:
    """The rules for connections while videos are fetched.

    Args:
        proxies: the addresses (IP, port) of the user's proxies.
    """

    public_only: bool
    proxies: frozenset[tuple[str, int]]
    watch: ConnectionWatch = field(default_factory=ConnectionWatch)
    _refusal: ItemError | None = None

    @property
    def refusal(self) -> ItemError | None:
        """Why a connection or a program was refused or broken off."""
        return self.watch.slow or self._refusal

    def watch_connection(self, connection: Any, address: Any) -> None:
        if self.watch.slow:  # else the next try would hang as long
            raise BlockedConnectionError(13, str(self.watch.slow))
        self.watch.add(connection, address)

    def check_connection(self, address: Any) -> None:
        if not self.public_only or not isinstance(address, tuple) or address[:2] in self.proxies:
            return
        if not is_public(str(address[0])):
            self._refuse(f"The address leads to {address[0]}, which is not in the public network; {option('public_only')} refuses it.")

    def check_request(self, data: object) -> None:
        """Check the hosts that a request names: in its first line, which a proxy reads, and under `Host`."""
        if not self.public_only or not isinstance(data, bytes):
            return
        for address in _asked_addresses(data):
            try:
                host = split_address(address).hostname or ""
            except ValueError:
                host = ""
            if not is_public_host(host) or (self.proxies and not all(map(is_public, _addresses_of(host, None)))):
                name = host or address
                self._refuse(f"The address leads to {name}, which is not in the public network; {option('public_only')} refuses it.")

    def check_program(self, arguments: object) -> None:
        if any("://" in _text(argument) for argument in (arguments if isinstance(arguments, list | tuple) else [arguments])):
            self._refuse("The video is a kind of stream that only another program could fetch, which vip does not let it.", "no_video")

    def _refuse(self, message: str, kind: Any = "not_public") -> None:
        self._refusal = ItemError(message, kind)
        raise BlockedConnectionError(13, message)


_active: NetworkGuard | None = None
_is_hooked = False


@contextmanager
def guard_network(public_only: bool, proxies: Iterable[str]) -> Iterator[NetworkGuard]:
    """Check all connections of this process inside the block.

    Args:
        proxies: addresses of the user's proxies, such as `http://proxy:3128`.
    """
    global _active, _is_hooked
    guard = NetworkGuard(public_only, frozenset(_endpoints(proxies)) if public_only else frozenset())
    if not _is_hooked:
        sys.addaudithook(_audit)
        _is_hooked = True
    _active = guard
    try:
        with guard.watch:
            yield guard
    finally:
        _active = None


def waiting() -> AbstractContextManager[None]:
    """Return a context for the time in which a server is waited for; see `ConnectionWatch`."""
    return _active.watch.waiting() if _active else nullcontext()


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if _active is None:
        return
    if event == "socket.connect":
        _active.check_connection(arguments[1])
        _active.watch_connection(*arguments)
    elif event == "http.client.send":
        _active.check_request(arguments[1])
    elif event == "subprocess.Popen":
        _active.check_program(arguments[1])


def is_public(address: str) -> bool:
    """Return whether a text is an IP address of the public network."""
    with suppress(ValueError):
        return is_public_ip(ipaddress.ip_address(address.partition("%")[0]))
    return False


def _asked_addresses(data: bytes) -> Iterator[str]:
    """Yield the addresses that the head of a request names; none for other data."""
    if not REQUEST_LINE.match(data):
        return
    first, *headers = data.partition(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")
    method, target, _ = first.split(" ")
    if method == "CONNECT":
        yield f"http://{target}"
    elif not target.startswith("/"):
        yield target
    yield from (f"http://{header[5:].strip()}" for header in headers if header[:5].lower() == "host:")


def _endpoints(proxies: Iterable[str]) -> Iterator[tuple[str, int]]:
    for proxy in proxies:
        parts = urlsplit(proxy if "://" in proxy else f"http://{proxy}")
        port = parts.port or PORTS.get(parts.scheme, SOCKS_PORT)
        for address in _addresses_of(parts.hostname or "", port):
            yield address, port


def _addresses_of(name: str, port: int | None) -> set[str]:
    """Return the IP addresses of a name; none for a name that only a proxy can resolve."""
    with suppress(OSError, UnicodeError):
        return {str(found[4][0]) for found in socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)}
    return set()


def _text(argument: object) -> str:
    return argument.decode("utf-8", "replace") if isinstance(argument, bytes) else str(argument)
