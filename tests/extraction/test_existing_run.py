"""Whether a video is the one that a run was made from: by its size, its time, its content, and where it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.captioning.keyframes import manifest
from vip import store
from vip.config import ExtractSettings
from vip.errors import StoreError, UsageError
from vip.extraction.existing_run import SELECTED, WRITTEN, existing_run, is_finished, is_same_file, is_selected
from vip.records import Manifest, Origin
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


SETTINGS = ExtractSettings(keyframes=4)
ORIGIN = Origin(run="old.vip", created_utc="2026-01-01T00:00:00+00:00")


def write(folder: Path, **about: object) -> Manifest:
    """A run with its manifest alone, of a video that is gone."""
    made = manifest().model_copy(update={"settings": SETTINGS.model_dump(mode="json"), **about})
    folder.mkdir(exist_ok=True)
    store.write_json(folder / store.MANIFEST, made)
    return made


@pytest.mark.parametrize(
    ("seconds", "selected", "finished"),
    [({}, False, False), ({SELECTED: 1.0}, True, False), ({SELECTED: 0.0, WRITTEN: 0.0}, True, True), ({"extract": 1.0}, False, False)],
)
def test_how_far_a_run_is_stands_in_its_manifest(seconds: dict[str, float], selected: bool, finished: bool) -> None:
    made = manifest().model_copy(update={"seconds": seconds})
    assert (is_selected(made), is_finished(made)) == (selected, finished)
    assert not is_selected(None)
    assert not is_finished(None)


@pytest.mark.parametrize("names", [[], [store.ASKED]])
def test_an_empty_folder_holds_nothing_to_go_on_with(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).touch()
    assert existing_run(tmp_path, None, SETTINGS, overwrite=False) is None
    assert existing_run(tmp_path / "new", None, SETTINGS, overwrite=False) is None


def test_a_folder_of_something_else_is_taken_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(UsageError, match=r"is not empty and no run of vip\. Choose another folder with -o, or add --overwrite"):
        existing_run(tmp_path, None, SETTINGS, overwrite=False)
    assert existing_run(tmp_path, None, SETTINGS, overwrite=True) is None


def test_a_damaged_manifest_is_replaced_only_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / store.MANIFEST).write_text("{")
    with pytest.raises(StoreError):
        existing_run(tmp_path, None, SETTINGS, overwrite=False)
    assert existing_run(tmp_path, None, SETTINGS, overwrite=True) is None


@pytest.mark.parametrize("overwrite", [False, True])
def test_the_same_run_is_gone_on_with(tmp_path: Path, overwrite: bool) -> None:
    gone = FileSource(tmp_path / "v.mp4")
    made = write(tmp_path, seconds={SELECTED: 1.0}, video=manifest().video.model_copy(update={"path": gone.location}))
    assert existing_run(tmp_path, gone, SETTINGS, overwrite) == made
    assert existing_run(tmp_path, None, SETTINGS, overwrite) == made
    older = write(tmp_path, settings={"keyframes": 4}, selected_from=ORIGIN)  # of before there were the other settings
    assert existing_run(tmp_path, None, SETTINGS, overwrite, origin=ORIGIN) == older


def test_a_finished_run_that_cannot_be_read_back_is_made_again_where_it_may_be_replaced(tmp_path: Path) -> None:
    made = write(tmp_path, seconds={SELECTED: 1.0, WRITTEN: 1.0})
    assert existing_run(tmp_path, None, SETTINGS, overwrite=False) == made
    assert existing_run(tmp_path, None, SETTINGS, overwrite=True) is None


@pytest.mark.parametrize(
    ("about", "origin", "said"),
    [
        ({}, ORIGIN, r"candidates of its own"),
        ({"selected_from": ORIGIN}, None, r"candidates of old\.vip as of 2026-01-01T00:00:00\+00:00"),
        ({"selected_from": ORIGIN.model_copy(update={"run": "a\nb.vip"})}, ORIGIN, r"candidates of a b\.vip as of \S+"),
        (
            {"settings": {"keyframes": 5, "sampler": "uniform"}},
            None,
            r"keyframes 5, now 4; sampler uniform, now sync",
        ),
        ({"settings": {"keyframes": "4\n" * 400}}, None, r"keyframes (4 ){150}, now 4"),
    ],
)
def test_another_run_is_named_with_what_it_has_otherwise_and_replaced_only_where_that_is_asked_for(
    tmp_path: Path, about: dict[str, object], origin: Origin | None, said: str
) -> None:
    write(tmp_path, **about)
    with pytest.raises(UsageError, match=rf"holds another run \({said}\)\. Choose another folder with -o, or add --overwrite\."):
        existing_run(tmp_path, None, SETTINGS, overwrite=False, origin=origin)
    assert existing_run(tmp_path, None, SETTINGS, overwrite=True, origin=origin) is None


@pytest.mark.parametrize(
    ("known", "named", "said"),
    [("/a/v.mp4", "b/v.mp4", r"video /a/v\.mp4, now .*b/v\.mp4"), ("/a/v.mp4", "w.mp4", r"video v\.mp4, now w\.mp4")],
)
def test_another_video_is_named_by_its_place_where_its_name_is_the_same(tmp_path: Path, known: str, named: str, said: str) -> None:
    write(tmp_path, video=manifest().video.model_copy(update={"path": known}))
    with pytest.raises(UsageError, match=rf"holds another run \({said}\)"):
        existing_run(tmp_path, FileSource(tmp_path / "gone" / named), SETTINGS, overwrite=False)
