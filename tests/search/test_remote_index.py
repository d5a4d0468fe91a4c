"""The copy of an index that lies elsewhere."""

from __future__ import annotations

from pathlib import Path

from vip.search.index import DATABASE
from vip.search.remote_index import STATE, _forget


def test_nothing_of_an_old_copy_is_left_beside_a_new_one(tmp_path: Path) -> None:
    """What SQLite has not put into its file yet would be read into the new one."""
    for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm", STATE, "frames.txt"):
        (tmp_path / name).write_bytes(b"old")
    for name in ("embedder-1-0", "embedder-1-12", "frames"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vectors.f32").write_bytes(b"old")
    _forget(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["frames", "frames.txt"]
    assert (tmp_path / "frames" / "vectors.f32").is_file()
