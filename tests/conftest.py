"""Fixtures that several folders of tests share."""

from __future__ import annotations

import gc
import getpass
import os
import re
import signal
import stat
import sys
import tempfile
from collections.abc import Generator, Iterator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest

import vip.video.demuxer
import vip.video.reader
from tests.media import Clips, SpyDecoder, usual_priority
from vip import user_state
from vip.wording import on_command_line

# Nothing in the tests, nor in the commands that they start, asks a model hub; what it would answer depends on the network.
os.environ.setdefault("HF_HUB_OFFLINE", "1")

# Threads of torch that wait for one another leave the core to the other processes of pytest-xdist; by default they spin.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# This process, the others of pytest-xdist and the commands that they start share their bytecode, also from one run to the next.
BYTECODE = Path(os.environ.get("PYTHONPYCACHEPREFIX") or Path(tempfile.gettempdir()) / f"vip-tests-bytecode-{getpass.getuser()}")
sys.dont_write_bytecode, sys.pycache_prefix = False, str(BYTECODE)
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)

EXTRAS = frozenset(
    {
        "bert_score",
        "ctranslate2",
        "datasets",
        "faster_whisper",
        "fsspec",
        "google_crc32c",
        "h5py",
        "huggingface_hub",
        "krippendorff",
        "lancedb",
        "lightning",
        "llguidance",
        "moto",
        "nltk",
        "onnxruntime",
        "open_clip",
        "pyarrow",
        "pycocotools",
        "rapidocr",
        "ray",
        "rouge_score",
        "safetensors",
        "scenedetect",
        "sentence_transformers",
        "skimage",
        "sklearn",
    }
    | {"anyio", "httpx2", "mcp", "mcp_types", "starlette", "uvicorn"}
    | {"torch", "transformers", "webdataset", "werkzeug", "yaml", "yt_dlp"}
)
"""Modules that vip itself does not need."""

SLOW = (
    "baselines/nextqa",
    "baselines/value",
    "benchmarks",
    "cli",
    "corpus/card/test_write",
    "corpus/test_batch",
    "corpus/test_state_dir",
    "corpus/workers",
    "examples",
    "mcp",
)
SLOW += (
    "metrics/test_bert_score",
    "metrics/test_encoder",
    "metrics/test_sentence_bert",
    "models/clip/test_embedder",
    "models/embedding_server",
    "models/test_engine_conformance",
    "models/transformers",
    "processes",
    "test_api_server",
    "test_fuzz.py",
)
SLOW += ("test_import", "test_locks", "test_other_systems", "test_video_memory")
"""Where nearly every test starts processes, loads torch or takes more than a second: `-m "not slow"` leaves them out."""

# The same examples at every run; HYPOTHESIS_PROFILE=search looks for new ones. A busy machine is no failure.
PATIENT = hypothesis.settings(deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow])
hypothesis.settings.register_profile("same", PATIENT, derandomize=True)
hypothesis.settings.register_profile("search", PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "same"))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--core", action="store_true", help="leave out tests that need an extra which is not installed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is slow. With --core, leave out what is marked with an extra that is not installed."""
    here = Path(__file__).parent
    for item in items:
        if item.path.relative_to(here).as_posix().startswith(SLOW):
            item.add_marker(pytest.mark.slow)
    for item in items if config.getoption("--core") else ():
        missing = [name for marker in item.iter_markers("extra") for name in marker.args if find_spec(name) is None]
        if missing:
            item.add_marker(pytest.mark.skip(reason=f"{missing[0]} is not installed"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Do not look for garbage among the modules and the tests while they are loaded: they stay. Not frozen: Hypothesis 6.112 would fail."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """With --core, leave out modules of tests that cannot be imported for lack of an extra; without it that is an error."""
    report = yield
    missing = re.findall(r"No module named '(\w+)", str(report.longrepr)) if report.failed else []
    if missing and missing[-1] in EXTRAS and collector.config.getoption("--core"):
        report.outcome, report.longrepr = "skipped", (str(collector.path), 0, f"Skipped: {missing[-1]} is not installed")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """The same for tests that import an extra when they run."""
    report = yield
    exc = call.excinfo.value if call.excinfo else None
    while exc is not None and not isinstance(exc, ModuleNotFoundError):
        exc = exc.__cause__ or exc.__context__
    missing = exc.name.partition(".")[0] if exc is not None and exc.name else ""
    if report.failed and missing in EXTRAS and item.config.getoption("--core"):
        report.outcome, report.longrepr = "skipped", (str(item.path), 0, f"Skipped: {missing} is not installed")
    return report


@pytest.fixture(scope="session", autouse=True)
def _caches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Iterator[Path]]:
    """Folders for the answers that vip keeps, none used before; what other fixtures of the session ask goes into the first."""
    home = tmp_path_factory.mktemp("caches")
    folders = (home / str(number) for number in count())
    with pytest.MonkeyPatch.context() as patch:
        _go_home(next(folders), patch)
        yield folders


def _go_home(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Folders for caches and for state, of one machine: runs that one test made are another's own."""
    patch.setenv("XDG_CACHE_HOME", str(folder))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    secret = user_state.folder() / user_state.SECRET
    secret.parent.mkdir(parents=True)
    secret.write_bytes(b"a secret of this machine".ljust(user_state.SECRET_BYTES))


@pytest.fixture(autouse=True)
def _own_cache(_caches: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache folder for this test and the commands that it starts: no answer comes from another test, or from the user's runs."""
    _go_home(next(_caches), monkeypatch)


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the keys, servers and proxies of the person who runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _read_on_a_terminal() -> Iterator[None]:
    """Messages name options, as for who types commands; tests/test_wording.py has those of Python."""
    with on_command_line():
        yield


@pytest.fixture(autouse=True)
def _heeds_interrupts() -> Iterator[None]:
    """Ctrl-C means what it usually does, to this test and the commands that it starts: a job in the background ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(autouse=True)
def _own_priority() -> Iterator[None]:
    """What writes AV1, as the benchmarks' mixes do too, leaves the tests after it their priority."""
    with usual_priority():
        yield


@pytest.fixture
def _new_objects_only() -> Iterator[None]:
    """What gc counts and collects is made by this test: the millions of objects of libraries that other tests loaded would take seconds."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.fixture(scope="session")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Clips:
    """Small video files by name, written when they are first asked for."""
    return Clips(tmp_path_factory.mktemp("clips"))


@pytest.fixture
def disk_steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is waited for until it is on the disk, and when a file gets its name: no kill of a process could show that."""
    steps: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        status = os.fstat(number)
        steps.append("folder" if stat.S_ISDIR(status.st_mode) else f"{status.st_size} bytes")
        fsync(number)

    def renamed(*args: Any, **folders: Any) -> None:
        steps.append("name")
        replace(*args, **folders)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    return steps


@pytest.fixture
def given_packets(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """PTS of the packets that decoders are given from now on."""
    given: list[int | None] = []
    real = vip.video.demuxer.decoder_of
    monkeypatch.setattr(vip.video.demuxer, "decoder_of", lambda stream, threads: SpyDecoder(real(stream, threads), given))
    return given
