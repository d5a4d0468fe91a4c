"""What commands show of what was done, and with which code they end, in this process and without any engine."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from tests.captioning.keyframes import run_folder
from tests.clips import clip, picture
from tests.report.runs import make_run
from tests.review.corpora import action, make_described, open_state
from tests.review.questions import write_how2qa, write_options
from tests.review.test_written import opened as open_written
from tests.review.test_written import write, write_infilling
from vip import store
from vip.cli import ask, caption, doctor, extract, review_rewrite, score, tasks
from vip.cli.app import run
from vip.cli.console import Console
from vip.cli.inputs import find_videos
from vip.errors import InputError, ReplyError, SomeFailedError
from vip.models.fake import FakeEngine
from vip.protocols import Reply, Request
from vip.records import Failure
from vip.report.index import write_index
from vip.review.rewrite import FailedRewrite, Rewriting
from vip.search.ask_records import AskedFrame, VideoAnswer
from vip.tasks.predict import PredictionSummary
from vip.tasks.table import Table, TableCell
from vip.video.source import source_of

Vip = Callable[..., tuple[int, str, str]]


@pytest.fixture
def vip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Vip:
    """Run a command here and return its code, and what it printed."""
    monkeypatch.chdir(tmp_path)
    for name in ("VIP_ENGINE", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)

    def run_here(*arguments: object) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run([str(one) for one in arguments])
        found = capsys.readouterr()
        return code, found.out, found.err

    return run_here


# ---------------------------------------------------------------- videos and runs


def test_folders_are_looked_into_but_links_to_folders_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("clips/a.mp4", "clips/deep/b.mp4", "elsewhere/c.mp4", "clips/.hidden/d.mp4", "clips/run.vip/e.mp4"):
        clip(tmp_path / name, [1])
    (tmp_path / "clips/run.vip/manifest.json").write_text("{}")
    (tmp_path / "clips/link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    assert [str(one) for one in find_videos(["clips"], recursive=True).videos] == ["clips/a.mp4", "clips/deep/b.mp4"]
    assert [str(one) for one in find_videos(["clips"]).videos] == ["clips/a.mp4"]
    assert [str(one) for one in find_videos(["clips/link"]).videos] == ["clips/link/c.mp4"]  # it was named


def test_one_picture_that_is_named_is_no_row_of_pictures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    picture(tmp_path / "a.png")
    picture(tmp_path / "b.png", 1)
    assert len(find_videos(["a.png", "b.png"]).videos) == 1
    assert find_videos(["a.png"]).videos == [source_of("a.png")]


def process(given: Sequence[str], out: Path | None, *, bad: Sequence[str] = (), recursive: bool = False) -> list[str]:
    """Work on videos, of which these fail; return the run folders of the others."""
    done = []

    def work(video: object, folder: Path) -> None:
        if any(name in str(video) for name in bad):
            raise InputError(f"{video} is bad.")
        done.append(str(folder))

    extract.process_each(given, out, work, Console(quiet=True), recursive=recursive, prepare=lambda: None)
    return done


def test_where_the_run_folders_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clip(tmp_path / "one" / "a.mp4", [1])
    clip(tmp_path / "two" / "b.mp4", [1])
    clip(tmp_path / "two" / "c.mp4", [1])
    out = Path("out")
    assert process(["one/a.mp4"], out) == ["out"]
    assert process(["one/a.mp4"], None) == ["a.vip"]
    assert process(["one"], out) == ["out/a.vip"]  # a folder with one video is a folder of videos
    assert process(["one/a.mp4"], out, recursive=True) == ["out/a.vip"]
    assert process(["two"], out) == ["out/b.vip", "out/c.vip"]


def test_failures_are_written_with_their_kind_and_gone_once_nothing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    clip(tmp_path / "a.mp4", [1])
    clip(tmp_path / "b.mp4", [1])
    given, out = ["a.mp4", "b.mp4", "gone.mp4"], Path("out")
    with pytest.raises(SomeFailedError, match=r"2 of 3 videos failed; out/failures\.jsonl says why"):
        process(given, out, bad=["b", "gone"])
    rows = list(store.read_rows(out / store.FAILURES, Failure))
    assert [(row.item, row.kind) for row in rows] == [("b.mp4", InputError("").failure_kind), ("gone.mp4", "missing")]
    with pytest.raises(SomeFailedError, match="1 of 3"):
        process(given, out, bad=["gone"])
    assert [row.item for row in store.read_rows(out / store.FAILURES, Failure)] == ["gone.mp4"]
    process(["a.mp4", "b.mp4"], out)
    assert not (out / store.FAILURES).exists()
    with pytest.raises(InputError, match=r"a\.mp4 is bad"):  # the only one
        process(["a.mp4"], out, bad=["a"])


def test_descriptions_are_shown_from_the_first_to_the_hundredth(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for count in (1, 100, 101, 103):
        made = make_run(tmp_path / str(count), rules=("kept",) * count)
        capsys.readouterr()
        caption.show(made, Console())
        first, *lines = capsys.readouterr().out.splitlines()
        assert first.startswith(f"{count} keyframe{'s' if count > 1 else ''} described by openai:gpt-5-mini in ")
        shown = [line for line in lines if "The caption of" in line]
        assert len(shown) == min(count, 100)
        assert "The caption of 0.0" in shown[0]
        assert any(f"and {count - 100} more" in line for line in lines) is (count > 100)
    caption.show(made, Console(as_json=True))
    (row,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert len(row["descriptions"]) == 103


def test_the_index_of_a_folder_of_runs_follows_its_captions_and_a_run_has_none(vip: Vip, tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a.vip", described=False)
    make_run(tmp_path / "runs" / "b.vip", described=False)
    code, out, _ = vip("caption", "runs/a.vip", "--engine", "offline")
    assert (code, "index.html" in out) == (0, False)
    assert not list(tmp_path.rglob("index.html"))
    code, out, _ = vip("caption", "runs", "--engine", "offline")
    assert (code, "Open runs/index.html" in out) == (0, True)
    assert "6 by offline" in (tmp_path / "runs" / "index.html").read_text()
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("index.html")] == ["runs/index.html"]


def test_a_dry_run_says_what_a_batch_costs(vip: Vip, tmp_path: Path) -> None:
    make_run(tmp_path / "a.vip", described=False)
    costs = []
    for more in ((), ("--batch",)):
        code, out, _ = vip("caption", "a.vip", "--engine", "openai:gpt-5-mini", "--dry-run", "--json", *more)
        assert code == 0
        costs.append(json.loads(out))
    assert costs[0]["requests"] == costs[1]["requests"] > 0
    assert costs[1]["usd"] == pytest.approx(costs[0]["usd"] / 2)


def test_reports_of_damaged_runs_end_with_8_and_all_others_with_0(vip: Vip, tmp_path: Path) -> None:
    make_run(tmp_path / "runs" / "a.vip")
    make_run(tmp_path / "runs" / "b.vip")
    assert vip("report", "runs")[0] == 0
    (tmp_path / "runs" / "a.vip" / store.CANDIDATES).write_text("{broken\n")
    code, out, err = vip("report", "runs", "--json")
    assert code == SomeFailedError.exit_code
    rows = [json.loads(line) for line in out.splitlines()]
    assert [sorted(row) for row in rows[:3]] == [["error", "exit_code", "run"], ["report", "run"], ["index"]]
    assert "1 of 2 runs could not be reported." in err
    assert (tmp_path / "runs" / "index.html").read_bytes() == write_index(
        tmp_path / "runs", failed={tmp_path / "runs" / "a.vip": rows[0]["error"]}, pages_are_new=True
    ).read_bytes()


# ---------------------------------------------------------------- answers


def asked(number: int, **more: object) -> AskedFrame:
    values = {"label": f"talk@0:0{number}", "video_id": "v", "run": "talk.vip", "keyframe_id": f"k{number}", "time_s": float(number)}
    return AskedFrame(number=number, image_path=f"talk.vip/{number}.jpg", observation=f"Seen {number}.", **values, **more)  # type: ignore[arg-type]


def shown_labels(answer: VideoAnswer, capsys: pytest.CaptureFixture[str], *, thoughts: bool = False) -> list[str]:
    capsys.readouterr()
    ask.show(answer, Console(), thoughts=thoughts)
    return re.findall(r"^ +\[talk@0:0(\d)\]", capsys.readouterr().out, re.MULTILINE)


def test_the_frames_that_are_cited_are_shown_else_those_that_bear_on_the_question(capsys: pytest.CaptureFixture[str]) -> None:
    frames = (asked(1, is_relevant=True), asked(2, is_relevant=True, is_cited=True), asked(3, is_relevant=False))
    answer = VideoAnswer(question="why?", status="supported", text="So [talk@0:02].", engine="x", frames=frames, reasoning="Because.")
    assert shown_labels(answer, capsys) == ["2"]
    uncited = (frames[0], frames[1].model_copy(update={"is_cited": False}), frames[2])
    assert shown_labels(answer.model_copy(update={"frames": uncited}), capsys) == ["1", "2"]
    assert shown_labels(answer, capsys, thoughts=True) == ["1", "2", "3"]
    ask.show(answer, Console())
    assert "Reasoning" not in capsys.readouterr().out
    ask.show(answer, Console(), thoughts=True)
    assert "Reasoning: Because." in capsys.readouterr().out


def test_frames_that_could_not_be_looked_at_are_not_counted_as_looked_at(capsys: pytest.CaptureFixture[str]) -> None:
    frames = (asked(1, is_cited=True), asked(2).model_copy(update={"observation": None, "problem": "Refused."}))
    ask.show(VideoAnswer(question="why?", status="supported", text="So [talk@0:01].", engine="x", frames=frames), Console(), thoughts=True)
    out = capsys.readouterr().out
    assert "1 frame looked at by x, 1 cited." in out
    assert "Refused." in out


# ---------------------------------------------------------------- tasks


@pytest.mark.parametrize(
    ("statuses", "is_error", "without"),
    [
        ({"ok": 2}, False, ""),
        ({"ok": 1, "refused": 1, "unparsed": 2}, False, " (1 refused, 2 unparsed)"),
        ({"ok": 1, "failed": 2}, True, " (2 failed)"),
        ({"failed": 1}, True, " (1 failed)"),
    ],
)
def test_predictions_that_failed_are_an_error_and_what_an_engine_refused_is_none(
    statuses: dict[str, int], is_error: bool, without: str, capsys: pytest.CaptureFixture[str]
) -> None:
    done = PredictionSummary(task="infilling-1", engine="x", statuses=statuses, path=Path("p.jsonl"))  # type: ignore[arg-type]
    for console in (Console(), Console(as_json=True)):
        if is_error:
            with pytest.raises(SomeFailedError, match=f"{statuses['failed']} samples? could not be asked about"):
                tasks.show_predictions(done, console)
        else:
            tasks.show_predictions(done, console)
    count = sum(statuses.values())
    line, row = capsys.readouterr().out.splitlines()
    assert line == f"{count} prediction{'s' if count > 1 else ''} by x in p.jsonl{without}"
    assert json.loads(row) == {"task": "infilling-1", "engine": "x", "predictions": count, "statuses": statuses, "path": "p.jsonl"}


def test_all_tables_are_printed_with_a_line_between(capsys: pytest.CaptureFixture[str]) -> None:
    some = [Table(title=f"Table {number}", columns=("Name",), rows=((TableCell(f"row {number}"),),)) for number in range(3)]
    score.print_tables(some, "text", Console())
    blocks = capsys.readouterr().out.split("\n\n")
    assert [f"row {number}" in block for number, block in enumerate(blocks)] == [True] * 3
    score.print_tables(some, "json", Console())
    assert [json.loads(line)["title"] for line in capsys.readouterr().out.splitlines()] == ["Table 0", "Table 1", "Table 2"]


# ---------------------------------------------------------------- the doctor


@pytest.mark.parametrize(
    ("key", "shown"), [("", "not set"), ("x" * 15 + "1234", "set"), ("x" * 16 + "1234", "…1234"), ("x" * 40 + "abcd", "…abcd")]
)
def test_only_of_a_long_key_the_last_four_letters_are_shown(key: str, shown: str) -> None:
    assert doctor._mask(key) == shown


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("http://box:8000/v1", "http://box:8000/v1"),
        ("http://anna:secret@box:8000/v1", "http://box:8000/v1"),
        ("http://box/v1?key=secret", "http://box/v1"),
        ("anna:secret@box", "(unreadable address)"),
        ("", "(unreadable address)"),
    ],
)
def test_an_address_is_shown_without_its_login(address: str, shown: str) -> None:
    assert doctor._without_login(address) == shown


@pytest.mark.parametrize(
    ("is_red", "is_right"),
    [((1, 0, 0, 1), True), ((0, 1, 1, 0), False), ((1, 0, 1, 0), False), ((1, 1, 1, 1), False), ((0, 0, 0, 0), False)],
)
def test_a_decoder_that_shows_other_colours_or_one_frame_twice_does_not_work(
    is_red: tuple[int, ...], is_right: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Frame:
        def __init__(self, left: int, right: int) -> None:
            colours = np.array([[0, 0, 200], [200, 0, 0]], np.uint8)
            self.image = np.repeat(colours[[left, right]][None, :, :], 48, axis=0).repeat(32, axis=1)

    class Video:
        index = type("Index", (), {"shown_pts": np.array([0, 1])})()

        def __enter__(self) -> Video:
            return self

        def __exit__(self, *exc: object) -> None: ...

        def frames(self, pts: list[int]) -> list[Frame]:
            return [Frame(*is_red[:2]), Frame(*is_red[2:])]

    monkeypatch.setattr("vip.video.open_video", lambda source: Video())
    if is_right:
        doctor._check_sample(tmp_path / "a.mp4")
    else:
        with pytest.raises(InputError, match="decoded in wrong colours"):
            doctor._check_sample(tmp_path / "a.mp4")


# ---------------------------------------------------------------- reviews


def test_a_review_that_was_never_begun_is_not_begun_by_what_reads_it(vip: Vip, tmp_path: Path) -> None:
    folder = make_described(tmp_path / "a", 2)
    for more in (("--report",), ("--export", "out.jsonl"), ("--rewrite", "--engine", "fake")):
        code, _, err = vip("review", "a", *more)
        assert (code, "was not reviewed yet" in err) == (2, True), more
        assert not (folder / "review.sqlite").exists()


@pytest.mark.parametrize("failing", [1, 2])
def test_captions_that_could_not_be_rewritten_end_with_8_also_where_others_were(
    failing: int, vip: Vip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_described(tmp_path / "a", 3)
    state = open_state(folder)
    for item in ("k0", "k1"):
        state.record([action(item, "focus", "a red kite", before=state.value(item, "focus")), action(item, "verdict.2", "good")])
    state.log.close()
    generate, count = FakeEngine.generate, iter(range(100))

    async def refuse(self: FakeEngine, request: Request) -> Reply:
        if next(count) < failing:
            raise ReplyError("It refused.", kind="rejected")  # which is not asked again
        return await generate(self, request)

    monkeypatch.setattr(FakeEngine, "generate", refuse)
    code, out, err = vip("review", "a", "--rewrite", "--engine", "fake", "--json")
    row = json.loads(out.splitlines()[0])
    assert (code, len(row["failed"]), len(row["written"])) == (SomeFailedError.exit_code, failing, 2 - failing)
    assert f"{failing} of 2 captions could not be rewritten" in err


@pytest.mark.parametrize(
    ("written", "unchanged", "edited", "failed", "told", "notes"),
    [
        (0, 0, 0, 0, ["0 captions rewritten by fake."], []),
        (1, 0, 0, 1, ["1 caption rewritten by fake. Next: check them in stage 3."], ["vip: k0: It refused."]),
        (
            *(1200, 1100, 1, 22),
            [
                "1,200 captions rewritten by fake (1,100 without a change). Next: check them in stage 3.",
                "1 caption edited by somebody meanwhile, and left as they are.",
            ],
            [*(f"vip: k{number}: It refused." for number in range(20)), "vip: … and 2 more"],
        ),
        (0, 0, 2, 20, ["0 captions rewritten by fake.", "2 captions edited by somebody meanwhile, and left as they are."], None),
    ],
)
def test_what_was_rewritten_is_counted_and_the_first_failures_are_named(
    written: int, unchanged: int, edited: int, failed: int, told: list[str], notes: list[str] | None, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = [FailedRewrite(f"k{number}", "It\nrefused.") for number in range(failed)]
    done = Rewriting("fake", 9, unchanged, [str(one) for one in range(written)], [str(one) for one in range(edited)], refused)
    review_rewrite._show(done, Console())
    printed = capsys.readouterr()
    assert printed.out.splitlines() == told
    assert printed.err.splitlines() == ([f"vip: k{number}: It refused." for number in range(20)] if notes is None else notes)
    review_rewrite._show(done, Console(as_json=True))
    row = json.loads(capsys.readouterr().out)
    assert (row["engine"], len(row["written"]), row["unchanged"], len(row["failed"])) == ("fake", written, unchanged, failed)


def test_what_a_rewriting_would_cost_and_what_still_waits_for_a_verdict_is_said(vip: Vip, tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 3))
    for item in ("k0", "k1"):
        state.record([action(item, "focus", "a red kite", before=state.value(item, "focus"))])
    state.record([action("k1", "verdict.2", "good")])
    state.log.close()
    code, out, err = vip("review", "a", "--rewrite", "--dry-run", "--engine", "fake")
    assert (code, out.startswith("1 caption to rewrite: ")) == (0, True)
    assert "1 keyframe has corrected fields, but no verdict good of stage 2 yet." in err
    assert json.loads(vip("review", "a", "--rewrite", "--dry-run", "--engine", "fake", "--json")[1])["keyframes"] == 1


@pytest.mark.parametrize("more", [("--engine", "fake"), ("--dry-run",), ("--max-usd", "0")])
def test_settings_of_an_engine_are_refused_where_none_is_asked(more: tuple[str, ...], vip: Vip, tmp_path: Path) -> None:
    make_described(tmp_path / "a", 1)
    code, _, err = vip("review", "a", "--no-open", *more)
    assert (code, f"{more[0]} is for --rewrite, which asks an engine. Add it, or leave the option out." in err) == (2, True)


def served(vip: Vip, monkeypatch: pytest.MonkeyPatch, module: str, *arguments: object) -> list[str]:
    """The items of the page that a command serves, without serving it."""
    seen: list[object] = []

    def note(make: object, state: object, what: str, console: object, **more: object) -> None:
        seen.extend([state, what])

    monkeypatch.setattr("vip.cli.review._run_server", note)
    code, _, err = vip("review", *arguments, "--no-open")
    assert code == 0, err
    return seen  # type: ignore[return-value]


def test_a_draw_of_samples_is_that_of_its_seed_and_judgements_count(vip: Vip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vip.review.draw import draw_ids
    from vip.review.written import read_written_items

    path = write_infilling(tmp_path / "infilling.jsonl", representation="dense")
    ids = [item.id for item in read_written_items(path, None)]
    assert len(ids) == 2
    drawn = {}
    for seed in range(20):
        state, what = served(vip, monkeypatch, "written", path, "--sample", "1", "--seed", seed, "--judgements", "3")
        drawn[seed] = {item.id for item in state.items}  # type: ignore[attr-defined]
        assert drawn[seed] == draw_ids(ids, 1, seed=seed)
        assert (state.judgements, what) == (3, "1 sample")  # type: ignore[attr-defined]
    assert len({tuple(one) for one in drawn.values()}) == 2
    state, what = served(vip, monkeypatch, "written", path)
    assert (len(state.items), state.judgements, what) == (2, None, "2 samples")  # type: ignore[attr-defined]


def test_a_draw_of_questions_is_that_of_its_seed_and_judgements_count(vip: Vip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_how2qa(tmp_path / "how2qa.jsonl", 8)
    drawn = {}
    for seed in (0, 1, 0):
        state, what = served(vip, monkeypatch, "questions", path, "--sample", "3", "--seed", seed, "--judgements", "2")
        found = [item.id for item in state.items]  # type: ignore[attr-defined]
        assert (len(found), state.judgements, what) == (3, 2, "3 questions")  # type: ignore[attr-defined]
        assert drawn.setdefault(seed, found) == found
    assert drawn[0] != drawn[1]


def test_options_are_checked_and_with_answer_the_questions_are_answered(vip: Vip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_options(tmp_path / "options.csv")
    assert served(vip, monkeypatch, "questions", path)[0].way == "check"  # type: ignore[attr-defined]
    assert served(vip, monkeypatch, "questions", path, "--answer")[0].way == "answer"  # type: ignore[attr-defined]


def test_the_judgements_of_keyframes_count(vip: Vip, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make_described(tmp_path / "a", 3)
    state, what = served(vip, monkeypatch, "a", "a", "--judgements", "2", "--sample", "2")
    assert (state.judgements, what) == (2, "2 items")  # type: ignore[attr-defined]
    assert served(vip, monkeypatch, "a", "a")[0].judgements is None  # type: ignore[attr-defined]


def test_answers_in_words_are_written_with_what_is_missing(vip: Vip, tmp_path: Path) -> None:
    path = write_infilling(tmp_path / "infilling.jsonl", representation="dense")
    code, _, err = vip("review", path, "--export", "out.jsonl")
    assert (code, "Nobody has answered" in err) == (2, True)
    state = open_written(path)
    write(state, 0, *["A dog."] * len(state.items[0].fields))
    state.log.close()
    code, out, _ = vip("review", path, "--export", "out.jsonl", "--json")
    row = json.loads(out)
    assert (code, row["answered"], row["missing"]) == (0, 1, 1)
    assert vip("review", path, "--export", "out.jsonl")[0] == 2
    assert vip("review", path, "--export", "out.jsonl", "--overwrite")[0] == 0
    told = f"1 answer in more.jsonl, 1 missing. Next: `vip score more.jsonl --samples {path}`.\n"
    assert vip("review", path, "--export", "more.jsonl")[1] == told
    code, out, _ = vip("review", path, "--report", "--json")
    assert (code, json.loads(out)) == (0, {"samples": 2, "reviewers": {"Ann": {"total": 2, "done": 1}}})
    assert vip("review", path, "--report")[1] == "2 samples\n  Ann: 1 answered\n"


# ---------------------------------------------------------------- Mechanical Turk


def test_hits_of_keyframes_ask_for_the_workers_of_their_paper_and_are_not_replaced_unasked(vip: Vip, tmp_path: Path) -> None:
    from vip.review.mturk import PAPER
    from vip.tasks.fiber.policy import read_policy, write_qualifications

    make_described(tmp_path / "a", 2)
    command = ("review", "a", "--mturk", "hits", "--media-url", "https://example.org/{file}")
    code, out, err = vip(*command, "--json")
    policy = read_policy(None, paper=PAPER)
    assert (code, json.loads(out)) == (0, {"hits": 2, "assignments": 2 * policy.workers_per_hit, "path": "hits"}), err
    write_qualifications(tmp_path / "expected.json", policy)
    assert (tmp_path / "hits" / "qualifications.json").read_bytes() == (tmp_path / "expected.json").read_bytes()
    write_qualifications(tmp_path / "others.json", read_policy(None))
    assert (tmp_path / "expected.json").read_bytes() != (tmp_path / "others.json").read_bytes()
    (tmp_path / "hits" / "hits.csv").write_text("mine")
    code, _, err = vip(*command)
    assert (code, "hits/hits.csv exists already. Add --overwrite" in err) == (2, True)
    assert (tmp_path / "hits" / "hits.csv").read_text() == "mine"
    assert vip(*command, "--overwrite")[0] == 0
    assert (tmp_path / "hits" / "hits.csv").read_text() != "mine"


# ---------------------------------------------------------------- files that are there


def test_questions_of_ones_own_are_never_replaced_by_their_options(vip: Vip, tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text("mine")
    (tmp_path / "link.csv").symlink_to("questions.csv")
    for out in ("questions.csv", "questions.jsonl", "./questions.csv", "link.csv"):
        code, _, err = vip("samples", "--task", "nextqa-mc", "--from", "questions.csv", "-o", out, "--vectors", "v.npz", "--overwrite")
        assert code in (3, 7), (out, err)
        assert (tmp_path / "questions.csv").read_text() == "mine"


def test_the_pages_of_data_stand_where_they_are_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from vip.cli.data_statistics import PAGE, write_page

    monkeypatch.setattr("vip.tasks.data_description.write_data_page", lambda description, path: path.write_text("page"))
    for name, in_folder, expected in (
        ("a.html", False, "a.html"),
        ("b.htm", False, "b.htm"),
        ("c", False, f"c/{PAGE}"),
        ("d", True, f"d/{PAGE}"),
    ):
        found = write_page(None, tmp_path / name, in_folder=in_folder)  # type: ignore[arg-type]
        assert found == tmp_path / expected
        assert found.read_text() == "page"


def test_keyframes_without_a_time_are_printed_as_json_too(tmp_path: Path) -> None:
    made = store.load_run(run_folder(tmp_path / "pictures.vip", 2))
    rows = [frame.record.model_copy(update={"time_s": None}) for frame in made.keyframes]
    store.write_rows(made.folder / store.KEYFRAMES, rows)
    shown = extract.summary(store.load_run(made.folder), "pictures")
    assert [row["time_s"] for row in shown["keyframes"]] == [None, None]
    assert shown["video"] == "pictures"
