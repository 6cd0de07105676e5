# SPDX-License-Identifier: Apache-2.0
"""Deliveries that change a revision, so that requests in progress are decided again before they end."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.tuples import delivery, outbox
from gateway.db.tuples.delivery_statements import Begun
from gateway.db.tuples.outbox import Pending

USER = Principal(PrincipalType.USER, "oidc~ann")
POLICY = ObjectKey(ObjectType.DATA_POLICY, str(UUID(int=1)))
ROLE = ObjectKey(ObjectType.ROLE, str(UUID(int=2)))
TABLE = ObjectKey(ObjectType.TABLE, str(UUID(int=3)))


@pytest.mark.parametrize(
    ("relation", "on", "takes_away", "changes"),
    [
        ("subject", POLICY, True, True),
        ("assignee", ROLE, True, True),
        ("ownership", ROLE, True, True),
        ("assignee", ROLE, False, False),
        ("exempt", POLICY, False, False),
        ("select", TABLE, True, False),
    ],
)
async def test_a_tuple_that_restricts_by_its_existence_changes_the_revision_of_the_server(
    monkeypatch: pytest.MonkeyPatch, relation: str, on: ObjectKey, takes_away: bool, changes: bool
) -> None:
    """The last case: another grant of the same privilege remains, so nothing is lost."""
    changed: list[bool] = []

    async def finish(connection: Any, done: Any, within: Any, *, server_too: bool) -> None:
        changed.append(server_too)

    async def done(connection: Any, ids: Any) -> None:
        pass

    monkeypatch.setattr(delivery, "finish", finish)
    monkeypatch.setattr(outbox, "done", done)
    key = TupleKey(USER, relation, on)
    row = Pending(id=1, key=key, takes_away=takes_away, warehouse_id=None)
    await delivery._finish(None, [row], Begun(desired={key: None}, sent_before={1: None}, settled_at={}))  # type: ignore[arg-type]  # no connection is needed
    assert changed == ([True] if changes else [])
