"""The driver's side of captions, with a process that says what it is told to say: what waits, what is under way, and what was paid."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.corpus.workers.children import Children, Gone, children_of
from vip.config import CaptionSettings
from vip.corpus.workers.caption_client import (
    AHEAD,
    CaptionClient,
    CaptionServerConfig,
    CaptionServerReady,
    CaptionTask,
    CostSoFar,
    Described,
    ExpectedKeyframes,
    KeyframesInBatch,
    ServerAnswered,
    ServerPaused,
    SubmitBatches,
)
from vip.errors import BackendError, BudgetError
from vip.llm.outage import OutagePause

PAUSE = OutagePause(1000.0, 60.0, "It is busy.")


@pytest.fixture
def children(monkeypatch: pytest.MonkeyPatch) -> Children:
    return children_of(monkeypatch)


def captions_of(tmp_path: Path, notes: list[str] | None = None) -> CaptionClient:
    return CaptionClient(
        CaptionServerConfig(CaptionSettings(), tmp_path, CostSoFar(0.5, 7), 30.0), (notes if notes is not None else []).append
    )


def wanted(number: int) -> CaptionTask:
    return CaptionTask(f"v{number}", Path(f"/parts/v{number}.tar"), None)


def described(number: int, failure: str | None = None) -> Described:
    return Described(f"v{number}", (), 9, failure)


def given(children: Children) -> list[str]:
    """Keys of the parts that the last process has."""
    return [message.key for message in children[-1].sent if isinstance(message, CaptionTask)]


def test_events_that_are_there_are_returned_without_waiting_for_more(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    for number in (1, 2):
        captions.submit(wanted(number))
    children.say("a note", described(1), described(2))
    assert captions.events(0.25) == [described(1), described(2)]
    assert children[0].pipe.polls == [0.25, 0.25, 0.0, 0.0]


def test_without_a_process_there_is_no_news(tmp_path: Path, children: Children) -> None:
    assert captions_of(tmp_path).events(60.0) == []
    assert children == []


def test_so_many_parts_go_to_the_process_and_the_others_follow_in_their_order(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    for number in range(AHEAD + 3):
        captions.submit(wanted(number))
    assert children[0].sent[0] == captions.config
    assert given(children) == [f"v{number}" for number in range(64)]
    children.say(described(5), KeyframesInBatch("v7"))
    captions.events()
    assert given(children)[64:] == ["v64", "v65"], "what is in a batch makes room, too"


def test_what_a_killed_process_had_is_given_to_another_before_all_else(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    for number in range(AHEAD + 1):
        captions.submit(wanted(number))
    children.say(KeyframesInBatch("v3"), described(0), Gone())
    assert captions.events() == [described(0)]
    assert children[0].killed == 1
    assert given(children) == ["v3", "v1", "v2", *(f"v{number}" for number in range(4, 65))]
    children.say(*(described(number) for number in range(1, 65)))
    assert len(captions.events()) == 64
    children.say(Gone())
    captions.events()
    assert len(children) == 2, "nothing is left to be asked"


def test_three_deaths_in_a_row_end_the_run_and_a_description_in_between_starts_the_count_anew(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    for number in range(4):
        captions.submit(wanted(number))
    for number in range(3):
        children.say(Gone())
        captions.events()
        children.say(Gone())
        captions.events()
        children.say(described(number) if number != 1 else KeyframesInBatch("v1"))
        captions.events()
    for _ in range(2):
        children.say(Gone())
        captions.events()
    children.say(Gone())
    with pytest.raises(BackendError, match="asks for captions was ended by the system 3 times in a row"):
        captions.events()


def test_deaths_while_the_server_is_gone_are_no_fault_of_the_process(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    captions.submit(wanted(0))
    for _ in range(5):
        children.say(ServerPaused(PAUSE), Gone())
        captions.events()
        assert captions.pause is None, "another asks anew"
    assert len(children) == 6


def test_a_rest_and_its_end_are_known(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    captions.submit(wanted(0))
    children.say(ServerPaused(PAUSE))
    captions.events()
    assert captions.pause == PAUSE
    children.say(ServerPaused(None))
    captions.events()
    assert captions.pause is None


def test_what_was_paid_goes_with_the_orders_to_the_next_process(tmp_path: Path, children: Children) -> None:
    notes: list[str] = []
    captions = captions_of(tmp_path, notes)
    captions.submit(wanted(0))
    assert captions.paid == CostSoFar(0.5, 7)
    children.say(CostSoFar(1.5, 99), "a note", ServerAnswered(), Gone())
    captions.events()
    assert (captions.paid, notes) == (CostSoFar(1.5, 99), ["a note"])
    orders = children[1].sent[0]
    assert isinstance(orders, CaptionServerConfig)
    assert (orders.paid, orders.answered) == (CostSoFar(1.5, 99), True)


@pytest.mark.parametrize(("failure", "answered"), [(None, True), ("Nothing was described.", False)])
def test_a_description_proves_that_the_address_is_right_and_a_failure_does_not(
    failure: str | None, answered: bool, tmp_path: Path, children: Children
) -> None:
    captions = captions_of(tmp_path)
    captions.submit(wanted(0))
    children.say(described(0, failure))
    captions.events()
    assert captions.config.answered == answered


def test_an_address_that_was_right_stays_so(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    captions.submit(wanted(0))
    children.say(ServerAnswered(), described(0, "Nothing was described."))
    captions.events()
    assert captions.config.answered


def test_the_money_that_is_spent_ends_the_run(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    captions.submit(wanted(0))
    children.say(BudgetError("It is spent."))
    with pytest.raises(BudgetError):
        captions.events()
    captions.close()
    captions.close()
    assert children[0].killed == 1


def test_a_batch_is_handed_in_once_and_only_when_nothing_more_is_to_be_collected(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)

    def submitted() -> int:
        captions.submit_batches()
        return sum(isinstance(message, SubmitBatches) for message in children[-1].sent)

    for number in (0, 1):
        captions.submit(wanted(number))
    assert submitted() == 0, "nothing is collected"
    children.say(KeyframesInBatch("v0"))
    captions.events()
    assert submitted() == 0, "one is under way"
    children.say(KeyframesInBatch("v1"))
    captions.events()
    assert [submitted(), submitted()] == [1, 1]


def test_an_item_that_is_in_the_batch_a_second_time_is_there_once(tmp_path: Path, children: Children) -> None:
    captions = captions_of(tmp_path)
    captions.submit(wanted(0))
    children.say(KeyframesInBatch("v0"), KeyframesInBatch("v0"), described(0))
    assert captions.events() == [described(0)]
    children.say(Gone())
    captions.events()
    assert len(children) == 1


def test_engines_are_checked_before_anything_else(tmp_path: Path, children: Children) -> None:
    notes: list[str] = []
    captions = captions_of(tmp_path, notes)
    children.first = ["prices as of 2026", CaptionServerReady("openai:a", "openai:b")]
    assert captions.check() == CaptionServerReady("openai:a", "openai:b")
    assert notes == ["prices as of 2026"]
    captions.expect(36)
    captions.submit(wanted(0))
    assert len(children) == 1
    assert children[0].sent == [captions.config, ExpectedKeyframes(36), wanted(0)]


@pytest.mark.parametrize(("said", "error"), [([BudgetError("No price.")], BudgetError), ([Gone()], BackendError)])
def test_engines_that_cannot_be_asked_are_said_at_once(
    said: list[object], error: type[Exception], tmp_path: Path, children: Children
) -> None:
    children.first = said
    with pytest.raises(error):
        captions_of(tmp_path).check()
    assert len(children) == (3 if error is BackendError else 1)
