"""vip.baselines.vocabulary"""

from __future__ import annotations

import gzip
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.baselines import vocabulary
from vip.baselines.vocabulary import (
    PAD,
    SPECIAL,
    UNKNOWN,
    WordVocabulary,
    build_vocabulary,
    draw_vectors,
    read_glove,
    read_vocabulary,
    tokenize,
    write_vocabulary,
)
from vip.errors import InputError

WORDS = WordVocabulary((*SPECIAL, "dog", "barks"))
GLOVE = ". 9 9 9\ndog 1 2 3\nat name@domain.com 4 5 6\ndog 7 7 7\ncat 0 0 1\n"


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Why didn't the man's dog bark?", "why did n't the man 's dog bark ?"),
        ("they're at 3.5 s", "they 're at 3.5 s"),
        ("mother-in-law, o'clock", "mother-in-law , o'clock"),
        ("can't 'quoted'", "ca n't ' quoted '"),
        ("  ", ""),
    ],
)
def test_tokens_are_those_of_the_penn_treebank(text: str, tokens: str) -> None:
    assert tokenize(text) == tokens.split()


@given(st.text(max_size=60))
def test_tokens_keep_every_letter(text: str) -> None:
    assert "".join(tokenize(text)) == "".join(text.lower().split())


def test_frequent_words_come_first_and_of_equals_the_one_seen_first() -> None:
    vocabulary = build_vocabulary(["the dog", "the cat barks", "the cat barks", "a dog"], least_count=2)
    assert vocabulary.words == (*SPECIAL, "the", "dog", "cat", "barks")
    assert vocabulary.encode(["cat", "a"]) == [6, UNKNOWN]


def test_special_words_are_left_out_of_a_text() -> None:
    assert WORDS.decode([1, 4, 3, 0, 5, 2, 0]) == "dog barks"


def test_a_vocabulary_is_read_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "v.txt").write_bytes(write_vocabulary(WORDS))
    assert read_vocabulary(tmp_path / "v.txt") == WORDS


@pytest.mark.parametrize("content", [b"", b"dog\n", b"<pad>\n<start>\n<end>\n<unk>\ndog\ndog\n", b"\xff\n"])
def test_a_damaged_vocabulary_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.txt").write_bytes(content)
    with pytest.raises(InputError, match="is no vocabulary"):
        read_vocabulary(tmp_path / "v.txt")


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".zip"])
def test_words_begin_with_glove_and_the_others_with_random_vectors(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"glove{suffix}"
    if suffix == ".zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("glove.txt", GLOVE)
    else:
        path.write_bytes(gzip.compress(GLOVE.encode()) if suffix == ".gz" else GLOVE.encode())
    vectors, known = read_glove(path, WORDS, 3, seed=5)
    assert known == 1
    np.testing.assert_array_equal(vectors[4], [1, 2, 3])
    assert not vectors[PAD].any()
    assert vectors[5].any()
    np.testing.assert_array_equal(vectors, read_glove(path, WORDS, 3, seed=5)[0])
    assert (vectors[5] != read_glove(path, WORDS, 3, seed=6)[0][5]).all()


def test_random_vectors_are_those_of_their_seed_and_padding_is_zero() -> None:
    first, again, other = (draw_vectors(WORDS, 200, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first[PAD + 1 :] != other[PAD + 1 :]).all()
    assert not first[PAD].any()
    assert first[PAD + 1 :].std() == pytest.approx(0.4, rel=0.1)


def test_vectors_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    for content, message in [
        ("dog 1 2\n", "2 numbers a word, expected 3"),
        ("dog 1 2 x\n", "cannot be read"),
        ("dog 1 2 nan\n", "not finite"),
        ("hund 1 2 3\n", "none of the 6 words"),
    ]:
        path.write_text(content)
        with pytest.raises(InputError, match=message):
            read_glove(path, WORDS, 3, seed=0)
    (tmp_path / "cut.gz").write_bytes(gzip.compress(GLOVE.encode() * 99)[:40])
    (tmp_path / "no.zip").write_bytes(b"no archive")
    (tmp_path / "endless.gz").write_bytes(gzip.compress(b"x" * 2_000_000))
    for name in ("missing.txt", "cut.gz", "no.zip", "endless.gz"):
        with pytest.raises(InputError, match="cannot be read as word vectors"):
            read_glove(tmp_path / name, WORDS, 3, seed=0)


@pytest.mark.parametrize("place", ["fifo", "link", "device"])
def test_no_pipe_link_or_device_stands_for_a_vocabulary(place: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.txt").write_bytes(write_vocabulary(WORDS))
    path = tmp_path / "run" / "v.txt"
    path.parent.mkdir()
    if place == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero" if place == "device" else tmp_path / "elsewhere.txt")
    with pytest.raises(InputError, match=r"is no vocabulary \(it is (no regular file|a link)"):
        read_vocabulary(path)


@pytest.mark.parametrize("suffix", [".txt", ".gz", ".zip"])
def test_word_vectors_are_read_through_a_link_and_no_pipe_or_device_stands_for_them(suffix: str, tmp_path: Path) -> None:
    for name, target in (("device", "/dev/zero"), ("pipe", tmp_path / "fifo"), ("folder", tmp_path)):
        (tmp_path / f"{name}{suffix}").symlink_to(target)
    os.mkfifo(tmp_path / "fifo")
    for name, problem in (("device", "it is no regular file"), ("pipe", "it is no regular file"), ("folder", "Is a directory")):
        with pytest.raises(InputError, match=rf"{name}\{suffix} cannot be read as word vectors \({problem}\)\. Give glove"):
            read_glove(tmp_path / f"{name}{suffix}", WORDS, 3, seed=0)
    (tmp_path / "glove.840B.txt").write_text(GLOVE)
    (tmp_path / "link.txt").symlink_to("glove.840B.txt")
    assert read_glove(tmp_path / "link.txt", WORDS, 3, seed=0)[1] == 1


def test_an_archive_of_two_files_and_a_vocabulary_of_too_many_words_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with zipfile.ZipFile(tmp_path / "two.zip", "w") as archive:
        archive.writestr("a.txt", GLOVE)
        archive.writestr("b.txt", GLOVE)
    with pytest.raises(InputError, match=r"two\.zip cannot be read as word vectors \(2 files in it, expected one\)"):
        read_glove(tmp_path / "two.zip", WORDS, 3, seed=0)
    (tmp_path / "v.txt").write_bytes(write_vocabulary(WORDS))
    for most in (len(WORDS), len(WORDS) - 1):
        monkeypatch.setattr(vocabulary, "MOST_WORDS", most)
        if most == len(WORDS):
            assert read_vocabulary(tmp_path / "v.txt") == WORDS
            continue
        with pytest.raises(InputError, match=r"is no vocabulary \(too many words\)"):
            read_vocabulary(tmp_path / "v.txt")


def test_of_a_word_that_is_there_twice_the_first_vector_counts_and_others_are_not_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "glove.txt"
    path.write_text("dog 1 2 3\nhund x y\ndog nan\n<pad> 5 5 5\nbarks 4 5 6")  # the last line has no end
    vectors, known = read_glove(path, WORDS, 3, seed=5)
    assert known == 3
    np.testing.assert_array_equal(vectors[4:], [[1, 2, 3], [4, 5, 6]])


@pytest.mark.parametrize("letters", [98, 99, 100])
def test_a_line_of_the_bound_is_too_long(letters: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "MOST_LINE_LETTERS", 100)
    path = tmp_path / "glove.txt"
    path.write_text(f"dog 1 2 {'3'.rjust(letters - 8)}\nbarks 1 2 3\n")
    if letters < 99:
        assert read_glove(path, WORDS, 3, seed=0)[1] == 2
        return
    with pytest.raises(InputError, match="line 1 has 100 letters or more"):
        read_glove(path, WORDS, 3, seed=0)


@pytest.mark.parametrize("suffix", [".gz", ".zip"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n" * 1001, "more than 1,000 lines have no vector"),
        ("x y\n" * 1001, "more than 1,000 lines have no vector"),
        ("hund 1 2 3\n" * 100_000, "it unpacks to more than 50 times its size"),
    ],
)
def test_lines_without_end_that_a_small_file_unpacks_to_are_refused(
    text: str, said: str, suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vocabulary, "MOST_SHORT_LINES", 1000)
    monkeypatch.setattr(vocabulary, "SPARE_LETTERS", 10_000)

    def packed(content: str) -> Path:
        path = tmp_path / f"glove{suffix}"
        if suffix == ".gz":
            path.write_bytes(gzip.compress(content.encode()))
        else:
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr("glove.txt", content)
        return path

    assert read_glove(packed(f"1 3\n{GLOVE}"), WORDS, 3, seed=0)[1] == 1, "the first line of fastText has no vector"
    with pytest.raises(InputError, match=rf"glove\{suffix} cannot be read as word vectors \({said}\)\. Give glove"):
        read_glove(packed(text), WORDS, 3, seed=0)
