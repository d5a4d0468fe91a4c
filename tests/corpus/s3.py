"""A server that speaks S3, and fails on demand; as its own thread on this machine."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from threading import Thread
from typing import Any

import pytest

BUCKET = "corpus"
SECRET = "SuperSecretKeyOfTheUser"
BLOCK_BYTES = 5 * 2**20  # the smallest that S3 takes


class S3:
    """What was asked, what lies there, and which request is to fail."""

    def __init__(self) -> None:
        from moto.s3.models import s3_backends
        from moto.server import DomainDispatcherApplication, create_backend_app

        self._app = DomainDispatcherApplication(create_backend_app)
        self._backends = s3_backends
        self.address = ""
        self.reset()

    def reset(self) -> None:
        self._backends.reset()
        self.requests: list[tuple[str, str]] = []  # method, and path with query
        self.fails: Callable[[str, str], bool] = lambda method, path: False

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        from werkzeug.wrappers import Request, Response

        request = Request(environ)
        asked = request.method, request.full_path.rstrip("?")
        self.requests.append(asked)
        if self.fails(*asked):
            _ = request.data  # to be read, or the client is cut off while it sends
            text = "<?xml version='1.0'?><Error><Code>AccessDenied</Code><Message>Not today</Message></Error>"
            return Response(text, 403, content_type="application/xml")(environ, start_response)
        return self._app(environ, start_response)  # type: ignore[no-any-return]

    @property
    def _bucket(self) -> Any:
        from moto.core import DEFAULT_ACCOUNT_ID

        return self._backends[DEFAULT_ACCOUNT_ID]["aws"].buckets[BUCKET]

    @property
    def objects(self) -> dict[str, bytes]:
        return {name: key.value for name, key in self._bucket.keys.items()}

    @property
    def uploads(self) -> int:
        """Those that were begun and neither finished nor given up."""
        return len(self._bucket.multiparts)

    @property
    def puts(self) -> list[str]:
        """What appeared, in order."""
        done = (path for method, path in self.requests if method == ("POST" if "uploadId=" in path else "PUT"))
        return [path.partition("?")[0].removeprefix(f"/{BUCKET}/") for path in done]


@pytest.fixture(scope="session")
def _s3_server() -> Iterator[S3]:
    from werkzeug.serving import make_server

    server = S3()
    http = make_server("127.0.0.1", 0, server, threaded=True)
    thread = Thread(target=http.serve_forever, args=(0.01,))
    thread.start()
    server.address = f"http://127.0.0.1:{http.server_port}"
    yield server
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def s3(_s3_server: S3, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    """A server with an empty bucket, which the usual variables of the environment name."""
    import fsspec
    import s3fs

    for name, value in {
        "AWS_ENDPOINT_URL": _s3_server.address,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
    }.items():
        monkeypatch.setenv(name, value)
    s3fs.S3FileSystem.clear_instance_cache()
    _s3_server.reset()
    fsspec.filesystem("s3").mkdir(BUCKET)
    _s3_server.requests.clear()
    yield _s3_server
    s3fs.S3FileSystem.clear_instance_cache()
