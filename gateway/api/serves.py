# SPDX-License-Identifier: Apache-2.0
"""The only way to a route: `@serves(Operation)` builds it from the operation's class (lock 3)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from litestar import HttpMethod, route
from litestar.handlers import HTTPRouteHandler

from gateway.access.operation import Operation

SERVED: dict[type[Operation], HTTPRouteHandler] = {}
"""Which handler serves each operation, filled on import of the handler modules."""

OPERATIONS_OF = "operations"
"""Under this key a handler's options hold the operations it serves, for the latch and the boot-time walk."""


def serves(*operations: type[Operation]) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Make a handler of the endpoint that all `operations` name; the first one gives its name and status.

    Raises TypeError when they name different endpoints or when one of them is served already.
    """
    first = operations[0]
    if any(each.endpoint != first.endpoint for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share one endpoint")
    method, path = first.endpoint.split(" ", 1)

    def wrap(handler: Callable[..., Any]) -> HTTPRouteHandler:
        taken = [each.__name__ for each in operations if each in SERVED]
        if taken:
            raise TypeError(f"{', '.join(taken)} served twice")
        served: HTTPRouteHandler = route(
            re.sub(r"\{(\w+)\}", r"{\1:str}", path),
            http_method=[HttpMethod(method)],
            status_code=first.returns,
            operation_id=first.__name__,
            summary=(first.__doc__ or "").split("\n")[0],
            opt={OPERATIONS_OF: frozenset(operations)},
        )(handler)
        for each in operations:
            SERVED[each] = served
        return served

    return wrap
