"""vip.baselines.nextqa.train and answer, vip.baselines.training and run_folder: from questions to a folder, and from a folder to answers"""

from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np
import pytest
import torch

from tests.baselines.made import make_items, write_features, write_features_of
from tests.baselines.nextqa.test_words import LETTERS, bert
from vip.baselines.nextqa.answer import Answer, answer_items, open_trained
from vip.baselines.nextqa.assemble import load_settings, score_answer_by
from vip.baselines.nextqa.data import Item
from vip.baselines.run_folder import TrainedModel
from vip.baselines.settings import BaselineSettings, parse_assignments
from vip.errors import BackendError, InputError, UsageError
from vip.protocols import SilentObserver

if TYPE_CHECKING:  # the loop loads Lightning, for which tests that are left out would wait
    from vip.baselines.nextqa.train import TrainingData

SMALL = ("words.size=16", "words.least_count=1", "training.batch=8", "training.learning_rate=0.01", "training.epochs=3")
MODELS = {
    "evqa": ("model.hidden=16", "model.fusion=multiply", "model.dropout=0.1"),
    "hga": ("model.hidden=16", "model.fusion=24", "model.fusion_chunks=4"),
    "blind-qa": ("model.hidden=16",),
}
assert bert
assert LETTERS


class Notes(SilentObserver):
    """Keeps what was said."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


def settings(model: str = "evqa", *more: str, task: str = "nextqa-mc") -> BaselineSettings:
    assignments = (*SMALL, *MODELS[model], *(("training.best_by=exact-match",) if task == "nextqa-oe" else ()), *more)
    return load_settings(task, model, assignments=parse_assignments(assignments))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    return _data(tmp_path_factory.mktemp("data"), options=True)


@pytest.fixture(scope="module")
def open_data(tmp_path_factory: pytest.TempPathFactory) -> TrainingData:
    return _data(tmp_path_factory.mktemp("open"), options=False)


def _data(folder: Path, *, options: bool) -> TrainingData:
    train, val = make_items(40, options=options), make_items(16, first=100, options=options)
    val = [dataclasses.replace(item, file=1) for item in val]
    from vip.baselines.nextqa.train import TrainingData

    return TrainingData(train=train, val=val, features=[write_features_of(folder / "f.h5", [*train, *val])])


def trained(folder: Path, data: TrainingData, given: BaselineSettings | None = None, **others: Any) -> TrainedModel:
    from vip.baselines.nextqa.train import train_model
    from vip.baselines.training import Machine

    with torch.random.fork_rng():
        return train_model(
            given, data, folder, observer=others.pop("observer", Notes()), machine=Machine(device=others.pop("device", "cpu")), **others
        )


def answers(folder: Path, items: Sequence[Item], data: TrainingData) -> list[Answer]:
    return list(answer_items(folder, open_trained(folder), items, features=data.features, device="cpu"))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "epochs.jsonl").read_text().splitlines()]


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path, data: TrainingData) -> None:
    for name, seed in (("one", 1), ("two", 1), ("three", 2)):
        trained(tmp_path / name, data, settings("hga", f"training.seed={seed}"))
    one, two, three = ((tmp_path / name / "weights.safetensors").read_bytes() for name in ("one", "two", "three"))
    assert one == two != three
    assert answers(tmp_path / "one", data.val, data) == answers(tmp_path / "two", data.val, data)


class Killed(BaseException):
    """Ends a training as a kill would, where nothing can be cleaned up."""


@pytest.mark.parametrize("epoch", [1, 2])
def test_a_killed_training_goes_on_to_the_same_weights(
    tmp_path: Path, data: TrainingData, monkeypatch: pytest.MonkeyPatch, epoch: int
) -> None:
    """The learning rate falls in the meantime, which must be remembered too."""
    # so slow that the score does not rise, on any processor
    given = settings("hga", "training.epochs=4", "training.plateau_patience=0", "training.seed=1", "training.learning_rate=1e-5")
    trained(tmp_path / "whole", data, given)
    from vip.baselines.training import TrainingLoop

    step, count = TrainingLoop.training_step, 0

    def kill_later(self: Any, batch: Any, number: int) -> Any:
        nonlocal count
        count += 1
        if count == 5 * epoch + 3:  # in the middle of the next epoch
            raise Killed
        return step(self, batch, number)

    monkeypatch.setattr(TrainingLoop, "training_step", kill_later)
    with pytest.raises(Killed):
        trained(tmp_path / "broken", data, given)
    monkeypatch.undo()
    assert len(rows(tmp_path / "broken")) == epoch
    trained(tmp_path / "broken", data, resume=True)
    assert rows(tmp_path / "broken") == rows(tmp_path / "whole")
    assert len({row["learning_rate"] for row in rows(tmp_path / "whole")}) > 1
    for name in ("weights.safetensors", "model.json"):
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_more_epochs_go_on_behind_the_last(tmp_path: Path, data: TrainingData) -> None:
    trained(tmp_path / "whole", data, settings("evqa", "training.epochs=4"))
    trained(tmp_path / "more", data, settings("evqa", "training.epochs=2"))
    before, notes = rows(tmp_path / "more"), Notes()
    trained(tmp_path / "more", data, resume=True, observer=notes)
    assert notes.texts == ["2 epochs are done already. Ask for more: epochs=NUMBER."] or "done already" in notes.texts[0]
    done = trained(tmp_path / "more", data, resume=True, epochs=4)
    assert rows(tmp_path / "more")[:2] == before
    assert (tmp_path / "more/weights.safetensors").read_bytes() == (tmp_path / "whole/weights.safetensors").read_bytes()
    assert done.settings.training.epochs == 4
    assert done.settings_sha256 == done.settings.sha256


def test_the_weights_are_those_of_the_best_epoch(tmp_path: Path, data: TrainingData) -> None:
    done = trained(tmp_path / "run", data, settings("evqa", "training.epochs=5"))
    found = rows(tmp_path / "run")
    assert done.best_score == max(row["score"] for row in found)
    assert [row["is_best"] for row in found] == [
        row["score"] > max((one["score"] for one in found[:place]), default=-1) for place, row in enumerate(found)
    ]
    right = [answer.value == item.answer for answer, item in zip(answers(tmp_path / "run", data.val, data), data.val, strict=True)]
    assert sum(right) / len(right) == pytest.approx(done.best_score)


@pytest.mark.parametrize("model", ["evqa", "hga"])
def test_a_model_learns_what_only_the_video_tells(tmp_path: Path, data: TrainingData, model: str) -> None:
    more = ("model.dropout=0", "training.epochs=25", "training.plateau_patience=25", "training.learning_rate=0.003")
    done = trained(tmp_path / "run", data, settings(model, *more))
    assert done.best_score is not None
    assert done.best_score >= 0.9


def test_options_in_another_order_get_the_same_answer(tmp_path: Path, data: TrainingData) -> None:
    trained(tmp_path / "run", data, settings("hga"))
    order = (3, 0, 4, 1, 2)
    moved = [dataclasses.replace(item, options=tuple(item.options[place] for place in order)) for item in data.val]
    before, after = answers(tmp_path / "run", data.val, data), answers(tmp_path / "run", moved, data)
    assert [order[int(answer.value)] for answer in after] == [answer.value for answer in before]
    assert before[0].scores is not None
    assert after[0].scores == pytest.approx([before[0].scores[place] for place in order], abs=1e-5)


def test_questions_of_one_batch_do_not_change_one_another(tmp_path: Path, data: TrainingData) -> None:
    """A long text beside it pads the others."""
    trained(tmp_path / "run", data, settings("hga"))
    long = dataclasses.replace(data.val[1], question="what is in the video " * 5)
    alone = answers(tmp_path / "run", [data.val[0]], data)[0]
    beside = answers(tmp_path / "run", [data.val[0], long], data)[0]
    assert alone.scores == pytest.approx(beside.scores, abs=1e-5)


def test_open_ended_models_learn_to_say_what_the_video_shows(tmp_path: Path, open_data: TrainingData) -> None:
    more = ("training.epochs=25", "training.plateau_patience=25", "decoder-options.dropout=0")
    done = trained(tmp_path / "run", open_data, settings("evqa", *more, task="nextqa-oe"))
    assert done.name.startswith("model:evqa+att-qns settings:")
    assert done.best_score is not None
    assert done.best_score >= 0.9
    found = answers(tmp_path / "run", open_data.val, open_data)
    assert sum(answer.value == item.answer for answer, item in zip(found, open_data.val, strict=True)) / 16 == done.best_score


def test_hga_and_blind_qa_answer_open_ended_questions(tmp_path: Path, open_data: TrainingData) -> None:
    for model in ("hga", "blind-qa"):
        trained(tmp_path / model, open_data, settings(model, "training.epochs=1", task="nextqa-oe"))
        found = answers(tmp_path / model, open_data.val, open_data)
        assert all(isinstance(answer.value, str) and len(answer.value.split()) <= 7 for answer in found)


def test_bert_is_fine_tuned_and_its_folder_serves_another_model(tmp_path: Path, data: TrainingData, bert: Path) -> None:
    of_bert = dataclasses.replace(data, bert=bert, features=())
    given = load_settings(
        "nextqa-mc",
        "bert-choice",
        assignments=parse_assignments(("words.size=8", "words.length=16", "training.epochs=2", "training.batch=8")),
    )
    trained(tmp_path / "tuned", of_bert, given)
    from safetensors.torch import load_file

    before, after = load_file(bert / "model.safetensors"), load_file(tmp_path / "tuned/bert/model.safetensors")
    assert any(not torch.equal(before[name], after[name]) for name in before)
    best = load_file(tmp_path / "tuned/weights.safetensors")
    assert torch.equal(best["words.bert.embeddings.word_embeddings.weight"], after["embeddings.word_embeddings.weight"])
    blind = settings("blind-qa", "words.kind=bert", "words.length=16", "training.bert_learning_rate=0.01")
    trained(tmp_path / "blind", dataclasses.replace(of_bert, bert=tmp_path / "tuned/bert"), blind)
    assert not any(name.startswith("words.bert") for name in load_file(tmp_path / "blind/weights.safetensors"))
    shutil.rmtree(tmp_path / "tuned")  # the folder of a training needs no other
    assert len(answers(tmp_path / "blind", data.val, of_bert)) == 16


def test_the_bert_that_is_kept_is_that_of_the_best_epoch(
    tmp_path: Path, data: TrainingData, bert: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from safetensors.torch import load_file

    from vip.baselines.nextqa.multi_choice import MultiChoiceLearner

    falling = iter([1.0, 0.5])
    monkeypatch.setattr(MultiChoiceLearner, "scores", lambda self, batch: [next(falling)])
    assignments = ("words.size=8", "words.length=16", "training.epochs=2", "training.batch=64")
    given = load_settings("nextqa-mc", "bert-choice", assignments=parse_assignments(assignments))
    assert trained(tmp_path / "run", dataclasses.replace(data, bert=bert, features=()), given).best_epoch == 1
    kept, best = load_file(tmp_path / "run/bert/model.safetensors"), load_file(tmp_path / "run/weights.safetensors")
    name = "encoder.layer.1.output.dense.weight"
    assert torch.equal(kept[name], best[f"words.bert.{name}"])


def test_the_users_split_of_features_holds_for_answers_too(tmp_path: Path, data: TrainingData) -> None:
    items, random = [*data.train, *data.val], np.random.default_rng(0)
    path = write_features(tmp_path / "f.h5", random.normal(size=(len(items), 3, 8)), [item.video for item in items])  # no attribute
    split = dataclasses.replace(data, features=[path], appearance=3)
    assert trained(tmp_path / "run", split, settings("hga", "training.epochs=1")).sizes.motion == 5
    assert len(answers(tmp_path / "run", data.val, split)) == 16


def test_answers_are_given_without_dropout_and_trainings_are_begun_with_it(tmp_path: Path, data: TrainingData) -> None:
    trained(tmp_path / "run", data, settings("evqa", "training.epochs=1", "model.dropout=0.5"))
    assert answers(tmp_path / "run", data.val, data) == answers(tmp_path / "run", data.val, data)


def test_words_are_read_from_files_of_stored_vectors(tmp_path: Path, data: TrainingData) -> None:
    paths = []
    for name, items in (("train", data.train), ("val", data.val)):
        paths.append(tmp_path / f"{name}.h5")
        with h5py.File(paths[-1], "w") as file:
            file["feat"] = np.random.default_rng(0).normal(size=(len(items), 5, 6, 9)).astype(np.float32)
    of_texts = dataclasses.replace(data, texts=paths)
    given = settings("evqa", "words.kind=features", "training.epochs=1", "training.bert_learning_rate=0.01")
    assert trained(tmp_path / "run", of_texts, given).sizes.stored_words == 9
    record = open_trained(tmp_path / "run")
    found = list(answer_items(tmp_path / "run", record, data.val, features=data.features, texts=paths[1], device="cpu"))
    assert len(found) == 16
    with pytest.raises(UsageError, match="The words of this model are stored vectors"):
        answers(tmp_path / "run", data.val, data)
    with pytest.raises(InputError, match="is of 40 questions with 5 options, and there are 16"):
        list(answer_items(tmp_path / "run", record, data.val, features=data.features, texts=paths[0], device="cpu"))


def test_feature_maps_serve_models_of_maps_and_others_by_their_mean(tmp_path: Path, data: TrainingData) -> None:
    items = [*data.train, *data.val]
    maps = np.random.default_rng(0).normal(size=(len(items), 3, 6, 7, 7))
    of_maps = dataclasses.replace(data, features=[write_features(tmp_path / "maps.h5", maps, [item.video for item in items], appearance=4)])
    small = parse_assignments((*SMALL, "model.hidden=8", "training.epochs=1"))
    trained(tmp_path / "stvqa", of_maps, load_settings("nextqa-mc", "stvqa", assignments=small))
    trained(tmp_path / "evqa", of_maps, settings("evqa", "training.epochs=1"))
    pooled = dataclasses.replace(
        data, features=[write_features(tmp_path / "p.h5", maps.mean(axis=(3, 4)), [item.video for item in items], appearance=4)]
    )
    for one, two in zip(answers(tmp_path / "evqa", data.val, of_maps), answers(tmp_path / "evqa", data.val, pooled), strict=True):
        assert one.scores == pytest.approx(two.scores, abs=1e-5)
    assert len(answers(tmp_path / "stvqa", data.val, of_maps)) == 16


def test_a_folder_goes_on_only_with_what_it_began_with(tmp_path: Path, data: TrainingData) -> None:
    folder = tmp_path / "run"
    with pytest.raises(UsageError, match="holds no training"):
        trained(folder, data, resume=True)
    trained(folder, data, settings("evqa", "training.epochs=1"))
    for given, others, message in [
        (settings("evqa", "training.epochs=1"), {}, "holds a training already"),
        (settings("hga", "training.epochs=2"), {"resume": True}, "with other settings"),
        (settings("evqa", "model.hidden=17"), {"resume": True}, "with other settings"),
    ]:
        with pytest.raises(UsageError, match=message):
            trained(folder, data, given, **others)
    with pytest.raises(UsageError, match="on other questions"):
        trained(folder, dataclasses.replace(data, val=data.val[:-1]), resume=True, epochs=2)
    wide = [write_features_of(tmp_path / "wide.h5", [*data.train, *data.val], width=10)]
    with pytest.raises(UsageError, match="features of other sizes"):
        trained(folder, dataclasses.replace(data, features=wide), resume=True, epochs=2)
    assert trained(folder, data, settings("hga", "training.epochs=1"), overwrite=True).settings.model == "hga"


def test_a_folder_that_is_written_over_is_as_a_new_one(tmp_path: Path, data: TrainingData) -> None:
    given = settings("evqa", "training.epochs=1", "training.seed=2")
    trained(tmp_path / "new", data, given)
    trained(tmp_path / "old", data, settings("hga", "training.epochs=2"))
    trained(tmp_path / "old", data, given, overwrite=True)
    for name in ("weights.safetensors", "model.json", "epochs.jsonl", "vocabulary.txt"):
        assert (tmp_path / "old" / name).read_bytes() == (tmp_path / "new" / name).read_bytes(), name


def test_what_is_missing_is_said_before_training(tmp_path: Path, data: TrainingData) -> None:
    with pytest.raises(UsageError, match="Give its features"):
        trained(tmp_path / "a", dataclasses.replace(data, features=()), settings())
    item = dataclasses.replace(data.train[0], video="nowhere")
    with pytest.raises(InputError, match="1 of 57 videos have no features, such as nowhere"):
        trained(tmp_path / "b", dataclasses.replace(data, train=[*data.train, item]), settings())
    with pytest.raises(InputError, match="has no right answer"):
        trained(tmp_path / "c", dataclasses.replace(data, val=[dataclasses.replace(data.val[0], answer=None)]), settings())
    with pytest.raises(UsageError, match="none is named"):
        trained(tmp_path / "d", data, settings("blind-qa", "words.kind=bert"))
    with pytest.raises(UsageError, match="give two files"):
        trained(tmp_path / "e", data, settings("blind-qa", "words.kind=features"))
    with pytest.raises(InputError, match="no feature maps"):
        trained(tmp_path / "f", data, load_settings("nextqa-mc", "stvqa"))
    assert not any((tmp_path / name / "model.json").exists() for name in "abcdef")


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path, data: TrainingData) -> None:
    with pytest.raises(InputError, match=r"The loss of epoch 1 is (nan|inf). Lower training.learning_rate"):
        trained(tmp_path / "run", data, settings("blind-qa", "training.loss=cross-entropy", "training.margin=1e300", "training.loss=hinge"))


def test_a_device_that_is_not_here_is_said(tmp_path: Path, data: TrainingData) -> None:
    if torch.cuda.is_available():
        pytest.skip("there is one")
    with pytest.raises(BackendError, match="cannot be used here"):
        trained(tmp_path / "run", data, settings(), device="cuda")


def test_a_damaged_folder_is_refused_in_one_sentence(tmp_path: Path, data: TrainingData) -> None:
    folder = tmp_path / "run"
    trained(folder, data, settings("evqa", "training.epochs=1"))
    model = json.loads((folder / "model.json").read_text())
    whole = {name: (folder / name).read_bytes() for name in ("model.json", "vocabulary.txt", "weights.safetensors", "last.ckpt")}

    def answered(name: str, content: bytes | None) -> str:
        for other, data_before in whole.items():
            (folder / other).write_bytes(data_before)
        (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
        with pytest.raises(InputError) as refused:
            answers(folder, data.val, data)
        return str(refused.value)

    assert "holds no trained model" in answered("model.json", None)
    assert "is damaged" in answered("model.json", b"{}")
    model["settings"]["options"]["hidden"] = 17
    assert "changed by hand" in answered("model.json", json.dumps(model).encode())
    assert "is missing" in answered("vocabulary.txt", None)
    assert "of another model" in answered("vocabulary.txt", whole["vocabulary.txt"] + b"more\n")
    assert "does not exist" in answered("weights.safetensors", None)
    assert "no weights that can be read" in answered("weights.safetensors", whole["weights.safetensors"][:100])
    (folder / "weights.safetensors").write_bytes(whole["weights.safetensors"])
    (folder / "last.ckpt").write_bytes(b"\x80\x04cos\nsystem\n.")
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read"):
        trained(folder, data, resume=True, epochs=2)


@pytest.mark.parametrize("task", ["nextqa-mc", "nextqa-oe"])
def test_sizes_that_a_stranger_states_take_no_memory(task: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    data = request.getfixturevalue("data" if task == "nextqa-mc" else "open_data")
    record = trained(tmp_path / "run", data, settings("evqa", "training.epochs=1", task=task))
    options = {**record.settings.options, "hidden": 8192}
    large = record.settings.model_copy(update={"options": options})
    sizes = record.sizes.model_copy(update={"appearance": 1_000_000})  # 131 GB
    changed = record.model_copy(update={"settings": large, "settings_sha256": large.sha256, "sizes": sizes})
    (tmp_path / "run" / "model.json").write_text(changed.model_dump_json())
    with pytest.raises(InputError, match=r"weights\.safetensors holds weights of another model, such as .* Train the model again"):
        answers(tmp_path / "run", data.val, data)


@pytest.mark.parametrize("is_saved", [True, False])
def test_sizes_that_a_stranger_states_take_no_memory_where_a_training_goes_on(is_saved: bool, tmp_path: Path, data: TrainingData) -> None:
    record = trained(tmp_path / "run", data, settings("evqa", "training.epochs=1"))
    large = record.settings.model_copy(update={"options": {**record.settings.options, "hidden": 8192}})
    changed = record.model_copy(update={"settings": large, "settings_sha256": large.sha256, "is_finished": False})
    (tmp_path / "run" / "model.json").write_text(changed.model_dump_json())
    if not is_saved:
        (tmp_path / "run" / "last.ckpt").unlink()
    with pytest.raises(InputError, match="it holds weights of another model" if is_saved else "weights, and none were saved"):
        trained(tmp_path / "run", data, resume=True, epochs=2)


def test_a_checkpoint_of_a_stranger_runs_nothing(tmp_path: Path, data: TrainingData) -> None:
    folder = tmp_path / "run"
    trained(folder, data, settings("evqa", "training.epochs=1"))

    class Harm:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "harm",)

    torch.save({"state_dict": {}, "x": Harm()}, folder / "last.ckpt")
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read"):
        trained(folder, data, resume=True, epochs=2)
    assert not (tmp_path / "harm").exists()


def test_links_in_a_folder_of_somebody_else_lead_nowhere(tmp_path: Path, data: TrainingData) -> None:
    trained(tmp_path / "run", data, settings("evqa", "training.epochs=1"))
    (tmp_path / "precious").write_text("mine")
    for name in ("last.ckpt", "weights.safetensors", "epochs.jsonl"):
        (tmp_path / "run" / f"{name}.vip-part").symlink_to(tmp_path / "precious")
    trained(tmp_path / "run", data, resume=True, epochs=2)
    assert len(rows(tmp_path / "run")) == 2
    assert (tmp_path / "precious").read_text() == "mine"


def test_features_of_other_sizes_get_no_answers(tmp_path: Path, data: TrainingData) -> None:
    trained(tmp_path / "run", data, settings("evqa", "training.epochs=1"))
    wide = dataclasses.replace(data, features=[write_features_of(tmp_path / "wide.h5", data.val, width=10)])
    with pytest.raises(InputError, match=r"have 5 \+ 5 numbers a clip, and the model was trained on 6 \+ 6"):
        answers(tmp_path / "run", data.val, wide)
    clips = open_trained(tmp_path / "run").sizes.clips
    for other in (clips - 1, clips + 1):
        counted = dataclasses.replace(data, features=[write_features_of(tmp_path / f"{other}.h5", data.val, clips=other)])
        with pytest.raises(InputError, match=rf"have {other} clips a video, and the model was trained on {clips}"):
            answers(tmp_path / "run", data.val, counted)


def test_each_epoch_has_an_order_of_its_own() -> None:
    from vip.baselines.training import EpochOrder

    orders = []
    for epoch in (0, 1, 0):
        order = EpochOrder(10, seed=5)
        order.set_epoch(epoch)
        orders.append(list(order))
    assert orders[0] == orders[2] != orders[1]
    assert sorted(orders[1]) == list(range(10))


def test_an_answer_is_scored_by_wups_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import vip.metrics.wups

    monkeypatch.setattr(vip.metrics.wups.Wups, "check", lambda self: None)
    monkeypatch.setattr(vip.metrics.wups.Wups, "words", lambda self, answer: tuple(answer.split()))
    score = score_answer_by("wups")
    assert score(Item("1", "v", "is it", (), "yes", exact=True), "yes") == 1.0
    assert score(Item("1", "v", "is it", (), "yes", exact=True), "no") == 0.0
