from __future__ import annotations

import ipaddress
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.download.conftest import Fetch
from tests.download.test_fetch import page, video
from tests.video_host import VideoHost, hosting
from vip.download.network_guard import BlockedConnectionError, guard_network, is_public
from vip.errors import ItemError

Refused = Callable[..., ItemError]
PRIVATE = [
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.2.0/24", "192.168.0.0/16"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
]
PRIVATE_6 = ["::1/128", "::/128", "fc00::/7", "fe80::/10", "ff00::/8", "2001:db8::/32", "64:ff9b:1::/48"]


def within(networks: list[str]) -> st.SearchStrategy[str]:
    return st.sampled_from(networks).flatmap(
        lambda network: st.ip_addresses(network=network).map(str)  # type: ignore[arg-type]
    )


@pytest.fixture
def proxy() -> Iterator[VideoHost]:
    """An HTTP proxy that knows every host of the world: itself."""
    with hosting() as running:
        yield running


# ---------------------------------------------------------------- addresses


@given(within(PRIVATE + PRIVATE_6))
def test_no_address_of_a_private_network_is_public(address: str) -> None:
    assert not is_public(address)


@given(within(PRIVATE))
def test_an_address_hidden_in_one_of_version_6_stays_what_it_is(address: str) -> None:
    number = int(ipaddress.IPv4Address(address))
    assert not is_public(f"::ffff:{address}")
    assert not is_public(str(ipaddress.IPv6Address((0x64FF9B << 96) + number)))
    assert not is_public(str(ipaddress.IPv6Address((0x2002 << 112) + (number << 80))))


@pytest.mark.parametrize("address", ["8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808", "2002:808:808::1"])
def test_what_everybody_can_reach_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("text", ["", "localhost", "example.com", "127.1", "fe80::1%eth0", "::ffff:127.0.0.1%lo"])
def test_what_is_no_public_address(text: str) -> None:
    assert not is_public(text)


# ---------------------------------------------------------------- fetching


@pytest.mark.slow
@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "0", "2130706433", "127.1"])
def test_this_machine_is_refused_whatever_it_is_called(host: VideoHost, refused: Refused, mp4: bytes, name: str) -> None:
    address = host.put("/v.mp4", mp4, "video/mp4").replace("127.0.0.1", name)
    assert refused(address, public_only=True).kind == "not_public"
    assert not host.asked


def test_without_public_only_this_machine_is_fine(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    assert fetched(host.put("/v.mp4", mp4, "video/mp4").replace("127.0.0.1", "localhost")).path.read_bytes() == mp4


@pytest.mark.slow
def test_a_name_that_changes_its_address_after_a_look_is_refused(
    host: VideoHost, refused: Refused, mp4: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = host.put("/v.mp4", mp4, "video/mp4").replace("127.0.0.1", "rebind.invalid")
    answers = iter(["93.184.215.14", *["127.0.0.1"] * 9])
    ask = socket.getaddrinfo

    def changing(name: Any, port: Any, *others: Any, **more: Any) -> Any:
        return ask(next(answers) if name == "rebind.invalid" else name, port, *others, **more)

    monkeypatch.setattr(socket, "getaddrinfo", changing)
    socket.getaddrinfo("rebind.invalid", 80)  # somebody's look
    assert refused(address, public_only=True).kind == "not_public"
    assert not host.asked


def test_a_local_file_is_refused(refused: Refused) -> None:
    assert refused("/etc/passwd", "file", public_only=True).kind == "not_public"


@pytest.mark.slow
def test_the_lookup_of_ids_is_watched_too(refused: Refused, host: VideoHost) -> None:
    assert refused("ABCD", "youtube8m", public_only=True).kind == "not_public"
    assert not host.asked


def test_the_users_proxy_may_be_private_and_is_used(host: VideoHost, proxy: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    proxy.put("/v.mp4", mp4, "video/mp4")
    assert fetched("http://videos.invalid/v.mp4", proxy=proxy.address, public_only=True).path.read_bytes() == mp4
    assert set(proxy.asked) == {"http://videos.invalid/v.mp4"}


def test_the_proxy_of_the_environment_is_the_users_too(
    proxy: VideoHost, fetched: Fetch, mp4: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy.address)
    proxy.put("/v.mp4", mp4, "video/mp4")
    assert fetched("http://videos.invalid/v.mp4", public_only=True, sleep=0.001).path.read_bytes() == mp4


@pytest.mark.slow
@pytest.mark.parametrize(
    "target",
    [
        *("http://127.0.0.1:1/v.mp4", "http://[::1]/v.mp4", "http://localhost/v.mp4", "https://10.0.0.1/v.mp4"),
        *("http://127.0.0.1./v.mp4", "HTTP://0x7f.0.0.1./v.mp4", "http://db.internal/v.mp4", "https://intranet/"),
    ],
)
def test_a_redirect_into_the_private_network_is_refused_behind_a_proxy(proxy: VideoHost, refused: Refused, target: str) -> None:
    proxy.put("/v.mp4", status=302, headers={"Location": target})
    assert refused("http://videos.invalid/v.mp4", proxy=proxy.address, public_only=True).kind == "not_public"
    assert proxy.asked == ["http://videos.invalid/v.mp4"]


@pytest.mark.slow
def test_a_redirect_past_the_proxy_into_the_private_network_is_refused(
    host: VideoHost, proxy: VideoHost, refused: Refused, mp4: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", proxy.address)
    monkeypatch.setenv("no_proxy", "localhost")
    target = host.put("/v.mp4", mp4, "video/mp4").replace("127.0.0.1", "localhost")
    proxy.put("/v.mp4", status=302, headers={"Location": target})
    assert refused("http://videos.invalid/v.mp4", public_only=True, sleep=0.002).kind == "not_public"
    assert not host.asked


@pytest.mark.slow
def test_a_page_of_the_world_that_names_a_private_video_is_refused(proxy: VideoHost, refused: Refused) -> None:
    proxy.put("/page", page(video("http://169.254.169.254/latest/meta-data")))
    assert refused("http://videos.invalid/page", proxy=proxy.address, public_only=True).kind == "not_public"
    assert proxy.asked == ["http://videos.invalid/page"]


# ---------------------------------------------------------------- the guard


def test_another_program_is_not_given_an_address() -> None:
    with guard_network(False, ()) as guard, pytest.raises(BlockedConnectionError):
        subprocess.run(["ffmpeg", "-i", "http://127.0.0.1/v.m3u8"], check=False)
    assert guard.refusal is not None
    assert guard.refusal.kind == "no_video"
    with guard_network(True, ()):
        assert subprocess.run([sys.executable, "-c", ""], check=False).returncode == 0


def test_nothing_is_watched_afterwards(host: VideoHost) -> None:
    with guard_network(True, ()):
        pass
    port = int(host.address.rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as connection:
        assert connection.getpeername() == ("127.0.0.1", port)


@pytest.mark.parametrize(
    ("proxy", "end"),
    [
        ("http://127.0.0.1:3128", ("127.0.0.1", 3128)),
        ("127.0.0.1:3128", ("127.0.0.1", 3128)),
        ("http://127.0.0.1", ("127.0.0.1", 80)),
        ("https://me:secret@127.0.0.1", ("127.0.0.1", 443)),
        ("socks5h://127.0.0.1", ("127.0.0.1", 1080)),
    ],
)
def test_only_the_port_of_the_proxy_may_be_reached(proxy: str, end: tuple[str, int]) -> None:
    with guard_network(True, [proxy]) as guard:
        assert guard.proxies == {end}
        guard.check_connection(end)
        with pytest.raises(BlockedConnectionError):
            guard.check_connection((end[0], end[1] + 1))
    assert guard.refusal is not None
    assert guard.refusal.kind == "not_public"


@pytest.mark.parametrize(
    ("host", "is_refused"), [("[::1]", True), ("127.0.0.1", True), ("[fd00::1]", True), ("8.8.8.8", False), ("[2606:4700::1111]", False)]
)
@pytest.mark.parametrize("request_line", ["CONNECT {}:443", "GET http://{}/a.mp4", "GET http://a:b@{}:80/"])
def test_a_proxy_is_not_asked_for_a_private_address_of_either_version(request_line: str, host: str, is_refused: bool) -> None:
    with guard_network(True, ["http://127.0.0.1:3128"]) as guard, pytest.raises(BlockedConnectionError) if is_refused else nullcontext():
        guard.check_request(f"{request_line.format(host)} HTTP/1.1\r\n\r\n".encode())
    assert (guard.refusal is not None) == is_refused


@pytest.mark.parametrize(
    "name",
    [
        *("127.0.0.1.", "0x7f.0.0.1.", "169.254.169.254.", "2130706433", "[::ffff:127.0.0.1]", "::1", "%31%32%37.0.0.1"),
        *("intranet", "LOCALHOST", "db.internal", "printer.local.", "a@127.0.0.1", "a@b@127.0.0.1.", "8.8.8.8\\@127.0.0.1"),
    ],
)
@pytest.mark.parametrize("proxies", [[], ["http://127.0.0.1:3128"]])
@pytest.mark.parametrize(
    "head",
    [
        *("CONNECT {}:443 HTTP/1.0\r\n", "GET http://{}/a.mp4 HTTP/1.1\r\n", "HEAD HTTP://{}:80?a HTTP/1.1\r\nHost: 8.8.8.8\r\n"),
        *("GET /a HTTP/1.1\r\nHost: {}\r\n", "GET https://8.8.8.8/ HTTP/1.1\r\nAccept: *\r\nhost:{}:80\r\n"),
    ],
)
def test_nothing_is_asked_of_a_private_host_by_any_of_its_names(head: str, proxies: list[str], name: str) -> None:
    with guard_network(True, proxies) as guard, pytest.raises(BlockedConnectionError, match="is not in the public network"):
        guard.check_request(f"{head.format(name)}\r\n".encode())
    with guard_network(False, proxies) as guard:
        guard.check_request(f"{head.format(name)}\r\n".encode())


@pytest.mark.parametrize(("addresses", "is_refused"), [(["8.8.8.8"], False), (["10.0.0.1"], True), (["8.8.8.8", "::1"], True), ([], False)])
def test_a_proxy_is_not_asked_for_a_name_that_leads_to_the_private_network(
    addresses: list[str], is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(socket.AF_INET, 1, 6, "", (address, 80)) for address in addresses])
    with guard_network(True, ["http://9.9.9.9:3128"]) as guard, pytest.raises(BlockedConnectionError) if is_refused else nullcontext():
        guard.check_request(b"GET http://videos.example/a.mp4 HTTP/1.1\r\n\r\n")


@pytest.mark.parametrize("data", [b"", b"GET http://127.0.0.1/", b"PUT /a HTTP/1.1\r\nHost: 8.8.8.8\r\n\r\nHost: 127.0.0.1\r\n", 7])
def test_what_names_no_private_host_is_sent(data: object) -> None:
    with guard_network(True, ["http://127.0.0.1:3128"]) as guard:
        guard.check_request(data)
        guard.check_request(b"GET http://videos.invalid/a HTTP/1.1\r\nHost: videos.invalid\r\n\r\n")  # only the proxy may know it
    assert guard.refusal is None


def test_what_is_no_internet_connection_is_no_matter() -> None:
    with guard_network(True, ()) as guard:
        guard.check_connection("/run/socket")
        guard.check_connection(("8.8.8.8", 80))
    assert guard.refusal is None
