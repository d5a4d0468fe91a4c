"""What the user named: files, addresses, folders, patterns and lists of pictures; and what is shown and kept of them."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.media import card
from tests.video.drawing import animate, hole, write
from vip.errors import InputError
from vip.video.source import AddressSource, DownloadedSource, FileSource, PicturesSource, contents, pictures, sha256_of, source_of

SECRETS = "https://anna:pa%40ss@example.org:8443/a/My%20clip.mp4?token=hidden#t=5"


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    for name in ("shot_0001.png", "shot_0002.png", "shot_0010.png", "shot_3.png", "other.jpg"):
        write(tmp_path / "frames" / name, card(1, 32, 24))
    return tmp_path / "frames"


def test_a_path_is_a_file(tmp_path: Path) -> None:
    assert source_of(tmp_path / "a.mp4") == source_of(str(tmp_path / "a.mp4")) == FileSource(tmp_path / "a.mp4")


def test_what_a_file_is_known_again_by(tmp_path: Path) -> None:
    (tmp_path / "a.b.mp4").write_bytes(b"12345")
    source = FileSource(tmp_path / "a.b.mp4")
    assert (source.name, source.stem, source.location, str(source)) == ("a.b.mp4", "a.b", str(source.path), str(source.path))
    assert source.state() == (5, source.path.stat().st_mtime_ns)
    assert source.sha256() == sha256_of(source.path) == hashlib.sha256(b"12345").hexdigest()
    source.path.unlink()
    assert source.state() is None


def test_a_file_is_the_same_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "below").mkdir()
    monkeypatch.chdir(tmp_path)
    source = source_of("below/a.mp4")
    assert (source.location, source.identity) == (str(tmp_path / "below" / "a.mp4"),) * 2
    assert str(source) == str(Path("below") / "a.mp4"), "it is shown as it was named"
    monkeypatch.chdir(tmp_path / "below")
    assert source_of("a.mp4").identity == str(tmp_path / "below" / "a.mp4")


@pytest.mark.parametrize(
    ("name", "called", "stem"),
    [("a.b.mp4", None, "a.b"), ("a.mp4", "talk", "talk"), ("..mp4", None, "video..mp4"), ("...", None, "video..."), (".a.mp4", None, ".a")],
)
def test_no_run_folder_is_named_by_dots_alone(name: str, called: str | None, stem: str) -> None:
    assert FileSource(Path("folder") / name, called).stem == stem


def test_a_download_is_named_after_its_address_and_not_after_its_place_in_the_cache(tmp_path: Path) -> None:
    source = DownloadedSource(tmp_path / "0123.webm", "talk", address="https://h/watch?v=secret", shown="https://h/watch#sha256-0123")
    assert (source.name, source.stem, source.identity) == ("talk.webm", "talk", "https://h/watch?v=secret")
    assert (source.location, str(source)) == ("https://h/watch#sha256-0123", "https://h/watch")
    assert source.state() is None
    source.path.write_bytes(b"123")
    assert source.state() == (3, source.path.stat().st_mtime_ns)


def test_a_pipe_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.mp4")
    with pytest.raises(InputError, match=r"a\.mp4 is no regular file\. Give a video file\."):
        source_of(tmp_path / "a.mp4")


@pytest.mark.parametrize("address", ["http://example.org/a.mp4", "HTTPS://example.org/a.mp4?x=1"])
def test_http_addresses_are_addresses(address: str) -> None:
    assert source_of(address) == AddressSource(address)


@pytest.mark.parametrize("address", ["http://me:pa/ss@127.0.0.1:9/a.mp4", "http://me:pa?ss@127.0.0.1:9/a.mp4", "http://me:pa#ss@h/a.mp4"])
def test_a_password_that_is_not_escaped_is_not_shown(address: str) -> None:
    source = AddressSource(address)
    assert (source.location, str(source), source.exact_location.partition("#")[0]) == ("http://me:…",) * 3


def test_a_password_with_an_at_sign_in_it_is_not_shown() -> None:
    source = AddressSource("https://me:se@cr@et@h:8443/a.mp4")
    assert (source.location, str(source)) == ("https://h:8443/a.mp4",) * 2


def test_neither_login_nor_query_of_an_address_is_shown() -> None:
    source = AddressSource(SECRETS)
    assert source.location == str(source) == "https://example.org:8443/a/My%20clip.mp4"
    assert (source.name, source.stem) == ("My clip.mp4", "My clip")
    assert source.sha256() is None


@pytest.mark.parametrize(
    ("address", "tail"),
    [
        ("https://h/a.mp4", ""),
        ("https://h/a.mp4#t=5", ""),
        ("https://h/a.mp4?id=1", f"#sha256-{hashlib.sha256(b'id=1').hexdigest()[:16]}"),
        ("https://h/a.mp4?id=1#t=5", f"#sha256-{hashlib.sha256(b'id=1').hexdigest()[:16]}"),
        ("https://me:secret@h/a.mp4?id=1", f"#sha256-{hashlib.sha256(b'id=1').hexdigest()[:16]}"),
        ("https://h/a.mp4#sha256-0123", "#sha256-0123"),
    ],
)
def test_a_query_stays_as_its_digest_also_where_the_address_is_given_as_it_was_written_down(address: str, tail: str) -> None:
    exact = AddressSource(address).exact_location
    assert exact == f"https://h/a.mp4{tail}"
    assert AddressSource(exact).exact_location == exact
    assert AddressSource(exact).location == "https://h/a.mp4"


@pytest.mark.parametrize(
    ("address", "stem"),
    [
        ("http://example.org", "example"),
        ("http://example.org/", "example"),
        ("http://example.org/get?id=7", "get"),
        ("http://example.org/a%2Fb.mp4", "a_b"),
        ("http://example.org/..%2F..%2Fetc", "_."),
        ("http://example.org/%2e%2e", "example"),
        ("http://example.org/.hidden.mp4", "hidden"),
        ("http://example.org/" + "x" * 400 + ".mp4", "x" * 120),
        ("http://example.org/%00.mp4", "_"),
    ],
)
def test_run_folders_of_addresses_have_safe_names(address: str, stem: str) -> None:
    assert AddressSource(address).stem == stem


@pytest.mark.parametrize("address", ["rtsp://camera/1", "ftp://example.org/a.mp4", "s3://bucket/a.mp4", "file:///etc/passwd"])
def test_other_addresses_are_refused(address: str) -> None:
    with pytest.raises(InputError, match=r"addresses of the kind \w+:// are not read"):
        source_of(address)


@pytest.mark.parametrize("login", ["admin:secret@", "admin:se@cret@", "admin:se?cret@"])
def test_a_refused_address_shows_no_login(login: str) -> None:
    with pytest.raises(InputError, match=r"^rtsp://camera/1: addresses of the kind rtsp:// are not read\."):
        source_of(f"rtsp://{login}camera/1?token=secret")


# ---------------------------------------------------------------- pictures


def test_a_folder_of_pictures_is_one_video(frames: Path) -> None:
    source = source_of(frames)
    assert isinstance(source, PicturesSource)
    assert len(source.paths) == 5
    assert (source.stem, source.location, str(source)) == ("frames", str(frames), str(frames))


def test_the_folder_is_known_again_by_all_its_pictures(frames: Path) -> None:
    source = source_of(frames)
    assert isinstance(source, PicturesSource)
    for number, path in enumerate(source.paths):
        path.write_bytes(bytes(number))
        os.utime(path, ns=(0, 1000 * (number + 1) % 4000))  # the third is the newest
    assert source.state() == (0 + 1 + 2 + 3 + 4, 3000)
    digests = b"".join(hashlib.sha256(bytes(number)).digest() for number in range(5))
    assert source.sha256() == hashlib.sha256(digests).hexdigest()
    source.paths[2].unlink()
    assert source.state() is None


def test_no_two_lists_of_pictures_of_a_folder_are_the_same_video(frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one, two, three = (frames / name for name in ("shot_0001.png", "shot_0002.png", "shot_3.png"))
    identities = {source_of(chosen).identity for chosen in ([one, two], [one, three], [one, two, three], [one], frames)}
    assert len(identities) == 5
    pattern, same = source_of(frames / "shot_000%d.png"), source_of([one, two])
    assert isinstance(pattern, PicturesSource)
    assert isinstance(same, PicturesSource)
    assert (pattern.paths, pattern.name, same.name) == (same.paths, "shot_000%d.png", "frames")
    assert pattern.identity != same.identity
    monkeypatch.chdir(frames)
    assert source_of([Path(one.name), Path(two.name)]).identity == source_of([one, two]).identity


def test_endings_may_be_written_large(frames: Path) -> None:
    large = write(frames / "LARGE_7.PNG", card(1, 32, 24))
    (frames / "TALK.MP4").touch()
    videos, shown, links = contents(frames)
    assert ([path.name for path in videos], large in shown, len(shown), links) == (["TALK.MP4"], True, 6, 0)
    assert source_of(large) == source_of([large]) == PicturesSource((large,), large, "LARGE_7")
    assert source_of(frames / "LARGE_%d.PNG") == PicturesSource((large,), frames / "LARGE_%d.PNG", "LARGE")


def test_videos_of_all_usual_containers_are_found_in_a_folder(tmp_path: Path) -> None:
    """Of phones, cameras, discs, broadcasts, the web, and of old computers; nothing that only lies beside them."""
    videos = ["a.3gp", "a.avi", "a.flv", "a.gif", "a.m2ts", "a.m4v", "a.mkv", "a.mov", "a.mp4", "a.mpeg", "a.mpg", "a.mts", "a.mxf"]
    videos += ["a.ogm", "a.ogv", "a.ts", "a.vob", "a.webm", "a.wmv"]
    for name in [*videos, "a.mp3", "a.srt", "a.txt", "a.mp4.part", "mp4"]:
        (tmp_path / name).touch()
    assert [path.name for path in contents(tmp_path).videos] == videos
    assert contents(tmp_path).pictures == []


@pytest.mark.parametrize("name", ["a.png", "a.mp4"])
def test_a_folder_that_is_named_like_a_file_is_none(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert contents(tmp_path) == ([], [], 0)


def test_a_folder_of_links_that_lead_out_says_so(frames: Path, tmp_path: Path) -> None:
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "a.png").symlink_to(frames / "other.jpg")
    with pytest.raises(InputError, match=r"links holds only links that lead out of it\. Name what they lead to"):
        source_of(tmp_path / "links")
    write(tmp_path / "links" / "b.png", card(1, 32, 24))
    source = source_of(tmp_path / "links")
    assert isinstance(source, PicturesSource)
    assert [path.name for path in source.paths] == ["b.png"]


def test_a_folder_named_by_dots_has_the_name_of_the_folder(frames: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(frames)
    assert source_of(".").stem == "frames"


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("shot_%04d.png", ["shot_0001.png", "shot_0002.png", "shot_0010.png"]),
        ("shot_%d.png", ["shot_0001.png", "shot_0002.png", "shot_0010.png", "shot_3.png"]),
        ("shot_%1d.png", ["shot_0001.png", "shot_0002.png", "shot_0010.png", "shot_3.png"]),
        ("shot_%2d.png", ["shot_0001.png", "shot_0002.png", "shot_0010.png"]),
    ],
)
def test_a_pattern_is_the_files_that_fit_it(frames: Path, pattern: str, names: list[str]) -> None:
    source = source_of(frames / pattern)
    assert isinstance(source, PicturesSource)
    assert [path.name for path in source.paths] == names
    assert source.stem == "shot"


@pytest.mark.parametrize(("target", "count"), [("outside.png", 3), ("frames/other.jpg", 4)])
def test_a_link_that_leads_out_of_the_folder_fits_no_pattern(frames: Path, tmp_path: Path, target: str, count: int) -> None:
    write(tmp_path / "outside.png", card(1, 32, 24))
    (frames / "shot_0004.png").symlink_to(tmp_path / target)
    (frames / "shot_0005.png").mkdir()
    source = source_of(frames / "shot_%04d.png")
    assert isinstance(source, PicturesSource)
    assert len(source.paths) == count


@pytest.mark.parametrize(("target", "count"), [("outside.png", 5), ("frames/other.jpg", 6)])
def test_a_link_that_leads_out_of_the_folder_is_none_of_its_pictures(frames: Path, tmp_path: Path, target: str, count: int) -> None:
    write(tmp_path / "outside.png", card(1, 32, 24))
    (frames / "shot_0004.png").symlink_to(tmp_path / target)
    assert (len(contents(frames).pictures), contents(frames).links) == (count, 6 - count)


def test_a_pattern_of_digits_alone_has_the_name_of_its_folder(frames: Path) -> None:
    write(frames / "01.png", card(1, 32, 24))
    assert source_of(frames / "%02d.png").stem == "frames"


def test_a_pattern_that_nothing_fits_is_refused(frames: Path) -> None:
    with pytest.raises(InputError, match=r"shot_%06d\.png: no file in .*frames fits this pattern"):
        source_of(frames / "shot_%06d.png")
    with pytest.raises(InputError, match="cannot be read"):
        source_of(frames / "nowhere" / "%d.png")


def test_a_file_that_is_named_like_a_pattern_is_a_file(frames: Path) -> None:
    write(frames / "a%d.png", card(1, 32, 24))
    assert source_of(frames / "a%d.png") == PicturesSource((frames / "a%d.png",), frames / "a%d.png", "a%d")


def test_pictures_in_a_list_are_one_video(frames: Path) -> None:
    source = source_of([frames / "shot_3.png", str(frames / "other.jpg"), frames / "shot_3.png"])
    assert isinstance(source, PicturesSource)
    assert source.paths == (frames / "shot_3.png", frames / "other.jpg")
    assert (source.stem, source.location) == ("frames", str(frames))


def test_pictures_of_several_folders_are_named_after_what_is_above(frames: Path, tmp_path: Path) -> None:
    other = write(tmp_path / "more" / "a.png", card(1, 32, 24))
    assert source_of([frames / "shot_3.png", other]).stem == tmp_path.name


def test_a_list_with_something_else_in_it_is_refused(frames: Path, tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_bytes(b"x")
    with pytest.raises(InputError, match=r"a\.mp4 is not a picture"):
        pictures([frames / "shot_3.png", tmp_path / "a.mp4"])
    with pytest.raises(InputError, match=r"b\.png does not exist"):
        pictures([frames / "shot_3.png", tmp_path / "b.png"])
    with pytest.raises(InputError, match="No pictures"):
        pictures([])


def test_a_folder_with_neither_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    with pytest.raises(InputError, match="is a folder without videos or pictures"):
        source_of(tmp_path)


def test_a_folder_of_videos_is_no_video(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").touch()
    with pytest.raises(InputError, match=r"is a folder of videos\. Give one of them\."):
        source_of(tmp_path)


def test_animations_are_videos_and_not_pictures(frames: Path) -> None:
    for name in ("moving.webp", "moving.png"):
        path = animate(frames / name, [hole(0), hole(1)], [50, 50])
        assert source_of(path) == FileSource(path)
        with pytest.raises(InputError, match="is not a picture"):
            pictures([path, frames / "other.jpg"])
    videos, shown, _ = contents(frames)
    assert [path.name for path in videos] == ["moving.png", "moving.webp"]
    assert len(shown) == 5
