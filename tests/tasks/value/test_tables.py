"""The tables of the paper: figures as printed, averages computed again, misprints named, own rows beside them."""

from __future__ import annotations

import csv

from tests.metrics.golden import golden
from tests.tasks.value.test_suite import result
from vip.tasks.records import Score, TaskResult
from vip.tasks.table import Table
from vip.tasks.value.datasets import BY_KEY
from vip.tasks.value.suite import published_rows
from vip.tasks.value.tables import OF_RETRIEVAL, TRANSFER, ZERO_SHOT, detailed_rows, printed_averages, value_tables


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
