"""HERO on published files without its training: stages, what they begin with, what they answer, and corpora."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from tests.tasks.value.made import query, write_json, write_lines

pytest.importorskip("torch")
import torch

from tests.baselines.value.made_value import SMALL, WIDTH, write_tokenizer  # needs torch
from tests.baselines.value.tiny_hero import tiny
from tests.tasks.value.trained import SETTINGS, Notes, Trained
from vip.baselines.value import answer as answering
from vip.baselines.value import run_folder, training
from vip.baselines.value.answer import QueryAnswer
from vip.baselines.value.checkpoint import to_published
from vip.baselines.value.data import Example
from vip.baselines.value.interface import RankingOptions
from vip.baselines.value.run_folder import TrainedHero
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.tasks.files import read_predictions, read_samples
from vip.tasks.records import Found, FoundMoments
from vip.tasks.value import trained_models
from vip.tasks.value.datasets import BY_KEY, DATASETS
from vip.tasks.value.trained_models import PredictRequest, TrainValueRequest, answer, predict_with_hero, train_value

KEYS = {"tvr": "desc_id", "tvqa": "qid", "tvc": "clip_id"}


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> Trained:
    made = Trained("tvqa")
    monkeypatch.setattr(training, "train_stage", made)
    return made


def question(number: int, video: str, **more: Any) -> dict[str, Any]:
    return {"qid": number, "q": "who?", **{f"a{one}": f"x{one}" for one in range(5)}, "answer_idx": number % 5, "vid_name": video, **more}


def clip(number: int, video: str) -> dict[str, Any]:
    return {"clip_id": number, "vid_name": video, "ts": [1.5, 4.5], "descs": [{"desc": f"he sees {one}"} for one in "ab"]}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """TVQA and TVC of two videos for training and one for validation, features and a tokenizer."""
    (tmp_path / "f").mkdir()
    for place, name in enumerate(("v0", "v1", "v2")):
        np.savez(tmp_path / f"f/{name}.npz", features=np.full((6, WIDTH), place, np.float16))
    for split, names in (("train", ("v0", "v1")), ("val", ("v2",))):
        write_lines(tmp_path / f"tvqa_{split}_release.jsonl", [question(place, name) for place, name in enumerate(names)])
        write_lines(tmp_path / f"tvc_{split}_release.jsonl", [clip(place, name) for place, name in enumerate(names)])
        write_lines(tmp_path / f"tvr_{split}_release.jsonl", [query(place, name, ts=[1.5, 4.5]) for place, name in enumerate(names)])
    write_tokenizer(tmp_path / "tok")
    return tmp_path


def train(folder: Path, **more: Any) -> tuple[list[TrainedHero], list[str]]:
    observer = Notes()
    given: dict[str, Any] = {"regime": "st", "annotations": folder, "out": folder / "run", "features": [folder / "f"], "tasks": ["tvqa"]}
    given |= {"tokenizer": folder / "tok", "assignments": SETTINGS, **more}
    return train_value(TrainValueRequest(**given), observer=observer), observer.notes


# ---------------------------------------------------------------- training


def test_tasks_are_trained_in_the_order_of_the_suite_and_all_without_names() -> None:
    names = trained_models._datasets(["value-vlep", "tvr", "vatex-en-c", "yc2c"])
    assert [one.key for one in names] == ["tvr", "vlep", "yc2c", "vatex_en_c"]
    assert trained_models._datasets([]) == list(DATASETS)
    with pytest.raises(UsageError, match='VALUE has no task "tvra"\\.'):
        trained_models._datasets(["tvr", "tvra"])


def test_a_stage_keeps_the_first_of_equal_validations(folder: Path, trained: Trained) -> None:
    (record,), _ = train(folder, seed=5, device="cpu", devices=2, workers=3)
    assert (record.best_step, record.best_scores, record.is_finished) == (3, {"tvqa": 50.0}, True)
    assert run_folder.read_hero(folder / "run" / "tvqa") == record
    (call,) = trained.calls
    assert (call.machine.device, call.machine.devices, call.machine.workers, call.resume) == ("cpu", 2, 3, False)
    assert call.settings.training.seed == 5
    assert (record.train_items, record.val_items, record.features, record.weights) == ({"tvqa": 2}, {"tvqa": 1}, ("f",), None)
    assert [one.video for one in call.data.train["tvqa"]] == ["v0", "v1"]
    assert call.scores["tvqa"] in (0.0, 100.0), "one question is validated"


def test_a_stage_begins_with_the_weights_of_the_stage_before(folder: Path, trained: Trained) -> None:
    records, _ = train(folder, regime="at-st", tasks=["tvqa", "tvc"], seed=1)
    assert [one.stage for one in records] == ["at", "tvqa", "tvc"]
    at, tvqa, tvc = trained.calls
    assert set(at.data.train) == {"tvqa", "tvc"}
    assert set(tvc.data.train) == {"tvc"}
    for one in (tvqa, tvc):
        assert all(torch.equal(one.weights[name], value) for name, value in at.weights.items())
    kept, _ = train(folder, regime="at-st", tasks=["tvqa"], weights=str(folder / "run" / "at"), out=folder / "other", seed=2)
    assert [(one.stage, one.weights) for one in kept] == [("tvqa", "at")]
    assert all(torch.equal(trained.calls[-1].weights[name], value) for name, value in at.weights.items())
    drawn, _ = train(folder, regime="st", tasks=["tvqa"], out=folder / "third", seed=2)
    assert drawn[0].weights is None
    assert not all(torch.equal(trained.calls[-1].weights[name], value) for name, value in at.weights.items())


def test_a_training_goes_on_with_the_same_alone(folder: Path, trained: Trained) -> None:
    (record,), _ = train(folder)
    with pytest.raises(UsageError, match="tvqa holds a training already"):
        train(folder)
    again, notes = train(folder, resume=True, assignments=(), tokenizer=None)
    assert again == [record]
    assert notes == [f"{folder / 'run' / 'tvqa'} is trained already."]
    assert len(trained.calls) == 1
    path = folder / "run" / "tvqa" / run_folder.HERO
    begun = record.model_copy(update={"is_finished": False, "best_step": None})
    path.write_text(begun.model_dump_json())
    train(folder, resume=True, assignments=())
    assert trained.calls[-1].resume is True
    assert trained.calls[-1].settings == record.settings, "the settings that it began with"
    with pytest.raises(UsageError, match="was begun with other settings"):
        train(folder, resume=True, seed=8)
    for changed, message in (
        ({"regime": "at"}, "was trained under another regime"),
        ({"data_sha256": "0 0"}, "was trained on other annotations"),
        ({"tasks": ("tvqa", "tvc")}, "was trained on other tasks"),
        ({"weights": "roberta"}, "was trained on other features, or from other weights"),
        ({"features": ("g",)}, "was trained on other features, or from other weights"),
    ):
        path.write_text(begun.model_copy(update=changed).model_dump_json())
        with pytest.raises(UsageError, match=message):
            train(folder, resume=True)


@pytest.mark.parametrize(("is_saved", "says"), [(True, "it holds weights of another model"), (False, "and none were saved")])
def test_sizes_that_a_folder_states_take_no_memory(is_saved: bool, says: str, folder: Path, trained: Trained) -> None:
    (record,), _ = train(folder)
    stage = folder / "run" / "tvqa"
    settings = record.settings.model_copy(update={"model": record.settings.model.model_copy(update={"hidden": 8192, "heads": 8})})
    if is_saved:
        (call,) = trained.calls
        torch.save({"state_dict": {f"model.{name}": value for name, value in call.weights.items()}}, stage / run_folder.LAST)
        (stage / run_folder.HERO).write_text(record.model_copy(update={"is_finished": False}).model_dump_json())
        train(folder, resume=True, assignments=())
        assert trained.calls[-1].resume is True
    large = {"settings": settings, "settings_sha256": settings.sha256, "is_finished": False}
    (stage / run_folder.HERO).write_text(record.model_copy(update=large).model_dump_json())
    with pytest.raises(InputError, match=f"{says}.* Begin the training anew: --overwrite"):
        train(folder, resume=True, assignments=())
    assert len(trained.calls) == 1 + is_saved


def test_other_answers_of_either_split_are_other_annotations(folder: Path, trained: Trained) -> None:
    train(folder)
    for split, video in (("train", "v0"), ("val", "v2")):
        path = folder / f"tvqa_{split}_release.jsonl"
        before = path.read_text()
        write_lines(path, [question(3, video), question(4, video)])
        with pytest.raises(UsageError, match="was trained on other annotations"):
            train(folder, resume=True)
        path.write_text(before)
    train(folder, resume=True)


def test_what_an_old_training_left_is_deleted(folder: Path, trained: Trained) -> None:
    train(folder)
    stage = folder / "run" / "tvqa"
    left = [run_folder.WEIGHTS, run_folder.VALIDATIONS, run_folder.LAST]
    for name in left:
        (stage / name).write_text("old")
    (stage / "notes.txt").write_text("mine")
    train(folder, overwrite=True)
    assert not trained.calls[-1].there & set(left)
    assert (stage / "notes.txt").read_text() == "mine"


def test_a_link_in_the_place_of_a_stage_is_refused_before_the_first_is_trained(folder: Path, trained: Trained) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "tvc").symlink_to(folder / "f")
    with pytest.raises(UsageError, match="tvc is a link, and vip writes through none"):
        train(folder, tasks=["tvqa", "tvc"], overwrite=True)
    assert trained.calls == []


@pytest.mark.parametrize(
    ("weights", "name"),
    [(None, None), ("hero:/models/x.pt", "hero"), ("roberta:x", "roberta"), ("runs/at", "at"), ("at/", "at")],
)
def test_weights_are_named_in_a_word(weights: str | None, name: str | None) -> None:
    assert trained_models._weights_name(weights) == name


def test_validation_needs_answers_and_videos_need_features(folder: Path, trained: Trained) -> None:
    write_lines(folder / "tvqa_val_release.jsonl", [question(1, "v2"), {**question(2, "v2"), "answer_idx": None}])
    rows = [question(1, "v2"), question(2, "v2")]
    del rows[1]["answer_idx"]
    write_lines(folder / "tvqa_val_release.jsonl", rows)
    with pytest.raises(InputError, match=r'tvqa_val_release\.jsonl: "2" has no answer, so that nothing can be validated'):
        train(folder)
    write_lines(folder / "tvqa_val_release.jsonl", [question(1, "far")])
    with pytest.raises(InputError, match="has no features of 1 of 3 videos, such as far"):
        train(folder)
    assert trained.calls == []


def test_a_search_is_validated_on_the_videos_of_its_split(folder: Path) -> None:
    found = trained_models._val_data(BY_KEY["tvr"], folder)
    assert (found.corpus, [one.video for one in found.examples], len(found.samples)) == (("v2",), ["v2"], 1)
    write_json(folder / "tvr_video2dur_idx.json", {"val": {"v1": [9, 1], "v2": [9, 2]}, "train": {"v0": [9, 0]}})
    assert trained_models._val_data(BY_KEY["tvr"], folder).corpus == ("v1", "v2")
    assert trained_models._val_data(BY_KEY["tvqa"], folder).corpus == ()


def test_settings_are_those_of_a_model_with_weights_where_it_begins_with_one(
    folder: Path, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []
    from vip.baselines.value import settings as value_settings

    load = value_settings.load_settings

    def keep(*words: Any, **more: Any) -> Any:
        seen.append(more["has_weights"])
        return load(*words, **more)

    monkeypatch.setattr(value_settings, "load_settings", keep)
    monkeypatch.setattr(trained_models, "load_weights", lambda model, weights, observer: None)
    for place, weights in enumerate((None, "roberta:x.pt", "hero:x.pt", str(folder / "run0" / "tvqa"))):
        train(folder, weights=weights, out=folder / f"run{place}")
    assert seen == [False, False, True, True]


# ---------------------------------------------------------------- answers


def test_a_query_searches_the_corpus_and_its_own_video_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The video of an example is found by its name in the corpus; one that is not in it has none of its own."""
    asked: list[tuple[str, int | None]] = []

    def answer_queries(model: Any, queries: Any, index: Any, options: Any, *, ranking: Any, device: str) -> Any:
        for item, row in queries:
            asked.append((item, row))
            ranked = SimpleNamespace(videos=(2, 0), starts_s=(1.5, 3.0), ends_s=(4.5, 6.0))
            own = None if row is None else SimpleNamespace(videos=(row,), starts_s=(0.0,), ends_s=(3.0,))
            yield QueryAnswer(
                cast(Any, SimpleNamespace(videos=(1, 2))), cast(Any, ranked if ranking else None), cast(Any, own if ranking else None)
            )

    monkeypatch.setattr(answering, "answer_queries", answer_queries)
    monkeypatch.setattr(answering, "index_videos", lambda model, videos, options, device: list(videos))
    maker = cast(Any, SimpleNamespace(options=None, item=lambda one: one, video=lambda name: name, query=lambda one: one.id))
    examples = [Example("street", "retrieval", "park", (("a dog",),)), Example("q2", "retrieval", "far", (("a cat",),))]
    corpus = ("street", "field", "park")
    ranking = RankingOptions()
    first, second = answer(cast(Any, None), BY_KEY["tvr"], examples, corpus, maker, ranking, cast(Any, None))
    assert asked == [("street", 2), ("q2", None)]
    moments = FoundMoments(videos=("park", "street"), starts_s=(1.5, 3.0), ends_s=(4.5, 6.0))
    own = FoundMoments(videos=("park",), starts_s=(0.0,), ends_s=(3.0,))
    assert first == {"value": Found(vcmr=moments, svmr=own, vr=("field", "park"))}
    assert second == {"value": Found(vcmr=moments, vr=("field", "park"))}
    (whole, _) = answer(cast(Any, None), BY_KEY["yc2r"], examples, corpus, maker, ranking, cast(Any, None))
    assert whole == {"value": Found(vr=("field", "park"))}, "videos as a whole have no moments"


def test_scores_on_val_are_percents_with_six_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    metric = SimpleNamespace(score=lambda pairs: SimpleNamespace(value=len(pairs) / 7))
    monkeypatch.setattr(trained_models, "value_metrics", lambda dataset: [metric])
    monkeypatch.setattr(trained_models, "answer", lambda *_, **__: [{"value": 1}])
    val = [SimpleNamespace(dataset=BY_KEY["vlep"], examples=(), corpus=(), samples=[SimpleNamespace(id="a")])]
    model, settings = torch.nn.Linear(1, 1), SimpleNamespace(ranking=RankingOptions())
    scores = trained_models._validate(cast(Any, model), cast(Any, val), {"vlep": cast(Any, None)}, cast(Any, settings), cast(Any, None))
    assert scores == {"vlep": 14.285714}


def test_scores_are_rounded_and_captions_are_words(monkeypatch: pytest.MonkeyPatch) -> None:
    said = [SimpleNamespace(value=1, scores=(0.12345678, 0.5)), SimpleNamespace(value=0, scores=(-1 / 3, -2.0))]
    monkeypatch.setattr(answering, "answer_questions", lambda model, items, options, device: iter(said[: len(list(items))]))
    monkeypatch.setattr(answering, "caption_items", lambda model, items, options, device: ([len(str(one))] for one in items))
    maker = cast(Any, SimpleNamespace(options=None, item=lambda one: one.id))
    encoder = cast(Any, SimpleNamespace(decode=lambda ids: f"caption {ids[0]}"))
    examples = [Example(name, "qa", "v", (("a",),)) for name in ("1", "22")]
    found = list(answer(cast(Any, None), BY_KEY["vlep"], examples, (), maker, RankingOptions(), encoder))
    assert found == [{"value": 1, "scores": (0.123457, 0.5)}, {"value": 0, "scores": (-0.333333, -2.0)}]
    found = list(answer(cast(Any, None), BY_KEY["tvc"], examples, (), maker, RankingOptions(), encoder))
    assert found == [{"value": "caption 1"}, {"value": "caption 2"}]


def record(*tasks: str, regime: str = "st", stage: str | None = None) -> TrainedHero:
    from vip.baselines.settings import merge
    from vip.baselines.value.settings import load_settings

    settings = load_settings(tasks[0], tasks, features=WIDTH, has_weights=True, assignments=merge([SMALL]))
    return TrainedHero(
        settings=settings,
        settings_sha256=settings.sha256,
        regime=regime,
        stage=stage or tasks[0],
        tasks=tasks,
        train_items={},
        val_items={},
        data_sha256="",
        is_finished=True,
    )


@pytest.mark.parametrize(
    ("tasks", "asked", "refused"),
    [
        (("tvqa",), "vlep", None),
        (("tvc", "tvqa"), "violin", None),
        (("tvqa",), "tvc", "was trained on tvqa, and value-tvc is of another kind"),
        (("yc2r",), "vatex_en_r", None),
        (("yc2r",), "tvr", "was trained on videos as a whole, and value-tvr asks for moments"),
        (("yc2r", "how2r"), "tvr", None),
        (("tvr",), "yc2r", None),
    ],
)
def test_a_model_answers_tasks_of_a_kind_that_it_learned(tasks: tuple[str, ...], asked: str, refused: str | None) -> None:
    if refused is None:
        trained_models._check_kind(record(*tasks), BY_KEY[asked], Path("run"))
    else:
        with pytest.raises(UsageError, match=refused):
            trained_models._check_kind(record(*tasks), BY_KEY[asked], Path("run"))


def test_a_model_of_pre_training_answers_no_task_and_tasks_are_named_once() -> None:
    for tasks, said in ((("mlm", "vsm"), "mlm, vsm"), (("tvc",) * 100, "tvc"), ((), "nothing")):
        trained = record("tvc").model_copy(update={"tasks": tasks})
        with pytest.raises(UsageError, match=f"was trained on {said}, and value-tvqa is of another kind"):
            trained_models._check_kind(trained, BY_KEY["tvqa"], Path("run"))


@pytest.mark.parametrize("table", ["model", "tasks"])
def test_a_value_in_the_place_of_a_table_is_one_sentence(table: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=rf"^{table} is a table of settings\. Write --set {table}\.NAME=VALUE"):
        train(folder, assignments=[f"{table}=5"])


def test_a_run_answers_samples_of_its_seed(folder: Path, trained: Trained) -> None:
    train(folder)
    write_lines(folder / "many.jsonl", [question(number, f"v{number % 3}") for number in range(20)])
    drawn = []
    for seed in (1, 1, 2):
        request = PredictRequest(
            task="value-tvqa",
            annotations=(str(folder / "many.jsonl"),),
            model=str(folder / "run"),
            settings=SampleSettings(most=4, seed=seed),
            features=[folder / "f"],
        )
        done = predict_with_hero(request, folder / "p.jsonl", overwrite=True, observer=Notes())
        rows = list(read_predictions(folder / "p.jsonl"))
        assert done.statuses == {"ok": 4}
        assert {row.engine for row in rows} == {done.engine} == {"model:hero st video+sub f"}
        assert [row.sample_id for row in rows] == [one.id for one in read_samples(folder / "p.samples.jsonl")]
        assert all(row.scores is not None and len(row.scores) == 5 and row.value == np.argmax(row.scores) for row in rows)
        drawn.append([row.sample_id for row in rows])
    assert drawn[0] == drawn[1] != drawn[2]
    with pytest.raises(UsageError, match="exists"):
        predict_with_hero(request, folder / "p.jsonl", observer=Notes())


def test_a_training_that_has_not_ended_says_so(folder: Path, trained: Trained) -> None:
    (done,), _ = train(folder)
    (folder / "run" / "tvqa" / run_folder.HERO).write_text(done.model_copy(update={"is_finished": False}).model_dump_json())
    observer = Notes()
    request = PredictRequest(
        task="value-tvqa", annotations=(str(folder / "tvqa_val_release.jsonl"),), model=str(folder / "run"), features=[folder / "f"]
    )
    predict_with_hero(request, folder / "p.jsonl", observer=observer)
    assert observer.notes == [f"The training of {folder / 'run' / 'tvqa'} has not ended: its best weights so far answer."]


@pytest.mark.parametrize("fusion", ["hero", "two-stream"])
def test_sizes_that_a_stranger_states_take_no_memory(fusion: str, folder: Path, trained: Trained) -> None:
    (done,) = train(folder, assignments=(*SETTINGS, f"model.fusion={fusion}"))[0]
    large = done.settings.model.model_copy(update={"hidden": 8192, "vocabulary": 1_000_000, "intermediate": 65_536, "cross_layers": 64})
    settings = done.settings.model_copy(update={"model": large})  # 400 GB
    changed = done.model_copy(update={"settings": settings, "settings_sha256": settings.sha256})
    (folder / "run" / "tvqa" / run_folder.HERO).write_text(changed.model_dump_json())
    request = PredictRequest(
        task="value-tvqa", annotations=(str(folder / "tvqa_val_release.jsonl"),), model=str(folder / "run"), features=[folder / "f"]
    )
    with pytest.raises(InputError, match=r"weights\.safetensors holds weights of another model, such as .* Train the model again"):
        predict_with_hero(request, folder / "p.jsonl", observer=Notes())


def test_the_corpus_is_that_of_the_index_and_its_split_or_of_the_queries(folder: Path) -> None:
    from vip.tasks.value.annotations import read_samples as read_annotations

    index = write_json(folder / "i.json", {"val": {"v2": [9, 2], "v1": [9, 1]}, "test": {"v0": [9, 0]}})
    path = write_lines(folder / "q.jsonl", [query(1, "v1"), query(2, "v0"), query(3, "v1")])
    samples = list(read_annotations(path, BY_KEY["tvr"]))
    request = PredictRequest(task="value-tvr", annotations=(), model="run")
    assert trained_models._corpus(BY_KEY["tvr"], samples, request) == ["v1", "v0"]
    whole = list(read_annotations(write_lines(folder / "w.jsonl", [{"desc_id": 1, "desc": "x", "vid_name": "v2"}]), BY_KEY["yc2r"]))
    assert trained_models._corpus(BY_KEY["yc2r"], whole, request) == ["v2"]
    assert trained_models._corpus(BY_KEY["tvqa"], [], request) == []
    for split, names in ((None, ["v2", "v1", "v0"]), ("test", ["v0"])):
        given = PredictRequest(task="value-tvr", annotations=(), model="run", video_index=index, settings=SampleSettings(split=split))
        assert trained_models._corpus(BY_KEY["tvr"], samples, given) == names
    hidden = list(read_annotations(write_lines(folder / "h.jsonl", [query(1, "v1"), {"desc_id": 2, "desc": "x"}]), BY_KEY["tvr"]))
    with pytest.raises(InputError, match="The videos of these queries are hidden"):
        trained_models._corpus(BY_KEY["tvr"], hidden, request)


def test_features_of_another_width_are_refused(folder: Path, trained: Trained) -> None:
    train(folder)
    (folder / "g").mkdir()
    np.savez(folder / "g/v2.npz", features=np.ones((6, WIDTH + 1), np.float16))
    request = PredictRequest(
        task="value-tvqa", annotations=(str(folder / "tvqa_val_release.jsonl"),), model=str(folder / "run"), features=[folder / "g"]
    )
    with pytest.raises(InputError, match="The features have 7 numbers a frame, and the model was trained on 6"):
        predict_with_hero(request, folder / "p.jsonl", observer=Notes())


# ---------------------------------------------------------------- published weights


def hero(seed: int, **changed: Any) -> Any:
    sizes = {"features": WIDTH, "vocabulary": 272, "positions": 66, "caption_positions": 66, "frame_positions": 20}
    return tiny(seed=seed, spread=0.3, **{"hidden": 64, "heads": 1, **sizes, **changed})


@pytest.mark.parametrize("fusion", ["hero", "two-stream"])
def test_a_checkpoint_begins_every_stream_and_says_what_it_gave(fusion: str, tmp_path: Path) -> None:
    published, model, observer = hero(1), hero(2, fusion=fusion), Notes()
    torch.save(to_published(published), tmp_path / "a:b.pt")
    trained_models.load_weights(model, f"hero:{tmp_path / 'a:b.pt'}", observer)
    streams = [model.video, model.subtitles] if fusion == "two-stream" else [model]
    expected = published.state_dict()
    assert all(torch.equal(value, expected[name]) for one in streams for name, value in one.state_dict().items())
    assert [note.partition(": ")[0] for note in observer.notes] == [str(tmp_path / "a:b.pt")] * len(streams)


@pytest.mark.slow
def test_a_roberta_gives_words_alone_and_without_weights_a_model_stays_as_it_was_drawn(tmp_path: Path) -> None:
    model, observer = hero(2), Notes()
    drawn = {name: value.clone() for name, value in model.state_dict().items()}
    trained_models.load_weights(model, None, observer)
    assert (observer.notes, all(torch.equal(value, drawn[name]) for name, value in model.state_dict().items())) == ([], True)
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 272, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 1, "intermediate_size": 32}
    config = transformers.RobertaConfig(**sizes, max_position_embeddings=66, type_vocab_size=1)
    roberta = transformers.RobertaForMaskedLM(config)
    torch.save(roberta.state_dict(), tmp_path / "r.bin")
    trained_models.load_weights(model, f"roberta:{tmp_path / 'r.bin'}", observer)
    changed = {name.partition(".")[0] for name, value in model.state_dict().items() if not torch.equal(value, drawn[name])}
    assert changed == {"encoder"}
    assert torch.equal(model.encoder.words.weight, roberta.roberta.embeddings.word_embeddings.weight)
    with pytest.raises(InputError):
        trained_models.load_weights(model, f"hero:{tmp_path / 'r.bin'}", observer)


def test_weights_are_those_of_one_training_that_is_named(folder: Path, trained: Trained) -> None:
    train(folder, tasks=["tvqa", "tvc"])
    model = hero(3)
    with pytest.raises(UsageError, match=r"run holds 2 trained models\. Name the folder of one: --weights run/at"):
        trained_models.load_weights(model, str(folder / "run"), Notes())
    with pytest.raises(UsageError, match="holds 0 trained models"):
        trained_models.load_weights(model, str(folder / "f"), Notes())
    with pytest.raises(InputError, match="holds weights of another model"):
        trained_models.load_weights(model, str(folder / "run" / "tvqa"), Notes())


@pytest.mark.slow
def test_a_checkpoint_answers_by_its_own_sizes_with_a_tokenizer_that_is_named(folder: Path) -> None:
    torch.save(to_published(hero(1)), folder / "hero.pt")
    named: dict[str, Any] = {"task": "value-tvqa", "annotations": (str(folder / "tvqa_val_release.jsonl"),), "features": [folder / "f"]}
    request = PredictRequest(model=f"hero:{folder / 'hero.pt'}", **named)
    with pytest.raises(UsageError, match=r"A checkpoint has no tokenizer\. Name the folder of RoBERTa's: --tokenizer DIR"):
        predict_with_hero(request, folder / "p.jsonl", observer=Notes())
    observer = Notes()
    done = predict_with_hero(replace(request, tokenizer=folder / "tok"), folder / "p.jsonl", observer=observer)
    assert (done.task, done.engine, done.statuses) == ("value-tvqa", "model:hero hero.pt", {"ok": 1})
    assert [note.partition(": ")[0] for note in observer.notes] == [str(folder / "hero.pt")]
    tensors = {name: one for name, one in to_published(hero(1)).items() if not name.startswith(("qa_", "st_ed_"))}
    torch.save(tensors, folder / "hero.pt")
    with pytest.raises(InputError, match="has no head for qa"):
        predict_with_hero(replace(request, tokenizer=folder / "tok"), folder / "p.jsonl", overwrite=True, observer=Notes())
    with pytest.raises(UsageError, match=r"run is a model of VALUE, and fiber is none of its tasks"):
        predict_with_hero(PredictRequest(model="run", **named | {"task": "fiber"}), folder / "q.jsonl", observer=Notes())


def test_a_training_needs_a_tokenizer_or_weights_beside_one(folder: Path, trained: Trained) -> None:
    with pytest.raises(UsageError, match=r"Name the folder of RoBERTa's tokenizer, with vocab\.json and merges\.txt: --tokenizer DIR"):
        train(folder, tokenizer=None)
    (folder / "run" / "tvqa" / "tokenizer").mkdir(parents=True)
    write_tokenizer(folder / "run" / "tvqa" / "tokenizer")
    with pytest.raises(UsageError, match="Name the folder of RoBERTa's tokenizer"):
        train(folder, tokenizer=None)
    assert trained.calls == []
    train(folder)
    train(folder, tokenizer=None, out=folder / "next", weights=str(folder / "run" / "tvqa"))
    assert len(trained.calls) == 2
