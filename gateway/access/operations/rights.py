# SPDX-License-Identifier: Apache-2.0
"""Asking which actions somebody is allowed on an object (`lakekeeper.md` 3.6).

`access` tells all actions and is deprecated there; `authorizer-actions` those that only the relationship model knows:
handing out rights, managed access, acting as a role. About oneself everybody asks who sees the object or manages its
grants; about others who may read its assignments.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from gateway.access.demand import Demand
from gateway.access.families import DEFAULT_PROJECT, NAMESPACE, PROJECT, ROLE, SERVER, TABULARS, WAREHOUSE, one_for_each
from gateway.access.operation import Audience, OpenTo, ReadOperation
from gateway.access.refs import Ref
from gateway.access.relations import VISIBLE_BY, Can
from gateway.access.request import About


@dataclass(frozen=True)
class AskRights(ReadOperation, abstract=True):
    """Which actions a principal (the caller when None) is allowed on an object."""

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

    def looks_up(self) -> tuple[Ref, ...]:
        return (self.on,)


_OPEN_TO_SELF = "about oneself; asking about others demands can_read_assignments"
_OTHERS = (DEFAULT_PROJECT, PROJECT, WAREHOUSE, NAMESPACE, *TABULARS, ROLE)
_ACCESS = partial(
    one_for_each,
    AskRights,
    name="Get{noun}Access",
    endpoint="GET /management/v1/permissions/{path}/access",
    doc="Which of all actions somebody is allowed on {words}.",
    authorizer_only=False,
)
_AUTHORIZER_ACTIONS = partial(
    one_for_each,
    AskRights,
    name="Get{noun}AuthorizerActions",
    endpoint="GET /management/v1/permissions/{path}/authorizer-actions",
    doc="Which of the actions of the relationship model somebody is allowed on {words}.",
    authorizer_only=True,
)
ASK_RIGHTS: tuple[type[AskRights], ...] = (
    *_ACCESS((SERVER,), open_to=OpenTo(Audience.SELF, _OPEN_TO_SELF)),
    *_ACCESS(_OTHERS),
    *_AUTHORIZER_ACTIONS((SERVER,), open_to=OpenTo(Audience.SELF, _OPEN_TO_SELF)),
    *_AUTHORIZER_ACTIONS(_OTHERS),
)
