# SPDX-License-Identifier: Apache-2.0
"""An access request of the tests' world, and the operations that change it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import Ref, Table, TabularRef
from gateway.access.operations.access_request_bodies import ApproveAccessRequestRequest, DenyAccessRequestRequest
from gateway.access.operations.access_requests import (
    ApproveAccessRequest,
    DenyAccessRequest,
    EndAccess,
    FindAccessRequestToApprove,
    FindAccessRequestToDeny,
    FindingAccessRequest,
    FoundAccessRequest,
    change_for,
)
from gateway.access.operations.access_reviews import ReviewGrants, ReviewGrantsRequest
from gateway.access.operations.grants import Assignment
from gateway.access.tuples import Principal, PrincipalType
from tests.support.door import world

APPROVING = ApproveAccessRequestRequest(comment="as agreed")
DENYING = DenyAccessRequestRequest(reason="no need")
_BOB = Principal(PrincipalType.USER, world.BOB_ID)
_ENDS = datetime(2031, 1, 1, tzinfo=UTC)
_TABLE = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID, dropped=True)


def found(on: Ref = _TABLE, privilege: Privilege = Privilege.SELECT) -> FoundAccessRequest:
    """Return a request of Bob."""
    return FoundAccessRequest(world.TABLE_ID, world.BOB_ID, on, (privilege,))


def approving(on: Ref = _TABLE, privilege: Privilege = Privilege.SELECT) -> ApproveAccessRequest:
    """Return the approval of a request of Bob."""
    request = found(on, privilege)
    writes = (Assignment(privilege, _BOB, "access request 1: a report", _ENDS),)
    return ApproveAccessRequest(request, change_for(request, writes=writes), APPROVING)


def approving_several() -> ApproveAccessRequest:
    """Return the approval of a bundle of two requests of Bob."""
    second = approving(world.PROJECT, Privilege.DESCRIBE)
    return replace(approving(), further=second.each)


def ending(*, own: bool = False) -> EndAccess:
    """Return the end of an access of Bob."""
    return EndAccess(found(), change_for(found(), deletes=(Assignment(Privilege.SELECT, _BOB),)), own)


def access_operation(operation: FindingAccessRequest) -> ApproveAccessRequest | DenyAccessRequest | EndAccess:
    """Return the operation that follows one that finds a request."""
    match operation:
        case FindAccessRequestToApprove():
            return approving()
        case FindAccessRequestToDeny():
            return DenyAccessRequest(found(), Privilege.SELECT, operation.request)
        case _:
            return ending()


def reviewing(request: ReviewGrantsRequest) -> ReviewGrants:
    """Return the decision of a review about a grant of Bob."""
    return ReviewGrants(request, change_for(found(), deletes=(Assignment(Privilege.SELECT, _BOB),)))
