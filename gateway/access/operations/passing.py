# SPDX-License-Identifier: Apache-2.0
"""Reading something through a view (`lakekeeper.md` 5.5): decided before what is read, view by view."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import Operation
from gateway.access.refs import ViewRef
from gateway.access.relations import Can


@dataclass(frozen=True)
class ReadThroughView(Operation):
    """A view that a trusted engine reads for its reader, on the way to what the view is made of."""

    endpoint: ClassVar[str] = "THROUGH /catalog/views"
    view: ViewRef

    def demands(self) -> tuple[Demand, ...]:
        return (Demand(Can.GET_METADATA, self.view), Demand(Can.SELECT, self.view))

    @classmethod
    def is_catalog_mutation(cls) -> bool:
        """It reads, like what it leads to."""
        return False
