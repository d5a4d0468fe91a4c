"""What is reviewed: runs, folders of runs and data sets give the same items."""

from __future__ import annotations

import json
import os
import tarfile
from io import BytesIO
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.report.runs import make_pictures, make_run
from tests.review.corpora import make_described
from vip import store, user_state
from vip.corpus.card.counts import keyframes_of
from vip.dataset import parquet
from vip.dataset.shards import write_shard
from vip.errors import InputError, StoreError
from vip.records import Check, Description, Verification
from vip.review.items import flagged_in, read_items
from vip.review.shard_rows import open_shard


def test_a_run_is_read_with_its_texts_detections_and_neighbours(tmp_path: Path) -> None:
    index = read_items(make_run(tmp_path / "a.vip").folder)
    assert [item.id for item in index.items] == ["k0", "k3", "k7"]
    assert index.items[1].texts == ("The caption of 3.0", "a dancer", "leaps", "not determined", "rope\nball", "a hall")
    assert json.loads(index.items[0].details)["detections"][0]["label"] == "person"
    assert index.neighbours(0) == [1, 2]
    assert index.items[1].read_picture() == (tmp_path / "a.vip" / "keyframes" / "0003.jpg").read_bytes()
    assert index.items[1].media_type == "image/jpeg"


def test_the_keyframes_folder_of_a_run_stands_for_the_run(tmp_path: Path) -> None:
    make_run(tmp_path / "a.vip")
    assert read_items(tmp_path / "a.vip" / "keyframes").folder == tmp_path / "a.vip"


def test_runs_of_one_video_in_a_folder_keep_apart(tmp_path: Path) -> None:
    for name in ("a.vip", "b.vip"):
        make_run(tmp_path / name)
    index = read_items(tmp_path)
    assert [item.id for item in index.items] == ["a.vip/k0", "a.vip/k3", "a.vip/k7", "b.vip/k0", "b.vip/k3", "b.vip/k7"]
    assert index.neighbours(2) == [0, 1]
    assert index.neighbours(3) == [4, 5]


@pytest.mark.parametrize("kind", ["parquet", "webdataset"])
def test_a_data_set_is_read_without_its_pictures_which_are_read_one_by_one(tmp_path: Path, kind: str) -> None:
    if kind == "parquet":
        pytest.importorskip("pyarrow")
    made = [sample("abc", 3, size=1000), sample("xyz", 2, size=900)]
    write_shard(str(tmp_path), 0, made, kind)  # type: ignore[arg-type]
    index = read_items(tmp_path)
    assert [item.id for item in index.items] == ["abc:0001", "abc:0002", "abc:0003", "xyz:0001", "xyz:0002"]
    expected = [frame.picture for one in made for frame in one.frames]
    assert [item.read_picture() for item in index.items] == expected
    assert index.items[0].texts[4] == "rope\nball"
    assert index.neighbours(3) == [4]
    details = json.loads(index.items[0].details)
    assert [(one["label"], one["box_xyxy"]) for one in details["detections"]] == [
        (one.label, list(one.box_xyxy)) for one in made[0].frames[0].keyframe.detections or ()
    ]


def test_a_claim_without_support_flags_its_field(tmp_path: Path) -> None:
    index = read_items(make_described(tmp_path / "a", 4))
    assert [item.flagged for item in index.items] == [(), (), ("objects",), ()]


@pytest.mark.parametrize(("after", "is_flagged"), [(None, True), ("a dancer", True), ("a singer", False), ("", False)])
def test_a_claim_that_the_second_look_changed_flags_nothing(after: str | None, is_flagged: bool) -> None:
    check = Check(field="focus", claim="a dancer", verdict="unsupported", after=after)
    others = [Check(field="mood", claim="calm", verdict=verdict) for verdict in ("supported", "unchecked")]  # type: ignore[arg-type]
    assert flagged_in(Verification(checks=(*others, check, check))) == (("focus",) if is_flagged else ())


def test_what_was_described_last_is_reviewed_also_where_it_still_stands_in_the_journal(tmp_path: Path) -> None:
    folder = make_described(tmp_path / "a", 2)
    rows = list(store.read_rows(folder / store.DESCRIPTIONS, Description))
    store.write_rows(folder / store.JOURNAL, [rows[1].model_copy(update={"dense_caption": "Described again."})])
    assert [item.texts[0] for item in read_items(folder).items] == [rows[0].dense_caption, "Described again."]


def test_what_is_not_described_cannot_be_reviewed(tmp_path: Path) -> None:
    make_pictures(tmp_path / "photos")
    with pytest.raises(InputError, match=r"no keyframe has a description yet\. Run"):
        read_items(tmp_path / "photos")
    with pytest.raises(InputError, match="is not a folder"):
        read_items(tmp_path / "nothing")


def test_two_keyframes_with_one_id_are_refused(tmp_path: Path) -> None:
    folder = make_described(tmp_path / "a", 1)
    rows = (folder / "keyframes.jsonl").read_text()
    (folder / "keyframes.jsonl").write_text(rows + rows)
    (folder / "descriptions.jsonl").write_text((folder / "descriptions.jsonl").read_text())
    index = read_items(folder)
    assert len(index.items) == 1  # its description belongs to the first


def test_a_picture_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    folder = make_described(tmp_path / "a", 1)
    (tmp_path / "secret").write_bytes(b"secret")
    (folder / "one.jpg").unlink()
    (folder / "one.jpg").symlink_to(tmp_path / "secret")
    with pytest.raises(InputError, match="link"):
        read_items(folder).items[0].read_picture()


@pytest.mark.skipif(os.name == "nt", reason="the folder of a file is not opened by its number there")
def test_a_picture_in_a_folder_that_is_a_link_is_not_read(tmp_path: Path) -> None:
    folder = make_described(tmp_path / "a", 1)
    (tmp_path / "private").mkdir()
    (folder / "one.jpg").rename(tmp_path / "private" / "one.jpg")
    (folder / "out").symlink_to(tmp_path / "private")
    rows = (folder / store.KEYFRAMES).read_text()
    (folder / store.KEYFRAMES).write_text(rows.replace('"one.jpg"', '"out/one.jpg"'))
    with pytest.raises(InputError, match="cannot be read"):
        read_items(folder).items[0].read_picture()


def test_a_damaged_shard_is_named(tmp_path: Path) -> None:
    write_shard(str(tmp_path), 0, [sample("abc", 1)], "webdataset")
    path = next((tmp_path / "shards").glob("*.tar"))
    data = path.read_bytes()
    path.write_bytes(data[:600].ljust(len(data), b"x"))
    with pytest.raises(StoreError, match=r"00000\.tar: damaged"):
        read_items(tmp_path)


def lead_back(path: Path) -> None:
    """Give the last file of a tar a size that leads back to its own beginning."""
    with tarfile.open(path) as archive:
        names = archive.getnames()
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.pax_headers = 5, {"size": "-1536"} if name == names[-1] else {}
            archive.addfile(member, BytesIO(b"12345"))


def test_a_shard_whose_rows_repeat_one_picture_to_far_more_than_its_file_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    info = write_shard(str(tmp_path), 0, [sample("abc", 40, size=500)], "parquet")
    path = tmp_path / "shards" / info.file
    table = pq.read_table(path)
    column = table.schema.get_field_index("picture")
    picture = {"bytes": b"x" * 100_000, "path": "0001.jpg"}
    same = table.set_column(column, table.schema.field(column), pa.array([picture] * 40, table.schema.field(column).type))
    pq.write_table(same, path, compression="ZSTD")
    monkeypatch.setattr(parquet, "GROUP_BYTES", 1000)
    monkeypatch.setattr(parquet, "MOST_RATIO", 20)
    shard = open_shard(str(tmp_path), info)
    assert len(list(shard.rows())) == 40
    with pytest.raises(StoreError, match=r"damaged \(rows of more than"):
        shard.read(0)
    monkeypatch.setattr(parquet, "MOST_RATIO", 1000)
    assert shard.read(39) == picture["bytes"]
    monkeypatch.setattr(parquet, "MOST_RATIO", 0)
    with pytest.raises(StoreError, match=r"damaged \(rows of more than"):
        list(shard.rows())
    with pytest.raises(StoreError, match=r"damaged \(rows of more than"):
        keyframes_of(str(tmp_path), info)


def test_a_shard_that_never_ends_is_damaged(tmp_path: Path) -> None:
    info = write_shard(str(tmp_path), 0, [sample("abc", 1)], "webdataset")
    lead_back(tmp_path / "shards" / info.file)
    with pytest.raises(StoreError, match=r"00000\.tar"):
        list(open_shard(str(tmp_path), info).rows())
    with pytest.raises(StoreError, match=r"00000\.tar"):
        keyframes_of(str(tmp_path), info)


def test_a_shard_that_unpacks_to_far_more_is_not_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pyarrow")
    info = write_shard(str(tmp_path), 0, [sample("abc", 1)], "parquet")
    monkeypatch.setattr(parquet, "MOST_GROUP_BYTES", 1000)
    with pytest.raises(StoreError, match="a row group of"):
        list(open_shard(str(tmp_path), info).rows())
    with pytest.raises(StoreError, match="a row group of"):
        keyframes_of(str(tmp_path), info)


def named_video(folder: Path, path: Path, *, own: bool) -> Path:
    """A described run whose manifest names this video."""
    run = make_run(folder)
    assert run.manifest is not None
    video = run.manifest.video.model_copy(update={"path": str(path), "size_bytes": 1000})
    manifest = run.manifest.model_copy(update={"video": video})
    signed = manifest.model_copy(update={"signature": user_state.signature(manifest.origin)}) if own else manifest
    store.write_json(folder / store.MANIFEST, signed)
    return folder


@pytest.mark.parametrize("own", [True, False])
def test_a_video_is_played_and_a_link_to_something_else_in_its_place_is_not(own: bool, tmp_path: Path) -> None:
    secret, film = tmp_path / "private" / "secret.key", tmp_path / "private" / "film.mp4"
    secret.parent.mkdir()
    for path in (secret, film):
        path.write_bytes(bytes(1000))
    video = tmp_path / "home" / "video.mp4"
    index = read_items(named_video(tmp_path / "home" / "a.vip", video, own=own))
    assert index.video_file(0) is None
    video.write_bytes(bytes(1000))
    found = index.video_file(0)
    assert found is not None
    assert found.samefile(video)
    for target, is_played in ((secret, False), (film, own)):
        video.unlink()
        video.symlink_to(target)
        assert (index.video_file(0) is not None) is is_played, target
    video.unlink()
    video.write_bytes(bytes(1001))
    assert index.video_file(0) is None


def test_each_run_of_a_folder_plays_its_own_video(tmp_path: Path) -> None:
    films = [tmp_path / "runs" / f"{name}.mp4" for name in "abc"]
    for film in films:
        named_video(film.with_suffix(".vip"), film, own=True)
        film.write_bytes(bytes(1000))
    films[1].unlink()
    index = read_items(tmp_path / "runs")
    found = [index.video_file(index.numbers[f"{name}.vip/k3"]) for name in "abc"]
    assert found == [films[0], None, films[2]]
