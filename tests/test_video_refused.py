"""Every way in which a file can be no video has one clear sentence, and no file makes vip open another."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import cv2
import numpy as np
import pytest

import vip.video.container
from tests.media import Clips, card, sound
from vip.errors import InputError
from vip.video import Video
from vip.video.animated import is_animated
from vip.video.local import Local, LocalFile
from vip.video.source import FileSource, source_of

TEXT = "This is a letter and no video.\n" * 40
SUBTITLES = "1\n00:00:01,000 --> 00:00:02,000\nHello.\n\n2\n00:00:03,000 --> 00:00:04,000\nBye.\n"
SVG = '<svg xmlns="http://www.w3.org/2000/svg" width="10" height="10"/>'


def refusal(path: Path) -> str:
    with pytest.raises(InputError) as raised:
        Video(path)
    message = str(raised.value)
    assert message.startswith(str(path))
    assert message[-1] in ".?)"
    assert "\n" not in message
    return message.removeprefix(str(path))


def test_a_missing_file(tmp_path: Path) -> None:
    assert refusal(tmp_path / "nowhere.mp4") == " does not exist. Check the path."


def test_a_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path) == " is a folder, not a video."


@pytest.mark.parametrize("name", ["letter.mp4", "list.m3u8", "song.aac", "h264.mp4"])
def test_what_is_refused_is_closed_at_once(tmp_path: Path, clips: Clips, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    opened: list[LocalFile] = []

    def opening(held: Local) -> LocalFile:
        opened.append(plain(held))
        return opened[-1]

    plain = Local.open
    monkeypatch.setattr(Local, "open", opening)
    path = tmp_path / name
    if name == "song.aac":
        sound(path)
    elif name == "h264.mp4":
        path = clips(name).path
    else:
        path.write_text(TEXT if name == "letter.mp4" else "#EXTM3U\n")
    with pytest.raises(InputError):
        Video(path, stream=7)
    assert [one.closed for one in opened] == [True]


def test_an_empty_file(tmp_path: Path) -> None:
    (tmp_path / "empty.mp4").touch()
    assert refusal(tmp_path / "empty.mp4") == " is empty (0 bytes). Copy or download it again."


@pytest.mark.parametrize("suffix", [".mp4", ".webp", ".png", ".gif"])
def test_a_pipe_is_not_waited_for(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    assert refusal(path) == " is no regular file. Give a video file."
    with pytest.raises(InputError, match="is no regular file"):
        source_of(path)
    assert not is_animated(path)
    assert not FileSource(path).is_animated_webp()


@pytest.mark.parametrize("content", [TEXT.encode(), b"\0" * 5000, np.random.default_rng(0).bytes(5000)], ids=["text", "zeros", "noise"])
def test_something_else_named_mp4(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.mp4").write_bytes(content)
    assert refusal(tmp_path / "a.mp4").startswith(" is not a video that FFmpeg can read (")


@pytest.mark.parametrize("suffix", ["txt", "nfo", "ans", "diz"])
def test_text_that_ffmpeg_would_draw_as_a_terminal(tmp_path: Path, suffix: str) -> None:
    (tmp_path / f"a.{suffix}").write_text(TEXT, encoding="utf-8")
    assert refusal(tmp_path / f"a.{suffix}") == " holds no video stream, only text. Give a file with pictures."


def test_subtitles(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text(SUBTITLES, encoding="utf-8")
    assert refusal(tmp_path / "a.srt") == " holds no video stream, only subtitle. Give a file with pictures."


@pytest.mark.parametrize("name", ["a.m4a", "a.mp4", "a.mkv", "a.aac"])
def test_sound_without_pictures(tmp_path: Path, name: str) -> None:
    sound(tmp_path / name)
    assert refusal(tmp_path / name) == " holds no video stream, only audio. Give a file with pictures."


def test_sound_with_a_cover_picture(tmp_path: Path) -> None:
    sound(tmp_path / "song.aac", cover=True)
    assert refusal(tmp_path / "song.aac") == " holds no video stream, only a cover picture and audio. Give a file with pictures."


def test_a_codec_that_is_unknown_here(clips: Clips, tmp_path: Path) -> None:
    (tmp_path / "a.svg").write_text(SVG, encoding="utf-8")
    assert "codec of its pictures is unknown here" in refusal(tmp_path / "a.svg")
    data = clips("h264.mkv").path.read_bytes().replace(b"V_MPEG4/ISO/AVC", b"V_WHAT/EVER/NEW")
    (tmp_path / "a.mkv").write_bytes(data)
    assert "codec of its pictures is unknown here" in refusal(tmp_path / "a.mkv")


def test_a_file_that_may_not_be_read(clips: Clips, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:  # the user of a test may be root, who may read everything
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", refuse)
    assert refusal(clips("h264.mp4").path) == " may not be read (permission denied)."


def test_a_stream_without_a_packet(clips: Clips, tmp_path: Path) -> None:
    data = clips("h264_fragmented.mp4").path.read_bytes()
    path = tmp_path / "header.mp4"
    path.write_bytes(data[: data.index(b"moof") - 4])
    assert refusal(path).startswith((" holds a video stream without a readable frame", " is not a video that FFmpeg can read"))


# ---------------------------------------------------------------- files that name others


@pytest.fixture
def visits() -> Iterator[tuple[str, list[str]]]:
    """The address of a server in this process, and what it was asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    thread.join()
    server.server_close()


M3U8 = "#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\n{}\n#EXT-X-ENDLIST\n"
FFCONCAT = "ffconcat version 1.0\nfile {}\n"
TAGGED = "ID3\3\0\0\0\0\0\0" + FFCONCAT  # FFmpeg passes over such a tag when it looks what a file is
MPD = (
    '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1.6S" '
    'profiles="urn:mpeg:dash:profile:isoff-on-demand:2011"><Period><AdaptationSet mimeType="video/mp4">'
    '<Representation id="1" bandwidth="1"><BaseURL>{}</BaseURL></Representation></AdaptationSet></Period></MPD>'
)
SDP = "v=0\no=- 0 0 IN IP4 127.0.0.1\ns={}\nc=IN IP4 127.0.0.1\nt=0 0\nm=video 5004 RTP/AVP 96\na=rtpmap:96 H264/90000\n"
LISTS = {"m3u8": M3U8, "ffconcat": FFCONCAT, "mp4": FFCONCAT, "mkv": TAGGED, "mov": M3U8, "mpd": MPD, "sdp": SDP}


ALL, WITHOUT_A_LOOK, PROTOCOLS_ONLY = "all", "formats and protocols", "protocols"


@pytest.fixture
def _defences(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left of the defences: each must do without those before it."""
    if request.param != ALL:
        monkeypatch.setattr(vip.video.container, "PLAYLIST_STARTS", ())
    if request.param == PROTOCOLS_ONLY:
        monkeypatch.setattr(vip.video.container, "PLAYLISTS", frozenset())


@pytest.mark.usefixtures("_defences")
@pytest.mark.parametrize("_defences", [ALL, WITHOUT_A_LOOK], indirect=True)
@pytest.mark.parametrize("suffix", LISTS)
def test_a_playlist_does_not_open_another_file(clips: Clips, tmp_path: Path, suffix: str) -> None:
    shutil.copy(clips("h264.ts").path, tmp_path / "secret.ts")
    for target in ("secret.ts", str(tmp_path / "secret.ts"), f"file:{tmp_path}/secret.ts"):
        path = tmp_path / f"list.{suffix}"
        path.write_text(LISTS[suffix].format(target), encoding="utf-8")
        refusal(path)


@pytest.mark.usefixtures("_defences")
@pytest.mark.parametrize("_defences", [ALL, WITHOUT_A_LOOK, PROTOCOLS_ONLY], indirect=True)
@pytest.mark.parametrize("suffix", LISTS)
def test_a_playlist_does_not_open_an_address(tmp_path: Path, visits: tuple[str, list[str]], suffix: str) -> None:
    address, asked = visits
    path = tmp_path / f"list.{suffix}"
    path.write_text(LISTS[suffix].format(f"{address}/secret.ts"), encoding="utf-8")
    refusal(path)
    assert asked == []


@pytest.mark.parametrize("suffix", ["m3u8", "mp4"])
def test_a_playlist_is_called_one(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"list.{suffix}"
    path.write_text(M3U8.format("a.ts"), encoding="utf-8")
    assert refusal(path) == " is a playlist: it holds no pictures and only names other files. Give one of those."


def test_a_name_with_a_pattern_is_just_a_name(tmp_path: Path) -> None:
    for number, name in enumerate(("shot00.jpg", "shot01.jpg", "shot%02d.jpg")):
        cv2.imwrite(str(tmp_path / name), card(number))
    with Video(tmp_path / "shot%02d.jpg") as video:
        assert len(video.index) == 1


@pytest.mark.parametrize("name", ["a b.mp4", "äö 東京.mp4", "-y.mp4", "http:x.mp4", "concat:a|b.mp4", "a?b#c%20d.mp4", "pipe:0"])
def test_odd_names_are_just_names(clips: Clips, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copy(clips("h264.mp4").path, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    with Video(Path(name)) as video:
        assert len(video.index) == len(clips("h264.mp4").times_s)
