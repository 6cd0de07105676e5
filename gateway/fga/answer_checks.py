# SPDX-License-Identifier: Apache-2.0
"""Ask OpenFGA again about the rows of an answer, without caches."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from gateway.access.dependency_errors import DecisionEngineUnavailable, first_of
from gateway.access.nouns.refs import ObjectKey
from gateway.access.tuples import Principal, PrincipalType
from gateway.fga.client import FgaClient
from gateway.fga.evaluation import ModelRules
from gateway.fga.model_analysis import FollowedReaches, ParsedModel
from gateway.fga.names import member_of, object_of, user_object
from gateway.fga.relationships import CURRENT_TIME, object_name, rfc3339
from gateway.fga.row_authorizer import FollowedModel, StoredModel
from gateway.fga.wire import FgaTuple

#: Checks in one request, and requests in flight at the same time for one answer.
_TOGETHER: Final = 20
_AT_ONCE: Final = 2


class AnswerCheck(NamedTuple):
    """A check of a relation of a principal. For a role it is about a member with the rights of the role alone.

    `groups` are the roles that a user has by the groups in its token.
    """

    principal: Principal
    relation: str
    object: ObjectKey
    groups: tuple[str, ...] = ()


class ActiveModel(NamedTuple):
    """A model of the store: its id, its rules for evaluations, and its definitions for the analysis."""

    id: str
    rules: ModelRules
    parsed: ParsedModel


class AnswerChecks:
    """Reads the model that checks use, and sends the checks of answers with HIGHER_CONSISTENCY.

    `count_disagreement` counts an answer that OpenFGA does not confirm.
    """

    def __init__(self, client: FgaClient, reaches: FollowedReaches, count_disagreement: Callable[[], None]) -> None:
        self.count_disagreement = count_disagreement
        self._client = client
        self._reaches = reaches
        self._rules = FollowedModel(client)

    async def model(self) -> ActiveModel:
        """Return the model that checks use now.

        Raises DecisionEngineUnavailable if it cannot be read, or if another model replaces it meanwhile.
        """
        model_id = self._client.model_id
        rules, parsed = await self._rules(), await self._reaches.model(model_id)
        if parsed is None or self._client.model_id != model_id:
            raise DecisionEngineUnavailable("The relationship model is being switched.")
        return ActiveModel(model_id, rules, parsed)

    async def model_of(self, model_id: str) -> ActiveModel:
        """Return a model of the store.

        Raises ModelNotFound if the store lacks it, and DecisionEngineUnavailable if it cannot be read.
        """
        stored = (await self._client.get(f"/authorization-models/{model_id}", StoredModel)).authorization_model
        return ActiveModel(model_id, ModelRules(stored), ParsedModel(stored))

    async def definition(self) -> tuple[str, dict[str, Any]]:
        """Return (the id of the model that checks use now, the model in OpenFGA's JSON form).

        Raises DecisionEngineUnavailable if it cannot be read.
        """
        model_id = self._client.model_id
        stored = await self._client.get(f"/authorization-models/{model_id}", StoredModel)
        return model_id, dict(stored.authorization_model)

    async def ask(self, checks: Sequence[AnswerCheck], *, now: datetime) -> list[bool]:
        """Return for each check whether it holds at `now`, in order. Raises DecisionEngineUnavailable."""
        slots = asyncio.Semaphore(_AT_ONCE)
        chunks = [checks[first : first + _TOGETHER] for first in range(0, len(checks), _TOGETHER)]

        async def ask_some(some: Sequence[AnswerCheck]) -> list[bool]:
            roles = dict.fromkeys(each.principal.id for each in some if each.principal.type is PrincipalType.ROLE)
            members = [FgaTuple(member_of(role), "assignee", object_of("role", role)) for role in roles]
            by_groups = {(user_object(each.principal.id), role) for each in some for role in each.groups}
            members += [FgaTuple(user, "assignee", object_of("role", role)) for user, role in sorted(by_groups)]
            async with slots:
                return await self._client.batch_check(
                    [FgaTuple(_subject(each.principal), each.relation, object_name(each.object)) for each in some],
                    contextual=members,
                    context={CURRENT_TIME: rfc3339(now)},
                )

        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(ask_some(some)) for some in chunks]
        except ExceptionGroup as failed:
            raise first_of(failed) from None
        return [yes for task in tasks for yes in task.result()]


def _subject(principal: Principal) -> str:
    return member_of(principal.id) if principal.type is PrincipalType.ROLE else user_object(principal.id)
