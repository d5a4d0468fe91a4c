"""Whether what models are trained with is installed. Nothing heavy is loaded here."""

from __future__ import annotations

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
