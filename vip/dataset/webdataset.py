"""Shards as tar files that the library WebDataset reads: `VIDEO_0001.jpg`, `.json` with the other columns, `.npy` with the vector.

In: samples, one after another. Out: a tar file without dates and owners; and the rows of such a file, read from front to back.
"""

from __future__ import annotations

import json
import tarfile
from collections.abc import Iterator
from io import BytesIO
from itertools import groupby
from typing import IO

import numpy as np

from vip import store
from vip.dataset.parts import add, members
from vip.dataset.rows import VideoSample
from vip.dataset.schema import Row, rows_of, sample_key
from vip.untrusted import parse_json


class TarShard:
    """A writer of samples to an open file; close it at the end."""

    def __init__(self, file: IO[bytes]) -> None:
        self._archive = tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT)  # noqa: SIM115 - closed by close()

    def add(self, sample: VideoSample) -> None:
        for row in rows_of(sample):
            key, picture, vector = sample_key(row), row.pop("picture"), row.pop("embedding")
            add(self._archive, f"{key}.{row['picture_format']}", picture["bytes"])
            about = {**row, "picture": picture["path"]}
            add(self._archive, f"{key}.json", json.dumps(about, ensure_ascii=False).encode())
            if vector is not None:
                file = BytesIO()
                np.save(file, vector, allow_pickle=False)
                add(self._archive, f"{key}.npy", file.getvalue())
            self._archive.members = []  # type: ignore[attr-defined] # or it keeps them all

    def close(self) -> None:
        self._archive.close()


def read_tar(file: IO[bytes]) -> Iterator[Row]:
    """Yield the rows of a shard.

    Raises:
        ValueError, KeyError, tarfile.TarError: it is damaged, or no shard.
    """
    with tarfile.open(fileobj=file, mode="r|") as archive:
        for _, group in groupby(members(archive), key=lambda member: member[0].partition(".")[0]):
            sample = {name.partition(".")[2]: data for name, data in group}
            row = parse_json(sample["json"])
            vector = store.array_of(sample["npy"]) if "npy" in sample else None
            yield {**row, "picture": {"bytes": sample[row["picture_format"]], "path": row["picture"]}, "embedding": vector}
