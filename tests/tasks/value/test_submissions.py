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
from vip.tasks.value.submissions import read_submission, write_submission
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


def test_numbers_of_videos_without_their_names_ask_for_the_index(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    path = write_json(tmp_path / "p.json", vcmr([7, 1, 2.5, 0.9]))
    with pytest.raises(InputError, match=r"p\.json names videos by number\. Name .*_video2dur_idx\.json with --video-index FILE"):
        list(read_submission(path, task.dataset, samples, {}))


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
        ('{"1": ' * 900 + "1" + "}" * 900, 'the answer to "1" is a list or an object, and must be an index'),
        ('{"1": ' + "[" * 900 + "]" * 900 + "}", 'the answer to "1" is a list or an object, and must be an index'),
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


def test_the_first_hundred_predictions_of_a_query_count(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    moments = [[7 + place % 2, place, place + 1, 1] for place in range(150)]
    value = {**vcmr(*moments), **vcmr(*[8] * 99, *[7] * 51, section="VR")}
    (prediction,) = task.read_predictions(write_json(tmp_path / "p.json", value), samples)
    assert isinstance(prediction.value, Found)
    assert prediction.value.vcmr is not None
    assert prediction.value.vcmr.starts_s == tuple(map(float, range(100)))
    assert prediction.value.vr == ("street",) * 99 + ("park",)
    (tmp_path / "q.json").write_text(json.dumps(vcmr(*[[7, 0, 1, 1]] * 1000)))
    (prediction,) = task.read_predictions(tmp_path / "q.json", samples)
    assert isinstance(prediction.value, Found)
    assert prediction.value.vcmr is not None
    assert len(prediction.value.vcmr.videos) == 100, "a thousand are read"


def test_moments_need_no_scores_may_be_instants_and_may_be_none(tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    value = {**vcmr([7, 2, 2], [8.0, 0.5, 1]), **vcmr(section="SVMR"), **vcmr([8, 9, "x"], section="VR")}
    (prediction,) = task.read_predictions(write_json(tmp_path / "p.json", value), samples)
    moments = FoundMoments(videos=("park", "street"), starts_s=(2.0, 0.5), ends_s=(2.0, 1.0))
    empty = FoundMoments(videos=(), starts_s=(), ends_s=())
    assert prediction.value == Found(vcmr=moments, svmr=empty, vr=("street",))


@pytest.mark.parametrize("row", [[7.5, 0, 1], [True, 0, 1], [None, 0, 1]])
def test_half_a_video_is_no_video(row: list[Any], tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    with pytest.raises(InputError, match=r"names a video .*: it must be a number of the index"):
        list(task.read_predictions(write_json(tmp_path / "p.json", vcmr(row)), samples))
    with pytest.raises(InputError, match=r"names a video .*: it must be a number of the index"):
        list(task.read_predictions(write_json(tmp_path / "p.json", vcmr(row, section="VR")), samples))


def test_one_video_of_the_index_is_enough_to_be_of_its_split(tmp_path: Path) -> None:
    index = write_index(tmp_path)
    task, samples = read("tvr", write_lines(tmp_path / "a.jsonl", [query(1), query(2)]), index)
    rows = [{"desc_id": key, "predictions": [[99, 0, 1, 1], [number, 0, 1, 1]]} for key, number in ((1, 98), (2, 7))]
    found = list(task.read_predictions(write_json(tmp_path / "p.json", {"VCMR": rows}), samples))
    names = [one.value.vcmr.videos for one in found if isinstance(one.value, Found) and one.value.vcmr]
    assert names == [("#99", "#98"), ("#99", "park")]
    rows[1]["predictions"] = [[99, 0, 1, 1]]
    with pytest.raises(InputError, match="names none of the videos"):
        list(task.read_predictions(write_json(tmp_path / "p.json", {"VCMR": rows}), samples))


def test_each_section_has_each_query(tmp_path: Path) -> None:
    task, samples = read("tvr", write_lines(tmp_path / "a.jsonl", [query(number) for number in (1, 2, 3)]), write_index(tmp_path))
    all_of_them = [{"desc_id": key, "predictions": [[7, 0, 1, 1]]} for key in (3, 1, 2)]
    value = {"VCMR": all_of_them, "SVMR": all_of_them[:1]}
    with pytest.raises(InputError, match='SVMR lacks 2 of 3 queries, such as "1"'):
        list(task.read_predictions(write_json(tmp_path / "p.json", value), samples))
    value = {"SVMR": all_of_them[:1], "VCMR": all_of_them}
    with pytest.raises(InputError, match="SVMR lacks 2 of 3 queries"):
        list(task.read_predictions(write_json(tmp_path / "p.json", value), samples))
    found = list(task.read_predictions(write_json(tmp_path / "p.json", {"SVMR": all_of_them, "VCMR": all_of_them[::-1]}), samples))
    assert sorted(one.sample_id for one in found) == ["1", "2", "3"]
    assert all(isinstance(one.value, Found) and one.value.svmr and one.value.vcmr and one.value.vr is None for one in found)


def test_an_index_is_between_0_and_that_of_the_last_option(tmp_path: Path) -> None:
    rows = [{"qid": qid, "q": "Who?", **{f"a{i}": str(i) for i in range(4)}, "answer_idx": 3, "vid_name": "v"} for qid in (1, 2)]
    task, samples = read("how2qa", write_lines(tmp_path / "a.jsonl", rows))
    found = list(task.read_predictions(write_json(tmp_path / "p.json", {"2": 0, "1": 3}), samples))
    assert [(one.sample_id, one.value) for one in found] == [("2", 0), ("1", 3)]
    with pytest.raises(InputError, match="is -1, and must be an index from 0 to 3"):
        list(task.read_predictions(write_json(tmp_path / "p.json", {"2": -1, "1": 3}), samples))


def test_captions_twice_are_refused_and_the_first_of_a_clip_counts(tmp_path: Path) -> None:
    clips = [{"clip_id": key, "vid_name": "v", "descs": [{"desc": "A dog."}]} for key in (1, 2)]
    task, samples = read("tvc", write_lines(tmp_path / "a.jsonl", clips))
    first, second = ({"clip_id": key, "descs": [{"desc": f"of {key}"}, {"desc": "no"}]} for key in (1, "2"))
    path = tmp_path / "p.jsonl"
    path.write_text(f"\n{json.dumps(second)}\n\n{json.dumps(first)}", encoding="utf-8")
    assert [(one.sample_id, one.value) for one in task.read_predictions(path, samples)] == [("2", "of 2"), ("1", "of 1")]
    with pytest.raises(InputError, match='1 predictions that are double or of other samples, such as "2"'):
        list(task.read_predictions(write_lines(path, [first, second, second]), samples))
    with pytest.raises(InputError, match='lacks 1 of 2 ids, such as "1"'):
        list(task.read_predictions(write_lines(path, [second]), samples))
    path.write_text(f"{json.dumps(first)}\n\n{{}}\n", encoding="utf-8")
    with pytest.raises(InputError, match="line 3: expected"):
        list(task.read_predictions(path, samples))


def test_ids_are_written_as_numbers_where_they_are_ones(tmp_path: Path) -> None:
    keys = ["0", "7", "07", "00", "a1", "-3", "²"]
    rows = [{"clip_id": key, "vid_name": "v", "descs": [{"desc": "A dog."}]} for key in keys]
    task, samples = read("tvc", write_lines(tmp_path / "a.jsonl", rows))
    file = io.StringIO()
    write_submission(file, task.dataset, [(one, Prediction(sample_id=one.id, value="x")) for one in samples], {})
    written = [json.loads(line)["clip_id"] for line in file.getvalue().splitlines()]
    assert written == [0, 7, "07", "00", "a1", "-3", "²"]


def test_what_names_no_videos_is_no_retrieval(tvr: tuple[ValueTask, list[Sample]]) -> None:
    task, samples = tvr
    with pytest.raises(InputError, match='The prediction of "1" names no videos'):
        write_submission(io.StringIO(), task.dataset, [(samples[0], Prediction(sample_id="1", value=3))], VIDEOS)


def test_sections_that_a_model_did_not_answer_are_not_written(tvr: tuple[ValueTask, list[Sample]]) -> None:
    task, samples = tvr
    moments = FoundMoments(videos=("park",), starts_s=(1.0,), ends_s=(2.5,))
    file = io.StringIO()
    write_submission(file, task.dataset, [(samples[0], Prediction(sample_id="1", value=Found(svmr=moments)))], VIDEOS)
    assert json.loads(file.getvalue()) == {"SVMR": [{"desc_id": 1, "predictions": [[7, 1.0, 2.5, 1]]}]}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ('{"desc_id": LONG, "predictions": []}', "a row of VCMR is not"),
        ('{"desc_id": 1, "predictions": [[LONG, 0, 1, 1]]}', "names a video a number beyond 64 bits"),
        ('{"desc_id": 1, "predictions": [[7, LONG, 1, 1]]}', "has a moment from a number beyond"),
    ],
)
def test_numbers_of_thousands_of_digits_are_refused(row: str, message: str, tvr: tuple[ValueTask, list[Sample]], tmp_path: Path) -> None:
    task, samples = tvr
    (tmp_path / "p.json").write_text(f'{{"VCMR": [{row.replace("LONG", "9" * 4000)}]}}', encoding="utf-8")
    with pytest.raises(InputError, match=message):
        list(task.read_predictions(tmp_path / "p.json", samples))


def test_captions_are_written_without_what_a_terminal_obeys_and_long_ids_as_text(tmp_path: Path) -> None:
    task, samples = read("tvc", write_lines(tmp_path / "a.jsonl", [{"clip_id": 1, "vid_name": "v", "descs": [{"desc": "A dog."}]}]))
    long = samples[0].model_copy(update={"id": "9" * 5000})
    caption = "a \x9b31m dog \u202e and \x7f more"
    written = io.StringIO()
    write_submission(written, task.dataset, [(long, Prediction(sample_id=long.id, value=caption))], {})
    text = written.getvalue()
    assert not set("\x9b\u202e\x7f") & set(text)
    assert (json.loads(text)["clip_id"], json.loads(text)["descs"]) == (long.id, [{"desc": caption}])
