"""Files under any address: on this machine without further libraries, on S3 and others through fsspec.

In: an address that a user gave, and names below it. On this machine no link below the address is followed (`vip.files`). A file appears
under its name when it is whole, or not at all. Each library finds its credentials in its usual places; they are never shown.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import IO, Any

from vip import files, store
from vip.dataset.sanitize import LOGIN, without_secrets
from vip.errors import BackendError, StoreError, UsageError

MOST_BYTES = 2**50  # of a shard, which is not read whole
MOST_SMALL_BYTES = 2**30  # of a sidecar: it lists the videos of its shard
BLOCK_BYTES = 16 * 2**20  # of an upload in several requests: S3 takes 10,000 of them, from 5 MB on
PACKAGES = {"s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs"}
ENVIRONMENT = {
    "s3": "AWS_ACCESS_KEY_ID",
    "s3a": "AWS_ACCESS_KEY_ID",
    "gs": "GOOGLE_APPLICATION_CREDENTIALS",
    "gcs": "GOOGLE_APPLICATION_CREDENTIALS",
}
CLIENTS = ("aiobotocore", "aiohttp", "azure", "botocore", "gcsfs", "google", "requests", "s3fs", "urllib3")
"""Libraries whose errors are errors of the storage."""


def local_path(address: str) -> Path | None:
    """Return the path of an address on this machine; None for any other address."""
    if address.startswith("file://"):
        return Path(address.removeprefix("file://"))
    return None if "://" in address else Path(address)


def join(address: str, *names: str) -> str:
    return "/".join((address.rstrip("/") or address, *names)) if names else address


def library(name: str) -> Any:
    """Import a module that only data sets need.

    Raises:
        BackendError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError as exc:
        raise BackendError(f"A data set needs {name.partition('.')[0]}. Install it with pip install 'vip-keyframes[batch]'.") from exc


@contextmanager
def writing(address: str, *names: str) -> Iterator[IO[bytes]]:
    """Open a file to write, which appears under its name at the end; if the block fails, the old file stays.

    Raises:
        StoreError: it cannot be written.
        BackendError: a library for this kind of address is missing.
    """
    whole, top = join(address, *names), local_path(address)
    with _translate_errors(whole, "written"), _open_replacement(top, *names) if top else _open_upload(whole) as file:
        yield file


def write_whole(data: bytes, address: str, *names: str) -> None:
    """Write a small file, in a single request where it is not on this machine; errors as of `writing`."""
    if local_path(address):
        with writing(address, *names) as file:
            file.write(data)
    else:
        with _translate_errors(join(address, *names), "written"):
            system, place = _file_system(join(address, *names))
            system.pipe_file(place, data)


@contextmanager
def reading(address: str, *names: str) -> Iterator[IO[bytes]]:
    """Open a file to read, with seeking.

    Raises:
        StoreError: it cannot be read.
    """
    with _translate_errors(join(address, *names), "read"):
        if path := local_path(address):
            with files.open_file(path.joinpath(*names), inside=path if names else None, most_bytes=MOST_BYTES) as file:
                yield file
        else:
            system, place = _file_system(join(address, *names))
            with closing(system.open(place, "rb", block_size=BLOCK_BYTES // 4, cache_type="readahead")) as remote:
                yield remote


def read_whole(address: str, *names: str) -> bytes:
    """Return the bytes of a small file.

    Raises:
        StoreError: it cannot be read, or is too large.
    """
    with reading(address, *names) as file, _translate_errors(join(address, *names), "read"):
        data = file.read(MOST_SMALL_BYTES + 1)
        if len(data) > MOST_SMALL_BYTES:
            raise OSError(errno.EFBIG, f"it is larger than {MOST_SMALL_BYTES:,} bytes")
        return data


def sizes_in(address: str, *names: str) -> dict[str, int]:
    """Return the names of the files in a folder, in order, and their bytes, without links; none where there is no folder."""
    folder = join(address, *names)
    with _translate_errors(folder, "read"):
        if top := local_path(address):
            path = top.joinpath(*names)
            found = ((name, path / name) for name in files.names_in(path, inside=top))
            return {name: there.lstat().st_size for name, there in found if stat.S_ISREG(there.lstat().st_mode)}
        system, place = _file_system(folder)
        system.invalidate_cache()  # other machines write there too
        try:
            entries = system.ls(place, detail=True)
        except FileNotFoundError:
            return {}
        return {entry["name"].rpartition("/")[2]: entry["size"] for entry in _sort_entries(entries) if entry["type"] == "file"}


def size_of(address: str, *names: str) -> int | None:
    """Return the bytes of a file; None where there is none."""
    whole = join(address, *names)
    with _translate_errors(whole, "read"):
        try:
            if top := local_path(address):
                with files.open_file(top.joinpath(*names), inside=top if names else None, most_bytes=MOST_BYTES) as file:
                    return os.fstat(file.fileno()).st_size
            system, place = _file_system(whole)
            system.invalidate_cache()
            return int(system.size(place))
        except FileNotFoundError:
            return None


def state_of(address: str, *names: str) -> str | None:
    """Return a text that changes when a file that is not on this machine does; None where there is none."""
    whole = join(address, *names)
    with _translate_errors(whole, "read"):
        system, place = _file_system(whole)
        system.invalidate_cache()
        try:
            found = system.info(place)
        except FileNotFoundError:
            return None
        known = (found.get(name) for name in ("ETag", "etag", "LastModified", "mtime", "updated", "last_modified"))
        return " ".join(str(value) for value in (found["size"], *known) if value is not None)


def is_empty(folder: str) -> bool:
    """Return whether nothing is in the folder but partial files of a killed run."""
    if path := local_path(folder):
        return store.is_empty(path)
    with _translate_errors(folder, "read"):
        system, place = _file_system(folder)
        system.invalidate_cache()
        try:
            return not system.ls(place, detail=False)
        except FileNotFoundError:
            return True


def remove(address: str, *names: str) -> None:
    """Delete a file, if it is there; errors as of `writing`."""
    with _translate_errors(join(address, *names), "deleted"), suppress(FileNotFoundError):
        if path := local_path(address):
            files.remove(path.joinpath(*names), inside=path if names else None)
        else:
            system, place = _file_system(join(address, *names))
            system.rm_file(place)


# ---------------------------------------------------------------- on this machine


@contextmanager
def _open_replacement(top: Path, *names: str) -> Iterator[IO[bytes]]:
    """Open a file as `files.replacing` does, durably, and make the folders above it."""
    inside, path = (top if names else top.parent), top.joinpath(*names)
    store.make_folder(inside)
    for folder in reversed([one for one in path.parents if one != inside and one.is_relative_to(inside)]):
        store.make_folder(folder, inside=inside)
    with files.replacing(path, inside=inside, durable=True) as file:
        yield file


# ---------------------------------------------------------------- elsewhere


@contextmanager
def _open_upload(address: str) -> Iterator[IO[bytes]]:
    """Open a file in a transaction of fsspec. Without it, closing a file would also finish an upload that failed."""
    system, place = _file_system(address)
    file = system.open(place, "wb", block_size=BLOCK_BYTES, autocommit=False)
    try:
        yield file
        file.close()
        file.commit()
    except BaseException:
        _discard(file)
        raise


def _discard(file: Any) -> None:
    """Delete what was uploaded, if the server still answers."""
    with suppress(Exception):
        file.discard()
    file.closed = True  # or its destructor uploads the rest


def _file_system(address: str) -> tuple[Any, str]:
    """Return fsspec's file system of the address, and the path in it."""
    scheme = address.partition("://")[0]
    if scheme in ENVIRONMENT and LOGIN.search(address):
        raise UsageError(f"{without_secrets(address)} came with credentials. Leave them out, and set {ENVIRONMENT[scheme]} instead.")
    try:
        system, place = library("fsspec.core").url_to_fs(address)
    except ImportError as exc:
        needed = PACKAGES.get(scheme)
        raise BackendError(f"{scheme}:// needs {needed}. Install it with pip install {needed}." if needed else f"{exc}.") from exc
    except ValueError as exc:
        raise UsageError(f"{without_secrets(address)} is no address of files. Give a folder, or s3://BUCKET/FOLDER.") from exc
    return system, place


@contextmanager
def _translate_errors(address: str, done: str) -> Iterator[None]:
    try:
        yield
    except OSError as exc:
        raise StoreError(_error_sentence(address, done, exc.strerror or str(exc))) from exc
    except Exception as exc:
        if not type(exc).__module__.startswith(CLIENTS):
            raise
        raise StoreError(_error_sentence(address, done, str(exc))) from exc


def _error_sentence(address: str, done: str, why: str) -> str:
    if login := LOGIN.search(address):
        why = why.replace(login[0].removesuffix("@"), "***")
    why = " ".join(without_secrets(why).split()).rstrip(".") or "no reason given"
    advice = "Choose another folder, or make room." if local_path(address) else "Check the address and the credentials, and try again."
    return f"{without_secrets(address)} cannot be {done}: {why}. {advice}"


def _sort_entries(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(entries, key=lambda entry: str(entry["name"]))
