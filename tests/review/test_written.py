"""Samples that people answer in words: what the page shows, what is refused, and the predictions that scoring reads."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.review.browser import CHROMIUM, Browser
from tests.review.corpora import action
from tests.tasks.described import described_folder
from vip.config import SampleSettings
from vip.errors import InputError, StoreError, UsageError
from vip.records import Famous
from vip.review.blanks import log_path
from vip.review.log import ReviewLog
from vip.review.question_items import kind_of_file
from vip.review.written import MOST_FILES, WrittenState, export_written, read_written_items, shown_sample
from vip.tasks.files import read_predictions, write_samples
from vip.tasks.infilling import VideoInfilling
from vip.tasks.records import Blank, DescriptionText, FreeText, KeyframeDescription, Sample, SamplePicture, Subtitle
from vip.tasks.sample_pictures import PictureSources, pictures_of
from vip.tasks.task import SampleSource

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.review.serving import Served, serve
from vip.review.written_server import WrittenServer

SAVED = "/^(Saved|Undone|Redone)/.test(document.getElementById('saved').textContent)"
MARKUP = "<img src=x onerror=alert(1)>"


def write_infilling(path: Path, **settings: object) -> Path:
    """Two samples, each of one keyframe before, two that are asked for, and one behind."""
    run = described_folder(path.parent / "park", 5)
    given = SampleSettings(**{"context": 1, "targets": 2, **settings})  # type: ignore[arg-type]
    write_samples(path, VideoInfilling().samples(SampleSource(paths=(str(run),), settings=given)))
    return path


def opened(path: Path, *, judgements: int | None = None, videos: Path | None = None) -> WrittenState:
    return WrittenState(read_written_items(path, videos), ReviewLog(log_path(path)), judgements=judgements)


@pytest.fixture
def state(tmp_path: Path) -> WrittenState:
    return opened(write_infilling(tmp_path / "infilling.jsonl", representation="dense"))


def write(state: WrittenState, number: int, *texts: str, by: str = "Ann") -> None:
    item = state.items[number]
    state.record([action(item.id, field, text, by=by) for field, text in zip(item.fields, texts, strict=True)])


def question(number: int, **values: object) -> Sample:
    ask = FreeText(question=f"why does the dog run {number}")
    return Sample(id=f"q{number}", task="nextqa-oe", task_version=1, video=f"v{number}", ask=ask, **values)  # type: ignore[arg-type]


# ---------------------------------------------------------------- what is shown


def test_the_missing_keyframes_stand_between_those_that_are_given_and_the_reference_is_not_shown(state: WrittenState) -> None:
    shown = shown_sample(state, 0, "Ann")
    assert [(part["title"], len(part["fields"])) for part in shown["parts"]] == [
        *(("Keyframe 1", 0), ("Keyframe 2", 1), ("Keyframe 3", 1), ("Keyframe 4", 0))
    ]
    said = json.dumps(shown)
    assert ("A dog 0 in park." in said, "A river 5" in said) == (True, False)
    assert "frisbee" not in said
    assert "A park 2" not in said


def test_of_predictions_all_that_is_given_comes_first(tmp_path: Path) -> None:
    from vip.tasks.prediction import VideoPrediction

    run = described_folder(tmp_path / "park", 3)
    settings = SampleSettings(context=2, targets=1)
    write_samples(tmp_path / "p.jsonl", VideoPrediction().samples(SampleSource(paths=(str(run),), settings=settings)))
    (part,) = [part for part in shown_sample(opened(tmp_path / "p.jsonl"), 0, "Ann")["parts"] if part["fields"]]
    assert (part["title"], [one["name"] for one in part["fields"]]) == ("Keyframe 3", list(Famous.model_fields))


def test_a_picture_is_asked_for_by_its_place_among_the_pictures(tmp_path: Path) -> None:
    """Of three keyframes that are given, the second has texts alone."""
    first, last = (SamplePicture(source="r", keyframe_id=name, time_s=0.0) for name in ("k0", "k2"))
    pieces = (
        first,
        KeyframeDescription(keyframe_id="k1", time_s=1.0, dense_caption="A dog."),
        KeyframeDescription(keyframe_id="k2", time_s=2.0, dense_caption="A cat.", picture=last),
    )
    write_samples(tmp_path / "q.jsonl", [question(1, context=pieces)])
    state = opened(tmp_path / "q.jsonl")
    shown = [part["picture"] for part in shown_sample(state, 0, "Ann")["parts"]]
    assert shown == [0, None, 1, None]
    assert list(pictures_of(state.items[0].sample)) == [first, last]


def test_the_clip_is_shown_before_the_video_and_then_whole(tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    write_samples(tmp_path / "q.jsonl", [question(number, clip=f"c{number}", start_s=4.0, end_s=9.0) for number in range(3)])
    for name in ("v0.mp4", "c0.mp4", "v1.mp4"):
        (tmp_path / "clips" / name).write_bytes(b"x")
    state = opened(tmp_path / "q.jsonl", videos=tmp_path / "clips")
    assert [item.clip and item.clip.name for item in state.items] == ["c0.mp4", "v1.mp4", None]
    shown = [shown_sample(state, number, "Ann") for number in range(3)]
    assert [(one["has_video"], one["start_s"], one["end_s"]) for one in shown] == [(True, None, None), (True, 4.0, 9.0), (False, 4.0, 9.0)]


def test_what_others_wrote_is_not_shown(state: WrittenState) -> None:
    write(state, 0, "A kite.", "A hat.", by="Bob")
    assert "kite" not in json.dumps(shown_sample(state, 0, "Ann"))
    assert "kite" in json.dumps(shown_sample(state, 0, "Bob"))


def test_files_are_known_by_what_they_ask(tmp_path: Path) -> None:
    assert kind_of_file(write_infilling(tmp_path / "infilling.jsonl")) == "samples"
    write_samples(tmp_path / "q.jsonl", [question(1, context=(Subtitle(start_s=0, end_s=1, text="run"),))])
    assert kind_of_file(tmp_path / "q.jsonl") == "samples"
    assert shown_sample(opened(tmp_path / "q.jsonl"), 0, "Ann")["said"] == ["run"]


def test_files_that_are_not_answered_in_words_are_refused(tmp_path: Path) -> None:
    write_samples(tmp_path / "a.jsonl", [question(1), question(1)])
    with pytest.raises(InputError, match="the sample q1 twice"):
        read_written_items(tmp_path / "a.jsonl")
    write_samples(tmp_path / "b.jsonl", [question(1), question(2).model_copy(update={"ask": Blank(text="a _____")})])
    with pytest.raises(InputError, match="q2 is not answered in words"):
        read_written_items(tmp_path / "b.jsonl")
    (tmp_path / "clips").mkdir()
    (tmp_path / "clips" / "park.mp4").write_bytes(b"x")
    with pytest.raises(InputError, match="people do not see"):
        read_written_items(write_infilling(tmp_path / "c.jsonl"), tmp_path / "clips")


# ---------------------------------------------------------------- what is kept


def test_a_sample_is_done_when_all_its_texts_are_written_and_open_again_when_one_is_taken_back(state: WrittenState) -> None:
    first, second = state.items
    state.record([action(first.id, "0.dense_caption", "A kite.")])
    assert (state.finished_by(first), state.next_open("Ann")) == ([], 0)
    state.record([action(first.id, "1.dense_caption", " A hat. ")])
    assert (state.finished_by(first), state.next_open("Ann"), state.progress("Ann")) == (["Ann"], 1, {"done": 1, "total": 2})
    state.undo("Ann", "z1")
    assert state.next_open("Ann") == 0
    write(state, 1, "A", "B")
    assert state.finished_by(second) == ["Ann"]


def test_so_many_people_answer_a_sample(tmp_path: Path) -> None:
    state = opened(write_infilling(tmp_path / "i.jsonl", representation="dense"), judgements=1)
    write(state, 0, "A", "B", by="Bob")
    assert (state.next_open("Ann"), state.progress("Ann")) == (1, {"done": 0, "total": 1})


@pytest.mark.parametrize(("field", "text"), [("2.dense_caption", "x"), ("0.focus", "x"), ("answer", "x"), ("0.dense_caption", "x" * 5001)])
def test_what_a_sample_does_not_ask_for_is_refused(state: WrittenState, field: str, text: str) -> None:
    with pytest.raises(UsageError):
        state.record([action(state.items[0].id, field, text)])
    assert list(state.log.read()) == []


# ---------------------------------------------------------------- what scoring reads


def test_answers_are_predictions_of_the_row_human(tmp_path: Path) -> None:
    state = opened(write_infilling(tmp_path / "i.jsonl"))
    write(state, 0, *("a kite", "flies", "calm", "kite\nsky\nkite", "a park"), *("a hat", "falls", "sad", "hat", "a street"))
    done = export_written(state, tmp_path / "human.jsonl", source=tmp_path / "i.jsonl")
    assert (done.answered, done.missing) == (1, 1)
    first, second = read_predictions(tmp_path / "human.jsonl")
    famous = Famous(focus="a kite", action="flies", mood="calm", objects=("kite", "sky"), setting="a park")
    assert isinstance(first.value, tuple)
    assert (first.engine, first.value[0]) == ("human", DescriptionText(famous=famous))
    assert (second.status, second.value) == ("missing", None)


def test_second_answers_are_a_file_of_their_own(state: WrittenState, tmp_path: Path) -> None:
    write(state, 0, "First.", "One.", by="Bob")
    write(state, 0, "Second.", "Two.", by="Ann")
    done = export_written(state, tmp_path / "human.jsonl", source=tmp_path / "i.jsonl")
    assert [path.name for path in done.paths] == ["human.jsonl", "human.2.jsonl"]
    texts = [next(read_predictions(path)).value for path in done.paths]
    assert [value[0].dense_caption for value in texts if isinstance(value, tuple)] == ["First.", "Second."]  # type: ignore[union-attr]
    with pytest.raises(UsageError, match=r"human.jsonl exists already"):
        export_written(state, tmp_path / "human.jsonl", source=tmp_path / "i.jsonl")
    done.paths[0].unlink()
    with pytest.raises(UsageError, match=r"human.2.jsonl exists already"):
        export_written(state, tmp_path / "human.jsonl", source=tmp_path / "i.jsonl")
    assert not done.paths[0].exists()


def test_of_very_many_answers_to_a_sample_the_first_are_written_and_the_others_counted(state: WrittenState, tmp_path: Path) -> None:
    """A log of a stranger with 400 names made 400 files, and a sentence that named them all."""
    for number in range(MOST_FILES + 3):
        write(state, 0, "First.", "Second.", by=f"p{number:02}")
    write(state, 1, "First.", "Second.")
    (tmp_path / "h").mkdir()
    done = vip(tmp_path, "review", "infilling.jsonl", "--export", "h/human.jsonl")
    assert len(list((tmp_path / "h").iterdir())) == MOST_FILES
    shown = " ".join(done.out.split())
    assert "2 answers in h/human.jsonl (second answers and so on in human.2.jsonl to human.50.jsonl), 0 missing." in shown
    assert "Up to 53 people answered one sample. The first 50 answers to each are written, and 3 left out." in shown
    again = vip(tmp_path, "review", "infilling.jsonl", "--export", "h/human.jsonl", "--overwrite", "--json")
    assert json.loads(again.out)["left_out"] == 3


def test_progress_of_everybody_is_that_of_each(state: WrittenState) -> None:
    write(state, 0, "First.", "One.", by="Bob")
    write(state, 0, "Second.", "Two.", by="Ann")
    write(state, 1, "Second.", "Two.", by="Bob")
    state.record([action(state.items[1].id, "comment", "No.", by="Eve")])
    for state.judgements in (None, 1, 2):
        assert state.progress_by_reviewer() == {name: state.progress(name) for name in ("Ann", "Bob", "Eve")}


def test_without_an_answer_there_is_no_export(state: WrittenState, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Nobody has finished"):
        export_written(state, tmp_path / "human.jsonl", source=tmp_path / "i.jsonl")
    with pytest.raises(UsageError, match=r"Name a file with \.jsonl"):
        export_written(state, tmp_path / "human.csv", source=tmp_path / "i.jsonl")


def test_open_questions_are_answered_in_a_text(tmp_path: Path) -> None:
    write_samples(tmp_path / "q.jsonl", [question(1)])
    state = opened(tmp_path / "q.jsonl")
    write(state, 0, "to catch the ball")
    export_written(state, tmp_path / "human.jsonl", source=tmp_path / "q.jsonl")
    assert [row.value for row in read_predictions(tmp_path / "human.jsonl")] == ["to catch the ball"]


# ---------------------------------------------------------------- the server and the page


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    path = write_infilling(tmp_path / "i.jsonl", representation="dense", pictures=True)
    with serve(opened(path), WrittenServer, sources=PictureSources(path)) as running:
        yield running


@pytest.mark.parametrize("path", ["/", "/api/sample?reviewer=Ann", "/picture/0/0", "/static/written.js"])
def test_nothing_is_shown_without_the_token(served: Served, path: str) -> None:
    assert served.ask(path, token=None).status == 401
    assert served.ask(path).status == 200


def test_pictures_are_asked_for_by_number_and_those_that_are_asked_for_are_not_served(served: Served) -> None:
    assert [served.ask(f"/picture/0/{place}").status for place in (0, 1, 2, 9)] == [200, 200, 404, 404]
    assert served.ask("/picture/0/..%2F..%2Fi.jsonl").status == 404
    assert served.ask("/video/0").status == 404


@pytest.fixture
def questions(tmp_path: Path) -> Iterator[Served]:
    """Three, and a clip of the second."""
    path, clips = tmp_path / "q.jsonl", tmp_path / "clips"
    write_samples(path, [question(number) for number in range(3)])
    clips.mkdir()
    (clips / "v1.mp4").write_bytes(b"x")
    with serve(opened(path, videos=clips), WrittenServer, sources=PictureSources(path)) as running:
        yield running


def test_behind_a_sample_comes_the_next_open_one_and_not_the_first(questions: Served) -> None:
    def following() -> list[int]:
        return [questions.ask(f"/api/sample?reviewer=Ann&number={number}").json["next_open"] for number in range(3)]

    assert following() == [1, 2, 0]
    body = {"reviewer": "Ann", "actions": [{"uid": "1", "item": "q1", "field": "answer", "after": "to swim"}]}
    assert questions.ask("/api/actions", body).status == 200
    assert following() == [2, 2, 0]


def test_clips_are_asked_for_by_number_and_are_no_links(questions: Served, tmp_path: Path) -> None:
    assert [questions.ask(f"/video/{number}").status for number in range(4)] == [404, 200, 404, 404]
    path, other = tmp_path / "clips/v1.mp4", tmp_path / "other.mp4"
    path.rename(other)
    path.symlink_to(other)
    assert questions.ask("/video/1").status == 404


def begin(tab: Browser, served: Served, **window: object) -> None:
    tab.complaints.clear()
    tab.open(served.address, **window)  # type: ignore[arg-type]
    tab.wait("document.getElementById('name-box').open")
    tab.type("Ann")
    tab.press("Enter")
    tab.wait("!document.getElementById('question').hidden")


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
def test_people_answer_by_keys_alone_and_go_on_where_they_stopped(chromium: Browser, served: Served) -> None:
    begin(chromium, served)
    assert chromium.text("#parts li:nth-child(2) h3") == "Keyframe 2 is missing: what does it show?"
    chromium.wait("document.querySelector('#parts img').naturalWidth > 0")
    chromium.press("Enter", ctrl=True)
    chromium.wait("document.activeElement.id === 'text-0.dense_caption'")  # the first that is empty
    assert chromium.text("#hint").startswith("Write something in every text")
    chromium.type(MARKUP)
    chromium.press("Tab")
    chromium.wait("document.activeElement.id === 'text-1.dense_caption'")
    chromium.type("A hat.")
    chromium.press("Enter", ctrl=True)
    chromium.wait("document.getElementById('where').textContent === '2 of 2'")
    assert chromium.run("document.activeElement.id") == "asked"
    chromium.wait("document.getElementById('progress-text').textContent === '1 of 2'")
    chromium.run("document.getElementById('previous').click()")
    chromium.wait("document.getElementById('text-0.dense_caption')?.value.startsWith('<img')")
    chromium.run("document.getElementById('undo').click()")
    chromium.wait("document.getElementById('text-1.dense_caption').value === ''")
    chromium.run("document.getElementById('redo').click()")
    chromium.wait("document.getElementById('text-1.dense_caption').value === 'A hat.'")
    chromium.open(served.address)
    chromium.wait("document.getElementById('where').textContent === '2 of 2'")
    assert [row.after for row in served.state.log.read()][:2] == [MARKUP, "A hat."]
    assert chromium.complaints == []


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_fits_the_window_and_has_no_serious_fault(chromium: Browser, tmp_path: Path, width: int) -> None:
    pytest.importorskip("axe_core_python")
    from tests.review.test_accessibility import serious_faults

    with serve(opened(write_infilling(tmp_path / "f.jsonl")), WrittenServer, sources=PictureSources(tmp_path / "f.jsonl")) as served:
        begin(chromium, served, width=width)
        assert chromium.run("document.documentElement.scrollWidth <= innerWidth") is True
        assert serious_faults(chromium) == []


def test_a_log_of_a_stranger_with_a_text_that_is_too_long_is_damaged(state: WrittenState) -> None:
    item = state.items[0]
    state.record([action(item.id, item.fields[0], "x" * 5000)])
    state.log.append([action(item.id, item.fields[0], "x" * 5001)])
    with pytest.raises(StoreError, match=r"is damaged \(action 2 has a value"):
        state.catch_up()
