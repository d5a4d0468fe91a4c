"""How long a caption is, counted the same for every engine."""

from __future__ import annotations

import re

_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|[^\w\s]|_")


def tokens_in(text: str) -> int:
    """Words and punctuation marks, as tokenizers of the metrics of section 5 split English."""
    return len(_TOKEN.findall(text))
