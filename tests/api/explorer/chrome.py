"""A headless Chromium, controlled through its DevTools pipe, without further dependencies."""

import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any, Self

import pytest

AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8")
"""An expression whose value is the list of what is wrong with a page."""

SILENCE_S = 120
"""A browser that says nothing for so long does not come back."""

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Chrome:
    """One tab; ``problems`` are console errors and requests to other origins."""

    def __init__(self, profile: Path, origin: str) -> None:
        """Start the browser, or skip without one; ``origin`` is the only allowed one."""
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:
            pytest.skip("no Chromium on this machine")
        self.origin = origin
        self.problems: list[str] = []
        self.loads = 0
        self._number = 0
        self._session: str | None = None
        from_us, self._to = os.pipe()
        self._from, to_us = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"]
        flags.append("--disable-features=BackForwardCache")  # going back loads a page, too
        command = [program, *flags, f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        line = 'exec "$@" 3<&%d 4>&%d' % (from_us, to_us)  # noqa: UP031 - braces are the shell's
        self._process = subprocess.Popen(
            ["bash", "-c", line, "bash", *command, "about:blank"],
            pass_fds=(from_us, to_us),
            stderr=subprocess.DEVNULL,
        )
        os.close(from_us)
        os.close(to_us)
        self._reader = os.fdopen(self._from, "rb")
        self._buffer = b""

    def __enter__(self) -> Self:
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._to)
        self._process.terminate()
        self._process.wait(SILENCE_S)
        self._reader.close()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._read()
            if found.get("id") == self._number:
                assert "error" not in found, found
                result: dict[str, Any] = found["result"]
                return result

    def open(self, path: str, *, width: int = 1280, scheme: str = "light") -> None:
        """Open a page and wait until it is loaded."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=844,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.call("Emulation.setEmulatedMedia", features=[feature])
        seen = self.loads
        self.call("Page.navigate", url=self.origin + path)
        self.wait_load(seen)

    def wait_load(self, seen: int) -> None:
        """Wait until a page is loaded after the first ``seen`` ones."""
        while self.loads <= seen:
            self._read()

    def run(self, expression: str) -> Any:
        """Return the value of an expression in the page, awaited if it is a promise."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release a key."""
        text = {"text": key} if len(key) == 1 else {}
        code = {"Tab": 9, "Enter": 13}.get(key, ord(key[0]))
        for kind in ("keyDown", "keyUp"):
            extra = text if kind == "keyDown" else {}
            self.call(
                "Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **extra
            )

    def picture(self) -> bytes:
        """Return a screenshot of the tab as PNG, in base64."""
        data: str = self.call("Page.captureScreenshot")["data"]
        return data.encode()

    def _read(self) -> dict[str, Any]:
        """Return the next message, and record the problems in it."""
        while b"\0" not in self._buffer:
            assert select.select([self._from], [], [], SILENCE_S)[0], "the browser says nothing"
            piece = os.read(self._from, 1 << 16)
            assert piece, "the browser has ended"
            self._buffer += piece
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        if "method" in message:
            self._judge(message["method"], message["params"])
        return message

    def _judge(self, method: str, params: dict[str, Any]) -> None:
        if method == "Page.loadEventFired":
            self.loads += 1
        elif method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith((self.origin, "data:", "about:")):
                self.problems.append(f"request to {url}")
        elif method == "Log.entryAdded" and params["entry"]["level"] in {"error", "warning"}:
            self.problems.append(f"log: {params['entry']['text']} {params['entry'].get('url')}")
        elif method == "Runtime.exceptionThrown":
            self.problems.append(f"exception: {params['exceptionDetails']['text']}")
        elif method == "Runtime.consoleAPICalled" and params["type"] in {"error", "warning"}:
            self.problems.append(f"console: {params['args']}")
