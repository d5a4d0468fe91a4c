"""`vip tasks`, `vip samples`, `vip predict` and `vip evaluate`, as typed."""

from __future__ import annotations

import json
import shutil
import signal
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import ROOT, SECRET, vip
from tests.clips import SAMPLE
from tests.tasks.described import described_folder
from tests.tasks.nextqa.published import MC_ROWS, write_csv
from vip.cli.app import run


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    for number, name in enumerate("abc"):
        described_folder(tmp_path / "runs" / name, 8, first_word=5 * number)
        (tmp_path / "runs" / name / "keyframes.jsonl").read_text()
    return tmp_path


FOLDERS = ("runs/a", "runs/b", "runs/c")


def test_tasks_are_listed_with_where_their_data_comes_from(tmp_path: Path) -> None:
    done = vip(tmp_path, "tasks")
    assert done.code == 0, done.err
    assert "infilling  Describe the keyframes between those that are given." in done.out
    assert "Himakunthala et al. 2023, section 4.1. Data: Any run folder or data set of vip with descriptions." in done.out
    rows = vip(tmp_path, "tasks", "--json").rows
    assert {"infilling", "prediction"} <= {row["task"] for row in rows}
    assert rows[0]["metrics"][0] == "rouge-l"
    assert "Did you mean" in vip(tmp_path, "tasks", "--suite", "vp").err


def test_the_three_steps_by_hand(runs: Path) -> None:
    made = vip(runs, "samples", *FOLDERS, "--task", "infilling-2", "--representation", "dense")
    assert (made.code, made.out) == (0, "6 samples of infilling in samples.jsonl\n")
    assert json.loads((runs / "samples.jsonl").read_text().splitlines()[0])["task"] == "infilling-2"
    answered = vip(runs, "predict", "samples.jsonl", "--engine", "fake", "-o", "fake.jsonl")
    assert (answered.code, answered.out) == (0, "6 predictions by fake in fake.jsonl\n"), answered.err
    nearest = vip(runs, "predict", "samples.jsonl", "--baseline", "copy-nearest", "-o", "nearest.jsonl", "--json")
    assert nearest.rows == [
        {"task": "infilling", "engine": "baseline:copy-nearest", "predictions": 6, "statuses": {"ok": 6}, "path": "nearest.jsonl"}
    ]
    scored = vip(runs, "score", "fake.jsonl", "nearest.jsonl", "--metric", "rouge-l", "--json")
    assert scored.code == 0, scored.err
    fake, copied = (row for row in scored.rows if "task" in row)
    assert copied["metrics"]["rouge-l"]["value"] > fake["metrics"]["rouge-l"]["value"] > 0
    assert copied["n"] == 6


def test_published_annotations_are_answered_in_one_step(tmp_path: Path) -> None:
    write_csv(tmp_path / "val.csv", MC_ROWS)
    command = ("predict", "--task", "nextqa-mc", "--annotations", "val.csv", "--baseline", "always:4", "-o", "p.jsonl")
    done = vip(tmp_path, *command)
    assert (done.code, done.out) == (0, f"{len(MC_ROWS)} predictions by baseline:always:4 in p.jsonl\n"), done.err
    assert {row["value"] for row in map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())} == {4}
    vip(tmp_path, "samples", "val.csv", "--task", "nextqa-mc")
    assert (tmp_path / "p.samples.jsonl").read_bytes() == (tmp_path / "samples.jsonl").read_bytes()
    assert vip(tmp_path, "score", "p.jsonl").code == 0
    for more, message in (
        (("p.samples.jsonl", "--frames", "8"), "p.samples.jsonl holds samples already: --frames is for `vip samples`. Leave it out."),
        (("p.samples.jsonl", "--task", "nextqa-mc"), "p.samples.jsonl holds samples already. Leave --task and --annotations out."),
        (("--task", "nextqa-mc"), "Name the file that `vip samples` wrote, or --task NAME and --annotations FILE."),
        ((), "Name the file that `vip samples` wrote, or --task NAME and --annotations FILE."),
        (command[1:], "p.jsonl exists already. Add --overwrite to replace it, or name another file with -o."),
    ):
        refused = vip(tmp_path, "predict", *more)
        assert (refused.code, refused.err) == (2, f"vip: {message}\n")


def test_what_it_would_cost_is_said_and_nothing_is_sent(runs: Path) -> None:
    vip(runs, "samples", *FOLDERS, "-t", "prediction")
    done = vip(runs, "predict", "samples.jsonl", "--engine", "openai:gpt-5.4-mini", "--dry-run")
    assert done.code == 0, done.err
    assert done.out.startswith("15 samples: about 15 requests, ")
    assert not (runs / "predictions.jsonl").exists()


def test_refusals_are_counted_and_the_command_is_done(runs: Path) -> None:
    vip(runs, "samples", *FOLDERS, "-t", "prediction")
    done = vip(runs, "predict", "samples.jsonl", "--engine", "fake:refuse")
    assert (done.code, done.out) == (0, "15 predictions by fake:refuse in predictions.jsonl (15 refused)\n"), done.err


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("samples", "runs/a", "--task", "infiling"), 2, 'There is no task "infiling". Did you mean "infilling"?'),
        (("samples", "nowhere", "--task", "infilling"), 3, "nowhere"),
        (("samples", "runs/a", "--task", "infilling", "--context", "4"), 3, "infilling needs 11 described keyframes in a row (4 + 3 + 4)"),
        (("predict", "none.jsonl", "--baseline", "copy-nearest"), 3, "none.jsonl does not exist. Check the path."),
        (("predict", "s.jsonl", "--baseline", "copy"), 2, 'infilling has no baseline "copy". Did you mean "copy-nearest"?'),
        (("predict", "s.jsonl", "--engine", "offline"), 4, "offline only describes pictures and answers no questions."),
        (("predict", "s.jsonl", "--engine", "fake", "-o", "runs"), 2, "runs is a folder. Name a file in it with -o."),
        (("predict", "runs/a/keyframes.jsonl", "--engine", "fake"), 3, "Give the file that `vip samples` wrote."),
        (("evaluate", "runs/a", "--task", ","), 2, "No task is named. Write --task infilling,prediction; `vip tasks` lists them."),
        (("evaluate", "runs/a", "--task", "infilling", "--metric", "rouge"), 2, 'no metric "rouge". Did you mean "rouge-l"?'),
        (("evaluate", "runs/a", "--task", "nothing"), 2, 'There is no task "nothing".'),
        (("evaluate", "runs/a", "--task", "infilling", "--frames", "4,8"), 2, "infilling shows no frames of videos. Leave --frames out."),
        (("evaluate", "runs/a", "--task", "infilling", "--frames", "4,x"), 2, "--frames 4,x: write numbers from 1 to 1000 with commas"),
        (("samples", "runs/a", "--task", "infilling", "--frames", "4"), 2, "infilling shows no frames of videos. Leave --frames out."),
    ],
)
def test_a_mistake_is_one_sentence(arguments: tuple[str, ...], code: int, sentence: str, runs: Path) -> None:
    vip(runs, "samples", *FOLDERS, "-t", "infilling", "-o", "s.jsonl")
    done = vip(runs, *arguments)
    assert done.code == code
    assert sentence in done.err
    assert "Traceback" not in done.err
    assert done.out == ""
    assert len(done.err.splitlines()) == 1
    assert not (runs / "evaluation").exists()


def test_of_one_video_the_baselines_that_need_others_are_left_out(runs: Path) -> None:
    done = vip(runs, "evaluate", "runs/a", "--task", "infilling", "--metric", "rouge-l", "-o", "deep/er")
    assert done.code == 0, done.err
    assert [note for note in done.err.splitlines() if "Left out the baseline" in note] == [
        f"vip: Left out the baseline {name}: All samples are of one video (a); this baseline needs another. Make samples from several runs."
        for name in ("random-keyframe", "nearest-text")
    ]
    assert {path.stem for path in (runs / "deep/er/infilling-1-famous").iterdir()} == {"samples", "copy-nearest", "frequent-words"}


def test_no_folder_of_an_evaluation_leads_elsewhere(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (runs / "out").mkdir()
    (runs / "out" / "infilling-2-famous").symlink_to(elsewhere)
    done = vip(runs, "evaluate", *FOLDERS, "--task", "infilling-2", "--metric", "rouge-l", "-o", "out", "--overwrite")
    assert (done.code, "it is a link, or lies behind one" in done.sentence) == (7, True), done.err
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("evaluation", ("evaluate", "val.csv", "--task", "nextqa-mc")),
        ("hits", ("fiber", "hits", "blanks.jsonl")),
        ("submission", ("submit", "predictions")),
        ("features", ("features", "v.mp4", "--model", "torchvision:resnet18", "--every", "1")),
        ("pretrained", ("pretrain", "--features", "f", "--subtitles", "tv.jsonl")),
    ],
)
def test_a_link_in_the_place_of_a_default_folder_is_refused_and_one_that_is_named_is_used(
    name: str, arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / name).symlink_to("elsewhere")
    monkeypatch.chdir(tmp_path)
    said = f"{name} is a link, and vip writes through none that you did not name. Remove it, or name one with -o."
    assert run(list(arguments)) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert run([*arguments, "-o", name]) != 0  # for want of what it reads
    assert said not in " ".join(capsys.readouterr().err.split())


def test_evaluate_is_the_three_in_one_and_the_same_again(runs: Path) -> None:
    command = ("evaluate", *FOLDERS, "--task", "infilling,prediction", "--metric", "rouge-l", "--engine", "fake")
    done = vip(runs, *command)
    assert done.code == 0, done.err
    folder = runs / "evaluation"
    assert {path.name for path in folder.iterdir() if path.is_dir()} >= {"infilling-1-famous", "prediction-1-famous"}
    names = {path.name for path in (folder / "infilling-1-famous").glob("*.jsonl")}
    assert names == {
        "samples.jsonl",
        "fake-1.jsonl",
        "copy-nearest.jsonl",
        "frequent-words.jsonl",
        "random-keyframe.jsonl",
        "nearest-text.jsonl",
    }
    pages = list(folder.glob("*.html"))
    assert len(pages) == 1
    before = {path: path.read_bytes() for path in sorted(folder.rglob("*.jsonl"))}
    assert vip(runs, *command).code == 0
    assert {path: path.read_bytes() for path in before} == before
    other = vip(runs, *command, "--most", "2")
    assert other.code == 2
    assert "holds other samples than these settings make" in other.err


def test_evaluate_fails_where_samples_could_not_be_asked_about_and_shows_the_scores(runs: Path) -> None:
    command = ("evaluate", *FOLDERS, "--task", "prediction", "--metric", "rouge-l", "--engine", "openai:some-model")
    with ApiServer("ok", "413") as server:
        variables = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": SECRET, "PYTHONPATH": str(ROOT)}
        done = vip(runs, *command, **variables)

    assert done.code == 8, done.err
    assert "could not be asked about; the same command asks again" in done.err
    assert list((runs / "evaluation").glob("*.html"))


def test_killed_twenty_times_it_asks_again_at_most_what_was_in_flight(runs: Path) -> None:
    in_flight, kills = 2, 20
    vip(runs, "samples", *FOLDERS, "-t", "prediction", "--context", "1", "--targets", "1", "--representation", "dense")
    count = len((runs / "samples.jsonl").read_text().splitlines())
    command = ("predict", "samples.jsonl", "--engine", "openai:some-model", "--concurrency", str(in_flight))
    with ApiServer() as server:
        variables = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": SECRET, "PYTHONPATH": str(ROOT)}
        killed = 0
        while killed < kills:
            done = vip(runs, "row", "2", *command, module="tests.cli.killer", **variables)
            if done.code == 0:
                break
            assert done.code == -signal.SIGKILL, done.err
            killed += 1
        assert vip(runs, *command, **variables).code == 0
        assert killed >= min(kills, count - 1)
        assert count <= len(server.chats) <= count + killed * in_flight
    rows = [json.loads(line)["sample_id"] for line in (runs / "predictions.jsonl").read_text().splitlines()]
    assert rows == [json.loads(line)["id"] for line in (runs / "samples.jsonl").read_text().splitlines()]


def test_a_task_over_videos_is_evaluated_with_each_frame_budget(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    for row in MC_ROWS:
        shutil.copy(SAMPLE, tmp_path / "videos" / f"{row[0]}.mp4")
    write_csv(tmp_path / "val.csv", MC_ROWS)
    command = ("evaluate", "val.csv", "videos", "--task", "nextqa-mc", "--engine", "fake", "--frames", "2,4", "--json")
    done = vip(tmp_path, *command)
    assert done.code == 0, done.err
    assert "Left out the baseline popular-shortest: " in done.err
    folder = tmp_path / "evaluation"
    budgets = [row["frames"] for row in done.rows if row.get("engine") == "fake"]
    assert [" ".join(budget.split()[:3]) for budget in budgets] == [
        "2 frames, vip",
        "2 frames, evenly",
        "4 frames, vip",
        "4 frames, evenly",
    ]
    assert {row["frames"] for row in done.rows if str(row.get("engine")).startswith("baseline:")} == {"text only"}
    kept = {path: path.stat().st_mtime_ns for path in (folder / "frames").rglob("*.jpg")}
    assert len(kept) == 2 * (2 + 2 + 4 + 4)
    assert len((folder / "nextqa-mc-even-4" / "samples.jsonl").read_text().splitlines()) == len(MC_ROWS)
    assert "over the frame budget" in (folder / "scores.html").read_text()
    assert vip(tmp_path, *command).code == 0
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
