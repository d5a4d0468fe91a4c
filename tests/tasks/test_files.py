"""vip.tasks.files: nothing is replaced unasked."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest

from vip.errors import InputError, UsageError
from vip.tasks.files import chance_of, check_new, draw_samples, file_inside, file_sha256, read_predictions, read_samples, write_samples
from vip.tasks.records import Blank, Sample


@pytest.mark.parametrize("kind", ["file", "fifo", "link"])
def test_whatever_stands_there_is_replaced_only_when_asked(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "p.jsonl"
    (tmp_path / "other").write_text("x")
    {"file": lambda: path.write_text("x"), "fifo": lambda: os.mkfifo(path), "link": lambda: path.symlink_to("other")}[kind]()
    with pytest.raises(UsageError, match=r"exists already\. Add --overwrite"):
        check_new(path, overwrite=False)
    check_new(path, overwrite=True)
    check_new(tmp_path / "new" / "p.jsonl", overwrite=False)
    assert (tmp_path / "new").is_dir()


def blank(name: str) -> Sample:
    return Sample(id=name, task="fiber", task_version=1, video="v", ask=Blank(text="There is _____."))


def test_samples_are_drawn_by_their_ids_whatever_stands_around_them() -> None:
    samples = [blank(f"s{number}") for number in range(30)]
    drawn = {one.id for one in draw_samples(samples, 10, 1)}
    assert [one.id for one in draw_samples(samples, 10, 1)] == [one.id for one in samples if one.id in drawn]
    assert {one.id for one in draw_samples(samples[::-1], 10, 1)} == drawn
    rest = [one for one in samples if one.id in drawn] + samples[:0]
    assert list(draw_samples(rest, 10, 1)) == list(draw_samples(rest, 99, 5)) == rest
    assert {one.id for one in draw_samples(samples, 10, 2)} != drawn
    assert draw_samples(samples, None, 1) is samples


def test_samples_of_a_file_whose_name_is_not_utf8_are_kept_and_drawn(tmp_path: Path) -> None:
    samples = [blank(f"a{chr(0xDCFF)}:{number}") for number in range(3)]
    write_samples(tmp_path / "s.jsonl", samples)
    kept = list(read_samples(tmp_path / "s.jsonl"))
    assert kept == samples
    assert len(list(draw_samples(kept, 2, 1))) == 2


def test_chance_is_drawn_for_a_name_that_is_not_utf8_and_for_others_as_ever() -> None:
    assert chance_of("7 a/é").random() == Random("7 a/é").random()
    drawn = {chance_of(f"7 {name}").random() for name in ("\ud800", "\udcff", "\ufffd")}
    assert len(drawn) == 3


def test_what_is_written_is_counted_and_read_again_and_a_missing_file_is_said(tmp_path: Path) -> None:
    assert write_samples(tmp_path / "s.jsonl", map(blank, "abc")) == 3
    assert [one.id for one in read_samples(tmp_path / "s.jsonl")] == ["a", "b", "c"]
    with pytest.raises(InputError, match=r"none\.jsonl does not exist"):
        list(read_samples(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match=r"none\.jsonl does not exist"):
        list(read_predictions(tmp_path / "none.jsonl"))


def test_the_digest_of_a_file_is_that_of_all_its_bytes(tmp_path: Path) -> None:
    data = bytes(range(256)) * 4100 * 3  # three blocks and a rest
    (tmp_path / "large").write_bytes(data)
    assert file_sha256(tmp_path / "large") == sha256(data).hexdigest()


@pytest.mark.parametrize("name", ["nul\0", "x" * 256, "é" * 128])
def test_a_name_that_no_file_has_is_no_link(name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^No file can be called .{1,70}: it has a zero byte, or too many letters"):
        file_inside(tmp_path / name, tmp_path)
    assert file_inside(tmp_path / ("x" * 255), tmp_path) == tmp_path / ("x" * 255)
