"""A judge: an engine that says whether an open answer is correct. Off by default; its name and prompt stand in the name of its score.

In: samples with references and predictions in words. Out: a `Result` with 1 or 0 a sample. A verdict that cannot be read is no verdict: it
is counted, and never guessed. Where people judged some of the answers too, `calibrate` says how far the judge can be believed.
"""

from __future__ import annotations

import asyncio
import csv
import io
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from vip import files
from vip.captioning.run_async import run_async
from vip.captioning.session import check_engine, open_session
from vip.config import CaptionSettings
from vip.errors import InputError, ReplyError
from vip.metrics import Pair, Result
from vip.metrics.judge_agreement import correct_share, judge_agreement
from vip.metrics.metric import score_mean
from vip.protocols import Observer, Request
from vip.tasks.fiber.hits import unguard_cell
from vip.tasks.files import csv_errors
from vip.tasks.keyframe_task import task_prompt
from vip.tasks.page_samples import question_of, reference_texts, value_texts
from vip.tasks.records import JudgeCalibration, Prediction, Sample, Score
from vip.untrusted import one_line, parse_json

Ask = Callable[[Sequence[str]], list[str | None]]
"""Returns the reply to each prompt, or None where there is none."""

MOST_TOKENS = 64
WAITING = 64  # questions in flight, at most; the limiter of the engine may want fewer
SCHEMA = {"type": "object", "properties": {"correct": {"type": "boolean"}}, "required": ["correct"], "additionalProperties": False}
YES, NO = frozenset({"1", "true", "yes", "correct"}), frozenset({"0", "false", "no", "wrong"})
MOST_LABEL_BYTES = 64 * 2**20


class JudgeMetric:
    """The share of the answers that an engine calls correct.

    Args:
        engine: its name.
        ask: asks it.
        labels: verdicts of people on some of the answers, by the ids of the samples.
    """

    needs = ("an engine",)

    def __init__(self, engine: str, ask: Ask, labels: Mapping[str, bool] | None = None) -> None:
        self.engine, self.ask, self.labels = engine, ask, labels
        self.prompt = task_prompt("judge")
        self.name = f"judge:{engine}@{self.prompt.sha256[:8]}"

    @property
    def signature(self) -> str:
        return f"judge|v:1|engine:{self.engine}|prompt:{self.prompt.name} {self.prompt.version}@{self.prompt.sha256[:12]}|greedy"

    def check(self) -> None:
        pass

    def score(self, pairs: Sequence[tuple[Sample, Prediction]]) -> Result:
        """Return the share of answers that are called correct; an answer without a verdict is `failed`."""
        rows = [(sample, prediction) for sample, prediction in pairs]
        answered = [place for place, (_, prediction) in enumerate(rows) if prediction.status == "ok"]
        replies = self.ask([self._question(*rows[place]) for place in answered])
        verdicts = {place: read_verdict(reply) for place, reply in zip(answered, replies, strict=True)}
        judged = [_judged(prediction, verdicts.get(place)) for place, (_, prediction) in enumerate(rows)]
        return score_mean(judged, lambda some: [float(verdict) for verdict, _ in some], self.signature)

    def calibrate(self, ids: Sequence[str], verdicts: Sequence[float | None], score: Score) -> JudgeCalibration | None:
        return None if self.labels is None else calibrate(ids, verdicts, self.labels, score)

    def _question(self, sample: Sample, prediction: Prediction) -> str:
        references = "\n".join(f"- {text}" for text in reference_texts(sample))
        answer = "\n".join(value_texts(sample, prediction))
        return self.prompt.render({"question": question_of(sample), "references": references, "answer": answer})


def _judged(prediction: Prediction, verdict: bool | None) -> Pair[bool, None]:
    if prediction.status != "ok":
        return Pair(None, None, prediction.status)
    return Pair(verdict, None, "failed" if verdict is None else "ok")


def read_verdict(reply: str | None) -> bool | None:
    """Return whether an answer is correct; None where the reply is not the JSON that was asked for."""
    try:
        found = parse_json(reply or "")
    except ValueError:
        return None
    verdict = found.get("correct") if isinstance(found, dict) and set(found) == {"correct"} else None
    return verdict if isinstance(verdict, bool) else None


def engine_judge(settings: CaptionSettings, *, labels: Mapping[str, bool] | None = None, observer: Observer) -> JudgeMetric:
    """Return the judge of an engine, whose answers are kept in the cache of vip.

    Args:
        labels: as of `JudgeMetric`.

    Raises:
        BackendError: there is no such engine.
    """
    session = open_session(settings, os.environ, shows_pictures=False)
    try:
        name = session.describer.describing_client.engine.name
    finally:
        session.close()
    return JudgeMetric(name, lambda prompts: _ask_all(prompts, settings, observer), labels)


def _ask_all(prompts: Sequence[str], settings: CaptionSettings, observer: Observer) -> list[str | None]:
    """Return the replies; None where the engine gave none that can be used.

    Raises:
        EngineError: the engine cannot be asked, or the money is spent. What was answered is in the cache.
    """
    session = open_session(settings, os.environ, shows_pictures=False)
    client, prompt = session.describer.describing_client, task_prompt("judge")
    replies: list[str | None] = [None] * len(prompts)

    async def ask_one(place: int, gate: asyncio.Semaphore, advance: Callable[[], None]) -> None:
        async with gate:
            request = Request("verify", prompts[place], None, (), SCHEMA, MOST_TOKENS, is_greedy=True)
            try:
                replies[place] = str((await client.ask(request, prompt, {"greedy": True})).value)
            except ReplyError:
                replies[place] = None
            advance()

    async def ask_all() -> None:
        gate = asyncio.Semaphore(WAITING)
        try:
            with observer.track("Judging", len(prompts)) as advance:
                await asyncio.gather(*(ask_one(place, gate, advance) for place in range(len(prompts))))
        finally:
            await client.close()

    try:
        check_engine(client.engine)
        run_async(ask_all())
    finally:
        session.close()
    return replies


# ---------------------------------------------------------------- against people


def read_labels(path: Path) -> dict[str, bool]:
    """Return the verdicts of people by id, from a CSV file with the columns sample_id and correct (yes or no, 1 or 0).

    Raises:
        InputError: it cannot be read, or a row is damaged.
    """
    try:
        text = files.read_named(path, most_bytes=MOST_LABEL_BYTES).decode("utf-8-sig")
    except OSError as exc:
        raise InputError(f"{path} cannot be read: {exc.strerror}. Give a CSV file with the columns sample_id,correct.") from exc
    except UnicodeDecodeError as exc:
        raise InputError(f"{path} is not UTF-8 text (byte {exc.start}). Save it as UTF-8.") from exc
    labels: dict[str, bool] = {}
    with csv_errors(path):
        rows = csv.DictReader(io.StringIO(text, newline=""))
        if not {"sample_id", "correct"} <= set(rows.fieldnames or ()):
            raise InputError(f"{path} lacks the columns sample_id,correct. Name them in its first line.")
        for row in rows:
            name = unguard_cell(row["sample_id"] or "")
            word = str(row["correct"]).strip().casefold()
            if word not in YES | NO or name in labels:
                what = "a second label of one sample" if name in labels else f'"{one_line(word)[:40]}", which is neither yes nor no'
                raise InputError(f"{path}, line {rows.line_num}: {what}. Write one line a sample: sample_id,yes or sample_id,no.")
            labels[name] = word in YES
    return labels


def calibrate(ids: Sequence[str], verdicts: Sequence[float | None], labels: Mapping[str, bool], score: Score) -> JudgeCalibration:
    """Return how well the judge fits people, and its mean corrected for its sensitivity and specificity.

    Args:
        verdicts: 1 or 0 for each sample; None where there is none.
        score: the judge's, for the number of samples that its clustered error stands for.

    Raises:
        InputError: no sample has both verdicts.
    """
    both = [(verdict == 1, labels[name]) for name, verdict in zip(ids, verdicts, strict=True) if verdict is not None and name in labels]
    known = judge_agreement([mine for mine, _ in both], [theirs for _, theirs in both])
    share = (score.value or 0) / 100
    error = (score.standard_error or 0) / 100
    n = min(float(score.n), share * (1 - share) / error**2) if error and 0 < share < 1 else float(score.n)
    corrected = correct_share(share, n, known)
    return JudgeCalibration(
        labelled=known.n,
        agreement=_rounded(known.agreement) or 0.0,
        base_rate=_rounded(known.base_rate) or 0.0,
        kappa=_rounded(known.kappa),
        sensitivity=_rounded(known.sensitivity),
        specificity=_rounded(known.specificity),
        corrected=_rounded(corrected.value, 100),
        low=_rounded(corrected.low, 100),
        high=_rounded(corrected.high, 100),
        no_correction=corrected.no_value,
    )


def _rounded(value: float | None, factor: float = 1.0) -> float | None:
    return None if value is None else round(factor * value, 6) + 0.0
