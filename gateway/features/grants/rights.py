# SPDX-License-Identifier: Apache-2.0
"""List the actions that a principal may perform on an object."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from gateway.access.actor import Actor
from gateway.access.decisions.hypothetical_evaluation import HypotheticalCheck
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import not_found
from gateway.access.nouns.cards import ACTIONS, CARDS
from gateway.access.nouns.refs import TABULARS, ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.server import ServerRef
from gateway.access.operations.actions import (
    ActionsAnswer,
    AllowedAction,
    CatalogActionsAnswer,
    GetUserActions,
    QueryActions,
    QueryRights,
)
from gateway.access.principals import actor_of, own_principal
from gateway.access.tuples import Principal, PrincipalType
from gateway.features.grants.partial_checks import CONCERNS_DATA, is_possible
from gateway.features.kit import UseCases
from gateway.obligations.data_policies import BoundPolicy

#: Actions on a user record, and the server relation that each requires. Reading requires none. Users have all actions
#: on their own records.
_OF_USERS: dict[str, Can | None] = {
    "delete": Can.DELETE_USERS,
    "read": None,
    "read_role_assignments": Can.LIST_USERS,
    "update": Can.UPDATE_USERS,
}

#: Actions that do not exist in the reference system: actions of this server only, and one that the reference system
#: uses only in its relationship model. A client that parses names into a closed set would fail on these names.
_OWN = frozenset(
    {
        Can.ADOPT_FILES,
        Can.APPROVE_CHANGES,
        Can.BREAK_GLASS,
        Can.CONFIRM_BREAK_GLASS,
        Can.DELEGATE,
        Can.DESCRIBE_EVERYTHING,
        Can.ENFORCE,
        Can.INSPECT,
        Can.LIST_ALL_PROJECTS,
        Can.MANAGE_EVENTS,
        Can.MANAGE_MAPPING_TABLES,
        Can.READ_AUDIT,
        Can.READ_CHANGE_TICKETS,
        Can.READ_EVENTS,
        Can.READ_POLICIES,
        Can.REQUEST_ACCESS,
        Can.REVIEW_BREAK_GLASS,
        Can.SYNCHRONIZE_IDENTITIES,
        Can.UNREGISTER,
    }
)

#: Endings of actions on object types that the reference system does not have, such as `create_data_policy`,
#: `read_columns`.
_OWN_TYPES = tuple(f"_{name}" for type, card in CARDS.items() if card.own for name in (type.value, type.plural))

#: Actions that exist on these types only here: the reference system has `move` only on namespaces.
_OWN_OF_TYPE: Mapping[ObjectType, frozenset[Can]] = {type: frozenset({Can.MOVE}) for type in TABULARS}

_AUTHORIZER_ONLY = frozenset({Can.ASSUME, Can.CHANGE_OWNERSHIP, Can.READ_ASSIGNMENTS, Can.SET_MANAGED_ACCESS})


class Rights(UseCases):
    """List the actions that relationships grant and that policies do not deny."""

    async def allowed_actions(self, permit: Permit[QueryRights]) -> ActionsAnswer:
        """Return the names of the allowed actions, in alphabetical order."""
        operation = permit.operation
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        actions = sorted(
            each for each in ACTIONS[operation.on.type] if _is_listed_action(each, operation.authorizer_only)
        )
        allowed = await self._allowed(permit, actor, operation.on, actions)
        return ActionsAnswer(
            allowed_actions=[_name(each, operation.on.type) for each in allowed],
            restricted_actions=[_name(each, operation.on.type) for each, restricted in allowed.items() if restricted],
        )

    async def catalog_actions(self, permit: Permit[QueryActions]) -> CatalogActionsAnswer:
        """Return the allowed catalog actions, in alphabetical order."""
        operation = permit.operation
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        actions = sorted(catalog_actions_of(operation.on.type))
        allowed = await self._allowed(permit, actor, operation.on, actions)
        type = operation.on.type
        return CatalogActionsAnswer([AllowedAction(_name(each, type), limited) for each, limited in allowed.items()])

    async def _allowed(
        self, permit: Permit[QueryRights] | Permit[QueryActions], actor: Actor, on: Ref, actions: Sequence[Can]
    ) -> dict[Can, bool]:
        """Return the allowed actions in order, each with True if row filters or masks restrict the result.

        Both data policies and guardrails count, as for a permission check (`partial_checks.py`).
        """
        stated: dict[int, tuple[BoundPolicy, ...]] = {}
        checks = [HypotheticalCheck(actor, each, on) for each in actions]
        answers = await self._door.hypothetical_checks.evaluate(permit, checks, stated)
        data = [index for index, each in enumerate(actions) if answers[index] and each in CONCERNS_DATA]
        verdicts = await self._door.hypothetical_checks.policy_verdicts(
            permit, [(actor, on, stated.get(index, ())) for index in data]
        )
        restricting = {
            index: verdict
            for index, verdict in zip(data, verdicts, strict=True)
            if verdict is not None and verdict.restricts
        }
        refused = {index for index, each in restricting.items() if not is_possible(actions[index], each)}
        refused |= {index for index, policies in stated.items() if policies and actions[index] not in CONCERNS_DATA}
        return {
            each: index in restricting for index, each in enumerate(actions) if answers[index] and index not in refused
        }

    async def user_actions(self, permit: Permit[GetUserActions]) -> CatalogActionsAnswer:
        """Return the allowed actions on a user record. Raises UserNotFound."""
        operation = permit.operation
        if permit.resolution.get(operation.user) is None:
            raise not_found(operation.user)
        subject = operation.principal or own_principal(permit.actor)
        own = subject == Principal(PrincipalType.USER, operation.user.user_id)
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        needed = [right for right in _OF_USERS.values() if right is not None]
        answers = await self._door.hypothetical_checks.evaluate(
            permit, [HypotheticalCheck(actor, right, ServerRef()) for right in needed]
        )
        held = {right for right, yes in zip(needed, answers, strict=True) if yes}
        return CatalogActionsAnswer(
            [AllowedAction(name) for name, right in _OF_USERS.items() if own or right is None or right in held]
        )


def catalog_actions_of(type: ObjectType) -> frozenset[Can]:
    """Return the actions of this type that Lakekeeper has too."""
    own = _OWN | _OWN_OF_TYPE.get(type, frozenset())
    return frozenset(
        each
        for each in ACTIONS[type]
        if not (_is_listed_action(each, authorizer_only=True) or each in own or each.value.endswith(_OWN_TYPES))
    )


#: Actions on roles that keep the prefix `can_` in the reference system.
_FULL_NAMES: Final = frozenset({Can.CHANGE_OWNERSHIP, Can.GRANT_ASSIGNEE})


def _name(action: Can, type: ObjectType) -> str:
    """Return the name of an action in the lists: without `can_`, except for the actions `_FULL_NAMES` on roles."""
    if type is ObjectType.ROLE and action in _FULL_NAMES:
        return action.value
    return action.value.removeprefix("can_")


def _is_listed_action(action: Can, authorizer_only: bool) -> bool:
    return not authorizer_only or action in _AUTHORIZER_ONLY or action.value.startswith("can_grant_")
