# SPDX-License-Identifier: Apache-2.0
"""Bodies of the endpoints that search users, roles, tables and views."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from gateway.protocol.base import Answer, Request

SearchText = Annotated[str, msgspec.Meta(max_length=64, pattern=r"^[^\x00]*(?![\s\S])$")]


class SearchRequest(Request, frozen=True):
    """`POST /search/role`, `POST /search/user` and `POST …/search-tabular`."""

    search: SearchText


class TabularId(Answer, frozen=True):
    """`{"type": "table", "id": …}`; `type` is table, view or generic-table."""

    type: str
    id: UUID


class FoundTabular(Answer, frozen=True, omit_defaults=True):
    """A table or view that was found. `distance` is 0 for a name that holds the text, up to 1; there is none of what
    was found by its id.
    """

    namespace_name: list[str]
    tabular_name: str
    tabular_id: TabularId
    distance: float | None = None


class FoundTabulars(Answer, frozen=True):
    """`POST …/search-tabular`, the best first."""

    tabulars: list[FoundTabular]
