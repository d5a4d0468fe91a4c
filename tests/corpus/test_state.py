"""The state of a batch: every item in one place, in one shard at most, whatever is killed when."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vip.corpus.inputs.rows import BadRow
from vip.corpus.state import NAME, SampledItem, StateDatabase
from vip.dataset.items import ListItem
from vip.dataset.shards import UndescribedKeyframe
from vip.errors import StoreError


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    state = StateDatabase(tmp_path)
    yield state
    state.close()


def item(number: int, host: str = "example.org") -> ListItem:
    return ListItem(f"video{number}", "address", f"http://{host}/{number}.mp4", f"list.txt, line {number + 1}")


def fill(state: StateDatabase, items: Sequence[ListItem]) -> None:
    for _ in state.add(SampledItem(one, -float(number), True) for number, one in enumerate(items)):
        pass
    state.choose(None)


def ready(state: StateDatabase, key: str, size: int = 100) -> None:
    entry = next(entry for host in [*state.hosts()] for entry in state.waiting(host, 0, 1000) if entry.item.key == key)
    state.record_extracted(entry.id, rows=3, size_bytes=size, length_s=10.0, youtube_id=None, ready=True)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_state_behind_a_link_of_its_output_is_not_used(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match=f"{NAME} cannot be used: it is a link, or lies behind one"):
        StateDatabase(tmp_path / "state")
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_what_is_committed_survives_a_power_cut(state: StateDatabase) -> None:
    """No kill of a process shows that: SQLite is asked whether it waits for the disk at every commit."""
    assert state._db.execute("PRAGMA synchronous").fetchone() == (2,)  # full
    assert state._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_the_state_is_read_by_its_user_alone(state: StateDatabase) -> None:
    fill(state, [item(1)])
    state.commit()
    files = list(state.home.glob(f"{NAME}*"))
    assert len(files) == 3, "SQLite has two more beside it"
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


LENGTHS = st.none() | st.floats() | st.sampled_from([2e12, 1e12, -1e300, 12.5])
WORDS = st.text(st.characters(exclude_categories=["Cs"]))


@given(LENGTHS, LENGTHS, st.floats(allow_nan=False), st.lists(WORDS), st.none() | WORDS)
def test_whatever_a_list_and_a_host_state_the_state_can_be_gone_on_with(
    stated_s: float | None, found_s: float | None, draw: float, labels: list[str], topic: str | None
) -> None:
    with TemporaryDirectory() as folder, closing(StateDatabase(Path(folder))) as state:
        one = ListItem(
            "a-0123456789abcdef", "address", "https://h/a.mp4", "list.txt, line 1", tuple(labels), tuple(labels), topic, stated_s
        )
        list(state.add([SampledItem(one, draw, True)]))
        state.check_values()
        state.record_extracted(1, rows=3, size_bytes=5, length_s=found_s, youtube_id=None, ready=True)
        state.adopt_shard(0, [("a-0123456789abcdef", 3, None, found_s)], size_bytes=5, rows=3)
        state.check_values()
        assert state.state_counts() == {5: 1}


def test_an_item_comes_back_as_it_went_in(state: StateDatabase) -> None:
    one = ListItem("a", "youtube8m", "nXSc", "x.tfrecord, record 3", ("Game", "Car"), ("Games",), "a race", 12.5)
    fill(state, [one])
    assert [entry.item for entry in state.waiting("youtube", 0, 10)] == [one]


def test_the_same_item_twice_is_one(state: StateDatabase) -> None:
    fill(state, [item(1), item(2), item(1)])
    fill(state, [item(2), item(3)])
    assert [entry.item.key for entry in state.waiting("example.org", 0, 10)] == ["video1", "video2", "video3"]


def test_bad_rows_are_kept_once_however_often_the_list_is_read(state: StateDatabase) -> None:
    for _ in range(2):
        list(state.add([BadRow("???", "list.txt, line 7", "no video")]))
    assert list(state.each_failure()) == [("???", "bad_row", "no video", 0, "list.txt, line 7", None)]
    assert state.failure_counts() == {"bad_row": 1}


def test_a_sample_takes_the_highest_draws_and_never_those_of_no_weight(state: StateDatabase) -> None:
    list(
        state.add(
            [
                SampledItem(item(1), -3.0, True),
                SampledItem(item(2), -1.0, True),
                SampledItem(item(3), -math.inf, False),
                SampledItem(item(4), -2.0, True),
            ]
        )
    )
    assert state.choose(2) == 2
    assert [entry.item.key for entry in state.waiting("example.org", 0, 10)] == ["video2", "video4"]
    assert state.choose(10) == 3


def test_what_was_not_kept_is_not_chosen_where_no_number_is_asked_for(state: StateDatabase) -> None:
    list(state.add([SampledItem(item(1), -3.0, True), SampledItem(item(2), -1.0, False)]))
    assert state.choose(None) == 1


def test_what_is_not_committed_is_forgotten_and_the_rest_is_not(tmp_path: Path) -> None:
    state = StateDatabase(tmp_path)
    fill(state, [item(1), item(2)])
    ready(state, "video1")
    state.commit()
    ready(state, "video2")
    other = StateDatabase(tmp_path)
    assert other.unsharded() == (1, 100)
    assert [entry.item.key for entry in other.waiting("example.org", 0, 10)] == ["video2"]
    state.close()
    other.close()


def test_hosts_are_those_of_which_something_waits_files_first(state: StateDatabase) -> None:
    fill(state, [item(1, "b.org"), item(2, "a.org"), ListItem("f", "file", "/f.mp4", "here"), item(3, "a.org")])
    assert state.hosts() == ["", "a.org", "b.org"]
    ready(state, "f")
    ready(state, "video1")
    assert state.hosts() == ["a.org"]


def test_what_is_tried_again_is_due_at_its_time(state: StateDatabase) -> None:
    fill(state, [item(1)])
    entry = state.waiting("example.org", 0, 1)[0]
    state.schedule_retry(entry.id, "network", "gone", due=100.0)
    assert state.hosts() == []
    assert state.due(99.0, 10) == []
    assert [(again.item, again.tries) for again in state.due(100.0, 10)] == [(entry.item, 1)]
    assert state.next_due() == 100.0


def test_retry_lets_failures_of_one_type_wait_again_with_all_their_tries(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    one, two = state.waiting("example.org", 0, 2)
    state.record_failure(one.id, "network", "gone")
    state.record_failure(two.id, "deleted", "gone for good")
    assert state.retry_failed("network") == 1
    assert [(entry.item.key, entry.tries) for entry in state.waiting("example.org", 0, 10)] == [("video1", 0)]
    assert state.failure_counts() == {"deleted": 1}


@pytest.mark.slow
@given(sizes=st.lists(st.integers(1, 50), min_size=1, max_size=30), most=st.integers(1, 120))
def test_every_part_is_in_one_shard_and_no_shard_is_larger_than_asked_but_for_a_single_part(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], most: int
) -> None:
    state = StateDatabase(tmp_path_factory.mktemp("state"))
    fill(state, [item(number) for number in range(len(sizes))])
    for number, size in enumerate(sizes):
        ready(state, f"video{number}", size)
    shards = []
    while (number := state.begin_shard(most)) is not None:
        keys = [entry.item.key for entry in state.items_in_shard(number)]
        size = sum(sizes[int(key.removeprefix("video"))] for key in keys)
        assert len(keys) == 1 or size <= most
        shards.append(keys)
        state.record_shard(number, size_bytes=size, rows=1)
    assert sorted(key for keys in shards for key in keys) == sorted(f"video{number}" for number in range(len(sizes)))
    state.close()


def test_a_shard_that_was_begun_is_found_again_with_the_same_items(tmp_path: Path) -> None:
    state = StateDatabase(tmp_path)
    fill(state, [item(1), item(2)])
    ready(state, "video1")
    number = state.begin_shard(1000)
    assert number == 0
    ready(state, "video2")
    state.commit()
    other = StateDatabase(tmp_path)
    assert other.unwritten_shards() == [0]
    assert [entry.item.key for entry in other.items_in_shard(0)] == ["video1"]
    other.close()
    state.close()


def test_a_shard_of_the_output_that_is_not_known_makes_its_items_done(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    state.adopt_shard(4, [("video1", 3, None, 10.0), ("elsewhere", 3, None, 1.0)], size_bytes=5, rows=6)
    assert [entry.item.key for entry in state.waiting("example.org", 0, 10)] == ["video2"]
    ready(state, "video2")
    assert state.begin_shard(100) == 5


def test_a_twin_is_found_whether_it_was_named_by_its_id_or_turned_out_so(state: StateDatabase) -> None:
    ids = ("aaaaaaaaaaa", "bbbbbbbbbbb")
    fill(
        state,
        [ListItem("AAAA", "youtube8m", "AAAA", "1"), ListItem("BBBB", "youtube8m", "BBBB", "2"), ListItem(ids[0], "youtube", ids[0], "3")],
    )
    first, second, third = state.waiting("youtube", 0, 3)
    assert state.duplicate_of(first.id, ids[0]) == ids[0]
    assert state.duplicate_of(first.id, ids[1]) is None
    state.record_extracted(second.id, rows=1, size_bytes=1, length_s=None, youtube_id=ids[1], ready=True)
    assert state.duplicate_of(first.id, ids[1]) == "BBBB"
    state.record_failure(third.id, "deleted", "gone")
    assert state.duplicate_of(first.id, ids[0]) is None


def test_totals_are_of_what_is_done_but_dollars_of_everything(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    one, two = state.waiting("example.org", 0, 2)
    state.record_extracted(one.id, rows=12, size_bytes=1000, length_s=60.0, youtube_id=None, ready=False)
    state.record_described(one.id, size_bytes=1200)
    state.record_undescribed(one.id, [("video1:0003", "refusal", "no")])
    state.record_undescribed(two.id, [("video2:0001", "refusal", "no")])
    state.put("spent", [0.75, 107])
    assert state.totals() == {"keyframes": 12, "bytes": 1200, "usd": 0.75, "tokens": 107, "video_s": 60.0, "undescribed": 1}
    assert list(state.each_undescribed()) == [("video1:0003", "refusal", "no", "list.txt, line 2")]


def test_a_file_that_is_no_state_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"x" * 5000)
    with pytest.raises(StoreError, match=r"state\.sqlite cannot be used \(file is not a database\)"):
        StateDatabase(tmp_path)


def test_a_state_whose_tables_are_damaged_is_one_sentence(tmp_path: Path) -> None:
    StateDatabase(tmp_path).close()
    data = (tmp_path / NAME).read_bytes()
    assert b"TABLE items (" in data
    (tmp_path / NAME).write_bytes(data.replace(b"TABLE items (", b"TABLE items \xe5"))  # SQLite's message quotes it, and it is no UTF-8
    with pytest.raises(StoreError, match=r"state\.sqlite cannot be used"):
        StateDatabase(tmp_path)


def test_a_state_of_a_newer_vip_is_not_touched(tmp_path: Path) -> None:
    import sqlite3

    StateDatabase(tmp_path).close()
    with sqlite3.connect(tmp_path / NAME) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    with pytest.raises(StoreError, match="written by another vip"):
        StateDatabase(tmp_path)


def test_a_row_that_was_mended_is_no_bad_row_any_more_and_those_of_other_lists_stay(state: StateDatabase) -> None:
    others = ["more.txt, line 7", "list.txt.gz, line 7", "list.txt 2, line 7", "list, line 7"]
    list(state.add([BadRow("???", where, "no video") for where in ("list.txt, line 7", *others)]))
    list(state.add([BadRow("!!!", "list.txt, line 8", "no video"), SampledItem(item(6), 0.0, True)]))
    assert [row[4] for row in state.each_failure()] == [*others, "list.txt, line 8"]


def begin_and_interrupt(state: StateDatabase) -> None:
    with state._transaction():
        state._write("INSERT INTO shards (number) VALUES (0)")
        raise KeyboardInterrupt


def test_what_is_interrupted_halfway_through_a_shard_is_not_written_down_halfway(tmp_path: Path) -> None:
    state = StateDatabase(tmp_path)
    fill(state, [item(1)])
    ready(state, "video1")
    with pytest.raises(KeyboardInterrupt):
        begin_and_interrupt(state)
    state.close()
    state = StateDatabase(tmp_path)
    assert state.unwritten_shards() == []
    assert state.unsharded() == (1, 100)
    state.close()


def test_what_is_taken_over_has_its_size(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    state.adopt_shard(0, [("video1", 3, None, 10.0), ("video2", 3, None, 10.0)], size_bytes=500, rows=6)
    assert state.totals()["bytes"] == 500


def test_what_failed_counts_as_ended_but_not_as_done(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    one, _ = state.waiting("example.org", 0, 2)
    state.record_failure(one.id, "deleted", "gone")
    ready(state, "video2")
    assert state.finished_since(0.0) == (1, 2)


def test_a_new_generation_is_wanted_of_shards_with_keyframes_without_descriptions(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(4)])
    for number in (0, 1):
        ready(state, f"video{number}")
        shard = state.begin_shard(100)
        assert shard == number
        state.record_shard(number, size_bytes=100, rows=3, undescribed=number)
    (one,) = state.items_in_shard(1)
    state.record_undescribed(one.id, [("video1:0002", "refusal", "no")])
    ready(state, "video2")  # in no shard yet
    two = next(id_ for (id_,) in state._fetch_all("SELECT id FROM items WHERE key = 'video2'"))
    state.record_undescribed(two, [("video2:0001", "refusal", "no"), ("video2:0002", "refusal", "no")])
    assert state.request_descriptions() == 3
    assert state.shards_to_revise() == [(1, 1)]
    assert [entry.item.key for entry, _ in state.parts_to_describe()] == ["video2"]
    assert state.request_descriptions() == 1, "what is wanted already"
    state.record_revision(1, generation=1, size_bytes=90, rows=3, undescribed=())
    assert (state.shards_to_revise(), state.request_descriptions()) == ([], 0)
    assert list(state.each_undescribed()) == []


def test_a_shard_that_was_begun_is_described_again_once_it_is_written(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(2)])
    for number in (0, 1):
        ready(state, f"video{number}")
        assert state.begin_shard(100) == number
    (one,) = state.items_in_shard(1)
    state.record_undescribed(one.id, [("video1:0002", "refusal", "no")])
    state.request_descriptions()
    assert state.shards_to_revise() == []
    for number in (0, 1):
        state.record_shard(number, size_bytes=100, rows=3, undescribed=number)
    assert (state.shards_to_revise(), state.keyframes_to_describe()) == ([(1, 1)], 1)


def test_keyframes_that_are_described_now_are_no_failures_any_more(state: StateDatabase) -> None:
    fill(state, [item(1)])
    ready(state, "video1")
    (one,) = (id_ for (id_,) in state._fetch_all("SELECT id FROM items"))
    state.record_undescribed(one, [("video1:0001", "refusal", "no"), ("video1:0002", "refusal", "no")])
    state.record_undescribed(one, [("video1:0002", "network", "gone")])
    assert [row[:3] for row in state.each_undescribed()] == [("video1:0002", "network", "gone")]
    state.record_undescribed(one, [])
    assert (list(state.each_undescribed()), state.has_undescribed()) == ([], False)


def test_what_a_sidecar_says_is_not_described_is_known_to_a_state_that_was_lost(state: StateDatabase) -> None:
    fill(state, [item(1)])
    left = (
        UndescribedKeyframe("video1", "video1:0002", "refusal", "no"),
        UndescribedKeyframe("elsewhere", "elsewhere:0001", "refusal", "no"),
    )
    state.adopt_shard(0, [("video1", 3, None, 10.0)], size_bytes=500, rows=6, undescribed=left, generation=4)
    assert state.totals()["undescribed"] == 1
    assert state.request_descriptions() == 2
    assert state.shards_to_revise() == [(0, 5)]


@pytest.mark.slow
def test_two_processes_may_make_the_state_at_the_same_moment(tmp_path: Path) -> None:
    command = "import sys; from pathlib import Path; from vip.corpus.state import StateDatabase; StateDatabase(Path(sys.argv[1])).close()"
    for number in range(3):
        folder = tmp_path / str(number)
        folder.mkdir()
        processes = [subprocess.Popen([sys.executable, "-c", command, str(folder)]) for _ in range(3)]
        assert [process.wait() for process in processes] == [0, 0, 0]


def test_what_was_put_is_there_after_the_end(tmp_path: Path) -> None:
    state = StateDatabase(tmp_path)
    state.put("spent", [1.5, 2])
    state.close()
    state = StateDatabase(tmp_path)
    assert (state.get("spent"), state.get("other")) == ([1.5, 2], None)
    state.close()


def test_a_long_list_goes_in_piece_by_piece_and_says_how_far_it_is(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.corpus.state.ROWS_AT_ONCE", 2)
    rows: list[SampledItem | BadRow] = [SampledItem(item(number), 0.0, True) for number in range(5)]
    assert list(state.add([BadRow("???", "list.txt, line 1", "no video"), *rows])) == [3, 5, 6]
    assert state.choose(None) == 5


def test_a_smaller_sample_takes_no_more_and_gives_nothing_back(state: StateDatabase) -> None:
    list(state.add(SampledItem(item(number), -float(number), True) for number in range(5)))
    assert [state.choose(3), state.choose(1), state.choose(4)] == [3, 3, 4]


def test_long_videos_of_one_length_come_page_by_page_each_once(state: StateDatabase) -> None:
    lengths_s = (1800.0, 3600.0, 1800.0, 1200.0, 1800.0, 1199.0)
    fill(state, [ListItem(str(number), "file", f"/{number}", "here", duration_s=length_s) for number, length_s in enumerate(lengths_s)])
    pages, last = list[str](), None
    while page := state.waiting_long("", last, 2):
        pages.append(" ".join(entry.item.key for entry in page))
        last = page[-1]
    assert pages == ["1 0", "2 4", "3"]
    assert [entry.item.key for entry in state.waiting("", 0, 10)] == ["5"]


def test_a_part_is_wanted_until_its_shard_is_in_place(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(4)])
    state.record_extracted(1, rows=3, size_bytes=9, length_s=1.0, youtube_id=None, ready=False)
    ready(state, "video1")
    state.begin_shard(1000)
    ready(state, "video2")
    state.record_failure(4, "missing", "gone")
    assert sorted(state.keys_with_parts()) == ["video0", "video1", "video2"]
    state.record_shard(0, size_bytes=9, rows=3)
    assert sorted(state.keys_with_parts()) == ["video0", "video2"]


def test_parts_that_fill_a_shard_to_the_byte_are_in_it_together(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(3)])
    for number in range(3):
        ready(state, f"video{number}", 50)
    assert state.begin_shard(100) == 0
    assert [entry.item.key for entry in state.items_in_shard(0)] == ["video0", "video1"]
    assert state.unsharded() == (1, 50)
    assert (state.shard_count(), state.unwritten_shards()) == (0, [0])
    state.record_shard(0, size_bytes=90, rows=6)
    assert (state.shard_count(), state.unwritten_shards()) == (1, [])


def test_a_retry_gives_back_the_losses_too_and_is_no_end(state: StateDatabase) -> None:
    fill(state, [item(1)])
    assert [state.record_loss(1), state.record_loss(1)] == [1, 2]
    state.record_failure(1, "crash", "gone")
    assert state.retry_failed(None) == 1
    assert state.finished_since(0.0) == (0, 0)
    assert state.record_loss(1) == 1


def test_what_is_undone_waits_again_and_counts_as_no_end(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    ready(state, "video1")
    ready(state, "video2")
    assert state.begin_shard(1000) == 0
    state.requeue(1)
    assert [entry.item.key for entry in state.waiting("example.org", 0, 10)] == ["video1"]
    assert [entry.item.key for entry in state.items_in_shard(0)] == ["video2"]
    assert state.finished_since(0.0) == (1, 1)
    ready(state, "video1")
    assert state.unsharded() == (1, 100), "it goes into another shard"


def test_a_video_has_ended_when_it_is_described_and_not_before(state: StateDatabase) -> None:
    fill(state, [item(1)])
    state.record_extracted(1, rows=3, size_bytes=9, length_s=1.0, youtube_id=None, ready=False)
    assert state.finished_since(0.0) == (0, 0)
    state.record_described(1, size_bytes=10)
    assert state.finished_since(0.0) == (1, 1)


def test_a_shard_that_is_in_place_is_not_dropped(state: StateDatabase) -> None:
    fill(state, [item(1), item(2)])
    ready(state, "video1")
    assert state.begin_shard(1000) == 0
    state.record_shard(0, size_bytes=1, rows=1)
    ready(state, "video2")
    assert state.begin_shard(1000) == 1
    for number in (0, 1):
        state.drop_shard(number)
    assert state.shard_numbers() == {0}


def test_what_is_tried_again_later_has_to_be_fetched_still(state: StateDatabase) -> None:
    fill(state, [item(1), ListItem("f", "file", "/f.mp4", "here")])
    assert state.has_downloads()
    state.schedule_retry(1, "network", "gone", due=100.0)
    assert state.has_downloads()
    state.record_failure(1, "network", "gone")
    assert not state.has_downloads()


def test_what_fails_most_often_is_told_first(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(6)])
    for id_, kind in ((1, "age"), (2, "network"), (3, "network")):
        state.schedule_retry(id_, kind, "gone", due=100.0)  # type: ignore[arg-type]
    assert list(state.retry_counts().items()) == [("network", 2), ("age", 1)]
    for id_, kind in ((1, "age"), (2, "geo"), (3, "geo"), (4, "geo")):
        state.record_failure(id_, kind, "gone")  # type: ignore[arg-type]
    list(state.add([BadRow(f"???{number}", "list.txt, line 7", "no video") for number in range(2)]))
    assert list(state.failure_counts().items()) == [("geo", 3), ("bad_row", 2), ("age", 1)]


def test_what_is_due_comes_in_the_order_of_its_times(state: StateDatabase) -> None:
    fill(state, [item(number) for number in range(3)])
    for id_, due in ((1, 30.0), (2, 10.0), (3, 20.0)):
        state.schedule_retry(id_, "network", "gone", due=due)
    assert [entry.id for entry in state.due(25.0, 10)] == [2, 3]
    assert [entry.id for entry in state.due(40.0, 1)] == [2]
    assert state.next_due() == 10.0


def test_a_shard_that_stays_as_it_is_is_wanted_no_more(state: StateDatabase) -> None:
    fill(state, [item(1)])
    left = (UndescribedKeyframe("video1", "video1:0002", "refusal", "no"),)
    state.adopt_shard(0, [("video1", 3, None, 10.0)], size_bytes=500, rows=6, undescribed=left)
    assert state.request_descriptions() == 1
    state.cancel_revision(0)
    assert (state.shards_to_revise(), state.keyframes_to_describe(), state.totals()["undescribed"]) == ([], 0, 1)


def test_a_new_generation_has_its_own_size_and_keyframes_that_are_left(state: StateDatabase) -> None:
    fill(state, [item(1)])
    left = [UndescribedKeyframe("video1", f"video1:000{number}", "refusal", "no") for number in (2, 3)]
    state.adopt_shard(0, [("video1", 3, None, 10.0)], size_bytes=500, rows=6, undescribed=left)
    state.request_descriptions()
    state.record_revision(0, generation=1, size_bytes=480, rows=5, undescribed=left[1:])
    assert [row[0] for row in state.each_undescribed()] == ["video1:0003"]
    assert state._fetch_all("SELECT bytes, rows, undescribed, generation, wanted FROM shards") == [(480, 5, 1, 1, None)]


def test_an_item_is_no_twin_of_its_own(state: StateDatabase) -> None:
    fill(state, [ListItem("aaaaaaaaaaa", "youtube", "aaaaaaaaaaa", "1")])
    assert state.duplicate_of(1, "aaaaaaaaaaa") is None


def test_rates_count_what_ended_since_then(state: StateDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(state, [item(number) for number in range(3)])
    for number in range(3):
        monkeypatch.setattr("vip.corpus.state.time", SimpleNamespace(time=lambda now=100.0 + number: now))
        ready(state, f"video{number}")
    assert state.finished_since(101.0) == (2, 2)
