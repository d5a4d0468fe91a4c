"""One address that a user types: read where it lies if that can be, else copied into the cache, of a page by yt-dlp."""

from __future__ import annotations

import re
from functools import partial
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import vip
from tests.download.pages import page, video
from tests.file_server import serving
from tests.video_host import Answer, VideoHost
from vip.config import BatchSettings, ExtractSettings
from vip.dataset.items import DownloadedVideo, ListItem
from vip.download import cache, sources
from vip.download.sources import _Progress, download_source, resolve_source
from vip.errors import FailureKind, InputError, ItemError, NotInPartsError, UsageError
from vip.protocols import SilentObserver
from vip.video import AddressSource, DownloadedSource, source_of

WATCH = "https://www.youtube.com/watch?v=dQw4w9WgXcQ"


class Notes(SilentObserver):
    """What the user is told."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def note(self, text: str) -> None:
        self.told.append(text)


@pytest.mark.slow
def test_a_server_without_ranges_is_copied_into_the_cache_once(mp4: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(mp4)
    with serving(tmp_path) as server:
        server.ranges = False
        run = vip.extract(f"{server.address}/a.mp4", out=tmp_path / "one", keyframes=3)
        assert len(run.keyframes) == 3
        assert [range_ is None for _, range_ in server.asked] == [False, True], "in parts, then whole"
        other = vip.extract(f"{server.address}/a.mp4", out=tmp_path / "two", keyframes=2)
        assert len(other.keyframes) == 2
        assert len(server.asked) == 2, "what is in the cache is not asked for"
        assert run.manifest is not None
        assert run.manifest.video.path == f"{server.address}/a.mp4"
        assert run.manifest.video_id == "a"


def test_a_finished_run_needs_neither_cache_nor_server(mp4: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.mp4").write_bytes(mp4)
    with serving(tmp_path) as server:
        server.ranges = False
        address = f"{server.address}/a.mp4?id=1"
        before = vip.extract(address, out=tmp_path / "one", keyframes=3)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    assert [k.id for k in vip.extract(address, out=tmp_path / "one", keyframes=3).keyframes] == [k.id for k in before.keyframes]


@pytest.mark.slow
def test_a_query_tells_one_video_from_another_and_is_not_written_down(mp4: bytes, webm: bytes, tmp_path: Path, host: VideoHost) -> None:
    host.put("/get?id=1", mp4, "video/mp4")
    host.put("/get?id=secret", webm, "video/webm")
    one = vip.extract(f"{host.address}/get?id=1", out=tmp_path / "run", keyframes=2)
    assert one.manifest is not None
    with pytest.raises(UsageError, match="holds another run"):
        vip.extract(f"{host.address}/get?id=secret", out=tmp_path / "run", keyframes=2)
    two = vip.extract(f"{host.address}/get?id=secret", out=tmp_path / "other", keyframes=2)
    assert two.manifest is not None
    assert (one.manifest.video.codec, two.manifest.video.codec) == ("h264", "vp9")
    written = [path.read_bytes() for folder in (two.folder, cache.default_folder()) for path in folder.rglob("*.json*")]
    assert written
    assert not any(b"secret" in data for data in written)


def test_a_newer_file_at_the_address_is_loaded_again(mp4: bytes, webm: bytes, tmp_path: Path, host: VideoHost) -> None:
    address = host.put("/get", mp4, "video/mp4")
    source = AddressSource(address)
    why = NotInPartsError("…", "whole", "v1")
    first = download_source(source, ExtractSettings(), Notes(), why)
    assert isinstance(first, DownloadedSource)
    host.put("/get", webm, "video/webm")
    assert download_source(source, ExtractSettings(), Notes(), why) == first
    second = download_source(source, ExtractSettings(), Notes(), NotInPartsError("…", "whole", "v2"))
    assert isinstance(second, DownloadedSource)
    assert second.path.read_bytes() == webm


@pytest.mark.parametrize(("name", "kept"), [("A.MP4", "video.mp4"), ("get.php", "video"), ("film", "video")])
def test_a_whole_file_is_kept_with_its_suffix_if_that_is_one_of_a_video(host: VideoHost, mp4: bytes, name: str, kept: str) -> None:
    source = AddressSource(host.put(f"/{name}", mp4, "video/mp4"))
    found = download_source(source, ExtractSettings(), Notes(), NotInPartsError("…", "whole"))
    assert isinstance(found, DownloadedSource)
    assert (found.path.name, found.path.read_bytes(), found.stem) == (kept, mp4, Path(name).stem)


@pytest.mark.slow
def test_a_download_that_breaks_off_is_begun_again_and_one_that_never_ends_is_refused(
    host: VideoHost, mp4: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, broken = Answer(mp4, "video/mp4"), Answer(mp4, "video/mp4", way="reset")
    host.answers["/v.mp4"] = [whole, broken, whole]
    assert len(vip.extract(f"{host.address}/v.mp4", out=tmp_path / "run", keyframes=2).keyframes) == 2
    address = host.put("/live.mp4", mp4, "video/mp4", way="endless")
    monkeypatch.setattr(cache, "free_bytes", lambda: 10_000_000)
    with pytest.raises(InputError, match=r"is larger than the room on this disk"):
        vip.extract(address, out=tmp_path / "live")
    assert not (tmp_path / "live").exists()
    assert list(cache.folder_of(address).glob(".part-*")) == []


@pytest.mark.slow
@pytest.mark.extra("yt_dlp")
def test_the_video_of_a_page_is_found_by_yt_dlp(host: VideoHost, mp4: bytes, tmp_path: Path) -> None:
    host.put("/v.mp4", mp4, "video/mp4")
    address = host.put("/talk", page(video("/v.mp4"), title="Frisbee"))
    notes = Notes()
    run = vip.extract(address, out=tmp_path / "run", keyframes=2, observer=notes)
    assert (len(run.keyframes), run.manifest and run.manifest.video_id) == (2, "talk")
    assert any('Downloaded "Frisbee (1)"' in note for note in notes.told)
    asked = len(host.asked)
    assert vip.extract(address, out=tmp_path / "run", keyframes=2).keyframes
    assert len(host.asked) == asked


@pytest.mark.slow
@pytest.mark.extra("yt_dlp")
def test_the_subtitles_of_a_page_are_words_of_its_run(host: VideoHost, mp4: bytes, tmp_path: Path) -> None:
    host.put("/v.mp4", mp4, "video/mp4")
    host.put("/en.vtt", "WEBVTT\n\n00:00:00.100 --> 00:00:00.900\nHello there\n", "text/vtt")
    track = '<track kind="subtitles" srclang="en" src="/en.vtt">'
    address = host.put("/talk", page(f'<video><source src="/v.mp4" type="video/mp4">{track}</video>', title="Frisbee"))
    done = vip.run(address, out=tmp_path / "run", keyframes=2, engine="offline", words="subtitles")
    assert [(one.text, one.origin) for one in done.words] == [("Hello there", f"{address} (en)")]
    assert "read: “Hello there”" in done.descriptions[0].dense_caption
    bare = host.put("/bare", page(video("/v.mp4"), title="Frisbee"))
    with pytest.raises(InputError, match="no subtitles that can be read, in the video or on its page"):
        vip.run(bare, out=tmp_path / "bare", keyframes=2, engine="offline", words="subtitles")


@pytest.mark.slow
@pytest.mark.extra("yt_dlp")
def test_a_web_page_is_called_one(host: VideoHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = host.put("/about", page("nothing"))
    with pytest.raises(InputError, match=r"/about is a web page, not a video file\. yt-dlp finds no video in it\."):
        vip.extract(address, out=tmp_path / "run")
    monkeypatch.setattr(sources, "_has_ytdlp", lambda: False)
    with pytest.raises(InputError, match=r"is a web page, not a video file\..* pip install 'vip-keyframes\[batch\]'"):
        vip.extract(address, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "is_empty"), [("no_video", True), ("private", False), ("network", False)])
def test_a_page_is_said_to_hold_no_video_only_where_that_is_why(kind: FailureKind, is_empty: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ItemError("A reason.", kind)

    monkeypatch.setattr(import_module("vip.download.fetch"), "fetch", fail)
    monkeypatch.setattr(import_module("vip.download.preflight"), "preflight", lambda *_: [])
    with pytest.raises(ItemError) as raised:
        download_source(AddressSource("https://host/film"), ExtractSettings(), Notes(), NotInPartsError("It is a page.", "page"))
    assert raised.value.kind == kind
    assert ("yt-dlp finds no video in it" in str(raised.value)) == is_empty
    assert ("A reason." in str(raised.value)) != is_empty


@pytest.fixture
def fetches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[ListItem]:
    """Stands in for yt-dlp: each fetch gives a file of 1.5 MB. The list grows by what was asked for."""
    asked: list[ListItem] = []

    def fetch(item: ListItem, settings: BatchSettings, folder: Path, **how: Any) -> DownloadedVideo:
        asked.append(item)
        (folder / "video.webm").write_bytes(b"x" * 1_500_000)
        (folder / "video.de.vtt").write_text("WEBVTT")
        title = None if item.source.endswith("untitled") else "A film"
        return DownloadedVideo(folder / "video.webm", title=title, subtitles={"de": folder / "video.de.vtt"})

    monkeypatch.setattr(import_module("vip.download.fetch"), "fetch", fetch)
    monkeypatch.setattr(import_module("vip.download.preflight"), "preflight", lambda *_: ["Deno is missing."])
    monkeypatch.setattr(sources, "_has_ytdlp", lambda: True)
    return asked


def test_a_video_of_a_page_is_put_into_the_cache_with_its_subtitles_and_that_is_told(fetches: list[ListItem]) -> None:
    address, notes = "https://me:LOGIN@host.test/film?id=SECRET", Notes()
    why = NotInPartsError("It is a page.", "page")
    found = download_source(AddressSource(address), ExtractSettings(), notes, why)
    assert isinstance(found, DownloadedSource)
    assert [(one.kind, one.source) for one in fetches] == [("address", address)]
    assert found.path.stat().st_size == 1_500_000
    assert (found.stem, found.shown) == ("film", AddressSource(address).exact_location)
    assert notes.told == ["Deno is missing.", f'Downloaded "A film", 1.5 MB, into {found.path.parent}.']
    assert sorted(path.name for path in found.path.parent.iterdir()) == sorted(["video.de.vtt", "video.webm", cache.RECORD])
    assert not [word for word in ("LOGIN", "SECRET") if word in (found.path.parent / cache.RECORD).read_text()]
    assert resolve_source(AddressSource(address)) == found, "the next time it is there"
    assert download_source(found, ExtractSettings(), notes) is found
    assert len(fetches) == 1


def test_a_video_without_a_title_is_called_by_its_address(fetches: list[ListItem]) -> None:
    notes = Notes()
    download_source(AddressSource("https://host.test/untitled"), ExtractSettings(), notes, NotInPartsError("It is a page.", "page"))
    assert notes.told[-1].startswith("Downloaded untitled, 1.5 MB, into ")


def test_a_video_of_youtube_is_asked_for_by_its_id(fetches: list[ListItem]) -> None:
    source = resolve_source(AddressSource(f"{WATCH}&t=10"))
    found = download_source(source, ExtractSettings(), Notes())
    assert [(one.kind, one.source) for one in fetches] == [("youtube", "dQw4w9WgXcQ")]
    assert isinstance(found, DownloadedSource)
    assert (found.stem, found.shown, found.path.name) == ("dQw4w9WgXcQ", WATCH, "video.webm")
    assert resolve_source(AddressSource("https://youtu.be/dQw4w9WgXcQ")).state() == found.state(), "in the cache, however it is spelled"


def test_a_server_that_refuses_is_asked_by_yt_dlp_only_for_a_site_that_it_knows(
    fetches: list[ListItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    known = SimpleNamespace(suitable=lambda address: "known" in address, get_temp_id=lambda address: "../a b/7.")
    monkeypatch.setattr(sources, "_extractors", lambda: [known])
    why = NotInPartsError("It does not allow it.", "refused")
    with pytest.raises(NotInPartsError, match="It does not allow it"):
        download_source(AddressSource("https://other.test/7"), ExtractSettings(), Notes(), why)
    assert fetches == []
    download_source(AddressSource("https://known.test/7"), ExtractSettings(), Notes(), why)
    assert len(fetches) == 1
    resolved = resolve_source(AddressSource("https://known.test/7"))
    assert resolved.stem == "7", "the cache has it by its address"
    new = resolve_source(AddressSource("https://known.test/8?key=SECRET"))
    assert isinstance(new, DownloadedSource)
    assert new.stem == "a_b_7", "a name of the site is no path"
    assert "SECRET" not in new.shown
    monkeypatch.setattr(sources, "_has_ytdlp", lambda: False)
    assert resolve_source(AddressSource("https://known.test/9")) == AddressSource("https://known.test/9")
    with pytest.raises(InputError, match=r"^It does not allow it\.$"):
        download_source(AddressSource("https://known.test/9"), ExtractSettings(), Notes(), why)
    with pytest.raises(InputError, match=r"It is a page\. Videos of web sites are read with yt-dlp; install it with pip install"):
        download_source(AddressSource("https://known.test/9"), ExtractSettings(), Notes(), NotInPartsError("It is a page.", "page"))


def test_what_needs_no_download_stays_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    file, address = source_of(str(tmp_path / "a.mp4")), AddressSource("https://host.test/a.mp4")
    assert resolve_source(file) is file
    assert download_source(file, ExtractSettings(), Notes(), NotInPartsError("…", "whole")) is file
    assert download_source(address, ExtractSettings(), Notes()) is address, "it can be read in parts"


def test_a_page_that_is_served_in_parts_is_still_a_page(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("<!DOCTYPE html><html>not here</html>")
    with serving(tmp_path) as server, pytest.raises(InputError, match="is a web page"):
        vip.extract(f"{server.address}/a.mp4", out=tmp_path / "run")


@pytest.mark.extra("yt_dlp")
def test_a_youtube_address_is_named_by_its_id_in_all_its_spellings() -> None:
    for address in (WATCH, "https://youtu.be/dQw4w9WgXcQ?si=abc", "https://m.youtube.com/watch?v=dQw4w9WgXcQ&t=10s&list=PL1"):
        source = resolve_source(source_of(address))
        assert isinstance(source, DownloadedSource)
        assert (source.stem, source.location, str(source), source.state()) == ("dQw4w9WgXcQ", WATCH, WATCH, None)


@pytest.mark.parametrize("address", ["https://example.org/film.mp4", "https://example.org/talks/1"])
def test_other_addresses_stay_what_they_are(address: str) -> None:
    assert resolve_source(source_of(address)) == AddressSource(address)


def test_a_server_that_refuses_is_said(host: VideoHost, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"does not allow it \(403 Forbidden\)"):
        vip.extract(host.put("/watch", status=403), out=tmp_path / "run")


@pytest.mark.slow
@pytest.mark.extra("yt_dlp")
def test_a_video_of_youtube_is_watched_by_its_id_and_kept(
    host: VideoHost, mp4: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.put("/watch?v=dQw4w9WgXcQ", mp4, "video/mp4")
    monkeypatch.setattr(sources, "BatchSettings", partial(BatchSettings, video_base_url=host.address))
    monkeypatch.chdir(tmp_path)
    run = vip.extract(f"{WATCH}&list=PL1", keyframes=2)
    assert run.folder == Path("dQw4w9WgXcQ.vip")
    assert run.manifest is not None
    assert (run.manifest.video.path, run.keyframes[0].id) == (WATCH, "dQw4w9WgXcQ:0001")
    asked = len(host.asked)
    again = vip.rechoose(run, keyframes=3)
    assert (len(again.keyframes), len(host.asked)) == (3, asked), "new pictures come from the cache"


@pytest.mark.slow
@pytest.mark.extra("yt_dlp")
def test_a_video_that_was_deleted_is_said_in_one_sentence(host: VideoHost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "BatchSettings", partial(BatchSettings, video_base_url=host.address))
    with pytest.raises(InputError, match=rf"^{re.escape(WATCH)}: .*404"):
        vip.extract(WATCH, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.extra("yt_dlp")
def test_a_folder_of_something_else_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty and no run of vip"):
        vip.extract(WATCH, out=tmp_path / "run")


def test_a_bar_moves_by_hundredths_and_stays_where_the_size_is_not_known() -> None:
    steps: list[None] = []
    progress = _Progress(lambda: steps.append(None), 1000, "a")
    seen = []
    for done in (0, 9, 10, 500, 499, 1000):
        progress(done, 1000)
        seen.append(len(steps))
    assert seen == [0, 0, 1, 50, 50, 100]
    _Progress(lambda: steps.append(None), 1000, "a")(900, None)
    assert len(steps) == 100


@pytest.mark.parametrize(("done", "size"), [(1001, None), (0, 1001)])
def test_a_download_that_is_larger_than_the_room_is_ended_as_soon_as_that_is_known(done: int, size: int | None) -> None:
    progress = _Progress(lambda: None, 1000, "a.mp4")
    progress(1000, 1000)
    with pytest.raises(InputError, match=r"a\.mp4 is larger than the room on this disk"):
        progress(done, size)
