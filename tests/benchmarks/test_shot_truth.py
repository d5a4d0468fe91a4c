"""Annotation files in the forms in which the data sets were published, written for these tests, and files that are not of them."""

from __future__ import annotations

import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from published import FormError
from shot_scores import Transition
from shot_truth import Truth, read_truth, video_id


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def transitions(truth: Truth) -> list[tuple[int, int]]:
    return [(transition.last, transition.first) for transition in truth.transitions]


# ---------------------------------------------------------------- what is read


def test_the_first_release_of_bbc_is_read_one_frame_later_as_transnetv2_does(tmp_path: Path) -> None:
    write(tmp_path / "01_From_Pole_to_Pole.txt", "0\t649\n650\t1159\n1200\t1527\n")
    found = read_truth("bbc", tmp_path)
    assert {name: transitions(truth) for name, truth in found.items()} == {"01": [(650, 651), (1160, 1201)]}


def test_the_corrected_release_of_bbc_is_read_as_it_stands(tmp_path: Path) -> None:
    write(tmp_path / "11-scenes.txt", "0\t649\n650\t1159\n")
    assert transitions(read_truth("bbc-fixed", tmp_path)["11"]) == [(649, 650)]


def test_a_frame_that_stands_in_two_shots_is_a_cut_behind_it_and_is_noted(tmp_path: Path) -> None:
    write(tmp_path / "11-scenes.txt", "36755\t36803\n36803\t36872\n36873\t37028\n")
    found = read_truth("bbc-fixed", tmp_path)["11"]
    assert transitions(found) == [(36803, 36804), (36872, 36873)]
    assert found.notes == ("1 frames stand in two shots; the cut is taken to lie behind them",)


def test_rai_is_a_file_a_video(tmp_path: Path) -> None:
    write(tmp_path / "1_gt.txt", "0\t43\n44\t100\n\n")
    write(tmp_path / "10_gt.txt", "0 9\n")
    found = read_truth("rai", tmp_path)
    assert {name: transitions(truth) for name, truth in found.items()} == {"1": [(43, 44)], "10": []}


def test_autoshot_is_a_folder_or_the_pickle_of_its_authors(tmp_path: Path) -> None:
    write(tmp_path / "texts" / "12580139534.txt", "0 80\n81 149\n150 178\n183 253\n")
    pickled = tmp_path / "gt_scenes_dict_baseline_v2.pickle"
    shots = {"12580139534": np.array([[0, 80], [81, 149], [150, 178], [183, 253]]), "51909559955": np.array([[0.0, 356.0]])}
    pickled.write_bytes(pickle.dumps(shots))
    expected = [(80, 81), (149, 150), (178, 183)]
    assert transitions(read_truth("autoshot", tmp_path / "texts")["12580139534"]) == expected
    assert {name: transitions(truth) for name, truth in read_truth("autoshot", pickled).items()} == {
        "12580139534": expected,
        "51909559955": [],
    }


def test_clipshots_is_one_file_and_its_typing_errors_are_left_out_and_named(tmp_path: Path) -> None:
    rows = [[606, 607], [466, 460], [275, 301], [607, 607], [6999, 7000]]
    videos = {"ANYoX7vtXt0.mp4": {"transitions": rows, "frame_num": 7000.0}, "b.mp4": {"transitions": [], "frame_num": 3}}
    found = read_truth("clipshots", write(tmp_path / "test.json", json.dumps(videos)))
    assert found["ANYoX7vtXt0.mp4"].transitions == (Transition(275, 301), Transition(606, 607))
    assert found["ANYoX7vtXt0.mp4"].frames == 7000
    assert found["ANYoX7vtXt0.mp4"].notes == ("left out [466, 460], [607, 607], [6999, 7000]: no transition within 7000 frames",)
    assert found["b.mp4"] == Truth((), 3)


@pytest.mark.parametrize(
    ("dataset", "name", "expected"),
    [
        *(("bbc", "bbc_01.mp4", "01"), ("bbc", "trailer.mp4", None), ("rai", "7.mp4", "7"), ("rai", "7b.mp4", None)),
        *(("autoshot", "12580139534.mp4", "12580139534"), ("clipshots", "1t9hqz2sqqc.mp4", "1t9hqz2sqqc.mp4")),
    ],
)
def test_videos_are_known_by_the_names_of_their_files(dataset: str, name: str, expected: str | None) -> None:
    assert video_id(dataset, name) == expected


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ("0 9\n10 x\n", 'line 2: expected the first and the last frame of a shot, but found "10 x".'),
        ("0,9\n", 'line 1: expected the first and the last frame of a shot, but found "0,9".'),
        ("0 9 10\n", "line 1: expected the first and the last frame"),
        ("0 9\n-1 20\n", "line 2: expected the first and the last frame"),
        ("0 9\n20 10\n", "line 2: the shot ends at frame 10, before it begins at 20."),
        ("0 9\n8 20\n", "line 2: the shot begins at frame 8, before the one above ends at 9."),
        ("0 9\n9 9\n10 12\n", "line 2: the shot begins at frame 9, before the one above ends at 9."),
        ("\n", "holds no shot."),
    ],
)
def test_a_row_that_is_no_shot_is_refused_with_its_line(rows: str, fault: str, tmp_path: Path) -> None:
    file = write(tmp_path / "1_gt.txt", rows)
    with pytest.raises(FormError, match=re.escape(str(file)) + ".*" + re.escape(fault)):
        read_truth("rai", tmp_path)


@pytest.mark.parametrize(
    ("dataset", "name", "fault"),
    [
        ("bbc", "01-scenes.txt", "is no file of bbc, which is a folder of NN_Title.txt, the first release"),
        ("bbc-fixed", "01_From_Pole_to_Pole.txt", "is no file of bbc-fixed, which is a folder of NN-scenes.txt, the corrected release"),
        ("rai", "readme.txt", "is no file of rai, which is a folder of N_gt.txt"),
    ],
)
def test_the_two_releases_of_bbc_are_not_taken_for_one_another(dataset: str, name: str, fault: str, tmp_path: Path) -> None:
    write(tmp_path / name, "0\t649\n")
    with pytest.raises(FormError, match=fault):
        read_truth(dataset, tmp_path)


@pytest.mark.parametrize("dataset", ["bbc", "bbc-fixed", "rai", "autoshot"])
def test_a_folder_without_annotations_a_file_and_nothing_are_refused(dataset: str, tmp_path: Path) -> None:
    for path, fault in (
        (tmp_path, "has no annotation"),
        (write(tmp_path / "a.csv", ""), "is a file, but"),
        (tmp_path / "b", "does not exist"),
    ):
        with pytest.raises(FormError, match=fault):
            read_truth(dataset, path)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        ("{", "is no JSON: "),
        ("[]", "holds no videos. clipshots is test.json"),
        ({"a.mp4": [[1, 2]]}, 'a.mp4: expected "transitions" and a whole "frame_num".'),
        ({"a.mp4": {"transitions": [], "frame_num": 3.5}}, 'a.mp4: expected "transitions" and a whole "frame_num".'),
        ({"a.mp4": {"transitions": [[1, 2, 3]], "frame_num": 9}}, "a.mp4: expected two frame numbers, but found [1, 2, 3]."),
        ({"a.mp4": {"transitions": [[1, 2.5]], "frame_num": 9}}, "a.mp4: expected two frame numbers, but found [1, 2.5]."),
        ({"a.mp4": {"transitions": [[1, 5], [4, 6]], "frame_num": 9}}, "a.mp4: the transitions 1–5 and 4–6 overlap."),
        ({"a.mp4": {"transitions": [[1, 2], [1, 2]], "frame_num": 9}}, "a.mp4: the transitions 1–2 and 1–2 overlap."),
    ],
)
def test_a_clipshots_file_of_another_form_is_refused(data: Any, fault: str, tmp_path: Path) -> None:
    file = write(tmp_path / "test.json", data if isinstance(data, str) else json.dumps(data))
    with pytest.raises(FormError, match=re.escape(fault)):
        read_truth("clipshots", file)


class Harmful:
    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path("harmed"),)


class HarmfulNumpy:
    def __reduce__(self) -> tuple[Any, ...]:
        return np.savetxt, ("harmed", [1.0])


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (HarmfulNumpy(), "is no pickle of arrays (it asks for numpy.savetxt"),
        (Harmful(), "is no pickle of arrays (it asks for "),
        ({"1": Harmful()}, "is no pickle of arrays (it asks for "),
        ({"1": np.zeros((2, 3), int)}, "1: expected an array of whole numbers (shots, 2)."),
        ({"1": np.array([[0.5, 3.0]])}, "1: expected an array of whole numbers (shots, 2)."),
        ({"1": np.array([[0, 3], [2, 9]])}, "1, shot 2: the shot begins at frame 2, before the one above ends at 3."),
        ({"1": "text"}, "1: expected an array of whole numbers (shots, 2)."),
        ([], "holds no videos"),
    ],
)
def test_a_pickle_that_is_not_arrays_is_refused_and_nothing_of_it_runs(
    data: Any, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "gt.pickle"
    file.write_bytes(pickle.dumps(data))
    with pytest.raises(FormError, match=re.escape(fault)):
        read_truth("autoshot", file)
    assert not Path("harmed").exists()


def test_a_broken_pickle_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "gt.pickle"
    file.write_bytes(b"\x80\x04no")
    with pytest.raises(FormError, match="is no pickle of arrays"):
        read_truth("autoshot", file)
