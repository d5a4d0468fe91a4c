"""Whether a video is the one that a run was made from: by its size, its time, its content, and where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.captioning.keyframes import manifest
from vip.extraction.existing_run import is_same_file
from vip.video import AddressSource, FileSource
from vip.video.source import FileState

ADDRESS, OTHER = "https://host/talk.mp4", "https://host/other/talk.mp4"


@pytest.mark.parametrize(
    ("known", "state", "is_same"),
    [
        ({}, (5, 7), True),
        ({}, (6, 7), False),
        ({}, (5, 8), False),
        ({"path": OTHER}, (5, 7), False),
        ({"path": OTHER}, None, False),
        ({"modified_ns": None}, (5, None), True),
        ({"modified_ns": None}, (5, 7), False),
        ({}, None, True),
    ],
)
def test_a_file_on_a_server_is_known_by_its_address_its_size_and_its_time(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, object], state: tuple[int, int | None] | None, is_same: bool
) -> None:
    monkeypatch.setattr(AddressSource, "state", lambda self: state and FileState(*state))
    video = manifest().video.model_copy(update={"path": ADDRESS, "sha256": None, "size_bytes": 5, "modified_ns": 7, **known})
    assert is_same_file(video, AddressSource(ADDRESS)) == is_same


@pytest.mark.parametrize(
    ("data", "modified_ns", "is_same"), [(b"12345", 7, True), (b"12345", 8, True), (b"54321", 8, False), (b"123456", 7, False)]
)
def test_a_file_here_is_known_by_its_content_wherever_it_lies(tmp_path: Path, data: bytes, modified_ns: int, is_same: bool) -> None:
    old, new = FileSource(tmp_path / "old.mp4"), FileSource(tmp_path / "new.mp4")
    old.path.write_bytes(b"12345")
    new.path.write_bytes(data)
    state = new.state()
    assert state
    changed_ns = (state.modified_ns or 0) + modified_ns - 7
    video = manifest().video.model_copy(update={"path": old.location, "sha256": old.sha256(), "size_bytes": 5, "modified_ns": changed_ns})
    assert is_same_file(video, new) == is_same


@pytest.mark.parametrize(("name", "is_same"), [("gone.mp4", True), ("other.mp4", False)])
def test_a_file_that_is_gone_is_known_by_its_place(tmp_path: Path, name: str, is_same: bool) -> None:
    video = manifest().video.model_copy(update={"path": str(tmp_path / "gone.mp4")})
    assert is_same_file(video, FileSource(tmp_path / name)) == is_same
