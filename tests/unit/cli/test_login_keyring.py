# SPDX-License-Identifier: Apache-2.0
"""`lakegate login`, `token` and `logout` with the GNOME keyring, on a separate session bus and home directory.

The tests run with `LAKEGATE_TEST_KEYRING=1`. They need `gnome-keyring-daemon`, `dbus-daemon` and the packages of
requirements/login.lock. They do not use the keyring or the files of the user who runs them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.at_a_terminal import Rotating, Terminal, rotating_provider

pytestmark = pytest.mark.skipif(
    os.environ.get("LAKEGATE_TEST_KEYRING") != "1",
    reason="needs LAKEGATE_TEST_KEYRING=1, gnome-keyring, dbus and requirements/login.lock",
)

_LOCK = """
import secretstorage
collection = secretstorage.get_default_collection(secretstorage.dbus_init())
collection.lock()
assert collection.is_locked()
"""

_HELD = """
import secretstorage
bus = secretstorage.dbus_init()
for item in secretstorage.get_default_collection(bus).get_all_items():
    print(item.get_secret().decode())
"""


@contextmanager
def _bus(environment: dict[str, str]) -> Iterator[str]:
    """Run a session bus and yield its address."""
    command = ["dbus-daemon", "--session", "--nofork", "--print-address=1"]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as bus:
        try:
            assert bus.stdout is not None
            yield bus.stdout.readline().strip()
        finally:
            bus.terminate()


@pytest.fixture
def provider() -> Iterator[Rotating]:
    with rotating_provider() as running:
        yield running


@contextmanager
def _desktop(provider: Rotating, home: Path, password: str | None) -> Iterator[Terminal]:
    """Yield a session with an unlocked keyring of that password, or without a collection if it is None.

    Prompts of the keyring are not answered.
    """
    # The path of a socket is limited to 107 bytes.
    with (
        tempfile.TemporaryDirectory(prefix="lg") as run,
        _bus({"PATH": os.environ["PATH"], "HOME": str(home), "XDG_RUNTIME_DIR": run}) as bus,
    ):
        terminal = Terminal(provider, home, keyring="system", XDG_RUNTIME_DIR=run, DBUS_SESSION_BUS_ADDRESS=bus)
        with _keyring(terminal, password):
            yield terminal


@pytest.fixture
def terminal(provider: Rotating, tmp_path: Path) -> Iterator[Terminal]:
    with _desktop(provider, tmp_path, "of the keyring") as terminal:
        yield terminal


@contextmanager
def _keyring(terminal: Terminal, password: str | None) -> Iterator[None]:
    """Run the keyring daemon; with a password it creates and unlocks a keyring."""
    command = ["gnome-keyring-daemon", "--foreground", "--components=secrets", *(["--unlock"] if password else [])]
    environment = terminal.environment | {"PYTHONPATH": ""}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, text=True
    ) as daemon:
        try:
            assert daemon.stdin is not None
            daemon.stdin.write(password or "")
            daemon.stdin.close()
            deadline = time.monotonic() + 20
            while _python(terminal, "import keyring; print(keyring.get_keyring().priority)").strip() != "5":
                assert daemon.poll() is None and time.monotonic() < deadline
                time.sleep(0.1)
            yield
        finally:
            daemon.terminate()


def _python(terminal: Terminal, program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program],
        env=terminal.environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    ).stdout


def _text_of_files(below: Path) -> bytes:
    return b"".join(each.read_bytes() for each in below.rglob("*") if each.is_file())


def test_a_login_is_stored_renewed_and_deleted_in_the_keyring_only(provider: Rotating, terminal: Terminal) -> None:
    # Tokens of real providers are about this long.
    provider.filling, provider.life = "x" * 4_000, 1
    ((status, out, err),) = terminal.run("login")
    assert (status, err) == (0, ""), err
    assert "You are logged in" in out and "access-" not in out
    assert "refresh-1" in _python(terminal, _HELD)
    provider.life = 300
    ended = terminal.run("token", "token", "token")
    assert [(status, err) for status, _, err in ended] == [(0, "")] * 3, ended
    assert {out for _, out, _ in ended} == {"access-2" + provider.filling}
    assert provider.good is not None and provider.renewed == 2
    held = _python(terminal, _HELD)
    assert "refresh-2" in held and "refresh-1" not in held
    assert [each.suffix for each in terminal.logins.iterdir()] == [".lock"]
    assert b"refresh-2" not in _text_of_files(terminal.home), "the keyring's file must be encrypted"
    assert terminal.run("logout")[0] == (0, "You are logged out.", "")
    assert "refresh-" not in _python(terminal, _HELD)
    assert terminal.run("token")[0][0] == 1


def test_a_locked_keyring_is_reported_and_a_new_login_uses_a_file(provider: Rotating, terminal: Terminal) -> None:
    assert terminal.run("login")[0][0] == 0
    _python(terminal, _LOCK)
    for verb in ("token", "logout"):
        ((status, out, err),) = terminal.run(verb)
        assert (status, out) == (1, "")
        assert "keyring cannot be used (KeyringLocked)" in err and "Traceback" not in err
    ((status, out, err),) = terminal.run("login")
    assert status == 0 and "stored in a file that only you can read" in err
    (file,) = (each for each in terminal.logins.iterdir() if not each.suffix)
    assert file.stat().st_mode & 0o777 == 0o600
    assert terminal.run("token")[0] == (0, "access-2", "")


def test_a_session_without_a_keyring_uses_a_file(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="system", DBUS_SESSION_BUS_ADDRESS=f"unix:path={tmp_path}/none")
    ((status, out, err),) = terminal.run("login")
    assert (status, err) == (0, ""), "a login without a keyring must succeed without a message"
    assert terminal.run("token")[0] == (0, "access-1", "")
    assert terminal.run("logout")[0] == (0, "You are logged out.", "")
    assert [each.suffix for each in terminal.logins.iterdir()] == [".lock"]


def test_a_keyring_without_a_collection_is_not_used(provider: Rotating, tmp_path: Path) -> None:
    with _desktop(provider, tmp_path, None) as terminal:
        ((status, _, err),) = terminal.run("login")
        assert status == 0 and "stored in a file that only you can read" in err, err
        assert terminal.run("token")[0] == (0, "access-1", "")
        # The keyring cannot be read, so the command cannot know that it holds no login.
        assert terminal.run("logout")[0][0] == 1
        assert terminal.run("token")[0][0] == 1
