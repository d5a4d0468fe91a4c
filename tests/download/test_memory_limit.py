from __future__ import annotations

import sys
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from yt_dlp import YoutubeDL
from yt_dlp.downloader.f4m import build_fragments_list
from yt_dlp.extractor.common import InfoExtractor

import vip.download.memory_limit
from tests.download.conftest import Fetch
from tests.video_host import VideoHost
from vip.download.errors import item_error
from vip.download.memory_limit import limit_memory
from vip.errors import ItemError

Refused = Callable[..., ItemError]
DASH = "application/dash+xml"
REPRESENTATION = '<Representation id="1" bandwidth="1000" codecs="avc1.4d401f" width="320" height="240"/>'


def dash(template: str, duration: str, *, representations: int = 1) -> str:
    adaptation_set = f'<AdaptationSet mimeType="video/mp4">{template}{REPRESENTATION * representations}</AdaptationSet>'
    begin = '<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static"'
    return f'{begin} mediaPresentationDuration="{duration}"><Period>{adaptation_set}</Period></MPD>'


BY_DURATION = '<SegmentTemplate media="$Number$.m4s" duration="1" timescale="1000"/>'
NAMED = "<SegmentTimeline>" + '<S d="1"/>' * 300 + "</SegmentTimeline>"
REPEATED = '<SegmentTimeline><S d="1" r="600"/><S d="1" r="600"/></SegmentTimeline>'


@pytest.mark.parametrize(
    "manifest",
    [
        dash(BY_DURATION, "PT2S"),
        dash(BY_DURATION, "PT0.3S", representations=4),
        dash(f'<SegmentTemplate media="$Time$.m4s">{REPEATED}</SegmentTemplate>', "PT2S"),
        dash(f'<SegmentTemplate media="$Time$.m4s">{NAMED}</SegmentTemplate>', "PT2S", representations=4),
    ],
)
def test_a_manifest_that_states_more_parts_than_any_video_has_is_one_sentence(
    host: VideoHost, refused: Refused, manifest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vip.download.memory_limit, "MOST_PARTS", 1000)
    error = refused(host.put("/a.mpd", manifest, DASH))
    assert (error.kind, str(error)) == ("unreadable", "The playlist of the video states more than 1,000 parts. Give another address.")
    assert host.asked == ["/a.mpd"]


def smooth_streaming(count: int) -> None:
    level = '<QualityLevel Bitrate="1000" FourCC="H264"/>'
    text = f'<M Duration="1"><StreamIndex Type="video" Url="{{start time}}">{level}<c d="1" r="{count}"/></StreamIndex></M>'
    InfoExtractor(YoutubeDL({"quiet": True}))._parse_ism_formats_and_subtitles(ElementTree.fromstring(text), "https://h/a")


def flash(count: int) -> None:
    build_fragments_list({"segments": [{"segment_run": [(1, count)]}], "fragments": [{"fragments": [{"first": 1}]}], "live": False})


@pytest.mark.parametrize("playlist", [smooth_streaming, flash])
def test_playlists_of_other_kinds_are_counted_too_and_nothing_behind_a_download(
    playlist: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vip.download.memory_limit, "MOST_PARTS", 1000)
    for _ in range(2):
        with limit_memory():
            playlist(900)
    for count in (1001, 10**30):
        with pytest.raises(ItemError, match="more than 1,000 parts"), limit_memory():
            playlist(count)
    playlist(1001)


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone limits the memory of a process")
def test_whatever_else_takes_too_much_memory_is_one_sentence(
    host: VideoHost, refused: Refused, fetched: Fetch, mp4: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    import resource

    before = resource.getrlimit(resource.RLIMIT_DATA)
    monkeypatch.setattr(vip.download.memory_limit, "MEMORY_BYTES", 100 * 2**20)
    wide = dash('<SegmentTemplate media="$Number%0400000000d$.m4s" duration="1"/>', "PT1S")
    error = refused(host.put("/a.mpd", wide, DASH))
    assert (error.kind, str(error)) == ("unreadable", "The page or the playlist of the video takes too much memory. Give another address.")
    endless = host.put("/b", bytes(2**20), status=302, headers={"Location": "/a.mpd"}, way="endless")
    assert str(refused(endless)) == str(error)
    assert fetched(host.put("/v.mp4", mp4, "video/mp4")).path.read_bytes() == mp4
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is set on Linux alone")
def test_two_downloads_at_once_leave_the_limit_as_it_was() -> None:
    import resource

    before, first, second = resource.getrlimit(resource.RLIMIT_DATA), limit_memory(), limit_memory()
    first.__enter__()
    second.__enter__()
    limit = resource.getrlimit(resource.RLIMIT_DATA)
    assert limit != before
    first.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == limit, "the other goes on"
    second.__exit__(None, None, None)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limits")
def test_on_other_systems_no_limit_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "darwin")
    monkeypatch.setattr("resource.setrlimit", lambda *limit: pytest.fail(f"it sets {limit}"))
    with limit_memory(), limit_memory():
        pass


def test_memory_that_ran_out_is_no_bug_that_is_tried_again() -> None:
    assert item_error(MemoryError()).kind == "unreadable"
