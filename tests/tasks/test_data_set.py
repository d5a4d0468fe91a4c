"""Table 1 and Figure 2 of a data set that was made here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.metrics.golden import golden
from tests.report.runs import make_run
from tests.tasks.described import described_folder
from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.shards import write_shard
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


def test_lengths_are_from_the_first_frame_to_the_end_and_unknown_domains_are_none(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", rules=("kept",) * 5)
    manifest = json.loads((run.folder / "manifest.json").read_text())
    manifest["video"].update(start_time_s=1.5, end_time_s=11.5)
    (run.folder / "manifest.json").write_text(json.dumps(manifest))
    labelled = {"a": ("Games", UNKNOWN_VERTICAL, "Sports"), "b": (UNKNOWN_VERTICAL,)}
    (tmp_path / "shards").mkdir()
    some = [
        sample(key, 2, verticals=verticals, duration_s=length)
        for (key, verticals), length in zip(labelled.items(), (9.0, None), strict=True)
    ]
    write_shard(str(tmp_path / "shards"), 0, [*some, sample("c", 1, described=False, verticals=("Games",), duration_s=5.0)], "webdataset")
    facts = measure_data_set([str(run.folder), str(tmp_path / "shards")])
    assert (facts.videos, facts.timed, facts.seconds) == (4, 3, 10.0 + 9.0 + 5.0)
    assert facts.domains == {"Games": 2, "Sports": 1}
    assert (facts.captions, facts.structured) == (5 + 4, 5 + 4)


@pytest.mark.parametrize(("seconds", "text"), [(59.94, "59.9s"), (60.0, "1.0m"), (90.0, "1.5m"), (0.0, "0.0s")])
def test_from_a_minute_on_lengths_are_minutes(seconds: float, text: str) -> None:
    facts = DataSetFacts(videos=2, seconds=2 * seconds, timed=2)
    facts.domains.update({"Games": 2})
    table, _ = data_set_tables(facts, name="mine", samples=None)
    assert [cell.text for cell in table.rows[-1]][:5] == ["mine", "", "", "Games", text]


def test_a_data_set_of_no_video_is_said(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [], "webdataset")
    with pytest.raises(VipError, match=r"no video is there\. Give run folders, or what vip batch wrote"):
        measure_data_set([str(tmp_path)])


def test_domains_of_as_many_videos_stand_in_the_order_of_the_alphabet() -> None:
    facts = DataSetFacts(videos=4)
    facts.domains.update({"Sports": 2, "Art": 1, "Games": 2, "Cars": 3})
    _, domains = data_set_tables(facts, name="mine", samples=None)
    assert [row[0].text for row in domains.rows] == ["Cars", "Games", "Sports", "Art"]
