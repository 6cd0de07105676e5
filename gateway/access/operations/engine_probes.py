# SPDX-License-Identifier: Apache-2.0
"""Operations on probes of engines. Principals that may grant `enforcer` on the warehouse create and finish them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.change_event import ChangeEvent, EventDeclaration, NoEvent
from gateway.access.demand import Demand, Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.refs import WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import InBody, InPath
from gateway.protocol.engine_probes import CreateEngineProbeRequest, EngineProbeResultRequest

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
