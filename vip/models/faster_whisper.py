"""The transcriber of speech: Whisper as faster-whisper runs it (CTranslate2), with the detector of speech that its wheel brings.

A model is a folder, or a repository of the hub that is downloaded once. Making the transcriber loads nothing: it may be sent to another
process. What Whisper itself calls unsure, by its own thresholds, is marked and not used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vip import telemetry
from vip.cores import cores
from vip.errors import BackendError, did_you_mean
from vip.models import hub
from vip.protocols import SpokenSegment
from vip.records import SOUND_RATE as RATE
from vip.records import Samples
from vip.wording import option

INSTALL = "pip install 'vip-keyframes[speech]'"
SYSTRAN, TURBO = "Systran/faster-whisper-{}", "mobiuslabsgmbh/faster-whisper-large-v3-turbo"
SIZES = ("tiny", "tiny.en", "base", "base.en", "small", "small.en", "medium", "medium.en", "large-v1", "large-v2", "large-v3")
MODELS = {
    **{size: SYSTRAN.format(size) for size in SIZES},
    **{f"distil-{size}": f"Systran/faster-distil-whisper-{size}" for size in ("small.en", "medium.en", "large-v2", "large-v3")},
    **{"large": SYSTRAN.format("large-v3"), "turbo": TURBO, "large-v3-turbo": TURBO},
}
"""Name -> repository, as faster-whisper knows them: to ask whether a model is here must not load it."""
DEFAULT = "small"  # of the setting
FILES = (("config.json",), ("tokenizer.json",), ("vocabulary.json", "vocabulary.txt"), ("model.bin",))
OPTIONAL = ("preprocessor_config.json",)  # models before large-v3 have none
COMPUTE_TYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
LEAST_LOGPROB, MOST_REPETITION = -1.0, 2.4  # Whisper's own: the mean of a sure segment's tokens, and how far its text can be compressed


class FasterWhisperTranscriber:
    """Words of speech with their times."""

    def __init__(self, model: str, *, device: str, precision: str) -> None:
        """Find the files of a model, or download them; nothing is loaded yet.

        Args:
            model: `small`, `owner/name` of a repository with a converted model, or a folder with one.

        Raises:
            BackendError: faster-whisper is not installed, or the model is not here and cannot be downloaded.
        """
        check_installed()
        self._folder = find_or_download(model)
        self._device, self._precision, self._asked = device, precision, model
        is_folder = Path(model).expanduser().is_dir()
        self.name = f"faster-whisper {self._folder.name if is_folder else model}"
        weights = (self._folder / "model.bin").stat()
        self.identity = f"{self.name} {weights.st_size} {weights.st_mtime_ns if is_folder else ''} {precision}"

    @cached_property
    def _model(self) -> Any:
        telemetry.turn_off()
        try:
            from faster_whisper import WhisperModel
        except Exception as exc:  # of the library or of those that it loads
            raise BackendError(
                f"faster-whisper, which transcribes speech, cannot be loaded ({hub.first_line(exc)}). Run: {INSTALL}"
            ) from exc
        logging.getLogger("faster_whisper").setLevel(logging.ERROR)
        device, number = _device_of(self._device)
        compute = _compute_type(self._precision, device)
        try:
            return WhisperModel(str(self._folder), device=device, device_index=number, compute_type=compute, cpu_threads=cores())
        except Exception as exc:  # of a damaged file, the device or its memory
            advice = f"Copy the model again, or choose another with {option('speech_model', 'base')}"
            raise BackendError(f"The speech model {self._asked} cannot be loaded ({hub.first_line(exc)}). {advice}.") from exc

    def speech(self, samples: Samples, *, least_pause_s: float) -> list[tuple[float, float]]:
        """Return from and to, in seconds, of what sounds like speech."""
        telemetry.turn_off()
        try:
            from faster_whisper.vad import VadOptions, get_speech_timestamps

            options = VadOptions(min_silence_duration_ms=round(least_pause_s * 1000), speech_pad_ms=min(400, round(least_pause_s * 500)))
            found = get_speech_timestamps(samples, options, sampling_rate=RATE)
        except Exception as exc:  # of the library, or of onnxruntime
            raise BackendError(f"Speech cannot be told from other sound ({hub.first_line(exc)}). Run: {INSTALL}") from exc
        return [(one["start"] / RATE, one["end"] / RATE) for one in found]

    def language_of(self, samples: Samples) -> str:
        """Return the code of the language that is spoken, from as much as four times half a minute."""
        try:
            if not self._model.model.is_multilingual:
                return "en"
            return str(self._model.detect_language(audio=samples, language_detection_segments=4)[0])
        except RuntimeError as exc:
            raise self._failed(exc) from exc

    def transcribe(self, samples: Samples, language: str) -> Iterator[SpokenSegment]:
        """Yield what is said, sentence by sentence."""
        model = self._model
        if language not in model.supported_languages:
            known = "knows English alone" if not model.model.is_multilingual else f'knows no language "{language}"'
            raise BackendError(
                f"The speech model {self._asked} {known}. Leave {option('speech_language', language)} out, write a code such as de,"
                f" or choose a model such as {option('speech_model', 'small')}."
            )
        import ctranslate2

        ctranslate2.set_random_seed(0)  # Whisper tries again by chance where it was unsure
        try:
            # each segment for itself: what was misheard is not repeated
            segments, _ = model.transcribe(
                samples,
                language=language,
                condition_on_previous_text=False,
                log_prob_threshold=LEAST_LOGPROB,
                compression_ratio_threshold=MOST_REPETITION,
            )
            for one in segments:
                is_sure = one.avg_logprob >= LEAST_LOGPROB and one.compression_ratio <= MOST_REPETITION
                yield SpokenSegment(float(one.start), float(one.end), one.text, is_sure)
        except RuntimeError as exc:
            raise self._failed(exc) from exc

    def _failed(self, exc: RuntimeError) -> BackendError:
        advice = f"Write {option('device', 'cpu')}, or choose a smaller one such as {option('speech_model', 'base')}"
        return BackendError(f"The speech model {self._asked} failed ({hub.first_line(exc)}). {advice}.")


def check_installed() -> None:
    """Refuse to begin where faster-whisper is not installed.

    Raises:
        BackendError: it is not.
    """
    if find_spec("faster_whisper") is None:
        raise BackendError(f"Speech is transcribed with faster-whisper, which is not installed. Run: {INSTALL}")


def unavailable_reason(model: str) -> str | None:
    """Return why speech cannot be transcribed here and now without a download, in words; None where it can. Loads nothing."""
    if find_spec("faster_whisper") is None:
        return f"faster-whisper is not installed ({INSTALL})"
    try:
        folder = _find(model)
    except BackendError as exc:
        return str(exc).rstrip(".")
    return None if folder else f"the model {model} is not on this machine; {option('words', 'speech')} downloads it"


def find_or_download(model: str) -> Path:
    """Return the folder of a model, downloaded where it is not in the cache yet.

    Raises:
        BackendError: there is no such model, or it cannot be downloaded.
    """
    if folder := _find(model):
        return folder
    reason = hub.unreachable_reason() or _download(MODELS.get(model, model))
    if not reason and (folder := _find(model)):
        return folder
    raise BackendError(
        f"The speech model {model} is not in the cache and cannot be downloaded: {reason or 'files are missing'}."
        f" Run the command once online, or give a folder with a converted model: {option('speech_model', 'FOLDER')}."
    )


def _find(model: str) -> Path | None:
    """Return the folder of a model; None for one of the hub that was not downloaded yet.

    Raises:
        BackendError: there is no such model, or its folder lacks files.
    """
    path = Path(model).expanduser()
    if model.strip() and model not in MODELS and path.is_dir():  # a folder "small" may have come with a download
        if missing := [names[0] for names in FILES if not any((path / name).is_file() for name in names)]:
            raise BackendError(
                f"The folder {model} has no {', '.join(missing)}. Give one with a Whisper model that was converted for CTranslate2."
            )
        return path
    if model not in MODELS and (model[:1] in {"/", ".", "~"} or model.count("/") != 1):
        advice = f"Write {option('speech_model', 'small')}, owner/name, or a folder"
        raise BackendError(f'There is no speech model "{model}".{did_you_mean(model, MODELS)} {advice}.')
    repo = MODELS.get(model, model)
    found = [next((file for name in names if (file := hub.find_cached(repo, name))), None) for names in FILES]
    weights = found[-1]
    return weights.parent if weights is not None and all(found) else None


def _download(repo: str) -> str | None:
    """Download the files of a model; why that failed, or None. The large one comes last."""
    hub.download(repo, OPTIONAL)
    return next((reason for names in FILES if (reason := hub.download(repo, names))), None)


def _device_of(device: str) -> tuple[str, int]:
    """Return the kind of device and its number.

    Raises:
        BackendError: it is unknown or not there.
    """
    import ctranslate2

    kind, _, number = device.partition(":")
    if kind not in {"auto", "cpu", "cuda", "mps"} or (number and not number.isdecimal()):
        raise BackendError(f'There is no device "{device}". Write {option("device", "auto")}, cpu, cuda, cuda:1 or mps.')
    count = ctranslate2.get_cuda_device_count()
    if kind == "cuda" and int(number or 0) >= count:
        raise BackendError(
            f"{option('device', device)}: CTranslate2, which transcribes speech, finds {count} CUDA GPUs."
            f" Write {option('device', 'cpu')}, or leave it out."
        )
    if kind == "auto":
        kind = "cuda" if count else "cpu"
    return ("cuda", int(number or 0)) if kind == "cuda" else ("cpu", 0)  # it knows no Metal


def _compute_type(precision: str, device: str) -> str:
    """Return what CTranslate2 calls a precision. `auto` is float16 on a GPU, and int8 on the CPU.

    Raises:
        BackendError: the device cannot do it.
    """
    import ctranslate2

    if precision == "auto":
        return "float16" if device == "cuda" else "int8"
    wanted = COMPUTE_TYPES[precision]
    if wanted not in ctranslate2.get_supported_compute_types(device):
        raise BackendError(
            f"{option('precision', precision)}: speech cannot be transcribed so on this {device}."
            f" Write {option('precision', 'fp32')} or auto."
        )
    return wanted
