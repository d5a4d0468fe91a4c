"""A batch of real videos on this machine: whole, each video once, whatever is killed, and said plainly where something fails."""

from __future__ import annotations

import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

from tests.clips import clip, sound
from vip.config import BatchSettings, ExtractSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
from vip.corpus.state import StateDatabase
from vip.corpus.state_dir import home_of
from vip.corpus.status import BatchStatus, status
from vip.dataset.rows import VideoSample
from vip.dataset.shards import read_samples, read_shards, verify
from vip.errors import BackendError, InputError, StoreError, UsageError
from vip.protocols import SilentObserver


def choices(**settings: Any) -> BatchConfig:
    return BatchConfig(BatchSettings(workers=2, retry_wait=0.2, **settings), ExtractSettings(keyframes=3, embedder="classic"))


def videos(folder: Path, count: int) -> list[str]:
    return [str(clip(folder / f"video{number}.mp4", range(number, number + 4))) for number in range(count)]


def listed(folder: Path, rows: Sequence[str]) -> str:
    path = folder / "list.txt"
    path.write_text("".join(f"{row}\n" for row in rows))
    return str(path)


def samples_in(out: Path) -> list[VideoSample]:
    reports: list[str] = []
    found = list(read_samples(str(out), reports.append))
    assert not reports
    assert list(verify(str(out))) == []
    return found


def failures(out: Path) -> list[dict[str, Any]]:
    path = out / "failures.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def left_over(out: Path) -> list[str]:
    """What lies in the state that should not when all is done."""
    return [str(path) for path in (out / "state").rglob("*") if path.is_file() and path.suffix == ".tar"]


def test_a_list_becomes_shards_with_each_video_once(tmp_path: Path) -> None:
    rows, out = videos(tmp_path, 5), tmp_path / "corpus"
    told = batch([listed(tmp_path, [*rows, rows[0]])], str(out), choices())
    assert (told.done, told.failed, told.waiting, told.shards, told.not_in_shards) == (5, 0, 0, 1, 0)
    found = samples_in(out)
    assert sorted(clip.video.source for clip in found) == sorted(rows)
    assert all(len(clip.frames) == 3 and clip.frames[0].vector is not None for clip in found)
    assert told.keyframes == sum(info.rows for info in read_shards(str(out))) == 15
    assert failures(out) == []
    assert left_over(out) == []


def test_the_same_command_again_does_nothing(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 2)), tmp_path / "corpus"
    first = batch([names], str(out), choices())
    before = {path: path.stat().st_mtime_ns for path in (out / "shards").iterdir()}
    assert batch([names], str(out), choices()) == first
    assert {path: path.stat().st_mtime_ns for path in (out / "shards").iterdir()} == before


def test_a_longer_list_adds_what_is_new(tmp_path: Path) -> None:
    rows, out = videos(tmp_path, 3), tmp_path / "corpus"
    batch([listed(tmp_path, rows[:2])], str(out), choices())
    told = batch([listed(tmp_path, rows)], str(out), choices())
    assert (told.done, told.shards) == (3, 2)
    assert Counter(clip.video.source for clip in samples_in(out)) == Counter(rows)


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 1)), tmp_path / "corpus"
    batch([names], str(out), choices())
    with pytest.raises(UsageError, match=r"holds a batch with other settings \(keyframes 3, now 4\)"):
        batch([names], str(out), BatchConfig(choices().batch, ExtractSettings(keyframes=4, embedder="classic")))


def test_damaged_and_foreign_files_cost_only_themselves(tmp_path: Path) -> None:
    good, out = videos(tmp_path, 2), tmp_path / "corpus"
    (tmp_path / "text.mp4").write_text("this is no video")
    torn = tmp_path / "torn.mp4"
    torn.write_bytes(Path(good[0]).read_bytes()[:900])
    rows = [good[0], str(tmp_path / "text.mp4"), str(sound(tmp_path / "sound.m4a")), str(torn), good[1]]
    told = batch([listed(tmp_path, rows)], str(out), choices())
    assert (told.done, told.failed, told.failures) == (2, 3, {"unreadable": 3})
    assert [(row["kind"], row["exit_code"], row["tries"], row["where"][-6:]) for row in failures(out)] == [
        ("unreadable", 3, 1, f"line {number}") for number in (2, 3, 4)
    ]


HOSTILE = ("../../x", "-o evil", "file:///etc/passwd", "http://", "ftp://a/b.mp4", "\x00\x01", "$(touch evil)", "a" * 1_000_000)


def test_hostile_rows_do_no_harm_and_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, out = tmp_path / "home", tmp_path / "corpus"
    home.mkdir()
    monkeypatch.chdir(home)
    good = videos(tmp_path, 1)
    before = sorted(home.rglob("*"))
    told = batch([listed(tmp_path, [*HOSTILE, *good])], str(out), choices())
    assert (told.done, told.bad_rows) == (1, len(HOSTILE))
    assert sorted(home.rglob("*")) == before
    named = failures(out)
    assert [row["where"].rpartition(" ")[2] for row in named] == [str(number) for number in range(1, len(HOSTILE) + 1)]
    assert all(len(row["item"]) <= 120 and row["message"] for row in named)


def test_public_only_refuses_local_paths_and_the_private_network(tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    rows = [*videos(tmp_path, 1), "http://127.0.0.1:1/a.mp4", "http://169.254.169.254/latest", "http://[::1]/a.mp4"]
    told = batch([listed(tmp_path, rows)], str(out), choices(public_only=True))
    assert (told.done, told.failures) == (0, {"not_public": 4})


def test_too_long_and_too_short_are_left_out_by_name(tmp_path: Path) -> None:
    short, right, long = (str(clip(tmp_path / f"{count}.mp4", range(count))) for count in (2, 6, 12))
    told = batch([listed(tmp_path, [short, right, long])], str(tmp_path / "corpus"), choices(min_length=4, max_length=8))
    assert (told.done, told.failures) == (1, {"too_long": 1, "too_short": 1})
    assert [video.video.source for video in samples_in(tmp_path / "corpus")] == [right]


def test_what_failed_is_tried_again_when_asked(tmp_path: Path) -> None:
    path, out = tmp_path / "late.mp4", tmp_path / "corpus"
    path.write_text("not yet")
    names = listed(tmp_path, [str(path), *videos(tmp_path, 1)])
    assert batch([names], str(out), choices()).failed == 1
    clip(path)
    assert batch([names], str(out), choices()).failed == 1  # not by itself
    assert batch([], str(out), choices(), retry="network").failed == 1
    told = batch([], str(out), choices(), retry="unreadable")
    assert (told.done, told.failed) == (2, 0)
    assert failures(out) == []
    assert len(samples_in(out)) == 2


def test_a_sample_is_the_same_for_the_same_seed_and_is_told(tmp_path: Path) -> None:
    names = listed(tmp_path, videos(tmp_path, 6))
    taken = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2), ("d", 3), ("e", 4)):
        told = batch([names], str(tmp_path / name), choices(sample=3, seed=seed))
        assert (told.done, told.not_chosen) == (3, 3)
        taken.append({video.video.key for video in samples_in(tmp_path / name)})
    assert taken[0] == taken[1]
    assert any(other != taken[0] for other in taken[2:]), "keys depend on the folder: one seed in 20 chooses the same three"
    counted = json.loads((tmp_path / "a" / "distribution.json").read_text())
    assert (counted["videos"], counted["chosen"]) == (6, 3)


def test_offline_descriptions_lie_beside_the_keyframes(tmp_path: Path) -> None:
    from vip.config import CaptionSettings

    settings = BatchConfig(
        BatchSettings(workers=2, caption=True), ExtractSettings(keyframes=3, embedder="classic"), CaptionSettings(engine="offline")
    )
    told = batch([listed(tmp_path, videos(tmp_path, 2))], str(tmp_path / "corpus"), settings)
    assert (told.done, told.undescribed) == (2, 0)
    frames = [frame for video in samples_in(tmp_path / "corpus") for frame in video.frames]
    assert len(frames) == 6
    assert all(frame.description and frame.description.engine == "offline" for frame in frames)


def test_nothing_to_go_on_with_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds no batch that was begun on this machine"):
        batch([], str(tmp_path / "corpus"), choices())
    assert not (tmp_path / "corpus").exists()
    with pytest.raises(InputError, match="holds no batch that was begun on this machine"):
        status(str(tmp_path / "corpus"))


def test_a_backend_that_is_missing_ends_the_batch_at_once(tmp_path: Path) -> None:
    settings = BatchConfig(choices().batch, ExtractSettings(embedder="none-such"))
    with pytest.raises(BackendError):
        batch([listed(tmp_path, videos(tmp_path, 1))], str(tmp_path / "corpus"), settings)
    assert status(str(tmp_path / "corpus")).waiting == 1


# ---------------------------------------------------------------- killed

COMMAND = """
import sys
from tests.corpus.test_batch import choices
from vip.corpus.batch import batch
batch([sys.argv[1]], sys.argv[2], choices(shard_size=60_000))
"""


def started(names: str, out: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", COMMAND, names, str(out)], cwd=Path(__file__).parents[2])


def family(pid: int) -> list[int]:
    """The children of a process, and theirs."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            for child in map(int, task.read_text().split()):
                found += [child, *family(child)]
        except OSError:
            continue
    return found


def alive(pid: int) -> bool:
    """Return whether it is there, and not only a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_kills_of_driver_and_workers_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    count, chance, out = 40, random.Random(3), tmp_path / "corpus"
    rows = videos(tmp_path, count)
    names = listed(tmp_path, rows)
    kills = Counter[str]()
    while sum(kills.values()) < 12:
        process = started(names, out)
        while process.poll() is None and sum(kills.values()) < 12:
            time.sleep(chance.uniform(0.2, 1.2))
            whom = chance.choice(("driver", "child"))
            victims = [process.pid] if whom == "driver" else family(process.pid)
            if victims and process.poll() is None:
                try:
                    os.kill(chance.choice(victims), signal.SIGKILL)
                    kills[whom] += 1
                except ProcessLookupError:
                    continue
        process.wait()
        if process.returncode == 0:
            break
    assert kills["driver"] > 1
    assert started(names, out).wait() == 0
    told = status(str(out))
    assert (told.done, told.failed, told.waiting, told.not_in_shards) == (count, 0, 0, 0)
    assert Counter(video.video.source for video in samples_in(out)) == Counter(rows)
    assert left_over(out) == []


def test_a_state_that_was_lost_is_read_from_the_shards(tmp_path: Path) -> None:
    import shutil

    rows, out = videos(tmp_path, 3), tmp_path / "corpus"
    batch([listed(tmp_path, rows[:2])], str(out), choices())
    shutil.rmtree(out / "state")
    told = batch([listed(tmp_path, rows)], str(out), choices())
    assert (told.done, told.shards) == (3, 2)
    assert Counter(video.video.source for video in samples_in(out)) == Counter(rows)


def test_two_commands_in_one_output_do_not_meet(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 12)), tmp_path / "corpus"
    process = started(names, out)
    while not (out / "state" / "state.sqlite").exists():
        time.sleep(0.05)
    with pytest.raises(UsageError, match=rf"process {process.pid}\) works on"):
        batch([names], str(out), choices())
    assert status(str(out)).process == process.pid
    assert process.wait() == 0
    assert status(str(out)).process is None


def test_ctrl_c_ends_everything_and_the_same_command_goes_on(tmp_path: Path) -> None:
    rows = videos(tmp_path, 12)
    names, out = listed(tmp_path, rows), tmp_path / "corpus"
    process = started(names, out)
    while not list((out / "state" / "parts").glob("*.tar")) and process.poll() is None:
        time.sleep(0.02)
    children = family(process.pid)
    process.send_signal(signal.SIGINT)
    assert process.wait() != 0
    end = time.monotonic() + 20  # one that was being started ends when it has read that its driver is gone
    while any(alive(pid) for pid in children) and time.monotonic() < end:
        time.sleep(0.05)
    assert [pid for pid in children if alive(pid)] == []
    assert started(names, out).wait() == 0
    assert Counter(video.video.source for video in samples_in(out)) == Counter(rows)


class Bars(SilentObserver):
    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)


def test_the_status_adds_up(tmp_path: Path) -> None:
    names = listed(tmp_path, [*videos(tmp_path, 2), "nowhere.mp4"])
    told: BatchStatus = batch([names], str(tmp_path / "corpus"), choices(), observer=Bars())
    assert told.chosen == told.done + told.failed + told.waiting == 2
    assert told.bad_rows == 1
    assert told.video_s == pytest.approx(8, abs=0.7)
    assert status(str(tmp_path / "corpus")) == told


def test_parts_that_a_power_cut_took_or_tore_are_made_again(tmp_path: Path) -> None:
    rows, out = videos(tmp_path, 4), tmp_path / "corpus"
    names = listed(tmp_path, rows)
    process = started(names, out)
    while len(parts := list((out / "state" / "parts").glob("*.tar"))) < 3 and process.poll() is None:
        time.sleep(0.01)
    process.kill()
    process.wait()
    if parts:
        parts[0].write_bytes(parts[0].read_bytes()[:700])
        parts[1].unlink(missing_ok=True)
    told = batch([names], str(out), choices())
    assert (told.done, told.not_in_shards) == (4, 0)
    assert Counter(video.video.source for video in samples_in(out)) == Counter(rows)


def test_the_data_card_lies_beside_the_shards(tmp_path: Path) -> None:
    out = tmp_path / "corpus"
    batch([listed(tmp_path, videos(tmp_path, 2))], str(out), choices())
    assert "2 videos" in (out / "README.md").read_text()
    assert "<svg" in (out / "card.html").read_text()


def test_a_card_that_a_killed_run_did_not_come_to_is_written_by_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 8)), tmp_path / "corpus"

    def killed(*about: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("vip.corpus.batch.write_card", killed)
        with pytest.raises(KeyboardInterrupt):
            batch([names], str(out), choices())
    assert not (out / "README.md").exists()
    assert batch([names], str(out), choices()).done == 8
    assert "8 videos" in (out / "README.md").read_text()


def test_a_row_that_names_a_video_by_now_is_in_failures_no_more(tmp_path: Path) -> None:
    names, out = listed(tmp_path, [*videos(tmp_path, 1), "late.mp4"]), tmp_path / "corpus"
    assert batch([names], str(out), choices()).bad_rows == 1
    clip(tmp_path / "late.mp4", range(4, 8))
    told = batch([names], str(out), choices())
    assert (told.done, told.bad_rows) == (2, 0)
    assert failures(out) == []


def test_a_failure_names_its_source_and_the_next_thing_to_do(tmp_path: Path) -> None:
    (name,) = videos(tmp_path, 1)
    slow = choices()
    slow = replace(slow, extraction=slow.extraction.model_copy(update={"timeout": 0.01}))
    batch([listed(tmp_path, [name])], str(tmp_path / "corpus"), slow)
    (row,) = failures(tmp_path / "corpus")
    assert (row["kind"], row["source"]) == ("timeout", name)
    assert row["message"] == "Not extracted within 0.01 s. Try it again with --retry-failed=timeout and a longer --timeout."


def test_a_setting_that_an_older_vip_did_not_know_does_not_stop_a_batch(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 1)), tmp_path / "corpus"
    batch([names], str(out), choices())
    state = StateDatabase(out / "state")
    settings = state.get("settings")
    del settings["query"]
    state.put("settings", settings)
    state.close()
    assert batch([names], str(out), choices()).done == 1


def test_what_a_killed_run_left_among_the_parts_is_deleted(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 1)), tmp_path / "corpus"
    batch([names], str(out), choices())
    for name in ("in-a-shard-already.tar", ".half.tar.partial"):
        (out / "state" / "parts" / name).write_bytes(b"x")
    batch([], str(out), choices())
    assert list((out / "state" / "parts").iterdir()) == []


def test_a_state_folder_of_somebody_else_is_left_alone_when_a_list_cannot_be_read(tmp_path: Path) -> None:
    theirs = tmp_path / "corpus" / "state" / "notes.txt"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine")
    with pytest.raises(InputError):
        batch([str(tmp_path / "none.txt")], str(tmp_path / "corpus"), choices())
    assert [path.name for path in theirs.parent.iterdir()] == ["notes.txt"]


def test_looking_at_the_status_does_not_keep_a_batch_from_starting(tmp_path: Path) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 1)), tmp_path / "corpus"
    batch([names], str(out), choices())
    with (out / "state" / "lock").open() as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # as --status does
        timer = Timer(0.1, fcntl.flock, (file, fcntl.LOCK_UN))
        timer.start()
        assert batch([], str(out), choices()).done == 1
        timer.join()


@pytest.mark.parametrize("change", ["UPDATE shards SET wanted = 1", "UPDATE items SET state = 3"])
def test_videos_that_wait_for_captions_nobody_asked_for_are_damage_and_not_waited_for(tmp_path: Path, change: str) -> None:
    out = tmp_path / "corpus"
    batch(videos(tmp_path, 1), str(out), choices())
    with closing(StateDatabase(home_of(str(out)))) as state:
        state._write(change)
    with pytest.raises(StoreError, match="wait for captions that nobody asked for"):
        batch([], str(out))
