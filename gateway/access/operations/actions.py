# SPDX-License-Identifier: Apache-2.0
"""Operations that return the catalog actions a principal may take on an object.

They are the actions of `batch-check`; those of the relationship model alone are in `rights.py`. Callers may check
themselves if they see the object in lists, and other principals if they may read the assignments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gateway.access.demand import Demand, Facts
from gateway.access.families import (
    DATA_POLICY,
    NAMESPACE_IN_WAREHOUSE,
    PROJECT_OF_REQUEST,
    ROLE,
    SERVER,
    TABULARS,
    TAG,
    WAREHOUSE,
    declare_for_each,
)
from gateway.access.operation import Audience, PublicAudience, ReadOperation
from gateway.access.refs import ObjectType, Ref, ServerRef, UserRef
from gateway.access.relations import Can
from gateway.access.request import About, InPath

#: The relation that callers need to check themselves. A member of a role may check its actions on the role.
_QUERY_RELATION: dict[ObjectType, Can] = {
    ObjectType.PROJECT: Can.GET_METADATA,
    ObjectType.WAREHOUSE: Can.INCLUDE_IN_LIST,
    ObjectType.NAMESPACE: Can.INCLUDE_IN_LIST,
    ObjectType.TABLE: Can.INCLUDE_IN_LIST,
    ObjectType.VIEW: Can.INCLUDE_IN_LIST,
    ObjectType.GENERIC_TABLE: Can.INCLUDE_IN_LIST,
    ObjectType.ROLE: Can.READ_METADATA,
    ObjectType.DATA_POLICY: Can.READ,
    ObjectType.TAG: Can.READ,
}


@dataclass(frozen=True)
class QueryActions(ReadOperation, abstract=True):
    """Return the catalog actions that a principal (the caller when None) may take on an object."""

    on: Ref
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        query_relation = _QUERY_RELATION.get(self.on.type)
        return () if query_relation is None else (Demand(query_relation, self.on),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.on,)


_ACTIONS = partial(
    declare_for_each,
    QueryActions,
    name="Get{noun}Actions",
    endpoint="GET /management/v1/{path}/actions",
    doc="Return the catalog actions that a principal may take on {words}.",
)
QUERY_ACTIONS: tuple[type[QueryActions], ...] = (
    *_ACTIONS(
        (SERVER,),
        open_to=PublicAudience(
            Audience.SELF, "the caller's own rights; a question about another principal demands can_read_assignments"
        ),
    ),
    *_ACTIONS((PROJECT_OF_REQUEST, WAREHOUSE, NAMESPACE_IN_WAREHOUSE, *TABULARS, ROLE, DATA_POLICY, TAG)),
)


@dataclass(frozen=True)
class GetUserActions(ReadOperation):
    """Return the actions that a principal may take on a user's record.

    The relationship model has no rights on single users. The actions need rights on the server, or the record is the
    caller's own.
    """

    endpoint: ClassVar[str] = "GET /management/v1/user/{user_id}/actions"
    open_to: ClassVar[PublicAudience] = PublicAudience(
        Audience.SELF, "the caller's own actions; a question about another principal demands can_list_users"
    )
    user: InPath[UserRef]
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        return () if self.principal is None else (Demand(Can.LIST_USERS, ServerRef()),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.user, ServerRef())

    def facts(self) -> Facts:
        return {"about": self.user.user_id}
