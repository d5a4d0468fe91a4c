"""What is written and printed of scores: which file has which result, whose tables come in which order, and the fields of the JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from markupsafe import Markup

from tests.tasks.scoring import WordTask, answer, joined, result, sample, score_of
from vip.html.charts import Chart
from vip.tasks import registry, score_page
from vip.tasks.comparison import Difference
from vip.tasks.records import FrameBudget, Prediction, Sample, TaskResult
from vip.tasks.score import ScoredFile, score
from vip.tasks.score_files import Scores
from vip.tasks.score_output import all_tables, answer_tables, as_json_row, paper_charts, paper_tables, result_names, write_scores
from vip.tasks.table import Table, TableCell

HALVES = {"domain": {"Games": score_of(1.0), "Sports": score_of(2.0)}, "type": {"CW": score_of(3.0)}}


def table(title: str, *cells: str) -> Table:
    return Table(title=title, columns=("c",), rows=tuple((TableCell(cell),) for cell in cells))


def titles(tables: Sequence[Table]) -> list[str]:
    return [one.title for one in tables]


class Papers:
    """A fake task that says what it was given: tables, with figures, and of the answers of a file."""

    def __init__(self, name: str, *shown: Table) -> None:
        self.name, self.shown = name, shown
        self.given: list[list[str]] = []

    def tables(self, results: Sequence[TaskResult]) -> Sequence[Table]:
        self.given.append([one.task for one in results])
        return self.shown

    def __repr__(self) -> str:
        return self.name


class Drawing(Papers):
    """One with figures too."""

    def charts(self, results: Sequence[TaskResult]) -> Sequence[Chart]:
        self.given.append([one.task for one in results])
        return [Chart(f"{self.name} {number}", "", Markup("")) for number in (1, 2)]


class Checking(WordTask):
    """A task that names each file and its samples."""

    def answer_tables(self, pairs: Sequence[tuple[Sample, Prediction]], title: str) -> Sequence[Table]:
        return [table(f"{title}: {pairs[0][0].id}"), table(f"{title} again")]


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> dict[str, Papers]:
    """Fake tasks by their name without a number."""
    known: dict[str, Papers] = {}
    monkeypatch.setattr(registry, "load_task", lambda name: known[name.rpartition("-")[0]])
    return known


def scored(folder: Path, engine: str, *, task: str = "infilling-1") -> ScoredFile:
    place = folder / f"{engine}-{task}"
    place.mkdir()
    one = sample("0", "a b", task=task)
    return score(joined(place, [one], [answer(one, "a", engine=engine)], f"{engine}.jsonl"), WordTask(), WordTask().metrics)


# ---------------------------------------------------------------- names of files


def names_of(*results: TaskResult) -> list[str]:
    return result_names(Scores((), results))


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ((("a.jsonl", "t-1"), ("b.jsonl.gz", "t-1")), ["a.result.json", "b.jsonl.result.json"]),
        ((("a.jsonl", "t-1"), ("a.json", "t-2")), ["t-1-famous-a.result.json", "t-2-famous-a.result.json"]),
        ((("a.jsonl", "T-1"), ("a.jsonl", "t-1")), ["a-1.result.json", "a-2.result.json"]),
        ((("a.jsonl", "t-1"), ("b.jsonl", "t-1"), ("A.jsonl", "t-1")), ["a-1.result.json", "b-2.result.json", "A-3.result.json"]),
        ((("a.jsonl", "../x y:z"), ("a.jsonl", "t-1")), ["..-x-y-z-famous-a.result.json", "t-1-famous-a.result.json"]),
        ((("../a.jsonl", "t-1"), ("b.jsonl", "t-1")), ["a.result.json", "b.result.json"]),
        ((("a.jsonl", "t-1"),), ["result.json"]),
        ((), []),
    ],
)
def test_files_are_named_after_predictions_then_tasks_then_places(given: Sequence[tuple[str, str]], names: list[str]) -> None:
    assert names_of(*(result(task, "e", name=name) for name, task in given)) == names


# ---------------------------------------------------------------- files


def test_each_result_lies_under_its_own_name_and_the_page_gets_the_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page is a fake that remembers what it was given."""
    given: list[tuple[object, Path, object]] = []
    monkeypatch.setattr(score_page, "write_page", lambda scores, path, *, runs: given.append((scores, path, runs)))
    results = [result("infilling-1", engine, metrics={"rouge-l": score_of(value)}) for engine, value in (("z", 1.0), ("a", 2.0))]
    scores, out = Scores((), tuple(results)), tmp_path / "deep" / "out"
    written = write_scores(scores, out, runs=[tmp_path / "run"])
    assert written == [out / "z.result.json", out / "a.result.json", out / "scores.md", out / "scores.html"]
    assert [TaskResult.model_validate_json(path.read_bytes()) for path in written[:2]] == results
    assert given == [(scores, out / "scores.html", [tmp_path / "run"])]


@pytest.mark.parametrize("name", ["page.html", "page.htm"])
def test_a_page_alone_is_written_where_a_page_is_named(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[tuple[Path, object]] = []
    monkeypatch.setattr(score_page, "write_page", lambda scores, path, *, runs: given.append((path, runs)))
    assert write_scores(Scores((), (result("infilling-1", "e"),)), tmp_path / name, runs=[tmp_path]) == [tmp_path / name]
    assert given == [(tmp_path / name, [tmp_path])]
    assert list(tmp_path.iterdir()) == []


def test_tables_stand_in_one_file_apart_from_each_other(tmp_path: Path) -> None:
    one = result("infilling-1", "e", metrics={"rouge-l": score_of(50.0, groups=HALVES)})
    (_, tables, _) = write_scores(Scores((), (one,)), tmp_path / "out")
    blocks = tables.read_text(encoding="utf-8").split("\n\n**")
    assert len(blocks) == len(all_tables(Scores((), (one,)))) == 3
    assert tables.read_text(encoding="utf-8").endswith("|\n")


# ---------------------------------------------------------------- tables


def test_tables_come_in_order_scores_groups_differences_answers_and_the_papers_last(tmp_path: Path, loaded: dict[str, Papers]) -> None:
    loaded["infilling"] = Papers("infilling", table("Paper"))
    files = [scored(tmp_path, "one"), scored(tmp_path, "two")]
    with_groups = result("infilling-1", "three", metrics={"word-share": score_of(5.0, groups=HALVES)})
    unknown = dict.fromkeys(("low", "high", "p_value", "p_corrected", "smallest_detectable"))
    difference = Difference(task="infilling-1", metric="word-share", first="one", second="two", value=1.0, **unknown)
    scores = Scores(tuple(files), (with_groups, *(one.result for one in files)), (difference,), {"infilling-1": Checking()})
    plain, paper = all_tables(scores), all_tables(scores, paper=True)
    assert titles(plain)[-4:] == ["one: infilling-1/v/0", "one again", "two: infilling-1/v/0", "two again"]
    assert [title.partition(" (")[0] for title in titles(plain)[:-4]] == [
        *titles(plain)[:2],
        "three: infilling-1, famous by domain",
        "three: infilling-1, famous by type",
        "Differences in points",
    ]
    assert titles(paper) == [*titles(plain), "Paper"]


def test_links_of_groups_lead_to_the_number_of_their_result() -> None:
    results = [result("infilling-1", name, metrics={"m": score_of(5.0, groups={"domain": HALVES["domain"]})}) for name in ("a", "b")]
    _, *groups = all_tables(Scores((), tuple(results)))
    links = [[cell.link for row in one.rows for cell in row if cell.link] for one in groups]
    assert [{link.split("-")[0] for link in some} for some in links] == [{"#r1"}, {"#r2"}]


def test_answers_are_told_of_each_file_by_its_own_name_by_tasks_that_tell_of_them(tmp_path: Path) -> None:
    first, second, other = scored(tmp_path, "one"), scored(tmp_path, "two"), scored(tmp_path, "three", task="infilling-2")
    before = result("infilling-1", "zero", "dense")
    tasks: dict[str, Any] = {"infilling-1": Checking(), "infilling-2": WordTask()}
    scores = Scores((second, first, other), (before, *(one.result for one in (first, second, other))), (), tasks)
    assert titles(answer_tables(scores)) == ["two: infilling-1/v/0", "two again", "one: infilling-1/v/0", "one again"]
    assert answer_tables(Scores((first,), (first.result,))) == [], "the task is not known"
    assert answer_tables(Scores((), (before,), (), tasks)) == [], "it was scored before"


def test_two_files_of_the_same_engine_and_name_are_told_apart_by_number(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    files = [scored(tmp_path / name, "one") for name in "ab"]
    assert files[0].result == files[1].result
    scores = Scores(tuple(files), tuple(one.result for one in files), (), {"infilling-1": Checking()})
    assert titles(answer_tables(scores))[::2] == ["one.jsonl (1): infilling-1/v/0", "one.jsonl (2): infilling-1/v/0"]


def test_a_paper_is_asked_once_for_all_its_settings_and_gets_every_result(loaded: dict[str, Papers]) -> None:
    loaded["infilling"] = Papers("infilling", table("Table 3", "old"), table("Table 4"))
    loaded["prediction"] = Papers("prediction", table("Table 3", "new"), table("Table 5"))
    results = [result(f"{name}-{number}", "e", name=f"{name}{number}") for number in (1, 2) for name in ("infilling", "prediction")]
    found = paper_tables(Scores((), tuple(results)))
    assert titles(found) == ["Table 3", "Table 4", "Table 5"]
    assert found[0] == table("Table 3", "new")
    assert [one.given for one in loaded.values()] == [[["infilling-1", "prediction-1", "infilling-2", "prediction-2"]]] * 2
    assert paper_tables(Scores((), ())) == []


def test_figures_are_those_of_tasks_that_draw_each_once(loaded: dict[str, Papers]) -> None:
    loaded["infilling"], loaded["nextqa"] = Papers("infilling"), Drawing("nextqa")
    results = [result(task, "e", name=task) for task in ("nextqa-1", "infilling-1", "nextqa-2")]
    assert [one.title for one in paper_charts(Scores((), tuple(results)))] == ["nextqa 1", "nextqa 2"]
    assert loaded["nextqa"].given == [["nextqa-1", "infilling-1", "nextqa-2"]]
    assert paper_charts(Scores((), (results[1],))) == []


# ---------------------------------------------------------------- JSON


def row_of(**more: Any) -> dict[str, Any]:
    return as_json_row(result("infilling-1", "m", **more))


def test_a_row_has_each_field_from_where_it_belongs() -> None:
    about: Mapping[str, Any] = {
        **{"task_version": 4, "name": "file.jsonl", "n": 12, "left_out": 3, "unscored": {"failed": 2}},
        **{"samples_sha256": "1" * 64, "predictions_sha256": "2" * 64},
        "budget": FrameBudget(frames=8, chosen="vip algorithm1"),
    }
    assert row_of(**about) == {
        "task": "infilling-1",
        "version": 4,
        "predictions": "file.jsonl",
        "engine": "m",
        "frames": "8 frames, vip algorithm1",
        "n": 12,
        "left_out": 3,
        "unscored": {"failed": 2},
        "metrics": {},
        "samples_sha256": "1" * 64,
        "predictions_sha256": "2" * 64,
    }
    assert row_of(budget=None)["frames"] == "frames not stated"


def test_a_metric_is_named_with_its_task_and_frames_in_the_papers_words() -> None:
    found = row_of(metrics={"rouge-l": score_of(1.0), "own": score_of(2.0)}, budget=FrameBudget(frames=1))["metrics"]
    assert {name: one["name"].partition(" (")[2] for name, one in found.items()} == dict.fromkeys(
        ("rouge-l", "own"), "infilling-1, famous; 1 frame)"
    )
    assert found["own"]["name"].startswith("own (")
    assert found["rouge-l"]["name"].startswith("ROUGE-L (")


def test_a_score_has_its_value_even_where_it_has_none_and_leaves_out_what_is_not_known() -> None:
    unknown = score_of(0.0).model_copy(update={"value": None, "value_answered": None})
    found = row_of(metrics={"m": unknown})["metrics"]["m"]
    found.pop("name")
    assert found == {"value": None, "n": 10, "signature": "s", "groups": {}, "without_value": 0, "notes": []}


def test_groups_and_parts_are_scores_of_the_same_form_all_the_way_down() -> None:
    inner = score_of(7.0, groups={"type": {"CW": score_of(8.0)}}, parts={"focus": score_of(9.0)})
    found = row_of(metrics={"m": score_of(1.0, groups={"domain": {"Games": inner}}, parts={"all": inner})})["metrics"]["m"]
    for one in (found["groups"]["domain"]["Games"], found["parts"]["all"]):
        assert (one["value"], one["signature"]) == (7.0, "s")
        assert one["groups"]["type"]["CW"]["value"] == 8.0
        assert one["parts"]["focus"]["value"] == 9.0
        assert "name" not in one
