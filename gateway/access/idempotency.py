# SPDX-License-Identifier: Apache-2.0
"""Idempotency keys: a request with a key takes effect once, however often it is sent.

A key is claimed before the request begins. The transaction of the change records the success under the key, so the
record and the change cannot differ. Only successes are recorded.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from gateway.access.actor import Actor
from gateway.access.nouns.refs import Ref
from gateway.access.nouns.resolved import Resolution
from gateway.iceberg.errors import UnprocessableEntityException


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatableRequest:
    """A request with an idempotency key. `digest` is the digest of its body."""

    actor: Actor
    operation: str
    method: str
    path: str
    key: UUID
    digest: bytes

    @property
    def scope(self) -> bytes:
        """The SHA-256 (32 bytes) of the idempotency key together with the principal, method and path."""
        parts = (self.actor.kind.value, self.actor.id, self.actor.acting_as, self.method, self.path, str(self.key))
        return hashlib.sha256(b"".join(len(p := part.encode()).to_bytes(4, "big") + p for part in parts)).digest()


@dataclass(slots=True)
class Claim:
    """One attempt at a request with an idempotency key. `fulfilled` becomes True when the success was committed."""

    scope: bytes
    attempt: UUID
    keep_seconds: float
    fulfilled: bool = False


@dataclass(frozen=True, slots=True)
class RecordedSuccess:
    """An earlier, committed success: its status, the details of its audit record, and its transaction."""

    status: int
    detail: Mapping[str, str]
    transaction: int

    def require_same(self, refs: Sequence[Ref], resolution: Resolution) -> None:
        """Raise UnprocessableEntityException if a reference means another object than in the recorded success.

        That happens if the recorded object was dropped or renamed since, and another object has its name now.
        """
        for ref in refs:
            row, done = resolution.get(ref), self.detail.get(f"{ref.type.value}_id")
            if row is not None and done is not None and row.key.id != done:
                raise UnprocessableEntityException(
                    f"The request with this idempotency key changed a {ref.type.value} that was dropped or renamed "
                    "since. Another object has that name now. Send the request with a new idempotency key."
                )


class IdempotencyStore(Protocol):
    """Stores the successes of requests with idempotency keys."""

    async def begin(self, request: RepeatableRequest) -> Claim | RecordedSuccess:
        """Claim the key for this attempt. If a success is recorded under the key, return it instead.

        Raises RequestInProgress (409), and UnprocessableEntityException (422) if the key was used with another body.
        """
        ...

    async def release(self, claim: Claim) -> None:
        """Release the key after a failed attempt.

        If releasing fails, no error is raised, and the claim expires later.
        """
        ...

    async def finish(self, recorded_success: RecordedSuccess) -> None:
        """Deliver the tuples that the recorded change enqueued.

        Raises DecisionEngineUnavailable or DatabaseUnavailable.
        """
        ...
