"""Every way to go wrong: its exit code, its one sentence, and that nothing is lost or left behind."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.cli.terminal import ROOT, Done, end, environment, start_command, vip
from tests.clips import SAMPLE, clip, picture, result, sound, stamps
from vip.cli.app import run
from vip.cli.console import print_error

Prepare = Callable[[Path], object]
NOTHING_THERE = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="session")
def things(tmp_path_factory: pytest.TempPathFactory, undisturbed: Path) -> Path:
    """What the commands of the table are about."""
    folder = tmp_path_factory.mktemp("things")
    clip(folder / "video.mp4", [1, 2])
    clip(folder / "other.mp4", [3])
    (folder / "text.mp4").write_text("This is no video.\n" * 50)
    (folder / "empty.mp4").touch()
    (folder / "head.mp4").write_bytes(SAMPLE.read_bytes()[:5000])
    sound(folder / "sound.mp4")
    (folder / "no videos").mkdir()
    (folder / "no videos" / "notes.txt").write_text("mine")
    picture(folder / "photos" / "a.png")
    (folder / "bad photos").mkdir()
    (folder / "bad photos" / "a.jpg").write_text("no picture")
    (folder / "mine").mkdir()
    (folder / "mine" / "thesis.txt").write_text("mine")
    shutil.copytree(undisturbed, folder / "run")
    shutil.copytree(folder / "photos", folder / "asked")
    picture(folder / "asked" / "b.png", 1)
    assert vip(folder, "caption", "asked", "--engine", "fake").code == 0
    assert vip(folder, "extract", "video.mp4", "-n", "2").code == 0
    return folder


@pytest.fixture
def folder(things: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(things, tmp_path / "here"))


@pytest.fixture
def here(folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Run `vip …` in the folder, in this process: the rows of the tables are many."""
    monkeypatch.chdir(folder)
    for name in os.environ.keys() - environment().keys():
        monkeypatch.delenv(name)

    def vip_here(*arguments: str) -> Done:
        capfd.readouterr()
        return Done(run(list(arguments)), *capfd.readouterr())

    return vip_here


def write(name: str, text: str) -> Prepare:
    return lambda folder: (folder / name).write_text(text)


def damage(name: str) -> Prepare:
    return lambda folder: (folder / name).write_text((folder / name).read_text().replace('"pts"', '"pts', 1))


def newer(name: str) -> Prepare:
    return lambda folder: (folder / name).write_text(re.sub(r'("schema_version": ?)1', r"\g<1>2", (folder / name).read_text()))


def unlink(name: str) -> Prepare:
    return lambda folder: (folder / name).unlink()


USAGE = [
    ("nope", ["No such command 'nope'", "See `vip --help`"]),
    ("--nope", ["No such option: --nope", "See `vip --help`"]),
    ("run video.mp4 --nope", ["No such option: --nope", "See `vip run --help`"]),
    ("extract", ["Give a VIDEO", "--from RUN"]),
    ("caption", ["Missing argument", "See `vip caption --help`"]),
    ("report run run", ["unexpected extra argument"]),
    ("extract video.mp4 --nope", ["No such option", "--nope"]),
    ("extract video.mp4 --keyframe 3", ["--keyframe", "--keyframes"]),
    ("extract video.mp4 -o", ["-o", "requires an argument"]),
    ("extract video.mp4 -n many", ["--keyframes", "a number such as 12, or auto"]),
    ("extract video.mp4 -n 0", ["--keyframes = 0", "greater than or equal to 1"]),
    ("extract video.mp4 -n -3", ["--keyframes = -3"]),
    ("extract video.mp4 -n 1000000", ["--keyframes = 1000000"]),
    ("extract video.mp4 --min-sharpness -1", ["--min-sharpness = '-1'"]),
    ("extract video.mp4 --min-sharpness nan", ["--min-sharpness = 'nan'"]),
    ("extract video.mp4 --text-weight 2", ["--text-weight = '2'", "less than or equal to 1"]),
    ("extract video.mp4 --query \xa0", ["--query = ' ': it is empty; write what is looked for"]),
    ("extract video.mp4 --min-objects -1", ["--min-objects = '-1'"]),
    ("extract video.mp4 --candidates 3 -o new", ["--candidates 3 is less than the 12 keyframes wanted"]),
    ("extract video.mp4 --precision int8", ["--precision = 'int8'", "'fp32', 'bf16' or 'fp16'"]),
    ("extract video.mp4 --labels ,", ["--labels = ','", "the list of words to look for is empty"]),
    ("extract video.mp4 --labels @words.txt", ["words.txt cannot be read as a list of words"]),
    ("extract video.mp4 -o new --labels dog", ["--labels dog: the detector opencv finds what it was made for"]),
    ("extract video.mp4 -o new --pruner aks", ["chooses by relevance to a question", "Add --query"]),
    ("extract video.mp4 -o new --query dog --pruner k-center", ["--pruner k-center does not", "Leave one of them out"]),
    ("extract video.mp4 -o new --embedder classic --device cuda", ["--device cuda: neither the embedder classic nor the detector opencv"]),
    ("extract video.mp4 --format gif", ["--format = 'gif'", "'jpg', 'png' or 'webp'"]),
    ("run video.mp4 --format bmp", ["--format = 'bmp'"]),
    ("extract video.mp4 -n 3", ["video.vip holds another run (keyframes 2, now 3)", "-o", "--overwrite"]),
    ("extract other.mp4 -n 2 -o video.vip", ["video.vip holds another run (video video.mp4, now other.mp4)"]),
    ("extract video.mp4 -o mine", ["mine is not empty and no run of vip", "--overwrite"]),
    ("caption asked --engine offline", ["asked holds 2 descriptions by fake, which --engine offline would replace", "--overwrite"]),
    ("caption video.vip --base-url localhost:8000", ['"localhost:8000" is not a web address']),
    ("caption video.vip --engine fake --recipe poem", ["--recipe = 'poem'", "'direct' or 'paper'"]),
    ("caption video.vip --engine fake --context 101", ["--context = '101'", "less than or equal to 100"]),
    ("caption video.vip --engine fake --structure-engine offline", ["nothing to do in the recipe direct", "Add --recipe paper"]),
    (f"caption video.vip --engine openai:x --base-url {NOTHING_THERE} --max-usd 1", ["the price of openai:x is unknown", "--prices"]),
    (f"caption video.vip --engine openai:x --base-url {NOTHING_THERE} --key-file key", ["The key in key cannot be read", "No such file"]),
    ("caption video.vip --engine fake --prompts mine", ["mine holds no prompts"]),
    ("caption video.vip --engine fake --prices missing.toml", ["missing.toml"]),
]
INPUT = [
    ("extract missing.mp4", ["missing.mp4 does not exist"]),
    ("run missing.mp4", ["missing.mp4 does not exist"]),
    (f"extract {'x' * 300}.mp4", ["xxx.mp4 cannot be read: File name too long."]),
    ("extract no\xa0videos", ["is a folder without videos"]),
    ("extract text.mp4", ["text.mp4"]),
    ("extract sound.mp4", ["sound.mp4 holds no video stream, only audio"]),
    ("extract empty.mp4", ["empty.mp4 is empty (0 bytes)"]),
    ("extract head.mp4", ["head.mp4"]),
    ("extract video.mp4 -o new --detector file:missing.jsonl", ["There is no file missing.jsonl"]),
    ("caption photos --engine fake --detector file:photos/a.png", ["photos/a.png cannot be read", "JSON object on each line"]),
    ("caption missing", ["missing is not a folder"]),
    ("caption missing --batch --status", ["missing is not a folder"]),
    ("caption video.mp4", ["video.mp4 is not a folder"]),
    ("caption no\xa0videos", ["holds neither a run of vip nor pictures"]),
    ("caption bad\xa0photos --engine fake", ["The only picture in bad photos cannot be read", "a.jpg is not a picture"]),
    ("report missing", ["missing is not a folder"]),
    ("report photos", ["photos holds no keyframes", "vip extract"]),
]
BACKEND = [
    ("extract video.mp4 -o new --embedder clasic", ['no embedder "clasic"', 'Did you mean "classic"?']),
    ("extract video.mp4 -o new --detector yolo", ['no detector "yolo"', "There is: file, opencv, transformers"]),
    ("extract video.mp4 -o new --query dog --embedder classic", ["--query needs an embedder", "Write --embedder clip"]),
    ("extract video.mp4 -o new --query dog", ["clip is installed, but", "not here, and HF_HUB_OFFLINE is set. Run it once"]),
    ("extract video.mp4 -o new --embedder clip", ["The weights of ViT-B-32 are not in the cache", "--embedder classic"]),
    ("extract video.mp4 -o new --embedder clip:ViT-B-33/openai", ['no architecture "ViT-B-33". Did you mean "ViT-B-32"?']),
    ("extract video.mp4 -o new --detector transformers", ["needs a model: --detector transformers:PekingU/rtdetr_r50vd"]),
    ("extract video.mp4 -o new --detector transformers:a/b", ["The model a/b is not in the local cache", "HF_HUB_OFFLINE is set"]),
    ("extract video.mp4 -o new --sampler sink", ['no sampler "sink"', 'Did you mean "sync"?']),
    ("extract video.mp4 -o new --sampler sync:5", ['"sync" takes no detail']),
    ("caption video.vip --engine opanai:gpt-5-mini", ['no engine "opanai"', 'Did you mean "openai"?']),
    ("caption video.vip --engine offline:large", ["offline"]),
    ("caption photos --engine fake --detector yolo", ['no detector "yolo"']),
    ("caption video.vip --engine offline --language de", ["offline writes English only", "Leave --language out"]),
]
ENGINE = [
    ("caption video.vip --engine openai:gpt-5-mini", ["No key is set", "Set OPENAI_API_KEY", "--engine offline"]),
    ("caption video.vip --engine fake:auth", ["does not accept its key"]),
    (f"caption video.vip --engine openai --base-url {NOTHING_THERE}", ["127.0.0.1:9", "cannot be reached", "Is the server running"]),
]
STORE = [
    ("extract video.mp4 -o video.mp4", ["video.mp4 cannot be written: File exists"]),
    ("extract video.mp4 -o video.mp4/run", ["video.mp4/run cannot be written: Not a directory"]),
    ("extract video.mp4 -o /proc/run", ["/proc/run cannot be written"]),
    (f"extract video.mp4 -o {'x' * 300}", ["cannot be written: File name too long"]),
    ("caption video.vip --engine fake --cache video.mp4", ["video.mp4 holds no answers of vip", "--cache"]),
    ("caption video.vip --engine fake --cache photos", ["photos cannot be used", "--cache"]),
]
TABLE = [
    (command, code, words) for code, rows in ((2, USAGE), (3, INPUT), (4, BACKEND), (5, ENGINE), (7, STORE)) for command, words in rows
]


def failed(done: Done, code: int, words: list[str], notes: Sequence[str] = ()) -> None:
    """One line on stderr that says it, and nothing else but the notes."""
    assert "Traceback" not in done.err
    assert (done.code, done.out) == (code, "")
    assert done.err == "".join(f"vip: {line}\n" for line in (*notes, done.sentence))
    assert done.sentence.endswith((".", "?", "`"))
    assert [word for word in words if word not in done.sentence] == [], done.sentence


@pytest.mark.parametrize(("command", "code", "words"), TABLE, ids=[f"{code} {command[:60]}" for command, code, _ in TABLE])
def test_what_goes_wrong_is_one_sentence_with_its_code_and_touches_nothing(
    command: str, code: int, words: list[str], folder: Path, here: Callable[..., Done]
) -> None:
    before = stamps(folder), sorted(folder.rglob("*"))
    failed(here(*(part.replace("\xa0", " ") for part in command.split(" "))), code, words)
    assert (stamps(folder), sorted(folder.rglob("*"))) == before


@pytest.mark.parametrize(
    ("prepare", "command", "code", "words"),
    [
        (write("vip.toml", "[extract]\nkeyframe = 8"), "extract video.mp4", 2, ["vip.toml", '"keyframe"', 'Did you mean "keyframes"?']),
        (write("vip.toml", "[extract]\nkeyframe = 8"), "caption video.vip", 2, ["vip.toml", '"keyframe"']),
        (write("vip.toml", "[extrakt]"), "run video.mp4", 2, ["vip.toml", '"extrakt"', 'Did you mean "extract"?']),
        (write("vip.toml", "keyframes: 8"), "extract video.mp4", 2, ["vip.toml is not valid TOML"]),
        (write("vip.toml", "[extract]\nkeyframes = 0"), "extract video.mp4", 2, ["vip.toml: keyframes = 0"]),
        (write("video.vip/manifest.json", "{"), "extract video.mp4 -n 2", 7, ["manifest.json: damaged", "--overwrite"]),
        (write("video.vip/manifest.json", "{"), "report video.vip", 7, ["manifest.json: damaged"]),
        (write("video.vip/manifest.json", "{"), "caption video.vip", 7, ["manifest.json: damaged"]),
        (write("run/keyframes.jsonl", '{"id": 3}'), "report run", 7, ["keyframes.jsonl, line 1: damaged"]),
        (damage("run/candidates.jsonl"), "report run", 7, ["candidates.jsonl, line 1: damaged"]),
        (write("run/descriptions.jsonl", "\n\nx\n"), "caption run", 7, ["descriptions.jsonl, line 3: damaged"]),
        (write("run/embeddings.npz", "x"), "report run", 7, ["embeddings.npz: damaged"]),
        (newer("video.vip/manifest.json"), "extract video.mp4 -n 2", 7, ["newer vip", "pip install -U"]),
        (newer("run/keyframes.jsonl"), "report run", 7, ["newer vip (schema 2, this one knows 1)"]),
        (newer("run/descriptions.jsonl"), "caption run", 7, ["newer vip", "pip install -U"]),
        (unlink("video.vip/keyframes.jsonl"), "extract video.mp4 -n 2", 7, ["keyframes.jsonl cannot be read", "--overwrite"]),
        (unlink("video.vip/keyframes.jsonl"), "report video.vip", 3, ["unfinished extraction", "same `vip extract VIDEO` again"]),
    ],
)  # fmt: skip
def test_damage_is_one_sentence_with_its_code_and_touches_nothing(
    prepare: Prepare, command: str, code: int, words: list[str], folder: Path, here: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare(folder)
    before = stamps(folder)
    monkeypatch.setenv("VIP_ENGINE", "offline")
    failed(here(*command.split(" "), "-q"), code, words)
    assert stamps(folder) == before


@pytest.mark.parametrize(("value", "words"), [("0", "VIP_KEYFRAMES = 0: "), ("many", "VIP_KEYFRAMES = 'many': ")])
def test_a_bad_variable_is_named(value: str, words: str, folder: Path) -> None:
    failed(vip(folder, "extract", "video.mp4", VIP_KEYFRAMES=value), 2, [words])


ONE_OF_EACH = [rows[0][0] for rows in (USAGE, INPUT, BACKEND, ENGINE, STORE)]


@pytest.mark.parametrize("command", ONE_OF_EACH)
def test_a_process_ends_like_the_tables_say(command: str, folder: Path) -> None:
    code, words = next((code, words) for row, code, words in TABLE if row == command)
    failed(vip(folder, *command.split(" ")), code, words)


@pytest.mark.parametrize("command", ["extract missing.mp4", "nope", "caption video.vip --engine fake:auth"])
def test_with_json_the_sentence_stands_on_stdout_too(command: str, folder: Path) -> None:
    done = vip(folder, *command.split(" "), "--json")
    assert done.rows == [{"error": done.sentence, "exit_code": done.code}]
    assert done.err == f"vip: {done.sentence}\n"


@pytest.mark.parametrize(("engine", "kind"), [("fake:refuse", "refusal"), ("fake:badjson", "schema")])
def test_replies_that_cannot_be_used_are_listed_in_failures(engine: str, kind: str, folder: Path) -> None:
    done = vip(folder, "caption", "video.vip", "--engine", engine)
    assert [note.partition(",")[0] for note in done.notes] == ["Used 6 requests"] * (kind == "schema")
    failed(done, 6, ["None of 2 keyframes could be described", "video.vip/failures.jsonl says why"], done.notes)
    rows = [json.loads(line) for line in (folder / "video.vip" / "failures.jsonl").read_text().splitlines()]
    assert sorted((row["item"], row["kind"], row["exit_code"]) for row in rows) == [(f"video:000{n}", kind, 6) for n in (1, 2)]


def test_a_file_that_is_named_badly_is_still_one_line(folder: Path) -> None:
    failed(vip(folder, "extract", "two\nlines.mp4"), 3, ["two lines.mp4 does not exist"])


def test_a_bug_shows_its_traceback_and_exits_1(folder: Path) -> None:
    code = "import vip.cli, vip.pipeline as pipeline; pipeline.extract = lambda *_, **__: {}['a bug']; vip.cli.main()"
    done = end(start_command(folder, sys.executable, "-c", code, "extract", "video.mp4"))
    assert done.code == 1
    assert done.err.splitlines()[-1] == "KeyError: 'a bug'"


# ---------------------------------------------------------------- a full disk

LIMITED = """import resource, runpy, sys
size = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
runpy.run_module("vip", run_name="__main__", alter_sys=True)
"""


@pytest.mark.parametrize(("size", "name"), [(500, "manifest.json"), (20_000, "embeddings.npz"), (300_000, "report.html")])
def test_a_full_disk_is_one_sentence_and_with_room_the_same_command_goes_on(
    size: int, name: str, undisturbed: Path, tmp_path: Path
) -> None:
    command = ("run", SAMPLE, "-n", "4", "--engine", "offline")
    full_disk(tmp_path, size, name, command)
    assert vip(tmp_path, *command).code == 0
    assert result(tmp_path / "sample.vip") == result(undisturbed)


def test_a_disk_that_is_full_of_pictures_keeps_what_was_chosen(tmp_path: Path) -> None:
    command = ("extract", SAMPLE, "-n", "2", "--format", "png")
    full_disk(tmp_path, 200_000, "keyframes/0001", command)
    chosen = stamps(tmp_path / "sample.vip")["candidates.jsonl"]
    assert vip(tmp_path, *command).code == 0
    assert stamps(tmp_path / "sample.vip")["candidates.jsonl"] == chosen
    assert len(list((tmp_path / "sample.vip" / "keyframes").iterdir())) == 2


def full_disk(folder: Path, size: int, name: str, command: tuple[str | Path, ...]) -> None:
    """The command with no room for a file of more than `size` bytes, which `name` is."""
    done = end(start_command(folder, sys.executable, "-c", LIMITED, str(size), *map(str, command)))
    assert "Traceback" not in done.err
    assert done.code == 7
    assert "cannot be written: File too large. Choose another folder with -o, or make room." in done.sentence
    assert name in done.sentence
    assert not list(folder.rglob("*.vip-part"))


def test_a_full_disk_behind_stdout_is_said_and_the_work_is_done(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        process = start_command(folder, sys.executable, "-m", "vip", "extract", "other.mp4", out=full)
        done = end(process)
    assert done.code == 7
    assert "The result cannot be printed: No space left on device" in done.sentence
    assert (folder / "other.vip" / "keyframes.jsonl").exists()


def test_a_full_disk_behind_the_version_is_said_too(folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = end(start_command(folder, sys.executable, "-m", "vip", "--version", out=full))
    assert done.code == 7
    assert "The result cannot be printed: No space left on device" in done.sentence


@pytest.mark.parametrize("arguments", [["--help"], ["extract", "--help"]])
def test_a_full_disk_behind_the_help_is_said_too(folder: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = end(start_command(folder, sys.executable, "-m", "vip", *arguments, out=full))
    assert done.code == 7
    assert done.sentence == "There is no room left on the disk. Make room and run the same command again."


def test_the_environment_of_these_tests_steers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "VIP_KEYFRAMES", "VIP_ENGINE"):
        monkeypatch.setenv(name, "1")
    assert not [name for name in environment() if name.startswith(("OPENAI", "VIP"))]
    assert (ROOT / "vip").is_dir()


def test_a_message_fills_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_error("x" * 1_000_000)
    assert len(capsys.readouterr().err) < 11_000


def test_what_may_not_be_used_is_one_sentence_wherever_that_comes_out(here: Callable[..., Done], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "exists", refuse)
    done = here("report", "run")
    assert (done.code, done.out) == (3, "")
    assert re.fullmatch(r"vip: .*run.keyframes\.jsonl may not be used by you \(Permission denied\)\. Change .*\n", done.err)
