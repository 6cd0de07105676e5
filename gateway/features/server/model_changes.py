# SPDX-License-Identifier: Apache-2.0
"""Change the relationship model of a running system: `lakegate model push | migrate | rollback`.

A new model is written without replacing the active one. The tuples that it needs are written while the old model stays
active. Then both models can be compared by the same checks, and one row in PostgreSQL activates the new one. Every
process reads that row at least every `NOTICED_WITHIN` seconds, and switches its OpenFGA client to the active model
(`ModelWatch`).
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import structlog

from gateway.access.actor import Actor, ActorKind
from gateway.access.dependency_errors import DatabaseUnavailable, DecisionEngineUnavailable
from gateway.access.events.unrequested_events import MODEL_ACTIVATED, MODEL_RECORDED, ModelData, event_of_model
from gateway.access.nouns.cards import ACTIONS
from gateway.access.ports import Question
from gateway.access.tuples import Principal, PrincipalType, TupleKey
from gateway.db.engine.database import Connection, Database
from gateway.db.tuples import outbox
from gateway.db.tuples.delivery import TupleDelivery
from gateway.db.warehouses import models
from gateway.db.warehouses.models import ActiveModel, RecordedModel, read_active_model
from gateway.features.principals.former_grantors import FormerGrant, former_grants
from gateway.fga.client import FgaClient
from gateway.fga.compiled import compiled_model, content_hash, missing_from, model_version
from gateway.fga.model import ModelNotReady, push_model, read_model, require_relations
from gateway.fga.relationships import FgaRelationships, to_wire

_log = structlog.get_logger("tasks.models")


class ModelWatch:
    """Keeps a process's OpenFGA client on the model that is active in PostgreSQL.

    `require_model` raises ModelNotReady if the model lacks a relation that this process needs. Then the client is
    disabled, as in an outage of OpenFGA, until another model is active. A process that cannot read the row cannot
    resolve objects either, so it decides nothing by an outdated model.
    """

    def __init__(
        self, database: Database, client: FgaClient, *, require_model: Callable[[ActiveModel], Awaitable[object]]
    ) -> None:
        self._database = database
        self._client = client
        self._fits = require_model
        self._followed: str | None = client.model_id

    async def run(self, *, every: float) -> None:
        """Check every `every` seconds until the process ends."""
        while True:
            try:
                await self.look()
            except (DatabaseUnavailable, DecisionEngineUnavailable) as outage:
                _log.warning("model.read_failed", reason=str(outage))
            except Exception:
                # The loop must survive unexpected errors; they are logged with their traceback.
                _log.exception("model.watch_failed")
            await asyncio.sleep(every)

    async def look(self) -> None:
        """Read the active model once and switch to it. Raises DatabaseUnavailable and DecisionEngineUnavailable."""
        active = await read_active_model(self._database)
        if active is None or active.model_id == self._followed:
            return
        # The old model is no longer active, even if the steps below fail. If the new model cannot be read, checks are
        # blocked.
        self._followed = None
        try:
            await self._fits(active)
        except ModelNotReady as reason:
            self._client.block_checks(str(reason))
            self._followed = active.model_id
            _log.error("model.refused", model_id=active.model_id, reason=str(reason))
        except BaseException:
            self._client.block_checks(f"The relationship model {active.model_id} is active now, but could not be read.")
            raise
        else:
            self._client.use_model(active.model_id)
            self._followed = active.model_id
            _log.info("model.switched", model_id=active.model_id, version=active.version)


#: The longest time in seconds after a switch in which a process still uses the old model. `migrate` waits for this
#: time.
NOTICED_WITHIN: Final = 1.0

#: The relations that this version of the gateway needs in any model, by type.
REQUIRED: Final[Mapping[str, Set[str]]] = {
    type.value: {each.value for each in relations} for type, relations in ACTIONS.items() if relations
}

#: The end of the recorded version of an operator's own model. The text before it is the version of the package that
#: checked the model.
OWN: Final = "+own"

_PAGE: Final = 90


class NoSuchModel(Exception):
    """No such model is recorded, or no model was active before; the message tells which."""


class TuplesNotWritten(Exception):
    """OpenFGA rejected tuples that a model needs, or their delivery is not confirmed yet."""


@dataclass(frozen=True, slots=True)
class TupleStep:
    """The tuples that a model needs and that its predecessor did not need.

    `keys(connection, after, limit)` returns (next keys in a fixed order, cursor to continue from or None at the end).
    The rows decide about each key (`gateway.db.tuples.desired_tuples`), under the key's lock. So a right that is
    revoked meanwhile stays revoked, and a repeated page is harmless. Gateways must already require the new tuples, so a
    change of this kind takes two releases (`docs/relationship-model.md`).
    """

    name: str
    keys: Callable[[Connection, str | None, int], Awaitable[tuple[Sequence[TupleKey], str | None]]]


#: The steps to complete before a model is activated, by model version.
STEPS: Final[Mapping[str, Sequence[TupleStep]]] = {
    "1.6": (TupleStep("manage_storage of warehouse owners", models.storage_managers),),
}


@dataclass(frozen=True, slots=True)
class Comparison:
    """The result of the same checks with two models. `checked` is the number of checks. `allowed_after` and
    `denied_after` list the checks that only the new or only the old model allows: principal, relation and object.
    """

    checked: int
    allowed_after: tuple[str, ...] = ()
    denied_after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class OpenFgaAddress:
    """The address of OpenFGA. `timeout` limits each call (seconds). `tls` and `ca_bundle` contain the trusted
    certificates; None means those of the system.
    """

    endpoint: str
    api_key: str | None
    store_name: str
    timeout: float
    tls: ssl.SSLContext | None = None
    ca_bundle: str | None = None


class Models:
    """The commands on models. Tests replace `steps` and `required`; their defaults are those of this version."""

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
        """Return (active model or None, all recorded models, newest first)."""
        async with self._database.read() as connection:
            return await models.active_model(connection), await models.recorded(connection)

    async def former_grants(self) -> Sequence[FormerGrant]:
        """Return the grants that their grantors could not give now. Return none if the database has no tables yet."""
        active, _ = await self.known()
        if active is None:
            return ()
        client = self._client(active.store_id, active.model_id)
        try:
            return await former_grants(self._database, FgaRelationships(client))
        finally:
            await client.aclose()

    async def push(self, *, by: str, own: Mapping[str, Any] | None = None) -> str:
        """Write a model to OpenFGA and record it, without activating it. Return its id. Idempotent.

        `own` is a compiled model that obeys `gateway.fga.model_rules`, None for the model of this version. Raises
        ModelNotReady and DecisionEngineUnavailable.
        """
        at = self._openfga
        pushed = await push_model(at.endpoint, at.api_key, at.store_name, compiled=own, ca_bundle=at.ca_bundle)
        async with self._database.transaction() as connection:
            data = ModelData(
                version=model_version() if own is None else model_version() + OWN,
                store_id=pushed.store_id,
                content_hash=content_hash(own or compiled_model()),
            )
            if await models.record(
                connection,
                model_id=pushed.model_id,
                store_id=data.store_id,
                version=data.version,
                content_hash=data.content_hash,
                by=by,
            ):
                event = event_of_model(MODEL_RECORDED, pushed.model_id, data, by=by)
                await self._database.announce(connection, [event])
        return pushed.model_id

    async def upgrade(self, *, by: str) -> str:
        """Push and activate this version's model. Return its id. Several processes may do so concurrently.

        If the operator's own model is active, it stays active: an upgrade must not replace its rules. Raises
        ModelNotReady if it lacks a relation that this version needs.
        """
        active, _ = await self.known()
        if active is not None and active.version.endswith(OWN):
            await self._require_own(active)
            return active.model_id
        pushed = await self.push(by=by)
        try:
            return await self.migrate(by=by, target=pushed)
        except models.SwitchedMeanwhile:
            return await self.migrate(by=by, target=pushed)

    async def chosen(self, target: str | None) -> str:
        """Return the id of the recorded model `target`, or of the newest one if that is None. Raises NoSuchModel."""
        return self._chosen((await self.known())[1], target).model_id

    async def compare(self, target: str, *, limit: int = 2000) -> Comparison:
        """Compare the active model with `target`: for the newest `limit` grants, check every relation that this version
        needs between holder and object. Without an active model nothing is compared.
        """
        active, _ = await self.known()
        if active is None or active.model_id == target:
            return Comparison(0)
        async with self._database.read() as connection:
            now, holders = await models.newest_holders(connection, limit=limit)
        allowed_after: list[str] = []
        denied_after: list[str] = []
        checked = 0
        old, new = self._client(active.store_id, active.model_id), self._client(active.store_id, target)
        try:
            for principal, on in holders:
                questions = [Question(relation, on) for relation in sorted(ACTIONS[on.type])]
                before, after = await asyncio.gather(
                    FgaRelationships(old).check(_as_actor(principal), questions, now=now),
                    FgaRelationships(new).check(_as_actor(principal), questions, now=now),
                )
                checked += len(questions)
                for question, was, becomes in zip(questions, before, after, strict=True):
                    if was != becomes:
                        difference = f"{principal.type} {principal.id}: {question.relation} on {on.type} {on.id}"
                        (allowed_after if becomes else denied_after).append(difference)
        finally:
            await old.aclose()
            await new.aclose()
        return Comparison(checked, tuple(allowed_after), tuple(denied_after))

    async def migrate(self, *, by: str, target: str | None = None) -> str:
        """Activate the recorded model `target`, or the newest one if that is None. Return its id. An interrupted call
        can be repeated.

        Returns after every connected process has had time to switch. On an error the active model does not change.

        Raises:
        - ModelNotReady: the model lacks a required relation.
        - NoSuchModel: it is not recorded.
        - TuplesNotWritten: a step is not finished.
        - SwitchedMeanwhile: another process activated a model first.
        """
        active, recorded = await self.known()
        chosen = self._chosen(recorded, target)
        await self._require(chosen)
        if active is not None and active.model_id == chosen.model_id:
            return chosen.model_id
        # A store without tuples gets all tuples from `authz reconcile`, which recognizes a new store because it is
        # empty. If it contained the tuples of these steps only, all other grants would look revoked.
        if active is None or active.store_id == chosen.store_id:
            for step in self._steps.get(chosen.version.removesuffix(OWN), ()):
                await self._run_step(step, chosen)
        await self._switch(chosen, expected=active.model_id if active else None, by=by)
        return chosen.model_id

    async def rollback(self, *, by: str) -> str:
        """Activate the previously active model. Return its id. A second call undoes the first.

        Raises NoSuchModel if there is none, and ModelNotReady if it lacks a required relation.
        """
        active, recorded = await self.known()
        if active is None or active.previous_id is None:
            raise NoSuchModel("There is no earlier model to return to.")
        previous = self._chosen(recorded, active.previous_id)
        await self._require(previous)
        await self._switch(previous, expected=active.model_id, by=by)
        return previous.model_id

    def _chosen(self, recorded: Sequence[RecordedModel], target: str | None) -> RecordedModel:
        for each in recorded:
            if target is None or each.model_id == target:
                return each
        raise NoSuchModel(
            "No model is recorded; run `lakegate model push` first."
            if target is None
            else f"No model {target} is recorded; list the models with `lakegate model status`."
        )

    async def _require_own(self, active: ActiveModel) -> None:
        at = self._openfga
        found = await read_model(at.endpoint, at.api_key, active.store_id, active.model_id, ca_bundle=at.ca_bundle)
        missing = missing_from(found, self._required)
        if missing:
            raise ModelNotReady(
                f"The active model {active.model_id} is an own model, based on {active.version.removesuffix(OWN)}. It "
                f"lacks {', '.join(missing)}, which this version requires. Add your rules to the model of this version "
                f"(`lakegate init model DIRECTORY`), then run `lakegate model push DIRECTORY` and `lakegate model "
                "migrate`. Without a directory, `lakegate model push` records the model of this version."
            )

    async def _require(self, model: RecordedModel) -> None:
        at = self._openfga
        found = await read_model(at.endpoint, at.api_key, model.store_id, model.model_id, ca_bundle=at.ca_bundle)
        require_relations(model.model_id, found, self._required)

    async def _switch(self, to: RecordedModel, *, expected: str | None, by: str) -> None:
        data = ModelData(version=to.version, store_id=to.store_id, content_hash=to.content_hash, previous_id=expected)
        async with self._database.transaction() as connection:
            await models.switch(connection, to=to.model_id, expected=expected, by=by)
            await self._database.announce(connection, [event_of_model(MODEL_ACTIVATED, to.model_id, data, by=by)])
        if expected is not None:
            await asyncio.sleep(2 * self._noticed_within)

    async def _run_step(self, step: TupleStep, model: RecordedModel) -> None:
        """Write the tuples of a step with the new model, page by page, starting at the recorded cursor."""
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
                # The cursor advances after the delivery, so a page that a crash interrupted is repeated, never skipped.
                async with self._database.transaction() as connection:
                    waiting = await models.undelivered(connection, pending)
                    if waiting:
                        raise TuplesNotWritten(
                            f"{waiting} tuples of the step {step.name!r} are not in OpenFGA yet; run the command again."
                        )
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
    """An observer that records nothing, because only serving processes have metrics."""

    def tuple_delivered(self, seconds: float) -> None:
        """Do nothing."""

    def outbox_counted(self, pending: int) -> None:
        """Do nothing."""
