"""How many pictures a person would count among the candidates, and which of them show the same: what `-n auto` decides by.

Two frames of one picture are alike for the embedder (cosine at least its bound) and nothing changed between them that a person would
call another picture (`local_change`). How much has to change depends on how restless the video is there: where every frame differs
from the next a little, as a speaker sways or a camera moves, a change has to be twice that to count; a slide that stands still is another
one with the first words that differ. A frame that is unlike both its neighbours in a still stretch (somebody walks in, a page fades)
shows no picture of its own; it goes with the neighbour that it is more like. A shot between two cuts that lasts long enough to be seen is
not joined to what is beside it, however restless it is in itself.

    likeness of two runs of frames = min(cosine, 1 - (1 - bound) · change)        from the bound on they are one picture

The runs that are most alike are joined first, until no two neighbours are one picture. Then a still picture that comes back is joined to
the run that showed it before. The likeness of each joining makes the curve of the run's page.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from vip.extraction.analyze import FrameAnalysis
from vip.local_change import ALL_CHANGED, NOTHING_GONE, STANDS_STILL, UNCHANGED, LocalChange, Restlessness, change_of_thumbnails
from vip.ranks import interpolated_quantile

CUT_COSINE = 0.5  # of two views, below which nothing needs to be compared place by place
RESTLESS_AROUND = 4  # pairs on either side that say how restless a video is at a frame
RESTLESS_QUANTILE = 0.3  # of their changes: a slide of two or three candidates is still
PICTURE_S = 1.0  # what moves and is shown for less is on its way
SHOT_S, SHOT_STRENGTH = 0.3, 3.0  # but not a shot: its frames are alike, and far from those before it and behind it
PAN_COSINE = 0.94  # of two views: all of the picture changes in a fast pan, but little at once of what there is to see
CUT_SOLID = 1 / 3  # of the picture: film beside slides is half of it; a gesture in close-up changes less in one piece
OTHER_CELLS = 0.25  # share of the signature's cells that differ, from which on a picture has not come back
CELL_LEVELS = 24  # of 255: more than flicker and noise change in a cell

ANY_BOUND = 0.5  # where local changes decide alone, it matters only that there is one

Cosine = Callable[[int, int], float]


@dataclass(frozen=True, slots=True, order=True)
class FrameRun:
    """Frames in a row that show one picture."""

    first: int
    """Row of the first frame that shows it whole; the first row where none does."""
    last: int
    """Row of the last such frame: of a slide that is built up, the fullest."""
    typical: int
    """The row whose vector stands for the run."""
    is_settled: bool
    """Whether a frame shows it whole."""
    is_built: bool = False
    """Whether its last lines joined while it was shown."""


@dataclass(frozen=True, slots=True)
class DistinctPicture:
    """One of the pictures that a person would count."""

    rows: tuple[int, ...]
    """The frames that show it, in time order, and those that pass from it to the next."""
    whole: tuple[int, ...]
    """The frames that show it whole; all where none does."""
    fullest: int | None
    """The row that shows all of it, where it was built up line by line."""


def distinct_pictures(
    frames: Sequence[FrameAnalysis], cosine: Cosine, redundant: float, *, shown_s: Sequence[tuple[float, float]] | None = None
) -> tuple[tuple[DistinctPicture, ...], tuple[tuple[int, float], ...]]:
    """Return the pictures that the frames show, in the order in which they are first seen, and the curve.

    The curve is, for each number of pictures, the likeness of the next two to be taken for one.

    Args:
        frames: good frames in time order, copies among them.
        cosine: of two rows, as the pruner sees it: image and text.
        redundant: the cosine from which on two frames of this embedder show the same.
        shown_s: from when to when what each frame shows was seen; where it is left out, just then.
    """
    joining = _Joining(_Comparison(frames, cosine, redundant), shown_s)
    joining.join_neighbours(down_to=redundant)
    joining.unsettle_short()
    joining.join_neighbours(down_to=redundant)
    joining.join_returned()
    pictures = joining.pictures()
    joining.join_neighbours(down_to=-np.inf)
    return pictures, tuple(reversed(joining.curve))


def passing(frames: Sequence[FrameAnalysis]) -> list[int]:
    """Return the rows of frames of still views that show what no frame a second before or behind them shows, as far as one looked."""
    joining = _Joining(_Comparison(frames, lambda a, b: 1.0, ANY_BOUND))
    passes = {row for row in range(len(frames)) if not joining.comparison.is_settled[row]}
    joining.join_neighbours(down_to=ANY_BOUND)
    short = {row for key in joining.short() for row in joining.rows[key] if joining.comparison.restless[row].is_still}
    return sorted(passes | short)


class _Comparison:
    """Cosines and local changes of frames, and how restless the video is at each."""

    def __init__(self, frames: Sequence[FrameAnalysis], cosine: Cosine, redundant: float) -> None:
        self.frames, self.cosine, self.redundant = frames, cosine, redundant
        self._around = _restlessness([self._moved(row) for row in range(len(frames) - 1)])
        self.restless = [self._restless(row) for row in range(len(frames))]
        self.is_settled = [not self._passes(row) for row in range(len(frames))]

    def likeness(self, before: FrameRun, now: FrameRun, *, is_cut: bool = False) -> tuple[float, bool]:
        """Return how alike two neighbouring runs are, and whether the later one only adds lines to the earlier.

        Args:
            is_cut: two shots meet between them, so what changed decides however restless they are.
        """
        if not (is_cut or (before.is_settled and now.is_settled)):
            return self.cosine(before.typical, now.typical), False
        restless = _larger(self.restless[before.last], self.restless[now.first])
        change = self.change(before.last, now.first)
        if restless.is_still and change.is_progress:
            return max(self.redundant, self._as_likeness(change, restless)), True
        local = self._as_likeness(change, restless)
        return (local if restless.is_still else min(local, self.cosine(before.typical, now.typical))), False

    def return_likeness(self, before: FrameRun, now: FrameRun) -> float | None:
        """Return how alike the later of two runs of a still view is to the earlier if it shows nothing else; None if it does."""
        restless = _larger(self.restless[before.last], self.restless[now.last])
        if not (before.is_settled and restless.is_still):
            return None
        one, other = (self.frames[run.last].signature.astype(np.int16) for run in (before, now))
        if float((np.abs(one - other).max(axis=2) > CELL_LEVELS).mean()) > OTHER_CELLS:
            return None
        back = self.change(now.last, before.last)
        if back.is_progress and back.gone < NOTHING_GONE:  # chance finds slides with few words that look as if lines had joined them
            return self.redundant  # as the other was before all lines had joined
        likeness = self._as_likeness(self.change(before.last, now.last), restless)
        return likeness if likeness > self.redundant else None

    def change(self, before: int, now: int) -> LocalChange:
        """Return what changed from one row to another; everything where a cut lies between."""
        one, other = self.frames[before], self.frames[now]
        return ALL_CHANGED if float(one.view @ other.view) < CUT_COSINE else change_of_thumbnails(one.thumbnail, other.thumbnail)

    def strength(self, before: int, now: int) -> float:
        """Return how much changed from one row to another; 1 makes another picture."""
        return self.change(before, now).strength(_larger(self.restless[before], self.restless[now]))

    def _moved(self, row: int) -> LocalChange:
        """Return what changes to the next frame; nothing where lines join."""
        change = self.change(row, row + 1)
        return UNCHANGED if change.is_progress else change

    def _restless(self, row: int) -> Restlessness:
        """Return how much changes at a frame while nothing happens: nothing where packets say so."""
        if self.frames[row].is_still:
            return STANDS_STILL
        beside = self._beside(row)
        return Restlessness(
            min([self._around[row].solid, *(change.solid for change in beside)]),
            min([self._around[row].content, *(change.content for change in beside)]),
        )

    def _passes(self, row: int) -> bool:
        """Return whether a frame is far less like both its neighbours than frames are there, and moves."""
        beside = self._beside(row)
        return len(beside) == 2 and not self.frames[row].is_still and min(change.strength(self._around[row]) for change in beside) >= 1

    def _beside(self, row: int) -> list[LocalChange]:
        """Return what changes to the frame from the one before, and from it to the next."""
        return [self._moved(a) for a in (row - 1, row) if 0 <= a < len(self.frames) - 1]

    def _as_likeness(self, change: LocalChange, restless: Restlessness) -> float:
        """Return 1 where nothing changed, and the bound where just as much did as another picture takes."""
        return 1 - (1 - self.redundant) * change.strength(restless)


def _larger(one: Restlessness, other: Restlessness) -> Restlessness:
    return Restlessness(max(one.solid, other.solid), max(one.content, other.content))


def _restlessness(moved: Sequence[LocalChange]) -> list[Restlessness]:
    """Return for each of N frames how much changes from frame to frame around it, from the N - 1 changes."""
    around = [moved[max(0, row - RESTLESS_AROUND) : row + RESTLESS_AROUND] for row in range(len(moved) + 1)]
    return [
        Restlessness(
            interpolated_quantile([change.solid for change in window], RESTLESS_QUANTILE),
            interpolated_quantile([change.content for change in window], RESTLESS_QUANTILE),
        )
        if window
        else STANDS_STILL
        for window in around
    ]


class _Joining:
    """Runs of frames, linked in time; the two neighbours that are most alike are joined first."""

    def __init__(self, comparison: _Comparison, shown_s: Sequence[tuple[float, float]] | None = None) -> None:
        self.comparison = comparison
        self.shown_s = shown_s or [(frame.time_s, frame.time_s) for frame in comparison.frames]
        count = len(comparison.frames)
        self.runs = {row: FrameRun(row, row, row, comparison.is_settled[row]) for row in range(count)}
        self.rows = {row: [row] for row in range(count)}
        self.before, self.after = {row: row - 1 for row in range(count)}, {row: row + 1 for row in range(count)}
        self.cuts = self._cuts()
        self.curve: list[tuple[int, float]] = []
        self.heap: list[tuple[float, int, int, FrameRun, FrameRun, bool]] = []
        for row in range(count):
            self._compare_with_next(row)

    def _cuts(self) -> set[int]:
        """Return the rows with which a shot begins that is seen, as the one before it is."""
        count = len(self.comparison.frames)
        starts = [0, *(row for row in range(1, count) if self._is_other_shot(row - 1, row)), count]
        is_seen = [self._is_seen(start, end) for start, end in pairwise(starts)]
        return {start for start, before, now in zip(starts[1:], is_seen, is_seen[1:], strict=False) if before and now}

    def _is_other_shot(self, before: int, now: int) -> bool:
        """Return whether another view follows: a third of the picture changes and more, and far more than anyway there."""
        one, other = self.comparison.frames[before], self.comparison.frames[now]
        if float(one.view @ other.view) >= PAN_COSINE or self.comparison.change(before, now).solid < CUT_SOLID:
            return False
        return self.comparison.strength(before, now) >= SHOT_STRENGTH

    def _is_seen(self, start: int, end: int) -> bool:
        """Return whether the rows of a shot, `end` left out, last long enough to be seen; shorter ones are somebody who walks by where they
        differ, or where the shot before goes on behind them."""
        lasting_s = self.shown_s[end - 1][1] - self.shown_s[start][0]
        if lasting_s < SHOT_S or lasting_s >= PICTURE_S:
            return lasting_s >= PICTURE_S
        strength = self.comparison.strength
        goes_on = start > 0 and end < len(self.shown_s) and strength(start - 1, end) < 1
        return not goes_on and all(strength(row, row + 1) < 1 for row in range(start, end - 1))

    def join_neighbours(self, *, down_to: float) -> None:
        """Join neighbouring runs as long as two are at least so much alike."""
        while self.heap and -self.heap[0][0] >= down_to:
            negative, a, b, run, following, is_built = heapq.heappop(self.heap)
            if self.runs.get(a) is run and self.runs.get(b) is following:
                self.runs[a] = _joined(run, following, len(self.rows[a]) < len(self.rows[b]), is_built=is_built)
                self._take(b, into=a, likeness=-negative)
                if self.before[a] in self.runs:
                    self._compare_with_next(self.before[a])

    def unsettle_short(self) -> None:
        """Let the cosine decide about runs that move and are over before one sees a picture: somebody walks by."""
        for key in self.short():
            self.runs[key] = replace(self.runs[key], is_settled=False)
            for row in self.rows[key]:
                self.comparison.is_settled[row] = False
        for key in sorted(self.runs):
            self._compare_with_next(key)

    def short(self) -> list[int]:
        """Return the keys of settled runs that move and are over in less than a second."""
        frames = self.comparison.frames

        def is_short(key: int, run: FrameRun) -> bool:
            is_still = any(frames[row].is_still for row in self.rows[key])
            is_over = self.shown_s[run.last][1] - self.shown_s[run.first][0] < PICTURE_S
            return run.is_settled and not is_still and is_over and not self._is_shot(key)

        return [key for key, run in sorted(self.runs.items()) if is_short(key, run)]

    def _is_shot(self, key: int) -> bool:
        """Return whether a run lies between two cuts, and what comes behind it is not what was before it: nobody walks by."""
        before, after = self.runs.get(self.before[key]), self.runs.get(self.after[key])
        rows = self.rows[key]
        if before is None or after is None or self.shown_s[max(rows)][1] - self.shown_s[min(rows)][0] < SHOT_S:
            return False
        run = self.runs[key]
        sides = (self.comparison.strength(before.last, run.first), self.comparison.strength(run.last, after.first))
        return min(sides) >= SHOT_STRENGTH and self.comparison.strength(before.last, after.first) >= 1

    def join_returned(self) -> None:
        """Join each still run to the earliest one whose picture it shows again."""
        for b in sorted(self.runs):
            for a in sorted(self.runs):
                if a >= b:
                    break
                likeness = self.comparison.return_likeness(self.runs[a], self.runs[b])
                if likeness is not None:
                    self._take(b, into=a, likeness=likeness)
                    break

    def pictures(self) -> tuple[DistinctPicture, ...]:
        return tuple(self._picture(key) for key in sorted(self.runs))

    def _picture(self, key: int) -> DistinctPicture:
        rows, run = tuple(sorted(self.rows[key])), self.runs[key]
        whole = tuple(row for row in rows if self.comparison.is_settled[row])
        return DistinctPicture(rows, whole or rows, self._fullest(run, whole) if run.is_built else None)

    def _fullest(self, run: FrameRun, whole: Sequence[int]) -> int:
        """Return the last row that shows a picture whole and stands still, not the frame in which the next one comes."""
        frames = self.comparison.frames
        return max((row for row in whole if row <= run.last and frames[row].is_still and not frames[row].in_transition), default=run.last)

    def _take(self, key: int, *, into: int, likeness: float) -> None:
        """Take a run out; its rows join another one's."""
        self.curve.append((len(self.runs), likeness))
        del self.runs[key]
        self.rows[into] += self.rows.pop(key)
        before, after = self.before[key], self.after[key]
        if after in self.before:
            self.before[after] = before
        self.after[before] = after
        self._compare_with_next(before)

    def _compare_with_next(self, key: int) -> None:
        following = self.after[key]
        if following in self.runs:
            run, other = self.runs[key], self.runs[following]
            likeness, is_built = self.comparison.likeness(run, other, is_cut=following in self.cuts)
            heapq.heappush(self.heap, (-likeness, key, following, run, other, is_built))


def _joined(before: FrameRun, now: FrameRun, later_is_longer: bool, *, is_built: bool) -> FrameRun:
    """Return two neighbouring runs as one."""
    if before.is_settled != now.is_settled:
        return before if before.is_settled else now
    return FrameRun(before.first, now.last, (now if later_is_longer else before).typical, before.is_settled, is_built or now.is_built)
