"""Questions and samples as models are given them."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tasks.nextqa.published import MC_ROWS, OE_COLUMNS, OE_ROWS, read, write_csv
from vip.errors import InputError, UsageError
from vip.protocols import SilentObserver
from vip.tasks.files import read_predictions, write_samples
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.nextqa.oe import NextqaOpenEnded
from vip.tasks.nextqa.trained_models import TrainRequest, items_of_samples, predict_with_model, read_items, train_on_annotations
from vip.tasks.records import Rank


def test_questions_of_a_file_keep_their_order_and_their_answers(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "train.csv", MC_ROWS)
    items = read_items(path, "nextqa-mc", file=1)
    assert [(item.id, item.video, item.answer, item.row, item.file) for item in items] == [
        ("v1_0", "v1", 1, 0, 1),
        ("v1_1", "v1", 4, 1, 1),
        ("v2_0", "v2", 0, 2, 1),
        ("v2_3", "v2", 2, 3, 1),
    ]
    assert items[0].options == ("to sleep", "to get the ball", "hungry", "to the cat", "walk")
    (tmp_path / "train.csv.gz").write_bytes(gzip.compress(path.read_bytes()))
    assert read_items(tmp_path / "train.csv.gz", "nextqa-mc", file=1) == items


def test_answers_to_yes_or_no_questions_must_be_exact(tmp_path: Path) -> None:
    items = read_items(write_csv(tmp_path / "train.csv", OE_ROWS, OE_COLUMNS), "nextqa-oe")
    assert [(item.answer, item.exact, item.options) for item in items] == [("dog", False, ()), ("cat", False, ()), ("dog", True, ())]
    counts = read_items(
        write_csv(tmp_path / "t.csv", [("v", "1", "DC", "two dogs")], ("video", "qid", "type", "reference_tokens")), "nextqa-oe"
    )
    assert [(item.answer, item.exact) for item in counts] == [("two dogs", True)]


def test_a_model_never_sees_the_answer_of_a_sample(tmp_path: Path) -> None:
    samples = read(NextqaMultiChoice(), write_csv(tmp_path / "val.csv", MC_ROWS))
    items = list(items_of_samples(samples))
    assert [item.id for item in items] == [sample.id for sample in samples]
    assert {item.answer for item in items} == {None}
    assert items[3].question == "where is this"


def test_samples_that_ask_something_else_are_refused(tmp_path: Path) -> None:
    sample = read(NextqaOpenEnded(), write_csv(tmp_path / "val.csv", OE_ROWS, OE_COLUMNS))[0]
    with pytest.raises(InputError, match="The sample v1_0 has no question"):
        list(items_of_samples([sample.model_copy(update={"ask": Rank(query="dog")})]))
    with pytest.raises(InputError, match="The sample v1_0 has no question"):
        list(items_of_samples([sample.model_copy(update={"ask": sample.ask.model_copy(update={"question": ""})})]))


# ---------------------------------------------------------------- training and answering, without a model


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a training is begun with; nothing is trained."""
    training = pytest.importorskip("vip.baselines.nextqa.train", exc_type=ImportError)
    calls: list[dict[str, Any]] = []

    def train(settings: Any, data: Any, folder: Path, **more: Any) -> None:
        calls.append({"settings": settings, "data": data, "folder": folder, **more})

    monkeypatch.setattr(training, "train_model", train)
    return calls


def test_a_model_learns_from_train_and_is_validated_on_val(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    write_csv(tmp_path / "train.csv", MC_ROWS[:3])
    write_csv(tmp_path / "val.csv", MC_ROWS[3:])
    request = TrainRequest(
        task="nextqa-mc", annotations=tmp_path, out=tmp_path / "out", model="hga", assignments=["training.batch=3"], epochs=7, seed=5
    )
    train_on_annotations(request, observer=SilentObserver())
    (call,) = asked
    assert [(item.id, item.file, item.row) for item in call["data"].train] == [("v1_0", 0, 0), ("v1_1", 0, 1), ("v2_0", 0, 2)]
    assert [(item.id, item.file, item.row) for item in call["data"].val] == [("v2_3", 1, 0)]
    settings = call["settings"].training
    assert (settings.epochs, settings.seed, settings.batch) == (7, 5, 3)
    assert (call["folder"], call["resume"], call["overwrite"]) == (tmp_path / "out", False, False)


def test_annotations_may_be_packed(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    for split in ("train", "val"):
        written = write_csv(tmp_path / f"{split}.csv", MC_ROWS)
        written.with_name(f"{split}.csv.gz").write_bytes(gzip.compress(written.read_bytes()))
        written.unlink()
    train_on_annotations(TrainRequest(task="nextqa-mc", annotations=tmp_path, out=tmp_path / "out", model="hga"), observer=SilentObserver())
    assert [len(items) for items in (asked[0]["data"].train, asked[0]["data"].val)] == [len(MC_ROWS)] * 2


def test_a_training_that_goes_on_takes_no_settings_and_one_that_begins_needs_a_model(tmp_path: Path, asked: list[dict[str, Any]]) -> None:
    for split in ("train", "val"):
        write_csv(tmp_path / f"{split}.csv", MC_ROWS)
    begun: dict[str, Any] = {"task": "nextqa-mc", "annotations": tmp_path, "out": tmp_path / "out"}
    with pytest.raises(UsageError, match="Name the model to train: --model hga"):
        train_on_annotations(TrainRequest(**begun), observer=SilentObserver())
    for more in ({"assignments": ["training.batch=3"]}, {"seed": 0}, {"decoder": "x"}, {"config": tmp_path / "c.toml"}):
        with pytest.raises(UsageError, match="Settings are given without --model NAME"):
            train_on_annotations(TrainRequest(**begun, resume=True, **more), observer=SilentObserver())
    with pytest.raises(UsageError, match='No model is trained for "nextqa"'):
        train_on_annotations(TrainRequest(**{**begun, "task": "nextqa"}), observer=SilentObserver())
    assert not asked
    train_on_annotations(TrainRequest(**begun, resume=True, epochs=9), observer=SilentObserver())
    assert (asked[0]["settings"], asked[0]["resume"], asked[0]["epochs"]) == (None, True, 9)
    (tmp_path / "val.csv").unlink()
    with pytest.raises(InputError, match=r"has no val\.csv"):
        train_on_annotations(TrainRequest(**begun, model="hga"), observer=SilentObserver())


def test_answers_keep_their_scores_and_an_order_of_ones_own_needs_no_stored_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = pytest.importorskip("vip.baselines.nextqa.answer", exc_type=ImportError)
    model = SimpleNamespace(settings=SimpleNamespace(task="nextqa-mc"), is_finished=False, name="model:hga 1")
    monkeypatch.setattr(answers, "open_trained", lambda folder: model)
    given: list[Any] = []

    def answer(folder: Path, record: Any, items: Any, **more: Any) -> Any:
        given.append(more)
        return [answers.Answer(place % 5, (0.12345678, 0.5, -1.0, 0.0, 2.25)) for place, _ in enumerate(items)]

    monkeypatch.setattr(answers, "answer_items", answer)
    notes: list[str] = []
    observer = SilentObserver()
    observer.note = notes.append  # type: ignore[method-assign]
    csv_file = write_csv(tmp_path / "val.csv", MC_ROWS)
    for name, seed in (("plain", None), ("shuffled", 3)):
        write_samples(tmp_path / f"{name}.jsonl", read(NextqaMultiChoice(), csv_file, shuffle=seed))
        done = predict_with_model(tmp_path / f"{name}.jsonl", tmp_path / f"{name}-p.jsonl", tmp_path, observer=observer)
        rows = list(read_predictions(done.path))
        assert [(row.sample_id, row.value, row.scores) for row in rows] == [
            (name, place, (0.123457, 0.5, -1.0, 0.0, 2.25)) for place, name in enumerate(("v1_0", "v1_1", "v2_0", "v2_3"))
        ]
        assert ({row.engine for row in rows}, done.statuses) == ({"model:hga 1"}, {"ok": 4})
    assert notes == [f"The training of {tmp_path} has not ended: its best weights so far answer."] * 2
    texts = tmp_path / "texts.h5"
    predict_with_model(tmp_path / "plain.jsonl", tmp_path / "p.jsonl", tmp_path, texts=texts, observer=observer)
    assert given[-1]["texts"] == texts
    with pytest.raises(UsageError, match="Options were put into another order"):
        predict_with_model(tmp_path / "shuffled.jsonl", tmp_path / "q.jsonl", tmp_path, texts=texts, observer=observer)
    model.settings.task = "nextqa-oe"
    with pytest.raises(UsageError, match=r"holds a model of nextqa-oe, and .* has samples of nextqa-mc"):
        predict_with_model(tmp_path / "plain.jsonl", tmp_path / "q.jsonl", tmp_path, observer=observer)
