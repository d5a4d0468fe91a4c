"""RoBERTa's tokenizer from a folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.baselines.value.made_value import write_tokenizer
from vip.baselines.value.tokenizer import TextEncoder
from vip.errors import InputError, StoreError

pytest.importorskip("transformers")


def test_a_text_comes_back_and_capitals_alone_are_lowered(tmp_path: Path) -> None:
    encoder = TextEncoder(write_tokenizer(tmp_path / "tok"), 272)
    assert encoder.decode(encoder.encode("He sees a cat!")) == "He sees a cat!"
    assert encoder.encode("STOP") == encoder.encode("stop") != encoder.encode("Stop")
    assert encoder.encode("") == ()
    assert not {0, 1, 2} & set(encoder.encode("hello there"))
    assert encoder.decode([0, *encoder.encode("hi"), 2, 1, 1]) == "hi"


def test_a_copy_reads_the_same(tmp_path: Path) -> None:
    encoder = TextEncoder(write_tokenizer(tmp_path / "tok"), 272)
    encoder.copy_to(tmp_path / "run")
    assert TextEncoder(tmp_path / "run", 272).encode("a red pan") == encoder.encode("a red pan")


def test_no_copy_is_written_behind_a_link(tmp_path: Path) -> None:
    encoder = TextEncoder(write_tokenizer(tmp_path / "tok"), 272)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "run").symlink_to("elsewhere")
    with pytest.raises(StoreError, match="run cannot be written: it is a link"):
        encoder.copy_to(tmp_path / "run")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_each_fault_of_the_folder_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no vocab\.json\. Give the folder of RoBERTa's tokenizer"):
        TextEncoder(tmp_path, 272)
    folder = write_tokenizer(tmp_path / "tok")
    with pytest.raises(InputError, match=r"has 261 words, and the model 200\. Set model\.vocabulary=261"):
        TextEncoder(folder, 200)
    vocabulary = json.loads((folder / "vocab.json").read_text())
    swapped = vocabulary | {"<s>": 1, "<pad>": 0}
    (folder / "vocab.json").write_text(json.dumps(swapped))
    with pytest.raises(InputError, match=r"<s> is not number 0, as in RoBERTa's vocabulary"):
        TextEncoder(folder, 272)
    (folder / "vocab.json").write_text("no JSON")
    with pytest.raises(InputError, match="holds no tokenizer that can be read"):
        TextEncoder(folder, 272)


def test_a_pipe_in_the_folder_holds_nothing_up(tmp_path: Path) -> None:
    folder = write_tokenizer(tmp_path / "tok")
    os.mkfifo(folder / "tokenizer_config.json")
    with pytest.raises(InputError, match=r"holds no tokenizer that can be read .*tokenizer_config\.json: it is no regular file"):
        TextEncoder(folder, 272)


def test_a_vocabulary_of_just_the_words_of_the_tokenizer_is_large_enough_and_special_words_are_none_to_draw(tmp_path: Path) -> None:
    encoder = TextEncoder(write_tokenizer(tmp_path / "tok"), 261)
    assert (encoder.mask, encoder.words) == (260, range(4, 260))
    with pytest.raises(InputError, match=r"has 261 words, and the model 260"):
        TextEncoder(tmp_path / "tok", 260)


def test_a_tokenizer_that_is_gone_cannot_be_copied(tmp_path: Path) -> None:
    encoder = TextEncoder(write_tokenizer(tmp_path / "tok"), 272)
    (tmp_path / "tok" / "merges.txt").unlink()
    with pytest.raises(StoreError, match=r"merges\.txt cannot be read \(No such file or directory\)\. Copy it again"):
        encoder.copy_to(tmp_path / "run")
