# SPDX-License-Identifier: Apache-2.0
"""Reading something through a view (`lakekeeper.md` 5.5): decided before what is read, view by view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Step
from gateway.access.refs import ViewRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class ReadThroughView(Step):
    """A view that a trusted engine reads for its reader, on the way to what the view is made of."""

    occasion: ClassVar[str] = "through"
    view: ViewRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view), Demand(Can.SELECT, self.view))

    @classmethod
    def is_of_catalog(cls) -> bool:
        """Return True: it leads to reads of the catalog alone."""
        return True
