"""What evaluations write to disk: samples, predictions and results, each a line or a file that can be read without vip.

A sample holds what a model may see and, apart from it, the reference that it may not. A prediction is joined to its sample by the id.
A result names everything that must be equal for two figures to be comparable.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from vip.config import Representation
from vip.metrics.metric import Status
from vip.records import Call, Famous, Record, RecordPart

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


# ---------------------------------------------------------------- what a model may see


class Text(RecordPart):
    """A piece of text: a title, a plot, a masked caption."""

    kind: Literal["text"] = "text"
    text: str


class Subtitle(RecordPart):
    """What is said between two moments of the video."""

    kind: Literal["subtitle"] = "subtitle"
    start_s: float
    end_s: float
    text: str


class KeyframeDescription(RecordPart):
    """What stands for one keyframe: its description, its picture, or both (the pairs (k, u) and (k, s) of the paper)."""

    kind: Literal["keyframe"] = "keyframe"
    keyframe_id: str
    time_s: float | None
    famous: Famous | None = None
    dense_caption: str | None = None
    picture: SamplePicture | None = None


class SamplePicture(RecordPart):
    """A picture that is sent: a keyframe of a run folder."""

    kind: Literal["picture"] = "picture"
    source: str
    """The run folder, as it was given."""
    keyframe_id: str
    time_s: float | None = None
    sha256: Sha256 | None = None
    """Of the picture file."""


Piece = Annotated[Text | Subtitle | KeyframeDescription | SamplePicture, Field(discriminator="kind")]


# ---------------------------------------------------------------- what is asked


class FreeText(RecordPart):
    """A question that is answered in words."""

    kind: Literal["free_text"] = "free_text"
    question: str


class Choice(RecordPart):
    """A question with options, in the order of the file; the answer is an index into them."""

    kind: Literal["choice"] = "choice"
    question: str
    options: tuple[str, ...] = Field(min_length=2)


class Blank(RecordPart):
    """A text with one blank, written `_____`; the answer is what fills it."""

    kind: Literal["blank"] = "blank"
    text: str


class DescribeKeyframes(RecordPart):
    """Descriptions of keyframes that are not shown: the missing middle, or what follows."""

    kind: Literal["describe_keyframes"] = "describe_keyframes"
    count: int = Field(ge=1)
    representation: Representation


class Rank(RecordPart):
    """Videos of a corpus, or moments in them, best first, for a query."""

    kind: Literal["rank"] = "rank"
    query: str
    moments: bool = False
    """Whether start and end are asked for too."""


Ask = Annotated[FreeText | Choice | Blank | DescribeKeyframes | Rank, Field(discriminator="kind")]


# ---------------------------------------------------------------- what is right


class Moment(RecordPart):
    """A stretch of a video."""

    video: str
    start_s: float
    end_s: float
    score: float | None = None


class DescriptionText(RecordPart):
    """The description of one keyframe: FAMOuS or a dense caption."""

    famous: Famous | None = None
    dense_caption: str | None = None


class FoundMoments(RecordPart):
    """Moments, best first, as columns: lists of a hundred moments a query would not fit into memory as rows."""

    videos: tuple[str, ...]
    starts_s: tuple[float, ...]
    ends_s: tuple[float, ...]


class Found(RecordPart):
    """What was found for a query, best first; None for what was not looked for."""

    vcmr: FoundMoments | None = None
    """Moments of the corpus."""
    svmr: FoundMoments | None = None
    """Moments of the right video, which was given."""
    vr: tuple[str, ...] | None = None
    """Videos of the corpus."""


Value = int | str | tuple[DescriptionText, ...] | tuple[Moment, ...] | tuple[str, ...] | Found
"""An index into the options, a text, one description a keyframe, moments, names of videos, or what was found for a query."""


class Reference(RecordPart):
    """The right answer. Several values are all right."""

    values: tuple[Value, ...] = Field(min_length=1)
    label: str | None = None
    """Of several texts the one that the data set was made from."""


# ---------------------------------------------------------------- rows


class Sample(Record):
    """One row of samples.jsonl."""

    id: str
    """Joins predictions to samples: `infilling-2/park.mp4/14`, or the id of the published file."""
    task: str
    """The name with its setting: `infilling-2`."""
    task_version: int
    video: str
    """What statistics are clustered by; samples never cross videos."""
    clip: str | None = None
    """Name of the file that holds a part of the video, as benchmarks name it; None: it is that of the video."""
    start_s: float | None = None
    """Where the clip begins in the video; None: the whole video, or not known."""
    end_s: float | None = None
    groups: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """What tables are split by; a sample may be in several: `{"domain": ("Games", "Sports"), "type": ("CW",)}`."""
    context: tuple[Piece, ...] = ()
    """What the model sees, in order."""
    ask: Ask
    frames_chosen: str | None = None
    """How the pictures of its context were chosen: `vip algorithm1, classic`, `evenly spaced`; None where there are none."""
    reference: Reference | None = None
    """None where the answers of a split are hidden."""


class Prediction(Record):
    """One row of predictions.jsonl: the answer of one model to one sample."""

    sample_id: str
    value: Value | None
    """The parsed answer; None unless the status is `ok`, and never guessed."""
    status: Status = "ok"
    engine: str | None = None
    """Who answered: an engine, `baseline:copy-nearest`; None where a published file does not say."""
    question_sha256: Sha256 | None = None
    """Of what was asked, so that an answer to another question is noticed; None for baselines and published files."""
    raw: str | None = None
    """The answer as it came; None where a baseline or a published file has none."""
    reason: str | None = None
    """Why there is no value."""
    scores: tuple[float, ...] | None = None
    """One score an option, where the model gives them."""
    log_probabilities: tuple[float, ...] | None = None
    """Of the tokens of its own answer, without the end of the text, where the model gives them; natural logarithms."""
    label_log_probabilities: tuple[float, ...] | None = None
    """Of the tokens of the label, had the model been made to answer it."""
    calls: tuple[Call, ...] = ()

    @model_validator(mode="after")
    def _check_status(self) -> Prediction:
        if (self.value is None) == (self.status == "ok"):
            raise ValueError(f'the status is "{self.status}" and the value {self.value!r:.50}')
        return self


class FrameBudget(RecordPart):
    """The frames a model saw of each sample; stands in the name of every printed score."""

    frames: int | None
    """The number a sample; None where text alone was shown, or where a published file does not say."""
    chosen: str | None = None
    """By what: `vip algorithm1, classic`, `evenly spaced`."""
    longest_side_px: int | None = None

    @property
    def label(self) -> str:
        """In words: `8 frames, vip algorithm1, classic, 512 px`, `text only`."""
        what = "text only" if self.frames is None else f"{self.frames} {'frame' if self.frames == 1 else 'frames'}"
        parts = [what, self.chosen, f"{self.longest_side_px} px" if self.longest_side_px else None]
        return ", ".join(part for part in parts if part)


class Contrast(RecordPart):
    """The difference of the two groups of a grouping, second less first, × 100: Welch's t test on errors clustered by video."""

    grouping: str
    first: str
    second: str
    difference: float
    standard_error: float | None
    low: float | None
    high: float | None
    p_value: float | None


class JudgeCalibration(RecordPart):
    """A judge held against people who judged some of the same answers."""

    labelled: int
    """Samples that both judged."""
    agreement: float
    base_rate: float
    """Share that people call correct: what the agreement must be read beside."""
    kappa: float | None
    """Cohen's."""
    sensitivity: float | None
    specificity: float | None
    corrected: float | None
    """The judge's mean × 100, corrected for both (Rogan and Gladen 1978)."""
    low: float | None
    high: float | None
    """Ends of its 95 % interval (Lang and Reiczigel 2014)."""
    no_correction: str | None = None


class Score(RecordPart):
    """The value of one metric over a list of samples. Values are × 100."""

    value: float | None
    """A prediction without an answer counts as a wrong one, as in the papers."""
    value_answered: float | None
    """Over the samples with an answer alone."""
    n: int
    standard_error: float | None = None
    """Clustered by video."""
    low: float | None = None
    high: float | None = None
    """Ends of the 95 % interval; None where `no_interval` says why."""
    no_interval: str | None = None
    signature: str
    groups: dict[str, dict[str, Score]] = Field(default_factory=dict)
    """Name of a grouping -> group -> its score."""
    without_value: int = 0
    """Answers that the metric has no value for, such as those without a verdict of a judge; they count as wrong."""
    calibration: JudgeCalibration | None = None
    """Of a judge, where people judged some answers too."""
    contrasts: tuple[Contrast, ...] = ()
    """Of groupings with two groups."""
    parts: dict[str, Score] = Field(default_factory=dict)
    """What the value is made of: the components of FAMOuS, recall at 1, 5, 10."""
    notes: tuple[str, ...] = ()
    """Sentences for people about what the value is worth on these samples."""


class TaskResult(Record):
    """result.json: the scores of one file of predictions, and what must be equal to compare them."""

    task: str
    task_version: int
    name: str
    """Of the file of predictions, without its folder."""
    engine: str | None
    """Engines and models as the predictions name them, or the baseline; None where the file does not say."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    budget: FrameBudget | None = None
    n: int
    """Samples that count."""
    left_out: int = 0
    """Samples without a prediction that were left out on demand."""
    unscored: dict[Status, int]
    unscored_ids: tuple[str, ...] = ()
    """The first samples without an answer."""
    metrics: dict[str, Score]
    samples_sha256: Sha256 | None
    predictions_sha256: Sha256
    versions: dict[str, str]

    @property
    def label(self) -> str:
        """The task with what it asks for: `infilling-2, famous`."""
        representation = self.parameters.get("representation")
        return f"{self.task}, {representation}" if isinstance(representation, str) else self.task
