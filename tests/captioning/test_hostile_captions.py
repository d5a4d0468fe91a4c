"""A server that answers with what a terminal or a page obeys: nothing of it is written or shown."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from tests.cli.terminal import vip
from tests.clips import picture
from tests.hostile_server import HostileServer, completion

ESCAPES = "\x1b[2J\x1b]8;;http://evil\x07\u202egnp.exe\r\nvip: done\x9b31m\u2028"
FIELDS = {name: f"{name} {ESCAPES}" for name in ("dense_caption", "focus", "action", "mood", "setting")}


@pytest.mark.slow
@pytest.mark.parametrize("in_ascii", [True, False])
@pytest.mark.parametrize("options", [(), ("--json",)])
def test_nothing_that_a_terminal_obeys_is_written_or_shown(in_ascii: bool, options: tuple[str, ...], tmp_path: Path) -> None:
    picture(tmp_path / "photos" / "1.jpg", 1)
    content = json.dumps({**FIELDS, "objects": [ESCAPES]}, ensure_ascii=in_ascii)
    with HostileServer(completion(content, model=f"tiny {ESCAPES}")) as server:
        done = vip(tmp_path, "caption", "photos", "--engine", "openai:tiny", "--base-url", server.base_url, *options)
    assert done.code == 0, done.err
    written = (tmp_path / "photos" / "descriptions.jsonl").read_text()
    shown = [done.out, done.err, written, (tmp_path / "photos" / "report.html").read_text()]
    assert [sorted(bad(text)) for text in shown] == [[]] * 4
    row = json.loads(written)
    assert row["dense_caption"] == "dense_caption gnp.exe vip: done"
    assert row["famous"]["objects"] == ["gnp.exe vip: done"]
    assert row["calls"][0]["model"] == "tiny gnp.exe vip: done"


def bad(text: str) -> set[str]:
    """What a terminal obeys in a text; also where JSON spells it in numbers."""
    spelt = {f"\\u{ord(letter):04x}" for letter in ESCAPES if not letter.isprintable() and letter not in "\r\n"}
    controls = {letter for letter in text if unicodedata.category(letter) in {"Cc", "Cf", "Zl", "Zp"} and letter != "\n"}
    return controls | {one for one in spelt if one in text.lower()}
