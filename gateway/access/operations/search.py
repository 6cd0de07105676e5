# SPDX-License-Identifier: Apache-2.0
"""The search for tables and views by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from gateway.access.demand import Demand
from gateway.access.operation import QuestionOperation
from gateway.access.refs import WarehouseRef
from gateway.access.relations import Can
from gateway.access.request import Body, InPath
from gateway.protocol.search import SearchTabularRequest


@dataclass(frozen=True)
class SearchTabular(QuestionOperation):
    """Search the tables and views of a warehouse that the caller sees, by name, path, id or tag."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/search-tabular"
    # Changes nothing: it searches.
    warehouse: InPath[WarehouseRef]
    text: Annotated[str, Body(SearchTabularRequest, "search")]
    tag: Annotated[str | None, Body(SearchTabularRequest, "tag")] = None

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.USE, self.warehouse),
            Demand(Can.LIST_EVERYTHING, self.warehouse, required=False),
        )
