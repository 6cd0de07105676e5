# SPDX-License-Identifier: Apache-2.0
"""A real browser for the tests, driven by the W3C WebDriver protocol through the distribution's own driver.

A dozen calls over HTTP are all that is needed. Selenium would bring eight packages for them and a program that fetches
browsers by itself.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx

_ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
_PATIENCE_SECONDS = 30.0
Found = TypeVar("Found")


class Missing(Exception):
    """There is no browser here, or no driver of one; the text says which."""


def programs() -> tuple[str, str]:
    """(browser, driver). Raises Missing."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if browser is None or driver is None:
        raise Missing("no Chromium with its driver is installed (Debian: apt-get install chromium chromium-driver)")
    return browser, driver


class Browser:
    """One window of a browser, and those that it opens."""

    def __init__(self, http: httpx.Client, session: str) -> None:
        self._http = http
        self._session = f"/session/{session}"

    def _ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        answer = self._http.request(method, f"{self._session}{path}", json=body)
        value = answer.json()["value"]
        assert answer.status_code == 200, value
        return value

    def open(self, url: str) -> None:
        """Go there."""
        self._ask("POST", "/url", {"url": url})

    def reload(self) -> None:
        """The same page again."""
        self._ask("POST", "/refresh", {})

    @property
    def url(self) -> str:
        """Where it is."""
        return str(self._ask("GET", "/url"))

    def run(self, script: str, *arguments: Any) -> Any:
        """What a script of the test returns in the page."""
        return self._ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, css: str, text: str | None = None) -> str:
        """The first element that is shown, where it must have this text in it; waits for it."""

        def shown() -> str | None:
            for found in self._ask("POST", "/elements", {"using": "css selector", "value": css}):
                id = str(found[_ELEMENT])
                # An element may be gone again by the time it is asked about.
                answer = self._http.get(f"{self._session}/element/{id}/displayed")
                if answer.json()["value"] is True and (text is None or text in self.text(id)):
                    return id
            return None

        return self.wait(shown, f"{css} {text or ''} is not shown")

    def text(self, id: str) -> str:
        """What an element says."""
        answer = self._http.get(f"{self._session}/element/{id}/text").json()["value"]
        return answer if isinstance(answer, str) else ""

    def type(self, css: str, text: str) -> None:
        """Into a field."""
        self._ask("POST", f"/element/{self.find(css)}/value", {"text": text})

    def click(self, css: str, text: str | None = None) -> None:
        """On what is found so."""
        self._ask("POST", f"/element/{self.find(css, text)}/click", {})

    def wait(self, look: Callable[[], Found | None], otherwise: str) -> Found:
        """What `look` finds in the end."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            found = look()
            if found is not None:
                return found
            assert time.monotonic() < deadline, f"{otherwise} at {self.url}: {self.console()}"
            time.sleep(0.1)

    def windows(self) -> list[str]:
        """All that are open."""
        return list(self._ask("GET", "/window/handles"))

    def to_window(self, handle: str) -> None:
        """Look at this one."""
        self._ask("POST", "/window", {"handle": handle})

    def console(self) -> list[str]:
        """What the page complained about since it was last asked; what a Content-Security-Policy stopped is in it."""
        return [each["message"] for each in self._ask("POST", "/se/log", {"type": "browser"})]

    def resize(self, width: int, height: int) -> None:
        """The window."""
        self._ask("POST", "/window/rect", {"width": width, "height": height})

    def dark(self, dark: bool) -> None:
        """What people set in their system."""
        feature = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        command = {"cmd": "Emulation.setEmulatedMedia", "params": {"features": [feature]}}
        self._ask("POST", "/goog/cdp/execute", command)

    def picture(self, path: Path) -> None:
        """What is to be seen, as PNG."""
        path.write_bytes(base64.b64decode(self._ask("GET", "/screenshot")))


@contextmanager
def browsing(folder: Path) -> Iterator[Browser]:
    """A browser without a screen, as nobody who was ever here; its files are in `folder`. Raises Missing."""
    browser, driver = programs()
    log = folder / "driver.log"
    with log.open("wb") as written:
        process = subprocess.Popen([driver, "--port=0"], stdout=written, stderr=subprocess.STDOUT, cwd=folder)
    try:
        base = f"http://127.0.0.1:{_port(process, log)}"
        options = {
            "binary": browser,
            # The sandbox wants privileges that containers have not; the pages are our own.
            "args": [
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--no-proxy-server",
                f"--user-data-dir={folder}/me",
            ],
        }
        wanted = {"browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        with httpx.Client(base_url=base, timeout=90, trust_env=False) as http:
            made = http.post("/session", json={"capabilities": {"alwaysMatch": wanted}}).json()["value"]
            assert "sessionId" in made, made
            try:
                yield Browser(http, made["sessionId"])
            finally:
                http.delete(f"/session/{made['sessionId']}")
    finally:
        process.terminate()
        process.wait(timeout=60)


def _port(process: subprocess.Popen[bytes], log: Path) -> int:
    """Which port the driver chose, by what it says."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        _, told, rest = log.read_text().partition("started successfully on port ")
        if told and (digits := rest.split(".")[0]).isdigit():
            return int(digits)
        assert process.poll() is None and time.monotonic() < deadline, log.read_text()
        time.sleep(0.1)
