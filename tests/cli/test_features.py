"""`vip features` in the terminal, and `vip score` on questions without predictions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.clips import clip
from tests.tasks.nextqa.published import MC_ROWS, write_csv


@pytest.mark.slow
@pytest.mark.extra("h5py")
@pytest.mark.extra("open_clip")
def test_a_bad_video_is_named_and_the_others_are_there(tmp_path: Path) -> None:
    import h5py

    from tests.models import clip_models

    folder = clip_models.folder(tmp_path / "clip", "clip")
    clip(tmp_path / "videos" / "good.mp4", range(2))
    (tmp_path / "videos" / "bad.mp4").write_bytes(b"no video")
    done = vip(tmp_path, "features", "videos", "--model", f"open_clip:{folder}", "--clips", "2", "--frames", "2", "-o", "f.h5", "--json")
    assert done.code == 8
    assert done.rows[0] == {"path": "f.h5", "shape": [1, 2, 24], "appearance": 24, "known": 0, "failed": 1}
    assert done.sentence == "1 of 2 videos failed; failures.jsonl says why. The same command tries them again."
    assert json.loads((tmp_path / "failures.jsonl").read_text())["item"] == "videos/bad.mp4"
    with h5py.File(tmp_path / "f.h5") as file:
        assert [name.decode() for name in file["ids"][:]] == ["good"]
    for more, told in (
        ((), "1 video, 2 new features, in timed"),
        (("--json",), {"path": "timed", "videos": 1, "features": 0, "known": 1, "failed": 1}),
    ):
        timed = vip(tmp_path, "features", "videos", "--model", f"open_clip:{folder}", "--frames", "2", "--every", "1", "-o", "timed", *more)
        assert (timed.code, timed.sentence) == (8, done.sentence)
        assert timed.rows[0] == told if more else timed.out == f"{told}\n"
    assert [path.name for path in (tmp_path / "timed").glob("*.npz")] == ["good.npz"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("features", "v.mp4", "--model", "torchvison:resnet18"), 4, 'There is no extractor "torchvison". Did you mean "torchvision"?'),
        (("features", "v.mp4", "--model", "open_clip", "--clips", "0"), 2, "0 clips of 16 frames: both are at least 1."),
        (("score",), 2, "Name a file of predictions. To describe a data set without scores, name it with --data."),
        (("score", "--data", "mc.csv", "--task", "nextqa-oe"), 3, "mc.csv, line 2: it has options; files with options are of nextqa-mc."),
        (("score", "--data", "runs", "-o", "x.html"), 2, "Of runs and data sets there are tables only."),
        (("score", "p.jsonl", "--setting", "16"), 2, "--setting 16: write names and values, such as clips=16,features=Res+I3D."),
    ],
)
def test_what_is_wrong_is_one_sentence(arguments: tuple[str, ...], code: int, said: str, tmp_path: Path) -> None:
    write_csv(tmp_path / "mc.csv", MC_ROWS)
    done = vip(tmp_path, *arguments)
    assert (done.code, done.out) == (code, "")
    assert said in done.sentence


@pytest.mark.slow
def test_questions_are_described_without_predictions(tmp_path: Path) -> None:
    write_csv(tmp_path / "mc.csv", MC_ROWS)
    done = vip(tmp_path, "score", "--data", "mc.csv", "--task", "nextqa-mc", "-o", "data.html")
    assert done.code == 0, done.err
    assert "Data sets (Table 2 of Xiao et al. 2021)" in done.out
    assert done.out.endswith("Open data.html\n")
    (row,) = vip(tmp_path, "score", "--data", "mc.csv", "--task", "nextqa-mc", "--json").rows
    assert (row["questions"], row["videos"], row["types"]) == (4, 2, {"CW": 1, "DL": 1, "TN": 1, "TP": 1})
