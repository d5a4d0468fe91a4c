"""Models of torchvision with random weights, saved as a user would save a checkpoint."""

from __future__ import annotations

from pathlib import Path

import torch
import torchvision


def save_model(name: str, path: Path, *, wrapper: str | None = None) -> Path:
    """The smallest models of the library have millions of numbers: they are made once a module."""
    torch.manual_seed(0)
    state = torchvision.models.get_model(name, weights=None).state_dict()
    torch.save({wrapper: state} if wrapper else state, path)
    return path
