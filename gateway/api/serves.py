# SPDX-License-Identifier: Apache-2.0
"""The only way to a route: `@serves(Operation)` builds it from the operation's class (lock 3)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any

from litestar import HttpMethod, route
from litestar.di import NamedDependency
from litestar.handlers import HTTPRouteHandler
from litestar.params import FromPath

from gateway.access.operation import Operation
from gateway.api.nothing import Nothing, answers_nothing
from gateway.api.repeat import once

SERVED: dict[type[Operation], HTTPRouteHandler] = {}
"""Which handler serves each operation, filled on import of the handler modules."""

OPERATIONS_OF = "operations"
"""Under this key a handler's options hold the operations it serves, for the latch and the boot-time walk."""


REPEATED_BY = "repeated by"
"""And under this one what makes the answer of a repeated request anew, or None."""


def serves(
    *operations: type[Operation], repeat: Callable[..., Awaitable[Any]] | None = None
) -> Callable[[Callable[..., Any]], HTTPRouteHandler]:
    """Make a handler of the endpoint that all `operations` name; the first one gives its name and status.

    Whatever changes anything heeds idempotency keys (`repeat.py`). `repeat` makes the answer anew, through the door,
    when a success is repeated; it takes what the handler takes, and after the context what is remembered. Answers
    without content need none. Older paths (`also_at`) lead to the same handler.

    Raises TypeError when they name different endpoints, one that is no route, or when one of them is served already.
    """
    first = operations[0]
    if not first.routed():
        raise TypeError(f"{first.__name__} has no route: {first.endpoint}")
    if any(each.endpoint != first.endpoint for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share one endpoint")
    if any(each.also_at != first.also_at for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)} do not share their older paths")
    if any(each.heeds_keys() != first.heeds_keys() for each in operations):
        raise TypeError(f"{', '.join(each.__name__ for each in operations)}: some change something, others do not")
    method = first.endpoint.split(" ", 1)[0]

    def wrap(handler: Callable[..., Any]) -> HTTPRouteHandler:
        taken = [each.__name__ for each in operations if each in SERVED]
        if taken:
            raise TypeError(f"{', '.join(taken)} served twice")
        _say_where_from(handler)
        served: HTTPRouteHandler = route(
            [re.sub(r"\{(\w+)\}", r"{\1:str}", each) for each in first.paths()],
            http_method=[HttpMethod(method)],
            status_code=first.returns,
            operation_id=first.__name__,
            summary=(first.__doc__ or "").split("\n")[0],
            response_class=Nothing if answers_nothing(handler) else None,
            opt={OPERATIONS_OF: frozenset(operations), REPEATED_BY: repeat},
        )(once(handler, first, repeat) if first.heeds_keys() else handler)
        for each in operations:
            SERVED[each] = served
        return served

    return wrap


def _say_where_from(handler: Callable[..., Any]) -> None:
    """Write into the handler's annotations what they say by their names: `ctx` is the one injected dependency and all
    else is of the path. Litestar 3 infers neither any more.
    """
    injected: Any = NamedDependency  # subscribed with what only the run-time knows
    of_path: Any = FromPath
    for name, kind in list(handler.__annotations__.items()):
        if name != "return":
            handler.__annotations__[name] = injected[kind] if name == "ctx" else of_path[kind]
