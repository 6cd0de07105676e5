# SPDX-License-Identifier: Apache-2.0
"""Operations on grants on single columns of a table, in the forms of the assignments API and of the grants API.

They demand the same relation on the table as the table's operations: a principal with the right to grant `select` on
the table may grant it on a column. Columns are named as in the current schema; the grant is on the field id behind the
name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from gateway.access.change_event import ChangeEvent, EventDeclaration
from gateway.access.demand import Facts
from gateway.access.operation import ChangeOperation, ReadOperation
from gateway.access.operations.grant_lists import ListingGrants
from gateway.access.operations.grants import ReadingGrants, WritingGrants
from gateway.access.privileges import Privilege
from gateway.access.refs import TableRef
from gateway.access.request import InPath, InPathDropped

_AT = "warehouse/{warehouse_id}/table/{table_id}/columns"


@dataclass(frozen=True)
class ReadColumnAssignments(ReadingGrants, ReadOperation):
    """Return the assignments on a column; `privileges` selects some, empty selects all."""

    endpoint: ClassVar[str] = f"GET /management/v1/permissions/{_AT}/{{column}}/assignments"
    on: InPathDropped[TableRef]
    column: InPath[str]
    privileges: tuple[Privilege, ...] = ()

    def audit_details(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True)
class WritingColumnGrants(WritingGrants):
    """Mixin of operations that grant and revoke privileges on a column. Policies also receive its name."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="changeColumnGrants")
    on: InPathDropped[TableRef]
    column: InPath[str]

    def facts(self) -> Facts:
        return {**super().facts(), "column": self.column}

    def audit_details(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True)
class WriteColumnAssignments(WritingColumnGrants, ChangeOperation):
    """Grant and revoke privileges on a column."""

    endpoint: ClassVar[str] = f"POST /management/v1/permissions/{_AT}/{{column}}/assignments"


@dataclass(frozen=True)
class ChangeColumnGrants(WritingColumnGrants, ChangeOperation):
    """Grant and revoke privileges on a column. Existing grants stay as they are."""

    endpoint: ClassVar[str] = f"POST /management/v1/{_AT}/{{column}}/grants"


@dataclass(frozen=True, kw_only=True)
class ListingColumnGrants(ListingGrants):
    """Mixin of operations that list the grants on a column, live or ended."""

    on: InPathDropped[TableRef]
    column: InPath[str]

    def audit_details(self) -> Mapping[str, str]:
        return {"column": self.column}


@dataclass(frozen=True, kw_only=True)
class ListColumnGrants(ListingColumnGrants, ReadOperation):
    """List the live grants on a column."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_AT}/{{column}}/grants"


@dataclass(frozen=True, kw_only=True)
class ListColumnGrantHistory(ListingColumnGrants, ReadOperation):
    """List the ended grants on a column, with the reason."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_AT}/{{column}}/grants/history"


@dataclass(frozen=True, kw_only=True)
class ListTableColumnGrants(ListingGrants, ReadOperation):
    """List the live grants on all columns of a table, dropped ones included."""

    endpoint: ClassVar[str] = f"GET /management/v1/{_AT}/grants"
    on: InPathDropped[TableRef]


OfColumn = (
    ReadColumnAssignments | WriteColumnAssignments | ChangeColumnGrants | ListColumnGrants | ListColumnGrantHistory
)
