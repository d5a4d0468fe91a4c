"""The pictures of the selected frames: which are moved, copied, decoded or left as they are, and the rows that name them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.captioning.keyframes import manifest as any_manifest
from tests.captioning.keyframes import noise
from tests.clips import clip, scene
from vip import store
from vip.errors import InputError
from vip.extraction.picture_cache import PictureCache
from vip.extraction.write_keyframes import copy_keyframes, write_keyframes
from vip.protocols import SilentObserver
from vip.records import Candidate, Decision, Detection, Frame, Keyframe, Manifest, Quality
from vip.store import Run
from vip.video import FileSource, Reader, open_video

BASE = Fraction(1, 1000)
CUP = Detection(label="cup", score=0.5, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="cups")


class Steps(SilentObserver):
    """How many steps were announced, and how many were made."""

    def __init__(self) -> None:
        self.total = self.made = 0

    @contextmanager
    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> Iterator[Callable[[], None]]:
        self.total = total
        yield self._advance

    def _advance(self) -> None:
        self.made += 1


def candidate(index: int, pts: int, *, kept: bool = True, sharpness: float | None = 100.0, **changed: Any) -> Candidate:
    quality = None if sharpness is None else Quality(sharpness=sharpness, brightness=0.5, contrast=0.2)
    about = {"index": index, "pts": pts, "time_base": BASE, "time_s": float(pts * BASE), "is_sync": True, "quality": quality}
    decision = Decision(kept=kept, rule="kept" if kept else "black", reason="as told")
    return Candidate(**{**about, "detections": None, "decision": decision, **changed})


def folder_of(path: Path, *rows: Candidate) -> Path:
    path.mkdir()
    store.write_rows(path / store.CANDIDATES, rows)
    return path


def told(*, suffix: str = "png", path: str = "v.mp4", **settings: Any) -> Manifest:
    known = any_manifest()
    more = {"settings": {"format": suffix, "stream": 0, "start": None, "end": None, **settings}, "video_id": "film"}
    return known.model_copy(update={**more, "video": known.video.model_copy(update={"path": path})})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / store.PICTURES).iterdir())


def rows(folder: Path) -> list[Keyframe]:
    return list(store.read_rows(folder / store.KEYFRAMES, Keyframe))


def put(folder: Path, name: str, number: int, size: tuple[int, int] = (48, 64)) -> None:
    (folder / store.PICTURES).mkdir(exist_ok=True)
    store.write_picture(folder / store.PICTURES / name, noise(number, size))


# ---------------------------------------------------------------- pictures that are there


FIRST, SECOND = "0001_00h00m01.000s.png", "0002_00h00m02.500s.png"


def test_a_row_has_all_that_is_known_of_its_candidate(tmp_path: Path) -> None:
    """The dropped candidate between them takes no number; each picture has a size of its own."""
    folder = folder_of(
        tmp_path / "run", candidate(3, 1000, sharpness=7.0), candidate(4, 2000, kept=False), candidate(5, 2500, detections=(CUP,))
    )
    put(folder, FIRST, 1)
    put(folder, SECOND, 2, (30, 90))
    write_keyframes(folder, told(), SilentObserver(), None)
    assert [row.model_dump(exclude={"quality", "schema_version", "detector"}) for row in rows(folder)] == [
        {
            **{"id": "film:0001", "video_id": "film", "time_s": 1.0, "pts": 1000, "image_path": f"keyframes/{FIRST}"},
            **{"width_px": 64, "height_px": 48, "detections": None, "candidate": 3},
        },
        {
            **{"id": "film:0002", "video_id": "film", "time_s": 2.5, "pts": 2500, "image_path": f"keyframes/{SECOND}"},
            **{"width_px": 90, "height_px": 30, "detections": (CUP.model_dump(),), "candidate": 5},
        },
    ]
    assert [row.quality.sharpness for row in rows(folder)] == [7.0, 100.0]


def test_the_manifest_keeps_its_other_times_and_says_that_the_pictures_are_written(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", candidate(0, 1000))
    put(folder, FIRST, 1)
    write_keyframes(folder, told().model_copy(update={"seconds": {"select": 2.5, "write": 900.0}}), SilentObserver(), None)
    written = store.read_json(folder / store.MANIFEST, Manifest)
    assert written.seconds["select"] == 2.5
    assert 0 <= written.seconds["write"] < 100
    assert written.model_copy(update={"seconds": {}}) == told().model_copy(update={"seconds": {}})


def test_without_a_keyframe_there_are_no_rows_and_the_run_is_finished(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", candidate(0, 1000, kept=False))
    write_keyframes(folder, told(), SilentObserver(), None)
    assert rows(folder) == []
    assert names(folder) == []
    assert "write" in store.read_json(folder / store.MANIFEST, Manifest).seconds


# ---------------------------------------------------------------- pictures that wait


def test_waiting_pictures_become_keyframes_and_none_is_left(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", candidate(0, 1000), candidate(1, 2500), candidate(2, 4000, kept=False))
    put(folder, SECOND, 9)
    waiting = PictureCache(folder, "png")
    for pts, number in ((1000, 1), (2500, 2), (4000, 4)):
        waiting.keep(Frame(pts, BASE, noise(number)))
    steps = Steps()
    write_keyframes(folder, told(), steps, None)
    assert names(folder) == [FIRST, SECOND]
    assert np.array_equal(Run(folder).keyframes[0].image, noise(1))
    assert np.array_equal(Run(folder).keyframes[1].image, noise(9)), "what was written before stays"
    assert not (folder / store.DECODED).exists()
    assert (steps.total, steps.made) == (2, 1)


@pytest.mark.parametrize("count", [1, 2])
def test_what_cannot_be_decoded_any_more_is_counted_and_nothing_is_called_finished(count: int, tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", candidate(0, 1000), *(candidate(place, 1000 * place + 500) for place in range(2, 2 + count)))
    put(folder, FIRST, 1)
    with pytest.raises(InputError) as caught:
        write_keyframes(folder, told(path="/films/v.mp4"), SilentObserver(), None)
    said = "1 keyframe" if count == 1 else "2 keyframes"
    assert str(caught.value) == f"/films/v.mp4: {said} could be decoded before and cannot now. Did the file change?"
    assert not (folder / store.KEYFRAMES).exists()
    assert not (folder / store.MANIFEST).exists()


# ---------------------------------------------------------------- pictures that are decoded


@pytest.fixture(scope="module")
def film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scenes 0 to 3, a second each."""
    return clip(tmp_path_factory.mktemp("film") / "film.mp4", range(4))


def starts(film: Path) -> list[int]:
    """PTS of the first frame of each second."""
    with open_video(FileSource(film)) as video:
        return [round(second / video.time_base) for second in range(4)]


def of_film(path: Path, film: Path, seconds: Sequence[int]) -> Path:
    pts = starts(film)
    return folder_of(path, *(candidate(place, pts[second], time_s=float(second)) for place, second in enumerate(seconds)))


def shown(folder: Path) -> list[int]:
    """Number of the scene that each keyframe shows, of those that have the film's size."""
    scenes = [scene(number).astype(int) for number in range(4)]
    pictures = [one.image for one in Run(folder).keyframes if one.record.width_px == 160]
    return [int(np.argmin([np.abs(image - each).mean() for each in scenes])) for image in pictures]


@pytest.mark.parametrize("seconds", [[1], [0, 2, 3]])
def test_each_missing_picture_is_decoded_under_its_own_name(seconds: list[int], film: Path, tmp_path: Path) -> None:
    """One alone lies in one GOP, several lie in several."""
    folder, steps = of_film(tmp_path / "run", film, seconds), Steps()
    with open_video(FileSource(film)) as video:
        write_keyframes(folder, told(), steps, video)
    assert shown(folder) == seconds
    assert names(folder) == [f"{number:04d}_00h00m0{second}.000s.png" for number, second in enumerate(seconds, 1)]
    assert [(row.width_px, row.height_px) for row in rows(folder)] == [(160, 90)] * len(seconds)
    assert (steps.total, steps.made) == (len(seconds), len(seconds))


def test_only_what_is_missing_is_decoded(film: Path, tmp_path: Path) -> None:
    """A killed run left one picture, another waits on disk."""
    folder = of_film(tmp_path / "run", film, [0, 1, 2])
    put(folder, "0001_00h00m00.000s.png", 5, (20, 30))
    PictureCache(folder, "png").keep(Frame(starts(film)[1], BASE, noise(6)))
    asked: list[list[int]] = []
    with open_video(FileSource(film)) as video:
        groups = video.groups

        def spied(pts: Sequence[int]) -> list[list[int]]:
            asked.append(list(pts))
            return groups(pts)

        video.groups = spied  # type: ignore[method-assign]
        write_keyframes(folder, told(), SilentObserver(), video)
    assert asked[0] == [starts(film)[2]]
    assert np.array_equal(Run(folder).keyframes[0].image, noise(5, (20, 30)))
    assert np.array_equal(Run(folder).keyframes[1].image, noise(6))
    assert shown(folder) == [2]
    assert [(row.width_px, row.height_px) for row in rows(folder)] == [(30, 20), (64, 48), (160, 90)]


# ---------------------------------------------------------------- pictures of another run


def old_run(path: Path, *pts: int, suffix: str = "png") -> Run:
    """A finished run with a picture of noise for each PTS."""
    folder = folder_of(path, *(candidate(place, one) for place, one in enumerate(pts)))
    for number, one in enumerate(pts, 1):
        put(folder, store.picture_name(number, one / 1000, suffix, of=len(pts)), one)
    write_keyframes(folder, told(suffix=suffix), SilentObserver(), None)
    return Run(folder)


def test_pictures_are_copied_by_their_frame_though_their_number_is_another(tmp_path: Path) -> None:
    old = old_run(tmp_path / "old", 1000, 2500, 4000)
    folder = folder_of(tmp_path / "new", candidate(1, 2500), candidate(2, 4000))
    copy_keyframes(old, folder, told(), None, SilentObserver())
    assert names(folder) == ["0001_00h00m02.500s.png", "0002_00h00m04.000s.png"]
    assert [one.path.read_bytes() for one in Run(folder).keyframes] == [one.path.read_bytes() for one in old.keyframes[1:]]
    assert len(names(old.folder)) == 3, "the old run keeps its own"


def test_a_picture_that_is_there_already_is_not_copied_over(tmp_path: Path) -> None:
    old = old_run(tmp_path / "old", 1000)
    folder = folder_of(tmp_path / "new", candidate(0, 1000))
    put(folder, FIRST, 77)
    copy_keyframes(old, folder, told(), None, SilentObserver())
    assert np.array_equal(Run(folder).keyframes[0].image, noise(77))


def lacking(tmp_path: Path, missing: int) -> tuple[Run, Path]:
    """An old run with the first of the pictures only, and a folder that wants more of them."""
    return old_run(tmp_path / "old", 1000), folder_of(
        tmp_path / "new", candidate(0, 1000), *(candidate(place, 1000 + place) for place in range(1, 1 + missing))
    )


@pytest.mark.parametrize(
    ("missing", "words"), [(1, "1 of the chosen frames has no picture"), (2, "2 of the chosen frames have no picture")]
)
def test_a_video_that_nobody_named_is_not_opened(missing: int, words: str, tmp_path: Path, film: Path) -> None:
    old, folder = lacking(tmp_path, missing)
    with pytest.raises(InputError) as caught:
        copy_keyframes(old, folder, told(path=str(film)), None, SilentObserver())
    assert str(caught.value).startswith(f"{words} in {old.folder} yet, and another machine made it: its video is not opened unasked.")
    assert f"`vip trust {old.folder}`" in str(caught.value)
    assert not (folder / store.KEYFRAMES).exists()


@pytest.mark.parametrize("state", ["is gone", "has changed since"])
def test_a_video_that_is_gone_or_changed_is_not_decoded(state: str, tmp_path: Path, film: Path) -> None:
    """The record of the video has another size than the file."""
    old, folder = lacking(tmp_path, 1)
    named = FileSource(film if state == "has changed since" else tmp_path / "none.mp4")
    with pytest.raises(InputError, match=rf"1 of the chosen frames has no picture in .*, and .*{named.path.name} {state}\. Put it back"):
        copy_keyframes(old, folder, told(path=named.location), named, SilentObserver())
    assert not (folder / store.KEYFRAMES).exists()


@pytest.mark.parametrize("lost", ["format", "file"])
def test_a_picture_of_another_format_or_that_the_old_run_has_lost_is_decoded(lost: str, film: Path, tmp_path: Path) -> None:
    pts = starts(film)
    old = old_run(tmp_path / "old", pts[1], suffix="jpg" if lost == "format" else "png")
    if lost == "file":
        old.keyframes[0].path.unlink()
    named = FileSource(film)
    state = named.state()
    assert state is not None
    known = told(path=named.location)
    video = known.video.model_copy(update={"size_bytes": state.size_bytes, "modified_ns": state.modified_ns})
    folder = of_film(tmp_path / "new", film, [1])
    copy_keyframes(old, folder, known.model_copy(update={"video": video}), named, SilentObserver())
    assert names(folder) == ["0001_00h00m01.000s.png"]
    assert shown(folder) == [1]


def test_the_video_is_opened_as_the_run_did(film: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fake tells what it was opened with: a second stream of video is dear to make."""
    old, folder = lacking(tmp_path, 1)
    opened: list[tuple[object, dict[str, object]]] = []

    def spied(source: object, **given: object) -> Reader:
        opened.append((source, given))
        raise InterruptedError

    monkeypatch.setattr("vip.extraction.write_keyframes.open_video", spied)
    named = FileSource(film)
    state = named.state()
    assert state is not None
    known = told(path=named.location, stream=2, start=1.5, end=3.0)
    video = known.video.model_copy(update={"size_bytes": state.size_bytes, "modified_ns": state.modified_ns})
    with pytest.raises(InterruptedError):
        copy_keyframes(old, folder, known.model_copy(update={"video": video}), named, SilentObserver())
    assert opened == [(named, {"stream": 2, "start_s": 1.5, "end_s": 3.0})]
