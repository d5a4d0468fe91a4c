"""Videos that were downloaded lie in the cache, the least used ones not for ever."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from vip.download import cache


def put(tmp_path: Path, shown: str, size: int = 1000) -> Path:
    path = tmp_path / "loaded.mp4"
    path.write_bytes(b"v" * size)
    return cache.keep(shown, path, version="v1", title="A film")


def test_what_was_kept_is_found_by_its_address_alone(tmp_path: Path) -> None:
    path = put(tmp_path, "https://h/a.mp4")
    found = cache.find("https://h/a.mp4")
    assert found is not None
    assert (found[0], found[1].version, found[1].title, found[0].read_bytes()) == (path, "v1", "A film", b"v" * 1000)
    assert cache.find("https://h/b.mp4") is None
    assert not (tmp_path / "loaded.mp4").exists()


@pytest.mark.parametrize("languages", [(), ("fr",), ("en", "fr")])
def test_a_video_that_is_downloaded_again_has_the_subtitles_of_now(tmp_path: Path, languages: tuple[str, ...]) -> None:
    def keep(*names: str) -> Path:
        (tmp_path / "loaded.mp4").write_bytes(b"video")
        for name in names:
            (tmp_path / f"{name}.vtt").write_text(f"{names}")
        return cache.keep("https://h/a", tmp_path / "loaded.mp4", subtitles={name: tmp_path / f"{name}.vtt" for name in names})

    folder = keep("en", "de").parent
    assert {path.name for path in folder.glob("*.vtt")} == {"video.en.vtt", "video.de.vtt"}
    keep(*languages)
    assert {path.name: path.read_text() for path in folder.glob("*.vtt")} == {f"video.{name}.vtt": f"{languages}" for name in languages}


def test_a_video_that_is_downloaded_again_in_another_format_takes_no_more_room(tmp_path: Path) -> None:
    for suffix in (".mp4", ".webm"):
        (tmp_path / f"loaded{suffix}").write_bytes(b"video")
        path = cache.keep("https://h/a", tmp_path / f"loaded{suffix}")
    assert [found.name for found in path.parent.glob("video*")] == ["video.webm"]


def test_what_is_not_whole_is_not_there(tmp_path: Path) -> None:
    path = put(tmp_path, "https://h/a.mp4")
    path.write_bytes(b"v" * 999)
    assert cache.find("https://h/a.mp4") is None
    path.write_bytes(b"v" * 1000)
    (path.parent / cache.RECORD).write_text("{")
    assert cache.find("https://h/a.mp4") is None


@pytest.mark.parametrize("changed", ['"https://h/b.mp4"', '"https://h/a.mp4?x=1"', '""'])
def test_a_record_of_another_address_is_none(tmp_path: Path, changed: str) -> None:
    path = put(tmp_path, "https://h/a.mp4")
    record = path.parent / cache.RECORD
    record.write_text(record.read_text().replace('"https://h/a.mp4"', changed))
    assert cache.find("https://h/a.mp4") is None


def test_a_record_names_no_file_elsewhere(tmp_path: Path) -> None:
    path = put(tmp_path, "https://h/a.mp4")
    record = path.parent / cache.RECORD
    outside = tmp_path / "outside.mp4"
    outside.write_bytes(b"v" * 1000)
    record.write_text(record.read_text().replace('"video.mp4"', f'"{outside}"'))
    assert cache.find("https://h/a.mp4") is None


def test_those_go_that_were_not_used_for_longest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "KEPT_BYTES", 3000)
    paths = {name: put(tmp_path, name, 700) for name in ("a", "b", "c")}
    for age, name in enumerate(("b", "c", "a"), 1):
        os.utime(paths[name].parent / cache.RECORD, (age, age))
    assert cache.find("b") is not None, "used just now"
    put(tmp_path, "d", 900)
    assert [name for name in ("a", "b", "c", "d") if cache.find(name)] == ["a", "b", "d"]


def test_one_that_is_larger_than_all_room_is_kept_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "KEPT_BYTES", 1500)
    put(tmp_path, "a", 700)
    put(tmp_path, "b", 2000)
    assert [name for name in ("a", "b") if cache.find(name)] == ["b"]


@pytest.mark.parametrize(("free", "room"), [(5_000_000_000, 4_000_000_000), (1_000_000_000, 0), (10, 0)])
def test_a_gigabyte_of_the_disk_is_left_to_others(free: int, room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(9 * 10**9, 0, free))  # type: ignore[attr-defined]
    assert cache.free_bytes() == room
