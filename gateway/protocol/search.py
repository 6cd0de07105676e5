# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints that search users, roles, tables and views."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Name, Request

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
