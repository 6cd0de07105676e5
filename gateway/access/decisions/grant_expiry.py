# SPDX-License-Identifier: Apache-2.0
"""Compute the earliest time at which one of the rights behind an admitted operation expires.

Such a right may come from a grant, a role membership, a definer view (a view that is read with the rights of its
owner), or a delegation to the engine.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import msgspec
from cachetools import LRUCache

from gateway.access.actor import Actor
from gateway.access.decisions.delegation import limiting_roles, limits_end, questions_to_engine
from gateway.access.decisions.engine_trust import enforcing
from gateway.access.door.engines import Engines
from gateway.access.door.permit import Permit
from gateway.access.door.questions import key_of, refs_of
from gateway.access.nouns.refs import ObjectKey, ObjectType, Ref, column_key
from gateway.access.nouns.relations import Can
from gateway.access.nouns.resolved import Resolution, ResolvedTable
from gateway.access.operation import Operation
from gateway.access.ports import Question, Resolver
from gateway.obligations.kinds import ReadableColumns, TableRestrictions

_NEAR: Final = timedelta(minutes=20)
"""A cached expiry must be later than this from now. A new grant without an expiry changes no key of the cache, and an
earlier expiry could refuse its holder credentials: they live for 15 minutes at least.
"""


@dataclass(frozen=True, slots=True)
class _Known:
    """A cached result: the first expiry before the time `searched`, None if there is none.

    `forgotten_at` is the end of its life in the cache, by this process's monotonic clock.
    """

    first: datetime | None
    searched: datetime
    forgotten_at: float


class ExpiryCache:
    """Caches for each permit the first time at which a right that it depends on expires.

    The key contains the revisions that were read before the search, the model, the caller and the checked relations.
    Every change that lets a right expire earlier changes a revision before it is acknowledged, and every new grant with
    an expiry changes `time_boxes`. `model_id` returns the id of the model that checks use now. `entries` is the maximum
    number of entries. An entry is valid for at most `seconds`, as a cached allow is.
    """

    def __init__(
        self,
        *,
        model_id: Callable[[], str],
        entries: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._model_id = model_id
        self._seconds = seconds
        self._clock = clock
        self._known: LRUCache[Hashable, _Known] = LRUCache(maxsize=max(entries, 1))

    def key(self, resolution: Resolution, *parts: Hashable) -> Hashable | None:
        """Return the cache key of a search; None if a revision that it depends on is not known."""
        within = resolution.warehouses()
        if resolution.revision is None or resolution.time_boxes is None or None in within.values():
            return None
        return resolution.revision, resolution.time_boxes, frozenset(within.items()), self._model_id(), parts

    def searched_until(self, until: datetime) -> datetime:
        """Return the time until which to search, so that the result can be used as long as it is in the cache."""
        return until + timedelta(seconds=self._seconds)

    def find(self, key: Hashable, now: datetime, until: datetime) -> _Known | None:
        """Return the cached result of a search at least up to `until`.

        Return None if there is none, or if its expiry is near.
        """
        known = self._known.get(key)
        if known is None or self._clock() >= known.forgotten_at or known.searched < until:
            return None
        return known if known.first is None or known.first - now > _NEAR else None

    def keep(self, key: Hashable, first: datetime | None, searched: datetime, model_id: str) -> None:
        """Cache the result of a search that began under `model_id`. Do nothing if checks use another model now."""
        if self._seconds > 0 and model_id == self._model_id():
            self._known[key] = _Known(first, searched, self._clock() + self._seconds)

    @property
    def model_id(self) -> str:
        """The id of the model that checks use now."""
        return self._model_id()


@dataclass(frozen=True, slots=True)
class _Search:
    """The callers whose rights a permit depends on, and the relations that each must keep.

    `roles` ask for memberships of the caller in roles whose members see more rows. If such a membership expires, the
    permit must end.
    """

    actor: Actor
    questions: tuple[Question, ...]
    engine: Actor | None
    engine_questions: tuple[Question, ...]
    roles: tuple[Question, ...] = ()


class GrantExpiry:
    """Finds expiries by bisection: as time passes, grants only expire. `cache` keeps the results for credentials."""

    def __init__(self, resolver: Resolver, engines: Engines, cache: ExpiryCache | None = None) -> None:
        self._resolver = resolver
        self._engines = engines
        self._cache = cache

    async def first(
        self,
        permit: Permit[Operation],
        until: datetime,
        resolution: Resolution,
        held: Collection[tuple[Can, Ref]] | None = None,
    ) -> datetime | None:
        """Return the first time up to `until` at which the caller loses a relation of `permit`; None if it loses none.

        `resolution` is that of the last decision. With `held`, only these relations of the permit count. Raises
        DecisionEngineUnavailable.
        """
        search = _search(permit, resolution, permit.held if held is None else held)
        return await self._first(permit, search, until, resolution)

    async def first_for_credentials(
        self, permit: Permit[Operation], until: datetime, resolution: Resolution
    ) -> datetime | None:
        """Return the result of `first`, from the cache if possible.

        A cached result is never later than the actual expiry. It is earlier if a grant without an expiry was added
        meanwhile. Below a definer view nothing is cached: the view may be in a warehouse whose revision is not known
        here.
        """
        cache = self._cache
        search = _search(permit, resolution, permit.held)
        key = None
        if cache is not None and not permit.definer_views:
            asked = frozenset((*search.questions, *search.roles))
            key = cache.key(resolution, search.actor, asked, frozenset(search.engine_questions))
        if cache is None or key is None:
            return await self._first(permit, search, until, resolution)
        known = cache.find(key, resolution.now, until)
        if known is None:
            searched, model_id = cache.searched_until(until), cache.model_id
            first = await self._first(permit, search, searched, resolution)
            cache.keep(key, first, searched, model_id)
        else:
            first = known.first
        return first if first is not None and first <= until else None

    async def _first(
        self, permit: Permit[Operation], search: _Search, until: datetime, resolution: Resolution
    ) -> datetime | None:
        actor = search.actor
        found = await self._expiry_below_views(permit, until)
        if resolution.next_expiry is not None and resolution.next_expiry <= until:
            found.append(await self._first_loss(actor, search.questions, resolution.now, until))
        found.append(await self._of_membership(actor, resolution.now, until))
        if search.roles:
            member = msgspec.structs.replace(actor, assumed_role=None, within=None)
            found.append(await self._first_loss(member, search.roles, resolution.now, until))
        if search.engine is not None:
            # The permit must not outlive the rights of the engine that acts for the caller either.
            found.append(await self._first_loss(search.engine, search.engine_questions, resolution.now, until))
            found += await self._ends_of_limits(actor, resolution, until)
        return min((end for end in found if end is not None), default=None)

    async def _ends_of_limits(self, actor: Actor, resolution: Resolution, until: datetime) -> list[datetime | None]:
        """Return the times up to `until` at which the limits of the engine's grants stop permitting the caller.

        The first is the end of these grants, the second the end of the caller's memberships in roles that they name.
        None: no end.
        """
        limits = limits_end(actor, resolution)
        found = [limits if limits is not None and limits <= until else None]
        if roles := limiting_roles(actor, resolution):
            member = msgspec.structs.replace(actor, assumed_role=None, within=None)
            questions = [Question(Can.ASSUME, ObjectKey(ObjectType.ROLE, role)) for role in roles]
            found.append(await self._first_loss(member, questions, resolution.now, until))
        return found

    async def membership(self, permit: Permit[Operation], role_id: str, until: datetime) -> datetime | None:
        """Return the time up to `until` at which the caller's membership in a role expires; None if it does not.

        Raises DecisionEngineUnavailable.
        """
        actor = permit.resolution.acting(permit.actor)
        member = msgspec.structs.replace(actor, assumed_role=None, within=None)
        question = Question(Can.ASSUME, ObjectKey(ObjectType.ROLE, role_id))
        return await self._first_loss(member, [question], permit.resolution.now, until)

    async def _expiry_below_views(self, permit: Permit[Operation], until: datetime) -> list[datetime | None]:
        """Return the times at which the reader of each definer view may lose it; None for each that has no end.

        They are the expiry of the reader's rights on the view, the end of the reader's role membership, and the ends of
        the limits that permit the engine to act for the reader.
        """
        found: list[datetime | None] = []
        for definer_view in permit.definer_views:
            resolution = await self._resolver.resolve(refs_of((definer_view.operation,)), definer_view.actor)
            questions = [
                Question(demand.relation, key_of(demand.on, resolution)) for demand in definer_view.operation.demands()
            ]
            assumption = definer_view.assumption
            resolution = resolution.seen_by(definer_view.actor, assumption.roles if assumption is not None else ())
            reader = resolution.acting(definer_view.actor)
            found.append(await self._first_loss(reader, questions, resolution.now, until))
            found.append(await self._of_membership(reader, resolution.now, until))
            if reader.engine is not None:
                found += await self._ends_of_limits(reader, resolution, until)
        return found

    async def _of_membership(self, actor: Actor, now: datetime, until: datetime) -> datetime | None:
        """Return the time at which `actor`'s membership in its assumed role expires; None if it does not, or without
        such a role.

        The grants to the role do not include this membership.
        """
        if actor.assumed_role is None:
            return None
        member = msgspec.structs.replace(actor, assumed_role=None, within=None)
        role = ObjectKey(ObjectType.ROLE, str(actor.assumed_role))
        return await self._first_loss(member, [Question(Can.ASSUME, role)], now, until)

    async def _first_loss(
        self, actor: Actor, questions: Sequence[Question], now: datetime, until: datetime
    ) -> datetime | None:
        """Return the first expiry of a grant to `actor`, up to `until`, after which a question is no longer answered
        with True.
        """
        ends = await self._resolver.grant_expiries(actor, after=now, until=until)
        first, last = 0, len(ends)
        while first < last:
            middle = (first + last) // 2
            if all(await self._engines.check(actor, questions, ends[middle], None)):
                first = middle + 1
            else:
                last = middle
        return ends[first] if first < len(ends) else None


def _search(permit: Permit[Operation], resolution: Resolution, held: Collection[tuple[Can, Ref]]) -> _Search:
    """Return the relations `held` of the permit, and the relations that the engine needs to act for the caller."""
    actor = resolution.acting(permit.actor)
    questions = [Question(relation, key_of(on, resolution)) for relation, on in held]
    # Grants on columns expire one by one. Credentials must expire with the first of them.
    restrictions = [each for each in permit.obligations if isinstance(each, ReadableColumns)]
    questions += [
        Question(Can.READ_DATA, column_key(each.table, field)) for each in restrictions for field in each.fields
    ]
    # An exemption that expires must end the credentials that it allowed.
    questions += [Question(Can.SKIP_POLICY, ObjectKey(ObjectType.DATA_POLICY, id)) for id in sorted(permit.exempt)]
    own = {*resolution.caller_roles, *actor.group_roles} - {str(actor.assumed_role)}
    roles = tuple(Question(Can.ASSUME, ObjectKey(ObjectType.ROLE, role)) for role in sorted(own & permit.tested_roles))
    engine = actor.engine_itself()
    if engine is None:
        return _Search(actor, tuple(questions), None, (), roles)
    tables = {each.table for each in permit.obligations if isinstance(each, ReadableColumns | TableRestrictions)}
    engine_questions = [
        *(questions_to_engine(permit.operation, resolution) or ()),
        *(
            enforcing(row)
            for row in resolution.rows.values()
            if isinstance(row, ResolvedTable) and row.key.id in tables
        ),
    ]
    return _Search(actor, tuple(questions), engine, tuple(engine_questions), roles)
