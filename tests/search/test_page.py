"""The page of a search: a file of its own in which nothing of others is markup."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.search.asked import run_with_words
from tests.search.test_find import describe
from vip import store
from vip.errors import UsageError
from vip.search.find import find_moments
from vip.search.page import page, write_page

HOSTILE = "<script>alert(1)</script> milk </mark><img src=x onerror=alert(2)> \x02\x03"


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    run_with_words(tmp_path / "runs" / "a.vip", 4, [(1.0, 2.0, "Milk is here."), (2.9, 3.1, HOSTILE)])
    return tmp_path / "runs"


def test_each_moment_has_its_picture_and_its_words_marked(runs: Path, tmp_path: Path) -> None:
    found = find_moments("milk", [runs])
    write_page(found, tmp_path / "milk.html")
    text = (tmp_path / "milk.html").read_text()
    assert text.count("data:image/jpeg;base64,") == len(found.moments)
    assert "<mark>Milk</mark>" in text
    assert "4 keyframes" in text
    assert "Content-Security-Policy" in text


def test_all_texts_with_words_of_the_query_are_named_and_the_best_is_shown(tmp_path: Path) -> None:
    run = run_with_words(tmp_path / "b.vip", 1, [(0.0, 0.5, "Milk is here.")])
    describe(run, "Some milk.", setting="a dairy with cold milk")
    found = find_moments("cold milk", [run])
    (words,) = [moment.words for moment in found.moments]
    assert words is not None
    assert (words.fields, words.plain) == (("setting", "caption", "words"), "a dairy with cold milk")
    assert '<p class="by">setting, caption, words</p>' in page(found, tmp_path)


def test_text_of_others_is_text(runs: Path, tmp_path: Path) -> None:
    text = page(find_moments("milk alert <b>", [runs]), tmp_path)
    assert "<script>alert" not in text
    assert "<img src=x" not in text
    assert "&lt;script&gt;" in text
    assert "\x02" not in text
    assert "<b>" not in text.partition("</h1>")[0]


def test_a_picture_that_is_gone_is_said(runs: Path, tmp_path: Path) -> None:
    found = find_moments("here", [runs])
    (Path(found.moments[0].source) / found.moments[0].picture).unlink()
    assert "picture missing" in page(found, tmp_path)
    assert "nothing fits" in page(found.model_copy(update={"moments": ()}), tmp_path)


def test_a_video_beside_the_runs_can_be_watched_from_there(runs: Path, tmp_path: Path) -> None:
    manifest = store.load_run(runs / "a.vip").manifest
    assert manifest is not None
    (runs / "v.mp4").write_bytes(b"x" * manifest.video.size_bytes)
    found = find_moments("here", [runs])
    time_s = found.moments[0].time_s
    assert f'href="runs/a.vip/../v.mp4#t={time_s:g}"' in page(found, tmp_path)
    (tmp_path / "pages").mkdir()
    assert f'href="../runs/a.vip/../v.mp4#t={time_s:g}"' in page(found, tmp_path / "pages")


def test_a_file_of_somebody_is_not_written_over(runs: Path, tmp_path: Path) -> None:
    found = find_moments("milk", [runs])
    (tmp_path / "thesis.html").write_text("<p>mine</p>")
    with pytest.raises(UsageError, match="not a page that vip wrote"):
        write_page(found, tmp_path / "thesis.html")
    assert (tmp_path / "thesis.html").read_text() == "<p>mine</p>"
    write_page(found, tmp_path / "own.html")
    write_page(found, tmp_path / "own.html")
