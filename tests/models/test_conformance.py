"""The one conformance suite: every registered sampler, pruner, embedder, detector and engine keeps the promises of its protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vip
from tests.extraction.analyses import picture
from tests.extraction.pruning import at_angles, prunable
from tests.media import Clips, remux
from tests.models import clip_models, tiny_models
from vip import registry
from vip.errors import BackendError, UsageError
from vip.models.embedding_server.client import ServedEmbedder
from vip.protocols import Embedder, PictureOrigin
from vip.records import Detection
from vip.video import Video

SAMPLE = Path(__file__).resolve().parents[2] / "examples" / "sample.mp4"

NEEDS_FILES = {"clip", "transformers", "file", "open_clip", "torchvision"}
"""Weights or a file of detections: small ones are made for the tests."""

pruners = pytest.mark.parametrize("name", sorted(registry.BUILT_IN["pruner"]))
samplers = pytest.mark.parametrize("name", sorted(registry.BUILT_IN["sampler"]))
embedders = pytest.mark.parametrize("name", sorted(registry.BUILT_IN["embedder"]))
detectors = pytest.mark.parametrize("name", sorted(registry.BUILT_IN["detector"]))


@pytest.fixture(scope="module")
def full_name(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], str]:
    """A backend as a user would name it: with a small model or file where it needs one."""
    home = tmp_path_factory.mktemp("backends")
    row = {"time_s": 0, "detections": [{"label": "dog", "score": 0.9, "box_xyxy": [0.1, 0.2, 0.5, 0.9]}] * 2}
    (home / "detections.jsonl").write_text(json.dumps(row))
    made = {
        "clip": f"clip:{clip_models.folder(home / 'clip', 'clip')}",
        "transformers": f"transformers:{tiny_models.save_rt_detr(home / 'rt_detr')}",
        "file": f"file:{home / 'detections.jsonl'}",
    }
    return lambda name: made.get(name, name)


@pytest.mark.slow
@samplers
@pytest.mark.parametrize("keyframes", [1, 12, 400])
def test_samplers_give_frames_that_exist_in_order_and_once(name: str, keyframes: int, clips: Clips) -> None:
    with Video(clips("uneven.mkv").path) as video:
        chosen = registry.sampler(name).sample(video, keyframes=keyframes)
        assert chosen == sorted(set(chosen)) != []
        assert set(chosen) <= set(video.index.shown_pts.tolist())
        assert chosen == registry.sampler(name).sample(video, keyframes=keyframes)
        assert all(type(pts) is int for pts in chosen)


@pytest.mark.parametrize("name", ["sync", "uniform", "shots"])  # `every` and `katna` take what their rule says
@pytest.mark.parametrize("keyframes", [12, 400])
def test_samplers_give_as_many_as_are_asked_where_there_are_as_many(name: str, keyframes: int, clips: Clips) -> None:
    with Video(clips("uneven.mkv").path) as video:
        assert len(registry.sampler(name).sample(video, keyframes=keyframes)) >= min(keyframes, len(video.index.shown_pts))


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN["sampler"].keys() - {"every"}))
@pytest.mark.parametrize(("keyframes", "candidates"), [(1, 1), (3, 7), (12, 12), (2, 30), (12, 10_000)])
def test_samplers_give_at_most_as_many_candidates_as_are_asked(name: str, keyframes: int, candidates: int, clips: Clips) -> None:
    with Video(clips("uneven.mkv").path) as video:
        chosen = registry.sampler(name).sample(video, keyframes=keyframes, candidates=candidates)
        assert chosen == sorted(set(chosen)) != []
        assert set(chosen) <= set(video.index.shown_pts.tolist())
        assert len(chosen) <= candidates
        if name in {"sync", "uniform", "shots"}:
            assert len(chosen) == min(candidates, len(video.index.shown_pts))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(registry.BUILT_IN["sampler"]))
def test_the_very_frames_of_an_exact_sampler_are_candidates(name: str, clips: Clips, tmp_path: Path) -> None:
    clip = clips("uneven.mkv").path
    with Video(clip) as video:
        chosen = registry.sampler(name).sample(video, keyframes=5)
    run = vip.extract(clip, out=tmp_path / "run", sampler=name, embedder="classic", keyframes=5)
    if registry.sampler(name).capabilities.exact:
        assert set(chosen) <= {row.pts for row in run.candidates}


@samplers
def test_samplers_give_no_frame_that_an_edit_list_hides(name: str, clips: Clips, tmp_path: Path) -> None:
    remux(clips("h264.mp4").path, tmp_path / "cut.mp4", skip_s=Fraction(1, 2))
    with Video(tmp_path / "cut.mp4") as video:
        chosen = registry.sampler(name).sample(video, keyframes=40)
        assert len(video.index) > len(video.index.shown_pts)
        assert set(chosen) <= set(video.index.shown_pts.tolist())
        assert [frame.pts for frame in video.frames(chosen)] == chosen


@pruners
@given(st.lists(st.integers(0, 17), max_size=16), st.one_of(st.none(), st.integers(1, 20)), st.sampled_from([0.5, 0.9, 1.0]))
@settings(deadline=None, max_examples=50)
def test_pruners_keep_at_most_what_is_asked_and_log_each_drop(name: str, steps: list[int], keep: int | None, redundant: float) -> None:
    frames = at_angles([10.0 * step for step in steps], people=[step % 3 == 0 for step in steps])
    thinned = registry.pruner(name).prune(frames, keep=keep, redundant=redundant)
    dropped = [drop.index for drop in thinned.drops]
    assert len(set(dropped)) == len(dropped)
    assert set(dropped) <= set(range(len(frames)))
    assert min(1, len(frames)) <= len(frames) - len(dropped) <= (keep or len(frames))
    assert [drop.step for drop in thinned.drops] == list(range(1, len(dropped) + 1))
    for drop in thinned.drops:
        assert drop.reason.startswith("dropped")
        assert f"{drop.score:.3f}" in drop.reason
        assert drop.neighbours
        assert set(drop.neighbours) <= set(range(len(frames))) - {drop.index}
    assert all(1 <= count <= len(frames) and -1.01 <= likeness <= 1.01 for count, likeness in thinned.curve)
    assert thinned.kept.startswith("kept")
    assert thinned == registry.pruner(name).prune(frames, keep=keep, redundant=redundant)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(registry.BUILT_IN["pruner"].keys() - {"aks"}))  # which needs a question
def test_pruners_get_bad_frames_and_copies_only_where_they_say_so(name: str, tmp_path: Path) -> None:
    run = vip.extract(SAMPLE, out=tmp_path / "run", sampler="uniform", pruner=name, embedder="classic", keyframes=8, min_sharpness=300)
    dropped_before = {row.decision.rule for row in run.candidates} - {"kept", "pruned"}
    assert (not dropped_before) == registry.pruner(name).capabilities.as_is


@pytest.mark.parametrize("name", sorted(registry.BUILT_IN["pruner"].keys() - {"aks"}))
def test_pruners_that_do_not_choose_by_relevance_need_none(name: str) -> None:
    asked = at_angles([10.0 * step for step in (0, 3, 3, 9, 1, 17)])
    unasked = prunable(asked.embeddings)
    assert registry.pruner(name).prune(unasked, keep=3, redundant=0.9) == registry.pruner(name).prune(asked, keep=3, redundant=0.9)


def test_the_pruner_that_chooses_by_relevance_says_what_it_needs() -> None:
    with pytest.raises(UsageError, match="--query"):
        registry.pruner("aks").prune(prunable(at_angles([0, 10]).embeddings), keep=1, redundant=0.9)


@given(st.lists(st.integers(0, 17), min_size=1, max_size=16), st.one_of(st.none(), st.integers(1, 20)))
@settings(deadline=None, max_examples=50)
def test_the_pruner_that_chooses_by_relevance_scores_by_it_and_has_no_curve(steps: list[int], keep: int | None) -> None:
    frames = at_angles([10.0 * step for step in steps])
    assert frames.relevance is not None
    thinned = registry.pruner("aks").prune(frames, keep=keep, redundant=0.9)
    assert [drop.score for drop in thinned.drops] == [frames.relevance[drop.index] for drop in thinned.drops]
    assert list(thinned.curve) == []
    stay = set(range(len(frames))) - {drop.index for drop in thinned.drops}
    assert max(frames.relevance) == max(frames.relevance[row] for row in stay)
    assert all(set(drop.neighbours) <= stay for drop in thinned.drops)


@embedders
def test_embedders_give_unit_rows_of_their_width(name: str, full_name: Callable[[str], str]) -> None:
    embedder = registry.embedder(full_name(name), precision="fp32")
    images = [picture(seed) for seed in range(3)]
    for vectors, count in ((embedder.embed_images(images), 3), (embedder.embed_images([]), 0)):
        assert vectors.shape == (count, embedder.dim)
        assert vectors.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    texts = embedder.embed_texts(["Face at the left (90%).", "Nothing.", ""])
    assert texts.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(texts, axis=1), 1, atol=1e-5)
    assert embedder.embed_texts([]).shape == (0, texts.shape[1])


@embedders
def test_embedders_do_not_depend_on_company_and_do_not_change(name: str, full_name: Callable[[str], str]) -> None:
    images = [picture(seed) for seed in range(3)]
    together = registry.embedder(full_name(name), precision="fp32").embed_images(images)
    alone = np.concatenate([registry.embedder(full_name(name), precision="fp32").embed_images([image]) for image in images])
    np.testing.assert_allclose(together, alone, atol=1e-5)


@pytest.fixture(params=["here", "served"])
def embedder_at(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Embedder]]:
    """An embedder of this process, or one that is served to it."""
    with ExitStack() as stack:

        def make(name: str) -> Embedder:
            if request.param == "here":
                return registry.embedder(name, device="cpu", precision="fp32")
            address, stop = registry.serve_embedder(name, "127.0.0.1", device="cpu", precision="fp32")
            stack.callback(stop)
            return ServedEmbedder(address)

        yield make


@embedders
def test_embedders_do_what_their_record_says(name: str, full_name: Callable[[str], str], embedder_at: Callable[[str], Embedder]) -> None:
    embedder = embedder_at(full_name(name))
    can, images = embedder.capabilities, [picture(seed) for seed in range(3)]
    vectors = embedder.embed_images(images)
    assert -1 < can.redundant_cosine <= (vectors @ embedder.embed_images(images).T).diagonal().min()
    assert not can.joint_space or embedder.embed_texts(["a dog"]).shape == (1, embedder.dim)
    assert can.device is None or can.device.partition(" in ")[::2] == ("cpu", "fp32")
    many = (images * can.batch)[: can.batch + 1]
    np.testing.assert_allclose(embedder.embed_images(many), np.tile(vectors, (can.batch, 1))[: can.batch + 1], atol=1e-5)
    small = [can.prepare(image) if can.prepare else image for image in images]
    assert all(max(image.shape) <= 640 and image.dtype == np.uint8 for image in small)
    np.testing.assert_allclose(embedder.embed_images(small), vectors, atol=1e-5)
    assert replace(can, prepare=None) == replace(
        registry.embedder(full_name(name), device="cpu", precision="fp32").capabilities, prepare=None
    )


@detectors
def test_detectors_do_what_their_record_says(name: str, full_name: Callable[[str], str]) -> None:
    detector = registry.detector(full_name(name), device="cpu")
    can, where = detector.capabilities, [PictureOrigin(time_s=0.0)]
    assert can == registry.detector(full_name(name), device="cpu").capabilities
    assert can.side_px is None or can.side_px > 0
    assert can.batch >= 1
    assert can.device is None or can.device.startswith("cpu in ")
    images = [picture(seed) for seed in range(can.batch + 2)]
    one_by_one = [_rounded(detector.detect([image], where)[0]) for image in images]
    assert [_rounded(row) for row in detector.detect(images, where * len(images))] == one_by_one
    if can.device is None:
        with ThreadPoolExecutor(4) as pool:
            assert [_rounded(rows[0]) for rows in pool.map(lambda image: detector.detect([image], where), images)] == one_by_one


@detectors
def test_detectors_give_a_list_for_each_picture_the_surest_first(name: str, full_name: Callable[[str], str]) -> None:
    detector = registry.detector(full_name(name))
    found = detector.detect([picture(1), picture(2)], [PictureOrigin(time_s=0.0), PictureOrigin(time_s=0.1)])
    assert len(found) == 2
    assert detector.detect([]) == []
    for detections in found:
        assert detections is not None
        assert [row.score for row in detections] == sorted((row.score for row in detections), reverse=True)
        assert all(row.source.partition(":")[0] == name for row in detections)


@detectors
@pytest.mark.parametrize("shape", [(360, 640), (640, 360), (90, 160)])
def test_detectors_find_the_same_again_inside_the_picture_and_leave_it_alone(
    name: str, shape: tuple[int, int], full_name: Callable[[str], str]
) -> None:
    with Video(SAMPLE) as video:
        face = next(video.frames([int(video.index.sync_pts[1])], longest_side_px=640)).image
    image = np.ascontiguousarray(np.resize(face, (*shape, 3)))
    before = image.copy()
    where = [PictureOrigin(time_s=0.0), PictureOrigin(time_s=0.1)]
    first, again, alone = (
        registry.detector(full_name(name)).detect(images, where[: len(images)]) for images in ([image, face], [image, face], [face])
    )
    assert first == again
    assert _rounded(alone[0]) == _rounded(first[1]), "no picture depends on the others"
    assert np.array_equal(image, before)
    for detection in [row for rows in first for row in rows or ()]:
        left, top, right, bottom = detection.box_xyxy
        assert 0 <= left < right <= 1
        assert 0 <= top < bottom <= 1
        assert detection.label == detection.label.lower().strip() != ""


def _rounded(found: Sequence[Detection] | None) -> list[tuple[str, list[float]]]:
    """A model's numbers differ in the last digits where other pictures share its batch."""
    return [(row.label, [round(value, 2) for value in (row.score, *row.box_xyxy)]) for row in found or ()]


@embedders
@pytest.mark.parametrize("shape", [(1, 1), (2, 640), (640, 2), (1080, 1920)])
def test_embedders_take_any_shape_and_leave_the_picture_alone(name: str, shape: tuple[int, int], full_name: Callable[[str], str]) -> None:
    image = np.random.default_rng(0).integers(0, 256, (*shape, 3), np.uint8)
    before = image.copy()
    vectors = registry.embedder(full_name(name), precision="fp32").embed_images([image])
    assert np.isfinite(vectors).all()
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert np.array_equal(image, before)


@embedders
def test_embedders_see_what_is_alike(name: str, full_name: Callable[[str], str]) -> None:
    embedder = registry.embedder(full_name(name), precision="fp32")
    scene, same, other = embedder.embed_images([picture(1), np.roll(picture(1), 8, axis=1), picture(2)])
    assert scene @ same > scene @ other
    face, faces, car = embedder.embed_texts(["Face at the left (90%).", "2 face at the left (90%).", "Car at the right (90%)."])
    assert face @ faces > face @ car


@samplers
def test_samplers_give_no_hidden_frame_and_something_for_a_single_one(name: str, clips: Clips) -> None:
    with Video(clips("one_frame.mp4").path) as video:
        assert registry.sampler(name).sample(video, keyframes=5) == video.index.shown_pts.tolist()


MAKERS: dict[registry.Kind, Callable[[str], object]] = {
    "sampler": registry.sampler,
    "pruner": registry.pruner,
    "embedder": registry.embedder,
    "detector": registry.detector,
    "engine": registry.engine,
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind in MAKERS for name in registry.BUILT_IN[kind] if name not in {"openai", *NEEDS_FILES}]
)
def test_a_backend_bears_its_name_and_refuses_a_detail_that_means_nothing(kind: registry.Kind, name: str) -> None:
    assert getattr(MAKERS[kind](name), "name") == name  # noqa: B009 - the maker's type is wider
    with pytest.raises(BackendError):
        MAKERS[kind](f"{name}:no-such-detail")
