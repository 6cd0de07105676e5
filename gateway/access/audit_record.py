# SPDX-License-Identifier: Apache-2.0
"""The audit record: the caller, the operation, the decision and its reason. The vocabulary of each field is closed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from uuid import UUID

import msgspec

AUDIT_FORMAT = 1


class AuditedActor(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The caller, and the engine that acts for it. `subject_proven` is false if the engine asserted the caller.

    Below a view that is read with its owner's rights, `id` is that owner and `asked_by` the caller.
    """

    kind: str
    id: str
    assumed_role: str | None = None
    engine: str | None = None
    subject_proven: bool = True
    asked_by: str | None = None


class AuditedResource(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """An object of a decision: its name as in the request, and its id if it exists."""

    type: str
    id: str | None = None
    name: str | None = None
    warehouse_id: str | None = None


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Summary of list entries that exceed the size limit: their number, and the SHA-256 of the whole list.

    The digest is that of the list's compact JSON as the record would contain it (`audit_size.digest`).
    """

    count: int
    sha256: str


class AuditedDecision(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The decision on one operation. `failure` is the true reason, which the answer may hide."""

    operation: str
    outcome: str
    determined_by: str
    relations: tuple[str, ...] = ()
    resources: tuple[AuditedResource, ...] = ()
    failure: str | None = None
    policy_reasons: tuple[str, ...] = ()
    obligations: Mapping[str, int | bool] = {}
    resources_left_out: LeftOut | None = None
    policy_reasons_left_out: LeftOut | None = None


class AuditRecord(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One admission by the door. Use cases fill `detail` with what they vended or changed."""

    id: UUID
    format: int
    at: datetime
    request_id: str
    actor: AuditedActor
    decisions: tuple[AuditedDecision, ...]
    client_request_id: str | None = None
    """The `x-request-id` that the caller sent: any text, and not necessarily unique."""
    trace_id: str | None = None
    """The id of the trace, if the request is recorded by a tracer or its client sent the id."""
    user_agent: str | None = None
    client_address: str | None = None
    detail: Mapping[str, str] = {}
    decisions_left_out: LeftOut | None = None
    detail_left_out: Mapping[str, LeftOut] = {}

    @property
    def operation(self) -> str:
        """The first operation of the request."""
        return self.decisions[0].operation

    @property
    def outcome(self) -> str:
        """The outcome of the first operation of the request."""
        return self.decisions[0].outcome
