"""Extraction by what pictures mean: clip from end to end, a question, the filters, and nothing embedded twice."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

import vip
from tests.clips import SAMPLE
from tests.models import clip_models
from vip import registry
from vip.errors import BackendError, InputError, UsageError
from vip.models.clip.embedder import OpenClipEmbedder
from vip.records import Image, Vectors
from vip.report.page import write_report
from vip.store import Run


@pytest.fixture(scope="module")
def clip(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Name of a small embedder with a joint space."""
    return f"clip:{clip_models.folder(tmp_path_factory.mktemp('models') / 'clip', 'clip')}"


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The pictures and texts that clip is shown from now on."""
    shown: list[object] = []
    of_images, of_texts = OpenClipEmbedder.embed_images, OpenClipEmbedder.embed_texts

    def images(self: OpenClipEmbedder, pictures: Sequence[Image]) -> Vectors:
        shown.extend(pictures)
        return of_images(self, pictures)

    def texts(self: OpenClipEmbedder, given: Sequence[str]) -> Vectors:
        shown.extend(given)
        return of_texts(self, given)

    monkeypatch.setattr(OpenClipEmbedder, "embed_images", images)
    monkeypatch.setattr(OpenClipEmbedder, "embed_texts", texts)
    return shown


def choice(run: Run) -> list[int | None]:
    return [keyframe.record.pts for keyframe in run.keyframes]


@pytest.mark.slow
def test_a_run_says_which_model_saw_it_and_where(clip: str, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, device="cpu", precision="fp32", keyframes=6)
    assert run.manifest is not None
    assert run.embeddings is not None
    assert run.manifest.backends["embedder"] == clip
    assert run.embeddings.model.startswith(f"{clip}, ")
    assert run.manifest.device == "embedder cpu in fp32, detector cpu"
    assert run.embeddings.image.shape == run.embeddings.text.shape == (len(run.candidates), 24)
    np.testing.assert_allclose(np.linalg.norm(run.embeddings.image, axis=1), 1, atol=1e-5)
    assert len(run.keyframes) == 6


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_cores(clip: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        runs.append(vip.extract(SAMPLE, out=tmp_path / str(cores), embedder=clip, device="cpu", precision="fp32", keyframes=6))
    files = ("candidates.jsonl", "keyframes.jsonl")
    assert len({tuple((run.folder / name).read_bytes() for name in files) for run in runs}) == 1
    vectors = [run.embeddings.image for run in runs if run.embeddings]
    assert all(np.array_equal(vectors[0], other) for other in vectors[1:])


@pytest.mark.slow
def test_another_number_weight_or_pruner_embeds_nothing_again(clip: str, seen: list[object], tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=6)
    assert len([one for one in seen if not isinstance(one, str)]) == len(run.candidates)
    seen.clear()
    again = [
        vip.rechoose(run, out=tmp_path / f"again{number}", **changes)
        for number, changes in enumerate(
            ({"keyframes": 3}, {"text_weight": 1.0}, {"text_weight": 0}, {"pruner": "k-center"}, {"pruner": "threshold:0.9"})
        )
    ]
    assert seen == []
    assert len(again[0].keyframes) == 3
    same = vip.rechoose(run, out=tmp_path / "same", keyframes=6)
    assert (same.folder / "candidates.jsonl").read_bytes() == (run.folder / "candidates.jsonl").read_bytes()


@pytest.mark.slow
def test_a_run_that_is_replaced_shows_the_model_only_what_is_new(clip: str, seen: list[object], tmp_path: Path) -> None:
    first = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=6)
    before = {row.pts for row in first.candidates}
    seen.clear()
    second = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=24, overwrite=True)
    new = {row.pts for row in second.candidates} - before
    assert new
    assert len([one for one in seen if not isinstance(one, str)]) == len(new)
    seen.clear()
    vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=24, pruner="k-center", overwrite=True)
    assert seen == []
    other = "bf16" if "fp32" in second.manifest.device else "fp32"  # which of them is the usual one depends on the processor
    vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=24, precision=other, overwrite=True)
    assert len(seen) >= len(second.candidates), "another precision is another model"


@pytest.mark.slow
def test_weights_that_changed_under_the_same_name_are_other_weights(seen: list[object], tmp_path: Path) -> None:
    folder = clip_models.folder(tmp_path / "clip", "clip")
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=f"clip:{folder}", keyframes=4)
    registry._loaded.clear()  # as in another process
    os.utime(folder / "open_clip_model.safetensors", ns=(1, 1))
    with pytest.raises(InputError, match=r"The weights of clip:.* have changed since .* Run `vip extract VIDEO --overwrite`"):
        vip.rechoose(run, out=tmp_path / "other", query="a dog")
    seen.clear()
    again = vip.extract(SAMPLE, out=tmp_path / "run", embedder=f"clip:{folder}", keyframes=4, pruner="k-center", overwrite=True)
    assert len(seen) >= len(again.candidates)
    registry._loaded.clear()


@pytest.mark.slow
@pytest.mark.parametrize("weight", [0.0, 1.0])
def test_the_weight_of_the_text_is_its_share_in_the_scores(weight: float, clip: str, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=3, text_weight=weight)
    assert run.embeddings is not None
    vectors = run.embeddings.text if weight else run.embeddings.image
    scored = [row for row in run.candidates if row.decision.rule == "pruned"]
    assert scored
    for row in scored:
        cosines = [float(vectors[row.index] @ vectors[other]) for other in row.decision.neighbours]
        assert row.decision.score == pytest.approx(np.mean(cosines), abs=1e-5)


# ---------------------------------------------------------------- a question


@pytest.mark.slow
def test_a_question_is_in_the_log_with_the_relevance_of_each_candidate(clip: str, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, precision="fp32", keyframes=4, query="a dog jumps")
    assert run.embeddings is not None
    assert run.manifest is not None
    assert run.manifest.backends["pruner"] == "aks"
    asked = OpenClipEmbedder(clip.removeprefix("clip:"), precision="fp32").embed_texts(["a dog jumps"])[0]
    for row in run.candidates:
        assert row.relevance == pytest.approx(float(run.embeddings.image[row.index] @ asked), abs=1e-4)
    kept = [row for row in run.candidates if row.decision.kept]
    assert len(kept) == len(run.keyframes) == 4
    assert all(f"relevance {row.relevance:.3f}" in row.decision.reason for row in kept)


@pytest.mark.slow
def test_the_same_question_of_the_same_run_needs_no_model(clip: str, seen: list[object], tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=4, query="a dog jumps")
    seen.clear()
    vip.rechoose(run, out=tmp_path / "fewer", keyframes=2)
    assert seen == []
    other = vip.rechoose(run, out=tmp_path / "other", query="a cat")
    assert seen == ["a cat"]
    assert {row.relevance for row in other.candidates} != {row.relevance for row in run.candidates}


@pytest.mark.slow
def test_a_question_later_gives_what_a_question_at_once_gives(clip: str, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=4, sampler="every:1s")
    later = vip.rechoose(run, out=tmp_path / "later", query="a dog jumps")
    at_once = vip.extract(SAMPLE, out=tmp_path / "at_once", embedder=clip, keyframes=4, sampler="every:1s", query="a dog jumps")
    assert choice(later) == choice(at_once) != choice(run)


@pytest.mark.slow
def test_classic_refuses_a_question(tmp_path: Path) -> None:
    with pytest.raises(BackendError, match=r"--query needs an embedder .* and classic does not\. Write --embedder clip"):
        vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", query="a dog")
    assert not (tmp_path / "run").exists()
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", keyframes=3)
    with pytest.raises(BackendError, match="and classic does not"):
        vip.rechoose(run, out=tmp_path / "other", query="a dog")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"query": "a dog", "pruner": "k-center"}, "--query chooses by relevance, and --pruner k-center does not"),
        ({"pruner": "aks"}, "The pruner aks chooses by relevance to a question. Add --query 'a dog"),
        ({"device": "cuda"}, "--device cuda: neither the embedder classic nor the detector opencv"),
        ({"precision": "bf16"}, "--precision bf16: neither the embedder classic nor the detector opencv"),
        ({"labels": "dog, cat"}, "--labels 'dog, cat': the detector opencv finds what it was made for"),
        ({"labels": " , "}, "the list of words to look for is empty"),
        ({"candidates": 3}, "--candidates 3 is less than the 12 keyframes wanted"),
        ({"candidates": 30, "sampler": "every:2s"}, "every:2s takes as many as its step gives"),
    ],
)
def test_what_does_not_fit_together_is_refused_before_any_work(options: dict[str, object], said: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", **options)
    assert said in str(caught.value)
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- candidates and objects


@pytest.mark.slow
@pytest.mark.parametrize("sampler", ["sync", "uniform", "shots"])
@pytest.mark.parametrize("count", [12, 40])
def test_as_many_candidates_as_asked(sampler: str, count: int, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", sampler=sampler, candidates=count, keyframes=4)
    looked_at = [row for row in run.candidates if row.stands_in_for is None]
    assert count - 2 <= len(looked_at) <= count, "near the end of the file a frame may be the one before"
    assert len(run.keyframes) == 4


@pytest.mark.slow
def test_frames_with_too_few_objects_are_dropped_and_the_log_says_so(tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", min_objects=1, keyframes=6)
    few = [row for row in run.candidates if row.decision.rule == "too_few_objects"]
    assert few
    assert all(row.detections == () and "no objects found in it, fewer than the 1 asked for" in row.decision.reason for row in few)
    assert all(keyframe.record.detections for keyframe in run.keyframes)
    assert run.manifest is not None
    assert run.manifest.counts is not None
    assert run.manifest.counts.bad >= len(few)


@pytest.mark.slow
def test_objects_that_no_frame_has_are_said_with_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"0 of \d+ candidates show enough objects \(most \d, asked 50\)\. Try --min-objects \d"):
        vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", min_objects=50)


@pytest.mark.slow
def test_every_good_candidate_was_searched(tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", keyframes=6)
    good = [row for row in run.candidates if row.decision.rule in ("kept", "pruned")]
    assert len(good) > 6
    assert all(row.detections is not None for row in good)


@pytest.mark.slow
def test_the_page_shows_the_question_and_the_relevance(clip: str, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder=clip, keyframes=4, query="<b>a dog</b> jumps")
    page = write_report(run).read_text(encoding="utf-8")
    assert "“&lt;b&gt;a dog&lt;/b&gt; jumps”" in page
    assert "dropped as less relevant" in page
    assert page.count("Relevance <b>") == 4


# ---------------------------------------------------------------- detections made elsewhere


@pytest.mark.slow
def test_detections_from_a_file_count_where_it_has_them_and_elsewhere_nothing_is_claimed(tmp_path: Path) -> None:
    box = [0.1, 0.2, 0.5, 0.9]
    rows = [
        {"time_s": 3.2, "detections": [{"label": "Person", "score": 0.9, "box_xyxy": box}]},
        {"time_s": 10.4, "detections": []},
    ]
    (tmp_path / "found.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    run = vip.extract(SAMPLE, out=tmp_path / "run", embedder="classic", keyframes=8, detector=f"file:{tmp_path / 'found.jsonl'}")
    good = [row for row in run.candidates if row.decision.rule in ("kept", "pruned")]
    for row in good:
        near = [time_s for time_s in (3.2, 10.4) if abs(row.time_s - time_s) <= 0.5]
        assert (row.detections is not None) == bool(near)
        assert [found.label for found in row.detections or ()] == ["person"] * (near == [3.2])
    silent = sum(row.detections is None for row in good)
    assert f"file:{tmp_path / 'found.jsonl'} knows nothing about {silent} of the {len(good)} good candidates." in run.notes
    captions = {row.keyframe_id: row.dense_caption for row in vip.caption(run, engine="offline").descriptions}
    for keyframe in run.keyframes:
        assert ("detector" in captions[keyframe.id]) == (keyframe.record.detections is not None)
