"""Features are those of the model before its last layer; what cannot be loaded is one sentence."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from vip import registry
from vip.errors import BackendError

torchvision = pytest.importorskip("torchvision")

import torch  # noqa: E402

from tests.models.tiny_torchvision import save_model  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.extra("torch")]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def resnet(home: Path) -> Path:
    return save_model("resnet18", home / "resnet18.pt")


def clips(count: int, frames: int) -> list[list[np.ndarray]]:
    return [
        [np.random.default_rng([clip, frame]).integers(0, 255, (48, 64, 3), np.uint8) for frame in range(frames)] for clip in range(count)
    ]


def test_the_appearance_of_a_clip_is_the_mean_over_its_frames_before_the_last_layer(resnet: Path) -> None:
    extractor = registry.extractor(f"torchvision:resnet18@{resnet}", device="cpu", precision="fp32")
    some = clips(3, 2)
    found = extractor.extract(some)
    model = torchvision.models.resnet18()
    model.load_state_dict(torch.load(resnet, weights_only=True))
    model.fc = torch.nn.Identity()
    prepare = torchvision.models.ResNet18_Weights.DEFAULT.transforms()
    with torch.inference_mode():
        rows = [model.eval()(torch.stack([prepare(torch.from_numpy(image).permute(2, 0, 1)) for image in clip])).mean(0) for clip in some]
    np.testing.assert_allclose(found, torch.stack(rows).numpy(), atol=1e-4)
    assert (found.shape, found.dtype) == ((3, 512), np.float32)
    assert not extractor.capabilities.is_motion


def test_maps_are_what_the_last_pooling_gets(resnet: Path) -> None:
    extractor = registry.extractor(f"torchvision:resnet18@{resnet}", device="cpu", precision="fp32")
    some = clips(2, 3)
    maps = extractor.extract(some, maps=True)
    assert maps.shape == (2, 512, 7, 7)
    np.testing.assert_allclose(maps.mean(axis=(2, 3)), extractor.extract(some), atol=1e-4)


def test_a_model_of_videos_sees_all_frames_of_a_clip(home: Path) -> None:
    path = save_model("mc3_18", home / "mc3.pt", wrapper="state_dict")
    extractor = registry.extractor(f"torchvision:mc3_18@{path}", device="cpu", precision="fp32")
    some = clips(2, 4)
    found = extractor.extract(some)
    assert extractor.capabilities.is_motion
    assert found.shape == (2, 512)
    shuffled = extractor.extract([some[0][::-1], some[1]])
    assert np.abs(shuffled[0] - found[0]).max() > 1e-3  # order counts
    np.testing.assert_allclose(shuffled[1], found[1], atol=1e-4)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("torchvision", 'torchvision has no model "".'),
        ("torchvision:resnet19", 'torchvision has no model "resnet19". Did you mean "resnet18"?'),
        ("torchvision:resnet18@none.pt", "There is no checkpoint none.pt."),
        ("torchvision:resnet18/IMAGENET", 'torchvision has no weights "IMAGENET" of resnet18; there is IMAGENET1K_V1.'),
    ],
)
def test_models_that_are_not_there_are_named(name: str, said: str) -> None:
    with pytest.raises(BackendError) as caught:
        registry.extractor(name)
    assert str(caught.value).startswith(said)


def test_weights_of_another_model_and_damaged_files_are_refused(home: Path, resnet: Path) -> None:
    (home / "damaged.pt").write_bytes(b"nothing")
    for path, name in ((resnet, "resnet34"), (home / "damaged.pt", "resnet18")):
        with pytest.raises(BackendError, match=rf"{path.name} holds no weights of {name}"):
            registry.extractor(f"torchvision:{name}@{path}")


@pytest.mark.parametrize(
    "data",
    [b'a="\x1b[31m"\nzz = 3\n', b"", b"]" + b"a" * 9, b"(" * 9, b"G\x00", b"\x80\x02]q\x01.", b"\x80\x02K\x01Q."],
    ids=["text", "empty", "an empty stack", "marks", "half a number", "a list", "a number for a tensor"],
)
def test_whatever_a_file_that_is_no_checkpoint_makes_of_the_unpickler_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "w.bin").write_bytes(data)
    with pytest.raises(BackendError, match=r"w\.bin holds no weights of resnet18 .* Give a checkpoint of this model") as caught:
        registry.extractor(f"torchvision:resnet18@{tmp_path / 'w.bin'}")
    assert "\x1b" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_weights_that_unpack_to_far_more_are_refused(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.models.torchvision_features.MOST_BYTES", 10_000_000)
    with zipfile.ZipFile(home / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data/0", bytes(20_000_000))
    with pytest.raises(BackendError, match="more than 10,000,000 bytes unpacked"):
        registry.extractor(f"torchvision:resnet18@{home / 'bomb.pt'}")


def test_weights_that_cannot_be_downloaded_say_where_they_would_lie(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCH_HOME", str(home / "cache"))
    monkeypatch.setattr("vip.models.hub.probe_error", lambda address: "no network")
    with pytest.raises(BackendError, match=r"weights of resnet50 are not in .*cache.hub.checkpoints and cannot be downloaded: no network"):
        registry.extractor("torchvision:resnet50")
