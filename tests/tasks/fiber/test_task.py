"""The task fiber: samples of each source, strict answers, scores, the baseline."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.tasks.described import described_folder
from tests.tasks.fiber.made import chunk_articles, record
from vip.cli.app import run
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.fiber.records import write_records
from vip.tasks.fiber.task import Fiber, sample_of
from vip.tasks.files import read_samples
from vip.tasks.records import Blank, Prediction, Sample
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource


def read(*paths: Path, seed: int = 0) -> list[Sample]:
    source = SampleSource(paths=tuple(map(str, paths)), settings=SampleSettings(seed=seed))
    return list(Fiber().samples(source))


def score(samples: Sequence[Sample], phrases: Sequence[str | None]) -> dict[str, float]:
    pairs = [
        (sample, Prediction(sample_id=sample.id, value=phrase, status="ok" if phrase is not None else "unparsed"))
        for sample, phrase in zip(samples, phrases, strict=True)
    ]
    return {metric.name: round(metric.score(pairs).value or 0, 4) for metric in Fiber().metrics}


def test_records_are_samples_with_every_answer_and_the_label_apart() -> None:
    samples = read(golden("fiber/records_made.json"))
    first = samples[0]
    assert (first.id, first.video, first.start_s, first.end_s) == ("made00000A1_000000_000010", "made00000A1", 0, 10)
    assert first.ask == Blank(text="A man is lifting _____ in a gym.")
    assert first.reference is not None
    assert first.reference.label == "weights"
    assert len(first.reference.values) == 9  # of eleven, two twice


def test_each_metric_has_its_own_answers() -> None:
    samples = read(golden("fiber/records_made.json"))
    values = score(samples, ["the weight", "a girl", "a pool", None])
    assert values == {
        "token-f1": 0.75,
        "exact-match": 0.75,
        "token-f1-raw": round((2 / 3 + 1 / 2 + 4 / 5) / 4, 4),  # weight; A girl has a capital; a swimming pool
        "token-f1-label": 0.25,
        "exact-match-label": 0.25,
    }
    assert len({metric.signature for metric in Fiber().metrics}) == 5


def test_captions_are_blanked_by_the_chunker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.fiber.task.load_chunker", lambda name: chunk_articles)
    path = tmp_path / "vatex.json"
    path.write_text(
        json.dumps([{"videoID": f"v_{i}_00000{i}_000010", "enCap": ["a dog sees the man"]} for i in range(9)]), encoding="utf-8"
    )
    samples = read(path)
    assert len(samples) == 9
    assert {sample.reference.label for sample in samples if sample.reference} == {"A dog", "the man"}
    assert [sample.id for sample in samples[:2]] == ["v_0_000000_000010", "v_1_000001_000010"]
    assert read(path) == samples
    assert read(path, seed=1) != samples


def test_published_phrases_are_read_in_three_forms(tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    write_records(path, [record("a dog", "x"), record("a man", "y")])
    samples, task = read(path), Fiber()
    forms = [["dog", "man"], {"x": "dog", "y": "man"}, {"y_000005_000015": "man", "x": "dog"}]
    for form in forms:
        (tmp_path / "p.json").write_text(json.dumps(form), encoding="utf-8")
        assert [one.value for one in task.read_predictions(tmp_path / "p.json", samples)] == ["dog", "man"]
    faults = [
        (["dog"], "has 1 phrases for 2 records"),
        ({"x": "dog"}, 'has no phrase for "y_000005_000015"'),
        ({"x": "dog", "y": "man", "z": "cat"}, 'has 1 phrases of other videos, such as "z"'),
        ({"x": 5, "y": "man"}, "holds something else than phrases"),
        (5, "holds something else than phrases"),
    ]
    for fault, message in faults:
        (tmp_path / "p.json").write_text(json.dumps(fault), encoding="utf-8")
        with pytest.raises(InputError, match=message):
            list(task.read_predictions(tmp_path / "p.json", samples))


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("a dog", "a dog"),
        (' "The dog." ', "The dog"),
        ("a dog\nor a cat", None),
        ("There is _____.", None),
        ("", None),
        ("word " * 21, None),
    ],
)
def test_an_answer_is_a_phrase_on_one_line_or_unparsed(answer: str, expected: str | None, tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    write_records(path, [record()])
    (sample,) = read(path)
    prediction = Fiber().parse(sample, answer)
    assert prediction.value == expected
    assert prediction.status == ("ok" if expected else "unparsed")


def test_the_question_shows_the_caption_and_never_the_label(tmp_path: Path) -> None:
    path = tmp_path / "val.json"
    write_records(path, [record("a zebra")])
    (sample,) = read(path)
    request = Fiber().request(sample, None)
    assert "There is _____." in request.text
    assert "zebra" not in request.text
    with pytest.raises(UsageError, match="one prompt"):
        Fiber().request(sample, None, variant=2)


def test_the_baseline_is_the_most_frequent_label_of_other_videos_or_of_training_records(tmp_path: Path) -> None:
    path, train = tmp_path / "val.json", tmp_path / "train.json"
    write_records(path, [record("A dog", "x"), record("a dog", "y"), record("a man", "z"), record("a man", "z")])
    write_records(train, [record("The cat", "t")])
    samples = read(path)
    answers = [one.value for one in Fiber().baselines["most-frequent"](lambda: iter(samples), 0)]
    assert answers == ["a man", "a man", "a dog", "a dog"]
    trained = [one.value for one in Fiber().with_training(train).baselines["most-frequent"](lambda: iter(samples), 0)]
    assert trained == ["the cat"] * 4


def test_the_registry_has_the_task() -> None:
    assert isinstance(load_task("fiber"), Fiber)


def test_from_names_captions_as_arguments_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_records(tmp_path / "val.json", [record("a dog", "x"), record("a man", "y")])
    write_records(tmp_path / "more.json", [record("a cat", "z")])
    assert run(["samples", "--task", "fiber", "--from", "val.json", "-o", "from.jsonl", "-q"]) == 0
    assert run(["samples", "val.json", "--task", "fiber", "-o", "given.jsonl", "-q"]) == 0
    assert (tmp_path / "from.jsonl").read_bytes() == (tmp_path / "given.jsonl").read_bytes()
    assert run(["samples", "more.json", "--task", "fiber", "--from", "val.json", "-o", "both.jsonl", "-q"]) == 0
    assert [sample.video for sample in read_samples(tmp_path / "both.jsonl")] == ["z", "x", "y"]


def test_dense_captions_of_described_folders_are_blanked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("vip.tasks.fiber.task.load_chunker", lambda name: chunk_articles)
    for place, name in enumerate(("first", "second")):
        described_folder(tmp_path / "corpus" / name, 3, first_word=3 * place)
    assert run(["samples", "corpus/first", "--task", "fiber", "--from", "corpus/second", "-o", "blanks.jsonl", "-q"]) == 0
    samples = list(read_samples(tmp_path / "blanks.jsonl"))
    texts = [(one.video, one.ask.text, one.reference.label) for one in samples if isinstance(one.ask, Blank) and one.reference]
    assert texts == [("first", "_____ 0 in first.", "A dog"), ("second", "_____ 0 in second.", "A man")]
    assert [(one.start_s, one.end_s) for one in samples] == [(0, 3), (0, 3)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("word " * 20, "word " * 19 + "word"),
        ("“a dog”", "a dog"),
        ("‘a dog’.", "a dog"),
        ('"a dog."', "a dog"),
        ("a dog...", "a dog"),
        ("...", None),
        ('"".', None),
    ],
)
def test_twenty_words_are_a_phrase_and_quotes_and_full_stops_none_of_it(answer: str, expected: str | None) -> None:
    parsed = Fiber().parse(sample_of(record()), answer)
    assert (parsed.value, parsed.raw, parsed.sample_id) == (expected, answer, "v_000005_000015")


def test_the_label_of_a_video_that_is_more_frequent_than_those_of_others_is_not_its_answer() -> None:
    records = [
        record("a cat", "x"),
        record("a cat", "x"),
        record("a cat", "x"),
        record("a dog", "y"),
        record("a man", "z"),
        record("a dog", "w"),
    ]
    samples = [sample_of(one) for one in records]
    answers = [one.value for one in Fiber().baselines["most-frequent"](lambda: iter(samples), 0)]
    assert answers == ["a dog"] * 3 + ["a cat"] * 3, "of x three are its own; of the others a cat is the most frequent"


def test_what_was_left_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.fiber.task.load_chunker", lambda name: chunk_articles)
    names = ["here_000000_000010", "gone_000000_000010", "mute_000000_000010"]
    captions = [{"videoID": name, "enCap": ["it rains" if name.startswith("mute") else "a dog runs"]} for name in names]
    path, available = tmp_path / "vatex.json", tmp_path / "there.txt"
    path.write_text(json.dumps(captions), encoding="utf-8")
    available.write_text("here\nmute_000000_000010\n", encoding="utf-8")
    notes: list[str] = []
    source = SampleSource(paths=(str(path),), settings=SampleSettings(available=available), note=notes.append)
    assert [sample.video for sample in Fiber().samples(source)] == ["here"]
    assert notes == [
        "1 video that the list of available ones does not name left out.",
        "1 video whose captions have no noun phrase left out, such as mute.",
    ]


def test_labels_group_blanks_by_sample_and_by_video(tmp_path: Path) -> None:
    path, labels = tmp_path / "val.json", tmp_path / "labels.csv"
    write_records(path, [record("a dog", "x"), record("a man", "y")])
    for text, groups in (
        ("video,category\ny,Person\n", [{}, {"category": ("Person",)}]),
        ("sample,category\nx_000005_000015,Animal\ny,Person\n", [{"category": ("Animal",)}, {}]),
    ):
        labels.write_text(text)
        source = SampleSource(paths=(str(path),), settings=SampleSettings(labels=labels))
        assert [sample.groups for sample in Fiber().samples(source)] == groups


def test_answers_and_references_of_another_kind_are_refused() -> None:
    sample = sample_of(record())
    with pytest.raises(InputError, match=r'The prediction of "v_000005_000015" is no text'):
        Fiber().metrics[0].score([(sample, Prediction(sample_id=sample.id, value=3))])
    with pytest.raises(InputError, match=r'The sample "v_000005_000015" has no label'):
        Fiber().metrics[0].score([(sample.model_copy(update={"reference": None}), Prediction(sample_id=sample.id, value="x"))])
    assert [metric.name for metric in Fiber().metrics] == [
        "token-f1",
        "exact-match",
        "token-f1-raw",
        "token-f1-label",
        "exact-match-label",
    ]
