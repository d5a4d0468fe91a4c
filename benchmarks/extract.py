#!/usr/bin/env python3
"""vip beside other programs that choose keyframes, on videos whose content is known: how well, how fast, in how much memory.

    python benchmarks/extract.py                                    # everything: half an hour on two idle cores, then less
    python benchmarks/extract.py --quick --peers none               # tries the machinery in a minute; its figures mean nothing
    python benchmarks/extract.py --json all.json --plot docs/benchmark.svg

Seconds are compared within one run only, as multiples of the least decoding that a file needs: its sync frames by ffmpeg
(VP9 and AV1, whose decoders ignore -skip_frame: its sync packets by PyAV, a whole process as well), or all its frames by ffmpeg
with two threads where only the first is a sync frame. Needs the program ffmpeg. Exit 1 if a goal is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import peers
import results
from measure import FailedError, Measured, in_turn, measure, sync_frames
from mixes import Mix, Recipe, build, clips_in
from results import GrowthRow, MixResult, Results, Row
from scores import Score, evenly_spaced, score, times_of_pictures

HERE = Path(__file__).resolve().parent
REAL_CLIPS = HERE.parents[1] / "shared" / "videos" / "real"
VIP_LIMIT_S = 1200.0
GROWTH_KEYFRAMES = 32
GROWTH_S = (300, 900, 3600)
QUICK_GROWTH_S = (10, 30, 120)


@dataclass(frozen=True)
class Job:
    """A mix, and what is done with it."""

    recipe: Recipe
    timed: bool = False
    """Several rounds, and the goals of speed."""
    peers: bool = False
    """The other programs too: they take minutes."""


@dataclass(frozen=True)
class Bench:
    """What all measurements share."""

    work: Path
    rounds: int
    peers: dict[str, Path | str]
    """Name of a peer -> folder of its programs, or why it could not be installed."""


def jobs(seed: int) -> list[Job]:
    """The four kinds of video that the goals name, at 720p for the seconds and at 360p for the choice; and two more kinds."""
    kinds = [("h264", 150), ("h264", 0), ("hevc", 150), ("vp9", 150)]
    numbers = iter(range(100 * seed, 100 * seed + 100))
    large = [Job(Recipe(codec, 1280, 720, next(numbers), gop), timed=True, peers=(codec, gop) == kinds[0]) for codec, gop in kinds]
    small = [Job(Recipe(codec, 640, 360, next(numbers), gop), peers=gop == 150) for codec, gop in kinds]
    others = [Job(Recipe("av1", 426, 240, next(numbers))), Job(Recipe("h264", 854, 480, next(numbers), gop=30))]
    return [*large, *small, *others]


def quick_jobs(seed: int) -> list[Job]:
    size = {"width": 320, "height": 180, "segments": 5, "longest_s": 5.0}
    return [Job(Recipe("h264", seed=seed, **size), timed=True, peers=True), Job(Recipe("vp9", seed=seed + 1, **size), timed=True)]


# ---------------------------------------------------------------- one mix


def run_mix(job: Job, mix: Mix, bench: Bench) -> MixResult:
    """Every program on one mix.

    Raises:
        FailedError: vip or ffmpeg failed.
    """
    count = len(mix.truth["segments"])
    rows = _vip_rows(mix, {results.VIP: count, results.VIP_MORE: -(-13 * count // 10)}, bench, bench.rounds if job.timed else 1)
    rows.append(_row(results.EVEN, score=score(mix.truth, evenly_spaced(mix.truth["duration_s"], count))))
    if job.peers:
        rows += [_peer_row(name, mix, count, bench) for name in bench.peers]
    if rows[0].program != results.FULL:
        rows.append(_row(results.FULL, measure(_all_frames(mix.video), watch=True)))
    return MixResult(job.recipe.name, job.recipe.seed, mix.truth["duration_s"], count, job.timed, tuple(rows))


def _vip_rows(mix: Mix, counts: dict[str, int], bench: Bench, rounds: int) -> list[Row]:
    """The yardstick, then vip with each number of keyframes."""
    outs = {name: bench.work / f"out-{keyframes}" for name, keyframes in counts.items()}
    yardstick, decode = _yardstick(mix)
    commands = {yardstick: decode, **{name: _vip(mix.video, counts[name], out) for name, out in outs.items()}}
    measured = in_turn(commands, rounds, lambda name: _remove(outs.get(name)), limit_s=VIP_LIMIT_S)
    rows = [_row(yardstick, measured[yardstick])]
    for name, out in outs.items():
        times_s = [json.loads(line)["time_s"] for line in (out / "keyframes.jsonl").read_text().splitlines()]
        rows.append(_row(name, measured[name], score(mix.truth, times_s)))
        _remove(out)
    return rows


def _peer_row(name: str, mix: Mix, keyframes: int, bench: Bench) -> Row:
    """Another program, once; if it fails, the row says how."""
    peer, programs = peers.PEERS[name], bench.peers[name]
    if isinstance(programs, str):
        return Row(peer.name, note=programs)
    out = bench.work / f"out-{name}"
    _remove(out)
    out.mkdir()
    try:
        measured = measure(peer.command(programs, mix.video, keyframes, out), limit_s=peers.LIMIT_S, cwd=bench.work, watch=True)
    except FailedError as error:
        return Row(peer.name, note=f"failed: {error.how}")
    times_s = times_of_pictures(mix.video, out)
    _remove(out)
    if not times_s:
        return Row(peer.name, note="wrote no picture")
    return _row(peer.name, measured, score(mix.truth, times_s))


def _row(program: str, measured: Measured | None = None, score: Score | None = None) -> Row:
    return Row(program, **(asdict(measured) if measured else {}), **(asdict(score) if score else {}))


def _yardstick(mix: Mix) -> tuple[str, list[str | Path]]:
    """The least decoding that a choice among sync frames, or among all frames where there is one sync frame, needs."""
    if not mix.recipe.gop:
        return results.FULL, _all_frames(mix.video)
    if mix.recipe.codec in ("vp9", "av1"):
        return results.SYNC_PACKETS, [sys.executable, HERE / "sync_packets.py", mix.video]
    return results.SYNC, sync_frames(mix.video)


def _all_frames(video: Path) -> list[str | Path]:
    return ["ffmpeg", "-v", "error", "-threads", "2", "-i", video, "-f", "null", "-"]


def _vip(video: Path, keyframes: int, out: Path) -> list[str | Path]:
    return [sys.executable, "-m", "vip", "extract", "-q", "-n", str(keyframes), "-o", out, video]


def _remove(folder: Path | None) -> None:
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


# ---------------------------------------------------------------- growth


def run_growth(mix: Mix, lengths_s: Sequence[int], bench: Bench) -> list[GrowthRow]:
    """vip on the mix repeated to each of these lengths, packets copied: one encoding, so one kind of content at every length."""
    out = bench.work / "out-growth"
    rows = []
    for length_s in lengths_s:
        video = mix.video.with_name(f"{mix.video.stem}-{length_s}s.mp4")
        if not video.exists():
            partial = video.with_suffix(".part.mp4")
            repeat = ["ffmpeg", "-v", "error", "-y", "-stream_loop", "-1", "-i", mix.video, "-t", str(length_s), "-c", "copy", partial]
            measure(repeat)
            partial.replace(video)
        commands = {results.SYNC: sync_frames(video), results.VIP: _vip(video, GROWTH_KEYFRAMES, out)}
        measured = in_turn(commands, bench.rounds, lambda _: _remove(out), limit_s=VIP_LIMIT_S)
        vip = measured[results.VIP]
        rows.append(GrowthRow(length_s, vip.wall_s, vip.cpu_s, vip.peak_mb, measured[results.SYNC].wall_s))
    _remove(out)
    return rows


# ---------------------------------------------------------------- all


def run(args: argparse.Namespace) -> Results:
    """Make the videos, install the peers, then measure.

    Raises:
        FailedError: vip or ffmpeg failed.
        ValueError: there are no usable clips.
    """
    clips = clips_in(args.clips)
    todo = quick_jobs(args.seed) if args.quick else jobs(args.seed)
    todo = [job for job in todo if not args.codecs or job.recipe.codec in args.codecs]
    _say(f"Clips: {args.clips or 'photographs of scikit-image'}. Videos and programs are kept in {args.work}")
    args.work.mkdir(parents=True, exist_ok=True)
    mixes = []
    for job in todo:  # all before the first measurement, which writing would disturb
        _say(f"Making {job.recipe.name}, seed {job.recipe.seed}")
        mixes.append(build(job.recipe, clips, args.work))
    bench = Bench(args.work, 1 if args.quick else args.rounds, {name: _installed(name, args.work) for name in args.peers})
    found = []
    for job, mix in zip(todo, mixes, strict=True):
        _say(f"Measuring {job.recipe.name}, seed {job.recipe.seed}")
        found.append(run_mix(job, mix, bench))
        print(results.mix_table(found[-1]), end="\n\n", flush=True)
    _say("Measuring growth")
    growth = run_growth(mixes[0], QUICK_GROWTH_S if args.quick else GROWTH_S, bench)
    return Results(tuple(found), tuple(growth), _about(args))


def _installed(name: str, work: Path) -> Path | str:
    """The folder of its programs, or why there is none."""
    _say(f"Installing {peers.PEERS[name].name}")
    try:
        return peers.install(name, work)
    except peers.NotInstalledError as error:
        return str(error)


def _about(args: argparse.Namespace) -> dict[str, Any]:
    said = subprocess.run(["ffmpeg", "-version"], capture_output=True, text=True, check=True).stdout
    return {
        "created_utc": datetime.now(UTC).isoformat(timespec="seconds"),
        "quick": args.quick,
        "seed": args.seed,
        "clips": "own" if args.clips else "photographs of scikit-image",
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "ffmpeg": said.split()[2],
        "peers": list(dict.fromkeys(peers.PEERS[name].version for name in args.peers)),
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    clips = REAL_CLIPS if REAL_CLIPS.is_dir() else None
    parser.add_argument("--clips", type=Path, default=clips, metavar="DIR", help="videos to cut segments from (default: %(default)s)")
    work = Path(tempfile.gettempdir()) / "vip-benchmark"
    parser.add_argument("--work", type=Path, default=work, metavar="DIR", help="where videos and programs are kept (default: %(default)s)")
    parser.add_argument("--peers", nargs="+", choices=(*peers.PEERS, "none"), default=list(peers.PEERS), help="default: all")
    parser.add_argument("--seed", type=int, default=1, help="other segments for another number (default: %(default)s)")
    parser.add_argument("--codecs", nargs="+", choices=("h264", "hevc", "vp9", "av1"), help="only the mixes of these (default: all)")
    parser.add_argument("--rounds", type=int, default=3, help="of the timed mixes (default: %(default)s)")
    parser.add_argument("--quick", action="store_true", help="two tiny mixes, one round, short growth; goals are shown, not held")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draw them (.svg or .png; needs matplotlib)")
    args = parser.parse_args()
    if args.rounds < 1:
        parser.error(f"--rounds must be at least 1, got {args.rounds}")
    if args.clips is not None and not args.clips.is_dir():
        parser.error(f"--clips: {args.clips} is no folder")
    if shutil.which("ffmpeg") is None:
        parser.error("the program ffmpeg is missing; install it with the package manager of the system")
    args.peers = [] if "none" in args.peers else args.peers
    args.work = args.work.absolute()  # the peers run in that folder
    return args


def main() -> None:
    args = _arguments()
    try:
        if args.plot:
            import plot  # needs matplotlib, and is better missed before the measurements than behind them
        found = run(args)
    except ModuleNotFoundError as error:
        raise SystemExit(f"{error.name} is missing. Try: pip install -e '.[bench]'") from error
    except (FailedError, ValueError) as error:
        raise SystemExit(str(error)) from error
    except KeyboardInterrupt:
        raise SystemExit(130) from None
    goals = results.goals(found)
    print(results.summary_table(found.mixes), results.growth_table(found.growth), results.goals_table(goals), sep="\n\n")
    if args.json:
        results.write_json(args.json, found)
    if args.plot:
        plot.draw(found, args.plot)
    if args.quick:
        print("--quick: videos this small show the start of the programs; the goals are not held.")
    elif any(goal.missed for goal in goals):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
