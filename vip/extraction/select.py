"""Selection of keyframes: quality ▸ copies ▸ objects ▸ pruning, and each decision in words (section 3.1).

In: what was measured of all candidates, in time order. Out: a `Selection` with one `Decision` a candidate; the kept ones are the
keyframes. Nothing is read or written here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from vip.config import ExtractSettings
from vip.extraction.analyze import FrameAnalysis
from vip.extraction.bad_frames import bad_frames, keep_best_of_bad
from vip.extraction.copies import copies
from vip.extraction.faint_copies import faint_copies
from vip.extraction.good_frames import prunable
from vip.extraction.objects import poor_in_objects
from vip.extraction.pages import stand_still, without_speaker_or_drift
from vip.extraction.video_analysis import VideoAnalysis
from vip.protocols import TEXT_WEIGHT, Pruner, PruningResult
from vip.records import Decision, Embeddings


class Selection(NamedTuple):
    """The candidates that become keyframes, and why."""

    decisions: list[Decision]
    """One a candidate, in time order."""
    notes: list[str]
    """What the user should know."""
    pruning: PruningResult


def select(analysis: VideoAnalysis, settings: ExtractSettings, pruner: Pruner) -> Selection:
    """Select the keyframes of a video; see `select_from`."""
    return select_from(
        analysis.frames,
        analysis.embeddings,
        pruner=pruner,
        keyframes=None if settings.keyframes == "auto" else settings.keyframes,
        redundant=analysis.redundant,
        min_sharpness=settings.min_sharpness,
        min_objects=settings.min_objects,
        text_weight=settings.text_weight,
        relevance=analysis.relevance,
    )


def select_from(
    frames: Sequence[FrameAnalysis],
    embeddings: Embeddings,
    *,
    pruner: Pruner,
    keyframes: int | None,
    redundant: float,
    min_sharpness: float | None,
    min_objects: int = 0,
    text_weight: float = TEXT_WEIGHT,
    relevance: Sequence[float] | None = None,
) -> Selection:
    """Drop bad frames, copies and frames with too few objects, then prune what is left.

    Args:
        keyframes: at most so many; None where the pruner decides how many.
        redundant: the cosine from which on two frames of this embedder show the same.
        text_weight: share of the text cosine in the likeness.
        relevance: of each frame to what the user asks for.

    Raises:
        InputError: nothing is left to keep.
    """
    dropped: dict[int, Decision] = {}
    notes: list[str] = []
    as_is = pruner.capabilities.as_is
    if not as_is:
        frames = without_speaker_or_drift(frames)
        dropped = bad_frames(frames, min_sharpness)
        if least_bad := keep_best_of_bad(frames, dropped, min_sharpness):
            notes.append(f"Every frame that was looked at is {least_bad}; the best of them are kept.")
        dropped |= copies(frames, _left(frames, dropped))
        dropped |= poor_in_objects(frames, _left(frames, dropped), min_objects)
    while True:
        left = _left(frames, dropped)
        pictures = None
        if left and not as_is and (keyframes is None or stand_still(frames)):
            from vip.extraction.picture_count import count_pictures  # which compares pictures place by place: few selections do

            pictures = count_pictures(frames, embeddings, left, dropped, text_weight=text_weight, redundant=redundant)
        pruning = pruner.prune(
            prunable(frames, embeddings, left, text_weight=text_weight, relevance=relevance, pictures=pictures),
            keep=keyframes,
            redundant=redundant,
        )
        faint = {} if as_is else faint_copies(frames, _kept(pruning, left), dropped)
        if not faint:
            break
        dropped |= faint  # others take their places, which may be faint too
    decisions = {**dropped, **_decisions_of(pruning, left, as_is=as_is)}
    return Selection([decisions[index] for index in range(len(frames))], notes, pruning)


def _left(frames: Sequence[FrameAnalysis], dropped: Mapping[int, Decision]) -> list[int]:
    """Return the indices of the frames that are not dropped."""
    return [index for index in range(len(frames)) if index not in dropped]


def _kept(pruning: PruningResult, left: Sequence[int]) -> list[int]:
    """Return the indices of the frames that the pruner keeps."""
    gone = {drop.index for drop in pruning.drops}
    return [index for row, index in enumerate(left) if row not in gone]


def _decisions_of(pruning: PruningResult, left: Sequence[int], *, as_is: bool) -> dict[int, Decision]:
    """Return what the pruner decided, by the index of the frame."""
    decisions: dict[int, Decision] = {}
    for drop in pruning.drops:
        neighbours = tuple(left[row] for row in drop.neighbours)
        decisions[left[drop.index]] = Decision(
            kept=False, rule="pruned", reason=drop.reason, step=drop.step, score=drop.score, neighbours=neighbours
        )
    for row, index in enumerate(left):
        reason = pruning.reasons.get(row, pruning.kept) if pruning.drops or as_is else "kept: unlike all others"
        decisions.setdefault(index, Decision(kept=True, rule="kept", reason=reason))
    return decisions
