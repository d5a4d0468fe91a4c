"""Joining on ids: every fault is named with its number, and nothing is scored as if whole."""

from __future__ import annotations

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.tasks.scoring import answer, description, joined, sample, write
from vip import store
from vip.errors import InputError
from vip.records import Call
from vip.tasks.files import read_samples
from vip.tasks.pairs import is_ours, join_files, join_lists
from vip.tasks.records import KeyframeDescription, Prediction, Sample, SamplePicture, Text

SAMPLES = [sample(str(number), "a b", video=f"v{number // 2}") for number in range(4)]


def test_predictions_in_any_order_are_joined_in_that_of_the_samples(tmp_path: Path) -> None:
    found = joined(tmp_path, SAMPLES, [answer(one, f"w{place}") for place, one in reversed(list(enumerate(SAMPLES)))])
    assert [one.id for one, _ in found.pairs] == [one.id for one in SAMPLES]
    assert [prediction.value[0].dense_caption for _, prediction in found.pairs] == ["w0", "w1", "w2", "w3"]  # type: ignore[index,union-attr]
    assert found.engines == ("engine",)
    assert found.described == (2, 2)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([0, 1, 2], '1 sample without a prediction ("infilling-1/v1/3"). Predict the rest, or choose'),
        ([0, 0, 1, 2, 3], '1 prediction of samples that have one already ("infilling-1/v0/0")'),
        ([0, 1, 2, 3, 9], '1 prediction of samples that samples.jsonl does not have ("other")'),
        ([9], "These are predictions of other samples"),
        ([], '4 samples without a prediction ("infilling-1/v0/0", "infilling-1/v0/1", "infilling-1/v1/2", …)'),
    ],
)
def test_ids_that_do_not_fit_are_named(tmp_path: Path, rows: list[int], said: str) -> None:
    other = Prediction(sample_id="other", value="x")
    with pytest.raises(InputError, match=re.escape(said)):
        joined(tmp_path, SAMPLES, [other if row == 9 else answer(SAMPLES[row], "a") for row in rows])


def test_all_kinds_of_faults_stand_in_one_message(tmp_path: Path) -> None:
    rows = [answer(SAMPLES[0], "a"), answer(SAMPLES[0], "a"), Prediction(sample_id="other", value="x")]
    with pytest.raises(InputError, match=r"1 prediction of samples that samples.* 1 prediction of .* already .* 3 samples without"):
        joined(tmp_path, SAMPLES, rows)


def test_missing_predictions_count_as_wrong_or_are_left_out(tmp_path: Path) -> None:
    samples, rows = write(tmp_path / "s.jsonl", SAMPLES), write(tmp_path / "p.jsonl", [answer(SAMPLES[1], "a")])
    wrong = join_files(samples, rows, missing="wrong")
    assert [prediction.status for _, prediction in wrong.pairs] == ["missing", "ok", "missing", "missing"]
    left = join_files(samples, rows, missing="leave-out")
    assert ([one.id for one, _ in left.pairs], left.left_out) == ([SAMPLES[1].id], 3)


def test_a_damaged_line_is_named_by_its_number(tmp_path: Path) -> None:
    samples, path = write(tmp_path / "s.jsonl", SAMPLES), tmp_path / "p.jsonl"
    path.write_text(answer(SAMPLES[0], "a").model_dump_json() + "\n\n{broken\n")
    with pytest.raises(InputError, match=r"p\.jsonl, line 3: no prediction"):
        join_files(samples, path)
    path.write_text('{"sample_id": "x", "value": null, "status": "ok"}\n')
    with pytest.raises(InputError, match=r'line 1: no prediction .*the status is "ok"'):
        join_files(samples, path)


def test_a_line_without_an_end_is_refused_before_it_is_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.tasks.pairs.MOST_LINE_BYTES", 100)
    path = tmp_path / "s.jsonl"
    path.write_bytes(b"x" * 1000)
    with pytest.raises(InputError, match="a line of more than 100 bytes"):
        join_files(path, path)


def test_samples_twice_of_several_tasks_or_without_reference_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r'names 1 sample \("infilling-1/v0/0"\) twice'):
        joined(tmp_path, [*SAMPLES, SAMPLES[0]], [])
    with pytest.raises(InputError, match=r"several tasks .infilling-1 version 1, infilling-1 version 2"):
        joined(tmp_path, [SAMPLES[0], sample("9", "a", version=2)], [])
    hidden = [one.model_copy(update={"reference": None}) for one in SAMPLES]
    with pytest.raises(InputError, match="has no answers for 4 samples"):
        joined(tmp_path, hidden, [answer(one, "a") for one in SAMPLES])
    with pytest.raises(InputError, match="has no samples"):
        joined(tmp_path, [], [])


def test_lists_of_published_files_are_joined_by_the_same_rules() -> None:
    def join(predictions: list[Prediction]) -> int:
        digests = {"samples_sha256": None, "predictions_sha256": "0" * 64}
        return len(join_lists(SAMPLES, predictions, name="theirs.json", samples_name="val.csv", **digests).pairs)  # type: ignore[arg-type]

    assert join([answer(one, "a") for one in SAMPLES]) == 4
    with pytest.raises(InputError, match=r"theirs\.json does not fit the 4 samples of val\.csv: 3 samples without"):
        join([answer(SAMPLES[0], "a")])


def test_only_our_own_form_is_taken_for_ours(tmp_path: Path) -> None:
    assert is_ours(write(tmp_path / "p.jsonl", [answer(SAMPLES[0], "a")]))
    for text in ('{"12_3": {"prediction": 1, "answer": 2}}', "[1]", "video,question\n", ""):
        (tmp_path / "theirs").write_text(text)
        assert not is_ours(tmp_path / "theirs")
    with pytest.raises(InputError, match="cannot be read"):
        is_ours(tmp_path / "none")


def test_ids_that_are_not_utf8_are_joined_and_half_a_character_in_an_answer_is_damage(tmp_path: Path) -> None:
    odd = [sample(str(number), "a b", video="\udcff") for number in range(2)]
    samples, path = tmp_path / "s.jsonl", tmp_path / "p.jsonl"
    store.write_rows(samples, odd)
    store.write_rows(path, [answer(one, "a") for one in odd])
    assert is_ours(path)
    assert [(one.id, given.sample_id) for one, given in join_files(samples, path).pairs] == [(one.id, one.id) for one in odd]
    store.write_rows(path, [answer(odd[0], "a"), answer(odd[1], "\ud800")])
    with pytest.raises(InputError, match=r"p\.jsonl, line 2: no prediction \(half a pair of surrogates\)"):
        join_files(samples, path)
    path.write_text("[" * 100_000)
    assert not is_ours(path)


def test_pairs_are_read_when_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = joined(tmp_path, SAMPLES, [answer(one, "a") for one in SAMPLES])
    parsed: list[str] = []
    real = Sample.model_validate_json
    monkeypatch.setattr(Sample, "model_validate_json", lambda line: parsed.append("x") or real(line))
    assert found.pairs[2][0] == SAMPLES[2]
    assert found.pairs.take([3, 3])[1][0] == SAMPLES[3]
    assert found.pairs[1:3][1][0] == SAMPLES[2]
    assert len(parsed) == 3


def test_what_is_wrong_is_said_in_a_short_sentence_however_long_the_text_is(tmp_path: Path) -> None:
    found = joined(tmp_path, SAMPLES, [answer(one, "w") for one in SAMPLES])
    assert found.pairs
    lines = (tmp_path / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    row = json.loads(lines[0])
    row["context"][0]["kind"] = "x" * 200_000
    (tmp_path / "samples.jsonl").write_text("\n".join([json.dumps(row), *lines[1:]]), encoding="utf-8")
    with pytest.raises(InputError, match="line 1: no sample") as first:
        join_files(tmp_path / "samples.jsonl", tmp_path / "predictions.jsonl")
    with pytest.raises(InputError, match="damaged") as second:
        list(read_samples(tmp_path / "samples.jsonl"))
    assert max(len(str(first.value)), len(str(second.value))) < 1000


def test_rows_behind_empty_lines_are_found_again_and_files_named_by_their_digest(tmp_path: Path) -> None:
    samples, rows = write(tmp_path / "s.jsonl", SAMPLES), write(tmp_path / "p.jsonl", [answer(one, f"w{one.id[-1]}") for one in SAMPLES])
    for path in (samples, rows):
        first, *rest = path.read_text().splitlines()
        path.write_text("\n".join(["", first, "  ", "", *rest]) + "\n\n")
    found = join_files(samples, rows)
    assert [(one.id, prediction.sample_id) for one, prediction in found.pairs] == [(one.id, one.id) for one in SAMPLES]
    assert found.samples_sha256 == sha256(samples.read_bytes()).hexdigest()
    assert found.predictions_sha256 == sha256(rows.read_bytes()).hexdigest()


def picture(name: str) -> SamplePicture:
    return SamplePicture(source="run", keyframe_id=name)


def test_frames_and_descriptions_that_samples_show_are_counted_apart(tmp_path: Path) -> None:
    bare = KeyframeDescription(keyframe_id="b", time_s=None)
    contexts = [
        (picture("a"), picture("b"), Text(text="x")),
        (KeyframeDescription(keyframe_id="a", time_s=None, dense_caption="x", picture=picture("a")), bare),
        (KeyframeDescription(keyframe_id="a", time_s=None, famous=description("x", True).famous), *map(picture, "cde")),
    ]
    chosen = ("vip algorithm1", None, "evenly spaced")
    samples = [
        one.model_copy(update={"context": context, "frames_chosen": how})
        for one, context, how in zip(SAMPLES, contexts, chosen, strict=False)
    ]
    found = joined(tmp_path, samples, [answer(one, "a") for one in samples])
    assert (found.pictures, found.described) == ((1, 3), (0, 1))
    assert found.frames_chosen == ("vip algorithm1", "evenly spaced")


def call(prompt: str, **parameters: object) -> Call:
    sums: dict[str, Any] = {"tokens_in": 1, "tokens_out": 1, "usd": None, "latency_s": 0.0, "created_utc": "2026-01-01T00:00:00Z"}
    return Call(engine="e", model="m", prompt=prompt, prompt_version="1", prompt_sha256="ab" * 32, parameters=parameters, **sums)


@pytest.mark.parametrize(("values", "shown"), [(["1"], "1"), (list("312"), ["1", "2", "3"]), (list("1234"), "4 values")])
def test_parameters_are_those_of_all_calls_and_many_values_their_number(values: list[str], shown: object, tmp_path: Path) -> None:
    rows = [
        answer(one, "a", engine=f"e{place % 2}").model_copy(update={"calls": (call("infilling-2", seed=values[place % len(values)]),)})
        for place, one in enumerate(SAMPLES)
    ]
    found = joined(tmp_path, SAMPLES, rows)
    assert found.parameters == {"prompt": "infilling-2@abababababab", "representation": "dense", "seed": shown, "targets": "1"}
    assert found.engines == ("e0", "e1")


def test_samples_that_count_as_wrong_are_not_left_out(tmp_path: Path) -> None:
    samples, rows = (
        write(tmp_path / "s.jsonl", SAMPLES),
        write(tmp_path / "p.jsonl", [answer(SAMPLES[2], "a"), answer(SAMPLES[1], status="refused")]),
    )
    wrong, left = (join_files(samples, rows, missing=missing) for missing in ("wrong", "leave-out"))  # type: ignore[arg-type]
    assert (wrong.left_out, wrong.statuses) == (0, ("missing", "refused", "ok", "missing"))
    assert (left.left_out, left.statuses, [key.id for key in left.pairs.keys]) == (2, ("refused", "ok"), [one.id for one in SAMPLES[1:3]])


def test_files_that_are_not_there_are_said_with_what_makes_them(tmp_path: Path) -> None:
    samples, predictions = tmp_path / "samples.jsonl", tmp_path / "p.jsonl"
    with pytest.raises(InputError, match=r"samples\.jsonl cannot be read: No such file or directory\. Make it again with `vip samples"):
        join_files(samples, predictions)
    write(samples, [sample("a", "x")])
    with pytest.raises(InputError, match=r"p\.jsonl cannot be read: No such file or directory\. Make it again with `vip predict"):
        join_files(samples, predictions)
