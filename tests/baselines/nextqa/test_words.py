"""vip.baselines.nextqa.words"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch

from vip.baselines.nextqa.words import BertWords, EmbeddedWords, QuestionText, StoredTexts, StoredWords, load_bert
from vip.baselines.settings import WordSettings
from vip.baselines.vocabulary import SPECIAL, WordVocabulary
from vip.errors import InputError

VOCABULARY = WordVocabulary((*SPECIAL, "why", "did", "the", "dog", "bark", "it", "saw", "a", "cat"))
LETTERS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *VOCABULARY.words[4:]]


def word_settings(**changed: Any) -> WordSettings:
    given = {"size": 6, "length": 9, "part_length": 5, "least_count": 1, "layer": -2, **changed}
    return WordSettings.model_validate(given)


def embedded(**changed: Any) -> EmbeddedWords:
    vectors = torch.randn(len(VOCABULARY), 6, generator=torch.Generator().manual_seed(0))
    return EmbeddedWords(VOCABULARY, word_settings(**changed), vectors)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT of two layers with random weights, and its tokenizer."""
    from transformers import BertConfig, BertModel, BertTokenizerFast

    folder = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("".join(f"{letter}\n" for letter in LETTERS))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(LETTERS), hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, max_position_embeddings=16
    )
    BertModel(config).save_pretrained(folder)
    BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def test_a_pair_is_start_question_end_option_end() -> None:
    batch = embedded().prepare([QuestionText("Why did the dog?", "a cat"), QuestionText("bark", "unicorn")])
    assert batch.numbers is not None
    assert [VOCABULARY.words[number] for number in batch.numbers[1].tolist()] == ["<start>", "bark", "<end>", "<unk>", "<end>"] + 4 * [
        "<pad>"
    ]
    assert batch.lengths.tolist() == [9, 5]


def test_of_a_long_pair_the_end_of_the_question_is_left_out() -> None:
    batch = embedded().prepare([QuestionText("why did the dog bark why did", "it saw a cat")])
    assert batch.numbers is not None
    words = " ".join(VOCABULARY.words[number] for number in batch.numbers[0].tolist())
    assert words == "<start> why did <end> it saw a cat <end>"


def test_a_question_alone_has_a_start_and_no_end() -> None:
    batch = embedded(length=4).prepare([QuestionText("why did the dog bark"), QuestionText("bark")])
    assert batch.numbers is not None
    assert batch.numbers.tolist() == [[1, 4, 5, 6], [1, 8, 0, 0]]


def test_a_pair_says_where_its_option_begins(bert: Path) -> None:
    """With its start and end marks: <start> why did <end> and [CLS] why did [SEP]."""
    texts = [QuestionText("why did", "a cat"), QuestionText("bark", "it")]
    for words in (embedded(), BertWords(bert, word_settings(length=12)).eval()):
        question, option = words(words.prepare(texts)).apart()
        assert question.lengths.tolist() == [4, 3]
        assert option.lengths.tolist() == [3, 2]
    assert embedded().prepare([QuestionText("why did")]).question_lengths is None


def test_vectors_are_copied_and_trained() -> None:
    vectors = torch.ones(len(VOCABULARY), 6)
    words = EmbeddedWords(VOCABULARY, word_settings(), vectors)
    with torch.no_grad():
        words.embedding.weight.zero_()
    assert vectors.all()
    assert words.embedding.weight.requires_grad


def test_words_of_bert_are_those_of_its_last_layer_but_one(bert: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    words = BertWords(bert, word_settings(length=12)).eval()
    found = words(words.prepare([QuestionText("why did the dog bark", "it saw a cat"), QuestionText("bark", "cat")]))
    tokens = AutoTokenizer.from_pretrained(bert)("bark", "cat", return_tensors="pt")
    layers = AutoModel.from_pretrained(bert)(**tokens, output_hidden_states=True).hidden_states
    assert found.lengths.tolist() == [12, 5]
    torch.testing.assert_close(found.vectors[1, :5], words.project(layers[1])[0], atol=1e-5, rtol=0)


def test_bert_learns_only_where_it_is_asked_to(bert: Path) -> None:
    for fine_tune in (False, True):
        words = BertWords(bert, word_settings(fine_tune=fine_tune, layer=-1)).train()
        words(words.prepare([QuestionText("why", "a cat")])).vectors.sum().backward()
        has_gradient = {name for name, one in words.named_parameters() if one.grad is not None}
        assert any(name.startswith("bert.") for name in has_gradient) is fine_tune
        assert "project.weight" in has_gradient
        assert bool(words.frozen_names()) is not fine_tune


def test_a_bert_that_is_not_trained_drops_nothing_and_one_that_is_does(bert: Path) -> None:
    for fine_tune in (False, True):
        words = BertWords(bert, word_settings(fine_tune=fine_tune)).train()
        batch = words.prepare([QuestionText("why did the dog bark", "a cat")])
        first, second = words(batch).vectors, words(batch).vectors
        assert torch.equal(first, second) is not fine_tune


def test_a_bert_that_does_not_fit_is_refused(bert: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has 2 layers, and no layer 5"):
        BertWords(bert, word_settings(layer=5))
    with pytest.raises(InputError, match="takes 16 pieces, not 37"):
        BertWords(bert, word_settings(length=37))
    with pytest.raises(InputError, match=r"no config\.json"):
        BertWords(tmp_path, word_settings())
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match="holds no BERT that can be loaded"):
        BertWords(tmp_path, word_settings())


@pytest.mark.parametrize("change", [{"hidden_size": 1_000_000}, {"num_hidden_layers": 10**9}, {"vocab_size": 3_000_000}])
def test_a_bert_that_states_far_more_weights_than_it_has_is_not_built(change: dict[str, int], bert: Path, tmp_path: Path) -> None:
    shutil.copytree(bert, tmp_path / "bert")
    config = tmp_path / "bert" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), **change}))
    with pytest.raises(InputError, match=r"holds no BERT that can be loaded \([0-9,]+ (weights, and [0-9,]+ bytes of them|layers)\)"):
        load_bert(tmp_path / "bert")


def stored(path: Path) -> StoredTexts:
    feats = np.random.default_rng(0).normal(size=(2, 5, 7, 4)).astype(np.float32)
    feats[1, 3, 2:] = 0
    feats[1, 4] = 0
    with h5py.File(path, "w") as file:
        file["feat"] = feats
    return StoredTexts(path)


def test_a_text_without_a_vector_has_one_row_of_zeros(tmp_path: Path) -> None:
    found = stored(tmp_path / "f.h5").read(QuestionText("", "", row=1, number=4))
    assert (found.shape, found.any()) == ((1, 4), False)


def test_vectors_in_another_file_are_not_read(tmp_path: Path) -> None:
    stored(tmp_path / "f.h5")
    with h5py.File(tmp_path / "link.h5", "w") as file:
        file["feat"] = h5py.ExternalLink(str(tmp_path / "f.h5"), "feat")
    with pytest.raises(InputError, match="leads to another place or file"):
        StoredTexts(tmp_path / "link.h5")


def test_stored_vectors_are_found_by_row_and_option_and_end_at_zeros(tmp_path: Path) -> None:
    words = StoredWords(4, word_settings(length=6))
    words.files = [stored(tmp_path / "t.h5")]
    batch = words.prepare([QuestionText("", "", row=1, number=3), QuestionText("", "", row=0, number=0)])
    assert batch.lengths.tolist() == [2, 6]
    assert batch.vectors is not None
    np.testing.assert_array_equal(batch.vectors[0, :2], words.files[0].read(QuestionText("", "", row=1, number=3)))
    assert not batch.vectors[0, 2:].any()
    assert words(batch).vectors.shape == (2, 6, 6)


def test_stored_vectors_are_those_of_the_file_of_their_text(tmp_path: Path) -> None:
    words = StoredWords(4, word_settings(length=6))
    for name, value in (("train", 1.0), ("val", 2.0)):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["feat"] = np.full((2, 5, 3, 4), value, np.float32)
    words.files = [StoredTexts(tmp_path / f"{name}.h5") for name in ("train", "val")]
    batch = words.prepare([QuestionText("", "", file=number) for number in (1, 0, 1)])
    assert batch.vectors is not None
    assert batch.vectors[:, 0, 0].tolist() == [2.0, 1.0, 2.0]


def test_stored_vectors_of_other_questions_are_refused(tmp_path: Path) -> None:
    file = stored(tmp_path / "t.h5")
    file.check(2, 5)
    with pytest.raises(InputError, match="is of 2 questions with 5 options, and there are 3 with 5"):
        file.check(3, 5)
    with h5py.File(tmp_path / "n.h5", "w") as other:
        other["feat"] = np.zeros((2, 5))
    with pytest.raises(InputError, match="no feat of shape"):
        StoredTexts(tmp_path / "n.h5")


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_stored_vectors_that_are_not_finite_are_named_by_their_row_and_files_of_another_form_refused(number: float, tmp_path: Path) -> None:
    feats = np.ones((3, 2, 4, 5), np.float32)
    feats[2, 1, 3, 0] = number
    with h5py.File(tmp_path / "f.h5", "w") as file:
        file["feat"] = feats
    texts = StoredTexts(tmp_path / "f.h5")
    texts.check(3, 2)
    for questions, options in ((2, 2), (3, 3)):
        with pytest.raises(InputError, match=rf"is of 3 questions with 2 options, and there are {questions} with {options}"):
            texts.check(questions, options)
    assert texts.read(QuestionText("", "", row=2, number=0)).shape == (4, 5)
    with pytest.raises(InputError, match="the vectors of row 2 hold numbers that are not finite"):
        texts.read(QuestionText("", "", row=2, number=1))
    for name, other in (("flat", feats[0]), ("whole", np.zeros((3, 2, 4, 5), np.int64)), ("empty", feats[:, :, :0])):
        with h5py.File(tmp_path / f"{name}.h5", "w") as file:
            file["feat"] = other
        with pytest.raises(InputError, match=r"has no feat of shape \(questions, options, pieces, numbers\)"):
            StoredTexts(tmp_path / f"{name}.h5")


def test_stored_vectors_wider_than_any_and_batches_that_no_memory_should_hold_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with h5py.File(tmp_path / "wide.h5", "w") as file:
        file.create_dataset("feat", (2, 2, 2, 1_000_001), "f4", chunks=(1, 1, 1, 9))
    with pytest.raises(InputError, match=r"wide\.h5 has 1,000,001 numbers a piece\. Give vectors of at most 1,000,000"):
        StoredTexts(tmp_path / "wide.h5")
    words = StoredWords(4, word_settings(length=3))
    words.files = [stored(tmp_path / "t.h5")]
    monkeypatch.setattr("vip.baselines.nextqa.words.MOST_BYTES", 2 * 3 * 4 * 4)
    texts = [QuestionText("", "", row=0, number=number) for number in range(3)]
    found = words.prepare(texts[:2]).vectors
    assert found is not None
    assert found.shape == (2, 3, 4)
    with pytest.raises(InputError, match="A batch of 3 with 12 numbers each"):
        words.prepare(texts)
