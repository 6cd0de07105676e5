# SPDX-License-Identifier: Apache-2.0
"""Answer searches of policy enforcement points: each result is one that an access evaluation would allow.

Candidates come from the recorded grants, as in the lists of access. Each is then evaluated like an access evaluation of
the same caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from gateway.access.authzen_mapping import SERVER_ID, MappedType
from gateway.access.door.permit import Permit
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace
from gateway.access.operations.authzen import (
    AccessQuestion,
    SearchActions,
    SearchResources,
    SearchSubjects,
    rights_to_ask,
)
from gateway.access.operations.authzen_bodies import (
    FoundAction,
    FoundActionsAnswer,
    FoundEntitiesAnswer,
    FoundEntity,
    NextPage,
)
from gateway.access.principals import other_principal, own_principal
from gateway.access.tuples import Principal, PrincipalType
from gateway.db.answers.held_objects import FoundObject, objects_within
from gateway.db.answers.path_grants import holders, roles_below, snapshot
from gateway.features.answers.confirmation import deciding
from gateway.features.answers.listed_principals import AskedObject, holding
from gateway.features.authzen.evaluations import decide, may_ask
from gateway.features.kit import Kit, UseCases
from gateway.features.paging import FETCH, packed, place_of, unpacked, visible_page

_read_place = partial(unpacked, type=str)


class AccessSearches(UseCases):
    """Use cases of `POST /access/v1/search/subject`, `resource` and `action`."""

    def __init__(self, kit: Kit) -> None:
        super().__init__(kit)
        self._mapping = kit.authzen

    async def subjects(self, permit: Permit[SearchSubjects]) -> FoundEntitiesAnswer:
        """Return the principals of a type that may take the action. Raises InvalidPaginationToken.

        A caller without the right to ask about others on the object finds itself alone.
        """
        operation = permit.operation
        after = place_of(operation.page.token, _read_place) or ""
        on, of_type = operation.on, operation.of_type
        if on is None or of_type is None:
            return _entities([], None)
        caller, row = own_principal(permit.actor), permit.resolution.get(on)
        knows_others = any(permit.holds(each.relation, each.on) for each in rights_to_ask(on))

        async def fetch(place: str | None, limit: int) -> list[tuple[Principal, bool]]:
            start = place or ""
            if row is None or not knows_others:
                return [(caller, True)] if caller.type is of_type and caller.id > start else []
            return await self._candidates(row.key, operation.relation, Principal(of_type, start), caller, limit)

        async def decided(candidates: Sequence[tuple[Principal, bool]]) -> list[bool]:
            asked = [
                AccessQuestion(on, operation.relation, other_principal(each, permit.actor), operation.asserted)
                for each, holds in candidates
                if holds
            ]
            decisions = iter(await decide(self._door.hypothetical_checks, permit, asked, permit.resolution))
            return [holds and next(decisions) for _, holds in candidates]

        # A page ends with a result: the place of another candidate would tell that it holds a grant somewhere below.
        found, token = await visible_page(
            fetch, decided, lambda each: each[0].id, after=after, page_size=operation.page.limit
        )
        results = [FoundEntity(type=operation.subjects, id=self._mapping.subject_id(each)) for each, _ in found]
        return _entities(results, token)

    async def resources(self, permit: Permit[SearchResources]) -> FoundEntitiesAnswer:
        """Return the objects of a type on which the subject may take the action. Raises InvalidPaginationToken.

        Objects about which the caller may not ask are left out.
        """
        operation = permit.operation
        after = place_of(operation.page.token, _read_place) or ""
        within = None if operation.within is None else permit.resolution.get(operation.within)
        if operation.type is None or (operation.within is not None and not isinstance(within, ResolvedNamespace)):
            return _entities([], None)
        mapped = self._mapping.types[operation.resources]
        own = operation.principal is None
        principal = operation.principal or own_principal(permit.actor)
        type = operation.type

        roles = permit.resolution.caller_roles if own else ()
        principals = [principal, *(Principal(PrincipalType.ROLE, role) for role in roles)]

        async def fetch(place: str | None, limit: int) -> list[FoundObject]:
            start = place or ""
            if type is ObjectType.SERVER:
                return [FoundObject(SERVER_ID, None, SERVER_ID)] if start < SERVER_ID else []
            async with self._database.read() as connection:
                return await objects_within(
                    connection,
                    principals,
                    type,
                    now=permit.resolution.now,
                    within=None if within is None else within.id,
                    after=start,
                    limit=limit,
                )

        rows, token = await visible_page(
            fetch,
            partial(self._decided, permit, mapped),
            lambda row: row.id,
            after=after,
            page_size=operation.page.limit,
            later_reads=FETCH,
        )
        results = [FoundEntity(type=mapped.name, id=mapped.id_of(row.id, row.warehouse_id, row.name)) for row in rows]
        return _entities(results, token)

    async def actions(self, permit: Permit[SearchActions]) -> FoundActionsAnswer:
        """Return the actions that the subject may take on the object, by name. Raises InvalidPaginationToken."""
        operation = permit.operation
        after = place_of(operation.page.token, _read_place) or ""
        on = operation.on
        if on is None or not may_ask(permit, operation.principal, on):
            return FoundActionsAnswer(results=[], page=NextPage(next_token=""))
        names = [name for name, _ in operation.actions if name > after]
        relations = dict(operation.actions)
        asked = [AccessQuestion(on, relations[name], operation.principal, operation.asserted) for name in names]
        decisions = await decide(self._door.hypothetical_checks, permit, asked, permit.resolution)
        found = [name for name, yes in zip(names, decisions, strict=True) if yes]
        page = found[: operation.page.limit]
        token = packed(page[-1]) if len(found) > len(page) else ""
        return FoundActionsAnswer(results=[FoundAction(name=name) for name in page], page=NextPage(next_token=token))

    async def _candidates(
        self, on: ObjectKey, relation: Can, after: Principal, caller: Principal, limit: int
    ) -> list[tuple[Principal, bool]]:
        """Return principals of the type of `after` that can have the relation, in order, each with whether it has it.

        The caller is always one that has it: its token may give it further roles.
        """
        with deciding():
            model = await self._answer_engines.checks.model()
            async with snapshot(self._database) as (connection, moment):
                asked = await AskedObject.read(connection, on, relation.value, model, moment.now)
                roles = await roles_below(connection, asked.candidates(), now=moment.now)
                candidates = asked.every_candidate(roles, caller)
                found = await holders(
                    connection, candidates, now=moment.now, after=after, limit=limit, of_type=after.type
                )
                holds = await holding(connection, found, asked)
        return [(each, yes or each == caller) for each, yes in zip(found, holds, strict=True)]

    async def _decided(
        self, permit: Permit[SearchResources], mapped: MappedType, rows: Sequence[FoundObject]
    ) -> list[bool]:
        """Return for each candidate whether the caller may ask about it and the subject may take the action."""
        operation, checks = permit.operation, self._door.hypothetical_checks
        refs = [mapped.reference_of(row.id, row.warehouse_id) for row in rows]
        others = operation.principal is not None
        rights = {ref: [(each.relation, each.on) for each in rights_to_ask(ref)] if others else [] for ref in refs}
        pairs = list(dict.fromkeys(pair for some in rights.values() for pair in some))
        resolution = await checks.resolve(permit, list(dict.fromkeys([*refs, *(on for _, on in pairs)])))
        asked = [ref for ref in refs if resolution.get(ref) is not None]
        if others:
            held = dict(zip(pairs, await checks.holds(permit, pairs, resolution=resolution), strict=True))
            asked = [ref for ref in asked if any(held[pair] for pair in rights[ref])]
        questions = [AccessQuestion(ref, operation.relation, operation.principal, operation.asserted) for ref in asked]
        decisions = dict(zip(asked, await decide(checks, permit, questions, resolution), strict=True))
        return [decisions.get(ref, False) for ref in refs]


def _entities(results: list[FoundEntity], token: str | None) -> FoundEntitiesAnswer:
    return FoundEntitiesAnswer(results=results, page=NextPage(next_token=token or ""))
