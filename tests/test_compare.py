"""Runs of several samplers on small videos: what is done, reused, left out, and what happens when one fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.clips import clip, stamps
from vip import registry, store
from vip.compare import compare, default_folder
from vip.config import ExtractSettings
from vip.errors import BackendError, InputError, UsageError
from vip.pipeline import extract
from vip.protocols import SamplerCapabilities, VideoSource
from vip.report.combinations import Combination
from vip.store import load_run

SETTINGS = ExtractSettings(keyframes=3, embedder="classic")
DEFAULT, EVERY, REFUSES = (Combination(sampler, "algorithm1") for sampler in ("sync", "all", "refuses"))


class All:
    """Every frame."""

    name = "all"
    capabilities = SamplerCapabilities()

    def __init__(self, detail: str | None) -> None:
        pass

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        return list(video.index.shown_pts.tolist())


class Refuses(All):
    """Needs something that is not there."""

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        raise BackendError("The sampler refuses.")


class Log:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.titles: set[str] = set()

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def track(self, title: str, total: int) -> Iterator[object]:
        self.titles.add(title)
        yield lambda: None


@pytest.fixture(autouse=True)
def _samplers(monkeypatch: pytest.MonkeyPatch) -> None:
    added = {"all": f"{__name__}:All", "refuses": f"{__name__}:Refuses"}
    monkeypatch.setitem(registry.BUILT_IN, "sampler", {**registry.BUILT_IN["sampler"], **added})


@pytest.fixture
def video(tmp_path: Path) -> Path:
    return clip(tmp_path / "a.mp4")


def test_each_combination_is_a_run_that_one_can_go_on_with(video: Path, tmp_path: Path) -> None:
    found = compare(video, [DEFAULT, EVERY], out=tmp_path / "out", settings=SETTINGS)
    assert [choice.combination for choice in found.choices] == [DEFAULT, EVERY]
    for choice, name in zip(found.choices, ("sync+algorithm1", "all+algorithm1"), strict=True):
        run = load_run(tmp_path / "out" / name)
        assert len(run.keyframes) == choice.measures.keyframes == 3
        assert run.manifest
        assert run.manifest.settings["sampler"] == choice.combination.sampler
    assert found.choices[1].measures.candidates == 18
    assert found.page == tmp_path / "out" / "compare.html"
    assert found.page.exists()
    assert {path.name for path in found.folder.iterdir()} == {"sync+algorithm1", "all+algorithm1", "compare.html"}


def test_what_is_there_is_used_again_and_only_the_rest_is_done(video: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = compare(video, [DEFAULT], out=out, settings=SETTINGS)
    before = stamps(out / "sync+algorithm1")
    second = compare(video, [DEFAULT, EVERY], out=out, settings=SETTINGS)
    assert [choice.reused for choice in (*first.choices, *second.choices)] == [False, True, False]
    assert stamps(out / "sync+algorithm1") == before


def test_evenly_spaced_frames_are_as_many_as_the_first_combination_keeps_where_no_number_is_asked_for(video: Path, tmp_path: Path) -> None:
    even = Combination("uniform", "none")
    wanted = [DEFAULT, Combination("all", "none"), even]
    automatic = SETTINGS.model_copy(update={"keyframes": "auto"})
    found = compare(video, wanted, out=tmp_path / "out", settings=automatic)
    first, every, spaced = (choice.measures.keyframes for choice in found.choices)
    assert first == spaced < every == 18
    alone = compare(video, [even, DEFAULT], out=tmp_path / "alone", settings=SETTINGS)
    assert [choice.measures.keyframes for choice in alone.choices] == [3, 3]


def test_one_that_fails_does_not_stop_the_others(video: Path, tmp_path: Path) -> None:
    found = compare(video, [REFUSES, DEFAULT], out=tmp_path / "out", settings=SETTINGS)
    assert [choice.combination for choice in found.choices] == [DEFAULT]
    (failure,) = load_failures(tmp_path / "out")
    assert found.failures == (failure,)
    assert (failure.item, failure.kind, failure.exit_code) == ("refuses+algorithm1", "backend", 4)
    assert "The sampler refuses." in found.page.read_text()
    compare(video, [DEFAULT], out=tmp_path / "out", settings=SETTINGS)
    assert load_failures(tmp_path / "out") == []


def load_failures(folder: Path) -> list[object]:
    return list(store.Run(folder).failures)


def test_what_nobody_asked_for_and_is_not_here_is_left_out_with_a_note(video: Path, tmp_path: Path) -> None:
    log = Log()
    absent, refuses = Combination("absent", "algorithm1", asked=False), Combination("refuses", "algorithm1", asked=False)
    found = compare(video, [DEFAULT, absent, refuses], out=tmp_path / "out", settings=SETTINGS, observer=log)
    assert found.failures == ()
    assert log.notes == [
        "Left out, because not installed here: absent+algorithm1.",
        "Left out refuses+algorithm1: The sampler refuses.",
    ]


@pytest.mark.parametrize("wanted", [[REFUSES], [Combination("refuses", "algorithm1", asked=False)]])
def test_where_all_fail_the_first_error_is_raised_and_nothing_is_left_behind(
    wanted: list[Combination], video: Path, tmp_path: Path
) -> None:
    with pytest.raises(BackendError, match="refuses"):
        compare(video, wanted, out=tmp_path / "out", settings=SETTINGS)
    with pytest.raises(InputError, match=r"missing\.mp4"):
        compare(tmp_path / "missing.mp4", [DEFAULT, EVERY], out=tmp_path / "out", settings=SETTINGS)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_folder_of_other_settings_is_refused_until_it_may_be_replaced(video: Path, tmp_path: Path) -> None:
    compare(video, [DEFAULT], out=tmp_path / "out", settings=SETTINGS)
    other = SETTINGS.model_copy(update={"keyframes": 2})
    with pytest.raises(UsageError, match=r"keyframes 3, now 2.*--overwrite"):
        compare(video, [DEFAULT, EVERY], out=tmp_path / "out", settings=other)
    (choice,) = compare(video, [DEFAULT], out=tmp_path / "out", settings=other, overwrite=True).choices
    assert (choice.measures.keyframes, choice.reused) == (2, False)


def test_a_run_is_no_folder_for_comparisons(video: Path, tmp_path: Path) -> None:
    extract(video, out=tmp_path / "run", settings=SETTINGS)
    before = stamps(tmp_path / "run")
    with pytest.raises(UsageError, match="is a run folder"):
        compare(video, [DEFAULT], out=tmp_path / "run", settings=SETTINGS)
    assert stamps(tmp_path / "run") == before


def test_notes_and_bars_say_which_combination_they_are_about_and_no_note_comes_twice(tmp_path: Path) -> None:
    log = Log()
    still = clip(tmp_path / "still.mp4", [1, 1])
    compare(still, [DEFAULT, EVERY], out=tmp_path / "out", settings=SETTINGS, observer=log)
    assert log.notes == ["sync+algorithm1: 1 of the 3 keyframes asked for: of 6 candidates 5 show the same picture as another."]
    assert {title.split(": ")[0] for title in log.titles} == {DEFAULT.name, EVERY.name}


def test_no_run_is_written_through_a_link_in_the_folder(tmp_path: Path) -> None:
    for name in ("out", "mine"):
        (tmp_path / name).mkdir()
    (tmp_path / "out" / DEFAULT.folder_name).symlink_to(tmp_path / "mine")
    with pytest.raises(UsageError, match="is a link, and vip writes through none"):
        compare(clip(tmp_path / "still.mp4", [1, 1]), [DEFAULT], out=tmp_path / "out", settings=SETTINGS)
    assert list((tmp_path / "mine").iterdir()) == []


def test_the_folder_is_named_like_the_video() -> None:
    assert default_folder(Path("films/holiday.v2.mp4")) == Path("holiday.v2.compare")
