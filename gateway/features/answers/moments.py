# SPDX-License-Identifier: Apache-2.0
"""Read the rows and the relationship model of the present or of a past moment, for answers about access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Final

from gateway.access.door.permit import Permit
from gateway.access.management_errors import PastNotAnswered
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.operations.answer_lists import WhatCan, WhoCan
from gateway.access.operations.answers import ExplainAccess, NotKept
from gateway.access.principals import own_principal
from gateway.access.tuples import PrincipalType
from gateway.db.answers.past import History, created_at, go_back, history_of
from gateway.db.answers.path_grants import Moment, snapshot
from gateway.db.engine.database import Connection, Database
from gateway.features.answers.confirmation import deciding
from gateway.fga.answer_checks import ActiveModel, AnswerChecks
from gateway.fga.client import MAX_CONTEXTUAL_TUPLES
from gateway.fga.evaluation import HeldTuple
from gateway.fga.wire import ModelNotFound
from gateway.iceberg.errors import BadRequestException

#: What has no history.
NOT_KEPT: Final[tuple[NotKept, ...]] = ("policies", "data-policies", "token-groups", "warehouse-status")

Asking = ExplainAccess | WhoCan | WhatCan
"""The operations that ask about the present or about a past moment."""


@asynccontextmanager
async def moment_of(
    permit: Permit[Asking], database: Database, checks: AnswerChecks, key: ObjectKey
) -> AsyncIterator[tuple[Connection, Moment, ActiveModel]]:
    """Yield (a connection that reads the rows of one moment, the moment, the model that checks used then).

    The moment is that of the operation, or the present. `key` is the object of the question. Raises PastNotAnswered if
    its history or that of the asked user does not reach back to the moment, or the model is gone. Raises
    BadRequestException for a moment in the future.
    """
    at = permit.operation.at
    model = await checks.model() if at is None else None
    async with snapshot(database) as (connection, moment):
        if at is not None:
            await _require_same_user(permit, connection, at, moment.now)
            history = await _moved_back(connection, key, at, moment.now)
            model, moment = await _past_model(checks, history), moment._replace(now=at)
        if model is None:
            raise LookupError("the model of the present was read")
        yield connection, moment, model


async def _require_same_user(permit: Permit[Asking], connection: Connection, at: datetime, now: datetime) -> None:
    """Raise PastNotAnswered if the user of the question had no record at the moment.

    A deleted user can be registered again, and the grants of the former user are not those of the new one. A caller
    without a record has no past. The past of another deleted user is that of the former one.
    """
    operation = permit.operation
    if isinstance(operation, WhoCan) or at > now:
        return
    asked = operation.principal if isinstance(operation, WhatCan) else operation.check.principal
    user = asked or own_principal(permit.actor)
    if user.type is not PrincipalType.USER:
        return
    created = await created_at(connection, ObjectKey(ObjectType.USER, user.id))
    since = now if created is None and asked is None else created
    if since is not None and at < since:
        raise PastNotAnswered(
            f"The history of this user begins at {since.isoformat()}. Ask about that moment or a later one."
        )


async def _moved_back(connection: Connection, key: ObjectKey, at: datetime, now: datetime) -> History:
    """Let the connection read the rows of the moment, and return the history of the object.

    Raises PastNotAnswered if the history does not reach back to the moment, and BadRequestException if it is not past.
    """
    if at > now:
        raise BadRequestException(f"`at` must not be in the future. It is {now.isoformat()} now.")
    history = await history_of(connection, key, at)
    if at < history.since:
        raise PastNotAnswered(
            f"The history of access to this {key.type} begins at {history.since.isoformat()}. Ask about that moment or "
            "a later one."
        )
    await go_back(connection, at)
    return history


async def _past_model(checks: AnswerChecks, history: History) -> ActiveModel:
    """Return the model that checks used at the moment. Raises PastNotAnswered if OpenFGA no longer has it."""
    if history.model_id is None:
        raise LookupError("a moment within the history has no model")
    try:
        with deciding(ModelNotFound):
            return await checks.model_of(history.model_id)
    except ModelNotFound:
        raise PastNotAnswered(
            f"The relationship model {history.model_id}, which checks used at that moment, is no longer in OpenFGA's "
            "store. An operator can restore the store from a backup."
        ) from None


def within_limit(tuples: Iterable[HeldTuple], object: str) -> list[HeldTuple]:
    """Return the tuples without memberships that lead to no tuple on the object or above it.

    Raises PastNotAnswered for more tuples than OpenFGA accepts.
    """
    kept: list[HeldTuple] = []
    left: list[HeldTuple] = []
    for each in tuples:
        is_membership = each.object.startswith("role:") and each.object != object
        (left if is_membership else kept).append(each)
    holders = {each.user.partition("#")[0] for each in kept}
    while leading := [each for each in left if each.object in holders]:
        kept += leading
        holders |= {each.user.partition("#")[0] for each in leading}
        left = [each for each in left if each not in leading]
    if len(kept) > MAX_CONTEXTUAL_TUPLES:
        raise PastNotAnswered(
            f"More than {MAX_CONTEXTUAL_TUPLES} facts decide about this question, and OpenFGA confirms no more. "
            "Ask about one of the roles."
        )
    return kept
