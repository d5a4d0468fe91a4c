"""The judge: strict verdicts, a name that says what judged, and people to hold it against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.tasks.scoring import WordTask, answer, joined, sample
from vip.config import CaptionSettings
from vip.errors import InputError, ReplyError
from vip.models.fake import FakeEngine
from vip.protocols import Reply, Request, SilentObserver
from vip.tasks.judge import JudgeMetric, calibrate, engine_judge, read_labels, read_verdict
from vip.tasks.pairs import JoinedFile
from vip.tasks.records import Score, TaskResult
from vip.tasks.score import score
from vip.tasks.score_tables import score_tables

SAMPLES = [sample(str(n), "a dog", video=f"v{n}") for n in range(8)]


class WordJudge:
    """Calls an answer correct where it says `dog`; gives no verdict on a cat."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, prompts: Sequence[str]) -> list[str | None]:
        self.asked += prompts
        answers = [prompt.partition("Answer to check:")[2].partition("\n")[0] for prompt in prompts]
        return ["I think so" if "cat" in text else f'{{"correct": {str("dog" in text).lower()}}}' for text in answers]


def judged(folder: Path, labels: dict[str, bool] | None = None) -> tuple[TaskResult, WordJudge, str]:
    words = ["a dog", "the dog", "dog", "a fox", "a fox", "a cat", "dog"]
    rows = [answer(one, word) for one, word in zip(SAMPLES, words, strict=False)] + [answer(SAMPLES[7], status="refused")]
    judge = WordJudge()
    metric = JudgeMetric("openai:judge", judge, labels)
    return score(file_of(folder, rows), WordTask(), [metric]).result, judge, metric.name


def file_of(folder: Path, rows: Sequence[object]) -> JoinedFile:
    return joined(folder, SAMPLES, rows)  # type: ignore[arg-type]


def test_a_verdict_that_cannot_be_read_is_none_and_never_guessed(tmp_path: Path) -> None:
    result, judge, name = judged(tmp_path)
    found = result.metrics[name]
    assert found.value == pytest.approx(100 * 4 / 8)
    assert found.value_answered == pytest.approx(100 * 4 / 6, abs=1e-4)
    assert found.without_value == 1
    assert len(judge.asked) == 7  # not about the answer that was refused
    assert result.unscored == {"refused": 1}


def test_its_name_says_who_judged_by_which_prompt(tmp_path: Path) -> None:
    _, judge, name = judged(tmp_path)
    assert name.startswith("judge:openai:judge@")
    assert len(name.partition("@")[2]) == 8
    assert "Question: 1 keyframes to describe" in judge.asked[0]
    assert "References, each of which is right on its own:\n- a dog\n\nAnswer to check: a dog\n" in judge.asked[0]
    assert "\n- a dog\n\nAnswer to check: a fox\n" in judge.asked[3]


@pytest.mark.parametrize(
    ("reply", "verdict"),
    [
        ('{"correct": true}', True),
        (' {"correct": false} ', False),
        ('{"correct": "true"}', None),
        ('{"correct": 1}', None),
        ('{"correct": true, "why": "x"}', None),
        ("yes", None),
        ("[true]", None),
        (None, None),
    ],
)
def test_verdicts_are_read_strictly(reply: str | None, verdict: bool | None) -> None:
    assert read_verdict(reply) is verdict


def test_it_is_held_against_people_and_its_mean_corrected(tmp_path: Path) -> None:
    labels = {SAMPLES[place].id: place not in (2, 4) for place in range(5)}
    result, _, name = judged(tmp_path, labels)
    found = result.metrics[name].calibration
    assert found is not None
    assert (found.labelled, found.agreement, found.base_rate) == (5, pytest.approx(0.6), pytest.approx(0.6))
    assert (found.sensitivity, found.specificity) == (pytest.approx(2 / 3, abs=1e-6), pytest.approx(0.5))
    assert found.corrected == pytest.approx(100 * (0.5 + 0.5 - 1) / (2 / 3 + 0.5 - 1))
    (note,) = [note for note in score_tables([result])[0].notes if "agrees with people" in note]
    assert "60.0 % of 5 answers (κ 0.17, base rate 60.0 %)" in note


def test_labels_of_other_samples_are_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No sample has the verdicts of both judge and people"):
        judged(tmp_path, {"other": True})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id,correct\n", "lacks the columns sample_id,correct"),
        ("sample_id,correct\na,yes\nb,maybe\n", 'line 3: "maybe", which is neither yes nor no'),
        ("sample_id,correct\na,yes\na,no\n", "line 3: a second label of one sample"),
        (f"sample_id,correct\na,{'y' * 200_000}\n", "is no CSV"),
    ],
)
def test_damaged_labels_are_named_by_their_line(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    with pytest.raises(InputError, match=said):
        read_labels(tmp_path / "labels.csv")


def test_labels_are_words_or_digits(tmp_path: Path) -> None:
    words = ("Yes", "1", "true", "correct", "0", " no ", "False", "WRONG")
    lines = [f"s{place},{word},x" for place, word in enumerate(words)]
    (tmp_path / "labels.csv").write_text("\n".join(["sample_id,correct,by", *lines]), encoding="utf-8-sig")
    assert read_labels(tmp_path / "labels.csv") == {f"s{place}": place < 4 for place in range(8)}
    (tmp_path / "labels.csv").write_bytes(b"sample_id,correct\n\xff,1\n")
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_labels(tmp_path / "labels.csv")
    with pytest.raises(InputError, match="cannot be read"):
        read_labels(tmp_path / "none.csv")


def test_an_answer_without_a_verdict_is_not_held_against_people(tmp_path: Path) -> None:
    result, _, name = judged(tmp_path, {SAMPLES[place].id: place == 5 or place < 3 for place in (0, 3, 5, 7)})
    found = result.metrics[name].calibration
    assert found is not None
    assert (found.labelled, found.agreement, found.sensitivity, found.specificity) == (2, 1.0, 1.0, 1.0)
    assert found.low is not None
    assert found.high is not None
    assert 0 <= found.low < (found.corrected or 0) == 50.0 < found.high <= 100


def test_samples_of_few_videos_make_the_corrected_mean_less_certain() -> None:
    ids = [str(number) for number in range(40)]
    labels = {name: int(name) % 2 == 0 for name in ids}
    verdicts = [float(int(name) % 2 == 0 or int(name) < 4) for name in ids]

    def width(standard_error: float | None) -> float:
        found = calibrate(ids, verdicts, labels, Score(value=50, value_answered=50, n=400, standard_error=standard_error, signature="x"))
        assert found.low is not None
        assert found.high is not None
        return found.high - found.low

    independent = 100 * (0.25 / 400) ** 0.5
    assert width(independent) == pytest.approx(width(None))
    assert width(4 * independent) > 1.5 * width(None)
    assert width(independent / 4) == pytest.approx(width(None)), "clusters are never worth more than their samples"


def test_an_engine_that_only_reads_may_judge_and_replies_keep_their_places(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def generate(self: FakeEngine, request: Request) -> Reply:
        if request.prompt == "b":
            raise ReplyError("It would not say.", kind="refusal")
        return Reply(f'{{"correct": {str(request.prompt == "c").lower()}}}', model="fake")

    monkeypatch.setattr(FakeEngine, "generate", generate)
    monkeypatch.setattr(FakeEngine, "capabilities", replace(FakeEngine.capabilities, sees=False))
    judge = engine_judge(CaptionSettings(engine="fake"), labels={"x": True}, observer=SilentObserver())
    assert list(map(read_verdict, judge.ask(["a", "b", "c", "a"]))) == [False, None, True, False]
    assert (judge.engine, judge.labels) == ("fake", {"x": True})
