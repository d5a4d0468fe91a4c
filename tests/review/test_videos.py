"""Clips by their names."""

from __future__ import annotations

from pathlib import Path

from vip.review.videos import clips_in


def test_of_two_files_of_one_clip_the_first_name_counts_whatever_the_order_of_the_folder(tmp_path: Path) -> None:
    for name in ("v.webm", "v.mp4", "w.webm", "w.m4v", "v.txt"):
        (tmp_path / name).write_bytes(b"x")
    assert clips_in(tmp_path) == {"v": tmp_path / "v.mp4", "w": tmp_path / "w.m4v"}
