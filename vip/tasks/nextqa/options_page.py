"""A page to check and amend the options of every question, and to save them again as a csv in the published form."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vip.html.layout import render_page, resource
from vip.html.parts import Fact
from vip.store import replacing
from vip.tasks.nextqa.distractors import COLUMNS, MultiChoiceQuestion
from vip.tasks.nextqa.files import LETTERS

PACKAGE = "vip.tasks.nextqa"
ON_A_PAGE = 500
"""Questions; a browser is slow with thousands of text fields."""


def write_option_pages(path: Path, made: Sequence[MultiChoiceQuestion]) -> list[Path]:
    """Write the page, or NAME-1.html, NAME-2.html … where the questions are more than 500; questions that lack options come first.

    Raises:
        StoreError: not writable.
    """
    ordered = sorted(made, key=lambda one: one.is_complete)
    parts = [ordered[start : start + ON_A_PAGE] for start in range(0, len(ordered), ON_A_PAGE)] or [[]]
    paths = [path] if len(parts) == 1 else [path.with_stem(f"{path.stem}-{number}") for number in range(1, len(parts) + 1)]
    for one, questions in zip(paths, parts, strict=True):
        with replacing(one) as file:
            file.write(_page(one, questions).encode())
    return paths


def _page(path: Path, made: Sequence[MultiChoiceQuestion]) -> str:
    lacking = sum(not one.is_complete for one in made)
    facts = [
        Fact("Questions", f"{len(made):,}"),
        Fact("Lack options", f"{lacking:,}", "left out until you fill them in" if lacking else ""),
    ]
    return render_page(
        PACKAGE,
        "options.html.jinja",
        style=resource("options.css", PACKAGE),
        script=resource("options.js", PACKAGE),
        title=f"Options: {path.stem}",
        facts=facts,
        questions=made,
        letters=LETTERS,
        columns=",".join(COLUMNS),
        file_name=f"{path.stem}.csv",
    )
