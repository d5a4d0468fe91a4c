"""Contact sheets: the pictures in their order, legible, bounded in size and memory, and no box for a letter."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Iterator
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from PIL import Image, ImageDraw

from tests.corpus.making import sample, samples
from vip.dataset.rows import VideoSample
from vip.export import fonts, sheet, sheet_drawing
from vip.export.sheet import sheets_of, title_of, without_symbols
from vip.export.sheet_drawing import SheetTile, draw_sheet, shape_for


def unheard(text: str) -> None:
    raise AssertionError(f"nobody expected: {text}")


def plain_picture(colour: tuple[int, int, int], width_px: int = 64, height_px: int = 48, suffix: str = ".png") -> bytes:
    """A picture of one colour, RGB."""
    return cv2.imencode(suffix, np.full((height_px, width_px, 3), colour[::-1], np.uint8))[1].tobytes()


def painted(one: VideoSample, *colours: tuple[int, int, int]) -> VideoSample:
    """The clip with pictures of these colours."""
    frames = [dataclasses.replace(frame, picture=plain_picture(colour)) for frame, colour in zip(one.frames, colours, strict=True)]
    return VideoSample(one.video, tuple(frames))


def captioned(one: VideoSample, text: str) -> VideoSample:
    frames = [
        dataclasses.replace(row, description=row.description and row.description.model_copy(update={"dense_caption": text}))
        for row in one.frames
    ]
    return VideoSample(one.video, tuple(frames))


def opened(path: Path) -> Image.Image:
    with Image.open(path) as picture:
        assert picture.format == "JPEG"
        picture.load()
        return picture


def test_a_video_is_one_sheet_with_its_keyframes_in_their_order(tmp_path: Path) -> None:
    colours = [(250, 20, 20), (20, 220, 20), (20, 20, 250)]
    assert sheet.write(iter([painted(sample("one"), *colours)]), str(tmp_path), unheard) == 1
    picture = opened(tmp_path / "one.jpg")
    shape = shape_for([(64, 48)] * 3, captions=True)
    assert picture.width == 2 * 32 + 3 * shape.width_px + 2 * 20
    y = next(y for y in range(picture.height) if picture.getpixel((40, y))[0] > 200 > picture.getpixel((40, y))[1] + 100)  # type: ignore[index]
    for column, colour in enumerate(colours):
        found = picture.getpixel((40 + column * (shape.width_px + 20), y + 20))
        assert np.abs(np.subtract(found, colour)).max() < 12  # type: ignore[arg-type]


def test_the_title_the_times_and_the_captions_are_drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    real = sheet_drawing.wrap_text
    monkeypatch.setattr(sheet_drawing, "wrap_text", lambda text, *room: written.extend(real(text, *room)) or real(text, *room))
    one = captioned(
        sample("one", title="My film", duration_s=3723.9),
        "A dog leaps for a frisbee over a wide green field beside a lake in the evening sun.",
    )
    sheet.write(iter([one]), str(tmp_path), unheard)
    assert written[:2] == ["My film", "1:02:03, 3 keyframes"]
    assert written[2:6] == ["1", "0:02.00", "A dog leaps for a frisbee over a wide green", "field beside a lake in the evening sun."]


def test_without_captions_no_room_is_kept_for_them(tmp_path: Path) -> None:
    sheet.write(iter([sample("bare", described=False), sample("told")]), str(tmp_path), unheard)
    assert opened(tmp_path / "bare.jpg").height < opened(tmp_path / "told.jpg").height - 30


@pytest.mark.slow
def test_many_keyframes_are_several_sheets_of_about_one_length(tmp_path: Path) -> None:
    assert sheet.write(iter([sample("one", count=61), sample("two", count=60)]), str(tmp_path), unheard) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.jpg", "one~2.jpg", "two.jpg"]
    first, second, whole = (opened(tmp_path / name) for name in ("one.jpg", "one~2.jpg", "two.jpg"))
    assert first.size == second.size  # 31 and 30 are eight rows each
    assert whole.width == 1600
    assert whole.height < 6000


@pytest.mark.parametrize(("before", "now", "left"), [(241, 60, 1), (121, 60, 1), (241, 61, 2), (61, 121, 3)])
def test_sheets_of_an_earlier_export_go_and_other_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: int, now: int, left: int
) -> None:
    monkeypatch.setattr(sheet, "draw_sheet", lambda *_: b"a sheet")
    sheet.write(iter([sample("one", count=before)]), str(tmp_path), unheard)
    (tmp_path / "mine~2.jpg").write_bytes(b"mine")
    assert len(list(tmp_path.glob("one*.jpg"))) == -(-before // 60)
    sheet.write(iter([sample("one", count=now)]), str(tmp_path), unheard)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine~2.jpg", "one.jpg", "one~2.jpg", "one~3.jpg"][: 1 + left]


Box = tuple[float, float, float, float]


def overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def test_nothing_on_a_sheet_touches_another_thing_or_the_border(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[Box] = []
    pictures: list[Box] = []
    text, paste = ImageDraw.ImageDraw.text, Image.Image.paste

    def noted_text(self: ImageDraw.ImageDraw, at: Any, words: str, colour: str, font: Any, anchor: str) -> None:
        texts.append(self.textbbox(at, words, font, anchor=anchor))
        text(self, at, words, colour, font, anchor=anchor)

    def noted_paste(self: Image.Image, other: Image.Image, at: Any) -> None:
        pictures.append((*at, at[0] + other.width, at[1] + other.height))
        paste(self, other, at)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", noted_text)
    monkeypatch.setattr(Image.Image, "paste", noted_paste)
    words = "A gypsy plays a guitar by the quay while two boys jump into the water, and many people look on happily."
    tiles = [SheetTile(number, "gypsy.jpg", words, plain_picture((200, 20, 20), 160, 90)) for number in range(1, 7)]
    shape = shape_for([(160, 90)] * 6, captions=True)
    data = draw_sheet("A quay, by day", "gypsy: 0:12, 6 keyframes", tiles, shape)
    with Image.open(BytesIO(data)) as drawn:
        width, height = drawn.size
    assert (len(texts), len(pictures)) == (2 + 6 * 4, 6)
    assert not [pair for pair in combinations([*texts, *pictures], 2) if overlap(*pair)]
    assert min(box[0] for box in texts + pictures) >= 32
    assert max(box[2] for box in texts + pictures) <= width - 32
    assert 32 <= height - max(box[3] for box in texts) <= 32 + 20
    assert min(box[1] for box in pictures) - max(box[3] for box in texts[:2]) >= 20
    assert {box[2] - box[0] for box in pictures} == {shape.width_px}
    assert {box[3] - box[1] for box in pictures} == {shape.picture_height_px}


def test_upright_pictures_stand_closer_and_strange_shapes_stay_within_bounds() -> None:
    assert shape_for([(720, 1280)] * 9, captions=True).columns == 6
    assert shape_for([(1280, 720)] * 9, captions=True).columns == 4
    assert shape_for([(1280, 720)], captions=True).columns == 2
    for size in ((1, 10_000), (10_000, 1)):
        shape = shape_for([size] * 60, captions=True)
        assert shape.columns * shape.width_px <= 1600
        assert shape.picture_height_px <= 2 * shape.width_px


@pytest.mark.parametrize("size", [(1, 4_000), (4_000, 1)])
def test_a_picture_far_too_thin_for_its_field_is_a_line(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    placed: list[tuple[int, int]] = []
    monkeypatch.setattr(Image.Image, "paste", lambda self, other, at: placed.append(other.size))
    shape = shape_for([(160, 90)], captions=False)
    draw_sheet("x", "y", [SheetTile(1, "", "", plain_picture((9, 9, 9), *size))], shape)
    assert placed == [(1, shape.picture_height_px) if size[0] == 1 else (shape.width_px, 1)]


def test_a_picture_that_cannot_be_read_leaves_a_field(tmp_path: Path) -> None:
    one = sample("one")
    broken = [
        dataclasses.replace(frame, picture=data)
        for frame, data in zip(one.frames, (b"", b"not a picture", one.frames[0].picture[:300]), strict=True)
    ]
    assert sheet.write(iter([VideoSample(one.video, tuple(broken))]), str(tmp_path), unheard) == 1
    assert opened(tmp_path / "one.jpg").width > 1000


def test_transparent_grey_and_turned_pictures_are_shown(tmp_path: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    made = []
    for mode, suffix, more in (
        ("RGBA", "PNG", {}),
        ("L", "PNG", {}),
        ("RGB", "JPEG", {"exif": exif}),
        ("CMYK", "JPEG", {}),
        ("P", "PNG", {}),
    ):
        file = BytesIO()
        Image.new(mode, (640, 480)).save(file, suffix, **more)
        made.append(file.getvalue())
    tiles = [SheetTile(number, "0:00", "", data) for number, data in enumerate(made, 1)]
    picture = Image.open(BytesIO(draw_sheet("x", "y", tiles, shape_for([(640, 480)] * 5, captions=False))))
    assert picture.size == (1600, 783)


# ---------------------------------------------------------------- letters


def test_captions_whose_letters_no_font_has_are_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FILES", ())
    told: list[str] = []
    some = [
        captioned(sample("one"), "赤い上着の男性"),
        captioned(sample("two", count=1), "größe"),
        captioned(sample("three", count=1), " "),
    ]
    assert sheet.write(iter(some), str(tmp_path), told.append) == 3
    assert told == ["4 captions are not on the sheets: no font here has all of their letters. Install DejaVu Sans, or Noto Sans CJK."]


def test_emoji_are_left_out_and_the_words_beside_them_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FILES", ())
    assert without_symbols("A woman ❤️ with red hair 👩🏽‍🦰 smiles.") == "A woman with red hair smiles."
    assert without_symbols("a\u202eb\x00c — d−1") == "abc - d-1"
    assert without_symbols("größe") == ""


@pytest.mark.parametrize(
    ("video", "title"),
    [
        ({"title": "My film"}, "My film"),
        ({"title": None}, "one.mp4"),
        ({"title": "赤い"}, "one"),
        ({"kind": "address", "source": "https://example.org/a/my%20film.mp4"}, "my film.mp4"),
        ({"kind": "youtube", "source": "dQw4w9WgXcQ"}, "dQw4w9WgXcQ"),
        ({"source": "/"}, "one"),
        ({"kind": "address", "source": "https://example.org"}, "one"),
        ({"kind": "address", "source": "https://example.org/"}, "one"),
        ({"source": "/films/50%25 off.mp4"}, "50% off.mp4"),
    ],
)
def test_the_title_is_that_of_the_video_or_the_name_of_its_file(video: dict[str, str], title: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "FILES", ())
    assert title_of(sample("one", **video)) == title


# ---------------------------------------------------------------- anything, and much of it


@pytest.mark.slow
@settings(max_examples=30)
@given(samples())
def test_whatever_a_clip_holds_is_a_sheet(tmp_path_factory: pytest.TempPathFactory, one: VideoSample) -> None:
    folder = tmp_path_factory.mktemp("sheet")
    assert sheet.write(iter([one]), str(folder), list[str]().append) == 1
    assert opened(folder / f"{one.video.key}.jpg").width <= 1600


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_videos(tmp_path: Path) -> None:
    def peak(count: int) -> int:
        def many() -> Iterator[VideoSample]:
            for number in range(count):
                yield sample(f"v{number}", count=2)

        tracemalloc.start()
        sheet.write(many(), str(tmp_path / str(count)), unheard)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(2)
    assert peak(40) < peak(4) + 1_000_000


def test_a_sheet_is_made_when_it_is_asked_for() -> None:
    one = sample("one", count=121)
    tiles = [SheetTile(number, "", "", frame.picture) for number, frame in enumerate(one.frames, 1)]
    sheets = sheets_of(one, tiles)
    assert isinstance(sheets, Iterator)
    assert len(list(sheets)) == 3


def test_each_keyframe_is_on_one_sheet_and_each_sheet_says_which_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[tuple[str, list[int]]] = []
    monkeypatch.setattr(sheet, "draw_sheet", lambda _, facts, tiles, __: drawn.append((facts, [tile.number for tile in tiles])))
    one = sample("one", count=61, duration_s=62.5)
    list(sheets_of(one, [SheetTile(number, "", "", b"") for number in range(1, 62)]))
    assert drawn == [
        ("1:02, 61 keyframes, sheet 1 of 2", list(range(1, 32))),
        ("1:02, 61 keyframes, sheet 2 of 2", list(range(32, 62))),
    ]


def test_pictures_that_come_from_no_video_are_called_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(sheet, "draw_sheet", lambda _, facts, *__: told.append(facts))
    one = sample("one", duration_s=None)
    frames = [dataclasses.replace(frame, keyframe=frame.keyframe.model_copy(update={"time_s": None})) for frame in one.frames]
    list(sheets_of(VideoSample(one.video, tuple(frames)), [SheetTile(1, "", "", b"")]))
    assert told == ["1 picture"]


@pytest.mark.parametrize(("width_px", "height_px"), [(20, 90), (160, 30)])
def test_a_picture_of_another_shape_stands_in_the_middle_of_its_field(
    width_px: int, height_px: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    placed: list[tuple[int, int, int, int]] = []
    monkeypatch.setattr(
        Image.Image, "paste", lambda self, other, at: placed.append((at[0], at[1], at[0] + other.width, at[1] + other.height))
    )
    shape = shape_for([(160, 90)] * 2, captions=False)
    shapes = [(160, 90), (width_px, height_px)]
    draw_sheet("x", "y", [SheetTile(1, "", "", plain_picture((9, 9, 9), *size)) for size in shapes], shape)
    whole, other = placed
    left, top = whole[0] + shape.width_px + 20, whole[1]
    assert abs((other[0] - left) - (left + shape.width_px - other[2])) <= 1
    assert abs((other[1] - top) - (top + shape.picture_height_px - other[3])) <= 1
    assert (other[2] - other[0] == shape.width_px) != (other[3] - other[1] == shape.picture_height_px)
