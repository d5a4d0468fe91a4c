"""samples.jsonl and predictions.jsonl: written whole, read row by row, checked by their ids."""

from __future__ import annotations

import csv
import heapq
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from hashlib import blake2b, sha256
from pathlib import Path
from random import Random

from vip import files, store, user_state
from vip.errors import InputError, StoreError, UsageError
from vip.tasks.records import Prediction, Sample
from vip.untrusted import one_line
from vip.wording import option

MOST_NAME_BYTES = 255  # of a name in a folder


def check_new(path: Path, *, overwrite: bool) -> None:
    """Make the folder of a file that is to be written, and refuse to replace a file unasked.

    Raises:
        UsageError: there is one, or a folder.
        StoreError: the folder cannot be made.
    """
    check_is_file(path)
    store.make_folder(path.parent)
    if not overwrite and store.exists(path):
        raise UsageError(f"{path} exists already. Add {option('overwrite')} to replace it, or name another file with {option('out')}.")


def check_is_file(path: Path) -> None:
    """Refuse a folder in the place of a file.

    Raises:
        UsageError: it is one.
    """
    if store.is_folder(path):
        raise UsageError(f"{path} is a folder. Name a file in it with {option('out')}.")


def unlinked_file(path: Path) -> Path:
    """Return a file that the user did not name, after a check that it is no link, which leads elsewhere.

    Raises:
        InputError: it is one.
    """
    if path.is_symlink():
        raise InputError(f"{path} is a link, and vip follows none inside a folder. Copy the file there, or name it.")
    return path


def file_inside(path: Path, folder: Path) -> Path:
    """Return a file of a folder that the user named, after a check that no link leads out of the folder; one to a file in it may be there.

    Raises:
        InputError: one does, or no file can have this name.
    """
    if "\0" in str(path) or any(len(part.encode(errors="replace")) > MOST_NAME_BYTES for part in path.parts):
        raise InputError(f"No file can be called {one_line(path.name)[:60]}…: it has a zero byte, or too many letters. Mend what names it.")
    if files.leads_out(path, folder):
        raise InputError(f"{path} leads out of {folder} by a link, and vip follows none of those. Copy the file there.")
    return path


def digest_of(name: str, size: int) -> bytes:
    """Return what samples are drawn by: a digest of so many bytes of a name, which need not be UTF-8."""
    return blake2b(name.encode(errors="surrogatepass"), digest_size=size).digest()


def chance_of(name: str) -> Random:
    """Return what is drawn from for a name, which need not be UTF-8; for others it is that of `Random(name)`."""
    return Random(name.encode(errors="surrogatepass"))


def draw_samples(samples: Iterable[Sample], most: int | None, seed: int) -> Iterable[Sample]:
    """Return at most so many samples, those with the smallest hash of seed and id, in their own order; all of them for None."""
    if most is None:
        return samples
    chosen = heapq.nsmallest(most, enumerate(samples), key=lambda one: digest_of(f"{seed} {one[1].id}", 16))
    return [sample for _, sample in sorted(chosen, key=lambda one: one[0])]


def write_samples(path: Path, samples: Iterable[Sample], *, is_own: bool = True) -> int:
    """Write the samples and return their number.

    Args:
        is_own: remember that this machine made the file, which may name any folder then; not where others named them.
    """
    count = 0

    def counted(rows: Iterable[Sample]) -> Iterator[Sample]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    store.write_rows(path, counted(samples))
    if is_own:
        with suppress(StoreError):  # where nothing can be remembered, the file counts as one of another machine
            trust(path)
    return count


def is_trusted(path: Path) -> bool:
    """Return whether this machine made a file of samples, or its user trusts it: the content decides, and not where it lies."""
    return user_state.knows("samples", file_sha256(path))


def trust(path: Path) -> None:
    """Remember that a file of samples may name any folder of this machine, as long as its content is this.

    Raises:
        StoreError: this cannot be saved.
    """
    user_state.remember("samples", file_sha256(path))


def distrust(path: Path) -> None:
    """Withdraw the permission for a file of samples with this content."""
    user_state.forget("samples", file_sha256(path))


def read_samples(path: Path) -> Iterator[Sample]:
    """Yield the samples of a file in order.

    Raises:
        InputError: the file is missing or damaged; the message names the line.
    """
    yield from _rows(path, Sample, "Give the file that `vip samples` wrote.")


def read_predictions(path: Path) -> Iterator[Prediction]:
    """Yield the predictions of a file that vip wrote.

    Raises:
        InputError: the file is missing or damaged; the message names the line.
    """
    yield from _rows(path, Prediction, "Give the file that `vip predict` wrote.")


def _rows(path: Path, kind: type[store.RecordT], advice: str) -> Iterator[store.RecordT]:
    if not store.exists(path):
        raise InputError(f"{path} does not exist. Check the path.")
    try:
        with closing(store.read_rows(path, kind, advice=advice)) as rows:  # type: ignore[type-var]
            yield from rows
    except StoreError as exc:
        raise InputError(str(exc)) from exc


@contextmanager
def csv_errors(path: Path) -> Iterator[None]:
    """Turn what the CSV reader of Python raises, such as of a cell of 131,073 letters, into one sentence."""
    try:
        yield
    except csv.Error as exc:
        raise InputError(f"{path} is no CSV ({exc}). Save it as CSV again.") from exc


def file_sha256(path: Path) -> str:
    """Return the SHA-256 of a file, read in pieces."""
    digest = sha256()
    with files.open_named(path) as file:
        while block := file.read(2**20):
            digest.update(block)
    return digest.hexdigest()
