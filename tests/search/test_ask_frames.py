"""Which frames a question is asked about, which words are near them, and what stays as it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

import vip
from tests.clips import clip, stamps
from tests.search.asked import SceneEmbedder, moments_of, run_with_words
from vip import registry, store
from vip.config import ExtractSettings
from vip.errors import InputError, UsageError
from vip.protocols import SilentObserver
from vip.records import SpokenWords
from vip.search.ask_frames import ChosenFrames, choose_frames, words_near, words_of

SRT = "1\n00:00:02,100 --> 00:00:02,900\nNow the pump fails.\n"


@pytest.fixture
def scenes(monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of an embedder with a joint space."""
    monkeypatch.setitem(registry.BUILT_IN["embedder"], "scenes", f"{SceneEmbedder.__module__}:SceneEmbedder")
    return "scenes"


@pytest.fixture
def video(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A video of eight scenes of a second each, in the current folder."""
    monkeypatch.chdir(tmp_path)
    return clip(tmp_path / "talk.mp4", range(8))


def choose(source: Any, question: str = "why scene 5?", *, frames: int = 3, out: Path | None = None, **options: Any) -> ChosenFrames:
    return choose_frames(
        source,
        question,
        frames=frames,
        words=options.pop("words", True),
        out=out,
        overwrite=options.pop("overwrite", False),
        settings=ExtractSettings(**options),
        observer=SilentObserver(),
        isolated=False,
    )


def scenes_of(chosen: ChosenFrames) -> list[int]:
    return [int(keyframe.time_s or 0) for _, keyframe in chosen.keyframes]


def test_with_a_joint_space_the_frames_are_those_that_fit_the_question(video: Path, scenes: str) -> None:
    for number in (5, 2, 7):
        chosen = choose(video, f"why scene {number}?", frames=1, embedder=scenes)
        assert scenes_of(chosen) == [number]
        assert chosen.notes == ()
    assert 5 in scenes_of(choose(video, frames=3, embedder=scenes))


def test_without_one_they_are_spread_over_the_video_and_a_note_says_so(video: Path) -> None:
    chosen = choose(video, frames=4, embedder="classic")
    assert len(chosen.keyframes) == 4
    assert [keyframe.time_s for _, keyframe in chosen.keyframes] == sorted(keyframe.time_s or 0 for _, keyframe in chosen.keyframes)
    (note,) = chosen.notes
    assert "the embedder classic compares no pictures with questions" in note


def test_questions_have_folders_of_their_own_and_the_run_stays_as_it_is(video: Path, scenes: str) -> None:
    run = vip.extract(video, keyframes=4, embedder=scenes)
    before = stamps(run.folder)
    first = choose(video, "scene 1?/../../../evil")
    second = choose(video, "scene 2?")
    again = choose(run.folder, "scene 2?")
    more = choose(video, "scene 2?", frames=5)
    homes = [{folder for folder, _ in chosen.keyframes} for chosen in (first, second, again, more)]
    assert homes[0] != homes[1] == homes[2]
    assert homes[3] != homes[1], "another number of frames is another choice, and the first one's pictures stay"
    assert all(keyframe.path.is_file() for _, keyframe in (*second.keyframes, *more.keyframes))
    assert all(home.parent == Path("talk.vip/asked") for (home,) in homes)
    assert {name: stamp for name, stamp in stamps(run.folder).items() if not name.startswith("asked/")} == before
    assert {path.name for path in Path().iterdir()} == {"talk.mp4", "talk.vip"}


def test_a_run_of_the_same_video_is_used_whatever_its_settings(video: Path) -> None:
    run = vip.extract(video, keyframes=2, sampler="uniform", embedder="classic")
    before = stamps(run.folder)
    chosen = choose(video, frames=2)
    assert {Path("talk.vip")} == {folder.parents[1] for folder, _ in chosen.keyframes}
    assert {name: stamp for name, stamp in stamps(run.folder).items() if not name.startswith("asked/")} == before
    with pytest.raises(UsageError, match="holds another run"):
        choose(video, frames=2, sampler="shots")


def test_a_run_of_another_video_is_not_taken_for_it(video: Path, tmp_path: Path) -> None:
    vip.extract(clip(tmp_path / "other" / "talk.mp4", range(20, 24)), out="talk.vip", embedder="classic")
    with pytest.raises(UsageError, match="holds another run"):
        choose(video)


def test_subtitles_beside_the_video_are_read_for_the_question_alone(video: Path) -> None:
    video.with_suffix(".srt").write_text(SRT)
    answer = vip.ask(video, "why does the pump fail?", frames=8, embedder="classic")
    assert [(frame.label, frame.words) for frame in answer.frames[:1]] == [("talk@0:02", "Now the pump fails.")]
    assert not (Path("talk.vip") / store.WORDS).exists()
    assert all(frame.words is None for frame in vip.ask(video, "why the pump?", frames=7, words=False, embedder="classic").frames)


def test_captions_of_the_run_are_known_of_the_same_frames(video: Path) -> None:
    run = vip.run(video, keyframes=8, engine="offline", embedder="classic")
    answer = vip.ask(video, "what is there?", frames=8)
    captions = {row.time_s: row.dense_caption for row in run.descriptions}
    assert {frame.time_s: frame.caption for frame in answer.frames} == captions
    few = vip.ask(video, "what is there?", frames=3)
    assert {frame.time_s: frame.caption for frame in few.frames} == {frame.time_s: captions[frame.time_s] for frame in few.frames}
    assert len(set(captions.values())) > 1


def test_a_run_whose_video_is_gone_is_asked_by_the_keyframes_that_it_has(video: Path) -> None:
    vip.extract(video, keyframes=4, embedder="classic")
    video.unlink()
    chosen = choose(Path("talk.vip"), frames=6)
    assert len(chosen.keyframes) == 4
    assert {folder for folder, _ in chosen.keyframes} == {Path("talk.vip")}
    assert "Only keyframes that the run has already" in chosen.notes[-1]
    assert not Path("talk.vip/asked").exists()
    assert len(choose(Path("talk.vip"), frames=2).keyframes) == 2


def test_a_folder_of_keyframes_without_a_manifest_can_be_asked(tmp_path: Path) -> None:
    folder = run_with_words(tmp_path / "pictures", 5)
    (folder / store.MANIFEST).unlink()
    chosen = choose(folder, frames=2)
    assert [keyframe.id for _, keyframe in chosen.keyframes] == ["pictures:0001", "pictures:0003"]
    assert sorted(path.name for path in folder.iterdir()) == ["keyframes", "keyframes.jsonl"]


@pytest.mark.parametrize("name", ["asked", "asked/{}"])
def test_a_link_in_a_run_of_a_stranger_leads_nowhere(video: Path, tmp_path: Path, name: str) -> None:
    vip.extract(video, keyframes=4, embedder="classic")
    ((first, _), *_) = choose(video, frames=2).keyframes
    (tmp_path / "outside").mkdir()
    link = Path("talk.vip") / name.format(first.name)
    shutil.rmtree(link)
    link.symlink_to(tmp_path / "outside")
    chosen = choose(Path("talk.vip"), frames=2)
    assert {folder for folder, _ in chosen.keyframes} == {Path("talk.vip")}
    assert list((tmp_path / "outside").iterdir()) == []


def test_the_embedder_of_a_run_of_another_machine_is_not_loaded(video: Path, scenes: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run = vip.extract(video, keyframes=4, embedder=scenes)
    assert run.manifest
    store.write_json(run.folder / store.MANIFEST, run.manifest.model_copy(update={"signature": None}))

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("loaded")

    monkeypatch.setattr(SceneEmbedder, "embed_texts", refuse)
    for source in (run.folder, video):
        chosen = choose(source, frames=2)
        assert len(chosen.keyframes) == 2
        assert "of another machine" in chosen.notes[0]


@pytest.mark.parametrize("frames", [0, -1, 65])
def test_a_number_of_frames_that_cannot_be_looked_at_is_refused(video: Path, frames: int) -> None:
    with pytest.raises(UsageError, match="from 1 to 64"):
        choose(video, frames=frames)
    assert not Path("talk.vip").exists()


def test_a_folder_of_runs_and_a_missing_video_are_said(video: Path, tmp_path: Path) -> None:
    vip.extract(video, out="runs/talk.vip", keyframes=2, embedder="classic")
    with pytest.raises(UsageError, match="is a folder of runs"):
        choose(Path("runs"))
    with pytest.raises(InputError, match=r"nothing\.mp4"):
        choose("nothing.mp4")


# ---------------------------------------------------------------- words


def test_transcribed_speech_is_called_that_before_a_model_reads_it(tmp_path: Path) -> None:
    told = {"talk": "subtitles", "speech": "speech"}
    folders = [run_with_words(tmp_path / f"{name}.vip", 2) for name in told]
    for folder, source in zip(folders, told.values(), strict=True):
        store.write_rows(folder / store.WORDS, [SpokenWords(start_s=0, end_s=0.5, text="Hello.", origin="x", source=source)])  # type: ignore[arg-type]
    words = words_of(moments_of(*folders))
    assert words == {(folders[0], "talk:0000"): "Hello.", (folders[1], "speech:0000"): "(transcribed by a program, not read:) Hello."}


def cue(start_s: float, end_s: float, text: str) -> SpokenWords:
    return SpokenWords(start_s=start_s, end_s=end_s, text=text, origin="x.srt")


def test_words_belong_to_the_frames_beside_which_they_are_said() -> None:
    words = [cue(0, 1, "one"), cue(4, 6.5, "two"), cue(9, 10, "three")]
    assert words_near([2.0, 10.0], words) == ["one two", "two three"]
    assert words_near([2.0, 20.0], words) == ["one two three", None]
    assert words_near([], words) == []


def test_of_many_words_those_nearest_to_the_frame_are_kept_in_their_order() -> None:
    words = [cue(number, number + 1, f"{number:03d} " + "x" * 95) for number in range(100)]
    (near,) = words_near([50.5], words)
    assert near is not None
    numbers = [int(word) for word in near.split() if word.isdigit()]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert (numbers[0] + numbers[-1]) / 2 == pytest.approx(50, abs=1)
    assert 1300 < len(near) <= 1500


def test_what_automatic_subtitles_repeat_is_said_once() -> None:
    assert words_near([1.0], [cue(0, 1, "a  b"), cue(1, 2, "a b"), cue(2, 3, "c")]) == ["a b c"]
