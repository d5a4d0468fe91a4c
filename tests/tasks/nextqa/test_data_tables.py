"""Tables of questions: one's own rows below the published ones, and counts by hand."""

from __future__ import annotations

from vip.tasks.nextqa.data_tables import PUBLISHED_SETS, place_table, rule_table, table_1, table_2, type_table, video_table
from vip.tasks.nextqa.files import Question
from vip.tasks.nextqa.statistics import describe_questions
from vip.tasks.table import Table


def question(kind: str, video: str = "v", answer: object = "a", text: str = "why", qid: str = "0") -> Question:
    options = ("a", "b", "c", "d", "e") if isinstance(answer, int) else ()
    return Question(video, qid, kind, text, answer, options, None, 2)  # type: ignore[arg-type]


def cells(table: Table, row: int) -> list[str]:
    return [cell.text for cell in table.rows[row]]


SOME = [question("TN"), question("TP"), question("TC", "w"), question("CW", "w"), question("DB", "w", "yes"), question("DB", "w", "no")]


def test_ones_own_sets_stand_below_the_published_ones() -> None:
    found = {"mine": describe_questions(SOME)}
    first, second = table_1(found, "nextqa-oe"), table_2(found, "nextqa-oe")
    assert (cells(first, -1), len(first.rows)) == (["mine", "Open-ended QA", "2", "6"], len(PUBLISHED_SETS) + 1)
    assert cells(first, 0) == ["train", "Multi-choice QA", "3,870", "34,132"]
    assert cells(second, -1) == ["mine", "–", "–", "–", "2", "6", "–", "OG"]
    assert cells(second, 6) == [
        *("NExT-QA", "YFCC-100M", "causal & temporal action interactions", "Man", "5,440", "52,044", "44", "MC&OG"),
    ]
    assert cells(table_2(found, "nextqa-mc"), -1)[-1] == "MC"


def test_types_are_counted_as_annotated_with_their_shares() -> None:
    table = type_table({"mine": describe_questions(SOME), "none": describe_questions([])})
    assert table.columns == ("Type", "mine", "%", "none", "%")
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert rows["TN"] == rows["TP"] == rows["TC"] == rows["CW"] == ["1", "16.7", "0", "–"]
    assert rows["DB"] == ["2", "33.3", "0", "–"]
    assert rows["CH"] == rows["DL"] == ["0", "0.0", "0", "–"]


def test_videos_are_counted_by_their_questions_of_a_type_and_many_together() -> None:
    rows = [question("TN"), question("TP")]
    rows += [question("CW", f"v{number}") for number in (1, 5, 6, 9) for _ in range(number)]
    table = video_table("mine", describe_questions(rows))
    assert table.columns == ("Type", "0", "1", "2", "3", "4", "5", "6 or more")
    counts = {row[0].text: [cell.number for cell in row[1:]] for row in table.rows}
    assert counts["CW"] == [1, 1, 0, 0, 0, 1, 2]
    assert counts["TPN"] == [4, 0, 1, 0, 0, 0, 0]
    assert counts["DB"] == [5, 0, 0, 0, 0, 0, 0]


def test_rules_are_named_with_three_examples_and_the_balance_of_yes_and_no() -> None:
    long = [question("CW", f"v{number}", "a b c d e f g", qid=str(number)) for number in range(5)]
    table = rule_table("mine", [*SOME, *long], describe_questions([*SOME, *long]))
    assert [cells(table, place) for place in range(3)] == [
        ["question of more than 22 words", "–", "0"],
        ["answer of more than 6 words", "v0_0, v1_1, v2_2", "5"],
        ["count above 20", "–", "0"],
    ]
    assert table.notes[1] == "Answers yes and no of the type DB: 1 and 1; the paper balances them."
    assert len(rule_table("mine", long, describe_questions(long)).notes) == 1
    one_sided = [question("DB", answer="yes")]
    assert rule_table("mine", one_sided, describe_questions(one_sided)).notes[1:] == (
        "Answers yes and no of the type DB: 1 and 0; the paper balances them.",
    )


def test_right_options_are_counted_by_their_place() -> None:
    found = describe_questions([question("CW", answer=place) for place in (0, 4, 4, 2)])
    assert cells(place_table({"mine": found}), 0) == ["mine", "1", "0", "1", "0", "2"]
