"""FAMOuS on a card, and what `--verify` found beside the words that it is about: support, none, and what was there before a second look.

In: a description with or without its Verification. Out: the FAMOuS list of a card, and one line that sums the checks up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from vip.html.format import is_undetermined
from vip.html.markup import Html, join, tag
from vip.records import NOT_DETERMINED, Check, Description, Famous, Verification

VERDICTS = {"supported": "supported by the frame", "unsupported": "not", "unchecked": "left open"}


def famous(description: Description, *, told: Collection[str] = ()) -> Html:
    """Return the fields that say something, each claim with its mark, and one line that names the others.

    Args:
        told: fields of which the page says elsewhere that they are not determined.
    """
    said, silent = description.famous, silent_fields(description)
    values = {
        name: _objects(said.objects, description) if name == "objects" else _value(name, getattr(said, name), description)
        for name in Famous.model_fields
        if name not in silent
    }
    rows = [tag("div", tag("dt", name.capitalize()), value) for name, value in values.items()]
    missing = [name for name in silent if name not in told]
    line = tag("p", f"{NOT_DETERMINED.capitalize()}: {', '.join(missing)}", class_="silent") if missing else ""
    return join([tag("dl", join(rows), class_="famous") if rows else "", line])


def silent_fields(description: Description) -> tuple[str, ...]:
    """Return the names of the fields that say nothing, and of which no correction is shown either."""
    corrected = {check.field for check in _checks(description) if _is_corrected(check)}
    return tuple(name for name in description.famous.undetermined if name not in corrected)


def summary(verification: Verification | None) -> Html:
    """`Claims: 7 supported by the frame, 1 not, 2 left open; 1 corrected by a second look`; nothing where nobody checked."""
    if verification is None or not verification.checks:
        return Html("")
    counts: Counter[str] = Counter(check.verdict for check in verification.checks)
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    changed = sum(map(_is_corrected, verification.checks))
    corrected = f"; {changed} corrected by a second look" if changed else ""
    return tag("p", f"Claims: {told}{corrected}.", class_="checked")


def _value(field: str, text: str, description: Description) -> Html:
    return tag("dd", _claim(field, text, description), class_="undetermined" if is_undetermined(text) else None, dir="auto")


def _objects(objects: tuple[str, ...], description: Description) -> Html:
    gone = [tag("li", _was(check)) for check in _checks(description) if check.field == "objects" and check.after == ""]
    if len(objects) == 1 and not gone:
        return _value("objects", objects[0], description)
    named = join(tag("li", tag("bdi", _claim("objects", name, description))) for name in objects)
    return tag("dd", tag("ul", named, join(gone), class_="inline"))


def _checks(description: Description) -> tuple[Check, ...]:
    return description.verification.checks if description.verification else ()


def _claim(field: str, text: str, description: Description) -> Html | str:
    """The text, marked where it found no support, and with what was there before."""
    check = next((one for one in _checks(description) if one.field == field and text in (_after(one), one.claim)), None)
    if check is None or check.verdict != "unsupported":
        return text
    if _is_corrected(check):
        return join([tag("span", text), " ", _was(check)])
    seen = "a second look confirms it" if check.after is not None else "no second look was taken"
    return tag("mark", text, title=f"No support in the frame{_figures(check)}; {seen}.", class_="seen" if check.after else "doubt")


def _is_corrected(check: Check) -> bool:
    return check.after is not None and check.after != check.claim


def _after(check: Check) -> str | None:
    """Return the text that stands in the description since the second look: of an object that is not there, none."""
    return NOT_DETERMINED if check.after == "" and check.field != "objects" else check.after


def _was(check: Check) -> Html:
    return tag("s", check.claim, title=f"Found no support in the frame{_figures(check)}; corrected by a second look.", class_="was")


def _figures(check: Check) -> str:
    if check.similarity is None or check.baseline is None:
        return ""
    return f": cosine {check.similarity:.2f}, and {check.baseline:.2f} for what does not belong together"
