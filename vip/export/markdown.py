"""Text of others in Markdown: it shows as it is, and marks nothing up."""

from __future__ import annotations

import html
import re

MARKUP = re.compile(r"([\\`*_\[\]|~$@]|:(?=//)|(?<=www)\.)", re.IGNORECASE)
"""What counts in the middle of a line; links without brackets too."""


def escape_markdown(line: str) -> str:
    """Return Markdown that shows the text, which is printable and on one line."""
    return MARKUP.sub(r"\\\1", html.escape(line, quote=False))
