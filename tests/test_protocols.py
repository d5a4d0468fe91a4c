"""Records of protocols: columns that belong together have one length."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from vip.protocols import DistinctPictures, Prunable
from vip.records import Embeddings

COLUMNS: dict[str, Any] = {
    "embeddings": Embeddings(np.eye(2, dtype=np.float32), np.eye(2, dtype=np.float32), "m"),
    "times_s": [0.0, 1.0],
    "has_people": [False, True],
    "sharpness": [1.0, 2.0],
    "in_transition": [False, False],
    "relevance": [0.1, 0.2],
    "signatures": np.zeros((2, 18, 32, 3), np.uint8),
}


def test_columns_of_one_length_are_candidates() -> None:
    assert len(Prunable(**COLUMNS)) == 2
    assert len(Prunable(**{**COLUMNS, "relevance": None, "signatures": None})) == 2


@pytest.mark.parametrize("name", [name for name in COLUMNS if name != "embeddings"])
def test_a_column_of_another_length_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="columns of different lengths"):
        Prunable(**{**COLUMNS, name: COLUMNS[name][:1]})


def test_rows_are_taken_of_every_column() -> None:
    frames = Prunable(**COLUMNS, text_weight=0.25, pictures=DistinctPictures([0, 1], [0, 1]))
    taken = frames.take([1])
    assert (taken.times_s, taken.has_people, taken.sharpness, taken.in_transition) == ([1.0], [True], [2.0], [False])
    assert (taken.relevance, taken.text_weight, taken.pictures) == ([0.2], 0.25, None)
    assert taken.embeddings.image.tolist() == [[0.0, 1.0]]
    assert taken.signatures is not None
    assert taken.signatures.shape == (1, 18, 32, 3)
    bare = Prunable(**{**COLUMNS, "relevance": None, "signatures": None}).take([0, 1])
    assert (len(bare), bare.relevance, bare.signatures) == (2, None, None)
