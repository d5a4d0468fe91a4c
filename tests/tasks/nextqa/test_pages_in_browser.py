"""The pages of NExT-QA in a real browser, where Chromium is installed."""

from __future__ import annotations

import base64
import re
from pathlib import Path

import pytest

from tests.report.test_browser import CHROMIUM, browse, scripted, widths
from tests.tasks.nextqa.published import MC_ROWS, write_csv
from tests.tasks.nextqa.test_distractors import QUESTIONS, embed, lemmas
from vip.tasks.data_description import write_data_page
from vip.tasks.nextqa.distractors import make_options
from vip.tasks.nextqa.figures import describe_sets
from vip.tasks.nextqa.files import read_questions
from vip.tasks.nextqa.options_page import write_option_pages

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]

CATCH = """
const root = document.documentElement;
const encoded = (text) => btoa(unescape(encodeURIComponent(text)));
URL.createObjectURL = (blob) => { blob.text().then((text) => { root.dataset.csv = encoded(text); }); return "#"; };
HTMLAnchorElement.prototype.click = function () { root.dataset.file = this.download; };
const [first, second] = document.querySelectorAll("fieldset");
first.querySelectorAll("input[type=text]")[0].value = 'to say "no", and go é';
first.querySelectorAll("input[type=radio]")[3].click();
second.querySelectorAll("input[type=text]")[1].value = second.querySelectorAll("input[type=text]")[2].value;
document.getElementById("save").click();
"""


def test_the_button_saves_what_was_amended_as_questions_that_can_be_read(tmp_path: Path) -> None:
    made = [one for one in make_options(QUESTIONS[:60], embed=embed, lemmas=lemmas) if one.is_complete]
    (page,) = write_option_pages(tmp_path / "own.html", made)
    dom = browse(scripted(page, CATCH), tmp_path / "profile", "--virtual-time-budget=3000", "--dump-dom").stdout
    (saved,) = re.findall(r'data-csv="([^"]+)"', dom)
    assert 'data-file="own.csv"' in dom
    assert f"{len(made) - 1} of {len(made)} questions saved" in dom  # the second has one option twice
    (tmp_path / "own.csv").write_bytes(base64.b64decode(saved))
    questions = list(read_questions(tmp_path / "own.csv", "nextqa-mc"))
    assert (questions[0].options[0], questions[0].answer) == ('to say "no", and go é', 3)
    assert [one.options for one in questions[1:]] == [one.options for one in made[2:]]
    assert [one.answer for one in questions[1:]] == [one.answer for one in made[2:]]


@pytest.mark.parametrize("width", [1280, 500])
def test_the_page_of_a_set_of_questions_fits_the_window(tmp_path: Path, width: int) -> None:
    write_data_page(describe_sets([write_csv(tmp_path / "own.csv", MC_ROWS)], "nextqa-mc"), tmp_path / "page.html")
    assert widths(tmp_path / "page.html", tmp_path / "profile", width) == (width, width)
    seen = browse(tmp_path / "page.html", tmp_path / "profile", "--enable-logging=stderr", "--dump-dom")
    assert [line for line in seen.stderr.splitlines() if "CONSOLE" in line or "Refused" in line] == []
