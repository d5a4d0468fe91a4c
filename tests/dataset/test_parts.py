"""Parts: what is packed comes back, is described in between, and is never half there."""

from __future__ import annotations

import errno
import os
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given

from tests.corpus.making import clip_from_run, sample, samples, with_text
from tests.report.runs import make_pictures
from tests.test_store import fail_with
from vip.dataset.parts import add, add_descriptions, is_whole, members, pack, read_part, unpack
from vip.dataset.rows import VideoSample, sample_of
from vip.errors import StoreError
from vip.pipeline import caption
from vip.store import load_run


@pytest.mark.slow
@given(samples())
def test_what_is_packed_comes_back(tmp_path_factory: pytest.TempPathFactory, given: VideoSample) -> None:
    path = tmp_path_factory.mktemp("parts") / "a.tar"
    pack(path, given)
    assert read_part(path) == given


def test_the_same_clip_gives_the_same_bytes_at_any_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = clip_from_run(tmp_path)
    pack(tmp_path / "a", made)
    monkeypatch.setattr("time.time", lambda: 1e9)
    pack(tmp_path / "b", made)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_any_program_for_archives_opens_a_part(tmp_path: Path) -> None:
    pack(tmp_path / "a.tar", sample(count=2))
    with tarfile.open(tmp_path / "a.tar") as archive:
        assert archive.getnames() == [
            *("video.json", "keyframes.jsonl", "descriptions.jsonl", "failures.jsonl", "vectors.npy"),
            *("keyframes/0001.jpg", "keyframes/0002.jpg"),
        ]


def test_a_part_that_was_cut_off_is_never_taken_for_whole(tmp_path: Path) -> None:
    whole = sample(count=2)
    pack(tmp_path / "a.tar", whole)
    data = (tmp_path / "a.tar").read_bytes()
    with tarfile.open(tmp_path / "a.tar") as archive:
        last = archive.getmembers()[-1]
    end = last.offset_data + last.size  # behind it there are only zeros
    for length in {*range(0, end, 97), *range(512, end, 512), end - 1}:
        (tmp_path / "torn.tar").write_bytes(data[:length])
        with pytest.raises(StoreError, match=r"torn\.tar"):
            read_part(tmp_path / "torn.tar")


@pytest.mark.parametrize("content", [b"", b"no archive", os.urandom(20_000)])
def test_a_file_that_is_no_part_is_named(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.tar").write_bytes(content)
    with pytest.raises(StoreError, match=r"x\.tar"):
        read_part(tmp_path / "x.tar")


def test_an_archive_of_something_else_is_no_part(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        add(archive, "../../escape", b"x")
        archive.addfile(tarfile.TarInfo("folder/"))
    with pytest.raises(StoreError, match=r"x\.tar: damaged \('video\.json'\)"):
        read_part(tmp_path / "x.tar")
    with pytest.raises(StoreError, match="cannot be read"):
        read_part(tmp_path / "none.tar")


def test_an_unpacked_part_is_described_and_packed_again(tmp_path: Path) -> None:
    before = clip_from_run(tmp_path, described=False)
    pack(tmp_path / "a.tar", before)
    run = unpack(tmp_path / "a.tar", tmp_path / "work")
    assert run.manifest
    assert load_run(tmp_path / "work").manifest == run.manifest
    caption(run, engine="fake")
    add_descriptions(tmp_path / "a.tar", run)
    after = read_part(tmp_path / "a.tar")
    assert [frame.description and frame.description.engine for frame in after.frames] == ["fake"] * 3
    assert after.video.captioning
    assert after.video.captioning["engine"] == after.frames[0].description.engine  # type: ignore[union-attr]
    assert [(frame.keyframe, frame.picture) for frame in after.frames] == [(frame.keyframe, frame.picture) for frame in before.frames]


def test_why_a_keyframe_has_no_description_gets_into_the_part(tmp_path: Path) -> None:
    pack(tmp_path / "a.tar", clip_from_run(tmp_path, failed=1))
    run = unpack(tmp_path / "a.tar", tmp_path / "work")
    assert [failure.item for failure in run.failures] == ["abc:0003"]
    assert [row.keyframe_id for row in run.descriptions] == ["abc:0001", "abc:0002"]
    add_descriptions(tmp_path / "a.tar", run)
    assert read_part(tmp_path / "a.tar") == clip_from_run(tmp_path, failed=1)


def test_an_unpacked_part_has_the_text_of_its_pictures_and_the_subtitles_that_were_asked_for(tmp_path: Path) -> None:
    vtt = "WEBVTT\n\n00:01.000 --> 00:02.000\nHello"
    subtitles = {"en": vtt.replace("Hello", "Wrong"), "de": vtt}
    found = with_text(sample(subtitles=subtitles, info={"language": "de-AT"}, settings={"words": ["subtitles"]}))
    pack(tmp_path / "a.tar", found)
    run = unpack(tmp_path / "a.tar", tmp_path / "work")
    assert run.texts == [found.frames[0].text]
    assert [(one.start_s, one.end_s, one.text) for one in run.words] == [(1.0, 2.0, "Hello")]
    pack(tmp_path / "b.tar", sample(subtitles={"en": vtt}))
    assert unpack(tmp_path / "b.tar", tmp_path / "unasked").words == []


def test_pictures_that_come_from_no_video_are_unpacked_without_a_manifest(tmp_path: Path) -> None:
    found = sample_of(make_pictures(tmp_path / "photos"))
    pack(tmp_path / "a.tar", found)
    run = unpack(tmp_path / "a.tar", tmp_path / "work")
    assert run.manifest is None
    assert sample_of(load_run(tmp_path / "work")).frames[0].picture == found.frames[0].picture


def test_a_part_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pack(tmp_path / "a.tar", sample())
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr(tarfile.TarFile, "addfile", lambda *_: fail_with(full))
    with pytest.raises(StoreError, match="No space left"):
        pack(tmp_path / "a.tar", sample("other"))
    monkeypatch.undo()
    assert read_part(tmp_path / "a.tar") == sample()
    assert [path.name for path in tmp_path.iterdir()] == ["a.tar"]


def test_a_part_is_whole_or_not(tmp_path: Path) -> None:
    pack(tmp_path / "a.tar", sample(count=1))
    (tmp_path / "torn.tar").write_bytes((tmp_path / "a.tar").read_bytes()[:600])
    assert [is_whole(tmp_path / name) for name in ("a.tar", "torn.tar", "none.tar")] == [True, False, False]


def test_only_plain_files_of_an_archive_are_read(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        add(archive, "plain", b"x")
        for name, kind in (("link", tarfile.LNKTYPE), ("sign", tarfile.SYMTYPE), ("folder", tarfile.DIRTYPE)):
            other = tarfile.TarInfo(name)
            other.type, other.linkname = kind, "plain"
            archive.addfile(other)
    with tarfile.open(tmp_path / "x.tar") as archive:
        assert list(members(archive)) == [("plain", b"x")]


def headers(folder: Path, **pax: str) -> Path:
    """An archive of two files, the second of which has these headers."""
    path = folder / "strange.tar"
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as archive:
        add(archive, "a.json", b"{}")
        member = tarfile.TarInfo("b.json")
        member.size, member.pax_headers = 5, {name.replace("_", "."): value for name, value in pax.items()}
        archive.addfile(member, BytesIO(b"12345"))
    return path


def test_a_file_of_an_old_archive_is_read_too(tmp_path: Path) -> None:
    member = tarfile.TarInfo("a")
    member.type, member.size = tarfile.AREGTYPE, 1
    with tarfile.open(tmp_path / "old.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(member, BytesIO(b"x"))
    with tarfile.open(tmp_path / "old.tar") as archive:
        assert list(members(archive)) == [("a", b"x")]


@pytest.mark.parametrize("mode", ["r:", "r|"])
def test_a_sparse_file_that_claims_any_size_is_left_out(mode: Literal["r:"], tmp_path: Path) -> None:
    path = headers(tmp_path, GNU_sparse_map="0,5", GNU_sparse_size=str(2**60), GNU_sparse_name="b.json")
    with tarfile.open(path, mode) as archive:
        assert list(members(archive)) == [("a.json", b"{}")]


@pytest.mark.parametrize("mode", ["r:", "r|"])
def test_an_archive_that_leads_back_ends_in_an_error(mode: Literal["r:"], tmp_path: Path) -> None:
    with tarfile.open(headers(tmp_path, size="-1536"), mode) as archive, pytest.raises(tarfile.TarError):
        list(members(archive))
