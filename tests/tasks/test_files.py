"""vip.tasks.files: nothing is replaced unasked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from vip.errors import UsageError
from vip.tasks.files import check_new


@pytest.mark.parametrize("kind", ["file", "fifo", "link"])
def test_whatever_stands_there_is_replaced_only_when_asked(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    (tmp_path / "other").write_text("x")
    {"file": lambda: path.write_text("x"), "fifo": lambda: os.mkfifo(path), "link": lambda: path.symlink_to("other")}[kind]()
    with pytest.raises(UsageError, match=r"exists already\. Add --overwrite"):
        check_new(path, overwrite=False)
    check_new(path, overwrite=True)
    check_new(tmp_path / "new" / "p.jsonl", overwrite=False)
    assert (tmp_path / "new").is_dir()
