"""Files under any address; a real S3 server that fails in the middle of uploads."""

from __future__ import annotations

import gc
import os
import stat
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from tests.corpus.making import sample
from tests.corpus.s3 import BLOCK_BYTES, BUCKET, S3, SECRET
from tests.test_store import fail_with
from vip.dataset import storage
from vip.dataset.shard_names import FOLDER
from vip.dataset.shards import Format, read_samples, read_shards, verify, write_shard
from vip.errors import BackendError, InputError, StoreError, UsageError

OUT = f"s3://{BUCKET}/out"
BIG = sample("big", count=3, size=BLOCK_BYTES - 1000)
both = pytest.mark.parametrize("format", ["parquet", "webdataset"])


# ---------------------------------------------------------------- S3


@pytest.mark.slow
@both
def test_shards_arrive_and_their_sidecars_after_them(s3: S3, format: Format) -> None:  # noqa: A002
    some = [sample(f"v{number}") for number in range(3)]
    files = [write_shard(OUT, number, [one], format).file for number, one in enumerate(some)]
    assert s3.puts == [f"out/{FOLDER}/{name}" for number, file in enumerate(files) for name in (file, f"{number:05d}.json")]
    assert list(read_samples(OUT)) == some
    assert list(verify(OUT)) == []
    assert not s3.uploads


@pytest.mark.slow
@both
def test_a_large_shard_is_uploaded_in_pieces(s3: S3, format: Format, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: A002
    monkeypatch.setattr(storage, "BLOCK_BYTES", BLOCK_BYTES)
    info = write_shard(OUT, 0, [BIG], format)
    assert sum("partNumber=" in path for _, path in s3.requests) >= 2
    assert len(s3.objects[f"out/{FOLDER}/{info.file}"]) == info.bytes > 2 * BLOCK_BYTES
    assert list(read_samples(OUT)) == [BIG]


@pytest.mark.slow
@both
@pytest.mark.parametrize("what", ["begin", "first piece", "second piece", "end"])
def test_a_failure_in_the_middle_of_an_upload_leaves_nothing(
    s3: S3,
    format: Format,  # noqa: A002
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "BLOCK_BYTES", BLOCK_BYTES)
    fails = {
        "begin": lambda method, path: path.endswith("?uploads") or "?uploads=" in path,
        "first piece": lambda method, path: "partNumber=1" in path,
        "second piece": lambda method, path: "partNumber=2" in path,
        "end": lambda method, path: method == "POST" and "uploadId=" in path,
    }
    s3.fails = fails[what]
    with pytest.raises(StoreError) as caught:
        write_shard(OUT, 0, [BIG], format)
    assert f"{OUT}/{FOLDER}/00000." in str(caught.value)
    assert "cannot be written: Not today. Check the address and the credentials" in str(caught.value)
    assert (s3.objects, s3.uploads) == ({}, 0)
    assert list(read_shards(OUT)) == []
    s3.fails = lambda method, path: False
    write_shard(OUT, 0, [BIG], format)
    assert list(read_samples(OUT)) == [BIG]


def test_a_failure_on_our_side_leaves_nothing_either(s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "BLOCK_BYTES", BLOCK_BYTES)
    monkeypatch.setattr("vip.dataset.parquet.GROUP_BYTES", BLOCK_BYTES)

    def torn():  # type: ignore[no-untyped-def]
        yield BIG
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_shard(OUT, 0, torn(), "parquet")
    assert any("partNumber=" in path for _, path in s3.requests)
    assert (s3.objects, s3.uploads) == ({}, 0)


def test_a_shard_whose_sidecar_cannot_be_written_is_not_whole(s3: S3) -> None:
    s3.fails = lambda method, path: method == "PUT" and path.endswith(".json")
    with pytest.raises(StoreError, match=r"00000\.json cannot be written: Not today"):
        write_shard(OUT, 0, [sample()], "parquet")
    said: list[str] = []
    assert list(read_shards(OUT, said.append)) == []
    assert "00000.parquet has no 00000.json" in said[0]


def test_a_server_that_is_gone_is_one_sentence(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    import s3fs

    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(StoreError) as caught:
        write_shard(OUT, 0, [sample()], "parquet")
    assert "cannot be written: Could not connect" in str(caught.value)
    assert "\n" not in str(caught.value)
    with pytest.raises(StoreError, match="cannot be read"):
        list(read_shards(OUT))


def test_a_bucket_that_is_not_there_is_named(s3: S3) -> None:
    with pytest.raises(StoreError, match=r"s3://nowhere/out/shards/00000\.parquet cannot be written"):
        write_shard("s3://nowhere/out", 0, [sample()], "parquet")


def test_credentials_are_not_written(s3: S3) -> None:
    write_shard(OUT, 1, [sample()], "parquet")
    assert len(s3.objects) == 2
    assert not [name for name, data in s3.objects.items() if SECRET.encode() in data]


@pytest.mark.parametrize("login", ["me:{}", "me:a/{}", "{}"])
@pytest.mark.parametrize("scheme", ["s3", "gs", "ftp"])
def test_credentials_in_an_address_are_not_shown(scheme: str, login: str) -> None:
    with pytest.raises((UsageError, StoreError)) as caught:
        storage.sizes_in(f"{scheme}://{login.format(SECRET)}@localhost:1/out?token={SECRET}")
    assert SECRET not in str(caught.value)
    assert f"{scheme}://localhost:1/out" in str(caught.value)


def test_a_login_that_a_library_repeats_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "_file_system", lambda address: fail_with(OSError(f"530 me:{SECRET} cannot log in")))
    with pytest.raises(StoreError, match=r"ftp://localhost/out cannot be read: 530 \*\*\* cannot log in\."):
        storage.sizes_in(f"ftp://me:{SECRET}@localhost/out")


def test_what_others_wrote_in_the_meantime_is_seen(s3: S3) -> None:
    import boto3

    write_shard(OUT, 0, [sample()], "parquet")
    assert [info.number for info in read_shards(OUT)] == [0]
    client = boto3.client("s3", endpoint_url=s3.address)
    client.put_object(Bucket=BUCKET, Key=f"out/{FOLDER}/00001.parquet", Body=b"x")
    assert sorted(storage.sizes_in(OUT, FOLDER)) == ["00000.json", "00000.parquet", "00001.parquet"]
    for suffix in ("parquet", "json"):
        client.delete_object(Bucket=BUCKET, Key=f"out/{FOLDER}/00000.{suffix}")
    client.close()
    assert list(read_shards(OUT)) == []


def test_no_question_is_answered_from_an_old_listing(s3: S3) -> None:
    import boto3

    client = boto3.client("s3", endpoint_url=s3.address)
    questions: list[tuple[str, Callable[[], object]]] = [
        (OUT, lambda: storage.size_of(OUT, "a")),
        (OUT, lambda: storage.state_of(OUT, "b")),  # of the same size afterwards
        (f"{OUT}/new", lambda: storage.is_empty(f"{OUT}/new")),
        (OUT, lambda: storage.sizes_in(OUT)["a"]),
    ]
    for folder, ask in questions:
        for name in ("a", "b", "new/c"):
            client.put_object(Bucket=BUCKET, Key=f"out/{name}", Body=b"x")
        before = ask()
        storage.sizes_in(folder)  # the library keeps the listing
        client.put_object(Bucket=BUCKET, Key="out/a", Body=b"xy")
        client.put_object(Bucket=BUCKET, Key="out/b", Body=b"z")
        client.delete_object(Bucket=BUCKET, Key="out/new/c")
        assert ask() != before
    client.close()


# ---------------------------------------------------------------- this machine


def test_a_file_appears_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.bin"
    with storage.writing(str(path)) as file:
        file.write(b"half")
        assert not path.exists()
    assert path.read_bytes() == b"half"
    with pytest.raises(TypeError), storage.writing(str(path)) as file:
        file.writelines([b"other", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"half"
    assert [one.name for one in path.parent.iterdir()] == ["a.bin"]


def test_a_file_is_on_the_disk_before_it_has_its_name_and_its_name_after(tmp_path: Path, disk_steps: list[str]) -> None:
    with storage.writing(str(tmp_path / "a.bin")) as file:
        file.write(b"123")
    storage.write_whole(b"12345", str(tmp_path / "b.bin"))
    assert disk_steps == ["3 bytes", "name", "folder", "5 bytes", "name", "folder"]


def test_two_writers_of_one_file_do_not_mix(tmp_path: Path) -> None:
    path = tmp_path / "a.bin"
    with storage.writing(str(path)) as one, storage.writing(f"file://{path}") as other:
        one.write(b"1" * 100)
        other.write(b"2" * 50)
    assert path.read_bytes() == b"1" * 100
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="modes of POSIX")
def test_a_file_can_be_read_by_whom_the_user_allows(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        storage.write_whole(b"x", str(tmp_path / "a"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640


def test_a_folder_that_cannot_be_written_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file cannot be written: File exists"):
        storage.write_whole(b"x", str(tmp_path / "file" / "a.bin"))
    with (
        pytest.raises(StoreError, match=r"cannot be read: No such file or directory\. Choose another folder"),
        storage.reading(str(tmp_path / "none")),
    ):
        pass


LINKED = "it is a link, or lies behind one"


@pytest.mark.skipif(sys.platform == "win32", reason="links of POSIX")
def test_no_link_below_the_folder_that_was_named_is_followed(tmp_path: Path) -> None:
    mine, out = tmp_path / "mine", tmp_path / "out"
    mine.mkdir()
    (mine / "a").write_bytes(b"mine")
    out.mkdir()
    (out / "shards").symlink_to(mine)
    (out / "a").symlink_to(mine / "a")
    for names in (("shards", "a"), ("a",)):
        with pytest.raises(StoreError, match=LINKED), storage.reading(str(out), *names):
            pass
        with pytest.raises(StoreError, match=LINKED):
            storage.size_of(str(out), *names)
    with pytest.raises(StoreError, match=LINKED):
        storage.write_whole(b"x", str(out), "shards", "a")
    with pytest.raises(StoreError, match=LINKED):
        storage.remove(str(out), "shards", "a")
    assert storage.sizes_in(str(out), "shards") == {}
    assert storage.sizes_in(str(out)) == {}
    storage.write_whole(b"x", str(out), "a")  # in the place of the link, and not where it leads
    assert (mine / "a").read_bytes() == b"mine"
    assert not (out / "a").is_symlink()
    named = tmp_path / "named"
    named.symlink_to(out)
    with storage.reading(str(named), "a") as file:  # what the command names may be one
        assert file.read() == b"x"


def test_errors_of_vip_and_of_programmers_pass_through(tmp_path: Path) -> None:
    for error in (InputError("x"), TypeError("x")):
        with pytest.raises(type(error)), storage.writing(str(tmp_path / "a")):
            raise error


# ---------------------------------------------------------------- other addresses


@pytest.mark.parametrize("folder", ["{}", "memory://files"])
def test_files_are_listed_read_and_deleted_under_any_address(folder: str, tmp_path: Path) -> None:
    place = folder.format(tmp_path / "files")
    assert storage.sizes_in(place) == {}
    assert storage.is_empty(place)
    for name in ("b", "a"):
        storage.write_whole(name.encode() * 3, place, name)
    storage.write_whole(b"", place, "deep", "c")
    assert storage.sizes_in(place) == {"a": 3, "b": 3}
    assert not storage.is_empty(place)
    assert [storage.size_of(place, name) for name in ("a", "none")] == [3, None]
    with storage.reading(place, "a") as file:
        file.seek(1)
        assert file.read() == b"aa"
    for _ in range(2):
        storage.remove(place, "a")
    assert storage.sizes_in(place) == {"b": 3}


class Elsewhere:
    """A file system that says what it is told to say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, **answers: object) -> None:
        monkeypatch.setattr(storage, "_file_system", lambda address: (self, "place"))
        self.answers = answers

    def invalidate_cache(self) -> None:
        pass

    def ls(self, place: str, *, detail: bool) -> object:
        return self.answers["ls"]

    def info(self, place: str) -> object:
        return self.answers["info"]

    def open(self, *args: object, **options: object) -> object:
        return self.answers["open"]


def test_files_are_listed_in_order_whatever_the_server_does(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [{"name": f"out/{name}", "size": 1, "type": kind} for name, kind in (("b", "file"), ("c", "directory"), ("a", "file"))]
    Elsewhere(monkeypatch, ls=entries)
    assert list(storage.sizes_in("x://out")) == ["a", "b"]


@pytest.mark.parametrize("name", ["ETag", "etag", "LastModified", "mtime", "updated", "last_modified", "size"])
def test_a_file_has_another_state_once_anything_of_it_changes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    system = Elsewhere(monkeypatch, info={"size": 1, name: 1})
    before = storage.state_of("x://out", "a")
    system.answers["info"] = {"size": 1, name: 2}
    assert storage.state_of("x://out", "a") != before


def test_a_file_that_is_not_there_has_no_state_and_no_size() -> None:
    pytest.importorskip("fsspec")
    assert storage.state_of("memory://nowhere", "a") is None
    assert storage.size_of("memory://nowhere", "a") is None
    assert storage.sizes_in("memory://nowhere", "a") == {}


@pytest.mark.usefixtures("_new_objects_only")
def test_what_is_left_of_a_failed_upload_is_not_sent_when_it_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    from fsspec.spec import AbstractBufferedFile

    sent: list[bytes] = []

    class Upload(AbstractBufferedFile):
        def _upload_chunk(self, final: bool = False) -> bool:
            sent.append(self.buffer.getvalue())
            return True

    Elsewhere(monkeypatch, open=Upload(None, "place", "wb"))

    def write_half() -> None:
        with storage.writing("x://out", "a") as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_half()
    monkeypatch.undo()
    gc.collect()
    assert sent == []


def test_a_library_that_is_missing_is_named_with_how_to_install_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    monkeypatch.delitem(import_module("fsspec.registry")._registry, "s3", raising=False)
    with pytest.raises(BackendError, match=r"s3:// needs s3fs\. Install it with pip install s3fs\."):
        storage.sizes_in("s3://bucket/out")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(BackendError, match=r"needs pyarrow\. Install it with pip install 'vip-keyframes\[batch\]'\."):
        write_shard(str(tmp_path), 0, [sample()], "parquet")


def test_an_address_of_no_known_kind_is_a_wrong_option() -> None:
    with pytest.raises(UsageError, match="nosuch://x/out"):
        storage.sizes_in("nosuch://x/out?secret=1")


def test_addresses_are_put_together_with_one_slash() -> None:
    assert storage.join("s3://bucket/out/", "shards", "a") == "s3://bucket/out/shards/a"
    assert storage.join("out/") == "out/"


def test_a_sidecar_beyond_all_reason_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MOST_SMALL_BYTES", 10)
    for size in (10, 11):
        storage.write_whole(b"x" * size, str(tmp_path), str(size))
    assert storage.read_whole(str(tmp_path), "10") == b"x" * 10
    with pytest.raises(StoreError, match="it is larger than 10 bytes"):
        storage.read_whole(str(tmp_path), "11")
