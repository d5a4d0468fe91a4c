"""Infilling and prediction: windows of keyframes, prompts that never hold the reference, answers read strictly."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tasks.described import WORDS, described_folder
from vip import store
from vip.config import SampleSettings
from vip.errors import InputError
from vip.tasks.described_videos import DescribedFrame, DescribedVideo
from vip.tasks.infilling import VideoInfilling
from vip.tasks.keyframe_task import DescribeKeyframesTask
from vip.tasks.labels import ASPECTS
from vip.tasks.prediction import VideoPrediction
from vip.tasks.records import Choice, DescribeKeyframes, DescriptionText, KeyframeDescription, Sample
from vip.tasks.registry import load_task
from vip.tasks.task import SampleSource

TASKS: list[DescribeKeyframesTask] = [VideoInfilling(), VideoPrediction()]


def samples(task: DescribeKeyframesTask, *folders: Path, **settings: object) -> list[Sample]:
    source = SampleSource(paths=tuple(map(str, folders)), settings=SampleSettings(**settings))  # type: ignore[arg-type]
    return list(task.samples(source))


def ids(sample: Sample) -> list[int]:
    return [int(piece.keyframe_id.rpartition(":")[2]) for piece in sample.context if isinstance(piece, KeyframeDescription)]


def wanted(sample: Sample) -> list[str]:
    assert sample.reference is not None
    (value,) = sample.reference.values
    assert isinstance(value, tuple)
    return [one.dense_caption or "" for one in value if isinstance(one, DescriptionText)]


@given(keyframes=st.integers(0, 14), context=st.integers(1, 3), targets=st.integers(1, 4))
def test_a_video_of_k_keyframes_has_k_minus_2n_minus_2_windows_with_three_targets(keyframes: int, context: int, targets: int) -> None:
    video = DescribedVideo("v", [DescribedFrame(f"v:{n}", float(n), DescriptionText(dense_caption=f"{n}")) for n in range(keyframes)])
    settings = SampleSettings(context=context, targets=targets, representation="dense")
    for task, sides in zip(TASKS, (2, 1), strict=True):
        made = list(task._windows(video, settings))
        assert len(made) == max(0, keyframes - sides * context - targets + 1)
        for sample in made:
            shown, asked = ids(sample), [int(text) for text in wanted(sample)]
            assert sorted([*shown, *asked]) == list(range(min(shown), min(shown) + sides * context + targets))
            assert asked == list(range(shown[context - 1] + 1, shown[context - 1] + 1 + targets))


def test_no_sample_crosses_videos_and_each_knows_its_own(tmp_path: Path) -> None:
    first, second = described_folder(tmp_path / "a", 6), described_folder(tmp_path / "b", 5)
    made = samples(VideoInfilling(), first, second)
    assert [(sample.id, sample.video) for sample in made] == [("infilling-1/a/0", "a"), ("infilling-1/a/1", "a"), ("infilling-1/b/0", "b")]
    assert all(piece.keyframe_id.startswith(sample.video) for sample in made for piece in sample.context if piece.kind == "keyframe")


def test_two_runs_of_one_video_keep_their_samples_apart(tmp_path: Path) -> None:
    made = samples(VideoPrediction(), described_folder(tmp_path / "x" / "a", 4), described_folder(tmp_path / "y" / "a", 4))
    assert [sample.id for sample in made] == ["prediction-1/a/0", "prediction-1/a-2/0"]


def test_labels_group_the_samples(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("video,domain,causal\na,Games; Sports,social\n")
    (sample,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 5), labels=labels)
    assert sample.groups == {"domain": ("Games", "Sports"), "causal": ("social",)}


def test_labels_of_an_engine_name_it(tmp_path: Path) -> None:
    folders = [described_folder(tmp_path / name, 6) for name in "ab"]
    task = load_task("causal-aspect")
    asked = list(task.samples(SampleSource(paths=tuple(map(str, folders)))))
    assert all(
        sample.reference is None and sample.ask == Choice(question="What causes most of what changes?", options=ASPECTS) for sample in asked
    )
    assert [piece.keyframe_id for piece in asked[1].context] == ["a:1", "target 1", "target 2", "target 3", "a:5"]  # type: ignore[union-attr]
    assert [sample.id for sample in asked] == [sample.id for sample in samples(VideoInfilling(), *folders)]
    scenes = task.request(asked[1], None).text
    assert [scenes.index(f"Keyframe {number}\nFocus: a {word}") for number, word in enumerate(WORDS[1:6], 1)] == sorted(
        scenes.index(f"Keyframe {number}\nFocus: a {word}") for number, word in enumerate(WORDS[1:6], 1)
    )
    assert "focus" not in task.request(asked[0], None).text.split("Keyframe 1")[0]
    answers = [task.parse(sample, said) for sample, said in zip(asked, ["Physical.", "social", "both", "social"], strict=True)]
    assert [answer.status for answer in answers] == ["ok", "ok", "unparsed", "ok"]
    file = tmp_path / "causal.jsonl"
    store.write_rows(file, [answer.model_copy(update={"engine": "openai:m"}) for answer in answers])
    groups = [sample.groups for sample in samples(VideoInfilling(), *folders, labels=file)]
    by = {"causal_by": ("openai:m",)}
    assert groups == [{"causal": ("physical",), **by}, {"causal": ("social",), **by}, {}, {"causal": ("social",), **by}]


def test_labels_without_a_key_are_one_sentence(tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("name,domain\na,Games\n")
    with pytest.raises(InputError, match="has neither a column video nor a column sample"):
        samples(VideoInfilling(), described_folder(tmp_path / "a", 5), labels=labels)


def test_too_few_keyframes_for_a_window_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        samples(VideoInfilling(), described_folder(tmp_path / "a", 5), context=2)
    assert str(caught.value) == (
        "infilling needs 7 described keyframes in a row (2 + 3 + 2); the longest video has 5. Extract more with --keyframes 7, or ask for"
        " fewer with --targets 1."
    )


def test_keyframes_without_descriptions_are_one_sentence(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "a", 5)
    (folder / "descriptions.jsonl").unlink()
    with pytest.raises(InputError, match=r"no keyframe has a description yet\. Run `?vip"):
        samples(VideoInfilling(), folder)


def test_the_prompt_holds_the_context_and_the_example_and_no_word_of_the_reference(tmp_path: Path) -> None:
    (mine,) = samples(VideoInfilling(), described_folder(tmp_path / "mine", 5), representation="dense")
    (other,) = samples(VideoInfilling(), described_folder(tmp_path / "other", 5, first_word=7), representation="dense")
    for variant in (1, 2, 3):
        request = VideoInfilling().request(mine, other, variant=variant)
        assert all(text not in request.text for text in wanted(mine))
        assert all(text in request.text for text in wanted(other))
        assert "Keyframe 1: A dog 0 in mine." in request.text
        assert "Keyframe 5: A ball 4 in mine." in request.text
        assert request.demonstration == other.id
        assert request.prompt.name == f"infilling-{variant}"
    assert "Let's think frame by frame" in VideoInfilling().request(mine, other).text


def test_pictures_are_named_with_their_hash(tmp_path: Path) -> None:
    (sample,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 5), pictures=True)
    pictures = [piece.picture for piece in sample.context if isinstance(piece, KeyframeDescription)]
    assert [picture and picture.keyframe_id for picture in pictures] == ["a:0", "a:4"]
    assert all(picture and len(picture.sha256 or "") == 64 for picture in pictures)


GOOD = {"focus": "a dog", "action": "runs", "mood": "calm", "objects": ["dog"], "setting": "park"}
WRONG = [
    ("no JSON", "it is not JSON"),
    ("[]", "it has no list of descriptions"),
    (json.dumps({"descriptions": [GOOD, GOOD]}), "it has 2 descriptions instead of 3"),
    (json.dumps({"descriptions": [GOOD, GOOD, {**GOOD, "mood": None}]}), "mood: Input should be a valid string"),
    (json.dumps({"descriptions": [GOOD, GOOD, {**GOOD, "more": "x"}]}), "more: Extra inputs are not permitted"),
]


@pytest.mark.parametrize(("answer", "reason"), WRONG)
def test_an_answer_that_does_not_fit_is_unparsed_with_its_reason(answer: str, reason: str, tmp_path: Path) -> None:
    (sample,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 5))
    parsed = VideoInfilling().parse(sample, answer)
    assert (parsed.status, parsed.value, parsed.reason, parsed.raw) == ("unparsed", None, reason, answer)


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (["a dog", "", "it runs"], "a description is no text, or empty"),
        (["a dog", "  ", "it runs"], "a description is no text, or empty"),
        (["a dog", {"focus": "x"}, "it runs"], "a description is no text, or empty"),
        (["a dog", "it runs", "it sits", "it goes"], "it has 4 descriptions instead of 3"),
        (["a dog", "it runs"], "it has 2 descriptions instead of 3"),
        (["a dog ", "it runs", "it sits"], None),
    ],
)
def test_three_dense_captions_are_three_texts(rows: list[object], reason: str | None, tmp_path: Path) -> None:
    (sample,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 5), representation="dense")
    parsed = VideoInfilling().parse(sample, json.dumps({"descriptions": rows}))
    assert (parsed.status, parsed.reason) == (("unparsed", reason) if reason else ("ok", None))
    if not reason:
        assert [one.dense_caption for one in parsed.value] == ["a dog", "it runs", "it sits"]  # type: ignore[union-attr]


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("kind", ["dense", "famous"])
def test_an_answer_has_room_for_each_keyframe_and_a_schema_of_their_number(kind: str, targets: int, tmp_path: Path) -> None:
    (sample,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 2 + targets), representation=kind, targets=targets)
    request = VideoInfilling().request(sample, None)
    assert (request.max_tokens, request.demonstration) == (400 * targets, None)
    assert request.schema is not None
    rows = request.schema["properties"]["descriptions"]
    assert (rows["minItems"], rows["maxItems"]) == (targets, targets)
    assert rows["items"]["type"] == ("string" if kind == "dense" else "object")
    assert f"[{targets} keyframe{'s' if targets > 1 else ''} to describe]" in request.text


def test_keyframes_are_numbered_as_in_the_video_and_the_missing_ones_stand_in_their_place(tmp_path: Path) -> None:
    (one,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 6), context=2, targets=2, representation="dense")
    heads = re.findall(r"^(?:Keyframe \d|\[\d keyframes)", VideoInfilling()._given(one), re.MULTILINE)
    assert heads == ["Keyframe 1", "Keyframe 2", "[2 keyframes", "Keyframe 5", "Keyframe 6"]
    (next_ones,) = samples(VideoPrediction(), described_folder(tmp_path / "b", 4), context=2, targets=2, representation="dense")
    heads = re.findall(r"^(?:Keyframe \d|\[\d keyframes)", VideoPrediction()._given(next_ones), re.MULTILINE)
    assert heads == ["Keyframe 1", "Keyframe 2", "[2 keyframes"]


def test_labels_of_a_sample_and_of_its_video_are_told_apart(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "a", 6)
    (tmp_path / "samples.csv").write_text("sample,domain\ninfilling-1/a/1,Games\na,Sports\n")
    assert [one.groups for one in samples(VideoInfilling(), folder, labels=tmp_path / "samples.csv")] == [{}, {"domain": ("Games",)}]


def test_an_answer_that_fits_is_three_descriptions(tmp_path: Path) -> None:
    (sample,) = samples(VideoInfilling(), described_folder(tmp_path / "a", 5))
    parsed = VideoInfilling().parse(sample, json.dumps({"descriptions": [GOOD] * 3}))
    assert parsed.status == "ok"
    assert isinstance(sample.ask, DescribeKeyframes)
    assert isinstance(parsed.value, tuple)
    assert len(parsed.value) == sample.ask.count == 3


def test_a_sample_names_its_task() -> None:
    assert [load_task(name).name for name in ("infilling", "infilling-2", "prediction-3")] == ["infilling", "infilling", "prediction"]


def test_pictures_of_a_data_set_cannot_be_shown_and_a_sample_of_another_task_is_refused() -> None:
    video = DescribedVideo("v", [DescribedFrame(f"v:{n}", float(n), DescriptionText(dense_caption=f"{n}")) for n in range(5)])
    shown = SampleSettings(context=1, targets=1, representation="dense", pictures=True)
    with pytest.raises(InputError, match=r"--pictures needs run folders; the pictures of v:0 lie in the shards"):
        list(VideoInfilling()._windows(video, shown))
    sample = next(VideoInfilling()._windows(video, shown.model_copy(update={"pictures": False})))
    other = sample.model_copy(update={"ask": Choice(question="?", options=("a", "b"))})
    for refused in (lambda: VideoInfilling().request(other, None), lambda: VideoInfilling().parse(other, "{}")):
        with pytest.raises(InputError, match="infilling-1/v/0 is no sample of infilling or prediction"):
            refused()
    with pytest.raises(InputError, match=r"p\.json: prediction has no published form of predictions"):
        VideoPrediction().read_predictions(Path("p.json"), [])


def test_the_example_shows_letters_of_every_language_as_they_are(tmp_path: Path) -> None:
    first = samples(VideoInfilling(), described_folder(tmp_path / "a", 6), representation="dense")[0]
    assert first.reference is not None
    reference = first.reference.model_copy(update={"values": ((DescriptionText(dense_caption="Ein Vögel 鳥 …"),) * 3,)})
    request = VideoInfilling().request(first, first.model_copy(update={"id": "other", "reference": reference}))
    assert 'Answer: {"descriptions": ["Ein Vögel 鳥 …", "Ein Vögel 鳥 …", "Ein Vögel 鳥 …"]}' in request.text
    assert request.demonstration == "other"
    bare = VideoInfilling().request(first, first.model_copy(update={"id": "other", "reference": None}))
    assert "An example of another video" not in bare.text
