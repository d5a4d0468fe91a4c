"""`--to sheet`: contact sheets, to see a video at a glance or to print it.

In: samples. Out: OUT/VIDEO.jpg, and OUT/VIDEO~2.jpg … where there are many keyframes (`~` is in no name of a video).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from pathlib import PurePath
from urllib.parse import unquote, urlsplit

from vip.dataset import storage
from vip.dataset.rows import KeyframeRow, VideoSample
from vip.export.fonts import font_for
from vip.export.sheet_drawing import SMALL_PX, TITLE_PX, SheetTile, draw_sheet, shape_for
from vip.html.format import plural
from vip.timecode import timecode
from vip.untrusted import one_line

STALE_FILES = ""  # `write` deletes the left-over sheets of each video itself
MOST_S = 3600.0 * 1000
EMOJI_PARTS = "\ufe0e\ufe0f"
DASHES = str.maketrans(dict.fromkeys("‐‑‒–—−", "-"))  # Pillow's own font has no other
MAX_TILES = 60  # of a sheet, which is then about 1600 x 4500 pixels


def write(samples: Iterator[VideoSample], out: str, note: Callable[[str], None]) -> int:
    """Write the sheets of each video, and delete those of an earlier export with more keyframes."""
    files = without_letters = 0
    existing = storage.sizes_in(out)
    for sample in samples:
        tiles = [_tile(number, frame) for number, frame in enumerate(sample.frames, 1)]
        captions = [one_line(frame.description.dense_caption) if frame.description else "" for frame in sample.frames]
        without_letters += sum(bool(caption) and not tile.caption for tile, caption in zip(tiles, captions, strict=True))
        number = 1
        for number, sheet in enumerate(sheets_of(sample, tiles), 1):
            storage.write_whole(sheet, out, _name(sample, number))
            files += 1
        while (old := _name(sample, number := number + 1)) in existing:
            storage.remove(out, old)
    if without_letters:
        left_out = plural(without_letters, "caption is", "captions are")
        note(f"{left_out} not on the sheets: no font here has all of their letters. Install DejaVu Sans, or Noto Sans CJK.")
    return files


def _name(sample: VideoSample, number: int) -> str:
    return f"{sample.video.key}.jpg" if number == 1 else f"{sample.video.key}~{number}.jpg"


def sheets_of(sample: VideoSample, tiles: list[SheetTile]) -> Iterator[bytes]:
    """Yield the sheets of a video, with about the same number of pictures on each."""
    shape = shape_for(
        [(frame.keyframe.width_px, frame.keyframe.height_px) for frame in sample.frames], captions=any(tile.caption for tile in tiles)
    )
    sheets = -(-len(tiles) // MAX_TILES)
    each = -(-len(tiles) // sheets)
    facts = [format_time(sample.video.duration_s).partition(".")[0]] if sample.video.duration_s else []
    is_video = any(frame.keyframe.time_s is not None for frame in sample.frames)
    facts.append(plural(len(tiles), "keyframe" if is_video else "picture").replace("\u202f", ","))
    for number in range(sheets):
        of = [f"sheet {number + 1} of {sheets}"] if sheets > 1 else []
        yield draw_sheet(title_of(sample), ", ".join([*facts, *of]), tiles[number * each : (number + 1) * each], shape)


def title_of(sample: VideoSample) -> str:
    """Return the title of the video or the name of its file; its key where no font has their letters."""
    video = sample.video
    path = urlsplit(video.source).path if video.kind == "address" else video.source
    title = one_line(video.title or unquote(PurePath(path).name)).translate(DASHES)
    return title if title and font_for(title, TITLE_PX) else video.key


def _tile(number: int, frame: KeyframeRow) -> SheetTile:
    time_s = frame.keyframe.time_s
    label = frame.name if time_s is None else format_time(time_s)
    caption = without_symbols(frame.description.dense_caption) if frame.description else ""
    return SheetTile(number, label if font_for(label, SMALL_PX) else "", caption, frame.picture)


def format_time(time_s: float) -> str:
    """Return `0:12.40`; a damaged file may state any number."""
    return timecode(min(MOST_S, max(-MOST_S, time_s)))


def without_symbols(caption: str) -> str:
    """Return the caption without symbols that no font has, emoji for example; "" where letters are missing too."""
    text = one_line(caption).translate(DASHES)
    if font_for(text, SMALL_PX):
        return text
    text = one_line("".join(letter for letter in text if unicodedata.category(letter)[0] not in "SC" and letter not in EMOJI_PARTS))
    return text if font_for(text, SMALL_PX) else ""
