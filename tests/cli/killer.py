"""`vip …` that is killed (SIGKILL) at a chosen moment: `python -m tests.cli.killer WHERE NUMBER run video.mp4 …`.

WHERE is `write`: in the middle of the file with this number, `picture`: of the keyframe that is encoded as this one, or `row`:
of this row of the journal.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from mmap import mmap
from pathlib import Path
from typing import IO

from vip import store
from vip.cli import main
from vip.records import Record

_whole, _appending = store.replacing, store.appending


_vip = os.getpid()


def _die() -> None:
    """Kill vip, also from the process that it forked to extract in; that one must then die by itself."""
    os.kill(_vip, signal.SIGKILL)
    time.sleep(10)


def kill_in_write(number: int, folder: str | None = None) -> None:
    """Count the files of this folder only, if one is named; those before it, which may be written beside it, are then whole."""
    count, ended = mmap(-1, 1), mmap(-1, 1)  # which a fork shares

    @contextmanager
    def replacing(path: Path, *, inside: Path | None = None, durable: bool = False) -> Iterator[IO[bytes]]:
        count[0] += folder in (None, path.parent.name)
        if count[0] != number:
            with _whole(path, inside=inside, durable=durable) as file:
                yield file
            ended[0] += folder in (None, path.parent.name)
            return
        while folder and ended[0] < number - 1:
            time.sleep(0.01)
        buffer = BytesIO()
        yield buffer
        data = buffer.getvalue()
        path.with_name(f".{'0' * 32}{store.PARTIAL_SUFFIX}").write_bytes(data[: len(data) // 2])
        _die()

    store.replacing = replacing


def kill_in_row(number: int) -> None:
    @contextmanager
    def appending(path: Path, *, durable: bool = True) -> Iterator[Callable[[Record], None]]:
        with _appending(path, durable=durable) as append:
            rows = 0

            def append_some(row: Record) -> None:
                nonlocal rows
                rows += 1
                if rows < number:
                    append(row)
                    return
                with path.open("ab") as file:
                    file.write(row.model_dump_json().encode()[:50])
                _die()

            yield append_some

    store.appending = appending


if __name__ == "__main__":
    where, number = sys.argv[1], int(sys.argv[2])
    del sys.argv[1:3]
    {"write": kill_in_write, "picture": partial(kill_in_write, folder=store.PICTURES), "row": kill_in_row}[where](number)
    main()
