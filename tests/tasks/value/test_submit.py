"""Submissions: names and forms of the server, from vip's files and from published ones, and zips of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.tasks.scoring import answer, sample
from tests.tasks.value.made import query, read, write_index, write_json, write_lines
from vip import store
from vip.errors import InputError, StoreError, UsageError
from vip.tasks.files import write_samples
from vip.tasks.records import Found, FoundMoments, Prediction
from vip.tasks.value import submit
from vip.tasks.value.archive import unpacked_submission
from vip.tasks.value.submit import make_submission, missing_files


@pytest.fixture
def annotations(tmp_path: Path) -> Path:
    """Published files of three tasks."""
    folder = tmp_path / "annotations"
    for name in ("vlep", "tvr", "yc2c"):
        (folder / name).mkdir(parents=True)
    events = [{"example_id": number, "events": ["a", "b"], "answer": 0, "vid_name": "v"} for number in (7, 8)]
    write_lines(folder / "vlep" / "vlep_dev_release.jsonl", events)
    write_lines(folder / "vlep" / "vlep_test_release.jsonl", [{"example_id": 9, "events": ["a", "b"], "vid_name": "v"}])
    write_lines(folder / "tvr" / "tvr_val_release.jsonl", [query(1), query(2, "street")])
    write_index(folder).rename(folder / "tvr" / "tvr_video2dur_idx.json")
    write_lines(folder / "yc2c" / "yc2c_val_release.jsonl", [{"vid_name": "id_3", "clip_id": 5, "descs": [{"desc": "mix it"}]}])
    return folder


def own_files(folder: Path, annotations: Path) -> Path:
    """Write what `vip predict` would: predictions and their samples."""
    folder.mkdir()
    moments = FoundMoments(videos=("street", "park"), starts_s=(1.0, 2.5), ends_s=(3.0, 4.0))
    answers = {
        ("vlep", "vlep_dev_release"): [Prediction(sample_id=key, value=1) for key in ("8", "7")],
        ("vlep", "vlep_test_release"): [Prediction(sample_id="9", value=0)],
        ("tvr", "tvr_val_release"): [Prediction(sample_id=key, value=Found(vcmr=moments, vr=("park",))) for key in ("1", "2")],
        ("yc2c", "yc2c_val_release"): [Prediction(sample_id="5", value="stir")],
    }
    for (key, name), predictions in answers.items():
        _, samples = read(key, annotations / key / f"{name}.jsonl")
        write_samples(folder / f"{name}.samples.jsonl", samples)
        store.write_rows(folder / f"{name}.jsonl", predictions)
    return folder


def test_files_of_vip_get_the_names_and_forms_of_the_server(tmp_path: Path, annotations: Path) -> None:
    out = tmp_path / "submission"
    files = make_submission([own_files(tmp_path / "p", annotations)], out, annotations=annotations)
    assert [(one.task, one.split, one.name, one.answers) for one in files] == [
        ("value-tvr", "val", "tvr/tvr_val_predictions.json", 2),
        ("value-vlep", "val", "vlep/vlep_dev_predictions.json", 2),
        ("value-vlep", "test", "vlep/vlep_test_predictions.json", 1),
        ("value-yc2c", "val", "yc2c/yc2c_val_predictions.jsonl", 1),
    ]
    assert json.loads((out / "vlep/vlep_dev_predictions.json").read_text()) == {"7": 1, "8": 1}
    tvr = json.loads((out / "tvr/tvr_val_predictions.json").read_text())
    assert tvr["VCMR"][0] == {"desc_id": 1, "predictions": [[8, 1.0, 3.0, 2], [7, 2.5, 4.0, 1]]}
    assert tvr["VR"] == [{"desc_id": 1, "predictions": [7]}, {"desc_id": 2, "predictions": [7]}]
    caption = json.loads((out / "yc2c/yc2c_val_predictions.jsonl").read_text())
    assert caption == {"video_id": "id_3", "clip_id": 5, "descs": [{"desc": "stir"}]}
    assert len(missing_files(files)) == 22 - 4
    assert "tvr/tvr_test_predictions.json" in missing_files(files)


def test_a_submission_is_read_and_written_again_as_it_is(tmp_path: Path, annotations: Path) -> None:
    first, second, packed = tmp_path / "first", tmp_path / "second", tmp_path / "s.zip"
    made = make_submission([own_files(tmp_path / "p", annotations)], first, annotations=annotations)
    assert make_submission([first], packed, annotations=annotations) == made
    with ZipFile(packed) as archive:
        assert archive.namelist() == sorted(one.name for one in made)
    assert make_submission([packed], second, annotations=annotations) == made
    for one in made:
        assert (second / one.name).read_bytes() == (first / one.name).read_bytes()
    with pytest.raises(UsageError, match="exists already"):
        make_submission([first], packed, annotations=annotations)


def test_what_cannot_be_submitted_is_one_sentence(tmp_path: Path, annotations: Path) -> None:
    own = own_files(tmp_path / "p", annotations)
    with pytest.raises(UsageError, match="value-tvr names videos by number"):
        make_submission([own / "tvr_val_release.jsonl"], tmp_path / "s")
    with pytest.raises(InputError, match=r"vlep_test_release\.jsonl is a second file of predictions for vlep/vlep_dev_predictions\.json"):
        make_submission([own / "vlep_dev_release.jsonl", own / "vlep_test_release.jsonl"], tmp_path / "s", split="val")
    with pytest.raises(InputError, match=r'lacks 2 of 2 ids, such as "7"'):
        make_submission([own / "vlep_test_release.jsonl"], tmp_path / "s", annotations=annotations, split="val")
    store.write_rows(own / "yc2c_val_release.jsonl", [Prediction(sample_id="5", value=None, status="refused")])
    with pytest.raises(InputError, match=r'"5" has no answer \(refused\)'):
        make_submission([own / "yc2c_val_release.jsonl"], tmp_path / "s")
    (own / "yc2c_val_release.samples.jsonl").unlink()
    with pytest.raises(InputError, match=r"There is no yc2c_val_release\.samples\.jsonl beside"):
        make_submission([own / "yc2c_val_release.jsonl"], tmp_path / "s")
    broken = tmp_path / "broken"
    (broken / "vlep").mkdir(parents=True)
    write_json(broken / "vlep" / "vlep_dev_predictions.json", {"7": 1})
    with pytest.raises(InputError, match=r'lacks 1 of 2 ids, such as "8"'):
        make_submission([broken], tmp_path / "s", annotations=annotations)
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("submission/vlep/vlep_dev_predictions.json", "has the folder submission around its tasks"),
        ("predictions.json", "holds predictions.json, no file of a task"),
        ("vlep/..", "no file of a task"),
        ("vlep/../../evil.json", "no file of a task|around its tasks"),
    ],
)
def test_a_zip_with_other_names_is_refused(name: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr(name, "{}")
    with pytest.raises(InputError, match=message), unpacked_submission(path):
        pass


def test_a_damaged_zip_and_one_that_swells_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "s.zip"
    path.write_bytes(b"PK no zip")
    with pytest.raises(InputError, match="cannot be unpacked"), unpacked_submission(path):
        pass
    monkeypatch.setattr("vip.tasks.value.archive.MOST_BYTES", 1000)
    with ZipFile(path, "w", 8) as archive:
        archive.writestr("vlep/vlep_dev_predictions.json", " " * 5000)
    with pytest.raises(InputError, match="has more than 1,000 bytes"), unpacked_submission(path):
        pass


def test_a_zip_is_unpacked_or_refused_in_one_sentence_whatever_byte_of_it_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with ZipFile(path, "w", 8) as archive:
        archive.writestr("vlep/ü.json", "{}")
    whole, refused = path.read_bytes(), 0
    for place, byte in ((place, byte) for place in range(len(whole)) for byte in (b"\0", b"\xff")):
        path.write_bytes(whole[:place] + byte + whole[place + 1 :])
        try:
            with unpacked_submission(path):
                pass
        except InputError:
            refused += 1
    assert refused > 100


def test_a_zip_whose_member_has_no_name_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("x", "{}")
    path.write_bytes(path.read_bytes().replace(b"x", b"\0"))
    with pytest.raises(InputError, match="no file of a task"), unpacked_submission(path):
        pass


def test_a_pipe_in_the_place_of_a_zip_holds_nothing_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "s.zip")
    with pytest.raises(InputError, match=r"cannot be unpacked \(it is no regular file\)"), unpacked_submission(tmp_path / "s.zip"):
        pass


def test_a_task_of_any_length_is_named_shortly(tmp_path: Path) -> None:
    other = sample("1", "a dog").model_copy(update={"task": "x" * 100_000})
    write_samples(tmp_path / "p.samples.jsonl", [other])
    store.write_rows(tmp_path / "p.jsonl", [answer(other, "a dog")])
    with pytest.raises(InputError, match="which is none of VALUE") as refused:
        make_submission([tmp_path / "p.jsonl"], tmp_path / "out")
    assert len(str(refused.value)) < 600


def test_no_folder_of_a_task_leads_elsewhere(tmp_path: Path) -> None:
    """The folder that is named may be a link; those in it may not."""
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "s"
    elsewhere.mkdir()
    out.mkdir()
    (out / "vlep").symlink_to(elsewhere)
    (tmp_path / "unpacked" / "vlep").mkdir(parents=True)
    (tmp_path / "unpacked" / "vlep" / "vlep_dev_predictions.json").write_text("{}")
    with pytest.raises(StoreError, match="it is a link, or lies behind one"):
        submit._put_in_place(tmp_path / "unpacked", ["vlep/vlep_dev_predictions.json"], out)
    assert list(elsewhere.iterdir()) == []
    (out / "vlep").unlink()
    submit._put_in_place(tmp_path / "unpacked", ["vlep/vlep_dev_predictions.json"], out)
    assert (out / "vlep" / "vlep_dev_predictions.json").read_text() == "{}"


def test_samples_are_of_the_test_split_where_one_has_no_answer(tmp_path: Path) -> None:
    events = [{"example_id": number, "events": ["a", "b"], "vid_name": "v"} for number in (7, 8)]
    for name, rows in (("some", [{**events[0], "answer": 0}, events[1]]), ("all", [{**one, "answer": 0} for one in events])):
        _, samples = read("vlep", write_lines(tmp_path / "a.jsonl", rows))
        write_samples(tmp_path / f"{name}.samples.jsonl", samples)
        store.write_rows(tmp_path / f"{name}.jsonl", [Prediction(sample_id=one.id, value=0) for one in samples])
        make_submission([tmp_path / f"{name}.jsonl"], tmp_path / name)
    assert [path.name for path in (tmp_path / "some" / "vlep").iterdir()] == ["vlep_test_predictions.json"]
    assert [path.name for path in (tmp_path / "all" / "vlep").iterdir()] == ["vlep_dev_predictions.json"]
    (one,) = make_submission([tmp_path / "all.jsonl"], tmp_path / "forced", split="test")
    assert (one.split, one.name) == ("test", "vlep/vlep_test_predictions.json")


def test_files_stand_by_task_and_val_before_test(tmp_path: Path, annotations: Path) -> None:
    own = own_files(tmp_path / "p", annotations)
    names = ["yc2c_val_release.jsonl", "vlep_test_release.jsonl", "vlep_dev_release.jsonl"]
    files = make_submission([own / name for name in names], tmp_path / "s")
    assert [(one.task, one.split) for one in files] == [("value-vlep", "val"), ("value-vlep", "test"), ("value-yc2c", "val")]


def test_what_is_missing_is_named_of_both_splits(tmp_path: Path, annotations: Path) -> None:
    files = make_submission([own_files(tmp_path / "p", annotations) / "vlep_dev_release.jsonl"], tmp_path / "s")
    missing = missing_files(files)
    assert len(set(missing)) == 21
    assert {"vlep/vlep_test_predictions.json", "yc2c/yc2c_val_predictions.jsonl", "yc2c/yc2c_test_predictions.jsonl"} <= set(missing)
    assert "vlep/vlep_dev_predictions.json" not in missing
    assert missing[9] == "vatex_en_c/vatex_en_c_test_public_predictions.jsonl", "val first, as that task names it"
    assert len(missing_files([])) == 22


def test_predictions_that_are_not_those_of_the_samples_are_refused(tmp_path: Path, annotations: Path) -> None:
    own = own_files(tmp_path / "p", annotations)
    path = own / "vlep_dev_release.jsonl"
    store.write_rows(path, [Prediction(sample_id=key, value=1) for key in ("8", "7", "9", "6")])
    with pytest.raises(InputError, match='has too many: 2 of 2 ids, such as "6"'):
        make_submission([path], tmp_path / "s")
    store.write_rows(path, [Prediction(sample_id="8", value=1)])
    with pytest.raises(InputError, match='lacks 1 of 2 ids, such as "7"'):
        make_submission([path], tmp_path / "s")
    (tmp_path / "note.json").write_text("{}")
    with pytest.raises(InputError, match=r"note\.json is no file of `vip predict`"):
        make_submission([tmp_path / "note.json"], tmp_path / "s")
    with pytest.raises(InputError, match=r"none\.jsonl does not exist"):
        make_submission([tmp_path / "none.jsonl"], tmp_path / "s")
    with pytest.raises(UsageError, match='val and test, not "dev"'):
        make_submission([path], tmp_path / "s", split="dev")
    assert not (tmp_path / "s").exists()


def test_samples_of_a_folder_may_have_one_file(tmp_path: Path, annotations: Path) -> None:
    """A file beside the predictions that has their name comes before the one of the folder."""
    _, samples = read("yc2c", annotations / "yc2c" / "yc2c_val_release.jsonl")
    folder = tmp_path / "runs" / "run"
    folder.mkdir(parents=True)
    write_samples(folder / "samples.jsonl", samples)
    store.write_rows(folder / "p.jsonl", [Prediction(sample_id="5", value="stir")])
    (one,) = make_submission([tmp_path / "runs"], tmp_path / "s")
    assert (one.name, one.answers) == ("yc2c/yc2c_val_predictions.jsonl", 1)
    write_samples(folder / "p.samples.jsonl", [samples[0].model_copy(update={"id": "6"})])
    with pytest.raises(InputError, match='lacks 1 of 1 ids, such as "6"'):
        make_submission([folder / "p.jsonl"], tmp_path / "t")


@pytest.mark.parametrize("name", ["p.jsonl", "samples.jsonl", "p.samples.jsonl"])
def test_no_link_is_followed_in_a_folder_of_predictions(name: str, tmp_path: Path, annotations: Path) -> None:
    _, samples = read("yc2c", annotations / "yc2c" / "yc2c_val_release.jsonl")
    folder = tmp_path / "run"
    folder.mkdir()
    write_samples(folder / "samples.jsonl", samples)
    store.write_rows(folder / "p.jsonl", [Prediction(sample_id="5", value="stir")])
    (folder / name).unlink(missing_ok=True)
    write_samples(tmp_path / "elsewhere.jsonl", samples)
    (folder / name).symlink_to(tmp_path / "elsewhere.jsonl")
    with pytest.raises(InputError, match=rf"{name} is a link, and vip follows none inside a folder"):
        make_submission([folder], tmp_path / "s")
    if name != "p.jsonl":
        with pytest.raises(InputError, match=rf"{name} is a link"):
            make_submission([folder / "p.jsonl"], tmp_path / "s")


def test_a_submission_is_replaced_where_that_is_asked_for(tmp_path: Path, annotations: Path) -> None:
    own = own_files(tmp_path / "p", annotations)
    out = tmp_path / "s"
    make_submission([own / "yc2c_val_release.jsonl"], out)
    store.write_rows(own / "yc2c_val_release.jsonl", [Prediction(sample_id="5", value="bake")])
    with pytest.raises(UsageError, match="exists already"):
        make_submission([own / "yc2c_val_release.jsonl"], out)
    assert json.loads((out / "yc2c/yc2c_val_predictions.jsonl").read_text())["descs"] == [{"desc": "stir"}]
    make_submission([own / "yc2c_val_release.jsonl"], out, overwrite=True)
    assert json.loads((out / "yc2c/yc2c_val_predictions.jsonl").read_text())["descs"] == [{"desc": "bake"}]


def test_published_files_of_both_splits_are_read_and_need_their_annotations(tmp_path: Path, annotations: Path) -> None:
    folder = tmp_path / "theirs" / "vlep"
    folder.mkdir(parents=True)
    write_json(folder / "vlep_dev_predictions.json", {"7": 1, "8": 0})
    write_json(folder / "vlep_test_predictions.json", {"9": 1})
    with pytest.raises(UsageError, match=r"vlep_dev_predictions\.json is checked against annotations"):
        make_submission([folder.parent], tmp_path / "s")
    files = make_submission([folder.parent], tmp_path / "s", annotations=annotations)
    assert [(one.split, one.answers) for one in files] == [("val", 2), ("test", 1)]
    (annotations / "tvr" / "tvr_video2dur_idx.json").unlink()
    (folder.parent / "tvr").mkdir()
    write_json(folder.parent / "tvr" / "tvr_val_predictions.json", {"VR": [{"desc_id": key, "predictions": [7]} for key in (1, 2)]})
    with pytest.raises(InputError, match=r"has no tvr_video2dur_idx\.json, which numbers the videos of value-tvr"):
        make_submission([folder.parent], tmp_path / "t", annotations=annotations)


def test_a_zip_is_bounded_by_what_it_unpacks_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each file for itself, and over its blocks together."""
    monkeypatch.setattr("vip.tasks.value.archive.MOST_BYTES", 1000)
    monkeypatch.setattr("vip.tasks.value.archive.BLOCK_BYTES", 300)
    path = tmp_path / "s.zip"
    with ZipFile(path, "w", 8) as archive:
        archive.writestr("vlep/vlep_dev_predictions.json", b"a" * 1000)
        archive.writestr("tvqa/tvqa_val_predictions.json", b"b" * 900)
    with unpacked_submission(path) as folder:
        assert (folder / "vlep/vlep_dev_predictions.json").read_bytes() == b"a" * 1000
        assert (folder / "tvqa/tvqa_val_predictions.json").read_bytes() == b"b" * 900
    assert not folder.exists()
    with ZipFile(path, "w", 8) as archive:
        archive.writestr("vlep/vlep_dev_predictions.json", b"a" * 1001)
    with pytest.raises(InputError, match=r"vlep/vlep_dev_predictions\.json has more than 1,000 bytes"), unpacked_submission(path):
        pass


def test_what_macos_adds_to_a_zip_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "s.zip"
    with ZipFile(path, "w") as archive:
        archive.mkdir("vlep")
        for name in ("vlep/vlep_dev_predictions.json", "vlep/.DS_Store", ".DS_Store", "__MACOSX/vlep/._vlep_dev_predictions.json"):
            archive.writestr(name, "{}")
    with unpacked_submission(path) as folder:
        assert [one.relative_to(folder).as_posix() for one in folder.rglob("*") if one.is_file()] == ["vlep/vlep_dev_predictions.json"]


def test_a_zip_of_many_files_is_no_submission(tmp_path: Path) -> None:
    for count in (200, 201):
        with ZipFile(tmp_path / f"{count}.zip", "w") as archive:
            for place in range(count):
                archive.writestr(f"vlep/{place}_dev_predictions.json", "{}")
    with unpacked_submission(tmp_path / "200.zip") as folder:
        assert len(list((folder / "vlep").iterdir())) == 200
    with (
        pytest.raises(InputError, match=r"201\.zip has 201 files, and a submission has at most 22"),
        unpacked_submission(tmp_path / "201.zip"),
    ):
        pass


def test_a_folder_whose_name_ends_as_that_of_a_zip_is_read_as_a_folder(tmp_path: Path) -> None:
    folder = tmp_path / "submission.zip"
    folder.mkdir()
    with unpacked_submission(folder) as found:
        assert found == folder
    assert folder.is_dir()


def test_a_folder_without_predictions_is_no_submission(tmp_path: Path, annotations: Path) -> None:
    (tmp_path / "empty" / "tvr").mkdir(parents=True)
    with pytest.raises(InputError, match=r"empty holds no predictions of a task of VALUE"):
        make_submission([tmp_path / "empty"], tmp_path / "out", annotations=annotations)
