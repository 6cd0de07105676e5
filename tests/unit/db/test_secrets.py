# SPDX-License-Identifier: Apache-2.0
"""Sealed credentials: opened with any configured key, sealed with the first, and silent about what is in them."""

from __future__ import annotations

import pytest

from gateway.db.secrets import Sealer, SecretUnreadable

OLD, NEW, OTHER = "an old passphrase!", "a new passphrase!!", "of somebody else!!"
PLAIN = b'{"aws-secret-access-key": "hunter2"}'


def test_what_is_sealed_is_not_readable_and_opens_again() -> None:
    sealed = Sealer([OLD]).seal(PLAIN)
    assert b"hunter2" not in sealed
    assert Sealer([OLD]).open(sealed) == PLAIN
    assert Sealer([OLD]).seal(PLAIN) != sealed, "the same secret twice does not show as the same"


def test_a_key_is_rotated_without_losing_what_the_old_one_sealed() -> None:
    sealed = Sealer([OLD]).seal(PLAIN)
    rotated = Sealer([NEW, OLD])
    assert rotated.open(sealed) == PLAIN
    fresh = rotated.seal(PLAIN)
    assert Sealer([NEW]).open(fresh) == PLAIN
    with pytest.raises(SecretUnreadable):
        Sealer([OLD]).open(fresh)


@pytest.mark.parametrize("sealed", [b"", b"x", PLAIN])
def test_what_no_key_fits_is_unreadable_and_not_repeated(sealed: bytes) -> None:
    with pytest.raises(SecretUnreadable) as raised:
        Sealer([NEW]).open(sealed)
    assert "hunter2" not in str(raised.value)


def test_a_changed_byte_is_noticed() -> None:
    sealed = bytearray(Sealer([NEW]).seal(PLAIN))
    sealed[-5] ^= 1
    with pytest.raises(SecretUnreadable):
        Sealer([NEW]).open(bytes(sealed))


def test_another_key_opens_nothing() -> None:
    with pytest.raises(SecretUnreadable, match="no configured encryption key"):
        Sealer([OTHER]).open(Sealer([NEW]).seal(PLAIN))


@pytest.mark.parametrize("keys", [[], [""], ["short"], [NEW, "short"]])
def test_no_key_and_short_keys_are_refused(keys: list[str]) -> None:
    with pytest.raises(ValueError, match="at least 16 characters") as raised:
        Sealer(keys)
    assert "short" not in str(raised.value)
