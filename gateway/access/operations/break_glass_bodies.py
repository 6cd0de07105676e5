# SPDX-License-Identifier: Apache-2.0
"""Bodies and statuses of break-glass activations."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, StrictRequest
from gateway.access.operations.access_request_bodies import AccessObject, Reason
from gateway.access.operations.grants import GrantedOn, GrantedTo

EmergencyPrivilege = Literal["describe", "select", "modify"]
Minutes = Annotated[int, msgspec.Meta(ge=15, le=60)]


class ActivationStatus(StrEnum):
    """The state of an activation. Its rights are in force only while it is active."""

    PENDING = "pending"
    """Another holder of `break_glass`, or a principal that secures the project, has to confirm it."""
    ACTIVE = "active"
    ENDED = "ended"
    """It ended, and its review is open."""
    LAPSED = "lapsed"
    """It was withdrawn, or not confirmed in time. It never gave a right."""
    REVIEWED = "reviewed"


class ActivateBreakGlassRequest(StrictRequest, frozen=True):
    """Request of `POST /access/break-glass`. The object is a warehouse, or an object in one."""

    object: AccessObject
    privileges: Annotated[tuple[EmergencyPrivilege, ...], msgspec.Meta(min_length=1, max_length=3)]
    reason: Reason
    minutes: Minutes
    second_person: bool = False
    """True to wait for a second person also if the server does not demand it."""


class ReviewBreakGlassRequest(StrictRequest, frozen=True):
    """Request of `POST …/review`."""

    finding: Reason


class BreakGlassActivation(Answer, frozen=True, omit_defaults=True, kw_only=True):
    """An activation. `name` is the name of the object at its start. `ends-at` is the expiry of its grants."""

    id: UUID
    status: ActivationStatus
    principal: GrantedTo
    object: GrantedOn
    name: str
    privileges: list[str]
    reason: str
    minutes: int
    created_at: datetime
    confirmed_by: str | None = None
    activated_at: datetime | None = None
    ends_at: datetime | None = None
    ended_by: str | None = None
    ended_at: datetime | None = None
    reviewed_by: str | None = None
    reviewed_at: datetime | None = None
    finding: str | None = None


class BreakGlassList(Answer, frozen=True, omit_defaults=True):
    """Response of `GET /access/break-glass`: the oldest activations first."""

    activations: list[BreakGlassActivation]
    next_page_token: str | None = None
