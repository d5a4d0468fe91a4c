"""vip.baselines.fiber.t5: what is built from a folder of somebody else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("transformers")

from tests.baselines.fiber.made import write_t5
from vip.baselines.fiber import t5
from vip.baselines.fiber.t5 import load_t5, make_t5, read_t5
from vip.errors import BackendError, InputError

pytestmark = pytest.mark.slow


def build(folder: Path) -> Any:
    config, _ = read_t5(folder)
    return make_t5(config, folder)


@pytest.mark.parametrize(
    "changed", [{"num_layers": 2**63}, {"num_decoder_layers": 10**6}, {"d_ff": 10**12}, {"vocab_size": -1}, {"d_model": 10**9, "d_kv": 1}]
)
def test_a_t5_that_no_memory_holds_is_refused_before_it_is_built(changed: dict[str, Any], tmp_path: Path) -> None:
    write_t5(tmp_path / "t5")
    build(tmp_path)
    path = tmp_path / "t5" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    with pytest.raises(InputError, match="holds no T5 that can be built"):
        build(tmp_path)
    with pytest.raises(BackendError):
        load_t5(f"t5:{tmp_path / 't5'}")


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "tokenizer_config.json", "more.txt"])
def test_no_link_and_no_pipe_stands_for_a_file_of_a_t5(name: str, tmp_path: Path) -> None:
    kept = write_t5(tmp_path / "t5")
    (tmp_path / "mine").write_bytes((kept / name).read_bytes() if (kept / name).exists() else b"mine")
    (kept / name).unlink(missing_ok=True)
    (kept / name).symlink_to(tmp_path / "mine")
    with pytest.raises(InputError, match="it is a link, or lies behind one"):
        build(tmp_path)
    (kept / name).unlink()
    os.mkfifo(kept / name)
    with pytest.raises(InputError, match="it is no regular file"):
        build(tmp_path)
    with pytest.raises(BackendError, match=r"it is no regular file|has no config"):
        load_t5(f"t5:{kept}")


def test_a_t5_of_the_bounds_is_built_and_one_beyond_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = {"d_model": 2, "num_layers": 2, "num_decoder_layers": 1, "num_heads": 1, "d_kv": 1, "d_ff": 1, "vocab_size": 5}
    weights = 3 * (4 * 2 + 2 * 2) + 5 * 2
    monkeypatch.setattr(t5, "MOST_LAYERS", 3)
    t5.check_size(SimpleNamespace(**sizes), weights)
    for change, most in (({}, weights - 1), ({"num_layers": 3}, 10**6), ({"d_ff": 0}, 10**6), ({"vocab_size": -99}, 10**6)):
        with pytest.raises(ValueError, match="layers and"):
            t5.check_size(SimpleNamespace(**sizes | change), most)
