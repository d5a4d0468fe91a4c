"""The captions of VATEX: the first of each video against the other nine."""

from __future__ import annotations

import gzip
import json
from functools import cache

from tests.metrics.golden import golden
from vip.metrics import Pair


@cache
def vatex_pairs() -> tuple[Pair[str, tuple[str, ...]], ...]:
    with gzip.open(golden("vatex/en_c_val.jsonl.gz"), "rt", encoding="utf-8") as file:
        rows = [[row["desc"] for row in json.loads(line)["descs"]] for line in file]
    return tuple(Pair(captions[0], tuple(captions[1:])) for captions in rows)


def vatex_score(name: str) -> float:
    """A published figure."""
    scores = json.loads(golden("vatex/expected.json").read_text(encoding="utf-8"))
    return float(scores["first_caption_against_the_other_nine"]["scores_x100"][name])
