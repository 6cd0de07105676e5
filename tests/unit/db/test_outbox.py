# SPDX-License-Identifier: Apache-2.0
"""Selection of the keys of one delivery."""

from __future__ import annotations

from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.tuples.outbox import Pending, complete_moves

TABLE = ObjectKey(ObjectType.TABLE, "t")


def _edge(id: int, parent: str, of: ObjectKey = TABLE) -> Pending:
    return Pending(id, TupleKey(ObjectKey(ObjectType.NAMESPACE, parent), "parent", of), True, None)


def _grant(id: int) -> Pending:
    return Pending(id, TupleKey(Principal(PrincipalType.USER, f"oidc~{id}"), "select", TABLE), False, None)


def test_a_full_batch_keeps_the_edges_of_a_move_together() -> None:
    batch = [_grant(1), _grant(2), _edge(3, "new")]
    assert complete_moves(batch, limit=3) == batch[:2]
    assert complete_moves([_grant(1), _edge(2, "new"), _edge(3, "old")], limit=3) == [_grant(1)]


def test_a_batch_with_free_space_takes_all_keys() -> None:
    batch = [_grant(1), _edge(2, "new")]
    assert complete_moves(batch, limit=3) == batch
    assert complete_moves([], limit=3) == []


def test_a_batch_omits_edges_of_other_objects_and_is_never_empty() -> None:
    other = _edge(1, "n", ObjectKey(ObjectType.TABLE, "u"))
    assert complete_moves([other, _edge(2, "new")], limit=2) == [other]
    assert complete_moves([_edge(1, "new"), _edge(2, "old")], limit=2) == [_edge(1, "new"), _edge(2, "old")]
    assert complete_moves([_edge(1, "new"), _grant(2)], limit=2) == [_edge(1, "new"), _grant(2)]
