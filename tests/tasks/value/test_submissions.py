"""Submissions: read, refused in one sentence, written and read again."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.value.made import VIDEOS, query, read, write_index, write_json, write_lines
from vip.errors import InputError
from vip.tasks.records import Found, FoundMoments, Prediction, Sample
from vip.tasks.value.submissions import write_submission
from vip.tasks.value.task import ValueTask


def vcmr(*rows: Any, key: Any = 1, section: str = "VCMR") -> dict[str, Any]:
    return {section: [{"desc_id": key, "predictions": list(rows)}]}


@pytest.fixture
def tvr(tmp_path: Path) -> tuple[ValueTask, list[Sample]]:
    return read("tvr", write_lines(tmp_path / "a.jsonl", [query(1, type="vt")]), write_index(tmp_path))


def test_moments_are_read_with_the_names_of_their_videos(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    value = {**vcmr([7, 1, 2.5, 0.9], [99, 0, 1, 0.1]), **vcmr(8, [7, 0, 1, 1], key="1", section="VR")}
    (prediction,) = task.read_predictions(write_json(tmp_path / "p.json", value), samples)
    moments = FoundMoments(videos=("park", "#99"), starts_s=(1.0, 0.0), ends_s=(2.5, 1.0))
    assert prediction == Prediction(sample_id="1", value=Found(vcmr=moments, vr=("street", "park")))
    assert samples[0].groups == {"type": ("vt",)}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (vcmr([7, 5, 2, 1]), r'the query "1" of VCMR has a moment from 5 to 2: these are no times'),
        (vcmr([7, True, 2, 1]), "has a moment from True to 2"),
        (vcmr([7, 0, 10**30, 1]), "these are no times"),
        (vcmr([7, "0", 1, 1]), "these are no times"),
        (vcmr([7, 0]), r"is not \[video number, start, end, score\]"),
        (vcmr(["park", 0, 1, 1]), "names a video park: it must be a number"),
        (vcmr([99, 0, 1, 1]), "names none of the videos of the index"),
        (vcmr(*[[7, 0, 1, 1]] * 1001), "has 1,001 predictions, and at most 100 count"),
        (vcmr([7, 0, 1, 1], key=2), 'VCMR lacks 1 of 1 queries, such as "1"'),
        ({"VCMR": [*vcmr([7, 0, 1, 1])["VCMR"], *vcmr([7, 0, 1, 1], key=2)["VCMR"]]}, 'double or of other samples, such as "2"'),
        ({"VCMR": vcmr([7, 0, 1, 1])["VCMR"] * 2}, 'VCMR has the query "1" twice'),
        ({"VCMS": []} | vcmr([7, 0, 1, 1], section="VCMS"), 'has a section "VCMS"'),
        ({"VCMR": [{"desc_id": None, "predictions": []}]}, "a row of VCMR is not"),
        ({"VCMR": []}, 'lacks 1 of 1 ids, such as "1"'),
    ],
)
def test_a_fault_of_retrieval_is_one_sentence(value: object, message: str, tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    with pytest.raises(InputError, match=message) as caught:
        list(task.read_predictions(write_json(tmp_path / "p.json", value), samples))
    assert "\n" not in str(caught.value)


def test_a_prediction_that_is_no_number_is_refused_with_its_place(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    path = tmp_path / "p.json"
    path.write_text('{"VCMR": [{"desc_id": 1, "predictions": [[7, NaN, 2, 1]]}]}', encoding="utf-8")
    with pytest.raises(InputError, match="byte 11: a row of VCMR is no JSON"):
        list(task.read_predictions(path, samples))


def test_a_hundred_thousand_predictions_of_a_query_are_refused(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    path = write_json(tmp_path / "p.json", vcmr(*[[7, 0, 1, 1]] * 100_000))
    with pytest.raises(InputError, match="has 100,000 predictions, and at most 100 count"):
        list(task.read_predictions(path, samples))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"1": 4}', 'the answer to "1" is 4, and must be an index from 0 to 3'),
        ('{"1": "2"}', "must be an index"),
        ('{"1": true}', "must be an index"),
        ('{"1": 2, "1": 3}', 'double or of other samples, such as "1"'),
        ('{"1": 2, "9": 3}', 'double or of other samples, such as "9"'),
        ("{}", 'lacks 1 of 1 ids, such as "1"'),
        ("[1]", "is no JSON object"),
        ("[" * 100_000, "is no JSON"),
        ("", "is no JSON"),
    ],
)
def test_a_fault_of_answers_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    row = {"qid": 1, "q": "Who?", **{f"a{i}": str(i) for i in range(4)}, "answer_idx": 3, "vid_name": "v"}
    task, samples = read("how2qa", write_lines(tmp_path / "a.jsonl", [row]))
    path = tmp_path / "p.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        list(task.read_predictions(path, samples))


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"clip_id": 1}, "line 1: expected"),
        ({"clip_id": 1, "descs": []}, "line 1: expected"),
        ({"clip_id": 1, "descs": [{"desc": "x" * 10_001}]}, "line 1: expected"),
        ({"clip_id": 2, "descs": [{"desc": "x"}]}, 'other samples, such as "2"'),
    ],
)
def test_a_fault_of_captions_is_one_sentence(line: dict[str, Any], message: str, tmp_path: Path) -> None:
    task, samples = read("tvc", write_lines(tmp_path / "a.jsonl", [{"clip_id": 1, "vid_name": "v", "descs": [{"desc": "A dog."}]}]))
    with pytest.raises(InputError, match=message):
        list(task.read_predictions(write_lines(tmp_path / "p.jsonl", [line]), samples))


def test_what_is_written_is_read_again(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    moments = FoundMoments(videos=("park", "street"), starts_s=(1.0, 2.0), ends_s=(2.5, 9.0))
    prediction = Prediction(sample_id="1", value=Found(vcmr=moments, vr=("park",)))
    file = io.StringIO()
    write_submission(file, task.dataset, [(samples[0], prediction)], VIDEOS)
    (tmp_path / "p.json").write_text(file.getvalue(), encoding="utf-8")
    assert list(task.read_predictions(tmp_path / "p.json", samples)) == [prediction]
    assert json.loads(file.getvalue())["VCMR"] == [{"desc_id": 1, "predictions": [[7, 1.0, 2.5, 2], [8, 2.0, 9.0, 1]]}]
    with pytest.raises(InputError, match="has no answer"):
        write_submission(io.StringIO(), task.dataset, [(samples[0], Prediction(sample_id="1", value=None, status="failed"))], VIDEOS)
    with pytest.raises(InputError, match='"park" has no number'):
        write_submission(io.StringIO(), task.dataset, [(samples[0], prediction)], {})


def test_captions_and_answers_are_written_as_the_server_takes_them(tmp_path: Path) -> None:
    task, samples = read("tvc", write_lines(tmp_path / "a.jsonl", [{"clip_id": 1, "vid_name": "v", "descs": [{"desc": "A dog."}]}]))
    file = io.StringIO()
    write_submission(file, task.dataset, [(samples[0], Prediction(sample_id="1", value="A café."))], {})
    assert json.loads(file.getvalue()) == {"video_id": "v", "clip_id": 1, "descs": [{"desc": "A café."}]}
    row = {"example_id": 7, "events": ["a", "b"], "answer": 0, "vid_name": "v"}
    vlep, questions = read("vlep", write_lines(tmp_path / "b.jsonl", [row]))
    file = io.StringIO()
    write_submission(file, vlep.dataset, [(questions[0], Prediction(sample_id="7", value=1))], {})
    assert json.loads(file.getvalue()) == {"7": 1}
