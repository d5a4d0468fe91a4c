"""The Python API: what a run gives, what is reused, what is refused, and what a killed run leaves."""

from __future__ import annotations

import asyncio
import gc
import json
import shutil
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from io import BytesIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import vip
from tests.api_server import ApiServer
from tests.captioning.keyframes import manifest
from tests.cli.terminal import said_of
from tests.clips import clip, picture, result, stamps
from vip import pipeline, store
from vip.config import CaptionSettings, ExtractSettings
from vip.errors import BackendError, EngineError, InputError, ReplyError, SomeFailedError, UsageError, VipError
from vip.extraction.existing_run import is_same_file
from vip.extraction.write_keyframes import write_keyframes
from vip.llm.budget import Budget
from vip.protocols import SilentObserver


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a video of six scenes and its run of four keyframes, neither to be changed."""
    folder = tmp_path_factory.mktemp("made")
    vip.extract(clip(folder / "video.mp4"), out=folder / "video.vip", keyframes=4)
    return folder


@pytest.fixture
def video(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy2(made / "video.mp4", tmp_path / "video.mp4"))


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    """The run folder of `video`, four keyframes."""
    return Path(shutil.copytree(made / "video.vip", tmp_path / "video.vip"))


class Listener:
    """An observer that remembers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.steps: dict[str, tuple[int, list[int]]] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> nullcontext[Callable[[], None]]:
        done: list[int] = []
        self.steps[title] = total, done
        return nullcontext(lambda: done.append(1))


@pytest.fixture
def no_decoding(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the video is opened again")

    monkeypatch.setattr(pipeline, "open_video", refuse)


# ---------------------------------------------------------------- extract


def test_a_run_gives_keyframes_in_time_order_with_pictures_on_demand(video: Path, folder: Path) -> None:
    run = vip.extract(video, out=folder, keyframes=4)
    assert len(run.keyframes) == 4
    times_s = [keyframe.time_s for keyframe in run.keyframes]
    assert times_s == sorted(times_s, key=lambda time_s: time_s or 0)
    assert all(keyframe.image.shape == (90, 160, 3) and keyframe.image.dtype == np.uint8 for keyframe in run.keyframes)
    assert [keyframe.path.exists() for keyframe in run.keyframes] == [True] * 4
    assert run.keyframes[0].image is not run.keyframes[0].image


def test_every_candidate_has_a_reason_and_the_counts_add_up(folder: Path) -> None:
    run = vip.load_run(folder)
    assert run.manifest is not None
    assert run.manifest.counts is not None
    assert len(run.candidates) == run.manifest.counts.candidates
    assert all(row.decision.reason for row in run.candidates)
    assert sum(row.decision.kept for row in run.candidates) == len(run.keyframes) == run.manifest.counts.keyframes == 4
    assert run.embeddings is not None
    assert len(run.embeddings) == len(run.candidates)


@pytest.mark.parametrize("of_others", [False, True])
def test_a_run_that_is_taken_as_it_is_says_its_notes_again_unless_others_made_it(video: Path, folder: Path, of_others: bool) -> None:
    shutil.rmtree(folder)
    first, again = Listener(), Listener()
    run = vip.extract(video, out=folder, keyframes=30, observer=first)
    assert run.manifest is not None
    (note,) = run.manifest.notes
    assert note in first.notes
    if of_others:
        store.write_json(folder / "manifest.json", run.manifest.model_copy(update={"signature": "of another machine"}))
    vip.extract(video, out=folder, keyframes=30, observer=again)
    assert again.notes == ([] if of_others else [note])


@pytest.mark.usefixtures("_new_objects_only")
def test_nothing_of_the_analysis_is_held_while_pictures_are_written(video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    analyses, steps = [], []
    analyze, select, write = pipeline.analyze_video, pipeline.select, pipeline.write_keyframes

    def analyzing(*given: Any) -> Any:
        found = analyze(*given)
        analyses.append(weakref.ref(found.embeddings.image))
        return found

    def writing(*given: Any) -> None:
        gc.collect()
        steps.append(f"write, held: {analyses[0]() is not None}")
        write(*given)

    monkeypatch.setattr(pipeline, "analyze_video", analyzing)
    monkeypatch.setattr(pipeline, "select", lambda *given: (steps.append("select"), select(*given))[1])
    monkeypatch.setattr(pipeline, "write_keyframes", writing)
    monkeypatch.setattr(pipeline, "memory", SimpleNamespace(give_back=lambda: steps.append("give back")))
    vip.extract(video, out=tmp_path / "out", keyframes=4)
    assert steps == ["give back", "select", "give back", "write, held: False"]


def test_the_folder_is_named_after_the_video_in_the_current_one(video: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert vip.extract(video, keyframes=2).folder == Path("video.vip")
    assert (tmp_path / "elsewhere" / "video.vip" / "manifest.json").exists()


def test_a_static_video_gives_fewer_and_says_so(tmp_path: Path) -> None:
    listener = Listener()
    run = vip.extract(clip(tmp_path / "still.mp4", [7, 7, 7]), out=tmp_path / "run", keyframes=5, observer=listener)
    assert len(run.keyframes) == 1
    assert "1 of the 5 keyframes asked for" in run.notes[-1]
    assert run.notes[-1] in listener.notes


def test_the_observer_hears_what_auto_became_and_every_step(video: Path, tmp_path: Path) -> None:
    listener = Listener()
    run = vip.extract(video, out=tmp_path / "run", keyframes=3, observer=listener)
    assert any(note.startswith("embedder: classic (built in); ") for note in listener.notes)
    assert run.manifest is not None
    assert run.manifest.backends["embedder"] == "classic"
    assert all(len(done) == total for total, done in listener.steps.values())


def test_keywords_go_before_the_settings_they_come_with(video: Path, tmp_path: Path) -> None:
    run = vip.extract(video, out=tmp_path / "run", settings=ExtractSettings(keyframes=5, format="png"), keyframes=2)
    assert [keyframe.path.suffix for keyframe in run.keyframes] == [".png"] * 2


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"keyframe": 3}, UsageError, 'Did you mean "keyframes"'),
        ({"keyframes": 0}, UsageError, "keyframes = 0"),
        ({"embedder": "clasic"}, BackendError, 'Did you mean "classic"'),
        ({"detector": "opencv:x"}, BackendError, "opencv"),
        ({"sampler": "nope"}, BackendError, 'There is no sampler "nope"'),
    ],
)
def test_what_is_asked_wrongly_leaves_nothing_behind(
    options: dict[str, object], kind: type[VipError], words: str, video: Path, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=words):
        vip.extract(video, out=tmp_path / "run", **options)
    assert list(tmp_path.iterdir()) == [video]


# ---------------------------------------------------------------- reuse and refusal


@pytest.mark.usefixtures("no_decoding")
@pytest.mark.parametrize("overwrite", [False, True])
def test_a_run_of_the_same_video_and_settings_is_returned_untouched(video: Path, folder: Path, overwrite: bool) -> None:
    before = stamps(folder)
    run = vip.extract(video, out=folder, keyframes=4, overwrite=overwrite)
    assert len(run.keyframes) == 4
    assert stamps(folder) == before


@pytest.mark.usefixtures("no_decoding")
def test_a_run_from_before_there_was_a_setting_counts_as_one_with_its_default(video: Path, folder: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    del manifest["settings"]["text_weight"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert len(vip.extract(video, out=folder, keyframes=4).keyframes) == 4
    with pytest.raises(UsageError, match=r"\(text_weight \S+, now 0\.9\)"):
        vip.extract(video, out=folder, keyframes=4, text_weight=0.9)


class Named:
    """A file of 1 byte, as a source knows it."""

    location = "v.mp4"

    def __init__(self, size_bytes: int = 1, modified_ns: int = 0, sha256: str = "a", location: str = "v.mp4") -> None:
        self.location, self._sha256 = location, sha256
        self._state = SimpleNamespace(size_bytes=size_bytes, modified_ns=modified_ns) if size_bytes else None

    def state(self) -> Any:
        return self._state

    def sha256(self) -> str:
        return self._sha256


@pytest.mark.parametrize(
    ("known_sha256", "named", "same"),
    [
        (None, Named(), True),
        (None, Named(modified_ns=9), False),
        (None, Named(location="w.mp4"), False),
        (None, Named(size_bytes=2), False),
        ("a", Named(), True),
        ("a", Named(location="w.mp4", sha256="b"), True),
        ("a", Named(location="w.mp4", modified_ns=9), True),
        ("a", Named(modified_ns=9, sha256="b"), False),
        ("a", Named(size_bytes=2), False),
        ("a", Named(size_bytes=0), True),
        ("a", Named(size_bytes=0, location="w.mp4"), False),
    ],
)
def test_a_video_is_known_by_its_size_and_its_date_or_content(known_sha256: str | None, named: Any, same: bool) -> None:
    """One that is not there by its name alone."""
    known = manifest().video.model_copy(update={"sha256": known_sha256})
    assert is_same_file(known, named) is same


def test_pictures_that_cannot_be_written_any_more_are_counted(folder: Path) -> None:
    run = vip.load_run(folder)
    assert run.manifest is not None
    for keyframe in run.keyframes[:2]:
        keyframe.path.unlink()
    with pytest.raises(InputError, match=r"2 keyframes could be decoded before and cannot now"):
        write_keyframes(folder, run.manifest, SilentObserver(), None)


def test_rows_of_keyframes_have_the_size_of_their_picture(folder: Path, made: Path) -> None:
    run = vip.load_run(folder)
    assert run.manifest is not None
    write_keyframes(folder, run.manifest, SilentObserver(), None)
    for one in (folder, made / "video.vip"):
        assert [(row.record.width_px, row.record.height_px) for row in vip.load_run(one).keyframes] == [(160, 90)] * 4


def test_what_is_not_thinned_out_is_of_the_right_number_from_the_start(video: Path, tmp_path: Path) -> None:
    run = vip.extract(video, out=tmp_path / "run", sampler="uniform", pruner="none", keyframes=5)
    assert (len(run.candidates), len(run.keyframes)) == (5, 5)
    run = vip.extract(video, out=tmp_path / "more", sampler="uniform", pruner="none", keyframes=5, candidates=7)
    assert len(run.candidates) == 7


@pytest.mark.usefixtures("no_decoding")
def test_a_copy_of_the_video_under_another_name_and_date_is_the_same_video(video: Path, folder: Path) -> None:
    copy = Path(shutil.copyfile(video, video.with_name("copy.mp4")))
    assert len(vip.extract(copy, out=folder, keyframes=4).keyframes) == 4


@pytest.mark.usefixtures("no_decoding")
def test_a_finished_run_needs_its_video_no_more(made: Path, folder: Path, video: Path) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["video"]["path"] = str(video)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    video.unlink()
    assert len(vip.extract(video, out=folder, keyframes=4).keyframes) == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"keyframes": 5}, r"holds another run \(keyframes 4, now 5\)"),
        ({"keyframes": 4, "format": "png"}, r"\(format jpg, now png\)"),
        ({"keyframes": 4, "min_sharpness": 1.5}, r"\(min_sharpness None, now 1.5\)"),
        ({}, r"\(keyframes 4, now 12\)"),
    ],
)
def test_a_run_of_other_settings_is_refused_with_what_differs(options: dict[str, object], words: str, video: Path, folder: Path) -> None:
    before = stamps(folder)
    with pytest.raises(UsageError, match=f"{words}.*-o.*--overwrite"):
        vip.extract(video, out=folder, **options)
    assert stamps(folder) == before


def test_a_run_of_another_video_is_refused_with_both_names(folder: Path, tmp_path: Path) -> None:
    other = clip(tmp_path / "other.mp4", [9])
    with pytest.raises(UsageError, match=r"\(video video\.mp4, now other\.mp4\)"):
        vip.extract(other, out=folder, keyframes=4)
    same_name = clip(tmp_path / "b" / "video.mp4", [9])
    with pytest.raises(UsageError, match=rf"made\d+/video\.mp4, now {same_name}\)"):
        vip.extract(same_name, out=folder, keyframes=4)


def test_a_video_that_was_changed_under_its_name_is_another(made: Path, folder: Path, video: Path) -> None:
    data = bytearray(video.read_bytes())
    data[-1] ^= 1
    video.write_bytes(data)
    with pytest.raises(UsageError, match="holds another run"):
        vip.extract(video, out=folder, keyframes=4)


def test_overwriting_replaces_the_run_and_keeps_foreign_files(video: Path, folder: Path) -> None:
    mine = [folder / "notes.txt", folder / "keyframes" / "holiday.jpg"]
    for path in mine:
        path.write_text("mine")
    run = vip.extract(video, out=folder, overwrite=True, keyframes=2, format="png")
    assert [path.read_text() for path in mine] == ["mine"] * 2
    assert sorted(path.name for path in (folder / "keyframes").iterdir()) == [*(k.path.name for k in run.keyframes), "holiday.jpg"]
    assert len(run.keyframes) == 2


def test_a_folder_of_other_things_is_refused_and_kept(video: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="is not empty and no run of vip"):
        vip.extract(video, out=tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.txt"]
    vip.extract(video, out=tmp_path / "mine", overwrite=True, keyframes=2)
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "mine"


@pytest.mark.parametrize(
    "name", ["manifest.json", "candidates.jsonl", "keyframes.jsonl", "embeddings.npz", "analysis.npz", "descriptions.jsonl"]
)
def test_overwriting_heals_a_damaged_file(name: str, video: Path, folder: Path, made: Path) -> None:
    (folder / name).write_bytes(b"\x00 damaged")
    vip.extract(video, out=folder, keyframes=4, overwrite=True)
    assert result(folder) == result(made / "video.vip")


@pytest.mark.parametrize(
    "pattern", ["manifest.json", "candidates.jsonl", "keyframes.jsonl", "embeddings.npz", "analysis.npz", "keyframes/0002*"]
)
def test_overwriting_brings_back_what_is_gone(pattern: str, video: Path, folder: Path, made: Path) -> None:
    for path in folder.glob(pattern):
        path.unlink()
    vip.extract(video, out=folder, keyframes=4, overwrite=True)
    assert result(folder) == result(made / "video.vip")


# ---------------------------------------------------------------- killed


class Killed(BaseException):
    """SIGKILL, as far as files are concerned."""


@contextmanager
def killed_at(write: int) -> Iterator[None]:
    """Stop in the middle of this write, with half of the file beside its place."""
    count = 0
    whole = store.replacing

    @contextmanager
    def replacing(path: Path, *, inside: Path | None = None, durable: bool = False) -> Iterator[BytesIO]:
        nonlocal count
        count += 1
        if count < write:
            with whole(path, inside=inside, durable=durable) as file:
                yield file  # type: ignore[misc]
            return
        buffer = BytesIO()
        yield buffer
        data = buffer.getvalue()
        path.with_name(f".{'0' * 32}{store.PARTIAL_SUFFIX}").write_bytes(data[: len(data) // 2])
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "replacing", replacing)
        yield


@pytest.mark.slow
def test_killed_at_any_write_of_an_overwrite_the_same_call_ends_the_same(video: Path, folder: Path, tmp_path: Path) -> None:
    again = tmp_path / "again"
    expected = result(vip.extract(video, out=tmp_path / "fresh", keyframes=2).folder)
    for write in range(1, 100):
        shutil.copytree(folder, again, dirs_exist_ok=True)
        try:
            with killed_at(write):
                vip.extract(video, out=again, keyframes=2, overwrite=True)
            break
        except Killed:
            _never_passes_for_whole_when_it_is_not(again)
        assert result(vip.extract(video, out=again, keyframes=2, overwrite=True).folder) == expected, f"killed at write {write}"
        shutil.rmtree(again)
    assert write == 11  # manifest, candidates, vectors, looks, thumbnails, manifest, 2 pictures, rows, manifest were all struck


def test_killed_before_the_old_files_are_cleared_away_nothing_is_mixed(video: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill(_: Path) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(store, "clear", kill)
        with pytest.raises(Killed):
            vip.extract(video, out=folder, keyframes=2, overwrite=True)
    with pytest.raises(InputError, match="unfinished"):
        vip.load_run(folder)
    with pytest.raises(InputError, match="unfinished"):
        vip.caption(folder, engine="fake")
    assert len(vip.extract(video, out=folder, keyframes=2).keyframes) == 2


def _never_passes_for_whole_when_it_is_not(folder: Path) -> None:
    with suppress(InputError):  # "unfinished"
        run = vip.load_run(folder)
        assert run.manifest is not None
        assert run.manifest.settings["keyframes"] == len(run.keyframes)
        assert all(keyframe.image.size for keyframe in run.keyframes)


# ---------------------------------------------------------------- caption


def test_a_notebook_with_its_running_loop_can_do_everything(video: Path, tmp_path: Path) -> None:
    async def cell() -> vip.Run:
        run = vip.extract(video, out=tmp_path / "run", keyframes=2)
        return vip.caption(run, engine="fake")

    assert len(asyncio.run(cell()).descriptions) == 2


def test_an_error_in_a_running_loop_is_the_same_error(folder: Path) -> None:
    async def cell() -> None:
        vip.caption(folder, engine="fake:auth")

    with pytest.raises(EngineError, match="does not accept its key"):
        asyncio.run(cell())


def test_the_same_run_is_paid_for_once_however_often_it_is_captioned(folder: Path) -> None:
    run = vip.load_run(folder)
    with ApiServer() as server:
        settings = CaptionSettings(engine="openai:tiny-vlm", base_url=server.base_url)
        assert run.descriptions == []
        vip.caption(run, settings=settings)
        before = stamps(folder)
        vip.caption(run, settings=settings)
        vip.caption(folder, settings=settings)
        vip.caption(folder / "keyframes", settings=settings)
        assert len(server.chats) == 4
    assert [row.dense_caption for row in run.descriptions] == [said_of(keyframe.path) for keyframe in run.keyframes]
    assert {name for name, at in stamps(folder).items() if at != before[name]} <= {"descriptions.jsonl"}


def test_a_run_that_is_open_sees_its_new_descriptions(folder: Path) -> None:
    run = vip.load_run(folder)
    assert "descriptions=0" in repr(run)
    vip.caption(run, engine="fake")
    assert "descriptions=4" in repr(run)
    assert [row.keyframe_id for row in run.descriptions] == [keyframe.id for keyframe in run.keyframes]


def test_another_engine_is_refused_until_it_may_replace(folder: Path) -> None:
    vip.caption(folder, engine="fake")
    before = stamps(folder)
    with pytest.raises(UsageError, match="holds 4 descriptions by fake, which --engine offline would replace"):
        vip.caption(folder, engine="offline")
    assert stamps(folder) == before
    assert {row.engine for row in vip.caption(folder, engine="offline", overwrite=True).descriptions} == {"offline"}


@pytest.mark.parametrize(("engine", "kind"), [("fake:auth", EngineError), ("fake:refuse", ReplyError), ("fake:badjson", ReplyError)])
def test_old_descriptions_stay_when_the_new_engine_gives_none(engine: str, kind: type[VipError], folder: Path) -> None:
    old = vip.caption(folder, engine="offline").descriptions
    with pytest.raises(kind):
        vip.caption(folder, engine=engine, overwrite=True)
    assert vip.load_run(folder).descriptions == old


def test_failures_are_told_and_go_when_there_are_none_left(folder: Path) -> None:
    with pytest.raises(ReplyError, match="None of 4 keyframes"):
        vip.caption(folder, engine="fake:refuse")
    assert [row.kind for row in vip.load_run(folder).failures] == ["refusal"] * 4
    assert vip.caption(folder, engine="fake").failures == []
    assert not (folder / "failures.jsonl").exists()


def test_a_keyframe_whose_picture_is_gone_costs_that_keyframe(folder: Path) -> None:
    run = vip.load_run(folder)
    run.keyframes[1].path.unlink()
    with pytest.raises(SomeFailedError, match="1 of 4 keyframes"):
        vip.caption(folder, engine="fake")
    assert [row.item for row in run.failures] == [run.keyframes[1].id]
    assert len(run.descriptions) == 3


def test_the_whole_job_ends_with_a_page(video: Path, tmp_path: Path) -> None:
    done = vip.run(video, out=tmp_path / "run", extraction=ExtractSettings(keyframes=2), captioning=CaptionSettings(engine="fake"))
    assert len(done.descriptions) == 2
    assert "made up" in (tmp_path / "run" / "report.html").read_text().lower()


# ---------------------------------------------------------------- folders of pictures


def test_the_whole_job_tells_its_steps_and_counts_in_the_ledger_that_it_is_given(video: Path, folder: Path) -> None:
    listener, budget = Listener(), Budget()
    vip.run(video, out=folder, keyframes=4, engine="offline", observer=listener, budget=budget)
    assert {title: (total, len(done)) for title, (total, done) in listener.steps.items()} == {"Describing": (4, 4)}
    assert budget.usage.requests == 4


def test_any_folder_of_pictures_can_be_described(tmp_path: Path) -> None:
    for number, name in enumerate(["b.png", "a.jpg", "c.WEBP", "d.bmp"]):
        shutil.move(picture(tmp_path / f"{number}{Path(name).suffix.lower()}", number), tmp_path / name)
    (tmp_path / "notes.txt").write_text("mine")
    run = vip.caption(tmp_path, engine="fake")
    assert [row.keyframe_id for row in run.descriptions] == ["a.jpg", "b.png", "c.WEBP", "d.bmp"]
    assert [(keyframe.time_s, keyframe.image.shape) for keyframe in run.keyframes] == [(None, (90, 160, 3))] * 4
    assert run.manifest is None


def test_only_new_pictures_of_a_folder_are_asked_for(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 0)
    with ApiServer() as server:
        settings = CaptionSettings(engine="openai:tiny-vlm", base_url=server.base_url)
        vip.caption(tmp_path, settings=settings)
        picture(tmp_path / "b.png", 1)
        assert len(vip.caption(tmp_path, settings=settings).descriptions) == 2
        assert len(server.chats) == 2


def test_an_unreadable_picture_costs_itself_and_is_named(tmp_path: Path) -> None:
    picture(tmp_path / "a.png", 0)
    (tmp_path / "b.jpg").write_text("no picture")
    with pytest.raises(SomeFailedError, match="1 of 2"):
        vip.caption(tmp_path, engine="fake")
    run = vip.load_run(tmp_path)
    assert [row.keyframe_id for row in run.descriptions] == ["a.png"]
    assert [(row.item, row.kind) for row in run.failures] == [("b.jpg", "unreadable")]


def test_when_no_picture_can_be_read_it_is_the_input_that_is_at_fault(tmp_path: Path) -> None:
    (tmp_path / "b.jpg").write_text("no picture")
    with pytest.raises(InputError, match=r"The only picture .* cannot be read: .*b\.jpg is not a picture"):
        vip.caption(tmp_path, engine="fake")
    assert [path.name for path in tmp_path.iterdir()] == ["b.jpg"]
