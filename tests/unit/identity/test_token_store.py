# SPDX-License-Identifier: Apache-2.0
"""Storage of login tokens: in a keyring, and in a file if the keyring fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.identity.oauth_client import Tokens
from gateway.identity.token_storage import FileTokenStore, KeyringError, StoredLogin

ISSUER = "https://id.example/realm"
TOKENS = Tokens("secret", 1.0, "again")


class Locked(Exception):
    """An error of a backend; some backends repeat their input in it."""


class Keyring:
    """A backend that raises while it is `locked` and accepts at most `longest` characters."""

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], str] = {}
        self.locked = False
        self.longest = 100_000

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked or len(password) > self.longest:
            raise Locked(f"cannot set {password}")
        self.held[service, username] = password

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise Locked("cannot get")
        return self.held.get((service, username))

    def delete_password(self, service: str, username: str) -> None:
        if self.locked:
            raise Locked("cannot delete")
        del self.held[service, username]


class Forgetful(Keyring):
    """A backend like `keyring.backends.null`."""

    def set_password(self, service: str, username: str, password: str) -> None:
        """Store nothing."""


class Cutting(Keyring):
    """A backend that truncates passwords."""

    def set_password(self, service: str, username: str, password: str) -> None:
        super().set_password(service, username, password[:20])


class LoginFiles:
    """A private directory, and the notices that were printed."""

    def __init__(self, path: Path) -> None:
        self.path = path / "state" / "logins"
        self.warnings: list[str] = []

    def login(self, keyring: Keyring | None, issuer: str = ISSUER, client_id: str = "cli") -> StoredLogin:
        return StoredLogin(issuer, client_id, self.path, keyring=keyring, warn=self.warnings.append)

    @property
    def files(self) -> list[Path]:
        return [each for each in self.path.glob("*")] if self.path.exists() else []


@pytest.fixture
def files(tmp_path: Path) -> LoginFiles:
    return LoginFiles(tmp_path)


@pytest.mark.parametrize("keyring", [None, Keyring()], ids=["file", "keyring"])
def test_tokens_are_stored_until_logout(files: LoginFiles, keyring: Keyring | None) -> None:
    login = files.login(keyring)
    assert login.stored() is None
    assert login.forget() is False
    login.store(Tokens("older", 0.0))
    login.store(TOKENS)
    assert login.stored() == TOKENS
    assert bool(files.files) is (keyring is None), "tokens must be stored in one place only"
    assert login.forget() is True
    assert (login.stored(), files.files, files.warnings) == (None, [], [])


def test_a_token_file_is_created_with_owner_permissions(tmp_path: Path) -> None:
    path = tmp_path / "logins" / "x"
    FileTokenStore(path).store(Tokens("secret", 1.0))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [each.name for each in path.parent.iterdir()] == ["x"]
    path.write_text(json.dumps({"no": "tokens"}))
    assert FileTokenStore(path).stored() is None


@pytest.mark.parametrize("keyring", [None, Keyring()], ids=["file", "keyring"])
def test_tokens_of_two_providers_and_two_clients_are_separate(files: LoginFiles, keyring: Keyring | None) -> None:
    logins = [
        files.login(keyring, issuer, client)
        for issuer, client in [(ISSUER, "cli"), (ISSUER, "other"), ("https://other.example", "cli")]
    ]
    for number, login in enumerate(logins):
        login.store(Tokens(str(number), 1.0))
    found = [login.stored() for login in logins]
    assert [each and each.access_token for each in found] == ["0", "1", "2"]


def test_tokens_that_the_keyring_refuses_go_to_a_file_with_a_notice(files: LoginFiles) -> None:
    keyring = Keyring()
    keyring.longest = 1_280
    long = Tokens("x" * 1_300, 1.0, "again")
    login = files.login(keyring)
    login.store(TOKENS)
    login.store(long)
    assert login.stored() == long
    assert keyring.held == {}, "the older entry must be deleted from the keyring"
    assert [each.stat().st_mode & 0o777 for each in files.files] == [0o600]
    assert len(files.warnings) == 1 and "in a file" in files.warnings[0] and "Locked" in files.warnings[0]
    assert "xxx" not in files.warnings[0]


@pytest.mark.parametrize("keyring", [Forgetful(), Cutting()], ids=["empty", "truncated"])
def test_a_keyring_that_does_not_return_stored_tokens_is_not_used(files: LoginFiles, keyring: Keyring) -> None:
    login = files.login(keyring)
    login.store(TOKENS)
    assert login.stored() == TOKENS
    assert len(files.files) == 1 and "not return" in files.warnings[0]
    assert keyring.held == {}


def test_a_locked_keyring_is_bypassed_and_its_stale_tokens_are_never_used(
    files: LoginFiles,
) -> None:
    keyring = Keyring()
    login = files.login(keyring)
    login.store(Tokens("older", 0.0))
    keyring.locked = True
    login.store(TOKENS)
    assert login.stored() == TOKENS
    keyring.locked = False
    assert login.stored() == TOKENS, "the latest tokens must be returned"
    login.store(Tokens("newer", 2.0))
    assert files.files == [], "the file must be removed when the keyring works again"
    assert login.stored() == Tokens("newer", 2.0)


def test_an_unreadable_keyring_is_an_error_and_not_a_missing_login(files: LoginFiles) -> None:
    keyring = Keyring()
    login = files.login(keyring)
    login.store(TOKENS)
    keyring.locked = True
    with pytest.raises(KeyringError, match="Locked"):
        login.stored()
    with pytest.raises(KeyringError, match="Locked"):
        login.forget()
    keyring.locked = False
    assert login.stored() == TOKENS


def test_logout_deletes_keyring_entry_and_file(files: LoginFiles) -> None:
    keyring = Keyring()
    files.login(keyring).store(TOKENS)
    files.login(None).store(TOKENS)
    assert files.login(keyring).forget() is True
    assert (files.files, keyring.held) == ([], {})
