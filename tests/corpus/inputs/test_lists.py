"""Which files are lists, and in which order they are read."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from vip.corpus.inputs.lists import ItemList, given_lists
from vip.errors import InputError


def test_a_folder_gives_its_lists_by_name_and_neither_the_vocabulary_nor_other_files(tmp_path: Path) -> None:
    for name in ("b.csv", "a.txt", "c.jsonl.gz", "vocabulary.csv", "README.md", "notes"):
        (tmp_path / name).write_text("nXSc\n")
    found = list(given_lists(str(tmp_path)))
    assert [Path(each.name).name for each in found if isinstance(each, ItemList)] == ["a.txt", "b.csv", "c.jsonl.gz"]
    assert len(found) == 3


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there, and there are no pipes")
@pytest.mark.parametrize("pattern", ["", "*.csv"])
def test_no_list_in_a_folder_leads_elsewhere_or_is_waited_for(tmp_path: Path, pattern: str) -> None:
    (folder := tmp_path / "lists").mkdir()
    (tmp_path / "secret").write_text("a token")
    (folder / "a.csv").symlink_to(tmp_path / "secret")
    if not pattern:
        with pytest.raises(InputError, match="is a link"):
            list(given_lists(str(folder)))
    (folder / "a.csv").unlink()
    os.mkfifo(folder / "a.csv")
    with pytest.raises(InputError, match="no regular file"):
        list(given_lists(str(folder / pattern)))
