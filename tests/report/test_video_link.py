"""Links to the video: where it lies beside the run or behind an address, and nowhere else."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.report.pages import read
from tests.report.runs import make_pictures, make_run
from vip import store
from vip.report.page import write_report
from vip.report.video_link import VideoLink, video_link
from vip.store import Run, load_run

SIZE = 1234


def run_of(folder: Path, path: Path | str, *, size_bytes: int = SIZE) -> Run:
    """A run folder whose manifest names this video."""
    run = make_run(folder)
    assert run.manifest
    video = run.manifest.video.model_copy(update={"path": str(path), "size_bytes": size_bytes})
    store.write_json(folder / store.MANIFEST, run.manifest.model_copy(update={"video": video}))
    return load_run(folder)


def video_file(path: Path, size_bytes: int = SIZE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size_bytes))
    return path


def target(run: Run, link: str) -> Path:
    """The file that a browser opens for a link of the page."""
    parts = urlsplit(link)
    assert (parts.scheme, parts.netloc) == ("", "")
    return Path(os.path.normpath(run.folder / unquote(parts.path)))


@pytest.mark.parametrize(
    ("folder", "video", "link"),
    [
        ("video.vip", "video.mp4", "../video.mp4#t=12.4"),
        ("video.vip", "video.vip/video.webm", "video.webm#t=12.4"),
        ("runs/video.vip", "video.m4v", "../../video.m4v#t=12.4"),
        ("runs/video.vip", "clips/2024/video.mkv", "../../clips/2024/video.mkv#t=12.4"),
        ("video.vip", "50% off #1? größe.mp4", "../50%25%20off%20%231%3F%20gr%C3%B6%C3%9Fe.mp4#t=12.4"),
        ("video.vip", "javascript:alert(1).mp4", "../javascript%3Aalert%281%29.mp4#t=12.4"),
        ("video.vip", os.fsdecode(b"caf\xe9.mp4"), "../caf%E9.mp4#t=12.4"),
    ],
)
def test_a_video_beside_the_run_is_linked(folder: str, video: str, link: str, tmp_path: Path) -> None:
    path = video_file(tmp_path / "home" / video)
    found = video_link(run_of(tmp_path / "home" / folder, path))
    assert found
    assert found.at(12.4) == link


def test_a_run_that_was_moved_together_with_its_video_is_still_linked(tmp_path: Path) -> None:
    path = video_file(tmp_path / "before" / "video.mp4")
    run = run_of(tmp_path / "before" / "video.vip", path)
    (tmp_path / "before").rename(tmp_path / "after")
    moved = load_run(tmp_path / "after" / "video.vip")
    found = video_link(moved)
    assert found
    assert target(moved, found.at(0)) == tmp_path / "after" / "video.mp4"
    assert video_link(run) is None


@pytest.mark.parametrize("name", ["video.avi", "video.mov", "video", "video.html", "video.mp4.exe", "passwd"])
def test_what_no_browser_plays_is_not_linked(name: str, tmp_path: Path) -> None:
    assert video_link(run_of(tmp_path / "home" / "video.vip", video_file(tmp_path / "home" / name))) is None


def test_a_video_that_is_gone_or_another_is_not_linked(tmp_path: Path) -> None:
    run = run_of(tmp_path / "home" / "video.vip", tmp_path / "home" / "video.mp4")
    assert video_link(run) is None
    video_file(tmp_path / "home" / "video.mp4", SIZE + 1)
    assert video_link(run) is None
    (tmp_path / "home" / "video.mp4").unlink()
    (tmp_path / "home" / "video.mp4").mkdir()
    assert video_link(run) is None


def test_a_manifest_of_a_stranger_leads_to_no_file_elsewhere(tmp_path: Path) -> None:
    secret = video_file(tmp_path / "private" / "films" / "video.mp4")
    home = tmp_path / "home" / "downloads"
    for path in (
        secret,
        f"{home}/runs/../../../private/films/video.mp4",
        "../../../private/films/video.mp4",
        secret.as_uri(),
        f"/{secret}",
    ):
        assert video_link(run_of(home / "runs" / "video.vip", path)) is None, path


def test_of_a_run_in_the_root_of_a_disk_only_the_folder_itself_is_searched(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(os.path, "abspath", lambda path: "/video.vip")
    assert video_link(run_of(tmp_path / "home" / "video.vip", video_file(tmp_path / "home" / "video.mp4"))) is None


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("/\\:.\x00#?%@&"), max_size=30) | st.just("x" * 5000))
def test_no_name_in_a_manifest_breaks_the_page(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    folder = tmp_path_factory.getbasetemp() / "names"
    run = run_of(folder, name) if not folder.exists() else load_run(folder)
    assert run.manifest
    video = run.manifest.video.model_copy(update={"path": name})
    run.__dict__["manifest"] = run.manifest.model_copy(update={"video": video})
    found = video_link(run)
    assert found is None or found.address.startswith(("http://", "https://"))


# ---------------------------------------------------------------- the web


@pytest.mark.parametrize(
    ("address", "link"),
    [
        ("https://example.org/films/a%20b.mp4", "https://example.org/films/a%20b.mp4#t=12.4"),
        ("http://example.org:8080/video", "http://example.org:8080/video#t=12.4"),
        ("https://www.youtube.com/watch?v=dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=12s"),
        ("https://youtu.be/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=12s"),
        ("https://www.youtube.com/shorts/dQw4w9WgXcQ", "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=12s"),
    ],
)
def test_an_address_is_linked(address: str, link: str, tmp_path: Path) -> None:
    found = video_link(run_of(tmp_path, address))
    assert found
    assert found.at(12.4) == link


@pytest.mark.parametrize(
    "address",
    [
        "https://user:secret@example.org/video.mp4",
        "https://example.org/video.mp4?token=secret",
        "javascript://example.org/%0aalert(1)",
        "file:///etc/video.mp4",
        "ftp://example.org/video.mp4",
        "data://text/html,x",
        "https:///video.mp4",
        "https://[broken/video.mp4",
        "https://example.org\\@evil.example/video.mp4",
        "https://example.org/a b\u202e.mp4",
        "https://example.org/video.avi",
    ],
)
def test_no_other_address_is_linked(address: str, tmp_path: Path) -> None:
    assert video_link(run_of(tmp_path, address)) is None


def test_times_before_the_start_are_the_start() -> None:
    assert VideoLink("a.mp4").at(-0.5) == "a.mp4#t=0"
    assert VideoLink("a.mp4").at(62) == "a.mp4#t=62"
    assert VideoLink("a.mp4").at(3.0006) == "a.mp4#t=3.001"


# ---------------------------------------------------------------- the page


def test_the_time_of_each_keyframe_links_to_the_video_at_that_time(tmp_path: Path) -> None:
    video = video_file(tmp_path / "my film.mp4")
    run = run_of(tmp_path / "video.vip", video)
    page = read(write_report(run))
    links = page.of("a", class_="watch")
    assert [link["href"] for link in links] == ["../my%20film.mp4#t=0", "../my%20film.mp4#t=3", "../my%20film.mp4#t=7"]
    assert {link["rel"] for link in links} == {"noreferrer"}
    assert all(target(run, str(link["href"])) == video for link in links)


def test_a_page_without_its_video_has_times_that_are_no_links(tmp_path: Path) -> None:
    page = read(write_report(make_run(tmp_path / "run")))
    assert page.of("a", class_="watch") == []
    assert "0:03.0" in page.text
    assert video_link(make_pictures(tmp_path / "pictures")) is None
