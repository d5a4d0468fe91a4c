"""An index that lies elsewhere, as on S3: its database is copied here to be searched, and back when something was added.

    s3://BUCKET/INDEX/index.sqlite    the database; its version names the versions of the tables
    s3://BUCKET/INDEX/embedder-N/     the tables of vectors, which are searched where they lie

In: the address of an index. Out: the index, open. Where two machines add to it at once, the second to end says so, and adds at its next
search.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from vip import files, user_state
from vip.dataset import storage
from vip.dataset.sanitize import without_secrets
from vip.errors import StoreError
from vip.locks import in_use
from vip.search.index import DATABASE, SearchIndex, opened

STATE = "remote-state"
"""The state of the database from which the copy was made; missing while the copy has more than that."""
MOST_STATE = 1000


@contextmanager
def opened_at(place: str | Path) -> Iterator[SearchIndex]:
    """Open the index at an address, and create it where there is none.

    Raises:
        StoreError: it cannot be read.
    """
    address = str(place)
    if folder := storage.local_path(address):
        with opened(folder) as index:
            yield index
    else:
        with opened(_fetched(address), address) as index:
            yield index


def _fetched(address: str) -> Path:
    """Return the folder with the copy of an index, as new as the index itself."""
    folder = user_state.cache_folder() / "search" / hashlib.sha256(address.encode()).hexdigest()[:20]
    state = storage.state_of(address, DATABASE)
    files.make_folder(folder)
    with in_use(folder):
        if state is not None and state != _known_state(folder):
            _forget(folder)
            with storage.reading(address, DATABASE) as there, files.replacing(folder / DATABASE, inside=folder) as here:
                shutil.copyfileobj(there, here)
            _note_state(folder, state)
    return folder


@contextmanager
def publishing(index: SearchIndex) -> Iterator[None]:
    """Copy the database to where the index lies, at the end of the block.

    Raises:
        StoreError: it cannot be written, or another machine has added to it in the meantime.
    """
    if not index.is_remote:
        yield
        return
    known = _known_state(index.folder)
    (index.folder / STATE).unlink(missing_ok=True)
    yield
    index.close_journal()
    if storage.state_of(index.address, DATABASE) != known:
        raise StoreError(f"{without_secrets(index.address)}: another machine has added to it in the meantime. Search once more.")
    with storage.writing(index.address, DATABASE) as there, files.open_file(index.folder / DATABASE, most_bytes=2**50) as here:
        shutil.copyfileobj(here, there)
    _note_state(index.folder, storage.state_of(index.address, DATABASE) or "")


def is_published(index: SearchIndex) -> bool:
    """Return whether everything in a copy is also in the index."""
    return not index.is_remote or _known_state(index.folder) is not None


def _known_state(folder: Path) -> str | None:
    try:
        return files.read_bytes(folder / STATE, inside=folder, most_bytes=MOST_STATE).decode("utf-8", "replace")
    except OSError:
        return None


def _note_state(folder: Path, state: str) -> None:
    with files.replacing(folder / STATE, inside=folder) as file:
        file.write(state.encode())


def _forget(folder: Path) -> None:
    """Delete a copy, and the vectors that wait beside it."""
    for path in folder.iterdir():
        if path.name.startswith("embedder-"):
            files.remove_folder(path)
        elif path.name.startswith(DATABASE) or path.name == STATE:
            with suppress(FileNotFoundError):
                path.unlink()
