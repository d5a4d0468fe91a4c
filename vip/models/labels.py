"""What detectors have in common about `--labels`."""

from __future__ import annotations

from vip.errors import UsageError


def refuse_labels(detector: str, labels: tuple[str, ...] | None) -> None:
    """Refuse a list of words where the detector knows what it looks for.

    Raises:
        UsageError: there is one.
    """
    if labels:
        raise UsageError(
            f"--labels {', '.join(labels)}: the detector {detector} finds what it was made for. Leave --labels out, or take one that"
            " looks for any words, such as --detector transformers:google/owlv2-base-patch16-ensemble."
        )
