"""Whatever a command is given reaches what does the work: every option, under its own name, and nothing that was not typed.

The work is replaced by a note of what it was asked for; `vip` runs in this process.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.clips import clip, picture
from tests.report.runs import make_run
from tests.review.questions import write_options
from tests.review.test_blanks import write_blanks
from vip.cli.app import run
from vip.review.blanks import log_path
from vip.review.draw import draw_ids
from vip.review.log import ReviewLog
from vip.tasks.files import write_samples
from vip.tasks.records import FreeText, Sample


class Reached(BaseException):
    """The work was asked for."""


Asked = dict[str, Any]
Ask = Callable[..., Asked]


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Return what the function at `module:name` is asked for by a command, by name; with what it would take by default."""
    monkeypatch.chdir(tmp_path)
    for name in ("VIP_ENGINE", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def ask_for(place: str, command: str) -> Asked:
        module, _, name = place.partition(":")
        real, asked = getattr(import_module(module), name), {}

        def note(*arguments: Any, **more: Any) -> None:
            bound = inspect.signature(real).bind(*arguments, **more)
            bound.apply_defaults()
            asked.update(bound.arguments)
            raise Reached

        with monkeypatch.context() as patch:
            patch.setattr(f"{module}.{name}", note)
            with pytest.raises(Reached):
                run(command.split())
        return asked

    return ask_for


def check(found: object, **expected: object) -> None:
    """The fields of a thing, or the entries of a dict."""
    seen = {name: found[name] if isinstance(found, dict) else getattr(found, name) for name in expected}
    assert seen == expected


# ---------------------------------------------------------------- videos


def test_extract(ask: Ask, tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1])
    extract = "vip.pipeline:extract"
    plain = ask(extract, "extract a.mp4")
    check(plain, out=Path("a.vip"), overwrite=False, isolated=True)
    given = ask(extract, "extract a.mp4 -o there -n 7 --start 0 --end 90 --min-sharpness 0 --overwrite")
    check(given, out=Path("there"), overwrite=True)
    check(given["settings"], keyframes=7, start=0.0, end=90.0, min_sharpness=0.0)
    reselect = "vip.pipeline:reselect"
    assert ask(reselect, "extract --from a.vip")["changes"] == {}
    again = ask(reselect, "extract --from a.vip --video a.mp4 -o there --overwrite --start 0 --min-objects 0 -n 6")
    check(again, run=Path("a.vip"), out=Path("there"), video="a.mp4", overwrite=True)
    assert again["changes"] == {"start": "0", "min_objects": "0", "keyframes": "6"} or again["changes"] == {
        "start": 0.0, "min_objects": 0, "keyframes": 6
    }  # fmt: skip


def test_run(ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.pipeline.check_sources", lambda words, extraction: None)  # no model of speech is here
    clip(tmp_path / "a.mp4", [1])
    clip(tmp_path / "clips" / "b.mp4", [1])
    whole = "vip.pipeline:run"
    given = ask(
        whole,
        "run a.mp4 -o there --overwrite -n 5 --engine fake --context 3 --words speech,text --speech-model base --speech-language de",
    )
    check(given, out=Path("there"), overwrite=True, isolated=True, speech_model="base", speech_language="de")
    check(given["extraction"], keyframes=5)
    check(given["captioning"], engine="fake", context=3)
    assert given["words"] == ("speech", "text")
    assert given["budget"] is not None
    check(ask(whole, "run clips -o there"), out=Path("there/b.vip"), overwrite=False)
    first = "vip.pipeline:extract_with_words"
    dry = ask(first, "run a.mp4 --dry-run --engine openai:gpt-5-mini -o there --overwrite -n 5 --words text")
    check(dry, out=Path("there"), overwrite=True, isolated=True)
    check(dry["settings"], keyframes=5)
    assert dry["words"].words == ask(first, "run a.mp4 --dry-run --words text")["words"].words


def test_compare(ask: Ask) -> None:
    work = "vip.compare:compare"
    given = ask(work, "compare a.mp4 --with shots+k-center --with uniform -o there --overwrite -n 9")
    check(given, video="a.mp4", out=Path("there"), overwrite=True, isolated=True)
    assert {one.name for one in given["wanted"] if one.asked} >= {"shots+k-center"}
    check(given["settings"], keyframes=9)
    check(ask(work, "compare a.mp4"), out=None, overwrite=False)


def test_sheet_report_and_export(ask: Ask, tmp_path: Path) -> None:
    make_run(tmp_path / "a.vip")
    (tmp_path / "prices.toml").write_text("")
    sheet = "vip.export.stamped_sheet:write_sheets"
    check(ask(sheet, "sheet a.vip --tokens 77 --model claude-sonnet-5"), model="claude-sonnet-5", tokens=77)
    check(ask("vip.llm.prices:load_prices", "sheet a.vip --prices prices.toml"), path=Path("prices.toml"))
    export = "vip.export.write:export"
    given = ask(export, "export a.vip b.vip --to csv -o there --overwrite")
    check(given, sources=["a.vip", "b.vip"], out="there", overwrite=True)
    assert "csv" in given.values()
    assert given["revise"] is not None  # what people changed in a review
    check(ask(export, "export a.vip --to csv"), out=None, overwrite=False)


def test_caption(ask: Ask, tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a.vip")
    make_run(tmp_path / "runs" / "b.vip")
    work, cost = "vip.pipeline:caption", "vip.captioning.caption_job:expected_cost"
    given = ask(work, "caption runs --overwrite --batch --engine fake --context 2")
    check(given, overwrite=True, in_batches=True)
    assert [Path(one).name for one in next(iter(given.values()))] == ["a.vip", "b.vip"]
    check(given["settings"], engine="fake", context=2)
    check(ask(work, "caption runs/a.vip"), overwrite=False, in_batches=False)
    check(ask(cost, "caption runs --dry-run --overwrite --batch"), overwrite=True, in_batches=True)
    check(ask(cost, "caption runs --dry-run"), overwrite=False, in_batches=False)
    status = ask("vip.captioning.caption_job:batches_of", "caption runs --batch --status --engine fake")
    assert [Path(one).name for one in next(iter(status.values()))] == ["a.vip", "b.vip"]


def test_batch(ask: Ask, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    work = "vip.corpus.batch:batch"
    given = ask(work, "batch ids.txt more.txt -o there -n 5 --caption --engine fake --retry-failed=caption --sample 10")
    check(given, retry="caption")
    assert (["ids.txt", "more.txt"] in given.values(), "there" in given.values()) == (True, True)
    config = next(one for one in given.values() if hasattr(one, "_fields") or type(one).__name__ == "BatchConfig")
    parts = [getattr(config, name) for name in inspect.signature(type(config)).parameters]
    check(parts[0], caption=True, sample=10)
    check(parts[1], keyframes=5)
    check(parts[2], engine="fake")
    (tmp_path / "vip.toml").write_text("[extract]\nkeyframes = 3\n")

    def keyframes(command: str) -> object:
        asked = ask(work, command)
        config = next(one for one in asked.values() if type(one).__name__ == "BatchConfig")
        return getattr(config, list(inspect.signature(type(config)).parameters)[1]).keyframes

    assert keyframes("batch ids.txt -o there") == 3
    assert keyframes("batch -o there") == 12  # a batch that goes on is as it was begun
    check(ask(work, "batch ids.txt -o there"), retry=None)
    check(ask(work, "batch -o there --retry-failed"), retry="all")


def test_features(ask: Ask, tmp_path: Path) -> None:
    clip(tmp_path / "clips" / "a.mp4", [1])
    clip(tmp_path / "clips" / "inside" / "b.mp4", [2])
    work, timed = "vip.tasks.video_features:extract_features", "vip.tasks.timed_features:extract_timed_features"
    common = "features clips --model torchvision:resnet18"
    given = ask(
        work,
        f"{common} --motion torchvision:r3d_18 --clips 3 --frames 5 --maps --device cpu --precision fp16 -r -o there.h5 --overwrite",
    )
    check(given, out=Path("there.h5"), overwrite=True)
    expected = {"model": "torchvision:resnet18", "motion": "torchvision:r3d_18", "clips": 3, "frames": 5, "maps": True}
    check(given["request"], **expected, device="cpu", precision="fp16")
    assert len(given["videos"]) == 2
    plain = ask(work, common)
    check(plain, out=Path("features.h5"), overwrite=False)
    check(plain["request"], motion=None, clips=16, frames=16, maps=False, device="auto", precision="fp32")
    assert len(plain["videos"]) == 1
    every = ask(timed, f"{common} --every 1.5 --overwrite")
    check(every, out=Path("features"), overwrite=True)
    assert 1.5 in every.values()


# ---------------------------------------------------------------- questions


def test_search(ask: Ask, tmp_path: Path) -> None:
    work = "vip.search.find:find_moments"
    given = ask(
        work,
        "search milk runs corpus --moments 3 --field words --field text --video v* --domain cooking --start 1:00 --end 90"
        " --people --embedder clip --index there",
    )
    check(given, sources=["runs", "corpus"], folder="there")
    check(given["query"], text="milk", like=None, fields=("words", "text"), moments=3, embedder="clip")
    check(given["query"].among, video="v*", domain="cooking", start_s=60.0, end_s=90.0, has_people=True)
    plain = ask(work, "search milk runs")
    check(plain, sources=["runs"], folder=None)
    check(plain["query"], fields=(), moments=10, embedder="auto")
    check(plain["query"].among, video=None, domain=None, start_s=None, end_s=None, has_people=False)
    picture(tmp_path / "p.png")
    like = ask(work, "search --like p.png runs corpus")
    check(like, sources=["runs", "corpus"])
    check(like["query"], text=None, like=Path("p.png"))


def test_ask(ask: Ask, tmp_path: Path) -> None:
    clip(tmp_path / "a.mp4", [1])
    make_run(tmp_path / "runs" / "b.vip")
    one, many = "vip.search.ask_frames:choose_frames", "vip.search.ask_corpus:choose_frames_of_corpus"
    given = ask(one, "ask a.mp4 why? --frames 5 --no-words -o there --overwrite --embedder classic")
    check(given, question="why?", frames=5, words=False, out=Path("there"), overwrite=True, isolated=True)
    check(given["settings"], embedder="classic")
    check(ask(one, "ask a.mp4 why?"), words=True, out=None, overwrite=False)
    of_many = ask(many, "ask runs runs/b.vip why? --frames 5 --embedder clip")
    check(of_many, sources=["runs", "runs/b.vip"], question="why?", frames=5, embedder="clip")
    check(ask(many, "ask runs why?"), embedder="auto")


def test_mcp(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "more").mkdir()
    stdio, http = "vip.mcp.serve:serve_stdio", "vip.mcp.serve:serve_http"
    given = ask(stdio, "mcp --root videos --root more --work there --engine fake --max-usd 2")
    assert Path("there") in given.values()
    check(given["settings"], max_usd=2.0)
    assert [path.name for path in given["settings"].roots] == ["videos", "more"]
    check(given["settings"].captions, engine="fake")
    plain = ask(stdio, "mcp --root videos")
    check(plain["settings"], max_usd=0.5)
    check(plain["settings"].captions, engine="offline")
    assert None in plain.values()
    free = ask(stdio, "mcp --root videos --max-usd 0")  # nothing may be spent
    check(free["settings"], max_usd=0.0)
    named = ask(stdio, "mcp --root videos --base-url http://127.0.0.1:9/v1")
    check(named["settings"].captions, engine="auto", base_url="http://127.0.0.1:9/v1")
    bound = ask(http, "mcp --root videos --http --work there")
    assert Path("there") in bound.values()


# ---------------------------------------------------------------- reviews


def test_review(ask: Ask, tmp_path: Path) -> None:
    make_run(tmp_path / "a.vip")
    state, server, draw = "vip.review.state:ReviewState", "vip.review.server:ReviewServer", "vip.review.draw:draw_ids"
    check(ask(state, "review a.vip --no-open --judgements 3 --sample 2 --seed 5"), judgements=3)
    assert len(ask(state, "review a.vip --sample 2")["drawn"]) == 2
    check(ask(state, "review a.vip"), judgements=None, drawn=None)
    drawn = ask(draw, "review a.vip --sample 2 --seed 5")
    check(drawn, seed=5)
    assert 2 in drawn.values()
    check(ask(server, "review a.vip --no-open --stage 2 --show-others"), stage="2", is_blind=False)
    check(ask(server, "review a.vip --no-open"), stage=None, is_blind=True)
    export = "vip.review.export:export_review"
    given = ask(export, "review a.vip --export there.csv --overwrite")
    check(given, overwrite=True)
    assert Path("there.csv") in given.values()
    check(ask(export, "review a.vip --export there.csv"), overwrite=False)


def test_review_of_files(ask: Ask, tmp_path: Path) -> None:
    """Questions, samples that are answered in words, and blanks."""
    write_options(tmp_path / "q.csv")
    why = FreeText(question="why does the dog run")
    asked = [Sample(id=f"q{number}", task="nextqa-oe", task_version=1, video=f"v{number}", ask=why) for number in range(3)]
    write_samples(tmp_path / "w.jsonl", asked)
    write_blanks(tmp_path / "b.json")
    clip(tmp_path / "clips" / "v1.mp4", range(2))
    ways = [("q.csv", "question_state:QuestionState"), ("w.jsonl", "written:WrittenState")]
    for name, state in ways:
        given = ask(f"vip.review.{state}", f"review {name} --no-open --judgements 3 --sample 2 --seed 5 --videos clips")
        check(given, judgements=3)
        whole = ask(f"vip.review.{state}", f"review {name} --no-open")
        check(whole, judgements=None)
        drawn = draw_ids([item.id for item in whole["items"]], 2, seed=5)
        assert [item.id for item in given["items"]] == [item.id for item in whole["items"] if item.id in drawn]
        assert len(drawn) == 2
        assert len(whole["items"]) == 3
        assert all((item.clip is not None) == (item.id in ("v1_1", "q1")) for item in given["items"])
    check(ask("vip.review.question_state:QuestionState", "review q.csv"), way="check")
    check(ask("vip.review.question_state:QuestionState", "review q.csv --answer"), way="answer")
    check(ask("vip.review.blanks:read_items", "review b.json --videos clips"), videos=Path("clips"))
    exports = [("q.csv", "question_export:export_questions"), ("w.jsonl", "written:export_written"), ("b.json", "blanks:export_answers")]
    for name, export in exports:
        ReviewLog(log_path(tmp_path / name)).close()
        check(ask(f"vip.review.{export}", f"review {name} --export there.csv --overwrite"), out=Path("there.csv"), overwrite=True)
        check(ask(f"vip.review.{export}", f"review {name} --export there.csv"), overwrite=False)


def test_the_page_of_this_machine_is_asked_by_its_names_and_of_another_address_by_that_alone(
    ask: Ask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(tmp_path / "a.vip")
    server = "vip.review.server:ReviewServer"

    def names(command: str) -> set[str]:
        return {host.rpartition(":")[0] for host in ask(server, command)["hosts"]}

    assert names("review a.vip --no-open") == names("review a.vip --no-open --host localhost") == {"127.0.0.1", "localhost"}
    assert names("review a.vip --no-open --host 127.0.0.2") == {"127.0.0.2"}


def test_train(ask: Ask) -> None:
    nextqa, value, fiber = (
        "vip.tasks.nextqa.trained_models:train_on_annotations",
        "vip.tasks.value.trained_models:train_value",
        "vip.tasks.fiber.trained_models:train_on_records",
    )
    shared = "--annotations data --features f.h5 --features g.h5 --config c.toml --set a.b=1 --set c.d=2 --seed 5 --device cpu --devices 2"
    shared += " --workers 3 --resume --overwrite -o there"
    common = {"annotations": Path("data"), "out": Path("there"), "config": Path("c.toml"), "seed": 5, "device": "cpu"}
    common |= {"devices": 2, "workers": 3, "resume": True, "overwrite": True}

    def request(place: str, command: str) -> object:
        found = ask(place, command)["request"]
        check(found, **common)
        assert list(found.features) == [Path("f.h5"), Path("g.h5")]
        assert list(found.assignments) == ["a.b=1", "c.d=2"]
        return found

    one = request(
        nextqa,
        f"train nextqa-oe --model hga --decoder att-qns --glove g.txt --bert b.h5 --text-features t.h5 --appearance 7 --epochs 4 {shared}",
    )
    check(one, task="nextqa-oe", model="hga", decoder="att-qns", appearance=7, epochs=4, glove=Path("g.txt"))
    assert (one.bert, list(one.texts)) in ((Path("b.h5"), [Path("t.h5")]), ([Path("b.h5")], [Path("t.h5")]))
    two = request(value, f"train value --regime at --only value-tvqa --subtitles s --tokenizer t --weights hero:w {shared}")
    check(two, regime="at", subtitles=Path("s"), tokenizer=Path("t"), weights="hero:w")
    assert list(two.tasks) == ["value-tvqa"]
    three = request(fiber, f"train fiber --model t5 --weights t5:w --epochs 4 {shared}")
    check(three, model="t5", weights="t5:w", epochs=4)
    of_pretraining = shared.replace("--annotations data ", "")
    before = ask("vip.tasks.value.pretrain:pretrain", f"pretrain --subtitles s --tokenizer t --weights hero:w {of_pretraining}")["request"]
    check(before, **{name: value for name, value in common.items() if name != "annotations"})
    check(before, tokenizer=Path("t"), weights="hero:w")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("train value --regime at --annotations d -o o --glove g", "--glove is for trainings of NExT-QA"),
        ("train value --regime at --annotations d -o o --text-features t", "--text-features is for trainings of NExT-QA"),
        ("train value --regime at --annotations d -o o --bert b", "--bert is for trainings of NExT-QA"),
        ("train value --regime at --annotations d -o o --appearance 7", "--appearance is for trainings of NExT-QA"),
        ("train value --regime at --annotations d -o o --decoder x", "--decoder is for trainings of NExT-QA"),
        ("train value --regime at --annotations d -o o --model x", "--model is for trainings of"),
        ("train value --regime at --annotations d -o o --epochs 3", "--epochs is for trainings of"),
        ("train nextqa-mc --annotations d -o o --regime at", "--regime is for trainings of VALUE"),
        ("train nextqa-mc --annotations d -o o --only x", "--only is for trainings of VALUE"),
        ("train nextqa-mc --annotations d -o o --subtitles x", "--subtitles is for trainings of VALUE"),
        ("train nextqa-mc --annotations d -o o --tokenizer x", "--tokenizer is for trainings of VALUE"),
        ("train nextqa-mc --annotations d -o o --weights x", "--weights is for trainings of"),
        ("train fiber --annotations d -o o --regime at", "--regime is for trainings of VALUE"),
        ("train fiber --annotations d -o o --text-features t", "--text-features is for trainings of NExT-QA"),
    ],
)
def test_an_option_of_another_training_is_refused(command: str, said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.split()) == 2
    assert said in " ".join(capsys.readouterr().err.split())


# ---------------------------------------------------------------- tasks


def test_score(ask: Ask, tmp_path: Path) -> None:
    work = "vip.tasks.score_files:score_files"
    given = ask(
        work,
        "score p.jsonl q.jsonl --samples s.jsonl --task nextqa-mc --annotations a.csv --annotations b.csv --references r.csv"
        " --video-index v.json --split val --suite nextqa --metric accuracy --metric wups --missing wrong --setting clips=16,features=Res"
        " --setting clips=8",
    )
    assert [Path("p.jsonl"), Path("q.jsonl")] in given.values()
    options = next(one for one in given.values() if type(one).__name__ == "ScoreOptions")
    check(options, samples=Path("s.jsonl"), task="nextqa-mc", annotations=(Path("a.csv"), Path("b.csv")), references=Path("r.csv"))
    check(options, video_index=Path("v.json"), split="val", suite="nextqa", metrics=("accuracy", "wups"), missing="wrong", judge=None)
    assert options.settings == ({"clips": "16", "features": "Res"}, {"clips": "8"})
    plain = next(one for one in ask(work, "score p.jsonl").values() if type(one).__name__ == "ScoreOptions")
    check(plain, samples=None, task=None, annotations=(), split=None, suite=None, metrics=(), missing="refuse", settings=())
    labels = ask("vip.tasks.judge:read_labels", "score p.jsonl --judge fake --judge-labels l.csv")
    assert Path("l.csv") in labels.values()


def test_samples(ask: Ask, tmp_path: Path) -> None:
    work = "vip.tasks.frames:make_samples"
    given = ask(work, "samples a.vip b.vip --task infilling-1 --most 7 --seed 5 -o there.jsonl --pictures")
    source = given["source"]
    check(source, paths=("a.vip", "b.vip"))
    check(source.settings, most=7, seed=5, pictures=True)
    (tmp_path / "there.jsonl").write_text("mine")
    assert run(["samples", "a.vip", "--task", "infilling-1", "-o", "there.jsonl"]) == 2
    check(ask(work, "samples a.vip --task infilling-1 -o there.jsonl --overwrite")["source"], paths=("a.vip",))
    own = "vip.tasks.nextqa.own_questions:open_embed"
    (tmp_path / "q.csv").write_text("video,question\n")
    check(ask(own, "samples --task nextqa-mc --from q.csv --vectors v.npz -o mine.csv"), vectors=Path("v.npz"))
    check(ask(own, "samples --task nextqa-mc --from q.csv --encoder enc -o mine.csv"), encoder="enc", vectors=None)


def test_predict(ask: Ask, tmp_path: Path) -> None:
    engine, baseline = "vip.tasks.predict:predict", "vip.tasks.predict:predict_with_baseline"
    given = ask(engine, "predict s.jsonl -o there.jsonl --engine fake --batch --overwrite")
    check(given, samples=Path("s.jsonl"), out=Path("there.jsonl"), in_batches=True, overwrite=True)
    check(given["asking"], engine="fake")
    check(ask(engine, "predict s.jsonl"), out=Path("predictions.jsonl"), in_batches=False, overwrite=False)
    cost = "vip.tasks.predict:expected_cost"
    check(ask(cost, "predict s.jsonl --dry-run --batch"), samples=Path("s.jsonl"), in_batches=True)
    check(ask(cost, "predict s.jsonl --dry-run"), in_batches=False)
    check(
        ask(baseline, "predict s.jsonl --baseline popular --train t.csv --seed 5 -o there.jsonl --overwrite"),
        samples=Path("s.jsonl"), out=Path("there.jsonl"), train=Path("t.csv"), seed=5, overwrite=True,
    )  # fmt: skip
    check(ask(baseline, "predict s.jsonl --baseline popular"), train=None, overwrite=False)
    (tmp_path / "model").mkdir()
    model = ask(
        "vip.tasks.nextqa.trained_models:predict_with_model",
        "predict s.jsonl --model model --features f.h5 --features g.h5 --text-features t.h5 --overwrite",
    )
    check(model, texts=Path("t.h5"), overwrite=True)
    assert list(model["features"]) == [Path("f.h5"), Path("g.h5")]
    filler = ask("vip.tasks.fiber.trained_models:predict_fillers", "predict s.jsonl --model t5:x --parser none --beams 4 --overwrite")
    check(filler, parser="none", beams=4, overwrite=True)
    hero = ask(
        "vip.tasks.value.trained_models:predict_with_hero",
        "predict --task value-tvqa --annotations a.jsonl --model hero:x --features f --tokenizer t --video-index v.json --overwrite",
    )
    check(hero, overwrite=True)
    check(hero["request"], task="value-tvqa", annotations=("a.jsonl",), tokenizer=Path("t"), video_index=Path("v.json"))
    similar = ask(
        "vip.tasks.value.zero_shot_predict:predict_zero_shot",
        "predict --task value-tvr --annotations a.jsonl --zero-shot clip --video-features f --video-index v.json --window 4 --threshold x",
    )
    options = next(one for one in similar.values() if type(one).__name__ == "ZeroShotOptions")
    check(options, embedder="clip", annotations=("a.jsonl",), features=Path("f"), video_index=Path("v.json"), window=4, threshold="x")
    human = ask("vip.tasks.value.human:predict_human", "predict --baseline human --task value-vatex-en-c --annotations a.json --overwrite")
    check(human, overwrite=True)


@pytest.mark.parametrize(
    "more", ["s.jsonl --task t --annotations a", "--baseline popular --task t --annotations a", "--model m --task t --annotations a"]
)
def test_one_way_of_answering_excludes_the_others(more: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(f"predict {more} --zero-shot clip".split()) == 2
    assert "--zero-shot reads annotations and answers by itself" in " ".join(capsys.readouterr().err.split())


def test_a_model_of_value_takes_no_samples(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["predict", "s.jsonl", "--task", "value-tvr", "--model", "hero:m", "--annotations", "a.jsonl"]) == 2
    assert "hero:m reads annotations by itself. Leave s.jsonl out" in " ".join(capsys.readouterr().err.split())


def test_evaluate(ask: Ask) -> None:
    work = "vip.tasks.evaluate:evaluate"
    given = ask(
        work,
        "evaluate a.vip b.vip --task infilling-1,prediction-1 -o there --frames 4,8 --train t.csv --metric rouge-l --overwrite"
        " --engine fake",
    )
    check(given, train=Path("t.csv"), frames=[4, 8], metrics=["rouge-l"], overwrite=True)
    assert ["infilling-1", "prediction-1"] in given.values()
    assert Path("there") in given.values()
    check(given["asking"], engine="fake")
    plain = ask(work, "evaluate a.vip --task infilling-1")
    check(plain, train=None, frames=(), metrics=(), overwrite=False)


@pytest.mark.parametrize("frames", ["0", "4,0", "1001", "-1", "4,,8", "x", ""])
def test_a_number_of_frames_that_is_none_is_refused(frames: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["evaluate", "a.vip", "--task", "infilling-1", "--frames", frames]) == 2
    assert "write numbers from 1 to 1000" in " ".join(capsys.readouterr().err.split())


def test_submit_and_fuse(ask: Ask) -> None:
    submit, fuse = "vip.tasks.value.submit:make_submission", "vip.tasks.value.fuse:fuse"
    given = ask(submit, "submit a b --annotations data --split test -o there.zip --overwrite")
    check(given, annotations=Path("data"), split="test", overwrite=True)
    assert ([Path("a"), Path("b")] in given.values(), Path("there.zip") in given.values()) == (True, True)
    check(ask(submit, "submit a"), annotations=None, split=None, overwrite=False)
    two = ask(fuse, "fuse a.jsonl b.jsonl -o there.jsonl --overwrite")
    assert list(two.values())[:3] == [Path("a.jsonl"), Path("b.jsonl"), Path("there.jsonl")]
    check(two, overwrite=True)


def test_fiber(ask: Ask, tmp_path: Path) -> None:
    from tests.tasks.fiber.made import record
    from tests.tasks.fiber.worked import assignment, write_results
    from vip.tasks.fiber.records import write_records

    records = [record("a dog", "x", video_end_time=9)]
    write_records(tmp_path / "val.json", records)
    write_results(tmp_path / "r.csv", records, [assignment("W", {1: ["dog"]})])
    hits = ask("vip.tasks.fiber.hits:write_hits", "fiber hits val.json -o there --per-hit 3 --video-url https://a/{id}")
    check(hits, per_hit=3, video_url="https://a/{id}")
    check(ask("vip.tasks.fiber.hits:write_hits", "fiber hits val.json -o others"), per_hit=5)
    command = "fiber collect r.csv -o there.jsonl --reviewed sheet.csv --paid one --paid two --seed 5 --parser none"
    assert list(ask("vip.tasks.fiber.collect:read_marks", command).values()) == [Path("sheet.csv")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("vip.tasks.fiber.collect.read_marks", lambda path: {"W": 1})
        assert list(ask("vip.tasks.fiber.collect:read_paid", command).values()) == [[Path("one"), Path("two")]]
        patch.setattr("vip.tasks.fiber.collect.read_paid", lambda paths: ({"A"}, {"W"}))
        collected = ask("vip.tasks.fiber.collected_files:write_collected", command)
    check(collected, out=Path("there.jsonl"), marks={"W": 1}, paid=({"A"}, {"W"}), seed=5, parser=None)


def test_trust_is_taken_back_by_revoke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vip import trust, user_state
    from vip.llm.batch_files import BatchJob, BatchJobList
    from vip.store import load_run
    from vip.tasks.files import distrust, is_trusted, write_samples

    monkeypatch.chdir(tmp_path)
    folder = make_run(tmp_path / "a.vip").folder
    origin = load_run(folder).manifest.origin  # type: ignore[union-attr]
    (tmp_path / "vip.toml").write_text('[caption]\nbase_url = "http://127.0.0.1:9/v1"\n')
    content = (tmp_path / "vip.toml").read_bytes()
    write_samples(tmp_path / "s.jsonl", [])
    distrust(tmp_path / "s.jsonl")
    places = (tmp_path / "a.vip" / "batches", tmp_path / "a.vip" / "batches" / "structure" / "batches")  # of either engine
    for number, place in enumerate(places):
        place.mkdir(parents=True)
        job = BatchJob(part=1, job=f"batch_{number}", status="validating", rows=1, size_bytes=9, created_utc="2026-11-22")
        (place / "jobs.json").write_text(BatchJobList(jobs=(job,)).model_dump_json())

    def known() -> list[bool]:
        return [
            user_state.knows("runs", origin),
            *(user_state.knows("jobs", f"{tmp_path / 'a.vip'}\nbatch_{number}") for number in range(2)),
            trust.is_trusted(Path("vip.toml"), content),
            is_trusted(tmp_path / "s.jsonl"),
        ]

    for more, trusted in (((), True), (("--revoke",), False)):
        for what in ("a.vip", "vip.toml", "s.jsonl"):
            assert run(["trust", what, *more]) == 0
        assert known() == [trusted] * 5
