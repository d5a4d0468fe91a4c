"""FAMOuS as a card shows it: what is said, what is not determined, and what a second look corrected."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from tests.export.test_csv import FIELDS
from tests.report.pages import Page
from tests.report.runs import description, make_run
from vip.html.layout import templates
from vip.records import Check, Description, ObjectColour, ObjectCount, Verification
from vip.report.checks import famous_list, rich_rows, silent_fields, summary


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


@pytest.mark.parametrize(
    ("verdict", "after", "mark"),
    [
        ("supported", None, ""),
        ("unchecked", None, ""),
        ("unsupported", None, "doubt"),
        ("unsupported", "leaps", "seen"),
    ],
)
def test_only_what_found_no_support_has_a_mark_which_says_whether_a_second_look_confirms_it(
    verdict: str, after: str | None, mark: str, row: Description
) -> None:
    check = Check(field="action", claim="leaps", verdict=verdict, similarity=0.12, baseline=0.2, after=after)  # type: ignore[arg-type]
    page = Page(famous(said(row, check)))
    assert [found["class"] for found in page.of("mark")] == ([mark] if mark else [])
    if mark:
        outcome = "a second look confirms it" if mark == "seen" else "no second look was taken"
        figures = "cosine 0.12, and 0.20 for what does not belong together"
        assert page.of("mark")[0]["title"] == f"No support in the frame: {figures}; {outcome}."
    assert page.of("s") == []


def test_a_text_that_was_taken_away_stands_struck_out_beside_what_took_its_place(row: Description) -> None:
    for after, now in (("", "not determined"), ("a dancer lands", "a dancer lands")):
        check = Check(field="action", claim="leaps", verdict="unsupported", after=after)
        page = Page(famous(said(row, check, action=now)))
        assert [text for path, text in page.texts if path[-1] == "s"] == ["leaps"], after
        assert now in page.text
        assert page.of("mark") == []


def test_a_mark_is_that_of_its_own_field_and_object(row: Description) -> None:
    checks = [Check(field="objects", claim="ball", verdict="unsupported"), Check(field="focus", claim="leaps", verdict="unsupported")]
    page = Page(famous(said(row, *checks)))
    assert page.inside("mark") == ["ball"]


@pytest.mark.parametrize(
    ("checks", "expected"),
    [
        ([], ""),
        ([("supported", None)], "Claims: 1 supported by the frame."),
        ([("unsupported", None), ("unchecked", None), ("unchecked", None)], "Claims: 1 not, 2 left open."),
        ([("supported", None), ("unsupported", "leaps"), ("unsupported", "")],
         "Claims: 1 supported by the frame, 2 not; 1 corrected by a second look."),
    ],
)  # fmt: skip
def test_the_verdicts_are_counted_in_a_sentence(checks: list[tuple[str, str | None]], expected: str) -> None:
    made = tuple(Check(field="action", claim="leaps", verdict=verdict, after=after) for verdict, after in checks)  # type: ignore[arg-type]
    assert summary(Verification(checks=made)) == expected
    assert summary(None) == ""


# ---------------------------------------------------------------- rich fields


def rich(row: Description) -> Page:
    return Page(str(templates("vip.report").get_template("card.html.jinja").module.rich(rich_rows(row))))


def test_rich_fields_that_say_something_have_rows(row: Description) -> None:
    page = rich(row.model_copy(update={"rich": FIELDS}))
    names = [text for path, text in page.texts if path[-1] == "dt"]
    assert names == ["Shot size", "Camera angle", "Counts", "Colours", "Relations", "Visible text"]
    assert "person left of box" in page.text


def test_a_number_that_detections_contradict_has_a_mark(row: Description) -> None:
    check = Check(field="counts", claim="person: 1", verdict="unsupported", by=("detr",))
    page = rich(row.model_copy(update={"rich": FIELDS, "verification": Verification(checks=(check,))}))
    (mark,) = page.of("mark", class_="doubt")
    assert mark["title"] == "The detector detr found another number."
    assert page.inside("mark") == ["person: 1"]
    assert not rich(row.model_copy(update={"rich": FIELDS})).of("mark")
    for verdict in ("supported", "unchecked"):
        sure = Verification(checks=(check.model_copy(update={"verdict": verdict}),))
        assert not rich(row.model_copy(update={"rich": FIELDS, "verification": sure})).of("mark")


def test_a_description_without_rich_fields_has_no_rows_of_them(row: Description) -> None:
    assert rich_rows(row) == ()


def test_hostile_text_in_rich_fields_stays_text(row: Description) -> None:
    attack = "<script>alert(1)</script>"
    hostile = FIELDS.model_copy(
        update={
            "counts": (ObjectCount(object=f"person{attack}", count=1),),
            "colours": (ObjectColour(object="coat", colour=f"red{attack}"),),
            "visible_text": (f"EXIT{attack}",),
        }
    )
    page = rich(row.model_copy(update={"rich": hostile}))
    assert page.skeleton == rich(row.model_copy(update={"rich": FIELDS})).skeleton
    assert f"person{attack}: 1" in page.text
    assert f"EXIT{attack}" in page.text
