"""What `--verify` found, beside the words that it is about: support, none, and what was there before a second look.

In: a description with or without its Verification. Out: the FAMOuS list of a card, and one line that sums the checks up.
"""

from __future__ import annotations

from collections import Counter

from vip.records import Check, Description, Verification
from vip.report.markup import Html, join, tag
from vip.report.words import is_undetermined

VERDICTS = {"supported": "supported by the frame", "unsupported": "not", "unchecked": "left open"}


def famous(description: Description) -> Html:
    """The five fields, each claim with its mark."""
    said = description.famous
    rows = [
        ("Focus", _value("focus", said.focus, description)),
        ("Action", _value("action", said.action, description)),
        ("Mood", _value("mood", said.mood, description)),
        ("Objects", _objects(said.objects, description)),
        ("Setting", _value("setting", said.setting, description)),
    ]
    return tag("dl", join(tag("div", tag("dt", name), value) for name, value in rows), class_="famous")


def summary(verification: Verification | None) -> Html:
    """`Claims: 7 supported by the frame, 1 not, 2 left open; 1 corrected by a second look`; nothing where nobody checked."""
    if verification is None or not verification.checks:
        return Html("")
    counts: Counter[str] = Counter(check.verdict for check in verification.checks)
    told = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    changed = sum(check.after is not None and check.after != check.claim for check in verification.checks)
    corrected = f"; {changed} corrected by a second look" if changed else ""
    return tag("p", f"Claims: {told}{corrected}.", class_="checked")


def _value(field: str, text: str, description: Description) -> Html:
    if not text.strip():
        return tag("dd", "left empty", class_="undetermined")
    return tag("dd", _claim(field, text, description), class_="undetermined" if is_undetermined(text) else None, dir="auto")


def _objects(objects: tuple[str, ...], description: Description) -> Html:
    gone = [tag("li", _was(check)) for check in _checks(description) if check.field == "objects" and check.after == ""]
    if not objects and not gone:
        return tag("dd", "none named", class_="undetermined")
    if len(objects) == 1 and not gone:
        return _value("objects", objects[0], description)
    named = join(tag("li", tag("bdi", _claim("objects", name, description))) for name in objects)
    return tag("dd", tag("ul", named, join(gone), class_="inline"))


def _checks(description: Description) -> tuple[Check, ...]:
    return description.verification.checks if description.verification else ()


def _claim(field: str, text: str, description: Description) -> Html | str:
    """The text, marked where it found no support, and with what was there before."""
    check = next((one for one in _checks(description) if one.field == field and text in (one.after, one.claim)), None)
    if check is None or check.verdict != "unsupported":
        return text
    if check.after is not None and check.after != check.claim:
        return join([tag("span", text), " ", _was(check)])
    seen = "a second look confirms it" if check.after is not None else "no second look was taken"
    return tag("mark", text, title=f"No support in the frame{_figures(check)}; {seen}.", class_="seen" if check.after else "doubt")


def _was(check: Check) -> Html:
    return tag("s", check.claim, title=f"Found no support in the frame{_figures(check)}; corrected by a second look.", class_="was")


def _figures(check: Check) -> str:
    if check.similarity is None or check.baseline is None:
        return ""
    return f": cosine {check.similarity:.2f}, and {check.baseline:.2f} for what does not belong together"
