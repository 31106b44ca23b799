"""A headless Chromium over two pipes (--remote-debugging-pipe): no package is needed but the browser."""

from __future__ import annotations

import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

PROGRAM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"]
SECONDS = 60.0


class Browser:
    """One browser with one page. What the page logs, throws, asks the network for or is kept from is in `events`."""

    def __init__(self, folder: Path, size: str = "1280,900") -> None:
        to_browser, self._out = os.pipe()
        self._in, from_browser = os.pipe()
        arguments = [*ARGUMENTS, f"--window-size={size}", f"--user-data-dir={folder}", "--remote-debugging-pipe"]

        def take_pipes() -> None:  # the browser reads from 3 and writes to 4
            ends = [os.dup(to_browser), os.dup(from_browser)]
            while min(ends) < 5:
                ends = [os.dup(end) for end in ends]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [PROGRAM, *arguments, "about:blank"],
            preexec_fn=take_pipes,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict] = []
        target = next(t for t in self.call("Target.getTargets")["targetInfos"] if t["type"] == "page")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, **parameters: object) -> dict:
        self._number += 1
        number = self._number
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while (answer := self._read()).get("id") != number:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _read(self) -> dict:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._in], [], [], max(0, end - time.monotonic()))
            got = os.read(self._in, 1 << 16) if ready else b""
            assert got, "the browser does not answer"
            self._buffer += got
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def open(self, page: Path) -> None:
        self.events.clear()
        self.call("Page.navigate", url=page.as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._read())
        self._settle()

    def _settle(self) -> None:
        """Comes back when observers and handlers of scrolling have run, by which pages draw."""
        self.run("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")

    def run(self, script: str) -> object:
        """The value of an expression in the page."""
        answer = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, (script, answer)
        return answer["result"].get("value")

    def press(self, key: str, code: int = 0) -> None:
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        keys = {"key": key, "windowsVirtualKeyCode": code, "text": text}
        self.call("Input.dispatchKeyEvent", type="keyDown", **keys)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self._settle()

    def emulate(self, scheme: str) -> None:
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self) -> str:
        """PNG in base64."""
        return self.call("Page.captureScreenshot", format="png")["data"]

    def complaints(self) -> list[str]:
        """Errors and warnings of the page, and requests beside the page itself."""
        out = []
        for event in self.events:
            method, told = event.get("method"), event.get("params", {})
            if method in ("Runtime.exceptionThrown", "Log.entryAdded", "Runtime.consoleAPICalled"):
                out.append(json.dumps(told)[:500])
            if method == "Network.requestWillBeSent" and told["type"] != "Document":
                out.append(told["request"]["url"][:200])
            if method == "Page.javascriptDialogOpening":
                out.append("a dialog of the page")
        return out
