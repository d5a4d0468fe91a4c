"""Annotations: faults with their lines, and the index of videos."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tests.tasks.value.made import query, read, write_index, write_json, write_lines
from vip.errors import InputError
from vip.tasks import json_rows
from vip.tasks.records import Choice, Moment, Reference
from vip.tasks.value import annotations
from vip.tasks.value.annotations import read_video_index


def test_moments_have_one_span_or_several(tmp_path: Path) -> None:
    _, samples = read("tvr", write_lines(tmp_path / "a.jsonl", [query(1), query(2, ts=[[0, 5], [5, 10]])]))
    spans = [sample.reference.values[0] for sample in samples if sample.reference]
    assert spans == [
        (Moment(video="park", start_s=10, end_s=20),),
        (Moment(video="park", start_s=0, end_s=5), Moment(video="park", start_s=5, end_s=10)),
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{", "line 2: it is no JSON"),
        (b"[1]", "line 2: it is no JSON object"),
        (b'{"desc_id": 2}', "line 2: it has no desc. Give the annotations of TVR"),
        (b'{"desc_id": 2, "desc": "x", "vid_name": "v", "ts": ["a", 1]}', "line 2: ts is .* and not .start, end. in seconds"),
        (b'{"desc_id": 2, "desc": "x", "vid_name": "v", "ts": 5}', "line 2: ts is 5 and not"),
        (b'{"desc_id": 2, "desc": "x", "vid_name": "v", "ts": [5, 2]}', "line 2: ts is .5, 2. and not"),
        (b'{"desc_id": null, "desc": "x"}', "line 2: desc_id is None, and no name or number"),
        (json.dumps(query(1)).encode(), 'line 2: the id "1" is that of line 1 too'),
        (b'"' + b"x" * 2**20, "line 2: it has more than 1,048,576 bytes"),
    ],
)
def test_a_fault_is_one_sentence_with_its_line(line: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(json.dumps(query(1)).encode() + b"\n" + line + b"\n")
    with pytest.raises(InputError, match=message) as caught:
        read("tvr", path)
    assert "\n" not in str(caught.value)


def test_files_that_hold_nothing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="holds nothing"):
        read("tvr", write_lines(tmp_path / "a.jsonl", []))
    with pytest.raises(InputError, match="is no file"):
        read("tvr", tmp_path / "none.jsonl")
    with pytest.raises(InputError, match="has no solution by show"):
        read("tvqa", write_json(tmp_path / "s.json", {"solutions": {}}))
    with pytest.raises(InputError, match=r"the answer 9 is no index from 0 to 4"):
        read("tvqa", write_json(tmp_path / "s.json", {"solution": {"friends": {"1": 9}}}))


def test_packed_annotations_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(query(1)).encode()))
    assert [sample.id for sample in read("tvr", path)[1]] == ["1"]


@pytest.mark.parametrize("line", [b"\n", b" " * 9999 + b"\n"])
def test_packed_annotations_that_unpack_to_nothing_but_blanks_are_refused(
    line: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_rows, "MOST_BLANK_LINES", 1000)
    monkeypatch.setattr(annotations, "MOST_BYTES", 2**20)
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress(json.dumps(query(1)).encode() + b"\n" + line * 1001))
    with pytest.raises(
        InputError, match=r"(1,000 blank lines|too many bytes unpacked)\. Give the annotations of TVR as they were published"
    ):
        read("tvr", path)


def test_the_index_names_videos_by_their_second_number(tmp_path: Path) -> None:
    path = write_index(tmp_path)
    assert read_video_index(path) == read_video_index(path, "val") == {7: "park", 8: "street"}
    with pytest.raises(InputError, match='has no split "test", but val'):
        read_video_index(path, "test")
    for value, message in (({}, "names no video"), ({"val": {"park": 5}}, "park has no length and number"), ([], "names no video")):
        with pytest.raises(InputError, match=message):
            read_video_index(write_json(tmp_path / "i.json", value))
    with pytest.raises(InputError, match="cannot be read"):
        read_video_index(tmp_path / "none.json")


def test_the_test_split_of_tvr_has_the_videos_of_both_its_parts(tmp_path: Path) -> None:
    index = {"test_challenge": {"a": [60, 0]}, "test_public": {"b": [60, 1]}, "train": {"c": [60, 2]}, "val": {"d": [60, 3]}}
    path = write_json(tmp_path / "tvr_video2dur_idx.json", index)
    assert read_video_index(path, "test") == {0: "a", 1: "b"}
    assert read_video_index(path, "test_public") == {1: "b"}
    assert read_video_index(path) == {0: "a", 1: "b", 2: "c", 3: "d"}
    numbered = write_json(
        tmp_path / "numbered.json", {"val": {"x": [9.5, 12], "y": [3, 4]}, "val_2": {"z": [1, 5]}, "valid": {"w": [1, 6]}}
    )
    assert read_video_index(numbered, "val") == {12: "x", 4: "y", 5: "z"}
    packed = tmp_path / "packed.json.gz"
    packed.write_bytes(gzip.compress(numbered.read_bytes()))
    assert read_video_index(packed, "valid") == {6: "w"}


def test_a_clip_of_youcook2_keeps_its_name_beside_its_video(tmp_path: Path) -> None:
    row = {"vid_name": "LYj5-CdRIz0_3", "clip_id": 13347, "duration": 5, "descs": [{"desc": "cover and cook"}]}
    _, (sample,) = read("yc2c", write_lines(tmp_path / "yc2c.jsonl", [row]))
    assert (sample.video, sample.clip) == ("LYj5-CdRIz0", "LYj5-CdRIz0_3")


def test_the_name_of_a_video_may_have_the_sign_before_the_number_of_a_clip(tmp_path: Path) -> None:
    rows = [
        {"vid_name": name, "clip_id": number, "descs": [{"desc": "stir"}]} for number, name in enumerate(("xHr8X2_Wpmno_12", "_a_0", "b"))
    ]
    _, samples = read("yc2c", write_lines(tmp_path / "yc2c.jsonl", rows))
    assert [(one.video, one.clip) for one in samples] == [("xHr8X2_Wpmno", "xHr8X2_Wpmno_12"), ("_a", "_a_0"), ("b", "b")]


def test_annotations_of_another_task_are_refused(tmp_path: Path) -> None:
    statement = {"example_id": 1, "vid_name": "v", "statement": "A dog runs.", "answer": 1}
    five = {"qid": 5, "q": "Who?", **{f"a{index}": "x" for index in range(5)}, "answer_idx": 1, "vid_name": "v"}
    for key, row, message in (
        ("vlep", statement, "it has no events"),
        ("how2qa", five, "it has 5 options and not 4"),
        ("tvqa", statement, "it has no a0"),
        ("vlep", {"example_id": 1, "vid_name": "v", "events": ["a", "b", "c"], "answer": 1}, "it has 3 options and not 2"),
    ):
        with pytest.raises(InputError, match=message):
            read(key, write_lines(tmp_path / "a.jsonl", [row]))


def test_a_moment_may_be_an_instant_and_bounds_are_those_of_the_text(tmp_path: Path) -> None:
    _, samples = read("tvr", write_lines(tmp_path / "a.jsonl", [query(1, ts=[5, 5]), query(2, desc="x" * 10_000), query("q" * 500)]))  # type: ignore[arg-type]
    assert [sample.id for sample in samples] == ["1", "2", "q" * 500]
    assert samples[0].reference is not None
    assert samples[0].reference.values[0] == (Moment(video="park", start_s=5, end_s=5),)
    for row, message in (
        (query(1, desc="x" * 10_001), "desc is no text of at most 10,000 letters"),
        (query("q" * 501), "no name or number"),  # type: ignore[arg-type]
        (query(1, video=""), "line 1: vid_name is empty, and no name or number"),
        (query(True), "no name or number"),
    ):
        with pytest.raises(InputError, match=message):
            read("tvr", write_lines(tmp_path / "a.jsonl", [row]))


@pytest.mark.parametrize(
    ("answer", "index"), [(0, 0), (1, 1), ("1", 1), (True, 1), (False, 0), (2, None), (-1, None), ("x", None), ("²", None), (1.0, None)]
)
def test_an_answer_is_the_index_of_an_option(answer: object, index: int | None, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "a.jsonl", [{"example_id": 1, "vid_name": "v", "statement": "A dog runs.", "answer": answer}])
    if index is None:
        with pytest.raises(InputError, match="is no index from 0 to 1"):
            read("violin", path)
        return
    assert read("violin", path)[1][0].reference == Reference(values=(index,))


def test_a_question_without_words_and_a_clip_without_captions_are_read(tmp_path: Path) -> None:
    row = {"qid": 5, "q": "", **{f"a{index}": "x" for index in range(4)}, "vid_name": "v"}
    _, (question,) = read("how2qa", write_lines(tmp_path / "a.jsonl", [row]))
    assert (question.ask, question.reference) == (Choice(question="Which option is right?", options=("x",) * 4), None)
    rows = [{"vid_name": "a_1_2", "clip_id": 3, "ts": [1, 2], "descs": [{"desc": "one"}, {"desc": "two"}], "type": "v"}]
    _, (clip,) = read("tvc", write_lines(tmp_path / "b.jsonl", rows))
    assert clip.reference == Reference(values=("one", "two"))
    assert (clip.video, clip.clip, clip.start_s, clip.end_s, clip.groups) == ("a_1_2", None, 1.0, 2.0, {"type": ("v",)})
    _, (found,) = read("yc2r", write_lines(tmp_path / "c.jsonl", [{"desc_id": 1, "desc": "cut", "vid_name": "a_b_7", "ts": [1, 2]}]))
    assert (found.video, found.clip, found.start_s) == ("a_b", "a_b_7", None)
    assert found.reference == Reference(values=(("a_b_7",),))


def test_the_index_may_be_packed_and_a_damaged_one_is_one_sentence(tmp_path: Path) -> None:
    data = write_index(tmp_path).read_bytes()
    packed = tmp_path / "tvr_video2dur_idx.json.gz"
    packed.write_bytes(gzip.compress(data))
    assert read_video_index(packed) == {7: "park", 8: "street"}
    for damaged in (gzip.compress(data)[:-20], data, b"", gzip.compress(b"\xff")):
        packed.write_bytes(damaged)
        with pytest.raises(InputError, match=r"json\.gz is no JSON \(.*\)\. Give <task>_video2dur_idx\.json as it was published") as caught:
            read_video_index(packed)
        assert "\n" not in str(caught.value)
    for path in (tmp_path / "none.json", tmp_path / "none.json.gz"):
        with pytest.raises(InputError, match=r"cannot be read: No such file"):
            read_video_index(path)
    with pytest.raises(InputError, match=r"none\.json (cannot be read|is no file)"):
        read("tvqa", tmp_path / "none.json")
