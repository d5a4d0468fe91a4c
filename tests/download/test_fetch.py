from __future__ import annotations

import json
import logging
import shutil
import socket
import weakref
from collections.abc import Callable
from contextlib import nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any

import av
import pytest

from tests.clips import sound
from tests.download.conftest import Fetch
from tests.download.pages import page, segments, video
from tests.hostile_server import HostileServer, http
from tests.media import Clips
from tests.video_host import Answer, VideoHost
from vip.config import BatchSettings
from vip.dataset.items import ListItem
from vip.download.disk_space import UNKNOWN_BYTES, NoRoomError
from vip.download.fetch import LONGEST, MOST_TAGS, _address, _info_value, _languages, _move, _subtitles, fetch
from vip.download.ytdlp import DownloadLimits, YtdlpLog, downloader_for
from vip.errors import ItemError

Refused = Callable[..., ItemError]
HLS = "application/x-mpegurl"
VTT = b"WEBVTT\n\n00:00.000 --> 00:01.000\nHello\n"


# ---------------------------------------------------------------- what comes


def test_an_address_of_a_file_is_fetched_as_it_is(host: VideoHost, fetched: Fetch, folder: Path, mp4: bytes) -> None:
    got = fetched(host.put("/good.mp4", mp4, "video/mp4"))
    assert got.path == folder / "KEY.mp4"
    assert got.path.read_bytes() == mp4
    assert got.is_ours
    assert got.youtube_id is None
    assert sorted(folder.iterdir()) == [got.path]


def test_webm_stays_webm(host: VideoHost, fetched: Fetch, webm: bytes) -> None:
    got = fetched(host.put("/good.webm", webm, "video/webm"))
    assert (got.path.name, got.path.read_bytes()) == ("KEY.webm", webm)


def test_a_file_that_says_it_is_bytes_is_fetched_too(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    assert fetched(host.put("/download?id=7", mp4, "application/octet-stream")).path.read_bytes() == mp4


def test_an_address_that_ends_like_a_program_may_be_a_video(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    got = fetched(host.put("/get.php", mp4, "video/mp4"))
    assert (got.path.name, got.path.read_bytes()) == ("KEY.video", mp4)


@pytest.mark.slow
def test_passwords_are_not_told(host: VideoHost, fetched: Fetch, refused: Refused, mp4: bytes) -> None:
    secret = host.address.replace("http://", "http://me:secret@")
    host.put("/v.mp4", mp4, "video/mp4")
    assert "secret" not in repr(fetched(f"{secret}/v.mp4"))
    host.put("/page", page("nothing"))
    assert "secret" not in str(refused(f"{secret}/page"))


@pytest.mark.parametrize("way", ["named", "redirected"])
def test_login_and_query_of_a_page_reach_no_other_host(fetched: Fetch, mp4: bytes, way: str) -> None:
    def answer(request: bytes) -> bytes:
        if request.startswith(b"GET /page"):
            source = "/v.mp4" if way == "redirected" else f"{other.address}/v.mp4"
            return http(page(video(source)).encode(), Content_Type="text/html")
        return http(b"", "302 Found", Location=f"{other.address}/v.mp4")

    with HostileServer(http(mp4, Content_Type="video/mp4")) as other, HostileServer(answer) as server:
        secret = server.address.replace("://", "://me:LOGIN@")
        assert fetched(f"{secret}/page?token=QUERY").path.read_bytes() == mp4
        asked = b"".join(other.requests)
        assert f"Referer: {server.address}/".encode() in asked
        assert all(one not in asked for one in (b"LOGIN", b"QUERY", b"Authorization"))


def test_the_video_of_a_page_is_found(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    host.put("/v.mp4", mp4, "video/mp4")
    got = fetched(host.put("/page", page(video("/v.mp4"), title="Frisbee")))
    assert (got.path.read_bytes(), got.title) == (mp4, "Frisbee (1)")
    assert got.info["webpage_url"] == f"{host.address}/page"


def test_a_youtube_id_is_watched_at_the_base_address(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    host.put("/watch?v=dQw4w9WgXcQ", mp4, "video/mp4")
    got = fetched("dQw4w9WgXcQ", "youtube")
    assert (got.youtube_id, got.path.read_bytes()) == ("dQw4w9WgXcQ", mp4)


def test_an_id_of_youtube_8m_is_looked_up_and_watched(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    host.put("/2/j/i/AB/ABCD.js", 'i("ABCD","dQw4w9WgXcQ");', "application/javascript")
    host.put("/watch?v=dQw4w9WgXcQ", mp4, "video/mp4")
    assert fetched("ABCD", "youtube8m").youtube_id == "dQw4w9WgXcQ"


@pytest.mark.slow
def test_of_several_sizes_the_largest_up_to_720_lines_without_sound_is_taken(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    ways = [("360", "avc1,mp4a"), ("720", "avc1,mp4a"), ("720", "avc1"), ("1080", "avc1"), ("2160", "avc1")]
    lines = [
        f'#EXT-X-STREAM-INF:BANDWIDTH={height}000,RESOLUTION={int(height) * 16 // 9}x{height},CODECS="{codecs}"\n/{number}.m3u8'
        for number, (height, codecs) in enumerate(ways)
    ]
    for number in range(len(ways)):
        host.put(f"/{number}.m3u8", segments(f"/{number}.ts"), HLS)
        host.put(f"/{number}.ts", b"G" + bytes([number]) * 2000, "video/mp2t")
    got = fetched(host.put("/all.m3u8", "#EXTM3U\n" + "\n".join(lines), HLS))
    assert got.path.read_bytes()[1] == 2


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ffmpeg") is None, reason="the program ffmpeg is not here")
def test_sound_is_merged_in_where_it_is_asked_for(host: VideoHost, fetched: Fetch, clips: Clips, folder: Path, tmp_path: Path) -> None:
    sound_of = '#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="a",DEFAULT=YES,URI="/a.m3u8"'
    picture_of = '#EXT-X-STREAM-INF:BANDWIDTH=9,RESOLUTION=160x120,CODECS="avc1.42c00a,mp4a.40.2",AUDIO="a"\n/v.m3u8'
    for name, data in {"v": clips("h264.ts").path.read_bytes(), "a": sound(tmp_path / "sound.ts").read_bytes()}.items():
        host.put(f"/{name}.m3u8", segments(f"/{name}.ts"), HLS)
        host.put(f"/{name}.ts", data, "video/mp2t")
    address = host.put("/all.m3u8", f"#EXTM3U\n{sound_of}\n{picture_of}\n", HLS)
    for audio, kinds in ((True, ["audio", "video"]), (False, ["video"])):
        with av.open(str(fetched(address, audio=audio).path)) as container:
            assert sorted(stream.type for stream in container.streams) == kinds
    assert host.asked.count("/a.ts") == 1


def test_subtitles_of_the_language_and_in_english_are_kept(host: VideoHost, fetched: Fetch, folder: Path) -> None:
    tracks = [f'#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="{name}",LANGUAGE="{name}",URI="/{name}.m3u8"' for name in ("de", "en", "fr")]
    host.put("/v.m3u8", segments("/v.ts"), HLS)
    host.put("/v.ts", b"G" + bytes(2000), "video/mp2t")
    for name in ("de", "en", "fr"):
        host.put(f"/{name}.m3u8", segments(f"/{name}.vtt"), HLS)
        host.put(f"/{name}.vtt", VTT, "text/vtt")
    whole = "\n".join(["#EXTM3U", *tracks, '#EXT-X-STREAM-INF:BANDWIDTH=1,SUBTITLES="s",RESOLUTION=160x90', "/v.m3u8"])
    got = fetched(host.put("/all.m3u8", whole, HLS))
    assert got.subtitles == {"en": folder / "KEY.en.vtt"}
    assert b"Hello" in got.subtitles["en"].read_bytes()


def test_subtitles_that_cannot_be_had_cost_no_video(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    host.put("/v.mp4", mp4, "video/mp4")
    host.put("/en.vtt", "<html>gone", status=429)
    body = '<video><source src="/v.mp4" type="video/mp4"><track kind="subtitles" srclang="en" src="/en.vtt"></video>'
    got = fetched(host.put("/page", page(body)))
    assert (got.path.read_bytes(), got.subtitles) == (mp4, {})
    assert "/en.vtt" in host.asked


def test_a_local_file_stays_where_it_is(fetched: Fetch, folder: Path, tmp_path: Path, mp4: bytes) -> None:
    mine = tmp_path / "mine.mp4"
    mine.write_bytes(mp4)
    got = fetched(str(mine), "file")
    assert (got.path, got.is_ours) == (mine, False)
    assert not list(folder.iterdir())


@pytest.mark.slow
def test_nothing_is_printed_or_logged(host: VideoHost, fetched: Fetch, refused: Refused, mp4: bytes, capfd: Any, caplog: Any) -> None:
    caplog.set_level(logging.WARNING)
    fetched(host.put("/download", mp4, "application/octet-stream"))
    refused(host.put("/gone.mp4", status=500))
    refused(host.put("/page", page("nothing")))
    assert capfd.readouterr() == ("", "")
    assert not caplog.records


def test_many_fetches_share_one_yt_dlp(host: VideoHost, fetched: Fetch, folder: Path, mp4: bytes) -> None:
    address = host.put("/good.mp4", mp4, "video/mp4")
    fetched(address)
    settings = BatchSettings(sleep=0)
    one = downloader_for(settings)
    for _ in range(3):
        fetch(ListItem("KEY", "address", address, ""), settings, folder, room_bytes=10**8)
    assert downloader_for(BatchSettings(sleep=0)) is one
    assert downloader_for(BatchSettings(sleep=1)) is not one


# ---------------------------------------------------------------- what does not


STATUSES = {401: "private", 403: "private", 404: "missing", 410: "deleted", 429: "rate_limit", 451: "geo", 500: "network", 503: "network"}


@pytest.mark.slow
@pytest.mark.parametrize(("status", "kind"), STATUSES.items())
def test_what_a_status_says(host: VideoHost, refused: Refused, status: int, kind: str) -> None:
    assert refused(host.put("/v.mp4", "no", status=status)).kind == kind


@pytest.mark.slow
def test_a_server_that_names_a_time_is_waited_for(host: VideoHost, refused: Refused) -> None:
    busy = refused(host.put("/v.mp4", "later", status=429, headers={"Retry-After": "120"}))
    assert (busy.kind, busy.retry_after_s) == ("rate_limit", 120.0)
    down = refused(host.put("/w.mp4", "later", status=503, headers={"Retry-After": "7"}))
    assert (down.kind, down.retry_after_s) == ("rate_limit", 7.0)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["reset", "short", "hang", "mute"])
def test_a_connection_that_is_lost_may_work_later(host: VideoHost, refused: Refused, mp4: bytes, way: Any) -> None:
    assert refused(host.put("/v.mp4", mp4, "video/mp4", way=way)).kind == "network"


def test_a_connection_that_is_lost_once_is_taken_up_again(host: VideoHost, fetched: Fetch, mp4: bytes) -> None:
    good, cut = Answer(mp4, "video/mp4"), Answer(mp4, "video/mp4", way="reset")
    host.answers["/v.mp4"] = [good, cut, good]
    assert fetched(f"{host.address}/v.mp4").path.read_bytes() == mp4


@pytest.mark.slow
def test_a_server_that_is_not_there_may_be_there_later(refused: Refused) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert refused(f"http://127.0.0.1:{port}/v.mp4").kind == "network"


@pytest.mark.slow
def test_a_name_that_is_not_found_may_be_found_later(refused: Refused) -> None:
    assert refused("http://no-such-host.invalid/v.mp4").kind == "network"


@pytest.mark.slow
def test_a_video_that_never_ends_is_stopped_where_the_room_ends(host: VideoHost, refused: Refused, mp4: bytes) -> None:
    endless = refused(host.put("/v.mp4", mp4, "video/mp4", way="endless"), room_bytes=3_000_000)
    assert endless.kind == "too_large"
    assert "room for 3 MB" in str(endless)


@pytest.mark.slow
def test_a_video_that_says_it_is_too_large_is_not_loaded(host: VideoHost, refused: Refused) -> None:
    assert refused(host.put("/v.mp4", bytes(20_000_000), "video/mp4"), room_bytes=1_000_000).kind == "too_large"
    assert host.sent_bytes < 15_000_000


@pytest.mark.slow
def test_a_page_that_never_ends_is_not_held_in_memory(host: VideoHost, refused: Refused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.download.ytdlp.PAGE_BYTES", 2**20)
    assert refused(host.put("/page", page(), way="endless")).kind == "network"
    assert host.sent_bytes < 50 * 2**20


@pytest.mark.slow
def test_a_page_in_the_place_of_a_video_is_no_video(host: VideoHost, refused: Refused) -> None:
    assert refused(host.put("/v.mp4", page("It was deleted."))).kind == "no_video"
    assert refused(host.put("/w.mp4", page("It was deleted."), "video/mp4")).kind == "no_video"


@pytest.mark.slow
def test_a_playlist_of_local_files_is_no_video(host: VideoHost, refused: Refused) -> None:
    assert refused(host.put("/v.mp4", "#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n", "video/mp4")).kind == "no_video"
    assert refused(host.put("/v.m3u8", segments("file:///etc/hostname"), HLS)).kind == "no_video"


@pytest.mark.slow
def test_a_page_with_several_videos_is_no_video(host: VideoHost, refused: Refused) -> None:
    several = refused(host.put("/page", page(video("/a.mp4"), video("/b.mp4"))))
    assert several.kind == "no_video"
    assert "list of videos" in str(several)


@pytest.mark.slow
def test_sound_alone_is_no_video(host: VideoHost, refused: Refused) -> None:
    assert refused(host.put("/a.mp3", b"ID3" + bytes(3000), "audio/mpeg")).kind == "no_video"


@pytest.mark.slow
def test_a_live_stream_is_no_video(host: VideoHost, refused: Refused) -> None:
    live = "#EXTM3U\n#EXT-X-TARGETDURATION:6\n#EXT-X-MEDIA-SEQUENCE:7\n#EXTINF:6,\n/7.ts\n"
    assert refused(host.put("/live.m3u8", live, HLS)).kind == "no_video"


@pytest.mark.slow
@pytest.mark.parametrize("target", ["file:///etc/passwd", "/v.mp4"])
def test_a_redirect_to_a_file_or_in_a_circle_is_not_followed(host: VideoHost, refused: Refused, target: str) -> None:
    assert refused(host.put("/v.mp4", status=302, headers={"Location": target})).kind == "no_video"


@pytest.mark.slow
def test_a_file_that_a_page_names_is_not_read(host: VideoHost, refused: Refused) -> None:
    named = refused(host.put("/page", page(video("file:///etc/passwd"))))
    assert named.kind == "no_video"
    assert "--enable-file-urls" not in str(named)


@pytest.mark.parametrize("known", ["", "short", "dQw4w9WgXcQ1", "dQw4w9WgXc/", "dQw4w9WgXcQ\n", "-" * 500])
def test_an_id_that_is_none_of_youtube_is_a_bad_row_whoever_said_it(known: str) -> None:
    with pytest.raises(ItemError, match="is no YouTube id, which has 11 letters") as caught:
        _address("ABCD", known, BatchSettings())
    assert caught.value.kind == "bad_row"
    assert len(str(caught.value)) < 120


def test_the_site_of_an_id_is_youtube_unless_another_is_given() -> None:
    assert _address("ABCD", "dQw4w9WgXcQ", BatchSettings()) == ("https://www.youtube.com/watch?v=dQw4w9WgXcQ", "Youtube")
    other = BatchSettings(video_base_url="http://mirror/")
    assert _address("dQw4w9WgXcQ", "dQw4w9WgXcQ", other) == ("http://mirror/watch?v=dQw4w9WgXcQ", None)
    assert _address("HTTPS://host/a.mp4?b=c", None, other) == ("HTTPS://host/a.mp4?b=c", None)


@pytest.mark.parametrize("source", ["file:///etc/passwd", "ytsearch:cats", "-o evil", "http://", "http://[", "http:///a", "ftp://host/a"])
def test_only_addresses_of_the_web_are_fetched(source: str) -> None:
    with pytest.raises(ItemError, match="Only addresses that begin with http:// or https:// are fetched") as caught:
        _address(source, None, BatchSettings())
    assert caught.value.kind == "bad_row"


@pytest.mark.slow
@pytest.mark.parametrize("source", ["file:///etc/passwd", "ytsearch:cats", "-o evil", "../../x", "http://", "http://[", "data:text/html,x"])
def test_what_is_no_address_of_the_web_is_a_bad_row(refused: Refused, source: str) -> None:
    assert refused(source).kind == "bad_row"


def test_names_that_climb_out_stay_in_the_folder(host: VideoHost, fetched: Fetch, folder: Path, mp4: bytes) -> None:
    host.put("/..%2f..%2fv.sh", mp4, "video/mp4", headers={"Content-Disposition": 'attachment; filename="../../evil.mp4"'})
    title = "../../../etc/x\n\n\x1b[31mred"
    got = fetched(host.put("/page", page(video("/..%2f..%2fv.sh"), title=title)))
    assert got.path.parent == folder
    assert sorted(folder.iterdir()) == [got.path]
    assert got.title is not None
    assert "\n" not in got.title


@pytest.mark.slow
def test_lengths_are_judged_before_the_download(host: VideoHost, refused: Refused, fetched: Fetch, mp4: bytes) -> None:
    host.put("/v.mp4", mp4, "video/mp4")
    about = {"@context": "https://schema.org", "@type": "VideoObject", "contentUrl": f"{host.address}/v.mp4", "duration": "PT10M"}
    address = host.put("/page", page(f'<script type="application/ld+json">{json.dumps(about)}</script>'))
    assert refused(address, max_length=60).kind == "too_long"
    assert refused(address, min_length=3600).kind == "too_short"
    assert host.asked.count("/v.mp4") == 2  # a look at what it is, each time
    assert fetched(address, min_length=60, max_length=3600).duration_s == 600


@pytest.mark.slow
def test_a_disk_that_is_full_is_no_fault_of_the_video(
    host: VideoHost, refused: Refused, mp4: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", full)
    assert refused(host.put("/v.mp4", mp4, "video/mp4")).kind == "disk"


def test_a_local_file_that_is_missing_or_none(refused: Refused, tmp_path: Path) -> None:
    assert refused(str(tmp_path / "none.mp4"), "file").kind == "missing"
    assert refused(str(tmp_path), "file").kind == "unreadable"


# ---------------------------------------------------------------- subtitles, moves, words


@pytest.mark.parametrize(
    ("there", "own", "chosen"),
    [
        (["de", "en", "fr"], "de", ["de", "en"]),
        (["de", "en", "fr"], "de-AT", ["de", "en"]),
        (["en-GB", "fr", "en"], None, ["en"]),
        (["en-GB", "fr"], "en", ["en-GB"]),
        (["ja", "fr"], "de", ["ja"]),
        (["../en", "x" * 21], "en", []),
        ([], "en", []),
    ],
)
def test_subtitles_are_of_the_own_language_and_english_else_the_first(there: list[str], own: str | None, chosen: list[str]) -> None:
    assert _languages(there, own) == chosen


class Subtitler:
    """A downloader that writes what it is told to."""

    def __init__(self, *, automatic: bool) -> None:
        self.automatic_subtitles = automatic

    def load_subtitles(self, info: dict[str, Any], subtitles: dict[str, Any], path: Path) -> None:
        path.write_bytes(subtitles["says"])


@pytest.mark.parametrize(
    ("automatic", "subtitles", "machine", "said"),
    [
        (False, {"en": [{"ext": "json", "says": b"{"}, {"ext": "vtt", "says": VTT}]}, {}, {"en.vtt": VTT}),
        (False, {"en": [{"ext": "vtt", "says": b"\xef\xbb\xbf" + VTT}]}, {}, {"en.vtt": b"\xef\xbb\xbf" + VTT}),
        (False, {"en": [{"ext": "vtt", "says": b"<html>"}]}, {}, {}),
        (False, {"en": [{"ext": "json", "says": VTT}]}, {}, {}),
        (False, {}, {"en": [{"ext": "vtt", "says": VTT}]}, {}),
        (True, {}, {"en": [{"ext": "vtt", "says": VTT}]}, {"en.vtt": VTT}),
        (True, {"en": [{"ext": "vtt", "says": VTT}]}, {"en": [{"ext": "vtt", "says": b"WEBVTT machine"}]}, {"en.vtt": VTT}),
    ],
)
def test_only_webvtt_is_kept_and_what_people_wrote_goes_before_what_machines_heard(
    automatic: bool, subtitles: Any, machine: Any, said: dict[str, bytes], tmp_path: Path
) -> None:
    info = {"subtitles": subtitles, "automatic_captions": machine}
    found = _subtitles(info, Subtitler(automatic=automatic), tmp_path)  # type: ignore[arg-type]
    assert {path.name: path.read_bytes() for path in found} == said


def test_files_are_moved_all_or_none(tmp_path: Path) -> None:
    (tmp_path / "here").write_bytes(b"x")
    with pytest.raises(OSError, match="No such file"):
        _move({tmp_path / "one": tmp_path / "here", tmp_path / "two": tmp_path / "gone"})
    assert not list(tmp_path.iterdir())


def test_what_a_host_says_is_short_text_without_logins() -> None:
    assert _info_value("x" * 1000) == "x" * LONGEST
    assert _info_value("https://me:secret@host.test/v") == "https://host.test/v"
    assert _info_value([f"tag{number}" for number in range(500)]) == [f"tag{number}" for number in range(MOST_TAGS)]
    assert _info_value(["a\nb", 7, "", None]) == ["a b"]
    assert (_info_value([]), _info_value(7), _info_value(" ")) == (None, None, None)


class Ready:
    """A downloader that gives or raises what it is told to, one thing a try, and counts how often it is made ready for the next."""

    def __init__(self, *ends: BaseException | None) -> None:
        self.ends, self.resets = list(ends), 0
        self.left_open: list[weakref.ref[object]] = []
        self.proxies, self.automatic_subtitles = (), False
        self.log, self.limits = YtdlpLog(), DownloadLimits(BatchSettings())

    def load(self, address: str, folder: Path, *, extractor: str | None = None) -> dict[str, Any]:
        (folder / "video.mp4").write_bytes(bytes(100))
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            part = (folder / "part").open("wb")
            self.left_open.append(weakref.ref(part))
        if end is not None:
            raise end
        return {"requested_downloads": [{"filepath": str(folder / "video.mp4")}]}

    def reset(self) -> None:
        self.resets += 1


class Room:
    """Room on the disk: how much was waited for."""

    def __init__(self) -> None:
        self.held_bytes, self.waited = 0, list[int]()

    def wait_for(self, size_bytes: int) -> None:
        self.waited.append(size_bytes)

    def take(self, size_bytes: int) -> bool:
        return True


@pytest.mark.parametrize(
    ("ends", "raised"),
    [
        ([None], None),
        ([ItemError("It is too long.", "too_long")], ItemError),
        ([RuntimeError("a fault of an extractor")], ItemError),
        ([KeyboardInterrupt()], KeyboardInterrupt),
        ([NoRoomError(7), NoRoomError(9), None], None),
        ([NoRoomError(7), ItemError("It is gone.", "deleted")], ItemError),
    ],
)
def test_however_a_try_ends_its_answers_are_closed_and_nothing_of_it_is_left(
    ends: list[BaseException | None], raised: type[BaseException] | None, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    downloader, room = Ready(*ends), Room()
    monkeypatch.setattr(import_module("vip.download.fetch"), "downloader_for", lambda settings: downloader)
    item = ListItem("KEY", "address", "https://host/a", "list.txt, line 1")
    with pytest.raises(raised) if raised else nullcontext() as held:
        fetch(item, BatchSettings(sleep=0), folder, room_bytes=1000, space=room)
    assert [part() for part in downloader.left_open] == [None] * len(downloader.left_open), f"what failed holds no file: {held}"
    assert downloader.resets == len(ends)
    assert room.waited == [UNKNOWN_BYTES, *(end.size_bytes for end in ends if isinstance(end, NoRoomError))]
    assert [path.name for path in folder.iterdir()] == ([] if raised else ["KEY.mp4"])
