"""Reading files that others published: a fault is one sentence that names the file, the place and the expected form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


class FormError(Exception):
    """A file is missing or not of its published form."""


def read_json(path: Path) -> Any:
    """Return what a JSON file holds.

    Raises:
        FormError: it cannot be read, or is no JSON.
    """
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as exc:
        raise FormError(f"{path} is no JSON: {exc}.") from exc


def read_text(path: Path) -> str:
    """Return what a text file holds, in UTF-8.

    Raises:
        FormError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as exc:
        raise FormError(f"{path} cannot be read: {exc}.") from exc
