"""Zero-shot answers with an embedder whose vectors are known: which text belongs to which question, thresholds, windows, records."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.tasks.value.made import query, write_index, write_json, write_lines
from vip.config import SampleSettings
from vip.errors import InputError, UsageError
from vip.protocols import EmbedderCapabilities, SilentObserver
from vip.tasks.files import read_predictions, read_samples
from vip.tasks.records import Found, Prediction
from vip.tasks.value import zero_shot_predict
from vip.tasks.value.channels import write_features
from vip.tasks.value.zero_shot_predict import ZeroShotOptions, predict_zero_shot

WIDTH = 4


class Known:
    """An embedder of texts that name a dimension, `2`, or two of them with their weights, `0*3 1*4`; other texts are the last dimension."""

    name = "known"
    dim = WIDTH

    def __init__(self, identity: str | None = None, batch: int = 3) -> None:
        self.capabilities = EmbedderCapabilities(joint_space=True, identity=identity, batch=batch)
        self.asked: list[list[str]] = []
        self.pictures: list[int] = []

    def embed_texts(self, texts: Sequence[str]) -> Any:
        self.asked.append(list(texts))
        return np.stack([_vector(text) for text in texts])

    def embed_images(self, images: Sequence[Any]) -> Any:
        self.pictures.append(len(images))
        return np.eye(WIDTH, dtype=np.float32)[[0] * len(images)]


def _vector(text: str) -> Any:
    vector = np.zeros(WIDTH, np.float32)
    for word in text.split():
        place, _, weight = word.partition("*")
        if place.isdigit() and int(place) < WIDTH:
            vector[int(place)] += float(weight or 1)
    if not vector.any():
        vector[WIDTH - 1] = 1.0
    return vector / np.linalg.norm(vector)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> Known:
    made = Known()
    monkeypatch.setattr("vip.registry.embedder", lambda name: made)
    return made


def features(folder: Path, **rows: Sequence[int]) -> Path:
    """Write videos whose frames are dimensions."""
    for name, places in rows.items():
        write_features(folder / "f" / f"{name}.npz", np.eye(WIDTH, dtype=np.float32)[list(places)])
    return folder / "f"


def answers(task: str, out: Path, annotations: Path, *, settings: dict[str, Any] | None = None, **more: Any) -> list[Prediction]:
    options = ZeroShotOptions(
        embedder="known", annotations=(str(annotations),), settings=SampleSettings.model_validate(settings or {}), **more
    )
    predict_zero_shot(task, out, options, overwrite=True, observer=SilentObserver())
    return list(read_predictions(out))


def record(out: Path) -> dict[str, Any]:
    return dict(json.loads(out.with_name(f"{out.stem}.zero-shot.json").read_text()))


def statement(number: int, video: str, text: str, answer: int | None = None) -> dict[str, Any]:
    return {"example_id": number, "vid_name": video, "statement": text} | ({} if answer is None else {"answer": answer})


def test_each_question_is_held_against_its_own_texts_and_its_own_video(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zero_shot_predict, "QUESTIONS_AT_ONCE", 2)
    rights = [2, 0, 3, 1, 2]
    rows = [
        {
            "qid": number,
            "q": "q",
            "vid_name": f"v{right}",
            "answer_idx": 0,
            **{f"a{place}": str((place + number) % 4) for place in range(4)},
        }
        for number, right in enumerate(rights)
    ]
    folder = features(tmp_path, v0=[0], v1=[1, 1], v2=[2], v3=[3])
    found = answers("value-how2qa", tmp_path / "p.jsonl", write_lines(tmp_path / "a.jsonl", rows), features=folder)
    assert [one.value for one in found] == [(right - number) % 4 for number, right in enumerate(rights)]
    assert all(one.scores is not None and one.scores.index(max(one.scores)) == one.value for one in found)
    assert [one.engine for one in found] == ["zero-shot known, video"] * 5
    assert known.asked[-1] == [f"q {(place + 4) % 4}" for place in range(4)]
    assert [one.id for one in read_samples(tmp_path / "p.samples.jsonl")] == [str(number) for number in range(5)]
    assert record(tmp_path / "p.jsonl")["threshold"] is None
    assert record(tmp_path / "p.jsonl")["threshold_from"] is None


def test_a_score_at_the_threshold_is_true(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, v=[0])
    rows = [statement(1, "v", "0*3 1*4"), statement(2, "v", "0"), statement(3, "v", "0*4 1*3")]
    annotations = write_lines(tmp_path / "a.jsonl", rows)
    out = tmp_path / "p.jsonl"
    (first, _, third) = answers("value-violin", out, annotations, features=folder, threshold="0")
    assert first.scores is not None
    assert third.scores is not None
    assert (round(first.scores[0], 3), round(third.scores[0], 3)) == (0.6, 0.8)
    at = repr(third.scores[0])
    assert [one.value for one in answers("value-violin", out, annotations, features=folder, threshold=at)] == [0, 1, 1]
    assert record(out)["threshold"] == {"value": float(at)}
    assert record(out)["threshold_from"] == at
    assert [one.value for one in answers("value-violin", out, annotations, features=folder, threshold="0.81")] == [0, 1, 0]


def test_a_threshold_is_tuned_on_what_is_right_and_kept_with_how_good_it_was(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, v=[0])
    rows = [statement(1, "v", "0*3 1*4", 0), statement(2, "v", "0*4 1*3", 1), statement(3, "v", "1", 0), statement(4, "v", "0", 0)]
    out = tmp_path / "p.jsonl"
    found = answers("value-violin", out, write_lines(tmp_path / "a.jsonl", rows), features=folder)
    assert [one.value for one in found] == [0, 1, 0, 1]
    kept = record(out)
    assert kept["threshold"] == {"value": pytest.approx(0.7), "accuracy": 0.75, "samples": 4}
    assert (kept["threshold_from"], kept["task"], kept["samples"], kept["window_frames"]) == ("these samples", "value-violin", 4, None)
    assert (kept["model"], kept["channels"], kept["frame_s"]) == ("known", "video", 1.5)
    assert len(kept["annotations_sha256"][0]) == 64


def test_of_two_events_the_second_is_chosen_from_the_threshold_on(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, v=[0])
    rows = [
        {"example_id": 1, "vid_name": "v", "events": ["1", "0"]},
        {"example_id": 2, "vid_name": "v", "events": ["0", "1"]},
        {"example_id": 3, "vid_name": "v", "events": ["0", "0"]},
    ]
    annotations = write_lines(tmp_path / "a.jsonl", rows)
    found = answers("value-vlep", tmp_path / "p.jsonl", annotations, features=folder, threshold="0")
    assert [(one.value, one.scores) for one in found] == [(1, (0.0, 1.0)), (0, (1.0, 0.0)), (1, (1.0, 1.0))]


def test_a_threshold_of_another_model_or_of_other_channels_is_refused(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = features(tmp_path, v=[0])
    out, kept = tmp_path / "p.jsonl", str(tmp_path / "p.zero-shot.json")
    annotations = write_lines(tmp_path / "a.jsonl", [statement(1, "v", "0", 1), statement(2, "v", "1", 0)])
    answers("value-violin", out, annotations, features=folder)
    assert [one.value for one in answers("value-violin", tmp_path / "q.jsonl", annotations, features=folder, threshold=kept)] == [1, 0]
    subtitles = write_lines(tmp_path / "s.jsonl", [{"vid_name": "v", "sub": [{"text": "0", "start": 0, "end": 1}]}])
    with pytest.raises(UsageError, match=r"was tuned for known, video\. Give a number"):
        answers("value-violin", out, annotations, features=folder, settings={"subtitles": subtitles}, threshold=kept)
    monkeypatch.setattr("vip.registry.embedder", lambda name: Known(identity="known, other weights"))
    with pytest.raises(UsageError, match="was tuned for known, video"):
        answers("value-violin", out, annotations, features=folder, threshold=kept)
    with pytest.raises(InputError, match=r"cannot be read .*Give a number, or the file NAME\.zero-shot\.json"):
        answers("value-violin", out, annotations, features=folder, threshold=str(tmp_path / "none.json"))
    damaged = write_json(tmp_path / "x.json", {"threshold": None})
    with pytest.raises(InputError, match=r"x\.json holds no threshold"):
        answers("value-violin", out, annotations, features=folder, threshold=str(damaged))


def test_one_hidden_answer_needs_a_threshold(known: Known, tmp_path: Path) -> None:
    annotations = write_lines(tmp_path / "a.jsonl", [statement(1, "v", "0", 1), statement(2, "v", "1")])
    with pytest.raises(UsageError, match="value-violin needs a threshold"):
        answers("value-violin", tmp_path / "p.jsonl", annotations, features=features(tmp_path, v=[0]))


def test_what_is_said_counts_and_silence_is_one_empty_sentence(known: Known, tmp_path: Path) -> None:
    said = [{"text": "", "start": 0, "end": 1}, {"text": "2", "start": 1, "end": 2}, {"text": "1", "start": 2, "end": 3}]
    silent = [{"text": " ", "start": 0, "end": 1}]
    subtitles = write_lines(tmp_path / "s.jsonl", [{"vid_name": "loud", "sub": said}, {"vid_name": "still", "sub": silent}])
    rows = [
        {"qid": number, "q": "q", "vid_name": name, "answer_idx": 0, **{f"a{place}": str(place) for place in range(4)}}
        for number, name in enumerate(("loud", "still", "unknown"))
    ]
    annotations = write_lines(tmp_path / "a.jsonl", rows)
    found = answers("value-how2qa", tmp_path / "p.jsonl", annotations, settings={"subtitles": subtitles})
    assert known.asked[:3] == [["2", "1"], [""], [""]]
    assert [np.round(one.scores, 3).tolist() for one in found] == [[0, 0.707, 0.707, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert [one.value for one in found] == [1, 3, 3], "of equal options the first"
    assert record(tmp_path / "p.jsonl")["channels"] == "sub"
    with pytest.raises(InputError, match="has subtitles of none of these videos"):
        answers("value-how2qa", tmp_path / "p.jsonl", write_lines(tmp_path / "b.jsonl", rows[2:]), settings={"subtitles": subtitles})


def test_moments_have_the_window_that_was_asked_for(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, park=[1, 0, 0, 1], street=[1, 1, 1])
    rows = [query(1, desc="0"), query(2, "street", desc="1")]
    annotations = write_lines(tmp_path / "a.jsonl", rows)
    first, second = (one.value for one in answers("value-tvr", tmp_path / "p.jsonl", annotations, features=folder, window=2))
    assert isinstance(first, Found)
    assert isinstance(second, Found)
    assert first.vcmr is not None
    assert first.svmr is not None
    assert second.svmr is not None
    assert (first.vr, second.vr) == (("park", "street"), ("street", "park"))
    assert (first.vcmr.starts_s, first.vcmr.ends_s) == ((1.5, 0.0), (4.5, 3.0))
    assert first.svmr.videos == ("park",) * 3
    assert second.svmr.videos == ("street",) * 2
    assert record(tmp_path / "p.jsonl")["window_frames"] == 2
    answers("value-tvr", tmp_path / "p.jsonl", annotations, features=folder)
    assert record(tmp_path / "p.jsonl")["window_frames"] == 10


def test_the_corpus_is_that_of_the_queries_or_of_the_index(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, park=[0], street=[1], field=[2])
    rows = [{"desc_id": number, "desc": "0", "vid_name": name} for number, name in enumerate(("street", "street", "park"))]
    annotations = write_lines(tmp_path / "a.jsonl", rows)
    found = [one.value for one in answers("value-yc2r", tmp_path / "p.jsonl", annotations, features=folder)]
    assert found == [Found(vr=("park", "street"))] * 3
    index = write_json(tmp_path / "i.json", {"val": {"street": [9, 1], "park": [9, 2], "field": [9, 3]}, "test": {"field": [9, 3]}})
    found = [one.value for one in answers("value-yc2r", tmp_path / "p.jsonl", annotations, features=folder, video_index=index)]
    assert found[0] == Found(vr=("park", "street", "field"))
    found = [
        one.value
        for one in answers("value-yc2r", tmp_path / "p.jsonl", annotations, features=folder, video_index=index, settings={"split": "test"})
    ]
    assert found[0] == Found(vr=("field",))
    hidden = write_lines(tmp_path / "b.jsonl", [rows[0], {"desc_id": 7, "desc": "0"}])
    with pytest.raises(InputError, match="The videos of these queries are hidden"):
        answers("value-yc2r", tmp_path / "p.jsonl", hidden, features=folder)


def test_moments_need_frames_and_seeds_draw_samples(known: Known, tmp_path: Path) -> None:
    subtitles = write_lines(tmp_path / "s.jsonl", [{"vid_name": "park", "sub": [{"text": "0", "start": 0, "end": 1}]}])
    annotations = write_lines(tmp_path / "a.jsonl", [query(1)])
    with pytest.raises(UsageError, match="The moments of value-tvr are found in frames"):
        answers("value-tvr", tmp_path / "p.jsonl", annotations, settings={"subtitles": subtitles})
    many = write_lines(tmp_path / "b.jsonl", [{"desc_id": number, "desc": "0", "vid_name": "park"} for number in range(30)])
    folder = features(tmp_path, park=[0])
    drawn = [
        [one.sample_id for one in answers("value-yc2r", tmp_path / "p.jsonl", many, features=folder, settings={"most": 5, "seed": seed})]
        for seed in (1, 1, 2)
    ]
    assert len(drawn[0]) == 5
    assert drawn[0] == drawn[1] != drawn[2]


def test_frames_are_embedded_in_batches_and_kept(known: Known, tmp_path: Path) -> None:
    videos = Path(__file__).resolve().parents[3] / "examples"
    annotations = write_lines(tmp_path / "a.jsonl", [{"desc_id": 1, "desc": "0", "vid_name": "sample"}])
    answers("value-yc2r", tmp_path / "p.jsonl", annotations, settings={"videos": videos}, features=tmp_path / "kept")
    kept = np.load(tmp_path / "kept" / "sample.npz")["features"]
    assert sum(known.pictures) == len(kept)
    assert len(kept) > 3
    assert set(known.pictures[:-1]) == {3}
    assert 1 <= known.pictures[-1] <= 3
    answers("value-yc2r", tmp_path / "p.jsonl", annotations, settings={"videos": videos}, features=tmp_path / "kept")
    assert sum(known.pictures) == len(kept), "what is kept is not embedded again"


def test_features_of_another_width_than_texts_are_refused(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, park=[0])
    write_features(folder / "street.npz", np.ones((3, WIDTH + 1), np.float32))
    rows = [{"desc_id": number, "desc": "0", "vid_name": name} for number, name in enumerate(("park", "street"))]
    with pytest.raises(InputError, match="other widths than the texts of known"):
        answers("value-yc2r", tmp_path / "p.jsonl", write_lines(tmp_path / "a.jsonl", rows), features=folder)
    with pytest.raises(InputError, match="other widths"):
        answers("value-yc2r", tmp_path / "p.jsonl", write_lines(tmp_path / "a.jsonl", rows[1:]), features=folder)


def test_a_file_that_is_there_is_not_replaced_unasked(known: Known, tmp_path: Path) -> None:
    (tmp_path / "p.jsonl").write_text("kept")
    options = ZeroShotOptions(
        embedder="known", annotations=(str(write_lines(tmp_path / "a.jsonl", [query(1)])),), features=write_index(tmp_path).parent
    )
    with pytest.raises(UsageError, match="exists"):
        predict_zero_shot("value-tvr", tmp_path / "p.jsonl", options, observer=SilentObserver())
    assert (tmp_path / "p.jsonl").read_text() == "kept"


def test_no_features_are_read_behind_a_link_that_leads_out_of_their_folder(known: Known, tmp_path: Path) -> None:
    folder = features(tmp_path, other=[0])
    (folder / "video.npz").symlink_to("other.npz")
    annotations = write_lines(tmp_path / "a.jsonl", [statement(1, "video", "0", 1)])
    assert len(answers("value-violin", tmp_path / "p.jsonl", annotations, features=folder)) == 1
    (folder / "other.npz").rename(tmp_path / "secret.npz")
    (folder / "video.npz").unlink()
    (folder / "video.npz").symlink_to(tmp_path / "secret.npz")
    with pytest.raises(InputError, match=r"f/video\.npz leads out of .*/f by a link, and vip follows none of those"):
        answers("value-violin", tmp_path / "p.jsonl", annotations, features=folder)
