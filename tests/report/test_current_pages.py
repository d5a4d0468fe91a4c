"""Pages are written again where their runs changed, and left alone where they did not."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.report.pages import read
from tests.report.runs import description, make_own, make_run
from vip import store
from vip.errors import EngineError, InputError, ReplyError, SomeFailedError
from vip.report.current_pages import SHOWN, current_pages
from vip.report.page import write_report
from vip.store import load_run

BEFORE_NS, SINCE_NS = 10**18, 10**18 + 10**9


def old_run(folder: Path) -> Path:
    """A run that was made long before its page, and all of it long ago."""
    write_report(make_own(make_run(folder, described=False)))
    for name in SHOWN:
        if (folder / name).exists():
            os.utime(folder / name, ns=(BEFORE_NS, BEFORE_NS))
    os.utime(folder / store.REPORT, ns=(SINCE_NS, SINCE_NS))
    return folder


def describe(folder: Path) -> None:
    store.write_rows(folder / store.DESCRIPTIONS, [description(frame.record) for frame in load_run(folder).keyframes])


def is_new(folder: Path) -> bool:
    return (folder / store.REPORT).stat().st_mtime_ns != SINCE_NS


def test_a_page_that_is_older_than_what_it_shows_is_written_again(tmp_path: Path) -> None:
    changed, same = old_run(tmp_path / "a"), old_run(tmp_path / "b")
    with current_pages([changed, same]):
        describe(changed)
    assert (is_new(changed), is_new(same)) == (True, False)
    assert "The caption of 3.0" in read(changed / store.REPORT).text


@pytest.mark.parametrize(
    "name",
    ["manifest.json", "keyframes.jsonl", "descriptions.jsonl", "descriptions.partial.jsonl", "words.jsonl", "text.jsonl", "failures.jsonl"],
)
def test_every_file_that_is_shown_counts(name: str, tmp_path: Path) -> None:
    folder = old_run(tmp_path / "a")
    describe(folder)
    for one in (store.JOURNAL, store.WORDS, store.TEXT, store.FAILURES):
        store.write_rows(folder / one, [])
    for path in folder.glob("*.json*"):
        os.utime(path, ns=(BEFORE_NS, BEFORE_NS))
    with current_pages([folder]):
        pass
    assert not is_new(folder)
    os.utime(folder / name)
    with current_pages([folder]):
        pass
    assert is_new(folder)


def test_a_page_that_is_missing_is_written(tmp_path: Path) -> None:
    folder = old_run(tmp_path / "a")
    (folder / store.REPORT).unlink()
    with current_pages([folder]):
        pass
    assert (folder / store.REPORT).is_file()


def test_the_page_of_a_run_of_another_machine_is_always_written(tmp_path: Path) -> None:
    folder = old_run(tmp_path / "a")
    (folder / store.REPORT).write_text("<script>alert(1)</script>")
    with current_pages([folder]):
        pass
    assert "alert" in (folder / store.REPORT).read_text(), "here the user put it there"
    manifest = load_run(folder).manifest
    assert manifest is not None
    store.write_json(folder / store.MANIFEST, manifest.model_copy(update={"signature": "f" * 64}))
    os.utime(folder / store.REPORT, ns=(4 * 10**18, 4 * 10**18))
    with current_pages([folder]):
        pass
    assert "alert" not in (folder / store.REPORT).read_text()


def _describe_and_raise(folders: list[Path], error: Exception) -> None:
    with current_pages(folders):
        describe(folders[0])
        raise error


@pytest.mark.parametrize("error", [EngineError("gone."), ReplyError("no JSON."), SomeFailedError("1 failed.")])
def test_where_an_engine_fails_the_pages_show_what_is_described_by_then(error: Exception, tmp_path: Path) -> None:
    changed, same, without = old_run(tmp_path / "a"), old_run(tmp_path / "b"), old_run(tmp_path / "c")
    (without / store.REPORT).unlink()
    with pytest.raises(type(error)):
        _describe_and_raise([changed, same, without], error)
    assert (is_new(changed), is_new(same), (without / store.REPORT).exists()) == (True, False, False)
    assert "The caption of 3.0" in read(changed / store.REPORT).text


def test_what_is_wrong_with_the_input_writes_no_page(tmp_path: Path) -> None:
    folder = old_run(tmp_path / "a")
    with pytest.raises(InputError):
        _describe_and_raise([folder], InputError("no."))
    assert not is_new(folder)


def test_a_folder_that_is_made_inside_has_its_page(tmp_path: Path) -> None:
    with current_pages([tmp_path / "a"]):
        make_run(tmp_path / "a", described=False)
    assert (tmp_path / "a" / store.REPORT).is_file()
