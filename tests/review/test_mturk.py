"""vip.review.mturk and mturk_results: keyframes and blanks as HITs, and what workers answered in the log"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.review.browser import CHROMIUM, Browser
from tests.review.corpora import make_described, open_state
from tests.review.test_blanks import fill, open_blanks, write_blanks
from vip.cli.app import run
from vip.errors import InputError, UsageError
from vip.review.blanks import export_answers
from vip.review.mturk import COLUMNS, PAPER, item_key, keyframe_page, write_keyframe_hits
from vip.review.mturk_results import import_blank_results, import_keyframe_results
from vip.review.state import ReviewState
from vip.tasks.fiber.hits import write_hits
from vip.tasks.fiber.policy import WorkerPolicy, read_policy

URL = "https://example.org/pictures/{file}"
MARKUP = "<script>alert(1)</script>${focus}"
in_browser = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")]
HEADER = ("HITId", "AssignmentId", "WorkerId", "AssignmentStatus", "RejectionTime", "Input.item", "Answer.taskAnswers", "ApprovalTime")


@pytest.fixture
def state(tmp_path: Path) -> ReviewState:
    return open_state(make_described(tmp_path / "a", 3, text=MARKUP))


def answered(state: ReviewState, number: int, assignment: str, worker: str = "A1", **values: Any) -> dict[str, str]:
    """A row as Mechanical Turk writes it."""
    fields = {"verdict": {"good": False, "needs work": True, "unusable": False}, "wrong-mood": {"wrong": True}, "comments": "dark"}
    sent = {**fields, **values.pop("fields", {})}
    return {
        "HITId": f"H{number}",
        "AssignmentId": assignment,
        "WorkerId": worker,
        "Input.item": item_key(state.index.items[number]),
        "Answer.taskAnswers": json.dumps([sent]),
        **values,
    }


def write_results(path: Path, *rows: dict[str, str]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, HEADER, restval="")
        table.writeheader()
        table.writerows(rows)
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# ---------------------------------------------------------------- what is written


def test_a_keyframe_is_a_row_a_picture_and_a_page(tmp_path: Path, state: ReviewState) -> None:
    assert write_keyframe_hits(tmp_path / "hits", state.index, media_url=URL) == 3
    rows = rows_of(tmp_path / "hits/hits.csv")
    assert tuple(rows[0]) == COLUMNS
    assert [row["item"] for row in rows] == [item_key(item) for item in state.index.items]
    for row in rows:
        assert (tmp_path / "hits/pictures" / row["picture"]).read_bytes() == state.index.items[0].read_picture()
        assert not any(cell.startswith(("=", "+", "-", "@")) for cell in row.values())
        assert "<" not in "".join(row.values())
        assert "${" not in "".join(row.values())


def test_what_a_page_cannot_show_is_replaced_before_workers_see_it(tmp_path: Path) -> None:
    state = open_state(make_described(tmp_path / "a", 1, text="\x1b[31m\u202e"))
    write_keyframe_hits(tmp_path / "hits", state.index, media_url=URL)
    for name in ("hits.csv", "preview.html"):
        text = (tmp_path / "hits" / name).read_text()
        assert "\ufffd" in text
        assert not {"\x1b", "\u202e"} & set(text)


def test_the_page_names_its_columns_and_no_others(state: ReviewState) -> None:
    page = keyframe_page(media_url=URL)
    assert set(re.findall(r"\$\{(.*?)\}", page)) == {"picture", *COLUMNS[2:]}
    assert 'src="https://example.org/pictures/${picture}"' in page


@pytest.mark.parametrize("url", ["http://example.org/{file}", "https://example.org/", 'https://x/{file}"onerror="', "https://x/${file}"])
def test_another_address_of_pictures_is_refused(tmp_path: Path, state: ReviewState, url: str) -> None:
    with pytest.raises(UsageError, match="must begin with https://"):
        write_keyframe_hits(tmp_path / "hits", state.index, media_url=url)
    assert not (tmp_path / "hits").exists()


def test_a_description_that_is_another_has_another_key(tmp_path: Path) -> None:
    items = [open_state(make_described(tmp_path / name, 1, text=name)).index.items[0] for name in ("x", "y")]
    assert items[0].id == items[1].id
    assert item_key(items[0]) != item_key(items[1])


def test_the_requirements_are_those_of_the_paper_and_a_file_changes_some(tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text('workers_per_hit = 5\ndisqualified = ["A9"]\n')
    policy = read_policy(tmp_path / "policy.toml", paper=PAPER)
    assert (policy.workers_per_hit, policy.approval_percent, policy.approved_hits) == (5, 98, 0)
    assert policy.countries == ("AU", "CA", "NZ", "GB", "US")
    assert policy.disqualified == {"A9"}


# ---------------------------------------------------------------- what is read


def test_verdicts_marks_and_comments_are_in_the_log_once(tmp_path: Path, state: ReviewState) -> None:
    results = write_results(
        tmp_path / "r.csv",
        answered(state, 0, "S1"),
        answered(state, 0, "S2", "A2", fields={"verdict": "good", "wrong-mood": {"wrong": False}, "comments": ""}),
    )
    found = import_keyframe_results(state, [results], PAPER)
    assert (found.assignments, found.written, dict(found.left_out)) == (2, 4, {})
    item = state.index.items[0].id
    assert state.said(item, "verdict") == {"mturk:A1": "needs work", "mturk:A2": "good"}
    assert state.said(item, "wrong:mood") == {"mturk:A1": "wrong"}
    assert state.said(item, "comment") == {"mturk:A1": "dark"}
    again = import_keyframe_results(state, [results, results], PAPER)
    assert (again.assignments, again.written) == (2, 0)  # each is in two downloads
    assert len(list(state.log.read())) == 4


def test_thousands_of_answers_are_all_in_the_log_and_all_are_taken_back(tmp_path: Path, state: ReviewState) -> None:
    rows = [answered(state, 0, f"S{number}", f"A{number}") for number in range(340)]  # three actions each
    assert import_keyframe_results(state, [write_results(tmp_path / "r.csv", *rows)], PAPER).written == 1020
    gone = write_results(tmp_path / "later.csv", *(row | {"AssignmentStatus": "Rejected"} for row in rows))
    assert import_keyframe_results(state, [gone], PAPER).taken_back == 1020
    assert state.said(state.index.items[0].id, "verdict") == {}


def test_what_is_rejected_later_is_taken_back(tmp_path: Path, state: ReviewState) -> None:
    import_keyframe_results(state, [write_results(tmp_path / "r.csv", answered(state, 0, "S1"), answered(state, 1, "S2"))], PAPER)
    rejected = write_results(tmp_path / "later.csv", answered(state, 0, "S1", RejectionTime="Mon"), answered(state, 1, "S2"))
    found = import_keyframe_results(state, [rejected], PAPER)
    assert (found.written, found.taken_back, found.left_out) == (0, 3, {"rejected on Mechanical Turk": 1})
    assert state.said(state.index.items[0].id, "verdict") == {}
    assert state.said(state.index.items[1].id, "verdict") == {"mturk:A1": "needs work"}
    assert import_keyframe_results(state, [rejected], PAPER).taken_back == 0


def test_what_a_worker_said_again_stays_where_the_first_time_was_rejected(tmp_path: Path, state: ReviewState) -> None:
    import_keyframe_results(state, [write_results(tmp_path / "r.csv", answered(state, 0, "S1"))], PAPER)
    again = answered(state, 0, "S2", fields={"verdict": "good", "wrong-mood": {"wrong": False}, "comments": ""})
    found = import_keyframe_results(
        state, [write_results(tmp_path / "later.csv", answered(state, 0, "S1", RejectionTime="Mon"), again)], PAPER
    )
    assert (found.written, found.taken_back) == (1, 2), "the mark and the comment; the verdict is another by now"
    item = state.index.items[0].id
    assert (state.said(item, "verdict"), state.said(item, "wrong:mood")) == ({"mturk:A1": "good"}, {})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"Input.item": "f" * 40}, "a keyframe or a description that is not here"),
        ({"WorkerId": ""}, "no id of a worker"),
        ({"WorkerId": "x" * 100}, "no id of a worker"),
        ({"WorkerId": "A9"}, "a disqualified worker"),
        ({"WorkerId": "mturk:A9"}, "a disqualified worker"),  # as vip exports what it has read
        ({"Answer.taskAnswers": "{"}, "the answers are no JSON"),
        ({"Answer.taskAnswers": "[1]"}, "the answers are no JSON object"),
        ({"fields": {"verdict": "splendid"}}, "no verdict"),
        ({"fields": {"verdict": {"good": "yes"}}}, "no verdict"),
        ({"AssignmentStatus": "Rejected"}, "rejected on Mechanical Turk"),
    ],
)
def test_what_cannot_be_used_is_counted_with_its_reason(tmp_path: Path, state: ReviewState, change: dict[str, Any], reason: str) -> None:
    policy = PAPER.model_copy(update={"disqualified": frozenset({"A9"})})
    row = answered(state, 0, "S1", fields=change.pop("fields", {})) | change
    found = import_keyframe_results(state, [write_results(tmp_path / "r.csv", row)], policy)
    assert (found.assignments, found.written, dict(found.left_out)) == (0, 0, {reason: 1})


def test_a_comment_that_is_too_long_is_left_out_and_the_verdict_kept(tmp_path: Path, state: ReviewState) -> None:
    found = import_keyframe_results(
        state, [write_results(tmp_path / "r.csv", answered(state, 0, "S1", fields={"comments": "x" * 30_000}))], PAPER
    )
    assert found.written == 2
    assert [reason[:22] for reason in found.left_out] == ["A text has at most 20,"]


@pytest.mark.parametrize(
    ("data", "message"), [(b"a,b\n1,2\n", "has no column AssignmentId"), (b"\xff\xfe", "not UTF-8"), (b"", "has no column")]
)
def test_what_is_no_result_is_refused(tmp_path: Path, state: ReviewState, data: bytes, message: str) -> None:
    (tmp_path / "r.csv").write_bytes(data)
    with pytest.raises(InputError, match=message):
        import_keyframe_results(state, [tmp_path / "r.csv"], PAPER)


def test_separators_that_are_no_line_breaks_stay_in_their_cell(tmp_path: Path, state: ReviewState) -> None:
    found = import_keyframe_results(
        state, [write_results(tmp_path / "r.csv", answered(state, 0, "S1", fields={"comments": "a\u2028b\x85c"}))], PAPER
    )
    assert (found.assignments, dict(found.left_out)) == (1, {})


# ---------------------------------------------------------------- blanks


def test_answers_of_workers_to_blanks_are_in_the_log_and_exported_again(tmp_path: Path) -> None:
    state = open_blanks(tmp_path)
    write_hits(tmp_path / "hits", [item.record for item in state.items])
    (first, _) = rows_of(tmp_path / "hits/hits.csv")
    sent = {"answer-1-0": "a cat", "answer-1-1": "a kitten", "answer-3-0": "three balls", "answer-3-1": "balls", "comments": "fine"}
    row = {"HITId": "H", "AssignmentId": "S", "WorkerId": "A1", "Answer.taskAnswers": json.dumps([sent])}
    row |= {f"Input.{name}": cell for name, cell in first.items()}
    with (tmp_path / "r.csv").open("w", newline="") as file:
        table = csv.DictWriter(file, list(row))
        table.writeheader()
        table.writerow(row)
    found = import_blank_results(state, [tmp_path / "r.csv"], WorkerPolicy())
    assert (found.assignments, found.written, dict(found.left_out)) == (1, 3, {})
    assert state.answers(state.items[0], "mturk:A1") == ["a cat", "a kitten"]
    assert state.answers(state.items[2], "mturk:A1") == ["three balls", "balls"]
    assert state.value(state.items[0].id, "comment", "mturk:A1") == "fine"
    assert import_blank_results(state, [tmp_path / "r.csv"], WorkerPolicy()).written == 0
    fill(state, 1, "a cow", "a bull")
    assert export_answers(state, tmp_path / "all.csv") == 2


def test_answers_to_other_blanks_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    state, other = open_blanks(tmp_path, 2), open_blanks(tmp_path / "other", 5)
    fill(other, 4, "a cat", "a dog")
    export_answers(other, tmp_path / "r.csv")
    found = import_blank_results(state, [tmp_path / "r.csv"], WorkerPolicy())
    assert (found.assignments, dict(found.left_out)) == (0, {"no blank of this file": 1})


# ---------------------------------------------------------------- the command


def test_the_command_writes_hits_and_reads_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_described(Path("a"), 2)
    assert run(["review", "a", "--mturk", "hits", "--media-url", URL]) == 0
    assert "2 keyframes, one a HIT, for 3 workers each" in capsys.readouterr().out
    wanted = json.loads(Path("hits/qualifications.json").read_text())
    assert [row.get("IntegerValues") or [place["Country"] for place in row["LocaleValues"]] for row in wanted] == [
        ["AU", "CA", "NZ", "GB", "US"],
        [98],
    ]
    state = open_state(Path("a"))
    write_results(Path("r.csv"), answered(state, 0, "S1"), answered(state, 1, "S2") | {"WorkerId": ""})
    state.log.close()
    assert run(["review", "a", "--import-mturk", "r.csv"]) == 0
    assert capsys.readouterr().out == "1 assignment: 3 new actions in the log.\n1 row left out: no id of a worker\n"


@pytest.mark.parametrize("words", [["a", "--media-url", URL], ["blanks.json"]])
def test_hits_that_are_there_are_not_replaced_unasked(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    make_described(Path("a"), 2)
    write_blanks(Path("blanks.json"))
    Path("hits").mkdir()
    Path("hits/hits.csv").write_text("mine")
    assert run(["review", *words, "--mturk", "hits"]) == 2
    assert "hits.csv exists already. Add --overwrite" in " ".join(capsys.readouterr().err.split())
    assert [(path.name, path.read_text()) for path in Path("hits").iterdir()] == [("hits.csv", "mine")]
    assert run(["review", *words, "--mturk", "hits", "--overwrite"]) == 0
    assert len(rows_of(Path("hits/hits.csv"))) == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["a", "--mturk", "hits"], "Workers see the pictures on the web"),
        (["a", "--mturk", "hits", "--import-mturk", "r.csv"], "Leave one of them out"),
        (["a", "--mturk", "hits", "--stage", "2"], "Workers of Mechanical Turk do the first stage"),
        (["a", "--workers", "p.toml"], "go with --mturk DIR"),
        (["q.csv", "--mturk", "hits"], "q.csv holds questions"),
    ],
)
def test_options_that_do_not_go_together_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    from tests.review.questions import write_options

    monkeypatch.chdir(tmp_path)
    make_described(Path("a"), 1)
    write_options(Path("q.csv"))
    assert run(["review", *words]) == 2
    assert message in " ".join(capsys.readouterr().err.split())


# ---------------------------------------------------------------- the page


class TestPage:
    pytestmark = in_browser

    def test_what_the_page_sends_is_what_is_read(self, chromium: Browser, tmp_path: Path, state: ReviewState) -> None:
        write_keyframe_hits(tmp_path / "hits", state.index, media_url=URL)
        chromium.complaints.clear()
        chromium.open((tmp_path / "hits/preview.html").as_uri())
        assert chromium.run("document.querySelector('.shown').naturalWidth") == 640
        assert MARKUP in chromium.text(".texts")
        chromium.run("document.querySelector('.send').click()")
        assert chromium.run("document.getElementById('alert').hidden") is False
        chromium.run("document.querySelector('[name=wrong-objects]').click()")
        chromium.run("document.querySelector('[name=verdict][value=unusable]').click()")
        chromium.run("document.querySelector('.send').click()")
        sent = chromium.wait("document.getElementById('sent').textContent")
        row = answered(state, 0, "S1") | {"Answer.taskAnswers": sent}
        import_keyframe_results(state, [write_results(tmp_path / "r.csv", row)], PAPER)
        item = state.index.items[0].id
        assert state.said(item, "verdict") == {"mturk:A1": "unusable"}
        assert state.said(item, "wrong:objects") == {"mturk:A1": "wrong"}
        assert not chromium.complaints

    @pytest.mark.parametrize(("width", "is_dark"), [(1280, False), (400, True)])
    def test_nothing_is_wider_than_the_window(
        self, chromium: Browser, tmp_path: Path, state: ReviewState, width: int, is_dark: bool
    ) -> None:
        write_keyframe_hits(tmp_path / "hits", state.index, media_url=URL)
        chromium.open((tmp_path / "hits/preview.html").as_uri(), width=width, is_dark=is_dark)
        assert chromium.run("document.documentElement.scrollWidth") <= width
