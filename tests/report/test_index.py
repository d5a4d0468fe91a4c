"""The index of a folder of runs: each is there, linked, and harmless, however many there are and whatever they hold."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.report.pages import Page, read
from tests.report.runs import make_own, make_pictures, make_run
from vip import store
from vip.errors import InputError, StoreError, UsageError
from vip.records import Failure
from vip.report import index
from vip.report.index import PICTURES_BYTES, picture_share, run_folders_in, write_index
from vip.report.page import write_report
from vip.store import load_run


def rows_of(page: Page) -> list[dict[str, str | None]]:
    return [attributes for attributes in page.of("li") if "data-keyframes" in attributes]


def titles_of(path: Path) -> list[str]:
    """The words of each run in the list, in its order."""
    return [text for path_, text in read(path).texts if path_[-2:] == ("h2", "bdi") or path_[-3:] == ("h2", "a", "bdi")]


def many_runs(folder: Path, count: int) -> None:
    first = make_run(folder / "0000.vip", rules=("kept",) * 6)
    write_report(first)
    for number in range(1, count):
        shutil.copytree(first.folder, folder / f"{number:04d}.vip")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three runs, one not described, one with failures; the middle one has no page yet."""
    write_report(make_own(make_run(tmp_path / "runs" / "b.vip", failed=1)))
    make_own(make_run(tmp_path / "runs" / "c d.vip", described=False))
    write_report(make_own(make_run(tmp_path / "runs" / "a.vip", rules=("kept",) * 5)))
    (tmp_path / "runs" / "notes").mkdir()
    return tmp_path / "runs"


def test_each_run_is_listed_by_name_with_what_it_came_to(runs: Path) -> None:
    path = write_index(runs)
    assert path == runs / "index.html"
    page = read(path)
    assert [(row["data-keyframes"], row["data-failures"]) for row in rows_of(page)] == [("5", "0"), ("3", "1"), ("3", "0")]
    for expected in ("a.vip/ · 0:04.0 · 5 keyframes · described by openai:gpt-5-mini", "2 described by openai:gpt-5-mini", "not described"):
        assert expected in page.text
    assert "1 item failed" in page.text
    assert "0:24" in page.text  # of all together
    assert "7 of 11 by openai:gpt-5-mini" in page.text


def test_links_lead_to_reports_that_exist(runs: Path) -> None:
    page = read(write_index(runs))
    links = [str(link["href"]) for link in page.of("a") if link.get("tabindex") is None]
    assert links == ["a.vip/report.html", "b.vip/report.html"]
    assert all((runs / unquote(link)).is_file() for link in links)
    assert "1 run has no page yet. vip report DIR writes all of them." in page.text


def test_a_page_of_a_run_of_another_machine_has_a_link_only_where_vip_has_just_written_it(runs: Path) -> None:
    manifest = load_run(runs / "a.vip").manifest
    assert manifest is not None
    store.write_json(runs / "a.vip" / store.MANIFEST, manifest.model_copy(update={"signature": None}))

    def links(**how: bool) -> list[str]:
        return [str(link["href"]) for link in read(write_index(runs, **how)).of("a") if link.get("tabindex") is None]

    assert links() == ["b.vip/report.html"]
    assert links(pages_are_new=True) == ["a.vip/report.html", "b.vip/report.html"]


def test_each_run_shows_four_small_pictures(runs: Path) -> None:
    pictures = read(write_index(runs)).of("img")
    assert len(pictures) == 4 + 3 + 3
    assert all(int(str(picture["width"])) <= 160 for picture in pictures)


def test_runs_without_thumbnails_show_their_keyframes_shrunk(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "a.vip", width_px=640)
    (run.folder / store.THUMBNAILS).unlink()
    pictures = read(write_index(tmp_path / "runs")).of("img")
    assert [(picture["width"], picture["height"]) for picture in pictures] == [("160", "12")] * 3
    for frame in run.keyframes:
        frame.path.unlink()
    assert read(write_index(tmp_path / "runs")).of("img") == []


def test_a_page_of_the_index_loads_nothing_and_allows_only_its_own_script(runs: Path) -> None:
    page = read(write_index(runs))
    for tag, attributes in page.elements:
        assert tag not in {"iframe", "object", "embed", "base", "video", "audio"}
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert str(attributes.get("src") or "data:").startswith("data:")
    assert len(page.of("script")) == len(page.of("style")) == 1
    assert page.of("dialog") == []


def test_hostile_names_and_texts_change_no_element(tmp_path: Path) -> None:
    skeletons = []
    for number, text in enumerate(("harmless", '"><img src=x onerror=alert(1)>', "javascript:alert(1)", "#?%41&amp;", "\u202egnp")):
        folder = tmp_path / str(number)
        name = f"{text.replace('/', '')}.vip"
        write_report(make_own(make_run(folder / name, text=f" {text}", failed=1)))
        store.write_rows(folder / store.FAILURES, [Failure(item=text, kind="InputError", message=text, exit_code=3)])
        write_index(folder)
        write_report(make_run(folder / f"b{name}", text=f" {text}"))
        (folder / f"b{name}" / store.MANIFEST).write_text("{")
        page = read(write_index(folder))
        skeletons.append(page.skeleton)
        (link,) = {str(link["href"]) for link in page.of("a")}
        assert ":" not in link
        assert (folder / unquote(link)).is_file()
    assert all(skeleton == skeletons[0] for skeleton in skeletons)


# ---------------------------------------------------------------- what is damaged or missing


@pytest.mark.parametrize("damage", [store.MANIFEST, store.KEYFRAMES, store.DESCRIPTIONS])
def test_a_damaged_run_is_named_and_the_others_are_shown(damage: str, runs: Path) -> None:
    (runs / "a.vip" / damage).write_text("{broken\n")
    path = write_index(runs)
    assert len(rows_of(read(path))) == 2
    text = read(path).text
    assert "1 run cannot be shown" in text
    assert damage in text
    assert "damaged" in text


def test_a_run_that_is_not_finished_is_named(runs: Path) -> None:
    (runs / "a.vip" / store.KEYFRAMES).unlink()
    assert "holds an unfinished extraction" in read(write_index(runs)).text


def test_runs_whose_page_could_not_be_written_are_named(runs: Path) -> None:
    page = read(write_index(runs, failed={runs / "a.vip": "a.vip is torn."}))
    assert "a.vip is torn." in page.text
    assert len(rows_of(page)) == 2


def test_videos_that_failed_are_named(runs: Path) -> None:
    store.write_rows(runs / store.FAILURES, [Failure(item="x.mp4", kind="InputError", message="x.mp4 is no video.", exit_code=3)] * 300)
    text = read(write_index(runs)).text
    assert "300 videos failed" in text
    assert text.count("x.mp4 is no video.") == 200
    assert "and 100 more in failures.jsonl." in text
    (runs / store.FAILURES).write_text("{broken\n")
    assert "failures.jsonl, line 1: damaged" in read(write_index(runs)).text


def test_a_page_that_vip_did_not_write_is_not_replaced(runs: Path) -> None:
    path = runs / "index.html"
    path.write_text("<html>mine</html>")
    with pytest.raises(UsageError, match=r"index\.html was not written by vip\. Rename it"):
        write_index(runs)
    assert path.read_text() == "<html>mine</html>"
    path.unlink()
    before = write_index(runs).read_bytes()
    assert write_index(runs).read_bytes() == before


@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_what_lies_in_its_place_is_neither_waited_for_nor_followed(kind: str, runs: Path, tmp_path: Path) -> None:
    if kind == "fifo":
        os.mkfifo(runs / "index.html")
    else:
        (tmp_path / "mine.html").write_text("mine")
        (runs / "index.html").symlink_to(tmp_path / "mine.html")
    with pytest.raises(StoreError, match=r"index\.html cannot be read: it is"):
        write_index(runs)


def test_an_index_that_cannot_be_written_says_so(runs: Path) -> None:
    (runs / "index.html").mkdir()
    with pytest.raises(StoreError, match=r"index\.html cannot be read"):
        write_index(runs)


def test_a_pipe_in_the_place_of_the_index_holds_nothing_up(runs: Path) -> None:
    os.mkfifo(runs / "index.html")
    with pytest.raises(StoreError, match=r"index\.html cannot be read: it is no regular file"):
        write_index(runs)


def test_only_folders_of_runs_have_an_index(runs: Path, tmp_path: Path) -> None:
    assert run_folders_in(runs) == [runs / "a.vip", runs / "b.vip", runs / "c d.vip"]
    assert run_folders_in(runs / "a.vip") == run_folders_in(runs / "a.vip" / "keyframes") == []
    assert run_folders_in(tmp_path / "nothing") == []
    pictures = make_pictures(tmp_path / "pictures").folder
    make_run(pictures / "a.vip")
    assert run_folders_in(pictures) == []
    with pytest.raises(InputError, match="holds no run folders"):
        write_index(pictures)


# ---------------------------------------------------------------- size


@pytest.mark.parametrize("runs", [1, 2, 10, 100, 1000, 5000])
def test_the_pictures_of_all_runs_together_stay_within_their_bytes(runs: int) -> None:
    share = picture_share(runs)
    assert 1 <= share.count <= 4
    assert 1200 <= share.max_bytes <= 16 * 1024
    assert runs * share.count * share.max_bytes <= PICTURES_BYTES


def test_the_more_runs_the_fewer_pictures_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_runs(tmp_path, 12)
    assert len(read(write_index(tmp_path)).of("img")) == 12 * 4
    for share, pictures in ((3 * 2048, 3), (2048, 1), (1500, 1), (100, 0)):
        monkeypatch.setattr(index, "PICTURES_BYTES", 12 * share)
        page = read(write_index(tmp_path))
        assert len(page.of("img")) == 12 * pictures
        assert page.of("ul", class_=f"runs with-{pictures}")
        assert sum(len(str(picture["src"])) * 3 / 4 for picture in page.of("img")) < 2 * 12 * share


def test_runs_without_room_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many_runs(tmp_path, 7)
    monkeypatch.setattr(index, "MAX_RUNS", 5)
    path = write_index(tmp_path)
    assert len(rows_of(read(path))) == 5
    assert "The first 5 runs by name; 2 more are in the folder." in read(path).text
    assert titles_of(path) == ["holiday.mp4"] * 5
