from __future__ import annotations

from pathlib import Path
from typing import get_args

import cv2

from tests.report.pages import Page
from tests.report.runs import candidates, make_run, picture
from vip.html.format import RULES
from vip.html.layout import templates
from vip.html.pictures import data_uri
from vip.records import Candidate, Rule
from vip.report.dropped import LEAST_SHOWN_PER_RULE, MAX_OPEN, MAX_SHOWN, dropped_strip, sample
from vip.report.pictures import Thumbnails, open_thumbnails


def dropped(rows: list[Candidate], thumbnails: Thumbnails) -> str:
    """The strip as the page has it."""
    return str(templates("vip.report").get_template("dropped.html.jinja").module.dropped(dropped_strip(rows, thumbnails), False))


def section(rules: tuple[Rule, ...]) -> Page:
    return Page(dropped(candidates(rules), Thumbnails(None)))


def test_no_section_where_nothing_was_dropped() -> None:
    assert dropped(candidates(("kept", "kept")), Thumbnails(None)) == ""


def test_of_very_many_some_are_shown_and_the_rest_is_counted() -> None:
    rules: tuple[Rule, ...] = ("pruned",) * 995 + ("black",) * 5
    rows = sample(candidates(rules))
    assert len(rows) <= MAX_SHOWN + LEAST_SHOWN_PER_RULE
    assert sum(row.decision.rule == "black" for row in rows) == 5
    assert [row.index for row in rows] == sorted(row.index for row in rows)
    assert (rows[0].index, rows[-1].index) == (0, 999)
    text = section(rules).text
    assert f"{len(rows)} of 1000 are shown, evenly chosen; the other {1000 - len(rows)} are in candidates.jsonl" in text
    assert text.count("reason ") == len(rows)


def test_all_are_shown_where_they_are_few() -> None:
    assert sample(rows := candidates(("pruned",) * MAX_SHOWN)) == rows
    assert "are shown" not in section(("pruned",) * MAX_SHOWN).text


def test_long_strips_are_folded_and_can_be_unfolded() -> None:
    page = section(("pruned",) * (MAX_OPEN + 3))
    assert len(page.of("li", class_="pruned later")) == 3
    assert len(page.of("input", id="show-dropped")) == 1
    assert not section(("pruned",) * MAX_OPEN).of("input")


def test_the_filter_counts_each_rule_and_the_style_sheet_knows_it() -> None:
    page = section(("pruned", "pruned", "kept", "below_min_sharpness"))
    assert [choice["id"] for choice in page.of("input", type="radio")] == ["rule-all", "rule-pruned", "rule-below-min-sharpness"]
    style = (Path(__file__).parents[2] / "vip/html/page.css").read_text(encoding="utf-8")
    for rule in RULES:
        name = rule.replace("_", "-")
        assert f".dropped:has(#rule-{name}:checked) .strip li:not(.{name})" in style


def test_every_rule_that_drops_has_words() -> None:
    assert set(get_args(Rule)) - {"kept"} == set(RULES)


def test_thumbnails_are_those_of_the_candidates(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    with open_thumbnails(tmp_path) as thumbnails:
        html = dropped(run.candidates, thumbnails)
    for row in run.candidates:
        data = data_uri(cv2.imencode(".jpg", picture(row.index))[1].tobytes())
        assert (data in html) == (not row.decision.kept and row.quality is not None)
