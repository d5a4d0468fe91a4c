"""Processes of a batch that are killed again and again end it with one sentence, and nothing is lost."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.corpus.test_batch import choices, listed, samples_in, videos
from tests.corpus.workers.children import Gone, children_of
from tests.corpus.workers.killed import kill_children
from vip.config import CaptionSettings, ExtractSettings
from vip.corpus.batch import batch
from vip.corpus.settings import BatchConfig
from vip.corpus.workers.embedder_process import EmbedderProcess
from vip.errors import BackendError
from vip.processes.supervisor import KILLED, MOST_DEATHS, ChildDiedError, ChildProcess, Requests, Supervisor, too_many_deaths

OFFLINE = CaptionSettings(engine="offline")


@pytest.mark.extra("pyarrow")
@pytest.mark.parametrize(
    ("module", "does"),
    [("worker", "extracts keyframes"), ("shard_writer", "writes shards"), ("caption_server", "asks for captions")],
)
def test_a_process_killed_for_memory_three_times_in_a_row_ends_the_batch_with_one_sentence(
    module: str, does: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, out = listed(tmp_path, videos(tmp_path, 2)), tmp_path / "corpus"
    settings = BatchConfig(choices(caption=True).batch, ExtractSettings(keyframes=3, embedder="classic"), OFFLINE)
    with monkeypatch.context() as patch:
        kill_children(patch, module)
        with pytest.raises(BackendError) as caught:
            batch([names], str(out), settings)
    assert str(caught.value) == (
        f"The process that {does} was ended by the system 3 times in a row, most likely because memory ran out. "
        "Use fewer --workers or a machine with more memory; the same command goes on."
    )
    assert caught.value.exit_code == 4
    assert batch([names], str(out), settings).done == len(samples_in(out)) == 2


def test_a_model_that_does_not_fit_into_memory_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    kill_children(monkeypatch, "embedder_process")
    embedding = EmbedderProcess(ExtractSettings(embedder="clip"))
    with pytest.raises(BackendError, match=f"embeds pictures was ended by the system {MOST_DEATHS} times in a row"):
        embedding.start()
    embedding.close()


def test_a_child_that_is_stopped_can_still_be_read_and_one_that_is_killed_leaves_nothing_open() -> None:
    child = ChildProcess("vip.corpus.workers.shard_writer")
    assert child.stop() == KILLED
    assert not child.pipe.closed
    assert child.kill() == KILLED
    assert child.pipe.closed


def test_a_process_that_ends_otherwise_is_a_bug_and_no_lack_of_memory() -> None:
    assert isinstance(too_many_deaths("writes shards", 1), RuntimeError)
    assert isinstance(too_many_deaths("writes shards", -11), RuntimeError)
    assert isinstance(too_many_deaths("writes shards", 9), RuntimeError)
    assert isinstance(too_many_deaths("writes shards", -9), BackendError)


def test_memory_that_runs_out_in_python_ends_a_process_as_the_system_does() -> None:
    code = (
        "from multiprocessing import Pipe; import os; from vip.processes.supervisor import child_pipe\n"
        "here, there = Pipe(); here.send(os.getppid())\n"
        "with child_pipe(str(os.dup(there.fileno()))): raise MemoryError"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9


def test_a_request_is_sent_again_to_the_child_that_replaces_a_dead_one(monkeypatch: pytest.MonkeyPatch) -> None:
    children = children_of(monkeypatch)
    requests = Requests[str](Supervisor("module", "works", lambda: "config"))
    requests.send("one")
    children.say(Gone())
    assert requests.reply() is None
    assert [child.sent for child in children] == [["config", "one"], ["config", "one"]]
    children.say("done")
    assert (requests.reply(), requests.current, requests.child.deaths.count) == ("done", None, 0)


def test_an_excused_death_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    children = children_of(monkeypatch)
    children.first = [Gone()]
    supervisor = Supervisor("module", "works", lambda: None)
    for excused in (True, True, True, False, False):
        with pytest.raises(ChildDiedError):
            supervisor.receive(excused=excused)
    with pytest.raises(BackendError, match="works was ended by the system 3 times"):
        supervisor.receive()
    assert not supervisor.is_running


def test_what_a_process_prints_is_no_message_and_goes_to_stderr() -> None:
    code = (
        "from multiprocessing import Pipe; import os; from vip.processes.supervisor import child_pipe\n"
        "here, there = Pipe(); here.send(os.getppid())\n"
        "with child_pipe(str(os.dup(there.fileno()))): print('said by a library', flush=True)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("", "said by a library\n")


def test_a_child_whose_driver_is_gone_before_it_says_a_word_ends_in_silence() -> None:
    ours, theirs = socket.socketpair()
    command = "import sys; from vip.corpus.workers.shard_writer import main; main(sys.argv[1])"
    with subprocess.Popen(
        [sys.executable, "-c", command, str(theirs.fileno())], pass_fds=[theirs.fileno()], stderr=subprocess.PIPE, text=True
    ) as child:
        ours.close()
        theirs.close()
        assert child.communicate(timeout=60)[1] == ""
    assert child.returncode == 0
