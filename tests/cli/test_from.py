"""`vip extract --from RUN`, `-n auto`, and the choice of samplers and pruners, as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.clips import clip, stamps
from vip.store import load_run


def test_other_keyframes_come_from_a_run_and_nothing_but_the_command_line_counts(extracted: Path, tmp_path: Path) -> None:
    (tmp_path / "vip.toml").write_text("[extract]\nkeyframes = 9\nsampler = 'uniform'\n")
    before = stamps(extracted)
    done = vip(tmp_path, "extract", "--from", "sample.vip", "-n", "2", VIP_FORMAT="png")
    assert done.code == 0, done.err
    assert (
        done.out.splitlines()[0]
        == f"sample.mp4: 2 keyframes of {len(load_run(extracted).candidates)} candidates in sample-n2.vip/keyframes/"
    )
    assert [frame.path.suffix for frame in load_run(tmp_path / "sample-n2.vip").keyframes] == [".jpg"] * 2
    assert stamps(extracted) == before


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["a.mp4", "--from", "sample.vip"], 2, "Write --video a.mp4, or leave it out."),
        (["--from", "sample.vip", "--sampler", "uniform"], 2, "needs another look at the video. Run `vip extract VIDEO` instead."),
        (["--from", "sample.vip", "-n", "2", "-o", "sample.vip"], 2, "is the run itself"),
        (["--from", "sample.vip", "--pruner", "threshold:2"], 4, "needs a cosine between -1 and 1"),
        (["--from", "nowhere"], 3, "is not a folder"),
        (["a.mp4", "--pruner", "treshold"], 4, 'Did you mean "threshold"?'),
        (["a.mp4", "--sampler", "every:2x"], 4, "needs a time such as 2s"),
        ([], 2, "Give a VIDEO"),
    ],
)
def test_what_does_not_go_together_is_one_sentence(arguments: list[str], code: int, words: str, extracted: Path, tmp_path: Path) -> None:
    if "a.mp4" in arguments:
        clip(tmp_path / "a.mp4", [1])
    done = vip(tmp_path, "extract", *arguments)
    assert (done.code, done.out) == (code, "")
    assert words in done.sentence
    assert extracted.exists()


def test_auto_asks_for_no_number_and_says_what_it_kept(tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1, 2])
    done = vip(tmp_path, "extract", "a.mp4", "-n", "auto", "--sampler", "every:1s", "--pruner", "threshold:0.999", "--json")
    (row,) = done.rows
    assert done.code == 0, done.err
    assert row["counts"]["asked"] is None
    assert row["notes"] == []
    assert [round(frame["time_s"]) for frame in row["keyframes"]] == [0, 1]
    assert row["counts"]["candidates"] == 2
