"""The count of words that were read right."""

from __future__ import annotations

from picture_text import WordCounts


def test_each_word_counts_as_often_as_it_stands_there() -> None:
    counts = WordCounts()
    assert counts.add("LAION and LAION: https://laion.ai/x_1", ["LAION aud", "https://laion.ai/x_1"]) == ["-LAION", "-and", "+aud"]
    assert (counts.right, counts.read, counts.there) == (6, 7, 8)
    assert counts.add("LAION", ["LAION", "Laion"]) == ["+Laion"]
    assert (counts.right, counts.read, counts.there) == (7, 9, 9)
