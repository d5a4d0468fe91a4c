"""`vip fiber`, and FIBER with `vip samples`, `vip predict` and `vip score`, as typed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import SECRET, vip
from tests.clips import SAMPLE
from tests.tasks.fiber.made import record
from tests.tasks.fiber.worked import assignment, write_results
from vip.cli.app import run
from vip.tasks.fiber.records import write_records
from vip.tasks.fiber.task import sample_of
from vip.tasks.files import write_samples

TWO = [
    record("a dog", "x", video_end_time=9),
    record("the man", "y", video_end_time=9, masked_caption="It shows _____.", caption="It shows the man."),
]


def test_from_blanks_to_answers_of_people(tmp_path: Path) -> None:
    write_samples(tmp_path / "blanks.jsonl", map(sample_of, TWO))
    done = vip(tmp_path, "fiber", "hits", "blanks.jsonl", "--json")
    assert done.rows == [{"blanks": 2, "hits": 1, "assignments": 9, "path": "hits"}], done.err
    assert {path.name for path in (tmp_path / "hits").iterdir()} == {"hits.csv", "page.html", "preview.html", "qualifications.json"}
    again = vip(tmp_path, "fiber", "hits", "blanks.jsonl")
    assert (again.code, again.err.startswith("vip: hits/hits.csv exists already.")) == (2, True)

    answers = {1: ["dog", "puppy"], 2: ["man", "guy"]}
    write_results(tmp_path / "results.csv", TWO, [assignment("W", answers), {**assignment("V", answers), "WorkerId": ""}])
    first = vip(tmp_path, "fiber", "collect", "results.csv", "--parser", "none")
    assert first.code == 0, first.err
    assert "2 blanks with answers of 1 assignment; 4 answers, not filtered for noun phrases" in first.out
    assert "1 left out: no WorkerId" in first.out
    assert "Mark 4 answers in answers.sheet.csv (y: correct), and give it with --reviewed." in first.out
    sheet = tmp_path / "answers.sheet.csv"
    sheet.write_text(sheet.read_text(encoding="utf-8").replace(",,\r\n", ",me,y\r\n").replace(",,\n", ",me,y\n"), encoding="utf-8")
    second = vip(
        tmp_path, "fiber", "collect", "results.csv", "--parser", "none", "--reviewed", "answers.sheet.csv", "--overwrite", "--json"
    )
    (row,) = second.rows
    assert (row["decisions"], row["bonuses"], row["bonus_cents"], row["pay_cents"]) == ({"approve": 1}, 1, 20, 20)

    told = vip(tmp_path, "fiber", "statistics", "answers.records.json", "--json")
    assert told.rows[0]["answers"]["count"] == 4, told.err
    assert "Table 1 of Castro et al. 2022" in vip(tmp_path, "fiber", "statistics", "answers.records.json").out


def test_an_engine_fills_blanks_from_keyframes_and_its_errors_are_shown(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    for one in TWO:
        shutil.copy(SAMPLE, tmp_path / "clips" / f"{one.video_id}.mp4")
    write_records(tmp_path / "val.json", TWO)
    (tmp_path / "categories.tsv").write_text("video_id\tcategory\nx\tPassive entity\ny\tPerson\n", encoding="utf-8")
    source = ("val.json", "--task", "fiber", "--labels", "categories.tsv", "--videos", "clips", "--frames", "2")
    assert vip(tmp_path, "samples", *source).code == 0
    with ApiServer() as server:
        variables = {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": SECRET}
        done = vip(tmp_path, "predict", "samples.jsonl", "--engine", "openai:some-model", "-o", "p.jsonl", "--json", **variables)
        assert done.code == 0, done.err
        assert sorted(chat.text.count("There is _____.") for chat in server.chats) == [0, 1]
        assert all("the man" not in chat.text and "a dog" not in chat.text for chat in server.chats)
    assert done.rows[0]["predictions"] == sum(done.rows[0]["statuses"].values()) == 2
    scored = vip(tmp_path, "score", "p.jsonl", "--paper")
    assert "2 frames, vip" in scored.out, scored.err
    assert "Token F1 by semantic category (Table 4 of Castro et al. 2022)" in scored.out
    shown = vip(tmp_path, "fiber", "errors", "p.jsonl", "--annotations", "samples.jsonl", "--json")
    assert shown.rows == [{"blanks": 2, "errors": 2, "path": "errors.html", "rows": "errors.csv"}], shown.err
    page = (tmp_path / "errors.html").read_text(encoding="utf-8")
    assert page.count("data:image/jpeg") == 4


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    (tmp_path / "vatex.json").write_text(json.dumps([{"videoID": "v_000000_000010", "enCap": ["a dog"]}]), encoding="utf-8")
    write_records(tmp_path / "val.json", TWO)
    for arguments, code, message in (
        (("samples", "vatex.json", "--task", "fiber", "--chunker", "commas"), 4, 'There is no chunker "commas".'),
        (("samples", "val.json", "--task", "nextqa-mc", "--chunker", "commas"), 2, "makes no blanks of captions. Leave --chunker out."),
        (("fiber", "hits", "val.json", "--per-hit", "0"), 2, "A HIT has 1 to 20 blanks, not 0. Change --per-hit."),
        (("fiber", "hits", "val.json", "--workers", "none.toml"), 3, "none.toml cannot be read"),
        (("fiber", "collect", "val.json"), 3, "val.json has no column HITId"),
        (("fiber", "statistics", "val.json", "--table", "x"), 2, '--table knows no "x".'),
    ):
        done = vip(tmp_path, *arguments, *(("--parser", "none") if arguments[1] == "collect" else ()))
        assert (done.code, message in done.err) == (code, True), done.err


def test_likelihoods_are_shown_where_predictions_have_them(tmp_path: Path) -> None:
    row = {"schema_version": 1, "sample_id": "x", "value": "dog", "log_probabilities": [-0.5], "label_log_probabilities": [-1.0, -1.0]}
    (tmp_path / "p.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    done = vip(tmp_path, "fiber", "likelihoods", "p.jsonl", "--json")
    assert (done.rows[0]["n"], round(done.rows[0]["perplexity"], 4)) == (1, 2.7183), done.err
    (tmp_path / "p.jsonl").write_text(json.dumps({"schema_version": 1, "sample_id": "x", "value": "dog"}) + "\n", encoding="utf-8")
    assert vip(tmp_path, "fiber", "likelihoods", "p.jsonl").code == 3


def test_a_file_that_is_no_blanks_leaves_no_folder_behind(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello\n")
    refused = vip(tmp_path, "fiber", "hits", "notes.txt", "-o", "hits")
    assert (refused.code, refused.err.count("\n")) == (3, 1)
    assert not (tmp_path / "hits").exists()
    missing = vip(tmp_path, "fiber", "collect", "none.csv", "-o", "answers.jsonl")  # said before what is to be installed
    assert (missing.code, "none.csv" in missing.err) == (3, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("predict", "--task", "fiber", "--annotations", "missing.json", "--baseline", "most-frequent"), "missing.json"),
        (("predict", "--task", "fiber", "--annotations", "notes.txt", "--baseline", "most-frequent"), "notes.txt"),
        (("fiber", "map", "missing.json", "--encoder", "owner/nowhere"), "missing.json is no file"),
        (("review", "missing.jsonl"), "missing.jsonl is not a folder and not a file. Check the path."),
    ],
)
def test_a_file_that_cannot_be_read_is_said_before_a_model_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "notes.txt").write_text("notes")
    monkeypatch.chdir(tmp_path)
    assert run(list(arguments)) == 3
    found = " ".join(capsys.readouterr().err.split())
    assert said in found
    assert "spaCy" not in found


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("map", "val.json", "--seed", "-1"), "A seed is a number from 0 to 4,294,967,295, not -1. Change --seed."),
        (("map", "val.json", "--seed", "4294967296"), "not 4294967296. Change --seed."),
        (("errors", "p.jsonl", "--annotations", "val.json", "-o", "e.csv"), "e.csv is the name of the CSV file"),
    ],
)
def test_options_that_do_not_fit_are_said_before_a_file_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["fiber", *arguments]) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not list(tmp_path.iterdir())


def test_a_perplexity_without_bounds_is_null_in_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    row = {"schema_version": 1, "sample_id": "x", "value": "dog", "label_log_probabilities": [-1e5]}
    Path("p.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    assert run(["fiber", "likelihoods", "p.jsonl", "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert (found["perplexity"], found["n"]) == (None, 1)
