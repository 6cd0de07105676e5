# SPDX-License-Identifier: Apache-2.0
"""Changing the relationship model under a running system: `lakegate model push | migrate | rollback`.

A model is written next to the one that serves, the tuples it needs are written while the old one goes on serving, both
are asked the same questions, and then one row in PostgreSQL says which serves. Every process reads that row at least
every `NOTICED_WITHIN` seconds (`gateway.tasks.models`).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from gateway.access.actor import Actor, ActorKind
from gateway.access.ports import Question
from gateway.access.relations import ACTIONS
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db import models, outbox
from gateway.db.delivery import TupleDelivery
from gateway.db.engine import Connection, Database
from gateway.db.models import ActiveModel, RecordedModel
from gateway.fga.client import FgaClient
from gateway.fga.compiled import MODEL_VERSION, compiled_model, content_hash
from gateway.fga.model import push_model, read_model, require_relations
from gateway.fga.relationships import FgaRelationships, to_wire

#: How long a running process may go on with the old model after a switch (seconds); `migrate` waits for it.
NOTICED_WITHIN: Final = 1.0

#: What this version asks of any model, relations by type.
REQUIRED: Final[Mapping[str, Set[str]]] = {
    type.value: {each.value for each in relations} for type, relations in ACTIONS.items() if relations
}

_PAGE: Final = 90


class NoSuchModel(Exception):
    """No such model is recorded, or none served before; the message says which."""


class TuplesNotWritten(Exception):
    """Tuples that a model needs are refused by OpenFGA, or it is not certain yet that they are there."""


@dataclass(frozen=True, slots=True)
class TupleStep:
    """Tuples a model needs that the one before it did not.

    `keys(connection, after, limit)` gives the next keys in a fixed order and the place to go on from, None at the end.
    What becomes of a key is decided by `gateway.db.desired_tuples` as always, under the key's lock: a right that is
    revoked meanwhile stays revoked, and doing a page twice is harmless. Gateways must want the new tuples already, so
    a change of this kind takes two releases (`docs/relationship-model.md`).
    """

    name: str
    keys: Callable[[Connection, str | None, int], Awaitable[tuple[Sequence[TupleKey], str | None]]]


#: The steps before a model of this version serves, by version.
STEPS: Final[Mapping[str, Sequence[TupleStep]]] = {
    "1.6": (TupleStep("manage_storage of warehouse owners", models.storage_managers),),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """What two models say to the same questions; `gained` and `lost` name whom, what and where, from old to new."""

    asked: int
    gained: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenFgaAddress:
    """Where OpenFGA is. `timeout` bounds each call (seconds); `tls` and `ca_bundle` say whom to trust, None: whom the
    system does.
    """

    endpoint: str
    api_key: str | None
    store_name: str
    timeout: float
    tls: ssl.SSLContext | None = None
    ca_bundle: str | None = None


class Models:
    """The verbs. `steps` and `required` are this version's unless a test gives its own."""

    def __init__(
        self,
        database: Database,
        openfga: OpenFgaAddress,
        *,
        steps: Mapping[str, Sequence[TupleStep]] = STEPS,
        required: Mapping[str, Set[str]] = REQUIRED,
        noticed_within: float = NOTICED_WITHIN,
    ) -> None:
        self._database = database
        self._openfga = openfga
        self._steps = steps
        self._required = required
        self._noticed_within = noticed_within

    async def known(self) -> tuple[ActiveModel | None, Sequence[RecordedModel]]:
        """The model that serves and all that are recorded, newest first."""
        async with self._database.read() as connection:
            return await models.active_model(connection), await models.recorded(connection)

    async def push(self, *, by: str) -> str:
        """Write this version's model to OpenFGA and record it, without letting it serve; its id. Repeating changes
        nothing. Raises ModelNotReady and DecisionEngineUnavailable.
        """
        at = self._openfga
        pushed = await push_model(at.endpoint, at.api_key, at.store_name, ca_bundle=at.ca_bundle)
        async with self._database.transaction() as connection:
            await models.record(
                connection,
                model_id=pushed.model_id,
                store_id=pushed.store_id,
                version=MODEL_VERSION,
                content_hash=content_hash(compiled_model()),
                by=by,
            )
        return pushed.model_id

    async def upgrade(self, *, by: str) -> str:
        """Push this version's model and let it serve; its id. Several processes may do so at once."""
        pushed = await self.push(by=by)
        try:
            return await self.migrate(by=by, target=pushed)
        except models.SwitchedMeanwhile:
            return await self.migrate(by=by, target=pushed)

    async def chosen(self, target: str | None) -> str:
        """The id of the recorded model `target`, of the newest when None. Raises NoSuchModel."""
        return self._chosen((await self.known())[1], target).model_id

    async def compare(self, target: str, *, limit: int = 2000) -> Comparison:
        """Ask the model that serves and `target` about the newest `limit` grants: what each holder may do where he
        holds something, by every relation this version demands. Nothing to compare before a first model serves.
        """
        active, _ = await self.known()
        if active is None or active.model_id == target:
            return Comparison(0)
        async with self._database.read() as connection:
            now, holders = await models.newest_holders(connection, limit=limit)
        gained: list[str] = []
        lost: list[str] = []
        asked = 0
        old, new = self._client(active.store_id, active.model_id), self._client(active.store_id, target)
        try:
            for principal, on in holders:
                questions = [Question(relation, on) for relation in sorted(ACTIONS[on.type])]
                before, after = await asyncio.gather(
                    FgaRelationships(old).check(_as_actor(principal), questions, now=now),
                    FgaRelationships(new).check(_as_actor(principal), questions, now=now),
                )
                asked += len(questions)
                for question, was, becomes in zip(questions, before, after, strict=True):
                    if was != becomes:
                        told = f"{principal.type} {principal.id}: {question.relation} on {on.type} {on.id}"
                        (gained if becomes else lost).append(told)
        finally:
            await old.aclose()
            await new.aclose()
        return Comparison(asked, tuple(gained), tuple(lost))

    async def migrate(self, *, by: str, target: str | None = None) -> str:
        """Let `target` (the newest recorded model when None) serve; its id. Interrupted, it goes on where it was.

        Returns after every process that reads the database has had the time to notice. Raises ModelNotReady when the
        model lacks what this version demands, NoSuchModel when it is not recorded, TuplesNotWritten when a step
        is not finished, SwitchedMeanwhile when somebody else was quicker; then the old one serves on.
        """
        active, recorded = await self.known()
        chosen = self._chosen(recorded, target)
        await self._require(chosen)
        if active is not None and active.model_id == chosen.model_id:
            return chosen.model_id
        # Another store than the one that served is told of everything by `authz reconcile`, which knows it by holding
        # nothing: with a part of the tuples in it all other rights would look revoked.
        if active is None or active.store_id == chosen.store_id:
            for step in self._steps.get(chosen.version, ()):
                await self._do(step, chosen)
        await self._switch(to=chosen.model_id, expected=active.model_id if active else None, by=by)
        return chosen.model_id

    async def rollback(self, *, by: str) -> str:
        """Let the model serve that did before the present one; its id. A second time undoes the first.

        Raises NoSuchModel when there is none, ModelNotReady when it lacks what this version of the gateway demands.
        """
        active, recorded = await self.known()
        if active is None or active.previous_id is None:
            raise NoSuchModel("No model served before the present one.")
        previous = self._chosen(recorded, active.previous_id)
        await self._require(previous)
        await self._switch(to=previous.model_id, expected=active.model_id, by=by)
        return previous.model_id

    def _chosen(self, recorded: Sequence[RecordedModel], target: str | None) -> RecordedModel:
        for each in recorded:
            if target is None or each.model_id == target:
                return each
        raise NoSuchModel(
            "No model is recorded; run `lakegate model push`." if target is None else f"No model {target} is recorded."
        )

    async def _require(self, model: RecordedModel) -> None:
        at = self._openfga
        found = await read_model(at.endpoint, at.api_key, model.store_id, model.model_id, ca_bundle=at.ca_bundle)
        require_relations(model.model_id, found, self._required)

    async def _switch(self, *, to: str, expected: str | None, by: str) -> None:
        async with self._database.transaction() as connection:
            await models.switch(connection, to=to, expected=expected, by=by)
        if expected is not None:
            await asyncio.sleep(2 * self._noticed_within)

    async def _do(self, step: TupleStep, model: RecordedModel) -> None:
        """Write the tuples of a step by the new model's rules, page by page from where it was left."""
        client = self._client(model.store_id, model.model_id)

        async def write(writes: Mapping[TupleKey, datetime | None], deletes: Sequence[TupleKey]) -> None:
            tuples = [to_wire(key, expires_at=end) for key, end in writes.items()]
            await client.write(tuples, [to_wire(key) for key in deletes])

        delivery = TupleDelivery(self._database, write, _Unobserved())
        try:
            while True:
                async with self._database.transaction() as connection:
                    progress = await models.step_progress(connection, model.model_id, step.name)
                    if progress.done:
                        return
                    keys, cursor = await step.keys(connection, progress.cursor, _PAGE)
                    pending = await outbox.enqueue(connection, keys, takes_away=False)
                await delivery.deliver(pending)
                # After the delivery: what a crash leaves undone is done again, never skipped.
                async with self._database.transaction() as connection:
                    waiting = await models.undelivered(connection, pending)
                    if waiting:
                        raise TuplesNotWritten(f"{waiting} tuples of the step {step.name!r} are not in OpenFGA yet.")
                    await models.advance_step(connection, model.model_id, step.name, cursor)
        finally:
            await client.aclose()

    def _client(self, store_id: str, model_id: str) -> FgaClient:
        at = self._openfga
        return FgaClient(at.endpoint, at.api_key, store_id, model_id, timeout_s=at.timeout, tls=at.tls)


def _as_actor(principal: Principal) -> Actor:
    if principal.type is PrincipalType.ROLE:
        return Actor(kind=ActorKind.ROLE, id="", assumed_role=UUID(principal.id))
    return Actor.user(principal.id)


class _Unobserved:
    """A delivery outside a serving process has no metrics."""

    def tuple_delivered(self, seconds: float) -> None:
        """Nobody counts."""

    def outbox_counted(self, pending: int) -> None:
        """Nobody counts."""
