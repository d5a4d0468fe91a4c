"""Predictions: one row a sample in order, resumed after a stop, nothing guessed and nothing of the reference sent."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.api_server import ApiServer
from tests.tasks.described import described_folder
from tests.tasks.test_keyframe_task import samples
from vip.captioning.estimate import Estimate
from vip.config import CaptionSettings, PredictSettings
from vip.errors import BackendError, BudgetError, InputError, ReplyError, StoreError, UsageError
from vip.llm.client import EngineClient
from vip.models.fake import FakeEngine
from vip.protocols import Reply, Request, SilentObserver
from vip.tasks import predict as module
from vip.tasks.files import draw_samples, read_predictions, write_samples
from vip.tasks.infilling import VideoInfilling
from vip.tasks.predict import expected_cost, open_samples, predict, predict_with_baseline
from vip.tasks.records import Blank, Sample, SamplePicture

FAKE = CaptionSettings(engine="fake")
QUIET = SilentObserver()


@pytest.fixture
def made(tmp_path: Path) -> list[Sample]:
    folders = [described_folder(tmp_path / "videos" / name, 7, first_word=4 * number) for number, name in enumerate("abcd")]
    return samples(VideoInfilling(), *folders, representation="dense")


@pytest.fixture
def file(made: list[Sample], tmp_path: Path) -> Path:
    write_samples(tmp_path / "samples.jsonl", made)
    return tmp_path / "samples.jsonl"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """The requests that reach the engine, those of killed runs too."""
    requests: list[Request] = []
    generate = FakeEngine.generate

    async def noted(self: FakeEngine, request: Request) -> Reply:
        requests.append(request)
        return await generate(self, request)

    monkeypatch.setattr(FakeEngine, "generate", noted)
    return requests


def test_every_sample_has_its_row_in_order_and_each_call_is_on_record(file: Path, made: list[Sample], tmp_path: Path) -> None:
    done = predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    rows = list(read_predictions(done.path))
    assert [row.sample_id for row in rows] == [sample.id for sample in made]
    assert done.statuses == {"ok": len(made)}
    assert {row.engine for row in rows} == {"fake"}
    for row, sample in zip(rows, made, strict=True):
        (call,) = row.calls
        assert call.prompt == "infilling-1"
        assert call.parameters["greedy"] is True
        shown = call.parameters["demonstration"]
        assert shown.split("/")[1] != sample.video
    assert not (tmp_path / "p.jsonl.journal").exists()


def test_no_reference_is_sent(file: Path, made: list[Sample], asked: list[Request], tmp_path: Path) -> None:
    predict(file, tmp_path / "p.jsonl", asking=FAKE, settings=PredictSettings(shots=0), observer=QUIET)
    assert len(asked) == len(made)
    for sample in made:
        assert sample.reference is not None
        (about,) = [request for request in asked if all(piece.dense_caption in request.prompt for piece in sample.context)]  # type: ignore[union-attr, operator]
        assert all(str(one.dense_caption) not in about.prompt for one in sample.reference.values[0])  # type: ignore[union-attr]
        assert about.is_greedy


def test_the_same_seed_shows_the_same_example(file: Path, tmp_path: Path) -> None:
    def shown(seed: int, name: str) -> list[Any]:
        predict(file, tmp_path / name, asking=FAKE, settings=PredictSettings(seed=seed), observer=QUIET)
        return [row.calls[0].parameters["demonstration"] for row in read_predictions(tmp_path / name)]

    assert shown(1, "a") == shown(1, "b") != shown(2, "c")


def test_a_run_that_is_stopped_again_and_again_asks_nothing_twice(
    file: Path, made: list[Sample], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    answered: list[str] = []
    generate = FakeEngine.generate

    async def dying(self: FakeEngine, request: Request) -> Reply:
        if len(self.requests) >= 2:
            raise BudgetError("The money is spent.")
        reply = await generate(self, request)
        answered.append(request.prompt)
        return reply

    monkeypatch.setattr(FakeEngine, "generate", dying)
    one_at_a_time = CaptionSettings(engine="fake", concurrency=1)
    for _ in range(20):
        try:
            predict(file, tmp_path / "p.jsonl", asking=one_at_a_time, observer=QUIET)
        except BudgetError:
            continue
        break
    assert [row.sample_id for row in read_predictions(tmp_path / "p.jsonl")] == [sample.id for sample in made]
    assert len(answered) == len(set(answered)) == len(made)


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (ReplyError("It would not say.", kind="refusal"), "refused"),
        (ReplyError("The filter stopped it.", kind="content_filter"), "refused"),
        (ReplyError("It was cut off.", kind="length"), "unparsed"),
        (ReplyError("The picture is too large.", kind="too_large"), "failed"),
    ],
)
def test_what_has_no_answer_says_why(error: ReplyError, status: str, file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def failing(self: FakeEngine, request: Request) -> Reply:
        raise error

    monkeypatch.setattr(FakeEngine, "generate", failing)
    monkeypatch.setattr("vip.llm.client.USELESS_FROM_THE_START", 10_000)
    done = predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    assert set(done.statuses) == {status}
    row = next(read_predictions(done.path))
    assert (row.value, row.status, row.reason) == (None, status, str(error))


@pytest.mark.parametrize(("kind", "is_asked_again"), [("too_large", True), ("refusal", False), ("length", False)])
def test_what_failed_is_asked_about_again_and_an_answer_that_is_none_is_not(
    kind: str, is_asked_again: bool, file: Path, made: list[Sample], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    async def failing(self: FakeEngine, request: Request) -> Reply:
        raise ReplyError("Not this time.", kind=kind)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(FakeEngine, "generate", failing)
        patched.setattr("vip.llm.client.USELESS_FROM_THE_START", 10_000)
        before = predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET).statuses
    after = predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET).statuses
    assert after == ({"ok": len(made)} if is_asked_again else before)


def test_an_answer_out_of_form_is_kept_as_it_came(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def chatting(self: FakeEngine, request: Request) -> Reply:
        return Reply("Sure! Here you go.", model="fake")

    monkeypatch.setattr(FakeEngine, "generate", chatting)
    row = next(read_predictions(predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET).path))
    assert (row.status, row.raw, row.reason) == ("unparsed", "Sure! Here you go.", "it is not JSON")


def test_answers_of_another_engine_or_prompt_are_not_mixed(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "p.jsonl"
    predict(file, out, asking=FAKE, observer=QUIET)
    before = out.read_bytes()
    with pytest.raises(UsageError, match="holds answers of fake to other questions"):
        predict(file, out, asking=FAKE, settings=PredictSettings(variant=2), observer=QUIET)
    assert out.read_bytes() == before
    with pytest.raises(UsageError, match="holds answers of fake to other questions"):
        predict(file, out, asking=FAKE, settings=PredictSettings(shots=0), observer=QUIET)
    with pytest.raises(UsageError, match="holds answers of fake\\."):
        predict(file, out, asking=CaptionSettings(engine="fake:refuse"), observer=QUIET)
    assert out.read_bytes() == before
    predict(file, out, asking=FAKE, settings=PredictSettings(variant=2), overwrite=True, observer=QUIET)
    assert {row.calls[0].prompt for row in read_predictions(out)} == {"infilling-2"}


def test_engines_that_cannot_answer_are_refused_before_anything_is_asked(tmp_path: Path) -> None:
    folders = [described_folder(tmp_path / name, 5) for name in "ab"]
    write_samples(tmp_path / "s.jsonl", samples(VideoInfilling(), *folders, pictures=True))
    with pytest.raises(BackendError, match="offline only describes pictures"):
        predict(tmp_path / "s.jsonl", tmp_path / "p.jsonl", asking=CaptionSettings(engine="offline"), observer=QUIET)


def test_pictures_are_sent_in_order_and_a_changed_one_is_noticed(asked: list[Request], tmp_path: Path) -> None:
    folders = [described_folder(tmp_path / name, 5) for name in "ab"]
    file = tmp_path / "s.jsonl"
    write_samples(file, samples(VideoInfilling(), *folders, pictures=True))
    predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    assert [len(request.pictures) for request in asked] == [2, 2]
    (folders[0] / "keyframes" / "0000.jpg").write_bytes((folders[0] / "keyframes" / "0003.jpg").read_bytes())
    with pytest.raises(InputError, match="has changed since the samples were made"):
        predict(file, tmp_path / "q.jsonl", asking=FAKE, observer=QUIET)


def test_answers_about_other_pictures_are_not_mixed(asked: list[Request], tmp_path: Path) -> None:
    folders = [described_folder(tmp_path / name, 5) for name in "ab"]
    file = tmp_path / "s.jsonl"
    write_samples(file, samples(VideoInfilling(), *folders, pictures=True))
    predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    (folders[0] / "keyframes" / "0000.jpg").write_bytes((folders[0] / "keyframes" / "0003.jpg").read_bytes())
    write_samples(file, samples(VideoInfilling(), *folders, pictures=True))  # the same words, made again with the other picture
    with pytest.raises(UsageError, match="holds answers of fake to other questions"):
        predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    assert len(asked) == 2


def test_samples_of_one_video_have_no_example(tmp_path: Path) -> None:
    write_samples(tmp_path / "s.jsonl", samples(VideoInfilling(), described_folder(tmp_path / "a", 6)))
    before = set(threading.enumerate())
    with pytest.raises(UsageError, match="samples of one video only"):
        predict(tmp_path / "s.jsonl", tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    new = [thread.name for thread in threading.enumerate() if thread not in before]
    assert "vip answers" not in new, "the file of answers is closed"
    done = predict(tmp_path / "s.jsonl", tmp_path / "p.jsonl", asking=FAKE, settings=PredictSettings(shots=0), observer=QUIET)
    assert sum(done.statuses.values()) == 2


def test_a_file_with_an_id_twice_or_of_two_tasks_is_refused(made: list[Sample], tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    write_samples(file, [made[0], made[0]])
    with pytest.raises(InputError, match="the id infilling-1/a/0 is there twice"):
        open_samples(file)
    write_samples(file, [made[0], made[1].model_copy(update={"task": "prediction-1"})])
    with pytest.raises(InputError, match="samples of several tasks"):
        open_samples(file)
    file.write_text("{}\n")
    with pytest.raises(InputError, match="line 1"):
        open_samples(file)


def test_the_cost_is_known_before_anything_is_asked(file: Path, made: list[Sample], asked: list[Request]) -> None:
    expected = expected_cost(file, asking=FAKE)
    assert expected.requests == len(made)
    assert not asked


def test_batches_are_expected_to_cost_half(file: Path) -> None:
    single, batch = (
        expected_cost(file, asking=CaptionSettings(engine="openai:gpt-5-mini"), in_batches=in_batches) for in_batches in (False, True)
    )
    assert single.usd
    assert batch.usd == pytest.approx(single.usd / 2)
    assert (batch.requests, batch.tokens_in, batch.tokens_out) == (single.requests, single.tokens_in, single.tokens_out)


def test_a_baseline_that_is_misspelt_is_one_sentence(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match='infilling has no baseline "copy"'):
        predict_with_baseline(file, tmp_path / "p.jsonl", "copy", observer=QUIET)
    done = predict_with_baseline(file, tmp_path / "p.jsonl", "copy-nearest", observer=QUIET)
    assert done.engine == "baseline:copy-nearest"
    with pytest.raises(UsageError, match="exists already"):
        predict_with_baseline(file, tmp_path / "p.jsonl", "copy-nearest", observer=QUIET)


def test_at_most_so_many_samples_are_chosen_by_the_seed_in_their_order(made: list[Sample], tmp_path: Path) -> None:
    def chosen(seed: int) -> list[str]:
        write_samples(tmp_path / "s.jsonl", draw_samples(made, 5, seed))
        return [json.loads(line)["id"] for line in (tmp_path / "s.jsonl").read_text().splitlines()]

    order = [sample.id for sample in made]
    assert len(chosen(1)) == 5
    assert chosen(1) == chosen(1) == sorted(chosen(1), key=order.index) != chosen(2)


def test_waiting_questions_are_bounded(file: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    waiting = most = 0
    ask = module._PredictionRun._prediction

    async def counted(self: Any, sample: Sample) -> Any:
        nonlocal waiting, most
        waiting += 1
        most = max(most, waiting)
        await asyncio.sleep(0.001)
        waiting -= 1
        return await ask(self, sample)

    monkeypatch.setattr(module, "WAITING", 3)
    monkeypatch.setattr(module._PredictionRun, "_prediction", counted)
    predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    assert most == 3


@pytest.mark.slow
def test_answers_come_in_a_batch_and_nothing_is_asked_by_itself(
    file: Path, made: list[Sample], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("vip.llm.batch_jobs.FIRST_POLL_S", 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    with ApiServer() as server:
        asking = CaptionSettings(engine="openai:tiny-vlm", base_url=server.base_url, cache=tmp_path / "answers.sqlite")
        done = predict(file, tmp_path / "p.jsonl", asking=asking, in_batches=True, observer=QUIET)
        assert server.chats == []
    assert [row.sample_id for row in read_predictions(done.path)] == [sample.id for sample in made]
    assert set(done.statuses) <= {"ok", "unparsed"}
    assert not (tmp_path / "p.jsonl.batches").exists()


def test_an_engine_without_batches_is_one_sentence(file: Path, tmp_path: Path) -> None:
    with pytest.raises(BackendError, match="fake takes no batches"):
        predict(file, tmp_path / "p.jsonl", asking=FAKE, in_batches=True, observer=QUIET)


def test_a_link_in_the_place_of_the_batches_is_not_followed(file: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "p.jsonl.batches").symlink_to("elsewhere")
    with pytest.raises(StoreError, match=r"p\.jsonl\.batches cannot be written: it is a link"):
        predict(file, tmp_path / "p.jsonl", asking=FAKE, in_batches=True, observer=QUIET)


def stop_after(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Let the money be spent after so many answers of a run."""
    generate = FakeEngine.generate

    async def dying(self: FakeEngine, request: Request) -> Reply:
        if len(self.requests) >= most:
            raise BudgetError("The money is spent.")
        return await generate(self, request)

    monkeypatch.setattr(FakeEngine, "generate", dying)


@pytest.fixture
def begun(file: Path, tmp_path: Path, asked: list[Request]) -> Path:
    """A run that was stopped after three answers; its journal."""
    with pytest.MonkeyPatch.context() as patched:
        stop_after(patched, 3)
        with pytest.raises(BudgetError):
            predict(file, tmp_path / "p.jsonl", asking=CaptionSettings(engine="fake", concurrency=1), observer=QUIET)
    assert len(asked) == 3
    asked.clear()
    return tmp_path / "p.jsonl.journal"


def test_a_line_that_a_kill_tore_is_asked_about_again(
    file: Path, made: list[Sample], begun: Path, asked: list[Request], tmp_path: Path
) -> None:
    lines = begun.read_bytes().splitlines(keepends=True)
    assert len(lines) == 3
    begun.write_bytes(b"".join(lines[:2]) + lines[2][: len(lines[2]) // 2])
    done = predict(file, tmp_path / "p.jsonl", asking=FAKE, observer=QUIET)
    assert (done.statuses, len(asked)) == ({"ok": len(made)}, len(made) - 2)


def test_overwrite_forgets_the_answers_of_an_unfinished_run_too(
    file: Path, made: list[Sample], begun: Path, asked: list[Request], tmp_path: Path
) -> None:
    predict(file, tmp_path / "p.jsonl", asking=FAKE, overwrite=True, observer=QUIET)
    assert len(asked) == len(made)
    assert not begun.exists()


def test_a_folder_in_the_place_of_a_file_that_is_forgotten_is_one_sentence(file: Path, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl.journal").mkdir()
    with pytest.raises(UsageError, match=r"p\.jsonl\.journal is a folder\."):
        predict(file, tmp_path / "p.jsonl", asking=FAKE, overwrite=True, observer=QUIET)


def test_an_unfinished_run_of_another_engine_is_not_gone_on_with(file: Path, begun: Path, asked: list[Request], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"p\.jsonl\.journal holds answers of fake\."):
        predict(file, tmp_path / "p.jsonl", asking=CaptionSettings(engine="fake:badjson"), observer=QUIET)
    assert not asked


def test_a_baseline_draws_by_the_seed(file: Path, made: list[Sample], tmp_path: Path) -> None:
    def drawn(seed: int) -> list[object]:
        done = predict_with_baseline(file, tmp_path / "b.jsonl", "random-keyframe", seed=seed, overwrite=True, observer=QUIET)
        assert done.statuses == {"ok": len(made)}
        return [row.value for row in read_predictions(done.path)]

    assert drawn(1) == drawn(1)
    assert len({tuple(map(str, drawn(seed))) for seed in range(4)}) == 4


def test_a_training_set_is_for_baselines_that_count_its_answers(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"No baseline of infilling counts answers of a training set\. Leave --train out\."):
        predict_with_baseline(file, tmp_path / "b.jsonl", "copy-nearest", train=tmp_path / "train.csv", observer=QUIET)
    assert not (tmp_path / "b.jsonl").exists()


def test_the_expected_cost_is_that_of_each_sample(made: list[Sample], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    alone = PredictSettings(shots=0)
    monkeypatch.setattr(EngineClient, "most_tokens", lambda self, request: (len(request.prompt), request.max_tokens))

    def cost(*samples: Sample) -> Estimate:
        write_samples(tmp_path / "some.jsonl", samples)
        return expected_cost(tmp_path / "some.jsonl", settings=alone, asking=FAKE)

    each = [cost(one) for one in made[:4]]
    whole = cost(*made[:4])
    assert whole.tokens_in == sum(one.tokens_in for one in each)
    assert whole.tokens_out == round(4 * 3 * 400 / 3), "a third of what three keyframes may take"
    many = [made[0].model_copy(update={"id": f"{made[0].id}-{number}"}) for number in range(50)]
    assert (cost(*many).requests, cost(*many).tokens_in) == (50, 50 * each[0].tokens_in)


def test_samples_of_videos_that_show_nothing_are_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes: list[str] = []

    class Observer(SilentObserver):
        def note(self, text: str) -> None:
            notes.append(text)

    blank = Sample(id="a", task="fiber", task_version=1, video="v", ask=Blank(text="There is _____."))
    for context, said in (((), 1), ((SamplePicture(source="run", keyframe_id="k"),), 0)):
        notes.clear()
        write_samples(tmp_path / "s.jsonl", [blank, blank.model_copy(update={"id": "b", "context": context})])
        monkeypatch.setattr(module, "load_pictures", lambda sample, side, sources: ())
        predict(tmp_path / "s.jsonl", tmp_path / "p.jsonl", asking=FAKE, overwrite=True, observer=Observer())
        assert sum("These samples show nothing of their videos: fake answers by the words alone." in text for text in notes) == said


def test_an_engine_that_sees_nothing_is_refused_where_one_sample_shows_a_picture(
    made: list[Sample], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(FakeEngine, "capabilities", replace(FakeEngine.capabilities, sees=False))
    write_samples(tmp_path / "words.jsonl", made[:3])
    assert predict(tmp_path / "words.jsonl", tmp_path / "p.jsonl", asking=FAKE, settings=PredictSettings(shots=0), observer=QUIET)
    shown = made[0].model_copy(update={"context": (*made[0].context, SamplePicture(source="run", keyframe_id="k"))})
    write_samples(tmp_path / "s.jsonl", [shown, *made[1:3]])
    with pytest.raises(BackendError, match="fake takes no pictures, and these samples show some"):
        predict(tmp_path / "s.jsonl", tmp_path / "q.jsonl", asking=FAKE, settings=PredictSettings(shots=0), observer=QUIET)


def test_an_example_has_a_reference_and_there_is_one_of_each_video(made: list[Sample], tmp_path: Path) -> None:
    hidden = [one.model_copy(update={"reference": None}) if one.video == "a" else one for one in made]
    write_samples(tmp_path / "s.jsonl", hidden)
    found = open_samples(tmp_path / "s.jsonl")
    assert (found.count, found.has_pictures, sorted(one.video for one in found.examples)) == (len(made), False, ["b", "c", "d"])
    assert len({tuple(one.id for one in open_samples(tmp_path / "s.jsonl", seed=seed).examples) for seed in range(4)}) > 1
    (tmp_path / "s.jsonl").write_text("")
    with pytest.raises(InputError, match="has no samples"):
        open_samples(tmp_path / "s.jsonl")


def test_a_folder_in_the_place_of_the_answers_is_refused(file: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        predict(file, tmp_path, asking=FAKE, observer=QUIET)
    with pytest.raises(UsageError, match="is a folder"):
        predict_with_baseline(file, tmp_path, "copy-nearest", overwrite=True, observer=QUIET)


@pytest.mark.parametrize("kept", [1, 2, 3])
def test_of_many_videos_the_examples_are_those_of_the_smallest_hash(
    kept: int, made: list[Sample], file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = [one.id for one in open_samples(file, seed=3).examples]
    assert len(every) == 4
    monkeypatch.setattr(module, "EXAMPLES_KEPT", kept)
    assert [one.id for one in open_samples(file, seed=3).examples] == every[:kept]
    write_samples(tmp_path / "turned.jsonl", made[::-1])
    assert [one.id for one in open_samples(tmp_path / "turned.jsonl", seed=3).examples] == every[:kept]
