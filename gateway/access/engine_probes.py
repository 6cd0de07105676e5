# SPDX-License-Identifier: Apache-2.0
"""Decide by the results of probes whether an engine is trusted to enforce restrictions.

In a probe, the engine reads a canary table: a small table with random values, some of which it must hide. An engine
counts as an enforcer in a warehouse only while its last probe there passed and is recent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import msgspec

if TYPE_CHECKING:
    from gateway.access.nouns.resolved import ResolvedTable

CANARY_NAMESPACE: Final = "lakegate_probe"
"""The namespace that contains all canaries of a warehouse."""

PASSED: Final = "passed"
FAILED: Final = "failed"


class ProbeState(msgspec.Struct, frozen=True, kw_only=True):
    """The result of an engine's last probe in a warehouse, and the open probe, if any.

    `verdict` is None before the first result. Until `warn_until` an engine without a result is trusted, because its
    grant is older than the probes. While a probe is open, until `open_until`, `canary` is the name of its table.
    """

    verdict: str | None = None
    valid_until: datetime | None = None
    warn_until: datetime | None = None
    canary: str | None = None
    open_until: datetime | None = None


class ProbeRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rule which engines need a probe.

    The operator of the gateway trusts the engines with ids in `vouched` without one.
    """

    required: bool = True
    vouched: frozenset[str] = frozenset()

    def require(self, engine: str | None) -> bool:
        """Return True if this engine is trusted only after a recent, passed probe."""
        return self.required and engine not in self.vouched


class EngineProbes(msgspec.Struct, frozen=True, kw_only=True):
    """The probes of one engine, by warehouse. With `required`, the engine is not trusted without a recent result."""

    required: bool = True
    by_warehouse: Mapping[UUID, ProbeState] = MappingProxyType({})

    def trusts_on(self, table: ResolvedTable, now: datetime) -> bool:
        """Return True if the probes permit that the engine reads restricted data of the table."""
        return counts(self.by_warehouse.get(table.warehouse.id), now, required=self.required)

    def is_canary(self, table: ResolvedTable, now: datetime) -> bool:
        """Return True if the table is the canary of an open probe of this engine. It contains only values of its
        creator.

        The name is random, and known only since the probe was opened. A table that was moved to this name has former
        names. Files of another table that were registered under it are at a location with another id.
        """
        state = self.by_warehouse.get(table.warehouse.id)
        if state is None or state.canary is None or state.open_until is None or now >= state.open_until:
            return False
        identifier, former = table.identifier, table.former
        is_named = identifier.namespace.levels == (CANARY_NAMESPACE,) and identifier.name == state.canary
        return is_named and former.complete and not former.names and str(table.id) in table.location


def counts(state: ProbeState | None, now: datetime, *, required: bool) -> bool:
    """Return True if an engine with this state is an enforcer at `now`. The state is None if the engine was never
    probed.

    After a failed probe the engine is no enforcer, even if probes are not required.
    """
    if state is None or state.verdict is None:
        return not required or warned(state, now)
    if state.verdict != PASSED:
        return False
    return not required or (state.valid_until is not None and now < state.valid_until) or warned(state, now)


def warned(state: ProbeState | None, now: datetime) -> bool:
    """Return True if the engine has no recent passed probe, and is trusted only because its grant is older than the
    probes.
    """
    if state is None or state.warn_until is None or state.verdict == FAILED:
        return False
    recent = state.verdict == PASSED and state.valid_until is not None and now < state.valid_until
    return now < state.warn_until and not recent


class Standing(StrEnum):
    """The state of the trust in an engine in one warehouse, for metrics."""

    TRUSTED = "trusted"
    WARNED = "warned"
    """Trusted without a recent probe, because the grant is older than probes."""
    EXPIRING = "expiring"
    EXPIRED = "expired"
    FAILED = "failed"


def standing_of(
    state: ProbeState, now: datetime, *, required: bool, soon: timedelta
) -> tuple[Standing | None, datetime | None]:
    """Return (the state of the trust, the time at which the trust ends).

    The state is None for an engine without a result, which was never trusted. The time is None if the trust does not
    end by time. Trust that ends within `soon` is expiring.
    """
    if state.verdict == FAILED:
        return Standing.FAILED, None
    if not required:
        return Standing.TRUSTED, None
    ends = [state.warn_until, state.valid_until if state.verdict == PASSED else None]
    end = max((each for each in ends if each is not None), default=None)
    if end is None:
        return None, None
    if now >= end:
        return Standing.EXPIRED, end
    if end - now < soon:
        return Standing.EXPIRING, end
    return Standing.WARNED if warned(state, now) else Standing.TRUSTED, end


def probe_states(recorded: Any) -> dict[UUID, ProbeState]:
    """Return the probe states that a column of `gateway.db.resolver.caller` contains, by the id of the warehouse.

    Each element has the warehouse id, verdict, valid until, warn until, name of the canary, and end of the open probe.
    """
    return {
        UUID(warehouse): ProbeState(
            verdict=verdict,
            valid_until=_time(valid_until),
            warn_until=_time(warn_until),
            canary=canary,
            open_until=_time(open_until),
        )
        for warehouse, verdict, valid_until, warn_until, canary, open_until in recorded or ()
    }


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
