# SPDX-License-Identifier: Apache-2.0
"""The login commands as processes, and a provider that rotates refresh tokens.

The provider ends a login when a used refresh token is sent again (RFC 9700 section 4.14.2).
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs

from gateway.identity.oauth_client import DEVICE, Tokens
from gateway.identity.token_storage import StoredLogin
from tests.support.servers.loopback import Reply, Request, as_json, serving

_SECONDS = 200.0


class Rotating:
    """A provider with one login. `good` is the unused refresh token, or None after the login was ended.

    A device login is approved at once. Access tokens expire after `life` seconds. Each token ends with `filling`.
    """

    def __init__(self) -> None:
        self.url = ""
        self.good: str | None = "refresh-0"
        self.renewed = 0
        self.calls = threading.Event()
        self.pause = 0.3
        self.life = 300
        self.filling = ""
        self._lock = threading.Lock()

    def token(self, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """Return (status, body) of the token endpoint."""
        self.calls.set()
        body: dict[str, Any]
        with self._lock:
            spent = form.get("grant_type") == "refresh_token" and form.get("refresh_token") != self.good
            if spent or form.get("grant_type") not in ("refresh_token", DEVICE):
                self.good = None
                status, body = 400, {"error": "invalid_grant"}
            else:
                self.renewed += 1
                self.good = f"refresh-{self.renewed}{self.filling}"
                status = 200
                body = {
                    "access_token": f"access-{self.renewed}{self.filling}",
                    "token_type": "Bearer",
                    "expires_in": self.life,
                    "refresh_token": self.good,
                }
        # Another process reads the stored tokens during this pause.
        time.sleep(self.pause)
        return status, body


@contextmanager
def rotating_provider() -> Iterator[Rotating]:
    """Yield a provider that serves until the end of the block."""
    rotating = Rotating()
    code = {"device_code": "device", "user_code": "WDJB-MJHT", "expires_in": 60, "interval": 1}

    def answer(request: Request) -> Reply:
        if request.method == "GET":
            endpoints = {"token_endpoint": "/token", "device_authorization_endpoint": "/device"}
            return as_json(200, {"issuer": service.url, **{name: service.url + at for name, at in endpoints.items()}})
        if request.path == "/device":
            return as_json(200, {**code, "verification_uri": f"{service.url}/enter"})
        form = parse_qs(request.body.decode())
        return as_json(*rotating.token({name: values[0] for name, values in form.items()}))

    with serving(answer) as service:
        rotating.url = service.url
        yield rotating


#: A keyring in a file, which processes share; the package `keyring` loads it by its name.
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

#: A substitute for the optional package `keyring`, with the function that is used.
_PACKAGE = """
import importlib, os

def get_keyring():
    module, _, name = os.environ["PYTHON_KEYRING_BACKEND"].rpartition(".")
    return getattr(importlib.import_module(module), name)()
"""


class Terminal:
    """Runs commands of `lakegate` with `home` as home directory.

    `keyring` selects a keyring in a file (`shared`), one that fails (`broken`), or the one that the package finds
    (`system`). `more` is added to the environment.
    """

    def __init__(
        self, provider: Rotating, home: Path, *, keyring: Literal["shared", "broken", "system"], **more: str
    ) -> None:
        self.issuer = provider.url
        self.home = home
        self.environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PYTHONPATH": os.pathsep.join(each for each in sys.path if each),
            "LAKEGATE__OPENID_PROVIDER_URI": provider.url,
            "LAKEGATE__UI__OPENID_CLIENT_ID": "cli",
            **more,
        }
        if keyring != "system":
            self._bring(keyring)
        self.logins = home / "state" / "lakegate" / "logins"

    def _bring(self, keyring: str) -> None:
        packages = self.home / "packages"
        (packages / "keyring").mkdir(parents=True)
        (packages / "keyring" / "__init__.py").write_text(_PACKAGE)
        (packages / "keyring" / "backend.py").write_text("class KeyringBackend: ...\n")
        (packages / "shared_keyring.py").write_text(_BACKEND)
        (packages / "broken_keyring.py").write_text(_BROKEN)
        self.environment |= {
            "PYTHONPATH": f"{packages}{os.pathsep}{self.environment['PYTHONPATH']}",
            "PYTHON_KEYRING_BACKEND": f"{keyring}_keyring.Keyring",
            "SHARED_KEYRING": str(self.home / "keyring.json"),
        }

    def keep(self, tokens: Tokens) -> None:
        """Store the tokens in the file, as a login does."""
        StoredLogin(self.issuer, "cli", self.logins, keyring=None, warn=print).store(tokens)

    @property
    def lock(self) -> Path:
        """Return the path of the lock of the only login."""
        (file,) = (each for each in self.logins.iterdir() if not each.suffix)
        return file.with_suffix(".lock")

    def start(self, verb: str) -> subprocess.Popen[str]:
        """Start the command and return its process."""
        return subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", verb],
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *verbs: str) -> list[tuple[int | None, str, str]]:
        """Run the commands concurrently; return (exit code, stdout, stderr) of each."""
        processes = [self.start(verb) for verb in verbs]
        outputs = [process.communicate(timeout=_SECONDS) for process in processes]
        return [(p.returncode, out.strip(), err.strip()) for p, (out, err) in zip(processes, outputs, strict=True)]
