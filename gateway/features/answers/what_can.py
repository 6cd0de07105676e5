# SPDX-License-Identifier: Apache-2.0
"""List what a principal may do: the highest objects with the actions on them and on their contents, and the reasons.

The rows are computed from the recorded grants, and OpenFGA confirms them before the answer is sent.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from uuid import UUID

import msgspec

from gateway.access.authzen_mapping import reference_by_id
from gateway.access.door.permit import Permit
from gateway.access.management_errors import CannotInspectPermissions
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import ResolvedNamespace, warehouse_of
from gateway.access.nouns.server import ServerRef
from gateway.access.operations.answer_lists import (
    DEFAULT_OBJECTS,
    MAX_OBJECTS,
    HeldActions,
    WhatCan,
    WhatCanAnswer,
    WhatCanRow,
)
from gateway.access.principals import actor_of, own_principal
from gateway.db.answers.held_objects import HeldObject, Place, held_objects
from gateway.db.answers.past import go_forward
from gateway.db.answers.path_grants import Sought, held_grants
from gateway.db.engine.database import Connection
from gateway.db.tuples.held_tuples import structure_above
from gateway.features.answers.confirmation import Confirming, Unconfirmed, deciding
from gateway.features.answers.limits import limited_actions, restricted_contents
from gateway.features.answers.listed_objects import AskedPrincipal, ObjectListing, Readable
from gateway.features.answers.listed_principals import distances
from gateway.features.answers.moments import NOT_KEPT, moment_of, within_limit
from gateway.features.answers.reasons import facts_of, objects_of
from gateway.features.answers.seen_now import SeenNow, own_holders
from gateway.features.grants.grant_lists import resource_of, whereabouts
from gateway.features.grants.partial_checks import CONCERNS_DATA
from gateway.features.paging import place_of, unpacked, visible_page
from gateway.fga.access_profiles import PROFILE_USER
from gateway.fga.answer_checks import ActiveModel
from gateway.fga.held_actions import HeldOn, flags_matter
from gateway.fga.relationships import object_name


class WhatCanLists(Confirming):
    """Use cases of `POST /access/what-can`."""

    async def what_can(self, permit: Permit[WhatCan]) -> WhatCanAnswer:
        """Return a page of the objects on which the principal may act.

        Raises AnswerPending, AnswerDisagreed, CannotInspectPermissions and InvalidPaginationToken.
        """
        root = _root(permit)
        reads_below = self._door.hypothetical_checks.related_below
        within = _within(permit, root)
        if permit.operation.principal is not None and not await reads_below(permit, Can.READ_ASSIGNMENTS, within):
            if within != root:
                raise CannotInspectPermissions(
                    "Objects may have moved since then, so the question needs the right to read the assignments on "
                    "everything in the warehouse."
                )
            raise CannotInspectPermissions(
                f"You may read the assignments on this {root.type}, but not on everything in it. Ask about an object "
                "in it, or ask a principal that manages its grants."
            )
        return await self._confirmed(lambda: self._page(permit, root))

    async def _page(self, permit: Permit[WhatCan], root: ObjectKey) -> tuple[WhatCanAnswer, Unconfirmed]:
        operation = permit.operation
        with deciding():
            read = moment_of(permit, self._database, self._answer_engines.checks, root)
            async with read as (connection, moment, model):
                own = operation.principal is None
                asked = AskedPrincipal(
                    principal=operation.principal or own_principal(permit.actor),
                    groups=permit.resolution.acting(permit.actor).group_roles if own and operation.at is None else (),
                    model=model,
                    now=moment.now,
                    only=operation.action,
                )
                readable = await self._readable(permit, connection, asked, root)
                listing = ObjectListing(asked, root, readable, seen=self._seen(permit))
                page, token = await listed(
                    connection,
                    listing,
                    depth=await _depth(connection, root),
                    page_token=operation.page_token,
                    page_size=min(operation.page_size or DEFAULT_OBJECTS, MAX_OBJECTS),
                )
                await go_forward(connection)
                rows = await _described(connection, listing, page)
        if operation.at is None:
            rows = await self._limited(permit, rows, [listing.rows[each.key].held for each in page], page)
        warehouse = None if operation.on is None else warehouse_of(permit.resolution.get(operation.on))
        answer = WhatCanAnswer(
            rows=rows,
            as_of=moment.now,
            revision=moment.revision,
            warehouse_revision=None if warehouse is None else warehouse.revision,
            model_id=model.id,
            staleness_seconds=0,
            token_groups_known=own and permit.actor.groups_known and operation.at is None,
            circumstances_known=False,
            next_page_token=token,
            not_kept=[] if operation.at is None else list(NOT_KEPT),
            authorizers_not_asked=list(self._answer_engines.authorizers),
        )
        objects = [each.key for each in page]
        ask = None if operation.at is None else self._past(permit, listing, model)
        return answer, Unconfirmed(moment.now, listing.checks, [True] * len(listing.checks), objects, ask)

    def _seen(self, permit: Permit[WhatCan]) -> SeenNow | None:
        """Return the limits of an answer about the caller's own past, None for other answers."""
        if permit.operation.at is None or permit.operation.principal is not None:
            return None
        return SeenNow(self._door.hypothetical_checks, permit, own_holders(permit))

    def _past(
        self, permit: Permit[WhatCan], listing: ObjectListing, model: ActiveModel
    ) -> Callable[[], Awaitable[Sequence[bool]]]:
        """Return a function that asks OpenFGA the checks of an answer about a past moment."""
        questions = [
            (within_limit(world, object_name(check.object)), check.relation, object_name(check.object))
            for check, world in zip(listing.checks, listing.worlds, strict=True)
        ]
        ask = self._answer_engines.confirmations.each_alone
        return partial(ask, questions, PROFILE_USER, listing.asked.now, asker=permit.actor, model_id=model.id)

    async def _limited(
        self, permit: Permit[WhatCan], rows: Sequence[WhatCanRow], held: Sequence[HeldOn], page: Sequence[HeldObject]
    ) -> list[WhatCanRow]:
        """Return the rows with what limits the actions on their objects and on the data of their contents."""
        principal, decisions = permit.operation.principal, self._answer_engines.decisions
        actor = permit.actor if principal is None else actor_of(principal)
        refs = [_reference(each.key, row) for each, row in zip(page, rows, strict=True)]
        actions = {ref: each.actions for ref, each in zip(refs, held, strict=True) if ref is not None}
        limits = await limited_actions(permit, decisions, actor, actions)
        with_data = [
            each.key
            for each, on in zip(page, held, strict=True)
            if any(not CONCERNS_DATA.isdisjoint(some) for some in on.contents.values())
        ]
        restricted = await restricted_contents(permit, decisions, self._database, actor, with_data)
        return [
            msgspec.structs.replace(
                row, limits=[] if ref is None else limits[ref], restricted_tables=restricted.get(each.key)
            )
            for row, ref, each in zip(rows, refs, page, strict=True)
        ]

    async def _readable(
        self, permit: Permit[WhatCan], connection: Connection, asked: AskedPrincipal, root: ObjectKey
    ) -> Readable:
        """Return a function that returns whether the caller may read the assignments of an object, or of a role.

        Callers may read the reasons of their own rights. About another principal, the caller may read the assignments
        of everything below the root, which was checked before.
        """
        # A token that is limited to a project does not reach the server.
        hidden = ObjectType.SERVER if permit.actor.within is not None else None
        if permit.operation.principal is None:
            return lambda key: key.type is not hidden
        structure, _ = await structure_above(connection, [root])
        grants = await held_grants(connection, asked.holders, Sought(()), now=asked.now)
        roles = {each.object for each in grants}
        checked = list(dict.fromkeys([*distances(root, structure), *roles]))
        reads = await self._door.hypothetical_checks.related(permit, permit.actor, Can.READ_ASSIGNMENTS, checked)
        unreadable = {key for key, yes in zip(checked, reads, strict=True) if not yes or key.type is hidden}
        return lambda key: key not in unreadable


async def listed(
    connection: Connection, listing: ObjectListing, *, depth: int, page_token: str | None, page_size: int
) -> tuple[list[HeldObject], str | None]:
    """Return (the objects of one page, the token of the next page or None).

    `depth` is the number of namespaces above the root. Raises InvalidPaginationToken and UnknownRule.
    """
    asked = listing.asked
    flagged = flags_matter(asked.model.parsed)

    async def fetch(after: Place | None, limit: int) -> list[HeldObject]:
        return await held_objects(
            connection,
            asked.holders,
            listing.root,
            depth,
            now=asked.now,
            flagged=flagged,
            after=after,
            limit=limit,
        )

    return await visible_page(
        fetch,
        lambda some: listing.judge(connection, some),
        lambda each: each.place,
        after=place_of(page_token, _place),
        page_size=page_size,
    )


async def _described(connection: Connection, listing: ObjectListing, page: Sequence[HeldObject]) -> list[WhatCanRow]:
    found = {each.key: listing.rows[each.key] for each in page}
    reasons = [reason for row in found.values() for reason in row.reasons]
    where = await whereabouts(connection, [*found, *objects_of(reasons)])
    return [
        WhatCanRow(
            resource=resource_of(key, where),
            held=[
                HeldActions(
                    actions=_names(actions),
                    reason=facts_of(reason, row.holdings, where),
                    end=reason.end,
                    end_unknown=reason.end_unknown,
                )
                for reason, actions in row.reasons.items()
            ],
            contents={
                type.value: _names(actions)
                for type, actions in row.held.contents.items()
                if type is not ObjectType.COLUMN
            },
        )
        for key, row in found.items()
    ]


def _reference(key: ObjectKey, row: WhatCanRow) -> Ref | None:
    """Return the reference to the object of a row; None for a column, which guardrails do not know."""
    warehouse = row.resource.warehouse_id
    if key.type is ObjectType.COLUMN:
        return None
    return reference_by_id(key.type, key.id, None if warehouse is None else UUID(warehouse))


def _names(actions: Iterable[Can]) -> list[str]:
    return sorted(each.value.removeprefix("can_") for each in actions)


def _root(permit: Permit[WhatCan]) -> ObjectKey:
    """Return the object of the question, the project of a limited token, or else the server."""
    if permit.operation.on is None and permit.actor.within is not None:
        return ObjectKey(ObjectType.PROJECT, permit.actor.within)
    ref = permit.operation.on or ServerRef()
    row = permit.resolution.get(ref)
    if row is None:
        raise LookupError(f"WhatCan was not admitted on {ref!r}")
    return row.key


def _within(permit: Permit[WhatCan], root: ObjectKey) -> ObjectKey:
    """Return the object that contains all objects of the answer now: for a past moment the warehouse of a namespace.

    Objects move within warehouses.
    """
    row = None if permit.operation.on is None else permit.resolution.get(permit.operation.on)
    if permit.operation.at is None or not isinstance(row, ResolvedNamespace):
        return root
    return row.warehouse.key


async def _depth(connection: Connection, root: ObjectKey) -> int:
    """Return the number of namespaces above the root, if it is one, at the moment of the answer."""
    if root.type is not ObjectType.NAMESPACE:
        return 0
    _, placed = await structure_above(connection, [root])
    return sum(key.type is ObjectType.NAMESPACE for key in placed[root].above)


def _place(token: str) -> Place:
    rank, id = unpacked(token, tuple[int, str])
    if "\x00" in id or not 0 <= rank < 2**31:
        raise ValueError(token)
    return Place(rank, id)
