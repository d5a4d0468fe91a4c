"""Keyframes that could not be described are described later though their video is in a shard: one row each, whatever is killed when."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.api_server import ApiServer, Asked
from tests.corpus.s3 import S3
from tests.corpus.test_batch import Bars, failures, family, listed, samples_in, videos
from tests.corpus.workers.killed import kill_children
from tests.corpus.workers.test_caption_client import COMMAND, choices, until
from vip.captioning.in_batches import jobs_in
from vip.config import CaptionSettings
from vip.corpus.batch import batch
from vip.corpus.status import status
from vip.dataset.rows import VideoSample
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import read_samples, read_shards, verify
from vip.errors import BackendError, BudgetError


class ChoosyServer(ApiServer):
    """Answers nothing about the keyframes of these numbers."""

    def __init__(self) -> None:
        super().__init__(marks=True)
        self.refused: tuple[int, ...] = (1, 3)

    def next_behaviour(self, asked: Asked) -> str:
        refused = any(f"Position: keyframe {number} of" in asked.text for number in self.refused)
        return "content_filter" if refused else "ok"


@pytest.fixture
def server() -> Iterator[ChoosyServer]:
    with ChoosyServer() as server:
        yield server


def files(out: Path) -> list[str]:
    return sorted(path.name for path in (out / FOLDER).iterdir())


def rows(out: Path | str) -> Counter[str]:
    return Counter(frame.keyframe.id for sample in read_samples(str(out)) for frame in sample.frames)


def undescribed(out: Path | str) -> list[str]:
    return [frame.keyframe.id for sample in read_samples(str(out)) for frame in sample.frames if frame.description is None]


@pytest.mark.parametrize("shards", ["parquet", "webdataset"])
@pytest.mark.parametrize("retry", ["caption", "all"])
def test_keyframes_in_shards_are_described_later_and_no_video_is_read_again(
    shards: str, retry: str, server: ChoosyServer, tmp_path: Path
) -> None:
    paths, out = videos(tmp_path, 8), tmp_path / "corpus"
    settings = choices(server, tmp_path, batch_settings={"shards": shards, "shard_size": 60_000})
    told = batch([listed(tmp_path, paths)], str(out), settings)
    failed = set(undescribed(out))
    assert told.undescribed == len(failed) > 2
    asked, before = server.stats().chats, read_all(out)
    for path in paths:
        Path(path).unlink()  # nothing is read from it again
    server.refused = ()
    told = batch([], str(out), choices(server, tmp_path), retry=retry, observer=(bars := Bars()))
    assert (told.undescribed, told.shards_again) == (0, 0)
    assert undescribed(out) == []
    assert set(rows(out).values()) == {1}
    assert server.stats().chats == asked + len(failed), "nothing else is asked"
    after = {sample.video.key: sample for sample in samples_in(out)}
    assert after.keys() == before.keys()
    for key, sample in before.items():
        for frame, now in zip(sample.frames, after[key].frames, strict=True):
            same = replace(now, description=None, failure=None) == replace(frame, description=None, failure=None)
            assert same, "the picture, the vector and all else"
            assert frame.description in (None, now.description), "what was described stays as it is"
    assert {info.generation for info in read_shards(str(out))} == {1}
    assert len(files(out)) == 2 * told.shards, "the old files are gone"
    assert f"{len(failed)} keyframes that could not be described are asked about again." in bars.notes
    assert f"{told.shards} shards are written anew, with {len(failed)} more keyframes described." in bars.notes
    assert [row for row in failures(out) if row["kind"] == "content_filter"] == []
    assert "could not be described" not in (out / "README.md").read_text()


def read_all(out: Path) -> dict[str, VideoSample]:
    return {sample.video.key: sample for sample in read_samples(str(out))}


def test_without_retry_they_stay_as_they_are(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 4)), tmp_path / "corpus"
    told = batch([names], str(out), choices(server, tmp_path))
    asked, before = server.stats().chats, files(out)
    server.refused = ()
    assert batch([names], str(out), choices(server, tmp_path)).undescribed == told.undescribed > 0
    assert batch([], str(out), choices(server, tmp_path), retry="network").undescribed == told.undescribed
    assert (server.stats().chats, files(out)) == (asked, before)


def test_what_is_refused_again_is_not_written_anew(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 4)), tmp_path / "corpus"
    told = batch([names], str(out), choices(server, tmp_path))
    before = files(out)
    server.refused = (1, 2, 3)
    again = batch([names], str(out), choices(server, tmp_path), retry="caption")
    assert (again.undescribed, again.shards_again, files(out)) == (told.undescribed, 0, before)


def test_generations_follow_each_other(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 8)), tmp_path / "corpus"
    batch([names], str(out), choices(server, tmp_path))
    left = [len(undescribed(out))]
    for server.refused in ((1,), ()):
        batch([], str(out), choices(server, tmp_path), retry="caption")
        left.append(len(undescribed(out)))
        assert set(rows(out).values()) == {1}
    assert left == [16, 8, 0]
    (info,) = read_shards(str(out))
    assert (info.generation, files(out)) == (2, ["00000.g2.parquet", "00000.json"])


def test_it_works_where_the_state_was_lost(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 4)), tmp_path / "corpus"
    told = batch([names], str(out), choices(server, tmp_path))
    shutil.rmtree(out / "state")
    server.refused = ()
    again = batch([names], str(out), choices(server, tmp_path))
    assert (again.done, again.undescribed) == (4, told.undescribed)
    again = batch([names], str(out), choices(server, tmp_path), retry="caption")
    assert (again.done, again.undescribed, undescribed(out)) == (4, 0, [])


def test_it_works_on_s3(server: ChoosyServer, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home"))
    names, out = listed(tmp_path, videos(tmp_path, 4)), "s3://corpus/out"
    told = batch([names], out, choices(server, tmp_path))
    assert told.undescribed == len(undescribed(out)) > 0
    server.refused = ()
    assert batch([], out, choices(server, tmp_path), retry="caption").undescribed == 0
    assert undescribed(out) == []
    assert sorted(name for name in s3.objects if "/shards/" in name) == ["out/shards/00000.g1.parquet", "out/shards/00000.json"]
    assert list(verify(out)) == []


def test_where_the_money_ends_in_between_the_next_run_goes_on_by_itself(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 4)), str(tmp_path / "corpus")
    told = batch([names], out, choices(server, tmp_path))
    server.refused = ()
    with pytest.raises(BudgetError):
        batch([], out, choices(server, tmp_path, max_usd=0.0), retry="caption")
    assert (status(out).undescribed, status(out).shards_again) == (told.undescribed, 1)
    assert batch([], out, choices(server, tmp_path, max_usd=5.0)).undescribed == 0


def test_with_batch_the_keyframes_of_all_shards_go_in_one_batch(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 8)), tmp_path / "corpus"
    batch([names], str(out), choices(server, tmp_path, batch_settings={"shard_size": 60_000}))
    assert len(files(out)) > 4
    told = batch([], str(out), choices(server, tmp_path, batch_settings={"batch": True}), retry="caption")
    assert (told.undescribed, server.stats().rows) == (0, 16)
    assert [job.rows for job in jobs_in(out / "state" / "captions")] == [16]
    assert set(rows(out).values()) == {1}


def test_where_memory_runs_out_for_writing_shards_anew_one_sentence_says_so_and_the_next_run_goes_on(
    server: ChoosyServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 2)), str(tmp_path / "corpus")
    batch([names], out, choices(server, tmp_path))
    server.refused = ()
    with monkeypatch.context() as patch:
        kill_children(patch, "shard_revisions")
        with pytest.raises(BackendError, match="The process that writes shards anew was ended by the system 3 times in a row"):
            batch([], out, choices(server, tmp_path), retry="caption")
    assert batch([], out, choices(server, tmp_path)).undescribed == 0


def test_a_video_of_which_no_keyframe_was_described_is_done_again(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 2)), str(tmp_path / "corpus")
    with ApiServer(mix={"content_filter": 1.0}) as server:
        assert batch([names], out, choices(server, tmp_path)).failures == {"caption": 2}
        server.set(mix={})
        told = batch([], out, choices(server, tmp_path), retry="caption")
    assert (told.done, told.failed, told.undescribed) == (2, 0, 0)


def test_readers_see_every_keyframe_once_while_shards_are_written_anew(server: ChoosyServer, tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 8)), tmp_path / "corpus"
    batch([names], str(out), choices(server, tmp_path, batch_settings={"shard_size": 60_000}))
    expected, over, seen = rows(out), Event(), list[Counter[str]]()

    def read() -> None:
        while not over.is_set():
            said: list[str] = []
            found = Counter[str]()
            for sample in read_samples(str(out), said.append):
                found.update(frame.keyframe.id for frame in sample.frames)
                time.sleep(0.05)  # as one who does something with them
            seen.append(found if not said else Counter(said))

    readers = [Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for server.refused in ((1,), ()):
            batch([], str(out), choices(server, tmp_path), retry="caption")
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert max(info.generation for info in read_shards(str(out))) > 1
    assert len(seen) > 2
    assert all(found == expected for found in seen)


KILLED = COMMAND.replace(
    'batch([names], out, BatchConfig(settings, ExtractSettings(keyframes=3, embedder="classic"), asked))',
    """
settings = BatchSettings(workers=2, caption=True, retry_wait=0.3, shard_size=60_000)
batch([names], out, BatchConfig(settings, ExtractSettings(keyframes=3, embedder="classic"), asked), retry="caption")
""",
)


def test_kills_while_shards_are_written_anew_lose_nothing_and_double_nothing(server: ChoosyServer, tmp_path: Path) -> None:
    names, out, cache = listed(tmp_path, videos(tmp_path, 12)), tmp_path / "corpus", tmp_path / "answers.sqlite"
    batch([names], str(out), choices(server, tmp_path, batch_settings={"shard_size": 60_000}))
    expected, chance, kills = rows(out), random.Random(5), 0
    assert len(undescribed(out)) > 5
    server.refused = ()
    server.set(delay_s=0.05)
    command = [sys.executable, "-c", KILLED, names, str(out), server.base_url, str(cache)]
    while kills < 8:
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        until(lambda pid=process.pid: status(str(out)).process == pid or process.poll() is not None)  # noqa: B023
        time.sleep(chance.uniform(0.0, 1.5))
        if process.poll() is None:
            os.kill(chance.choice([process.pid, process.pid, *family(process.pid)]), signal.SIGKILL)
            kills += 1
            time.sleep(0.3)
            process.kill()
        process.wait()
        assert rows(out) == expected, "at any moment"
        if not undescribed(out):
            break
    assert kills > 0
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (rows(out), undescribed(out)) == (expected, [])
    assert list(verify(str(out))) == []
    assert len(files(out)) == 2 * status(str(out)).shards
    assert not (out / "state" / "again").exists() or list((out / "state" / "again").iterdir()) == []


def test_measured_descriptions_that_failed_are_made_again(tmp_path: Path, server: ChoosyServer) -> None:
    from vip.corpus.state import StateDatabase

    settings = replace(choices(server, tmp_path), captioning=CaptionSettings(engine="offline"))
    names, out = listed(tmp_path, videos(tmp_path, 2)), tmp_path / "corpus"
    batch([names], str(out), settings)
    take_descriptions(out, ["0001"])
    shutil.rmtree(out / "state")
    assert batch([names], str(out), settings).undescribed == 2
    assert batch([names], str(out), settings, retry="caption").undescribed == 0
    assert undescribed(out) == []
    state = StateDatabase(out / "state")
    assert state.shards_to_revise() == []
    state.close()


def take_descriptions(out: Path, numbers: Sequence[str]) -> None:
    """Write the shard as if these keyframes of each video could not have been described."""
    from vip.dataset.shards import write_shard
    from vip.records import Failure

    def without(sample: Any) -> Any:
        frames = [
            replace(
                frame, description=None, failure=Failure(item=frame.keyframe.id, kind="picture", message="It was not there.", exit_code=6)
            )
            if frame.keyframe.id.rpartition(":")[2] in numbers
            else frame
            for frame in sample.frames
        ]
        return replace(sample, frames=tuple(frames))

    write_shard(str(out), 0, [without(sample) for sample in list(read_samples(str(out)))], "parquet")
