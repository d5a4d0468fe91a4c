from __future__ import annotations

import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from tests.report.runs import make_run
from vip import store
from vip.report import pictures
from vip.report.pictures import open_thumbnails, shrink_all


def decoded(data: bytes) -> np.ndarray:
    image = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)
    assert image is not None
    return image


def test_pictures_come_in_the_order_of_the_keyframes_and_damaged_ones_are_none(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    run.keyframes[0].path.write_bytes(b"no picture")
    found = shrink_all(run.keyframes)
    assert found[0] is None
    for frame, shown in zip(run.keyframes[1:], found[1:], strict=True):
        assert shown is not None
        assert np.abs(decoded(shown.card.data).astype(int) - frame.image).mean() < 25  # noise through JPEG; other noise differs by 85


def test_a_thumbnail_that_is_large_or_no_jpeg_is_not_taken(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / store.THUMBNAILS, "w") as archive:
        archive.writestr("000000.jpg", b"\xff\xd8\xff" + bytes(10))
        archive.writestr("000001.jpg", b"\xff\xd8\xff" + bytes(pictures.THUMBNAIL_BYTES))
        archive.writestr("000002.jpg", b"<svg onload='x'>")
    with open_thumbnails(tmp_path) as thumbnails:
        assert [thumbnails.read(i) is not None for i in range(4)] == [True, False, False, False]


def test_thumbnails_that_are_packed_are_not_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / store.THUMBNAILS, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("000000.jpg", b"\xff\xd8\xff" + bytes(10))
    with open_thumbnails(tmp_path) as thumbnails:
        assert thumbnails.read(0) is None


def test_a_thumbnail_that_does_not_match_its_checksum_is_not_taken(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / store.THUMBNAILS, "w") as archive:
        archive.writestr("000000.jpg", b"\xff\xd8\xff" + b"a" * 50)
    path = tmp_path / store.THUMBNAILS
    path.write_bytes(path.read_bytes().replace(b"a" * 50, b"b" * 50))
    with open_thumbnails(tmp_path) as thumbnails:
        assert thumbnails.read(0) is None


def test_whatever_byte_of_the_thumbnails_is_damaged_they_are_shown_or_missing(tmp_path: Path) -> None:
    path = tmp_path / store.THUMBNAILS
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("000000.jpg", b"\xff\xd8\xff" + bytes(10))
        archive.writestr("ü.jpg", b"")
    whole, missing = path.read_bytes(), 0
    for place, byte in ((place, byte) for place in range(len(whole)) for byte in (b"\0", b"\xff")):
        path.write_bytes(whole[:place] + byte + whole[place + 1 :])
        with open_thumbnails(tmp_path) as thumbnails:
            missing += thumbnails.read(0) is None
    assert missing > 100


def test_all_thumbnails_together_have_a_share_of_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "THUMBNAILS_BYTES", 250)
    with zipfile.ZipFile(tmp_path / store.THUMBNAILS, "w") as archive:
        for i in range(4):
            archive.writestr(f"{i:06d}.jpg", b"\xff\xd8\xff" + bytes(97))
    with open_thumbnails(tmp_path) as thumbnails:
        assert [thumbnails.read(i) is not None for i in range(4)] == [True, True, False, False]
