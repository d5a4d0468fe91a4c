"""What is loaded when: nothing heavy before it is needed, and adapted libraries only in vip/models and vip/metrics."""

from __future__ import annotations

import ast
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

import vip
from tests.review.corpora import make_described
from vip.cli.app import COMMANDS as COMMANDS_OF_APP

PACKAGE = Path(vip.__file__).parent
SAMPLE = Path(__file__).parents[1] / "examples" / "sample.mp4"
HEAVY = ("cv2", "av", "numpy", "openai", "pydantic", "httpx", "torch", "transformers", "open_clip", "lightning", "h5py")
COMMANDS = ("run", "extract", "caption", "report", "doctor", "train")
ADAPTED = {"openai", "torch", "transformers", "open_clip", "lightning", "safetensors"}


AT_THE_END = "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr)); "


def loaded(code: str) -> set[str]:
    """sys.modules of a fresh Python after this."""
    done = subprocess.run([sys.executable, "-c", AT_THE_END + code], capture_output=True, text=True, check=True)
    return set(done.stderr.splitlines()[-1].split())


def heavy(modules: set[str]) -> set[str]:
    return {name for name in modules if name.partition(".")[0] in HEAVY}


@pytest.mark.parametrize(
    "code", ["import vip", "import vip; vip.__version__; vip.__all__; dir(vip)", "import vip.errors", "import vip.metrics.rouge_l"]
)
def test_nothing_heavy_is_loaded_to_import(code: str) -> None:
    modules = loaded(code)
    assert "vip" in modules
    assert not heavy(modules)


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], ["--version"], [], *([name, "--help"] for name in COMMANDS)], ids=" ".join)
def test_nothing_heavy_is_loaded_to_help(arguments: list[str]) -> None:
    modules = loaded(f"import vip.cli.app as app; app.run({arguments!r})")
    of_typer = (
        {"pydantic", "pydantic_core"} if arguments and arguments[0] in COMMANDS else set()
    )  # it checks with pydantic if that is there
    assert "typer" in modules
    assert not {name for name in heavy(modules) if name.partition(".")[0] not in of_typer}


@pytest.mark.extra("torch")
@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "nextqa-mc", "--annotations", "data", "--features", "f.h5", "-o", "out"],
        ["train", "fiber", "--annotations", "data", "--features", "f", "-o", "out"],
        ["pretrain", "--features", "f", "-o", "out"],
    ],
)
def test_an_option_that_is_missing_is_said_before_torch_is_loaded(arguments: list[str]) -> None:
    assert "torch" not in loaded(f"from vip.cli.app import run; assert run({arguments}) == 2")


def test_a_command_does_not_load_the_others() -> None:
    """Thirty modules and their options would be a tenth of the start."""
    modules = loaded("import vip.cli.app as app; app.run(['sheet', 'nothing'])")
    others = {command.place.partition(":")[0] for name, command in COMMANDS_OF_APP.items() if name != "sheet"}
    assert "vip.cli.sheet" in modules
    assert not {f"vip.cli.{module}" for module in others} & modules


def test_the_first_item_of_a_review_needs_no_arrays_no_data_sets_and_no_statistics(tmp_path: Path) -> None:
    """They would be a third of the start."""
    pytest.importorskip("uvicorn")
    run = make_described(tmp_path / "run", 2)
    command = [sys.executable, "-c", f"{AT_THE_END}import vip.cli.app as app; app.run(['review', {str(run)!r}, '--no-open'])"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        address, _, token = server.stdout.readline().split(" at ")[-1].strip().partition("?token=")
        for path in ("", "static/review.js", "api/session", "api/queue", "api/items/0"):
            with urllib.request.urlopen(f"{address}{path}?token={token}&reviewer=Ann", timeout=30) as answer:
                assert answer.status == 200
        server.send_signal(signal.SIGINT)
        modules = set(server.communicate(timeout=30)[1].splitlines()[-1].split())
    assert "vip.review.server" in modules
    assert not {"numpy", "cv2", "vip.dataset.shards", "vip.metrics", "vip.review.report"} & modules


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--keyframes", "auto"], ["--min-sharpness", "1"]], ids=["plain", "auto", "sharp"])
def test_extracting_does_not_load_masked_arrays(tmp_path: Path, options: list[str]) -> None:
    """They come with numpy's own median, quantile and unique, and would be a tenth of the start."""
    command = ["extract", str(SAMPLE), "--out", str(tmp_path / "run"), *options]  # few frames would not be compared with each other
    modules = loaded(f"import vip.cli.app as app; app.run({command!r})")
    assert (tmp_path / "run" / "keyframes.jsonl").read_text().count("\n") >= 1
    assert "numpy" in modules
    assert "numpy.ma" not in modules


def test_loading_the_pipeline_asks_for_no_adapter() -> None:
    modules = loaded("import vip; vip.extract, vip.caption, vip.run, vip.load_run, vip.Run")
    assert "vip.pipeline" in modules
    assert not {name for name in modules if name.startswith("vip.models.") or name.partition(".")[0] in ADAPTED}


def test_nothing_outside_models_metrics_and_baselines_imports_what_they_adapt() -> None:
    guilty = [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        if not {PACKAGE / "models", PACKAGE / "metrics", PACKAGE / "baselines"} & set(path.parents)
        for name in _imported(path)
        if name.partition(".")[0] in ADAPTED or name.startswith("vip.models")
    ]
    assert guilty == []


def _imported(path: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return plain + [f"{node.module}" for node in nodes if isinstance(node, ast.ImportFrom)]


def test_the_public_names_are_there_and_others_are_not() -> None:
    assert {name for name in vip.__all__ if getattr(vip, name) is not None} == set(vip.__all__)
    with pytest.raises(AttributeError, match="no attribute 'extrakt'"):
        _ = vip.extrakt  # type: ignore[attr-defined]


def test_the_names_of_the_api_are_seen_before_they_are_used() -> None:
    done = subprocess.run([sys.executable, "-c", "import vip; print(*dir(vip))"], capture_output=True, text=True, check=True)
    assert set(vip.__all__) <= set(done.stdout.split())
