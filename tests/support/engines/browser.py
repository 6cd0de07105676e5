# SPDX-License-Identifier: Apache-2.0
"""A real browser for the tests, controlled through the W3C WebDriver protocol and the distribution's own driver.

The tests need a dozen HTTP calls. Selenium would add eight packages and a program that downloads browsers by itself.
"""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest

#: Marks of a module whose tests need a browser.
BROWSER_TESTS = [
    pytest.mark.e2e,
    pytest.mark.skipif(not os.environ.get("LAKEGATE_TEST_BROWSER"), reason="needs a browser: run `make test-browser`"),
]

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PATIENCE_SECONDS = 30.0
Found = TypeVar("Found")


class Missing(Exception):
    """This machine has no browser, or no driver for it; the message names what is missing."""


def programs() -> tuple[str, str]:
    """Return (path of the browser, path of its driver). Raises Missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        raise Missing("no Chromium with its driver is installed (Debian: apt-get install chromium chromium-driver)")
    return browser, driver


class Browser:
    """A browser session: one window, and the windows that its pages open."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http = http
        self._session = f"/session/{session}"

    def _send(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._http.request(method, f"{self._session}{path}", json=body)
        value = answer.json()["value"]
        assert answer.status_code == 200, value
        return value

    def open(self, url: str) -> None:
        """Navigate to a URL."""
        self._send("POST", "/url", {"url": url})

    def reload(self) -> None:
        """Reload the page."""
        self._send("POST", "/refresh", {})

    @property
    def url(self) -> str:
        """Return the URL of the current page."""
        return str(self._send("GET", "/url"))

    def run(self, script: str, *arguments: Any) -> Any:
        """Run a script of the test in the page and return its result."""
        return self._send("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def run_async(self, script: str, *arguments: Any) -> Any:
        """Run a script that calls its last argument with the result, and return that result."""
        return self._send("POST", "/execute/async", {"script": script, "args": list(arguments)})

    def find(self, css: str, text: str | None = None) -> str:
        """Wait for a displayed element that matches and contains `text`, if given; return its id."""

        def shown() -> str | None:
            for found in self._send("POST", "/elements", {"using": "css selector", "value": css}):
                id = str(found[_ELEMENT])
                # The element may have been removed from the page since it was found.
                answer = self._http.get(f"{self._session}/element/{id}/displayed")
                if answer.json()["value"] is True and (text is None or text in self.text(id)):
                    return id
            return None

        return self.wait(shown, f"{css} {text or ''} is not shown")

    def text(self, id: str) -> str:
        """Return the text of an element."""
        answer = self._http.get(f"{self._session}/element/{id}/text").json()["value"]
        return answer if isinstance(answer, str) else ""

    def type(self, css: str, text: str) -> None:
        """Type into a field."""
        self._send("POST", f"/element/{self.find(css)}/value", {"text": text})

    def click(self, css: str, text: str | None = None) -> None:
        """Click the element that `find` returns for these arguments."""
        self._send("POST", f"/element/{self.find(css, text)}/click", {})

    def wait(self, look: Callable[[], Found | None], otherwise: str) -> Found:
        """Call `look` until it returns a value, and return that value; fail with the message `otherwise` at the
        deadline.
        """
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            found = look()
            if found is not None:
                return found
            assert time.monotonic() < deadline, f"{otherwise} at {self.url}: {self.console()}"
            time.sleep(0.1)

    def windows(self) -> list[str]:
        """Return the handles of all open windows."""
        return list(self._send("GET", "/window/handles"))

    def to_window(self, handle: str) -> None:
        """Switch to another window."""
        self._send("POST", "/window", {"handle": handle})

    def console(self) -> list[str]:
        """Return the page's console messages since the last call, which include Content-Security-Policy violations."""
        return [each["message"] for each in self._send("POST", "/se/log", {"type": "browser"})]

    def resize(self, width: int, height: int) -> None:
        """Resize the window."""
        self._send("POST", "/window/rect", {"width": width, "height": height})

    def narrow(self, width: int, height: int) -> None:
        """Emulate a small screen. A window of the browser has a minimum width."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": True}
        self._send("POST", "/goog/cdp/execute", {"cmd": "Emulation.setDeviceMetricsOverride", "params": metrics})

    def dark(self, dark: bool) -> None:
        """Emulate the system's preference for a dark or light color scheme."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [feature]}}
        self._send("POST", "/goog/cdp/execute", command)

    def picture(self, path: Path) -> None:
        """Save a screenshot as PNG."""
        path.write_bytes(base64.b64decode(self._send("GET", "/screenshot")))


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """Start a headless browser with an empty profile; its files are in `folder`. Raises Missing."""
    browser, driver = programs()
    log = folder / "driver.log"
    with log.open("wb") as written:
        process = subprocess.Popen([driver, "--port=0"], stdout=written, stderr=subprocess.STDOUT, cwd=folder)
    try:
        base = f"http://127.0.0.1:{_port(process, log)}"
        options = {
            "binary": browser,
            # The browser's sandbox needs privileges that containers lack; the tests open only our own pages.
            "args": [
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-proxy-server",
                f"--user-data-dir={folder}/me",
            ],
        }
        expected = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        with httpx.Client(base_url=base, timeout=90, trust_env=False) as http:
            made = http.post("/session", json={"capabilities": {"alwaysMatch": expected}}).json()["value"]
            assert "sessionId" in made, made
            try:
                yield Browser(http, made["sessionId"])
            finally:
                http.delete(f"/session/{made['sessionId']}")
    finally:
        process.terminate()
        process.wait(timeout=60)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """Return the port that the driver chose, read from its output."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        _, port, rest = log.read_text().partition("started successfully on port ")
        if port and (digits := rest.split(".")[0]).isdigit():
            return int(digits)
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
