"""Shards that are written anew, step by step: the driver's side with a process that says what it is told, and what the process does."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.making import sample
from tests.corpus.test_state import fill, item
from tests.corpus.workers.children import Children, Gone, children_of
from vip.corpus.state import StateDatabase
from vip.corpus.workers.shard_revisions import (
    IncompleteParts,
    RevisedShard,
    RewriteShard,
    ShardRevisions,
    UnpackedShard,
    UnpackedVideo,
    UnpackShard,
    UnreadableShard,
    _rewrite,
    _unpack,
)
from vip.dataset.parts import pack, read_part
from vip.dataset.rows import VideoSample
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import UndescribedKeyframe, read_samples, read_sidecar, write_shard
from vip.errors import BackendError, StoreError
from vip.records import Failure


@pytest.fixture
def state(tmp_path: Path) -> Iterator[StateDatabase]:
    """Two shards, of which one video each is not described throughout."""
    state = StateDatabase(tmp_path)
    fill(state, [item(number) for number in range(4)])
    for number in (0, 1):
        keys = [(f"video{key}", 3, None, 10.0) for key in (2 * number, 2 * number + 1)]
        state.adopt_shard(number, keys, size_bytes=500, rows=6, undescribed=[lacking(2 * number)])
    state.request_descriptions()
    yield state
    state.close()


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    return children_of(monkeypatch)


def lacking(number: int) -> UndescribedKeyframe:
    return UndescribedKeyframe(f"video{number}", f"video{number}:0002", "refusal", "no")


def video(number: int, undescribed: int = 1) -> UnpackedVideo:
    return UnpackedVideo(f"video{number}", Path(f"/again/video{number}.tar"), None, 50, undescribed)


def revised(number: int, *left: UndescribedKeyframe) -> RevisedShard:
    return RevisedShard(number, 1, 510, 6, left)


def revisions_of(state: StateDatabase) -> tuple[ShardRevisions, list[str]]:
    notes: list[str] = []
    return ShardRevisions(state, "corpus", notes.append), notes


def test_one_shard_after_the_other_is_unpacked_described_and_rewrite(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    assert revisions.has_more
    assert revisions.step(unpacks=True) == ()
    folder = state.home / "again"
    assert children[0].sent == ["corpus", UnpackShard(0, 1, folder / "0")]
    children.say(UnpackedShard(0, (video(0),)))
    assert revisions.step(unpacks=True) == (video(0),)
    assert children[0].sent[-1] == UnpackShard(1, 1, folder / "1"), "the next one meanwhile"
    assert (revisions.has("video0"), revisions.has("video1")) == (True, False)
    assert revisions.finish("video0", 0) == video(0)
    assert not revisions.has("video0")
    children.say(UnpackedShard(1, (video(2),)))
    assert revisions.step(unpacks=True) == (video(2),)
    assert not revisions.has_more
    assert children[0].sent[-1] == RewriteShard(0, 1, {"video0": Path("/again/video0.tar")})
    children.say(revised(0))
    revisions.finish("video2", 0)
    assert revisions.step(unpacks=True) == ()
    children.say(revised(1))
    revisions.step(unpacks=True)
    assert (revisions.is_open, revisions.written, revisions.gained, state.shards_to_revise()) == (False, 2, 2, [])
    assert revisions.summary() == "2 shards are written anew, with 2 more keyframes described."


def test_nothing_is_unpacked_where_there_is_no_room_but_what_is_described_is_rewrite(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    assert revisions.step(unpacks=False) == ()
    assert children == []
    revisions.step(unpacks=True)
    children.say(UnpackedShard(0, (video(0),)))
    revisions.step(unpacks=False)
    revisions.finish("video0", 0)
    revisions.step(unpacks=False)
    assert isinstance(children[0].sent[-1], RewriteShard)


def test_a_shard_is_written_when_all_of_its_videos_are_described(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    revisions.step(unpacks=True)
    children.say(UnpackedShard(0, (video(0), video(1, 2))))
    revisions.step(unpacks=False)
    revisions.finish("video1", 1)
    revisions.step(unpacks=False)
    assert len(children[0].sent) == 2
    revisions.finish("video0", 1)
    revisions.step(unpacks=False)
    children.say(revised(0, lacking(0), lacking(1)))
    revisions.step(unpacks=False)
    assert revisions.gained == 1
    assert [row[0] for row in state.each_undescribed()] == ["video0:0002", "video1:0002", "video2:0002"]


def test_a_shard_that_gained_nothing_stays_as_it_is(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    (state.home / "again" / "0").mkdir(parents=True)
    revisions.step(unpacks=True)
    children.say(UnpackedShard(0, (video(0),)))
    revisions.step(unpacks=False)
    revisions.finish("video0", 1)
    revisions.step(unpacks=False)
    assert len(children[0].sent) == 2
    assert state.shards_to_revise() == [(1, 1)]
    assert (revisions.written, (state.home / "again" / "0").exists()) == (0, False)


def test_what_a_killed_run_had_written_counts(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    revisions.step(unpacks=True)
    children.say(revised(0))
    revisions.step(unpacks=False)
    assert (revisions.written, revisions.gained, state.shards_to_revise()) == (1, 0, [(1, 1)])


def test_a_shard_that_cannot_be_read_is_told_once_and_left_for_another_run(state: StateDatabase, children: Children) -> None:
    revisions, notes = revisions_of(state)
    revisions.step(unpacks=True)
    children.say(UnreadableShard(0, "It is damaged."))
    revisions.step(unpacks=True)
    children.say(UnreadableShard(1, "It is gone."))
    revisions.step(unpacks=True)
    assert not revisions.refresh()
    assert notes == ["It is damaged. What is not described in it stays so.", "It is gone. What is not described in it stays so."]
    assert state.shards_to_revise() == [(0, 1), (1, 1)]


def test_parts_that_a_power_cut_tore_are_unpacked_again_first(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    revisions.step(unpacks=True)
    children.say(UnpackedShard(0, (video(0),)))
    revisions.step(unpacks=False)
    revisions.finish("video0", 0)
    revisions.step(unpacks=False)
    children.say(IncompleteParts(0))
    revisions.step(unpacks=True)
    assert children[0].sent[-1] == UnpackShard(0, 1, state.home / "again" / "0")
    children.say(UnreadableShard(0, "It is gone."))
    revisions.step(unpacks=False)
    children.say(UnreadableShard(1, "It is gone, too."))
    revisions.step(unpacks=True)
    revisions.step(unpacks=True)
    assert not revisions.is_open


def test_what_is_at_work_or_open_is_taken_up_once(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    revisions.step(unpacks=True)
    assert revisions.refresh()
    children.say(UnpackedShard(0, (video(0),)))
    revisions.step(unpacks=True)
    revisions.refresh()
    children.say(UnpackedShard(1, (video(2),)))
    revisions.step(unpacks=True)
    revisions.refresh()
    revisions.step(unpacks=True)
    assert [one for one in children[0].sent if isinstance(one, UnpackShard)] == [
        UnpackShard(number, 1, state.home / "again" / str(number)) for number in (0, 1)
    ]


def test_what_an_earlier_run_unpacked_goes(state: StateDatabase, children: Children) -> None:
    (state.home / "again" / "7").mkdir(parents=True)
    revisions_of(state)
    assert not (state.home / "again").exists()


def test_another_process_does_the_same_three_times_at_most(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    revisions.step(unpacks=True)
    for _ in range(2):
        children.say(Gone())
        revisions.step(unpacks=True)
    assert [child.sent[-1] for child in children] == [UnpackShard(0, 1, state.home / "again" / "0")] * 3
    assert [child.killed for child in children] == [1, 1, 0]
    children.say(UnpackedShard(0, (video(0),)))
    revisions.step(unpacks=True)
    for _ in range(2):
        children.say(Gone())
        revisions.step(unpacks=True)
    children.say(Gone())
    with pytest.raises(BackendError, match="writes shards anew was ended by the system 3 times in a row"):
        revisions.step(unpacks=True)


def test_a_shard_that_cannot_be_written_ends_the_run(state: StateDatabase, children: Children) -> None:
    revisions, _ = revisions_of(state)
    revisions.step(unpacks=True)
    children.say(StoreError("The disk is full."))
    with pytest.raises(StoreError):
        revisions.step(unpacks=True)
    revisions.close()
    revisions.close()
    assert children[0].killed == 1


# ---------------------------------------------------------------- in the process


def without(one: VideoSample, *numbers: int, topic: str | None = None) -> VideoSample:
    """As if these keyframes could not have been described."""
    frames = [
        replace(frame, description=None, failure=Failure(item=frame.keyframe.id, kind="refusal", message="no", exit_code=6))
        if number in numbers
        else frame
        for number, frame in enumerate(one.frames, start=1)
    ]
    return replace(one, frames=tuple(frames), video=one.video.model_copy(update={"topic": topic}))


@pytest.fixture
def out(tmp_path: Path) -> str:
    """A shard of three videos, of which one is described."""
    clips = [without(sample("a"), 2), sample("b"), without(sample("c"), 1, 3, topic="a race")]
    write_shard(str(tmp_path / "out"), 0, clips, "webdataset")
    return str(tmp_path / "out")


def files(out: str) -> list[str]:
    return sorted(path.name for path in (Path(out) / FOLDER).iterdir())


def test_only_videos_that_lack_descriptions_are_unpack(out: str, tmp_path: Path) -> None:
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "left.tar").touch()
    found = _unpack(out, UnpackShard(0, 1, tmp_path / "again"))
    assert isinstance(found, UnpackedShard)
    assert [(part.key, part.topic, part.undescribed) for part in found.videos] == [("a", None, 1), ("c", "a race", 2)]
    assert {path.name: path.stat().st_size for path in (tmp_path / "again").iterdir()} == {
        f"{part.key}.tar": part.size_bytes for part in found.videos
    }


def test_the_next_generation_has_the_new_descriptions_and_all_else_as_it_was(out: str, tmp_path: Path) -> None:
    found = _unpack(out, UnpackShard(0, 1, tmp_path / "again"))
    assert isinstance(found, UnpackedShard)
    one = found.videos[1]
    whole = replace(sample("c"), video=read_part(one.path).video)
    pack(one.path, whole)
    done = _rewrite(out, RewriteShard(0, 1, {"c": one.path}))
    assert isinstance(done, RevisedShard)
    assert (done.number, done.generation, done.rows, done.undescribed) == (0, 1, 9, (UndescribedKeyframe("a", "a:0002", "refusal", "no"),))
    assert files(out) == ["00000.g1.tar", "00000.json"]
    assert [(one.video.key, [frame.description is None for frame in one.frames]) for one in read_samples(out)] == [
        ("a", [False, True, False]),
        ("b", [False] * 3),
        ("c", [False] * 3),
    ]


def test_a_generation_that_a_killed_run_has_written_is_not_written_again(out: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_shard(out, 0, [without(sample("a"), 2), sample("b"), sample("c")], "webdataset", generation=1)
    (Path(out) / FOLDER / "00000.tar").write_bytes(b"left over")
    info = read_sidecar(out, 0)

    def written(*about: Any, **how: Any) -> None:
        raise AssertionError

    monkeypatch.setattr("vip.dataset.shards.write_shard", written)
    done = RevisedShard(0, 1, info.bytes, 9, (UndescribedKeyframe("a", "a:0002", "refusal", "no"),))
    assert _unpack(out, UnpackShard(0, 1, tmp_path / "again")) == done
    assert files(out) == ["00000.g1.tar", "00000.json"]
    assert _rewrite(out, RewriteShard(0, 1, {})) == done
    assert isinstance(_unpack(out, UnpackShard(0, 2, tmp_path / "again")), UnpackedShard)


def test_where_all_is_described_by_now_nothing_is_unpack(out: str, tmp_path: Path) -> None:
    write_shard(out, 0, [sample("a")], "webdataset")
    assert isinstance(_unpack(out, UnpackShard(0, 1, tmp_path / "again")), RevisedShard)


def test_a_shard_that_is_gone_is_unreadable_and_a_part_that_is_gone_is_torn(out: str, tmp_path: Path) -> None:
    found = _unpack(out, UnpackShard(7, 1, tmp_path / "again"))
    assert isinstance(found, UnreadableShard)
    assert found.number == 7
    assert _rewrite(out, RewriteShard(0, 1, {"c": tmp_path / "c.tar"})) == IncompleteParts(0)
    (Path(out) / FOLDER / "00000.tar").unlink()
    assert isinstance(_rewrite(out, RewriteShard(0, 1, {})), StoreError)
