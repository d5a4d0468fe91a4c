"""A folder that comes from elsewhere hands nothing in, collects nothing of the account, and deletes nothing there."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.api_server import ApiServer
from tests.llm.test_batch_jobs import collect, expected, process, request
from vip import user_state
from vip.errors import StoreError, VipError
from vip.llm.batch_files import BatchFolder, BatchJob, BatchJobList
from vip.llm.batch_jobs import status
from vip.models.openai.batch_api import OpenAIBatches
from vip.models.openai.engine import OpenAIEngine
from vip.protocols import BatchState, Reply

NOW = "2026-11-22T00:00:00+00:00"
TAG = "0123456789abcdef" * 2


class Watched(OpenAIBatches):
    """Notes what the server is asked about which job, and how many rows it is sent."""

    calls: list[tuple[str, str | int]]

    async def submit(self, path: Path, tag: str) -> str:
        self.calls.append(("submit", len(path.read_bytes().splitlines())))
        return await super().submit(path, tag)

    async def find(self, tag: str) -> str | None:
        self.calls.append(("find", tag))
        return await super().find(tag)

    async def state(self, job: str) -> BatchState:
        self.calls.append(("state", job))
        return await super().state(job)

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
        self.calls.append(("results", job))
        async for one in super().results(job):
            yield one

    async def discard(self, job: str) -> None:
        self.calls.append(("discard", job))
        await super().discard(job)


@pytest.fixture
def watched() -> type[Watched]:
    return type("Fresh", (Watched,), {"calls": []})


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with ApiServer() as server:
        yield server


def rows(server: ApiServer, keys: list[str]) -> bytes:
    """A file of the requests 0, 1, … under these keys."""
    engine = OpenAIEngine("tiny-vlm", base_url=server.base_url)
    return b"".join(engine.capabilities.batches().row(key, request(number)) for number, key in enumerate(keys))


def part(folder: Path, job: BatchJob, data: bytes, keys: list[str]) -> None:
    """What lies in a folder that came with a download."""
    batches = folder / "batches"
    batches.mkdir(exist_ok=True)
    (batches / "jobs.json").write_text(BatchJobList(jobs=(job,)).model_dump_json())
    (batches / f"part-{job.part:04d}.jsonl").write_bytes(data)
    (batches / f"part-{job.part:04d}.keys").write_text("".join(f"{key}\n" for key in keys))


def job_of_the_account(server: ApiServer, data: bytes) -> str:
    """A batch that the user's account runs for something else."""
    with openai.OpenAI(api_key="a-key", base_url=server.base_url) as client:
        file = client.files.create(file=("other.jsonl", data), purpose="batch")
        batch = client.batches.create(
            input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h", metadata={"vip": TAG}
        )
    return batch.id


def named(job: str | None, **fields: Any) -> BatchJob:
    return BatchJob(
        **{"part": 1, "tag": TAG, "job": job, "status": "validating", "rows": 3, "size_bytes": 10, "created_utc": NOW, **fields}
    )


def test_a_job_that_this_machine_did_not_submit_is_neither_asked_about_nor_collected_nor_deleted(
    server: ApiServer, watched: type[Watched], tmp_path: Path
) -> None:
    keys = [f"key-{number}" for number in range(3)]
    job = job_of_the_account(server, rows(server, keys))
    part(tmp_path, named(job), rows(server, keys), keys)
    collected, _ = collect(server, tmp_path, range(3), api=watched)
    assert dict(collected) == expected(range(3))
    assert [call for call in watched.calls if job in call or TAG in call] == []
    assert [name for name, _ in watched.calls].count("submit") == 1
    assert status(tmp_path)[0] == named(job, home=str(tmp_path))
    with openai.OpenAI(api_key="a-key", base_url=server.base_url) as client:
        assert client.files.retrieve(client.batches.retrieve(job).input_file_id).id


def test_a_job_of_another_machine_is_collected_once_it_is_trusted(server: ApiServer, watched: type[Watched], tmp_path: Path) -> None:
    keys = [f"key-{number}" for number in range(3)]
    job = job_of_the_account(server, rows(server, keys))
    part(tmp_path, named(job), b"", keys)
    user_state.remember("jobs", f"{tmp_path}\n{job}")
    collected, _ = collect(server, tmp_path, range(3), api=watched)
    assert dict(collected) == expected(range(3))
    assert {name for name, _ in watched.calls} == {"state", "results", "discard"}
    assert not user_state.knows("jobs", f"{tmp_path}\n{job}")


def test_a_job_of_this_machine_is_left_alone_in_another_folder(server: ApiServer, watched: type[Watched], tmp_path: Path) -> None:
    """A copy, or a download that names a job of this account, and says where it should lie."""
    keys = [f"key-{number}" for number in range(3)]
    job = job_of_the_account(server, rows(server, keys))
    own, copy = tmp_path / "own", tmp_path / "copy"
    for folder in (own, copy):
        folder.mkdir()
        part(folder, named(job), b"", keys)
    lying = json.loads((copy / "batches" / "jobs.json").read_text())
    lying["jobs"][0]["home"] = str(own)
    (copy / "batches" / "jobs.json").write_text(json.dumps(lying))
    user_state.remember("jobs", f"{own}\n{job}")
    assert [one.is_at_server for folder in (own, copy) for one in status(folder)] == [True, False]
    collected, _ = collect(server, copy, range(3), api=watched)
    assert dict(collected) == expected(range(3))
    assert [call for call in watched.calls if job in call] == []
    collected, _ = collect(server, own, range(3), api=watched)
    assert [name for name, what in watched.calls if what == job] == ["state", "results", "discard"]


@pytest.mark.parametrize("tag", [None, TAG])
def test_a_prepared_part_is_not_uploaded_as_it_lies(tag: str | None, server: ApiServer, watched: type[Watched], tmp_path: Path) -> None:
    many = [f"key-{number}" for number in range(1004)]
    part(tmp_path, named(None, tag=tag, status="written", rows=1004), rows(server, many), many)
    collected, _ = collect(server, tmp_path, range(4), api=watched)
    assert dict(collected) == expected(range(4))
    assert ("submit", 4) in watched.calls
    assert {name for name, _ in watched.calls} == {"submit", "state", "results", "discard"}
    assert server.stats().rows == 4
    assert [job.rows for job in status(tmp_path)] == [4]


@pytest.mark.slow
def test_a_part_that_a_process_died_over_is_not_uploaded_as_it_lies(server: ApiServer, watched: type[Watched], tmp_path: Path) -> None:
    assert process(server, tmp_path, "before") == -signal.SIGKILL
    (tmp_path / "batches" / "part-0001.jsonl").write_bytes(rows(server, [f"key-{number}" for number in range(300)]))
    collected, _ = collect(server, tmp_path, range(4), api=watched)
    assert dict(collected) == expected(range(4))
    assert [name for name, _ in watched.calls][:2] == ["find", "submit"]
    assert server.stats().rows == 4


@pytest.mark.slow
def test_rows_that_expire_are_asked_anew_and_not_as_they_lie(watched: type[Watched], tmp_path: Path) -> None:
    with ApiServer(batch_expires_after=4, batch_s=0.5) as server:
        assert process(server, tmp_path, "created") == -signal.SIGKILL
        (tmp_path / "batches" / "part-0001.jsonl").write_bytes(rows(server, [f"key-{number}" for number in range(6)]) * 50)
        collected, left = collect(server, tmp_path, range(6), api=watched)
        assert server.stats().rows == 6
    assert dict(collected) == expected(range(6))
    assert left == set()
    assert ("submit", 2) in watched.calls


def test_what_was_handed_in_is_remembered_until_it_is_collected(server: ApiServer, tmp_path: Path) -> None:
    remembered: list[int] = []
    marks = user_state.folder() / "jobs"
    collect(server, tmp_path, range(3), on_status=lambda jobs: remembered.append(len(list(marks.iterdir()))))
    assert remembered[0] == 2, "its tag and its id"
    assert list(marks.iterdir()) == []


def test_a_job_that_is_rejected_is_forgotten(tmp_path: Path) -> None:
    with ApiServer(batch_rows=3) as server, pytest.raises(VipError, match="does not take batch 1"):
        collect(server, tmp_path, range(5))
    assert list((user_state.folder() / "jobs").iterdir()) == []


def test_nothing_is_handed_in_where_it_cannot_be_remembered(
    server: ApiServer, watched: type[Watched], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(StoreError, match=r"cannot be written.*XDG_STATE_HOME"):
        collect(server, tmp_path / "run", range(3), api=watched)
    assert watched.calls == []


# ---------------------------------------------------------------- what lies in the folder


@pytest.mark.parametrize("name", ["batches", "batches/jobs.json", "batches/part-0001.keys"])
@pytest.mark.parametrize("kind", ["fifo", "link"])
def test_what_is_no_file_is_refused_in_one_sentence(name: str, kind: str, server: ApiServer, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    for folder in (run, elsewhere):
        folder.mkdir()
        part(folder, named("batch_1"), b"", ["key-0"])
    user_state.remember("jobs", f"{run}\nbatch_1")
    (run / name).rename(tmp_path / "away")
    if kind == "fifo":
        os.mkfifo(run / name)
    else:
        (run / name).symlink_to(elsewhere / name)
    with pytest.raises(StoreError) as failed:
        collect(server, run, range(1))
    assert str(run / "batches") in str(failed.value)
    assert "\n" not in str(failed.value)


@pytest.mark.parametrize("holds", ["jobs.json", "nothing"])
def test_a_folder_of_batches_that_leads_elsewhere_is_neither_read_nor_written(holds: str, server: ApiServer, tmp_path: Path) -> None:
    run, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    run.mkdir()
    elsewhere.mkdir()
    (elsewhere / "batches").mkdir()
    if holds == "jobs.json":
        part(elsewhere, named("batch_1"), b"", [])
    (run / "batches").symlink_to(elsewhere / "batches")
    before = sorted((elsewhere / "batches").iterdir())
    with pytest.raises(StoreError, match="it is a link"):
        collect(server, run, range(1))
    if holds == "jobs.json":
        with pytest.raises(StoreError, match="it is a link"):
            status(run)
    with pytest.raises(StoreError, match="it is a link"):
        BatchFolder(run, run / "batches" / "structure" / "batches").make()
    assert sorted((elsewhere / "batches").iterdir()) == before


@pytest.mark.parametrize("kind", ["part-0007.jsonl", "part-0001.jsonl", "part-0001.keys"])
def test_a_link_in_the_place_of_a_part_is_not_written_through(kind: str, server: ApiServer, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    run = tmp_path / "run"
    (run / "batches").mkdir(parents=True)
    (run / "batches" / kind).symlink_to(victim)
    collected, _ = collect(server, run, range(2))
    assert dict(collected) == expected(range(2))
    assert victim.read_text() == "precious"


DAMAGED = {
    "a path": {"job": "../../x"},
    "a path in the middle": {"job": "batch_1/../../files/file_1"},
    "a query": {"job": "batch_1?after=x"},
    "a long id": {"job": "b" * 1_000_000},
    "escapes": {"job": "batch_\x1b[2J"},
    "an empty id": {"job": ""},
    "a long tag": {"tag": "0" * 1_000_000},
    "a part below zero": {"part": -1},
    "a part beyond all": {"part": 2**70},
    "rows below zero": {"rows": -5},
    "a status that is none": {"status": "\x1b[2J"},
    "a long reason": {"error": "e" * 1_000_000},
    "tries without end": {"tries": 10**9},
    "what nobody knows": {"evil": 1},
}


@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_list_of_jobs_is_one_sentence(name: str, server: ApiServer, watched: type[Watched], tmp_path: Path) -> None:
    part(tmp_path, named("batch_1"), b"", [])
    path = tmp_path / "batches" / "jobs.json"
    whole = json.loads(path.read_text())
    whole["jobs"][0].update(DAMAGED[name])
    path.write_text(json.dumps(whole))
    with pytest.raises(StoreError, match=r"jobs\.json: damaged") as failed:
        collect(server, tmp_path, range(1), api=watched)
    assert len(str(failed.value)) < 500
    assert watched.calls == []


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"jobs": ' + b"[" * 100_000, b"1" * 5000, b"", b"\xff", b"null", b"[]", b'{"jobs": 5}'])
def test_what_is_no_list_of_jobs_is_one_sentence(data: bytes, server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "batches").mkdir()
    (tmp_path / "batches" / "jobs.json").write_bytes(data)
    with pytest.raises(StoreError, match=r"jobs\.json: damaged"):
        collect(server, tmp_path, range(1))


def test_keys_that_are_no_text_are_one_sentence(server: ApiServer, tmp_path: Path) -> None:
    part(tmp_path, named("batch_1"), b"", [])
    (tmp_path / "batches" / "part-0001.keys").write_bytes(b"\xff\n")
    user_state.remember("jobs", f"{tmp_path}\nbatch_1")
    with pytest.raises(StoreError, match=r"part-0001\.keys is damaged"):
        collect(server, tmp_path, range(1))


def test_a_folder_in_the_place_of_a_part_does_not_stop_others(server: ApiServer, tmp_path: Path) -> None:
    (tmp_path / "batches" / "part-0007.jsonl").mkdir(parents=True)
    collected, _ = collect(server, tmp_path, range(2))
    assert dict(collected) == expected(range(2))
