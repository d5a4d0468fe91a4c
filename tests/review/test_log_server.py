"""Actions that are written together: each request gets its own."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

pytest.importorskip("starlette")

from tests.review.corpora import action, make_described, open_state
from vip.review.log import Action, StaleValueError
from vip.review.server import ReviewServer


def test_a_client_that_is_gone_leaves_the_others_their_own_results(tmp_path: Path) -> None:
    server = ReviewServer(open_state(make_described(tmp_path / "a", 3)), title="a", token="t", hosts=())

    async def write_three() -> list[Action | StaleValueError]:
        gone, _, last = (
            asyncio.create_task(server._write(actions))
            for actions in (
                [action("k0", "verdict", "good"), action("k1", "verdict", "good")],
                [action("k0", "comment", "see left")],
                [action("k2", "verdict", "unusable")],
            )
        )
        await asyncio.sleep(0)  # all three wait for the thread of the log
        gone.cancel()
        return await last

    (written,) = asyncio.run(write_three())
    assert isinstance(written, Action)
    assert (written.item, written.after) == ("k2", "unusable")
    assert len(list(server.state.log.read())) == 4, "what was sent is written, though nobody waits for it"
