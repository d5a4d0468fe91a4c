"""How often people are noticed, against counts made by hand."""

from __future__ import annotations

import tomllib
from pathlib import Path

from people import FRAMES, Label, Tally, labels_of

from vip.records import Detection

LABELS = Path(__file__).resolve().parents[2] / "benchmarks" / "people.toml"
FACE = Detection(label="face", score=0.9, box_xyxy=(0.1, 0.1, 0.2, 0.2), source="opencv")


def test_pictures_and_faces_are_counted_and_what_cannot_be_told_is_not() -> None:
    tally = Tally()
    for label, detections in [
        (Label(True, 2), [FACE, FACE, FACE]),  # one more than there are
        (Label(True, 1), [FACE.model_copy(update={"label": "person"})]),
        (Label(True, 1), []),
        (Label(False, 0), []),
        (Label(False, 0), [FACE.model_copy(update={"label": "dog"})]),
        (Label(False, 0), [FACE]),
        (Label(None, 0), [FACE]),
    ]:
        tally.add(label, detections)
    assert tally == Tally(found=2, with_people=3, false=1, without_people=3, faces_found=2, faces=4)


def test_labels_are_read() -> None:
    assert labels_of({"people": "yn?", "faces": "300"}) == [Label(True, 3), Label(False, 0), Label(None, 0)]


def test_every_clip_has_a_label_for_each_frame_and_faces_only_where_people_may_be() -> None:
    clips = {name: labels_of(row) for name, row in tomllib.loads(LABELS.read_text()).items()}
    assert {len(labels) for labels in clips.values()} == {FRAMES}
    assert not [name for name, labels in clips.items() if any(label.faces and label.people is False for label in labels)]
