# SPDX-License-Identifier: Apache-2.0
"""`lakegate login` against the embedded provider: code at the terminal, approval on the page, use and logout.

`tests/unit/identity/test_device_login.py` tests faulty providers.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.cli.exit_codes import ExitCode
from tests.support.stack.signing_in import PUBLIC_CLIENT, browser, form_with
from tests.support.stack.world import World

pytestmark = pytest.mark.servers

_SECONDS = 60.0


class Terminal:
    """The command line of a user with the home directory `home`, without a keyring."""

    def __init__(self, world: World, home: Path) -> None:
        self._environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "XDG_STATE_HOME": str(home / "state"),
            "PYTHONUNBUFFERED": "1",
            "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
            "LAKEGATE__OPENID_PROVIDER_URI": world.ready.issuer,
            "LAKEGATE__UI__OPENID_CLIENT_ID": PUBLIC_CLIENT,
        }

    def start(self, verb: str) -> subprocess.Popen[str]:
        """Start a command."""
        return subprocess.Popen(
            [sys.executable, "-m", "gateway.cli", verb],
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, verb: str) -> tuple[int, str, str]:
        """Return (exit code, output, errors) of a command."""
        process = self.start(verb)
        out, err = process.communicate(timeout=_SECONDS)
        return process.returncode, out.strip(), err.strip()


@pytest.fixture
def terminal(world: World, tmp_path: Path) -> Iterator[Terminal]:
    yield Terminal(world, tmp_path)


def _shown(process: subprocess.Popen[str]) -> tuple[str, str]:
    """Return (page, code) that the terminal shows."""
    assert process.stdout is not None
    deadline = time.monotonic() + _SECONDS
    while time.monotonic() < deadline:
        if not select.select([process.stdout], [], [], 1.0)[0]:
            assert process.poll() is None, process.communicate()
            continue
        found = re.fullmatch(r"Open (\S+) and enter the code (\S+)\n", process.stdout.readline())
        if found:
            return found[1], found[2]
    raise AssertionError("the login printed no code")


def _answer(page: str, code: str, action: str, name: str = "", password: str = "") -> httpx.Response:
    """Submit the user's input on the provider's page."""
    with browser() as http:
        form = form_with(http.get(page), "user_code")
        fields = {"user_code": code, "username": name, "password": password, "action": action}
        return http.post(form.action, data=form.values | fields)


def test_entered_code_logs_the_terminal_in_until_logout(world: World, terminal: Terminal) -> None:
    process = terminal.start("login")
    page, code = _shown(process)
    assert page.startswith(world.ready.issuer)
    assert _answer(page, code, "authorize", "alice", world.ready.users["alice"].client_secret).status_code == 200
    out, err = process.communicate(timeout=_SECONDS)
    assert (process.returncode, err) == (0, ""), (out, err)
    assert "You are logged in" in out and not re.search(r"eyJ", out), "lakegate login must not print a token"
    status, token, _ = terminal.run("token")
    assert status == 0
    headers = {"Authorization": f"Bearer {token}"}
    whoami = httpx.get(f"{world.base}/management/v1/whoami", headers=headers, trust_env=False, timeout=60)
    assert whoami.json()["id"] == "oidc~alice", "the login must give the user of the provider"
    assert terminal.run("logout")[1] == "You are logged out."
    status, out, err = terminal.run("token")
    assert (status, out) == (ExitCode.NOT_SIGNED_IN, "") and "not logged in" in err


def test_wrong_password_gives_no_login_and_a_denial_ends_polling(world: World, terminal: Terminal) -> None:
    process = terminal.start("login")
    page, code = _shown(process)
    wrong = _answer(page, code, "authorize", "alice", "wrong")
    form_with(wrong, "user_code")  # The code has not been entered yet.
    assert process.poll() is None
    assert _answer(page, code, "deny").status_code == 200
    out, err = process.communicate(timeout=_SECONDS)
    assert process.returncode == 1 and "denied at the provider" in err, (out, err)
    assert terminal.run("token")[0] == ExitCode.NOT_SIGNED_IN


def test_service_client_can_neither_approve_nor_begin_a_device_login(world: World) -> None:
    endpoint = httpx.get(f"{world.ready.issuer}/.well-known/openid-configuration", trust_env=False, timeout=60).json()[
        "device_authorization_endpoint"
    ]
    begun = httpx.post(
        endpoint, data={"client_id": PUBLIC_CLIENT, "scope": "openid"}, trust_env=False, timeout=60
    ).json()
    password = world.ready.users["etl"].client_secret
    refused = _answer(begun["verification_uri"], begun["user_code"], "authorize", "etl", password)
    form_with(refused, "user_code")
    unproven = httpx.post(endpoint, data={"client_id": "alice", "scope": "openid"}, trust_env=False, timeout=60)
    assert unproven.status_code == 401
