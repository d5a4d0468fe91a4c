"""The steps of a batch around its loop, with executor that do as they are told: what is kept for the next run, checked first, done once."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.corpus.test_driver import Told
from tests.corpus.test_retries import Notes
from vip.config import BatchSettings, CaptionSettings, ExtractSettings
from vip.corpus import batch as module
from vip.corpus.batch import batch, executor_for
from vip.corpus.settings import BatchConfig
from vip.corpus.state import StateDatabase
from vip.corpus.state_dir import home_of
from vip.corpus.workers.caption_client import CaptionServerConfig, CaptionServerReady, CostSoFar
from vip.corpus.workers.pool import ItemFailed
from vip.errors import BackendError, InputError, StoreError, UsageError

CLASSIC = ExtractSettings(embedder="classic")


def listed(folder: Path, count: int) -> str:
    """A list of files, which are there and are no videos."""
    for number in range(count):
        (folder / f"{number}.mp4").touch()
    (folder / "list.txt").write_text("".join(f"{folder}/{number}.mp4\n" for number in range(count)))
    return str(folder / "list.txt")


OPENAI = CaptionSettings(engine="openai", base_url="http://host/v1")


def run(tmp_path: Path, lists: list[str], executor: Told | None = None, **settings: Any) -> tuple[Any, list[str]]:
    """One run whose videos all show nothing. Returns the status and the notes."""
    notes = Notes()
    choices = BatchConfig(BatchSettings(**settings), CLASSIC, OPENAI)
    told = executor or Told(lambda job, number: ItemFailed(job.id, "unreadable", "It shows nothing."))
    status = batch(lists, str(tmp_path / "corpus"), choices, observer=notes, executor=lambda choices, home, fetch: told)
    return status, notes.told


def state_of(tmp_path: Path) -> StateDatabase:
    return StateDatabase(home_of(str(tmp_path / "corpus")))


def test_the_card_is_written_once_and_not_where_nothing_was_done(tmp_path: Path) -> None:
    names = listed(tmp_path, 2)
    told, notes = run(tmp_path, [names])
    assert (told.failed, notes.count("Writing the data card.")) == (2, 1)
    _, notes = run(tmp_path, [names])
    assert "Writing the data card." not in notes
    with closing(state_of(tmp_path)) as state:
        state.put("card_is_due", True)  # as a run that was killed left it
    _, notes = run(tmp_path, [])
    assert "Writing the data card." in notes


def test_another_sample_is_chosen_from_what_was_read_before_and_only_where_it_is_asked_for(tmp_path: Path) -> None:
    told, _ = run(tmp_path, [listed(tmp_path, 6)], sample=2)
    assert (told.failed, told.not_chosen) == (2, 4)
    (tmp_path / "list.txt").unlink()
    told, notes = run(tmp_path, [])
    assert (told.not_chosen, [note for note in notes if "chosen" in note]) == (4, [])
    told, notes = run(tmp_path, [], sample=5)
    assert (told.failed, told.not_chosen) == (5, 1)


def test_settings_hold_for_the_next_run_though_this_one_ends_with_an_error(tmp_path: Path) -> None:
    class Broken(Told):
        def events(self, timeout_s: float) -> Any:
            raise BackendError("It is gone.")

    executor = Broken(lambda job, number: ItemFailed(job.id, "unreadable", "It shows nothing."))
    with pytest.raises(BackendError):
        run(tmp_path, [listed(tmp_path, 1)], executor, shards="webdataset", retry_wait=7.0)
    assert executor.closed
    kept: list[BatchConfig] = []
    told = Told(lambda job, number: ItemFailed(job.id, "unreadable", "It shows nothing."))

    def make(choices: BatchConfig, home: Path, fetch: bool) -> Told:
        kept.append(choices)
        return told

    batch([], str(tmp_path / "corpus"), executor=make)
    assert (kept[0].batch.shards, kept[0].batch.retry_wait, kept[0].extraction.embedder) == ("webdataset", 7.0, "classic")


def test_a_list_that_cannot_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run(tmp_path, [str(tmp_path / "none.txt")])
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------- captions


class Captions:
    """Finds its model, or does not."""

    made: list[Captions]
    error: Exception | None = None

    def __init__(self, config: CaptionServerConfig, note: Callable[[str], None]) -> None:
        self.config, self.closed = config, 0
        self.paid, self.pause = config.paid, None
        self.made.append(self)

    def check(self) -> CaptionServerReady:
        if self.error is not None:
            raise self.error
        found = "offline" if self.config.settings.engine == "offline" else "openai:found"
        return CaptionServerReady(found, found)

    def expect(self, keyframes: int) -> None: ...

    def events(self) -> list[Any]:
        return []

    def submit_batches(self) -> None: ...

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def captions(monkeypatch: pytest.MonkeyPatch) -> list[Captions]:
    monkeypatch.setattr(Captions, "made", [], raising=False)
    monkeypatch.setattr(module, "CaptionClient", Captions)
    return Captions.made


def test_the_model_that_was_found_is_the_one_that_is_asked_and_kept(captions: list[Captions], tmp_path: Path) -> None:
    run(tmp_path, [listed(tmp_path, 1)], caption=True)
    assert captions[0].config.settings.engine == "openai:found"
    with closing(state_of(tmp_path)) as state:
        assert state.get("begun")["caption"]["engine"] == "openai:found"


def test_what_was_spent_and_that_the_server_answered_is_told_to_the_next_run(captions: list[Captions], tmp_path: Path) -> None:
    run(tmp_path, [listed(tmp_path, 1)], caption=True, retry_wait=7.0)
    assert captions[0].config.paid == CostSoFar(0.0, 0)
    assert (captions[0].config.answered, captions[0].config.in_batches, captions[0].config.retry_wait_s) == (False, False, 7.0)
    with closing(state_of(tmp_path)) as state:
        state.put("spent", [1.5, 99])
        state.put("captions_answered", True)
    run(tmp_path, [], caption=True, batch=True)
    assert captions[1].config.paid == CostSoFar(1.5, 99)
    assert (captions[1].config.answered, captions[1].config.in_batches) == (True, True)


def test_an_engine_that_cannot_be_asked_ends_the_batch_before_its_list_is_read(
    captions: list[Captions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = listed(tmp_path, 1)
    monkeypatch.setattr(Captions, "error", BackendError("No key is set."))
    with pytest.raises(BackendError):
        run(tmp_path, [names], caption=True)
    assert captions[0].closed == 1
    assert not (tmp_path / "corpus").exists()


def test_the_process_that_asks_ends_where_a_list_cannot_be_read(captions: list[Captions], tmp_path: Path) -> None:
    with pytest.raises(InputError):
        run(tmp_path, [str(tmp_path / "none.txt")], caption=True)
    assert captions[0].closed == 1


@pytest.mark.parametrize(("engine", "closed"), [("offline", 1), ("openai", 0)])
def test_where_workers_measure_the_process_that_checked_the_engine_ends_before_the_work(
    engine: str, closed: int, captions: list[Captions], tmp_path: Path
) -> None:
    seen: list[int] = []

    def make(choices: BatchConfig, home: Path, fetch: bool) -> Told:
        seen.append(captions[0].closed)
        return Told(lambda job, number: ItemFailed(job.id, "unreadable", "It shows nothing."))

    choices = BatchConfig(BatchSettings(caption=True), CLASSIC, CaptionSettings(engine=engine))
    batch([listed(tmp_path, 1)], str(tmp_path / "corpus"), choices, executor=make)
    assert seen == [closed]


def test_batches_that_are_at_the_server_are_not_left_there(
    captions: list[Captions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = listed(tmp_path, 1)
    monkeypatch.setattr(module, "jobs_in", lambda home: [SimpleNamespace(is_at_server=at_server) for at_server in (True, True, False)])
    with pytest.raises(UsageError, match=r"^2 batches of questions are at the server\. Add --batch to collect the answers, or delete "):
        run(tmp_path, [names], caption=True)
    assert captions == []
    run(tmp_path, [names], caption=True, batch=True)
    monkeypatch.setattr(module, "jobs_in", lambda home: [SimpleNamespace(is_at_server=False)])
    run(tmp_path, [names], caption=True)
    assert len(captions) == 2


# ---------------------------------------------------------------- who works


@pytest.mark.parametrize("fetch", [True, False])
def test_the_runner_decides_who_does_the_work(fetch: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(module, "local_pool", lambda choices, home, *, fetch: made.append(("here", home, fetch)))
    monkeypatch.setattr("vip.corpus.workers.ray_pool.RayPool", lambda choices, home, *, fetch: made.append(("ray", home, fetch)))
    for runner in ("local", "ray"):
        executor_for(BatchConfig(BatchSettings(runner=runner)), tmp_path, fetch)
    assert made == [("here", tmp_path, fetch), ("ray", tmp_path, fetch)]


def test_what_fetching_needs_is_looked_for_where_something_is_to_be_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[bool] = []
    monkeypatch.setattr("vip.download.preflight.preflight", lambda settings, youtube: asked.append(youtube) or ["something is missing"])
    _, notes = run(tmp_path, [listed(tmp_path, 1)])
    assert (asked, "something is missing" in notes) == ([], False)
    for row in ("http://example.org/a.mp4", "aaaaaaaaaaa"):
        (tmp_path / "list.txt").write_text(f"{row}\n")
        _, notes = run(tmp_path, [str(tmp_path / "list.txt")])
        assert "something is missing" in notes
    assert asked == [False, True]
    (tmp_path / "kept").write_text("no folder")
    (tmp_path / "list.txt").write_text("http://example.org/b.mp4\n")
    with pytest.raises(StoreError, match="kept"):
        run(tmp_path, [str(tmp_path / "list.txt")], keep_videos=tmp_path / "kept" / "videos")
