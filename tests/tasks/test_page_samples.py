"""A sample on a page: what of it is shown, beside what, and whose pictures are opened."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.captioning.keyframes import manifest
from tests.tasks.described import described_folder
from tests.tasks.scoring import answer, result
from vip import store
from vip.html.pictures import Jpeg
from vip.records import Famous
from vip.store import load_run
from vip.tasks import page_samples
from vip.tasks.page_samples import (
    MOST_LETTERS,
    MOST_UNITS,
    AnswerView,
    CardView,
    PagePictures,
    Shown,
    card_of,
    mark_differences,
    reference_texts,
    sample_card_anchor,
    value_texts,
)
from vip.tasks.pairs import JoinedFile
from vip.tasks.records import DescribeKeyframes, DescriptionText, KeyframeDescription, Moment, Prediction, Rank, Sample, SamplePicture
from vip.tasks.score import ScoredFile

FAMOUS = Famous(focus="a dog", action="it runs", mood="calm", objects=("dog", "ball"), setting="a park")
FAMOUS_TEXT = "Focus: a dog\nAction: it runs\nMood: calm\nObjects: dog, ball\nSetting: a park"


def asking(ask: dict[str, Any], *values: Any, **more: Any) -> Sample:
    about = {"id": "a", "task": "t", "task_version": 1, "video": "v", "ask": ask, "reference": {"values": values} if values else None}
    return Sample.model_validate({**about, **more})


FREE, CHOICE = {"kind": "free_text", "question": "Why?"}, {"kind": "choice", "question": "Who?", "options": ("Ann", "Bob")}


def keyframes(count: int, *references: Sequence[str], **more: Any) -> Sample:
    """A sample that asks for descriptions of keyframes."""
    ask = {"kind": "describe_keyframes", "count": count, "representation": "dense"}
    return asking(ask, *([{"dense_caption": text} for text in texts] for texts in references), **more)


def scored(
    samples: Sequence[Sample], predictions: Sequence[Prediction], values: dict[str, Sequence[float]] | None = None, label: str = "t"
) -> ScoredFile:
    """A scored file as far as cards read it; the rest of it is a fake."""
    pairs = list(zip(samples, predictions, strict=True))
    made: Any = object.__new__(JoinedFile)
    for name, value in {"pairs": pairs, "samples": None}.items():
        object.__setattr__(made, name, value)
    file: Any = object.__new__(ScoredFile)
    for name, value in {"joined": made, "values": values or {}, "result": result(label, "e")}.items():
        object.__setattr__(file, name, value)
    return file  # type: ignore[no-any-return]


def card(sample: Sample, prediction: Prediction, pictures: PagePictures | None = None, **values: Sequence[float]) -> CardView:
    return card_of([scored([sample], [prediction], dict(values))], ["label"], 0, pictures or PagePictures())


def said(prediction: Prediction, *references: Sequence[str]) -> AnswerView:
    return card(keyframes(2, *references), prediction).answers[0]


def texts_of(view: AnswerView) -> list[str]:
    return list(map(str, view.texts))


# ---------------------------------------------------------------- what was shown


@pytest.mark.parametrize(
    ("piece", "shown"),
    [
        ({"kind": "text", "text": "A plot."}, ("Text", "A plot.", None, False)),
        ({"kind": "subtitle", "start_s": 61.0, "end_s": 62.5, "text": "Hello."}, ("1:01.0 to 1:02.5", "Hello.", None, False)),
        ({"kind": "picture", "source": "gone", "keyframe_id": "v:1"}, ("Picture", "", None, True)),
        ({"kind": "picture", "source": "gone", "keyframe_id": "v:1", "time_s": 0.0}, ("0:00.0", "", None, True)),
        ({"kind": "keyframe", "keyframe_id": "v:1", "time_s": None, "dense_caption": "A dog."}, ("v:1", "A dog.", None, False)),
        ({"kind": "keyframe", "keyframe_id": "v:1", "time_s": 0.0, "famous": FAMOUS.model_dump()}, ("0:00.0", FAMOUS_TEXT, None, False)),
        (
            {"kind": "keyframe", "keyframe_id": "v:1", "time_s": 2.0, "picture": {"source": "gone", "keyframe_id": "v:1"}},
            ("0:02.0", "", None, True),
        ),
    ],
)
def test_each_piece_of_the_context_has_its_title_and_text_and_says_whether_a_picture_was_sent(
    piece: dict[str, Any], shown: tuple[Any, ...]
) -> None:
    sample = asking(FREE, context=[piece, {"kind": "text", "text": "last"}])
    assert card(sample, Prediction(sample_id="a", value="x")).context == [Shown(*shown), Shown("Text", "last", None, False)]


def test_a_text_as_long_as_may_be_stays_and_a_longer_one_is_cut() -> None:
    kinds = ({"kind": "text"}, {"kind": "subtitle", "start_s": 0.0, "end_s": 1.0})
    pieces = [{**kind, "text": "a" * (MOST_LETTERS + more)} for kind in kinds for more in (0, 1)]
    described = {"kind": "keyframe", "keyframe_id": "v:1", "time_s": None, "dense_caption": "a" * (MOST_LETTERS + 1)}
    shown = card(asking(FREE, context=[*pieces, described]), Prediction(sample_id="a", value="x")).context
    whole, cut = "a" * MOST_LETTERS, "a" * MOST_LETTERS + " …"
    assert [one.text for one in shown] == [whole, cut, whole, cut, cut]


def test_groups_are_named_in_order_with_all_their_values() -> None:
    sample = asking(FREE, groups={"type": ("CW",), "domain": ("Games", "Sports")})
    assert card(sample, Prediction(sample_id="a", value="x")).groups == "domain: Games, Sports, type: CW"


# ---------------------------------------------------------------- what is right


def test_of_several_references_for_keyframes_the_first_is_shown_text_by_text() -> None:
    assert reference_texts(keyframes(2, ["one", "two"], ["three", "four"])) == ["one", "two"]


def test_every_right_answer_to_another_question_is_a_text_of_its_own() -> None:
    moments = [[{"video": "v", "start_s": place, "end_s": place + 1} for place in range(2)], [{"video": "w", "start_s": 0, "end_s": 1}]]
    ranked = asking({"kind": "rank", "query": "q", "moments": True}, *moments)
    assert reference_texts(ranked) == ["v 0:00.0–0:01.0 · v 0:01.0–0:02.0", "w 0:00.0–0:01.0"]
    assert reference_texts(asking(CHOICE, 0, 1)) == ["0: Ann", "1: Bob"]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (DescriptionText(dense_caption="A dog."), "A dog."),
        (DescriptionText(famous=FAMOUS, dense_caption="no"), FAMOUS_TEXT),
        (DescriptionText(), ""),
    ],
)
def test_a_description_is_its_components_a_line_each_or_its_caption(row: DescriptionText, text: str) -> None:
    assert value_texts(keyframes(1), Prediction(sample_id="a", value=(row,))) == [text]


def test_a_number_names_an_option_only_where_a_choice_was_asked_for() -> None:
    assert value_texts(asking(FREE), Prediction(sample_id="a", value=1)) == ["1"]
    assert value_texts(asking(CHOICE), Prediction(sample_id="a", value="1")) == ["1"]


# ---------------------------------------------------------------- answers


def test_each_text_is_held_against_the_reference_at_its_place() -> None:
    assert texts_of(said(answer(keyframes(2), "cat dog", "cat dog"), ["a dog", "a cat"])) == [
        "<mark>cat</mark> dog",
        "cat <mark>dog</mark>",
    ]


@pytest.mark.parametrize(
    ("words", "marked"), [(("cat cow",), ["cat <mark>cow</mark>"]), (("dog", "cat", "cow"), ["dog", "cat", "<mark>cow</mark>"])]
)
def test_where_answers_are_fewer_or_more_than_references_each_is_held_against_all(words: tuple[str, ...], marked: list[str]) -> None:
    assert texts_of(said(answer(keyframes(2), *words), ["dog", "cat"])) == marked


def test_without_a_reference_every_word_is_marked() -> None:
    assert texts_of(said(answer(keyframes(1), "a dog"))) == ["<mark>a</mark> <mark>dog</mark>"]


@pytest.mark.parametrize(
    ("about", "status", "reason"),
    [
        ({"value": None, "status": "failed", "reason": "no answer"}, "failed", "no answer"),
        ({"value": None, "status": "unparsed", "raw": "<b>"}, "unparsed", "<b>"),
        ({"value": None, "status": "unparsed", "reason": "no JSON", "raw": "<b>"}, "unparsed", "no JSON: <b>"),
        ({"value": None, "status": "failed", "reason": "", "raw": ""}, "failed", ""),
        ({"value": "x", "raw": "<b>"}, "", ""),
        ({"value": "x", "reason": "second try", "raw": "<b>"}, "", "second try"),
        ({"value": None, "status": "unparsed", "raw": "a" * (MOST_LETTERS + 1)}, "unparsed", "a" * MOST_LETTERS + " …"),
    ],
)
def test_what_came_is_shown_only_where_it_was_no_answer(about: dict[str, Any], status: str, reason: str) -> None:
    view = card(asking(FREE), Prediction(sample_id="a", **about)).answers[0]
    assert (view.status, view.reason) == (status, reason)


def test_values_are_those_of_the_sample_in_the_order_of_the_metrics() -> None:
    samples = [asking(FREE, id=name) for name in "ab"]
    file = scored(samples, [Prediction(sample_id=name, value="x") for name in "ab"], {"n2": [0.1, 0.25], "n1": [1.0, 0.0]})
    assert [value for _, value in card_of([file], ["label"], 1, PagePictures()).answers[0].values] == ["25.00", "0.00"]


def test_each_file_answers_under_its_own_label_and_the_card_is_of_the_first() -> None:
    sample = asking(FREE)
    one, other = (scored([sample], [Prediction(sample_id="a", value=text)], label=text) for text in ("x", "y"))
    shown = card_of([one, other], ["first", "second"], 0, PagePictures())
    assert [(view.label, texts_of(view)) for view in shown.answers] == [("first", ["<mark>x</mark>"]), ("second", ["<mark>y</mark>"])]
    assert shown.anchor == sample_card_anchor(one.result, "a") != sample_card_anchor(other.result, "a")


def test_the_anchor_of_a_card_tells_task_representation_and_sample_apart_and_holds_no_text_of_others() -> None:
    dense, famous = result("t", "e", "dense"), result("t", "e", "famous")
    anchors = [sample_card_anchor(one, name) for one in (dense, famous) for name in ("a", "b", '"><script>', "\ud800")]
    assert len(set(anchors)) == len(anchors)
    assert all(one.startswith("s-") and len(one) == 14 and int(one[2:], 16) >= 0 for one in anchors)
    assert sample_card_anchor(dense, "a") == sample_card_anchor(result("t", "another engine", "dense"), "a")


@pytest.mark.parametrize(
    ("text", "reference", "marked"),
    [
        ("", "a", ""),
        ("...", "a", "..."),
        ("a", "", "<mark>a</mark>"),
        ("(Straße) & end!", "STRASSE", "(Straße) &amp; <mark>end</mark>!"),
        ("dog dogs", "dog", "dog <mark>dogs</mark>"),
        ("do", "dog", "<mark>do</mark>"),
    ],
)
def test_words_are_held_against_whole_words_whatever_their_case(text: str, reference: str, marked: str) -> None:
    assert str(mark_differences(text, reference)) == marked


# ---------------------------------------------------------------- units


def units(references: Sequence[str], targets: Sequence[Jpeg | None], *answers: Sequence[str]) -> list[tuple[int, bool, str, Jpeg | None]]:
    views = [AnswerView("", "", "", (), [mark_differences(text, "") for text in texts]) for texts in answers]
    about = {"anchor": "", "task": "", "id": "", "video": "", "groups": "", "question": "", "context": ()}
    return [tuple(row) for row in CardView(**about, reference=references, targets=targets, answers=views).rows]  # type: ignore[arg-type,misc]


def test_there_are_as_many_rows_as_the_longest_of_references_and_answers() -> None:
    picture = Jpeg(b"", 1, 1)
    assert units(["a", "b"], [picture], ["x"], ["x", "y", "z"]) == [(0, True, "a", picture), (1, False, "b", None), (2, False, "", None)]
    assert units(["a", "b"], [None, picture], ["x"]) == [(0, True, "a", None), (1, False, "b", picture)]
    assert units([], [], []) == [(0, True, "", None)], "a sample without anything still has a row"
    assert units([], []) == [(0, True, "", None)]


# ---------------------------------------------------------------- pictures


def piece_of(folder: Path, number: int, **changed: Any) -> KeyframeDescription:
    about = {"keyframe_id": f"{folder.name}:{number}", "time_s": float(number), "dense_caption": "x"}
    return KeyframeDescription(**{**about, **changed})


def named(folder: Path, number: int, **changed: Any) -> SamplePicture:
    keyframe = load_run(folder).keyframes[number]
    about = {"source": str(folder), "keyframe_id": keyframe.id, "sha256": sha256(keyframe.data).hexdigest()}
    return SamplePicture(**{**about, **changed})


def shrunk(folder: Path, number: int) -> Jpeg:
    found = PagePictures([folder]).of_piece(asking(FREE, video=folder.name), piece_of(folder, number), None)
    assert found is not None
    return found


def test_of_a_run_that_the_user_names_the_keyframe_with_this_name_is_shown(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 3)
    assert len({shrunk(folder, number).data for number in range(3)}) == 3
    sample = asking(FREE, video="park")
    assert PagePictures([folder]).of_piece(sample, piece_of(folder, 3), None) is None, "it has no such keyframe"
    assert PagePictures([folder]).of_piece(sample, piece_of(folder, 0, keyframe_id="park:"), None) is None, "nor one of a part of a name"
    assert PagePictures([folder]).of_piece(asking(FREE, video="v"), piece_of(folder, 1), None) is None, "it is of another video"
    assert PagePictures([tmp_path / "none", folder]).of_piece(sample, piece_of(folder, 1), None) == shrunk(folder, 1)


def test_no_picture_of_a_run_behind_a_link_in_a_folder_is_shown(tmp_path: Path) -> None:
    private = described_folder(tmp_path / "private" / "park", 2)
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "park").symlink_to(private)
    sample = asking(FREE, video="park")
    assert PagePictures([tmp_path / "runs"]).of_piece(sample, piece_of(private, 1), None) is None
    assert PagePictures([tmp_path / "runs" / "park"]).of_piece(sample, piece_of(private, 1), None) == shrunk(private, 1)


def test_where_the_named_picture_may_not_be_opened_that_of_the_users_run_is_shown(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 2)
    samples, sample = tmp_path / "samples.jsonl", asking(FREE, video="park")
    piece = piece_of(folder, 1, picture=named(folder, 0, sha256="0" * 64))
    assert PagePictures([folder]).of_piece(sample, piece, samples) == shrunk(folder, 1)
    assert PagePictures().of_piece(sample, piece, samples) is None
    right = piece_of(folder, 1, picture=named(folder, 0))
    assert PagePictures([folder]).of_piece(sample, right, samples) == shrunk(folder, 0), "what was sent goes before"
    assert PagePictures([folder]).of_piece(sample, named(folder, 1, sha256=None), samples) is None, "a picture alone has no other name"


def test_a_card_looks_for_pictures_beside_its_own_file_of_samples(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 2)
    sample = asking(FREE, video="park", context=[named(folder, 1).model_dump()])
    for samples, shown in ((tmp_path / "samples.jsonl", [shrunk(folder, 1)]), (None, [None])):
        file = scored([sample], [Prediction(sample_id="a", value="x")])
        object.__setattr__(file.joined, "samples", samples)
        assert [one.picture for one in card_of([file], ["label"], 0, PagePictures()).context] == shown


def test_a_run_is_of_the_video_that_its_manifest_names_and_the_first_of_several_counts(tmp_path: Path) -> None:
    for number, name in enumerate(("b", "a", "v")):
        described_folder(tmp_path / name, 1, first_word=number)
        (tmp_path / name / "keyframes" / "0000.jpg").write_bytes(
            load_run(described_folder(tmp_path / f"x{name}", number + 1)).keyframes[number].data
        )
        if name != "v":
            store.write_json(tmp_path / name / store.MANIFEST, manifest())  # of the video "v"
    (tmp_path / "readme.txt").write_text("no folder")
    pictures = PagePictures([tmp_path])
    run = pictures._run_of("v")
    assert run is not None
    assert run.folder.name == "a", "folders go by name"
    assert pictures._run_of("a") is None
    named_first = PagePictures([tmp_path / "b", tmp_path])._run_of("v")
    assert named_first is not None
    assert named_first.folder.name == "b", "the order of the user counts first"


@pytest.mark.parametrize("damage", ["keyframes", "picture", "manifest"])
def test_what_is_damaged_costs_its_pictures_alone(damage: str, tmp_path: Path) -> None:
    whole, broken = described_folder(tmp_path / "whole", 3), described_folder(tmp_path / "broken", 3)
    place = {"keyframes": store.KEYFRAMES, "picture": "keyframes/0001.jpg", "manifest": store.MANIFEST}[damage]
    (broken / place).write_bytes(b"{")
    pictures = PagePictures([tmp_path])
    sample = keyframes(1, video="broken", context=[piece_of(broken, 0).model_dump(), piece_of(broken, 2).model_dump()])
    shown = [pictures.of_piece(sample, piece_of(broken, number), None) is not None for number in range(3)]
    assert shown == {"keyframes": [False] * 3, "picture": [True, False, True], "manifest": [False] * 3}[damage]
    targets = pictures.targets(sample)
    assert [one is not None for one in targets] == {"keyframes": [], "picture": [False], "manifest": []}[damage]
    assert pictures.of_piece(asking(FREE, video="whole"), piece_of(whole, 1), None) is not None


def test_only_what_is_shown_counts_against_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_samples, "MOST_PICTURES", 2)
    folder = described_folder(tmp_path / "park", 4)
    (folder / "keyframes" / "0003.jpg").write_bytes(b"no picture")
    pictures, sample, samples = PagePictures([folder]), asking(FREE, video="park"), tmp_path / "samples.jsonl"
    for _ in range(3):
        assert pictures.of_piece(sample, named(folder, 0, sha256="0" * 64), samples) is None
        assert pictures.of_piece(sample, piece_of(folder, 3), None) is None
    assert [pictures.of_piece(sample, piece_of(folder, number), None) is not None for number in (0, 1, 2)] == [True, True, False]


def test_a_picture_is_no_longer_than_320_pixels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = described_folder(tmp_path / "park", 1)
    assert (shrunk(folder, 0).width_px, shrunk(folder, 0).height_px) == (160, 90), "it is not enlarged"
    monkeypatch.setattr(page_samples, "SIDE_PX", 100)
    assert (shrunk(folder, 0).width_px, shrunk(folder, 0).height_px) == (100, 56)


def sampled(folder: Path, count: int, *given: int) -> Sample:
    return keyframes(count, video=folder.name, context=[piece_of(folder, number).model_dump() for number in given])


@pytest.mark.parametrize(
    ("count", "given", "shown"),
    [
        (2, (0, 3), [1, 2]),
        (1, (1, 3), [2]),
        (3, (1, 2), [3, 4, 5]),
        (2, (0, 1, 2), [3, 4]),
        (2, (3, 4), [5]),
        (1, (), []),
        (1, (7,), []),
        (1, (0, 5), [1]),
    ],
)
def test_the_keyframes_that_were_asked_for_are_those_that_follow_and_are_not_given(
    count: int, given: tuple[int, ...], shown: list[int], tmp_path: Path
) -> None:
    folder = described_folder(tmp_path / "park", 6)
    assert PagePictures([folder]).targets(sampled(folder, count, *given)) == [shrunk(folder, number) for number in shown]


def test_a_question_has_no_targets(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "park", 6)
    sample = asking(FREE, video="park", context=[piece_of(folder, 0).model_dump()])
    assert PagePictures([folder]).targets(sample) == []
    assert PagePictures([folder]).targets(sampled(tmp_path / "lake", 1, 0)) == []
    assert len(card(sampled(folder, 2, 0), answer(keyframes(1), "x"), PagePictures([folder])).targets) == 2


def test_of_what_was_ranked_the_first_five_are_shown_and_descriptions_are_all() -> None:
    found = tuple(Moment(video=f"v{number}", start_s=61.0, end_s=62.0) for number in range(7))
    query = Sample(id="q", task="t", task_version=1, video="v", ask=Rank(query="a dog"))
    shown = value_texts(query, Prediction(sample_id="q", value=found))
    assert [text.partition(" ")[0] for text in shown] == [f"v{number}" for number in range(5)]
    asked = query.model_copy(update={"ask": DescribeKeyframes(count=7, representation="dense")})
    said = tuple(DescriptionText(dense_caption=f"{number}") for number in range(7))
    assert value_texts(asked, Prediction(sample_id="q", value=said)) == [str(number) for number in range(7)]
    assert value_texts(query, Prediction(sample_id="q", value=None, status="refused")) == []


def test_of_very_many_descriptions_a_card_shows_the_first_and_says_how_many_more_there_are() -> None:
    words = [str(number) for number in range(MOST_UNITS + 1)]
    sample = keyframes(len(words), words)
    prediction = Prediction(sample_id="a", value=tuple(DescriptionText(dense_caption=word) for word in words))
    shown = card(sample, prediction)
    assert shown.reference == [*words[:MOST_UNITS], "… and 1 more"]
    assert [str(text) for text in shown.answers[0].texts] == shown.reference
    assert reference_texts(sample) == value_texts(sample, prediction) == words, "a judge reads all"
