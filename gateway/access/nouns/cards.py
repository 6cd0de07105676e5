# SPDX-License-Identifier: Apache-2.0
"""The cards of all object types, and tables of their facts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from gateway.access.nouns import data_policy, role, tag
from gateway.access.nouns.card import Card
from gateway.access.nouns.privileges import OTHER_GRANTABLE, Privilege
from gateway.access.nouns.refs import ObjectType
from gateway.access.nouns.relations import OTHER_ACTIONS, OTHER_VISIBLE_BY, Can

CARDS: Final[Mapping[ObjectType, Card]] = {each.type: each for each in (role.CARD, data_policy.CARD, tag.CARD)}

#: The relation that makes an object visible, by type. Servers have no entry: the existence of a server is no secret.
VISIBLE_BY: Final[Mapping[ObjectType, Can]] = {
    **OTHER_VISIBLE_BY,
    **{type: card.visible_by for type, card in CARDS.items() if card.visible_by is not None},
}

#: Every action that the relationship model decides, by type. Checks can be about these, and `serve` requires a model to
#: have them. `tests/access/reserved_relations.txt` lists those that no operation demands yet.
ACTIONS: Final[Mapping[ObjectType, frozenset[Can]]] = {
    **OTHER_ACTIONS,
    **{type: card.actions for type, card in CARDS.items()},
}

#: The privileges that can be granted on each type of object.
GRANTABLE: Final[Mapping[ObjectType, tuple[Privilege, ...]]] = {
    **OTHER_GRANTABLE,
    **{type: card.privileges for type, card in CARDS.items() if card.privileges},
}
