"""Plan of contact sheets for a model: as few pictures as a budget of tokens allows, each frame large enough to be seen.

In: how many frames, their shape, and how the provider counts tokens. Out: the grid of a sheet. A sheet is never larger than what the
model sees: a provider that shrinks it would shrink the time stamps too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from vip.llm.tokens import Detail, PictureRule, is_shrunk, picture_tokens

GAP_PX = 4
CELL_PX = (768, 640, 512, 448, 384, 320, 288, 256, 224, 192, 160)
"""The longer side of a frame."""
LEGIBLE_PX = (256, 160)
"""A frame is at least the first if the budget allows, never less than the second."""
MOST_IN_LINE = 64  # frames of a row or a column; no sheet has room for more
MOST_SIDE_PX = 4096  # servers refuse pictures from some size on, most from 8,000


@dataclass(frozen=True, slots=True)
class SheetPlan:
    """The grid that all sheets have; the last may have fewer rows."""

    frames: int
    columns: int
    rows: int
    cell_width_px: int
    cell_height_px: int
    tokens: int
    """Of all sheets."""

    @property
    def cells(self) -> int:
        return self.columns * self.rows

    @property
    def sheets(self) -> int:
        return -(-self.frames // self.cells)

    @property
    def ratio(self) -> float:
        """The longer side of a full sheet over the shorter one."""
        size = self.size_px(min(self.cells, self.frames))
        return max(size) / min(size)

    def size_px(self, frames: int) -> tuple[int, int]:
        """Return width and height of a sheet with so many frames."""
        columns = min(self.columns, frames)
        rows = -(-frames // self.columns)
        return columns * (self.cell_width_px + GAP_PX) - GAP_PX, rows * (self.cell_height_px + GAP_PX) - GAP_PX

    def frames_of(self) -> list[int]:
        """Return how many frames each sheet has."""
        return [min(self.cells, self.frames - start) for start in range(0, self.frames, self.cells)]


def plan_sheets(frames: int, *, aspect: float, rule: PictureRule, detail: Detail, tokens: int) -> SheetPlan | None:
    """Return the plan with the fewest sheets, and of those the one with the largest frames, the fewest tokens, the squarest.

    Args:
        aspect: width over height of the frames.
        tokens: the budget of all sheets.

    Returns:
        None where so many frames do not fit.
    """
    for least_px in LEGIBLE_PX:
        for sheets in range(1, frames + 1):
            plans = _plans(frames, sheets, aspect=aspect, least_px=least_px, rule=rule, detail=detail, tokens=tokens)
            if best := max(plans, key=lambda plan: (plan.cell_width_px, -plan.tokens, -plan.ratio), default=None):
                return best
            if sheets * picture_tokens(rule, least_px, least_px, detail) > tokens:  # more pictures cost more than the budget
                break
    return None


def plan_as_many(frames: int, *, aspect: float, rule: PictureRule, detail: Detail, tokens: int) -> SheetPlan | None:
    """Return the plan for as many of the frames as fit; None where not even one does."""
    best = plan_sheets(frames, aspect=aspect, rule=rule, detail=detail, tokens=tokens)
    if best:
        return best
    low, high = 1, frames - 1
    while low <= high:
        middle = (low + high) // 2
        if plan := plan_sheets(middle, aspect=aspect, rule=rule, detail=detail, tokens=tokens):
            best, low = plan, middle + 1
        else:
            high = middle - 1
    return best


def _plans(
    frames: int, sheets: int, *, aspect: float, least_px: int, rule: PictureRule, detail: Detail, tokens: int
) -> Iterator[SheetPlan]:
    """Yield the grids with exactly so many sheets that fit the budget and are not shrunk."""
    each = -(-frames // sheets)
    for columns in range(1, min(each, MOST_IN_LINE) + 1):
        rows = -(-each // columns)
        if rows > MOST_IN_LINE or -(-frames // (columns * rows)) != sheets:
            continue
        for longer_px in CELL_PX:
            if longer_px < least_px:
                break
            width_px = longer_px if aspect >= 1 else max(1, round(longer_px * aspect))
            height_px = max(1, round(longer_px / aspect)) if aspect >= 1 else longer_px
            plan = SheetPlan(frames, columns, rows, width_px, height_px, 0)
            size, last = plan.size_px(min(plan.cells, frames)), plan.size_px(frames - (sheets - 1) * plan.cells)
            if max(size) > MOST_SIDE_PX or is_shrunk(rule, *size, detail):
                continue
            cost = (sheets - 1) * picture_tokens(rule, *size, detail) + picture_tokens(rule, *last, detail)
            if cost <= tokens:
                yield SheetPlan(frames, columns, rows, width_px, height_px, cost)
