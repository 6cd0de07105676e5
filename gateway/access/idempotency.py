# SPDX-License-Identifier: Apache-2.0
"""Requests with an idempotency key: one effect however often they are sent.

A key is claimed before the request begins and fulfilled in the transaction of its change, so the record and the change
cannot differ. Only successes are recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.refs import Ref
from gateway.access.resolved import Resolution
from gateway.iceberg.errors import UnprocessableEntityException


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatableRequest:
    """Identify a request: its principal, target and key. `digest` is that of the body."""

    actor: Actor
    operation: str
    method: str
    path: str
    key: UUID
    digest: bytes

    @property
    def scope(self) -> bytes:
        """The key in the namespace of its principal, method and path: 32 bytes."""
        parts = (self.actor.kind.value, self.actor.id, self.actor.guise, self.method, self.path, str(self.key))
        return hashlib.sha256(b"".join(len(p := part.encode()).to_bytes(4, "big") + p for part in parts)).digest()


@dataclass(slots=True)
class Claim:
    """One attempt at such a request. `fulfilled` becomes true when its success was committed."""

    scope: bytes
    attempt: UUID
    keep_seconds: float
    fulfilled: bool = False


@dataclass(frozen=True, slots=True)
class Remembered:
    """Hold a success that was committed earlier: its status, and the details of its audit record."""

    status: int
    detail: Mapping[str, str]
    transaction: int

    def require_same(self, refs: Sequence[Ref], resolution: Resolution) -> None:
        """Raise 422 when a reference means another object than the one that was made or changed: that one is gone, and
        another has its name now.
        """
        for ref in refs:
            row, done = resolution.get(ref), self.detail.get(f"{ref.type.value}_id")
            if row is not None and done is not None and row.key.id != done:
                raise UnprocessableEntityException(
                    f"What was done under this idempotency key was done to a {ref.type.value} that is gone; another "
                    "has its name now."
                )


class Repetitions(Protocol):
    """Remembers the successes of repeatable requests."""

    async def begin(self, request: RepeatableRequest) -> Claim | Remembered:
        """Claim the key. Raises RequestInProgress (409) and UnprocessableEntityException (422) for another body."""
        ...

    async def give_up(self, claim: Claim) -> None:
        """Free the key of an attempt that failed; nothing is raised when that cannot be done, the claim runs out."""
        ...

    async def finish(self, remembered: Remembered) -> None:
        """Deliver the tuples that the change enqueued. Raises DecisionEngineUnavailable or DatabaseUnavailable."""
        ...
