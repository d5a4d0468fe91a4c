"""The vocabulary of YouTube-8M: names, verticals, and a text for the captioner."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.corpus.lists import CONCERT, vocabulary, vocabulary_file
from vip.corpus.inputs.vocabulary import TOPIC_LETTERS, Topic, Vocabulary, load_vocabulary
from vip.errors import InputError


def test_numbers_get_names_and_verticals_in_their_order(tmp_path: Path) -> None:
    words = vocabulary(tmp_path)
    assert words.names(["252", "7", "12345"]) == ("Snow", "Car", "12345")
    assert words.verticals(["252", "7", "12345"]) == ("News", "Science", "Autos & Vehicles")
    assert words.verticals(["Car", "Snow"]) == ("Autos & Vehicles", "News", "Science")


def test_a_label_without_a_name_keeps_its_number(tmp_path: Path) -> None:
    assert vocabulary(tmp_path).names(["9"]) == ("9",)


@pytest.mark.parametrize("order", [1, -1])
def test_a_number_is_a_number_also_where_another_label_is_called_so(order: int) -> None:
    topics = [Topic(7, "Car", ("Autos & Vehicles",), ""), Topic(252, "7", ("Science",), "")]
    words = Vocabulary(topics[::order])
    assert words.names(["7", "252", "Car"]) == ("Car", "7", "Car")
    assert words.verticals(["7"]) == ("Autos & Vehicles",)


def test_the_topic_has_the_descriptions_in_the_order_of_the_labels(tmp_path: Path) -> None:
    words = vocabulary(tmp_path)
    assert words.topic_of(["Car", "Snow"]) == (
        "Car: A car is a wheeled, self-powered motor vehicle. It has wheels.\nSnow: Snow refers to forms of ice crystals."
    )
    assert words.topic_of(["Concert"]) == f"Concert: {CONCERT}"
    assert words.topic_of(["9", "7"]) == "9\nCar: A car is a wheeled, self-powered motor vehicle. It has wheels."


def test_there_is_no_topic_where_no_label_is_known(tmp_path: Path) -> None:
    words = vocabulary(tmp_path)
    assert words.topic_of([]) is None
    assert words.topic_of(["Dragon", "99"]) is None


def test_each_topic_gets_its_first_sentence_before_one_gets_a_second() -> None:
    many = [Topic(number, f"Topic{number}", (), f"{'First' * 20} of {number}. {'Second' * 20}.") for number in range(4)]
    text = Vocabulary(many).topic_of(["0", "1", "2", "3"])
    assert text is not None
    assert text.count("First" * 20) == 4
    assert text.count("Second" * 20) == 1
    assert text.splitlines()[0].endswith("Second.")


def test_initials_do_not_end_a_sentence() -> None:
    text = f"{'A' * 300} in the U.S. Navy by John F. Kennedy. {'B' * 400}."
    assert Vocabulary([Topic(1, "X", (), text)]).topic_of(["1"]) == f"X: {'A' * 300} in the U.S. Navy by John F. Kennedy."


@given(st.lists(st.tuples(st.text(min_size=1, max_size=80), st.text(max_size=1500)), max_size=30))
def test_the_topic_is_bounded_whatever_the_descriptions(texts: list[tuple[str, str]]) -> None:
    words = Vocabulary(Topic(number, name, (), text) for number, (name, text) in enumerate(texts))
    topic = words.topic_of([str(number) for number in range(len(texts))])
    assert topic is None or len(topic) <= TOPIC_LETTERS


def test_names_alone_are_bounded_too() -> None:
    topic = Vocabulary(Topic(number, f"{'name ' * 20}{number}", (), "") for number in range(30)).topic_of(list(map(str, range(30))))
    assert topic is not None
    assert TOPIC_LETTERS - 120 < len(topic) <= TOPIC_LETTERS


def test_a_file_that_is_no_vocabulary_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "vocabulary.csv"
    path.write_text("label_id,label_name\n0,Game\n")
    with pytest.raises(InputError, match="has no column Index"):
        load_vocabulary(path)
    with pytest.raises(InputError, match="No such file"):
        load_vocabulary(tmp_path / "none.csv")
    for damage in (b"\xff\xfe\x00", b'x,,,Name,,,,,"open', b"zero,,,Name,,,,,"):
        vocabulary_file(tmp_path)
        with path.open("ab") as file:
            file.write(damage)
        with pytest.raises(InputError, match="is damaged"):
            load_vocabulary(path)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "vocabulary.csv")
    with pytest.raises(InputError, match="no regular file"):
        load_vocabulary(path)


def test_a_vertical_of_several_labels_stands_once() -> None:
    words = Vocabulary([Topic(1, "Car", ("Autos", "News"), ""), Topic(2, "Bus", ("News", "Travel"), "")])
    assert words.verticals(["1", "2"]) == ("Autos", "News", "Travel")


def test_behind_a_sentence_that_does_not_fit_comes_none() -> None:
    text = f"First. {'B' * 700}. Third."
    assert Vocabulary([Topic(1, "X", (), text)]).topic_of(["1"]) == "X: First."
