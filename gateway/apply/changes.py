# SPDX-License-Identifier: Apache-2.0
"""The changes of a plan, and the error for those that the gateway has no request for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gateway.apply.state import Address, Resource


class Action(StrEnum):
    """Name what a change does. The value is its sign in a printed plan."""

    CREATE = "+"
    UPDATE = "~"
    REMOVE = "-"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A field with its value before and after the change. None as `after` removes a property."""

    name: str
    before: Any
    after: Any


@dataclass(frozen=True, slots=True)
class Change:
    """One change of one resource. `desired` is None for a removal."""

    action: Action
    address: Address
    fields: tuple[FieldChange, ...] = ()
    desired: Resource | None = None


class NotChangeable(Exception):
    """The file states another value for a field that cannot change in this way, or lacks one that a creation needs."""
