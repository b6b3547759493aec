"""A page in headless Chromium, driven through the DevTools protocol: real keys, touches, reloads and screenshots."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw

from humanlike.data.survey import RatingScale, Survey, SurveyCheck, SurveyItem
from humanlike.reports.survey_page import picture, picture_hash, survey_texts, write_survey_page

KEYS = {
    "Enter": ("Enter", 13, "\r"), "Backspace": ("Backspace", 8, ""), "Tab": ("Tab", 9, ""), " ": ("Space", 32, " "),
    "ArrowLeft": ("ArrowLeft", 37, ""), "ArrowUp": ("ArrowUp", 38, ""), "ArrowRight": ("ArrowRight", 39, ""),
    "ArrowDown": ("ArrowDown", 40, ""),
}  # fmt: skip


class Browser:
    """One tab, spoken to through a pipe (messages are JSON, each ended by a zero byte)."""

    def __init__(self, program: str, folder: Path) -> None:
        self.downloads = folder / "downloads"
        self.downloads.mkdir()
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        inner = [fcntl.fcntl(end, fcntl.F_DUPFD, 20) for end in (to_read, to_write)]
        command = [
            "bash", "-c", f'exec "$0" "$@" 3<&{inner[0]} 4>&{inner[1]}', program, "--headless", "--no-sandbox",
            "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
            "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--remote-debugging-pipe",
            f"--user-data-dir={folder / 'profile'}", "about:blank",
        ]  # fmt: skip
        with (folder / "chromium.log").open("wb") as log:
            self._process = subprocess.Popen(command, pass_fds=inner, stdout=log, stderr=log)
        for end in (to_read, to_write, *inner):
            os.close(end)
        self._buffer, self._number, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(self.downloads), eventsEnabled=True)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        text = json.dumps(message).encode() + b"\0"
        while text:
            text = text[os.write(self._write, text) :]
        while True:
            answer = self._next(30)
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer.get('error')}"
                return answer["result"]
            self.events.append(answer)

    def _next(self, limit: float) -> dict[str, Any]:
        until = time.monotonic() + limit
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(until - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            self._buffer += os.read(self._read, 1 << 16)
        text, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(text)

    def wait_for(self, event: str) -> dict[str, Any]:
        while True:
            for i, found in enumerate(self.events):
                if found.get("method") == event:
                    return self.events.pop(i)
            self.events.append(self._next(30))

    def open(self, page: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        self.wait_for("Page.loadEventFired")

    def reload(self) -> None:
        self.events.clear()
        self.call("Page.reload")
        self.wait_for("Page.loadEventFired")

    def run(self, script: str) -> Any:
        done = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def key(self, *names: str) -> None:
        for name in names:
            code, number, text = KEYS.get(
                name, (f"{'Digit' if name.isdigit() else 'Key'}{name.upper()}", ord(name[0].upper()), name)
            )
            event = {"key": name, "code": code, "windowsVirtualKeyCode": number}
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def type(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def centre(self, selector: str, index: int = 0) -> tuple[float, float]:
        left, top, width, height = self.run(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{index}];"
            "e.scrollIntoView({block: 'nearest'}); const b = e.getBoundingClientRect();"
            "return [b.left, b.top, b.width, b.height]; })()"
        )
        return left + width / 2, top + height / 2

    def touch(self, selector: str, index: int = 0) -> None:
        x, y = self.centre(selector, index)
        self.call("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.call("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.run("new Promise((done) => setTimeout(done, 30))")  # the click that follows a touch comes by itself

    def click(self, selector: str, index: int = 0) -> None:
        x, y = self.centre(selector, index)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def phone(self, width: int = 360, height: int = 640) -> None:
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=True)
        self.call("Emulation.setTouchEmulationEnabled", enabled=True, maxTouchPoints=1)

    def prefer(self, **features: str) -> None:
        self.call(
            "Emulation.setEmulatedMedia",
            features=[{"name": name.replace("_", "-"), "value": value} for name, value in features.items()],
        )

    def screenshot(self, path: Path) -> Path:
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))
        return path

    def downloaded(self) -> Path:
        name = self.wait_for("Browser.downloadWillBegin")["params"]["suggestedFilename"]
        while self.wait_for("Browser.downloadProgress")["params"]["state"] != "completed":
            pass
        return self.downloads / name

    def problems(self) -> list[Any]:
        """Uncaught errors, errors on the console, and requests of the page to anything outside itself."""
        self.run("0")
        wrong = [e["params"] for e in self.events if e.get("method") == "Runtime.exceptionThrown"]
        wrong += [
            e["params"]["args"] for e in self.events
            if e.get("method") == "Runtime.consoleAPICalled" and e["params"]["type"] == "error"
        ]  # fmt: skip
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return wrong + [url for url in asked if not url.startswith(("data:", "file:", "blob:"))]

    def close(self) -> None:
        try:
            os.write(self._write, json.dumps({"id": 0, "method": "Browser.close"}).encode() + b"\0")
            self._process.wait(timeout=20)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        pytest.skip("Chromium is not installed")
    tab = Browser(program, tmp_path)
    yield tab
    tab.close()


def drawing(seed: int, size: int = 300) -> Image.Image:
    """A made-up drawing of black lines on white."""
    rng = np.random.default_rng(seed)
    sheet = Image.new("RGB", (size, size), "white")
    pen = ImageDraw.Draw(sheet)
    for _ in range(3 + seed % 9):
        pen.line([tuple(p) for p in rng.uniform(20, size - 20, (4, 2))], fill="black", width=4, joint="curve")
    return sheet


@pytest.fixture(scope="session")
def make_survey() -> Callable[..., tuple[Survey, dict[str, bytes]]]:
    """(kind, number of questions, checks, scale) → a survey of made-up drawings, and its pictures."""

    def make(kind="ranking", questions=4, checks=0, scale=None, texts=None):
        size = 1 if kind == "rating" else 3
        ids = [[f"owl_{q}_{i}" for i in range(size)] for q in range(questions)]
        pictures = {name: picture(drawing(k)) for k, name in enumerate(n for own in ids for n in own)}
        expected = {"ranking": (2, 0, 1), "rating": (3,), "acceptance": (0,)}[kind]
        survey = Survey(
            kind=kind,
            items=tuple(SurveyItem(f"q{q}", tuple(own), "owl") for q, own in enumerate(ids)),
            checks=tuple(SurveyCheck(f"check-{c}", tuple(ids[c]), expected) for c in range(checks)),
            scale=scale or RatingScale() if kind == "rating" else None,
            controls=0.25 if kind == "acceptance" else None,
            images={name: picture_hash(png) for name, png in pictures.items()},
            texts=survey_texts(kind) | (texts or {}),
        )
        return survey, pictures

    return make


@pytest.fixture
def page_of(tmp_path: Path) -> Callable[[tuple[Survey, dict[str, bytes]]], Path]:
    """Writes the page of a survey."""

    def write(made):
        write_survey_page(tmp_path / "survey.html", *made)
        return tmp_path / "survey.html"

    return write
