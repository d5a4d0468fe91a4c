"""Videos behind http: a fraction of the bytes, the same frames; and a sentence for each way in which a server fails."""

from __future__ import annotations

import http.client
import re
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest

import vip.video.http
import vip.video.remote
from tests.file_server import FileServer, serving
from tests.hostile_server import HostileServer
from tests.hostile_server import http as http_answer
from tests.media import Clips, linear, number_in, write
from tests.video_host import hosting
from vip.errors import InputError
from vip.pipeline import extract
from vip.records import Image
from vip.store import load_run
from vip.video import AddressSource, Reader, Video, open_video, source_of
from vip.video.http import Connection
from vip.video.remote import Remote

LONG = {"h264.mp4": "libx264", "h264_faststart.mp4": "libx264", "vp9.webm": "libvpx-vp9", "h264.mkv": "libx264"}


def noisy(number: int) -> Image:
    """A picture that takes many bytes, and another one each time."""
    return np.random.default_rng(number).integers(0, 256, (120, 160, 3), np.uint8)


@pytest.fixture(scope="session")
def long(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of videos above 1 MB of 28 GOPs of ten frames, all of which are large."""
    folder = tmp_path_factory.mktemp("long")
    x264 = {"preset": "ultrafast", "crf": "20"}
    vpx = {"deadline": "realtime", "cpu-used": "8", "crf": "4", "b": "0"}
    for name, codec in LONG.items():
        fast = x264 if codec == "libx264" else vpx
        muxer = {"movflags": "faststart"} if "faststart" in name else {}
        if name.endswith((".webm", ".mkv")):
            muxer = {"cluster_time_limit": "300"}  # otherwise several GOPs would lie in each, and be read for the last
        clip = write(folder / name, codec, frames=280, gop=10, picture=noisy, options={**fast, "keyint_min": "10"}, muxer=muxer)
        assert clip.path.stat().st_size > 10**6
    return folder


@pytest.fixture
def server(clips: Clips) -> Iterator[FileServer]:
    """Serves the clips that were made so far and those that are made while it runs."""
    with serving(clips.folder) as running:
        yield running


def opened(server: FileServer, name: str, **part: float) -> Reader:
    return open_video(source_of(f"{server.address}/{name}"), **part)  # type: ignore[arg-type]


# ---------------------------------------------------------------- how much is read


@pytest.mark.slow
@pytest.mark.parametrize("name", LONG)
def test_sync_frames_are_those_of_the_file_for_a_fraction_of_its_bytes(long: Path, name: str) -> None:
    with open_video(source_of(long / name)) as local:
        sync = local.index.sync_pts.tolist()
        truth = [frame.image for frame in local.frames(sync)]
    with serving(long) as server, opened(server, name) as video:
        assert video.index.is_sparse
        assert video.index.sync_pts.tolist() == video.index.shown_pts.tolist() == sync
        with video.reopen() as twin:
            frames = list(twin.frames(sync))
        assert video.losses == []
        assert server.sent_bytes < 0.7 * (long / name).stat().st_size
        assert all(requested is not None for _, requested in server.asked)
    assert all(np.array_equal(frame.image, image) for frame, image in zip(frames, truth, strict=True))


@pytest.mark.slow
def test_a_whole_extraction_from_an_address(long: Path, tmp_path: Path) -> None:
    name = "h264_faststart.mp4"
    with serving(long) as server:
        run = extract(f"{server.address}/{name}?key=hidden", out=tmp_path / "run", keyframes=5)
        assert server.sent_bytes < 0.7 * (long / name).stat().st_size
        with open_video(source_of(long / name)) as local:
            assert {keyframe.record.pts for keyframe in run.keyframes} <= set(local.index.sync_pts.tolist())
        manifest = run.manifest
        assert manifest is not None
        assert (manifest.video.sha256, manifest.video.frames, manifest.video.sync_frames) == (None, None, 28)
        assert manifest.video.path == f"{server.address}/{name}"
        assert manifest.video.size_bytes == (long / name).stat().st_size
        before, asked = [path.read_bytes() for path in sorted((tmp_path / "run").rglob("*.*"))], len(server.asked)
        extract(f"{server.address}/{name}?key=other", out=tmp_path / "run", keyframes=5)
        assert len(server.asked) == asked + 1, "to see whether it is the same file"
        assert [path.read_bytes() for path in sorted((tmp_path / "run").rglob("*.*"))] == before
    assert len(load_run(tmp_path / "run").keyframes) == 5
    assert not any(b"hidden" in data for data in before)


@pytest.mark.slow
def test_packets_that_did_not_fit_are_asked_for_again(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.video.packets.PacketCache.__init__.__defaults__", (10_000,))
    monkeypatch.setattr(vip.video.remote, "KEPT_BLOCKS", 2)
    with serving(long) as server, opened(server, "h264.mp4") as video:
        sync = video.index.sync_pts.tolist()
        frames = [frame.pts for frame in video.frames(sync[::-1])]
        assert frames == sync
        assert video.losses == []


def test_packets_of_a_server_are_not_let_go(server: FileServer) -> None:
    with opened(server, "h264.mp4") as video:
        assert isinstance(video, Video)
        position = int(video.index.sync_rows[0])
        assert video._cached.take(position) is video._cached.take(position) is not None


@pytest.mark.parametrize("name", ["h264.ts", "h264_no_cues.mkv", "vp9_no_duration.webm", "h264_fragmented.mp4", "mpeg4.avi", "gif.gif"])
def test_without_a_table_of_sync_frames_the_file_is_read_once_from_its_start(clips: Clips, server: FileServer, name: str) -> None:
    path = clips(name).path
    with opened(server, name) as video:
        (loss,) = video.losses
        assert re.fullmatch(
            "(The file has no table of its sync frames|[24] sync frames cannot .*), so the file was read .* as a whole.", loss
        )
        frames = list(video.frames(video.index.shown_pts.tolist()))
        assert [number_in(frame.image) for frame in frames] == list(range(40))
        assert not video.index.is_sparse
        assert video.info().frames == 40
    assert server.sent_bytes <= 1.2 * path.stat().st_size + 2 * vip.video.remote.BLOCK_BYTES


def test_with_few_sync_frames_all_frames_can_be_chosen_from(clips: Clips, server: FileServer) -> None:
    truth = linear(clips("h264.mp4").path)
    with opened(server, "h264.mp4") as video:
        assert video.losses == ["4 sync frames cannot be chosen from, so the file was read from the server as a whole."]
        assert all(
            np.array_equal(frame.image, image)
            for frame, (_, image) in zip(video.frames(video.index.shown_pts.tolist()), truth, strict=True)
        )


@pytest.mark.parametrize("name", ["h264_faststart.mp4", "vp9.webm"])
def test_of_a_part_only_that_part_is_read(long: Path, name: str) -> None:
    with open_video(source_of(long / name), start_s=6.0, end_s=7.0) as local, serving(long) as server:
        with opened(server, name, start_s=6.0, end_s=7.0) as video:
            assert video.index.shown_pts.tolist() == local.index.shown_pts.tolist()
            assert [frame.pts for frame in video.frames(local.index.shown_pts.tolist())] == local.index.shown_pts.tolist()
            assert "so the part from --start to --end was read from the server as a whole" in video.losses[0]
        assert server.sent_bytes < 0.6 * (long / name).stat().st_size


def test_a_part_with_many_sync_frames_is_sparse(long: Path) -> None:
    with serving(long) as server, opened(server, "h264.mp4", start_s=0.5) as video:
        assert video.index.is_sparse
        assert video.info().start_time_s == pytest.approx(0.8)


def test_a_part_that_is_not_there_is_refused(long: Path) -> None:
    with serving(long) as server, pytest.raises(InputError, match=r"has no (sync )?frame from 1:40\.00 on: it goes from 0:00\.00 to"):
        opened(server, "h264.mp4", start_s=100)


# ---------------------------------------------------------------- servers


def refusal(server: FileServer, name: str) -> str:
    address = f"{server.address}/{name}?key=hidden".replace("//", "//anna:secret@")
    with pytest.raises(InputError) as raised:
        open_video(source_of(address))
    message = str(raised.value)
    assert "hidden" not in message
    assert "secret" not in message
    assert message.startswith(f"{server.address}/{name} ")
    assert message[-1] in ".?"
    return message.removeprefix(f"{server.address}/{name} ").replace(server.address.removeprefix("http://"), "HOST")


def test_a_file_that_is_not_there(server: FileServer) -> None:
    assert refusal(server, "nowhere.mp4") == "cannot be read: the server does not have it (404 Not Found)."


@pytest.mark.parametrize(
    ("status", "said"), [(403, "does not allow it (403"), (401, "asks for a login"), (500, "answers 500 Internal"), (418, "answers 418")]
)
def test_a_server_that_does_not_want(server: FileServer, status: int, said: str) -> None:
    server.status = status
    assert said in refusal(server, "a.mp4")


def test_a_server_that_sends_only_whole_files(clips: Clips, server: FileServer) -> None:
    server.ranges = False
    name = clips("h264.mp4").path.name
    assert refusal(server, name) == "cannot be read in parts: its server always sends the whole file. Download it first."


def test_a_server_that_states_a_size_that_no_file_has(clips: Clips, server: FileServer) -> None:
    server.size = "9" * 300
    said = "cannot be read: the server states a size of 300 digits. Give another address."
    assert refusal(server, clips("h264.mp4").path.name) == said


def test_an_empty_file(server: FileServer) -> None:
    (server.folder / "empty.mp4").touch()
    assert refusal(server, "empty.mp4") == "is empty (0 bytes)."


def test_a_web_page(server: FileServer) -> None:
    (server.folder / "page.html").write_text("<html><body>" + "Watch our video! " * 500)
    assert refusal(server, "page.html") == "is a web page, not a video file."


def test_a_playlist_is_refused(server: FileServer) -> None:
    (server.folder / "list.m3u8").write_text(f"#EXTM3U\n#EXTINF:10,\n{server.address}/h264.ts\n")
    assert refusal(server, "list.m3u8").startswith("is a playlist")
    assert {path for path, _ in server.asked} == {"/list.m3u8?key=hidden"}


def test_redirects_are_followed_and_the_login_stays_behind(clips: Clips, server: FileServer) -> None:
    name = clips("h264.mp4").path.name
    with serving(clips.folder) as other:
        server.redirects = {"/here": "/there", "/there": f"{other.address}/{name}"}
        with open_video(source_of(server.address.replace("//", "//anna:s%40cret@") + "/here")) as video:
            assert len(video.index) == 40
        assert server.logins == ["Basic YW5uYTpzQGNyZXQ="] * 2
        assert set(other.logins) == {None}


def test_redirects_that_never_end(server: FileServer) -> None:
    server.redirects = {"/a?key=hidden": "/b", "/b": "/a?key=hidden"}
    assert refusal(server, "a").startswith("leads from one address to the next, more than 8 times")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/a.mp4", "gopher://127.0.0.1"])
def test_redirects_to_something_else(server: FileServer, target: str) -> None:
    server.redirects = {"/a?key=hidden": target}
    assert refusal(server, "a").startswith("leads to an address that is not http(s).")


def test_nobody_listens() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    with pytest.raises(InputError, match=rf"127\.0\.0\.1:{port} refuses the connection\. Check the address\."):
        open_video(AddressSource(f"http://127.0.0.1:{port}/a.mp4"))


@pytest.mark.parametrize("address", ["http://127.0.0.1:0x50/a.mp4", "http://127.0.0.1:99999/a.mp4"])
def test_an_address_that_is_none(address: str) -> None:
    with pytest.raises(InputError, match=r"cannot be read: that is no valid address\."):
        open_video(AddressSource(address))


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (socket.gaierror(-2, "unknown"), "there is no server h. Check the address and the network."),
        (TimeoutError(), "h does not answer within 20 s, or sends fewer than 2,000 bytes in them. Try again later."),
        (ConnectionResetError(104, "Connection reset by peer"), "the connection to h broke off (Connection reset by peer)."),
        (http.client.BadStatusLine("SSH-2.0"), "h does not answer as a web server (BadStatusLine: SSH-2.0)."),
        (ssl.SSLError(1, "wrong version number"), "no secure connection to h (wrong version number)."),
    ],
)
def test_each_failure_has_a_sentence(error: Exception, said: str) -> None:
    assert vip.video.http._describe_error(error, "h").endswith(said)


def test_a_server_that_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(InputError, match=r"does not answer within 0\.2 s"):
        open_video(AddressSource(f"http://127.0.0.1:{silent.getsockname()[1]}/a.mp4"))


HEAD = "HTTP/1.1 206 OK\r\nContent-Range: bytes 0-9999/10000\r\n"
CHUNKS = f"{HEAD}Transfer-Encoding: chunked\r\n\r\n"
DRIPS = {
    "header": ("http", f"{HEAD}X: ", "x"),
    "body": ("http", f"{HEAD}Content-Length: 10000\r\n\r\n", "x"),
    "body behind a good start": ("http", f"{HEAD}Content-Length: 10000\r\n\r\n{'x' * 5000}", "x"),
    "body on a connection that ends with it": ("http", f"{HEAD}Connection: close\r\n\r\n", "x"),
    "size of a chunk": ("http", f"{CHUNKS}1;", "x"),
    "chunks of a byte": ("http", CHUNKS, "1\r\nx\r\n"),
    "trailer": ("http", f"{CHUNKS}2710\r\n{'x' * 10000}\r\n0\r\n", "X: y\r\n"),
    "go on": ("http", "", "HTTP/1.1 100 Continue\r\n\r\n"),
    "greeting of https": ("https", "\x16\x03\x03\x40\x00", "x"),
}


@pytest.mark.parametrize(("scheme", "begin", "more"), DRIPS.values(), ids=DRIPS)
def test_a_server_that_sends_a_byte_now_and_then(scheme: str, begin: str, more: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "TIMEOUT_S", 0.3)
    is_over = threading.Event()

    def drip(server: socket.socket) -> None:
        connection, _ = server.accept()
        with connection, suppress(OSError):
            connection.sendall(begin.encode())
            for _ in range(200):  # else a mistake here would never end
                connection.sendall(more.encode())
                if is_over.wait(0.02):
                    break

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=drip, args=(server,), daemon=True)
        thread.start()
        begin_s = time.monotonic()
        with pytest.raises(InputError, match=r"127\.0\.0\.1:\d+ does not answer within 0\.3 s, or sends fewer than 2,000 bytes"):
            open_video(AddressSource(f"{scheme}://127.0.0.1:{server.getsockname()[1]}/a.mp4"))
        assert time.monotonic() - begin_s < 3
        is_over.set()
        thread.join()


def test_all_redirects_together_have_the_time_of_one_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "TIMEOUT_S", 0.4)
    slow = [b"HTTP/1.1 302 Found\r\n", b"Location: /b.mp4\r\n", b"Content-Length: 0\r\n\r\n"]  # 0.2 s each
    with HostileServer(slow) as server, pytest.raises(InputError, match=r"does not answer within 0\.4 s"):
        open_video(AddressSource(f"{server.address}/a.mp4"))
    assert len(server.requests) < 5


def test_a_server_that_gives_a_byte_at_a_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.remote, "TIMEOUT_S", 0.3)

    def answer(request: bytes) -> list[bytes]:
        start = int(request.partition(b"bytes=")[2].partition(b"-")[0])
        part = http_answer(b"x", "206 OK", Content_Range=f"bytes {start}-{start}/10000")
        return [part[:9], part[9:]]

    with HostileServer(answer) as server, Remote(AddressSource(f"{server.address}/a.mp4")).open() as reader:
        with pytest.raises(InputError, match=r"a\.mp4 cannot be read: its server sends fewer than 2,000 bytes in 0\.3 s"):
            reader.read(100)
        assert len(server.requests) < 10


def test_a_server_that_sends_enough_may_take_as_long_as_it_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "TIMEOUT_S", 0.5)
    monkeypatch.setattr(vip.video.remote, "TIMEOUT_S", 0.5)
    data = bytes(range(250)) * 160

    def answer(request: bytes) -> list[bytes]:
        start = int(request.partition(b"bytes=")[2].partition(b"-")[0])
        part = data[start : start + 20_000]
        whole = http_answer(part, "206 OK", Content_Range=f"bytes {start}-{start + len(part) - 1}/{len(data)}")
        return [whole[place : place + 2000] for place in range(0, len(whole), 2000)]

    with HostileServer(answer) as server, Remote(AddressSource(f"{server.address}/a.mp4")).open() as reader:
        begin_s = time.monotonic()
        assert b"".join(iter(lambda: reader.read(10**6), b"")) == data
        assert time.monotonic() - begin_s > 3 * vip.video.http.TIMEOUT_S


def test_a_server_that_sends_a_byte_now_and_then_after_a_good_start_is_not_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "TIMEOUT_S", 0.2)
    with hosting() as host:
        connection = Connection(host.put("/a.mp4", bytes(4000), "video/mp4", way="drip"), "a.mp4")
        with pytest.raises(InputError, match=r"sends fewer than 2,000 bytes"):
            connection.whole(BytesIO(), lambda done, size: None)
        assert host.asked == ["/a.mp4"]


def test_https_where_there_is_none(server: FileServer) -> None:
    with pytest.raises(InputError, match="no secure connection to 127"):
        open_video(AddressSource(server.address.replace("http:", "https:") + "/a.mp4"))


@pytest.mark.parametrize("broken", [1, 2])
def test_connections_that_break_off_are_opened_again(long: Path, monkeypatch: pytest.MonkeyPatch, broken: int) -> None:
    monkeypatch.setattr(vip.video.http, "PAUSE_S", 0)
    with serving(long) as server:
        server.breaks_after, server.broken = 5, broken
        with opened(server, "h264.mp4") as video:
            assert len(video.index) == 28


@pytest.mark.parametrize("most_bytes", [10_000, vip.video.remote.BLOCK_BYTES - 1])
def test_a_server_that_sends_less_than_it_is_asked_for_is_asked_for_the_rest(long: Path, most_bytes: int) -> None:
    with serving(long) as server:
        server.most_bytes = most_bytes
        with opened(server, "h264.mp4") as video:
            assert len(video.index) == 28
            assert len(list(video.frames(video.index.shown_pts.tolist()))) == 28


@pytest.mark.parametrize(("answered", "asked"), [(0, 1), (1, 1 + vip.video.http.TRIES)])
def test_a_server_that_never_answered_is_asked_once_and_another_again(
    long: Path, monkeypatch: pytest.MonkeyPatch, answered: int, asked: int
) -> None:
    monkeypatch.setattr(vip.video.http, "PAUSE_S", 0)
    with serving(long) as server:
        server.breaks_after = answered
        connection = vip.video.http.Connection(f"{server.address}/h264.mp4", "h264.mp4")
        for _ in range(answered):
            connection.part(0, 100)
        with pytest.raises(InputError, match=r"h264\.mp4 cannot be read: "):
            connection.part(0, 100)
        connection.close()
        assert len(server.asked) == asked


def test_a_server_that_goes_away_in_the_midst_is_said(long: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.http, "PAUSE_S", 0)
    with serving(long) as server:
        server.breaks_after = 5
        with pytest.raises(InputError, match="cannot be read: the connection to 127"):
            opened(server, "h264.mp4")


def test_a_file_that_changes_in_the_midst_is_said(long: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.video.packets.PacketCache.__init__.__defaults__", (0,))
    monkeypatch.setattr(vip.video.remote, "KEPT_BLOCKS", 1)
    path = tmp_path / "a.mp4"
    path.write_bytes((long / "h264.mp4").read_bytes())
    with serving(tmp_path) as server, opened(server, "a.mp4") as video:
        path.write_bytes(path.read_bytes() + b"more")
        with pytest.raises(InputError, match=r"a\.mp4 changed while it was read"):
            list(video.frames(video.index.sync_pts.tolist()))


def test_a_file_that_is_replaced_by_one_of_its_size_is_said(served: Served) -> None:
    with Remote(AddressSource("http://h/a.mp4")).open() as reader:
        read_blocks(reader, [5])
        served.changed, served.etag = "Tue, 01 Jul 2025 10:00:01 GMT", '"b"'
        with pytest.raises(InputError, match=r"a\.mp4 changed while it was read"):
            read_blocks(reader, [9])


@dataclass
class Served:
    """The parts of a file that were asked for, by the numbers of their first and last block."""

    data: bytes
    asked: list[tuple[int, int]] = field(default_factory=list)
    changed: str = "Tue, 01 Jul 2025 10:00:00 GMT"
    etag: str = '"a"'

    def part(self, start: int, count: int) -> vip.video.http.AddressPart:
        block = vip.video.remote.BLOCK_BYTES
        self.asked.append((start // block, (start + count - 1) // block))
        return vip.video.http.AddressPart(self.data[start : start + count], len(self.data), self.changed, self.etag)

    def close(self) -> None:
        pass


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    made = Served(np.random.default_rng(1).bytes(20 * 1000 - 500))
    monkeypatch.setattr(vip.video.remote, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(vip.video.remote, "MOST_BLOCKS_AT_ONCE", 4)
    monkeypatch.setattr(vip.video.remote, "Connection", lambda *_: made)
    return made


def read_blocks(reader: vip.video.remote.RemoteFile, blocks: Sequence[int]) -> None:
    for block in blocks:
        assert reader.seek(1000 * block) == 1000 * block
        assert reader.read(10**6) == reader._remote.get(block)


def test_blocks_that_are_read_in_a_row_come_more_and_more_at_once(served: Served) -> None:
    with Remote(AddressSource("http://h/a.mp4")).open() as reader:
        data = b"".join(iter(lambda: reader.read(300), b""))
    assert data == served.data
    assert served.asked == [(0, 0), (1, 1), (2, 3), (4, 7), (8, 11), (12, 15), (16, 19)]


def test_after_a_jump_one_block_is_asked_for_and_none_twice(served: Served) -> None:
    with Remote(AddressSource("http://h/a.mp4")).open() as reader:
        read_blocks(reader, [5, 6, 7, 2, 3, 12, 5, 6, 7, 0, 19])
    assert served.asked == [(0, 0), (5, 5), (6, 7), (2, 2), (3, 4), (12, 12), (19, 19)]


def test_those_blocks_go_that_were_not_used_for_longest(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vip.video.remote, "KEPT_BLOCKS", 3)
    with Remote(AddressSource("http://h/a.mp4")).open() as reader:
        read_blocks(reader, [5, 8, 5, 11, 5, 14, 5, 14, 8])
    assert served.asked == [(0, 0), (5, 5), (8, 8), (11, 11), (14, 14), (8, 8)]


@pytest.mark.parametrize(
    ("offset", "whence", "place"),
    [(7, 0, 7), (7, 1, 12), (-5, 1, 0), (-6, 1, None), (-1, 2, 19_499), (0, 2, 19_500), (9, 2, 19_509), (-1, 0, None)],
)
def test_a_reader_goes_to_any_place_that_a_file_has(served: Served, offset: int, whence: int, place: int | None) -> None:
    with Remote(AddressSource("http://h/a.mp4")).open() as reader:
        assert reader.read(5) == served.data[:5]
        found = reader.seek(offset, whence)
        assert (found < 0 and reader.tell() == 5) if place is None else found == reader.tell() == place
        at = reader.tell()
        assert reader.read(3) == served.data[at : at + 3]


@pytest.mark.parametrize(
    ("changed", "modified_ns"), [("Tue, 01 Jul 2025 10:00:00 GMT", 1_751_364_000 * 10**9), ("", None), ("today", None)]
)
def test_a_file_on_a_server_has_a_size_and_perhaps_a_time(served: Served, changed: str, modified_ns: int | None) -> None:
    served.changed = changed
    assert Remote(AddressSource("http://h/a.mp4")).state == (19_500, modified_ns)


def test_readers_in_several_threads_share_what_was_read(long: Path) -> None:
    with serving(long) as server, opened(server, "vp9.webm") as video:
        sync = video.index.sync_pts.tolist()
        before = server.sent_bytes
        found: list[list[int]] = []

        def work() -> None:
            with video.reopen() as twin:
                found.append([frame.pts for frame in twin.frames(sync)])

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [sync] * 3
        assert server.sent_bytes == before
