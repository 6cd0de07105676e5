# SPDX-License-Identifier: Apache-2.0
"""Operations that return the actions a principal may take on an object.

`access` returns all actions and is deprecated in Lakekeeper. `authorizer-actions` returns those of the relationship
model alone: granting rights, managed access, acting as a role. Callers may check themselves if they see the object or
manage its grants, and other principals if they may read its assignments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.families import (
    DATA_POLICY,
    DEFAULT_PROJECT,
    NAMESPACE,
    PROJECT,
    ROLE,
    SERVER,
    TABULARS,
    TAG_PERMISSIONS,
    WAREHOUSE,
    declare_for_each,
)
from gateway.access.operation import Audience, PublicAudience, ReadOperation
from gateway.access.refs import Ref
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.request import About


@dataclass(frozen=True)
class QueryRights(ReadOperation, abstract=True):
    """Return the actions that a principal (the caller when None) may take on an object."""

    authorizer_only: ClassVar[bool]
    on: Ref
    principal: About = None

    def demands(self) -> tuple[Demand, ...]:
        visible_by = VISIBLE_BY.get(self.on.type)
        if self.principal is not None:
            return (Demand(Can.READ_ASSIGNMENTS, self.on),)
        if visible_by is None:
            return ()
        return (Demand(visible_by, self.on, alternative=Can.READ_ASSIGNMENTS),)

    def further_refs(self) -> tuple[Ref, ...]:
        return (self.on,)


_OPEN_TO_SELF = "the caller's own rights; a question about another principal demands can_read_assignments"
_OTHERS = (DEFAULT_PROJECT, PROJECT, WAREHOUSE, NAMESPACE, *TABULARS, ROLE, DATA_POLICY, TAG_PERMISSIONS)
_ACCESS = partial(
    declare_for_each,
    QueryRights,
    name="Get{noun}Access",
    endpoint="GET /management/v1/permissions/{path}/access",
    doc="Return the actions that a principal may take on {words}.",
    authorizer_only=False,
)
_AUTHORIZER_ACTIONS = partial(
    declare_for_each,
    QueryRights,
    name="Get{noun}AuthorizerActions",
    endpoint="GET /management/v1/permissions/{path}/authorizer-actions",
    doc="Return the actions of the relationship model alone that a principal may take on {words}.",
    authorizer_only=True,
)
QUERY_RIGHTS: tuple[type[QueryRights], ...] = (
    *_ACCESS((SERVER,), open_to=PublicAudience(Audience.SELF, _OPEN_TO_SELF)),
    *_ACCESS(_OTHERS),
    *_AUTHORIZER_ACTIONS((SERVER,), open_to=PublicAudience(Audience.SELF, _OPEN_TO_SELF)),
    *_AUTHORIZER_ACTIONS(_OTHERS),
)
