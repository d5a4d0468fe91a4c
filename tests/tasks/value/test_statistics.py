"""Statistics of the data of VALUE: counted by hand on small files, beside the published rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.tasks.value.made import query, write_json, write_lines
from vip.errors import BackendError, InputError
from vip.tasks.value import statistics as module
from vip.tasks.value.statistics import WordCounts, measure_folder
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


def test_a_speaker_who_is_called_as_a_thing_is_no_word(tmp_path: Path) -> None:
    write_lines(tmp_path / "tvr_val_release.jsonl", [query(1)])
    said = ["dog: ball", "ball at 5 : dogs", " Old dog's dog : ball", "the ball:dog", "dogs"]
    sentences = [{"text": text, "start": 0, "end": 1} for text in said]
    write_lines(tmp_path / "tv_subtitles.jsonl", [{"vid_name": "park", "sub": sentences}])
    words = measure_folder(tmp_path, tag=tag, lemma=lemma).sources[0].words
    assert words is not None
    assert (words.texts, dict(words.nouns)) == (5, {"ball": 3, "dog": 3})


def test_videos_with_sentences_that_say_nothing_have_no_subtitles(tmp_path: Path) -> None:
    write_lines(tmp_path / "tvr_val_release.jsonl", [query(1), query(2, "street"), query(3, "field"), query(4, "hill")])
    silent, loud = {"text": " ", "start": 0, "end": 1}, {"text": "ball", "start": 0, "end": 1}
    rows = [{"vid_name": "park", "sub": [silent, silent]}, {"vid_name": "street", "sub": []}, {"vid_name": "field", "sub": [silent, loud]}]
    write_lines(tmp_path / "tv_subtitles.jsonl", rows)
    tv = measure_folder(tmp_path, tag=tag, lemma=lemma).sources[0]
    assert (tv.with_subtitles, tv.channel_ratio) == (1, 25.0)
    assert tv.words is not None
    assert tv.words.texts == 1


def test_without_a_file_of_subtitles_nobody_knows_how_many_have_them(tmp_path: Path) -> None:
    write_lines(tmp_path / "tvr_val_release.jsonl", [query(1)])
    tv = measure_folder(tmp_path, tag=tag, lemma=lemma).sources[0]
    assert (tv.with_subtitles, tv.channel_ratio, tv.words) == (None, None, None)
    assert statistics_json(measure_folder(tmp_path, tag=tag, lemma=lemma))["videos"]["tv"]["with_subtitles_percent"] is None


def test_a_length_that_another_file_says_counts_once(tmp_path: Path) -> None:
    """TVC does not say how long its videos are, TVR does; and what the list of lengths says is not overwritten."""
    caption = {"vid_name": "park", "clip_id": 1, "descs": [{"desc": "cut"}]}
    write_lines(tmp_path / "tvc_val_release.jsonl", [caption, {**caption, "vid_name": "field"}])
    write_lines(tmp_path / "tvqa_val_release.jsonl", [{"vid_name": "park", "q": "why?", "a0": "so", "duration": True}])
    write_lines(tmp_path / "tvr_val_release.jsonl", [query(1, duration=60), query(2, "street", duration=99)])
    write_json(tmp_path / "tvr_video2dur_idx.json", {"val": {"street": [80, 2]}})
    tv = measure_folder(tmp_path, tag=tag, lemma=lemma).sources[0]
    assert tv.durations_s == {"street": 80.0, "park": 60.0, "field": None}
    assert tv.mean_length_s == 70.0


def test_captions_are_counted_each_and_a_question_once_with_all_its_words(tmp_path: Path) -> None:
    descs = [{"desc": "a dog"}, {"desc": "a ball"}, {"desc": "dogs"}]
    write_lines(tmp_path / "tvc_val_release.jsonl", [{"vid_name": "park", "clip_id": 1, "descs": descs}])
    question = {"vid_name": "park", "q": "a dog ?", **{f"a{place}": "a ball" for place in range(5)}}
    write_lines(tmp_path / "tvqa_val_release.jsonl", [question, question])
    events = {"vid_name": "film", "events": ["a dog runs", "a ball"]}
    write_lines(tmp_path / "vlep_val_release.jsonl", [events])
    by_key = {one.dataset.key: one for one in measure_folder(tmp_path, tag=tag, lemma=lemma).tasks}
    assert {key: one.splits for key, one in by_key.items()} == {"tvqa": {"val": (1, 2)}, "tvc": {"val": (1, 3)}, "vlep": {"val": (1, 1)}}
    words = {key: (one.words.texts, dict(one.words.nouns)) for key, one in by_key.items() if one.words}
    assert words == {
        "tvqa": (12, {"dog": 2, "ball": 10}),
        "tvc": (3, {"dog": 2, "ball": 1}),
        "vlep": (2, {"dog": 1, "ball": 1}),
    }


def test_the_most_frequent_words_are_twenty_and_equally_frequent_ones_by_the_alphabet() -> None:
    counts = WordCounts(nouns=Counter({"pear": 2, "fig": 2, "plum": 3, **{f"x{place:02}": 1 for place in range(30)}}), texts=9)
    assert counts.top("nouns") == ["plum", "fig", "pear", *(f"x{place:02}" for place in range(17))]
    assert counts.top("verbs") == []


def test_no_more_texts_are_counted_than_a_tagger_can_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.value.statistics.MOST_TEXTS", 3)
    write_lines(tmp_path / "tvr_val_release.jsonl", [query(number, desc="dogs") for number in range(5)])
    (tvr,) = measure_folder(tmp_path, tag=tag, lemma=lemma).tasks
    assert tvr.words is not None
    assert (tvr.words.texts, dict(tvr.words.nouns), tvr.splits) == (3, {"dog": 3}, {"val": (1, 5)})


def test_predictions_and_files_of_no_split_are_no_annotations(tmp_path: Path) -> None:
    for name in ("how2r_val_predictions.jsonl", "how2r_valid.jsonl", "how2r_other_release.jsonl", "how2r_test_release.jsonl"):
        write_lines(tmp_path / name, [query(1)])
    write_lines(tmp_path / "how2r_val.jsonl", [query(1), query(2)])
    write_lines(tmp_path / "how2r_test_public_release.jsonl", [query(3)])
    write_lines(tmp_path / "how2r_train_release.jsonl", [query(number) for number in range(4, 9)])
    (found,) = measure_folder(tmp_path, tag=tag, lemma=lemma).tasks
    assert found.splits == {"val": (1, 2), "test_public": (1, 1), "train": (1, 5)}
    _, tasks, _, _ = statistics_tables(measure_folder(tmp_path, tag=tag, lemma=lemma))
    assert [cell.text for cell in tasks.rows[-1]] == ["own: How2R", "1/5", "1/2", "1/1", "aver"]


def test_a_row_without_a_text_is_refused_but_not_a_clip_without_captions(tmp_path: Path) -> None:
    write_lines(tmp_path / "tvc_test_release.jsonl", [{"vid_name": "park", "clip_id": 1}])
    assert measure_folder(tmp_path, tag=tag, lemma=lemma).tasks[0].splits == {"test": (1, 0)}
    write_lines(tmp_path / "violin_test_release.jsonl", [{"vid_name": "film"}])
    with pytest.raises(InputError, match=r"line 1: it has no text\. Give the annotations of VIOLIN"):
        measure_folder(tmp_path, tag=tag, lemma=lemma)


def test_words_keep_their_case_for_the_tagger_and_lose_it_for_the_count(tmp_path: Path) -> None:
    seen: list[Sequence[str]] = []

    def keep(tokens: Sequence[str]) -> list[tuple[str, str]]:
        seen.append(tuple(tokens))
        return [(token, "NNP" if token == "Rose" else "NN") for token in tokens]

    write_lines(tmp_path / "tvr_val_release.jsonl", [query(1, desc="Rose holds a rose . DOGS")])
    (tvr,) = measure_folder(tmp_path, tag=keep, lemma=lambda word, part: word).tasks
    assert seen == [("Rose", "holds", "a", "rose", "DOGS")]
    assert tvr.words is not None
    assert dict(tvr.words.nouns) == {"holds": 1, "a": 1, "rose": 1, "dogs": 1}


def test_a_length_belongs_to_its_10_s_and_150_s_to_the_last_ones() -> None:
    shares = length_shares([139.9, 140.0, 149.9, 150.0, 10_000.0])
    assert [round(one) for one in shares] == [0] * 13 + [20, 40, 40]


def test_the_json_has_what_was_measured(folder: Path) -> None:
    found = measure_folder(folder, tag=tag, lemma=lemma)
    written = statistics_json(found)
    tv, violin = written["videos"]["tv"], written["videos"]["violin"]
    assert (tv["with_subtitles_percent"], tv["mean_length_s"]) == (pytest.approx(100 / 3), pytest.approx(291.5 / 3))
    assert tv["words"] == {"texts": 2, "nouns": ["dog", "ball"], "verbs": []}
    assert [place for place, share in enumerate(tv["lengths_percent"]) if share] == [4, 8, 15]
    assert (violin["videos"], violin["lengths_percent"], violin["mean_length_s"]) == (2, None, None)
    assert written["tasks"]["value-violin"]["splits"] == {"test": {"videos": 1, "texts": 2}, "test_private": {"videos": 1, "texts": 1}}
    assert written["tasks"]["value-tvr"]["words"] == {"texts": 2, "nouns": ["dog"], "verbs": ["run", "see"]}


def test_words_are_counted_by_their_shortest_base_form_and_as_they_stand_where_none_is_known(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Forms:
        def __init__(self, folder: Path) -> None:
            pass

        def base_forms(self, word: str, part: str) -> list[str]:
            return {"dogs": ["canine", "dog", "dox"], "runs": ["run"]}.get(word, [])

    monkeypatch.setattr(module, "WordNet", Forms)
    monkeypatch.setattr(module, "find_wordnet", lambda: tmp_path)
    tvr = measure_folder(folder, tag=tag).tasks[0].words
    assert tvr is not None
    assert (dict(tvr.nouns), dict(tvr.verbs)) == ({"dog": 2}, {"sees": 1, "run": 1})

    def missing() -> Path:
        raise BackendError("WordNet is not here.")

    monkeypatch.setattr(module, "find_wordnet", missing)
    found = measure_folder(folder, tag=tag)
    assert found.notes == ("Words are counted as they stand. WordNet is not here.",)
    assert found.tasks[0].words is not None
    assert dict(found.tasks[0].words.nouns) == {"dogs": 1, "dog": 1}
    monkeypatch.setattr(module, "load_tagger", missing)
    assert measure_folder(folder).notes == ("No words are counted. WordNet is not here.",), "what stands is counted by nobody then"


@pytest.mark.parametrize("name", ["tv_subtitles.jsonl", "tvr/tvr_val_release.jsonl", "tvr/tvr_video2dur_idx.json"])
def test_no_file_behind_a_link_that_leads_out_of_the_folder_is_counted(
    name: str, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "file"
    (folder / name).rename(elsewhere)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(InputError, match=r"leads out of .* by a link, and vip follows none of those"):
        measure_folder(folder, tag=tag, lemma=lemma)
