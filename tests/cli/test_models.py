"""Models on the command line: loaded once for several videos, and one sentence where they cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.clips import clip
from tests.models import clip_models
from vip.store import Run


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"clip:{clip_models.folder(tmp_path_factory.mktemp('models') / 'clip', 'clip')}"


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    clip(tmp_path / "clips" / "a.mp4", [1, 2])
    clip(tmp_path / "clips" / "b.mp4", [3, 4])
    return tmp_path


def test_several_videos_are_looked_at_with_one_model_for_one_question(model: str, videos: Path) -> None:
    done = vip(videos, "extract", "clips", "-o", "runs", "-n", "2", "--embedder", model, "--query", "a dog jumps", "--json")
    assert done.code == 0, done.err
    assert [row["counts"]["keyframes"] for row in done.rows] == [2, 2]
    for name in ("a", "b"):
        run = Run(videos / "runs" / f"{name}.vip")
        assert run.embeddings is not None
        assert run.embeddings.model.startswith(model)
        assert all(row.relevance is not None for row in run.candidates)


def test_a_model_that_cannot_be_loaded_is_said_once_and_not_for_each_video(videos: Path) -> None:
    done = vip(videos, "extract", "clips", "-o", "runs", "--embedder", "clip:ViT-B-33/openai")
    assert done.code == 4
    assert done.sentence.count("ViT-B-33") == len(done.err.splitlines()) == 1
    assert not (videos / "runs").exists()


def test_the_doctor_names_each_kind_of_model_and_whether_it_is_to_be_had(tmp_path: Path) -> None:
    done = vip(tmp_path, "doctor", "--json", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path))
    rows = {row["name"]: row for row in done.rows[0]["rows"] if row["group"] == "model"}
    assert rows.keys() == {"clip", "RT-DETR", "DETR", "OWLv2", "Grounding DINO", "Florence-2", "speech", "hub", "device"}
    assert rows["clip"]["detail"] == "ViT-B-32, not in the cache, and cannot be downloaded"
    assert rows["hub"] == {"group": "model", "name": "hub", "works": False, "detail": "HF_HUB_OFFLINE is set"}
    assert rows["device"]["works"]
    assert not any(rows[name]["works"] for name in rows.keys() - {"device"})
