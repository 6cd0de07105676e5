# SPDX-License-Identifier: Apache-2.0
"""`lakegate token` and `lakegate logout` as processes, with a provider that rotates refresh tokens.

`tests/contract/test_device_login.py` tests `lakegate login`, `test_login_keyring.py` a real keyring, and
`tests/unit/identity/test_token_store.py` failures of keyrings.
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
from gateway.cli.exit_codes import ExitCode
from gateway.identity.oauth_client import Tokens
from gateway.identity.token_storage import StoredLogin, file_lock
from tests.support.at_a_terminal import Rotating, Terminal, rotating_provider

ENDED = Tokens("access-0", 0.0, "refresh-0")


@pytest.fixture
def provider() -> Iterator[Rotating]:
    with rotating_provider() as running:
        yield running


@pytest.mark.parametrize("keyring", ["broken", "shared"])
def test_concurrent_commands_renew_a_login_once(
    provider: Rotating, tmp_path: Path, keyring: Literal["broken", "shared"]
) -> None:
    terminal = Terminal(provider, tmp_path, keyring=keyring)
    terminal.keep(ENDED)
    ended = terminal.run("token", "token", "token")
    assert [(status, out) for status, out, _ in ended] == [(0, "access-1")] * 3, ended
    assert provider.good == "refresh-1", "no refresh token may be sent twice"
    assert [(status, out) for status, out, _ in terminal.run("token")] == [(0, "access-1")]
    assert provider.renewed == 1
    kept = sorted(each.suffix for each in terminal.logins.iterdir())
    assert kept == ([".lock"] if keyring == "shared" else ["", ".lock"])
    if keyring == "shared":
        assert "refresh-1" in (tmp_path / "keyring.json").read_text()


def test_logout_during_a_renewal_ends_the_login(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(ENDED)
    provider.pause = 3.0
    renewing = terminal.start("token")
    assert provider.calls.wait(60)
    process = Path(f"/proc/{renewing.pid}")
    for file in ("cmdline", "environ"):
        with suppress(OSError):  # the process may have ended
            assert b"refresh-" not in (process / file).read_bytes()
    assert terminal.run("logout")[0][:2] == (0, "You are logged out.")
    assert renewing.communicate(timeout=200)[0].strip() == "access-1"
    ((status, out, err),) = terminal.run("token")
    assert (status, out) == (ExitCode.NOT_SIGNED_IN, "") and "not logged in" in err


def test_a_valid_token_is_printed_while_another_command_holds_the_lock(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(Tokens("access-0", time.time() + 300, "refresh-0"))
    with file_lock(terminal.lock, seconds=1):
        assert terminal.run("token")[0][:2] == (0, "access-0")
    assert provider.renewed == 0


def test_commands_fail_with_a_reason_while_another_one_holds_the_lock(
    provider: Rotating, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(ENDED)
    monkeypatch.setattr(login, "_WAIT", 0.3)
    for verb in (login.token, login.logout):
        with file_lock(terminal.lock, seconds=1):
            ended = CliRunner().invoke(verb, env=terminal.environment)
        assert (ended.exit_code, ended.stdout) == (1, "")
        assert "another lakegate command has used this login" in ended.stderr
    assert provider.renewed == 0
    assert StoredLogin(provider.url, "cli", terminal.logins, keyring=None, warn=print).stored() == ENDED


def test_an_unusable_login_directory_is_an_error_without_traceback(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    (tmp_path / "state").write_text("no directory")
    for verb in ("token", "logout"):
        ((status, out, err),) = terminal.run(verb)
        assert (status, out) == (1, "")
        assert "the file with your login cannot be read or written" in err and "Traceback" not in err


def test_a_keyring_that_fails_to_load_is_skipped_with_a_notice(provider: Rotating, tmp_path: Path) -> None:
    terminal = Terminal(provider, tmp_path, keyring="broken")
    terminal.keep(Tokens("access-0", time.time() + 300, "refresh-0"))
    ((status, out, err),) = terminal.run("token")
    assert (status, out) == (0, "access-0")
    assert err == "the system's keyring cannot be used (OSError); a file is used instead"
