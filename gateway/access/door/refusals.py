# SPDX-License-Identifier: Apache-2.0
"""Map refused decisions to the errors that callers receive. Only callers that may see an object get its name."""

from __future__ import annotations

from uuid import UUID

from gateway.access.decisions.decision import Decision, Failure, Outcome
from gateway.access.door.request_context import RequestContext
from gateway.access.nouns.authz_errors import (
    WarehouseNotActive,
    forbidden,
    restricted,
    too_many_groups,
    unavailable,
    unenforceable,
    user_deactivated,
)
from gateway.access.nouns.cards import EXPLAINABLE
from gateway.access.nouns.relations import Can
from gateway.access.operation import Operation
from gateway.iceberg.errors import CatalogError


def refusal_of(
    context: RequestContext, operation: Operation, decision: Decision, record_id: UUID | None = None
) -> CatalogError:
    """Return the error for a refused decision. It names an object only to callers that may see it.

    A caller that sees the object gets the id of the audit record as the id of the denial, if the decision can be
    explained. Below a view that is read with its owner's rights, the refused principal is the owner, so the caller gets
    none. The right to request access to objects with a tag does not make the tag visible.
    """
    refusal = _refusal_of(context, operation, decision)
    refused = decision.refused
    explained = refused is not None and refused.on.type in EXPLAINABLE and refused.relation is not Can.REQUEST_ACCESS
    if decision.outcome is Outcome.FORBIDDEN and explained and context.actor.asked_by is None:
        refusal.denial_id = None if record_id is None else str(record_id)
    return refusal


def _refusal_of(context: RequestContext, operation: Operation, decision: Decision) -> CatalogError:
    if decision.outcome is Outcome.UNAVAILABLE:
        refusal = unavailable(operation.is_catalog_mutation())
        # HTTP responses do not contain the cause. Commands of the operator print it.
        refusal.__cause__ = decision.outage
        return refusal
    ref = decision.refused.on if decision.refused is not None else None
    if decision.failure is Failure.TOO_MANY_GROUPS:
        return too_many_groups()
    if decision.failure is Failure.USER_DEACTIVATED:
        return user_deactivated()
    if decision.failure is Failure.WAREHOUSE_INACTIVE:
        return WarehouseNotActive(
            "The warehouse is inactive. A principal with `modify` on the warehouse can activate it: POST "
            "/management/v1/warehouse/<id>/activate."
        )
    if decision.outcome is Outcome.HIDDEN and ref is not None:
        return operation.hidden(ref)
    if decision.failure is Failure.UNENFORCED:
        return unenforceable(context.actor, operation.name(), decision.policy_reasons)
    if decision.failure is Failure.RESTRICTED:
        return restricted(context.actor, operation.name())
    missing = decision.refused.relation if decision.failure is Failure.ACTION_FORBIDDEN and decision.refused else None
    return forbidden(context.actor, operation.name(), ref, decision.policy_reasons, missing=missing)
