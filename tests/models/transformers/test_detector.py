"""The detectors `transformers`: each kind of model against the library's own way from a picture to boxes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from tests.models import tiny_models  # noqa: E402
from tests.models.tiny_models import SAVERS, picture  # noqa: E402
from vip import registry  # noqa: E402
from vip.errors import BackendError, UsageError  # noqa: E402
from vip.models import hub  # noqa: E402
from vip.models.transformers import fixed_vocabulary, open_vocabulary  # noqa: E402
from vip.models.transformers.detector import _read_model_type, transformers_detector  # noqa: E402
from vip.models.transformers.detector_base import FoundObject, TransformersDetector, to_detections  # noqa: E402
from vip.models.transformers.florence import read_boxes  # noqa: E402
from vip.records import Detection, Image  # noqa: E402

LABELS = {"owlv2": ("dog", "a red cup"), "grounding-dino": ("dog", "a red cup")}
PICTURES = [picture(seed) for seed in range(5)]
kinds = pytest.mark.parametrize("kind", SAVERS)

Model = Callable[[str], Path]


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """Tiny models on many threads wait for one another."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Folders with tiny models, built when they are first asked for."""
    folders: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in folders:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of building models, which users do not do
                saver = {**SAVERS, "bert": tiny_models.save_bert}[kind]
                folders[kind] = saver(tmp_path_factory.mktemp(kind))
        return folders[kind]

    return folder


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "unreachable_reason", lambda: "this is a test")


def made(kind: str, model: Model, **settings: str) -> TransformersDetector:
    detector = transformers_detector(str(model(kind)), LABELS.get(kind), **settings)
    assert isinstance(detector, TransformersDetector)
    return detector


def found(detector: TransformersDetector, images: list[Image]) -> list[list[Detection]]:
    rows = detector.detect(images)
    assert None not in rows
    return [row for row in rows if row is not None]


def close(one: list[Detection], other: list[Detection]) -> None:
    assert [(row.label, row.kind, row.source) for row in one] == [(row.label, row.kind, row.source) for row in other]
    for mine, theirs in zip(one, other, strict=True):
        assert mine.score == pytest.approx(theirs.score, abs=2e-4)
        assert mine.box_xyxy == pytest.approx(theirs.box_xyxy, abs=1e-4)


# ---------------------------------------------------------------- against the library's own way


def as_detections(rows: list[tuple[str, float, list[float]]], size: tuple[int, int], source: str) -> list[Detection]:
    """The library's boxes, in pixels of a picture of (height, width), as the protocol has them; written apart from the adapter."""
    height, width = size
    fitted = [
        Detection(
            label=label.lower(),
            score=round(score, 4),
            box_xyxy=(max(0, left / width), max(0, top / height), min(1, right / width), min(1, bottom / height)),
            source=source,
        )
        for label, score, (left, top, right, bottom) in rows
        if max(0, left) < min(width, right) and max(0, top) < min(height, bottom)
    ]
    return sorted(fitted, key=lambda row: (-row.score, row.box_xyxy))


@pytest.mark.parametrize("kind", ["detr", "rt_detr", "yolos"])
def test_detectors_of_classes_find_what_the_librarys_own_steps_find(kind: str, model: Model) -> None:
    detector = made(kind, model)
    processor = transformers.AutoImageProcessor.from_pretrained(model(kind))
    network = transformers.AutoModelForObjectDetection.from_pretrained(model(kind), dtype=torch.float32).eval()
    counts = []
    for image, mine in zip(PICTURES, found(detector, PICTURES), strict=True):
        with torch.no_grad():
            outputs = network(**processor(images=image, return_tensors="pt"))
        result = processor.post_process_object_detection(outputs, target_sizes=[image.shape[:2]])[0]  # with its own least score
        names = [network.config.id2label[number] for number in result["labels"].tolist()]
        rows = list(zip(names, result["scores"].tolist(), result["boxes"].tolist(), strict=True))
        close(mine, as_detections(rows, image.shape[:2], detector.name))
        counts.append(len(mine))
    assert 0 < sum(counts) < 5 * outputs.logits.shape[1], "some boxes lie above the bound and some below it"


def test_owlv2_finds_what_the_librarys_own_steps_find(model: Model) -> None:
    detector = made("owlv2", model)
    processor = transformers.AutoProcessor.from_pretrained(model("owlv2"))
    network = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(model("owlv2"), dtype=torch.float32).eval()
    labels = set()
    for image, mine in zip(PICTURES, found(detector, PICTURES), strict=True):
        with torch.no_grad():
            outputs = network(**processor(text=[["dog", "a red cup"]], images=image, return_tensors="pt"))
        result = processor.post_process_grounded_object_detection(
            outputs, threshold=0.2, target_sizes=[image.shape[:2]], text_labels=[["dog", "a red cup"]]
        )[0]
        rows = list(zip(result["text_labels"], result["scores"].tolist(), result["boxes"].tolist(), strict=True))
        assert 0 < len(rows) < outputs.logits.shape[1]
        close(mine, as_detections(rows, image.shape[:2], detector.name))
        labels |= {row.label for row in mine}
    assert labels == {"dog", "a red cup"}


def test_grounding_dino_finds_the_librarys_boxes_under_the_words_that_were_given(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    least = 0.8
    monkeypatch.setattr(open_vocabulary, "DINO_LEAST_SCORE", least)
    detector = made("grounding-dino", model)
    processor = transformers.AutoProcessor.from_pretrained(model("grounding-dino"))
    network = transformers.AutoModelForZeroShotObjectDetection.from_pretrained(model("grounding-dino"), dtype=torch.float32).eval()
    word_of_piece = {"dog": "dog", "a": "a red cup", "red": "a red cup", "cup": "a red cup"}
    compared = count = 0
    for image, mine in zip(PICTURES, found(detector, PICTURES), strict=True):
        inputs = processor(text=[["dog", "a red cup"]], images=image, return_tensors="pt")
        with torch.no_grad():
            outputs = network(**inputs)
        count += len(mine)
        for row in mine:  # the library names a box by all tokens above a bound: set just under the score, that is the best one
            result = processor.post_process_grounded_object_detection(
                outputs, inputs["input_ids"], threshold=least, text_threshold=row.score - 2e-4, target_sizes=[image.shape[:2]]
            )[0]
            rows = zip(result["text_labels"], result["scores"].tolist(), result["boxes"].tolist(), strict=True)
            same = [
                text
                for text, score, box in rows
                if as_detections([("x", score, box)], image.shape[:2], "x")
                and as_detections([("x", score, box)], image.shape[:2], "x")[0].box_xyxy == pytest.approx(row.box_xyxy, abs=1e-4)
            ]
            assert len(same) == 1
            pieces = {word_of_piece[piece] for piece in same[0].replace(".", " ").split() if piece in word_of_piece}
            assert row.label in pieces
            compared += len(pieces) == 1
    assert compared > 3
    assert count < len(PICTURES) * outputs.logits.shape[1]


def test_words_of_several_pieces_get_their_whole_label() -> None:
    """[CLS] dog . red cup ##s . [SEP]"""
    assert open_vocabulary._map_tokens_to_words([2, 7, 11, 8, 9, 10, 11, 3], 11, {2, 3, 0}) == {1: 0, 3: 1, 4: 1, 5: 1}


def without_marks(labels: list[str], boxes: list[list[int]]) -> list[tuple[str, list[int]]]:
    """The library takes the end of a mark before a label for a part of it: `loc_480>cat`, and boxes without a label for one `loc_480>`."""
    rows = [(label.rpartition(">")[2].strip(), box) for label, box in zip(labels, boxes, strict=True)]
    return [row for row in rows if row[0]]


def test_florence_writes_what_the_librarys_own_steps_read(model: Model) -> None:
    detector = made("florence2", model)
    processor = transformers.AutoProcessor.from_pretrained(model("florence2"))
    network = transformers.Florence2ForConditionalGeneration.from_pretrained(model("florence2"), dtype=torch.float32).eval()
    count = 0
    for image, mine in zip(PICTURES[:3], found(detector, PICTURES[:3]), strict=True):
        for task, kind in (("<OD>", "object"), ("<DENSE_REGION_CAPTION>", "region")):
            inputs = processor(text=task, images=image, return_tensors="pt")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                tokens = network.generate(**inputs, max_new_tokens=127, num_beams=1, do_sample=False)
            answer = processor.post_process_generation(sequence=tokens[0], task=task, image_size=(2000, 2000))[task]
            theirs = [
                (label.lower(), *box)
                for label, box in without_marks(answer["labels"], answer["bboxes"])
                if box[0] < box[2] and box[1] < box[3]
            ]
            rows = [row for row in mine if row.kind == kind]
            assert sorted((row.label, *(round(side * 2000) for side in row.box_xyxy)) for row in rows) == sorted(theirs)
            count += len(rows)
    assert count > 5


def test_florences_score_is_the_geometric_mean_of_its_words_probabilities(model: Model) -> None:
    detector = made("florence2", model)
    processor = transformers.AutoProcessor.from_pretrained(model("florence2"))
    network = transformers.Florence2ForConditionalGeneration.from_pretrained(model("florence2"), dtype=torch.float32).eval()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        inputs = processor(text="<OD>", images=PICTURES[0], return_tensors="pt")
        outputs = network.generate(
            **inputs, max_new_tokens=127, num_beams=1, do_sample=False, output_scores=True, return_dict_in_generate=True
        )
    chosen = network.compute_transition_scores(outputs.sequences, outputs.scores, normalize_logits=True)[0]
    pieces = processor.tokenizer.convert_ids_to_tokens(outputs.sequences[0, 1:].tolist())
    scores = []
    for place in range(1, len(pieces)):
        if pieces[place].startswith("<loc_") and not pieces[place - 1].startswith("<"):
            first = place
            while first > 0 and not pieces[first - 1].startswith("<"):
                first -= 1
            scores.append(round(float(chosen[first:place].mean().exp()), 4))
    mine = {row.score for row in found(detector, PICTURES[:1])[0] if row.kind == "object"}
    assert mine
    assert all(min(abs(score - other) for other in scores) < 2e-4 for score in mine)


TOKENIZER = tiny_models.florence_tokenizer()
PIECES = ["dog", "cup", "red", "Ġ", "s", "-", "<od>", "<sep>", "<s>", "<pad>", "<unk>", *(f"<loc_{place}>" for place in (0, 3, 500, 999))]
LOCATIONS = st.lists(st.sampled_from(["<loc_0>", "<loc_3>", "<loc_500>", "<loc_999>"]), min_size=3, max_size=9)


@given(st.lists(st.one_of(st.lists(st.sampled_from(PIECES), max_size=4), LOCATIONS), max_size=8))
def test_texts_with_boxes_are_read_as_the_library_reads_them(parts: list[list[str]]) -> None:
    from transformers.models.florence2.processing_florence2 import Florence2PostProcessor

    pieces = [piece for part in parts for piece in part]
    tokens = TOKENIZER.convert_tokens_to_ids(pieces)
    vocabulary = TOKENIZER.get_vocab()
    places = {number: int(token[5:-1]) for token, number in vocabulary.items() if token.startswith("<loc_")}
    silent = {vocabulary[token] for token in ("<s>", "</s>", "<pad>")}
    mine = read_boxes(
        tokens,
        [0.5] * len(tokens),
        "object",
        bins=places,
        ignored=silent,
        marks={number for token, number in vocabulary.items() if "<" in token} - silent - set(places),
        decode=TOKENIZER.decode,
    )
    reader = Florence2PostProcessor({"description_with_bboxes": {}}, TOKENIZER)
    # given as a text: of a list of tokens the library cuts the first off
    text, _ = reader.decode_with_spans(tokens)
    theirs = reader(text=text, image_size=(2000, 2000), parse_tasks="description_with_bboxes")["description_with_bboxes"]
    expected = without_marks([row["cat_name"] for row in theirs], [row["bbox"] for row in theirs])
    assert [(one.label.strip(), [round(side * 2000) for side in one.box_xyxy]) for one in mine if one.label.strip()] == expected
    assert all(one.score == pytest.approx(0.5) for one in mine)


# ---------------------------------------------------------------- what all kinds keep


@kinds
def test_detections_are_inside_the_picture_named_and_in_order(kind: str, model: Model) -> None:
    detector = made(kind, model)
    before = [image.copy() for image in PICTURES]
    rows = found(detector, PICTURES)
    assert all(np.array_equal(image, copy) for image, copy in zip(PICTURES, before, strict=True))
    assert found(detector, []) == []
    assert any(rows)
    assert detector.name == f"transformers:{model(kind)}"
    for row in rows:
        assert row == sorted(row, key=lambda one: (-one.score, one.box_xyxy))
        for one in row:
            left, top, right, bottom = one.box_xyxy
            assert 0 <= left < right <= 1
            assert 0 <= top < bottom <= 1
            assert one.label == one.label.lower().strip() != ""
            assert one.source == detector.name
            assert one.score == round(one.score, 4)


@kinds
def test_no_picture_depends_on_its_company(kind: str, model: Model) -> None:
    detector = made(kind, model)
    mixed = [PICTURES[0], picture(7, 90, 60), PICTURES[1], picture(8, 30, 90), PICTURES[2]]
    for together, image in zip(found(detector, mixed), mixed, strict=True):
        close(together, found(detector, [image])[0])


@kinds
def test_odd_sizes_are_searched(kind: str, model: Model) -> None:
    detector = made(kind, model)
    assert len(found(detector, [picture(0, *shape) for shape in ((1, 1), (10, 40), (40, 10), (200, 100))])) == 4


@kinds
def test_out_of_memory_halves_the_batch(kind: str, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = made(kind, model)
    expected = found(detector, PICTURES)
    tried = _limit_batch(detector, 2, monkeypatch)
    detector._batches.size = 5
    for mine, theirs in zip(found(detector, PICTURES), expected, strict=True):
        close(mine, theirs)
    assert tried[0] == 5
    assert {count for count in tried[1:] if count} <= {1, 2}


def test_a_picture_that_does_not_fit_alone_is_a_clear_error(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = made("detr", model)
    _limit_batch(detector, 0, monkeypatch)
    with pytest.raises(BackendError, match="does not fit into the memory of its device"):
        detector.detect(PICTURES)


def _limit_batch(detector: TransformersDetector, most: int, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The model runs out of memory above so many pictures; the sizes that were tried."""
    tried: list[int] = []
    real = detector._model.forward

    def forward(*args: Any, **inputs: Any) -> Any:
        pixels = inputs.get("pixel_values")
        if pixels is not None:
            tried.append(len(pixels))
            if len(pixels) > most:
                raise torch.OutOfMemoryError("CUDA out of memory.")
        return real(*args, **inputs)

    if hasattr(detector._model, "generate"):
        write = detector._model.generate

        def generate(**inputs: Any) -> Any:
            tried.append(len(inputs["pixel_values"]))
            if len(inputs["pixel_values"]) > most:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return write(**inputs)

        monkeypatch.setattr(detector._model, "generate", generate)
    else:
        monkeypatch.setattr(detector._model, "forward", forward)
    return tried


def test_several_threads_find_what_one_finds(model: Model) -> None:
    detector = made("detr", model)
    alone = [found(detector, [image])[0] for image in PICTURES]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda image: found(detector, [image])[0], PICTURES * 4)) == alone * 4


@kinds
def test_bf16_where_it_is_asked_for_finds_about_the_same(kind: str, model: Model) -> None:
    detector = made(kind, model, precision="bf16")
    assert next(detector._model.parameters()).dtype == torch.bfloat16
    assert any(found(detector, PICTURES))
    if kind == "yolos":  # others choose anew among near scores
        first, second = found(detector, PICTURES[:1])[0], found(made(kind, model), PICTURES[:1])[0]
        assert len(first) == pytest.approx(len(second), rel=0.3)


@pytest.mark.parametrize("kind", ["detr", "owlv2", "grounding-dino"])
def test_boxes_of_a_model_in_bf16_are_not_rounded_on_their_way_to_pixels(kind: str, model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    detector = made(kind, model, precision="bf16")
    name = "post_process_object_detection" if kind == "detr" else "post_process_grounded_object_detection"
    to_pixels = getattr(detector._processor, name)
    dtypes = []

    def note(outputs: Any, *arguments: Any, **more: Any) -> Any:
        dtypes.extend([outputs.logits.dtype, outputs.pred_boxes.dtype])
        return to_pixels(outputs, *arguments, **more)

    monkeypatch.setattr(detector._processor, name, note)
    found(detector, PICTURES[:1])
    assert dtypes == [torch.float32, torch.float32]


def test_the_cpu_computes_in_fp32_unless_asked(model: Model) -> None:
    detector = made("rt_detr", model)
    assert next(detector._model.parameters()).dtype == torch.float32
    assert detector.capabilities.device == "cpu in fp32"


@pytest.mark.parametrize(("kind", "side"), [("detr", 96), ("rt_detr", 64), ("owlv2", 64), ("grounding-dino", 64), ("florence2", 32)])
def test_pictures_are_wanted_as_large_as_the_processor_makes_them(kind: str, side: int, model: Model) -> None:
    assert made(kind, model).capabilities.side_px == side


def test_a_model_stays_loaded(model: Model) -> None:
    name = f"transformers:{model('detr')}"
    assert registry.detector(name) is registry.detector(name)


def test_empty_boxes_and_empty_labels_are_left_out() -> None:
    boxes = [
        FoundObject(" A  Dog ", 1.0000001, (-0.5, 0.1, 0.5, 1.5)),
        FoundObject(" ", 0.9, (0, 0, 1, 1)),
        FoundObject("thin", 0.9, (0.5, 0, 0.5, 1)),
        FoundObject("outside", 0.9, (1.2, 0, 1.5, 1)),
        FoundObject("inside out", 0.9, (0.6, 0, 0.5, 1)),
    ]
    assert to_detections(boxes, "s") == [Detection(label="a dog", score=1.0, box_xyxy=(0.0, 0.1, 0.5, 1.0), source="s")]


# ---------------------------------------------------------------- words


@pytest.mark.parametrize("kind", ["owlv2", "grounding-dino"])
@pytest.mark.parametrize("labels", [None, (), (" ", ".")])
def test_detectors_of_words_ask_for_them(kind: str, labels: tuple[str, ...] | None, model: Model) -> None:
    with pytest.raises(BackendError, match="add --labels 'person, dog'"):
        transformers_detector(str(model(kind)), labels)


@pytest.mark.parametrize("kind", ["owlv2", "grounding-dino"])
@pytest.mark.parametrize("labels", [("dog " * 30,), ("dog", "cat " * 30), ("cat " * 30, "dog")])
def test_more_words_than_the_model_reads_are_refused(kind: str, labels: tuple[str, ...], model: Model) -> None:
    with pytest.raises(UsageError, match=r"has \d+ word pieces, and the model .* reads at most (16|24)"):
        transformers_detector(str(model(kind)), labels)


@pytest.mark.parametrize("kind", ["detr", "florence2"])
def test_detectors_of_classes_refuse_words(kind: str, model: Model) -> None:
    with pytest.raises(UsageError, match="--labels dog"):
        transformers_detector(str(model(kind)), ("dog",))


def test_words_count_once_in_small_letters_without_full_stops(model: Model) -> None:
    plain = transformers_detector(str(model("grounding-dino")), ("dog", "a red cup"))
    odd = transformers_detector(str(model("grounding-dino")), ("Dog.", " a  red cup", "dog"))
    assert plain.detect(PICTURES) == odd.detect(PICTURES)


# ---------------------------------------------------------------- what cannot be used


def test_a_model_that_is_no_detector_is_named_with_what_it_is(model: Model) -> None:
    with pytest.raises(BackendError, match=r"is a bert model, which is no detector that vip reads\. It reads: .*detr.*florence2.*owlv2"):
        transformers_detector(str(model("bert")))


def test_weights_of_another_model_are_refused(model: Model, tmp_path: Path) -> None:
    """The library would fill in random ones, and only warn."""
    for name in ("config.json", "preprocessor_config.json", "processor_config.json"):
        if (model("detr") / name).exists():
            (tmp_path / name).write_bytes((model("detr") / name).read_bytes())
    (tmp_path / "model.safetensors").write_bytes((model("bert") / "model.safetensors").read_bytes())
    with pytest.raises(BackendError, match=r"are not those of a detr model .* of \d+ tensors \d+ are missing"):
        transformers_detector(str(tmp_path))


@kinds
def test_one_tensor_that_is_missing_is_enough(kind: str, model: Model, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    for path in model(kind).iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = load_file(tmp_path / "model.safetensors")
    name = next(name for name in sorted(weights) if name.endswith("weight"))
    del weights[name]
    save_file(weights, tmp_path / "model.safetensors", {"format": "pt"})
    with pytest.raises(BackendError, match=r"of \d+ tensors \d+ are missing or of another shape, such as"):
        transformers_detector(str(tmp_path), LABELS.get(kind))


def test_tensors_of_another_shape_are_refused(model: Model, tmp_path: Path) -> None:
    for path in model("detr").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "d_model": 32}))
    with pytest.raises(BackendError, match="cannot be loaded"):
        transformers_detector(str(tmp_path))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "preprocessor_config.json"])
@pytest.mark.parametrize("harm", ["missing", "cut", "empty"])
def test_damaged_folders_are_one_sentence(name: str, harm: str, model: Model, tmp_path: Path) -> None:
    for path in model("rt_detr").iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    content = (tmp_path / name).read_bytes()
    if harm == "missing":
        (tmp_path / name).unlink()
    else:
        (tmp_path / name).write_bytes(content[: len(content) // 2] if harm == "cut" else b"")
    with pytest.raises(BackendError) as caught:
        transformers_detector(str(tmp_path))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500


def test_without_the_extra_nothing_of_it_is_needed_to_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "transformers", "huggingface_hub", "huggingface_hub.utils"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(BackendError, match=r"pip install 'vip-keyframes\[transformers\]'"):
        registry.detector("transformers:a/b")


def test_it_needs_a_model() -> None:
    with pytest.raises(BackendError, match="transformers:PekingU/rtdetr_r50vd"):
        registry.detector("transformers")


@pytest.mark.parametrize("name", ["./no/such/folder", "/no-such-folder", "a/b/c"])
def test_a_folder_that_is_not_there_is_no_model_of_the_hub(name: str) -> None:
    with pytest.raises(BackendError, match="There is no folder"):
        transformers_detector(name)


@pytest.mark.parametrize("name", ["PekingU/rtdetr_r50vd", "no-such-detail", "not a name"])
def test_without_a_network_nothing_is_tried_that_is_not_in_the_cache(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    def refuse(*args: object) -> None:
        raise AssertionError("the network was tried")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(BackendError, match="is not in the local cache and cannot be downloaded, because this is a test"):
        transformers_detector(name)


def test_a_cached_model_is_loaded_without_the_network(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _into_cache(model("rt_detr"), tmp_path, monkeypatch)
    detector = transformers_detector("someone/model")
    assert detector.name == "transformers:someone/model"
    expected = found(made("rt_detr", model), PICTURES)
    rows = detector.detect(PICTURES)
    assert [[one.box_xyxy for one in row or ()] for row in rows] == [[one.box_xyxy for one in row] for row in expected]


def test_a_cache_that_is_not_whole_is_a_clear_error(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    snapshot = _into_cache(model("rt_detr"), tmp_path, monkeypatch)
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(BackendError, match=r"The model someone/model cannot be loaded .* run once more with a connection"):
        transformers_detector("someone/model")


def _into_cache(folder: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model as the hub's client leaves it in its cache."""
    from huggingface_hub import constants

    repository = cache / "models--someone--model"
    snapshot = repository / "snapshots" / ("a" * 40)
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("a" * 40)
    for path in folder.iterdir():
        (snapshot / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    return snapshot


def test_without_the_library_it_says_what_to_install(model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BackendError, match=r"pip install 'vip-keyframes\[transformers\]'"):
        transformers_detector(str(model("detr")))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_device_that_is_not_there_is_refused(model: Model) -> None:
    with pytest.raises(BackendError, match="--device cuda"):
        transformers_detector(str(model("detr")), device="cuda")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_is_forked_after_loading_can_detect(model: Model) -> None:
    """Another process loads it first: in this one torch has long started its threads."""
    script = """
import os, signal, sys
import numpy as np
from vip.models.transformers.detector import transformers_detector
detector = transformers_detector(sys.argv[1])
picture = np.random.default_rng(0).integers(0, 256, (400, 640, 3), np.uint8)
child = os.fork()
if not child:
    signal.alarm(30)
    os._exit(len(detector.detect([picture])))
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 1)
"""
    done = subprocess.run([sys.executable, "-c", script, str(model("rt_detr"))], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr


def test_nothing_is_printed(model: Model, capfd: pytest.CaptureFixture[str]) -> None:
    for kind in ("detr", "florence2"):
        model(kind)
    capfd.readouterr()
    for kind in ("detr", "florence2"):
        made(kind, model).detect(PICTURES[:1])
    assert capfd.readouterr() == ("", "")


def test_the_bound_is_the_librarys_own() -> None:
    import inspect

    for processor in (transformers.DetrImageProcessor, transformers.RTDetrImageProcessor, transformers.YolosImageProcessor):
        assert inspect.signature(processor.post_process_object_detection).parameters["threshold"].default == fixed_vocabulary.LEAST_SCORE


@pytest.mark.parametrize("written", ['{"hidden_size": 4}', '{"model_type": 7}', '{"model_type": null}'])
def test_a_configuration_without_the_type_of_its_model_says_so(written: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(written)
    with pytest.raises(ValueError, match=r"config\.json names no model_type"):
        _read_model_type(str(tmp_path))
