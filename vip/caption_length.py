"""The length of a caption, counted in the same way for every engine."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_")


def tokens_in(text: str) -> int:
    """Return the number of words and punctuation marks, as the tokenizers of the metrics in section 5 split English."""
    return len(_TOKEN.findall(text))
