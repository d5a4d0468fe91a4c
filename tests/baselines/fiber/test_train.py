"""vip.baselines.fiber.train and answer: from captions and a T5 to a folder, and from a folder to phrases"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("lightning")

from tests.baselines.fiber.made import WIDTH, make_items, write_npy, write_t5
from vip.baselines.fiber.run_folder import TrainedFiller
from vip.baselines.fiber.settings import FillerSettings, load_settings
from vip.baselines.fiber.train import FillerData, train_filler
from vip.baselines.settings import parse_assignments
from vip.errors import BackendError, InputError, UsageError
from vip.protocols import SilentObserver

pytestmark = pytest.mark.slow
SMALL = ("training.batch=16", "training.learning_rate=0.005", "training.epochs=2", "decoding.beams=2")


def settings(model: str = "early-fusion", *more: str) -> FillerSettings:
    return load_settings(model, assignments=parse_assignments([*SMALL, *more]))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"t5:{write_t5(tmp_path_factory.mktemp('t5'))}"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> FillerData:
    train, val = make_items(48), make_items(16, first=100)
    return FillerData(train=train, val=val, features=(write_npy(tmp_path_factory.mktemp("i3d"), [*train, *val]),))


def test_sizes_that_a_stranger_states_take_no_memory_where_a_training_goes_on(tmp_path: Path, t5: str, data: FillerData) -> None:
    train_filler(settings("text", "training.epochs=1"), FillerData(train=data.train, val=data.val), t5, tmp_path, observer=SilentObserver())
    path = tmp_path / "t5" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"d_ff": 2**22}))
    with pytest.raises(InputError, match=r"last\.ckpt cannot be read \(it holds weights of another model, such as "):
        train_filler(None, FillerData(train=data.train, val=data.val), None, tmp_path, epochs=2, resume=True, observer=SilentObserver())


def test_a_training_that_goes_on_ends_as_one_that_never_stopped(tmp_path: Path, t5: str, data: FillerData) -> None:
    from vip.baselines.fiber.answer import fill_blanks, open_filler

    whole = train_filler(settings(), data, t5, tmp_path / "whole", observer=SilentObserver())
    assert whole.is_finished
    # the learning rate depends on the number of epochs, so a training is stopped in the middle of them, not after fewer
    part = tmp_path / "part"
    stopping = _StopsAtSecondEpoch()
    with pytest.raises(KeyboardInterrupt):
        train_filler(settings(), data, t5, part, observer=stopping)
    with pytest.raises(UsageError, match="holds a training already"):
        train_filler(settings(), data, t5, part, observer=SilentObserver())
    train_filler(None, data, None, part, resume=True, observer=SilentObserver())
    assert (part / "weights.safetensors").read_bytes() == (tmp_path / "whole" / "weights.safetensors").read_bytes()
    assert (part / "epochs.jsonl").read_bytes() == (tmp_path / "whole" / "epochs.jsonl").read_bytes()
    once, again = (list(fill_blanks(open_filler(part), data.val, features=data.features)) for _ in range(2))
    assert once == again


class _StopsAtSecondEpoch(SilentObserver):
    """The user presses Ctrl-C when the first epoch has ended."""

    def track(self, title: str, total: int):  # type: ignore[no-untyped-def]
        if title.startswith("Epoch 2"):
            raise KeyboardInterrupt
        return super().track(title, total)


def test_a_t5_learns_with_its_dropout_and_answers_without(tmp_path: Path, data: FillerData, monkeypatch: pytest.MonkeyPatch) -> None:
    from vip.baselines.fiber.answer import fill_blanks, open_filler
    from vip.baselines.fiber.filler import Filler

    seen: dict[str, set[bool]] = {"loss": set(), "scores": set()}
    for name in seen:
        before = getattr(Filler, name)

        def noted(self: Filler, batch: object, name: str = name, before: Any = before) -> Any:
            seen[name] |= {self.t5.training, self.encoder.training}
            return before(self, batch)

        monkeypatch.setattr(Filler, name, noted)
    t5 = f"t5:{write_t5(tmp_path / 't5', dropout=0.5)}"
    train_filler(settings("early-fusion", "training.epochs=1"), data, t5, tmp_path / "run", observer=SilentObserver())
    assert seen == {"loss": {True}, "scores": {False}}
    once, again = (list(fill_blanks(open_filler(tmp_path / "run"), data.val, features=data.features)) for _ in range(2))
    assert once == again


def test_a_finished_training_is_not_begun_again(tmp_path: Path, t5: str, data: FillerData) -> None:
    first = train_filler(settings("text"), FillerData(train=data.train, val=data.val), t5, tmp_path / "run", observer=SilentObserver())
    again = train_filler(None, FillerData(train=data.train, val=data.val), None, tmp_path / "run", resume=True, observer=SilentObserver())
    assert again == first
    with pytest.raises(UsageError, match="was trained on other captions"):
        train_filler(None, FillerData(train=data.train[:-1], val=data.val), None, tmp_path / "run", resume=True, observer=SilentObserver())
    with pytest.raises(UsageError, match="with other settings"):
        train_filler(
            settings("text", "training.seed=1"),
            FillerData(train=data.train, val=data.val),
            None,
            tmp_path / "run",
            resume=True,
            observer=SilentObserver(),
        )


def test_a_folder_that_is_written_over_is_as_a_new_one(tmp_path: Path, t5: str, data: FillerData) -> None:
    plain = FillerData(train=data.train, val=data.val)
    given = settings("text", "training.epochs=1")
    train_filler(given, plain, t5, tmp_path / "new", observer=SilentObserver())
    train_filler(settings("text", "training.seed=3"), plain, t5, tmp_path / "old", observer=SilentObserver())
    train_filler(given, plain, t5, tmp_path / "old", overwrite=True, observer=SilentObserver())
    for name in ("weights.safetensors", "filler.json", "epochs.jsonl"):
        assert (tmp_path / "old" / name).read_bytes() == (tmp_path / "new" / name).read_bytes(), name


def test_a_training_without_an_epoch_begins_again_only_with_the_t5_that_is_named(tmp_path: Path, t5: str, data: FillerData) -> None:
    """The folder may be somebody else's, and name any folder of this machine or any model of the hub."""
    train_filler(settings("text"), plain := FillerData(train=data.train, val=data.val), t5, tmp_path / "run", observer=SilentObserver())
    (tmp_path / "run" / "last.ckpt").unlink()
    path = tmp_path / "run" / "filler.json"
    path.write_text(TrainedFiller.model_validate_json(path.read_bytes()).model_copy(update={"is_finished": False}).model_dump_json())
    for named in (None, "t5:another"):
        with pytest.raises(UsageError, match=f"began with {t5}, and no epoch has ended. Name it again: --weights {t5}"):
            train_filler(None, plain, named, tmp_path / "run", resume=True, observer=SilentObserver())
    assert train_filler(None, plain, t5, tmp_path / "run", resume=True, observer=SilentObserver()).is_finished


def test_what_is_missing_is_one_sentence(tmp_path: Path, t5: str, data: FillerData) -> None:
    def begin(model: str = "early-fusion", weights: str | None = t5, features: tuple[Path, ...] = data.features) -> None:
        given = FillerData(train=data.train, val=data.val, features=features)
        train_filler(settings(model), given, weights, tmp_path / "run", observer=SilentObserver())

    with pytest.raises(UsageError, match=r"sees the video\. Give its features"):
        begin(features=())
    with pytest.raises(UsageError, match=r"sees no video\. Leave"):
        begin("text")
    with pytest.raises(UsageError, match="Name the T5 that training begins with"):
        begin(weights=None)
    with pytest.raises(UsageError, match='"bert" names no T5'):
        begin(weights="bert")
    with pytest.raises(BackendError, match="There is no folder"):
        begin(weights=f"t5:{tmp_path / 'none'}")
    with pytest.raises(UsageError, match="holds no training"):
        train_filler(None, data, None, tmp_path / "run", resume=True, observer=SilentObserver())


def test_a_damaged_folder_is_one_sentence(tmp_path: Path, t5: str, data: FillerData) -> None:
    from vip.baselines.fiber.answer import open_filler

    run = tmp_path / "run"
    train_filler(settings("text", "training.epochs=1"), FillerData(train=data.train, val=data.val), t5, run, observer=SilentObserver())
    for name, said in (
        ("filler.json", "holds no trained model of fiber"),
        ("weights.safetensors", "does not exist"),
        ("t5/config.json", "has no config.json"),
        ("t5/tokenizer.json", "holds no T5 that can be built"),
    ):
        damaged = tmp_path / name.replace("/", "-")
        shutil.copytree(run, damaged)
        (damaged / name).unlink()
        with pytest.raises(InputError, match=said):
            open_filler(damaged)
    changed = run / "filler.json"
    changed.write_text(changed.read_text().replace('"seed": 42', '"seed": 43').replace('"seed":42', '"seed":43'))
    with pytest.raises(InputError, match="was changed by hand"):
        open_filler(run)


def test_sizes_that_a_stranger_states_take_no_memory(tmp_path: Path, t5: str, data: FillerData) -> None:
    from vip.baselines.fiber.answer import open_filler

    run = tmp_path / "run"
    record = train_filler(settings("early-fusion", "training.epochs=1"), data, t5, run, observer=SilentObserver())
    config = json.loads((run / "t5/config.json").read_text())
    # of 128 GB, 8 GB and 400 GB
    for width, change in (
        (1_000_000, {"d_model": 32_000}),
        (WIDTH, {"d_model": 32_000}),
        (WIDTH, {"relative_attention_num_buckets": 10**11}),
    ):
        (run / "filler.json").write_text(record.model_copy(update={"width": width}).model_dump_json())
        (run / "t5/config.json").write_text(json.dumps({**config, **change}))
        with pytest.raises(InputError, match=r"weights\.safetensors holds weights of another model, such as .* Train the model again"):
            open_filler(run)


@pytest.mark.parametrize("model", ["early-fusion", "late-fusion"])
def test_features_of_another_width_fill_nothing_and_the_beams_that_are_asked_for_stand_in_the_name(
    model: str, tmp_path: Path, t5: str, data: FillerData
) -> None:
    from vip.baselines.fiber.answer import fill_blanks, open_filler

    train_filler(settings(model, "training.epochs=1"), data, t5, tmp_path / "run", observer=SilentObserver())
    filler = open_filler(tmp_path / "run", beams=3)
    assert filler.name.endswith(" beams:3")
    assert open_filler(tmp_path / "run").name.endswith(" beams:2")
    for width in (WIDTH - 1, WIDTH + 1):
        others = write_npy(tmp_path / str(width), data.val, width=width)
        with pytest.raises(InputError, match=f"have {width} numbers each, and the model was trained on {WIDTH}"):
            list(fill_blanks(filler, data.val, features=[others], device="cpu"))


def test_a_training_goes_on_with_features_of_its_width_alone(tmp_path: Path, t5: str, data: FillerData) -> None:
    train_filler(settings("early-fusion", "training.epochs=1"), data, t5, tmp_path / "run", observer=SilentObserver())
    wide = write_npy(tmp_path / "wide", [*data.train, *data.val], width=WIDTH + 1)
    others = FillerData(train=data.train, val=data.val, features=(wide,))
    with pytest.raises(UsageError, match=rf"was trained on features of {WIDTH} numbers\. Give the same features, or another folder"):
        train_filler(None, others, None, tmp_path / "run", epochs=2, resume=True, observer=SilentObserver())
    more = train_filler(None, data, None, tmp_path / "run", epochs=2, resume=True, observer=SilentObserver())
    assert (more.settings.training.epochs, more.is_finished, more.width) == (2, True, WIDTH)
    assert len((tmp_path / "run" / "epochs.jsonl").read_text().splitlines()) == 2
    assert TrainedFiller.model_validate_json((tmp_path / "run" / "filler.json").read_bytes()) == more
