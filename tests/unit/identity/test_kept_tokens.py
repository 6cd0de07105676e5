# SPDX-License-Identifier: Apache-2.0
"""Storage of login tokens: in a keyring, and in a file if the keyring fails."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gateway.identity.kept_tokens import FileKeeper, KeptLogin, KeyringRefused
from gateway.identity.oauth_client import Tokens

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


class Place:
    """A private directory, and the notices that were printed."""

    def __init__(self, path: Path) -> None:
        self.path = path / "state" / "logins"
        self.said: list[str] = []

    def login(self, keyring: Keyring | None, issuer: str = ISSUER, client_id: str = "cli") -> KeptLogin:
        return KeptLogin(issuer, client_id, self.path, keyring=keyring, tell=self.said.append)

    @property
    def files(self) -> list[Path]:
        return [each for each in self.path.glob("*")] if self.path.exists() else []


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.parametrize("keyring", [None, Keyring()], ids=["file", "keyring"])
def test_tokens_are_stored_until_logout(place: Place, keyring: Keyring | None) -> None:
    login = place.login(keyring)
    assert login.kept() is None
    assert login.forget() is False
    login.keep(Tokens("older", 0.0))
    login.keep(TOKENS)
    assert login.kept() == TOKENS
    assert bool(place.files) is (keyring is None), "in one place alone"
    assert login.forget() is True
    assert (login.kept(), place.files, place.said) == (None, [], [])


def test_a_token_file_is_created_with_owner_permissions(tmp_path: Path) -> None:
    path = tmp_path / "logins" / "x"
    FileKeeper(path).keep(Tokens("secret", 1.0))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert [each.name for each in path.parent.iterdir()] == ["x"]
    path.write_text(json.dumps({"no": "tokens"}))
    assert FileKeeper(path).kept() is None


@pytest.mark.parametrize("keyring", [None, Keyring()], ids=["file", "keyring"])
def test_tokens_of_two_providers_and_two_clients_are_separate(place: Place, keyring: Keyring | None) -> None:
    logins = [
        place.login(keyring, issuer, client)
        for issuer, client in [(ISSUER, "cli"), (ISSUER, "other"), ("https://other.example", "cli")]
    ]
    for number, login in enumerate(logins):
        login.keep(Tokens(str(number), 1.0))
    found = [login.kept() for login in logins]
    assert [each and each.access_token for each in found] == ["0", "1", "2"]


def test_tokens_that_the_keyring_refuses_go_to_a_file_with_a_notice(place: Place) -> None:
    keyring = Keyring()
    keyring.longest = 1_280
    long = Tokens("x" * 1_300, 1.0, "again")
    login = place.login(keyring)
    login.keep(TOKENS)
    login.keep(long)
    assert login.kept() == long
    assert keyring.held == {}, "what is older is not kept beside it"
    assert [each.stat().st_mode & 0o777 for each in place.files] == [0o600]
    assert len(place.said) == 1 and "in a file" in place.said[0] and "Locked" in place.said[0]
    assert "xxx" not in place.said[0]


@pytest.mark.parametrize("keyring", [Forgetful(), Cutting()], ids=["nothing", "the beginning"])
def test_a_keyring_that_does_not_return_stored_tokens_is_not_used(place: Place, keyring: Keyring) -> None:
    login = place.login(keyring)
    login.keep(TOKENS)
    assert login.kept() == TOKENS
    assert len(place.files) == 1 and "not return" in place.said[0]
    assert keyring.held == {}


def test_a_locked_keyring_is_bypassed_and_its_stale_tokens_are_never_used(
    place: Place,
) -> None:
    keyring = Keyring()
    login = place.login(keyring)
    login.keep(Tokens("older", 0.0))
    keyring.locked = True
    login.keep(TOKENS)
    assert login.kept() == TOKENS
    keyring.locked = False
    assert login.kept() == TOKENS, "a refresh token that was spent is not sent again"
    login.keep(Tokens("newer", 2.0))
    assert place.files == [], "the keyring takes it again"
    assert login.kept() == Tokens("newer", 2.0)


def test_an_unreadable_keyring_is_an_error_and_not_a_missing_login(place: Place) -> None:
    keyring = Keyring()
    login = place.login(keyring)
    login.keep(TOKENS)
    keyring.locked = True
    with pytest.raises(KeyringRefused, match="Locked"):
        login.kept()
    with pytest.raises(KeyringRefused, match="Locked"):
        login.forget()
    keyring.locked = False
    assert login.kept() == TOKENS


def test_logout_deletes_keyring_entry_and_file(place: Place) -> None:
    keyring = Keyring()
    place.login(keyring).keep(TOKENS)
    place.login(None).keep(TOKENS)
    assert place.login(keyring).forget() is True
    assert (place.files, keyring.held) == ([], {})
