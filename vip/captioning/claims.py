"""The check that each claim of a description is supported by its own frame: the first step of `--verify`, without asking any engine.

In: the descriptions of one video in order, the vectors of their frames in a space that texts share (CLIP), and what a
detector found. Out: a Check for every field and every named object. The cosine of a claim and its frame means nothing by
itself, so it is compared with what does not belong together in the same video: this claim with the other frames, and the
others' claims with this frame. Claims of a field that mostly stand out from that make one suspect that does not; where hardly
any does, as with moods or in a scene that stays, only what lies clearly below is, and the rest is left open.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt

from vip.captioning.count_claims import MISSES_MOST, SURE_DETECTION, check_counts
from vip.captioning.same_thing import main_noun, same_thing
from vip.protocols import Embedder
from vip.records import NOT_DETERMINED, Check, Description, Detection, Famous, Vectors, Verification

FIELDS = ("focus", "action", "mood", "objects", "setting")
SAME_PICTURE_COSINE = 0.95  # image cosine from which on frames show the same, so that a claim fits each of them
MOST_OTHERS = 64  # frames that one is compared with: enough for a mean and its spread, and 100,000 pictures stay affordable
MOST_NAMES = 8  # objects of another frame that count; a longer list says no more about the frame
TEXTS_AT_ONCE = 1024
LEAST_SPREAD = 0.02  # of cosines that do not belong together; two or three may agree by chance, and measure no spread
# In units of that spread; of what does not belong together, one pair in fifteen lies 1.5 above its mean, and one as far below.
SUPPORTED_FROM = 1.5
CLEARLY_BELOW = -1.5
HARDLY_ABOVE = 0.5  # with a detector that misses the object too
DISTINCTIVE_FROM = 1.5  # the median of a field from which on the embedder tells its claims apart
LEAST_CLAIMS = 5  # for that median
SUPPORTED_SHARE, SUSPECT_SHARE = 1 / 2, 1 / 3  # of that median: where most claims stand out, a true one stands out too

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class _Claim:
    field: str
    text: str
    key: str
    """Equal where two claims say the same."""
    row: int
    """Of the matrix of texts."""


_ByField = Mapping[str, Sequence[_Claim]]  # the claims of one frame that say something


@dataclass(frozen=True, slots=True)
class _Finding:
    similarity: float
    baseline: float
    above: float
    """How far the similarity lies above the baseline, in units of its spread."""


def check_claims(
    descriptions: Sequence[Description],
    images: Vectors | None,
    embedder: Embedder | None,
    detections: Sequence[tuple[Detection, ...] | None],
    detector: str | None,
) -> list[Verification]:
    """Return a Verification for each description.

    Args:
        descriptions: all of one video, or of one folder of pictures, in order.
        images: (N, D), the vectors of their frames by `embedder`; None where there are none.
        embedder: one with a joint space; any other has no say.
        detections: of each frame; None where the detector knows nothing about it.
        detector: its name; None where nobody looked.
    """
    if len(detections) != len(descriptions) or (images is not None and len(images) != len(descriptions)):
        raise ValueError(
            f"{len(descriptions)} descriptions, {len(detections)} detections, {'no' if images is None else len(images)} images"
        )
    rows: dict[str, int] = {}
    claims = [[_make_claim(field, text, rows) for field, text in _claims_in(one.famous)] for one in descriptions]
    findings: list[list[_Finding | None]] = [[None] * len(own) for own in claims]
    if images is not None and embedder is not None and embedder.capabilities.joint_space:
        texts = _embed_texts(list(rows), embedder)
        by_field = [{field: [one for one in own if one.field == field and one.row >= 0] for field in FIELDS} for own in claims]
        findings = [_compare_claims(frame, own, by_field, images, texts) for frame, own in enumerate(claims)]
    judge = _Judge("" if embedder is None else embedder.name, _typical_margins(claims, findings), detections, detector)
    return [
        Verification(
            checks=(
                *(judge.check(frame, claim, finding) for claim, finding in zip(own, found, strict=True)),
                *check_counts(descriptions[frame].rich, detections[frame], detector, judge.findable),
            )
        )
        for frame, (own, found) in enumerate(zip(claims, findings, strict=True))
    ]


def unsupported(verification: Verification) -> tuple[Check, ...]:
    """Return the claims that need a second look; numbers do not, since a model that miscounts does so twice."""
    return tuple(check for check in verification.checks if check.verdict == "unsupported" and check.field in FIELDS)


def mark_unchecked(description: Description) -> Verification:
    """Return the Verification of a description whose picture cannot be read: nothing is held for or against its claims."""
    claims = [
        Check.model_validate({"field": field, "claim": text, "verdict": "unchecked"}) for field, text in _claims_in(description.famous)
    ]
    return Verification(checks=(*claims, *check_counts(description.rich, None, None, ())))


def apply_corrections(famous: Famous, checks: Sequence[Check]) -> Famous:
    """Return FAMOuS as the second look corrected it; an object that is not there is dropped, a text becomes "not determined"."""
    after: dict[tuple[str, str], str] = {(check.field, check.claim): check.after.strip() for check in checks if check.after is not None}
    objects = [after.get(("objects", name), name) for name in famous.objects]
    texts = {
        field: after.get((field, getattr(famous, field)), getattr(famous, field)) or NOT_DETERMINED
        for field in FIELDS
        if field != "objects"
    }
    return Famous(objects=tuple(dict.fromkeys(name for name in objects if not _is_open(name))), **texts)


def _claims_in(famous: Famous) -> Iterator[tuple[str, str]]:
    for field in FIELDS:
        said = getattr(famous, field)
        yield from ((field, text) for text in (said if field == "objects" else (said,)))


def _is_open(text: str) -> bool:
    return not text.strip() or text.strip().casefold().startswith(NOT_DETERMINED)


def _make_claim(field: str, text: str, rows: dict[str, int]) -> _Claim:
    row = -1 if _is_open(text) else rows.setdefault(text, len(rows))
    return _Claim(field, text, main_noun(text) if field == "objects" else " ".join(text.casefold().split()).rstrip("."), row)


def _embed_texts(texts: Sequence[str], embedder: Embedder) -> Vectors:
    """Return the vectors (N, D) of the texts, embedded in parts."""
    parts = [embedder.embed_texts(texts[at : at + TEXTS_AT_ONCE]) for at in range(0, len(texts), TEXTS_AT_ONCE)]
    return np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)


# ---------------------------------------------------------------- similarity against chance


def _compare_claims(
    frame: int, own: Sequence[_Claim], by_field: Sequence[_ByField], images: Vectors, texts: Vectors
) -> list[_Finding | None]:
    """Return the embedder's finding about each claim of one frame; None where there is nothing to compare it with."""
    others = _other_frames(frame, len(by_field))
    others = others[images[others] @ images[frame] < SAME_PICTURE_COSINE]
    return [_compare_claim(claim, frame, others, by_field, images, texts) for claim in own]


def _other_frames(frame: int, count: int) -> npt.NDArray[np.int64]:
    """Return at most MOST_OTHERS other frames, spread evenly over the video."""
    steps = min(MOST_OTHERS, count - 1)
    return (frame + 1 + np.arange(steps, dtype=np.int64) * (count - 1) // max(1, steps)) % count


def _compare_claim(
    claim: _Claim,
    frame: int,
    others: npt.NDArray[np.int64],
    by_field: Sequence[_ByField],
    images: Vectors,
    texts: Vectors,
) -> _Finding | None:
    if claim.row < 0:
        return None
    own = {one.key for one in by_field[frame][claim.field]}
    elsewhere, foreign = [], []
    for other in others.tolist():
        theirs = by_field[other][claim.field]
        if any(one.key == claim.key for one in theirs):
            continue  # who says the same there says nothing against it here
        elsewhere.append(other)
        foreign += [one.row for one in theirs if one.key not in own][:MOST_NAMES]
    if not elsewhere:
        return None
    similarity = float(images[frame] @ texts[claim.row])
    sets = [_sorted(images[elsewhere] @ texts[claim.row])]
    if foreign:
        sets.append(_sorted(texts[foreign] @ images[frame]))
    baseline = sum(float(values.mean()) for values in sets) / len(sets)
    spread = max(LEAST_SPREAD, (sum(float(values.var()) for values in sets) / len(sets)) ** 0.5)
    return _Finding(round(similarity, 4), round(baseline, 4), round((similarity - baseline) / spread, 3))


def _sorted(cosines: npt.NDArray[np.float32]) -> Floats:
    """Return the cosines sorted: the order of the frames then does not change the last digits of their sum."""
    return np.sort(cosines.astype(np.float64))


def _typical_margins(claims: Sequence[Sequence[_Claim]], findings: Sequence[Sequence[_Finding | None]]) -> dict[str, float]:
    """Return how far claims of a field usually lie above their baselines; only of fields whose claims the embedder can distinguish."""
    above: dict[str, list[float]] = {field: [] for field in FIELDS}
    for own, found in zip(claims, findings, strict=True):
        for claim, finding in zip(own, found, strict=True):
            if finding is not None:
                above[claim.field].append(finding.above)
    usual = {field: median(values) for field, values in above.items() if len(values) >= LEAST_CLAIMS}
    return {field: value for field, value in usual.items() if value >= DISTINCTIVE_FROM}


# ---------------------------------------------------------------- verdicts


class _Judge:
    """The rule that combines what the embedder and the detector find about a claim."""

    def __init__(
        self, embedder: str, usual: Mapping[str, float], detections: Sequence[tuple[Detection, ...] | None], detector: str | None
    ) -> None:
        self._embedder, self._usual = embedder, usual
        self._detections = detections
        self._detector = detector
        self.findable = {one.label for found in detections for one in found or () if one.kind == "object"}

    def check(self, frame: int, claim: _Claim, finding: _Finding | None) -> Check:
        seen, missed = self._check_detections(frame, claim)
        by: Mapping[str, bool] = {}
        verdict = "unchecked"
        if finding is not None and finding.above >= max(SUPPORTED_FROM, self._usual.get(claim.field, 0) * SUPPORTED_SHARE):
            verdict, by = "supported", {self._embedder: True, self._detector or "": seen}
        elif seen:
            verdict, by = "supported", {self._detector or "": True}
        elif finding is not None and self._speaks_against(claim, finding, missed):
            verdict, by = "unsupported", {self._embedder: True, self._detector or "": missed}
        return Check.model_validate(
            {
                "field": claim.field,
                "claim": claim.text,
                "verdict": verdict,
                "by": tuple(name for name, says in by.items() if says),
                "similarity": finding and finding.similarity,
                "baseline": finding and finding.baseline,
            }
        )

    def _speaks_against(self, claim: _Claim, finding: _Finding, missed: bool) -> bool:
        usual = self._usual.get(claim.field)
        bound = CLEARLY_BELOW if usual is None else usual * SUSPECT_SHARE
        return finding.above <= (max(bound, HARDLY_ABOVE) if missed else bound)

    def _check_detections(self, frame: int, claim: _Claim) -> tuple[bool, bool]:
        """Return whether the detector found the object, and whether it missed it though it finds such objects in other frames."""
        found = self._detections[frame]
        if self._detector is None or found is None or claim.field != "objects" or claim.row < 0:
            return False, False
        alike = [one.score for one in found if one.kind == "object" and same_thing(claim.text, one.label)]
        if alike:
            return max(alike) >= SURE_DETECTION, False
        can = self._detector not in MISSES_MOST and any(same_thing(claim.text, label) for label in self.findable)
        return False, can
