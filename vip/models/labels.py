"""What detectors have in common about `--labels`."""

from __future__ import annotations

from vip.errors import UsageError
from vip.wording import option


def refuse_labels(detector: str, labels: tuple[str, ...] | None) -> None:
    """Refuse a list of words where the detector knows what it looks for.

    Raises:
        UsageError: there is one.
    """
    if labels:
        raise UsageError(
            f"{option('labels', ', '.join(labels))}: the detector {detector} finds what it was made for."
            f" Leave {option('labels')} out, or take one that"
            f" looks for any words, such as {option('detector', 'transformers:google/owlv2-base-patch16-ensemble')}."
        )
