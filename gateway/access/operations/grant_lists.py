# SPDX-License-Identifier: Apache-2.0
"""Operations of the grants API. It shows each grant with grantor, time, reason and expiry.

They demand the same relations as the assignments API (`grants.py`), but repeating a change has no effect. Grants on
roles, the history, and the list of one principal's grants are additions. Lakekeeper responds with 501 to the history
and to the list of one principal's grants.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.events.change_event import ChangeEvent, EventDeclaration
from gateway.access.nouns.cards import CARDS, VISIBLE_BY
from gateway.access.nouns.families import (
    IN_PROJECTS,
    KEPT_TABULARS,
    NAMESPACE_IN_WAREHOUSE,
    PROJECT_OF_REQUEST,
    SERVER,
    WAREHOUSE,
    declare_for_each,
)
from gateway.access.nouns.privileges import Privilege
from gateway.access.nouns.refs import ObjectType, Ref, TableRef
from gateway.access.nouns.relations import Can
from gateway.access.nouns.role import RoleRef
from gateway.access.nouns.server import ServerRef
from gateway.access.operation import Audience, ChangeOperation, PublicAudience, ReadOperation
from gateway.access.operations.grants import ReadingGrants, WritingGrants
from gateway.access.request import About, InPath, InPathDropped, OfPrincipal, OfRequest, PageSize, PageToken
from gateway.access.tuples import PrincipalType


@dataclass(frozen=True)
class Paged:
    """Mixin of paged operations: the page token, and the page size (None for the largest)."""

    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ListingGrants(Paged, ReadingGrants):
    """Mixin of operations that list live or ended grants of one principal, or of all principals."""

    principal: OfPrincipal = None


@dataclass(frozen=True)
class ListPrivileges(ReadOperation, abstract=True):
    """List the privileges of an object type, and which of them a principal (the caller when None) may grant.

    The caller must see the object or manage its grants, and for another principal read the assignments.
    """

    on: Ref
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        visible_by = VISIBLE_BY.get(self.on.type)
        if visible_by is None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)


class ListAllPrivileges(ReadOperation):
    """List the privileges of all object types."""

    endpoint: ClassVar[str] = "GET /management/v1/grants/grantable-privileges"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.AUTHENTICATED, "the response is the same for all callers and contains no data"
    )


@dataclass(frozen=True)
class ListPrincipalGrants(ReadOperation):
    """List all grants of one principal (the caller if None) in a project and on the server.

    Callers may list their own grants. For those of another user a caller must be able to read the assignments of the
    project, and of the server for grants on the server. Grants of a role are also listed for its members.
    """

    endpoint: ClassVar[str] = "GET /management/v1/grants"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own rights; a question about another principal demands can_read_assignments"
    )
    project: OfRequest
    principal: About = None
    page_token: PageToken = None
    page_size: PageSize = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is None:
            return ()
        if self.principal.type is PrincipalType.ROLE:
            return (Demand(Can.ASSUME, RoleRef(UUID(self.principal.id)), alternative=Can.READ_ASSIGNMENTS),)
        return (
            Demand(Can.READ_ASSIGNMENTS, self.project),
            Demand(Can.READ_ASSIGNMENTS, ServerRef(), required=False),
        )

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.project,)

    def facts(self) -> Facts:
        return {"about": "" if self.principal is None else f"{self.principal.type}:{self.principal.id}"}


@dataclass(frozen=True)
class ListGrants(ListingGrants, ReadOperation, abstract=True):
    """List the live grants on an object."""


@dataclass(frozen=True)
class ListGrantHistory(ListingGrants, ReadOperation, abstract=True):
    """List the ended grants on an object, with the reason."""


@dataclass(frozen=True)
class ChangeGrants(WritingGrants, ChangeOperation, abstract=True):
    """Grant and revoke privileges on an object. Existing grants stay as they are."""

    event: ClassVar[EventDeclaration] = ChangeEvent(on="on", type="changeGrants")


_ALL = (SERVER, PROJECT_OF_REQUEST, WAREHOUSE, NAMESPACE_IN_WAREHOUSE, *KEPT_TABULARS, *IN_PROJECTS)
LIST_GRANTS: tuple[type[ListGrants], ...] = declare_for_each(
    ListGrants,
    _ALL,
    name="List{noun}Grants",
    endpoint="GET /management/v1/{path}/grants",
    doc="List the live grants on {words}.",
)
LIST_GRANT_HISTORY: tuple[type[ListGrantHistory], ...] = declare_for_each(
    ListGrantHistory,
    _ALL,
    name="List{noun}GrantHistory",
    endpoint="GET /management/v1/{path}/grants/history",
    doc="List the ended grants on {words}, with the reason.",
)
LIST_PRIVILEGES: tuple[type[ListPrivileges], ...] = declare_for_each(
    ListPrivileges,
    _ALL,
    name="List{noun}Privileges",
    endpoint="GET /management/v1/{path}/grants/grantable-privileges",
    doc="List the privileges on {words}, and which of them the caller or another principal may grant.",
)
CHANGE_GRANTS: tuple[type[ChangeGrants], ...] = declare_for_each(
    ChangeGrants,
    _ALL,
    name="Change{noun}Grants",
    endpoint="POST /management/v1/{path}/grants",
    doc="Grant and revoke privileges on {words}. Existing grants stay as they are.",
)


def change_grants_on(kind: ObjectType) -> type[ChangeGrants]:
    """Return the operation that changes the grants on an object of this type, a column excepted."""
    name = f"Change{CARDS[kind].words.title().replace(' ', '')}Grants"
    return next(each for each in CHANGE_GRANTS if each.__name__ == name)


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
    """Mixin of operations that grant and revoke privileges on a column. Policies also receive the column's name."""

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
    """Mixin of operations that list the live or ended grants on a column."""

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
