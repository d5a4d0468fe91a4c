"""`--batch`: whole runs through the Batch API of a real server, ended and gone on with."""

from __future__ import annotations

import asyncio
import signal
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractContextManager, nullcontext
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.api_server import ApiServer
from tests.captioning.keyframes import Scripted, describer
from tests.cli.terminal import start, vip
from tests.clips import picture
from tests.llm.clockwork import Clockwork
from vip import pipeline, store
from vip.captioning import caption_job, in_batches
from vip.captioning.described_folder import DescribedFolder
from vip.captioning.describer import Describer
from vip.captioning.in_batches import BatchRounds, RollingBatches
from vip.captioning.verify import Verifier
from vip.config import CaptionSettings
from vip.errors import BackendError, BudgetError, BusyError, EngineError, OutageError, ReplyError, SomeFailedError, UsageError, VipError
from vip.extraction.picture_folder import list_pictures
from vip.llm import batch_files
from vip.llm.budget import Budget, Usage, dollars
from vip.llm.outage import Outage, OutagePause
from vip.llm.prices import Price
from vip.protocols import BatchState, Reply, Request, SilentObserver
from vip.store import Run

PRICES = '[[price]]\nmodels = ["tiny-vlm"]\naddress = "127.0.0.1"\nusd_in = 100.0\nusd_out = 400.0\nbatch = 0.5\n'


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number in range(5):
        picture(tmp_path / "photos" / f"{number}.jpg", number)
    return tmp_path / "photos"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("vip.llm.batch_jobs.FIRST_POLL_S", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def described(folder: Path, server: ApiServer, **options: object) -> Run:
    return pipeline.caption(folder, engine="openai:tiny-vlm", base_url=server.base_url, in_batches=True, **options)


def test_every_picture_is_asked_about_in_one_batch_and_described(photos: Path) -> None:
    with ApiServer(usage=(1500, 200)) as server:
        run = described(photos, server)
        stats = server.stats()
    assert len(run.descriptions) == 5
    assert (stats.chats, stats.rows, stats.most_answered) == (0, 5, 1)
    assert [job.status for job in in_batches.jobs_in(photos)] == ["collected"]
    assert not list(photos.glob("batches/part-*"))


def test_a_question_that_goes_into_a_batch_is_no_step_of_the_bar(photos: Path) -> None:
    steps: list[list[int]] = []

    class Bar(SilentObserver):
        def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
            steps.append([])
            return nullcontext(lambda: steps[-1].append(1))

    (photos / "9.jpg").write_bytes(b"no picture")
    with ApiServer() as server, pytest.raises(SomeFailedError, match="1 of 6"):
        described(photos, server, observer=Bar())
    assert [len(round_) for round_ in steps] == [6, 0, 5], "looked at, put into the batch, described"


@pytest.mark.slow
def test_a_recipe_of_three_questions_takes_three_rounds(photos: Path) -> None:
    with ApiServer(marks=True) as server:
        run = described(photos, server, recipe="paper")
        assert server.stats().rows == 15
    assert [job.rows for job in in_batches.jobs_in(photos)] == [5, 5, 5]
    assert {len(row.calls) for row in run.descriptions} == {3}


def test_the_topic_is_asked_at_once(photos: Path) -> None:
    with ApiServer() as server:
        described(photos, server, topic="Dogs that surf")
        stats = server.stats()
    assert (stats.chats, stats.rows) == (1, 5)


def test_half_the_price_is_noted(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    told: list[str] = []

    class Listening(caption_job.SilentObserver):
        def note(self, text: str) -> None:
            told.append(text)

    with ApiServer(usage=(1400, 200)) as server:
        described(photos, server, prices=tmp_path / "prices.toml", max_usd=50, observer=Listening())
    assert told[-1] == "Used 5 requests, 7,000 tokens in, 1,000 out, $0.55."  # half of 5 times 22 cents


@pytest.mark.slow
def test_under_a_ceiling_as_many_go_at_once_as_it_allows_whatever_they_cost(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    most = (1500 * 100 + 2048 * 400) / 1e6 / 2  # about: what one may cost at most
    with ApiServer(usage=(900, 200)) as server:
        run = described(photos, server, prices=tmp_path / "prices.toml", max_usd=2.5 * most)
    assert len(run.descriptions) == 5
    assert in_batches.jobs_in(photos)[0].rows == 2
    assert sum(job.rows for job in in_batches.jobs_in(photos)) == 5


def test_claims_are_checked_once_and_only_when_no_keyframe_waits_any_more(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    checked: list[tuple[int, int]] = []

    async def verify(self: Verifier, folder: DescribedFolder) -> None:
        checked.append((folder.described, len(folder.deferred)))

    monkeypatch.setattr(Verifier, "verify", verify)
    most = (1500 * 100 + 2048 * 400) / 1e6 / 2
    with ApiServer(usage=(900, 200)) as server:
        described(photos, server, prices=tmp_path / "prices.toml", max_usd=2.5 * most, verify=True, embedder="classic")
    assert len(in_batches.jobs_in(photos)) > 1, "some are described while others wait"
    assert checked == [(5, 0)]


def test_a_ceiling_that_takes_none_ends_the_run(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    with ApiServer() as server, pytest.raises(EngineError, match=r"--max-usd 0\.1 leaves no room"):
        described(photos, server, prices=tmp_path / "prices.toml", max_usd=0.1)
    assert server_was_not_asked(photos)


def server_was_not_asked(photos: Path) -> bool:
    return in_batches.jobs_in(photos) == []


@pytest.mark.slow
@pytest.mark.parametrize("behaviour", ["wrong_schema", "refusal", "500"])
def test_rows_whose_answer_cannot_be_used_are_asked_again(behaviour: str, photos: Path) -> None:
    with ApiServer(behaviour, behaviour, "ok") as server:
        run = described(photos, server)
        stats = server.stats()
    assert len(run.descriptions) == 5
    assert stats.most_usable == 1
    assert stats.chats + stats.rows == 7


@pytest.mark.slow
def test_rows_that_expire_are_handed_in_again(photos: Path) -> None:
    with ApiServer(batch_expires_after=2) as server:
        run = described(photos, server)
        assert server.stats().most_answered == 1
    assert len(run.descriptions) == 5
    assert max(job.tries for job in in_batches.jobs_in(photos)) > 1


@pytest.mark.slow
def test_a_run_that_is_ended_while_it_waits_is_gone_on_with_by_another(photos: Path, tmp_path: Path) -> None:
    with ApiServer(batch_s=1.0) as server:
        options = ("caption", "photos", "--engine", "openai:tiny-vlm", "--base-url", server.base_url, "--batch")
        variables = {"OPENAI_API_KEY": "a-key", "XDG_CACHE_HOME": str(tmp_path / "cache")}
        process = start(tmp_path, *options, **variables)
        while not any(job.job for job in in_batches.jobs_in(photos)):
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
        pipeline.caption([tmp_path / "all" / "a", tmp_path / "all" / "b"], engine="openai:m", base_url=server.base_url, in_batches=True)
    assert [job.rows for job in in_batches.jobs_in(tmp_path / "all")] == [2]


def test_what_cannot_go_in_batches_is_refused_in_a_sentence(photos: Path) -> None:
    with pytest.raises(BackendError, match=r"offline takes no batches.*Leave --batch out"):
        pipeline.caption(photos, engine="offline", in_batches=True)
    with ApiServer() as server, pytest.raises(UsageError, match="--context"):
        described(photos, server, context=1)


def test_what_keeps_coming_is_handed_in_after_an_hour_or_when_no_more_comes(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def go(server: ApiServer) -> list[int]:
        settings = CaptionSettings(engine="openai:tiny-vlm", base_url=server.base_url)
        list_pictures(photos, settings, SilentObserver())
        captioner = caption_job.RunCaptioner(settings, SilentObserver(), Budget(), batches=photos / "noted")
        assert captioner.batches is not None
        handed_in = []
        with captioner.batches as batches:
            questions = await captioner.caption(photos, None)
            assert len(questions) == 5
            for change in (lambda: None, lambda: monkeypatch.setattr(in_batches, "HAND_IN_S", 0.0)):
                change()
                await batches.look()
                handed_in.append(len([job for job in in_batches.jobs_in(photos / "noted") if job.job]))
            while batches.waits_for(questions):
                await batches.look()
            assert await captioner.caption(photos, None) == frozenset()
        await captioner.close()
        return handed_in

    with ApiServer() as server:
        assert asyncio.run(go(server)) == [0, 1]
        assert server.stats().rows == 5
    assert len(Run(photos).descriptions) == 5


@pytest.mark.parametrize("is_batch", [True, False])
def test_what_keyframes_to_come_are_expected_to_cost_is_by_the_price_of_how_they_are_asked(
    is_batch: bool, photos: Path, tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    settings = CaptionSettings(engine="openai:tiny-vlm", base_url="http://127.0.0.1:9/v1", prices=tmp_path / "prices.toml")
    list_pictures(photos, settings, SilentObserver())
    expected = caption_job.expected_cost(photos, settings=settings)

    async def cost() -> str:
        captioner = caption_job.RunCaptioner(settings, SilentObserver(), Budget(), batches=photos / "noted" if is_batch else None)
        said = captioner.cost(photos, 5)
        await captioner.close()
        return said

    assert expected.usd is not None
    usd = expected.usd / 2 if is_batch else expected.usd
    assert f", {dollars(usd)} (tiny-vlm" in asyncio.run(cost())
    assert caption_job.expected_cost(photos, settings=settings, in_batches=is_batch).usd == pytest.approx(usd)


# ---------------------------------------------------------------- folders from elsewhere


def prepared(photos: Path, job: str | None, rows: int = 1004) -> None:
    """Put a batch that another machine prepared or handed in into the folder."""
    noted = batch_files.BatchJob(
        part=1, job=job, status="validating" if job else "written", rows=rows, size_bytes=9, created_utc="2026-11-22"
    )
    (photos / "batches").mkdir()
    (photos / "batches" / "jobs.json").write_text(batch_files.BatchJobList(jobs=(noted,)).model_dump_json())
    (photos / "batches" / "part-0001.jsonl").write_bytes(b'{"custom_id": "j00", "method": "POST"}\n' * rows)
    (photos / "batches" / "part-0001.keys").write_text("00\n" * rows)


def test_a_prepared_batch_is_not_handed_in_past_the_ceiling(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text(PRICES)
    prepared(photos, None)
    with ApiServer() as server:
        run = described(photos, server, prices=tmp_path / "prices.toml", max_usd=50)
        assert server.stats().rows == 5
    assert len(run.descriptions) == 5
    assert [job.rows for job in in_batches.jobs_in(photos)] == [5]


def test_a_batch_of_another_machine_is_left_alone_with_one_note(photos: Path) -> None:
    prepared(photos, "batch_of_another")
    told: list[str] = []

    class Listening(SilentObserver):
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
    assert next((job.job, job.is_open) for job in in_batches.jobs_in(photos)) == ("batch_of_another", True)


@pytest.mark.slow
def test_the_status_of_a_batch_of_another_machine_is_told_without_asking_the_server(photos: Path, tmp_path: Path) -> None:
    prepared(photos, "batch_of_another")
    options = ("caption", "photos", "--engine", "openai:tiny-vlm", "--base-url", "http://127.0.0.1:9/v1", "--batch", "--status")
    told = vip(tmp_path, *options)
    assert (told.code, told.err) == (0, "")
    assert "not handed in by this machine, 0 of 1,004 done" in told.out
    assert vip(tmp_path, *options, "--json").rows[0]["is_strange"] is True


@pytest.mark.slow
def test_a_batch_of_another_machine_is_collected_once_the_folder_is_trusted(photos: Path, tmp_path: Path) -> None:
    prepared(photos, "batch_of_another", rows=1)
    assert vip(tmp_path, "trust", "photos").code == 0
    with ApiServer() as server, pytest.raises(EngineError, match="does not know the batch batch_of_another"):
        described(photos, server)
    assert vip(tmp_path, "trust", "photos", "--revoke").code == 0
    with ApiServer() as server:
        assert len(described(photos, server).descriptions) == 5


# ---------------------------------------------------------------- a server in memory


class Memory:
    """A Batch API whose jobs end when they are told to."""

    def __init__(self) -> None:
        self.jobs: dict[str, list[str]] = {}
        self.ended = False
        self.busy: BusyError | None = None
        self.answer: Callable[[str], Reply | VipError | None] = lambda key: Reply("An answer.", model="m", tokens_in=1000, tokens_out=100)

    @property
    def rows(self) -> list[int]:
        return [len(keys) for keys in self.jobs.values()]

    def row(self, key: str, request: Request) -> bytes:
        return f"{key}\n".encode()

    async def submit(self, path: Path, tag: str) -> str:
        if self.busy:
            raise self.busy
        self.jobs[f"job{len(self.jobs)}"] = path.read_text().split()
        return f"job{len(self.jobs) - 1}"

    async def find(self, tag: str) -> str | None:
        return None

    async def state(self, job: str) -> BatchState:
        if self.busy:
            raise self.busy
        return BatchState("completed" if self.ended else "in_progress")

    async def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
        for key in self.jobs[job]:
            if (answer := self.answer(key)) is not None:
                yield key, answer

    async def discard(self, job: str) -> None: ...


PRICE = Price("m", usd_in=100.0, usd_out=1000.0, batch=0.5, thinking=0, as_of="2026-01-01", picture=None)
DEAR, CHEAP = 2000, 100  # tokens that may come out: a dollar in a batch, and five cents; the question itself costs less than a cent


def question(number: int) -> bytes:
    return sha256(b"question %d" % number).digest()


def asked(number: int, most_out: int = DEAR, stage: Any = "describe") -> Request:
    return Request(stage, f"Question {number}.", max_tokens=most_out)


def batched(server: Memory, max_usd: float = 100.0, **about: Any) -> Describer:
    """One engine that takes batches, with a ceiling."""
    made = describer(Scripted(batches=lambda: server, **about))
    made.describing_client.price, made.describing_client.budget.max_usd = PRICE, max_usd
    return made


def rolling(made: Describer, home: Path, told: list[str] | None = None) -> RollingBatches:
    return RollingBatches(made, home, ([] if told is None else told).append)


def put(made: Describer, *numbers: int, most_out: int = DEAR, usage: Usage | None = None) -> None:
    defer = made.describing_client.defer
    assert defer is not None
    for number in numbers:
        assert defer(question(number), asked(number, most_out), usage)


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(in_batches, "time", SimpleNamespace(monotonic=lambda: self.now_s))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


async def end(batches: RollingBatches, server: Memory) -> None:
    """Hand in all there is, and collect it."""
    batches.hand_in()
    await batches.look()
    server.ended = True
    await batches.look()
    server.ended = False


def test_the_batches_of_several_folders_are_noted_above_them_all(tmp_path: Path) -> None:
    one, other = tmp_path / "a" / "photos", tmp_path / "b" / "photos"
    assert in_batches.batches_home([one]) == one
    assert in_batches.batches_home([one, other]) == tmp_path
    assert in_batches.batches_home([tmp_path / "a" / "x", one]) == tmp_path / "a"
    assert in_batches.batches_home([one, tmp_path / "a"]) == tmp_path / "a"
    assert in_batches.batches_home([Path("photos")]) == Path.cwd() / "photos"


def test_a_part_is_handed_in_an_hour_after_its_first_question(tmp_path: Path, clock: Clock) -> None:
    server = Memory()
    made = batched(server)

    async def go(batches: RollingBatches) -> list[list[int]]:
        seen = []
        for now_s, number in ((0.0, 0), (3000.0, 1), (3600.0, 2), (3601.0, None), (3602.0, 3), (7201.0, None), (7203.0, None)):
            clock.now_s = now_s
            if number is not None:
                put(made, number)
            await batches.look()
            seen.append(server.rows)
        return seen

    with rolling(made, tmp_path) as batches:
        assert asyncio.run(go(batches)) == [[], [], [], [3], [3], [3], [3, 1]]


def test_what_is_to_be_handed_in_is_so_once(tmp_path: Path, clock: Clock) -> None:
    server = Memory()
    made = batched(server)

    async def go(batches: RollingBatches) -> None:
        put(made, 0)
        batches.hand_in()
        await batches.look()
        put(made, 1)
        await batches.look()

    with rolling(made, tmp_path) as batches:
        asyncio.run(go(batches))
        assert server.rows == [1]


def test_what_an_earlier_run_handed_in_does_not_count_as_refused(tmp_path: Path, clock: Clock) -> None:
    """So that a ceiling with no room for it does not send other questions out one by one."""
    server = Memory()

    async def look(batches: RollingBatches, *, hand_in: bool) -> None:
        if hand_in:
            batches.hand_in()
        await batches.look()

    before = batched(server)
    with rolling(before, tmp_path) as batches:
        put(before, 0)
        asyncio.run(look(batches, hand_in=True))
    now = batched(server, max_usd=0.5)
    with rolling(now, tmp_path) as batches:
        put(now, 0)
        assert batches.waits_for([question(0)])
        put(now, 1, most_out=CHEAP)
        asyncio.run(look(batches, hand_in=False))
        assert server.rows == [1]
        asyncio.run(look(batches, hand_in=True))
        assert server.rows == [1, 1]


def test_without_room_under_the_ceiling_what_is_written_goes_and_the_rest_waits_for_its_bill(tmp_path: Path, clock: Clock) -> None:
    server = Memory()
    made = batched(server, max_usd=1.9)  # for one, and once its bill of ten cents is there, for another

    async def go(batches: RollingBatches) -> None:
        put(made, 0, 1)
        assert batches.waits_for([question(1)])
        assert not await batches.look()
        assert server.rows == [1]
        server.ended = True
        assert await batches.look()
        assert not batches.waits_for([question(0), question(1)])
        put(made, 1)
        assert batches.waits_for([question(1)])
        await end(batches, server)
        assert server.rows == [1, 1]

    with rolling(made, tmp_path) as batches:
        asyncio.run(go(batches))
    usage = made.describing_client.budget.usage
    assert (usage.requests, usage.usd) == (2, pytest.approx(2 * 0.1))


def test_where_not_even_one_fits_under_the_ceiling_it_ends_with_what_one_may_cost(tmp_path: Path, clock: Clock) -> None:
    made = batched(Memory(), max_usd=0.5)
    with rolling(made, tmp_path) as batches:
        put(made, 0)
        with pytest.raises(BudgetError, match=r"the next may cost up to \$1\.00"):
            asyncio.run(batches.look())


def test_where_one_engine_has_no_room_it_ends_though_the_other_has(tmp_path: Path, clock: Clock) -> None:
    made = describer(*(Scripted(name=name, batches=Memory) for name in ("a", "b")))
    for client in made.clients:
        client.budget, client.price = made.describing_client.budget, PRICE
    made.describing_client.budget.max_usd = 0.5
    with rolling(made, tmp_path) as batches:
        assert made.structuring_client.defer is not None
        made.structuring_client.defer(question(0), asked(0), None)
        with pytest.raises(BudgetError, match=r"up to \$1\.00"):
            asyncio.run(batches.look())


def test_a_question_that_comes_again_is_counted_once(tmp_path: Path, clock: Clock) -> None:
    made = batched(Memory(), max_usd=2.5)
    with rolling(made, tmp_path) as batches:
        put(made, 0, 0, 0, 1)
        assert len(batches.several[0].batches) == 2


def test_a_question_may_have_a_tenth_more_tokens_than_were_reckoned(tmp_path: Path) -> None:
    """Half a dollar for the question, five cents for the answer."""
    sizes = []
    for max_usd in (0.58, 0.62):
        made = batched(Memory(), max_usd=max_usd)
        with rolling(made, tmp_path / str(max_usd)) as batches:
            assert made.describing_client.defer is not None
            made.describing_client.defer(question(0), Request("describe", "word " * 10_000, max_tokens=CHEAP), None)
            sizes.append(len(batches.several[0].batches))
    assert sizes == [0, 1]


def test_what_the_server_did_not_take_yet_is_not_told_to_be_there(tmp_path: Path, clock: Clock) -> None:
    server, told = Memory(), list[str]()
    made = batched(server)
    server.busy = BusyError("Too much.", kind="rate_limit")
    with rolling(made, tmp_path, told) as batches:
        put(made, 0)
        batches.hand_in()
        asyncio.run(batches.look())
    assert told == []


@pytest.mark.parametrize("usable", [True, False])
def test_each_answer_is_counted_for_the_folder_of_its_question(usable: bool, tmp_path: Path, clock: Clock) -> None:
    server = Memory()
    if not usable:
        server.answer = lambda key: ReplyError("No.", kind="refusal", tokens_in=1000, tokens_out=100)
    made, usages = batched(server), [Usage(), Usage()]

    async def go(batches: RollingBatches) -> None:
        for number, usage in enumerate(usages):
            put(made, number, usage=usage)
        await end(batches, server)

    with rolling(made, tmp_path) as batches:
        asyncio.run(go(batches))
    assert [(usage.requests, usage.tokens_in, usage.tokens_out) for usage in usages] == [(1, 1000, 100)] * 2
    assert [usage.usd for usage in usages] == pytest.approx([0.1, 0.1])


@pytest.mark.parametrize(
    ("answer", "unsure_usd"),
    [
        (None, 0.0),
        (ReplyError("No.", kind="refusal", tokens_in=1000, tokens_out=100), 0.0),
        (ReplyError("No.", kind="too_large"), 0.0),
        (ReplyError("No.", kind="refusal"), 1.0),
    ],
    ids=["none", "refused", "not taken", "refused, who knows for how much"],
)
def test_what_got_no_answer_that_can_be_used_is_asked_at_once_and_frees_its_money(
    answer: ReplyError | None, unsure_usd: float, tmp_path: Path, clock: Clock
) -> None:
    server = Memory()
    server.answer = lambda key: answer
    made = batched(server, max_usd=1.5 + unsure_usd)

    async def go(batches: RollingBatches) -> None:
        put(made, 0)
        batches.hand_in()
        server.ended = True
        for _ in range(10):  # rows without an answer are handed in three times
            await batches.look()

    with rolling(made, tmp_path) as batches:
        asyncio.run(go(batches))
        assert not batches.waits_for([question(0)])
        defer = made.describing_client.defer
        assert defer is not None
        assert defer(question(0), asked(0), None) is False
        put(made, 1)
        assert len(batches.several[0].batches) == 1, "there is room for another"
    assert made.describing_client.budget.usage.unsure_usd == pytest.approx(unsure_usd, abs=0.01)


@pytest.mark.parametrize("tokens", [(None, None), (0, 0), (0, 1)])
def test_an_answer_without_its_tokens_costs_what_was_estimated(tokens: tuple[int | None, int | None], tmp_path: Path, clock: Clock) -> None:
    server = Memory()
    server.answer = lambda key: Reply("word " * 100, "m", *tokens)
    made, usage = batched(server), Usage()

    async def go(batches: RollingBatches) -> None:
        put(made, 0, usage=usage)
        await end(batches, server)

    with rolling(made, tmp_path) as batches:
        asyncio.run(go(batches))
    tokens_in, _ = made.describing_client.most_tokens(asked(0))
    assert (usage.requests, usage.tokens_in) == (1, tokens_in)
    assert 80 <= usage.tokens_out <= 130
    assert usage.usd == pytest.approx(PRICE.usd(usage.tokens_in, usage.tokens_out, batch=True))
    assert usage.unsure_usd == 0


@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (Reply("word " * 100, "m", 1000, 100), (1000, 100)),
        (Reply("word " * 100, "m", 1000, None), (1000, 0)),
        (Reply("word " * 100, "m", None, None), None),
        (ReplyError("No.", kind="refusal", tokens_in=1000, tokens_out=100), (1000, 100)),
        (ReplyError("No.", kind="refusal"), None),
    ],
)
def test_an_answer_that_an_earlier_run_asked_for_costs_what_the_server_states_and_no_guess(
    answer: Reply | ReplyError, tokens: tuple[int, int] | None, tmp_path: Path, clock: Clock
) -> None:
    server = Memory()
    server.answer = lambda key: answer
    with rolling(made := batched(server), tmp_path) as earlier:
        put(made, 0)
        earlier.hand_in()
        asyncio.run(earlier.look())
    server.ended = True
    with rolling(made := batched(server), tmp_path) as batches:
        assert batches.waits_for([question(0)])
        assert asyncio.run(batches.look())
        assert not batches.waits_for([question(0)])
    usage = made.describing_client.budget.usage
    assert (usage.requests, usage.tokens_in, usage.tokens_out) == ((1, *tokens) if tokens else (0, 0, 0))
    assert usage.usd == (PRICE.usd(*tokens, batch=True) if tokens else 0)
    assert usage.unsure_usd == 0


def test_an_answer_to_what_is_no_question_is_not_kept(tmp_path: Path, clock: Clock) -> None:
    """Whoever writes into the folder of the batches chooses their keys."""
    server, kept = Memory(), list[bytes]()
    made = batched(server)
    made.describing_client.answers = SimpleNamespace(keep=lambda key, *_: asyncio.sleep(0, kept.append(key)))  # type: ignore[assignment]

    async def go(batches: RollingBatches) -> None:
        put(made, 0)
        for key in ("no question", "00", "٣" * 64, f"{question(1).hex()}00"):
            await batches.several[0].answered(key, Reply("An answer.", "m"))
        await end(batches, server)

    with rolling(made, tmp_path) as batches:
        asyncio.run(go(batches))
    assert kept == [question(0)]


def test_the_topic_is_no_question_for_a_batch(tmp_path: Path) -> None:
    made = batched(Memory())
    with rolling(made, tmp_path) as batches:
        defer = made.describing_client.defer
        assert defer is not None
        assert defer(question(0), asked(0, stage="topic"), None) is False
        assert not batches.waits_for([question(0)])
    assert made.describing_client.defer is None


def test_each_engine_has_batches_of_its_own(tmp_path: Path, clock: Clock) -> None:
    servers = Memory(), Memory()
    made = describer(*(Scripted(name=f"e{number}", batches=lambda server=server: server) for number, server in enumerate(servers)))

    async def go(batches: RollingBatches) -> None:
        for number, client in enumerate(made.clients):
            assert client.defer is not None
            assert client.defer(question(number), asked(number), None)
        batches.hand_in()
        await batches.look()

    told: list[str] = []
    with rolling(made, tmp_path, told) as batches:
        asyncio.run(go(batches))
        assert batches.waits_for([question(1)])
    assert [server.rows for server in servers] == [[1], [1]]
    assert [job.rows for job in in_batches.jobs_in(tmp_path)] == [1, 1]
    assert told == ["2 batches with 2 requests at the server, which may take a day."]


def test_what_is_at_the_server_is_told_while_it_is_waited_for(tmp_path: Path) -> None:
    server, told = Memory(), list[str]()
    states = iter([BatchState("validating"), *[BatchState("in_progress", 3, done, failed) for done, failed in ((0, 0), (1, 1), (1, 1))]])
    made = batched(server)

    async def state(job: str) -> BatchState:
        return next(states, BatchState("completed", 3, 2, 1))

    server.state = state  # type: ignore[method-assign]
    with BatchRounds(made, tmp_path, told.append) as batches, Clockwork() as clockwork:
        put(made, 0, 1, 2)
        clockwork.run(batches.collect())
        assert batches.several[0].batches.open_jobs == []
    safe = "It is safe to stop: the same command goes on later."
    assert told == [f"1 batch at the server, {done} of 3 requests done. {safe}" for done in (0, 2)]


def test_the_same_is_told_once(tmp_path: Path, clock: Clock) -> None:
    made, told = batched(Memory()), list[str]()

    async def go(batches: RollingBatches) -> None:
        put(made, 0)
        batches.hand_in()
        for _ in range(3):
            await batches.look()
        put(made, 1)
        batches.hand_in()
        await batches.look()

    with rolling(made, tmp_path, told) as batches:
        asyncio.run(go(batches))
    assert told == [
        "1 batch with 1 request at the server, which may take a day.",
        "2 batches with 2 requests at the server, which may take a day.",
    ]


@pytest.mark.parametrize("fails", [False, True])
def test_who_looks_at_batches_leaves_no_engine_open(fails: bool, tmp_path: Path) -> None:
    server = Memory()
    made = batched(server)
    with rolling(made, tmp_path) as batches:
        put(made, 0)
        batches.hand_in()
        asyncio.run(batches.look())
    server.busy = BusyError("The server is gone.", kind="connection") if fails else None
    if fails:
        with pytest.raises(BusyError):
            asyncio.run(in_batches.refreshed_jobs(made, tmp_path))
    else:
        assert [job.status for job in asyncio.run(in_batches.refreshed_jobs(made, tmp_path))] == ["in_progress"]
    assert made.describing_client.engine.closed  # type: ignore[attr-defined]


# ---------------------------------------------------------------- a server that is gone


def looks_until_it_ends(made: Describer, server: Memory, home: Path, before: Callable[[int], None]) -> int | None:
    """How many looks it takes; None where ten do not end it."""

    async def go(batches: RollingBatches) -> int | None:
        put(made, 0)
        batches.hand_in()
        await batches.look()
        for number in range(1, 11):
            before(number)
            try:
                await batches.look()
            except OutageError:
                return number
        return None

    with rolling(made, home) as batches:
        return asyncio.run(go(batches))


@pytest.mark.parametrize(("kind", "looks"), [("connection", 4), ("server", 4), ("rate_limit", None)])
def test_a_server_that_never_answered_ends_it_after_some_looks(kind: Any, looks: int | None, tmp_path: Path) -> None:
    server = Memory()
    made = batched(server)

    def gone(number: int) -> None:
        made.describing_client.circuit_breaker.answered = False
        server.busy = BusyError("The server is gone.", kind=kind)

    assert looks_until_it_ends(made, server, tmp_path, gone) == looks


def test_a_server_that_answered_is_waited_for(tmp_path: Path) -> None:
    server = Memory()

    def gone(number: int) -> None:
        server.busy = BusyError("The server is gone.", kind="connection")

    assert looks_until_it_ends(batched(server), server, tmp_path, gone) is None


def test_only_failures_in_a_row_end_it(tmp_path: Path) -> None:
    server = Memory()
    made = batched(server)

    def gone(number: int) -> None:
        made.describing_client.circuit_breaker.answered = False
        server.busy = None if number % 3 == 0 else BusyError("The server is gone.", kind="connection")

    assert looks_until_it_ends(made, server, tmp_path, gone) is None


def test_a_server_that_is_silent_for_a_minute_is_left_alone_until_it_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server, told = Memory(), list[OutagePause | None]()
    made = batched(server)
    made.describing_client.limiter.outage = Outage(30.0, told.append)

    async def go(batches: RollingBatches, now_s: Callable[[], float]) -> list[tuple[float, int]]:
        put(made, 0)
        batches.hand_in()
        await batches.look()
        server.busy = BusyError("The server is gone.", kind="connection")
        seen = []
        for wait_s in (0.0, 40.0, 20.0, 1.0, 0.0, 0.0):
            await asyncio.sleep(wait_s)
            await batches.look()
            seen.append((now_s(), len(told)))
        server.busy = None
        await batches.look()
        return [*seen, (now_s(), len(told))]

    with Clockwork() as clock, rolling(made, tmp_path) as batches:
        monkeypatch.setattr(in_batches, "time", SimpleNamespace(monotonic=clock))
        seen = clock.run(go(batches, clock))
    assert seen == [(0, 0), (40, 0), (60, 0), (61, 1), (91, 2), (151, 3), (271, 4)]
    assert [rest.seconds if rest else None for rest in told] == [30.0, 60.0, 120.0, None]
