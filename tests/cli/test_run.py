"""`vip run`: the whole job on the sample video, with nothing configured and with an API."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
from pathlib import Path

import pytest

from tests.api_server import ApiServer
from tests.cli.terminal import SECRET, HoldingServer, RefusingServer, end, said_of, secrets_in, start, vip
from tests.clips import SAMPLE, clip, result, stamps
from vip import registry
from vip.store import load_run

FILES = {
    *("manifest.json", "candidates.jsonl", "embeddings.npz", "analysis.npz", "thumbnails.zip"),
    *("keyframes.jsonl", "descriptions.jsonl", "report.html"),
}
RUN = ("run", SAMPLE, "-n", "4")


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# ---------------------------------------------------------------- nothing configured


def test_the_sample_video_becomes_keyframes_captions_and_a_page(tmp_path: Path) -> None:
    done = vip(tmp_path, "run", SAMPLE)
    folder = tmp_path / "sample.vip"
    assert done.code == 0, done.err
    assert names(tmp_path) == {"sample.vip"}
    assert names(folder) == {*FILES, "keyframes"}
    run = load_run(folder)
    assert len(run.keyframes) == len(run.descriptions) == 12
    assert {path.name for path in (folder / "keyframes").iterdir()} == {keyframe.path.name for keyframe in run.keyframes}
    page = (folder / "report.html").read_text()
    assert all(f">{row.dense_caption}<" in page for row in run.descriptions)
    assert all(row.dense_caption in done.out for row in run.descriptions)
    assert done.out.splitlines()[-1] == "Open sample.vip/report.html"


def test_auto_says_what_it_became_and_why(tmp_path: Path) -> None:
    notes = vip(tmp_path, *RUN).err.splitlines()
    assert notes[0].startswith("vip: embedder: classic (built in); ")
    assert notes[1] == "vip: engine: offline; no key is set (OPENAI_API_KEY, or --base-url URL for a server of your own)"
    assert notes[2].startswith("vip: Without a key, --engine transformers describes what it sees by ")
    assert len(notes) == 3
    assert all(len(note) <= 120 for note in notes[:2])


def test_what_auto_became_is_said_once_for_several_videos(tmp_path: Path) -> None:
    for name in ("a.mp4", "b.mp4"):
        shutil.copyfile(SAMPLE, tmp_path / name)
    done = vip(tmp_path, "run", "a.mp4", "b.mp4", "-n", "2")
    assert done.code == 0
    embedder, engine, better = done.err.splitlines()
    assert [note.partition(";")[0] for note in (embedder, engine)] == ["vip: embedder: classic (built in)", "vip: engine: offline"]
    assert better.startswith(f"vip: Without a key, --engine transformers describes what it sees by {registry.local_model()}")


def test_json_is_all_there_is_on_stdout(tmp_path: Path) -> None:
    done = vip(tmp_path, *RUN, "--json")
    (row,) = done.rows
    assert row["run"] == "sample.vip"
    assert row["counts"]["keyframes"] == len(row["keyframes"]) == len(row["descriptions"]) == 4
    assert all((tmp_path / "sample.vip" / keyframe["image_path"]).exists() for keyframe in row["keyframes"])
    assert set(row["descriptions"][0]["famous"]) == {"focus", "action", "mood", "objects", "setting"}
    assert (tmp_path / row["report"]).exists()
    assert "vip: engine: offline" in done.err


def test_quiet_says_nothing_and_does_everything(tmp_path: Path) -> None:
    done = vip(tmp_path, *RUN, "-q")
    assert (done.code, done.out, done.err) == (0, "", "")
    assert names(tmp_path / "sample.vip") == {*FILES, "keyframes"}


def test_out_is_the_run_folder_of_one_video(tmp_path: Path, undisturbed: Path) -> None:
    assert vip(tmp_path, *RUN, "-o", "deep/er", "--engine", "offline").code == 0
    assert names(tmp_path) == {"deep"}
    assert result(tmp_path / "deep" / "er") == result(undisturbed)


def test_the_same_video_gives_the_same_result_again(tmp_path: Path, undisturbed: Path) -> None:
    copy = shutil.copyfile(SAMPLE, tmp_path / "sample.mp4")
    assert vip(tmp_path, "run", copy, "-n", "4", "--engine", "offline").code == 0
    assert result(tmp_path / "sample.vip") == result(undisturbed)


def test_run_again_writes_only_the_page_anew(described: Path, tmp_path: Path) -> None:
    before = stamps(described)
    assert vip(tmp_path, *RUN).code == 0
    after = stamps(described)
    assert {name for name in before if before[name] != after[name]} <= {"report.html", "descriptions.jsonl"}
    assert set(before) == set(after)


def test_other_settings_are_refused_until_they_may_replace(described: Path, tmp_path: Path) -> None:
    before = stamps(described)
    done = vip(tmp_path, "run", SAMPLE, "-n", "3")
    assert done.code == 2
    assert "keyframes 4, now 3" in done.sentence
    assert stamps(described) == before
    assert vip(tmp_path, "run", SAMPLE, "-n", "3", "--overwrite", "-q").code == 0
    run = load_run(described)
    assert len(run.keyframes) == len(run.descriptions) == len(list((described / "keyframes").iterdir())) == 3


@pytest.mark.parametrize(
    ("toml", "variables", "options", "keyframes"),
    [
        ("", {}, [], 12),
        ("[extract]\nkeyframes = 5", {}, [], 5),
        ("[extract]\nkeyframes = 5", {"VIP_KEYFRAMES": "3"}, [], 3),
        ("[extract]\nkeyframes = 5", {"VIP_KEYFRAMES": "3"}, ["-n", "2"], 2),
    ],
)
def test_settings_come_from_options_then_variables_then_the_file_then_defaults(
    toml: str, variables: dict[str, str], options: list[str], keyframes: int, tmp_path: Path
) -> None:
    (tmp_path / "vip.toml").write_text(toml + '\n[caption]\nengine = "fake"\n')
    (row,) = vip(tmp_path, "run", SAMPLE, *options, "--json", **variables).rows
    assert len(row["keyframes"]) == keyframes
    assert {description["engine"] for description in row["descriptions"]} == {"fake"}


# ---------------------------------------------------------------- with an API


def test_the_engine_and_the_cost_are_told_before_the_first_call(extracted: Path, tmp_path: Path) -> None:
    with HoldingServer(answers=0) as server:
        process = start(tmp_path, *RUN, OPENAI_BASE_URL=server.base_url)
        assert process.stderr is not None
        assert server.holding.wait(30)  # the first call has come, and is not answered
        assert select.select([process.stderr], [], [], 10)[0]
        told = os.read(process.stderr.fileno(), 10_000).decode()
        server.released.set()
        assert end(process).code == 0
    address = server.base_url.removeprefix("http://").removesuffix("/v1")
    engine, cost = told.splitlines()[-2:]
    assert engine == f"vip: engine: openai:tiny-vlm; OPENAI_BASE_URL is set to {address}"
    assert re.fullmatch(r"vip: about 4 requests, [0-9,]+ tokens in, [0-9,]+ out; the price of openai:tiny-vlm is unknown, .*", cost)


def test_the_ceiling_is_told_before_the_first_call_and_what_was_used_at_the_end(tmp_path: Path) -> None:
    (tmp_path / "prices.toml").write_text('[[price]]\nmodels = ["big-vlm"]\naddress = "127.0.0.1"\nusd_in = 100.0\nusd_out = 1000.0\n')
    with ApiServer(usage=(800, 20)) as server:
        options = ("--engine", "openai:big-vlm", "--base-url", server.base_url, "--prices", "prices.toml")
        done = vip(tmp_path, *RUN, *options)
        assert done.code == 0, done.err
        assert re.search(
            r"about 4 requests, .*, \$\d+\.\d\d \(big-vlm, .*; at most 5 dollars, since no --max-usd is given\.$", done.notes[-1]
        )
        assert done.sentence == "Used 4 requests, 3,200 tokens in, 80 out, $0.40."
        poor = vip(tmp_path, *RUN, *options, "--max-usd", "0.01", "-o", "poor", "--language", "de")
        assert poor.code == 5
        assert "--max-usd 0.01 leaves no room for another request" in poor.sentence
        assert len(server.chats) == 4
    assert json.loads((tmp_path / "sample.vip" / "manifest.json").read_text())["captioning"]["spent"]["usd"] == pytest.approx(0.4)


def test_one_ceiling_holds_for_all_videos_together(tmp_path: Path) -> None:
    prices = '[[price]]\nmodels = ["big-vlm"]\naddress = "127.0.0.1"\nusd_in = 100.0\nusd_out = 350000.0\n'  # $7 an answer
    (tmp_path / "prices.toml").write_text(prices)
    for number, name in enumerate(("a.mp4", "b.mp4")):
        clip(tmp_path / name, range(4 * number, 4 * number + 4))
    with ApiServer(usage=(800, 20)) as server:
        options = ("--engine", "openai:big-vlm", "--base-url", server.base_url, "--prices", "prices.toml")
        poor = vip(tmp_path, "run", "a.mp4", "-n", "1", "-o", "poor", *options, "--max-usd", "0")
        (most_usd,) = re.findall(r"may cost up to \$([0-9.]+[0-9])", poor.sentence)
        done = vip(tmp_path, "run", "a.mp4", "b.mp4", "-n", "1", *options, "--max-usd", f"{float(most_usd) + 1:.2f}")
        assert len(server.chats) == 1
    assert done.code == 8
    assert "leaves no room for another request: $7.08 is spent" in done.err


def test_nothing_is_paid_for_twice(tmp_path: Path) -> None:
    with ApiServer() as server:
        first = vip(tmp_path, *RUN, "--base-url", server.base_url)
        chats = len(server.chats)
        second = vip(tmp_path, *RUN, "--base-url", server.base_url)
        assert (first.code, second.code) == (0, 0)
        assert chats == len(server.chats) == 4
    assert second.out == first.out
    assert [second.out.count(said_of(keyframe.path)) for keyframe in load_run(tmp_path / "sample.vip").keyframes] == [1] * 4
    assert first.sentence == "Used 4 requests, 44 tokens in, 28 out."
    assert "Used" not in second.err


def test_a_wrong_key_ends_the_run_but_not_the_keyframes_and_is_shown_nowhere(tmp_path: Path) -> None:
    with ApiServer("401") as server:  # its answer repeats the key
        done = vip(tmp_path, *RUN, "--json", OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=SECRET)
    assert done.code == 5
    assert "does not accept the API key" in done.sentence
    assert done.rows == [{"error": done.sentence, "exit_code": 5}]
    assert SECRET not in done.out + done.err
    assert secrets_in(tmp_path) == []
    assert names(tmp_path / "sample.vip") == {*FILES, "keyframes"} - {"descriptions.jsonl"}
    assert len(load_run(tmp_path / "sample.vip").keyframes) == 4
    with ApiServer() as server:
        assert vip(tmp_path, *RUN, OPENAI_BASE_URL=server.base_url, OPENAI_API_KEY=SECRET).code == 0
    assert secrets_in(tmp_path) == []


def test_refused_keyframes_are_listed_and_the_page_is_written(tmp_path: Path) -> None:
    with RefusingServer() as server:
        done = vip(tmp_path, *RUN, OPENAI_BASE_URL=server.base_url)
        assert done.code == 8
        assert "1 of 4 keyframes could not be described; sample.vip/failures.jsonl says why" in done.sentence
        (failure,) = load_run(tmp_path / "sample.vip").failures
        assert (failure.kind, failure.exit_code) == ("refusal", 6)
        assert "refused to answer" in failure.message
        assert "refused to answer" in (tmp_path / "sample.vip" / "report.html").read_text()
    with ApiServer() as server:
        variables = {"OPENAI_BASE_URL": server.base_url}
        assert vip(tmp_path, *RUN, **variables).code == 0
        assert len(server.chats) == 1
    assert not (tmp_path / "sample.vip" / "failures.jsonl").exists()


def test_when_no_answer_can_be_used_the_reply_is_at_fault_and_the_page_is_written(extracted: Path, tmp_path: Path) -> None:
    with ApiServer("refusal") as server:
        done = vip(tmp_path, *RUN, OPENAI_BASE_URL=server.base_url)
    assert done.code == 6
    assert "None of 4 keyframes could be described" in done.sentence
    assert len((extracted / "failures.jsonl").read_text().splitlines()) == 4
    assert (extracted / "report.html").exists()
    assert load_run(extracted).descriptions == []


def test_the_manifest_tells_how_the_captions_were_made(tmp_path: Path) -> None:
    with ApiServer() as server:
        vip(tmp_path, *RUN, "--base-url", server.base_url, "--engine", "openai:big-vlm")
    manifest = json.loads((tmp_path / "sample.vip" / "manifest.json").read_text())
    assert manifest["captioning"]["engine"] == "openai:big-vlm"
    assert (manifest["captioning"]["recipe"], manifest["captioning"]["language"]) == ("direct", "English")
    assert set(manifest["captioning"]["prompts"]) == {"direct"}
    assert (manifest["captioning"]["spent"]["requests"], manifest["captioning"]["spent"]["tokens_in"]) == (4, 44)
    assert set(manifest["seconds"]) == {"select", "write", "caption"}
    (row, *_) = (json.loads(line) for line in (tmp_path / "sample.vip" / "descriptions.jsonl").read_text().splitlines())
    assert [(call["prompt"], call["model"], call["tokens_in"]) for call in row["calls"]] == [
        ("direct", "big-vlm-0001", 11),
    ]


# ---------------------------------------------------------------- from offline to a key and back


def test_with_a_key_the_same_command_describes_anew_what_offline_measured(described: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        done = vip(tmp_path, *RUN, OPENAI_BASE_URL=server.base_url)
        assert done.code == 0, done.err
    rows = load_run(described).descriptions
    assert {row.engine for row in rows} == {"openai:tiny-vlm"}
    page = (described / "report.html").read_text()
    assert all(row.dense_caption in page for row in rows)


def test_without_the_key_what_was_asked_for_stays(described: Path, tmp_path: Path) -> None:
    with ApiServer() as server:
        assert vip(tmp_path, *RUN, OPENAI_BASE_URL=server.base_url).code == 0
    before = (described / "descriptions.jsonl").read_bytes()
    for more in ([], ["--overwrite"]):
        done = vip(tmp_path, *RUN, *more)
        assert done.code == 0, done.err
        assert "sample.vip keeps its 4 descriptions by openai:tiny-vlm." in done.err
        assert (described / "descriptions.jsonl").read_bytes() == before
    refused = vip(tmp_path, *RUN, "--engine", "offline")
    assert refused.code == 2
    assert "holds 4 descriptions by openai:tiny-vlm, which --engine offline would replace." in refused.sentence
    assert (described / "descriptions.jsonl").read_bytes() == before
    assert vip(tmp_path, *RUN, "--engine", "offline", "--overwrite").code == 0
    assert {row.engine for row in load_run(described).descriptions} == {"offline"}


def test_a_missing_key_is_found_before_the_video_is_looked_at(tmp_path: Path) -> None:
    done = vip(tmp_path, *RUN, "--engine", "openai:gpt-5.4-mini")
    assert (done.code, list(tmp_path.iterdir())) == (5, [])
    assert done.sentence.startswith("No key is set, and api.openai.com answers nobody without one. Set OPENAI_API_KEY, ")


def test_a_ceiling_without_a_price_is_found_before_the_video_is_looked_at(tmp_path: Path) -> None:
    with ApiServer() as server:
        done = vip(tmp_path, *RUN, "--base-url", server.base_url, "--max-usd", "1")
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert done.sentence.startswith("--max-usd cannot be kept: the price of openai:tiny-vlm is unknown.")


def test_a_dry_run_needs_no_key_and_asks_nothing(tmp_path: Path) -> None:
    done = vip(tmp_path, *RUN, "--engine", "openai:gpt-5.4-mini", "--dry-run")
    assert done.code == 0, done.err
    assert re.search(r"^4 keyframes to describe: about 4 requests, .*\$0\.\d+ \(gpt-5\.4-mini, price of ", done.out, re.MULTILINE)
    assert not (tmp_path / "sample.vip" / "descriptions.jsonl").exists()
    (cost,) = vip(tmp_path, *RUN, "--engine", "openai:gpt-5.4-mini", "--dry-run", "--json").rows
    assert (cost["keyframes"], cost["requests"]) == (4, 4)


def test_run_takes_the_options_of_caption(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text(SECRET)
    key.chmod(0o600)
    with ApiServer() as server:
        done = vip(
            *(tmp_path, *RUN, "--base-url", server.base_url, "--key-file", "key", "--context", "1", "--cache", "answers.sqlite"),
        )
        assert done.code == 0, done.err
        assert {asked.headers.get("authorization") for asked in server.chats} == {f"Bearer {SECRET}"}
    assert (tmp_path / "answers.sqlite").exists()
    assert {row.context for row in load_run(tmp_path / "sample.vip").descriptions} == {1}
