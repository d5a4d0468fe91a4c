"""Blanks: what holds of every record, what is left out, and chunkers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tasks.fiber.made import chunk_articles, video
from vip.errors import BackendError, InputError
from vip.tasks.fiber.blanks import BlankCounts, load_chunker, make_blanks, prepare_caption, read_available
from vip.tasks.fiber.records import BLANK

CAPTIONS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=30) | st.lists(
    st.sampled_from(["a dog", "the <b>man</b>", "an 🐶", "the كلب", '"the end"', "_____", "runs", "&amp;"]), max_size=5
).map(" ".join)


@pytest.mark.parametrize(
    ("caption", "expected"),
    [
        ("  a dog runs ", "A dog runs."),
        ("A dog.", "A dog."),
        ("a man in New York sees a TV", "A man in New York sees a TV."),
        ("élan", "Élan."),
        ("is it?", "Is it?."),
        ("   ", ""),
        ("", ""),
    ],
)
def test_captions_are_prepared_as_in_the_paper(caption: str, expected: str) -> None:
    assert prepare_caption(caption) == expected


@settings(max_examples=40)
@given(CAPTIONS)
def test_a_prepared_caption_stays_as_it_is(caption: str) -> None:
    once = prepare_caption(caption)
    assert prepare_caption(once) == once
    assert once == "" or (once.endswith(".") and not once[0].isspace())


@settings(max_examples=40)
@given(st.lists(st.lists(CAPTIONS, min_size=1, max_size=3), max_size=4), st.integers(0, 3))
def test_each_record_has_one_blank_and_putting_the_label_back_gives_the_caption(groups: list[list[str]], seed: int) -> None:
    counts = BlankCounts()
    videos = [video(*captions, video_id=str(place)) for place, captions in enumerate(groups)]
    records = list(make_blanks(videos, chunk_articles, seed=seed, counts=counts))
    assert counts.made == len(records)
    assert counts.made + counts.without_noun_phrase == len(videos)
    for record in records:
        assert record.masked_caption.count(BLANK) == 1
        assert record.masked_caption.replace(BLANK, record.label) == record.caption
        assert record.label
    assert records == list(make_blanks(videos, chunk_articles, seed=seed))


def test_the_first_caption_with_a_noun_phrase_counts() -> None:
    counts = BlankCounts()
    videos = [video("it rains", "a dog runs", "the man"), video("it rains", video_id="none")]
    (record,) = make_blanks(videos, chunk_articles, counts=counts)
    assert (record.caption, record.masked_caption, record.label) == ("A dog runs.", "_____ runs.", "A dog")
    assert (record.video_id, record.clip_id) == ("a_b", "a_b_000005_000015")
    assert counts == BlankCounts(made=1, without_noun_phrase=1, examples=["none"])


def test_the_seed_draws_each_phrase_equally_often() -> None:
    videos = [video("the a1 the a2 the a3", video_id=str(place)) for place in range(3000)]
    labels = [record.label for record in make_blanks(videos, chunk_articles)]
    counts = [sum(label.lower() == name for label in labels) for name in ("the a1", "the a2", "the a3")]
    assert sum(counts) == 3000
    assert all(abs(count - 1000) < 5 * (3000 * 2 / 9) ** 0.5 for count in counts)


def test_another_seed_draws_other_phrases() -> None:
    videos = [video("the a1 the a2 the a3", video_id=str(place)) for place in range(20)]
    drawn = {tuple(record.label for record in make_blanks(videos, chunk_articles, seed=seed)) for seed in (1, 2, 3)}
    assert len(drawn) == 3
    assert tuple(record.label for record in make_blanks(videos, chunk_articles)) == tuple(
        record.label for record in make_blanks(videos, chunk_articles, seed=2)
    ), "the authors' seed where none is named"


def test_examples_of_what_was_left_out_are_the_first_three() -> None:
    counts = BlankCounts()
    assert list(make_blanks([video("it rains", video_id=name) for name in "abcd"], chunk_articles, counts=counts)) == []
    assert counts.notes() == ["4 videos whose captions have no noun phrase left out, such as a, b, c."]
    gone = BlankCounts(not_available=1)
    assert gone.notes() == ["1 video that the list of available ones does not name left out."]


def test_videos_that_are_gone_are_left_out_and_counted() -> None:
    counts = BlankCounts()
    videos = [video("a dog", video_id="here"), video("a dog", video_id="gone")]
    assert [one.video_id for one in make_blanks(videos, chunk_articles, available={"here"}, counts=counts)] == ["here"]
    assert counts.not_available == 1


def test_a_chunker_that_names_letters_outside_the_caption_is_refused() -> None:
    with pytest.raises(InputError, match=r'names letters 0 to 99 of "A dog\."'):
        list(make_blanks([video("a dog")], lambda text: [(0, 99)]))


def test_a_chunker_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.fiber.language_models.find_spec", lambda name: None)
    with pytest.raises(BackendError, match="Run `pip install spacy` and `python -m spacy download en_core_web_sm`"):
        load_chunker("spacy:en_core_web_sm")
    with pytest.raises(BackendError, match=r'There is no chunker "commas"\. There is: spacy:MODEL'):
        load_chunker("commas")


def test_a_model_of_spacy_and_another_package_are_chunkers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Chunk:
        start_char, end_char = 0, 5

    class Document:
        noun_chunks = (Chunk(),)

    class Spacy:
        @staticmethod
        def load(model: str) -> Any:
            if model != "small":
                raise OSError(model)
            return lambda text: Document()

    class Point:
        value, name = "other:Chunker", "other"

        def load(self) -> Any:
            return lambda: chunk_articles

    monkeypatch.setattr("vip.tasks.fiber.language_models.find_spec", lambda name: object())
    monkeypatch.setattr("vip.tasks.fiber.language_models.import_module", lambda name: Spacy)
    assert list(load_chunker("spacy:small")("A dog runs.")) == [(0, 5)]
    with pytest.raises(BackendError, match="Run `python -m spacy download large`"):
        load_chunker("spacy:large")
    monkeypatch.setattr("vip.tasks.fiber.language_models.entry_points", lambda group, name: [Point()])
    assert load_chunker("other")("a dog") == [(0, 5)]


@pytest.mark.parametrize(
    "caption",
    [
        'She says "the end" & <b>the man</b> nods.',
        "An 🐶dog sees the 👨‍👩‍👧.",
        "يرى the كلب هنا.",
        "The dog &amp; the cat; =cmd|' /C calc'!A0 a b",
    ],
)
def test_odd_captions_stay_as_they_are(caption: str) -> None:
    (record,) = make_blanks([video(caption)], chunk_articles)
    assert record.masked_caption.replace(BLANK, record.label) == record.caption == prepare_caption(caption)


def test_captions_with_a_blank_or_of_too_many_letters_are_left_out_counted_and_named() -> None:
    counts = BlankCounts()
    videos = [video("the _____ sees the dog", "a cat runs"), video("a dog " * 2000, video_id="long"), video("it rains", video_id="wet")]
    assert [record.caption for record in make_blanks(videos, chunk_articles, counts=counts)] == ["A cat runs."]
    assert counts.notes() == [
        "2 videos whose captions have no noun phrase left out, such as long, wet.",
        "2 captions with a blank (_____) already, or of more than 10,000 letters left out.",
    ]


def test_a_phrase_beside_an_underscore_is_no_blank() -> None:
    assert list(make_blanks([video("_the dog")], lambda text: [(1, 8)])) == []
    (record,) = make_blanks([video("_the dog a cat")], lambda text: [(1, 8), (9, 14)])
    assert record.masked_caption == "_the dog _____."
    (record,) = make_blanks([video("the dog_ a cat")], lambda text: [(0, 7), (9, 14)])
    assert record.masked_caption == "The dog_ _____."
    (record,) = make_blanks([video("the dog _ a cat")], lambda text: [(0, 7)])
    assert record.masked_caption == "_____ _ a cat.", "an underscore further away does no harm"


def test_a_list_of_available_videos_has_ids_or_names_of_clips(tmp_path: Path) -> None:
    path = tmp_path / "there.txt"
    path.write_text("\ufeffa_b\n\nc-d_000001_000011\n", encoding="utf-8")
    assert read_available(path) == {"a_b", "c-d_000001_000011", "c-d"}
    path.write_text("\n")
    with pytest.raises(InputError, match="names no video"):
        read_available(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_available(path)


def test_a_clip_that_makes_no_record_and_a_list_that_is_no_text_are_one_sentence(tmp_path: Path) -> None:
    odd = video("a dog runs", video_id="\x1b" + "v" * 1001)
    with pytest.raises(InputError, match=r'^"[^"\x1b]{1,80}" makes no record: .*1000 characters.*\. Repair it\.$'):
        list(make_blanks([odd], chunk_articles))
    for data, said in ((b"ok\n\xff", r"is not UTF-8 text \(byte 3\)"), (b" \n\n", "names no video")):
        (tmp_path / "there.txt").write_bytes(data)
        with pytest.raises(InputError, match=said):
            read_available(tmp_path / "there.txt")
