"""The vectors of one embedder, in files and a table."""

from __future__ import annotations

from pathlib import Path

from vip.search.embedder_vectors import EmbedderVectors, StoredEmbedder


def test_the_files_of_settled_slots_go_with_those_that_a_killed_process_left(tmp_path: Path) -> None:
    """The table, and what is another embedder's, stay."""
    for name in ("embedder-1-0", "embedder-1-12", "embedder-1", "embedder-2-0", "embedder-12-0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "vectors").write_bytes(b"old")
    stored = StoredEmbedder(id=1, label="clip", dim=8, slots=20, settled=12, indexed=0, trained=0, version=1, mean=None)
    EmbedderVectors(stored, tmp_path, str(tmp_path)).forget_files()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["embedder-1", "embedder-12-0", "embedder-2-0"]
