# SPDX-License-Identifier: Apache-2.0
"""The access level of signatures, under the obligations of the signature and of the credentials."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from gateway.access.operations.credentials import VendCredentials
from gateway.features.credentials.signing import SigningForbidden, _level, _require
from gateway.obligations.kinds import AppendOnly, NoVending, Obligation
from gateway.obligations.merging import Obligations
from gateway.scope.credential import AccessLevel, SignedAction
from tests.support.door import world


def _found(own: tuple[Obligation, ...], of_credentials: tuple[Obligation, ...], *, writes: bool = True) -> AccessLevel:
    permit = SimpleNamespace(obligations=Obligations(own))
    vend = SimpleNamespace(
        obligations=Obligations(of_credentials),
        operation=VendCredentials(world.TABLE, signing=True),
        holds=lambda relation, on: writes,
    )
    return _level(cast(Any, permit), cast(Any, vend))


def test_a_policy_that_forbids_deletion_of_either_kind_is_honoured() -> None:
    assert _found((), ()) is AccessLevel.READ_WRITE_DELETE
    assert _found((AppendOnly(),), ()) is AccessLevel.READ_WRITE
    assert _found((), (AppendOnly(),)) is AccessLevel.READ_WRITE
    assert _found((AppendOnly(),), (), writes=False) is AccessLevel.READ


@pytest.mark.parametrize("where", [0, 1])
def test_a_policy_that_forbids_credentials_forbids_signatures(where: int) -> None:
    obligations: list[tuple[Obligation, ...]] = [(), ()]
    obligations[where] = (NoVending(),)
    with pytest.raises(SigningForbidden):
        _found(*obligations)


def test_an_action_needs_its_level() -> None:
    allowed = {(level, action) for level in AccessLevel for action in SignedAction if _is_allowed(level, action)}
    assert allowed == {
        (AccessLevel.READ, SignedAction.READ),
        (AccessLevel.READ_WRITE, SignedAction.READ),
        (AccessLevel.READ_WRITE, SignedAction.WRITE),
        *((AccessLevel.READ_WRITE_DELETE, action) for action in SignedAction),
    }


def _is_allowed(level: AccessLevel, action: SignedAction) -> bool:
    try:
        _require(level, action)
    except SigningForbidden:
        return False
    return True
