"""The page: figures lead to their samples, texts of strangers are escaped, pictures are shown where they are what they were."""

from __future__ import annotations

import re
from hashlib import sha256
from pathlib import Path

import pytest

from tests.tasks.described import described_folder
from tests.tasks.scoring import WordTask, answer, joined, result, sample, score_of
from vip.config import SampleSettings
from vip.store import load_run
from vip.tasks.budget_curve import budget_points, budget_tables
from vip.tasks.infilling import VideoInfilling
from vip.tasks.page_samples import MOST_LETTERS, PagePictures, mark_differences
from vip.tasks.records import SamplePicture
from vip.tasks.score import ScoredFile, score
from vip.tasks.score_files import Scores
from vip.tasks.score_page import disputed, worst, write_page
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


def test_words_that_the_reference_lacks_are_marked() -> None:
    assert mark_differences("A dog, <b>!", "a cat") == "A <mark>dog</mark>, &lt;<mark>b</mark>&gt;!"


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
