"""vip.tasks.value.fuse: means of scores, by hand"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.terminal import vip
from vip import store
from vip.errors import InputError, UsageError
from vip.tasks.files import read_predictions
from vip.tasks.records import Prediction
from vip.tasks.value.fuse import fuse, mean_answer, mean_ranking


def questions(path: Path, **scores: Sequence[float]) -> Path:
    rows = [
        Prediction(sample_id=key, value=max(range(len(some)), key=some.__getitem__), scores=tuple(some)) for key, some in scores.items()
    ]
    store.write_rows(path, rows)
    return path


def rankings(path: Path, **sections: dict[int, list[list[Any]]]) -> Path:
    rows = {name: [{"desc_id": key, "predictions": some} for key, some in queries.items()] for name, queries in sections.items()}
    path.write_text(json.dumps(rows))
    return path


def test_the_answer_has_the_largest_mean_and_is_the_first_of_equal_ones() -> None:
    assert mean_answer((0.5, 0.4, 0.1), (0.1, 0.4, 0.5)) == (1, (0.3, 0.4, 0.3))
    assert mean_answer((0.75, 0.25), (0.25, 0.75))[0] == 0


def test_what_one_ranking_lacks_has_no_score_there() -> None:
    first, second = {(7.0,): 0.5, (8.0,): 0.25}, {(9.0,): 0.75, (8.0,): 0.5}
    assert mean_ranking(first, second) == [((8.0,), 0.375), ((9.0,), 0.375), ((7.0,), 0.25)]


def test_questions_of_two_files_are_averaged(tmp_path: Path) -> None:
    first = questions(tmp_path / "v.jsonl", a=(0.6, 0.4), b=(0.9, 0.1))
    second = questions(tmp_path / "s.jsonl", b=(0.3, 0.7), a=(0.1, 0.9))
    done = fuse(first, second, tmp_path / "both.jsonl")
    assert (done.answers, done.changed) == (2, 1)
    rows = list(read_predictions(tmp_path / "both.jsonl"))
    assert [(one.sample_id, one.value, one.scores) for one in rows] == [("a", 1, (0.35, 0.65)), ("b", 0, (0.6, 0.4))]
    assert rows[0].engine == "mean of two: None"


def test_moments_and_videos_of_two_files_are_averaged(tmp_path: Path) -> None:
    first = rankings(tmp_path / "v.json", VCMR={1: [[7, 0, 3, 0.5], [7, 0, 3, 9.0], [8, 1.5, 6, 0.25]]}, VR={1: [[7, 0, 0, 2.0]]})
    second = rankings(tmp_path / "s.json", VR={1: [[8, 1, 1, 3.0]]}, VCMR={1: [[8, 1.5, 6, 1.0]]})
    done = fuse(first, second, tmp_path / "both.json")
    assert (done.answers, done.changed) == (2, 2)
    assert json.loads((tmp_path / "both.json").read_text()) == {
        "VCMR": [{"desc_id": 1, "predictions": [[8, 1.5, 6.0, 0.625], [7, 0.0, 3.0, 0.25]]}],
        "VR": [{"desc_id": 1, "predictions": [[8, 0.0, 0.0, 1.5], [7, 0.0, 0.0, 1.0]]}],
    }


def test_a_hundred_predictions_of_a_query_are_kept(tmp_path: Path) -> None:
    first, second = (
        rankings(tmp_path / name, VCMR={1: [[video, 0, 1, 1.0] for video in range(start, start + 80)]})
        for name, start in (("v.json", 0), ("s.json", 40))
    )
    fuse(first, second, tmp_path / "both.json")
    (row,) = json.loads((tmp_path / "both.json").read_text())["VCMR"]
    assert len(row["predictions"]) == 100
    assert [one[3] for one in row["predictions"][:40]] == [1.0] * 40


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ({"a": (0.5, 0.5)}, 'no answer to "b"'),
        ({"a": (0.5, 0.5), "b": (0.2, 0.3, 0.5)}, "3 scores instead of 2"),
        ({"a": (0.5, 0.5), "b": (0.5, 0.5), "c": (0.5, 0.5)}, 'no answer to 1 ids of the other file, such as "c"'),
    ],
)
def test_files_of_other_questions_are_refused(tmp_path: Path, second: dict[str, Sequence[float]], message: str) -> None:
    first = questions(tmp_path / "v.jsonl", a=(0.6, 0.4), b=(0.9, 0.1))
    with pytest.raises(InputError, match=message):
        fuse(first, questions(tmp_path / "s.jsonl", **second), tmp_path / "both.jsonl")


def test_predictions_without_scores_are_refused(tmp_path: Path) -> None:
    store.write_rows(tmp_path / "v.jsonl", [Prediction(sample_id="a", value=1)])
    with pytest.raises(InputError, match='"a" has no scores'):
        fuse(tmp_path / "v.jsonl", tmp_path / "v.jsonl", tmp_path / "both.jsonl")


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([[7, 0, 3]], "not \\[video number, start, end, score\\]"),
        ([[7, 0, 3, True]], "not \\[video number"),
        ([[7, 0, 3, 1e300]], "not \\[video number"),
        ([[7, 0, 3, 0.1]] * 1001, "more than 1,000 predictions"),
        ("none", "found another row"),
    ],
)
def test_rankings_that_do_not_fit_are_one_sentence(tmp_path: Path, rows: Any, message: str) -> None:
    good = rankings(tmp_path / "v.json", VCMR={1: [[7, 0, 3, 0.5]]})
    bad = rankings(tmp_path / "s.json", VCMR={1: rows})
    with pytest.raises(InputError, match=message):
        fuse(good, bad, tmp_path / "both.json")
    assert not (tmp_path / "both.json").exists()


def test_a_query_is_there_once_and_in_both_files(tmp_path: Path) -> None:
    first = rankings(tmp_path / "v.json", VCMR={1: [[7, 0, 3, 0.5]], 2: [[7, 0, 3, 0.5]]})
    with pytest.raises(InputError, match='no answer to "2" in VCMR'):
        fuse(first, rankings(tmp_path / "s.json", VCMR={1: []}), tmp_path / "both.json")
    with pytest.raises(InputError, match='such as "VCMR 2"'):
        fuse(rankings(tmp_path / "s.json", VCMR={1: []}), first, tmp_path / "both.json")
    row = '{"desc_id": 1, "predictions": []}'
    (tmp_path / "twice.json").write_text(f'{{"VCMR": [{row}, {row}]}}')
    with pytest.raises(InputError, match="there twice"):
        fuse(tmp_path / "twice.json", first, tmp_path / "both.json")


def test_files_of_two_forms_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="one form"):
        fuse(questions(tmp_path / "v.jsonl", a=(1.0, 0.0)), rankings(tmp_path / "s.json"), tmp_path / "both.json")


def test_the_command_says_how_many_answers_changed(tmp_path: Path) -> None:
    questions(tmp_path / "v.jsonl", a=(0.6, 0.4))
    questions(tmp_path / "s.jsonl", a=(0.1, 0.9))
    done = vip(tmp_path, "fuse", "v.jsonl", "s.jsonl", "-o", "both.jsonl")
    assert (done.code, done.out) == (0, "1 answer in both.jsonl; 1 are not those of v.jsonl.\n"), done.err
    again = vip(tmp_path, "fuse", "v.jsonl", "s.jsonl", "-o", "both.jsonl")
    assert again.code == 2
    assert json.loads(vip(tmp_path, "fuse", "v.jsonl", "s.jsonl", "-o", "both.jsonl", "--overwrite", "--json").out)["changed"] == 1


def test_what_the_second_ranking_lacks_has_no_score_there_either() -> None:
    assert mean_ranking({(7.0,): 1.0, (8.0,): 0.75}, {(8.0,): 0.75}) == [((8.0,), 0.75), ((7.0,), 0.5)]
    assert mean_ranking({(7.0,): -1.0}, {(8.0,): -4.0}) == [((7.0,), -0.5), ((8.0,), -2.0)], "scores may be below 0"


def test_moments_that_share_a_start_or_an_end_are_two(tmp_path: Path) -> None:
    rows = [[7, 0, 3, 0.5], [7, 0, 6, 0.25], [7, 3, 6, 0.125], [7.0, 0.0, 3.0, 9.0]]
    first = rankings(tmp_path / "v.json", SVMR={1: rows}, VR={1: rows})
    second = rankings(tmp_path / "s.json", SVMR={1: [[7, 0, 6, 0.75]]}, VR={1: []})
    done = fuse(first, second, tmp_path / "both.json")
    written = json.loads((tmp_path / "both.json").read_text())
    assert written["SVMR"][0]["predictions"] == [[7, 0.0, 6.0, 0.5], [7, 0.0, 3.0, 0.25], [7, 3.0, 6.0, 0.0625]]
    assert written["VR"][0]["predictions"] == [[7, 0.0, 0.0, 0.25]], "of a video its first score counts, whatever its moment"
    assert (done.answers, done.changed) == (2, 1)


def test_an_id_of_letters_stays_one_and_queries_of_a_section_stand_together(tmp_path: Path) -> None:
    rows = [[7, 0, 3, 0.5]]
    both = {"VR": [{"desc_id": "q1", "predictions": rows}, {"desc_id": 2, "predictions": []}, {"desc_id": "03", "predictions": rows}]}
    (tmp_path / "v.json").write_text(json.dumps(both))
    done = fuse(tmp_path / "v.json", tmp_path / "v.json", tmp_path / "both.json")
    written = json.loads((tmp_path / "both.json").read_text())
    assert [one["desc_id"] for one in written["VR"]][:2] == ["q1", 2]
    assert [len(one["predictions"]) for one in written["VR"]] == [1, 0, 1]
    assert (done.answers, done.changed) == (3, 0)


def test_a_section_in_two_pieces_is_refused(tmp_path: Path) -> None:
    row = '{"desc_id": %d, "predictions": []}'
    (tmp_path / "v.json").write_text(f'{{"VR": [{row % 1}], "SVMR": [{row % 1}], "VR": [{row % 2}]}}')
    with pytest.raises(InputError, match='the query "2" of VR is there twice'):
        fuse(tmp_path / "v.json", tmp_path / "v.json", tmp_path / "both.json")


def test_a_thousand_predictions_of_a_query_are_read(tmp_path: Path) -> None:
    path = rankings(tmp_path / "v.json", SVMR={1: [[7, 0, place, place] for place in range(1000)]})
    fuse(path, path, tmp_path / "both.json")
    (row,) = json.loads((tmp_path / "both.json").read_text())["SVMR"]
    assert [one[3] for one in row["predictions"]] == [999.0 - place for place in range(100)]


def test_answers_of_the_second_file_are_no_change_and_means_are_rounded(tmp_path: Path) -> None:
    first = questions(tmp_path / "v.jsonl", a=(0.6, 0.4), b=(1 / 3, 0.2), c=(0.5, 0.5))
    second = questions(tmp_path / "s.jsonl", a=(0.45, 0.55), b=(1 / 3, 0.1), c=(0.5, 0.5))
    done = fuse(first, second, tmp_path / "both.jsonl")
    assert (done.answers, done.changed) == (3, 0), "the second file alone answers a otherwise"
    assert [(one.value, one.scores) for one in read_predictions(tmp_path / "both.jsonl")] == [
        (0, (0.525, 0.475)),
        (0, (0.333333, 0.15)),
        (0, (0.5, 0.5)),
    ]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_scores_that_are_no_numbers_are_no_scores(tmp_path: Path, number: float) -> None:
    store.write_rows(tmp_path / "v.jsonl", [Prediction(sample_id="a", value=1, scores=(0.5, 0.5))])
    (tmp_path / "s.jsonl").write_text(json.dumps({"sample_id": "a", "value": 1, "scores": [0.5, number]}) + "\n")
    with pytest.raises(InputError):
        fuse(tmp_path / "v.jsonl", tmp_path / "s.jsonl", tmp_path / "both.jsonl")
    assert not (tmp_path / "both.jsonl").exists()


def test_ids_stay_what_they_are_however_they_are_written(tmp_path: Path) -> None:
    ids = ["7", "007", "9" * 5000, "٣"]
    (tmp_path / "v.json").write_text(json.dumps({"VR": [{"desc_id": key, "predictions": [[7, 0, 3, 0.5]]} for key in ids]}))
    fuse(tmp_path / "v.json", tmp_path / "v.json", tmp_path / "both.json")
    assert [one["desc_id"] for one in json.loads((tmp_path / "both.json").read_text())["VR"]] == [7, *ids[1:]]
    (tmp_path / "big.json").write_text(f'{{"VR": [{{"desc_id": {"9" * 4000}, "predictions": []}}]}}')
    with pytest.raises(InputError, match="found another row in VR"):
        fuse(tmp_path / "big.json", tmp_path / "big.json", tmp_path / "other.json")


def test_a_video_has_a_whole_number(tmp_path: Path) -> None:
    path = rankings(tmp_path / "v.json", VR={1: [[-0.5, 0, 3, 0.5]]})
    with pytest.raises(InputError, match="not \\[video number"):
        fuse(path, path, tmp_path / "both.json")


def test_the_mean_of_the_largest_scores_is_a_number(tmp_path: Path) -> None:
    path = questions(tmp_path / "v.jsonl", a=(1.7e308, 0.5))
    fuse(path, path, tmp_path / "both.jsonl")
    assert [one.scores for one in read_predictions(tmp_path / "both.jsonl")] == [(1.7e308, 0.5)]


def test_files_without_an_answer_are_refused(tmp_path: Path) -> None:
    for text in ("{}", '{"VR": []}'):
        (tmp_path / "v.json").write_text(text)
        with pytest.raises(InputError, match="have no answers"):
            fuse(tmp_path / "v.json", tmp_path / "v.json", tmp_path / "both.json")
    assert not (tmp_path / "both.json").exists()


def test_a_question_that_is_there_twice_is_said_to_be(tmp_path: Path) -> None:
    store.write_rows(tmp_path / "twice.jsonl", [Prediction(sample_id="a", value=1, scores=(0.4, 0.6))] * 2)
    once = questions(tmp_path / "once.jsonl", a=(0.5, 0.5))
    for first, second in (("twice", "once"), ("once", "twice")):
        with pytest.raises(InputError, match=r'twice\.jsonl has the id "a" twice'):
            fuse(tmp_path / f"{first}.jsonl", tmp_path / f"{second}.jsonl", tmp_path / "both.jsonl")
    assert once.exists()


def test_the_answers_of_a_file_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.value.fuse.MOST_ANSWERS", 2)
    for count in (2, 3):
        found = rankings(tmp_path / "v.json", VR={key: [] for key in range(count)})
        asked = questions(tmp_path / "v.jsonl", **{f"q{key}": (0.5, 0.5) for key in range(count)})
        for path in (found, asked):
            if count == 2:
                assert fuse(path, path, tmp_path / f"both{path.suffix}").answers == 2
            else:
                with pytest.raises(InputError, match="has more than 2 answers"):
                    fuse(path, path, tmp_path / f"more{path.suffix}")
