"""`vip batch` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.cli.terminal import vip
from tests.clips import clip
from vip.corpus.output.shards import read_clips

QUICK = ("-o", "corpus", "-n", "3", "--embedder", "classic", "--workers", "1")


def a_list(folder: Path, *more: str) -> None:
    for number in range(2):
        clip(folder / f"video{number}.mp4", range(number, number + 4))
    (folder / "list.txt").write_text("".join(f"{row}\n" for row in ("# what we have", "video0.mp4", "video1.mp4", *more)))


def test_a_list_becomes_a_data_set_and_the_end_says_so(tmp_path: Path) -> None:
    a_list(tmp_path)
    done = vip(tmp_path, "batch", "list.txt", *QUICK)
    assert done.code == 0, done.err
    assert done.out.splitlines()[0] == "corpus: finished"
    assert "2 done, 0 failed, 0 waiting of 2 (100.0 %)" in done.out
    assert "6 of 8 s of video" in done.out
    assert len(list(read_clips(str(tmp_path / "corpus")))) == 2


def test_what_failed_is_code_8_and_one_sentence(tmp_path: Path) -> None:
    a_list(tmp_path, "nowhere.mp4")
    done = vip(tmp_path, "batch", "list.txt", *QUICK, "--quiet")
    assert done.code == 8
    assert done.out == ""
    assert done.sentence.startswith("1 row failed; corpus/failures.jsonl says why.")
    (row,) = [json.loads(line) for line in (tmp_path / "corpus" / "failures.jsonl").read_text().splitlines()]
    assert (row["item"], row["kind"], row["where"]) == ("nowhere.mp4", "missing", "list.txt, line 4")


def test_json_is_one_object(tmp_path: Path) -> None:
    a_list(tmp_path)
    done = vip(tmp_path, "batch", "list.txt", *QUICK, "--json")
    (row,) = done.rows
    assert (row["done"], row["failed"], row["keyframes"], row["shards"]) == (2, 0, 6, 1)
    (told,) = vip(tmp_path, "batch", "--status", "corpus", "--json").rows
    assert told == row


def test_videos_can_be_named_without_a_list(tmp_path: Path) -> None:
    a_list(tmp_path)
    done = vip(tmp_path, "batch", "video0.mp4", "video1.mp4", *QUICK)
    assert done.code == 0, done.err
    assert "2 done" in done.out


def test_bare_retry_failed_means_all(tmp_path: Path) -> None:
    a_list(tmp_path, "late.mp4")
    (tmp_path / "late.mp4").write_text("not yet")
    assert vip(tmp_path, "batch", "list.txt", *QUICK).code == 8
    clip(tmp_path / "late.mp4")
    done = vip(tmp_path, "batch", *QUICK, "--retry-failed")
    assert done.code == 0, done.err
    assert "1 video that failed is tried again." in done.err
    assert "3 done" in done.out


def test_numbers_agree_with_their_nouns(tmp_path: Path) -> None:
    clip(tmp_path / "video.mp4", range(4))
    (tmp_path / "list.txt").write_text("video.mp4\nnowhere.mp4\n")
    done = vip(tmp_path, "batch", "list.txt", "-o", "corpus", "-n", "1", "--workers", "1", "--embedder", "classic")
    told = done.out + done.err + (tmp_path / "corpus" / "README.md").read_text() + (tmp_path / "corpus" / "card.html").read_text()
    assert "1 shard" in told
    assert "1 bad row" in told
    assert re.findall(r"(?<![\d,.])1 (?:chosen |bad )?(?:videos|rows|shards|keyframes|captions|claims|requests|tokens)\b", told) == []


def test_without_an_output_the_next_thing_to_do_is_said(tmp_path: Path) -> None:
    done = vip(tmp_path, "batch", "list.txt")
    assert (done.code, done.sentence) == (2, "Say where the data set goes with -o DIR. See `vip batch --help`.")


def test_a_list_that_is_not_there_makes_no_folder(tmp_path: Path) -> None:
    done = vip(tmp_path, "batch", "none.txt", *QUICK)
    assert done.code == 3
    assert "none.txt" in done.sentence
    assert not (tmp_path / "corpus").exists()


def test_status_of_nothing_is_one_sentence(tmp_path: Path) -> None:
    done = vip(tmp_path, "batch", "--status", "corpus")
    assert done.code == 3
    assert done.sentence.startswith("corpus holds no batch that was begun on this machine.")


def test_a_wrong_size_is_explained(tmp_path: Path) -> None:
    done = vip(tmp_path, "batch", "list.txt", *QUICK, "--disk-budget", "much")
    assert (done.code, done.sentence) == (2, "--disk-budget = 'much': write bytes such as 50GB or 800M.")


def test_a_type_of_failure_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = vip(tmp_path, "batch", *QUICK, "--retry-failed=netwrok")
    assert (done.code, done.sentence) == (2, 'There is no type of failure "netwrok". Did you mean "network"?')


def test_where_only_rows_failed_nothing_is_said_of_another_try(tmp_path: Path) -> None:
    a_list(tmp_path, "nowhere.mp4")
    assert "--retry-failed" not in vip(tmp_path, "batch", "list.txt", *QUICK).sentence


def test_prices_are_an_option_as_the_message_about_them_says(tmp_path: Path) -> None:
    a_list(tmp_path)
    done = vip(tmp_path, "batch", "list.txt", *QUICK, "--caption", "--engine", "offline", "--prices", "none.toml")
    assert "No such option" not in done.err


def test_settings_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    for options, sentence in (
        (("--min-length", "10", "--max-length", "5"), "--min-length 10 is more than --max-length 5."),
        (("--ray-address", "auto"), "--ray-address has nothing to do without --runner ray; add it, or leave the address out."),
    ):
        done = vip(tmp_path, "batch", "list.txt", *QUICK, *options)
        assert (done.code, done.sentence) == (2, sentence)
