"""vip.baselines.nextqa.assemble and answer: what is put together of settings, and what of a stranger's fits none"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from vip import store
from vip.baselines.nextqa.answer import open_trained
from vip.baselines.nextqa.assemble import load_settings, make_learner, make_words, settings_with
from vip.baselines.nextqa.interface import InputSizes
from vip.baselines.nextqa.multi_choice import MultiChoiceLearner
from vip.baselines.run_folder import MODEL, SizesRecord, TrainedModel, count_epochs, find_vocabulary
from vip.baselines.settings import BaselineSettings, parse_assignments
from vip.baselines.vocabulary import SPECIAL, WordVocabulary, write_vocabulary
from vip.errors import InputError, UsageError

WORDS = WordVocabulary((*SPECIAL, "dog", "cat"))
SIZES = InputSizes(appearance=2, motion=2, clips=3, words=8, length=9)


def settings(task: str = "nextqa-mc", model: str = "evqa", *more: str) -> BaselineSettings:
    return load_settings(task, model, assignments=parse_assignments(["words.size=8", "model.hidden=8", *more]))


def keep(folder: Path, of: BaselineSettings, **more: Any) -> TrainedModel:
    sizes = SizesRecord(appearance=2, motion=2, clips=3, words=8, length=9, maps=0)
    record = TrainedModel(settings=of, settings_sha256=of.sha256, sizes=sizes, train_items=1, val_items=1, data_sha256="x", **more)
    store.write_json(folder / MODEL, record)
    return record


@pytest.mark.parametrize("change", [{"model": "hgb"}, {"task": "fiber"}])
def test_a_model_of_another_version_is_refused_and_a_known_one_opened(change: dict[str, str], tmp_path: Path) -> None:
    record = keep(tmp_path, settings())
    assert open_trained(tmp_path) == record
    assert record.sizes.to_input_sizes() == SIZES
    assert record.name == f"model:evqa settings:{settings().sha256[:12]} seed:666"
    keep(tmp_path, settings().model_copy(update=change))
    with pytest.raises(InputError, match=r"holds a model '\w+' that this version of vip does not know\. Train it again"):
        open_trained(tmp_path)


def test_an_open_ended_model_is_named_with_its_decoder(tmp_path: Path) -> None:
    assert keep(tmp_path, settings("nextqa-oe")).name.startswith("model:evqa+att-qns settings:")


@pytest.mark.parametrize("change", [{"options": {"hidden": -1}}, {"options": {"sideways": 1}}, {"model": "hgb"}, {"task": "fiber"}])
def test_settings_of_a_stranger_that_fit_no_model_are_one_sentence(change: dict[str, Any]) -> None:
    of = settings()
    words = make_words(of.words, WORDS, None, bert=Path("none"), stored_width=0)
    assert isinstance(make_learner(of, SIZES, words, WORDS, None), MultiChoiceLearner)
    with pytest.raises(InputError, match=r"The settings fit no model \w+ of this version of vip \("):
        make_learner(of.model_copy(update=change), SIZES, words, WORDS, None)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"hidden": -1}, "hidden: Input should be greater than or equal to 1"),
        ({"x" * 999: 1}, f"{'x' * 40}…: Extra inputs are not permitted"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line_without_an_address(options: dict[str, Any], said: str) -> None:
    of = settings()
    words = make_words(of.words, WORDS, None, bert=Path("none"), stored_width=0)
    with pytest.raises(InputError) as caught:
        make_learner(of.model_copy(update={"options": {**of.options, **options}}), SIZES, words, WORDS, None)
    assert str(caught.value) == f"The settings fit no model {of.model} of this version of vip ({said}). Train it again."


def test_an_unknown_decoder_of_a_stranger_fits_no_model() -> None:
    of = settings("nextqa-oe")
    words = make_words(of.words, WORDS, None, bert=Path("none"), stored_width=0)
    assert make_learner(of, SIZES, words, WORDS, None)
    for change in ({"decoder": "att-all"}, {"decoder_options": {"sideways": 1}}):
        with pytest.raises(InputError, match="The settings fit no model evqa"):
            make_learner(of.model_copy(update=change), SIZES, words, WORDS, None)


def test_words_begin_with_the_vectors_that_are_given_or_with_zeros() -> None:
    vectors = torch.arange(48.0).reshape(6, 8)
    for given, expected in ((vectors, vectors), (None, torch.zeros(6, 8))):
        words: Any = make_words(settings().words, WORDS, given, bert=Path("none"), stored_width=0)
        assert any(torch.equal(value, expected) for value in words.state_dict().values())


def test_a_table_is_no_single_value_and_other_values_of_a_training_leave_the_rest() -> None:
    with pytest.raises(UsageError, match=r"model is a table of settings\. Write --set model\.NAME=VALUE"):
        load_settings("nextqa-mc", "evqa", assignments={"model": 3})
    changed = settings_with(settings(), epochs=7)
    assert (changed.training.epochs, changed.training.batch, changed.options) == (7, settings().training.batch, settings().options)


def test_a_vocabulary_is_missed_where_words_or_answers_are_its_own(tmp_path: Path) -> None:
    stored = settings("nextqa-mc", "evqa", "words.kind=features")
    assert find_vocabulary(tmp_path, stored) is None
    for needs in (settings(), settings("nextqa-oe", "evqa", "words.kind=features")):
        with pytest.raises(InputError, match=r"vocabulary\.txt is missing\. Train the model again"):
            find_vocabulary(tmp_path, needs)
    (tmp_path / "vocabulary.txt").write_bytes(write_vocabulary(WORDS))
    assert find_vocabulary(tmp_path, stored) == find_vocabulary(tmp_path, settings()) == WORDS
    assert count_epochs(tmp_path) == 0
