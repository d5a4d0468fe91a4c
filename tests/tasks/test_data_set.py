"""Table 1 and Figure 2 of a data set that was made here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.described import described_folder
from vip.errors import VipError
from vip.tasks.data_set import PUBLISHED, DataSetFacts, data_set_tables, measure_data_set


def test_the_row_of_a_made_corpus_is_exact(tmp_path: Path) -> None:
    for name, keyframes in (("one", 2), ("two", 3)):
        described_folder(tmp_path / name, keyframes)
    facts = measure_data_set([str(tmp_path / name) for name in ("one", "two")])
    assert (facts.videos, facts.captions, facts.structured, facts.timed) == (2, 5, 5, 0)
    assert facts.tokens == 5 * len(["A", "dog", "0", "in", "one", "."])
    table, *more = data_set_tables(facts, name="mine", samples=1500)
    assert [cell.text for cell in table.rows[-1]] == ["mine", "yes", "yes", "–", "–", "6.0", "1,500"]
    assert any("2 videos of unknown length" in note for note in table.notes)
    assert not more


def test_videos_count_in_each_of_their_domains() -> None:
    facts = DataSetFacts(videos=4, seconds=864.0, timed=4, captions=4, tokens=457)
    facts.domains.update({"Games": 3, "Sports": 2})
    table, domains = data_set_tables(facts, name="mine", samples=None)
    assert [cell.text for cell in table.rows[-1]][3:] == ["Open", "3.6m", "114.2", "–"]
    assert [[cell.text for cell in row] for row in domains.rows] == [["Games", "3", "75.0"], ["Sports", "2", "50.0"]]


def test_videos_of_unknown_length_do_not_shorten_the_mean() -> None:
    facts = DataSetFacts(videos=4, seconds=60.0, timed=3)
    (table,) = data_set_tables(facts, name="mine", samples=None)
    assert [cell.text for cell in table.rows[-1]][4:] == ["20.0s", "–", "–"]
    assert any("1 video of unknown length" in note for note in table.notes)


def test_the_published_row_is_that_of_the_paper() -> None:
    text = golden("vip/tables_1_2_5.csv").read_text()
    assert PUBLISHED[-1] == ("VIP", "yes", "yes", "Open", "3.6m", "114.2", "1.5K")
    for figure in ("frame-level,yes", "structured,yes", "domain,Open", "3.6 min", "114.2", "1.5K"):
        assert figure in text


def test_a_folder_without_videos_is_said(tmp_path: Path) -> None:
    with pytest.raises(VipError):
        measure_data_set([str(tmp_path)])
