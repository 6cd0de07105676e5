# SPDX-License-Identifier: Apache-2.0
"""Random worlds that differ only in facts that the asker may not read give equal witnesses and repairs.

`tests/security/test_redaction_property.py` compares whole answers over HTTP.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.access.actor import Actor
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.tuples import MANAGED_ACCESS, Principal, PrincipalType, TupleKey
from gateway.db.answers.path_facts import PathFacts
from gateway.db.grants.grant_ends import GrantRow
from gateway.features.answers.asker import grants_of_roles, readable_witnesses
from gateway.features.answers.repairs import candidates_for, find_repairs
from gateway.features.answers.world import Presenter, World, world_of
from gateway.fga.evaluation import ModelRules
from gateway.fga.provenance import witnesses_of
from gateway.fga.relationships import object_name
from tests.support.rows.naive import the_model

WORLDS = int(os.environ.get("LAKEGATE_TEST_WORLDS", "400"))
RULES = ModelRules(the_model())
NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
ANN = Principal(PrincipalType.USER, "oidc~ann")
SERVER = ObjectKey(ObjectType.SERVER, "s")
PROJECT, WAREHOUSE = ObjectKey(ObjectType.PROJECT, "p"), ObjectKey(ObjectType.WAREHOUSE, "w")
NAMESPACE, TABLE = ObjectKey(ObjectType.NAMESPACE, "n"), ObjectKey(ObjectType.TABLE, "t")
ROLES = [str(uuid.UUID(int=number)) for number in range(4)]
EDGES = [
    TupleKey(SERVER, "server", PROJECT),
    TupleKey(PROJECT, "project", WAREHOUSE),
    TupleKey(WAREHOUSE, "parent", NAMESPACE),
    TupleKey(NAMESPACE, "parent", TABLE),
]
FLAG = TupleKey(Principal(PrincipalType.USER, "*"), MANAGED_ACCESS, NAMESPACE)
PATH = frozenset({SERVER, PROJECT, WAREHOUSE, NAMESPACE, TABLE})
ACTIONS = ["can_read_data", "can_drop", "can_move", "can_grant_select", "can_get_metadata"]


def _role(id: str) -> Principal:
    return Principal(PrincipalType.ROLE, id)


def _on(role: str) -> ObjectKey:
    return ObjectKey(ObjectType.ROLE, role)


MEMBERSHIPS = [TupleKey(ANN, "assignee", _on(role)) for role in ROLES]
MEMBERSHIPS += [
    TupleKey(_role(inner), "assignee", _on(outer))
    for number, inner in enumerate(ROLES)
    for outer in ROLES[number + 1 :]
]
GRANTS = [
    TupleKey(subject, privilege, on)
    for subject in (ANN, *map(_role, ROLES))
    for privilege in ("select", "modify", "describe", "manage_grants", "pass_grants", "ownership")
    for on in (TABLE, NAMESPACE, WAREHOUSE)
]
OBJECTS = [TABLE, NAMESPACE, WAREHOUSE, *map(_on, ROLES)]


def _grant(key: TupleKey) -> GrantRow:
    """Return the only grant behind a tuple. Every third one expires."""
    assert isinstance(key.subject, Principal)
    id = uuid.uuid5(uuid.NAMESPACE_OID, repr(key))
    ends = NOW + timedelta(hours=1) if id.int % 3 == 0 else None
    on = key.object
    return GrantRow(
        id, key.relation, key.subject.type, key.subject.id, on.type, on.id, "oidc~admin", NOW, None, ends, None
    )


def _world(facts: Collection[TupleKey], *, managed: bool) -> World:
    """Return what the rows say about the user: its grants and those of its roles, and the structure."""
    held, found = [ANN], list[TupleKey]()
    for holder in held:
        own = [key for key in sorted(facts, key=repr) if key.subject == holder]
        found += own
        held += [
            role for key in own if key.object.type is ObjectType.ROLE and (role := _role(key.object.id)) not in held
        ]
    structure = [*EDGES, *([FLAG] if managed else [])]
    tuples: dict[TupleKey, datetime | None] = dict.fromkeys(structure)
    tuples |= {key: _grant(key).expires_at for key in found}
    return world_of(Actor.user(ANN.id), PathFacts(PATH, tuples, {key: (_grant(key),) for key in found}))


def _answer(
    facts: Collection[TupleKey], readable: Collection[ObjectKey], relation: str, *, managed: bool
) -> tuple[bool, Any]:
    """Return (the decision, the reasons that an asker gets who may read the grants on these objects)."""
    world, name = _world(facts, managed=managed), object_name(TABLE)
    unreadable = {
        held
        for held, key in world.keys.items()
        if isinstance(key.subject, Principal) and key != FLAG and key.object not in readable
    }
    found, more = witnesses_of(RULES, world.tuples, world.user, NOW, relation, name)
    if found:
        witnesses, more = readable_witnesses(RULES, world, unreadable, found, more, relation, name, NOW)
        presenter = Presenter(world, {}, PATH)
        return True, ([presenter.witness(each) for each in witnesses], more)
    known = world.without(unreadable)
    of_roles = {
        key: _grant(key).expires_at
        for key in sorted(facts, key=repr)
        if key.object in PATH and key.object in readable and key.subject != ANN
    }
    roles = {key.subject.id for key in of_roles if isinstance(key.subject, Principal)}
    candidates = candidates_for(ANN, PATH - {SERVER, PROJECT}, roles)
    further = grants_of_roles(known, of_roles)
    return False, find_repairs(RULES, known, candidates, further, relation, name, NOW)


def _some(pool: Sequence[TupleKey], most: int) -> st.SearchStrategy[list[TupleKey]]:
    return st.lists(st.sampled_from(pool), max_size=most, unique=True)


@settings(max_examples=WORLDS, deadline=None)
@given(
    shared=st.tuples(_some(GRANTS, 7), _some(MEMBERSHIPS, 5)),
    first=st.tuples(_some(GRANTS, 5), _some(MEMBERSHIPS, 4)),
    second=st.tuples(_some(GRANTS, 5), _some(MEMBERSHIPS, 4)),
    readable=st.sets(st.sampled_from(OBJECTS), max_size=5),
    relation=st.sampled_from(ACTIONS),
    managed=st.booleans(),
)
@example(
    shared=([TupleKey(_role(ROLES[number]), "modify", TABLE) for number in (1, 2)], []),
    first=([], [MEMBERSHIPS[0], MEMBERSHIPS[1], TupleKey(_role(ROLES[0]), "assignee", _on(ROLES[2]))]),
    second=([], [MEMBERSHIPS[1]]),
    readable={TABLE},
    relation="can_move",
    managed=False,
)
def test_hidden_facts_change_no_reason(
    shared: tuple[list[TupleKey], list[TupleKey]],
    first: tuple[list[TupleKey], list[TupleKey]],
    second: tuple[list[TupleKey], list[TupleKey]],
    readable: set[ObjectKey],
    relation: str,
    managed: bool,
) -> None:
    common = {key for some in shared for key in some if key.object in readable}
    worlds = [common | {key for some in each for key in some if key.object not in readable} for each in (first, second)]
    one, other = (_answer(world, readable, relation, managed=managed) for world in worlds)
    if one[0] == other[0]:
        assert one == other


def test_more_readable_witnesses_than_shown_are_announced() -> None:
    facts = [
        TupleKey(ANN, privilege, on)
        for privilege in ("select", "modify", "ownership")
        for on in PATH - {SERVER, PROJECT}
    ]
    facts += [TupleKey(ANN, "assignee", _on(ROLES[0])), TupleKey(_role(ROLES[0]), "select", TABLE)]
    facts += [TupleKey(_role(ROLES[0]), "modify", TABLE)]
    holds, (witnesses, more) = _answer(facts, OBJECTS, "can_read_data", managed=False)
    assert (holds, len(witnesses), more) == (True, 10, True)
    holds, (witnesses, more) = _answer(facts[:9], OBJECTS, "can_read_data", managed=False)
    assert (holds, len(witnesses), more) == (True, 9, False)
