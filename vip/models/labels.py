"""Refusal of `--labels`, shared by detectors of fixed classes."""

from __future__ import annotations

from vip.errors import UsageError
from vip.wording import option


def refuse_labels(detector: str, labels: tuple[str, ...] | None) -> None:
    """Refuse labels for a detector of fixed classes.

    Raises:
        UsageError: there is one.
    """
    if labels:
        raise UsageError(
            f"{option('labels', ', '.join(labels))}: the detector {detector} finds what it was made for."
            f" Leave {option('labels')} out, or take one that"
            f" looks for any words, such as {option('detector', 'transformers:google/owlv2-base-patch16-ensemble')}."
        )
