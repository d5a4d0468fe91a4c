"""Both tasks of NExT-QA by one command, and the page with options and open answers side by side."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.clips import clip
from tests.metrics.tiny_wordnet import write_wordnet
from tests.report.runs import make_run
from tests.tasks.described import described_folder
from tests.tasks.nextqa.published import MC_ROWS, write_csv, write_json
from vip.errors import InputError, UsageError
from vip.html.axes import evenly_spaced
from vip.html.format import time_code
from vip.store import load_run
from vip.tasks.files import write_samples
from vip.tasks.nextqa.answers_page import (
    OpenAnswer,
    QuestionView,
    VideoPictures,
    _Answered,
    _open_answer,
    _question_view,
    choose_videos,
    write_answers_page,
)
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.nextqa.suite import nextqa_files, task_of
from vip.tasks.records import FreeText, Prediction, Sample, SamplePicture
from vip.tasks.score_files import ScoreOptions, Scores, score_files

TOKENS = ("video", "qid", "type", "reference_tokens", "prediction_tokens", "question")


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write_wordnet(tmp_path / "nltk" / "corpora" / "wordnet")
    monkeypatch.setenv("NLTK_DATA", str(tmp_path / "nltk"))
    write_csv(tmp_path / "mc.csv", MC_ROWS)
    rows = [("v1", 0, "CW", "dog", "dog", "why did the dog run"), ("v1", 1, "TN", "cat", "", "what did the dog do after")]
    write_csv(tmp_path / "oe.csv", [*rows, ("v3", 0, "DB", "dog", "cat", "is it <b>a dog</b>")], TOKENS)
    chosen = {"v1_0": 1, "v1_1": 0, "v2_0": 0, "v2_3": 2}
    right = {f"{row[0]}_{row[6]}": row[5] for row in MC_ROWS}
    write_json(tmp_path / "hga.json", {key: {"prediction": value, "answer": right[key]} for key, value in chosen.items()})
    return tmp_path


def scored(data: Path, *more: Path) -> Scores:
    options = ScoreOptions(suite="nextqa", annotations=(data / "mc.csv", data / "oe.csv"))
    return score_files([data / "hga.json", *more, data / "oe.csv"], options)


def test_files_find_their_task_and_their_questions(data: Path) -> None:
    found = nextqa_files([data / "hga.json", data / "oe.csv"], [data / "oe.csv", data / "mc.csv"])
    assert [(one.task, one.annotations[0].name) for one in found] == [("nextqa-mc", "mc.csv"), ("nextqa-oe", "oe.csv")]
    write_json(data / "oe.json", {"v1": {"0": "dog"}})
    assert task_of(data / "oe.json") == "nextqa-oe"
    with pytest.raises(InputError, match=r"hga\.json answers nextqa-mc, and no annotations have such questions"):
        nextqa_files([data / "hga.json"], [data / "oe.csv"])
    with pytest.raises(UsageError, match="needs the files of questions"):
        score_files([data / "hga.json"], ScoreOptions(suite="nextqa"))


def test_both_tasks_are_scored_by_one_command(data: Path) -> None:
    mc, oe = scored(data).results
    assert (mc.task, mc.metrics["accuracy"].value) == ("nextqa-mc", 75.0)
    assert (oe.task, round(oe.metrics["wups"].value or 0, 2)) == ("nextqa-oe", 33.33)


def page_of(scores: Scores, path: Path, **more: object) -> str:
    write_answers_page(scores, path, **more)  # type: ignore[arg-type]
    return path.read_text(encoding="utf-8")


def test_options_and_open_answers_to_a_question_stand_side_by_side(data: Path) -> None:
    html = page_of(scored(data), data / "page.html")
    articles = html.split("<article")[1:]
    assert len(articles) == 5  # of v1 two in both tasks, of v2 two, of v3 one
    first, second = (article for article in articles if "the dog" in article.split("</h3>")[0])
    assert re.search(r'class="right"><b>B</b><span><bdi>to get the ball</bdi>.*?<em class="hit"><bdi>hga\.json', first)
    assert "<bdi>dog</bdi><b>100.00</b>" in first
    assert 'class="miss"><bdi>hga.json' in second
    assert "<i>null</i><b>0.00</b>" in second  # an empty answer
    assert "Not asked with options" in html
    assert "Not asked open-ended" in html
    assert "<b>a dog" not in html


def test_scores_of_options_and_answers_that_were_not_read_are_shown(data: Path) -> None:
    samples = list(NextqaMultiChoice().samples(_source(data / "mc.csv")))
    write_samples(data / "samples.jsonl", samples)
    rows = [Prediction(sample_id=sample.id, value=0, scores=(0.625, 0.1, 0.1, 0.1, 0.1), engine="m") for sample in samples[1:]]
    rows.append(Prediction(sample_id=samples[0].id, value=None, status="unparsed", reason="no letter", engine="m"))
    (data / "own.jsonl").write_text("".join(row.model_dump_json() + "\n" for row in rows))
    html = page_of(scored(data, data / "own.jsonl"), data / "page.html", show=["v1"])
    assert html.count('<section class="video">') == 1
    assert "m (0.62)" in html
    assert "m: unparsed" in html


def _source(path: Path):  # type: ignore[no-untyped-def]
    from vip.tasks.task import SampleSource

    return SampleSource(paths=(str(path),))


def test_videos_that_are_named_must_be_there_and_something_of_the_tasks_scored(data: Path) -> None:
    with pytest.raises(InputError, match="There is no question about the video v9"):
        page_of(scored(data), data / "page.html", show=["v9"])
    with pytest.raises(UsageError, match="shows answers of nextqa-mc and nextqa-oe"):
        page_of(Scores((), ()), data / "page.html")
    assert not (data / "page.html").exists()


@pytest.mark.slow
def test_pictures_are_those_of_a_run_or_of_the_video_and_what_cannot_be_read_has_none(data: Path) -> None:
    videos = data / "videos"
    make_run(videos / "v1", rules=("kept",) * 9)
    clip(videos / "deep" / "v2.mp4", range(8))
    (videos / "v3.mp4").write_bytes(b"nothing")
    pictures = VideoPictures((videos,), {"v2": "deep/v2"})
    counts = {video: len(list(pictures.of_video(video, []))) for video in ("v1", "v2", "v3", "v4")}
    assert counts == {"v1": 6, "v2": 6, "v3": 0, "v4": 0}
    times = [one.title for one in pictures.of_video("v2", [])]
    assert times == sorted(times)
    index = write_json(data / "map.json", {"v2": "deep/v2"})
    html = page_of(scored(data), data / "page.html", folders=[videos], video_index=index)
    assert html.count("<img") == 12


def view_of(data: Path, **values: tuple[int | None, ...]) -> QuestionView:
    """The first question with options, answered by these models."""
    sample = next(iter(NextqaMultiChoice().samples(_source(data / "mc.csv"))))
    answers = [
        (
            name,
            Prediction(sample_id=sample.id, value=value, status="ok" if value is not None else "refused", scores=scores or None),
            0.0,
        )
        for name, (value, *scores) in values.items()
    ]
    return _question_view("why", {sample.task: _Answered(sample, None, answers)})  # type: ignore[arg-type]


def test_each_option_names_who_chose_it_with_the_score_of_that_option(data: Path) -> None:
    view = view_of(data, one=(0, 0.1, 0.9, 0.2, 0.3, 0.4), two=(1,), three=(4, 0.5, 0.9, 0.2, 0.3, 0.25), four=(None,), five=(0,))
    assert [(one.letter, one.is_right, list(one.chosen_by)) for one in view.options] == [
        ("A", False, ["one (0.10)", "five"]),
        ("B", True, ["two"]),
        ("C", False, []),
        ("D", False, []),
        ("E", False, ["three (0.25)"]),
    ]
    assert list(view.without_choice) == ["four: refused"]
    assert view.kind == "CW"


def test_an_answer_without_a_score_of_its_own_or_a_type_has_none(data: Path) -> None:
    view = view_of(data, one=(4, 0.1), two=(-9, 0.1), three=(2**62, 0.1))
    assert list(view.options[4].chosen_by) == ["one"]
    sample = next(iter(NextqaMultiChoice().samples(_source(data / "mc.csv")))).model_copy(update={"groups": {"type": ()}})
    assert _question_view("why", {sample.task: _Answered(sample, None, [])}).kind == ""


def answered(video: str, task: str, *values: float) -> _Answered:
    sample = Sample(id=f"{video} {task}", task=task, task_version=1, video=video, ask=FreeText(question="?"))
    return _Answered(sample, None, [(str(place), Prediction(sample_id="x", value="y"), value) for place, value in enumerate(values)])


def test_videos_come_first_that_both_tasks_ask_about_then_those_on_which_files_differ_most() -> None:
    by_video = {
        "agreed": {("agreed", "q"): {"a": answered("agreed", "nextqa-mc", 1.0, 1.0)}},
        "split": {("split", "q"): {"a": answered("split", "nextqa-mc", 0.0, 1.0)}},
        "both": {("both", "q"): {"a": answered("both", "nextqa-mc", 0.5, 0.5), "b": answered("both", "nextqa-oe", 0.5, 0.5)}},
        "half": {
            ("half", "q"): {"a": answered("half", "nextqa-mc", 0.5, 1.0)},
            ("half", "r"): {"a": answered("half", "nextqa-mc", 0.5, 1.0)},
        },
    }
    assert choose_videos(by_video, ()) == ["both", "split", "half", "agreed"]
    assert choose_videos(by_video, ["half", "agreed", "half"]) == ["half", "agreed"]
    many = {f"v{number:02}": {("q", "q"): {"a": answered(f"v{number:02}", "nextqa-mc", 1.0)}} for number in range(20)}
    assert choose_videos(many, ()) == [f"v{number:02}" for number in range(12)]


@pytest.mark.parametrize(
    ("value", "text", "is_null", "score"),
    [
        ("a dog", "a dog", False, "25.00"),
        (("a", "dog"), "a dog", False, "25.00"),
        ("", "null", True, "25.00"),
        ((), "null", True, "25.00"),
        (None, "failed", True, "25.00"),
    ],
)
def test_an_open_answer_has_its_score_in_percent_and_an_empty_one_is_null(value: object, text: str, is_null: bool, score: str) -> None:
    prediction = Prediction(sample_id="x", value=value, status="ok" if value is not None else "failed")  # type: ignore[arg-type]
    assert _open_answer("m", prediction, 0.25) == OpenAnswer("m", text, is_null, score)


def test_pictures_are_those_that_the_models_saw_at_most_six_of_them_in_order(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "v1", 9)
    keyframes = load_run(folder).keyframes
    pieces = tuple(
        SamplePicture(source=str(folder), keyframe_id=one.id, time_s=one.time_s, sha256=sha256(one.data).hexdigest()) for one in keyframes
    )
    plain, beside = answered("v1", "nextqa-mc", 1.0).sample, tmp_path / "samples.jsonl"
    pictures = list(VideoPictures(()).of_video("v1", [(plain, beside), (plain.model_copy(update={"context": pieces}), beside)]))
    assert [one.title for one in pictures] == [time_code(keyframes[place].time_s or 0) for place in evenly_spaced(9, 6)]
    assert len(pictures) == 6
    few = list(VideoPictures(()).of_video("v1", [(plain.model_copy(update={"context": pieces[:2]}), beside)]))
    assert len(few) == 2
