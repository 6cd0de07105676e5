# SPDX-License-Identifier: Apache-2.0
"""Find a refused request by the id in its error message."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection
from dataclasses import replace
from typing import Any, Final

from gateway.access.actor import Actor, ActorKind
from gateway.access.audit.audit_record import AuditedRefusal, AuditRecord
from gateway.access.door.permit import Permit
from gateway.access.nouns.authz_errors import denial_not_found
from gateway.access.nouns.cards import IN_A_WAREHOUSE
from gateway.access.nouns.refs import ObjectType
from gateway.access.operations.answers import ExplainDenial, ReadDenial, RefusedRequest
from gateway.access.operations.checks import CheckRequest
from gateway.access.principals import other_principal
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.answers.denials import denial
from gateway.features.grants.check_requests import parse_check
from gateway.features.kit import UseCases
from gateway.iceberg.errors import BadRequestException

#: Pauses, in seconds, for a record that is still in the buffer of the audit.
_PAUSES: Final = (0.0, 0.3, 0.7)
_RECENT_SECONDS: Final = 5.0


class Denials(UseCases):
    """The use case that finds a refused request."""

    async def find(self, permit: Permit[ReadDenial]) -> ExplainDenial:
        """Return the operation that explains the refused request.

        Raises DenialNotFound, also for a record of another kind of decision.
        """
        id = permit.operation.denial_id
        # A version 7 id begins with its time. Only a record of the last seconds can still be in the buffer.
        is_recent = time.time() - (id.int >> 80) / 1000 < _RECENT_SECONDS
        for pause in _PAUSES if is_recent else _PAUSES[:1]:
            await asyncio.sleep(pause)
            async with self._database.read() as connection:
                record = await denial(connection, id)
            if record is not None:
                break
        found = None if record is None else _found(record, permit.actor, permit.resolution.caller_roles)
        if found is None:
            raise denial_not_found(id)
        return found


def _found(record: AuditRecord, caller: Actor, roles: Collection[str]) -> ExplainDenial | None:
    """Return the explanation of the refusal in a record; None if nothing was refused on an object that the caller saw.

    `roles` are those of the caller. A record of an owner below a view belongs to no caller.
    """
    decision = next((each for each in record.decisions if each.refused is not None), None)
    principal = _principal(record)
    if decision is None or decision.refused is None or principal is None:
        return None
    warehouse = next((each.warehouse_id for each in decision.resources if each.warehouse_id is not None), None)
    asked = CheckRequest(operation=_operation_on(decision.refused, warehouse))
    try:
        check = parse_check(asked, caller=caller, default_project_id=None).check
    except BadRequestException:
        return None  # an object whose rights cannot be checked, such as a column
    check = replace(check, principal=other_principal(principal, caller))
    assumed = record.actor.assumed_role
    is_own = assumed in roles and record.actor.id == caller.id and caller.assumed_role is None
    reasons = decision.policy_reasons if record.actor.id == caller.id else ()
    return ExplainDenial(check, RefusedRequest(record.id, record.at, decision.operation, reasons), is_own)


def _principal(record: AuditRecord) -> Principal | None:
    if record.actor.asked_by is not None:
        return None
    if record.actor.assumed_role is not None:
        return Principal(PrincipalType.ROLE, record.actor.assumed_role)
    return Principal(PrincipalType.USER, record.actor.id) if record.actor.kind == ActorKind.USER else None


def _operation_on(refused: AuditedRefusal, warehouse_id: str | None) -> dict[str, dict[str, Any]]:
    """Return the refused check as in the bodies of permission checks, with the object by its id."""
    kind = refused.type.replace("_", "-")
    action = {"action": refused.relation}
    if refused.type == ObjectType.SERVER:
        return {kind: action}
    within = {"warehouse-id": warehouse_id} if ObjectType(refused.type) in IN_A_WAREHOUSE and warehouse_id else {}
    return {kind: {**action, **within, f"{kind}-id": refused.id}}
