"""The eleven tasks: published figures from published files, samples of each form, strict answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.value.made import query, read, score, write_index, write_json, write_lines
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.frames import make_samples
from vip.tasks.records import Choice, Found, Rank
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource
from vip.tasks.value.datasets import DATASETS
from vip.tasks.value.task import TOKENS_OF_CAPTION, TOKENS_OF_INDEX, ValueTask, first_option, longest_option


def test_how2qa_has_its_published_accuracy() -> None:
    task, samples = read("how2qa", golden("value/how2qa_val.jsonl"))
    predictions = list(task.read_predictions(golden("value/how2qa_val_predictions_made.json"), samples))
    assert len(samples) == 3115
    assert score(task, samples, predictions)["accuracy"] == pytest.approx(71.20, abs=0.005)


@pytest.mark.slow
def test_yc2r_has_its_published_recalls() -> None:
    task, samples = read("yc2r", golden("value/yc2r_val.jsonl"), golden("value/yc2r_video2dur_idx.json"))
    values = score(task, samples, task.read_predictions(golden("value/yc2r_val_predictions_made.json.gz"), samples))
    expected = json.loads(golden("value/expected.json").read_text(encoding="utf-8"))["yc2r"]
    assert {name: round(value or 0, 2) for name, value in values.items()} == {
        "aver": expected["AveR"],
        **{f"vr-{name}": value for name, value in expected["VR"].items()},
    }


@pytest.mark.slow
def test_how2r_has_its_published_recalls_at_both_thresholds() -> None:
    task, samples = read("how2r", golden("value/how2r_val_1k.jsonl"), golden("value/how2r_video2dur_idx.json"))
    values = score(task, samples, task.read_predictions(golden("value/how2r_val_predictions_made.json.gz"), samples))
    expected = json.loads(golden("value/expected.json").read_text(encoding="utf-8"))["how2r"]
    published = {"aver": expected["AveR"], **{f"vr-{name}": value for name, value in expected["VR"].items()}}
    for kind in ("VCMR", "SVMR"):
        published |= {f"{kind.lower()}-{name.replace('_', '-')}": value for name, value in expected[kind].items()}
    assert {name: round(value or 0, 2) for name, value in values.items()} == published


def test_each_task_is_in_the_registry_with_its_target_metric_first() -> None:
    for dataset in DATASETS:
        task = load_task(dataset.name)
        assert task.name == dataset.name
        assert task.metrics[0].name == dataset.target
        assert task.info.suite == "value"
        assert task.info.splits == dataset.splits
        assert {metric.name for metric in task.metrics if metric.needs} == ({"meteor"} if dataset.kind == "caption" else set())


def test_questions_of_all_three_forms_are_read(tmp_path: Path) -> None:
    tvqa = {"qid": 5, "q": "Who?", **{f"a{i}": f"name {i}" for i in range(5)}, "answer_idx": 3, "vid_name": "v"}
    _, (sample,) = read("tvqa", write_lines(tmp_path / "a.jsonl", [tvqa]))
    assert sample.ask == Choice(question="Who?", options=tuple(f"name {i}" for i in range(5)))
    assert (sample.id, sample.video, sample.reference and sample.reference.values) == ("5", "v", (3,))
    violin = {"example_id": 6, "statement": "A dog runs.", "answer": True, "vid_name": "v"}
    _, (sample,) = read("violin", write_lines(tmp_path / "b.jsonl", [violin]))
    assert sample.ask == Choice(question="A dog runs.", options=("no", "yes"))
    assert sample.reference is not None
    assert sample.reference.values == (1,)
    vlep = {"example_id": 7, "events": ["It rains.", "It snows."], "answer": 0, "vid_name": "v"}
    _, (sample,) = read("vlep", write_lines(tmp_path / "c.jsonl", [vlep]))
    assert isinstance(sample.ask, Choice)
    assert sample.ask.options == ("It rains.", "It snows.")
    _, samples = read("tvqa", write_json(tmp_path / "solution.json", {"solution": {"friends": {"1": 4}, "castle": {"2": 0}}}))
    assert [(one.id, one.video, one.reference and one.reference.values) for one in samples] == [
        ("1", "friends", (4,)),
        ("2", "castle", (0,)),
    ]


def test_hidden_answers_are_no_reference(tmp_path: Path) -> None:
    _, (sample,) = read("tvr", write_lines(tmp_path / "a.jsonl", [{"desc_id": 1, "desc": "a dog"}]))
    assert sample.reference is None
    assert sample.ask == Rank(query="a dog", moments=True)
    _, (clip,) = read("tvc", write_lines(tmp_path / "b.jsonl", [{"clip_id": 1, "vid_name": "v", "ts": [1, 2.5]}]))
    assert (clip.reference, clip.start_s, clip.end_s) == (None, 1.0, 2.5)


def test_captions_have_three_levels_under_three_names(tmp_path: Path) -> None:
    rows = [
        {"clip_id": 2, "vid_name": "park_1", "ts": [5, 9], "descs": [{"desc": "The dog sits."}]},
        {"clip_id": 1, "vid_name": "park_0", "ts": [0, 5], "descs": [{"desc": "A man runs fast."}]},
        {"clip_id": 3, "vid_name": "street_0", "ts": [0, 5], "descs": [{"desc": "A car stops here."}]},
    ]
    task, samples = read("yc2c", write_lines(tmp_path / "a.jsonl", rows))
    captions = {1: "A man runs fast.", 2: "The dog sits.", 3: "A red bus."}
    lines = [{"video_id": "x", "clip_id": key, "descs": [{"desc": text}, {"desc": "ignored"}]} for key, text in captions.items()]
    predictions = list(task.read_predictions(write_lines(tmp_path / "p.jsonl", lines), samples))
    assert [sample.video for sample in samples] == ["park", "park", "street"]
    values = score(task, samples, predictions)
    paragraphs = [{"clip_id": 1, "vid_name": "p", "descs": [{"desc": "A man runs fast. The dog sits."}]}, {**rows[2], "clip_id": 2}]
    whole, whole_samples = read("vatex_en_c", write_lines(tmp_path / "b.jsonl", paragraphs))
    lines = [
        {"clip_id": 1, "descs": [{"desc": "A man runs fast. The dog sits."}]},
        {"clip_id": 2, "descs": [{"desc": "A red bus."}]},
    ]
    of_paragraphs = score(whole, whole_samples, whole.read_predictions(write_lines(tmp_path / "q.jsonl", lines), whole_samples))
    for name in ("cider-d", "bleu-4", "rouge-l-coco"):
        assert values[f"{name}-paragraph"] == of_paragraphs[name]
    by_clip = task.metrics[0].score(list(zip(samples, [predictions[1], predictions[0], predictions[2]], strict=True))).per_sample_or_zero
    assert values["cider-d-video-mean"] == pytest.approx(100 * ((by_clip[0] + by_clip[1]) / 2 + by_clip[2]) / 2, abs=1e-3)
    assert len({values["cider-d"], values["cider-d-video-mean"], values["cider-d-paragraph"]}) == 3


def test_an_answer_is_read_strictly(tmp_path: Path) -> None:
    row = {"example_id": 7, "events": ["It rains.", "It snows."], "answer": 0, "vid_name": "v"}
    task, (sample,) = read("vlep", write_lines(tmp_path / "a.jsonl", [row]))
    assert [task.parse(sample, answer).value for answer in ("1", " (0) ", "0.", "2", "0 or 1", "rain", "")] == [
        1,
        0,
        0,
        None,
        None,
        None,
        None,
    ]
    assert task.parse(sample, "0 or 1").status == "unparsed"
    request = task.request(sample, None)
    assert "0: It rains." in request.text
    assert request.text.count("It snows.") == 1
    retrieval, (query,) = read("tvr", write_lines(tmp_path / "b.jsonl", [{"desc_id": 1, "desc": "a dog"}]))
    with pytest.raises(UsageError, match="no engine answers"):
        retrieval.request(query, None)


def test_baselines_never_look_at_the_video(tmp_path: Path) -> None:
    row = {"example_id": 7, "events": ["It rains.", "It snows now."], "answer": 0, "vid_name": "v"}
    task, samples = read("vlep", write_lines(tmp_path / "a.jsonl", [row]))
    assert [one.value for one in first_option(lambda: iter(samples), 0)] == [0]
    assert [one.value for one in longest_option(lambda: iter(samples), 0)] == [1]
    assert set(task.baselines) == {"first-option", "longest-option"}
    assert not ValueTask("tvr").baselines


def test_numbers_of_videos_need_the_index(tmp_path: Path) -> None:
    annotations = write_lines(tmp_path / "a.jsonl", [{"desc_id": 1, "desc": "a dog", "vid_name": "park"}])
    path = write_json(tmp_path / "p.json", {"VR": [{"desc_id": 1, "predictions": [8, 7]}]})
    task, samples = read("yc2r", annotations)
    with pytest.raises(UsageError, match=r"yc2r_video2dur_idx\.json"):
        task.read_predictions(path, samples)
    task, samples = read("yc2r", annotations, write_index(tmp_path))
    (prediction,) = task.read_predictions(path, samples)
    assert prediction.value == Found(vr=("street", "park"))


def test_subtitles_are_shown_with_their_times(tmp_path: Path) -> None:
    said = [{"text": "first", "start": 1.0, "end": 2.0}, {"text": "second", "start": 12.25, "end": 14.0}]
    subtitles = write_lines(tmp_path / "s.jsonl", [{"vid_name": "v", "sub": said}])
    question = {"qid": 5, "q": "Who?", **{f"a{i}": f"name {i}" for i in range(5)}, "answer_idx": 3, "vid_name": "v"}
    task = ValueTask("tvqa")
    settings = SampleSettings(subtitles=subtitles)
    (sample,) = task.samples(SampleSource(paths=(str(write_lines(tmp_path / "a.jsonl", [question])),), settings=settings))
    text = task.request(sample, None).text
    assert "You see nothing of the video. This is what is said in it:\n1.0 s: first\n12.2 s: second" in text
    clip = {"vid_name": "v", "clip_id": 1, "ts": [10.0, 20.0], "descs": [{"desc": "x"}]}
    task = ValueTask("tvc")
    (sample,) = task.samples(SampleSource(paths=(str(write_lines(tmp_path / "c.jsonl", [clip])),), settings=settings))
    assert "second" in task.request(sample, None).text
    assert "first" not in task.request(sample, None).text, "it is said before the moment"
    with pytest.raises(UsageError, match="fiber has no subtitles"):
        make_samples(load_task("fiber"), SampleSource(paths=("x",), settings=settings))


def asked(key: str, folder: Path, row: dict[str, object], *said: tuple[float, float, str], of: str = "v") -> str:
    """Return the request about one row whose video has these sentences."""
    sentences = [{"text": text, "start": start, "end": end} for start, end, text in said]
    subtitles = write_lines(folder / "s.jsonl", [{"vid_name": of, "sub": sentences}])
    annotations = write_lines(folder / "a.jsonl", [row])
    task = ValueTask(key)
    (sample,) = task.samples(SampleSource(paths=(str(annotations),), settings=SampleSettings(subtitles=subtitles)))
    return task.request(sample, None).text


def test_what_is_said_over_an_end_of_the_moment_is_shown(tmp_path: Path) -> None:
    clip = {"vid_name": "v", "clip_id": 1, "ts": [10.0, 20.0], "descs": [{"desc": "x"}]}
    said = [(8, 9.9, "early"), (9, 10, "into"), (5, 30, "over"), (12, 13, "inside"), (20, 21, "on"), (20.1, 22, "late")]
    text = asked("tvc", tmp_path, clip, *said)
    assert [word for _, _, word in said if word in text.split("\n")[-1] or f": {word}" in text] == ["into", "over", "inside", "on"]


def test_a_clip_that_is_cut_has_subtitles_of_its_own(tmp_path: Path) -> None:
    row = {"clip_id": 1, "vid_name": "ab_c_3", "ts": [100, 110], "descs": [{"desc": "x"}]}
    assert ": hello" in asked("yc2c", tmp_path, {**row, "ts": None}, (0, 1, "hello"), of="ab_c_3")
    assert ": hello" not in asked("yc2c", tmp_path, {**row, "ts": None}, (0, 1, "hello"), of="ab_c")


def test_a_question_about_a_silent_video_says_nothing_of_subtitles(tmp_path: Path) -> None:
    question = {"qid": 5, "q": "Who?", **{f"a{i}": f"name {i}" for i in range(5)}, "answer_idx": 3, "vid_name": "v"}
    assert "what is said" not in asked("tvqa", tmp_path, question, (0, 1, "hello"), of="other")


def test_options_are_numbered_from_0_in_their_order_and_the_right_one_is_not_told(tmp_path: Path) -> None:
    question = {"qid": 5, "q": "Who?", **{f"a{i}": f"name {9 - i}" for i in range(5)}, "answer_idx": 3, "vid_name": "v"}
    task, (sample,) = read("tvqa", write_lines(tmp_path / "a.jsonl", [question]))
    text = task.request(sample, None).text
    assert "\n".join(f"{number}: name {9 - number}" for number in range(5)) in text
    assert text == task.request(sample.model_copy(update={"reference": None}), None).text
    caption, (clip,) = read(
        "tvc", write_lines(tmp_path / "b.jsonl", [{"vid_name": "v", "clip_id": 1, "descs": [{"desc": "secret words"}]}])
    )
    assert "secret" not in caption.request(clip, None).text
    with pytest.raises(UsageError, match="value-tvqa has one prompt"):
        task.request(sample, None, variant=2)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("4", 4),
        ("5", None),
        ("9", None),
        ("(3)", 3),
        ("3)", 3),
        ("2:", 2),
        ("-1", None),
        ("01", None),
        ("1 or 2", None),
        ("Option 1", None),
    ],
)
def test_a_number_beyond_the_options_is_no_answer(tmp_path: Path, answer: str, value: int | None) -> None:
    question = {"qid": 5, "q": "Who?", **{f"a{i}": f"name {i}" for i in range(5)}, "answer_idx": 3, "vid_name": "v"}
    task, (sample,) = read("tvqa", write_lines(tmp_path / "a.jsonl", [question]))
    found = task.parse(sample, answer)
    assert (found.value, found.status, found.raw) == (value, "ok" if value is not None else "unparsed", answer)
    assert found.reason == (None if value is not None else "no number of an option alone")


def test_a_caption_is_one_line_and_an_empty_one_is_none(tmp_path: Path) -> None:
    task, (sample,) = read("tvc", write_lines(tmp_path / "a.jsonl", [{"vid_name": "v", "clip_id": 1, "descs": [{"desc": "x"}]}]))
    assert task.parse(sample, " A dog\nruns. ").value == "A dog runs."
    assert task.parse(sample, " \n ").status == "unparsed"
    assert task.parse(sample, "3").value == "3"
    retrieval, (query,) = read("tvr", write_lines(tmp_path / "b.jsonl", [{"desc_id": 1, "desc": "a dog"}]))
    assert retrieval.parse(query, "a dog").value is None


def test_the_longest_option_has_most_words_and_is_the_first_of_equal_ones(tmp_path: Path) -> None:
    texts = ["one two", "incomprehensibilities", "a b c", "d e f", "x"]
    row = {"qid": 5, "q": "Who?", **{f"a{place}": text for place, text in enumerate(texts)}, "answer_idx": 4, "vid_name": "v"}
    _, samples = read("tvqa", write_lines(tmp_path / "a.jsonl", [row]))
    assert [one.value for one in longest_option(lambda: iter(samples), 0)] == [2]
    assert [one.value for one in first_option(lambda: iter(samples), 0)] == [0]


def test_samples_of_all_files_are_read_and_numbers_are_those_of_the_split(tmp_path: Path) -> None:
    first, second = (write_lines(tmp_path / f"{key}.jsonl", [{"desc_id": key, "desc": "a dog", "vid_name": "park"}]) for key in (1, 2))
    index = write_json(tmp_path / "i.json", {"val": {"park": [60, 7]}, "test": {"field": [60, 7]}})
    for split, name in (("val", "park"), ("test", "field"), (None, "field")):
        task = ValueTask("yc2r")
        samples = list(task.samples(SampleSource(paths=(str(first), str(second)), settings=SampleSettings(split=split), video_index=index)))
        assert [one.id for one in samples] == ["1", "2"]
        rows = [{"desc_id": key, "predictions": [7]} for key in (1, 2)]
        found = list(task.read_predictions(write_json(tmp_path / "p.json", {"VR": rows}), samples))
        assert {one.value.vr for one in found if isinstance(one.value, Found)} == {(name,)}


def test_a_query_has_no_longest_option(tmp_path: Path) -> None:
    _, (sample,) = read("tvr", write_lines(tmp_path / "a.jsonl", [query(1)]))
    with pytest.raises(InputError, match=r'The sample "1" has no options\. Make samples of this task again'):
        list(longest_option(lambda: iter([sample]), 0))


def test_an_index_and_a_caption_have_room_of_their_own_and_a_ranking_cannot_be_asked_for(tmp_path: Path) -> None:
    event = {"example_id": 7, "events": ["It rains.", "It snows."], "answer": 0, "vid_name": "v"}
    clip = {"vid_name": "id_3", "clip_id": 5, "descs": [{"desc": "mix it"}]}
    asked = []
    for key, row in (("vlep", event), ("yc2c", clip)):
        task, (sample,) = read(key, write_lines(tmp_path / f"{key}.jsonl", [row]))
        asked.append(task.request(sample, None))
        with pytest.raises(UsageError, match=f"value-{key} has one prompt"):
            task.request(sample, None, variant=2)
    assert [one.max_tokens for one in asked] == [TOKENS_OF_INDEX, TOKENS_OF_CAPTION]
    assert TOKENS_OF_INDEX < TOKENS_OF_CAPTION
    task, (sample,) = read("tvr", write_lines(tmp_path / "a.jsonl", [query(1)]))
    with pytest.raises(UsageError, match="value-tvr ranks the videos of a corpus, which no engine answers"):
        task.request(sample, None)
