"""The transcriber with the real library: a Whisper that says what it was built for, and the detector of speech on sound that it knows."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from vip import registry
from vip.errors import BackendError
from vip.models import faster_whisper as adapter
from vip.models import hub
from vip.wording import option

# ---------------------------------------------------------------- without the library


def test_without_the_library_one_sentence_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "find_spec", lambda name: None)
    with pytest.raises(BackendError, match=r"not installed\. Run: pip install 'vip-keyframes\[speech\]'"):
        registry.transcriber("small")
    assert registry.no_transcriber_reason("small") == "faster-whisper is not installed (pip install 'vip-keyframes[speech]')"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "find_spec", lambda name: object())


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("smal", r'no speech model "smal"\. Did you mean .?small'),
        ("./nowhere", r'no speech model "\./nowhere"'),
        ("a/b/c", "owner/name, or a folder"),
        ("", 'no speech model ""'),
    ],
)
def test_a_model_that_is_none_is_refused(installed: None, model: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BackendError, match=words):
        registry.transcriber(model)


def test_a_folder_names_what_it_lacks(installed: None, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BackendError, match=r"has no tokenizer\.json, vocabulary\.json, model\.bin\. Give one"):
        registry.transcriber(str(tmp_path))
    assert "has no tokenizer.json" in str(registry.no_transcriber_reason(str(tmp_path)))


def test_a_folder_of_the_name_of_a_published_model_is_not_taken_for_it(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "small").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(hub, "find_cached", lambda repo, name: None)
    assert "folder small" not in str(registry.no_transcriber_reason("small"))


def test_a_model_that_is_nowhere_is_one_sentence_and_auto_does_not_ask_for_it(installed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "find_cached", lambda repo, name: None)
    monkeypatch.setattr(hub, "unreachable_reason", lambda: "the hub does not answer")
    with pytest.raises(
        BackendError, match=r"small is not in the cache and cannot be downloaded: the hub does not answer\. Run .* once online"
    ):
        registry.transcriber("small")
    monkeypatch.setattr(hub, "unreachable_reason", lambda: pytest.fail("asked the hub"))
    assert registry.no_transcriber_reason("small") == f"the model small is not on this machine; {option('words', 'speech')} downloads it"


def test_a_model_is_downloaded_once_with_its_weights_last(installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked: list[tuple[str, str]] = []

    def download(repo: str, names: tuple[str, ...]) -> str | None:
        asked.append((repo, names[0]))
        (tmp_path / names[0]).write_bytes(b"x")
        return None

    monkeypatch.setattr(hub, "find_cached", lambda repo, name: tmp_path / name if (tmp_path / name).exists() else None)
    monkeypatch.setattr(hub, "unreachable_reason", lambda: None)
    monkeypatch.setattr(hub, "download", download)
    assert registry.transcriber("turbo").name == "faster-whisper turbo"
    assert {repo for repo, _ in asked} == {"mobiuslabsgmbh/faster-whisper-large-v3-turbo"}
    assert asked[-1][1] == "model.bin"
    count = len(asked)
    registry.transcriber("turbo")
    assert len(asked) == count


@pytest.mark.parametrize("step", ["language_of", "transcribe"])
def test_a_device_that_fails_is_one_sentence(step: str, installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for names in adapter.FILES:
        (tmp_path / names[0]).write_bytes(b"x")

    def fail(*arguments: object, **more: object) -> None:
        raise RuntimeError("CUDA failed with error out of memory")

    loaded = SimpleNamespace(
        supported_languages=["en", "de"], model=SimpleNamespace(is_multilingual=True), detect_language=fail, transcribe=fail
    )
    monkeypatch.setattr(adapter.FasterWhisperTranscriber, "_model", loaded)
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(set_random_seed=lambda seed: None))
    asked = transcriber(tmp_path)
    with pytest.raises(BackendError, match=r"failed \(CUDA failed with error out of memory\)\. Write .*cpu"):
        list(asked.transcribe(NOISE, "de")) if step == "transcribe" else asked.language_of(NOISE)


# ---------------------------------------------------------------- with it


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for name in ("faster_whisper", "ctranslate2", "torch", "transformers", "tokenizers"):
        pytest.importorskip(name)
    script = "import sys; from pathlib import Path; from tests.models.tiny_whisper import build; build(Path(sys.argv[1]), sys.argv[2:])"
    folder = tmp_path_factory.mktemp("whisper") / "tiny"
    said = ["<|0.00|>", "Ġhello", "Ġworld", "<|0.80|>", "<|0.80|>", "Ġthere", "<|1.20|>"]
    subprocess.run(
        [sys.executable, "-c", script, str(folder), *said], check=True, capture_output=True, timeout=200
    )  # torch's threads stay there
    return folder


def transcriber(model: Path, device: str = "cpu", precision: str = "auto") -> adapter.FasterWhisperTranscriber:
    return adapter.FasterWhisperTranscriber(str(model), device=device, precision=precision)


NOISE = (np.random.default_rng(0).standard_normal(16_000 * 4) * 0.1).astype(np.float32)


@pytest.mark.slow
def test_segments_have_their_words_times_and_language(model: Path, capfd: pytest.CaptureFixture[str]) -> None:
    made = pickle.loads(pickle.dumps(transcriber(model)))  # it is sent to another process before it is loaded
    assert made.name == "faster-whisper tiny"
    assert made.language_of(NOISE) == "de"
    assert [(one.text, one.start_s, one.end_s, one.is_sure) for one in made.transcribe(NOISE, "de")][:2] == [
        (" hello world", 0.0, pytest.approx(0.8), True),
        (" there", pytest.approx(0.8), pytest.approx(1.2), True),
    ]
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow
def test_what_the_model_doubts_is_marked(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter, "LEAST_LOGPROB", 1.0)  # nothing is as sure as that
    assert {one.is_sure for one in transcriber(model).transcribe(NOISE, "de")} <= {False}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("device", "precision", "language", "words"),
    [
        ("gpu", "auto", "de", 'There is no device "gpu"'),
        ("cuda:99", "auto", "de", r"finds \d+ CUDA GPUs"),
        ("cpu", "fp16", "de", "speech cannot be transcribed so on this cpu"),
        ("cpu", "auto", "xx", 'knows no language "xx"'),
    ],
)
def test_what_cannot_be_is_one_sentence(model: Path, device: str, precision: str, language: str, words: str) -> None:
    with pytest.raises(BackendError, match=words):
        list(transcriber(model, device, precision).transcribe(NOISE, language))


@pytest.mark.slow
def test_damaged_weights_are_one_sentence(model: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "damaged"))
    (folder / "model.bin").write_bytes((folder / "model.bin").read_bytes()[:1000])
    with pytest.raises(BackendError, match=r"damaged cannot be loaded .*Copy the model again"):
        transcriber(folder).language_of(NOISE)


@pytest.mark.slow
def test_silence_noise_and_a_tone_are_no_speech(model: Path) -> None:
    made = transcriber(model)
    tone = (np.sin(np.arange(len(NOISE)) * 2 * np.pi * 300 / 16_000) * 0.5).astype(np.float32)
    for samples in (np.zeros_like(NOISE), NOISE, tone, np.zeros(1, np.float32)):
        assert made.speech(samples, least_pause_s=2) == []


@pytest.mark.slow
def test_a_spoken_sentence_is_found_where_it_is_said_and_transcribed_with_its_times(model: Path, tmp_path: Path) -> None:
    """A synthetic voice says a sentence at 4 s and at 14 s of a video."""
    voice = shutil.which("espeak-ng") or pytest.skip("espeak-ng is not installed")
    subprocess.run(
        [voice, "-v", "en", "-s", "140", "-w", str(tmp_path / "voice.wav"), "The quick brown fox jumps over the dog."], check=True
    )
    from fractions import Fraction

    import av

    from vip.pipeline import run

    resampler = av.AudioResampler(format="s16", layout="mono", rate=16_000)
    with av.open(str(tmp_path / "voice.wav")) as file:
        said = np.concatenate([one.to_ndarray().reshape(-1) for frame in file.decode(audio=0) for one in resampler.resample(frame)])
    sound = np.zeros(24 * 16_000, np.int16)
    for second in (4, 14):
        sound[second * 16_000 : second * 16_000 + len(said)] = said
    with av.open(str(tmp_path / "talk.mkv"), "w") as out:
        pictures, audio = (
            out.add_stream("mpeg4", rate=5, width=64, height=48, pix_fmt="yuv420p"),
            out.add_stream("flac", rate=16_000, layout="mono"),
        )
        for number in range(24 * 5):
            out.mux(pictures.encode(av.VideoFrame.from_ndarray(np.full((48, 64, 3), 60 + number // 20 * 20, np.uint8), format="rgb24")))
        for first in range(0, len(sound), 4000):
            frame = av.AudioFrame.from_ndarray(sound[None, first : first + 4000], format="s16", layout="mono")
            frame.sample_rate, frame.pts, frame.time_base = 16_000, first, Fraction(1, 16_000)
            out.mux(audio.encode(frame))
        out.mux(pictures.encode(None))
        out.mux(audio.encode(None))
    options = {"keyframes": 4, "engine": "offline", "words": "speech", "speech_model": str(model)}
    done = run(tmp_path / "talk.mkv", out=tmp_path / "talk.vip", isolated=True, **options)
    first_words = [one for one in done.words if one.text == "hello world"]
    assert [one.start_s for one in first_words if one.start_s < 5 or 12 < one.start_s < 15] == pytest.approx([4, 14], abs=0.6)
    assert {one.origin for one in done.words} == {"speech, faster-whisper tiny, de"}
    assert all(3.4 < one.start_s < 4.6 + len(said) / 16_000 or 13.4 < one.start_s < 14.6 + len(said) / 16_000 for one in done.words)
    assert any("was transcribed as: “hello world" in row.dense_caption for row in done.descriptions)
