# SPDX-License-Identifier: Apache-2.0
"""A break-glass activation of the tests' world, and the operations on it."""

from __future__ import annotations

from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import Ref, Table, TabularRef
from gateway.access.operations.break_glass import (
    ActivateBreakGlass,
    ConfirmBreakGlass,
    EndBreakGlass,
    FindActivationToConfirm,
    FindActivationToReview,
    FindingActivation,
    FoundActivation,
    ReviewBreakGlass,
)
from gateway.access.operations.break_glass_bodies import ActivateBreakGlassRequest, ReviewBreakGlassRequest
from tests.support.door import world

REVIEWING = ReviewBreakGlassRequest(finding="justified")
_TABLE = TabularRef(Table, world.WAREHOUSE_ID, world.TABLE_ID, dropped=True)


def found(on: Ref = _TABLE) -> FoundActivation:
    """Return an activation of Bob."""
    return FoundActivation(world.TABLE_ID, world.BOB_ID, on)


def activating(request: ActivateBreakGlassRequest, on: Ref) -> ActivateBreakGlass:
    """Return the activation of `select` on an object."""
    return ActivateBreakGlass(request, on, (Privilege.SELECT,))


def activation_operation(operation: FindingActivation) -> ConfirmBreakGlass | EndBreakGlass | ReviewBreakGlass:
    """Return the operation that follows one that finds an activation."""
    match operation:
        case FindActivationToConfirm():
            return ConfirmBreakGlass(found())
        case FindActivationToReview():
            return ReviewBreakGlass(found(world.WAREHOUSE), operation.request)
        case _:
            return EndBreakGlass(found(), own=False)
