"""The page in a real browser, where Chromium is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import cv2
import pytest

import vip
from tests.report.runs import make_own, make_run
from tests.review.browser import browser
from vip.report.index import write_index
from vip.report.page import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.mp4"
OFFLINE = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *OFFLINE, f"--user-data-dir={profile}"]
    return subprocess.run([*command, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)


def scripted(page: Path, script: str) -> Path:
    """A copy beside the page with this script behind its own; the policy that would refuse it is taken out."""
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page.read_text(encoding="utf-8"))
    copy = page.with_name(f"scripted-{page.name}")
    copy.write_text(html.replace("</body>", f"<script>{script}</script></body>"), encoding="utf-8")
    return copy


def widths(page: Path, profile: Path, width: int) -> tuple[int, int]:
    """Of the content and of the window, in CSS pixels. A screenshot is as wide as the window whatever the page does."""
    script = "const root = document.documentElement; root.dataset.widths = `${root.scrollWidth} ${innerWidth}`;"
    dom = browse(scripted(page, script), profile, f"--window-size={width},1400", "--hide-scrollbars", "--dump-dom").stdout
    (found,) = re.findall(r'data-widths="(\d+) (\d+)"', dom)
    return int(found[0]), int(found[1])


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "sample.vip"
    run = vip.caption(vip.extract(SAMPLE, keyframes=4, out=folder), engine="offline")
    return write_report(run)


@pytest.mark.slow
def test_the_browser_has_nothing_to_complain_about(page: Path, tmp_path: Path) -> None:
    seen = browse(page, tmp_path, "--enable-logging=stderr", "--dump-dom")
    assert "Not determined in any of them: action, mood, setting." in seen.stdout
    assert seen.stdout.count("ot determined") == 1
    complaints = [line for line in seen.stderr.splitlines() if "CONSOLE" in line or "Refused" in line]
    assert complaints == []


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_fits_the_window_and_shows_its_pictures(page: Path, tmp_path: Path, width: int) -> None:
    assert widths(page, tmp_path / "profile", width) == (width, width)
    shot = tmp_path / "shot.png"
    browse(page, tmp_path / "profile", f"--window-size={width},1400", "--hide-scrollbars", f"--screenshot={shot}")
    picture = cv2.imread(str(shot))
    assert picture is not None
    assert len({tuple(pixel) for row in picture[::7] for pixel in row[::7].tolist()}) > 1000  # photographs, not a blank page


@pytest.mark.slow
def test_a_keyframe_fills_the_window_and_the_arrows_go_round(tmp_path: Path) -> None:
    codes = ("0:00.0", "0:03.0", "0:07.0")
    page = write_report(make_run(tmp_path / "run"))
    with browser(tmp_path / "profile") as tab:

        def shows(number: int) -> None:
            shown = "document.querySelector('#lightbox[open]') && document.querySelector('#lightbox .title').textContent"
            tab.wait(f"{shown} === '{codes[number - 1]} · {number} of 3'")
            pictures = "[...document.querySelectorAll('#lightbox .stage img')].map(picture => picture.alt)"
            assert tab.run(pictures) == [f"Keyframe {number}, {codes[number - 1]}"]

        def is_closed(number: int) -> None:
            """And the picture that was seen last has the focus, for who goes on by keys."""
            tab.wait("!document.querySelector('#lightbox').open && !document.querySelector('#lightbox .stage img')")
            assert tab.run("document.activeElement.closest('.card')?.id") == f"k{number}"

        tab.open(page.as_uri())
        assert tab.run("document.querySelectorAll('.card .picture[role=button][tabindex=\"0\"]').length") == 3
        tab.run("document.querySelectorAll('.card .picture')[1].click()")
        shows(2)
        for key, number in (("ArrowRight", 3), ("ArrowRight", 1), ("ArrowLeft", 3), ("ArrowLeft", 2), ("x", 2)):
            tab.press(key)
            shows(number)
        for move, number in (("previous", 1), ("previous", 3), ("next", 1)):
            tab.run(f"document.querySelector('#lightbox [data-do={move}]').click()")
            shows(number)
        tab.press("Escape")
        is_closed(1)
        for key, number in (("Enter", 1), (" ", 3)):
            tab.run(f"document.querySelectorAll('.card .picture')[{number - 1}].focus()")
            tab.press(key)
            shows(number)
            tab.run("document.querySelector('#lightbox [data-do=close]').click()")
            is_closed(number)
        tab.press("a")
        assert not tab.run("document.querySelector('#lightbox').open")
        assert tab.complaints == []


# ---------------------------------------------------------------- the index of runs


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """Of three runs, the one in the middle of the alphabet the longest."""
    for name, length in (("apple", 3), ("banana", 9), ("cherry", 6)):
        write_report(make_own(make_run(tmp_path / "runs" / f"{name}.vip", rules=("kept",) * length)))
    return write_index(tmp_path / "runs")


def names_in(dom: str) -> list[str]:
    """The run folders in the list that are not hidden, in their order."""
    found = re.findall(r'<li data-length([^>]*)>.*?href="([a-z]+)\.vip/report\.html"', dom, re.DOTALL)
    return [name for attributes, name in found if "hidden" not in attributes]


@pytest.mark.slow
def test_the_browser_takes_the_index_as_it_is(index: Path, tmp_path: Path) -> None:
    seen = browse(index, tmp_path / "profile", "--enable-logging=stderr", "--dump-dom")
    assert names_in(seen.stdout) == ["apple", "banana", "cherry"]
    assert '<form class="tools">' in seen.stdout  # shown by its script
    assert [line for line in seen.stderr.splitlines() if "CONSOLE" in line or "Refused" in line] == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "expected", "count"),
    [
        ('type("filter", "input", "BANANA");', ["banana"], "1 of 3"),
        ('type("filter", "input", "openai cherry");', ["cherry"], "1 of 3"),
        ('type("order", "change", "length");', ["banana", "cherry", "apple"], ""),
        ('type("order", "change", "length"); type("order", "change", "name");', ["apple", "banana", "cherry"], ""),
    ],
)
def test_the_index_can_be_filtered_and_sorted(typed: str, expected: list[str], count: str, index: Path, tmp_path: Path) -> None:
    script = "const type = (id, name, value) => { const at = document.getElementById(id); at.value = value;"
    script += " at.dispatchEvent(new Event(name)); };"
    dom = browse(scripted(index, f"{script} {typed}"), tmp_path / "profile", "--dump-dom").stdout
    assert names_in(dom) == expected
    assert f'<output id="count">{count}</output>' in dom


@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 500])
def test_the_index_fits_the_window(index: Path, tmp_path: Path, width: int) -> None:
    assert widths(index, tmp_path / "profile", width) == (width, width)
    shot = tmp_path / "shot.png"
    browse(index, tmp_path / "profile", f"--window-size={width},800", "--hide-scrollbars", f"--screenshot={shot}")
    picture = cv2.imread(str(shot))
    assert picture is not None
    assert len({tuple(pixel) for row in picture[::7] for pixel in row[::7].tolist()}) > 1000
