"""The tables of the paper: figures as printed, averages computed again, misprints named, own rows beside them."""

from __future__ import annotations

import csv
from dataclasses import replace

from tests.metrics.golden import golden
from tests.tasks.value.test_suite import result
from vip.tasks.records import Score, TaskResult
from vip.tasks.table import Table
from vip.tasks.value.datasets import BY_KEY, DATASETS
from vip.tasks.value.suite import LEADERBOARD, published_rows, suite_tables
from vip.tasks.value.tables import (
    DETAILED,
    OF_CAPTIONS,
    OF_RETRIEVAL,
    TRANSFER,
    ZERO_SHOT,
    DetailedRow,
    detailed_rows,
    printed_averages,
    value_tables,
)


def table(tables: list[Table], title: str) -> Table:
    (found,) = [one for one in tables if one.title.startswith(title)]
    return found


def test_92_of_the_96_average_recalls_are_those_of_their_recalls() -> None:
    averages = printed_averages()
    assert len(averages) == 96
    misprints = [(one.row.split, one.row.name, one.key, one.printed) for one in averages if one.is_misprinted]
    assert misprints == [
        ("val", "AT", "yc2r", 38.58),
        ("val", "AT", "vatex_en_r", 72.84),
        ("val", "AT -> ST", "how2r", 4.42),
        ("test", "AT -> ST", "how2r", 2.68),
    ]


def test_recalls_are_those_that_the_paper_prints() -> None:
    with golden("value/aver.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for expected, found in zip(rows, printed_averages(), strict=True):
        assert (found.row.split, found.row.name, found.key) == (expected["split"], expected["row"], expected["task"])
        assert [found.row.values[found.key, name] for name in OF_RETRIEVAL] == [float(expected[name]) for name in OF_RETRIEVAL]
        assert found.printed == float(expected["published_aver"])
        assert found.is_misprinted == (expected["agrees"] == "no")


def test_captions_of_the_details_are_those_of_the_summaries() -> None:
    for row in detailed_rows():
        for key in ("tvc", "yc2c", "vatex_en_c"):
            value = row.values.get((key, "cider"))
            if value is not None and row.split == "test" and row.name == "ST":
                names = [one.scores[key] for one in published_rows() if one.table == "6" and one.name.endswith("ST")]
                assert value in names


def test_what_was_trained_on_a_task_itself_is_its_single_task_score() -> None:
    (single,) = [row.scores for row in published_rows() if (row.table, row.block, row.name) == ("12", "Finetune-only", "ST")]
    for rows in TRANSFER.values():
        for key, scores in rows.items():
            assert scores[key] == single[key]


def test_own_rows_stand_in_every_table() -> None:
    parts = {f"r{k}": Score(value=10.0 * k, value_answered=1.0, n=1, signature="x") for k in (1, 5, 10)}
    aver = Score(value=53.33, value_answered=1.0, n=1, signature="x", parts=parts)
    retrieval = result("value-yc2r", "aver", 53.33).model_copy(update={"metrics": {"aver": aver}})
    tables = value_tables([retrieval, result("value-tvc", "cider-d", 40.0)])
    assert [one.title.partition(":")[0].removeprefix("VALUE, table ") for one in tables] == [
        *("3", "4", "5", "5", "5", "VALUE", "9", "10", "11", "12", "13", "13"),
    ]
    assert all(len(one.rows) > 2 for one in tables)
    channels = table(tables, "VALUE, table 3")
    assert [cell.text for cell in channels.rows[-1]][3] == "53.33"
    assert channels.rows[-1][-1].text.endswith("(partial)")
    assert channels.rows[-1][-1].number is None, "a partial average is not held against others"
    assert any("partial, without value-tvr" in note for note in channels.notes)
    details = table(tables, "VALUE, table 13: recalls and captions, validation")
    own = {column: cell.text for column, cell in zip(details.columns, details.rows[-1], strict=True)}
    assert (own["YC2R R@1"], own["YC2R R@10"], own["TVC C"], own["TVC B@4"]) == ("10.00", "100.00", "40.00", "–")
    assert any("table 12 prints 38.58, its recalls give 38.99" in note for note in details.notes)
    zero_shot = table(tables, "VALUE, table 10")
    assert [cell.text for cell in zero_shot.rows[0]][1:] == [f"{value:.2f}" for value in ZERO_SHOT["CLIP, video"].values()]
    assert "TVC" not in zero_shot.columns
    human = next(one for one in tables if one.title == "VALUE").rows[0]
    assert [cell.text for cell in human] == ["Human", "–", "–", "–", "–", "89.41", "90.32", "91.39", "90.50", "62.89", "–", "62.66", "–"]


def test_other_results_have_no_tables_of_value() -> None:
    other: TaskResult = result("infilling-1", "rouge-l", 9.0)
    assert value_tables([other]) == []
    assert set(BY_KEY) >= set(ZERO_SHOT["CLIP, video"])


def test_own_transfers_stand_beside_the_published_ones_with_gaps() -> None:
    results = [
        result("value-tvqa", "accuracy", 70.0, engine="model:hero st"),
        result("value-vlep", "accuracy", 55.0, engine="model:hero st trained on tvqa"),
        result("value-vlep", "accuracy", 60.0, engine="model:hero st"),
    ]
    found = table(value_tables(results), "VALUE, table 5: transfer, questions")
    names = [row[0].text for row in found.rows]
    place = names.index("trained on TVQA: model:hero st")
    assert names[place - 1] == "trained on TVQA"
    assert [cell.number for cell in found.rows[place][1:]] == [70.0, None, None, 55.0]
    assert [cell.number for cell in found.rows[names.index("model:hero st")][1:]] == [70.0, None, None, 60.0]
    for title in ("VALUE, table 3", "VALUE, table 9", "VALUE, table 12"):
        assert not any("trained on" in row[0].text for row in table(value_tables(results), title).rows)


def test_people_begin_table_11_and_are_held_against_no_model() -> None:
    found = table(value_tables([result("value-tvqa", "accuracy", 70.0)]), "VALUE, table 11")
    assert (found.rows[0][0].text, found.rows[0][5].text) == ("Human", "89.41")
    assert not any(cell.is_best for cell in found.rows[0])


def test_own_transfers_are_of_the_model_and_of_its_training_set() -> None:
    """One model alone has been trained on the first task; another has the same name of its set; a third answers no task of VALUE."""
    results = [
        result("value-tvqa", "accuracy", 70.0, engine="model:hero st"),
        result("value-how2qa", "accuracy", 71.0, engine="model:hero st"),
        result("value-vlep", "accuracy", 55.0, engine="model:hero st trained on tvqa"),
        result("value-violin", "accuracy", 56.0, engine="model:hero st trained on tvqa"),
        result("value-vlep", "accuracy", 57.0, engine="model:hero st trained on how2qa"),
        result("value-vlep", "accuracy", 58.0, engine="model:other st trained on tvqa"),
        result("value-vlep", "accuracy", 59.0, engine="model:other trained on songs"),
        result("value-yc2r", "aver", 9.0, engine="model:other"),
        result("value-vlep", "accuracy", 12.0, engine=None),
    ]
    found = table(value_tables(results), "VALUE, table 5: transfer, questions")
    rows = {row[0].text: [cell.number for cell in row[1:]] for row in found.rows}
    assert rows["trained on TVQA: model:hero st"] == [70.0, None, 56.0, 55.0]
    assert rows["trained on How2QA: model:hero st"] == [None, 71.0, None, 57.0]
    assert rows["trained on TVQA: model:other st"] == [None, None, None, 58.0]
    assert rows["model:hero st"] == [70.0, 71.0, None, None]
    assert rows["own predictions"] == [None, None, None, 12.0]
    assert "model:other" not in rows, "it answers no questions"
    assert not any("songs" in name for name in rows)
    names = [row[0].text for row in found.rows]
    place = names.index("trained on TVQA")
    assert names[place + 1 : place + 3] == ["trained on TVQA: model:hero st", "trained on TVQA: model:other st"]


def test_the_best_of_table_5_is_the_best_of_all_its_rows() -> None:
    found = table(value_tables([result("value-vlep", "accuracy", 58.8, engine="mine")]), "VALUE, table 5: transfer, questions")
    assert [row[0].text for row in found.rows if row[-1].is_best] == ["mine"]
    found = table(value_tables([result("value-vlep", "accuracy", 58.7, engine="mine")]), "VALUE, table 5: transfer, questions")
    assert [row[0].text for row in found.rows if row[-1].is_best] == ["trained on VLEP"]


def test_recalls_that_are_not_printed_are_none_and_not_0() -> None:
    row = DetailedRow(
        "val", "", "AT", {("tvr", "r1"): 0.0, ("tvr", "r5"): 3.0, ("yc2r", "r1"): 1.0, ("yc2r", "r5"): 2.0, ("yc2r", "r10"): 4.0}
    )
    assert row.average_recall("tvr") is None
    assert row.average_recall("how2r") is None
    assert row.average_recall("yc2r") == 2.33
    assert {row.split for row in detailed_rows()} == {"val", "test"}
    gaps = [row for row in detailed_rows() if ("yc2c", "cider") not in row.values]
    assert gaps, "of the captions of val those of TVC alone are printed"
    places = [(dataset.key, name) for dataset in DETAILED for name in (OF_RETRIEVAL if dataset.category == "retrieval" else OF_CAPTIONS)]
    cells = [
        cell.text for cell in table(value_tables([result("value-tvc", "cider-d", 1.0)]), "VALUE, table 13: recalls and captions, v").rows[0]
    ]
    assert [text == "–" for text in cells[1:]] == [place not in detailed_rows()[0].values for place in places]


def test_a_printed_average_may_be_off_by_rounding() -> None:
    average = printed_averages()[0]
    recalls = [average.row.values[average.key, name] for name in OF_RETRIEVAL]
    mean = sum(recalls) / 3
    for off, expected in ((0.0, False), (0.01, False), (-0.01, False), (0.0102, True), (-0.0102, True)):
        summary = replace(average.summary, scores={**average.summary.scores, average.key: mean + off})
        assert replace(average, summary=summary).is_misprinted is expected


def test_rows_of_table_13_belong_to_those_of_the_summaries() -> None:
    """Printed averages are near those of the recalls; another row would be far from them."""
    for one in printed_averages():
        assert abs(one.row.average_recall(one.key) - one.printed) < 1
    pairs = {(one.row.split, one.row.label, one.summary.table, one.summary.label) for one in printed_averages()}
    assert len(pairs) == len({(split, label) for split, label, _, _ in pairs}) == 24
    assert {table for split, _, table, _ in pairs if split == "val"} == {"12"}
    assert {table for split, _, table, _ in pairs if split == "test"} == {"6", "11"}


def test_own_captions_have_all_their_scores_in_table_13_of_both_splits() -> None:
    values = {"bleu-4": 11.0, "rouge-l-coco": 12.0, "meteor": 13.0, "cider-d": 14.0}
    one = result("value-yc2c", "cider-d", 14.0, engine="mine")
    score = one.metrics["cider-d"]
    metrics = {name: score.model_copy(update={"value": value}) for name, value in values.items()}
    other = result("value-tvqa", "accuracy", 1.0, engine="asked")
    nothing = result("value-tvr", "vr-r1", 1.0, engine="nothing")
    for split in ("validation", "test"):
        tables = value_tables([one.model_copy(update={"metrics": metrics}), other, nothing])
        found = table(tables, f"VALUE, table 13: recalls and captions, {split}")
        assert [row[0].text for row in found.rows][-1] == "mine", "models without one of its figures are no row"
        own = {column: cell.text for column, cell in zip(found.columns, found.rows[-1], strict=True)}
        assert [own[f"YC2C {name}"] for name in ("B@4", "R", "M", "C")] == ["11.00", "12.00", "13.00", "14.00"]
        assert own["TVC C"] == own["YC2R R@1"] == "–"


def test_the_best_of_table_11_is_a_model() -> None:
    everything = [result(one.name, one.target, 95.0) for one in DATASETS]
    for number in ("3", "11"):
        found = table(value_tables(everything), f"VALUE, table {number}:")
        assert [cell.is_best for cell in found.rows[-1][1:]].count(True) >= 11
        assert all(sum(row[column].is_best for row in found.rows) == 1 for column in range(1, 13))


def test_files_that_do_not_say_whose_they_are_are_own_predictions_in_every_table() -> None:
    everything = [result(one.name, one.target, 50.0, engine=None) for one in DATASETS]
    captions = everything[-1].model_copy(update={"metrics": {"cider-d": everything[-1].metrics[DATASETS[-1].target]}})
    found = table(value_tables([*everything[:-1], captions]), "VALUE, table 13: recalls and captions, v")
    assert [row[0].text for row in found.rows][-1] == "own predictions"


def test_misprints_stand_below_their_own_table_alone() -> None:
    everything = [result(one.name, one.target, 50.0, engine="mine") for one in DATASETS]
    (suite,) = suite_tables(everything)
    others = {row.misprint for row in published_rows() if row.is_misprinted and row.table != LEADERBOARD}
    assert others
    assert not others & set(suite.notes)
    assert all(row.misprint in suite.notes for row in published_rows() if row.is_misprinted and row.table == LEADERBOARD)
