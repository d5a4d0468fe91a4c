"""People on captions: one at random against the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.value.made import read, score, write_lines
from vip.cli.app import run
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.records import Prediction, Sample
from vip.tasks.value.human import hold_out_captions, predict_human


def held_out(samples: list[Sample], seed: int) -> tuple[list[Sample], list[Prediction]]:
    pairs = list(hold_out_captions(samples, seed))
    return [sample for sample, _ in pairs], [prediction for _, prediction in pairs]


@pytest.mark.slow
def test_people_on_vatex_reach_what_the_paper_says() -> None:
    task, samples = read("vatex_en_c", golden("vatex/en_c_val.jsonl.gz"))
    values = [score(task, *held_out(samples, seed))["cider-d"] for seed in range(3)]
    assert values == pytest.approx([63.18, 63.77, 63.76], abs=0.005)  # on the test split, which is hidden, the paper has 62.66


def test_the_caption_is_not_among_its_references(tmp_path: Path) -> None:
    captions = [{"desc": f"caption {number}"} for number in range(5)]
    path = write_lines(tmp_path / "a.jsonl", [{"clip_id": clip, "vid_name": "park", "descs": captions} for clip in range(40)])
    _, samples = read("tvc", path)
    left, predictions = held_out(samples, 0)
    for sample, prediction in zip(left, predictions, strict=True):
        assert sample.reference is not None
        assert {prediction.value, *sample.reference.values} == {one["desc"] for one in captions}
        assert len(sample.reference.values) == 4
        assert prediction.engine == "baseline:human seed:0"
    assert len({prediction.value for prediction in predictions}) == 5
    assert held_out(samples, 0)[1] == predictions
    assert held_out(samples, 1)[1] != predictions


def test_one_caption_alone_is_no_human_score(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"clip_id": 1, "vid_name": "a_1", "descs": [{"desc": "cut"}]}])
    with pytest.raises(InputError, match='The clip "1" has 1 captions, and people are one against the others'):
        predict_human("value-yc2c", [str(path)], tmp_path / "out.jsonl", SampleSettings())
    with pytest.raises(UsageError, match="value-tvqa is no caption task of VALUE"):
        predict_human("value-tvqa", [str(path)], tmp_path / "out.jsonl", SampleSettings())
    with pytest.raises(UsageError, match="--baseline human needs --task NAME and --annotations FILE"):
        predict_human(None, [], tmp_path / "out.jsonl", SampleSettings())
    assert not (tmp_path / "out.jsonl").exists()


def test_people_are_written_and_scored_as_typed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"clip_id": clip, "vid_name": f"v{clip}", "descs": [{"desc": f"a {word} runs"} for word in ("dog", "cat")]} for clip in (1, 2)]
    write_lines(tmp_path / "a.jsonl", rows)
    words = ["predict", "--task", "value-tvc", "--annotations", "a.jsonl", "--baseline", "human", "--seed", "5", "-o", "h.jsonl"]
    assert run(words) == 0
    assert "2 predictions by baseline:human seed:5" in capsys.readouterr().out
    assert run(["score", "h.jsonl", "--samples", "h.samples.jsonl", "--metric", "bleu-1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 2
    assert run(words) == 2
    assert "h.jsonl exists" in capsys.readouterr().err


def test_equal_captions_stay_and_the_first_and_the_last_are_drawn_as_well(tmp_path: Path) -> None:
    rows = [{"clip_id": clip, "vid_name": "park", "descs": [{"desc": "a"}, {"desc": "b"}, {"desc": "a"}]} for clip in range(30)]
    _, samples = read("tvc", write_lines(tmp_path / "a.jsonl", rows))
    left, predictions = held_out(samples, 3)
    values = [(prediction.value, sample.reference.values) for sample, prediction in zip(left, predictions, strict=True) if sample.reference]
    assert set(values) == {("a", ("b", "a")), ("b", ("a", "a")), ("a", ("a", "b"))}, "of two equal captions one is left"


def test_the_seed_of_the_command_draws_captions_and_clips(tmp_path: Path) -> None:
    rows = [{"clip_id": clip, "vid_name": "park", "descs": [{"desc": f"{clip} {one}"} for one in range(5)]} for clip in range(20)]
    path = write_lines(tmp_path / "a.jsonl", rows)
    _, samples = read("tvc", path)
    for seed in (1, 2):
        done = predict_human("value-tvc", [str(path)], tmp_path / f"{seed}.jsonl", SampleSettings(seed=seed))
        assert (done.engine, done.statuses) == (f"baseline:human seed:{seed}", {"ok": 20})
        written = [json.loads(line)["value"] for line in (tmp_path / f"{seed}.jsonl").read_text().splitlines()]
        assert written == [one.value for one in held_out(samples, seed)[1]]
    some = [
        predict_human("value-tvc", [str(path)], tmp_path / f"some{seed}.jsonl", SampleSettings(seed=seed, most=6)).statuses
        for seed in (1, 2)
    ]
    assert some == [{"ok": 6}, {"ok": 6}]
    drawn = [
        {json.loads(line)["id"] for line in (tmp_path / f"some{seed}.samples.jsonl").read_text().splitlines() if '"id"' in line}
        for seed in (1, 2)
    ]
    assert len(drawn[0]) == len(drawn[1]) == 6
    assert drawn[0] != drawn[1]
