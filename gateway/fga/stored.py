# SPDX-License-Identifier: Apache-2.0
"""Conversion of tuples that OpenFGA stores to the relationships that the gateway records. Pure.

Every client with OpenFGA's API key can write any tuple that the model allows. So tuples are parsed strictly: a tuple in
another form than the gateway writes is not one of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Final
from uuid import UUID

from gateway.access.nouns.cards import CARDS, GRANTABLE
from gateway.access.nouns.refs import ObjectKey, ObjectType, column_key
from gateway.access.tuples import ALL_USERS, MANAGED_ACCESS, READ_COLUMNS, Principal, PrincipalType, TupleKey
from gateway.fga.compiled import compiled_model, relations_of
from gateway.fga.names import InvalidPrincipalId, user_id_of
from gateway.fga.relationships import UNEXPIRED, to_wire
from gateway.fga.wire import Condition, FgaTuple

TRAVERSE: Final = "traverse"

#: The types of the parents of an object, by its type and the relation of the edge.
_EDGES: Final[Mapping[tuple[ObjectType, str], tuple[ObjectType, ...]]] = {
    (type, card.edge): card.parents for type, card in CARDS.items() if card.parents
}
_TRAVERSED: Final = frozenset({ObjectType.PROJECT, ObjectType.WAREHOUSE, ObjectType.NAMESPACE})
_FLAGGED: Final = frozenset({ObjectType.WAREHOUSE, ObjectType.NAMESPACE})


@dataclass(frozen=True, slots=True)
class StoredTuple:
    """A tuple of OpenFGA.

    - `key`: the relationship; None if no row can require this tuple.
    - `known`: False if the model of this version lacks the relation or a type, so the tuple has no effect.
    - `plain`: True if the gateway writes such conditions: no condition, or an expiry (`expires_at`).
    """

    raw: FgaTuple
    key: TupleKey | None
    known: bool
    plain: bool
    expires_at: datetime | None


def read_back(raw: FgaTuple) -> StoredTuple:
    """Parse a tuple of OpenFGA."""
    plain, expires_at = _expiry(raw.condition)
    return StoredTuple(raw=raw, key=_key(raw), known=_known(raw), plain=plain, expires_at=expires_at)


def bare(key: TupleKey) -> FgaTuple:
    """Return the tuple of `key` without a condition, for reading or deleting it."""
    return to_wire(key)


@cache
def _relations() -> Mapping[str, Set[str]]:
    return relations_of(compiled_model())


def _known(raw: FgaTuple) -> bool:
    """Return True if the model of this version has the type, the relation and the type of the subject."""
    relations = _relations()
    return raw.relation in relations.get(_type(raw.object), ()) and _type(raw.user) in relations


def _type(name: str) -> str:
    return name.split(":", 1)[0]


def _key(raw: FgaTuple) -> TupleKey | None:
    on = _object(raw.object)
    if on is None:
        return None
    subject: Principal | ObjectKey | None = None
    if (parents := _EDGES.get((on.type, raw.relation))) is not None:
        subject = _object(raw.user)
        if subject is None or subject.type not in parents:
            return None
    elif raw.relation in GRANTABLE.get(on.type, ()) or _is_derived(raw.relation, on.type):
        subject = _principal(raw.user)
    elif raw.relation == MANAGED_ACCESS and on.type in _FLAGGED:
        subject = _all_users(raw.user)
    if subject is None:
        return None
    key = TupleKey(subject, raw.relation, on)
    try:
        return key if bare(key) == FgaTuple(raw.user, raw.relation, raw.object) else None
    except InvalidPrincipalId:
        return None


def _is_derived(relation: str, type: ObjectType) -> bool:
    return (relation == TRAVERSE and type in _TRAVERSED) or (relation == READ_COLUMNS and type is ObjectType.TABLE)


def _object(name: str) -> ObjectKey | None:
    """Parse an object in canonical form; None for users and other texts. Project ids are texts, the id of a column is
    `<uuid>.<field id>`, and all others are UUIDs.
    """
    type_name, _, id = name.partition(":")
    try:
        kind = ObjectType(type_name)
        if kind is ObjectType.USER or not id:
            return None
        if kind is ObjectType.COLUMN:
            id, _, field = id.partition(".")
            return column_key(id, int(field)) if str(UUID(id)) == id and str(abs(int(field))) == field else None
        if kind is not ObjectType.PROJECT and str(UUID(id)) != id:
            return None
    except ValueError:
        return None
    return ObjectKey(kind, id)


def _principal(name: str) -> Principal | None:
    try:
        if name.startswith("role:") and name.endswith("#assignee"):
            return Principal(PrincipalType.ROLE, str(UUID(name.removeprefix("role:").removesuffix("#assignee"))))
        return Principal(PrincipalType.USER, user_id_of(name))
    except ValueError:
        return None


def _all_users(name: str) -> Principal | None:
    type_name, _, id = name.partition(":")
    return (
        Principal(PrincipalType(type_name), ALL_USERS) if id == ALL_USERS and type_name in set(PrincipalType) else None
    )


def _expiry(condition: Condition | None) -> tuple[bool, datetime | None]:
    """Return (True if the gateway writes such conditions, the expiry or None)."""
    if condition is None or not condition.name:
        return True, None
    value = condition.context.get("expires_at")
    if condition.name != UNEXPIRED or set(condition.context) != {"expires_at"} or not isinstance(value, str):
        return False, None
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return False, None
    return moment.tzinfo is not None, moment if moment.tzinfo is not None else None
