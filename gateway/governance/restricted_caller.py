# SPDX-License-Identifier: Apache-2.0
"""Determine whether a change that was made restricts the caller, for the header `X-Lakegate-Restricts`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from msgspec import Struct

from gateway.access.operation import Operation
from gateway.access.permit import Permit
from gateway.iceberg.errors import CatalogError
from gateway.obligations.data_policies import AppliesTo

Answer = TypeVar("Answer", bound=Struct)

Restricts = Literal["caller", "unknown"]
"""The value of the header. `unknown`: OpenFGA did not answer after the change was made."""


@dataclass(frozen=True, slots=True)
class Stated(Generic[Answer]):
    """The body of an answer to a change, and the value of the header; None for an answer without it."""

    body: Answer
    restricts: Restricts | None


async def restricts_caller(permit: Permit[Operation], policies: Mapping[str, AppliesTo]) -> Restricts | None:
    """Return whether one of the policies restricts the caller, None if none does. The change is made already."""
    if not policies:
        return None
    try:
        standing = await permit.policy_standing(policies, permit.resolution)
    except CatalogError:
        return "unknown"
    return "caller" if standing.restricting else None
