"""From looks to decisions: bad frames out, copies out, then a pruner; each decision in words.

In come the looks of all candidates in time order, out comes one `Decision` for each, of which the kept are the keyframes.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import numpy as np

from vip.errors import InputError
from vip.extraction.analyze import FrameAnalysis, Vector
from vip.extraction.object_text import has_people, objects_in, text_of
from vip.extraction.quality import BadRule, correlation, much_blurrier, much_paler, references, same_shape, same_view, verdict
from vip.extraction.scenes import representatives
from vip.protocols import TEXT_WEIGHT, Embedder, Prunable, Pruner, PruningResult
from vip.records import Decision, Embeddings
from vip.timecode import timecode
from vip.wording import counted, option

SAME_PICTURE_LEVELS = 5  # of 255, in the cell of the signature that differs most; coding noise stays below it

WORDS: dict[BadRule, str] = {
    "black": "nearly black",
    "white": "nearly white",
    "flat": "flat: all of it has nearly the same brightness",
    "blurred": "out of focus",
}
BEST_OF_BAD: tuple[BadRule, ...] = ("blurred", "flat", "white", "black")  # what is taken where there is nothing better
NEIGHBOURS = 3
NOTHING_LEVEL = 4  # of 255: a picture without a brighter cell is black, not dark


def embed(analyses: Sequence[FrameAnalysis], embedder: Embedder, known: Mapping[str, Vector] | None = None) -> Embeddings:
    """The vectors of the looks and of the texts of what was detected in them; each text is embedded once.

    Args:
        known: vectors of texts that this embedder has seen in an earlier run.
    """
    texts = [text_of(analysis.detections or ()) for analysis in analyses]
    vectors = dict(known or {})
    new = sorted(set(texts) - set(vectors))
    vectors.update(zip(new, embedder.embed_texts(new), strict=True))
    return Embeddings(
        np.array([analysis.vector for analysis in analyses], np.float32),
        np.array([vectors[text] for text in texts], np.float32),
        identity_of(embedder),
    )


def identity_of(embedder: Embedder) -> str:
    """What tells the vectors of this embedder from those of others, also of other weights under its name."""
    return embedder.capabilities.identity or embedder.name


def bad_frames(analyses: Sequence[FrameAnalysis], min_sharpness: float | None) -> dict[int, Decision]:
    """Those that are not worth showing: index of the look -> why."""
    reference = references([analysis.measured for analysis in analyses])
    dropped: dict[int, Decision] = {}
    for index, analysis in enumerate(analyses):
        sharpness = analysis.measured.quality.sharpness
        if rule := verdict(analysis.measured, reference[index]):
            against = f" (sharpness {sharpness:.1f}, around it {reference[index]:.0f})" if rule == "blurred" else ""
            dropped[index] = Decision(kept=False, rule=rule, reason=f"dropped: {WORDS[rule]}{against}")
        elif min_sharpness is not None and sharpness < min_sharpness:
            reason = f"dropped: sharpness {sharpness:.1f} is below the {min_sharpness:g} asked for"
            dropped[index] = Decision(kept=False, rule="below_min_sharpness", reason=reason)
    calmer = {analysis.stands_in_for: other for other, analysis in enumerate(analyses) if analysis.stands_in_for is not None}
    for index in sorted(set(range(len(analyses))) - set(dropped)):
        other = calmer.get(analyses[index].pts)
        if analyses[index].in_transition and other is not None and other not in dropped:
            reason = f"dropped: beside a change of shot; at {timecode(analyses[other].time_s)} the same shot is calm"
            dropped[index] = Decision(kept=False, rule="in_transition", reason=reason, neighbours=(other,))
    for index in sorted(set(range(len(analyses))) - set(dropped), key=lambda index: analyses[index].measured.quality.contrast):
        for other in _neighbours(index, len(analyses), dropped):
            if decision := _worse_than(analyses[index], analyses[other]):
                dropped[index] = decision.model_copy(update={"neighbours": (other,)})
                break
    return dropped


def _neighbours(index: int, count: int, dropped: Container[int]) -> list[int]:
    """Of the 3 frames on either side those that are not dropped, the nearest first: a fade takes several."""
    around = range(max(0, index - NEIGHBOURS), min(count, index + NEIGHBOURS + 1))
    return sorted((other for other in around if other != index and other not in dropped), key=lambda other: abs(other - index))


def _worse_than(analysis: FrameAnalysis, other: FrameAnalysis) -> Decision | None:
    """Dropped in favour of a neighbour that shows the same, sharper or with its full contrast."""
    mine, its = analysis.measured.quality, other.measured.quality
    if much_blurrier(mine, its) and same_view(float(analysis.view @ other.view)):
        reason = f"dropped: blurred (sharpness {mine.sharpness:.1f}; the same view at {timecode(other.time_s)} has {its.sharpness:.0f})"
        return Decision(kept=False, rule="blurred", reason=reason)
    if much_paler(mine, its) and same_shape(correlation(analysis.signature, other.signature)):
        reason = f"dropped: a pale copy of {timecode(other.time_s)} (contrast {mine.contrast:.2f} instead of {its.contrast:.2f})"
        return Decision(kept=False, rule="faded", reason=reason)
    return None


def poor_in_objects(analyses: Sequence[FrameAnalysis], remaining: Sequence[int], least: int) -> dict[int, Decision]:
    """Frames with fewer objects than `least` (section 3.1: "filter keyframes that contain minimal objects"). Unknown is not few.

    Raises:
        InputError: none of the remaining would be left.
    """
    counts = {index: objects_in(found) for index in remaining if (found := analyses[index].detections) is not None}
    few = {index: count for index, count in counts.items() if count < least}
    if remaining and len(few) == len(remaining):
        most = max(few.values())
        advice = (
            f"Try {option('min_objects', most)}, or another {option('detector')}."
            if most
            else f"Leave {option('min_objects')} out, or try another {option('detector')}."
        )
        raise InputError(f"0 of {counted(len(remaining), 'candidate')} show enough objects (most {most}, asked {least}). {advice}")
    return {
        index: Decision(
            kept=False,
            rule="too_few_objects",
            reason=f"dropped: {counted(count, 'object') if count else 'no objects'} found in it, fewer than the {least} asked for",
        )
        for index, count in few.items()
    }


def shows_nothing_at_all(analyses: Sequence[FrameAnalysis]) -> bool:
    """Whether every picture is plain black."""
    return all(int(analysis.signature.max()) <= NOTHING_LEVEL for analysis in analyses)


def _take_back(analyses: Sequence[FrameAnalysis], dropped: dict[int, Decision], min_sharpness: float | None) -> str | None:
    """Where all frames are bad, take back those that are least so: a video that shows anything keeps a keyframe.

    Returns:
        What they are, in words; None where some were good.

    Raises:
        InputError: all are plain black, or below what the user asked for.
    """
    if len(dropped) < len(analyses):
        return None
    if shows_nothing_at_all(analyses):
        seen = "The only frame that was looked at is" if len(analyses) == 1 else f"All {len(analyses):,} frames that were looked at are"
        raise InputError(f"{seen} black: the video shows nothing to keep.")
    rules = {decision.rule for decision in dropped.values()}
    if "below_min_sharpness" in rules and min_sharpness is not None:
        best = max(analysis.measured.quality.sharpness for analysis in analyses)
        sentence = f"0 of {counted(len(analyses), 'candidate')} are sharp enough (best {best:.1f}, asked {min_sharpness:g})."
        raise InputError(f"{sentence} Try {option('min_sharpness', round(best / 2))}." if best >= 2 else sentence)
    least_bad = next(rule for rule in BEST_OF_BAD if rule in rules)
    for index in [index for index, decision in dropped.items() if decision.rule == least_bad]:
        del dropped[index]
    return WORDS[least_bad]


def copies(analyses: Sequence[FrameAnalysis], remaining: Sequence[int]) -> dict[int, Decision]:
    """Frames that show the very picture of the one before; of such a row the sharpest stays."""
    dropped: dict[int, Decision] = {}
    row: list[int] = []
    for index in [*remaining, None]:
        if index is not None and row and same_picture(analyses[row[0]], analyses[index]):
            row.append(index)
            continue
        if len(row) > 1:
            best = max(row, key=lambda member: analyses[member].measured.quality.sharpness)
            reason = f"dropped: shows the same picture as {timecode(analyses[best].time_s)}"
            dropped |= {
                member: Decision(kept=False, rule="duplicate", reason=reason, neighbours=(best,)) for member in row if member != best
            }
        row = [] if index is None else [index]
    return dropped


def same_picture(a: FrameAnalysis, b: FrameAnalysis) -> bool:
    """Whether nothing but coding noise tells the two apart."""
    return int(np.abs(a.signature.astype(np.int16) - b.signature).max()) < SAME_PICTURE_LEVELS


def select(
    analyses: Sequence[FrameAnalysis],
    embeddings: Embeddings,
    *,
    pruner: Pruner,
    keyframes: int | None,
    redundant: float,
    min_sharpness: float | None,
    min_objects: int = 0,
    text_weight: float = TEXT_WEIGHT,
    relevance: Sequence[float] | None = None,
) -> tuple[list[Decision], list[str], PruningResult]:
    """One decision a look, the kept ones being the keyframes; what the user should be told; and what the pruner found.

    Args:
        keyframes: at most so many; None where the pruner decides how many.
        redundant: the likeness from which on frames of this embedder show the same.
        text_weight: share of the text cosine in the likeness.
        relevance: of each look to what the user asks for.

    Raises:
        InputError: nothing is left to keep.
    """
    decisions: dict[int, Decision] = {}
    poor, as_is = None, pruner.capabilities.as_is
    if not as_is:
        decisions = bad_frames(analyses, min_sharpness)
        poor = _take_back(analyses, decisions, min_sharpness)
        decisions |= copies(analyses, [index for index in range(len(analyses)) if index not in decisions])
        decisions |= poor_in_objects(analyses, [index for index in range(len(analyses)) if index not in decisions], min_objects)
    remaining = [index for index in range(len(analyses)) if index not in decisions]
    frames = prunable(analyses, embeddings, remaining, text_weight=text_weight, relevance=relevance)
    thinned = pruner.prune(frames, keep=keyframes, redundant=redundant)
    for drop in thinned.drops:
        neighbours = tuple(remaining[row] for row in drop.neighbours)
        decisions[remaining[drop.index]] = Decision(
            kept=False, rule="pruned", reason=drop.reason, step=drop.step, score=drop.score, neighbours=neighbours
        )
    for row, index in enumerate(remaining):
        reason = thinned.reasons.get(row, thinned.kept) if thinned.drops or as_is else "kept: unlike all others"
        decisions.setdefault(index, Decision(kept=True, rule="kept", reason=reason))
    told = [f"Every frame that was looked at is {poor}; the best of them are kept."] if poor else []
    return [decisions[index] for index in range(len(analyses))], told, thinned


def good_frames(analyses: Sequence[FrameAnalysis], min_sharpness: float | None) -> list[int]:
    """Indices of the looks that are neither bad nor copies."""
    bad = bad_frames(analyses, min_sharpness)
    good = [index for index in range(len(analyses)) if index not in bad]
    same = copies(analyses, good)
    return [index for index in good if index not in same]


def likely_keyframes(analyses: Sequence[FrameAnalysis], *, keyframes: int, min_sharpness: float | None) -> list[FrameAnalysis]:
    """The looks that would stand for a scene each if there were this many scenes."""
    remaining = good_frames(analyses, min_sharpness)
    if not remaining:
        return []
    frames = prunable(analyses, by_picture_only(analyses), remaining)
    return [analyses[remaining[row]] for row in sorted(representatives(frames, keyframes))]


def by_picture_only(analyses: Sequence[FrameAnalysis]) -> Embeddings:
    """For what is decided before any text is known: all texts alike."""
    return Embeddings(
        np.array([analysis.vector for analysis in analyses], np.float32), np.ones((len(analyses), 1), np.float32), "pictures only"
    )


def prunable(
    analyses: Sequence[FrameAnalysis],
    embeddings: Embeddings,
    chosen: Sequence[int],
    *,
    text_weight: float = TEXT_WEIGHT,
    relevance: Sequence[float] | None = None,
) -> Prunable:
    """The chosen looks, by their indices, as pruners see them."""
    members = [analyses[index] for index in chosen]
    return Prunable(
        Embeddings(embeddings.image[chosen], embeddings.text[chosen], embeddings.model),
        times_s=[analysis.time_s for analysis in members],
        has_people=[has_people(analysis.detections or ()) for analysis in members],
        sharpness=[analysis.measured.quality.sharpness for analysis in members],
        in_transition=[analysis.in_transition for analysis in members],
        text_weight=text_weight,
        relevance=None if relevance is None else [relevance[index] for index in chosen],
    )
