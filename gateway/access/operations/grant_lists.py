# SPDX-License-Identifier: Apache-2.0
"""What can be asked of the grants API (`lakekeeper.md` 3.7): grants with who gave them, when, why and until when.

It demands what the assignments API demands (`grants.py`); writing is idempotent here. Roles are an addition of ours,
and so are the history and the list of all that one principal holds, which the reference system answers with 501.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from uuid import UUID

from gateway.access.demand import Demand, Facts
from gateway.access.families import (
    KEPT_TABULARS,
    NAMESPACE_IN_WAREHOUSE,
    PROJECT_OF_REQUEST,
    ROLE,
    SERVER,
    WAREHOUSE,
    one_for_each,
)
from gateway.access.operation import Audience, ChangeOperation, OpenTo, ReadOperation
from gateway.access.operations.grants import ReadingGrants, WritingGrants
from gateway.access.refs import Ref, RoleRef, ServerRef
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.request import About, OfRequest, PageSize, PageToken
from gateway.access.tuples import PrincipalType


@dataclass(frozen=True)
class Paged:
    """Part of operations that answer by page: where to go on and how many at most (None for the largest page)."""

    page_token: PageToken = None
    page_size: PageSize = None


@dataclass(frozen=True)
class ListingGrants(Paged, ReadingGrants):
    """Part of operations that list grants, live or ended."""


@dataclass(frozen=True)
class ListPrivileges(ReadOperation, abstract=True):
    """The privileges of an object type and which of them the caller may give, for callers that see the object or manage
    its grants.
    """

    on: Ref

    def demands(self) -> tuple[Demand, ...]:
        visible_by = VISIBLE_BY.get(self.on.type)
        if visible_by is None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)


@dataclass(frozen=True)
class ListPrincipalGrants(ReadOperation):
    """Everything one principal (the caller when None) holds in a project and on the server.

    Of oneself everybody asks. What a user holds in the project is told to who may read its assignments, and on the
    server to who may read those; what a role holds also to its members: it is theirs.
    """

    endpoint: ClassVar[str] = "GET /management/v1/grants"
    open_to: ClassVar[OpenTo] = OpenTo(Audience.SELF, "about oneself; asking about others demands can_read_assignments")
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

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.project,)

    def facts(self) -> Facts:
        return {"about": "" if self.principal is None else f"{self.principal.type}:{self.principal.id}"}


@dataclass(frozen=True)
class ListGrants(ListingGrants, ReadOperation, abstract=True):
    """The live grants on an object."""


@dataclass(frozen=True)
class ListGrantHistory(ListingGrants, ReadOperation, abstract=True):
    """The grants on an object that ended, and why."""


@dataclass(frozen=True)
class ChangeGrants(WritingGrants, ChangeOperation, abstract=True):
    """Give and take privileges on an object; what is so already stays so."""


_ALL = (SERVER, PROJECT_OF_REQUEST, WAREHOUSE, NAMESPACE_IN_WAREHOUSE, *KEPT_TABULARS, ROLE)
LIST_GRANTS: tuple[type[ListGrants], ...] = one_for_each(
    ListGrants,
    _ALL,
    name="List{noun}Grants",
    endpoint="GET /management/v1/{path}/grants",
    doc="The live grants on {words}.",
)
LIST_GRANT_HISTORY: tuple[type[ListGrantHistory], ...] = one_for_each(
    ListGrantHistory,
    _ALL,
    name="List{noun}GrantHistory",
    endpoint="GET /management/v1/{path}/grants/history",
    doc="The grants on {words} that ended, and why.",
)
LIST_PRIVILEGES: tuple[type[ListPrivileges], ...] = one_for_each(
    ListPrivileges,
    _ALL,
    name="List{noun}Privileges",
    endpoint="GET /management/v1/{path}/grants/grantable-privileges",
    doc="The privileges that exist on {words}, and which of them the caller may give.",
)
CHANGE_GRANTS: tuple[type[ChangeGrants], ...] = one_for_each(
    ChangeGrants,
    _ALL,
    name="Change{noun}Grants",
    endpoint="POST /management/v1/{path}/grants",
    doc="Give and take privileges on {words}; what is so already stays so.",
)
