"""Chromium without a window, controlled through its debugging protocol."""

import fcntl
import json
import os
import select
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

PROGRAM = next(
    filter(None, map(shutil.which, ("chromium", "google-chrome", "chromium-browser"))), None
)
TIMEOUT = 60.0
"""Seconds until a browser that does not answer is a failure: other programs may have the cores."""
OPTIONS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
    "--proxy-server=127.0.0.1:1", "--remote-debugging-pipe",
)  # fmt: skip
LAUNCH = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.dup2(int(sys.argv[2]), 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Moves two pipes to the descriptors that the browser uses: 3 for input, 4 for output."""


class Browser:
    """Chromium without a window and without a network, controlled through two pipes."""

    def __init__(self, folder: Path):
        (orders, self._out), (self._in, answers) = os.pipe(), os.pipe()
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (orders, answers)]
        start = [sys.executable, "-S", "-c", LAUNCH, *map(str, ends), str(PROGRAM)]
        self.process = subprocess.Popen(
            [*start, *OPTIONS, f"--user-data-dir={folder}", "about:blank"],
            pass_fds=ends, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        for end in (orders, answers, *ends):
            os.close(end)
        self._rest, self._count, self._session = b"", 0, ""
        self.events: list[dict[str, Any]] = []

    def connect(self) -> None:
        """Open a tab without network access."""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        tab = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = tab["sessionId"]
        for domain in ("Runtime", "Log", "Page", "Network"):
            self.ask(f"{domain}.enable")
        none = {"latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}
        self.ask("Network.emulateNetworkConditions", offline=True, **none)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a command and wait for the reply; events in between are recorded."""
        self._count += 1
        order = {"id": self._count, "method": method, "params": params}
        if self._session:
            order["sessionId"] = self._session
        os.write(self._out, json.dumps(order).encode() + b"\0")
        while (answer := self._message()).get("id") != self._count:
            self.events.append(answer)
        assert "error" not in answer, (method, answer)
        return answer["result"]

    def _message(self) -> dict[str, Any]:
        end = time.monotonic() + TIMEOUT
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._in], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self._in, 1 << 20) if ready else b""
            assert more, "the browser does not answer"
            self._rest += more
        text, _, self._rest = self._rest.partition(b"\0")
        return json.loads(text)

    def see(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, expression: str) -> None:
        """Until a piece of JavaScript is true in the page."""
        end = time.monotonic() + TIMEOUT
        while not self.see(expression):
            assert time.monotonic() < end, f"never true: {expression}"
            time.sleep(0.02)  # leaves the core to the browser

    def open(self, path: Path, width: int = 1280, height: int = 900, touch: bool = False) -> None:
        """Show a page in a window of this size."""
        self.events.clear()
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
            mobile=touch,
        )  # fmt: skip
        self.ask("Emulation.setTouchEmulationEnabled", enabled=touch)
        self.ask("Page.navigate", url=path.as_uri())
        self.wait(f"document.readyState == 'complete' && location.href == '{path.as_uri()}'")

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Move or press the mouse."""
        self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def key(self, name: str) -> None:
        """Press and release a key."""
        for kind in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def complaints(self) -> list[dict[str, Any]]:
        """Errors in the page, and every other address that it requested."""
        self.see("1")  # events that came before are read
        wrong = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")
        return [event for event in self.events if event["method"] in wrong or _fetches(event)]

    def close(self) -> None:
        """Close the browser, which exits when its pipe is closed."""
        os.close(self._out)
        try:
            self.process.wait(TIMEOUT)
        finally:
            self.process.kill()
            self.process.wait()
            os.close(self._in)


def _fetches(event: dict[str, Any]) -> bool:
    """Whether the page asks for something that is not in its file."""
    sent = event["method"] == "Network.requestWillBeSent"
    return sent and not event["params"]["request"]["url"].startswith(("file:", "data:", "about:"))
