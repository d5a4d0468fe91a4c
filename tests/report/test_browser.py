"""The page in a real browser, where Chromium is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import cv2
import pytest

import vip
from vip.report.page import write_report

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.mp4"
OFFLINE = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")


def browse(page: Path, profile: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *OFFLINE, f"--user-data-dir={profile}"]
    return subprocess.run([*command, *options, page.as_uri()], capture_output=True, text=True, timeout=120, check=True)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "sample.vip"
    run = vip.caption(vip.extract(SAMPLE, keyframes=4, out=folder), engine="offline")
    return write_report(run)


def test_the_browser_has_nothing_to_complain_about(page: Path, tmp_path: Path) -> None:
    seen = browse(page, tmp_path, "--enable-logging=stderr", "--dump-dom")
    assert "Not determined in any of them: action, mood, setting." in seen.stdout
    assert seen.stdout.count("ot determined") < 1 + 4  # once for the page, and at most once a card
    complaints = [line for line in seen.stderr.splitlines() if "CONSOLE" in line or "Refused" in line]
    assert complaints == []


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_fits_the_window_and_shows_its_pictures(page: Path, tmp_path: Path, width: int) -> None:
    shot = tmp_path / "shot.png"
    browse(page, tmp_path / "profile", f"--window-size={width},1400", "--hide-scrollbars", f"--screenshot={shot}")
    picture = cv2.imread(str(shot))
    assert picture is not None
    assert picture.shape[:2] == (1400, width)
    assert len({tuple(pixel) for row in picture[::7] for pixel in row[::7].tolist()}) > 1000  # photographs, not a blank page
