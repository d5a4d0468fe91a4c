"""Files, folders and published forms, and what is written of them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from tests.tasks.scoring import WordTask, answer, result, sample, score_of, write
from vip import store
from vip.errors import InputError, UsageError
from vip.tasks import score_files as module
from vip.tasks.pairs import Missing
from vip.tasks.records import Prediction, Sample, TaskResult
from vip.tasks.registry import load_task
from vip.tasks.score_files import ScoreOptions, Scores, find_files, score_files
from vip.tasks.score_output import all_tables, as_json_row, result_names, write_scores
from vip.tasks.task import SampleSource, Task

SAMPLES = [sample(str(number), "a b c", video=f"v{number // 2}", groups={"domain": ("Games",)}) for number in range(8)]


class Published(WordTask):
    """A task with published files: annotations name ids and answers, submissions are one JSON object."""

    name = "published"

    def samples(self, source: SampleSource) -> Iterator[Sample]:
        for path in source.paths:
            for line in Path(path).read_text().splitlines():
                yield sample(line.split(",")[0], line.split(",")[1], task="published-1")

    def read_predictions(self, path: Path, samples: Sequence[Sample]) -> Iterator[Prediction]:
        by_name = {one.id.rpartition("/")[2]: one for one in samples}
        for name, words in json.loads(path.read_text()).items():
            yield answer(by_name[name], words) if name in by_name else Prediction(sample_id=name, value=words)


@pytest.fixture(autouse=True)
def _tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.load_task
    known = {"infilling": WordTask(), "published": Published()}
    monkeypatch.setattr(module, "load_task", lambda name: known.get(name.rpartition("-")[0]) or known.get(name) or real(name))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path / "samples.jsonl", SAMPLES)
    write(tmp_path / "good.jsonl", [answer(one, "a b c" if place else "a", engine="good") for place, one in enumerate(SAMPLES)])
    write(tmp_path / "bad.jsonl", [answer(one, "a x" if place % 3 else "x", engine="bad") for place, one in enumerate(SAMPLES)])
    return tmp_path


def test_a_folder_is_scored_whole_and_its_files_compared(folder: Path) -> None:
    scores = score_files([folder], ScoreOptions())
    assert scores.labels == ["bad", "good"]
    assert [(one.first, one.second) for one in scores.differences] == [("bad", "good")]
    assert scores.differences[0].value > 0


def test_samples_lie_beside_the_predictions_or_are_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    moved = (folder / "good.jsonl").rename(tmp_path / "elsewhere" / "good.jsonl")
    with pytest.raises(InputError, match=r"There is no .*elsewhere/samples\.jsonl, .* Name the samples with --samples FILE"):
        score_files([moved], ScoreOptions())
    assert score_files([moved], ScoreOptions(samples=folder / "samples.jsonl")).results[0].n == 8


def test_results_are_written_and_read_again_with_the_same_bytes(folder: Path) -> None:
    out = folder / "out"
    written = write_scores(score_files([folder / "good.jsonl", folder / "bad.jsonl"], ScoreOptions()), out)
    assert [path.name for path in written] == ["good.result.json", "bad.result.json", "scores.md", "scores.html"]
    before = {path.name: path.read_bytes() for path in written}
    write_scores(score_files([folder / "good.jsonl", folder / "bad.jsonl"], ScoreOptions()), out)
    assert {path.name: path.read_bytes() for path in written} == before
    again = score_files([out], ScoreOptions())
    assert [one.engine for one in again.results] == ["bad", "good"]
    assert again.results[1] == TaskResult.model_validate_json(before["good.result.json"])
    assert not again.differences
    write_scores(again, folder / "page.html")
    assert "read from result.json" in (folder / "page.html").read_text()


def test_what_is_scored_of_files_whose_names_are_not_utf8_is_read_again(tmp_path: Path) -> None:
    odd = [sample(str(number), "a b c", video="\udcff") for number in range(2)]
    store.write_rows(tmp_path / "samples.jsonl", odd)
    store.write_rows(tmp_path / "p.jsonl", [answer(odd[0], "a"), answer(odd[1], status="unparsed")])
    scores = score_files([tmp_path / "p.jsonl"], ScoreOptions())
    write_scores(scores, tmp_path / "out")
    assert score_files([tmp_path / "out"], ScoreOptions()).results == scores.results
    assert scores.results[0].unscored_ids == ("infilling-1/\N{REPLACEMENT CHARACTER}/1",)


def test_json_has_the_fields_that_programs_read(folder: Path) -> None:
    row = as_json_row(score_files([folder / "good.jsonl"], ScoreOptions()).results[0])
    assert {"task": "infilling-1", "version": 1, "n": 8, "unscored": {}}.items() <= row.items()
    found = row["metrics"]["word-share"]
    assert found["value"] == pytest.approx(100 * (7 + 1 / 3) / 8, abs=1e-4)
    assert found["groups"]["domain"]["Games"]["value"] == found["value"]
    assert found["signature"].startswith("keyframes:mean")
    assert found["name"] == "word-share (infilling-1, dense; text only, 2 described keyframes)"


def test_every_printed_score_names_its_frame_budget(folder: Path) -> None:
    scores = score_files([folder], ScoreOptions())
    table, *groups = all_tables(scores)[:3]
    assert all("text only, 2 described keyframes" in row[1].text for row in table.rows)
    assert all("text only, 2 described keyframes" in one.title for one in groups)


def test_published_files_are_scored_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "val.csv").write_text("q1,a b\nq2,c d\n")
    theirs = tmp_path / "theirs.json"
    theirs.write_text('{"q1": "a b", "q2": "c"}')
    options = ScoreOptions(task="published", annotations=(tmp_path / "val.csv",))
    (result,) = score_files([theirs], options).results
    assert (result.task, result.n, result.metrics["word-share"].value) == ("published-1", 2, 75.0)
    theirs.write_text('{"q1": "a b", "q7": "c"}')
    with pytest.raises(InputError, match=re.escape("theirs.json does not fit the 2 samples of val.csv: 1 prediction of samples that")):
        score_files([theirs], options)


@pytest.mark.parametrize(
    ("missing", "n", "value"),
    [("wrong", 2, 50.0), ("leave-out", 1, 100.0)],
)
def test_what_becomes_of_missing_predictions_is_chosen(tmp_path: Path, missing: Missing, n: int, value: float) -> None:
    (tmp_path / "val.csv").write_text("q1,a b\nq2,c d\n")
    (tmp_path / "theirs.json").write_text('{"q1": "a b"}')
    options = ScoreOptions(task="published", annotations=(tmp_path / "val.csv",), missing=missing)
    (result,) = score_files([tmp_path / "theirs.json"], options).results
    assert (result.n, result.metrics["word-share"].value, result.left_out) == (n, value, 2 - n)


def test_options_that_contradict_each_other_are_said(folder: Path) -> None:
    (folder / "theirs.json").write_text("{}")
    with pytest.raises(UsageError, match=r"theirs\.json is no JSONL file of `vip predict`. .* --task NAME --annotations FILE"):
        score_files([folder / "theirs.json"], ScoreOptions())
    with pytest.raises(UsageError, match="--annotations needs the name of the task: --task NAME"):
        score_files([folder / "theirs.json"], ScoreOptions(annotations=(folder / "samples.jsonl",)))
    with pytest.raises(InputError, match="answers samples of infilling-1, not of published"):
        score_files([folder / "good.jsonl"], ScoreOptions(task="published"))
    with pytest.raises(InputError, match=r"none\.csv does not exist"):
        score_files([folder / "theirs.json"], ScoreOptions(task="published", annotations=(folder / "none.csv",)))


def test_a_result_of_another_version_or_a_damaged_one_is_said(folder: Path) -> None:
    write_scores(score_files([folder / "good.jsonl"], ScoreOptions()), folder / "out")
    path = folder / "out" / "result.json"
    text = path.read_text()
    path.write_text(text.replace('"task_version": 1', '"task_version": 9'))
    with pytest.raises(InputError, match="was scored for version 9 of infilling-1, and this vip has version 1"):
        score_files([path], ScoreOptions())
    path.write_text(text.replace('"n": 8', '"n": "many"'))
    with pytest.raises(InputError, match=r"result\.json is no result of vip"):
        score_files([path], ScoreOptions())


@pytest.mark.parametrize(
    "change", [{"value": 1e17}, {"low": -1e308}, {"parts": {"p": {"n": 2**62}}}, {"contrasts": [{"difference": 1e300}]}]
)
def test_a_result_with_a_figure_that_no_score_has_is_refused(change: dict[str, object], folder: Path) -> None:
    write_scores(score_files([folder / "good.jsonl"], ScoreOptions()), folder / "out")
    path = folder / "out" / "result.json"
    row = json.loads(path.read_text())
    next(iter(row["metrics"].values())).update(change)
    path.write_text(json.dumps(row))
    with pytest.raises(InputError, match=r"is no result of vip \(a figure of .*\)\. Score its predictions again\."):
        score_files([path], ScoreOptions())


def test_the_task_of_many_results_is_looked_up_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = score_files([folder / "good.jsonl"], ScoreOptions())
    for place in range(5):
        write_scores(one, folder / "results" / str(place))
    asked: list[str] = []

    def noted(name: str) -> Task:
        asked.append(name)
        return load_task(name)

    monkeypatch.setattr("vip.tasks.score_files.load_task", noted)
    assert len(score_files([folder / "results"], ScoreOptions()).results) == 5
    assert asked == ["infilling-1"]


def test_a_folder_without_predictions_and_a_path_without_a_file_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no predictions"):
        find_files(tmp_path)
    with pytest.raises(InputError, match="does not exist"):
        find_files(tmp_path / "none.jsonl")


def test_a_linked_folder_is_not_looked_into(folder: Path, tmp_path: Path) -> None:
    inner, elsewhere, given = folder / "inner", tmp_path / "elsewhere", tmp_path / "given"
    for one in (inner, elsewhere, given):
        one.mkdir()
    (folder / "good.jsonl").rename(elsewhere / "good.jsonl")
    (folder / "bad.jsonl").rename(inner / "bad.jsonl")
    inner.rename(given / "inner")
    (given / "linked").symlink_to(elsewhere)
    assert find_files(given) == [given / "inner" / "bad.jsonl"]


@pytest.mark.parametrize("name", ["good.jsonl", "samples.jsonl", "a/good.jsonl", "x.result.json", "a/x.result.json"])
def test_a_link_in_a_folder_is_not_followed_and_one_that_is_named_is(name: str, folder: Path, tmp_path: Path) -> None:
    store.write_json(folder / "x.result.json", result("infilling-1", "x"))
    given = tmp_path / "given"
    (given / "a").mkdir(parents=True)
    link = given / name
    link.symlink_to(folder / link.name)
    with pytest.raises(InputError, match=rf"{link.name} is a link, and vip follows none inside a folder\. Copy the file there, or"):
        score_files([given], ScoreOptions())
    if link.name != "samples.jsonl":
        assert len(score_files([link], ScoreOptions(samples=folder / "samples.jsonl")).results) == 1


def test_samples_beside_the_predictions_are_no_link_unless_they_are_named(folder: Path) -> None:
    samples = (folder / "samples.jsonl").rename(folder / "mine.jsonl")
    (folder / "samples.jsonl").symlink_to(samples)
    with pytest.raises(InputError, match=r"samples\.jsonl is a link"):
        score_files([folder / "good.jsonl"], ScoreOptions())
    assert score_files([folder / "good.jsonl"], ScoreOptions(samples=folder / "samples.jsonl")).results[0].n == 8


def test_each_file_has_its_own_settings_and_they_replace_what_it_says_itself(folder: Path) -> None:
    write_scores(score_files([folder / "bad.jsonl"], ScoreOptions(settings=({"clips": "8", "by": "hand"},))), folder / "out")
    old = folder / "out" / "result.json"
    assert score_files([old], ScoreOptions()).results[0].parameters["clips"] == "8"
    scores = score_files([old, folder / "good.jsonl"], ScoreOptions(settings=({"clips": "16"}, {"clips": "4", "representation": "mine"})))
    assert [(one.parameters["clips"], one.parameters["representation"]) for one in scores.results] == [("16", "dense"), ("4", "mine")]
    assert scores.results[0].parameters["by"] == "hand"
    for count in (1, 3):
        with pytest.raises(UsageError, match=rf"--setting is given {count} times for 2 files\. Give it once for each\."):
            score_files([old, folder / "good.jsonl"], ScoreOptions(settings=({"clips": "4"},) * count))


def test_files_of_two_representations_are_not_compared(tmp_path: Path) -> None:
    paths = []
    for kind in ("dense", "famous"):
        samples = [sample(str(number), "a b", video=f"v{number}", famous=kind == "famous") for number in range(4)]
        (tmp_path / kind).mkdir()
        write(tmp_path / kind / "samples.jsonl", samples)
        for engine in ("one", "two"):
            rows = [answer(one, "a" if engine == "one" and place else "a b", engine=engine) for place, one in enumerate(samples)]
            paths.append(write(tmp_path / kind / f"{engine}.jsonl", rows))
    scores = score_files(paths, ScoreOptions())
    assert [(one.task, one.first, one.second) for one in scores.differences] == [
        ("infilling-1, dense", "one", "two"),
        ("infilling-1, famous", "one", "two"),
    ]
    assert not score_files(paths[::2], ScoreOptions()).differences


def test_the_digest_of_the_samples_is_that_of_one_file_of_annotations_alone(tmp_path: Path) -> None:
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text("q1,a b\n")
    second.write_text("q2,c d\n")
    theirs = tmp_path / "theirs.json"
    theirs.write_text('{"q1": "a b"}')
    (one,) = score_files([theirs], ScoreOptions(task="published", annotations=(first,))).results
    assert (one.samples_sha256, one.predictions_sha256) == tuple(sha256(path.read_bytes()).hexdigest() for path in (first, theirs))
    theirs.write_text('{"q1": "a b", "q2": "c"}')
    (both,) = score_files([theirs], ScoreOptions(task="published", annotations=(first, second))).results
    assert (both.samples_sha256, both.n) == (None, 2)
    theirs.write_text('{"q9": "a b"}')
    with pytest.raises(InputError, match=r"does not fit the 2 samples of a\.csv and b\.csv: 1 prediction of samples that"):
        score_files([theirs], ScoreOptions(task="published", annotations=(first, second)))


def test_a_task_may_be_named_with_its_number(folder: Path) -> None:
    for name in ("infilling", "infilling-1", "infilling-2"):
        assert score_files([folder / "good.jsonl"], ScoreOptions(task=name)).results[0].n == 8


@pytest.mark.parametrize("version", [0, 9])
def test_a_result_of_an_older_or_a_newer_version_is_refused(version: int, folder: Path) -> None:
    write_scores(score_files([folder / "good.jsonl"], ScoreOptions()), folder / "out")
    path = folder / "out" / "result.json"
    path.write_text(path.read_text().replace('"task_version": 1', f'"task_version": {version}'))
    with pytest.raises(InputError, match=f"was scored for version {version} of infilling-1"):
        score_files([path], ScoreOptions())


def test_files_of_a_folder_and_of_the_folders_in_it_are_found_predictions_before_results(folder: Path) -> None:
    (folder / "inner").mkdir()
    (folder / "good.jsonl").rename(folder / "inner" / "good.jsonl")
    (folder / "x.result.json").write_text("{}")
    assert find_files(folder) == [folder / "bad.jsonl", folder / "inner" / "good.jsonl"]
    for path in (folder / "bad.jsonl", folder / "inner" / "good.jsonl"):
        path.unlink()
    assert find_files(folder) == [folder / "x.result.json"]


# ---------------------------------------------------------------- what is written


def names_of(*results: TaskResult) -> list[str]:
    return result_names(Scores((), results))


def test_no_two_results_have_one_file_also_where_case_does_not_count() -> None:
    assert names_of(result("infilling-1", "a")) == ["result.json"]
    assert names_of(result("infilling-1", "a"), result("infilling-1", "b")) == ["a.result.json", "b.result.json"]
    other = [result("infilling-1", "a"), result("infilling-2", "A")]
    assert names_of(*other) == ["infilling-1-famous-a.result.json", "infilling-2-famous-A.result.json"]
    assert names_of(result("infilling-1", "a"), result("infilling-1", "A")) == ["a-1.result.json", "A-2.result.json"]


def test_a_result_beside_a_scored_file_is_written_as_a_second_one(folder: Path) -> None:
    write_scores(score_files([folder / "bad.jsonl"], ScoreOptions()), folder / "old")
    scores = score_files([folder / "old" / "result.json", folder / "good.jsonl"], ScoreOptions())
    written = write_scores(scores, folder / "out")
    assert [path.name for path in written] == ["bad.result.json", "good.result.json", "scores.md", "scores.html"]
    assert TaskResult.model_validate_json(written[0].read_bytes()).engine == "bad"
    assert "**Scores" in written[2].read_text()
    assert write_scores(scores, folder / "page.htm") == [folder / "page.htm"]


def test_json_keeps_zeros_groups_parts_and_what_was_left_out() -> None:
    groups = {"domain": {"Games": score_of(0.0), "Sports": score_of(12.5, low=10.0, high=15.0)}}
    score = score_of(0.0, groups=groups, parts={"focus": score_of(0.0)}, no_interval="why")
    row = as_json_row(result("infilling-1", "m", left_out=3, unscored={"failed": 2}, metrics={"rouge-l": score, "x": score_of(1.0)}))
    assert (row["left_out"], row["unscored"], row["frames"]) == (3, {"failed": 2}, "text only")
    found = row["metrics"]["rouge-l"]
    assert (found["value"], found["no_interval"], "contrasts" in found) == (0.0, "why", False)
    assert {name: one["value"] for name, one in found["groups"]["domain"].items()} == {"Games": 0.0, "Sports": 12.5}
    assert (found["groups"]["domain"]["Sports"]["low"], found["parts"]["focus"]["value"]) == (10.0, 0.0)
    assert "parts" not in row["metrics"]["x"]


def test_all_tables_have_groups_differences_and_the_curve(folder: Path) -> None:
    titles = [table.title for table in all_tables(score_files([folder], ScoreOptions()))]
    assert [title.partition(" (")[0] for title in titles] == [
        "Scores × 100: infilling-1, dense",
        "bad: infilling-1, dense by domain",
        "good: infilling-1, dense by domain",
        "Differences in points",
    ]
    assert any("Table 3" in table.title for table in all_tables(score_files([folder], ScoreOptions()), paper=True))


@pytest.mark.parametrize("suite", ["value", "nextqa"])
def test_a_suite_names_its_tasks_and_samples_itself(suite: str, folder: Path) -> None:
    for more in ({}, {"task": "nextqa-mc"}, {"samples": folder / "samples.jsonl"}):
        annotations = (folder,) if more else ()
        with pytest.raises(UsageError, match=r"--annotations (DIR|val\.csv)\. It names the tasks itself"):
            score_files([folder / "good.jsonl"], ScoreOptions(suite=suite, annotations=annotations, **more))  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r'There is no suite "values"\. There are: value, nextqa\.'):
        score_files([folder], ScoreOptions(suite="values"))


def test_a_result_of_another_program_is_none_of_vip(folder: Path) -> None:
    for text in ("[1]", '{"accuracy": 1.0}'):
        (folder / "result.json").write_text(text)
        with pytest.raises(UsageError, match=r"result\.json is no JSONL file of `vip predict`"):
            score_files([folder / "result.json"], ScoreOptions())
