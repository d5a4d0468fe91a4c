"""The tools that show pictures: keyframes, sheet, frame."""

from __future__ import annotations

from io import BytesIO
from math import inf

import cv2
from PIL import Image

from vip.errors import InputError, UsageError
from vip.export.sheet import format_time
from vip.export.stamped_sheet import draw_sheets, stamp_of
from vip.llm.prices import load_prices
from vip.mcp.results import ToolResult
from vip.mcp.tools import FrameArguments, KeyframesArguments, SheetArguments
from vip.mcp.workshop import Workshop, name_of
from vip.store import KeyframePicture, Run
from vip.timecode import seconds_of
from vip.video.pillow import open_picture, shown
from vip.wording import counted

JPEG_QUALITY = 90


def keyframes(arguments: KeyframesArguments, workshop: Workshop) -> ToolResult:
    """Return the keyframes of a video on contact sheets, and their times."""
    wanted = {"keyframes": arguments.count, "start": arguments.start, "end": arguments.end}
    options = {name: value for name, value in wanted.items() if value is not None}
    if options and workshop.find(arguments.video).kind != "video":
        raise UsageError("count, start and end choose from a video, and this is a run. Name the video file.")
    return _show(workshop.run(arguments.video, **options), arguments.model, arguments.tokens, workshop)


def sheet(arguments: SheetArguments, workshop: Workshop) -> ToolResult:
    """Return the keyframes of a run on contact sheets."""
    return _show(workshop.run(arguments.video), arguments.model, arguments.tokens, workshop)


def frame(arguments: FrameArguments, workshop: Workshop) -> ToolResult:
    """Return one keyframe as a picture."""
    if (arguments.number is None) == (arguments.time is None):
        raise UsageError("Give either the number of a keyframe or a time.")
    time_s = _seconds(arguments.time) if arguments.time is not None else None
    run = workshop.run(arguments.video)
    number = arguments.number if arguments.number is not None else nearest(run.keyframes, time_s or 0.0)
    if number > len(run.keyframes):
        raise UsageError(f"There is no keyframe {number}: {name_of(run)} has {len(run.keyframes)}.")
    keyframe = run.keyframes[number - 1]
    when = "" if keyframe.time_s is None else f" at {format_time(keyframe.time_s)}"
    picture = shrink(keyframe, arguments.side)
    return ToolResult(
        f"Keyframe {number} of {name_of(run)}{when}, {picture.width} x {picture.height} pixels.", pictures=(encode_picture(picture),)
    )


def nearest(frames: list[KeyframePicture], time_s: float) -> int:
    """Return the number of the keyframe nearest to a time."""
    gaps = [inf if frame.time_s is None else abs(frame.time_s - time_s) for frame in frames]
    if not gaps or min(gaps) == inf:
        raise InputError("The keyframes of this run have no times. Give a number.")
    return 1 + gaps.index(min(gaps))


def shrink(keyframe: KeyframePicture, side_px: int) -> Image.Image:
    """Return the picture with a longer side of at most so many pixels."""
    picture = shown(open_picture(BytesIO(keyframe.data), "The keyframe"))
    height, width = picture.shape[:2]
    scale = min(1.0, side_px / max(height, width))
    if scale < 1:
        size = max(1, round(width * scale)), max(1, round(height * scale))
        return Image.fromarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA))
    return Image.fromarray(picture)


def _show(run: Run, model: str, tokens: int, workshop: Workshop) -> ToolResult:
    notes: list[str] = []
    pictures, done = draw_sheets(run, model=model, tokens=tokens, prices=load_prices(None), note=notes.append)
    count, sheets = len(run.keyframes), counted(len(pictures), "picture")
    lines = [f"{name_of(run)}: {counted(count, 'keyframe')} on {sheets}, {done.tokens:,} tokens of {done.model}. Number and time of each:"]
    timed = [(number, frame) for number, frame in enumerate(run.keyframes, 1) if frame.time_s is not None]
    lines.append(", ".join(f"{number} {stamp_of(frame)}" for number, frame in timed) or "without times")
    said = tuple({"note": text} for text in [*run.notes, *notes])
    return ToolResult("\n".join(lines), data=said, pictures=tuple(pictures))


def _seconds(text: str) -> float:
    try:
        return float(seconds_of(text))
    except ValueError as exc:
        raise UsageError(f"time: {exc}.") from exc


def encode_picture(picture: Image.Image) -> bytes:
    """Return the picture as JPEG."""
    file = BytesIO()
    picture.save(file, "JPEG", quality=JPEG_QUALITY)
    return file.getvalue()
