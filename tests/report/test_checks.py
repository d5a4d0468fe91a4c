"""FAMOuS as a card shows it: what is said, what is not determined, and what a second look corrected."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.report.pages import Page
from tests.report.runs import description, make_run
from vip.html.layout import templates
from vip.records import Check, Description, Verification
from vip.report.checks import famous_list, silent_fields


def famous(row: Description, *, stated_above: Collection[str] = ()) -> str:
    """The list as the card has it."""
    return str(templates("vip.report").get_template("card.html.jinja").module.famous(famous_list(row, stated_above=stated_above)))


@pytest.fixture(scope="module")
def row(tmp_path_factory: pytest.TempPathFactory) -> Description:
    return description(make_run(tmp_path_factory.mktemp("run")).keyframes[0].record)


def said(row: Description, *checks: Check, **fields: str | tuple[str, ...]) -> Description:
    verification = Verification(checks=checks) if checks else None
    return row.model_copy(update={"famous": row.famous.model_copy(update=fields), "verification": verification})


@pytest.mark.parametrize("text", ["not determined", "Not determined.", " NOT DETERMINED ", "", "  "])
def test_a_field_that_says_nothing_has_no_row(text: str, row: Description) -> None:
    page = Page(famous(said(row, action=text)))
    assert "Action" not in page.text
    assert "Not determined: action, mood" in page.text


def test_a_field_that_says_why_it_is_not_determined_keeps_its_row(row: Description) -> None:
    page = Page(famous(said(row, action="not determined: the hands are hidden")))
    assert "not determined: the hands are hidden" in page.text
    assert len(page.of("dd", class_="undetermined")) == 1
    assert "Not determined: mood" in page.text


def test_a_description_without_objects_has_no_row_of_objects(row: Description) -> None:
    for objects in ((), ("not determined",), ("", " ")):
        page = Page(famous(said(row, objects=objects)))
        assert "Objects" not in page.text
        assert "Not determined: mood, objects" in page.text


def test_what_the_page_says_elsewhere_is_not_said_again(row: Description) -> None:
    assert "etermined" not in famous(row, stated_above=("mood",))


def test_a_description_that_says_nothing_leaves_no_empty_list(row: Description) -> None:
    nothing = said(row, focus="", action="", objects=(), setting="not determined")
    assert famous(nothing, stated_above=row.famous.__class__.model_fields) == ""
    assert Page(famous(nothing)).of("dl") == []


@pytest.mark.parametrize(("field", "value"), [("mood", "not determined"), ("objects", ())])
def test_what_a_second_look_took_away_is_still_shown_struck_out(field: str, value: str | tuple[str, ...], row: Description) -> None:
    check = Check(field=field, claim="a ghost", verdict="unsupported", after="")  # type: ignore[arg-type]
    corrected = said(row, check, **{field: value})
    assert field not in silent_fields(corrected)
    page = Page(famous(corrected))
    assert [text for path, text in page.texts if path[-1] == "s"] == ["a ghost"]
    assert field.capitalize() in page.text
