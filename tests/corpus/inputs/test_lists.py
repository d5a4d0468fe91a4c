"""Which files are lists, and in which order they are read."""

from __future__ import annotations

from pathlib import Path

from vip.corpus.inputs.lists import ItemList, given_lists


def test_a_folder_gives_its_lists_by_name_and_neither_the_vocabulary_nor_other_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.txt", "c.jsonl.gz", "vocabulary.csv", "README.md", "notes"):
        (tmp_path / name).write_text("nXSc\n")
    found = list(given_lists(str(tmp_path)))
    assert [Path(each.name).name for each in found if isinstance(each, ItemList)] == ["a.txt", "b.csv", "c.jsonl.gz"]
    assert len(found) == 3
