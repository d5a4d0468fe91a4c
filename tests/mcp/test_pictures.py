"""vip.mcp.pictures: sheets with the times of their keyframes, and one keyframe as a picture"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from PIL import Image

pytest.importorskip("mcp")

from tests.captioning.keyframes import keyframes, manifest, run_folder
from tests.clips import clip, scene
from tests.mcp.test_workshop import Server
from vip import store
from vip.errors import InputError
from vip.llm.prices import load_prices, price_of
from vip.llm.tokens import picture_tokens
from vip.mcp.pictures import encode_picture, nearest, shrink
from vip.mcp.results import ToolResult
from vip.store import KeyframePicture, load_run

pytestmark = pytest.mark.extra("mcp")


@pytest.fixture
def server(tmp_path: Path) -> Server:
    return Server(tmp_path.resolve())


def timed(folder: Path, *times: float | None) -> list[KeyframePicture]:
    """A run folder whose keyframes have these times."""
    run_folder(folder, len(times))
    items = [frame.record.model_copy(update={"time_s": time_s}) for frame, time_s in zip(load_run(folder).keyframes, times, strict=True)]
    store.write_rows(folder / store.KEYFRAMES, items)
    return load_run(folder).keyframes


def decoded(found: ToolResult) -> np.ndarray[Any, Any]:
    (data,) = found.pictures
    with Image.open(io.BytesIO(data)) as picture:
        assert picture.format == "JPEG"
        return np.asarray(picture.convert("RGB"))


# ---------------------------------------------------------------- keyframes and sheet


@pytest.mark.parametrize("options", [{"count": 1}, {"start": "0"}, {"end": "9"}])
@pytest.mark.parametrize("name", ["talk.vip", "run-0123456789ab"])
def test_what_chooses_from_a_video_is_refused_for_a_run(name: str, options: dict[str, Any], server: Server) -> None:
    run_folder((server.root if name == "talk.vip" else server.work) / name, 2)
    refused = server.call("keyframes", video=name, **options)
    assert (refused.is_error, refused.text) == (
        True,
        "count, start and end choose from a video, and this is a run. Name the video file.",
    )
    assert not server.call("keyframes", video=name).is_error


def test_keyframes_of_a_part_of_a_video_lie_in_it_and_are_as_many_as_asked(server: Server) -> None:
    clip(server.root / "talk.mp4", range(6))
    every = server.call("keyframes", video="talk.mp4")
    part = server.call("keyframes", video="talk.mp4", count=2, start="2", end="0:04")
    assert every.text.startswith("run-")
    assert part.text.partition(":")[0] != every.text.partition(":")[0], "another choice is another run"
    run = load_run(server.work / part.text.partition(":")[0])
    times = [frame.time_s or 0.0 for frame in run.keyframes]
    assert len(times) == 2
    assert all(2 <= time_s <= 4 for time_s in times)
    assert server.call("sheet", video="talk.mp4").text.partition(":")[0] == every.text.partition(":")[0], "without options the first run"


def test_a_sheet_names_each_keyframe_with_its_number_and_time(server: Server) -> None:
    timed(server.root / "talk.vip", 0.0, 62.5, 3723.25)
    found = server.call("sheet", video="talk.vip")
    first, second = found.text.split("\n")
    assert first.startswith("the run folder: 3 keyframes on 1 picture, ")
    assert first.endswith(" tokens of gpt-5.4-mini. Number and time of each:")
    assert second == "1 0:00.00, 2 1:02.50, 3 1:02:03.25"
    assert (found.data, len(found.pictures)) == ((), 1)


def test_pictures_without_a_time_keep_their_place_in_the_numbers(server: Server) -> None:
    timed(server.root / "some.vip", None, 1.0, None, 4.5)
    timed(server.root / "none.vip", None)
    assert server.call("sheet", video="some.vip").text.split("\n")[1] == "2 0:01.00, 4 0:04.50"
    none = server.call("sheet", video="none.vip").text.split("\n")
    assert none[0].startswith("the run folder: 1 keyframe on 1 picture, ")
    assert none[1:] == ["without times"]


@pytest.mark.parametrize("tool", ["sheet", "keyframes"])
def test_a_small_budget_shows_some_of_the_keyframes_and_says_so_behind_the_notes_of_the_run(tool: str, server: Server) -> None:
    folder = run_folder(server.root / "talk.vip", 30)
    store.write_json(folder / store.MANIFEST, manifest().model_copy(update={"notes": ("The run said so.",)}))
    found = server.call(tool, video="talk.vip", tokens=400)
    price = price_of(load_prices(None), "gpt-5.4-mini", None)
    assert price is not None
    assert price.picture is not None
    cost = sum(picture_tokens(price.picture, *Image.open(io.BytesIO(data)).size, "high") for data in found.pictures)
    assert f", {cost} tokens of" in found.text
    assert 0 < cost < 400
    assert found.data[0] == {"note": "The run said so."}
    assert "of 30 keyframes fit into 400 tokens" in found.data[1]["note"]
    assert found.text.startswith("the run folder: 30 keyframes on ")
    assert found.text.count(",") > 29, "all are listed, also those that are not on a sheet"
    assert len(server.call(tool, video="talk.vip", tokens=4000).data) == 1


@pytest.mark.parametrize("tool", ["sheet", "keyframes"])
def test_the_model_says_what_pictures_cost_and_one_that_nobody_knows_is_refused(tool: str, server: Server) -> None:
    run_folder(server.root / "talk.vip", 3)
    assert " tokens of claude-sonnet-4-5. " in server.call(tool, video="talk.vip", model="claude-sonnet-4-5").text
    refused = server.call(tool, video="talk.vip", model="unheard-of")
    assert refused.is_error
    assert "vip does not know how unheard-of counts pictures" in refused.text


# ---------------------------------------------------------------- frame


def test_a_frame_is_the_picture_of_its_number_in_its_colours(server: Server) -> None:
    frames = timed(server.root / "talk.vip", 0.0, 1.5, None)
    for number, frame in enumerate(frames, 1):
        store.write_picture(frame.path, scene(number))
    for number in (1, 2, 3):
        found = server.call("frame", video="talk.vip", number=number)
        when = ("", " at 0:00.00", " at 0:01.50", "")[number]
        assert found.text == f"Keyframe {number} of the run folder{when}, 160 x 90 pixels."
        gaps = [np.abs(decoded(found).astype(int) - scene(other)).mean() for other in (1, 2, 3)]
        assert np.argmin(gaps) == number - 1
        assert min(gaps) < 12, "red is red, and not blue"


def test_the_side_is_the_longest_one_of_the_picture(server: Server) -> None:
    (frame,) = timed(server.root / "talk.vip", 1.0)
    store.write_picture(frame.path, cv2.resize(scene(1), (400, 800)))
    found = server.call("frame", video="talk.vip", number=1, side=100)
    assert decoded(found).shape == (100, 50, 3)
    assert found.text.endswith(", 50 x 100 pixels.")
    assert decoded(server.call("frame", video="talk.vip", number=1)).shape == (800, 400, 3), "1024 by default"


def test_a_time_chooses_the_nearest_of_the_keyframes_that_have_one(server: Server) -> None:
    timed(server.root / "talk.vip", None, 4.0, 2.0, None)
    said = {time: server.call("frame", video="talk.vip", time=time).text.split(",")[0] for time in ("0", "2.9", "3.1", "1:40")}
    assert said == {
        "0": "Keyframe 3 of the run folder at 0:02.00",
        "2.9": "Keyframe 3 of the run folder at 0:02.00",
        "3.1": "Keyframe 2 of the run folder at 0:04.00",
        "1:40": "Keyframe 2 of the run folder at 0:04.00",
    }
    timed(server.root / "none.vip", None)
    refused = server.call("frame", video="none.vip", time="1")
    assert (refused.is_error, refused.text) == (True, "The keyframes of this run have no times. Give a number.")
    wrong = server.call("frame", video="talk.vip", time="soon")
    assert wrong.is_error
    assert wrong.text.startswith('time: "soon" is no time')


def test_of_two_keyframes_as_near_the_first_is_taken_and_of_none_none(tmp_path: Path) -> None:
    frames = timed(tmp_path / "talk.vip", 1.0, 3.0, 1.0)
    assert [nearest(frames, time_s) for time_s in (2.0, 1.0, -5.0)] == [1, 1, 1]
    with pytest.raises(InputError, match="have no times"):
        nearest([], 0.0)


@pytest.mark.parametrize(("shape", "size"), [((4, 1000), (64, 1)), ((1000, 4), (1, 64)), ((64, 64), (64, 64)), ((65, 33), (32, 64))])
def test_a_shrunk_picture_has_at_least_a_pixel_each_way(shape: tuple[int, int], size: tuple[int, int], tmp_path: Path) -> None:
    (frame,) = keyframes(tmp_path, 1, size=shape)
    assert shrink(frame, 64).size == size


def test_a_damaged_picture_is_one_sentence(server: Server) -> None:
    (frame,) = timed(server.root / "talk.vip", 1.0)
    frame.path.write_bytes(b"no picture")
    refused = server.call("frame", video="talk.vip", number=1)
    assert refused.is_error
    assert refused.text.startswith("The keyframe ")


def test_a_picture_is_sent_in_the_quality_of_sheets() -> None:
    data = encode_picture(Image.fromarray(scene(1)))
    with Image.open(io.BytesIO(data)) as picture:
        tables = picture.quantization  # type: ignore[attr-defined]
    file = io.BytesIO()
    Image.fromarray(scene(1)).save(file, "JPEG", quality=90)
    with Image.open(file) as truth:
        assert tables == truth.quantization  # type: ignore[attr-defined]
