"""A batch of what has to be fetched: ids, addresses, hosts that refuse, and what lies around meanwhile."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from tests.clips import clip
from tests.corpus.test_batch import Bars, failures, listed, samples_in
from tests.video_host import Answer, hosting
from vip.config import BatchSettings, ExtractSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
from vip.errors import StoreError, UsageError


def choices(base: str, **settings: Any) -> BatchConfig:
    found = {"workers": 2, "retry_wait": 0.2, "sleep": 0, "youtube8m_base_url": f"{base}/2/j/i", "video_base_url": base, **settings}
    return BatchConfig(BatchSettings(**found), ExtractSettings(keyframes=3, embedder="classic"))


@pytest.fixture(scope="module")
def video(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return clip(tmp_path_factory.mktemp("videos") / "a.mp4", range(4)).read_bytes()


def watched(key: str) -> str:
    return f"/watch?v={key}"


def test_ids_addresses_and_ids_of_youtube8m_are_fetched_and_nothing_stays_on_the_disk(video: bytes, tmp_path: Path) -> None:
    with hosting() as host:
        for key in ("aaaaaaaaaaa", "-bbbbbbbbbb"):
            host.put(watched(key), video, "video/mp4")
        host.put("/2/j/i/nX/nXSc.js", 'i("nXSc","-bbbbbbbbbb");')
        rows = ["aaaaaaaaaaa", "nXSc", host.put("/films/a film.mp4".replace(" ", "%20"), video, "video/mp4")]
        told = batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), choices(host.address))
    assert (told.done, told.failed) == (3, 0), failures(tmp_path / "corpus")
    found = {clip.video.kind: clip.video for clip in samples_in(tmp_path / "corpus")}
    assert found["youtube8m"].youtube_id == "-bbbbbbbbbb"
    assert found["youtube"].key == "aaaaaaaaaaa"
    assert [path.name for path in (tmp_path / "corpus" / "state").rglob("*.mp4")] == []


def test_an_id_and_the_same_id_of_youtube8m_are_one_video(video: bytes, tmp_path: Path) -> None:
    with hosting() as host:
        host.put(watched("aaaaaaaaaaa"), video, "video/mp4")
        for short in ("AAAA", "BBBB"):
            host.put(f"/2/j/i/{short[:2]}/{short}.js", f'i("{short}","aaaaaaaaaaa");')
        told = batch([listed(tmp_path, ["AAAA", "aaaaaaaaaaa", "BBBB"])], str(tmp_path / "corpus"), choices(host.address))
    assert (told.done, told.failures) == (1, {"duplicate": 2})
    assert [clip.video.key for clip in samples_in(tmp_path / "corpus")] == ["aaaaaaaaaaa"]


def test_each_failure_has_its_type_and_tries_and_the_good_ones_are_done(video: bytes, tmp_path: Path) -> None:
    with hosting() as host:
        good = host.put("/good.mp4", video, "video/mp4")
        bad = {
            host.put("/gone.mp4", status=404): "missing",
            host.put("/page.html", "<html>nothing here</html>"): "no_video",
            host.put("/broken.mp4", video[:500], "video/mp4"): "unreadable",
            host.put("/down.mp4", status=500): "network",
        }
        told = batch([listed(tmp_path, [*bad, good])], str(tmp_path / "corpus"), choices(host.address, retry_wait=0.05))
        asked = Counter(path for path in host.asked)
    assert (told.done, told.failed) == (1, len(bad))
    assert [row["kind"] for row in failures(tmp_path / "corpus")] == list(bad.values())
    assert [row["tries"] for row in failures(tmp_path / "corpus")] == [1, 1, 1, 4]
    assert asked["/down.mp4"] >= 4


def test_a_host_that_asks_for_rest_gets_it_and_then_gives_the_video(video: bytes, tmp_path: Path) -> None:
    with hosting() as host, hosting() as other:
        host.answers["/a.mp4"] = [Answer(status=429, headers={"Retry-After": "1"}), Answer(video, "video/mp4")]
        rows = [f"{host.address}/a.mp4", other.put("/b.mp4", video, "video/mp4")]
        bars = Bars()
        told = batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), choices(host.address), observer=bars)
    assert (told.done, told.failed) == (2, 0)
    assert [note for note in bars.notes if "Nothing more is asked of it for 1 s" in note]


def test_a_download_that_stalls_is_given_up_and_does_not_hold_up_the_others(video: bytes, tmp_path: Path) -> None:
    with hosting() as host, hosting() as other:
        rows = [host.put("/slow.mp4", video, "video/mp4", way="mute"), *(other.put(f"/{n}.mp4", video, "video/mp4") for n in range(4))]
        settings = choices(host.address, download_timeout=6, retry_wait=0.05)  # time enough for the others on a busy machine
        told = batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), settings)
    assert (told.done, told.failures) == (4, {"download_timeout": 1})
    assert failures(tmp_path / "corpus")[0]["tries"] == 4


def test_a_video_larger_than_the_whole_budget_of_the_disk_is_not_fetched(video: bytes, tmp_path: Path) -> None:
    with hosting() as host:
        rows = [host.put("/small.mp4", video, "video/mp4"), host.put("/large.mp4", video + bytes(3_000_000), "video/mp4")]
        told = batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), choices(host.address, disk_budget=2_000_000))
    assert (told.done, told.failures) == (1, {"too_large": 1})
    (row,) = failures(tmp_path / "corpus")
    assert row["message"] == "The video has 3 MB or more, and --disk-budget has room for 2 MB."


@contextmanager
def measured(top: Path) -> Iterator[list[int]]:
    """The bytes of all downloads below a folder, again and again."""
    over, found = Event(), list[int]()

    def look() -> None:
        while not over.is_set():
            size = 0
            for folder, _, names in os.walk(top):
                for name in names if "videos" in Path(folder).parts else ():
                    with suppress(OSError):  # it went away
                        size += (Path(folder) / name).stat().st_size
            found.append(size)

    thread = Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


MB = 1_000_000


@pytest.mark.parametrize("way", ["whole", "unsized"])
def test_downloads_wait_for_room_and_never_have_more_than_the_budget(way: Any, video: bytes, tmp_path: Path) -> None:
    """One takes nine tenths of it, and is not passed over; whether their sizes are known beforehand or not."""
    out, sizes = tmp_path / "corpus", [MB, MB, int(3.6 * MB), MB, MB, 2 * MB, MB, MB]
    with hosting() as host, measured(out) as lay:
        rows = [host.put(f"/{n}.mp4", video + bytes(size), "video/mp4", way=way, pause_s=0.02) for n, size in enumerate(sizes)]
        told = batch([listed(tmp_path, rows)], str(out), choices(host.address, disk_budget=4 * MB, per_host=6, workers=3))
    assert (told.done, told.failed) == (len(sizes), 0), failures(out)
    assert 3.5 * MB < max(lay) <= 4 * MB


def test_waiting_for_room_is_no_part_of_the_time_that_a_download_may_take(video: bytes, tmp_path: Path) -> None:
    with hosting() as host:
        rows = [host.put(f"/{n}.mp4", video + bytes(2 * MB), "video/mp4", pause_s=0.04) for n in range(4)]  # 1.3 s each, one by one
        settings = choices(host.address, disk_budget=int(2.5 * MB), per_host=4, download_timeout=3)
        told = batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), settings)
    assert (told.done, told.failed) == (4, 0), failures(tmp_path / "corpus")


def test_videos_are_kept_where_the_user_wants_them(video: bytes, tmp_path: Path) -> None:
    with hosting() as host:
        host.put(watched("aaaaaaaaaaa"), video, "video/mp4")
        batch([listed(tmp_path, ["aaaaaaaaaaa"])], str(tmp_path / "corpus"), choices(host.address, keep_videos=tmp_path / "kept"))
    assert [(path.name, path.read_bytes() == video) for path in (tmp_path / "kept").iterdir()] == [("aaaaaaaaaaa.mp4", True)]


def test_what_can_never_work_is_said_before_anything_is_fetched(video: bytes, tmp_path: Path) -> None:
    with hosting() as host, pytest.raises(UsageError, match="exec"):
        batch([listed(tmp_path, ["aaaaaaaaaaa"])], str(tmp_path / "corpus"), choices(host.address, ytdlp_opts=("--exec", "touch evil")))
    assert host.asked == []


def test_where_all_that_is_left_waits_for_another_try_the_user_is_told(tmp_path: Path) -> None:
    bars = Bars()
    with hosting() as host:
        rows = [host.put("/down.mp4", status=500)]
        batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), choices(host.address, retry_wait=0.5), observer=bars)
    (told,) = [note for note in bars.notes if "another try" in note]
    assert told.startswith("1 video waits for another try (1 network), the first for ")


def test_a_folder_for_videos_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "kept").write_text("no folder")
    with hosting() as host:
        rows = [host.put("/a.mp4", b"", "video/mp4")]
        with pytest.raises(StoreError, match="kept"):
            batch([listed(tmp_path, rows)], str(tmp_path / "corpus"), choices(host.address, keep_videos=tmp_path / "kept" / "videos"))
        assert host.asked == []
