"""What is asked before anything heavy is loaded: are the libraries there, and is this process the one that writes?"""

from __future__ import annotations

import os
from importlib.util import find_spec

from vip.errors import BackendError

LIBRARIES = ("h5py", "lightning", "safetensors", "torch")


def check_installed() -> None:
    """Refuse to train or run models without their libraries.

    Raises:
        BackendError: one is missing.
    """
    missing = [name for name in LIBRARIES if find_spec(name) is None]
    if missing:
        raise BackendError(
            f"Models are trained and run with {missing[0]}, which is not installed. Run: pip install 'vip-keyframes[train]'."
        )


def is_first_process() -> bool:
    """Return whether this process is the one that the user started; Lightning starts others, one a device, by the same command."""
    return os.environ.get("LOCAL_RANK", "0") == "0" and os.environ.get("NODE_RANK", "0") == "0"
