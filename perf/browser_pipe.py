"""Headless Chromium by its DevTools pipe, with the standard library alone: evaluate, press keys, take pictures."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
KEYS = {"Tab": 9, "Enter": 13, "Space": 32, "Escape": 27}


def program() -> str | None:
    """Path of Chromium, or None."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """One page in headless Chromium; a context manager.

    Args:
        width: Of the window in CSS pixels.
        height: Of the window.
        dark: Whether the system prefers dark colours.
    """

    def __init__(self, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        self.size, self.dark = (width, height), dark
        self.said: list[str] = []
        self._next = 0

    def __enter__(self) -> Browser:
        self._profile = tempfile.TemporaryDirectory()
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        command = [str(program()), "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
                   "--disable-background-networking", "--disable-component-update", "--disable-sync",
                   "--hide-scrollbars", f"--user-data-dir={self._profile.name}",
                   "--remote-debugging-pipe", "about:blank"]  # fmt: skip

        # Chromium reads commands from descriptor 3 and writes to 4.
        shell = f'exec "$@" 3<&{to_read} 4>&{to_write}'
        self._process = subprocess.Popen(
            ["bash", "-c", shell, "bash", *command], pass_fds=(to_read, to_write), stderr=subprocess.DEVNULL
        )
        os.close(to_read)
        os.close(to_write)
        self._rest, self._session = b"", ""
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(t["targetId"] for t in targets if t["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.resize(*self.size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if self.dark else "light"}]
        self.send("Emulation.setEmulatedMedia", features=scheme)
        return self

    def __exit__(self, *error: object) -> None:
        try:
            self.send("Browser.close")
            self._process.wait(20)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        for pipe in (self._to, self._from):
            os.close(pipe)
        self._profile.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command and its result; what the console says meanwhile is kept in `said`.

        Raises:
            RuntimeError: Chromium refused the command or is gone.
        """
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._next:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._hear(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            block = os.read(self._from, 1 << 20)
            if not block:
                raise RuntimeError("Chromium has ended")
            self._rest += block
        first, self._rest = self._rest.split(b"\0", 1)
        return json.loads(first)

    def _hear(self, event: dict[str, Any]) -> None:
        of_console = {"Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"}
        if event.get("method") in of_console:
            self.said.append(json.dumps(event["params"])[:600])

    def resize(self, width: int, height: int, mobile: bool = False) -> None:
        """Another size of the window."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def open(self, page: Path, timeout_s: float = 60.0) -> None:
        """Open a file and wait for its load event."""
        self.send("Page.navigate", url=page.resolve().as_uri())
        self.until("document.readyState === 'complete' && location.protocol === 'file:'", timeout_s)

    def evaluate(self, expression: str) -> Any:
        """The value of an expression, awaited.

        Raises:
            RuntimeError: It threw.
        """
        answer = self.send("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:600])
        return answer["result"].get("value")

    def until(self, expression: str, timeout_s: float = 20.0) -> None:
        """Wait until an expression is true.

        Raises:
            TimeoutError: It stayed false.
        """
        end = time.monotonic() + timeout_s
        while not self.evaluate(expression):
            if time.monotonic() > end:
                raise TimeoutError(f"{expression} stayed false for {timeout_s} s")
            time.sleep(0.01)

    def press(self, key: str) -> None:
        """Press and release a key, as a hand would."""
        text = {"Enter": "\r", "Space": " "}.get(key, "")
        own = {"key": " " if key == "Space" else key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **own)
        self.send("Input.dispatchKeyEvent", type="keyUp", **own)

    def write(self, text: str) -> None:
        """Write a text where the focus is."""
        self.send("Input.insertText", text=text)

    def picture(self, path: Path, whole: bool = True) -> None:
        """Save a picture of the window, or of the whole page."""
        content = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(content))

    def pdf(self, path: Path) -> None:
        """Print to a PDF file, as the page's print style has it."""
        made = self.send("Page.printToPDF", printBackground=False, preferCSSPageSize=True)
        path.write_bytes(base64.b64decode(made["data"]))
