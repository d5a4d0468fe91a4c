"""`--batch`: whole runs through the Batch API of a real server, ended and gone on with."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import start, vip
from tests.clips import picture
from vip import describing, store
from vip.asking import parts
from vip.asking.spending import Ledger
from vip.captioning import batch
from vip.config import CaptionSettings
from vip.errors import BackendError, EngineError, UsageError
from vip.protocols import Silent
from vip.store import Run

PRICES = '[[price]]\nmodels = ["tiny-vlm"]\naddress = "127.0.0.1"\nusd_in = 100.0\nusd_out = 400.0\nbatch = 0.5\n'


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number in range(5):
        picture(tmp_path / "photos" / f"{number}.jpg", number)
    return tmp_path / "photos"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("vip.asking.batches.FIRST_POLL_S", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def described(folder: Path, server: ApiServer, **options: object) -> Run:
    return describing.caption(folder, engine="openai:tiny-vlm", base_url=server.base_url, in_batches=True, **options)


def test_every_picture_is_asked_about_in_one_batch_and_described(photos: Path) -> None:
    with ApiServer(usage=(1500, 200)) as server:
        run = described(photos, server)
        stats = server.stats()
    assert len(run.descriptions) == 5
    assert (stats.chats, stats.rows, stats.most_answered) == (0, 5, 1)
    assert [job.status for job in batch.jobs_in(photos)] == ["collected"]
    assert not list(photos.glob("batches/part-*"))


def test_a_recipe_of_three_questions_takes_three_rounds(photos: Path) -> None:
    with ApiServer(marks=True) as server:
        run = described(photos, server, recipe="paper")
        assert server.stats().rows == 15
    assert [job.rows for job in batch.jobs_in(photos)] == [5, 5, 5]
    assert {len(row.calls) for row in run.descriptions} == {3}


def test_the_topic_is_asked_at_once(photos: Path) -> None:
    with ApiServer() as server:
        described(photos, server, topic="Dogs that surf")
        stats = server.stats()
    assert (stats.chats, stats.rows) == (1, 5)


def test_half_the_price_is_noted(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    told: list[str] = []

    class Listening(describing.Silent):
        def note(self, text: str) -> None:
            told.append(text)

    with ApiServer(usage=(1400, 200)) as server:
        described(photos, server, prices=tmp_path / "prices.toml", max_usd=50, observer=Listening())
    assert told[-1] == "Used 5 requests, 7,000 tokens in, 1,000 out, $0.55."  # half of 5 times 22 cents


def test_under_a_ceiling_as_many_go_at_once_as_it_allows_whatever_they_cost(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    most = (1500 * 100 + 2048 * 400) / 1e6 / 2  # about: what one may cost at most
    with ApiServer(usage=(900, 200)) as server:
        run = described(photos, server, prices=tmp_path / "prices.toml", max_usd=2.5 * most)
    assert len(run.descriptions) == 5
    assert batch.jobs_in(photos)[0].rows == 2
    assert sum(job.rows for job in batch.jobs_in(photos)) == 5


def test_a_ceiling_that_takes_none_ends_the_run(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    with ApiServer() as server, pytest.raises(EngineError, match=r"--max-usd 0\.1 leaves no room"):
        described(photos, server, prices=tmp_path / "prices.toml", max_usd=0.1)
    assert server_was_not_asked(photos)


def server_was_not_asked(photos: Path) -> bool:
    return batch.jobs_in(photos) == []


@pytest.mark.parametrize("behaviour", ["wrong_schema", "refusal", "500"])
def test_rows_whose_answer_cannot_be_used_are_asked_again(behaviour: str, photos: Path) -> None:
    with ApiServer(behaviour, behaviour, "ok") as server:
        run = described(photos, server)
        stats = server.stats()
    assert len(run.descriptions) == 5
    assert stats.most_usable == 1
    assert stats.chats + stats.rows == 7


def test_rows_that_expire_are_handed_in_again(photos: Path) -> None:
    with ApiServer(batch_expires_after=2) as server:
        run = described(photos, server)
        assert server.stats().most_answered == 1
    assert len(run.descriptions) == 5
    assert max(job.tries for job in batch.jobs_in(photos)) > 1


def test_a_run_that_is_ended_while_it_waits_is_gone_on_with_by_another(photos: Path, tmp_path: Path) -> None:
    with ApiServer(batch_s=1.0) as server:
        options = ("caption", "photos", "--engine", "openai:tiny-vlm", "--base-url", server.base_url, "--batch")
        variables = {"OPENAI_API_KEY": "a-key", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        process = start(tmp_path, *options, **variables)
        while not any(job.job for job in batch.jobs_in(photos)):
            assert process.poll() is None
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        told = vip(tmp_path, *options, "--status", **variables)
        assert told.code == 0
        assert "of 5 done" in told.out
        done = vip(tmp_path, *options, **variables)
        assert done.code == 0, done.err
        stats = server.stats()
    assert (stats.rows, stats.most_answered, stats.chats) == (5, 1, 0)
    assert len(store.load_run(photos).descriptions) == 5


def test_several_folders_share_their_batches(tmp_path: Path) -> None:
    for name in ("a", "b"):
        picture(tmp_path / "all" / name / "1.jpg", ord(name))
    with ApiServer() as server:
        describing.caption([tmp_path / "all" / "a", tmp_path / "all" / "b"], engine="openai:m", base_url=server.base_url, in_batches=True)
    assert [job.rows for job in batch.jobs_in(tmp_path / "all")] == [2]


def test_what_cannot_go_in_batches_is_refused_in_a_sentence(photos: Path) -> None:
    with pytest.raises(BackendError, match=r"offline takes no batches.*Leave --batch out"):
        describing.caption(photos, engine="offline", in_batches=True)
    with ApiServer() as server, pytest.raises(UsageError, match="--context"):
        described(photos, server, context=1)


def test_what_keeps_coming_is_handed_in_after_an_hour_or_when_no_more_comes(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go(server: ApiServer) -> list[int]:
        settings = CaptionSettings(engine="openai:tiny-vlm", base_url=server.base_url)
        captioner = describing.Captioner(settings, Silent(), Ledger(), batches=photos / "noted")
        assert captioner.batches is not None
        handed_in = []
        with captioner.batches as batches:
            questions = await captioner.caption(photos, None)
            assert len(questions) == 5
            for change in (lambda: None, lambda: monkeypatch.setattr(batch, "HAND_IN_S", 0.0)):
                change()
                await batches.look()
                handed_in.append(len([job for job in batch.jobs_in(photos / "noted") if job.job]))
            while batches.waits_for(questions):
                await batches.look()
            assert await captioner.caption(photos, None) == frozenset()
        await captioner.close()
        return handed_in

    with ApiServer() as server:
        assert asyncio.run(go(server)) == [0, 1]
        assert server.stats().rows == 5
    assert len(Run(photos).descriptions) == 5


# ---------------------------------------------------------------- folders from elsewhere


def prepared(photos: Path, job: str | None, rows: int = 1004) -> None:
    """Put a batch that another machine prepared or handed in into the folder."""
    noted = parts.Job(part=1, job=job, status="validating" if job else "written", rows=rows, size_bytes=9, created_utc="2026-11-22")
    (photos / "batches").mkdir()
    (photos / "batches" / "jobs.json").write_text(parts.Jobs(jobs=(noted,)).model_dump_json())
    (photos / "batches" / "part-0001.jsonl").write_bytes(b'{"custom_id": "j00", "method": "POST"}\n' * rows)
    (photos / "batches" / "part-0001.keys").write_text("00\n" * rows)


def test_a_prepared_batch_is_not_handed_in_past_the_ceiling(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    prepared(photos, None)
    with ApiServer() as server:
        run = described(photos, server, prices=tmp_path / "prices.toml", max_usd=50)
        assert server.stats().rows == 5
    assert len(run.descriptions) == 5
    assert [job.rows for job in batch.jobs_in(photos)] == [5]


def test_a_batch_of_another_machine_is_left_alone_with_one_note(photos: Path) -> None:
    prepared(photos, "batch_of_another")
    told: list[str] = []

    class Listening(Silent):
        def note(self, text: str) -> None:
            told.append(text)

    with ApiServer() as server:
        run = described(photos, server, observer=Listening())
    assert len(run.descriptions) == 5
    (note,) = [text for text in told if "vip trust" in text]
    assert note == (
        f"In {photos}, 1 batch was not handed in by this machine and is left alone; the questions are asked anew."
        f" To have the answers collected, run `vip trust {photos}`."
    )
    assert next((job.job, job.is_open) for job in batch.jobs_in(photos)) == ("batch_of_another", True)


def test_the_status_of_a_batch_of_another_machine_is_told_without_asking_the_server(photos: Path, tmp_path: Path) -> None:
    prepared(photos, "batch_of_another")
    options = ("caption", "photos", "--engine", "openai:tiny-vlm", "--base-url", "http://127.0.0.1:9/v1", "--batch", "--status")
    told = vip(tmp_path, *options)
    assert (told.code, told.err) == (0, "")
    assert "not handed in by this machine, 0 of 1,004 done" in told.out
    assert vip(tmp_path, *options, "--json").rows[0]["is_strange"] is True


def test_a_batch_of_another_machine_is_collected_once_the_folder_is_trusted(photos: Path, tmp_path: Path) -> None:
    prepared(photos, "batch_of_another", rows=1)
    assert vip(tmp_path, "trust", "photos").code == 0
    with ApiServer() as server, pytest.raises(EngineError, match="does not know the batch batch_of_another"):
        described(photos, server)
    assert vip(tmp_path, "trust", "photos", "--revoke").code == 0
    with ApiServer() as server:
        assert len(described(photos, server).descriptions) == 5
