# SPDX-License-Identifier: Apache-2.0
"""The cards (declarations) of all object types, and mappings derived from them.

One of the mappings has the operation names that policies receive.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import resources
from typing import Final

from gateway.access.nouns import data_policy, project, role, server, tag, warehouse
from gateway.access.nouns.card import Card
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can

CARDS: Final[Mapping[ObjectType, Card]] = {
    each.type: each
    for each in (
        server.SERVER,
        project.CARD,
        warehouse.WAREHOUSE,
        warehouse.NAMESPACE,
        warehouse.TABLE,
        warehouse.COLUMN,
        warehouse.VIEW,
        warehouse.GENERIC_TABLE,
        role.CARD,
        data_policy.CARD,
        tag.CARD,
        server.USER,
    )
}
"""By type, in the order in which lists of privileges have them."""

#: The relation that makes an object visible, by type. Servers have no entry: the existence of a server is not a secret.
VISIBLE_BY: Final[Mapping[ObjectType, Can]] = {
    type: card.visible_by for type, card in CARDS.items() if card.visible_by is not None
}


def _actions() -> Mapping[ObjectType, frozenset[Can]]:
    """Return the `can_*` relations of each type, from the file that `make model` generates from the relationship
    model.
    """
    text = resources.files("gateway.access.nouns").joinpath("actions.txt").read_text(encoding="utf-8")
    pairs = [line.split("#") for line in text.splitlines()]
    return {type: frozenset(Can(action) for name, action in pairs if name == type.value) for type in CARDS}


#: Every action that the relationship model decides, by type. Checks can be about these, and `serve` requires a model to
#: have them. `tests/access/reserved_relations.txt` lists those that no operation demands yet.
ACTIONS: Final[Mapping[ObjectType, frozenset[Can]]] = _actions()

#: The privileges that can be granted on each type of object.
GRANTABLE: Final[Mapping[ObjectType, tuple[Privilege, ...]]] = {
    type: card.privileges for type, card in CARDS.items() if card.privileges
}


def _above(type: ObjectType) -> frozenset[ObjectType]:
    """Return the types of all direct and indirect containers of objects of this type."""
    parents = [each for each in CARDS[type].parents if each is not type]
    return frozenset(parents).union(*map(_above, parents))


#: Types of objects on which a decision can be explained.
EXPLAINABLE: Final = frozenset(CARDS) - {ObjectType.COLUMN, ObjectType.USER}

#: The level of each type in the hierarchy: the number of types above it.
LEVELS: Final[Mapping[ObjectType, int]] = {type: len(_above(type)) for type in CARDS}

#: Object types inside of a warehouse. Cached responses about them are keyed by its revision.
IN_A_WAREHOUSE: Final = frozenset(type for type in CARDS if ObjectType.WAREHOUSE in _above(type))

#: Object types outside of warehouses.
OUTSIDE: Final = frozenset(CARDS) - IN_A_WAREHOUSE - {ObjectType.WAREHOUSE}

#: Endings of actions whose names contain the object type: `create_table`, `list_data_policies`.
_OBJECTS = tuple(name for type in ObjectType for name in (type.value, type.plural))
#: Verbs of actions on a part of an object. The name has the type before the part: `set_warehouse_protection`.
_ON_A_PART = ("get", "set", "update")


def policy_operation_name(type: ObjectType, relation: Can) -> str:
    """Return the operation name that policies receive: `drop_table`, `load_table`, `write_table_assignments`.

    Names that do not follow from a rule here are in the card of the type.
    """
    named = CARDS[type].policy_operations.get(relation)
    if named is not None:
        return named
    if relation is Can.APPROVE_CHANGES:
        return "approve_change"
    if relation is Can.BREAK_GLASS:
        return "activate_break_glass"
    if relation in (Can.CONFIRM_BREAK_GLASS, Can.REVIEW_BREAK_GLASS):
        return relation.value.removeprefix("can_")
    if relation is Can.READ_AUDIT:
        return "search_audit"
    if relation is Can.REQUEST_ACCESS:
        return "create_access_request"
    if relation is Can.MANAGE_TAGS:
        return f"attach_{type.value}_tag"
    if relation is Can.READ:
        return f"get_{type.value}"
    if relation in (Can.READ_ASSIGNMENTS, Can.READ_GRANTS):
        return f"read_{type.value}_assignments"
    if relation is Can.CHANGE_OWNERSHIP or relation.value.startswith("can_grant_"):
        return f"write_{type.value}_assignments"
    action = relation.value.removeprefix("can_")
    if action.endswith(_OBJECTS):
        return action
    verb, _, part = action.partition("_")
    return f"{verb}_{type.value}_{part}" if part and verb in _ON_A_PART else f"{action}_{type.value}"
