"""Meaning of an address: a video of YouTube, another host, or nothing that may be fetched.

In: text that others wrote. Out: a YouTube id, a host, or why the address is refused. No host name is resolved here: `network_guard`
checks the connections of a download, redirects included.
"""

from __future__ import annotations

import re
import socket
import unicodedata
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from urllib.parse import SplitResult, parse_qs, unquote, urlsplit

YOUTUBE_ID = re.compile(r"[A-Za-z0-9_-]{11}")
YOUTUBE_HOSTS = frozenset({"youtube.com", "youtube-nocookie.com", "youtu.be"})
PRIVATE_NAMES = (".local", ".localhost", ".localdomain", ".internal", ".lan", ".home.arpa", ".intranet", ".corp", ".home")
NAT64 = IPv6Network("64:ff9b::/96")  # its last 32 bits are an address of IPv4; Python calls all of it reserved

_IN_PATH = re.compile(rf"/(?:shorts|embed|live|v|e)/({YOUTUBE_ID.pattern})(?![A-Za-z0-9_-])")
_SHORT = re.compile(rf"/({YOUTUBE_ID.pattern})(?![A-Za-z0-9_-])")


def youtube_id(parts: SplitResult) -> str | None:
    """Return the id of the one video that an address of YouTube names; None for other hosts, playlists and channels."""
    host = (parts.hostname or "").rstrip(".")
    for prefix in ("www.", "m.", "music."):
        host = host.removeprefix(prefix)
    if host not in YOUTUBE_HOSTS:
        return None
    if host == "youtu.be":
        found = _SHORT.match(parts.path)
        return found[1] if found else None
    if parts.path.rstrip("/") == "/watch":
        named = parse_qs(parts.query).get("v", [""])[0]
        return named if YOUTUBE_ID.fullmatch(named) else None
    found = _IN_PATH.match(parts.path)
    return found[1] if found else None


def split_address(address: str) -> SplitResult:
    """Split an http(s) address that names a host.

    Raises:
        ValueError: it names none; the message is the end of a sentence.
    """
    try:
        parts = urlsplit(address)
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise ValueError("is no address: its host or port cannot be read") from None
    if not host or not host.strip("."):
        raise ValueError("is no address: it has no host")
    if "\\" in address or " " in parts.netloc or "%" in host.partition("%25")[0]:  # programs disagree on which host that is
        raise ValueError("is no address: its host is written in a way that programs read differently")
    return parts


def referer(page: str, address: str) -> str:
    """Return the Referer of a request for the address: the page without login and query, and only its origin to another origin.

    A page without login and query stays whole, as some hosts ask for one of their own. The query is kept from its own origin too,
    since a redirect takes the Referer along. Empty if the page is no address.
    """
    try:
        parts, asked = urlsplit(page), urlsplit(address)
    except ValueError:
        return ""
    if not (parts.scheme and parts.netloc):
        return ""
    host = parts.netloc.rpartition("@")[2]
    if host == parts.netloc and not parts.query and not parts.fragment:
        return page
    is_same_origin = (parts.scheme, host.lower()) == (asked.scheme, asked.netloc.rpartition("@")[2].lower())
    return f"{parts.scheme}://{host}{parts.path if is_same_origin else '/'}"


def is_public_host(host: str) -> bool:
    """Return False for a host of the private network, by name or by IP address in any spelling; names are not resolved."""
    host = unicodedata.normalize("NFKC", unquote(host)).replace("。", ".").rstrip(".").lower()
    try:
        return is_public_ip(ip_address(host.strip("[]")))
    except ValueError:
        pass
    try:
        return is_public_ip(IPv4Address(socket.inet_aton(host)))  # 2130706433, 0x7f.1, 0177.0.0.1, 127.1
    except (OSError, ValueError):
        return "." in host and not host.endswith(PRIVATE_NAMES)


def is_public_ip(ip: IPv4Address | IPv6Address) -> bool:
    """Return whether it is an address of the internet: not private, loopback, link-local, reserved or multicast, nor does it wrap one."""
    if isinstance(ip, IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour or (ip.teredo[1] if ip.teredo else None)
        if ip in NAT64:
            inner = IPv4Address(int(ip) & 0xFFFFFFFF)
        if inner is not None:
            return is_public_ip(inner)
        if ip.is_site_local:
            return False
    return ip.is_global and not ip.is_multicast and not ip.is_reserved
