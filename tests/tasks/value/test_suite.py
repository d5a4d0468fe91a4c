"""VALUE as a whole: averages as published, what is missing, folders of submissions."""

from __future__ import annotations

import csv
from dataclasses import replace
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.value.made import write_index, write_json, write_lines
from vip.errors import InputError, UsageError
from vip.tasks.records import Score, TaskResult
from vip.tasks.score_files import ScoreOptions, score_files
from vip.tasks.value.datasets import BY_KEY, DATASETS
from vip.tasks.value.suite import (
    category_averages,
    find_annotations,
    find_submission,
    meta_average,
    own_rows,
    partial_note,
    published_rows,
    suite_files,
    suite_tables,
    target_scores,
)


def result(task: str, metric: str, value: float, engine: str | None = "fake:1") -> TaskResult:
    score = Score(value=value, value_answered=value, n=1, signature="x")
    return TaskResult(
        task=task,
        task_version=1,
        name="p.json",
        engine=engine,
        n=1,
        unscored={},
        metrics={metric: score},
        samples_sha256=None,
        predictions_sha256="0" * 64,
        versions={},
    )


def test_49_of_the_52_published_averages_are_those_of_their_scores() -> None:
    rows = published_rows()
    assert len(rows) == 52
    misprints = [(row.table, row.name) for row in rows if row.is_misprinted]
    assert misprints == [("6", "4 MT by Domain"), ("12", "AT"), ("12", "ST")]


def test_the_rows_are_those_that_the_paper_prints() -> None:
    with golden("value/meta_average.csv").open(encoding="utf-8") as file:
        expected = list(csv.DictReader(file))
    for row, published in zip(published_rows(), expected, strict=True):
        assert row.scores == {key: float(published[key]) for key in BY_KEY}
        assert f"{meta_average(row.scores).value:.4f}" == published["mean_of_11"]
        assert row.is_misprinted == (published["agrees"] == "no")


def test_people_are_no_model_and_never_the_best_of_a_column() -> None:
    (table,) = suite_tables([result("value-tvqa", "accuracy", 80.0)])
    names = [row[0].text for row in table.rows]
    assert (names[0], names[-1]) == ("Human", "fake:1")
    place = 1 + [dataset.key for dataset in DATASETS].index("tvqa")
    assert (table.rows[0][place].number or 0) > 80
    assert [row[place].is_best for row in table.rows] == [False] * (len(names) - 1) + [True]
    assert not any(cell.is_best for cell in table.rows[0])


def test_a_task_that_was_not_scored_is_missing_and_never_0() -> None:
    scores = {"tvr": 10.0, "how2r": 20.0, "tvqa": 60.0}
    average = meta_average(scores)
    assert (average.value, average.is_partial, average.text) == (30.0, True, "30.00 (partial)")
    assert "value-yc2r" in average.missing
    categories = category_averages(scores)
    assert {name: one.text for name, one in categories.items()} == {
        "retrieval": "15.00 (partial)",
        "qa": "60.00 (partial)",
        "captioning": "–",
    }
    assert meta_average(dict.fromkeys(BY_KEY, 50.0)).text == "50.00"


def test_own_rows_stand_beside_the_published_ones_and_say_what_is_missing() -> None:
    results = [result("value-tvr", "aver", 12.3401), result("value-how2qa", "accuracy", 71.2038), result("infilling-1", "rouge-l", 9.0)]
    assert target_scores(results) == {"tvr": 12.34, "how2qa": 71.2}
    (table,) = suite_tables(results)
    own = table.rows[-1]
    assert own[0].text == "fake:1"
    assert own[-1].text.endswith("(partial)")
    assert own[-1].number is None
    assert len(table.rows) == 12
    assert any("partial, without value-how2r" in note for note in table.notes)
    assert any("4 MT by Domain: the paper prints 51.97, which its figures do not give (51.67)" in note for note in table.notes)
    assert suite_tables([results[-1]]) == []
    with pytest.raises(InputError, match="two results of value-tvr"):
        target_scores([results[0], results[0]])


def test_counts_of_the_paper_are_those_of_the_registry() -> None:
    assert len(DATASETS) == 11
    assert [dataset.key for dataset in DATASETS if dataset.domain == "tv"] == ["tvr", "tvqa", "violin", "vlep", "tvc"]
    assert {dataset.key for dataset in DATASETS if dataset.license == "CC BY 4.0"} == {"vatex_en_r", "vatex_en_c"}
    assert BY_KEY["vlep"].submission_name("dev") == "vlep/vlep_dev_predictions.json"
    assert BY_KEY["vatex_en_c"].submission_name("test_public") == "vatex_en_c/vatex_en_c_test_public_predictions.jsonl"
    assert {dataset.key: dataset.options for dataset in DATASETS if dataset.kind == "qa"} == {
        "tvqa": 5,
        "how2qa": 4,
        "violin": 2,
        "vlep": 2,
    }


def test_a_submission_is_found_by_the_names_of_the_server(tmp_path: Path) -> None:
    tvr = BY_KEY["tvr"]
    (tmp_path / "outer" / "tvr").mkdir(parents=True)
    with pytest.raises(InputError, match="has the folder outer around its tasks"):
        find_submission(tmp_path, tvr, "val")
    folder = tmp_path / "outer"
    wrong = folder / "tvr" / "predictions.json"
    wrong.touch()
    with pytest.raises(InputError, match=r"holds predictions\.json\. Name the predictions tvr_val_predictions\.json\."):
        find_submission(folder, tvr, "val")
    right = wrong.rename(folder / "tvr" / "tvr_val_predictions.json")
    assert find_submission(folder, tvr, "val") == right
    assert find_submission(folder, tvr, "test_public") is None
    assert find_submission(folder, BY_KEY["yc2c"], "val") is None
    (tmp_path / "named").symlink_to(folder)
    assert find_submission(tmp_path / "named", tvr, "val") == tmp_path / "named" / "tvr" / "tvr_val_predictions.json"
    (folder / "tvr").rename(tmp_path / "moved").joinpath(right.name).rename(tmp_path / right.name)
    (folder / "tvr").symlink_to(tmp_path / "moved")
    (folder / "tvr" / right.name).symlink_to(tmp_path / right.name)
    with pytest.raises(InputError, match="tvr is a link, and vip follows none inside a folder"):
        find_submission(folder, tvr, "val")
    (folder / "tvr").unlink()
    (tmp_path / "moved").rename(folder / "tvr")
    with pytest.raises(InputError, match=r"tvr_val_predictions\.json is a link, and vip follows none inside a folder"):
        find_submission(folder, tvr, "val")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="holds no folder of a task"):
        find_submission(tmp_path / "empty", tvr, "val")


def make_submission(folder: Path) -> tuple[Path, Path]:
    """Write a submission that answers two tasks, and the annotations of three."""
    submission, annotations = folder / "submission", folder / "annotations"
    (submission / "vlep").mkdir(parents=True)
    (submission / "yc2r").mkdir()
    (annotations / "vlep").mkdir(parents=True)
    event = {"example_id": 7, "events": ["a", "b"], "answer": 0, "vid_name": "v"}
    write_lines(annotations / "vlep" / "vlep_dev_archive.jsonl", [event])
    write_json(submission / "vlep" / "vlep_dev_predictions.json", {"7": 0})
    write_lines(annotations / "yc2r_val_release.jsonl", [{"desc_id": 1, "desc": "a dog", "vid_name": "park"}])
    write_lines(annotations / "violin_test_private_gt.jsonl", [])
    write_json(submission / "yc2r" / "yc2r_val_predictions.json", {"VR": [{"desc_id": 1, "predictions": [8, 7]}]})
    write_index(annotations).rename(annotations / "yc2r_video2dur_idx.json")
    return submission, annotations


def test_each_task_of_a_submission_has_its_own_annotations(tmp_path: Path) -> None:
    submission, annotations = make_submission(tmp_path)
    found = {one.task: (one.annotations.name, one.video_index and one.video_index.name) for one in suite_files(submission, annotations)}
    assert found == {"value-yc2r": ("yc2r_val_release.jsonl", "yc2r_video2dur_idx.json"), "value-vlep": ("vlep_dev_archive.jsonl", None)}
    with pytest.raises(InputError, match="has no predictions of this split"):
        suite_files(submission, annotations, "test")
    with pytest.raises(InputError, match="splits val and test"):
        suite_files(submission, annotations, "dev")
    (submission / "violin").mkdir()
    write_json(submission / "violin" / "violin_test_predictions.json", {})
    with pytest.raises(InputError, match=r"has no annotations of value-violin \(violin_test….jsonl\)"):
        suite_files(submission, annotations)


def test_a_submission_is_scored_with_averages_that_are_marked_partial(tmp_path: Path) -> None:
    submission, annotations = make_submission(tmp_path)
    scores = score_files([submission], ScoreOptions(suite="value", annotations=(annotations,)))
    assert target_scores(scores.results) == {"vlep": 100.0, "yc2r": 66.67}
    average = meta_average(target_scores(scores.results))
    assert average.rounded == pytest.approx(83.335)
    assert average.text.endswith("(partial)")
    for options, message in (
        (ScoreOptions(suite="glue", annotations=(annotations,)), 'no suite "glue"'),
        (ScoreOptions(suite="value"), "one folder of annotations"),
    ):
        with pytest.raises(UsageError, match=message):
            score_files([submission], options)


def test_averages_are_those_of_figures_with_two_digits_as_published() -> None:
    results = [result("value-tvr", "aver", 12.344), result("value-how2r", "aver", 12.344), result("value-yc2r", "aver", 12.348)]
    assert target_scores(results) == {"tvr": 12.34, "how2r": 12.34, "yc2r": 12.35}
    average = meta_average(target_scores(results))
    assert average.rounded == 12.343333
    assert average.value == pytest.approx(37.03 / 3, abs=1e-12)


def test_the_target_metric_alone_counts() -> None:
    aver = result("value-tvr", "aver", 12.0)
    both = aver.model_copy(update={"metrics": {"r@1": aver.metrics["aver"].model_copy(update={"value": 99.0}), **aver.metrics}})
    assert target_scores([both]) == {"tvr": 12.0}
    assert target_scores([result("value-tvr", "accuracy", 99.0)]) == {}
    none = aver.metrics["aver"].model_copy(update={"value": None})
    assert target_scores([aver.model_copy(update={"metrics": {"aver": none}})]) == {}
    assert target_scores([aver.model_copy(update={"task": "tvr"})]) == {}, "a task of another suite"


def test_a_partial_average_is_never_the_best() -> None:
    some = [result(f"value-{key}", "aver", 99.0) for key in ("tvr", "how2r")]
    (table,) = suite_tables(some)
    column = len(DATASETS) + 1
    bests = [row[0].text for row in table.rows if row[column].is_best]
    assert table.rows[-1][column].text == "99.00 (partial)"
    assert bests
    assert "fake:1" not in bests
    everything = [result(one.name, one.target, 99.0) for one in DATASETS]
    (table,) = suite_tables(everything)
    assert [row[0].text for row in table.rows if row[column].is_best] == ["fake:1"]
    assert table.rows[-1][column].text == "99.00"
    assert "partial" not in table.notes[-1]


def test_models_are_rows_and_what_they_were_not_trained_for_is_none() -> None:
    results = [
        result("value-tvr", "aver", 1.0, "one"),
        result("value-tvr", "aver", 2.0, None),
        result("value-tvr", "aver", 3.0, "two trained on how2r"),
        result("value-vlep", "accuracy", 4.0, "one"),
        result("infilling-1", "aver", 5.0, "three"),
    ]
    assert own_rows(results) == [("one", {"tvr": 1.0, "vlep": 4.0}), ("own predictions", {"tvr": 2.0})]


def test_the_note_has_the_average_of_each_category() -> None:
    scores = {**dict.fromkeys(BY_KEY, 50.0), "tvr": 10.0}
    assert partial_note("m", scores) == "m: retrieval 40.00, qa 50.00, captioning 50.00."
    del scores["yc2c"]
    assert partial_note("m", scores) == "m: retrieval 40.00, qa 50.00, captioning 50.00 (partial); partial, without value-yc2c."


def test_a_misprint_is_further_away_than_rounding() -> None:
    row = published_rows()[0]
    mean = meta_average(row.scores).value or 0
    for off, expected in ((0.0, False), (0.011, False), (-0.011, False), (0.012, True), (-0.012, True)):
        assert replace(row, meta_average=mean + off).is_misprinted is expected
    assert replace(row, block="").label == row.name
    assert replace(row, block="AT").label == f"AT: {row.name}"


def test_annotations_are_those_of_the_split_and_the_folder_of_a_task_comes_first(tmp_path: Path) -> None:
    (tmp_path / "violin").mkdir()
    for name in (
        "violin_test_private_release.jsonl",
        "violin_test_predictions.jsonl",
        "violin_test_release.jsonl",
        "violin/violin_test.jsonl",
    ):
        (tmp_path / name).touch()
    violin = BY_KEY["violin"]
    assert find_annotations(tmp_path, violin, "test") == (tmp_path / "violin" / "violin_test.jsonl", None)
    assert find_annotations(tmp_path, violin, "test_private")[0].name == "violin_test_private_release.jsonl"
    (tmp_path / "violin" / "violin_test.jsonl").unlink()
    assert find_annotations(tmp_path, violin, "test") == (tmp_path / "violin_test_release.jsonl", None)
    (tmp_path / "tvr_val_release.jsonl").touch()
    assert find_annotations(tmp_path, BY_KEY["tvr"], "val") == (tmp_path / "tvr_val_release.jsonl", None)
    for name in ("tvr_video2dur_idx.json", "violin_video2dur_idx.json"):
        (tmp_path / name).touch()
    assert find_annotations(tmp_path, BY_KEY["tvr"], "val")[1] == tmp_path / "tvr_video2dur_idx.json"
    assert find_annotations(tmp_path, violin, "test")[1] is None, "questions need no index"


def test_a_suite_of_the_test_split_has_the_names_of_each_task(tmp_path: Path) -> None:
    submission, annotations = make_submission(tmp_path)
    write_json(submission / "vlep" / "vlep_test_predictions.json", {"9": 0})
    write_lines(annotations / "vlep" / "vlep_test_release.jsonl", [{"example_id": 9, "events": ["a", "b"], "vid_name": "v"}])
    (one,) = suite_files(submission, annotations, "test")
    assert (one.task, one.split, one.predictions.name, one.annotations.name) == (
        "value-vlep",
        "test",
        "vlep_test_predictions.json",
        "vlep_test_release.jsonl",
    )
    assert [(one.task, one.split) for one in suite_files(submission, annotations, "val")] == [("value-yc2r", "val"), ("value-vlep", "dev")]


@pytest.mark.parametrize("name", ["tvr_val_release.jsonl", "tvr_video2dur_idx.json"])
def test_no_annotations_behind_a_link_that_leads_out_of_their_folder_are_found(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "named"
    folder.mkdir()
    for one in ("tvr_val_release.jsonl", "tvr_video2dur_idx.json"):
        (folder / one).touch()
    assert find_annotations(folder, BY_KEY["tvr"], "val") == (folder / "tvr_val_release.jsonl", folder / "tvr_video2dur_idx.json")
    (folder / name).rename(tmp_path / name)
    (folder / name).symlink_to(tmp_path / name)
    with pytest.raises(InputError, match=r"leads out of .*/named by a link, and vip follows none of those"):
        find_annotations(folder, BY_KEY["tvr"], "val")
