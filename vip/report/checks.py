"""Findings of `--verify` beside the words of a card: support, none, and what stood there before the review.

In: a description with or without its Verification. Out: the FAMOuS list of a card, and one line that counts the verdicts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from vip.html.format import is_undetermined
from vip.records import NOT_DETERMINED, NOT_KNOWN, Check, Description, Famous, RichFields, Verification

VERDICTS = {"supported": "supported by the frame", "unsupported": "not", "unchecked": "left open"}


@dataclass(frozen=True, slots=True)
class Replaced:
    """A text that the review took away, and why."""

    text: str
    title: str


@dataclass(frozen=True, slots=True)
class ShownClaim:
    """A text of FAMOuS with its mark: `doubt` where it found no support, `seen` where the review confirms it all the same."""

    text: str
    mark: Literal["", "doubt", "seen"] = ""
    title: str = ""
    replaced: Replaced | None = None

    @property
    def is_undetermined(self) -> bool:
        """The engine says that it cannot see it."""
        return is_undetermined(self.text)


@dataclass(frozen=True, slots=True)
class FamousRow:
    """A field of FAMOuS: one text, or a list of objects with those that the review took away."""

    name: str
    claims: tuple[ShownClaim, ...]
    removed: tuple[Replaced, ...] = ()
    is_list: bool = False


@dataclass(frozen=True, slots=True)
class FamousList:
    """The fields that say something, and the names of the others."""

    rows: tuple[FamousRow, ...]
    silent: tuple[str, ...]


def famous_list(description: Description, *, stated_above: Collection[str] = ()) -> FamousList:
    """Return the fields that say something, each claim with its mark, and the names of the others.

    Args:
        stated_above: fields of which the page says once for all cards that they are not determined.
    """
    silent = silent_fields(description)
    rows = [_row(name, description) for name in Famous.model_fields if name not in silent]
    return FamousList(tuple(rows), tuple(name for name in silent if name not in stated_above))


def rich_rows(description: Description) -> tuple[FamousRow, ...]:
    """Return the rich fields that say something; a number that the detections contradict has a mark."""
    rows = []
    for name in RichFields.model_fields if description.rich else ():
        value = getattr(description.rich, name)
        said = (value,) if isinstance(value, str) else tuple(one if isinstance(one, str) else one.phrase for one in value)
        if name == "counts":
            claims = tuple(_count_claim(text, description) for text in said)
        else:
            claims = tuple(ShownClaim(text) for text in said if text != NOT_KNOWN and not is_undetermined(text))
        if claims:
            rows.append(FamousRow(name.replace("_", " "), claims, is_list=len(claims) != 1))
    return tuple(rows)


def _count_claim(text: str, description: Description) -> ShownClaim:
    check = next((one for one in _checks(description) if one.field == "counts" and one.claim == text), None)
    if check is None or check.verdict != "unsupported":
        return ShownClaim(text)
    return ShownClaim(text, "doubt", f"The detector {', '.join(check.by)} found another number.")


def silent_fields(description: Description) -> tuple[str, ...]:
    """Return the names of the fields that say nothing, and of which no correction is shown either."""
    corrected = {check.field for check in _checks(description) if _is_corrected(check)}
    return tuple(name for name in description.famous.undetermined if name not in corrected)


def summary(verification: Verification | None) -> str:
    """Return `Claims: 7 supported by the frame, 1 not, 2 left open; 1 corrected by a second look.`; nothing where nobody checked."""
    if verification is None or not verification.checks:
        return ""
    counts: Counter[str] = Counter(check.verdict for check in verification.checks)
    verdicts = ", ".join(f"{counts[verdict]} {words}" for verdict, words in VERDICTS.items() if counts[verdict])
    changed = sum(map(_is_corrected, verification.checks))
    return f"Claims: {verdicts}{f'; {changed} corrected by a second look' if changed else ''}."


def _row(name: str, description: Description) -> FamousRow:
    value: str | tuple[str, ...] = getattr(description.famous, name)
    if isinstance(value, str):
        return FamousRow(name, (_claim(name, value, description),))
    removed = tuple(_to_replaced(check) for check in _checks(description) if check.field == name and check.after == "")
    return FamousRow(name, tuple(_claim(name, one, description) for one in value), removed, is_list=len(value) != 1 or bool(removed))


def _checks(description: Description) -> tuple[Check, ...]:
    return description.verification.checks if description.verification else ()


def _claim(field: str, text: str, description: Description) -> ShownClaim:
    check = next((one for one in _checks(description) if one.field == field and text in (_text_after_review(one), one.claim)), None)
    if check is None or check.verdict != "unsupported":
        return ShownClaim(text)
    if _is_corrected(check):
        return ShownClaim(text, replaced=_to_replaced(check))
    outcome = "a second look confirms it" if check.after is not None else "no second look was taken"
    return ShownClaim(text, "seen" if check.after else "doubt", f"No support in the frame{_format_figures(check)}; {outcome}.")


def _is_corrected(check: Check) -> bool:
    return check.after is not None and check.after != check.claim


def _text_after_review(check: Check) -> str | None:
    """Return the text that stands in the description since the review: of an object that is not there, none."""
    return NOT_DETERMINED if check.after == "" and check.field != "objects" else check.after


def _to_replaced(check: Check) -> Replaced:
    return Replaced(check.claim, f"Found no support in the frame{_format_figures(check)}; corrected by a second look.")


def _format_figures(check: Check) -> str:
    if check.similarity is None or check.baseline is None:
        return ""
    return f": cosine {check.similarity:.2f}, and {check.baseline:.2f} for what does not belong together"
