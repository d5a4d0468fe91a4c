"""The records that flow between the stages: arrays in frozen dataclasses, everything on disk in frozen pydantic models.

Time inside the program is an integer PTS (presentation time stamp) with its time base (seconds a tick);
`time_s` appears at the edge. `index / fps` is never a time: it is wrong for variable rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import PurePath
from typing import Annotated, Any, Literal

import numpy as np
import numpy.typing as npt
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

Image = npt.NDArray[np.uint8]  # (H, W, 3) RGB, upright, square pixels
Vectors = npt.NDArray[np.float32]  # (N, D), rows of length 1

SCHEMA_VERSION: Literal[1] = 1
NOT_DETERMINED = "not determined"  # in a description, in every language: the picture does not show it
PICTURE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff"})

Rule = Literal[
    "kept",  # a keyframe
    "pruned",  # by the pruner: most like its neighbours
    "duplicate",  # the same picture as its neighbour
    "blurred",  # blurred against its surroundings
    "faded",  # a dim copy of a neighbour, as in a fade from or to black
    "in_transition",  # in a cross-fade or another change of shot, and a better frame of the shot was found
    "below_min_sharpness",  # under --min-sharpness
    "too_few_objects",  # under --min-objects
    "black",
    "white",
    "flat",
    "unreadable",  # could not be decoded
]


# ---------------------------------------------------------------- in memory


@dataclass(frozen=True, slots=True)
class Frame:
    """One decoded picture as a player shows it: upright, square pixels, full-range RGB, alpha over black."""

    pts: int
    time_base: Fraction
    image: Image

    def __post_init__(self) -> None:
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != np.uint8:
            raise ValueError(f"expected uint8 (H, W, 3), got {self.image.dtype} {self.image.shape}")

    @property
    def time_s(self) -> float:
        return float(self.pts * self.time_base)

    def __repr__(self) -> str:
        return f"Frame(time_s={self.time_s:.3f}, image={self.image.shape})"


@dataclass(frozen=True)
class PacketIndex:
    """The packets of one video stream in decoding order, read without decoding anything.

    All of length N: `pts` and `dts` int64; `is_sync` bool: decoding can start here; `size_bytes` int64;
    `is_shown` bool: False where an edit list hides the frame from the viewer, or where it lies outside --start and --end.
    """

    pts: npt.NDArray[np.int64]
    dts: npt.NDArray[np.int64]
    is_sync: npt.NDArray[np.bool_]
    size_bytes: npt.NDArray[np.int64]
    is_shown: npt.NDArray[np.bool_]
    time_base: Fraction
    by_decoding: bool = False
    """The file has no PTS: rows are the frames in the order in which the decoder gives them."""
    is_sparse: bool = False
    """Rows are some of the sync frames; the packets between them were not read."""
    decodes_all: bool = False
    """The decoder cannot skip frames (VP8, VP9, AV1), so frames between sync frames cost several times as much."""

    def __post_init__(self) -> None:
        lengths = {len(column) for column in (self.pts, self.dts, self.is_sync, self.size_bytes, self.is_shown)}
        if len(lengths) != 1:
            raise ValueError(f"columns of different lengths: {sorted(lengths)}")

    def __len__(self) -> int:
        return len(self.pts)

    def __repr__(self) -> str:
        return f"PacketIndex(packets={len(self)}, sync={int(self.is_sync.sum())})"

    @cached_property
    def sync_pts(self) -> npt.NDArray[np.int64]:
        """PTS of the sync frames that are shown, in time order."""
        return _ascending(self.pts[self.is_sync & self.is_shown])

    @cached_property
    def shown_pts(self) -> npt.NDArray[np.int64]:
        """PTS of every frame that is shown, in time order."""
        return _ascending(self.pts[self.is_shown])


def _ascending(pts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each PTS once, in order; np.unique would load numpy.ma, a tenth of the start of a command."""
    ordered = np.sort(pts)
    return np.asarray(ordered[np.append(True, ordered[1:] != ordered[:-1])[: len(ordered)]], np.int64)


@dataclass(frozen=True, slots=True)
class Embeddings:
    """Vectors of N candidates: `image` and `text` float32 (N, D), rows of length 1; `model` names the embedder."""

    image: Vectors
    text: Vectors
    model: str

    def __post_init__(self) -> None:
        if self.image.ndim != 2 or self.text.ndim != 2 or len(self.image) != len(self.text):
            raise ValueError(f"expected (N, D) and (N, E), got {self.image.shape} and {self.text.shape}")

    def __len__(self) -> int:
        return len(self.image)

    def __repr__(self) -> str:
        return f"Embeddings(image={self.image.shape}, text={self.text.shape}, model={self.model!r})"


# ---------------------------------------------------------------- on disk


def _plain_name(value: str) -> str:
    if not value or value in {".", ".."} or PurePath(value).name != value or "\0" in value:
        raise ValueError(f"{value!r} is not the plain name of a file")
    return value


def _path_inside(value: str) -> str:
    path = PurePath(value)
    if not path.name or path.is_absolute() or path.drive or ".." in path.parts or "\0" in value:
        raise ValueError(f"{value!r} leads out of the folder")
    return value


PlainName = Annotated[str, AfterValidator(_plain_name)]
"""The name of a file or a folder, which cannot lead out of the folder it is put in."""
PathInside = Annotated[str, AfterValidator(_path_inside)]
"""A path from a folder to something in it."""


class RecordPart(BaseModel):
    """A part of a record: frozen, and without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


class Record(RecordPart):
    """A row or a file of the run folder."""

    schema_version: Literal[1] = SCHEMA_VERSION


class VideoInfo(RecordPart):
    """Facts about the video that was read, from its container and its packet index."""

    path: str
    """The path, or the address without login and query, which may hold secrets."""
    sha256: str | None
    """Of the file; for a sequence of pictures, of their digests in that order. None for an address, which is not read whole."""
    size_bytes: int
    modified_ns: int | None
    """Modification time of the file, to recognise it without hashing; None where a server does not state it."""
    container: str
    codec: str
    pixel_format: str
    width_px: int
    """As displayed: after rotation, with square pixels."""
    height_px: int
    rotation_deg: int
    """Clockwise turn that the display matrix asks for."""
    pixel_aspect_ratio: Fraction
    """Width of a stored pixel in units of its height."""
    frame_rate: Fraction | None
    duration_s_from_header: float | None
    start_time_s: float
    """PTS of the first frame; not 0 where the stream starts late."""
    end_time_s: float
    """PTS of the last frame."""
    frames: int | None
    """Number of frames that are shown within --start and --end; None where only the sync frames are known."""
    sync_frames: int


class Detection(RecordPart):
    """One object found in a picture, or one region of it described in a phrase."""

    label: str
    """What it is: `dog`; of a region the phrase: `a dog that leaps for a frisbee`."""
    score: float = Field(ge=0, le=1)
    box_xyxy: tuple[float, float, float, float]
    """Left, top, right, bottom as fractions of width and height."""
    source: str
    """The detector that found it."""
    kind: Literal["object", "region"] = "object"


class Quality(RecordPart):
    """Measures of a picture at the fixed working size (`vip.extraction.quality`)."""

    sharpness: float
    """Variance of the Laplacian of the grey picture (section 3.1); low means blurred."""
    brightness: float = Field(ge=0, le=1)
    contrast: float = Field(ge=0)
    """Standard deviation of the grey levels, as a fraction of the full range."""


class Decision(RecordPart):
    """The reason why a candidate was kept or dropped, as a code for programs and a sentence for people."""

    kept: bool
    rule: Rule
    reason: str
    step: int | None = None
    """The round of the pruner that dropped it, from 1."""
    score: float | None = None
    """Its similarity to the neighbours in that round; for Algorithm 1 the mean of image and text cosine."""
    neighbours: tuple[int, ...] = ()
    """Candidate indices of the neighbours in that round."""


class Candidate(Record):
    """One row of candidates.jsonl: a sampled frame, its scores and its decision."""

    index: int
    pts: int
    time_base: Fraction
    time_s: float
    is_sync: bool
    quality: Quality | None
    """None where the frame could not be decoded."""
    detections: tuple[Detection, ...] | None = None
    """None where no objects were sought."""
    stands_in_for: int | None = None
    """PTS of the bad frame of the same shot that this one replaces."""
    relevance: float | None = None
    """Cosine of the picture and the user's query; None without a query."""
    decision: Decision


class Keyframe(Record):
    """One row of keyframes.jsonl. A picture that does not come from a video has no times."""

    id: str
    video_id: PlainName
    time_s: float | None
    pts: int | None
    image_path: PathInside
    """Relative to the run folder."""
    width_px: int
    height_px: int
    quality: Quality
    detections: tuple[Detection, ...] | None
    """None where the detector did not see the picture; empty where it found nothing in it."""
    detector: str | None = None
    """The detector and its labels, for a picture that comes from no video; for a run the manifest names it."""
    candidate: int | None
    """Index of its row in candidates.jsonl."""


class Famous(RecordPart):
    """The structured scene description of section 3.2: Focus, Action, Mood, Objects, Setting."""

    focus: str
    action: str
    mood: str
    objects: tuple[str, ...]
    setting: str

    @property
    def undetermined(self) -> tuple[str, ...]:
        """Names of the fields that are empty, or "not determined" and no more."""
        said = {name: getattr(self, name) for name in Famous.model_fields}
        return tuple(name for name, text in said.items() if not any(map(_is_determined, (text,) if isinstance(text, str) else text)))


def _is_determined(text: str) -> bool:
    return text.strip().rstrip(".").casefold() not in {"", NOT_DETERMINED}


def _not_empty(text: str) -> str:
    if not text.strip():
        raise ValueError("it is empty")
    return text


class Captioned(RecordPart):
    """Free text about the whole frame."""

    dense_caption: Annotated[str, AfterValidator(_not_empty)]


class Direct(Famous, Captioned):
    """The answer of the recipe `direct`: first the dense caption, then FAMOuS from it."""

    @property
    def famous(self) -> Famous:
        return Famous(**{name: getattr(self, name) for name in Famous.model_fields})


class Expected(RecordPart):
    """The grounding list of section 3.2: objects to be expected from the topic of a video."""

    objects: tuple[str, ...]


class ClaimReview(RecordPart):
    """The verdict of a second look at one claim."""

    number: int
    seen: bool
    text: str


class Review(RecordPart):
    """The verdicts of a second look at the claims that found no support."""

    claims: tuple[ClaimReview, ...]


class Call(RecordPart):
    """One request to an engine: the prompt, the model, the cost."""

    engine: str
    model: str
    prompt: str
    prompt_version: str
    prompt_sha256: str
    parameters: dict[str, Any]
    tokens_in: int | None
    tokens_out: int | None
    usd: float | None
    latency_s: float
    created_utc: str
    cached: bool = False
    """The answer came from the cache, and cost nothing."""


class Check(RecordPart):
    """One claim of a description, checked against its own frame."""

    field: Literal["focus", "action", "mood", "objects", "setting"]
    claim: str
    """The field's text; of `objects` one name."""
    verdict: Literal["supported", "unsupported", "unchecked"]
    by: tuple[str, ...] = ()
    """What decided: the embedder, the detector."""
    similarity: float | None = None
    """Cosine of the claim and its own frame."""
    baseline: float | None = None
    """Mean cosine of pairs that do not belong together: this claim with other frames, and other claims with this frame."""
    after: str | None = None
    """The text after a second look, "" where the claim was removed; None where there was no second look."""


class Verification(RecordPart):
    """The result of `--verify`."""

    checks: tuple[Check, ...]
    before: Famous | None = None
    """FAMOuS before the second look corrected it; None where nothing was corrected."""


class Reviewed(RecordPart):
    """Which texts of a description people changed."""

    fields: tuple[str, ...]
    """`dense_caption`, or fields of FAMOuS."""
    reviewers: tuple[str, ...]
    """The last to change each field."""
    changed_utc: str
    """The last change."""


class Description(Record):
    """One row of descriptions.jsonl."""

    keyframe_id: str
    time_s: float | None
    engine: str
    """Engine and model, as a user names them: `offline`, `openai:gpt-5-mini-2025-08-07`."""
    recipe: Literal["direct", "paper"] = "paper"
    """One request or three, see `vip.captioning.describer`."""
    language: str = "English"
    context: int = 0
    """The number of captions before it that went into the request."""
    topic: str | None = None
    grounding: tuple[str, ...]
    """The grounding list in the request: what was detected, measured, or expected from the topic."""
    caption: str | None = None
    """The overall caption that the recipe `paper` starts from."""
    dense_caption: str
    famous: Famous
    verification: Verification | None = None
    """None where the description was not checked against its frame."""
    reviewed: Reviewed | None = None
    """None where nobody changed it. In a run the engine's own texts stay; only exports have the reviewed ones."""
    calls: tuple[Call, ...]


class Failure(Record):
    """One row of failures.jsonl: an item that failed while others went on."""

    item: str
    kind: str
    message: str
    exit_code: int


class CandidateCounts(RecordPart):
    """The number of candidates by decision; the numbers add up."""

    asked: int | None
    """None where the number was left open (`-n auto`)."""
    candidates: int
    bad: int
    pruned: int
    duplicates: int
    keyframes: int

    @model_validator(mode="after")
    def _check_sum(self) -> CandidateCounts:
        if self.candidates != self.bad + self.pruned + self.duplicates + self.keyframes:
            raise ValueError(f"{self!r} does not add up")
        return self


class Pruning(RecordPart):
    """Similarities by which the number of keyframes can be judged."""

    redundant: float
    """The similarity from which on frames of this embedder show the same."""
    bound: float
    """The similarity from which on the pruner drops a frame as redundant with `-n auto`."""
    curve: dict[int, float] = {}
    """Number of keyframes -> similarity of the next one to be dropped; only some numbers where there are many."""


class Origin(RecordPart):
    """The run that the candidates come from."""

    run: str
    created_utc: str


class Manifest(Record):
    """The content of manifest.json: what was asked, how it was done, and which stages are done."""

    command: str
    settings: dict[str, Any]
    """The settings the keyframes depend on, resolved."""
    backends: dict[str, str]
    """The backend that each `auto` stands for."""
    versions: dict[str, str]
    device: str
    """The device of the models: `cpu`, `cuda in fp16`, `embedder cuda in fp16, detector cpu`."""
    video_id: PlainName
    video: VideoInfo
    notes: tuple[str, ...] = ()
    """Notes to the user: losses, fewer keyframes than asked, choices of `auto`."""
    losses: tuple[str, ...] = ()
    """The notes about parts of the video that could not be read."""
    counts: CandidateCounts | None = None
    pruning: Pruning | None = None
    selected_from: Origin | None = None
    """None where the video was analyzed for this run."""
    captioning: dict[str, Any] | None = None
    """Settings of the descriptions, resolved; None before `vip caption`."""
    seconds: dict[str, float] = {}
    """Wall seconds of each finished stage; a stage that is missing here has not finished."""
    created_utc: str
    signature: str | None = None
    """Proves to the machine that made the run that it did (`vip.store.is_own`); other machines do not use the path of the video."""

    @property
    def origin(self) -> str:
        """The text that is signed."""
        return "\n".join([self.video.path, self.video_id, self.created_utc])
