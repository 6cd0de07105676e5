# SPDX-License-Identifier: Apache-2.0
"""Map (object type, relation) to the operation name that OPA receives, such as `drop_table`."""

from __future__ import annotations

from gateway.access.nouns.cards import CARDS
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import Can

#: Endings of actions that name their object themselves: `create_table`, `list_data_policies`.
_OBJECTS = tuple(name for type in ObjectType for name in (type.value, f"{type.value}s".replace("ys", "ies")))
#: Verbs of actions on a part of an object. The name has the type before the part: `set_warehouse_protection`.
_ON_A_PART = ("get", "set", "update")


def policy_operation_name(type: ObjectType, relation: Can) -> str:
    """Return the operation's name for policies: `drop_table`, `load_table`, `write_table_assignments`.

    The card of the type has the names that follow from no rule here.
    """
    named = CARDS[type].policy_operations.get(relation)
    if named is not None:
        return named
    if relation is Can.APPROVE_CHANGES:
        return "approve_change"
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
