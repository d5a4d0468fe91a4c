"""Items that are drawn by chance, so that what people say of them speaks for all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.review.corpora import action, make_described, open_state
from tests.review.test_answer_items import opened
from tests.review.test_answer_items import write as write_answers
from vip.cli.app import run
from vip.review.agreement import agreement_by_field
from vip.review.draw import draw_ids
from vip.review.export import rows_of
from vip.review.items import read_items
from vip.review.log import NAME, ReviewLog
from vip.review.rates import engine_rates
from vip.review.report import make_report, report_lines, report_page
from vip.review.state import Queue, ReviewState
from vip.tasks.judge import read_labels

IDS = [f"k{number}" for number in range(1000)]


def test_a_draw_is_known_by_its_seed_and_not_by_the_order() -> None:
    first = draw_ids(IDS, 100, seed=1)
    assert len(first) == 100
    assert draw_ids(reversed(IDS), 100, seed=1) == first
    assert len(first & draw_ids(IDS, 100, seed=2)) < 40
    assert draw_ids(IDS, 50, seed=1) < first
    assert draw_ids(IDS[:3], 100) == set(IDS[:3])


def test_items_that_come_later_change_little() -> None:
    assert len(draw_ids(IDS, 100) & draw_ids([*IDS, *(f"new{number}" for number in range(100))], 100)) > 80


def test_each_item_is_as_likely_as_the_others() -> None:
    times = {name: sum(name in draw_ids(IDS[:20], 5, seed=seed) for seed in range(400)) for name in IDS[:20]}
    assert all(60 < count < 145 for count in times.values()), times  # 100 are expected, with a deviation of 9


@pytest.fixture
def drawn(tmp_path: Path) -> ReviewState:
    """Two of three items; the third is flagged, and judged as well."""
    open_state(make_described(tmp_path / "a", 3)).record([action("k2", "verdict", "unusable"), action("k2", "wrong:focus", "wrong")])
    return ReviewState(read_items(tmp_path / "a"), ReviewLog(tmp_path / "a" / NAME), drawn={"k0", "k1"})


def test_only_these_are_in_the_queues_the_progress_the_rates_and_the_export(drawn: ReviewState) -> None:
    drawn.record([action("k0", "verdict", "good"), action("k0", "verdict", "good", by="Bob"), action("k2", "verdict", "good", by="Bob")])
    assert drawn.numbers(Queue(reviewer="Ann")) == [0, 1]
    assert drawn.numbers(Queue(reviewer="Ann", view="unreviewed")) == [1]
    assert drawn.progress(Queue(reviewer="Ann")) == {"total": 2, "done": 1, "good": 1, "needs work": 0, "unusable": 0}
    (rates,) = engine_rates(drawn)
    assert (rates.items, rates.hallucination.value) == (1, 0.0)  # type: ignore[union-attr]
    assert agreement_by_field(drawn)[0].items == 1
    assert [row["item"] for row in rows_of(drawn)] == ["k0", "k1"]


def test_the_report_is_about_these_alone(drawn: ReviewState) -> None:
    pytest.importorskip("krippendorff")
    drawn.record(
        [action("k0", "verdict", "good"), action("k1", "focus", "a kite", before="a dancer"), action("k2", "verdict", "good", by="Bob")]
    )
    drawn.record([action("k2", "focus", "a kite", before="a dancer")])
    report = make_report(drawn)
    assert (report["items"], report["edited"], report["disagreements"]) == (2, 1, 0)
    assert report["reviewers"]["Bob"] == {"total": 2, "done": 0, "good": 0, "needs work": 0, "unusable": 0}
    assert next(report_lines(drawn)) == "2 items, 1 edited"
    assert "0 open disagreements" in report_page(drawn, title="a", token="t")


def test_what_was_done_outside_can_be_undone(drawn: ReviewState) -> None:
    assert drawn.undo("Ann", "z1") is not None
    assert drawn.value("k2", "wrong:focus", "Ann") is None


def test_of_answers_the_same_questions_are_drawn_for_every_engine(tmp_path: Path) -> None:
    found = []
    for name, words in (("a", ["a dog", "the dog", "a fox", "a cat"]), ("b", ["a hat", "the hat", "a cup", "a man"])):
        (tmp_path / name).mkdir()
        path, samples = write_answers(tmp_path / name, words)
        state = opened(path, samples)
        state.record([action(item.id, "choice", "0") for item in state.items])
        out = tmp_path / f"{name}.csv"
        assert run(["review", str(path), "--samples", str(samples), "--sample", "2", "--seed", "3", "--export", str(out)]) == 0
        found.append(set(read_labels(out)))
    assert found[0] == found[1]
    assert len(found[0]) == 2


def test_none_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["review", str(make_described(tmp_path / "a", 1)), "--sample", "0"]) == 2
    assert "at least one item is drawn" in capsys.readouterr().err
