"""An evaluation in one call, from the library."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.tasks.described import described_folder
from vip.config import CaptionSettings, PredictSettings, SampleSettings
from vip.errors import BackendError, EngineError, InputError, StoreError, UsageError
from vip.protocols import SilentObserver
from vip.tasks import evaluate as module
from vip.tasks.evaluate import evaluate
from vip.tasks.fiber.task import Fiber
from vip.tasks.infilling import VideoInfilling


class Notes(SilentObserver):
    def __init__(self) -> None:
        self.texts: list[str] = []

    def note(self, text: str) -> None:
        self.texts.append(text)


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    return [str(described_folder(tmp_path / "runs" / name, 6, first_word=4 * number)) for number, name in enumerate("ab")]


@pytest.mark.extra("rouge_score")
def test_a_training_set_is_for_the_tasks_that_have_a_use_for_it(runs: list[str], tmp_path: Path) -> None:
    notes = Notes()
    (tmp_path / "train.csv").write_text("video,qid,type,question,answer\n")
    settings = SampleSettings(context=1)
    scores, files = evaluate(
        runs, ["infilling"], tmp_path / "out", samples=settings, train=tmp_path / "train.csv", metrics=["rouge-l"], observer=notes
    )
    assert not [text for text in notes.texts if text.startswith("Left out")]
    assert {result.engine for result in scores.results} == {
        f"baseline:{name}" for name in ("copy-nearest", "frequent-words", "random-keyframe", "nearest-text")
    }
    assert all(path.is_file() for path in files)


@pytest.mark.extra("rouge_score")
def test_samples_of_other_settings_are_not_replaced_unasked(runs: list[str], tmp_path: Path) -> None:
    def again(context: int, *, overwrite: bool = False) -> bytes:
        evaluate(
            runs,
            ["prediction-1"],
            tmp_path / "out",
            samples=SampleSettings(targets=context),
            metrics=["rouge-l"],
            overwrite=overwrite,
            observer=Notes(),
        )
        (path,) = (tmp_path / "out").glob("*/samples.jsonl")
        return path.read_bytes()

    first = again(1)
    assert again(1) == first
    with pytest.raises(UsageError, match="holds other samples than these settings make"):
        again(2)
    assert again(1) == first
    assert again(2, overwrite=True) != first
    assert not list((tmp_path / "out").glob("*/*.new"))


@pytest.mark.extra("rouge_score")
def test_baselines_draw_by_the_seed_of_the_evaluation_and_prompts_have_files_of_their_own(runs: list[str], tmp_path: Path) -> None:
    def baseline(seed: int) -> bytes:
        evaluate(runs, ["prediction"], tmp_path / "out", predictions=PredictSettings(seed=seed), metrics=["rouge-l"], observer=Notes())
        (path,) = (tmp_path / "out").glob("*/random-keyframe.jsonl")
        return path.read_bytes()

    assert baseline(1) == baseline(1)
    assert len({baseline(seed) for seed in range(4)}) > 1
    for variant in (1, 2):
        evaluate(
            runs,
            ["prediction"],
            tmp_path / "out",
            predictions=PredictSettings(variant=variant),
            asking=CaptionSettings(engine="fake"),
            metrics=["rouge-l"],
            observer=Notes(),
        )
    assert sorted(path.name for path in (tmp_path / "out" / "prediction-1-famous").glob("fake*")) == ["fake-1.jsonl", "fake-2.jsonl"]


@pytest.mark.extra("rouge_score")
def test_the_number_behind_a_task_is_that_of_its_context_and_each_task_is_evaluated_once(runs: list[str], tmp_path: Path) -> None:
    scores, _ = evaluate(
        runs,
        ["prediction-2", "prediction", "prediction-2"],
        tmp_path / "out",
        samples=SampleSettings(targets=1),
        metrics=["rouge-l"],
        observer=Notes(),
    )
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == ["prediction-1-famous", "prediction-2-famous"]
    assert [result.task for result in scores.results] == ["prediction-2"] * 4 + ["prediction-1"] * 4


@pytest.mark.extra("rouge_score")
def test_samples_of_the_same_size_may_be_others(runs: list[str], tmp_path: Path) -> None:
    for name in ("a", "b"):
        described = [str(described_folder(tmp_path / name / video, 6, first_word=number)) for number, video in enumerate("xy")]
        if name == "b":
            for text in ("descriptions.jsonl", "keyframes.jsonl"):
                path = tmp_path / name / "x" / text
                path.write_text(path.read_text().replace("it moves", "it jumps"))
            with pytest.raises(UsageError, match="holds other samples than these settings make"):
                evaluate(described, ["prediction"], tmp_path / "out", metrics=["rouge-l"], observer=Notes())
            continue
        evaluate(described, ["prediction"], tmp_path / "out", metrics=["rouge-l"], observer=Notes())


def test_what_no_task_has_a_use_for_is_refused_before_anything_is_made(runs: list[str], tmp_path: Path) -> None:
    for more, said in (
        ({"frames": (4,)}, r"infilling shows no frames of videos\. Leave --frames out"),
        ({"samples": SampleSettings(frames_by="even")}, "Leave --frames-by out"),
        ({"samples": SampleSettings(videos=tmp_path)}, "Leave --videos out"),
    ):
        with pytest.raises(UsageError, match=said):
            evaluate(runs, ["infilling"], tmp_path / "out", observer=Notes(), **more)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="No task is named"):
        evaluate(runs, [], tmp_path / "out", observer=Notes())
    assert not (tmp_path / "out").exists()


def test_a_link_in_the_place_of_the_frames_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "frames").symlink_to(tmp_path)
    for frames in ((), (8,)):
        with pytest.raises(UsageError, match="frames is a link, and vip writes through none"):
            module._budgets(Fiber(), SampleSettings(), frames, tmp_path)


def test_each_number_of_frames_is_one_evaluation_for_each_way_of_choosing_them(tmp_path: Path) -> None:
    def budgets(settings: SampleSettings, *frames: int) -> list[tuple[int | None, str | None]]:
        return [(one.frames, one.frames_by) for one in module._budgets(Fiber(), settings, frames, tmp_path)]

    assert budgets(SampleSettings(), 8, 4, 8) == [(8, "vip"), (8, "even"), (4, "vip"), (4, "even")]
    assert budgets(SampleSettings(frames_by="even"), 8) == [(8, "even")]
    assert budgets(SampleSettings(frames=5)) == [(5, None)]
    (kept,) = module._budgets(Fiber(), SampleSettings(), (), tmp_path)
    assert kept.frames_folder == tmp_path / "frames"
    (own,) = module._budgets(Fiber(), SampleSettings(frames_folder=tmp_path / "mine"), (), tmp_path)
    assert own.frames_folder == tmp_path / "mine"
    (without,) = module._budgets(VideoInfilling(), SampleSettings(videos=tmp_path, frames=4, frames_by="even"), (8, 4), tmp_path)
    assert (without.videos, without.frames, without.frames_by) == (None, None, None)
    names = [
        module._folder_name(task, settings)
        for task, settings in (
            (Fiber(), SampleSettings()),
            (Fiber(), SampleSettings(frames=8)),
            (Fiber(), SampleSettings(frames=8, frames_by="even")),
            (VideoInfilling(), SampleSettings(context=2, representation="dense")),
        )
    ]
    assert names == ["fiber", "fiber-vip-8", "fiber-even-8", "infilling-2-dense"]
    assert [module._file_name(name) for name in ("openai:gpt-5", "fake", "openai:org/model:tag", "openai:..")] == [
        "gpt-5",
        "fake",
        "org-model-tag",
        "engine",
    ]


@pytest.mark.extra("rouge_score")
def test_without_an_engine_the_baselines_answer_and_one_that_cannot_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "VIP_ENGINE"):
        monkeypatch.delenv(name, raising=False)
    notes = Notes()
    one = str(described_folder(tmp_path / "runs" / "a", 6))
    scores, _ = evaluate([one], ["prediction"], tmp_path / "out", asking=CaptionSettings(), metrics=["rouge-l"], observer=notes)
    assert {result.engine for result in scores.results} == {"baseline:copy-nearest", "baseline:frequent-words"}
    assert notes.texts[0] == "No engine is set, so the baselines alone answer. Name one with --engine."
    assert [text.partition(": ")[0] for text in notes.texts if text.startswith("Left out")] == [
        f"Left out the baseline {name}" for name in ("random-keyframe", "nearest-text")
    ]
    assert sorted(path.name for path in (tmp_path / "out" / "prediction-1-famous").glob("*.jsonl")) == [
        "copy-nearest.jsonl",
        "frequent-words.jsonl",
        "samples.jsonl",
    ]


@pytest.mark.extra("rouge_score")
def test_frames_are_for_those_of_several_tasks_that_show_some(runs: list[str], tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv"):  # infilling alone would refuse --frames
        evaluate(["none.csv"], ["nextqa-mc", "infilling"], tmp_path / "out", frames=(4,), observer=Notes())


@pytest.mark.extra("rouge_score")
@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "device"])
def test_what_lies_in_the_place_of_the_samples_is_neither_waited_for_nor_followed(kind: str, runs: list[str], tmp_path: Path) -> None:
    folder = tmp_path / "out" / "infilling-1-famous"
    folder.mkdir(parents=True)
    path = folder / "samples.jsonl"
    (tmp_path / "other").write_bytes(b"secret")
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to(tmp_path / "other" if kind == "link" else "/dev/zero")
    with pytest.raises(StoreError, match=r"samples\.jsonl cannot be used: .*Remove it, or name another folder with -o\."):
        evaluate(runs, ["infilling"], tmp_path / "out", metrics=["rouge-l"], observer=Notes())
    assert [one.name for one in folder.iterdir()] == ["samples.jsonl"]
    assert (tmp_path / "other").read_bytes() == b"secret"


@pytest.mark.extra("rouge_score")
def test_a_folder_with_the_name_of_new_samples_is_one_sentence(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "out" / "infilling-1-famous" / "samples.jsonl.new").mkdir(parents=True)
    with pytest.raises((StoreError, UsageError), match=r"samples\.jsonl"):
        evaluate(runs, ["infilling"], tmp_path / "out", metrics=["rouge-l"], observer=Notes())


@pytest.mark.extra("rouge_score")
def test_labels_are_for_those_of_several_tasks_that_take_some(runs: list[str], tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("video_id,domain\n")
    settings = SampleSettings(labels=tmp_path / "labels.csv")
    with pytest.raises(UsageError, match=r"nextqa-mc takes no labels\. Leave --labels out\."):
        evaluate(["none.csv"], ["nextqa-mc"], tmp_path / "out", samples=settings, observer=Notes())
    with pytest.raises(InputError, match=r"none\.csv"):
        evaluate(["none.csv"], ["nextqa-mc", "infilling"], tmp_path / "out", samples=settings, observer=Notes())


@pytest.mark.extra("rouge_score")
@pytest.mark.parametrize(
    ("engine", "said"), [("offline", "offline only describes pictures and answers no questions"), ("openai:gpt-5.4-mini", "OPENAI_API_KEY")]
)
def test_an_engine_that_cannot_answer_is_refused_before_anything_is_made(
    engine: str, said: str, runs: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises((BackendError, EngineError), match=said):
        evaluate(runs, ["infilling"], tmp_path / "out", asking=CaptionSettings(engine=engine), metrics=["rouge-l"], observer=Notes())
    assert not (tmp_path / "out").exists()
