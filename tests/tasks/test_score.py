"""Values, error bars, groups and what has no answer."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.tasks.scoring import Lacking, WordShare, WordTask, answer, joined, sample, write
from vip.errors import BackendError, InputError, UsageError
from vip.metrics import Pair, Result
from vip.metrics.statistics import DifferenceTest, Floats, bootstrap_weighted, compare_groups, estimate_mean
from vip.tasks.infilling import VideoInfilling
from vip.tasks.pairs import JoinedFile, Pairs, join_files
from vip.tasks.records import Prediction, Sample
from vip.tasks.score import MOST_ENGINES, _named, choose_metrics, frame_budget, is_mean, score

DOMAINS = (("Games",), ("Sports",), ("Games", "Sports"), ("Games",), ("Sports",), ("Games",))
SAMPLES = [sample(str(n), "a b", "c d", video=f"v{n // 2}", groups={"domain": DOMAINS[n]}) for n in range(6)]
WORDS = [("a b", "c d"), ("a x", "c d"), ("x", "y"), ("a b", "c"), (), ("a", "y")]
VALUES = (1.0, 0.75, 0.0, 0.75, 0.0, 0.25)


def scored_file(folder: Path, words: Sequence[tuple[str, ...]] = WORDS) -> JoinedFile:
    return joined(
        folder, SAMPLES, [answer(one, *some, status="ok" if some else "unparsed") for one, some in zip(SAMPLES, words, strict=True)]
    )


def test_the_value_is_the_mean_over_samples_of_the_mean_over_keyframes(tmp_path: Path) -> None:
    done = score(scored_file(tmp_path), WordTask(), WordTask().metrics)
    assert done.values["word-share"] == pytest.approx(VALUES)
    found = done.result.metrics["word-share"]
    assert found.value == pytest.approx(100 * sum(VALUES) / 6, abs=1e-6)
    assert found.n == 6


def test_no_answer_counts_as_wrong_and_apart_and_is_listed(tmp_path: Path) -> None:
    result = score(scored_file(tmp_path), WordTask(), WordTask().metrics).result
    found = result.metrics["word-share"]
    assert found.value_answered == pytest.approx(100 * sum(VALUES) / 5, abs=1e-6)
    assert found.value is not None
    assert found.value_answered > found.value
    assert (result.unscored, result.unscored_ids) == ({"unparsed": 1}, (SAMPLES[4].id,))
    assert found.without_value == 0, "it is counted once"


def test_intervals_are_clustered_by_video(tmp_path: Path) -> None:
    found = score(scored_file(tmp_path), WordTask(), WordTask().metrics).result.metrics["word-share"]
    expected = estimate_mean(VALUES, [one.video for one in SAMPLES])
    assert (found.low, found.high) == (
        pytest.approx(100 * (expected.low or 0), abs=1e-5),
        pytest.approx(100 * (expected.high or 0), abs=1e-5),
    )
    assert found.no_interval is None


def test_a_sample_in_two_groups_counts_in_both(tmp_path: Path) -> None:
    groups = score(scored_file(tmp_path), WordTask(), WordTask().metrics).result.metrics["word-share"].groups["domain"]
    assert (groups["Games"].n, groups["Sports"].n) == (4, 3)
    assert groups["Games"].value == pytest.approx(100 * (1 + 0 + 0.75 + 0.25) / 4)
    assert groups["Sports"].value == pytest.approx(100 * 0.75 / 3)


def test_two_groups_are_held_against_each_other(tmp_path: Path) -> None:
    (contrast,) = score(scored_file(tmp_path), WordTask(), WordTask().metrics).result.metrics["word-share"].contrasts
    masks = [[name in domains for domains in DOMAINS] for name in ("Games", "Sports")]
    expected = compare_groups(VALUES, [one.video for one in SAMPLES], *masks)
    assert (contrast.first, contrast.second) == ("Games", "Sports")
    assert contrast.difference == pytest.approx(100 * expected.difference.value, abs=1e-5)
    assert contrast.p_value == pytest.approx(expected.p_value, abs=1e-6)
    ends = expected.difference.standard_error, expected.difference.low, expected.difference.high
    assert (contrast.standard_error, contrast.low, contrast.high) == pytest.approx([100 * (one or 0) for one in ends], abs=1e-5)


def test_famous_has_its_components_as_parts(tmp_path: Path) -> None:
    one = sample("0", "a b", famous=True)
    found = score(joined(tmp_path, [one], [answer(one, "a")]), WordTask(), WordTask().metrics).result.metrics["word-share"]
    assert list(found.parts) == ["focus", "action", "mood", "objects", "setting"]
    assert found.value == pytest.approx(math.fsum(part.value or 0 for part in found.parts.values()) / 5)
    assert found.no_interval is not None


class LargestLength:
    """A value that is no mean: the longest prediction, in tenths of letters."""

    name, needs, signature = "largest", (), "largest|v:1"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        lengths = [len(str(prediction.value)) for _, prediction in pairs]
        return Result(value=max(lengths) / 1000, value_answered=None, per_sample=None, n=len(pairs), unscored={}, signature=self.signature)


def test_a_metric_that_is_no_mean_scores_each_group_again_and_draws_clusters(tmp_path: Path) -> None:
    file = scored_file(tmp_path)
    first, second = (score(file, WordTask(), [LargestLength()]) for _ in range(2))
    found = first.result.metrics["largest"]
    assert found.low is not None
    assert found.low < found.high <= found.value  # type: ignore[operator]
    assert first.result == second.result
    assert found.groups["domain"]["Sports"].value == LargestLength().score([file.pairs[index] for index in (1, 2, 4)]).value * 100  # type: ignore[operator]
    assert not first.values
    assert not found.contrasts
    assert found.n == 6, "the sample without an answer counts"


def test_a_value_that_takes_too_long_to_draw_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.score.MOST_RESCORED", 10)
    found = score(scored_file(tmp_path), WordTask(), [LargestLength()]).result.metrics["largest"]
    assert (found.low, found.no_interval) == (None, "The value is no mean over samples, and drawing so many again would take too long.")


def test_the_result_names_what_must_be_equal(tmp_path: Path) -> None:
    result = score(scored_file(tmp_path), WordTask(), WordTask().metrics).result
    assert result.budget is not None
    assert result.budget.label == "text only, 2 described keyframes"
    assert result.parameters == {"representation": "dense", "targets": "2"}
    assert result.engine == "engine"
    assert len(result.predictions_sha256) == 64
    assert str(tmp_path) not in result.model_dump_json()


@pytest.mark.parametrize("version", [0, 7])
def test_samples_of_another_version_are_refused(version: int, tmp_path: Path) -> None:
    one = sample("0", "a", version=version)
    with pytest.raises(InputError, match=f"made for version {version} of infilling-1, and this vip has version 1"):
        score(joined(tmp_path, [one], [answer(one, "a")]), WordTask(), WordTask().metrics)


@pytest.mark.parametrize(
    ("words", "said"),
    [(("a", "b"), "is not a list of 1 dense captions"), (("a",), None)],
)
def test_a_prediction_of_another_number_of_keyframes_is_refused(tmp_path: Path, words: tuple[str, ...], said: str | None) -> None:
    one = sample("0", "a")
    file = joined(tmp_path, [one], [answer(one, *words)])
    if said is None:
        score(file, WordTask(), WordTask().metrics)
        return
    with pytest.raises(InputError, match=said):
        score(file, WordTask(), WordTask().metrics)


def test_both_representations_in_one_file_are_refused(tmp_path: Path) -> None:
    mixed = [sample("0", "a"), sample("1", "a", famous=True)]
    with pytest.raises(InputError, match="both FAMOuS and dense captions"):
        score(joined(tmp_path, mixed, [answer(one, "a") for one in mixed]), WordTask(), WordTask().metrics)


def test_metrics_that_lack_something_are_left_out_with_a_note_unless_asked_for() -> None:
    task, notes = WordTask(Lacking()), list[str]()
    assert [metric.name for metric in choose_metrics(task, (), notes.append)] == ["word-share"]
    assert notes == ["Left out lacking: The metric lacking needs nothing-like-it. Run `pip install nothing-like-it`."]
    for wanted in (("lacking",), ("all",)):
        with pytest.raises(BackendError, match="nothing-like-it"):
            choose_metrics(task, wanted, notes.append)
    with pytest.raises(UsageError, match=r'no metric "word-shar".*Did you mean "word-share"'):
        choose_metrics(task, ("word-shar",), notes.append)


def test_where_no_metric_works_the_first_says_why() -> None:
    task = WordTask()
    task.inner = (Lacking(),)
    with pytest.raises(BackendError, match="nothing-like-it"):
        choose_metrics(task, (), lambda text: None)


@pytest.mark.slow
def test_another_process_in_another_folder_writes_the_same_bytes(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from tests.tasks.test_score import *; from vip import store;"
        "store.write_json(Path('r.json'), score(scored_file(Path('.')), WordTask(), [*WordTask().metrics, LargestLength()]).result)"
    )
    for number in (1, 2):
        folder = tmp_path / str(number)
        folder.mkdir()
        root = Path(__file__).parents[2]
        environment = {"PYTHONPATH": str(root), "PYTHONHASHSEED": str(number), "PATH": ""}
        subprocess.run([sys.executable, "-c", code], cwd=folder, check=True, env=environment, timeout=120)
    first, second = ((tmp_path / name / "r.json").read_bytes() for name in "12")
    assert first == second
    assert json.loads(first)["metrics"]["word-share"]["value"] == pytest.approx(45.833333)


@pytest.mark.slow
@pytest.mark.extra("rouge_score")
@pytest.mark.skipif(sys.platform != "linux", reason="memory as Linux tells it")
def test_memory_does_not_grow_with_the_samples(tmp_path: Path) -> None:
    text = " ".join(f"word{n}" for n in range(100))
    code = (
        "import re, sys; from pathlib import Path; from vip.tasks.score_files import *;"
        "score_files([Path(sys.argv[1])], ScoreOptions(metrics=('rouge-l',)));"
        "print(re.search(r'VmHWM:\\s+(\\d+)', Path('/proc/self/status').read_text())[1])"  # that of getrusage has the parent's too
    )
    peaks = []
    for count in (500, 4000):
        folder = tmp_path / str(count)
        folder.mkdir()
        rows = [sample(str(n), text, text, text, video=f"v{n // 4}") for n in range(count)]
        joined(folder, rows, [answer(one, text, text, text) for one in rows])
        done = subprocess.run(
            [sys.executable, "-c", code, folder / "predictions.jsonl"], capture_output=True, text=True, check=True, timeout=120
        )
        peaks.append(int(done.stdout) / 1024)
    assert peaks[1] - peaks[0] < 25  # MB; the texts of the 3,500 more have 21 MB, and as records three times that


def test_word_share_is_what_these_tests_take_it_for() -> None:
    from vip.metrics import Pair

    assert WordShare().score([Pair("a x", "a b"), Pair(None, "a", "failed")]).per_sample == (0.5, None)


@pytest.mark.extra("rouge_score")
def test_an_encoder_of_ones_own_is_for_metrics_that_have_one() -> None:
    chosen = choose_metrics(VideoInfilling(), ["rouge-l"], lambda note: None)
    assert [metric.name for metric in chosen] == ["rouge-l"]
    for name, message in (
        ("rouge-l:x", "rouge-l has no encoder. Leave :x out."),
        ("rouge:x", 'The task infilling has no metric "rouge:x". Did you mean "rouge-l"?'),
    ):
        with pytest.raises(UsageError, match=re.escape(message)):
            choose_metrics(VideoInfilling(), [name], lambda note: None)


@pytest.mark.slow
@pytest.mark.extra("sentence_transformers")
def test_sentence_bert_scores_by_an_encoder_in_a_folder(tmp_path: Path) -> None:
    from tests.metrics.tiny_encoders import save_sentence_bert
    from vip.metrics.sentence_bert import SentenceBert

    folder = save_sentence_bert(tmp_path / "encoder")
    metrics = choose_metrics(VideoInfilling(), [f"sentence-bert:{folder}"], lambda note: None)
    samples = [sample(str(place), "the dog runs", video=str(place)) for place in range(2)]
    done = score(joined(tmp_path, samples, [answer(one, "a cat sits") for one in samples]), VideoInfilling(), metrics)
    (alone,) = SentenceBert(str(folder)).score([Pair("a cat sits", "the dog runs")]).per_sample or ()
    assert done.result.metrics["sentence-bert"].value == pytest.approx(100 * (alone or 0.0), abs=1e-4)
    assert "|encoder:saved@" in done.result.metrics["sentence-bert"].signature


def test_a_result_names_the_first_engines_of_a_file_that_names_many(tmp_path: Path) -> None:
    many = [sample(str(n), "a b", "c d") for n in range(30)]
    rows = [answer(one, "a b", "c d", engine=f"{n} {'x' * 1000}") for n, one in enumerate(many)]
    named = score(joined(tmp_path, many, rows), WordTask(), WordTask().metrics).result.engine
    assert named is not None
    assert [name.split()[0] for name in named.split(", ")] == [*map(str, range(20)), "…"]
    assert len(named) < 20 * 310


def test_a_group_that_a_sample_names_twice_counts_it_once(tmp_path: Path) -> None:
    twice, once = sample("0", "a", groups={"domain": ("Games", "Games")}), sample("1", "b", groups={"domain": ("Games",)})
    done = score(joined(tmp_path, [twice, once], [answer(twice, "a"), answer(once, "x")]), WordTask(), WordTask().metrics)
    group = done.result.metrics["word-share"].groups["domain"]["Games"]
    assert (group.n, group.value) == (2, 50.0)


def test_however_many_groupings_there_are_each_looks_at_its_own_samples_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole: list[Result] = []
    compared: list[int] = []

    def noted_mean(result: Result) -> bool:
        whole.extend([result] if len(result.per_sample or ()) == 50 else [])
        return is_mean(result)

    def noted_test(values: Sequence[float], clusters: Sequence[str], *masks: Sequence[bool]) -> DifferenceTest:
        compared.append(len(values))
        return compare_groups(values, clusters, *masks)

    monkeypatch.setattr("vip.tasks.score.is_mean", noted_mean)
    monkeypatch.setattr("vip.tasks.score.compare_groups", noted_test)
    names = [f"g{place}" for place in range(100)]
    some = [sample(str(n), "a b", video=f"v{n}", groups={name: (str(n),) for name in names} if n < 2 else {}) for n in range(50)]
    score(joined(tmp_path, some, [answer(one, "a") for one in some]), WordTask(), WordTask().metrics)
    assert len(whole) < 5
    assert compared == [2] * len(names)


def test_a_metric_that_is_no_mean_scores_no_more_groups_again_than_its_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.score.MOST_RESCORED_GROUPS", 1)
    groups = score(scored_file(tmp_path), WordTask(), [LargestLength()]).result.metrics["largest"].groups["domain"]
    assert groups["Games"].value is not None
    assert (groups["Sports"].value, groups["Sports"].n) == (None, 3)
    assert groups["Sports"].no_interval == "The value is no mean over samples, and is scored again for the first 1 groups alone."


def test_three_groups_have_a_value_each_and_no_difference(tmp_path: Path) -> None:
    three = [sample(name, name, groups={"type": (name,)}) for name in "abc"]
    found = score(joined(tmp_path, three, [answer(one, "a") for one in three]), WordTask(), WordTask().metrics).result.metrics["word-share"]
    assert (sorted(found.groups["type"]), found.contrasts) == (["a", "b", "c"], ())


@pytest.mark.parametrize(
    ("facts", "label"),
    [
        ({}, None),
        ({"described": (2, 2)}, "text only, 2 described keyframes"),
        ({"described": (0, 3)}, "text only, 0 to 3 described keyframes"),
        ({"pictures": (8, 8)}, "8 frames"),
        ({"pictures": (3, 8)}, "8 frames, 3 at least"),
        ({"pictures": (1, 1), "frames_chosen": ("vip", "evenly spaced")}, "1 frame, vip or evenly spaced"),
        ({"pictures": (2, 2), "described": (2, 2), "engines": ("baseline:copy-nearest",)}, "2 frames, 2 described keyframes"),
        ({"pictures": (8, 8), "engines": ("baseline:random", "baseline:longest")}, "text only"),
        ({"pictures": (8, 8), "engines": ("baseline:random", "openai:m")}, "8 frames"),
        ({"pictures": (8, 8), "parameters": {"longest_side_px": "512"}}, "8 frames, 512 px"),
        ({"pictures": (8, 8), "parameters": {"longest_side_px": ["512", "768"]}}, "8 frames"),
        ({"pictures": (8, 8), "parameters": {"longest_side_px": "²"}}, "8 frames"),
        ({"pictures": (8, 8), "parameters": {"longest_side_px": "5" * 5000}}, "8 frames"),
    ],
)
def test_the_budget_of_frames_is_what_the_samples_say(facts: dict[str, object], label: str | None) -> None:
    file = JoinedFile(name="p", task="t", task_version=1, pairs=Pairs((), (), ()), statuses=(), **facts)  # type: ignore[arg-type]
    budget = frame_budget(file)
    assert (budget and budget.label) == label


def test_what_was_left_out_and_who_answered_stand_in_the_result_and_twenty_samples_without_an_answer(tmp_path: Path) -> None:
    samples = [sample(str(number), "a", video=f"v{number}") for number in range(31)]
    rows = [answer(one, "a", engine="first") for one in samples[:5]] + [
        answer(one, status="refused", engine="two") for one in samples[5:30]
    ]
    file = join_files(write(tmp_path / "s.jsonl", samples), write(tmp_path / "p.jsonl", rows), missing="leave-out")
    result = score(file, WordTask(), WordTask().metrics).result
    assert (result.n, result.left_out, result.engine, result.unscored) == (30, 1, "first, two", {"refused": 25})
    assert result.unscored_ids == tuple(one.id for one in samples[5:25])


def test_a_file_that_answers_nothing_has_no_score(tmp_path: Path) -> None:
    file = join_files(write(tmp_path / "s.jsonl", SAMPLES), write(tmp_path / "p.jsonl", []), missing="leave-out")
    with pytest.raises(InputError, match=r"p\.jsonl answers none of the samples, so there is no score"):
        score(file, WordTask(), WordTask().metrics)


class Other(WordShare):
    """The same metric by another name."""

    name = "other"


def test_all_metrics_of_the_task_are_chosen_once_and_in_its_order() -> None:
    task = WordTask(Other())
    for wanted, names in (
        ((), ["word-share", "other"]),
        (("all",), ["word-share", "other"]),
        (("other",), ["other"]),
        (("other", "all", "other"), ["other", "word-share"]),
    ):
        assert [metric.name for metric in choose_metrics(task, wanted, lambda text: None)] == names


class WeightedLength(LargestLength):
    """A value that is no mean and draws by weights: the mean length of those drawn, in tenths of letters, less a tenth."""

    name = "weighted"

    def resampler(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Callable[[Floats], float]:
        lengths = [len(str(prediction.value)) / 1000 for _, prediction in pairs]
        return lambda weights: float(weights @ lengths / weights.sum())


def test_a_metric_that_draws_by_weights_has_an_interval_of_however_many_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.score.MOST_RESCORED", 10)
    file = scored_file(tmp_path)
    found = score(file, WordTask(), [WeightedLength()]).result.metrics["weighted"]
    lengths = [len(str(prediction.value)) / 1000 for _, prediction in file.pairs]
    clusters = [one.video for one in SAMPLES]
    expected = bootstrap_weighted(lambda weights: float(weights @ lengths / weights.sum()), clusters, seed=0, draws=1000)
    assert (found.low, found.high) == pytest.approx((100 * (expected.low or 0), 100 * (expected.high or 0)), abs=1e-6)


def test_a_value_that_is_none_has_no_interval_and_says_so(tmp_path: Path) -> None:
    class Nothing(LargestLength):
        def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
            return Result(value=None, value_answered=None, per_sample=None, n=0, unscored={}, signature="x")

    found = score(scored_file(tmp_path), WordTask(), [Nothing()]).result.metrics["largest"]
    assert (found.value, found.low, found.no_interval, found.without_value) == (None, None, "There is no value.", 0)


@pytest.mark.parametrize("more", [0, 1])
def test_as_many_engines_as_a_result_names_are_all_there_are(more: int) -> None:
    names = [f"e{number}" for number in range(MOST_ENGINES + more)]
    assert _named(names) == ", ".join([*names[:MOST_ENGINES], *["…"] * more])
    assert _named([]) is None


class OfAnotherSection(LargestLength):
    """A metric of what the file has no answers of."""

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        return Result(value=None, value_answered=None, per_sample=(), n=0, unscored={}, signature="x")


def test_a_metric_without_a_single_answer_has_no_value_anywhere(tmp_path: Path) -> None:
    done = score(scored_file(tmp_path), WordTask(), [OfAnotherSection(), *WordTask().metrics])
    found = done.result.metrics["largest"]
    assert {found.value, *(one.value for one in found.groups.get("domain", {}).values())} == {None}
    assert list(done.values) == ["word-share"]
