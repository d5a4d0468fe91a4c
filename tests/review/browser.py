"""A headless Chromium that tests drive through its pipe (the DevTools protocol), with the keys of a person."""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
OFFLINE = ["--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
PATIENCE_S = 20.0
CODES = {"Enter": 13, "Escape": 27, "Tab": 9, "ArrowRight": 39, "ArrowLeft": 37, " ": 32}


class Browser:
    """One tab."""

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back, self._number, self._session = process, to, back, 0, ""
        self._read = b""
        self.complaints: list[str] = []
        """What the browser wrote to its console, and what it refused."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                found: dict[str, Any] = answer["result"]
                return found
            if answer.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
                self.complaints.append(json.dumps(answer["params"])[:500])
            if answer.get("method") == "Page.javascriptDialogOpening":
                self.complaints.append("a dialog opened")

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            data = os.read(self._back, 2**20)
            assert data, "Chromium is gone"
            self._read += data
        line, _, self._read = self._read.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def wait(self, script: str) -> Any:
        """The value of an expression once it is true."""
        end = time.monotonic() + PATIENCE_S
        while not (value := self.run(script)):
            assert time.monotonic() < end, f"{script} is still {value!r}; the page says {self.text('#saved')!r}; {self.complaints}"
            time.sleep(0.02)
        return value

    def text(self, selector: str) -> str:
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.textContent"))

    def value(self, field: str) -> str:
        return str(self.run(f"document.getElementById('text-{field}').value"))

    def open(self, address: str, *, width: int = 1280, height: int = 900, is_dark: bool = False) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def press(self, *keys: str, ctrl: bool = False) -> None:
        """Press and release keys, one after another."""
        for key in keys:
            event = {
                "key": key,
                "modifiers": 2 if ctrl else 0,
                "windowsVirtualKeyCode": CODES.get(key, ord(key.upper()) if len(key) == 1 else 0),
            }
            text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
            self.call(
                "Input.dispatchKeyEvent",
                type="keyDown" if text and not ctrl else "rawKeyDown",
                **event,
                **({"text": text} if text and not ctrl else {}),
            )
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        """Type a text in place of what the field with the focus holds."""
        self.press("a", ctrl=True)
        self.run("document.activeElement.select?.()")
        self.call("Input.insertText", text=text)

    def screenshot(self, path: Path) -> None:
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=False)["data"]
        path.write_bytes(base64.b64decode(data))


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A Chromium with a profile of its own."""
    its_input, to = os.pipe()
    back, its_output = os.pipe()
    command = [
        str(CHROMIUM),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        *OFFLINE,
        "--remote-debugging-pipe",
        f"--user-data-dir={profile}",
    ]
    wrapped = ["bash", "-c", f'exec "$@" 3<&{its_input} 4>&{its_output}', "chromium", *command]
    process = subprocess.Popen(
        wrapped, pass_fds=(its_input, its_output), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Browser(process, to, back)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        os.close(to)
        os.close(back)
