"""From looks to decisions: bad frames out, copies out, then Algorithm 1; each decision in words.

In come the looks of all candidates in time order, out comes one `Decision` for each, of which the kept are the keyframes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from vip.clock import clock
from vip.errors import InputError
from vip.extraction.detect import has_people, text_of
from vip.extraction.prune import prune
from vip.extraction.quality import BadRule, blurred_beside, references, verdict
from vip.extraction.scan import Look
from vip.protocols import Embedder
from vip.records import Decision, Embeddings

SAME_PICTURE_LEVELS = 5  # of 255, in the cell of the signature that differs most; coding noise stays below it

WORDS: dict[BadRule, str] = {
    "black": "nearly black: nothing in it is brighter than a dark grey",
    "white": "nearly white: nothing in it is darker than a light grey",
    "flat": "flat: all of it has nearly the same brightness",
    "blurred": "out of focus",
}


def embed(looks: Sequence[Look], embedder: Embedder) -> Embeddings:
    """The vectors of the looks and of the texts of what was detected in them."""
    texts = embedder.embed_texts([text_of(look.detections) for look in looks])
    return Embeddings(np.array([look.vector for look in looks], np.float32), texts, embedder.name)


def bad_frames(looks: Sequence[Look], min_sharpness: float | None) -> dict[int, Decision]:
    """Those that are not worth showing: index of the look -> why."""
    reference = references([look.measured for look in looks])
    dropped: dict[int, Decision] = {}
    for index, look in enumerate(looks):
        sharpness = look.measured.quality.sharpness
        if rule := verdict(look.measured, reference[index]):
            against = f" (sharpness {sharpness:.1f}, around it {reference[index]:.0f})" if rule == "blurred" else ""
            dropped[index] = Decision(kept=False, rule=rule, reason=f"dropped: {WORDS[rule]}{against}")
        elif min_sharpness is not None and sharpness < min_sharpness:
            reason = f"dropped: sharpness {sharpness:.1f} is below the {min_sharpness:g} asked for"
            dropped[index] = Decision(kept=False, rule="below_min_sharpness", reason=reason)
    for index, look in enumerate(looks):
        for other in (index - 1, index + 1):
            if index in dropped or other in dropped or not 0 <= other < len(looks):
                continue
            mine, its = look.measured.quality.sharpness, looks[other].measured.quality.sharpness
            if blurred_beside(mine, its, float(look.vector @ looks[other].vector)):
                reason = f"dropped: blurred (sharpness {mine:.1f}; the same view at {clock(looks[other].time_s)} has {its:.0f})"
                dropped[index] = Decision(kept=False, rule="blurred", reason=reason, neighbours=(other,))
    return dropped


def rescue(looks: Sequence[Look], dropped: dict[int, Decision], min_sharpness: float | None) -> None:
    """Take the best bad frame back where all are bad, so that a video that shows anything keeps a keyframe.

    Raises:
        InputError: all are black, white or flat, or below the sharpness that the user asked for.
    """
    if not looks or len(dropped) < len(looks):
        return
    sharpness = [look.measured.quality.sharpness for look in looks]
    rules = {decision.rule for decision in dropped.values()}
    if "below_min_sharpness" in rules and min_sharpness is not None:
        raise InputError(
            f"0 of {len(looks)} candidates are sharp enough (best {max(sharpness):.1f}, asked {min_sharpness:g})."
            f" Try --min-sharpness {max(sharpness) * 0.5:.2g}."
        )
    showing = [index for index, decision in dropped.items() if decision.rule == "blurred"]
    if not showing:
        raise InputError(f"All {len(looks)} candidates are {' or '.join(sorted(rules))}: the video shows nothing to keep.")
    del dropped[max(showing, key=lambda index: sharpness[index])]


def copies(looks: Sequence[Look], remaining: Sequence[int]) -> dict[int, Decision]:
    """Frames that show the very picture of the one before; of such a row the sharpest stays."""
    dropped: dict[int, Decision] = {}
    row: list[int] = []
    for index in [*remaining, None]:
        if index is not None and row and same_picture(looks[row[0]], looks[index]):
            row.append(index)
            continue
        if len(row) > 1:
            best = max(row, key=lambda member: looks[member].measured.quality.sharpness)
            reason = f"dropped: shows the same picture as {clock(looks[best].time_s)}"
            dropped |= {
                member: Decision(kept=False, rule="duplicate", reason=reason, neighbours=(best,)) for member in row if member != best
            }
        row = [] if index is None else [index]
    return dropped


def same_picture(a: Look, b: Look) -> bool:
    """Whether nothing but coding noise tells the two apart."""
    return int(np.abs(a.signature.astype(np.int16) - b.signature).max()) < SAME_PICTURE_LEVELS


def choose(looks: Sequence[Look], embeddings: Embeddings, *, keyframes: int, min_sharpness: float | None) -> list[Decision]:
    """One decision a look; the kept ones are the keyframes (at most `keyframes`).

    Raises:
        InputError: nothing is left to keep.
    """
    decisions = bad_frames(looks, min_sharpness)
    rescue(looks, decisions, min_sharpness)
    decisions |= copies(looks, [index for index in range(len(looks)) if index not in decisions])
    remaining = [index for index in range(len(looks)) if index not in decisions]
    vectors = Embeddings(embeddings.image[remaining], embeddings.text[remaining], embeddings.model)
    people = [has_people(looks[index].detections) for index in remaining]
    for removal in prune(vectors, people, keep=keyframes):
        neighbours = tuple(remaining[row] for row in removal.neighbours)
        times = " and ".join(clock(looks[index].time_s) for index in neighbours)
        lifted = "; only frames with people among frames without were left to drop" if removal.lifted_people_rule else ""
        decisions[remaining[removal.index]] = Decision(
            kept=False,
            rule="pruned",
            reason=f"dropped in round {removal.step} of pruning: likeness {removal.score:.3f} to its neighbours at {times}{lifted}",
            step=removal.step,
            score=removal.score,
            neighbours=neighbours,
        )
    kept = [index for index in remaining if index not in decisions]
    sentence = (
        f"kept: one of the {len(kept)} that are least like their neighbours" if len(kept) < len(remaining) else "kept: unlike all others"
    )
    return [decisions.get(index) or Decision(kept=True, rule="kept", reason=sentence) for index in range(len(looks))]
