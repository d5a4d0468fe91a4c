"""The protocols of backends, and the records in which each states what it can do.

A backend has the methods of its protocol and a `capabilities` record: `EngineCapabilities()` where the defaults fit. A new adapter
first joins the conformance suite: tests/models/test_conformance.py, for engines tests/models/test_engine_conformance.py.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, runtime_checkable

from vip.errors import VipError
from vip.records import Detection, Embeddings, Frame, Image, PacketIndex, Quality, Samples, TextLine, Vectors

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt


class Observer(Protocol):
    """A receiver of notes and progress: the command line prints them, the Python API stays silent by default."""

    def note(self, text: str) -> None:
        """Show one sentence that the user should read."""

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
        """Show a progress bar of `total` steps; the context's value advances it by one, from any thread.

        Args:
            extra: returns the text behind the bar, at each step.
        """


class SilentObserver:
    """The observer of the Python API."""

    def note(self, text: str) -> None:
        pass

    def track(self, title: str, total: int, extra: Callable[[], str] | None = None) -> AbstractContextManager[Callable[[], None]]:
        return nullcontext(lambda: None)


class VideoSource(Protocol):
    """An open video, as samplers see it."""

    @property
    def index(self) -> PacketIndex: ...

    @property
    def time_base(self) -> Fraction: ...

    def frames(self, pts: Sequence[int], *, longest_side_px: int | None = None) -> Iterator[Frame]:
        """Decode the frames with these PTS, in time order, with the least work; those that cannot be decoded are left out."""


class PictureKeeper(Protocol):
    """A cache of pictures at full size that were slow to decode."""

    @property
    def for_likely(self) -> PictureKeeper:
        """The same cache, for frames that will probably be keyframes: it wants more of them."""

    def wants(self, pts: int) -> bool: ...

    def keep(self, frame: Frame) -> None: ...


Glance: TypeAlias = Callable[[Frame, float], None]
"""Is given a frame, very small, and its rating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplerCapabilities:
    """Capabilities that a sampler states."""

    exact: bool = True
    """False: a frame soon after one of its PTS will do where it is cheaper to decode."""


class Sampler(Protocol):
    """A backend that chooses candidate frames."""

    name: str
    capabilities: SamplerCapabilities

    def sample(self, video: VideoSource, *, keyframes: int, candidates: int | None = None) -> list[int]:
        """Return the PTS of the candidates, at least one, in time order, without repeats, each among `video.index.shown_pts`.

        Args:
            keyframes: how many are to be left in the end.
            candidates: how many the user wants, at most; None where the sampler knows best.

        Raises:
            UsageError: the number cannot be chosen.
        """


TEXT_WEIGHT = 0.5  # Algorithm 1: "the mean of" the text and the image cosine


@dataclass(frozen=True, slots=True)
class DistinctPictures:
    """How many pictures a person would count, and which of the candidates shows each; indices are rows of `Prunable`."""

    number: Sequence[int]
    """Of each row: that of its picture, from 0."""
    stand_for: Sequence[int]
    """Of each picture the row that shows it best."""
    curve: Sequence[tuple[int, float]] = ()
    """Number of pictures, and how alike the next two are that would be taken for one."""
    spare: frozenset[int] = frozenset()
    """Rows whose picture stands still on screen, and for which another row stands."""

    def __len__(self) -> int:
        return len(self.stand_for)

    calm: frozenset[int] = frozenset()
    """Rows around which no more moves than in calm stretches of the video."""


@dataclass(frozen=True, slots=True)
class Prunable:
    """The good candidates in time order, as pruners see them; all of length N."""

    embeddings: Embeddings
    times_s: Sequence[float]
    has_people: Sequence[bool]
    sharpness: Sequence[float]
    in_transition: Sequence[bool]
    """Beside a cut, a cross-fade or a fast pan."""
    text_weight: float = TEXT_WEIGHT
    """Share of the text cosine in the likeness of two frames; the image cosine has the rest."""
    relevance: Sequence[float] | None = None
    """Cosine of each picture to the text that the user asks for; None where nothing is asked for."""
    signatures: npt.NDArray[np.uint8] | None = None
    """uint8 (N, 18, 32, 3): each picture so small that only real changes show; None where nobody knows."""
    pictures: DistinctPictures | None = None
    """What a person would count in them; None where a number of keyframes is asked for and little stands still."""

    def __post_init__(self) -> None:
        lengths = [len(column) for column in (self.embeddings, self.times_s, self.has_people, self.sharpness, self.in_transition)]
        lengths += [len(column) for column in (self.relevance, self.signatures) if column is not None]
        if len(set(lengths)) != 1:
            raise ValueError(f"columns of different lengths: {lengths}")

    def __len__(self) -> int:
        return len(self.times_s)

    def picture_cosine(self, a: int, b: int) -> float:
        return float(self.embeddings.image[a] @ self.embeddings.image[b])

    def take(self, rows: list[int]) -> Prunable:
        """Return these rows alone; what a person would count in them is left out."""
        vectors = self.embeddings
        return Prunable(
            Embeddings(vectors.image[rows], vectors.text[rows], vectors.model),
            times_s=[self.times_s[row] for row in rows],
            has_people=[self.has_people[row] for row in rows],
            sharpness=[self.sharpness[row] for row in rows],
            in_transition=[self.in_transition[row] for row in rows],
            text_weight=self.text_weight,
            relevance=None if self.relevance is None else [self.relevance[row] for row in rows],
            signatures=None if self.signatures is None else self.signatures[rows],
        )


@dataclass(frozen=True, slots=True)
class PrunedFrame:
    """One candidate that a pruner drops, and why. Indices are rows of `Prunable`."""

    index: int
    step: int
    """From 1, in the order of dropping."""
    score: float
    """How alike it is to its neighbours: what the pruner decided by."""
    neighbours: tuple[int, ...]
    """The frames that it is like."""
    reason: str
    """In words: `dropped …`."""


@dataclass(frozen=True, slots=True)
class PruningResult:
    """The frames that a pruner drops, and why the others stay."""

    drops: Sequence[PrunedFrame]
    kept: str
    """Why the others stay, in words: `kept …`; of some rows there is more to say, see `reasons`."""
    bound: float
    """The likeness from which on this pruner calls a frame redundant."""
    reasons: Mapping[int, str] = field(default_factory=dict)
    curve: Sequence[tuple[int, float]] = ()
    """Number of keyframes, and the likeness of the next one to go: what a user needs to decide on another number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunerCapabilities:
    """Capabilities that a pruner states."""

    as_is: bool = False
    """It gets all candidates, bad ones and copies among them, and no others are sought."""


class Pruner(Protocol):
    """A backend that thins candidates out to keyframes."""

    name: str
    capabilities: PrunerCapabilities

    def prune(self, frames: Prunable, *, keep: int | None, redundant: float) -> PruningResult:
        """Drop all but at most `keep` frames; at least one of N > 0 stays.

        Args:
            keep: how many are wanted, at least 1; None where what remains shall decide: drop what is redundant, no more.
            redundant: the likeness from which on frames of this embedder show the same.
        """


REDUNDANT_COSINE = 0.93  # from which on ShareGPT4Video drops a frame


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderCapabilities:
    """Capabilities that an embedder states."""

    joint_space: bool = False
    """The cosine of a picture and a text says how well they fit, as with CLIP."""
    redundant_cosine: float = REDUNDANT_COSINE
    """The mean of image and text cosine from which on two frames show the same."""
    batch: int = 1
    """How many pictures at once are the fastest."""
    device: str | None = None
    """Where the model runs, as `cuda in fp16`; None: the CPU, whatever device is asked for."""
    identity: str | None = None
    """Names the weights: vectors are comparable only where it is the same. None: the embedder's name says it."""
    prepare: Callable[[Image], Image] | None = None
    """Shrinks a picture to what the model takes; None: it takes pictures with a longest side of 640 px."""
    stays_loaded: bool = False
    """It is made once a process for the same name and settings: weights take seconds to load."""

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch is {self.batch}, but has to be at least 1")


class Embedder(Protocol):
    """A backend that turns pictures and texts into vectors whose cosines say how alike they are."""

    name: str
    dim: int
    capabilities: EmbedderCapabilities

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        """Return float32 (N, dim), rows of length 1."""

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Return float32 (N, any), rows of length 1; same width for every text of this embedder."""


ClipFeatures: TypeAlias = "npt.NDArray[np.float32]"
"""(N, D), a row a clip; or feature maps (N, C, h, w)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractorCapabilities:
    """Capabilities that an extractor states."""

    is_motion: bool = False
    """It looks at all frames of a clip at once; else at each alone, and gives their mean."""
    has_maps: bool = False
    """It gives feature maps too."""
    device: str | None = None
    """Where the model runs, as `cuda in fp16`; None: the CPU, whatever device is asked for."""
    stays_loaded: bool = False
    """It is made once a process for the same name and settings: weights take seconds to load."""


class Extractor(Protocol):
    """A backend that turns clips of a video into features for models."""

    name: str
    capabilities: ExtractorCapabilities

    def extract(self, clips: Sequence[Sequence[Image]], *, maps: bool = False) -> ClipFeatures:
        """Return one row a clip, or its feature map.

        Raises:
            BackendError: it gives no maps, or takes no clips of this length.
        """


@dataclass(frozen=True, slots=True)
class PictureOrigin:
    """The origin of a picture, for a detector that looks detections up instead of looking at the picture."""

    time_s: float | None = None
    """Of a frame."""
    name: str | None = None
    """Of a picture file, without its folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorCapabilities:
    """Capabilities that a detector states."""

    side_px: int | None = None
    """The longest side at which it looks at pictures; None: the more the better. Candidates have at most 640 px."""
    batch: int = 1
    """How many pictures at once are the fastest."""
    device: str | None = None
    """Where the model runs, as `cuda in fp16`; None: the CPU, whatever device is asked for, and several threads may call it at once."""
    stays_loaded: bool = False
    """It is made once a process for the same name and settings: weights take seconds to load."""


class Detector(Protocol):
    """A backend that finds objects in pictures."""

    name: str
    capabilities: DetectorCapabilities

    def detect(self, images: Sequence[Image], where: Sequence[PictureOrigin] = ()) -> list[list[Detection] | None]:
        """Return the detections of each picture, the highest score first; None where the detector knows nothing about a picture.

        Args:
            images: uint8 (H, W, 3) RGB.
            where: where each comes from; empty, or as long as `images`.
        """


class TextReader(Protocol):
    """A backend that reads text in pictures."""

    name: str
    """The program and its version: a picture that it has read is not read again."""

    def read(self, image: Image) -> list[TextLine]:
        """Return the lines of text in a picture, in any order.

        Args:
            image: uint8 (H, W, 3) RGB.

        Raises:
            BackendError: it does not work here.
        """


@dataclass(frozen=True, slots=True)
class SpokenSegment:
    """A few words that were transcribed."""

    start_s: float
    """From the start of the samples, as `end_s`."""
    end_s: float
    text: str
    is_sure: bool
    """False where the model itself doubts them."""


class Transcriber(Protocol):
    """A backend that writes down what is said. Samples are float32 (N,), 16,000 a second, from -1 to 1."""

    name: str
    """The program and its model: `faster-whisper small`."""
    identity: str
    """A text that another model has not: sound that it has transcribed is not transcribed again."""

    def speech(self, samples: Samples, *, least_pause_s: float) -> list[tuple[float, float]]:
        """Return from and to, in seconds, of what sounds like speech, in its order.

        Args:
            least_pause_s: shorter pauses part nothing.
        """

    def language_of(self, samples: Samples) -> str:
        """Return the code of the language that is spoken.

        Raises:
            BackendError: it does not work here.
        """

    def transcribe(self, samples: Samples, language: str) -> Iterator[SpokenSegment]:
        """Yield what is said, in its order.

        Raises:
            BackendError: it does not work here, or does not know the language.
        """


@dataclass(frozen=True, slots=True)
class ViewChange:
    """The difference of a keyframe's view from the previous keyframe's."""

    kind: Literal["same view", "view moved", "new view"]
    shift_xy: tuple[float, float] = (0.0, 0.0)
    """Where the picture's content went, as fractions of width (right is positive) and height (down is positive)."""
    zoom: float = 1.0
    """Above 1: the content became larger."""
    content_changed: bool = False
    """Whether the same view shows something else: another slide, a person who came in."""


@dataclass(frozen=True, slots=True)
class KeyframeFacts:
    """Measurements of one keyframe: the ground that any description stands on."""

    width_px: int
    height_px: int
    time_s: float | None
    quality: Quality
    detections: tuple[Detection, ...]
    colours: tuple[tuple[str, float], ...]
    """Names of the dominant colours with their share of the picture, the largest first."""
    colourfulness: float
    """Mean HSV saturation in [0, 1]; near 0 is a black-and-white picture."""
    detector: str | None
    """Who looked for objects; None when nobody did, and then an empty `detections` says nothing."""
    change: ViewChange | None
    """Against the previous keyframe; None for the first."""
    words: str | None = None
    """The subtitles around it; None where there are none."""
    text: tuple[str, ...] = ()
    """The lines of text that a program read in it."""
    speech: str | None = None
    """What a program transcribed of the sound around it; None where that is nothing."""


@dataclass(frozen=True, slots=True)
class Picture:
    """An encoded picture on its way to a model."""

    data: bytes
    media_type: str

    def __repr__(self) -> str:
        return f"Picture({self.media_type}, {len(self.data)} bytes)"


Stage = Literal["topic", "caption", "describe", "structure", "rich", "verify"]
"""Which question of section 3.2 is asked; the prompts have the same names, and `direct` asks for `describe` and `structure` in one."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to an engine."""

    stage: Stage
    prompt: str
    facts: KeyframeFacts | None = None
    """What was measured; only for engines whose capabilities say `measures`."""
    pictures: tuple[Picture, ...] = ()
    schema: dict[str, Any] | None = None
    """JSON schema that the reply's text must fit; None for free text."""
    max_tokens: int = 1024
    is_greedy: bool = False
    """The most likely word each time (temperature 0), from servers that allow it."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The requests and tokens left before a server refuses, by the headers of an answer; None where it does not say."""

    requests_left: int | None = None
    requests_reset_s: float | None = None
    tokens_left: int | None = None
    tokens_reset_s: float | None = None


LONGEST_ANSWER = 100_000  # letters; 2,048 tokens are a tenth of it
LONGEST_NAME = 200  # of a model
MOST_TOKENS = 100_000_000  # that are counted for one answer


def token_count(value: object) -> int | None:
    """Return a number of tokens; None for what cannot be one."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


@dataclass(frozen=True, slots=True)
class Reply:
    """An engine's answer that is complete: one that was refused or cut off is a ReplyError instead."""

    text: str
    model: str
    tokens_in: int | None = None
    tokens_out: int | None = None
    limits: RateLimits | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineCapabilities:
    """Capabilities that an engine states."""

    sees: bool = True
    """It takes pictures; False: only text."""
    measures: bool = False
    """It describes what was measured (`Request.facts`) instead of what it sees."""
    captions_only: bool = False
    """It describes a picture, whatever is asked."""
    caches: bool = True
    """Its answers are kept for later runs; False: they cost nothing."""
    languages: tuple[str, ...] | None = None
    """Those it can answer in; None: any."""
    max_in_flight: int | None = None
    """How many requests at once are the fastest; None: found out while it is asked."""
    thinking_tokens: int = 0
    """The most it uses beyond `Request.max_tokens` before its answer begins."""
    picture_detail: Literal["low", "high", "auto"] = "high"
    """For servers that price pictures by it."""
    address: str | None = None
    """The server behind it, without login and query; None: it runs here, or its name alone tells it from others."""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    """What else its answers depend on: recorded with each, and part of the question that the cache knows."""
    traits: dict[str, str] | None = None
    """What it found out about its server, changed by the engine and by the caller, who keeps it for later runs."""
    check: Callable[[], None] | None = None
    """Raises an EngineError where the engine cannot be asked now, because its key is missing."""
    batches: Callable[[], BatchApi] | None = None
    """Opens the batch jobs of its server, which answers many requests at once, later and for less; None: it has none."""
    stays_loaded: bool = False
    """It is made once a process for the same name and settings: weights take seconds to load."""


class Engine(Protocol):
    """A language or vision-language model behind an API or in the process.

    It answers several callers at once and tries once: its caller tries again, see `vip.llm`.
    """

    name: str
    """As a user would name it: `offline`, `openai:gpt-5-mini-2025-08-07`."""
    capabilities: EngineCapabilities

    async def generate(self, request: Request) -> Reply:
        """Answer one request.

        Raises:
            BusyError: not this time, maybe the next.
            EngineError: the model cannot be asked; trying the other items is pointless.
            ReplyError: this answer cannot be used; the others may be.
        """

    async def close(self) -> None:
        """Release connections."""


@runtime_checkable
class LoadsModel(Protocol):
    """The class of an engine that loads a model when it is made: what it needs can be checked without that."""

    def check_installed(self) -> None:
        """Refuse the engine if a package is missing; load nothing. A static method.

        Raises:
            BackendError: a package is missing.
        """


SERVER_ID = "^[A-Za-z0-9][A-Za-z0-9_.:=-]{0,499}$"
"""What a server may call a job or a file: it becomes a part of addresses."""


@dataclass(frozen=True, slots=True)
class BatchState:
    """The progress of a batch job, in the server's own words."""

    status: Literal["validating", "failed", "in_progress", "finalizing", "completed", "expired", "cancelling", "cancelled"]
    total: int = 0
    """Rows; 0 while they are not counted yet."""
    completed: int = 0
    failed: int = 0
    error: str | None = None
    """Why it failed as a whole."""
    full: bool = False
    """It failed because too much is waiting at the server: it can be submitted later."""

    @property
    def ended(self) -> bool:
        return self.status in {"failed", "completed", "expired", "cancelled"}


class BatchApi(Protocol):
    """A server that answers many requests at once, later and for less."""

    def row(self, key: str, request: Request) -> bytes:
        """Return one line of the file that it takes; `key` comes back with the answer."""

    async def submit(self, path: Path, tag: str) -> str:
        """Upload a file of rows and return the job, which `find` finds again by its tag."""

    async def find(self, tag: str) -> str | None:
        """Return the job with this tag; None where there is none."""

    async def state(self, job: str) -> BatchState:
        """Return how far it is."""

    def results(self, job: str) -> AsyncGenerator[tuple[str, Reply | VipError], None]:
        """Yield the rows of a job that has ended, by key and in any order; rows may be missing."""

    async def discard(self, job: str) -> None:
        """Delete its files at the server."""
