"""Statistics of the data of VALUE: counted by hand on small files, beside the published rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tasks.value.made import query, write_json, write_lines
from vip.errors import BackendError, InputError
from vip.tasks.value.statistics import measure_folder
from vip.tasks.value.statistics_page import length_shares, published_words, statistics_json, statistics_tables, write_statistics_page

KINDS = {"dogs": "NNS", "dog": "NN", "runs": "VBZ", "Chandler": "NNP", "sees": "VBZ", "ball": "NN"}
BASE = {"dogs": "dog", "runs": "run", "sees": "see"}


def tag(tokens: Sequence[str]) -> list[tuple[str, str]]:
    return [(token, KINDS.get(token, "DT")) for token in tokens]


def lemma(word: str, part: str) -> str:
    return BASE.get(word, word)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "tvr").mkdir()
    (tmp_path / "violin").mkdir()
    rows = [query(1, desc="The dogs sees Chandler"), query(2, "street", desc="A dog runs")]
    write_lines(tmp_path / "tvr" / "tvr_val_release.jsonl", rows)
    durations = {"val": {"park": [40.0, 1], "street": [80.0, 2]}, "train": {"field": [171.5, 3]}}
    write_json(tmp_path / "tvr" / "tvr_video2dur_idx.json", durations)
    sentences = [{"text": "Chandler : dogs", "start": 0, "end": 1}, {"text": "ball dogs", "start": 1, "end": 2}]
    write_lines(tmp_path / "tv_subtitles.jsonl", [{"vid_name": "park", "sub": sentences}, {"vid_name": "street", "sub": []}])
    statement = {"example_id": 5, "vid_name": "film", "statement": "A ball.", "answer": 1}
    write_lines(tmp_path / "violin" / "violin_test_release.jsonl", [statement, {**statement, "example_id": 6}])
    write_lines(tmp_path / "violin" / "violin_test_private_release.jsonl", [{**statement, "example_id": 7, "vid_name": "hidden"}])
    return tmp_path


def test_videos_texts_and_words_are_counted(folder: Path) -> None:
    found = measure_folder(folder, tag=tag, lemma=lemma)
    tv, violin = found.sources
    assert (len(tv.durations_s), tv.with_subtitles, tv.channel_ratio) == (3, 1, pytest.approx(100 / 3))
    assert tv.mean_length_s == pytest.approx(291.5 / 3)
    assert tv.words is not None
    assert tv.words.top("nouns") == ["dog", "ball"], "the speaker is no word"
    assert (len(violin.durations_s), violin.mean_length_s, violin.channel_ratio) == (2, None, None)
    tvr, of_violin = found.tasks
    assert tvr.splits == {"val": (2, 2)}
    assert of_violin.splits == {"test": (1, 2), "test_private": (1, 1)}
    assert tvr.words is not None
    assert tvr.words.top("nouns") == ["dog"], "names are left out"
    assert tvr.words.top("verbs") == ["run", "see"]


def test_the_tables_have_the_published_rows_and_ones_own(folder: Path) -> None:
    found = measure_folder(folder, tag=tag, lemma=lemma)
    videos, tasks, subtitles, annotations = statistics_tables(found)
    assert [cell.text for cell in videos.rows[0]][1:] == ["21800", "100.00", "76.00"]
    assert [cell.text for cell in videos.rows[-2]] == ["own: TV", "3", "33.33", "97.17"]
    assert [cell.text for cell in tasks.rows[-1]] == ["own: VIOLIN", "–", "1/2", "1/1", "accuracy"]
    assert [cell.text for cell in subtitles.rows[-2]] == ["own: TV", "nouns", "dog, ball"]
    assert any(cell.text == "own: TVR" for row in annotations.rows for cell in row)
    assert all(len(words.split(", ")) == 20 for _, _, _, words in published_words())
    assert len(statistics_tables()) == 4


def test_lengths_are_shares_of_10_s(folder: Path, tmp_path: Path) -> None:
    shares = length_shares([0.0, 9.9, 10.0, 171.5])
    assert (shares[0], shares[1], shares[-1], sum(shares)) == (50.0, 25.0, 25.0, 100.0)
    found = measure_folder(folder, tag=tag, lemma=lemma)
    write_statistics_page(tmp_path / "page.html", found)
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "Lengths of 3 videos of TV" in page
    assert "dog, ball" in page
    row = statistics_json(found)["videos"]["tv"]
    assert (row["videos"], row["words"]["verbs"]) == (3, [])


def test_without_a_tagger_nothing_is_guessed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise BackendError("The data of the tagger is not here.")

    monkeypatch.setattr("vip.tasks.value.statistics.load_tagger", missing)
    found = measure_folder(folder)
    assert found.notes[0] == "No words are counted. The data of the tagger is not here."
    assert all(one.words is None for one in (*found.tasks, *found.sources))
    assert statistics_tables(found)[2].rows[-1][0].text == "YC2"


def test_a_folder_without_such_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no files of VALUE"):
        measure_folder(tmp_path)
    with pytest.raises(InputError, match="is no folder"):
        measure_folder(tmp_path / "none")
    write_json(tmp_path / "tvr_video2dur_idx.json", {"val": {"park": []}})
    with pytest.raises(InputError, match="has a video without its length"):
        measure_folder(tmp_path)


@pytest.mark.parametrize("value", [5, -1e308, True, "text", {"a": 1}, [5, None, {"desc": 7}]])
@pytest.mark.parametrize("name", ["descs", "events"])
def test_texts_of_another_form_are_none(name: str, value: object, folder: Path) -> None:
    row = {"clip_id": 1, "vid_name": "field", name: value}
    write_lines(folder / "tvr" / "tvc_val_release.jsonl", [row])
    found = {one.dataset.key: one.splits for one in measure_folder(folder, tag=tag, lemma=lemma).tasks}
    assert found["tvc"] == {"val": (1, 0)}
