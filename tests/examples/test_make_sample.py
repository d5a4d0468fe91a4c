"""The committed sample video, and one made anew by the script, hold what the script's table says, where it says so."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import av
import cv2
import numpy as np
import numpy.typing as npt
import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
MAX_BYTES = 1_000_000


def _load_script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_sample", EXAMPLES / "make_sample.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up here
    spec.loader.exec_module(module)
    return module


make_sample: Any = _load_script()
Effect, SHOTS = make_sample.Effect, make_sample.SHOTS


class Film:
    """A decoded video: grey frames, each (H, W) uint8, and the facts of its header."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.grey: list[npt.NDArray[np.uint8]] = []
        self.key_frames: list[int] = []
        self.colours: set[tuple[int, int]] = set()
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            self.has_audio = bool(container.streams.audio)
            self.duration_s = float(stream.duration or 0) * float(stream.time_base or 0)
            self.rate = float(stream.average_rate or 0)
            self.codec, self.pixels = stream.codec_context.name, stream.codec_context.pix_fmt
            for index, frame in enumerate(container.decode(stream)):
                self.grey.append(np.asarray(frame.to_ndarray(format="gray"), dtype=np.uint8))
                self.colours.add((frame.colorspace, frame.color_range))
                if frame.key_frame:
                    self.key_frames.append(index)

    def brightness(self, first: int, end: int) -> npt.NDArray[np.float64]:
        """Mean grey level of each frame from `first` to before `end`."""
        return np.array([image.mean() for image in self.grey[first:end]])

    def change(self, first: int, second: int) -> float:
        """Mean absolute difference of two frames in grey levels."""
        return float(cv2.absdiff(self.grey[first], self.grey[second]).mean())

    def sharpness(self, index: int) -> float:
        """Variance of the Laplacian."""
        return float(cv2.Laplacian(self.grey[index], cv2.CV_64F).var())


def _first_frames() -> list[int]:
    """Index of the first frame of every shot, and the number of frames at the end."""
    return [0, *np.cumsum([shot.frames for shot in SHOTS]).tolist()]


def _spans(effect: Any) -> list[tuple[int, int]]:
    """(first, end) of every shot with this effect; end is exclusive."""
    starts = _first_frames()
    return [(starts[index], starts[index + 1]) for index, shot in enumerate(SHOTS) if shot.effect is effect]


@pytest.fixture(scope="module")
def rebuilt(tmp_path_factory: pytest.TempPathFactory) -> Film:
    pytest.importorskip("skimage", reason="the photographs come with scikit-image")
    path = tmp_path_factory.mktemp("sample") / "sample.mp4"
    assert make_sample.main([str(path)]) == 0
    assert [entry.name for entry in path.parent.iterdir()] == ["sample.mp4"]
    return Film(path)


@pytest.fixture(scope="module")
def committed() -> Film:
    return Film(EXAMPLES / "sample.mp4")


@pytest.fixture(params=["committed", "rebuilt"])
def film(request: pytest.FixtureRequest) -> Film:
    value = request.getfixturevalue(request.param)
    assert isinstance(value, Film)
    return value


def test_file_is_small_and_streams_from_its_start(film: Film) -> None:
    data = film.path.read_bytes()
    assert len(data) < MAX_BYTES
    assert 0 < data.index(b"moov") < data.index(b"mdat")


def test_header_says_what_the_table_says(film: Film) -> None:
    frames = sum(shot.frames for shot in SHOTS)
    assert len(film.grey) == frames
    assert {image.shape for image in film.grey} == {(make_sample.HEIGHT_PX, make_sample.WIDTH_PX)}
    assert film.duration_s == pytest.approx(sum(shot.length_s for shot in SHOTS))
    assert (film.rate, film.codec, film.pixels, film.has_audio) == (make_sample.FPS, "h264", "yuv420p", False)
    assert 24 <= film.duration_s <= 30


def test_colours_are_tagged_as_they_are_coded(film: Film) -> None:
    assert film.colours == {(make_sample.Colorspace.ITU601, make_sample.ColorRange.MPEG)}


def test_every_hard_cut_is_a_jump_and_a_key_frame_and_nothing_else_jumps(committed: Film) -> None:
    starts = _first_frames()
    cuts = [starts[index] for index, shot in enumerate(SHOTS) if index and shot.effect is not Effect.DISSOLVE]
    jumps = [index for index in range(1, len(committed.grey)) if committed.change(index - 1, index) > 15]
    assert set(jumps) <= set(cuts)
    # Into the dark, the change is as large as the shot before was bright; a key frame tells that the encoder saw the cut.
    assert len(set(cuts) - set(jumps)) <= len(_spans(Effect.DARK))
    assert set(cuts) <= set(committed.key_frames)


def test_a_shot_is_pulled_into_focus(committed: Film) -> None:
    ((first, end),) = _spans(Effect.DEFOCUS)
    sharp = committed.sharpness((first + end) // 2)
    half_way = first + round(make_sample.DEFOCUS_S * make_sample.FPS / 2)
    assert committed.sharpness(first) < 0.05 * sharp
    assert committed.sharpness(half_way) < 0.4 * sharp
    assert committed.sharpness(first + round(make_sample.DEFOCUS_S * make_sample.FPS)) > 0.6 * sharp


def test_fades_run_from_black_and_to_black(committed: Film) -> None:
    fade = round(make_sample.FADE_S * make_sample.FPS)
    brightness = committed.brightness(0, len(committed.grey))
    ((opening, _),) = _spans(Effect.FADE_IN)
    ((_, closing),) = _spans(Effect.FADE_OUT)
    assert brightness[opening] < 2
    assert brightness[closing - 1] < 2
    assert (np.diff(brightness[opening : opening + fade]) > -0.5).all()
    assert (np.diff(brightness[closing - fade : closing]) < 0.5).all()
    assert min(brightness[opening + fade], brightness[closing - fade - 2]) > 40


def test_one_moment_is_nearly_black(committed: Film) -> None:
    ((first, end),) = _spans(Effect.DARK)
    assert (committed.brightness(first, end) < 10).all()
    assert end - first >= 10


def test_a_dissolve_mixes_two_shots(committed: Film) -> None:
    ((first, _),) = _spans(Effect.DISSOLVE)
    middle, after = first + round(make_sample.FADE_S * make_sample.FPS / 2), first + round(make_sample.FADE_S * make_sample.FPS)
    before, mixed, alone = (committed.grey[index].mean() for index in (first - 1, middle, after))
    assert before > 1.2 * mixed > 1.2**2 * alone
    assert max(committed.change(index, index + 1) for index in range(first - 1, after)) < 15


def test_one_large_face_shows_throughout_its_shot_and_nowhere_else(committed: Film) -> None:
    detector = cv2.CascadeClassifier(str(Path(cv2.__file__).parent / "data" / "haarcascade_frontalface_default.xml"))
    (face_shot,) = [index for index, shot in enumerate(SHOTS) if shot.picture == "astronaut.png" and shot.effect is Effect.NONE]
    starts = _first_frames()
    for index, shot in enumerate(SHOTS):
        for frame in range(starts[index] + 2, starts[index + 1], shot.frames // 3):
            faces = detector.detectMultiScale(committed.grey[frame], scaleFactor=1.1, minNeighbors=5, minSize=(60, 60))
            assert len(faces) == (index == face_shot), f"frame {frame} of {shot.picture}"
            assert all(height > make_sample.HEIGHT_PX / 4 for _, _, _, height in faces)


def test_one_picture_returns_as_a_near_duplicate(committed: Film) -> None:
    starts = _first_frames()
    once, again = [index for index, shot in enumerate(SHOTS) if shot.picture == "coffee.png"]
    assert committed.change(starts[once + 1] - 1, starts[again] + 10) < 6
    assert committed.change(starts[once + 1] - 1, starts[once + 1]) > 30


def test_the_last_shot_hardly_moves_before_it_fades(committed: Film) -> None:
    ((first, end),) = _spans(Effect.FADE_OUT)
    still = end - round(make_sample.FADE_S * make_sample.FPS) - 1
    assert committed.change(first, still - 1) < 4
    ((moving, _),) = _spans(Effect.FADE_IN)
    moving += round(make_sample.FADE_S * make_sample.FPS)
    assert committed.change(moving, moving + still - 1 - first) > 8


def test_the_committed_video_is_what_the_script_makes(committed: Film, rebuilt: Film) -> None:
    """So every test of the committed video's content holds for the script too."""
    apart = [float(cv2.absdiff(one, other).mean()) for one, other in zip(committed.grey, rebuilt.grey, strict=True)]
    # Other releases of x264 and OpenCV may differ a little; a moved window or another photograph differs by far more.
    assert max(apart) < 6, "the script has changed: run python examples/make_sample.py"


def test_a_window_outside_the_photograph_is_refused() -> None:
    pytest.importorskip("skimage")
    shot = make_sample.Shot("coffee.png", make_sample.Crop(100, 200, 590), make_sample.Crop(300, 200, 590), 1.0)
    with pytest.raises(ValueError, match=r"coffee\.png is 600x400; frame 0"):
        make_sample.view(shot, 0)


def test_a_length_between_two_frames_is_refused() -> None:
    with pytest.raises(ValueError, match="whole number of frames"):
        make_sample.Shot("coffee.png", make_sample.Crop(300, 200, 500), make_sample.Crop(300, 200, 500), 1.01)


def test_a_missing_scikit_image_is_said_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    make_sample.load_picture.cache_clear()
    make_sample.plate.cache_clear()
    monkeypatch.setitem(sys.modules, "skimage", None)  # makes the import fail
    assert make_sample.main([str(tmp_path / "out.mp4")]) == 2
    assert "pip install scikit-image" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_every_photograph_has_its_source_and_terms_in_the_readme() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    terms = {row.split("`")[1]: row.split("|")[-2] for row in text.splitlines() if row.startswith("| `")}
    assert set(terms) == {shot.picture for shot in SHOTS}
    assert all("CC0" in term or "public domain" in term for term in terms.values())
