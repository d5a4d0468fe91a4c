"""Tables 1 and 2 and the figures of the data come out of published files."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from markupsafe import Markup

from tests.metrics.golden import golden
from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, write_csv
from vip.errors import InputError
from vip.tasks.data_description import DescribesData, write_data_page
from vip.tasks.nextqa import figures
from vip.tasks.nextqa.figures import describe_sets, opening_bars
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.nextqa.oe import NextqaOpenEnded


@pytest.fixture(autouse=True)
def _without_tagger(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("vip.metrics.perceptron_tagger.data_folders", lambda: [tmp_path / "none"])


def test_both_tasks_describe_their_data() -> None:
    assert all(isinstance(task, DescribesData) for task in (NextqaMultiChoice(), NextqaOpenEnded()))


@pytest.mark.slow
def test_the_published_validation_sets_stand_beside_their_rows_of_table_1() -> None:
    for name, task, row in (("mc_val", "nextqa-mc", 1), ("oe_val", "nextqa-oe", 5)):
        found = describe_sets([golden(f"nextqa/{name}.csv")], task)  # type: ignore[arg-type]
        table = found.tables[0]
        assert [cell.text for cell in table.rows[-1][2:]] == [cell.text for cell in table.rows[row][2:]]
        assert found.records[0]["questions"] == int(table.rows[row][3].number or 0)


@pytest.mark.slow
def test_training_and_validation_sets_together_have_the_published_shares() -> None:
    found = describe_sets([golden("nextqa/oe_train_answers.csv.gz"), golden("nextqa/oe_val.csv")], "nextqa-oe")
    train, _, both = found.records
    assert both["set"] == "all of these"
    assert (both["questions"], both["videos"]) == (37523 + 5343, 3870 + 570)
    assert both["shares"]["C"] == pytest.approx(0.48, abs=0.0015)  # section 3.3, of all three splits
    assert both["shares"]["T"] == pytest.approx(0.29, abs=0.0015)
    means = [both["answer_words"][name]["mean"] for name in ("all", "C", "T", "D")]
    assert means == pytest.approx([2.57, 3.02, 2.78, 1.36], abs=0.02)  # of all three splits
    assert train["why_share"] is None  # a file of answers alone has no questions
    assert train["question_words"]["all"]["mean"] is None


def test_each_chart_of_lengths_draws_those_that_its_title_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: dict[str, object] = {}
    monkeypatch.setattr(figures, "draw_lines", lambda lines, title, unit: drawn.update({title: lines}) or Markup(""))
    describe_sets([write_csv(tmp_path / "own.csv", MC_ROWS)], "nextqa-mc")
    assert drawn["own: words a question"] == {"C": {5: 100.0}, "T": {6: 100.0}, "D": {3: 100.0}}
    assert drawn["own: words an answer"] == {"C": {4: 100.0}, "T": {1: 100.0}, "D": {1: 100.0}}
    assert drawn["own: questions a video"] == {"own": {2: 100.0}}


def test_a_page_shows_every_figure_and_escapes_what_others_wrote(tmp_path: Path) -> None:
    rows = [(*MC_ROWS[0][:4], "<script>alert(1)</script> did it", *MC_ROWS[0][5:]), *MC_ROWS[1:]]
    found = describe_sets([write_csv(tmp_path / "own.csv", rows)], "nextqa-mc")
    write_data_page(found, tmp_path / "page.html")
    html = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<script>alert" not in html
    for title in ("Table 1", "Table 2", "Figure 3 (a)", "Figure 3 (b)", "Figure 3 (c)", "Figure 7", "Figure 8 (a)", "Figure 9"):
        assert title in html
    assert "Figure 10 (c)) are left out" in html  # the tagger is not here
    assert found.records[0]["places"] == [1, 1, 1, 0, 1]
    assert found.tables[-1].title == "Places of the right options"


def test_a_bar_of_a_type_has_its_share_of_all_questions(tmp_path: Path) -> None:
    found = describe_sets([write_csv(tmp_path / "own.csv", [MC_ROWS[0], ("v9", *MC_ROWS[0][1:]), MC_ROWS[3]])], "nextqa-mc")
    types = next(chart.svg for chart in found.charts if chart.title == "own: types of questions")
    assert (types.count("2 · 66.7 %"), types.count("1 · 33.3 %")) == (2, 2), "of CW and its group, of DL and its group"


def test_questions_with_the_paper_s_faults_are_named(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "oe.csv", [(*OE_ROWS[0][:4], "w " * 23, *OE_ROWS[0][5:]), *OE_ROWS[1:]], OE_COLUMNS)
    found = describe_sets([path], "nextqa-oe")
    assert found.records[0]["faults"]["question of more than 22 words"] == 1
    assert any("v1_0" in cell.text for table in found.tables for row in table.rows for cell in row)


def test_files_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        write_csv(tmp_path / name / "val.csv", MC_ROWS)
    found = describe_sets([tmp_path / "a" / "val.csv", tmp_path / "b" / "val.csv"], "nextqa-mc")
    assert [record["set"] for record in found.records] == ["a/val", "b/val", "all of these"]
    with pytest.raises(InputError, match="Two files of questions have one name"):
        describe_sets([tmp_path / "a" / "val.csv"] * 2, "nextqa-mc")


def test_bars_of_first_words_are_parts_of_each_other() -> None:
    bars = opening_bars(Counter({("why", "did", "man"): 6, ("why", "did", "boy"): 2, ("why", "is", "it"): 1, ("how", "many", "dogs"): 1}))
    assert [(bar.name, bar.level, bar.value) for bar in bars][:4] == [
        ("why", 0, 9),
        ("why did", 1, 8),
        ("why did man", 2, 6),
        ("why did boy", 2, 2),
    ]
    assert bars[0].text == "90.0 %"


def test_rare_openings_have_no_bar_those_at_the_bound_have_and_below_each_stand_two() -> None:
    many = {("why", f"w{number}", "x"): 10 - number for number in range(6)} | {
        ("how", "a", "b"): 955 - 2,
        ("is", "it", "so"): 1,
        ("are", "we", "x"): 1,
    }
    openings = Counter(many)
    assert openings.total() == 1000
    bars = opening_bars(openings)
    assert [(bar.name, bar.level) for bar in bars] == [
        ("how", 0),
        ("how a", 1),
        ("how a b", 2),
        ("why", 0),
        ("why w0", 1),
        ("why w0 x", 2),
        ("why w1", 1),
        ("why w1 x", 2),
        ("are", 0),
        ("are we", 1),
        ("are we x", 2),
        ("is", 0),
        ("is it", 1),
        ("is it so", 2),
    ]
    rarer = opening_bars(openings + Counter({("how", "a", "b"): 2}))
    assert not {"are", "is"} & {bar.name for bar in rarer}
    eight = opening_bars(Counter({(f"w{number}",): 20 - number for number in range(12)}))
    assert [bar.name for bar in eight] == [f"w{number}" for number in range(8)]


def test_each_file_has_its_own_figures_whatever_the_order_of_names(tmp_path: Path) -> None:
    first, second = write_csv(tmp_path / "z.csv", MC_ROWS), write_csv(tmp_path / "a.csv", MC_ROWS[:1])
    found = describe_sets([first, second], "nextqa-mc")
    assert [(record["set"], record["questions"]) for record in found.records] == [("z", 4), ("a", 1), ("all of these", 5)]
    assert [(fact.name, fact.value) for fact in found.facts] == [("Questions", "4 and 1"), ("Videos", "2 and 1")]
    assert sum(chart.title == "Words a question, by set" for chart in found.charts) == 1
    alone = describe_sets([first], "nextqa-mc")
    assert [record["set"] for record in alone.records] == ["z"]
    assert not any("by set" in chart.title for chart in alone.charts)


def test_the_record_of_a_set_has_its_shares_lengths_and_counts(tmp_path: Path) -> None:
    found = describe_sets([write_csv(tmp_path / "own.csv", MC_ROWS)], "nextqa-mc").records[0]
    assert found["types"] == {"CW": 1, "DL": 1, "TN": 1, "TP": 1}
    assert {name: found["shares"][name] for name in ("C", "T", "D", "TPN", "TC", "DL")} == {
        **{"C": 0.25, "T": 0.5, "D": 0.25, "TPN": 0.5, "TC": 0.0, "DL": 0.25},
    }
    assert found["question_words"]["all"] == {"mean": round((5 + 6 + 6 + 3) / 4, 6), "up_to_6": 1.0, "counts": {"3": 1, "5": 1, "6": 2}}
    assert found["answer_words"]["T"]["mean"] == 1.0
    assert (found["questions_a_video"], found["why_share"], found["yes_no"]) == ({"2": 2}, 0.25, {"yes": 0, "no": 0})
    assert found["openings"] == {"why did dog": 1, "what did dog": 1, "what did man": 1, "where is this": 1}


def test_parts_of_speech_have_their_share_of_all_words_of_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Tagger:
        def tag(self, tokens: list[str]) -> list[tuple[str, str]]:
            return [(token, "NN" if token in ("dog", "cat") else "VB") for token in tokens]

    monkeypatch.setattr(figures, "load_tagger", Tagger)
    path = write_csv(tmp_path / "own.csv", [*OE_ROWS, ("v3", 1, 1, 1, "what", "run", 0, "CW")], OE_COLUMNS)
    found = NextqaOpenEnded().describe_data([path])
    (chart,) = [chart.svg for chart in found.charts if chart.title == "own: parts of speech in answers"]
    assert "75.0 %" in chart
    assert "25.0 %" in chart
    assert not any("10 (c)" in note for note in found.notes)
