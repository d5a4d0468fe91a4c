"""`vip batch` as a user types it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import SECRET, RefusingServer, vip
from tests.clips import clip, picture
from vip.dataset.shards import read_samples, read_shards

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
    assert len(list(read_samples(str(tmp_path / "corpus")))) == 2


def test_what_failed_is_code_8_and_one_sentence(tmp_path: Path) -> None:
    a_list(tmp_path, "nowhere.mp4")
    done = vip(tmp_path, "batch", "list.txt", *QUICK, "--quiet")
    assert done.code == 8
    assert done.out == ""
    assert done.sentence.startswith("1 row failed; corpus/failures.jsonl says why.")
    (row,) = [json.loads(line) for line in (tmp_path / "corpus" / "failures.jsonl").read_text().splitlines()]
    assert (row["item"], row["kind"], row["where"]) == ("nowhere.mp4", "missing", "list.txt, line 4")


def test_a_keyframe_that_could_not_be_described_is_code_8_too(tmp_path: Path) -> None:
    clip(tmp_path / "video0.mp4", range(4))
    with RefusingServer() as server:
        done = vip(tmp_path, "batch", "video0.mp4", *QUICK, "--caption", "--engine", "openai:x", "--base-url", server.base_url)
    assert done.code == 8, done.err
    assert done.sentence == "1 keyframe failed; corpus/failures.jsonl says why. Try them again with --retry-failed."


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


# ---------------------------------------------------------------- what is missing for captions


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--engine", "openai:gpt-5.4-mini"), 5),  # no key
        (("--base-url", "http://127.0.0.1:9/v1"), 5),  # nobody to name a model
        (("--engine", "openai:my-model", "--base-url", "http://127.0.0.1:9/v1", "--max-usd", "1"), 2),  # no price
        (("--engine", "transformers:nowhere/no-model"), 4),
        (("--engine", "openai:my-model", "--base-url", "nowhere"), 2),
        (("--engine", "offline", "--language", "German"), 4),
        (("--engine", "offline", "--batch"), 4),
        (("--engine", "offline", "--prices", "none.toml"), 2),
    ],
)
def test_what_is_missing_for_captions_is_said_before_the_list_is_read_as_vip_caption_says_it(
    options: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    picture(tmp_path / "photos" / "1.jpg", 1)
    asked = vip(tmp_path, "caption", "photos", *options)
    done = vip(tmp_path, "batch", "no-such-list.txt", *QUICK, "--caption", *options)
    assert (done.code, done.sentence) == (asked.code, asked.sentence)
    assert done.code == code
    assert not (tmp_path / "corpus").exists()


def test_batches_without_captions_and_with_context_are_refused_first(tmp_path: Path) -> None:
    done = vip(tmp_path, "batch", "no-such-list.txt", *QUICK, "--batch")
    assert (done.code, done.sentence) == (
        2,
        "--batch is about captions, and has nothing to do without --caption; add it, or leave --batch out.",
    )
    (tmp_path / "vip.toml").write_text("[caption]\ncontext = 2\n")
    options = ("--caption", "--batch", "--engine", "openai:tiny-vlm", "--base-url", "http://127.0.0.1:9/v1")
    done = vip(tmp_path, "batch", "no-such-list.txt", *QUICK, *options)
    assert done.code == 2
    assert done.sentence.startswith("--context needs each answer before the next question")
    assert not (tmp_path / "corpus").exists()


# ---------------------------------------------------------------- going on without the options


def test_a_batch_goes_on_without_its_list_and_its_options(tmp_path: Path) -> None:
    a_list(tmp_path, "late.mp4")
    (tmp_path / "late.mp4").write_text("not yet")
    begun = ("-n", "3", "--embedder", "classic", "--caption", "--engine", "offline", "--shards", "webdataset", "--format", "png")
    assert vip(tmp_path, "batch", "list.txt", "-o", "corpus", *begun, "--workers", "1").code == 8
    clip(tmp_path / "late.mp4")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = vip(elsewhere, "batch", "-o", "../corpus", "--retry-failed")
    assert done.code == 0, done.err
    assert "3 done" in done.out
    assert {info.format for info in read_shards(str(tmp_path / "corpus"))} == {"webdataset"}
    frames = [frame for one in read_samples(str(tmp_path / "corpus")) for frame in one.frames]
    assert len(frames) == 9
    assert all(frame.description and frame.name.endswith(".png") for frame in frames)
    assert "auto" not in done.err, "nothing is chosen anew"


def test_what_the_rows_depend_on_is_refused_and_the_rest_may_change(tmp_path: Path) -> None:
    a_list(tmp_path)
    assert vip(tmp_path, "batch", "list.txt", *QUICK).code == 0
    done = vip(tmp_path, "batch", "-o", "corpus", "-n", "4")
    assert (done.code, done.sentence) == (
        2,
        "corpus holds a batch with other settings (keyframes 3, now 4). Give the same ones, or choose another -o.",
    )
    done = vip(tmp_path, "batch", "-o", "corpus", "--seed", "7")
    assert (done.code, done.sentence) == (2, "--seed 7 is about which rows of a list are taken. Give the list again, or leave it out.")
    assert vip(tmp_path, "batch", "-o", "corpus", "-n", "3", "--workers", "2", "--embedder", "auto").code == 0


def test_a_batch_goes_on_as_it_was_begun_whatever_vip_toml_and_the_environment_say(tmp_path: Path) -> None:
    (tmp_path / "vip.toml").write_text("[extract]\nkeyframes = 8\n[batch]\nshards = 'webdataset'\n")
    a_list(tmp_path)
    assert vip(tmp_path, "batch", "list.txt", *QUICK, "--sample", "1").code == 0
    done = vip(tmp_path, "batch", "-o", "corpus", "--sample", "2", VIP_KEYFRAMES="9")
    assert done.code == 0, done.err
    assert [len(one.frames) for one in read_samples(str(tmp_path / "corpus"))] == [3, 3]
    assert {info.format for info in read_shards(str(tmp_path / "corpus"))} == {"webdataset"}


def test_a_larger_sample_needs_no_list(tmp_path: Path) -> None:
    a_list(tmp_path)
    assert "1 done" in vip(tmp_path, "batch", "list.txt", *QUICK, "--sample", "1").out
    assert "2 done" in vip(tmp_path, "batch", "-o", "corpus", "--sample", "2").out


def test_secrets_are_nowhere_in_the_state_and_are_asked_for_again(tmp_path: Path) -> None:
    a_list(tmp_path)
    secrets = ("--proxy", "http://me:s3cret@127.0.0.1:9", "--ytdlp-opts", "--username me --password hunter2")
    with ApiServer() as server:
        asked = ("--caption", "--engine", "openai:tiny-vlm", "--base-url", server.base_url)
        done = vip(tmp_path, "batch", "list.txt", *QUICK, *secrets, *asked, OPENAI_API_KEY=SECRET)
        assert done.code == 0, done.err
        kept = b"".join(path.read_bytes() for path in (tmp_path / "corpus").rglob("*") if path.is_file())
        for secret in (b"s3cret", b"hunter2", SECRET.encode()):
            assert secret not in kept
        done = vip(tmp_path, "batch", "-o", "corpus", OPENAI_API_KEY=SECRET)
        options = "--proxy and --ytdlp-opts"
        sentence = f"This batch was begun with a secret in {options}, which is not kept. Give {options} again."
        assert (done.code, done.sentence) == (2, sentence)
        done = vip(tmp_path, "batch", "-o", "corpus", *secrets, OPENAI_API_KEY=SECRET)
        assert done.code == 0, done.err


def test_what_auto_became_stays_whatever_is_set_later(tmp_path: Path) -> None:
    a_list(tmp_path)
    begun = (*QUICK[:-4], "--embedder", "classic", "--caption")
    assert vip(tmp_path, "batch", "list.txt", *begun).code == 0
    for given in (("list.txt", *begun), ("-o", "corpus"), ("-o", "corpus", "--engine", "auto")):
        done = vip(tmp_path, "batch", *given, OPENAI_API_KEY=SECRET, OPENAI_BASE_URL="http://127.0.0.1:9/v1")
        assert done.code == 0, done.err
    assert {frame.description.engine for one in read_samples(str(tmp_path / "corpus")) for frame in one.frames if frame.description} == {
        "offline"
    }


def test_the_model_and_the_address_that_auto_found_stay_though_nothing_names_them(tmp_path: Path) -> None:
    a_list(tmp_path)
    with ApiServer(models=("tiny-vlm", "big-vlm")) as server:
        begun = (*QUICK[:-4], "--embedder", "classic", "--caption")
        assert vip(tmp_path, "batch", "video0.mp4", *begun, OPENAI_BASE_URL=server.base_url).code == 0
        server.set(models=("big-vlm",))
        for given in (("list.txt", *begun), ("-o", "corpus"), ("-o", "corpus", "--engine", "openai")):
            done = vip(tmp_path, "batch", *given)
            assert done.code == 0, done.err
        assert {asked.body["model"] for asked in server.chats} == {"tiny-vlm"}
        assert server.stats().chats == 6


def test_where_the_engine_of_the_batch_lacks_its_key_the_sentence_says_so(tmp_path: Path) -> None:
    a_list(tmp_path)
    with ApiServer(key=SECRET) as server:
        (tmp_path / "key").write_text(SECRET)
        (tmp_path / "key").chmod(0o600)
        asked = ("--caption", "--engine", "openai:tiny-vlm", "--base-url", server.base_url, "--key-file", "key")
        assert vip(tmp_path, "batch", "video0.mp4", *QUICK, *asked).code == 0
        (tmp_path / "key").unlink()
        done = vip(tmp_path, "batch", "-o", "corpus")
    assert done.code == 2
    assert "key cannot be read" in done.sentence
