"""Tokens are those of Stanford's PTBTokenizer 3.4.1: its answers to these texts, and to 30,000 captions."""

from __future__ import annotations

import gzip
import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.metrics.golden import golden
from vip.metrics.penn_treebank import tokenize_captions


def tokenize(text: str) -> str:
    (tokens,) = tokenize_captions([text])
    return " ".join(tokens)


@pytest.mark.slow
def test_the_published_tokens_of_30000_captions_come_out() -> None:
    with gzip.open(golden("vatex/en_c_val.jsonl.gz"), "rt", encoding="utf-8") as file:
        captions = [row["desc"] for line in file for row in json.loads(line)["descs"]]
    with gzip.open(golden("vatex/tokens_ptb.jsonl.gz"), "rt", encoding="utf-8") as file:
        expected = [tokens for line in file for tokens in json.loads(line)["tokens"]]
    assert [" ".join(tokens) for tokens in tokenize_captions(captions)] == expected
    assert len(expected) == 30_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The man's dog can't run.", "the man 's dog ca n't run"),
        ("He cannot; she's gonna!", "he can not she 's gon na"),
        ("gotta lemme gimme wanna 'tis 'twas y'all", "got ta lem me gim me wan na 't is 't was y' all"),
        ("dosen't don't-know isn'ts", "dose n't do n't know is n'ts"),
        ("I'll they've you're I'm he'd", "i 'll they 've you 're i 'm he 'd"),
        ("rock'n'roll o'clock ma'am O'Brien d'oh c'mon s'mores Hawai'i", "rock 'n' roll o'clock ma'am o'brien d'oh c'mon s'mores hawai'i"),
        ("'em 'til '90s 1920's m'lady int'l", "'em 'til '90s 1920 's m lady int l"),
        ("He said \"hello\" and 'bye' (twice) [or {so}].", "he said hello and bye -lrb- twice -rrb- -lsb- or -lcb- so -rcb- -rsb-"),
        ("on main st. he stops at 5 p.m. in the U.S. today", "on main st. he stops at 5 p.m. in the u.s. today"),
        ("Mass. and mass. MFG. and mfg.", "mass. and mass mfg and mfg."),
        ("no. 5 and no. five, fig. 2", "no. 5 and no five fig. 2"),
        ("area.between foo.mp4 www.abc.com yes!no", "area.between foo.mp4 www.abc.com yes!no"),
        ("it runs.. fast... or... not .... end", "it runs fast or not end"),
        ("a t-shirt 1.5-inch U.S.-based -pop end- three--two", "a t-shirt 1.5-inch u.s.-based pop end three two"),
        ("his/her and/or a/b/c/d radio./ /her", "his/her and/or a/b/c / d radio / / her"),
        ("Q&A R&B q&a M&M's C++ c#", "q&a r&b q & a m&m 's c++ c#"),
        ("3,000 12:05. 5,6 hi,5 +5 -5 5-6 5.5-6.5", "3,000 12:05 5,6 hi ,5 +5 -5 5-6 5.5-6 .5"),
        ("$100 US$5 5% #1 #tag @me a_b a=b 5*5", "$ 100 us$ 5 5 % # 1 #tag @me a_b a = b 5 * 5"),
        ("call (555) 123-4567 for 3 1/2 cups", "call -lrb-555-rrb- 123-4567 for 3 1/2 cups"),
        ("wow!! hi!? yes ?", "wow !! hi !? yes"),
        (":) :-( ;D =) ^_^", ":-rrb- :--lrb- ;d =-rrb- ^_^"),
        ("<br> a<b &amp; &lt; <b>x</b>", "<br> a < b & < <b> x </b>"),
        ("caf\u00e9 na\u00efve \u201chi\u201d", "caf na ve hi"),
        ("as., so; as.x", "as. so as.x"),
        ("", ""),
        (" . , -- ' ", ""),
    ],
)
def test_the_answers_of_the_program_come_out(text: str, expected: str) -> None:
    assert tokenize(text) == expected


def test_a_letter_keeps_its_full_stop_unless_a_sentence_begins_behind_it() -> None:
    assert tokenize("plan f. he runs") == "plan f. he runs"
    assert tokenize("plan f. Next he runs") == "plan f. next he runs"
    assert tokenize("plan f. He runs") == "plan f he runs"
    assert list(tokenize_captions(["plan b.", "A man runs"])) == [("plan", "b"), ("a", "man", "runs")]
    assert list(tokenize_captions(["plan b.", "a man runs", "plan c."])) == [("plan", "b."), ("a", "man", "runs"), ("plan", "c.")]


@given(st.lists(st.text(st.characters(max_codepoint=300), max_size=40), max_size=5))
def test_each_caption_has_tokens_without_space_capitals_and_lone_punctuation(captions: list[str]) -> None:
    rows = list(tokenize_captions(captions))
    assert len(rows) == len(captions)
    assert not {".", ",", "?", "!", "'", "-", ":", ";"} & {token for row in rows for token in row}
    assert all(token and token == token.lower() and not set(token) & set(" \t\n\xa0") for row in rows for token in row)


@given(st.lists(st.sampled_from(["a", "dog", "runs", "st.", "the", "man's", "5", "x.", "can't"]), max_size=12))
def test_a_caption_has_the_same_tokens_before_and_after_others_were_read(words: list[str]) -> None:
    text = " ".join(words)
    first = tokenize(text)
    list(tokenize_captions(["the man's st. can't", text]))
    assert tokenize(text) == first


@pytest.mark.parametrize("part", ["a.b-", "a+", "a-", "a.", "0.", "<!", "http://", "a@", "a'", "a_"])
def test_a_caption_without_spaces_takes_no_longer_than_its_letters(part: str) -> None:
    start = time.process_time()
    assert sum(map(len, next(tokenize_captions([part * 50_000])))) <= 100_000 * len(part)
    assert time.process_time() - start < 8
