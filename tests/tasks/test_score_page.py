"""The page: figures lead to their samples, texts of strangers are escaped, pictures are shown where they are what they were."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.described import described_folder
from tests.tasks.scoring import WordTask, answer, joined, result, sample, score_of
from vip.config import SampleSettings
from vip.store import load_run
from vip.tasks.budget_curve import budget_points, budget_tables
from vip.tasks.infilling import VideoInfilling
from vip.tasks.page_samples import MOST_LETTERS, PagePictures, card_of, mark_differences, question_of, reference_texts, value_texts
from vip.tasks.prediction import VideoPrediction
from vip.tasks.records import DescriptionText, KeyframeDescription, Prediction, Sample, SamplePicture, Score, TaskResult
from vip.tasks.score import ScoredFile, score
from vip.tasks.score_files import Scores
from vip.tasks.score_page import ScoresView, _axis, disputed, worst, write_page
from vip.tasks.task import SampleSource

HOSTILE = "<script>alert(1)</script>"
SAMPLES = [sample(str(n), "a b", video=f"v{n // 2}", groups={"domain": ("Games",) if n % 2 else (HOSTILE,)}) for n in range(6)]


def scored(folder: Path, words: list[str], engine: str) -> ScoredFile:
    rows = [
        answer(one, text, engine=engine) if text else answer(one, status="unparsed", engine=engine)
        for one, text in zip(SAMPLES, words, strict=True)
    ]
    place = folder / f"folder-{len(engine)}"
    place.mkdir()
    return score(joined(place, SAMPLES, rows), WordTask(), WordTask().metrics)


@pytest.fixture
def files(tmp_path: Path) -> list[ScoredFile]:
    first = scored(tmp_path, ["a b", "a", "x", "a b", "", "a b"], "first")
    return [first, scored(tmp_path, ["a b", "a", "x", "x", "a b", f"a {HOSTILE}"], HOSTILE)]


def page_of(tmp_path: Path, files: list[ScoredFile], runs: tuple[Path, ...] = ()) -> str:
    write_page(Scores(tuple(files), tuple(one.result for one in files)), tmp_path / "page.html", runs=runs)
    return (tmp_path / "page.html").read_text()


def test_the_worst_and_the_most_disputed_samples(files: list[ScoredFile]) -> None:
    assert worst(files, 2) == [2, 1]
    assert disputed(files) == [3, 4, 5]
    assert disputed(files[:1]) == []


def test_every_link_of_the_page_leads_to_a_place_on_it(tmp_path: Path, files: list[ScoredFile]) -> None:
    page = page_of(tmp_path, files)
    links, ids = set(re.findall(r'href="#([^"]+)"', page)), re.findall(r' id="([^"]+)"', page)
    assert {"r1", "r2", "r1-1-1", "r2-1-2"} <= links <= set(ids)
    assert sum(link.startswith("s-") for link in links) == len(SAMPLES)


def test_texts_of_strangers_are_shown_as_text(tmp_path: Path, files: list[ScoredFile]) -> None:
    page = page_of(tmp_path, files)
    assert HOSTILE not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "&lt;b&gt;raw&lt;/b&gt;" in page  # the answer that could not be parsed
    assert page.count("<script>") == 1


def test_a_sample_stands_once_though_it_is_among_the_worst_and_the_most_disputed(tmp_path: Path, files: list[ScoredFile]) -> None:
    ids = re.findall(r' id="(s-[^"]+)"', page_of(tmp_path, files))
    assert len(ids) == len(set(ids))


def test_pictures_are_those_of_the_runs_that_the_user_names(tmp_path: Path) -> None:
    folder = tmp_path / "park"
    described_folder(folder, 6)
    samples = list(VideoInfilling().samples(SampleSource(paths=(str(folder),), settings=SampleSettings(targets=2))))
    pictures = PagePictures([tmp_path])
    assert len(pictures.targets(samples[0])) == 2
    assert all(pictures.targets(samples[0]))
    assert pictures.of_piece(samples[0], samples[0].context[0], None) is not None  # type: ignore[arg-type]
    assert PagePictures([]).targets(samples[0]) == []


def test_a_picture_that_the_samples_name_is_shown_only_with_its_digest_and_where_it_may_be_opened(tmp_path: Path) -> None:
    described_folder(tmp_path / "park", 2)
    keyframe = load_run(tmp_path / "park").keyframes[0]

    def shown(digest: str | None, samples: Path | None = tmp_path / "samples.jsonl", *runs: Path) -> bool:
        named = SamplePicture(source=str(tmp_path / "park"), keyframe_id=keyframe.id, sha256=digest)
        return PagePictures(runs).of_piece(SAMPLES[0], named, samples) is not None

    right = sha256(keyframe.data).hexdigest()
    assert shown(right)
    assert not shown("0" * 64)
    assert not shown(None)
    (tmp_path / "downloads").mkdir()
    strange = tmp_path / "downloads" / "samples.jsonl"
    strange.write_text("of another machine")
    assert not shown(right, strange)
    assert shown(right, strange, tmp_path / "park")
    assert not shown(right, None)


def test_the_keyframes_of_a_run_are_looked_through_once_for_all_pieces(tmp_path: Path) -> None:
    described_folder(tmp_path / "park", 2)
    pictures = PagePictures([tmp_path / "park"])
    one = SAMPLES[0].model_copy(update={"video": "park"})
    pieces = [KeyframeDescription(keyframe_id=keyframe.id, time_s=0.0) for keyframe in load_run(tmp_path / "park").keyframes]
    first = [pictures.of_piece(one, piece, None) for piece in pieces]
    run = pictures._run_of("park")
    assert run is not None
    vars(run)["keyframes"] = []
    assert [pictures.of_piece(one, piece, None) for piece in pieces] == first
    assert all(first)


def test_words_that_the_reference_lacks_are_marked() -> None:
    assert mark_differences("A dog, <b>!", "a cat") == "A <mark>dog</mark>, &lt;<mark>b</mark>&gt;!"
    assert mark_differences("the DOG's", "The dog") == "the DOG&#x27;<mark>s</mark>"


def test_long_texts_are_cut(tmp_path: Path) -> None:
    long = sample("0", "word " * MOST_LETTERS)
    file = score(joined(tmp_path, [long], [answer(long, "a " * MOST_LETTERS)]), WordTask(), WordTask().metrics)
    assert len(page_of(tmp_path, [file])) < 60_000


def test_the_curve_over_the_frame_budget_has_a_line_for_each_way_of_choosing(tmp_path: Path) -> None:
    results = [
        result(
            "nextqa-mc",
            "m",
            name=f"{chosen}{frames}",
            budget={"frames": frames, "chosen": chosen},
            metrics={"accuracy": score_of(value, low=value - 1, high=value + 1)},
        )
        for chosen, values in {"vip": (50, 55, 57), "evenly spaced": (44, 50, 56)}.items()
        for frames, value in zip((4, 8, 16), values, strict=True)
    ]
    (points,) = budget_points(results).values()
    assert {name: [some[frames].value for frames in (4, 8, 16)] for name, some in points.items()} == {
        "vip": [50, 55, 57],
        "evenly spaced": [44, 50, 56],
    }
    (table,) = budget_tables(results)
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["4", "50.00", "44.00"],
        ["8", "55.00", "50.00"],
        ["16", "57.00", "56.00"],
    ]
    write_page(Scores((), tuple(results)), tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count("<polyline") == 2
    assert "evenly spaced, 8 frames: 50.00" in page
    assert not budget_points(results[:1])


def view_of(*files: ScoredFile, more: tuple[TaskResult, ...] = ()) -> ScoresView:
    return ScoresView(Scores(files, (*more, *(one.result for one in files))), PagePictures())


def test_a_sample_stands_in_the_list_of_each_of_its_groups_lowest_values_first(tmp_path: Path) -> None:
    groups = (("Games",), ("Sports", "Games"), ("Sports",))
    samples = [sample(str(place), "a b", video=f"v{place}", groups={"domain": some}) for place, some in enumerate(groups)]
    rows = [answer(samples[0], "a"), answer(samples[1], "x"), answer(samples[2], status="refused")]
    found = {one.title: one for one in view_of(score(joined(tmp_path, samples, rows), WordTask(), WordTask().metrics)).lists}
    members = {title.partition(": ")[2]: [row.id[-1] for row in one.rows] for title, one in found.items()}
    assert members == {
        "all samples of infilling-1, dense": ["1", "2", "0"],
        "domain Games": ["1", "0"],
        "domain Sports": ["1", "2"],
    }
    whole = next(iter(found.values()))
    assert [(row.status, row.values) for row in whole.rows] == [("", ["0.00"]), ("refused", ["0.00"]), ("", ["50.00"])]
    assert [one.total for one in found.values()] == [3, 2, 2]


def test_the_worst_leave_out_what_is_disputed_and_of_equal_ones_the_first_comes_first(files: list[ScoredFile]) -> None:
    assert disputed(files, 2) == [3, 4]
    assert worst(files, 9) == [2, 1, 3, 4, 5, 0]
    assert worst(files, 2, without=[2]) == [1, 3]
    assert disputed([files[0], files[0]]) == []
    view = view_of(*files)
    assert [card.id for card in view.disputed] == [SAMPLES[place].id for place in (3, 4, 5)]
    assert [card.id for card in view.worst] == [SAMPLES[place].id for place in (2, 1, 0)]


def test_figures_at_the_top_count_files_samples_videos_and_what_has_no_answer(files: list[ScoredFile]) -> None:
    other = result("infilling-1", "old", n=1200, unscored={"failed": 2}, budget=None)
    facts = {fact.name: (fact.value, fact.hint) for fact in view_of(*files, more=(other,)).facts}
    assert facts["Files of predictions"][0] == "3"
    assert facts["Samples"] == ("6 to 1,200", "in each file")
    assert (facts["Videos"][0], facts["Without an answer"][0]) == ("3", "3")
    assert facts["Shown to the model"][0] == "frames not stated; text only, 2 described keyframes"


def test_a_result_without_samples_is_named_where_its_figures_would_lead(files: list[ScoredFile]) -> None:
    view = view_of(*files, more=(result("infilling-1", "old"),))
    assert view.unlisted == ["r1"]
    assert [one.anchor for one in view.lists if one.anchor.count("-") == 0] == ["r2", "r3"]
    assert view.title == "Scores of infilling-1"


def test_values_stand_on_one_axis_and_intervals_are_cut_off_at_its_ends() -> None:
    wide = result("infilling-1", "wide", metrics={"rouge-l": score_of(90.0, low=-40.0, high=180.0)})
    none = result("infilling-1", "none", metrics={"rouge-l": Score(value=None, value_answered=None, n=0, signature="s")})
    (metric,) = ScoresView(Scores((), (wide, none)), PagePictures()).metrics
    assert (metric.title, [lane.text for lane in metric.lanes]) == (
        "ROUGE-L, infilling-1, famous",
        ["90.00, 95 % interval -40.00 to 180.00", "no value"],
    )
    assert [lane.link for lane in metric.lanes] == ["#r1", "#r2"]
    svg = metric.lanes[0].svg
    assert 'class="interval" x1="0%" x2="100%"' in svg
    assert 'cx="90%"' in svg
    assert svg.count('class="interval"') == 1, "no end stands at the border of the axis"


FIGURE = st.one_of(st.floats(-1e15, 1e15), st.sampled_from([5e-324, -1e-320, 0.0, 1e15, 1e15 - 0.125]))


@given(st.lists(st.tuples(FIGURE, st.none() | FIGURE, st.none() | FIGURE), min_size=1, max_size=3))
def test_whatever_the_figures_of_a_result_are_they_are_drawn(figures: list[tuple[float, float | None, float | None]]) -> None:
    results = [
        result("infilling-1", str(place), budget={"frames": place}, metrics={"m": score_of(value, low=low, high=high)})
        for place, (value, low, high) in enumerate(figures)
    ]
    view = ScoresView(Scores((), tuple(results)), PagePictures())
    drawn = "".join([*(lane.svg for metric in view.metrics for lane in metric.lanes), *(chart.svg for chart in view.curves)])
    assert not re.search(r"\b(nan|inf)\b", drawn)
    assert view.tables


def test_a_card_shows_a_hundred_texts_of_an_answer_and_of_the_reference(tmp_path: Path) -> None:
    many = sample("0", *["a b"] * 300)
    file = score(joined(tmp_path, [many], [answer(many, *["a c"] * 300)]), WordTask(), WordTask().metrics)
    card = card_of([file], ["one"], 0, PagePictures())
    assert [len(shown) - 1 for shown in (card.reference, card.answers[0].texts, card.rows)] == [100, 100, 100]
    assert card.reference[-1] == card.answers[0].texts[-1] == "… and 200 more"
    assert card.answers[0].texts[0] == "a <mark>c</mark>"


def test_a_curve_has_twenty_ways_of_choosing_and_fifty_budgets_of_each() -> None:
    some = [
        result("infilling-1", "m", budget={"frames": frames, "chosen": str(way)}, metrics={"m": score_of(1.0)})
        for way in range(30)
        for frames in range(60)
    ]
    (points,) = budget_points(some).values()
    assert (len(points), {len(one) for one in points.values()}) == (20, {50})


def test_a_sample_on_a_card_shows_each_answer_with_its_values(files: list[ScoredFile]) -> None:
    card = card_of(files, ["first", "second"], 3, PagePictures())
    assert (card.id, card.video, card.groups, card.question) == (SAMPLES[3].id, "v1", "domain: Games", "1 keyframes to describe")
    assert [(one.label, one.values, list(map(str, one.texts))) for one in card.answers] == [
        ("first", [("word-share", "100.00")], ["a b"]),
        ("second", [("word-share", "0.00")], ["<mark>x</mark>"]),
    ]
    without = card_of(files, ["first", "second"], 4, PagePictures()).answers[0]
    assert (without.status, without.reason, list(without.texts)) == ("unparsed", "it is not JSON: <b>raw</b>", [])
    assert card.answers[0].reason == ""


@pytest.mark.parametrize(
    ("ticks", "labels"),
    [
        ((0.0, 50.0, 100.0), ["0", "50", "100"]),
        ((0.0, 1.0, 2.0), ["0", "1", "2"]),
        ((0.0, 0.5, 1.0), ["0.0", "0.5", "1.0"]),
        ((0.2, 0.4, 0.6), ["0.2", "0.4", "0.6"]),
        ((0.1, 0.15, 0.2), ["0.10", "0.15", "0.20"]),
    ],
)
def test_ticks_have_as_many_digits_as_tell_them_apart(ticks: tuple[float, ...], labels: list[str]) -> None:
    assert re.findall(r">([\d.]+)</text>", _axis(ticks)) == labels


def asking(ask: object, *values: object, **more: object) -> Sample:
    return Sample.model_validate(
        {"id": "a", "task": "t", "task_version": 1, "video": "v", "ask": ask, "reference": {"values": values} if values else None, **more}
    )


CHOICE = {"kind": "choice", "question": "Who?", "options": ("Ann", "Bob")}


def test_what_is_asked_and_what_is_right_is_said_in_words() -> None:
    choice = asking(CHOICE, 1)
    assert (question_of(choice), reference_texts(choice)) == ("Who? (0) Ann (1) Bob", ["1: Bob"])
    for value, text in ((0, "0: Ann"), (2, "2"), (-1, "-1")):
        assert value_texts(choice, Prediction(sample_id="a", value=value)) == [text]
    assert value_texts(choice, Prediction(sample_id="a", value=None, status="failed")) == []
    assert question_of(asking({"kind": "free_text", "question": "Why?"})) == "Why?"
    assert reference_texts(asking({"kind": "free_text", "question": "Why?"}, "one", "two")) == ["one", "two"]
    assert reference_texts(asking({"kind": "free_text", "question": "Why?"})) == []
    assert question_of(asking({"kind": "blank", "text": "A _____."})) == "A _____."
    ranked = asking({"kind": "rank", "query": "a dog", "moments": True}, [{"video": "v", "start_s": 61.0, "end_s": 62.5}])
    assert question_of(ranked) == "a dog"
    assert reference_texts(ranked) == ["v 1:01.0–1:02.5"]
    many = Prediction(sample_id="a", value=tuple(f"v{number}" for number in range(9)))
    assert value_texts(ranked, many) == ["v0", "v1", "v2", "v3", "v4"]
    rows = [{"dense_caption": f"c{number}"} for number in range(7)]
    described = asking({"kind": "describe_keyframes", "count": 7, "representation": "dense"}, rows)
    every = [f"c{number}" for number in range(7)]
    assert reference_texts(described) == every
    assert value_texts(described, Prediction(sample_id="a", value=tuple(map(DescriptionText.model_validate, rows)))) == every


def test_a_page_shows_no_more_pictures_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.page_samples.MOST_PICTURES", 3)
    described_folder(tmp_path / "park", 7)
    samples = list(VideoInfilling().samples(SampleSource(paths=(str(tmp_path / "park"),), settings=SampleSettings(targets=2))))
    pictures = PagePictures([tmp_path])
    shown = [picture is not None for one in samples for picture in pictures.targets(one)]
    assert sum(shown) == 3 < len(shown)
    assert pictures.of_piece(samples[0], samples[0].context[0], tmp_path / "samples.jsonl") is None  # type: ignore[arg-type]


def test_the_picture_of_a_described_keyframe_is_the_one_that_was_named_and_not_another_of_its_run(tmp_path: Path) -> None:
    described_folder(tmp_path / "park", 2)
    first, second = load_run(tmp_path / "park").keyframes
    named = SamplePicture(source=str(tmp_path / "park"), keyframe_id=first.id, sha256=sha256(first.data).hexdigest())
    piece = KeyframeDescription(keyframe_id=first.id, time_s=0.0, dense_caption="x", picture=named)
    beside = tmp_path / "samples.jsonl"
    assert PagePictures().of_piece(SAMPLES[0], piece, beside) is not None
    assert PagePictures().of_piece(SAMPLES[0], piece, None) is None, "a published sample names no pictures"
    others = tmp_path / "others" / "samples.jsonl"
    others.parent.mkdir()
    others.write_text("{}\n", encoding="utf-8")
    assert PagePictures().of_piece(SAMPLES[0], piece, others) is None, "the run does not lie beside it"
    (tmp_path / "park" / "keyframes" / "0000.jpg").write_bytes(second.data)
    assert PagePictures().of_piece(SAMPLES[0], piece, beside) is None, "it has changed since the samples were made"


def test_the_targets_are_the_keyframes_between_those_that_are_given_or_behind_them(tmp_path: Path) -> None:
    described_folder(tmp_path / "park", 6)
    keyframes = load_run(tmp_path / "park").keyframes
    for task, shown, hidden in ((VideoInfilling(), (1, 4), (2, 3)), (VideoPrediction(), (1,), (2, 3))):
        settings = SampleSettings(targets=2)
        one = list(task.samples(SampleSource(paths=(str(tmp_path / "park"),), settings=settings)))[1]
        pictures = PagePictures([tmp_path])
        assert [piece.keyframe_id for piece in one.context] == [keyframes[place].id for place in shown]  # type: ignore[union-attr]
        expected = [PagePictures([tmp_path])._shrink(keyframes[place]) for place in hidden]
        assert pictures.targets(one) == expected
