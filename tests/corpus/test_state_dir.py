"""The folder of a batch's state: one process at a time, none left behind where nothing was begun, and whose it is."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from vip import user_state
from vip.corpus import status
from vip.corpus.inputs.rows import items_of
from vip.corpus.state import NAME, SampledItem, StateDatabase
from vip.corpus.state_dir import LOCK, PARTS, USED, allow, claim, disallow, hold_lock, home_of, is_own, removed_on_failure, running_pid
from vip.corpus.workers import caption_server, disk_budget, shard_revisions, worker
from vip.dataset.items import ListItem
from vip.errors import StoreError, UsageError


def test_who_works_on_it_is_known_while_it_does(tmp_path: Path) -> None:
    home = tmp_path / "state"
    home.mkdir()
    (home / LOCK).write_text("9" * 30)  # of one that was killed
    assert running_pid(home) is None
    with hold_lock(home, "corpus"):
        assert running_pid(home) == os.getpid()
        assert (home / LOCK).read_text() == f" {os.getpid()}"
    assert running_pid(home) is None


def test_a_full_disk_names_no_process_and_the_lock_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(number: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("vip.corpus.state_dir.LOCK_WAITS_S", ())
    with monkeypatch.context() as full:
        full.setattr(os, "write", refuse)
        with hold_lock(tmp_path, "corpus"), pytest.raises(UsageError, match=r"process unknown\) works"), hold_lock(tmp_path, "corpus"):
            pass


def test_another_is_refused_and_told_who_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.corpus.state_dir.LOCK_WAITS_S", (0.01, 0.02))
    waits: list[float] = []
    monkeypatch.setattr("vip.corpus.state_dir.time.sleep", waits.append)
    told = rf"process {os.getpid()}\) works on corpus"
    with hold_lock(tmp_path, "corpus"), pytest.raises(UsageError, match=told), hold_lock(tmp_path, "corpus"):
        pass
    assert waits == [0.01, 0.02], "a process that only reads the status is soon gone"


def fails(home: Path, *folders: str) -> None:
    """A batch that makes its state, and these folders in it, and then fails."""
    with removed_on_failure(home):
        home.mkdir(parents=True, exist_ok=True)
        for name in (LOCK, NAME, f"{NAME}-wal"):
            (home / name).touch()
        for name in folders:
            (home / name).mkdir()
        raise KeyError


def test_a_state_that_was_made_in_vain_goes_again_with_the_output(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fails(tmp_path / "corpus" / "state")
    assert list(tmp_path.iterdir()) == []


def test_what_is_not_ours_stays(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fails(tmp_path, "notes")
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]


def test_a_state_with_parts_and_one_that_was_there_before_stay(tmp_path: Path) -> None:
    with pytest.raises(KeyError):
        fails(tmp_path, PARTS)
    (tmp_path / PARTS).rmdir()
    with pytest.raises(KeyError):
        fails(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {LOCK, NAME, f"{NAME}-wal"}


# ---------------------------------------------------------------- whose it is


def begun(out: Path) -> Path:
    with hold_lock(home_of(str(out)), str(out)), closing(StateDatabase(home_of(str(out)))) as state:
        claim(state, str(out))
        state.put("spent", [1.0, 2])
    return out


def goes_on(out: Path) -> bool:
    with closing(StateDatabase(home_of(str(out)))) as state:
        try:
            claim(state, str(out))
        except UsageError:
            return False
        return True


def test_a_batch_that_was_begun_here_goes_on_and_a_copy_of_it_does_not(tmp_path: Path) -> None:
    out = begun(tmp_path / "corpus")
    assert goes_on(out)
    shutil.copytree(out, tmp_path / "copy")
    with closing(StateDatabase(home_of(str(tmp_path / "copy")))) as state:
        with pytest.raises(UsageError, match=r"was begun on another machine, or lay elsewhere.*run `vip trust .*copy`"):
            claim(state, str(tmp_path / "copy"))
        allow(state)
        assert is_own(state)
        disallow(state)
        assert not is_own(state)
    assert goes_on(out)


def test_on_another_machine_the_same_folder_is_a_stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = begun(tmp_path / "corpus")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "elsewhere"))
    assert not goes_on(out)


def test_every_name_in_the_state_is_known() -> None:
    names = {status.BATCHES, shard_revisions.UNPACKED, caption_server.DESCRIBING, disk_budget.LEDGER, worker.VIDEOS, worker.WORK, PARTS}
    assert names == USED


def test_a_mark_cannot_be_guessed(tmp_path: Path) -> None:
    out = begun(tmp_path / "corpus")
    with closing(StateDatabase(home_of(str(out)))) as state:
        state.put("mark", None)
        assert not is_own(state)
        state.put("mark", "0" * 32)
        assert not is_own(state)


def test_a_folder_with_somebodys_leftovers_is_not_taken_for_a_new_batch(tmp_path: Path) -> None:
    home = home_of(str(tmp_path))
    home.mkdir()
    (home / "disk.sqlite").write_bytes(b"")
    with closing(StateDatabase(home)) as state, pytest.raises(StoreError, match=r"holds disk\.sqlite, but no batch"):
        claim(state, str(tmp_path))


@pytest.mark.parametrize("name", [NAME, f"{NAME}-wal", f"{NAME}-shm", f"{NAME}-journal"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_state_that_leads_elsewhere_is_refused(name: str, link: object, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    home = home_of(str(tmp_path / "corpus"))
    home.mkdir(parents=True)
    assert callable(link)
    link(mine, home / name)
    with pytest.raises(StoreError, match=r"state\.sqlite cannot be used: it (is a link|has a second name)"):
        StateDatabase(home)
    assert mine.read_bytes() == b"mine"


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_a_lock_that_leads_elsewhere_is_refused(link: object, tmp_path: Path) -> None:
    mine, home = tmp_path / "mine", home_of(str(tmp_path / "corpus"))
    mine.write_bytes(b"mine")
    home.mkdir(parents=True)
    assert callable(link)
    link(mine, home / LOCK)
    with pytest.raises(StoreError, match="lock cannot be used"), hold_lock(home, "corpus"):
        raise AssertionError
    assert mine.read_bytes() == b"mine"
    assert running_pid(home) is None


def test_a_state_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "corpus").mkdir()
    home_of(str(tmp_path / "corpus")).symlink_to(tmp_path / "mine")
    with pytest.raises(StoreError, match="it is a link"), hold_lock(home_of(str(tmp_path / "corpus")), "corpus"):
        raise AssertionError
    assert list((tmp_path / "mine").iterdir()) == []


def test_the_command_refuses_it_and_trust_says_what_is_allowed(tmp_path: Path) -> None:
    (tmp_path / "ids.txt").write_text("nothing.mp4\n")
    first = vip(tmp_path, "batch", "ids.txt", "-o", "corpus", "--retry-wait", "0.01", "--min-length", "5")
    assert first.code == 8, first.err
    shutil.rmtree(user_state.folder() / "batches")
    refused = vip(tmp_path, "batch", "-o", "corpus")
    assert refused.code == 2
    assert "run `vip trust corpus`, and then this again" in refused.sentence
    assert vip(tmp_path, "batch", "ids.txt", "-o", "corpus").code == 2
    assert vip(tmp_path, "batch", "--status", "corpus").code == 0
    trusted = vip(tmp_path, "trust", "corpus")
    assert (trusted.code, trusted.out) == (0, "  0 videos of its list\ncorpus is trusted as it is now.\n")
    assert vip(tmp_path, "batch", "-o", "corpus").code == 8
    assert vip(tmp_path, "trust", "corpus", "--revoke").code == 0
    assert vip(tmp_path, "batch", "-o", "corpus").code == 2


def with_item(state: StateDatabase) -> None:
    """Add an item of every column to a state."""
    item = ListItem("a-0123456789", "address", "https://h/a.mp4", "list.txt, line 1", ("Pet", "Dog"), ("Animals",), "dogs", 12.5)
    list(state.add([SampledItem(item, 0.5, True)]))
    state._write("UPDATE items SET state = 4, rows = 3, bytes = 700, length_s = 12, ended = 1, youtube_id = 'x', shard = 0, tries = 1")
    state._write("INSERT INTO keyframes VALUES (1, 'a-0123456789:0001', 'engine', 'no answer')")
    state._write("INSERT INTO bad_rows VALUES ('list.txt, line 2', 'x', 'bad_row', 'no id')")
    state._write("INSERT INTO shards VALUES (0, 1.5, 700, 3, 0, 0, NULL)")
    state.commit()


def test_what_vip_writes_is_what_it_reads(tmp_path: Path) -> None:
    with closing(StateDatabase(home_of(str(begun(tmp_path))))) as state:
        with_item(state)
        claim(state, str(tmp_path))
        assert state.state_counts() == {4: 1}


@pytest.mark.parametrize(
    "change",
    [
        "items SET key = '../../../victim'",
        "items SET key = '..'",
        "items SET key = ''",
        "items SET key = 'a/b'",
        "items SET key = 'a' || char(0) || '/../b'",
        f"items SET key = '{'a' * 101}'",
        "items SET key = x'ff'",
        "items SET kind = 'folder'",
        "items SET source = x'00ff'",
        "items SET source = 'a' || char(0)",
        "items SET labels = '5'",
        "items SET labels = '[5]'",
        "items SET verticals = '[[]]'",
        "items SET bytes = 'x'",
        "items SET bytes = NULL",
        "items SET rows = NULL",
        "items SET id = 0",
        "items SET kind = 'youtube'",
        "items SET kind = 'youtube8m', key = 'abcd', host = 'youtube', source = '../../etc'",
        "items SET kind = 'address', host = 'h', source = 'file://h/v.mp4'",
        "items SET kind = 'address', host = 'h', source = 'https://other.example/v.mp4'",
        "items SET kind = 'address', host = '', source = 'https:///v.mp4'",
        "items SET host = 'youtube'",
        "items SET failure = 'unknown'",
        "items SET state = 2, failure = 'network', due = NULL",
        "items SET state = 6, failure = NULL, message = 'm'",
        "items SET state = 6, failure = 'other', message = NULL",
        "items SET tries = 100000",
        "items SET tries = -5000",
        "items SET lost = -1",
        "items SET rows = -1",
        "items SET shard = 7",
        "items SET state = 7",
        "items SET state = -1",
        "items SET tries = 'x'",
        "items SET due = 1e999",
        "items SET duration_s = 'long'",
        "items SET topic = x'00'",
        "keyframes SET message = x'00'",
        "bad_rows SET kind = x'00'",
        "bad_rows SET kind = 'unknown'",
        "shards SET undescribed = -1",
        "shards SET generation = -1",
        "shards SET wanted = 9223372036854775807",
        "shards SET written = 'x'",
        "meta SET value = x'00'",
    ],
)
def test_a_state_with_values_that_vip_does_not_write_is_refused_whoever_is_trusted(tmp_path: Path, change: str) -> None:
    with closing(StateDatabase(home_of(str(begun(tmp_path))))) as state:
        with_item(state)
        table = change.partition(" ")[0]
        state._write(f"UPDATE {change}" + (" WHERE name = 'spent'" if table == "meta" else ""))
        with pytest.raises(StoreError, match=rf"state\.sqlite is damaged: the table {table} holds what vip does not write"):
            claim(state, str(tmp_path))


@pytest.mark.parametrize("number", [-5, 2**63 - 1])
def test_a_shard_of_a_number_that_no_name_has_is_refused(tmp_path: Path, number: int) -> None:
    with closing(StateDatabase(home_of(str(begun(tmp_path))))) as state:
        with_item(state)
        state._write("UPDATE shards SET number = ?", (number,))
        state._write("UPDATE items SET shard = ?", (number,))
        with pytest.raises(StoreError, match="the table shards holds what vip does not write"):
            claim(state, str(tmp_path))


def test_an_item_under_its_own_host_is_what_vip_writes(tmp_path: Path) -> None:
    with closing(StateDatabase(home_of(str(begun(tmp_path))))) as state:
        rows = ["dQw4w9WgXcQ", "abcd", "HTTPS://user@Clips.Example:8080/a.mp4?x=1", "https://[::1]/a.mp4"]
        items = [item for row in rows for item in items_of(row, "list.txt, line 1", folder=tmp_path)]
        list(state.add([SampledItem(item, 0.5, True) for item in items if isinstance(item, ListItem)]))
        claim(state, str(tmp_path))
        assert len(items) == sum(state.state_counts().values()) == 4


def test_a_text_that_is_no_utf8_is_one_sentence(tmp_path: Path) -> None:
    with closing(StateDatabase(home_of(str(begun(tmp_path))))) as state:
        with_item(state)
        state._write("UPDATE items SET state = 6, failure = 'other', message = CAST(x'41ff42' AS TEXT), labels = CAST(x'41ff42' AS TEXT)")
        state._write("UPDATE bad_rows SET message = CAST(x'41ff42' AS TEXT)")
        for read in (state.each_failure, state.sample_counts):
            with pytest.raises(StoreError, match=r"state\.sqlite cannot be used \(Could not decode to UTF-8"):
                list(read())


def test_labels_that_are_no_json_are_refused(tmp_path: Path) -> None:
    with closing(StateDatabase(home_of(str(begun(tmp_path))))) as state:
        with_item(state)
        state._write("UPDATE items SET labels = '['")
        with pytest.raises(StoreError, match=r"state\.sqlite cannot be used \(malformed JSON\)"):
            claim(state, str(tmp_path))


@pytest.mark.parametrize("name", ["parts", "work", "videos", "parts/a.tar", "captions/deep/a"])
def test_a_link_in_the_state_is_refused_whoever_is_trusted(tmp_path: Path, name: str) -> None:
    out = begun(tmp_path / "corpus")
    thesis = tmp_path / "documents" / "thesis.txt"
    thesis.parent.mkdir()
    thesis.write_text("mine")
    link = home_of(str(out)) / name
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(thesis if link.suffix else thesis.parent)
    with closing(StateDatabase(home_of(str(out)))) as state, pytest.raises(StoreError, match=rf"{link.name}: it is a link"):
        claim(state, str(out))
    assert thesis.read_text() == "mine"


# ---------------------------------------------------------------- of an output elsewhere


def test_an_output_elsewhere_has_its_state_on_this_machine_always_in_the_same_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    home = home_of("s3://bucket/corpus")
    assert home.parent == tmp_path / "vip" / "batches"
    assert home.name.startswith("bucket-corpus-")
    assert home_of("s3://bucket/corpus/") == home
    others = [home_of(out) for out in ("s3://bucket-corpus", "gs://bucket/corpus", "s3://bucket/corpus/2")]
    assert len({home, *others}) == 4


def test_a_login_is_in_no_name_of_a_folder() -> None:
    assert "s3cret" not in str(home_of("ftp://me:s3cret@host/corpus"))


def test_a_process_that_reads_the_status_is_not_taken_for_one_that_works(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("123")
    with (tmp_path / LOCK).open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as --status does
        assert running_pid(tmp_path) is None


def test_looking_at_the_status_leaves_nothing_in_the_folder(tmp_path: Path) -> None:
    assert running_pid(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
