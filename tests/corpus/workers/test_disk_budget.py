"""One budget for all downloads of a machine: never more, nobody for ever, and what was killed is free."""

from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Event, Thread

import pytest

from vip.corpus.workers.disk_budget import LEDGER, DiskAllowance, DiskBudget, DiskHolder, _locked_ledger, shared_folder
from vip.errors import StoreError

BUDGET = 1000


def budget(folder: Path, holder: str = "pool") -> DiskBudget:
    return DiskBudget(folder, holder, BUDGET)


def held(folder: Path) -> int:
    with _locked_ledger(folder) as ledger:
        return int(ledger.execute("SELECT total(bytes) FROM held").fetchone()[0])


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.corpus.workers.disk_budget.POLL_S", 0.01)


def test_many_downloads_of_several_pools_never_have_more_than_the_budget_and_all_get_through(tmp_path: Path) -> None:
    pools = [DiskHolder(budget(tmp_path, f"pool{number}"), tmp_path / f"videos{number}") for number in range(3)]
    most, over = list[int](), Event()

    def download(number: int) -> None:
        chance = random.Random(number)
        pool = pools[number % 3]
        one = DiskAllowance(pool.budget, f"video{number}")
        one.wait_for(chance.randrange(1, 400))
        while not one.take(size := min(BUDGET, one.held_bytes + chance.randrange(1, 600))):  # it is larger than it was said to be
            one.wait_for(size)
        time.sleep(0.01)
        one.settle(one.held_bytes // 2)
        time.sleep(0.01)
        pool.free(one.key)

    def look() -> None:
        while not over.is_set():
            most.append(held(tmp_path))

    watcher = Thread(target=look)
    watcher.start()
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(download, range(60)))
    over.set()
    watcher.join()
    assert 600 < max(most) <= BUDGET
    assert held(tmp_path) == 0
    for pool in pools:
        pool.close()


def test_a_large_one_is_not_passed_over_by_small_ones_for_ever(tmp_path: Path) -> None:
    pool = DiskHolder(budget(tmp_path), tmp_path / "videos")
    small = [DiskAllowance(pool.budget, f"small{number}") for number in range(8)]
    for one in small[:4]:
        one.wait_for(200)
    order: list[str] = []

    def wait(one: DiskAllowance, size: int) -> None:
        one.wait_for(size)
        order.append(one.key)

    threads = [Thread(target=wait, args=(DiskAllowance(pool.budget, "large"), 900))]
    threads += [Thread(target=wait, args=(one, 200)) for one in small[4:]]
    for thread in threads:
        thread.start()
        time.sleep(0.1)
    assert order == [], "there is room for another small one, but the large one came first"
    for one in small[:4]:
        pool.free(one.key)
    threads[0].join(10)
    assert order == ["large"]
    pool.free("large")
    for thread in threads:
        thread.join(10)
    assert len(order) == 5
    pool.close()


def test_one_that_goes_on_comes_before_those_that_wait(tmp_path: Path) -> None:
    pool = DiskHolder(budget(tmp_path), tmp_path / "videos")
    one = DiskAllowance(pool.budget, "one")
    one.wait_for(500)
    waiter = Thread(target=DiskAllowance(pool.budget, "other").wait_for, args=(800,))
    waiter.start()
    time.sleep(0.1)
    assert one.take(900)
    assert one.take(1001)
    assert one.held_bytes == 1000, "all there is"
    pool.free("one")
    waiter.join(10)
    assert not waiter.is_alive()
    pool.close()


def test_who_waits_holds_nothing_and_tells_so(tmp_path: Path) -> None:
    pool, told = DiskHolder(budget(tmp_path), tmp_path / "videos"), list[bool]()
    DiskAllowance(pool.budget, "first").wait_for(700)
    second = DiskAllowance(pool.budget, "second", told.append)
    second.wait_for(200)
    assert told == []
    waiter = Thread(target=second.wait_for, args=(500,))
    waiter.start()
    while not told:
        time.sleep(0.01)
    assert held(tmp_path) == 700
    pool.free("first")
    waiter.join(10)
    assert (told, second.held_bytes) == ([True, False], 500)
    pool.close()


HOLDING = """
import sys, time
from pathlib import Path
from vip.corpus.workers.disk_budget import LEDGER, DiskAllowance, DiskBudget, DiskHolder
folder = Path(sys.argv[1])
pool = DiskHolder(DiskBudget(folder, "killed", 1000), folder / "videos")
DiskAllowance(pool.budget, "video").wait_for(900)
(folder / "videos").mkdir()
(folder / "videos" / "video.mp4").write_bytes(b"x" * 900)
print("here", flush=True)
time.sleep(60)
"""


def test_what_a_killed_pool_held_is_deleted_and_free(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", HOLDING, str(tmp_path)], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"here\n"
    pool = DiskHolder(budget(tmp_path), tmp_path / "mine")
    one = DiskAllowance(pool.budget, "mine")
    assert not one.take(200), "it is alive, and holds it"
    assert (tmp_path / "videos" / "video.mp4").exists()
    process.kill()
    process.wait()
    process.stdout.close()
    one.wait_for(200)
    assert held(tmp_path) == 200
    assert not (tmp_path / "videos").exists()
    pool.close()
    assert [path.name for path in tmp_path.iterdir()] == [LEDGER]


@pytest.mark.parametrize(("holder", "downloads"), [("dead", "documents"), ("../documents/dead", "ledger/videos")])
def test_a_ledger_that_came_with_a_data_set_deletes_nothing_elsewhere(tmp_path: Path, holder: str, downloads: str) -> None:
    ledger, documents = tmp_path / "ledger", tmp_path / "documents"
    for folder in (ledger, documents):
        folder.mkdir()
    (documents / "dead.lock").touch()
    with _locked_ledger(ledger) as strange:
        strange.execute("INSERT INTO holders VALUES (?, ?)", (holder, str(tmp_path / downloads)))
        strange.execute("INSERT INTO held VALUES (?, 'video', 900)", (holder,))
    pool = DiskHolder(budget(ledger), ledger / "mine")
    assert held(ledger) == 0
    assert (documents / "dead.lock").exists()
    pool.close()


def test_the_ledger_of_a_machine_deletes_the_downloads_of_dead_pools_wherever_they_lie(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = shared_folder("/data/corpus/state")
    (tmp_path / "pool" / "videos").mkdir(parents=True)
    DiskHolder(budget(folder, "killed"), tmp_path / "pool" / "videos")._lock.close()
    pool = DiskHolder(budget(folder), tmp_path / "mine")
    assert not (tmp_path / "pool" / "videos").exists()
    pool.close()


@pytest.mark.parametrize("kind", ["view", "link"])
def test_a_ledger_that_vip_did_not_make_is_not_used(tmp_path: Path, kind: str) -> None:
    if kind == "link":
        (tmp_path / "elsewhere").touch()
        (tmp_path / LEDGER).symlink_to(tmp_path / "elsewhere")
    else:
        with closing(sqlite3.connect(tmp_path / LEDGER)) as made:
            made.execute("CREATE VIEW holders AS SELECT 'a' AS name, 'b' AS downloads")
    with pytest.raises(StoreError, match=r"disk\.sqlite cannot be used"):
        DiskHolder(budget(tmp_path), tmp_path / "mine")


def test_a_pool_begins_with_nothing_of_a_killed_one_of_its_name(tmp_path: Path) -> None:
    killed = DiskHolder(budget(tmp_path), tmp_path / "videos")
    assert DiskAllowance(killed.budget, "one")._try_to_hold(900, 1)
    assert not DiskAllowance(killed.budget, "two")._try_to_hold(900, 2)
    killed._lock.close()
    pool = DiskHolder(budget(tmp_path), tmp_path / "videos")
    assert held(tmp_path) == 0
    assert DiskAllowance(pool.budget, "three")._try_to_hold(BUDGET, 3), "nobody waits before it"
    pool.close()


def test_a_folder_of_the_machine_is_one_for_all_pools_of_a_batch_and_for_this_user_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = shared_folder("/data/corpus/state")
    assert shared_folder("/data/corpus/state") == folder != shared_folder("/data/other/state")
    assert folder.stat().st_mode & 0o077 == 0
    folder.rmdir()
    folder.symlink_to(tmp_path)
    with pytest.raises(StoreError, match="belongs to somebody else"):
        shared_folder("/data/corpus/state")


def test_pools_that_start_while_others_close_share_the_budget_still(tmp_path: Path) -> None:
    most = list[int]()

    def come_and_go(number: int) -> None:
        for turn in range(15):
            pool = DiskHolder(budget(tmp_path / "ledger", f"pool{number}-{turn}"), tmp_path / f"videos{number}-{turn}")
            one = DiskAllowance(pool.budget, "video")
            one.wait_for(600)
            most.append(held(tmp_path / "ledger"))
            pool.close()

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, range(4)))
    assert set(most) == {600}


def test_a_download_holds_nothing_before_it_asks_and_what_it_holds_it_has(tmp_path: Path) -> None:
    one = DiskAllowance(budget(tmp_path), "video")
    assert one.held_bytes == 0
    one.wait_for(500)
    one.wait_for(300)
    assert held(tmp_path) == 500, "nothing is given away"
    assert one.take(500)
    assert (one.held_bytes, held(tmp_path)) == (500, 500)
    one.settle(20)
    assert (one.held_bytes, held(tmp_path)) == (20, 20)


def test_who_asks_for_what_it_has_waits_for_nobody(tmp_path: Path) -> None:
    def fail(waits: bool) -> None:
        raise AssertionError("it waits")

    pool = DiskHolder(budget(tmp_path), tmp_path / "videos")
    one = DiskAllowance(pool.budget, "one", on_wait=fail)
    one.wait_for(500)
    assert not DiskAllowance(pool.budget, "other")._try_to_hold(900, 1)
    one.wait_for(500)
    assert (one.held_bytes, held(tmp_path)) == (500, 500)
    with pytest.raises(AssertionError, match="it waits"):
        one.wait_for(501)
    assert held(tmp_path) == 0, "who waits holds nothing"
    pool.close()


def test_one_that_is_larger_than_all_there_is_has_all_there_is(tmp_path: Path) -> None:
    one = DiskAllowance(budget(tmp_path), "video")
    assert one.take(5000)
    assert (one.held_bytes, held(tmp_path)) == (1000, 1000)
    assert not DiskAllowance(budget(tmp_path), "other").take(1)


def test_the_budget_may_be_used_to_the_byte(tmp_path: Path) -> None:
    assert DiskAllowance(budget(tmp_path), "one").take(400)
    assert not DiskAllowance(budget(tmp_path), "two").take(601)
    assert DiskAllowance(budget(tmp_path), "two").take(600)


def test_a_download_that_is_given_up_while_it_waits_holds_up_nobody(tmp_path: Path) -> None:
    pool = DiskHolder(budget(tmp_path), tmp_path / "videos")
    assert DiskAllowance(pool.budget, "one")._try_to_hold(900, 1)
    assert not DiskAllowance(pool.budget, "two")._try_to_hold(900, 2)
    assert not DiskAllowance(pool.budget, "three")._try_to_hold(100, 3), "two came first"
    pool.free("two")
    assert DiskAllowance(pool.budget, "three")._try_to_hold(100, 3)
    pool.close()


def test_a_download_that_goes_on_stands_in_the_line_no_more(tmp_path: Path) -> None:
    pool = DiskHolder(budget(tmp_path), tmp_path / "videos")
    assert DiskAllowance(pool.budget, "one")._try_to_hold(900, 1)
    assert not DiskAllowance(pool.budget, "two")._try_to_hold(900, 2)
    pool.free("one")
    assert DiskAllowance(pool.budget, "two")._try_to_hold(900, 2)
    assert DiskAllowance(pool.budget, "three")._try_to_hold(100, 3)
    pool.close()


def test_a_pool_that_is_closed_leaves_the_queue_for_room(tmp_path: Path) -> None:
    one, other = (DiskHolder(budget(tmp_path, name), tmp_path / name) for name in ("one", "other"))
    assert DiskAllowance(one.budget, "a")._try_to_hold(600, 1)
    assert not DiskAllowance(one.budget, "b")._try_to_hold(900, 2)
    one.close()
    assert DiskAllowance(other.budget, "c")._try_to_hold(BUDGET, 3)
    other.close()


def test_a_ledger_whose_tables_are_damaged_is_one_sentence(tmp_path: Path) -> None:
    DiskHolder(budget(tmp_path), tmp_path / "videos").close()
    data = (tmp_path / LEDGER).read_bytes()
    assert b"TABLE held (" in data
    (tmp_path / LEDGER).write_bytes(data.replace(b"TABLE held (", b"TABLE held \xe5"))  # SQLite's message quotes it, and it is no UTF-8
    with pytest.raises(StoreError, match=r"disk\.sqlite cannot be used .*delete it while no batch runs"):
        DiskHolder(budget(tmp_path), tmp_path / "videos")


def test_a_ledger_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_bytes(b"x" * 5000)
    with pytest.raises(StoreError, match=r"disk\.sqlite cannot be used .*delete it while no batch runs"):
        DiskHolder(budget(tmp_path), tmp_path / "videos")
