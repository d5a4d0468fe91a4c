"""The embedder `clip`: open_clip's own numbers, weights found, fetched or refused, devices, memory."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import open_clip
import pytest
import torch
from PIL import Image as PillowImage

from tests.extraction.analyses import picture
from tests.models import clip_models
from tests.models.hub_server import hub, put_into_cache
from vip import registry
from vip.errors import BackendError
from vip.models import hub as hub_client
from vip.models.clip import weight_files
from vip.models.clip.embedder import OpenClipEmbedder
from vip.video import Video

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "sample.mp4"
TEXTS = ["a dog jumps", "frisbee at the top left", "nothing"]
REPO = "someone/tiny-clip"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("models")
    return {kind: clip_models.folder(home / kind, kind) for kind in ("clip", "siglip", "longest")}


@pytest.fixture(scope="module")
def frames() -> list[np.ndarray]:
    """Six frames of a real video, and three drawn ones of other shapes."""
    with Video(SAMPLE) as video:
        real = [frame.image for frame in video.frames(video.index.shown_pts[60:600:90].tolist(), longest_side_px=640)]
    return [*real, picture(1), np.ascontiguousarray(picture(2).transpose(1, 0, 2)), np.ascontiguousarray(picture(3)[:90, :130])]


@pytest.fixture
def tiny(tmp_path: Path) -> Iterator[Path]:
    """The checkpoint of an architecture `tiny-clip` that open_clip knows for the test."""
    clip_models.architecture(tmp_path / "configs", "tiny-clip", clip_models.CLIP)
    torch.save(clip_models.model(clip_models.CLIP, "clip").state_dict(), tmp_path / "tiny.pt")
    yield tmp_path / "tiny.pt"
    open_clip.factory._MODEL_CONFIGS.pop("tiny-clip", None)


def own(folder: Path, images: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """What open_clip's README does: its transform with PIL, one picture at a time, fp32."""
    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    model.eval()
    with torch.inference_mode():
        pictures = [model.encode_image(transform(PillowImage.fromarray(image))[None], normalize=True)[0] for image in images]
        texts = model.encode_text(open_clip.get_tokenizer(f"local-dir:{folder}")(TEXTS), normalize=True)
    return torch.stack(pictures).numpy(), texts.numpy()


@pytest.mark.parametrize(("precision", "least"), [("fp32", 0.999), ("bf16", 0.99)])
@pytest.mark.parametrize("kind", ["clip", "siglip", "longest"])
def test_the_numbers_are_those_of_open_clip(
    kind: str, precision: str, least: float, folders: dict[str, Path], frames: list[np.ndarray]
) -> None:
    embedder = registry.embedder(f"clip:{folders[kind]}", device="cpu", precision=precision)
    images, texts = own(folders[kind], frames)
    mine = embedder.embed_images(frames)
    assert (images * mine).sum(axis=1).min() >= least
    assert (texts * embedder.embed_texts(TEXTS)).sum(axis=1).min() >= least
    drawn = images[-3:] @ mine[-3:].T
    assert (drawn - np.eye(3)).max() < 0.97, "pictures that differ have other vectors, or the test would say nothing"


@pytest.mark.parametrize("kind", ["clip", "siglip", "longest"])
def test_a_prepared_picture_has_the_vector_of_the_whole(kind: str, folders: dict[str, Path], frames: list[np.ndarray]) -> None:
    embedder = OpenClipEmbedder(str(folders[kind]), device="cpu", precision="fp32")
    small = [embedder.capabilities.prepare(frame) for frame in frames]
    assert {image.shape for image in small} == {(64, 64, 3)}
    np.testing.assert_allclose(embedder.embed_images(small), embedder.embed_images(frames), atol=1e-5)


def test_pictures_and_texts_share_a_space_and_keep_their_order(folders: dict[str, Path], frames: list[np.ndarray]) -> None:
    embedder = OpenClipEmbedder(str(folders["clip"]), device="cpu", precision="fp32")
    together, alone = embedder.embed_images(frames), [embedder.embed_images([frame])[0] for frame in frames]
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert embedder.capabilities.joint_space
    assert embedder.embed_texts(TEXTS).shape == (3, embedder.dim) == (3, together.shape[1])
    assert embedder.embed_images([]).shape == embedder.embed_texts([]).shape == (0, embedder.dim)


def test_weights_of_ones_own_that_were_replaced_are_another_embedder(folders: dict[str, Path], tiny: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(folders["clip"], tmp_path / "copy")
    for detail, file in ((str(folder), next(folder.glob("open_clip_model*"))), (f"tiny-clip@{tiny}", tiny)):
        before = [OpenClipEmbedder(detail, device="cpu", precision="fp32") for _ in range(2)]
        assert before[0].capabilities.identity == before[1].capabilities.identity
        os.utime(file, (1000, 1000))
        after = OpenClipEmbedder(detail, device="cpu", precision="fp32")
        assert after.name == before[0].name
        assert after.capabilities.identity != before[0].capabilities.identity


def test_a_long_text_is_cut_off_and_not_refused(folders: dict[str, Path]) -> None:
    embedder = OpenClipEmbedder(str(folders["clip"]), device="cpu")
    long, longer = embedder.embed_texts(["dog " * 100, "dog " * 200])
    np.testing.assert_allclose(long, longer, atol=1e-6)


def test_a_checkpoint_of_an_architecture(tiny: Path, frames: list[np.ndarray]) -> None:
    embedder = registry.embedder(f"clip:tiny-clip@{tiny}", device="cpu", precision="fp32")
    assert embedder.name == f"clip:tiny-clip@{tiny}"
    assert embedder is registry.embedder(f"clip:tiny-clip@{tiny}", device="cpu", precision="fp32"), "loaded once a process"
    model = open_clip.create_model("tiny-clip", pretrained=str(tiny)).eval()
    transform = open_clip.image_transform(64, is_train=False)
    with torch.inference_mode():
        wanted = model.encode_image(torch.stack([transform(PillowImage.fromarray(frame)) for frame in frames]), normalize=True).numpy()
    assert (wanted * embedder.embed_images(frames)).sum(axis=1).min() >= 0.999


# ---------------------------------------------------------------- what cannot be had


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        ("ViT-B-33/openai", 'no architecture "ViT-B-33". Did you mean'),
        ("ViT-B-32", "has several weights for ViT-B-32; there is openai, laion400m_e31"),
        ("ViT-B-32/laion", 'has no weights "laion" for ViT-B-32'),
        ("ViT-B-32@no/such/file.pt", "There is no checkpoint no/such/file.pt"),
        ("ViT-M-16", "knows no weights for ViT-M-16"),
        (str(Path(__file__).parent), "has no open_clip_config.json"),
    ],
)
def test_a_model_that_there_is_not(detail: str, said: str) -> None:
    with pytest.raises(BackendError) as caught:
        OpenClipEmbedder(detail)
    assert said in str(caught.value)


def test_a_checkpoint_of_another_architecture_is_one_sentence(tiny: Path) -> None:
    other = {**clip_models.CLIP, "vision_cfg": {**clip_models.CLIP["vision_cfg"], "width": 96}}
    torch.save(clip_models.model(other, "clip").state_dict(), tiny)
    with pytest.raises(BackendError, match=r"holds no weights of tiny-clip \(.*size mismatch.*Name the architecture") as caught:
        OpenClipEmbedder(f"tiny-clip@{tiny}", device="cpu")
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)


def test_a_checkpoint_of_another_kind_of_model_is_one_sentence(tiny: Path) -> None:
    torch.save(clip_models.model(clip_models.SIGLIP, "siglip").state_dict(), tiny)
    with pytest.raises(BackendError, match=r"holds no weights of tiny-clip \(its tensors have other names\)"):
        OpenClipEmbedder(f"tiny-clip@{tiny}", device="cpu")


@pytest.mark.parametrize("data", [b"", b"no weights at all", b"PK\x03\x04 half a file"])
def test_a_file_that_is_no_checkpoint_is_one_sentence(data: bytes, tiny: Path) -> None:
    tiny.write_bytes(data)
    with pytest.raises(BackendError, match="holds no weights of tiny-clip"):
        OpenClipEmbedder(f"tiny-clip@{tiny}", device="cpu")


def test_a_folder_without_weights_is_refused_and_not_filled_at_random(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "open_clip_config.json").write_bytes((folders["clip"] / "open_clip_config.json").read_bytes())
    with pytest.raises(BackendError, match="holds no weights"):
        OpenClipEmbedder(str(tmp_path), device="cpu")


@pytest.mark.parametrize("name", ["/home/you/model", "../model", "~/model", "owner/../../model"])
@pytest.mark.parametrize(
    ("tower", "key"), [("text_cfg", "hf_model_name"), ("text_cfg", "hf_tokenizer_name"), ("vision_cfg", "timm_model_name")]
)
def test_a_folder_that_names_a_path_is_refused(tower: str, key: str, name: str, folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["clip"], tmp_path / "clip")
    path = tmp_path / "clip" / "open_clip_config.json"
    config = json.loads(path.read_text())
    config["model_cfg"][tower][key] = name
    path.write_text(json.dumps(config))
    with pytest.raises(BackendError, match=f"names {re.escape(name)}, which is no model of the hub"):
        OpenClipEmbedder(str(tmp_path / "clip"), device="cpu")


def test_a_folder_asks_no_hub_for_what_it_names(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    was_offline: list[bool] = []
    create = open_clip.create_model
    monkeypatch.setattr(open_clip, "create_model", lambda *a, **k: (was_offline.append(constants.HF_HUB_OFFLINE), create(*a, **k))[1])
    OpenClipEmbedder(str(folders["clip"]), device="cpu")
    assert (was_offline, constants.HF_HUB_OFFLINE) == ([True], False)


def test_a_pipe_in_a_folder_holds_nothing_up(folders: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(folders["clip"], tmp_path / "clip")
    os.mkfifo(tmp_path / "clip" / "special_tokens_map.json")
    with pytest.raises(BackendError, match=r"cannot be read: special_tokens_map\.json: it is no regular file"):
        OpenClipEmbedder(str(tmp_path / "clip"), device="cpu")


def test_a_library_that_is_not_installed_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "open_clip", None)
    with pytest.raises(BackendError, match=r"pip install 'vip-keyframes\[clip\]'"):
        OpenClipEmbedder(None)


# ---------------------------------------------------------------- the hub


@pytest.fixture
def at_hub(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[dict[str, bytes], list[str], Path]]:
    """Weights `tiny-clip/test` on a hub of this machine: its files, the requests it gets, and the local cache."""
    from huggingface_hub import constants

    monkeypatch.setitem(open_clip.pretrained._PRETRAINED, "tiny-clip", {"test": open_clip.pretrained._pcfg(hf_hub=f"{REPO}/")})
    cache = tmp_path / "cache"
    files = {"open_clip_pytorch_model.bin": tiny.read_bytes()}
    with hub(REPO, files) as (address, asked):
        monkeypatch.setattr(constants, "ENDPOINT", address)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + "/{repo_id}/resolve/{revision}/{filename}")
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        hub_client.probe_error.cache_clear()
        yield files, asked, cache
    hub_client.probe_error.cache_clear()


def test_weights_are_downloaded_once_and_then_found(
    at_hub: tuple[dict[str, bytes], list[str], Path], tiny: Path, frames: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, asked, cache = at_hub
    embedder = OpenClipEmbedder("tiny-clip/test", device="cpu", precision="fp32")
    assert "GET open_clip_pytorch_model.bin" in asked
    assert list(cache.rglob("open_clip_pytorch_model.bin"))
    wanted = OpenClipEmbedder(f"tiny-clip@{tiny}", device="cpu", precision="fp32")
    np.testing.assert_array_equal(embedder.embed_images(frames), wanted.embed_images(frames))
    asked.clear()
    OpenClipEmbedder("tiny-clip/test", device="cpu")
    assert asked == []


@pytest.mark.parametrize(("offline", "said"), [(True, "HF_HUB_OFFLINE is set"), (False, "127.0.0.1 cannot be reached")])
def test_weights_that_are_nowhere(
    offline: bool, said: str, at_hub: tuple[dict[str, bytes], list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)
    if not offline:
        monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:1")
    with pytest.raises(BackendError, match=f"not in the cache and cannot be downloaded: {said}.*--embedder classic"):
        OpenClipEmbedder("tiny-clip/test")
    assert at_hub[1] == []


def test_a_repository_without_the_file_is_said(at_hub: tuple[dict[str, bytes], list[str], Path]) -> None:
    at_hub[0].clear()
    with pytest.raises(BackendError, match=f"{REPO} has none of the files"):
        OpenClipEmbedder("tiny-clip/test")


def test_a_damaged_file_in_the_cache_is_said_with_its_path(at_hub: tuple[dict[str, bytes], list[str], Path]) -> None:
    put_into_cache(at_hub[2], REPO, {"open_clip_model.safetensors": b"\0" * 100})
    with pytest.raises(BackendError, match=r"open_clip_model\.safetensors holds no weights .* Delete that file"):
        OpenClipEmbedder("tiny-clip/test")


def test_a_tokenizer_that_is_nowhere(
    at_hub: tuple[dict[str, bytes], list[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    clip_models.architecture(tmp_path / "configs", "tiny-siglip", clip_models.SIGLIP)
    weights = io.BytesIO()
    torch.save(clip_models.model(clip_models.SIGLIP, "siglip").state_dict(), weights)
    (tmp_path / "siglip.pt").write_bytes(weights.getvalue())
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(BackendError, match="The tokenizer timm/ViT-B-16-SigLIP of tiny-siglip is not in the cache"):
        OpenClipEmbedder(f"tiny-siglip@{tmp_path / 'siglip.pt'}")
    open_clip.factory._MODEL_CONFIGS.pop("tiny-siglip", None)


# ---------------------------------------------------------------- auto


@pytest.fixture
def auto(
    at_hub: tuple[dict[str, bytes], list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[dict[str, bytes], list[str], Path]]:
    """`auto` decides anew, and its weights would come from the hub of this machine."""
    monkeypatch.setattr(weight_files, "DEFAULT_PRETRAINED", {"hf_hub": f"{REPO}/"})
    registry._why_not_clip.cache_clear()
    yield at_hub
    registry._why_not_clip.cache_clear()


def test_auto_takes_clip_where_its_weights_are_in_the_cache(auto: tuple[dict[str, bytes], list[str], Path]) -> None:
    put_into_cache(auto[2], REPO, auto[0])
    assert registry.auto_embedder("auto")[0] == "clip"
    assert auto[1] == [], "nobody was asked"


def test_auto_takes_clip_where_its_weights_can_be_had(auto: tuple[dict[str, bytes], list[str], Path]) -> None:
    assert registry.auto_embedder("auto")[0] == "clip"
    assert "GET open_clip_pytorch_model.bin" in auto[1]


def test_auto_takes_classic_where_the_download_fails_and_says_why(auto: tuple[dict[str, bytes], list[str], Path]) -> None:
    auto[0].clear()
    name, why = registry.auto_embedder("auto")
    assert name == "classic"
    assert why is not None
    assert f"{REPO} has none of the files" in why


def test_auto_takes_classic_offline_and_loads_nothing_for_it(
    auto: tuple[dict[str, bytes], list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setitem(sys.modules, "torch", None)
    assert registry.auto_embedder("auto") == ("classic", "clip's weights are not here, and HF_HUB_OFFLINE is set")


def test_auto_takes_classic_where_clip_is_not_installed(
    auto: tuple[dict[str, bytes], list[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(weight_files, "find_spec", lambda name: None)
    assert registry.auto_embedder("auto") == ("classic", "open_clip is not installed")


def test_a_name_is_never_replaced() -> None:
    assert registry.auto_embedder("clip:ViT-B-32/openai") == ("clip:ViT-B-32/openai", None)


def test_the_weights_of_auto_are_those_of_the_default_model() -> None:
    known = open_clip.get_pretrained_cfg(weight_files.DEFAULT_ARCH, weight_files.DEFAULT_TAG)
    assert weight_files.DEFAULT_PRETRAINED["hf_hub"] == known["hf_hub"]


# ---------------------------------------------------------------- devices and memory


def test_memory_that_runs_out_halves_the_batch_and_goes_on(
    folders: dict[str, Path], frames: list[np.ndarray], monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = OpenClipEmbedder(str(folders["clip"]), device="cpu", precision="fp32")
    wanted = embedder.embed_images(frames)
    real: Any = embedder._model.encode_image
    batches = []

    def small_ones(pixels: torch.Tensor) -> torch.Tensor:
        batches.append(len(pixels))
        if len(pixels) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return real(pixels)

    monkeypatch.setattr(embedder._model, "encode_image", small_ones)
    np.testing.assert_allclose(embedder.embed_images(frames), wanted, atol=1e-5)
    assert batches == [9, 4, 2, 2, 2, 2, 1]
    batches.clear()
    embedder.embed_images(frames)
    assert batches == [2, 2, 2, 2, 1], "the size that fits is remembered"


def test_memory_that_does_not_suffice_for_one_picture_is_said(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = OpenClipEmbedder(str(folders["clip"]), device="cpu")

    def never(pixels: torch.Tensor) -> torch.Tensor:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(embedder._model, "encode_image", never)
    with pytest.raises(BackendError, match="not even with one picture at a time"):
        embedder.embed_images([picture(1)])


def test_an_error_of_the_model_is_not_taken_for_a_lack_of_memory(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = OpenClipEmbedder(str(folders["clip"]), device="cpu")

    def broken(pixels: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("a bug")

    monkeypatch.setattr(embedder._model, "encode_image", broken)
    with pytest.raises(RuntimeError, match="a bug"):
        embedder.embed_images([picture(1)])


FORKED = """
import sys
import numpy as np
from vip import registry
from vip.processes import isolated
from vip.protocols import SilentObserver

embedder = registry.embedder(f"clip:{sys.argv[1]}", device="cpu", precision="fp32")
assert isolated._can_fork()
pictures = list(np.load(sys.argv[2]))
def work(observer):
    np.save(sys.argv[3], embedder.embed_images(pictures))
isolated.run_isolated(work, "test", SilentObserver(), timeout_s=60, fork=True)
"""


def test_a_process_that_loaded_the_model_can_be_forked(folders: dict[str, Path], tmp_path: Path) -> None:
    pictures = [picture(seed) for seed in range(40)]
    np.save(tmp_path / "pictures.npy", pictures)
    files = [str(folders["clip"]), str(tmp_path / "pictures.npy"), str(tmp_path / "vectors.npy")]
    subprocess.run([sys.executable, "-c", FORKED, *files], check=True, timeout=120)
    wanted = OpenClipEmbedder(files[0], device="cpu", precision="fp32").embed_images(pictures)
    np.testing.assert_allclose(np.load(files[2]), wanted, atol=1e-5)
