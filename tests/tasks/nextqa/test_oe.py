"""nextqa-oe: the published WUPS comes out, second references count, and answers are taken as they are."""

from __future__ import annotations

import gzip
from collections import defaultdict
from math import fsum
from pathlib import Path

import pytest

from tests.metrics.golden import golden
from tests.metrics.tiny_wordnet import whole_wordnet, write_wordnet
from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, read, write_csv, write_json
from vip.errors import BackendError, InputError
from vip.metrics.perceptron_tagger import load_tagger
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.nextqa.oe import NextqaOpenEnded
from vip.tasks.records import Prediction, Reference, Sample
from vip.tasks.task import Task

PUBLISHED = {"C": 14.76, "T": 14.90, "D": 46.60, "all": 21.48, "CW": 13.56, "CH": 18.14, "TPN": 11.53, "TC": 19.73}
PUBLISHED |= {"DB": 57.76, "DC": 38.02, "DL": 43.71, "DO": 44.95}
POPULAR = {"C": 9.73, "T": 8.95, "D": 28.39, "all": 13.40}


def means(task: Task, samples: list[Sample], predictions: list[Prediction]) -> dict[str, float]:
    result = task.metrics[0].score(list(zip(samples, predictions, strict=True)))
    groups = defaultdict(list)
    for sample, value in zip(samples, result.per_sample_or_zero, strict=True):
        for name in (*sample.groups["type"], "all"):
            groups[name].append(value)
    return {name: 100 * fsum(values) / len(values) for name, values in groups.items()}


@pytest.mark.slow
def test_the_published_wups_of_hga_comes_out_of_normalised_tokens() -> None:
    task, path = NextqaOpenEnded(wordnet=whole_wordnet()), golden("nextqa/oe_val_expected.csv.gz")
    samples = read(task, path)
    assert means(task, samples, list(task.read_predictions(path, samples))) == pytest.approx(PUBLISHED, abs=0.005)


@pytest.mark.slow
@pytest.mark.extra("nltk")
def test_the_published_wups_of_hga_and_of_popular_come_out_of_the_files_as_they_are() -> None:
    try:
        load_tagger()
    except BackendError:
        pytest.skip("the data of NLTK's tagger is not here")
    task = NextqaOpenEnded(wordnet=whole_wordnet(), train=golden("nextqa/oe_train_answers.csv.gz"))
    samples = read(task, golden("nextqa/oe_val.csv"))
    predictions = list(task.read_predictions(golden("nextqa/oe_val_hga.json"), samples))
    assert means(task, samples, predictions) == pytest.approx(PUBLISHED, abs=0.005)
    popular = means(task, samples, list(task.baselines["popular"](lambda: iter(samples), 0)))
    assert {name: popular[name] for name in POPULAR} == pytest.approx(POPULAR, abs=0.005)


@pytest.fixture
def task(tmp_path: Path) -> NextqaOpenEnded:
    return NextqaOpenEnded(wordnet=write_wordnet(tmp_path / "wordnet"))


@pytest.fixture
def samples(task: NextqaOpenEnded, tmp_path: Path) -> list[Sample]:
    return read(task, write_csv(tmp_path / "val.csv", OE_ROWS, OE_COLUMNS))


def test_second_references_count_and_those_of_other_questions_are_refused(task: NextqaOpenEnded, tmp_path: Path) -> None:
    path, second = tmp_path / "val.csv", tmp_path / "references.json"
    write_csv(path, OE_ROWS, OE_COLUMNS)
    samples = read(task, path, write_json(second, {"v1": {"1": "foot"}}))
    assert [sample.reference for sample in samples] == [
        Reference(values=("dog",)),
        Reference(values=("cat", "foot")),
        Reference(values=("dog",)),
    ]
    third = write_json(tmp_path / "more.json", {"v1": {"0": "puppy"}})
    both = read(task, path, second, third)
    assert [sample.reference.values[1:] for sample in both if sample.reference] == [("puppy",), ("foot",), ()], "of two files"
    with pytest.raises(InputError, match="1 of 2 second references are of unknown questions, such as v9_0"):
        read(task, path, write_json(second, {"v1": {"1": "foot"}, "v9": {"0": "x"}}))


def test_scores_of_tokens_take_the_best_reference_and_types_that_are_right_or_wrong(task: NextqaOpenEnded, samples: list[Sample]) -> None:
    references = [(("dog",),), (("entity",), ("cat",)), (("cat",),)]
    given = [sample.model_copy(update={"reference": Reference(values=row)}) for sample, row in zip(samples, references, strict=True)]
    predictions = [Prediction(sample_id=sample.id, value=("dog",)) for sample in given]
    result = task.metrics[0].score(list(zip(given, predictions, strict=True)))
    assert result.per_sample == (1.0, 0.75, 0.0)
    counted = given[1].model_copy(update={"groups": {"type": ("DC", "D")}, "reference": Reference(values=(("cat",), ("dog", "dog")))})
    assert task.metrics[0].score([(counted, predictions[1])]).per_sample == (0.0,), "a count is right or wrong"
    assert result.signature.endswith("|words:given")
    assert [metric.name for metric in task.metrics] == ["wups", "wups-strict", "wups-at-0.9"]


@pytest.mark.extra("nltk")
def test_raw_answers_need_the_tagger_and_say_so(task: NextqaOpenEnded, samples: list[Sample], tmp_path: Path) -> None:
    metric = NextqaOpenEnded(wordnet=task.wordnet, tagger=tmp_path).metrics[0]
    metric.check()
    with pytest.raises(BackendError, match=r"Run `python -m nltk\.downloader averaged_perceptron_tagger_eng`"):
        metric.score([(samples[0], Prediction(sample_id="v1_0", value="a dog"))])
    with pytest.raises(BackendError, match="averaged_perceptron_tagger_eng"):
        metric.score([(samples[0], Prediction(sample_id="v1_0", value=("dog",)))])  # the reference is raw
    normal = samples[0].model_copy(update={"reference": Reference(values=(("dog",),))})
    assert metric.score([(normal, Prediction(sample_id="v1_0", value=("dog",)))]).value == 1.0
    assert metric.score([(normal, Prediction(sample_id="v1_0", value=None, status="refused"))]).unscored == {"refused": 1}


def test_published_results_are_read_with_empty_answers_and_checked(task: NextqaOpenEnded, samples: list[Sample], tmp_path: Path) -> None:
    path = write_json(tmp_path / "r.json", {"v1": {"0": "a dog", "1": ""}, "v2": {"0": "yes"}})
    assert [prediction.value for prediction in task.read_predictions(path, samples)] == ["a dog", "", "yes"]
    path.write_text('{"v1": {"0": "a dog", "0": "cat", "7": "x"}, "v2": {"0": "yes"}}')
    message = "1 prediction is of unknown questions, such as v1_7; 1 id is there more than once; 1 of 3 questions have no prediction"
    with pytest.raises(InputError, match=message):
        list(task.read_predictions(path, samples))


def test_two_questions_of_one_id_share_its_prediction(task: NextqaOpenEnded, tmp_path: Path) -> None:
    other = ("v1", 100, 640, 480, "another", "answer", 0, "TC")
    samples = read(task, write_csv(tmp_path / "oe.csv", [*OE_ROWS, other], OE_COLUMNS))
    path = write_json(tmp_path / "r.json", {"v1": {"0": "a dog", "1": ""}, "v2": {"0": "yes"}})
    found = [(prediction.sample_id, prediction.value) for prediction in task.read_predictions(path, samples)]
    assert found[0] == ("v1_0", "a dog")
    assert found[-1] == ("v1_0/2", "a dog")


@pytest.mark.parametrize(
    ("answer", "reason"), [("", "no word"), ("...", "no word"), ("a\nb", "more than one line"), ("x" * 2001, "more than 2,000 letters")]
)
def test_answers_without_a_word_or_with_lines_are_unparsed(task: NextqaOpenEnded, samples: list[Sample], answer: str, reason: str) -> None:
    prediction = task.parse(samples[0], answer)
    assert (prediction.value, prediction.status, prediction.reason) == (None, "unparsed", reason)


def test_an_answer_is_taken_as_it_is(task: NextqaOpenEnded, samples: list[Sample]) -> None:
    assert task.parse(samples[0], " To get the ball.\n").value == "To get the ball."
    assert task.parse(samples[0], "x" * 2000).value == "x" * 2000
    request = task.request(samples[0], None)
    assert "Question: why did the dog run\n" in request.text
    assert "ball" not in request.text


def test_samples_and_predictions_of_the_other_task_are_refused(task: NextqaOpenEnded, samples: list[Sample], tmp_path: Path) -> None:
    others = read(NextqaMultiChoice(), write_csv(tmp_path / "mc.csv", MC_ROWS))
    with pytest.raises(InputError, match="The sample v1_0 has no question"):
        task.request(others[0], None)
    with pytest.raises(InputError, match="The answer to v1_0 is no text"):
        task.metrics[0].score([(samples[0], Prediction(sample_id="v1_0", value=1))])
    with pytest.raises(InputError, match="The sample v1_0 has no five options"):
        NextqaMultiChoice().request(samples[0], None)


def test_words_of_predictions_are_read_from_a_table_packed_or_not(task: NextqaOpenEnded, tmp_path: Path) -> None:
    columns = ("video", "qid", "type", "reference_tokens", "prediction_tokens")
    path = write_csv(tmp_path / "t.csv", [("v", "1", "CW", "dog", "big cat"), ("v", "2", "CW", "dog", "")], columns)
    samples = read(task, path)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(path.read_bytes()))
    for one in (path, packed):
        assert [row.value for row in task.read_predictions(one, samples)] == [("big", "cat"), ()]
    assert [sample.reference for sample in samples] == [Reference(values=(("dog",),))] * 2


def test_the_second_of_two_questions_of_one_id_has_the_second_reference_too(task: NextqaOpenEnded, tmp_path: Path) -> None:
    other = ("v1", 100, 640, 480, "another", "answer", 0, "TC")
    path = write_csv(tmp_path / "val.csv", [*OE_ROWS, other], OE_COLUMNS)
    samples = read(task, path, write_json(tmp_path / "r.json", {"v1": {"0": "foot"}}))
    assert {sample.id: sample.reference and sample.reference.values for sample in samples if sample.video == "v1"} == {
        "v1_0": ("dog", "foot"),
        "v1_1": ("cat",),
        "v1_0/2": ("answer", "foot"),
    }
    twice = tmp_path / "r.json"
    twice.write_text('{"v1": {"0": "foot", "0": "cat"}}')
    with pytest.raises(InputError, match="has 1 ids more than once"):
        read(task, path, twice)
