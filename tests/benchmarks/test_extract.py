"""What the benchmark runs on, and what it does with a program that does not run."""

from __future__ import annotations

from pathlib import Path

import extract
import pytest
from mixes import Mix, Recipe, Truth


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
