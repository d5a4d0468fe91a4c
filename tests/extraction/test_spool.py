"""What waits on disk comes back; where there is no room it waits in memory."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.extraction.spool import Spool


@given(st.lists(st.binary(max_size=2_000), max_size=20))
def test_everything_comes_back_in_any_order(parts: list[bytes]) -> None:
    spool = Spool()
    put = [spool.put(part) for part in parts]
    assert [one.read() for one in reversed(put)] == parts[::-1]


def test_what_is_put_after_a_read_takes_the_place_of_nothing() -> None:
    spool = Spool()
    first, second = spool.put(b"first"), spool.put(b"second")
    assert first.read() == b"first"
    third = spool.put(b"third")
    assert [one.read() for one in (first, second, third)] == [b"first", b"second", b"third"]


def test_without_a_folder_for_temporary_files_it_waits_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    assert Spool().put(b"a picture").read() == b"a picture"


def test_what_does_not_fit_on_the_disk_as_a_whole_waits_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(BytesIO):
        def write(self, data: Any) -> int:
            return super().write(data[:3])

    monkeypatch.setattr("tempfile.TemporaryFile", lambda **_: Full())
    assert Spool().put(b"a picture").read() == b"a picture"
