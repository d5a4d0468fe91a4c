"""The same batch on Ray: whole, each video once, and workers that vanish cost time only."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.clips import clip
from tests.corpus.test_batch import choices, failures, family, left_over, listed, samples_in, videos
from tests.corpus.test_batch_fetched import MB, measured
from tests.models import clip_models
from tests.video_host import hosting
from vip.config import BatchSettings, ExtractSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
from vip.corpus.status import status
from vip.corpus.workers.ray_pool import RayPool, _delete_leftovers
from vip.errors import BackendError

pytest.importorskip("ray")

COMMAND = """
import sys
from tests.corpus.test_batch import choices
from vip.corpus.batch import batch
batch([sys.argv[1]], sys.argv[2], choices(runner="ray", shard_size=60_000))
"""


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def started(names: str, out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", COMMAND, names, str(out)], cwd=Path(__file__).parents[3])


def test_workers_of_ray_are_killed_and_so_is_the_driver_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    rows, out = videos(tmp_path, 16), tmp_path / "corpus"
    names = listed(tmp_path, rows)
    kills = Counter[str]()
    process = started(names, out)
    while process.poll() is None and kills["worker"] < 3:
        time.sleep(0.3)
        workers = [pid for pid in family(process.pid) if command_of(pid).startswith("ray::RayWorker")]
        if workers:
            os.kill(workers[0], signal.SIGKILL)
            kills["worker"] += 1
            time.sleep(2.0)
    if process.poll() is None:
        process.kill()
        kills["driver"] += 1
    process.wait()
    assert kills["worker"] > 0
    assert started(names, out).wait() == 0
    told = status(str(out))
    assert (told.done, told.failed, told.waiting) == (16, 0, 0)
    assert Counter(video.video.source for video in samples_in(out)) == Counter(rows)
    assert left_over(out) == []


def test_workers_on_one_machine_share_one_budget_of_its_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = Path(tempfile.mkdtemp(prefix="v-"))  # Ray's sockets lie in it, too
    monkeypatch.setenv("TMPDIR", str(short))
    sizes = [MB, MB, int(2.6 * MB), MB]
    video = clip(tmp_path / "a.mp4", range(4)).read_bytes()
    with hosting() as host, measured(short) as lay:
        rows = [host.put(f"/{n}.mp4", video + bytes(size), "video/mp4", pause_s=0.02) for n, size in enumerate(sizes)]
        about = {"runner": "ray", "workers": 2, "sleep": 0, "per_host": 6, "disk_budget": 3 * MB, "retry_wait": 0.5}
        settings = BatchConfig(BatchSettings(**about), ExtractSettings(keyframes=3, embedder="classic"))
        told = batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), settings)
    assert (told.done, told.failed) == (len(sizes), 0), failures(tmp_path / "corpus")
    shutil.rmtree(short, ignore_errors=True)
    assert 2.5 * MB < max(lay) <= 3 * MB


def test_a_cluster_that_is_not_there_is_one_sentence(tmp_path: Path) -> None:
    names = listed(tmp_path, videos(tmp_path, 1))
    with pytest.raises(BackendError, match=r"The Ray cluster at 127\.0\.0\.1:1 cannot be used"):
        batch([names], str(tmp_path / "corpus"), choices(runner="ray", ray_address="127.0.0.1:1"))


def test_with_gpus_the_model_runs_on_them_alone_and_the_keyframes_are_the_same(tmp_path: Path) -> None:
    ray = pytest.importorskip("ray")
    names, model = listed(tmp_path, videos(tmp_path, 3)), clip_models.folder(tmp_path / "model", "clip")
    extraction = ExtractSettings(keyframes=3, embedder=f"clip:{model}")
    batch([names], str(tmp_path / "here"), BatchConfig(BatchSettings(workers=1), extraction))
    ray.init(num_gpus=1, num_cpus=3, include_dashboard=False, log_to_driver=False, address="local")  # what Ray believes of this machine
    made: list[str | None] = []

    class Noted(RayPool):
        def _start_actor(self) -> Any:
            actor = super()._start_actor()
            made.append(actor.server)
            return actor

    try:
        settings = BatchConfig(BatchSettings(runner="ray", workers=2), extraction)
        batch([names], str(tmp_path / "there"), settings, executor=lambda given, home, fetch: Noted(given, home, fetch=fetch))
    finally:
        ray.shutdown()
    assert made[0] is not None
    assert made[0] == made[1]
    assert chosen(tmp_path / "here") == chosen(tmp_path / "there")


def chosen(out: Path) -> dict[str, list[int | None]]:
    return {clip.video.key: [frame.keyframe.pts for frame in clip.frames] for clip in samples_in(out)}


def test_what_killed_actors_left_on_a_machine_goes_with_the_next_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for name in (f"vip-ray-{ended.pid}-a", f"vip-ray-{os.getpid()}-b", "vip-ray-x-c", "vip-other"):
        (tmp_path / name).mkdir()
    _delete_leftovers()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vip-other", f"vip-ray-{os.getpid()}-b", "vip-ray-x-c"]
