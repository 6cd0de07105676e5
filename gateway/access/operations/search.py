# SPDX-License-Identifier: Apache-2.0
"""The operation that searches tables and views by name."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar
from uuid import UUID

import msgspec

from gateway.access.bodies import Answer, Name, Request
from gateway.access.demand import Demand
from gateway.access.nouns.refs import WarehouseRef
from gateway.access.nouns.relations import Can
from gateway.access.operation import QuestionOperation
from gateway.access.request import Body, InPath


@dataclass(frozen=True)
class SearchTabular(QuestionOperation):
    """Search the tables and views of a warehouse that the caller sees, by name, path, id or tag."""

    endpoint: ClassVar[str] = "POST /management/v1/warehouse/{warehouse_id}/search-tabular"
    # Read-only, although the method is POST: the operation searches.
    warehouse: InPath[WarehouseRef]
    text: Annotated[str, Body(SearchTabularRequest, "search")]
    tag: Annotated[str | None, Body(SearchTabularRequest, "tag")] = None

    @property
    def by_all(self) -> Can:
        """Return the relation with which every row is visible. A search by tag reveals tags, which are metadata."""
        return Can.LIST_EVERYTHING if self.tag is None else Can.DESCRIBE_EVERYTHING

    def demands(self) -> tuple[Demand, ...]:
        return (
            Demand(Can.USE, self.warehouse),
            Demand(self.by_all, self.warehouse, required=False),
        )


SearchText = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[^\x00]*(?![\s\S])$")]


class SearchRequest(Request, frozen=True):
    """Request of `POST /search/role` and `POST /search/user`."""

    search: SearchText


class SearchTabularRequest(SearchRequest, frozen=True):
    """Request of `POST …/search-tabular`. With `tag`, only tables and views with this tag are found: it is attached to
    the object, to one of its columns, to a namespace above, or to the warehouse. `search` may then be empty.
    """

    tag: Name | None = None


class TabularId(Answer, frozen=True):
    """The type and id of an object. `type` is `table`, `view` or `generic-table`."""

    type: str
    id: UUID


class FoundTabular(Answer, frozen=True, omit_defaults=True):
    """A table or view that matches the search. `distance` is between 0 (the name contains the text) and 1. It is absent
    for an object that was found by its id.
    """

    namespace_name: list[str]
    tabular_name: str
    tabular_id: TabularId
    distance: float | None = None


class FoundTabulars(Answer, frozen=True):
    """Response of `POST …/search-tabular`: the best matches first."""

    tabulars: list[FoundTabular]
