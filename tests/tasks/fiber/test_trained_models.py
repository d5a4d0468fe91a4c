"""Records and samples as models of FIBER are given them, and their phrases as predictions."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.tasks.fiber.made import record
from tests.tasks.scoring import sample as other_sample
from vip.errors import InputError, UsageError
from vip.protocols import SilentObserver
from vip.tasks.fiber import trained_models as module
from vip.tasks.fiber.records import write_records
from vip.tasks.fiber.task import sample_of
from vip.tasks.fiber.trained_models import FillerRequest, is_filler, items_of_samples, predict_fillers, train_on_records
from vip.tasks.files import read_predictions, write_samples
from vip.tasks.records import FreeText

pytest.importorskip("torch")
pytest.importorskip("transformers")
from vip.baselines.fiber import answer as answers  # needs torch
from vip.baselines.fiber import train as training
from vip.baselines.fiber.filler import FilledBlank

QUIET = SilentObserver()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What a training is begun with; nothing is trained."""
    calls: list[dict[str, Any]] = []

    def train(settings: Any, data: Any, weights: str | None, folder: Path, **more: Any) -> Any:
        calls.append({"settings": settings, "data": data, "weights": weights, "folder": folder, **more})

    monkeypatch.setattr(training, "train_filler", train)
    return calls


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    write_records(tmp_path / "train.json", [record("a dog", "t1"), record("a cat", "t2")])
    write_records(tmp_path / "val.json", [record("a man", "v1", additional_answers=[["he", "a man"], ["he", "a guy"]])])
    return tmp_path


def test_a_model_learns_from_train_and_is_validated_on_val(annotations: Path, asked: list[dict[str, Any]]) -> None:
    request = FillerRequest(
        annotations=annotations,
        out=annotations / "out",
        model="text",
        weights="t5:tiny",
        assignments=["training.batch=3"],
        epochs=7,
        seed=5,
    )
    train_on_records(request, observer=QUIET)
    (call,) = asked
    data = call["data"]
    assert [(item.id, item.label, item.answers) for item in data.train] == [
        ("t1_000005_000015", "a dog", ("a dog",)),
        ("t2_000005_000015", "a cat", ("a cat",)),
    ]
    assert [(item.clip.video, item.clip.start_s, item.clip.end_s, item.masked, item.answers) for item in data.val] == [
        ("v1", 5, 15, "There is _____.", ("a man", "he", "a guy"))
    ]
    settings = call["settings"].training
    assert (settings.epochs, settings.seed, settings.batch) == (7, 5, 3)
    assert (call["weights"], call["folder"], call["resume"], call["overwrite"]) == ("t5:tiny", annotations / "out", False, False)


def test_a_training_that_goes_on_takes_no_settings_and_one_that_begins_needs_a_model(
    annotations: Path, asked: list[dict[str, Any]]
) -> None:
    begun = {"annotations": annotations, "out": annotations / "out"}
    with pytest.raises(UsageError, match="Name the model to train: --model early-fusion"):
        train_on_records(FillerRequest(**begun), observer=QUIET)
    for more in ({"assignments": ["training.batch=3"]}, {"seed": 5}, {"seed": 0}, {"config": annotations / "c.toml"}):
        with pytest.raises(UsageError, match="Settings are given without --model NAME"):
            train_on_records(FillerRequest(**begun, resume=True, **more), observer=QUIET)
    assert not asked
    train_on_records(FillerRequest(**begun, resume=True, epochs=9), observer=QUIET)
    assert (asked[0]["settings"], asked[0]["resume"], asked[0]["epochs"]) == (None, True, 9)
    (annotations / "val.json").unlink()
    with pytest.raises(InputError, match=r"has no val\.json"):
        train_on_records(FillerRequest(**begun, model="text"), observer=QUIET)


def test_a_sample_is_a_caption_with_the_clip_in_whole_seconds_and_its_label() -> None:
    whole = sample_of(record("a dog", "x"))
    hidden = whole.model_copy(update={"reference": None, "start_s": 1.6, "end_s": None})
    first, second = items_of_samples([whole, hidden])
    assert (first.id, first.masked, first.label, first.answers) == ("x_000005_000015", "There is _____.", "a dog", ())
    assert [(item.clip.start_s, item.clip.end_s, item.label) for item in (first, second)] == [(5, 15, "a dog"), (2, 0, None)]
    with pytest.raises(InputError, match="The sample x_000005_000015 has no blank"):
        list(items_of_samples([whole.model_copy(update={"ask": FreeText(question="?")})]))


def test_a_t5_or_the_folder_of_a_model_fills_blanks(tmp_path: Path) -> None:
    assert is_filler(Path("t5:small"))
    assert not is_filler(tmp_path)
    (tmp_path / "filler.json").write_text("{}")
    assert is_filler(tmp_path)


@pytest.fixture
def filled(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """A model that is given instead of one of a folder, and what was asked of it."""
    seen: dict[str, Any] = {"is_finished": True}

    def opened(model: str, beams: int | None) -> Any:
        seen.update(model=model, beams=beams)
        return SimpleNamespace(name=f"{model} beams:{beams or 8}", is_finished=seen["is_finished"])

    def fill(loaded: Any, items: Any, *, features: Any, judge: Any, device: str) -> Any:
        seen.update(judge=judge, features=features)
        for item in items:
            phrase = {"a": "a dog", "b": ""}[item.clip.video]
            yield FilledBlank(phrase, (-0.12345678,), (-1.5, -0.25000049) if item.label else None)

    monkeypatch.setattr(module, "_open", opened)
    monkeypatch.setattr(answers, "fill_blanks", fill)
    return seen


def test_phrases_are_predictions_and_a_model_that_says_nothing_is_unparsed(filled: dict[str, Any], tmp_path: Path) -> None:
    samples = [sample_of(record("a cat", "a")), sample_of(record("a man", "b")).model_copy(update={"reference": None})]
    write_samples(tmp_path / "s.jsonl", samples)
    done = predict_fillers(tmp_path / "s.jsonl", tmp_path / "p.jsonl", "t5:tiny", parser="none", beams=4, observer=QUIET)
    assert (done.statuses, done.engine) == ({"ok": 1, "unparsed": 1}, "t5:tiny beams:4 parser:none")
    first, second = read_predictions(done.path)
    assert (first.sample_id, first.value, first.engine) == (samples[0].id, "a dog", done.engine)
    assert (first.log_probabilities, first.label_log_probabilities) == ((-0.123457,), (-1.5, -0.25))
    assert (second.value, second.status, second.reason, second.label_log_probabilities) == (
        None,
        "unparsed",
        "the model says nothing",
        None,
    )
    assert (filled["judge"], filled["beams"]) == (None, 4)
    with pytest.raises(UsageError, match="exists already"):
        predict_fillers(tmp_path / "s.jsonl", tmp_path / "p.jsonl", "t5:tiny", parser="none", observer=QUIET)


def test_a_training_that_has_not_ended_is_said_and_samples_of_another_task_are_refused(filled: dict[str, Any], tmp_path: Path) -> None:
    notes: list[str] = []
    observer = SilentObserver()
    observer.note = notes.append  # type: ignore[method-assign]
    write_samples(tmp_path / "s.jsonl", [sample_of(record("a cat", "a"))])
    for is_finished in (True, False):
        filled["is_finished"] = is_finished
        predict_fillers(tmp_path / "s.jsonl", tmp_path / "p.jsonl", "run", parser="none", overwrite=True, observer=observer)
    assert notes == ["The training of run has not ended: its best weights so far answer."]
    write_samples(tmp_path / "o.jsonl", [other_sample("0", "a")])
    with pytest.raises(UsageError, match=r"run fills blanks, and .* has samples of infilling"):
        predict_fillers(tmp_path / "o.jsonl", tmp_path / "q.jsonl", "run", parser="none", observer=QUIET)
