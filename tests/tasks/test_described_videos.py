"""Videos of runs: one in memory at a time."""

from __future__ import annotations

import gc
import weakref
from hashlib import sha256
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.tasks.described import described_folder
from vip.dataset.items import UNKNOWN_VERTICAL
from vip.dataset.shards import write_shard
from vip.errors import InputError
from vip.store import Run
from vip.tasks import described_videos as module
from vip.tasks.described_videos import DescribedVideo, described_videos


@pytest.mark.slow
@pytest.mark.usefixtures("_new_objects_only")
def test_a_run_is_forgotten_once_its_samples_are_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, video_of = list[weakref.ref[Run]](), module._video_of_run

    def noted(run: Run) -> DescribedVideo:
        read.append(weakref.ref(run))
        return video_of(run)

    monkeypatch.setattr(module, "_video_of_run", noted)
    folders = [str(described_folder(tmp_path / f"v{number}", 3)) for number in range(5)]
    for number, video in enumerate(described_videos(folders), 1):
        assert len(video.keyframes) == 3
        del video
        gc.collect()
        assert len(read) == number
        assert sum(run() is not None for run in read[:-1]) == 0


def test_a_data_set_gives_domains_that_are_known_and_videos_that_are_described(tmp_path: Path) -> None:
    labelled = {"a": ("Games", UNKNOWN_VERTICAL, "Sports"), "b": (UNKNOWN_VERTICAL,), "c": ()}
    some = [sample(key, 2, verticals=verticals) for key, verticals in labelled.items()]
    write_shard(str(tmp_path), 0, [*some, sample("d", 2, described=False, verticals=("Games",))], "webdataset")
    found = {video.name: dict(video.groups) for video in described_videos([str(tmp_path)])}
    assert found == {"a": {"domain": ("Games", "Sports")}, "b": {}, "c": {}}


def test_a_second_run_of_one_video_has_a_name_of_its_own(tmp_path: Path) -> None:
    folders = [str(described_folder(tmp_path / where / "v", 3)) for where in ("one", "two", "three")]
    assert [video.name for video in described_videos(folders)] == ["v", "v-2", "v-3"]


def test_nothing_described_is_said_with_what_to_do(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [sample("d", 2, described=False)], "webdataset")
    with pytest.raises(InputError, match="no keyframe has a description yet"):
        list(described_videos([str(tmp_path)]))


def test_each_keyframe_has_its_own_words_and_its_own_picture_and_those_without_words_are_left_out(tmp_path: Path) -> None:
    folder = described_folder(tmp_path / "v", 4)
    lines = (folder / "descriptions.jsonl").read_text().splitlines(keepends=True)
    (folder / "descriptions.jsonl").write_text("".join([lines[3], lines[0], lines[2]]))
    (video,) = described_videos([str(folder)])
    assert [(frame.id, frame.time_s, frame.description.dense_caption) for frame in video.keyframes] == [
        ("v:0", 0.0, "A dog 0 in v."),
        ("v:2", 2.0, "A park 2 in v."),
        ("v:3", 3.0, "A man 3 in v."),
    ]
    pictures = [frame.picture() for frame in video.keyframes if frame.picture]
    digests = [sha256((folder / "keyframes" / f"000{number}.jpg").read_bytes()).hexdigest() for number in (0, 2, 3)]
    assert [(one.keyframe_id, one.time_s, one.sha256) for one in pictures] == [
        ("v:0", 0.0, digests[0]),
        ("v:2", 2.0, digests[1]),
        ("v:3", 3.0, digests[2]),
    ]


def test_a_run_without_descriptions_takes_no_name_from_others(tmp_path: Path) -> None:
    empty = described_folder(tmp_path / "one" / "v", 3)
    (empty / "descriptions.jsonl").unlink()
    folders = [empty, described_folder(tmp_path / "two" / "v", 3), described_folder(tmp_path / "three" / "v", 3)]
    assert [video.name for video in described_videos(list(map(str, folders)))] == ["v", "v-2"]
