# SPDX-License-Identifier: Apache-2.0
"""List the principals that may take an action on an object, with the reason of each.

The rows are computed from the recorded grants, and OpenFGA confirms them before the answer is sent.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import compress
from typing import Final
from uuid import UUID

from gateway.access.door.permit import Permit
from gateway.access.nouns.cards import GRANTABLE, VISIBLE_BY
from gateway.access.nouns.refs import ObjectKey, ObjectType
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import warehouse_of
from gateway.access.operations.answer_lists import DEFAULT_ROWS, MAX_ROWS, WhoCan, WhoCanAnswer, WhoCanRow
from gateway.access.principals import principal_answer
from gateway.access.tuples import ALL_USERS, Principal, PrincipalType
from gateway.db.answers.past import go_forward
from gateway.db.answers.path_grants import Candidates, Moment, Sought, holders, roles_below
from gateway.db.engine.database import Connection
from gateway.features.answers.confirmation import Confirming, Unconfirmed, deciding
from gateway.features.answers.limits import limited
from gateway.features.answers.listed_principals import AskedObject, Asker, Listing
from gateway.features.answers.moments import NOT_KEPT, moment_of, within_limit
from gateway.features.answers.reasons import facts_of, objects_of
from gateway.features.grants.grant_lists import resource_of, whereabouts
from gateway.features.paging import place_of, unpacked, visible_page
from gateway.fga.access_profiles import PROFILE_USER
from gateway.fga.answer_checks import ActiveModel, AnswerCheck
from gateway.fga.relationships import object_name

_EVERYONE: Final = Principal(PrincipalType.USER, ALL_USERS)
_ROLE_PRIVILEGES: Final = GRANTABLE[ObjectType.ROLE]


class WhoCanLists(Confirming):
    """Use cases of `POST /access/who-can`."""

    async def who_can(self, permit: Permit[WhoCan]) -> WhoCanAnswer:
        """Return a page of the principals that may take the action.

        Raises AnswerPending, AnswerDisagreed and InvalidPaginationToken.
        """
        return await self._confirmed(lambda: self._page(permit))

    async def _page(self, permit: Permit[WhoCan]) -> tuple[WhoCanAnswer, Unconfirmed]:
        operation = permit.operation
        row = permit.resolution.get(operation.on)
        if row is None:
            raise LookupError(f"WhoCan was not admitted on {operation.on!r}")
        with deciding():
            read = moment_of(permit, self._database, self._answer_engines.checks, row.key)
            async with read as (connection, moment, model):
                asked = await AskedObject.read(connection, row.key, operation.action.value, model, moment.now)
                asker, candidates = await self._asker(permit, connection, asked)
                listing = Listing(asked, asker, expanded=operation.expand is not None)
                page, token = await listed(
                    connection,
                    listing,
                    candidates,
                    expand=operation.expand,
                    page_token=operation.page_token,
                    page_size=min(operation.page_size or DEFAULT_ROWS, MAX_ROWS),
                )
                await go_forward(connection)
                rows = await self._described(connection, listing, page)
        if operation.at is None:
            rows = await limited(permit, self._answer_engines.decisions, page, rows)
        if operation.page_token is None and operation.expand is None and asked.profiles.holds(frozenset()):
            rows.insert(0, WhoCanRow(principal=principal_answer(_EVERYONE.type, _EVERYONE.id), reason=[]))
        answer = _answer(permit, moment, model, rows, token, self._answer_engines.authorizers)
        if operation.at is not None:
            return answer, self._past(permit, listing, model)
        checks = listing.checks()
        return answer, Unconfirmed(moment.now, list(checks), list(checks.values()), list(asked.distance))

    def _past(self, permit: Permit[WhoCan], listing: Listing, model: ActiveModel) -> Unconfirmed:
        """Return the checks of an answer about a past moment: one for each set of tuples that a candidate had."""
        asked, name = listing.asked, object_name(listing.asked.key)
        worlds = [within_limit((*asked.profiles.structure, *tuples), name) for tuples in listing.profiles]
        ask = partial(
            self._answer_engines.confirmations.alone,
            worlds,
            PROFILE_USER,
            asked.relation,
            name,
            asked.now,
            asker=permit.actor,
            model_id=model.id,
        )
        judged = list(listing.profiles.values())
        checks = [AnswerCheck(each, asked.relation, asked.key) for each, _ in judged]
        return Unconfirmed(asked.now, checks, [holds for _, holds in judged], list(asked.distance), ask)

    async def _asker(
        self, permit: Permit[WhoCan], connection: Connection, asked: AskedObject
    ) -> tuple[Asker, Candidates]:
        """Return (the rights of the caller, the candidates).

        They include the members of roles whose members it may not read, or that it may not see.
        """
        below = await roles_below(connection, asked.candidates(), now=asked.now)
        roles = [ObjectKey(ObjectType.ROLE, each) for each in below]
        if permit.operation.expand is not None:
            roles.append(ObjectKey(ObjectType.ROLE, str(permit.operation.expand)))
        objects = list(dict.fromkeys([*asked.distance, *roles]))
        related = self._door.hypothetical_checks.related
        reads = await related(permit, permit.actor, Can.READ_ASSIGNMENTS, objects)
        sees = await related(permit, permit.actor, VISIBLE_BY[ObjectType.ROLE], roles)
        # A token that is limited to a project does not reach the server.
        hidden = ObjectType.SERVER if permit.actor.within is not None else None
        readable = frozenset(key for key in compress(objects, reads) if key.type is not hidden)
        asker = Asker(readable, frozenset(compress(roles, sees)))
        opaque = [key.id for key in roles if key not in asker.readable or key not in asker.visible_roles]
        return asker, asked.candidates(below, opaque)

    @staticmethod
    async def _described(connection: Connection, listing: Listing, page: list[Principal]) -> list[WhoCanRow]:
        found = [(each, *listing.rows[each]) for each in page]
        where = await whereabouts(connection, objects_of([reason for _, reason, _ in found]))
        return [
            WhoCanRow(
                principal=principal_answer(each.type, each.id),
                resource=None if reason.object is None else resource_of(reason.object, where),
                expandable=each.type is PrincipalType.ROLE
                and ObjectKey(ObjectType.ROLE, each.id) in listing.asker.readable,
                reason=facts_of(reason, holdings, where),
                end=reason.end,
                end_unknown=reason.end_unknown,
            )
            for each, reason, holdings in found
        ]


async def listed(
    connection: Connection,
    listing: Listing,
    candidates: Candidates,
    *,
    expand: UUID | None = None,
    page_token: str | None = None,
    page_size: int,
) -> tuple[list[Principal], str | None]:
    """Return (the principals of one page, the token of the next page or None).

    Raises InvalidPaginationToken and UnknownRule.
    """
    if expand is not None:
        role = ObjectKey(ObjectType.ROLE, str(expand))
        candidates = Candidates(sought=Sought(tuple((role, each.value) for each in _ROLE_PRIVILEGES)))

    async def fetch(after: tuple[str, str] | None, limit: int) -> list[Principal]:
        last = None if after is None else Principal(PrincipalType(after[0]), after[1])
        return await holders(connection, candidates, now=listing.asked.now, after=last, limit=limit)

    return await visible_page(
        fetch,
        lambda some: listing.judge(connection, some),
        lambda each: (each.type.value, each.id),
        after=place_of(page_token, _place),
        page_size=page_size,
    )


def _place(token: str) -> tuple[str, str]:
    type, id = unpacked(token, tuple[str, str])
    if "\x00" in id:
        raise ValueError("PostgreSQL accepts no NUL in a text")
    return PrincipalType(type).value, id


def _answer(
    permit: Permit[WhoCan],
    moment: Moment,
    model: ActiveModel,
    rows: list[WhoCanRow],
    token: str | None,
    authorizers: Sequence[str],
) -> WhoCanAnswer:
    warehouse = warehouse_of(permit.resolution.get(permit.operation.on))
    return WhoCanAnswer(
        rows=rows,
        as_of=moment.now,
        revision=moment.revision,
        warehouse_revision=None if warehouse is None else warehouse.revision,
        model_id=model.id,
        staleness_seconds=0,
        token_groups_known=False,
        circumstances_known=False,
        next_page_token=token,
        not_kept=[] if permit.operation.at is None else list(NOT_KEPT),
        authorizers_not_asked=list(authorizers),
    )
