"""What can stand where a video is expected: addresses, folders, patterns and lists of pictures, a part, a stream."""

from __future__ import annotations

import shutil
from pathlib import Path

import cv2
import pytest

from tests.cli.terminal import Done, vip
from tests.clips import SAMPLE, clip, picture, scene
from tests.file_server import serving
from vip.cli.inputs import find_videos, run_folders
from vip.errors import UsageError
from vip.store import load_run
from vip.video import FileSource, PicturesSource

QUERY, LOGIN = "Qu3ryS3cret", "L0ginS3cret"


def extract(folder: Path, *arguments: str | Path) -> Done:
    return vip(folder, "extract", *arguments, "-n", "2", "--json")


def runs(folder: Path) -> set[str]:
    return {str(path.parent.relative_to(folder)) for path in folder.rglob("keyframes.jsonl")}


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    for number in range(1, 12):
        picture(tmp_path / "photos" / f"img{number}.png", number)
    return tmp_path / "photos"


def test_a_folder_of_pictures_is_one_video(photos: Path, tmp_path: Path) -> None:
    done = extract(tmp_path, photos.name)
    assert done.code == 0, done.err
    assert runs(tmp_path) == {"photos.vip"}
    assert done.rows[0]["video"] == "photos"
    assert done.rows[0]["counts"]["candidates"] == 11
    assert [frame.time_s for frame in load_run(tmp_path / "photos.vip").keyframes] == sorted(
        row["time_s"] for row in done.rows[0]["keyframes"]
    )


@pytest.mark.parametrize("given", [["photos/img%d.png"], [f"photos/img{number}.png" for number in range(1, 12)]])
def test_so_are_a_pattern_and_the_pictures_of_a_shell_glob(photos: Path, monkeypatch: pytest.MonkeyPatch, given: list[str]) -> None:
    monkeypatch.chdir(photos.parent)
    (source,) = find_videos(given).videos
    assert isinstance(source, PicturesSource)
    assert set(source.paths) == {Path("photos") / f"img{number}.png" for number in range(1, 12)}


def test_a_folder_with_both_is_one_of_videos(photos: Path) -> None:
    (photos / "a.mp4").touch()
    assert find_videos([str(photos)]) == ([FileSource(photos / "a.mp4")], 11, 0)


def test_pictures_that_are_passed_over_are_counted(photos: Path, tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        shutil.copyfile(SAMPLE, photos / name)
    done = vip(tmp_path, "extract", "photos", "-n", "2", "-o", "runs")
    assert done.code == 0, done.err
    assert "vip: Passed over 11 pictures that lie beside videos." in done.err.splitlines()


def test_folders_in_folders_are_looked_into_where_that_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "one/a.mp4",
        "one/two/a.mp4",
        "one/two/old.vip/keyframes/x.png",
        "one/.hidden/b.mp4",
        "one/three/img1.png",
        "one/three/img2.png",
        "one/renamed/keyframes/x.png",
        "one/holiday.vip/c.mp4",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        picture(path) if path.suffix == ".png" else shutil.copyfile(SAMPLE, path)
    for run in ("two/old.vip", "renamed"):
        (tmp_path / "one" / run / "manifest.json").write_text("{}")
    (tmp_path / "one/two/loop").symlink_to(tmp_path / "one", target_is_directory=True)
    assert find_videos(["one"]) == ([FileSource(Path("one/a.mp4"))], 0, 0)
    sources, passed_over, _ = find_videos(["one"], recursive=True)
    assert [str(source) for source in sources] == ["one/a.mp4", "one/holiday.vip/c.mp4", "one/three", "one/two/a.mp4"]
    assert passed_over == 0
    done = vip(tmp_path, "extract", "one", "-r", "-n", "1", "-o", "runs")
    assert done.code == 0, done.err
    runs = {"one-a.mp4.vip", "one-two-a.mp4.vip", "three.vip", "c.vip"}
    assert {path.name for path in (tmp_path / "runs").iterdir()} == {"index.html", *runs}


def test_a_folder_whose_videos_lie_deeper_says_how_to_reach_them(tmp_path: Path) -> None:
    (tmp_path / "clips" / "deep").mkdir(parents=True)
    shutil.copyfile(SAMPLE, tmp_path / "clips" / "deep" / "a.mp4")
    done = vip(tmp_path, "extract", "clips")
    assert (done.code, "Add -r to look into the folders in it." in done.sentence) == (3, True)
    assert vip(tmp_path, "extract", "clips", "-r", "-n", "1").code == 0


def test_pictures_between_videos_are_one_video_with_a_folder_of_its_own(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(photos.parent)
    sources, *_ = find_videos(["photos/img1.png", "a.mp4", "photos/img2.png", "http://h/get?id=1", "http://h/get?id=2", "photos"])
    assert [source.name for source in sources] == ["photos", "a.mp4", "get", "get", "photos"]
    folders = run_folders(sources, Path("runs"), several=True)
    assert len({folder.name for folder in folders.values()}) == 5
    assert folders[FileSource(Path("a.mp4"))] == Path("runs/a.vip")
    assert folders == run_folders(sources, Path("runs"), several=True)


@pytest.mark.parametrize("out", [None, Path("runs")])
def test_a_link_in_the_place_of_a_folder_that_was_not_named_is_refused(
    out: Path | None, photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sources, *_ = find_videos(["a.mp4", "b.mp4"])
    (tmp_path / "mine").mkdir()
    link = (out or Path()) / "b.vip"
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "mine")
    with pytest.raises(UsageError, match=r"b\.vip is a link, and vip writes through none that you did not name"):
        run_folders(sources, out, several=True)


def test_run_does_the_whole_job_on_pictures_and_caption_still_describes_each(photos: Path, tmp_path: Path) -> None:
    for number in range(3, 12):
        (photos / f"img{number}.png").unlink()
    done = vip(tmp_path, "run", "photos", "-n", "1", "--engine", "fake")
    assert done.code == 0, done.err
    assert (tmp_path / "photos.vip" / "report.html").exists()
    assert vip(tmp_path, "caption", "photos", "--engine", "fake").code == 0
    assert len(load_run(photos).descriptions) == 2


def test_the_same_pictures_again_are_not_looked_at_again(photos: Path, tmp_path: Path) -> None:
    first, second = extract(tmp_path, "photos"), extract(tmp_path, "photos")
    assert first.rows == second.rows
    picture(photos / "img3.png", 99)
    again = extract(tmp_path, "photos")
    assert again.code == 2
    assert "photos.vip holds another run" in again.sentence


def test_keyframes_have_the_size_of_their_pictures(tmp_path: Path) -> None:
    for number, width in ((1, 160), (2, 240)):
        cv2.imwrite(str(tmp_path / f"{number}.png"), cv2.resize(scene(number), (width, 90), interpolation=cv2.INTER_NEAREST))
    done = extract(tmp_path, "1.png", "2.png", "-o", "run")
    assert done.code == 0, done.err
    assert [(row["width_px"], row["height_px"]) for row in done.rows[0]["keyframes"]] == [(160, 90), (240, 90)]


def test_a_part_of_a_video(tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", range(8))
    done = extract(tmp_path, "a.mp4", "--start", "0:02", "--end", "5.5")
    assert done.code == 0, done.err
    assert all(2 <= row["time_s"] <= 5.5 for row in done.rows[0]["keyframes"])
    manifest = load_run(tmp_path / "a.vip").manifest
    assert manifest is not None
    assert (manifest.video.start_time_s, manifest.video.end_time_s) == pytest.approx((2, 16 / 3))
    assert all(2 <= row.time_s <= 5.5 for row in load_run(tmp_path / "a.vip").candidates)
    other = extract(tmp_path, "a.mp4", "--start", "3")
    assert "start 2.0, now 3.0" in other.sentence
    beyond = extract(tmp_path, "a.mp4", "--start", "60", "-o", "beyond")
    assert beyond.code == 3
    assert beyond.sentence == "a.mp4 has no frame from 1:00.00 on: it goes from 0:00.00 to 0:07.67. Change --start or --end."


def test_a_stream_that_is_not_there(tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1])
    done = extract(tmp_path, "a.mp4", "--stream", "1")
    assert done.code == 3
    assert done.sentence == "a.mp4 has no video stream 1. Choose with --stream among: 0: h264 160x90."


def test_an_address(tmp_path: Path) -> None:
    clip(tmp_path / "served" / "my clip.mp4", range(6))
    with serving(tmp_path / "served") as server:
        address = f"{server.address}/my%20clip.mp4?key={QUERY}".replace("//", f"//anna:{LOGIN}@")
        done = extract(tmp_path, address)
        assert done.code == 0, done.err
        assert vip(tmp_path, "report", "my clip.vip").code == 0
    assert runs(tmp_path) == {"my clip.vip"}
    assert done.rows[0]["video"] == f"{server.address}/my%20clip.mp4"
    written = [path.read_bytes() for path in (tmp_path / "my clip.vip").rglob("*") if path.is_file()]
    for secret in (QUERY, LOGIN):
        assert secret not in done.out + done.err
        assert not any(secret.encode() in data for data in written)


def test_an_address_that_is_not_there(tmp_path: Path) -> None:
    with serving(tmp_path) as server:
        done = extract(tmp_path, f"{server.address}/nowhere.mp4?key={QUERY}")
        assert done.code == 3
        assert done.sentence == f"{server.address}/nowhere.mp4 cannot be read: the server does not have it (404 Not Found)."


def test_another_kind_of_address(tmp_path: Path) -> None:
    done = extract(tmp_path, "rtsp://127.0.0.1/camera")
    assert done.code == 3
    assert "are not read. Give an http(s) address or a file." in done.sentence
