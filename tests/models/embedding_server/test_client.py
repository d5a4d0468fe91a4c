"""An embedder that other processes use: the same numbers and the same records, though clients vanish, err or do not know the key."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from multiprocessing.connection import answer_challenge, deliver_challenge
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import vip
from tests.extraction.analyses import picture
from tests.models import clip_models
from vip import registry
from vip.errors import BackendError
from vip.models.classic import ClassicEmbedder
from vip.models.clip.embedder import OpenClipEmbedder
from vip.models.embedding_server import batcher, protocol
from vip.models.embedding_server.client import ServedEmbedder, ServerAddress
from vip.models.embedding_server.server import decode_pictures, info_of, serve
from vip.records import Image, Vectors

SAMPLE = Path(__file__).resolve().parents[3] / "examples" / "sample.mp4"
TEXTS = ["a dog jumps", "frisbee at the top left", "nothing"]


class Watched:
    """An embedder that notes how many pictures it gets at once, and does something before each time."""

    def __init__(self, embedder: Any, before: Callable[[Sequence[Image]], object] = len, **changed: Any) -> None:
        self._embedder, self._before = embedder, before
        self.calls: list[int] = []
        self.name = changed.pop("name", embedder.name)
        self.capabilities = replace(embedder.capabilities, **changed)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._embedder, name)

    def embed_images(self, images: Sequence[Image]) -> Vectors:
        self.calls.append(len(images))
        self._before(images)
        return np.asarray(self._embedder.embed_images(images))


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("models")
    return {kind: clip_models.folder(home / kind, kind) for kind in ("clip", "siglip", "longest")}


@pytest.fixture(scope="module")
def local(folders: dict[str, Path]) -> OpenClipEmbedder:
    return OpenClipEmbedder(str(folders["clip"]), device="cpu", precision="fp32")


@pytest.fixture
def frames() -> list[Image]:
    return [*map(picture, range(5)), np.ascontiguousarray(picture(5).transpose(1, 0, 2)), picture(6)[:90, 10:140]]


@contextmanager
def served(embedder: Any) -> Iterator[str]:
    """Its address."""
    address, stop = serve(embedder, "127.0.0.1")
    try:
        yield address
    finally:
        stop()


# ---------------------------------------------------------------- the same


@pytest.mark.parametrize("kind", ["clip", "siglip", "longest"])
def test_a_served_embedder_gives_the_numbers_of_the_one_that_is_served(kind: str, folders: dict[str, Path], frames: list[Image]) -> None:
    local = OpenClipEmbedder(str(folders[kind]), device="cpu", precision="fp32")
    with served(local) as address:
        there = ServedEmbedder(address)
        assert np.array_equal(there.embed_images(frames), local.embed_images(frames))
        assert np.array_equal(there.embed_texts(TEXTS), local.embed_texts(TEXTS))
        assert there.embed_images([]).shape == there.embed_texts([]).shape == (0, local.dim)
        small = [there.capabilities.prepare(frame) for frame in frames]
        assert all(map(np.array_equal, small, map(local.capabilities.prepare, frames)))
        assert {image.shape for image in small} == {(64, 64, 3)}
        np.testing.assert_allclose(there.embed_images(small), local.embed_images(frames), atol=1e-5)


def test_a_served_embedder_states_what_the_one_that_is_served_states(local: OpenClipEmbedder) -> None:
    for embedder in (local, ClassicEmbedder(None)):
        with served(embedder) as address:
            there = ServedEmbedder(address)
            assert (there.name, there.dim) == (embedder.name, embedder.dim)
            assert replace(there.capabilities, prepare=None) == replace(embedder.capabilities, prepare=None)
            assert (there.capabilities.prepare is None) == (embedder.capabilities.prepare is None)


def test_more_than_fits_into_one_question_comes_back_in_order(local: OpenClipEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    images, texts = [picture(seed) for seed in range(7)], [f"{word} {word} dog" for word in "abcdefg"]
    watched = Watched(local, batch=3)
    with served(watched) as address:
        there = ServedEmbedder(address)
        np.testing.assert_allclose(there.embed_images(images), local.embed_images(images), atol=1e-5)
        assert watched.calls == [3, 3, 1]
        monkeypatch.setattr("vip.models.embedding_server.client.PICTURE_BYTES", picture(0).nbytes * 2)
        np.testing.assert_allclose(there.embed_images(images), local.embed_images(images), atol=1e-5)
        assert watched.calls[3:] == [2, 2, 2, 1]
        monkeypatch.setattr("vip.models.embedding_server.client.TEXTS", 2)
        np.testing.assert_allclose(there.embed_texts(texts), local.embed_texts(texts), atol=1e-5)


def test_without_torch_pictures_are_sent_as_they_are(local: OpenClipEmbedder, frames: list[Image], monkeypatch: pytest.MonkeyPatch) -> None:
    with served(local) as address:
        monkeypatch.setitem(sys.modules, "torch", None)
        there = ServedEmbedder(address)
        assert there.capabilities.prepare is None


def test_a_run_is_the_same_with_a_server_and_without(folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"embedder": f"clip:{folders['clip']}", "precision": "fp32", "device": "cpu", "keyframes": 5}
    alone = vip.extract(SAMPLE, out=tmp_path / "alone", **options, query="a dog jumps")
    watched = Watched(OpenClipEmbedder(str(folders["clip"]), device="cpu", precision="fp32"))
    with served(watched) as address:
        monkeypatch.setenv("VIP_EMBEDDING_SERVER", address)
        run = vip.extract(SAMPLE, out=tmp_path / "served", **options, query="a dog jumps")
    assert sum(watched.calls) >= len(run.candidates) > 5
    assert [frame.record for frame in run.keyframes] == [frame.record for frame in alone.keyframes]
    assert [row.decision.kept for row in run.candidates] == [row.decision.kept for row in alone.candidates]
    assert run.manifest
    assert alone.manifest
    for name in ("settings", "backends", "device", "notes", "counts", "versions"):
        assert getattr(run.manifest, name) == getattr(alone.manifest, name), name
    assert run.embeddings
    assert alone.embeddings
    assert run.embeddings.model == alone.embeddings.model
    np.testing.assert_allclose(run.embeddings.image, alone.embeddings.image, atol=1e-5)
    assert address.rpartition(":")[2] not in "".join(path.read_text() for path in run.folder.glob("*.json*")), "the key is a secret"


# ---------------------------------------------------------------- who is served


def test_only_the_embedder_that_is_served_comes_from_the_server(folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"clip:{folders['clip']}"
    address, stop = registry.serve_embedder(name, "127.0.0.1", device="cpu", precision="fp32")
    monkeypatch.setenv("VIP_EMBEDDING_SERVER", address)
    asked = [registry.embedder(name), registry.embedder(name, device="cpu", precision="fp32")]
    assert isinstance(asked[0], ServedEmbedder)
    assert asked[0] is asked[1], "made once a process"
    assert isinstance(registry.embedder("classic"), ClassicEmbedder)
    assert isinstance(registry.embedder(f"clip:{folders['siglip']}"), OpenClipEmbedder)
    other = registry.embedder(name, precision="bf16")
    assert isinstance(other, OpenClipEmbedder)
    assert other.capabilities.device == "cpu in bf16"
    with pytest.raises(BackendError, match='There is no embedder "clap"'):
        registry.embedder("clap")
    stop()
    monkeypatch.setenv("VIP_EMBEDDING_SERVER", "")
    assert isinstance(registry.embedder(name), OpenClipEmbedder)


def test_the_short_name_and_the_number_of_a_device_mean_the_same_model(local: OpenClipEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = Watched(local, name="clip:ViT-B-32/laion2b_s34b_b79k", device="cuda:1 in fp16")
    with served(usual) as address:
        monkeypatch.setenv("VIP_EMBEDDING_SERVER", address)
        for name, device in (("clip", "auto"), ("clip", "cuda"), ("clip:ViT-B-32/laion2b_s34b_b79k", "cuda:3")):
            assert registry.embedder(name, device=device).name == usual.name


def test_what_auto_stands_for_does_not_depend_on_a_server(local: OpenClipEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    before = registry.auto_embedder("auto")
    with served(local) as address:
        monkeypatch.setenv("VIP_EMBEDDING_SERVER", address)
        registry._why_not_clip.cache_clear()
        assert registry.auto_embedder("auto") == before


# ---------------------------------------------------------------- many processes

ASK = """
import sys
import numpy as np
from vip.models.embedding_server.client import ServedEmbedder

there = ServedEmbedder(sys.argv[1])
pictures = list(np.load(sys.argv[2]))
for _ in range(int(sys.argv[4])):
    vectors = there.embed_images(pictures)
np.save(sys.argv[3], vectors)
"""


def start(address: str, images: Sequence[Image], folder: Path, number: int, times: int = 1) -> subprocess.Popen[bytes]:
    """A process that asks for the vectors of these pictures, and writes them."""
    np.save(folder / f"pictures{number}.npy", images)
    files = [str(folder / f"{name}{number}.npy") for name in ("pictures", "vectors")]
    return subprocess.Popen([sys.executable, "-c", ASK, address, *files, str(times)])


def test_what_several_processes_ask_for_is_embedded_together(
    local: OpenClipEmbedder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batcher, "GATHER_S", 120.0)  # so that a batch is begun when it is full
    images = [[picture(10 * number + seed) for seed in range(3)] for number in range(3)]
    watched = Watched(local, batch=9)
    with served(watched) as address, greeted(address):  # who asks for nothing, so that more might come
        processes = [start(address, each, tmp_path, number) for number, each in enumerate(images)]
        assert [process.wait(timeout=120) for process in processes] == [0] * 3
    assert watched.calls == [9]
    for number, each in enumerate(images):
        np.testing.assert_allclose(np.load(tmp_path / f"vectors{number}.npy"), local.embed_images(each), atol=1e-5)


def test_a_client_that_is_killed_costs_the_others_nothing(local: OpenClipEmbedder, tmp_path: Path) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def wait(images: Sequence[Image]) -> None:
        begun.set()
        go_on.wait(60)

    with served(Watched(local, before=wait)) as address:
        killed = start(address, [picture(1)], tmp_path, 1, times=1000)
        assert begun.wait(60)
        killed.kill()
        assert killed.wait(timeout=60) == -signal.SIGKILL
        other = start(address, [picture(2)], tmp_path, 2)
        go_on.set()
        assert other.wait(timeout=120) == 0
        np.testing.assert_allclose(np.load(tmp_path / "vectors2.npy"), local.embed_images([picture(2)]), atol=1e-5)


FORKED = """
import os, sys
import numpy as np
from vip import registry
from vip.processes import isolated
from vip.protocols import SilentObserver

embedder = registry.embedder(f"clip:{sys.argv[1]}")
assert type(embedder).__name__ == "ServedEmbedder"
assert isolated._can_fork()
pictures = [embedder.capabilities.prepare(picture) for picture in np.load(sys.argv[2])]
def work(observer):
    np.save(sys.argv[3], embedder.embed_images(pictures))
isolated.run_isolated(work, "test", SilentObserver(), timeout_s=60, fork=True)
wanted = embedder.embed_images(pictures)
child = os.fork()
mine = slice(0, 3) if child else slice(3, 6)
for _ in range(200):
    np.testing.assert_allclose(embedder.embed_images(pictures[mine]), wanted[mine], atol=1e-5)
if child:
    assert os.waitpid(child, 0)[1] == 0
"""


def test_a_fork_of_a_client_has_a_connection_of_its_own(folders: dict[str, Path], local: OpenClipEmbedder, tmp_path: Path) -> None:
    images = [picture(seed) for seed in range(6)]
    np.save(tmp_path / "pictures.npy", images)
    files = [str(folders["clip"]), str(tmp_path / "pictures.npy"), str(tmp_path / "vectors.npy")]
    with served(local) as address:
        environment = {**os.environ, "VIP_EMBEDDING_SERVER": address}
        subprocess.run([sys.executable, "-c", FORKED, *files], check=True, timeout=120, env=environment)
    np.testing.assert_allclose(np.load(files[2]), local.embed_images(images), atol=1e-5)


def test_threads_of_one_client_do_not_get_each_others_answers(local: OpenClipEmbedder) -> None:
    wanted = [local.embed_images([picture(seed)]) for seed in range(8)]
    with served(local) as address:
        there = ServedEmbedder(address)
        wrong: list[int] = []

        def ask(seed: int) -> None:
            answers = [there.embed_images([picture(seed)]) for _ in range(20)]
            wrong.extend(seed for vectors in answers if not np.allclose(vectors, wanted[seed], atol=1e-5))

        threads = [threading.Thread(target=ask, args=[seed]) for seed in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert wrong == []


SERVE = """
import sys
from vip import registry

address, stop = registry.serve_embedder(f"clip:{sys.argv[1]}", "127.0.0.1", device="cpu", precision="fp32")
print(address, flush=True)
sys.stdin.read()
stop()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_server_needs_no_more_memory_or_files_for_more_questions_and_clients(folders: dict[str, Path]) -> None:
    command = [sys.executable, "-c", SERVE, str(folders["clip"])]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdin
        address = process.stdout.readline().strip()
        images = [picture(seed) for seed in range(24)]  # 16 MB

        def ask(clients: int) -> tuple[int, int]:
            """Memory in MB and open files after so many clients."""
            for _ in range(clients):
                there = ServedEmbedder(address)
                for _ in range(2):
                    there.embed_images(images)
            here = Path(f"/proc/{process.pid}")
            used = next(line for line in (here / "status").read_text().splitlines() if line.startswith("VmRSS"))
            return int(used.split()[1]) // 1024, len(list((here / "fd").iterdir()))

        memory, files = ask(3)
        later = ask(12)  # 400 MB of pictures
        process.stdin.close()
        assert process.wait(timeout=60) == 0
    assert later[0] < memory + 100
    assert later[1] <= files + 3  # of threads that are about to end


# ---------------------------------------------------------------- what goes wrong


@contextmanager
def greeted(address: str) -> Iterator[protocol.Connection]:
    """A client that knows the key and may say anything."""
    with greeting(address) as connection:
        protocol.receive(connection, protocol.EmbedderInfo)
        yield connection


def greeting(address: str) -> protocol.Connection:
    host, port, key = ServerAddress.parse(address)
    connection = protocol.wrap_socket(socket.create_connection((host, port)))
    answer_challenge(connection, key)
    deliver_challenge(connection, key)
    return connection


def test_a_wrong_key_is_refused_before_anything_is_said(local: OpenClipEmbedder) -> None:
    with served(local) as address:
        wrong = address[:-1] + ("0" if address[-1] != "0" else "1")
        with pytest.raises(BackendError, match="refuses the key") as caught:
            ServedEmbedder(wrong)
        assert wrong.rpartition(":")[2] not in str(caught.value)
        assert ServedEmbedder(address).embed_texts(TEXTS).shape == (3, local.dim)


def test_strangers_that_are_silent_or_talk_nonsense_hold_nobody_up(local: OpenClipEmbedder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.models.embedding_server.server.GREETING_S", 3600)
    with served(local) as address:
        host, port, _ = ServerAddress.parse(address)
        with socket.create_connection((host, port)), socket.create_connection((host, port)) as second:
            second.sendall(b"\x7f\xff\xff\xff" + b"GET / HTTP/1.1\r\n\r\n" * 1000)
            assert ServedEmbedder(address).embed_texts(TEXTS).shape == (3, local.dim)


def test_a_client_may_be_silent_between_two_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []
    monkeypatch.setattr("vip.models.embedding_server.server.set_read_timeout", lambda connection, seconds: limits.append(seconds))
    with served(ClassicEmbedder(None)) as address:
        assert ServedEmbedder(address).embed_texts(TEXTS).shape == (3, 256)
    assert limits[0] > 0
    assert limits[1:2] == [0], "only the greeting has a limit"


@settings(max_examples=30)
@given(st.lists(st.binary(max_size=60) | st.sampled_from([b"{}", b"[]", b'{"shapes": [[1, 1]]}', b'{"shapes": [[2, -2]]}']), max_size=5))
def test_a_client_that_says_anything_costs_only_itself(said: list[bytes]) -> None:
    with served(ClassicEmbedder(None)) as address:
        with greeted(address) as connection:
            try:
                for data in said:
                    connection.send_bytes(data)
            except OSError:
                pass  # it hung up
        assert ServedEmbedder(address).embed_images([picture(1)]).shape == (1, ClassicEmbedder.dim)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), max_size=5), st.integers(-3, 3))
def test_pictures_are_what_was_sent_or_refused(shapes: list[tuple[int, int]], more: int) -> None:
    rng = np.random.default_rng(0)
    sent = [rng.integers(0, 256, (*shape, 3), np.uint8) for shape in shapes]
    data = b"".join(image.tobytes() for image in sent)
    question = protocol.EmbeddingRequest(shapes=tuple(shapes))
    assert all(map(np.array_equal, decode_pictures(question, data, most=5), sent))
    with pytest.raises(ValueError, match="pictures in"):
        decode_pictures(question, data, most=len(shapes) - 1)
    changed = data + b"x" * more if more > 0 else data[:more]
    if len(changed) != len(data):
        with pytest.raises(ValueError, match="pictures in"):
            decode_pictures(question, changed, most=5)


def test_an_error_of_the_embedder_reaches_the_client_that_is_to_blame_alone(
    local: OpenClipEmbedder, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def check(images: Sequence[Image]) -> None:
        if any(len(image) == 1 for image in images):
            raise BackendError("It does not fit. Write --device cpu.")
        if any(len(image) == 2 for image in images):
            raise RuntimeError("a bug\nin the model")

    monkeypatch.setattr(batcher, "GATHER_S", 120.0)
    watched = Watched(local, before=check, batch=3)
    answers: dict[int, Any] = {}

    def ask(there: ServedEmbedder, height: int) -> None:
        try:
            answers[height] = there.embed_images([picture(1)[:height]])
        except BackendError as exc:
            answers[height] = str(exc)

    with served(watched) as address, greeted(address):
        there = ServedEmbedder(address)
        threads = [threading.Thread(target=ask, args=[there, height]) for height in (1, 2, 360)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert watched.calls == [3, 1, 1, 1]
    assert answers[1] == "It does not fit. Write --device cpu."
    assert answers[2].startswith(f"The embedder {local.name} failed in its server (RuntimeError: a bug).")
    assert "in the model" in caplog.text, "the traceback is where the bug is"
    np.testing.assert_allclose(answers[360], local.embed_images([picture(1)]), atol=1e-5)


def test_a_connection_that_broke_is_made_again(local: OpenClipEmbedder) -> None:
    with served(local) as address:
        there = ServedEmbedder(address)
        wanted = there.embed_texts(TEXTS)
        there._idle += [greeting(address) for _ in range(3)]
        for connection in there._idle:
            connection.close()
        assert np.array_equal(there.embed_texts(TEXTS), wanted)


def test_a_server_that_is_gone_is_one_sentence_without_the_key(local: OpenClipEmbedder) -> None:
    with served(local) as address:
        there = ServedEmbedder(address)
        there.embed_texts(TEXTS)
    host, port, key = address.split(":")
    for ask in (lambda: there.embed_texts(TEXTS), lambda: ServedEmbedder(address)):
        with pytest.raises(
            BackendError, match=f"^The embedding server at {host}:{port} cannot be asked: Connection refused. Start"
        ) as caught:
            ask()
        assert key not in str(caught.value) + repr(there._address)


def test_who_waits_for_an_answer_when_the_server_ends_is_told(local: OpenClipEmbedder) -> None:
    begun, said = threading.Event(), []

    def wait(images: Sequence[Image]) -> None:
        begun.set()
        ended.wait(60)

    ended = threading.Event()
    address, stop = serve(Watched(local, before=wait, batch=1), "127.0.0.1")
    there, server = ServedEmbedder(address), getattr(stop, "__self__", None)
    assert server

    def ask() -> None:
        try:
            there.embed_images([picture(1)])
        except BackendError as exc:
            said.append(str(exc))

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert begun.wait(60)
    stopping = threading.Thread(target=stop)
    stopping.start()
    while not server.batcher._is_closed:
        time.sleep(0.001)
    ended.set()
    for thread in (stopping, *threads):
        thread.join(60)
        assert not thread.is_alive()
    assert all("Start it again" in text for text in said)
    assert len(said) >= 2, "at most the one that was at work has its answer"


class StoppedError(Exception):
    pass


def test_an_answer_that_nobody_waited_for_is_not_taken_for_the_next(local: OpenClipEmbedder) -> None:
    images = [[picture(1)], [picture(2)]]
    go_on = threading.Event()

    def interrupt(*_: object) -> None:
        raise StoppedError

    with served(Watched(local, before=lambda _: go_on.wait(60))) as address:
        there = ServedEmbedder(address)
        before = signal.signal(signal.SIGALRM, interrupt)
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.3)
            with pytest.raises(StoppedError):
                there.embed_images(images[0])
        finally:
            signal.signal(signal.SIGALRM, before)
        go_on.set()
        np.testing.assert_allclose(there.embed_images(images[1]), local.embed_images(images[1]), atol=1e-5)


@pytest.mark.parametrize("text", ["", "localhost", "localhost:80", "localhost:x:00", "localhost:80:no-hex", ":::"])
def test_an_address_that_is_none_is_one_sentence(text: str) -> None:
    with pytest.raises(BackendError, match="is not HOST:PORT:KEY"):
        ServedEmbedder(text)


def test_a_server_that_says_nothing_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vip.models.embedding_server.client.GREETING_S", 1)
    with (
        socket.create_server(("127.0.0.1", 0)) as other,
        pytest.raises(BackendError, match="asked: it is silent"),
    ):
        ServedEmbedder(f"127.0.0.1:{other.getsockname()[1]}:00")


def test_something_else_at_that_port_is_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet() -> None:
            with suppress(OSError):  # the test is over, and the port closed
                while True:
                    plug, _ = other.accept()
                    with plug:
                        plug.sendall(b"\x00\x00\x00\x05hello")
                        plug.recv(100)

        thread = threading.Thread(target=greet, daemon=True)
        thread.start()
        with pytest.raises(BackendError, match="The embedding server at 127"):
            ServedEmbedder(f"127.0.0.1:{other.getsockname()[1]}:00")


def test_a_host_that_is_not_this_machine_is_one_sentence() -> None:
    with pytest.raises(BackendError, match=r"cannot listen at 192\.0\.2\.1"):
        serve(ClassicEmbedder(None), "192.0.2.1")


def test_what_is_told_fits_into_the_words_of_every_embedder() -> None:
    info = info_of(ClassicEmbedder(None))
    assert (info.name, info.dim, info.capabilities, info.resize_steps) == ("classic", 1544, ClassicEmbedder.capabilities, None)


@pytest.mark.parametrize(
    ("told", "instead"), [('"batch":1', '"batch":0'), ("0.88", "NaN"), ('"prepare":null', '"prepare":"f"'), ('"device"', '"more"')]
)
def test_a_record_that_makes_no_sense_is_not_taken(told: str, instead: str) -> None:
    text = info_of(ClassicEmbedder(None)).model_dump_json()
    assert told in text
    assert protocol.EmbedderInfo.model_validate_json(text) == info_of(ClassicEmbedder(None))
    with pytest.raises(ValueError, match="capabilities"):
        protocol.EmbedderInfo.model_validate_json(text.replace(told, instead))
