"""Where the shards of a data set lie and what they are called, for those who only ask whether a folder is a data set."""

from __future__ import annotations

import re

from vip.dataset import storage

FOLDER = "shards"
NAME = re.compile(r"(\d{5,})(?:\.(?:g(\d+)\.)?(?:parquet|tar)|\.json)")
"""The name of a file in the folder, with its number, and its generation where that is not the first."""


def has_shards(address: str) -> bool:
    """Return whether a data set lies there.

    Raises:
        StoreError: the folder cannot be read.
        BackendError: a library for this kind of address is missing.
    """
    return any(NAME.fullmatch(name) for name in storage.sizes_in(address, FOLDER))
