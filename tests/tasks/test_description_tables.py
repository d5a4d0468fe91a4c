"""Tables 2 to 6 of the paper, cell for cell, and one's own rows in them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from statistics import stdev

import pytest

from tests.metrics.golden import golden
from tests.tasks.scoring import result, score_of
from vip.metrics.famous import COMPONENTS
from vip.metrics.statistics import correct_holm
from vip.tasks import description_tables as module
from vip.tasks.description_tables import (
    ModelRow,
    causal_table,
    component_table,
    description_tables,
    domain_table,
    main_table,
    own_rows,
    prompt_table,
    prompt_variant,
)
from vip.tasks.records import TaskResult
from vip.tasks.table import Table

NAMES = {"ROUGEL": "ROUGE-L", "BERTScore": "BERTScore", "SentenceBERT": "SentenceBERT"}


def rows_of(name: str) -> Iterator[dict[str, str]]:
    with golden(f"vip/{name}").open() as file:
        yield from csv.DictReader(file)


def cell(table: Table, labels: tuple[str, str], column: str) -> tuple[str, bool]:
    (row,) = [row for row in table.rows if (row[0].text, row[1].text) == labels]
    found = row[table.columns.index(column)]
    return found.text, found.is_best


def test_table_3_renders_cell_for_cell() -> None:
    table, count = main_table([]), 0
    for row in rows_of("table3.csv"):
        representation = {"famous": "FAMOuS", "dense": "Dense"}[row["representation"]]
        column = f"{row['task'].capitalize()}-{row['context_frames']} {representation}"
        assert cell(table, (NAMES[row["metric"]], row["model"]), column)[0] == f"{float(row['score_x100']):.2f}"
        count += 1
    assert count == 72 == 8 * len(table.rows)


def test_table_3_underlines_the_best_model_of_each_metric_and_column() -> None:
    table, best = main_table([]), dict[tuple[str, str], float]()
    for row in table.rows:
        for name, one in zip(table.columns[2:], row[2:], strict=True):
            best[row[0].text, name] = max(best.get((row[0].text, name), 0), one.number or 0)
    for row in table.rows:
        for name, one in zip(table.columns[2:], row[2:], strict=True):
            assert one.is_best == (one.number == best[row[0].text, name])


def test_table_4_renders_cell_for_cell() -> None:
    table = component_table([])
    for row in rows_of("table4.csv"):
        for column in ("famous", "dense", *COMPONENTS):
            name = {"famous": "FAMOuS"}.get(column, column.capitalize())
            assert cell(table, (NAMES[row["metric"]], row["model"]), name)[0] == f"{float(row[column]):.2f}"
    assert len(table.rows) == 9


def test_table_6_renders_cell_for_cell() -> None:
    table, count = domain_table([]), 0
    for row in rows_of("table6.csv"):
        for metric in NAMES:
            for kind, shown in {"famous": "FAMOuS", "dense": "Dense"}.items():
                text, _ = cell(table, (row["domain"], row["model"]), f"{NAMES[metric]} {shown}")
                assert text == f"{float(row[f'{metric.lower()}_{kind}']):.4f}"
                count += 1
    assert count == 192 == 6 * len(table.rows)
    assert sum(one.is_best for row in table.rows for one in row) == 6  # one a column


def test_tables_2_and_5_render_cell_for_cell() -> None:
    spread, causal = prompt_table([]), causal_table([])
    values = {(row["table"], row["row"], row["column"]): row["value"] for row in rows_of("tables_1_2_5.csv")}
    assert cell(spread, ("ROUGE-L", "GPT-4, 3 prompts"), "Mean ± standard deviation")[0] == "17.75 ± 0.43"
    for metric in ("ROUGE-L", "BERTScore", "SentenceBERT"):
        deviation = values.get(("2", metric, "standard deviation"))
        assert cell(spread, (metric, "GPT-4, 3 prompts"), "Mean ± standard deviation")[0].endswith(f"± {deviation}")
        for column in ("Social", "Physical"):
            assert cell(causal, (metric, "GPT-4"), column)[0] == values["5", metric, column.lower()]


def own(task: str, representation: str = "famous", value: float = 50.0, **more: object) -> TaskResult:
    groups = {"domain": {"Games": score_of(value + 2), "Sports": score_of(value + 4)}}
    parts = {name: score_of(value + place) for place, name in enumerate(COMPONENTS)} if representation == "famous" else {}
    return result(task, "mine", representation, metrics={"rouge-l": score_of(value, groups=groups, parts=parts)}, **more)


def test_results_of_one_model_fill_one_row_beside_the_published_ones() -> None:
    tables = description_tables([own("infilling-1"), own("prediction-2", "dense", 10.0), own("prediction-3", value=1.0)])
    _, main, components, _, _ = tables
    mine = ("ROUGE-L", "mine (text only)")
    assert cell(main, mine, "Infilling-1 FAMOuS") == ("50.00", True)
    assert cell(main, mine, "Prediction-2 Dense") == ("10.00", False)
    assert cell(main, mine, "Infilling-2 Dense") == ("–", False)
    assert [cell(components, mine, name)[0] for name in ("FAMOuS", "Dense", "Focus", "Setting")] == ["1.00", "–", "1.00", "5.00"]
    assert cell(main, ("ROUGE-L", "GPT-4"), "Infilling-1 FAMOuS") == ("17.34", False)


def test_other_prompts_and_frame_budgets_stand_in_rows_of_their_own() -> None:
    second = own("infilling-1", parameters={"representation": "famous", "prompt": "infilling-2@abc"})
    seen = own("infilling-1", budget={"frames": 8, "chosen": "vip"})
    assert [row.name for row in own_rows([own("infilling-1"), second, seen])] == [
        "mine (text only)",
        "mine (text only), prompt 2",
        "mine (8 frames)",
    ]


def test_domains_are_means_over_the_tasks_as_fractions_and_say_what_is_missing() -> None:
    tasks = ("infilling-1", "infilling-2", "prediction-1", "prediction-2", "prediction-3")
    whole = domain_table(own_rows([own(task, value=10.0 * place) for place, task in enumerate(tasks)]))
    assert cell(whole, ("Games", "mine (text only)"), "ROUGE-L FAMOuS")[0] == "0.2200"
    assert not any("not all of" in note for note in whole.notes)
    part = domain_table(own_rows([own("infilling-1")]))
    assert any(note.startswith("mine (text only): not all of") for note in part.notes)


def test_stability_is_the_sample_deviation_over_the_prompts() -> None:
    values = {"1": 10.0, "2": 12.0, "3": 17.0}
    results = [
        own("infilling-1", value=value, parameters={"representation": "famous", "prompt": f"infilling-{n}@f"})
        for n, value in values.items()
    ]
    text, _ = cell(prompt_table(results), ("ROUGE-L", "mine (text only), 3 prompts"), "Mean ± standard deviation")
    assert text == f"13.00 ± {stdev(values.values()):.2f}"


@pytest.mark.parametrize(("p", "is_marked"), [(0.001, True), (0.03, False)])
def test_a_significant_difference_of_causes_is_marked_after_holm(p: float, is_marked: bool) -> None:
    def metric(p_value: float) -> object:
        contrast = {"grouping": "causal", "first": "physical", "second": "social", "difference": 1.0, "standard_error": 0.1}
        groups = {"causal": {"physical": score_of(10.0), "social": score_of(11.0)}}
        return score_of(10.5, groups=groups, contrasts=[{**contrast, "low": 0.5, "high": 1.5, "p_value": p_value}])

    found = causal_table([result("infilling-1", "mine", metrics={"rouge-l": metric(p), "bert-score": metric(0.5)})])
    assert cell(found, ("ROUGE-L", "mine (text only)"), "Social") == ("11.00", is_marked)
    assert cell(found, ("ROUGE-L", "mine (text only)"), "Physical") == ("10.00", is_marked)
    assert cell(found, ("ROUGE-L", "mine (text only)"), "p, Holm")[0] == f"{correct_holm([p, 0.5])[0]:.4f}"


def test_results_of_other_tasks_are_left_out() -> None:
    assert description_tables([result("nextqa-mc", "mine", metrics={"rouge-l": score_of(1.0)})]) == description_tables([])


def test_a_model_is_looked_up_in_its_own_domains_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def noted(model: ModelRow, metric: str, kind: str, domain: str) -> tuple[float | None, int]:
        asked.append(domain)
        return None, 0

    monkeypatch.setattr(module, "_domain_value", noted)
    domain_table([])
    published = len(asked)
    metrics = {str(place): {"rouge-l": score_of(1.0, groups={"domain": {f"d{place}": score_of(1.0)}})} for place in range(50)}
    domain_table(own_rows([result("infilling-1", name, metrics=some) for name, some in metrics.items()]))
    assert len(asked) - 2 * published == 50 * 6


def test_tasks_that_were_not_scored_do_not_lower_the_mean_of_a_domain() -> None:
    part = domain_table(own_rows([own("infilling-1", value=10.0), own("prediction-3", value=20.0)]))
    assert cell(part, ("Games", "mine (text only)"), "ROUGE-L FAMOuS")[0] == f"{(12 + 22) / 200:.4f}"
    assert cell(part, ("Games", "mine (text only)"), "ROUGE-L Dense")[0] == "–"
    assert cell(part, ("Sports", "mine (text only)"), "ROUGE-L FAMOuS")[0] == f"{(14 + 24) / 200:.4f}"


def test_frames_that_two_choosers_chose_are_one_row_and_the_best_is_of_its_metric_alone() -> None:
    seen = [own(task, budget={"frames": 8, "chosen": how}) for task, how in (("infilling-1", "vip"), ("infilling-2", "evenly spaced"))]
    (row,) = own_rows(seen)
    assert row.name == "mine (8 frames)"
    high = result("infilling-1", "mine", metrics={"sentence-bert": score_of(99.0)})
    table = main_table(own_rows([high]))
    assert cell(table, ("SentenceBERT", "mine (text only)"), "Infilling-1 FAMOuS") == ("99.00", True)
    best = {row[0].text for row in table.rows if row[2].is_best}
    assert best == {"ROUGE-L", "BERTScore", "SentenceBERT"}, "each metric has a best of its own"


def test_one_prompt_has_no_stability_and_other_models_have_rows_of_their_own() -> None:
    def prompted(engine: str, number: int, value: float, task: str = "infilling-1", kind: str = "famous") -> TaskResult:
        parameters = {"representation": kind, "prompt": f"infilling-{number}@f"}
        return result(task, engine, metrics={"rouge-l": score_of(value)}, parameters=parameters)

    rows = [prompted("a", 1, 10.0), prompted("a", 2, 14.0), prompted("b", 1, 10.0), prompted("a", 3, 99.0, "infilling-2")]
    rows += [prompted("a", 3, 99.0, kind="dense"), result("infilling-1", "a", metrics={"rouge-l": score_of(0.0)})]
    mine = [[one.text for one in row] for row in prompt_table(rows).rows][3:]
    assert mine == [["ROUGE-L", "a (text only), 2 prompts", f"12.00 ± {stdev([10.0, 14.0]):.2f}"]]


def test_prompts_are_told_by_their_number() -> None:
    names = {prompt: prompt_variant(own("infilling-1", parameters={"prompt": prompt})) for prompt in ("infilling-2@ab", "prediction-10@ab")}
    assert names == {"infilling-2@ab": "2", "prediction-10@ab": "10"}
    assert prompt_variant(own("infilling-1", parameters={"prompt": ["infilling-1@a", "infilling-2@b"]})) is None
