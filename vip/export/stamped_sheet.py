"""Contact sheets for a model: grids of keyframes with their times burnt in, under a budget of tokens, and the cells as JSON.

In: a run. Out: RUN/sheets/1.jpg …, and RUN/sheets/sheets.json, which maps each cell to its keyframe and time. A sheet is one picture
for the model: its frames cost far fewer tokens than single pictures would.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from io import BytesIO
from itertools import islice
from pathlib import Path
from statistics import median

import cv2
from PIL import Image, ImageDraw

from vip import files, store
from vip.errors import InputError, StoreError, UsageError, did_you_mean
from vip.export.fonts import font_for, wrap_text
from vip.export.sheet import format_time
from vip.export.sheet_drawing import FIELD, HIGHEST_ASPECT, INK, LOWEST_ASPECT
from vip.export.sheet_plan import GAP_PX, SheetPlan, plan_as_many
from vip.llm.prices import PriceList, price_of
from vip.llm.tokens import Detail, PictureRule, picture_tokens
from vip.records import Record, RecordPart
from vip.store import KeyframePicture, Run
from vip.untrusted import one_line
from vip.video.pillow import open_picture, shown
from vip.wording import counted, option

FOLDER, INDEX = "sheets", "sheets.json"
NAME = re.compile(r"[1-9]\d*\.jpg")
DETAIL: Detail = "high"  # what vip asks for too, and where it matters the dearest
STAMP_SHARE, LEAST_STAMP_PX = 14, 16  # a stamp is a 14th of the frame's longer side high
STAMP_INK, STAMP_FIELD = "#ffffff", "#000000"
BACKGROUND = "#1d1c1a"
JPEG_QUALITY = 90


class SheetCell(RecordPart):
    """A frame on a sheet."""

    row: int
    column: int
    box_xyxy: tuple[int, int, int, int]
    keyframe_id: str
    time_s: float | None
    stamp: str
    """As it is burnt in."""


class ContactSheet(RecordPart):
    """One picture for the model."""

    path: str
    """Below the folder of sheets.json."""
    width_px: int
    height_px: int
    tokens: int
    """By the rule of the model's provider."""
    cells: tuple[SheetCell, ...]


class ContactSheets(Record):
    """The content of sheets.json."""

    model: str
    budget_tokens: int
    tokens: int
    keyframes: int
    """Of the run; those without a cell did not fit."""
    sheets: tuple[ContactSheet, ...]


def write_sheets(run: Run, *, model: str, tokens: int, prices: PriceList, note: Callable[[str], None]) -> ContactSheets:
    """Write the sheets of a run into its folder, and delete those of an earlier call.

    Args:
        tokens: what all sheets may cost the model.

    Raises:
        UsageError: vip does not know how the model counts pictures, or no frame fits the budget.
        InputError: the run has no keyframes.
        StoreError: the run is damaged, or the folder cannot be written.
    """
    rule = _rule_of(model, prices)
    plan = plan_run(run, model=model, tokens=tokens, rule=rule, note=note)
    folder = run.folder / FOLDER
    store.make_folder(folder, inside=run.folder)
    sheets = list[ContactSheet]()
    for data, sheet in _drawn_sheets(run, plan, rule, note):
        with store.replacing(folder / sheet.path, inside=run.folder) as out:
            out.write(data)
        sheets.append(sheet)
    done = ContactSheets(model=model, budget_tokens=tokens, tokens=plan.tokens, keyframes=len(run.keyframes), sheets=tuple(sheets))
    store.write_json(folder / INDEX, done, inside=run.folder)
    _delete_others(folder, run.folder, {sheet.path for sheet in sheets})
    return done


def draw_sheets(run: Run, *, model: str, tokens: int, prices: PriceList, note: Callable[[str], None]) -> tuple[list[bytes], ContactSheets]:
    """Return the sheets of a run as JPEG, and what is on them; nothing is written. Arguments and errors as of `write_sheets`."""
    rule = _rule_of(model, prices)
    plan = plan_run(run, model=model, tokens=tokens, rule=rule, note=note)
    drawn = list(_drawn_sheets(run, plan, rule, note))
    sheets = tuple(sheet for _, sheet in drawn)
    done = ContactSheets(model=model, budget_tokens=tokens, tokens=plan.tokens, keyframes=len(run.keyframes), sheets=sheets)
    return [data for data, _ in drawn], done


def plan_run(run: Run, *, model: str, tokens: int, rule: PictureRule, note: Callable[[str], None]) -> SheetPlan:
    """Return the plan for as many keyframes of a run as fit into the budget; note where some do not.

    Raises:
        UsageError: no frame fits the budget.
        InputError: the run has no keyframes.
    """
    keyframes = run.keyframes
    if not keyframes:
        raise InputError(f"{run.folder} has no keyframes.")
    aspect = min(HIGHEST_ASPECT, max(LOWEST_ASPECT, median(frame.record.width_px / max(1, frame.record.height_px) for frame in keyframes)))
    plan = plan_as_many(len(keyframes), aspect=aspect, rule=rule, detail=DETAIL, tokens=tokens)
    if plan is None:
        budget = counted(tokens, "token")
        raise UsageError(f"No frame that a person could see costs {model} at most {budget}. Give more with {option('tokens')}.")
    if plan.frames < len(keyframes):
        note(f"{plan.frames} of {len(keyframes)} keyframes fit into {tokens:,} tokens, evenly chosen. Give more with {option('tokens')}.")
    return plan


def evenly(keyframes: Sequence[KeyframePicture], count: int) -> list[KeyframePicture]:
    """Return so many of the keyframes, spread over their order; of more than one the first and the last are among them."""
    if count == 1:
        return [keyframes[len(keyframes) // 2]]
    return [keyframes[round(place * (len(keyframes) - 1) / (count - 1))] for place in range(count)]


def _rule_of(model: str, prices: PriceList) -> PictureRule:
    """Return how the model's provider counts pictures."""
    price = price_of(prices, model, None)
    if price is None or price.picture is None:
        known = {entry.model for entry in (*prices.own, *prices.built_in) if entry.picture}
        close = [name for name in sorted(known) if model.casefold() in name][:5] or get_close_matches(model, known)
        raise UsageError(
            f"vip does not know how {one_line(model)} counts pictures.{did_you_mean(model, close) if close else ''}"
            f" Name a model such as gpt-5.4-mini, or give its rule with {option('prices', 'FILE')}."
        )
    return price.picture


def _drawn_sheets(run: Run, plan: SheetPlan, rule: PictureRule, note: Callable[[str], None]) -> Iterator[tuple[bytes, ContactSheet]]:
    """Yield each sheet as JPEG with its cells; one is in memory at a time."""
    rest = iter(evenly(run.keyframes, plan.frames))
    for number, count in enumerate(plan.frames_of(), 1):
        picture, cells = draw_stamped(list(islice(rest, count)), plan, note)
        width, height = picture.size
        file = BytesIO()
        picture.save(file, "JPEG", quality=JPEG_QUALITY)
        tokens = picture_tokens(rule, width, height, DETAIL)
        yield file.getvalue(), ContactSheet(path=f"{number}.jpg", width_px=width, height_px=height, tokens=tokens, cells=tuple(cells))


def draw_stamped(keyframes: Sequence[KeyframePicture], plan: SheetPlan, note: Callable[[str], None]) -> tuple[Image.Image, list[SheetCell]]:
    """Return one sheet and its cells; a picture that cannot be read is a grey field that says so, and is noted."""
    sheet = Image.new("RGB", plan.size_px(len(keyframes)), BACKGROUND)
    drawing, cells = ImageDraw.Draw(sheet), list[SheetCell]()
    for place, keyframe in enumerate(keyframes):
        row, column = divmod(place, plan.columns)
        x, y = column * (plan.cell_width_px + GAP_PX), row * (plan.cell_height_px + GAP_PX)
        box = (x, y, x + plan.cell_width_px, y + plan.cell_height_px)
        stamp = stamp_of(keyframe)
        try:
            small = _fit(keyframe, plan)
        except InputError as exc:
            note(str(exc))
            drawing.rectangle((box[0], box[1], box[2] - 1, box[3] - 1), fill=FIELD)
            _write_stamp(drawing, "cannot be read", (x, y), plan, ink=INK, field=FIELD)
        else:
            sheet.paste(small, (x + (plan.cell_width_px - small.width) // 2, y + (plan.cell_height_px - small.height) // 2))
        _write_stamp(drawing, stamp, (x, box[3]), plan, anchor="lb")
        cells.append(SheetCell(row=row, column=column, box_xyxy=box, keyframe_id=keyframe.id, time_s=keyframe.time_s, stamp=stamp))
    return sheet, cells


def stamp_of(keyframe: KeyframePicture) -> str:
    """Return `1:02.40`; the name of a picture that comes from no video."""
    return one_line(keyframe.id) if keyframe.time_s is None else format_time(keyframe.time_s)


def _fit(keyframe: KeyframePicture, plan: SheetPlan) -> Image.Image:
    """Return the picture scaled to its cell.

    Raises:
        InputError: it is missing, damaged or too large.
    """
    opened = open_picture(BytesIO(keyframe.data), f"keyframe {one_line(keyframe.id)}")
    longer_px = max(plan.cell_width_px, plan.cell_height_px)
    opened.draft("RGB", (2 * longer_px, 2 * longer_px))  # a JPEG is decoded at a fraction of its size
    picture = shown(opened)
    height, width = picture.shape[:2]
    scale = min(plan.cell_width_px / width, plan.cell_height_px / height)
    size = max(1, round(width * scale)), max(1, round(height * scale))
    return Image.fromarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC))


def _write_stamp(
    drawing: ImageDraw.ImageDraw,
    text: str,
    at: tuple[int, int],
    plan: SheetPlan,
    *,
    anchor: str = "la",
    ink: str = STAMP_INK,
    field: str = STAMP_FIELD,
) -> None:
    """Write a stamp into a corner of a cell, on a field of its own, cut to the cell's width."""
    size_px = max(LEAST_STAMP_PX, max(plan.cell_width_px, plan.cell_height_px) // STAMP_SHARE)
    font = font_for(text, size_px)
    lines = wrap_text(text, font, plan.cell_width_px - size_px // 2) if font else []
    if not font or not lines:
        return
    width_px, height_px = round(drawing.textlength(lines[0], font)) + size_px // 2, round(size_px * 1.3)
    x, y = at
    top = y - height_px if anchor == "lb" else y
    drawing.rectangle((x, top, x + width_px - 1, top + height_px - 1), fill=field)
    drawing.text((x + size_px // 4, top + height_px // 2), lines[0], ink, font, anchor="lm")


def _delete_others(folder: Path, inside: Path, kept: set[str]) -> None:
    for name in files.names_in(folder, inside=inside):
        if NAME.fullmatch(name) and name not in kept:
            try:
                files.remove(folder / name, inside=inside)
            except OSError as exc:
                raise StoreError(f"{folder / name} cannot be deleted: {exc.strerror}.") from exc
