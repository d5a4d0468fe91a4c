"""Options that do not go together, or have no sense, are refused in one sentence before anything is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from vip.cli.app import run

HERO = "--model hero:m"
ZERO_SHOT = "--zero-shot clip --task value-tvr --annotations a.jsonl"


@pytest.mark.parametrize(
    ("command", "said"),
    [
        # ways of answering
        ("predict s.jsonl --model m --baseline popular", "--model answers by itself. Leave --baseline out."),
        ("predict s.jsonl --model m --train t.csv", "--model answers by itself. Leave --train out."),
        ("predict s.jsonl --features f.h5", "--features is for trained models. Add --model DIR."),
        ("predict s.jsonl --text-features f.h5", "--text-features is for trained models. Add --model DIR."),
        ("predict s.jsonl --baseline popular --features f.h5", "--features is for trained models."),
        ("predict s.jsonl --train t.csv", "--train is for baselines. Add --baseline NAME, or leave it out."),
        ("predict s.jsonl --video-features f", "--video-features is for --zero-shot clip:ARCH/TAG. Add it, or leave --video-features out."),
        ("predict s.jsonl --video-index v.json", "--video-index is for --zero-shot clip:ARCH/TAG."),
        ("predict s.jsonl --threshold 0.5", "--threshold is for --zero-shot clip:ARCH/TAG."),
        ("predict --zero-shot clip --task value-tvr", "--zero-shot needs --task NAME and --annotations FILE."),
        ("predict --zero-shot clip --annotations a.jsonl", "--zero-shot needs --task NAME and --annotations FILE."),
        (f"predict {ZERO_SHOT} --window 0", "--window 0: a moment has at least one frame."),
        (f"predict {ZERO_SHOT} --train t.csv", "--zero-shot reads annotations and answers by itself."),
        (f"predict {HERO} --task value-tvr", "--model hero:m needs --task NAME and --annotations FILE."),
        (f"predict {HERO} --annotations a.jsonl", "--model hero:m needs --task NAME and --annotations FILE."),
        ("predict s.jsonl --tokenizer t", "--tokenizer is for --model hero:FILE. Add it, or leave --tokenizer out."),
        ("predict s.jsonl --model m --tokenizer t", "--tokenizer is for --model hero:FILE."),
        ("predict --task nextqa-mc", "Name the file that `vip samples` wrote, or --task NAME and --annotations FILE."),
        ("predict --annotations a.csv", "Name the file that `vip samples` wrote, or --task NAME and --annotations FILE."),
        ("predict s.jsonl --annotations a.csv", "s.jsonl holds samples already. Leave --task and --annotations out."),
        # scores
        ("score", "Name a file of predictions. To describe a data set without scores, name it with --data."),
        ("score p.jsonl --setting clips", "--setting clips: write names and values, such as clips=16,features=Res+I3D."),
        ("score p.jsonl --setting clips=", "--setting clips=: write names and values"),
        ("score p.jsonl --setting clips=16,", "--setting clips=16,: write names and values"),
        ("score p.jsonl --setting =16", "--setting =16: write names and values"),
        ("score --data runs -o out", "Of runs and data sets there are tables only. Leave -o and --json out"),
        ("score --data runs --json", "Of runs and data sets there are tables only. Leave -o and --json out"),
        # lists of tasks
        ("tasks --suite value -o out.html", "--data DIR describes files of VALUE. Write `vip tasks --suite value --data DIR`."),
        ("tasks --data runs", "--data DIR describes files of VALUE."),
        # the server of agents
        ("mcp --root runs --http 65536", "--http 65536: a port is a number from 1 to 65535."),
        ("mcp --root runs --json", "--json prints the address of --http."),
        ("mcp --root gone", "gone is not a folder. Give one whose videos an agent may see."),
    ],
)
def test_it_is_said_what_does_not_go_together(
    command: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()
    code = run(command.split())
    printed = capsys.readouterr()
    assert said in " ".join(printed.err.split())
    assert (code in (2, 3), printed.out) == (True, "")
    assert [path.name for path in tmp_path.rglob("*")] == ["runs"]
