"""What the benchmark found, the goals it is held to, and the table."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

SYNC, SYNC_PACKETS, FULL = "ffmpeg, sync frames", "PyAV, sync packets", "ffmpeg, all frames"
VIP, VIP_MORE, EVEN = "vip", "vip, 1.3 N", "evenly spaced"
KATNA, SCENEDETECT, CLAUDE_REAL_VIDEO = "Katna", "PySceneDetect", "claude-real-video"

LEAST_COVERAGE, LEAST_COVERAGE_MORE, MOST_BAD = 0.95, 0.99, 0.005
MOST_TIMES_SYNC, MOST_TIMES_FULL = 1.8, 1.3
LEAST_TIMES_FASTER = {KATNA: 100.0, SCENEDETECT: 15.0, CLAUDE_REAL_VIDEO: 25.0}
MOST_TIME_GROWTH, MOST_MEMORY_GROWTH, MOST_PEAK_MB = 12.0, 1.1, 200.0


@dataclass(frozen=True)
class Row:
    """One program on one mix. None: does not apply, or the program failed and `note` says how."""

    program: str
    wall_s: float | None = None
    cpu_s: float | None = None
    peak_mb: float | None = None
    keyframes: int | None = None
    coverage: float | None = None
    bad: float | None = None
    note: str = ""


@dataclass(frozen=True)
class MixResult:
    """All programs on one mix. The first row is the yardstick: the least decoding that such a file needs."""

    name: str
    seed: int
    length_s: float
    segments: int
    timed: bool
    """Whether the goals of speed are held to it: large enough that the start of the programs does not decide."""
    rows: tuple[Row, ...]

    def row(self, program: str) -> Row | None:
        return next((row for row in self.rows if row.program == program), None)

    def wall_s(self, program: str) -> float | None:
        row = self.row(program)
        return row.wall_s if row else None

    def times_yardstick(self, row: Row) -> tuple[float, float] | None:
        """Wall and CPU seconds of a row, each as a multiple of the yardstick's."""
        first = self.rows[0]
        if not first.wall_s or not first.cpu_s or row.wall_s is None or row.cpu_s is None:
            return None
        return row.wall_s / first.wall_s, row.cpu_s / first.cpu_s


@dataclass(frozen=True)
class GrowthRow:
    """vip and the decoding of the sync frames on a video of this length."""

    length_s: float
    wall_s: float
    cpu_s: float
    peak_mb: float
    sync_wall_s: float


@dataclass(frozen=True)
class Results:
    mixes: tuple[MixResult, ...]
    growth: tuple[GrowthRow, ...]
    about: dict[str, Any] = field(default_factory=dict)
    """Versions, date, cores, where the clips came from."""


@dataclass(frozen=True)
class Goal:
    """A figure and its bound. `value` is None where it was not measured in this run."""

    name: str
    value: float | None
    bound: float
    at_least: bool = False

    @property
    def missed(self) -> bool:
        if self.value is None:
            return False
        return self.value < self.bound if self.at_least else self.value > self.bound


def goals(results: Results) -> list[Goal]:
    """The goals of speed count only on the timed mixes, those of choice on all."""
    return [*_choice_goals(results.mixes), *_speed_goals(results.mixes), *_growth_goals(results.growth)]


def _choice_goals(mixes: Sequence[MixResult]) -> Iterator[Goal]:
    for program, least in ((VIP, LEAST_COVERAGE), (VIP_MORE, LEAST_COVERAGE_MORE)):
        rows = [row for mix in mixes if (row := mix.row(program))]
        yield Goal(f"{program}: mean coverage", mean_coverage(rows), least, at_least=True)
        yield Goal(f"{program}: bad share of the keyframes", share_bad(rows), MOST_BAD)


def _speed_goals(mixes: Sequence[MixResult]) -> Iterator[Goal]:
    for mix in mixes:
        vip_s = mix.wall_s(VIP)
        if not mix.timed or vip_s is None:
            continue
        yardstick = mix.rows[0]
        most = MOST_TIMES_FULL if yardstick.program == FULL else MOST_TIMES_SYNC
        yield Goal(f"{mix.name}: wall, times {yardstick.program}", vip_s / yardstick.wall_s if yardstick.wall_s else None, most)
        for peer, least in LEAST_TIMES_FASTER.items():
            if mix.row(peer):
                peer_s = mix.wall_s(peer)
                yield Goal(f"{mix.name}: times faster than {peer}", peer_s / vip_s if peer_s else None, least, at_least=True)


def _growth_goals(growth: Sequence[GrowthRow]) -> Iterator[Goal]:
    if len(growth) < 2:
        return
    short, long = growth[0], growth[-1]
    lengths = f"{long.length_s / 60:.3g} minutes"
    yield Goal(f"{lengths}: times the wall time of {short.length_s / 60:.3g}", long.wall_s / short.wall_s, MOST_TIME_GROWTH)
    yield Goal(f"{lengths}: times the memory of {short.length_s / 60:.3g}", long.peak_mb / short.peak_mb, MOST_MEMORY_GROWTH)
    yield Goal(f"{lengths}: memory, MB", long.peak_mb, MOST_PEAK_MB)


def mean_coverage(rows: Sequence[Row]) -> float | None:
    shares = [row.coverage for row in rows if row.coverage is not None]
    return statistics.fmean(shares) if shares else None


def share_bad(rows: Sequence[Row]) -> float | None:
    """Bad keyframes of all rows by all their keyframes; None if there is none."""
    scored = [(row.keyframes, row.bad) for row in rows if row.keyframes and row.bad is not None]
    return sum(count * bad for count, bad in scored) / sum(count for count, _ in scored) if scored else None


# ---------------------------------------------------------------- as text


def mix_table(mix: MixResult) -> str:
    """One mix: a line a program."""
    title = f"{mix.name}, {mix.length_s:.0f} s, {mix.segments} segments, seed {mix.seed}"
    lines = [f"{title:44}  wall, s  times   CPU, s  times     MB  pictures  coverage   bad"]
    for row in mix.rows:
        times = mix.times_yardstick(row) or (None, None)
        cells = (
            *(_cell(row.wall_s, 9, 2), _cell(times[0], 7, 2), _cell(row.cpu_s, 9, 2), _cell(times[1], 7, 2), _cell(row.peak_mb, 7, 0)),
            *(_cell(row.keyframes, 10, 0), _cell(row.coverage, 10, 2), _cell(row.bad, 6, 2)),
        )
        lines.append(f"  {row.program:42}{''.join(cells)}{'  ' + row.note if row.note else ''}".rstrip())
    return "\n".join(lines)


def summary_table(mixes: Sequence[MixResult]) -> str:
    """Means over the mixes on which every program that ran on any of them ran and chose something."""
    shared = side_by_side(mixes)
    programs = [row.program for row in shared[0].rows if row.coverage is not None] if shared else []
    lines = [f"{f'All programs, mean of {len(shared)} mixes':44}  pictures a segment  coverage   bad"]
    for program in programs:
        rows = [row for mix in shared if (row := mix.row(program))]
        a_segment = sum(row.keyframes or 0 for row in rows) / sum(mix.segments for mix in shared)
        lines.append(f"  {program:42}{a_segment:20.2f}{_cell(mean_coverage(rows), 10, 2)}{_cell(share_bad(rows), 6, 2)}")
    return "\n".join(lines)


def side_by_side(mixes: Sequence[MixResult]) -> list[MixResult]:
    """The mixes on which the most programs could be scored."""
    scored = {mix: sum(row.coverage is not None for row in mix.rows) for mix in mixes}
    most = max(scored.values(), default=0)
    return [mix for mix, count in scored.items() if count == most]


def growth_table(growth: Sequence[GrowthRow]) -> str:
    lines = [f"{'Growth':44}  wall, s   CPU, s     MB  sync frames by ffmpeg, s"]
    lines += [
        f"  {f'{row.length_s / 60:.3g} minutes':42}{row.wall_s:9.2f}{row.cpu_s:9.2f}{row.peak_mb:7.0f}{row.sync_wall_s:26.2f}"
        for row in growth
    ]
    return "\n".join(lines)


def goals_table(found: Sequence[Goal]) -> str:
    lines = []
    for goal in found:
        value = "not measured" if goal.value is None else f"{goal.value:.3f}"
        lines.append(
            f"{goal.name:62}{value:>13}  at {'least' if goal.at_least else 'most'} {goal.bound:g}{'  MISSED' if goal.missed else ''}"
        )
    return "\n".join(lines)


def _cell(value: float | None, width: int, digits: int) -> str:
    return f"{'' if value is None else f'{value:.{digits}f}':>{width}}"


# ---------------------------------------------------------------- as JSON


def write_json(path: Path, results: Results) -> None:
    rows = [{**asdict(goal), "missed": goal.missed} for goal in goals(results)]
    path.write_text(json.dumps({**asdict(results), "goals": rows}, indent=1) + "\n")


def read_json(path: Path) -> Results:
    """What `write_json` wrote; the goals are computed anew."""
    found = json.loads(path.read_text())
    mixes = tuple(MixResult(**{**mix, "rows": tuple(Row(**row) for row in mix["rows"])}) for mix in found["mixes"])
    return Results(mixes, tuple(GrowthRow(**row) for row in found["growth"]), found["about"])
