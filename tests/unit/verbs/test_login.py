# SPDX-License-Identifier: Apache-2.0
"""`lakegate token` and `logout` as processes, at a provider that gives a new refresh token each time and ends a login
whose old one is sent again (RFC 9700 section 4.14.2).

Logging in is in `tests/contract/test_device_login.py`; what a keyring can do wrong in
`tests/unit/identity/test_kept_tokens.py`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from click.testing import CliRunner

from gateway.identity.device import Tokens
from gateway.identity.kept_tokens import KeptLogin
from gateway.identity.turns import turn
from gateway.verbs import login

_SECONDS = 60.0


class Rotating:
    """A provider with one login. `good` is the refresh token that was not used yet, None when the login was ended."""

    def __init__(self) -> None:
        self.url = ""
        self.good: str | None = "refresh-0"
        self.renewed = 0
        self.asked = threading.Event()
        self.pause = 0.3
        self._lock = threading.Lock()

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """(status, body) of the token endpoint."""
        self.asked.set()
        with self._lock:
            if form.get("grant_type") != "refresh_token" or form.get("refresh_token") != self.good:
                self.good = None
                status, body = 400, {"error": "invalid_grant"}
            else:
                self.renewed += 1
                self.good = f"refresh-{self.renewed}"
                status = 200
                body = {
                    "access_token": f"access-{self.renewed}",
                    "token_type": "Bearer",
                    "expires_in": 300,
                    "refresh_token": self.good,
                }
        # Long enough for the other process to have read what is kept now.
        time.sleep(self.pause)
        return status, body


@pytest.fixture
def provider() -> Iterator[Rotating]:
    rotating = Rotating()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200, {"issuer": rotating.url, "token_endpoint": f"{rotating.url}/token"})

        def do_POST(self) -> None:
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            self._answer(*rotating.token({name: values[0] for name, values in form.items()}))

        def _answer(self, status: int, body: dict[str, Any]) -> None:
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    rotating.url = f"http://127.0.0.1:{server.server_port}"
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield rotating
    server.shutdown()
    server.server_close()


#: A keyring in a file, for processes to share; `keyring` takes it by its name.
_BACKEND = """
import json, os
from pathlib import Path
from keyring.backend import KeyringBackend

class Keyring(KeyringBackend):
    priority = 5
    path = Path(os.environ["SHARED_KEYRING"])
    def _held(self):
        return json.loads(self.path.read_text()) if self.path.exists() else {}
    def _write(self, held):
        part = self.path.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(held))
        part.replace(self.path)
    def set_password(self, service, username, password):
        self._write({**self._held(), service + username: password})
    def get_password(self, service, username):
        return self._held().get(service + username)
    def delete_password(self, service, username):
        held = self._held()
        del held[service + username]
        self._write(held)
"""

_BROKEN = """
class Keyring:
    @property
    def priority(self):
        raise OSError
"""

#: As much of the package `keyring` as is used, where it is not installed: it is an optional one.
_PACKAGE = """
import importlib, os

def get_keyring():
    module, _, name = os.environ["PYTHON_KEYRING_BACKEND"].rpartition(".")
    return getattr(importlib.import_module(module), name)()
"""


class Terminal:
    """The verbs, as somebody at home in `home`, with a keyring that processes share or without one."""

    def __init__(self, provider: Rotating, home: Path, *, keyring: bool) -> None:
        self.issuer = provider.url
        self.home = home
        packages = home / "packages"
        (packages / "keyring").mkdir(parents=True)
        (packages / "keyring" / "__init__.py").write_text(_PACKAGE)
        (packages / "keyring" / "backend.py").write_text("class KeyringBackend: ...\n")
        (packages / "shared_keyring.py").write_text(_BACKEND)
        (packages / "broken_keyring.py").write_text(_BROKEN)
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PYTHONPATH": os.pathsep.join([str(packages), *(each for each in sys.path if each)]),
            "PYTHON_KEYRING_BACKEND": f"{'shared' if keyring else 'broken'}_keyring.Keyring",
            "SHARED_KEYRING": str(home / "keyring.json"),
            "LAKEGATE__OPENID_PROVIDER_URI": provider.url,
            "LAKEGATE__UI__OPENID_CLIENT_ID": "cli",
        }
        self.logins = home / "state" / "lakegate" / "logins"

    def keep(self, tokens: Tokens) -> None:
        """As if by a login, in the file."""
        KeptLogin(self.issuer, "cli", self.logins, keyring=None, tell=print).keep(tokens)

    @property
    def lock(self) -> Path:
        """The lock of the only login."""
        (file,) = (each for each in self.logins.iterdir() if not each.suffix)
        return file.with_suffix(".lock")

    def start(self, verb: str) -> subprocess.Popen[str]:
        """The verb, running."""
        return subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", verb],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *verbs: str) -> list[tuple[int | None, str, str]]:
        """(exit code, output, errors) of the verbs, all at the same time."""
        processes = [self.start(verb) for verb in verbs]
        told = [process.communicate(timeout=_SECONDS) for process in processes]
        return [(p.returncode, out.strip(), err.strip()) for p, (out, err) in zip(processes, told, strict=True)]


ENDED = Tokens("access-0", 0.0, "refresh-0")


@pytest.mark.parametrize("keyring", [False, True], ids=["file", "keyring"])
def test_commands_at_the_same_time_renew_a_login_once_and_none_loses_it(
    provider: Rotating, tmp_path: Path, keyring: bool
) -> None:
    terminal = Terminal(provider, tmp_path, keyring=keyring)
    terminal.keep(ENDED)
    ended = terminal.run("token", "token", "token")
    assert [(status, out) for status, out, _ in ended] == [(0, "access-1")] * 3, ended
    assert provider.good == "refresh-1", "no token was sent twice"
    assert [(status, out) for status, out, _ in terminal.run("token")] == [(0, "access-1")]
    assert provider.renewed == 1
    kept = sorted(each.suffix for each in terminal.logins.iterdir())
    assert kept == ([".lock"] if keyring else ["", ".lock"])
    if keyring:
        assert "refresh-1" in (tmp_path / "keyring.json").read_text()


def test_who_logs_out_while_the_login_is_renewed_is_logged_out(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring=False)
    terminal.keep(ENDED)
    provider.pause = 3.0
    renewing = terminal.start("token")
    assert provider.asked.wait(_SECONDS)
    assert terminal.run("logout")[0][:2] == (0, "You are logged out.")
    assert renewing.communicate(timeout=_SECONDS)[0].strip() == "access-1"
    ((status, out, err),) = terminal.run("token")
    assert (status, out) == (1, "") and "not logged in" in err


def test_a_token_that_is_good_is_printed_whatever_another_command_does(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring=False)
    terminal.keep(Tokens("access-0", time.time() + 300, "refresh-0"))
    with turn(terminal.lock, seconds=1):
        assert terminal.run("token")[0][:2] == (0, "access-0")
    assert provider.renewed == 0


def test_a_command_that_does_not_end_keeps_others_from_renewing_and_they_say_so(
    provider: Rotating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(provider, tmp_path, keyring=False)
    terminal.keep(ENDED)
    monkeypatch.setattr(login, "_WAIT", 0.3)
    for verb in (login.token, login.logout):
        with turn(terminal.lock, seconds=1):
            ended = CliRunner().invoke(verb, env=terminal.environment)
        assert (ended.exit_code, ended.stdout) == (1, "")
        assert "another lakegate command has been at this login" in ended.stderr
    assert provider.renewed == 0
    assert KeptLogin(provider.url, "cli", terminal.logins, keyring=None, tell=print).kept() == ENDED


def test_a_login_that_can_be_kept_nowhere_is_told_and_no_traceback(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring=False)
    (tmp_path / "state").write_text("no directory")
    for verb in ("token", "logout"):
        ((status, out, err),) = terminal.run(verb)
        assert (status, out) == (1, "")
        assert "your login can be neither read nor kept" in err and "Traceback" not in err


def test_a_keyring_that_fails_at_being_found_is_passed_over(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring=False)
    terminal.keep(Tokens("access-0", time.time() + 300, "refresh-0"))
    ((status, out, err),) = terminal.run("token")
    assert (status, out) == (0, "access-0")
    assert err == "the system's keyring cannot be used (OSError); it is passed over"
