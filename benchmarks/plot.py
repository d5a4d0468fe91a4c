#!/usr/bin/env python3
"""The picture of the benchmark: how well against how fast, and growth with the length of the video.

python benchmarks/plot.py all.json docs/benchmark.svg       # from what `extract.py --json` wrote; needs matplotlib
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import results
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter
from results import GrowthRow, MixResult, Results, Row

BEHIND = {"facecolor": "white", "edgecolor": "none", "pad": 0.8, "alpha": 0.85}  # of text, which may lie on lines
INCHES = (9.6, 4.4)
# distinguishable with any colour vision (Okabe and Ito)
LOW = 0.8  # points of a coverage below it lie close together
OURS, OTHERS, QUIET, GRID = "#0072B2", "#D55E00", "#6B6B6B", "#E4E4E4"
STYLE = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": QUIET,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "svg.hashsalt": "vip",  # the same figures give the same bytes
}


def draw(found: Results, path: Path) -> None:
    """Write the picture; the ending of the name says whether as SVG or PNG."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=INCHES, layout="constrained")
        grid = figure.add_gridspec(2, 2, width_ratios=(5, 3), height_ratios=(3, 2))
        _choice(figure.add_subplot(grid[:, 0]), found.mixes)
        _growth(figure.add_subplot(grid[0, 1]), figure.add_subplot(grid[1, 1]), found.growth)
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)


def _choice(axes: Axes, mixes: Sequence[MixResult]) -> None:
    """A point a program: coverage over wall seconds as multiples of the yardstick."""
    shared = results.side_by_side(mixes)
    timed = next((mix for mix in shared if mix.timed), shared[0])
    lowest, lower = 1.0, _lower_ones(shared)
    for row in timed.rows:
        rows = [found for mix in shared if (found := mix.row(row.program))]
        coverage, times = results.mean_coverage(rows), timed.times_yardstick(row)
        if coverage is not None:
            lowest = min(lowest, coverage)
            said = f"{_pictures(rows, shared)}, {_bad(rows)}"
            _point(axes, row.program, times[0] if times else None, coverage, said, below=row.program in lower)
        elif times and row.program == results.FULL:
            axes.axvline(times[0], color=QUIET, linewidth=1, linestyle=":", zorder=1)
            place = {"xycoords": ("data", "axes fraction"), **_label("left", QUIET)}
            axes.annotate("decoding every frame", (times[0], 0), (4, 4), **place)
    axes.set_xscale("log")
    axes.set_xlim(1, 2000)
    axes.set_ylim(math.floor(10 * lowest - 1) / 10, 1.06)
    axes.set_xticks([1, 10, 100, 1000], ["1×", "10×", "100×", "1000×"])
    axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
    axes.minorticks_off()
    axes.grid(axis="y", color=GRID, linewidth=0.8, zorder=0)
    axes.set_title("Share of N clips that the keyframes show", loc="left", fontweight="bold", fontsize=11)
    axes.set_xlabel("wall time; 1× is decoding the sync frames", color=QUIET)


def _lower_ones(mixes: Sequence[MixResult]) -> set[str]:
    """Every second of the other programs, from the best to the worst: their labels hang down, those of the others stand up."""
    names = {row.program for mix in mixes for row in mix.rows if row.wall_s is not None} - {results.VIP, results.VIP_MORE}
    known = {name: results.mean_coverage([row for mix in mixes if (row := mix.row(name))]) for name in names}
    return {*sorted((name for name, coverage in known.items() if coverage is not None), key=lambda name: (-(known[name] or 0), name))[1::2]}


def _point(axes: Axes, program: str, times: float | None, coverage: float, said: str, *, below: bool) -> None:
    """A program, or, without a time, a rule as a line."""
    if times is None:
        axes.axhline(coverage, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
        place = {"xycoords": ("axes fraction", "data"), **_label("right", QUIET)}
        axes.annotate(f"{program}: {said}", (1, coverage), (-4, 3), **place)
        return
    ours = program in (results.VIP, results.VIP_MORE)
    colour = OURS if ours else OTHERS
    axes.plot(times, coverage, "o", markersize=8, color=colour, zorder=5)
    # the two points of vip lie one above the other; what is far to the right has its label on the left, and so has the lowest that hangs
    hangs = program == results.VIP or (below and not ours)
    vertical, shift = ("top", -6) if hangs else ("bottom", 5)
    side, away = ("right", 6) if times > 400 or (below and coverage < LOW) else ("left", -6)
    axes.annotate(f"{'vip' if ours else program}\n{said}", (times, coverage), (away, shift), **_label(side, colour, vertical))


def _growth(time: Axes, memory: Axes, growth: Sequence[GrowthRow]) -> None:
    """Seconds of vip and of ffmpeg, and below them the memory of vip, over minutes."""
    minutes = [row.length_s / 60 for row in growth]
    _line(time, minutes, [row.sync_wall_s for row in growth], QUIET)
    _line(time, minutes, [row.wall_s for row in growth], OURS, "{:.1f}")
    _line(memory, minutes, [row.peak_mb for row in growth], OURS, "{:.0f}")
    ours, theirs = ((-36, 5), (-6, -16)) if growth[-1].wall_s > growth[-1].sync_wall_s else ((-6, -20), (-6, 5))
    time.annotate("vip -n 32", (minutes[-1], growth[-1].wall_s), ours, **_label("right", OURS))
    time.annotate("ffmpeg", (minutes[-1], growth[-1].sync_wall_s), theirs, **_label("right", QUIET))
    memory.axhline(results.MOST_PEAK_MB, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
    memory.annotate("the most allowed", (minutes[-1] / 2, results.MOST_PEAK_MB), (0, 3), **_label("center", QUIET))
    time.set_title("Wall time, s", loc="left", fontweight="bold", fontsize=11)
    memory.set_title("Memory, MB", loc="left", fontweight="bold", fontsize=11)
    memory.set_xlabel("minutes of 720p H.264", color=QUIET)
    time.set_ylim(0, max(growth[-1].wall_s, growth[-1].sync_wall_s) * 1.25)
    memory.set_ylim(0, max(results.MOST_PEAK_MB, *(row.peak_mb for row in growth)) * 1.3)
    for axes in (time, memory):
        axes.set_xlim(0, minutes[-1] * 1.08)
        axes.set_xticks(minutes, [f"{x:.3g}" for x in minutes])
        axes.grid(axis="y", color=GRID, linewidth=0.8, zorder=0)


def _line(axes: Axes, minutes: Sequence[float], values: Sequence[float], colour: str, said: str = "") -> None:
    axes.plot(minutes, values, "o-", color=colour, linewidth=1.8, markersize=5, zorder=3)
    for x, value in zip(minutes, values, strict=True):
        if said:
            axes.annotate(said.format(value), (x, value), (2, 5), **_label("center" if x < minutes[-1] / 2 else "right", colour))


def _pictures(rows: Sequence[Row], mixes: Sequence[MixResult]) -> str:
    share = f"{sum(row.keyframes or 0 for row in rows) / sum(mix.segments for mix in mixes):.1f} "
    return f"{'' if share == '1.0 ' else share}N pictures"


def _bad(rows: Sequence[Row]) -> str:
    return f"{100 * (results.share_bad(rows) or 0):.0f} % bad"


def _label(side: str, colour: str, vertical: str = "bottom") -> dict[str, object]:
    look = {"color": colour, "fontsize": 9, "linespacing": 1.25, "bbox": BEHIND, "zorder": 4}
    return {"textcoords": "offset points", "ha": side, "va": vertical, **look}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path)
    parser.add_argument("picture", type=Path, help=".svg or .png")
    args = parser.parse_args()
    draw(results.read_json(args.json), args.picture)


if __name__ == "__main__":
    main()
