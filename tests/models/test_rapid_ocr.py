"""The reader of text on pictures with known words, with the real library."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rapidocr")
pytest.importorskip("onnxruntime")

from PIL import Image as Pictures
from PIL import ImageDraw, ImageFont

from vip.models.rapid_ocr import RapidOcrReader
from vip.pipeline import run
from vip.records import Image
from vip.registry import has_text_reader, text_reader
from vip.telemetry import SWITCHES
from vip.words.picture_text import in_reading_order

pytestmark = [pytest.mark.slow, pytest.mark.extra("rapidocr")]


def slide(*texts: tuple[int, int, str], size: tuple[int, int] = (960, 540)) -> Image:
    picture = Pictures.new("RGB", size, "white")
    for left, top, text in texts:
        ImageDraw.Draw(picture).text((left, top), text, fill="black", font=ImageFont.load_default(40))
    return np.asarray(picture)


@pytest.fixture(scope="module")
def reader() -> RapidOcrReader:
    return RapidOcrReader()


def test_words_are_read_with_boxes_where_they_stand(reader: RapidOcrReader, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        lines = in_reading_order(reader.read(slide((80, 60, "Exit 42 platform"), (80, 400, "Second line"), (600, 400, "beside it"))))
    assert [one.text for one in lines] == ["Exit 42 platform", "Second line", "beside it"]
    left, top, right, bottom = lines[0].box_xyxy
    assert (left, top) == pytest.approx((80 / 960, 60 / 540), abs=0.03)
    assert right < 0.6
    assert bottom < 0.25
    assert all(one.score > 0.8 for one in lines)
    assert reader.name.startswith("rapidocr 3")


def test_the_library_reports_nothing_to_its_makers(tmp_path: Path) -> None:
    """It would keep an id of this machine there, and send events with it."""
    read = "import numpy; from vip.models.rapid_ocr import RapidOcrReader; RapidOcrReader().read(numpy.zeros((64, 64, 3), numpy.uint8))"
    kept = {name: value for name, value in os.environ.items() if name not in SWITCHES and not name.startswith("XDG_")}
    subprocess.run([sys.executable, "-c", read], env={**kept, "HOME": str(tmp_path)}, check=True)
    assert not list(tmp_path.rglob("*deviceid*"))


def test_a_strip_is_read_with_its_boxes_in_it(reader: RapidOcrReader) -> None:
    (line,) = reader.read(slide((80, 10, "news of the hour"), size=(1900, 70)))
    assert line.text == "news of the hour"
    left, top, right, bottom = line.box_xyxy
    assert left == pytest.approx(80 / 1900, abs=0.02)
    assert right < 0.3
    assert top < 0.4
    assert 0.6 < bottom <= 1


def test_red_text_is_read_in_the_right_colours(reader: RapidOcrReader) -> None:
    picture = np.full((200, 600, 3), (0, 0, 255), np.uint8)
    drawn = Pictures.fromarray(picture)
    ImageDraw.Draw(drawn).text((40, 60), "RED ON BLUE", fill=(255, 0, 0), font=ImageFont.load_default(48))
    assert [one.text for one in reader.read(np.asarray(drawn))] == ["RED ON BLUE"]


@pytest.mark.parametrize("size", [(1, 1), (7, 300), (3000, 2), (640, 360)])
def test_a_picture_without_text_has_none(reader: RapidOcrReader, size: tuple[int, int]) -> None:
    assert reader.read(np.zeros((size[1], size[0], 3), np.uint8)) == []


@pytest.mark.parametrize(
    ("text", "least"),
    [("Exit 42", 0.8), ("OK", 0.8), ("9", 0.95), ("O.", 0.95), ("– T", 0.95)],
)
def test_a_sign_alone_must_be_surer_than_a_word(text: str, least: float) -> None:
    """Wheels are read as O, windows as T."""
    box = np.array([(8, 8), (40, 8), (40, 20), (8, 20)], np.float32)
    made = RapidOcrReader()

    def texts(score: float, text: str = text) -> list[str]:
        made.__dict__["_engine"] = lambda picture: SimpleNamespace(txts=[text], scores=[score], boxes=[box])
        return [line.text for line in made.read(np.zeros((64, 64, 3), np.uint8))]

    assert [texts(least - 0.01), texts(least)] == [[], [text]]
    assert texts(1.0, "– . !") == []


def test_the_library_says_nothing_itself(capfd: pytest.CaptureFixture[str]) -> None:
    RapidOcrReader().read(slide((80, 60, "Exit")))
    assert capfd.readouterr() == ("", "")


def test_slides_are_read_in_a_run(tmp_path: Path) -> None:
    for number, text in enumerate(("Pump maintenance", "Check the valve 24")):
        Pictures.fromarray(slide((80, 200, text))).save(tmp_path / f"{number}.png")
    done = run([tmp_path / "0.png", tmp_path / "1.png"], out=tmp_path / "s.vip", keyframes=2, engine="offline", words="text")
    assert [[line.text for line in row.lines] for row in done.texts] == [["Pump maintenance"], ["Check the valve 24"]]
    assert "The text in the picture reads: “Check the valve 24”" in done.descriptions[1].dense_caption


def test_the_registry_loads_it_once() -> None:
    assert has_text_reader()
    assert text_reader() is text_reader()
