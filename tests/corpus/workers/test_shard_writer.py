"""Parts into shards, one after the other: when one is begun, what goes when it is in place, and what a power cut or a kill costs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from tests.corpus.test_state import fill, item, ready
from tests.corpus.workers.children import Children, Gone, children_of
from vip.corpus.state import StateDatabase
from vip.corpus.workers.shard_writer import ShardWriter, ShardWritten, TornParts, WriteShard, main
from vip.errors import BackendError, StoreError


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    (tmp_path / "parts").mkdir()
    fill(state, [item(number) for number in range(6)])
    yield state
    state.close()


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    return children_of(monkeypatch)


def part(state: StateDatabase, number: int) -> Path:
    return state.home / "parts" / f"video{number}.tar"


def with_parts(state: StateDatabase, count: int, size: int = 50) -> None:
    for number in range(count):
        ready(state, f"video{number}", size)
        part(state, number).write_bytes(b"x")


def writer_of(state: StateDatabase) -> ShardWriter:
    return ShardWriter(state, "corpus", "parquet", 100)


def test_a_shard_is_begun_when_there_is_enough_for_it(state: StateDatabase, children: Children) -> None:
    with_parts(state, 1)
    writer = writer_of(state)
    assert (writer.step(), children) == (False, [])
    with_parts_more(state, writer, 1)
    assert writer.step()
    assert children[0].sent == [("corpus", "parquet"), WriteShard(0, (part(state, 0), part(state, 1)))]


def with_parts_more(state: StateDatabase, writer: ShardWriter, number: int) -> None:
    ready(state, f"video{number}", 50)
    part(state, number).write_bytes(b"x")
    writer.add_part(50)


def test_in_the_end_what_is_left_is_a_shard_too_and_where_nothing_is_left_there_is_none(state: StateDatabase, children: Children) -> None:
    with_parts(state, 1)
    writer = writer_of(state)
    assert writer.step(last=True)
    children.say(ShardWritten(0, 40, 3, 0))
    assert not writer.step(last=True)
    assert (state.shard_count(), state.unwritten_shards()) == (1, [])


def test_while_one_is_at_work_no_other_is_begun(state: StateDatabase, children: Children) -> None:
    with_parts(state, 6)
    writer = writer_of(state)
    for _ in range(3):
        assert writer.step(0.25, last=True)
    assert len(children[0].sent) == 2
    assert children[0].pipe.polls == [0.25, 0.25], "it waits for the one at work, and only as long as it is told"


def test_a_shard_in_place_is_noted_and_its_parts_go(state: StateDatabase, children: Children) -> None:
    with_parts(state, 3)
    writer = writer_of(state)
    writer.step()
    children.say(ShardWritten(0, 90, 6, 2))
    assert not writer.step(), "what is left is too little for another"
    assert state._fetch_all("SELECT number, bytes, rows, undescribed FROM shards WHERE written IS NOT NULL") == [(0, 90, 6, 2)]
    assert [number for number in range(3) if part(state, number).exists()] == [2]
    assert writer.lost == []


def test_the_parts_of_a_shard_that_the_state_does_not_know_yet_stay(
    state: StateDatabase, children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    with_parts(state, 2)
    writer = writer_of(state)
    writer.step()
    children.say(ShardWritten(0, 90, 6, 0))
    monkeypatch.setattr(StateDatabase, "record_shard", fail)
    with pytest.raises(StoreError, match="full"):
        writer.step()
    assert part(state, 0).exists()
    assert part(state, 1).exists()


def test_no_more_should_come_where_more_than_four_shards_wait(state: StateDatabase, children: Children) -> None:
    writer = writer_of(state)
    writer.add_part(400)
    assert not writer.is_full
    writer.add_part(1)
    assert writer.is_full
    assert writer.step() is False, "there is nothing in truth"
    assert not writer.is_full


def test_parts_that_are_torn_wait_again_and_the_shard_is_written_without_them(state: StateDatabase, children: Children) -> None:
    with_parts(state, 2)
    writer = writer_of(state)
    writer.step()
    children.say(TornParts(0, ("video0",)))
    assert writer.step()
    assert [entry.item.key for entry in writer.lost] == ["video0"]
    assert [entry.item.key for entry in state.waiting("example.org", 0, 1)] == ["video0"]
    assert children[0].sent[-1] == WriteShard(0, (part(state, 1),))
    with closing(StateDatabase(state.home)) as other:
        assert [entry.item.key for entry in other.items_in_shard(0)] == ["video1"], "on the disk too, before the shard is in its place"
    children.say(ShardWritten(0, 45, 3, 0))
    writer.step()
    assert state.unwritten_shards() == []


def test_a_shard_of_torn_parts_alone_is_dropped(state: StateDatabase, children: Children) -> None:
    with_parts(state, 2)
    writer = writer_of(state)
    writer.step()
    children.say(TornParts(0, ("video0", "video1")))
    assert not writer.step()
    assert (state.shard_numbers(), len(writer.lost)) == (set(), 2)


def test_a_shard_that_a_killed_run_began_is_written_first_and_what_else_it_left_goes(state: StateDatabase, children: Children) -> None:
    with_parts(state, 4)
    assert state.begin_shard(100) == 0
    for name in ("half.tar.partial", "video5.tar"):
        (state.home / "parts" / name).write_bytes(b"x")
    writer = writer_of(state)
    assert sorted(path.name for path in (state.home / "parts").iterdir()) == [f"video{number}.tar" for number in range(4)]
    assert writer.step()
    assert children[0].sent[-1] == WriteShard(0, (part(state, 0), part(state, 1)))
    children.say(ShardWritten(0, 90, 6, 0))
    assert writer.step()
    assert children[0].sent[-1] == WriteShard(1, (part(state, 2), part(state, 3)))


def test_another_process_writes_the_shard_of_one_that_was_killed_three_times_at_most(state: StateDatabase, children: Children) -> None:
    with_parts(state, 2)
    writer = writer_of(state)
    writer.step()
    for _ in range(2):
        children.say(Gone())
        assert writer.step()
    assert [child.sent[-1] for child in children] == [WriteShard(0, (part(state, 0), part(state, 1)))] * 3
    assert [child.killed for child in children] == [1, 1, 0]
    children.say(Gone())
    with pytest.raises(BackendError, match="writes shards was ended by the system 3 times in a row"):
        writer.step()


def test_deaths_count_in_a_row_only(state: StateDatabase, children: Children) -> None:
    with_parts(state, 6)
    writer = writer_of(state)
    writer.step()
    for number in range(3):
        children.say(Gone())
        writer.step()
        children.say(Gone())
        writer.step()
        children.say(ShardWritten(number, 90, 6, 0))
        writer.step()
    assert state.shard_count() == 3


def test_what_cannot_be_written_ends_the_run(state: StateDatabase, children: Children) -> None:
    with_parts(state, 2)
    writer = writer_of(state)
    writer.step()
    children.say(StoreError("The disk is full."))
    with pytest.raises(StoreError, match=r"The disk is full\."):
        writer.step()
    writer.close()
    writer.close()
    assert children[0].killed == 1


class ScriptedPipe:
    """Says these messages and then hangs up; keeps what it is told."""

    def __init__(self, *messages: object) -> None:
        self.messages, self.sent = list(messages), list[object]()

    def recv(self) -> object:
        if not self.messages:
            raise EOFError
        return self.messages.pop(0)

    def send(self, message: object) -> None:
        self.sent.append(message)


def test_a_shard_that_cannot_be_written_is_said_and_parts_that_are_not_whole_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn = tmp_path / "torn.part"
    torn.write_bytes(b"half")
    pipe = ScriptedPipe((str(tmp_path), "parquet"), (7, [torn]), (8, []))

    @contextmanager
    def scripted(_: str) -> Iterator[ScriptedPipe]:
        with suppress(EOFError):
            yield pipe

    def fails(*_: object) -> None:
        raise StoreError("The disk is full.")

    monkeypatch.setattr("vip.corpus.workers.shard_writer.child_pipe", scripted)
    monkeypatch.setattr("vip.dataset.shards.write_shard", fails)
    main("0")
    first, second = pipe.sent
    assert first == TornParts(7, ("torn",))
    assert isinstance(second, StoreError)
    assert str(second) == "The disk is full."
