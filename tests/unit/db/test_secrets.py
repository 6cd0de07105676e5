# SPDX-License-Identifier: Apache-2.0
"""Sealed credentials: opened with any configured key, sealed with the first, and never disclosed."""

from __future__ import annotations

import base64

import pytest
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.kdf.scrypt import Scrypt

from gateway.db.credentials.secrets import Sealer, SecretUnreadable, salt_of

OLD, NEW, OTHER = "an old passphrase!", "a new passphrase!!", "of somebody else!!"
PLAIN = b'{"aws-secret-access-key": "hunter2"}'


def test_a_sealed_secret_is_unreadable_and_can_be_opened() -> None:
    sealed = Sealer([OLD]).seal(PLAIN)
    assert b"hunter2" not in sealed
    assert Sealer([OLD]).open(sealed) == PLAIN
    assert Sealer([OLD]).seal(PLAIN) != sealed, "sealing a secret twice must give different bytes"


def test_key_rotation_keeps_secrets_sealed_with_the_old_key() -> None:
    sealed = Sealer([OLD]).seal(PLAIN)
    rotated = Sealer([NEW, OLD])
    assert rotated.open(sealed) == PLAIN
    fresh = rotated.seal(PLAIN)
    assert Sealer([NEW]).open(fresh) == PLAIN
    with pytest.raises(SecretUnreadable):
        Sealer([OLD]).open(fresh)


@pytest.mark.parametrize("sealed", [b"", b"x", PLAIN])
def test_a_secret_without_a_matching_key_is_an_error_without_its_content(sealed: bytes) -> None:
    with pytest.raises(SecretUnreadable) as raised:
        Sealer([NEW]).open(sealed)
    assert "hunter2" not in str(raised.value)


def test_a_changed_byte_is_detected() -> None:
    sealed = bytearray(Sealer([NEW]).seal(PLAIN))
    sealed[-5] ^= 1
    with pytest.raises(SecretUnreadable):
        Sealer([NEW]).open(bytes(sealed))


def test_another_key_cannot_open_a_secret() -> None:
    with pytest.raises(SecretUnreadable, match="no configured encryption key"):
        Sealer([OTHER]).open(Sealer([NEW]).seal(PLAIN))


@pytest.mark.parametrize("keys", [[], [""], ["short"], [NEW, "short"]])
def test_missing_and_short_keys_are_refused(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="at least 16 characters") as raised:
        Sealer(keys)
    assert "short" not in str(raised.value)


def _of_an_earlier_version(passphrase: str) -> bytes:
    """Return a secret of an earlier version: a Fernet token under a key derived from the passphrase by HKDF-SHA256."""
    key = HKDF(algorithm=SHA256(), length=32, salt=None, info=b"lakegate storage credentials").derive(
        passphrase.encode()
    )
    return Fernet(base64.urlsafe_b64encode(key)).encrypt(PLAIN)


def test_a_guess_costs_a_scrypt_derivation_with_the_salt_of_the_secret() -> None:
    mark, salt, token = Sealer([NEW]).seal(PLAIN).split(b"$")
    assert mark == b"scrypt1" and len(base64.urlsafe_b64decode(salt)) == 16
    derived = Scrypt(salt=base64.urlsafe_b64decode(salt), length=32, n=2**15, r=8, p=1).derive(NEW.encode())
    assert Fernet(base64.urlsafe_b64encode(derived)).decrypt(token) == PLAIN
    assert Sealer([NEW]).seal(PLAIN).split(b"$")[1] != salt, "each installation must have its own salt"


def test_a_secret_of_an_earlier_version_opens_and_is_sealed_anew_by_a_rotation() -> None:
    before = _of_an_earlier_version(OLD)
    sealer = Sealer([OLD])
    assert sealer.open(before) == PLAIN
    assert not sealer.sealed_with_first(before), (
        "a secret of an earlier version must be sealed again although its key is the first"
    )
    assert sealer.sealed_with_first(sealer.seal(PLAIN))


def test_until_a_rotation_new_secrets_have_the_form_that_an_earlier_version_opens() -> None:
    sealed = Sealer([OLD], former=True).seal(PLAIN)
    assert salt_of(sealed) is None
    assert Sealer([OLD]).open(sealed) == PLAIN


@pytest.mark.parametrize("sealed", [b"scrypt1$", b"scrypt1$" + b"!" * 24 + b"$x", b"scrypt1$" + b"A" * 24 + b"$"])
def test_a_mutilated_secret_is_unreadable(sealed: bytes) -> None:
    with pytest.raises(SecretUnreadable):
        Sealer([NEW]).open(sealed)
