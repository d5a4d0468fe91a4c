"""Labelled videos show what their labels say."""

from __future__ import annotations

import itertools
from pathlib import Path

import av
import cv2
import labelled
import numpy as np
import pytest
from labelled import KINDS, Labelled, Script, Stretch


def still(kind: str, seed: int) -> list[Stretch]:
    return list(KINDS[kind](Script(kind, seed)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_draws_the_same_and_another_seed_another(kind: str) -> None:
    one, again, other = (still(kind, seed) for seed in (3, 3, 4))
    plans = [[(stretch.picture, stretch.duration_s) for stretch in stretches] for stretches in (one, again, other)]
    assert plans[0] == plans[1] != plans[2]
    assert one[0].draw(0.0).shape == (*Script(kind, 3).size[::-1], 3)


@pytest.mark.parametrize("kind", ["slides-dark", "slides-light", "screens", "scroll", "browser", "speaker", "drift", "motion"])
def test_no_two_pictures_look_the_same_and_one_always_does(kind: str) -> None:
    last: dict[str, np.ndarray] = {}
    for stretch in still(kind, 5):
        if stretch.picture is not None:
            last[stretch.picture] = stretch.draw(stretch.duration_s - 0.1)
    names = sorted(last)
    for place, name in enumerate(names):
        for other in names[place + 1 :]:
            assert (np.abs(last[name].astype(int) - last[other]).max(axis=2) > 60).mean() > 0.002, (name, other)


def test_a_slide_that_is_built_up_keeps_what_it_had() -> None:
    stretches = [one for seed in range(6) for one in still("slides-light", seed)]
    built = [(one, next_one) for one, next_one in itertools.pairwise(stretches) if one.picture and one.picture == next_one.picture]
    assert built
    for one, following in built:
        before, now = (stretch.draw(0.0).astype(int) for stretch in (one, following))
        if before.shape == now.shape:
            ink = np.abs(before - before[-1, -1]).max(axis=2) > 60
            assert (np.abs(before - now).max(axis=2)[ink] < 30).mean() > 0.95


def test_a_video_is_written_once_and_is_as_long_as_its_labels(tmp_path: Path) -> None:
    made = labelled.build("zoom", 1, tmp_path)
    before = made.video.stat().st_mtime_ns
    assert labelled.build("zoom", 1, tmp_path) == made
    assert made.video.stat().st_mtime_ns == before
    with av.open(str(made.video)) as container:
        assert sum(1 for _ in container.decode(video=0)) == round(made.labels["duration_s"] * labelled.FPS)


def test_a_screen_recording_is_written_as_browsers_do(tmp_path: Path) -> None:
    made = labelled.build("recording", 4, tmp_path)
    with av.open(str(made.video)) as container:
        stream = container.streams.video[0]
        assert (stream.codec_context.name, stream.average_rate, container.format.name) == ("vp8", 30, "matroska,webm")
        assert sum(1 for _ in container.demux(stream) if _.size) == round(made.labels["duration_s"] * 30)


def test_a_video_that_was_cut_off_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / f"zoom-1-v{labelled.VERSION}.mp4").write_bytes(b"half")
    made = labelled.build("zoom", 1, tmp_path)
    spans = made.labels["spans"]
    assert spans[0]["start_s"] == 0.0
    assert [span["start_s"] for span in spans[1:]] == [span["end_s"] for span in spans[:-1]]
    assert spans[-1]["end_s"] == made.labels["duration_s"]
    assert made.video.stat().st_size > 1000


def test_a_card_is_blurred_while_it_moves_and_has_come_to_rest_where_it_is_labelled() -> None:
    def sharpness(image: np.ndarray) -> float:
        return float(cv2.Laplacian(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), cv2.CV_64F).var())

    softer = 0
    stretches = still("motion", 5)
    for coming, card, leaving in zip(stretches[::3], stretches[1::3], stretches[2::3], strict=True):
        assert card.picture is not None
        assert (coming.picture, leaving.picture) == (None, None)
        assert np.array_equal(card.draw(0.0), card.draw(1.0))
        on_its_way = [coming.draw(coming.duration_s / 2), leaving.draw(leaving.duration_s / 2)]
        assert all((np.abs(image.astype(int) - card.draw(0.0)).max(axis=2) > 30).mean() > 0.002 for image in on_its_way)
        softer += sum(sharpness(image) < sharpness(card.draw(0.0)) for image in on_its_way)
    assert softer > len(stretches) / 2


def test_each_kind_has_chance_of_its_own() -> None:
    assert len({Script(kind, 3).chance.random() for kind in KINDS}) == len(KINDS)


def test_a_picture_that_comes_back_is_the_same_picture() -> None:
    spans = [labelled.Span(picture=name, start_s=float(place), end_s=place + 1.0) for place, name in enumerate("aba")]
    assert Labelled(Path("none"), labelled.Labels(kind="none", seed=0, duration_s=3.0, spans=spans)).distinct == 2


def test_what_changes_is_labelled_as_nothing() -> None:
    spans = [labelled.Span(picture="a", start_s=0.0, end_s=1.0), labelled.Span(picture="b", start_s=1.5, end_s=2.0)]
    video = Labelled(Path("none"), labelled.Labels(kind="none", seed=0, duration_s=2.0, spans=spans))
    assert [video.picture_at(time_s) for time_s in (0.0, 0.99, 1.0, 1.4, 1.5, 2.0)] == ["a", "a", None, None, "b", None]
    assert video.distinct == 2
