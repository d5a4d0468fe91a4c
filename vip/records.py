"""The records that flow between the stages: arrays in frozen dataclasses, everything on disk in frozen pydantic models.

Time inside the program is an integer PTS (presentation time stamp) with its time base (seconds a tick);
`time_s` appears at the edge. `index / fps` is never a time: it is wrong for variable rates.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from vip.untrusted import MAX_INTEGER, MIN_INTEGER

if TYPE_CHECKING:  # whoever only reads records, as the page of `vip review` does, starts 50 ms sooner
    import numpy as np
    import numpy.typing as npt

Image: TypeAlias = "npt.NDArray[np.uint8]"  # (H, W, 3) RGB, upright, square pixels
GreyPicture: TypeAlias = "npt.NDArray[np.uint8]"  # (H, W)
Vectors: TypeAlias = "npt.NDArray[np.float32]"  # (N, D), rows of length 1
Samples: TypeAlias = "npt.NDArray[np.float32]"  # (N,): sound of one channel, SOUND_RATE samples a second, from -1 to 1
SOUND_RATE = 16_000

SCHEMA_VERSION: Literal[1] = 1
NOT_DETERMINED = "not determined"  # in a description, in every language: the picture does not show it
NOT_KNOWN = "not known"  # nobody measured it
MOST_COUNTED = 100_000  # of a thing in one picture
MOST_TIME_S = 1e7
MOST_VIDEO_TIME_S = 1e30  # more than any number of 64 bits in any time base of FFmpeg
MOST_PIXELS = 2**31
MOST_WORDS_LETTERS = 2000  # of one subtitle, or of one line of text in a picture
MOST_TEXT_LINES = 500  # of text in one picture; a full page has a tenth of them
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
        if self.image.ndim != 3 or self.image.shape[2] != 3 or self.image.dtype != "uint8":
            raise ValueError(f"expected uint8 (H, W, 3), got {self.image.dtype} {self.image.shape}")

    @property
    def time_s(self) -> float:
        return float(self.pts * self.time_base)

    def __repr__(self) -> str:
        return f"Frame(time_s={self.time_s:.3f}, image={self.image.shape})"


@dataclass(frozen=True, eq=False)
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

    @cached_property
    def by_time(self) -> npt.NDArray[np.intp]:
        """Row numbers in the order of the PTS."""
        return self.pts.argsort(kind="stable")

    @cached_property
    def sync_rows(self) -> npt.NDArray[np.intp]:
        """Row numbers of the sync packets."""
        return self.is_sync.nonzero()[0]


def _ascending(pts: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Return each PTS once, in order; np.unique would load numpy.ma, a tenth of the start of a command."""
    import numpy as np

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


_PLAIN_PATH = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(?:/[A-Za-z0-9_-][A-Za-z0-9._-]*)*")
"""Paths that need no closer look: relative, without a drive, and no part begins with a dot."""


def _plain_name(value: str) -> str:
    if "/" not in value and _PLAIN_PATH.fullmatch(value):
        return value
    if not value or value in {".", ".."} or PurePath(value).name != value or not _is_encodable(value):
        raise ValueError(f"{value!r} is not the plain name of a file")
    return value


def _path_inside(value: str) -> str:
    if _PLAIN_PATH.fullmatch(value):
        return value
    path = PurePath(value)
    if not path.name or path.is_absolute() or path.drive or ".." in path.parts or not _is_encodable(value):
        raise ValueError(f"{value!r} leads out of the folder")
    return value


def _is_encodable(value: str) -> bool:
    """Return whether a file system takes the text in a path."""
    try:
        return b"\0" not in os.fsencode(value)
    except UnicodeEncodeError:
        return False


PlainName = Annotated[str, AfterValidator(_plain_name)]
"""The name of a file or a folder, which cannot lead out of the folder it is put in."""
PathInside = Annotated[str, AfterValidator(_path_inside)]
"""A path from a folder to something in it."""


def _is_ratio(value: Fraction) -> Fraction:
    if not MIN_INTEGER <= value.numerator <= MAX_INTEGER or value.denominator > MAX_INTEGER:
        raise ValueError("it is beyond 64 bits")
    return value


def _is_integer(value: int) -> int:
    if not MIN_INTEGER <= value <= MAX_INTEGER:
        raise ValueError("it is beyond 64 bits")
    return value


Time = Annotated[float, Field(ge=-MOST_VIDEO_TIME_S, le=MOST_VIDEO_TIME_S)]
"""Seconds on the clock of a video."""
Integer = Annotated[int, AfterValidator(_is_integer)]
"""Of 64 bits; nothing of that in the JSON schema, which engines are asked to hold to."""
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Ratio = Annotated[Fraction, AfterValidator(_is_ratio)]
Pixels = Annotated[int, Field(ge=0, le=MOST_PIXELS)]
"""The length of a side."""


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
    size_bytes: Count
    modified_ns: Integer | None
    """Modification time of the file, to recognise it without hashing; None where a server does not state it."""
    container: str
    codec: str
    pixel_format: str
    width_px: Pixels
    """As displayed: after rotation, with square pixels."""
    height_px: Pixels
    rotation_deg: Integer
    """Clockwise turn that the display matrix asks for."""
    pixel_aspect_ratio: Ratio
    """Width of a stored pixel in units of its height."""
    frame_rate: Ratio | None
    duration_s_from_header: Time | None
    start_time_s: Time
    """PTS of the first frame; not 0 where the stream starts late."""
    end_time_s: Time
    """PTS of the last frame."""
    frames: Count | None
    """Number of frames that are shown within --start and --end; None where only the sync frames are known."""
    sync_frames: Count


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
    step: Integer | None = None
    """The round of the pruner that dropped it, from 1."""
    score: float | None = None
    """Its similarity to the neighbours in that round; for Algorithm 1 the mean of image and text cosine."""
    neighbours: tuple[Integer, ...] = ()
    """Candidate indices of the neighbours in that round."""


class Candidate(Record):
    """One row of candidates.jsonl: a sampled frame, its scores and its decision."""

    index: Count
    pts: Integer
    time_base: Ratio
    time_s: Time
    is_sync: bool
    quality: Quality | None
    """None where the frame could not be decoded."""
    detections: tuple[Detection, ...] | None = None
    """None where no objects were sought."""
    stands_in_for: Integer | None = None
    """PTS of the bad frame of the same shot that this one replaces."""
    relevance: float | None = None
    """Cosine of the picture and the user's query; None without a query."""
    decision: Decision


class Keyframe(Record):
    """One row of keyframes.jsonl. A picture that does not come from a video has no times."""

    id: str
    video_id: PlainName
    time_s: Time | None
    pts: Integer | None
    image_path: PathInside
    """Relative to the run folder."""
    width_px: Annotated[Pixels, Field(ge=1)]
    height_px: Annotated[Pixels, Field(ge=1)]
    quality: Quality
    detections: tuple[Detection, ...] | None
    """None where the detector did not see the picture; empty where it found nothing in it."""
    detector: str | None = None
    """The detector and its labels, for a picture that comes from no video; for a run the manifest names it."""
    candidate: Count | None
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


def _is_countable(count: int) -> int:
    if not 0 <= count <= MOST_COUNTED:
        raise ValueError(f"it is not from 0 to {MOST_COUNTED:,}")
    return count


class Captioned(RecordPart):
    """Free text about the whole frame."""

    dense_caption: Annotated[str, AfterValidator(_not_empty)]


class Direct(Famous, Captioned):
    """The answer of the recipe `direct`: first the dense caption, then FAMOuS from it."""

    @property
    def famous(self) -> Famous:
        return Famous(**{name: getattr(self, name) for name in Famous.model_fields})


class ObjectCount(RecordPart):
    """How many of a thing the frame shows."""

    object: str
    count: Annotated[int, Field(strict=True), AfterValidator(_is_countable)]

    @property
    def phrase(self) -> str:
        """`dog: 3`."""
        return f"{self.object}: {self.count}"


class ObjectColour(RecordPart):
    """The colour of a thing."""

    object: str
    colour: str

    @property
    def phrase(self) -> str:
        """`coat: red`."""
        return f"{self.object}: {self.colour}"


class Relation(RecordPart):
    """Where a thing is, seen from another: `dog`, `left of`, `bench`."""

    subject: str
    relation: str
    object: str

    @property
    def phrase(self) -> str:
        """`dog left of bench`."""
        return f"{self.subject} {self.relation} {self.object}"


Phrase = ObjectCount | ObjectColour | Relation
"""An entry that can be said in a few words."""

ShotSize = Literal["extreme close-up", "close-up", "medium shot", "full shot", "long shot", "extreme long shot", "not determined"]
CameraAngle = Literal["eye level", "high angle", "low angle", "overhead", "tilted", "not determined"]
DepthOfField = Literal["shallow", "deep", "not determined"]


class Rich(RecordPart):
    """The answer of the schema `rich`: what benchmarks ask of a description beside FAMOuS, as far as one frame shows it."""

    short_caption: str
    main_object: str
    """What it looks like and does, in a sentence or two."""
    background: str
    style: str
    """`photograph`, `cartoon`, `screen recording`."""
    shot_size: ShotSize
    camera_angle: CameraAngle
    depth_of_field: DepthOfField
    counts: tuple[ObjectCount, ...]
    colours: tuple[ObjectColour, ...]
    relations: tuple[Relation, ...]
    visible_text: tuple[str, ...]
    """What can be read in the picture, each piece as it stands there."""
    characters: tuple[str, ...]
    """Made-up characters by name, and people whose name stands in the picture."""


class RichFields(Rich):
    """The fields of the schema `rich`, with what vip measured itself."""

    camera_movement: str
    """Measured against the keyframe before, or "not known": one frame does not show it."""


class Expected(RecordPart):
    """The grounding list of section 3.2: objects to be expected from the topic of a video."""

    objects: tuple[str, ...]


class ClaimReview(RecordPart):
    """The verdict of a second look at one claim."""

    number: Integer
    seen: bool
    text: str


class Review(RecordPart):
    """The verdicts of a second look at the claims that found no support."""

    claims: tuple[ClaimReview, ...]


class FrameObservation(RecordPart):
    """What one frame shows that bears on a question."""

    observation: Annotated[str, AfterValidator(_not_empty)]
    is_relevant: bool


class AnswerFromFrames(RecordPart):
    """The answer to a question from what was observed in frames, as an engine gives it: its citations are not checked yet."""

    reasoning: str
    is_supported: bool
    answer: Annotated[str, AfterValidator(_not_empty)]
    citations: tuple[Integer, ...]


class Call(RecordPart):
    """One request to an engine: the prompt, the model, the cost."""

    engine: str
    model: str
    prompt: str
    prompt_version: str
    prompt_sha256: str
    parameters: dict[str, Any]
    tokens_in: Count | None
    tokens_out: Count | None
    usd: float | None
    latency_s: float
    created_utc: str
    cached: bool = False
    """The answer came from the cache, and cost nothing."""


class Check(RecordPart):
    """One claim of a description, checked against its own frame."""

    field: Literal["focus", "action", "mood", "objects", "setting", "counts"]
    claim: str
    """The field's text; of `objects` one name, of `counts` one name with its number: `dog: 3`."""
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
    """Which texts of a description were changed in a review, by people or by the engine that wrote captions again."""

    fields: tuple[str, ...]
    """`dense_caption`, fields of FAMOuS, or those of the schema `rich`."""
    reviewers: tuple[str, ...]
    """Those in `changed_by`, each once; an engine is `engine:NAME`."""
    changed_by: dict[str, str] = {}
    """Field -> the last to change it. Empty in exports that are older than this."""
    changed_utc: str
    """The last change."""


class Description(Record):
    """One row of descriptions.jsonl."""

    keyframe_id: str
    time_s: Time | None
    engine: str
    """Engine and model, as a user names them: `offline`, `openai:gpt-5-mini-2025-08-07`."""
    recipe: Literal["direct", "paper"] = "paper"
    """One request or three, see `vip.captioning.describer`."""
    language: str = "English"
    context: Count = 0
    """The number of captions before it that went into the request."""
    topic: str | None = None
    words: str | None = None
    """SHA-256 of the words of the video and of how they are shown to the engine; None where it has none."""
    grounding: tuple[str, ...]
    """The grounding list in the request: what was detected, measured, or expected from the topic."""
    caption: str | None = None
    """The overall caption that the recipe `paper` starts from."""
    dense_caption: str
    famous: Famous
    rich: RichFields | None = None
    """None where only FAMOuS was asked for."""
    verification: Verification | None = None
    """None where the description was not checked against its frame."""
    reviewed: Reviewed | None = None
    """None where nobody changed it. In a run the engine's own texts stay; only exports have the reviewed ones."""
    calls: tuple[Call, ...]


class SpokenWords(Record):
    """One row of words.jsonl: words with their times, and where they come from."""

    start_s: float = Field(ge=-MOST_TIME_S, le=MOST_TIME_S)
    """On the clock of the keyframes."""
    end_s: float = Field(ge=-MOST_TIME_S, le=MOST_TIME_S)
    text: str = Field(min_length=1, max_length=MOST_WORDS_LETTERS)
    """On one line."""
    source: Literal["subtitles", "speech"] = "subtitles"
    """How they became text. Subtitles are what somebody wrote: nobody listened to the sound. Speech was transcribed by a program."""
    origin: str = Field(max_length=400)
    """The file beside the video, or the stream in it; of speech the program, its model and the language."""


class TranscribedWindow(Record):
    """One row of speech.jsonl: what was said in a few minutes of sound, and where to go on."""

    key: str = Field(max_length=100)
    """Digest of what it depends on: the file, the time range, the model, the language."""
    end_s: float = Field(ge=-MOST_TIME_S, le=MOST_TIME_S)
    """Where the next row begins, on the clock of the keyframes."""
    language: str | None = Field(None, max_length=20)
    """The one that the next rows keep."""
    words: tuple[SpokenWords, ...] = ()
    unsure: Count = 0
    """Segments that the model was not sure of, and that are left out."""
    is_last: bool = False


Fraction0To1 = Annotated[float, Field(ge=0, le=1)]


class TextLine(RecordPart):
    """A line of text that a program read in a picture."""

    text: str = Field(min_length=1, max_length=MOST_WORDS_LETTERS)
    score: Fraction0To1
    """How sure the reader is of its letters."""
    box_xyxy: tuple[Fraction0To1, Fraction0To1, Fraction0To1, Fraction0To1]
    """Left, top, right, bottom as fractions of width and height."""


class KeyframeText(Record):
    """One row of text.jsonl: the text in one keyframe, as a program read it."""

    keyframe_id: str
    picture_sha256: str
    """Of the picture's file that was read."""
    reader: str = Field(max_length=200)
    """The program and its version: `rapidocr 3.10.0`."""
    lines: tuple[TextLine, ...] = Field(max_length=MOST_TEXT_LINES)
    """In the order in which they are read; empty where there is no text."""


class Failure(Record):
    """One row of failures.jsonl: an item that failed while others went on."""

    item: str
    kind: str
    message: str
    exit_code: Integer


class CandidateCounts(RecordPart):
    """The number of candidates by decision; the numbers add up."""

    asked: Count | None
    """None where the number was left open (`-n auto`)."""
    candidates: Count
    bad: Count
    pruned: Count
    duplicates: Count
    keyframes: Count

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
    curve: dict[Count, float] = {}
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
        """The text that is signed: all that is opened, loaded or shown unasked where this machine made the run."""
        made_by = [self.settings, self.backends, self.notes, self.losses]
        return "\n".join([self.video.path, self.video_id, self.created_utc, json.dumps(made_by, sort_keys=True)])
