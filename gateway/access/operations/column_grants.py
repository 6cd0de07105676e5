# SPDX-License-Identifier: Apache-2.0
"""What can be asked about grants on single columns of a table, in the words of the assignments and of the grants API.

It demands of the table what the same would demand there: who may give `select` on all of it may give it on a column.
Columns are named as the current schema spells them; the grant is on the field id behind the name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gateway.access.demand import Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.grant_lists import ListingGrants
from gateway.access.operations.grants import ReadingGrants, WritingGrants
from gateway.access.privileges import Privilege
from gateway.access.refs import KeptTableRef
from gateway.access.request import InPath

_AT = "warehouse/{warehouse_id}/table/{table_id}/columns"


@dataclass(frozen=True)
class ReadColumnAssignments(ReadingGrants, ReadOperation):
    """Who holds what on a column; `privileges` narrows what is told, empty is all."""

    endpoint: ClassVar[str] = f"GET /management/v1/permissions/{_AT}/{{column}}/assignments"
    on: InPath[KeptTableRef]
    column: InPath[str]
    privileges: tuple[Privilege, ...] = ()

    def told(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True)
class WritingColumnGrants(WritingGrants):
    """Part of operations that give and take privileges on a column; policies are told its name beside the rest."""

    on: InPath[KeptTableRef]
    column: InPath[str]

    def facts(self) -> Facts:
        return {**super().facts(), "column": self.column}

    def told(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True)
class WriteColumnAssignments(WritingColumnGrants, ChangeOperation):
    """Give and take privileges on a column."""

    endpoint: ClassVar[str] = f"POST /management/v1/permissions/{_AT}/{{column}}/assignments"


@dataclass(frozen=True)
class ChangeColumnGrants(WritingColumnGrants, ChangeOperation):
    """Give and take privileges on a column; what is so already stays so."""

    endpoint: ClassVar[str] = f"POST /management/v1/{_AT}/{{column}}/grants"


@dataclass(frozen=True, kw_only=True)
class ListingColumnGrants(ListingGrants):
    """Part of operations that list the grants on a column, live or ended."""

    on: InPath[KeptTableRef]
    column: InPath[str]

    def told(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True, kw_only=True)
class ListColumnGrants(ListingColumnGrants, ReadOperation):
    """The live grants on a column."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_AT}/{{column}}/grants"


@dataclass(frozen=True, kw_only=True)
class ListColumnGrantHistory(ListingColumnGrants, ReadOperation):
    """The grants on a column that ended, and why."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_AT}/{{column}}/grants/history"


@dataclass(frozen=True, kw_only=True)
class ListTableColumnGrants(ListingGrants, ReadOperation):
    """The live grants on all columns of a table, those that were dropped too."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_AT}/grants"
    on: InPath[KeptTableRef]


WriteColumns = WriteColumnAssignments | ChangeColumnGrants
OfColumn = (
    ReadColumnAssignments | WriteColumnAssignments | ChangeColumnGrants | ListColumnGrants | ListColumnGrantHistory
)
