# SPDX-License-Identifier: Apache-2.0
"""Reading through a view: decided view by view, before the object that is read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Step
from gateway.access.refs import ViewRef
from gateway.access.relations import Can
from gateway.obligations.application import Place


@dataclass(frozen=True)
class ReadThroughView(Step):
    """Read through a view: a trusted engine reads it for a user, on the way to the objects of its definition."""

    occasion: ClassVar[str] = "through"
    place: ClassVar[Place | None] = Place.SCAN
    view: ViewRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view), Demand(Can.SELECT, self.view))

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Return True: it leads to reads of the catalog alone."""
        return True
