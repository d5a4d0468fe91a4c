"""Statistics of people's answers, the paper's tables, and notes on where entities are seen."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.fiber.made import record
from vip.errors import InputError
from vip.tasks.fiber.notes import notes_tables, read_notes
from vip.tasks.fiber.noun_phrases import ParsedToken
from vip.tasks.fiber.records import read_records
from vip.tasks.fiber.statistics import GENDER, VISUAL, Spread, as_row, measure_answers, spread, statistics_tables
from vip.tasks.fiber.tables import fiber_tables, published, published_cell
from vip.tasks.records import Score, TaskResult

RECORDS = [
    record("the red dog", "x", additional_answers=[["a dog", "Two dogs!"], ["dog"], ["the woman"]]),
    record("a man", "y", additional_answers=[["his brother"], ["a man", "a guy"]]),
    record("a cat", "z"),
]


def parse_words(texts: Iterable[str]) -> Iterable[Sequence[ParsedToken]]:
    """Parse each text into nouns that hang on "is"; "the" and "a" are determiners of the next word."""
    for text in texts:
        words, start = text.replace(".", " ").split(" "), 0
        tokens = []
        for place, word in enumerate(words):
            is_article = word in {"the", "a"}
            pos, dep = ("DET", "det") if is_article else ("NOUN", "attr" if place > 1 else "ROOT")
            tokens.append(ParsedToken(start, start + len(word), word, pos, "NN", dep, place + 1 if is_article else min(1, place)))
            start += len(word) + 1
        yield [token for token in tokens if token.text]


def test_a_spread_is_a_mean_and_a_population_deviation() -> None:
    assert spread([1, 3]) == Spread(2, 1, 2)
    assert spread([]) is None


def test_answers_are_counted_after_normalisation() -> None:
    found = measure_answers(RECORDS)
    assert (found.captions, found.labels.count, found.answers.count) == (3, 3, 7)
    assert found.unique_a_caption == spread([3, 3, 0])  # dog, two dogs, woman; his brother, man, guy
    assert found.unique_a_worker == spread([4 / 3, 1.5])
    assert found.labels.tokens == spread([2, 1, 1])
    assert found.labels.characters_a_token == spread([3, 3, 3, 3])
    assert found.labels.visual == {"color": 1 / 3, "number": 0, "size": 0, "any": 1 / 3}
    assert found.answers.visual["number"] == 1 / 7
    assert found.labels.gender == {"male": 1 / 3, "female": 0, "neutral": 0}
    assert found.answers.gender == {"male": 3 / 7, "female": 1 / 7, "neutral": 0}  # his brother, man, guy; woman
    assert found.answers.top[0] == ("dog", 2)
    assert (found.labels.noun_phrases, found.answers.tags, found.dependencies) == (None, {}, {})


def test_a_parser_adds_parts_of_speech_and_where_the_blank_stands() -> None:
    found = measure_answers(RECORDS, parse_words)
    assert found.labels.tags == {"NOUN": 4 / 7, "DET": 3 / 7}
    assert found.labels.tag_sequences == {"DET NOUN": 2 / 3, "DET NOUN NOUN": 1 / 3}
    assert found.labels.noun_phrases == 2 / 3  # "the red dog" has two words that hang outside
    assert found.dependencies == {"attr": (3, (4 / 3 + 1.5) / 2)}
    titles = [table.title for table in statistics_tables(found)]
    assert any("Figure 6" in title for title in titles)
    assert any("Figures 8 and 9" in title for title in titles)


ROOTS = {"attr": 2, "dobj": 1}


def parse_two_roots(texts: Iterable[str]) -> Iterable[Sequence[ParsedToken]]:
    """Parse "There is A B." so that A hangs on "is" as a subject and B on "is" as an object."""
    for text in texts:
        first, second = text.removesuffix(".").split(" ")[2:4]
        start = len("There is ")
        yield [
            ParsedToken(0, 5, "There", "PRON", "EX", "expl", 1),
            ParsedToken(6, 8, "is", "VERB", "VBZ", "ROOT", 1),
            ParsedToken(start, start + len(first), first, "ADJ", "JJ", "nsubj", 1),
            ParsedToken(start + len(first) + 1, start + len(first) + 1 + len(second), second, "NOUN", "NN", "dobj", 1),
        ]


def test_of_several_roots_of_a_label_the_first_says_where_it_stands() -> None:
    found = measure_answers([record("red dog", "x", additional_answers=[["big cat", "wolf x"]])], parse_two_roots)
    assert found.dependencies == {"nsubj": (1, 2.0)}
    assert found.labels.tag_sequences == {"ADJ NOUN": 1.0}


def test_a_phrase_ends_where_it_ends_without_its_punctuation() -> None:
    found = measure_answers([record('"a", "dog".', "x", masked_caption="There is _____ it is.")], parse_words)
    assert found.labels.tag_sequences == {"DET NOUN": 1.0}


def test_frequent_phrases_are_the_first_twenty_of_equal_ones_in_the_order_of_the_alphabet() -> None:
    answers = [[f"thing {letter}" for letter in "zyxwvutsrqponmlkjihgfedcba"], ["the thing b", "Thing c!"]]
    found = measure_answers([record("a dog", additional_answers=answers)])
    assert [text for text, _ in found.answers.top] == [
        "thing b",
        "thing c",
        "thing",
        *(f"thing {letter}" for letter in "defghijklmnopqrstu"),
    ][:20]
    assert found.labels.top == (("dog", 1),)
    top = next(table for table in statistics_tables(found) if "Figure 5" in table.title)
    assert [cell.text for cell in top.rows[0]] == ["dog", "100.00", "thing b", f"{100 * 2 / 28:.2f}"]
    assert [cell.text for cell in top.rows[1]][:2] == ["", "–"]
    assert len(top.rows) == 20


def test_the_lists_of_gender_are_those_of_the_paper() -> None:
    assert {name: len(words) for name, words in GENDER.items()} == {"male": 11, "female": 10, "neutral": 9}
    assert not GENDER["male"] & GENDER["female"]
    assert not VISUAL["size"] & VISUAL["color"]


def test_tables_1_and_2_have_the_published_figures_and_ones_own() -> None:
    found = measure_answers(list(read_records(golden("fiber/records_made.json"))))
    first, second, *_ = statistics_tables(found, caption_agreement=0.47302846)
    cells = {row[0].text: row[1:] for row in (*first.rows, *second.rows)}
    assert [cell.text for cell in cells["Unique answers per caption"]][:2] == ["–", "13.0 ± 4.14"]
    assert cells["Visual word use %"][0].number == 8.21
    assert [round(cell.number or 0, 4) for cell in cells["F1 first answers (per caption)"]] == [82.6, 15.7, 50.4167, 20.6879]
    assert [round(cell.number or 0, 4) for cell in cells["Exact Match first answers (per caption)"]][2:] == [29.5833, 21.4209]
    assert [cells[f"{name} first answers (per answer)"][2].number for name in ("F1", "Exact Match")] == [57.8125, 37.5]
    assert cells["F1 of captions"][2].number == pytest.approx(47.302846)
    json.dumps(as_row(found))


def test_the_number_of_answers_stands_beside_the_agreement() -> None:
    found = measure_answers(RECORDS)
    assert found.by_unique_answers == {3: (pytest.approx((2 / 3 + 1 / 2) / 2), pytest.approx((2 / 3 + 1 / 2) / 2), 2)}
    near = measure_answers([record("red dog", additional_answers=[["dog"], ["cat"]])])
    assert near.by_unique_answers == {2: (pytest.approx(1 / 3), 0.0, 1)}, "F1 before exact match"
    table = next(table for table in statistics_tables(near) if table.title.startswith("Agreement of first answers by number"))
    assert [cell.text for cell in table.rows[0]] == ["2", "33.33", "0.00", "1"]


# ---------------------------------------------------------------- Tables 3 to 6


def result(name: str, f1: float, exact: float, **categories: float) -> TaskResult:
    groups = {
        "category": {
            key.replace("_", " "): Score(value=value, value_answered=value, n=1, signature="s") for key, value in categories.items()
        }
    }
    return TaskResult(
        task="fiber",
        task_version=1,
        name=name,
        engine=None,
        n=7,
        unscored={},
        metrics={
            "token-f1": Score(value=f1, value_answered=f1, n=7, signature="s", groups=groups),
            "exact-match": Score(value=exact, value_answered=exact, n=7, signature="s"),
        },
        samples_sha256=None,
        predictions_sha256="0" * 64,
        versions={},
    )


def test_published_figures_are_those_of_the_paper() -> None:
    theirs = {(int(row["table"][1:]), row["row"], row["column"]): row["value"] for row in _golden_rows()}
    assert theirs
    for (table, row, column), value in theirs.items():
        assert published(table)[row].get(column, "") == value


def _golden_rows() -> list[dict[str, str]]:
    import csv

    return list(csv.DictReader(golden("fiber/tables.csv").read_text(encoding="utf-8").splitlines()))


def test_ones_own_rows_stand_beside_the_published_ones() -> None:
    main, categories, beams, sizes = fiber_tables([result("gpt.jsonl", 80.04, 70.0, Person=90.0, Passive_entity=50.0)])
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in main.rows}
    assert rows["T5 + I3D"] == ["60.2", "75.0", "56.2", "71.4", "–", "–"]
    assert rows["gpt.jsonl"] == ["–", "–", "–", "–", "70.0", "80.0"]
    best = {row[0].text for row in main.rows for cell in row if cell.is_best}
    assert best == {"T5 + I3D"}  # people are no models
    assert [row[-1].text for row in categories.rows] == ["50.0", "90.0"] + ["–"] * 8
    assert [cell.number for cell in beams.rows[1][1:]] == [73.0, 74.0, 74.3, 74.2]
    assert [cell.text for cell in sizes.rows[-1]] == ["gpt.jsonl", "70.0", "80.0"]
    better = fiber_tables([result("gpt.jsonl", 80.04, 70.0), result("t5.jsonl", 90.0, 60.0)])[0]
    best = {(row[0].text, place) for row in better.rows for place, cell in enumerate(row) if cell.is_best and place > 4}
    assert best == {("gpt.jsonl", 5), ("t5.jsonl", 6)}, "one's own are held against one's own"
    people = {row[0].text: [cell.is_best for cell in row] for row in better.rows}
    assert not any(people["leave one worker out"])
    assert main.notes == ("Yours are on your own samples (gpt.jsonl: 7 blanks), against label and answers, normalised.",)
    assert published_cell(3, "T5", "x").number is None
    assert [len(table.rows) for table in fiber_tables([])] == [9, 10, 3, 4]


def test_a_model_has_one_row_for_all_its_beams() -> None:
    named = [("a", "model:text settings:1 beams:4 parser:none", 74.04), ("b", "model:text settings:1 beams:16 parser:none", 70)]
    named += [("c", "openai:some", 99), ("d", "model:text settings:1 beams:4 parser:none", 60)]
    results = [result(name, f1, 50).model_copy(update={"engine": engine}) for name, engine, f1 in named]
    beams = fiber_tables(results)[2]
    assert beams.columns == ("Method", "1", "2", "4", "8", "16")
    assert [[cell.text for cell in row] for row in beams.rows[3:]] == [
        ["model:text settings:1 parser:none", "–", "–", "74.0", "–", "70.0"],
        ["d", "–", "–", "60.0", "–", "–"],  # the same beams once more
    ]
    assert [cell.text for cell in beams.rows[0][1:]] == ["72.9", "74.2", "73.8", "73.8", "–"]


# ---------------------------------------------------------------- where, when, how long


def test_a_cell_and_a_second_count_once_a_video(tmp_path: Path) -> None:
    path = tmp_path / "notes.csv"
    path.write_text("video,second,row,column\na,0,1,1\na,0,1,1\na,2,1,1\nb,2,1,1\nb,2,4,4\n", encoding="utf-8")
    found = read_notes(path)
    assert found.videos == 2
    assert (found.cells[0][0], found.cells[3][3], sum(map(sum, found.cells))) == (1.0, 0.5, 1.5)
    path.write_text("video,second,row,column\na,0,1,3\na,1,4,2\n", encoding="utf-8")
    apart = read_notes(path)
    assert [[place for place, share in enumerate(row, 1) if share] for row in apart.cells] == [[3], [], [], [2]]
    assert found.seconds == {0: 0.5, 1: 0.0, 2: 1.0}
    assert found.durations == {1: 0.5, 2: 0.5}
    where, when, how_long = notes_tables(found)
    assert [cell.number for cell in where.rows[0]][1:] == [100.0, 0.0, 0.0, 0.0]
    assert [row[1].number for row in when.rows] == [50.0, 0.0, 100.0]
    assert [row[1].number for row in how_long.rows] == [50.0, 50.0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("video,second\n", "has no column row, column"),
        ("video,second,row,column\n", "has no notes"),
        ("video,second,row,column\na,0,5,1\n", "line 2: 5, 1 is outside the grid of 4 by 4"),
        ("video,second,row,column\na,0,0,1\n", "line 2: 0, 1 is outside the grid"),
        ("video,second,row,column\na,0,1,0\n", "line 2: 1, 0 is outside the grid"),
        ("video,second,row,column\na,0,1,5\n", "line 2: 1, 5 is outside the grid"),
        ("video,second,row,column\na,-1,1,1\n", "line 2"),
        ("video,second,row,column\na,x,1,1\n", "line 2: invalid literal"),
        ("video,second,row,column\na,1\n", "line 2"),
        (f"video,second,row,column\n{'a' * 200_000},1,1,1\n", "is no CSV"),
    ],
)
def test_notes_of_another_form_are_refused(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "notes.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_notes(tmp_path / "notes.csv")


def test_the_agreement_of_captions_has_a_row_where_it_is_known_and_figures_are_kept_as_they_are() -> None:
    found = measure_answers(RECORDS)
    names = [[row[0].text for row in statistics_tables(found, caption_agreement=value)[1].rows] for value in (None, 0.0)]
    assert names[1] == [*names[0], "F1 of captions"]
    assert statistics_tables(found, caption_agreement=0.0)[1].rows[-1][3].number == 0.0
    row = as_row(found, caption_agreement=0.25)
    assert (row["caption_agreement"], row["notes"]) == (0.25, None)
    assert row["by_unique_answers"] == found.by_unique_answers
