"""Which host an address names, however it is spelt."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

import pytest

from vip.download.addresses import is_public_host, is_public_ip, referer, youtube_id

VIDEO = "dQw4w9WgXcQ"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255"),
        *("::1", "::", "fe80::1", "fe80::1%eth0", "fc00::1", "fec0::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::"),
        *("2001:0:808:808::f5ff:fffe", "2001:0:808:808::80ff:fffe", "2002:a00:1::", "64:ff9b::a00:1"),
        *(
            "2130706433",
            "0x7f000001",
            "0x7f.1",
            "0177.0.0.1",
            "127.1",
            "0",
            "%31%32%37.0.0.1",
            "１２７.0.0.1",
            "127。0.0。1",
            "127.0.0.1.",
        ),
        *("localhost", "LOCALHOST", "a.localhost", "localhost.", "printer.local", "nas.lan", "metadata.google.internal", "intranet"),
        *("nas.localdomain", "nas.home.arpa", "wiki.intranet", "wiki.corp", "nas.home", "NAS.Home."),
    ],
)
def test_a_host_of_the_private_network_is_known_in_every_spelling(host: str) -> None:
    assert not is_public_host(host)


@pytest.mark.parametrize(
    "host",
    [
        "example.com",
        "8.8.8.8",
        "134744072",
        "2001:4860:4860::8888",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
        "2002:808:808::",
        "2001:0:808:808::f7f7:f7f7",
        "localhost.example.com",
        "10.example.com",
        "corp.com",
        "home.example",
        "mylan.example",
    ],
)
def test_a_public_host_is_public(host: str) -> None:
    assert is_public_host(host)


def test_what_a_name_stands_for_can_be_asked_as_well() -> None:
    assert is_public_ip(ip_address("8.8.8.8"))
    assert not is_public_ip(ip_address("::ffff:10.0.0.1"))


@pytest.mark.parametrize(
    "address",
    [
        f"https://www.youtube.com/watch?v={VIDEO}",
        f"https://m.youtube.com/watch?app=desktop&v={VIDEO}&list=PL1&t=5s#x",
        f"http://YouTube.com/watch/?v={VIDEO}",
        f"https://youtu.be/{VIDEO}?si=abc",
        f"https://www.youtube.com/shorts/{VIDEO}",
        f"https://www.youtube-nocookie.com/embed/{VIDEO}?autoplay=1",
        f"https://music.youtube.com/watch?v={VIDEO}",
        f"https://www.youtube.com/live/{VIDEO}/",
        f"https://www.youtube.com/v/{VIDEO}",
        f"https://www.youtube.com/e/{VIDEO}",
        f"https://www.youtube.com./watch?v={VIDEO}",
        f"https://youtu.be./{VIDEO}",
    ],
)
def test_an_address_of_one_video_of_youtube_has_its_id(address: str) -> None:
    assert youtube_id(urlsplit(address)) == VIDEO


@pytest.mark.parametrize(
    "address",
    [
        "https://www.youtube.com/playlist?list=PL1234567890A",
        "https://www.youtube.com/@somebody",
        f"https://www.youtube.com/watch?v={VIDEO}x",
        f"https://youtu.be/{VIDEO}x",
        f"https://youtube.com.evil.example/watch?v={VIDEO}",
        f"https://evil.example/watch?v={VIDEO}",
        f"https://www.youtube.com/watch?v=../{VIDEO}",
    ],
)
def test_other_addresses_have_none(address: str) -> None:
    assert youtube_id(urlsplit(address)) is None


@pytest.mark.parametrize(
    ("page", "address", "expected"),
    [
        ("https://me:pw@h.org/a/b?tok=1#x", "https://h.org/v.mp4", "https://h.org/a/b"),
        ("https://me:pw@h.org/a/b", "https://H.org/v.mp4", "https://h.org/a/b"),
        ("https://h.org/a?tok=1", "https://me:pw@h.org/v.mp4", "https://h.org/a"),
        ("https://h.org/a#tok=1", "https://other.org/v.mp4", "https://h.org/"),
        ("https://h.org/a?tok=1", "http://h.org/v.mp4", "https://h.org/"),
        ("https://h.org/a?tok=1", "https://h.org:8443/v.mp4", "https://h.org/"),
        ("https://me@h.org:8443/a", "https://h.org/v.mp4", "https://h.org:8443/"),
        ("https://me:p@w@[::1]:80/a", "https://h.org/v.mp4", "https://[::1]:80/"),
        ("https://h.org/@me/a", "https://other.org/v.mp4", "https://h.org/@me/a"),
        ("https://h.org", "https://other.org/v.mp4", "https://h.org"),
        ("https://me:pw@[h.org/a", "https://h.org/v.mp4", ""),
        ("me:pw@h.org/a?tok=1", "https://h.org/v.mp4", ""),
        ("//me:pw@h.org/a", "https://h.org/v.mp4", ""),
    ],
)
def test_a_referer_has_no_login_and_no_query_and_another_origin_is_told_the_origin(page: str, address: str, expected: str) -> None:
    assert referer(page, address) == expected
