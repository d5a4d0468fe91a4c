"""The run folder: its files, and how they are written and read.

Every file is written beside its final name and renamed, so a killed run leaves valid files. The manifest is written last and says which
stages are done: a run that was killed repeats its unfinished stage, and ends with the same files.
"""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from io import BytesIO
from itertools import islice
from pathlib import Path
from tokenize import TokenError
from typing import IO, TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from vip import files, locks, user_state
from vip.errors import InputError, StoreError, UsageError, VipError
from vip.records import (
    SCHEMA_VERSION,
    Candidate,
    Description,
    Embeddings,
    Failure,
    Image,
    Keyframe,
    KeyframeText,
    Manifest,
    Record,
    SpokenWords,
)
from vip.untrusted import escaped_json
from vip.wording import call, option

if TYPE_CHECKING:
    import numpy.typing as npt

    from vip.html.notebook import NotebookPicture

RecordT = TypeVar("RecordT", bound=Record)

MANIFEST = "manifest.json"
CANDIDATES = "candidates.jsonl"
EMBEDDINGS = "embeddings.npz"
ANALYSIS = "analysis.npz"
KEYFRAMES = "keyframes.jsonl"
PICTURES = "keyframes"
DESCRIPTIONS = "descriptions.jsonl"
WORDS = "words.jsonl"
TEXT = "text.jsonl"
SPEECH = "speech.jsonl"
ASKED = "asked"  # a folder in a run: the frames of each question
JOURNAL = "descriptions.partial.jsonl"
FAILURES = "failures.jsonl"
REPORT = "report.html"
THUMBNAILS = "thumbnails.zip"
os.environ.setdefault("OPENCV_IO_MAX_IMAGE_PIXELS", str(2**28))  # before OpenCV is loaded; its own limit is a picture of 3 GB
PARTIAL_SUFFIX = files.PARTIAL_SUFFIX
MOST_JSON_BYTES = 64 * 2**20
MOST_LINE_BYTES = 16 * 2**20
MOST_PROBLEM_LETTERS = 300  # of what a parser says: it may repeat a text of the file
MOST_WORDS = 200_000  # rows of words.jsonl; ten hours of talk have a tenth of them
MOST_TEXTS = 100_000  # rows of text.jsonl
MOST_ARRAYS_BYTES = 2 * 2**30
MOST_PICTURE_BYTES = 512 * 2**20
DECODED = f"decoded{PARTIAL_SUFFIX}"  # a folder that exists while a run is made

_TEXT_FIELDS = frozenset({"detections", "famous", "lines", "text", "words", "context", "value"})
"""Rows with one of these say something of a picture."""
_NAME_FIELDS = frozenset({"id", "video_id", "keyframe_id", "image_path", "sample_id", "video", "videos", "clip", "picture", "vr"})
"""Fields of such rows that are named after files: they need not be UTF-8, as texts must."""
_SURROGATE = re.compile(r"[\ud800-\udfff]")
PICTURE_NAME = re.compile(r"\d{4,}_\d{2,}h\d{2}m\d{2}\.\d{3}s\.(jpg|png|webp)")


@dataclass(frozen=True)
class KeyframePicture:
    """A keyframe of a folder; its picture is read on request."""

    record: Keyframe
    folder: Path
    run: Run | None = field(default=None, compare=False)
    """The run that it belongs to."""

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def time_s(self) -> float | None:
        """Seconds from the start of the video's clock; None for a picture that comes from no video."""
        return self.record.time_s

    @property
    def path(self) -> Path:
        return self.folder / self.record.image_path

    @property
    def image(self) -> Image:
        """uint8 (H, W, 3) RGB, read from disk at each call.

        Raises:
            InputError: the picture is missing or damaged.
        """
        return read_picture(self.path, inside=self.folder)

    @property
    def data(self) -> bytes:
        """The bytes of the picture's file.

        Raises:
            InputError: it is missing, too large, or no regular file.
        """
        return _picture_bytes(self.path, self.folder)

    @property
    def description(self) -> Description | None:
        """Its current description; None before it is described."""
        return (self.run or Run(self.folder)).described.get(self.id)

    def __repr__(self) -> str:
        when = "" if self.time_s is None else f", time_s={self.time_s:.3f}"
        return f"Keyframe({self.id!r}{when}, {self.record.width_px}x{self.record.height_px})"

    def _repr_html_(self) -> str | None:
        """Return the picture and the caption for a notebook; None where the run is damaged."""
        from vip.html import notebook  # here, since it loads Jinja

        try:
            return notebook.keyframe_html(self._in_notebook())
        except VipError:
            return None

    def _in_notebook(self) -> NotebookPicture:
        from vip.html import notebook

        try:
            image = self.image
        except InputError:
            image = None
        return notebook.notebook_picture(self.record, image, self.description)


class Run:
    """A run folder (or any folder of pictures with keyframes.jsonl), read lazily.

    Iterate `keyframes` for times, pictures and descriptions; `manifest` says how the run was made. `vip.load_run` checks that it is whole.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._described: tuple[tuple[int, ...], dict[str, Description]] = (), {}

    @cached_property
    def manifest(self) -> Manifest | None:
        """The manifest: settings, versions and counts; None in a folder of pictures that vip did not extract."""
        path = self.folder / MANIFEST
        return read_json(path, Manifest) if path.exists() else None

    @cached_property
    def keyframes(self) -> list[KeyframePicture]:
        """The keyframes in time order.

        Raises:
            InputError: the folder has none, or is missing.
        """
        if not (self.folder / KEYFRAMES).exists() and not (self.folder / MANIFEST).exists():
            load_run(self.folder)  # says what is wrong
        return [KeyframePicture(row, self.folder, self) for row in read_rows(self.folder / KEYFRAMES, Keyframe)]

    @cached_property
    def candidates(self) -> list[Candidate]:
        """Every frame that was analyzed, with its decision; empty in a folder of pictures."""
        path = self.folder / CANDIDATES
        return list(read_rows(path, Candidate)) if path.exists() else []

    @property
    def descriptions(self) -> list[Description]:
        """The current descriptions, in the order of the keyframes; empty before `vip caption`."""
        rows = self.described
        return [rows[keyframe.id] for keyframe in self.keyframes if keyframe.id in rows]

    @property
    def described(self) -> dict[str, Description]:
        """The current descriptions by the ids of their keyframes; the files are read again only when they have changed."""
        paths = [path for name in (DESCRIPTIONS, JOURNAL) if (path := self.folder / name).exists()]
        stamps = tuple(number for path in paths for number in (path.stat().st_ino, path.stat().st_mtime_ns, path.stat().st_size))
        if stamps != self._described[0]:
            rows: dict[str, Description] = {}
            for path in paths:
                rows.update((row.keyframe_id, row) for row in read_rows(path, Description, torn_end=path.name == JOURNAL))
            self._described = stamps, rows
        return self._described[1]

    def each_description(self) -> Iterator[Description]:
        """Yield `descriptions` one by one; of a finished run, one is in memory."""
        if (self.folder / JOURNAL).exists():
            yield from self.descriptions
        elif (self.folder / DESCRIPTIONS).exists():
            yield from read_rows(self.folder / DESCRIPTIONS, Description)

    @property
    def failures(self) -> list[Failure]:
        """Failures of the last command."""
        path = self.folder / FAILURES
        return list(read_rows(path, Failure)) if path.exists() else []

    @property
    def words(self) -> list[SpokenWords]:
        """Subtitles and transcribed speech, with their times; empty where `--words` did not ask for them, or there are none."""
        path = self.folder / WORDS
        return list(islice(read_rows(path, SpokenWords), MOST_WORDS)) if path.exists() else []

    @property
    def texts(self) -> list[KeyframeText]:
        """The text that was read in the keyframes; empty where nobody read it."""
        path = self.folder / TEXT
        return list(islice(read_rows(path, KeyframeText), MOST_TEXTS)) if path.exists() else []

    @cached_property
    def embeddings(self) -> Embeddings | None:
        """Vectors of the candidates in `candidates.jsonl` that could be decoded, in its order."""
        path = self.folder / EMBEDDINGS
        return read_embeddings(path) if path.exists() else None

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes to the user while the run was made."""
        return self.manifest.notes if self.manifest else ()

    def __repr__(self) -> str:
        try:
            counts = f", keyframes={len(self.keyframes)}, descriptions={len(self.descriptions)}"
        except VipError:
            counts = ""
        return f"Run({str(self.folder)!r}{counts})"

    def _repr_html_(self) -> str | None:
        """Return the contact sheet for a notebook; None where the run is damaged."""
        from vip.html import notebook  # here, since it loads Jinja

        try:
            keyframes = self.keyframes
            return notebook.contact_sheet(
                self.folder.resolve().name, len(keyframes), len(self.descriptions), lambda place: keyframes[place]._in_notebook()
            )
        except VipError:
            return None


def load_run(folder: str | Path) -> Run:
    """Open a run folder, or its keyframes/ folder.

    Raises:
        InputError: there is no such folder, or no keyframes in it.
        StoreError: its files are corrupt or were written by a newer vip.
    """
    path = home_of(Path(folder))
    check_folder(path)
    run, finished = Run(path), (path / KEYFRAMES).exists()
    if (path / MANIFEST).exists() and not (finished and run.manifest and run.manifest.seconds):
        raise InputError(f"{path} holds an unfinished extraction. Run the same {call('extract', 'VIDEO')} again to finish it.")
    if not finished:
        raise InputError(f"{path} holds no keyframes. Run {call('extract', 'VIDEO', out=path)} first.")
    return run


def check_folder(path: Path) -> None:
    """Check that a folder exists.

    Raises:
        InputError: there is no folder of this name.
    """
    if not is_folder(path):
        raise InputError(f"{path} is not a folder. Give the folder of a run.")


def sign(manifest: Manifest) -> Manifest:
    """Return the manifest with a signature that proves that this machine made the run."""
    return manifest.model_copy(update={"signature": user_state.signature(manifest.origin)})


def is_own(manifest: Manifest) -> bool:
    """Return whether this machine made the run, or its user trusts it: then the path of its video in the manifest is used."""
    return user_state.is_signed(manifest.origin, manifest.signature) or user_state.knows("runs", manifest.origin)


def home_of(folder: Path) -> Path:
    """Return the run folder of a keyframes/ folder; any other folder as it is."""
    here = folder if folder.name == PICTURES else folder.absolute()
    return here.parent if here.name == PICTURES and (here.parent / MANIFEST).exists() else folder


def runs_in(folders: Sequence[Path]) -> list[Path]:
    """Return the folders; a folder of run folders is replaced by these, in the order of their names.

    Raises:
        InputError: one of these is a link to elsewhere.
    """
    found: list[Path] = []
    for folder in folders:
        home = home_of(folder)
        inside = []
        if is_folder(home) and not exists(home / MANIFEST):
            inside = sorted(path.parent for path in home.glob(f"*/{MANIFEST}"))
            for link in (path for path in inside if files.leads_out(path, home)):
                raise InputError(f"{link} is a link, and vip follows none inside a folder. Remove it, or name the folders of the runs.")
            inside = [path for path in inside if not path.is_symlink()]  # to another of them
        found += inside or [home]
    return list(dict.fromkeys(found))


# ---------------------------------------------------------------- reading


def _overwrite_advice() -> str:
    return f"Delete the folder, or run {call('extract', 'VIDEO', overwrite=True)} to make it again."


def read_json(path: Path, kind: type[RecordT], *, inside: Path | None = None) -> RecordT:
    """Read a file that is one record.

    Args:
        inside: the folder that the command names; by default the one the file lies in.

    Raises:
        StoreError: it is missing, damaged, too large, or no regular file.
    """
    try:
        text = files.read_bytes(path, inside=inside, most_bytes=MOST_JSON_BYTES)
    except OSError as exc:
        raise _unreadable(path, exc) from exc
    return _parse(text, kind, where=str(path))


def read_rows(path: Path, kind: type[RecordT], *, torn_end: bool = False, advice: str | None = None) -> Iterator[RecordT]:
    """Yield the rows of a JSONL file.

    Args:
        torn_end: leave out a last line that is half written.
        advice: what to do about a damaged file; None for one of a run folder.
    """
    for number, line in enumerate(lines(path, advice=advice), 1):
        if torn_end and not line.endswith(b"\n"):
            return
        if line.strip():
            yield _parse(line, kind, where=f"{path}, line {number}", advice=advice)


def count_rows(path: Path) -> int:
    """Return the number of rows of a JSONL file, without parsing them."""
    return sum(1 for line in lines(path) if line.strip())


def lines(path: Path, *, advice: str | None = None) -> Iterator[bytes]:
    """Yield the lines of a JSONL file, one in memory at a time; errors as of `read_json`."""
    try:
        with files.open_file(path) as file:
            yield from _lines_of(file, path, advice)
    except OSError as exc:
        raise _unreadable(path, exc, advice) from exc


def _lines_of(file: IO[bytes], path: Path, advice: str | None = None) -> Iterator[bytes]:
    """Yield the lines of an open file.

    Raises:
        StoreError: a line is longer than any row of vip.
    """
    while line := file.readline(MOST_LINE_BYTES):
        if len(line) == MOST_LINE_BYTES:
            raise StoreError(f"{path}: damaged (a line is longer than {MOST_LINE_BYTES:,} bytes). {advice or _overwrite_advice()}")
        yield line


def _unreadable(path: Path, exc: OSError, advice: str | None = None) -> StoreError:
    return StoreError(f"{path} cannot be read: {exc.strerror}. {advice or _overwrite_advice()}")


def _parse(text: bytes, kind: type[RecordT], *, where: str, advice: str | None = None) -> RecordT:
    try:
        return parse_record(text, kind)
    except ValueError as exc:
        version = _schema_version(text)
        if version is not None and version > SCHEMA_VERSION:
            raise StoreError(
                f"{where}: written by a newer vip (schema {version}, this one knows {SCHEMA_VERSION})."
                " Update with `pip install -U vip-keyframes`."
            ) from exc
        problem = str(exc.errors()[0]["msg"] if isinstance(exc, ValidationError) else exc)[:MOST_PROBLEM_LETTERS]
        raise StoreError(f"{where}: damaged ({problem}). {advice or _overwrite_advice()}") from exc


def parse_record(text: bytes, kind: type[RecordT]) -> RecordT:
    """Return the record of JSON; names of files in it need not be UTF-8.

    Raises:
        ValueError: the text is none.
    """
    try:
        return kind.model_validate_json(text)
    except ValidationError as exc:
        if exc.errors()[0]["type"] != "json_invalid":
            raise
    try:
        value = json.loads(text)  # Python reads file names that are not valid UTF-8, see _dumps
        if _TEXT_FIELDS & kind.model_fields.keys() and _has_half(value):
            raise ValueError("half a pair of surrogates")
        return kind.model_validate(value)
    except RecursionError:
        raise ValueError("lists in lists, too deep") from None


def _has_half(value: Any) -> bool:
    """Return whether a text of a row, wherever it stands, has half a pair of surrogates."""
    if isinstance(value, dict):
        return any(_has_half(name) or (name not in _NAME_FIELDS and _has_half(one)) for name, one in value.items())
    if isinstance(value, list):
        return any(map(_has_half, value))
    return isinstance(value, str) and _SURROGATE.search(value) is not None


def _schema_version(text: bytes) -> int | None:
    try:
        version = json.loads(text).get("schema_version")
    except (ValueError, AttributeError, RecursionError):
        return None
    return version if isinstance(version, int) else None


def read_embeddings(path: Path) -> Embeddings:
    """Read the vectors of the candidates; errors as of `read_arrays`."""
    import numpy as np  # here, as below: most of what is in a folder needs none of it

    data = read_arrays(path)
    try:
        if not all(data[name].dtype == np.float32 and np.isfinite(data[name]).all() for name in ("image", "text")):
            raise ValueError("a vector is not of numbers")
        return Embeddings(data["image"], data["text"], str(data["model"]))
    except (ValueError, KeyError) as exc:
        raise StoreError(f"{path}: damaged ({exc}). {_overwrite_advice()}") from exc


def read_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """Read the arrays of an .npz file, each no larger than the file.

    Raises:
        StoreError: it is missing or damaged.
    """
    try:
        with files.open_zip(path, most_bytes=MOST_ARRAYS_BYTES) as archive:
            return {name.removesuffix(".npy"): array_of(archive.read(name)) for name in archive.namelist()}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile) as exc:
        raise StoreError(f"{path}: damaged ({exc}). {_overwrite_advice()}") from exc


def array_of(data: bytes) -> npt.NDArray[Any]:
    """Return an array that np.save wrote, after a check that its header states the true size.

    Raises:
        ValueError, EOFError: it is damaged.
    """
    import numpy as np

    file = BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("an array of another format")
    try:
        shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    except (SyntaxError, TokenError, TypeError, RecursionError, MemoryError) as exc:  # numpy reads the header as Python
        raise ValueError("an array with a damaged header") from exc
    if dtype.hasobject or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError("an array of another size than it says")
    file.seek(0)
    return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def read_picture(path: Path, *, inside: Path | None = None) -> Image:
    """Return a picture file as uint8 (H, W, 3) RGB, upright by its EXIF orientation and without an alpha channel.

    Args:
        inside: the folder that the command names; by default the one the picture lies in.

    Raises:
        InputError: the file is missing or no picture.
    """
    return decode_picture(_picture_bytes(path, inside), str(path))


def decode_picture(data: bytes, name: str) -> Image:
    """Return the bytes of a picture file as uint8 (H, W, 3) RGB, as `read_picture` does.

    Raises:
        InputError: they are no picture; the sentence names `name`.
    """
    import cv2
    import numpy as np

    try:
        picture = cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB) if data else None
    except cv2.error:  # more pixels than OpenCV takes
        picture = None
    if picture is None:
        raise InputError(f"{name} is not a picture that can be read.")
    return np.asarray(picture, np.uint8)


def _picture_bytes(path: Path, inside: Path | None) -> bytes:
    try:
        return files.read_bytes(path, inside=inside, most_bytes=MOST_PICTURE_BYTES)
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}.") from exc


# ---------------------------------------------------------------- writing


@contextmanager
def replacing(path: Path, *, inside: Path | None = None, durable: bool = False) -> Iterator[IO[bytes]]:
    """Write a file beside `path` and rename it to `path` when it is whole; arguments as of `files.replacing`.

    Raises:
        StoreError: not writable, or the disk is full; `path` is then as it was.
    """
    try:
        with files.replacing(path, inside=inside, durable=durable) as file:
            yield file
    except OSError as exc:
        raise _unwritable(path, exc) from exc


def _unwritable(path: Path, exc: OSError) -> StoreError:
    return StoreError(f"{path} cannot be written: {exc.strerror}. Choose another folder with {option('out')}, or make room.")


def write_json(path: Path, record: Record, *, inside: Path | None = None, durable: bool = False) -> None:
    """Write a record as a JSON file; arguments and errors as of `replacing`."""
    with replacing(path, inside=inside, durable=durable) as file:
        file.write(_dumps(record, indent=2))


def write_rows(path: Path, rows: Iterable[Record]) -> None:
    """Write a JSONL file; errors as of `replacing`."""
    with replacing(path) as file:
        for row in rows:
            file.write(_dumps(row))


def _dumps(record: Record, *, indent: int | None = None) -> bytes:
    try:
        text = record.model_dump_json(indent=indent)
    except ValueError:  # a file name that is not valid UTF-8, which has to be read back unchanged
        text = json.dumps(record.model_dump(mode="json"), indent=indent)
    return escaped_json(text).encode() + b"\n"


def write_failures(path: Path, failures: Sequence[Failure]) -> None:
    """Write the failures of the last command; delete the file where there are none. Errors as of `replacing`."""
    if failures:
        write_rows(path, failures)
        return
    try:
        files.remove(path)
    except OSError as exc:
        raise _unwritable(path, exc) from exc


def write_embeddings(path: Path, embeddings: Embeddings) -> None:
    """Write the vectors of the candidates; errors as of `replacing`."""
    import numpy as np

    with replacing(path) as file:
        np.savez(file, image=embeddings.image, text=embeddings.text, model=np.array(embeddings.model))


def write_picture(path: Path, image: Image, *, inside: Path | None = None, jpeg_quality: int = 95, png_compression: int = 3) -> None:
    """Encode an RGB picture in the format of the path's suffix; PNG and WebP are written without loss."""
    import cv2

    parameters = {
        ".jpg": [cv2.IMWRITE_JPEG_QUALITY, jpeg_quality],
        ".png": [cv2.IMWRITE_PNG_COMPRESSION, png_compression],
        ".webp": [cv2.IMWRITE_WEBP_QUALITY, 101],
    }
    done, data = cv2.imencode(path.suffix, cv2.cvtColor(image, cv2.COLOR_RGB2BGR), parameters[path.suffix])
    if not done:
        raise StoreError(f"{path}: a picture of {image.shape[1]}x{image.shape[0]} does not fit the format. Try {option('format', 'png')}.")
    with replacing(path, inside=inside) as file:
        file.write(data.tobytes())


@contextmanager
def appending(path: Path, *, durable: bool = True) -> Iterator[Callable[[Record], None]]:
    """Open a journal to append rows, each in the file before the call returns; a half-written last row is cut off first.

    A journal without rows is deleted at the end.

    Args:
        durable: wait until each row is on the disk.
    """
    try:
        with files.open_to_append(path) as file:
            file.truncate(_end_of_rows(file))
            file.seek(0, os.SEEK_END)

            def append(row: Record) -> None:
                file.write(_dumps(row))
                file.flush()
                if durable:
                    os.fsync(file.fileno())

            yield append
    except OSError as exc:
        raise _unwritable(path, exc) from exc
    finally:
        with suppress(OSError):
            if path.lstat().st_size == 0:
                path.unlink()


def _end_of_rows(file: IO[bytes]) -> int:
    """Return where the last whole row of a journal ends."""
    end = file.seek(0, os.SEEK_END)
    while end:
        start = max(0, end - 65536)
        file.seek(start)
        block = file.read(end - start)
        if b"\n" in block:
            return start + block.rindex(b"\n") + 1
        end = start
    return 0


def merge_rows(path: Path, sources: Sequence[Path], kind: type[RecordT], *, key: Callable[[RecordT], str], order: Iterable[str]) -> None:
    """Write the rows of several files in the order of their keys in `order`, without holding them in memory.

    Where two files have rows with the same key, that of the later file is written.
    """
    places: dict[str, tuple[int, int]] = {}
    with ExitStack() as stack:
        opened: list[IO[bytes]] = []
        for source in filter(Path.exists, sources):
            number, position = len(opened), 0
            opened.append(stack.enter_context(_open(source)))
            for line in _lines_of(opened[-1], source):
                if line.endswith(b"\n") and line.strip():
                    places[key(_parse(line, kind, where=str(source)))] = number, position
                position += len(line)
        with replacing(path, durable=True) as target:
            for name in order:
                if place := places.get(name):
                    opened[place[0]].seek(place[1])
                    target.write(opened[place[0]].readline())


def _open(path: Path) -> IO[bytes]:
    try:
        return files.open_file(path)
    except OSError as exc:
        raise _unreadable(path, exc) from exc


@contextmanager
def create_folder(path: Path) -> Iterator[None]:
    """Create and lock a folder for a run; if the block fails, a new folder that is still empty is deleted.

    An existing folder that cannot be written to is not locked, and can still be read.

    Raises:
        StoreError: it cannot be created, or another process works in it.
    """
    existed = is_folder(path)
    if not existed:
        make_folder(path)
    with in_use(path):
        try:
            yield
        except BaseException:
            if not existed and is_empty(path):  # while it is locked: another process may wait for it
                files.remove_folder(path)
            raise


@contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Lock a folder for this process, and delete partial files of a killed one; errors as of `locks.in_use`."""
    with locks.in_use(folder) as is_new:
        if is_new:
            _delete_partial_files(folder)
        yield


def make_folder(path: Path, *, inside: Path | None = None) -> None:
    """Create a folder where it is missing.

    Args:
        inside: the folder that the command names; below it, none may be a link.

    Raises:
        StoreError: it cannot be created or written to.
    """
    try:
        files.make_folder(path, inside=inside)
        if not os.access(path, os.W_OK):
            raise PermissionError(13, "Permission denied")
    except OSError as exc:
        raise _unwritable(path, exc) from exc


def unlinked(path: Path, *, named_by: str | None = None) -> Path:
    """Return a folder that the user did not name, after a check that it is no link: what is written to it would land elsewhere.

    Args:
        named_by: the option that names one; None: that of the output.

    Raises:
        UsageError: it is one.
    """
    if os.path.islink(path):  # noqa: PTH114 - Path.is_symlink() raises for a name that is too long
        raise UsageError(
            f"{path} is a link, and vip writes through none that you did not name. Remove it, or name one with {named_by or option('out')}."
        )
    return path


def exists(path: Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110 - Path.exists() raises for a name that is too long


def is_folder(path: Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - as above


def is_empty(folder: Path, *, besides: Sequence[str] = ()) -> bool:
    """Return whether a folder is missing, or holds nothing but partial files of a killed run and these names."""
    return not is_folder(folder) or all(path.name.endswith(PARTIAL_SUFFIX) or path.name in besides for path in folder.iterdir())


def clear(folder: Path) -> None:
    """Delete the files of vip in a run folder, without the manifest, and nothing else."""
    names = (CANDIDATES, EMBEDDINGS, ANALYSIS, THUMBNAILS, KEYFRAMES, DESCRIPTIONS, JOURNAL, WORDS, TEXT, FAILURES, REPORT)
    pictures = [name for name in files.names_in(folder / PICTURES, inside=folder) if PICTURE_NAME.fullmatch(name)]
    for path in (*(folder / name for name in names), *_partial_files(folder), *(folder / PICTURES / name for name in pictures)):
        try:
            files.remove(path, inside=folder)
        except OSError as exc:
            raise StoreError(f"{path} cannot be deleted: {exc.strerror}. Choose another folder with {option('out')}.") from exc


def _delete_partial_files(folder: Path) -> None:
    for path in _partial_files(folder):
        with suppress(OSError):
            files.remove(path, inside=folder)


def _partial_files(folder: Path) -> Iterator[Path]:
    for place in (folder, folder / PICTURES):
        for name in files.names_in(place, inside=folder):
            if name.endswith(PARTIAL_SUFFIX) and name not in (DECODED, locks.NAME):
                yield place / name


def picture_name(number: int, time_s: float, suffix: str, *, of: int) -> str:
    """Return `0001_00h00m12.400s.jpg`, which sorts by number, and so by time."""
    milliseconds = max(0, round(time_s * 1000))
    seconds, milliseconds = divmod(milliseconds, 1000)
    width = max(4, len(str(of)))
    return f"{number:0{width}d}_{seconds // 3600:02d}h{seconds // 60 % 60:02d}m{seconds % 60:02d}.{milliseconds:03d}s.{suffix}"


def write_thumbnails(path: Path, thumbnails: Iterable[tuple[int, bytes]]) -> None:
    """Write an uncompressed zip of JPEGs, named by candidate index: `000012.jpg`."""
    with replacing(path) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for index, data in thumbnails:
            archive.writestr(zipfile.ZipInfo(f"{index:06d}.jpg"), data)
