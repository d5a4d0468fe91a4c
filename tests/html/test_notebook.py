"""What a notebook shows of a run and of a keyframe."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.report.pages import Page
from tests.report.runs import make_pictures, make_run, picture
from tests.report.test_page import HOSTILE
from vip import store
from vip.html import notebook
from vip.store import load_run


def shown(thing: store.Run | store.KeyframePicture) -> Page:
    html = thing._repr_html_()
    assert html is not None
    return Page(html)


def test_a_keyframe_shows_its_picture_time_and_caption(tmp_path: Path) -> None:
    page = shown(make_run(tmp_path).keyframes[1])
    (image,) = page.of("img")
    assert str(image["src"]).startswith("data:image/jpeg;base64,")
    assert "0:03.0" in page.text
    assert "The caption of 3.0" in page.text


def test_a_keyframe_that_is_not_described_or_comes_from_no_video_shows_what_there_is(tmp_path: Path) -> None:
    assert "0:00.0" in shown(make_run(tmp_path / "run", described=False).keyframes[0]).text
    assert "holiday 0.png" in shown(make_pictures(tmp_path / "pictures").keyframes[0]).text


def test_a_run_shows_its_contact_sheet(tmp_path: Path) -> None:
    page = shown(make_run(tmp_path / "a.vip"))
    assert len(page.of("img")) == 3
    assert all(text in page.text for text in ("a.vip", "3 keyframes, 3 descriptions.", "The caption of 7.0"))
    assert "are shown" not in page.text


def test_of_many_keyframes_24_are_shown_and_counted(tmp_path: Path) -> None:
    page = shown(make_run(tmp_path, rules=("kept",) * 30, described=False))
    assert len(page.of("img")) == 24
    assert "24 of 30 are shown, evenly chosen." in page.text
    assert "0:29.0" in page.text


def test_pictures_are_240_px_and_of_few_bytes(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    store.write_picture(run.keyframes[0].path, picture(0, width_px=1280, height_px=720))  # noise: the most bytes a picture can have
    (image,) = shown(run.keyframes[0]).of("img")
    assert 96 <= int(str(image["width"])) <= 240
    assert len(str(image["src"])) < notebook.MAX_BYTES * 4 / 3 + 100


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_changes_no_element(text: str, tmp_path: Path) -> None:
    plain, hostile = (shown(make_run(tmp_path / name, text=more)) for name, more in (("a", " x"), ("b", f" x{text}")))
    assert hostile.skeleton == plain.skeleton
    assert not hostile.of("script")


def test_a_missing_picture_is_said_and_a_damaged_run_shows_its_name_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.keyframes[0].path.unlink()
    assert "picture missing" in shown(run).text
    (tmp_path / store.DESCRIPTIONS).write_text("{broken\n")
    broken = load_run(tmp_path)
    assert broken._repr_html_() is None
    assert broken.keyframes[0]._repr_html_() is None
    assert repr(broken).startswith("Run(")


@pytest.mark.slow
def test_the_store_loads_no_template_before_it_shows_one() -> None:
    code = "import sys, vip.store; print([name for name in sys.modules if name.startswith(('jinja2', 'vip.html', 'vip.report'))])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
