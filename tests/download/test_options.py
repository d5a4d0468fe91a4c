from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
import yt_dlp

from tests.download.conftest import Fetch
from tests.video_host import VideoHost
from vip.config import BatchSettings
from vip.download.options import PASSED_ON, cookies, parameters, parse_ytdlp_options
from vip.errors import UsageError

COOKIES = "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tsession\tsecret\n#HttpOnly_.x.invalid\tTRUE\t/\tTRUE\t0\ta\tb\n"


def test_only_what_is_given_is_passed_on() -> None:
    assert parse_ytdlp_options(()) == {}
    assert parse_ytdlp_options(["--retries", "10"]) == {"retries": 10}  # yt-dlp's own default, not vip's
    assert parse_ytdlp_options(["--extractor-args", "youtube:player_client=tv"]) == {
        "extractor_args": {"youtube": {"player_client": ["tv"]}}
    }
    assert list(parse_ytdlp_options(["--add-headers", "X-Y:z"])["http_headers"].values()) == ["z"]


@pytest.mark.parametrize("name", sorted(PASSED_ON))
def test_every_option_on_the_list_is_one_of_yt_dlp(name: str) -> None:
    assert hasattr(yt_dlp.options.create_parser().get_default_values(), name)
    assert PASSED_ON[name] in yt_dlp.parse_options([]).ydl_opts


ALLOWED = """--format=b --format-sort=res --format-sort-force --check-formats --prefer-free-formats --ignore-dynamic-mpd --hls-use-mpegts
 --use-extractors=youtube --extractor-args=youtube:player_client=tv --js-runtimes=deno --remote-components=ejs:github --cache-dir=/tmp/x
 --write-auto-subs --socket-timeout=3 --source-address=0.0.0.0 --impersonate=chrome --prefer-insecure --http-chunk-size=10M
 --concurrent-fragments=2 --retries=1 --fragment-retries=1 --extractor-retries=1 --file-access-retries=1 --abort-on-unavailable-fragments
 --throttled-rate=1K --sleep-interval=1 --max-sleep-interval=2 --sleep-requests=1 --sleep-subtitles=1 --buffer-size=1K --no-resize-buffer
 --username=a --password=a --twofactor=1 --video-password=a --netrc-location=/tmp/x --ap-mso=Comcast_SSO --ap-username=a --ap-password=a
 --cookies-from-browser=firefox --client-certificate=/tmp/x --client-certificate-key=/tmp/x --client-certificate-password=a
 --add-headers=X-Y:z --retry-sleep=1 --legacy-server-connect --no-check-certificates"""


def test_sites_logins_formats_and_connections_are_up_to_the_user() -> None:
    given = parse_ytdlp_options(ALLOWED.split()) | parse_ytdlp_options(["--netrc"])
    assert given.keys() == set(PASSED_ON.values())


@pytest.fixture(scope="module", params=[False, True])
def chosen(request: pytest.FixtureRequest) -> Iterator[Callable[..., str]]:
    """The number of the format that yt-dlp takes, set up as vip does, with sound or without. No network is asked."""
    usual = {"height": 720, "width": 1280, "fps": 30, "vcodec": "avc1.64001f", "acodec": "none", "ext": "mp4", "protocol": "https"}
    about = {"id": "a", "title": "A film", "extractor": "x", "extractor_key": "X", "webpage_url": "https://h.invalid/"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shutil.which", lambda name: None)
        settings = parameters(BatchSettings(audio=request.param))

    def choose(offered: dict[str, dict[str, Any]]) -> str:
        formats = [
            {**usual, "dynamic_range": "SDR", "format_id": name, "url": f"https://h.invalid/{name}", **one} for name, one in offered.items()
        ]
        return str(one_yt_dlp.process_ie_result({**about, "formats": formats}, download=False)["format_id"])

    with yt_dlp.YoutubeDL(settings) as one_yt_dlp:
        yield choose


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({}, {"height": 1080, "width": 1920}),
        ({}, {"height": 480, "width": 854}),
        ({"height": 480, "width": 854}, {"height": 1080, "width": 1920}),
        ({}, {"fps": 60}),
        ({}, {"dynamic_range": "HDR10"}),
        ({}, {"vcodec": "vp9"}),
        ({}, {"ext": "webm"}),
        ({}, {"protocol": "m3u8_native"}),
        ({"fps": 60}, {"height": 1080, "width": 1920}),
        ({"ext": "webm"}, {"vcodec": "vp9", "ext": "mp4"}),
        ({"protocol": "m3u8_native"}, {"ext": "webm"}),
    ],
)
def test_of_two_formats_the_one_that_is_quicker_to_read_is_taken(
    chosen: Callable[..., str], better: dict[str, Any], worse: dict[str, Any]
) -> None:
    assert chosen({"better": better, "worse": worse}) == "better"
    assert chosen({"worse": worse, "better": better}) == "better"


def test_sound_is_taken_where_it_is_asked_for_and_only_there(chosen: Callable[..., str], request: pytest.FixtureRequest) -> None:
    found = {chosen(dict(order)) for order in permutations([("silent", {}), ("sounding", {"acodec": "mp4a.40.2"})])}
    assert found == {"sounding" if request.node.callspec.params["chosen"] else "silent"}


REFUSED = """--exec=reboot -oevil --output=/tmp/x --paths=/tmp --config-locations=/tmp/x --batch-file=/tmp/x --yes-playlist --ignore-errors
 --enable-file-urls --downloader=curl --netrc-cmd=reboot --postprocessor-args=x:-y --write-info-json --download-archive=/tmp/x
 --load-info-json=/tmp/x --plugin-dirs=/tmp --simulate --live-from-start --verbose --print-traffic --write-pages --print=title
 --ffmpeg-location=/tmp --compat-options=allow-unsafe-ext --split-chapters --download-sections=*1-2 --wait-for-video=1 --alias
 --exe=reboot --no-quiet --force-overwrites --update --rm-cache-dir --list-formats --playlist-items=1-9 --xattrs"""


@pytest.mark.parametrize("option", REFUSED.split())
def test_what_would_break_the_batch_is_refused_by_name(option: str, capfd: Any) -> None:
    words = ["--alias", "x", "-s", "--x"] if option == "--alias" else [option]
    with pytest.raises(UsageError, match="--ytdlp-opts"):
        parse_ytdlp_options(words)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--exec", "reboot"], "--exec"),
        (["--cookies", "x"], "vip's own --cookies"),
        (["--proxy", "http://x"], "vip's own --proxy"),
        (["https://x.invalid/v"], "no option"),
        (["--no-such-thing"], "no such option"),
        (["--retries"], "requires 1 argument"),
        (["--retries", "many"], "invalid"),
        (["--help"], "--help"),
        (["--version"], "--version"),
        (["--username", "me"], "--username goes with --password. Give both, or --netrc."),
        (["--ap-username", "me"], "--ap-username goes with --ap-password"),
    ],
)
def test_the_message_says_which_one(words: list[str], told: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_ytdlp_options(words)
    assert told in str(caught.value)


def test_vips_own_choice_stands_above_the_users() -> None:
    given = parameters(BatchSettings(ytdlp_opts="--format worst --socket-timeout 3", rate_limit="1M", proxy="http://p:1", sleep=5))
    assert (given["sleep_interval"], given["sleep_interval_requests"]) == (5, 5)
    assert (given["format"], given["socket_timeout"], given["ratelimit"], given["proxy"]) == ("worst", 3, 1_000_000, "http://p:1")
    assert given["playlist_items"] == "0"


def test_cookies_are_sent_and_the_file_stays_as_it_is(host: VideoHost, fetched: Fetch, tmp_path: Path, mp4: bytes) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(COOKIES)
    file.chmod(0o400)
    fetched(host.put("/v.mp4", mp4, "video/mp4", headers={"Set-Cookie": "session=other"}), cookies=file)
    assert file.read_text() == COOKIES
    assert host.cookies == ["session=secret", "session=other"]


def test_the_text_of_the_cookies_is_what_yt_dlp_reads(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(COOKIES)
    text = cookies(file)
    assert isinstance(text, io.StringIO)
    with yt_dlp.YoutubeDL({"cookiefile": text, "quiet": True}) as one:
        assert {cookie.name for cookie in one.cookiejar} == {"session", "a"}


@pytest.mark.parametrize("text", ["session=secret", '[{"name": "session"}]', "a b c d e f g", b"\xff\xfe\x00"])
def test_cookies_of_another_format_are_refused(tmp_path: Path, text: str | bytes) -> None:
    file = tmp_path / "cookies.txt"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(UsageError, match="Netscape"):
        cookies(file)


def test_sound_is_asked_for_as_a_part_of_its_own_where_ffmpeg_can_merge_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/bin/{name}")
    assert parameters(BatchSettings(audio=True))["format"] == "bv*+ba/b/bv*"
    monkeypatch.setattr("shutil.which", lambda name: None)
    assert parameters(BatchSettings(audio=True))["format"] == "b/bv*"
    assert parameters(BatchSettings())["format"] == "bv*"


def test_comments_and_empty_lines_of_cookies_are_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "cookies.txt"
    file.write_text(f"{COOKIES}\n# a comment\n")
    assert cookies(file)
    file.write_text(f"{COOKIES}#HttpOnly_broken\n")
    with pytest.raises(UsageError, match="Netscape"):
        cookies(file)
