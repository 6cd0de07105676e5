# SPDX-License-Identifier: Apache-2.0
"""Telling which actions somebody is allowed on an object."""

from __future__ import annotations

from gateway.access.door import Door
from gateway.access.operations.rights import AskRights
from gateway.access.permit import Permit
from gateway.access.relations import ACTIONS, Can
from gateway.access.suppositions import Supposition
from gateway.access.wire_rights import ActionsAnswer
from gateway.governance.principals import actor_of

_AUTHORIZER_ONLY = frozenset({Can.ASSUME, Can.CHANGE_OWNERSHIP, Can.READ_ASSIGNMENTS, Can.SET_MANAGED_ACCESS})


class Rights:
    """What both engines allow somebody here: what the relationships give and the policies do not take away."""

    def __init__(self, *, door: Door) -> None:
        self._door = door

    async def allowed_actions(self, permit: Permit[AskRights]) -> ActionsAnswer:
        """The names of the allowed actions, in alphabetical order."""
        operation = permit.operation
        actor = permit.actor if operation.principal is None else actor_of(operation.principal)
        actions = sorted(each for each in ACTIONS[operation.on.type] if _told(each, operation.authorizer_only))
        answers = await self._door.would(permit, [Supposition(actor, each, operation.on) for each in actions])
        return ActionsAnswer(
            allowed_actions=[
                each.value.removeprefix("can_") for each, allowed in zip(actions, answers, strict=True) if allowed
            ]
        )


def _told(action: Can, authorizer_only: bool) -> bool:
    return not authorizer_only or action in _AUTHORIZER_ONLY or action.value.startswith("can_grant_")
