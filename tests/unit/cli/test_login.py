# SPDX-License-Identifier: Apache-2.0
"""`lakegate token` and `logout` as processes, at a provider that gives a new refresh token each time and ends a login
whose old one is sent again (RFC 9700 section 4.14.2).

Logging in is in `tests/contract/test_device_login.py`, a real keyring in `test_login_keyring.py`; what a keyring can do
wrong in `tests/unit/identity/test_kept_tokens.py`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Literal

import pytest
from click.testing import CliRunner

from gateway.cli import login
from gateway.identity.file_lock import turn
from gateway.identity.kept_tokens import KeptLogin
from gateway.identity.oauth_client import Tokens
from tests.unit.cli.at_a_terminal import Rotating, Terminal, rotating_provider

ENDED = Tokens("access-0", 0.0, "refresh-0")


@pytest.fixture
def provider() -> Iterator[Rotating]:
    with rotating_provider() as running:
        yield running


@pytest.mark.parametrize("keyring", ["broken", "shared"])
def test_commands_at_the_same_time_renew_a_login_once_and_none_loses_it(
    provider: Rotating, tmp_path: Path, keyring: Literal["broken", "shared"]
) -> None:
    terminal = Terminal(provider, tmp_path, keyring=keyring)
    terminal.keep(ENDED)
    ended = terminal.run("token", "token", "token")
    assert [(status, out) for status, out, _ in ended] == [(0, "access-1")] * 3, ended
    assert provider.good == "refresh-1", "no token was sent twice"
    assert [(status, out) for status, out, _ in terminal.run("token")] == [(0, "access-1")]
    assert provider.renewed == 1
    kept = sorted(each.suffix for each in terminal.logins.iterdir())
    assert kept == ([".lock"] if keyring == "shared" else ["", ".lock"])
    if keyring == "shared":
        assert "refresh-1" in (tmp_path / "keyring.json").read_text()


def test_who_logs_out_while_the_login_is_renewed_is_logged_out(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(ENDED)
    provider.pause = 3.0
    renewing = terminal.start("token")
    assert provider.asked.wait(60)
    process = Path(f"/proc/{renewing.pid}")
    for told in ("cmdline", "environ"):
        with suppress(OSError):  # it may have ended
            assert b"refresh-" not in (process / told).read_bytes()
    assert terminal.run("logout")[0][:2] == (0, "You are logged out.")
    assert renewing.communicate(timeout=200)[0].strip() == "access-1"
    ((status, out, err),) = terminal.run("token")
    assert (status, out) == (1, "") and "not logged in" in err


def test_a_token_that_is_good_is_printed_whatever_another_command_does(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(Tokens("access-0", time.time() + 300, "refresh-0"))
    with turn(terminal.lock, seconds=1):
        assert terminal.run("token")[0][:2] == (0, "access-0")
    assert provider.renewed == 0


def test_a_command_that_does_not_end_keeps_others_from_renewing_and_they_say_so(
    provider: Rotating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(ENDED)
    monkeypatch.setattr(login, "_WAIT", 0.3)
    for verb in (login.token, login.logout):
        with turn(terminal.lock, seconds=1):
            ended = CliRunner().invoke(verb, env=terminal.environment)
        assert (ended.exit_code, ended.stdout) == (1, "")
        assert "another lakegate command has used this login" in ended.stderr
    assert provider.renewed == 0
    assert KeptLogin(provider.url, "cli", terminal.logins, keyring=None, tell=print).kept() == ENDED


def test_a_login_that_can_be_kept_nowhere_is_told_and_no_traceback(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    (tmp_path / "state").write_text("no directory")
    for verb in ("token", "logout"):
        ((status, out, err),) = terminal.run(verb)
        assert (status, out) == (1, "")
        assert "the file with your login cannot be read or written" in err and "Traceback" not in err


def test_a_keyring_that_fails_at_being_found_is_passed_over(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(Tokens("access-0", time.time() + 300, "refresh-0"))
    ((status, out, err),) = terminal.run("token")
    assert (status, out) == (0, "access-0")
    assert err == "the system's keyring cannot be used (OSError); a file is used instead"
