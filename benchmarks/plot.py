#!/usr/bin/env python3
"""The picture of the benchmark: how well against how fast, and growth with the length of the video.

python benchmarks/plot.py all.json docs/benchmark.svg       # from what `extract.py --json` wrote; needs matplotlib
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import results
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from results import GrowthRow, MixResult, Results, Row

INCHES = (9.6, 4.0)
# distinguishable with any colour vision (Okabe and Ito)
OURS, OTHERS, MEMORY, QUIET = "#0072B2", "#D55E00", "#009E73", "#6B6B6B"
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
        left, right = figure.subplots(1, 2, width_ratios=(3, 2))
        _choice(left, found.mixes)
        _growth(right, found.growth)
        figure.savefig(path, dpi=120, metadata={"Date": None} if path.suffix == ".svg" else None)


def _choice(axes: Axes, mixes: Sequence[MixResult]) -> None:
    """A point a program: coverage over wall seconds as multiples of the yardstick."""
    shared = results.side_by_side(mixes)
    timed = next((mix for mix in shared if mix.timed), shared[0])
    for row in timed.rows:
        rows = [found for mix in shared if (found := mix.row(row.program))]
        coverage, times = results.mean_coverage(rows), timed.times_yardstick(row)
        if coverage is None:
            continue
        if times is None:  # a rule, not a program
            axes.axhline(coverage, color=QUIET, linewidth=1, linestyle=(0, (4, 3)), zorder=1)
            axes.annotate(
                f"N evenly spaced, {_bad(rows)}", (1, coverage), (-2, 4), **_label("right", QUIET), xycoords=("axes fraction", "data")
            )
            continue
        colour = OURS if row.program in (results.VIP, results.VIP_MORE) else OTHERS
        axes.plot(times[0], coverage, "o", markersize=8, color=colour, zorder=3)
        label = f"{row.program}\n{_pictures(rows, shared)}, {_bad(rows)}"
        above = row.program != results.VIP  # beside it lies vip with 1.3 N
        axes.annotate(label, (times[0], coverage), (9, 0 if above else -3), **_label("left", colour, va="bottom" if above else "top"))
    axes.set_xscale("log")
    axes.set_xlim(1, 10**3.2)
    axes.set_ylim(0, 1.1)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1.0], ["0", "25 %", "50 %", "75 %", "100 %"])
    axes.set_xticks([1, 10, 100, 1000], ["1×", "10×", "100×", "1000×"])
    axes.minorticks_off()
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8, zorder=0)
    axes.set_title("Clips that the keyframes show", loc="left", fontweight="bold")
    axes.set_xlabel(f"wall time, as a multiple of decoding the sync frames ({timed.name})", color=QUIET)


def _growth(axes: Axes, growth: Sequence[GrowthRow]) -> None:
    """Wall seconds of vip and of ffmpeg over minutes, memory as text at each point."""
    minutes = [row.length_s / 60 for row in growth]
    axes.plot(minutes, [row.wall_s for row in growth], "o-", color=OURS, linewidth=2, markersize=7, zorder=3)
    axes.plot(minutes, [row.sync_wall_s for row in growth], "o--", color=QUIET, linewidth=1.2, markersize=4, zorder=2)
    for x, row in zip(minutes, growth, strict=True):
        axes.annotate(f"{row.wall_s:.1f} s\n{row.peak_mb:.0f} MB", (x, row.wall_s), (0, 8), **_label("center", OURS, va="bottom"))
    last = growth[-1]
    axes.annotate("vip -n 32", (minutes[-1], last.wall_s), (-30, -14), **_label("right", OURS, va="top"))
    axes.annotate("ffmpeg, sync frames", (minutes[-1], last.sync_wall_s), (0, -8), **_label("right", QUIET, va="top"))
    axes.set_xlim(0, minutes[-1] * 1.12)
    axes.set_ylim(0, last.wall_s * 1.3)
    axes.set_xticks(minutes, [f"{x:g}" for x in minutes])
    axes.grid(axis="y", color="#E4E4E4", linewidth=0.8, zorder=0)
    axes.set_title("Seconds and memory by length", loc="left", fontweight="bold")
    axes.set_xlabel("minutes of 720p H.264", color=QUIET)
    axes.set_ylabel("wall time, s", color=QUIET)


def _pictures(rows: Sequence[Row], mixes: Sequence[MixResult]) -> str:
    return f"{sum(row.keyframes or 0 for row in rows) / sum(mix.segments for mix in mixes):.1f} N pictures"


def _bad(rows: Sequence[Row]) -> str:
    return f"{100 * (results.share_bad(rows) or 0):.0f} % bad"


def _label(side: str, colour: str, va: str = "bottom") -> dict[str, object]:
    return {"textcoords": "offset points", "ha": side, "va": va, "color": colour, "fontsize": 9, "linespacing": 1.25}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("json", type=Path)
    parser.add_argument("picture", type=Path, help=".svg or .png")
    args = parser.parse_args()
    draw(results.read_json(args.json), args.picture)


if __name__ == "__main__":
    main()
