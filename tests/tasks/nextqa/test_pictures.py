"""A model sees the keyframes of a run, or frames of a video by vip or evenly spaced."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from tests.clips import clip
from tests.report.runs import make_run
from tests.tasks.nextqa.published import MC_ROWS, read, write_csv, write_json
from vip.config import CaptionSettings
from vip.errors import InputError
from vip.models.fake import FakeEngine
from vip.protocols import Reply, Request, SilentObserver
from vip.tasks.files import read_predictions, write_samples
from vip.tasks.nextqa.mc import NextqaMultiChoice
from vip.tasks.predict import predict
from vip.tasks.records import Sample, SamplePicture

TASK = NextqaMultiChoice()


def pictures(sample: Sample) -> list[SamplePicture]:
    return [piece for piece in sample.context if isinstance(piece, SamplePicture)]


@pytest.mark.slow
def test_frames_of_a_video_are_evenly_spaced_and_those_of_a_run_are_its_keyframes(tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs" / "v2", rules=("kept",) * 5)
    clip(tmp_path / "runs" / "v1.mp4", range(4))
    kept = tmp_path / "frames"
    samples = read(TASK, write_csv(tmp_path / "val.csv", MC_ROWS), tmp_path / "runs", frames_folder=kept)
    of_run = pictures(samples[2])
    assert [picture.keyframe_id for picture in of_run] == [keyframe.id for keyframe in run.keyframes]
    assert of_run[0].sha256 == sha256(run.keyframes[0].data).hexdigest()
    assert samples[0].context == samples[1].context
    even = read(TASK, write_csv(tmp_path / "two.csv", MC_ROWS[:2]), tmp_path / "runs", frames=4, frames_by="even", frames_folder=kept)
    assert [int((picture.time_s or 0) // 1) for picture in pictures(even[0])] == [0, 1, 2, 3]
    assert even[0].frames_chosen == "evenly spaced"
    assert "You see 4 frames of a video, in order of time." in TASK.request(even[0], None).text


@pytest.mark.slow
def test_videos_are_found_where_vidor_keeps_them_and_missing_ones_are_named(tmp_path: Path) -> None:
    clip(tmp_path / "vidor" / "0001" / "v1.mp4", range(4))
    path = write_csv(tmp_path / "val.csv", MC_ROWS[:2])
    index = write_json(tmp_path / "map_vid_vidorID.json", {"v1": "0001/v1"})
    samples = read(TASK, path, tmp_path / "vidor", index, frames=4, frames_folder=tmp_path / "frames")
    assert len(pictures(samples[0])) == 4
    with pytest.raises(InputError, match=r"There is no run folder and no video v1 in .*vidor\. Give the folder, and VidOR's map"):
        read(TASK, path, tmp_path / "vidor")


def test_an_id_that_is_a_path_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "videos").mkdir()
    (tmp_path / "secret.mp4").write_bytes(b"")
    path = write_csv(tmp_path / "val.csv", [("../secret", *MC_ROWS[0][1:])])
    with pytest.raises(InputError, match=r"no video \.\./secret in"):
        read(TASK, path, tmp_path / "videos")


@pytest.mark.slow
def test_an_engine_sees_the_pictures_and_its_letters_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    async def answer(self: FakeEngine, request: Request) -> Reply:
        seen.append(len(request.pictures))
        return Reply("B" if "why did the dog" in request.prompt else "C or D", "fake")

    monkeypatch.setattr(FakeEngine, "generate", answer)
    make_run(tmp_path / "runs" / "v1", rules=("kept",) * 3)
    make_run(tmp_path / "runs" / "v2", rules=("kept",) * 5)
    samples = read(TASK, write_csv(tmp_path / "val.csv", MC_ROWS), tmp_path / "runs")
    write_samples(tmp_path / "samples.jsonl", samples)
    done = predict(tmp_path / "samples.jsonl", tmp_path / "p.jsonl", asking=CaptionSettings(engine="fake"), observer=SilentObserver())
    assert done.statuses == {"ok": 1, "unparsed": 3}
    assert seen == [3, 3, 5, 5]
    rows = list(read_predictions(tmp_path / "p.jsonl"))
    assert [(row.value, row.reason) for row in rows] == [(1, None)] + [(None, "several letters: C, D")] * 3
    assert {call.prompt for row in rows for call in row.calls} == {"nextqa-mc"}
    assert TASK.metrics[0].score(list(zip(samples, rows, strict=True))).value == 0.25
