"""What the benchmark runs on, and what it does with a program that does not run."""

from __future__ import annotations

from pathlib import Path

import extract
import peers
import pytest
import results
from measure import Measured
from mixes import Mix, Recipe, Truth
from scores import Score

from tests.clips import clip, picture


def test_the_mixes_hold_every_kind_that_the_goals_name() -> None:
    jobs = extract.jobs(seed=1)
    kinds = {("h264", 150), ("h264", 0), ("hevc", 150), ("vp9", 150)}
    assert {(job.recipe.codec, job.recipe.gop) for job in jobs if job.timed} == kinds
    assert {(job.recipe.codec, job.recipe.gop) for job in jobs if not job.timed and job.recipe.height == 360} == kinds
    assert {job.recipe.codec for job in jobs if job.peers and not job.timed} == {"h264", "hevc", "vp9"}


def test_no_two_mixes_are_cut_alike() -> None:
    seeds = [job.recipe.seed for seed in (1, 2) for job in extract.jobs(seed)]
    assert len(set(seeds)) == len(seeds)


def mix(tmp_path: Path) -> Mix:
    truth = Truth(video="none.mp4", fps=30, seed=1, codec="h264", gop=150, duration_s=1.0, segments=[], faults=[])
    return Mix(Recipe("h264", 96, 54, seed=1), tmp_path / "none.mp4", truth)


def test_a_peer_that_could_not_be_installed_is_a_row_that_says_why(tmp_path: Path) -> None:
    bench = extract.Bench(tmp_path, 1, {"katna": "Katna cannot be installed: no network"})
    row = extract._peer_row("katna", mix(tmp_path), 5, bench)
    assert (row.program, row.wall_s, row.note) == ("Katna", None, "Katna cannot be installed: no network")


@pytest.mark.parametrize(("does", "note"), [("exit 7", "failed: exit 7"), ("exit 0", "wrote no picture")])
def test_a_peer_that_fails_is_a_row_that_says_how(tmp_path: Path, does: str, note: str) -> None:
    program = tmp_path / "video_sampler"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    row = extract._peer_row("video-sampler", mix(tmp_path), 5, extract.Bench(tmp_path, 1, {"video-sampler": tmp_path}))
    assert (row.coverage, row.note) == (None, note)


CRV = """#!/bin/sh
[ "$CRV_NO_MEMORY" = 1 ] || exit 9
echo "$@" > {said}
mkdir "$3/frames" && cp {picture} "$3/frames/frame_001.jpg"
"""


@pytest.mark.parametrize(("name", "asked"), [("claude-real-video", ""), ("claude-real-video-n", " --max-frames 2")])
def test_claude_real_video_looks_at_every_mix_anew_and_its_pictures_are_scored(tmp_path: Path, name: str, asked: str) -> None:
    program, said = tmp_path / "crv", tmp_path / "said"
    program.write_text(CRV.format(said=said, picture=picture(tmp_path / "second.jpg", 1)))
    program.chmod(0o755)
    shown = [{"clip": str(number), "start_s": float(number), "end_s": number + 1.0} for number in range(2)]
    truth = Truth(video="a.mp4", fps=3, seed=1, codec="h264", gop=3, duration_s=2.0, segments=shown, faults=[])
    mixed = Mix(Recipe("h264", 160, 90, seed=1), clip(tmp_path / "a.mp4", range(2)), truth)
    row = extract._peer_row(name, mixed, 2, extract.Bench(tmp_path, 1, {name: tmp_path}))
    assert (row.keyframes, row.coverage, row.bad) == (1, 0.5, 0.0)
    assert said.read_text().strip() == f"{mixed.video} -o {tmp_path / f'out-{name}'}{asked}"


def test_two_ways_to_call_a_program_share_its_virtual_environment() -> None:
    ways = [peer for peer in peers.PEERS.values() if peer.home == "claude-real-video"]
    assert len({peer.name for peer in ways}) == 2
    assert len({(peer.version, peer.options) for peer in ways}) == 1
    homes = {peer.home: (peer.version, peer.options) for peer in peers.PEERS.values()}
    assert all(homes[peer.home] == (peer.version, peer.options) for peer in peers.PEERS.values())


def test_evenly_spaced_frames_are_a_row_of_every_mix_and_of_the_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = Measured(1.0, 1.0, 80.0)
    rows = [extract._row(results.SYNC, ran), extract._row(results.VIP, ran, Score(4, 1.0, 0.0))]
    monkeypatch.setattr(extract, "_vip_rows", lambda *_: list(rows))
    monkeypatch.setattr(extract, "measure", lambda *_, **__: ran)
    shown = [{"clip": str(number), "start_s": number * 2.0, "end_s": number * 2.0 + 2} for number in range(4)]
    black = {"kind": "black", "start_s": 0.5, "end_s": 1.5}
    truth = Truth(video="a.mp4", fps=3, seed=1, codec="h264", gop=150, duration_s=8.0, segments=shown, faults=[black])
    job, mixed = extract.Job(Recipe("h264", 160, 90, seed=1)), Mix(Recipe("h264", 160, 90, seed=1), tmp_path / "a.mp4", truth)
    found = extract.run_mix(job, mixed, extract.Bench(tmp_path, 1, {}))
    even = found.row(results.EVEN)
    assert even is not None
    assert (even.keyframes, even.coverage, even.bad, even.wall_s) == (4, 0.75, 0.25, None), "1, 3, 5 and 7 s; the first is black"
    for table in (results.mix_table(found), results.summary_table([found])):
        (line,) = (line for line in table.splitlines() if line.startswith(f"  {results.EVEN} "))
        assert line.split()[-2:] == ["0.75", "0.25"]
