"""vip.baselines.fiber.answer and run_folder: a T5 as it is, and the names of models"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("transformers")
pytest.importorskip("lightning")

from tests.baselines.fiber.made import make_items, write_t5
from vip import store
from vip.baselines.fiber.answer import fill_blanks, open_filler, open_zero_shot
from vip.baselines.fiber.data import BlankItem
from vip.baselines.fiber.run_folder import FILLER, TrainedFiller, is_filler, read_filler
from vip.baselines.fiber.settings import load_settings
from vip.baselines.fiber.t5 import load_t5, make_t5, read_t5, save_t5
from vip.baselines.settings import parse_assignments
from vip.errors import InputError, UsageError


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"t5:{write_t5(tmp_path_factory.mktemp('t5'))}"


@pytest.mark.slow
@pytest.mark.parametrize(("asked", "beams"), [(None, 8), (3, 3)])
def test_a_t5_as_it_is_has_eight_beams_or_those_that_are_asked_for(asked: int | None, beams: int, t5: str) -> None:
    loaded = open_zero_shot(t5, beams=asked)
    assert (loaded.name, loaded.width, loaded.is_finished) == (f"{t5} zero-shot beams:{beams}", 0, True)
    assert (loaded.learner.settings.model, loaded.learner.settings.decoding.beams) == ("text", beams)


@pytest.mark.slow
def test_blanks_are_filled_in_their_order_whatever_the_batches_and_a_model_of_text_takes_no_video(t5: str, tmp_path: Path) -> None:
    loaded = open_zero_shot(t5, beams=2)
    items = [replace(item, masked=f"_____ {word} .") for item, word in zip(make_items(5), ("runs", "is", "in", "of", "here"), strict=True)]
    whole = list(fill_blanks(loaded, items, device="cpu"))
    small = load_settings("text", assignments=parse_assignments(["training.batch=2", "decoding.beams=2"]))
    loaded.learner.settings = small
    parts = list(fill_blanks(loaded, items, device="cpu"))
    assert [one.phrase for one in parts] == [one.phrase for one in whole]
    likely = [one.label_log_probabilities for one in whole]
    for one, expected in zip(parts, likely, strict=True):
        assert one.label_log_probabilities == pytest.approx(expected, abs=1e-4)
    assert len(set(likely)) > 1
    with pytest.raises(UsageError, match=r"The model text sees no video\. Leave --features out"):
        list(fill_blanks(loaded, items, features=[tmp_path], device="cpu"))
    with pytest.raises(InputError, match="There are no captions with a blank"):
        list(fill_blanks(loaded, list[BlankItem](), device="cpu"))


def kept(folder: Path, **more: Any) -> TrainedFiller:
    settings = load_settings("late-fusion")
    values: dict[str, Any] = {"settings": settings, "settings_sha256": settings.sha256, "width": 8, "weights": "t5:x"}
    record = TrainedFiller(**values | {"train_items": 1, "val_items": 1, "data_sha256": "x"} | more)
    store.write_json(folder / FILLER, record)
    return record


def test_a_folder_of_fiber_is_told_by_its_record_and_a_model_is_named_by_its_settings(tmp_path: Path) -> None:
    assert not is_filler(tmp_path)
    with pytest.raises(InputError, match="holds no trained model of fiber"):
        read_filler(tmp_path)
    record = kept(tmp_path)
    assert is_filler(tmp_path)
    assert read_filler(tmp_path) == record
    assert record.name == f"model:late-fusion settings:{record.settings.sha256[:12]} seed:42"
    assert not record.is_finished
    kept(tmp_path, settings_sha256="0" * 64)
    with pytest.raises(InputError, match="was changed by hand"):
        open_filler(tmp_path)


@pytest.mark.slow
def test_a_t5_takes_the_place_of_an_earlier_one_and_of_what_a_killed_run_left(t5: str, tmp_path: Path) -> None:
    saved = load_t5(t5)
    for leftover in ("t5", f"t5{store.PARTIAL_SUFFIX}"):
        (tmp_path / leftover).mkdir()
        (tmp_path / leftover / "added.json").write_text("{}")
    save_t5(*saved, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t5"]
    assert not (tmp_path / "t5" / "added.json").exists()
    config, tokenizer = read_t5(tmp_path)
    assert make_t5(config, tmp_path).config.d_model == saved[0].config.d_model
    assert tokenizer.get_vocab() == saved[1].get_vocab()
