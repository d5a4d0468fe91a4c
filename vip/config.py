"""The settings of each command, frozen. Command line > environment > vip.toml here > the user's own vip.toml > defaults.

The environment variable of a setting is `VIP_` and its name in capitals (`VIP_KEYFRAMES=8`). vip.toml is looked for in the current
folder, where not all of it counts (see `vip.trust`), and in `~/.config/vip/`; its tables are named like the commands:

    [extract]
    keyframes = 8
    [caption]
    engine = "offline"
"""

from __future__ import annotations

import os
import re
import shlex
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from vip import files, trust
from vip.errors import MOST_PROBLEM_LETTERS, UsageError, did_you_mean, validation_message
from vip.timecode import seconds_of, timecode
from vip.untrusted import one_line, parse_toml
from vip.wording import SaidOnce, listed, option

# ---------------------------------------------------------------- what a setting is

VIDEO_CHOICE, DATA_SET, DESCRIBING, MONEY = "Choosing videos", "The data set", "Describing", "Money and requests"
KEYFRAMES, MODELS, READING, DOWNLOADS, RUNNING = "Choosing keyframes", "Models", "Reading videos", "Getting videos", "Running"
PANELS = (VIDEO_CHOICE, DATA_SET, DESCRIBING, MONEY, KEYFRAMES, MODELS, READING, DOWNLOADS, RUNNING)
"""The groups of `--help`, in their order; what belongs to none stands above them."""

DefaultT = TypeVar("DefaultT")


class Settings(BaseModel):
    """Base of the settings: frozen, unknown names refused.

    Each field is written once. Its name is the option (`--min-sharpness`), the environment variable (`VIP_MIN_SHARPNESS`), the key in
    vip.toml and the keyword in Python (`min_sharpness`); `vip.cli.options` makes the rest of the option from what `setting` keeps.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)  # a command needs one of them


def setting(
    default: DefaultT,
    help: str,  # noqa: A002 - as the command line calls it
    panel: str | None = None,
    *,
    short: str | None = None,
    metavar: str | None = None,
    shown: str | None = None,
    words: Sequence[str] = (),
    backend: str | None = None,
    is_hidden: bool = False,
    is_kept: bool = True,
) -> DefaultT:
    """Return the field of a setting with all that its option shows.

    Args:
        help: what `--help` says of it.
        panel: one of PANELS; None for what a newcomer should see first.
        short: its short form, such as `-n`.
        metavar: what stands for the value in `--help`, where the type does not say it.
        shown: the default as `--help` names it, where the value does not say it: what None stands for.
        words: values that the shell completes; those of a Literal are known.
        backend: the kind of backend whose names the shell completes.
        is_hidden: left out of `--help`: a seam for tests and mirrors.
        is_kept: False for what decides how a result is got and not what it is; no manifest has it.
    """
    of_option: dict[str, Any] = {"panel": panel, "short": short, "metavar": metavar, "shown": shown, "words": list(words)}
    extra = {**of_option, "backend": backend, "is_hidden": is_hidden}
    return Field(default=default, description=help, exclude=None if is_kept else True, json_schema_extra=extra)


@dataclass(frozen=True, slots=True)
class Unit:
    """The form of a type in `--help`: the metavar, and the format of a default."""

    metavar: str
    format: Callable[[Any], str] = "{:g}".format


# ---------------------------------------------------------------- the types of settings


def _parse_time(value: Any) -> Any:
    return float(seconds_of(value)) if isinstance(value, str) else value


def _format_time(seconds: float) -> str:
    """Return `120`, and `30:00` from more than two minutes on."""
    return f"{seconds:g}" if seconds <= 120 else f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _parse_number_or_auto(value: Any) -> Any:
    if not isinstance(value, str) or value == "auto":
        return value
    try:
        return int(value)
    except ValueError:
        raise ValueError("write a number such as 12, or auto") from None


def _parse_labels(value: Any) -> Any:
    """Return words from `a dog, a frisbee`, from `@words.txt`, or from a list."""
    if isinstance(value, str) and value.startswith("@"):
        try:
            value = files.read_named(Path(value[1:]), most_bytes=MOST_WORDS_BYTES).decode().splitlines()
        except (OSError, UnicodeDecodeError) as exc:
            problem = exc.strerror if isinstance(exc, OSError) else exc
            raise ValueError(f"{value[1:]} cannot be read as a list of words, one a line ({problem})") from None
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError("write words with commas between them, such as 'dog, frisbee', or @FILE with one a line")
    kept = tuple(dict.fromkeys(word.strip().lower() for word in words if word.strip()))
    if not kept:
        raise ValueError("the list of words to look for is empty; write for example 'dog, frisbee', or leave it out")
    return kept


def _check_query(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty; write what is looked for, such as 'a dog catches a frisbee', or leave it out")
    return value


def _check_topic(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty; write what the video is about, or leave it out")
    return value


def _parse_language(value: str) -> str:
    name = LANGUAGES.get(value.strip().lower(), value.strip())
    if not name or len(name) > 40 or not all(letter.isalpha() or letter in " -()" for letter in name):
        raise ValueError("write a language such as German or de")
    return name[0].upper() + name[1:]


def _parse_spoken_language(value: str) -> str:
    """Return the code of a language from its code or its English name."""
    name = value.strip().lower()
    code = next((code for code, one in LANGUAGES.items() if one.lower() == name), name).partition("-")[0]
    if not 2 <= len(code) <= 3 or not code.isalpha() or not code.isascii():
        raise ValueError("write the code of a language such as de, or leave it out")
    return code


def _parse_bytes(value: Any) -> Any:
    """Return bytes from `50GB`, `800M` (thousands, as disks are sold) or a number."""
    if not isinstance(value, str):
        return value
    given = SIZE.fullmatch(value)
    if not given:
        raise ValueError("write bytes such as 50GB or 800M")
    return round(float(given[1]) * 1000 ** " kmgt".index(given[2].lower() or " "))


def _format_size(count: int) -> str:
    """Return `256MB`."""
    power = min(4, (len(str(count)) - 1) // 3)
    return f"{count / 1000**power:g}{('', 'k', 'M', 'G', 'T')[power]}B"


def _parse_words(value: Any) -> Any:
    """Return sources of words from `subtitles,text` or from a list; `none` is no source."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError(f"write {WORDS_ADVICE}")
    named = tuple(dict.fromkeys(one.strip() for one in given if one.strip()))
    if unknown := [one for one in named if one not in (*WORD_SOURCES, "auto", "none")]:
        raise ValueError(f'there are no words "{unknown[0]}"; write {WORDS_ADVICE}')
    if "none" in named and len(named) > 1:
        raise ValueError("none goes with no other; write the others alone")
    if not named and isinstance(value, str):
        raise ValueError(f"it is empty; write {WORDS_ADVICE}")
    return tuple(one for one in named if one != "none")


def _split_options(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


LANGUAGES = {
    **{"ar": "Arabic", "bn": "Bengali", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish"},
    **{"fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian"},
    **{"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese"},
    **{"ro": "Romanian", "ru": "Russian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese"},
    **{"zh": "Chinese", "zh-cn": "Simplified Chinese", "zh-tw": "Traditional Chinese", "pt-br": "Brazilian Portuguese"},
}
"""Codes of ISO 639-1 that are often typed. Models know the names best; any other name is passed on as it is."""

WORD_SOURCES = ("subtitles", "speech", "text")
WORDS_ADVICE = f"one or more of {listed(['auto', *WORD_SOURCES])} with commas between them, or none"

SPEECH_MODELS = ("tiny", "base", "small", "medium", "large-v3", "turbo", "distil-large-v3")

SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", re.IGNORECASE)

Positive = Annotated[int, Field(ge=1)]
NotNegative = Annotated[int, Field(ge=0)]
Count = Annotated[int, Field(ge=1, le=100_000)]
CountOrAuto = Annotated[Count | Literal["auto"], BeforeValidator(_parse_number_or_auto)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1), Unit("SHARE")]
Time = Annotated[float, BeforeValidator(_parse_time), Field(allow_inf_nan=False), Unit("TIME", _format_time)]
Duration = Annotated[Time, Field(gt=0)]
Bytes = Annotated[int, BeforeValidator(_parse_bytes), Field(gt=0), Unit("SIZE", _format_size)]
Pixels = Annotated[int, Field(ge=64, le=8192), Unit("PX", str)]
Query = Annotated[str, AfterValidator(_check_query)]
Topic = Annotated[str, AfterValidator(_check_topic)]
Labels = Annotated[tuple[str, ...], BeforeValidator(_parse_labels), Unit("WORDS", ", ".join)]
Words = Annotated[tuple[str, ...], BeforeValidator(_parse_words), Unit("NAMES", ",".join)]
Language = Annotated[str, AfterValidator(_parse_language), Unit("NAME", str)]
SpokenLanguage = Annotated[str, AfterValidator(_parse_spoken_language), Unit("NAME", str)]
Arguments = Annotated[tuple[str, ...], BeforeValidator(_split_options), Unit("OPTIONS", shlex.join)]

Schema = Literal["famous", "rich"]
"""The fields of a description."""

# ---------------------------------------------------------------- the settings of each command


class ModelSettings(Settings):
    """Settings of the detector, the embedder and the device."""

    embedder: str = setting("auto", "What compares frames: classic, clip, clip:ARCH/TAG, clip:ARCH@FILE.", MODELS, backend="embedder")
    detector: str = setting("opencv", "What finds people and objects: opencv, transformers:MODEL, file:PATH.", MODELS, backend="detector")
    labels: Labels | None = setting(None, "What an open-vocabulary detector looks for: 'dog, frisbee', or @FILE.", MODELS)
    device: str = setting("auto", "Where models run: auto, cpu, cuda, cuda:1, mps.", MODELS, words=("auto", "cpu", "cuda", "mps"))
    precision: Literal["auto", "fp32", "bf16", "fp16"] = setting(
        "auto", "Precision of the models' weights: auto, fp32, bf16, fp16.", MODELS
    )


class ExtractSettings(ModelSettings):
    """Settings of the choice of keyframes."""

    keyframes: CountOrAuto = setting(12, "How many keyframes are wanted, or auto.", short="-n")
    query: Query | None = setting(None, "Prefer frames that fit this sentence, spread over the video. Needs --embedder clip.", KEYFRAMES)
    sampler: str = setting("sync", "How candidates are chosen: sync, uniform, every:2s, shots, katna.", KEYFRAMES, backend="sampler")
    candidates: Count | None = setting(None, "How many candidate frames to measure.", KEYFRAMES, shown="as the sampler finds useful")
    pruner: str = setting(
        "algorithm1",
        "How candidates are thinned out: algorithm1, algorithm1:plain, k-center, threshold:0.93, aks (by --query).",
        KEYFRAMES,
        shown="algorithm1, or aks with --query",
        backend="pruner",
    )
    min_sharpness: Amount | None = setting(None, "Drop frames whose variance of the Laplacian is lower.", KEYFRAMES)
    min_objects: NotNegative = setting(0, "Drop frames in which fewer objects are found.", KEYFRAMES)
    text_weight: Share = setting(
        0.5, "Weight of the objects' names when two frames are compared, 0 to 1; the picture has the rest.", KEYFRAMES
    )
    format: Literal["jpg", "png", "webp"] = setting("jpg", "File format of the keyframes: jpg, png or webp.", KEYFRAMES)
    start: Time | None = setting(None, "Use the video from this time on: 75, 1:15 or 1m15s.", READING)
    end: Time | None = setting(None, "Use the video up to this time.", READING)
    stream: NotNegative = setting(0, "Which video stream of the file, counted from 0.", READING)

    timeout: Duration | None = setting(
        None, "Give up a video whose keyframes take longer than this.", READING, shown="no limit", is_kept=False
    )
    cookies: Path | None = setting(None, "Cookies for video sites: a file in Netscape's format.", READING, is_kept=False)
    proxy: str | None = setting(None, "Proxy for video sites: http://… or socks5://….", READING, metavar="URL", is_kept=False)

    @model_validator(mode="after")
    def _starts_before_it_ends(self) -> ExtractSettings:
        if self.start is not None and self.end is not None and self.start >= self.end:
            raise ValueError(f"{option('start', timecode(self.start))} does not lie before {option('end', timecode(self.end))}")
        return self

    @model_validator(mode="after")
    def _has_enough_candidates(self) -> ExtractSettings:
        if self.candidates is not None and self.keyframes != "auto" and self.candidates < self.keyframes:
            raise ValueError(f"{option('candidates', self.candidates)} is less than the {self.keyframes} keyframes wanted")
        return self


with warnings.catch_warnings():
    warnings.simplefilter("ignore", UserWarning)  # the setting has the name of an old method of pydantic, which nothing here calls

    class _SchemaSettings(ModelSettings):
        """The setting whose name pydantic warns of."""

        schema: Schema = setting(  # type: ignore[assignment]
            "famous", "Fields of a description: famous; rich: also shot, counts, colours, relations, text. One more request.", DESCRIBING
        )


class CaptionSettings(_SchemaSettings):
    """Settings of the descriptions, and of the requests to models."""

    engine: str = setting("auto", "What describes the keyframes: offline, openai:MODEL, transformers:MODEL, auto.", backend="engine")
    describe_engine: str | None = setting(
        None, "Engine that looks at the pictures, if it is another one.", DESCRIBING, shown="--engine", backend="engine"
    )
    structure_engine: str | None = setting(
        None, "Engine that turns captions into FAMOuS (recipe paper) and reads --topic.", DESCRIBING, shown="--engine", backend="engine"
    )
    base_url: str | None = setting(None, "Address of an OpenAI-compatible server: http://localhost:8000/v1.", DESCRIBING, metavar="URL")
    key_file: Path | None = setting(None, "File with the API key; only its owner may read it.", DESCRIBING, shown="OPENAI_API_KEY")
    recipe: Literal["direct", "paper"] = setting(
        "direct", "direct: one request a keyframe; paper: three (caption, dense caption, FAMOuS).", DESCRIBING
    )
    topic: Topic | None = setting(None, "What the video is about: tells the model which objects to expect.", DESCRIBING)
    language: Language = setting("English", "Language of the descriptions: German, de, …", DESCRIBING)
    context: Annotated[int, Field(ge=0, le=100)] = setting(0, "Add the captions of the N keyframes before to each request.", DESCRIBING)
    verify: bool = setting(False, "Check each claim against its frame; mark what has no support and ask about it again.", DESCRIBING)
    prompts: Path | None = setting(None, "Folder with prompts of your own.", DESCRIBING, metavar="DIR")
    picture_side: Pixels = setting(1024, "Longest side of the pictures that are sent.", DESCRIBING)
    picture_detail: Literal["low", "high", "auto"] = setting("high", "How closely the model looks: low, high, auto.", DESCRIBING)

    max_usd: Amount | None = setting(None, "Stop before more dollars than this are spent.", MONEY, metavar="USD", shown="5", is_kept=False)
    prices: Path | None = setting(None, "TOML file with prices of your own.", MONEY, is_kept=False)
    cache: Path | None = setting(
        None,
        "SQLite file that keeps the answers of all runs: nothing is asked twice.",
        MONEY,
        shown="~/.cache/vip/answers.sqlite",
        is_kept=False,
    )
    concurrency: Count | None = setting(
        None, "Requests in flight at once.", MONEY, shown="as many as the server answers well", is_kept=False
    )
    rpm: Positive | None = setting(None, "Requests a minute at most.", MONEY, is_kept=False)
    tpm: Positive | None = setting(None, "Tokens a minute at most.", MONEY, is_kept=False)
    request_timeout: Duration = setting(120.0, "Give up a request after this time.", MONEY, is_kept=False)


class RunSettings(Settings):
    """Settings of `vip run` alone."""

    words: Words = setting(
        (),
        "Words of each keyframe: subtitles in the video or beside it; speech, transcribed; text in the picture; auto: what is there; none.",
        READING,
        shown="none",
        words=("auto", *WORD_SOURCES, "none"),
    )
    speech_model: str = setting(
        "small",
        "Whisper model for speech: tiny, base, small, medium, large-v3, turbo, owner/name or a folder.",
        MODELS,
        words=SPEECH_MODELS,
    )
    speech_language: SpokenLanguage | None = setting(None, "Language that is spoken: de, German.", MODELS, shown="found out")


class BatchSettings(Settings):
    """Settings of `vip batch`, beside those of extraction and captions."""

    caption: bool = setting(False, "Describe the keyframes too.")
    batch: bool = setting(False, "Ask for captions through the server's Batch API: half the price, within a day.", MONEY, is_kept=False)
    sample: Positive | None = setting(None, "Take N of the videos, drawn by weight.", VIDEO_CHOICE, shown="all")
    seed: int = setting(0, "Seed of this draw.", VIDEO_CHOICE)
    weights: Path | None = setting(None, "TOML file with a weight for each vertical and topic.", VIDEO_CHOICE, shown="vip's own")
    vocabulary: Path | None = setting(None, "vocabulary.csv of YouTube-8M: names, verticals, descriptions.", VIDEO_CHOICE)
    min_length: Duration | None = setting(None, "Leave out videos shorter than this: seconds or hh:mm:ss.", VIDEO_CHOICE)
    max_length: Duration | None = setting(None, "Leave out videos longer than this: seconds or hh:mm:ss.", VIDEO_CHOICE)
    words: Words = setting(
        (),
        "Words of each keyframe that captions read: subtitles; text in the picture; auto: what can be read here; none.",
        READING,
        shown="none",
        words=("auto", "subtitles", "text", "none"),
    )
    shards: Literal["parquet", "webdataset"] = setting("parquet", "Format of the shards: parquet, webdataset.", DATA_SET)
    shard_size: Bytes = setting(256_000_000, "Approximate size of a shard.", DATA_SET, is_kept=False)

    runner: Literal["local", "ray"] = setting("local", "Where videos are worked on: local (processes here) or ray.", RUNNING, is_kept=False)
    ray_address: str | None = setting(
        None, "A Ray cluster: auto, ray://…, host:port.", RUNNING, metavar="ADDRESS", shown="one is started here", is_kept=False
    )
    workers: Annotated[int, Field(ge=1, le=10_000)] | None = setting(
        None, "How many videos are worked on at once.", RUNNING, shown="one a core", is_kept=False
    )
    retry_wait: Duration = setting(30.0, "Pause before the second try; longer each time.", RUNNING, is_kept=False)
    per_host: Positive = setting(2, "How many downloads at once from one host.", DOWNLOADS, is_kept=False)
    sleep: Annotated[Time, Field(ge=0)] = setting(1.0, "Pause between two requests to a host.", DOWNLOADS, is_kept=False)
    rate_limit: Bytes | None = setting(None, "Most bytes a second for one download, such as 4M.", DOWNLOADS, is_kept=False)
    download_timeout: Duration = setting(1800.0, "Give up a download after this time.", DOWNLOADS, is_kept=False)
    cookies: Path | None = setting(None, "File with cookies, in Netscape's format.", DOWNLOADS, is_kept=False)
    proxy: str | None = setting(None, "Proxy for downloads.", DOWNLOADS, metavar="URL", is_kept=False)
    ytdlp_opts: Arguments = setting((), "More options for yt-dlp, in quotes.", DOWNLOADS, is_kept=False)
    audio: bool = setting(False, "Download the sound too.", DOWNLOADS)
    public_only: bool = setting(False, "Refuse local paths and the private network: for lists from others.", DOWNLOADS)
    keep_videos: Path | None = setting(
        None, "Keep downloaded videos in DIR; without it they are deleted after use.", DOWNLOADS, metavar="DIR", is_kept=False
    )
    disk_budget: Bytes = setting(20_000_000_000, "Most space for downloaded videos on one machine.", DOWNLOADS, is_kept=False)
    youtube8m_base_url: str = setting(
        "http://data.yt8m.org/2/j/i", "Where YouTube-8M's ids are looked up.", metavar="URL", is_hidden=True, is_kept=False
    )
    video_base_url: str = setting(
        "https://www.youtube.com", "Where the pages of YouTube ids are.", metavar="URL", is_hidden=True, is_kept=False
    )

    @model_validator(mode="after")
    def _fit_together(self) -> BatchSettings:
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"{option('min_length', f'{self.min_length:g}')} is more than {option('max_length', f'{self.max_length:g}')}")
        if self.ray_address is not None and self.runner != "ray":
            raise ValueError(
                f"{option('ray_address')} has nothing to do without {option('runner', 'ray')}; add it, or leave the address out"
            )
        return self


FrameChooser = Literal["vip", "even"]
"""Who chooses the frames that a model sees: vip as `vip extract` does, or nobody."""

Representation = Literal["famous", "dense"]
"""What describes a keyframe: FAMOuS (s in the paper) or the dense caption (u)."""


class SampleSettings(Settings):
    """Settings of the samples of a task."""

    context: Annotated[int, Field(ge=1, le=64)] = setting(1, "Keyframes given: on either side (infilling), or before (prediction).")
    targets: Annotated[int, Field(ge=1, le=64)] = setting(3, "Keyframes asked for.")
    representation: Representation = setting("famous", "What stands for a keyframe: famous (FAMOuS), dense (the dense caption).")
    pictures: bool = setting(False, "Show the pictures of the context too: the pairs (k, s) and (k, u) of the paper.")
    split: str | None = setting(None, "Split of a published benchmark, by its published name.")
    labels: Path | None = setting(None, "CSV file with a column video or sample, and one for each grouping: domain, causal, …")
    videos: Path | None = setting(None, "Folder of the videos of a published benchmark, or of their run folders.", metavar="DIR")
    subtitles: Path | None = setting(None, "Subtitles as VALUE publishes them, shown with their times.", metavar="FILE")
    frames: Positive | None = setting(
        None, "Frames of each video that are shown, for tasks over videos.", shown="the keyframes of a run, or 8 of a video"
    )
    frames_by: FrameChooser | None = setting(None, "Who chooses them: vip, or even (at even distances).", shown="vip")
    frames_folder: Path = setting(Path("frames"), "Folder that keeps chosen frames, for all engines.", metavar="DIR", is_kept=False)
    chunker: str | None = setting(
        None, "Finds noun phrases for blanks: spacy:MODEL, or one of another package.", shown="spacy:en_core_web_trf"
    )
    available: Path | None = setting(
        None, "File with the ids of the videos that can still be had, one a line.", metavar="FILE", shown="all"
    )
    shuffle: int | None = setting(None, "Show options in an order drawn by this seed, to find a bias towards a letter.", shown="no")
    most: Positive | None = setting(None, "Make at most N samples, chosen by the seed.", shown="all")
    seed: int = setting(0, "Seed of this choice.")


class PredictSettings(Settings):
    """Settings of the questions to an engine about samples."""

    variant: Annotated[int, Field(ge=1, le=3)] = setting(1, "Prompt 1, 2 or 3; 1 is the paper's: Let's think frame by frame.")
    shots: Annotated[int, Field(ge=0, le=1)] = setting(1, "Examples in the prompt, each of another video: 0 or 1.")
    seed: int = setting(0, "Seed that chooses the example of each sample, and what random baselines answer.")


# ---------------------------------------------------------------- where values come from

ENGINES = ("engine", "describe_engine", "structure_engine")
MOST_TOML_BYTES = 2**20
MOST_WORDS_BYTES = 2**20  # of a list of words to look for
Tables = dict[str, dict[str, Any]]
COMMANDS: dict[str, type[Settings]] = {
    **{"run": RunSettings, "extract": ExtractSettings, "caption": CaptionSettings, "batch": BatchSettings},
    **{"samples": SampleSettings, "predict": PredictSettings},
}
SettingsT = TypeVar("SettingsT", bound=Settings)


class _Layer(NamedTuple):
    """Settings from one place; a later one counts more."""

    values: Mapping[str, Any]
    origin: Callable[[str], str]
    """How a message names where the value of a setting comes from."""


def resolve(
    kind: type[SettingsT],
    given: Mapping[str, Any],
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    layered: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> SettingsT:
    """Return the settings from all layers; a `given` value of None means that the command line does not name it.

    Args:
        layered: False for the command line alone.
        note: called with what does not count of a vip.toml in the current folder.

    Raises:
        UsageError: a misspelt key of vip.toml, or a value outside its range, named with where it came from.
    """
    environment = os.environ if environment is None else environment
    command = _table_of(kind)
    variables = {name: value for name in kind.model_fields if (value := environment.get(f"VIP_{name.upper()}"))}
    layers = [
        _Layer(_read_user_tables(environment).get(command, {}), lambda name: f"{user_file(environment)}: {name}"),
        _Layer(_read_allowed_tables((folder or Path.cwd()) / "vip.toml", note).get(command, {}), lambda name: f"vip.toml: {name}"),
        _Layer(variables, lambda name: f"VIP_{name.upper()}"),
        _Layer(given, lambda name: f"--{name.replace('_', '-')}"),
    ]
    if not layered:
        layers = [_Layer({}, str), layers[-1]]
    values: dict[str, Any] = {}
    layer_of: dict[str, _Layer] = {}
    for layer in layers:
        said = {name: value for name in kind.model_fields if (value := layer.values.get(name)) is not None}
        values |= said
        layer_of |= dict.fromkeys(said, layer)
    if "key_file" in values and not _is_key_for_server(layer_of, layers, environment):
        note(SaidOnce(f"The key in {values.pop('key_file')} was given for another server, and does not go to this one."))
    return _validate(kind, values, {name: layer.origin(name) for name, layer in layer_of.items()})


def _is_key_for_server(layer_of: Mapping[str, _Layer], layers: Sequence[_Layer], environment: Mapping[str, str]) -> bool:
    """Return whether the key file was given for the server that is asked: on the command line, or in the same layer as the address."""
    *_, variables, typed = layers
    addresses = [layer_of["base_url"]] if "base_url" in layer_of else []
    addresses += [layer for name in ENGINES if (layer := layer_of.get(name)) and "@" in str(layer.values[name])]
    if not addresses and environment.get("OPENAI_BASE_URL", "").strip():
        addresses = [variables]
    place = layer_of["key_file"]
    return place is typed or all(address is place for address in addresses)


def from_keywords(kind: type[SettingsT], options: Mapping[str, Any]) -> SettingsT:
    """Return the settings of the Python API: keywords over defaults, nothing from the environment or vip.toml.

    Raises:
        UsageError: an unknown keyword, or a value outside its range.
    """
    for name in options:
        if name not in kind.model_fields:
            raise UsageError(f'There is no setting "{name[:MOST_PROBLEM_LETTERS]}".{did_you_mean(name, kind.model_fields)}')
    return _validate(kind, options, {})


def chosen(kind: type[SettingsT], settings: SettingsT | None, options: Mapping[str, Any]) -> SettingsT:
    """Return settings given as an object, as keywords, or as keywords over an object."""
    return settings if settings and not options else from_keywords(kind, {**dict(settings or ()), **options})


def settings_of_both(
    extraction: ExtractSettings | None, captioning: CaptionSettings | None, options: Mapping[str, Any]
) -> tuple[ExtractSettings, CaptionSettings]:
    """Return the settings of `vip run`; a keyword that both know is for both.

    Raises:
        UsageError: a keyword that neither knows, or a wrong value.
    """
    known = {**ExtractSettings.model_fields, **CaptionSettings.model_fields}
    for name in options:
        if name not in known:
            raise UsageError(f'There is no setting "{name}".{did_you_mean(name, known)}')
    of_extraction, of_captioning = (
        {name: value for name, value in options.items() if name in kind.model_fields} for kind in (ExtractSettings, CaptionSettings)
    )
    return chosen(ExtractSettings, extraction, of_extraction), chosen(CaptionSettings, captioning, of_captioning)


def _validate(kind: type[SettingsT], values: Mapping[str, Any], origin: Mapping[str, str]) -> SettingsT:
    try:
        return kind(**values)
    except UnicodeEncodeError:  # pydantic cannot say what is wrong with half a character
        _validate(kind, {name: one_line(value) if isinstance(value, str) else value for name, value in values.items()}, origin)
        raise
    except ValidationError as exc:
        problem = exc.errors()[0]
        message = validation_message(problem)
        if not problem["loc"]:  # of several settings together
            raise UsageError(f"{message}.") from exc
        name = str(problem["loc"][0])
        value = repr(problem["input"])
        shown = value if len(value) <= MOST_PROBLEM_LETTERS else f"{value[:MOST_PROBLEM_LETTERS]}…"
        raise UsageError(f"{origin.get(name, name)} = {shown}: {message}.") from exc


def _table_of(kind: type[Settings]) -> str:
    return next(name for name, settings in COMMANDS.items() if settings is kind)


def user_file(environment: Mapping[str, str] | None = None) -> Path:
    """Return the path of the user's own settings: `~/.config/vip/vip.toml`; XDG_CONFIG_HOME moves it."""
    environment = os.environ if environment is None else environment
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "vip" / "vip.toml"


def _read_user_tables(environment: Mapping[str, str]) -> Tables:
    path = user_file(environment)
    content = read_settings(path)
    return tables_in(path, content) if content is not None else {}


def _read_allowed_tables(path: Path, note: Callable[[str], None]) -> Tables:
    """Return what counts of a vip.toml in the current folder."""
    content = read_settings(path)
    if content is None:
        return {}
    tables = tables_in(path, content)
    refused = trust.refused(tables)
    if not refused or trust.is_trusted(path, content):
        return tables
    names = listed(dict.fromkeys(refused))
    note(SaidOnce(f"{path.name} sets {names}, which does not count: the file only lies in this folder. If you trust it, run `vip trust`."))
    return {command: {name: value for name, value in table.items() if name not in refused} for command, table in tables.items()}


def read_settings(path: Path) -> bytes | None:
    """Return the content of a file of settings; None if there is no file.

    Raises:
        UsageError: it cannot be read.
    """
    try:
        return files.read_named(path, most_bytes=MOST_TOML_BYTES)
    except FileNotFoundError:
        return None
    except OSError as exc:
        raise UsageError(f"{path} cannot be read: {exc.strerror}.") from exc


def tables_in(path: Path, content: bytes) -> Tables:
    """Return the tables of a file of settings, by command.

    Raises:
        UsageError: it is no TOML, or has a name that vip does not know.
    """
    try:
        tables = parse_toml(content)
    except ValueError as exc:
        raise UsageError(f"{path} is not valid TOML: {exc}.") from exc
    for command, table in tables.items():
        if command not in COMMANDS:
            raise UsageError(f'{path} has an unknown entry "{command}".{did_you_mean(command, COMMANDS)}')
        if not isinstance(table, dict):
            raise UsageError(f'In {path}, "{command}" must be a table: write [{command}] on a line of its own.')
        known = COMMANDS[command].model_fields
        for key in table:
            if key not in known:
                raise UsageError(f'{path}, [{command}] has an unknown key "{key}".{did_you_mean(key, known)}')
    return tables
