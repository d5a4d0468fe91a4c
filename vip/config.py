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
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from vip import files, trust
from vip.errors import UsageError, did_you_mean
from vip.timecode import seconds_of, timecode
from vip.wording import SaidOnce, listed, option


class Settings(BaseModel):
    """Base of the settings: frozen, unknown names refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def _time(value: Any) -> Any:
    return float(seconds_of(value)) if isinstance(value, str) else value


def _number_or_auto(value: Any) -> Any:
    if not isinstance(value, str) or value == "auto":
        return value
    try:
        return int(value)
    except ValueError:
        raise ValueError("write a number such as 12, or auto") from None


def _labels(value: Any) -> Any:
    """Words from `a dog, a frisbee`, from `@words.txt`, or as a list."""
    if isinstance(value, str) and value.startswith("@"):
        try:
            value = Path(value[1:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as exc:
            raise ValueError(f"{value[1:]} cannot be read as a list of words, one a line ({exc})") from None
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list | tuple) or not all(isinstance(word, str) for word in words):
        raise ValueError("write words with commas between them, such as 'dog, frisbee', or @FILE with one a line")
    kept = tuple(dict.fromkeys(word.strip().lower() for word in words if word.strip()))
    if not kept:
        raise ValueError("the list of words to look for is empty; write for example 'dog, frisbee', or leave it out")
    return kept


def _sentence(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty; write what is looked for, such as 'a dog catches a frisbee', or leave it out")
    return value


def _topic(value: str) -> str:
    if not value.strip():
        raise ValueError("it is empty; write what the video is about, or leave it out")
    return value


def _language(value: str) -> str:
    name = LANGUAGES.get(value.strip().lower(), value.strip())
    if not name or len(name) > 40 or not all(letter.isalpha() or letter in " -()" for letter in name):
        raise ValueError("write a language such as German or de")
    return name[0].upper() + name[1:]


LANGUAGES = {
    **{"ar": "Arabic", "bn": "Bengali", "cs": "Czech", "da": "Danish", "de": "German", "el": "Greek", "en": "English", "es": "Spanish"},
    **{"fa": "Persian", "fi": "Finnish", "fr": "French", "he": "Hebrew", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian"},
    **{"it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese"},
    **{"ro": "Romanian", "ru": "Russian", "sv": "Swedish", "th": "Thai", "tr": "Turkish", "uk": "Ukrainian", "vi": "Vietnamese"},
    **{"zh": "Chinese", "zh-cn": "Simplified Chinese", "zh-tw": "Traditional Chinese", "pt-br": "Brazilian Portuguese"},
}
"""Codes of ISO 639-1 that are often typed; models know the names best, and any other name goes to them as it is."""

Count = Annotated[int, Field(ge=1, le=100_000)]
CountOrAuto = Annotated[Count | Literal["auto"], BeforeValidator(_number_or_auto)]
Time = Annotated[float, BeforeValidator(_time), Field(allow_inf_nan=False)]
Sentence = Annotated[str, AfterValidator(_sentence)]
Labels = Annotated[tuple[str, ...], BeforeValidator(_labels)]
Language = Annotated[str, AfterValidator(_language)]


class ModelSettings(Settings):
    """What finds objects, and where models run."""

    detector: str = Field(default="opencv", description="What finds people and objects.")
    labels: Labels | None = Field(
        default=None, description="What open-vocabulary detectors look for: words with commas between them, or @FILE with one a line."
    )
    device: str = Field(default="auto", description="Where models run: auto, cpu, cuda, cuda:1, mps.")
    precision: Literal["auto", "fp32", "bf16", "fp16"] = Field(default="auto", description="Precision of the models' weights.")


class ExtractSettings(ModelSettings):
    """What the choice of keyframes depends on."""

    keyframes: CountOrAuto = Field(
        default=12, description="Number of keyframes wanted, the f of Algorithm 1; auto: as many as the video needs."
    )
    candidates: Count | None = Field(
        default=None, description="Number of candidate frames, the c of Algorithm 1; by default as many as the sampler finds useful."
    )
    sampler: str = Field(default="sync", description="How candidates are chosen.")
    pruner: str = Field(default="algorithm1", description="How candidates are thinned out to keyframes.")
    embedder: str = Field(default="auto", description="What compares frames.")
    text_weight: float = Field(
        default=0.5, ge=0, le=1, description="Share of the objects' text in the likeness of two frames; the picture has the rest."
    )
    query: Sentence | None = Field(default=None, description="Keep what is relevant to this sentence, spread over the video.")
    min_objects: int = Field(default=0, ge=0, description="Drop frames in which fewer objects are found.")
    min_sharpness: float | None = Field(
        default=None, ge=0, allow_inf_nan=False, description="Least variance of the Laplacian, whatever the surroundings."
    )
    format: Literal["jpg", "png", "webp"] = Field(default="jpg", description="File format of the keyframes.")
    start: Time | None = Field(default=None, description="Use the video from this time on: seconds or hh:mm:ss.")
    end: Time | None = Field(default=None, description="Use the video up to this time: seconds or hh:mm:ss.")
    stream: int = Field(default=0, ge=0, description="Which of the video streams of the file, counted from 0.")

    timeout: Time | None = Field(
        default=None, gt=0, exclude=True, description="Give a video up after this time: seconds or hh:mm:ss."
    )  # no part of the manifest: it decides whether a run ends, not how
    cookies: Path | None = Field(default=None, exclude=True, description="File with cookies for video sites, in Netscape's format.")
    proxy: str | None = Field(default=None, exclude=True, description="Proxy for video sites: http://… or socks5://….")

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


class CaptionSettings(ModelSettings):
    """What the descriptions depend on, and how they are asked for."""

    engine: str = Field(default="auto", description="Who describes: offline, openai:MODEL, transformers:MODEL, or auto.")
    describe_engine: str | None = Field(default=None, description="Who looks at the pictures, where it is not --engine.")
    structure_engine: str | None = Field(default=None, description="Who turns captions into FAMOuS, where it is not --engine.")
    base_url: str | None = Field(default=None, description="Address of an OpenAI-compatible server.")
    key_file: Path | None = Field(default=None, description="File with the API key that only its owner may read.")
    recipe: Literal["direct", "paper"] = Field(default="direct", description="One question a keyframe, or the three of the paper.")
    topic: Annotated[str, AfterValidator(_topic)] | None = Field(
        default=None, description="What the video is about; what it lets one expect goes into the questions."
    )
    prompts: Path | None = Field(default=None, description="Folder with prompts of your own.")
    context: int = Field(default=0, ge=0, le=100, description="How many captions of the keyframes before go into the question.")
    language: Language = Field(default="English", description="Language of the descriptions: a name or a code, such as German or de.")
    embedder: str = Field(default="auto", description="What holds descriptions against frames.")
    verify: bool = Field(default=False, description="Hold every description against its own frame, and mark what finds no support.")
    picture_side: int = Field(default=1024, ge=64, le=8192, description="Longest side of the pictures that are sent, in pixels.")
    picture_detail: Literal["low", "high", "auto"] = Field(default="high", description="How closely the model looks: low, high or auto.")

    max_usd: float | None = Field(default=None, ge=0, allow_inf_nan=False, exclude=True, description="Dollars that may be spent.")
    prices: Path | None = Field(default=None, exclude=True, description="TOML file with prices of your own.")
    cache: Path | None = Field(default=None, exclude=True, description="SQLite file with the answers of all runs.")
    concurrency: Count | None = Field(default=None, exclude=True, description="Requests in flight at once, instead of finding out.")
    rpm: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude=True, description="Requests a minute.")
    tpm: Annotated[int, Field(ge=1)] | None = Field(default=None, exclude=True, description="Tokens a minute.")
    request_timeout: Time = Field(default=120.0, gt=0, exclude=True, description="Give a request up after this time: seconds or hh:mm:ss.")


def _bytes(value: Any) -> Any:
    """Bytes from `50GB`, `800M` (thousands, as disks are sold) or a number."""
    if not isinstance(value, str):
        return value
    given = SIZE.fullmatch(value)
    if not given:
        raise ValueError("write bytes such as 50GB or 800M")
    return round(float(given[1]) * 1000 ** " kmgt".index(given[2].lower() or " "))


def _words(value: Any) -> Any:
    return shlex.split(value) if isinstance(value, str) else value


SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)b?\s*", re.IGNORECASE)
Bytes = Annotated[int, BeforeValidator(_bytes), Field(gt=0)]


class BatchSettings(Settings):
    """What becomes of a list of videos, beside how each is extracted and described."""

    caption: bool = Field(default=False, description="Describe the keyframes too.")
    batch: bool = Field(default=False, exclude=True, description="Ask through the server's Batch API: half the price, within a day.")
    shards: Literal["parquet", "webdataset"] = Field(default="parquet", description="Format of the shards.")
    shard_size: Bytes = Field(default=256_000_000, exclude=True, description="Size of a shard, about: 256MB.")
    weights: Path | None = Field(default=None, description="TOML file with a weight for each vertical, instead of vip's own.")
    vocabulary: Path | None = Field(
        default=None, description="vocabulary.csv of YouTube-8M: names, verticals and descriptions of its labels."
    )
    sample: Annotated[int, Field(ge=1)] | None = Field(default=None, description="Take so many of the videos, by weight.")
    seed: int = Field(default=0, description="Of the choice by weight.")
    min_length: Time | None = Field(default=None, gt=0, description="Leave shorter videos out: seconds or hh:mm:ss.")
    max_length: Time | None = Field(default=None, gt=0, description="Leave longer videos out: seconds or hh:mm:ss.")
    audio: bool = Field(default=False, description="Fetch the sound too.")
    public_only: bool = Field(default=False, description="Refuse local paths, and addresses of the private network.")

    runner: Literal["local", "ray"] = Field(default="local", exclude=True, description="Processes of this machine, or a Ray cluster.")
    ray_address: str | None = Field(default=None, exclude=True, description="Address of a Ray cluster; without it one is started here.")
    workers: Annotated[int, Field(ge=1, le=10_000)] | None = Field(default=None, exclude=True, description="Videos worked on at once.")
    per_host: Annotated[int, Field(ge=1)] = Field(default=2, exclude=True, description="Downloads at once from one host.")
    download_timeout: Time = Field(default=1800.0, gt=0, exclude=True, description="Give a download up: seconds or hh:mm:ss.")
    retry_wait: Time = Field(default=30.0, gt=0, exclude=True, description="Before the second try of what failed; longer each time.")
    sleep: Time = Field(default=1.0, ge=0, exclude=True, description="Seconds between two requests of one download slot to a host.")
    rate_limit: Bytes | None = Field(default=None, exclude=True, description="Bytes a second of one download, such as 4M.")
    cookies: Path | None = Field(default=None, exclude=True, description="File with cookies in Netscape's format.")
    proxy: str | None = Field(default=None, exclude=True, description="Proxy for downloads: http://… or socks5://….")
    ytdlp_opts: Annotated[tuple[str, ...], BeforeValidator(_words)] = Field(
        default=(), exclude=True, description="More options for yt-dlp, as on its command line."
    )
    keep_videos: Path | None = Field(default=None, exclude=True, description="Keep what was downloaded in this folder.")
    disk_budget: Bytes = Field(default=20_000_000_000, exclude=True, description="Downloaded videos that lie around on a machine: 50GB.")
    youtube8m_base_url: str = Field(default="http://data.yt8m.org/2/j/i", exclude=True, description="Where YouTube-8M's ids are looked up.")
    video_base_url: str = Field(default="https://www.youtube.com", exclude=True, description="Where YouTube ids are watched.")

    @model_validator(mode="after")
    def _goes_together(self) -> BatchSettings:
        if self.min_length is not None and self.max_length is not None and self.min_length > self.max_length:
            raise ValueError(f"{option('min_length', f'{self.min_length:g}')} is more than {option('max_length', f'{self.max_length:g}')}")
        if self.ray_address is not None and self.runner != "ray":
            raise ValueError(
                f"{option('ray_address')} has nothing to do without {option('runner', 'ray')}; add it, or leave the address out"
            )
        return self


ENGINES = ("engine", "describe_engine", "structure_engine")
MOST_TOML_BYTES = 2**20
Tables = dict[str, dict[str, Any]]
COMMANDS: dict[str, type[Settings]] = {"extract": ExtractSettings, "caption": CaptionSettings, "batch": BatchSettings}
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
    """Settings from all layers; a `given` value of None means that the command line says nothing.

    Args:
        layered: False for what the command line says alone.
        note: is told what of a vip.toml in the current folder does not count.

    Raises:
        UsageError: a misspelt key of vip.toml, or a value outside its range, named with where it came from.
    """
    environment = os.environ if environment is None else environment
    command = _command_of(kind)
    variables = {name: value for name in kind.model_fields if (value := environment.get(f"VIP_{name.upper()}"))}
    layers = [
        _Layer(_of_user(environment).get(command, {}), lambda name: f"{user_file(environment)}: {name}"),
        _Layer(_allowed((folder or Path.cwd()) / "vip.toml", note).get(command, {}), lambda name: f"vip.toml: {name}"),
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
    if "key_file" in values and not _belongs(layer_of, layers, environment):
        note(SaidOnce(f"The key in {values.pop('key_file')} was given for another server, and does not go to this one."))
    return _checked(kind, values, {name: layer.origin(name) for name, layer in layer_of.items()})


def _belongs(layer_of: Mapping[str, _Layer], layers: Sequence[_Layer], environment: Mapping[str, str]) -> bool:
    """Whether the file of a key was given for the server that is asked: by who typed the command, or where the address stands too."""
    *_, variables, typed = layers
    addresses = [layer_of["base_url"]] if "base_url" in layer_of else []
    addresses += [layer for name in ENGINES if (layer := layer_of.get(name)) and "@" in str(layer.values[name])]
    if not addresses and environment.get("OPENAI_BASE_URL", "").strip():
        addresses = [variables]
    place = layer_of["key_file"]
    return place is typed or all(address is place for address in addresses)


def from_keywords(kind: type[SettingsT], options: Mapping[str, Any]) -> SettingsT:
    """Settings of the Python API: keywords over defaults, and nothing from the environment or from vip.toml.

    Raises:
        UsageError: an unknown keyword, or a value outside its range.
    """
    for name in options:
        if name not in kind.model_fields:
            raise UsageError(f'There is no setting "{name}".{did_you_mean(name, kind.model_fields)}')
    return _checked(kind, options, {})


def chosen(kind: type[SettingsT], settings: SettingsT | None, options: Mapping[str, Any]) -> SettingsT:
    """Settings as the Python API gets them: an object, keywords, or keywords over an object."""
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


def _checked(kind: type[SettingsT], values: Mapping[str, Any], origin: Mapping[str, str]) -> SettingsT:
    try:
        return kind(**values)
    except ValidationError as exc:
        problem = exc.errors()[0]
        message = problem["msg"].removeprefix("Value error, ")
        if not problem["loc"]:  # of several settings together
            raise UsageError(f"{message}.") from exc
        name = str(problem["loc"][0])
        raise UsageError(f"{origin.get(name, name)} = {problem['input']!r}: {message}.") from exc


def _command_of(kind: type[Settings]) -> str:
    return next(name for name, settings in COMMANDS.items() if settings is kind)


def user_file(environment: Mapping[str, str] | None = None) -> Path:
    """The user's own settings: `~/.config/vip/vip.toml`; XDG_CONFIG_HOME moves them."""
    environment = os.environ if environment is None else environment
    return Path(environment.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "vip" / "vip.toml"


def _of_user(environment: Mapping[str, str]) -> Tables:
    path = user_file(environment)
    content = read_settings(path)
    return tables_in(path, content) if content is not None else {}


def _allowed(path: Path, note: Callable[[str], None]) -> Tables:
    """What counts of a vip.toml that lies in the current folder."""
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
    """The content of a file of settings; None where there is none.

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
    """The tables of a file of settings, by command.

    Raises:
        UsageError: it is no TOML, or has a name that vip does not know.
    """
    try:
        tables = tomllib.loads(content.decode())
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise UsageError(f"{path} is not valid TOML: {exc}.") from exc
    except RecursionError:
        raise UsageError(f"{path} is not valid TOML: lists in lists, too deep.") from None
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
