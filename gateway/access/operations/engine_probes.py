# SPDX-License-Identifier: Apache-2.0
"""Operations on probes, which test whether an engine enforces row filters, masks and withheld columns.

Only principals that may grant `enforcer` on the warehouse open and finish probes.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, ClassVar, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest, UserId
from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration, NoEvent
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.request import InBody, InPath

_PROBES = "/management/v1/warehouse/{warehouse_id}/engine-probe"


@dataclass(frozen=True)
class _OfEngineProbes:
    """Mixin of operations on the probes in a warehouse."""

    warehouse: InPath[WarehouseRef]

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GRANT_ENFORCER, self.warehouse),)


@dataclass(frozen=True)
class ListEngineProbes(_OfEngineProbes, ReadOperation):
    """List the engines that were probed in a warehouse, with the results."""

    endpoint: ClassVar[str] = f"GET {_PROBES}"


@dataclass(frozen=True)
class CreateEngineProbe(_OfEngineProbes, ChangeOperation):
    """Open a probe of an engine. It replaces an open probe of the same engine in this warehouse."""

    endpoint: ClassVar[str] = f"POST {_PROBES}"
    event: ClassVar[EventDeclaration] = NoEvent("it changes no object; the result has an event")
    returns: ClassVar[int] = 201
    request: InBody[CreateEngineProbeRequest]

    def facts(self) -> Facts:
        return {"engine": self.request.engine}


@dataclass(frozen=True)
class RunEngineProbe(_OfEngineProbes, ChangeOperation):
    """Read the canary of an open probe through the engine, at the address in the settings, and store the verdict."""

    endpoint: ClassVar[str] = f"POST {_PROBES}/{{probe_id}}/run"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    probe_id: InPath[UUID]

    def facts(self) -> Facts:
        return {"probe_id": str(self.probe_id)}


@dataclass(frozen=True)
class RecordEngineProbe(_OfEngineProbes, ChangeOperation):
    """Compare a posted output of an engine with the values of its open probe: a self-test. A pass gives no trust."""

    endpoint: ClassVar[str] = f"POST {_PROBES}/{{probe_id}}/result"
    event: ClassVar[EventDeclaration] = ChangeEvent(on="warehouse")
    probe_id: InPath[UUID]
    request: InBody[EngineProbeResultRequest]

    def facts(self) -> Facts:
        return {"probe_id": str(self.probe_id)}


MAX_OUTPUT = 65_536
"""The largest number of characters of an engine's output. A canary has a few short rows."""

Restriction = Literal["data-policies"]


class CreateEngineProbeRequest(StrictRequest, frozen=True):
    """Request of `POST …/engine-probe`.

    `restriction` is the kind of restriction that the engine has to enforce: a column grant, a mask and a row filter.
    """

    engine: UserId
    restriction: Restriction = "data-policies"


class CanaryRow(Answer, frozen=True):
    """A row of the canary. An engine must show only rows with `kept`.

    In these, it must show `shown`, and `masked` as the action `show-last-4` masks it. It must never show `hidden`.
    """

    shown: str
    masked: str
    hidden: str
    kept: bool


class EngineProbeChallenge(Answer, frozen=True, omit_defaults=True):
    """Response of `POST …/engine-probe`: the table to create, and its rows.

    `user` and `control` are the test users of the engine in the settings of the gateway, absent if the settings have no
    address of the engine. `…/run` then reads the table through the engine as both: grant `control` `select` on the
    whole table.

    The table has the columns `shown`, `masked` and `hidden` of the type string, and `kept` of the type boolean. The
    caller grants a user `select` on all columns but `hidden`. For this user, data policies mask `masked` with
    `show-last-4`, and keep only rows with `kept`. The caller has the engine read the table for the user, and posts the
    output before `expires-at`.
    """

    id: UUID
    engine: str
    warehouse_id: UUID
    restriction: Restriction
    namespace: list[str]
    table: str
    rows: list[CanaryRow]
    expires_at: datetime
    user: str | None = None
    control: str | None = None


class EngineProbeResultRequest(StrictRequest, frozen=True):
    """Request of `POST …/engine-probe/{probe_id}/result`: everything that the engine returned, as text. It is a
    self-test, because the caller knows the values: a pass gives no trust, and a failure ends it.
    """

    output: Annotated[str, msgspec.Meta(max_length=MAX_OUTPUT)]


class EngineProbe(Answer, frozen=True, omit_defaults=True):
    """The state of an engine in a warehouse.

    `trusted` is true if the engine is an enforcer as far as its probes decide. `warned` is true if it counts only until
    `warn-until`, because its grant is older than the probes. `verdict` is that of the last probe, and `detail` its
    reason. `open-until` is present while a probe is open. `self-test` is present in the response to a posted output:
    only a failed self-test is the `verdict`.
    """

    engine: str
    warehouse_id: UUID
    trusted: bool
    warned: bool = False
    verdict: Literal["passed", "failed"] | None = None
    detail: str | None = None
    probed_at: datetime | None = None
    valid_until: datetime | None = None
    warn_until: datetime | None = None
    open_until: datetime | None = None
    self_test: Literal["passed", "failed"] | None = None


class EngineProbeList(Answer, frozen=True):
    """Response of `GET …/engine-probe`: the engines of the warehouse in alphabetical order."""

    engine_probes: list[EngineProbe]
