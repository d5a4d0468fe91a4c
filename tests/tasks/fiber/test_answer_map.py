"""The map of the most frequent answers, and its page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from tests.cli.terminal import vip
from tests.tasks.fiber.made import record
from vip.errors import InputError
from vip.tasks.fiber.answer_map import AnswerMap, PlacedAnswer, count_answers, make_map, read_clusters, write_map
from vip.tasks.fiber.records import write_records

RECORDS = [
    record("x", "a", additional_answers=[["a dog", "The dogs!"], ["men"], ["a man"], ["ladies"]]),
    record("x", "b", additional_answers=[["dog"], ["grass", "two buses"], ["a lady"], ["bus"]]),
]


def embed(phrases: Sequence[str]) -> npt.NDArray[np.float64]:
    """Embed words of three letters apart from the longer ones."""
    return np.array([[float(len(phrase) == 3), float(len(phrase) != 3), 0.01 * place] for place, phrase in enumerate(phrases)])


def test_plurals_count_as_their_singular_where_it_was_answered() -> None:
    counts = count_answers(RECORDS)
    assert counts == {"dog": 3, "man": 2, "lady": 2, "grass": 1, "two buses": 1, "bus": 1}


@pytest.mark.slow
@pytest.mark.extra("sklearn")
def test_the_most_frequent_answers_are_placed_with_their_clusters() -> None:
    found = make_map(RECORDS, embed, clusters={"dog": "animals"}, most=4)
    assert [(one.text, one.times, one.cluster) for one in found.answers] == [
        ("dog", 3, "animals"),
        ("lady", 2, ""),
        ("man", 2, ""),
        ("bus", 1, ""),
    ]
    assert found.total == 10
    assert all(0 <= place <= 1 for one in found.answers for place in (one.x, one.y))


def test_too_few_answers_are_no_map() -> None:
    with pytest.raises(InputError, match="There are 0 different answers, and a map needs 4"):
        make_map([record("x")], embed)


def test_clusters_are_read_by_normalised_answer(tmp_path: Path) -> None:
    path = tmp_path / "clusters.csv"
    path.write_text("answer,cluster\nThe dog!,animals\n", encoding="utf-8")
    assert read_clusters(path) == {"dog": "animals"}
    for text in ("answer\ndog\n", "", "answer,cluster\ndog\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(InputError, match="Expected the columns answer and cluster"):
            read_clusters(path)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="is no CSV in UTF-8"):
        read_clusters(path)


def test_the_page_shows_the_map_and_escapes_answers(tmp_path: Path) -> None:
    answers = (PlacedAnswer("<img src=x>", 3, 0, 1, "<b>"), PlacedAnswer("كلب 🐶", 1, 1, 0, ""))
    write_map(tmp_path / "m.html", AnswerMap(answers, 4), encoder="e@1")
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "<img" not in page
    assert 'class="answer c0"' in page
    assert "&lt;img src=x&gt;: 3, &lt;b&gt;</title>" in page
    assert page.count("كلب 🐶") == 3  # tooltip, word, table
    assert "75.00" in page


@pytest.mark.slow
def test_the_command_says_what_is_missing(tmp_path: Path) -> None:
    write_records(tmp_path / "val.json", RECORDS)
    few = vip(tmp_path, "fiber", "map", "val.json", "--most", "3")
    assert (few.code, few.sentence) == (2, "A map shows 4 answers or more, not 3. Change --most.")


@pytest.mark.slow
@pytest.mark.extra("sentence_transformers")
@pytest.mark.extra("sklearn")
def test_an_encoder_that_is_not_there_is_named(tmp_path: Path) -> None:
    write_records(tmp_path / "val.json", RECORDS)
    none = vip(tmp_path, "fiber", "map", "val.json", "--encoder", "./none")
    assert (none.code, "There is no folder ./none" in none.err) == (4, True), none.err


@pytest.mark.parametrize(
    ("answers", "counts"),
    [
        (["ladies", "lady"], {"lady": 2}),
        (["buses", "bus"], {"bus": 2}),
        (["dogs"], {"dogs": 1}),  # nobody gave its singular
        (["policemen", "policeman"], {"policeman": 2}),
        (["two children", "two child"], {"two child": 2}),
        (["people", "person"], {"person": 2}),
        (["glasses", "glass", "glasse"], {"glass": 2, "glasse": 1}),
    ],
)
def test_endings_of_plurals_are_tried_one_after_the_other(answers: list[str], counts: dict[str, int]) -> None:
    assert count_answers([record("x", additional_answers=[[answer] for answer in answers])]) == counts


def test_the_most_frequent_are_chosen_of_equal_ones_the_first_in_the_alphabet(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def places(vectors: npt.NDArray[np.float64], *, seed: int) -> npt.NDArray[np.float64]:
        seen.append((vectors.tolist(), seed))
        return np.linspace(0, 1, 2 * len(vectors)).reshape(-1, 2)

    monkeypatch.setattr("vip.tasks.fiber.answer_map.project_tsne", places)
    answers = [["d"], ["c"], ["b"], ["e"], ["e"], ["f"]]
    found = make_map(
        [record("x", additional_answers=answers)], lambda texts: np.array([[float(ord(text))] for text in texts]), most=4, seed=7
    )
    assert [(one.text, one.times) for one in found.answers] == [("e", 2), ("b", 1), ("c", 1), ("d", 1)]
    assert [(one.x, one.y) for one in found.answers] == [(pytest.approx(2 * n / 7), pytest.approx((2 * n + 1) / 7)) for n in range(4)]
    assert seen == [([[101.0], [98.0], [99.0], [100.0]], 7)]
    assert (found.total, found.clusters) == (6, [])


def test_the_page_has_shares_of_all_answers_and_a_colour_a_cluster(tmp_path: Path) -> None:
    answers = (
        PlacedAnswer("dog", 30, 0.0, 0.0, "animals"),
        PlacedAnswer("man", 20, 1.0, 1.0, "people"),
        PlacedAnswer("cat", 10, 0.5, 0.5, "animals"),
    )
    found = AnswerMap(answers, 200)
    write_map(tmp_path / "m.html", found, encoder="e@1")
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert found.clusters == ["animals", "people"]
    assert "30 % of all" in page
    kinds = re.findall(r'<circle cx="([\d.]+)%" cy="([\d.]+)" r="4" class="(answer c\d)"', page)
    assert kinds == [("50", "320", "answer c0"), ("95", "616", "answer c1"), ("5", "24", "answer c0")], "the most frequent lie on top"
    assert "15.00" in page
